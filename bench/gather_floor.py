#!/usr/bin/env python3
"""What the corpus' gathers could reach on this GPU: hand-written kernels beside lilac's and Triton's.

    python3 bench/gather_floor.py LIBLILAC [--cubin FILE] [--json FILE] [--markdown FILE]

For each gather of the corpus at full size, launched alike (grid, block, parameters):

  nothing          a kernel that returns at once: what a launch takes
  copy, bulk       a tile and its indices read and as much written as a gather does, in several ways:
                   what the traffic takes; persist: by fewer blocks, which go from tile to tile
  gather           the gather by hand, in several ways (all in bench/gather_floor.cu)
  triton, lilac    both compilers' kernels; lilac first: lilac's, with loads that the second-level
                   cache may drop first

Timed as bench/gpu.py does, all kernels in turn in each round: once with 256 MiB written before each
launch, which the cache then has to write back, and once with 256 MiB read. Every kernel that gathers
is checked against PyTorch first. `reach` is Triton's time over the time of the fastest copy with the
same launch: no kernel that reads its inputs and writes its output has a larger ratio.
"""

import argparse
import importlib.util
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import gpu  # noqa: E402
from launches import CORPUS  # noqa: E402

CASES = ("gather_64x32_axis1", "gather_32x64_axis0", "gather_128x8_axis1")
PERSISTENT = 132 * 8  # blocks of a grid that goes from tile to tile


def entries(cubin):
    """The kernels of a cubin, by its symbols."""
    names = re.findall(rb"\.text\.(\w+)", cubin)
    return sorted({name.decode() for name in names})


def chosen(names, case, elements):
    """Those that a case is measured with."""
    kind = re.compile(rf"nothing|(copy|persist|bulk)_{elements}(_\w+)?|{case}_\w+")
    return [name for name in names if kind.fullmatch(name)]


def drop_first(ptx):
    """lilac's PTX with loads that the second-level cache may drop before all else."""
    ptx = re.sub(r"ld\.global((?:\.v\d)?\.b\d+ [^;]*);",
                 r"ld.global.L1::no_allocate.L2::cache_hint\1, %policy;", ptx)
    ptx = ptx.replace("\n\t.reg .", "\n\t.reg .b64 %policy;\n\t.reg .", 1)
    return re.sub(r"(\n\tld\.param)", "\n\tcreatepolicy.fractional.L2::evict_first.b64 %policy, 1.0;"
                  r"\1", ptx, count=1)


def time_all(torch, kernels, rounds, repeats, clean):
    """Milliseconds of each kernel: median over the rounds of medians over launches, least, most."""
    flush = torch.zeros(64 << 20, dtype=torch.int32, device="cuda")
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
              for _ in range(repeats)]
    medians = {name: [] for name in kernels}
    for number in range(-1, rounds):
        for name in list(kernels) if number % 2 else reversed(list(kernels)):
            for start, end in events:
                flush.max() if clean else flush.zero_()
                start.record()
                kernels[name].launch()
                end.record()
            torch.cuda.synchronize()
            if number >= 0:
                medians[name].append(statistics.median(s.elapsed_time(e) for s, e in events))
    return {name: (statistics.median(m), min(m), max(m)) for name, m in medians.items()}


def run_case(tools, case, options):
    """Rows of the report, and the complaints."""
    torch, driver = tools["torch"], tools["driver"]
    launch = CORPUS[case][0]()
    data = gpu.Data(torch, launch, 7)
    stream = torch.cuda.current_stream().cuda_stream
    data.poison()
    compiled = tools["kernels"].gather_rows[(launch.grid,)](
        *[data.values[a.name] for a in launch.arguments], num_warps=launch.num_warps)
    torch.cuda.synchronize()
    expected = data.expected()
    ttir = compiled.asm["ttir"]
    parameters = gpu.ttir_parameters(ttir)
    kernels, registers = {}, {}

    def add(name, function, shared, count=None, grid=launch.grid):
        kernels[name] = gpu.Kernel(driver, function, parameters, data.values, grid, 128, shared, stream)
        registers[name] = count

    def add_ptx(name, ptx, shared):
        image, count, spills, _, _ = gpu.assemble(tools["ptxas"], "sm_90a", ptx)
        add(name, driver.load(image, "gather_rows"), shared, f"{count}" + (f"+{spills}B" if spills else ""))

    add("triton", driver.load(compiled.asm["cubin"], compiled.metadata.name),
        compiled.metadata.shared, compiled.n_regs)
    for label, lilac in tools["lilac"].items():
        ptx, metadata, _ = lilac.compile(case + ".ttir", ttir, launch.num_warps, 3)
        add_ptx(label, ptx, metadata["shared"])
        add_ptx(label + " first", drop_first(ptx), metadata["shared"])
    arguments = {a.name: a.value for a in launch.arguments if a.shape is None}
    elements = arguments["R"] * arguments["C"]
    for name in chosen(tools["names"], case, elements):
        add(name, driver.load(tools["floor"], name), 8 * elements if "bulk" in name else 0,
            grid=PERSISTENT if name.startswith("persist") else launch.grid)
    wrong = []
    for name, kernel in kernels.items():
        if re.match(r"nothing|copy|persist|bulk", name):
            continue
        data.poison()
        kernel.launch()
        torch.cuda.synchronize()
        complaint = data.judge(expected)[2]
        if complaint:
            wrong.append(f"WRONG {case} {name}: {complaint}")
    times = {clean: time_all(torch, kernels, options.rounds, options.repeats, clean)
             for clean in (False, True)}
    rows = []
    for name in kernels:
        row = {"case": case, "kernel": name, "registers": registers[name], "bytes": launch.bytes}
        for clean, word in ((False, "written"), (True, "read")):
            for i, key in enumerate(("us", "least", "most")):
                row[f"{word}_{key}"] = 1e3 * times[clean][name][i]
            row[f"{word}_ratio"] = times[clean]["triton"][0] / times[clean][name][0]
        rows.append(row)
    return rows, wrong


