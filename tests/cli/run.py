"""run in use: loops that do not end, blocks that wait for each other, limits, the summary, progress, and
pointers among the arguments, on the simulator and on a CUDA driver that has no GPU.

usage: run.py --lilac LILAC --data DATA FAKE_DRIVER
"""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import unittest

import cli
from cli import CHECK, DONE, REFUSED, TWICE, USAGE, command, npy

FAKE = None

# The loop is on line 4.
ENDLESS = """module {
  tt.func public @k(%p: !tt.ptr<i32>) {
    %true = arith.constant true
    scf.while : () -> () {
      scf.condition(%true)
    } do {
      scf.yield
    } loc("endless.py":7:5)
    tt.return
  }
}
"""

# The last block sets the flag, the others wait for it; the loop is on line 8.
WAIT = """module {
  tt.func public @k(%flag: !tt.ptr<i32>, %last: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %pid = tt.get_program_id x : i32
    %waits = arith.cmpi ne, %pid, %last : i32
    scf.if %waits {
      scf.while : () -> () {
        %v = tt.load %flag {isVolatile = true} : !tt.ptr<i32>
        %c = arith.cmpi eq, %v, %c0 : i32
        scf.condition(%c)
      } do {
        scf.yield
      } loc("wait.py":9:3)
    } else {
      tt.store %flag, %c1 : !tt.ptr<i32>
    }
    tt.return
  }
}
"""

# The 8 × 16 elements from row y, column x on.
TILE = """module {
  tt.func public @tile(%d: !tt.tensordesc<tensor<8x16xi32>>, %o: !tt.ptr<i32>, %y: i32, %x: i32) {
    %v = tt.descriptor_load %d[%y, %x] : !tt.tensordesc<tensor<8x16xi32>> -> tensor<8x16xi32>
    %flat = tt.reshape %v : tensor<8x16xi32> -> tensor<128xi32>
    %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %0 = tt.splat %o : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
    %1 = tt.addptr %0, %i : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
    tt.store %1, %flat : tensor<128x!tt.ptr<i32>>
    tt.return
  }
}
"""

# Sums of rows, by a product with ones.
SUMS = """module {
  tt.func public @sums(%x: !tt.ptr<f16>, %o: !tt.ptr<f32>, %m: i32, %k: i32, %pitch: i64,
                       %d: !tt.tensordesc<tensor<64x32xf16>>)
      attributes {lilac.launch_conditions = array<i64: 8, 1, 1, 2, 3>} {
    %zero = arith.constant dense<0.0> : tensor<64x16xf32>
    %ones = arith.constant dense<1.0> : tensor<32x16xf16>
    %c0 = arith.constant 0 : i32
    %step = arith.constant 32 : i32
    %sums = scf.for %i = %c0 to %k step %step iter_args(%c = %zero) -> (tensor<64x16xf32>)  : i32 {
      %v = tt.descriptor_load %d[%c0, %i] : !tt.tensordesc<tensor<64x32xf16>> -> tensor<64x32xf16>
      %s = tt.dot %v, %ones, %c : tensor<64x32xf16> * tensor<32x16xf16> -> tensor<64x16xf32>
      scf.yield %s : tensor<64x16xf32>
    }
    %flat = tt.reshape %sums : tensor<64x16xf32> -> tensor<1024xf32>
    %i = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %p = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %q = tt.addptr %p, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    tt.store %q, %flat : tensor<1024x!tt.ptr<f32>>
    tt.return
  }
}
"""

