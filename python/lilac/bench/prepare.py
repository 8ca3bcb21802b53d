"""--prepare N: both compilers compile every case in N processes before the first case is measured.

The processes fill Triton's cache folder, where the run then finds every kernel: TRITON_CACHE_DIR, or the default
one. It stays, so a further run of the same compilers finds them too. The processes use no GPU. What fails here is
compiled again when the case is measured, and its reason is reported then.
"""

import concurrent.futures
import functools
import multiprocessing
import time
from concurrent.futures.process import BrokenProcessPool

from .discover import discover
from .runner import NAMES, Compilers

EVERY = 2.0  # seconds between lines of progress


@functools.lru_cache(maxsize=None)
def known(names):
    """What a process looks up for its first case and keeps: the cases by name, the switch."""
    return {case.name: case for case in discover(names)}, Compilers()


def launches(case):
    """The case's launches that can be compiled by themselves, by the names of their configurations."""
    several = getattr(case.launch, "configurations", None) or {None: case.launch}
    return {name: launch for name, launch in several.items() if hasattr(launch, "compile")}


def distinct(cases):
    """(case, configuration) for every kernel that the cases need, once: Triton's cache has one for equal arguments."""
    found = {}
    for case in cases:
        for configuration, launch in launches(case).items():
            key = (launch.kernel, str(launch.specialization()), str(launch.options)) \
                if hasattr(launch, "specialization") else case.name
            found.setdefault(key, (case.name, configuration))
    return list(found.values())


def compiled(names, case, configuration, compiler, capability):
    """In a process of the pool. Whether the launch's kernel is in the cache now."""
    from triton.backends.compiler import GPUTarget

    cases, compilers = known(names)
    try:
        compilers(compiler, launches(cases[case])[configuration].compile)(GPUTarget("cuda", capability, 32))
    except Exception:
        return False
    return True


def pool(processes):
    """Fresh processes: a fork of one that has used the GPU could not."""
    return concurrent.futures.ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"))


def fill(names, cases, processes, capability, say, pool=pool):
    """Compiles those of `cases` (of the modules `names`) whose launch can be compiled by itself, under both
    compilers. Returns the number of compilations that succeeded."""
    names, began, said = tuple(names), time.perf_counter(), 0.0
    wanted = [(*one, name) for one in distinct(cases) for name in NAMES]
    later = sum(not launches(case) for case in cases)
    if later:
        say(f"{later} cases are compiled when they are measured: their launches have no compile(target)")
    succeeded = 0
    with pool(processes) as executor:
        try:
            jobs = [executor.submit(compiled, names, *one, capability) for one in wanted]
            for done, job in enumerate(concurrent.futures.as_completed(jobs), 1):
                succeeded += bool(job.result())
                now = time.perf_counter()
                if now - said >= EVERY or done == len(jobs):
                    left = (now - began) / done * (len(jobs) - done)
                    say(f"compiled {done} of {len(jobs)}   ({left:.0f} s left)")
                    said = now
        except BrokenProcessPool as problem:
            say(f"a process that compiled ended ({problem}): the rest is compiled when it is measured")
        except KeyboardInterrupt:
            executor.shutdown(cancel_futures=True)
            raise
    if succeeded < len(wanted):
        say(f"{len(wanted) - succeeded} of {len(wanted)} compilations failed; the reasons follow with the cases")
    return succeeded
