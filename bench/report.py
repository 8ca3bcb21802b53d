"""The machine, versions and command in the reports of the programs of bench/."""

import csv
import datetime
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def add_options(parser):
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--commit", help="recorded; default: git's")
    parser.add_argument("--ptxas")


def first_line(command):
    """The last line that it prints, or None."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=20)
        return run.stdout.strip().splitlines()[-1] if run.stdout.strip() else None
    except (OSError, subprocess.SubprocessError):
        return None


def environment(options, gpu, ptxas, **versions):
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": " ".join(["python3", "bench/" + pathlib.Path(sys.argv[0]).name]
                            + [pathlib.Path(a).name for a in sys.argv[1:]]),
        "commit": options.commit or first_line(["git", "-C", str(HERE), "rev-parse", "HEAD"]),
        "gpu": gpu,
        "driver": first_line(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
        if gpu else None,
        **versions,
        "ptxas": first_line([ptxas, "--version"]) if ptxas else None,
    }


def facts(about):
    return "\n".join(f"- {key}: {value}" for key, value in about.items())


def write_json(path, about, **parts):
    """Writes the file if a path is given."""
    if path:
        path.write_text(json.dumps({"environment": about, **parts}, indent=1, default=str) + "\n")


def read_counters(path):
    """The CSV output of ncu: a list of dicts, counter -> value, in the order of the launches."""
    lines = path.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    launches = {}
    for row in csv.DictReader(lines[start:]):
        launches.setdefault(int(row["ID"]), {})[row["Metric Name"]] = float(
            row["Metric Value"].replace(",", ""))
    return [launches[number] for number in sorted(launches)]


def table(lines, words=(0,)):
    """Markdown of lines of cells, the titles first; columns of words to the left, others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines)]

    def put(cells):
        return "| " + " | ".join(c.ljust(w) if k in words else c.rjust(w)
                                 for k, (c, w) in enumerate(zip(cells, widths))) + " |"

    rule = "|" + "|".join("-" * (w + 2) if k in words else "-" * (w + 1) + ":"
                          for k, w in enumerate(widths)) + "|"
    return "\n".join([put(lines[0]), rule] + [put(line) for line in lines[1:]])
