"""Products of quantised matrices: weights of 4, 8 and 16 bits and activations in floating point; 8-bit floats and
integers with scales of rows, columns and blocks; activations that the kernel itself quantises."""

import triton
import triton.language as tl

from ...case import Buffer, Case, Launch, ROUNDING
from . import libraries
from .operands import KINDS, multiplied, operand, tile_of, tiles


@triton.jit
def weight_only(x, weight, scales, y, M, N, K, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                BK: tl.constexpr, COLUMNS: tl.constexpr):
    """x · (scale · weight); the weights are converted to the type of x. A scale for each column (GROUP = 0), applied
    to the sum, or for each GROUP weights of a column, applied to the weights. COLUMNS: the weights of a column of W
    are contiguous."""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        at = k + depth
        left = tl.load(x + rows[:, None] * K + at[None, :], mask=(rows < M)[:, None], other=0.0)
        if COLUMNS:
            stored = tl.load(weight + columns[None, :] * K + at[:, None])
        else:
            stored = tl.load(weight + at[:, None] * N + columns[None, :])
        right = stored.to(left.dtype)
        if GROUP > 0:
            right = right * tl.load(scales + (k // GROUP) * N + columns)[None, :]
        total = tl.dot(left, right, total)
    if GROUP == 0:
        total *= tl.load(scales + columns).to(tl.float32)[None, :]
    mask = (rows < M)[:, None]
    tl.store(y + rows[:, None] * N + columns[None, :], total.to(y.dtype.element_ty), mask=mask)


def weight_only_case(kind, stored, layout, M, N, K, group=0, tile=(64, 128, 64), num_warps=4, num_stages=3):
    dtype = KINDS[kind].dtype
    launch = Launch(weight_only, tiles(M, N, tile),
                    [operand(kind, M, K), Buffer((K, N) if layout == "N" else (N, K), stored, small_integers(stored)),
                     Buffer((K // group, N) if group else N, dtype, "uniform"), Buffer((M, N), dtype, output=True),
                     M, N, K],
                    GROUP=group, BM=tile[0], BN=tile[1], BK=tile[2], COLUMNS=layout == "T", num_warps=num_warps,
                    num_stages=num_stages)

    def reference(a):
        weight = (a.weight if layout == "N" else a.weight.T).double()
        return a.x @ (weight * a.scales.repeat_interleave(group, 0)) if group else (a.x @ weight) * a.scales

    return Case(f"matmul_{kind}_{stored}_weights_{layout}_{M}x{N}x{K}" + (f"_groups_of_{group}" if group else ""),
                "weight-only", launch, reference, operations=2 * M * N * K, unit=KINDS[kind].unit,
                tolerance=multiplied(kind, dtype, K) + (8 * ROUNDING[dtype] if group else 0))


def small_integers(dtype):
    """16-bit weights that bfloat16 holds: of 8 bits."""
    return ("integers", -128, 128) if dtype.startswith("i") else None


@triton.jit
def int4_weight_only(x, weight, scales, y, M, N, K, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                     BK: tl.constexpr):
    """Weights of 4 bits with signs, two in a byte: of the rows 2 i (the low half) and 2 i + 1 of W. A scale for each
    GROUP weights of a column, or none."""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    half = tl.arange(0, BK // 2)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(x + rows[:, None] * K + (k + depth)[None, :], mask=(rows < M)[:, None], other=0.0)
        packed = tl.load(weight + (k // 2 + half)[:, None] * N + columns[None, :])
        low = ((packed << 4) >> 4).to(left.dtype)
        high = (packed >> 4).to(left.dtype)
        right = tl.join(low, high).permute(0, 2, 1).reshape(BK, BN)
        if GROUP > 0:
            right = right * tl.load(scales + (k // GROUP) * N + columns)[None, :]
        total = tl.dot(left, right, total)
    tl.store(y + rows[:, None] * N + columns[None, :], total.to(y.dtype.element_ty), mask=(rows < M)[:, None])


def int4_case(kind, M, N, K, group=0, tile=(64, 128, 64), num_warps=4, num_stages=3):
    dtype = KINDS[kind].dtype
    launch = Launch(int4_weight_only, tiles(M, N, tile),
                    [operand(kind, M, K), Buffer((K // 2, N), "i8"),
                     Buffer((K // group, N) if group else 16, dtype, "uniform"),
                     Buffer((M, N), dtype, output=True), M, N, K],
                    GROUP=group, BM=tile[0], BN=tile[1], BK=tile[2], num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        import torch

        low, high = (a.weight % 16 + 8) % 16 - 8, a.weight // 16
        weight = torch.stack([low, high], 1).reshape(K, N).double()
        return a.x @ (weight * a.scales.repeat_interleave(group, 0) if group else weight)

    return Case(f"matmul_{kind}_int4_weights_{M}x{N}x{K}" + (f"_groups_of_{group}" if group else ""), "int4 weights",
                launch, reference, operations=2 * M * N * K, unit=KINDS[kind].unit,
                tolerance=multiplied(kind, dtype, K) + (8 * ROUNDING[dtype] if group else 0))


@triton.jit
def scaled_matmul(a, b, scale_a, scale_b, bias, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                  ROWS: tl.constexpr, BIAS: tl.constexpr, ACCUMULATOR: tl.constexpr):
    """A Bᵀ with a scale for each row of A and each row of B (ROWS), or one for each matrix."""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_at = a + (rows % M)[:, None] * K + depth[None, :]
    b_at = b + (columns % N)[None, :] * K + depth[:, None]
    total = tl.zeros((BM, BN), dtype=ACCUMULATOR)
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(a_at), tl.load(b_at), total, out_dtype=ACCUMULATOR)
        a_at += BK
        b_at += BK
    if ROWS:
        left = tl.load(scale_a + rows, mask=rows < M, other=0.0)
        right = tl.load(scale_b + columns, mask=columns < N, other=0.0)
        result = total.to(tl.float32) * left[:, None] * right[None, :]
    else:
        result = total.to(tl.float32) * (tl.load(scale_a) * tl.load(scale_b))
    if BIAS:
        result += tl.load(bias + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]
    mask = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(c + rows[:, None] * N + columns[None, :], result.to(c.dtype.element_ty), mask=mask)


def scaled_case(kind, M, N, K, rows=True, bias=False, tile=(128, 128, 128), num_warps=8, num_stages=3):
    known = KINDS[kind]
    launch = Launch(scaled_matmul, tiles(M, N, tile),
                    [operand(kind, M, K), operand(kind, K, N, "T"), Buffer(M if rows else 1, "f32", "uniform"),
                     Buffer(N if rows else 1, "f32", "uniform"), Buffer(N, "bf16"), Buffer((M, N), "bf16", output=True),
                     M, N, K],
                    BM=tile[0], BN=tile[1], BK=tile[2], ROWS=rows, BIAS=bias, ACCUMULATOR=known.accumulator,
                    num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        product = a.a.double() @ a.b.T.double()
        result = product * (a.scale_a[:, None] * a.scale_b[None, :] if rows else a.scale_a * a.scale_b)
        return result + a.bias if bias else result

    return Case(f"scaled_matmul_{kind}_{'rows' if rows else 'whole'}_{M}x{N}x{K}", "scaled matmul", launch, reference,
                operations=2 * M * N * K, unit=known.unit, tolerance=multiplied(kind, "bf16", K),
                libraries=() if bias else libraries.scaled(kind, rows))


@triton.jit
def block_scaled_matmul(a, b, scale_a, scale_b, c, M, N, K, BLOCK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                        BK: tl.constexpr):
    """A Bᵀ with a scale for each BLOCK numbers of a row of A and each BLOCK × BLOCK numbers of B. The sum of each
    block is scaled and added in f32."""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_at = a + (rows % M)[:, None] * K + depth[None, :]
    b_at = b + (columns % N)[None, :] * K + depth[:, None]
    blocks = K // BLOCK
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        block = k * BK // BLOCK
        left = tl.load(scale_a + (rows % M) * blocks + block)
        right = tl.load(scale_b + (columns % N) // BLOCK * blocks + block)
        total += tl.dot(tl.load(a_at), tl.load(b_at)) * left[:, None] * right[None, :]
        a_at += BK
        b_at += BK
    mask = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty), mask=mask)


def block_scaled_case(kind, M, N, K, block=128, tile=(64, 128, 128), num_warps=4, num_stages=3):
    known = KINDS[kind]
    launch = Launch(block_scaled_matmul, tiles(M, N, tile),
                    [operand(kind, M, K), operand(kind, K, N, "T"), Buffer((M, K // block), "f32", "uniform"),
                     Buffer((triton.cdiv(N, block), K // block), "f32", "uniform"), Buffer((M, N), "bf16", output=True),
                     M, N, K],
                    BLOCK=block, BM=tile[0], BN=tile[1], BK=tile[2], num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        left = a.a * a.scale_a.repeat_interleave(block, 1)
        scales = a.scale_b.repeat_interleave(block, 0)[:N].repeat_interleave(block, 1)
        return left @ (a.b * scales).T

    return Case(f"block_scaled_matmul_{kind}_{M}x{N}x{K}", "scaled matmul", launch, reference,
                operations=2 * M * N * K, unit=known.unit, tolerance=multiplied(kind, "bf16", 2 * K))


@triton.jit
def quantizing_matmul(x, weight, scale_w, y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Rows of x are quantised to 8-bit floats here, by their largest magnitude, and multiplied with 8-bit weights."""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    x_at = x + rows[:, None] * K + depth[None, :]
    largest = tl.zeros((BM,), dtype=tl.float32)
    for k in range(0, K, BK):
        largest = tl.maximum(largest, tl.max(tl.abs(tl.load(x_at + k).to(tl.float32)), axis=1))
    largest = tl.maximum(largest, 1e-12)
    scale_x = tl.math.div_rn(tl.full((BM,), 448.0, tl.float32), largest)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = (tl.load(x_at + k).to(tl.float32) * scale_x[:, None]).to(tl.float8e4nv)
        right = tl.load(weight + columns[None, :] * K + (k + depth)[:, None])
        total = tl.dot(left, right, total)
    scale = (largest / 448.0)[:, None] * tl.load(scale_w + columns)[None, :]
    tl.store(y + rows[:, None] * N + columns[None, :], (total * scale).to(y.dtype.element_ty))


def quantizing_case(M, N, K, tile=(128, 128, 128), num_warps=8, num_stages=3):
    launch = Launch(quantizing_matmul, tiles(M, N, tile),
                    [operand("bf16", M, K), operand("f8e4m3", K, N, "T"), Buffer(N, "f32", "uniform"),
                     Buffer((M, N), "bf16", output=True), M, N, K],
                    BM=tile[0], BN=tile[1], BK=tile[2], num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        import torch

        largest = a.x.abs().amax(1, keepdim=True)
        # In f32, each operation rounded to nearest, as in the kernel: the 8-bit floats are the same. (448 / tensor is a
        # reciprocal and a product in PyTorch. Numbers in the middle between two 8-bit floats are common: where the
        # largest is a multiple of 7.)
        scaled = a.x.float() * (torch.full_like(largest, 448).float() / largest.float())
        return (scaled.to(torch.float8_e4m3fn).double() @ a.weight.T) * (largest / 448) * a.scale_w

    return Case(f"quantizing_matmul_{M}x{N}x{K}", "scaled matmul", launch, reference, operations=2 * M * N * K,
                unit="f8",
                tolerance=multiplied("f8e4m3", "bf16", K))


def cases():
    return [
        weight_only_case("bf16", "i8", "N", 16, 14336, 4096, tile=(16, 128, 64)),
        weight_only_case("bf16", "i8", "T", 64, 14336, 4096, tile=(64, 64, 128)),
        weight_only_case("f16", "i8", "T", 4096, 4096, 4096, tile=(128, 128, 64), num_warps=8),
        weight_only_case("f16", "i8", "N", 2048, 8192, 4096, group=128, tile=(128, 128, 64), num_warps=8),
        weight_only_case("bf16", "i16", "N", 2048, 4096, 4096, tile=(128, 128, 64), num_warps=8),
        weight_only_case("bf16", "i16", "T", 16, 8192, 8192, tile=(16, 64, 128)),
        weight_only_case("bf16", "f8e4m3", "T", 64, 14336, 4096, tile=(64, 64, 128)),
        weight_only_case("f16", "f8e5m2", "T", 4096, 4096, 4096, tile=(128, 128, 64), num_warps=8),
        int4_case("bf16", 16, 14336, 4096, tile=(16, 128, 64)),
        int4_case("bf16", 1, 11008, 4096, tile=(16, 64, 128)),
        int4_case("bf16", 64, 8192, 8192, tile=(64, 64, 128)),
        int4_case("bf16", 4096, 4096, 4096, tile=(128, 128, 64), num_warps=8),
        int4_case("f16", 4096, 11008, 4096, group=128, tile=(128, 128, 64), num_warps=8),
        int4_case("f16", 32, 14336, 4096, group=128, tile=(32, 64, 128)),
        int4_case("bf16", 256, 4096, 14336, group=64, tile=(64, 128, 64)),
        scaled_case("f8e4m3", 4096, 4096, 4096),
        scaled_case("f8e4m3", 2048, 14336, 4096, tile=(128, 256, 128)),
        scaled_case("f8e4m3", 16, 8192, 8192, tile=(16, 64, 256), num_warps=4),
        scaled_case("f8e4m3", 8192, 8192, 8192, rows=False, tile=(128, 256, 128)),
        scaled_case("f8e5m2", 2048, 4096, 8192, rows=False),
        scaled_case("i8", 4096, 4096, 4096, bias=True),
        scaled_case("i8", 32, 14336, 4096, tile=(32, 64, 256), num_warps=4),
        block_scaled_case("f8e4m3", 4096, 7168, 2048, tile=(128, 128, 128), num_warps=8),
        block_scaled_case("f8e4m3", 1024, 4096, 7168),
        block_scaled_case("f8e4m3", 64, 24576, 1536),
        block_scaled_case("f8e4m3", 16, 7168, 16384, tile=(16, 128, 128)),
        quantizing_case(4096, 4096, 4096),
        quantizing_case(1024, 14336, 4096, tile=(64, 256, 128)),
    ]


def small():
    tile = {"tile": (32, 32, 32), "num_warps": 4}
    return [
        weight_only_case("bf16", "i8", "N", 20, 64, 64, **tile),
        weight_only_case("f16", "i8", "T", 32, 64, 64, group=32, **tile),
        weight_only_case("bf16", "i16", "T", 32, 32, 64, **tile),
        weight_only_case("bf16", "f8e4m3", "N", 32, 32, 64, **tile),
        weight_only_case("f16", "f8e5m2", "T", 32, 64, 64, **tile), int4_case("bf16", 20, 64, 64, **tile),
        int4_case("f16", 32, 32, 128, group=64, **tile), scaled_case("f8e4m3", 50, 40, 64, **tile),
        scaled_case("f8e5m2", 32, 32, 64, rows=False, **tile), scaled_case("i8", 50, 40, 64, bias=True, **tile),
        block_scaled_case("f8e4m3", 40, 80, 64, block=32, **tile), quantizing_case(32, 64, 64, **tile)]
