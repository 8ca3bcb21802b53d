#!/usr/bin/env python3
"""Times of products with at most one program for each multiprocessor, on a GPU of sm_90.

    python3 bench/small_grids.py [--json FILE] [--kinds bf16:NT f16:NN …]

The kernel is that of lilac.bench's products, with tiles that people use; the launcher may divide the sums. `lilac` is with kernels
for one block of a multiprocessor (target.one_block, src/engine/pipeline/depth.c), `usual` the same without them, `triton`
Triton 3.6. Times are the smaller of two medians in microseconds, with the second-level cache flushed before each launch; the
results of `lilac` are compared with those of `usual`, bit by bit. It needs the package lilac, Triton and PyTorch.
"""

import argparse
import contextlib
import json
import math
import statistics
import sys

SIZES = [(512, 4096, 4096), (256, 4096, 4096), (128, 8192, 4096), (64, 8192, 8192), (1024, 2048, 4096), (512, 2048, 8192),
         (384, 6960, 2112), (1024, 1024, 1024), (1024, 1024, 8192), (256, 1024, 4096), (1536, 1536, 4096), (2048, 1024, 2048)]
TILES = [((128, 256, 64), 8, 3), ((128, 128, 64), 4, 4), ((128, 128, 64), 8, 3), ((128, 64, 64), 4, 4), ((64, 128, 64), 4, 4),
         ((64, 256, 64), 4, 4), ((64, 64, 64), 4, 5), ((128, 128, 128), 8, 3)]  # along k of 16-bit types
MULTIPROCESSORS = 132
MODES = ("lilac", "usual", "triton")
LAUNCHES = 11


def points(kind):
    """(sizes, tile, warps, stages)"""
    wide = 2 if kind.startswith("f8") else 1
    for size in SIZES:
        for (m, n, k), warps, stages in TILES:
            if math.ceil(size[0] / m) * math.ceil(size[1] / n) <= MULTIPROCESSORS:
                yield size, (m, n, k * wide), warps, stages


@contextlib.contextmanager
def compiler(mode):
    """`usual`: kernels are loaded without the one for one block."""
    import lilac.triton
    from lilac.triton import mapped

    original = mapped.launcher_of

    def launcher_of(plain, signature, facts, *rest):
        return original(plain, signature, {**facts, "one_block": None}, *rest)

    if mode == "triton":
        yield
        return
    mapped.launcher_of = launcher_of if mode == "usual" else original
    try:
        with lilac.triton.enabled():
            yield
    finally:
        mapped.launcher_of = original


def forget(kernel):
    """Compiled kernels and their launchers; the cache on disk stays."""
    for name, store in vars(kernel).items():
        if name.startswith("device_caches"):
            store.clear()


def measure_one(torch, watch, kind, layout, size, tile, warps, stages):
    from lilac.bench.operators.products.matmul import matmul, matmul_launch
    from lilac.bench.operators.products.operands import KINDS

    launch = matmul_launch(kind, layout, *size, tile, warps, stages, KINDS[kind].out, even=False)
    launch.make()
    row = {"kind": kind, "layout": layout, "size": size, "tile": tile, "warps": warps, "stages": stages}
    results = {}
    for modes in (MODES, MODES[::-1]):
        for mode in modes:
            forget(matmul)
            with compiler(mode):
                mapped = (getattr(launch().metadata, "lilac", None) or {}).get("mapped") or {}
                time = statistics.median(watch.time(launch, LAUNCHES)) * 1e3
                launch.reset()
                launch()
            row[mode] = min(row.get(mode, time), time)
            results[mode] = launch.tensors["c"].used.clone()
            if mode == "lilac":
                row["longer"] = "one_block" in mapped
    same = torch.equal(*(results[mode].view(torch.uint8) for mode in ("lilac", "usual")))
    launch.free()
    return row, same


def mean(ratios):
    return math.exp(statistics.mean(map(math.log, ratios)))


def table(rows):
    """By kernel, and by the best tile of each size."""
    lines = ["| type | kernels with other rings: usual / lilac | all kernels: Triton / lilac | sizes, best tiles: usual / lilac "
             "| Triton / lilac |",
             "|---|---:|---:|---:|---:|"]
    for kind in dict.fromkeys(row["kind"] for row in rows):
        own = [row for row in rows if row["kind"] == kind]
        longer = [row["usual"] / row["lilac"] for row in own if row["longer"]]
        sizes = {}
        for row in own:
            known = sizes.setdefault(tuple(row["size"]), {mode: math.inf for mode in MODES})
            known.update({mode: min(known[mode], row[mode]) for mode in MODES})
        best = [[times[mode] / times["lilac"] for times in sizes.values()] for mode in ("usual", "triton")]
        lines.append(f"| {kind} {own[0]['layout']} | {mean(longer):.3f} ({min(longer):.3f} to {max(longer):.3f}, {len(longer)}) | "
                     f"{mean([row['triton'] / row['lilac'] for row in own]):.3f} | "
                     + " | ".join(f"{mean(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})" for ratios in best) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="where the times go")
    parser.add_argument("--kinds", nargs="+", default=["bf16:NT", "f16:NN", "f8e4m3:NT"], help="types and layouts")
    options = parser.parse_args()
    import torch

    from lilac.bench.measure import Stopwatch

    watch, rows, different = Stopwatch(torch), [], 0
    for kind, layout in (one.split(":") for one in options.kinds):
        for point in points(kind):
            row, same = measure_one(torch, watch, kind, layout, *point)
            different += not same
            rows.append(row)
            print(f"{kind} {layout} {'x'.join(map(str, row['size'])):15} {'x'.join(map(str, row['tile'])):12} {row['warps']} warps "
                  f"{row['lilac']:8.1f} {row['usual']:8.1f} {row['triton']:8.1f} us {'' if same else 'OTHER RESULT'}",
                  file=sys.stderr, flush=True)
    print(table(rows))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=0)
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
