#!/usr/bin/env python3
"""Conversions between two layouts: lilac's kernels compared with Triton's on this GPU.

    python3 bench/conversions.py LIBLILAC [--pairs FILE] [--json FILE] [--markdown FILE] [--svg FILE]
    python3 bench/conversions.py LIBLILAC --compile-only       # needs no GPU
    python3 bench/conversions.py --draw FILE.json --svg FILE   # the picture again, from the data

    ncu --csv --print-units base --clock-control none -k convert --metrics METRICS \
        python3 bench/conversions.py LIBLILAC --counted FILE.json > NCU.csv      # METRICS: COUNTERS
    python3 bench/conversions.py --command LILAC --join NCU.csv FILE.json --markdown FILE

FILE of --pairs has one pair a line: two tensor types with a tab between them, as `lilac convert -`
reads them; bench/conversions.tsv is one. Needs Triton 3.6, and but for --compile-only a GPU and
PyTorch. For each pair:

  1. Both compilers compile one text, a TTGIR module with both layouts: it loads a tensor in the
     source layout, converts it N times to the target layout and back, and stores it. Triton starts
     at its stage after TTGIR, so that nothing simplifies the text before. The PTX of both goes
     through Triton's ptxas. A second module converts once and stores from the target layout; both
     compile a third time, lilac with {lilac.movement = "unswizzled"} on the conversions.
  2. Both kernels of both modules run on fresh random data with poisoned outputs and are compared
     with the input, bit for bit.
  3. Launches of the loop are timed with events in alternating order, a long loop (about half a
     millisecond by Triton's kernel) and one of a fifth of it; the difference over the conversions
     in it is the time of one conversion of all blocks. 528 blocks: four for each multiprocessor of
     an H200, as far as registers let them.

The floor is the time to store every byte of every block to shared memory once and to load it once, at
128 bytes per clock of each multiprocessor and the clock rate of the GPU during the measurement.

The counters are of one launch of the second module, whose only accesses to shared memory are the
conversion's: its wavefronts by the GPU, by lilac's plan (`lilac convert --json`), and Triton's. One
block is launched, and the minimum of three launches counts: data that return from global memory while
shared memory is accessed increase the counters, with many blocks by up to a fifth, for both compilers.

Exit status 1 when a result is wrong or a pair is refused; with --check also when a pair is slower
than 0.97 times Triton's speed.
"""

import argparse
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

import report
from driver import Driver, assemble
from gpu import Kernel, environment, find_ptxas
from library import LilacError, lilac_at

HERE = pathlib.Path(__file__).resolve().parent

BLOCKS = 528
GUARD = 1024
LANE_BYTES_PER_CLOCK = 128
COUNTERS = ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum")
BITS = {"i1": 8, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f16": 16, "bf16": 16, "f32": 32,
        "f64": 64, "f8E4M3FN": 8, "f8E5M2": 8}


# ---- pairs ----------------------------------------------------------------------------------


class Pair:
    def __init__(self, line):
        self.types = line.split("\t")
        if len(self.types) != 2:
            raise SystemExit(f"expected two types with a tab between them: {line}")
        parsed = [re.fullmatch(r"tensor<((?:\d+x)+)(\w+), (#.*)>", t.strip()) for t in self.types]
        if None in parsed or len({p.group(1, 2) for p in parsed}) != 1:
            raise SystemExit(f"expected two types of one tensor: {line}")
        self.shape = [int(n) for n in parsed[0].group(1)[:-1].split("x")]
        self.element = parsed[0].group(2)
        self.layouts = [p.group(3) for p in parsed]
        self.warps = next((w for w in map(warps_of, self.layouts) if w), 4)
        self.bits = BITS[self.element]
        self.elements = math.prod(self.shape)
        self.name = (f"{'x'.join(map(str, self.shape))} {self.element} "
                     f"{short(self.layouts[0])} > {short(self.layouts[1])}")
        self.family = f"{family(self.layouts[0])} > {family(self.layouts[1])}"


def numbers(text, key):
    found = re.search(key + r" = \[([\d, ]*)\]", text)
    return [int(n) for n in found.group(1).split(",")] if found else []


def warps_of(layout):
    if layout.startswith("#ttg.linear"):
        warp = re.search(r"warp = \[(.*?)\](?:, block|\})", layout).group(1)
        return 1 << warp.count("[")
    return math.prod(numbers(layout, "warpsPerCTA"))


