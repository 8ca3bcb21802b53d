#!/usr/bin/env python3
"""Compilers of PTX: their times and their machine code.

    python3 bench/ptx_compilers.py FILE.ptx…                      # no GPU needed
    python3 bench/ptx_compilers.py --launches LIBLILAC [--only NAME]  # run times too, on this GPU

The compilers: ptxas as a process (the one that Triton brings and those that are found), nvJitLink in
this process (the library beside PyTorch, or --nvjitlink), and on a GPU the driver's linker
(cuLinkAddData, a cubin) and its loader (cuModuleLoadDataEx of the PTX itself). The others are compared
with the first ptxas: registers, local memory, equality of the machine code, and with --launches the
results and the run times. Times are medians of --repeat measurements in rotating order; the time to
load the cubin is separate.
"""

import argparse
import ctypes
import datetime
import glob
import importlib.util
import pathlib
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import gpu
from driver import Driver
from launches import CORPUS, KERNELS, LAUNCHES, load_module
from library import Library
from report import facts, table, write_json


class Refused(Exception):
    """A compiler refuses this PTX."""


# ---- the compilers: compile(ptx bytes) → cubin bytes --------------------------------------------


class Process:
    """ptxas, as Triton runs it: text in a file, cubin in a file."""

    def __init__(self, path, device):
        self.path, self.device = path, device
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
        version = re.search(r"release ([\d.]+)", said).group(1)
        self.name = f"ptxas {version}, a process"

    def compile(self, ptx):
        with tempfile.TemporaryDirectory() as folder:
            source, cubin = pathlib.Path(folder) / "k.ptx", pathlib.Path(folder) / "k.cubin"
            source.write_bytes(ptx)
            run = subprocess.run([self.path, "-lineinfo", "-v", f"--gpu-name={self.device}", str(source),
                                  "-o", str(cubin)], capture_output=True, text=True, close_fds=False)
            if run.returncode:
                raise Refused(run.stderr.strip())
            return cubin.read_bytes()


class NvJitLink:
    """nvJitLink in this process. It compiles PTX as `ptxas -c` does, to be linked, and links it."""

    PTX = 2  # NVJITLINK_INPUT_PTX

    def __init__(self, path, device):
        self.library, self.device = ctypes.CDLL(path), device
        major, minor = ctypes.c_uint(), ctypes.c_uint()
        self.library.nvJitLinkVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = (major.value, minor.value)
        self.name = f"nvJitLink {major.value}.{minor.value}, in process"

    def log(self, handle):
        size = ctypes.c_size_t()
        self.library.nvJitLinkGetErrorLogSize(handle, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value + 1)
        self.library.nvJitLinkGetErrorLog(handle, text)
        return text.value.decode(errors="replace").strip()

    def compile(self, ptx):
        options = [f"-arch={self.device}".encode(), b"-lineinfo"]
        handle, size = ctypes.c_void_p(), ctypes.c_size_t()
        library = self.library
        if library.nvJitLinkCreate(ctypes.byref(handle), ctypes.c_uint32(len(options)),
                                   (ctypes.c_char_p * len(options))(*options)):
            raise Refused("nvJitLinkCreate failed")
        try:
            if library.nvJitLinkAddData(handle, self.PTX, ptx, ctypes.c_size_t(len(ptx)), b"kernel") \
                    or library.nvJitLinkComplete(handle):
                raise Refused(self.log(handle))
            library.nvJitLinkGetLinkedCubinSize(handle, ctypes.byref(size))
            cubin = ctypes.create_string_buffer(size.value)
            library.nvJitLinkGetLinkedCubin(handle, cubin)
            return cubin.raw
        finally:
            library.nvJitLinkDestroy(ctypes.byref(handle))


