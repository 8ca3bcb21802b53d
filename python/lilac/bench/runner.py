"""One case under both compilers: correctness, compile times, run times.

A row is a dict, which is written to the JSON file unchanged; `table` and `picture` read it:

    name family bytes operations unit seed
    bound: {ms, roof}                   the least time, and what it is bound by: memory, matrix unit, f32
    triton, lilac: {failure} or {error, ms, rounds, host_ms, host_bound, share, compile: {…}}
                                        and `configuration`, of several, the one that this compiler is fastest with
    ratio, ratio_least, ratio_most      Triton's time over lilac's
    libraries: [{name, ms, rounds, host_ms, host_bound, ratio, error} or {name, failure}]
                                        with `libraries`; `ratio` is the library's time over lilac's
    lower_ratio, first_ratio            the same of TTIR → PTX, and of the first call

A compiler's failure (a refusal, a wrong result, an error at launch) is recorded in its part of the
row; the other compiler continues. An error after which the GPU is unusable ends the run.
"""

import contextlib
import ctypes
import functools
import gc
import math
import os
import statistics
import tempfile
import time
import traceback
from types import SimpleNamespace

from . import measure
from .compile_time import Recorder, cache_folder, medians, rounds_left

NAMES = ("triton", "lilac")

# Operations of a multiprocessor in a clock on dense matrices with sums in 32 bits, by the type of the operands.
MATRIX_UNITS = {
    # capability   f16        tf32         f8           i8
    (8, 0):  {"f16": 2048, "tf32": 1024,               "i8": 4096},
    (9, 0):  {"f16": 4096, "tf32": 2048, "f8": 8192,   "i8": 8192},
    (10, 0): {"f16": 8192, "tf32": 4096, "f8": 16384,  "i8": 16384},
}  # fmt: skip


class Lost(Exception):
    """The GPU cannot be used any more in this process."""


class Compilers:
    """Switches between the two, through the plug-in."""

    def __init__(self):
        import lilac.triton

        self.plugin = lilac.triton
        self.plugin.disable()  # LILAC_TRITON may have switched it on
        with self.using("lilac"):
            pass  # the plug-in does not support this version of Triton

    @contextlib.contextmanager
    def using(self, name):
        if name == "triton":
            yield
        else:
            with self.plugin.enabled():
                yield

    def __call__(self, name, function):
        """The function, run under that compiler."""
        def under(*arguments):
            with self.using(name):
                return function(*arguments)
        return under


def reason(problem):
    """One line for a table, from an exception. A refusal of lilac's has diagnostics; Triton's front end
    says where first and why last."""
    for first in getattr(problem, "diagnostics", None) or ():
        place = f"{os.path.basename(first.file)}:{first.line}: " if first.file else ""
        return f"{place}{first.message} [{first.id}]"
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    words = " ".join(dict.fromkeys((lines[0], lines[-1]))) if lines and lines[0].endswith(":") else \
        lines[0] if lines else ""
    kind = type(problem).__name__
    return (words if kind in words or kind == "CompilationError" else f"{kind}: {words}")[:300]


def check(verdict):
    """(error over what is allowed or None, complaint or None) from what a check gives."""
    if verdict is True or verdict is None:
        return None, None
    if verdict is False:
        return None, "wrong result"
    error = float(verdict)
    if not error <= 1:  # NaN too
        return error, f"wrong result: {error:.3g} times the error that is allowed"
    return error, None


def family(case):
    return getattr(case, "family", None) or case.name


def blank(case):
    return {"name": case.name, "family": family(case), "bytes": getattr(case, "bytes", None),
            "operations": getattr(case, "operations", None), "unit": getattr(case, "unit", None),
            "triton": {}, "lilac": {}}


def compare(row):
    """Fills in what relates the two compilers."""
    one, other = (row[name] for name in NAMES)
    if one.get("rounds") and other.get("rounds"):
        middle, least, most = measure.ratios(one["rounds"], other["rounds"])
        row.update(ratio=middle, ratio_least=least, ratio_most=most)
    for library in row.get("libraries", ()):
        if other.get("rounds") and library.get("rounds"):
            library["ratio"] = measure.ratios(library["rounds"], other["rounds"])[0]
    left, right = one.get("compile"), other.get("compile")
    if left and right:
        for name, key in (("lower_ratio", "lower_ms"), ("first_ratio", "total_ms")):
            if left[key] and right[key]:
                row[name] = left[key] / right[key]
        if left["total_ms"] and right["total_ms"]:
            row["first_ratio_with_stub"] = ((left["total_ms"] + left["stub_ms"])
                                            / (right["total_ms"] + right["stub_ms"]))
    return row


