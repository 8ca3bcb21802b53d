"""Tensor maps: arguments that describe an array to the tensor copies of a kernel."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

from .errors import Error

if TYPE_CHECKING:
    import numpy

# The numbers of lilac_tensor_element, lilac_tensor_swizzle and lilac_tensor_fill (include/lilac/tensor_map.h).
_ELEMENTS = {"uint8": 0, "uint16": 1, "uint32": 2, "int32": 3, "uint64": 4, "int64": 5, "float16": 6, "float32": 7,
             "float64": 8, "bfloat16": 9, "int16": 1}
# Where tensormap.replace.elemtype of the PTX ISA, which the metadata contain, has other numbers.
_ELEMENTS_OF_METADATA = {9: 8, 10: 9}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_FILLS = {"zero": 0, "nan": 1}


class TensorMap:
    """An argument for a parameter of type `i64 tensor_map`: how tensor copies see an array.

    array: a NumPy array of 1 to 5 dimensions, whose last dimension is contiguous. Its strides are those of the
        tensor, so a slice of a larger array is a tensor with the row pitch of that array.
    box: the elements that one copy transfers, in the order of the array's dimensions; an int for a vector.
    swizzle: 0, or the width in bytes of the swizzle of shared memory: 32, 64 or 128.
    fill: the elements that a load writes where the box exceeds the array: "zero", or "nan" for floats.
    promote: the bytes that a miss in the L2 cache reads: 0 (the default of the device), 64, 128 or 256.

    The limits of tensor maps (include/lilac/tensor_map.h) are checked when a kernel runs: a map outside them
    raises SimulationError with the identifier `tensor-map`, and the diagnostic names the parameter, the field, its
    value and what is allowed. A wrong word here raises Error, an object of a wrong type TypeError. Elements of
    8 bits that are not integers are transferred as bytes.

    >>> import numpy
    >>> TensorMap(numpy.zeros((128, 64), "float16"), (64, 64), swizzle=128)
    <lilac.TensorMap boxes of 64×64 in float16[128, 64], swizzle 128, fill zero>
    """

    __slots__ = ("array", "box", "fill", "promote", "swizzle")

    array: numpy.ndarray
    box: tuple[int, ...]
    swizzle: int
    fill: str
    promote: int

    def __init__(self, array: Any, box: Union[int, Sequence[int]], *, swizzle: int = 0, fill: str = "zero",
                 promote: int = 0) -> None:
        sizes = [box] if hasattr(box, "__index__") and not getattr(box, "shape", ()) else list(box)  # type: ignore
        fields = {"array": _checked(array), "box": tuple(_word("a size of the box", size) for size in sizes),
                  "swizzle": _word("swizzle", swizzle), "fill": fill, "promote": _word("promote", promote)}
        if len(sizes) != array.ndim:
            raise Error(f"the box has {len(sizes)} dimensions, the array has {array.ndim}")
        if swizzle not in _SWIZZLES:
            raise Error(f"swizzle is {swizzle}; 0, 32, 64 and 128 bytes are allowed")
        if fill not in _FILLS:
            raise Error(f"fill is {fill!r}; 'zero' and 'nan' are allowed")
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a TensorMap does not change: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a TensorMap does not change: {name} cannot be deleted")

    def __repr__(self) -> str:
        shape = ", ".join(map(str, self.array.shape))
        return (f"<lilac.TensorMap boxes of {'×'.join(map(str, self.box))} in {self.array.dtype}[{shape}], "
                f"swizzle {self.swizzle}, fill {self.fill}>")

    def _row(self, place: tuple[int, int]) -> tuple[Any, ...]:
        """The map as _core.simulate reads it, of the array at this (buffer, offset)."""
        return (*place, _element(self.array.dtype), _SWIZZLES[self.swizzle], _FILLS[self.fill], self.promote,
                self.array.shape[::-1], self.array.strides[-2::-1], self.box[::-1])


def tensor_element(elem_type: int) -> int:
    """The number of lilac_tensor_element for an `elem_type` of the metadata."""
    return _ELEMENTS_OF_METADATA.get(elem_type, elem_type)


def _element(dtype: Any) -> int:
    return _ELEMENTS.get(dtype.name, 0 if dtype.itemsize == 1 else -1)


def _checked(array: Any) -> Any:
    """The array, where a tensor map can describe its elements and strides."""
    import numpy

    if not isinstance(array, numpy.ndarray):
        raise TypeError(f"a tensor map describes a NumPy array, not {type(array).__name__}")
    if _element(array.dtype) < 0 or not array.dtype.isnative:
        raise Error(f"a tensor map has no element type for {array.dtype}")
    if array.ndim == 0:
        raise Error("a tensor map describes an array of 1 to 5 dimensions; this array has none")
    if array.size and array.shape[-1] > 1 and array.strides[-1] != array.itemsize:
        raise Error(f"the last dimension of the array has a stride of {array.strides[-1]} bytes; in a tensor map it "
                    f"is contiguous, with a stride of {array.itemsize} bytes")
    if min(array.strides) < 0:
        raise Error(f"the array has a stride of {min(array.strides)} bytes; a tensor map has no negative strides")
    return array


def _word(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is an integer, not {value!r}") from None
    if not 0 <= number < 1 << 32:
        raise Error(f"{name} is an integer from 0 to 2^32 - 1, not {number}")
    return number
