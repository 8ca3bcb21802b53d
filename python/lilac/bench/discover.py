"""The cases of a run: the built-in cases, or those of the named modules and files."""

import fnmatch
import importlib
import importlib.util
import pathlib
import sys

BUILT_IN = "lilac.bench.operators"
NEEDED = ("name", "launch", "check", "bytes", "operations")


class Usage(Exception):
    """A named module, file or case does not exist."""


class Broken(Exception):
    """It exists and cannot be used."""


def load(name):
    """The module of a dotted name or of a Python file."""
    path = pathlib.Path(name)
    if path.suffix == ".py" or path.is_file():
        if not path.is_file():
            raise Usage(f"{name}: no such file")
        # Under a separate name, and in sys.modules, because Triton's kernels look up their module.
        title = "lilac_bench_" + "".join(c if c.isalnum() else "_" for c in path.stem)
        spec = importlib.util.spec_from_file_location(title, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[title] = module
        run = lambda: spec.loader.exec_module(module)  # noqa: E731
    else:
        try:
            found = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            found = None
        if found is None:
            raise Usage(f"{name}: no such module or file")
        run = lambda: importlib.import_module(name)  # noqa: E731
    try:
        return run() or module
    except Exception as problem:
        raise Broken(f"{name}: {type(problem).__name__}: {problem}") from problem


def cases_of(module, name):
    """The module's cases, each looked at for what a run needs."""
    if not callable(getattr(module, "cases", None)):
        raise Broken(f"{name}: it defines no cases()")
    try:
        cases = list(module.cases())
    except Exception as problem:
        raise Broken(f"{name}: cases(): {type(problem).__name__}: {problem}") from problem
    for number, case in enumerate(cases):
        missing = [a for a in NEEDED if not hasattr(case, a)]
        if missing:
            title = getattr(case, "name", f"number {number}")
            raise Broken(f"{name}: case {title} has no {', '.join(missing)}")
    return cases


def discover(names, filters=()):
    """The cases of all these modules (of the built-in ones if none is named) whose name or family
    matches one of the patterns; a pattern with no wildcard may stand anywhere in the name, and | parts
    patterns."""
    filters = [pattern for one in filters for pattern in one.split("|") if pattern]
    cases = []
    for name in names or [BUILT_IN]:
        cases += cases_of(load(name), name)
    seen = set()
    for case in cases:
        if case.name in seen:
            raise Broken(f"two cases are called {case.name}")
        seen.add(case.name)
    if not filters:
        return cases
    chosen = [case for case in cases if any(matches(case, pattern) for pattern in filters)]
    if not chosen:
        raise Usage(f"no case matches {' or '.join(filters)}")
    return chosen


def matches(case, pattern):
    wanted = pattern if any(c in pattern for c in "*?[") else f"*{pattern}*"
    family = getattr(case, "family", None) or ""
    return fnmatch.fnmatchcase(case.name, wanted) or fnmatch.fnmatchcase(family, pattern)
