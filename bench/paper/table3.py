#!/usr/bin/env python3
"""The paper's Table 3 (reductions in every layout): lilac beside Triton 3.6 and the paper.

    python3 bench/paper/table3.py LILAC [--triton] [--record FILE] [--markdown FILE] [--details]

LILAC is the command. Every reduction of bench/paper/reductions.py is compiled, the stores to and
loads from shared memory in its PTX are counted, and it runs on lilac's simulator against a plain
sum. With --triton (needs Triton 3.6, no GPU) the same text goes through Triton from its stage after
TTGIR; otherwise its counts are those of --record FILE (bench/results/paper_table3.json), which
--triton writes anew.

Exit status 1 when a reduction fails, or a family takes as many instructions as Triton's or more.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "tests" / "support")]
import command  # noqa: E402
import npy  # noqa: E402
from reductions import PAPER, cases, module, shared_instructions  # noqa: E402


def run_lilac(lilac, case, simulate=True):
    """(shared-memory instructions, None) or (None, why it fails)."""
    _, layout, m, n, warps, axis = case
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: os.path.join(folder, name) for name in ("sum.ttgir", "sum.ptx", "in.npy",
                                                               "out.npy", "expected.npy")}
        with open(paths["sum.ttgir"], "w", encoding="utf-8") as file:
            file.write(module(layout, m, n, warps, axis))
        done = command.run(lilac, "compile", paths["sum.ttgir"], "-o", paths["sum.ptx"], "--emit",
                           "ptx", "--target", "sm_90a")
        if done.returncode != 0:
            return None, done.stderr
        with open(paths["sum.ptx"], encoding="utf-8") as file:
            count = shared_instructions(file.read())
        if not simulate:
            return count, None
        # Integers: every order of a sum gives the same number.
        source = random.Random(m * n + axis)
        values = [source.randrange(-1000, 1000) for _ in range(m * n)]
        sums = ([sum(values[i * n:(i + 1) * n]) for i in range(m)] if axis == 1
                else [sum(values[j::n]) for j in range(n)])
        npy.write(paths["in.npy"], "f4", values)
        npy.write(paths["out.npy"], "f4", [-1] * len(sums))
        npy.write(paths["expected.npy"], "f4", sums)
        done = command.run(lilac, "run", paths["sum.ttgir"], "--grid", "1", "--arg",
                           "in=@" + paths["in.npy"], "--arg", "out=@" + paths["out.npy"],
                           "--expect", "out=%s,0" % paths["expected.npy"], "--json", "--verify")
        if done.returncode != 0:
            return None, done.stderr or done.stdout
        report = json.loads(done.stdout)
        if report["findings"] or done.stderr or len(report["expect"]) != 1:
            return None, done.stderr or str(report["findings"])
        return count, None


def run_triton(text):
    """Shared-memory instructions, or None when Triton refuses the text."""
    import triton
    from triton.backends.compiler import GPUTarget
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "sum.ttgir"
        path.write_text(text)
        try:
            compiled = triton.compile(str(path), target=GPUTarget("cuda", 90, 32))
        except Exception as error:  # whatever its passes throw
            print("Triton: %s" % str(error).splitlines()[0], file=sys.stderr)
            return None
    return shared_instructions(compiled.asm["ptx"])


def table(families):
    lines = ["| layout | paper: passed, legacy | linear | lilac: passed | paper: instructions, legacy "
             "| linear | Triton 3.6.0 (compiled) | lilac | lilac / Triton 3.6.0 |",
             "|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for family, f in families.items():
        paper = PAPER[family]
        lines.append("| %s | %s | %s | %d/%d | %s | %s | %s (%s/%d) | %d | %.2f |" % (
            family, paper[0], paper[1], f["passed"], f["total"], paper[2] or "N/A", paper[3],
            f["triton"], f["triton_compiled"], f["total"], f["lilac"],
            f["lilac"] / max(1, f["triton"])))
    return "\n".join(lines)


NOTE = """# Table 3 of the paper: reductions in every layout

Sums of f32 tensors from 16x16 to 128x128 along both axes by 1 to 8 warps, in each family's layouts
(`bench/paper/reductions.py`); stores to and loads from shared memory in the PTX, summed over the
family's cases that both compilers take. The paper's own figures are of fewer cases: its passed/total
columns say how many. Passed: compiled, and equal to a plain sum on lilac's simulator.

"""


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lilac")
    parser.add_argument("--triton", action="store_true")
    parser.add_argument("--record", default=str(HERE.parent / "results" / "paper_table3.json"))
    parser.add_argument("--markdown")
    parser.add_argument("--details", action="store_true", help="cases where Triton needs fewer")
    arguments = parser.parse_args()
    lilac = os.path.abspath(arguments.lilac)
    recorded = {}
    if not arguments.triton:
        recorded = json.loads(pathlib.Path(arguments.record).read_text())["cases"]
    families, counts, bad = {}, {}, False
    for family in PAPER:
        chosen = list(cases(family))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            done = list(pool.map(lambda case: run_lilac(lilac, case), chosen))
        f = families[family] = {"total": len(chosen), "passed": 0, "lilac": 0, "triton": 0,
                                "triton_compiled": 0}
        for case, (count, why) in zip(chosen, done):
            name = case[0]
            if why is not None:
                print("%s FAILED: %s" % (name, why))
                bad = True
            theirs = run_triton(module(*case[1:])) if arguments.triton else recorded[name]["triton"]
            counts[name] = {"lilac": count, "triton": theirs}
            f["passed"] += why is None
            f["triton_compiled"] += theirs is not None
            if theirs is not None and count is not None:
                f["lilac"] += count
                f["triton"] += theirs
                if arguments.details and count > theirs:
                    print("%s: %d, Triton %d: %s" % (name, count, theirs, case[1]))
        bad = bad or not f["lilac"] < f["triton"]
    print(table(families))
    if arguments.triton:
        pathlib.Path(arguments.record).write_text(json.dumps(
            {"families": families, "cases": counts}, indent=1) + "\n")
    if arguments.markdown:
        pathlib.Path(arguments.markdown).write_text(NOTE + table(families) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
