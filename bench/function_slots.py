#!/usr/bin/env python3
"""Machine instructions of each mathematical function, of lilac and of Triton.

    python3 bench/function_slots.py LIBLILAC [--only NAME…] [--json FILE] [--markdown FILE]
                                    [--functions FILE]

One kernel for each function loads vectors, applies the function and stores the result. Both compilers
get the same TTIR text. One ptxas assembles both PTX texts. Needs Triton 3.6 and cuobjdump, which Triton
brings, and no GPU. --functions names a report of bench/functions.py, from which the errors come.

Slots are clocks of one of the four schedulers of a multiprocessor, estimated from the class of each
instruction (WEIGHTS). The common path is the path from the entry to the exit with the fewest slots: it
omits what a branch can skip. Where both sides of a branch are frequent, it counts the cheaper one, but a
warp whose lanes differ executes both: for the functions in DIVERGING, Triton's code is also counted as a
whole, and this number is compared. The slots and instructions of the table are those of one element: the
difference to the kernel that only copies, divided by the number of elements of a thread.
"""

import argparse
import concurrent.futures
import heapq
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import report
from driver import assemble, bundled_ptxas
from library import Library, LilacError

HERE = pathlib.Path(__file__).resolve().parent
VALUES = HERE.parent / "tests" / "data" / "libdevice.txt"
THREADS = 128
TYPES = {"f": "f32", "d": "f64", "i": "i32", "l": "i64", "h": "f16", "b": "bf16"}
BYTES = {"f32": 4, "f64": 8, "i32": 4, "i64": 8, "f16": 2, "bf16": 2}

# Issue slots of the classes of SASS opcodes; all others: 1. Special functions, conversions between
# integers and floats, roundings to whole numbers: a quarter of the rate. f64: half.
WEIGHTS = [(r"MUFU|F2I|I2F|FRND|F2F|IMAD\.(HI|WIDE)|POPC|FLO|BREV", 4),
           (r"D(ADD|MUL|FMA|SETP|MNMX)|SHFL|I2FP", 2), (r"NOP|DEPBAR", 0)]

# In Triton's code branches separate arguments that are all frequent: |x| < 0.6 and the others, |x| < 8 and the
# others, five intervals of lgammaf (the code for its negative arguments is counted as well).
DIVERGING = re.compile(r"tanhf|sinhf|gelu tanh .*|cyl_bessel_i[01]f|lgammaf")

# Functions whose cheapest path in Triton's code is for zeros, infinities or arguments above 2^60 only. The path
# of other arguments executes an instruction that matches the expression, once for each element.
ORDINARY = {"atan2f": r"FCHK", "asinhf": r"MUFU\.SQRT", "erfcxf": r"FADD.*, -4", "fmodf": r"MUFU|F2I|FRND",
            "frsqrt_rn": r"FFMA.*, 0\.5", "nextafterf": r"FSETP\.LT", "remainderf": r"MUFU|F2I|FRND"}

# Operations of TTIR and expressions as kernels write them: name, letters of the result and the
# operands, lines (T: the tensor type, C: the type of a comparison's result).
UNARY = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "erf", "floor", "ceil", "absf")
BINARY = ("divf", "minimumf", "maximumf", "minnumf", "maxnumf", "remf")


