"""Products whose operands are products: linear attention in chunks, the chunks of a state-space model (Mamba 2), two
layers of a network in one kernel, products with a Gram matrix."""

import triton
import triton.language as tl

from ...case import Buffer, Case, Expected, Launch, ROUNDING, within
from .operands import KINDS, inexact, operand, spread, through, together


@triton.jit
def linear_attention(q, k, v, o, length, heads, scale, DECAY: tl.constexpr, CHUNK: tl.constexpr, D: tl.constexpr,
                     DV: tl.constexpr):
    """A head and DV columns of V for each program; the state S = Σ kᵀ v stays in registers.

        O = (Q Kᵀ ⊙ causal) V + Q S      S ← γᶜʰᵘⁿᵏ S + Kᵀ V

    DECAY: a head's γ is 1 - 2^(-5 - head), and weights fade with the distance."""
    head = tl.program_id(0)
    columns = tl.program_id(1) * DV + tl.arange(0, DV)
    values = tl.num_programs(1) * DV
    i = tl.arange(0, CHUNK)
    d = tl.arange(0, D)
    if DECAY:
        fade = tl.log2(1 - tl.exp2(-5.0 - (head % heads).to(tl.float32)))
    else:
        fade = 0.0
    distance = (i[:, None] - i[None, :]).to(tl.float32)
    mask = tl.where(distance >= 0, tl.exp2(fade * distance), 0.0)
    state = tl.zeros([D, DV], tl.float32)
    for start in range(0, length, CHUNK):
        at = head.to(tl.int64) * length + start
        query = tl.load(q + (at + i)[:, None] * D + d[None, :])
        key_t = tl.load(k + (at + i)[None, :] * D + d[:, None])
        value = tl.load(v + (at + i)[:, None] * values + columns[None, :])
        weights = tl.dot(query, key_t) * scale * mask
        inner = tl.dot(weights.to(value.dtype), value)
        outer = tl.dot(query, state.to(query.dtype)) * scale * tl.exp2(fade * (i + 1).to(tl.float32))[:, None]
        tl.store(o + (at + i)[:, None] * values + columns[None, :], (inner + outer).to(o.dtype.element_ty))
        faded = (key_t.to(tl.float32) * tl.exp2(fade * (CHUNK - 1 - i).to(tl.float32))[None, :]).to(key_t.dtype)
        state = state * tl.exp2(fade * CHUNK) + tl.dot(faded, value)


