"""The same operators in libraries, as PyTorch calls them (`python -m lilac.bench --libraries`).

    cuBLAS              products: torch.mm, bmm, addmm, _addmm_activation, _int_mm, _scaled_mm with one scale
    _scaled_mm          torch._scaled_mm with a scale for each row and column: cuBLAS or CUTLASS, as PyTorch decides
    CUTLASS             torch._grouped_mm
    cuDNN               attention by scaled_dot_product_attention's backend of this name
    FlashAttention-2    the copy in PyTorch
    FlashAttention-3    where a package with it is installed, and if that has the type and the head

A Library is here only for what it computes completely, for operands of the same types and the same order in memory, and
into the same type. Sums of 8-bit floats are not promoted, as wgmma adds them (`use_fast_accum`).
"""

import importlib
import importlib.metadata
import importlib.util

from ...case import Library
from .operands import matrix


def summed_in(kind):
    """Whether products of f32 are rounded to tf32, as PyTorch asks cuBLAS."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"


def scaled_mm(a, b, out, left=None, right=None):
    """A launch of torch._scaled_mm, with scales of 1 if there are none."""
    import torch

    one = torch.ones((), device=out.device)
    left, right = (one if scale is None else scale for scale in (left, right))
    return lambda: torch._scaled_mm(a, b, scale_a=left, scale_b=right, out_dtype=out.dtype, use_fast_accum=True,
                                    out=out)


def product(kind, out, layout):
    """(A · B,), for the kinds that cuBLAS has: not for e5m2 times e5m2."""
    if kind == "f8e5m2" or kind == "i8" and out != "i32":
        return ()

    def prepare(tensors):
        import torch

        a, b, c = matrix(tensors.a, layout[0]), matrix(tensors.b, layout[1]), tensors.c
        if kind == "f8e4m3":
            return scaled_mm(a, b, c)
        if kind == "i8":
            return lambda: torch._int_mm(a, b, out=c)
        summed_in(kind)
        if c.dtype != a.dtype:
            return lambda: torch.mm(a, b, out_dtype=c.dtype, out=c)
        return lambda: torch.mm(a, b, out=c)

    return (Library("cuBLAS", prepare),)


def batched(kind, layout="N", shared=False):
    """A · B for each matrix of a batch; `shared`: one B for all, so that the matrices of A are one long matrix."""

    def prepare(tensors):
        import torch

        summed_in(kind)
        a, b, c = tensors.a, matrix(tensors.b, layout), tensors.c
        if shared:
            a, c = a.flatten(0, 1), c.flatten(0, 1)
            return lambda: torch.mm(a, b, out=c)
        return lambda: torch.bmm(a, b, out=c)

    return (Library("cuBLAS", prepare),)


def addmm(alpha, beta):
    """alpha · A B + beta · C. cuBLAS adds to what is in the output, so PyTorch copies C there first."""

    def prepare(tensors):
        import torch

        return lambda: torch.addmm(tensors.c, tensors.a, tensors.b, alpha=alpha, beta=beta, out=tensors.out)

    return (Library("cuBLAS", prepare),)


def linear(layout, scale, activation):
    """activation(scale · x W + bias), for the activations of cuBLAS's epilogues."""
    if activation not in ("none", "relu", "gelu_tanh"):
        return ()

    def prepare(tensors):
        import torch

        weight = matrix(tensors.weight, layout)
        if activation == "none":
            return lambda: torch.addmm(tensors.bias, tensors.x, weight, alpha=scale, out=tensors.y)
        return lambda: torch._addmm_activation(tensors.bias, tensors.x, weight, alpha=scale,
                                               use_gelu=activation == "gelu_tanh", out=tensors.y)

    return (Library("cuBLAS", prepare),)


def scaled(kind, rows):
    """A Bᵀ of e4m3 with a scale for each row of both, or one for each matrix."""
    if kind != "f8e4m3":
        return ()

    def prepare(tensors):
        left, right = tensors.scale_a, tensors.scale_b
        left, right = (left[:, None], right[None, :]) if rows else (left.view(()), right.view(()))
        return scaled_mm(tensors.a, tensors.b.t(), tensors.c, left, right)

    return (Library("_scaled_mm" if rows else "cuBLAS", prepare),)


def grouped(kind, layout):
    """The rows of each group times its matrix; PyTorch has a kernel for bf16."""
    if kind != "bf16":
        return ()

    def prepare(tensors):
        import torch

        ends, weight = tensors.offsets[1:].to(torch.int32), matrix(tensors.weight, layout)
        return lambda: torch._grouped_mm(tensors.x, weight, offs=ends)

    return (Library("CUTLASS", prepare, lambda result: {"y": result}),)


# ---- attention -------------------------------------------------------------------------------------


# Module and distribution.
FLASH_ATTENTION_3 = (("flash_attn_interface", "flash_attn_3"), ("fa3_fwd_interface", "fa3_fwd"))


def flash_attention_3():
    """(module, distribution), or None."""
    return next((one for one in FLASH_ATTENTION_3 if importlib.util.find_spec(one[0])), None)