class DriverLinker:
    """The driver's compiler through its linker, which returns a cubin. It needs a current context."""

    OPTIONS = {5: 0, 6: 0, 13: 1}  # error log buffer, its size, CU_JIT_GENERATE_LINE_INFO

    def __init__(self, cuda):
        self.cuda = cuda
        version = ctypes.c_int()
        cuda.cuDriverGetVersion(ctypes.byref(version))
        self.name = f"the driver's linker {version.value // 1000}.{version.value % 1000 // 10}, in process"

    def compile(self, ptx):
        state, cubin, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        log = ctypes.create_string_buffer(4096)
        names = (ctypes.c_int * 3)(5, 6, 13)
        values = (ctypes.c_void_p * 3)(ctypes.addressof(log), len(log), 1)
        if self.cuda.cuLinkCreate_v2(3, names, values, ctypes.byref(state)):
            raise Refused("cuLinkCreate failed")
        try:
            text = ptx + b"\0"
            if self.cuda.cuLinkAddData_v2(state, 1, text, ctypes.c_size_t(len(text)), b"kernel", 0, None, None) \
                    or self.cuda.cuLinkComplete(state, ctypes.byref(cubin), ctypes.byref(size)):
                raise Refused(log.value.decode(errors="replace").strip())
            return ctypes.string_at(cubin, size.value)
        finally:
            self.cuda.cuLinkDestroy(state)


class DriverLoader:
    """cuModuleLoadDataEx on the PTX: no cubin that one could keep, so the module is the result."""

    def __init__(self, cuda):
        self.cuda, self.name = cuda, "the driver's loader, in process"

    def compile(self, ptx):
        return ptx + b"\0"  # compiled when it is loaded


# ---- the contents of a cubin --------------------------------------------------------------------


