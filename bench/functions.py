#!/usr/bin/env python3
"""The functions of libdevice on a GPU, compared with exact values and with the simulator.

    python3 bench/functions.py LIBLILAC [--json FILE] [--markdown FILE] [--simulator]

LIBLILAC is liblilac.so, which is loaded into this process. tests/data/functions.txt (or --values)
has arguments and correctly rounded values (scripts/function_values.py wrote them). For each function
and type one kernel is compiled from its TTIR text; ptxas assembles it; it runs on the GPU and on the
simulator. The report has for each function the largest number of floats between a result and the
correctly rounded one, and the number of arguments at which the bits of GPU and simulator differ.

--simulator needs no GPU and checks the simulator's results. Otherwise needs an NVIDIA GPU and a ptxas
(one on PATH, or Triton's). Exit status 1 when a result is more than two places off (fmod and
remainder: not exact; BOUNDS: more), a NaN or a zero's sign is wrong, or a kernel is refused.
"""

import argparse
import concurrent.futures
import ctypes
import math
import os
import pathlib
import re
import struct
import sys

import report
from driver import SCRATCH, Device, assemble, find_ptxas
from library import Compiled, Library, LilacError

HERE = pathlib.Path(__file__).resolve().parent

ALLOWED = 2  # places
# Functions of f32 for which more are allowed: the bounds of the CUDA programming guide.
BOUNDS = {"atan2f": 3, "asinhf": 3, "atanhf": 3, "acoshf": 4, "erfcf": 4, "erfcinvf": 4, "erfcxf": 4,
          "normcdfinvf": 5, "normcdff": 5, "lgammaf": 6, "cyl_bessel_i0f": 6, "cyl_bessel_i1f": 6}
EXACT = ("fmod", "remainder")
# Bessel functions of the first and second kind have zeros, near which no number of places bounds the
# error: an absolute error is allowed as well (CUDA documents 5e-12 and 2.2e-6).
BESSEL = re.compile(r"[jy][01n]f?$")
ABSOLUTE = {"f64": 2.0 ** -45, "f32": 2.0 ** -40}
# Functions that take subnormal arguments as 0 and give 0 for subnormal results, as Triton's do.
FLUSHED = ("exp2f", "rsqrtf")
LEAST_NORMAL = 2.0 ** -126
TYPES = {"f": "f32", "d": "f64", "i": "i32"}  # of functions and operands
CODES = {"f32": "I", "f64": "Q", "i32": "I"}


# ---- the simulator --------------------------------------------------------------------------


class SimBuffer(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("address", ctypes.c_uint64), ("bytes", ctypes.c_void_p),
                ("size", ctypes.c_uint64), ("written", ctypes.c_void_p), ("read_only", ctypes.c_bool)]


class SimLaunch(ctypes.Structure):
    _fields_ = [("kernel", ctypes.c_void_p), ("grid", ctypes.c_uint32 * 3),
                ("arguments", ctypes.c_void_p), ("tensor_maps", ctypes.c_void_p),
                ("tensor_map_count", ctypes.c_uint32), ("argument_count", ctypes.c_uint32),
                ("buffers", ctypes.c_void_p), ("buffer_count", ctypes.c_uint32),
                ("threads", ctypes.c_uint32), ("printed", ctypes.c_void_p),
                ("instruction_limit", ctypes.c_uint64), ("stall_seconds", ctypes.c_double),
                ("progress", ctypes.c_void_p), ("progress_data", ctypes.c_void_p)]


class SimtModule(ctypes.Structure):
    _fields_ = [("context", ctypes.c_void_p), ("arena", ctypes.c_void_p), ("arch", ctypes.c_void_p),
                ("kernels", ctypes.c_void_p)]


class SimtKernel(ctypes.Structure):  # what lilac_simt_kernel begins with
    _fields_ = [("name", ctypes.c_char_p), ("parameter_count", ctypes.c_uint32)]


class Simulated(Compiled):
    """A compilation that the simulator can run."""

    def simulate(self, grid, arrays):
        """Runs the kernel on the simulator; the arrays (bytearray) are its pointers, in order."""
        buffers = (SimBuffer * len(arrays))()
        for buffer, array in zip(buffers, arrays):
            buffer.name, buffer.size = b"argument", len(array)
            buffer.bytes = ctypes.addressof((ctypes.c_char * len(array)).from_buffer(array))
        self.lib.lilac_sim_place(buffers, len(arrays))
        kernel = SimtModule.from_address(self.simt).kernels
        count = SimtKernel.from_address(kernel).parameter_count
        arguments = (ctypes.c_uint64 * max(count, 1))(*[b.address for b in buffers])
        launch = SimLaunch(kernel=kernel, grid=(ctypes.c_uint32 * 3)(grid, 1, 1),
                           arguments=ctypes.addressof(arguments), argument_count=count,
                           buffers=ctypes.addressof(buffers), buffer_count=len(arrays))
        counters = (ctypes.c_uint64 * 128)()
        if not self.lib.lilac_sim_run(self.context, ctypes.byref(launch), counters):
            raise LilacError("the simulator: " + self.said())


