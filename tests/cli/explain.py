"""lilac explain: text, JSON, changes, diagnostics."""

import glob
import json
import os
import re
import shutil
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import two_loops  # noqa: E402

DONE, REFUSED, USAGE = 0, 1, 2
OPTIONS = None
ONE = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [8], order = [0]}>"


class ExplainTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def lilac(self, *words, status=DONE, **options):
        done = command.run(OPTIONS.lilac, "explain", *words, cwd=self.folder, **options)
        self.assertEqual(done.returncode, status, "%s\n%s%s" % (words, done.stdout, done.stderr))
        return done

    def kernel(self, name="softmax_float16_4096"):
        return os.path.join(OPTIONS.data, "corpus", name + ".ttir")

    def json(self, name, *words):
        return json.loads(self.lilac(self.kernel(name), "--json", *words).stdout)


LAUNCHED = """
module {
  tt.func public @sums(%values: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %offsets: !tt.ptr<i32> {tt.divisibility = 16 : i32},
                       %counts: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<32xf32>
    %pid = tt.get_program_id x : i32
    %at = tt.addptr %offsets, %pid : !tt.ptr<i32>, i32
    %first = tt.load %at : !tt.ptr<i32>
    %next = tt.addptr %at, %c1 : !tt.ptr<i32>, i32
    %end = tt.load %next : !tt.ptr<i32>
    %range = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %limit = tt.splat %end : i32 -> tensor<32xi32>
    %p = tt.splat %values : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %sum = scf.for %k = %first to %end step %c32 iter_args(%s = %zero) -> (tensor<32xf32>)  : i32 {
      %base = tt.splat %k : i32 -> tensor<32xi32>
      %row = arith.addi %base, %range : tensor<32xi32>
      %mask = arith.cmpi slt, %row, %limit : tensor<32xi32>
      %q = tt.addptr %p, %row : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
      %v = tt.load %q, %mask, %zero : tensor<32x!tt.ptr<f32>>
      %t = arith.addf %s, %v : tensor<32xf32>
      scf.yield %t : tensor<32xf32>
    }
    %groups = scf.for %g = %c0 to %c4 step %c1 iter_args(%s = %sum) -> (tensor<32xf32>)  : i32 {
      %c = tt.addptr %counts, %g : !tt.ptr<i32>, i32
      %n = tt.load %c : !tt.ptr<i32>
      %inner = scf.for %k = %c0 to %n step %c1 iter_args(%u = %s) -> (tensor<32xf32>)  : i32 {
        %base = tt.splat %k : i32 -> tensor<32xi32>
        %row = arith.addi %base, %range : tensor<32xi32>
        %q = tt.addptr %p, %row : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
        %v = tt.load %q {isVolatile = true} : tensor<32x!tt.ptr<f32>>
        %t = arith.addf %u, %v : tensor<32xf32>
        scf.yield %t : tensor<32xf32>
      }
      scf.yield %inner : tensor<32xf32>
    }
    %o = tt.splat %out : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %r = tt.addptr %o, %range : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    tt.store %r, %groups : tensor<32x!tt.ptr<f32>>
    tt.return
  }
}
"""


def write_array(path, numbers):
    """A .npy file of int32."""
    header = "{'descr': '<i4', 'fortran_order': False, 'shape': (%d,), }" % len(numbers)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<%di" % len(numbers), *numbers))


