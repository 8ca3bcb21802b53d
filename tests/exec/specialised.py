"""Matrix products whose loops ask for warp specialisation, on the simulator against exact arithmetic.

The kernels are those of descriptors.py, some of them in a loop over tiles, with tt.warp_specialize. A launch must
have no finding and exact results. Where lilac specialises the loop, the tile IR behind the pass must hold the partition:
in at least half of the kernels with a loop over tiles, and of those without whose warps keep their registers.

Every mutation of what the pass writes must be found: the text of the tile IR is changed and run again.
ptxas assembles the kernels of eight warps where it is there, without spills and without a warning about wgmma.

LILAC_TEST_LONG=1 runs 300 kernels.
"""

import math
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
        self.trips = source.choice([0, 1, 2, 3, 5])
        if whole:
            self.kind, self.sum, self.transposed, self.vector = "f16", "f32", True, 8
            self.bn, self.bk, self.stages, self.trips, least = 256, 64, 3, source.choice([1, 2, 4]), 256
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


def behind_the_pass(lilac, kernel, text, folder):
    """The tile IR behind specialise_warps, as a module that is compiled as it is written."""
    file = os.path.join(folder, "source.ttir")
    with open(file, "w", encoding="utf-8") as out:
        out.write(text)
    done = command.run(lilac, "compile", file, "--num-warps", kernel.warps, "--num-stages", kernel.stages, "--target",
                       "sm_90a", "--emit", "ttgir")
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


def main():
    arguments = command.parse_arguments(__doc__)
    failures, found, forms, count, mutated = [], {}, {}, 0, set()
    for seed in [int(name) for name in arguments.names] or range(KERNELS):
        kernel = Kernel(seed)
        with tempfile.TemporaryDirectory() as folder:
            why, ptx = descriptors.check(arguments.lilac, kernel, kernel.text(), folder)
            tile = behind_the_pass(arguments.lilac, kernel, kernel.text(), folder)
            specialised = "ttg.warp_specialize(" in tile
            form = "tiles" if kernel.programs else "one tile, %d warps" % kernel.warps
            forms.setdefault(form, []).append(specialised)
            if not why and specialised and kernel.warps == 8:
                why = assemble(ptx, folder)
            if not why and specialised:
                why, _ = descriptors.check(arguments.lilac, kernel, tile, folder)
                why = why and "the tile IR: " + why
            if why:
                print("%d: %s: %s" % (seed, kernel, why))
                failures.append(str(seed))
            count += 1
            # several tiles of a program, with more iterations than buffers
            tiles = math.prod(descriptors.Kernel.grid(kernel))
            if (why or not specialised or not kernel.programs or tiles <= kernel.programs
                    or kernel.end() <= kernel.bk * kernel.stages):
                continue
            for mutation in MUTATIONS:
                text = mutate(tile, mutation)
                if text is None or mutation[0] in mutated:
                    continue
                count += 1
                mutated.add(mutation[0])
                if not descriptors.check(arguments.lilac, kernel, text, folder)[0]:
                    print("%d: %s: %s: not found" % (seed, kernel, mutation[0]))
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
    missing = {mutation[0] for mutation in MUTATIONS} - mutated
    if missing and not arguments.names:
        failures.append("no kernel for: %s" % ", ".join(sorted(missing)))
    command.finish(failures, count, "specialised kernels")


if __name__ == "__main__":
    main()
