#!/usr/bin/env python3
"""The attainable speed of the corpus' reductions on this GPU: hand-written kernels, lilac's and Triton's.

    python3 bench/reduce_floor.py LIBLILAC [--cubin FILE] [--json FILE] [--markdown FILE]

For each reduction of the corpus at full size, with the same grid, block and launch: the kernels of
bench/reduce_floor.cu (an empty kernel, the memory traffic of the tile and the reduction, each by several
methods), Triton's kernel, lilac's, and lilac's with loads with `eviction_policy="evict_first"`.

The kernels are timed as in bench/gpu.py, one after another in each round: with 256 MiB written before each
launch, and with 256 MiB read. The last column is the time of a plain read after 256 MiB were written and
the kernel has run: it contains the work that the kernel leaves to the next one. Every reduction is checked first.
"""

import re
import sys

import floor

# A thread's vectors of 16 bytes.
CASES = {"reduce_64x64_axis0": 8, "reduce_16x256_axis1": 8, "reduce_128x128_axis0": 32}


def evict_first(ptx):
    """lilac's PTX with loads that are the first to leave the first-level cache."""
    return re.sub(r"ld\.global\.v", "ld.global.L1::evict_first.v", ptx)


def measure(case):
    """Rows of the report."""
    case.add_lilac("evict_first", evict_first)
    vectors, shape = CASES[case.name], case.name.split("_")[1]
    for name in case.hand_written(rf"nothing|bulk_{vectors}|read_{vectors}(_\w+)?"
                                  rf"|(read|traffic|reduce)_{shape}\w*"):
        case.add_hand_written(name, 2048 * vectors if "bulk" in name else 0)
    case.check("triton|lilac|before|reduce")
    written, read = case.time(clean=False), case.time(clean=True)
    again = case.time(clean=False, then=f"read_{vectors}")
    return [{**case.row(name), "written_us": written[name], "read_us": read[name],
             "then_read_again_us": again[name][0],
             "written_speed": written["triton"][0] / written[name][0],
             "read_speed": read["triton"][0] / read[name][0]} for name in case.kernels]


def table(rows):
    lines = ["| case | kernel | registers | after a write: µs | rounds | Triton's / this "
             "| after a read: µs | rounds | Triton's / this | then x read again: µs |",
             "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for r in rows:
        (a, a0, a1), (b, b0, b1) = r["written_us"], r["read_us"]
        lines.append(f"| {r['case']} | {r['kernel']} | {r['registers'] or ''} "
                     f"| {a:.2f} | {a0:.2f}-{a1:.2f} | {r['written_speed']:.2f} "
                     f"| {b:.2f} | {b0:.2f}-{b1:.2f} | {r['read_speed']:.2f} "
                     f"| {r['then_read_again_us']:.2f} |")
    return "\n".join(lines)


def markdown(about, table):
    return f"# What reductions could reach\n\n{table}"


if __name__ == "__main__":
    sys.exit(floor.main(__doc__, "reduce_floor.cu", CASES, measure, lambda rows: (table(rows),),
                        markdown, rounds=5, key="results"))