# A block sums its row twice, a window that overlaps those of other blocks, and a row that memory names.
CACHED = """
module {
  tt.func public @cached(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %names: !tt.ptr<i32> {tt.divisibility = 16 : i32},
                         %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %m: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c1024 = arith.constant 1024 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<1024xf32>
    %pid = tt.get_program_id x : i32
    %first = arith.muli %pid, %n : i32
    %row = tt.addptr %x, %first : !tt.ptr<f32>, i32
    %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %once = scf.for %k = %c0 to %n step %c1024 iter_args(%s = %zero) -> (tensor<1024xf32>)  : i32 {
      %at = tt.addptr %row, %k : !tt.ptr<f32>, i32
      %p = tt.splat %at : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
      %q = tt.addptr %p, %range : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
      %v = tt.load %q : tensor<1024x!tt.ptr<f32>>
      %t = arith.addf %s, %v : tensor<1024xf32>
      scf.yield %t : tensor<1024xf32>
    }
    %twice = scf.for %k = %c0 to %n step %c1024 iter_args(%s = %once) -> (tensor<1024xf32>)  : i32 {
      %at = tt.addptr %row, %k : !tt.ptr<f32>, i32
      %p = tt.splat %at : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
      %q = tt.addptr %p, %range : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
      %v = tt.load %q : tensor<1024x!tt.ptr<f32>>
      %t = arith.mulf %s, %v : tensor<1024xf32>
      scf.yield %t : tensor<1024xf32>
    }
    %left = arith.muli %pid, %c1024 : i32
    %window = tt.addptr %out, %left : !tt.ptr<f32>, i32
    %sum = scf.for %k = %c0 to %m step %c1 iter_args(%s = %twice) -> (tensor<1024xf32>)  : i32 {
      %shift = arith.muli %k, %c1024 : i32
      %at = tt.addptr %window, %shift : !tt.ptr<f32>, i32
      %p = tt.splat %at : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
      %q = tt.addptr %p, %range : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
      %v = tt.load %q : tensor<1024x!tt.ptr<f32>>
      %t = arith.addf %s, %v : tensor<1024xf32>
      scf.yield %t : tensor<1024xf32>
    }
    %named = tt.addptr %names, %pid : !tt.ptr<i32>, i32
    %name = tt.load %named : !tt.ptr<i32>
    %begin = arith.muli %name, %c1024 : i32
    %there = tt.addptr %x, %begin : !tt.ptr<f32>, i32
    %p = tt.splat %there : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %q = tt.addptr %p, %range : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %v = tt.load %q : tensor<1024x!tt.ptr<f32>>
    %u = arith.addf %sum, %v : tensor<1024xf32>
    %y = tt.get_program_id y : i32
    %place = arith.muli %y, %c1024 : i32
    %o = tt.addptr %out, %place : !tt.ptr<f32>, i32
    %r = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %w = tt.addptr %r, %range : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    tt.store %w, %u : tensor<1024x!tt.ptr<f32>>
    tt.return
  }
}
"""


class Caches(ExplainTest):
    def explained(self, columns, grid):
        with open(os.path.join(self.folder, "cached.ttir"), "w", encoding="utf-8") as file:
            file.write(CACHED)
        return json.loads(self.lilac("cached.ttir", "--grid", grid, "--arg", "n=%d" % columns, "--arg", "m=16", "--json").stdout)

    def test_row_that_is_loaded_again(self):
        """L1 has a short row when it is loaded again; L2 has one that L1 has no room for, and memory delivers a long
        one again."""
        for columns, l2, memory in ((1024, False, False), (1 << 14, True, False), (1 << 20, True, True)):
            first, again = self.explained(columns, "256")["segments"][1:3]
            self.assertEqual(again["sectors"] > 0.9 * first["sectors"], l2)
            self.assertEqual(again["memory_sectors"] > 0.9 * first["memory_sectors"], memory)
            self.assertEqual(again["memory_sectors"] > 0, memory)

    def test_windows_that_overlap(self):
        """Memory delivers the 79 tiles of 64 overlapping windows of 16 tiles once."""
        facts = self.explained(1024, "64")
        load = next(one for one in facts["operations"] if one["name"] == "tt.load" and one["loop"] == 2)
        self.assertAlmostEqual(load["share"], 79 / (64 * 16), places=3)

    def test_address_from_memory(self):
        """A row that unknown memory names is another one for each program along x, and the same along y."""
        for grid, share in (("8", 1), ("8,4", 1 / 4)):
            facts = self.explained(1024, grid)
            load = [one for one in facts["operations"] if one["name"] == "tt.load" and one["loop"] is None][-1]
            self.assertAlmostEqual(load["share"], share)


