"""Two kernels of Triton's, compiled for an H100 or H200. Needs no GPU, and knows nothing of lilac.

    python kernels.py                    with Triton
    LILAC_TRITON=1 python kernels.py     with lilac, which refuses the second one
"""

import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(y, x, stride, columns, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + c, mask=c < columns, other=-float("inf"))
    v = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * stride + c, v / tl.sum(v, 0), mask=c < columns)


@triton.jit
def square(y, x, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    a = tl.load(x + i[:, None] * SIZE + i[None, :])
    a = tl.dot(a, a)
    tl.store(y + i[:, None] * SIZE + i[None, :], a)


SOURCES = {
    "softmax": ASTSource(softmax, {"y": "*fp32", "x": "*fp32", "stride": "i32", "columns": "i32",
                                   "BLOCK": "constexpr"}, {"BLOCK": 1024}),
    "square": ASTSource(square, {"y": "*fp32", "x": "*fp32", "SIZE": "constexpr"}, {"SIZE": 64}),
}

OPTIONS = {"softmax": {}, "square": {"num_ctas": 2}}  # a cluster of two blocks

for name in sys.argv[1:] or SOURCES:
    kernel = triton.compile(SOURCES[name], target=GPUTarget("cuda", 90, 32), options=OPTIONS[name])
    print(f"{name}: {kernel.metadata.shared} bytes of shared memory; {' '.join(kernel.asm)}")
