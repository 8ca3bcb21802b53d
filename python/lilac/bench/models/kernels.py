"""The generated kernels of one model under both compilers: results, run times, registers.

A row is a dict, written to the JSON file as it is:

    model half name launches             launches: of this kernel in one step
    options                              the launch options that are fastest under Triton, which both use
    triton, lilac                        {ms, rounds, spread, host_bound, registers, spills, shared, code} or {failure}
    timed                                launches of each median; 0: `ms` is the median of the quick measurement
    ratio, ratio_least, ratio_most       Triton's time over lilac's with these options
    own_ratio                            the same with each compiler's own choice of options
    error                                the largest difference of the results over the tolerance
    rounding                             only where error > 1: what rounding explains of it (see results.py)

Every kernel is measured quickly with all options, and its results are compared. The longer measurement leaves out
the kernels that take less than QUICK of the model's time. `code` is recorded of those that take SHARE or more.
"""

import dataclasses
import importlib.util
import itertools
import statistics

from .. import measure
from ..__main__ import say
from ..runner import NAMES, Lost, reason
from . import keep, results
from .capture import Launch, copies
from .report import QUICK, SHARE

_numbers = itertools.count()


def load(source):
    """A fresh autotuner of the kernel in the generated file."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    spec = importlib.util.spec_from_file_location(f"_lilac_bench_kernel_{next(_numbers)}", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return next(value for value in vars(module).values() if isinstance(value, CachingAutotuner))


def options_of(config):
    """The launch options of a configuration, hashable."""
    return (tuple(sorted(config.kwargs.items())), config.num_warps, config.num_stages)


def described(options):
    values, warps, stages = options
    return {**dict(values), "num_warps": warps, "num_stages": stages}


def compiled(source, name):
    """{options: (launcher, kernel)} of the compiler `name`, which must be switched on."""
    tuner = load(source)
    tuner.precompile()
    for result in tuner.compile_results:
        maker = (getattr(result.kernel.metadata, "lilac", None) or {}).get("compiler", "triton")
        if maker != name:
            raise RuntimeError(f"the kernel was compiled by {maker}")
    kernels = {options_of(result.config): result.kernel for result in tuner.compile_results}
    return {options_of(one.config): (one, kernels[options_of(one.config)]) for one in tuner.launchers}


@dataclasses.dataclass
class Entry:
    """A launch that is being measured."""
    launch: Launch
    row: dict
    made: dict           # {compiler: {options: (launcher, kernel)}}
    best: dict = None    # {compiler: {options: ms}} of the quick measurement
    chosen: tuple = None

    def milliseconds(self):
        """Of all launches of the step under Triton, by the quick measurement."""
        return self.launch.count * self.best["triton"][self.chosen]


class Measurer:
    """Measures the launches of a model: `prepare` its kernels, then `start` when nothing else uses the GPU. A kernel's
    failure under one compiler is recorded in its row; an error after which the GPU is unusable raises Lost."""

    def __init__(self, compilers, *, rounds=3, budget=0.08, keep=None):
        import torch

        self.torch, self.compilers, self.rounds, self.budget = torch, compilers, rounds, budget
        self.watch, self.made, self.keep = None, {}, keep

    def start(self):
        self.watch = measure.Stopwatch(self.torch)

    def prepare(self, source):
        """Compiles and loads the kernel of a generated file: {compiler: launchers, or the exception}."""
        if source not in self.made:
            self.made[source] = {}
            for name in NAMES:
                try:
                    self.made[source][name] = self.compilers(name, compiled)(source, name)
                except Exception as problem:
                    self.made[source][name] = problem
        return self.made[source]

    def entry(self, model, launch):
        row = {"model": model.name, "half": model.half, "name": launch.name, "launches": launch.count,
               "triton": {}, "lilac": {}}
        made = self.prepare(launch.source)
        for name in NAMES:
            if isinstance(made[name], Exception):
                row[name]["failure"] = reason(made[name])
        return Entry(launch, row, made)

    def attempt(self, entry, names, function):
        """The function's result; None after an exception, which is recorded for these compilers."""
        try:
            found = function()
            self.torch.cuda.synchronize()
            return found
        except Exception as problem:
            for name in names:
                entry.row[name]["failure"] = reason(problem)
            try:
                self.torch.cuda.synchronize()
            except Exception:
                raise Lost(f"{entry.launch.name} under {' or '.join(names)}: {reason(problem)}") from problem
            return None

    def launcher(self, launcher, args, options):
        stream = self.torch.cuda.current_stream().cuda_stream
        return lambda: launcher(*args, **options, stream=stream)

    def result(self, launcher, args, options):
        """The tensors after one launch with these arguments."""
        self.launcher(launcher, args, options)()
        self.torch.cuda.synchronize()
        return [one for one in args if isinstance(one, self.torch.Tensor)]

    def medians(self, launchers, args, options):
        """{options: ms}: a short measurement."""
        return {key: statistics.median(self.watch.time(self.launcher(one, args, options), measure.LEAST_LAUNCHES))
                for key, (one, _) in launchers.items()}

    def quick(self, entry):
        """Measures a kernel quickly with all options, chooses the options and compares the results."""
        launch, row = entry.launch, entry.row
        if any("failure" in row[name] for name in NAMES):
            return
        best = {}
        for name in NAMES:
            args = copies(launch.args)
            best[name] = self.attempt(entry, [name], lambda: self.medians(entry.made[name], args, launch.options))
            if best[name] is None:
                return
        both = [key for key in best["triton"] if key in best["lilac"]]
        if not both:
            row["lilac"]["failure"] = "no launch options that both compilers can use"
            return
        entry.best, entry.chosen = best, min(both, key=best["triton"].get)
        row["options"] = described(entry.chosen)
        row["own_ratio"] = min(best["triton"].values()) / min(best["lilac"].values())
        for name in NAMES:
            launcher = entry.made[name][entry.chosen][0]
            row[name].update(ms=best[name][entry.chosen], registers=launcher.n_regs, spills=launcher.n_spills,
                             shared=launcher.shared)
        row["timed"], row["ratio"] = 0, row["triton"]["ms"] / row["lilac"]["ms"]
        self.attempt(entry, ["lilac"], lambda: self.agree(entry))

    def agree(self, entry):
        """Compares the results by the tolerance, and beyond it with what rounding does."""
        launch, row = entry.launch, entry.row

        def run(name, args):
            return self.result(entry.made[name][entry.chosen][0], args, launch.options)

        ours, theirs = (run(name, copies(launch.args)) for name in ("lilac", "triton"))
        row["error"] = max(map(results.difference, ours, theirs), default=0.0)
        if row["error"] > 1:
            row["rounding"] = results.rounding(lambda args: run("triton", args), launch.args, ours, theirs)
            if row["rounding"]["excess"] > 1:
                row["lilac"]["failure"] = (f"the result differs from Triton's: {row['error']:.3g} times the tolerance, "
                                           f"{row['rounding']['excess']:.3g} times what rounding explains")

    def longer(self, entry):
        """Measures a kernel under both compilers alternately, with the chosen options."""
        launch, row, watch = entry.launch, entry.row, self.watch
        args = copies(launch.args)
        runs = [self.launcher(entry.made[name][entry.chosen][0], args, launch.options) for name in NAMES]
        turns = [lambda count, run=run: watch.time(run, count) for run in runs]
        medians, timed = measure.in_turn(turns, self.rounds, 1e3 * self.budget, watch.flush_ms)
        for name, rounds, run in zip(NAMES, medians, runs):
            ms, host = statistics.median(rounds), watch.host_time(run)
            row[name].update(ms=ms, rounds=rounds, spread=measure.spread(rounds), host_ms=host,
                             host_bound=measure.host_bound(host, watch.flush_ms, ms))
        row["ratio"], row["ratio_least"], row["ratio_most"] = measure.ratios(*medians)
        row["timed"] = timed

    def measure(self, entries, expired, progress):
        """Fills in the rows. Returns the number of kernels that are finished: fewer than all if the time expired."""
        for number, entry in enumerate(entries):
            if expired():
                return 0
            self.quick(entry)
            if not entry.best:
                progress(number + 1, entry)
        whole = sum(entry.milliseconds() for entry in entries if entry.best)
        for number, entry in enumerate(entries):
            if expired():
                return number
            if entry.best:
                if entry.milliseconds() >= QUICK * whole:
                    self.attempt(entry, NAMES, lambda: self.longer(entry))
                if self.keep:
                    try:
                        keep.keep(self.torch, self.keep, number, entry, copies(entry.launch.args))
                    except Exception as problem:
                        say(f"  nothing kept of {entry.launch.name}: {reason(problem)}")
                progress(number + 1, entry)
            entry.launch.args = ()
        return len(entries)


def cubins(entries):
    """[(number of the row, compiler, cubin)] of the kernels whose machine code is recorded."""
    rows = [entry.row for entry in entries if entry.best]
    whole = sum(row["launches"] * row["triton"]["ms"] for row in rows)
    found = []
    for number, entry in enumerate(entries):
        if entry.best and entry.row["launches"] * entry.row["triton"]["ms"] >= SHARE * whole:
            for name in NAMES:
                kernel = entry.made[name][entry.chosen][1]
                found.append((number, name, getattr(kernel, "asm", {}).get("cubin")))
    return [one for one in found if one[2]]