# ---- the GPU --------------------------------------------------------------------------------


def assemble_all(ptxas, texts):
    """Cubins in order; where ptxas refuses one, the error."""
    def one(ptx):
        try:
            return assemble(ptxas, "sm_90a", ptx)[0]
        except LilacError as error:
            return error
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(one, texts))


def run(device, cubin, metadata, grid, arrays):
    """Launches with the arrays (bytearray) in device memory; they then hold what is there."""
    function = device.load(cubin, metadata["name"])
    hosts = [(ctypes.c_char * len(array)).from_buffer(array) for array in arrays]
    places = [device.allocate(len(array)) for array in arrays]
    for place, host in zip(places, hosts):
        device.upload(place, host)
    device.launch(function, grid, 32 * metadata["num_warps"], metadata["shared"], *places, *SCRATCH)
    for place, host in zip(places, hosts):
        device.download(host, place)
        device.free(place)


# ---- the functions --------------------------------------------------------------------------


def read_values(path):
    """(name, type, types of the operands, rows of words) for each function."""
    lines = iter(path.read_text().splitlines())
    for line in lines:
        name, kind, operands, count = line.split()
        yield name, TYPES[kind], [TYPES[letter] for letter in operands], [
            [int(word, 16) for word in next(lines).split()] for _ in range(int(count))]


def kernel_text(name, kind, operands, count):
    """Loads the operands, applies __nv_<name> to them and stores what comes out."""
    parameters = [(f"p{k}", operand) for k, operand in enumerate(operands)] + [("o", kind)]
    lines = ["module {", "  tt.func public @k(" +
             ", ".join(f"%{name}: !tt.ptr<{of}>" for name, of in parameters) + ") {",
             f"    %r = tt.make_range {{end = {count} : i32, start = 0 : i32}} : tensor<{count}xi32>"]
    for way, of in parameters:
        pointers = f"tensor<{count}x!tt.ptr<{of}>>"
        lines += [f"    %s{way} = tt.splat %{way} : !tt.ptr<{of}> -> {pointers}",
                  f"    %a{way} = tt.addptr %s{way}, %r : {pointers}, tensor<{count}xi32>"]
    lines += [f"    %v{way} = tt.load %a{way} : tensor<{count}x!tt.ptr<{of}>>" for way, of in parameters[:-1]]
    lines += ["    %x = tt.extern_elementwise " + ", ".join(f"%v{way}" for way, _ in parameters[:-1]) +
              f' {{libname = "", libpath = "", pure = true, symbol = "__nv_{name}"}} : (' +
              ", ".join(f"tensor<{count}x{of}>" for _, of in parameters[:-1]) + f") -> tensor<{count}x{kind}>",
              f"    tt.store %ao, %x : tensor<{count}x!tt.ptr<{kind}>>", "    tt.return", "  }", "}"]
    return "\n".join(lines) + "\n"


def number(word, kind):
    return struct.unpack("<d" if kind == "f64" else "<f",
                         struct.pack("<Q" if kind == "f64" else "<I", word))[0]


def place(word, kind):
    top = 1 << (63 if kind == "f64" else 31)
    return top - word if word & top else word


def distance(got, want, kind):
    """The number of floats between two results. All NaNs are equal; zeros of different sign differ."""
    a, b = number(got, kind), number(want, kind)
    if math.isnan(a) or math.isnan(b):
        return 0 if math.isnan(a) and math.isnan(b) else math.inf
    if b == 0 and a == 0:
        return 0 if got == want else math.inf
    if math.isinf(b) and math.isinf(a):
        return 0 if got == want else math.inf
    return abs(place(got, kind) - place(want, kind))


def same_bits(a, b, kind):
    return a == b or math.isnan(number(a, kind)) and math.isnan(number(b, kind))


def is_near(name, kind, row, got):
    """Within what is documented of a Bessel function: 4 + 2.5 n places at order n, or an absolute error;
    where subnormals are flushed, anything."""
    a, b = number(got, kind), number(row[-1], kind)
    if name in FLUSHED and (abs(b) < LEAST_NORMAL or abs(number(row[0], kind)) < LEAST_NORMAL):
        return True
    if name.rstrip("f") in ("jn", "yn") and distance(got, row[-1], kind) <= 4 + 2.5 * row[0]:
        return True
    return BESSEL.match(name) and math.isfinite(a) and math.isfinite(b) and abs(a - b) <= ABSOLUTE[kind]


def check(row, rows, got, kind):
    distances = [0 if is_near(row["name"], kind, r, g) else distance(g, r[-1], kind)
                 for g, r in zip(got, rows)]
    worst = max(distances)
    row["allowed"] = 0 if row["name"].startswith(EXACT) else 4 if BESSEL.match(row["name"]) else \
        BOUNDS.get(row["name"], ALLOWED)
    row["worst"] = worst if worst != math.inf else "special"
    row["not_correctly_rounded"] = sum(d != 0 for d in distances)
    row["good"] = worst <= row["allowed"]
    at = distances.index(worst)
    row["worst_at"] = [w if of == "i32" else number(w, of).hex() for w, of in zip(rows[at], row["operands"])]
    row["worst_got"], row["worst_want"] = (number(got[at], kind).hex(),
                                           number(rows[at][-1], kind).hex())


