"""Explanations: what became of each line of a kernel, why, and at what cost."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

from . import _core
from .compiler import (_KEEP_ORDER, _KEEP_SUBNORMALS, _KEEP_WARPS, _LAUNCH_MAPS, _LINE_INFO, _NO_CONTRACTION, _ONE_BLOCK,
                       Kernel, Source, Text, count, source_of)
from .errors import CompilationError, Error, diagnostics_of

Grid = Union[int, Sequence[int]]


class _Pages:
    """A text with its JSON."""

    __slots__ = ("_json", "_text")

    def __init__(self, text: str, data: str) -> None:
        self._text = text
        self._json = data

    @property
    def json(self) -> dict[str, Any]:
        """The same as data (docs/explain.md); a new dict each time."""
        return dict(json.loads(self._json))

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self._text)}</pre>"


class Change(_Pages):
    """How a kernel differs with other options or with a layout that is forced on an operation. Its text is a
    table of what changes; `json` has the budgets before and after."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<lilac.Change: {self.json['change']}>"


class Explanation(_Pages):
    """What became of each line of a kernel. `explain` makes it; its text is that of `lilac explain`, and `json` is
    what `lilac explain --json` prints."""

    __slots__ = ("_launch", "_source")

    def __init__(self, source: Source, launch: tuple[Any, ...]) -> None:
        self._source = source
        self._launch = launch
        super().__init__(*_explain(source, launch, 0, None))

    def why(self, line: int) -> str:
        """One line of the program: each plan step by step, and the plans that were not chosen with their prices.
        Raises CompilationError where no operation comes from the line."""
        return str(_explain(self._source, self._launch, count("line", line), None)[0])

    def what_if(self, *, num_warps: Optional[int] = None, num_ctas: Optional[int] = None,
                num_stages: Optional[int] = None, layout: Optional[tuple[int, str]] = None,
                divisibility: Optional[Mapping[str, int]] = None) -> Change:
        """Compiles the kernel with a change, and compares.

        num_warps, num_ctas, num_stages: other options.
        layout: (line, "#ttg.blocked<{…}>"): a layout for the access, reduction, scan or gather of a line.
        divisibility: promises about parameters, powers of two by name: pointers are multiples of so many bytes.

        Raises CompilationError where the kernel then does not compile."""
        given = {"num_warps": num_warps, "num_ctas": num_ctas, "num_stages": num_stages}
        words = [f"{name}={value}" for name, value in given.items() if value is not None]
        line, text = (0, None) if layout is None else (count("line", layout[0]), str(layout[1]))
        if layout is not None:
            words.append(f"{line} layout={text}")
        divisors = [(str(name), count("divisibility", value)) for name, value in (divisibility or {}).items()]
        if any(value & (value - 1) for _, value in divisors):
            raise Error("divisibility is a power of two")
        words += [f"{name} divisibility={value}" for name, value in divisors]
        numbers = tuple(count(name, value) for name, value in given.items())
        return Change(*_explain(self._source, self._launch, 0, (*numbers, line, text, ", ".join(words), divisors)))

    def __repr__(self) -> str:
        facts = self.json
        return f"<lilac.Explanation of {facts['kernel']} for {facts['target']}>"


def _explain(source: Source, launch: tuple[Any, ...], line: int, change: Optional[tuple[Any, ...]]) -> tuple[str, str]:
    result = _core.explain(*source, *launch, line, change)
    if result[0] is None:
        raise CompilationError(diagnostics_of(source.text, result[1], result[2]))
    return result[0], result[1]


def _grid(grid: Optional[Grid]) -> tuple[int, int, int]:
    if grid is None:
        return 0, 0, 0
    sizes = [grid] if isinstance(grid, int) else list(grid)
    sizes = [count("grid", size) for size in sizes] + [1] * (3 - len(sizes))
    if len(sizes) != 3:
        raise ValueError(f"a grid has one to three sizes, not {len(sizes)}")
    return sizes[0], sizes[1], sizes[2]


def _value(value: Any) -> tuple[int, Optional[bytes]]:
    """The bits of an integer, or the bytes of an array."""
    if hasattr(value, "__index__") and not getattr(value, "shape", ()):
        return int(value) & (1 << 64) - 1, None
    return 0, memoryview(value).tobytes()


def explain(module: Union[Text, Kernel], *, grid: Optional[Grid] = None,
            arguments: Optional[Mapping[str, Any]] = None, target: Optional[str] = None,
            num_warps: Optional[int] = None, num_ctas: Optional[int] = None, num_stages: Optional[int] = None,
            trip_counts: Optional[Mapping[int, float]] = None, registers: Optional[int] = None, advice: bool = False,
            fuse: bool = True, file: Optional[str] = None, flush_subnormals: bool = True,
            launch_maps: bool = False, keep_warps: bool = False, keep_order: bool = False,
            one_block: bool = False) -> Explanation:
    """Explains a kernel: compiles it, and says what became of each line, why, and at what cost.

    module: as for `compile`; or a `Kernel`, whose options are kept.
    grid, arguments: the launch: its blocks, and values by the names of parameters: integers, and arrays for
        pointers to numbers that trip counts, masks and addresses depend on, such as lengths of sequences. Trip
        counts of loops, and with a grid the sectors that masked accesses touch, follow from them.
    trip_counts: the mean number of iterations of the loops of a line of the user's program, by line, where it depends on
        data that is not given.
    registers: registers of a thread, from the assembler; None: estimated.
    advice: whether variants with other options and promises are compiled, too; the text and the JSON have those
        that are predicted at least 5 % faster for the launch.
    target, num_warps, num_ctas, num_stages, fuse, file, flush_subnormals, launch_maps, keep_warps, keep_order, one_block: as
        for `compile`. With launch_maps and a grid whose blocks have a multiprocessor each, the kernel is that of one_block.

    Raises the exceptions of `compile`."""
    if isinstance(module, Kernel):
        source = module._source  # noqa: SLF001
        if source is None:
            raise TypeError("this kernel has no source; lilac.compile makes kernels that have one")
        source = source._replace(flags=source.flags & (_LINE_INFO | _NO_CONTRACTION | _KEEP_SUBNORMALS
                                                             | _LAUNCH_MAPS | _KEEP_WARPS | _KEEP_ORDER | _ONE_BLOCK))
    else:
        flags = _LINE_INFO | (0 if fuse else _NO_CONTRACTION) | (0 if flush_subnormals else _KEEP_SUBNORMALS) \
            | (_LAUNCH_MAPS if launch_maps else 0) | (_KEEP_WARPS if keep_warps else 0) \
            | (_KEEP_ORDER if keep_order else 0) | (_ONE_BLOCK if one_block else 0)
        source = source_of(module, file, target, num_warps, num_ctas, num_stages, flags)
    known = [(str(name), *_value(value)) for name, value in (arguments or {}).items()]
    loops = [(count("line", line), float(number)) for line, number in (trip_counts or {}).items()]
    return Explanation(source, (count("registers", registers), bool(advice), _grid(grid), known, loops))