def selected(case, name, function):
    """The function, with the configuration that this compiler has chosen for the case, if there are several."""
    select = getattr(case.launch, "select", None)
    if select is None:
        return function

    def launching(*arguments):
        select(name)
        return function(*arguments)
    return launching


def stranger(row, name):
    """Checks the compiler of the kernel, so that no kernel is measured under the wrong name."""
    makers = {kernel["compiler"] for kernel in row[name]["kernels"]} - {name}
    if makers:
        row[name]["failure"] = f"compiled by {' and '.join(sorted(makers))}"


def alive(row):
    return [name for name in NAMES if "failure" not in row[name]]


def both_first_calls(recorder, row, compilers, call, most):
    """Rounds of first calls, `most` at most, each round in a folder of its own, the order alternating."""
    accounts = {name: [] for name in NAMES}
    done, seconds = 0, 0.0
    folders = []
    while rounds_left(done, seconds, most) and alive(row):
        folders.append(tempfile.TemporaryDirectory(prefix="lilac-bench-"))
        begin = time.perf_counter()
        for name in alive(row)[::1 if done % 2 == 0 else -1]:
            try:
                accounts[name].append(compilers(name, recorder.first_call)(call, folders[-1].name))
            except Exception as problem:
                row[name]["failure"] = reason(problem)
        done, seconds = done + 1, seconds + time.perf_counter() - begin
    for name in alive(row):
        if accounts[name]:
            row[name]["compile"] = medians(accounts[name])
    return folders


