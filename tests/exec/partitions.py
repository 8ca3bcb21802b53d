"""Kernels with ttg.warp_specialize on the simulator: partitions run beside the default region.

    basic        one store of each region (Triton's test_warp_specialize_basic_ir)
    reductions   regions of 4, 4, 2 and 1 warps reduce at the same time, each through its own scratch memory
                 (Triton's test_warpgroup_reduction)
    captures     scalars and a buffer that the default region's program computes; a loop; a result; a second
                 operation whose partition has the warps of the first one's
    product      a producer copies blocks of A and B by tensor copies to rings of buffers; the default region multiplies

A launch must have no finding and exact results. Every mutation of the product must be found: a wait, an
arrival or a parity that is wrong, a ring that is one buffer too small, a buffer that another region overwrites.
ptxas assembles each kernel where it is there, without spills.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import npy  # noqa: E402

BASIC = """
tt.func @kernel(%x: !tt.ptr<i32>) {
  %c42 = arith.constant 42 : i32
  gpu.barrier
  ttg.warp_specialize(%x)REGISTERS
  default {
    tt.store %x, %c42 : !tt.ptr<i32>
    gpu.barrier
    ttg.warp_yield
  }
  partition0(%y: !tt.ptr<i32>) num_warps(1) {
    %c5555 = arith.constant 5555 : i32
    %c1 = arith.constant 1 : i32
    gpu.barrier
    %p = tt.addptr %y, %c1 : !tt.ptr<i32>, i32
    tt.store %p, %c5555 : !tt.ptr<i32>
    ttg.warp_return
  } : (!tt.ptr<i32>) -> ()
  tt.return
}
"""


def layout(warps):
    return ("#blocked%d = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [%d], "
            "order = [0]}>\n" % (warps, warps))


def reduction(number, warps, source, target):
    tensor = "tensor<256x%%s, #blocked%d>" % warps
    return """
    %%range = tt.make_range {end = %(end)d : i32, start = %(start)d : i32} : %(i32)s
    %%all = tt.splat %(source)s : !tt.ptr<i32> -> %(ptr)s
    %%ptrs = tt.addptr %%all, %%range : %(ptr)s, %(i32)s
    %%values = tt.load %%ptrs : %(ptr)s
    %%sum = "tt.reduce"(%%values) ({
    ^bb0(%%a: i32, %%b: i32):
      %%c = arith.addi %%a, %%b : i32
      tt.reduce.return %%c : i32
    }) {axis = 0 : i32} : (%(i32)s) -> i32
    %%offset = arith.constant %(number)d : i32
    %%to = tt.addptr %(target)s, %%offset : !tt.ptr<i32>, i32
    tt.store %%to, %%sum : !tt.ptr<i32>
""" % {"end": number * 256 + 256, "start": number * 256, "i32": tensor % "i32", "ptr": tensor % "!tt.ptr<i32>",
       "source": source, "target": target, "number": number}


def reductions():
    partitions = "".join("""
  partition%d(%%p: !tt.ptr<i32>, %%q: !tt.ptr<i32>) num_warps(%d) {%s    ttg.warp_return
  }""" % (k, warps, reduction(k + 1, warps, "%p", "%q")) for k, warps in enumerate((4, 2, 1)))
    return (layout(4) + layout(2) + layout(1) + """
