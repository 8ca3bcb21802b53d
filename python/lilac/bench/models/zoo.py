"""Models written by others, with random weights: what `lilac.bench models` compiles and measures.

    half            development: may be looked at when a rule of the compiler is decided
                    held-out: only measured; no rule is decided by it
    step            training: forward pass, loss, backward pass; inference: forward pass, no gradients
    dynamic         torch.compile(dynamic=True): sizes are arguments of the kernels
    compiled        by torch.compile; otherwise the step is eager, and its kernels are those that its authors wrote in
                    Triton (jit.py)

The models come from transformers, torchvision, torchaudio, timm, torch_geometric and diffusers, layers with kernels
of their own from flash-linear-attention (fla). Widths are those
of the published models; the number of equal layers is reduced, since further layers run the same kernels.
A model whose package is not installed is reported as missing. Nothing is downloaded.
"""

import dataclasses
import functools
import importlib.util


@dataclasses.dataclass(frozen=True)
class Model:
    """A row of the table below. `build()` returns a function without arguments that runs one step and returns
    its results as a tuple of tensors, and the module that torch.compile is to compile."""
    name: str
    family: str
    half: str
    step: str
    dtype: str
    package: str
    make: object
    dynamic: bool = False
    compiled: bool = True

    @property
    def training(self):
        return self.step == "training"

    def missing(self):
        """The reason why the model cannot be built here, or None. The package is not imported, which takes seconds."""
        return None if importlib.util.find_spec(self.package) else f"{self.package} is not installed"

    def build(self, device="cuda"):
        """(module, inputs): a module in the mode of the step, and the keyword arguments of its forward pass."""
        import torch

        dtype = getattr(torch, self.dtype)
        module, inputs = self.make(torch, device)
        module = module.to(device=device, dtype=dtype)
        module = module.train() if self.training else module.eval()
        inputs = {name: value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value
                  for name, value in inputs.items()}
        if not self.training:
            module.requires_grad_(False)
        return module, inputs


def tensors_of(result):
    """The floating-point tensors of what a model returns, in order."""
    import torch

    if isinstance(result, torch.Tensor):
        return [result] if result.is_floating_point() else []
    if hasattr(result, "to_tuple"):
        result = result.to_tuple()
    if isinstance(result, dict):
        result = list(result.values())
    return [one for part in result for one in tensors_of(part)] if isinstance(result, (list, tuple)) else []


def step_of(model, module, inputs):
    """A function that runs one step: the results, and in training the gradient of their mean squares."""
    def training():
        module.zero_grad(set_to_none=True)
        results = tensors_of(module(**inputs))
        sum(one.float().square().mean() for one in results).backward()
        return results

    def inference():
        import torch

        with torch.no_grad():
            return tensors_of(module(**inputs))

    return training if model.training else inference


# ---- builders: (torch, device) -> (module, inputs) ---------------------------------------------------------------

def _tokens(torch, device, vocabulary, batch, length):
    return torch.randint(0, vocabulary, (batch, length), device=device)


def _transformer(config, batch, length, *, name="AutoModel", vocabulary=None, extra=None, **options):
    """A language model of transformers from its configuration class."""
    def make(torch, device):
        import transformers

        chosen = getattr(transformers, config)(**options)
        attention = {} if extra is None else extra
        module = getattr(transformers, name).from_config(chosen, **attention)
        words = vocabulary or chosen.vocab_size
        return module, {"input_ids": _tokens(torch, device, words, batch, length)}
    return make


def _encoder_decoder(torch, device):
    import transformers

    config = transformers.T5Config(d_model=768, d_ff=3072, num_layers=2, num_decoder_layers=2, num_heads=12)
    module = transformers.T5Model(config)
    return module, {"input_ids": _tokens(torch, device, config.vocab_size, 8, 512),
                    "decoder_input_ids": _tokens(torch, device, config.vocab_size, 8, 256)}


def _whisper(torch, device):
    import transformers

    config = transformers.WhisperConfig(d_model=768, encoder_layers=2, decoder_layers=2, encoder_attention_heads=12,
                                        decoder_attention_heads=12, encoder_ffn_dim=3072, decoder_ffn_dim=3072)
    module = transformers.WhisperModel(config)
    return module, {"input_features": torch.randn(4, 80, 3000, device=device),
                    "decoder_input_ids": _tokens(torch, device, config.vocab_size, 4, 128)}


def _vision(function, batch, size=224, **options):
    """A classifier of torchvision; its argument is the only one of its forward pass."""
    def make(torch, device):
        from torchvision import models

        module = getattr(models, function)(weights=None, **options)
        return module, {"x": torch.randn(batch, 3, size, size, device=device)}
    return make


