"""Random kernels of integers that move: layouts converted, transposes, reshapes, reductions in slices
of one layout that are added in another, shared memory, loops; in layouts of every kind.

Each is run on the simulator and compared with the same steps on lists, must have no finding, and
where ptxas is, that must take it for sm_90a without a warning or a spill.
"""

import copy
import json
import os
import random
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import npy  # noqa: E402
from ptxas import check_ptxas  # noqa: E402

WARPS = 4
TYPES = {"i8": ("i1", 8), "i16": ("i2", 16), "i32": ("i4", 32), "i64": ("i8", 64)}
KERNELS = 40
MOST_WORDS = 64  # of a thread's 255 registers, for one tensor of several


def wrap(value, bits):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


class Builder:
    """A kernel in the making, with the tensor that it has by now: its name, shape, layout and
    elements in row-major order."""

    def __init__(self, source):
        self.source = source
        self.aliases, self.lines = [], []
        self.numbers = 0
        self.words = 0  # most 32-bit registers that a tensor takes, one an element at least
        self.type = source.choice(list(TYPES))
        self.bits = TYPES[self.type][1]
        bits = source.randrange(8, 12 if self.bits < 64 else 11)
        rows = source.randrange(4, bits - 3)
        self.shape = (1 << rows, 1 << (bits - rows))
        self.layout = self.new_layout(self.shape)
        self.input = [wrap(source.getrandbits(64), self.bits) for _ in range(1 << bits)]
        self.values = list(self.input)
        self.name = self.emit("tt.load %s : %s" % (self.pointers("%src"), self.tensor("ptr")))

    def emit(self, text):
        self.numbers += 1
        self.lines.append("%%v%d = %s" % (self.numbers, text))
        return "%%v%d" % self.numbers

    # ---- layouts

    def alias(self, text):
        self.aliases.append(text)
        return "#l%d" % (len(self.aliases) - 1)

    def new_layout(self, shape):
        kind = self.source.choice(["blocked", "blocked", "mma", "linear", "operand"])
        if kind == "blocked":
            threads = 1 << self.source.randrange(6)
            warps = self.source.choice([1, 2, 4])
            sizes = [1 << self.source.randrange(4), 1 << self.source.randrange(4)]
            tile = (sizes[0] * threads * warps, sizes[1] * (32 // threads) * (WARPS // warps))
            self.count(*[min(sizes[d], shape[d]) * max(1, shape[d] // tile[d]) for d in range(2)])
            return self.alias(
                "#ttg.blocked<{sizePerThread = [%d, %d], threadsPerWarp = [%d, %d], warpsPerCTA = "
                "[%d, %d], order = %s}>" % (*sizes, threads, 32 // threads, warps, WARPS // warps,
                                            self.source.choice(["[0, 1]", "[1, 0]"])))
        if kind == "linear":
            return self.linear(shape)
        warps = self.source.choice([1, 2, 4])
        mma = self.alias("#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = "
                         "[%d, %d], instrShape = [16, 8]}>" % (warps, WARPS // warps))
        down = max(1, shape[0] // (16 * warps))
        across = max(1, shape[1] // (8 * (WARPS // warps)))
        if kind == "mma":
            self.count(2 * down, 2 * across)
            return mma
        operand, width = self.source.randrange(2), max(1, 32 // self.bits)
        if operand == 0:
            self.count(2 * down, max(2 * width, shape[1] // 4))
        else:
            self.count(max(2 * width, shape[0] // 4), across)
        return self.alias("#ttg.dot_op<{opIdx = %d, parent = %s, kWidth = %d}>"
                          % (operand, mma, width))

    def count(self, down, across):
        """A layout gives a thread so many elements."""
        self.words = max(self.words, down * across * max(32, self.bits) // 32)

    def linear(self, shape):
        """Unit vectors dealt in any order, some with lower ones of the same dimension added."""
        units = [(d, 1 << j) for d in range(2) for j in range(shape[d].bit_length() - 1)]
        self.source.shuffle(units)
        columns = []
        for d, place in units:
            lower = [p for e, p in columns if e == d and p < place]
            extra = self.source.choice(lower) if lower and self.source.random() < 0.3 else 0
            columns.append((d, place ^ extra if extra else place))
        texts = ["[%d, %d]" % ((place, 0) if d == 0 else (0, place)) for d, place in columns]
        lanes, warps = texts[:5], texts[5:7]
        lanes += ["[0, 0]"] * (5 - len(lanes))
        warps += ["[0, 0]"] * (2 - len(warps))
        return self.alias("#ttg.linear<{register = [%s], lane = [%s], warp = [%s], block = []}>"
                          % (", ".join(texts[7:]), ", ".join(lanes), ", ".join(warps)))

    def tensor(self, element=None, shape=None, layout=None):
        element = {None: self.type, "ptr": "!tt.ptr<%s>" % self.type}.get(element, element)
        return "tensor<%sx%s, %s>" % ("x".join(str(size) for size in shape or self.shape), element,
                                      layout or self.layout)

    def slice(self, dim, layout=None):
        return "#ttg.slice<{dim = %d, parent = %s}>" % (dim, layout or self.layout)

    def pointers(self, base):
        """To the tensor's places in a row-major array."""
        rows, columns = self.shape
        i32, wide = "i32", []
        for dim, size in ((0, rows), (1, columns)):
            thin = (rows, 1) if dim == 0 else (1, columns)
            line = self.emit("tt.make_range {end = %d : i32, start = 0 : i32} : %s" % (
                size, self.tensor(i32, (size,), self.slice(1 - dim))))
            line = self.emit("tt.expand_dims %s {axis = %d : i32} : %s -> %s" % (
                line, 1 - dim, self.tensor(i32, (size,), self.slice(1 - dim)),
                self.tensor(i32, thin)))
            if dim == 0:
                factor = self.emit("arith.constant dense<%d> : %s" % (columns,
                                                                     self.tensor(i32, thin)))
                line = self.emit("arith.muli %s, %s : %s" % (line, factor, self.tensor(i32, thin)))
            wide.append(self.emit("tt.broadcast %s : %s -> %s" % (line, self.tensor(i32, thin),
                                                                 self.tensor(i32))))
        index = self.emit("arith.addi %s, %s : %s" % (*wide, self.tensor(i32)))
        start = self.emit("tt.splat %s : !tt.ptr<%s> -> %s" % (base, self.type, self.tensor("ptr")))
        return self.emit("tt.addptr %s, %s : %s, %s" % (start, index, self.tensor("ptr"),
                                                        self.tensor(i32)))

    # ---- steps

    def convert(self):
        layout = self.new_layout(self.shape)
        self.name = self.emit("ttg.convert_layout %s : %s -> %s" % (
            self.name, self.tensor(), self.tensor(layout=layout)))
        self.layout = layout

    def arithmetic(self):
        number = self.source.randrange(1, 100)
        constant = self.emit("arith.constant dense<%d> : %s" % (number, self.tensor()))
        code = self.source.choice(["addi", "muli", "xori"])
        self.name = self.emit("arith.%s %s, %s : %s" % (code, self.name, constant, self.tensor()))
        apply = {"addi": int.__add__, "muli": int.__mul__, "xori": int.__xor__}[code]
        self.values = [wrap(apply(value, number), self.bits) for value in self.values]

    def transpose(self):
        rows, columns = self.shape
        shape = (columns, rows)
        layout = self.new_layout(shape)
        self.name = self.emit("tt.trans %s {order = array<i32: 1, 0>} : %s -> %s" % (
            self.name, self.tensor(), self.tensor(None, shape, layout)))
        self.values = [self.values[r * columns + c] for c in range(columns) for r in range(rows)]
        self.shape, self.layout = shape, layout

    def reshape(self):
        count = self.shape[0] * self.shape[1]
        rows = 1 << self.source.randrange(4, count.bit_length() - 4)
        shape = (rows, count // rows)
        layout = self.new_layout(shape)
        self.name = self.emit("tt.reshape %s : %s -> %s" % (self.name, self.tensor(),
                                                            self.tensor(None, shape, layout)))
        self.shape, self.layout = shape, layout

    def reduce(self):
        """Sums along an axis, moved to a slice of another layout, added to every element there."""
        axis = self.source.randrange(2)
        rows, columns = self.shape
        size = (self.shape[1 - axis],)
        text = ("\"tt.reduce\"(%s) <{axis = %d : i32}> ({\n    ^bb0(%%a: %s, %%b: %s):\n"
                "      %%c = arith.addi %%a, %%b : %s\n      tt.reduce.return %%c : %s\n    }) : "
                "(%s) -> %s" % (self.name, axis, *[self.type] * 4, self.tensor(),
                                self.tensor(None, size, self.slice(axis))))
        sums, old = self.emit(text), self.slice(axis)
        self.convert()
        sums = self.emit("ttg.convert_layout %s : %s -> %s" % (
            sums, self.tensor(None, size, old), self.tensor(None, size, self.slice(axis))))
        thin = (1, columns) if axis == 0 else (rows, 1)
        sums = self.emit("tt.expand_dims %s {axis = %d : i32} : %s -> %s" % (
            sums, axis, self.tensor(None, size, self.slice(axis)), self.tensor(None, thin)))
        sums = self.emit("tt.broadcast %s : %s -> %s" % (sums, self.tensor(None, thin),
                                                         self.tensor()))
        self.name = self.emit("arith.addi %s, %s : %s" % (self.name, sums, self.tensor()))
        values = self.values
        if axis == 0:
            totals = [sum(values[c::columns]) for c in range(columns)] * rows
        else:
            totals = [sum(values[r * columns:(r + 1) * columns])
                      for r in range(rows) for _ in range(columns)]
        self.values = [wrap(value + total, self.bits) for value, total in zip(values, totals)]

    def memory(self):
        """Through shared memory, and maybe out of it transposed."""
        order = self.source.choice([(0, 1), (1, 0)])
        vec, phases = 1 << self.source.randrange(4), 1 << self.source.randrange(4)
        swizzle = "#ttg.swizzled_shared<{vec = %d, perPhase = 1, maxPhase = %d, order = [%d, %d]}>"
        rows, columns = self.shape
        memory = "!ttg.memdesc<%dx%dx%s, %s, #smem>"
        first = memory % (rows, columns, self.type, self.alias(swizzle % (vec, phases, *order)))
        place = self.emit("ttg.local_alloc %s : (%s) -> %s" % (self.name, self.tensor(), first))
        if self.source.random() < 0.5:
            second = memory % (columns, rows, self.type,
                               self.alias(swizzle % (vec, phases, *[1 - d for d in order])))
            place = self.emit("ttg.memdesc_trans %s {order = array<i32: 1, 0>} : %s -> %s" % (
                place, first, second))
            self.values = [self.values[r * columns + c]
                           for c in range(columns) for r in range(rows)]
            self.shape, first = (columns, rows), second
        self.layout = self.new_layout(self.shape)
        self.name = self.emit("ttg.local_load %s : %s -> %s" % (place, first, self.tensor()))

    def loop(self):
        """One step again and again; a step's effect on the elements is the same each time."""
        times = self.source.randrange(4)
        bounds = [self.emit("arith.constant %d : i32" % number) for number in (0, times, 1)]
        kept, layout = self.tensor(), self.layout
        result = self.emit("scf.for %%k = %s to %s step %s iter_args(%%t = %s) -> (%s) : i32 {" % (
            *bounds, self.name, kept))
        self.name = "%t"
        step = self.source.choice([self.convert, self.reduce, self.arithmetic])
        state, before = self.source.getstate(), self.values
        step()
        if self.layout != layout:
            self.name = self.emit("ttg.convert_layout %s : %s -> %s" % (self.name, self.tensor(),
                                                                        kept))
        self.lines += ["scf.yield %s : %s" % (self.name, kept), "}"]
        self.name, self.layout = result, layout
        if times == 0:
            self.values = before
        for _ in range(times - 1):
            again = copy.copy(self)
            again.source = random.Random()
            again.source.setstate(state)
            again.lines, again.aliases = [], []
            getattr(again, step.__name__)()
            self.values = again.values

    def finish(self):
        place = self.pointers("%dst")
        self.lines.append("tt.store %s, %s : %s" % (place, self.name, self.tensor("ptr")))
        head = ["%s = %s" % ("#l%d" % number, text) for number, text in enumerate(self.aliases)]
        pointer = "!tt.ptr<%s> {tt.divisibility = 16 : i32}" % self.type
        return "\n".join(head + [
            "#smem = #ttg.shared_memory",
            "module attributes {\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = %d : i32, "
            "ttg.target = \"cuda:90\", \"ttg.threads-per-warp\" = 32 : i32} {" % WARPS,
            "  tt.func public @k(%%src: %s, %%dst: %s) {" % (pointer, pointer)] +
            ["    " + line for line in self.lines] + ["    tt.return", "  }", "}", ""])


def check(lilac, ptxas, number):
    source = random.Random(number)
    builder = Builder(source)
    steps = [builder.convert, builder.convert, builder.arithmetic, builder.transpose,
             builder.reshape, builder.reduce, builder.memory, builder.loop]
    for _ in range(source.randrange(2, 6)):
        source.choice(steps)()
    text = builder.finish()
    descr = TYPES[builder.type][0]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.ttgir")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        for name, values in (("src", builder.input), ("dst", [0] * len(builder.values)),
                             ("want", builder.values)):
            npy.write(os.path.join(folder, name + ".npy"), descr, values)
        done = command.run(lilac, "run", path, "--verify", "--json", "--grid", "1",
                           "--arg", "src=@%s/src.npy" % folder, "--arg", "dst=@%s/dst.npy" % folder,
                           "--expect", "dst=%s/want.npy,0" % folder)
        if done.returncode not in (0, 3):
            return "exit status %d\n%s%s" % (done.returncode, done.stderr, text)
        report = json.loads(done.stdout)
        if done.returncode != 0 or report["findings"] or done.stderr:
            return "%s\n%s\n%s" % (json.dumps(report["expect"]), done.stderr, text)
        if not ptxas:
            return None
        code = os.path.join(folder, "kernel.ptx")
        done = command.run(lilac, "compile", path, "-o", code)
        if done.returncode != 0:
            return "exit status %d\n%s" % (done.returncode, done.stderr)
        reason, _ = check_ptxas(ptxas, code)
        if reason and builder.words > MOST_WORDS and "spilled" in reason:
            return None  # no machine has the registers
        return reason and reason + text


def main():
    arguments = command.parse_arguments(__doc__)
    ptxas = shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")
    failures = []
    numbers = [int(name) for name in arguments.names] or range(KERNELS)
    for number in numbers:
        reason = check(arguments.lilac, ptxas, number)
        if reason:
            failures.append(str(number))
            print("kernel %d FAILED: %s" % (number, reason))
    command.finish(failures, len(numbers), "kernels of conversions")


if __name__ == "__main__":
    main()
