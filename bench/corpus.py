#!/usr/bin/env python3
"""Every launch of the corpus that needs no matrix product, beside Triton's on this GPU.

    python3 bench/corpus.py LIBLILAC [--json FILE] [--markdown FILE] [--only NAME]

As bench/gpu.py, whose options it takes, with transposes, gathers, scans, reductions, rotary embedding
and histogram with sort besides its ten. Integers and moved values are compared exactly, the rest
within what gpu.py allows. With --check, exit status 1 also when a launch is slower than 0.98 times
Triton's speed.
"""

import sys

from gpu import main
from launches import CORPUS, LAUNCHES

if __name__ == "__main__":
    sys.exit(main({**CORPUS, **LAUNCHES}, slower=1 / 0.98))
