"""Matrix products of sizes drawn at random, by the kernel of Triton's tutorial with its configurations:

    python -m lilac.bench lilac.bench.operators.random_products --prepare 16 --first-calls 0 --libraries

Each compiler takes the configuration that is fastest under it, as the tutorial's autotuner does. No size was chosen,
and no rule of lilac may be fitted to these cases. LILAC_BENCH_DRAW=SEED:COUNT draws others.
"""

import math
import os
import random

from ..case import Case, Tuned
from .products.matmul import matmul_launch, reference
from .products.libraries import product
from .products.operands import KINDS, multiplied

# Tile, warps and stages: https://triton-lang.org/main/getting-started/tutorials/03-matrix-multiplication.html
TILES = [((128, 256, 64), 8, 3), ((64, 256, 32), 4, 4), ((128, 128, 32), 4, 4), ((128, 64, 32), 4, 4),
         ((64, 128, 32), 4, 4), ((128, 32, 32), 4, 4), ((64, 32, 32), 2, 5), ((32, 64, 32), 2, 5),
         ((128, 256, 128), 8, 3), ((256, 128, 128), 8, 3), ((256, 64, 128), 4, 4), ((64, 256, 128), 4, 4),
         ((128, 128, 128), 4, 4), ((128, 64, 64), 4, 4), ((64, 128, 64), 4, 4), ((128, 32, 64), 4, 4)]

LEAST, MOST = 16, 16384
KINDS_DRAWN = {"f16": 6, "bf16": 6, "f8e4m3": 4, "tf32": 4}   # of 20
LAYOUTS = {"NN": 4, "NT": 4, "TN": 1, "TT": 1}                # of 10
MULTIPLES = {16: 7, 8: 2, 1: 1}                               # of 10: what M, N and K are multiples of


def any_of(draw, weights):
    return draw.choices(list(weights), list(weights.values()))[0]


def drawn(seed, count):
    """`count` different (kind, layout, M, N, K): the logarithms of the sizes are uniform."""
    draw, found = random.Random(seed), {}
    while len(found) < count:
        kind = any_of(draw, KINDS_DRAWN)
        # cuBLAS multiplies 8-bit floats only in this layout, and rows of multiples of 16 bytes.
        layout, multiple = ("NT", 16) if kind == "f8e4m3" else (any_of(draw, LAYOUTS), any_of(draw, MULTIPLES))
        size = [max(LEAST, round(math.exp(draw.uniform(math.log(LEAST), math.log(MOST))) / multiple) * multiple)
                for _ in range(3)]
        found[kind, layout, *size] = None
    return list(found)


def configuration(tile, warps, stages):
    return "x".join(map(str, tile)) + f", {warps} warps, {stages} stages"


def random_case(kind, layout, M, N, K):
    out = KINDS[kind].out
    launch = Tuned({configuration(*one): matmul_launch(kind, layout, M, N, K, *one, out, even=False) for one in TILES})
    return Case(f"random_{kind}_{layout}_{M}x{N}x{K}", f"random {kind}", launch, reference(layout),
                operations=2 * M * N * K, unit=KINDS[kind].unit, tolerance=multiplied(kind, out, K),
                libraries=product(kind, out, layout))


def cases():
    seed, _, count = os.environ.get("LILAC_BENCH_DRAW", "2026:200").partition(":")
    return [random_case(*one) for one in drawn(int(seed), int(count or 200))]
