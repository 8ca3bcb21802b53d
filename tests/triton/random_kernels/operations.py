"""The operations of random kernels: what each is in Triton's language, and what it means in NumPy.

A row of OPERATIONS has two functions. `text(a, n)` makes the expression from the operands' texts `a`
and the statement `n`; `value(x, n)` computes the result from NumPy arrays `x`. Operands of `value`
already have the type n.computed, where the statement has one, and any shape that broadcasts.
"""

import numpy as np

from types_of_triton import bits, is_signed, numpy_type


def quotient(a, b):
    """Rounded toward zero. Where b is 0 the result is undetermined, and no kernel uses it."""
    nonzero = np.where(b == 0, np.ones_like(b), b)
    return (a - np.fmod(a, nonzero)) // nonzero


def remainder(a, b):
    return np.fmod(a, np.where(b == 0, np.ones_like(b), b))


def shifted_left(a, amount):
    return np.left_shift(a, amount.astype(a.dtype))


def shifted_right(a, amount):
    return np.right_shift(a, amount.astype(a.dtype))


def high_product(a, b):
    """The high half of the product of unsigned numbers."""
    width = 8 * a.dtype.itemsize
    unsigned = np.dtype(f"uint{width}")
    wide = a.view(unsigned).astype(object) * b.view(unsigned).astype(object)
    return np.asarray(np.vectorize(lambda x: int(x) >> width, otypes=[object])(wide)).astype(unsigned).view(a.dtype)


# ---- folds and scans: functions of pairs of tuples of arrays -------------------------------

def fold_pairs(combine, operands, axis):
    """Combines neighbours along the axis until one element is left. The order does not matter."""
    parts = [np.moveaxis(x, axis, 0) for x in operands]
    while parts[0].shape[0] > 1:
        parts = list(combine([x[0::2] for x in parts], [x[1::2] for x in parts]))
    return [x[0] for x in parts]


def scan_in_order(combine, operands, axis, reverse):
    parts = [np.moveaxis(x, axis, 0) for x in operands]
    if reverse:
        parts = [x[::-1] for x in parts]
    results = [x.copy() for x in parts]
    for k in range(1, parts[0].shape[0]):
        for result, value in zip(results, combine([x[k - 1] for x in results], [x[k] for x in parts])):
            result[k] = value
    if reverse:
        results = [x[::-1] for x in results]
    return [np.ascontiguousarray(np.moveaxis(x, 0, axis)) for x in results]


# Each: the function in Triton's language, and the same in NumPy on lists of arrays.
COMBINES = {
    "product": ("def product(a, b):\n    return a * b\n",
                lambda a, b: [a[0] * b[0]]),
    "conjunction": ("def conjunction(a, b):\n    return a & b\n",
                    lambda a, b: [a[0] & b[0]]),
    "greater": ("def greater(a, b):\n    return tl.maximum(a, b)\n",
                lambda a, b: [np.maximum(a[0], b[0])]),
    "first": ("def first(a, b):\n    return a + (b ^ b)\n",
              lambda a, b: [a[0]]),
    "last_set": ("def last_set(a, b):\n    return tl.where(b != 0, b, a)\n",
                 lambda a, b: [np.where(b[0] != 0, b[0], a[0])]),
    "sum_and_greatest": ("def sum_and_greatest(a, b, c, d):\n    return a + c, tl.maximum(b, d)\n",
                         lambda a, b: [a[0] + b[0], np.maximum(a[1], b[1])]),
    "greatest_and_times": (
        "def greatest_and_times(a, m, b, n):\n"
        "    return tl.maximum(a, b), tl.where(a > b, m, tl.where(b > a, n, m + n))\n",
        lambda a, b: [np.maximum(a[0], b[0]),
                      np.where(a[0] > b[0], a[1], np.where(b[0] > a[0], b[1], a[1] + b[1]))]),
    "recurrence": ("def recurrence(f, v, g, w):\n    return f * g, v * g + w\n",
                   lambda a, b: [a[0] * b[0], a[1] * b[0] + b[1]]),
    "segments": ("def segments(v, f, w, g):\n    return tl.where((g & 1) != 0, w, v + w), f | g\n",
                 lambda a, b: [np.where((b[1] & 1) != 0, b[0], a[0] + b[0]), a[1] | b[1]]),
}
COMMUTATIVE = {1: ("product", "conjunction", "greater"), 2: ("sum_and_greatest", "greatest_and_times")}
ASSOCIATIVE = {1: ("product", "greater", "first", "last_set"), 2: ("recurrence", "segments", "sum_and_greatest")}


def fold(function):
    def value(x, n):
        result = function(x[0].astype(numpy_type(n.type.element)), axis=n.axis)
        return np.expand_dims(result, n.axis) if n.kept else result
    return value


