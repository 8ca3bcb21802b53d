"""python -m lilac.bench.models.step COMPILER MODEL…: whole steps under one compiler, a JSON line for each model.

    first_s     seconds from the call of the compiled model to its first results, all caches empty
    step_ms     median time of a later step
    eager_ms    the same without torch.compile
    error       the largest difference between the results of the compiled and the eager step, relative to the root
                mean square of the result; in training also of the gradients. None if the step draws random numbers
                (dropout), which torch.compile draws in another way
"""

import json
import statistics
import sys
import tempfile
import time

from . import zoo


def seeded(torch, seed=1):
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)


def relative(torch, found, wanted):
    """The largest difference relative to the root mean square, over pairs of tensors."""
    worst = 0.0
    for a, b in zip(found, wanted):
        x, y = a.double(), b.double()
        scale = float(y.square().mean().sqrt()) or 1.0
        worst = max(worst, float((x - y).abs().max()) / scale)
    return worst


def outcome(torch, module, run, seed=1):
    """Copies of what one step computes."""
    seeded(torch, seed)
    results = [one.detach().clone() for one in run()]
    gradients = [p.grad.detach().clone() for p in module.parameters() if p.grad is not None]
    torch.cuda.synchronize()
    return results + gradients


def time_of(torch, run, budget=1.0):
    """The median time of a step in milliseconds, and how many were timed."""
    run()
    torch.cuda.synchronize()
    times, begin = [], time.perf_counter()
    while len(times) < 5 or (time.perf_counter() - begin < budget and len(times) < 50):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times), len(times)


def compiled_step(torch, model, module, inputs):
    """The step of the model with its module compiled by torch.compile."""
    torch._dynamo.reset()
    return zoo.step_of(model, torch.compile(module, dynamic=model.dynamic or None), inputs)


def measured(torch, model):
    from torch._inductor.utils import fresh_cache

    seeded(torch)
    module, inputs = model.build()
    eager = zoo.step_of(model, module, inputs)
    wanted = outcome(torch, module, eager)
    is_random = relative(torch, outcome(torch, module, eager, seed=2), wanted) > 0.01
    row = {"model": model.name, "eager_ms": time_of(torch, eager)[0]}
    with tempfile.TemporaryDirectory(prefix="lilac-bench-") as folder, fresh_cache(dir=folder):
        run = compiled_step(torch, model, module, inputs)
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        row["first_s"] = time.perf_counter() - begin
        found = outcome(torch, module, run)
        row["error"] = None if is_random else relative(torch, found, wanted)
        row["step_ms"], row["steps"] = time_of(torch, run)
    return row


def main(argv=None):
    import torch

    from ..runner import Compilers, reason

    compiler, *names = argv or sys.argv[1:]
    with Compilers().using(compiler):
        for name in names:
            try:
                row = measured(torch, zoo.by_name()[name])
            except Exception as problem:
                row = {"model": name, "failure": reason(problem)}
            print(json.dumps({"compiler": compiler, **row}), flush=True)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