def called(name, *tensors, **words):
    """The output of a function of FlashAttention-3, some versions of which return more."""
    result = getattr(importlib.import_module(flash_attention_3()[0]), name)(*tensors, **words)
    return result[0] if isinstance(result, tuple) else result


def heads_of(tensor, batch):
    """[batch, heads, length, D] of a tensor in which batch and heads are one dimension, or are rows with the length."""
    return tensor.view(batch, -1, *tensor.shape[-2:])


def dot_product_attention(backend, tensors, batch, scale, causal):
    """A launch of scaled_dot_product_attention by this backend."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (heads_of(tensor, batch) for tensor in tensors)
    only = getattr(SDPBackend, backend)

    def launch():
        with sdpa_kernel(only):
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal, scale=scale, enable_gqa=q.shape[1] != k.shape[1])

    return launch


def attention(dtype, batch, length, scale, causal=False, window=0):
    """Attention of f16 and bf16. cuDNN computes no windows as PyTorch calls it."""
    if dtype not in ("f16", "bf16"):
        return ()
    left = window - 1 if window else None

    def reshaped(tensors):
        """The tensors as [batch · heads, length, D], also where they are [batch · heads · length, D]."""
        return [tensor.view(-1, length, tensor.shape[-1]) for tensor in (tensors.q, tensors.k, tensors.v)]

    def by_backend(backend):
        return lambda tensors: dot_product_attention(backend, reshaped(tensors), batch, scale, causal)

    def flash_2(tensors):
        import torch

        q, k, v = (heads_of(tensor, batch).transpose(1, 2) for tensor in reshaped(tensors))
        return lambda: torch.ops.aten._flash_attention_forward(
            q, k, v, None, None, length, length, 0.0, causal, False, scale=scale, window_size_left=left,
            window_size_right=0)[0].transpose(1, 2)

    def flash_3(tensors):
        q, k, v = (heads_of(tensor, batch).transpose(1, 2) for tensor in reshaped(tensors))
        seen = (left, 0) if window else (-1, -1)
        return lambda: called("flash_attn_func", q, k, v, softmax_scale=scale, causal=causal,
                              window_size=seen).transpose(1, 2)

    def collect(result):
        return {"o": result}

    found = [Library("FlashAttention-2", flash_2 if window else by_backend("FLASH_ATTENTION"), collect)]
    if not window:
        found.insert(0, Library("cuDNN", by_backend("CUDNN_ATTENTION"), collect))
    if flash_attention_3():
        found.append(Library("FlashAttention-3", flash_3, collect))
    return tuple(found)


def attention_varlen(dtype, longest, scale, causal):
    """Sequences one behind the other."""
    if dtype not in ("f16", "bf16"):
        return ()

    def flash_2(tensors):
        import torch

        return lambda: torch.ops.aten._flash_attention_forward(
            tensors.q, tensors.k, tensors.v, tensors.offsets, tensors.offsets, longest, longest, 0.0, causal, False,
            scale=scale)[0]

    def flash_3(tensors):
        return lambda: called("flash_attn_varlen_func", tensors.q, tensors.k, tensors.v, tensors.offsets,
                              tensors.offsets, longest, longest, softmax_scale=scale, causal=causal)

    def collect(result):
        return {"o": result}

    found = (Library("FlashAttention-2", flash_2, collect),)
    return (*found, Library("FlashAttention-3", flash_3, collect)) if flash_attention_3() else found


def attention_gradients(dtype, batch, scale, causal):
    """All three gradients of attention, from the inputs and what the library's own forward pass has kept."""

    def by_backend(backend):
        def prepare(tensors):
            import torch

            inputs = [tensor.detach().requires_grad_() for tensor in (tensors.q, tensors.k, tensors.v)]
            output = dot_product_attention(backend, inputs, batch, scale, causal)()
            gradient = heads_of(tensors.do, batch)
            return lambda: torch.autograd.grad(output, inputs, gradient, retain_graph=True)
        return prepare

    def collect(result):
        return dict(zip(("dq", "dk", "dv"), result))

    return tuple(Library(name, by_backend(backend), collect) for name, backend in (
        ("cuDNN", "CUDNN_ATTENTION"), ("FlashAttention-2", "FLASH_ATTENTION")))


# ---- versions --------------------------------------------------------------------------------------


def versions():
    """{library: its version}"""
    import ctypes

    import torch

    found = {}
    try:
        number = ctypes.CDLL("libcublasLt.so." + torch.version.cuda.split(".")[0]).cublasLtGetVersion
        number.restype = ctypes.c_size_t
        value = number()
        found["cuBLAS"] = f"{value // 10000}.{value // 100 % 100}.{value % 100}"
    except (OSError, AttributeError):
        found["cuBLAS"] = f"of CUDA {torch.version.cuda}"
    number = torch.backends.cudnn.version()
    found["cuDNN"] = f"{number // 10000}.{number // 100 % 100}.{number % 100}" if number else "none"
    found["CUTLASS, FlashAttention-2"] = f"of PyTorch {torch.__version__}"
    third = flash_attention_3()
    found["FlashAttention-3"] = "not installed" if third is None else f"({third[1]} {version_of(third[1])})"
    return found


def version_of(distribution):
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"
