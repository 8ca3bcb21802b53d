"""Plans between layouts: how a tensor gets from one to another, through which memory, at which price."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Optional, Union

from . import _core, pictures
from .compiler import count, device
from .errors import Diagnostic, Error, LayoutError, object_of, refused_text
from .layout import Layout

LayoutLike = Union[str, Layout]

_WAYS = ("any", "shuffles", "shared", "unswizzled")  # lilac_plan_strategy


@dataclass(frozen=True)
class Access:
    """How the warps of a block store a tensor to shared memory, or load it from there."""

    instruction: str
    """"vector", "matrix" (ldmatrix, stmatrix) or "matrix transposed"."""
    bytes: int
    """Bytes that an instruction moves for each thread."""
    instructions: int
    """Instructions of all warps of a block."""
    wavefronts: int
    """Wavefronts of these instructions: clocks of shared memory."""
    immediates: int
    """Of `register_bits` address bits that a thread's instructions differ in, how many are immediates."""
    register_bits: int

    def __str__(self) -> str:
        return (f"{self.instructions} {self.instruction} instructions of {self.bytes} bytes a thread, "
                f"{self.wavefronts} wavefronts; {self.immediates} of {self.register_bits} address bits of "
                "registers are immediates")


class _Data:
    """The base of the classes of this module: JSON, and texts and pictures for a notebook.

    A Layout is {"bases": …, "outs": …} in JSON; a mapping or a list is itself."""

    def to_json(self) -> str:
        """All fields as JSON text; `from_json` is the inverse."""
        return json.dumps({one.name: _plain(getattr(self, one.name)) for one in fields(self)})  # type: ignore

    @classmethod
    def from_json(cls, text: Any) -> Any:
        """The inverse of `to_json`, without planning anew. Raises Error for other texts."""
        data = object_of(text, f"a {cls.__name__}")
        names = {one.name: one for one in fields(cls)}  # type: ignore[arg-type]
        if set(names) != set(data):
            different = sorted(set(names) ^ set(data))
            raise Error(f"no {cls.__name__} in JSON: fields {', '.join(different)} are missing or unknown")
        return cls(**{name: _restored(names[name].metadata.get("kind"), value) for name, value in data.items()})

    def svg(self) -> str:
        """The picture as an SVG document."""
        raise NotImplementedError

    def _repr_svg_(self) -> Optional[str]:
        return self.svg()

    def _repr_html_(self) -> str:
        """The display in a notebook: the picture, and the explanation below it."""
        from html import escape

        return f"{self.svg()}<pre>{escape(str(self))}</pre>"


def _plain(value: Any) -> Any:
    if isinstance(value, Layout):
        return {"bases": value.bases, "outs": value.out_dims}
    if isinstance(value, Access):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    return value


def _restored(kind: Optional[str], value: Any) -> Any:
    try:
        if kind == "layout":
            return value and Layout.from_bases(value["bases"], value["outs"])
        if kind == "layouts":
            return tuple(_restored("layout", one) for one in value)
        if kind == "access":
            return Access(**value)
        if kind == "tuple":
            return tuple(tuple(one) if isinstance(one, list) else one for one in value)
    except (KeyError, TypeError) as problem:
        raise Error(f"no {kind} in JSON: {problem!r}") from None
    return value


def _of(kind: str) -> Any:
    return field(metadata={"kind": kind})


def _unhashed() -> Any:
    return field(hash=False)


