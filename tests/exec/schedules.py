"""The corpus's kernels with matrix products, and random ones whose copies are tensor copies, on the simulator: the
schedules that their loop can have give the bits of the usual schedule, or the exact sums, and nothing is reported.

Schedules are found by asking for the values of each key in turn: a value that is refused is not asked for together
with others. What is asked for must be in the loop's record (lilac compile --emit tile). The record itself, asked for,
gives the same PTX. Random schedules are run, with LILAC_EVERY_SCHEDULE=1 all of those of the corpus's kernels.
"""

import os
import random
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import specialised  # noqa: E402
import stages  # noqa: E402

# name: a value of K for which the loop has several iterations
KERNELS = {
    "matmul_f16": 256,
    "matmul_bf16_bT": 256,
    "matmul_i8": 256,
    "matmul_tf32": 128,
    "matmul_f16_skinny": 128,
    "int4_matmul": 256,
    "mxfp4_matmul": 256,
    "attention_f16_d64_full": None,
    "attention_f16_d128_causal": None,
}
KEYS = {
    "products": ("wait", "overlap", "in_flight", "delay"),
    "rotate": ("no", "yes"),
    "late": ("no", "yes"),
    "copies": ("first", "behind", "last"),
    "producer": ("no", "yes"),
    "decouple": ("no", "yes"),
    "distance": ("1", "2", "3"),
    "buffers": ("1", "2", "3", "4", "5"),
}
SAMPLE, SAMPLE_OF_RANDOM = 5, 3  # schedules of a kernel
SEEDS = range(5)


def asked(schedule):
    return ["--schedule", schedule] if schedule else []


def options_of(case):
    return ["--num-warps", case["num_warps"], "--num-stages", case["num_stages"]]


def record_of(lilac, path, options, schedule):
    """The record of the loop, as a dictionary; None: refused, or there is none."""
    done = command.run(lilac, "compile", path, "--emit", "tile", "--no-line-info", *options, *asked(schedule))
    if done.returncode != 0:
        if "schedule]" not in done.stderr and "shared" not in done.stderr:
            raise SystemExit("%s with %s:\n%s" % (path, schedule, done.stderr))
        return None
    found = re.findall(r'lilac\.schedule = "([^"]*)"', done.stdout)
    return dict(pair.split("=") for pair in found[0].split(",")) if found else None


def same_ptx(lilac, path, options):
    """Does the usual record, asked for, give the same PTX?"""
    record = record_of(lilac, path, options, None)
    texts = [command.run(lilac, "compile", path, "--no-line-info", *options, *words).stdout
             for words in ([], asked(",".join("%s=%s" % pair for pair in record.items())))]
    return texts[0] == texts[1] != ""


def schedules_of(lilac, path, options):
    """(text, record) of all schedules that are possible, the usual one not among them."""
    found, seen = [], set()

    def visit(given, record, keys):
        if not keys:
            return
        for value in KEYS[keys[0]]:
            if value == record.get(keys[0], "no"):
                visit(given, record, keys[1:])
                continue
            text = ",".join("%s=%s" % pair for pair in (*given.items(), (keys[0], value)))
            other = record_of(lilac, path, options, text)
            if other is None:
                continue
            if any(other.get(key, "no") != wanted for key, wanted in {**given, keys[0]: value}.items()):
                raise SystemExit("%s: %s was asked for, the record is %s" % (path, text, other))
            if tuple(sorted(other.items())) not in seen:
                seen.add(tuple(sorted(other.items())))
                found.append((text, other))
            visit({**given, keys[0]: value}, other, keys[1:])

    usual = record_of(lilac, path, options, None)
    if usual is not None:
        seen.add(tuple(sorted(usual.items())))
        visit({}, usual, list(KEYS))
    return found


def lacks_memory(reason):
    """Is it the refusal of the lowering, which finds no shared memory for an exchange beside the rings?"""
    return re.search(r"needs \d+ bytes of shared memory .* \d+ are available", reason) is not None


