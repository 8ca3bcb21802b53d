#!/usr/bin/env python3
"""Times of products of few iterations with and without tensor maps (src/engine/launch_maps/few_iterations.c), on a GPU of sm_90.

    python3 bench/few_iterations.py [--json FILE] [--table FILE]

The kernel is that of lilac.bench's products, with tiles of Triton's tutorial; sizes are programs × tiles and iterations ×
steps of K. `plain` is the kernel without maps, `maps` the one with maps, `split` the one with maps whose sums several blocks
may divide (the launcher divides them where that pays), `triton` Triton's. The rule that launches the plain kernel is switched
off. Times are the smaller of two medians in milliseconds, with the second-level cache flushed before each launch. It needs the
package lilac, Triton and PyTorch.
"""

import argparse
import contextlib
import json
import math
import statistics

TILES = [((64, 32, 32), 2, 5), ((128, 64, 32), 4, 4), ((64, 128, 64), 4, 4), ((128, 128, 64), 4, 4), ((128, 256, 64), 8, 3)]
KINDS = ("f16", "tf32", "f8e4m3")
GRIDS = ((1, 1), (8, 12), (32, 32))  # rows and columns of tiles
ITERATIONS = (1, 2, 3, 4, 6, 8, 12, 16)
MODES = ("triton", "plain", "maps", "split")
LAUNCHES = 11


def points():
    """(kind, tile, warps, stages, grid, iterations)"""
    for kind in KINDS:
        for tile, warps, stages in TILES:
            if kind != "tf32" or tile[0] * tile[1] * tile[2] <= 64 * 128 * 64:  # what shared memory holds
                for grid in GRIDS:
                    for iterations in ITERATIONS:
                        yield kind, tile, warps, stages, grid, iterations


def compilers(mode):
    import lilac.triton

    return {"triton": contextlib.nullcontext, "plain": lambda: lilac.triton.enabled(launch_maps=False),
            "maps": lambda: lilac.triton.enabled(split_sums=False),
            "split": lambda: lilac.triton.enabled(split_sums=True)}[mode]()


def always_with_maps():
    from lilac.triton import mapped

    usual = mapped.launcher_of
    mapped.launcher_of = lambda plain, signature, facts, *rest: usual(plain, signature, {**facts, "launch_least": None}, *rest)


def time_of(watch, point):
    from lilac.bench.operators.products.matmul import matmul_launch
    from lilac.bench.operators.products.operands import KINDS as KNOWN

    kind, tile, warps, stages, grid, iterations = point
    launch = matmul_launch(kind, "NT", grid[0] * tile[0], grid[1] * tile[1], iterations * tile[2], tile, warps, stages,
                           KNOWN[kind].out, even=False)
    launch.make(0)
    launch()
    found = statistics.median(watch.time(launch, LAUNCHES))
    launch.free()
    return found


def measured():
    import torch

    from lilac.bench.measure import Stopwatch

    always_with_maps()
    watch, rows = Stopwatch(torch), {}
    for modes in (MODES, MODES[::-1]):
        for mode in modes:
            with compilers(mode):
                for point in points():
                    kind, tile, _, _, grid, iterations = point
                    name = f"{kind} {'x'.join(map(str, tile))} {grid[0] * grid[1]} {iterations}"
                    rows.setdefault(name, {}).setdefault(mode, []).append(time_of(watch, point))
    return {name: {mode: min(times) for mode, times in row.items()} for name, row in rows.items()}


def table(rows):
    """Geometric means of the plain kernel's time over that of the one with maps (that may divide sums)."""
    ranges = ((1, 2), (3, 4), (6, 8), (12, 16))
    lines = ["| kind, tile, programs | " + " | ".join(f"{a} and {b} iterations" for a, b in ranges) + " |", "|---|" + 4 * "---|"]
    groups = {}
    for name, row in rows.items():
        *group, iterations = name.split()
        groups.setdefault(", ".join(group), {})[int(iterations)] = row
    for group, row in groups.items():
        cells = [" ".join(f"{math.sqrt(math.prod(row[i]['plain'] / row[i][mode] for i in both)):.3f}"
                          for mode in ("maps", "split")) for both in ranges]
        lines.append(f"| {group} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="where the times go")
    parser.add_argument("--table", metavar="FILE", help="print the table of an earlier run's times")
    options = parser.parse_args()
    if options.table:
        with open(options.table, encoding="utf-8") as file:
            rows = json.load(file)
    else:
        rows = measured()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=0)
    print(table(rows))


if __name__ == "__main__":
    main()