def _timm(name, batch, size=224, **options):
    def make(torch, device):
        import timm

        module = timm.create_model(name, pretrained=False, **options)
        return module, {"x": torch.randn(batch, 3, size, size, device=device)}
    return make


def _vision_of(config, batch, size=224, **options):
    """A vision model of transformers from its configuration class."""
    def make(torch, device):
        import transformers

        module = transformers.AutoModel.from_config(getattr(transformers, config)(**options))
        return module, {"pixel_values": torch.randn(batch, 3, size, size, device=device)}
    return make


def _conv_tasnet(torch, device):
    import torchaudio

    module = torchaudio.models.ConvTasNet(msk_num_layers=4, msk_num_stacks=1)
    return module, {"input": torch.randn(8, 1, 32000, device=device)}


def _conformer(torch, device):
    import torchaudio

    module = torchaudio.models.Conformer(input_dim=512, num_heads=8, ffn_dim=2048, num_layers=2,
                                         depthwise_conv_kernel_size=31)
    return module, {"input": torch.randn(16, 400, 512, device=device),
                    "lengths": torch.full((16,), 400, dtype=torch.int64, device=device)}


def _wav2vec(torch, device):
    import transformers

    config = transformers.Wav2Vec2Config(num_hidden_layers=2)
    return transformers.Wav2Vec2Model(config), {"input_values": torch.randn(4, 160000, device=device)}


def _unet(torch, device):
    import diffusers

    module = diffusers.UNet2DConditionModel(sample_size=64, layers_per_block=1, block_out_channels=(320, 640, 1280),
                                            down_block_types=("CrossAttnDownBlock2D",) * 2 + ("DownBlock2D",),
                                            up_block_types=("UpBlock2D",) + ("CrossAttnUpBlock2D",) * 2,
                                            cross_attention_dim=768)
    return module, {"sample": torch.randn(4, 4, 64, 64, device=device),
                    "timestep": torch.full((4,), 10, dtype=torch.int64, device=device),
                    "encoder_hidden_states": torch.randn(4, 77, 768, device=device)}


def _diffusion_transformer(torch, device):
    import diffusers

    module = diffusers.DiTTransformer2DModel(num_layers=2, sample_size=32)
    return module, {"hidden_states": torch.randn(8, 4, 32, 32, device=device),
                    "timestep": torch.full((8,), 10, dtype=torch.int64, device=device),
                    "class_labels": torch.randint(0, 1000, (8,), device=device)}


def _graph(layer, nodes, edges, width, **options):
    """Two convolutions over a random graph, as torch_geometric's basic models build them."""
    def make(torch, device):
        from torch_geometric.nn import models

        module = getattr(models, layer)(width, width, num_layers=2, **options)
        return module, {"x": torch.randn(nodes, width, device=device),
                        "edge_index": torch.randint(0, nodes, (2, edges), device=device)}
    return make


def _mixing_layer(name, *, batch=4, length=4096, width=2048, **options):
    """A layer of flash-linear-attention that mixes tokens."""
    def make(torch, device):
        from fla import layers

        module = getattr(layers, name)(hidden_size=width, layer_idx=0, **options)
        return module, {"hidden_states": torch.randn(batch, length, width, device=device)}
    return make


def _mixer(name, half, layer, **options):
    return Model(name, "linear attention", half, "training", "bfloat16", "fla", _mixing_layer(layer, **options), compiled=False)


