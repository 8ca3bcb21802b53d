#!/usr/bin/env python3
"""The host's time for a launch under lilac and under Triton, and what it depends on.

    python3 bench/launch_time.py [--rounds N] [--launches N] [--only WORD] [--stub] [--json FILE] [--markdown FILE]

Every case is a kernel that does nothing, with 1 to 40 arguments of one kind, or of all kinds. Each is
launched in two ways:

  jit        kernel[grid](…)      the arguments are inspected, and the kernel is found in Triton's cache
  compiled   compiled.run(…)      the launcher alone, as torch.compile calls it

Both compilers are timed in one process, on warm caches, in rounds of four: Triton, lilac, lilac, Triton, every
other round with the compilers exchanged. A slow change of the processor's clock cancels within a round. The times
are medians over the rounds. `more` is the median of lilac's time beyond Triton's of the same round, and `noise` the
median distance of Triton's two times of a round. A case above the limit is measured again, up to twice, with more
rounds: a disturbance of the host does not repeat, and the last measurement counts. The queue of the device is empty
when a compiler's launches begin, and holds more than N of them, so the time is the host's alone; the kernels do
nothing. Python's garbage collector is off. The process stays on one core. `null` is the time of the same loop around
an empty Python function; it is not subtracted.

Needs an NVIDIA GPU, PyTorch and the package lilac; takes less than a minute. With --stub it needs neither a GPU nor
PyTorch: a driver that does nothing takes the place of Triton's, so the time is that of the Python code alone.

Exit status 1 if lilac's time is more than 0.2 µs above Triton's in a case (--limit).
"""

import argparse
import concurrent.futures
import gc
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

import report

ROOT = pathlib.Path(__file__).resolve().parent.parent
COUNTS = (1, 4, 10, 20, 40)
KINDS = ("tensor", "int", "float", "none", "constexpr", "bool", "tuple")


# ---- kernels --------------------------------------------------------------------------------


def kernel_source(name, kinds):
    """A kernel with one parameter of each kind of `kinds`. Its body uses none of them."""
    parameters = [f"a{i}: tl.constexpr" if kind == "constexpr" else f"a{i}" for i, kind in enumerate(kinds)]
    return f"@triton.jit\ndef {name}({', '.join(parameters)}):\n    pass\n"


def cases():
    """(name, kinds of the arguments), in the order of the report."""
    for kind in KINDS:
        for count in COUNTS:
            yield f"{kind}_{count}", (kind,) * count
    for count in COUNTS:
        yield f"descriptor_{count}", ("descriptor",) * count
    for count in COUNTS:
        yield f"mixed_{count}", tuple(KINDS[i % len(KINDS)] for i in range(count))


def load_kernels(chosen, folder):
    """Triton reads the source of a kernel from a file."""
    file = folder / "launch_time_kernels.py"
    text = "import triton\nimport triton.language as tl\n\n\n"
    file.write_text(text + "\n\n".join(kernel_source(name, kinds) for name, kinds in chosen))
    names = {"__file__": str(file)}
    sys.path.insert(0, str(folder))
    import launch_time_kernels

    names.update(vars(launch_time_kernels))
    return names


class Arguments:
    """Makes arguments of each kind. No two integers of a kernel are equal; none is 1."""

    def __init__(self, stub):
        self.stub = stub

    def tensor(self, shape=(64,)):
        if self.stub is not None:
            return self.stub.Pointer("fp32")
        import torch

        return torch.empty(shape, device="cuda")

    def one(self, kind, i):
        if kind == "tensor":
            return self.tensor()
        if kind == "tuple":
            return (self.tensor(), 3 + i)
        if kind == "descriptor":
            from triton.tools.tensor_descriptor import TensorDescriptor

            tensor = self.tensor((64, 64)) if self.stub is None else self.stub.Tensor((64, 64))
            return TensorDescriptor.from_tensor(tensor, [16, 64])
        return {"int": 3 + i, "float": 0.5 + i, "none": None, "constexpr": i, "bool": i % 2 == 0}[kind]

    def all(self, kinds):
        return tuple(self.one(kind, i) for i, kind in enumerate(kinds))