class LaunchMaps(ExplainTest):
    """A product of 128x256x64 tiles of f16; `am` elements lie between rows of A."""

    def words(self, m, am):
        values = dict(M=m, N=256, K=1024, am=am, bk=256, cm=256)
        return ("--num-warps", "8", "--launch-maps", "--grid", "2", *(word for name, value in values.items()
                                                                     for word in ("--arg", "%s=%d" % (name, value))))

    def explained(self, m, am, *words):
        facts = self.json("matmul_f16", *self.words(m, am), *words)
        return facts, [one["sectors"] for one in facts["operations"]
                       if "tma_copy_global" in one["name"] and one["loop"] is not None]

    def test_boxes(self):
        facts, sectors = self.explained(256, 1024)
        self.assertTrue(facts["launch_maps"])
        self.assertEqual(sectors, [128 * 128 / 32, 64 * 512 / 32])
        self.assertEqual(sum(one["partial_sectors"] for one in facts["segments"]), 0)

    def test_rows_outside_of_the_tensor_are_not_read(self):
        _, sectors = self.explained(128 + 50, 1024)
        self.assertEqual(sectors, [(128 + 50) / 2 * 128 / 32, 64 * 512 / 32])

    def test_rows_that_begin_within_a_line(self):
        """Rows of 128 bytes, 16 bytes more than a multiple of 32 apart, are in two lines unless they begin one."""
        facts, sectors = self.explained(256, 1024 + 16)
        self.assertEqual(sectors, [128 * 128 / 32, 64 * 512 / 32])
        loop = facts["segments"][1]
        self.assertEqual(loop["partial_sectors"] / loop["iterations"], 128 * 3 / 4 * 4)

    def test_a_launch_without_maps(self):
        """Rows of A begin at multiples of 8 bytes: the launcher starts the plain kernel, whose registers are not those
        given."""
        facts, sectors = self.explained(256, 1024 + 4, "--registers", "99")
        self.assertFalse(facts["launch_maps"])
        self.assertEqual(sectors, [])
        self.assertTrue(facts["budget"]["registers_estimated"])
        out = self.lilac(self.kernel("matmul_f16"), *self.words(256, 1024 + 4)).stdout
        self.assertIn("\nwithout tensor maps of the launcher, which this launch does not permit or would be slower with\n", out)

    def test_few_iterations(self):
        """The launcher starts the plain kernel for two programs of 4 iterations, not for 1024 programs or 32 iterations."""
        for k, grid, maps in ((128, "2", False), (128, "1024", True), (1024, "2", True)):
            facts = self.json("matmul_tf32", "--num-warps", "8", "--launch-maps", "--grid", grid, "--arg", f"K={k}")
            self.assertEqual(facts["launch_maps"], maps)

    def test_one_block(self):
        """Of launches whose blocks have a multiprocessor each, the kernel has longer rings."""
        note = "for launches in which no multiprocessor gets two blocks"
        for grid, alone in (("132", True), ("12,11", True), ("133", False)):
            words = ("--num-warps", "4", "--num-stages", "4", "--launch-maps", "--grid", grid)
            facts = self.json("matmul_bf16_bT", *words, "--registers", "99")
            self.assertTrue(facts["launch_maps"])
            self.assertEqual(facts["one_block"], alone)
            self.assertEqual(facts["budget"]["registers_estimated"], alone)
            self.assertEqual({one["count"] for one in facts["buffers"]}, {5 if alone else 3})
            self.assertEqual(note in self.lilac(self.kernel("matmul_bf16_bT"), *words).stdout, alone)
        self.assertTrue(self.json("matmul_bf16_bT", "--launch-maps", "--one-block")["one_block"])

    def test_what_is_not_known_excludes_no_maps(self):
        for words in ((), ("--grid", "2"), ("--grid", "2", "--arg", "M=256")):
            facts = self.json("matmul_f16", "--num-warps", "8", "--launch-maps", *words)
            self.assertTrue(facts["launch_maps"])
        self.assertFalse(self.json("matmul_f16", "--num-warps", "8")["launch_maps"])


