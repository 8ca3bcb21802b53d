"""Attention whose warpgroups have several blocks of 64 rows, on the simulator.

A launch must have no finding and the same bits as with --skip stagger_products, and stagger_products must have
divided the loop exactly in kernels without a branch in the softmax. Every mutation of a wait must be found, and
ptxas must not serialise the products, where it is there.
"""

import os
import random
import re
import shutil
import string
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402

KERNELS = 60 if os.environ.get("LILAC_TEST_LONG") else 8

TEXT = """
module {
  tt.func public @attention(%q: !tt.ptr<${TYPE}> {tt.divisibility = 16 : i32}, %k: !tt.ptr<${TYPE}> {tt.divisibility = 16 : i32},
      %v: !tt.ptr<${TYPE}> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32},
      %scale: f32, %length: i32 {tt.divisibility = 16 : i32}) {
    %c0 = arith.constant 0 : i32
    %step = arith.constant ${BN} : i32
    %size = arith.constant ${BM} : i32
    %zeros = arith.constant dense<0.0> : tensor<${BM}x${BN}xf32>
    %empty = arith.constant dense<0.0> : tensor<${BM}x${D}xf32>
    %least = arith.constant dense<0xFF800000> : tensor<${BM}xf32>
    %nothing = arith.constant dense<0.0> : tensor<${BM}xf32>
    %hidden = arith.constant dense<-1.0e6> : tensor<${BM}x${BN}xf32>
    %pitch_m = arith.constant dense<${D}> : tensor<${BM}x1xi32>
    %pitch_n = arith.constant dense<${D}> : tensor<1x${BN}xi32>
    %pitch_v = arith.constant dense<${D}> : tensor<${BN}x1xi32>
    %block = tt.get_program_id x : i32
    %first = arith.muli %block, %size : i32
    %m = tt.make_range {end = ${BM} : i32, start = 0 : i32} : tensor<${BM}xi32>
    %first_s = tt.splat %first : i32 -> tensor<${BM}xi32>
    %rows = arith.addi %first_s, %m : tensor<${BM}xi32>
    %n = tt.make_range {end = ${BN} : i32, start = 0 : i32} : tensor<${BN}xi32>
    %d = tt.make_range {end = ${D} : i32, start = 0 : i32} : tensor<${D}xi32>
    %rows_e = tt.expand_dims %rows {axis = 1 : i32} : tensor<${BM}xi32> -> tensor<${BM}x1xi32>
    %rows_p = arith.muli %rows_e, %pitch_m : tensor<${BM}x1xi32>
    %rows_b = tt.broadcast %rows_p : tensor<${BM}x1xi32> -> tensor<${BM}x${D}xi32>
    %d_e = tt.expand_dims %d {axis = 0 : i32} : tensor<${D}xi32> -> tensor<1x${D}xi32>
    %d_t = tt.expand_dims %d {axis = 1 : i32} : tensor<${D}xi32> -> tensor<${D}x1xi32>
    %d_m = tt.broadcast %d_e : tensor<1x${D}xi32> -> tensor<${BM}x${D}xi32>
    %d_n = tt.broadcast %d_e : tensor<1x${D}xi32> -> tensor<${BN}x${D}xi32>
    %d_k = tt.broadcast %d_t : tensor<${D}x1xi32> -> tensor<${D}x${BN}xi32>
    %at_m = arith.addi %rows_b, %d_m : tensor<${BM}x${D}xi32>
    %q_s = tt.splat %q : !tt.ptr<${TYPE}> -> tensor<${BM}x${D}x!tt.ptr<${TYPE}>>
    %q_p = tt.addptr %q_s, %at_m : tensor<${BM}x${D}x!tt.ptr<${TYPE}>>, tensor<${BM}x${D}xi32>
    %query = tt.load %q_p : tensor<${BM}x${D}x!tt.ptr<${TYPE}>>
    %scales = tt.splat %scale : f32 -> tensor<${BM}x${BN}xf32>
    %r:3 = scf.for %i = %c0 to %length step %step
        iter_args(%highest = %least, %total = %nothing, %result = %empty) -> (tensor<${BM}xf32>, tensor<${BM}xf32>, tensor<${BM}x${D}xf32>) : i32 {
      %i_s = tt.splat %i : i32 -> tensor<${BN}xi32>
      %at = arith.addi %i_s, %n : tensor<${BN}xi32>
      %at_e = tt.expand_dims %at {axis = 0 : i32} : tensor<${BN}xi32> -> tensor<1x${BN}xi32>
      %at_p = arith.muli %at_e, %pitch_n : tensor<1x${BN}xi32>
      %at_b = tt.broadcast %at_p : tensor<1x${BN}xi32> -> tensor<${D}x${BN}xi32>
      %k_at = arith.addi %at_b, %d_k : tensor<${D}x${BN}xi32>
      %k_s = tt.splat %k : !tt.ptr<${TYPE}> -> tensor<${D}x${BN}x!tt.ptr<${TYPE}>>
      %k_p = tt.addptr %k_s, %k_at : tensor<${D}x${BN}x!tt.ptr<${TYPE}>>, tensor<${D}x${BN}xi32>
      %key = tt.load %k_p : tensor<${D}x${BN}x!tt.ptr<${TYPE}>>
      %dot = tt.dot %query, %key, %zeros : tensor<${BM}x${D}x${TYPE}> * tensor<${D}x${BN}x${TYPE}> -> tensor<${BM}x${BN}xf32>
      %s0 = arith.mulf %dot, %scales : tensor<${BM}x${BN}xf32>
      ${MASK}
      %higher = "tt.reduce"(%s) <{axis = 1 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %x = arith.maxnumf %a, %b : f32
        tt.reduce.return %x : f32
      }) : (tensor<${BM}x${BN}xf32>) -> tensor<${BM}xf32>
      %new = arith.maxnumf %highest, %higher : tensor<${BM}xf32>
      %new_e = tt.expand_dims %new {axis = 1 : i32} : tensor<${BM}xf32> -> tensor<${BM}x1xf32>
      %new_b = tt.broadcast %new_e : tensor<${BM}x1xf32> -> tensor<${BM}x${BN}xf32>
      %less = arith.subf %s, %new_b : tensor<${BM}x${BN}xf32>
      %p = math.exp2 %less : tensor<${BM}x${BN}xf32>
      %gap = arith.subf %highest, %new : tensor<${BM}xf32>
      %fade = math.exp2 %gap : tensor<${BM}xf32>
      %total_f = arith.mulf %total, %fade : tensor<${BM}xf32>
      %sum = "tt.reduce"(%p) <{axis = 1 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %x = arith.addf %a, %b : f32
        tt.reduce.return %x : f32
      }) : (tensor<${BM}x${BN}xf32>) -> tensor<${BM}xf32>
      %total_n = arith.addf %total_f, %sum : tensor<${BM}xf32>
      %fade_e = tt.expand_dims %fade {axis = 1 : i32} : tensor<${BM}xf32> -> tensor<${BM}x1xf32>
      %fade_b = tt.broadcast %fade_e : tensor<${BM}x1xf32> -> tensor<${BM}x${D}xf32>
      %faded = arith.mulf %result, %fade_b : tensor<${BM}x${D}xf32>
      %v_e = tt.expand_dims %at {axis = 1 : i32} : tensor<${BN}xi32> -> tensor<${BN}x1xi32>
      %v_r = arith.muli %v_e, %pitch_v : tensor<${BN}x1xi32>
      %v_b = tt.broadcast %v_r : tensor<${BN}x1xi32> -> tensor<${BN}x${D}xi32>
      %v_at = arith.addi %v_b, %d_n : tensor<${BN}x${D}xi32>
      %v_s = tt.splat %v : !tt.ptr<${TYPE}> -> tensor<${BN}x${D}x!tt.ptr<${TYPE}>>
      %v_p = tt.addptr %v_s, %v_at : tensor<${BN}x${D}x!tt.ptr<${TYPE}>>, tensor<${BN}x${D}xi32>
      %value = tt.load %v_p : tensor<${BN}x${D}x!tt.ptr<${TYPE}>>
      %weights = arith.truncf %p : tensor<${BM}x${BN}xf32> to tensor<${BM}x${BN}x${TYPE}>
      %next = tt.dot %weights, %value, %faded : tensor<${BM}x${BN}x${TYPE}> * tensor<${BN}x${D}x${TYPE}> -> tensor<${BM}x${D}xf32>
      scf.yield %new, %total_n, %next : tensor<${BM}xf32>, tensor<${BM}xf32>, tensor<${BM}x${D}xf32>
    }
    %t_e = tt.expand_dims %r#1 {axis = 1 : i32} : tensor<${BM}xf32> -> tensor<${BM}x1xf32>
    %t_b = tt.broadcast %t_e : tensor<${BM}x1xf32> -> tensor<${BM}x${D}xf32>
    %out = arith.divf %r#2, %t_b : tensor<${BM}x${D}xf32>
    %o_s = tt.splat %o : !tt.ptr<f32> -> tensor<${BM}x${D}x!tt.ptr<f32>>
    %o_p = tt.addptr %o_s, %at_m : tensor<${BM}x${D}x!tt.ptr<f32>>, tensor<${BM}x${D}xi32>
    tt.store %o_p, %out : tensor<${BM}x${D}x!tt.ptr<f32>>
    tt.return
  }
}
"""

