#!/usr/bin/env python3
"""What the corpus' reductions could reach on this GPU: hand-written kernels beside lilac's and Triton's.

    python3 bench/reduce_floor.py LIBLILAC [--cubin FILE] [--json FILE] [--markdown FILE]

For each reduction of the corpus at full size, with one and the same grid, block and launch: the
kernels of bench/reduce_floor.cu (nothing at all, the tile's traffic in several ways, the reduction by
hand in several ways), Triton's kernel, lilac's, and lilac's with loads that are the first to leave the
L2 cache, as `eviction_policy="evict_first"` makes them.

Timed as bench/gpu.py does, all kernels in turn in each round: with 256 MiB written before each launch,
and with 256 MiB read. The last column is what the plainest read takes after 256 MiB are written and
the kernel has run: what that left to the next kernel to do. Every reduction is checked first.
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

# A thread's vectors of 16 bytes.
CASES = {"reduce_64x64_axis0": 8, "reduce_16x256_axis1": 8, "reduce_128x128_axis0": 32}


def entries(case):
    """The hand-written kernels for a case, by their names in reduce_floor.cu."""
    shape = case.split("_")[1]
    names = re.findall(r"^(?:READ|TRAFFIC|COLUMNS|ROWS|KERNEL)\((?:\d+\) )?(\w+)",
                       (HERE / "reduce_floor.cu").read_text(), re.M)
    wanted = rf"nothing$|bulk_{CASES[case]}$|read_{CASES[case]}(_|$)|(read|traffic|reduce)_{shape}"
    return [name for name in names if re.match(wanted, name)]


def time_all(torch, kernels, options, clean, again=None):
    """Milliseconds: median, least and most of the rounds' medians. Of `again` instead, if given,
    right after each."""
    flush = torch.zeros(64 << 20, dtype=torch.int32, device="cuda")
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
              for _ in range(options.repeats)]
    medians = {name: [] for name in kernels}
    for number in range(-1, options.rounds):
        for name in list(kernels) if number % 2 else reversed(list(kernels)):
            for start, end in events:
                flush.max() if clean else flush.zero_()
                if again:
                    kernels[name].launch()
                start.record()
                (again or kernels[name]).launch()
                end.record()
            torch.cuda.synchronize()
            if number >= 0:
                medians[name].append(statistics.median(s.elapsed_time(e) for s, e in events))
    return {name: (statistics.median(m), min(m), max(m)) for name, m in medians.items()}


def run_case(torch, case, tools, options):
    driver, floor, sources, ptxas, lilac = tools
    launch = CORPUS[case][0]()
    data = gpu.Data(torch, launch, options.seed)
    expected = data.expected()
    stream = torch.cuda.current_stream().cuda_stream
    data.poison()
    compiled = sources.reduce2d[(launch.grid,)](*[data.values[a.name] for a in launch.arguments],
                                                num_warps=launch.num_warps)
    ttir = compiled.asm["ttir"]
    parameters = gpu.ttir_parameters(ttir)
    kernels, registers = {}, {}

    def add(name, image, entry, shared, count=None):
        kernels[name] = gpu.Kernel(driver, driver.load(image, entry), parameters, data.values,
                                   launch.grid, 128, shared, stream)
        registers[name] = count

    add("triton", compiled.asm["cubin"], compiled.metadata.name, compiled.metadata.shared,
        compiled.n_regs)
    ptx, metadata, _ = lilac.compile(case + ".ttir", ttir, launch.num_warps, 3)
    for name, text in (("lilac", ptx),
                       ("lilac evict_first", re.sub(r"ld\.global\.v", "ld.global.L1::evict_first.v", ptx))):
        image, count, _, _, _ = gpu.assemble(ptxas, "sm_90a", text)
        add(name, image, metadata["name"], metadata["shared"], count)
    for name in entries(case):
        add(name, floor, name, 2048 * CASES[case] if "bulk" in name else 0)
    wrong = 0
    for name, kernel in kernels.items():
        if re.match("triton|lilac|reduce", name):
            data.poison()
            kernel.launch()
            torch.cuda.synchronize()
            complaint = data.judge(expected)[2]
            if complaint:
                wrong += 1
                print(f"WRONG {case} {name}: {complaint}")
    plain = kernels[f"read_{CASES[case]}"]
    written, read, again = (time_all(torch, kernels, options, clean, then)
                            for clean, then in ((False, None), (True, None), (False, plain)))
    return wrong, [{"case": case, "kernel": name, "registers": registers[name], "bytes": launch.bytes,
                    "written_us": [1e3 * t for t in written[name]],
                    "read_us": [1e3 * t for t in read[name]],
                    "then_read_again_us": 1e3 * again[name][0],
                    "written_speed": written["triton"][0] / written[name][0],
                    "read_speed": read["triton"][0] / read[name][0]} for name in kernels]


def table(rows):
    lines = ["| case | kernel | registers | after a write: µs | rounds | Triton's / this "
             "| after a read: µs | rounds | Triton's / this | then x read again: µs |",
             "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for r in rows:
        (a, a0, a1), (b, b0, b1) = r["written_us"], r["read_us"]
        lines.append(f"| {r['case']} | {r['kernel']} | {r['registers'] or ''} "
                     f"| {a:.2f} | {a0:.2f}-{a1:.2f} | {r['written_speed']:.2f} "
                     f"| {b:.2f} | {b0:.2f}-{b1:.2f} | {r['read_speed']:.2f} "
                     f"| {r['then_read_again_us']:.2f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("lilac", help="liblilac.so or the lilac command")
    parser.add_argument("--cubin", type=pathlib.Path, help="reduce_floor.cu, compiled; else by nvcc")
    parser.add_argument("--only", action="append", choices=list(CASES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--commit", help="recorded; default: git's")
    parser.add_argument("--ptxas")
    parser.add_argument("--kernels", type=pathlib.Path,
                        default=HERE.parent / "tests" / "data" / "corpus" / "kernels.py")
    options = parser.parse_args()

    import torch
    import triton
    torch.zeros(1, device="cuda")  # the context
    spec = importlib.util.spec_from_file_location("kernels", options.kernels)
    sources = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sources)
    ptxas = gpu.find_ptxas(options.ptxas)
    with tempfile.TemporaryDirectory() as folder:
        cubin = options.cubin or pathlib.Path(folder) / "floor.cubin"
        if options.cubin is None:
            subprocess.run(["nvcc", "-cubin", "-arch=sm_90a", "-O3", "-o", str(cubin),
                            str(HERE / "reduce_floor.cu")], check=True)
        floor = cubin.read_bytes()
    loader = gpu.Library if re.search(r"\.so(\.|$)", options.lilac) else gpu.Command
    tools = (gpu.Driver(), floor, sources, ptxas, loader(options.lilac, "sm_90a"))
    rows, wrong = [], 0
    for case in options.only or CASES:
        bad, found = run_case(torch, case, tools, options)
        wrong += bad
        rows += found
    print(table(rows))
    about = gpu.environment(torch, triton, options, ptxas)
    about["method"] = ("median over rounds of medians over launches; CUDA events; 256 MiB written, or "
                       "read, before each launch; order alternates; all launched by the same driver call")
    if options.json:
        options.json.write_text(json.dumps({"environment": about, "results": rows}, indent=1) + "\n")
    if options.markdown:
        facts = "\n".join(f"- {key}: {value}" for key, value in about.items())
        options.markdown.write_text(f"# What reductions could reach\n\n{table(rows)}\n\n{facts}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