@dataclass(frozen=True)
class Plan(_Data):
    """How a tensor gets from one distributed layout to another: an immutable value. `convert` makes it.

    Counts are of all warps of one block."""

    source: Layout = _of("layout")
    target: Layout = _of("layout")
    element_bits: int
    device: str
    through: str
    """The strategy that was asked for."""
    scratch: int
    """The bytes of shared memory that it was allowed; 0: a quarter of what a block can have."""
    kind: str
    """"none", "registers", "shuffles", "shared" or "cluster"."""
    steps: tuple[dict[str, Any], ...] = field(hash=False, metadata={"kind": "tuple"})
    """The steps in order, each a dict: {"step": "register permutation" | "shuffle" | "shared-memory exchange", …}."""
    layouts: tuple[Layout, ...] = _of("layouts")
    """The layout after each step; the last is `target`, but for the order of copies."""
    memory: Optional[Layout] = _of("layout")
    """The layout of shared memory, offset (in elements) → tensor; None without such a step."""
    instructions: dict[str, int] = _unhashed()
    """Instructions by kind: shuffle, select, permute, pack, store, load, barrier."""
    wavefronts: dict[str, int] = _unhashed()
    """Wavefronts of shared memory: store, load."""
    lower_bound: dict[str, Any] = _unhashed()
    """The lower bound on the wavefronts of all memory layouts: store, load; floor, met, by_price."""
    shared_bytes: int
    cycles: float
    """The price: clocks of a multiprocessor."""
    simulated: Optional[dict[str, int]] = _unhashed()
    """The simulator's counts by name; None if the plan was not simulated."""
    correct: Optional[bool]
    """Whether the simulation left its element in every register of every thread."""
    as_planned: Optional[bool]
    """Whether the simulator counted what was planned."""
    explanation: str
    """The moved bits and their steps, the price of the plan, and the prices of the alternatives."""

    @property
    def why(self) -> str:
        """The kind of the plan and the reason for it, in one line."""
        return self.explanation.splitlines()[1]

    @property
    def ptx(self) -> str:
        """A kernel that carries the plan out and nothing else, as PTX: ``convert(source, target)``."""
        return self._text("ptx")

    @property
    def simt(self) -> str:
        """That kernel as SIMT IR, what one thread does."""
        return self._text("simt")

    def _text(self, form: str) -> str:
        return _core.plan_text(self.source, self.target, self.element_bits, _WAYS.index(self.through), self.scratch,
                               self.device, 0, form)

    def svg(self) -> str:
        """The picture: the shared memory by its banks, or else the matrix from the source's registers, lanes
        and warps to the target's."""
        title = f"{self.kind}: {self.cycles:g} clocks"
        if self.memory is not None:
            return pictures.memory(self.memory, self.element_bits, title)
        return pictures.matrix(self.source.invert_and_compose(self.target), title)

    def __str__(self) -> str:
        lines = [self.explanation.rstrip("\n")]
        if self.simulated is not None:
            lines += ["", f"simulated on {self.device}"]
            lines += [f"  {name:<20} {value}" for name, value in self.simulated.items() if value]
            lines.append("  correct, as planned" if self.correct and self.as_planned
                         else "  NOT correct" if not self.correct else "  correct, but NOT as planned")
        return "\n".join(lines)

    def __repr__(self) -> str:
        total = sum(self.wavefronts.values())
        return f"<lilac.Plan {self.why}; {self.cycles:g} clocks, {total} wavefronts, on {self.device}>"