# Block 0 waits for block 1, whose data it triples.
PRODUCER_CONSUMER = """module {
  tt.func public @pc(%flag: !tt.ptr<i32>, %data: !tt.ptr<i32>, %o: !tt.ptr<i32>) {
    %c1_i32 = arith.constant 1 : i32
    %cst = arith.constant dense<100> : tensor<64xi32>
    %cst_0 = arith.constant dense<3> : tensor<64xi32>
    %true = arith.constant true
    %c0_i32 = arith.constant 0 : i32
    %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %0 = tt.get_program_id x : i32
    %1 = arith.cmpi eq, %0, %c0_i32 : i32
    %2 = tt.splat %data : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
    %3 = tt.addptr %2, %i : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    scf.if %1 {
      scf.while : () -> () {
        %8 = tt.atomic_rmw add, acquire, gpu, %flag, %c0_i32, %true : (!tt.ptr<i32>, i32, i1) -> i32
        %9 = arith.cmpi eq, %8, %c0_i32 : i32
        scf.condition(%9)
      } do {
        scf.yield
      }
      %4 = tt.splat %o : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %5 = tt.addptr %4, %i : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %6 = tt.load %3 : tensor<64x!tt.ptr<i32>>
      %7 = arith.muli %6, %cst_0 : tensor<64xi32>
      tt.store %5, %7 : tensor<64x!tt.ptr<i32>>
    } else {
      %4 = arith.addi %i, %cst : tensor<64xi32>
      tt.store %3, %4 : tensor<64x!tt.ptr<i32>>
      gpu.barrier
      %5 = tt.atomic_rmw exch, release, gpu, %flag, %c1_i32, %true : (!tt.ptr<i32>, i32, i1) -> i32
    }
    tt.return
  }
}
"""

# Counts for longer than anybody waits.
LONG = """module {
  tt.func public @k(%p: !tt.ptr<i32>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %n = arith.constant 2147483647 : i32
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0) -> (i32) : i32 {
      %b = arith.muli %a, %i : i32
      %c = arith.addi %b, %i : i32
      scf.yield %c : i32
    }
    tt.store %p, %s : !tt.ptr<i32>
    tt.return
  }
}
"""

# o[pid] = *ptrs[pid], the addresses being integers or pointers.
GATHER = """module {
  tt.func public @gather(%%ptrs: !tt.ptr<%(type)s>, %%o: !tt.ptr<f32>) {
    %%pid = tt.get_program_id x : i32
    %%pp = tt.addptr %%ptrs, %%pid : !tt.ptr<%(type)s>, i32
    %(load)s
    %%v = tt.load %%p : !tt.ptr<f32>
    %%q = tt.addptr %%o, %%pid : !tt.ptr<f32>, i32
    tt.store %%q, %%v : !tt.ptr<f32>
    tt.return
  }
}
"""
INTEGERS = GATHER % {"type": "i64", "load": "%a = tt.load %pp : !tt.ptr<i64>\n"
                     "    %p = tt.int_to_ptr %a : i64 -> !tt.ptr<f32>"}
POINTERS = GATHER % {"type": "!tt.ptr<f32>", "load": "%p = tt.load %pp : !tt.ptr<!tt.ptr<f32>>"}


class RunTest(cli.TwiceTest):
    def run_text(self, text, *words, status=DONE, grid=1, **options):
        self.file = self.write("kernel.ttir", text)
        return self.lilac("run", self.file, "--grid", grid, *words, status=status, **options)


