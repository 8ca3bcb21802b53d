"""Refusals that are also exceptions of Triton's. Importing this imports Triton."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Optional

from triton.runtime.errors import OutOfResources, PTXASError

from ..errors import CompilationError, Diagnostic


class OutOfSharedMemory(CompilationError, OutOfResources):  # type: ignore[misc]
    """The kernel needs more shared memory than a block of the device can have."""

    def __init__(self, diagnostics: Sequence[Diagnostic], kernel: Optional[str] = None) -> None:
        said = " ".join(one.message for one in diagnostics)
        found = re.search(r"(\d+) bytes of shared memory.* has (\d+)", said)
        required, limit = (int(found.group(1)), int(found.group(2))) if found else (None, None)
        OutOfResources.__init__(self, required, limit, "shared memory")
        CompilationError.__init__(self, diagnostics, kernel)

    def __str__(self) -> str:
        # Triton's own words first, where the numbers are known.
        own = f"{OutOfResources.__str__(self)}\n" if self.required is not None else "out of resource: shared memory\n"
        return own + self._message()

    def __reduce__(self) -> Any:
        return type(self), (self.diagnostics, self.kernel)


class OutOfThreads(CompilationError, OutOfResources):  # type: ignore[misc]
    """The kernel has more threads than a block of the device can have. Under Triton its launch fails."""

    def __init__(self, diagnostics: Sequence[Diagnostic], kernel: Optional[str] = None) -> None:
        OutOfResources.__init__(self, *(32 * warps for warps in too_many_warps(diagnostics) or ()), "threads")
        CompilationError.__init__(self, diagnostics, kernel)

    def __str__(self) -> str:
        return f"{OutOfResources.__str__(self)}\n{self._message()}"

    def __reduce__(self) -> Any:
        return type(self), (self.diagnostics, self.kernel)


def too_many_warps(diagnostics: Sequence[Diagnostic]) -> Optional[tuple[int, int]]:
    """The warps of a block and the most that a block can have, if that is what the diagnostics say."""
    said = " ".join(one.message for one in diagnostics if one.id == "invalid-target")
    found = re.search(r"(\d+) is no number of warps: it must be a power of two from 1 to (\d+)", said)
    warps, most = (int(found.group(1)), int(found.group(2))) if found else (0, 0)
    return (warps, most) if warps > most else None


class PTXRefused(CompilationError, PTXASError):  # type: ignore[misc]
    """ptxas refuses PTX of lilac. Triton's autotuner continues with the next configuration."""

    def __init__(self, diagnostics: Sequence[Diagnostic], kernel: Optional[str] = None) -> None:
        PTXASError.__init__(self, "\n".join(note for one in diagnostics for note in one.notes))
        CompilationError.__init__(self, diagnostics, kernel)

    def __str__(self) -> str:
        return self._message()

    def __reduce__(self) -> Any:
        return type(self), (self.diagnostics, self.kernel)
