"""The corpus's kernels with matrix products on the simulator, their loop divided into two, one behind the other: the second one
starts from what the first one carries, as in causal attention whose tiles before the diagonal need no mask. With every number of
stages the outputs have the bits that one stage gives, and nothing is reported. They are those of the undivided loop, but for
two units in the last place in attention, where each loop adds up the partial sums of its threads.

The first loop has no iteration, half of them, or all.
"""

import os
import re
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import npy  # noqa: E402
import stages  # noqa: E402

LOOP = re.compile(r"^( *)(%\w+)(:\d+)? = scf\.for (%\w+) = (%\w+) to (%\w+) step (%\w+) iter_args\((.*?)\) -> (.*?)^\1}.*?$",
                  re.M | re.S)
PARTS = {"none": 0, "half": 1, "all": 2}  # of two
STAGES = (1, 2, 3)
UNITS = 2  # in the last place


def divided(text, part):
    """The text with its only loop divided."""
    found = list(LOOP.finditer(text))
    assert len(found) == 1, "expected one loop"
    whole = found[0]
    _, result, _, counter, lower, upper, step, carried, rest = whole.groups()
    names = [tuple(one.split(" = ")) for one in carried.split(", ")]
    front = result + "_front"
    lines = ["%d_whole = arith.subi {u}, {l} : i32", "%d_two = arith.constant 2 : i32",
             "%d_steps = arith.divsi %d_whole, {s} : i32", "%d_parts = arith.constant {p} : i32",
             "%d_some = arith.muli %d_steps, %d_parts : i32", "%d_first = arith.divsi %d_some, %d_two : i32",
             "%d_length = arith.muli %d_first, {s} : i32", "%d_middle = arith.addi {l}, %d_length : i32"]
    bounds = "\n".join(lines).format(u=upper, l=lower, s=step, p=part)
    if part == PARTS["all"]:  # a last iteration may be a part of one
        bounds = bounds.replace("%d_middle = arith.addi {l}, %d_length".format(l=lower),
                                "%d_zero = arith.constant 0 : i32\n%d_middle = arith.addi {u}, %d_zero".format(u=upper))

    def loop(name, first, last, inits):
        return "%s:%d = scf.for %s = %s to %s step %s iter_args(%s) -> %s}" % (
            name, len(names), counter, first, last, step, ", ".join("%s = %s" % pair for pair in inits), rest)

    first = loop(front, lower, "%d_middle", names)
    second = loop(result, "%d_middle", upper, [(name, "%s#%d" % (front, i)) for i, (name, _) in enumerate(names)])
    return text[:whole.start()] + "\n".join((bounds, first, second)) + text[whole.end():]


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
        for part, number in PARTS.items():
            with open(path, "w", encoding="utf-8") as file:
                file.write(divided(text, number))
            most = UNITS if "attention" in case["name"] else 0
            reason = check_part(lambda count: stages.run(lilac, path, case, count, words, outputs, folder), folder, outputs,
                                whole, most)
            if reason:
                return "%s in front: %s" % (part, reason), False
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
