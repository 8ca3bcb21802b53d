#!/usr/bin/env python3
"""Every launch of the corpus without a matrix product, compared with Triton's on this GPU.

    python3 bench/corpus.py LIBLILAC [--json FILE] [--markdown FILE] [--only NAME]

This program works as bench/gpu.py does and has its options. In addition to its ten launches it has
transposes, gathers, scans, reductions, rotary embedding and histogram with sort. Integers and moved
values are compared exactly, other values within the tolerances of gpu.py. With --check, exit status 1
also when a launch is slower than 0.98 times Triton's speed.
"""

import sys

from gpu import main
from launches import CORPUS, LAUNCHES

if __name__ == "__main__":
    sys.exit(main({**CORPUS, **LAUNCHES}, slower=1 / 0.98))