@dataclass(frozen=True)
class Swizzle(_Data):
    """The memory layout through which a tensor gets from one layout to another with the fewest wavefronts: an
    immutable value. `swizzle` makes it."""

    memory: Layout = _of("layout")
    """offset (in elements) → tensor."""
    element_bits: int
    device: str
    named: Optional[str]
    """Triton's attribute for it, or None."""
    cute: Optional[str]
    """CuTe's layout for it, or None."""
    formula: str
    """The offset of the element at (i), (m, n), (l, m, n) or (d0, d1, …)."""
    bits: tuple[str, ...] = _of("tuple")
    """The coordinates' bits that make each bit of the offset: "n0^m3"."""
    block_bits: tuple[str, ...] = _of("tuple")
    """The same of the block, for clusters."""
    store: Access = _of("access")
    load: Access = _of("access")
    lower_bound: dict[str, Any] = _unhashed()
    """The lower bound on the wavefronts of all memory layouts (store, load), and whether this one meets it."""
    unswizzled: Optional[dict[str, int]] = _unhashed()
    """Wavefronts in row-major memory: store, load; None where that memory is too large."""
    family_bits: int
    """log2 of the number of layouts of the same kind that are as good."""
    rounds: int
    shared_bytes: int
    simulated: Optional[dict[str, int]] = _unhashed()
    correct: Optional[bool]
    as_planned: Optional[bool]

    @property
    def explanation(self) -> str:
        """The layout, its names, its formula, and the wavefronts of stores and loads."""
        bound = self.lower_bound
        lines = [str(self.memory)]
        lines += [f"  as       {self.named}"] if self.named else []
        lines += [f"  CuTe     {self.cute}"] if self.cute else []
        lines += [f"  offset   {self.formula}", f"  store    {self.store}", f"  load     {self.load}"]
        lines += [f"  rounds   {self.rounds}, one after another in {self.shared_bytes} bytes"] \
            if self.rounds > 1 else []
        lines += [f"  bound    {bound['store']} + {bound['load']} wavefronts, whatever the memory layout: "
                  f"{'met' if bound['met'] else 'not met'}"]
        if self.unswizzled is not None:
            lines += [f"  without  {self.unswizzled['store']} + {self.unswizzled['load']} wavefronts in "
                      "row-major memory"]
        return "\n".join(lines)

    def svg(self) -> str:
        """The picture: the memory by its banks, and the element in each place."""
        return pictures.memory(self.memory, self.element_bits, f"offset = {self.formula}")

    def __str__(self) -> str:
        return self.explanation

    def __repr__(self) -> str:
        return (f"<lilac.Swizzle offset = {self.formula}, {self.store.wavefronts} + {self.load.wavefronts} "
                f"wavefronts, on {self.device}>")


@dataclass(frozen=True)
class Conflicts(_Data):
    """Bank conflicts of a tensor in shared memory: an immutable value. `conflicts` makes it.

    Instructions and wavefronts are of all warps of a block, storing the tensor or loading it."""

    tensor: Layout = _of("layout")
    memory: Layout = _of("layout")
    """offset (in elements, without padding) → tensor."""
    padding: tuple[tuple[int, int], ...] = _of("tuple")
    """(interval, padding) in elements."""
    element_bits: int
    device: str
    banks: int
    bank_bytes: int
    vector: int
    """Elements of one instruction of a thread."""
    warps: int
    instructions: int
    wavefronts: int
    transactions: int
    """Transactions of one instruction of a warp, each of `transaction_lanes` lanes."""
    transaction_lanes: int
    conflicts: int
    """Wavefronts of a transaction beyond the first."""
    addresses: tuple[int, ...] = _of("tuple")
    """Byte address of each lane of the first transaction."""
    simulated_wavefronts: int
    correct: bool
    """Whether the simulated stores left every element at its place."""

    @property
    def least(self) -> int:
        """Wavefronts without conflicts."""
        return self.instructions * self.transactions

    @property
    def words(self) -> dict[int, dict[int, tuple[int, ...]]]:
        """{bank: {byte address of a word: lanes}} of the first transaction, by the bank of the first word of
        each lane. Lanes of one bank with different words wait for each other."""
        found: dict[int, dict[int, list[int]]] = {}
        for lane, address in enumerate(self.addresses):
            word = address // self.bank_bytes
            found.setdefault(word % self.banks, {}).setdefault(word * self.bank_bytes, []).append(lane)
        return {bank: {word: tuple(lanes) for word, lanes in found[bank].items()} for bank in sorted(found)}

    @property
    def explanation(self) -> str:
        """The counts, and where there are conflicts which lanes wait for each other."""
        total = self.vector * self.element_bits // 8
        at_most = "at most " if self.padding else ""
        lines = [f"{self.device}, {self.banks} banks of {self.bank_bytes} bytes",
                 f"  an instruction  {self.vector} elements of {total} bytes a thread, {self.transactions} "
                 f"transactions of {self.transaction_lanes} lanes",
                 f"  a transaction   {at_most}{self.conflicts + 1} wavefronts: {self.conflicts} conflicts",
                 f"  {self.warps} warps         {self.instructions} instructions, {self.wavefronts} wavefronts; "
                 f"without conflicts {self.least}",
                 f"  simulated       {self.simulated_wavefronts} wavefronts"]
        if self.conflicts:
            lines.append("  first transaction, lane@byte address; lanes of one bank wait for each other")
            lines += [f"  bank {bank:2}   " + "  ".join(f"{'+'.join(map(str, lanes))}@{word}"
                                                     for word, lanes in words.items())
                      for bank, words in self.words.items()]
        return "\n".join(lines)

    def svg(self) -> str:
        """The picture: the memory by its banks, and the element in each place."""
        return pictures.memory(self.memory, self.element_bits,
                               f"{self.wavefronts} wavefronts, without conflicts {self.least}", self.padding)

    def __str__(self) -> str:
        return self.explanation

    def __repr__(self) -> str:
        return (f"<lilac.Conflicts {self.wavefronts} wavefronts, without conflicts {self.least}; "
                f"{self.conflicts} a transaction, on {self.device}>")