# ---- launches -------------------------------------------------------------------------------


def jit_loop(kernel, arguments):
    """Seconds of `count` launches through the JIT."""

    def loop(count):
        launch = kernel[(1,)]
        start = time.perf_counter()
        for _ in range(count):
            launch(*arguments)
        return time.perf_counter() - start

    return loop


def compiled_loop(kernel, arguments):
    """Seconds of `count` launches of the compiled kernel, its launcher called directly."""
    from triton.runtime import driver

    compiled = kernel[(1,)](*arguments)
    run, function, metadata = compiled.run, compiled.function, compiled.packed_metadata
    stream = driver.active.get_current_stream(driver.active.get_current_device())

    def loop(count):
        start = time.perf_counter()
        for _ in range(count):
            run(1, 1, 1, stream, function, metadata, None, None, None, *arguments)
        return time.perf_counter() - start

    return loop


def null_loop(arguments):
    def nothing(*_):
        pass

    def loop(count):
        start = time.perf_counter()
        for _ in range(count):
            nothing(*arguments)
        return time.perf_counter() - start

    return loop


LOOPS = {"jit": jit_loop, "compiled": compiled_loop}


# ---- compilers ------------------------------------------------------------------------------


class Compilers:
    """Switches between the two. Each keeps its kernels in caches of its own."""

    names = ("triton", "lilac")

    def __init__(self):
        import lilac.triton

        self.plugin = lilac.triton

    def use(self, name):
        (self.plugin.enable if name == "lilac" else self.plugin.disable)()


def compile_all(compilers, chosen, kernels, make):
    """Fills the caches on disk: the launchers, which a C compiler translates, by eight threads."""

    def compile_one(case):
        name, kinds = case
        try:
            kernels[name].warmup(*make.all(kinds), grid=(1,)).run
        except Exception:  # the measurement reports it
            pass

    for name in compilers.names:
        compilers.use(name)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(compile_one, chosen))


def round_of(compilers, loops, order, launches, wait):
    """Microseconds per launch of each compiler, twice: in the given order and then in the opposite one."""
    times = {name: [] for name in order}
    for name in (*order, *reversed(order)):
        compilers.use(name)
        loops[name](3)
        wait()
        times[name].append(1e6 * loops[name](launches) / launches)
        wait()
    return times


def measure(compilers, loops, rounds, launches, wait):
    """Medians over the rounds."""
    found = []
    for number in range(rounds):
        order = compilers.names if number % 2 == 0 else compilers.names[::-1]
        found.append(round_of(compilers, loops, order, launches, wait))
    row = {name: statistics.median(sum(each[name]) / 2 for each in found) for name in compilers.names}
    row["difference"] = statistics.median((sum(each["lilac"]) - sum(each["triton"])) / 2 for each in found)
    row["noise"] = statistics.median(abs(each["triton"][0] - each["triton"][1]) for each in found)
    return row


def measure_case(compilers, way, kernel, arguments, options, wait):
    """A case above the limit is measured again."""
    loops = {}
    for name in compilers.names:
        compilers.use(name)
        loops[name] = LOOPS[way](kernel, arguments)
        loops[name](options.launches)  # warm
    for attempt in range(1, 4):
        row = measure(compilers, loops, attempt * options.rounds, options.launches, wait)
        if row["difference"] <= options.limit:
            break
    return row | {"attempts": attempt}


def rows_of(compilers, chosen, kernels, make, options, wait):
    for name, kinds in chosen:
        arguments = make.all(kinds)
        for way in LOOPS:
            row = {"case": name, "way": way, "arguments": len(kinds)}
            try:
                row.update(measure_case(compilers, way, kernels[name], arguments, options, wait))
            except Exception as error:  # a kind of argument that a compiler refuses is a row of the report
                row["refused"] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            else:
                row["null"] = 1e6 * null_loop(arguments)(options.launches) / options.launches
            yield row


# ---- the program ----------------------------------------------------------------------------


