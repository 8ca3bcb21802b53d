"""All gradients of attention, as libraries compute them: three kernels are one case.

    python -m lilac.bench lilac.bench.operators.attention_gradients --first-calls 0 --libraries

    delta = rowsum(O ∘ dO), then dK and dV, then dQ: the kernels of products/attention_backward.py

O and the logarithms of the sums of exponentials are those of the forward pass. A library computes all three gradients
in one call, and O ∘ dO too, so its time is compared with the sum of the three.
"""

from types import SimpleNamespace

import triton
import triton.language as tl

from ..case import Buffer, Case, Expected, Launch, ROUNDING, Sequence, within
from .products import libraries
from .products.attention import attended, scores, seen_by
from .products.attention_backward import backward_case, gradients
from .products.operands import KINDS


@triton.jit
def attention_delta(o, do, delta, ROWS: tl.constexpr, D: tl.constexpr):
    """delta of ROWS rows for each program."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = rows.to(tl.int64)[:, None] * D + tl.arange(0, D)[None, :]
    products = tl.load(o + at).to(tl.float32) * tl.load(do + at).to(tl.float32)
    tl.store(delta + rows, tl.sum(products, axis=1))


class Gradients(Case):
    """O and lse are computed from the inputs when they are made."""

    def make(self, seed=0, device="cuda"):
        super().make(seed, device)
        tensors, forward = self.launch.tensors, self.forward(self.launch.inputs())
        for name in ("o", "lse"):
            tensors[name].used.copy_(forward[name])


def gradients_case(dtype, batch, heads, length, D, causal, group=1, tiles=((64, 128), (128, 64)), num_warps=8,
                   num_stages=2):
    """tiles: of the kernel of dK and dV, and of that of dQ."""
    scale, all_heads = D**-0.5, batch * heads
    shape = (all_heads, length, D)
    words = dict(causal=causal, group=group, num_warps=num_warps, num_stages=num_stages)
    delta = Buffer((all_heads, length), "f32", output=True)
    first = Launch(attention_delta, all_heads * length // 32, [Buffer(shape, dtype), Buffer(shape, dtype), delta],
                   ROWS=32, D=D)
    rest = [backward_case(which, dtype, batch, heads, length, D, tile=tile, **words).launch
            for which, tile in zip(("dkdv", "dq"), tiles)]
    launch = Sequence([first, *rest])

    def forward(a):
        seen = seen_by(length, a.q.device, causal)
        o, lse = zip(*(attended(a.q[head], a.k[head // group], a.v[head // group], scale, dtype, dtype, seen)
                       for head in range(all_heads)))
        return {name: stacked(one.value for one in parts) for name, parts in (("o", o), ("lse", lse))}

    def reference(a):
        products = a.o * a.do
        a = SimpleNamespace(**{**vars(a), "delta": products.sum(-1)})
        found = gradients(a, all_heads, group, length, scale, causal, dtype)
        found["delta"] = Expected(a.delta, (D + 1) * ROUNDING["f32"] * products.abs().sum(-1) + within("f32") *
                                  a.delta.abs())
        return found

    case = Gradients(f"attention_gradients_{dtype}_d{D}_{'causal' if causal else 'full'}"
                     + (f"_gqa{group}" if group > 1 else "") + f"_{batch}x{heads}x{length}", "attention gradients",
                     launch, reference, operations=10 * all_heads * scores(length, causal) * D, unit=KINDS[dtype].unit,
                     libraries=libraries.attention_gradients(dtype, batch, scale, causal))
    case.forward = forward
    return case


def stacked(parts):
    import torch

    return torch.stack(list(parts))


def cases():
    return [gradients_case("f16", 4, 16, 2048, 64, False), gradients_case("bf16", 4, 16, 4096, 64, True),
            gradients_case("f16", 2, 16, 4096, 128, True),
            gradients_case("bf16", 4, 16, 2048, 128, False, tiles=((32, 128), (128, 32))),
            gradients_case("bf16", 2, 32, 2048, 128, True, 4, tiles=((64, 64), (64, 64)))]


def small():
    return [gradients_case(dtype, 1, 2, 64, 32, causal, group, tiles=((32, 32), (32, 32)), num_warps=4)
            for dtype, causal, group in (("f16", False, 1), ("bf16", True, 2))]