class Loops(RunTest):
    def test_endless_loop(self):
        for threads in (1, 2):
            done = self.run_text(ENDLESS, "--arg", "p=zeros:i32:1", "--threads", threads, grid=3,
                                 status=REFUSED, timeout=8)
            self.assertRegex(done.stderr, r"endless\.py:7:5: error: block \(0, 0, 0\): this loop "
                                          r"does not end.* \[endless-loop\]")
            self.assertIn("note: 3 blocks have begun and not ended", done.stderr)
            self.assertIn("--limit N", done.stderr)

    def test_nobody_sets_the_flag(self):
        done = self.run_text(WAIT, "--arg", "flag=zeros:i32:1", "--arg", "last=9", "--json", grid=4,
                             status=REFUSED, timeout=8)
        self.assertEqual(done.stdout, "null\n")
        self.assertRegex(done.stderr, r"wait\.py:9:3: error: .* \[endless-loop\]")

    def test_blocks_that_wait(self):
        for threads in (1, 2):
            self.run_text(WAIT, "--arg", "flag=zeros:i32:1", "--arg", "last=39", "--threads",
                          threads, grid=40, timeout=8)

    def test_producer_and_consumer(self):
        for words in (["--threads", 1], ["--threads", 2], ["--threads", 1, "--limit", 100000]):
            self.run_text(PRODUCER_CONSUMER, "--arg", "flag=zeros:i32:1", "--arg",
                          "data=zeros:i32:64", "--arg", "o=zeros:i32:64", "--save", "o=o.npy",
                          *words, grid=2, timeout=8)
            self.assertEqual(npy.read(self.path("o.npy"))[0], [3 * (100 + i) for i in range(64)])

    def test_limit(self):
        for limit in (1, 1000, 1003, 5000000000):
            words = ["--arg", "p=zeros:i32:1", "--limit", limit, "--num-warps", 1]
            if limit < 10000:
                done = self.run_text(ENDLESS, *words, status=REFUSED)
                self.assertRegex(done.stderr, r"endless\.py:7:5: error: block \(0, 0, 0\): this loop "
                                 r"still runs .* limit of %d instructions \[instruction-limit\]" % limit)
            else:  # more than 32 bits
                self.run_text(TWICE, *words[2:], "--arg", "x=@x.npy", "--arg", "o=zeros:f32:100",
                              "--arg", "n=100")

    def test_limit_counts_instructions(self):
        words = ["--arg", "x=@x.npy", "--arg", "o=zeros:f32:100", "--arg", "n=100"]
        report = json.loads(self.run_text(TWICE, *words, "--json").stdout)
        count = report["counters"]["instructions"]
        self.run_text(TWICE, *words, "--limit", count)
        done = self.run_text(TWICE, *words, "--limit", count - 1, status=REFUSED)
        self.assertIn("limit of %d instructions [instruction-limit]" % (count - 1), done.stderr)
        self.assertIn("takes a number", self.run_text(TWICE, *words, "--limit", "1e6",
                                                      status=USAGE).stderr)

    def test_progress_on_a_terminal(self):
        file = self.write("long.ttir", LONG)
        master, slave = pty.openpty()
        process = subprocess.Popen([cli.OPTIONS.lilac, "run", file, "--grid", "7", "--arg",
                                    "p=zeros:i32:1"], stderr=slave, stdout=subprocess.DEVNULL)
        os.close(slave)
        shown = b""
        try:
            while b"ended after 1 s" not in shown:
                part = os.read(master, 1000)
                if not part:
                    break
                shown += part
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            os.close(master)
        self.assertIn(b"\r\x1b[Klilac: 0 of 7 blocks have ended after 1 s", shown)
        self.assertNotIn(b"\n", shown)


class Summary(RunTest):
    WORDS = ["--arg", "o=zeros:f32:100", "--arg", "n=100"]

    def test_findings_first_and_no_zeros(self):
        done = self.run_text(TWICE, *self.WORDS, "--arg", "x=empty:f32:100")
        lines = done.stdout.splitlines()
        self.assertRegex(lines[1], r"^uninitialised reads +[1-9]\d*$")
        self.assertRegex(lines[2], r"^blocks +1$")
        for line in lines[1:]:
            self.assertNotRegex(line, r" 0$")
        done = self.run_text(TWICE, *self.WORDS, "--arg", "x=@x.npy")
        self.assertNotIn("uninitialised", done.stdout)
        self.assertNotIn("races", done.stdout)

    def test_all_counters(self):
        done = self.run_text(TWICE, *self.WORDS, "--arg", "x=@x.npy", "--counters")
        report = json.loads(self.run_text(TWICE, *self.WORDS, "--arg", "x=@x.npy", "--json").stdout)
        shown = dict(re.findall(r"(?m)^([a-z ]+?) +(\d+)$", done.stdout))
        for name, value in report["counters"].items():
            if name != "access_bits":
                self.assertEqual(int(shown[name.replace("_", " ")]), value, name)
        self.assertTrue(done.stdout.splitlines()[1].startswith("races "))


