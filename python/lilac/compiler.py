"""The compiler: a tile kernel in the form of Triton's front end (TTIR or TTGIR text) to PTX."""

from __future__ import annotations

import json
import operator
import os
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional, Union

from . import _core
from .errors import CompilationError, Error, diagnostics_of, object_of

# The flags of _core.compile (python/src/compile.c).
_LINE_INFO, _NO_CONTRACTION, _TILE, _SIMT, _KEEP_SUBNORMALS, _TILE_IR, _LAUNCH_MAPS, _SPLIT_SUMS, _KEEP_WARPS, \
    _KEEP_ORDER, _ONE_BLOCK = 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024

_SUFFIXES = (".ttir", ".ttgir", ".mlir", ".simt")

Text = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Pass:
    """One pass of the pipeline: its time, and the number of operations after it."""

    name: str
    seconds: float
    operations: int


class Source(NamedTuple):
    """A module's text and the options of its compilation. From these the simulator compiles a kernel."""

    text: str
    file: str
    target: Optional[str]
    num_warps: int
    num_ctas: int
    num_stages: int
    flags: int


class Kernel:
    """A compiled kernel: an immutable, hashable value. `compile` makes it.

    Kernels are equal when their PTX, their metadata but for the compiler's times, and the texts that they
    keep are equal."""

    __slots__ = ("_facts", "_metadata", "_ptx", "_simt", "_source", "_tile")

    def __init__(self, ptx: str, metadata: str, tile: str = "", simt: str = "",
                 source: Optional[Source] = None) -> None:
        fields = {"_ptx": ptx, "_metadata": metadata, "_tile": tile or None, "_simt": simt or None,
                  "_source": source, "_facts": json.loads(metadata)}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Kernel does not change: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Kernel does not change: {name} cannot be deleted")

    @property
    def ptx(self) -> str:
        """The PTX text."""
        return str(self._ptx)

    @property
    def tile(self) -> Optional[str]:
        """The kernel with its layouts, as TTGIR text that Triton reads; None without `compile(…, tile=True)`."""
        return self._tile  # type: ignore[no-any-return]

    @property
    def simt(self) -> Optional[str]:
        """The program of one thread as SIMT text; None without `compile(…, simt=True)`."""
        return self._simt  # type: ignore[no-any-return]

    @property
    def metadata(self) -> dict[str, Any]:
        """All that the compiler reports of the kernel, as `lilac compile --emit json` prints it; a new dict
        each time."""
        return dict(json.loads(self._metadata))

    @property
    def name(self) -> str:
        """The kernel's name, as the launch needs it."""
        return str(self._facts["name"])

    @property
    def target(self) -> str:
        """The target device: "sm_90a"."""
        return str(self._facts["target"])

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory that a launch must provide."""
        return int(self._facts["shared"])

    @property
    def num_warps(self) -> int:
        """Warps of a block."""
        return int(self._facts["num_warps"])

    @property
    def num_ctas(self) -> int:
        """Blocks of a cluster."""
        return int(self._facts["num_ctas"])

    @property
    def passes(self) -> list[Pass]:
        """The passes of the compiler, in order."""
        return [Pass(one["name"], one["seconds"], one["operations"]) for one in self._facts["passes"]]

    @property
    def seconds(self) -> float:
        """The compiler's own time, from text to text."""
        return float(sum(one["seconds"] for one in self._facts["passes"]))

    @property
    def conversions(self) -> list[dict[str, Any]]:
        """The conversions between layouts that are left, with their kinds and prices."""
        return list(self.metadata["conversions"]["each"])

    @property
    def accesses(self) -> list[dict[str, Any]]:
        """The accesses to global memory, each with its plan: vector, leader, counts and price."""
        return list(self.metadata["accesses"]["each"])

    def to_json(self) -> str:
        """The kernel as JSON text; `from_json` is the inverse."""
        return json.dumps({"ptx": self._ptx, "metadata": self.metadata, "tile": self._tile,
                           "simt": self._simt, "source": self._source and self._source._asdict()})

    @classmethod
    def from_json(cls, text: Any) -> Kernel:
        """The inverse of `to_json`, without compiling. Raises Error for other texts."""
        fields = object_of(text, "a kernel")
        try:
            source = fields["source"] and Source(**fields["source"])
            return cls(fields["ptx"], json.dumps(fields["metadata"]), fields["tile"], fields["simt"], source)
        except (KeyError, TypeError) as problem:
            raise Error(f"no kernel: {problem!r}") from None

    def _key(self) -> tuple[Any, ...]:
        facts = {**self._facts, "passes": [[one["name"], one["operations"]] for one in self._facts["passes"]]}
        return self._ptx, json.dumps(facts, sort_keys=True), self._tile, self._simt

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Kernel) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._ptx)

    def __reduce__(self) -> Any:
        return type(self), (self._ptx, self._metadata, self._tile, self._simt, self._source)

    def __repr__(self) -> str:
        return (f"<lilac.Kernel {self.name} for {self.target}: {self.num_warps} warps, "
                f"{self.shared} bytes of shared memory>")


