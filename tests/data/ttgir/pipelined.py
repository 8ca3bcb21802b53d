"""The kernels of pipelined_*.ttgir, which Triton 3.6 wrote: python3 pipelined.py

Triton pipelines a loop without a matrix product if tl.range has num_stages.
"""

import os
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def pipelined_sum(p, q, n, B: tl.constexpr):
    r = tl.arange(0, B)
    acc = tl.zeros((B,), tl.float32)
    for i in tl.range(0, n, num_stages=3):
        x = tl.load(p + i * B + r)
        acc += x
    tl.store(q + r, acc)


@triton.jit
def pipelined_rows(p, q, n, M: tl.constexpr, N: tl.constexpr):
    r = tl.arange(0, M)
    c = tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for i in tl.range(0, n, N, num_stages=4):
        x = tl.load(p + r[:, None] * n + (i + c)[None, :], mask=(i + c)[None, :] < n, other=0.0)
        acc += x.to(tl.float32)
    tl.store(q + r, tl.sum(acc, 1))


@triton.jit
def pipelined_gather(p, q, idx, n, B: tl.constexpr):
    r = tl.arange(0, B)
    acc = tl.zeros((B,), tl.float32)
    for i in tl.range(0, n, num_stages=3):
        j = tl.load(idx + i * B + r)
        x = tl.load(p + j, mask=j < 4096, other=2.0)
        acc += x
    tl.store(q + r, acc)


@triton.jit
def pipelined_max(p, w, q, n, M: tl.constexpr, N: tl.constexpr):
    r = tl.arange(0, M)
    c = tl.arange(0, N)
    m = tl.full((M,), -float("inf"), tl.float32)
    for i in tl.range(0, n, N, num_stages=3):
        x = tl.load(p + r[:, None] * n + (i + c)[None, :])
        y = tl.load(w + i + c)
        m = tl.maximum(m, tl.max(x.to(tl.float32) * y[None, :], 1))
    tl.store(q + r, m)


# kernel, types of its parameters, constants, parameters that are multiples of 16
KERNELS = [
    (pipelined_sum, {"p": "*fp32", "q": "*fp32", "n": "i32"}, {"B": 512}, 2),
    (pipelined_rows, {"p": "*fp16", "q": "*fp32", "n": "i32"}, {"M": 32, "N": 64}, 3),
    (pipelined_gather, {"p": "*fp32", "q": "*fp32", "idx": "*i32", "n": "i32"}, {"B": 512}, 3),
    (pipelined_max, {"p": "*fp16", "w": "*fp32", "q": "*fp32", "n": "i32"}, {"M": 64, "N": 64}, 4),
]


def without_locations(text):
    """The module without its definitions of locations and its loc(…), which may be nested."""
    text = "\n".join(line for line in text.split("\n") if not re.match(r"#loc\d* =", line))
    kept, at = [], 0
    for found in re.finditer(r" ?loc\(", text):
        if found.start() < at:
            continue
        kept.append(text[at:found.start()])
        at, depth = found.end(), 1
        while depth:
            if text[at] == '"':
                at = text.index('"', at + 1)
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
    return ("".join(kept) + text[at:]).strip("\n") + "\n"


def main():
    for kernel, types, constants, divisible in KERNELS:
        attributes = {(i,): [["tt.divisibility", 16]] for i in range(divisible)}
        source = ASTSource(kernel, types, constants, attributes)
        done = triton.compile(source, target=GPUTarget("cuda", 90, 32),
                              options={"num_warps": 4, "num_stages": 3})
        name = kernel.fn.__name__ + ".ttgir"
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), "w",
                  encoding="utf-8") as file:
            file.write(without_locations(done.asm["ttgir"]))


if __name__ == "__main__":
    main()