class SimtText(RunTest):
    """The text that compile --emit simt prints runs as the kernel does, and so does one written by hand."""
    WORDS = ["--arg", "x=@x.npy", "--arg", "n=100", "--json"]

    def setUp(self):
        super().setUp()
        ttir = self.write("twice.ttir", TWICE)
        self.simt = self.lilac("compile", ttir, "--emit", "simt", "--num-warps", 2).stdout

    def run_simt(self, *words, status=DONE, text=None, **options):
        self.file = self.write("twice.simt", text or self.simt)
        return self.lilac("run", self.file, "--grid", 1, *words, status=status, **options)

    def test_same_launch(self):
        compiled = self.run_text(TWICE, *self.WORDS, "--num-warps", 2, "--arg", "o=zeros:f32:100",
                                 "--save", "o=o1.npy")
        simt = self.run_simt(*self.WORDS, "--arg", "o=zeros:f32:100", "--save", "o=o2.npy")
        self.assertEqual(json.loads(simt.stdout), json.loads(compiled.stdout))
        self.assertEqual(npy.read(self.path("o2.npy"))[0], [2 * value for value in self.values])
        self.assertEqual(npy.read(self.path("o2.npy")), npy.read(self.path("o1.npy")))

    def test_no_pass_runs(self):
        twice = re.sub(r"(?m)^( *)(%\S+) = (fadd .*)$", r"\1\2 = \3\n\1%unused = \3", self.simt, count=1)
        counters = [json.loads(self.run_simt(*self.WORDS, "--arg", "o=zeros:f32:100", text=text).stdout)["counters"]
                    for text in (self.simt, twice)]
        self.assertGreater(counters[1]["instructions"], counters[0]["instructions"])

    def test_arguments(self):
        done = self.run_simt(*self.WORDS, status=REFUSED)
        self.assertLocated(done, self.file, "missing-argument", 2,
                           "parameter 'o' of type i64 ptr has no value")
        done = self.run_simt(*self.WORDS, "--arg", "o=zeros:f32:100", "--arg", "z=1", status=REFUSED)
        self.assertIn("kernel 'twice' has no parameter 'z'", done.stderr)
        done = self.run_simt(*self.WORDS[:2], "--arg", "o=same:x+1", "--arg", "n=1", status=REFUSED)
        self.assertIn("[argument-not-divisible]", done.stderr)
        done = self.run_simt(*self.WORDS[:2], "--arg", "o=null", "--arg", "n=x", status=REFUSED)
        self.assertIn("note: parameter 'n' has type i32", done.stderr)

    def test_headers(self):
        words = self.WORDS + ["--arg", "o=zeros:f32:100"]
        done = self.run_simt(*words, "--num-warps", 4, status=REFUSED)
        self.assertIn("the kernel's header says warps 2, the options say 4 [invalid-target]", done.stderr)
        self.run_simt(*words, "--num-warps", 2, "--kernel", "twice")
        done = self.run_simt(*words, "--kernel", "thrice", status=REFUSED)
        self.assertIn("this module has no kernel 'thrice'", done.stderr)
        self.assertIn("note: kernel 'twice' is here", done.stderr)
        start = self.simt.index("  kernel @")
        end = self.simt.rindex("}")
        both = self.simt[:end] + self.simt[start:end].replace("@twice", "@thrice") + "}\n"
        self.assertIn("choose one with --kernel", self.run_simt(*words, text=both, status=REFUSED).stderr)
        self.run_simt(*words, "--kernel", "thrice", text=both)
        broken = self.simt.replace(" = thread : i32", " = thread : i64", 1)
        self.assertIn("[simt-", self.run_simt(*words, text=broken, status=REFUSED).stderr)