def linear_attention_case(dtype, batch, heads, length, D, V, decay=False, chunk=64, columns=64, num_warps=4,
                          num_stages=2):
    all_heads, scale = batch * heads, D**-0.5
    launch = Launch(linear_attention, (all_heads, V // columns),
                    [Buffer((all_heads, length, D), dtype), Buffer((all_heads, length, D), dtype),
                     Buffer((all_heads, length, V), dtype), Buffer((all_heads, length, V), dtype, output=True),
                     length, heads,
                     scale],
                    DECAY=decay, CHUNK=chunk, D=D, DV=columns, num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        import torch

        at = torch.arange(length, device=a.q.device)
        distance = (at[:, None] - at[None, :]).double()
        same = at[:, None] // chunk == at[None, :] // chunk
        results = []
        for head in range(all_heads):
            gamma = 1 - 2.0 ** (-5 - head % heads) if decay else 1.0
            fade = torch.where(distance >= 0, gamma ** distance.clamp_min(0), 0.0)
            results.append(linearly(a.q[head], a.k[head], a.v[head], scale * fade, same, decay, dtype))
        return together(torch.stack, results)

    steps = length // chunk
    operations = 2 * all_heads * steps * (chunk * chunk * (D * (V // columns) + V) + 2 * chunk * D * V)
    return Case(f"{'retention' if decay else 'linear_attention'}_{dtype}_{batch}x{heads}x{length}x{D}x{V}",
                "linear attention", launch, reference, operations=operations, unit=KINDS[dtype].unit)


def linearly(query, key, value, scale, same, decay, dtype):
    """Expected((scale ⊙ Q Kᵀ) V), what is allowed by `spread`. Three things are rounded. Within a chunk (`same`), the
    weights (scale ⊙ Q Kᵀ)ᵢⱼ. Before it, the state, S = Σⱼ kⱼᵀ vⱼ: the error is Σₑ qₑ Sₑ δₑ, and for random signs of V,
    Sₑ² is expected to be Σⱼ (kⱼₑ vⱼ)², so the squares sum to Σⱼ (Σₑ (qₑ kⱼₑ)²) vⱼ². Under a decay, the faded keys:
    Σⱼ Σₑ qₑ kⱼₑ δⱼₑ vⱼ, whose squares have the same sum. The errors of sums in f32 are relative to the same sizes."""
    u, relative = ROUNDING[dtype], inexact(dtype, query.shape[-1], key.shape[-2])
    weights = scale * (query @ key.T)
    terms = scale * ((query * query) @ (key * key).T)**0.5
    here = ((u + relative) * weights)**2 + (relative * terms)**2
    before = (2 if decay else 1) * ((u + relative) * terms)**2
    errors = (here * same + before * ~same)**0.5
    result = weights @ value
    return Expected(result, spread(errors, value) + within(dtype) * abs(result))


@triton.jit
def chunk_state(x, b, decay, dt, states, length, heads, P: tl.constexpr, N: tl.constexpr, CHUNK: tl.constexpr,
                BK: tl.constexpr):
    """Of a chunk of a head, Σ exp(decay_last - decay_i) dt_i x_iᵀ b_i: P × N. b is shared by the heads."""
    chunk = tl.program_id(0)
    head = tl.program_id(1)
    batch = tl.program_id(2)
    p = tl.arange(0, P)
    n = tl.arange(0, N)
    first = batch * length + chunk * CHUNK
    last = tl.load(decay + (first + CHUNK - 1) * heads + head)
    total = tl.zeros([P, N], tl.float32)
    for start in range(0, CHUNK, BK):
        at = first + start + tl.arange(0, BK)
        x_t = tl.load(x + at[None, :] * (heads * P) + head * P + p[:, None])
        rows = tl.load(b + at[:, None] * N + n[None, :])
        weight = tl.exp(last - tl.load(decay + at * heads + head)) * tl.load(dt + at * heads + head)
        total = tl.dot(x_t, (rows.to(tl.float32) * weight[:, None]).to(x_t.dtype), total)
    at = ((batch * tl.num_programs(0) + chunk) * heads + head).to(tl.int64) * P * N
    tl.store(states + at + p[:, None] * N + n[None, :], total)


@triton.jit
def chunk_scan(x, b, c, decay, dt, states, skip, y, length, heads, P: tl.constexpr, N: tl.constexpr,
               CHUNK: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    """The rows of a chunk: what the state before the chunk contributes, and what the rows up to each row do.

        y_i = exp(decay_i) c_i · state + Σ_{j ≤ i} (c_i · b_j) exp(decay_i - decay_j) dt_j x_j + skip x_i"""
    chunk = tl.program_id(0) // (CHUNK // BM)
    block = tl.program_id(0) % (CHUNK // BM)
    head = tl.program_id(1)
    batch = tl.program_id(2)
    p = tl.arange(0, P)
    n = tl.arange(0, N)
    first = batch * length + chunk * CHUNK
    rows = block * BM + tl.arange(0, BM)
    c_rows = tl.load(c + (first + rows)[:, None] * N + n[None, :])
    decay_rows = tl.load(decay + (first + rows) * heads + head)
    before = states + ((batch * (length // CHUNK) + chunk) * heads + head).to(tl.int64) * P * N
    state_t = tl.load(before + p[None, :] * N + n[:, None]).to(c_rows.dtype)
    total = tl.dot(c_rows, state_t) * tl.exp(decay_rows)[:, None]
    for start in range(0, (block + 1) * BM, BK):
        j = start + tl.arange(0, BK)
        b_t = tl.load(b + (first + j)[None, :] * N + n[:, None])
        weights = tl.dot(c_rows, b_t)
        weights *= tl.exp(decay_rows[:, None] - tl.load(decay + (first + j) * heads + head)[None, :])
        weights *= tl.load(dt + (first + j) * heads + head)[None, :]
        weights = tl.where(rows[:, None] >= j[None, :], weights, 0.0)
        x_rows = tl.load(x + (first + j)[:, None] * (heads * P) + head * P + p[None, :])
        total = tl.dot(weights.to(x_rows.dtype), x_rows, total)
    at = (first + rows)[:, None] * (heads * P) + head * P + p[None, :]
    total += tl.load(x + at).to(tl.float32) * tl.load(skip + head)
    tl.store(y + at, total.to(y.dtype.element_ty))


def state_inputs(batch, length, heads, chunk):
    """(decay, dt): sums, within each chunk, of negative numbers; step sizes."""
    def sums(torch, generator, device):
        steps = torch.rand((batch, length // chunk, chunk, heads), generator=generator, device=device)
        return -(0.05 * steps).cumsum(2).reshape(batch, length, heads)

    return Buffer((batch, length, heads), "f32", sums), Buffer((batch, length, heads), "f32", "uniform")


def chunks_of(t, chunk):
    """[batch, length, …] as [batch, chunks, chunk, …]."""
    return t.reshape(t.shape[0], -1, chunk, *t.shape[2:])


def chunk_state_case(dtype, batch, length, heads, P, N, chunk=256, BK=64, num_warps=4, num_stages=3):
    decay, dt = state_inputs(batch, length, heads, chunk)
    shape = (batch, length // chunk, heads, P, N)
    launch = Launch(chunk_state, (length // chunk, heads, batch),
                    [Buffer((batch, length, heads, P), dtype), Buffer((batch, length, N), dtype), decay, dt,
                     Buffer(shape, "f32", output=True), length, heads],
                    P=P, N=N, CHUNK=chunk, BK=BK, num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        import torch

        x, b, fade, dt = (chunks_of(t, chunk) for t in (a.x, a.b, a.decay, a.dt))
        weight = (fade[:, :, -1:] - fade).exp() * dt
        return torch.einsum("zcihp,zcin->zchpn", x * weight[..., None], b)

    return Case(f"chunk_state_{dtype}_{batch}x{length}x{heads}x{P}x{N}", "state-space chunks", launch, reference,
                operations=2 * batch * length * heads * P * N, unit=KINDS[dtype].unit,
                tolerance=through(dtype, "f32", chunk))


def chunk_scan_case(dtype, batch, length, heads, P, N, chunk=256, BM=64, BK=64, num_warps=4, num_stages=2):
    decay, dt = state_inputs(batch, length, heads, chunk)
    launch = Launch(chunk_scan, (length // BM, heads, batch),
                    [Buffer((batch, length, heads, P), dtype), Buffer((batch, length, N), dtype),
                     Buffer((batch, length, N), dtype), decay, dt, Buffer((batch, length // chunk, heads, P, N), "f32"),
                     Buffer(heads, "f32"), Buffer((batch, length, heads, P), dtype, output=True), length, heads],
                    P=P, N=N, CHUNK=chunk, BM=BM, BK=BK, num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        import torch

        y = a.skip[:, None] * a.x
        x, b, c, fade, dt, out = (chunks_of(t, chunk) for t in (a.x, a.b, a.c, a.decay, a.dt, y))
        lower = torch.ones((chunk, chunk), dtype=torch.bool, device=y.device).tril()
        products = c @ b.transpose(-1, -2)
        for head in range(heads):
            here = fade[..., head]
            weights = products * (here[..., :, None] - here[..., None, :]).exp().where(lower, 0.0)
            weights = weights * dt[..., None, :, head]
            out[..., head, :] += weights @ x[..., head, :]
            out[..., head, :] += here.exp()[..., None] * (c @ a.states[:, :, head].transpose(-1, -2))
        return y

    pairs = sum(BM * (row + BM) for row in range(0, chunk, BM))
    operations = 2 * batch * heads * (length * P * N + length // chunk * pairs * (N + P))
    return Case(f"chunk_scan_{dtype}_{batch}x{length}x{heads}x{P}x{N}", "state-space chunks", launch, reference,
                operations=operations, unit=KINDS[dtype].unit, tolerance=through(dtype, dtype, chunk + N))


@triton.jit
def two_layers(x, first, second, y, rows_of_x, scale, D: tl.constexpr, H: tl.constexpr, BM: tl.constexpr,
               BH: tl.constexpr):
    """y = relu(scale · x A) B, with H columns of A in blocks: the hidden layer stays in registers."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    mask = (rows < rows_of_x)[:, None]
    value = tl.load(x + rows[:, None] * D + d[None, :], mask=mask, other=0.0)
    total = tl.zeros([BM, D], tl.float32)
    for start in range(0, H, BH):
        h = start + tl.arange(0, BH)
        hidden = tl.maximum(tl.dot(value, tl.load(first + d[:, None] * H + h[None, :])) * scale, 0.0)
        total = tl.dot(hidden.to(value.dtype), tl.load(second + h[:, None] * D + d[None, :]), total)
    tl.store(y + rows[:, None] * D + d[None, :], total.to(y.dtype.element_ty), mask=mask)


def two_layers_case(kind, rows, D, H, tile=(128, 64), num_warps=8, num_stages=2):
    dtype, scale = KINDS[kind].dtype, D**-0.5
    launch = Launch(two_layers, triton.cdiv(rows, tile[0]),
                    [operand(kind, rows, D), operand(kind, D, H), operand(kind, H, D),
                     Buffer((rows, D), dtype, output=True),
                     rows, scale],
                    D=D, H=H, BM=tile[0], BH=tile[1], num_warps=num_warps, num_stages=num_stages)
    return Case(f"two_layers_{kind}_{rows}x{D}x{H}", "two layers", launch,
                lambda a: (scale * (a.x @ a.first)).relu() @ a.second, operations=4 * rows * D * H,
                unit=KINDS[kind].unit,
                tolerance=tf32_or(kind, through(dtype, dtype, H)))


def tf32_or(kind, tolerance):
    """The hidden layer is truncated to tf32, of 11 bits."""
    return 8 * 2.0**-10 if kind == "tf32" else tolerance


@triton.jit
def gram_product(x, y, length, N: tl.constexpr, BK: tl.constexpr):
    """(X Xᵀ) X for each of many matrices N × length, as in iterations towards an orthogonal matrix: first X Xᵀ,
    which stays in registers, then its product with X."""
    begin = tl.program_id(0).to(tl.int64) * N * length
    n = tl.arange(0, N)
    k = tl.arange(0, BK)
    gram = tl.zeros([N, N], tl.float32)
    for start in range(0, length, BK):
        block = tl.load(x + begin + n[:, None] * length + (start + k)[None, :])
        gram = tl.dot(block, tl.trans(block), gram)
    scaled = (gram / length).to(x.dtype.element_ty)
    for start in range(0, length, BK):
        block = tl.load(x + begin + n[:, None] * length + (start + k)[None, :])
        tl.store(y + begin + n[:, None] * length + (start + k)[None, :], tl.dot(scaled, block).to(y.dtype.element_ty))


def gram_case(kind, batch, N, length, BK=64, num_warps=4, num_stages=3):
    dtype = KINDS[kind].dtype
    shape = (batch, N, length)
    launch = Launch(gram_product, batch, [Buffer(shape, dtype), Buffer(shape, dtype, output=True), length], N=N, BK=BK,
                    num_warps=num_warps, num_stages=num_stages)
    return Case(f"gram_product_{kind}_{batch}x{N}x{length}", "two layers", launch,
                lambda a: (a.x @ a.x.transpose(-1, -2) / length) @ a.x, operations=4 * batch * N * N * length,
                unit=KINDS[kind].unit, tolerance=through(dtype, dtype, length))


def cases():
    return [
        linear_attention_case("bf16", 8, 16, 4096, 64, 64),
        linear_attention_case("f16", 4, 16, 4096, 128, 128),
        linear_attention_case("bf16", 8, 8, 2048, 128, 256, decay=True),
        linear_attention_case("f16", 8, 16, 2048, 64, 128, decay=True, chunk=128, num_warps=8),
        chunk_state_case("bf16", 4, 4096, 64, 64, 128),
        chunk_state_case("f16", 8, 2048, 80, 64, 64),
        chunk_scan_case("bf16", 4, 4096, 64, 64, 128),
        chunk_scan_case("f16", 8, 2048, 80, 64, 64, BM=128, num_warps=8),
        chunk_scan_case("bf16", 2, 8192, 32, 128, 128, chunk=128),
        two_layers_case("f16", 262144, 64, 256),
        two_layers_case("bf16", 131072, 128, 512),
        two_layers_case("tf32", 131072, 32, 128, tile=(64, 32), num_warps=4),
        gram_case("bf16", 1024, 128, 512, num_warps=8),
        gram_case("f16", 4096, 64, 256),
    ]


def small():
    return [
        linear_attention_case("f16", 1, 2, 64, 32, 32, chunk=32, columns=32),
        linear_attention_case("bf16", 1, 2, 96, 32, 32, decay=True, chunk=32, columns=16),
        chunk_state_case("f16", 1, 64, 2, 32, 32, chunk=32, BK=16),
        chunk_scan_case("bf16", 1, 64, 2, 32, 32, chunk=64, BM=32, BK=16),
        two_layers_case("f16", 70, 32, 64, tile=(32, 32), num_warps=4),
        two_layers_case("tf32", 40, 16, 32, tile=(32, 16)),
        gram_case("bf16", 2, 32, 64, BK=32)]