def table(rows):
    lines = ["| case | kernel | registers | µs, cache written | TB/s | Triton / this | µs, cache read "
             "| TB/s | Triton / this |", "|---|---|---:|---:|---:|---:|---:|---:|---:|"]
    for row in rows:
        cells = []
        for word in ("written", "read"):
            us = row[f"{word}_us"]
            cells += [f"{us:.2f}", f"{row['bytes'] / us / 1e6:.2f}", f"{row[f'{word}_ratio']:.3f}"]
        lines.append(f"| {row['case']} | {row['kernel']} | {row['registers'] or ''} | "
                     + " | ".join(cells) + " |")
    return "\n".join(lines)


def reach(rows):
    """For each case the most that any kernel with its launch could reach, and what lilac does."""
    lines = ["| case | reach, cache written | lilac | reach, cache read | lilac |",
             "|---|---:|---:|---:|---:|"]
    for case in dict.fromkeys(row["case"] for row in rows):
        cells = []
        for word in ("written", "read"):
            own = {row["kernel"]: row[f"{word}_ratio"] for row in rows if row["case"] == case}
            floor = max(ratio for name, ratio in own.items() if re.match("copy|bulk", name))
            cells += [f"{floor:.3f}", f"{own['lilac']:.3f}"]
        lines.append(f"| {case} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("lilac", help="liblilac.so or the lilac command")
    parser.add_argument("--before", help="another one, to be measured beside it")
    parser.add_argument("--cubin", type=pathlib.Path, help="gather_floor.cu, compiled; else nvcc")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--commit")
    parser.add_argument("--ptxas")
    parser.add_argument("--kernels", type=pathlib.Path,
                        default=HERE.parent / "tests" / "data" / "corpus" / "kernels.py")
    options = parser.parse_args()

    import torch
    import triton
    torch.zeros(1, device="cuda")  # the context
    spec = importlib.util.spec_from_file_location("kernels", options.kernels)
    kernels = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernels)
    with tempfile.TemporaryDirectory() as folder:
        cubin = options.cubin
        if cubin is None:
            cubin = pathlib.Path(folder) / "floor.cubin"
            subprocess.run(["nvcc", "-cubin", "-arch=sm_90a", "-O3", "-o", str(cubin),
                            str(HERE / "gather_floor.cu")], check=True)
        floor = cubin.read_bytes()
    lilac = {"lilac": options.lilac, **({"before": options.before} if options.before else {})}
    tools = {"torch": torch, "kernels": kernels, "driver": gpu.Driver(), "floor": floor,
             "names": entries(floor), "ptxas": gpu.find_ptxas(options.ptxas),
             "lilac": {label: (gpu.Library if ".so" in pathlib.Path(path).name else gpu.Command)(
                 path, "sm_90a") for label, path in lilac.items()}}
    rows, wrong = [], []
    for case in CASES:
        more, complaints = run_case(tools, case, options)
        rows += more
        wrong += complaints
    print(table(rows), reach(rows), *wrong, sep="\n")
    about = gpu.environment(torch, triton, options, tools["ptxas"])
    if options.json:
        options.json.write_text(json.dumps({"environment": about, "rows": rows}, indent=1) + "\n")
    if options.markdown:
        facts = "\n".join(f"- {key}: {value}" for key, value in about.items() if key != "method")
        options.markdown.write_text(
            f"# What the corpus' gathers could reach on {about['gpu']}\n\n{reach(rows)}\n\n"
            "Reach: Triton's time over that of the fastest hand-written kernel that reads a tile and its\n"
            "indices and writes as much as the gather, with the same grid and blocks. Cache written, read:\n"
            "256 MiB are written or read before each launch.\n\n"
            f"{table(rows)}\n\n{facts}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
