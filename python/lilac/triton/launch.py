"""Errors of a launch that name the kernel, and of a stage that lilac does not have.

Triton launches the kernels and raises the exceptions. If an exception does not name the kernel, the name is
added: as a note from Python 3.11 on, and in the text in older versions. `kernel.asm["llir"]` is a KeyError
that says why.
"""

from __future__ import annotations

import functools
from typing import Any


def _name_kernel(error: BaseException, function: Any) -> None:
    from triton.runtime.errors import OutOfResources

    while not hasattr(function, "__name__") and hasattr(function, "fn"):  # an autotuner, a heuristic
        function = function.fn
    name = getattr(function, "__name__", "?")
    if f"'{name}'" in str(error) or any(f"'{name}'" in note for note in getattr(error, "__notes__", ())):
        return
    code = getattr(getattr(function, "fn", None), "__code__", None)
    place = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    note = f"in kernel '{name}'{place}, with lilac switched on"
    if hasattr(error, "add_note"):
        error.add_note(note)
    elif isinstance(error, OutOfResources):  # makes its text of what is out
        error.name = f"{error.name} {note}"
    elif error.args and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]}\n{note}", *error.args[1:])


def _missing(original: Any) -> Any:
    """`AsmDict.__missing__`, which computes the SASS."""

    @functools.wraps(original)
    def __missing__(self: Any, key: Any) -> Any:
        if key == "llir":
            raise KeyError("there is no 'llir': lilac writes PTX without LLVM IR, and of a kernel that it handed "
                           f"back to Triton this stage is not kept; there are {', '.join(self)}, sass")
        return original(self, key)

    return __missing__


def install() -> Any:
    """Returns what undoes it.

    `kernel[grid]` is a closure of Triton's that calls `run`. The closure here is the same with an exception
    handler, which costs nothing while no exception is raised. `run` itself is not replaced."""
    from triton.compiler.compiler import AsmDict
    from triton.runtime.jit import KernelInterface

    original, missing = KernelInterface.__getitem__, AsmDict.__missing__

    @functools.wraps(original)
    def __getitem__(self: Any, grid: Any) -> Any:
        def launch(*args: Any, **kwargs: Any) -> Any:
            try:
                return self.run(grid=grid, warmup=False, *args, **kwargs)
            except Exception as error:
                _name_kernel(error, self)
                raise

        return launch

    KernelInterface.__getitem__ = __getitem__
    AsmDict.__missing__ = _missing(missing)

    def undo() -> None:
        AsmDict.__missing__ = missing
        if KernelInterface.__getitem__ is __getitem__:
            KernelInterface.__getitem__ = original

    return undo
