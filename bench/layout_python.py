#!/usr/bin/env python3
"""The layout algebra through Python, compared with Triton's binding: microseconds per call on distributed
layouts of 14 input bits. Both are measured alternately in one run.

usage: layout_python.py [--json FILE] [--check] [--c PROGRAM]

Needs the package lilac (pip install ./python) and Triton 3.6 (pip install triton==3.6.0; no GPU) in
one environment. The results are compared before anything is timed. --c names the program bench/layout:
it runs in the same run, and its times in C are compared with Triton's too. --check exits with 1 when lilac
is less than five times as fast anywhere through Python, or less than fifty times in C where that was
promised.
"""

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import timeit

import lilac
import numpy
import triton
from triton._C.libtriton import linear_layout

PROMISED = 5
PROMISED_IN_C = 50
# operation here → operation of bench/layout
IN_C = {"invert_and_compose": "invert and compose", "inverse": "inverse",
        "pseudoinverse": "right inverse, with copies", "compose": "composition", "product": "product"}
PROMISED_OPERATIONS = ("invert_and_compose", "inverse", "compose")
SHAPE = (128, 128)
INPUTS = {"register": 4, "lane": 5, "warp": 3, "block": 2}
ROUNDS, SECONDS = 9, 0.02  # measurements of each side, and the approximate length of one


def random_layout(rng):
    """Bases of a random distributed layout: each input bit is one coordinate bit of a 128x128 tensor."""
    columns = [[1 << bit, 0] for bit in range(7)] + [[0, 1 << bit] for bit in range(7)]
    rng.shuffle(columns)
    bases = {}
    for name, bits in INPUTS.items():
        bases[name], columns = columns[:bits], columns[bits:]
    return bases


class Pair:
    """One layout on both sides."""

    def __init__(self, bases):
        self.ours = lilac.Layout.from_bases(bases, {"dim0": SHAPE[0], "dim1": SHAPE[1]})
        self.theirs = linear_layout.LinearLayout.from_bases(list(bases.items()), ["dim0", "dim1"],
                                                            list(SHAPE), True)


def same(ours, theirs):
    return list(ours.bases.items()) == [(name, [list(row) for row in rows]) for name, rows in theirs.bases]


def cases(pairs):
    """(name, ours, theirs): functions that apply the same operation to each of the pairs."""
    ours = [(a.ours, b.ours, b.ours.inverse()) for a, b in zip(pairs, pairs[1:])]
    theirs = [(a.theirs, b.theirs, b.theirs.invert()) for a, b in zip(pairs, pairs[1:])]
    index = {"register": 9, "lane": 21, "warp": 5, "block": 2}
    for (a, b, inverse), (x, y, other) in zip(ours, theirs):
        assert same(a.invert_and_compose(b), x.invert_and_compose(y)) and same(~a, x.invert())
        assert same(a.compose(inverse), x.compose(other)) and same(a.pseudoinverse(), x.pseudoinvert())
        assert same(a * b, x * y) and a.apply(index) == x.apply(index)
    return [
        ("invert_and_compose", lambda: [a.invert_and_compose(b) for a, b, _ in ours],
         lambda: [a.invert_and_compose(b) for a, b, _ in theirs]),
        ("inverse", lambda: [a.inverse() for a, _, _ in ours], lambda: [a.invert() for a, _, _ in theirs]),
        ("pseudoinverse", lambda: [a.pseudoinverse() for a, _, _ in ours],
         lambda: [a.pseudoinvert() for a, _, _ in theirs]),
        ("compose", lambda: [a.compose(b) for a, _, b in ours], lambda: [a.compose(b) for a, _, b in theirs]),
        ("product", lambda: [a * b for a, b, _ in ours], lambda: [a * b for a, b, _ in theirs]),
        ("apply, by names", lambda: [a.apply(index) for a, _, _ in ours],
         lambda: [a.apply(index) for a, _, _ in theirs]),
        ("equal", lambda: [a == b for a, b, _ in ours], lambda: [a == b for a, b, _ in theirs]),
    ]


