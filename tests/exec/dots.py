"""Random matrix products on the simulator against the standard library's arithmetic.

    plain     D = A B + C, with a batch in some
    loop      D = A B + C, one block of K in each iteration: the loop carries the accumulator
    left      D = narrow(A B) E + C: the first operand is computed in registers
    right     D = E narrow(A B) + C: the second operand is computed in registers

Types, sizes of 1 to 128, numbers of warps, devices and transposed operands are random. A launch must
have no finding: no race, no read of memory that nobody wrote.

Half of the kernels multiply small integers, whose sums every type holds: their results are equal to the
exact ones. The others multiply normal numbers. Their tolerance is relative to the sum of magnitudes
|A| |B| + |C|, and depends on how products are added up:

    f64                2^-50
    narrow, in f32     2^-22            one rounding for each instruction
    f32, by FMA        2^-22 √n         n roundings of at most 2^-24: four standard deviations and more
    f16                2^-9             each instruction rounds its sums to f16
    f8                 2^-12            wgmma adds 8-bit floats with 14 bits

The product of 8-bit integers is exact. Inputs of tf32 have no bits that tf32 lacks.

LILAC_TEST_LONG=1 runs 1,500 kernels. At least a tenth of the kernels must use each of wgmma, mma and
multiply-adds.
"""

import json
import math
import operator
import os
import random
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import npy  # noqa: E402

KERNELS = 1500 if os.environ.get("LILAC_TEST_LONG") else 150
MOST_ELEMENTS = 16384  # of A and B together
ITERATIONS = 3

# name: the type in TTIR, numpy's type of the file
TYPES = {"f16": ("f16", "f2"), "bf16": ("bf16", "u2"), "f32": ("f32", "f4"), "tf32": ("f32", "f4"),
         "f64": ("f64", "f8"), "i8": ("i8", "i1"), "e4m3": ("f8E4M3FN", "u1"), "e5m2": ("f8E5M2", "u1"),
         "i32": ("i32", "i4")}
TOLERANCES = {"f64": 2.0 ** -50, "f32": 2.0 ** -22, "f16": 2.0 ** -9, "i32": 0}
TOLERANCE_OF_BYTES = 2.0 ** -12
DEVICES = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_90a", "sm_90a", "sm_100a", "sm_120a"]
WITHOUT_BYTE_FLOATS = ["sm_80", "sm_86"]  # the products are refused there until 8-bit floats are converted


# ---- numbers ------------------------------------------------------------------------------------


def decode_byte(kind, bits):
    exponent_bits, bias = (4, 7) if kind == "e4m3" else (5, 15)
    fraction_bits = 7 - exponent_bits
    exponent, fraction = bits >> fraction_bits & (1 << exponent_bits) - 1, bits & (1 << fraction_bits) - 1
    size = 2.0 ** fraction_bits
    value = (fraction / size * 2.0 ** (1 - bias) if exponent == 0
             else (1 + fraction / size) * 2.0 ** (exponent - bias))
    if kind == "e4m3" and bits & 127 == 127 or kind == "e5m2" and exponent == 31:
        return math.nan
    return -value if bits >> 7 else value


BYTES = {kind: {bits: decode_byte(kind, bits) for bits in range(256) if abs(decode_byte(kind, bits)) <= 16}
         for kind in ("e4m3", "e5m2")}  # without infinities and NaN
NAMES = {kind: {value: bits for bits, value in values.items()} for kind, values in BYTES.items()}