def place_of(function):
    """The first index of the greatest or the smallest value, as NumPy's argmax and argmin define it."""
    return lambda x, n: function(x[0], axis=n.axis).astype(np.int32)


def running(function):
    def value(x, n):
        a = x[0].astype(numpy_type(n.type.element))
        a = np.flip(a, n.axis) if n.reverse else a
        a = function(a, axis=n.axis, dtype=a.dtype)
        return np.flip(a, n.axis) if n.reverse else a
    return value


def sorted_along(x, descending):
    a = np.sort(x, axis=-1)
    return np.flip(a, -1) if descending else a


def histogram(x, n):
    numbers = x[0] if len(x) == 1 else x[0][x[1]]
    return np.bincount(numbers.astype(np.int64), minlength=n.bins)[:n.bins].astype(np.int32)


def infix(sign):
    return lambda a, n: f"{a[0]} {sign} {a[1]}"


def call(name, extra=lambda n: ""):
    return lambda a, n: f"{name}({', '.join(a)}{extra(n)})"


def along(n):
    return f", axis={n.axis}" + ", reverse=True" * n.reverse + ", keep_dims=True" * n.kept


def with_place(function, place):
    """A fold with a second result: the first index of the first result."""
    return lambda x, n: [function(x[0], axis=n.axis), place(x[0], axis=n.axis).astype(np.int32)]


def dims(shape):
    return "[" + ", ".join(str(size) for size in shape) + "]"


def tuple_of(a):
    return a[0] if len(a) == 1 else "(" + ", ".join(a) + ")"