class Pointers(RunTest):
    def gather(self, pointers, *words, status=DONE, grid=3, text=INTEGERS):
        return self.run_text(text, "--arg", "ptrs=%s" % pointers, *words, status=status, grid=grid)

    def twice(self, *words, status=DONE, n=50):
        done = self.run_text(TWICE, "--arg", "n=%d" % n, *words, status=status)
        return done

    def assertMisused(self, done, source, column, words):
        found = self.assertLocated(done, source, "argument-pointer", 1, words)
        self.assertEqual(int(found.group(2)), column, done.stderr)

    def test_null(self):
        self.twice("--arg", "x=null", "--arg", "o=null", n=0)
        done = self.twice("--arg", "x=null", "--arg", "o=zeros:f32:100", status=REFUSED)
        self.assertRegex(done.stderr, r"error: .*ld\.global of \d+ bytes through a null pointer "
                                      r"\[null-pointer\]")
        self.assertIn("note: parameter 'x' is null", done.stderr)
        self.assertNotIn("'o' is null", done.stderr)
        done = self.twice("--arg", "x=@x.npy", "--arg", "o=null", status=REFUSED)
        self.assertRegex(done.stderr, r"st\.global of \d+ bytes through a null pointer")

    def test_one_buffer_for_two(self):
        self.twice("--arg", "o=same:x", "--arg", "x=@x.npy", "--save", "o=o.npy", "--save", "x=x2.npy")
        wanted = [2 * value for value in self.values[:50]] + self.values[50:]
        for name in ("o.npy", "x2.npy"):
            self.assertEqual(npy.read(self.path(name))[0], wanted)
        self.assertEqual(npy.read(self.path("o.npy"))[2], npy.read(self.path("x.npy"))[2])

    def test_into_a_buffer(self):
        for offset in ("+32", "+128B"):
            self.twice("--arg", "x=@x.npy", "--arg", "o=same:x" + offset, "--save", "o=o.npy",
                       "--save", "x=x2.npy", n=8)
            wanted = list(self.values)
            wanted[32:40] = [2 * value for value in self.values[:8]]
            self.assertEqual(npy.read(self.path("x2.npy"))[0], wanted)
            values, _, shape = npy.read(self.path("o.npy"))
            self.assertEqual((values, shape), (wanted[32:], (68,)))
        npy.write(self.path("tail.npy"), "f4", wanted[32:])
        self.twice("--arg", "x=@x.npy", "--arg", "o=same:x+32", "--expect", "o=tail.npy", n=8)
        self.twice("--arg", "x=@x.npy", "--arg", "o=same:x+32", "--expect", "o=tail.npy", n=9,
                   status=CHECK)

    def test_through_another(self):
        self.run_text(TWICE.replace("%n: i32", "%n: i32, %y: !tt.ptr<f32>"), "--arg", "n=4",
                      "--arg", "o=same:y+16", "--arg", "y=same:x+16", "--arg", "x=@x.npy",
                      "--save", "x=x2.npy")
        self.assertEqual(npy.read(self.path("x2.npy"))[0][32:36],
                         [2 * value for value in self.values[:4]])

    def test_unwritten_parts_are_shared(self):
        done = self.twice("--arg", "x=same:o+64", "--arg", "o=empty:f32:128", n=4)
        self.assertIn("reads 'o' + 256, which nothing has written", done.stderr)

    def test_pointers_in_a_buffer(self):
        for text in (INTEGERS, POINTERS):
            self.gather("pointers:x,x+3,y+8B", "--buffer", "x=@x.npy", "--buffer",
                        "y=random:f32:2x2", "--arg", "o=empty:f32:4", "--save", "o=o.npy", "--save",
                        "y=y.npy", text=text)
            y, _, shape = npy.read(self.path("y.npy"))
            self.assertEqual(shape, (2, 2))
            self.assertEqual(npy.read(self.path("o.npy"))[0][:3],
                             [self.values[0], self.values[3], y[2]])

    def test_buffers_are_written_through_pointers(self):
        self.gather("pointers:o,x", "--buffer", "x=@x.npy", "--arg", "o=same:x+1",
                    "--save", "x=x2.npy", grid=2)
        self.assertEqual(npy.read(self.path("x2.npy"))[0][1:3], [self.values[1], self.values[0]])

    def test_null_in_a_buffer(self):
        done = self.gather("pointers:o,null,o", "--arg", "o=zeros:f32:4", status=REFUSED)
        self.assertRegex(done.stderr, r"block \(1, 0, 0\).* through a null pointer \[null-pointer\]")

    def test_wrong_pointers(self):
        o = ["--arg", "o=zeros:f32:4"]
        for value, column, words in [
                ("pointers:o,z", 17, "no parameter or buffer 'z'"),
                ("pointers:", 15, "no parameter or buffer ''"),
                ("pointers:o,o+4,o+5", 23, "20 bytes into 'o' is beyond its end"),
                ("same:o+17B", 13, "17 bytes into 'o' is beyond its end"),
                ("same:o+2x", 13, "'2x' is no offset"),
                ("same:o+", 13, "'' is no offset"),
                ("same:o+99999999999999999999", 13, "is no offset"),
                ("same:ptrs", 11, "'ptrs' points to itself"),
        ]:
            done = self.gather(value, *o, "--json", status=USAGE)
            self.assertEqual(done.stdout, "null\n")
            self.assertMisused(done, "<argument 1>", column, words)
        done = self.gather("same:o", "--arg", "o=same:ptrs", status=USAGE)
        self.assertEqual(done.stderr.count("points to itself"), 1)
        done = self.gather("null", "--arg", "o=same:ptrs+1", status=USAGE)
        self.assertMisused(done, "<argument 2>", 13, "'ptrs' is null")
        done = self.twice("--arg", "x=same:n", "--arg", "o=null", status=USAGE)
        self.assertMisused(done, "<argument 2>", 8, "'n' is no pointer")

    def test_wrong_values(self):
        done = self.twice("--arg", "x=pointers:o", "--arg", "o=zeros:f32:4", status=REFUSED)
        self.assertLocated(done, "<argument 2>", "argument-type", 1, "must point to i64 or to pointers")
        done = self.twice("--arg", "x=@x.npy", "--arg", "o=same:x+1", status=REFUSED)
        self.assertLocated(done, "<argument 3>", "argument-not-divisible", 1, "4 bytes into a buffer")
        self.file = self.write("kernel.ttir", TWICE)
        done = self.lilac("run", self.file, "--grid", 1, "--arg", "n=null", "--arg", "x=null", "--arg",
                          "o=null", status=REFUSED)
        self.assertLocated(done, "<argument 1>", "argument-type", 1, "a number is needed here")
        for value, words in [("b=null", "takes what has contents"), ("b=same:x", "takes what has"),
                             ("x=zeros:f32:4", "'x' is a parameter"), ("null=zeros:f32:4", "cannot"),
                             ("b=zeros:q:4", "does not name an element type"),
                             ("b=@none.npy", "cannot be read")]:
            done = self.twice("--arg", "x=null", "--arg", "o=null", "--buffer", value,
                              status=REFUSED)
            self.assertIn(words, done.stderr)
        done = self.twice("--arg", "x=null", "--arg", "o=null", "--buffer", "b=zeros:i8:4",
                          "--buffer", "b=zeros:i8:4", status=REFUSED)
        self.assertLocated(done, "<buffer 2>", "duplicate-argument", 1, "a buffer 'b' already")
        self.assertIn("--buffer takes NAME=VALUE", self.twice("--buffer", "b", status=USAGE).stderr)

    def test_what_cannot_be_kept(self):
        for option in ("--save", "--expect"):
            done = self.twice("--arg", "x=null", "--arg", "o=zeros:f32:4", option, "x=y.npy", n=0,
                              status=REFUSED)
            self.assertIn("has no buffer 'x': it is null", done.stderr)
            done = self.gather("pointers:o", "--arg", "o=zeros:f32:4", option, "ptrs=y.npy", grid=1,
                               status=REFUSED)
            self.assertIn("it holds pointers", done.stderr)