module attributes {"ttg.num-warps" = 4 : i32} {
tt.func @kernel(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>) {
  ttg.warp_specialize(%x, %y)REGISTERS
  default {""" + reduction(0, 4, "%x", "%y") + """    ttg.warp_yield
  }""" + partitions + """ : (!tt.ptr<i32>, !tt.ptr<i32>) -> ()
  tt.return
}
}
""")


# y[0..63] = x[64 n ..] + 5 by way of a buffer that is chosen at run time; y[64] = 3 n, y[65] = n > 2, y[66] = 100 + n.
CAPTURES = layout(2) + layout(4) + """
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32} {
tt.func @kernel(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %c5 = arith.constant 5 : i32
  %c64 = arith.constant 64 : i32
  %c65 = arith.constant 65 : i32
  %c66 = arith.constant 66 : i32
  %three = arith.muli %n, %c3 : i32
  %more = arith.cmpi sgt, %n, %c2 : i32
  %row = arith.muli %n, %c64 : i32
  %from = tt.addptr %x, %row : !tt.ptr<i32>, i32
  %ring = ttg.local_alloc : () -> !ttg.memdesc<4x64xi32, #s, #smem, mutable>
  %slot = arith.andi %n, %c3 : i32
  %m = ttg.memdesc_index %ring[%slot] : !ttg.memdesc<4x64xi32, #s, #smem, mutable> -> !ttg.memdesc<64xi32, #s, #smem, mutable>
  %after = ttg.warp_specialize(%from, %m, %three, %more, %y)REGISTERS
  default {
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c64) -> (i32) : i32 {
      %b = arith.addi %a, %c1 : i32
      scf.yield %b : i32
    }
    ttg.warp_yield %sum : i32
  }
  partition0(%p: !tt.ptr<i32>, %to: !ttg.memdesc<64xi32, #s, #smem, mutable>, %t: i32, %b: i1, %q: !tt.ptr<i32>) num_warps(2) {
    %k64 = arith.constant 64 : i32
    %k65 = arith.constant 65 : i32
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #blocked2>
    %all = tt.splat %p : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #blocked2>
    %ptrs = tt.addptr %all, %range : tensor<64x!tt.ptr<i32>, #blocked2>, tensor<64xi32, #blocked2>
    %values = tt.load %ptrs : tensor<64x!tt.ptr<i32>, #blocked2>
    ttg.local_store %values, %to : tensor<64xi32, #blocked2> -> !ttg.memdesc<64xi32, #s, #smem, mutable>
    %q64 = tt.addptr %q, %k64 : !tt.ptr<i32>, i32
    tt.store %q64, %t : !tt.ptr<i32>
    %bit = arith.extui %b : i1 to i32
    %q65 = tt.addptr %q, %k65 : !tt.ptr<i32>, i32
    tt.store %q65, %bit : !tt.ptr<i32>
    ttg.warp_return
  } : (!tt.ptr<i32>, !ttg.memdesc<64xi32, #s, #smem, mutable>, i32, i1, !tt.ptr<i32>) -> i32
  %y66 = tt.addptr %y, %c66 : !tt.ptr<i32>, i32
  %hundred = arith.constant 36 : i32
  %last = arith.addi %after, %hundred : i32
  tt.store %y66, %last : !tt.ptr<i32>
  ttg.warp_specialize(%m, %y)REGISTERS
  default {
    ttg.warp_yield
  }
  partition0(%at: !ttg.memdesc<64xi32, #s, #smem, mutable>, %q: !tt.ptr<i32>) num_warps(2) {
    %five = arith.constant dense<5> : tensor<64xi32, #blocked2>
    %values = ttg.local_load %at : !ttg.memdesc<64xi32, #s, #smem, mutable> -> tensor<64xi32, #blocked2>
    %sums = arith.addi %values, %five : tensor<64xi32, #blocked2>
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #blocked2>
    %all = tt.splat %q : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #blocked2>
    %ptrs = tt.addptr %all, %range : tensor<64x!tt.ptr<i32>, #blocked2>, tensor<64xi32, #blocked2>
    tt.store %ptrs, %sums : tensor<64x!tt.ptr<i32>, #blocked2>
    ttg.warp_return
  } : (!ttg.memdesc<64xi32, #s, #smem, mutable>, !tt.ptr<i32>) -> ()
  tt.return
}
}
"""

# D = A Bᵀ, of 64 × 64 elements; the ring has STAGES buffers.
PRODUCT = """
#acc = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#t = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#n = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32} {
tt.func @kernel(%a: !tt.tensordesc<tensor<64x64xf16>>, %b: !tt.tensordesc<tensor<64x64xf16>>, %d: !tt.ptr<f32>, %k: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %stages = arith.constant STAGES : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #acc>
  %ring_a = ttg.local_alloc : () -> !ttg.memdesc<BUFFERSx64x64xf16, #n, #smem, mutable>
  %ring_b = ttg.local_alloc : () -> !ttg.memdesc<BUFFERSx64x64xf16, #n, #smem, mutable>
  %full = ttg.local_alloc : () -> !ttg.memdesc<STAGESx1xi64, #b, #smem, mutable>
  %empty = ttg.local_alloc : () -> !ttg.memdesc<STAGESx1xi64, #b, #smem, mutable>
  scf.for %i = %c0 to %stages step %c1 : i32 {
    %f = ttg.memdesc_index %full[%i] : !ttg.memdesc<STAGESx1xi64, #b, #smem, mutable> -> !ttg.memdesc<1xi64, #b, #smem, mutable>
    ttng.init_barrier %f, 1 : !ttg.memdesc<1xi64, #b, #smem, mutable>
    %e = ttg.memdesc_index %empty[%i] : !ttg.memdesc<STAGESx1xi64, #b, #smem, mutable> -> !ttg.memdesc<1xi64, #b, #smem, mutable>
    ttng.init_barrier %e, 1 : !ttg.memdesc<1xi64, #b, #smem, mutable>
  }
  %r = ttg.warp_specialize(%a, %b, %ring_a, %ring_b, %full, %empty, %k) attributes {requestedRegisters = array<i32: 40>}
  default {
    %sum:3 = scf.for %i = %c0 to %k step %c1 iter_args(%acc = %zero, %slot = %c0, %phase = %c0) -> (tensor<64x64xf32, #acc>, i32, i32) : i32 {
      %f = ttg.memdesc_index %full[%slot] : !ttg.memdesc<STAGESx1xi64, #b, #smem, mutable> -> !ttg.memdesc<1xi64, #b, #smem, mutable>
      %e = ttg.memdesc_index %empty[%slot] : !ttg.memdesc<STAGESx1xi64, #b, #smem, mutable> -> !ttg.memdesc<1xi64, #b, #smem, mutable>
      ttng.wait_barrier %f, %phase : !ttg.memdesc<1xi64, #b, #smem, mutable>
      %x = ttg.memdesc_index %ring_a[%slot] : !ttg.memdesc<BUFFERSx64x64xf16, #n, #smem, mutable> -> !ttg.memdesc<64x64xf16, #n, #smem, mutable>
      %y = ttg.memdesc_index %ring_b[%slot] : !ttg.memdesc<BUFFERSx64x64xf16, #n, #smem, mutable> -> !ttg.memdesc<64x64xf16, #n, #smem, mutable>
      %z = ttg.memdesc_trans %y {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #n, #smem, mutable> -> !ttg.memdesc<64x64xf16, #t, #smem, mutable>
      %p = ttng.warp_group_dot %x, %z, %acc {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xf16, #n, #smem, mutable> * !ttg.memdesc<64x64xf16, #t, #smem, mutable> -> tensor<64x64xf32, #acc>
      %q = ttng.warp_group_dot_wait %p {pendings = 0 : i32} : tensor<64x64xf32, #acc>
      ttng.arrive_barrier %e, 1 : !ttg.memdesc<1xi64, #b, #smem, mutable>
      %more = arith.addi %slot, %c1 : i32
      %wraps = arith.cmpi eq, %more, %stages : i32
      %next = arith.select %wraps, %c0, %more : i32
      %other = arith.xori %phase, %c1 : i32
      %turn = arith.select %wraps, %other, %phase : i32
      scf.yield %q, %next, %turn : tensor<64x64xf32, #acc>, i32, i32
    }
    ttg.warp_yield %sum#0 : tensor<64x64xf32, #acc>
  }
  partition0(%pa: !tt.tensordesc<tensor<64x64xf16>>, %pb: !tt.tensordesc<tensor<64x64xf16>>, %qa: !ttg.memdesc<BUFFERSx64x64xf16, #n, #smem, mutable>, %qb: !ttg.memdesc<BUFFERSx64x64xf16, #n, #smem, mutable>, %pf: !ttg.memdesc<STAGESx1xi64, #b, #smem, mutable>, %pe: !ttg.memdesc<STAGESx1xi64, #b, #smem, mutable>, %n: i32) num_warps(1) {
    %k0 = arith.constant 0 : i32
    %k1 = arith.constant 1 : i32
    %k64 = arith.constant 64 : i32
    %s = arith.constant STAGES : i32
    %yes = arith.constant true
    %r:2 = scf.for %i = %k0 to %n step %k1 iter_args(%slot = %k0, %phase = %k1) -> (i32, i32) : i32 {
      %f = ttg.memdesc_index %pf[%slot] : !ttg.memdesc<STAGESx1xi64, #b, #smem, mutable> -> !ttg.memdesc<1xi64, #b, #smem, mutable>
      %e = ttg.memdesc_index %pe[%slot] : !ttg.memdesc<STAGESx1xi64, #b, #smem, mutable> -> !ttg.memdesc<1xi64, #b, #smem, mutable>
      ttng.wait_barrier %e, %phase : !ttg.memdesc<1xi64, #b, #smem, mutable>
      ttng.barrier_expect %f, 16384, %yes : !ttg.memdesc<1xi64, #b, #smem, mutable>
      %column = arith.muli %i, %k64 : i32
      %x = ttg.memdesc_index %qa[%slot] : !ttg.memdesc<BUFFERSx64x64xf16, #n, #smem, mutable> -> !ttg.memdesc<64x64xf16, #n, #smem, mutable>
      ttng.async_tma_copy_global_to_local %pa[%k0, %column] %x, %f, %yes : !tt.tensordesc<tensor<64x64xf16>>, !ttg.memdesc<1xi64, #b, #smem, mutable> -> !ttg.memdesc<64x64xf16, #n, #smem, mutable>
      %y = ttg.memdesc_index %qb[%slot] : !ttg.memdesc<BUFFERSx64x64xf16, #n, #smem, mutable> -> !ttg.memdesc<64x64xf16, #n, #smem, mutable>
      ttng.async_tma_copy_global_to_local %pb[%k0, %column] %y, %f, %yes : !tt.tensordesc<tensor<64x64xf16>>, !ttg.memdesc<1xi64, #b, #smem, mutable> -> !ttg.memdesc<64x64xf16, #n, #smem, mutable>
      %more = arith.addi %slot, %k1 : i32
      %wraps = arith.cmpi eq, %more, %s : i32
      %next = arith.select %wraps, %k0, %more : i32
      %other = arith.xori %phase, %k1 : i32
      %turn = arith.select %wraps, %other, %phase : i32
      scf.yield %next, %turn : i32, i32
    }
    ttg.warp_return
  } : (!tt.tensordesc<tensor<64x64xf16>>, !tt.tensordesc<tensor<64x64xf16>>, !ttg.memdesc<BUFFERSx64x64xf16, #n, #smem, mutable>, !ttg.memdesc<BUFFERSx64x64xf16, #n, #smem, mutable>, !ttg.memdesc<STAGESx1xi64, #b, #smem, mutable>, !ttg.memdesc<STAGESx1xi64, #b, #smem, mutable>, i32) -> tensor<64x64xf32, #acc>
  %rows = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #acc}>>
  %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #acc}>> -> tensor<64x1xi32, #acc>
  %c64 = arith.constant dense<64> : tensor<64x1xi32, #acc>
  %start = arith.muli %row, %c64 : tensor<64x1xi32, #acc>
  %columns = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #acc}>>
  %column = tt.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #acc}>> -> tensor<1x64xi32, #acc>
  %u = tt.broadcast %start : tensor<64x1xi32, #acc> -> tensor<64x64xi32, #acc>
  %v = tt.broadcast %column : tensor<1x64xi32, #acc> -> tensor<64x64xi32, #acc>
  %o = arith.addi %u, %v : tensor<64x64xi32, #acc>
  %all = tt.splat %d : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #acc>
  %ptrs = tt.addptr %all, %o : tensor<64x64x!tt.ptr<f32>, #acc>, tensor<64x64xi32, #acc>
  tt.store %ptrs, %r : tensor<64x64x!tt.ptr<f32>, #acc>
  tt.return
}
}
"""

MEMORY = "!ttg.memdesc<1xi64, #b, #smem, mutable>"
# What is wrong, the old text and the new one.
MUTATIONS = [
    ("the consumer does not wait", "      ttng.wait_barrier %%f, %%phase : %s\n" % MEMORY, ""),
    ("the producer does not wait", "      ttng.wait_barrier %%e, %%phase : %s\n" % MEMORY, ""),
    ("the consumer does not arrive", "      ttng.arrive_barrier %%e, 1 : %s\n" % MEMORY, ""),
    ("the producer begins with parity 0", "%phase = %k1)", "%phase = %k0)"),
    ("the consumer begins with parity 1", "%slot = %c0, %phase = %c0)", "%slot = %c0, %phase = %c1)"),
    ("the consumer's parity stays", "scf.yield %q, %next, %turn :", "scf.yield %q, %next, %phase :"),
    ("the producer's parity stays", "scf.yield %next, %turn :", "scf.yield %next, %phase :"),
    ("too few bytes", "ttng.barrier_expect %f, 16384,", "ttng.barrier_expect %f, 8192,"),
    ("too many bytes", "ttng.barrier_expect %f, 16384,", "ttng.barrier_expect %f, 16400,"),
    ("too many arrivals", "ttng.arrive_barrier %e, 1 :", "ttng.arrive_barrier %e, 2 :"),
    ("the consumer arrives before its products are complete", "{pendings = 0 : i32}", "{pendings = 1 : i32}"),
    ("one phase expects two arrivals", "ttng.init_barrier %e, 1 :", "ttng.init_barrier %e, 2 :"),
    ("one buffer for all stages", "ttg.memdesc_index %qa[%slot]", "ttg.memdesc_index %qa[%k0]"),
    ("the consumer reads the next buffer", "ttg.memdesc_index %ring_b[%slot]", "ttg.memdesc_index %ring_b[%c0]"),
]
# Refused before anything runs.
REFUSED = [
    ("a value from outside", "%column = arith.muli %i, %k64 : i32", "%column = arith.muli %i, %c1 : i32"),
    ("an operand is missing", "(%a, %b, %ring_a, %ring_b, %full, %empty, %k) attr",
     "(%a, %b, %ring_a, %ring_b, %full, %empty) attr"),
    ("three warps", "num_warps(1)", "num_warps(3)"),
    ("too many registers", "num_warps(1)", "num_warps(16)", "array<i32: 40>", "array<i32: 128>"),
    ("no end of a partition", "    ttg.warp_return\n", ""),
    ("another result", "ttg.warp_yield %sum#0 : tensor<64x64xf32, #acc>", "ttg.warp_yield %sum#1 : i32"),
]


def change(text, pairs):
    for old, new in zip(pairs[::2], pairs[1::2]):
        assert old in text, old
        text = text.replace(old, new)
    return text


def product_text(stages):
    return PRODUCT.replace("STAGES", str(stages)).replace("BUFFERS", str(stages))


class Runner:
    def __init__(self, lilac, folder):
        self.lilac, self.folder = lilac, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, text):
        with open(self.path("kernel.ttgir"), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path("kernel.ttgir")

    def launch(self, text, arguments, output, expected, descr):
        """A finished run and why it fails, or None."""
        npy.write(self.path("expected.npy"), descr, expected)
        words = [word for name, value in arguments for word in ("--arg", "%s=%s" % (name, value))]
        done = command.run(self.lilac, "run", self.write(text), "--target", "sm_90a", "--verify", "--json", "--grid", 1,
                           *words, "--expect", "%s=%s,0" % (output, self.path("expected.npy")))
        if done.returncode != 0 or done.stderr:
            return "exit status %d\n%s" % (done.returncode, done.stderr)
        report = json.loads(done.stdout)
        return None if report["counters"]["races"] == 0 else "findings"

    def assemble(self, text):
        """Why ptxas does not accept the kernel, or None; True where there is no ptxas."""
        ptxas = shutil.which("ptxas")
        if ptxas is None:
            return True
        done = command.run(self.lilac, "compile", self.write(text), "--target", "sm_90a", "--emit", "ptx")
        if done.returncode != 0:
            return done.stderr
        with open(self.path("kernel.ptx"), "w", encoding="utf-8") as file:
            file.write(done.stdout)
        done = subprocess.run([ptxas, "-arch=sm_90a", "-v", self.path("kernel.ptx"), "-o", self.path("kernel.cubin")],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        good = done.returncode == 0 and "0 bytes spill stores" in done.stdout and "C75" not in done.stdout
        return None if good else done.stdout


def run_product(runner, text, iterations):
    source = random.Random(iterations)
    a, b = ([[float(source.randint(-2, 2)) for _ in range(64 * iterations)] for _ in range(64)] for _ in "ab")
    sums = [sum(x * y for x, y in zip(row, column)) for row in a for column in b]
    for name, matrix in (("a", a), ("b", b)):
        npy.write(runner.path(name + ".npy"), "f2", [x for row in matrix for x in row], (64, 64 * iterations))
    return runner.launch(text, [("a", "@" + runner.path("a.npy")), ("b", "@" + runner.path("b.npy")),
                                ("d", "empty:f32:64x64"), ("k", iterations)], "d", sums, "f4")


def refused(runner, text, words):
    """Why the compilation is not refused with these words, or None."""
    done = command.run(runner.lilac, "compile", runner.write(text), "--target", "sm_90a", "--emit", "ptx")
    return None if done.returncode == 1 and words in done.stderr and "internal" not in done.stderr else done.stderr


def run_captures(runner, text, n):
    x = [(7 * i + 3) % 1000 for i in range(512)]
    npy.write(runner.path("x.npy"), "i4", x)
    y = [v + 5 for v in x[64 * n:64 * n + 64]] + [3 * n, int(n > 2), 100 + n]
    return runner.launch(text, [("x", "@" + runner.path("x.npy")), ("y", "empty:i32:67"), ("n", n)], "y", y, "i4")


def run_reductions(runner, text):
    x = list(range(1024))
    npy.write(runner.path("x.npy"), "i4", x)
    return runner.launch(text, [("x", "@" + runner.path("x.npy")), ("y", "empty:i32:4")], "y",
                         [sum(x[256 * k:256 * k + 256]) for k in range(4)], "i4")


def main():
    arguments = command.parse_arguments(__doc__)
    failures, count = [], 0

    def note(name, why):
        nonlocal count
        count += 1
        if why:
            print("%s: %s" % (name, why))
            failures.append(name)

    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(arguments.lilac, folder)
        some = " attributes {requestedRegisters = array<i32: %s>}"
        for name, text, registers, run in (
                ("basic", BASIC, "24", lambda text: runner.launch(text, [("x", "empty:i32:2")], "x", [42, 5555], "i4")),
                ("reductions", reductions(), "40, 40, 24", lambda text: run_reductions(runner, text)),
                ("captures", CAPTURES, "40", lambda text: run_captures(runner, text, 5))):
            for label, attribute in (("", ""), (" with registers", some % registers)):
                note(name + label, run(text.replace("REGISTERS", attribute)))
                why = runner.assemble(text.replace("REGISTERS", attribute))
                note(name + label + ": ptxas", None if why is True else why)
        for n in (0, 2, 7):
            note("captures of %d" % n, run_captures(runner, CAPTURES.replace("REGISTERS", ""), n))
        for stages in (2, 3, 4):
            for iterations in (1, stages, 2 * stages + 1):
                note("product of %d stages, %d iterations" % (stages, iterations),
                     run_product(runner, product_text(stages), iterations))
        why = runner.assemble(product_text(4))
        note("product: ptxas", None if why is True else why)
        for mutation in MUTATIONS + [("a ring that is too small", "memdesc<3x64x64xf16", "memdesc<2x64x64xf16")]:
            note(mutation[0], None if run_product(runner, change(product_text(3), mutation[1:]), 8) else "not found")
        plain = BASIC.replace("REGISTERS", "")
        looped = change(plain, ["  gpu.barrier\n  ttg", "  %c0 = arith.constant 0 : i32\n  %n = arith.constant 3 : i32\n"
                                "  scf.for %i = %c0 to %c42 step %n : i32 {\n  ttg", "-> ()\n", "-> ()\n  }\n"])
        note("in a loop", refused(runner, looped, "inside a loop or a conditional"))
        note("in a cluster", refused(runner, 'module attributes {"ttg.num-ctas" = 2 : i32} {%s}' % plain,
                                     "partitions are lowered for one block"))
        for mutation in REFUSED:
            why = run_product(runner, change(product_text(3), mutation[1:]), 4)
            note(mutation[0], None if why and "exit status 1" in why and "internal" not in why else why or "accepted")
    command.finish(failures, count, "kernels with partitions")


main()
