"""Rows as a table in Markdown, and a summary of a run in a few lines."""

import statistics

from .measure import geometric_mean

NONE = "–"


def number(value, form="{:.3f}"):
    return NONE if value is None else form.format(value)


def pair(row, form, *keys):
    """lilac's / Triton's."""
    return " / ".join(number(dig(row[name], *keys), form) for name in ("lilac", "triton"))


def dig(value, *keys):
    for key in keys:
        if value is None:
            return None
        value = value.get(key)
    return value


def resource(part, key):
    """Of the kernels of a case, the largest number."""
    found = [k[key] for k in part.get("kernels") or [] if k.get(key) is not None]
    return max(found) if found else None


def resources(row, key):
    return " / ".join(number(resource(row[name], key), "{}") for name in ("lilac", "triton"))


def ratio_cell(row):
    cell = number(row.get("ratio"))
    return cell + "*" if any(row[n].get("host_bound") for n in ("lilac", "triton")) else cell


def rate_cell(row):
    """10¹² operations a second, for operations of matrix units."""
    if not row.get("unit"):
        return NONE
    rates = [row["operations"] / row[n]["ms"] / 1e9 if row[n].get("ms") else None for n in ("lilac", "triton")]
    return " / ".join(number(rate, "{:.0f}" if (rate or 0) >= 100 else "{:.1f}") for rate in rates)


def bound_cell(row):
    bound = row.get("bound")
    return NONE if not bound or not bound["ms"] else f"{1e3 * bound['ms']:.2f} {bound['roof']}"


def rounds_cell(row):
    return NONE if row.get("ratio") is None else f"{row['ratio_least']:.3f}–{row['ratio_most']:.3f}"


def library_cell(row):
    """Each library's time over lilac's, and its name."""
    return ", ".join(f"{one['ratio']:.3f}{'*' if one.get('host_bound') else ''} {one['name']}" if one.get("ratio")
                     else f"not {one['name']}" for one in row.get("libraries", ())) or NONE


def library_ratios(rows):
    """{library: its time over lilac's in each case}"""
    found = {}
    for row in rows:
        for one in row.get("libraries", ()):
            if one.get("ratio"):
                found.setdefault(one["name"], []).append(one["ratio"])
    return found


COLUMNS = (
    # title, cell, needs a GPU
    ("case", lambda r: r["name"], False),
    ("lilac / Triton µs", lambda r: " / ".join(
        number(None if r[n].get("ms") is None else 1e3 * r[n]["ms"], "{:.2f}") for n in ("lilac", "triton")),
     True),
    ("ratio", ratio_cell, True),
    ("rounds", rounds_cell, True),
    ("libraries", library_cell, True),
    ("TFLOP/s", rate_cell, True),
    ("bound µs", bound_cell, True),
    ("of bound", lambda r: number(r["lilac"].get("share"), "{:.0%}"), True),
    ("TTIR→PTX ms", lambda r: pair(r, "{:.2f}", "compile", "lower_ms"), False),
    ("ratio", lambda r: number(r.get("lower_ratio"), "{:.0f}"), False),
    ("PTX→cubin ms", lambda r: pair(r, "{:.0f}", "compile", "assemble_ms"), False),
    ("first call ms", lambda r: pair(r, "{:.0f}", "compile", "total_ms"), False),
    ("ratio", lambda r: number(r.get("first_ratio"), "{:.2f}"), False),
    ("regs", lambda r: resources(r, "registers"), False),
    ("spills", lambda r: resources(r, "spills"), False),
    ("shared", lambda r: resources(r, "shared"), False),
    ("error", lambda r: number(r["lilac"].get("error"), "{:.2f}"), True),
)


def table(rows, gpu=True):
    """The table. A failed case has its failure in place of the ratio, and below the table."""
    columns = [c for c in COLUMNS if (gpu or not c[2])
               and (c[1] is not library_cell or any(row.get("libraries") for row in rows))]
    lines = [[title for title, _, _ in columns]]
    for row in rows:
        lines.append([cell(row) for _, cell, _ in columns])
        if failures([row]):
            lines[-1][2 if gpu else 1] = "failed"
    widths = [max(len(line[k]) for line in lines) for k in range(len(columns))]

    def put(cells):
        return "| " + " | ".join(c.ljust(w) if k == 0 else c.rjust(w)
                                 for k, (c, w) in enumerate(zip(cells, widths))) + " |"

    rule = "|" + "|".join("-" * (w + 2) if k == 0 else "-" * (w + 1) + ":"
                          for k, w in enumerate(widths)) + "|"
    return "\n".join([put(lines[0]), rule] + [put(line) for line in lines[1:]])


def failures(rows):
    """(case, compiler, reason) of everything that failed."""
    return [(row["name"], name, row[name]["failure"]) for row in rows for name in ("lilac", "triton")
            if "failure" in row[name]]