class Descriptors(RunTest):
    """Arguments that are tensor descriptors."""

    def tile(self, d, *words, status=DONE):
        return self.run_text(TILE, "--arg", "d=" + d, "--arg", "o=zeros:i32:8x16", "--arg", "y=6", "--arg", "x=-4",
                             *words, "--save", "o=o.npy", status=status)

    def saved(self):
        return npy.read(self.path("o.npy"))[0]

    def test_shape_of_a_buffer(self):
        npy.write(self.path("d.npy"), "i4", list(range(200)), (10, 20))
        self.tile("@d.npy")
        wanted = [20 * (6 + i) + j - 4 if i < 4 and j >= 4 else 0 for i in range(8) for j in range(16)]
        self.assertEqual(self.saved(), wanted)

    def test_parts_by_name(self):
        npy.write(self.path("d.npy"), "i4", list(range(200)), (10, 20))
        self.tile("@d.npy", "--arg", "d_shape0=7", "--arg", "d_shape1=10")
        wanted = [20 * 6 + j - 4 if i == 0 and 4 <= j < 14 else 0 for i in range(8) for j in range(16)]
        self.assertEqual(self.saved(), wanted)

    def test_buffers_that_are_no_tensor(self):
        done = self.tile("zeros:i32:200", status=REFUSED)
        self.assertLocated(done, self.file, "argument-type", 2, "is a descriptor of 2 dimensions")
        done = self.tile("zeros:i32:10x21", status=REFUSED)
        self.assertLocated(done, self.file, "argument-not-divisible", 2, "rows of 21 elements")
        done = self.tile("null", status=REFUSED)
        self.assertLocated(done, self.file, "argument-type", 2, "give a buffer")

    def test_metadata(self):
        self.write("kernel.ttir", TILE)
        done = self.lilac("compile", "kernel.ttir", "--emit", "json")
        parameters = json.loads(done.stdout)["parameters"]
        self.assertEqual([row["name"] for row in parameters],
                         ["d", "d_shape0", "d_shape1", "d_stride0", "d_stride1", "d_nan", "o", "y", "x"])
        self.assertEqual([row.get("descriptor") for row in parameters[:2]],
                         ["!tt.tensordesc<tensor<8x16xi32>>", None])


