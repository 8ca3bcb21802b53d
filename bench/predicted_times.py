"""Predicted times of lilac.bench's cases beside the measured ones.

    python bench/predicted_times.py --json bench/results/h200_predicted_times.json --markdown bench/results/h200_predicted_times.md

Each case is compiled as on an H200 (no GPU is needed), explained with its launch and the registers that ptxas reports
(of a kernel that was measured, those of then), and the predicted time is compared with the measured one. The launch includes
the contents of small integer buffers (lengths, offsets, tables of pages), on which trip counts depend. The constants of the
model (src/explain/cost/predict.c) were fitted on a random half of the cases by bench/fit_predicted_times.py, which also does so
with the other half and with all (h200_predicted_times_fit.md).

Kernels are those that are launched: with tensor maps of the launcher where it makes them. An earlier run of the cases with
products was one of kernels without: `--products h200_products_without_maps.json` compares with that.

The contents of the buffers are made by PyTorch, which on another device makes other numbers of the same distributions:

    python bench/predicted_times.py --write-contents contents.npz [--device cpu]
    python bench/predicted_times.py --contents contents.npz …
"""

import argparse
import json
import os
import sys

from fit_predicted_times import half_of

import lilac
import lilac.triton
from lilac.bench.case import Buffer, Constant
from lilac.bench.discover import discover

RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")
LARGEST = 1 << 17  # elements of a buffer whose contents are given
OPERATORS, PRODUCTS = "h200_operators_run_times.json", "h200_products.json"


def measured(products=PRODUCTS):
    """The measured rows by name, those of cases that still exist."""
    rows = {}
    for name in (OPERATORS, products):
        with open(os.path.join(RESULTS, name), encoding="utf-8") as file:
            for row in json.load(file)["cases"]:
                if row.get("lilac", {}).get("ms") and len(row["lilac"]["kernels"]) == 1:
                    rows[row["name"]] = row
    return rows


def integers(launch):
    """The integers of the launch by the names of the kernel's parameters."""
    values, more = {}, 0
    for name, argument in launch.arguments.items():
        if isinstance(argument, Buffer) and argument.block:
            for number in (*argument.shape, *strides(argument.shape)):
                values[f"{name}_{more}"] = number
                more += 1
        elif isinstance(argument, int) and not isinstance(argument, (bool, Constant)):
            values[name] = argument
    return values


def strides(shape):
    result = [1]
    for size in reversed(shape[1:]):
        result.insert(0, result[0] * size)
    return result


def integer_buffers(case):
    """[(key, name, number, buffer)] of the small integer buffers that the kernel reads."""
    return [(f"{case.name}/{name}", name, number, buffer) for number, (name, buffer) in enumerate(case.launch.buffers.items())
            if buffer.dtype in ("i32", "i64") and buffer.read and not buffer.output and buffer.elements <= LARGEST]


def write_contents(path, device):
    import numpy
    import torch
    from lilac.bench.case import Tensor

    arrays = {}
    for case in discover([]):
        for key, _, number, buffer in integer_buffers(case):
            generator = torch.Generator(device=device)
            generator.manual_seed(number)
            tensor = Tensor(torch, buffer, device)
            tensor.fill(generator)
            arrays[key] = tensor.passed().cpu().numpy()
    numpy.savez_compressed(path, **arrays)


def explained(case, row, contents):
    with lilac.triton.enabled():
        kernel = case.launch.compile()
    text, measured = kernel.asm["ttir"], row["lilac"]["kernels"][0]
    mapped = kernel.metadata.lilac.get("mapped") if measured.get("launch_maps") else None
    plain = lilac.compile(text, **case.launch.options)
    parameters = {one["name"] for one in plain.metadata["parameters"]}
    arguments = {name: value for name, value in integers(case.launch).items() if name in parameters}
    arguments.update({name: contents[key] for key, name, _, _ in integer_buffers(case) if key in contents})

    def explain(maps, registers):
        return lilac.explain(text, grid=case.launch.grid, arguments=arguments, registers=registers, launch_maps=maps,
                             **case.launch.options).json

    facts = explain(True, mapped["registers"]) if mapped else None
    # The registers of the record are those of the plain kernel, which some launches start.
    return facts if facts and facts["launch_maps"] else explain(False, measured["registers"])


