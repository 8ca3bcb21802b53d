"""Layer norm by Welford's algorithm: mean and squared deviations in one pass, joined by tl.reduce."""

import triton
import triton.language as tl

from ..case import Buffer, Case, Launch, within
from .norms import EPSILON


@triton.jit
def join(mean_a, squares_a, count_a, mean_b, squares_b, count_b):
    """Mean, squared deviations and count of two sets together."""
    count = count_a + count_b
    share = tl.where(count == 0, 0.0, count_b / count)
    delta = mean_b - mean_a
    return mean_a + delta * share, squares_a + squares_b + delta * delta * count_a * share, count


@triton.jit
def welford_layer_norm(x, weight, bias, y, columns, epsilon, BLOCK: tl.constexpr):
    """A row a program, a block of columns at a time: each place of the block keeps its own set."""
    row = tl.program_id(0).to(tl.int64)
    x += row * columns
    y += row * columns
    mean = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    count = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        value = tl.load(x + offsets, mask=mask, other=0.0).to(tl.float32)
        delta = value - mean
        next_count = count + 1.0
        next_mean = mean + delta / next_count
        squares = tl.where(mask, squares + delta * (value - next_mean), squares)
        mean = tl.where(mask, next_mean, mean)
        count = tl.where(mask, next_count, count)
    average, deviation, total = tl.reduce((mean, squares, count), 0, join)
    scale = tl.rsqrt(deviation / total + epsilon)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        value = tl.load(x + offsets, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(bias + offsets, mask=mask, other=0.0).to(tl.float32)
        result = (value - average) * scale * w + b
        tl.store(y + offsets, result.to(y.dtype.element_ty), mask=mask)


@triton.jit
def welford_short_rows(x, weight, bias, y, rows, columns, epsilon, ROWS: tl.constexpr,
                       BLOCK: tl.constexpr):
    """Several rows a program, each whole in registers: every element starts as a set of its own."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    mask = (row < rows)[:, None] & inside[None, :]
    offsets = row.to(tl.int64)[:, None] * columns + column[None, :]
    value = tl.load(x + offsets, mask=mask, other=0.0).to(tl.float32)
    squares = tl.zeros([ROWS, BLOCK], tl.float32)
    count = tl.broadcast_to(tl.where(inside, 1.0, 0.0)[None, :], [ROWS, BLOCK])
    average, deviation, total = tl.reduce((value, squares, count), 1, join)
    scale = tl.rsqrt(deviation / total + epsilon)
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
    result = (value - average[:, None]) * scale[:, None] * w[None, :] + b[None, :]
    tl.store(y + offsets, result.to(y.dtype.element_ty), mask=mask)


def reference(a):
    average = a.x.mean(-1, keepdim=True)
    scale = ((a.x - average).square().mean(-1, keepdim=True) + a.epsilon).rsqrt()
    return (a.x - average) * scale * a.weight + a.bias


def arguments(dtype, rows, columns):
    return [Buffer((rows, columns), dtype), Buffer(columns, dtype), Buffer(columns, dtype),
            Buffer((rows, columns), dtype, output=True)]


def rows_case(dtype, rows, columns, block=1024, num_warps=4):
    launch = Launch(welford_layer_norm, rows, arguments(dtype, rows, columns) + [columns, EPSILON],
                    BLOCK=block, num_warps=num_warps)
    return Case(f"welford_{dtype}_{rows}x{columns}", "welford", launch, reference,
                operations=8 * rows * columns, tolerance=within(dtype, 128))


def short_rows_case(dtype, rows, columns, rows_a_program=8, num_warps=4):
    launch = Launch(welford_short_rows, triton.cdiv(rows, rows_a_program),
                    arguments(dtype, rows, columns) + [rows, columns, EPSILON], ROWS=rows_a_program,
                    BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    return Case(f"welford_short_rows_{dtype}_{rows}x{columns}", "welford", launch, reference,
                operations=8 * rows * columns, tolerance=within(dtype, 128))


def cases():
    return [
        rows_case("f32", 8192, 4096, block=2048, num_warps=8),
        rows_case("bf16", 16384, 5120),
        rows_case("f16", 4096, 16384, block=4096, num_warps=16),
        short_rows_case("f32", 65536, 256),
        short_rows_case("f16", 65536, 192, rows_a_program=16),
    ]
