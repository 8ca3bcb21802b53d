"""One generated kernel under both compilers: results, run times, registers.

A row is a dict, written to the JSON file as it is:

    model half name launches             launches: of this kernel in one step
    options                              the launch options that Triton's autotuner chose, which both use
    triton, lilac                        {ms, rounds, spread, host_bound, registers, spills, shared} or {failure}
    ratio, ratio_least, ratio_most       Triton's time over lilac's with these options
    own_ratio                            the same with each compiler's own choice of options
    error                                the largest difference of the results over the tolerance
    rounding                             only where error > 1: what rounding explains of it (see results.py)
"""

import concurrent.futures
import importlib.util
import itertools
import multiprocessing
import os
import re
import statistics
import subprocess
import tempfile

from .. import measure
from ..runner import NAMES, Compilers, reason
from . import results
from .capture import copies

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


def compiled(launch, name):
    """{options: (launcher, kernel)} of the compiler `name`, which must be switched on."""
    tuner = load(launch.source)
    tuner.precompile()
    for result in tuner.compile_results:
        maker = (getattr(result.kernel.metadata, "lilac", None) or {}).get("compiler", "triton")
        if maker != name:
            raise RuntimeError(f"the kernel was compiled by {maker}")
    return {options_of(launcher.config): (launcher, result.kernel)
            for launcher, result in zip(tuner.launchers, tuner.compile_results)}


def _warm(source, name, folder):
    """In a worker process: fills Triton's cache. What fails here fails again in the main process, and is reported
    there."""
    os.environ["TRITON_CACHE_DIR"] = folder
    try:
        with Compilers().using(name):
            load(source).precompile(warm_cache_only=True)
    except Exception:
        return False
    return True


class Warmer:
    """Worker processes that compile kernels ahead, one for each processor."""

    def __init__(self):
        self.pool = concurrent.futures.ProcessPoolExecutor(os.cpu_count() or 1, multiprocessing.get_context("spawn"))

    def warm(self, launches):
        """Returns when all launches are compiled by both compilers, or cannot be."""
        folder = os.environ["TRITON_CACHE_DIR"]
        sources = dict.fromkeys(launch.source for launch in launches)
        jobs = [self.pool.submit(_warm, source, name, folder) for source in sources for name in NAMES]
        concurrent.futures.wait(jobs)

    def close(self):
        self.pool.shutdown(cancel_futures=True)


class Measurer:
    """Measures launches. `measure_launch(model, launch)` returns a row."""

    def __init__(self, compilers, *, rounds=3, budget=0.08):
        import torch

        self.torch, self.compilers, self.rounds, self.budget = torch, compilers, rounds, budget
        self.watch = measure.Stopwatch(torch)

    def stream(self):
        return self.torch.cuda.current_stream().cuda_stream

    def launcher(self, launcher, args, options):
        stream = self.stream()
        return lambda: launcher(*args, **options, stream=stream)

    def result(self, launcher, args, options):
        """The tensors after one launch with these arguments."""
        launcher(*args, **options, stream=self.stream())
        self.torch.cuda.synchronize()
        return [one for one in args if isinstance(one, self.torch.Tensor)]

    def measure_launch(self, model, launch):
        row = {"model": model.name, "half": model.half, "name": launch.name, "launches": launch.count,
               "triton": {}, "lilac": {}}
        made = {}
        for name in NAMES:
            try:
                made[name] = self.compilers(name, compiled)(launch, name)
            except Exception as problem:
                row[name]["failure"] = reason(problem)
        if len(made) == len(NAMES):
            self.compare(row, launch, made)
        return row

    def quick(self, launchers, args, options):
        """{options: ms}: a short measurement, to choose the best options."""
        return {key: statistics.median(self.watch.time(self.launcher(one, args, options), measure.LEAST_LAUNCHES))
                for key, (one, _) in launchers.items()}

    def agree(self, row, launch, launchers):
        """Compares the results by the tolerance, and beyond it with what rounding does."""
        def run(name, args):
            return self.result(launchers[name], args, launch.options)

        ours, theirs = (run(name, copies(launch.args)) for name in ("lilac", "triton"))
        row["error"] = max(map(results.difference, ours, theirs), default=0.0)
        if row["error"] > 1:
            row["rounding"] = results.rounding(lambda args: run("triton", args), launch.args, ours, theirs)
            if row["rounding"]["excess"] > 1:
                row["lilac"]["failure"] = (f"the result differs from Triton's: {row['error']:.3g} times the tolerance, "
                                           f"{row['rounding']['excess']:.3g} times what rounding explains")

    def compare(self, row, launch, made):
        args = copies(launch.args)
        best = {name: self.quick(made[name], args, launch.options) for name in NAMES}
        both = [key for key in best["triton"] if key in best["lilac"]]
        chosen = min(both, key=best["triton"].get)
        row["options"] = described(chosen)
        row["own_ratio"] = min(best["triton"].values()) / min(best["lilac"].values())
        self.agree(row, launch, {name: made[name][chosen][0] for name in NAMES})
        turns = [lambda count, run=self.launcher(made[name][chosen][0], args, launch.options):
                 self.watch.time(run, count) for name in NAMES]
        medians, row["timed"] = measure.in_turn(turns, self.rounds, 1e3 * self.budget, self.watch.flush_ms)
        for name, rounds in zip(NAMES, medians):
            launcher, kernel = made[name][chosen]
            ms = statistics.median(rounds)
            host = self.watch.host_time(self.launcher(launcher, args, launch.options))
            row[name].update(ms=ms, rounds=rounds, spread=measure.spread(rounds), host_ms=host,
                             host_bound=measure.host_bound(host, self.watch.flush_ms, ms),
                             registers=launcher.n_regs, spills=launcher.n_spills, shared=launcher.shared)
            row[name]["code"] = classes(kernel)
        row["ratio"], row["ratio_least"], row["ratio_most"] = measure.ratios(*medians)


def classes(kernel):
    """{class: number} of the machine instructions, loads and stores with their width; None without nvdisasm."""
    import triton

    cubin = getattr(kernel, "asm", {}).get("cubin")
    if cubin is None:
        return None
    try:
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(cubin)
            file.flush()
            text = subprocess.run([triton.knobs.nvidia.nvdisasm.path, "-c", file.name], capture_output=True, text=True,
                                  timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = {}
    for match in re.finditer(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)", text):
        parts = match.group(1).split(".")
        key = parts[0]
        if key in ("LDG", "STG"):
            key += "." + next((p for p in parts if p in ("U8", "S8", "U16", "S16", "64", "128")), "32")
        if key not in ("NOP", "BRA"):
            found[key] = found.get(key, 0) + 1
    return found
