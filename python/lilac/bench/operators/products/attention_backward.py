"""Attention, backward: the gradients of K and V, a block of them for each program, and those of Q.

    P = exp2(scale Q Kᵀ log2 e - lse)      dV = Pᵀ dO        dP = dO Vᵀ
    dS = P (dP - delta)                    dK = scale dSᵀ Q  dQ = scale dS K

`lse` and `delta` are inputs: numbers of the size that the forward pass finds, which makes the reference these
formulas and nothing else.
"""

import math

import triton
import triton.language as tl

from ...case import Buffer, Case, Expected, Launch, ROUNDING, SMALLEST, within
from .attention import LOG2E, scores, seen_by
from .operands import BEYOND, inexact, KINDS, spread, weighted


@triton.jit
def attention_dkdv(q, k, v, do, lse, delta, dk, dv, scale, length, GROUP: tl.constexpr, BM: tl.constexpr,
                   BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    """A block of keys, which sees the blocks of queries of all its heads; products are transposed, so P and dS are
    first operands."""
    block = tl.program_id(0)
    head = tl.program_id(1)
    columns = block * BN + tl.arange(0, BN)
    d = tl.arange(0, D)
    kv_at = head.to(tl.int64) * length * D + columns[:, None] * D + d[None, :]
    key = tl.load(k + kv_at)
    value = tl.load(v + kv_at)
    gradient_k = tl.zeros([BN, D], tl.float32)
    gradient_v = tl.zeros([BN, D], tl.float32)
    for member in range(GROUP):
        head_q = head * GROUP + member
        begin = head_q.to(tl.int64) * length * D
        first = 0
        if CAUSAL:
            first = block * BN // BM * BM
        for start in range(first, length, BM):
            rows = start + tl.arange(0, BM)
            query_t = tl.load(q + begin + rows[None, :] * D + d[:, None])
            gradient_o = tl.load(do + begin + rows[:, None] * D + d[None, :])
            log_sum = tl.load(lse + head_q * length + rows)
            p_t = tl.exp2(tl.dot(key, query_t) * (scale * LOG2E) - log_sum[None, :])
            if CAUSAL:
                p_t = tl.where(rows[None, :] >= columns[:, None], p_t, 0.0)
            gradient_v = tl.dot(p_t.to(gradient_o.dtype), gradient_o, gradient_v)
            dp_t = tl.dot(value, tl.trans(gradient_o))
            ds_t = p_t * (dp_t - tl.load(delta + head_q * length + rows)[None, :])
            gradient_k = tl.dot(ds_t.to(query_t.dtype), tl.trans(query_t), gradient_k)
    tl.store(dk + kv_at, (gradient_k * scale).to(dk.dtype.element_ty))
    tl.store(dv + kv_at, gradient_v.to(dv.dtype.element_ty))


@triton.jit
def attention_dq(q, k, v, do, lse, delta, dq, scale, length, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                 D: tl.constexpr, CAUSAL: tl.constexpr):
    block = tl.program_id(0)
    head = tl.program_id(1)
    rows = block * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q_at = head.to(tl.int64) * length * D + rows[:, None] * D + d[None, :]
    begin = (head // GROUP).to(tl.int64) * length * D
    query = tl.load(q + q_at)
    gradient_o = tl.load(do + q_at)
    log_sum = tl.load(lse + head * length + rows)
    mean = tl.load(delta + head * length + rows)
    gradient = tl.zeros([BM, D], tl.float32)
    last = length
    if CAUSAL:
        last = (block + 1) * BM
    for start in range(0, last, BN):
        columns = start + tl.arange(0, BN)
        key_t = tl.load(k + begin + columns[None, :] * D + d[:, None])
        value_t = tl.load(v + begin + columns[None, :] * D + d[:, None])
        p = tl.exp2(tl.dot(query, key_t) * (scale * LOG2E) - log_sum[:, None])
        if CAUSAL:
            p = tl.where(rows[:, None] >= columns[None, :], p, 0.0)
        ds = p * (tl.dot(gradient_o, value_t) - mean[:, None])
        gradient = tl.dot(ds.to(key_t.dtype), tl.trans(key_t), gradient)
    tl.store(dq + q_at, (gradient * scale).to(dq.dtype.element_ty))


def sums(shape, length):
    """Logarithms to the base 2 of sums of exponentials, as of normal scores."""
    middle = math.log2(length) + 0.5 * math.log2(math.e)
    return Buffer(shape, "f32", lambda torch, generator, device: middle + 0.1 * torch.randn(
        shape, generator=generator, device=device))


def gradients(a, heads, group, length, scale, causal, dtype):
    """{dq, dk, dv} as Expected, head by head.

    P is computed as the weights of the forward pass are, and rounded (`weighted`). dP is a sum of D products of
    normal numbers, whose partial sums are within BEYOND √D; each addition truncates. dS is P (dP - delta), off by
    both, and rounded. The errors of dS hardly depend on single elements of Q and K, by which it is multiplied."""
    D = a.q.shape[-1]
    seen = seen_by(length, a.q.device, causal)
    relative, slope_off = inexact(dtype, D, length), (D * BEYOND * D**0.5 + 1) * ROUNDING["f32"]
    found = {name: [matrix.new_zeros(matrix.shape) for _ in range(2)]
             for name, matrix in (("dq", a.q), ("dk", a.k), ("dv", a.v))}

    def add(name, head, expected):
        for total, part in zip(found[name], expected):
            total[head] += part

    for head in range(heads):
        q, k, v, do = a.q[head], a.k[head // group], a.v[head // group], a.do[head]
        p = 2 ** (scale * math.log2(math.e) * (q @ k.T) - a.lse[head][:, None])
        if seen is not None:
            p = p * seen
        ds = p * (do @ v.T - a.delta[head][:, None])
        off = ((ROUNDING[dtype] + relative) * abs(ds) + p * slope_off + SMALLEST[dtype]) * (p != 0)
        add("dv", head // group, weighted(p.T, do, dtype, dtype, relative))
        for name, at, errors, slopes, values in (("dq", head, off, ds, k), ("dk", head // group, off.T, ds.T, q)):
            value = scale * slopes @ values
            add(name, at, (value, scale * spread(errors, values) + (relative + within(dtype)) * abs(value)))
    return {name: Expected(*parts) for name, parts in found.items()}


def backward_case(which, dtype, batch, heads, length, D, causal, group=1, tile=(64, 128), num_warps=8, num_stages=2):
    """which: "dkdv" or "dq"."""
    scale, all_heads = D**-0.5, batch * heads
    outer, inner = (all_heads, length, D), (all_heads // group, length, D)
    inputs = [Buffer(outer, dtype), Buffer(inner, dtype), Buffer(inner, dtype), Buffer(outer, dtype),
              sums((all_heads, length), length), Buffer((all_heads, length), "f32")]
    constants = dict(GROUP=group, BM=tile[0], BN=tile[1], D=D, CAUSAL=causal, num_warps=num_warps,
                     num_stages=num_stages)
    if which == "dkdv":
        launch = Launch(attention_dkdv, (length // tile[1], all_heads // group),
                        [*inputs, Buffer(inner, dtype, output=True), Buffer(inner, dtype, output=True), scale, length],
                        **constants)
    else:
        launch = Launch(attention_dq, (length // tile[0], all_heads),
                        [*inputs, Buffer(outer, dtype, output=True), scale, length], **constants)

    def reference(a):
        found = gradients(a, all_heads, group, length, scale, causal, dtype)
        return {name: found[name] for name in launch.outputs}

    products = {"dkdv": 4, "dq": 3}[which]
    return Case(f"attention_{which}_{dtype}_d{D}_{'causal' if causal else 'full'}"
                + (f"_gqa{group}" if group > 1 else "") + f"_{batch}x{heads}x{length}", "attention backward", launch,
                reference, operations=2 * products * all_heads * scores(length, causal) * D, unit=KINDS[dtype].unit)


def cases():
    return [backward_case(which, *shape, tile=tile[which])
            for which in ("dkdv", "dq")
            for shape, tile in (
                (("f16", 4, 16, 2048, 64, False), {"dkdv": (64, 128), "dq": (128, 64)}),
                (("bf16", 4, 16, 4096, 64, True), {"dkdv": (64, 128), "dq": (128, 64)}),
                (("f16", 2, 16, 4096, 128, True), {"dkdv": (64, 128), "dq": (128, 64)}),
                (("bf16", 4, 16, 2048, 128, False), {"dkdv": (32, 128), "dq": (128, 32)}),
                (("bf16", 2, 32, 2048, 128, True, 4), {"dkdv": (64, 64), "dq": (64, 64)}))]


def small():
    return [backward_case(which, dtype, 1, 2, 64, 32, causal, group, tile=(32, 32), num_warps=4)
            for which in ("dkdv", "dq") for dtype, causal, group in (("f16", False, 1), ("bf16", True, 2))]
