"""Batches of sequences of unequal lengths, as recommenders keep them: the rows of `values` from
offsets[b] to offsets[b + 1] belong to b; sum, mean and softmax over each sequence."""

import triton
import triton.language as tl

from ..case import Buffer, Case, Launch, within


@triton.jit
def jagged_sum(values, offsets, out, columns, MEAN: tl.constexpr, ROWS: tl.constexpr,
               BLOCK: tl.constexpr):
    """A block of columns of one sequence a program; the sum, or the mean (0 of no rows)."""
    batch = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    first = tl.load(offsets + batch)
    end = tl.load(offsets + batch + 1)
    total = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in range(first, end, ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < end)[:, None] & (column < columns)[None, :]
        total += tl.load(values + row[:, None] * columns + column[None, :], mask=mask,
                         other=0.0).to(tl.float32)
    result = tl.sum(total, axis=0)
    if MEAN:
        result = result / tl.maximum(end - first, 1).to(tl.float32)
    tl.store(out + batch * columns + column, result.to(out.dtype.element_ty), mask=column < columns)


@triton.jit
def jagged_softmax(values, offsets, out, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Over the rows of each sequence, column by column: maximum and sum together, then quotients."""
    batch = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    first = tl.load(offsets + batch)
    end = tl.load(offsets + batch + 1)
    highest = tl.full([BLOCK], -1e30, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(first, end, ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < end)[:, None] & (column < columns)[None, :]
        value = tl.load(values + row[:, None] * columns + column[None, :], mask=mask,
                        other=-float("inf")).to(tl.float32)
        higher = tl.maximum(highest, tl.max(value, axis=0))
        total = total * tl.exp(highest - higher) + tl.sum(tl.exp(value - higher[None, :]), axis=0)
        highest = higher
    for start in range(first, end, ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < end)[:, None] & (column < columns)[None, :]
        place = row[:, None] * columns + column[None, :]
        value = tl.load(values + place, mask=mask, other=0.0).to(tl.float32)
        result = tl.exp(value - highest[None, :]) / total[None, :]
        tl.store(out + place, result.to(out.dtype.element_ty), mask=mask)


def cut(batches, rows):
    """Where `batches` sequences begin and end among `rows` rows, at random."""

    def make(torch, generator, device):
        cuts = torch.randint(0, rows + 1, (batches - 1,), generator=generator, device=device)
        ends = torch.tensor([0, rows], device=device)
        return torch.cat([cuts, ends]).sort()[0]

    return Buffer(batches + 1, "i64", make)


def sequence_of(offsets, rows):
    """The sequence that each row belongs to."""
    import torch

    return torch.searchsorted(offsets[1:].contiguous(), torch.arange(rows, device=offsets.device),
                              right=True)


def sums(values, offsets):
    result = values.new_zeros((len(offsets) - 1, values.shape[1]))
    return result.index_add_(0, sequence_of(offsets, len(values)), values)


def sum_reference(a):
    total = sums(a.values, a.offsets)
    if not a.MEAN:
        return total
    return total / (a.offsets[1:] - a.offsets[:-1]).clamp_min(1)[:, None]


def softmax_reference(a):
    power = a.values.exp()
    return power / sums(power, a.offsets)[sequence_of(a.offsets, len(power))]


def sum_case(dtype, batches, rows, columns, mean=False, tile=(32, 64), num_warps=4):
    launch = Launch(jagged_sum, (batches, triton.cdiv(columns, tile[1])),
                    [Buffer((rows, columns), dtype), cut(batches, rows),
                     Buffer((batches, columns), dtype, output=True), columns],
                    MEAN=mean, ROWS=tile[0], BLOCK=tile[1], num_warps=num_warps)
    name = "jagged_mean" if mean else "jagged_sum"
    return Case(f"{name}_{dtype}_{batches}_{rows}x{columns}", name.replace("_", " "), launch,
                sum_reference, operations=rows * columns, tolerance=within(dtype, 64))


def softmax_case(dtype, batches, rows, columns, tile=(32, 64), num_warps=4):
    launch = Launch(jagged_softmax, (batches, triton.cdiv(columns, tile[1])),
                    [Buffer((rows, columns), dtype), cut(batches, rows),
                     Buffer((rows, columns), dtype, output=True), columns],
                    ROWS=tile[0], BLOCK=tile[1], num_warps=num_warps)
    return Case(f"jagged_softmax_{dtype}_{batches}_{rows}x{columns}", "jagged softmax", launch,
                softmax_reference, operations=5 * rows * columns, tolerance=within(dtype, 96))


def cases():
    return [
        sum_case("f32", 1024, 131072, 256),
        sum_case("bf16", 2048, 262144, 128, tile=(64, 128)),
        sum_case("f16", 512, 65536, 1000, tile=(16, 128)),
        sum_case("f32", 1024, 131072, 256, mean=True),
        sum_case("bf16", 4096, 262144, 64, mean=True, tile=(64, 64)),
        sum_case("f32", 512, 65536, 500, mean=True, tile=(16, 128)),
        softmax_case("f32", 1024, 131072, 128),
        softmax_case("bf16", 2048, 262144, 64, tile=(64, 64)),
        softmax_case("f16", 512, 65536, 500, tile=(16, 128)),
    ]
