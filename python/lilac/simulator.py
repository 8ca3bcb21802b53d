"""The simulator: kernels run without a GPU, on NumPy arrays."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _core
from .compiler import (_KEEP_ORDER, _KEEP_SUBNORMALS, _KEEP_WARPS, _LAUNCH_MAPS, _NO_CONTRACTION, _SPLIT_SUMS, Kernel, Text, count,
                       source_of)
from .errors import CompilationError, Diagnostic, Error, SimulationError, diagnostics_of, object_of
from .tensor_map import TensorMap, tensor_element

if TYPE_CHECKING:
    import numpy

Grid = Union[int, Sequence[int]]

# The names of a pointer's element types in NumPy and ml_dtypes. For types that NumPy lacks, an array may also
# hold the bits as integers of their width.
_FLOATS = {"f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "f8E4M3FN": "float8_e4m3fn",
           "f8E5M2": "float8_e5m2", "f8E4M3FNUZ": "float8_e4m3fnuz", "f8E5M2FNUZ": "float8_e5m2fnuz",
           "f8E4M3B11FNUZ": "float8_e4m3b11fnuz"}
_IN_NUMPY = ("f16", "f32", "f64")
_BITS = {"bf16": 16, "f16": 16, "f32": 32, "f64": 64}


@dataclass(frozen=True)
class Run:
    """The report of a launch on the simulator; `run` returns it.

    `counters` are those of `lilac run --json`, summed over all blocks: warp instructions, sectors of global
    memory, wavefronts of shared memory, bytes, barriers … `findings` are races, uninitialised reads and the
    other findings of the simulator, and warnings of the compiler, each a `Diagnostic`; `printed` is the text that
    the kernel printed."""

    kernel: str
    target: str
    grid: tuple[int, int, int]
    num_warps: int
    shared: int
    """Bytes of shared memory of a block."""
    counters: dict[str, Any] = field(hash=False)
    findings: tuple[Diagnostic, ...]
    printed: str

    @property
    def races(self) -> int:
        """Warp instructions with a race."""
        return int(self.counters["races"])

    @property
    def uninitialised_reads(self) -> int:
        """Warp instructions that read uninitialised memory."""
        return int(self.counters["uninitialised_reads"])

    def to_json(self) -> str:
        """The fields as JSON text; `from_json` is the inverse."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: Any) -> Run:
        """The inverse of `to_json`. Raises Error for other texts."""
        fields = object_of(text, "a run")
        try:
            findings = tuple(Diagnostic.from_json(one) for one in fields["findings"])
            return cls(**{**fields, "grid": tuple(fields["grid"]), "findings": findings})
        except (KeyError, TypeError) as problem:
            raise Error(f"no run: {problem!r}") from None

    def _rows(self) -> list[tuple[str, int]]:
        """The counters that are not zero."""
        rows = [(name.replace("_", " "), value) for name, value in self.counters.items() if name != "access_bits"]
        rows += [(f"accesses of {bits} bits", value) for bits, value in self.counters["access_bits"].items()]
        return [(name, value) for name, value in rows if value]

    def _title(self) -> str:
        x, y, z = self.grid
        return (f"{self.kernel} on {self.target}: {x} × {y} × {z} blocks of {self.num_warps} warps, "
                f"{self.shared} bytes of shared memory each")

    def __str__(self) -> str:
        lines = [self._title(), *(str(one) for one in self.findings)]
        lines += [f"{name:<26} {value:>13}" for name, value in self._rows()]
        return "\n".join(lines + ([self.printed.rstrip("\n")] if self.printed else []))

    def _repr_html_(self) -> str:
        """The display in a notebook: the findings, the counters that are not zero, the printed text."""
        from html import escape

        rows = "".join(f"<tr><td>{escape(name)}</td><td>{value}</td></tr>" for name, value in self._rows())
        said = "".join(f"<pre>{escape(str(one))}</pre>" for one in self.findings)
        shown = f"<pre>{escape(self.printed)}</pre>" if self.printed else ""
        return f"<p>{escape(self._title())}</p>{said}<table>{rows}</table>{shown}"