PLAIN = "%s = arith.addf %s0, %zeros : tensor<${BM}x${BN}xf32>"
CAUSAL = """%row_b = tt.broadcast %rows_e : tensor<${BM}x1xi32> -> tensor<${BM}x${BN}xi32>
      %column_b = tt.broadcast %at_e : tensor<1x${BN}xi32> -> tensor<${BM}x${BN}xi32>
      %seen = arith.cmpi sge, %row_b, %column_b : tensor<${BM}x${BN}xi32>
      %s = arith.select %seen, %s0, %hidden : tensor<${BM}x${BN}xi1>, tensor<${BM}x${BN}xf32>"""


class Kernel:
    def __init__(self, seed):
        source = random.Random("staggered %d" % seed)
        self.type = source.choice(["f16", "bf16"])
        self.warps, self.rows = source.choice([(4, 128), (4, 128), (8, 256)])
        self.columns, self.d = source.choice([32, 64]), source.choice([32, 64])
        self.causal = source.random() < 0.25
        self.blocks = source.choice([1, 2])
        self.iterations = source.choice([1, 2, 3, 5, 8])

    def __str__(self):
        return "%s, %d warps, %d x %d, d %d%s, %d iterations" % (
            self.type, self.warps, self.rows, self.columns, self.d, ", causal" if self.causal else "", self.iterations)

    def text(self):
        values = {"TYPE": self.type, "BM": self.rows, "BN": self.columns, "D": self.d}
        mask = string.Template(CAUSAL if self.causal else PLAIN).substitute(values)
        return string.Template(TEXT).substitute(values, MASK=mask)

    def arguments(self):
        keys = self.columns * self.iterations
        sizes = {"q": self.rows * self.blocks, "k": keys, "v": keys}
        words = ["--grid", str(self.blocks), "--arg", "scale=0.25", "--arg", "length=%d" % keys,
                 "--arg", "o=empty:f32:%dx%d" % (self.rows * self.blocks, self.d)]
        for name, rows in sizes.items():
            words += ["--arg", "%s=random:%s:%dx%d" % (name, self.type, rows, self.d)]
        return words