def sections(cubin):
    """Name → contents of an ELF file."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + k * size) for k in range(count)]
    start = headers[names][4]
    found = {}
    for name, kind, _, _, offset, length in headers:
        text = cubin[start + name:cubin.index(b"\0", start + name)].decode()
        if kind != 8:  # not SHT_NOBITS
            found[text] = cubin[offset:offset + length]
    return found


def resources(cubin):
    """Registers and bytes of stack of the (one) kernel, from .nv.info: REGCOUNT and FRAME_SIZE."""
    info, at, found = sections(cubin).get(".nv.info", b""), 0, {}
    while at + 4 <= len(info):
        form, number, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == 4:
            if number in (0x2F, 0x11) and size >= 8:
                found[number] = max(found.get(number, 0), struct.unpack_from("<I", info, at + 4)[0])
            at += size
    return {"registers": found.get(0x2F), "stack": found.get(0x11)}


def machine_code(cubin):
    return {name: data for name, data in sections(cubin).items() if name.startswith(".text.")}


# ---- measuring ----------------------------------------------------------------------------------


def compile_all(compilers, ptx, repeat):
    """name → {ms, cubin} or {refused}; each compiler once before anything is timed."""
    rows = {}
    for compiler in compilers:
        try:
            rows[compiler.name] = {"cubin": compiler.compile(ptx), "times": []}
        except Refused as problem:
            rows[compiler.name] = {"refused": str(problem)}
    for number in range(repeat):
        for compiler in compilers[number % len(compilers):] + compilers[:number % len(compilers)]:
            row = rows[compiler.name]
            if "refused" in row or isinstance(compiler, DriverLoader):
                continue
            begin = time.perf_counter()
            compiler.compile(ptx)
            row["times"].append(1e3 * (time.perf_counter() - begin))
    first = rows[compilers[0].name]
    for row in rows.values():
        if row.get("times"):
            row["compile_ms"] = statistics.median(row["times"])
            row.update(resources(row["cubin"]))
            row["same_code"] = "cubin" in first and machine_code(row["cubin"]) == machine_code(first["cubin"])
    return rows


def find_ptxas(given):
    """Paths of different files: those of the command line, Triton's and CUDA's."""
    found = list(given or [])
    spec = importlib.util.find_spec("triton")
    if spec and not given:
        found.append(str(pathlib.Path(spec.origin).parent / "backends" / "nvidia" / "bin" / "ptxas"))
    if not given:
        found += [shutil.which("ptxas") or "", "/usr/local/cuda/bin/ptxas"]
    paths = []
    for path in found:
        if path and pathlib.Path(path).exists() and not any(pathlib.Path(path).samefile(p) for p in paths):
            paths.append(path)
    return paths


def find_nvjitlink(given):
    if given:
        return given
    roots = [p for p in sys.path if p.endswith("site-packages")]
    return sorted(path for root in roots
                  for path in glob.glob(f"{root}/nvidia/*/lib/libnvJitLink.so.*"))[:2]


def run_launches(options, compilers, report):
    """The corpus's launches with every compiler's machine code: results compared with the first's, and times."""
    import torch

    driver = Driver()
    device = options.device
    library = Library(options.launches, device)
    kernels = load_module("kernels", KERNELS)
    stream = torch.cuda.current_stream().cuda_stream
    watch = gpu.stopwatch(torch)
    for name, (make, _) in {**LAUNCHES, **CORPUS}.items():
        if options.only and name not in options.only:
            continue
        launch = make()
        data = gpu.Data(torch, launch, 1)
        data.poison()
        compiled = getattr(kernels, launch.kernel).warmup(
            *[data.values[a.name] for a in launch.arguments], num_warps=launch.num_warps,
            grid=gpu.grid_of(launch.grid))
        ttir = compiled.asm["ttir"]
        for who in options.whose.split(","):
            if who == "lilac":
                ptx, metadata, _ = library.compile(name, ttir, launch.num_warps, compiled.metadata.num_stages)
                shared, kernel_name, warps = metadata["shared"], metadata["name"], metadata["num_warps"]
            else:
                ptx, shared, kernel_name = compiled.asm["ptx"], compiled.metadata.shared, compiled.metadata.name
                warps = compiled.metadata.num_warps
            rows = compile_all(compilers, ptx.encode(), options.repeat)
            turns, titles, expected = [], [], None
            for title, row in rows.items():
                if "refused" in row:
                    continue
                begin = time.perf_counter()
                function = driver.load(row["cubin"], kernel_name)
                row["load_ms"] = 1e3 * (time.perf_counter() - begin)
                for key, number in (("registers", 4), ("stack", 3)):
                    value = ctypes.c_int()
                    driver.call("cuFuncGetAttribute", ctypes.byref(value), number, function)
                    row[key] = value.value
                kernel = gpu.Kernel(driver, function, gpu.ttir_parameters(ttir), data.values, launch.grid,
                                    32 * warps, shared, stream)
                data.poison()
                kernel.launch()
                torch.cuda.synchronize()
                got = {a.name: data.whole[a.name].clone() for a in launch.arguments if a.kind in ("output", "sum")}
                expected = expected or got
                row["same_results"] = all(bool(torch.equal(got[k].view(torch.uint8), expected[k].view(torch.uint8)))
                                          for k in got)
                turns.append(lambda count, kernel=kernel: watch.time(kernel.launch, count))
                titles.append(title)
            medians, _ = gpu.measure.in_turn(turns, options.rounds, options.budget * len(turns), watch.flush_ms)
            for title, rounds in zip(titles, medians):
                rows[title]["ms"] = statistics.median(rounds)
            report(f"{name}, PTX of {who}", rows)
        del data
        torch.cuda.empty_cache()


# ---- the report ---------------------------------------------------------------------------------


def geometric_mean(values):
    values = list(values)
    return statistics.geometric_mean(values) if values else None


def summary(names, results):
    """Of each compiler over the first: times, run times, how often the code is the same."""
    lines = []
    for name in names:
        rows = [(rows[names[0]], rows[name]) for rows in results.values() if "refused" not in rows[name]
                and "refused" not in rows[names[0]]]

        def ratio(key):
            values = [b[key] / a[key] for a, b in rows if a.get(key) and b.get(key)]
            return f"{geometric_mean(values):.3f} ({min(values):.3f} to {max(values):.3f})" if values else "–"

        def share(key):
            known = [b[key] for _, b in rows if key in b]
            return f"{sum(known)} of {len(known)}" if known else "–"

        mean = geometric_mean(b["compile_ms"] for _, b in rows if b.get("compile_ms"))
        load = geometric_mean(b["load_ms"] for _, b in rows if b.get("load_ms"))
        more = sum((b["registers"] or 0) > (a["registers"] or 0) for a, b in rows if "registers" in b)
        lines.append([name, f"{mean:.1f}" if mean else "–", f"{load:.2f}" if load else "–", ratio("ms"),
                      share("same_code"), f"{more} of {len(rows)}", share("same_results")])
    return lines


