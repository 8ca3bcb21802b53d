"""Matrix products whose loops ask for warp specialisation, on the simulator against exact arithmetic.

The kernels are those of descriptors.py, some of them in a loop over tiles, with tt.warp_specialize, and loops with
delayed products. A launch must
have no finding and exact results. Where lilac specialises the loop, the tile IR behind the pass must hold the partition:
in at least half of the kernels with a loop over tiles, and of those without whose warps keep their registers.

Every mutation of what the pass writes must be found: the text of the tile IR is changed and run again.
ptxas assembles the kernels of eight warps where it is there, without spills and without a warning about wgmma.

LILAC_TEST_LONG=1 runs 300 kernels.
"""

import math
import operator
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402

import descriptors  # noqa: E402
from descriptors import descriptor, tensor, TYPES  # noqa: E402

KERNELS = 300 if os.environ.get("LILAC_TEST_LONG") else 24


class Kernel(descriptors.Kernel):
    """`plain` in a loop over tiles, or as it is."""

    def __init__(self, seed):
        self.tiles = 0
        super().__init__(seed)
        source = self.source = random.Random("specialised %d" % seed)
        self.form, self.nan, self.first = "plain", False, (0, 0)
        whole = seed % 6 == 5  # one resident block of eight warps
        self.bm, self.warps = (128, 8) if whole else source.choice([(64, 4), (64, 4), (128, 4), (128, 8)])
        least = 8 if self.transposed else 32 // descriptors.BYTES[self.kind]
        self.bn = source.choice([n for n in (16, 32, 64, 128) if n >= least])
        self.bk = source.choice([64, 128]) // descriptors.BYTES[self.kind]
        self.stages = source.choice([2, 2, 3, 4])
        self.iterations = source.choice([0, 1, 2, 3, 5, 12])
        if whole:
            self.kind, self.sum, self.transposed, self.vector = "f16", "f32", True, 8
            self.bn, self.bk, self.stages, self.iterations, least = 256, 64, 3, source.choice([1, 2, 4]), 256
        while True:
            self.blocks = (1, 2) if whole else (source.choice([1, 2, 3]), source.choice([1, 2]))
            self.matrices()
            if whole or self.m * self.n * max(self.k, 1) <= 3 * descriptors.MOST_PRODUCTS:
                break
            self.bn = max(16, least, self.bn // 2)
        self.first = (0, 0)
        self.programs = 1 if whole else source.choice([0, 1, 2])  # 0: one for each tile
        self.everywhere = source.random() < 0.5   # the loop over tiles asks, not the inner one

    def text(self):
        element, result = TYPES[self.kind][0], tensor([self.bm, self.bn], self.sum)
        shape = [self.bn, self.bk] if self.transposed else [self.bk, self.bn]
        rows, columns = super().grid()
        lines = ["%%zero = arith.constant dense<%s> : %s" % ("0" if self.sum == "i32" else "0.0", result),
                 "%c0 = arith.constant 0 : i32", "%%step = arith.constant %d : i32" % self.bk,
                 "%%wide = arith.constant %d : i32" % columns, "%%tiles = arith.constant %d : i32" % (rows * columns),
                 "%%programs = arith.constant %d : i32" % max(self.programs, 1),
                 "%%row_size = arith.constant %d : i32" % self.bm, "%%column_size = arith.constant %d : i32" % self.bn,
                 "%x = tt.get_program_id x : i32"]
        if self.programs:
            lines.append("scf.for %tile = %x to %tiles step %programs  : i32 {")
        number = "%tile" if self.programs else "%x"
        lines += ["%%row_number = arith.divsi %s, %%wide : i32" % number,
                  "%%column_number = arith.remsi %s, %%wide : i32" % number,
                  "%row = arith.muli %row_number, %row_size : i32",
                  "%column = arith.muli %column_number, %column_size : i32"]
        inner = self.loop("sum", "%c0", "%K", "%zero")
        if not (self.programs and self.everywhere):
            inner[-1] = "} {tt.warp_specialize}"
        lines += inner
        lines.append("tt.descriptor_store %%d[%%row, %%column], %%sum : %s, %s" % (
            descriptor(self.bm, self.bn, self.sum), result))
        if self.programs:
            lines.append("} {tt.warp_specialize}" if self.everywhere else "}")
        return "module {\n  tt.func public @k(%%a: %s, %%b: %s, %%d: %s, %%K: i32) {\n%s    tt.return\n  }\n}\n" % (
            descriptor(self.bm, self.bk, element), descriptor(*shape, element),
            descriptor(self.bm, self.bn, self.sum), "".join("    %s\n" % line for line in lines))

    def grid(self):
        rows, columns = super().grid()
        return (self.programs, 1) if self.programs else (rows * columns, 1)

    def writes(self, i, j):
        return True

    def __str__(self):
        return super().__str__() + (", %d programs" % self.programs if self.programs else "")


class Delayed(descriptors.Kernel):
    """D = ± Σ ± (A Kᵀ) V over blocks of rows of B = [K V], whose signs alternate: a loop with a delayed product, whose
    iteration reads the buffer of its own and that of the iteration before."""

    name = "delayed"

    def __init__(self, seed):
        source = self.source = random.Random("%s %d" % (self.name, seed))
        self.form, self.kind, self.sum, self.nan, self.transposed = "delayed", "f16", "f32", False, False
        self.first, self.vector, self.programs = (0, 0), 8, 0
        self.bm, self.warps = source.choice([(64, 4), (128, 8), (128, 8)])
        self.bn = source.choice([64, 128])             # columns of K, V and D
        self.bk = source.choice([32, 64])              # rows of K and V
        self.stages = source.choice([2, 3, 4])
        self.iterations = source.choice([1, 2, 3, 5, 14])
        self.m, self.n, self.k = self.bm, self.bn, self.multiple(self.bk * self.iterations, 1)
        draw = lambda height, width: [[float(source.randint(-2, 2)) for _ in range(width)]  # noqa: E731
                                      for _ in range(height)]
        self.a, self.b = draw(self.m, self.bn), draw(self.k, 2 * self.bn)

    def text(self):
        def load(name, rows, row, column):
            return "%%%s = tt.descriptor_load %%%s[%s, %s] : %s -> %s" % (
                name + column.strip("%"), name, row, column, descriptor(rows, self.bn, "f16"),
                tensor([rows, self.bn], "f16"))

        types = {"a": tensor([self.bm, self.bn], "f16"), "k": tensor([self.bk, self.bn], "f16"),
                 "t": tensor([self.bn, self.bk], "f16"), "p": tensor([self.bm, self.bk], "f16"),
                 "s": tensor([self.bm, self.bk], "f32"), "d": tensor([self.bm, self.bn], "f32"), "size": self.bn}
        lines = ["%%zero = arith.constant dense<0.0> : %(d)s", "%%minus = arith.constant dense<-1.0> : %(d)s", "%%none = arith.constant dense<0.0> : %(s)s",
                 "%%c0 = arith.constant 0 : i32", "%%half = arith.constant %(size)d : i32",
                 "%%step = arith.constant " + "%d : i32" % self.bk]
        lines = [line % types for line in lines] + [load("a", self.bm, "%c0", "%c0")]

        def loop(result, first, end, init, change):
            return ["%%%s = scf.for %%k = %s to %s step %%step iter_args(%%acc = %s) -> (%s)  : i32 {" % (
                        result, first, end, init, types["d"]),
                    load("b", self.bk, "%k", "%c0"),
                    "%%t = tt.trans %%bc0 {order = array<i32: 1, 0>} : %(k)s -> %(t)s" % types,
                    "%%s = tt.dot %%ac0, %%t, %%none : %(a)s * %(t)s -> %(s)s" % types,
                    "%%r = %s : %s" % (change, types["s"]),
                    "%%p = arith.truncf %%r : %(s)s to %(p)s" % types, load("b", self.bk, "%k", "%half"),
                    "%%scaled = arith.mulf %%acc, %%minus : %(d)s" % types,
                    "%%next = tt.dot %%p, %%bhalf, %%scaled : %(p)s * %(k)s -> %(d)s" % types,
                    "scf.yield %%next : %(d)s" % types, "} {tt.warp_specialize}"]

        lines += self.loops(loop)
        lines.append("tt.descriptor_store %%d[%%c0, %%c0], %%sum : %s, %s" % (descriptor(self.bm, self.bn, "f32"), types["d"]))
        return "module {\n  tt.func public @k(%%a: %s, %%b: %s, %%d: %s, %%K: i32) {\n%s    tt.return\n  }\n}\n" % (
            descriptor(self.bm, self.bn, "f16"), descriptor(self.bk, self.bn, "f16"),
            descriptor(self.bm, self.bn, "f32"), "".join("    %s\n" % line for line in lines))

    def loops(self, loop):
        return loop("sum", "%c0", "%K", "%zero", "arith.negf %s")

    def score(self, number, key):
        """What the kernel makes of the product of a row and a key."""
        return -number

    def matrices_and_blocks(self):
        return {"a": (self.a, (self.bm, self.bn)), "b": (self.b, (self.bk, self.bn))}

    def expected(self):
        """Sums of integers, exact in any order."""
        keys, values = [row[:self.bn] for row in self.b], list(zip(*(row[self.bn:] for row in self.b)))
        last = (self.k - 1) // self.bk
        signs = [(-1) ** (last - at // self.bk) for at in range(self.k)]
        scores = [[signs[at] * self.score(sum(map(operator.mul, row, key)), at) for at, key in enumerate(keys)] for row in self.a]
        return [sum(map(operator.mul, row, value)) for row in scores for value in values]

    def grid(self):
        return 1, 1

    def writes(self, i, j):
        return True


class Joined(Delayed):
    """The same in two loops, the second one of scores above zero only."""

    name = "joined"

    def middle(self):
        return self.iterations // 2 * self.bk

    def loops(self, loop):
        return ["%%middle = arith.constant %d : i32" % self.middle()] + loop(
            "front", "%c0", "%middle", "%zero", "arith.negf %s") + loop("sum", "%middle", "%K", "%front", "arith.maxnumf %s, %none")

    def score(self, number, key):
        return -number if key < self.middle() else max(number, 0)


def behind_the_pass(lilac, kernel, text, folder):
    """The tile IR behind specialise_warps, as a module that is compiled as it is written."""
    file = os.path.join(folder, "source.ttir")
    with open(file, "w", encoding="utf-8") as out:
        out.write(text)
    done = command.run(lilac, "compile", file, "--num-warps", kernel.warps, "--keep-warps", "--num-stages",
                       kernel.stages, "--target", "sm_90a", "--emit", "ttgir")
    return done.stdout if done.returncode == 0 else "failed\n" + done.stderr


def assemble(ptx, folder):
    """Why ptxas does not accept the kernel, or None."""
    ptxas, file = shutil.which("ptxas"), os.path.join(folder, "s.ptx")
    if ptxas is None:
        return None
    with open(file, "w", encoding="utf-8") as out:
        out.write(ptx)
    done = subprocess.run([ptxas, "-arch=sm_90a", "-v", file, "-o", file + ".cubin"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True)
    good = done.returncode == 0 and "0 bytes spill stores, 0 bytes spill loads" in done.stdout and "C75" not in done.stdout
    return None if good else "ptxas: " + done.stdout


# What is wrong, a pattern in the part of the text, the replacement, how often (0: everywhere).
MUTATIONS = [
    ("the consumers do not wait", "default", r"ttng\.wait_barrier [^\n]*\n", "\n", 0),
    ("the producer does not wait", "partition", r"ttng\.wait_barrier [^\n]*\n", "\n", 0),
    ("no warp arrives", "default", r"ttng\.arrive_barrier [^\n]*\n", "\n", 0),
    ("the last buffer of a tile is not released", "default", r"(?s)(.*)ttng\.arrive_barrier [^\n]*\n", r"\1\n", 1),
    ("one warp arrives", "default", r", lilac\.each_warp = 1 : i32|lilac\.each_warp = 1 : i32", "", 0),
    ("the producer's parity", "partition", r"arith\.xori", "arith.ori", 0),
    ("the consumers' parity", "default", r"arith\.xori", "arith.ori", 0),
    ("fewer bytes", "partition", r"ttng\.barrier_expect (%\w+), \d+,", r"ttng.barrier_expect \1, 16,", 0),
    ("a buffer is released before it is read", "default", r"\{pendings = 0 : i32\}", "{pendings = 7 : i32}", 0),
    ("other warps", "before", r"(init_barrier [^\n]*), (4|8)\b", r"\1, 2", 0),
]


def parts(text):
    """before, default, partition, behind."""
    at = text.index("ttg.warp_specialize(")
    first, second = text.index("default {", at), text.index("partition0(", at)
    end = text.index("ttg.warp_return", second)
    return {"before": text[:first], "default": text[first:second], "partition": text[second:end], "behind": text[end:]}


def mutate(text, mutation):
    _, part, pattern, replacement, count = mutation
    pieces = parts(text)
    pieces[part], changes = re.subn(pattern, replacement, pieces[part], count=count)
    return "".join(pieces.values()) if changes else None


def examine(lilac, kernel, folder):
    """(why it is wrong or None, the tile IR behind the pass, whether the pass has changed the kernel)."""
    why, ptx = descriptors.check(lilac, kernel, kernel.text(), folder)
    tile = behind_the_pass(lilac, kernel, kernel.text(), folder)
    specialised = "ttg.warp_specialize(" in tile
    if not why and specialised and kernel.warps == 8:
        why = assemble(ptx, folder)
    if not why and specialised:
        why, _ = descriptors.check(lilac, kernel, tile, folder)
        why = why and "the tile IR: " + why
    return why, tile, specialised


def is_mutated(kernel, tile):
    """Has the kernel several tiles of a program, or delayed products, and more iterations than buffers,
    in one tile than twice as many?"""
    buffers = max(int(number) for number in re.findall(r'lilac.schedule = "[^"]*buffers=(\d+)', tile))
    tiles = math.prod(kernel.grid()) if kernel.form == "delayed" else math.prod(descriptors.Kernel.grid(kernel))
    return (kernel.form == "delayed" or kernel.programs and tiles > kernel.programs) and \
        kernel.end() > kernel.bk * (2 * buffers if kernel.form == "delayed" else buffers)


def main():
    arguments = command.parse_arguments(__doc__)
    failures, forms, count, mutated = [], {}, 0, set()
    seeds = [int(name) for name in arguments.names] or range(KERNELS)
    for kernel in [Kernel(seed) for seed in seeds] + [
            kind(seed) for kind in (Delayed, Joined) for seed in seeds if seed % 2 == 0]:
        form = kernel.name if kernel.form == "delayed" else "tiles" if kernel.programs else \
            "one tile, %d warps" % kernel.warps
        with tempfile.TemporaryDirectory() as folder:
            why, tile, specialised = examine(arguments.lilac, kernel, folder)
            forms.setdefault(form, []).append(specialised)
            if why:
                print("%s: %s" % (kernel, why))
                failures.append(str(kernel))
            count += 1
            for mutation in MUTATIONS if not why and specialised and is_mutated(kernel, tile) else ():
                text = mutate(tile, mutation)
                if text is None or (form, mutation[0]) in mutated:
                    continue
                count += 1
                mutated.add((form, mutation[0]))
                if not descriptors.check(arguments.lilac, kernel, text, folder)[0]:
                    print("%s: %s: not found" % (kernel, mutation[0]))
                    failures.append(mutation[0])
    for warps in (16, 32):  # threads have too few registers, and 32 warps leave no room
        with tempfile.TemporaryDirectory() as folder:
            kernel = Kernel(5)
            kernel.warps = warps
            why, ptx = descriptors.check(arguments.lilac, kernel, kernel.text(), folder)
            why = why or assemble(ptx, folder)
        count += 1
        if why or "setmaxnreg" in ptx:
            failures.append("%d warps" % warps)
            print("%d warps: %s" % (warps, why or "it is specialised"))
    for form, list_of in sorted(forms.items()):
        if form != "one tile, 8 warps" and 2 * sum(list_of) < len(list_of):
            print("%s: %d of %d are specialised" % (form, sum(list_of), len(list_of)))
            failures.append(form)
    missing = {(form, mutation[0]) for mutation in MUTATIONS for form in ("tiles", "delayed")} - mutated
    if missing and not arguments.names:
        failures.append("no kernel for: %s" % ", ".join("%s of %s" % (what, form) for form, what in sorted(missing)))
    command.finish(failures, count, "specialised kernels")


if __name__ == "__main__":
    main()
