"""Matrix products and attention whose tiles are loaded and stored through tensor descriptors, those of the host and
those that the kernel makes."""

import triton
import triton.language as tl

from ...case import Buffer, Case, Launch
from .attention import LOG2E, attended, scores, seen_by
from . import libraries
from .operands import KINDS, matrix, multiplied, tile_of, tiles, together
from .schedules import PROCESSORS


def prefix(specialize):
    """Of the names of cases whose loops ask for warp specialisation."""
    return "ws_" if specialize else ""


@triton.jit
def described_matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TRANSPOSED: tl.constexpr,
                     SPECIALIZE: tl.constexpr):
    """Three descriptors of the host; TRANSPOSED: that of B is of N × K. SPECIALIZE: the loop asks for warps of its
    copies."""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=SPECIALIZE):
        left = a.load([row * BM, k])
        if TRANSPOSED:
            right = b.load([column * BN, k]).T
        else:
            right = b.load([k, column * BN])
        total = tl.dot(left, right, total)
    c.store([row * BM, column * BN], total.to(c.dtype))


def described_case(kind, layout, M, N, K, tile=(128, 256, 64), num_warps=8, num_stages=3, specialize=False):
    known, (BM, BN, BK) = KINDS[kind], tile
    shape, block = ((K, N), (BK, BN)) if layout == "N" else ((N, K), (BN, BK))
    right = Buffer(shape, known.dtype, block=block)
    launch = Launch(described_matmul, tiles(M, N, tile),
                    [Buffer((M, K), known.dtype, block=(BM, BK)), right,
                     Buffer((M, N), known.out, output=True, block=(BM, BN)),
                     M, N, K],
                    BM=BM, BN=BN, BK=BK, TRANSPOSED=layout == "T", SPECIALIZE=specialize, num_warps=num_warps,
                    num_stages=num_stages)
    return Case(f"{prefix(specialize)}described_matmul_{kind}_N{layout}_{M}x{N}x{K}", "descriptors", launch,
                lambda a: a.a @ matrix(a.b, layout),
                operations=2 * M * N * K, unit=known.unit, tolerance=multiplied(kind, known.out, K),
                libraries=libraries.product(kind, known.out, "N" + layout))


@triton.jit
def made_descriptors(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr,
                     SPECIALIZE: tl.constexpr):
    """A persistent kernel that makes its descriptors."""
    a_tiles = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    b_tiles = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    c_tiles = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), PROGRAMS, flatten=True,
                         warp_specialize=SPECIALIZE):
        row, column = tile_of(tile, M, N, BM, BN, 8)
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            total = tl.dot(a_tiles.load([row * BM, k * BK]), b_tiles.load([column * BN, k * BK]).T, total)
        c_tiles.store([row * BM, column * BN], total.to(c.dtype.element_ty))


class WithScratch(Launch):
    """A kernel that makes descriptors needs memory for them under Triton."""

    def make(self, seed=0, device="cuda"):
        import torch

        triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=device))
        super().make(seed, device)


def made_case(kind, M, N, K, tile=(128, 256, 64), num_warps=8, num_stages=3, programs=PROCESSORS, specialize=False):
    known, programs = KINDS[kind], min(programs, tiles(M, N, tile))
    launch = WithScratch(made_descriptors, programs,
                         [Buffer((M, K), known.dtype), Buffer((N, K), known.dtype),
                          Buffer((M, N), known.out, output=True),
                          M, N, K],
                         BM=tile[0], BN=tile[1], BK=tile[2], PROGRAMS=programs, SPECIALIZE=specialize,
                         num_warps=num_warps, num_stages=num_stages)
    return Case(f"{prefix(specialize)}made_descriptors_{kind}_{M}x{N}x{K}", "descriptors", launch, lambda a: a.a @ a.b.T,
                operations=2 * M * N * K, unit=known.unit, tolerance=multiplied(kind, known.out, K),
                libraries=libraries.product(kind, known.out, "NT"))


