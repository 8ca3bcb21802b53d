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
            least = max(8, 32 // size) * self.ctas  # what the blocks of a cluster can divide
            self.bm = source.choice([64, 64, 128, 128, 256])
            self.bn = self.bm if self.form == "square" else source.choice([32, 64, 128, 256])
            self.bk = source.choice([32, 64, 128, 256, 512]) // size
            self.trips = source.choice([0, 1, 2, 3, 4, 5, 7])
            self.blocks = (source.choice([1, 2]), source.choice([1, 2]))
            self.matrices()
            if (self.m * self.n * max(self.k, 1) <= MOST_PRODUCTS and
                    min(self.bm, self.bn, self.bk) >= least and
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


def main():
    arguments = command.parse_arguments(__doc__)
    failures, seeds = [], [int(name) for name in arguments.names] or range(KERNELS)
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
    command.finish(failures, len(seeds), "kernels of clusters with tensor copies")


if __name__ == "__main__":
    main()
