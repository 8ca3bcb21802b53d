"""Attention with long rows, whose queries are held in registers, on the simulator.

A launch must have no finding and the same bits as with --skip hold_operands. The queries must be an operand in
registers where their memory is room for a stage of the rings, and in memory where the rings have room without it.
ptxas must neither spill nor serialise the products, where it is there.
"""

import os
import random
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402

import staggered  # noqa: E402

KERNELS = 24 if os.environ.get("LILAC_TEST_LONG") else 4


class Kernel(staggered.Kernel):
    def __init__(self, seed):
        super().__init__(seed)
        source = random.Random("held %d" % seed)
        self.warps, self.rows, self.columns = 8, 64, 64
        self.held = seed % 2 == 0
        self.d = 256 if self.held else 128
        self.causal = source.random() < 0.5
        self.iterations = source.choice([1, 2, 3, 4])


def check(lilac, ptxas, kernel):
    with tempfile.TemporaryDirectory() as folder:
        path, ptx = os.path.join(folder, "kernel.ttir"), os.path.join(folder, "kernel.ptx")
        with open(path, "w") as file:
            file.write(kernel.text())
        options = ["--num-warps", str(kernel.warps), "--keep-warps", "--num-stages", "2", "--launch-maps"]
        tile = command.run(lilac, "compile", path, *options, "--emit", "tile").stdout
        first = re.findall(r"ttng\.warp_group_dot .*? : (\S+<%dx%dx)" % (kernel.rows, kernel.d), tile)
        if not first or any(("tensor" in operand) != kernel.held for operand in first):
            return "the queries are %sheld: %s" % ("not " if kernel.held else "", first)
        said, bits = staggered.launch(lilac, path, os.path.join(folder, "o.npy"), *options, *kernel.arguments())
        if staggered.findings(said):
            return said
        without = os.path.join(folder, "without.simt")
        command.run(lilac, "compile", path, *options[:-1], "--skip", "hold_operands", "--emit", "simt", "-o", without)
        said, plain = staggered.launch(lilac, without, os.path.join(folder, "p.npy"), *kernel.arguments())
        if staggered.findings(said) or plain != bits:
            return "a finding or another result without the pass:\n" + said
        command.run(lilac, "compile", path, *options, "-o", ptx)
        return staggered.check_ptxas(ptxas, ptx, staggered.SPILLS) if ptxas else None


def main():
    lilac, ptxas = command.parse_arguments(__doc__).lilac, shutil.which("ptxas")
    return staggered.check_all([Kernel(seed) for seed in range(KERNELS)],
                               lambda _, kernel: check(lilac, ptxas, kernel))


if __name__ == "__main__":
    sys.exit(main())
