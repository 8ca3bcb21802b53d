"""Element by element: vector add, exponential, dropout."""

import triton
import triton.language as tl

from ..case import Buffer, Case, Launch, within


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    a = tl.load(x + offsets, mask=mask)
    b = tl.load(y + offsets, mask=mask)
    tl.store(out + offsets, a + b, mask=mask)


@triton.jit
def vector_exp(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask).to(tl.float32)
    tl.store(out + offsets, tl.exp(value).to(out.dtype.element_ty), mask=mask)


@triton.jit
def dropout(x, out, n, probability, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask).to(tl.float32)
    keep = tl.rand(seed, offsets) > probability
    value = tl.where(keep, value / (1 - probability), 0.0)
    tl.store(out + offsets, value.to(out.dtype.element_ty), mask=mask)


def philox(torch, seed, offsets):
    """The first word of Philox 4x32-10 at each offset (J. Salmon et al., 2011), as 64-bit integers."""
    low = 0xFFFFFFFF
    c0, c1, c2, c3 = offsets & low, torch.zeros_like(offsets), torch.zeros_like(offsets), \
        torch.zeros_like(offsets)
    k0, k1 = seed & low, seed >> 32 & low
    for _ in range(10):
        # The high half of a product of 32-bit numbers stands in its 64 bits whatever their sign.
        p0, p2 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (p2 >> 32 & low) ^ c1 ^ k0, p2 & low, (p0 >> 32 & low) ^ c3 ^ k1, p0 & low
        k0, k1 = k0 + 0x9E3779B9 & low, k1 + 0xBB67AE85 & low
    return c0


def dropout_reference(a):
    import torch

    word = philox(torch, a.seed, torch.arange(a.n, device=a.x.device))
    magnitude = torch.where(word < 1 << 31, word, (1 << 32) - 1 - word)
    # The kernel compares in f32: the same product, rounded once.
    uniform = (magnitude.float() * 4.6566127342e-10).double()
    probability = torch.tensor(a.probability, dtype=torch.float32).item()
    return torch.where(uniform > probability, a.x / (1 - probability), torch.zeros_like(a.x))


def add_case(dtype, n, block=1024, num_warps=4):
    launch = Launch(vector_add, triton.cdiv(n, block),
                    [Buffer(n, dtype), Buffer(n, dtype), Buffer(n, dtype, output=True), n],
                    BLOCK=block, num_warps=num_warps)
    return Case(f"vector_add_{dtype}_{n}", "vector add", launch, lambda a: a.x + a.y, operations=n,
                tolerance=within(dtype) if dtype[0] in "fb" else 0)


def exp_case(dtype, n, block=1024, num_warps=4):
    launch = Launch(vector_exp, triton.cdiv(n, block),
                    [Buffer(n, dtype), Buffer(n, dtype, output=True), n],
                    BLOCK=block, num_warps=num_warps)
    # |x| < 8, and rounding the exponent costs |x| roundings of the result; ex2.approx costs two.
    return Case(f"vector_exp_{dtype}_{n}", "vector exp", launch, lambda a: a.x.exp(), operations=n,
                tolerance=within(dtype, 12))


def dropout_case(dtype, n, block=1024, num_warps=4):
    launch = Launch(dropout, triton.cdiv(n, block),
                    [Buffer(n, dtype), Buffer(n, dtype, output=True), n, 0.25, 20240229],
                    BLOCK=block, num_warps=num_warps)
    # Ten rounds of two products, two high halves, four exclusive ors and two additions.
    return Case(f"dropout_{dtype}_{n}", "dropout", launch, dropout_reference, operations=100 * n,
                tolerance=within(dtype, 8))


def cases():
    return [
        add_case("f32", 1 << 24),
        add_case("f32", 10_000_019),
        add_case("f16", 1 << 26, block=2048),
        add_case("bf16", 1 << 25, block=4096, num_warps=8),
        add_case("i32", 1 << 24),
        exp_case("f32", 1 << 24),
        exp_case("bf16", 1 << 26, block=2048, num_warps=8),
        exp_case("f16", 33_554_393),
        dropout_case("f32", 1 << 24),
        dropout_case("bf16", 8192 * 5120, block=2048, num_warps=8),
        dropout_case("f16", 12_345_678),
    ]
