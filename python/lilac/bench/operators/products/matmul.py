"""Matrix products: types, layouts, shapes and tiles, and shapes that no tile divides.

    C = A B     a tile of C for each program, the tiles in groups of rows; A is M × K, B is K × N
"""

import triton
import triton.language as tl

from ...case import Buffer, Case, Launch
from .libraries import product
from .operands import KINDS, matrix, multiplied, operand, strides, tile_of, tiles


@triton.jit
def matmul(a, b, c, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, BM: tl.constexpr,
           BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, EVEN: tl.constexpr, PRECISION: tl.constexpr,
           ACCUMULATOR: tl.constexpr):
    """EVEN: the tiles cover K exactly. Rows and columns outside wrap around and are not stored."""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, GROUP)
    rows = (row * BM + tl.arange(0, BM)) % M
    columns = (column * BN + tl.arange(0, BN)) % N
    depth = tl.arange(0, BK)
    a_at = a + rows[:, None] * stride_am + depth[None, :] * stride_ak
    b_at = b + depth[:, None] * stride_bk + columns[None, :] * stride_bn
    total = tl.zeros((BM, BN), dtype=ACCUMULATOR)
    for k in range(0, tl.cdiv(K, BK)):
        if EVEN:
            left = tl.load(a_at)
            right = tl.load(b_at)
        else:
            left = tl.load(a_at, mask=depth[None, :] < K - k * BK, other=0.0)
            right = tl.load(b_at, mask=depth[:, None] < K - k * BK, other=0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION, out_dtype=ACCUMULATOR)
        a_at += BK * stride_ak
        b_at += BK * stride_bk
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    mask = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(c + rows[:, None] * stride_cm + columns[None, :], total.to(c.dtype.element_ty), mask=mask)


def reference(layout):
    """In doubles, which are exact for sums of products of bytes; PyTorch does not multiply integers on a GPU."""
    return lambda a: matrix(a.a.double(), layout[0]) @ matrix(a.b.double(), layout[1])


def usual_tile(kind):
    """Tile, warps and stages that people use for large products of this kind."""
    return {"f16": ((128, 256, 64), 8, 3), "bf16": ((128, 128, 64), 4, 4), "tf32": ((128, 128, 32), 8, 3),
            "f32": ((64, 64, 16), 8, 3), "f8e4m3": ((128, 256, 128), 8, 3), "f8e5m2": ((128, 128, 128), 4, 4),
            "i8": ((128, 256, 128), 8, 3)}[kind]


def matmul_launch(kind, layout, M, N, K, tile, num_warps, num_stages, out, group=8, even=None):
    """`even`: whether the kernel is told that the tiles cover K; by default where they do."""
    known = KINDS[kind]
    return Launch(matmul, tiles(M, N, tile),
                  [operand(kind, M, K, layout[0]), operand(kind, K, N, layout[1]),
                   Buffer((M, N), out, output=True), M, N, K, *strides(M, K, layout[0]),
                   *strides(K, N, layout[1]), N],
                  BM=tile[0], BN=tile[1], BK=tile[2], GROUP=group, EVEN=K % tile[2] == 0 if even is None else even,
                  PRECISION=known.precision, ACCUMULATOR=known.accumulator, num_warps=num_warps,
                  num_stages=num_stages)


def matmul_case(kind, layout, M, N, K, tile=None, num_warps=None, num_stages=None, out=None, family="matmul",
                group=8):
    usual, warps, stages = usual_tile(kind)
    tile, num_warps, num_stages = tile or usual, num_warps or warps, num_stages or stages
    known = KINDS[kind]
    out = out or known.out
    launch = matmul_launch(kind, layout, M, N, K, tile, num_warps, num_stages, out, group)
    title = f"matmul_{kind}" + (f"_to_{out}" if out != known.out else "")
    shown = "" if tile == usual else "_tile_" + "x".join(map(str, tile))
    return Case(f"{title}_{layout}_{M}x{N}x{K}{shown}", family, launch, reference(layout),
                operations=2 * M * N * K, unit=known.unit, tolerance=multiplied(kind, out, K),
                libraries=product(kind, out, layout))


def types():
    """Square products of every type and layout."""
    square = [("f16", "NN", 1024), ("f16", "NN", 2048), ("f16", "NN", 4096), ("f16", "NN", 8192),
              ("f16", "NT", 4096), ("f16", "TN", 4096), ("f16", "TT", 4096), ("bf16", "NT", 2048),
              ("bf16", "NT", 4096), ("bf16", "NT", 8192), ("bf16", "NN", 4096), ("bf16", "TN", 4096),
              ("bf16", "TT", 4096), ("tf32", "NN", 2048), ("tf32", "NN", 4096), ("tf32", "NT", 4096),
              ("tf32", "TN", 2048), ("tf32", "TT", 2048), ("f8e4m3", "NT", 2048), ("f8e4m3", "NT", 4096),
              ("f8e4m3", "NT", 8192), ("f8e5m2", "NT", 4096), ("f8e5m2", "NT", 8192), ("f8e4m3", "NN", 4096),
              ("i8", "NT", 4096), ("i8", "NT", 8192), ("i8", "NN", 4096), ("i8", "TN", 4096), ("f32", "NN", 1024),
              ("f32", "NT", 1024), ("f32", "NN", 2048)]
    return [matmul_case(kind, layout, n, n, n) for kind, layout, n in square] + [
        matmul_case("f16", "NN", 4096, 4096, 4096, out="f32"),
        matmul_case("bf16", "NT", 4096, 4096, 4096, out="f32")]


