"""Times of kept kernels under several versions of lilac and under Triton.

    python -m lilac.bench models --kernels --half development --keep KEPT         on a GPU, once
    python bench/kept_kernels.py compile KEPT BUNDLE old=build/old/lilac new=build/new/lilac --ptxas PTXAS
    python bench/kept_kernels.py measure BUNDLE --json times.json                 on a GPU

`compile` needs no GPU. It compiles every kept configuration with every version; configurations whose PTX is the same
under all versions, or that are slower than 1 / 0.7 of the best one under Triton, are left out. Triton's cubins are
made from the kept PTX of configurations that use no shared memory or were chosen: only their size is known.

`measure` launches the cubins by the driver, on random numbers of the sizes, alignments and ranges of the recorded
arguments. All versions of a kernel run alternately on the same buffers, each launch after 256 MiB were written.
Results of versions are compared with the first one's.
"""

import argparse
import concurrent.futures
import ctypes
import hashlib
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

LEAST = 0.7         # of the best configuration's speed under Triton
ROUNDS, LAUNCHES = 5, 12
TOLERANCE = 1e-2    # reordered sums of bf16
BYTES = {"u64": ctypes.c_uint64, "u32": ctypes.c_uint32, "u16": ctypes.c_uint16, "u8": ctypes.c_uint8,
         "b64": ctypes.c_uint64, "b32": ctypes.c_uint32, "b16": ctypes.c_uint16, "b8": ctypes.c_uint8,
         "f32": ctypes.c_float, "f64": ctypes.c_double}

# ---- compile -------------------------------------------------------------------------------------


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


def code(ptx):
    """The PTX without comments and source lines."""
    return re.sub(r"(?m)^\s*(//.*|\.loc.*|\.file.*)\n", "", ptx)


class Compiler:
    def __init__(self, options):
        self.versions = dict(version.split("=", 1) for version in options.versions)
        self.folder, self.ptxas, self.target = options.bundle, options.ptxas, options.target

    def ptx(self, command, file, warps):
        made = run(command, "compile", file, "--num-warps", warps, "--target", self.target, "--no-line-info")
        return made.stdout if made.returncode == 0 else None

    def shared(self, command, file, warps):
        made = run(command, "compile", file, "--num-warps", warps, "--target", self.target, "--emit", "json")
        return int(re.search(r'"shared"[^0-9]*(\d+)', made.stdout)[1])

    def cubin(self, ptx, shared):
        """What `measure` must know of it; None if ptxas refuses it."""
        name = hashlib.md5(code(ptx).encode()).hexdigest()[:16]
        with tempfile.TemporaryDirectory(dir=self.folder) as own:  # equal code may be compiled by two threads at once
            source, target = pathlib.Path(own, f"{name}.ptx"), pathlib.Path(own, f"{name}.cubin")
            source.write_text(ptx)
            made = run(self.ptxas, "-v", f"-arch={self.target}", "-o", target, source)
            if made.returncode != 0:
                return None
            target.replace(self.folder / target.name)
        head = re.search(r"\.entry\s+(\w+)\s*\((.*?)\)\n", ptx, re.S)
        return {"cubin": name, "entry": head[1], "parameters": re.findall(r"\.param\s+\.(\w+)", head[2]),
                "threads": int(re.search(r"\.reqntid\s+(\d+)", ptx)[1]), "shared": shared,
                "registers": int(re.search(r"Used (\d+) registers", made.stderr)[1])}

    def task(self, stem, number, kept):
        configuration, row = kept["configurations"][number], kept["row"]
        milliseconds, warps = configuration["ms"], configuration["num_warps"]
        if not milliseconds.get("lilac") or not milliseconds.get("triton"):
            return None
        chosen = {**configuration["values"], "num_warps": warps}.items() <= row["options"].items()
        best = min(c["ms"]["triton"] for c in kept["configurations"] if c["ms"].get("triton"))
        if not chosen and best / milliseconds["triton"] < LEAST:
            return None
        file = f"{stem}.{number}.ttir"
        made = {name: self.ptx(command, file, warps) for name, command in self.versions.items()}
        if None in made.values() or len({code(ptx) for ptx in made.values()}) == 1:
            return None
        variants = {name: self.cubin(ptx, self.shared(self.versions[name], file, warps)) for name, ptx in made.items()}
        theirs = pathlib.Path(f"{stem}.{number}.triton.ptx").read_text()
        if chosen or ".extern .shared" not in theirs:
            variants["triton"] = self.cubin(theirs, (row["triton"].get("shared") or 0) if chosen else 0)
        return {"key": f"{pathlib.Path(stem).parent.name}/{pathlib.Path(stem).name}.{number}", "name": row["name"],
                "chosen": chosen, "grid": configuration["grid"], "values": configuration["values"],
                "num_warps": warps, "signature": configuration["signature"], "parameters": kept["parameters"],
                "variants": {name: variant for name, variant in variants.items() if variant}}


