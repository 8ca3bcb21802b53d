#!/usr/bin/env python3
"""The paper's Figure 6 (gathers by warp shuffles against shared memory), on this GPU.

    python3 bench/paper/figure6.py LIBLILAC [--json FILE] [--markdown FILE] [--svg FILE]
    python3 bench/paper/figure6.py --draw JSON --svg FILE      no GPU: draws what was measured

Tensors of 512 rows, gathered along their rows of 2 to 64 elements. One kernel (the corpus' gather_rows,
a thousand gathers between one load and one store), one launch shape, and of each shape and type:

  rows in order      lilac's gather through shared memory that holds the tensor row after row, with the
                     block's barriers: what the paper measures its shuffles against
  shared memory      lilac's through memory laid out so that rows have banks of their own
  shuffles           lilac's by warp shuffles (the paper's section 5.5)
  lilac              as lilac chooses by price
  Triton             Triton 3.6

The first three are asked for by the attribute lilac.movement of tt.gather in the text that goes to
lilac. Every kernel's result is checked against PyTorch's. Exit status 1 when one is wrong, or when
lilac's choice takes more than 1.03 times the better of its two ways.
"""

import argparse
import json
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import gpu  # noqa: E402
import report  # noqa: E402
from driver import assemble  # noqa: E402
from launches import gather_rows  # noqa: E402

ROWS, COLUMNS, TIMES, PROGRAMS = 512, (2, 4, 8, 16, 32, 64), 1000, 528
TYPES = ("float32", "float16", "int8")
WAYS = {"rows in order": "unswizzled", "shared memory": "shared", "shuffles": "shuffles", "lilac": None}
NAMES = [*WAYS, "Triton"]


def num_warps(columns):
    """So many that a thread's elements and indices fit into its registers."""
    return 4 if columns <= 8 else 8 if columns <= 32 else 16


def asked(ttir, way):
    """The text with the attribute on its gathers."""
    if way is None:
        return ttir
    attribute = f'{{axis = 1 : i32, lilac.movement = "{way}"}}'
    text = ttir.replace("{axis = 1 : i32}", attribute)
    if attribute not in text:
        raise SystemExit("the text has no gather that the attribute could be put on")
    return text


def measure(torch, kernels, rounds):
    """Microseconds of each kernel: the median of rounds, which take turns."""
    times = {name: [] for name in kernels}
    for number in range(-1, rounds):
        for name in list(kernels) if number % 2 else reversed(list(kernels)):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            kernels[name].launch()
            end.record()
            torch.cuda.synchronize()
            if number >= 0:
                times[name].append(1e3 * start.elapsed_time(end))
    return {name: statistics.median(t) for name, t in times.items()}


def run_shape(tools, dtype, columns, rounds):
    launch = gather_rows(PROGRAMS, ROWS, columns, 1, TIMES, dtype)._replace(num_warps=num_warps(columns))
    launched = gpu.Launched(tools, launch, columns)
    facts = {}
    for name, way in WAYS.items():
        ptx, metadata, _ = tools["lilac"].compile("gather.ttir", asked(launched.ttir, way), launch.num_warps, 3)
        image, registers, spills, _, _ = assemble(tools["ptxas"], tools["device"], ptx)
        launched.add(name, image, metadata["name"], metadata["shared"])
        facts[name] = {"shared": metadata["shared"], "registers": registers, "spills": spills,
                       "shuffles": ptx.count("shfl.sync.idx")}
    compiled = launched.compiled
    facts["Triton"] = {"shared": launched.add_triton("Triton"), "registers": compiled.n_regs,
                       "spills": compiled.n_spills, "shuffles": compiled.asm["ptx"].count("shfl.sync.idx")}
    row = {"type": dtype, "rows": ROWS, "columns": columns, "num_warps": launch.num_warps,
           "times": TIMES, "wrong": []}
    for name in launched.kernels:
        complaint = launched.verdict(name)[2]
        if complaint:
            row["wrong"].append(f"{name}: {complaint}")
    for name, us in measure(tools["torch"], launched.kernels, rounds).items():
        row[name] = {"us": us, **facts[name]}
    return row


# ---- the report -----------------------------------------------------------------------------


def speedup(row, name):
    return row["rows in order"]["us"] / row[name]["us"]


