"""What `lilac run` reports of a kernel: divisions by zero and races in global memory.

The parts (divisions, races) are separate so that a test runner can show them apart.
"""

import json
import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import npy  # noqa: E402

DONE, REFUSED = 0, 1

# %q = %a / %b of 128 elements, those from %n on masked off; `then` uses %q.
DIVIDE = """module {
  tt.func public @divide(%o: !tt.ptr<i32>, %x: !tt.ptr<i32>, %y: !tt.ptr<i32>, %n: i32) {
    %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %zeros = arith.constant dense<0> : tensor<128xi32>
    %ns = tt.splat %n : i32 -> tensor<128xi32>
    %m = arith.cmpi slt, %i, %ns : tensor<128xi32>
    %xs = tt.splat %x : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
    %xp = tt.addptr %xs, %i : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
    %a = tt.load %xp, %m : tensor<128x!tt.ptr<i32>>
    %ys = tt.splat %y : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
    %yp = tt.addptr %ys, %i : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
    %b = tt.load %yp, %m : tensor<128x!tt.ptr<i32>>
    %q = arith.OPERATION %a, %b : tensor<128xi32> loc(#division)
    %os = tt.splat %o : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
    %op = tt.addptr %os, %i : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
THEN
    tt.return
  }
}
#division = loc("kernel.py":8:4)
#use = loc("kernel.py":9:4)
"""
STORE = "    tt.store %op, %q, %m : tensor<128x!tt.ptr<i32>> loc(#use)"
SELECT = """    %divides = arith.cmpi ne, %b, %zeros : tensor<128xi32>
    %chosen = arith.select %divides, %q, %zeros : tensor<128xi1>, tensor<128xi32>
    tt.store %op, %chosen, %m : tensor<128x!tt.ptr<i32>> loc(#use)"""
SUM = """    %sum = "tt.reduce"(%q) <{axis = 0 : i32}> ({
    ^bb0(%p0: i32, %p1: i32):
      %p2 = arith.addi %p0, %p1 : i32
      tt.reduce.return %p2 : i32
    }) : (tensor<128xi32>) -> i32
    tt.store %o, %sum : !tt.ptr<i32> loc(#use)"""
INDEX = """    %at = tt.addptr %xs, %q : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
    %v = tt.load %at, %m : tensor<128x!tt.ptr<i32>> loc(#use)
    tt.store %op, %v, %m : tensor<128x!tt.ptr<i32>>"""
MASK = """    %big = arith.cmpi sgt, %q, %zeros : tensor<128xi32>
    tt.store %op, %a, %big : tensor<128x!tt.ptr<i32>> loc(#use)"""

# 32 elements in a block of 128 threads.
SMALL = """module {
  tt.func public @small(%o: !tt.ptr<i32>, %x: !tt.ptr<i32>, %y: !tt.ptr<i32>) {
    %i = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %xs = tt.splat %x : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
    %xp = tt.addptr %xs, %i : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
    %a = tt.load %xp : tensor<32x!tt.ptr<i32>>
    %ys = tt.splat %y : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
    %yp = tt.addptr %ys, %i : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
    %b = tt.load %yp : tensor<32x!tt.ptr<i32>>
    %q = arith.divsi %a, %b : tensor<32xi32>
    %os = tt.splat %o : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
    %op = tt.addptr %os, %i : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
    tt.store %op, %q : tensor<32x!tt.ptr<i32>>
    tt.return
  }
}
"""

# Remainders of all pairs: a column and a row, which most threads hold copies of.
OUTER = """module {
  tt.func public @outer(%o: !tt.ptr<i32>, %x: !tt.ptr<i32>, %y: !tt.ptr<i32>) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %xs = tt.splat %x : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
    %xp = tt.addptr %xs, %i : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
    %a = tt.load %xp : tensor<16x!tt.ptr<i32>>
    %ys = tt.splat %y : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
    %yp = tt.addptr %ys, %i : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
    %b = tt.load %yp : tensor<16x!tt.ptr<i32>>
    %a1 = tt.expand_dims %a {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %b1 = tt.expand_dims %b {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
    %a2 = tt.broadcast %a1 : tensor<16x1xi32> -> tensor<16x16xi32>
    %b2 = tt.broadcast %b1 : tensor<1x16xi32> -> tensor<16x16xi32>
    %r = arith.remsi %a2, %b2 : tensor<16x16xi32>
    %flat = tt.reshape %r : tensor<16x16xi32> -> tensor<256xi32>
    %j = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
    %os = tt.splat %o : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>
    %op = tt.addptr %os, %j : tensor<256x!tt.ptr<i32>>, tensor<256xi32>
    tt.store %op, %flat : tensor<256x!tt.ptr<i32>>
    tt.return
  }
}
"""

