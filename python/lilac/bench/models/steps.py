"""Whole steps and first steps of models, each compiler in a process of its own (step.py), where it is on from the start.

First steps of several models run at the same time. Each process has processors of its own, the same number for all,
and the two compilers of a model begin together. When all first steps are done, the models are measured one after the
other: both processes of a model time some steps alternately, while all others wait and any processor may be used. The
time of a step is the median of the rounds' medians. The same is measured with replays of a CUDA graph of the step,
which leave out the host's time.
"""

import collections
import json
import os
import selectors
import statistics
import subprocess
import sys
import time

from ..__main__ import say
from ..measure import ratios
from ..runner import NAMES

ROUNDS = 11
EACH = 4     # processors of a process, where that is possible
GRACE = 120  # seconds in which a process must time some steps
TICK = 1.0   # seconds between looks at the time


def processors():
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def places(every, jobs):
    """The processors divided into `jobs` equal parts; fewer if there are fewer processors."""
    jobs = max(1, min(jobs or len(every) // EACH, len(every)))
    each = len(every) // jobs
    return [every[number * each:(number + 1) * each] for number in range(jobs)]


def command(compiler, model, place):
    return [sys.executable, "-m", "lilac.bench.models.step", compiler, model, ",".join(map(str, place))]


class Process:
    """The parent's side of step.py."""

    def __init__(self, compiler, model, place):
        self.compiler, self.model, self.place, self.row, self.rest = compiler, model, place, None, b""
        environment = {**os.environ, "LILAC_TRITON": "1" if compiler == "lilac" else "0"}
        self.process = subprocess.Popen(command(compiler, model, place), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=environment)

    def read(self):
        """What it reported since the last call; None if it has ended."""
        piece = os.read(self.process.stdout.fileno(), 1 << 16)
        if not piece:
            return None
        *lines, self.rest = (self.rest + piece).split(b"\n")
        return [json.loads(line) for line in lines if line[:1] in (b"{", b"[")]

    def wait_for_report(self, seconds):
        """The next report; None: it ended, or reported nothing in this time."""
        deadline, found = time.perf_counter() + seconds, []
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while found == [] and (left := deadline - time.perf_counter()) > 0:
                if selector.select(left):
                    found = self.read()
        return found[0] if found else None

    def times(self, what):
        """Milliseconds of some steps or replays; [] if there are none, None if it reported nothing."""
        try:
            self.process.stdin.write(what.encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            return None
        found = self.wait_for_report(GRACE)
        return found if isinstance(found, list) else None

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def first_steps(models, jobs, deadline, has_room=lambda: True):
    """{(model, compiler): process that has reported}. Those that have not at the deadline are ended."""
    free = collections.deque(places(processors(), jobs))
    queue = collections.deque((name, compiler) for name in models for compiler in NAMES)
    busy, done = {}, {}
    with selectors.DefaultSelector() as selector:
        while (queue or busy) and time.perf_counter() < deadline:
            while queue and free and (not busy or has_room()):
                name, compiler = queue.popleft()
                process = busy[name, compiler] = Process(compiler, name, free.popleft())
                selector.register(process.process.stdout, selectors.EVENT_READ, (name, compiler))
            for key, _ in selector.select(TICK):
                process, found = busy[key.data], busy[key.data].read()
                if found == []:
                    continue
                process.row = found[0] if found else {"model": process.model, "compiler": process.compiler,
                                                      "failure": "its process ended"}
                selector.unregister(process.process.stdout)
                free.append(process.place)
                done[key.data] = busy.pop(key.data)
                say("  " + line(process.row))
    for process in busy.values():
        process.end()
    return done


def line(row):
    return f"{row['model']:<20} {row['compiler']:<7} " + (
        f"FAILED: {row['failure']}" if "failure" in row else f"first step {row['first_s']:.1f} s")


def timed_line(model, row):
    return f"{model:<20} " + ", ".join(f"{title} {row[f'{what}_ms']:.2f} ms, ratio {row[f'{what}_ratio']:.3f}"
                                      for what, title in (("step", "step"), ("replay", "on the GPU")) if f"{what}_ms" in row)


def timed(pair, what):
    """{compiler: medians of the rounds}, or the compiler that reported no times."""
    rounds = {name: [] for name in NAMES}
    for number in range(-1, ROUNDS):  # the first round warms up
        for name in NAMES[::1 if number % 2 else -1]:
            found = pair[name].times(what)
            if not found:
                return name
            if number >= 0:
                rounds[name].append(statistics.median(found))
    return rounds


def time_steps(pair):
    """Fills in the rows of the two processes of a model."""
    for what in ("step", "replay"):
        rounds = timed(pair, what)
        if isinstance(rounds, str):
            if what == "step":
                pair[rounds].row["failure"] = "no times of its steps"
            return
        for name in NAMES:
            pair[name].row.update({f"{what}_ms": statistics.median(rounds[name]), f"{what}_rounds": rounds[name]})
        middle, least, most = ratios(*(rounds[name] for name in NAMES))
        pair["lilac"].row.update({f"{what}_ratio": middle, f"{what}_ratio_least": least, f"{what}_ratio_most": most})


def measure(models, jobs, deadline, add, has_room=lambda: True):
    """Calls add(rows) with the rows of each model when they are complete: one for each compiler that reported."""
    done = first_steps(models, jobs, deadline, has_room)
    try:
        for model in models:
            pair = {name: done[model, name] for name in NAMES if (model, name) in done}
            if len(pair) == len(NAMES) and not any("failure" in one.row for one in pair.values()):
                if time.perf_counter() < deadline:
                    time_steps(pair)
                    say("  " + timed_line(model, pair["lilac"].row))
            for process in pair.values():
                process.end()
            add([process.row for process in pair.values()])
    finally:
        for process in done.values():
            if process.process.poll() is None:
                process.end()
