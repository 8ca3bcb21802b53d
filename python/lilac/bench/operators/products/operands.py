"""Operands of matrix products: their types, their order in memory, and their tiles in a launch.

A kind names the multiplication, not only the type of the elements: `tf32` and `f32` are both float32, once
rounded to tf32 for the matrix unit, once multiplied in full. A layout is a letter for each operand: N, rows are
contiguous; T, columns are.
"""

from collections import namedtuple

import triton
import triton.language as tl

from ...case import Buffer, Expected, ROUNDING, SMALLEST, within

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
    independent, so their sum has the size of a few, not of all of them."""
    return 8 * ROUNDING[dtype] + within(out, depth)


# A sum of terms with random signs is beyond this many times the root of the sum of their squares with a probability
# of 2 exp(-8²/2) = 3·10⁻¹⁴ (Hoeffding's inequality), for all of 10⁸ elements 3·10⁻⁶.
BEYOND = 8


def spread(errors, values):
    """How far Σ eⱼ vⱼ is from zero for |eⱼ| ≤ errors[i, j], where e does not depend on the signs of the values, which
    are random: at most Σ |eⱼ vⱼ|, and with BEYOND's probability at most 8 √(Σ eⱼ² vⱼ²). Higham and Mary (A new
    approach to probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019) bound rounding errors so. The
    first decides for sums of few terms, the second for the others: it is √n / 8 times less for n equal terms."""
    return (BEYOND * ((errors * errors) @ (values * values))**0.5).clip(None, errors @ abs(values))


def inexact(dtype, depth, steps):
    """The relative error of a weight, before it is rounded, and of the sum of `steps` weighted values.

    A weight is exp2 of a sum of `depth` products of normal numbers, of deviation 1. Its partial sums are within
    BEYOND, and each addition truncates (see `multiplied`): depth · BEYOND · 2^-24. The scale, the modifier, the
    difference from the maximum, exp2 and the quotient are less than 64 · 2^-24 for scores within ±16; smaller weights
    do not matter. The weighted sum adds 2^-24 for each term, and for each block of 16 terms or more that is faded.
    8-bit floats: wgmma keeps 14 bits of the scores and of the weighted sum. `multiplied` has the errors, relative to
    the magnitude of a sum; the error of the weighted sum is taken BEYOND times by `spread`."""
    roundings = (depth * BEYOND + 64 + steps + steps / 16) * ROUNDING["f32"]
    return roundings + (2.0**-11 * depth**0.5 + 2.0**-11 * steps**0.5 / BEYOND if dtype.startswith("f8") else 0.0)


def weighted(weights, values, dtype, out, relative, top=1.0):
    """Expected(weights @ values), for weights that are computed with this relative error, then rounded to `dtype`.

    The kernel's sum is Σ wⱼ (1 + ηⱼ) vⱼ / (1 + η). A rounded weight is off by ROUNDING · w, or by SMALLEST near zero;
    `top` is what a 1 among the rounded numbers weighs at the end (of a softmax, the largest weight of the row). The
    errors of weights do not depend on V, so `spread` bounds their sum. The divisor and the rounding of the result
    are relative to the result. A weight of 0 is that of an element under a mask, and exact."""
    errors = ((ROUNDING[dtype] + relative) * abs(weights) + SMALLEST[dtype] * top) * (weights != 0)
    value = weights @ values
    return Expected(value, spread(errors, values) + (relative + within(out)) * abs(value))


def together(join, parts, *where):
    """The parts' values and what they allow, joined (as by torch.stack)."""
    return Expected(*(join(list(one), *where) for one in zip(*parts)))


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
