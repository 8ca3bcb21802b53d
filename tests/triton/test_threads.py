"""Two threads compile at once, and what they make is what one thread makes."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import kernels
from standin import Pointer

import lilac.triton


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


def test_asynchronous_compilation():
    """Triton's own way of compiling on other threads."""
    import triton

    if not hasattr(triton, "AsyncCompileMode"):
        import pytest

        pytest.skip("this Triton has none")
    lilac.triton.enable()
    with ThreadPoolExecutor(2) as pool, triton.AsyncCompileMode(pool):
        arguments = Pointer("fp32"), Pointer("fp32"), 4096
        futures = [kernels.scale.warmup(*arguments, float(n), 1024, grid=(4,)) for n in range(4)]
    assert {future.result().metadata.lilac["compiler"] for future in futures} == {"lilac"}


def test_little_work_in_python():
    """What this package itself does in Python for a kernel does not depend on the kernel's length."""
    lilac.triton.enable()
    make(1)
    short, long = (calls_in_package(partial(repeated, times)) for times in (1, 60))
    assert short == long
    assert 0 < short < 200


def repeated(times):
    return kernels.repeated.warmup(Pointer("fp32"), times, 128, grid=(1,)).asm["ptx"]


def calls_in_package(run):
    """The calls of Python functions of this package, on this thread."""
    package, calls = os.path.dirname(lilac.__file__) + os.sep, 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename.startswith(package)

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls
