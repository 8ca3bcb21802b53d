"""Kernels with products by the number of warps that the program asks for, as cases of lilac.bench, on a machine with a GPU of sm_90:

    python -m lilac.bench bench/warp_counts.py --prepare 16 --rounds 3 --budget 0.02 --first-calls 0 --json times.json

The sweep behind the pass choose_warps (src/engine/warps/choose_warps.c). With LILAC_TRITON_CHOOSE_WARPS=0 each case has the
warps of its name. Results of both: bench/results/h200_warp_counts.md.
"""

from lilac.bench.operators.products.attention import attention_case
from lilac.bench.operators.products.attention_backward import backward_case
from lilac.bench.operators.products.chained import linear_attention_case, two_layers_case
from lilac.bench.operators.products.fused import gated_case
from lilac.bench.operators.products.matmul import matmul_case
from lilac.bench.operators.products.quantized import block_scaled_case, int4_case, weight_only_case
from lilac.bench.operators.products.scaled import scaled_case

ATTENTION = {32: ((128, 64), (128, 128), (256, 64), (64, 128)),
             64: ((64, 64), (64, 128), (128, 32), (128, 64), (128, 128), (256, 64), (256, 128)),
             128: ((64, 64), (64, 128), (128, 64), (128, 128))}  # tiles by the elements of a head
GRADIENTS = {64: ((64, 64), (64, 128), (128, 64), (128, 128)), 128: ((64, 64), (64, 128), (128, 64))}
PRODUCTS = ((128, 128, 64), (128, 256, 64), (256, 128, 64), (64, 256, 64), (256, 64, 64), (128, 128, 32), (128, 64, 64), (64, 128, 64))
WEIGHTS = ((64, 64, 64), (64, 128, 64), (128, 64, 64), (128, 128, 64))


def counts(tile):
    """The numbers of warps that somebody may ask for with such a tile."""
    return [*([2] if tile[0] * tile[1] <= 128 * 64 else []), 4, 8, *([16] if tile[0] * tile[1] >= 128 * 128 else [])]


def shapes():
    """A function of a tile and a number of warps, and a tile."""
    for elements, tiles in ATTENTION.items():
        for tile in tiles:
            for causal in (False, True) if elements == 64 else (False,):
                yield lambda tile, warps, D=elements, causal=causal: attention_case(
                    "bf16", 4, 16, 4096, D, causal=causal, tile=tile, num_warps=warps), tile
    for tile in ((64, 64), (128, 64), (128, 128)):
        yield lambda tile, warps: attention_case("bf16", 4, 16, 2048, 64, modifier="soft cap", tile=tile, num_warps=warps), tile
    for which in ("dkdv", "dq"):
        for elements, tiles in GRADIENTS.items():
            for tile in tiles:
                yield lambda tile, warps, which=which, D=elements: backward_case(
                    which, "bf16", 4, 16, 2048, D, True, tile=tile, num_warps=warps), tile
    for tile in PRODUCTS:
        for size in (4096, 4096, 4096), (1024, 3072, 1024):
            yield lambda tile, warps, size=size: matmul_case("f16", "NN", *size, tile=tile, num_warps=warps, num_stages=3), tile
    for tile in WEIGHTS:
        yield lambda tile, warps: gated_case("f16", 2048, 8192, 4096, tile=tile, num_warps=warps), tile
        yield lambda tile, warps: weight_only_case("f16", "i8", "T", 4096, 4096, 4096, tile=tile, num_warps=warps), tile
        yield lambda tile, warps: int4_case("bf16", 4096, 4096, 4096, tile=tile, num_warps=warps), tile
        yield lambda tile, warps: scaled_case("bf16", "e2m1", 4096, 4096, 4096, tile=tile, num_warps=warps), tile
    for tile in ((64, 128, 128), (128, 128, 128)):
        yield lambda tile, warps: block_scaled_case("f8e4m3", 4096, 7168, 2048, tile=tile, num_warps=warps), tile
    for tile in ((64, 64), (64, 128), (128, 64), (128, 128)):  # rows of a chunk, columns
        yield lambda tile, warps: linear_attention_case(
            "bf16", 8, 16, 4096, 128, 128, chunk=tile[0], columns=tile[1], num_warps=warps), tile
    for tile in ((64, 64), (128, 64), (128, 128)):
        yield lambda tile, warps: two_layers_case("bf16", 65536, 128, 512, tile=tile, num_warps=warps), tile


def cases():
    found = []
    for make, tile in shapes():
        for warps in counts(tile):
            case = make(tile, warps)
            case.name = f"{case.name.split('_tile')[0]}_tile_{'x'.join(map(str, tile))}_{warps}_warps"
            found.append(case)
    return found