def family(layout):
    return re.match(r"#ttg\.(?:nvidia_)?(\w+)", layout).group(1)


def short(layout):
    """A name for tables: what differs among the layouts people use."""
    kind = family(layout)
    if kind == "blocked":
        parts = ["x".join(map(str, numbers(layout, key)))
                 for key in ("sizePerThread", "threadsPerWarp", "warpsPerCTA")]
        return "blocked " + " ".join(parts)
    if kind == "mma":
        version = re.search(r"versionMajor = (\d)", layout).group(1)
        return f"mma{version} {'x'.join(map(str, numbers(layout, 'warpsPerCTA')))}"
    if kind == "dot_op":
        return (f"operand {re.search('opIdx = (.)', layout).group(1)} kWidth "
                f"{re.search('kWidth = (.)', layout).group(1)} of "
                + short(re.search("parent = (.*)", layout).group(1)))
    if kind == "slice":
        dim, parent = re.search(r"dim = (\d), parent = (.*)\}>", layout).groups()
        return f"slice {dim} of {short(parent)}"
    if kind == "linear":  # registers/lanes/warps: of each basis the dimension and log2 of its step
        parts = []
        for key in ("register", "lane", "warp"):
            bases = re.search(key + r" = \[(.*?)\](?:, [a-z]|\})", layout).group(1)
            parts.append("".join("".join("ijklmn"[d] + str(int(n).bit_length() - 1)
                                         for d, n in enumerate(basis.split(",")) if int(n)) or "-"
                                 for basis in re.findall(r"\[([\d, ]+)\]", bases)))
        return "linear " + "/".join(parts)
    return kind


# ---- modules --------------------------------------------------------------------------------


def sliced(layout, rank, dim):
    """What a range along `dim` is in, so that expansions give `layout`: the others taken off, the
    last first."""
    for other in reversed([d for d in range(rank) if d != dim]):
        layout = f"#ttg.slice<{{dim = {other}, parent = {layout}}}>"
    return layout


def pointers(pair, layout, base, prefix):
    """Lines that make %{prefix}: a pointer to each element, row-major, and its type."""
    rank, shape = len(pair.shape), pair.shape
    pointer = f"!tt.ptr<{pair.element}>"
    whole = "x".join(map(str, shape))
    lines, total, stride = [], None, 1
    for dim in reversed(range(rank)):
        name, size = f"%{prefix}_{dim}", shape[dim]
        kept = [dim]
        at = sliced(layout, rank, dim)
        lines.append(f"{name} = tt.make_range {{end = {size} : i32, start = 0 : i32}} : "
                     f"tensor<{size}xi32, {at}>")
        form = f"tensor<{size}xi32, {at}>"
        for other in range(rank):
            if other == dim:
                continue
            # The slices of `at` are, from the outermost in: the smallest other dimension first.
            at = re.fullmatch(r"#ttg\.slice<\{dim = \d+, parent = (.*)\}>", at).group(1)
            kept = sorted(kept + [other])
            sizes = "x".join(str(shape[d]) if d == dim else "1" for d in kept)
            new = f"tensor<{sizes}xi32, {at}>"
            lines.append(f"{name}_{other} = tt.expand_dims {name} {{axis = {kept.index(other)} : "
                         f"i32}} : {form} -> {new}")
            name, form = f"{name}_{other}", new
        if stride > 1:
            lines += [f"{name}_c = arith.constant dense<{stride}> : {form}",
                      f"{name}_m = arith.muli {name}, {name}_c : {form}"]
            name += "_m"
        if rank > 1:
            full = f"tensor<{whole}xi32, {layout}>"
            lines.append(f"{name}_b = tt.broadcast {name} : {form} -> {full}")
            name, form = name + "_b", full
        if total:
            lines.append(f"%{prefix}_s{dim} = arith.addi {total}, {name} : {form}")
            name = f"%{prefix}_s{dim}"
        total = name
        stride *= size
    result = f"tensor<{whole}x{pointer}, {layout}>"
    lines += [f"%{prefix}_p = tt.splat {base} : {pointer} -> {result}",
              f"%{prefix} = tt.addptr %{prefix}_p, {total} : {result}, tensor<{whole}xi32, {layout}>"]
    return lines, result


