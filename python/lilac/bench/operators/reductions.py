"""Sums over rows, columns and the whole; the place of the largest element."""

import triton
import triton.language as tl

from ..case import Buffer, Case, Launch, within


# ---- sums ------------------------------------------------------------------------------------


@triton.jit
def sum_rows(x, out, stride, columns, BLOCK: tl.constexpr):
    """A row a program, whole in registers."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + offsets, mask=offsets < columns, other=0.0).to(tl.float32)
    tl.store(out + row, tl.sum(value, axis=0))


@triton.jit
def sum_long_rows(x, out, stride, columns, BLOCK: tl.constexpr):
    """A row a program, a block of columns at a time."""
    row = tl.program_id(0).to(tl.int64)
    x += row * stride
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(x + offsets, mask=offsets < columns, other=0.0).to(tl.float32)
    tl.store(out + row, tl.sum(total, axis=0))


@triton.jit
def sum_short_rows(x, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Several rows a program."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    mask = (row < rows)[:, None] & (column < columns)[None, :]
    value = tl.load(x + row.to(tl.int64)[:, None] * columns + column[None, :], mask=mask, other=0.0)
    tl.store(out + row, tl.sum(value.to(tl.float32), axis=1), mask=row < rows)


@triton.jit
def sum_columns(x, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The middle dimension of [batch, rows, columns] summed: a block of columns a program."""
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    batch = tl.program_id(1).to(tl.int64)
    x += batch * rows * columns
    total = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < rows)[:, None] & (column < columns)[None, :]
        value = tl.load(x + row[:, None] * columns + column[None, :], mask=mask, other=0.0)
        total += value.to(tl.float32)
    tl.store(out + batch * columns + column, tl.sum(total, axis=0), mask=column < columns)


@triton.jit
def sum_columns_atomic(x, out, rows, columns, ROWS: tl.constexpr, STEPS: tl.constexpr,
                       BLOCK: tl.constexpr):
    """The gradient of a bias: programs share the rows and add what they found to the result."""
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.program_id(1) * ROWS * STEPS
    total = tl.zeros([BLOCK], tl.float32)
    for step in range(STEPS):
        row = first + step * ROWS + tl.arange(0, ROWS)
        mask = (row < rows)[:, None] & (column < columns)[None, :]
        value = tl.load(x + row.to(tl.int64)[:, None] * columns + column[None, :], mask=mask, other=0.0)
        total += tl.sum(value.to(tl.float32), axis=0)
    tl.atomic_add(out + column, total, mask=column < columns)


