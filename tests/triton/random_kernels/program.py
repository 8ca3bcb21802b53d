"""Programs as trees of statements: their text in Triton's language, and their meaning in NumPy.

A statement is a `let` (an operation of operations.py, a load or an index), an assignment to a
variable that a loop carries, a loop, a condition, a store or an atomic operation. Variables hold
NumPy arrays; those of scalars have no dimensions.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from operations import COMBINES, OPERATIONS
from types_of_triton import numpy_type, pointer_type

PAD = 32  # elements before and after what a program may write


@dataclass
class Statement:
    kind: str  # let, assign, for, while, if, store, atomic
    op: str = ""
    names: tuple = ()  # the results'
    args: tuple = ()  # names, or numbers written in the text
    types: tuple = ()  # the results' types
    computed: str = ""  # the operands' common element type; "": each as it is
    axis: int = None
    reverse: bool = False
    kept: bool = False  # the axis stays, with size 1
    number: int = 0
    bins: int = 0
    combine: str = ""
    order: tuple = ()
    place: tuple = ()  # of an index: (base, span of a program, (size, stride, reversed)s)
    buffer: str = ""
    mask: str = ""
    other: int = None
    bounds: tuple = ()  # of a loop: numbers or names
    body: list = field(default_factory=list)
    otherwise: list = field(default_factory=list)

    @property
    def type(self):
        return self.types[0]


@dataclass
class Buffer:
    name: str
    element: str
    data: np.ndarray  # before the launch
    is_output: bool = False


@dataclass
class Program:
    seed: int
    device: str = "sm_90a"
    warps: int = 4
    grid: int = 1
    scalars: dict = field(default_factory=dict)  # run-time values of parameters: (type, value)
    buffers: list = field(default_factory=list)
    body: list = field(default_factory=list)

    def with_body(self, body):
        return replace(self, body=body)


# ---- text ------------------------------------------------------------------------------------

def index_text(n):
    """base + pid * span + arange(size) * stride … , a tensor of int32."""
    base, span, dimensions = n.place
    parts = [str(base)] if base else []
    parts += [f"pid * {span}"] if span else []
    rank = len(dimensions)
    for d, (size, stride, backwards) in enumerate(dimensions):
        part = f"tl.arange(0, {size})"
        if backwards:
            part = f"({size - 1} - {part})"
        if rank > 1:
            part += "[" + ", ".join(":" if k == d else "None" for k in range(rank)) + "]"
        parts.append(part if stride == 1 else f"{part} * {stride}")
    return " + ".join(parts)


def expression(n):
    args = [str(a) for a in n.args]
    if n.op == "index":
        return index_text(n)
    if n.op == "inside":  # below the bounds along each dimension
        rank, tests = len(n.type.shape), []
        for d, bound in enumerate(n.bounds):
            place = f"tl.arange(0, {n.type.shape[d]})"
            if rank > 1:
                place += "[" + ", ".join(":" if k == d else "None" for k in range(rank)) + "]"
            tests.append(f"({place} < {bound})")
        return " & ".join(tests)
    if n.op == "load":
        words = [f"{n.buffer} + {args[0]}"]
        words += [f"mask={n.mask}"] if n.mask else []
        words += [f"other={n.other}"] if n.other is not None else []
        return f"tl.load({', '.join(words)})"
    return OPERATIONS[n.op][0](args, n)


def check_text(name, type):
    """Compares the type that is expected of a variable with the front end's."""
    if type.shape:
        return f"tl.static_assert({name}.dtype == tl.{type.element} and {name}.shape == {list(type.shape)})"
    return f"tl.static_assert({name}.dtype == tl.{type.element})"


OBVIOUS = ("index", "inside", "full", "again", "cast")  # operations whose text states the type


