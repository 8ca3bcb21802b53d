"""Products with operands of which a byte holds two numbers, on the simulator: their rows are K / 2 bytes apart, and
their pointers advance by half of the loop's step. The result of some has the sum of the loop's counters added.

A launch with tensor maps of the launcher must have no finding and the same bits as one without, and as one whose loop
computes nothing ahead. Both operands must have maps, and the packed one must be read in vectors and not byte by byte.
Loops carry the packed numbers of the next iteration where two blocks of a multiprocessor have registers for that, else
the unpacked operand; rings are shorter where only that leaves memory for the second block. ptxas must neither spill nor
serialise the products, where it is there.
"""

import os
import random
import re
import shutil
import string
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import npy  # noqa: E402

import staggered  # noqa: E402

KERNELS = 40 if os.environ.get("LILAC_TEST_LONG") else 6

TEXT = """
module {
  tt.func public @product(%a: !tt.ptr<${TYPE}> {tt.divisibility = 16 : i32}, %b: !tt.ptr<i8> {tt.divisibility = 16 : i32},
      %s: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32},
      %M: i32, %N: i32, %K: i32 {tt.divisibility = 16 : i32}) {
    %c0 = arith.constant 0 : i32
    %c2 = arith.constant 2 : i32
    %c32 = arith.constant 32 : i32
    %step = arith.constant ${BK} : i32
    %rows = arith.constant ${BM} : i32
    %columns = arith.constant ${BN} : i32
    %zero = arith.constant dense<0.0> : tensor<${BM}x${BN}xf32>
    %a_step = arith.constant dense<${BK}> : tensor<${BM}x${BK}xi32>
    %b_step = arith.constant dense<${HALF}> : tensor<${HALF}x${BN}xi32>
    %s_step = arith.constant dense<${SCALES}> : tensor<${BN}x${SCALES}xi32>
    %x = tt.get_program_id x : i32
    %y = tt.get_program_id y : i32
    %m_first = arith.muli %x, %rows : i32
    %n_first = arith.muli %y, %columns : i32
    %m_range = tt.make_range {end = ${BM} : i32, start = 0 : i32} : tensor<${BM}xi32>
    %n_range = tt.make_range {end = ${BN} : i32, start = 0 : i32} : tensor<${BN}xi32>
    %k_range = tt.make_range {end = ${BK} : i32, start = 0 : i32} : tensor<${BK}xi32>
    %h_range = tt.make_range {end = ${HALF} : i32, start = 0 : i32} : tensor<${HALF}xi32>
    %s_range = tt.make_range {end = ${SCALES} : i32, start = 0 : i32} : tensor<${SCALES}xi32>
    %m_firsts = tt.splat %m_first : i32 -> tensor<${BM}xi32>
    %n_firsts = tt.splat %n_first : i32 -> tensor<${BN}xi32>
    %m = arith.addi %m_firsts, %m_range : tensor<${BM}xi32>
    %n = arith.addi %n_firsts, %n_range : tensor<${BN}xi32>
    %Ms = tt.splat %M : i32 -> tensor<${BM}xi32>
    %Ns = tt.splat %N : i32 -> tensor<${BN}xi32>
    %m_at = arith.remsi %m, %Ms : tensor<${BM}xi32>
    %n_at = arith.remsi %n, %Ns : tensor<${BN}xi32>
    %half = arith.divsi %K, %c2 : i32
    %scales = arith.divsi %K, %c32 : i32
    %a_r = tt.expand_dims %m_at {axis = 1 : i32} : tensor<${BM}xi32> -> tensor<${BM}x1xi32>
    %a_p = tt.splat %K : i32 -> tensor<${BM}x1xi32>
    %a_f = arith.muli %a_r, %a_p : tensor<${BM}x1xi32>
    %a_rb = tt.broadcast %a_f : tensor<${BM}x1xi32> -> tensor<${BM}x${BK}xi32>
    %a_k = tt.expand_dims %k_range {axis = 0 : i32} : tensor<${BK}xi32> -> tensor<1x${BK}xi32>
    %a_kb = tt.broadcast %a_k : tensor<1x${BK}xi32> -> tensor<${BM}x${BK}xi32>
    %a_o = arith.addi %a_rb, %a_kb : tensor<${BM}x${BK}xi32>
    %a_s = tt.splat %a : !tt.ptr<${TYPE}> -> tensor<${BM}x${BK}x!tt.ptr<${TYPE}>>
    %a_0 = tt.addptr %a_s, %a_o : tensor<${BM}x${BK}x!tt.ptr<${TYPE}>>, tensor<${BM}x${BK}xi32>
    %b_r = tt.expand_dims %n_at {axis = 0 : i32} : tensor<${BN}xi32> -> tensor<1x${BN}xi32>
    %b_p = tt.splat %half : i32 -> tensor<1x${BN}xi32>
    %b_f = arith.muli %b_r, %b_p : tensor<1x${BN}xi32>
    %b_rb = tt.broadcast %b_f : tensor<1x${BN}xi32> -> tensor<${HALF}x${BN}xi32>
    %b_k = tt.expand_dims %h_range {axis = 1 : i32} : tensor<${HALF}xi32> -> tensor<${HALF}x1xi32>
    %b_kb = tt.broadcast %b_k : tensor<${HALF}x1xi32> -> tensor<${HALF}x${BN}xi32>
    %b_o = arith.addi %b_rb, %b_kb : tensor<${HALF}x${BN}xi32>
    %b_s = tt.splat %b : !tt.ptr<i8> -> tensor<${HALF}x${BN}x!tt.ptr<i8>>
    %b_0 = tt.addptr %b_s, %b_o : tensor<${HALF}x${BN}x!tt.ptr<i8>>, tensor<${HALF}x${BN}xi32>
    %s_r = tt.expand_dims %n_at {axis = 1 : i32} : tensor<${BN}xi32> -> tensor<${BN}x1xi32>
    %s_p = tt.splat %scales : i32 -> tensor<${BN}x1xi32>
    %s_f = arith.muli %s_r, %s_p : tensor<${BN}x1xi32>
    %s_rb = tt.broadcast %s_f : tensor<${BN}x1xi32> -> tensor<${BN}x${SCALES}xi32>
    %s_k = tt.expand_dims %s_range {axis = 0 : i32} : tensor<${SCALES}xi32> -> tensor<1x${SCALES}xi32>
    %s_kb = tt.broadcast %s_k : tensor<1x${SCALES}xi32> -> tensor<${BN}x${SCALES}xi32>
    %s_o = arith.addi %s_rb, %s_kb : tensor<${BN}x${SCALES}xi32>
    %s_s = tt.splat %s : !tt.ptr<i8> -> tensor<${BN}x${SCALES}x!tt.ptr<i8>>
    %s_0 = tt.addptr %s_s, %s_o : tensor<${BN}x${SCALES}x!tt.ptr<i8>>, tensor<${BN}x${SCALES}xi32>
    %r:5 = scf.for %k = %c0 to %K step %step
        iter_args(%a_at = %a_0, %b_at = %b_0, %s_at = %s_0, %sum = %zero, %seen = %c0)
        -> (tensor<${BM}x${BK}x!tt.ptr<${TYPE}>>, tensor<${HALF}x${BN}x!tt.ptr<i8>>, tensor<${BN}x${SCALES}x!tt.ptr<i8>>,
            tensor<${BM}x${BN}xf32>, i32) : i32 {
      %left = tt.load %a_at : tensor<${BM}x${BK}x!tt.ptr<${TYPE}>>
      %right = tt.load %b_at : tensor<${HALF}x${BN}x!tt.ptr<i8>>
      %scale = tt.load %s_at : tensor<${BN}x${SCALES}x!tt.ptr<i8>>
      %next = tt.dot_scaled %left, %right scale %scale, %sum lhs = ${KIND} rhs = e2m1 {fastMath = false} :
          tensor<${BM}x${BK}x${TYPE}> * tensor<${HALF}x${BN}xi8>, tensor<${BN}x${SCALES}xi8> -> tensor<${BM}x${BN}xf32>
      %a_n = tt.addptr %a_at, %a_step : tensor<${BM}x${BK}x!tt.ptr<${TYPE}>>, tensor<${BM}x${BK}xi32>
      %b_n = tt.addptr %b_at, %b_step : tensor<${HALF}x${BN}x!tt.ptr<i8>>, tensor<${HALF}x${BN}xi32>
      %s_n = tt.addptr %s_at, %s_step : tensor<${BN}x${SCALES}x!tt.ptr<i8>>, tensor<${BN}x${SCALES}xi32>
      %seen_n = arith.addi %seen, ${COUNTED} : i32
      scf.yield %a_n, %b_n, %s_n, %next, %seen_n : tensor<${BM}x${BK}x!tt.ptr<${TYPE}>>, tensor<${HALF}x${BN}x!tt.ptr<i8>>,
          tensor<${BN}x${SCALES}x!tt.ptr<i8>>, tensor<${BM}x${BN}xf32>, i32
    }
    %seen_f = arith.sitofp %r#4 : i32 to f32
    %seen_s = tt.splat %seen_f : f32 -> tensor<${BM}x${BN}xf32>
    %result = arith.addf %r#3, %seen_s : tensor<${BM}x${BN}xf32>
    %c_r = tt.expand_dims %m {axis = 1 : i32} : tensor<${BM}xi32> -> tensor<${BM}x1xi32>
    %c_p = tt.splat %N : i32 -> tensor<${BM}x1xi32>
    %c_f = arith.muli %c_r, %c_p : tensor<${BM}x1xi32>
    %c_rb = tt.broadcast %c_f : tensor<${BM}x1xi32> -> tensor<${BM}x${BN}xi32>
    %c_c = tt.expand_dims %n {axis = 0 : i32} : tensor<${BN}xi32> -> tensor<1x${BN}xi32>
    %c_cb = tt.broadcast %c_c : tensor<1x${BN}xi32> -> tensor<${BM}x${BN}xi32>
    %c_o = arith.addi %c_rb, %c_cb : tensor<${BM}x${BN}xi32>
    %c_s = tt.splat %c : !tt.ptr<f32> -> tensor<${BM}x${BN}x!tt.ptr<f32>>
    %c_0 = tt.addptr %c_s, %c_o : tensor<${BM}x${BN}x!tt.ptr<f32>>, tensor<${BM}x${BN}xi32>
    %m_in = arith.cmpi slt, %m, %Ms : tensor<${BM}xi32>
    %n_in = arith.cmpi slt, %n, %Ns : tensor<${BN}xi32>
    %m_ie = tt.expand_dims %m_in {axis = 1 : i32} : tensor<${BM}xi1> -> tensor<${BM}x1xi1>
    %n_ie = tt.expand_dims %n_in {axis = 0 : i32} : tensor<${BN}xi1> -> tensor<1x${BN}xi1>
    %m_ib = tt.broadcast %m_ie : tensor<${BM}x1xi1> -> tensor<${BM}x${BN}xi1>
    %n_ib = tt.broadcast %n_ie : tensor<1x${BN}xi1> -> tensor<${BM}x${BN}xi1>
    %in = arith.andi %m_ib, %n_ib : tensor<${BM}x${BN}xi1>
    tt.store %c_0, %result, %in : tensor<${BM}x${BN}x!tt.ptr<f32>>
    tt.return
  }
}
"""


