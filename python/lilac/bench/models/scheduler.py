"""The workers of a run: several models are compiled at once, then measured one at a time.

`Scheduler.prepare(models)` starts a process for each model (see worker.py). It returns when all models are prepared,
or the time for it is over. At most `jobs` models are compiled at once, and a further one starts only while a part of
the GPU's memory is free. The kernels of all models are compiled in one pool of processes. `Scheduler.measure(model)`
measures one model while no other worker is active; a model that could not be prepared is compiled then.
"""

import concurrent.futures
import multiprocessing
import os
import time
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait

from ..__main__ import say
from ..runner import NAMES, Compilers
from . import machine_code
from .worker import Settings, serve

FREE = 0.15      # of the GPU's memory, before another model is compiled
TICK = 0.2       # seconds between looks at the pool
GRACE = 60       # seconds after its time in which a worker must answer


def processors():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _warm(source, name, folder):
    """In a process of the pool: fills Triton's cache. What fails here fails again in the worker, which reports it."""
    os.environ.update(TRITON_CACHE_DIR=folder, TORCHINDUCTOR_COMPILE_THREADS="1", OMP_NUM_THREADS="1")
    from .kernels import load

    try:
        with Compilers().using(name):
            load(source).precompile(warm_cache_only=True)
    except Exception:
        return False
    return True


class Pool:
    """Processes that compile and disassemble kernels, one for each processor."""

    def __init__(self):
        self.context = multiprocessing.get_context("spawn")
        self.executor = None

    def submit(self, function, *arguments):
        for _ in range(2):
            try:
                if self.executor is None:
                    self.executor = concurrent.futures.ProcessPoolExecutor(processors(), self.context)
                return self.executor.submit(function, *arguments)
            except BrokenProcessPool:  # a process crashed; its kernel will crash its model's worker, and no other
                self.executor = None
        raise RuntimeError("the pool of processes cannot be started")

    def cubins(self, found):
        """{(row, compiler): classes of instructions} of what `kernels.cubins` returns."""
        jobs = {(number, name): self.submit(machine_code.classes, cubin) for number, name, cubin in found}
        return {key: job.result() for key, job in jobs.items() if not job.exception()}

    def close(self):
        if self.executor:
            self.executor.shutdown(cancel_futures=True)


class Worker:
    """The command's side of a worker."""

    def __init__(self, model, settings):
        context = multiprocessing.get_context("spawn")
        self.model, self.began, self.state, self.jobs = model, time.perf_counter(), "compiling", []
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, model.name, settings), name=model.name)
        self.process.start()
        theirs.close()

    def send(self, *message):
        try:
            self.connection.send(message)
        except (BrokenPipeError, OSError):
            pass  # the end of the process is noticed when its answer is read

    def answer(self):
        """The next message; ("failed", reason, trace) if the process has ended."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            self.process.join(5)
            return "failed", f"its process ended with exit status {self.process.exitcode}", ""

    def end(self):
        for job in self.jobs:
            job.cancel()
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join(5)
        self.connection.close()


def has_room():
    """Is a part of the GPU's memory free, for another model?"""
    import torch

    free, whole = torch.cuda.mem_get_info()
    return free >= FREE * whole


class Scheduler:
    def __init__(self, folder, *, rounds, budget, jobs=None, keep=None, trace=lambda text: None):
        self.folder, self.rounds, self.budget, self.keep, self.trace = folder, rounds, budget, keep, trace
        self.jobs = jobs or max(1, processors() // 2)
        self.pool, self.workers, self.failures = Pool(), {}, {}

    def settings(self, jobs):
        threads = max(1, 2 * processors() // jobs) if jobs > 1 else processors()
        return Settings(self.folder, threads, self.rounds, self.budget, self.keep)

    def start(self, model, jobs):
        worker = self.workers[model.name] = Worker(model, self.settings(jobs))
        return worker

    def prepare(self, models, deadline=float("inf")):
        """Compiles the models. Workers that fail, or are not prepared at the deadline, end."""
        queue, jobs = list(models), min(self.jobs, len(models))
        count, began = len(queue), time.perf_counter()
        while time.perf_counter() < deadline:
            busy = [w for w in self.workers.values() if w.state in ("compiling", "loading")]
            waiting = [w for w in self.workers.values() if w.state == "waiting for kernels"]
            while queue and len(busy) < jobs and (not busy or has_room()):
                busy.append(self.start(queue.pop(0), jobs))
            if not busy and not waiting:
                break
            for connection in wait([w.connection for w in busy], TICK):
                self.advance(next(w for w in busy if w.connection is connection), count, began)
            for worker in waiting:
                if all(job.done() for job in worker.jobs):
                    worker.state = "loading"
                    worker.send("load")
        for worker in list(self.workers.values()):
            if worker.state != "prepared":
                self.abandon(worker, "not compiled within the time for it")
        for model in queue:
            say(f"  {model.name}: not compiled within the time for it")

    def advance(self, worker, count, began):
        """Takes a message of a worker that is being prepared."""
        kind, what, *more = worker.answer()
        if kind == "sources":
            folder = os.path.join(self.folder, "triton")
            worker.jobs = [self.pool.submit(_warm, source, name, folder) for source in what for name in NAMES]
            worker.state = "waiting for kernels"
        elif kind == "prepared":
            worker.state = "prepared"
            done = sum(w.state == "prepared" for w in self.workers.values())
            seconds = time.perf_counter() - worker.began
            say(f"  {worker.model.name}: {what} kernel{'s' * (what != 1)} compiled in {seconds:.0f} s "
                f"({done} of {count} models, {time.perf_counter() - began:.0f} s)")
        else:
            self.trace("".join(more))
            self.abandon(worker, what)

    def abandon(self, worker, why):
        say(f"  {worker.model.name}: {why}")
        self.failures[worker.model.name] = why
        worker.end()
        del self.workers[worker.model.name]

    def is_prepared(self, model):
        return model.name in self.workers

    def measure(self, model, seconds):
        """(rows, None), or (None, the reason why there are none)."""
        began = time.perf_counter()
        if not self.is_prepared(model):
            self.prepare([model], began + seconds)
        worker = self.workers.pop(model.name, None)
        if worker is None:
            return None, self.failures[model.name]
        left = seconds - (time.perf_counter() - began)
        worker.send("measure", left)
        try:
            if not worker.connection.poll(None if left == float("inf") else max(0.0, left) + GRACE):
                return None, "its process did not answer in time"
            kind, *what = worker.answer()
        finally:
            worker.end()
        if kind == "rows":
            rows, cubins = what
            for (number, name), code in self.pool.cubins(cubins).items():
                rows[number][name]["code"] = code
            return rows, None
        if kind == "stopped":
            return None, f"the time was over after {what[0]} of {what[1]} kernels"
        self.trace(what[1])
        return None, what[0]

    def close(self):
        for worker in list(self.workers.values()):
            worker.end()
        self.workers.clear()
        self.pool.close()