MODELS = [
    Model("llama", "language", "development", "training", "bfloat16", "transformers", _transformer(
        "LlamaConfig", 4, 2048, hidden_size=2048, intermediate_size=5632, num_hidden_layers=2,
        num_attention_heads=32, num_key_value_heads=8)),
    Model("bert", "language", "development", "training", "float32", "transformers", _transformer(
        "BertConfig", 16, 512, num_hidden_layers=2)),
    Model("mistral_dynamic", "language", "development", "inference", "float16", "transformers", _transformer(
        "MistralConfig", 4, 1024, hidden_size=4096, intermediate_size=14336, num_hidden_layers=2,
        num_attention_heads=32, num_key_value_heads=8), dynamic=True),
    Model("deberta", "language", "development", "inference", "float32", "transformers", _transformer(
        "DebertaV2Config", 8, 512, num_hidden_layers=2, hidden_size=768, num_attention_heads=12,
        intermediate_size=3072, relative_attention=True, pos_att_type=["p2c", "c2p"])),
    Model("rwkv", "recurrent", "development", "inference", "bfloat16", "transformers", _transformer(
        "RwkvConfig", 4, 32, hidden_size=2048, num_hidden_layers=2)),
    Model("mamba", "state space", "development", "inference", "float32", "transformers", _transformer(
        "MambaConfig", 4, 32, hidden_size=1536, num_hidden_layers=2)),
    Model("resnet50", "vision", "development", "training", "bfloat16", "torchvision", _vision("resnet50", 64)),
    Model("swin", "vision", "development", "training", "float32", "torchvision", _vision("swin_t", 32)),
    Model("mixer", "vision", "development", "inference", "bfloat16", "timm", _timm("mixer_b16_224", 64)),
    Model("conformer", "speech", "development", "training", "float32", "torchaudio", _conformer),
    Model("unet", "diffusion", "development", "inference", "float16", "diffusers", _unet),
    Model("gat", "graph", "development", "training", "float32", "torch_geometric", _graph(
        "GAT", 20000, 200000, 128, heads=4)),
    Model("mobilenet_v3", "vision", "development", "training", "float32", "torchvision", _vision("mobilenet_v3_large", 64)),
    Model("regnet", "vision", "development", "training", "bfloat16", "torchvision", _vision("regnet_y_400mf", 64)),
    Model("segformer", "vision", "development", "inference", "float16", "transformers", _vision_of(
        "SegformerConfig", 16, 256)),
    Model("focalnet", "vision", "development", "training", "bfloat16", "transformers", _vision_of(
        "FocalNetConfig", 32, depths=[1, 1, 1, 1])),
    Model("jamba", "state space", "development", "training", "bfloat16", "transformers", _transformer(
        "JambaConfig", 4, 16, num_hidden_layers=2, hidden_size=2048, intermediate_size=4096, vocab_size=32768,
        attn_layer_offset=1, attn_layer_period=2, expert_layer_period=8, expert_layer_offset=7, use_mamba_kernels=False)),
    Model("conv_tasnet", "speech", "development", "training", "float32", "torchaudio", _conv_tasnet),
    Model("gin", "graph", "development", "training", "float32", "torch_geometric", _graph("GIN", 20000, 200000, 128)),
    _mixer("gla", "development", "GatedLinearAttention", num_heads=16, expand_k=1.0),
    _mixer("delta_net", "development", "DeltaNet", num_heads=16),
    _mixer("rwkv7", "development", "RWKV7Attention", value_dim=2048, num_hidden_layers=2),
    _mixer("path_attention", "development", "PaTHAttention"),
    _mixer("sparse_attention", "development", "NativeSparseAttention", window_size=0),

    Model("gpt2_dynamic", "language", "held-out", "training", "bfloat16", "transformers", _transformer(
        "GPT2Config", 8, 1024, n_layer=2), dynamic=True),
    Model("t5", "language", "held-out", "training", "float32", "transformers", _encoder_decoder),
    Model("gemma2", "language", "held-out", "training", "bfloat16", "transformers", _transformer(
        "Gemma2Config", 2, 2048, hidden_size=2304, intermediate_size=9216, num_hidden_layers=2,
        num_attention_heads=8, num_key_value_heads=4)),
    Model("modern_bert", "language", "held-out", "inference", "float16", "transformers", _transformer(
        "ModernBertConfig", 16, 1024, num_hidden_layers=2)),
    Model("recurrent_gemma", "recurrent", "held-out", "inference", "bfloat16", "transformers", _transformer(
        "RecurrentGemmaConfig", 2, 64, num_hidden_layers=3, hidden_size=2560)),
    Model("falcon_mamba", "state space", "held-out", "training", "bfloat16", "transformers", _transformer(
        "FalconMambaConfig", 4, 16, num_hidden_layers=2, hidden_size=2048, vocab_size=32768)),
    Model("convnext", "vision", "held-out", "training", "bfloat16", "torchvision", _vision("convnext_tiny", 64)),
    Model("vit", "vision", "held-out", "inference", "float16", "torchvision", _vision("vit_b_16", 64)),
    Model("efficientnet", "vision", "held-out", "training", "float32", "torchvision", _vision("efficientnet_b0", 64)),
    Model("whisper", "speech", "held-out", "training", "bfloat16", "transformers", _whisper),
    Model("dit", "diffusion", "held-out", "training", "float32", "diffusers", _diffusion_transformer),
    Model("graph_sage", "graph", "held-out", "inference", "float32", "torch_geometric", _graph("GraphSAGE", 50000, 500000, 256)),
    _mixer("kimi_delta", "held-out", "KimiDeltaAttention"),
    _mixer("gated_slots", "held-out", "GatedSlotAttention", num_heads=16),
    _mixer("rwkv6", "held-out", "RWKV6Attention", num_heads=16, expand_k=1.0),
    _mixer("retention", "held-out", "MultiScaleRetention", num_heads=16, expand_v=1.0),
    _mixer("forgetting_attention", "held-out", "ForgettingAttention"),
    _mixer("mesa", "held-out", "MesaNet"),
]


@functools.cache
def by_name():
    return {model.name: model for model in MODELS}