class Launch(ExplainTest):
    def explained(self, *words):
        with open(os.path.join(self.folder, "sums.ttir"), "w", encoding="utf-8") as file:
            file.write(LAUNCHED)
        write_array(os.path.join(self.folder, "offsets.npy"), [0, 64, 80, 80, 208])
        write_array(os.path.join(self.folder, "counts.npy"), [3, 0, 5, 2])
        return json.loads(self.lilac("sums.ttir", "--num-warps", "1", "--grid", "4", "--json", *words).stdout)

    def test_trip_counts_from_contents(self):
        facts = self.explained("--arg", "offsets=@offsets.npy", "--arg", "counts=@counts.npy")
        masked, groups, inner = [loop["estimate"] for loop in facts["loops"]]
        self.assertEqual(masked, (2 + 1 + 0 + 4) / 4)
        self.assertEqual(groups, 4)
        self.assertEqual(inner, (3 + 0 + 5 + 2) / 4)
        self.assertTrue(facts["budget"]["exact"])
        time = facts["budget"]["time"]
        self.assertGreaterEqual(facts["budget"]["seconds"], time["launch"] + max(time["memory"], time["multiprocessors"]))
        self.assertGreater(time["imbalance"], 0)

    def test_sectors_of_masked_accesses(self):
        facts = self.explained("--arg", "offsets=@offsets.npy", "--arg", "counts=@counts.npy")
        loads = [one for one in facts["operations"] if one["name"] == "tt.load" and one["loop"] == 0]
        self.assertEqual([one["counts"]["global_load_sectors"] for one in loads], [4])  # without masks
        self.assertLess(loads[0]["active"], 1)
        self.assertAlmostEqual(loads[0]["sectors"], 4 * loads[0]["active"], places=2)  # each lane has 4 bytes of a sector of 32

    def test_trip_counts_that_are_given(self):
        unknown = self.explained()
        self.assertFalse(unknown["budget"]["exact"])
        line = 1 + LAUNCHED[:LAUNCHED.index("scf.for %k = %c0")].count("\n")
        given = self.explained("--arg", "offsets=@offsets.npy", "--trip-count", "%d=7.5" % line)
        self.assertEqual(given["loops"][2]["estimate"], 7.5)
        self.assertTrue(given["budget"]["exact"])
        self.assertGreater(given["budget"]["seconds"], 0)

    def test_text_names_what_is_assumed(self):
        self.explained()
        out = self.lilac("sums.ttir", "--num-warps", "1").stdout
        self.assertIn("iterations assumed (--arg and --trip-count give them)", out)

    def test_mistakes(self):
        self.explained()
        for words, message in ((("--trip-count", "9"), "expected a line and a number"), (("--trip-count", "9=x"), "expected a line"),
                               (("--trip-count", "0=3"), "expected a line"), (("--arg", "counts=@none.npy"), "none.npy")):
            done = self.lilac("sums.ttir", "--num-warps", "1", *words, status=USAGE)
            self.assertIn(message, done.stderr)


