"""Fits the constants of predicted times (src/explain/cost/predict.c) to the measured times of lilac.bench's cases.

    python bench/predicted_times.py --contents contents.npz --budgets launched.json
    python bench/predicted_times.py --contents contents.npz --budgets plain.json --products h200_products_without_maps.json
    python bench/fit_predicted_times.py launched.json plain.json --markdown bench/results/h200_predicted_times_fit.md

The cases are those that are launched, and again those of them that have tensor maps of the launcher, as kernels without.
The model is that of predict.c, on the segments of the explanations; the program first compares its times with those of
the command. The constants start from PRIORS, and are changed at random where that lowers

    the mean over cases of a smooth count of those beyond 15 %, and of the error
    + a penalty for constants that differ from what was measured, or is expected, of one instruction (PRIORS)

It is done three times: with each half of the cases, whose constants then predict the other half, and with all of
them. The halves are random: a bit of a hash of the name. The first constants are those of predict.c. The errors of all
cases were known when the terms of the model were chosen, so no half is independent of the model itself.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import re

import numpy

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "explain", "predict.c")
MULTIPROCESSORS, SECTOR = 132, 32
FIELDS = ("iterations", "entries", "clocks", "busy", "waits", "program", "tensor", "shared", "global", "special", "operands",
          "shuffles", "sectors", "memory_sectors", "unused_sectors", "partial_sectors", "extremes")
CLASSES = ("integers", "selects, packing", "conversions", "global memory", "special functions")

# Expected values and how far the constants may be from them, as factors: the rates of arithmetic in the CUDA C++
# programming guide, the costs that bench/costs.py measured, copies of 1 GiB; the others are guesses.
PRIORS = {
    "CLOCK": (1.9e9, 0.06), "LAUNCH": (2.5e-6, 0.3), "MEMORY": (4.5e12, 0.05), "L2": (12e12, 0.2), "PART": (0.3, 0.4),
    "ISSUE": (0.25, 0.1), "INTEGER": (0.25, 0.3), "MOVE": (0.4, 0.3), "CONVERT": (0.25, 0.5), "WAVEFRONT": (0.9, 0.25),
    "LINE": (0.8, 0.4), "SHUFFLE": (0.8, 0.3), "ACCESS": (1.5, 0.5), "SPECIAL": (2, 0.12), "CONVERSION": (2, 0.2),
    "TENSOR": (1, 0.25), "OPERANDS": (1, 0.2), "LATENCY": (1, 0.15), "FILL": (1200, 0.4), "BLOCK": (100, 0.7),
    "UNITS": (2.2, 0.25), "ONE": (2.5, 0.35), "BLOCKS": (2, 0.25), "GROWTH": (0.3, 1), "DEVICE": (2.5, 0.3),
    "ROOFS": (5, 0.5), "MIX": (0.3, 0.5), "IMBALANCE": (0.9, 0.15), "DIRTY": (28e6, 0.2), "DIRTY_REACH": (40e6, 0.5),
    "PARTIAL": (0.5, 0.5), "POWER": (0.2, 0.5), "POWER_TIME": (2.5e-4, 0.7),
}  # fmt: skip
WEIGHT = 0.0015  # of the penalty


def half_of(name):
    """The half of the cases that one belongs to: 0 or 1."""
    return hashlib.sha256(name.encode()).digest()[0] % 2


def constants():
    """The constants of predict.c by name."""
    with open(SOURCE, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
    found = {}
    for declaration in re.findall(r"static const double ([^;]*);", text):
        found.update({name: float(value) for name, value in re.findall(r"(\w+) = ([-+.\de]+)", declaration)})
    return {name: found[name] for name in PRIORS}


class Cases:
    """The cases, with the fields of their segments as arrays: a row for each case."""

    def __init__(self, rows):
        self.names = [row["name"] for row in rows]
        self.measured = numpy.array([1e-3 * row["ms"] for row in rows])
        self.predicted = numpy.array([row["budget"]["seconds"] for row in rows])
        self.half = numpy.array([half_of(name) for name in self.names])
        self.blocks = numpy.array([float(row["budget"]["blocks"] * row["num_ctas"]) for row in rows])
        self.resident = numpy.array([float(row["budget"]["resident_blocks"]) for row in rows])
        count = max(len(row["segments"]) for row in rows)

        def table(get):
            return numpy.array([[get(one) for one in row["segments"]] + [0.0] * (count - len(row["segments"]))
                                for row in rows], dtype=float)

        self.of = {name: table(lambda one, name=name: one[name]) for name in FIELDS}
        self.issue = {name: table(lambda one, name=name: one["issue"].get(name, 0)) for name in CLASSES}
        self.issued = table(lambda one: sum(one["issue"].values()))
        self.fills = ((self.of["waits"] > 0) * (self.of["program"] == 0) * self.of["entries"])[:, 1:].sum(1) \
            + (self.of["program"] > 0).any(1)
        # How much longer the longest block is than the mean one, from what the command made of it.
        self.beyond = numpy.zeros(len(rows))
        known = constants()
        one = Model(self, known).longest_block()
        self.beyond = numpy.array([row["budget"]["time"]["imbalance"] for row in rows]) / (known["IMBALANCE"] * one)


def norm(p, *values):
    most = numpy.maximum(functools.reduce(numpy.maximum, values), 1e-30)
    return most * sum((value / most) ** p for value in values) ** (1 / p)


class Model:
    """predict.c with these constants."""

    def __init__(self, cases, c):
        of, issue = cases.of, cases.issue
        self.cases, self.c = cases, c
        program = of["program"]
        functions = issue["special functions"]
        self.parts = [
            c["ISSUE"] * cases.issued,
            c["INTEGER"] * (issue["integers"] + of["extremes"]) + c["MOVE"] * issue["selects, packing"]
            + c["CONVERT"] * issue["conversions"],
            c["WAVEFRONT"] * of["shared"] + c["LINE"] * of["global"] + c["SHUFFLE"] * of["shuffles"]
            + c["ACCESS"] * issue["global memory"],
            c["TENSOR"] * of["tensor"], c["OPERANDS"] * of["operands"],
            c["SPECIAL"] * functions + c["CONVERSION"] * (of["special"] - functions)]
        units = self.units_of(self.parts)
        busy = numpy.minimum(of["busy"], of["clocks"])
        alone = numpy.maximum(units, of["iterations"] * (busy + c["LATENCY"] * (of["clocks"] - busy)))
        sectors = of["memory_sectors"] + c["PART"] * numpy.maximum(of["unused_sectors"], 0)
        most = numpy.maximum(cases.blocks * SECTOR * sectors.sum(1), 1e-9)
        dirty = 1 + c["DIRTY"] * (1 - numpy.exp(-most / c["DIRTY_REACH"])) / most
        memory = sectors * (c["CLOCK"] * SECTOR / c["MEMORY"] * dirty)[:, None]
        l2 = (of["sectors"] + c["PARTIAL"] * of["partial_sectors"]) * c["CLOCK"] * SECTOR / c["L2"]
        # The warp programs, which are executed at the same time, as one segment behind the others.
        own = program == 0
        longest = numpy.max([(alone * (program == k)).sum(1) for k in range(1, int(program.max()) + 2)], axis=0)

        def merged(values, last=None):
            return numpy.column_stack([values * own, (values * ~own).sum(1) if last is None else last])

        self.units = merged(units, self.units_of([(part * ~own).sum(1) for part in self.parts]))
        self.alone, self.memory, self.l2 = merged(alone, longest), merged(memory), merged(l2)

    def units_of(self, parts):
        issue, integers, shared, tensor, operands, special = parts
        return norm(self.c["UNITS"], issue, integers, shared, numpy.maximum(tensor, operands), special)

    def clocks(self, alone, units, memory, l2, resident, active):
        c, every = self.c, resident * active
        growing = numpy.maximum(1, c["BLOCKS"] * (numpy.maximum(resident, 1) / 2) ** c["GROWTH"])
        exponent = numpy.where(resident <= 1, c["ONE"], growing)
        return norm(c["ROOFS"], norm(exponent, alone, resident * units), norm(c["DEVICE"], every * memory, every * l2))

    def wave(self, resident, active):
        """Clocks of blocks that are in the same segments, and in different ones."""
        segments = self.clocks(self.alone, self.units, self.memory, self.l2, resident[:, None], active[:, None])
        begin = self.c["BLOCK"] + self.c["FILL"] * self.cases.fills
        in_step = begin + segments.sum(1)
        mixed = self.clocks(begin + self.alone.sum(1), self.units.sum(1), self.memory.sum(1), self.l2.sum(1), resident, active)
        return in_step, numpy.minimum(mixed, in_step)

    def longest_block(self):
        one = numpy.ones(len(self.cases.names))
        return self.wave(one, one)[0] / self.c["CLOCK"]

    def times(self):
        cases, c = self.cases, self.c
        own = numpy.ceil(cases.blocks / MULTIPROCESSORS)
        resident, single = numpy.minimum(own, cases.resident), own <= cases.resident
        full = resident * MULTIPROCESSORS
        in_step, mixed = self.wave(resident, numpy.where(single, cases.blocks / own, float(MULTIPROCESSORS)))
        waves = numpy.floor(own / resident)
        left = numpy.where(single, 0, numpy.maximum(cases.blocks - waves * full, 0))
        rest = numpy.ceil(left / MULTIPROCESSORS)
        last = self.wave(numpy.maximum(rest, 1), left / numpy.maximum(rest, 1))[0]
        few = waves * in_step + numpy.where(rest > 0, last, 0)
        many = (in_step + c["MIX"] * (mixed - in_step)) * cases.blocks / full
        part = numpy.where(single, 0, numpy.clip((waves - 2) / 6, 0, 1))
        time = (c["LAUNCH"] + (few + part * (many - few)) / c["CLOCK"]
                + c["IMBALANCE"] * cases.beyond * self.longest_block())
        return time + c["POWER"] * self.tensor_time() * time / (time + c["POWER_TIME"])

    def tensor_time(self):
        """Seconds that the tensor cores are busy."""
        return self.cases.of["tensor"].sum(1) * self.cases.blocks / (MULTIPROCESSORS * self.c["CLOCK"])


def loss(cases, c, chosen):
    error = numpy.abs(numpy.log(Model(cases, c).times() / cases.measured))[chosen]
    beyond = 1 / (1 + numpy.exp(-(error - 0.13) / 0.03))
    penalty = sum((numpy.log(c[name] / value) / spread) ** 2 for name, (value, spread) in PRIORS.items())
    return (beyond + 0.7 * numpy.minimum(error, 0.5)).mean() + WEIGHT * penalty


def fit(cases, chosen, seed, rounds):
    """Random search: one, two or four constants at a time."""
    random = numpy.random.default_rng(seed)
    best = {name: value for name, (value, _) in PRIORS.items()}
    names, step, least = list(best), dict.fromkeys(best, 0.15), loss(cases, best, chosen)
    for _ in range(rounds):
        changed = random.choice(names, size=random.choice((1, 2, 4), p=(0.6, 0.24, 0.16)), replace=False)
        new = dict(best)
        for name in changed:
            new[name] *= numpy.exp(random.normal() * step[name])
        value = loss(cases, new, chosen)
        for name in changed:
            step[name] = min(step[name] * 1.3, 0.5) if value < least else max(step[name] * 0.97, 0.01)
        if value < least:
            best, least = new, value
    return {name: float(f"{value:.4g}") for name, value in best.items()}


def within(cases, c, chosen, limit=0.15):
    return int((numpy.abs(Model(cases, c).times() / cases.measured - 1)[chosen] <= limit).sum())


def read(launched, plain):
    """The cases; and which of them are as launched, and which without maps."""
    with open(launched, encoding="utf-8") as first, open(plain, encoding="utf-8") as second:
        rows, others = json.load(first), {row["name"]: row for row in json.load(second)}
    mapped = [row["launch_maps"] for row in rows]
    rows += [others[row["name"]] for row in rows if row["launch_maps"]]
    number = numpy.arange(len(rows))
    plain = numpy.array([not one for one in mapped] + [True] * (len(rows) - len(mapped)))
    return Cases(rows), number < len(mapped), plain


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("launched", help="what predicted_times.py --budgets wrote of the kernels that are launched")
    parser.add_argument("plain", help="likewise of kernels without tensor maps of the launcher")
    parser.add_argument("--rounds", type=int, default=10000, help="of the search")
    parser.add_argument("--markdown", help="write the results")
    options = parser.parse_args()
    cases, launched, plain = read(options.launched, options.plain)
    difference = numpy.abs(Model(cases, constants()).times() / cases.predicted - 1).max()
    if difference > 0.01:
        raise SystemExit(f"the model differs from predict.c by {100 * difference:.1f} %")
    halves = {"one half": cases.half == 0, "the other half": cases.half == 1, "all": cases.half >= 0}
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        found = dict(zip(halves, pool.map(fit, [cases] * 3, halves.values(), (1, 2, 3), [options.rounds] * 3)))
    lines = ["# Fit of the predicted times", "", __doc__.strip().split("\n\n")[4].replace("\n", " "), "",
             "| constants fitted to | kernels | one half within 15 % | the other half | all | all within 30 % |",
             "|---|---|---|---|---|---|"]
    for name, c in found.items():
        for kernels, kind in (("launched", launched), ("without maps", plain)):
            parts = [f"{within(cases, c, chosen & kind)} of {(chosen & kind).sum()}" for chosen in halves.values()]
            lines.append(f"| {name} | {kernels} | {' | '.join(parts)} | {within(cases, c, kind, 0.3)} |")
    lines += ["", "| constant | " + " | ".join(found) + " |", "|---|---|---|---|"]
    lines += [f"| {name} | " + " | ".join(f"{c[name]:.4g}" for c in found.values()) + " |" for name in PRIORS]
    print("\n".join(lines))
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
