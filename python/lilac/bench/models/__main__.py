"""python -m lilac.bench models [MODEL…]: the command."""

import argparse
import json
import pathlib
import shutil
import sys
import tempfile
import time

from ..__main__ import COUNT, DONE, FAILED, REFUSED, SECONDS, USAGE, Refusal, environment, require, say, short, write
from ..runner import NAMES
from . import report, steps, zoo
from .scheduler import Scheduler, has_room


def arguments(argv):
    parser = argparse.ArgumentParser(
        prog="python -m lilac.bench models",
        description="Compiles models with torch.compile, times every generated kernel alone under lilac and under Triton, "
        "and whole steps under each.")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="names (see --list); default: all")
    parser.add_argument("--half", choices=report.HALVES, help="only this half of the models")
    parser.add_argument("--list", action="store_true", help="print the models and stop")
    parser.add_argument("--kernels", action="store_true", help="measure only the generated kernels")
    parser.add_argument("--steps", action="store_true", help="measure only whole steps and first steps")
    parser.add_argument("--rounds", type=COUNT, default=3, help="rounds for each kernel (default 3)")
    parser.add_argument("--budget", type=SECONDS, default=0.08, metavar="SECONDS",
                        help="time spent on the timed launches of a kernel (default 0.08)")
    parser.add_argument("--time", type=SECONDS, default=float("inf"), metavar="SECONDS",
                        help="stop after this time; a model that is not finished then is not reported")
    parser.add_argument("--prepare", type=SECONDS, metavar="SECONDS",
                        help="time in which the models are compiled in parallel; a model that is not compiled then is "
                        "compiled when it is measured (default: half of --time)")
    parser.add_argument("--jobs", type=COUNT, metavar="N",
                        help="number of models that are compiled at the same time (default: half of the processors), and "
                        "of first steps (default: a quarter of the processors)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="write everything as data after each model; measurements of an existing file are kept")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write the tables")
    parser.add_argument("--svg", type=pathlib.Path, metavar="FILE", help="write the picture")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER",
                        help="save TTIR, both compilers' PTX, and the arguments of every kernel")
    parser.add_argument("--verbose", action="store_true", help="print the trace of every failure")
    parser.add_argument("--commit", help="recorded; default: git's")
    options = parser.parse_args(argv)
    options.compile_only = False
    options.prepare = options.prepare or 0.5 * options.time
    unknown = [name for name in options.models if name not in zoo.by_name()]
    if unknown:
        parser.error(f"no model {', '.join(unknown)}; --list prints the names")
    if options.kernels and options.steps:
        parser.error("--kernels and --steps exclude each other")
    return options


def chosen(options):
    return [model for model in zoo.MODELS if (not options.models or model.name in options.models)
            and options.half in (None, model.half)]


class Run:
    """What has been measured, and the files it is written to."""

    def __init__(self, options, models):
        self.options, self.models = options, models
        self.kernels, self.steps, self.missing, self.about, self.before = [], [], {}, {}, None
        if options.json and options.json.exists():
            data = json.loads(options.json.read_text(encoding="utf-8"))
            self.kernels, self.steps = data["kernels"], data["steps"]
            self.before = data["environment"].get("commit")

    def has_kernels(self, model):
        return any(row["model"] == model.name for row in self.kernels)

    def has_step(self, model, compiler):
        return any((row["model"], row["compiler"]) == (model.name, compiler) and "step_ms" in row for row in self.steps)

    def save(self):
        options = self.options
        rows = report.model_rows(zoo.MODELS, self.kernels, self.steps)
        rows = [row for row in rows if row["kernels"] or row.get("steps")]
        if options.json:
            data = {"environment": self.about, "summary": report.summary(rows), "models": rows, "kernels": self.kernels,
                    "steps": self.steps, "missing": self.missing}
            write(options.json, json.dumps(short(data), indent=1) + "\n")
        if options.markdown:
            about = "".join(f"- {key}: {value}\n" for key, value in self.about.items())
            write(options.markdown, "# Kernels of torch.compile\n\n" + self.text() + "\n" + about)
        if options.svg:
            write(options.svg, report.svg(zoo.MODELS, self.kernels, self.steps, self.about))

    def text(self):
        known = {row["model"] for row in (*self.kernels, *self.steps)}
        return report.text([m for m in zoo.MODELS if m.name in known], self.kernels, self.steps, self.missing)


