#!/usr/bin/env python3
"""The attainable speed of the corpus' gathers on this GPU: hand-written kernels, lilac's and Triton's.

    python3 bench/gather_floor.py LIBLILAC [--cubin FILE] [--json FILE] [--markdown FILE]

For each gather of the corpus at full size, with the same grid, block and parameters:

  nothing          a kernel that returns at once: the time of a launch
  copy, bulk       reads a tile and its indices and writes as many bytes as a gather, by several methods: the
                   time of the memory traffic; persist: by fewer blocks, each with several tiles
  gather           hand-written gathers by several methods (all in bench/gather_floor.cu)
  triton, lilac    both compilers' kernels; lilac first: lilac's, with loads that the second-level
                   cache may drop first

The kernels are timed as in bench/gpu.py, one after another in each round: once with 256 MiB written before each
launch, which the cache then has to write back, and once with 256 MiB read. Every kernel that gathers
is checked against PyTorch first. `reach` is Triton's time over the time of the fastest copy with the
same launch: no kernel that reads its inputs and writes its output has a larger ratio.
"""

import re
import sys

import floor

CASES = ("gather_64x32_axis1", "gather_32x64_axis0", "gather_128x8_axis1")
PERSISTENT = 132 * 8  # blocks of a grid whose blocks process several tiles


def drop_first(ptx):
    """lilac's PTX with loads that the second-level cache may drop before all else."""
    ptx = re.sub(r"ld\.global((?:\.v\d)?\.b\d+ [^;]*);",
                 r"ld.global.L1::no_allocate.L2::cache_hint\1, %policy;", ptx)
    ptx = ptx.replace("\n\t.reg .", "\n\t.reg .b64 %policy;\n\t.reg .", 1)
    return re.sub(r"(\n\tld\.param)", "\n\tcreatepolicy.fractional.L2::evict_first.b64 %policy, 1.0;"
                  r"\1", ptx, count=1)


def measure(case):
    """Rows of the report."""
    case.add_lilac("first", drop_first)
    arguments = {a.name: a.value for a in case.launch.arguments if a.shape is None}
    elements = arguments["R"] * arguments["C"]
    for name in case.hand_written(rf"nothing|(copy|persist|bulk)_{elements}(_\w+)?|{case.name}_\w+"):
        case.add_hand_written(name, 8 * elements if "bulk" in name else 0,
                              PERSISTENT if name.startswith("persist") else None)
    case.check("triton|lilac|before|gather")
    times = {"written": case.time(clean=False), "read": case.time(clean=True)}
    rows = []
    for name in case.kernels:
        row = case.row(name)
        for word, found in times.items():
            row.update(zip((f"{word}_us", f"{word}_least", f"{word}_most"), found[name]))
            row[f"{word}_ratio"] = found["triton"][0] / found[name][0]
        rows.append(row)
    return rows


def table(rows):
    lines = ["| case | kernel | registers | µs, cache written | TB/s | Triton / this | µs, cache read "
             "| TB/s | Triton / this |", "|---|---|---:|---:|---:|---:|---:|---:|---:|"]
    for row in rows:
        cells = []
        for word in ("written", "read"):
            us = row[f"{word}_us"]
            cells += [f"{us:.2f}", f"{row['bytes'] / us / 1e6:.2f}", f"{row[f'{word}_ratio']:.3f}"]
        lines.append(f"| {row['case']} | {row['kernel']} | {row['registers'] or ''} | "
                     + " | ".join(cells) + " |")
    return "\n".join(lines)


def reach(rows):
    """For each case the most that any kernel with its launch could reach, and what lilac does."""
    lines = ["| case | reach, cache written | lilac | reach, cache read | lilac |",
             "|---|---:|---:|---:|---:|"]
    for case in dict.fromkeys(row["case"] for row in rows):
        cells = []
        for word in ("written", "read"):
            own = {row["kernel"]: row[f"{word}_ratio"] for row in rows if row["case"] == case}
            floor = max(ratio for name, ratio in own.items() if re.match("copy|bulk", name))
            cells += [f"{floor:.3f}", f"{own['lilac']:.3f}"]
        lines.append(f"| {case} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def markdown(about, table, reach):
    return (f"# What the corpus' gathers could reach on {about['gpu']}\n\n{reach}\n\n"
            "Reach: Triton's time over that of the fastest hand-written kernel that reads a tile and its\n"
            "indices and writes as much as the gather, with the same grid and blocks. Cache written, read:\n"
            f"256 MiB are written or read before each launch.\n\n{table}")


if __name__ == "__main__":
    sys.exit(floor.main(__doc__, "gather_floor.cu", CASES, measure,
                        lambda rows: (table(rows), reach(rows)), markdown, rounds=7))