class Kernel:
    """`packed`: whether the loop carries the packed numbers, and `buffers`: how many its rings have; None: any."""

    def __init__(self, seed, warps=None, tile=None, packed=None, buffers=None):
        source = random.Random("packed %d" % seed)
        self.packed, self.buffers = packed, buffers
        self.type = source.choice(["f16", "bf16"])
        self.warps = warps or source.choice([4, 8])
        self.bm, self.bn, self.bk = tile or (
            source.choice([64, 128]), 16 * self.warps * source.choice([1, 2]), source.choice([64, 128]))
        self.m, self.n = source.choice([1, self.bm - 3, self.bm + 5]), source.choice([self.bn, self.bn - 7, self.bn + 1])
        self.k = self.bk * source.choice([1, 2, 3, 5])
        self.counted = source.random() < 0.5

    def __str__(self):
        return "%s, %d warps, tile %d x %d x %d, %d x %d x %d%s" % (
            self.type, self.warps, self.bm, self.bn, self.bk, self.m, self.n, self.k,
            ", counter used" if self.counted else "")

    def text(self):
        return string.Template(TEXT).substitute(
            TYPE=self.type, KIND={"f16": "fp16"}.get(self.type, self.type), COUNTED="%k" if self.counted else "%c0",
            BM=self.bm, BN=self.bn, BK=self.bk, HALF=self.bk // 2, SCALES=self.bk // 32)

    def arguments(self, folder):
        """Of the exponents of scales, most are near 0, and some are those of subnormal numbers, of the largest ones and
        NaN."""
        source = random.Random("scales %s" % self)
        scales = [source.choice([0, 1, 254, 255]) if source.random() < 0.02 else source.randrange(120, 134)
                  for _ in range(self.n * self.k // 32)]
        pairs = [source.randrange(256) for _ in range(self.n * self.k // 2)]
        npy.write(os.path.join(folder, "b.npy"), "u1", pairs, (self.n, self.k // 2))
        npy.write(os.path.join(folder, "s.npy"), "u1", scales, (self.n, self.k // 32))
        grid = "%d,%d" % (-(-self.m // self.bm), -(-self.n // self.bn))
        words = ["--grid", grid, "--num-warps", str(self.warps)]
        for argument in ("a=random:%s:%dx%d" % (self.type, self.m, self.k), "b=@" + os.path.join(folder, "b.npy"),
                         "s=@" + os.path.join(folder, "s.npy"), "c=empty:f32:%dx%d" % (self.m, self.n),
                         "M=%d" % self.m, "N=%d" % self.n, "K=%d" % self.k):
            words += ["--arg", argument]
        return words


def check(lilac, ptxas, kernel):
    with tempfile.TemporaryDirectory() as folder:
        path, ptx = os.path.join(folder, "kernel.ttir"), os.path.join(folder, "kernel.ptx")
        with open(path, "w") as file:
            file.write(kernel.text())
        said, bits = staggered.launch(lilac, path, os.path.join(folder, "c.npy"), *kernel.arguments(folder),
                                      "--launch-maps", output="c")
        if staggered.findings(said):
            return said
        for words in ([], ["--schedule", "rotate=no"]):
            said, plain = staggered.launch(lilac, path, os.path.join(folder, "p.npy"), *kernel.arguments(folder), *words,
                                           output="c")
            if staggered.findings(said) or plain != bits:
                return "a finding or another result without maps, %s:\n%s" % (words, said)
        tile = command.run(lilac, "compile", path, "--num-warps", str(kernel.warps), "--launch-maps", "--emit",
                           "ttgir").stdout
        carried = re.search(r"scf\.for .* -> \((.*)\)", tile).group(1)
        packed = "tensor<%dx%dxi8" % (kernel.bn, kernel.bk // 2) in carried
        operand = re.search(r"tensor<\d+x\d+xb?f16", carried) is not None
        if packed == operand or kernel.packed not in (None, packed):
            return "the loop carries " + carried
        buffers = int(re.search(r'lilac\.schedule = "[^"]*buffers=(\d+)', tile).group(1))
        if kernel.buffers not in (None, buffers):
            return "the rings have %d buffers" % buffers
        command.run(lilac, "compile", path, "--num-warps", str(kernel.warps), "--launch-maps", "-o", ptx)
        with open(ptx) as file:
            text = file.read()
        if len(re.findall(r"cp\.async\.bulk\.tensor", text)) < 2 or re.search(r"cp\.async\.c[ag]|ld\.shared\.[bus]8", text):
            return "an operand is not copied by tensor copies, or read byte by byte"
        return staggered.check_ptxas(ptxas, ptx, staggered.SPILLS) if ptxas else None


def main():
    lilac, ptxas = command.parse_arguments(__doc__).lilac, shutil.which("ptxas")
    chosen = [Kernel(100, 8, (128, 128, 128), packed=True, buffers=2), Kernel(101, 8, (64, 256, 64), packed=True),
              Kernel(102, 4, (128, 64, 128), packed=False), Kernel(103, 8, (128, 256, 64), packed=False)]
    return staggered.check_all(chosen + [Kernel(seed) for seed in range(KERNELS)],
                               lambda _, kernel: check(lilac, ptxas, kernel))


if __name__ == "__main__":
    sys.exit(main())
