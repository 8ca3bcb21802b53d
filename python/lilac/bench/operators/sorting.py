"""Sorted rows, the largest elements of rows, and histograms."""

import triton
import triton.language as tl

from ..case import DATA_TYPES, Buffer, Case, Launch


@triton.jit
def sort_rows(x, out, stride, columns, DESCENDING: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    last = -float("inf") if DESCENDING else float("inf")
    value = tl.load(x + row * stride + offsets, mask=mask, other=last)
    tl.store(out + row * stride + offsets, tl.sort(value, descending=DESCENDING), mask=mask)


@triton.jit
def sort_integers(x, out, rows, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Several rows a program, each as long as its block."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    offsets = row[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mask = (row < rows)[:, None]
    value = tl.load(x + offsets, mask=mask, other=0)
    tl.store(out + offsets, tl.sort(value), mask=mask)


@triton.jit
def largest(x, out, rows, columns, COUNT: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The COUNT largest elements of each row, as routers choose experts."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    mask = (row < rows)[:, None] & (column < columns)[None, :]
    value = tl.load(x + row[:, None] * columns + column[None, :], mask=mask, other=-float("inf"))
    found = tl.topk(value, COUNT)
    tl.store(out + row[:, None] * COUNT + tl.arange(0, COUNT)[None, :], found, mask=(row < rows)[:, None])


@triton.jit
def histogram(x, counts, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """The whole input into one histogram: programs add theirs to it."""
    total = tl.zeros([BINS], tl.int32)
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n
        value = tl.load(x + offsets, mask=mask, other=0).to(tl.int32)
        total += tl.histogram(value, BINS, mask=mask)
    tl.atomic_add(counts + tl.arange(0, BINS), total, sem="relaxed")


@triton.jit
def histogram_rows(x, counts, COLUMNS: tl.constexpr, BINS: tl.constexpr):
    """A histogram of each row."""
    row = tl.program_id(0)
    value = tl.load(x + row * COLUMNS + tl.arange(0, COLUMNS))
    tl.store(counts + row * BINS + tl.arange(0, BINS), tl.histogram(value.to(tl.int32), BINS))


def sort_case(dtype, rows, columns, descending=False, num_warps=4):
    launch = Launch(sort_rows, rows, [Buffer((rows, columns), dtype),
                                      Buffer((rows, columns), dtype, output=True), columns, columns],
                    DESCENDING=descending, BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    return Case(f"sort_{dtype}_{rows}x{columns}", "sort", launch,
                lambda a: a.x.sort(-1, descending=descending)[0],
                operations=rows * columns * (columns - 1).bit_length())


def sort_integers_case(dtype, rows, columns, rows_a_program=4, num_warps=4):
    launch = Launch(sort_integers, triton.cdiv(rows, rows_a_program),
                    [Buffer((rows, columns), dtype, ("integers", -30000, 30000)),
                     Buffer((rows, columns), dtype, output=True), rows],
                    ROWS=rows_a_program, COLUMNS=columns, num_warps=num_warps)
    return Case(f"sort_{dtype}_{rows}x{columns}", "sort", launch, lambda a: a.x.sort(-1)[0],
                operations=rows * columns * (columns - 1).bit_length())


def largest_case(dtype, rows, columns, count, rows_a_program=32, num_warps=4):
    launch = Launch(largest, triton.cdiv(rows, rows_a_program),
                    [Buffer((rows, columns), dtype), Buffer((rows, count), dtype, output=True), rows,
                     columns], COUNT=count, ROWS=rows_a_program, BLOCK=triton.next_power_of_2(columns),
                    num_warps=num_warps)
    return Case(f"top{count}_{dtype}_{rows}x{columns}", "sort", launch,
                lambda a: a.x.sort(-1, descending=True)[0][:, :count], operations=rows * columns)


def histogram_case(dtype, n, bins, block=4096, programs=528, num_warps=8):
    launch = Launch(histogram, programs,
                    [Buffer(n, dtype, ("integers", 0, bins)), Buffer(bins, "i32", "zeros", output=True), n],
                    BINS=bins, BLOCK=block, num_warps=num_warps)
    return Case(f"histogram_{dtype}_{n}_{bins}", "histogram", launch,
                lambda a: a.x.bincount(minlength=bins), operations=n)


def histogram_rows_case(dtype, rows, columns, bins, num_warps=4):
    def reference(a):
        import torch

        row = torch.arange(rows, device=a.x.device)[:, None]
        return (a.x + row * bins).flatten().bincount(minlength=rows * bins).reshape(rows, bins)

    launch = Launch(histogram_rows, rows,
                    [Buffer((rows, columns), dtype, ("integers", 0, bins)),
                     Buffer((rows, bins), "i32", output=True)],
                    COLUMNS=columns, BINS=bins, num_warps=num_warps)
    return Case(f"histogram_rows_{dtype}_{rows}x{columns}_{bins}", "histogram", launch, reference,
                bytes=rows * (columns * DATA_TYPES[dtype].bytes + 4 * bins), operations=rows * columns)


def cases():
    return [
        sort_case("f32", 16384, 512),
        sort_case("f16", 16384, 1000, descending=True),
        sort_case("f32", 4096, 2048, num_warps=8),
        sort_integers_case("i32", 65536, 128),
        sort_integers_case("i16", 65536, 64, rows_a_program=16),
        largest_case("f32", 131072, 128, 8),
        largest_case("f32", 65536, 60, 4),
        histogram_case("u8", 1 << 26, 256),
        histogram_case("i32", 20_000_003, 1024),
        histogram_rows_case("i32", 16384, 1024, 64),
    ]
