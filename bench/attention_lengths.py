"""Attention by the length of the sequences, as cases of lilac.bench:

    python -m lilac.bench bench/attention_lengths.py --libraries --rounds 3 --budget 0.03 --first-calls 0

Eight programs for each of 132 multiprocessors in each case (16 heads of 8192 columns: 7.8). The time grows with the
iterations of a program; what it would have at none is the beginning and the end of the programs. Beside cuDNN's, that
says whether a difference is in the loop or outside of it. Results: bench/results/h200_attention_start.md.
"""

from lilac.bench.operators.products.attention import attention_case

SIZES = ((512, 264), (1024, 132), (2048, 66), (4096, 33), (8192, 16))  # columns, heads
KERNELS = (  # type, elements, tile, warps, causal
    ("bf16", 128, (128, 128), 8, False),
    ("bf16", 128, (128, 64), 8, False),
    ("bf16", 128, (128, 128), 8, True),
    ("bf16", 64, (128, 64), 4, False),
    ("bf16", 64, (128, 128), 4, False),
    ("bf16", 64, (128, 128), 8, False),
)


def cases():
    made = []
    for kind, elements, tile, warps, causal in KERNELS:
        for columns, heads in SIZES:
            case = attention_case(kind, 1, heads, columns, elements, causal=causal, tile=tile, num_warps=warps)
            case.name += "_tile_%dx%d_%d_warps" % (*tile, warps)
            made.append(case)
    return made