def bits_of(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def truncate(value, bits):
    """The f32 without its last bits."""
    return struct.unpack("<f", struct.pack("<I", bits_of(value) >> bits << bits))[0]


def draw(source, kind, exact, largest=2):
    """A number that the type holds."""
    if kind in ("i8", "i32"):
        return source.randint(-128, 127)
    if exact:
        return float(source.randint(-largest, largest))
    if kind in BYTES:
        return BYTES[kind][source.choice(sorted(BYTES[kind]))]
    value = source.gauss(0, 1)
    if kind == "f64":
        return value
    return npy.round_f16(value) if kind == "f16" else truncate(value, {"bf16": 16, "tf32": 13, "f32": 0}[kind])


def stored(kind, value):
    """What the file of an array has for the number."""
    return bits_of(value) >> 16 if kind == "bf16" else NAMES[kind][value] if kind in NAMES else value


# ---- matrices -----------------------------------------------------------------------------------


class Matrix:
    """A batch of matrices: its text, its file and its numbers, numbers[batch][row][column]."""

    def __init__(self, source, name, kind, batch, rows, columns, exact, transposed=False, iterations=1, along=None):
        self.name, self.kind, self.transposed, self.iterations, self.along = name, kind, transposed, iterations, along
        self.batch, self.rows, self.columns = batch, rows, columns  # of one iteration
        height, width = rows * (iterations if along == 0 else 1), columns * (iterations if along == 1 else 1)
        self.numbers = [[[draw(source, kind, exact) for _ in range(width)] for _ in range(height)]
                        for _ in range(batch or 1)]

    def flat(self):
        return [stored(self.kind, value) for matrix in self.numbers
                for row in (zip(*matrix) if self.transposed else matrix) for value in row]

    def type(self, element=None, swapped=False):
        sizes = [self.columns, self.rows] if swapped else [self.rows, self.columns]
        return tensor(([self.batch] if self.batch else []) + sizes, element or TYPES[self.kind][0])

    def pointers(self):
        """Pointers to the first block, and the offset of the next one."""
        height, width = len(self.numbers[0]), len(self.numbers[0][0])
        strides = [height * width] if self.batch else []
        sizes = ([self.batch] if self.batch else []) + (
            [self.columns, self.rows] if self.transposed else [self.rows, self.columns])
        strides += [height if self.transposed else width, 1]
        step = self.rows if self.along == 0 else self.columns
        next_row = self.transposed == (self.along == 1)
        return pointers(self.name, TYPES[self.kind][0], sizes, strides), step * strides[-2 if next_row else -1]


def tensor(sizes, element):
    return "tensor<%sx%s>" % ("x".join(map(str, sizes)), element)


def pointers(name, element, sizes, strides):
    """%pNAME: pointers to a tensor."""
    lines, total = [], None
    everything = tensor(sizes, "i32")
    for d, size in enumerate(sizes):
        v = "%%%s%d" % (name, d)
        lines.append("%s = tt.make_range {end = %d : i32, start = 0 : i32} : tensor<%dxi32>" % (v, size, size))
        shape = [size]
        for other in [i for i in range(len(sizes)) if i != d]:
            before = tensor(shape, "i32")
            shape.insert(other, 1)
            lines.append("%s_%d = tt.expand_dims %s {axis = %d : i32} : %s -> %s" % (
                v, other, v if len(shape) == 2 else last, other, before, tensor(shape, "i32")))
            last = "%s_%d" % (v, other)
        own = tensor(shape, "i32")
        lines.append("%s_s = arith.constant dense<%d> : %s" % (v, strides[d], own))
        lines.append("%s_m = arith.muli %s, %s_s : %s" % (v, last, v, own))
        lines.append("%s_b = tt.broadcast %s_m : %s -> %s" % (v, v, own, everything))
        if total is not None:
            lines.append("%s_t = arith.addi %s, %s_b : %s" % (v, total, v, everything))
        total = v + ("_b" if total is None else "_t")
    all_pointers = tensor(sizes, "!tt.ptr<%s>" % element)
    lines.append("%%s%s = tt.splat %%%s : !tt.ptr<%s> -> %s" % (name, name, element, all_pointers))
    lines.append("%%p%s = tt.addptr %%s%s, %s : %s, %s" % (name, name, total, all_pointers, everything))
    return lines


def load(matrix, pointer):
    """Lines that load the matrix, and the value."""
    name, element = matrix.name, TYPES[matrix.kind][0]
    lines = ["%%l%s = tt.load %s : %s" % (name, pointer, matrix.type("!tt.ptr<%s>" % element, matrix.transposed))]
    if not matrix.transposed:
        return lines, "%l" + name
    order = "0, 2, 1" if matrix.batch else "1, 0"
    lines.append("%%t%s = tt.trans %%l%s {order = array<i32: %s>} : %s -> %s" % (
        name, name, order, matrix.type(swapped=True), matrix.type()))
    return lines, "%t" + name


def multiply(a, b, c):
    """The product plus c, and the sum of magnitudes."""
    columns = list(zip(*b))
    result, magnitudes = [], []
    for row, start in zip(a, c):
        products = [list(map(operator.mul, row, column)) for column in columns]
        result.append([math.fsum(p + [s]) for p, s in zip(products, start)])
        magnitudes.append([sum(map(abs, p)) + abs(s) for p, s in zip(products, start)])
    return result, magnitudes


# ---- kernels ------------------------------------------------------------------------------------


def dot(name, a, b, c, types, tf32, limit=0):
    words = (", inputPrecision = tf32" if tf32 else "") + (" {maxNumImpreciseAcc = %d : i32}" % limit if limit else "")
    return "%%%s = tt.dot %s, %s, %s%s : %s * %s -> %s" % ((name, a, b, c, words) + types)


class Kernel:
    def __init__(self, seed):
        source = self.source = random.Random("dots %d" % seed)
        self.shape = source.choice(["plain", "plain", "loop", "left", "right"])
        self.exact = source.random() < 0.5
        self.a = source.choice(["f16", "bf16", "f32", "tf32", "f64", "i8", "e4m3", "e5m2"])
        self.device = source.choice(DEVICES)
        if self.shape in ("left", "right"):  # a result in a narrow type again, exact
            self.a, self.exact = source.choice(["f16", "bf16", "tf32", "f32"]), True
        while self.a in BYTES and self.device in WITHOUT_BYTE_FLOATS:
            self.device = source.choice(DEVICES)
        self.b = source.choice(sorted(BYTES)) if self.a in BYTES else self.a
        self.d = {"f16": source.choice(["f32", "f16"]), "f64": "f64", "i8": "i32"}.get(self.a, "f32")
        if self.shape in ("left", "right"):
            self.d = "f32"
        self.warps = source.choice([1, 2, 4, 4, 8, 16])
        self.batch = source.choice([2, 4]) if self.shape == "plain" and source.random() < 0.2 else 0
        self.sizes()
        if source.random() < 0.25 and self.a != "f64":  # what wgmma computes
            self.device, self.warps, self.batch = "sm_90a", source.choice([4, 4, 8]), 0
            self.m, self.k = max(self.m, 64), max(self.k, 32)
            self.n = max(self.n, 64 if self.shape in ("left", "right") else 8)
        self.matrices()
        self.limit = source.choice([0, 32, 64, 1 << 30, 1 << 30]) if self.a in BYTES else 0

    def sizes(self):
        draw_size = lambda: 1 << self.source.choice([0, 1, 2, 3, 4, 5, 6, 6, 7, 7])  # noqa: E731
        self.m, self.n, self.k = draw_size(), draw_size(), draw_size()
        while max(self.batch, 1) * self.k * (self.m + self.n) > MOST_ELEMENTS and self.k > 1:
            self.k //= 2
        if self.shape in ("left", "right"):  # sums of the first product: bf16 holds integers up to 256
            self.k, self.n = min(self.k, 32), min(self.n, 64)
        self.l = min(draw_size(), 64)

    def matrices(self):
        def matrix(name, kind, rows, columns, along=None, turns=True):
            transposed = turns and self.source.random() < 0.4
            return Matrix(self.source, name, kind, self.batch, rows, columns, self.exact, transposed,
                          ITERATIONS if self.shape == "loop" and along is not None else 1, along)

        self.A, self.B = matrix("A", self.a, self.m, self.k, 1), matrix("B", self.b, self.k, self.n, 0)
        self.E = None
        rows, columns = self.m, self.n
        if self.shape == "left":
            self.E, columns = matrix("E", self.a, self.n, self.l), self.l
        elif self.shape == "right":
            self.E, rows = matrix("E", self.a, self.l, self.m), self.l
        self.C = matrix("C", self.d, rows, columns, turns=False)
        self.inputs = [x for x in (self.A, self.B, self.E, self.C) if x is not None]

    def text(self):
        lines = []
        for one in self.inputs:
            lines += one.pointers()[0]
        lines += load(self.C, "%pC")[0]
        lines += getattr(self, self.shape if self.shape == "loop" else "products")()
        element = TYPES[self.d][0]
        lines.append("tt.store %%pC, %%D : %s" % self.C.type("!tt.ptr<%s>" % element))
        parameters = ", ".join("%%%s: !tt.ptr<%s> {tt.divisibility = 16 : i32}" % (one.name, TYPES[one.kind][0])
                               for one in self.inputs)
        return "module {\n  tt.func public @k(%s) {\n%s    tt.return\n  }\n}\n" % (
            parameters, "".join("    %s\n" % line for line in lines))

    def products(self):
        lines_a, a = load(self.A, "%pA")
        lines_b, b = load(self.B, "%pB")
        lines, tf32 = lines_a + lines_b, self.a == "tf32"
        if self.E is None:
            return lines + [dot("D", a, b, "%lC", (self.A.type(), self.B.type(), self.C.type()), tf32, self.limit)]
        sizes, element = [self.m, self.n], TYPES[self.a][0]
        wide, narrow = tensor(sizes, "f32"), tensor(sizes, element)
        lines.append("%%zero = arith.constant dense<0.0> : %s" % wide)
        lines.append(dot("first", a, b, "%zero", (self.A.type(), self.B.type(), wide), tf32))
        first = "%first"
        if element != "f32":
            lines.append("%%narrow = arith.truncf %%first : %s to %s" % (wide, narrow))
            first = "%narrow"
        more, e = load(self.E, "%pE")
        if self.shape == "left":
            return lines + more + [dot("D", first, e, "%lC", (narrow, self.E.type(), self.C.type()), tf32)]
        return lines + more + [dot("D", e, first, "%lC", (self.E.type(), narrow, self.C.type()), tf32)]

    def loop(self):
        lines, steps = [], []
        types = [one.type("!tt.ptr<%s>" % TYPES[one.kind][0], one.transposed) for one in (self.A, self.B)]
        for one in (self.A, self.B):
            step, offsets = one.pointers()[1], one.type("i32", one.transposed)
            lines.append("%%o%s = arith.constant dense<%d> : %s" % (one.name, step, offsets))
            steps.append((one.name, offsets))
        lines += ["%c0 = arith.constant 0 : i32", "%c1 = arith.constant 1 : i32",
                  "%%iterations = arith.constant %d : i32" % ITERATIONS]
        d = self.C.type()
        lines.append("%%f:3 = scf.for %%i = %%c0 to %%iterations step %%c1 iter_args(%%qA = %%pA, %%qB = %%pB, %%acc = %%lC)"
                     " -> (%s, %s, %s)  : i32 {" % (types[0], types[1], d))
        lines_a, a = load(self.A, "%qA")
        lines_b, b = load(self.B, "%qB")
        lines += lines_a + lines_b + [dot("sum", a, b, "%acc", (self.A.type(), self.B.type(), d), self.a == "tf32",
                                      self.limit)]
        for (name, offsets), type_ in zip(steps, types):
            lines.append("%%n%s = tt.addptr %%q%s, %%o%s : %s, %s" % (name, name, name, type_, offsets))
        lines.append("scf.yield %%nA, %%nB, %%sum : %s, %s, %s" % (types[0], types[1], d))
        lines += ["}", "%%zeroD = arith.constant dense<%s> : %s" % ("0" if self.d == "i32" else "0.0", d)]
        add = "arith.addi" if self.d == "i32" else "arith.addf"
        return lines + ["%%D = %s %%f#2, %%zeroD : %s" % (add, d)]

    def expected(self):
        """(result, bound of the error) of each element."""
        found = []
        tolerance = 0 if self.exact else (TOLERANCE_OF_BYTES if self.a in BYTES else TOLERANCES[self.d])
        if self.a == "f32":
            tolerance *= math.sqrt(len(self.B.numbers[0]) + 1)
        for i in range(max(self.batch, 1)):
            a, b, c = (one.numbers[i] for one in (self.A, self.B, self.C))
            if self.E is not None:
                first = multiply(a, b, [[0.0] * self.n for _ in range(self.m)])[0]
                a, b = (first, self.E.numbers[i]) if self.shape == "left" else (self.E.numbers[i], first)
            result, magnitudes = multiply(a, b, c)
            found += [(value, tolerance * size) for row, sizes in zip(result, magnitudes)
                      for value, size in zip(row, sizes)]
        return found

    def __str__(self):
        return "%s %s x %s%s -> %s, %d x %d x %d (%d), batch %d, %d warps, %s, %s%s" % (
            self.shape, self.a, self.b, " in sums of %d" % self.limit if self.limit else "", self.d, self.m, self.n, self.k, self.l, self.batch, self.warps, self.device,
            "exact" if self.exact else "real", "".join(", %s transposed" % one.name for one in self.inputs
                                                       if one.transposed))


# ---- running ------------------------------------------------------------------------------------


def unit_of(ptx):
    return "wgmma" if "wgmma.mma_async" in ptx else "mma" if "mma.sync" in ptx else "fma"


def check(lilac, kernel, text, folder):
    """(why it is wrong or None, the unit)."""
    file, result, ptx = (os.path.join(folder, name) for name in ("k.ttir", "D.npy", "k.ptx"))
    with open(file, "w", encoding="utf-8") as out:
        out.write(text)
    arguments = ["--target", kernel.device, "--num-warps", kernel.warps]
    words = ["--save", "C=" + result, "--json", "--verify"]
    for one in kernel.inputs:
        path = os.path.join(folder, one.name + ".npy")
        npy.write(path, TYPES[one.kind][1], one.flat())
        words += ["--arg", "%s=@%s" % (one.name, path)]
    done = command.run(lilac, "run", file, "--grid", "1", *arguments, *words)
    if done.returncode != 0:
        return "exit status %d\n%s" % (done.returncode, done.stderr), None
    if json.loads(done.stdout)["findings"] or done.stderr:
        return "the simulator reports: %s" % (done.stdout + done.stderr), None
    for i, (value, (wanted, bound)) in enumerate(zip(npy.read(result)[0], kernel.expected())):
        if not abs(value - wanted) <= bound:
            return "element %d is %r; expected %r, at most %g from it" % (i, value, wanted, bound), None
    compiled = command.run(lilac, "compile", file, "-o", ptx, *arguments)
    if compiled.returncode != 0:
        return compiled.stderr, None
    with open(ptx, encoding="utf-8") as out:
        return None, unit_of(out.read())


def main():
    arguments = command.parse_arguments(__doc__)
    failures, seeds = [], [int(name) for name in arguments.names] or range(KERNELS)
    units = {"wgmma": 0, "mma": 0, "fma": 0}
    for seed in seeds:
        kernel = Kernel(seed)
        text = kernel.text()
        with tempfile.TemporaryDirectory() as folder:
            why, unit = check(arguments.lilac, kernel, text, folder)
        if why is not None:
            failures.append(str(seed))
            print("%d FAILED: %s: %s\n%s" % (seed, kernel, why, text))
        else:
            units[unit] += 1
    print(", ".join("%s %d" % unit for unit in units.items()))
    if not arguments.names and not failures:
        failures += [unit for unit, count in units.items() if count < KERNELS // 10]
    command.finish(failures, len(seeds), "kernels with matrix products")


if __name__ == "__main__":
    main()