def operations():
    for name in UNARY:
        for letter in "fd":
            yield f"math.{name} {TYPES[letter]}", letter * 2, f"%y = math.{name} %x0 : T"
    for name in BINARY:
        for letter in "fd":
            yield f"arith.{name} {TYPES[letter]}", letter * 3, f"%y = arith.{name} %x0, %x1 : T"
    yield "tt.precise_divf", "fff", "%y = tt.precise_divf %x0, %x1 : T"
    yield "tt.precise_sqrt", "ff", "%y = tt.precise_sqrt %x0 : T"
    for letter in "fd":
        yield f"tt.clampf {TYPES[letter]}", letter * 4, "%y = tt.clampf %x0, %x1, %x2, propagateNan = all : T"
    for letter in "fhb":
        of, zero = TYPES[letter], "%zero = arith.constant dense<0.0> : tensor<SIZExf32>\n"
        one = "%one = arith.constant dense<1.0> : tensor<SIZExf32>\n"
        up = "%f = arith.extf %x0 : T to F\n" if letter != "f" else ""
        down = "\n%y = arith.truncf %z : F to T" if letter != "f" else ""
        f, z = ("%f", "%z") if letter != "f" else ("%x0", "%y")
        exponentials = {"": "math.exp %n : F", " of libdevice.exp":  # torch.compile's
                        'tt.extern_elementwise %n {libname = "", libpath = "", pure = true, symbol = "__nv_expf"} '
                        ": (F) -> F"}
        for kind, exponential in exponentials.items():
            sigmoid = (f"{zero}{one}%n = arith.subf %zero, {f} : F\n%e = {exponential}\n"
                       f"%d = arith.addf %e, %one : F\n")
            yield f"sigmoid{kind} {of}", letter * 2, f"{up}{sigmoid}{z} = arith.divf %one, %d : F{down}"
            yield f"silu{kind} {of}", letter * 2, (
                f"{up}{sigmoid}%s = arith.divf %one, %d : F\n{z} = arith.mulf {f}, %s : F{down}")
        yield f"gelu {of}", letter * 2, (
            f"{up}{one}%h = arith.constant dense<0.5> : F\n%r = arith.constant dense<0.707106781> : F\n"
            f"%a = arith.mulf {f}, %r : F\n%b = tt.extern_elementwise %a "
            '{libname = "", libpath = "", pure = true, symbol = "__nv_erff"} : (F) -> F\n'
            f"%c = arith.addf %b, %one : F\n%d = arith.mulf {f}, %h : F\n{z} = arith.mulf %c, %d : F{down}")
        yield f"gelu tanh {of}", letter * 2, (
            f"{up}{one}%h = arith.constant dense<0.5> : F\n%r = arith.constant dense<0.797884561> : F\n"
            f"%q = arith.constant dense<4.471500e-02> : F\n"
            f"%s = arith.mulf {f}, {f} : F\n%t = arith.mulf %s, {f} : F\n%u = arith.mulf %t, %q : F\n"
            f"%v = arith.addf {f}, %u : F\n%a = arith.mulf %v, %r : F\n%b = tt.extern_elementwise %a "
            '{libname = "", libpath = "", pure = true, symbol = "__nv_tanhf"} : (F) -> F\n'
            f"%c = arith.addf %b, %one : F\n%d = arith.mulf {f}, %h : F\n{z} = arith.mulf %c, %d : F{down}")
        yield f"relu {of}", letter * 2, f"{up}{zero}{z} = arith.maximumf {f}, %zero : F{down}"
        if letter != "f":
            for name in ("exp", "sin", "rsqrt"):
                yield f"math.{name} {of}", letter * 2, f"{up}%z = math.{name} %f : F{down}"
    yield "cast f64 f32", "dd", "%f = arith.truncf %x0 : T to F\n%y = arith.extf %f : F to T"


def libdevice():
    for line in VALUES.read_text().splitlines():
        name, letters = line.split()
        kinds = ", ".join("tensor<SIZEx%s>" % TYPES[letter] for letter in letters[1:])
        operands = ", ".join(f"%x{k}" for k in range(len(letters) - 1))
        yield name, letters, (f'%y = tt.extern_elementwise {operands} {{libname = "", libpath = "", pure = '
                              f'true, symbol = "__nv_{name}"}} : ({kinds}) -> tensor<SIZEx{TYPES[letters[0]]}>')


def copies(letters):
    """The kernel that loads and stores the same, with one instruction for each operand but the first."""
    lines, last = [], "%x0"
    if letters[0] != letters[1]:
        return None
    for k in range(1, len(letters) - 1):
        if letters[k + 1] != letters[0]:
            return None
        new = "%y" if k == len(letters) - 2 else f"%c{k}"
        lines.append(f"{new} = arith.addf {last}, %x{k} : T" if letters[0] in "fdhb" else
                     f"{new} = arith.xori {last}, %x{k} : T")
        last = new
    return "\n".join(lines)


def kernel_text(letters, body):
    """TTIR, and the number of elements of a thread: vectors of 16 bytes of the widest type."""
    kinds = [TYPES[letter] for letter in letters]
    each = 16 // max(BYTES[kind] for kind in kinds)
    size = each * THREADS
    names = [f"a{k}" for k in range(len(kinds) - 1)] + ["o"]
    of = dict(zip(names, kinds[1:] + kinds[:1]))
    lines = ["module {", "  tt.func public @k(" + ", ".join(
        f"%{name}: !tt.ptr<{of[name]}> {{tt.divisibility = 16 : i32}}" for name in names) + ") {",
        f"    %range = tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32>"]
    for name in names:
        pointers = f"tensor<{size}x!tt.ptr<{of[name]}>>"
        lines += [f"    %s{name} = tt.splat %{name} : !tt.ptr<{of[name]}> -> {pointers}",
                  f"    %p{name} = tt.addptr %s{name}, %range : {pointers}, tensor<{size}xi32>"]
    for k, name in enumerate(names[:-1]):
        lines.append(f"    %x{k} = tt.load %p{name} : tensor<{size}x!tt.ptr<{of[name]}>>")
    result = "%y" if "%y" in body else "%x0"
    body = re.sub(r"\bT\b", f"tensor<{size}x{kinds[0]}>", body)
    body = re.sub(r"\bF\b", f"tensor<{size}xf32>", body).replace("SIZE", str(size))
    lines += ["    " + line for line in body.splitlines()]
    lines += [f"    tt.store %po, {result} : tensor<{size}x!tt.ptr<{kinds[0]}>>", "    tt.return", "  }", "}"]
    return "\n".join(lines) + "\n", each