def launch(lilac, file, result, *words, output="o"):
    """(what is said, the bytes of the result)."""
    done = command.run(lilac, "run", file, *words, "--save", "%s=%s" % (output, result))
    with open(result, "rb") as saved:
        return done.stdout + done.stderr, saved.read()


SPILLS = r"[1-9]\d* bytes spill"


def findings(said):
    return re.findall(r"warning: .*|error: .*|^races .*", said, re.M)


def mutations(text):
    """The waits of the loop for a part of the rows, each with one group more."""
    for found in re.finditer(r"wgmma\.wait .*\{groups = ([1-7])\}", text):
        at, groups = found.start(1), int(found.group(1))
        yield text[:at] + str(groups + 1) + text[at + 1:]


def written(lilac, kernel, path, *words):
    """The SIMT text, and arguments with its tensor maps."""
    simt = command.run(lilac, "compile", path, "--num-warps", kernel.warps, "--launch-maps", "--emit", "simt", *words).stdout
    maps = kernel.arguments()
    for name in re.findall(r"%(\w+): i64 tensor_map", simt):
        maps += ["--arg", "%s=tensor_map:%s:%dx%d:swizzle=%d" % (name, name[0], kernel.columns, kernel.d, 2 * kernel.d)]
    return simt, maps


def check_texts(lilac, folder, kernel, path, bits, mutate):
    """The text without the pass has the same results, and each mutation of that with it is found."""
    simt, words = written(lilac, kernel, path)
    plain, _ = written(lilac, kernel, path, "--skip", "stagger_products")
    changed = os.path.join(folder, "changed.simt")
    for text in (plain, simt, *(mutations(simt) if mutate else ())):
        with open(changed, "w") as file:
            file.write(text)
        said, found = launch(lilac, changed, os.path.join(folder, "changed.npy"), *words)
        if text in (plain, simt) and (findings(said) or found != bits):
            return "a finding or another result %s the pass:\n%s" % ("with" if text == simt else "without", said)
        if text not in (plain, simt) and not findings(said):
            return "a mutation is not found"
    return None


