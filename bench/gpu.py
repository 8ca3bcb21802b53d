#!/usr/bin/env python3
"""lilac's kernels compared with Triton's on this GPU: results, and times in one run.

    python3 bench/gpu.py LIBLILAC [--json FILE] [--markdown FILE]

LIBLILAC is liblilac.so (loaded in this process) or the `lilac` command. Needs an NVIDIA GPU, PyTorch
and Triton 3.6. For each of the ten launches, at full size:

  1. Triton compiles and runs the launch; its TTIR text of that very launch goes through lilac, and
     lilac's PTX through the same ptxas that Triton uses.
  2. Both kernels run on fresh random inputs with poisoned outputs and are checked against PyTorch in
     double precision; so are launches of odd sizes. Nothing outside an output may be written.
  3. Both are launched through one and the same call of the CUDA driver and timed with events, the
     L2 cache flushed before every launch, in alternating order, over several rounds.

Exit status 1 when a result is wrong, a kernel is refused, or (with --check) one is slower than 1.05
times Triton's.
"""

import argparse
import ctypes
import pathlib
import re
import shutil
import statistics
import sys
import time
import traceback

import report
from driver import SCRATCH, Driver, assemble, bundled_ptxas, pointers_to
from launches import KERNELS, LAUNCHES, load_module, reference
from library import LilacError, lilac_at

HERE = pathlib.Path(__file__).resolve().parent

# The timing of `python -m lilac.bench`; it works without a built package.
measure = load_module("measure", HERE.parent / "python" / "lilac" / "bench" / "measure.py")
STOPWATCHES = {}

BANDWIDTH = 4.2e12  # bytes a second that an H200 copies at most; the bound of these kernels
GUARD = 1024        # poisoned elements behind every output
POISON = -91        # of integers; floats: NaN


# ---- launching ------------------------------------------------------------------------------


def find_ptxas(given):
    """The one that Triton assembles with, so that both compilers' kernels have the same."""
    found = given or bundled_ptxas() or shutil.which("ptxas")
    if not found:
        raise SystemExit("no ptxas: give one with --ptxas")
    return found


PARAMETER_TYPES = {"i1": ctypes.c_uint8, "i8": ctypes.c_int8, "i16": ctypes.c_int16,
                   "i32": ctypes.c_int32, "i64": ctypes.c_int64, "f32": ctypes.c_float,
                   "f64": ctypes.c_double}


def ttir_parameters(ttir):
    """Names and types of the kernel's parameters, in order, from its TTIR."""
    line = next(line for line in ttir.splitlines() if "tt.func public" in line)
    head = line[line.index("("):]
    return re.findall(r"%(\w+): (!tt\.ptr<[^>]*>|\w+)", head)


def grid_of(grid):
    """As a tuple: that of a launch may be a number."""
    return grid if isinstance(grid, tuple) else (grid,)


class Kernel:
    """A loaded kernel with the arguments of one launch; both compilers' are launched by this."""

    def __init__(self, driver, function, parameters, values, grid, threads, shared, stream):
        self.cuda = driver.cuda
        driver.allow_shared(function, shared)
        self.storage = []
        for name, type_name in parameters:
            value = values[name]
            if type_name.startswith("!tt.ptr"):
                self.storage.append(ctypes.c_uint64(value.data_ptr()))
            else:
                self.storage.append(PARAMETER_TYPES[type_name](value))
        self.storage += SCRATCH
        u = ctypes.c_uint
        x, y, z = (*grid_of(grid), 1, 1)[:3]
        self.arguments = (function, u(x), u(y), u(z), u(threads), u(1), u(1), u(shared),
                          ctypes.c_void_p(stream), pointers_to(self.storage), None)

    def launch(self):
        if self.cuda.cuLaunchKernel(*self.arguments):
            raise RuntimeError("cuLaunchKernel failed")


# ---- data -----------------------------------------------------------------------------------


