#!/usr/bin/env python3
"""lilac's kernels beside Triton's on this GPU: right results, and times in one run.

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
import datetime
import importlib.util
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from launches import LAUNCHES, reference  # noqa: E402


def load_measure():
    """How `python -m lilac.bench` takes times; the package need not be built for it."""
    path = HERE.parent / "python" / "lilac" / "bench" / "measure.py"
    spec = importlib.util.spec_from_file_location("measure", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


measure = load_measure()
STOPWATCHES = {}

BANDWIDTH = 4.2e12  # bytes a second that an H200 copies at most; the bound of these kernels
GUARD = 1024        # poisoned elements behind every output
POISON = -91        # of integers; floats: NaN


# ---- lilac ----------------------------------------------------------------------------------


class Text(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char_p), ("length", ctypes.c_size_t),
                ("capacity", ctypes.c_size_t)]


class Target(ctypes.Structure):  # the first member of lilac_options
    _fields_ = [("arch", ctypes.c_void_p), ("num_warps", ctypes.c_uint32),
                ("num_ctas", ctypes.c_uint32), ("num_stages", ctypes.c_uint32)]


class Compilation(ctypes.Structure):  # what lilac_compilation begins with
    _fields_ = [("context", ctypes.c_void_p), ("tile", ctypes.c_void_p),
                ("simt", ctypes.c_void_p), ("ptx", Text)]


class Diagnostic(ctypes.Structure):
    _fields_ = [("severity", ctypes.c_int), ("id", ctypes.c_char_p),
                ("source", ctypes.c_uint32), ("offset", ctypes.c_uint32),
                ("width", ctypes.c_uint32), ("location", ctypes.c_uint32),
                ("message", ctypes.c_char_p), ("notes", ctypes.c_void_p),
                ("next", ctypes.c_void_p)]


class LilacError(Exception):
    pass


class Library:
    """lilac through liblilac.so. Options and results are larger than what is named above: their
    storage is generous and only the members above are touched."""

    def __init__(self, path, device):
        lib = self.lib = ctypes.CDLL(str(path))
        pointer, u32, size = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_size_t
        for name, result, arguments in (
                ("lilac_context_create", pointer, []),
                ("lilac_context_destroy", None, [pointer]),
                ("lilac_source_add", u32, [pointer, ctypes.c_char_p, ctypes.c_char_p, size]),
                ("lilac_options_init", None, [pointer]),
                ("lilac_arch_find", pointer, [ctypes.c_char_p]),
                ("lilac_compile", ctypes.c_bool, [pointer, pointer, u32, pointer]),
                ("lilac_compilation_json", None, [pointer, pointer, pointer]),
                ("lilac_compilation_clear", None, [pointer]),
                ("lilac_diagnostics", pointer, [pointer]),
                ("lilac_diagnostic_print", None, [pointer, pointer, pointer, ctypes.c_bool]),
                ("lilac_text_clear", None, [pointer])):
            function = getattr(lib, name)
            function.restype, function.argtypes = result, arguments
        self.arch = lib.lilac_arch_find(device.encode())
        if not self.arch:
            raise SystemExit(f"lilac knows no device {device}")

    def compile(self, name, ttir, num_warps, num_stages):
        """PTX text, metadata, seconds."""
        lib = self.lib
        options = (ctypes.c_uint64 * 512)()
        result = (ctypes.c_uint64 * 8192)()
        text = ttir.encode()
        start = time.perf_counter()
        context = lib.lilac_context_create()
        source = lib.lilac_source_add(context, name.encode(), text, len(text))
        lib.lilac_options_init(options)
        target = Target.from_buffer(options)
        target.arch, target.num_warps, target.num_stages = self.arch, num_warps, num_stages
        good = lib.lilac_compile(result, context, source, options)
        seconds = time.perf_counter() - start
        if good:
            compiled = Compilation.from_buffer(result)
            ptx = compiled.ptx.bytes.decode()
            described = Text()
            lib.lilac_compilation_json(ctypes.byref(described), result, options)
            metadata = json.loads(described.bytes.decode())
            lib.lilac_text_clear(ctypes.byref(described))
        else:
            said = Text()
            diagnostic = lib.lilac_diagnostics(context)
            while diagnostic:
                lib.lilac_diagnostic_print(ctypes.byref(said), context, diagnostic, False)
                diagnostic = Diagnostic.from_address(diagnostic).next
            message = (said.bytes or b"refused with no diagnostic").decode()
            lib.lilac_text_clear(ctypes.byref(said))
        lib.lilac_compilation_clear(result)
        lib.lilac_context_destroy(context)
        if not good:
            raise LilacError(message)
        return ptx, metadata, seconds


class Command:
    """lilac through its command."""

    def __init__(self, path, device):
        self.path, self.device = str(pathlib.Path(path).resolve()), device

    def compile(self, name, ttir, num_warps, num_stages):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / name
            source.write_text(ttir)
            outputs = []
            start = time.perf_counter()
            for kind in ("ptx", "json"):
                output = source.with_suffix("." + kind)
                run = subprocess.run(
                    [self.path, "compile", str(source), "-o", str(output), "--emit", kind,
                     "--target", self.device, "--num-warps", str(num_warps), "--num-stages",
                     str(num_stages)], capture_output=True, text=True)
                if run.returncode:
                    raise LilacError(run.stderr or f"exit status {run.returncode}")
                outputs.append(output.read_text())
            seconds = time.perf_counter() - start
        return outputs[0], json.loads(outputs[1]), seconds


# ---- assembling and launching ---------------------------------------------------------------


def find_ptxas(given):
    """The one that Triton assembles with, so that both compilers' kernels have the same."""
    if given:
        return given
    import triton
    bundled = pathlib.Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    try:
        return triton.knobs.nvidia.ptxas.path
    except AttributeError:
        pass
    found = str(bundled) if bundled.exists() else shutil.which("ptxas")
    if not found:
        raise SystemExit("no ptxas: give one with --ptxas")
    return found