def measure_kernels(run, scheduler, models, deadline):
    """The generated kernels of the models: all models are compiled, then measured one at a time."""
    todo = [model for model in models if not run.has_kernels(model)]
    began = time.perf_counter()
    if todo:
        say(f"compiling {len(todo)} models")
        scheduler.prepare(sorted(todo, key=lambda model: not model.training), began + run.options.prepare)
    order = sorted(todo, key=lambda model: not scheduler.is_prepared(model))
    for number, model in enumerate(order, 1):
        left = deadline - time.perf_counter()
        if left <= 0:
            run.missing[model.name] = "the time was over"
            continue
        say(f"[{number}/{len(order)}] {model.name}: {model.family}, {model.step}, {model.dtype}")
        rows, why = scheduler.measure(model, left)
        if why:
            run.missing[model.name] = why
            say(f"  not run: {why}")
        else:
            run.kernels += rows
            run.save()
            say(f"  {report.line(rows)}   ({time.perf_counter() - began:.0f} s)")


def measure_steps(run, models, jobs, deadline):
    """Whole steps and first steps."""
    names = [model.name for model in models
             if model.compiled and not all(run.has_step(model, compiler) for compiler in NAMES)]

    def add(rows):
        known = {(row["model"], row["compiler"]) for row in rows}
        run.steps = [row for row in run.steps if (row["model"], row["compiler"]) not in known] + rows
        run.save()

    if names and time.perf_counter() < deadline:
        say(f"first steps of {len(names)} models")
        steps.measure(names, jobs, deadline, add, has_room)


def measure(run, options, models):
    import torch

    from ..measure import LEAST_LAUNCHES, Stopwatch

    deadline = time.perf_counter() + options.time
    options.clean, options.first_calls, options.libraries = False, 1, False
    run.about = environment(options, argparse.Namespace(
        seed=1, rounds=options.rounds, budget=options.budget, bandwidth=Stopwatch(torch).bandwidth()))
    run.about["method"] += (f"; kernels under {report.QUICK:.1%} of their model's time: "
                            f"medians of {LEAST_LAUNCHES} launches")
    if run.before and run.before != run.about["commit"]:
        say(f"{options.json.name} has measurements of commit {run.before}, which are kept")
    torch.cuda.empty_cache()
    if not options.steps:
        folder = tempfile.mkdtemp(prefix="lilac-bench-")
        scheduler = Scheduler(folder, rounds=options.rounds, budget=options.budget, jobs=options.jobs,
                              keep=options.keep and str(options.keep.resolve()),
                              trace=say if options.verbose else lambda text: None)
        try:
            measure_kernels(run, scheduler, models, deadline)
        finally:
            scheduler.close()
            shutil.rmtree(folder, ignore_errors=True)  # a process that has just ended may have left a file open
    if not options.kernels:
        measure_steps(run, [m for m in models if m.name not in run.missing], options.jobs, deadline)


def require_hook():
    """Without it torch.compile uses worker processes under Triton only, and first steps cannot be compared."""
    from ...triton.switch import hook_is_installed

    if not hook_is_installed():
        raise Refusal("lilac's start-up hook is not in site-packages (pip install of the package puts it there), so "
                      "torch.compile would use no worker processes under lilac; --kernels measures the kernels alone")


def main(argv=None):
    options = arguments(argv)
    models = chosen(options)
    if options.list:
        for model in models:
            print(f"{model.name:<18} {model.half:<12} {model.family:<12} {model.step:<10} {model.dtype}"
                  + (" dynamic" if model.dynamic else ""))
        return DONE
    try:
        require(compile_only=False)
        if not options.kernels:
            require_hook()
    except Refusal as problem:
        say(f"lilac.bench: {problem}")
        return REFUSED
    run = Run(options, models)
    run.missing = {model.name: model.missing() for model in models if model.missing()}
    models = [model for model in models if model.name not in run.missing]
    try:
        measure(run, options, models)
    except KeyboardInterrupt:
        say("interrupted")
    run.save()
    print(run.text())
    return FAILED if report.failures(run.kernels, run.steps) or run.missing else DONE


__all__ = ["USAGE", "main"]

if __name__ == "__main__":
    sys.exit(main())
