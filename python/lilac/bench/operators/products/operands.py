"""Operands of matrix products: their types, their order in memory, and their tiles in a launch.

A kind names the multiplication, not only the type of the elements: `tf32` and `f32` are both float32, once
rounded to tf32 for the matrix unit, once multiplied in full. A layout is a letter for each operand: N, rows are
contiguous; T, columns are.
"""

from collections import namedtuple

import triton
import triton.language as tl

from ...case import Buffer, ROUNDING, within

Kind = namedtuple("Kind", "dtype out precision accumulator unit")

KINDS = {
    #               elements  result   precision accumulator unit
    "f16":    Kind("f16",    "f16",   "tf32",   tl.float32, "f16"),
    "bf16":   Kind("bf16",   "bf16",  "tf32",   tl.float32, "f16"),
    "tf32":   Kind("f32",    "f32",   "tf32",   tl.float32, "tf32"),
    "f32":    Kind("f32",    "f32",   "ieee",   tl.float32, None),
    "f8e4m3": Kind("f8e4m3", "f16",   "tf32",   tl.float32, "f8"),
    "f8e5m2": Kind("f8e5m2", "f16",   "tf32",   tl.float32, "f8"),
    "i8":     Kind("i8",     "i32",   "tf32",   tl.int32,   "i8"),
}  # fmt: skip


def numbers(kind, shape):
    """What fills an operand: numbers that the matrix unit does not round."""
    if kind != "tf32":
        return None

    def rounded(torch, generator, device):
        return torch.randn(shape, generator=generator, device=device).half().float()

    return rounded


def operand(kind, rows, columns, layout="N", batch=()):
    """The buffer of a matrix (or of a batch of them)."""
    shape = (*batch, *((rows, columns) if layout == "N" else (columns, rows)))
    return Buffer(shape, KINDS[kind].dtype, numbers(kind, shape))


def strides(rows, columns, layout="N"):
    return (columns, 1) if layout == "N" else (1, rows)


def matrix(tensor, layout):
    """The matrix that is stored in this layout."""
    return tensor if layout == "N" else tensor.transpose(-1, -2)


def multiplied(kind, out, depth):
    """The tolerance of a sum of `depth` products that is rounded to the type `out`.

    A matrix unit adds 16 products or more at once and truncates the sum, which is within one rounding of f32 for
    each product. wgmma adds 32 products of 8-bit floats and keeps 14 bits: a sum of normal products is then off by
    at most 2^-12 √depth of its magnitude (numerical experiments with 60,000 sums); twice that is allowed."""
    if out == "i32":
        return 0
    if kind.startswith("f8"):
        return within(out) + 2.0**-11 * depth**0.5
    return within(out, depth)


def through(dtype, out, depth):
    """The tolerance of a product whose first operand is itself computed and rounded to `dtype`. The roundings are
    independent, so their sum has the size of a few, not of all of them.

    In attention the sum of row i is Σ wⱼ(1 + δⱼ) vⱼ with |δⱼ| at most the rounding u, so its error has the deviation
    u/√3 · √(Σ wⱼ² vⱼ²): that of the row's elements times u/√3. Five deviations, as among 10⁷ elements, are 3 u. Rows
    of a causal mask that see few keys are as large as one vⱼ, others √n times smaller: each is compared with its own
    mean magnitude (`rows` of the case)."""
    return 8 * ROUNDING[dtype] + within(out, depth)


@triton.jit
def tile_of(tile, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """The coordinates of a tile, in an order that keeps GROUP rows of tiles in the L2 cache."""
    rows = tl.cdiv(M, BM)
    columns = tl.cdiv(N, BN)
    group = tile // (GROUP * columns)
    first = group * GROUP
    height = tl.minimum(rows - first, GROUP)
    within_group = tile % (GROUP * columns)
    return first + within_group % height, within_group // height


def tiles(M, N, tile):
    return triton.cdiv(M, tile[0]) * triton.cdiv(N, tile[1])