# ---- making them ---------------------------------------------------------------------------


class _Typed(NamedTuple):
    layout: Layout
    element: Optional[tuple[Any, ...]]
    """The type of the elements, for comparison with another type; None: the text, or a Layout, does not name it."""
    bits: int
    padding: list[tuple[int, int]]


def _typed(what: LayoutLike, name: str) -> _Typed:
    if isinstance(what, Layout):
        return _Typed(what, None, 0, [])
    if not isinstance(what, str):
        raise TypeError(f"{name} is a Layout, or the text of a type such as "
                        f"'tensor<16x16xf32, #ttg.blocked<{{…}}>>', not {what!r}")
    if what.lstrip().startswith("#"):
        raise shape_missing(what, "a type such as 'tensor<16x16xf32, #ttg.blocked<{…}>>', or "
                                  "Layout.from_triton(…, shape=…) with dtype=")
    answer = _core.read_type(Layout, what, f"<{name}>")
    if len(answer) == 2:
        raise refused_text(*answer)
    layout, element, bits, pointers, padding = answer
    return _Typed(layout, None if element is None else (element, pointers), bits, padding)


def shape_missing(text: str, give: str) -> LayoutError:
    """The error for an attribute where a type is expected."""
    message = f"{text.strip()[:60]!r} is an attribute, which has no shape: give {give}"
    return LayoutError(message, [Diagnostic("shape-missing", message)])


_WIDTHS = {"i1": 8, "bf16": 16, "tf32": 32}


def element_width(dtype: Any) -> int:
    """The bits of an element, from a number of bits, the name of an MLIR type, or an argument of numpy.dtype."""
    if hasattr(dtype, "__index__") and not isinstance(dtype, type):
        return count("dtype, in bits,", dtype)
    if isinstance(dtype, str):
        if dtype in _WIDTHS:
            return _WIDTHS[dtype]
        if dtype[:2] == "f8":
            return 8
        if dtype[:1] in "if" and dtype[1:].isdigit() and int(dtype[1:]) >= 8:
            return int(dtype[1:])
    import numpy

    try:
        return int(numpy.dtype(dtype).itemsize) * 8
    except TypeError:
        raise Error(f"dtype is a NumPy dtype, a name such as 'f16' or 'bf16', or a number of bits, not "
                    f"{dtype!r}") from None


def _same_elements(first: _Typed, second: _Typed, dtype: Any) -> int:
    """The width of the elements of both."""
    if first.element is not None and second.element is not None and first.element != second.element:
        message = f"element types differ: {first.element[0]} and {second.element[0]}"
        raise LayoutError(message, [Diagnostic("element-types-differ", message)])
    bits = first.bits or second.bits
    if dtype is not None:
        width = element_width(dtype)
        if bits and width != bits:
            raise Error(f"dtype has {width} bits, the elements of the type {bits}")
        return width
    if not bits:
        raise TypeError("a Layout does not say what its elements are: give dtype='f16', or a number of bits")
    return bits


