#!/usr/bin/env python3
"""Loops that stream through rows, by the factor by which they are unrolled.

    python3 bench/unroll_sweep.py LILAC [--compile-only] [--device sm_90a] [--json FILE] [--markdown FILE]

LILAC is the `lilac` command. Each kernel reduces a row in a loop with a constant trip count. It is
compiled with tt.loop_unroll_factor of 1, 2, 4, 8 and 16 and without (`rule`: the choice of the pass
unroll_loops). The table has for each: registers of a thread, LDG instructions, and the most loads that
one thread has in flight (in SASS, within a basic block: loads before the first use of one of them).

With a GPU it also has the bytes a second that the kernel reads, for as many blocks as the device has
multiprocessors (`small`) and for sixteen times as many (`large`). A launch of the large grid precedes each
measured launch: it reads more than the second-level cache holds, and it lasts until the measured launch and
its events are in the queue, so the host's time is not measured. The kernels of all factors are measured in
turn, several times; the results are medians. The whole program takes less than a minute. Exit status 1 when a
result is wrong, or when the rule is more than 5 percent slower than the best factor.
"""

import argparse
import concurrent.futures
import ctypes
import math
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import report
from driver import SCRATCH, Device, assemble, bundled_ptxas, find_ptxas, pointers_to

FACTORS = (1, 2, 4, 8, 16, None)
BYTES = {"f32": 4, "f16": 2, "bf16": 2}
#          what      type    row    block  warps
LOOPS = [("sum",     "f32",  32768, 2048, 16),
         ("sum",     "f32",  32768, 4096, 8),
         ("sum",     "f32",  32768, 1024, 4),
         ("sum",     "bf16", 65536, 4096, 16),
         ("sum",     "bf16", 65536, 2048, 8),
         ("sum",     "bf16", 16384, 1024, 4),
         ("moments", "f32",  32768, 2048, 16),
         ("moments", "bf16", 65536, 2048, 8),
         ("product", "f32",  32768, 2048, 16),
         ("product", "bf16", 65536, 4096, 8)]

BODY = {
    "sum": ("", "%n0 = arith.addf %s0, %v : T"),
    "moments": ("", "%n0 = arith.addf %s0, %v : T\n%vv = arith.mulf %v, %v : T\n"
                    "%n1 = arith.addf %s1, %vv : T"),
    "product": ("%p2 = tt.addptr %ys, %at : P, I\n%w0 = tt.load %p2 : P\nWIDEN(w)",
                "%vw = arith.mulf %v, %w : T\n%n0 = arith.addf %s0, %vw : T"),
}


def widen(name, kind, block):
    value = f"%{name} = arith.extf %{name}0 : tensor<{block}x{kind}> to tensor<{block}xf32>"
    return value if kind != "f32" else f"%{name} = arith.addf %{name}0, %zero : tensor<{block}xf32>"


def source(what, kind, row, block, factor):
    """TTIR: o[program] = the sums of a row."""
    loads, work = BODY[what]
    carried = 2 if what == "moments" else 1
    inits = ", ".join(f"%s{i} = %zero" for i in range(carried))
    types = ", ".join(["T"] * carried)
    attribute = "" if factor is None else f" {{tt.loop_unroll_factor = {factor} : i32}}"
    results = [f"%r#{i}" if carried > 1 else "%r" for i in range(carried)]
    total = "%all = arith.addf %r#0, %r#1 : T\n" if carried > 1 else ""
    text = f"""module {{
tt.func public @k(%x: !tt.ptr<{kind}> {{tt.divisibility = 16 : i32}}, %y: !tt.ptr<{kind}> {{tt.divisibility = 16 : i32}}, %o: !tt.ptr<f32> {{tt.divisibility = 16 : i32}}) {{
%zero = arith.constant dense<0.0> : T
%c0 = arith.constant 0 : i32
%step = arith.constant {block} : i32
%row = arith.constant {row} : i32
%i = tt.make_range {{end = {block} : i32, start = 0 : i32}} : I
%program = tt.get_program_id x : i32
%begin = arith.muli %program, %row : i32
%xp = tt.addptr %x, %begin : !tt.ptr<{kind}>, i32
%yp = tt.addptr %y, %begin : !tt.ptr<{kind}>, i32
%xs = tt.splat %xp : !tt.ptr<{kind}> -> P
%ys = tt.splat %yp : !tt.ptr<{kind}> -> P
%r{f":{carried}" if carried > 1 else ""} = scf.for %k = %c0 to %row step %step iter_args({inits}) -> ({types}) : i32 {{
%ks = tt.splat %k : i32 -> I
%at = arith.addi %ks, %i : I
%p = tt.addptr %xs, %at : P, I
%v0 = tt.load %p : P
WIDEN(v)
{loads}
{work}
scf.yield {", ".join(f"%n{i}" for i in range(carried))} : {types}
}}{attribute}
{total}%sum = "tt.reduce"({"%all" if total else results[0]}) <{{axis = 0 : i32}}> ({{
^bb0(%a: f32, %b: f32):
%ab = arith.addf %a, %b : f32
tt.reduce.return %ab : f32
}}) : (T) -> f32
%op = tt.addptr %o, %program : !tt.ptr<f32>, i32
tt.store %op, %sum : !tt.ptr<f32>
tt.return
}}
}}
"""
    text = re.sub(r"WIDEN\((\w)\)", lambda m: widen(m.group(1), kind, block), text)
    text = re.sub(r"\bP\b", f"tensor<{block}x!tt.ptr<{kind}>>", text)
    text = re.sub(r"\bI\b", f"tensor<{block}xi32>", text)
    return re.sub(r"\bT\b", f"tensor<{block}xf32>", text)


