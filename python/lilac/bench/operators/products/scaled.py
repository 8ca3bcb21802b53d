"""Products of microscaled matrices (tl.dot_scaled): 32 numbers along K share a scale, a power of two. The numbers
are 8-bit floats, or 4-bit floats (e2m1) of which a byte holds two; the other operand may be f16 or bf16."""

import triton
import triton.language as tl

from ...case import Buffer, Case, Launch
from .operands import multiplied, tile_of, tiles

FORMATS = {"bf16": "bf16", "f16": "f16", "e4m3": "f8e4m3", "e5m2": "f8e5m2", "e2m1": "u8"}
SHARED = 32  # numbers of a scale
E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6)


@triton.jit
def scaled_product(a, scale_a, b, scale_b, c, M, N, K, FORMAT_A: tl.constexpr, FORMAT_B: tl.constexpr,
                   BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A is M × K, B is stored as N × K; bytes of e2m1 hold neighbours along K. f16 and bf16 have no scales."""
    PACK_A: tl.constexpr = 2 if FORMAT_A == "e2m1" else 1
    PACK_B: tl.constexpr = 2 if FORMAT_B == "e2m1" else 1
    SCALED_A: tl.constexpr = FORMAT_A != "bf16" and FORMAT_A != "fp16"
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    rows = (row * BM + tl.arange(0, BM)) % M
    columns = (column * BN + tl.arange(0, BN)) % N
    depth_a = tl.arange(0, BK // PACK_A)
    depth_b = tl.arange(0, BK // PACK_B)
    block = tl.arange(0, BK // 32)
    a_at = a + rows[:, None] * (K // PACK_A) + depth_a[None, :]
    b_at = b + columns[None, :] * (K // PACK_B) + depth_b[:, None]
    scale_a_at = scale_a + rows[:, None] * (K // 32) + block[None, :]
    scale_b_at = scale_b + columns[:, None] * (K // 32) + block[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        left = tl.load(a_at)
        right = tl.load(b_at)
        right_scale = tl.load(scale_b_at)
        if SCALED_A:
            total = tl.dot_scaled(left, tl.load(scale_a_at), FORMAT_A, right, right_scale, FORMAT_B, total)
            scale_a_at += BK // 32
        else:
            total = tl.dot_scaled(left, None, FORMAT_A, right, right_scale, FORMAT_B, total)
        a_at += BK // PACK_A
        b_at += BK // PACK_B
        scale_b_at += BK // 32
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    mask = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty), mask=mask)


def stored(form, rows, K):
    return Buffer((rows, K // 2 if form == "e2m1" else K), FORMATS[form])


def scales(form, rows, K):
    """Exponents of 2⁻³ to 2³."""
    return Buffer(16 if form in ("f16", "bf16") else (rows, K // SHARED), "u8", ("integers", 124, 131))


def numbers(tensor, form):
    if form != "e2m1":
        return tensor
    import torch

    values = torch.tensor([*E2M1, *(-value for value in E2M1)], dtype=torch.float64, device=tensor.device)
    return values[torch.stack([tensor % 16, tensor // 16], -1).flatten(1)]


def scaled(tensor, exponents, form):
    value = numbers(tensor, form)
    return value if form in ("f16",
                             "bf16") else value * (2.0 ** (exponents.double() - 127)).repeat_interleave(SHARED, 1)


def scaled_case(left, right, M, N, K, tile=(128, 128, 64), num_warps=8, num_stages=3):
    shown = {"f16": "fp16"}
    launch = Launch(scaled_product, tiles(M, N, tile),
                    [stored(left, M, K), scales(left, M, K), stored(right, N, K), scales(right, N, K),
                     Buffer((M, N), "bf16", output=True), M, N, K],
                    FORMAT_A=shown.get(left, left), FORMAT_B=shown.get(right, right), BM=tile[0], BN=tile[1],
                    BK=tile[2],
                    num_warps=num_warps, num_stages=num_stages)
    # The GPUs before sm_100 multiply what the formats hold as f16 or bf16.
    return Case(f"dot_scaled_{left}_{right}_{M}x{N}x{K}", "dot_scaled", launch,
                lambda a: scaled(a.a, a.scale_a, left) @ scaled(a.b, a.scale_b, right).T,
                operations=2 * M * N * K, unit="f16", tolerance=multiplied("bf16", "bf16", K))


def cases():
    return [
        scaled_case("bf16", "e2m1", 4096, 4096, 4096),
        scaled_case("bf16", "e2m1", 16, 14336, 4096, tile=(16, 64, 128), num_warps=4),
        scaled_case("bf16", "e2m1", 128, 8192, 8192, tile=(128, 64, 128)),
        scaled_case("f16", "e2m1", 4096, 4096, 4096),
        scaled_case("f16", "e2m1", 64, 8192, 8192, tile=(64, 64, 128), num_warps=4),
        scaled_case("bf16", "e4m3", 4096, 4096, 4096),
        scaled_case("f16", "e5m2", 2048, 4096, 4096),
        scaled_case("e4m3", "e2m1", 4096, 4096, 4096),
        scaled_case("e5m2", "e2m1", 2048, 4096, 4096),
        scaled_case("e4m3", "e4m3", 4096, 4096, 4096),
        scaled_case("e4m3", "e4m3", 8192, 8192, 8192),
        scaled_case("e5m2", "e4m3", 2048, 2048, 8192),
        scaled_case("e2m1", "e2m1", 4096, 4096, 4096),
    ]


def small():
    return [scaled_case(left, right, 40, 64, 128, tile=(32, 32, 64), num_warps=4)
            for left, right in (("bf16", "e2m1"), ("f16", "e2m1"), ("bf16", "e4m3"), ("f16", "e5m2"), ("e4m3", "e2m1"),
                                ("e5m2", "e2m1"), ("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e2m1", "e2m1"))]
