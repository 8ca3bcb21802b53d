"""The compiler: a tile kernel as Triton's front end writes it (TTIR or TTGIR text) to PTX."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Optional

from . import _core
from .errors import CompilationError, diagnostics_of

# The flags of _core.compile (python/src/compile.c).
_LINE_INFO, _NO_CONTRACTION, _TILE, _SIMT = 1, 2, 4, 8


@dataclass(frozen=True)
class Pass:
    """One pass of the pipeline: its time, and how many operations the program had after it."""

    name: str
    seconds: float
    operations: int


class Kernel:
    """A compiled kernel: `ptx`, and what a launcher must know of it."""

    def __init__(self, ptx: str, metadata: str, tile: str, simt: str) -> None:
        self.ptx = ptx
        self._metadata = metadata
        self.tile = tile or None
        """The kernel with its layouts, as text (TTGIR); None unless it was asked for."""
        self.simt = simt or None
        """What one thread does, as text; None unless it was asked for."""

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """All that the compiler says of the kernel, as `lilac compile --emit json` prints it."""
        return dict(json.loads(self._metadata))

    @property
    def name(self) -> str:
        return str(self.metadata["name"])

    @property
    def target(self) -> str:
        return str(self.metadata["target"])

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory that a launch must give it."""
        return int(self.metadata["shared"])

    @property
    def num_warps(self) -> int:
        return int(self.metadata["num_warps"])

    @property
    def num_ctas(self) -> int:
        return int(self.metadata["num_ctas"])

    @property
    def passes(self) -> list[Pass]:
        return [Pass(one["name"], one["seconds"], one["operations"]) for one in self.metadata["passes"]]

    @property
    def seconds(self) -> float:
        """The compiler's own time, from text to text."""
        return float(sum(one["seconds"] for one in self.metadata["passes"]))

    @property
    def conversions(self) -> list[dict[str, Any]]:
        """The conversions between layouts that are left, with their kinds and prices."""
        return list(self.metadata["conversions"]["each"])

    def __repr__(self) -> str:
        return (f"<lilac.Kernel {self.name} for {self.target}: {self.num_warps} warps, "
                f"{self.shared} bytes of shared memory>")


def compile(ttir: str, *, target: Optional[str] = "sm_90a", num_warps: Optional[int] = None,
            num_ctas: Optional[int] = None, num_stages: Optional[int] = None, line_info: bool = True,
            fuse: bool = True, file: Optional[str] = None, tile: bool = False,
            simt: bool = False, newest_ptx: Optional[int] = None) -> Kernel:
    """Compiles a module's text (`kernel.asm["ttir"]` under Triton, or a `.ttir` file's contents).

    What is not given (None) is what the module says, or else sm_90a, 4 warps, 1 block a cluster and
    3 stages. `fuse=False` keeps products and sums apart, each rounded. `file` is the module's name in
    diagnostics. With `tile` or `simt` the kernel also keeps those texts. The PTX is written in the
    oldest PTX ISA version that the kernel needs; `newest_ptx` is the newest that the assembler reads,
    times ten (86 for 8.6), and a kernel that needs a newer one is refused.

    Raises CompilationError for what the compiler refuses. Other threads run meanwhile."""
    for name, value in (("num_warps", num_warps), ("num_ctas", num_ctas), ("num_stages", num_stages),
                        ("newest_ptx", newest_ptx)):
        if value is not None and not 1 <= value < 1 << 31:
            raise ValueError(f"{name} is a positive number, not {value!r}")
    flags = (line_info and _LINE_INFO) | (not fuse and _NO_CONTRACTION) | (tile and _TILE) | (simt and _SIMT)
    result = _core.compile(ttir, file or "<ttir>", target, num_warps or 0, num_ctas or 0, num_stages or 0, flags,
                           newest_ptx or 0)
    if result[0] is None:
        raise CompilationError(diagnostics_of(ttir, result[1], result[2]))
    return Kernel(*result)


def devices() -> list[str]:
    """The devices that the compiler has a row for."""
    return _core.devices()