def module(pair, loop, movement=None):
    """The text: `loop` there and back %n times, else once and stored from the target layout."""
    source, target = pair.types
    note = f' {{lilac.movement = "{movement}"}}' if movement else ""
    pointer = f"!tt.ptr<{pair.element}>"
    lines = ["%block = tt.get_program_id x : i32",
             f"%size = arith.constant {pair.elements} : i32",
             "%start = arith.muli %block, %size : i32",
             f"%in_b = tt.addptr %in, %start : {pointer}, i32",
             f"%out_b = tt.addptr %out, %start : {pointer}, i32"]
    more, kind = pointers(pair, pair.layouts[0], "%in_b", "from")
    lines += more + [f"%x = tt.load %from : {kind}"]
    if loop:
        lines += ["%zero = arith.constant 0 : i32", "%one = arith.constant 1 : i32",
                  f"%y = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> ({source}) : i32 {{",
                  f"  %b = ttg.convert_layout %a{note} : {source} -> {target}",
                  f"  %c = ttg.convert_layout %b{note} : {target} -> {source}",
                  f"  scf.yield %c : {source}", "}"]
        more, kind = pointers(pair, pair.layouts[0], "%out_b", "to")
    else:
        lines += [f"%y = ttg.convert_layout %x{note} : {source} -> {target}"]
        more, kind = pointers(pair, pair.layouts[1], "%out_b", "to")
    lines += more + [f"tt.store %to, %y : {kind}", "tt.return"]
    body = "\n".join("    " + line for line in lines)
    return f"""module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {pair.warps} : i32, \
ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @convert(%in: {pointer} {{tt.divisibility = 16 : i32}}, \
%out: {pointer} {{tt.divisibility = 16 : i32}}, %n: i32) attributes {{noinline = false}} {{
{body}
  }}
}}
"""


# ---- compiling ------------------------------------------------------------------------------


def compile_triton(text, folder):
    """PTX, cubin, bytes of shared memory; from the stage after TTGIR."""
    import triton
    from triton.backends.compiler import GPUTarget
    path = pathlib.Path(folder) / "convert.ttgir"
    path.write_text(text)
    compiled = triton.compile(str(path), target=GPUTarget("cuda", 90, 32))
    shared = compiled.metadata.shared
    return compiled.asm["ptx"], compiled.asm["cubin"], shared() if callable(shared) else shared


LOOP_KINDS = (("shuffles", r"\bshfl\.sync"), ("stores", r"\bst\.(?:volatile\.)?shared"),
              ("loads", r"\bld\.(?:volatile\.)?shared"), ("matrix stores", r"\bstmatrix"),
              ("matrix loads", r"\bldmatrix"),
              ("barriers", r"\b(?:bar|barrier)(?:\.cta)?\.sync\b"), ("permutes", r"\bprmt"),
              ("selects", r"\bselp"), ("global", r"\b(?:ld|st)\.global"))


def count_loop(ptx):
    """Instructions between the label that a later branch goes back to and that branch: the widest
    such loop."""
    lines = ptx.splitlines()
    labels = {line.strip()[:-1].split(":")[0]: i for i, line in enumerate(lines)
              if re.match(r"\s*\$?\w+:", line)}
    best = None
    for i, line in enumerate(lines):
        jump = re.search(r"\bbra(?:\.uni)?\s+(\$?\w+)", line)
        if jump and labels.get(jump.group(1), i) < i:
            start = labels[jump.group(1)]
            if best is None or i - start > best[1] - best[0]:
                best = (start, i)
    body = lines[best[0]:best[1]] if best else []
    body = [b for b in (line.split("//")[0].strip() for line in body) if b.endswith(";")]
    counts = {name: sum(bool(re.search(pattern, b)) for b in body) for name, pattern in LOOP_KINDS}
    return dict({k: v for k, v in counts.items() if v}, all=len(body))


