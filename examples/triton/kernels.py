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
def increment(y, x, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    v = tl.load(x + i)
    v = tl.inline_asm_elementwise("add.f32 $0, $0, 0f3F800000;", "=f,0", [v], tl.float32, True, 1)
    tl.store(y + i, v)


SOURCES = {
    "softmax": ASTSource(softmax, {"y": "*fp32", "x": "*fp32", "stride": "i32", "columns": "i32",
                                   "BLOCK": "constexpr"}, {"BLOCK": 1024}),
    "increment": ASTSource(increment, {"y": "*fp32", "x": "*fp32", "SIZE": "constexpr"}, {"SIZE": 64}),
}

for name in sys.argv[1:] or SOURCES:
    kernel = triton.compile(SOURCES[name], target=GPUTarget("cuda", 90, 32))
    print(f"{name}: {kernel.metadata.shared} bytes of shared memory; {' '.join(kernel.asm)}")