def lines_of(body, indent):
    space = "    " * indent
    for n in body:
        if n.kind == "let":
            yield f"{space}{', '.join(n.names)} = {expression(n)}"
            for name, type in zip(n.names, n.types) if n.op not in OBVIOUS else ():
                yield space + check_text(name, type)
        elif n.kind == "assign":
            yield f"{space}{n.names[0]} = {n.args[0]}"
        elif n.kind == "for":
            yield f"{space}for {n.names[0]}{'_' * n.kept} in {n.op}({', '.join(str(b) for b in n.bounds)}):"
            if n.kept:  # unrolled: the counter is a constant
                yield f"{space}    {n.names[0]} = tl.full([], {n.names[0]}_, tl.int32)"
            yield from lines_of(n.body, indent + 1)
        elif n.kind == "while":
            counter, bound = n.names[0], n.bounds[0]
            condition = f"{counter} < {bound}"
            if n.args:
                condition = f"({condition}) & (tl.max({n.args[0]}) != {n.number})"
            yield f"{space}{counter} = n1 * 0"
            yield f"{space}while {condition}:"
            yield from lines_of(n.body, indent + 1)
            yield f"{space}    {counter} = {counter} + 1"
        elif n.kind == "if":
            yield f"{space}if {n.args[0]}:"
            yield from lines_of(n.body, indent + 1)
            if n.otherwise:
                yield f"{space}else:"
                yield from lines_of(n.otherwise, indent + 1)
        elif n.kind == "store":
            mask = f", mask={n.mask}" if n.mask else ""
            yield f"{space}tl.store({n.buffer} + {n.args[0]}, {n.args[1]}{mask})"
        else:
            result = f"{n.names[0]} = " if n.names else ""
            words = ", ".join([f"{n.buffer} + {n.args[0]}", *n.args[1:]] + ([f"mask={n.mask}"] if n.mask else []))
            yield f"{space}{result}tl.atomic_{n.op}({words}, sem='relaxed')"


def used_combines(body):
    found = set()
    for n in body:
        found |= {n.combine} if n.combine else set()
        found |= used_combines(n.body) | used_combines(n.otherwise)
    return found


def source_of(program):
    functions = "".join(f"\n\n@triton.jit\n{COMBINES[name][0]}" for name in sorted(used_combines(program.body)))
    names = [b.name for b in program.buffers] + list(program.scalars)
    body = "\n".join(lines_of(program.body, 1))
    return (f"import triton\nimport triton.language as tl\n{functions}\n\n@triton.jit\n"
            f"def kernel({', '.join(names)}):\n    pid = tl.program_id(0)\n{body}\n")


def signature_of(program):
    signature = {b.name: pointer_type(b.element) for b in program.buffers}
    signature.update({name: pointer_type(element)[1:] for name, (element, _) in program.scalars.items()})
    return signature


# ---- meaning ---------------------------------------------------------------------------------

