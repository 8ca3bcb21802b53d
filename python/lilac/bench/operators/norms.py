"""Layer norm and RMS norm, forward and backward."""

import triton
import triton.language as tl

from ..case import Buffer, Case, Launch, within

EPSILON = 1e-5


# ---- layer norm ------------------------------------------------------------------------------


@triton.jit
def layer_norm(x, weight, bias, y, mean, rstd, stride, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    value = tl.load(x + row * stride + offsets, mask=mask, other=0.0).to(tl.float32)
    average = tl.sum(value, axis=0) / columns
    centered = tl.where(mask, value - average, 0.0)
    scale = tl.rsqrt(tl.sum(centered * centered, axis=0) / columns + epsilon)
    w = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(bias + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(y + row * stride + offsets, (centered * scale * w + b).to(y.dtype.element_ty), mask=mask)
    tl.store(mean + row, average)
    tl.store(rstd + row, scale)


@triton.jit
def layer_norm_backward(dy, x, weight, mean, rstd, dx, dw_part, db_part, rows, columns,
                        ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """ROWS rows a program, which also leaves its part of the gradients of weight and bias."""
    program = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    w = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros([BLOCK], tl.float32)
    db = tl.zeros([BLOCK], tl.float32)
    for row in range(program * ROWS, min(program * ROWS + ROWS, rows)):
        start = row.to(tl.int64) * columns
        gradient = tl.load(dy + start + offsets, mask=mask, other=0.0).to(tl.float32)
        value = tl.load(x + start + offsets, mask=mask, other=0.0).to(tl.float32)
        scale = tl.load(rstd + row)
        normal = tl.where(mask, (value - tl.load(mean + row)) * scale, 0.0)
        weighted = gradient * w
        along = tl.sum(normal * weighted, axis=0) / columns
        level = tl.sum(weighted, axis=0) / columns
        result = (weighted - (normal * along + level)) * scale
        tl.store(dx + start + offsets, result.to(dx.dtype.element_ty), mask=mask)
        dw += gradient * normal
        db += gradient
    tl.store(dw_part + program * columns + offsets, dw, mask=mask)
    tl.store(db_part + program * columns + offsets, db, mask=mask)


@triton.jit
def sum_parts(dw_part, db_part, dw, db, parts, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The gradients of weight and bias from the parts that the programs left."""
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    w = tl.zeros([ROWS, BLOCK], tl.float32)
    b = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in range(0, parts, ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < parts)[:, None] & (column < columns)[None, :]
        offsets = row[:, None] * columns + column[None, :]
        w += tl.load(dw_part + offsets, mask=mask, other=0.0)
        b += tl.load(db_part + offsets, mask=mask, other=0.0)
    tl.store(dw + column, tl.sum(w, axis=0).to(dw.dtype.element_ty), mask=column < columns)
    tl.store(db + column, tl.sum(b, axis=0).to(db.dtype.element_ty), mask=column < columns)


def layer_norm_reference(a):
    average = a.x.mean(-1, keepdim=True)
    scale = ((a.x - average).square().mean(-1, keepdim=True) + a.epsilon).rsqrt()
    return {"y": (a.x - average) * scale * a.weight + a.bias, "mean": average[:, 0], "rstd": scale[:, 0]}


def grouped(values, rows_a_program):
    """The sums of groups of rows, the last group as long as it is."""
    import torch

    return torch.stack([part.sum(0) for part in values.split(rows_a_program)])


def layer_norm_backward_reference(a):
    normal = (a.x - a.mean[:, None]) * a.rstd[:, None]
    weighted = a.dy * a.weight
    along = (normal * weighted).mean(-1, keepdim=True)
    dx = (weighted - normal * along - weighted.mean(-1, keepdim=True)) * a.rstd[:, None]
    return {"dx": dx, "dw_part": grouped(a.dy * normal, a.ROWS), "db_part": grouped(a.dy, a.ROWS)}


def layer_norm_case(dtype, rows, columns, num_warps=4):
    launch = Launch(layer_norm, rows,
                    [Buffer((rows, columns), dtype), Buffer(columns, dtype), Buffer(columns, dtype),
                     Buffer((rows, columns), dtype, output=True), Buffer(rows, "f32", output=True),
                     Buffer(rows, "f32", output=True), columns, columns, EPSILON],
                    BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    # The mean is far below the elements' magnitude 1: its error is that of a sum of such elements.
    return Case(f"layer_norm_{dtype}_{rows}x{columns}", "layer norm", launch, layer_norm_reference,
                operations=8 * rows * columns,
                tolerance={"y": within(dtype, 64), "mean": within("f32", 64), "rstd": within("f32", 32)})


def layer_norm_backward_case(dtype, rows, columns, rows_a_program=16, num_warps=8):
    parts = triton.cdiv(rows, rows_a_program)
    part = Buffer((parts, columns), "f32", output=True)
    matrix = Buffer((rows, columns), dtype)
    launch = Launch(layer_norm_backward, parts,
                    [matrix, matrix, Buffer(columns, dtype), Buffer(rows, "f32"),
                     Buffer(rows, "f32", "uniform"), Buffer((rows, columns), dtype, output=True), part,
                     part, rows, columns],
                    ROWS=rows_a_program, BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    return Case(f"layer_norm_backward_{dtype}_{rows}x{columns}", "layer norm backward", launch,
                layer_norm_backward_reference, operations=14 * rows * columns,
                bytes=3 * matrix.bytes + 8 * rows + 8 * columns,  # the parts are the kernel's affair
                tolerance={"dx": within(dtype, 64), "dw_part": within("f32", 64),
                           "db_part": within("f32", 64)})


def sum_parts_case(dtype, parts, columns, tile=(32, 64), num_warps=4):
    part = Buffer((parts, columns), "f32")
    result = Buffer(columns, dtype, output=True)
    launch = Launch(sum_parts, triton.cdiv(columns, tile[1]), [part, part, result, result, parts, columns],
                    ROWS=tile[0], BLOCK=tile[1], num_warps=num_warps)
    return Case(f"layer_norm_parts_{dtype}_{parts}x{columns}", "layer norm backward", launch,
                lambda a: {"dw": a.dw_part.sum(0), "db": a.db_part.sum(0)},
                operations=2 * parts * columns, tolerance=within(dtype, 64))


# ---- RMS norm --------------------------------------------------------------------------------


@triton.jit
def rms_norm(x, weight, y, stride, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    value = tl.load(x + row * stride + offsets, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / columns + epsilon)
    w = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(y + row * stride + offsets, (value * scale * w).to(y.dtype.element_ty), mask=mask)


@triton.jit
def add_rms_norm(x, residual, weight, y, total, columns, epsilon, BLOCK: tl.constexpr):
    """The residual stream of a transformer: x is added to it, and the sum normalised."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    value = tl.load(x + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    value += tl.load(residual + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(total + row * columns + offsets, value.to(total.dtype.element_ty), mask=mask)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / columns + epsilon)
    w = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(y + row * columns + offsets, (value * scale * w).to(y.dtype.element_ty), mask=mask)


@triton.jit
def rms_norm_short_rows(x, weight, y, rows, columns, epsilon, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Queries and keys normalised head by head."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    mask = (row < rows)[:, None] & (column < columns)[None, :]
    offsets = row.to(tl.int64)[:, None] * columns + column[None, :]
    value = tl.load(x + offsets, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=1) / columns + epsilon)
    w = tl.load(weight + column, mask=column < columns, other=0.0).to(tl.float32)
    result = value * scale[:, None] * w[None, :]
    tl.store(y + offsets, result.to(y.dtype.element_ty), mask=mask)


@triton.jit
def rms_norm_backward(dy, x, weight, rstd, dx, dw_part, rows, columns, ROWS: tl.constexpr,
                      BLOCK: tl.constexpr):
    program = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    w = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros([BLOCK], tl.float32)
    for row in range(program * ROWS, min(program * ROWS + ROWS, rows)):
        start = row.to(tl.int64) * columns
        gradient = tl.load(dy + start + offsets, mask=mask, other=0.0).to(tl.float32)
        value = tl.load(x + start + offsets, mask=mask, other=0.0).to(tl.float32)
        scale = tl.load(rstd + row)
        normal = value * scale
        weighted = gradient * w
        along = tl.sum(normal * weighted, axis=0) / columns
        tl.store(dx + start + offsets, ((weighted - normal * along) * scale).to(dx.dtype.element_ty),
                 mask=mask)
        dw += gradient * normal
    tl.store(dw_part + program * columns + offsets, dw, mask=mask)


def normalised(values, weight, epsilon):
    return values * (values.square().mean(-1, keepdim=True) + epsilon).rsqrt() * weight


def rms_norm_backward_reference(a):
    normal = a.x * a.rstd[:, None]
    weighted = a.dy * a.weight
    dx = (weighted - normal * (normal * weighted).mean(-1, keepdim=True)) * a.rstd[:, None]
    return {"dx": dx, "dw_part": grouped(a.dy * normal, a.ROWS)}


def rms_norm_case(dtype, rows, columns, num_warps=8):
    launch = Launch(rms_norm, rows,
                    [Buffer((rows, columns), dtype), Buffer(columns, dtype),
                     Buffer((rows, columns), dtype, output=True), columns, columns, EPSILON],
                    BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    return Case(f"rms_norm_{dtype}_{rows}x{columns}", "rms norm", launch,
                lambda a: normalised(a.x, a.weight, a.epsilon), operations=5 * rows * columns,
                tolerance=within(dtype, 32))


def add_rms_norm_case(dtype, rows, columns, num_warps=8):
    matrix, result = Buffer((rows, columns), dtype), Buffer((rows, columns), dtype, output=True)
    launch = Launch(add_rms_norm, rows,
                    [matrix, matrix, Buffer(columns, dtype), result, result, columns, EPSILON],
                    BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    return Case(f"add_rms_norm_{dtype}_{rows}x{columns}", "rms norm", launch,
                lambda a: {"y": normalised(a.x + a.residual, a.weight, a.epsilon),
                           "total": a.x + a.residual},
                operations=6 * rows * columns, tolerance=within(dtype, 32))


def rms_norm_short_rows_case(dtype, rows, columns, rows_a_program=16, num_warps=4):
    launch = Launch(rms_norm_short_rows, triton.cdiv(rows, rows_a_program),
                    [Buffer((rows, columns), dtype), Buffer(columns, dtype),
                     Buffer((rows, columns), dtype, output=True), rows, columns, EPSILON],
                    ROWS=rows_a_program, BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    return Case(f"rms_norm_short_rows_{dtype}_{rows}x{columns}", "rms norm", launch,
                lambda a: normalised(a.x, a.weight, a.epsilon), operations=5 * rows * columns,
                tolerance=within(dtype, 32))


def rms_norm_backward_case(dtype, rows, columns, rows_a_program=16, num_warps=8):
    parts = triton.cdiv(rows, rows_a_program)
    matrix = Buffer((rows, columns), dtype)
    launch = Launch(rms_norm_backward, parts,
                    [matrix, matrix, Buffer(columns, dtype), Buffer(rows, "f32", "uniform"),
                     Buffer((rows, columns), dtype, output=True),
                     Buffer((parts, columns), "f32", output=True), rows, columns],
                    ROWS=rows_a_program, BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    return Case(f"rms_norm_backward_{dtype}_{rows}x{columns}", "rms norm backward", launch,
                rms_norm_backward_reference, operations=9 * rows * columns,
                bytes=3 * matrix.bytes + 4 * rows + 6 * columns,
                tolerance={"dx": within(dtype, 64), "dw_part": within("f32", 64)})


def cases():
    return [
        layer_norm_case("bf16", 16384, 4096, num_warps=8),
        layer_norm_case("f32", 32768, 1024),
        layer_norm_case("f16", 4096, 12288, num_warps=16),
        layer_norm_case("f16", 32768, 768),
        layer_norm_backward_case("f16", 8192, 4096),
        layer_norm_backward_case("bf16", 16384, 1024, num_warps=4),
        layer_norm_backward_case("f32", 8192, 5120, num_warps=16),
        sum_parts_case("f16", 1024, 8192),
        sum_parts_case("f32", 2048, 5120, tile=(64, 32)),
        rms_norm_case("bf16", 16384, 4096),
        rms_norm_case("bf16", 8192, 7168),
        rms_norm_case("f16", 4096, 16384, num_warps=16),
        rms_norm_case("f32", 32768, 1000, num_warps=4),
        add_rms_norm_case("bf16", 8192, 4096),
        add_rms_norm_case("f16", 8192, 5120, num_warps=4),
        rms_norm_short_rows_case("bf16", 262144, 128),
        rms_norm_short_rows_case("f16", 200_003, 80, rows_a_program=32),
        rms_norm_backward_case("bf16", 8192, 4096),
        rms_norm_backward_case("f16", 8192, 8192, num_warps=16),
    ]
