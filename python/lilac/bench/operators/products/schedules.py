"""The same products, divided among programs in other ways: persistent programs, K split among programs with atomic
sums, stream-K, batches, batches within a program."""

import triton
import triton.language as tl

from ...case import Buffer, Case, Launch
from .libraries import batched, product
from .operands import KINDS, matrix, multiplied, operand, strides, tile_of, tiles

PROCESSORS = 132  # of an H200


@triton.jit
def persistent_matmul(a, b, c, M, N, K, stride_bk, stride_bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                      PROGRAMS: tl.constexpr):
    """One program for each multiprocessor; each computes every PROGRAMS-th tile."""
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), PROGRAMS):
        row, column = tile_of(tile, M, N, BM, BN, 8)
        rows = row * BM + tl.arange(0, BM)
        columns = column * BN + tl.arange(0, BN)
        depth = tl.arange(0, BK)
        a_rows = tl.max_contiguous(tl.multiple_of(rows % M, BM), BM)
        b_columns = tl.max_contiguous(tl.multiple_of(columns % N, BN), BN)
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            at = k * BK + depth
            left = tl.load(a + a_rows[:, None] * K + at[None, :], mask=at[None, :] < K, other=0.0)
            right = tl.load(b + at[:, None] * stride_bk + b_columns[None, :] * stride_bn, mask=at[:, None] < K,
                            other=0.0)
            total = tl.dot(left, right, total)
        mask = (rows < M)[:, None] & (columns < N)[None, :]
        tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty), mask=mask)


def persistent_case(kind, layout, M, N, K, tile=(128, 256, 64), num_warps=8, num_stages=3, programs=PROCESSORS):
    programs = min(programs, tiles(M, N, tile))
    launch = Launch(persistent_matmul, programs,
                    [operand(kind, M, K), operand(kind, K, N, layout), Buffer((M, N), KINDS[kind].out, output=True),
                     M, N, K, *strides(K, N, layout)],
                    BM=tile[0], BN=tile[1], BK=tile[2], PROGRAMS=programs, num_warps=num_warps, num_stages=num_stages)
    return Case(f"persistent_matmul_{kind}_N{layout}_{M}x{N}x{K}", "persistent matmul", launch,
                lambda a: a.a @ matrix(a.b, layout), operations=2 * M * N * K, unit=KINDS[kind].unit,
                tolerance=multiplied(kind, KINDS[kind].out, K), libraries=product(kind, KINDS[kind].out, "N" + layout))


@triton.jit
def split_matmul(a, b, c, M, N, K, stride_bk, stride_bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                 SPLIT: tl.constexpr):
    """SPLIT programs for each tile; each adds its part of K to C, which is zero before a checked launch. (Timed
    launches add to the last one's sums.)"""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    part = tl.program_id(1)
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    depth = part * BK + tl.arange(0, BK)
    a_at = a + (rows % M)[:, None] * K + depth[None, :]
    b_at = b + depth[:, None] * stride_bk + (columns % N)[None, :] * stride_bn
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK * SPLIT)):
        left = K - k * BK * SPLIT
        total = tl.dot(tl.load(a_at, mask=depth[None, :] < left, other=0.0),
                       tl.load(b_at, mask=depth[:, None] < left, other=0.0), total)
        a_at += BK * SPLIT
        b_at += BK * SPLIT * stride_bk
    mask = (rows < M)[:, None] & (columns < N)[None, :]
    tl.atomic_add(c + rows[:, None] * N + columns[None, :], total, mask=mask, sem="relaxed")


def split_case(kind, layout, M, N, K, split, tile=(64, 64, 64), num_warps=4, num_stages=4):
    launch = Launch(split_matmul, (tiles(M, N, tile), split),
                    [operand(kind, M, K), operand(kind, K, N, layout), Buffer((M, N), "f32", "zeros", output=True),
                     M, N, K, *strides(K, N, layout)],
                    BM=tile[0], BN=tile[1], BK=tile[2], SPLIT=split, num_warps=num_warps, num_stages=num_stages)
    return Case(f"split_matmul_{kind}_N{layout}_{M}x{N}x{K}_by_{split}", "split-K matmul", launch,
                lambda a: a.a @ matrix(a.b, layout), operations=2 * M * N * K, unit=KINDS[kind].unit,
                tolerance=multiplied(kind, "f32", K), libraries=product(kind, "f32", "N" + layout))