class Machine:
    """Runs one program of the grid after the other. `garbage` is the value of undetermined elements."""

    def __init__(self, program, garbage):
        self.program = program
        self.garbage = garbage
        self.buffers = {b.name: b.data.copy() for b in program.buffers}
        self.variables = {}

    def run(self):
        with np.errstate(all="ignore"):
            for pid in range(self.program.grid):
                self.variables = {name: np.asarray(value, numpy_type(element))
                                  for name, (element, value) in self.program.scalars.items()}
                self.variables["pid"] = np.asarray(pid, np.int32)
                self.block(self.program.body)
        return self.buffers

    def bound(self, value):
        return int(value) if isinstance(value, int) else int(self.variables[value])

    def block(self, body):
        for n in body:
            getattr(self, "do_" + n.kind)(n)

    def do_let(self, n):
        if n.op == "index":
            results = [self.index(n)]
        elif n.op == "inside":
            results = [self.inside(n)]
        elif n.op == "load":
            results = [self.load(n)]
        else:
            results = OPERATIONS[n.op][1](self.operands(n), n)
            results = results if isinstance(results, list) else [results]
        for name, type, value in zip(n.names, n.types, results):
            value = np.asarray(value)
            assert value.shape == type.shape and value.dtype == numpy_type(type.element), (n, value.shape, value.dtype)
            self.variables[name] = value

    def operands(self, n):
        values = []
        for a in n.args:
            value = np.asarray(a, numpy_type(n.computed)) if isinstance(a, int) else self.variables[a]
            if n.computed:
                value = value.astype(numpy_type(n.computed))
            values.append(value)
        return values

    def index(self, n):
        base, span, dimensions = n.place
        result = np.full(n.type.shape, base + span * int(self.variables["pid"]), np.int64)
        for d, (size, stride, backwards) in enumerate(dimensions):
            steps = np.arange(size) * stride
            steps = steps[::-1] if backwards else steps
            result += steps.reshape([-1 if k == d else 1 for k in range(len(dimensions))])
        return result.astype(np.int32)

    def inside(self, n):
        result = np.ones(n.type.shape, bool)
        for d, bound in enumerate(n.bounds):
            places = np.arange(n.type.shape[d]) < self.bound(bound)
            result &= places.reshape([-1 if k == d else 1 for k in range(len(n.bounds))])
        return result

    def load(self, n):
        data, index = self.buffers[n.buffer], self.variables[n.args[0]]
        if not n.mask:
            return data[index]
        mask = np.broadcast_to(self.variables[n.mask], index.shape)
        other = self.garbage if n.other is None else n.other
        filler = np.asarray(other).astype(data.dtype)
        return np.where(mask, data[np.where(mask, index, 0)], filler)

    def do_assign(self, n):
        self.variables[n.names[0]] = self.variables[n.args[0]]

    def do_for(self, n):
        for i in range(*[self.bound(b) for b in n.bounds]):
            self.variables[n.names[0]] = np.asarray(i, np.int32)
            self.block(n.body)

    def do_while(self, n):
        count = 0
        while count < self.bound(n.bounds[0]):
            if n.args and int(self.variables[n.args[0]].max()) == n.number:
                break
            self.variables[n.names[0]] = np.asarray(count, np.int32)
            self.block(n.body)
            count += 1

    def do_if(self, n):
        self.block(n.body if self.variables[n.args[0]] else n.otherwise)

    def do_store(self, n):
        index, value = np.broadcast_arrays(self.variables[n.args[0]], self.variables[n.args[1]])
        mask = np.broadcast_to(self.variables[n.mask], index.shape) if n.mask else np.ones(index.shape, bool)
        data = self.buffers[n.buffer]
        data[index[mask]] = value[mask].astype(data.dtype)

    def do_atomic(self, n):
        data = self.buffers[n.buffer]
        index = self.variables[n.args[0]]
        values = [np.broadcast_to(self.variables[a], index.shape) for a in n.args[1:]]
        mask = np.broadcast_to(self.variables[n.mask], index.shape) if n.mask else np.ones(index.shape, bool)
        old = np.full(index.shape, np.asarray(self.garbage).astype(data.dtype))
        for at in zip(*np.nonzero(mask)) if index.shape else [()] * int(mask):
            place = index[at]
            old[at] = data[place]
            data[place] = ATOMICS[n.op](data[place], *[v[at] for v in values])
        if n.names:
            self.variables[n.names[0]] = old


ATOMICS = {
    "add": lambda old, value: old + value,
    "max": lambda old, value: max(old, value),
    "min": lambda old, value: min(old, value),
    "and": lambda old, value: old & value,
    "or": lambda old, value: old | value,
    "xor": lambda old, value: old ^ value,
    "xchg": lambda old, value: value,
    "cas": lambda old, compare, value: value if old == compare else old,
}


def expected(program):
    """The buffers after the launch, and for each element whether it is determined: it does not depend
    on the value of undetermined elements."""
    first = Machine(program, 0x5A5A5A5A5A5A5A5A).run()
    second = Machine(program, -77).run()
    return first, {name: first[name] == second[name] for name in first}