def measure(function, calls):
    """Seconds per call in one measurement."""
    once = timeit.timeit(function, number=1)
    number = max(1, int(SECONDS / once))
    return timeit.timeit(function, number=number) / number / calls


def rows(pairs):
    calls = len(pairs) - 1
    for name, ours, theirs in cases(pairs):
        turns = [(measure(ours, calls), measure(theirs, calls)) for _ in range(ROUNDS)]
        mine, other = min(turn[0] for turn in turns) * 1e6, min(turn[1] for turn in turns) * 1e6
        yield {"operation": name, "lilac_us": round(mine, 4), "triton_us": round(other, 4),
               "times_faster": round(other / mine, 1)}


def whole_tensor():
    """Elements a second of table() over 2^24 indices (both coordinates of each)."""
    layout = lilac.Layout.standard((1 << 12, 1 << 12), [0, 1])
    layout = layout * lilac.Layout.zeros(1, "block", "dim0")
    seconds = min(timeit.repeat(layout.table, number=1, repeat=5))
    indices = numpy.random.default_rng(1).integers(0, 1 << 24, 1 << 22).astype(numpy.uint64)
    each = min(timeit.repeat(lambda: layout.apply(indices), number=1, repeat=5))
    return {"table_2^24_elements_a_second": round((1 << 24) / seconds),
            "apply_2^22_random_indices_a_second": round((1 << 22) / each)}


def commit():
    folder = os.path.dirname(os.path.abspath(__file__))
    done = subprocess.run(["git", "-C", folder, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or None


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def add_c(table, program):
    """The times of the C program and those through Python."""
    done = subprocess.run([program, "--json", "-"], capture_output=True, text=True, check=True)
    operations = json.loads(done.stdout)["operations"]
    for row in table:
        if row["operation"] in IN_C:
            row["lilac_in_c_us"] = operations[IN_C[row["operation"]]]["median_ns"] / 1e3
            row["times_faster_in_c"] = round(row["triton_us"] / row["lilac_in_c_us"], 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the results as data (- for standard output)")
    parser.add_argument("--check", action="store_true", help=f"fail below {PROMISED} times")
    parser.add_argument("--c", metavar="PROGRAM", help="bench/layout: its times stand beside these")
    options = parser.parse_args()
    rng = random.Random(20)
    table = list(rows([Pair(random_layout(rng)) for _ in range(17)]))
    if options.c:
        add_c(table, options.c)
    arrays = whole_tensor()
    result = {"lilac": lilac.__version__, "commit": commit(), "triton": triton.__version__,
              "python": platform.python_version(), "processor": processor(), "input_bits": 14,
              "operations": table, "arrays": arrays}
    if options.json != "-":
        print(f"{'operation':<20} {'lilac us':>9} {'triton us':>10} {'times':>7} {'in C us':>9} {'times':>7}")
        for row in table:
            line = (f"{row['operation']:<20} {row['lilac_us']:>9.3f} {row['triton_us']:>10.2f} "
                    f"{row['times_faster']:>7.1f}")
            if "lilac_in_c_us" in row:
                line += f" {row['lilac_in_c_us']:>9.3f} {row['times_faster_in_c']:>7.1f}"
            print(line)
        for name, value in arrays.items():
            print(f"{name.replace('_', ' ')}: {value / 1e9:.2f} billion")
    if options.json:
        text = json.dumps(result, indent=1) + "\n"
        if options.json == "-":
            sys.stdout.write(text)
        else:
            with open(options.json, "w", encoding="utf-8") as file:
                file.write(text)
    slow = [row["operation"] for row in table if row["times_faster"] < PROMISED]
    if options.check and slow:
        sys.exit(f"less than {PROMISED} times as fast: {', '.join(slow)}")
    slow = [row["operation"] for row in table if row["operation"] in PROMISED_OPERATIONS
            and row.get("times_faster_in_c", PROMISED_IN_C) < PROMISED_IN_C]
    if options.check and slow:
        sys.exit(f"less than {PROMISED_IN_C} times as fast in C: {', '.join(slow)}")


if __name__ == "__main__":
    main()