def assemble(ptxas, device, ptx):
    """Cubin, registers, bytes spilled, seconds, what ptxas warned of."""
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = pathlib.Path(folder) / "k.ptx", pathlib.Path(folder) / "k.cubin"
        source.write_text(ptx)
        start = time.perf_counter()
        run = subprocess.run([ptxas, f"-arch={device}", "-v", "-lineinfo", str(source), "-o",
                              str(cubin)], capture_output=True, text=True)
        seconds = time.perf_counter() - start
        report = run.stdout + run.stderr
        if run.returncode:
            raise LilacError("ptxas refuses lilac's PTX:\n" + report)
        registers = re.search(r"Used (\d+) registers", report)
        spills = sum(int(n) for n in re.findall(r"(\d+) bytes spill", report))
        warnings = [line for line in report.splitlines() if "warning" in line]
        return (cubin.read_bytes(), int(registers.group(1)) if registers else -1, spills, seconds,
                warnings)


class Driver:
    """What is used of the CUDA driver, in PyTorch's context."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")

    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'?').decode()}")

    def load(self, cubin, name):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def allow_shared(self, function, size):
        if size > 48 * 1024:  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self.call("cuFuncSetAttribute", function, 8, size)


PARAMETER_TYPES = {"i1": ctypes.c_uint8, "i8": ctypes.c_int8, "i16": ctypes.c_int16,
                   "i32": ctypes.c_int32, "i64": ctypes.c_int64, "f32": ctypes.c_float,
                   "f64": ctypes.c_double}


def ttir_parameters(ttir):
    """Names and types of the kernel's parameters, in order, from its TTIR."""
    line = next(line for line in ttir.splitlines() if "tt.func public" in line)
    head = line[line.index("("):]
    return re.findall(r"%(\w+): (!tt\.ptr<[^>]*>|\w+)", head)


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
        self.storage += [ctypes.c_uint64(0), ctypes.c_uint64(0)]  # global and profile scratch
        pointers = (ctypes.c_void_p * len(self.storage))(
            *[ctypes.addressof(s) for s in self.storage])
        u = ctypes.c_uint
        x, y, z = (tuple(grid) if isinstance(grid, tuple) else (grid,)) + (1,) * (
            3 - (len(grid) if isinstance(grid, tuple) else 1))
        self.arguments = (function, u(x), u(y), u(z), u(threads), u(1), u(1), u(shared),
                          ctypes.c_void_p(stream), pointers, None)

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
                # What a row holds beyond its used part is NaN: a kernel that reads it shows it.
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

    def judge(self, expected):
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
    torch, driver = tools["torch"], tools["driver"]
    row = {"name": name, "num_warps": launch.num_warps, "grid": launch.grid,
           "bytes": launch.bytes, "arguments": {a.name: a.value for a in launch.arguments
                                                if a.shape is None}}
    data = Data(torch, launch, seed)
    stream = torch.cuda.current_stream().cuda_stream
    # Triton: its own launch first, which compiles.
    data.poison()
    jit = getattr(tools["kernels"], launch.kernel)
    compiled = jit[launch.grid if isinstance(launch.grid, tuple) else (launch.grid,)](*[data.values[a.name] for a in launch.arguments],
                                   num_warps=launch.num_warps)
    torch.cuda.synchronize()
    expected = data.expected()
    row["triton_error"], _, complaint = data.judge(expected)
    if complaint:
        row["triton_complaint"] = complaint
    ttir = compiled.asm["ttir"]
    parameters = ttir_parameters(ttir)
    shared = compiled.metadata.shared
    shared = shared() if callable(shared) else shared
    function = driver.load(compiled.asm["cubin"], compiled.metadata.name)
    triton_kernel = Kernel(driver, function, parameters, data.values, launch.grid,
                           32 * compiled.metadata.num_warps, shared, stream)
    row["triton_registers"] = getattr(compiled, "n_regs", None)
    row["triton_spills"] = getattr(compiled, "n_spills", None)
    row["triton_shared"] = shared
    if tools["keep"]:
        for kind in ("ttir", "ttgir", "ptx"):
            (tools["keep"] / f"{name}.triton.{kind}").write_text(compiled.asm[kind])
    # lilac
    ptx, metadata, seconds = tools["lilac"].compile(name + ".ttir", ttir, launch.num_warps,
                                                    compiled.metadata.num_stages)
    row["lilac_compile_ms"] = 1e3 * seconds
    if tools["keep"]:
        (tools["keep"] / f"{name}.lilac.ptx").write_text(ptx)
    cubin, registers, spills, seconds, warnings = assemble(tools["ptxas"], tools["device"], ptx)
    row.update(lilac_registers=registers, lilac_spills=spills, lilac_shared=metadata["shared"],
               ptxas_ms=1e3 * seconds)
    if warnings:
        row["ptxas_warnings"] = warnings
    function = driver.load(cubin, metadata["name"])
    lilac_kernel = Kernel(driver, function, parameters, data.values, launch.grid,
                          32 * metadata["num_warps"], metadata["shared"], stream)
    # Both again, launched the same way, on poisoned outputs.
    for who, kernel in (("triton", triton_kernel), ("lilac", lilac_kernel)):
        data.poison()
        kernel.launch()
        torch.cuda.synchronize()
        worst, errors, complaint = data.judge(expected)
        row[who + "_error"], row[who + "_errors"] = worst, errors
        if complaint:
            row[who + "_complaint"] = complaint
    del expected
    if timed:
        medians, repeats = time_both(torch, (triton_kernel, lilac_kernel), tools["budget"],
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
    except Exception as error:  # the others still count; a broken context fails them by itself
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
    widths = [max(len(line[k]) for line in lines) for k in range(len(COLUMNS))]

    def put(cells):
        return "| " + " | ".join(c.ljust(w) if k == 0 else c.rjust(w)
                                 for k, (c, w) in enumerate(zip(cells, widths))) + " |"

    rule = "|" + "|".join("-" * (w + 2) if k == 0 else "-" * (w + 1) + ":"
                          for k, w in enumerate(widths)) + "|"
    return "\n".join([put(lines[0]), rule] + [put(line) for line in lines[1:]])


def first_line(command):
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=20)
        return run.stdout.strip().splitlines()[-1] if run.stdout.strip() else None
    except (OSError, subprocess.SubprocessError):
        return None