def check_ptxas(ptxas, path, *complaints):
    """Why ptxas's messages are wrong, or None: serialised products, warnings, and further patterns."""
    done = subprocess.run([ptxas, "-arch=sm_90a", "-v", "-o", os.devnull, path],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    if done.returncode != 0 or re.search("|".join((r"C75\d\d", "warning", *complaints)), done.stdout):
        return "ptxas says:\n%s" % done.stdout
    return None


def check(lilac, ptxas, kernel, mutate):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.ttir")
        with open(path, "w") as file:
            file.write(kernel.text())
        options = ["--num-warps", str(kernel.warps), "--launch-maps"]
        ptx = os.path.join(folder, "kernel.ptx")
        command.run(lilac, "compile", path, *options, "-o", ptx)
        with open(ptx) as file:
            divided = "wait_group.sync.aligned 3;" in file.read()
        if divided == kernel.causal:
            return "the loop is %sdivided" % ("" if divided else "not ")
        words = kernel.arguments()
        said, bits = launch(lilac, path, os.path.join(folder, "o.npy"), *options, *words)
        if findings(said):
            return said
        reason = check_texts(lilac, folder, kernel, path, bits, mutate and divided)
        return reason or (check_ptxas(ptxas, ptx) if ptxas else None)


def check_all(kernels, reason_of):
    """The exit status. reason_of(seed, kernel): why the kernel is wrong, or None."""
    for seed, kernel in enumerate(kernels):
        reason = reason_of(seed, kernel)
        if reason:
            print("kernel %d (%s): %s" % (seed, kernel, reason))
            return 1
    print("%d kernels" % len(kernels))
    return 0


def main():
    lilac, ptxas = command.parse_arguments(__doc__).lilac, shutil.which("ptxas")
    return check_all([Kernel(seed) for seed in range(KERNELS)],
                     lambda seed, kernel: check(lilac, ptxas, kernel, seed < KERNELS // 2))


if __name__ == "__main__":
    sys.exit(main())
