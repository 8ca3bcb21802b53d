"""Long sequences of matrix products without loops, as in the gradients of recurrences, on the simulator.

Products read the loaded tiles and the results of earlier ones, perhaps transposed: by wgmma (64 x 64, bf16), or by
multiply-adds (16 x 16 or 32 x 32, f32), whose operands fill the registers together. A launch must have no finding and
the same bits as without the passes that let products share operands in memory, store these ahead, and read them in
steps; each of the passes must change some kernel. A loop that reads one tensor for two products must be rotated as it
is without shared memory: the second ring that it then needs counts.
"""

import os
import random
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402

import staggered  # noqa: E402

KERNELS = 60 if os.environ.get("LILAC_TEST_LONG") else 16
PASSES = ("share_operands", "raise_operands", "step_products")


class Kernel:
    def __init__(self, seed):
        self.random = random.Random("sequence %d" % seed)
        self.wgmma = seed % 2 == 0
        self.type = "bf16" if self.wgmma else "f32"
        self.size = 64 if self.wgmma else self.random.choice([16, 32])
        self.warps = self.random.choice([4, 8]) if self.wgmma else self.random.choice([1, 4, 8])
        self.inputs = self.random.randrange(2, 6)
        self.products = self.random.randrange(8, 20 if self.wgmma else 12)
        self.results = 3
        self.lines = []

    def __str__(self):
        return "%d products of %d x %d, %s, %d warps" % (self.products, self.size, self.size, self.type, self.warps)

    def tile(self, of):
        return "tensor<%dx%dx%s>" % (self.size, self.size, of)

    def add(self, text, **values):
        self.lines.append("    " + text.format(T=self.tile(self.type), F=self.tile("f32"), S=self.size, **values))

    def load(self, place):
        self.add("%o{n} = arith.constant dense<{o}> : {I}", n=place, o=place * self.size * self.size, I=self.tile("i32"))
        self.add("%a{n} = arith.addi %at, %o{n} : {I}", n=place, I=self.tile("i32"))
        self.add("%q{n} = tt.addptr %ps, %a{n} : {P}, {I}", n=place, P=self.tile("!tt.ptr<%s>" % self.type), I=self.tile("i32"))
        self.add("%t{n} = tt.load %q{n} : {P}", n=place, P=self.tile("!tt.ptr<%s>" % self.type))

    def operand(self, name, tiles):
        value = self.random.choice(tiles)
        if self.random.random() < 0.4:
            self.add("%{n} = tt.trans {v} {{order = array<i32: 1, 0>}} : {T} -> {T}", n=name, v=value)
            return "%" + name
        return value

    def product(self, number, tiles, sums):
        a, b = self.operand("x%d" % number, tiles), self.operand("y%d" % number, tiles)
        c = self.random.choice(sums) if sums and self.random.random() < 0.3 else "%zero"
        self.add("%d{n} = tt.dot {a}, {b}, {c} : {T} * {T} -> {F}", n=number, a=a, b=b, c=c)
        self.add("%e{n} = arith.mulf %d{n}, %scale : {F}", n=number)
        sums.append("%e" + str(number))
        if self.wgmma:
            self.add("%h{n} = arith.truncf %e{n} : {F} to {T}", n=number)
        tiles.append("%%%s%d" % ("h" if self.wgmma else "e", number))

    def text(self):
        self.lines = []
        tiles, sums = ["%%t%d" % i for i in range(self.inputs)], []
        for place in range(self.inputs):
            self.load(place)
        for number in range(self.products):
            self.product(number, tiles, sums)
        for place, value in enumerate(sums[-self.results:]):
            self.add("%r{n} = arith.constant dense<{o}> : {I}", n=place, o=place * self.size * self.size,
                     I=self.tile("i32"))
            self.add("%s{n} = arith.addi %at, %r{n} : {I}", n=place, I=self.tile("i32"))
            self.add("%w{n} = tt.addptr %os, %s{n} : {P}, {I}", n=place, P=self.tile("!tt.ptr<f32>"), I=self.tile("i32"))
            self.add("tt.store %w{n}, {v} : {P}", n=place, v=value, P=self.tile("!tt.ptr<f32>"))
        return """module {{
  tt.func public @sequence(%p: !tt.ptr<{E}> {{tt.divisibility = 16 : i32}}, %o: !tt.ptr<f32> {{tt.divisibility = 16 : i32}}) {{
    %zero = arith.constant dense<0.0> : {F}
    %scale = arith.constant dense<0.125> : {F}
    %pitch = arith.constant dense<{S}> : tensor<{S}x1xi32>
    %n = tt.make_range {{end = {S} : i32, start = 0 : i32}} : tensor<{S}xi32>
    %row = tt.expand_dims %n {{axis = 1 : i32}} : tensor<{S}xi32> -> tensor<{S}x1xi32>
    %column = tt.expand_dims %n {{axis = 0 : i32}} : tensor<{S}xi32> -> tensor<1x{S}xi32>
    %rows = arith.muli %row, %pitch : tensor<{S}x1xi32>
    %rows_all = tt.broadcast %rows : tensor<{S}x1xi32> -> tensor<{S}x{S}xi32>
    %columns_all = tt.broadcast %column : tensor<1x{S}xi32> -> tensor<{S}x{S}xi32>
    %at = arith.addi %rows_all, %columns_all : tensor<{S}x{S}xi32>
    %ps = tt.splat %p : !tt.ptr<{E}> -> tensor<{S}x{S}x!tt.ptr<{E}>>
    %os = tt.splat %o : !tt.ptr<f32> -> tensor<{S}x{S}x!tt.ptr<f32>>
{BODY}
    tt.return
  }}
}}
""".format(E=self.type, F=self.tile("f32"), S=self.size, BODY="\n".join(self.lines))

    def arguments(self):
        return ["--grid", "1", "--arg", "p=random:%s:%dx%dx%d" % (self.type, self.inputs, self.size, self.size),
                "--arg", "o=empty:f32:%dx%dx%d" % (self.results, self.size, self.size)]