class LaunchMaps(RunTest):
    """Tensor maps that the launcher makes: the module has passed the passes on tile IR, behind which the parameter
    of a descriptor is a tensor map, and an attribute says how it is made."""

    RECIPE = ("{lilac.launch_map = {base = 0 : i32, offset = [array<i64: 8>], sizes = [[array<i64: 1, 2>], "
              "[array<i64: 1, 3>]], strides = [[array<i64: 1, 4>]]}}")

    def sums(self, *words, status=DONE, grid=1):
        """o = Σ of m rows of x, k elements each from element 8 on, `pitch` elements apart: a product with ones."""
        self.write("sums.ttir", SUMS)
        text = self.lilac("compile", "sums.ttir", "--emit", "ttgir").stdout
        parameter = "%d: !tt.tensordesc<tensor<64x32xf16>>"
        self.assertEqual(text.count(parameter + " loc"), 1)
        return self.run_text(text.replace(parameter, f"{parameter} {self.RECIPE}"), "--arg", "x=@x.npy", "--arg",
                             "o=zeros:f32:64x16", *words, "--save", "o=o.npy", status=status, grid=grid)

    def setUp(self):
        super().setUp()
        npy.write(self.path("x.npy"), "f2", [i % 7 for i in range(60 * 48)], (60, 48))

    def test_made_from_the_other_arguments(self):
        self.sums("--arg", "m=50", "--arg", "k=36", "--arg", "pitch=48")
        wanted = [sum((48 * i + 8 + j) % 7 for j in range(36)) if i < 50 else 0 for i in range(64) for _ in range(16)]
        self.assertEqual(npy.read(self.path("o.npy"))[0], wanted)

    def test_conditions(self):
        good = {"m": 50, "k": 36, "pitch": 48}
        for change, id, words in [
                ({"m": -1}, "launch-condition", "parameter 2, 'm', is -1"),
                ({"k": (1 << 30) + 1}, "launch-condition", "parameter 3, 'k', is 1073741825"),
                ({"m": 0}, "tensor-map", "tensor map 'd': dimension 1 has 0 elements"),
                ({"pitch": 44}, "tensor-map", "the stride of dimension 1 is 88 bytes"),
                ({"pitch": -48}, "tensor-map", "the stride is negative")]:
            with self.subTest(change=change):
                values = [word for name, value in {**good, **change}.items() for word in ("--arg", f"{name}={value}")]
                done = self.sums(*values, status=REFUSED)
                self.assertIn(words, done.stderr)
                self.assertIn(f"[{id}]", done.stderr)
        done = self.sums("--arg", "m=1", "--arg", "k=1", "--arg", "pitch=48", grid=9, status=REFUSED)
        self.assertIn("the grid is 9 along x", done.stderr)

    def test_no_argument(self):
        done = self.sums("--arg", "m=1", "--arg", "k=1", "--arg", "pitch=48", "--arg", "d=same:x", status=REFUSED)
        self.assertIn("'d' is a tensor map that the launcher makes from the other arguments", done.stderr)

    def test_malformed(self):
        self.RECIPE = self.RECIPE.replace("base = 0", "base = 2")
        done = self.sums("--arg", "m=1", "--arg", "k=1", "--arg", "pitch=48", status=REFUSED)
        self.assertIn("[launch-map]", done.stderr)