class Text(ExplainTest):
    def test_lines_of_the_compiled_text(self):
        out = self.lilac(self.kernel(), "--num-warps", "8").stdout
        self.assertRegex(out, r"\n +26 \|     %v_5 = tt\.load .*\n +\| +\d+ tt\.load  load of 16 bytes per thread, "
                              r"16 instructions, 256 sectors")
        self.assertRegex(out, r"bytes loaded +8192\n")
        self.assertIn(" binds\n", out)

    def test_lines_of_the_program(self):
        with open(self.kernel(), encoding="utf-8") as file:
            text = file.read()
        shutil.copy(os.path.join(OPTIONS.data, "corpus", "kernels.py"), self.folder)
        with open(os.path.join(self.folder, "here.ttir"), "w", encoding="utf-8") as file:
            file.write(text)
        out = self.lilac("here.ttir", "--num-warps", "8").stdout
        self.assertTrue(out.startswith("kernels.py: softmax for sm_90a, 8 warps"), out[:80])
        self.assertRegex(out, r"\| +v = tl\.load\(.*\n.*\n* +\|.*tt\.load  load of 16 bytes")

    def test_alternatives_of_products_and_reductions(self):
        """Each with its price: none is cheaper than the plan that was chosen."""
        facts = self.json("attention_f16_d128_causal")
        for kind in ("warp_group_dot", "tt.reduce"):
            found = [one for one in facts["operations"] if kind in one["name"] and one["alternatives"]]
            self.assertTrue(found, kind)
            for one in found:
                prices = [other["cycles"] for other in one["alternatives"] if other["refused"] is None]
                self.assertGreaterEqual(min(prices), one["cycles"])
        facts = self.json("matmul_f16_skinny")
        product = next(one for one in facts["operations"] if one["name"] == "tt.dot")
        self.assertEqual(product["alternatives"][0]["refused"], "a wgmma has 64 rows, the product has fewer")
        line = next(str(one["input"][1]) for one in facts["operations"] if one["name"] == "tt.dot")
        self.assertIn("not chosen: wgmma: not possible: a wgmma has 64 rows",
                      self.lilac(self.kernel("matmul_f16_skinny"), "--why", line).stdout)

    def test_why(self):
        out = self.lilac(self.kernel("transpose_float16"), "--why", "37").stdout
        self.assertIn("made for 25 tt.load of line 27: 16 bytes per thread, 256 sectors", out)
        self.assertIn("not chosen: shuffles only: not possible: ", out)
        self.assertRegex(out, r"not chosen: row-major shared memory: [\d.]+ clocks, 0 shuffles, 1024 \+ 64 wavefronts")

    def test_changes(self):
        out = self.lilac(self.kernel(), "--num-warps", "8", "--what-if", "num_warps=4",
                         "--what-if", "26 layout=" + ONE, "--what-if", "num_warps=8").stdout
        self.assertRegex(out, r"with num_warps=4, for a block\n.*before +after\n  instructions +1656\.0 ")
        self.assertRegex(out, r"with 26 layout=#ttg.*\n.*\n(.*\n)*?  global_loads +16\.0 +128\.0   \+700\.0 %\n")
        self.assertTrue(out.endswith("with num_warps=8, for a block\n" + " " * 39 + "before          after\n"
                                     "  nothing changes\n"), out[-200:])

    def test_forced_layout_is_the_one_of_the_access(self):
        out = self.lilac(self.kernel(), "--num-warps", "8", "--json", "--what-if", "26 layout=" + ONE).stdout
        after = json.loads(out)["after"]["counts"]
        self.assertEqual(after["access_bits"], {"16": 256})


    def test_promises(self):
        with open(self.kernel(), encoding="utf-8") as file:
            text = file.read().replace("tt.divisibility = 16", "tt.divisibility = 2")
        out = self.lilac("-", "--num-warps", "8", "--json", "--what-if", "x,o,xs,os,cols divisibility=16",
                         input=text).stdout
        change = json.loads(out)
        self.assertNotIn("128", change["before"]["counts"]["access_bits"])
        self.assertEqual(change["after"]["counts"]["access_bits"], {"128": 32})
        done = self.lilac(self.kernel(), "--what-if", "nothing divisibility=16", status=REFUSED)
        self.assertIn("no kernel of this module has a parameter 'nothing' [unknown-argument]", done.stderr)
        self.lilac(self.kernel(), "--what-if", "x divisibility=12", status=USAGE)


