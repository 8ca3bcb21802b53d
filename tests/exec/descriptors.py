"""Matrix products of blocks that tensor copies move, on the simulator against exact arithmetic.

    plain      D = A B, a loop over blocks of K; A and B are descriptors of the host
    mixed      the same; B is loaded through pointers
    halves     the same in two loops, with the same descriptors
    outside    D = A (B₀ + B₁ + …): the block of A is loaded before the loop

Types, sizes of blocks, sizes of matrices (which blocks need not divide), transposed B, warps and stages are random,
and so are the coordinates of the first block, which may be negative. Elements outside of a matrix are zero, or NaN
for some. All numbers are small integers, so that sums are exact. A launch must have no finding: no race, no missing
wait, no read of memory that nobody wrote. Every kernel must use tensor copies, and a tenth have
products in flight over the back edge.

LILAC_TEST_LONG=1 runs 1,000 kernels.
"""

import json
import math
import operator
import os
import random
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import npy  # noqa: E402

from dots import TYPES, pointers, stored, tensor  # noqa: E402

KERNELS = 1000 if os.environ.get("LILAC_TEST_LONG") else 60
MOST_PRODUCTS = 700000
BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "i8": 1}


def descriptor(rows, columns, element):
    return "!tt.tensordesc<%s>" % tensor([rows, columns], element)