def linear_layers():
    """Linear layers of language models, y = x Wᵀ, for 4096 tokens: a model of 8 billion parameters, one of 70 on
    eight GPUs."""
    return [matmul_case("bf16", "NT", 4096, N, K, tile=(128, 256, 64), num_warps=8, num_stages=3, family="linear")
            for N, K in ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336),
                         (1280, 8192), (8192, 1024), (7168, 8192), (8192, 3584))]


def long_shapes():
    """One or two dimensions much longer than the others."""
    shapes = [("f16", "NN", 65536, 512, 512), ("f16", "NN", 512, 65536, 512), ("bf16", "NT", 131072, 256, 256),
              ("f16", "TN", 512, 512, 65536), ("bf16", "NN", 32768, 64, 1024), ("f16", "NT", 16384, 1024, 64)]
    return [matmul_case(*shape, tile=(128, min(shape[3], 128), 64), num_warps=4, num_stages=3, family="long matmul")
            for shape in shapes]


def skinny_shapes():
    """Few rows, as in decoding: the time is that of reading B."""
    small = [matmul_case("bf16", "NT", M, 14336, 4096, tile=(max(M, 16), 64, 128), num_warps=4, num_stages=4,
                         family="skinny matmul") for M in (1, 4, 8, 16, 32, 64, 128)]
    return small + [
        matmul_case("f16", "NN", 16, 16384, 8192, tile=(16, 128, 64), num_warps=4, num_stages=4,
                    family="skinny matmul"),
        matmul_case("f16", "NN", 64, 8192, 8192, tile=(64, 64, 64), num_warps=4, num_stages=5,
                    family="skinny matmul"),
        matmul_case("f8e4m3", "NT", 16, 16384, 8192, tile=(16, 64, 256), num_warps=4, num_stages=4,
                    family="skinny matmul"),
        matmul_case("f8e4m3", "NT", 64, 16384, 8192, tile=(64, 128, 128), num_warps=4, num_stages=4,
                    family="skinny matmul"),
        matmul_case("i8", "NT", 32, 16384, 8192, tile=(32, 64, 256), num_warps=4, num_stages=3,
                    family="skinny matmul")]


def odd_shapes():
    """Shapes that the tiles do not divide, some with rows that are not aligned."""
    shapes = [("f16", "NN", 1000, 1000, 1000), ("f16", "NN", 4095, 4097, 4093), ("bf16", "NT", 3000, 5000, 2047),
              ("bf16", "NN", 2047, 2049, 4096), ("tf32", "NN", 1023, 1025, 777), ("tf32", "NN", 2000, 3000, 1000),
              ("f8e4m3", "NT", 2050, 4100, 1040), ("i8", "NT", 1000, 3000, 2000)]
    return [matmul_case(*shape, tile=(128, 128, 32 if shape[0] == "tf32" else 64), num_warps=8, num_stages=3,
                        family="odd matmul") for shape in shapes]


def other_tiles():
    """One product with several tiles."""
    tiled = [((64, 64, 32), 4, 4), ((128, 64, 64), 4, 4), ((64, 256, 64), 4, 3), ((256, 128, 64), 8, 3),
             ((128, 128, 128), 8, 2), ((128, 128, 32), 4, 5), ((64, 128, 64), 8, 4), ((128, 128, 64), 8, 1)]
    return [matmul_case("f16", "NN", 4096, 4096, 4096, tile=tile, num_warps=warps, num_stages=stages,
                        family="tiles of matmul") for tile, warps, stages in tiled]


def cases():
    return types() + linear_layers() + long_shapes() + skinny_shapes() + odd_shapes() + other_tiles()


def small():
    made = [matmul_case(kind, layout, 64, 64, 64, tile=(32, 64, 32), num_warps=4)
            for kind in ("f16", "bf16", "f8e4m3", "f8e5m2", "i8") for layout in ("NN", "NT")]
    return made + [
        matmul_case("tf32", "NN", 64, 64, 32, tile=(32, 32, 16)),
        matmul_case("f32", "TN", 32, 32, 32, tile=(32, 32, 16)),
        matmul_case("f16", "TT", 64, 128, 64, tile=(64, 128, 32), num_warps=4),
        matmul_case("f16", "TN", 75, 50, 41, tile=(32, 32, 16)),
        matmul_case("bf16", "NT", 1, 70, 65, tile=(16, 32, 32))]
