"""Products of many groups in one launch: experts of a mixture, jagged batches, problems of different sizes.

The rows of `x` are sorted by group; those of group g are offsets[g] to offsets[g + 1].
"""

import triton
import triton.language as tl

from ...case import Buffer, Case, Launch
from .attention import lengths_at_most, offsets_of
from . import libraries
from .operands import KINDS, matrix, multiplied, operand, strides, tile_of, tiles
from .schedules import PROCESSORS


@triton.jit
def grouped_matmul(x, weight, bias, y, offsets, N, K, stride_wk, stride_wn, BM: tl.constexpr, BN: tl.constexpr,
                   BK: tl.constexpr, BIAS: tl.constexpr):
    """A tile of a group for each program; programs behind the group's last row return at once."""
    group = tl.program_id(2)
    first = tl.load(offsets + group)
    count = tl.load(offsets + group + 1) - first
    if tl.program_id(0) * BM >= count:
        return
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    x_at = x + (first + rows).to(tl.int64)[:, None] * K + depth[None, :]
    w_at = weight + group.to(tl.int64) * K * N + depth[:, None] * stride_wk + (columns % N)[None, :] * stride_wn
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = tl.load(x_at, mask=(rows < count)[:, None] & (depth < K - k * BK)[None, :], other=0.0)
        right = tl.load(w_at, mask=(depth < K - k * BK)[:, None], other=0.0)
        total = tl.dot(left, right, total)
        x_at += BK
        w_at += BK * stride_wk
    if BIAS:
        total += tl.load(bias + group * N + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]
    at = y + (first + rows).to(tl.int64)[:, None] * N + columns[None, :]
    tl.store(at, total.to(y.dtype.element_ty), mask=(rows < count)[:, None] & (columns < N)[None, :])


def by_group(a, weight):
    """The product of each group's rows with its matrix."""
    import torch

    ends = a.offsets.tolist()
    return torch.cat([a.x[first:last] @ weight[g] for g, (first, last) in enumerate(zip(ends, ends[1:]))])


