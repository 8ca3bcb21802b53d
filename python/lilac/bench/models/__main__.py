"""python -m lilac.bench models [MODEL…]: the command."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

from ..__main__ import COUNT, DONE, FAILED, REFUSED, SECONDS, USAGE, Refusal, environment, require, say, short, write
from . import report, zoo


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
                        help="start no further model after this time")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="write everything as data after each model; measurements of an existing file are kept")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write the tables")
    parser.add_argument("--svg", type=pathlib.Path, metavar="FILE", help="write the picture")
    parser.add_argument("--verbose", action="store_true", help="print the trace of every failure")
    parser.add_argument("--commit", help="recorded; default: git's")
    options = parser.parse_args(argv)
    options.compile_only = False
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
        self.kernels, self.steps, self.missing, self.about = [], [], {}, {}
        if options.json and options.json.exists():
            data = json.loads(options.json.read_text(encoding="utf-8"))
            self.kernels, self.steps = data["kernels"], data["steps"]

    def has_kernels(self, model):
        return any(row["model"] == model.name for row in self.kernels)

    def has_step(self, model, compiler):
        return any((row["model"], row["compiler"]) == (model.name, compiler) for row in self.steps)

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


def measure_kernels(run, measurer, warmer, model):
    """The generated kernels of one model: compiled by Triton once to record them, then each under both."""
    import torch
    from torch._inductor.utils import fresh_cache

    from . import capture, step

    with tempfile.TemporaryDirectory(prefix="lilac-bench-") as folder, fresh_cache(dir=folder):
        step.seeded(torch)
        module, inputs = model.build()
        compiled = step.compiled_step(torch, model, module, inputs)
        compiled()
        launches = capture.launches(compiled)
        del module, inputs, compiled
        torch._dynamo.reset()
        torch.cuda.empty_cache()
        say(f"  {len(launches)} kernels: compiling")
        warmer.warm(launches)
        began = time.perf_counter()
        for number, launch in enumerate(launches, 1):
            row = measurer.measure_launch(model, launch)
            run.kernels.append(row)
            launch.args = ()
            left = (time.perf_counter() - began) / number * (len(launches) - number)
            failed = "; ".join(f"FAILED under {n}: {row[n]['failure']}" for n in ("triton", "lilac") if "failure" in row[n])
            what = failed or f"{row['ratio']:.3f}  {1e3 * row['lilac']['ms']:.1f} µs"
            say(f"  [{number:3}/{len(launches)}] {launch.name[:60]:<60} {what}   ({left:.0f} s left)")
    torch.cuda.empty_cache()


def measure_steps(run, models, compiler, deadline):
    """Whole steps in a process of their own, where this compiler is on from the start."""
    names = [model.name for model in models if not run.has_step(model, compiler)]
    if not names or time.perf_counter() > deadline:
        return
    environment = {**os.environ, "LILAC_TRITON": "1" if compiler == "lilac" else "0"}
    command = [sys.executable, "-m", "lilac.bench.models.step", compiler, *names]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        for line in process.stdout:
            if not line.startswith("{"):
                continue
            row = json.loads(line)
            run.steps.append(row)
            run.save()
            say(f"  {row['model']:<20} {compiler:<7} " + (f"FAILED: {row['failure']}" if "failure" in row else
                f"first step {row['first_s']:.1f} s, step {row['step_ms']:.2f} ms (eager {row['eager_ms']:.2f})"))
            if time.perf_counter() > deadline:
                process.kill()
                break


def measure(run, options, models):
    import torch

    from ..runner import NAMES, Compilers, reason
    from .kernels import Measurer, Warmer

    torch._inductor.config.use_static_cuda_launcher = False  # its kernels keep no machine code to count
    deadline = time.perf_counter() + options.time
    measurer = Measurer(Compilers(), rounds=options.rounds, budget=options.budget)
    measurer.seed, measurer.bandwidth = 1, measurer.watch.bandwidth()
    options.clean, options.first_calls = False, 1
    run.about = environment(options, measurer)
    warmer = Warmer()
    for number, model in enumerate(models, 1):
        if options.steps or run.has_kernels(model) or time.perf_counter() > deadline:
            continue
        say(f"[{number}/{len(models)}] {model.name}: {model.family}, {model.step}, {model.dtype}")
        try:
            measure_kernels(run, measurer, warmer, model)
        except Exception as problem:
            run.missing[model.name] = reason(problem)
            say(f"  not run: {run.missing[model.name]}")
            if options.verbose:
                say("".join(traceback.format_exception(problem)))
        run.save()
    warmer.close()
    del measurer
    torch.cuda.empty_cache()
    if not options.kernels:
        for compiler in NAMES:
            say(f"whole steps under {compiler}")
            measure_steps(run, [m for m in models if m.name not in run.missing], compiler, deadline)


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
