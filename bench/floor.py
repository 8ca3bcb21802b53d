"""The attainable speed of launches of the corpus: hand-written kernels compared with lilac's and Triton's.

The common part of bench/gather_floor.py and bench/reduce_floor.py. All kernels of a case have the same
parameters. They are timed as in bench/gpu.py, one after another in each round: once with 256 MiB written before
each launch, which the cache then has to write back, and once with 256 MiB read.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import tempfile

import gpu
import report
from driver import assemble
from launches import CORPUS
from library import lilac_at

HERE = pathlib.Path(__file__).resolve().parent
METHOD = ("median over rounds of medians over launches; CUDA events; 256 MiB written, or read, before each "
          "launch; order alternates; all launched by the same driver call")


class Case(gpu.Launched):
    """A launch of the corpus with Triton's kernel, lilac's, and those that are added."""

    def __init__(self, tools, options, name):
        super().__init__(tools, CORPUS[name][0](), options.seed)
        self.tools, self.options, self.name, self.wrong = tools, options, name, []
        self.add_triton()
        self.registers = {"triton": self.compiled.n_regs}

    def add_lilac(self, variant, alter):
        """lilac's kernel as it is, and the `variant` that has the PTX altered."""
        for label, lilac in self.tools["all lilac"].items():
            ptx, metadata, _ = lilac.compile(self.name + ".ttir", self.ttir, self.launch.num_warps, 3)
            for name, text in ((label, ptx), (f"{label} {variant}", alter(ptx))):
                image, count, spills, _, _ = assemble(self.tools["ptxas"], self.tools["device"], text)
                self.add(name, image, metadata["name"], metadata["shared"])
                self.registers[name] = f"{count}+{spills}B" if spills else count

    def hand_written(self, pattern):
        """Names in the cubin."""
        names = {name.decode() for name in re.findall(rb"\.text\.(\w+)", self.tools["floor"])}
        return sorted(name for name in names if re.fullmatch(pattern, name))

    def add_hand_written(self, name, shared=0, grid=None):
        self.add(name, self.tools["floor"], name, shared, grid=grid)

    def check(self, pattern):
        """The kernels whose names begin so do all of the work."""
        for name in self.kernels:
            complaint = self.verdict(name)[2] if re.match(pattern, name) else None
            if complaint:
                self.wrong.append(f"WRONG {self.name} {name}: {complaint}")

    def time(self, clean, then=None):
        """Microseconds of each kernel: median, least and most of the rounds' medians. Of the kernel
        `then` instead, if given, right after each."""
        watch = gpu.stopwatch(self.torch, clean)
        medians = {name: [] for name in self.kernels}
        for number in range(-1, self.options.rounds):
            for name in list(self.kernels)[::1 if number % 2 else -1]:
                launch = self.kernels[name].launch
                times = (watch.time(self.kernels[then].launch, self.options.repeats, launch) if then
                         else watch.time(launch, self.options.repeats))
                if number >= 0:
                    medians[name].append(1e3 * statistics.median(times))
        return {name: (statistics.median(m), min(m), max(m)) for name, m in medians.items()}

    def row(self, name):
        return {"case": self.name, "kernel": name, "registers": self.registers.get(name),
                "bytes": self.launch.bytes}


def compile_floor(source):
    with tempfile.TemporaryDirectory() as folder:
        cubin = pathlib.Path(folder) / "floor.cubin"
        subprocess.run(["nvcc", "-cubin", "-arch=sm_90a", "-O3", "-o", str(cubin), str(HERE / source)],
                       check=True)
        return cubin.read_bytes()


def main(about_program, source, cases, measure, tables, text, rounds, key="rows"):
    """`measure` gives the rows of a Case, `tables` what is printed of all rows, `text` the markdown of the
    environment and these tables; `key` names the rows in the JSON."""
    parser = argparse.ArgumentParser(description=about_program.split("\n\n")[0])
    gpu.add_options(parser, rounds)
    parser.add_argument("--before", help="another lilac, to be measured beside it")
    parser.add_argument("--cubin", type=pathlib.Path, help=f"{source}, compiled; else by nvcc")
    parser.add_argument("--only", action="append", choices=list(cases))
    parser.add_argument("--repeats", type=int, default=40, help="launches of a round")
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    torch, triton, tools = gpu.begin(options)
    tools["floor"] = options.cubin.read_bytes() if options.cubin else compile_floor(source)
    tools["all lilac"] = {"lilac": tools["lilac"]}
    if options.before:
        tools["all lilac"]["before"] = lilac_at(options.before, tools["device"])
    rows, wrong = [], []
    for name in options.only or cases:
        case = Case(tools, options, name)
        rows += measure(case)
        wrong += case.wrong
    found = tables(rows)
    print(*found, *wrong, sep="\n")
    about = {**gpu.environment(torch, triton, options, tools["ptxas"]), "method": METHOD}
    report.write_json(options.json, about, **{key: rows})
    if options.markdown:
        options.markdown.write_text(text(about, *found) + f"\n\n{report.facts(about)}\n")
    return 1 if wrong else 0
