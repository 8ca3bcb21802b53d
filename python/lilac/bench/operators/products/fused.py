"""Products with something before or after them: bias and activation, addmm, two products of one input (gated
units), layer norm and RMS norm of the rows of A, low-rank adapters, a quantised result, the maximum of each row's
logits."""

import triton
import triton.language as tl

from ...case import Buffer, Case, Launch, ROUNDING, within
from . import libraries
from .operands import KINDS, matrix, multiplied, operand, strides, tile_of, tiles

ACTIVATIONS = ("none", "relu", "leaky_relu", "gelu", "gelu_tanh", "silu", "sigmoid")


@triton.jit
def activated(x, NAME: tl.constexpr):
    if NAME == "relu":
        x = tl.maximum(x, 0.0)
    elif NAME == "leaky_relu":
        x = tl.where(x >= 0, x, 0.01 * x)
    elif NAME == "gelu":
        x = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))
    elif NAME == "gelu_tanh":
        inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
        x = x * tl.sigmoid(2 * inner)
    elif NAME == "silu":
        x = x * tl.sigmoid(x)
    elif NAME == "sigmoid":
        x = tl.sigmoid(x)
    return x


@triton.jit
def linear(x, weight, bias, residual, y, M, N, K, stride_wk, stride_wn, scale, BM: tl.constexpr, BN: tl.constexpr,
           BK: tl.constexpr, BIAS: tl.constexpr, RESIDUAL: tl.constexpr, ACTIVATION: tl.constexpr):
    """y = activation(scale · x W + bias) + residual"""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    x_at = x + (rows % M)[:, None] * K + depth[None, :]
    w_at = weight + depth[:, None] * stride_wk + (columns % N)[None, :] * stride_wn
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = tl.load(x_at, mask=depth[None, :] < K - k * BK, other=0.0)
        right = tl.load(w_at, mask=depth[:, None] < K - k * BK, other=0.0)
        total = tl.dot(left, right, total)
        x_at += BK
        w_at += BK * stride_wk
    total *= scale
    if BIAS:
        total += tl.load(bias + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]
    total = activated(total, ACTIVATION)
    mask = (rows < M)[:, None] & (columns < N)[None, :]
    place = rows[:, None] * N + columns[None, :]
    if RESIDUAL:
        total += tl.load(residual + place, mask=mask, other=0.0).to(tl.float32)
    tl.store(y + place, total.to(y.dtype.element_ty), mask=mask)


def activation_of(x, name):
    from torch.nn import functional

    return {"none": lambda: x, "relu": lambda: x.relu(), "leaky_relu": lambda: functional.leaky_relu(x, 0.01),
            "gelu": lambda: functional.gelu(x), "gelu_tanh": lambda: functional.gelu(x, approximate="tanh"),
            "silu": lambda: functional.silu(x), "sigmoid": lambda: x.sigmoid()}[name]()