def summary(rows):
    """What the run comes to, as data."""
    def of(key):
        return [row[key] for row in rows if row.get(key)]

    ratios = of("ratio")
    overall = {"cases": len(rows), "failed": len({name for name, _, _ in failures(rows)}),
               "measured": len(ratios), "ratio": geometric_mean(ratios),
               "ratio_least": min(ratios, default=None), "ratio_most": max(ratios, default=None),
               "lower_ratio": geometric_mean(of("lower_ratio")),
               "first_ratio": geometric_mean(of("first_ratio")),
               "first_ratio_with_stub": geometric_mean(of("first_ratio_with_stub")),
               "libraries": {name: {"ratio": geometric_mean(r), "least": min(r), "most": max(r), "measured": len(r)}
                             for name, r in library_ratios(rows).items()},
               "host_bound": sum(any(row[n].get("host_bound") for n in ("lilac", "triton"))
                                 for row in rows)}
    plugin = [lilac["lower_ms"] - lilac["library_ms"] for lilac in (row["lilac"].get("compile") for row in rows)
              if lilac and lilac["library_ms"]]
    if plugin:
        overall.update(plugin_ms=statistics.median(plugin), plugin_ms_most=max(plugin))
    for name in ("lilac", "triton"):
        for key in ("front_ms", "lower_ms", "assemble_ms", "load_ms", "total_ms", "stub_ms"):
            overall[f"{name}_{key}"] = geometric_mean(
                v for v in (dig(row[name], "compile", key) for row in rows) if v)
    return overall


def families(rows):
    """(family, cases, mean, least, most) of what was measured, in the order of the rows."""
    groups = {}
    for row in rows:
        if row.get("ratio"):
            groups.setdefault(row["family"], []).append(row["ratio"])
    return [(name, len(r), geometric_mean(r), min(r), max(r)) for name, r in groups.items()]


def summary_text(rows, slow=0.97):
    """The summary in words, one line each."""
    total = summary(rows)
    lines = [f"cases: {total['cases']}, failed: {total['failed']}"]
    if total["measured"]:
        lines.append(f"time: Triton's over lilac's {total['ratio']:.3f} in the geometric mean of "
                     f"{total['measured']} ({total['ratio_least']:.3f} to {total['ratio_most']:.3f})")
        below = sorted((r["ratio"], r["name"]) for r in rows if r.get("ratio") and r["ratio"] < slow)
        lines.append(f"under {slow}: " + (", ".join(f"{n} {v:.3f}" for v, n in below) or "none"))
    for name, one in total["libraries"].items():
        lines.append(f"{name}'s time over lilac's {one['ratio']:.3f} in the geometric mean of {one['measured']} "
                     f"({one['least']:.3f} to {one['most']:.3f})")
    if total["host_bound"]:
        lines.append(f"* {total['host_bound']} cases are bound by the host: their times say little")
    for key, words in (("lower_ratio", "TTIR→PTX: Triton's time over lilac's"),
                       ("first_ratio", "first call to first result: Triton's time over lilac's"),
                       ("first_ratio_with_stub", "the same with compiling the launcher's stub")):
        if total[key] and (key != "first_ratio_with_stub" or total["triton_stub_ms"]):
            lines.append(f"{words} {total[key]:.2f}")
    for name, title in (("triton", "Triton"), ("lilac", "lilac")):
        if total[f"{name}_total_ms"]:
            parts = ((key, word) for key, word in (
                ("front_ms", "front end"), ("lower_ms", "TTIR→PTX"), ("assemble_ms", "PTX→cubin"),
                ("load_ms", "loading"), ("total_ms", "in all"), ("stub_ms", "stub, once a signature"))
                if total[f"{name}_{key}"])
            lines.append(f"{title}, ms in the geometric mean: " + ", ".join(
                f"{word} {total[f'{name}_{key}']:.2f}" for key, word in parts))
    if total.get("plugin_ms"):
        lines.append(f"of lilac's TTIR→PTX, all but the library (the plug-in, Triton's cache files): "
                     f"{total['plugin_ms']:.2f} ms in the median, {total['plugin_ms_most']:.2f} at most")
    lines += [f"FAILED {case} under {name}: {why}" for case, name, why in failures(rows)]
    return "\n".join(lines)


def markdown(rows, environment, gpu=True):
    """The file that --markdown writes."""
    title = f"lilac beside Triton on {environment.get('gpu') or 'no GPU: compile times'}"
    parts = [f"# {title}", summary_text(rows).replace("\n", "  \n")]
    if gpu and families(rows):
        parts.append("\n".join(["| family | cases | ratio | least | most |", "|---|---:|---:|---:|---:|"] + [
            f"| {name} | {count} | {mean:.3f} | {least:.3f} | {most:.3f} |"
            for name, count, mean, least, most in families(rows)]))
    parts += [table(rows, gpu), "Pairs are lilac's / Triton's; ratios are Triton's time over lilac's. What "
              "each column means: `docs/benchmarks.md`.",
              "\n".join(f"- {key}: {value}" for key, value in environment.items())]
    return "\n\n".join(parts) + "\n"
