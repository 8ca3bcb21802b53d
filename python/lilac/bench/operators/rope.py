"""Rotary position embedding: pairs of a head's elements turned by the token's angles."""

import triton
import triton.language as tl

from ..case import Buffer, Case, Launch, within


@triton.jit
def rope_halves(q, cos, sin, out, positions, HEADS, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    """All heads of a token a program; element i is paired with i + SIZE / 2."""
    token = tl.program_id(0).to(tl.int64)
    pair = tl.arange(0, SIZE // 2)
    head = tl.arange(0, BLOCK)
    mask = (head < HEADS)[:, None]
    c = tl.load(cos + token % positions * (SIZE // 2) + pair).to(tl.float32)[None, :]
    s = tl.load(sin + token % positions * (SIZE // 2) + pair).to(tl.float32)[None, :]
    offsets = token * HEADS * SIZE + head[:, None] * SIZE + pair[None, :]
    a = tl.load(q + offsets, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(q + offsets + SIZE // 2, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + offsets, (a * c - b * s).to(out.dtype.element_ty), mask=mask)
    tl.store(out + offsets + SIZE // 2, (b * c + a * s).to(out.dtype.element_ty), mask=mask)


@triton.jit
def rope_in_place(q, k, cos, sin, positions, Q_HEADS: tl.constexpr, K_HEADS: tl.constexpr,
                  SIZE: tl.constexpr):
    """Queries and keys of a token turned where they lie, as training does."""
    token = tl.program_id(0).to(tl.int64)
    pair = tl.arange(0, SIZE // 2)
    c = tl.load(cos + token % positions * (SIZE // 2) + pair).to(tl.float32)[None, :]
    s = tl.load(sin + token % positions * (SIZE // 2) + pair).to(tl.float32)[None, :]
    q_offsets = token * Q_HEADS * SIZE + tl.arange(0, Q_HEADS)[:, None] * SIZE + pair[None, :]
    k_offsets = token * K_HEADS * SIZE + tl.arange(0, K_HEADS)[:, None] * SIZE + pair[None, :]
    a = tl.load(q + q_offsets).to(tl.float32)
    b = tl.load(q + q_offsets + SIZE // 2).to(tl.float32)
    tl.store(q + q_offsets, (a * c - b * s).to(q.dtype.element_ty))
    tl.store(q + q_offsets + SIZE // 2, (b * c + a * s).to(q.dtype.element_ty))
    a = tl.load(k + k_offsets).to(tl.float32)
    b = tl.load(k + k_offsets + SIZE // 2).to(tl.float32)
    tl.store(k + k_offsets, (a * c - b * s).to(k.dtype.element_ty))
    tl.store(k + k_offsets + SIZE // 2, (b * c + a * s).to(k.dtype.element_ty))


@triton.jit
def rope_pairs(q, cos, sin, out, positions, HEADS, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    """Neighbours are paired: a block of heads a program, taken apart and put together."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    pair = tl.arange(0, SIZE // 2)
    mask = (head < HEADS)[:, None]
    c = tl.load(cos + token % positions * (SIZE // 2) + pair).to(tl.float32)[None, :]
    s = tl.load(sin + token % positions * (SIZE // 2) + pair).to(tl.float32)[None, :]
    offsets = token * HEADS * SIZE + head[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    value = tl.load(q + offsets, mask=mask, other=0.0).to(tl.float32)
    a, b = tl.split(value.reshape(BLOCK, SIZE // 2, 2))
    result = tl.join(a * c - b * s, b * c + a * s).reshape(BLOCK, SIZE)
    tl.store(out + offsets, result.to(out.dtype.element_ty), mask=mask)


def turned(values, cos, sin, apart):
    """values [tokens, heads, size]; `apart` tells whether halves are paired, else neighbours."""
    import torch

    tokens, _, size = values.shape
    position = torch.arange(tokens, device=values.device) % len(cos)
    c, s = cos[position][:, None], sin[position][:, None]
    if apart:
        a, b = values[..., :size // 2], values[..., size // 2:]
        return torch.cat([a * c - b * s, b * c + a * s], -1)
    a, b = values[..., 0::2], values[..., 1::2]
    return torch.stack([a * c - b * s, b * c + a * s], -1).reshape(values.shape)


def angles(positions, size, dtype, function):
    def make(torch, generator, device):
        rate = 10000.0 ** (-torch.arange(0, size, 2, device=device, dtype=torch.float64) / size)
        angle = torch.arange(positions, device=device)[:, None] * rate
        return getattr(angle, function)()

    return Buffer((positions, size // 2), dtype, make)


def out_of_place_case(kernel, dtype, tokens, heads, size, positions, angle_dtype="f32", block=None,
                      num_warps=4):
    shape = (tokens, heads, size)
    apart = kernel is rope_halves
    grid = (tokens,) if apart else (tokens, triton.cdiv(heads, block))
    launch = Launch(kernel, grid,
                    [Buffer(shape, dtype), angles(positions, size, angle_dtype, "cos"),
                     angles(positions, size, angle_dtype, "sin"), Buffer(shape, dtype, output=True),
                     positions, heads],
                    SIZE=size, BLOCK=block or triton.next_power_of_2(heads), num_warps=num_warps)
    return Case(f"{launch.name}_{dtype}_{tokens}x{heads}x{size}", "rope", launch,
                lambda a: turned(a.q, a.cos, a.sin, apart), operations=3 * tokens * heads * size,
                tolerance=within(dtype, 4))


def in_place_case(dtype, tokens, q_heads, k_heads, size, positions, num_warps=4):
    launch = Launch(rope_in_place, tokens,
                    [Buffer((tokens, q_heads, size), dtype, "normal", output=True),
                     Buffer((tokens, k_heads, size), dtype, "normal", output=True),
                     angles(positions, size, "f32", "cos"), angles(positions, size, "f32", "sin"),
                     positions],
                    Q_HEADS=q_heads, K_HEADS=k_heads, SIZE=size, num_warps=num_warps)
    return Case(f"rope_in_place_{dtype}_{tokens}x{q_heads}+{k_heads}x{size}", "rope", launch,
                lambda a: {"q": turned(a.q, a.cos, a.sin, True), "k": turned(a.k, a.cos, a.sin, True)},
                operations=3 * tokens * (q_heads + k_heads) * size, tolerance=within(dtype, 4))


def cases():
    return [
        out_of_place_case(rope_halves, "bf16", 8192, 32, 128, 4096),
        out_of_place_case(rope_halves, "f16", 8192, 71, 64, 2048, num_warps=8),
        out_of_place_case(rope_pairs, "f32", 4096, 32, 128, 4096, block=8),
        out_of_place_case(rope_pairs, "bf16", 16384, 8, 128, 8192, angle_dtype="bf16", block=8,
                          num_warps=2),
        in_place_case("bf16", 8192, 32, 8, 128, 4096),
        in_place_case("f16", 16384, 16, 16, 64, 2048, num_warps=2),
    ]
