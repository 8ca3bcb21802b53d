"""Transposes and permutations of dimensions."""

import triton
import triton.language as tl

from ..case import Buffer, Case, Launch


@triton.jit
def transpose(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = (row < rows)[:, None] & (column < columns)[None, :]
    value = tl.load(x + row[:, None] * columns + column[None, :], mask=mask)
    tl.store(out + column[:, None] * rows + row[None, :], tl.trans(value), mask=tl.trans(mask))


@triton.jit
def transpose_by_strides(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The same with no tl.trans: only the offsets of the store differ."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = (row < rows)[:, None] & (column < columns)[None, :]
    value = tl.load(x + row[:, None] * columns + column[None, :], mask=mask)
    tl.store(out + column[None, :] * rows + row[:, None], value, mask=mask)


@triton.jit
def batch_transpose(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """[batch, rows, columns] to [batch, columns, rows], as images change the place of their channels."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    start = tl.program_id(2).to(tl.int64) * rows * columns
    mask = (row < rows)[:, None] & (column < columns)[None, :]
    value = tl.load(x + start + row[:, None] * columns + column[None, :], mask=mask)
    tl.store(out + start + column[:, None] * rows + row[None, :], tl.trans(value), mask=tl.trans(mask))


@triton.jit
def permute(x, out, A, B, C, BLOCK_A: tl.constexpr, BLOCK_B: tl.constexpr, BLOCK_C: tl.constexpr,
            REVERSE: tl.constexpr):
    """[A, B, C] to [C, A, B], or to [C, B, A]: a box a program."""
    a = tl.program_id(0) * BLOCK_A + tl.arange(0, BLOCK_A)
    b = tl.program_id(1) * BLOCK_B + tl.arange(0, BLOCK_B)
    c = tl.program_id(2) * BLOCK_C + tl.arange(0, BLOCK_C)
    place = a[:, None, None] * (B * C) + b[None, :, None] * C + c[None, None, :]
    mask = (a < A)[:, None, None] & (b < B)[None, :, None] & (c < C)[None, None, :]
    value = tl.load(x + place, mask=mask)
    if REVERSE:
        place = c[:, None, None] * (A * B) + b[None, :, None] * A + a[None, None, :]
        tl.store(out + place, tl.permute(value, (2, 1, 0)), mask=tl.permute(mask, (2, 1, 0)))
    else:
        place = c[:, None, None] * (A * B) + a[None, :, None] * B + b[None, None, :]
        tl.store(out + place, tl.permute(value, (2, 0, 1)), mask=tl.permute(mask, (2, 0, 1)))


@triton.jit
def swap_heads(x, out, tokens, heads, TOKENS: tl.constexpr, HEADS: tl.constexpr, SIZE: tl.constexpr):
    """[batch, tokens, heads, size] to [batch, heads, tokens, size], as before attention."""
    token = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    size = tl.arange(0, SIZE)
    start = tl.program_id(2).to(tl.int64) * tokens * heads * SIZE
    mask = (token < tokens)[:, None, None] & (head < heads)[None, :, None]
    place = token[:, None, None] * (heads * SIZE) + head[None, :, None] * SIZE + size[None, None, :]
    value = tl.load(x + start + place, mask=mask)
    place = head[:, None, None] * (tokens * SIZE) + token[None, :, None] * SIZE + size[None, None, :]
    mask = (head < heads)[:, None, None] & (token < tokens)[None, :, None]
    tl.store(out + start + place, tl.permute(value, (1, 0, 2)), mask=mask)


def transpose_case(dtype, rows, columns, tile=(64, 64), num_warps=4, kernel=transpose):
    launch = Launch(kernel, (triton.cdiv(rows, tile[0]), triton.cdiv(columns, tile[1])),
                    [Buffer((rows, columns), dtype), Buffer((columns, rows), dtype, output=True), rows,
                     columns], ROWS=tile[0], COLUMNS=tile[1], num_warps=num_warps)
    return Case(f"{launch.name}_{dtype}_{rows}x{columns}", "transpose", launch, lambda a: a.x.T)


def batch_case(dtype, batch, rows, columns, tile=(64, 64), num_warps=4):
    launch = Launch(batch_transpose, (triton.cdiv(rows, tile[0]), triton.cdiv(columns, tile[1]), batch),
                    [Buffer((batch, rows, columns), dtype),
                     Buffer((batch, columns, rows), dtype, output=True), rows, columns],
                    ROWS=tile[0], COLUMNS=tile[1], num_warps=num_warps)
    return Case(f"batch_transpose_{dtype}_{batch}x{rows}x{columns}", "transpose", launch,
                lambda a: a.x.transpose(1, 2))


def permute_case(dtype, shape, box, order, num_warps=4):
    launch = Launch(permute, tuple(triton.cdiv(n, b) for n, b in zip(shape, box)),
                    [Buffer(shape, dtype), Buffer([shape[d] for d in order], dtype, output=True), *shape],
                    BLOCK_A=box[0], BLOCK_B=box[1], BLOCK_C=box[2], REVERSE=order == (2, 1, 0),
                    num_warps=num_warps)
    name = "".join(map(str, order)) + "_" + dtype + "_" + "x".join(map(str, shape))
    return Case(f"permute_{name}", "transpose", launch, lambda a: a.x.permute(order))


def swap_heads_case(dtype, batch, tokens, heads, size, tile=(16, 8), num_warps=4):
    launch = Launch(swap_heads, (triton.cdiv(tokens, tile[0]), triton.cdiv(heads, tile[1]), batch),
                    [Buffer((batch, tokens, heads, size), dtype),
                     Buffer((batch, heads, tokens, size), dtype, output=True), tokens, heads],
                    TOKENS=tile[0], HEADS=tile[1], SIZE=size, num_warps=num_warps)
    return Case(f"swap_heads_{dtype}_{batch}x{tokens}x{heads}x{size}", "transpose", launch,
                lambda a: a.x.transpose(1, 2))


def cases():
    return [
        transpose_case("f16", 8192, 12288),
        transpose_case("f32", 4096, 8192, tile=(32, 64)),
        transpose_case("i8", 16384, 8192, tile=(128, 128), num_warps=8),
        transpose_case("f16", 5000, 7003, tile=(64, 32)),
        transpose_case("bf16", 8192, 5120, tile=(128, 64), num_warps=8, kernel=transpose_by_strides),
        transpose_case("f32", 4096, 5120, tile=(64, 64), num_warps=8, kernel=transpose_by_strides),
        batch_case("f16", 64, 256, 56 * 56),
        batch_case("f32", 256, 1024, 128, tile=(32, 32)),
        permute_case("f32", (256, 128, 512), (4, 16, 64), (2, 0, 1)),
        permute_case("i8", (512, 256, 512), (32, 4, 64), (2, 1, 0)),
        permute_case("f16", (300, 200, 500), (16, 8, 32), (2, 1, 0)),
        swap_heads_case("bf16", 8, 2048, 32, 128),
    ]
