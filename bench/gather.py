#!/usr/bin/env python3
"""The gather alone, compared with Triton's on this GPU: a thousand gathers between one load and one store.

    python3 bench/gather.py LIBLILAC [--json FILE] [--markdown FILE]

This program works as bench/gpu.py does and has its options. The tensors have 4096 elements and are gathered
along their last axis, whose length varies (the paper's Figure 6); 528 programs of 4 warps run.
"""

import sys

from gpu import main
from launches import gather_rows

TIMES = 1000
SHAPES = ((512, 8), (256, 16), (128, 32), (64, 64), (32, 128), (16, 256))


def launch(rows, columns, dtype):
    return (lambda: gather_rows(528, rows, columns, 1, TIMES, dtype), [])


if __name__ == "__main__":
    sys.exit(main({f"{dtype}_{rows}x{columns}": launch(rows, columns, dtype)
                   for dtype in ("float32", "float16") for rows, columns in SHAPES}))
