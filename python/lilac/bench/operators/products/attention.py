"""Attention, forward: full and causal, shared keys (GQA), sequences of unequal lengths, windows, soft caps and
biases, 8-bit floats, decoding with the keys divided among programs, pages of keys, and SiLU attention of
recommenders.

    O = softmax(scale · Q Kᵀ) V      a block of rows of Q for each program, blocks of K and V in a loop
"""

import math

import triton
import triton.language as tl

from ...case import Buffer, Case, Expected, Launch, ROUNDING
from . import libraries
from .operands import KINDS, inexact, together, weighted

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def scored(s, row, column, MODIFIER: tl.constexpr, slope):
    """The scores after a modifier: a soft cap at 30, or a bias by the distance."""
    if MODIFIER == "soft cap":
        s = 30.0 * (2 * tl.sigmoid(2 * (s / 30.0)) - 1)
    elif MODIFIER == "bias":
        s = s - slope * tl.abs(row[:, None] - column[None, :]).to(tl.float32)
    return s


@triton.jit
def attention(q, k, v, o, lse, scale, length, heads, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
              D: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MODIFIER: tl.constexpr,
              EVEN: tl.constexpr):
    """GROUP heads of Q for each head of K and V. WINDOW: rows see that many columns up to their own, or all if it
    is 0."""
    block = tl.program_id(0)
    head = tl.program_id(1)
    rows = block * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    d = tl.arange(0, D)
    q_at = q + head.to(tl.int64) * length * D
    o_at = o + head.to(tl.int64) * length * D
    k_at = k + (head // GROUP).to(tl.int64) * length * D
    v_at = v + (head // GROUP).to(tl.int64) * length * D
    slope = tl.exp2(-8.0 * (head % heads + 1).to(tl.float32) / heads)
    if EVEN:
        query = tl.load(q_at + rows[:, None] * D + d[None, :])
    else:
        query = tl.load(q_at + rows[:, None] * D + d[None, :], mask=(rows < length)[:, None], other=0.0)
    highest = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    result = tl.zeros([BM, D], tl.float32)
    first = 0
    last = length
    if CAUSAL:
        last = tl.minimum((block + 1) * BM, length)
    if WINDOW > 0:
        first = tl.maximum(block * BM - WINDOW + 1, 0) // BN * BN
    for start in range(first, last, BN):
        at = start + columns
        if EVEN:
            key = tl.load(k_at + at[None, :] * D + d[:, None])
        else:
            key = tl.load(k_at + at[None, :] * D + d[:, None], mask=(at < length)[None, :], other=0.0)
        s = scored(tl.dot(query, key) * scale, rows, at, MODIFIER, slope) * LOG2E
        if CAUSAL:
            seen = rows[:, None] >= at[None, :]
            if WINDOW > 0:
                seen = seen & (rows[:, None] - at[None, :] < WINDOW)
            s = tl.where(seen, s, -1.0e6)
        if not EVEN:
            s = tl.where((at < length)[None, :], s, -float("inf"))
        higher = tl.maximum(highest, tl.max(s, axis=1))
        p = tl.exp2(s - higher[:, None])
        fade = tl.exp2(highest - higher)
        total = total * fade + tl.sum(p, axis=1)
        result = result * fade[:, None]
        if EVEN:
            value = tl.load(v_at + at[:, None] * D + d[None, :])
        else:
            value = tl.load(v_at + at[:, None] * D + d[None, :], mask=(at < length)[:, None], other=0.0)
        result = tl.dot(p.to(value.dtype), value, result)
        highest = higher
    result = result / total[:, None]
    tl.store(lse + head * length + rows, highest + tl.log2(total), mask=rows < length)
    tl.store(o_at + rows[:, None] * D + d[None, :], result.to(o.dtype.element_ty), mask=(rows < length)[:, None])


def attended(query, key, value, scale, dtype, out, seen=None, modify=None):
    """(O, log2 of the sum of exponentials) of one head, as Expected."""
    s = scale * (query @ key.transpose(-1, -2))
    if modify:
        s = modify(s)
    if seen is not None:
        s = s.masked_fill(~seen, -math.inf)
    weights, log_sum = s.softmax(-1), s.logsumexp(-1) * math.log2(math.e)
    relative = inexact(dtype, query.shape[-1], key.shape[-2])
    # The sum of the exponentials is off by their relative error; the maximum, the logarithm and the sum are rounded.
    off = math.log2(math.e) * relative + 3 * ROUNDING["f32"] * log_sum.abs()
    return weighted(weights, value, dtype, out, relative, weights.amax(-1, keepdim=True)), Expected(log_sum, off)


def seen_by(length, device, causal, window=0):
    import torch

    if not causal:
        return None
    at = torch.arange(length, device=device)
    distance = at[:, None] - at[None, :]
    return (distance >= 0) & (distance < window) if window else distance >= 0


def scores(length, causal, window=0):
    """How many elements of Q Kᵀ are needed."""
    if not causal:
        return length * length
    return sum(min(row + 1, window or row + 1) for row in range(length))


def attention_case(dtype, batch, heads, length, D, causal=False, group=1, window=0, modifier="none",
                   tile=(128, 64), num_warps=None, num_stages=3):
    scale = D**-0.5
    all_heads = batch * heads
    out = "f16" if dtype.startswith("f8") else dtype
    launch = Launch(attention, (triton.cdiv(length, tile[0]), all_heads),
                    [Buffer((all_heads, length, D), dtype), Buffer((all_heads // group, length, D), dtype),
                     Buffer((all_heads // group, length, D), dtype),
                     Buffer((all_heads, length, D), out, output=True),
                     Buffer((all_heads, length), "f32", output=True), scale, length, heads],
                    GROUP=group, BM=tile[0], BN=tile[1], D=D, CAUSAL=causal, WINDOW=window, MODIFIER=modifier,
                    EVEN=length % tile[0] == 0 and length % tile[1] == 0,
                    num_warps=num_warps or (4 if D == 64 else 8), num_stages=num_stages)

    def reference(a):
        import torch

        device = a.q.device
        seen = seen_by(length, device, causal, window)
        at = torch.arange(length, device=device)
        results = []
        for head in range(all_heads):
            slope = 2.0 ** (-8 * (head % heads + 1) / heads)
            modify = {"none": None, "soft cap": lambda s: 30 * (s / 30).tanh(),
                      "bias": lambda s, slope=slope: s - slope * (at[:, None] - at[None, :]).abs()}[modifier]
            results.append(attended(a.q[head], a.k[head // group], a.v[head // group], scale, dtype, out, seen, modify))
        return {name: together(torch.stack, parts) for name, parts in zip(("o", "lse"), zip(*results))}

    parts = [dtype, f"d{D}", "causal" if causal else "full", *([f"gqa{group}"] if group > 1 else []),
             *([f"window{window}"] if window else []), *([modifier.replace(" ", "_")] if modifier != "none" else [])]
    family = "attention" if modifier == "none" and not window else "template attention"
    return Case(f"attention_{'_'.join(parts)}_{batch}x{heads}x{length}", family, launch, reference,
                operations=4 * all_heads * scores(length, causal, window) * D, unit=KINDS[dtype].unit,
                libraries=libraries.attention(dtype, batch, length, scale, causal, window) if modifier == "none" else ())


@triton.jit
def attention_varlen(q, k, v, o, offsets, scale, heads, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
                     CAUSAL: tl.constexpr):
    """Sequences one behind the other: rows offsets[b] to offsets[b + 1] of tensors [tokens, heads, D]."""
    block = tl.program_id(0)
    head = tl.program_id(1)
    batch = tl.program_id(2)
    first = tl.load(offsets + batch)
    length = tl.load(offsets + batch + 1) - first
    if block * BM >= length:
        return
    rows = block * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    d = tl.arange(0, D)
    begin = first.to(tl.int64) * heads * D + head * D
    step = heads * D
    query = tl.load(q + begin + rows[:, None] * step + d[None, :], mask=(rows < length)[:, None], other=0.0)
    highest = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    result = tl.zeros([BM, D], tl.float32)
    last = length
    if CAUSAL:
        last = tl.minimum((block + 1) * BM, length)
    for start in range(0, last, BN):
        at = start + columns
        key = tl.load(k + begin + at[None, :] * step + d[:, None], mask=(at < length)[None, :], other=0.0)
        s = tl.dot(query, key) * (scale * LOG2E)
        seen = (at < length)[None, :]
        if CAUSAL:
            seen = seen & (rows[:, None] >= at[None, :])
        s = tl.where(seen, s, -float("inf"))
        higher = tl.maximum(highest, tl.max(s, axis=1))
        p = tl.exp2(s - higher[:, None])
        fade = tl.exp2(highest - higher)
        total = total * fade + tl.sum(p, axis=1)
        value = tl.load(v + begin + at[:, None] * step + d[None, :], mask=(at < length)[:, None], other=0.0)
        result = tl.dot(p.to(value.dtype), value, result * fade[:, None])
        highest = higher
    result = result / total[:, None]
    tl.store(o + begin + rows[:, None] * step + d[None, :], result.to(o.dtype.element_ty),
             mask=(rows < length)[:, None])


def lengths_at_most(batch, longest, seed):
    """Lengths between an eighth of the longest and the longest, the same in every run."""
    lengths, state = [longest], seed
    while len(lengths) < batch:
        state = (1103515245 * state + 12345) % 2**31
        lengths.append(longest // 8 + (state >> 8) % (longest - longest // 8))
    return lengths


def offsets_of(lengths, dtype="i32"):
    ends = [sum(lengths[:n]) for n in range(len(lengths) + 1)]
    return Buffer(len(ends), dtype, lambda torch, generator, device: torch.tensor(ends, device=device))


def varlen_case(dtype, batch, heads, longest, D, causal, tile=(128, 64), num_warps=4, num_stages=3):
    scale, lengths = D**-0.5, lengths_at_most(batch, longest, seed=batch)
    shape = (sum(lengths), heads, D)
    launch = Launch(attention_varlen, (triton.cdiv(longest, tile[0]), heads, batch),
                    [Buffer(shape, dtype), Buffer(shape, dtype), Buffer(shape, dtype),
                     Buffer(shape, dtype, output=True),
                     offsets_of(lengths), scale, heads],
                    BM=tile[0], BN=tile[1], D=D, CAUSAL=causal, num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        import torch

        parts = []
        for first, length in zip(a.offsets.tolist(), lengths):
            query, key, value = (t[first:first + length].transpose(0, 1) for t in (a.q, a.k, a.v))
            seen = seen_by(length, a.q.device, causal)
            results = [attended(query[h], key[h], value[h], scale, dtype, dtype, seen)[0] for h in range(heads)]
            parts.append(together(torch.stack, results, 1))
        return together(torch.cat, parts)

    return Case(f"attention_varlen_{dtype}_d{D}_{'causal' if causal else 'full'}_{batch}x{heads}x{longest}",
                "attention varlen", launch, reference,
                operations=4 * heads * D * sum(scores(n, causal) for n in lengths), unit=KINDS[dtype].unit,
                libraries=libraries.attention_varlen(dtype, longest, scale, causal))


@triton.jit
def attention_decode(q, k, v, partial, lse, pages, lengths, scale, heads_kv, longest, GROUP: tl.constexpr,
                     SPLITS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, PAGED: tl.constexpr):
    """One token of each sequence against its cache. The GROUP heads of Q of one head of K are the rows of a tile;
    the sequence is divided among SPLITS programs, whose results another kernel combines. PAGED: a page of the
    cache has BN tokens, and `pages` lists the pages of each sequence."""
    batch = tl.program_id(0)
    head = tl.program_id(1)
    split = tl.program_id(2)
    rows = tl.arange(0, BM)
    columns = tl.arange(0, BN)
    d = tl.arange(0, D)
    length = tl.load(lengths + batch)
    blocks = tl.cdiv(longest, BN)
    share = tl.cdiv(tl.cdiv(length, BN), SPLITS)
    heads = heads_kv * GROUP
    q_at = q + (batch * heads + head * GROUP + rows)[:, None] * D + d[None, :]
    query = tl.load(q_at, mask=(rows < GROUP)[:, None], other=0.0)
    highest = tl.full([BM], -1.0e30, tl.float32)
    total = tl.zeros([BM], tl.float32)
    result = tl.zeros([BM, D], tl.float32)
    for block in range(split * share, tl.minimum((split + 1) * share, tl.cdiv(length, BN))):
        if PAGED:
            token = tl.load(pages + batch * blocks + block).to(tl.int64) * BN + columns
        else:
            token = batch.to(tl.int64) * longest + block * BN + columns
        at = token * (heads_kv * D) + head * D
        mask = block * BN + columns < length
        key = tl.load(k + at[None, :] + d[:, None], mask=mask[None, :], other=0.0)
        s = tl.where(mask[None, :], tl.dot(query, key) * (scale * LOG2E), -float("inf"))
        higher = tl.maximum(highest, tl.max(s, axis=1))
        p = tl.exp2(s - higher[:, None])
        fade = tl.exp2(highest - higher)
        total = total * fade + tl.sum(p, axis=1)
        value = tl.load(v + at[:, None] + d[None, :], mask=mask[:, None], other=0.0)
        result = tl.dot(p.to(value.dtype), value, result * fade[:, None])
        highest = higher
    place = (batch * heads + head * GROUP + rows) * SPLITS + split
    tl.store(lse + place, highest + tl.log2(total), mask=rows < GROUP)
    result = result / tl.where(total > 0, total, 1.0)[:, None]  # a program may have no keys
    tl.store(partial + place[:, None] * D + d[None, :], result, mask=(rows < GROUP)[:, None])


def decode_case(dtype, batch, heads_kv, group, longest, D, splits, paged=False, BN=64, num_warps=4, num_stages=3):
    scale, lengths = D**-0.5, lengths_at_most(batch, longest, seed=7)
    blocks, heads = triton.cdiv(longest, BN), heads_kv * group
    cache = (batch * blocks * BN if paged else batch * longest, heads_kv, D)

    def page_table(torch, generator, device):
        return torch.randperm(batch * blocks, generator=generator, device=device).view(batch, blocks)

    launch = Launch(attention_decode, (batch, heads_kv, splits),
                    [Buffer((batch, heads, D), dtype), Buffer(cache, dtype), Buffer(cache, dtype),
                     Buffer((batch, heads, splits, D), "f32", output=True),
                     Buffer((batch, heads, splits), "f32", output=True),
                     Buffer((batch, blocks), "i32", page_table),
                     Buffer(batch, "i32", lambda torch, generator, device: torch.tensor(lengths, device=device)),
                     scale, heads_kv, longest],
                    GROUP=group, SPLITS=splits, BM=max(16, triton.next_power_of_2(group)), BN=BN, D=D, PAGED=paged,
                    num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        import torch

        partial = Expected(*(a.q.new_zeros((batch, heads, splits, D)) for _ in range(2)))
        lse = Expected(a.q.new_full((batch, heads, splits), -math.inf), a.q.new_zeros((batch, heads, splits)))
        for b, length in enumerate(lengths):
            share = triton.cdiv(triton.cdiv(length, BN), splits) * BN
            token = torch.arange(longest, device=a.q.device)
            token = a.pages[b][token // BN] * BN + token % BN if paged else token + b * longest
            for split in range(splits):
                here = token[split * share:min((split + 1) * share, length)]
                if len(here) == 0:
                    continue
                key, value = (t[here].transpose(0, 1).repeat_interleave(group, 0) for t in (a.k, a.v))
                for whole, part in zip((partial, lse), attended(a.q[b][:, None, :], key, value, scale, dtype, "f32")):
                    whole.value[b, :, split], whole.allowed[b, :, split] = part.value[:, 0], part.allowed[:, 0]
        return {"partial": partial, "lse": lse}

    moved = sum(lengths) * heads_kv * D * 2 * launch.buffers["k"].bytes // launch.buffers["k"].elements
    title = "paged_decode" if paged else "decode"
    return Case(f"attention_{title}_{dtype}_d{D}_{batch}x{heads_kv}x{group}x{longest}", "attention decode", launch,
                reference,
                bytes=moved, operations=4 * sum(lengths) * heads * D, unit=KINDS[dtype].unit)


@triton.jit
def ragged_attention(q, k, v, o, offsets, scale, heads, longest, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """Of recommenders: SiLU(scale · Q Kᵀ) / longest in place of the softmax, causal, sequences of unequal
    lengths."""
    block = tl.program_id(0)
    head = tl.program_id(1) % heads
    batch = tl.program_id(1) // heads
    first = tl.load(offsets + batch)
    length = (tl.load(offsets + batch + 1) - first).to(tl.int32)
    if block * BM >= length:
        return
    rows = block * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    d = tl.arange(0, D)
    begin = first * heads * D + head * D
    step = heads * D
    query = tl.load(q + begin + rows[:, None] * step + d[None, :], mask=(rows < length)[:, None], other=0.0)
    result = tl.zeros([BM, D], tl.float32)
    for start in range(0, tl.minimum((block + 1) * BM, length), BN):
        at = start + columns
        key = tl.load(k + begin + at[None, :] * step + d[:, None], mask=(at < length)[None, :], other=0.0)
        s = tl.dot(query, key) * scale
        weight = s * tl.sigmoid(s) / longest
        weight = tl.where((rows[:, None] >= at[None, :]) & (at < length)[None, :], weight, 0.0)
        value = tl.load(v + begin + at[:, None] * step + d[None, :], mask=(at < length)[:, None], other=0.0)
        result = tl.dot(weight.to(value.dtype), value, result)
    tl.store(o + begin + rows[:, None] * step + d[None, :], result.to(o.dtype.element_ty),
             mask=(rows < length)[:, None])


def ragged_case(dtype, batch, heads, longest, D, tile=(64, 64), num_warps=4, num_stages=3):
    scale, lengths = D**-0.5, lengths_at_most(batch, longest, seed=11)
    shape = (sum(lengths), heads, D)
    launch = Launch(ragged_attention, (triton.cdiv(longest, tile[0]), batch * heads),
                    [Buffer(shape, dtype), Buffer(shape, dtype), Buffer(shape, dtype),
                     Buffer(shape, dtype, output=True),
                     offsets_of(lengths, "i64"), scale, heads, longest],
                    BM=tile[0], BN=tile[1], D=D, num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        import torch

        parts = []
        for first, length in zip(a.offsets.tolist(), lengths):
            query, key, value = (t[first:first + length].transpose(0, 1) for t in (a.q, a.k, a.v))
            s = scale * (query @ key.transpose(-1, -2))
            o = weighted((s * s.sigmoid()).tril() / longest, value, dtype, dtype, inexact(dtype, D, length))
            parts.append(Expected(*(one.transpose(0, 1) for one in o)))
        return together(torch.cat, parts)

    return Case(f"ragged_attention_{dtype}_d{D}_{batch}x{heads}x{longest}", "ragged attention", launch, reference,
                operations=4 * heads * D * sum(scores(n, True) for n in lengths), unit=KINDS[dtype].unit)


def cases():
    return [
        attention_case("f16", 4, 32, 1024, 64),
        attention_case("f16", 4, 16, 4096, 64),
        attention_case("f16", 4, 16, 4096, 64, causal=True),
        attention_case("bf16", 2, 16, 8192, 64, causal=True, tile=(128, 128)),
        attention_case("f16", 4, 16, 4096, 128),
        attention_case("f16", 4, 16, 4096, 128, causal=True),
        attention_case("bf16", 4, 32, 2048, 128, tile=(128, 128)),
        attention_case("bf16", 1, 32, 8192, 128, causal=True, tile=(128, 128)),
        attention_case("bf16", 8, 24, 4429, 64, tile=(128, 64)),
        attention_case("bf16", 2, 16, 2048, 256, causal=True, tile=(64, 64), num_stages=2),
        attention_case("bf16", 4, 32, 2048, 128, causal=True, group=4),
        attention_case("bf16", 2, 32, 4096, 128, causal=True, group=8, tile=(128, 128)),
        attention_case("f16", 2, 64, 4000, 64, causal=True, group=8),
        attention_case("f8e4m3", 4, 16, 4096, 128, tile=(128, 128)),
        attention_case("f8e5m2", 4, 16, 4096, 64, causal=True),
        attention_case("bf16", 2, 32, 8192, 128, causal=True, window=1024),
        attention_case("bf16", 2, 16, 4096, 128, causal=True, window=4096, modifier="soft cap", group=2),
        attention_case("f16", 4, 16, 2048, 64, modifier="bias"),
        attention_case("bf16", 4, 16, 4096, 64, causal=True, modifier="bias"),
        attention_case("f16", 16, 16, 512, 64, modifier="soft cap", tile=(64, 64)),
        varlen_case("f16", 16, 16, 2048, 64, True),
        varlen_case("bf16", 8, 32, 4096, 128, True, num_warps=8),
        varlen_case("bf16", 32, 12, 1024, 64, False),
        decode_case("bf16", 64, 8, 4, 8192, 128, 4),
        decode_case("bf16", 16, 8, 8, 16384, 128, 8),
        decode_case("f16", 128, 16, 1, 4096, 64, 1),
        decode_case("bf16", 64, 8, 4, 8192, 128, 4, paged=True),
        decode_case("f16", 32, 1, 16, 32768, 128, 32, paged=True, BN=32),
        ragged_case("bf16", 64, 4, 1024, 128),
        ragged_case("f16", 32, 8, 2048, 64, tile=(128, 64)),
    ]


def small():
    tile = {"tile": (32, 32), "num_warps": 4}
    return [
        attention_case("f16", 1, 2, 64, 32, **tile), attention_case("bf16", 1, 2, 96, 32, causal=True, **tile),
        attention_case("f16", 1, 4, 64, 16, causal=True, group=2, **tile), attention_case("bf16", 1, 1, 77, 32, **tile),
        attention_case("f16", 1, 2, 45, 32, causal=True, **tile),
        attention_case("f8e4m3", 1, 1, 64, 32, **tile), attention_case("f8e5m2", 1, 1, 64, 32, causal=True, **tile),
        attention_case("f16", 1, 1, 128, 16, causal=True, window=40, **tile),
        attention_case("f16", 1, 2, 64, 32, modifier="bias", **tile),
        attention_case("bf16", 1, 2, 64, 32, causal=True, modifier="soft cap", **tile),
        varlen_case("f16", 3, 2, 70, 32, True, **tile), varlen_case("bf16", 2, 2, 64, 32, False, **tile),
        decode_case("f16", 2, 2, 4, 128, 32, 2, BN=32), decode_case("bf16", 2, 1, 8, 128, 32, 5, paged=True, BN=16),
        ragged_case("bf16", 2, 2, 70, 32, **tile)]