def table(rows):
    lines = ["| tensor | warps | " + " | ".join(f"{name}, µs" for name in NAMES) + " | shuffles × "
             "| shared memory × | lilac × | Triton × | lilac / Triton |",
             "|---|" + "---:|" * (len(NAMES) + 6)]
    for row in rows:
        cells = [f"{row[name]['us']:.1f}" + (f" ({row[name]['spills']} B spilled)"
                                             if row[name]["spills"] else "") for name in NAMES]
        cells += [f"{speedup(row, name):.2f}" for name in ("shuffles", "shared memory", "lilac", "Triton")]
        cells.append(f"{row['lilac']['us'] / row['Triton']['us']:.3f}")
        lines.append(f"| {row['type']} [{row['rows']}, {row['columns']}] | {row['num_warps']} | "
                     + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(rows, title):
    """Speedups over rows in order: a panel for each type, in it a group of bars for each shape."""
    bars = [("shuffles", "#7a4fa3"), ("shared memory", "#b8a1cf"), ("lilac", "#2f7d5b"),
            ("Triton", "#c98a2b")]
    left, top, height, bar, gap = 96, 54, 120, 24, 18
    group = len(bars) * bar + gap
    types = list(dict.fromkeys(row["type"] for row in rows))
    most = int(max(speedup(row, name) for row in rows for name, _ in bars)) + 1
    width = left + group * len({row["columns"] for row in rows})
    panel = height + 44
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top + panel * len(types)}" '
           'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="#fff"/>',
           f'<text x="12" y="20" font-size="14" font-weight="bold">{title}</text>']
    for i, (name, colour) in enumerate(bars):
        out.append(f'<rect x="{left + 125 * i}" y="30" width="11" height="11" fill="{colour}"/>'
                   f'<text x="{left + 16 + 125 * i}" y="40">{name}</text>')
    for p, dtype in enumerate(types):
        base = top + panel * p + height + 14
        out.append(f'<text x="12" y="{base - height / 2}" font-weight="bold">{dtype}</text>')
        for value in range(0, most + 1, max(1, most // 6)):
            y = base - height * value / most
            colour = "#000" if value == 0 else "#888" if value == 1 else "#ddd"
            out.append(f'<line x1="{left}" x2="{width - 8}" y1="{y:.1f}" y2="{y:.1f}" '
                       f'stroke="{colour}"/><text x="{left - 5}" y="{y + 4:.1f}" '
                       f'text-anchor="end">{value}×</text>')
        for c, row in enumerate(r for r in rows if r["type"] == dtype):
            at = left + gap / 2 + c * group
            for i, (name, colour) in enumerate(bars):
                value = speedup(row, name)
                tall = height * value / most
                out.append(f'<rect x="{at + i * bar:.1f}" y="{base - tall:.1f}" width="{bar - 3}" '
                           f'height="{tall:.1f}" fill="{colour}"/><text x="{at + i * bar + bar / 2 - 1:.1f}" '
                           f'y="{base - tall - 3:.1f}" text-anchor="middle" font-size="9">'
                           f'{value:.2f}</text>')
            out.append(f'<text x="{at + (group - gap) / 2:.1f}" y="{base + 15}" text-anchor="middle">'
                       f'[{row["rows"]}, {row["columns"]}]</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


NOTE = """# Figure 6 of the paper: gathers by warp shuffles against shared memory

Times of a thousand gathers of {programs} tensors between one load and one store, in µs, on one {gpu};
`×` is the speedup over *rows in order*, lilac's gather through memory that holds the tensor row after
row with the block's barriers, which is what the paper measures against (its largest: 14.20 on a GH200,
falling as rows grow). *shared memory* is lilac's through memory laid out for the gather, *shuffles* by
shuffles alone, *lilac* as it chooses by price. Types and shapes: section 6.1, Figure 6.

![speedups](paper_figure6.svg)

"""


def title_of(about):
    return f"Gathers of 512 rows on {about['gpu']}: speedup over shared memory in row order"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    gpu.add_options(parser, rounds=9, nargs="?")
    parser.add_argument("--draw", type=pathlib.Path, help="draw these results again")
    parser.add_argument("--svg", type=pathlib.Path)
    options = parser.parse_args()
    if options.draw:
        result = json.loads(options.draw.read_text())
        rows, about = result["rows"], result["environment"]
    elif options.lilac is None:
        parser.error("give liblilac.so or the lilac command, or --draw")
    else:
        torch, triton, tools = gpu.begin(options)
        rows = [run_shape(tools, dtype, columns, options.rounds) for dtype in TYPES for columns in COLUMNS]
        about = gpu.environment(torch, triton, options, tools["ptxas"])
        about["method"] = "median of rounds, all kernels of a shape in turn; CUDA events; warm caches"
        about.pop("bandwidth_bound", None)
    print(table(rows))
    bad = False
    for row in rows:
        where = f"{row['type']} [{row['rows']}, {row['columns']}]"
        for complaint in row["wrong"]:
            print(f"WRONG {where} {complaint}")
            bad = True
        best = min(row["shuffles"]["us"], row["shared memory"]["us"])
        if row["lilac"]["us"] > 1.03 * best:
            print(f"{where}: lilac chose {row['lilac']['us']:.1f} µs where {best:.1f} is possible")
            bad = True
    report.write_json(options.json, about, rows=rows)
    if options.svg:
        options.svg.write_text(draw(rows, title_of(about)))
    if options.markdown:
        options.markdown.write_text(NOTE.format(programs=PROGRAMS, gpu=about["gpu"]) + table(rows)
                                    + f"\n\n{report.facts(about)}\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
