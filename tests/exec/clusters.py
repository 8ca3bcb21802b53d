"""Matrix products by clusters whose blocks copy their parts of the operands by tensor copies, on the simulator
against exact arithmetic.

The kernels are those of descriptors.py, with 2, 4 or 8 blocks in a cluster, and

    square     D = A Aᵀ: two loads through one descriptor, which divide the block differently
    tiles      a loop over tiles: a program computes all tiles of a column

and some add D to what the memory has, by a reduction.

A launch must have no finding: no race, no missing wait, no read of memory that nobody wrote, no access to the memory
of a block that has ended. Every kernel must use tensor copies.

LILAC_TEST_LONG=1 runs 1,000 kernels.
"""

import os
import random
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402

from descriptors import BYTES, Kernel, check, descriptor  # noqa: E402
from dots import TYPES  # noqa: E402

KERNELS = 1000 if os.environ.get("LILAC_TEST_LONG") else 60
MOST_PRODUCTS = 3000000
MOST_BYTES = 65536  # of a block: larger ones have no tensor copies


class Cluster(Kernel):
    def __init__(self, seed):
        source = self.source = random.Random("clusters %d" % seed)
        self.form = source.choice(["plain", "plain", "mixed", "halves", "outside", "tiles", "square"])
        self.kind = source.choice(sorted(BYTES))
        self.sum = "i32" if self.kind == "i8" else "f32"
        self.nan = False
        self.transposed = self.form == "square" or source.random() < 0.5
        size = BYTES[self.kind]
        self.vector = 16 // size
        while True:
            self.ctas = source.choice([2, 2, 2, 4, 4, 8])
            self.bm = source.choice([64, 64, 128, 128, 256])
            self.bn = self.bm if self.form == "square" else source.choice([32, 64, 128, 256])
            self.bk = source.choice([32, 64, 128, 256, 512]) // size
            self.iterations = source.choice([0, 1, 2, 3, 4, 5, 7])
            self.blocks = (source.choice([1, 2]), source.choice([1, 2]))
            self.matrices()
            if (self.m * self.n * max(self.k, 1) <= MOST_PRODUCTS and
                    min(self.bm, self.bn, self.bk) * size >= 32 and
                    max(self.bm, self.bn) * self.bk * size <= MOST_BYTES and self.bm * self.bn * 4 <= MOST_BYTES):
                break
        self.warps = source.choice([4, 4, 8])
        self.stages = source.choice([1, 2, 3, 3, 4, 5])
        self.adds = source.random() < 0.25
        if self.form == "square":
            self.m = self.multiple(self.bm * self.blocks[0], max(4, self.vector))
            self.a = (self.a * 2 * self.bm)[:self.m]
            self.n, self.first = self.m, (self.first[0], self.first[0])
            self.b = [list(row) for row in zip(*self.a)]
            self.blocks = (self.blocks[0], self.blocks[0])

    def options(self):
        return super().options() + ["--num-ctas", self.ctas]

    def load(self, name, row, column):
        if name == "b" and self.form == "square":
            lines, value = super().load(name, row, column)
            return [line.replace("tt.descriptor_load %b[", "tt.descriptor_load %a[") for line in lines], value
        return super().load(name, row, column)

    def text(self):
        text = super().text()
        if self.adds:
            text = text.replace("tt.descriptor_store %d", "tt.descriptor_reduce add, %d")
        if self.form == "square":
            block = descriptor(self.bn, self.bk, TYPES[self.kind][0])
            return text.replace("%%b: %s, " % block, "")
        if self.form == "tiles":
            head, body = text.split("    %x = tt.get_program_id x : i32\n")
            body, tail = body.split("    tt.return\n")
            return "%s    %%tiles = arith.constant %d : i32\n    %%one = arith.constant 1 : i32\n" \
                "    scf.for %%x = %%c0 to %%tiles step %%one  : i32 {\n%s    }\n    tt.return\n%s" % (
                    head, super().grid()[0], body, tail)
        return text

    def launch_grid(self):
        return (1, self.grid()[1]) if self.form == "tiles" else self.grid()

    def matrices_and_blocks(self):
        both = super().matrices_and_blocks()
        return {"a": both["a"]} if self.form == "square" else both

    def expected(self):
        return [value + 7.0 if self.adds and self.writes(k // self.n, k % self.n) else value
                for k, value in enumerate(super().expected())]

    def __str__(self):
        return "%s, %d blocks in a cluster" % (super().__str__(), self.ctas)


class Multicast(Cluster):
    """A loop of more iterations than a ring has buffers, in which blocks copy shares of operands to each other."""

    def __init__(self, ctas, block, transposed):
        super().__init__(0)
        self.form, self.kind, self.sum, self.vector = "plain", "f16", "f32", 8
        self.ctas, self.transposed, self.adds, self.warps, self.stages = ctas, transposed, False, 4, 3
        self.bm, self.bn, self.bk = block
        self.iterations, self.blocks = 9, (1, 1)
        self.matrices()
        self.numbers = super().expected()

    def expected(self):
        return self.numbers


# What is wrong, a pattern in the tile IR behind the passes, the replacement, which of the matches.
ARRIVE = r"\n[^\n]*ttng\.arrive_barrier [^\n]*"
WAIT = r"\n[^\n]*ttng\.wait_barrier [^\n]*"
CLUSTER = r"\n *gpu\.barrier[^\n]*"
MUTATIONS = [
    ("no wait for the copies", WAIT, "", 0),
    ("no wait for the other blocks", WAIT, "", 1),
    ("no block releases", ARRIVE, "", 0),
    ("each block releases its own memory only", r", lilac\.cluster = 1 : i32|lilac\.cluster = 1 : i32", "", 0),
    ("the first iteration releases, the others do not", r"arith\.cmpi ne,", "arith.cmpi eq,", 0),
    ("each iteration releases, the first one too", r"(ttng\.arrive_barrier %\w+, 1), %\w+", r"\1", 0),
    ("the parity of releases", r"arith\.xori", "arith.ori", 0),
    ("the parity of copies", r"(?s)(arith\.xori.*)arith\.xori", r"\1arith.ori", 0),
    ("no barrier of the cluster behind the initialisation", CLUSTER, "", 0),
    ("no barrier of the cluster behind the loop", CLUSTER, "", 1),
    ("fewer arrivals", r"(init_barrier [^\n]*), (2|4)\b", r"\1, 1", -1),
    ("fewer bytes", r"ttng\.barrier_expect (%\w+), \d+,", r"ttng.barrier_expect \1, 1024,", -1),
    ("a buffer is released before it is read", r"\{pendings = 1 : i32\}", "{pendings = 7 : i32}", 0),
]


def mutate(text, mutation):
    _, pattern, replacement, which = mutation
    count = 0

    def replace(match):
        nonlocal count
        count += 1
        return match.expand(replacement) if which in (-1, count - 1) else match.group()

    changed = re.sub(pattern, replace, text)
    return changed if changed != text else None


def check_mutations(lilac, kernel, folder):
    """What is wrong with a kernel that multicasts and with its mutations, and their number."""
    source = os.path.join(folder, "source.ttir")
    with open(source, "w", encoding="utf-8") as out:
        out.write(kernel.text())
    tile = command.run(lilac, "compile", source, "--target", "sm_90a", "--emit", "ttgir", *kernel.options()).stdout
    why, _ = check(lilac, kernel, tile, folder)
    if why or "lilac.multicast" not in tile:
        return ["%s: the tile IR: %s" % (kernel, why or "no multicast")], 1
    wrong = []
    for mutation in MUTATIONS:
        text = mutate(tile, mutation)
        if text is None or not check(lilac, kernel, text, folder)[0]:
            wrong.append("%s: %s: %s" % (kernel, mutation[0], "not found" if text else "no such text"))
    return wrong, 1 + len(MUTATIONS)


def main():
    arguments = command.parse_arguments(__doc__)
    failures, seeds = [], [int(name) for name in arguments.names] or range(KERNELS)
    count = len(seeds)
    for seed in seeds:
        kernel = Cluster(seed)
        text = kernel.text()
        with tempfile.TemporaryDirectory() as folder:
            why, ptx = check(arguments.lilac, kernel, text, folder)
        if why is None and "global.mbarrier::complete_tx::bytes" not in ptx.replace("tile.", ""):
            why = "no load is a tensor copy"
        if why is not None:
            failures.append(str(seed))
            print("%d FAILED: %s: %s\n%s" % (seed, kernel, why, text))
    for kernel in () if arguments.names else (Multicast(2, (64, 64, 64), False), Multicast(4, (128, 128, 32), True)):
        with tempfile.TemporaryDirectory() as folder:
            wrong, more = check_mutations(arguments.lilac, kernel, folder)
        print("".join("%s\n" % line for line in wrong), end="")
        failures += wrong
        count += more
    command.finish(failures, count, "kernels of clusters with tensor copies")


if __name__ == "__main__":
    main()
