#!/usr/bin/env python3
"""The host's time for a launch under lilac and under Triton, and what it depends on.

    python3 bench/launch_time.py [--rounds N] [--launches N] [--json FILE] [--only WORD] [--stub]

Every case is a kernel that does nothing, with 1 to 40 arguments of one kind, or of all kinds. Each is
launched in two ways:

  jit        kernel[grid](…)      the arguments are inspected, and the kernel is found in Triton's cache
  compiled   compiled.run(…)      the launcher alone, as torch.compile calls it

Both compilers are timed in one process, in alternating order, on warm caches. A round is N launches of
each compiler. The times are medians over the rounds; `more` is the median of the differences within the
rounds, so that a change of the processor's clock between rounds does not count. The queue of the device is
empty when a compiler's launches begin, and holds more than N of them, so the time is the host's. Python's
garbage collector is off meanwhile. `null` is the time of the same loop around an empty Python function;
it is not subtracted.

Needs an NVIDIA GPU, PyTorch and the package lilac. With --stub it needs neither a GPU nor PyTorch: a driver
that does nothing takes the place of Triton's, so the time is that of the Python code alone.

Exit status 1 if lilac's time is more than 0.2 µs above Triton's in a case (--limit).
"""

import argparse
import gc
import json
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COUNTS = (1, 2, 4, 8, 16, 24, 32, 40)
MIXED = ("tensor", "int", "float", "none", "constexpr", "bool", "tuple")


# ---- kernels --------------------------------------------------------------------------------


def kernel_source(name, kinds):
    """A kernel with one parameter of each kind of `kinds`. Its body uses none of them."""
    parameters = [f"a{i}: tl.constexpr" if kind == "constexpr" else f"a{i}" for i, kind in enumerate(kinds)]
    return f"@triton.jit\ndef {name}({', '.join(parameters)}):\n    pass\n"


def cases(descriptors):
    """(name, kinds of the arguments), in the order of the report."""
    for kind in ("tensor", "int", "float", "none", "constexpr", "bool", "tuple"):
        for count in COUNTS:
            yield f"{kind}_{count}", (kind,) * count
    for count in COUNTS if descriptors else ():
        yield f"descriptor_{count}", ("descriptor",) * count
    for count in COUNTS:
        yield f"mixed_{count}", tuple(MIXED[i % len(MIXED)] for i in range(count))


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

            return TensorDescriptor.from_tensor(self.tensor((64, 64)), [16, 64])
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


def alternating(rounds, names):
    """The order of the compilers in each round: every other round begins with the other one."""
    for number in range(rounds):
        yield from names if number % 2 == 0 else reversed(names)


def measure(compilers, way, kernel, arguments, options, wait):
    """Microseconds per launch of each compiler, and lilac's beyond Triton's."""
    loops = {}
    for name in compilers.names:
        compilers.use(name)
        loops[name] = LOOPS[way](kernel, arguments)
        loops[name](options.launches // 10 + 1)  # warm
    times = {name: [] for name in compilers.names}
    for name in alternating(options.rounds, compilers.names):
        compilers.use(name)
        wait()
        gc.collect()
        gc.disable()
        times[name].append(1e6 * loops[name](options.launches) / options.launches)
        gc.enable()
    wait()
    row = {name: statistics.median(each) for name, each in times.items()}
    row["difference"] = statistics.median(ours - own for ours, own in zip(times["lilac"], times["triton"]))
    return row


def rows_of(compilers, chosen, kernels, make, options, wait):
    for name, kinds in chosen:
        arguments = make.all(kinds)
        for way in LOOPS:
            row = {"case": name, "way": way, "arguments": len(kinds)}
            try:
                row.update(measure(compilers, way, kernels[name], arguments, options, wait))
            except Exception as error:  # a kind of argument that a compiler refuses is a row of the report
                row["refused"] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            else:
                row["null"] = 1e6 * null_loop(arguments)(options.launches) / options.launches
            yield row


# ---- the program ----------------------------------------------------------------------------


def line_of(row):
    head = f"{row['case']:15s} {row['way']:9s}"
    if "refused" in row:
        return f"{head} refused: {row['refused']}"
    return (f"{head} {row['triton']:8.2f} {row['lilac']:8.2f} {row['difference']:+8.2f} {row['null']:8.2f}")


def summary_of(rows, limit):
    timed = [row for row in rows if "difference" in row]
    result = {"limit": limit, "above": [f"{row['case']} {row['way']}" for row in timed if row["difference"] > limit]}
    for way in LOOPS:
        differences = [row["difference"] for row in timed if row["way"] == way]
        if differences:
            result[way] = {"median": statistics.median(differences), "largest": max(differences)}
    return result


def versions(stub):
    import triton

    import lilac

    found = {"triton": triton.__version__, "lilac": lilac.__version__, "python": sys.version.split()[0]}
    if not stub:
        import torch

        found.update(torch=torch.__version__, device=torch.cuda.get_device_name())
    return found


def stub_driver():
    """The driver of the plug-in's tests, whose launches do nothing."""
    sys.path.insert(0, str(ROOT / "tests" / "triton"))
    import standin

    standin.use()
    standin.Launcher.__call__ = lambda self, *arguments: None
    return standin


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40, help="rounds (40)")
    parser.add_argument("--launches", type=int, default=100, help="launches of each compiler in a round (100)")
    parser.add_argument("--only", default="", metavar="WORD", help="the cases whose name contains WORD")
    parser.add_argument("--limit", type=float, default=0.2, help="microseconds that lilac may be above Triton (0.2)")
    parser.add_argument("--json", metavar="FILE", help="write the rows, the summary and the versions to FILE")
    parser.add_argument("--stub", action="store_true", help="a driver that does nothing; no GPU")
    return parser.parse_args()


def main():
    import tempfile

    options = read_options()
    stub = stub_driver() if options.stub else None
    if stub is None:
        import torch

        wait = torch.cuda.synchronize
    else:
        def wait():
            pass

    compilers = Compilers()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        chosen = [case for case in cases(stub is None) if options.only in case[0]]
        kernels = load_kernels(chosen, pathlib.Path(folder))
        print(f"{'case':15s} {'way':9s} {'Triton':>8s} {'lilac':>8s} {'more':>8s} {'null':>8s}   µs per launch")
        for row in rows_of(compilers, chosen, kernels, Arguments(stub), options, wait):
            rows.append(row)
            print(line_of(row), flush=True)
    compilers.use("triton")
    summary = summary_of(rows, options.limit)
    print(json.dumps(summary))
    if options.json:
        result = {"versions": versions(stub is not None), "rows": rows, "summary": summary}
        pathlib.Path(options.json).write_text(json.dumps(result, indent=1))
    sys.exit(1 if summary["above"] else 0)


if __name__ == "__main__":
    main()
