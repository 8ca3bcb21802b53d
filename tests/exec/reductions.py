"""The reductions of the paper's Table 3 against plain sums on the simulator, and their accesses to
shared memory against what Triton 3.6 took (bench/results/paper_table3.json).

Every seventh reduction is compiled and run; in each family they must take fewer instructions than
Triton's of the same.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path[:0] = [os.path.join(HERE, "..", "support"), os.path.join(ROOT, "bench", "paper")]
import command  # noqa: E402
import reductions  # noqa: E402
import table3  # noqa: E402

EVERY = 7  # prime to the number of layouts, axes and warps, so that all of them come up


def main():
    arguments = command.parse_arguments(__doc__)
    with open(os.path.join(ROOT, "bench", "results", "paper_table3.json"), encoding="utf-8") as file:
        recorded = json.load(file)["cases"]
    failures, count = [], 0
    for family in arguments.names or reductions.PAPER:
        ours = theirs = 0
        for case in list(reductions.cases(family))[::EVERY]:
            count += 1
            instructions, why = table3.run_lilac(arguments.lilac, case)
            if why is not None:
                failures.append(case[0])
                print("%s FAILED: %s" % (case[0], why))
                continue
            ours += instructions
            theirs += recorded[case[0]]["triton"]
        print("%-18s %4d instructions, Triton %4d" % (family, ours, theirs))
        if not ours < theirs:
            failures.append(family)
    command.finish(failures, count, "reductions")


if __name__ == "__main__":
    main()
