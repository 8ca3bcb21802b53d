"""Sums of products over blocks of rows whose numbers are loaded, as in FlexAttention, on the simulator against exact arithmetic:
D = Σ ± max(A Kᵦᵀ, 0) Vᵦ, or without signs in two loops, one behind the other. The pointers of K and V are in the middle of their buffers, and numbers may be negative: the maps of
the launcher describe tensors that begin in front of the pointers. A producer loads the numbers and starts the copies.

The results are the same without maps, and nothing is reported.
"""

import operator
import os
import random
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import npy  # noqa: E402

ROWS, BLOCKS, KERNELS = 128, 9, 12

TEXT = """module {{
  tt.func public @k(%a: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %k: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %v: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %numbers: !tt.ptr<i32> {{tt.divisibility = 16 : i32}}, %d: !tt.ptr<f32> {{tt.divisibility = 16 : i32}}, %n: i32, %n2: i32, %e: f32) {{
    %zero = arith.constant dense<0.0> : tensor<128x{width}xf32>
    %minus = arith.constant dense<-1.0> : tensor<128x{width}xf32>
    %es = tt.splat %e : f32 -> tensor<128x{width}xf32>
    %one = math.exp2 %es : tensor<128x{width}xf32>
    %numbers2 = tt.addptr %numbers, %n : !tt.ptr<i32>, i32
    %none = arith.constant dense<0.0> : tensor<128x{block}xf32>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %block = arith.constant {block} : i32
    %pitch = arith.constant dense<{width}> : tensor<{block}x1x{index}>
    %pitch_a = arith.constant dense<{width}> : tensor<128x1xi32>
    %rows = tt.make_range {{end = 128 : i32, start = 0 : i32}} : tensor<128xi32>
    %in_block = tt.make_range {{end = {block} : i32, start = 0 : i32}} : tensor<{block}xi32>
    %columns = tt.make_range {{end = {width} : i32, start = 0 : i32}} : tensor<{width}xi32>
    %row = tt.expand_dims %rows {{axis = 1 : i32}} : tensor<128xi32> -> tensor<128x1xi32>
    %row_offset = arith.muli %row, %pitch_a : tensor<128x1xi32>
    %column = tt.expand_dims %columns {{axis = 0 : i32}} : tensor<{width}xi32> -> tensor<1x{width}xi32>
    %row_wide = tt.broadcast %row_offset : tensor<128x1xi32> -> tensor<128x{width}xi32>
    %column_wide = tt.broadcast %column : tensor<1x{width}xi32> -> tensor<128x{width}xi32>
    %offset = arith.addi %row_wide, %column_wide : tensor<128x{width}xi32>
    %as = tt.splat %a : !tt.ptr<f16> -> tensor<128x{width}x!tt.ptr<f16>>
    %ap = tt.addptr %as, %offset : tensor<128x{width}x!tt.ptr<f16>>, tensor<128x{width}xi32>
    %q = tt.load %ap : tensor<128x{width}x!tt.ptr<f16>>
    %column_block = tt.broadcast %column : tensor<1x{width}xi32> -> tensor<{block}x{width}xi32>
{loops}    %ds = tt.splat %d : !tt.ptr<f32> -> tensor<128x{width}x!tt.ptr<f32>>
    %dp = tt.addptr %ds, %offset : tensor<128x{width}x!tt.ptr<f32>>, tensor<128x{width}xi32>
    tt.store %dp, {sum}#0 : tensor<128x{width}x!tt.ptr<f32>>
    tt.return
  }}
}}
"""


