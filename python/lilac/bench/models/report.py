"""Rows of kernels and of steps as a table, a picture and a summary.

    kernels of a model       Σ launches · time under Triton  /  Σ launches · time under lilac
    a half, all              geometric mean over models
"""

from .. import picture
from ..measure import LEAST_LAUNCHES, geometric_mean
from ..runner import NAMES
from ..table import NONE, number

HALVES = ("development", "held-out")
SHARE = 0.01  # kernels that take less of their model's time are not listed among the slowest
QUICK = 0.002  # kernels that take less of their model's time are measured shortly
SLOW = 0.93   # kernels with a smaller ratio count as slow in the table


def total(rows, name, key="ms"):
    """Milliseconds of the kernels of one step."""
    return sum(row["launches"] * row[name][key] for row in rows)


def measured(rows):
    return [row for row in rows if row.get("ratio")]


def model_rows(models, kernels, steps):
    """One row for each model, from what was measured of it."""
    found = []
    for model in models:
        mine = [row for row in kernels if row["model"] == model.name]
        timed = measured(mine)
        row = {"name": model.name, "family": model.family, "half": model.half, "step": model.step, "dtype": model.dtype,
               "dynamic": model.dynamic, "kernels": len(mine), "launches": sum(one["launches"] for one in mine),
               "failed": len(mine) - len(timed) + sum("failure" in one["lilac"] for one in timed)}
        if timed:
            row.update(times(timed))
        for step in steps:
            if step["model"] == model.name:
                row.setdefault("steps", {})[step["compiler"]] = step
        found.append(row)
    return found


def times(timed):
    """What the row of a model says of the times of its kernels."""
    row = {f"{name}_ms": total(timed, name) for name in NAMES}
    row["ratio"] = row["triton_ms"] / row["lilac_ms"]
    row["own_ratio"] = row["triton_ms"] / sum(one["launches"] * one["triton"]["ms"] / one["own_ratio"] for one in timed)
    large = [one for one in timed if share(one, row) >= SHARE]
    least = min(large, key=lambda one: one["ratio"], default=None)
    row["least"], row["least_name"] = (least["ratio"], least["name"]) if least else (None, None)
    row["slow_share"] = sum(share(one, row) for one in timed if one["ratio"] < SLOW and one.get("timed", 1))
    quick = [one for one in timed if one.get("timed", 1) == 0]
    row["quick"], row["quick_share"] = len(quick), sum(share(one, row) for one in quick)
    return row


def share(kernel, model):
    """The part of the time of the model's generated kernels, under Triton."""
    return kernel["launches"] * kernel["triton"]["ms"] / model["triton_ms"]


def slowest(rows, kernels, count=25):
    """The kernels where lilac loses most time: (milliseconds of a step, kernel)."""
    models = {row["name"]: row for row in rows}
    found = [(one["launches"] * (one["lilac"]["ms"] - one["triton"]["ms"]), one) for one in measured(kernels)
             if share(one, models[one["model"]]) >= SHARE and one["ratio"] < 0.97]
    return sorted(found, key=lambda pair: pair[1]["ratio"])[:count]


def what_differs(kernel, most=6):
    """Registers, and the classes of machine instructions whose numbers differ most."""
    ours, theirs = (kernel[name].get("code") or {} for name in ("lilac", "triton"))
    parts = sorted(((ours.get(k, 0) - theirs.get(k, 0), k) for k in {*ours, *theirs}), key=lambda p: (-abs(p[0]), p[1]))
    registers = " / ".join(number(kernel[name].get("registers"), "{}") for name in ("lilac", "triton"))
    return f"{registers} registers; " + " ".join(f"{n:+d} {k}" for n, k in parts[:most] if n)


