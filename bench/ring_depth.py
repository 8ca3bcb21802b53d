#!/usr/bin/env python3
"""Times of products by their number of programs and of iterations, for rules of rings' lengths (src/engine/pipeline/depth.c),
on a GPU of sm_90.

    python3 bench/ring_depth.py --json FILE [--against FILE]

The kernel is that of lilac.bench's products, with tiles of Triton's tutorial; sums are not divided. To compare two rules, run it
with a build of each: --against prints, for each kernel with other rings, the times of that file divided by these. Times are
medians in microseconds, with the second-level cache flushed before each launch. It needs the package lilac, Triton and PyTorch.
"""

import argparse
import json
import math
import statistics

TILES = [((128, 128, 32), 4, 4), ((128, 64, 32), 4, 4), ((64, 128, 32), 4, 4), ((128, 32, 32), 4, 4), ((64, 32, 32), 2, 5),
         ((128, 64, 64), 4, 4), ((64, 128, 64), 4, 4), ((128, 32, 64), 4, 4), ((128, 128, 128), 4, 4), ((64, 256, 32), 4, 4),
         ((64, 256, 128), 4, 4), ((256, 64, 128), 4, 4)]
ROWS = {1: 1, 8: 2, 33: 3, 120: 10, 300: 15, 1200: 30}  # of tiles, by the number of programs
ITERATIONS = (1, 4, 12, 40)


def timed(torch, call, memory, count=7):
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(count)]
    call()
    for first, last in events:
        memory.zero_()
        first.record()
        call()
        last.record()
    torch.cuda.synchronize()
    return round(1e3 * statistics.median(first.elapsed_time(last) for first, last in events), 3)


def measure(torch, kind, tile, warps, stages, memory):
    """A row for each grid: the kernel's shared memory is in each."""
    from lilac.bench.operators.products.matmul import matmul_launch
    from lilac.bench.operators.products.operands import KINDS

    m, n, k = tile
    for programs, rows in ROWS.items():
        for iterations in ITERATIONS:
            launch = matmul_launch(kind, "NT", rows * m, programs // rows * n, iterations * k, tile, warps, stages,
                                   KINDS[kind].out, even=False)
            launch.make()
            made = launch().metadata.lilac["mapped"]
            yield {"kind": kind, "tile": tile, "programs": programs, "iterations": iterations, "shared": made["shared"],
                   "us": timed(torch, launch, memory)}
            launch.free()


def compare(before, rows):
    def key(row):
        return row["kind"], *row["tile"], row["programs"], row["iterations"]

    known, kernels = {key(row): row for row in before}, {}
    for row in rows:
        old = known.get(key(row))
        if old and old["shared"] != row["shared"]:
            kernels.setdefault((row["kind"], *row["tile"], old["shared"], row["shared"]), {})[
                row["programs"], row["iterations"]] = old["us"] / row["us"]
    for (kind, m, n, k, old, new), ratios in kernels.items():
        mean = math.exp(statistics.mean(map(math.log, ratios.values())))
        print(f"{kind} {m}x{n}x{k}, {old} -> {new} bytes: {mean:.3f}; programs: ratios with {ITERATIONS} iterations")
        for programs in ROWS:
            print(f"    {programs:5}:", *(f"{ratios[programs, i]:.2f}" for i in ITERATIONS if (programs, i) in ratios))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", default="ring_depth.json")
    parser.add_argument("--against", help="a file of another build")
    arguments = parser.parse_args()
    import torch

    import lilac.triton

    memory = torch.empty(64 << 20, dtype=torch.int32, device="cuda")
    with lilac.triton.enabled(split_sums=False):
        rows = [row for kind in ("f16", "f8e4m3") for (m, n, k), warps, stages in TILES
                for row in measure(torch, kind, (m, n, k if kind == "f16" else max(k, 64)), warps, stages, memory)]
    with open(arguments.json, "w", encoding="utf-8") as file:
        lines = ",\n".join(json.dumps(row) for row in rows)
        file.write(f'{{"device": "{torch.cuda.get_device_name()}", "rows": [\n{lines}\n]}}\n')
    if arguments.against:
        with open(arguments.against, encoding="utf-8") as file:
            compare(json.load(file)["rows"], rows)


if __name__ == "__main__":
    main()
