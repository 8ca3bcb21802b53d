"""Random programs. The same seed gives the same program everywhere.

Values are in a scope. Each step draws an operation, and operands of types that the operation
accepts. An undetermined value never reaches memory: elements that the mask of a load leaves out,
and quotients by zero, go through a tl.where that selects another value.
"""

import random

import numpy as np

from operations import ASSOCIATIVE, COMMUTATIVE, amount_mask
from program import PAD, Buffer, Program, Statement
from types_of_triton import (INTEGERS, Type, bits, compared, greatest, is_signed, least, literal_type, memory_type,
                             numpy_type, promoted, summed)

MOST_ELEMENTS = 4096
MOST_WORK = 1 << 17  # results of all statements in elements, times the iterations of their loops
MOST_SORTED = 128  # the front end takes long over sorts
ELEMENT_BY_ELEMENT = ("add", "sub", "mul", "and", "or", "xor", "min", "max")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def random_data(numbers, element, count):
    """Small numbers, extremes and random bits."""
    dtype = numpy_type(element)
    values = numbers.integers(0, 1 << 63, count, dtype=np.uint64) * np.uint64(2) + numbers.integers(
        0, 2, count, dtype=np.uint64)
    values = values.astype(dtype)
    small = numbers.integers(0, 12, count).astype(dtype) - dtype.type(0 if not is_signed(element) else 4)
    extremes = np.array([least(element), greatest(element), 0, 1], dtype)[numbers.integers(0, 4, count)]
    kind = numbers.integers(0, 8, count)
    return np.where(kind < 3, small, np.where(kind == 3, extremes, values))


