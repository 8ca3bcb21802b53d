#!/usr/bin/env python3
"""The gather itself, beside Triton's on this GPU: a thousand of them between one load and one store.

    python3 bench/gather.py LIBLILAC [--json FILE] [--markdown FILE]

As bench/gpu.py, whose options it takes. Tensors of 4096 elements, gathered along their last axis, by
its length (the paper's Figure 6): 528 programs of 4 warps.
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