def read_module(module: Text, file: Optional[str]) -> tuple[str, str]:
    """A module's text and its name in diagnostics."""
    path = isinstance(module, os.PathLike) or (
        isinstance(module, str) and "\n" not in module and module.endswith(_SUFFIXES))
    if path:
        with open(module, encoding="utf-8") as opened:
            return opened.read(), file or os.fspath(module)
    if not isinstance(module, str):
        raise TypeError(f"a module is its text, or the path of a {' or '.join(_SUFFIXES)} file, not {module!r}")
    return module, file or "<ttir>"


def count(name: str, value: Any, least: int = 1) -> int:
    """An integer option; 0 for None."""
    if value is None:
        return 0
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is an integer, not {value!r}") from None
    if not least <= number < 1 << 31:
        raise Error(f"{name} is an integer from {least} to {(1 << 31) - 1}, not {number}")
    return number


def device(target: Any) -> Optional[str]:
    """A device's name, or None."""
    if target is None or isinstance(target, str):
        return target
    raise TypeError(f"target is a device's name or None, not {target!r}")


def source_of(module: Text, file: Optional[str], target: Any, num_warps: Any, num_ctas: Any, num_stages: Any,
              flags: int) -> Source:
    text, name = read_module(module, file)
    return Source(text, name, device(target), count("num_warps", num_warps), count("num_ctas", num_ctas),
                  count("num_stages", num_stages), flags)


def compile(ttir: Text, *, target: Optional[str] = None, num_warps: Optional[int] = None,  # noqa: A001
            num_ctas: Optional[int] = None, num_stages: Optional[int] = None, line_info: bool = True,
            fuse: bool = True, file: Optional[str] = None, tile: bool = False,
            simt: bool = False, newest_ptx: Optional[int] = None, flush_subnormals: bool = True,
            launch_maps: bool = False, split_sums: bool = False, keep_warps: bool = False,
            keep_order: bool = False, one_block: bool = False) -> Kernel:
    """Compiles a module to PTX.

    ttir: the text of a module in TTIR or TTGIR (`kernel.asm["ttir"]` under Triton); or a file: a path
        object, or a str that ends in .ttir, .ttgir or .mlir.
    target, num_warps, num_ctas, num_stages: the device (see `devices`), warps of a block, blocks of a
        cluster, depth of software pipelines. None: what the module specifies, or else sm_90a, 4 warps,
        1 block and 3 stages.
    line_info: whether the PTX has the lines of the user's program.
    fuse: whether products and sums become fused multiply-adds; False rounds each.
    file: the module's name in diagnostics; None: the path, or "<ttir>".
    newest_ptx: the newest PTX ISA version that the assembler reads, times ten (86 for 8.6). The PTX is
        written in the oldest version that the kernel needs; a kernel that needs a newer one is refused.
        None: any.
    tile, simt: whether the kernel also keeps these texts.
    flush_subnormals: whether exp2, sqrt and rsqrt of f32 replace subnormal arguments and results by zero, as
        under Triton; False keeps them.
    launch_maps: whether the kernel may have further parameters, tensor maps that its launcher makes from the
        other arguments: `launch_maps` of the metadata says how, and `launch_conditions` for which launches the
        kernel is correct. The simulator makes them.
    split_sums: with launch_maps, whether the launcher may start several blocks for each program, which divide
        the iterations of a sum of products: `launch_split` of the metadata says how it decides.
    keep_warps: whether the kernel has num_warps warps even where another number is faster. `num_warps` of the
        metadata says how many it has, `asked_warps` how many it was to have.
    keep_order: whether programs start in the order of their numbers even where others have more work.
    one_block: whether the kernel is for launches in which no multiprocessor gets two blocks: it may then use the memory of
        others. It is correct for all launches. `launch_one_block` of the metadata of a kernel with launch_maps says that
        such a kernel differs.

    Raises CompilationError for a module that the compiler refuses, Error for an option outside its range,
    TypeError for one of another type, OSError for a file that cannot be read. Other Python threads run
    during the compilation."""
    flags = (_LINE_INFO if line_info else 0) | (0 if fuse else _NO_CONTRACTION) | (_TILE if tile else 0) \
        | (_SIMT if simt else 0) | (0 if flush_subnormals else _KEEP_SUBNORMALS) \
        | (_LAUNCH_MAPS if launch_maps else 0) | (_SPLIT_SUMS if split_sums else 0) \
        | (_KEEP_WARPS if keep_warps else 0) | (_KEEP_ORDER if keep_order else 0) | (_ONE_BLOCK if one_block else 0)
    source = source_of(ttir, file, target, num_warps, num_ctas, num_stages, flags)
    result = _core.compile(*source, count("newest_ptx", newest_ptx))
    if result[0] is None:
        raise CompilationError(diagnostics_of(source.text, result[1], result[2]))
    return Kernel(*result, source)


def devices() -> list[str]:
    """The names of the devices that the compiler has a row for: ["sm_80", …]."""
    return _core.devices()