LOOP = """    %first{x} = tt.load %numbers{x} : !tt.ptr<i32>
    %start{x} = arith.muli %first{x}, %block : i32
    %sum{x}:2 = scf.for %i = %c0 to %n{x} step %c1 iter_args(%acc = {init}, %moved = %c0) -> (tensor<128x{width}xf32>, i32)  : i32 {{
{at}      %ats = tt.splat %at : i32 -> tensor<{block}xi32>
      %r = arith.addi %ats, %in_block : tensor<{block}xi32>
      %re = tt.expand_dims %r {{axis = 1 : i32}} : tensor<{block}xi32> -> tensor<{block}x1xi32>
{extend}      %ro = arith.muli {row}, %pitch : tensor<{block}x1x{index}>
      %ks = tt.splat %k : !tt.ptr<f16> -> tensor<{block}x1x!tt.ptr<f16>>
      %kr = tt.addptr %ks, %ro : tensor<{block}x1x!tt.ptr<f16>>, tensor<{block}x1x{index}>
      %kb = tt.broadcast %kr : tensor<{block}x1x!tt.ptr<f16>> -> tensor<{block}x{width}x!tt.ptr<f16>>
      %kp = tt.addptr %kb, %column_block : tensor<{block}x{width}x!tt.ptr<f16>>, tensor<{block}x{width}xi32>
      %keys = tt.load %kp : tensor<{block}x{width}x!tt.ptr<f16>>
      %t = tt.trans %keys {{order = array<i32: 1, 0>}} : tensor<{block}x{width}xf16> -> tensor<{width}x{block}xf16>
      %s = tt.dot %q, %t, %none : tensor<128x{width}xf16> * tensor<{width}x{block}xf16> -> tensor<128x{block}xf32>
      %positive = arith.maxnumf %s, %none : tensor<128x{block}xf32>
      %p = arith.truncf %positive : tensor<128x{block}xf32> to tensor<128x{block}xf16>
      %vs = tt.splat %v : !tt.ptr<f16> -> tensor<{block}x1x!tt.ptr<f16>>
      %vr = tt.addptr %vs, %ro : tensor<{block}x1x!tt.ptr<f16>>, tensor<{block}x1x{index}>
      %vb = tt.broadcast %vr : tensor<{block}x1x!tt.ptr<f16>> -> tensor<{block}x{width}x!tt.ptr<f16>>
      %vp = tt.addptr %vb, %column_block : tensor<{block}x{width}x!tt.ptr<f16>>, tensor<{block}x{width}xi32>
      %values = tt.load %vp : tensor<{block}x{width}x!tt.ptr<f16>>
      %scaled = arith.mulf %acc, {scale} : tensor<128x{width}xf32>
      %next = tt.dot %p, %values, %scaled : tensor<128x{block}xf16> * tensor<{block}x{width}xf16> -> tensor<128x{width}xf32>
      %here = tt.addptr %numbers{x}, %i : !tt.ptr<i32>, i32
      %number = tt.load %here : !tt.ptr<i32>
      %j = arith.addi %i, %c1 : i32
      %more = arith.cmpi slt, %j, %n{x} : i32
      %there = tt.addptr %here, %c1 : !tt.ptr<i32>, i32
      %following = tt.load %there, %more : !tt.ptr<i32>
      %jump = arith.subi %following, %number : i32
      %step = arith.muli %jump, %block : i32
      %new = arith.addi %moved, %step : i32
      scf.yield %next, %new : tensor<128x{width}xf32>, i32
    }}
"""


SUM = "      %at = arith.addi %start{x}, %moved : i32\n"
LOADED = """      %this = tt.addptr %numbers{x}, %i : !tt.ptr<i32>, i32
      %present = tt.load %this : !tt.ptr<i32>
      %at = arith.muli %present, %block : i32
"""
EXTEND = "      %rw = arith.extsi %re : tensor<{block}x1xi32> to tensor<{block}x1xi64>\n"