def summary(rows):
    found = {}
    for half in (*HALVES, "all"):
        mine = [row for row in rows if half in ("all", row["half"])]
        ratios = [row["ratio"] for row in mine if row.get("ratio")]
        if ratios:
            found[half] = {"models": len(ratios), "ratio": geometric_mean(ratios), "least": min(ratios),
                           "own_ratio": geometric_mean(row["own_ratio"] for row in mine if row.get("ratio")),
                           "kernels": sum(row["kernels"] for row in mine), "failed": sum(row["failed"] for row in mine)}
        for key, title in (("step_ms", "step"), ("replay_ms", "replay"), ("first_s", "first_step")):
            both = {row["name"]: step_ratio(row, key) for row in mine if step_ratio(row, key)}
            if both:
                least = min(both, key=both.get)
                found.setdefault(half, {}).update({f"{title}_ratio": geometric_mean(both.values()), f"{title}_least": both[least],
                                                   f"{title}_least_name": least, f"{title}_models": len(both)})
    return found


def step_cell(row, key, form):
    steps = row.get("steps", {})
    return " / ".join(number(steps.get(name, {}).get(key), form) for name in ("lilac", "triton"))


def step_ratio(row, key):
    """Triton's time over lilac's; of steps, the median of the rounds'."""
    steps = row.get("steps", {})
    in_turn = steps.get("lilac", {}).get(f"{key.removesuffix('_ms')}_ratio")
    if in_turn:
        return in_turn
    both = [steps.get(name, {}).get(key) for name in NAMES]
    return both[0] / both[1] if all(both) else None


def step_rounds(row, what="step"):
    """The least and the largest ratio of a round."""
    lilac, key = row.get("steps", {}).get("lilac", {}), f"{what}_ratio"
    return f"{lilac[key + '_least']:.3f}–{lilac[key + '_most']:.3f}" if key in lilac else NONE


def cut(name, most=48):
    """A name without the prefix that all kernels have."""
    return (name or NONE).removeprefix("triton_")[:most]


COLUMNS = (
    ("model", lambda r: r["name"]),
    ("half", lambda r: r["half"]),
    ("step", lambda r: f"{r['step']} {r['dtype']}" + (" dynamic" if r["dynamic"] else "")),
    ("kernels", lambda r: str(r["kernels"])),
    ("failed", lambda r: str(r["failed"])),
    ("lilac / Triton ms", lambda r: " / ".join(number(r.get(f"{n}_ms"), "{:.3f}") for n in ("lilac", "triton"))),
    ("ratio", lambda r: number(r.get("ratio"))),
    ("own options", lambda r: number(r.get("own_ratio"))),
    ("least", lambda r: number(r.get("least"))),
    ("kernel with the least ratio", lambda r: cut(r.get("least_name"))),
    (f"under {SLOW}", lambda r: number(r.get("slow_share"), "{:.1%}")),
)
STEP_COLUMNS = (
    ("model", lambda r: r["name"]),
    ("half", lambda r: r["half"]),
    ("step ms", lambda r: step_cell(r, "step_ms", "{:.2f}")),
    ("ratio", lambda r: number(step_ratio(r, "step_ms"))),
    ("rounds", step_rounds),
    ("on the GPU ms", lambda r: step_cell(r, "replay_ms", "{:.2f}")),
    ("ratio", lambda r: number(step_ratio(r, "replay_ms"))),
    ("rounds", lambda r: step_rounds(r, "replay")),
    ("first step s", lambda r: step_cell(r, "first_s", "{:.1f}")),
    ("ratio", lambda r: number(step_ratio(r, "first_s"))),
    ("error", lambda r: step_cell(r, "error", "{:.1g}")),
)