class Json(ExplainTest):
    def test_operations(self):
        e = self.json("softmax_float16_4096", "--num-warps", "8")
        self.assertEqual((e["version"], e["kernel"], e["num_warps"]), (1, "softmax", 8))
        numbers = [o["number"] for o in e["operations"]]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))
        load = next(o for o in e["operations"] if o["name"] == "tt.load")
        self.assertEqual(load["plans"][0]["kind"], "access")
        self.assertEqual(load["counts"]["global_load_sectors"], 256)
        self.assertEqual(load["results"][0]["layout"],
                         "#ttg.blocked<{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [8], order = [0]}>")
        self.assertEqual(load["input"][:2], [0, 26])
        self.assertTrue(e["files"][0]["lines"][25].lstrip().startswith("%v_5 = tt.load"))

    def test_every_line_of_the_ptx_has_its_operation(self):
        e = self.json("softmax_float16_4096", "--num-warps", "8")
        lines = e["ptx"]["text"].split("\n")
        loads = [k + 1 for k, line in enumerate(lines) if "ld.global" in line]
        load = next(o for o in e["operations"] if o["name"] == "tt.load")
        self.assertTrue(loads)
        for line in loads:
            self.assertTrue(any(first <= line <= last for first, last in load["ptx"]), line)
            owner = [number for begin, number in e["ptx"]["lines"] if begin <= line][-1]
            self.assertEqual(owner, load["number"])

    def test_the_ptx_is_that_of_compile(self):
        for name in ("softmax_float16_4096", "matmul_f16", "attention_f16_d64_full"):
            done = command.run(OPTIONS.lilac, "compile", self.kernel(name), cwd=self.folder)
            self.assertEqual(self.json(name)["ptx"]["text"], done.stdout, name)

    def test_reason(self):
        e = self.json("transpose_float16")
        convert = next(o for o in e["operations"] if o["name"] == "ttg.convert_layout")
        names = {o["number"]: o["name"] for o in e["operations"]}
        self.assertEqual(names[convert["reason"]["made_by"]], "tt.load")
        self.assertEqual(names[convert["reason"]["used_by"]], "tt.store")
        self.assertEqual([a["name"] for a in convert["alternatives"]],
                         ["shuffles only", "row-major shared memory"])

    def test_loops_and_timeline(self):
        e = self.json("matmul_f16", "--grid", "64", "--arg", "K=4096", "--arg", "a=null")
        loop = e["loops"][0]
        self.assertEqual((loop["trip_count"], loop["estimate"], loop["from_launch"]), (None, 64, True))
        events = next(t for t in e["timeline"] if t["loop"] == 0)["events"]
        kinds = [event["kind"] for event in events]
        for kind in ("copy", "commit", "wait copies", "product", "wait products"):
            self.assertIn(kind, kinds)
        wait = next(event for event in events if event["kind"] == "wait products")
        product = next(event for event in events if event["kind"] == "product")
        self.assertEqual(wait["waits_for"], [product["operation"]])
        dot = e["operations"][product["operation"] - 1]["plans"][0]["plan"]
        self.assertEqual(dot["instruction"], "wgmma.m64n256k16.f32.f16.f16")

    def test_timeline_of_partitions(self):
        """One warp copies, the others multiply: each waits for what the other one does."""
        explanation = self.json("matmul_descriptor_f16", "--num-warps", "8")
        names = [one["name"] for one in explanation["operations"]]
        self.assertIn("ttg.warp_specialize", names)
        waits = [event for loop in explanation["timeline"] for event in loop["events"] if event["kind"] == "wait mbarrier"]
        awaited = {tuple(sorted({names[number - 1] for number in wait["waits_for"]})) for wait in waits}
        self.assertEqual(awaited, {("ttng.async_tma_copy_global_to_local",), ("ttng.arrive_barrier",)})
        self.assertTrue(all(wait["buffer"] is not None for wait in waits))

    def test_predicted_time(self):
        launch = [word for name in ("M", "N", "K", "am", "bk", "cm") for word in ("--arg", name + "=4096")]
        some = self.json("matmul_f16", "--grid", "128", *launch)["budget"]
        all_blocks = self.json("matmul_f16", "--grid", "512", *launch)["budget"]
        self.assertGreater(some["seconds"], 0)
        self.assertGreater(all_blocks["seconds"], 3 * some["seconds"])
        self.assertIsNone(self.json("matmul_f16")["budget"]["seconds"])
        matrices = 3 * 2 * 4096 * 4096  # each byte once, although 16 or 32 blocks read it
        self.assertAlmostEqual(512 * all_blocks["unique_bytes"] / matrices, 1, delta=0.05)

    def test_advice(self):
        path = os.path.join(OPTIONS.data, "..", "..", "examples", "explain", "sum_rows.ttir")
        grid = ["--grid", "4096", "--advice"]
        for one in json.loads(self.lilac(path, "--json", *grid).stdout)["advice"]:
            self.assertLess(one["seconds"], 0.95 * one["base_seconds"])
            name, value = one["change"].split("=")
            option = "--" + name.replace("_", "-")
            again = json.loads(self.lilac(path, "--json", "--grid", "4096", option, value).stdout)
            self.assertAlmostEqual(again["budget"]["seconds"] / one["seconds"], 1, places=4)
        self.assertIn("predicted faster\n  num_warps=", self.lilac(path, *grid).stdout)
        self.assertIn("no advice: nothing is predicted without a grid", self.lilac(path, "--advice").stdout)
        out = self.lilac(self.kernel("matmul_f16"), *grid).stdout
        self.assertIn("no advice: loops or branches have assumed executions\n", out)

    def test_all_kernels(self):
        for path in sorted(glob.glob(os.path.join(OPTIONS.data, "corpus", "*.ttgir"))):
            e = json.loads(self.lilac(path, "--json").stdout)
            self.assertTrue(e["operations"], path)