class Data:
    """Buffers of one launch: random inputs, outputs poisoned with NaN, a guard behind each."""

    def __init__(self, torch, launch, seed):
        self.torch, self.launch = torch, launch
        generator = torch.Generator(device="cuda").manual_seed(seed)
        self.values, self.whole = {}, {}
        for argument in launch.arguments:
            if argument.shape is None:
                self.values[argument.name] = argument.value
                continue
            dtype = getattr(torch, argument.dtype)
            count = 1
            for size in argument.shape:
                count *= size
            if argument.kind == "labels":
                value = torch.randint(0, argument.value, (count,), device="cuda", dtype=dtype,
                                      generator=generator)
            elif argument.kind in ("output", "sum"):
                self.whole[argument.name] = torch.empty(count + GUARD, device="cuda", dtype=dtype)
                value = self.whole[argument.name][:count]
            elif not dtype.is_floating_point:
                limits = torch.iinfo(dtype)
                value = torch.randint(limits.min, limits.max + 1, (count,), device="cuda",
                                      dtype=dtype, generator=generator)
            else:
                # The unused part of a row is NaN, so that a kernel that reads it has a wrong result.
                value = torch.randn(count, device="cuda", generator=generator).to(dtype)
                value.view(argument.shape)[..., argument.used:] = float("nan")
            self.values[argument.name] = value.view(argument.shape)

    def poison(self):
        for argument in self.launch.arguments:
            whole = self.whole.get(argument.name)
            if whole is not None:
                whole.fill_(float("nan") if whole.is_floating_point() else POISON)
                if argument.kind == "sum":
                    self.values[argument.name].zero_()

    def used(self, argument):
        return self.values[argument.name][..., :argument.used]

    def expected(self):
        inputs = {a.name: self.used(a) if a.kind in ("input", "labels") else a.value
                  for a in self.launch.arguments if a.kind in ("input", "labels", "constexpr")}
        return reference(self.launch.kernel, self.torch, inputs)

    def verdict(self, expected):
        """(largest relative error over its tolerance, errors by output, complaint or None)."""
        torch, worst, errors = self.torch, 0.0, {}
        for argument in self.launch.arguments:
            if argument.kind not in ("output", "sum"):
                continue
            name, want = argument.name, expected[argument.name]
            got = self.used(argument).double()
            want = want.double()
            error = ((got - want).norm() / want.norm().clamp_min(1e-300)).item()
            errors[name] = error
            tolerance = self.launch.tolerance[name]
            if not error <= tolerance:
                return float("inf"), errors, f"{name}: relative error {error:.3g} > {tolerance:g}"
            worst = max(worst, error / tolerance if tolerance else 0.0)
            whole = self.whole[name]
            guard = whole if whole.is_floating_point() else whole[-GUARD:]
            used = got.numel() if whole.is_floating_point() else 0
            outside = (torch.isnan(guard) if whole.is_floating_point() else guard == POISON).sum().item()
            if outside != guard.numel() - used:
                return float("inf"), errors, f"{name}: written outside its elements"
        return worst, errors, None


class Launched:
    """A launch that Triton has compiled and run here, and kernels that are launched just as it was:
    `ttir` is its text, `kernels` are by name."""

    def __init__(self, tools, launch, seed):
        torch = self.torch = tools["torch"]
        self.driver, self.launch = tools["driver"], launch
        self.stream = torch.cuda.current_stream().cuda_stream
        self.data = Data(torch, launch, seed)
        self.data.poison()
        self.compiled = getattr(tools["kernels"], launch.kernel)[grid_of(launch.grid)](
            *[self.data.values[a.name] for a in launch.arguments], num_warps=launch.num_warps)
        torch.cuda.synchronize()
        self.expected = self.data.expected()
        self.ttir = self.compiled.asm["ttir"]
        self.parameters = ttir_parameters(self.ttir)
        self.kernels = {}

    def add(self, name, image, entry, shared, num_warps=None, grid=None):
        self.kernels[name] = Kernel(self.driver, self.driver.load(image, entry), self.parameters,
                                    self.data.values, grid or self.launch.grid,
                                    32 * (num_warps or self.launch.num_warps), shared, self.stream)

    def add_triton(self, name="triton"):
        """Bytes of shared memory."""
        metadata = self.compiled.metadata
        shared = metadata.shared() if callable(metadata.shared) else metadata.shared
        self.add(name, self.compiled.asm["cubin"], metadata.name, shared, metadata.num_warps)
        return shared

    def verdict(self, name):
        """As `Data.verdict`, of the kernel's results on poisoned outputs."""
        self.data.poison()
        self.kernels[name].launch()
        self.torch.cuda.synchronize()
        return self.data.verdict(self.expected)


# ---- measuring ------------------------------------------------------------------------------


def stopwatch(torch, clean=False):
    """One a process: it holds a buffer of 256 MiB."""
    if clean not in STOPWATCHES:
        STOPWATCHES[clean] = measure.Stopwatch(torch, clean)
    return STOPWATCHES[clean]