def check(lilac, kernel, changed):
    with tempfile.TemporaryDirectory() as folder:
        path, plain = os.path.join(folder, "kernel.ttir"), os.path.join(folder, "plain.simt")
        with open(path, "w") as file:
            file.write(kernel.text())
        options = ["--num-warps", str(kernel.warps), "--keep-warps"]

        def simt(*skipped):
            words = ["--skip", ",".join(skipped)] if skipped else []
            return command.run(lilac, "compile", path, *options, *words, "--emit", "simt").stdout
        whole = simt()
        changed.update(name for name in PASSES if simt(name) != whole)
        said, bits = staggered.launch(lilac, path, os.path.join(folder, "o.npy"), *options, *kernel.arguments())
        if staggered.findings(said):
            return said
        with open(plain, "w") as file:
            file.write(simt(*PASSES))
        said, without = staggered.launch(lilac, plain, os.path.join(folder, "p.npy"), *kernel.arguments())
        if staggered.findings(said) or without != bits:
            return "a finding or another result without the passes:\n" + said
    return None


def schedules(lilac, path, stages, *words):
    tile = command.run(lilac, "compile", path, "--num-warps", 8, "--num-stages", stages, "--launch-maps", "--emit", "tile",
                       *words).stdout
    return re.findall(r'lilac\.schedule = "([^"]*)"', tile)


def check_rotation(lilac, path):
    for stages, rotated in ((2, False), (3, True)):
        found = schedules(lilac, path, stages)
        if found != schedules(lilac, path, stages, "--skip", "share_operands") or rotated != ("rotate=yes" in found[0]):
            print("%s with %d stages: %s" % (path, stages, found))
            return 1
    return 0


def main():
    arguments = command.parse_arguments(__doc__)
    lilac, changed = arguments.lilac, set()
    if check_rotation(lilac, os.path.join(arguments.data, "rotation", "attention_dq.ttir")):
        return 1
    failed = staggered.check_all([Kernel(seed) for seed in range(KERNELS)],
                                 lambda _, kernel: check(lilac, kernel, changed))
    if not failed and changed != set(PASSES):
        print("no kernel is changed by " + ", ".join(sorted(set(PASSES) - changed)))
        return 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
