"""Attention and its gradients by num_stages, as cases of lilac.bench, on a machine with a GPU of sm_90:

    python -m lilac.bench bench/attention_stages.py --prepare 16 --rounds 3 --budget 0.02 --first-calls 0 --json times.json

The tiles leave registers for two or three resident blocks, and the rings that num_stages asks for memory for fewer: whether a
further buffer or a further block is worth more (src/engine/pipeline/depth.c). Results: bench/results/h200_attention_stages.md.
"""

from lilac.bench.operators.products.attention import attention_case
from lilac.bench.operators.products.attention_backward import backward_case

FORWARD = ((64, (64, 128)), (128, (64, 64)))  # elements of a head, tile


def cases():
    found = []
    for stages in (3, 4):
        for causal in (False, True):
            made = [(attention_case("bf16", 4, 16, 4096, elements, causal=causal, tile=tile, num_warps=4, num_stages=stages), tile)
                    for elements, tile in FORWARD]
            made.append((backward_case("dkdv", "bf16", 4, 16, 2048, 128, causal, tile=(64, 64), num_warps=4, num_stages=stages),
                         (64, 64)))
            for case, tile in made:
                case.name += f"_tile_{tile[0]}x{tile[1]}_{stages}_stages"
                found.append(case)
    return found