def time_both(torch, kernels, budget, rounds, clean=False):
    """Milliseconds of each kernel, a median for each round, and the launches of a round."""
    watch = stopwatch(torch, clean)
    turns = [lambda count, kernel=kernel: watch.time(kernel.launch, count) for kernel in kernels]
    return measure.in_turn(turns, rounds, budget, watch.flush_ms)


def run_case(tools, name, launch, seed, timed):
    row = {"name": name, "num_warps": launch.num_warps, "grid": launch.grid,
           "bytes": launch.bytes, "arguments": {a.name: a.value for a in launch.arguments
                                                if a.shape is None}}
    launched = Launched(tools, launch, seed)
    compiled = launched.compiled
    row["triton_error"], _, complaint = launched.data.verdict(launched.expected)
    if complaint:
        row["triton_complaint"] = complaint
    row["triton_registers"] = getattr(compiled, "n_regs", None)
    row["triton_spills"] = getattr(compiled, "n_spills", None)
    row["triton_shared"] = launched.add_triton()
    if tools["keep"]:
        for kind in ("ttir", "ttgir", "ptx"):
            (tools["keep"] / f"{name}.triton.{kind}").write_text(compiled.asm[kind])
    ptx, metadata, seconds = tools["lilac"].compile(name + ".ttir", launched.ttir, launch.num_warps,
                                                    compiled.metadata.num_stages)
    row["lilac_compile_ms"] = 1e3 * seconds
    if tools["keep"]:
        (tools["keep"] / f"{name}.lilac.ptx").write_text(ptx)
    cubin, registers, spills, seconds, warnings = assemble(tools["ptxas"], tools["device"], ptx)
    row.update(lilac_registers=registers, lilac_spills=spills, lilac_shared=metadata["shared"],
               ptxas_ms=1e3 * seconds)
    if warnings:
        row["ptxas_warnings"] = warnings
    launched.add("lilac", cubin, metadata["name"], metadata["shared"], metadata["num_warps"])
    for who in launched.kernels:
        row[who + "_error"], row[who + "_errors"], complaint = launched.verdict(who)
        if complaint:
            row[who + "_complaint"] = complaint
    if timed:
        launched.expected = None
        medians, repeats = time_both(tools["torch"], launched.kernels.values(), tools["budget"],
                                     tools["rounds"], tools["clean"])
        triton_ms, lilac_ms = (statistics.median(m) for m in medians)
        ratios = [b / a for a, b in zip(*medians)]
        row.update(triton_ms=triton_ms, lilac_ms=lilac_ms, ratio=statistics.median(ratios),
                   ratio_least=min(ratios), ratio_most=max(ratios), repeats=repeats,
                   rate=1e-9 * launch.bytes / lilac_ms, triton_rate=1e-9 * launch.bytes / triton_ms,
                   share_of_bound=1e3 * launch.bytes / BANDWIDTH / lilac_ms,
                   triton_share_of_bound=1e3 * launch.bytes / BANDWIDTH / triton_ms)
    return row


def attempt(tools, name, launch, seed, timed):
    try:
        return run_case(tools, name, launch, seed, timed)
    except LilacError as error:
        return {"name": name, "lilac_complaint": str(error).strip()}
    except Exception as error:  # the others still count; in a broken context they fail too
        traceback.print_exc()
        return {"name": name, "lilac_complaint": f"{type(error).__name__}: {error}"}


# ---- the report -----------------------------------------------------------------------------

COLUMNS = (("case", "{name}"), ("Triton ms", "{triton_ms:.4f}"), ("lilac ms", "{lilac_ms:.4f}"),
           ("TB/s", "{rate:.2f}"), ("ratio", "{ratio:.3f}"), ("rounds", "{ratio_least:.3f}-{ratio_most:.3f}"),
           ("of bound", "{share_of_bound:.0%}"), ("regs", "{lilac_registers} / {triton_registers}"),
           ("spills", "{lilac_spills} / {triton_spills}"),
           ("shared", "{lilac_shared} / {triton_shared}"), ("error / allowed", "{lilac_error:.2f}"),
           ("lilac, ptxas ms", "{lilac_compile_ms:.2f}, {ptxas_ms:.0f}"))