class Schedules(ExplainTest):
    def test_schedules(self):
        words = ["--num-warps", "8", "--grid", "2048", *("--arg K=8192 --arg M=8192 --arg N=8192 --arg am=8192 --arg bk=8192 "
                                                         "--arg cm=8192").split()]
        facts = self.json("matmul_f16", *words)
        schedule, = facts["schedules"]
        units = {one["name"]: one["clocks"] for one in schedule["units"]}
        # 128 × 256 × 64 at 2048 multiply-adds of f16 in a clock; both warpgroups read 64 rows of A and B for each 16 of k
        self.assertEqual(units["tensor cores"], 128 * 256 * 64 / 2048)
        self.assertEqual(units["operands of products"], 4 * 2 * (64 + 256) * 32 / 128)
        self.assertEqual(schedule["schedule"], "products=in_flight,copies=last,distance=2,buffers=3")
        # a product of a sum follows the one before at once
        self.assertEqual(schedule["recurrences"], units["tensor cores"])
        self.assertGreaterEqual(schedule["alone"], schedule["recurrences"])
        self.assertGreaterEqual(schedule["interval"], max(units.values()))
        waits = self.json("matmul_f16", *words, "--schedule", "products=wait")["schedules"][0]
        self.assertGreater(waits["alone"], schedule["alone"])
        self.assertEqual(waits["recurrences"], schedule["recurrences"])
        self.assertEqual({one["name"]: one["clocks"] for one in waits["units"]}["tensor cores"], units["tensor cores"])
        far = self.json("matmul_f16", *words, "--schedule", "distance=1")["schedules"][0]
        self.assertEqual(far["copies"], 2 * schedule["copies"])
        self.assertRegex(self.lilac(self.kernel("matmul_f16"), *words, "--schedule", "products=wait").stdout,
                         r"\nschedule of the loop of line \d+: products=wait,")
        self.assertEqual(self.json("softmax_float16_4096")["schedules"], [])

    def test_joined_loops(self):
        with open(self.kernel("matmul_f16"), encoding="utf-8") as file:
            text = file.read()
        path = os.path.join(self.folder, "two.ttir")
        with open(path, "w", encoding="utf-8") as file:
            file.write(two_loops.divided(text, two_loops.PARTS["half"], "equal"))
        words = [path, "--num-warps", "8"]
        self.assertRegex(self.lilac(*words).stdout, r"\nschedule of the loop of line \d+, joined with the one behind it: products=")
        schedule, = json.loads(self.lilac(*words, "--json").stdout)["schedules"]
        self.assertEqual(schedule["joined"], 2)
        self.assertEqual(self.json("matmul_f16", "--num-warps", "8")["schedules"][0]["joined"], 1)

    def test_recurrence_of_attention(self):
        # the second product is added to a scaled sum: its clocks, its latency, a multiplication
        schedule, = self.json("attention_f16_d64_full", "--num-warps", "8")["schedules"]
        product = next(one["clocks"] for one in schedule["units"] if one["name"] == "tensor cores") / 2
        self.assertGreater(schedule["recurrences"], product + 60)
        self.assertLess(schedule["recurrences"], product + 100)

    def test_search(self):
        sizes = "M=128 N=256 K=192 am=192 bk=256 cm=256 a=random:f16:128x192 b=random:f16:192x256 c=empty:f16:128x256"
        words = ["--num-warps", "8", "--grid", "1", "--search-schedules",
                 *(word for size in sizes.split() for word in ("--arg", size))]
        found = self.json("matmul_f16", *words)
        self.assertTrue(found["exhaustive"] and found["simulated"])
        times = [one["seconds"] for one in found["schedules"]]
        self.assertEqual(times, sorted(times))
        self.assertEqual(found["best_seconds"], times[0])
        chosen, = (one for one in found["schedules"] if one["chosen"])
        self.assertEqual(chosen["seconds"], found["chosen_seconds"])
        requests = [one["requests"][0] for one in found["schedules"]]
        self.assertEqual(len(set(requests)), len(requests))
        # each is what it says, and has the time that the kernel with this request has
        self.assertEqual(chosen["requests"], [self.json("matmul_f16", *words[:4], *words[5:])["schedules"][0]["schedule"]])
        for one in found["schedules"][:4]:
            facts = self.json("matmul_f16", *words[:4], *words[5:], "--schedule", one["requests"][0])
            self.assertEqual(facts["schedules"][0]["schedule"], one["requests"][0])
            self.assertAlmostEqual(facts["budget"]["seconds"] / one["seconds"], 1, places=4)
        done = self.lilac(self.kernel("matmul_f16"), *words)
        self.assertRegex(done.stdout, r"all that are possible; \d+ requests were refused; all give the same results")
        self.assertIn("\n* ", done.stdout)
        self.assertFalse(self.json("matmul_f16", *words[:-6])["simulated"])  # without buffers

    def test_search_is_refused(self):
        done = self.lilac(self.kernel(), "--grid", "1", "--search-schedules", status=REFUSED)
        self.assertIn("no pipelined loop with matrix products", done.stderr)
        for words in ([], ["--grid", "1", "--advice"], ["--grid", "1", "--schedule", "distance=2"]):
            self.lilac(self.kernel(), "--search-schedules", *words, status=USAGE)