class Kernel:
    def __init__(self, seed):
        source = self.source = random.Random("descriptors %d" % seed)
        self.form = source.choice(["plain", "plain", "mixed", "halves", "outside"])
        self.kind = source.choice(sorted(BYTES))
        self.sum = "i32" if self.kind == "i8" else "f32"
        self.nan = self.form in ("plain", "halves") and self.kind in ("f16", "tf32") and source.random() < 0.2
        self.transposed = source.random() < 0.5
        size = BYTES[self.kind]
        self.vector = 16 // size  # rows of matrices are multiples of 16 bytes
        warp_group = source.random() < 0.35  # products that stay in flight
        while True:
            self.bm = source.choice([64, 64, 128] if warp_group else [8, 16, 32, 64, 64, 128])
            self.bk = source.choice([32, 64, 128, 256]) // size
            least = 8 if self.transposed else 32 // size  # rows of 32 bytes
            self.bn = source.choice([n for n in (8, 16, 32, 64, 128, 256) if n >= least])
            self.iterations = source.choice([3, 4, 5] if warp_group else [0, 1, 2, 3, 4, 5])
            self.blocks = (1, 1) if warp_group else (source.choice([1, 2]), source.choice([1, 2]))
            self.matrices()
            if self.m * self.n * max(self.k, 1) <= MOST_PRODUCTS:
                break
        self.warps = source.choice([4, 4, 8] if warp_group else [1, 2, 4, 4, 8])
        self.stages = source.choice([1, 2, 3, 3, 4, 5])

    def multiple(self, size, vector):
        """A size near this one that is a multiple of the vector."""
        odd = self.source.random() < 0.6 and self.form != "mixed"
        return max(vector, size - (self.source.randrange(1, size) // vector * vector if odd else 0))

    def matrices(self):
        source = self.source
        self.m = self.multiple(self.bm * self.blocks[0], 1)
        self.n = self.multiple(self.bn * self.blocks[1], max(4, self.vector))
        self.k = self.multiple(self.bk * max(self.iterations, 1), self.vector)
        moves = self.form in ("plain", "halves") and source.random() < 0.4
        self.first = (source.randrange(-self.bm, 5), source.randrange(-self.bn, 5)) if moves else (0, 0)
        if self.form == "outside":
            self.k = self.bk
        rows = self.bk * max(self.iterations, 1) if self.form == "outside" else self.k
        draw = lambda height, width: [[float(source.randint(-2, 2)) for _ in range(width)]  # noqa: E731
                                      for _ in range(height)]
        self.a, self.b = draw(self.m, self.k), draw(rows, self.n)

    # ---- text --------------------------------------------------------------------------------

    def load(self, name, row, column):
        """Lines that load a block, and the value."""
        element = TYPES[self.kind][0]
        rows, columns = (self.bm, self.bk) if name == "a" else (self.bk, self.bn)
        turned = name == "b" and self.transposed
        if turned:
            rows, columns, row, column = columns, rows, column, row
        kind = tensor([rows, columns], element)
        lines = ["%%%s_block = tt.descriptor_load %%%s[%s, %s] : %s -> %s" % (
            name, name, row, column, descriptor(rows, columns, element), kind)]
        if not turned:
            return lines, "%%%s_block" % name
        lines.append("%%%s_turned = tt.trans %%%s_block {order = array<i32: 1, 0>} : %s -> %s" % (
            name, name, kind, tensor([columns, rows], element)))
        return lines, "%%%s_turned" % name

    def load_by_pointers(self):
        """The block of B at row %k; pointers to the first one are %pB."""
        element = TYPES[self.kind][0]
        shape = [self.bn, self.bk] if self.transposed else [self.bk, self.bn]
        kind, step = tensor(shape, "!tt.ptr<%s>" % element), 1 if self.transposed else self.n
        lines = ["%%b_step = arith.constant %d : i32" % step, "%b_at = arith.muli %k, %b_step : i32",
                 "%%b_offset = tt.splat %%b_at : i32 -> %s" % tensor(shape, "i32"),
                 "%%b_pointers = tt.addptr %%b_first, %%b_offset : %s, %s" % (kind, tensor(shape, "i32")),
                 "%%b_block = tt.load %%b_pointers : %s" % kind]
        if not self.transposed:
            return lines, "%b_block"
        return lines + ["%%b_turned = tt.trans %%b_block {order = array<i32: 1, 0>} : %s -> %s" % (
            tensor(shape, element), tensor([self.bk, self.bn], element))], "%b_turned"

    def loop(self, name, start, end, value):
        """A loop that adds the products of blocks from K = start to K = end."""
        types = [tensor([self.bm, self.bk], TYPES[self.kind][0]), tensor([self.bk, self.bn], TYPES[self.kind][0]),
                 tensor([self.bm, self.bn], self.sum)]
        lines = ["%%%s = scf.for %%k = %s to %s step %%step iter_args(%%acc = %s) -> (%s)  : i32 {" % (
            name, start, end, value, types[2])]
        a_lines, a = ([], "%a_block") if self.form == "outside" else self.load("a", "%row", "%k")
        b_lines, b = self.load_by_pointers() if self.form == "mixed" else self.load("b", "%k", "%column")
        lines += a_lines + b_lines
        lines.append("%%next = tt.dot %s, %s, %%acc%s : %s * %s -> %s" % (
            (a, b, ", inputPrecision = tf32" if self.kind == "tf32" else "") + tuple(types)))
        return lines + ["scf.yield %%next : %s" % types[2], "}"]

    def text(self):
        element = TYPES[self.kind][0]
        shape = [self.bn, self.bk] if self.transposed else [self.bk, self.bn]
        b = "!tt.ptr<%s> {tt.divisibility = 16 : i32}" % element if self.form == "mixed" else descriptor(*shape, element)
        result = tensor([self.bm, self.bn], self.sum)
        lines = ["%%zero = arith.constant dense<%s> : %s" % ("0" if self.sum == "i32" else "0.0", result),
                 "%c0 = arith.constant 0 : i32", "%%step = arith.constant %d : i32" % self.bk,
                 "%x = tt.get_program_id x : i32", "%y = tt.get_program_id y : i32"]
        for name, number, size, first in (("row", "x", self.bm, self.first[0]), ("column", "y", self.bn, self.first[1])):
            lines += ["%%%s_size = arith.constant %d : i32" % (name, size),
                      "%%%s_first = arith.constant %d : i32" % (name, first),
                      "%%%s_at = arith.muli %%%s, %%%s_size : i32" % (name, number, name),
                      "%%%s = arith.addi %%%s_at, %%%s_first : i32" % (name, name, name)]
        if self.form == "mixed":
            stride = self.k if self.transposed else self.n
            lines += pointers("B", element, shape, [stride, 1])
            kind = tensor(shape, "!tt.ptr<%s>" % element)
            lines += ["%%b_wide = arith.constant %d : i32" % (stride if self.transposed else 1),
                      "%b_start = arith.muli %column, %b_wide : i32",
                      "%%b_starts = tt.splat %%b_start : i32 -> %s" % tensor(shape, "i32"),
                      "%%b_first = tt.addptr %%pB, %%b_starts : %s, %s" % (kind, tensor(shape, "i32"))]
        if self.form == "outside":
            lines += self.load("a", "%row", "%c0")[0]
        if self.form == "halves":
            lines += ["%half = arith.minsi %step, %K : i32"]
            lines += self.loop("first", "%c0", "%half", "%zero") + self.loop("sum", "%step", "%K", "%first")
        else:
            lines += self.loop("sum", "%c0", "%K", "%zero")
        lines.append("tt.descriptor_store %%d[%%row, %%column], %%sum : %s, %s" % (
            descriptor(self.bm, self.bn, self.sum), result))
        return "module {\n  tt.func public @k(%%a: %s, %%%s: %s, %%d: %s, %%K: i32) {\n%s    tt.return\n  }\n}\n" % (
            descriptor(self.bm, self.bk, element), "B" if self.form == "mixed" else "b", b,
            descriptor(self.bm, self.bn, self.sum), "".join("    %s\n" % line for line in lines))

    # ---- numbers -----------------------------------------------------------------------------

    def matrices_and_blocks(self):
        """Of A and B: the matrix as it is stored, and its blocks."""
        b = [list(row) for row in zip(*self.b)] if self.transposed else self.b
        return {"a": (self.a, (self.bm, self.bk)),
                "b": (b, (self.bn, self.bk) if self.transposed else (self.bk, self.bn))}

    def columns_of_b(self):
        if self.form != "outside":
            return [list(column) for column in zip(*self.b)]
        sums = [[sum(row[j] for row in self.b[i::self.bk][:self.iterations]) for j in range(self.n)] for i in range(self.bk)]
        return [list(column) for column in zip(*sums)]

    def end(self):
        """The last block of K that a loop reaches."""
        return self.iterations * self.bk if self.form == "outside" else self.k if self.iterations else 0

    def expected(self):
        """D, whose elements before the first block are not written."""
        columns, nothing = self.columns_of_b(), self.end() == 0
        padded = self.nan and self.k % self.bk != 0  # the last block of K exceeds the matrices
        result = []
        for i in range(self.m):
            for j in range(self.n):
                if not self.writes(i, j):
                    result.append(7.0)
                elif padded and not nothing:
                    result.append(math.nan)
                else:
                    result.append(0.0 if nothing else math.fsum(map(operator.mul, self.a[i], columns[j])))
        return result

    def writes(self, i, j):
        return all(first <= at < first + size * count for at, first, size, count in zip(
            (i, j), self.first, (self.bm, self.bn), self.grid()))

    def grid(self):
        return -(-self.m // self.bm), -(-self.n // self.bn)

    def launch_grid(self):
        return self.grid()

    def options(self):
        return ["--num-warps", self.warps, "--num-stages", self.stages]

    def __str__(self):
        return "%s %s, blocks %d x %d x %d, %d x %d x %d, %d warps, %d stages%s%s" % (
            self.form, self.kind, self.bm, self.bn, self.bk, self.m, self.n, self.k, self.warps, self.stages,
            ", B transposed" if self.transposed else "", ", NaN outside" if self.nan else "")


def box(rows, columns, size):
    """The box and the swizzle of a block (include/lilac/engine.h, lilac_engine_box), as lilac run reads them."""
    swizzle = min(columns * size, 128)
    return "%dx%d:swizzle=%d" % (rows, swizzle // size, swizzle)


def equal(value, wanted):
    return value == wanted or math.isnan(value) and math.isnan(wanted)


def check(lilac, kernel, text, folder):
    """(why it is wrong or None, the PTX)."""
    file, result, ptx = (os.path.join(folder, name) for name in ("k.ttir", "D.npy", "k.ptx"))
    with open(file, "w", encoding="utf-8") as out:
        out.write(text)
    numpy_type, size = TYPES[kernel.kind][1], BYTES[kernel.kind]
    words = ["--arg", "K=%d" % kernel.end(), "--save", "d=" + result, "--json", "--verify"]
    for name, (rows, block) in kernel.matrices_and_blocks().items():
        path = os.path.join(folder, name + ".npy")
        flat = [stored(kernel.kind, value) for row in rows for value in row]
        npy.write(path, numpy_type, [int(v) for v in flat] if kernel.kind == "i8" else flat, (len(rows), len(rows[0])))
        if name == "b" and kernel.form == "mixed":
            words += ["--arg", "B=@" + path]
        elif kernel.nan:
            words += ["--buffer", "memory_%s=@%s" % (name, path),
                      "--arg", "%s=tensor_map:memory_%s:%s:fill=nan" % (name, name, box(*block, size))]
        else:
            words += ["--arg", "%s=@%s" % (name, path)]
    path = os.path.join(folder, "d.npy")
    npy.write(path, "i4" if kernel.sum == "i32" else "f4", [7] * (kernel.m * kernel.n), (kernel.m, kernel.n))
    words += ["--arg", "d=@" + path]
    options = kernel.options()
    done = command.run(lilac, "run", file, "--grid", "%d,%d" % kernel.launch_grid(), *options, *words)
    if done.returncode != 0:
        return "exit status %d\n%s" % (done.returncode, done.stderr), ""
    if json.loads(done.stdout)["findings"] or done.stderr:
        return "the simulator reports: %s" % (done.stdout + done.stderr), ""
    for i, (value, wanted) in enumerate(zip(npy.read(result)[0], kernel.expected())):
        if not equal(value, wanted):
            return "element %d, %d is %r; expected %r" % (i // kernel.n, i % kernel.n, value, wanted), ""
    compiled = command.run(lilac, "compile", file, "-o", ptx, *options)
    if compiled.returncode != 0:
        return compiled.stderr, ""
    with open(ptx, encoding="utf-8") as out:
        text = out.read()
    return None if "cp.async.bulk.tensor" in text else "there is no tensor copy", text


def main():
    arguments = command.parse_arguments(__doc__)
    failures, seeds, in_flight = [], [int(name) for name in arguments.names] or range(KERNELS), 0
    for seed in seeds:
        kernel = Kernel(seed)
        text = kernel.text()
        with tempfile.TemporaryDirectory() as folder:
            why, ptx = check(arguments.lilac, kernel, text, folder)
        in_flight += re.search(r"wgmma\.wait_group\S* [1-9]", ptx) is not None
        if why is not None:
            failures.append(str(seed))
            print("%d FAILED: %s: %s\n%s" % (seed, kernel, why, text))
    print("%d with products in flight over the back edge" % in_flight)
    if not arguments.names and in_flight < KERNELS // 10:
        failures.append("products in flight")
    command.finish(failures, len(seeds), "kernels with tensor copies")


if __name__ == "__main__":
    main()
