"""Two threads compile at once, and what they make is what one thread makes."""

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import kernels
from standin import Pointer

import lilac
import lilac.triton

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "corpus")


def test_compiling_lets_other_threads_run():
    """No thread is ever made to give up Python's lock here: that another one runs while this one
    compiles means that the compiler let go of it."""
    with open(os.path.join(DATA, "histogram_sort.ttir"), encoding="utf-8") as file:
        text = file.read()
    spans, ticks = [], []
    done = threading.Event()

    def compile():
        for _ in range(10):
            begin = time.perf_counter()
            lilac.compile(text)
            spans.append((begin, time.perf_counter()))
        done.set()

    before = sys.getswitchinterval()
    sys.setswitchinterval(60)
    try:
        thread = threading.Thread(target=compile)
        thread.start()
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0001)
        thread.join()
    finally:
        sys.setswitchinterval(before)
    inside = [any(begin < tick < end for tick in ticks) for begin, end in spans]
    assert sum(inside) >= 5


def make(n):
    arguments = Pointer("fp32"), Pointer("fp32"), 4096, float(n), 1024
    return kernels.scale.warmup(*arguments, grid=(4,)).asm["ptx"]


def test_threads_through_the_plug_in():
    from conftest import forget

    lilac.triton.enable()
    alone = [make(n) for n in range(8)]
    forget(kernels)
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    try:
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(make, range(8)))
    finally:
        del os.environ["TRITON_ALWAYS_COMPILE"]
    assert together == alone
    assert len(set(alone)) == 8 and len(lilac.triton.report().lilac) == 8


def test_little_time_in_python():
    """Beside the library's own time, this package takes less than a millisecond a kernel."""
    lilac.triton.enable()
    make(1)
    rest = []
    for n in range(2, 14):
        make(n)
        row = lilac.triton.report().rows[-1]
        rest.append(row.seconds["lilac"] + row.seconds["print"] - row.compile)
    assert min(rest) < 1e-3