def grouped_case(kind, layout, groups, longest, N, K, bias=False, tile=(64, 128, 64), num_warps=4, num_stages=3):
    lengths, known = lengths_at_most(groups, longest, seed=groups), KINDS[kind]
    rows = sum(lengths)
    launch = Launch(grouped_matmul, (triton.cdiv(longest, tile[0]), triton.cdiv(N, tile[1]), groups),
                    [operand(kind, rows, K), operand(kind, K, N, layout, batch=(groups,)),
                     Buffer((groups, N) if bias else 16, "f32"), Buffer((rows, N), known.out, output=True),
                     offsets_of(lengths), N, K, *strides(K, N, layout)],
                    BM=tile[0], BN=tile[1], BK=tile[2], BIAS=bias, num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        import torch

        result = by_group(a, matrix(a.weight, layout))
        if not bias:
            return result
        return result + a.bias.repeat_interleave(torch.tensor(lengths, device=result.device), 0)

    title = "jagged_dense_matmul" if bias else "grouped_matmul"
    return Case(f"{title}_{kind}_N{layout}_{groups}_of_{longest}x{N}x{K}", "grouped matmul", launch, reference,
                operations=2 * rows * N * K, unit=known.unit, tolerance=multiplied(kind, known.out, K),
                libraries=() if bias else libraries.grouped(kind, layout))


@triton.jit
def grouped_persistent(x, weight, y, offsets, groups, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                       PROGRAMS: tl.constexpr):
    """Each program computes every PROGRAMS-th tile, counted over all groups."""
    tile = tl.program_id(0)
    columns_of_tiles = tl.cdiv(N, BN)
    passed = 0
    for group in range(groups):
        first = tl.load(offsets + group)
        count = tl.load(offsets + group + 1) - first
        here = tl.cdiv(count, BM) * columns_of_tiles
        while tile < passed + here:
            row, column = tile_of(tile - passed, count, N, BM, BN, 8)
            rows = row * BM + tl.arange(0, BM)
            columns = column * BN + tl.arange(0, BN)
            depth = tl.arange(0, BK)
            x_at = x + (first + rows % count).to(tl.int64)[:, None] * K + depth[None, :]
            w_at = weight + group.to(tl.int64) * K * N + (columns % N)[None, :] * K + depth[:, None]
            total = tl.zeros((BM, BN), dtype=tl.float32)
            for _ in range(0, K, BK):
                total = tl.dot(tl.load(x_at), tl.load(w_at), total)
                x_at += BK
                w_at += BK
            at = y + (first + rows).to(tl.int64)[:, None] * N + columns[None, :]
            tl.store(at, total.to(y.dtype.element_ty), mask=(rows < count)[:, None] & (columns < N)[None, :])
            tile += PROGRAMS
        passed += here


def persistent_case(kind, groups, longest, N, K, tile=(128, 128, 64), num_warps=8, num_stages=3, programs=PROCESSORS):
    lengths, known = lengths_at_most(groups, longest, seed=groups + 1), KINDS[kind]
    rows = sum(lengths)
    launch = Launch(grouped_persistent, programs,
                    [operand(kind, rows, K), operand(kind, K, N, "T", batch=(groups,)),
                     Buffer((rows, N), known.out, output=True), offsets_of(lengths), groups, N, K],
                    BM=tile[0], BN=tile[1], BK=tile[2], PROGRAMS=programs, num_warps=num_warps, num_stages=num_stages)
    return Case(f"grouped_persistent_{kind}_{groups}_of_{longest}x{N}x{K}", "grouped matmul", launch,
                lambda a: by_group(a, matrix(a.weight, "T")), operations=2 * rows * N * K, unit=known.unit,
                tolerance=multiplied(kind, known.out, K), libraries=libraries.grouped(kind, "T"))


@triton.jit
def grouped_gradient(x, dy, dw, offsets, M, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The gradient of each group's matrix, xᵀ dy over the rows of the group."""
    group = tl.program_id(1)
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    first = tl.load(offsets + group)
    last = tl.load(offsets + group + 1)
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(first, last, BK):
        depth = start + tl.arange(0, BK)
        left = tl.load(x + depth.to(tl.int64)[None, :] * M + rows[:, None],
                       mask=(depth < last)[None, :] & (rows < M)[:, None], other=0.0)
        right = tl.load(dy + depth.to(tl.int64)[:, None] * N + columns[None, :],
                        mask=(depth < last)[:, None] & (columns < N)[None, :], other=0.0)
        total = tl.dot(left, right, total)
    at = dw + group.to(tl.int64) * M * N + rows[:, None] * N + columns[None, :]
    tl.store(at, total.to(dw.dtype.element_ty), mask=(rows < M)[:, None] & (columns < N)[None, :])


def gradient_case(kind, groups, longest, M, N, tile=(128, 128, 64), num_warps=8, num_stages=3):
    lengths, known = lengths_at_most(groups, longest, seed=groups + 2), KINDS[kind]
    rows = sum(lengths)
    launch = Launch(grouped_gradient, (tiles(M, N, tile), groups),
                    [operand(kind, rows, M), operand(kind, rows, N), Buffer((groups, M, N), "f32", output=True),
                     offsets_of(lengths), M, N],
                    BM=tile[0], BN=tile[1], BK=tile[2], num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        import torch

        ends = a.offsets.tolist()
        return torch.stack([a.x[first:last].T @ a.dy[first:last] for first, last in zip(ends, ends[1:])])

    return Case(f"grouped_gradient_{kind}_{groups}_of_{longest}x{M}x{N}", "grouped matmul", launch, reference,
                operations=2 * rows * M * N, unit=known.unit, tolerance=multiplied(kind, "f32", longest))


@triton.jit
def expert_matmul(x, weight, gate, y, chosen, expert_of, pairs, N, K, TOP: tl.constexpr, BM: tl.constexpr,
                  BN: tl.constexpr, BK: tl.constexpr):
    """A mixture's experts without moving the tokens: `chosen` lists pairs (token · TOP + choice) by expert, each
    expert's padded to whole tiles with `pairs`; `expert_of` has the expert of each tile. Rows are gathered by the
    loads, weighted by the gate, and scattered by the store."""
    row = tl.program_id(0)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    pair = tl.load(chosen + row * BM + tl.arange(0, BM))
    used = pair < pairs
    expert = tl.load(expert_of + row).to(tl.int64)
    depth = tl.arange(0, BK)
    x_at = x + (pair // TOP)[:, None] * K + depth[None, :]
    w_at = weight + expert * N * K + columns[None, :] * K + depth[:, None]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(x_at, mask=used[:, None], other=0.0), tl.load(w_at), total)
        x_at += BK
        w_at += BK
    total *= tl.load(gate + pair, mask=used, other=0.0)[:, None]
    tl.store(y + pair.to(tl.int64)[:, None] * N + columns[None, :], total.to(y.dtype.element_ty), mask=used[:, None])


def experts_case(kind, tokens, experts, top, N, K, tile=(64, 128, 64), num_warps=4, num_stages=4):
    """Pair p belongs to expert (p · 7919 + p // 13) % experts: every expert has some, none the same number."""
    pairs, known = tokens * top, KINDS[kind]
    expert_of_pair = [(pair * 7919 + pair // 13) % experts for pair in range(pairs)]
    chosen, expert_of = [], []
    members = {expert: [] for expert in range(experts)}
    for pair, expert in enumerate(expert_of_pair):
        members[expert].append(pair)
    for expert, mine in members.items():
        blocks = triton.cdiv(len(mine), tile[0])
        chosen += mine + [pairs] * (blocks * tile[0] - len(mine))
        expert_of += [expert] * blocks

    def listed(numbers):
        return Buffer(len(numbers), "i32", lambda torch, generator, device: torch.tensor(numbers, device=device))

    launch = Launch(expert_matmul, (len(expert_of), N // tile[1]),
                    [operand(kind, tokens, K), operand(kind, K, N, "T", batch=(experts,)),
                     Buffer(pairs, "f32", "uniform"),
                     Buffer((pairs, N), known.out, output=True), listed(chosen), listed(expert_of), pairs, N, K],
                    TOP=top, BM=tile[0], BN=tile[1], BK=tile[2], num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        import torch

        y = a.x.new_empty((pairs, N))
        for expert, mine in members.items():
            mine = torch.tensor(mine, device=y.device)
            y[mine] = a.gate[mine][:, None] * (a.x[mine // top] @ a.weight[expert].T)
        return y

    used = sum(bool(mine) for mine in members.values())
    moved = sum(b.bytes for name, b in launch.buffers.items() if name != "weight")
    return Case(f"experts_{kind}_{tokens}_tokens_{top}_of_{experts}x{N}x{K}", "experts", launch, reference,
                bytes=moved + launch.buffers["weight"].bytes * used // experts, operations=2 * pairs * N * K,
                unit=known.unit, tolerance=multiplied(kind, known.out, K))


def cases():
    return [
        grouped_case("bf16", "T", 8, 4096, 4096, 2048),
        grouped_case("bf16", "T", 64, 512, 2816, 2048),
        grouped_case("f16", "N", 16, 2048, 4096, 4096, tile=(128, 128, 64), num_warps=8),
        grouped_case("f16", "N", 128, 300, 1000, 500),
        grouped_case("f8e4m3", "T", 16, 1024, 4096, 7168, tile=(64, 128, 128)),
        grouped_case("bf16", "N", 512, 512, 256, 256, bias=True),
        grouped_case("f16", "N", 1024, 200, 96, 128, bias=True, tile=(64, 32, 32)),
        persistent_case("bf16", 8, 4096, 4096, 4096),
        persistent_case("f16", 4, 8192, 4096, 2048),
        persistent_case("f8e4m3", 16, 2048, 4096, 4096, tile=(128, 128, 128)),
        gradient_case("bf16", 8, 4096, 2048, 4096),
        gradient_case("f16", 256, 512, 128, 256, tile=(64, 64, 64), num_warps=4),
        experts_case("bf16", 4096, 8, 2, 14336, 4096, tile=(128, 128, 64), num_warps=8, num_stages=3),
        experts_case("bf16", 4096, 64, 6, 1408, 2048),
        experts_case("bf16", 64, 64, 6, 1408, 2048, tile=(16, 128, 64)),
        experts_case("f8e4m3", 2048, 32, 4, 2048, 7168, tile=(64, 128, 128)),
    ]


def small():
    tile = {"tile": (32, 32, 32), "num_warps": 4}
    return [
        grouped_case("f16", "N", 3, 70, 50, 40, **tile), grouped_case("bf16", "T", 2, 64, 32, 64, bias=True, **tile),
        grouped_case("f8e4m3", "T", 2, 50, 64, 64, **tile), persistent_case("f16", 3, 80, 64, 64, programs=4, **tile),
        gradient_case("bf16", 3, 80, 32, 48, **tile), experts_case("f16", 40, 4, 2, 64, 64, **tile)]