def environment(options):
    about = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
             "repeat": options.repeat, "device": options.device}
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        about["cpu"] = next((x.split(":", 1)[1].strip() for x in file if x.startswith("model name")), None)
    if options.launches:
        import torch

        about.update(gpu=torch.cuda.get_device_name(), rounds=options.rounds, budget=options.budget,
                     commit=options.commit or "unknown")
    return about


def cell(row, key, form):
    return form.format(row[key]) if row.get(key) is not None else "–"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("files", nargs="*", type=pathlib.Path, metavar="FILE.ptx")
    parser.add_argument("--launches", metavar="LIBLILAC", help="the corpus's launches on this GPU, PTX by liblilac.so")
    parser.add_argument("--only", action="append", help="this launch (may be repeated)")
    parser.add_argument("--whose", default="lilac", choices=("lilac", "triton", "lilac,triton"),
                        help="whose PTX of the launches (default: lilac)")
    parser.add_argument("--device", default="sm_90a")
    parser.add_argument("--ptxas", action="append", help="instead of those found (may be repeated)")
    parser.add_argument("--nvjitlink", action="append", help="libnvJitLink.so.N instead of the one found")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=60, help="ms of timed launches, each compiler and kernel")
    parser.add_argument("--commit", help="recorded")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path)
    options = parser.parse_args()
    if not options.files and not options.launches:
        parser.error("give PTX files or --launches")

    compilers = [Process(path, options.device) for path in find_ptxas(options.ptxas)]
    compilers += [NvJitLink(path, options.device) for path in find_nvjitlink(options.nvjitlink)]
    if options.launches:
        import torch

        torch.zeros(1, device="cuda")  # the context
        cuda = ctypes.CDLL("libcuda.so.1")
        compilers += [DriverLinker(cuda), DriverLoader(cuda)]
    if not compilers:
        raise SystemExit("no compiler of PTX is found")

    results = {}

    def report(name, rows):
        for row in rows.values():
            row.pop("cubin", None)
            row.pop("times", None)
        results[name] = rows
        print(name, file=sys.stderr, flush=True)

    for path in options.files:
        report(path.name, compile_all(compilers, path.read_bytes(), options.repeat))
    if options.launches:
        run_launches(options, compilers, report)

    lines = [[name, title, cell(row, "compile_ms", "{:.1f}"), cell(row, "load_ms", "{:.2f}"),
              cell(row, "ms", "{:.4f}"), cell(row, "registers", "{}"), cell(row, "stack", "{}"),
              {True: "yes", False: "no"}.get(row.get("same_code"), "–"),
              {True: "yes", False: "no"}.get(row.get("same_results"), row.get("refused", "–")[:60])]
             for name, rows in results.items() for title, row in rows.items()]
    names = [compiler.name for compiler in compilers]
    text = "\n\n".join([
        table([["compiler", "compile ms", "load ms", f"run time over {names[0]}'s", "same code", "more registers",
                "same results"]] + summary(names, results), words=range(7)),
        table([["PTX", "compiler", "compile ms", "load ms", "run ms", "registers", "stack", "same code",
                "same results"]] + lines, words=range(9))])
    print(text)
    about = environment(options)
    write_json(options.json, about, results=results)
    if options.markdown:
        options.markdown.write_text(
            f"# What turns PTX into machine code{', on ' + about['gpu'] if 'gpu' in about else ''}\n\n{text}\n\n"
            "Times are medians, in the upper table geometric means; \"more registers\" and \"same\" compare with "
            f"{names[0]}. The loader compiles while it loads and gives no cubin.\n\n{facts(about)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