# ---- SASS -------------------------------------------------------------------------------------

LINE = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][A-Z0-9_.]*)\s*([^;]*);")


def weight(opcode):
    for pattern, slots in WEIGHTS:
        if re.match(pattern, opcode):
            return slots
    return 1


def instructions(cuobjdump, cubin):
    """(address, predicate, opcode, operands) in order, up to the padding."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run([cuobjdump, "-sass", file.name], capture_output=True, text=True, check=True).stdout
    rows = [(int(m[1], 16), m[2], m[3], m[4]) for m in map(LINE.search, text.splitlines()) if m]
    return [row for k, row in enumerate(rows)
            if not (row[2].startswith("BRA") and target_of(row) == row[0]) and row[2] != "NOP"]


def target_of(row):
    found = re.search(r"0x([0-9a-f]+)\s*$", row[3])
    return int(found.group(1), 16) if found else None


def successors(rows, at, places):
    address, predicate, opcode, _ = rows[at]
    if opcode.startswith("EXIT"):
        return [at + 1] if predicate else [None]  # some threads may end early
    if opcode.startswith("RET"):
        return []
    if opcode.startswith(("BRA", "CALL")):
        target = places.get(target_of(rows[at]))
        # A call returns behind itself: what it executes is in the way of the path through it.
        conditional = predicate or opcode.startswith("CALL") or re.match(r"!?U?P\d|\w+, !?U?P\d", rows[at][3])
        return [target] * (target is not None) + ([at + 1] if conditional else [])
    return [at + 1]


def common_path(rows, through=None, times=1):
    """(slots, instructions) of the cheapest path from the entry to an exit, of those that execute instructions
    which match `through` so many times."""
    places = {row[0]: k for k, row in enumerate(rows)}
    heap, seen = [(0, 0, 0, 0)], set()
    while heap:
        slots, count, at, found = heapq.heappop(heap)
        if (at, found) in seen or at >= len(rows):
            continue
        seen.add((at, found))
        opcode = rows[at][2]
        found += through is not None and re.match(through, f"{opcode} {rows[at][3]}") is not None
        slots, count = slots + weight(opcode) + (200 if opcode.startswith("CALL") else 0), count + 1
        for to in successors(rows, at, places):
            if to is None and (through is None or found >= times):
                return slots, count
            if to is not None:
                heapq.heappush(heap, (slots, count, to, found))
    return None, None


def measure(tools, ptx, device, through=None, times=1):
    cubin, registers, spilled, _, _ = assemble(tools["ptxas"], device, ptx)
    rows = instructions(tools["cuobjdump"], cubin)
    slots, count = common_path(rows, through, times)
    classes = {}
    for row in rows:
        stem = row[2].split(".")[0]
        classes[stem] = classes.get(stem, 0) + 1
    return {"slots": slots, "common": count, "all": len(rows), "registers": registers, "spilled": spilled,
            "slots_all": sum(weight(row[2]) for row in rows), "classes": classes}


# ---- the compilers ----------------------------------------------------------------------------


def by_triton(name, text):
    import triton
    from triton.backends.compiler import GPUTarget
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / (re.sub(r"\W", "_", name) + ".ttir")
        path.write_text(text)
        return triton.compile(str(path), target=GPUTarget("cuda", 90, 32)).asm["ptx"]


def compile_both(library, name, text):
    results = []
    for compiler in (lambda: library.compile(name + ".ttir", text, 4, 3)[0], lambda: by_triton(name, text)):
        try:
            results.append(compiler())
        except Exception as error:  # whatever it refuses with
            results.append(str(error).splitlines()[0] if str(error) else type(error).__name__)
    return results


def cases(only):
    for name, letters, body in list(operations()) + list(libdevice()):
        if not only or any(re.fullmatch(pattern, name) for pattern in only):
            yield name, letters, body


def run(library, tools, only):
    wanted = list(cases(only))
    texts = {}
    for name, letters, body in wanted:
        texts[name] = kernel_text(letters, body)
        base = copies(letters)
        texts["copy " + letters] = kernel_text(letters, base) if base is not None else (None, 1)
    ptx = {name: compile_both(library, name, text) for name, (text, _) in texts.items() if text}
    jobs = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, pair in ptx.items():
            jobs[name] = [pool.submit(measure, tools, p, "sm_90a", ORDINARY.get(name) if k else None,
                                      texts[name][1])
                          if ".visible" in p else None for k, p in enumerate(pair)]
    rows = []
    for name, letters, _ in wanted:
        each = texts[name][1]
        row = {"name": name, "types": letters, "elements": each}
        for k, compiler in enumerate(("lilac", "triton")):
            base = jobs.get("copy " + letters)
            job = jobs[name][k]
            if job is None:
                row[compiler] = {"refused": ptx[name][k]}
                continue
            found = job.result()
            if base and base[k]:
                plain = base[k].result()
                extra = (len(letters) - 2) * each
                for key in ("slots", "common", "all", "slots_all"):
                    spare = plain[key] - extra * (2 if key.startswith("slots") and letters[0] == "d" else 1)
                    found["element_" + key] = round((found[key] - spare) / each, 2)
            row[compiler] = found
        rows.append(row)
    return rows


# ---- the report -------------------------------------------------------------------------------


def cell(found, key):
    value = found.get("element_" + key, found.get(key)) if "refused" not in found else None
    return "–" if value is None else f"{value:g}" + ("" if "element_" + key in found else " *")


def excess(row):
    pair = [row[c].get("element_slots", row[c].get("slots")) for c in ("lilac", "triton")]
    if DIVERGING.fullmatch(row["name"]):
        pair[1] = row["triton"].get("element_slots_all")
    return None if None in pair else pair[0] - pair[1]


def table(rows, errors):
    lines = [["function", "slots", "Triton", "common", "Triton", "all", "Triton", "registers", "Triton",
              "both sides", "places off", ""]]
    for row in rows:
        more = excess(row)
        lines.append([row["name"]] + [cell(row[c], key) for key in ("slots", "common", "all")
                                      for c in ("lilac", "triton")]
                     + [str(row[c].get("registers", "–")) for c in ("lilac", "triton")]
                     + [cell(row["triton"], "slots_all") if DIVERGING.fullmatch(row["name"]) else "",
                        str(errors.get(row["name"], "–")),
                        "" if more is None or more <= 0.25 else f"+{more:g}"])
    return report.table(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("lilac", help="liblilac.so")
    parser.add_argument("--only", nargs="+", default=[], help="regular expressions of whole names")
    parser.add_argument("--functions", type=pathlib.Path, help="a report of bench/functions.py")
    report.add_options(parser)
    options = parser.parse_args()
    ptxas = options.ptxas or bundled_ptxas()
    tools = {"ptxas": ptxas, "cuobjdump": str(pathlib.Path(ptxas).parent / "cuobjdump")}
    library = Library(pathlib.Path(options.lilac).resolve(), "sm_90a")
    errors = {}
    if options.functions:
        errors = {row["name"]: row.get("worst", "–")
                  for row in json.loads(options.functions.read_text())["functions"]}
    rows = run(library, tools, options.only)
    about = report.environment(options, None, ptxas)
    both = [row for row in rows if excess(row) is not None]
    more = [row for row in both if excess(row) > 0.25]
    single = [row for row in more if "d" not in row["types"]]
    verdict = (f"{len(rows)} functions, {len(both)} compiled by both. More slots than Triton's on the "
               f"common path: {len(more)}, of which {len(single)} without f64")
    print(table(rows, errors))
    print("\n" + verdict)
    report.write_json(options.json, about, weights=WEIGHTS, functions=rows)
    if options.markdown:
        options.markdown.write_text(
            f"# Issue slots of functions on sm_90a\n\n{verdict}.\n\n{table(rows, errors)}\n\n"
            "Per element, without loads and stores: issue slots and instructions on the common path, all "
            "instructions; registers of the whole kernel. `*`: the whole kernel. The last column: "
            "slots beyond Triton's. Both sides: Triton's slots where a warp executes both sides of a branch. "
            "`bench/function_slots.py` defines the weights and the common path. "
            "Places off: floats between a result and the correctly rounded one, on the simulator.\n\n"
            f"{report.facts(about)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
