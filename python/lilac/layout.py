"""The class Layout: what its C base leaves to Python, which is all that need not be fast."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _core
from ._core import LayoutBase
from .errors import Diagnostic, LayoutError, object_of, refused_text

if TYPE_CHECKING:
    import numpy

Sizes = Union[Mapping[str, int], Sequence[str], None]


def _names(outs: Any) -> list[str]:
    if isinstance(outs, str):
        raise TypeError("outs is a sequence of names or a dict of sizes, not one str")
    return _once(outs)


def _once(names: Any) -> list[str]:
    listed: list[str] = list(names)
    for name in listed:
        if listed.count(name) > 1:
            raise LayoutError(f"{name!r} appears twice")
    return listed


def _pairs(table: Any) -> list[tuple[str, Any]]:
    """The items of a mapping, or of a sequence of pairs in which no name may come twice."""
    pairs = list(table.items() if isinstance(table, Mapping) else table)
    _once(name for name, _ in pairs)
    return pairs


def _coordinates(row: Any) -> list[Any]:
    """The coordinates of a basis: a sequence or an array of them, or a number alone."""
    return [row] if hasattr(row, "__index__") and not getattr(row, "shape", ()) else list(row)


def _read(cls: Any, text: str, spelling: str, shape: Any, offsets: bool) -> Any:
    made = _core.read(cls, text, spelling, shape, offsets)
    if isinstance(made, tuple):
        raise refused_text(*made)
    return made


def _text(given: Any, what: str) -> str:
    if isinstance(given, str):
        return given
    raise TypeError(f"{what} is expected, not {given!r}")


def _part(chosen: Optional[range]) -> Optional[tuple[int, int]]:
    """A range as its beginning and length."""
    if chosen is None:
        return None
    if not isinstance(chosen, range):
        raise TypeError(f"a part of a view is a range, not {chosen!r}")
    if chosen.step != 1 or chosen.start < 0 or not chosen or chosen.stop >> 63:
        raise LayoutError(f"{chosen!r} is no part of a view: it is empty or has steps")
    return chosen.start, len(chosen)


class Layout(LayoutBase):
    """A linear layout: an immutable, hashable value.

    Inputs and outputs are ordered, named, and of sizes that are powers of two: at most 64 bits and 24
    names on either side. Usual inputs are register, lane, warp and block (where an element lives) or
    offset and block (memory, in elements); usual outputs dim0, dim1 … (which element it is). The
    flattened index of a side has its first dimension in the lowest bits.

    ===========================  ==================================================================
    ``a * b``                    product: b's bits above a's where names are shared (Definition 4.3)
    ``outer @ inner``            composition (Definition 4.2)
    ``~a``                       inverse of a bijective layout
    ``a / b``                    left division: the c with ``b * c == a`` (Definition 4.4)
    ``a(register=1, lane=2)``    the element there; see `apply`
    ``a == b``                   the same dimensions in the same order, and the same matrix
    ===========================  ==================================================================

    ``Layout()`` is the unit of the product: no inputs and no outputs. What is refused raises
    `LayoutError`, a ValueError, with the reason.
    """

    __slots__ = ()

    # ---- building ---------------------------------------------------------------------------

    @classmethod
    def from_bases(cls, bases: Any, outs: Sizes = None) -> Layout:
        """The layout whose input bits have these bases.

        bases: {input name: [basis, …]}, or pairs of these; a basis is the coordinates of the element
            that bit moves to, one for each output (a bare number when there is one output).
        outs: {output name: size}; or names, whose sizes are then the smallest that hold the bases;
            or None for dim0, dim1 … of such sizes.
        Sequences may be NumPy arrays: {"lane": numpy.array([[1, 0], [2, 0]])}.

        Raises LayoutError for coordinates outside their output, more than 64 bits on a side and names given
        twice.

        >>> Layout.from_bases({"register": [[0, 1]], "lane": [[1, 0], [2, 0]]})
        <Layout #ttg.linear<{register = [[0, 1]], lane = [[1, 0], [2, 0]]}> dim0=4 dim1=2>
        """
        table = {name: [_coordinates(row) for row in rows] for name, rows in _pairs(bases)}
        if outs is None:
            rank = next((len(rows[0]) for rows in table.values() if rows), 0)
            outs = [f"dim{i}" for i in range(rank)]
        sizes: dict[str, Optional[int]] = \
            {**outs} if isinstance(outs, Mapping) else dict.fromkeys(_names(outs))
        for name, rows in table.items():
            for bit, row in enumerate(rows):
                if len(row) != len(sizes):
                    raise LayoutError(f"{name} bit {bit} has {len(row)} coordinates for "
                                      f"{len(sizes)} outputs")
        return cls._from_bases({name: 1 << len(rows) for name, rows in table.items()}, sizes,
                               [c for rows in table.values() for row in rows for c in row])

    @classmethod
    def from_masks(cls, masks: Any, ins: Mapping[str, int]) -> Layout:
        """The layout whose output bits are the parities of input bits: the rows of its matrix.

        masks: {output name: [mask, …]}, or pairs of these, lowest bit first; a mask selects bits of
            the flattened input index.
        ins: {input name: size}.

        Raises LayoutError for a mask of bits that the inputs do not have.

        >>> Layout.from_masks({"bank": [0b01, 0b11]}, {"offset": 4}).columns  # bank = x ^ (x << 1)
        (3, 2)
        """
        table = {name: list(row) for name, row in _pairs(masks)}
        return cls._from_masks(dict(ins), {name: 1 << len(row) for name, row in table.items()},
                               [mask for row in table.values() for mask in row])

    @classmethod
    def identity(cls, size: int, input: str, output: str) -> Layout:  # noqa: A002
        """x ↦ x for x below `size`, a power of two. Raises LayoutError for other sizes."""
        return cls._strided(size, 1, input, output)

    @classmethod
    def zeros(cls, size: int, input: str, output: str, output_size: int = 1) -> Layout:  # noqa: A002
        """x ↦ 0 for x below `size`: copies. The output has `output_size`; both powers of two. Raises
        LayoutError for other sizes."""
        return cls._zeros(size, input, output, output_size)

    @classmethod
    def strided(cls, size: int, stride: int, input: str, output: str) -> Layout:  # noqa: A002
        """x ↦ stride · x for x below `size`, into an output of size · stride; powers of two. Raises LayoutError
        for other sizes and strides."""
        return cls._strided(size, stride, input, output)

    @classmethod
    def standard(cls, shape: Sequence[int], order: Optional[Sequence[int]] = None,
                 input: str = "offset") -> Layout:  # noqa: A002
        """The elements of a tensor numbered one after another, into dim0, dim1 … of the sizes in
        `shape`, powers of two. `order` lists the dimensions, fastest first; None: the last one fastest
        (row-major). Raises LayoutError for other sizes and for an order that is no permutation.
        """
        return cls._standard(shape, order, input)

    @classmethod
    def from_triton(cls, text: str, shape: Optional[Sequence[int]] = None) -> Layout:
        """The layout of a type in Triton's spelling, "tensor<16x16xf32, #ttg.blocked<{…}>>" or
        "!ttg.memdesc<16x16xf16, #ttg.swizzled_shared<{…}>, #smem>"; or, with a shape, of an attribute,
        "#ttg.blocked<{…}>".

        Tensors have inputs register, lane, warp, block; shared memory offset and block; tensor memory
        row, col, block. Raises LayoutError, whose message shows the place in the text and whose `ids`
        lists the identifiers of what is wrong: ["shape-not-power-of-two"].
        """
        given = _text(text, "the text of a type, such as 'tensor<16x16xf32, #ttg.blocked<{…}>>', or with shape=, "
                            "of an attribute, '#ttg.blocked<{…}>',")
        if shape is None and given.lstrip().startswith("#"):
            message = (f"{given.strip()[:60]!r} is an attribute, which has no shape: give shape=(16, 16), or a type, "
                       f"'tensor<16x16xf32, #ttg.blocked<{{…}}>>'")
            raise LayoutError(message, [Diagnostic("shape-missing", message)])
        sizes = None if shape is None else tuple(shape)
        return _read(cls, given, "triton", sizes, False)  # type: ignore[no-any-return]

    @classmethod
    def from_cute(cls, text: str, offsets: bool = False) -> Layout:
        """The memory layout offset → dim0 × dim1 … of a CuTe layout, "Sw<3,3,3> o 0 o (8,64):(64,1)";
        with `offsets`, CuTe's own map from the dims, its modes, to the offset.

        LayoutError, with `ids`, when the text is none and when the layout is not linear over F2.

        >>> Layout.from_cute("(4,2):(2,1)")
        <Layout #ttg.shared_linear<{offset = [[0, 1], [1, 0], [2, 0]], block = []}> dim0=4 dim1=2>
        """
        given = _text(text, "the text of a CuTe layout, such as '(8,64):(64,1)',")
        return _read(cls, given, "cute", None, bool(offsets))  # type: ignore[no-any-return]

    @classmethod
    def from_memory(cls, text: str, offsets: bool = False) -> Layout:
        """The memory layout offset → dim0 × dim1 … of one that people have a name for:
        "row_major(16x32)", "column_major(16x32)", "order(16x32x4, [1, 0, 2])",
        "strided(16x32, [64, 1])", "tiled(1x64x8x8, NC/32HW32)", "padded(16x32, 32:+4)", padding left
        out; with `offsets`, the map from the dims to the offset. Errors as of `from_cute`.
        """
        given = _text(text, "the text of a form of memory, such as 'row_major(16x32)',")
        return _read(cls, given, "memory", None, bool(offsets))  # type: ignore[no-any-return]

    @classmethod
    def from_json(cls, text: str, outs: Sizes = None) -> Layout:
        """The inverse of `to_json`. With `outs`, outputs of those names and sizes, as for `from_bases`.

        Raises LayoutError for other texts."""
        try:
            read = object_of(_text(text, "the text of a layout in JSON"), "a layout")
        except LayoutError:
            raise
        except ValueError as problem:
            raise LayoutError(str(problem)) from None
        bases = read
        if set(read) == {"bases", "outs"} and isinstance(read["bases"], dict) and isinstance(read["outs"], dict):
            bases, outs = read["bases"], read["outs"] if outs is None else outs
        if not all(isinstance(rows, list) for rows in bases.values()):
            raise LayoutError('a layout in JSON is {"input": [[coordinate, …], …], …}')
        try:
            return cls.from_bases(bases, outs)
        except TypeError as problem:
            raise LayoutError(f"no layout: {problem}") from None

    # ---- looking ----------------------------------------------------------------------------

    def to_json(self) -> str:
        """The layout as JSON text; `from_json` is the inverse.

        '{"register": [[0,1], …], "lane": …}', coordinates in output order, as `lilac layout --json` prints it.
        Where the bases do not imply the names and sizes of the outputs:
        '{"bases": {…}, "outs": {"dim0": 8, …}}'."""
        bases = self._bases_json()
        if type(self).from_json(bases) == self:
            return bases
        return f'{{"bases": {bases}, "outs": {json.dumps(self.out_dims)}}}'

    @property
    def bases(self) -> dict[str, list[list[int]]]:
        """{input name: [coordinates that each of its bits moves to, …]}."""
        fields, start = [], 0
        for size in self.out_dims.values():
            fields.append((start, size - 1))
            start += size.bit_length() - 1
        columns = iter(self.columns)
        return {name: [[column >> start & mask for start, mask in fields]
                       for _, column in zip(range(size.bit_length() - 1), columns)]
                for name, size in self.in_dims.items()}

    def matrix(self) -> numpy.ndarray:
        """The bit matrix: uint8 of shape (out_bits, in_bits), lowest bits first."""
        import numpy

        columns = numpy.array(self.columns, dtype=numpy.uint64).reshape(1, -1)
        rows = numpy.arange(self.out_bits, dtype=numpy.uint64).reshape(-1, 1)
        bits: numpy.ndarray = (columns >> rows & numpy.uint64(1)).astype(numpy.uint8)
        return bits

    def table(self) -> dict[str, numpy.ndarray]:
        """The layout of its whole index space: {output name: array}, each of shape
        ``tuple(in_dims.values())``, so that ``table()["dim0"][register, lane, warp, block]`` is a
        coordinate. int32, or int64 for outputs of more than 31 bits. At most 2^32 indices."""
        import numpy

        if self.in_bits > 32:
            raise LayoutError(f"a table of 2^{self.in_bits} indices is too large")
        shape = tuple(self.in_dims.values())
        dims = self.out_dims
        if all(size <= 1 << 31 for size in dims.values()):
            result = {}
            for number, name in enumerate(dims):
                flat = numpy.empty(1 << self.in_bits, dtype=numpy.int32)
                self._coordinates(flat.ctypes.data, number)
                result[name] = flat.reshape(shape, order="F")
            return result
        places = numpy.empty(1 << self.in_bits, dtype=numpy.uint64)
        self._coordinates(places.ctypes.data, -1)
        return self._split(places.reshape(shape, order="F"))

    def _split(self, places: numpy.ndarray) -> dict[str, numpy.ndarray]:
        """The coordinates of flattened outputs."""
        import numpy

        result, start = {}, 0
        for name, size in self.out_dims.items():
            coordinate = places >> numpy.uint64(min(start, 63)) & numpy.uint64(size - 1)
            result[name] = coordinate.astype(numpy.uint64 if size >> 63 else numpy.int64)
            start += size.bit_length() - 1
        return result

    def _apply_array(self, index: Any) -> Any:
        import numpy

        if isinstance(index, Mapping):
            return self.apply(dict(index))
        given = numpy.asarray(index)
        if given.size and given.dtype.kind not in "iu":
            raise TypeError(f"indices are integers, not {given.dtype}")
        if given.dtype.kind == "i" and given.size and given.min() < 0:
            raise LayoutError(f"index {given.min()} is negative")
        source = numpy.ascontiguousarray(given, dtype=numpy.uint64)
        result = numpy.empty(given.shape, dtype=numpy.uint64)
        self._bulk(result.ctypes.data, source.ctypes.data, source.size)
        return result

    def _apply_arrays(self, indices: Mapping[str, Any]) -> dict[str, numpy.ndarray]:
        import numpy

        starts, start = {}, 0
        for name, size in self.in_dims.items():
            starts[name] = start, size
            start += size.bit_length() - 1
        flat = numpy.zeros((), dtype=numpy.uint64)
        for name, index in indices.items():
            given = numpy.asarray(index)
            if given.dtype.kind not in "iu" and given.size:
                raise TypeError(f"indices of {name} are integers, not {given.dtype}")
            if name not in starts:
                raise LayoutError(f"the layout has no input {name!r}")
            first, size = starts[name]
            if given.size and (given.min() < 0 or int(given.max()) >= size):
                raise LayoutError(f"an index is outside {name} of size {size}")
            if size > 1:
                flat = flat | given.astype(numpy.uint64) << numpy.uint64(first)
            else:
                flat = flat | numpy.zeros(given.shape, dtype=numpy.uint64)
        return self._split(self._apply_array(flat))

    # ---- division ---------------------------------------------------------------------------

    def divide(self, tile: Layout, at: Optional[Mapping[str, int]] = None) -> Layout:
        """Divides out a tile at any positions of its bits; returns the layout of the remaining bits.

        Each of the tile's input bits is the first unused one of the same column. `at` has for each of
        the tile's outputs a mask of the bits of this layout's output on which the tile stands; None:
        the lowest ones. LayoutError when the tile is not a block of the matrix there.
        """
        if at is None:
            return self._divide(tile, None)
        unknown = [name for name in at if name not in tile.out_dims]
        if unknown:
            raise LayoutError(f"the tile has no output {unknown[0]!r}")
        return self._divide(tile, [at[name] if name in at else size - 1
                                   for name, size in tile.out_dims.items()])

    def division_order(self, tile: Layout, input: str = "register",  # noqa: A002
                       right: bool = False) -> tuple[int, ...]:
        """An order of one input's bits for `permute_bits` that makes the layout divisible by the tile
        on the left, or right (section 5.3). LayoutError when none does."""
        return self._division_order(tile, input, right)

    def fit(self, shape: Sequence[int], order: Optional[Sequence[Any]] = None,
            input: str = "register") -> Layout:  # noqa: A002
        """The layout of a tensor of another shape, one size for each output. Where that is smaller,
        several places hold an element; where it is larger, `input` gets new bits that step through
        the copies, outputs in `order`, fastest first (None: the last one fastest)."""
        return self._fit(shape, order, input)

    # ---- text and pictures ------------------------------------------------------------------

    def text(self, view: str = "cells", *, width: int = 100, colour: bool = False,
             colour_by: Optional[str] = None, slices: Optional[range] = None,
             rows: Optional[range] = None, columns: Optional[range] = None, element_bits: int = 32,
             banks: int = 32, bank_bytes: int = 4) -> str:
        """The layout drawn as lines of text.

        view: "cells", the tensor, in each cell the slots that hold it (w0 t3 r1: warp 0, lane 3,
            register 1); "hardware", the slots, in each the element that it holds; "matrix", the bit
            matrix in blocks.
        width: characters a line may have. colour: with escape sequences for a terminal.
        colour_by: the input whose index makes the colour; None: warp, else lane, else register.
        slices, rows, columns: which parts of the table, as ranges of step 1; None: what fits.
        element_bits, banks, bank_bytes: the hardware of a memory layout's hardware view.
        """
        return self._view("text", view, width, colour, colour_by, _part(slices), _part(rows),
                          _part(columns), element_bits, banks, bank_bytes, None, [])

    def svg(self, view: str = "cells", *, colour_by: Optional[str] = None,
            title: Optional[str] = None, slices: Optional[range] = None,
            rows: Optional[range] = None, columns: Optional[range] = None, element_bits: int = 32,
            banks: int = 32, bank_bytes: int = 4) -> str:
        """The same views as an SVG document. At most 64 rows and columns unless the ranges ask for
        more. title: drawn above the figure."""
        return self._view("svg", view, 0, False, colour_by, _part(slices), _part(rows),
                          _part(columns), element_bits, banks, bank_bytes, title, [])

    def view(self, view: str = "cells", *, slices: Optional[range] = None,
             rows: Optional[range] = None, columns: Optional[range] = None) -> dict[str, Any]:
        """What the views draw, as data: {"view": "cells", "shape": […], "inputs": […], "copies": …,
        "cells": [{"element": […], "owners": [[…], …]}, …]} and the like; all of it by default."""
        drawn: dict[str, Any] = json.loads(self._view("json", view, 0, False, None, _part(slices),
                                                      _part(rows), _part(columns), 0, 0, 0, None, []))
        return drawn

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The display in a notebook, a picture of at most 50 kB: the cells, or the matrix if the cells are larger."""
        from . import pictures

        drawn = pictures.layout(self)
        if drawn is None:
            return {"text/plain": repr(self)}
        view, picture = drawn
        return {"text/plain": f"{self!r}\n\n{self.text(view)}".rstrip("\n"), "image/svg+xml": picture}

    def __repr__(self) -> str:
        sizes = "".join(f" {name}={size}" for name, size in self.out_dims.items())
        return f"<{type(self).__name__} {self}{sizes}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.bases, self.out_dims)


def _restore(cls: type[Layout], bases: dict[str, Any], outs: dict[str, int]) -> Layout:
    return cls.from_bases(bases, outs)
