"""python -m lilac.bench.models.step COMPILER MODEL [PROCESSORS]: the process of whole steps of a model under a compiler.

    parent                  this process, a line of JSON each
                            builds the model, runs the eager step, and the compiled one with all caches empty
                    <-      {model, compiler, first_s, eager_ms, error}     or {…, failure}, which ends the process
    "step"          ->      runs steps for a fraction of a second
                    <-      [milliseconds of each step]
    "replay"        ->      the same, of replays of the step as a CUDA graph: what the GPU executes, without the host
                    <-      [milliseconds of each], or [] if the step cannot be captured
    end of input    ->      ends

    first_s     seconds from the call of the compiled model to its first results, all caches empty. Inductor was
                loaded and its processes were started by compiling another function
    eager_ms    median time of a step without torch.compile
    error       the largest difference between the results of the compiled and the eager step, relative to the root
                mean square of the result; in training also of the gradients. None if the step draws random numbers
                (dropout), which torch.compile draws in another way

PROCESSORS is a list of numbers: the processors that this process and those of Inductor may use until the first step is
done. Output in other lines is not this program's.
"""

import json
import os
import statistics
import sys
import tempfile
import time

from . import zoo

BUDGET = 0.1  # seconds of the timed steps of a round
WARM_UP = 3   # steps on another stream before a capture


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


def times_of(torch, run, budget):
    """The times of several steps, in milliseconds."""
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
    return times


def compiled_step(torch, model, module, inputs):
    """The step of the model with its module compiled by torch.compile."""
    torch._dynamo.reset()
    return zoo.step_of(model, torch.compile(module, dynamic=model.dynamic or None), inputs)


def warm_up(torch):
    """Loads Inductor and starts its processes, by compiling a small function."""
    from torch._inductor.async_compile import AsyncCompile
    from torch._inductor.utils import fresh_cache

    with fresh_cache():
        torch.compile(lambda x: x + 1)(torch.zeros(8, device="cuda"))
    if hasattr(AsyncCompile, "wait_pool_ready"):
        AsyncCompile.wait_pool_ready()


def first_step(torch, model):
    """(what is reported of it, the step)."""
    from torch._inductor.async_compile import shutdown_compile_workers
    from torch._inductor.utils import fresh_cache

    warm_up(torch)
    seeded(torch)
    module, inputs = model.build()
    eager = zoo.step_of(model, module, inputs)
    wanted = outcome(torch, module, eager)
    is_random = relative(torch, outcome(torch, module, eager, seed=2), wanted) > 0.01
    row = {"eager_ms": statistics.median(times_of(torch, eager, BUDGET))}
    with tempfile.TemporaryDirectory(prefix="lilac-bench-") as folder, fresh_cache(dir=folder):
        run = compiled_step(torch, model, module, inputs)
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        row["first_s"] = time.perf_counter() - begin
        found = outcome(torch, module, run)
    row["error"] = None if is_random else relative(torch, found, wanted)
    shutdown_compile_workers()
    module.zero_grad(set_to_none=True)
    torch.cuda.empty_cache()
    return row, run


def captured(torch, run):
    """A function that replays the step's work on the GPU; None if the step cannot be captured."""
    stream = torch.cuda.Stream()
    try:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                run()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        graph.replay()
        torch.cuda.synchronize()
    except Exception:  # it waits for the GPU, or allocates
        return None
    return graph.replay


def limit(processors):
    """Limits all threads of this process to these processors."""
    if hasattr(os, "sched_setaffinity"):
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), processors)


def say(what):
    print(json.dumps(what), flush=True)


def answer(torch, run):
    """Answers the parent's lines."""
    replay = None
    for line in sys.stdin:
        if line.strip() == "replay":
            replay = replay or captured(torch, run)
            say(times_of(torch, replay, BUDGET) if replay else [])
        else:
            say(times_of(torch, run, BUDGET))


def main(argv=None):
    compiler, name, *places = argv or sys.argv[1:]
    every = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    if places:
        limit({int(one) for one in places[0].split(",")})
    import torch

    from ..runner import Compilers, reason

    with Compilers().using(compiler):
        row = {"model": name, "compiler": compiler}
        try:
            found, run = first_step(torch, zoo.by_name()[name])
            limit(every)
            say({**row, **found})
            answer(torch, run)
        except Exception as problem:
            say({**row, "failure": reason(problem)})


if __name__ == "__main__":
    main()