def compile_kept(options):
    options.bundle.mkdir(parents=True, exist_ok=True)
    compiler, jobs = Compiler(options), []
    for file in sorted(options.kept.glob("*/*.json")):
        kept = json.loads(file.read_text())
        jobs += [(str(file.with_suffix("")), number, kept) for number in range(len(kept["configurations"]))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tasks = [task for task in pool.map(lambda job: compiler.task(*job), jobs) if task]
    (options.bundle / "tasks.json").write_text(json.dumps(tasks))
    print(f"{len(tasks)} of {len(jobs)} configurations")


# ---- measure -------------------------------------------------------------------------------------


def number(value):
    """A recorded extreme or moment; 0 for infinities and NaN."""
    return value if value is not None and math.isfinite(value) and abs(value) < 1e30 else 0


class Driver:
    def __init__(self, torch, folder):
        self.torch, self.folder, self.functions = torch, folder, {}
        self.library = ctypes.CDLL("libcuda.so.1")
        torch.zeros(1, device="cuda")

    def call(self, name, *arguments):
        if status := getattr(self.library, name)(*arguments):
            raise RuntimeError(f"{name}: error {status}")

    def function(self, variant):
        key = variant["cubin"], variant["shared"]
        if key not in self.functions:
            module, function = ctypes.c_void_p(), ctypes.c_void_p()
            self.call("cuModuleLoad", ctypes.byref(module), str(self.folder / f"{key[0]}.cubin").encode())
            self.call("cuModuleGetFunction", ctypes.byref(function), module, variant["entry"].encode())
            if variant["shared"] > 48 << 10:
                self.call("cuFuncSetAttribute", function, 8, variant["shared"])  # the maximum of dynamic shared memory
            self.functions[key] = function
        return self.functions[key]

    def launcher(self, variant, grid, arguments):
        kinds = variant["parameters"]
        values = list(arguments) + [0] * (len(kinds) - len(arguments))  # scratch memory
        places = [BYTES[kind](value) for kind, value in zip(kinds, values)]
        pointers = (ctypes.c_void_p * len(places))(*map(ctypes.addressof, places))
        function, sizes = self.function(variant), [ctypes.c_uint(size) for size in grid]
        stream = ctypes.c_void_p(self.torch.cuda.current_stream().cuda_stream)

        def launch(_keep=places):
            self.call("cuLaunchKernel", function, *sizes, variant["threads"], 1, 1, variant["shared"], stream, pointers,
                      None)
        return launch


def placed(torch, count, dtype, remainder):
    """Uninitialised elements at an address with this remainder modulo 16."""
    size = torch.empty(0, dtype=dtype).element_size()
    made = torch.empty(count + 16 // size, dtype=dtype, device="cuda")
    first = (remainder - made.data_ptr()) % 16 // size
    return made[first:first + count]


def random_tensor(torch, parameter):
    dtype = getattr(torch, parameter["dtype"].removeprefix("torch."))
    count = 1 + sum((n - 1) * s for n, s in zip(parameter["size"], parameter["stride"]))
    made = placed(torch, max(count, 0), dtype, parameter["remainder"])
    least, greatest = number(parameter.get("least")), number(parameter.get("greatest"))
    if dtype == torch.bool:
        return made.copy_(torch.rand(made.numel(), device="cuda") < number(parameter.get("mean")))
    if dtype.is_floating_point:
        values = torch.randn(made.numel(), device="cuda") * number(parameter.get("deviation"))
        return made.copy_((values + number(parameter.get("mean"))).clamp_(least, greatest))
    return made.copy_(torch.randint(int(least), int(greatest) + 1, (made.numel(),), device="cuda"))


def differences(torch, expected, found):
    count = 0
    for key, a in expected.items():
        a, b = a.float(), found[key].float()
        allowed = TOLERANCE * (a.abs() + a[a.isfinite()].abs().mean())
        count += int((~(((a - b).abs() <= allowed) | (a == b) | (a.isnan() & b.isnan()))).sum())
    return count


def measured(torch, driver, watch, task):
    parameters = {parameter["name"]: parameter for parameter in task["parameters"]}
    names = [name for name, kind in task["signature"].items() if kind != "constexpr"]
    inputs = {p["same"]: random_tensor(torch, p) for p in task["parameters"] if "size" in p and p["same"] is not None}

    def arguments(buffers):
        return [parameters[n]["value"] if "value" in parameters[n] else buffers[parameters[n]["same"]].data_ptr()
                for n in names]

    expected, found = None, {}
    for name, variant in task["variants"].items():
        buffers = {key: placed(torch, t.numel(), t.dtype, t.data_ptr() % 16).copy_(t) for key, t in inputs.items()}
        driver.launcher(variant, task["grid"], arguments(buffers))()
        torch.cuda.synchronize()
        expected = expected or buffers
        found[name] = {"registers": variant["registers"], "differences": differences(torch, expected, buffers)}
    runs = {v["cubin"]: driver.launcher(v, task["grid"], arguments(expected)) for v in task["variants"].values()}
    medians = {key: [] for key in runs}
    for count in range(ROUNDS + 1):  # the first round warms up
        for key in list(runs)[::1 if count % 2 else -1]:
            median = statistics.median(watch.time(runs[key], LAUNCHES))
            if count > 0:
                medians[key].append(median)
    for name, variant in task["variants"].items():
        found[name]["us"] = 1e3 * statistics.median(medians[variant["cubin"]])
    return {key: task[key] for key in ("key", "name", "chosen", "grid", "values", "num_warps")} | {"results": found}


def measure(options):
    import torch
    from lilac.bench.measure import Stopwatch, geometric_mean

    driver, watch, rows = Driver(torch, options.bundle), Stopwatch(torch), []
    torch.manual_seed(1)
    for task in json.loads((options.bundle / "tasks.json").read_text()):
        rows.append(measured(torch, driver, watch, task))
        options.json.write_text(json.dumps({"gpu": torch.cuda.get_device_name(), "rows": rows}, indent=1))
    first, *others = next(iter(rows))["results"] if rows else [None]
    for other in others:
        ratios = [row["results"][first]["us"] / row["results"][other]["us"] for row in rows
                  if row["chosen"] and other in row["results"]]
        print(f"{first} over {other}: {geometric_mean(ratios):.3f} of {len(ratios)} kernels with the chosen options")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    commands = parser.add_subparsers(required=True)
    make = commands.add_parser("compile")
    make.add_argument("kept", type=pathlib.Path)
    make.add_argument("bundle", type=pathlib.Path)
    make.add_argument("versions", nargs="+", metavar="NAME=LILAC")
    make.add_argument("--ptxas", default="ptxas")
    make.add_argument("--target", default="sm_90a")
    make.set_defaults(function=compile_kept)
    time = commands.add_parser("measure")
    time.add_argument("bundle", type=pathlib.Path)
    time.add_argument("--json", type=pathlib.Path, required=True)
    time.set_defaults(function=measure)
    options = parser.parse_args()
    options.function(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