def run(kernel: Union[Text, Kernel], grid: Grid, *arguments: Any, num_warps: Optional[int] = None,
        num_ctas: Optional[int] = None, target: Optional[str] = None, name: Optional[str] = None,
        fuse: bool = True, empty: Iterable[str] = (), threads: int = 0, limit: int = 0,
        file: Optional[str] = None, **named: Any) -> Run:
    """Runs a kernel on the simulator, which needs no GPU. Arrays change in place.

    kernel: a module in TTIR or TTGIR (its text or a file, as for `compile`); a module in SIMT IR, which runs
        unchanged, without any pass; or a `Kernel`, which excludes the options of compilation (num_warps,
        num_ctas, target, fuse, file). A file of SIMT text ends in .simt.
    grid: the number of programs: an int, or one to three of them, (x, y, z).
    arguments, named: the kernel's arguments, by position or by the names of its parameters. A parameter
        with the name of an option is passed by position, or with the others in one dict:
        ``run(module, 4, {"x": x, "grid": 7})``.
        For a pointer: an array whose elements have the parameter's type (in SIMT IR: any type), or None for a
        null pointer. The pointer is the address of the array's first element; strides are separate arguments
        of the kernel. Arrays may overlap. For bfloat16 and 8-bit floats: arrays of the types of ml_dtypes, or
        integers of the same width with the bits. An array that is not writeable is read-only memory.
        For a number: an int, float or bool, or a NumPy scalar.
        For a tensor descriptor: an array of the descriptor's rank, whose shape and strides are the tensor's.
        What a parameter `d` needs besides the array are parameters of their own, given by name only: `d_nan`
        (True: elements outside are read as NaN; the usual: zero), `d_shape0`, …, `d_stride0`, … Where
        tensor copies move its blocks (`tensordesc_meta` of the metadata), there is `d_nan` only.
        For a tensor map (`i64 tensor_map` in SIMT IR): a `TensorMap`. Tensor maps that the launcher makes
        (`launch_maps` of the metadata) are no arguments: they are made from the others.
    num_warps, num_ctas, target: as for `compile`. SIMT text contains them; others are refused.
    name: the name of the kernel in the module; None: the first kernel.
    fuse: as for `compile`; no effect on SIMT text.
    empty: names of parameters whose arrays are uninitialised, so that reading them is a finding.
    threads: host threads for the simulation; 0: one for each core.
    limit: instructions that a block may execute before the simulator stops it; 0: the simulator's own limit.
    file: the module's name in diagnostics.

    Returns a `Run`. Raises CompilationError for a module that the compiler refuses; SimulationError for a
    trap (an access outside an array, a failed assertion, …; the arrays' contents are then undefined) and for
    a launch that the simulator refuses; Error for an argument of a wrong element type or outside its range;
    TypeError for a missing or surplus argument and for objects of other types. Races, uninitialised reads and
    the other findings do not raise an exception.

    >>> import numpy
    >>> ttir = '''
    ... tt.func public @double(%x: !tt.ptr<i32>) {
    ...   %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    ...   %base = tt.splat %x : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
    ...   %at = tt.addptr %base, %range : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    ...   %old = tt.load %at : tensor<64x!tt.ptr<i32>>
    ...   %new = arith.addi %old, %old : tensor<64xi32>
    ...   tt.store %at, %new : tensor<64x!tt.ptr<i32>>
    ...   tt.return
    ... }
    ... '''
    >>> x = numpy.arange(64, dtype="int32")
    >>> done = run(ttir, 1, x, num_warps=1)
    >>> x[:4].tolist(), done.counters["global_load_sectors"], done.findings
    ([0, 2, 4, 6], 8, ())
    """
    if isinstance(kernel, Kernel):
        source = _source_of_kernel(kernel, (num_warps, num_ctas, target, file), fuse)
        name = kernel.name if name is None else name
    else:
        source = source_of(kernel, file, target, num_warps, num_ctas, None, 0 if fuse else _NO_CONTRACTION)
    prepared = _core.prepare(*source, name)
    if prepared[0] is None:
        raise CompilationError(diagnostics_of(source.text, prepared[1], prepared[2]))
    program, metadata, parameters = prepared
    facts = _facts(json.loads(metadata), name)
    binding = _Binding(facts["name"], parameters, empty, _boxes(facts), facts.get("launch_maps", ()))
    binding.bind(arguments, named)
    blocks = _grid(grid)
    completed, counters, printed, as_json, as_printed = _core.simulate(
        program, blocks, binding.values, binding.buffers(), binding.maps, binding.recipes(facts.get("launch_conditions", {})),
        count("threads", threads, 0), _limit(limit))
    findings = tuple(diagnostics_of(source.text, as_json, as_printed))
    if not completed:
        raise SimulationError(findings, printed)
    return Run(facts["name"], facts["target"], blocks, facts["num_warps"], facts["shared"] or 0,
               json.loads(counters), findings, printed)