class Kernel:
    def __init__(self, seed):
        source = random.Random("loaded blocks %d" % seed)
        self.block, self.width, self.warps = source.choice([32, 64]), source.choice([64, 128, 128]), source.choice([4, 8, 8])
        self.stages, self.middle = source.choice([3, 3, 4]), source.choice([0, 4, 8])
        self.wide = seed % 6 == 1  # offsets of 64 bits, which may be further in front of the pointer
        self.second = source.choice([0, 1, 2, 5]) if seed % 3 == 2 else 0  # blocks of a second loop
        self.numbers = [source.randrange(-self.middle, BLOCKS - self.middle) for _ in range(source.choice([1, 2, 3, 7, 12]) + self.second)]
        draw = lambda height: [[source.randint(-2, 2) for _ in range(self.width)] for _ in range(height)]  # noqa: E731
        self.a, self.k, self.v = draw(ROWS), draw(BLOCKS * self.block), draw(BLOCKS * self.block)

    def __str__(self):
        return "blocks %s, %d in a second loop, of %d × %d, from block %d on, %d warps, %d stages%s" % (
            self.numbers, self.second, self.block, self.width, self.middle, self.warps, self.stages, ", wide" * self.wide)

    def text(self):
        sizes = {"block": self.block, "width": self.width, "index": "i64" if self.wide else "i32", "row": "%rw" if self.wide else "%re",
                 "extend": EXTEND.format(block=self.block) if self.wide else ""}
        at = LOADED if self.wide else SUM
        loops = LOOP.format(x="", at=at.format(x=""), init="%zero", scale="%one" if self.second else "%minus", **sizes)
        if self.second:
            loops += LOOP.format(x="2", at=at.format(x="2"), init="%sum#0", scale="%one", **sizes)
        return TEXT.format(loops=loops, sum="%sum2" if self.second else "%sum", **sizes)

    def expected(self):
        result = [[0] * self.width for _ in range(ROWS)]
        sign = 1 if self.second else -1
        for number in self.numbers:
            first = (number + self.middle) * self.block
            keys, values = self.k[first:first + self.block], list(zip(*self.v[first:first + self.block]))
            for row, sums in zip(self.a, result):
                scores = [max(sum(map(operator.mul, row, key)), 0) for key in keys]
                sums[:] = [sum(map(operator.mul, scores, value)) + sign * old for value, old in zip(values, sums)]
        return [float(one) for row in result for one in row]

    def words(self, folder):
        for name, rows in (("a", self.a), ("kb", self.k), ("vb", self.v)):
            npy.write(os.path.join(folder, name + ".npy"), "f2", [float(one) for row in rows for one in row],
                      (len(rows), self.width))
        npy.write(os.path.join(folder, "n.npy"), "i4", self.numbers, (len(self.numbers),))
        front = self.middle * self.block * self.width
        words = ["--num-warps", str(self.warps), "--num-stages", str(self.stages), "--target", "sm_90a", "--grid", "1", "--verify"]
        for name in ("kb", "vb"):
            words += ["--buffer", "%s=@%s" % (name, os.path.join(folder, name + ".npy"))]
        for argument in ("a=@" + os.path.join(folder, "a.npy"), "k=same:kb+%d" % front, "v=same:vb+%d" % front,
                         "numbers=@" + os.path.join(folder, "n.npy"), "d=empty:f32:%dx%d" % (ROWS, self.width),
                         "n=%d" % (len(self.numbers) - self.second), "n2=%d" % self.second, "e=0.0"):
            words += ["--arg", argument]
        return words


def check(lilac, kernel):
    """None, or the reason for a failure; and whether a producer starts tensor copies. With offsets of 64 bits none may: a row can be
    further in front of the pointer than the tensor begins."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "k.ttir"), os.path.join(folder, "d.npy")
        with open(path, "w", encoding="utf-8") as file:
            file.write(kernel.text())
        words, wanted = kernel.words(folder), kernel.expected()
        for maps in ([], ["--launch-maps"]):
            done = command.run(lilac, "run", path, *words, *maps, "--save", "d=" + out)
            if done.returncode != 0 or done.stderr:
                return "%s: %s" % (maps, done.stderr), False
            if list(npy.read(out)[0]) != wanted:
                return "%s: wrong result" % maps, False
        said = command.run(lilac, "explain", path, "--num-warps", kernel.warps, "--num-stages", kernel.stages, "--target", "sm_90a",
                           "--launch-maps").stdout
        producer = re.search(r"^schedule of the loop.*producer=yes", said, re.M) is not None
        return "a producer of blocks at offsets of 64 bits" if kernel.wide and producer else None, producer


def main():
    arguments = command.parse_arguments(__doc__)
    failures, count, producers = [], 0, [0, 0]
    for seed in [int(name) for name in arguments.names] or range(KERNELS):
        kernel = Kernel(seed)
        why, producer = check(arguments.lilac, kernel)
        count += 1
        producers[kernel.second > 0] += producer and min(kernel.numbers) < 0
        if why:
            print("%s: %s" % (kernel, why))
            failures.append(str(kernel))
    if min(producers) < 1 and not arguments.names:
        failures.append("%d and %d have a producer and blocks in front of the pointer" % tuple(producers))
    command.finish(failures, count, "kernels with loaded numbers of blocks")


if __name__ == "__main__":
    main()