def compile_pair(tools, pair, row):
    """The kernels of a pair by who makes them: (cubin, name, shared)."""
    kernels = {}
    for which, loop in (("loop", True), ("once", False)):
        text = module(pair, loop)
        if tools["keep"]:
            (tools["keep"] / f"{pair.number}.{which}.ttgir").write_text(text)
        if tools["triton"]:
            with tempfile.TemporaryDirectory() as folder:
                ptx, cubin, shared = compile_triton(text, folder)
            _, registers, spills, _, _ = assemble(tools["ptxas"], tools["device"], ptx)
            kernels["triton", which] = (cubin, "convert", shared)
            if loop:
                row["triton"] = {"registers": registers, "spills": spills, "shared": shared,
                                 "loop": count_loop(ptx)}
            if tools["keep"]:
                (tools["keep"] / f"{pair.number}.{which}.triton.ptx").write_text(ptx)
        for who, movement in (("lilac", None), ("unswizzled", "unswizzled")):
            if not tools["lilac"]:
                continue
            try:
                ptx, metadata, _ = tools["lilac"].compile("convert.ttgir", module(pair, loop, movement),
                                                          pair.warps, 1)
                cubin, registers, spills, _, _ = assemble(tools["ptxas"], tools["device"], ptx)
            except LilacError as error:
                row.setdefault(who + " refuses", str(error).strip())
                continue
            kernels[who, which] = (cubin, metadata["name"], metadata["shared"])
            if loop:
                row[who] = {"registers": registers, "spills": spills,
                            "shared": metadata["shared"], "loop": count_loop(ptx)}
            if tools["keep"]:
                (tools["keep"] / f"{pair.number}.{which}.{who}.ptx").write_text(ptx)
    return kernels


# ---- running --------------------------------------------------------------------------------


