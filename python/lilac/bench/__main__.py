"""python -m lilac.bench [MODULE…], python -m lilac.bench models [MODEL…]: the commands. See docs/benchmarks.md."""

import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

from . import discover, picture, table

DONE, REFUSED, USAGE, FAILED = 0, 1, 2, 3

EPILOG = """python -m lilac.bench models --help: kernels that torch.compile generates for models.

exit status: 0 every case measured and right; 1 no GPU, no Triton, or a module that cannot
be used; 2 wrong usage; 3 a case failed (a refusal, a wrong result, an error at launch)"""


def at_least(least, kind, name):
    """A parser of numbers; what it refuses, argparse calls by its name."""
    def parse(text):
        value = kind(text)
        if not value >= least:
            raise ValueError(text)
        return value
    parse.__name__ = name
    return parse


COUNT = at_least(1, int, "count")
COUNT_OR_NONE = at_least(0, int, "count")
SECONDS = at_least(1e-3, float, "time")


def arguments(argv):
    parser = argparse.ArgumentParser(
        prog="python -m lilac.bench", epilog=EPILOG,
        description="Runs kernels under lilac and under Triton in turn, checks both against PyTorch in "
        "double precision, and compares run times and compile times.")
    parser.add_argument("modules", nargs="*", metavar="MODULE",
                        help="a module or a Python file that defines cases(); default: the built-in cases")
    parser.add_argument("--filter", action="append", default=[], metavar="PATTERN",
                        help="only cases whose name contains this or matches it (*, ?), or whose family it "
                        "is; A|B: one of them; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the cases' names and stop")
    parser.add_argument("--rounds", type=COUNT, default=5, help="rounds of each case (default 5)")
    parser.add_argument("--budget", type=SECONDS, default=0.4, metavar="SECONDS",
                        help="time spent on the timed launches of a case (default 0.4)")
    parser.add_argument("--first-calls", type=COUNT_OR_NONE, default=3, metavar="N",
                        help="first calls of each case, of which medians are taken (default 3; fewer where "
                        "they take long; 0: no compile times)")
    parser.add_argument("--prepare", type=COUNT, metavar="N",
                        help="first compile all cases under both compilers, in N processes, into Triton's cache "
                        "folder; the run finds them there (first calls do not: they are timed with empty folders)")
    parser.add_argument("--seed", type=int, default=None, help="of the inputs; default: from the clock")
    flush = parser.add_mutually_exclusive_group()
    flush.add_argument("--dirty", dest="clean", action="store_false", default=False,
                       help="write 256 MiB before each launch (the default, and what Triton's do_bench does)")
    flush.add_argument("--clean", dest="clean", action="store_true",
                       help="read 256 MiB instead, so that the cache holds nothing to be written back")
    parser.add_argument("--libraries", action="store_true",
                        help="time the operator in libraries in the same rounds, too, where the case names "
                        "some: cuBLAS, CUTLASS, cuDNN, FlashAttention")
    parser.add_argument("--no-check", dest="check", action="store_false", help="do not check results")
    parser.add_argument("--compile-only", action="store_true",
                        help="compile times only, for sm_90; needs no GPU and no PyTorch")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything as data")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write the table")
    parser.add_argument("--svg", type=pathlib.Path, metavar="FILE",
                        help="write the picture: mean speedup of each family")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER",
                        help="leave both compilers' TTIR, PTX and cubin of every case there")
    parser.add_argument("--commit", help="recorded; default: git's")
    parser.add_argument("--verbose", action="store_true", help="print the trace of every failure")
    options = parser.parse_args(argv)
    if options.svg and options.compile_only:
        parser.error("--svg draws run times, which --compile-only does not take")
    if options.libraries and options.compile_only:
        parser.error("--libraries times kernels on a GPU; --compile-only uses none")
    if options.prepare and options.compile_only:
        parser.error("--prepare compiles before cases are measured; --compile-only measures compilations")
    return options


def say(line):
    print(line, file=sys.stderr, flush=True)


class Refusal(Exception):
    """Why nothing can be run here."""


def require(compile_only):
    """Reports missing packages before an import fails with a less clear message."""
    try:
        import triton  # noqa: F401
    except ImportError as problem:
        raise Refusal(f"Triton is needed: pip install triton ({problem})") from problem
    if not compile_only:
        require_gpu()
    from .runner import Compilers

    try:
        Compilers()
    except ImportError as problem:
        raise Refusal(str(problem)) from problem


def require_gpu():
    try:
        import torch
    except ImportError as problem:
        raise Refusal("PyTorch is needed for inputs and references (--compile-only needs none): "
                      f"{problem}") from problem
    if not torch.cuda.is_available():
        raise Refusal("no GPU here that PyTorch can use; --compile-only needs none")


def last_line(command):
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = run.stdout.strip().splitlines() if run.returncode == 0 else []
    return lines[-1] if lines else None


