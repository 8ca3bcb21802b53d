"""Kernels whose programs have more and more work, or less and less, as cases of lilac.bench, on a machine with a GPU of sm_90:

    python -m lilac.bench bench/program_order.py --prepare 20 --rounds 3 --budget 0.02 --first-calls 0 --libraries --json times.json

With LILAC_TRITON_ORDER_PROGRAMS=0 they start in the order of their numbers. Results of both: bench/results/h200_program_order.md.
"""

import re

from lilac.bench.operators.products import attention, attention_backward, descriptors

WORK = re.compile(r"_causal_(?!.*window)|attention_varlen|ragged_attention")  # windows have the same work everywhere


def cases():
    found = [case for module in (attention, attention_backward, descriptors) for case in module.cases()]
    return [case for case in found if WORK.search(case.name)]