class Refusals(ExplainTest):
    def test_line_without_operations(self):
        done = self.lilac(self.kernel(), "--why", "3", status=REFUSED)
        self.assertRegex(done.stderr, r":3:1: error: no operation .* comes from line 3 .*\[unknown-line\]\n.*\n +\^")

    def test_layout_of_another_rank(self):
        two = "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [8, 1], order = [0, 1]}>"
        done = self.lilac(self.kernel(), "--num-warps", "8", "--what-if", "26 layout=" + two, status=REFUSED)
        self.assertIn("<layout>:1:1: error: this layout is of rank 2 and the tensor of rank 1", done.stderr)
        self.assertRegex(done.stderr, r":26:\d+: note: the layout is for this operation")

    def test_layout_of_other_threads(self):
        done = self.lilac(self.kernel(), "--num-warps", "4", "--what-if", "26 layout=" + ONE, status=REFUSED)
        self.assertIn("[forced-layout]", done.stderr)
        self.assertIn("warps", done.stderr)

    def test_line_without_layouts_to_force(self):
        done = self.lilac(self.kernel(), "--what-if", "18 layout=" + ONE, status=REFUSED)
        self.assertIn("[forced-layout]", done.stderr)

    def test_layouts_of_ttgir_cannot_be_forced(self):
        path = os.path.join(OPTIONS.data, "corpus", "vector_add_f32.ttgir")
        with open(path, encoding="utf-8") as file:
            line = next(k for k, text in enumerate(file.read().split("\n"), 1) if "tt.load" in text)
        done = self.lilac(path, "--what-if", "%d layout=%s" % (line, ONE), status=REFUSED)
        self.assertIn("has a layout already", done.stderr)

    def test_simt_text(self):
        simt = command.run(OPTIONS.lilac, "compile", self.kernel("vector_add_f32"), "--emit", "simt")
        done = self.lilac("-", status=REFUSED, input=simt.stdout)
        self.assertIn("[no-operations]", done.stderr)

    def test_unknown_argument(self):
        done = self.lilac(self.kernel(), "--arg", "nothing=3", status=REFUSED)
        self.assertIn("has no parameter 'nothing' [unknown-argument]", done.stderr)

    def test_usage(self):
        for words in (["--why", "x"], ["--what-if", "num_warps"], ["--what-if", "colour=3"], ["--grid", "a"],
                      ["--arg", "n"], ["--why", "3", "--json"]):
            self.lilac(self.kernel(), *words, status=USAGE)
        self.lilac(status=USAGE)
        self.assertRegex(self.lilac("--help").stdout, re.compile(r"--why.*--what-if.*--grid.*--json", re.S))


if __name__ == "__main__":
    OPTIONS = command.parse_arguments(__doc__)
    unittest.main(argv=[sys.argv[0], "-v"] + OPTIONS.names)