def table(rows):
    lines = [[title for title, _ in COLUMNS]]
    for row in rows:
        cells = []
        for _, form in COLUMNS:
            try:
                cells.append(form.format(**row))
            except (KeyError, TypeError, ValueError):
                cells.append("-")
        lines.append(cells)
    return report.table(lines)


def environment(torch, triton, options, ptxas):
    return {
        **report.environment(options, torch.cuda.get_device_name(), ptxas, triton=triton.__version__,
                             torch=torch.__version__, cuda=torch.version.cuda),
        "rounds": options.rounds,
        "method": "median over rounds of medians over launches; CUDA events; 256 MiB "
                  + ("read" if getattr(options, "clean", False) else "written") +
                  " before each launch; order alternates; both launched by the same driver call",
        "bandwidth_bound": BANDWIDTH,
    }


def add_options(parser, rounds, nargs=None):
    """The options of all programs that compare lilac with Triton."""
    parser.add_argument("lilac", nargs=nargs, help="liblilac.so or the lilac command")
    report.add_options(parser)
    parser.add_argument("--kernels", type=pathlib.Path, default=KERNELS)
    parser.add_argument("--rounds", type=int, default=rounds)


def begin(options):
    """PyTorch and Triton, and what measures them: driver, kernels, device, ptxas, lilac."""
    import torch
    import triton
    if not torch.cuda.is_available():
        raise SystemExit("no GPU here")
    torch.zeros(1, device="cuda")  # the context
    major, minor = torch.cuda.get_device_capability()
    device = f"sm_{major}{minor}" + ("a" if major >= 9 else "")
    return torch, triton, {
        "torch": torch, "kernels": load_module("kernels", options.kernels), "driver": Driver(),
        "device": device, "ptxas": find_ptxas(options.ptxas), "lilac": lilac_at(options.lilac, device)}


def main(launches=LAUNCHES, slower=1.05):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add_options(parser, rounds=9)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the TTIR and PTX")
    parser.add_argument("--only", action="append", help="this launch only (may be repeated)")
    parser.add_argument("--budget", type=float, default=1500, help="ms of timing a launch")
    parser.add_argument("--clean", action="store_true",
                        help="read 256 MiB before each launch instead of writing them")
    parser.add_argument("--seed", type=int, default=None, help="default: from the clock")
    parser.add_argument("--no-timing", action="store_true")
    parser.add_argument("--check", action="store_true", help="exit 1 when one is slower than it should")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int(time.time())

    torch, triton, tools = begin(options)
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    tools.update(keep=options.keep, rounds=options.rounds, budget=options.budget, clean=options.clean)

    names = options.only or list(launches)
    rows, odd = [], []
    for name in names:
        full, others = launches[name]
        rows.append(attempt(tools, name, full(), seed, not options.no_timing))
        print(rows[-1].get("lilac_complaint") or f"{name}: done", flush=True)
        torch.cuda.empty_cache()
        for number, make in enumerate(others, 1):
            odd.append(attempt(tools, f"{name}.{number}", make(), seed + number, False))
    print()
    print(table(rows))
    print("\nother sizes (error over what is allowed, lilac and Triton):")
    for row in odd:
        print(f"  {row['name']:<26} {row.get('lilac_error', float('nan')):8.3f} "
              f"{row.get('triton_error', float('nan')):8.3f}  {row.get('arguments', '')}")
    failed = [r for r in rows + odd if "lilac_complaint" in r]
    for row in failed:
        print(f"WRONG {row['name']}: {row['lilac_complaint']}")
    slow = [r for r in rows if r.get("ratio", 0) > slower]
    for row in slow:
        print(f"slow {row['name']}: {row['ratio']:.3f} times Triton's time")
    about = environment(torch, triton, options, tools["ptxas"])
    about["seed"] = seed
    report.write_json(options.json, about, full_size=rows, other_sizes=odd)
    if options.markdown:
        options.markdown.write_text(
            f"# lilac beside Triton on {about['gpu']}\n\n{table(rows)}\n\n"
            "Pairs are lilac's / Triton's. The bound is the launch's least traffic at "
            f"{BANDWIDTH / 1e12:.1f} TB/s; rounds: the least and largest ratio of a round; error: "
            "the largest relative error over what is allowed.\n\n"
            f"Launches of other sizes: {len(odd)}, wrong: "
            f"{sum('lilac_complaint' in r for r in odd)}.\n\n{report.facts(about)}\n")
    return 1 if failed or (options.check and slow) else 0


if __name__ == "__main__":
    sys.exit(main())