def environment(options, runner):
    import triton

    import lilac

    here = pathlib.Path(__file__).resolve().parent
    about = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": " ".join(["python -m lilac.bench"] + [
            os.path.basename(a) if os.path.isabs(a) else a for a in sys.argv[1:]]),
        "lilac": lilac.__version__,
        "commit": options.commit or last_line(["git", "-C", str(here), "rev-parse", "HEAD"]),
        "triton": triton.__version__, "python": platform.python_version(), "cpu": processor(),
        "ptxas": last_line([triton.knobs.nvidia.ptxas.path, "--version"]),
    }
    if options.compile_only:
        return about
    import torch

    about.update(
        gpu=torch.cuda.get_device_name(), torch=torch.__version__, cuda=torch.version.cuda,
        driver=last_line(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]),
        seed=runner.seed, rounds=runner.rounds, budget=runner.budget,
        bandwidth=f"{runner.bandwidth / 1e12:.3f} TB/s, a copy of 1 GiB in this run",
        method="medians over rounds of medians over launches; CUDA events; 256 MiB "
        + ("read" if options.clean else "written") + " before each launch; order alternates; both "
        f"launched by Triton's launcher; compile times: medians of up to {options.first_calls} first calls "
        "with an empty cache")
    if options.libraries:
        from .operators.products.libraries import versions

        about["libraries"] = ", ".join(f"{name} {version}" for name, version in versions().items())
    return about


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")),
                        platform.machine())
    except OSError:
        return platform.machine()


def short(value):
    """Data with six digits of each number: no time is known better."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: short(one) for key, one in value.items()}
    return [short(one) for one in value] if isinstance(value, list) else value


def write(path, text):
    """Whole or not at all."""
    beside = path.with_name(path.name + ".new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def progress(number, count, row, began):
    left = (time.perf_counter() - began) / number * (count - number)
    failed = table.failures([row])
    if failed:
        what = "; ".join(f"FAILED under {name}: {why}" for _, name, why in failed)
    elif row.get("ratio"):
        libraries = f"  {table.library_cell(row)}" if row.get("libraries") else ""
        what = f"{row['ratio']:.3f}{libraries}  {1e3 * row['lilac']['ms']:.1f} µs"
    else:
        what = f"TTIR→PTX {row.get('lower_ratio', float('nan')):.0f} times"
    say(f"[{number:3}/{count}] {row['name']:<36} {what}   ({left:.0f} s left)")


def make_runner(options):
    from .runner import CompileRunner, Runner

    log = say if options.verbose else None
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    if options.compile_only:
        return CompileRunner(first_calls=options.first_calls, keep=options.keep, log=log)
    seed = options.seed if options.seed is not None else int(time.time())
    return Runner(rounds=options.rounds, budget=options.budget, seed=seed, clean=options.clean,
                  check=options.check, first_calls=options.first_calls, keep=options.keep, log=log,
                  prepared=bool(options.prepare), libraries=options.libraries)


def prepare(options, cases):
    """Compiles every case for the GPU here."""
    import torch

    from .prepare import fill

    major, minor = torch.cuda.get_device_capability()
    fill(options.modules, cases, options.prepare, 10 * major + minor, say)


def measure_all(cases, runner, save):
    """The rows, as far as the GPU (and the user's patience) lasts."""
    from .runner import Lost, blank

    rows, began = [], time.perf_counter()
    with runner.installed():
        try:
            for number, case in enumerate(cases, 1):
                rows.append(runner.row(case))
                progress(number, len(cases), rows[-1], began)
                save(rows)
        except Lost as problem:
            for case in cases[len(rows):]:
                row = blank(case)
                row["lilac"]["failure"] = row["triton"]["failure"] = f"the GPU context is lost: {problem}"
                rows.append(row)
            say(f"the GPU context is lost, the rest is not run: {problem}")
        except KeyboardInterrupt:
            say(f"interrupted after {len(rows)} of {len(cases)} cases")
    return rows


def outputs(options, rows, about):
    """Writes the files that were asked for."""
    gpu = not options.compile_only
    if options.json:
        data = {"environment": about, "summary": table.summary(rows), "cases": rows}
        write(options.json, json.dumps(short(data), indent=1) + "\n")
    if options.markdown:
        write(options.markdown, table.markdown(rows, about, gpu))
    if options.svg:
        measured = sum(bool(row.get("ratio")) for row in rows)
        write(options.svg, picture.svg(
            rows, f"lilac beside Triton {about['triton']} on {about['gpu']}",
            f"{measured} cases in {len(table.families(rows))} families; time of Triton's kernel over "
            "time of lilac's, both in one run"))


def chosen_cases(options):
    """The cases to run. Wrong usage is reported first, since it needs neither a GPU nor PyTorch; what is
    missing here is reported before a module that cannot be imported for that reason."""
    try:
        cases = discover.discover(options.modules, options.filter)
    except discover.Broken:
        if not options.list:
            require(options.compile_only)
        raise
    if not options.list:
        require(options.compile_only)
    return cases


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["models"]:
        from .models.__main__ import main as models

        return models(argv[1:])
    options = arguments(argv)
    try:
        cases = chosen_cases(options)
    except discover.Usage as problem:
        say(f"lilac.bench: {problem}")
        return USAGE
    except (discover.Broken, Refusal) as problem:
        say(f"lilac.bench: {problem}")
        return REFUSED
    if options.list:
        print("\n".join(case.name for case in cases))
        return DONE
    if options.prepare:
        try:
            prepare(options, cases)
        except KeyboardInterrupt:
            say("interrupted before the first case was measured")
            return FAILED
    runner = make_runner(options)
    about = environment(options, runner)
    rows = measure_all(cases, runner, lambda rows: outputs(options, rows, about))
    outputs(options, rows, about)
    print(table.table(rows, gpu=not options.compile_only))
    print()
    print(table.summary_text(rows))
    return FAILED if table.failures(rows) or len(rows) < len(cases) else DONE


if __name__ == "__main__":
    sys.exit(main())
