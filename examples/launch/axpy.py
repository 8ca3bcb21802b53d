"""The kernel of axpy.ttir: y = a x + y. With Triton, `python3 axpy.py > axpy.ttir` writes the file
anew; no GPU is needed."""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def axpy(x, y, n, a, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    sum = a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside)
    tl.store(y + i, sum, mask=inside)


if __name__ == "__main__":
    source = ASTSource(axpy, {"x": "*fp32", "y": "*fp32", "n": "i32", "a": "fp32"}, {"BLOCK": 1024},
                       {(i,): [["tt.divisibility", 16]] for i in range(3)})
    ttir = triton.compile(source, GPUTarget("cuda", 90, 32), {"num_warps": 4}).asm["ttir"]
    print(ttir.replace(__file__, "axpy.py"), end="")
