"""Functions compiled by torch.compile, whose kernels its inductor writes in Triton, forward and
backward, and a tuned kernel of our own. Saves what they compute.

    python compiled.py OUT.npz
"""

import sys

import numpy
import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@torch.compile
def block(x, weight, bias, residual):
    """What stands between two matrix products: activation, residual, layer norm."""
    y = F.gelu(x, approximate="tanh") * 0.5 + residual
    return F.layer_norm(y, (y.shape[-1],), weight, bias)


@torch.compile
def loss(logits, labels):
    return F.cross_entropy(logits.float(), labels, reduction="none")


@torch.compile
def statistics(x):
    """Reductions over both axes, a scan, positions, a permuted copy."""
    return (x.float().var(0), x.amax(1), x.argmax(1), torch.cumsum(x.float(), 1),
            (x * 2).permute(1, 0).contiguous(), torch.where(x > 0, x.sqrt(), x.abs().log1p()))


@triton.autotune([triton.Config({"BLOCK": size}, num_warps=warps) for size in (256, 1024, 4096) for warps in (4, 8)],
                 key=["n"])
@triton.jit
def scale_and_shift(x, out, a, b, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) * a + b, mask=mask)


def main():
    torch.manual_seed(2026)
    saved = {}
    x = torch.randn(1000, 3000, device="cuda", dtype=torch.float16, requires_grad=True)
    weight = torch.randn(3000, device="cuda", dtype=torch.float16, requires_grad=True)
    bias = torch.randn(3000, device="cuda", dtype=torch.float16, requires_grad=True)
    y = block(x, weight, bias, torch.randn_like(x))
    y.float().square().mean().backward()
    saved.update(block=y, block_x=x.grad * 1e4, block_weight=weight.grad * 1e2, block_bias=bias.grad * 1e2)

    logits = torch.randn(777, 32003, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    labels = torch.randint(32003, (777,), device="cuda")
    each = loss(logits, labels)
    each.sum().backward()
    saved.update(loss=each, loss_logits=logits.grad)

    names = ("variance", "largest", "position", "sums", "permuted", "chosen")
    saved.update(zip(names, statistics(torch.randn(515, 1030, device="cuda", dtype=torch.float16))))

    x = torch.randn(1 << 20, device="cuda")
    out = torch.empty_like(x)
    scale_and_shift[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, 3.0, 1.0, x.numel())
    saved["tuned"] = out
    numpy.savez(sys.argv[1], **{name: value.detach().cpu().float() if value.is_floating_point() else value.cpu()
                                for name, value in saved.items()})


if __name__ == "__main__":
    main()