class OnGpu(RunTest):
    """The same on the fake driver, whose kernels `twice` and `gather` compute."""

    def on_gpu(self, text, *words, status=DONE):
        environment = {key: os.environ[key] for key in ("PATH", "HOME", "ASAN_OPTIONS", "LSAN_OPTIONS",
                                                        "UBSAN_OPTIONS") if key in os.environ}
        environment.update(LILAC_LIBCUDA=FAKE, LILAC_PTXAS=self.path("no-ptxas"),
                           FAKE_CUDA_LOG=self.path("log"))
        done = self.run_text(text, "--device", "cuda", *words, status=status, env=environment, grid=3)
        if os.path.exists(self.path("log")):
            with open(self.path("log"), encoding="utf-8") as file:
                self.calls = file.read()
        return done

    def test_same(self):
        self.on_gpu(TWICE, "--arg", "x=@x.npy", "--arg", "o=same:x+32", "--arg", "n=8", "--save",
                    "x=x2.npy", "--save", "o=o.npy")
        wanted = list(self.values)
        wanted[32:40] = [2 * value for value in self.values[:8]]
        self.assertEqual(npy.read(self.path("x2.npy"))[0], wanted)
        self.assertEqual(npy.read(self.path("o.npy"))[0], wanted[32:])
        self.assertEqual(len(re.findall(r"(?m)^cuMemAlloc", self.calls)), 1, self.calls)

    def test_null(self):
        self.on_gpu(TWICE, "--arg", "x=null", "--arg", "o=null", "--arg", "n=0")
        self.assertRegex(self.calls, r"\(0{16}, 0{16}, 0{8}, ")

    def test_pointers(self):
        self.on_gpu(POINTERS, "--arg", "ptrs=pointers:x,x+3,y+8B", "--buffer", "x=@x.npy", "--buffer",
                    "y=random:f32:2x2", "--arg", "o=zeros:f32:3", "--save", "o=o.npy", "--save",
                    "y=y.npy")
        y = npy.read(self.path("y.npy"))[0]
        self.assertEqual(npy.read(self.path("o.npy"))[0], [self.values[0], self.values[3], y[2]])

    def test_misuse(self):
        done = self.on_gpu(TWICE, "--arg", "x=same:z", "--arg", "o=null", "--arg", "n=0", status=USAGE)
        self.assertIn("no parameter or buffer 'z'", done.stderr)
        self.assertIn("are the simulator's", self.on_gpu(TWICE, "--counters", status=USAGE).stderr)


def main():
    global FAKE
    cli.OPTIONS = command.parse_arguments(__doc__)
    FAKE = os.path.abspath(cli.OPTIONS.names[0])
    unittest.main(argv=sys.argv[:1], verbosity=2)


if __name__ == "__main__":
    main()