def linear_case(kind, layout, M, N, K, activation="none", bias=True, residual=False, tile=(128, 128, 64), num_warps=8,
                num_stages=3):
    scale = K**-0.5
    launch = Launch(linear, tiles(M, N, tile),
                    [operand(kind, M, K), operand(kind, K, N, layout), Buffer(N, KINDS[kind].dtype),
                     Buffer((M, N) if residual else 16, KINDS[kind].dtype),
                     Buffer((M, N), KINDS[kind].dtype, output=True), M, N, K, *strides(K, N, layout), scale],
                    BM=tile[0], BN=tile[1], BK=tile[2], BIAS=bias, RESIDUAL=residual, ACTIVATION=activation,
                    num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        result = scale * (a.x @ matrix(a.weight, layout))
        result = activation_of(result + a.bias if bias else result, activation)
        return result + a.residual if residual else result

    possible = (("bias", bias), (activation, activation != "none"), ("residual", residual))
    parts = [name for name, used in possible if used]
    return Case(f"linear_{'_'.join(parts)}_{kind}_{M}x{N}x{K}", "matmul with epilogue", launch, reference,
                operations=2 * M * N * K, unit=KINDS[kind].unit, tolerance=multiplied(kind, KINDS[kind].dtype, K + 32),
                libraries=libraries.linear(layout, scale, activation) if bias and not residual else ())


@triton.jit
def addmm(a, b, c, out, M, N, K, alpha, beta, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
          COLUMN: tl.constexpr):
    """alpha · A B + beta · C; COLUMN: C is one row for all."""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        inside = k + depth < K
        left = tl.load(a + rows[:, None] * K + (k + depth)[None, :], mask=(rows < M)[:, None] & inside[None, :],
                       other=0.0)
        right = tl.load(b + (k + depth)[:, None] * N + columns[None, :], mask=inside[:, None] & (columns < N)[None, :],
                        other=0.0)
        total = tl.dot(left, right, total)
    mask = (rows < M)[:, None] & (columns < N)[None, :]
    if COLUMN:
        added = tl.load(c + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]
    else:
        added = tl.load(c + rows[:, None] * N + columns[None, :], mask=mask, other=0.0).to(tl.float32)
    result = alpha * total + beta * added
    tl.store(out + rows[:, None] * N + columns[None, :], result.to(out.dtype.element_ty), mask=mask)


def addmm_case(kind, M, N, K, column=False, tile=(128, 128, 64), num_warps=8, num_stages=3):
    dtype = KINDS[kind].dtype
    launch = Launch(addmm, tiles(M, N, tile),
                    [operand(kind, M, K), operand(kind, K, N), Buffer(N if column else (M, N), dtype),
                     Buffer((M, N), dtype, output=True), M, N, K, 0.5, 2.0],
                    BM=tile[0], BN=tile[1], BK=tile[2], COLUMN=column, num_warps=num_warps, num_stages=num_stages)
    return Case(f"addmm_{kind}_{M}x{N}x{K}", "addmm", launch, lambda a: 0.5 * (a.a @ a.b) + 2 * a.c,
                operations=2 * M * N * K, unit=KINDS[kind].unit, tolerance=multiplied(kind, dtype, K),
                libraries=libraries.addmm(0.5, 2.0))


@triton.jit
def gated_linear(x, gate, up, y, M, N, K, scale, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """silu(x Gᵀ) · (x Uᵀ): both products read the same tiles of x."""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    x_at = x + rows[:, None] * K + depth[None, :]
    g_at = gate + columns[None, :] * K + depth[:, None]
    u_at = up + columns[None, :] * K + depth[:, None]
    gated = tl.zeros((BM, BN), dtype=tl.float32)
    upper = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        left = tl.load(x_at)
        gated = tl.dot(left, tl.load(g_at), gated)
        upper = tl.dot(left, tl.load(u_at), upper)
        x_at += BK
        g_at += BK
        u_at += BK
    gated *= scale
    result = gated * tl.sigmoid(gated) * (upper * scale)
    tl.store(y + rows[:, None] * N + columns[None, :], result.to(y.dtype.element_ty))


def gated_case(kind, M, N, K, tile=(128, 128, 64), num_warps=8, num_stages=3):
    dtype, scale = KINDS[kind].dtype, K**-0.5
    launch = Launch(gated_linear, tiles(M, N, tile),
                    [operand(kind, M, K), operand(kind, K, N, "T"), operand(kind, K, N, "T"),
                     Buffer((M, N), dtype, output=True), M, N, K, scale],
                    BM=tile[0], BN=tile[1], BK=tile[2], num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        gated = scale * (a.x @ a.gate.T)
        return gated * gated.sigmoid() * (scale * (a.x @ a.up.T))

    return Case(f"gated_linear_{kind}_{M}x{N}x{K}", "matmul with epilogue", launch, reference,
                operations=4 * M * N * K, unit=KINDS[kind].unit, tolerance=multiplied(kind, dtype, 2 * K))


@triton.jit
def normed_linear(x, weight, gain, shift, y, M, N, K, epsilon, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                  RMS: tl.constexpr):
    """norm(x) Wᵀ: the statistics of BM rows first, then the product with the rows as they are normalised."""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    x_at = x + rows[:, None] * K + depth[None, :]
    sums = tl.zeros((BM,), dtype=tl.float32)
    squares = tl.zeros((BM,), dtype=tl.float32)
    for k in range(0, K, BK):
        value = tl.load(x_at + k).to(tl.float32)
        sums += tl.sum(value, axis=1)
        squares += tl.sum(value * value, axis=1)
    if RMS:
        mean = tl.zeros((BM,), dtype=tl.float32)
        inverse = tl.rsqrt(squares / K + epsilon)
    else:
        mean = sums / K
        inverse = tl.rsqrt(squares / K - mean * mean + epsilon)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    w_at = weight + columns[None, :] * K + depth[:, None]
    for k in range(0, K, BK):
        value = (tl.load(x_at + k).to(tl.float32) - mean[:, None]) * inverse[:, None]
        value = value * tl.load(gain + k + depth).to(tl.float32)[None, :]
        if not RMS:
            value += tl.load(shift + k + depth).to(tl.float32)[None, :]
        total = tl.dot(value.to(weight.dtype.element_ty), tl.load(w_at + k), total)
    tl.store(y + rows[:, None] * N + columns[None, :], total.to(y.dtype.element_ty))


def normed_case(kind, M, N, K, rms=False, tile=(128, 128, 64), num_warps=8, num_stages=3):
    dtype, epsilon = KINDS[kind].dtype, 1e-5
    launch = Launch(normed_linear, tiles(M, N, tile),
                    [operand(kind, M, K), operand(kind, K, N, "T"), Buffer(K, dtype), Buffer(K, dtype),
                     Buffer((M, N), dtype, output=True), M, N, K, epsilon],
                    BM=tile[0], BN=tile[1], BK=tile[2], RMS=rms, num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        centred = a.x if rms else a.x - a.x.mean(-1, keepdim=True)
        normed = centred / (centred.square().mean(-1, keepdim=True) + epsilon).sqrt() * a.gain
        return (normed if rms else normed + a.shift) @ a.weight.T

    return Case(f"{'rms' if rms else 'layer'}_norm_linear_{kind}_{M}x{N}x{K}", "norm and matmul", launch, reference,
                operations=2 * M * N * K, unit=KINDS[kind].unit,
                tolerance=8 * ROUNDING[dtype] + multiplied(kind, dtype, K))


@triton.jit
def adapted_linear(x, weight, down, up, y, M, N, K, scale, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                   RANK: tl.constexpr):
    """x Wᵀ + scale · (x A) B, where A is K × RANK: a linear layer with a low-rank adapter."""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    rows = row * BM + tl.arange(0, BM)
    columns = column * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    rank = tl.arange(0, RANK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    lowered = tl.zeros((BM, RANK), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(x + rows[:, None] * K + (k + depth)[None, :])
        total = tl.dot(left, tl.load(weight + columns[None, :] * K + (k + depth)[:, None]), total)
        lowered = tl.dot(left, tl.load(down + (k + depth)[:, None] * RANK + rank[None, :]), lowered)
    raised = tl.load(up + rank[:, None] * N + columns[None, :])
    total = tl.dot((lowered * scale).to(raised.dtype), raised, total)
    tl.store(y + rows[:, None] * N + columns[None, :], total.to(y.dtype.element_ty))


def adapted_case(kind, M, N, K, rank, tile=(128, 128, 64), num_warps=8, num_stages=3):
    dtype = KINDS[kind].dtype
    launch = Launch(adapted_linear, tiles(M, N, tile),
                    [operand(kind, M, K), operand(kind, K, N, "T"), operand(kind, K, rank), operand(kind, rank, N),
                     Buffer((M, N), dtype, output=True), M, N, K, 0.25],
                    BM=tile[0], BN=tile[1], BK=tile[2], RANK=rank, num_warps=num_warps, num_stages=num_stages)
    return Case(f"adapted_linear_{kind}_{M}x{N}x{K}_rank_{rank}", "matmul with epilogue", launch,
                lambda a: a.x @ a.weight.T + 0.25 * (a.x @ a.down) @ a.up,
                operations=2 * M * N * K + 2 * M * rank * (N + K), unit=KINDS[kind].unit,
                tolerance=8 * ROUNDING[dtype] + multiplied(kind, dtype, K))


@triton.jit
def linear_maximum(x, weight, highest, total, M, N, K, scale, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Of the logits scale · x Wᵀ, for each row and each tile of columns, the maximum and the sum of exponentials
    relative to it, as a loss over a large vocabulary needs them; the logits are not stored."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    logits = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(x + rows[:, None] * K + (k + depth)[None, :])
        right = tl.load(weight + columns[None, :] * K + (k + depth)[:, None], mask=(columns < N)[None, :], other=0.0)
        logits = tl.dot(left, right, logits)
    logits = tl.where((columns < N)[None, :], logits * scale, -float("inf"))
    most = tl.max(logits, axis=1)
    place = rows * tl.num_programs(1) + tl.program_id(1)
    tl.store(highest + place, most)
    tl.store(total + place, tl.sum(tl.exp(logits - most[:, None]), axis=1))


def maximum_case(kind, M, N, K, tile=(128, 128, 64), num_warps=8, num_stages=3):
    scale, blocks = K**-0.5, triton.cdiv(N, tile[1])
    launch = Launch(linear_maximum, (M // tile[0], blocks),
                    [operand(kind, M, K), operand(kind, K, N, "T"), Buffer((M, blocks), "f32", output=True),
                     Buffer((M, blocks), "f32", output=True), M, N, K, scale],
                    BM=tile[0], BN=tile[1], BK=tile[2], num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        import torch

        highest, total = [], []
        for first in range(0, N, tile[1]):
            logits = scale * (a.x @ a.weight[first:first + tile[1]].T)
            highest.append(logits.max(1).values)
            total.append((logits - highest[-1][:, None]).exp().sum(1))
        return {"highest": torch.stack(highest, 1), "total": torch.stack(total, 1)}

    return Case(f"linear_maximum_{kind}_{M}x{N}x{K}", "matmul with epilogue", launch, reference,
                operations=2 * M * N * K, unit=KINDS[kind].unit, tolerance=within("f32", K))


def cases():
    return [
        linear_case("f16", "N", 4096, 4096, 4096),
        linear_case("bf16", "T", 8192, 8192, 2048),
        linear_case("f16", "N", 4096, 4096, 4096, "relu"),
        linear_case("f16", "N", 2048, 2048, 2048, "leaky_relu", bias=False),
        linear_case("bf16", "T", 4096, 16384, 4096, "gelu", tile=(128, 256, 64)),
        linear_case("bf16", "T", 8192, 4096, 1024, "gelu_tanh"),
        linear_case("f16", "T", 4096, 11008, 4096, "silu", bias=False),
        linear_case("bf16", "T", 4096, 4096, 16384, residual=True),
        linear_case("f16", "N", 3000, 3000, 1000, "relu", residual=True),
        linear_case("f16", "T", 16384, 1000, 2048, "sigmoid"),
        addmm_case("f16", 4096, 4096, 4096),
        addmm_case("bf16", 8192, 2304, 768),
        addmm_case("bf16", 2500, 1500, 2500),
        addmm_case("f16", 20120, 512, 1536),
        addmm_case("f16", 34579, 256, 512, column=True),
        gated_case("bf16", 4096, 14336, 4096, tile=(128, 128, 64)),
        gated_case("f16", 2048, 11008, 4096, tile=(64, 128, 64), num_warps=4),
        normed_case("f16", 4096, 3072, 1024),
        normed_case("bf16", 8192, 1024, 4096),
        normed_case("bf16", 4096, 6144, 4096, rms=True),
        normed_case("f16", 16384, 768, 768, rms=True, tile=(64, 128, 64), num_warps=4),
        adapted_case("bf16", 4096, 4096, 4096, 16),
        adapted_case("bf16", 4096, 14336, 4096, 64),
        maximum_case("bf16", 4096, 50257, 2048),
        maximum_case("bf16", 2048, 128256, 4096, tile=(128, 256, 64)),
    ]


def small():
    tile = {"tile": (32, 32, 32), "num_warps": 4}
    return [linear_case("f16", "N", 64, 50, 70, name, residual=name == "none", **tile) for name in ACTIVATIONS] + [
        addmm_case("bf16", 50, 40, 70, **tile), addmm_case("f16", 33, 64, 64, column=True, **tile),
        gated_case("bf16", 64, 64, 64, **tile), normed_case("f16", 32, 64, 128, **tile),
        normed_case("bf16", 64, 32, 64, rms=True, **tile), adapted_case("bf16", 64, 64, 64, 16, **tile),
        maximum_case("bf16", 32, 100, 64, **tile)]
