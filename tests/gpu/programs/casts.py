"""Conversions of floats to integers, of numbers that fit and of others: the results, as an .npz file."""

import sys

import numpy
import torch

import triton
import triton.language as tl

VALUES = [float("nan"), float("inf"), -float("inf"), 1e30, -1e30, 65504.0, 40000.0, 300.7, -300.7, 127.5, 128.0, 5.5,
          -5.5, -128.9, 1e-40, -0.0]
FLOATS = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}


@triton.jit
def cast(x, y, TYPE: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(y + at, tl.load(x + at).to(TYPE))


def main():
    found = {}
    for name, float_type in FLOATS.items():
        x = torch.tensor(VALUES, dtype=torch.float64).to(float_type).cuda()
        for bits in (8, 16, 32, 64):
            for sign in ("int", "uint"):
                y = torch.zeros(len(VALUES), dtype=getattr(torch, f"int{bits}"), device="cuda")
                to = f"{sign}{bits}"
                cast[(1,)](x, y.view(getattr(torch, to)), getattr(tl, to), len(VALUES))
                found[f"{name}_{to}"] = y.cpu().numpy()
    numpy.savez(sys.argv[1], **found)


if __name__ == "__main__":
    main()