class Clock:
    """Clocks a nanosecond: a kernel that counts both."""

    PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry spin(.param .u64 out) {
  .reg .u64 %q<8>; .reg .pred %p; .reg .u32 %r;
  ld.param.u64 %q0, [out];
  mov.u64 %q1, %globaltimer; mov.u64 %q2, %clock64;
again:
  mov.u64 %q3, %clock64; sub.u64 %q4, %q3, %q2; setp.lt.u64 %p, %q4, 1000000; @%p bra again;
  mov.u64 %q5, %globaltimer; sub.u64 %q5, %q5, %q1; mov.u64 %q3, %clock64; sub.u64 %q4, %q3, %q2;
  mov.u32 %r, %tid.x; setp.ne.u32 %p, %r, 0; @%p ret;
  st.global.u64 [%q0], %q4; st.global.u64 [%q0+8], %q5;
  ret;
}
"""

    def __init__(self, tools):
        self.torch = tools["torch"]
        cubin, _, _, _, _ = assemble(tools["ptxas"], tools["device"],
                                     self.PTX.replace("sm_90\n", tools["device"] + "\n"))
        self.out = self.torch.zeros(2, dtype=self.torch.int64, device="cuda")
        self.kernel = Kernel(tools["driver"], tools["driver"].load(cubin, "spin"),
                             [("out", "!tt.ptr<i64>")], {"out": self.out}, 1, 32, 0,
                             self.torch.cuda.current_stream().cuda_stream)

    def gigahertz(self):
        self.kernel.launch()
        self.torch.cuda.synchronize()
        clocks, nanoseconds = self.out.tolist()
        return clocks / nanoseconds


class Runner:
    """The kernels of one pair with their buffers."""

    def __init__(self, tools, pair, kernels, seed, blocks=BLOCKS):
        torch = self.torch = tools["torch"]
        generator = torch.Generator(device="cuda").manual_seed(seed)
        bytes_in = blocks * pair.elements * pair.bits // 8
        self.input = torch.randint(0, 256, (bytes_in,), dtype=torch.uint8, device="cuda",
                                   generator=generator)
        if pair.element == "i1":
            self.input &= 1
        self.whole = torch.empty(bytes_in + GUARD, dtype=torch.uint8, device="cuda")
        self.size = bytes_in
        self.kernels = {}
        stream = torch.cuda.current_stream().cuda_stream
        for key, (cubin, name, shared) in kernels.items():
            function = tools["driver"].load(cubin, name)
            self.kernels[key] = lambda count, function=function, shared=shared: Kernel(
                tools["driver"], function,
                [("in", "!tt.ptr<i8>"), ("out", "!tt.ptr<i8>"), ("n", "i32")],
                {"in": self.input, "out": self.whole, "n": count}, blocks, 32 * pair.warps,
                shared, stream)

    def wrong(self, key, count):
        """A complaint, or None."""
        self.whole.fill_(0xA5)
        self.kernels[key](count).launch()
        self.torch.cuda.synchronize()
        different = (self.whole[:self.size] != self.input).sum().item()
        if different:
            return f"{key} {count}: {different} of {self.size} bytes differ"
        if (self.whole[self.size:] != 0xA5).any().item():
            return f"{key} {count}: written outside its elements"
        return None


def time_kernels(tools, runner, who):
    """Nanoseconds of one conversion by each of `who`: for each, one for each round."""
    torch = tools["torch"]
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
              for _ in range(tools["repeats"])]

    def once(kernel):
        for start, end in events:
            start.record()
            kernel.launch()
            end.record()
        torch.cuda.synchronize()
        return statistics.median(start.elapsed_time(end) for start, end in events)

    first = runner.kernels["triton", "loop"]
    once(first(100))
    estimate = (once(first(600)) - once(first(100))) / 500
    long = int(min(20000, max(200, tools["milliseconds"] / max(estimate, 1e-6))))
    short = long // 5
    kernels = {name: [runner.kernels[name, "loop"](n) for n in (long, short)] for name in who}
    found = {name: [] for name in who}
    for name in who:
        once(kernels[name][0])
    for number in range(tools["rounds"]):
        for name in (who if number % 2 == 0 else who[::-1]):
            a, b = map(once, kernels[name])
            found[name].append(1e6 * (a - b) / (2 * (long - short)))
    return found


def run_pair(tools, pair, kernels, row, seed):
    runner = Runner(tools, pair, kernels, seed)
    for key in runner.kernels:
        for count in ((1, 3, 500) if key[1] == "loop" else (0,)):
            complaint = runner.wrong(key, count)
            if complaint:
                row.setdefault("wrong", []).append(complaint)
    if row.get("wrong") or tools["no_timing"]:
        return
    who = [name for name in ("triton", "lilac", "unswizzled") if (name, "loop") in kernels]
    clock = tools["clock"].gigahertz()
    found = time_kernels(tools, runner, who)
    clock = (clock + tools["clock"].gigahertz()) / 2
    row["gigahertz"] = clock
    multiprocessors = tools["multiprocessors"]
    row["floor_ns"] = (2 * pair.elements * pair.bits / 8 * BLOCKS / multiprocessors
                       / LANE_BYTES_PER_CLOCK / clock)
    for name in who:
        row[name]["ns"] = statistics.median(found[name])
        row[name]["rounds"] = found[name]
    for name in who[1:]:
        ratios = [t / o for t, o in zip(found["triton"], found[name])]
        row[name]["speed"] = statistics.median(ratios)
        row[name]["speed_range"] = [min(ratios), max(ratios)]


# ---- the plans ------------------------------------------------------------------------------


def plans(command, pairs):
    """The output of `lilac convert --json -` for each pair; {} for a refused pair."""
    text = "".join("\t".join(pair.types) + "\n" for pair in pairs)
    run = subprocess.run([command, "convert", "--json", "-"], input=text, capture_output=True,
                         text=True)
    lines = run.stdout.splitlines()
    if len(lines) != len(pairs):
        return [{}] * len(pairs)
    found = [json.loads(line) if line.startswith("{") else {} for line in lines]
    return [{key: plan[key] for key in plan if key != "steps"} for plan in found]


# ---- counters -------------------------------------------------------------------------------


def run_counted(tools, pairs, path):
    """One launch a pair and compiler; who they were, in order, to `path`."""
    order = []
    for pair in pairs:
        row = {}
        kernels = compile_pair(tools, pair, row)
        runner = Runner(tools, pair, kernels, pair.number, 1)
        for who in ("lilac", "triton"):
            if (who, "once") in kernels:
                for _ in range(3):
                    complaint = runner.wrong((who, "once"), 0)
                    order.append({"types": pair.types, "who": who, "wrong": complaint})
        print(pair.number, pair.name, row.get("lilac refuses", ""), flush=True)
    path.write_text(json.dumps(order) + "\n")


def join_counted(csv_path, order_path, command):
    """Rows: the pair, wavefronts (stores, loads) planned and counted, of one block."""
    launches = report.read_counters(csv_path)
    order = json.loads(order_path.read_text())
    if len(order) != len(launches):
        raise SystemExit(f"{len(launches)} launches counted, {len(order)} expected")
    rows = {}
    for launch, counted in zip(order, launches):
        row = rows.setdefault("\t".join(launch["types"]), {"types": launch["types"]})
        now = [counted[name] for name in COUNTERS]
        row[launch["who"]] = list(map(min, now, row.get(launch["who"], now)))
        if launch["wrong"]:
            row["wrong"] = launch["wrong"]
    pairs = [Pair("\t".join(row["types"])) for row in rows.values()]
    for pair, row, plan in zip(pairs, rows.values(), plans(command, pairs)):
        row.update(name=pair.name, plan=[plan["wavefronts"]["store"], plan["wavefronts"]["load"]]
                   if plan else None)
    return list(rows.values())


def counted_table(rows):
    lines = ["| pair | planned: stores, loads | counted | equal | Triton's, counted |",
             "|---|---:|---:|---|---:|"]
    for row in rows:
        mine, planned = row.get("lilac"), row["plan"]
        lines.append(" | ".join((
            "| " + row["name"], "{}, {}".format(*planned) if planned else "-",
            "{:g}, {:g}".format(*mine) if mine else "-", "yes" if mine == planned else "no",
            "{:g}, {:g} |".format(*row["triton"]))))
    return "\n".join(lines)


# ---- the report -----------------------------------------------------------------------------


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


COLUMNS = (("pair", lambda r: r["name"]), ("bits", lambda r: str(r["bits"])),
           ("plan", lambda r: r.get("plan", {}).get("kind", "-")),
           ("Triton ns", lambda r: f"{r['triton']['ns']:.0f}"),
           ("lilac ns", lambda r: f"{r['lilac']['ns']:.0f}"),
           ("faster", lambda r: f"{r['lilac']['speed']:.2f}"),
           ("floor ns", lambda r: f"{r['floor_ns']:.0f}"),
           ("of floor", lambda r: f"{r['floor_ns'] / r['lilac']['ns']:.0%}"),
           ("unswizzled ns", lambda r: f"{r['unswizzled']['ns']:.0f}"),
           ("over it", lambda r: f"{r['unswizzled']['ns'] / r['lilac']['ns']:.2f}"),
           ("registers", lambda r: f"{r['lilac']['registers']} / {r['triton']['registers']}"),
           ("spills", lambda r: f"{r['lilac']['spills']} / {r['triton']['spills']}"),
           ("shared", lambda r: f"{r['lilac']['shared']} / {r['triton']['shared']}"))


def table(rows):
    lines = [[title for title, _ in COLUMNS]]
    for row in rows:
        cells = []
        for _, form in COLUMNS:
            try:
                cells.append(form(row))
            except (KeyError, ZeroDivisionError):
                cells.append("-")
        lines.append(cells)
    return report.table(lines, words=(0, 2))


def summary(rows):
    timed = [r for r in rows if "speed" in r.get("lilac", {})]
    if not timed:
        return {}
    speeds = [r["lilac"]["speed"] for r in timed]
    over = [r["unswizzled"]["ns"] / r["lilac"]["ns"] for r in timed if "ns" in r.get("unswizzled", {})]
    slowest = min(timed, key=lambda r: r["lilac"]["speed"])
    return {"pairs": len(timed), "geometric_mean": geometric_mean(speeds),
            "least": min(speeds), "least_pair": slowest["name"],
            "below_0.97": sum(s < 0.97 for s in speeds), "most": max(speeds),
            "unswizzled_geometric_mean": geometric_mean(over), "unswizzled_most": max(over, default=0)}


def say(found):
    return (f"{found['pairs']} pairs: {found['geometric_mean']:.3f} times as fast as Triton "
            f"(geometric mean), at least {found['least']:.3f} ({found['least_pair']}), at most "
            f"{found['most']:.2f}; below 0.97: {found['below_0.97']}. Over the same conversions "
            f"through unswizzled shared memory: {found['unswizzled_geometric_mean']:.2f} times, at "
            f"most {found['unswizzled_most']:.2f}.")


def draw(rows, path):
    """Two bars a pair: Triton's time over lilac's, and unswizzled shared memory's over lilac's."""
    timed = [r for r in rows if "speed" in r.get("lilac", {})]
    left, step, right, top = 430, 17, 520, 64
    most = max([r["lilac"]["speed"] for r in timed]
               + [r["unswizzled"]["ns"] / r["lilac"]["ns"] for r in timed if "ns" in r.get("unswizzled", {})])
    decades = max(1.0, math.log2(most))
    low = min(-0.5, math.log2(min(r["lilac"]["speed"] for r in timed)))

    def x(value):
        return left + right * (math.log2(value) - low) / (decades - low)

    height = top + step * len(timed) + 36
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right + 40}" height="{height}" '
           f'viewBox="0 0 {left + right + 40} {height}" font-family="Helvetica, Arial, sans-serif" '
           'font-size="11">', f'<rect width="100%" height="100%" fill="#ffffff"/>',
           f'<text x="12" y="22" font-size="14" fill="#222222">One conversion between two layouts: '
           'time over lilac\'s</text>',
           f'<rect x="12" y="32" width="12" height="9" fill="#7d5ba6"/><text x="30" y="40" '
           'fill="#222222">Triton 3.6</text>',
           f'<rect x="112" y="32" width="12" height="9" fill="#d9d2e9"/><text x="130" y="40" '
           'fill="#222222">lilac through unswizzled shared memory</text>']
    tick = 0.5 if low <= -1 else 1
    while tick <= most * 1.001:
        out += [f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{top - 6}" y2="{height - 26}" '
                f'stroke="{"#222222" if tick == 1 else "#dddddd"}"/>',
                f'<text x="{x(tick):.1f}" y="{height - 12}" text-anchor="middle" fill="#222222">'
                f'{tick:g}</text>']
        tick *= 2
    for i, row in enumerate(timed):
        y = top + step * i
        name = row["name"].replace("<", "&lt;").replace(">", "→")
        out.append(f'<text x="{left - 8}" y="{y + 9}" text-anchor="end" fill="#222222" '
                   f'font-size="9">{name}</text>')
        bars = [("#7d5ba6", row["lilac"]["speed"], 0)]
        if "ns" in row.get("unswizzled", {}):
            bars.append(("#d9d2e9", row["unswizzled"]["ns"] / row["lilac"]["ns"], 6))
        for colour, value, down in bars:
            a, b = sorted((x(1), x(value)))
            out.append(f'<rect x="{a:.1f}" y="{y + down}" width="{max(b - a, 1):.1f}" height="6" '
                       f'fill="{colour}"/>')
    path.write_text("\n".join(out + ["</svg>"]) + "\n")


def write_report(options, about, rows):
    found = summary(rows)
    if options.json:
        lines = ",\n".join("  " + json.dumps(row) for row in rows)
        options.json.write_text('{"environment": ' + json.dumps(about, indent=1) + ',\n"summary": '
                                + json.dumps(found, indent=1) + ',\n"pairs": [\n' + lines + "\n]}\n")
    if options.markdown:
        families = {}
        for row in rows:
            if "speed" in row.get("lilac", {}):
                families.setdefault(row["family"], []).append(row["lilac"]["speed"])
        by_family = "\n".join(f"| {name} | {len(s)} | {geometric_mean(s):.2f} | {min(s):.2f} |"
                              for name, s in families.items())
        options.markdown.write_text(
            f"# Conversions between layouts on {about.get('gpu')}\n\n"
            f"{say(found) if found else ''}\n\n{table(rows)}\n\n"
            "Times are of one conversion of 528 blocks; `faster` is Triton's time over lilac's, the "
            "median of rounds; `over it` is the time of lilac's own kernel forced through unswizzled "
            "shared memory over lilac's; the floor is every byte stored and loaded once at 128 bytes "
            "a clock a multiprocessor, and conversions that stay within warps may take less. "
            "Registers, spills and shared memory are lilac's / Triton's.\n\n"
            f"| family | pairs | faster | least |\n|---|---:|---:|---:|\n{by_family}\n\n{report.facts(about)}\n")
    if options.svg and found:
        draw(rows, options.svg)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("lilac", nargs="?", help="liblilac.so or the lilac command")
    parser.add_argument("--pairs", type=pathlib.Path, default=HERE / "conversions.tsv")
    parser.add_argument("--command", help="the lilac command, for the kinds of plan")
    report.add_options(parser)
    parser.add_argument("--svg", type=pathlib.Path)
    parser.add_argument("--draw", type=pathlib.Path, help="a file that --json wrote")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the TTGIR and PTX")
    parser.add_argument("--only", type=int, action="append", help="this line only (from 1)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=7, help="launches a round")
    parser.add_argument("--milliseconds", type=float, default=0.5, help="of a long launch")
    parser.add_argument("--seed", type=int, default=None, help="default: from the clock")
    parser.add_argument("--no-timing", action="store_true")
    parser.add_argument("--without-triton", action="store_true", help="right or wrong, no times")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--counted", type=pathlib.Path, help="launch once each, for a profiler")
    parser.add_argument("--join", type=pathlib.Path, nargs=2, metavar=("CSV", "JSON"))
    options = parser.parse_args()
    if options.join:
        rows = join_counted(*options.join, options.command)
        text = counted_table(rows)
        print(text)
        equal = sum(row.get("lilac") == row["plan"] for row in rows)
        said = f"{equal} of {len(rows)} plans take exactly the wavefronts that the GPU counts."
        print("\n" + said)
        if options.markdown:
            options.markdown.write_text(
                "# Wavefronts of shared memory, planned and counted\n\nOf one conversion by one "
                f"block on an H200, the least of three launches, counted by ncu ({', '.join(COUNTERS)}).\n\n{text}\n\n{said}\n")
        return 0 if equal == len(rows) else 1
    if options.draw:
        draw(json.loads(options.draw.read_text())["pairs"], options.svg)
        return 0
    seed = options.seed if options.seed is not None else int(time.time())
    pairs = [Pair(line) for line in options.pairs.read_text().splitlines() if line]
    for number, pair in enumerate(pairs, 1):
        pair.number = number
    planned = plans(options.command, pairs) if options.command else [{}] * len(pairs)
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    ptxas, device = find_ptxas(options.ptxas), "sm_90a"
    tools = {"ptxas": ptxas, "device": device, "keep": options.keep, "rounds": options.rounds,
             "lilac": lilac_at(options.lilac, device) if options.lilac else None,
             "repeats": options.repeats, "milliseconds": options.milliseconds,
             "no_timing": options.no_timing or options.without_triton,
             "triton": not options.without_triton}
    about = {}
    if not options.compile_only:
        import torch
        import triton
        if not torch.cuda.is_available():
            raise SystemExit("no GPU here")
        torch.zeros(1, device="cuda")
        tools.update(torch=torch, driver=Driver(),
                     multiprocessors=torch.cuda.get_device_properties(0).multi_processor_count)
        tools["clock"] = Clock(tools)
        about = environment(torch, triton, options, ptxas)
        del about["bandwidth_bound"]
        about.update(seed=seed,
                     method=f"{BLOCKS} blocks; events around launches of about "
                            f"{options.milliseconds} ms and of a fifth of the iterations, difference "
                            f"over the conversions; medians of {options.repeats} launches, then of "
                            f"{options.rounds} rounds; order alternates; one launcher")
    if options.counted:
        run_counted(tools, [p for p in pairs if not options.only or p.number in options.only],
                    options.counted)
        return 0
    rows = []
    for pair, plan in zip(pairs, planned):
        if options.only and pair.number not in options.only:
            continue
        row = {"number": pair.number, "name": pair.name, "family": pair.family, "bits": pair.bits,
               "warps": pair.warps, "types": pair.types, "plan": plan}
        rows.append(row)
        try:
            kernels = compile_pair(tools, pair, row)
            if not options.compile_only:
                run_pair(tools, pair, kernels, row, seed + pair.number)
        except Exception as error:  # the others still count
            traceback.print_exc()
            row.setdefault("wrong", []).append(f"{type(error).__name__}: {error}")
        said = {who: row.get(who, {}).get("ns") for who in ("triton", "lilac", "unswizzled")}
        print(pair.number, pair.name, {k: round(v) for k, v in said.items() if v},
              row.get("wrong", ""), row.get("lilac refuses", "").split("\n")[0], flush=True)
        if options.compile_only:
            for who in ("triton", "lilac"):
                print("     ", who, row.get(who))
    print()
    print(table(rows))
    failed = [r for r in rows if r.get("wrong") or r.get("lilac refuses")]
    for row in failed:
        complaint = row.get("wrong") or row["lilac refuses"].split("\n")[0]
        print(f"WRONG {row['number']} {row['name']}: {complaint}")
    found = summary(rows)
    if found:
        print("\n" + say(found))
    write_report(options, about, rows)
    return 1 if failed or (options.check and found.get("below_0.97")) else 0


if __name__ == "__main__":
    sys.exit(main())