class Generator:
    def __init__(self, seed, device, lanes):
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        warps = self.random.choice([w for w in (1, 2, 4, 4, 8, 16, 32) if w * lanes <= 1024])
        self.program = Program(seed=seed, device=device, warps=warps, grid=self.random.choice([1, 1, 1, 2, 3]))
        wide = self.random.choice(["int64", "uint32", "uint64"])
        self.program.scalars = {"n0": ("int32", self.random.randint(1, 70)),
                                "n1": ("int32", self.random.randint(-5, 300)),
                                "n2": ("int32", self.random.choice([1, 2, 3, 4, 7, 16, 64, 100])),
                                "n3": (wide, self.random.choice([0, 1, 3, 1000, greatest(wide), greatest(wide) - 6]))}
        self.scope = [(name, Type(element)) for name, (element, _) in self.program.scalars.items()]
        self.scope.append(("pid", Type("int32")))
        self.body = self.program.body
        self.count = 0
        self.work = 0
        self.times = 1  # iterations of the enclosing loops
        self.depth = 0
        self.elements = self.random.sample(INTEGERS, 2) + ["int32"]
        self.shapes = self.draw_shapes()

    # ---- choices ----

    def chance(self, one_in):
        return self.random.randrange(one_in) == 0

    def draw_shapes(self):
        total = self.random.choice([0, 2, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12])
        shapes = []
        for _ in range(2):
            rank = self.random.choice([1, 1, 2, 2, 3])
            parts = [0] * rank
            for _ in range(total):
                parts[self.random.randrange(rank)] += 1
            shapes.append(tuple(1 << p for p in parts))
        return shapes

    def pick(self, accept):
        """A value of the scope. Later values are more likely."""
        found = [v for v in self.scope if accept(v[1])]
        if not found:
            return None
        return found[max(self.random.randrange(len(found)), self.random.randrange(len(found)))]

    def pick_tensor(self, accept=lambda t: True):
        return self.pick(lambda t: t.shape and t.element != "int1" and accept(t))

    def pick_integer(self):
        return self.pick(lambda t: t.element != "int1" and (t.shape or self.chance(4)))

    def literal(self, element):
        limit = greatest(element)
        choices = [0, 1, 2, 3, 5, 7, 10, 16, 100, limit, limit - 1]
        if is_signed(element):
            choices += [-1, -2, -7, -limit - 1]
        return self.random.choice([c for c in choices if least(element) <= c <= limit])

    # ---- statements ----

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def let(self, op, args, type, hidden=False, **more):
        """A new variable. `hidden`: later steps do not use it."""
        types = type if isinstance(type, tuple) else (type,)
        names = tuple(self.name() for _ in types)
        self.body.append(Statement("let", op, names, tuple(args), types, **more))
        self.work += self.times * sum(t.size for t in types)
        if not hidden:
            self.scope += list(zip(names, types))
        return names[0] if len(names) == 1 else names

    def constant(self, type):
        return self.let("full", (), type, number=self.literal(type.element), hidden=True)

    # ---- memory ----

    def input_buffer(self, element, positive=False):
        name = f"{'positive' if positive else 'x'}_{element}"
        for b in self.program.buffers:
            if b.name == name:
                return b
        count = 5000 + self.random.randrange(4000)
        data = self.numbers.integers(1, 120, count).astype(element) if positive else random_data(
            self.numbers, element, count)
        self.program.buffers.append(Buffer(name, element, data))
        return self.program.buffers[-1]

    def draw_place(self, shape, reach):
        """A random (base, span, dimensions) that reaches at most `reach` elements."""
        while True:
            inner = self.random.choice([1, 1, 1, 1, 2, 3])
            dimensions, stride = [], inner
            for size in reversed(shape):
                dimensions.insert(0, (size, stride, self.chance(6)))
                stride = stride * size + self.random.choice([0, 0, 0, 1, 4])
            if len(shape) > 1 and self.chance(4):  # another order in memory
                order = self.random.sample(range(len(shape)), len(shape))
                stride = 1
                for d in order:
                    dimensions[d] = (shape[d], stride, False)
                    stride *= shape[d]
            base = self.random.choice([0, 0, 16, 3, 1])
            span = self.random.choice([0, 16, stride]) if self.program.grid > 1 else 0
            last = base + span * (self.program.grid - 1) + sum((s - 1) * t for s, t, _ in dimensions)
            if last < reach:
                return base, span, tuple(dimensions), last
            shape_size = int(np.prod(shape))
            if shape_size + 64 * self.program.grid > reach:
                return None

    def draw_mask(self, shape):
        """A predicate of this shape: bounds along the dimensions, or a predicate computed from data."""
        found = self.pick(lambda t: t.element == "int1" and t.shape == shape)
        if found and self.chance(2):
            return found[0]
        bounds = tuple(self.random.choice(["n0", "n2", self.random.randint(0, size + 1)]) for size in shape)
        return self.let("inside", (), Type("int1", shape), bounds=bounds)

    def load(self):
        element = self.random.choice(self.elements)
        shape = self.random.choice(self.shapes) if not self.chance(12) else ()
        b = self.input_buffer(element)
        type = Type(element, shape)
        place = self.draw_place(shape, len(b.data)) if shape else (self.random.randrange(100), 1, (), 0)
        if place is None:
            return False
        index = self.let("index", (), Type("int32", shape), place=place[:3]) if shape else self.let(
            "add", ("pid", place[0]), Type("int32"), computed="int32")
        if not shape or self.chance(3):
            self.let("load", (index,), type, buffer=b.name)
            return True
        if self.chance(3):  # a place that is loaded
            number = self.random.choice([15, 255, 1023, 4095])
            source = self.pick(lambda t: t.shape == shape and t.element in ("int32", "int64", "uint32"))
            if source:
                index = self.let("and", (source[0], number), Type(source[1].element, shape), computed=source[1].element)
        if self.chance(3):
            limit = len(b.data) - self.random.randrange(4990)
            mask = self.let("lt", (index, limit), Type("int1", shape), computed=self.type_of(index).element)
        else:
            mask = self.draw_mask(shape)
        self.masked_load(b, index, mask, type)
        return True

    def masked_load(self, b, index, mask, type):
        if self.chance(2):
            self.let("load", (index,), type, buffer=b.name, mask=mask, other=self.literal(type.element))
            return
        loaded = self.let("load", (index,), type, buffer=b.name, mask=mask, hidden=True)
        self.let("where", (mask, loaded, self.constant(type)), type)

    def type_of(self, name):
        for n in reversed(self.body):
            if name in n.names:
                return n.types[n.names.index(name)]
        return dict(self.scope)[name]

    def store(self, name, type, mask=""):
        """Stores a value to a buffer of its own; `mask`: where it is determined."""
        element = memory_type(type.element)
        if type.element == "int1":
            name = self.let("cast", (name,), type.of("int8"))
        place = self.draw_place(type.shape, 1 << 15) if type.shape else (PAD, 1, (), PAD + self.program.grid)
        base, _, dimensions, _ = place
        reach = sum((s - 1) * t for s, t, _ in dimensions) + 1
        span = reach + self.random.choice([0, 0, 5]) if self.program.grid > 1 else 0
        span = (span + 15) // 16 * 16 if self.chance(2) else span
        size = PAD + base + span * (self.program.grid - 1) + reach
        index = self.let("index", (), Type("int32", type.shape), place=(PAD + base, span, dimensions)) \
            if type.shape else self.let("add", ("pid", PAD), Type("int32"), computed="int32")
        size = size if type.shape else PAD + self.program.grid
        end = PAD
        if mask:
            pass
        elif type.shape and self.chance(3):
            mask = self.draw_mask(type.shape)
        elif type.shape and self.chance(3):  # the buffer ends where the mask does
            size -= self.random.randrange(max(1, min(reach, size - PAD)))
            mask, end = self.let("lt", (index, size), Type("int1", type.shape), computed="int32"), 0
        b = Buffer(f"y{len(self.program.buffers)}", element, random_data(self.numbers, element, size + end), True)
        self.program.buffers.append(b)
        self.body.append(Statement("store", args=(index, name), buffer=b.name, mask=mask))

    def atomic(self):
        """Many elements to few addresses, without results; or each element to its own address, with the old
        value as result."""
        value = self.pick_tensor(lambda t: bits(t.element) >= 32)
        if value is None or value[1].size > 1024:
            return False
        element, shape = value[1].element, value[1].shape
        b = Buffer(f"a{len(self.program.buffers)}", element, None, True)
        mask = self.draw_mask(shape) if self.chance(2) else ""
        if self.depth > 0 or self.chance(2):
            source = self.pick(lambda t: t.shape == shape and t.element in ("int32", "int64", "uint32"))
            if source is None:
                return False
            places = self.random.choice([1, 4, 64])
            index = self.let("and", (source[0], places - 1), source[1], computed=source[1].element)
            op = self.random.choice(("add", "max", "min", "and", "or", "xor"))
            self.body.append(Statement("atomic", op, args=(index, value[0]), buffer=b.name, mask=mask))
            b.data = random_data(self.numbers, element, places + PAD)
        else:
            index = self.let("index", (), Type("int32", shape), place=(0, value[1].size, tuple(
                (size, int(np.prod(shape[d + 1:])), False) for d, size in enumerate(shape))))
            self.exchange(b, index, value, mask)
            b.data = random_data(self.numbers, element, value[1].size * self.program.grid + PAD)
        self.program.buffers.append(b)
        return True

    def exchange(self, b, index, value, mask):
        op = self.random.choice(("add", "max", "and", "xor", "xchg", "cas"))
        args, name = (index, value[0]), self.name()
        if op == "cas":
            other = self.pick(lambda t: t == value[1])
            args, mask = (index, other[0], value[0]), ""
        self.body.append(Statement("atomic", op, (name,), args, (value[1],), buffer=b.name, mask=mask))
        if mask:
            self.let("where", (mask, name, self.constant(value[1])), value[1])
        else:
            self.scope.append((name, value[1]))

    # ---- element by element ----

    def partner(self, a):
        """A second operand: (its name or number, element type of the result, shape of the result)."""
        name, type = a
        if self.chance(4):
            return self.literal(type.element), type.element, type.shape
        found = self.pick(lambda t: t.element != "int1" and (t.element == type.element or self.chance(3)) and
                          (t.shape in (type.shape, ()) or self.broadcasts(t.shape, type.shape)))
        if found is None:
            return None
        shape = tuple(np.broadcast_shapes(type.shape, found[1].shape))
        return found[0], promoted(type.element, found[1].element), shape

    @staticmethod
    def broadcasts(a, b):
        return len(a) == len(b) and all(x == y or 1 in (x, y) for x, y in zip(a, b)) and \
            int(np.prod(np.broadcast_shapes(a, b))) <= MOST_ELEMENTS

    def binary(self):
        a = self.pick_integer()
        other = self.partner(a) if a else None
        if other is None:
            return False
        b, element, shape = other
        op = self.random.choice(ELEMENT_BY_ELEMENT)
        if op in ("min", "max") and isinstance(b, int):  # functions make a tensor of a number
            element = promoted(element, literal_type(b))
        self.let(op, (a[0], b), Type(element, shape), computed=element)
        return True

    def compare(self):
        a = self.pick_integer()
        other = self.partner(a) if a else None
        if other is None:
            return False
        self.let(self.random.choice(COMPARISONS), (a[0], other[0]), Type("int1", other[2]), computed=other[1])
        return True

    def divide(self):
        a = self.pick_integer()
        if a is None:
            return False
        element, op = a[1].element, self.random.choice(("div", "rem"))
        kind = self.random.randrange(4)
        if kind == 0:
            choices = [c for c in (1, 2, 3, 7, 8, 10, 60, 100, 127, -3, -16, greatest(element), least(element))
                       if least(element) <= c <= greatest(element) and c != 0]
            self.let(op, (a[0], self.random.choice(choices)), a[1], computed=element)
            return True
        if kind == 1 and is_signed(element):  # by a scalar that is positive
            element = promoted(element, "int32")
            op = self.random.choice((op, op, "cdiv"))
            self.let(op, (a[0], self.random.choice(("n0", "n2"))), a[1].of(element), computed=element)
            return True
        b = self.pick(lambda t: t == a[1])
        if kind == 2:
            divisor = self.let("positive", (b[0],), a[1], number=3, computed=element)
            self.let(op, (a[0], divisor), a[1], computed=element)
            return True
        quotient = self.let(op, (a[0], b[0]), a[1], computed=element, hidden=True)
        usable = self.let("usable", (b[0],), a[1].of("int1"), computed=element)
        self.let("where", (usable, quotient, self.constant(a[1])), a[1])
        return True

    def divide_by_loaded(self):
        """The divisors are loaded with a mask. Where it is false they are zero or undetermined."""
        a = self.pick_tensor()
        b = self.input_buffer(a[1].element, positive=True) if a else None
        place = self.draw_place(a[1].shape, len(b.data)) if a else None
        if place is None:
            return False
        op, type, element = self.random.choice(("div", "rem")), a[1], a[1].element
        index = self.let("index", (), type.of("int32"), place=place[:3])
        mask = self.draw_mask(type.shape)
        divisor = self.let("load", (index,), type, buffer=b.name, mask=mask, hidden=True,
                           other=self.random.choice([None, 0]))
        quotient = self.let(op, (a[0], divisor), type, computed=element, hidden=True)
        if self.depth == 0 and self.chance(3):
            self.store(quotient, type, mask)
        else:
            self.let("where", (mask, quotient, self.constant(type)), type)
        return True

    def shift(self):
        a = self.pick_integer()
        if a is None:
            return False
        b = self.pick(lambda t: t == a[1]) if self.chance(2) else None
        self.let(self.random.choice(("shl", "shr")), (a[0], b[0] if b else self.random.randrange(bits(a[1].element))),
                 a[1], number=amount_mask(a[1].element), computed=a[1].element)
        return True

    def unary(self):
        a = self.pick_integer()
        if a is None:
            return False
        self.let(self.random.choice(("neg", "not", "abs")), (a[0],), a[1])
        return True

    def cast(self):
        a = self.pick(lambda t: True)
        element = self.random.choice(self.elements + list(INTEGERS) + ["int1"])
        self.let("cast", (a[0],), a[1].of(element))
        return True

    def predicate(self):
        a = self.pick(lambda t: t.element == "int1")
        b = self.pick(lambda t: t == a[1]) if a else None
        if b is None:
            return False
        if self.chance(3):
            self.let("not", (a[0],), a[1])
        else:
            self.let(self.random.choice(("and", "or", "xor")), (a[0], b[0]), a[1])
        return True

    def where(self):
        mask = self.pick(lambda t: t.element == "int1")
        a = self.pick(lambda t: mask and t.shape == mask[1].shape and t.element != "int1")
        b = self.pick(lambda t: a and t.shape == a[1].shape and t.element != "int1")
        if a is None:
            return False
        self.let("where", (mask[0], a[0], b[0]), a[1].of(promoted(a[1].element, b[1].element)))
        return True

    def high_product(self):
        a = self.pick_tensor(lambda t: bits(t.element) >= 32)
        b = self.pick(lambda t: a and t == a[1])
        if a is None:
            return False
        self.let("umulhi", (a[0], b[0]), a[1])
        return True

    # ---- folds and scans ----

    def fold(self):
        a = self.pick_tensor()
        if a is None:
            return False
        type, axis = a[1], self.random.randrange(len(a[1].shape))
        op = self.random.choice(("sum", "greatest", "smallest", "xor_sum", "any_bit", "argmax", "argmin",
                                 "greatest_and_place", "smallest_and_place", "custom"))
        rest = type.shape[:axis] + type.shape[axis + 1:]
        if op == "custom":
            return self.custom_fold(a, axis, rest)
        if op in ("argmax", "argmin"):
            self.let(op, (a[0],), Type("int32", rest), axis=axis)
        elif op in ("greatest_and_place", "smallest_and_place"):
            self.let(op, (a[0],), (Type(type.element, rest), Type("int32", rest)), axis=axis)
        else:
            element = {"sum": summed, "greatest": compared, "smallest": compared}.get(op, lambda e: e)(type.element)
            kept = self.chance(4)
            if kept:
                rest = type.shape[:axis] + (1,) + type.shape[axis + 1:]
            elif self.chance(4):
                axis, rest = None, ()
            self.let(op, (a[0],), Type(element, rest), axis=axis, kept=kept)
        return True

    def custom_fold(self, a, axis, kept):
        b = self.pick(lambda t: t.shape == a[1].shape and t.element == a[1].element)
        pair = self.chance(2)
        combine = self.random.choice(COMMUTATIVE[2 if pair else 1])
        types = tuple(Type(x[1].element, kept) for x in ((a, b) if pair else (a,)))
        self.let("reduce", (a[0], b[0]) if pair else (a[0],), types, axis=axis, combine=combine)
        return True

    def scan(self):
        a = self.pick_tensor()
        if a is None:
            return False
        type, axis = a[1], self.random.randrange(len(a[1].shape))
        op = self.random.choice(("cumsum", "cumprod", "scan", "scan"))
        more = {"axis": axis, "reverse": self.chance(2)}
        if op != "scan":
            self.let(op, (a[0],), type.of(summed(type.element)) if op == "cumsum" else type, **more)
            return True
        b = self.pick(lambda t: t == type)
        pair = self.chance(2)
        combine = self.random.choice(ASSOCIATIVE[2 if pair else 1])
        self.let("scan", (a[0], b[0]) if pair else (a[0],), (type, type) if pair else (type,), combine=combine, **more)
        return True

    # ---- order and places ----

    def sort(self):
        a = self.pick_tensor(lambda t: t.size <= 2048 and 1 < t.shape[-1] <= MOST_SORTED)
        if a is None or self.sorts_left == 0:
            return False
        self.sorts_left -= 1
        if self.chance(2) and a[1].shape[-1] >= 4 and bits(a[1].element) >= 32:
            k = self.random.choice([2, a[1].shape[-1] // 2])
            self.let("topk", (a[0],), Type(a[1].element, a[1].shape[:-1] + (k,)), number=k)
        elif self.chance(2) and len(a[1].shape) == 1 and a[1].size <= 64:
            b = self.pick(lambda t: t == a[1])
            self.let("sorted_cat", (a[0], b[0]), Type(a[1].element, (2 * a[1].size,)))
        else:
            self.let("sort", (a[0],), a[1], reverse=self.chance(2))
        return True

    sorts_left = 1

    def flip(self):
        a = self.pick_tensor(lambda t: max(t.shape) > 1)
        if a is None:
            return False
        self.let("flip", (a[0],), a[1], axis=self.random.choice([d for d, size in enumerate(a[1].shape) if size > 1]))
        return True

    def gather(self):
        a = self.pick_tensor()
        if a is None:
            return False
        axis = self.random.randrange(len(a[1].shape))
        beside = lambda s: s[:axis] + s[axis + 1:]
        index = self.pick_tensor(lambda t: len(t.shape) == len(a[1].shape) and beside(t.shape) == beside(a[1].shape))
        number = min(a[1].shape[axis] - 1, greatest(index[1].element))
        number = (1 << (number + 1).bit_length() - 1) - 1
        self.let("gather", (a[0], index[0]), Type(a[1].element, index[1].shape), axis=axis, number=number)
        return True

    def histogram(self):
        a = self.pick_tensor(lambda t: len(t.shape) == 1 and bits(t.element) >= 32)
        if a is None:
            return False
        bins = self.random.choice([2, 8, 16, 64, 256])
        numbers = self.let("and", (a[0], bins - 1), a[1], computed=a[1].element)
        mask = (self.draw_mask(a[1].shape),) if self.chance(2) else ()
        self.let("histogram", (numbers, *mask), Type("int32", (bins,)), bins=bins)
        return True

    # ---- shapes ----

    def shape(self):
        kind = self.random.choice(("reshape", "reshape", "permute", "expand", "broadcast", "join", "split",
                                   "interleave"))
        fits = {"split": lambda t: len(t.shape) > 1 and t.shape[-1] == 2, "broadcast": lambda t: 1 in t.shape}
        a = self.pick(fits.get(kind, lambda t: bool(t.shape)))
        if a is None:
            return False
        name, type = a
        rank = len(type.shape)
        if kind == "reshape":
            shape = self.random.choice([s for s in self.shapes if np.prod(s) == type.size] + [(type.size,)])
            self.let(kind, (name,), Type(type.element, shape))
        elif kind == "permute":
            order = tuple(self.random.sample(range(rank), rank))
            self.let(kind, (name,), Type(type.element, tuple(type.shape[d] for d in order)), order=order)
        elif kind == "expand" and rank < 3:
            axis = self.random.randrange(rank + 1)
            self.let(kind, (name,), Type(type.element, type.shape[:axis] + (1,) + type.shape[axis:]), axis=axis)
        elif kind == "broadcast":
            shape = tuple(self.random.choice([4, 16]) if s == 1 else s for s in type.shape)
            if np.prod(shape) > MOST_ELEMENTS:
                return False
            self.let(kind, (name,), Type(type.element, shape))
        elif kind == "split":
            half = Type(type.element, type.shape[:-1])
            self.let(kind, (name,), (half, half))
        elif kind in ("join", "interleave") and 2 * type.size <= MOST_ELEMENTS and rank < 3:
            b = self.pick(lambda t: t == type)
            shape = type.shape + (2,) if kind == "join" else type.shape[:-1] + (2 * type.shape[-1],)
            self.let(kind, (name, b[0]), Type(type.element, shape))
        else:
            return False
        return True

    # ---- control ----

    def inner(self, steps, times):
        """A nested block: (its statements, the scope before it)."""
        outer, kept, self.body = self.body, list(self.scope), []
        outer_times, self.times = self.times, self.times * times
        self.depth += 1
        self.steps(steps)
        made, values = self.body, [v for v in self.scope if v not in kept]
        self.depth -= 1
        self.times, self.body = outer_times, outer
        self.values_inside = values
        return made, kept

    def carried(self):
        """Variables that a block assigns to."""
        found = []
        for _ in range(self.random.randint(1, 3)):
            a = self.pick(lambda t: t.element != "int1")
            found.append((self.let("again", (a[0],), a[1]), a[1]))
        return found

    def assignments(self, carried, made):
        """At the end of a block: new values for the carried variables."""
        for name, type in carried:
            new = [v for v in self.values_inside if v[1] == type]
            if new:
                made.append(Statement("assign", names=(name,), args=(self.random.choice(new)[0],)))

    def loop(self):
        if self.depth >= 2:
            return False
        carried = self.carried()
        kind = self.random.choice(("for", "for", "for", "while"))
        counter = self.name()
        saved = list(self.scope)
        if kind == "for":
            bounds = self.random.choice([(3,), (0, 4), (2, 9, 3), (5, 0, -2), (0, "n2", 20), ("n2",), ("n2", 6),
                                         (1, "n0", 17), (0,)])
            if bounds == ("n2",) and self.program.scalars["n2"][1] > 4:
                bounds = (2,)
            times = len(range(*[b if isinstance(b, int) else self.program.scalars[b][1] for b in bounds]))
        else:
            bounds, times = (self.random.choice([2, 3, 4]),), 4
        self.scope.append((counter, Type("int32")))
        made, _ = self.inner(self.random.randint(1, 6), times)
        self.assignments(carried, made)
        self.scope = saved
        n = Statement(kind, self.random.choice(("range", "tl.range")) if kind == "for" else "", (counter,),
                      bounds=bounds, body=made)
        if kind == "for" and all(isinstance(b, int) for b in bounds) and times <= 3 and self.chance(3):
            n.op, n.kept = "tl.static_range", True
        tensors = [c for c in carried if c[1].shape]
        if kind == "while" and tensors and self.chance(2):
            n.args, n.number = (tensors[0][0],), self.random.choice([0, 7, greatest(tensors[0][1].element)])
        if made:
            self.body.append(n)
        return True

    def condition(self):
        if self.depth >= 2:
            return False
        test = self.pick(lambda t: t == Type("int1"))
        if test is None:
            a = self.pick(lambda t: not t.shape and t.element != "int1")
            test = (self.let(self.random.choice(COMPARISONS), (a[0], self.random.choice([0, 1, 3])), Type("int1"),
                             computed=a[1].element), Type("int1"))
        carried = self.carried()
        blocks = []
        saved = list(self.scope)
        for _ in range(2):
            made, _ = self.inner(self.random.randint(1, 4), 1)
            self.assignments(carried, made)
            self.scope = list(saved)
            blocks.append(made)
        if blocks[0]:
            self.body.append(Statement("if", args=(test[0],), body=blocks[0], otherwise=blocks[1]))
        return True

    # ---- programs ----

    STEPS = (("load", 4), ("binary", 8), ("compare", 3), ("divide", 5), ("divide_by_loaded", 2), ("shift", 2),
             ("unary", 2), ("cast", 2), ("predicate", 1), ("where", 3), ("high_product", 1), ("fold", 5), ("scan", 4),
             ("sort", 2), ("flip", 1), ("gather", 2), ("histogram", 2), ("shape", 6), ("loop", 2), ("condition", 1),
             ("atomic", 2))

    def steps(self, count):
        names = [name for name, weight in self.STEPS for _ in range(weight)]
        for _ in range(count):
            if self.work > MOST_WORK:
                return
            for _ in range(5):
                if getattr(self, self.random.choice(names))():
                    break

    def generate(self):
        self.load()
        self.load()
        self.steps(self.random.choice([3, 6, 10, 14, 18]))
        used = {a for n in walk(self.body) for a in (*n.args, n.mask) if isinstance(a, str)}
        loose = [v for v in self.scope if v[0] not in used and v[0].startswith("v")]
        for name, type in loose[-6:] or self.scope[-1:]:
            self.store(name, type)
        return self.program


def walk(body):
    for n in body:
        yield n
        yield from walk(n.body)
        yield from walk(n.otherwise)


def generate(seed, device, lanes):
    return Generator(seed, device, lanes).generate()