OPERATIONS = {
    # element by element
    "add": (infix("+"), lambda x, n: x[0] + x[1]),
    "sub": (infix("-"), lambda x, n: x[0] - x[1]),
    "mul": (infix("*"), lambda x, n: x[0] * x[1]),
    "div": (infix("//"), lambda x, n: quotient(*x)),
    "rem": (infix("%"), lambda x, n: remainder(*x)),
    "and": (infix("&"), lambda x, n: x[0] & x[1]),
    "or": (infix("|"), lambda x, n: x[0] | x[1]),
    "xor": (infix("^"), lambda x, n: x[0] ^ x[1]),
    "shl": (lambda a, n: f"{a[0]} << ({a[1]} & {n.number})",
            lambda x, n: shifted_left(x[0], x[1] & x[1].dtype.type(n.number))),
    "shr": (lambda a, n: f"{a[0]} >> ({a[1]} & {n.number})",
            lambda x, n: shifted_right(x[0], x[1] & x[1].dtype.type(n.number))),
    "min": (call("tl.minimum"), lambda x, n: np.minimum(*x)),
    "max": (call("tl.maximum"), lambda x, n: np.maximum(*x)),
    "cdiv": (call("tl.cdiv"), lambda x, n: quotient(x[0] + (x[1] - x[1].dtype.type(1)), x[1])),
    "umulhi": (call("tl.umulhi"), lambda x, n: high_product(*x)),
    "lt": (infix("<"), lambda x, n: x[0] < x[1]),
    "le": (infix("<="), lambda x, n: x[0] <= x[1]),
    "gt": (infix(">"), lambda x, n: x[0] > x[1]),
    "ge": (infix(">="), lambda x, n: x[0] >= x[1]),
    "eq": (infix("=="), lambda x, n: x[0] == x[1]),
    "ne": (infix("!="), lambda x, n: x[0] != x[1]),
    "neg": (lambda a, n: f"-{a[0]}", lambda x, n: np.zeros_like(x[0]) - x[0]),
    "not": (lambda a, n: f"~{a[0]}", lambda x, n: ~x[0]),
    "abs": (call("tl.abs"), lambda x, n: np.abs(x[0])),
    "cast": (lambda a, n: f"{a[0]}.to(tl.{n.type.element})",
             lambda x, n: x[0] != 0 if n.type.element == "int1" else x[0].astype(numpy_type(n.type.element))),
    "where": (call("tl.where"), None),  # its first operand has a type of its own
    "positive": (lambda a, n: f"tl.where({a[0]} > 0, {a[0]}, {n.number})",
                 lambda x, n: np.where(x[0] > 0, x[0], x[0].dtype.type(n.number))),
    "usable": (lambda a, n: f"{a[0]} != 0" if not is_signed(n.computed) else f"({a[0]} != 0) & ({a[0]} != -1)",
               lambda x, n: (x[0] != 0) & (x[0] != -1) if is_signed(n.computed) else x[0] != 0),
    # constants and indices
    "full": (lambda a, n: f"tl.full({dims(n.type.shape)}, {n.number}, tl.{n.type.element})" if n.type.shape
             else f"tl.full([], {n.number}, tl.{n.type.element})",
             lambda x, n: np.full(n.type.shape, n.number, numpy_type(n.type.element))),
    "arange": (lambda a, n: f"tl.arange(0, {n.type.shape[0]})",
               lambda x, n: np.arange(n.type.shape[0], dtype=np.int32)),
    # folds
    "sum": (call("tl.sum", along), fold(lambda x, axis: np.add.reduce(x, axis=axis, dtype=x.dtype))),
    "greatest": (call("tl.max", along), fold(lambda x, axis: np.maximum.reduce(x, axis=axis))),
    "smallest": (call("tl.min", along), fold(lambda x, axis: np.minimum.reduce(x, axis=axis))),
    "xor_sum": (call("tl.xor_sum", along), fold(lambda x, axis: np.bitwise_xor.reduce(x, axis=axis))),
    "any_bit": (call("tl.reduce_or", along), fold(lambda x, axis: np.bitwise_or.reduce(x, axis=axis))),
    "greatest_and_place": (call("tl.max", lambda n: along(n) + ", return_indices=True"), with_place(np.max, np.argmax)),
    "smallest_and_place": (call("tl.min", lambda n: along(n) + ", return_indices=True"), with_place(np.min, np.argmin)),
    "argmax": (call("tl.argmax", along), place_of(np.argmax)),
    "argmin": (call("tl.argmin", along), place_of(np.argmin)),
    "reduce": (lambda a, n: f"tl.reduce({tuple_of(a)}, {n.axis}, {n.combine})",
               lambda x, n: fold_pairs(COMBINES[n.combine][1], x, n.axis)),
    # scans
    "cumsum": (call("tl.cumsum", along), running(np.cumsum)),
    "cumprod": (call("tl.cumprod", along), running(np.cumprod)),
    "scan": (lambda a, n: f"tl.associative_scan({tuple_of(a)}, {n.axis}, {n.combine}{', reverse=True' * n.reverse})",
             lambda x, n: scan_in_order(COMBINES[n.combine][1], x, n.axis, n.reverse)),
    # order and places
    "sort": (call("tl.sort", lambda n: ", descending=True" * n.reverse),
             lambda x, n: sorted_along(x[0], n.reverse)),
    "topk": (lambda a, n: f"tl.topk({a[0]}, {n.number})", lambda x, n: sorted_along(x[0], True)[..., :n.number]),
    "flip": (lambda a, n: f"tl.flip({a[0]}, {n.axis})", lambda x, n: np.flip(x[0], n.axis)),
    "gather": (lambda a, n: f"tl.gather({a[0]}, {a[1]} & {n.number}, {n.axis})", None),
    "histogram": (lambda a, n: f"tl.histogram({a[0]}, {n.bins}" + (f", {a[1]})" if len(a) > 1 else ")"), histogram),
    "sorted_cat": (lambda a, n: f"tl.sort(tl.cat({a[0]}, {a[1]}, can_reorder=True))",
                   lambda x, n: np.sort(np.concatenate(x))),
    # shapes
    "reshape": (lambda a, n: f"tl.reshape({a[0]}, {dims(n.type.shape)})", lambda x, n: x[0].reshape(n.type.shape)),
    "permute": (lambda a, n: f"tl.permute({a[0]}, {dims(n.order)})", lambda x, n: np.transpose(x[0], n.order)),
    "expand": (lambda a, n: f"tl.expand_dims({a[0]}, {n.axis})", lambda x, n: np.expand_dims(x[0], n.axis)),
    "broadcast": (lambda a, n: f"tl.broadcast_to({a[0]}, {dims(n.type.shape)})",
                  lambda x, n: np.broadcast_to(x[0], n.type.shape)),
    "join": (call("tl.join"), lambda x, n: np.stack(x, -1)),
    "split": (call("tl.split"), lambda x, n: [x[0][..., 0], x[0][..., 1]]),
    "interleave": (call("tl.interleave"),
                   lambda x, n: np.stack(x, -1).reshape(x[0].shape[:-1] + (2 * x[0].shape[-1],))),
    "again": (lambda a, n: a[0], lambda x, n: x[0]),
}


def select(x, n):
    element = numpy_type(n.type.element)
    return np.where(x[0], x[1].astype(element), x[2].astype(element))


def gather(x, n):
    index = (x[1] & x[1].dtype.type(n.number)).astype(np.int64)
    return np.take_along_axis(x[0], index, n.axis)


OPERATIONS["where"] = (OPERATIONS["where"][0], select)
OPERATIONS["gather"] = (OPERATIONS["gather"][0], gather)


def amount_mask(element):
    """Amounts of shifts are below the width."""
    return bits(element) - 1