class Runner:
    """Runs cases on the GPU. `Runner.row(case)` returns the row."""

    def __init__(self, *, rounds=5, budget=0.4, seed=0, clean=False, check=True, first_calls=3,
                 keep=None, log=None, prepared=False, libraries=False):
        """prepared: Triton's cache folder has the kernels (see prepare.py) and is used but for first calls.
        libraries: measure the cases' libraries, too."""
        import torch

        self.torch, self.rounds, self.budget, self.seed = torch, rounds, budget, seed
        self.check, self.first_calls, self.log = check, first_calls, log or (lambda line: None)
        self.prepared, self.libraries = prepared, libraries
        self.compilers = Compilers()
        self.watch = measure.Stopwatch(torch, clean)
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        self.bandwidth = self.watch.bandwidth()
        # Fused multiply-adds of f32 count two; 128 a clock and multiprocessor from sm_86 on, and sm_90.
        clock = 1e3 * getattr(properties, "clock_rate", 0)
        self.arithmetic = 256.0 * properties.multi_processor_count * clock or math.inf
        capability = (getattr(properties, "major", 0), getattr(properties, "minor", 0))
        self.matrix_units = {unit: rate * properties.multi_processor_count * clock or math.inf
                             for unit, rate in MATRIX_UNITS.get(capability, {}).items()}
        self.recorder = Recorder(self.attributes, keep)

    def attributes(self, function):
        """Registers and local memory (in words, as Triton counts spills) of a loaded kernel."""
        cuda = ctypes.CDLL("libcuda.so.1")
        found = {}
        for name, number in (("registers", 4), ("local", 3)):  # CU_FUNC_ATTRIBUTE_NUM_REGS, …
            value = ctypes.c_int()
            if cuda.cuFuncGetAttribute(ctypes.byref(value), number, ctypes.c_void_p(function)) == 0:
                found[name] = value.value
        if "local" in found:
            found["spills"] = found.pop("local") // 4
        return found

    def bound(self, case):
        """(milliseconds, roof): the least time that the memory and the units of arithmetic allow, and which of
        them needs it. The operations of a matrix unit whose rate is not listed take no time."""
        unit = getattr(case, "unit", None)
        rate = self.matrix_units.get(unit, math.inf) if unit else self.arithmetic
        moved = (getattr(case, "bytes", None) or 0) / self.bandwidth
        worked = (getattr(case, "operations", None) or 0) / rate
        return (1e3 * worked, unit or "f32") if worked > moved else (1e3 * moved, "memory")

    def synchronize(self, after=""):
        """Raises Lost with this reason if the GPU no longer responds."""
        try:
            self.torch.cuda.synchronize()
        except Exception as problem:
            raise Lost(after or reason(problem)) from problem

    def attempt(self, row, name, function):
        """Runs the function under one compiler and records errors. Returns its result, or None."""
        try:
            result = self.compilers(name, function)()
            self.torch.cuda.synchronize()
            return result
        except Exception as problem:
            row[name]["failure"] = reason(problem)
            self.log("".join(traceback.format_exception(problem)))
            self.synchronize(f"{row['name']} under {name}: {row[name]['failure']}")
            return None

    def installed(self):
        """The context in which rows can be measured."""
        return self.recorder.installed()

    def row(self, case):
        row = {**blank(case), "seed": self.seed}
        try:
            if hasattr(case, "make"):
                case.make(self.seed)
            self.torch.cuda.synchronize()
            self.measured(case, row)
        except Lost:
            raise
        except Exception as problem:  # a failing kernel's is caught nearer to it
            self.log("".join(traceback.format_exception(problem)))
            for name in NAMES:
                row[name].setdefault("failure", "the case itself: " + reason(problem))
            self.synchronize(f"{row['name']}: {reason(problem)}")
        if hasattr(case, "free"):
            case.free()
        gc.collect()
        self.torch.cuda.empty_cache()
        return compare(row)

    def measured(self, case, row):
        for launch in getattr(case.launch, "launches", [case.launch]):
            kernel = getattr(launch, "kernel", None)
            if hasattr(kernel, "device_caches"):
                self.recorder.functions.add(kernel)

        def call():
            case.launch()
            self.torch.cuda.synchronize()

        with tempfile.TemporaryDirectory(prefix="lilac-bench-") as empty:
            folder = None if self.prepared else empty
            for name in NAMES:  # besides, this builds the launcher's stub and warms everything up
                self.chosen(case, row, name, folder)
                if "failure" not in row[name]:
                    self.checked(case, row, name, folder)
            compilers = lambda name, function: self.compilers(name, selected(case, name, function))  # noqa: E731
            for used in both_first_calls(self.recorder, row, compilers, call, self.first_calls):
                used.cleanup()
            self.synchronize()
            if alive(row):
                self.timed(case, row, folder)

    def chosen(self, case, row, name, folder):
        """Finds the configuration that this compiler is fastest with, if the case's launch has several."""
        if not hasattr(case.launch, "choose"):
            return

        def time(launch, limit):
            launch()  # compiles and loads
            once = min(self.watch.time(launch, 3))
            return once if once > 1.5 * limit else statistics.median(self.watch.time(launch, measure.LEAST_LAUNCHES))

        self.watch.flushes = 2  # enough that a host of some 100 µs is not waited for
        with cache_folder(folder):
            found = self.attempt(row, name, lambda: case.launch.choose(name, time))
        if found is not None:
            row[name]["configuration"] = found

    def checked(self, case, row, name, folder):
        with cache_folder(folder), self.recorder.titled(f"{case.name}.{name}"):
            self.compilers(name, self.recorder.forget)()
            verdict = self.attempt(row, name, selected(case, name, case.check if self.check else case.launch))
            row[name]["kernels"] = self.recorder.kernels_used()
        if "failure" not in row[name]:
            stranger(row, name)
        if self.check and "failure" not in row[name]:
            row[name]["error"], complaint = check(verdict)
            if complaint:
                row[name]["failure"] = complaint

    def host_time(self, case, name):
        return self.compilers(name, selected(case, name, self.watch.host_time))(case.launch)

    def keep_ahead(self, turns, hosts):
        """Sets how much the GPU has to do before each launch, so that the slowest host is not waited for."""
        self.watch.flushes = 1
        least = min(statistics.median(turn(measure.LEAST_LAUNCHES)) for turn in turns)
        host = max(time() for time in hosts)
        self.watch.flushes = measure.flushes_for(host, self.watch.once_ms, least)

    def timed(self, case, row, folder):
        names = alive(row)
        with cache_folder(folder):
            turns = [self.compilers(name, selected(case, name, lambda count: self.watch.time(case.launch, count)))
                     for name in names]
            libraries = self.libraries_of(case, row)
            turns += [functools.partial(self.watch.time, launch) for _, launch in libraries]
            hosts = [functools.partial(self.host_time, case, name) for name in names]
            hosts += [functools.partial(self.watch.host_time, launch) for _, launch in libraries]
            try:
                self.keep_ahead(turns, hosts)
                medians, count = measure.in_turn(turns, self.rounds, 1e3 * self.budget, self.watch.flush_ms)
                hosts = [time() for time in hosts]
            except Exception as problem:
                for name in names:
                    row[name]["failure"] = reason(problem)
                self.synchronize()
                return
        row["launches"], row["flushes"] = count, self.watch.flushes
        bound, roof = self.bound(case)
        row["bound"] = {"ms": bound, "roof": roof}
        for part, rounds, host in zip([row[name] for name in names] + [part for part, _ in libraries], medians, hosts):
            ms = statistics.median(rounds)
            part.update(ms=ms, rounds=rounds, spread=measure.spread(rounds), host_ms=host,
                        host_bound=measure.host_bound(host, self.watch.flush_ms, ms),
                        share=bound / ms if bound else None)

    def libraries_of(self, case, row):
        """[(its part of the row, a launch)] of the case's libraries, if they are to be measured and can compute the
        operator."""
        found = getattr(case, "libraries", ()) if self.libraries else ()
        parts = [{"name": library.name} for library in found]
        if parts:
            row["libraries"] = parts
        launches = [self.library(case, library, part) for library, part in zip(found, parts)]
        return [(part, launch) for part, launch in zip(parts, launches) if launch]

    def library(self, case, library, part):
        """The operator in a library; None: it does not compute it. What it computes is compared with the reference as
        information: a library may round more often."""
        try:
            tensors = case.launch.tensors
            launch = library.prepare(SimpleNamespace(**{name: tensor.used for name, tensor in tensors.items()}))
            results = library.collect(launch()) if library.collect else None
            self.torch.cuda.synchronize()
            if self.check:
                errors = case.errors(launch if results is None else lambda: store(tensors, library.collect(launch())))
                part["error"] = max(error for name, error in errors.items() if results is None or name in results)
        except Exception as problem:
            part["failure"] = reason(problem)
            self.synchronize(f"{case.name} under {library.name}: {reason(problem)}")
            return None
        return launch