def environment(torch, triton, options, ptxas):
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": " ".join(["python3", "bench/" + pathlib.Path(sys.argv[0]).name, pathlib.Path(options.lilac).name]
                            + [pathlib.Path(a).name for a in sys.argv[2:]]),
        "commit": options.commit or first_line(["git", "-C", str(HERE), "rev-parse", "HEAD"]),
        "gpu": torch.cuda.get_device_name(),
        "driver": first_line(["nvidia-smi", "--query-gpu=driver_version",
                              "--format=csv,noheader"]),
        "triton": triton.__version__, "torch": torch.__version__, "cuda": torch.version.cuda,
        "ptxas": first_line([ptxas, "--version"]), "rounds": options.rounds,
        "method": "median over rounds of medians over launches; CUDA events; 256 MiB "
                  + ("read" if getattr(options, "clean", False) else "written") +
                  " before each launch; order alternates; both launched by the same driver call",
        "bandwidth_bound": BANDWIDTH,
    }


def main(launches=LAUNCHES, slower=1.05):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("lilac", help="liblilac.so or the lilac command")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the TTIR and PTX")
    parser.add_argument("--only", action="append", help="this launch only (may be repeated)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--budget", type=float, default=1500, help="ms of timing a launch")
    parser.add_argument("--clean", action="store_true",
                        help="read 256 MiB before each launch instead of writing them")
    parser.add_argument("--seed", type=int, default=None, help="default: from the clock")
    parser.add_argument("--ptxas")
    parser.add_argument("--commit", help="recorded; default: git's")
    parser.add_argument("--kernels", type=pathlib.Path,
                        default=HERE.parent / "tests" / "data" / "corpus" / "kernels.py")
    parser.add_argument("--no-timing", action="store_true")
    parser.add_argument("--check", action="store_true", help="exit 1 when one is slower than it should")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int(time.time())

    import torch
    import triton
    if not torch.cuda.is_available():
        raise SystemExit("no GPU here")
    torch.zeros(1, device="cuda")  # the context
    major, minor = torch.cuda.get_device_capability()
    device = {(9, 0): "sm_90a", (10, 0): "sm_100a", (12, 0): "sm_120a"}.get(
        (major, minor), f"sm_{major}{minor}")
    spec = importlib.util.spec_from_file_location("kernels", options.kernels)
    kernels = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernels)
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    ptxas = find_ptxas(options.ptxas)
    loader = Library if re.search(r"\.so(\.|$)", os.path.basename(options.lilac)) else Command
    tools = {"torch": torch, "kernels": kernels, "driver": Driver(), "device": device,
             "ptxas": ptxas, "lilac": loader(options.lilac, device), "keep": options.keep,
             "rounds": options.rounds, "budget": options.budget, "clean": options.clean}

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
    about = environment(torch, triton, options, ptxas)
    about["seed"] = seed
    if options.json:
        options.json.write_text(json.dumps({"environment": about, "full_size": rows,
                                            "other_sizes": odd}, indent=1) + "\n")
    if options.markdown:
        facts = "\n".join(f"- {key}: {value}" for key, value in about.items())
        options.markdown.write_text(
            f"# lilac beside Triton on {about['gpu']}\n\n{table(rows)}\n\n"
            "Pairs are lilac's / Triton's. The bound is the launch's least traffic at "
            f"{BANDWIDTH / 1e12:.1f} TB/s; rounds: the least and largest ratio of a round; error: "
            "the largest relative error over what is allowed.\n\n"
            f"Launches of other sizes: {len(odd)}, wrong: "
            f"{sum('lilac_complaint' in r for r in odd)}.\n\n{facts}\n")
    return 1 if failed or (options.check and slow) else 0


if __name__ == "__main__":
    sys.exit(main())