@triton.jit
def described_attention(q, k, v, o, lse, scale, length, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
                        CAUSAL: tl.constexpr):
    """The heads one behind the other in descriptors of two dimensions."""
    block = tl.program_id(0)
    first = tl.program_id(1) * length
    rows = block * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    query = q.load([first + block * BM, 0])
    highest = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    result = tl.zeros([BM, D], tl.float32)
    last = length
    if CAUSAL:
        last = (block + 1) * BM
    for start in range(0, last, BN):
        s = tl.dot(query, k.load([first + start, 0]).T) * (scale * LOG2E)
        if CAUSAL:
            s = tl.where(rows[:, None] >= (start + columns)[None, :], s, -1.0e6)
        higher = tl.maximum(highest, tl.max(s, axis=1))
        p = tl.exp2(s - higher[:, None])
        fade = tl.exp2(highest - higher)
        total = total * fade + tl.sum(p, axis=1)
        value = v.load([first + start, 0])
        result = tl.dot(p.to(value.dtype), value, result * fade[:, None])
        highest = higher
    tl.store(lse + first + rows, highest + tl.log2(total))
    o.store([first + block * BM, 0], (result / total[:, None]).to(o.dtype))


def attention_case(dtype, heads, length, D, causal, tile=(128, 64), num_warps=8, num_stages=3):
    scale, shape = D**-0.5, (heads * length, D)
    launch = Launch(described_attention, (length // tile[0], heads),
                    [Buffer(shape, dtype, block=(tile[0], D)), Buffer(shape, dtype, block=(tile[1], D)),
                     Buffer(shape, dtype, block=(tile[1], D)), Buffer(shape, dtype, output=True, block=(tile[0], D)),
                     Buffer((heads, length), "f32", output=True), scale, length],
                    BM=tile[0], BN=tile[1], D=D, CAUSAL=causal, num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        import torch

        seen = seen_by(length, a.q.device, causal)
        o, lse = zip(*(attended(*(t.view(heads, length, D)[head] for t in (a.q, a.k, a.v)), scale, dtype, dtype, seen)
                       for head in range(heads)))
        return {"o": together(torch.cat, o), "lse": together(torch.stack, lse)}

    return Case(f"described_attention_{dtype}_d{D}_{'causal' if causal else 'full'}_{heads}x{length}",
                "descriptors", launch,
                reference, operations=4 * heads * scores(length, causal) * D, unit=KINDS[dtype].unit,
                libraries=libraries.attention(dtype, 1, length, scale, causal))


def cases():
    return [
        described_case("f16", "N", 4096, 4096, 4096),
        described_case("bf16", "T", 8192, 8192, 8192, tile=(128, 128, 64)),
        described_case("f8e4m3", "T", 4096, 4096, 8192, tile=(128, 256, 128)),
        described_case("f16", "T", 3000, 2000, 1000, tile=(128, 128, 64)),
        made_case("f16", 4096, 4096, 4096),
        made_case("bf16", 8192, 8192, 2048, tile=(128, 128, 64), num_stages=4),
        made_case("f8e4m3", 8192, 8192, 4096, tile=(128, 256, 128)),
        attention_case("f16", 64, 4096, 64, False, num_warps=4),
        attention_case("bf16", 64, 4096, 128, True),
    ]


def small():
    tile = {"tile": (32, 32, 32), "num_warps": 4}
    return [
        described_case("f16", "N", 64, 64, 64, **tile), described_case("bf16", "T", 40, 72, 80, **tile),
        described_case("f8e4m3", "T", 64, 64, 64, **tile), made_case("f16", 96, 64, 64, programs=2, **tile),
        made_case("f16", 192, 128, 128, programs=2, tile=(64, 64, 32), num_warps=4, specialize=True),
        attention_case("f16", 2, 64, 32, True, tile=(32, 32), num_warps=4)]
