"""Running sums along rows and along the middle dimension; a linear recurrence."""

import triton
import triton.language as tl

from ..case import Buffer, Case, Launch, within


@triton.jit
def cumsum_rows(x, out, stride, columns, REVERSE: tl.constexpr, BLOCK: tl.constexpr):
    """A row a program, whole in registers."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    value = tl.load(x + row * stride + offsets, mask=mask, other=0)
    if value.dtype.is_floating():
        value = value.to(tl.float32)
    result = tl.cumsum(value, axis=0, reverse=REVERSE)
    tl.store(out + row * stride + offsets, result.to(out.dtype.element_ty), mask=mask)


@triton.jit
def cumsum_long_rows(x, out, stride, columns, BLOCK: tl.constexpr):
    """A row a program, a block of columns at a time, each added to what came before."""
    row = tl.program_id(0).to(tl.int64)
    x += row * stride
    out += row * stride
    before = tl.zeros([], tl.float32)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        value = tl.load(x + offsets, mask=mask, other=0.0).to(tl.float32)
        result = before + tl.cumsum(value, axis=0)
        before += tl.sum(value, axis=0)
        tl.store(out + offsets, result.to(out.dtype.element_ty), mask=mask)


@triton.jit
def cumsum_time(x, out, steps, columns, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """The middle dimension of [batch, steps, columns]: a block of columns a program."""
    batch = tl.program_id(0).to(tl.int64)
    step = tl.arange(0, STEPS)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (step < steps)[:, None] & (column < columns)[None, :]
    offsets = batch * steps * columns + step[:, None] * columns + column[None, :]
    value = tl.load(x + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + offsets, tl.cumsum(value, axis=0).to(out.dtype.element_ty), mask=mask)


@triton.jit
def follow(decay_a, value_a, decay_b, value_b):
    """Two runs of steps of h = decay h + value, the second after the first, as one."""
    return decay_a * decay_b, value_a * decay_b + value_b


@triton.jit
def recurrence(decay, value, out, stride, columns, BLOCK: tl.constexpr):
    """h[t] = decay[t] h[t - 1] + value[t] along a row: the core of state-space models."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    a = tl.load(decay + row * stride + offsets, mask=mask, other=1.0).to(tl.float32)
    b = tl.load(value + row * stride + offsets, mask=mask, other=0.0).to(tl.float32)
    _, state = tl.associative_scan((a, b), 0, follow)
    tl.store(out + row * stride + offsets, state.to(out.dtype.element_ty), mask=mask)


def rows_case(dtype, rows, columns, out_dtype=None, fill=None, reverse=False, num_warps=4):
    out_dtype = out_dtype or dtype

    def reference(a):
        return a.x.flip(-1).cumsum(-1).flip(-1) if reverse else a.x.cumsum(-1)

    launch = Launch(cumsum_rows, rows,
                    [Buffer((rows, columns), dtype, fill), Buffer((rows, columns), out_dtype, output=True),
                     columns, columns],
                    REVERSE=reverse, BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    return Case(f"cumsum_{'reverse_' if reverse else ''}{dtype}_{rows}x{columns}", "cumsum", launch,
                reference, operations=rows * columns,
                tolerance=0 if out_dtype[0] == "i" else within(out_dtype, 64))


def long_rows_case(dtype, rows, columns, block=4096, num_warps=8):
    launch = Launch(cumsum_long_rows, rows,
                    [Buffer((rows, columns), dtype), Buffer((rows, columns), dtype, output=True),
                     columns, columns], BLOCK=block, num_warps=num_warps)
    return Case(f"cumsum_long_rows_{dtype}_{rows}x{columns}", "cumsum", launch, lambda a: a.x.cumsum(-1),
                operations=rows * columns, tolerance=within(dtype, 128))


def time_case(dtype, batch, steps, columns, block=32, num_warps=4):
    launch = Launch(cumsum_time, (batch, triton.cdiv(columns, block)),
                    [Buffer((batch, steps, columns), dtype),
                     Buffer((batch, steps, columns), dtype, output=True), steps, columns],
                    STEPS=triton.next_power_of_2(steps), BLOCK=block, num_warps=num_warps)
    return Case(f"cumsum_time_{dtype}_{batch}x{steps}x{columns}", "cumsum", launch,
                lambda a: a.x.cumsum(1), operations=batch * steps * columns, tolerance=within(dtype, 64))


def recurrence_case(dtype, rows, columns, num_warps=4):
    def reference(a):
        import torch

        states, state = [], torch.zeros_like(a.value[:, 0])
        for decay, value in zip(a.decay.unbind(1), a.value.unbind(1)):
            state = decay * state + value
            states.append(state)
        return torch.stack(states, 1)

    launch = Launch(recurrence, rows,
                    [Buffer((rows, columns), dtype, "uniform"), Buffer((rows, columns), dtype),
                     Buffer((rows, columns), dtype, output=True), columns, columns],
                    BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    return Case(f"recurrence_{dtype}_{rows}x{columns}", "cumsum", launch, reference,
                operations=2 * rows * columns, tolerance=within(dtype, 64))


def cases():
    return [
        rows_case("f32", 16384, 2048),
        rows_case("f16", 16384, 4096, num_warps=8),
        rows_case("f32", 32768, 1000, reverse=True),
        rows_case("i32", 8192, 4096, num_warps=8),
        rows_case("i8", 16384, 2048, out_dtype="i32", fill=("integers", 0, 2)),
        long_rows_case("f32", 1024, 32768),
        long_rows_case("bf16", 1024, 50257, block=2048, num_warps=4),
        time_case("f32", 64, 512, 1024),
        time_case("bf16", 256, 128, 2048, block=64),
        recurrence_case("f32", 16384, 1024),
    ]
