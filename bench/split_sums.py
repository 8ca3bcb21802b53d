#!/usr/bin/env python3
"""Times of products whose sums 1, 2, 4 and 8 blocks of a cluster divide (docs/matrix_products.md), on a GPU of sm_90.

    python3 bench/split_sums.py [--seconds N] [--json FILE]

The kernel is that of lilac.bench's products, with tiles of Triton's tutorial; sizes are programs × tiles and iterations ×
steps of K. Each point is checked (its numbers are small and whole, so that sums are exact) and timed with every number of
parts, whatever the launcher's rule says: its recipe is replaced by one that has this number as its best. A number for which
the device has no room is timed as the next smaller one. `whole` is the kernel compiled without split_sums. Times are medians in
microseconds, with the second-level cache flushed before each launch. It needs the package lilac, Triton and PyTorch.
"""

import argparse
import json
import random
import statistics
import time

TILES = [((128, 128, 32), 4, 4), ((128, 64, 64), 4, 4), ((64, 32, 32), 2, 5), ((128, 256, 64), 8, 3),
         ((128, 128, 128), 4, 4), ((128, 32, 64), 4, 4), ((64, 64, 64), 4, 4)]
WIDE = [TILES[0], TILES[1], TILES[3]]  # also of the other kinds
ROWS = {1: 1, 4: 2, 16: 4, 33: 3, 66: 6, 120: 10}  # of tiles, by the number of programs
PARTS = (1, 2, 4, 8)


def points():
    """(kind, tile, warps, stages, programs, iterations)"""
    for tile, warps, stages in TILES:
        for programs in ROWS:
            for iterations in (8, 16, 32, 64, 128, 256):
                yield "f16", tile, warps, stages, programs, iterations
    for (m, n, k), warps, stages in WIDE:
        for programs in (4, 33):
            for iterations in (16, 64, 256):
                yield "f8e4m3", (m, n, 2 * k), warps, stages, programs, iterations
                yield "tf32", (m, n, min(k, 32)), warps, stages, programs, iterations


def launch_of(kind, tile, warps, stages, programs, iterations):
    from lilac.bench.operators.products.matmul import matmul_launch
    from lilac.bench.operators.products.operands import KINDS

    rows = ROWS[programs]
    return matmul_launch(kind, "NT", rows * tile[0], programs // rows * tile[1], iterations * tile[2], tile, warps, stages,
                         KINDS[kind].out, even=False)


class Forced:
    """A launcher that starts as many blocks for each program as `parts` says."""

    parts = 1

    def __init__(self, make, split):
        self.split = split
        self.launchers = {parts: make({"iterations": [[parts]], "divisor": 1, "clocks": 1 << 24, "loads": 0, "bytes": 0})
                          for parts in PARTS}

    def __call__(self, *arguments, **words):
        return self.launchers[Forced.parts](*arguments, **words)

    def __getattr__(self, name):
        return getattr(self.launchers[1], name)


def force():
    """Replaces the rule of the plug-in."""
    from lilac.triton import mapped

    original = mapped.launcher_of

    def launcher_of(plain, signature, kernel, cooperative, counts):
        if not kernel.get("launch_split"):
            return original(plain, signature, kernel, cooperative, counts)
        return Forced(lambda split: original(plain, signature, {**kernel, "launch_split": split}, cooperative, counts),
                      kernel["launch_split"])

    mapped.launcher_of = launcher_of


class Timer:
    def __init__(self, torch):
        self.torch, self.memory = torch, torch.empty(64 << 20, dtype=torch.int32, device="cuda")

    def __call__(self, call, count=9):
        events = [[self.torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(count)]
        call()
        for first, last in events:
            self.memory.zero_()
            self.memory.zero_()
            first.record()
            call()
            last.record()
        self.torch.cuda.synchronize()
        return round(1e3 * statistics.median(first.elapsed_time(last) for first, last in events), 3)


def measure(torch, timed, point):
    import lilac.triton

    row = dict(zip(("kind", "tile", "warps", "stages", "programs", "iterations"), point))
    launch = launch_of(*point)
    launch.make()
    a, b, c = (launch.tensors[name].used for name in "abc")
    for x in (a, b):
        x.copy_(torch.randint(-1, 2, x.shape, device="cuda").float().to(x.dtype))
    expected = (a.float() @ b.float().t()).to(c.dtype)
    with lilac.triton.enabled(split_sums=False):
        row["whole"] = timed(launch)
    with lilac.triton.enabled(split_sums=True):
        for Forced.parts in PARTS:
            c.fill_(7)
            kernel = launch()
            torch.cuda.synchronize()
            row.setdefault("right", []).append(torch.equal(c, expected))
            row[f"parts_{Forced.parts}"] = timed(launch)
        made = kernel.metadata.lilac["mapped"]
        row.update({key: made["launch_split"][key] for key in ("clocks", "loads", "bytes")},
                   **{key: made[key] for key in ("registers", "spills", "shared")})
    if point[0] == "f16":
        row["cublas"] = timed(lambda: torch.mm(a, b.t()))
    launch.free()
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="points that do not fit into this time are left out")
    parser.add_argument("--json", default="split_sums.json")
    arguments = parser.parse_args()
    import torch

    start, rows, timed = time.time(), [], Timer(torch)
    force()
    order = list(points())
    random.Random(5).shuffle(order)
    for point in order:
        if time.time() - start > arguments.seconds:
            print(f"{len(rows)} of {len(order)} points")
            break
        rows.append(measure(torch, timed, point))
        if not all(rows[-1]["right"]):
            print("wrong:", rows[-1])
    with open(arguments.json, "w", encoding="utf-8") as file:
        lines = ",\n".join(json.dumps(row) for row in rows)
        file.write(f'{{"device": "{torch.cuda.get_device_name()}", "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