def bound(budget):
    """The longest of memory, L2 and multiprocessors; of the last, the unit that is busiest."""
    time = budget["time"]
    longest = max(("memory", "L2", "multiprocessors"), key=time.get)
    units = {one["name"]: one["clocks"] for one in budget["roofs"] if one["name"] not in ("memory", "L2")}
    return longest if longest != "multiprocessors" else max(units, key=units.get)


def within(rows, limit=0.15):
    return sum(abs(row["predicted_ms"] / row["ms"] - 1) <= limit for row in rows)


def table(rows, products=PRODUCTS):
    lines = ["# Predicted times", "", __doc__.strip().split("\n\n")[2].replace("\n", " "), "",
             f"Measured times: `{OPERATORS}`, `{products}`.", "",
             "| half | cases | within 15 % | within 30 % |", "|---|---|---|---|"]
    halves = {"fitted": [row for row in rows if row["half"] == 0], "held out": [row for row in rows if row["half"] == 1]}
    for name, part in (*halves.items(), ("both", rows)):
        lines.append(f"| {name} | {len(part)} | {within(part)} | {within(part, 0.3)} |")
    lines += ["", "| case | half | bound | measured, µs | predicted, µs | ratio |", "|---|---|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row['name']} | {list(halves)[row['half']]} | {row['bound']} | {1e3 * row['ms']:.1f} "
                     f"| {1e3 * row['predicted_ms']:.1f} | {row['predicted_ms'] / row['ms']:.2f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="write the rows")
    parser.add_argument("--markdown", help="write the table")
    parser.add_argument("--budgets", help="write the budgets of all cases, for fitting")
    parser.add_argument("--contents", help="the contents of integer buffers; without it, trip counts that depend on them "
                                           "are assumed")
    parser.add_argument("--write-contents", help="write that file, and nothing else")
    parser.add_argument("--device", default="cuda", help="PyTorch's device for --write-contents")
    parser.add_argument("--products", default=PRODUCTS,
                        help=f"the run of the cases with products, in bench/results (default: {PRODUCTS})")
    parser.add_argument("--filter", default="", help="only cases whose name contains this")
    options = parser.parse_args()
    if options.write_contents:
        return write_contents(options.write_contents, options.device)
    contents = {}
    if options.contents:
        import numpy

        with numpy.load(options.contents) as file:
            contents = {key: file[key] for key in file.files}
    rows, budgets = [], []
    known = measured(options.products)
    for case in discover([]):
        row = known.get(case.name)
        if row is None or options.filter not in case.name:
            continue
        try:
            facts = explained(case, row, contents)
        except lilac.Error as problem:
            print(f"{case.name}: {problem}", file=sys.stderr)
            continue
        budget = facts["budget"]
        rows.append({"name": case.name, "half": half_of(case.name), "ms": row["lilac"]["ms"], "bound": bound(budget),
                     "predicted_ms": 1e3 * (budget["seconds"] or 0)})
        budgets.append({**rows[-1], "family": case.family, "least_bytes": row["bytes"], "budget": budget,
                        "num_warps": facts["num_warps"], "num_ctas": facts["num_ctas"],
                        "launch_maps": facts["launch_maps"], "loops": facts["loops"],
                        "segments": facts["segments"]})
    for name, data in ((options.json, rows), (options.budgets, budgets)):
        if name:
            with open(name, "w", encoding="utf-8") as file:
                json.dump(data, file, indent=1)
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as file:
            file.write(table(rows, options.products))
    print(table(rows).split("\n\n| case")[0])


if __name__ == "__main__":
    main()
