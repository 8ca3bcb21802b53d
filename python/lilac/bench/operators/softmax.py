"""Softmax over rows: a row in registers, several rows a program, rows of any length; its gradient."""

import triton
import triton.language as tl

from ..case import Buffer, Case, Launch, within


@triton.jit
def softmax_rows(x, out, stride, columns, BLOCK: tl.constexpr):
    """One pass: the row stays in registers."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    value = tl.load(x + row * stride + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    power = tl.exp(value - tl.max(value, axis=0))
    result = power / tl.sum(power, axis=0)
    tl.store(out + row * stride + offsets, result.to(out.dtype.element_ty), mask=mask)


@triton.jit
def softmax_short_rows(x, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Several rows a program."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    mask = (row < rows)[:, None] & (column < columns)[None, :]
    offsets = row.to(tl.int64)[:, None] * columns + column[None, :]
    value = tl.load(x + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    power = tl.exp(value - tl.max(value, axis=1)[:, None])
    result = power / tl.sum(power, axis=1)[:, None]
    tl.store(out + offsets, result.to(out.dtype.element_ty), mask=mask)


@triton.jit
def softmax_online(x, out, stride, columns, BLOCK: tl.constexpr):
    """Two passes: the largest element and the sum relative to it together, then the quotients."""
    row = tl.program_id(0).to(tl.int64)
    x += row * stride
    out += row * stride
    highest = -float("inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        value = tl.load(x + offsets, mask=offsets < columns, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(highest, tl.max(value, axis=0))
        total = total * tl.exp(highest - higher) + tl.sum(tl.exp(value - higher), axis=0)
        highest = higher
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        value = tl.load(x + offsets, mask=offsets < columns, other=-float("inf")).to(tl.float32)
        result = tl.exp(value - highest) / total
        tl.store(out + offsets, result.to(out.dtype.element_ty), mask=offsets < columns)


@triton.jit
def softmax_online_places(x, out, stride, columns, BLOCK: tl.constexpr):
    """Two passes; each place of a block keeps its own maximum and sum, which meet after the loop."""
    row = tl.program_id(0).to(tl.int64)
    x += row * stride
    out += row * stride
    highest = tl.full([BLOCK], -1e30, tl.float32)  # finite: a place that sees no element stays quiet
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        value = tl.load(x + offsets, mask=offsets < columns, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(highest, value)
        total = total * tl.exp(highest - higher) + tl.exp(value - higher)
        highest = higher
    row_highest = tl.max(highest, axis=0)
    inverse = 1 / tl.sum(total * tl.exp(highest - row_highest), axis=0)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        value = tl.load(x + offsets, mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
        result = tl.exp(value - row_highest) * inverse
        tl.store(out + offsets, result.to(out.dtype.element_ty), mask=mask)


@triton.jit
def softmax_backward(y, dy, dx, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = row * stride + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < columns
    result = tl.load(y + offsets, mask=mask, other=0.0).to(tl.float32)
    gradient = tl.load(dy + offsets, mask=mask, other=0.0).to(tl.float32)
    along = tl.sum(result * gradient, axis=0)
    tl.store(dx + offsets, (result * (gradient - along)).to(dx.dtype.element_ty), mask=mask)


def softmax_reference(a):
    return a.x.softmax(-1)


def rows_case(dtype, rows, columns, num_warps=4):
    launch = Launch(softmax_rows, rows, [Buffer((rows, columns), dtype),
                                         Buffer((rows, columns), dtype, output=True), columns, columns],
                    BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    return Case(f"softmax_{dtype}_{rows}x{columns}", "softmax", launch, softmax_reference,
                operations=5 * rows * columns, tolerance=within(dtype, 48))


def short_rows_case(dtype, rows, columns, rows_a_program=16, num_warps=4):
    launch = Launch(softmax_short_rows, triton.cdiv(rows, rows_a_program),
                    [Buffer((rows, columns), dtype), Buffer((rows, columns), dtype, output=True),
                     rows, columns],
                    ROWS=rows_a_program, BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    return Case(f"softmax_short_rows_{dtype}_{rows}x{columns}", "softmax", launch, softmax_reference,
                operations=5 * rows * columns, tolerance=within(dtype, 48))


def online_case(kernel, dtype, rows, columns, block=4096, num_warps=8):
    launch = Launch(kernel, rows, [Buffer((rows, columns), dtype),
                                   Buffer((rows, columns), dtype, output=True), columns, columns],
                    BLOCK=block, num_warps=num_warps)
    return Case(f"{launch.name}_{dtype}_{rows}x{columns}", "softmax", launch, softmax_reference,
                operations=5 * rows * columns, tolerance=within(dtype, 96))


def backward_case(dtype, rows, columns, num_warps=4):
    def results(torch, generator, device):
        return torch.randn((rows, columns), generator=generator, device=device).softmax(-1)

    launch = Launch(softmax_backward, rows,
                    [Buffer((rows, columns), dtype, results), Buffer((rows, columns), dtype),
                     Buffer((rows, columns), dtype, output=True), columns, columns],
                    BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    return Case(f"softmax_backward_{dtype}_{rows}x{columns}", "softmax", launch,
                lambda a: a.y * (a.dy - (a.y * a.dy).sum(-1, keepdim=True)),
                operations=4 * rows * columns, tolerance=within(dtype, 48))


def cases():
    return [
        rows_case("f16", 32768, 1024),
        rows_case("f32", 8192, 5000, num_warps=8),
        rows_case("bf16", 8192, 12288, num_warps=16),
        rows_case("f16", 4096, 16384, num_warps=16),
        short_rows_case("f16", 131072, 256),
        short_rows_case("f32", 131072, 77),
        online_case(softmax_online, "f32", 1024, 50257),
        online_case(softmax_online, "f16", 2048, 32000, block=2048, num_warps=4),
        online_case(softmax_online_places, "bf16", 512, 131072),
        online_case(softmax_online_places, "f32", 1024, 32768, block=2048),
        backward_case("f16", 16384, 2048),
        backward_case("bf16", 8192, 5120, num_warps=8),
    ]