def _source_of_kernel(kernel: Kernel, options: tuple[Any, ...], fuse: bool) -> Any:
    if any(option is not None for option in options) or not fuse:
        raise TypeError("a Kernel is compiled already: give num_warps, num_ctas, target, fuse and file to compile()")
    if kernel._source is None:
        raise Error("this Kernel does not have the text that it was compiled from; give run() that text")
    return kernel._source._replace(flags=kernel._source.flags & (_NO_CONTRACTION | _KEEP_SUBNORMALS | _LAUNCH_MAPS
                                                               | _SPLIT_SUMS | _KEEP_WARPS | _KEEP_ORDER))


def _facts(metadata: dict[str, Any], name: Optional[str]) -> dict[str, Any]:
    kernels = [metadata, *metadata.get("more_kernels", ())]
    return next(one for one in kernels if name is None or one["name"] == name)


def _boxes(facts: dict[str, Any]) -> dict[str, tuple[tuple[int, ...], int]]:
    """For each parameter that is the tensor map of a descriptor: the box and the swizzle that the kernel expects."""
    made = {one["parameter"] for one in facts.get("launch_maps", ())}
    descriptors = [one for number, one in enumerate(facts.get("parameters", ())) if number not in made
                   and (one["type"].startswith(_DESCRIPTOR) or "descriptor" in one)]
    return {one["name"]: (tuple(meta["block_size"]), (0, 32, 64, 128)[meta["swizzle"]])
            for one, meta in zip(descriptors, facts.get("tensordesc_meta", ())) if meta is not None}


def _grid(grid: Grid) -> tuple[int, int, int]:
    sizes = [grid] if hasattr(grid, "__index__") and not getattr(grid, "shape", ()) else list(grid)  # type: ignore
    if not 1 <= len(sizes) <= 3:
        raise Error(f"a grid has one to three sizes, not {len(sizes)}")
    x, y, z = [count("a size of the grid", size) for size in sizes] + [1] * (3 - len(sizes))
    return x, y, z


def _limit(limit: Any) -> int:
    if not hasattr(limit, "__index__"):
        raise TypeError(f"limit is an integer, not {limit!r}")
    if not 0 <= limit < 1 << 64:
        raise Error(f"limit is an integer from 0 to 2^64 - 1, not {limit}")
    return int(limit)


# The types of parameters that have an array.
_DESCRIPTOR = "!tt.tensordesc<"  # of a kernel that copies its blocks by a tensor map
_MAPS = (_DESCRIPTOR, "i64 tensor_map")
_WITH_MEMORY = ("!tt.ptr", "i64 ptr", *_MAPS)


class _Memory:
    """One buffer of the simulator: a range of bytes of this process, which several arrays may share."""

    def __init__(self, low: int, high: int, name: str, writeable: bool) -> None:
        self.low, self.high, self.name, self.writeable = low, high, name, writeable
        self.written: Optional[numpy.ndarray] = None


