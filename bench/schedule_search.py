"""How far the schedules that lilac chooses are from the best that a search finds, by predicted time.

    python bench/schedule_search.py --lilac build/tools/lilac/lilac --json bench/results/h200_schedule_search.json \\
        --markdown bench/results/h200_schedule_search.md [--contents contents.npz] [--jobs 2]

Each of lilac.bench's cases with products is compiled with every schedule that its loops can have
(lilac explain --search-schedules), with the tensor maps of the launcher where it makes them, and the time of its launch
is predicted for each. No GPU is needed. `--contents` is the file of bench/predicted_times.py. The least predicted time
is the best of the model, which need not be the fastest on a GPU: h200_schedule_times.json has measured times of some.

On a machine with a GPU,

    python3 bench/schedule_search.py --measure FARTHEST.json --json bench/results/h200_schedule_times.json

times the schedules of FARTHEST.json, which `--farthest` writes: of each of the cases with the largest distance, the chosen
one and the three that are predicted fastest. It needs the package lilac, Triton and PyTorch.
"""

import argparse
import contextlib
import json
import math
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

CASES = 10  # that are measured
FASTEST = 3  # schedules of a case that are kept


# ---- the search ------------------------------------------------------------------------------


def launches(contents, part):
    """[(name, text, options, grid, integers, {parameter: array}, whether it has maps)] of the cases with products."""
    import lilac
    import lilac.triton
    from lilac.bench.discover import discover

    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from predicted_times import integer_buffers, integers

    for case in discover(["lilac.bench.operators.products"]):
        if part not in case.name:
            continue
        with lilac.triton.enabled():
            kernel = case.launch.compile()
        text = kernel.asm["ttir"]
        plain = lilac.compile(text, **case.launch.options)
        parameters = {one["name"] for one in plain.metadata["parameters"]}
        values = {name: value for name, value in integers(case.launch).items() if name in parameters}
        arrays = {name: contents[key] for key, name, _, _ in integer_buffers(case) if key in contents}
        maps = bool(kernel.metadata.lilac.get("mapped"))
        yield case.name, text, case.launch.options, case.launch.grid, values, arrays, maps


def words_of(options, grid, values, maps):
    words = ["--target", "sm_90a", "--grid", ",".join(str(size) for size in grid)]
    for name in ("num_warps", "num_stages", "num_ctas"):
        if options.get(name):
            words += ["--" + name.replace("_", "-"), str(options[name])]
    for name, value in values.items():
        words += ["--arg", f"{name}={value}"]
    return words + (["--launch-maps"] if maps else [])


def search(lilac, launch):
    """The row of a case; None: its loops have no schedule."""
    name, text, options, grid, values, arrays, maps = launch
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.ttir")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        words = words_of(options, grid, values, maps)
        for parameter, array in arrays.items():
            import numpy

            numpy.save(os.path.join(folder, parameter + ".npy"), array)
            words += ["--arg", f"{parameter}=@{folder}/{parameter}.npy"]
        done = subprocess.run([lilac, "explain", path, "--search-schedules", "--json", *words], capture_output=True,
                              text=True)
    if done.returncode != 0:
        print(f"{name}: {done.stderr.strip().splitlines()[-1] if done.stderr else done.returncode}", file=sys.stderr)
        return None
    found = json.loads(done.stdout)
    chosen = next(one for one in found["schedules"] if one["chosen"])
    return {"name": name, "schedules": len(found["schedules"]), "exhaustive": found["exhaustive"], "maps": maps,
            "chosen_us": 1e6 * found["chosen_seconds"], "best_us": 1e6 * found["best_seconds"],
            "distance": found["chosen_seconds"] / found["best_seconds"] - 1, "chosen": chosen["requests"],
            "best": [{"us": 1e6 * one["seconds"], "schedule": one["requests"]} for one in found["schedules"][:FASTEST]]}


# ---- measurements -----------------------------------------------------------------------------

LOOP, END = re.compile(r"^(\s*)(?:%\S+ = )?scf\.for "), re.compile(r"^(\s*)\}(?: \{(.*)\})?( loc\(.*\))?$")