def _distributed(typed: _Typed, name: str) -> Layout:
    if "register" in typed.layout.in_dims:
        return typed.layout
    message = f"{name}: a tensor that registers, lanes and warps hold is expected, not memory"
    raise LayoutError(message, [Diagnostic("layout-of-memory", message)])


def _pair(src: LayoutLike, dst: LayoutLike, dtype: Any) -> tuple[Layout, Layout, int]:
    source, target = _typed(src, "src"), _typed(dst, "dst")
    bits = _same_elements(source, target, dtype)
    return _distributed(source, "src"), _distributed(target, "dst"), bits


def _simulated(made: Mapping[str, Any]) -> Optional[dict[str, int]]:
    return {name: value for name, _, value in made["counts"]} if "counts" in made else None


def convert(src: LayoutLike, dst: LayoutLike, *, dtype: Any = None, through: str = "any",
            scratch: Optional[int] = None, target: Optional[str] = None, check: bool = True) -> Plan:
    """Plans how a tensor gets from one distributed layout to another.

    src, dst: tensor types, "tensor<64x64xf16, #ttg.blocked<{…}>>", or Layouts with inputs register, lane,
        warp (and block) and the same outputs.
    dtype: the elements, where both are Layouts: "f16", a NumPy dtype, or a number of bits (8 to 128).
    through: "any", the cheapest way; "shuffles"; "shared", the best swizzle; "unswizzled", row-major memory.
    scratch: bytes of shared memory that the plan may use; None: a quarter of a block's maximum.
    target: the device (see `devices`); None: sm_90a, or gfx942 for 64 lanes.
    check: whether the plan's kernel runs on the simulator, which compares every register of every thread, and
        all counts with the plan's.

    Returns a `Plan`. Raises LayoutError for a text that is refused, for layouts that do not hold the same
    tensor and for a way that cannot be taken; Error for options outside their range; TypeError for objects of
    wrong types.

    >>> a = Layout.from_bases({"register": [[0, 1]], "lane": [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]})
    >>> plan = convert(a, a.transpose([1, 0]), dtype="f32")
    >>> plan.kind, plan.instructions["shuffle"], plan.correct
    ('shuffles', 2, True)
    """
    source, to, bits = _pair(src, dst, dtype)
    if not isinstance(through, str):
        raise TypeError(f"through is one of {', '.join(_WAYS)}, not {through!r}")
    if through not in _WAYS:
        raise Error(f"through is one of {', '.join(_WAYS)}, not {through!r}")
    made = _core.plan(source, to, bits, _WAYS.index(through), count("scratch", scratch), device(target), 0, check)
    facts = json.loads(made["plan"])
    return Plan(source, to, bits, made["device"], through, count("scratch", scratch), facts["kind"],
                tuple(facts["steps"]), tuple(made["layouts"]), made.get("memory"), facts["instructions"],
                facts["wavefronts"], facts["lower_bound"], facts["shared_bytes"], facts["cycles"], _simulated(made),
                made.get("correct"), made.get("as_planned"), made["explanation"])


def _access(facts: Mapping[str, Any]) -> Access:
    steps, threads = facts["step"], [*facts["lane"], *facts["warp"]]
    immediates = 0
    for i, step in enumerate(steps):
        others = threads + steps[:i] + steps[i + 1:]
        immediates += not any(step & other for other in others)
    return Access(facts["instruction"], facts["bytes"], facts["instructions"], facts["wavefronts"], immediates,
                  len(steps))


