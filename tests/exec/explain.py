"""The budget of an explanation, times the blocks of a launch, is what the simulator counts.

The trip counts come from the arguments. Accesses whose masks are false in some threads have fewer sectors than the
explanation says, which is for masks that are true. tests/explain/counts.c compares each operation.
"""

import json
import os
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
from corpus import launch_shape, launch_words  # noqa: E402

TILES = ["transpose_float16", "transpose_float32", "transpose_int8", "reduce_64x64_axis0",
         "reduce_16x256_axis1", "reduce_128x128_axis0", "gather_64x32_axis1", "gather_32x64_axis0",
         "gather_128x8_axis1", "cumsum_16x256", "histogram_sort"]
SAME = ["instructions", "shuffles", "votes", "selects", "permutes", "barriers", "warp_barriers",
        "group_barriers", "shared_stores", "shared_store_wavefronts", "matrix_loads",
        "matrix_stores", "mmas", "wgmmas"]
MASKED = ["global_loads", "global_stores", "global_load_bytes", "global_store_bytes",
          "global_load_sectors", "global_store_sectors", "atomics"]
EXPECTED = {"gather_64x32_axis1", "gather_32x64_axis0", "gather_128x8_axis1", "histogram_sort"}


def scalars(case):
    words = []
    for argument in case["arguments"]:
        if argument["kind"] == "scalar":
            words += ["--arg", "%s=%s" % (argument["name"], argument["value"])]
    return words


def check(lilac, data, case):
    """What differs, as text."""
    path = os.path.join(data, "corpus", case["name"])
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(path + ".npz") as archive:
            archive.extractall(folder)
        run = command.run(lilac, "run", path + ".ttir", "--json", *launch_shape(case),
                          *launch_words(case, folder))
    explained = command.run(lilac, "explain", path + ".ttir", "--json", *launch_shape(case),
                            *scalars(case))
    if run.returncode != 0 or explained.returncode != 0:
        return run.stderr + explained.stderr
    counters = json.loads(run.stdout)["counters"]
    budget = json.loads(explained.stdout)["budget"]
    if not budget["exact"]:
        return "an execution is not known"
    blocks = 1
    for size in case["grid"]:
        blocks *= size
    counts = {name: budget["counts"].get(name, 0) * blocks for name in SAME + MASKED}
    if case["name"] not in EXPECTED:  # of a gather, an expectation
        SAME_HERE = SAME + ["shared_loads", "shared_load_wavefronts"]
        counts.update({name: budget["counts"].get(name, 0) * blocks for name in SAME_HERE})
    else:
        SAME_HERE = SAME
    wrong = ["%s %d, explained %d" % (name, counters[name], counts[name])
             for name in SAME_HERE if counts[name] != counters[name]]
    full = all(counts[name] == counters[name]
               for name in ("global_load_bytes", "global_store_bytes"))
    wrong += ["%s %d, explained %d" % (name, counters[name], counts[name]) for name in MASKED
              if counters[name] > counts[name] or (full and counters[name] != counts[name])]
    return "\n".join(wrong)


def main():
    arguments = command.parse_arguments(__doc__)
    cases = command.read_cases(arguments.data)
    failures = []
    names = arguments.names or command.LAUNCHES + TILES
    for name in names:
        wrong = check(arguments.lilac, arguments.data, cases[name])
        if wrong:
            failures.append(name)
            print("%s\n%s" % (name, wrong))
    command.finish(failures, len(names), "budgets")


if __name__ == "__main__":
    main()