@triton.jit
def stream_matmul(a, b, c, M, N, K, per_program, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Stream-K: the steps of all tiles, one tile's after the other's, are divided evenly among the programs, so a
    program may finish one tile, compute others and begin another. Parts of tiles are added to C, as above."""
    steps = tl.cdiv(K, BK)
    all_steps = tl.cdiv(M, BM) * tl.cdiv(N, BN) * steps
    step = tl.program_id(0) * per_program
    last = tl.minimum(step + per_program, all_steps)
    depth = tl.arange(0, BK)
    while step < last:
        tile = step // steps
        first = step % steps
        end = tl.minimum(first + last - step, steps)
        row, column = tile_of(tile, M, N, BM, BN, 8)
        rows = row * BM + tl.arange(0, BM)
        columns = column * BN + tl.arange(0, BN)
        a_at = a + (rows % M)[:, None] * K + (first * BK + depth)[None, :]
        b_at = b + (first * BK + depth)[:, None] * N + (columns % N)[None, :]
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(first, end):
            left = tl.load(a_at, mask=depth[None, :] < K - k * BK, other=0.0)
            right = tl.load(b_at, mask=depth[:, None] < K - k * BK, other=0.0)
            total = tl.dot(left, right, total)
            a_at += BK
            b_at += BK * N
        mask = (rows < M)[:, None] & (columns < N)[None, :]
        at = c + rows[:, None] * N + columns[None, :]
        if end - first == steps:
            tl.store(at, total, mask=mask)
        else:
            tl.atomic_add(at, total, mask=mask, sem="relaxed")
        step += end - first


def stream_case(kind, M, N, K, tile=(128, 128, 64), num_warps=8, num_stages=3, programs=PROCESSORS):
    steps = tiles(M, N, tile) * triton.cdiv(K, tile[2])
    launch = Launch(stream_matmul, programs,
                    [operand(kind, M, K), operand(kind, K, N), Buffer((M, N), "f32", "zeros", output=True), M, N, K,
                     triton.cdiv(steps, programs)],
                    BM=tile[0], BN=tile[1], BK=tile[2], num_warps=num_warps, num_stages=num_stages)
    return Case(f"stream_matmul_{kind}_{M}x{N}x{K}", "stream-K matmul", launch, lambda a: a.a @ a.b,
                operations=2 * M * N * K, unit=KINDS[kind].unit, tolerance=multiplied(kind, "f32", K),
                libraries=product(kind, "f32", "NN"))


@triton.jit
def batched_matmul(a, b, c, M, N, K, batch_a, batch_b, stride_bk, stride_bn, BM: tl.constexpr, BN: tl.constexpr,
                   BK: tl.constexpr):
    batch = tl.program_id(1).to(tl.int64)
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_at = a + batch * batch_a + (rows % M)[:, None] * K + depth[None, :]
    b_at = b + batch * batch_b + depth[:, None] * stride_bk + (columns % N)[None, :] * stride_bn
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = tl.load(a_at, mask=depth[None, :] < K - k * BK, other=0.0)
        right = tl.load(b_at, mask=depth[:, None] < K - k * BK, other=0.0)
        total = tl.dot(left, right, total)
        a_at += BK
        b_at += BK * stride_bk
    mask = (rows < M)[:, None] & (columns < N)[None, :]
    at = c + batch * M * N + rows[:, None] * N + columns[None, :]
    tl.store(at, total.to(c.dtype.element_ty), mask=mask)


def batched_case(kind, layout, batch, M, N, K, tile=(128, 128, 64), num_warps=8, num_stages=3, shared=False):
    """shared: one B for all."""
    launch = Launch(batched_matmul, (tiles(M, N, tile), batch),
                    [operand(kind, M, K, batch=(batch,)), operand(kind, K, N, layout, batch=() if shared else (batch,)),
                     Buffer((batch, M, N), KINDS[kind].out, output=True), M, N, K, M * K, 0 if shared else K * N,
                     *strides(K, N, layout)],
                    BM=tile[0], BN=tile[1], BK=tile[2], num_warps=num_warps, num_stages=num_stages)
    return Case(f"batched_matmul_{kind}_N{layout}_{batch}x{M}x{N}x{K}" + ("_shared" if shared else ""),
                "batched matmul",
                launch, lambda a: a.a @ matrix(a.b, layout), operations=2 * batch * M * N * K, unit=KINDS[kind].unit,
                tolerance=multiplied(kind, KINDS[kind].out, K), libraries=batched(kind, layout, shared))


@triton.jit
def stacked_matmul(a, b, c, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """B whole matrices in a program, as one product of three-dimensional tensors."""
    batch = tl.program_id(0) * B + tl.arange(0, B)[:, None, None]
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    left = tl.load(a + batch * M * K + m[None, :, None] * K + k[None, None, :])
    right = tl.load(b + batch * K * N + k[None, :, None] * N + n[None, None, :])
    result = tl.dot(left, right)
    tl.store(c + batch * M * N + m[None, :, None] * N + n[None, None, :], result.to(c.dtype.element_ty))


def stacked_case(kind, batch, B, M, N, K, num_warps=4):
    launch = Launch(stacked_matmul, batch // B,
                    [operand(kind, M, K, batch=(batch,)), operand(kind, K, N, batch=(batch,)),
                     Buffer((batch, M, N), KINDS[kind].out, output=True)], B=B, M=M, N=N, K=K, num_warps=num_warps)
    return Case(f"stacked_matmul_{kind}_{batch}x{M}x{N}x{K}", "batched matmul", launch, lambda a: a.a @ a.b,
                operations=2 * batch * M * N * K, unit=KINDS[kind].unit, tolerance=multiplied(kind, KINDS[kind].out, K),
                libraries=batched(kind))


def cases():
    return [
        persistent_case("f16", "N", 4096, 4096, 4096),
        persistent_case("f16", "N", 8192, 8192, 8192),
        persistent_case("bf16", "T", 8192, 8192, 4096, tile=(128, 128, 64), num_warps=4, num_stages=4),
        persistent_case("f8e4m3", "T", 8192, 8192, 8192, tile=(128, 256, 128)),
        persistent_case("f16", "T", 5000, 3000, 2000, tile=(128, 128, 64)),
        split_case("f16", "N", 16, 4096, 4096, 8, tile=(16, 64, 128)),
        split_case("bf16", "T", 16, 14336, 4096, 4, tile=(16, 128, 64)),
        split_case("f16", "N", 256, 256, 65536, 32),
        split_case("bf16", "T", 512, 1024, 16384, 8, tile=(128, 128, 64), num_warps=8, num_stages=3),
        split_case("f16", "N", 1000, 500, 10000, 4),
        split_case("f8e4m3", "T", 64, 4096, 16384, 8, tile=(64, 64, 128)),
        stream_case("f16", 4096, 4096, 4096),
        stream_case("bf16", 1536, 1536, 8192),
        stream_case("f16", 3000, 2000, 5000),
        batched_case("f16", "N", 64, 1024, 1024, 1024),
        batched_case("bf16", "T", 512, 512, 512, 64, num_stages=1),
        batched_case("f16", "N", 512, 512, 64, 512, tile=(128, 64, 64), num_warps=4),
        batched_case("bf16", "N", 32, 2048, 1024, 2048, shared=True),
        batched_case("f16", "T", 128, 300, 500, 200, tile=(64, 64, 32), num_warps=4, num_stages=4),
        batched_case("tf32", "N", 64, 512, 512, 512, tile=(128, 64, 32)),
        stacked_case("f16", 65536, 4, 32, 32, 32),
        stacked_case("bf16", 16384, 2, 64, 64, 64),
        stacked_case("tf32", 32768, 8, 16, 32, 16),
    ]


def small():
    tile = {"tile": (32, 32, 32), "num_warps": 4}
    return [
        persistent_case("f16", "N", 96, 80, 64, programs=3, **tile),
        persistent_case("f8e4m3", "T", 64, 64, 50, programs=2, **tile),
        split_case("f16", "N", 40, 64, 200, 3, **tile), split_case("bf16", "T", 16, 64, 128, 2, tile=(16, 64, 32)),
        stream_case("f16", 96, 70, 100, programs=5, **tile), batched_case("f16", "N", 3, 40, 50, 70, **tile),
        batched_case("bf16", "T", 2, 64, 32, 64, shared=True, **tile), stacked_case("f16", 8, 4, 32, 16, 32),
        stacked_case("tf32", 16, 8, 16, 16, 16)]
