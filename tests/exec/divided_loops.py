"""The corpus's kernels with matrix products on the simulator, their loop divided into two, one behind the other: the second one
starts from what the first one carries, as in causal attention whose tiles before the diagonal need no mask. With every number of
stages the outputs have the bits that one stage gives, and nothing is reported. They are those of the undivided loop, but for
two units in the last place in attention, where each loop adds up the partial sums of its threads.

The first loop has no iteration, half of them, or all. The loops stay two by an attribute of the second one, or may be joined
(join_loops), as they are or with a mask in the second one that is always true. Two loops whose first one has half of the
iterations must become one.
"""

import itertools
import os
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import npy  # noqa: E402
import two_loops  # noqa: E402

import stages  # noqa: E402

STAGES = (1, 2, 3)
UNITS = 2  # in the last place


def saved(folder, outputs):
    """The outputs of the last run, as numbers in the same order whose neighbours differ by one."""
    numbers = []
    for name in outputs:
        values, descr, _ = npy.read(os.path.join(folder, "out_%s.npy" % name))
        if descr in ("f2", "f4"):
            letter, sign = ("H", 1 << 15) if descr == "f2" else ("I", 1 << 31)
            bits = [struct.unpack("<" + letter, struct.pack("<" + npy.LETTERS[descr], value))[0] for value in values]
            values = [sign - one if one & sign else one for one in bits]
        numbers += values
    return numbers


def count_loops(lilac, path, case):
    """Of the kernel behind join_loops."""
    done = command.run(lilac, "compile", path, "--num-warps", case["num_warps"], "--print-after", "join_loops", "-o", os.devnull)
    return done.stderr.count("scf.for") if done.returncode == 0 else done.stderr


def check_part(run, folder, outputs, whole, most):
    """None, or how the divided loop differs: from the outputs `whole` by more than `most`, or with another number of stages."""
    wanted = None
    for count in STAGES:
        found, reason, _ = run(count)
        if found is None:
            return "%d stages: %s" % (count, reason)
        if wanted is None and max(abs(a - b) for a, b in zip(saved(folder, outputs), whole)) > most:
            return "the outputs are not those of the undivided loop"
        wanted = wanted or found
        if found != wanted:
            return "%d stages: the outputs differ from those of one stage" % count
    return None


def check(lilac, data, case, k):
    """None, or the reason for a failure; and whether the kernel is refused."""
    source = stages.source_of(data, case)
    with open(source, encoding="utf-8") as file:
        text = file.read()
    with tempfile.TemporaryDirectory() as folder:
        words, outputs = stages.arguments_of(case, k, folder)
        found, reason, refused = stages.run(lilac, source, case, 1, words, outputs, folder)
        if found is None:
            return reason, refused
        whole = saved(folder, outputs)
        path = os.path.join(folder, "divided.ttir")
        for form, (part, number) in itertools.product(two_loops.FORMS, two_loops.PARTS.items()):
            with open(path, "w", encoding="utf-8") as file:
                file.write(two_loops.divided(text, number, form))
            loops = count_loops(lilac, path, case)
            if loops not in {"apart": (2,)}.get(form, (1,) if part == "half" else (1, 2)):
                return "%s, %s in front: %s loops" % (form, part, loops), False
            most = UNITS if "attention" in case["name"] else 0
            reason = check_part(lambda count: stages.run(lilac, path, case, count, words, outputs, folder), folder, outputs,
                                whole, most)
            if reason:
                return "%s, %s in front: %s" % (form, part, reason), False
    return None, False


def main():
    arguments = command.parse_arguments(__doc__)
    cases = command.read_cases(arguments.data)
    failures, count = [], 0
    for name in arguments.names or stages.KERNELS:
        k = stages.KERNELS[name][-1]
        reason, refused = check(arguments.lilac, arguments.data, cases[name], k)
        print("%-26s K = %-5s %s" % (name, k, "SKIPPED: " + reason.split("\n")[0] if refused else
                                     "FAILED: " + reason if reason else "ok"))
        count += not refused
        failures += [name] if reason and not refused else []
    if count == 0:
        sys.exit(command.SKIPPED)
    command.finish(failures, count, "kernels with divided loops")


if __name__ == "__main__":
    main()
