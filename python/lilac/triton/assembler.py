"""The ptxas that Triton runs: its version, its replacement, and its refusals.

The stage `cubin` remains Triton's. A copy of its function has two other globals: `get_ptxas`, where
LILAC_PTXAS names another program, and `print`, which prints the whole PTX when ptxas fails. This module
decides by the compiler of the PTX whether it is printed.
"""

from __future__ import annotations

import builtins
import functools
import re
import subprocess
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Optional

from .. import _core


class _Held(threading.local):
    """The output of this thread's stage."""

    lines: Optional[list[tuple[tuple[Any, ...], dict[str, Any]]]] = None


_held = _Held()


def _print(*values: Any, **words: Any) -> None:
    if _held.lines is None:
        builtins.print(*values, **words)
    else:
        _held.lines.append((values, words))


@contextmanager
def held_output() -> Iterator[None]:
    """Prints what the stage printed if the block ends without an exception."""
    _held.lines = []
    try:
        yield
        lines, _held.lines = _held.lines, None
        for values, words in lines:
            builtins.print(*values, **words)
    finally:
        _held.lines = None


def adapted(make_cubin: Any, path: Optional[str]) -> Any:
    """Triton's own function, flags and all, with `print` held back and another ptxas if one is named."""
    names = {**make_cubin.__globals__, "print": _print}
    if path is not None:
        if "get_ptxas" not in make_cubin.__code__.co_names:
            raise RuntimeError("LILAC_PTXAS is set, and this Triton does not say which ptxas it runs")
        tool = types.SimpleNamespace(path=path)
        names["get_ptxas"] = lambda *arguments: tool
    return types.FunctionType(make_cubin.__code__, names, make_cubin.__name__, make_cubin.__defaults__,
                              make_cubin.__closure__)


@functools.lru_cache(maxsize=None)
def _version(path: str, key: str) -> Optional[str]:
    """What a ptxas prints as its version. `key`: of the settings; it changes when the file that LILAC_PTXAS names does."""
    try:
        return subprocess.run([path, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return None


def _path(make_cubin: Any, architecture: int, path: Optional[str]) -> Optional[str]:
    """The ptxas that the stage runs now; None if this Triton does not say which."""
    if path is not None:
        return path
    get = make_cubin.__globals__.get("get_ptxas")
    try:
        tool = get(architecture) if get is not None else None
    except (TypeError, RuntimeError):  # another signature, or no ptxas: Triton says so when it runs it
        tool = None
    found = getattr(tool, "path", None)
    return None if found is None else str(found)


def version_of(make_cubin: Any, architecture: int, path: Optional[str], key: str) -> Optional[str]:
    """What the ptxas that assembles for a device prints as its version; None if that is not known."""
    found = _path(make_cubin, architecture, path)
    return None if found is None else _version(found, key)


def ptxas_of(make_cubin: Any, architecture: int, path: Optional[str], key: str) -> tuple[str, Optional[int]]:
    """The ptxas that assembles for a device, in words, and the newest PTX ISA version that it reads, times
    ten; None if it does not print its release."""
    found = _path(make_cubin, architecture, path)
    version = None if found is None else _version(found, key)
    release = re.search(r"release (\d+)\.(\d+)", version or "")
    if release is None:
        return found or "ptxas", None
    major, minor = (int(part) for part in release.groups())
    return f"{found}, {release.group()}", _core.ptx_version_of_cuda(1000 * major + 10 * minor) or None


def refusal_of(error: Any) -> tuple[str, tuple[str, ...]]:
    """The first message of ptxas, and the whole text, from an exception of Triton's."""
    said = [line for line in str(getattr(error, "error_message", None) or error).splitlines() if line.strip()]
    first = next((line for line in said if re.search(r"\b(error|fatal)\s*:", line)), said[0] if said else "ptxas failed")
    return re.sub(r"\s+", " ", re.sub(r"^.*?\b(?:error|fatal)\s*:\s*", "", first)), tuple(said)
