"""A small transformer's forward pass, written for Triton: everything but the matrix products is a
kernel of its own. Saves logits, losses and the most likely tokens.

    python transformer.py OUT.npz
"""

import sys

import numpy
import torch
import triton
import triton.language as tl

BATCH, LENGTH, WIDTH, HEADS, HIDDEN, LAYERS, VOCABULARY = 2, 500, 1024, 16, 2730, 4, 10007
HEAD = WIDTH // HEADS


@triton.jit
def embed(tokens, table, out, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    token = tl.load(tokens + row)
    for start in range(0, WIDTH, BLOCK):
        column = start + tl.arange(0, BLOCK)
        mask = column < WIDTH
        tl.store(out + row * WIDTH + column, tl.load(table + token * WIDTH + column, mask=mask), mask=mask)


@triton.jit
def add_rms_norm(x, delta, weight, out, n, eps, BLOCK: tl.constexpr):
    """x += delta; out = x / rms(x) * weight."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < n
    value = tl.load(x + row * n + column, mask=mask, other=0.0).to(tl.float32)
    value += tl.load(delta + row * n + column, mask=mask, other=0.0).to(tl.float32)
    tl.store(x + row * n + column, value.to(x.dtype.element_ty), mask=mask)
    scale = tl.rsqrt(tl.sum(value * value) / n + eps)
    gain = tl.load(weight + column, mask=mask, other=0.0)
    tl.store(out + row * n + column, (value * scale * gain).to(out.dtype.element_ty), mask=mask)


@triton.jit
def rotate(x, cos, sin, length, HEADS: tl.constexpr, HEAD: tl.constexpr):
    """Rotary positions, in place: x is [batch * length, heads, head]."""
    row = tl.program_id(0)
    half: tl.constexpr = HEAD // 2
    pair = tl.arange(0, half)
    angle = (row % length) * half + pair
    c = tl.load(cos + angle)[None, :]
    s = tl.load(sin + angle)[None, :]
    at = x + row * HEADS * HEAD + tl.arange(0, HEADS)[:, None] * HEAD + pair[None, :]
    low = tl.load(at).to(tl.float32)
    high = tl.load(at + half).to(tl.float32)
    tl.store(at, (low * c - high * s).to(x.dtype.element_ty))
    tl.store(at + half, (low * s + high * c).to(x.dtype.element_ty))


@triton.jit
def causal_softmax(scores, out, length, scale, BLOCK: tl.constexpr):
    """Row r of each [length, length] matrix sees columns 0 … r."""
    row = tl.program_id(0)
    matrix = tl.program_id(1).to(tl.int64)
    at = (matrix * length + row) * length
    column = tl.arange(0, BLOCK)
    value = tl.load(scores + at + column, mask=column < length, other=0.0).to(tl.float32) * scale
    value = tl.where(column <= row, value, float("-inf"))
    value = tl.exp(value - tl.max(value))
    value /= tl.sum(value)
    tl.store(out + at + column, value.to(out.dtype.element_ty), mask=column < length)


@triton.jit
def swiglu(gate, up, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    g = tl.load(gate + at, mask=mask, other=0.0).to(tl.float32)
    u = tl.load(up + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + at, (g * tl.sigmoid(g) * u).to(out.dtype.element_ty), mask=mask)


@triton.jit
def swap_heads(x, out, length, HEADS: tl.constexpr, HEAD: tl.constexpr, BLOCK: tl.constexpr):
    """[batch, length, heads, head] to [batch, heads, length, head], a block of positions a program."""
    batch = tl.program_id(1)
    position = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    head = tl.arange(0, HEADS)
    element = tl.arange(0, HEAD)
    source = ((batch * length + position[:, None, None]) * HEADS + head[None, :, None]) * HEAD + element[None, None, :]
    target = ((batch * HEADS + head[:, None, None]) * length + position[None, :, None]) * HEAD + element[None, None, :]
    value = tl.load(x + source, mask=position[:, None, None] < length)
    tl.store(out + target, tl.permute(value, (1, 0, 2)), mask=position[None, :, None] < length)


@triton.jit
def cross_entropy(logits, labels, loss, best, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logits += row * n
    top = -float("inf")
    total = 0.0
    where = 0
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        value = tl.load(logits + column, mask=column < n, other=-float("inf")).to(tl.float32)
        here, index = tl.max(value, 0, return_indices=True)
        where = tl.where(here > top, start + index, where)
        larger = tl.maximum(top, here)
        total = total * tl.exp(top - larger) + tl.sum(tl.exp(value - larger))
        top = larger
    label = tl.load(logits + tl.load(labels + row)).to(tl.float32)
    tl.store(loss + row, tl.log(total) + top - label)
    tl.store(best + row, where)


def forward(model, tokens, labels):
    rows = BATCH * LENGTH
    x = torch.empty(rows, WIDTH, device="cuda", dtype=torch.float16)
    embed[(rows,)](tokens, model["embedding"], x, WIDTH, 512)
    delta = torch.zeros_like(x)
    normal = torch.empty_like(x)

    def norm(weight):
        add_rms_norm[(rows,)](x, delta, weight, normal, WIDTH, 1e-6, triton.next_power_of_2(WIDTH))
        return normal

    def by_head(y):
        out = torch.empty(BATCH, HEADS, LENGTH, HEAD, device="cuda", dtype=y.dtype)
        swap_heads[(triton.cdiv(LENGTH, 8), BATCH)](y, out, LENGTH, HEADS, HEAD, 8)
        return out

    for layer in model["layers"]:
        y = norm(layer["attention_norm"])
        q, k, v = (y @ layer[name] for name in ("query", "key", "value"))
        rotate[(rows,)](q, model["cos"], model["sin"], LENGTH, HEADS, HEAD)
        rotate[(rows,)](k, model["cos"], model["sin"], LENGTH, HEADS, HEAD)
        q, k, v = by_head(q), by_head(k), by_head(v)
        scores = q @ k.transpose(2, 3)
        weights = torch.empty_like(scores)
        causal_softmax[(LENGTH, BATCH * HEADS)](scores, weights, LENGTH, HEAD**-0.5,
                                                triton.next_power_of_2(LENGTH))
        delta = (weights @ v).transpose(1, 2).reshape(rows, WIDTH) @ layer["out"]
        y = norm(layer["mlp_norm"])
        gate, up = y @ layer["gate"], y @ layer["up"]
        hidden = torch.empty_like(gate)
        swiglu[(triton.cdiv(gate.numel(), 1024),)](gate, up, hidden, gate.numel(), 1024)
        delta = hidden @ layer["down"]
    logits = norm(model["norm"]) @ model["head"]
    loss = torch.empty(rows, device="cuda")
    best = torch.empty(rows, device="cuda", dtype=torch.int32)
    cross_entropy[(rows,)](logits, labels, loss, best, VOCABULARY, 4096, num_warps=8)
    return logits, loss, best


def make_model():
    def weight(*shape):
        return (torch.randn(*shape, device="cuda") * shape[0]**-0.5).half()

    def gain():
        return (1 + 0.1 * torch.randn(WIDTH, device="cuda")).half()

    angle = torch.arange(LENGTH)[:, None] * 10000.0**(-torch.arange(HEAD // 2)[None, :] / (HEAD // 2))
    layers = [{"attention_norm": gain(), "query": weight(WIDTH, WIDTH), "key": weight(WIDTH, WIDTH),
               "value": weight(WIDTH, WIDTH), "out": weight(WIDTH, WIDTH), "mlp_norm": gain(),
               "gate": weight(WIDTH, HIDDEN), "up": weight(WIDTH, HIDDEN), "down": weight(HIDDEN, WIDTH)}
              for _ in range(LAYERS)]
    return {"embedding": torch.randn(VOCABULARY, WIDTH, device="cuda").half(), "layers": layers,
            "cos": angle.cos().cuda(), "sin": angle.sin().cuda(), "norm": gain(),
            "head": weight(WIDTH, VOCABULARY)}


def main():
    torch.manual_seed(2026)
    model = make_model()
    tokens = torch.randint(VOCABULARY, (BATCH * LENGTH,), device="cuda", dtype=torch.int32)
    logits, loss, best = forward(model, tokens, torch.roll(tokens, -1))
    numpy.savez(sys.argv[1], logits=logits.float().cpu(), loss=loss.cpu(), best=best.cpu())
    print(f"mean loss {loss.mean().item():.5f}")


if __name__ == "__main__":
    main()