def swizzle(src: LayoutLike, dst: LayoutLike, *, vector: Optional[int] = None, dtype: Any = None,
            scratch: Optional[int] = None, target: Optional[str] = None, check: bool = True) -> Swizzle:
    """Finds the layout of shared memory through which a tensor gets from one distributed layout to another
    with the fewest wavefronts.

    src, dst, dtype, scratch, target, check: as for `convert`.
    vector: bytes of a thread's widest access, a power of two, and no matrix instructions; None: all that the
        device has. 4 gives the swizzles of textbooks.

    Returns a `Swizzle`. Raises what `convert` raises.

    >>> a = Layout.from_bases({"register": [[1, 0], [2, 0]], "lane": [[0, 1 << i] for i in range(5)]})
    >>> b = Layout.from_bases({"register": [[0, 8], [0, 16]], "lane": [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]]})
    >>> swizzle(a, b, vector=4, dtype="f32").formula
    '32*m + (n ^ 8*m)'
    """
    source, to, bits = _pair(src, dst, dtype)
    widest = count("vector, in bytes,", vector)
    if widest & (widest - 1):
        raise Error(f"vector is a power of two of bytes, not {vector}")
    options = (count("scratch", scratch), device(target), widest)
    made = _core.plan(source, to, bits, _WAYS.index("shared"), *options, check)
    facts = json.loads(made["plan"])
    try:
        plain = json.loads(_core.plan(source, to, bits, _WAYS.index("unswizzled"), *options, False)["plan"])
    except LayoutError:  # such as too much memory: there is no comparison
        plain = {"wavefronts": None}
    staging = next(step for step in facts["steps"] if step["step"] == "shared-memory exchange")
    simulated = _simulated(made)
    waves = None if simulated is None else {side: simulated[f"{side} wavefronts"] // made["blocks"]
                                            for side in ("store", "load")}
    bound = {key: facts["lower_bound"][key] for key in ("store", "load", "met")}
    return Swizzle(made["memory"], bits, made["device"], made["named"], made["cute"], made["formula"] or "",
                   tuple(made["bits"]), tuple(made["block_bits"]), _access(staging["store"]), _access(staging["load"]),
                   bound, plain["wavefronts"], staging["family_bits"], staging["rounds"], staging["bytes"], waves,
                   made.get("correct"), made.get("as_planned"))


def conflicts(tensor: LayoutLike, memory: LayoutLike, *, dtype: Any = None,
              target: Optional[str] = None) -> Conflicts:
    """Counts the wavefronts of storing a tensor in shared memory, which are also those of loading it, by
    formula and on the simulator.

    tensor: a tensor type or a Layout with inputs register, lane and warp.
    memory: a memdesc type, "!ttg.memdesc<64x64xf16, #ttg.swizzled_shared<{…}>, #smem>"; a CuTe layout,
        "(64,64):(64,1)"; a form of memory, "row_major(64x64)", "padded(64x64, 64:+8)"; or a Layout with inputs
        offset (in elements) and block.
    dtype: the elements, if neither text names them: "f16", a NumPy dtype, or a number of bits.
    target: the device; None: sm_90a, or gfx942 for 64 lanes.

    Returns a `Conflicts`. Raises as `convert` does.

    >>> rows = Layout.from_bases({"register": [], "lane": [[1 << i, 0] for i in range(5)], "warp": [[0, 1]]})
    >>> conflicts(rows, "row_major(32x2)", dtype="f32").conflicts
    1
    """
    one, other = _typed(tensor, "tensor"), _typed(memory, "memory")
    bits = _same_elements(one, other, dtype)
    distributed = _distributed(one, "tensor")
    if "register" in other.layout.in_dims:
        message = "memory: a layout of memory is expected, not of a tensor"
        raise LayoutError(message, [Diagnostic("layout-of-tensor", message)])
    padding = [(min(interval, (1 << 32) - 1), min(pad, (1 << 32) - 1)) for interval, pad in other.padding]
    made = _core.access(distributed, other.layout, padding, bits, device(target))
    return Conflicts(distributed, other.layout, tuple(padding), bits, made["device"], made["banks"],
                     made["bank_bytes"], made["vector"], made["warps"], made["instructions"], made["wavefronts"],
                     made["transactions"], made["transaction_lanes"], made["conflicts"], tuple(made["addresses"]),
                     made["simulated_wavefronts"], made["correct"])