# A loop whose number of iterations is a quotient.
BOUND = """module {
  tt.func public @bound(%o: !tt.ptr<i32>, %x: !tt.ptr<i32>, %y: !tt.ptr<i32>) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = tt.load %x : !tt.ptr<i32>
    %b = tt.load %y : !tt.ptr<i32>
    %q = arith.divsi %a, %b : i32
    %s = scf.for %k = %zero to %q step %one iter_args(%c = %zero) -> (i32)  : i32 {
      %d = arith.addi %c, %k : i32
      scf.yield %d : i32
    }
    tt.store %o, %s : !tt.ptr<i32>
    tt.return
  }
}
"""

OPTIONS = None


class Findings(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def launch(self, text, buffers, *words, grid=1, status=DONE):
        """Runs a kernel on lists of whole numbers; the report as JSON and the finished process."""
        with open(self.path("k.ttir"), "w", encoding="utf-8") as file:
            file.write(text)
        given = []
        for name, values in buffers.items():
            npy.write(self.path(name + ".npy"), "i4", values)
            given += ["--arg", "%s=@%s.npy" % (name, name)]
        done = command.run(OPTIONS.lilac, "run", "k.ttir", "--grid", grid, "--json", "--save",
                           "o=after.npy", *given, *words, cwd=self.folder)
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(done.stdout), done

    def after(self):
        return npy.read(self.path("after.npy"))[0]


class Divisions(Findings):
    def divide(self, then, x, y, *words, operation="divsi", status=DONE):
        text = DIVIDE.replace("OPERATION", operation).replace("THEN", then)
        return self.launch(text, {"o": [0] * 128, "x": x, "y": y}, "--arg", "n=%d" % len(x), *words,
                           status=status)[1]

    def test_masked_off(self):
        x = list(range(100))
        for warps in (1, 2, 4, 8):
            done = self.divide(STORE, x, [3] * 100, "--num-warps", warps)
            self.assertEqual(done.stderr, "")
            self.assertEqual(self.after(), [v // 3 for v in x] + [0] * 28)

    def test_not_selected(self):
        x, y = list(range(128)), [k % 4 for k in range(128)]
        for operation, wanted in (("divsi", lambda a, b: a // b), ("remui", lambda a, b: a % b)):
            self.divide(SELECT, x, y, operation=operation)
            self.assertEqual(self.after(), [wanted(a, b) if b else 0 for a, b in zip(x, y)])

    def test_smaller_than_the_block(self):
        for warps in (1, 4, 8):
            self.launch(SMALL, {"o": [0] * 32, "x": list(range(32)), "y": [3] * 32}, "--num-warps",
                        warps)
            self.assertEqual(self.after(), [k // 3 for k in range(32)])

    def test_copies_of_rows_and_columns(self):
        for warps in (1, 4, 8, 16):
            self.launch(OUTER, {"o": [0] * 256, "x": list(range(16)), "y": list(range(1, 17))},
                        "--num-warps", warps)
            self.assertEqual(self.after(), [a % b for a in range(16) for b in range(1, 17)])

    def refused(self, done, text, lines):
        self.assertIn("[division-by-zero]", done.stderr)
        self.assertIn(text, done.stderr)
        for line in lines:
            self.assertIn("kernel.py:%d:4" % line, done.stderr)

    def test_reported(self):
        x, y = list(range(128)), [1] * 128
        y[77] = 0
        for then, text in ((STORE, "the stored value of st.global"), (SUM, "the stored value of"),
                           (INDEX, "the address of ld.global"), (MASK, "the predicate of st.global")):
            for warps in (1, 4):
                done = self.divide(then, x, y, "--num-warps", warps, status=REFUSED)
                self.refused(done, text, (8, 9))

    def test_loop_bound(self):
        self.launch(BOUND, {"o": [0], "x": [9], "y": [2]})
        self.assertEqual(self.after(), [6])
        done = self.launch(BOUND, {"o": [0], "x": [9], "y": [0]}, status=REFUSED)[1]
        self.refused(done, "div_s by zero reaches the upper bound of loop", ())


# Each block stores its number in one word; with VALUE, all store the same.
ONE_WORD = """module {
  tt.func public @one(%o: !tt.ptr<i32>) {
    %seven = arith.constant 7 : i32
    %pid = tt.get_program_id x : i32
    tt.store %o, VALUE : !tt.ptr<i32> loc(#use)
    tt.return
  }
}
#use = loc("kernel.py":9:4)
"""

# Stores 256 elements and loads them in reverse, with or without a barrier between.
REVERSE = """module {
  tt.func public @reverse(%o: !tt.ptr<i32>) {
    %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
    %last = arith.constant dense<255> : tensor<256xi32>
    %size = arith.constant dense<256> : tensor<256xi32>
    %os = tt.splat %o : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>
    %p = tt.addptr %os, %i : tensor<256x!tt.ptr<i32>>, tensor<256xi32>
    tt.store %p, %i : tensor<256x!tt.ptr<i32>> loc(#store)
BARRIER
    %j = arith.subi %last, %i : tensor<256xi32>
    %q = tt.addptr %os, %j : tensor<256x!tt.ptr<i32>>, tensor<256xi32>
    %v = tt.load %q : tensor<256x!tt.ptr<i32>> loc(#load)
    %k = arith.addi %i, %size : tensor<256xi32>
    %r = tt.addptr %os, %k : tensor<256x!tt.ptr<i32>>, tensor<256xi32>
    tt.store %r, %v : tensor<256x!tt.ptr<i32>>
    tt.return
  }
}
#store = loc("kernel.py":8:4)
#load = loc("kernel.py":9:4)
"""

# All blocks add one to 64 elements, one block after another: those that hold the lock.
LOCK = """module {
  tt.func public @lock(%o: !tt.ptr<i32>, %l: !tt.ptr<i32>) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %true = arith.constant true
    %ones = arith.constant dense<1> : tensor<64xi32>
    %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    scf.while : () -> () {
      %held = tt.atomic_cas ORDER, gpu, %l, %zero, %one : (!tt.ptr<i32>, i32, i32) -> i32
      %again = arith.cmpi eq, %held, %one : i32
      scf.condition(%again)
    } do {
      scf.yield
    }
    %os = tt.splat %o : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
    %p = tt.addptr %os, %i : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    %v = tt.load %p : tensor<64x!tt.ptr<i32>>
    %w = arith.addi %v, %ones : tensor<64xi32>
    tt.store %p, %w : tensor<64x!tt.ptr<i32>>
    gpu.barrier
    %old = tt.atomic_rmw exch, ORDER, gpu, %l, %zero, %true : (!tt.ptr<i32>, i32, i1) -> i32
    tt.return
  }
}
"""


class Races(Findings):
    def races(self, text, buffers, *words, grid=1, found=True):
        for warps in (1, 4):
            for threads in (1, 3):
                report, done = self.launch(text, buffers, "--num-warps", warps, "--threads", threads,
                                           *words, grid=grid)
                self.assertEqual(report["counters"]["races"] != 0, found, done.stderr)
                self.assertEqual(any(f["id"] == "global-race" for f in report["findings"]), found)
        return report, done

    def test_blocks_store_in_one_word(self):
        report, done = self.races(ONE_WORD.replace("VALUE", "%pid"), {"o": [0]}, grid=8)
        self.assertIn("kernel.py:9:4: warning: block (", done.stderr)
        self.assertIn("st.global writes element 0 of 'o', which st.global in block (", done.stderr)
        self.assertIn("kernel.py:9:4: note: st.global writes it here", done.stderr)
        self.assertEqual(len(report["findings"]), 1)
        self.assertEqual(report["findings"][0]["severity"], "warning")

    def test_equal_values(self):
        self.races(ONE_WORD.replace("VALUE", "%seven"), {"o": [0]}, grid=8, found=False)

    def test_one_block(self):
        self.races(ONE_WORD.replace("VALUE", "%pid"), {"o": [0]}, found=False)

    def test_barrier(self):
        text = REVERSE.replace("BARRIER", "")
        report, done = self.launch(text, {"o": [0] * 512}, "--num-warps", 4)
        self.assertGreater(report["counters"]["races"], 0)
        self.assertIn("kernel.py:9:4: warning: block (0, 0, 0), thread ", done.stderr)
        self.assertIn("kernel.py:8:4: note: st.global writes it here", done.stderr)
        self.races(REVERSE.replace("BARRIER", "    gpu.barrier"), {"o": [0] * 512}, found=False)

    def test_lock(self):
        buffers = {"o": [0] * 64, "l": [0]}
        self.races(LOCK.replace("ORDER", "acq_rel"), buffers, grid=6, found=False)
        self.assertEqual(self.after(), [6] * 64)
        self.races(LOCK.replace("ORDER", "relaxed"), buffers, grid=6)

    def test_help_says_what_is_covered(self):
        done = command.run(OPTIONS.lilac, "run", "--help")
        for word in ("global buffers that the kernel writes", "volatile", "equal values",
                     "division by zero"):
            self.assertIn(word, done.stdout)


def main():
    global OPTIONS
    OPTIONS = command.parse_arguments(__doc__)
    parts = {"divisions": Divisions, "races": Races}
    suite = unittest.TestSuite()
    for name in OPTIONS.names or parts:
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(parts[name]))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)


if __name__ == "__main__":
    main()