def store(tensors, results):
    """Copies what a library has computed into a launch's outputs."""
    for name, result in results.items():
        used = tensors[name].used
        used.copy_(result.reshape(used.shape))


class CompileRunner:
    """Compile times of both compilers with no GPU: from TTIR to the cubin, nothing is loaded. For
    cases that can be compiled by themselves (`case.launch.compile(target)`)."""

    def __init__(self, *, capability=90, first_calls=3, keep=None, log=None):
        from triton.backends.compiler import GPUTarget

        self.first_calls = first_calls
        self.target, self.log = GPUTarget("cuda", capability, 32), log or (lambda line: None)
        self.compilers = Compilers()
        self.recorder = Recorder(keep=keep)

    def row(self, case):
        row = blank(case)
        compile = getattr(case.launch, "compile", None)
        if compile is None:
            for name in NAMES:
                row[name]["failure"] = "its launch has no compile(target), so it needs a GPU"
            return row
        from lilac.triton.cubin import resources

        kept = {}

        def call():
            kept["kernel"] = compile(self.target)

        with tempfile.TemporaryDirectory(prefix="lilac-bench-") as folder, cache_folder(folder):
            for name in NAMES:  # what only the first compilation of a process pays
                try:
                    with self.recorder.titled(f"{case.name}.{name}"):
                        self.compilers(name, self.recorder.forget)()
                        self.compilers(name, call)()
                    registers, local = resources(kept["kernel"].asm["cubin"])
                    row[name]["kernels"] = [{**kernel, "registers": registers,
                                             "spills": None if local is None else local // 4}
                                            for kernel in self.recorder.kernels_used()]
                    stranger(row, name)
                except Exception as problem:
                    row[name]["failure"] = reason(problem)
                    self.log("".join(traceback.format_exception(problem)))
        for folder in both_first_calls(self.recorder, row, self.compilers, call, self.first_calls):
            folder.cleanup()
        return compare(row)

    def installed(self):
        return self.recorder.installed()