def ptx_of(lilac, device, text, warps):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "k.ttir"
        path.write_text(text)
        run = subprocess.run([lilac, "compile", str(path), "--target", device, "--num-warps", str(warps),
                              "--no-line-info"], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(run.stderr)
    return run.stdout


# ---- loads in flight -------------------------------------------------------------------------


def registers_in(operands):
    return {int(number) for number in re.findall(r"\bR(\d+)\b", operands)}


def find_disassembler(ptxas):
    """The one on PATH, beside ptxas, or beside Triton's."""
    found = shutil.which("nvdisasm")
    beside = pathlib.Path(ptxas).parent / "nvdisasm"
    if not found and not beside.exists():
        beside = pathlib.Path(bundled_ptxas()).parent / "nvdisasm"
    return found or str(beside)


def loads_in_flight(disassembler, cubin):
    """LDG instructions, and the most of them before the first use of one, within basic blocks."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run([disassembler, "-c", file.name], capture_output=True, text=True).stdout
    count = most = 0
    waiting = []  # sets of registers, in the order of the loads
    for line in text.splitlines():
        if re.match(r"\s*\.?L_x_\d+:", line):
            waiting = []
        found = re.search(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)\s*(.*?);", line)
        if not found:
            continue
        name, operands = found.groups()
        used = registers_in(operands)
        for place, registers in enumerate(waiting):
            if registers & used and not name.startswith("LDG"):
                waiting = waiting[place + 1:]
                break
        if name.startswith("LDG"):
            first = int(re.match(r"R(\d+)", operands).group(1))
            width = 4 if ".128" in name else 2 if ".64" in name else 1
            waiting.append(set(range(first, first + width)))
            count += 1
            most = max(most, len(waiting))
    return count, most


# ---- run times -------------------------------------------------------------------------------


class Timer:
    """Measures launches on the device, each behind one that fills the queue."""

    def __init__(self, gpu, loop, buffers):
        self.gpu, self.buffers = gpu, buffers
        self.what, self.kind, self.row, _, warps = loop
        self.threads = 32 * warps
        self.grids = {"small": gpu.multiprocessors, "large": 16 * gpu.multiprocessors}
        self.events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in self.events:
            gpu.call("cuEventCreate", ctypes.byref(event), 0)

    def launch(self, function, blocks):
        self.gpu.call("cuLaunchKernel", function, blocks, 1, 1, self.threads, 1, 1, 4096, None,
                      pointers_to([*self.buffers, *SCRATCH]), None)

    def seconds(self, function, blocks):
        elapsed = ctypes.c_float()
        self.launch(function, self.grids["large"])
        self.gpu.call("cuEventRecord", self.events[0], None)
        self.launch(function, blocks)
        self.gpu.call("cuEventRecord", self.events[1], None)
        self.gpu.call("cuEventSynchronize", self.events[1])
        self.gpu.call("cuEventElapsedTime", ctypes.byref(elapsed), *self.events)
        return elapsed.value / 1e3

    def check(self, function):
        """The input is ones: a sum is the row's length."""
        blocks = self.grids["large"]
        sums = (ctypes.c_float * blocks)()
        self.gpu.upload(self.buffers[2], sums)
        self.launch(function, blocks)
        self.gpu.download(sums, self.buffers[2])
        expected = self.row * (2 if self.what == "moments" else 1)
        if any(not math.isclose(value, expected) for value in sums):
            raise SystemExit(f"{self.what} {self.kind}: a sum is {min(sums)} to {max(sums)}, not {expected}")

    def rates(self, functions, rounds=8, repetitions=5):
        """For each function the bytes a second of both grids."""
        times = [{grid: [] for grid in self.grids} for _ in functions]
        for _ in range(rounds):
            for each, function in zip(times, functions):
                for grid, blocks in self.grids.items():
                    each[grid] += [self.seconds(function, blocks) for _ in range(repetitions)]
        size = (2 if self.what == "product" else 1) * self.row * BYTES[self.kind]
        return [{grid: size * blocks / statistics.median(each[grid]) for grid, blocks in self.grids.items()}
                for each in times]


def ones(gpu, kind, count):
    address = gpu.allocate(count * BYTES[kind])
    if kind == "f32":
        gpu.call("cuMemsetD32_v2", address, 0x3F800000, ctypes.c_size_t(count))
    else:
        bits = 0x3F80 if kind == "bf16" else 0x3C00
        gpu.call("cuMemsetD16_v2", address, ctypes.c_ushort(bits), ctypes.c_size_t(count))
    return address


def compiled(loop, factor, options):
    """The line of the table and the cubin."""
    what, kind, row, block, warps = loop
    ptx = ptx_of(options.lilac, options.device, source(what, kind, row, block, factor), warps)
    cubin, registers, spills, _, _ = assemble(options.ptxas, options.device, ptx)
    count, most = loads_in_flight(options.disassembler, cubin)
    return {"loop": what, "type": kind, "row": row, "block": block, "warps": warps, "factor": factor,
            "registers": registers, "spills": spills, "loads": count, "in_flight": most}, cubin


def measure(gpu, loop, rows, cubins):
    """Adds the rates of one loop to its lines."""
    _, kind, row, _, _ = loop
    count = 16 * gpu.multiprocessors * row
    buffers = [ones(gpu, kind, count), ones(gpu, kind, count), gpu.allocate(1 << 20)]
    timer = Timer(gpu, loop, buffers)
    functions = [gpu.load(cubin, "k") for cubin in cubins]
    for function in functions:
        timer.check(function)
    for entry, found in zip(rows, timer.rates(functions)):
        entry.update(found)
    for address in buffers:
        gpu.free(address)


TITLES = ("loop", "type", "row", "block", "warps", "factor", "registers", "loads", "in flight", "small TB/s",
          "large TB/s")


def cells_of(entry):
    shape = [str(entry[name]) for name in ("loop", "type", "row", "block", "warps")]
    counts = [str(entry[name]) for name in ("registers", "loads", "in_flight")]
    rates = [f"{entry[grid] / 1e12:.2f}" if grid in entry else "" for grid in ("small", "large")]
    return [*shape, str(entry["factor"] or "rule"), *counts, *rates]


def line_of(cells):
    return " ".join(cell.rjust(max(len(title), 6)) for cell, title in zip(cells, TITLES))


def slower(loop, rows):
    """The grids for which the rule is more than 5 percent slower than the best factor."""
    for grid in ("small", "large"):
        best = max(rows, key=lambda entry: entry[grid])
        share = rows[-1][grid] / best[grid]
        if share < 0.95:
            yield f"{loop}, {grid} grid: {share:.2f} of the rate with factor {best['factor']}"


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lilac")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--device", default="sm_90a")
    report.add_options(parser)
    options = parser.parse_args()
    options.ptxas = find_ptxas(options.ptxas)
    options.disassembler = find_disassembler(options.ptxas)
    return options


def main():
    options = read_options()
    gpu = None if options.compile_only else Device()
    jobs = [(loop, factor) for loop in LOOPS for factor in FACTORS]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        results = list(pool.map(lambda job: compiled(*job, options), jobs))
    print(line_of(TITLES))
    rows, slow = [], []
    for number, loop in enumerate(LOOPS):
        found, cubins = zip(*results[number * len(FACTORS):(number + 1) * len(FACTORS)])
        if gpu:
            measure(gpu, loop, found, cubins)
            slow += slower(loop, found)
        for entry in found:
            print(line_of(cells_of(entry)), flush=True)
        rows += found
    print("\n".join(slow))
    about = report.environment(options, gpu.name if gpu else None, options.ptxas)
    report.write_json(options.json, about, rows=rows, slow=slow)
    if options.markdown:
        table = report.table([TITLES, *map(cells_of, rows)], words=(0, 1))
        parts = ["# Loops by unroll factor", table, *slow, report.facts(about)]
        options.markdown.write_text("\n\n".join(parts) + "\n")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