@triton.jit
def sum_whole(x, out, n, BLOCK: tl.constexpr):
    """As many programs as run at once walk over the blocks; each adds its sum to the result."""
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(x + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    tl.atomic_add(out, tl.sum(total, axis=0))


def sum_rows_case(dtype, rows, columns, num_warps=4):
    launch = Launch(sum_rows, rows, [Buffer((rows, columns), dtype), Buffer(rows, "f32", output=True),
                                     columns, columns],
                    BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    return Case(f"sum_rows_{dtype}_{rows}x{columns}", "sum", launch, lambda a: a.x.sum(1),
                operations=rows * columns, tolerance=within("f32", 32))


def sum_long_rows_case(dtype, rows, columns, block=4096, num_warps=8):
    launch = Launch(sum_long_rows, rows,
                    [Buffer((rows, columns), dtype), Buffer(rows, "f32", output=True), columns, columns],
                    BLOCK=block, num_warps=num_warps)
    return Case(f"sum_long_rows_{dtype}_{rows}x{columns}", "sum", launch, lambda a: a.x.sum(1),
                operations=rows * columns, tolerance=within("f32", 64))


def sum_short_rows_case(dtype, rows, columns, rows_a_program=16, num_warps=4):
    launch = Launch(sum_short_rows, triton.cdiv(rows, rows_a_program),
                    [Buffer((rows, columns), dtype), Buffer(rows, "f32", output=True), rows, columns],
                    ROWS=rows_a_program, BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    return Case(f"sum_short_rows_{dtype}_{rows}x{columns}", "sum", launch, lambda a: a.x.sum(1),
                operations=rows * columns, tolerance=within("f32", 32))


def sum_columns_case(dtype, batch, rows, columns, tile=(32, 128), num_warps=4):
    launch = Launch(sum_columns, (triton.cdiv(columns, tile[1]), batch),
                    [Buffer((batch, rows, columns), dtype), Buffer((batch, columns), "f32", output=True),
                     rows, columns], ROWS=tile[0], BLOCK=tile[1], num_warps=num_warps)
    return Case(f"sum_columns_{dtype}_{batch}x{rows}x{columns}", "sum", launch, lambda a: a.x.sum(1),
                operations=batch * rows * columns, tolerance=within("f32", 64))


def sum_columns_atomic_case(dtype, rows, columns, tile=(32, 128), steps=8, num_warps=4):
    launch = Launch(sum_columns_atomic,
                    (triton.cdiv(columns, tile[1]), triton.cdiv(rows, tile[0] * steps)),
                    [Buffer((rows, columns), dtype), Buffer(columns, "f32", "zeros", output=True),
                     rows, columns], ROWS=tile[0], STEPS=steps, BLOCK=tile[1], num_warps=num_warps)
    return Case(f"sum_columns_atomic_{dtype}_{rows}x{columns}", "sum", launch, lambda a: a.x.sum(0),
                operations=rows * columns, tolerance=within("f32", 128))


def sum_whole_case(dtype, n, block=2048, programs=1056, num_warps=8):
    launch = Launch(sum_whole, programs, [Buffer(n, dtype, "uniform"),
                                          Buffer(1, "f32", "zeros", output=True), n],
                    BLOCK=block, num_warps=num_warps)
    # One addition to the result for each program, in any order, each with its rounding.
    return Case(f"sum_whole_{dtype}_{n}", "sum", launch, lambda a: a.x.sum().reshape(1),
                operations=n, tolerance=within("f32", programs))


# ---- argmax ----------------------------------------------------------------------------------


@triton.jit
def argmax_rows(x, out, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + offsets, mask=offsets < columns, other=-float("inf"))
    tl.store(out + row, tl.argmax(value, axis=0))


@triton.jit
def argmax_short_rows(x, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    mask = (row < rows)[:, None] & (column < columns)[None, :]
    value = tl.load(x + row[:, None] * columns + column[None, :], mask=mask, other=-float("inf"))
    tl.store(out + row, tl.argmax(value, axis=1), mask=row < rows)


@triton.jit
def argmax_long_rows(x, out, stride, columns, BLOCK: tl.constexpr):
    """Greedy sampling from a vocabulary: each place of a block keeps its best, the first of equals."""
    row = tl.program_id(0).to(tl.int64)
    x += row * stride
    best = tl.full([BLOCK], -float("inf"), tl.float32)
    place = tl.zeros([BLOCK], tl.int32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        value = tl.load(x + offsets, mask=offsets < columns, other=-float("inf")).to(tl.float32)
        better = value > best
        best = tl.where(better, value, best)
        place = tl.where(better, offsets, place)
    highest = tl.max(best, axis=0)
    tl.store(out + row, tl.min(tl.where(best == highest, place, columns), axis=0))


def first_argmax(values, axis):
    """The first place of the largest element; torch.argmax gives any of equals."""
    import torch

    size = values.shape[axis]
    shape = [1] * values.dim()
    shape[axis] = size
    places = torch.arange(size, device=values.device).reshape(shape)
    return places.where(values == values.amax(axis, keepdim=True), places.new_tensor(size)).amin(axis)


def argmax_rows_case(dtype, rows, columns, num_warps=4):
    launch = Launch(argmax_rows, rows, [Buffer((rows, columns), dtype), Buffer(rows, "i32", output=True),
                                        columns, columns],
                    BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    return Case(f"argmax_rows_{dtype}_{rows}x{columns}", "argmax", launch,
                lambda a: first_argmax(a.x, 1), operations=rows * columns)


def argmax_short_rows_case(dtype, rows, columns, rows_a_program=32, num_warps=4):
    launch = Launch(argmax_short_rows, triton.cdiv(rows, rows_a_program),
                    [Buffer((rows, columns), dtype), Buffer(rows, "i32", output=True), rows, columns],
                    ROWS=rows_a_program, BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    return Case(f"argmax_short_rows_{dtype}_{rows}x{columns}", "argmax", launch,
                lambda a: first_argmax(a.x, 1), operations=rows * columns)


def argmax_long_rows_case(dtype, rows, columns, block=4096, num_warps=8):
    launch = Launch(argmax_long_rows, rows,
                    [Buffer((rows, columns), dtype), Buffer(rows, "i32", output=True), columns, columns],
                    BLOCK=block, num_warps=num_warps)
    return Case(f"argmax_long_rows_{dtype}_{rows}x{columns}", "argmax", launch,
                lambda a: first_argmax(a.x, 1), operations=rows * columns)


def cases():
    return [
        sum_rows_case("f32", 8192, 4096),
        sum_rows_case("bf16", 16384, 5120, num_warps=8),
        sum_rows_case("f32", 32768, 1000),
        sum_long_rows_case("f16", 1024, 131072),
        sum_long_rows_case("f32", 2048, 50257, block=2048, num_warps=4),
        sum_short_rows_case("f32", 262144, 128),
        sum_short_rows_case("bf16", 524288, 64, rows_a_program=64),
        sum_columns_case("f16", 64, 512, 4096),
        sum_columns_case("f32", 128, 256, 1000, tile=(16, 64)),
        sum_columns_atomic_case("bf16", 16384, 4096),
        sum_columns_atomic_case("f32", 8192, 5120, tile=(64, 64)),
        sum_whole_case("f32", 1 << 25),
        sum_whole_case("bf16", 100_000_007, block=4096),
        argmax_rows_case("f32", 8192, 4096),
        argmax_rows_case("bf16", 16384, 8192, num_warps=8),
        argmax_short_rows_case("f32", 262144, 64),
        argmax_long_rows_case("bf16", 4096, 50257),
        argmax_long_rows_case("f16", 1024, 128256),
    ]