def random_schedules(lilac, path, options, source, count):
    """[(text, record)]: keys in order get random values, except for what is refused."""
    found, usual = [], record_of(lilac, path, options, None)
    for _ in range(count if usual else 0):
        given, record = {}, usual
        for key, values in KEYS.items():
            value = source.choice(values)
            if value != record.get(key, "no") and source.random() < 0.6:
                other = record_of(lilac, path, options, ",".join("%s=%s" % pair for pair in (*given.items(), (key, value))))
                if other is not None:
                    given, record = {**given, key: value}, other
                    if any(record.get(name, "no") != wanted for name, wanted in given.items()):
                        raise SystemExit("%s: %s was asked for, the record is %s" % (path, given, record))
        if given:
            found.append((",".join("%s=%s" % pair for pair in given.items()), record))
    return found


def run(lilac, path, case, schedule, words, outputs, folder):
    """The outputs' bytes, or the reason why there are none."""
    saved = [os.path.join(folder, "out_%s.npy" % name) for name in outputs]
    for name, file in zip(outputs, saved):
        words = words + ["--save", "%s=%s" % (name, file)]
    done = command.run(lilac, "run", path, "--grid", ",".join(str(size) for size in case["grid"]), *options_of(case),
                       "--verify", *asked(schedule), *words)
    if done.returncode != 0 or done.stderr:
        return None, done.stderr
    contents = []
    for file in saved:
        with open(file, "rb") as bits:
            contents.append(bits.read())
    return contents, None


def check(lilac, data, case, k, every):
    """The number of schedules, and None or the reason for a failure."""
    path = os.path.join(data, "corpus", case["name"] + ".ttir")
    source = random.Random(case["name"])
    chosen = schedules_of(lilac, path, options_of(case)) if every else \
        random_schedules(lilac, path, options_of(case), source, SAMPLE)
    if not same_ptx(lilac, path, options_of(case)):
        return 1, "its own record gives another PTX"
    with tempfile.TemporaryDirectory() as folder:
        words, outputs = stages.arguments_of(case, k, folder)
        wanted, reason = run(lilac, path, case, None, words, outputs, folder)
        for schedule, _ in chosen if wanted else ():
            found, reason = run(lilac, path, case, schedule, words, outputs, folder)
            if found is None and lacks_memory(reason):
                reason = None
            elif found != wanted:
                return len(chosen), "%s: %s" % (schedule, reason or "the outputs differ")
    return len(chosen), reason


def check_random(lilac, kernel, folder):
    """The same for a kernel of specialised.py, and how many of the schedules have a producer."""
    path = os.path.join(folder, "source.ttir")
    with open(path, "w", encoding="utf-8") as file:
        file.write(kernel.text())
    options = ["--target", "sm_90a", "--num-warps", kernel.warps, "--num-stages", kernel.stages]
    chosen = random_schedules(lilac, path, options, random.Random(str(kernel)), SAMPLE_OF_RANDOM)
    if not chosen:
        return 0, None, 0
    usual, producers = kernel.options(), sum(record.get("producer") == "yes" for _, record in chosen)
    for schedule, _ in chosen:
        kernel.options = lambda: usual + asked(schedule)
        reason, _ = specialised.descriptors.check(lilac, kernel, kernel.text(), folder)
        if reason and not lacks_memory(reason):
            return len(chosen), "%s: %s" % (schedule, reason), producers
    return len(chosen), None if same_ptx(lilac, path, options) else "its own record gives another PTX", producers


def main():
    every = os.environ.get("LILAC_EVERY_SCHEDULE") == "1"
    arguments = command.parse_arguments(__doc__)
    cases = command.read_cases(arguments.data)
    failures, count = [], 0
    for name in arguments.names or KERNELS if arguments.names != ["random"] else ():
        number, reason = check(arguments.lilac, arguments.data, cases[name], KERNELS[name], every)
        print("%-26s %3d schedules  %s" % (name, number, "FAILED: " + reason if reason else "ok"), flush=True)
        count += number
        if reason:
            failures.append(name)
    producers = 0
    random_kernels = [make(seed) for seed in SEEDS for make in (specialised.Kernel, specialised.Delayed)]
    for kernel in random_kernels if arguments.names in ([], ["random"]) else ():
        with tempfile.TemporaryDirectory() as folder:
            number, reason, some = check_random(arguments.lilac, kernel, folder)
        print("%s: %d schedules  %s" % (kernel, number, "FAILED: " + reason if reason else "ok"), flush=True)
        count += number
        producers += some
        if reason:
            failures.append(str(kernel))
    if arguments.names in ([], ["random"]) and producers == 0:
        failures.append("no random schedule with a producer")
    command.finish(failures, count, "launches with other schedules")


if __name__ == "__main__":
    main()