class _Binding:
    """Binds the arguments of a launch to the parameters of a kernel."""

    def __init__(self, kernel: str, parameters: Sequence[tuple[str, str, int, int]], empty: Iterable[str],
                 boxes: Mapping[str, tuple[tuple[int, ...], int]], made: Sequence[dict[str, Any]] = ()) -> None:
        self.kernel, self.boxes = kernel, boxes
        self.made = {one["parameter"]: one for one in made}  # tensor maps that the launcher makes
        self.parameters = [parameter[:3] for parameter in parameters]
        self.names = [parameter[0] for parameter in parameters]
        # Descriptors: the names of the parameters that are their shape, strides and padding, by their base.
        self.parts = {name: self.names[i + 1:i + 2 * rank + 2] for i, (name, _, _, rank) in enumerate(parameters)
                      if rank > 0}
        self.empty = {empty} if isinstance(empty, str) else set(empty)
        self.values: list[Any] = []
        self.memory: list[_Memory] = []
        self.arrays: dict[int, numpy.ndarray] = {}
        self.maps: list[tuple[Any, ...]] = []

    def bind(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        import numpy

        if len(arguments) == 1 and isinstance(arguments[0], Mapping):
            arguments, named = (), {**arguments[0], **named}
        by_name = {name for parts in self.parts.values() for name in parts}
        by_name |= {self.names[number] for number in self.made}
        declared = [name for name in self.names if name not in by_name]
        if len(arguments) > len(declared):
            raise TypeError(f"{self.kernel} has {len(declared)} parameters "
                            f"({', '.join(declared)}), not {len(arguments)}")
        given = dict(zip(declared, arguments))
        padded = {name for name in self.boxes if named.get(f"{name}_nan")}
        named = {name: value for name, value in named.items() if not name.endswith("_nan") or name[:-4] not in self.boxes}
        for name, value in named.items():
            if name not in self.names:
                raise TypeError(f"{self.kernel} has no parameter {name!r}, and run() no such option; its "
                                f"parameters are {', '.join(self.names)}")
            if name in given:
                raise TypeError(f"{self.kernel}: two values for {name!r}")
            if self.names.index(name) in self.made:
                raise TypeError(f"{self.kernel}: {name!r} is a tensor map that the launcher makes from the other "
                                "arguments")
            given[name] = value
        for base, parts in self.parts.items():
            if base in given:
                given = {**_descriptor(base, parts, given[base], given), **given}
        for name, (box, swizzle) in self.boxes.items():
            if isinstance(given.get(name), numpy.ndarray):
                given[name] = _map_of(name, given[name], box, swizzle, "nan" if name in padded else "zero")
        given.update((self.names[number], None) for number in self.made)
        missing = [f"{name}: {kind}" for name, kind, _ in self.parameters if name not in given]
        if missing:
            raise TypeError(f"{self.kernel}: no value for {', '.join(missing)}")
        unknown = self.empty - {name for name, kind, _ in self.parameters if kind.startswith(_WITH_MEMORY)}
        if unknown:
            raise Error(f"{self.kernel} has no pointer parameter {sorted(unknown)[0]!r}, which `empty` names")
        self.values = [self._value(i, *parameter, given[parameter[0]])
                       for i, parameter in enumerate(self.parameters)]
        self._place()
        self._place_maps(given)

    def _value(self, number: int, name: str, kind: str, divisor: int, value: Any) -> Any:
        if kind.startswith("!tt.ptr<"):
            return self._pointer(number, name, kind[len("!tt.ptr<"):].split(">")[0].split(",")[0], value)
        if kind == "i64 ptr":
            return self._pointer(number, name, None, value)
        if kind.startswith(_MAPS):
            return 0 if number in self.made else self._tensor_map(number, name, value)
        if kind[:1] == "i" and kind[1:].isdigit() and int(kind[1:]) <= 64:
            return _integer(name, kind, divisor, value)
        if kind[:1] in "fb" and "x" not in kind:
            return _core.encode(kind, _number(name, kind, value))
        raise Error(f"{name}: parameters of type {kind} are not supported on the simulator")

    # ---- memory ---------------------------------------------------------------------------

    def _pointer(self, number: int, name: str, element: Optional[str], value: Any) -> int:
        """Registers the array of a pointer to `element`; None: the kernel does not name the element type."""
        import numpy

        if value is None:
            return 0
        if not isinstance(value, numpy.ndarray):
            pointee = f" to {element}" if element is not None else ""
            raise TypeError(f"{name} is a pointer{pointee}: give a NumPy array, not {type(value).__name__}; "
                            "results are written into it")
        if element is not None and not _holds(value.dtype, element):
            raise Error(f"{name} is a pointer to {element}, which needs {_needed(element)}, "
                        f"not an array of {value.dtype}")
        self.arrays[number] = value
        return 0

    def _tensor_map(self, number: int, name: str, value: Any) -> int:
        if not isinstance(value, TensorMap):
            what = "a tensor descriptor: give an array" if name in self.boxes else \
                "a tensor map: give lilac.TensorMap(array, box)"
            raise TypeError(f"{name} is {what}, not {type(value).__name__}")
        self.arrays[number] = value.array
        return 0

    def _place_maps(self, given: Mapping[str, Any]) -> None:
        """Replaces the place of each tensor map's array by the number of the map."""
        for number, (name, kind, _) in enumerate(self.parameters):
            if kind.startswith(_MAPS):
                self.maps.append(_row_of(self.made[number]) if number in self.made else
                                 given[name]._row(self.values[number]))
                self.values[number] = len(self.maps) - 1

    def _place(self) -> None:
        """Gives each pointer a buffer and an offset; arrays that overlap share a buffer."""
        import numpy

        bounds = getattr(numpy, "lib").array_utils.byte_bounds if hasattr(numpy.lib, "array_utils") \
            else numpy.byte_bounds  # type: ignore[attr-defined]
        spans = {number: bounds(array) if array.size else (array.ctypes.data, array.ctypes.data)
                 for number, array in self.arrays.items()}
        of: dict[int, int] = {}
        for number, (low, high) in sorted(spans.items(), key=lambda item: item[1]):
            name, writeable = self.names[number], bool(self.arrays[number].flags.writeable)
            last = self.memory[-1] if self.memory else None
            if last is not None and low < last.high:
                last.high = max(last.high, high)
                last.name += f", {name}"
                last.writeable |= writeable
            else:
                self.memory.append(_Memory(low, high, name, writeable))
            of[number] = len(self.memory) - 1
        for number, array in self.arrays.items():
            offset = array.ctypes.data - self.memory[of[number]].low
            divisor = self.parameters[number][2]
            if divisor > 1 and offset % divisor:
                promise = "align" if self.parameters[number][1].startswith("i64") else "tt.divisibility"
                raise Error(f"{self.names[number]} is compiled for addresses that are multiples of {divisor} bytes "
                            f"({promise}); this array begins {offset} bytes into memory of another one")
            self.values[number] = (of[number], offset)
        for name in self.empty:
            number = self.names.index(name)
            if number in of:
                self._mark_empty(self.memory[of[number]], spans[number])

    def recipes(self, conditions: Mapping[str, Any]) -> tuple[Any, ...]:
        """How _core.simulate makes the maps of the launcher, and the conditions of the launch."""
        if not self.made:
            return [], [0, 0, 0], []
        maps = [(one["parameter"], one["base"], one["offset"], one["sizes"], one["strides"])
                for one in self.made.values()]
        return maps, conditions["grid"], conditions["parameters"]

    @staticmethod
    def _mark_empty(memory: _Memory, span: tuple[int, int]) -> None:
        import numpy

        if memory.written is None:
            memory.written = numpy.ones(max(memory.high - memory.low, 1), dtype=numpy.uint8)
        memory.written[span[0] - memory.low:span[1] - memory.low] = 0

    def buffers(self) -> list[tuple[Any, ...]]:
        return [(one.name, one.low, one.high - one.low, 0 if one.written is None else one.written.ctypes.data,
                 not one.writeable) for one in self.memory]


def _holds(dtype: Any, element: str) -> bool:
    """Whether an array of this type can hold what a pointer to `element` points to."""
    if element == "i1":
        return dtype.kind == "b"
    if element[:1] == "i":
        return dtype.kind in "iu" and dtype.itemsize * 8 == int(element[1:])
    if element in _IN_NUMPY:
        return bool(dtype.name == _FLOATS[element])
    raw = dtype.kind in "iu" and dtype.itemsize * 8 == _BITS.get(element, 8)
    return element in _FLOATS and (raw or dtype.name == _FLOATS[element])


def _needed(element: str) -> str:
    if element == "i1":
        return "an array of bool"
    if element[:1] == "i":
        return f"an array of int{element[1:]} or uint{element[1:]}"
    if element in _IN_NUMPY:
        return f"an array of {_FLOATS[element]}"
    if element in _FLOATS:
        width = _BITS.get(element, 8)
        return f"an array of ml_dtypes.{_FLOATS[element]}, or of its bits as uint{width}"
    return "elements that NumPy does not have"


def _descriptor(name: str, parts: Sequence[str], array: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a descriptor's parts that follow from its array; none where all are given."""
    import numpy

    rank = len(parts) // 2
    if all(part in given for part in parts[:-1]) or not isinstance(array, numpy.ndarray):
        return {parts[-1]: False}
    if array.ndim != rank:
        raise Error(f"{name} is a descriptor of {rank} dimensions; the array has {array.ndim}")
    if any(stride % array.itemsize for stride in array.strides):
        raise Error(f"{name}: the strides of the array are not whole elements")
    strides = [stride // array.itemsize for stride in array.strides]
    if array.shape[-1] > 1 and strides[-1] != 1:
        raise Error(f"{name}: the last dimension of a descriptor is contiguous; the array has a stride of "
                    f"{array.strides[-1]} bytes there, for elements of {array.itemsize}")
    if max(array.shape) >= 1 << 31:
        raise Error(f"{name}: a descriptor has at most 2^31 - 1 elements along a dimension")
    return dict(zip(parts, [*array.shape, *strides, False]))


def _row_of(made: Mapping[str, Any]) -> tuple[Any, ...]:
    """A tensor map that the launcher makes, as _core.simulate reads it, without what follows from the arguments."""
    rank = len(made["block_size"])
    return (None, 0, tensor_element(made["elem_type"]), made["swizzle"], 0, 128, (0,) * rank, (0,) * (rank - 1),
            tuple(made["block_size"][::-1]))


def _map_of(name: str, array: Any, box: tuple[int, ...], swizzle: int, fill: str) -> TensorMap:
    """The tensor map of a descriptor whose tensor is the array."""
    if array.ndim != len(box):
        raise Error(f"{name} is a descriptor of {len(box)} dimensions; the array has {array.ndim}")
    if array.shape[-1] > 1 and array.strides[-1] != array.itemsize:
        raise Error(f"{name}: the last dimension of a descriptor is contiguous; the array has a stride of "
                    f"{array.strides[-1]} bytes there, for elements of {array.itemsize}")
    return TensorMap(array, box, swizzle=swizzle, fill=fill)


def _integer(name: str, kind: str, divisor: int, value: Any) -> int:
    bits = int(kind[1:])
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        value = int(value)
    if not hasattr(value, "__index__") or getattr(value, "shape", ()):
        raise TypeError(f"{name} is {kind}: give an integer, not {value!r}")
    number = value.__index__()
    if not -(1 << bits - 1) <= number < 1 << bits:
        raise Error(f"{name} is {kind}: {number} is outside its range")
    if divisor > 1 and number % divisor:
        raise Error(f"{name}: the kernel is specialised for multiples of {divisor} (tt.divisibility); "
                    f"{number} is not a multiple")
    return int(number & (1 << bits) - 1)


def _number(name: str, kind: str, value: Any) -> float:
    if not hasattr(value, "__float__") or getattr(value, "shape", ()):
        raise TypeError(f"{name} is {kind}: give a number, not {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise Error(f"{name} is {kind}: {value} is outside its range") from None
