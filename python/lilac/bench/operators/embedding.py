"""Rows chosen by indices: embedding, its gradient, and products of a vector with chosen matrices."""

import triton
import triton.language as tl

from ..case import DATA_TYPES, Buffer, Case, Launch, within


@triton.jit
def embedding(indices, table, out, columns, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    row = tl.load(indices + token).to(tl.int64)
    tl.store(out + token * columns + offsets, tl.load(table + row * columns + offsets, mask=mask), mask=mask)


@triton.jit
def embedding_tile(indices, table, out, tokens, columns, TOKENS: tl.constexpr, BLOCK: tl.constexpr):
    """Short rows: several tokens a program."""
    token = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    column = tl.arange(0, BLOCK)
    mask = (token < tokens)[:, None] & (column < columns)[None, :]
    row = tl.load(indices + token, mask=token < tokens, other=0).to(tl.int64)
    value = tl.load(table + row[:, None] * columns + column[None, :], mask=mask)
    tl.store(out + token.to(tl.int64)[:, None] * columns + column[None, :], value, mask=mask)


@triton.jit
def embedding_backward(indices, dout, dtable, columns, BLOCK: tl.constexpr):
    """Tokens that share a row add to it in any order."""
    token = tl.program_id(0).to(tl.int64)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    row = tl.load(indices + token).to(tl.int64)
    gradient = tl.load(dout + token * columns + offsets, mask=mask, other=0.0)
    tl.atomic_add(dtable + row * columns + offsets, gradient.to(dtable.dtype.element_ty), mask=mask,
                  sem="relaxed")


@triton.jit
def gather_gemv(chosen, weights, x, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """out[i] = weights[chosen[i]] x: decoding one token with a mixture of experts."""
    choice = tl.program_id(1)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    expert = tl.load(chosen + choice).to(tl.int64)
    weights += expert * rows * columns
    total = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        mask = (row < rows)[:, None] & (column < columns)[None, :]
        w = tl.load(weights + row[:, None] * columns + column[None, :], mask=mask, other=0.0,
                    eviction_policy="evict_first")
        v = tl.load(x + column, mask=column < columns, other=0.0).to(tl.float32)
        total += w.to(tl.float32) * v[None, :]
    result = tl.sum(total, axis=1)
    tl.store(out + choice * rows + row, result.to(out.dtype.element_ty), mask=row < rows)


def distinct(rows, tokens):
    """How many different rows that many tokens choose, on average."""
    return round(rows * (1 - (1 - 1 / rows) ** tokens))


def looked_up(a):
    return a.table[a.indices]


def embedding_case(dtype, rows, columns, tokens, index_dtype="i64", block=1024, num_warps=4):
    launch = Launch(embedding, (tokens, triton.cdiv(columns, block)),
                    [Buffer(tokens, index_dtype, ("integers", 0, rows)), Buffer((rows, columns), dtype),
                     Buffer((tokens, columns), dtype, output=True), columns],
                    BLOCK=block, num_warps=num_warps)
    # A row that several tokens share need be read once.
    moved = (tokens + distinct(rows, tokens)) * columns * DATA_TYPES[dtype].bytes
    return Case(f"embedding_{dtype}_{tokens}_of_{rows}x{columns}", "embedding", launch, looked_up,
                bytes=moved + tokens * DATA_TYPES[index_dtype].bytes)


def embedding_tile_case(dtype, rows, columns, tokens, tokens_a_program=32, num_warps=4):
    launch = Launch(embedding_tile, triton.cdiv(tokens, tokens_a_program),
                    [Buffer(tokens, "i32", ("integers", 0, rows)), Buffer((rows, columns), dtype),
                     Buffer((tokens, columns), dtype, output=True), tokens, columns],
                    TOKENS=tokens_a_program, BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    moved = (tokens + distinct(rows, tokens)) * columns * DATA_TYPES[dtype].bytes
    return Case(f"embedding_tile_{dtype}_{tokens}_of_{rows}x{columns}", "embedding", launch, looked_up,
                bytes=moved + 4 * tokens)


def embedding_backward_case(dtype, rows, columns, tokens, block=1024, num_warps=4):
    def reference(a):
        return a.dtable.index_add(0, a.indices, a.dout)

    launch = Launch(embedding_backward, (tokens, triton.cdiv(columns, block)),
                    [Buffer(tokens, "i64", ("integers", 0, rows)), Buffer((tokens, columns), dtype),
                     Buffer((rows, columns), "f32", "zeros", output=True), columns],
                    BLOCK=block, num_warps=num_warps)
    moved = tokens * columns * DATA_TYPES[dtype].bytes + 2 * distinct(rows, tokens) * columns * 4
    return Case(f"embedding_backward_{dtype}_{tokens}_of_{rows}x{columns}", "embedding backward", launch,
                reference, bytes=moved + 8 * tokens, operations=tokens * columns,
                tolerance=within("f32", 32))


def gather_gemv_case(dtype, experts, rows, columns, tile=(4, 512), num_warps=4):
    def choose(torch, generator, device):
        return torch.randperm(experts, generator=generator, device=device)[:2]

    launch = Launch(gather_gemv, (triton.cdiv(rows, tile[0]), 2),
                    [Buffer(2, "i64", choose), Buffer((experts, rows, columns), dtype),
                     Buffer(columns, "bf16"), Buffer((2, rows), "bf16", output=True), rows, columns],
                    ROWS=tile[0], BLOCK=tile[1], num_warps=num_warps)
    moved = 2 * rows * columns * DATA_TYPES[dtype].bytes + 2 * columns + 4 * rows
    return Case(f"gather_gemv_{dtype}_2_of_{experts}x{rows}x{columns}", "gather-gemv", launch,
                lambda a: a.weights[a.chosen].double() @ a.x, bytes=moved,
                operations=4 * rows * columns, tolerance=within("bf16", 256))


def cases():
    return [
        embedding_case("f32", 50257, 1024, 32768),
        embedding_case("bf16", 32000, 4096, 16384, index_dtype="i32", block=4096, num_warps=8),
        embedding_case("f16", 128256, 5120, 8192, block=2048),
        embedding_tile_case("f32", 1_000_000, 64, 262144),
        embedding_tile_case("f16", 500_000, 100, 400_000),
        embedding_backward_case("f32", 50257, 1024, 16384),
        embedding_backward_case("bf16", 32000, 2048, 16384, block=2048, num_warps=8),
        gather_gemv_case("i8", 8, 8192, 8192),
        gather_gemv_case("bf16", 8, 4096, 14336, tile=(8, 256)),
        gather_gemv_case("f16", 16, 6144, 5120, tile=(1, 2048)),
    ]