def ask(text, requests):
    """The text with requests as attributes of its innermost loops with products."""
    lines = text.split("\n")
    loops = []
    for begin, line in enumerate(lines):
        indent = LOOP.match(line)
        if indent:
            end = next(at for at in range(begin + 1, len(lines))
                       if END.match(lines[at]) and END.match(lines[at])[1] == indent[1])
            body = lines[begin + 1:end]
            if any("tt.dot" in one for one in body) and not any(LOOP.match(one) for one in body):
                loops.append(end)
    if not loops:
        raise ValueError("the text has no loop with products")
    for request in requests:
        first, colon, rest = request.partition(":")
        for number, end in enumerate(loops, 1):
            if not colon or int(first) == number:
                indent, attributes, location = END.match(lines[end]).groups()
                asked = f'lilac.asked_schedule = "{rest if colon else request}"'
                lines[end] = f"{indent}}} {{{asked}{', ' + attributes if attributes else ''}}}{location or ''}"
    return "\n".join(lines)


@contextlib.contextmanager
def scheduled(requests, maps):
    """Under it, lilac's kernels have these schedules: those with tensor maps of the launcher, or those without. Other
    schedules have other keys in Triton's cache."""
    import lilac.triton
    from lilac.triton import backend, switch

    compile, build_key = backend.compile, switch.build_key

    def with_schedule(text, **words):
        if bool(words.get("launch_maps")) != maps:
            return compile(text, **words)
        kernel = compile(ask(text, requests), **{**words, "tile": True})
        records = re.findall(r'lilac\.schedule = "([^"]*)"', kernel.tile)
        wanted = {pair for one in requests for pair in one.rpartition(":")[2].split(",")}
        if not wanted <= {pair for record in records for pair in record.split(",")}:
            raise RuntimeError(f"{requests} was asked for, and the kernel has {records}")
        return kernel

    backend.compile, switch.build_key = with_schedule, lambda: f"{build_key()}-{maps}-{'-'.join(requests)}"
    try:
        with lilac.triton.enabled():
            yield
    finally:
        backend.compile, switch.build_key = compile, build_key


def compiled(job):
    """In a process of its own: whether the kernel of a case with these schedules is in the cache now."""
    from lilac.bench.discover import discover
    from triton.backends.compiler import GPUTarget

    name, requests, maps = job
    case = next(case for case in discover(["lilac.bench.operators.products"]) if case.name == name)
    with scheduled(requests, maps):
        kernel = case.launch.compile(GPUTarget("cuda", 90, 32))
    mapped = kernel.metadata.lilac.get("maps_refused")
    return mapped if maps and not kernel.metadata.lilac.get("mapped") else None


def measure(cases, rounds, processes):
    """The times of each schedule of each case, in milliseconds: schedules take turns."""
    import torch
    from lilac.bench.discover import discover
    from lilac.bench.measure import Stopwatch, launches_in

    jobs = [(case["name"], requests, case["maps"]) for case in cases for requests in case["schedules"]]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        for job, failure in zip(jobs, pool.map(compiled, jobs)):
            if failure:
                print(job, failure, file=sys.stderr)
    watch, known = Stopwatch(torch), {case.name: case for case in discover(["lilac.bench.operators.products"])}
    rows = []
    for row in cases:
        case, times, errors = known[row["name"]], [[] for _ in row["schedules"]], []
        case.make(seed=1)
        for turn in range(rounds + 1):
            for index in range(len(times))[:: 1 if turn % 2 else -1]:
                with scheduled(row["schedules"][index], row["maps"]):
                    if turn == 0:
                        errors.insert(0, case.check())
                        continue
                    case.launch()
                    once = max(statistics.median(watch.time(case.launch, 10)), 1e-3)
                    count = launches_in(60, 1, 1, once + watch.flush_ms)
                    times[index].append(statistics.median(watch.time(case.launch, count)))
        case.free()
        rows.append({**row, "errors": [float(error) for error in errors], "ms": times})
        print(row["name"], errors, [statistics.median(one) for one in times], flush=True)
    return rows


def farthest(rows):
    """Of the cases with the largest distance: the chosen schedule, and those that are predicted fastest."""
    chosen = []
    for row in sorted(rows, key=lambda row: -row["distance"])[:CASES]:
        others = [one for one in row["best"] if one["schedule"] != row["chosen"]]
        chosen.append({"name": row["name"], "maps": row["maps"],
                       "predicted_us": [row["chosen_us"], *(one["us"] for one in others)],
                       "schedules": [row["chosen"], *(one["schedule"] for one in others)]})
    return chosen


