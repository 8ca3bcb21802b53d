"""Integer types of Triton, and the type of an operation on two of them.

The rules are written down here from Triton's documentation ("usual arithmetic conversions" of C, but
without promotion to int), not taken from Triton: a `tl.static_assert` in each kernel compares them
with the front end's.
"""

from dataclasses import dataclass

import numpy as np

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED


@dataclass(frozen=True)
class Type:
    element: str  # "int1" or one of INTEGERS
    shape: tuple = ()  # () for a scalar

    @property
    def size(self):
        return int(np.prod(self.shape, dtype=np.int64))

    def of(self, element):
        return Type(element, self.shape)


def bits(element):
    return int(element.lstrip("uint"))


def is_signed(element):
    return element in SIGNED


def numpy_type(element):
    return np.dtype("bool") if element == "int1" else np.dtype(element)


def memory_type(element):
    """What a buffer's elements are: predicates take a byte."""
    return "int8" if element == "int1" else element


def pointer_type(element):
    """The type of a parameter in a signature of Triton's."""
    return "*" + ("i" if is_signed(element) else "u") + str(bits(element))


def promoted(a, b):
    """The type in which an operation on tensors of these types is computed."""
    if is_signed(a) == is_signed(b):
        return a if bits(a) > bits(b) else b
    unsigned, signed = (b, a) if is_signed(a) else (a, b)
    return unsigned if bits(unsigned) >= bits(signed) else signed


def summed(element):
    """The type of tl.sum and tl.cumsum."""
    if bits(element) >= 32:
        return element
    return "int32" if is_signed(element) else "uint32"


def compared(element):
    """The type of tl.max and tl.min."""
    return element if bits(element) >= 32 else "int32"


def least(element):
    return -(1 << (bits(element) - 1)) if is_signed(element) else 0


def greatest(element):
    return (1 << (bits(element) - is_signed(element))) - 1


def literal_type(number):
    """The type of a number that becomes a tensor by itself."""
    return next(e for e in ("int32", "uint32", "int64", "uint64") if least(e) <= number <= greatest(e))