def table(columns, rows):
    lines = [[title for title, _ in columns], *([cell(row) for _, cell in columns] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    text = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in lines]
    return "\n".join([text[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *text[1:]])


def failures(kernels, steps):
    """A line for each failure."""
    lines = [f"{one['model']} {one['name']} under {name}: {one[name]['failure']}"
             for one in kernels for name in NAMES if "failure" in one[name]]
    return lines + [f"{one['model']}, the step under {one['compiler']}: {one['failure']}" for one in steps if "failure" in one]


def line(rows):
    """A line for the rows of one model."""
    timed = measured(rows)
    found = times(timed) if timed else {}
    return (f"ratio {number(found.get('ratio'))}, own options {number(found.get('own_ratio'))}, "
            f"least {number(found.get('least'))}, {len(rows)} kernel{'s' * (len(rows) != 1)}, "
            f"{len(rows) - len(timed) + sum('failure' in one['lilac'] for one in timed)} failed")


def quick_line(rows):
    """What the short measurement is used for, and how much of the time that is."""
    mine = [row for row in rows if row.get("quick")]
    if not mine:
        return []
    mean = sum(row["quick_share"] for row in mine) / sum(1 for row in rows if row.get("ratio"))
    count, every = (sum(row[key] for row in rows if row.get("ratio")) for key in ("quick", "kernels"))
    return [f"Kernels that take less than {QUICK:.1%} of their model's time, whose times are medians of "
            f"{LEAST_LAUNCHES} launches: {count} of {every}, together {mean:.2%} of a model's time in the mean, "
            f"{max(row['quick_share'] for row in mine):.2%} at most.  "]


def explained(kernel):
    """A line for a result that rounding explains."""
    found = kernel["rounding"]
    return (f"- {kernel['model']} {kernel['name']}: differs by {found['difference']:.2g}; changes by {found['change']:.2g}"
            f" when its arguments change by a unit in the last place ({found['excess']:.2g} of what is allowed)")


def text(models, kernels, steps, missing):
    """The report for a terminal; it is Markdown too."""
    rows = model_rows(models, kernels, steps)
    out = [table(COLUMNS, rows), ""]
    if any(row.get("steps") for row in rows):
        out += [table(STEP_COLUMNS, [row for row in rows if row.get("steps")]), ""]
    for half, one in summary(rows).items():
        if "ratio" in one:
            out.append(f"{half}: Triton's time over lilac's {one['ratio']:.3f} in the geometric mean of {one['models']} model"
                       f"{'s' * (one['models'] != 1)} (least {one['least']:.3f}; each compiler's own options {one['own_ratio']:.3f}),"
                       f" {one['kernels']} kernels, {one['failed']} failed  ")
        for title, name in (("step", "whole steps"), ("replay", "whole steps without the host's time"),
                            ("first_step", "first steps from empty caches")):
            if f"{title}_ratio" in one:
                out.append(f"{half}: {name} {one[f'{title}_ratio']:.3f} in the geometric mean of {one[f'{title}_models']} model"
                           f"{'s' * (one[f'{title}_models'] != 1)} (least {one[f'{title}_least']:.3f}, {one[f'{title}_least_name']})  ")
    out += quick_line(rows)
    lost = slowest(rows, kernels)
    if lost:
        columns = (("kernel", lambda p: f"{p[1]['model']} {p[1]['name']}"), ("ratio", lambda p: f"{p[1]['ratio']:.3f}"),
                   ("lost µs a step", lambda p: f"{1e3 * p[0]:.1f}"), ("lilac less Triton", lambda p: what_differs(p[1])))
        out += ["", "Slowest kernels:", "", table(columns, lost)]
    excused = [one for one in kernels if "rounding" in one and "failure" not in one["lilac"]]
    if excused:
        out += ["", "Results beyond the tolerance that rounding explains:", "", *map(explained, excused)]
    failed = failures(kernels, steps) + [f"{name}: not run, {why}" for name, why in missing.items()]
    if failed:
        out += ["", "Failures:", "", *(f"- {line}" for line in failed)]
    return "\n".join(out) + "\n"


def svg(models, kernels, steps, about):
    rows = [{"family": row["name"], "ratio": one["ratio"]} for row in model_rows(models, kernels, steps)
            for one in measured(kernels) if one["model"] == row["name"] and one.get("timed", 1)]
    return picture.svg(rows, f"torch.compile's kernels: lilac beside Triton {about['triton']} on {about['gpu']}",
                       "for each model the kernels of one step; time of Triton's kernel over time of lilac's, both in one run")


__all__ = ["HALVES", "NONE", "failures", "line", "model_rows", "slowest", "summary", "svg", "table", "text"]
