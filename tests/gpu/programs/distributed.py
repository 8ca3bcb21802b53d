"""A small transformer trained for some steps on two processes, in three ways: data parallel (DDP), sharded
(FSDP2), and with tensor parallelism (DTensor). Every process compiles its part with torch.compile.

    python -m torch.distributed.run --nproc-per-node 2 distributed.py OUT.npz [--device cuda] [--compiler inductor]

The global batch, the initial weights and the optimizer are the same in all three ways, so the losses and the
gradients are equal except for the order of additions. Process 0 saves both: `ddp.losses`,
`ddp.gradient.NAME`, and so on, the gradients those of the first step. Every process saves
`WAY.compilers.RANK`, the compilers of the Triton kernels that it launched, one entry for each.
"""

import argparse
import os

os.environ["TORCHINDUCTOR_USE_STATIC_CUDA_LAUNCHER"] = "0"  # its kernels keep no metadata

import numpy
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

BATCH, LENGTH, WORDS, WIDTH, HIDDEN, HEAD, LAYERS, STEPS = 8, 96, 1000, 256, 688, 64, 2, 3


# ---- the model ------------------------------------------------------------------------------


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


def rotate(x):
    """Rotary positions."""
    position = torch.arange(x.shape[-2], device=x.device).float()
    rate = 100.0 ** -(torch.arange(0, HEAD, 2, device=x.device) / HEAD)
    angle = position[:, None] * rate
    a, b = x.chunk(2, -1)
    return torch.cat((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x):
        q, k, v = (each(x).unflatten(-1, (-1, HEAD)).transpose(1, 2) for each in (self.q, self.k, self.v))
        scores = rotate(q) @ rotate(k).transpose(-1, -2) * HEAD**-0.5
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(-1)
        return self.o((weights @ v).transpose(1, 2).flatten(-2))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.attention, self.second, self.feed_forward = Norm(), Attention(), Norm(), FeedForward()

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.feed_forward(self.second(x))


class Ends(nn.Module):
    """The last norm, the logits and the loss."""

    def __init__(self):
        super().__init__()
        self.norm, self.logits = Norm(), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, x, labels):
        return F.cross_entropy(self.logits(self.norm(x)).flatten(0, -2), labels.flatten())


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ends = Ends()

    def forward(self, tokens, labels):
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x)
        return self.ends(x, labels)


# ---- the three ways -------------------------------------------------------------------------


def ddp(model, device, compiler):
    devices = [device] if device.type == "cuda" else None
    return torch.compile(nn.parallel.DistributedDataParallel(model, device_ids=devices), backend=compiler)


def fsdp2(model, device, compiler):
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for part in (*model.blocks, model.ends):
        part.compile(backend=compiler)
        fully_shard(part, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def tensor_parallel(model, device, compiler):
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    columns = ("attention.q", "attention.k", "attention.v", "feed_forward.gate", "feed_forward.up")
    plan = {name: ColwiseParallel() for name in columns}
    plan.update({name: RowwiseParallel() for name in ("attention.o", "feed_forward.down")})
    for block in model.blocks:
        parallelize_module(block, mesh, plan)
    parallelize_module(model.ends, mesh, {"logits": ColwiseParallel(output_layouts=Replicate())})
    return torch.compile(model, backend=compiler)


WAYS = {"ddp": ddp, "fsdp2": fsdp2, "tensor_parallel": tensor_parallel}


# ---- one run --------------------------------------------------------------------------------


class Launched:
    """Records the compilers of the kernels of torch.compile that this process launches."""

    def __init__(self):
        from torch._inductor.runtime.triton_heuristics import CachingAutotuner

        self.compilers, self.before = {}, CachingAutotuner.run

        def run(tuner, *arguments, **options):
            result = self.before(tuner, *arguments, **options)
            for number, one in enumerate(tuner.compile_results):
                record = getattr(one.kernel.metadata, "lilac", None) or {}
                self.compilers[tuner.fn.__name__, id(tuner), number] = record.get("compiler", "triton")
            return result

        CachingAutotuner.run = run


def full(tensor):
    return (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).detach().cpu().numpy()


def train(way, device, compiler):
    """Losses of the steps, averaged over the processes, and the gradients of the first step."""
    torch.manual_seed(2026)
    model = Model().to(device)
    tokens = torch.randint(WORDS, (STEPS, BATCH, LENGTH + 1)).to(device)
    if way != "tensor_parallel":
        tokens = tokens.tensor_split(dist.get_world_size(), dim=1)[dist.get_rank()]
    parallel = WAYS[way](model, device, compiler)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)  # DTensors and ordinary tensors
    losses, gradients = [], {}
    for step in tokens:
        loss = parallel(step[:, :-1].contiguous(), step[:, 1:].contiguous())
        loss.backward()
        if not gradients:
            gradients = {name: full(each.grad) for name, each in model.named_parameters()}
        optimizer.step()
        optimizer.zero_grad()
        total = loss.detach().clone()
        dist.all_reduce(total)
        losses.append(total.item() / dist.get_world_size())
    return losses, gradients


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--compiler", default="inductor", help="the backend of torch.compile")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    options = parser.parse_args()
    device = torch.device(options.device)
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo",
                            device_id=device if device.type == "cuda" else None)
    launched, saved = Launched(), {}
    for way in options.ways:
        torch._dynamo.reset()
        launched.compilers.clear()
        losses, gradients = train(way, device, options.compiler)
        saved[f"{way}.losses"] = losses
        saved.update({f"{way}.gradient.{name}": each for name, each in gradients.items()})
        everyone = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, list(launched.compilers.values()))
        saved.update({f"{way}.compilers.{rank}": numpy.array(each, dtype="U8") for rank, each in enumerate(everyone)})
    if dist.get_rank() == 0:
        numpy.savez(options.out, **saved)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