def run_functions(library, device, ptxas, path):
    cases = []
    for name, kind, operands, rows in read_values(path):
        row = {"name": name, "type": kind, "operands": operands, "arguments": len(rows), "good": False}
        while len(rows) & (len(rows) - 1):  # a tensor's size is a power of two
            rows.append(rows[-1])
        cases.append((row, rows, operands, None))
        try:
            compiled = Simulated(library, name + ".ttir", kernel_text(name, kind, operands, len(rows)),
                                 4)
            cases[-1] = (row, rows, operands, compiled)
        except LilacError as error:
            row["complaint"] = str(error)
    cubins = assemble_all(ptxas, [c[3].ptx if c[3] else "" for c in cases]) if device else []
    for k, (row, rows, operands, compiled) in enumerate(cases):
        if not compiled:
            continue
        kind = row["type"]
        code = CODES[kind]

        def fresh():
            columns = [bytearray(struct.pack(f"<{len(rows)}{CODES[of]}", *[r[k] for r in rows]))
                       for k, of in enumerate(operands)]
            return columns + [bytearray(b"\xa5" * (len(rows) * struct.calcsize("<" + code)))]

        def results(arrays):
            return struct.unpack(f"<{len(rows)}{code}", arrays[-1])
        try:
            arrays = fresh()
            compiled.simulate(1, arrays)
            simulated = got = results(arrays)
            if device:
                if isinstance(cubins[k], LilacError):
                    raise cubins[k]
                arrays = fresh()
                run(device, cubins[k], compiled.metadata, 1, arrays)
                got = results(arrays)
                row["simulator_differs"] = sum(not same_bits(a, b, kind)
                                               for a, b in zip(got, simulated))
                row["simulator_worst"] = max(distance(s, r[-1], kind)
                                             for s, r in zip(simulated, rows))
            check(row, rows, got, kind)
        except LilacError as error:
            row["complaint"] = str(error)
        compiled.close()
    return [case[0] for case in cases]


# ---- the report -----------------------------------------------------------------------------


def table(rows):
    """One line a function, f32 and f64 side by side."""
    pairs = {}
    for row in rows:
        name = row["name"]
        base = name[:-1] if row["type"] == "f32" and name.endswith("f") else name
        pairs.setdefault(base, {})[row["type"]] = row
    lines = ["| function | f32: places off | simulator differs at | f64: places off | "
             "simulator differs at |", "|---|---:|---:|---:|---:|"]
    for base, pair in pairs.items():
        cells = [base]
        for kind in ("f32", "f64"):
            row = pair.get(kind)
            if not row or "worst" not in row:
                cells += ["refused" if row else "-", "-"]
                continue
            cells.append(f"{row['worst']}" + ("" if row["good"] else " (!)"))
            cells.append(str(row.get("simulator_differs", "-")))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("lilac", help="liblilac.so")
    parser.add_argument("--values", type=pathlib.Path,
                        default=HERE.parent / "tests" / "data" / "functions.txt")
    report.add_options(parser)
    parser.add_argument("--simulator", action="store_true", help="no GPU: check the simulator")
    options = parser.parse_args()
    library = Library(pathlib.Path(options.lilac).resolve(), "sm_90a")
    device = None if options.simulator else Device()
    ptxas = None if options.simulator else find_ptxas(options.ptxas)
    rows = run_functions(library, device, ptxas, options.values)
    about = report.environment(options, device and device.name, ptxas)
    wrong = [row for row in rows if not row["good"]]
    same = sum(row.get("simulator_differs") == 0 for row in rows)
    verdict = (f"{len(rows)} functions, {sum(row['arguments'] for row in rows)} arguments: "
               f"{len(wrong)} functions are wrong or off by more than {ALLOWED} places"
               + ("" if options.simulator else
                  f"; {same} give the simulator's very bits at all of their arguments"))
    print(table(rows))
    print("\n" + verdict)
    for row in wrong:
        print(f"WRONG {row['name']} {row['type']}: " + (row.get("complaint") or
              f"{row['worst']} places off at {row['worst_at']}: {row['worst_got']} for "
              f"{row['worst_want']}"))
    report.write_json(options.json, about, functions=rows)
    if options.markdown:
        options.markdown.write_text(
            f"# libdevice's functions on {about['gpu'] or 'the simulator'}\n\n{verdict}.\n\n"
            f"{table(rows)}\n\nPlaces off: how many floats lie between a result and the correctly "
            "rounded one, at worst. Simulator differs at: arguments where GPU and simulator give "
            f"other bits.\n\n{report.facts(about)}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