# ---- the report --------------------------------------------------------------------------------


def mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values)) if values else 1


def measured(cases):
    """The measured times of the schedules of some cases, as lines of a table."""
    medians = [[statistics.median(times) for times in case["ms"]] for case in cases]
    faster, best = [row[0] / min(row) for row in medians], [row[1] / row[0] for row in medians]
    lines = ["", "## Measured", "",
             "Medians of the rounds on an H200, in microseconds; the first schedule of a case is the chosen one, the second "
             "the one that is predicted fastest (bench/schedule_search.py --measure; CUDA 13.0, PyTorch 2.11, Triton 3.6). "
             f"Of {len(cases)} cases, the fastest schedule that was measured is more than 3 % "
             f"faster than the chosen one in {sum(one > 1.03 for one in faster)}; the one that is predicted fastest is so in "
             f"{sum(one < 0.97 for one in best)}, and more than 3 % slower in {sum(one > 1.03 for one in best)}.", "",
             "| case | predicted | measured | over the chosen one | schedule |", "|---|---|---|---|---|"]
    for case in cases:
        first = statistics.median(case["ms"][0])
        for schedule, predicted, times in zip(case["schedules"], case["predicted_us"], case["ms"]):
            median = statistics.median(times)
            lines.append(f"| {case['name']} | {predicted:.1f} | {1e3 * median:.1f} | {median / first:.3f} "
                         f"| {'; '.join(schedule)} |")
    return "\n".join(lines) + "\n"


def table(rows):
    ratios = [1 + row["distance"] for row in rows]
    lines = ["# Chosen schedules and the best ones of a search", "", __doc__.strip().split("\n\n")[2].replace("\n", " "),
             "", "| | cases |", "|---|---|", f"| all | {len(rows)} |",
             f"| all schedules tried | {sum(row['exhaustive'] for row in rows)} |"]
    for limit in (0.001, 0.01, 0.02, 0.05, 0.1):
        lines.append(f"| chosen within {100 * limit:g} % of the best | {sum(row['distance'] <= limit for row in rows)} |")
    lines += ["", f"Geometric mean of the chosen one over the best: {mean(ratios):.4f}; the largest: {max(ratios):.3f}. "
              f"Schedules in all: {sum(row['schedules'] for row in rows)}.", "",
              "| case | schedules | chosen, µs | best, µs | ratio | chosen schedule | best schedule |",
              "|---|---|---|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: -row["distance"]):
        if row["distance"] > 0.001:
            lines.append(f"| {row['name']} | {row['schedules']} | {row['chosen_us']:.1f} | {row['best_us']:.1f} "
                         f"| {1 + row['distance']:.3f} | {'; '.join(row['chosen'])} "
                         f"| {'; '.join(row['best'][0]['schedule'])} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lilac", default="lilac", help="the command")
    parser.add_argument("--json", help="write the rows")
    parser.add_argument("--markdown", help="write the table")
    parser.add_argument("--contents", help="the contents of integer buffers")
    parser.add_argument("--filter", default="", help="only cases whose name contains this")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rows", help="take the rows of this file, which --json has written, instead of a search")
    parser.add_argument("--times", nargs="*", default=[], help="files of --measure, for the table")
    parser.add_argument("--farthest", help="write the schedules that --measure times")
    parser.add_argument("--measure", help="time the schedules of this file")
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    if options.measure:
        with open(options.measure, encoding="utf-8") as file:
            rows = measure(json.load(file), options.rounds, options.jobs)
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
        return
    contents = {}
    if options.contents:
        import numpy

        with numpy.load(options.contents) as file:
            contents = {key: file[key] for key in file.files}
    if options.rows:
        with open(options.rows, encoding="utf-8") as file:
            rows = json.load(file)
    else:
        with ThreadPoolExecutor(options.jobs) as pool:
            found = pool.map(lambda launch: search(options.lilac, launch), launches(contents, options.filter))
            rows = [row for row in found if row]
    cases = []
    for name in options.times:
        with open(name, encoding="utf-8") as file:
            cases += json.load(file)
    if options.farthest:
        with open(options.farthest, "w", encoding="utf-8") as file:
            json.dump(farthest(rows), file, indent=1)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as file:
            file.write(table(rows) + (measured(cases) if cases else ""))
    print(table(rows).split("\n\n| case")[0])


if __name__ == "__main__":
    main()