TITLES = ("case", "way", "Triton", "lilac", "more", "noise", "null", "attempts")


def cells_of(row):
    """The line of a row in both tables."""
    if "refused" in row:
        return (row["case"], row["way"], "refused: " + row["refused"])
    return (row["case"], row["way"], f"{row['triton']:.2f}", f"{row['lilac']:.2f}", f"{row['difference']:+.2f}",
            f"{row['noise']:.2f}", f"{row['null']:.2f}", str(row["attempts"]))


def line_of(cells):
    return f"{cells[0]:15s} {cells[1]:9s}" + "".join(f" {cell:>8s}" for cell in cells[2:])


def markdown(rows, summary, about):
    timed = [cells_of(row) for row in rows if "refused" not in row]
    refused = [f"- {row['case']}, {row['way']}: {row['refused']}" for row in rows if "refused" in row]
    lines = ["# Host time of a launch", "",
             "Microseconds of the host per launch of a kernel that does nothing; no time of the GPU is included. "
             "`more`: lilac's beyond Triton's; `noise`: between two measurements of Triton.", "",
             report.table([TITLES, *timed], words=(0, 1)), "", "Summary: " + json.dumps(summary), ""]
    return "\n".join(lines + (["Refused:", "", *refused, ""] if refused else []) + [report.facts(about), ""])


def summary_of(rows, limit):
    timed = [row for row in rows if "difference" in row]
    result = {"limit": limit, "above": [f"{row['case']} {row['way']}" for row in timed if row["difference"] > limit]}
    for way in LOOPS:
        differences = [row["difference"] for row in timed if row["way"] == way]
        if differences:
            result[way] = {"median": statistics.median(differences), "largest": max(differences)}
    return result


def versions(options):
    import triton

    import lilac

    found = {"triton": triton.__version__, "lilac": lilac.__version__, "python": sys.version.split()[0]}
    if options.stub:
        return report.environment(options, None, None, **found)
    import torch

    return report.environment(options, torch.cuda.get_device_name(), None, **found, torch=torch.__version__)


def stub_driver():
    """The driver of the plug-in's tests, whose launches do nothing."""
    sys.path.insert(0, str(ROOT / "tests" / "triton"))
    import standin

    standin.use()
    standin.Launcher.__call__ = lambda self, *arguments: None
    return standin


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20, help="rounds (20)")
    parser.add_argument("--launches", type=int, default=50, help="launches in each of a round's four parts (50)")
    parser.add_argument("--only", default="", metavar="WORD", help="the cases whose name contains WORD")
    parser.add_argument("--limit", type=float, default=0.2, help="microseconds that lilac may be above Triton (0.2)")
    parser.add_argument("--stub", action="store_true", help="a driver that does nothing; no GPU")
    report.add_options(parser)
    return parser.parse_args()


def measured(options):
    """The rows, printed as they come."""
    stub = stub_driver() if options.stub else None
    if stub is None:
        import torch

        wait = torch.cuda.synchronize
    else:
        def wait():
            pass

    compilers, make, rows = Compilers(), Arguments(stub), []
    with tempfile.TemporaryDirectory() as folder:
        chosen = [case for case in cases() if options.only in case[0]]
        kernels = load_kernels(chosen, pathlib.Path(folder))
        if stub is None:
            compile_all(compilers, chosen, kernels, make)
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        gc.collect()
        gc.freeze()
        gc.disable()
        print(line_of(TITLES) + "   µs per launch")
        for row in rows_of(compilers, chosen, kernels, make, options, wait):
            rows.append(row)
            print(line_of(cells_of(row)), flush=True)
    gc.enable()
    compilers.use("triton")
    return rows


def main():
    options = read_options()
    rows = measured(options)
    summary = summary_of(rows, options.limit)
    print(json.dumps(summary))
    about = versions(options)
    report.write_json(options.json, about, rows=rows, summary=summary)
    if options.markdown:
        options.markdown.write_text(markdown(rows, summary, about))
    sys.exit(1 if summary["above"] else 0)


if __name__ == "__main__":
    main()
