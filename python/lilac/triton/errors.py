"""Refusals that are also exceptions of Triton's. Importing this imports Triton."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Optional

from triton.runtime.errors import OutOfResources

from ..errors import CompilationError, Diagnostic


class OutOfSharedMemory(CompilationError, OutOfResources):  # type: ignore[misc]
    """The kernel needs more shared memory than a block of the device can have."""

    def __init__(self, diagnostics: Sequence[Diagnostic], kernel: Optional[str] = None) -> None:
        found = re.search(r"needs (\d+) bytes .* has (\d+)", " ".join(one.message for one in diagnostics))
        required, limit = (int(found.group(1)), int(found.group(2))) if found else (0, 0)
        OutOfResources.__init__(self, required, limit, "shared memory")
        message = str(self)
        CompilationError.__init__(self, diagnostics, kernel)
        self.message = f"{message}\n{self._message()}"
        self.args = (self.message,)

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> Any:
        return type(self), (self.diagnostics, self.kernel)
