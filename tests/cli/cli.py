"""The command from outside: exit statuses, help, JSON, diagnostics, files.

The parts (usage, layout, compile, run, scalars, npy) are separate so that a test runner can show them apart.
"""

import json
import os
import re
import shutil
import stat
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import npy  # noqa: E402

DONE, REFUSED, USAGE, CHECK = 0, 1, 2, 3

BLOCKED = ("tensor<16x16xf32, #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], "
           "warpsPerCTA = [2, 1], order = [1, 0]}>>")

# Doubles an array of f32; `n` is its length, at most 128.
TWICE = """module {
  tt.func public @twice(%x: !tt.ptr<f32>, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %l = tt.splat %n : i32 -> tensor<128xi32>
    %m = arith.cmpi slt, %i, %l : tensor<128xi32>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %q = tt.addptr %p, %i : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    %v = tt.load %q, %m : tensor<128x!tt.ptr<f32>>
    %w = arith.addf %v, %v : tensor<128xf32>
    %r = tt.splat %o : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %s = tt.addptr %r, %i : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    tt.store %s, %w, %m : tensor<128x!tt.ptr<f32>>
    tt.return
  }
}
"""

OPTIONS = None


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def lilac(self, *words, status=DONE, **options):
        done = command.run(OPTIONS.lilac, *words, cwd=self.folder, **options)
        self.assertEqual(done.returncode, status, "lilac %s\n%s%s" % (
            " ".join(str(word) for word in words), done.stdout, done.stderr))
        return done

    def assertLocated(self, done, file, id, line=None, text=None):
        """A diagnostic of this id at a place in the file, with its line and a caret under it."""
        pattern = r"^%s:(\d+):(\d+): error: (.*) \[%s\]\n( *\S.*)\n( *)\^~*$" % (
            re.escape(file), re.escape(id))
        found = re.search(pattern, done.stderr, re.MULTILINE)
        self.assertIsNotNone(found, "no located %s in\n%s" % (id, done.stderr))
        if line is not None:
            self.assertEqual(int(found.group(1)), line, done.stderr)
        if text is not None:
            self.assertIn(text, found.group(3))
        return found


class Usage(CommandTest):
    SUBCOMMANDS = ("compile", "explore", "run", "bench", "layout", "conflicts", "convert", "swizzle", "view")

    def test_help_everywhere(self):
        for words in (["--help"], ["-h"], ["help"]):
            text = self.lilac(*words).stdout
            for subcommand in self.SUBCOMMANDS:
                self.assertRegex(text, r"(?m)^  %s\s+\S" % subcommand)
        for subcommand in self.SUBCOMMANDS:
            text = self.lilac(subcommand, "--help").stdout
            self.assertTrue(text.startswith("usage: lilac %s " % subcommand), text)
            self.assertIn("--json", text)
            self.assertEqual(text, self.lilac("help", subcommand).stdout)
            self.assertEqual(text, self.lilac(subcommand, "--bogus", "-h").stdout)

    def test_help_is_narrow(self):
        for subcommand in self.SUBCOMMANDS:
            for line in self.lilac(subcommand, "--help").stdout.splitlines():
                self.assertLessEqual(len(line), 100, line)

    def test_version(self):
        self.assertRegex(self.lilac("--version").stdout, r"^lilac \d+\.\d+\.\d+\n$")

    def test_wrong_usage(self):
        for words, hint in [
                ([], "subcommand is missing"),
                (["complie"], "did you mean 'compile'"),
                (["nonsense"], "unknown subcommand 'nonsense'"),
                (["help", "lay"], "unknown subcommand"),
                (["--nonsense"], "unknown subcommand"),
                (["compile"], "which file"),
                (["compile", "a", "b"], "one file"),
                (["compile", "a", "--num-warp", "4"], "did you mean '--num-warps'"),
                (["compile", "a", "--num-warps"], "needs a value"),
                (["compile", "a", "--num-warps", "three"], "takes a number"),
                (["compile", "a", "--num-warps", "3"], "power of two"),
                (["compile", "a", "--num-warps", "64"], "power of two from 1 to 32"),
                (["compile", "a", "--num-warps=99999999999"], "takes a number"),
                (["compile", "a", "--newest-ptx", "86"], "a PTX ISA version from 7.0 to 9.9"),
                (["compile", "a", "--newest-ptx", "8.61"], "a PTX ISA version from 7.0 to 9.9"),
                (["compile", "a", "--num-ctas", "0"], "power of two"),
                (["compile", "a", "--num-stages", "0"], "at least one"),
                (["compile", "a", "--target", "sm_1"], "known are"),
                (["compile", "a", "--emit", "cubin"], "tile, ttgir, simt, ptx or json"),
                (["compile", "a", "--print-after", "assign_layout"], "did you mean 'assign_layouts'"),
                (["compile", "a", "--print-after", "x"], "they are read, verify"),
                (["compile", "a", "--time=yes"], "takes no value"),
                (["run"], "which file"),
                (["run", "a"], "--grid"),
                (["run", "a", "--grid", "0"], "numbers of blocks"),
                (["run", "a", "--grid", "1,2,3,4"], "numbers of blocks"),
                (["run", "a", "--grid", "1,,2"], "numbers of blocks"),
                (["run", "a", "--grid", "-1"], "numbers of blocks"),
                (["run", "a", "--grid", "1,70000"], "numbers of blocks"),
                (["run", "a", "--grid", "1", "--parts", "3"], "1, 2, 4 or 8"),
                (["run", "a", "--grid", "1", "--parts", "2"], "--launch-maps and --split-sums"),
                (["run", "a", "--grid", "1", "--arg", "x"], "NAME=VALUE"),
                (["run", "a", "--grid", "1", "--arg", "=3"], "NAME=VALUE"),
                (["run", "a", "--grid", "1", "--save", "x="], "NAME=FILE"),
                (["run", "a", "--grid", "1", "--expect", "x"], "NAME=FILE"),
                (["run", "a", "--grid", "1", "--device", "abacus"], "no device 'abacus'"),
                (["run", "a", "--grid", "1", "--device", "cudas"], "no device 'cudas'"),
                (["run", "a", "--grid", "1", "--device", "cuda:"], "cuda:0 is the first GPU"),
                (["run", "a", "--grid", "1", "--device", "cuda:x"], "cuda:0 is the first GPU"),
                (["run", "a", "--grid", "1", "--compiler", "ptxas"], "the simulator needs none"),
                (["run", "a", "--grid", "1", "--device", "cuda", "--limit", "5"],
                 "are the simulator's"),
                (["run", "a", "--grid", "1", "--device", "cuda", "--compiler", "gcc"],
                 "takes driver or ptxas"),
                (["bench"], "which file"),
                (["bench", "a"], "--grid"),
                (["bench", "a", "b", "--grid", "1"], "one file"),
                (["bench", "a", "--grid", "1", "--device", "simulator"], "no GPU 'simulator'"),
                (["bench", "a", "--grid", "1", "--bytes", "0"], "a number of bytes"),
                (["bench", "a", "--grid", "1", "--bytes", "many"], "a number of bytes"),
                (["bench", "a", "--grid", "1", "--seconds", "0"], "takes a time"),
                (["bench", "a", "--grid", "1", "--seconds", "1h"], "takes a time"),
                (["bench", "a", "--grid", "1", "--arg", "x"], "NAME=VALUE"),
                (["layout"], "which type"),
        ]:
            done = self.lilac(*words, status=USAGE)
            self.assertEqual(done.stdout, "")
            self.assertTrue(done.stderr.startswith("lilac: error: "), done.stderr)
            self.assertIn(hint, done.stderr)


class Layout(CommandTest):
    def test_text(self):
        self.assertEqual(
            self.lilac("layout", BLOCKED).stdout,
            "#ttg.linear<{register = [[0, 1], [1, 0]], lane = [[0, 2], [0, 4], [0, 8], [2, 0], "
            "[4, 0]], warp = [[8, 0]], block = []}>\n")

    def test_json(self):
        answer = json.loads(self.lilac("layout", "--json", BLOCKED).stdout)
        self.assertEqual(answer, {
            "register": [[0, 1], [1, 0]], "lane": [[0, 2], [0, 4], [0, 8], [2, 0], [4, 0]],
            "warp": [[8, 0]], "block": []})

    def test_answers_read_back(self):
        text = self.lilac("layout", BLOCKED).stdout.strip()
        again = self.lilac("layout", "tensor<16x16xf32, %s>" % text).stdout.strip()
        self.assertEqual(text, again)

    def test_lines(self):
        lines = [BLOCKED, "tensor<16x", BLOCKED, "", BLOCKED + " more", "\x01", BLOCKED]
        done = self.lilac("layout", "--json", "-", input="\n".join(lines), status=REFUSED)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        good = json.loads(self.lilac("layout", "--json", BLOCKED).stdout)
        self.assertEqual(answers, [good, None, good, None, None, None, good])
        for line in (2, 4, 5, 6):
            self.assertRegex(done.stderr, r"(?m)^<stdin>:%d:\d+: error: " % line)
        for line in (1, 3, 7):
            self.assertNotRegex(done.stderr, r"(?m)^<stdin>:%d:" % line)

    def test_many_lines(self):
        done = self.lilac("layout", "-", input=(BLOCKED + "\n") * 600 + "tensor<\n",
                          status=REFUSED)
        answers = done.stdout.splitlines()
        self.assertEqual(len(answers), 601)
        self.assertEqual(len(set(answers[:600])), 1)
        self.assertEqual(answers[600], "null")
        self.assertIn("<stdin>:601:", done.stderr)

    def test_all_of_triton(self):
        """Every layout of the golden files, in one process."""
        for name, bases in (("layouts", lambda row: {key: row[key] for key in (
                "register", "lane", "warp", "block")}), ("unit", lambda row: row["bases"])):
            with open(os.path.join(OPTIONS.data, "goldens", name + ".jsonl")) as file:
                rows = [json.loads(line) for line in file]
            types = "".join(row["type"] + "\n" for row in rows)
            answers = self.lilac("layout", "--json", "-", input=types).stdout.splitlines()
            self.assertEqual(len(answers), len(rows))
            for row, answer in zip(rows, answers):
                self.assertEqual(json.loads(answer), bases(row), row["type"])

    def test_memory(self):
        memdesc = ("!ttg.memdesc<4x8xf16, #ttg.swizzled_shared<{vec = 2, perPhase = 1, "
                   "maxPhase = 4, order = [1, 0]}>, #smem, mutable>")
        text = self.lilac("layout", memdesc).stdout.strip()
        self.assertEqual(text, "#ttg.shared_linear<{offset = [[0, 1], [0, 2], [0, 4], [1, 2], "
                               "[2, 4]], block = []}>")
        again = self.lilac("layout", "!ttg.memdesc<4x8xf16, %s, #smem>" % text).stdout.strip()
        self.assertEqual(text, again)

    def offsets(self, text):
        return json.loads(self.lilac("layout", "--as", "offsets", text).stdout)

    def test_cute(self):
        swizzled = "Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)"
        memory = self.lilac("layout", swizzled).stdout.strip()
        self.assertEqual(
            memory, "#ttg.shared_linear<{offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], "
            "[0, 32], [1, 8], [2, 16], [4, 32]], block = []}>")
        # NVMMA's swizzle by 128 bytes is that layout, and CuTe's text comes back from either.
        nvmma = ("!ttg.memdesc<8x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = "
                 "false, elementBitWidth = 16}>, #smem>")
        self.assertEqual(self.lilac("layout", nvmma).stdout.strip(), memory)
        for text in (swizzled, nvmma, "!ttg.memdesc<8x64xf16, %s, #smem>" % memory):
            self.assertEqual(self.lilac("layout", "--as", "cute", text).stdout,
                             "Sw<3,3,3> o 0 o (8,64):(64,1)\n")
        self.assertEqual(json.loads(self.lilac("layout", "--as=cute", "--json", nvmma).stdout),
                         {"cute": "Sw<3,3,3> o 0 o (8,64):(64,1)", "shape": [[8], [64]],
                          "stride": [[64], [1]], "swizzle": [3, 3, 3]})
        nested = "((2,4),(8,2)):((32,1),(4,64))"
        self.assertEqual(self.lilac("layout", "--as", "cute", nested).stdout.strip(), nested)
        self.assertEqual(json.loads(self.lilac("layout", "--as=cute", "--json", nested).stdout),
                         {"cute": nested, "shape": [[2, 4], [8, 2]],
                          "stride": [[32, 1], [4, 64]], "swizzle": None})
        self.assertEqual(self.offsets(nested), {"dim0": [[32], [1], [2]],
                                                "dim1": [[4], [8], [16], [64]]})

    def test_cute_of_tensors(self):
        """CuTe's thread-value layout of an accumulator."""
        mma = ("tensor<16x8xf32, #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = "
               "[1, 1], instrShape = [16, 8]}>>")
        self.assertEqual(self.lilac("layout", "--as", "cute", mma).stdout,
                         "((4,8),(2,2)):((32,1),(16,8))\n")

    def test_memory_forms(self):
        rows = self.lilac("layout", "row_major(4x8)").stdout
        self.assertEqual(rows, "#ttg.shared_linear<{offset = [[0, 1], [0, 2], [0, 4], [1, 0], "
                               "[2, 0]], block = []}>\n")
        for same in ("order(4x8, [1, 0])", "strided(4x8, [8, 1])", "tiled(4x8, [0, 1])",
                     "padded(4x8, 8:+4)", "(4,8):(8,1)"):
            self.assertEqual(self.lilac("layout", same).stdout, rows)
        self.assertEqual(self.lilac("layout", "column_major(4x8)").stdout,
                         self.lilac("layout", "(4,8):(1,4)").stdout)
        vect = self.lilac("layout", "tiled(1x64x2x2, NCHW_VECT_C 32)").stdout
        self.assertEqual(vect, self.lilac("layout", "tiled(1x64x2x2, NC/32HW32)").stdout)
        self.assertEqual(self.offsets("tiled(1x64x2x2, NCHW_VECT_C 32)"), {
            "dim0": [], "dim1": [[1], [2], [4], [8], [16], [128]], "dim2": [[64]], "dim3": [[32]]})
        for form, cute in (("padded(16x32, 32:+4)", "(16,32):(36,1)"),
                           ("row_major(24x100)", "(24,100):(100,1)"),
                           ("strided(4x4, [16, 1])", "(4,4):(16,1)"),
                           ("!ttg.memdesc<16x32xf16, #ttg.padded_shared<[32:+4] {order = [1, 0], "
                            "shape = [16, 32]}>, #smem>", "(16,32):(36,1)")):
            self.assertEqual(self.lilac("layout", "--as", "cute", form).stdout.strip(), cute)

    def test_forms_mixed(self):
        lines = [BLOCKED, "(4,8):(8,1)", "row_major(3x4)", "column_major(4x8)", "(4,8):(8,3)",
                 "8:1 more", "Sw<3,4,3> o 0 o (8,128):(128,1)"]
        done = self.lilac("layout", "--json", "-", input="\n".join(lines), status=REFUSED)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([answer is not None for answer in answers],
                         [True, True, False, True, False, False, True])
        self.assertEqual(list(answers[0]), ["register", "lane", "warp", "block"])
        self.assertEqual(list(answers[1]), ["offset", "block"])
        self.assertLocated(done, "<stdin>", "no-linear-layout", 3, "dimension 0 has 3 elements")
        self.assertLocated(done, "<stdin>", "syntax", 6)

    def test_refused_forms(self):
        """Why there is none, in one sentence."""
        xor = ("!ttg.memdesc<2x4xf16, #ttg.shared_linear<{offset = [[0, 1], [1, 2], [0, 2]], block "
               "= []}>, #smem>")
        both = ("!ttg.memdesc<4x4xf16, #ttg.shared_linear<{offset = [[0, 1], [1, 3], [3, 3], "
                "[2, 2]], block = []}>, #smem>")
        copies = ("!ttg.memdesc<4x4xf16, #ttg.shared_linear<{offset = [[0, 1], [0, 2], [0, 0], "
                  "[1, 0], [2, 0]], block = []}>, #smem>")
        blocks = ("!ttg.memdesc<4x4xf16, #ttg.shared_linear<{offset = [[0, 1], [0, 2], [1, 0]], "
                  "block = [[2, 0]]}>, #smem>")
        for form, text, id, reason in (
                ("layout", "(4,3):(3,1)", "no-linear-layout", "size 3 of mode 1 is not a power of"),
                ("layout", "(4,4):(1,3)", "no-linear-layout", "segments overlap"),
                ("layout", "4:3", "no-linear-layout", "stride 3 is not a power of two"),
                ("layout", "(4,4):(16,1)", "no-linear-layout", "nothing is at offset 4"),
                ("layout", "(4,4):(0,1)", "no-linear-layout", "not injective"),
                ("layout", "strided(4x4, [2, 1])", "no-linear-layout",
                 "not injective: [1, 0] and [0, 2] are both at offset 2"),
                ("layout", "(4,4):(4)", "cute-mismatch", "fewer entries"),
                ("layout", "Sw<3,4,3> o 8 o (8,64):(64,1)", "cute-offset", "affine"),
                ("layout", "tiled(4x4, [0])", "memory-form-tile", "along dimension 1"),
                ("cute", both, "no-cute-layout", "this xor is not a Swizzle<B,M,S>"),
                ("cute", copies, "no-cute-layout", "not injective"),
                ("cute", blocks, "no-cute-layout", "bits of 'block'"),
                ("cute", "padded(3x5x2, 8:+1)", "no-cute-layout", "where no stride says it"),
                ("offsets", BLOCKED, "no-offsets", "has no offsets"),
                ("offsets", copies, "no-offsets", "not injective"),
                ("offsets", "4:3", "no-linear-layout", "stride 3 is not a power of two")):
            done = self.lilac("layout", "--as", form, text, status=REFUSED)
            self.assertEqual(done.stdout, "null\n", text)
            self.assertLocated(done, "<argument 1>", id, 1, reason)
        self.assertEqual(self.lilac("layout", "--as", "cute", xor).stdout,
                         "Sw<1,1,-1> o 0 o (2,(2,2)):(2,(1,4))\n")
        done = self.lilac("layout", "--as", "text", BLOCKED, status=USAGE)
        self.assertIn("--as takes layout, linear, cute or offsets", done.stderr)

    def test_nothing(self):
        self.assertEqual(self.lilac("layout", "-", input="").stdout, "")

    def test_refused(self):
        for type in ("tensor<3x4xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8],"
                     " warpsPerCTA = [1, 1], order = [1, 0]}>>",
                     "tensor<16x16xf32>", "f32", "", "tensor<16x16xf32, #ttg.nonsense<{}>>",
                     "tensor<16x16xf32, #ttg.linear<{register = [], lane = [[2, 0]], warp = [], "
                     "block = []}>>"):
            done = self.lilac("layout", type, BLOCKED, status=REFUSED)
            self.assertEqual(done.stdout.splitlines()[0], "null", type)
            self.assertIn("#ttg.linear", done.stdout.splitlines()[1])
            self.assertRegex(done.stderr, r"^<argument 1>:1:\d+: error: .* \[[a-z-]+\]\n")


class Compile(CommandTest):
    def setUp(self):
        super().setUp()
        self.file = self.write("twice.ttir", TWICE)

    def test_launch_maps(self):
        file = os.path.join(OPTIONS.data, os.pardir, "engine", "describe_loads.ttir")
        words = ("compile", file, "--kernel", "remainder", "--target", "sm_90a", "--emit", "json")
        report = json.loads(self.lilac(*words, "--launch-maps").stdout)
        box = {"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [64, 64], "offset": [], "pitch": 0,
               "l2_promotion": 128}
        m, k, sa, sb = [1, 3], [1, 5], [1, 6], [1, 7]
        self.assertEqual(report["launch_maps"], [
            {"parameter": 8, "base": 0, "sizes": [[m], [k]], "strides": [[sa]], **box},
            {"parameter": 9, "base": 1, "sizes": [[k], [[1 << 31]]], "strides": [[sb]], **box}])
        self.assertEqual(report["launch_conditions"], {"grid": [(1 << 31) - 1] * 3, "parameters": []})
        self.assertEqual(report["tensordesc_meta"], [])
        self.assertNotIn("launch_split", report)
        report = json.loads(self.lilac(*words, "--launch-maps", "--split-sums").stdout)
        self.assertEqual(report["launch_split"],
                         {"iterations": [[1, 5], [63]], "divisor": 64, "clocks": 128, "loads": 16384, "bytes": 16384})
        report = json.loads(self.lilac(*words).stdout)
        self.assertEqual(report["launch_maps"], [])
        self.assertNotIn("launch_conditions", report)

    def test_pitch_of_launch_maps(self):
        """Rows of 64 bytes that begin within sectors are left to the plain kernel, rows of 128 bytes are not: those of the
        kernel, and those of two iterations."""
        for name, row, pitch, *options in (("matmul_i8", 64, 32, "--skip", "resize_tiles"), ("matmul_i8", 128, 0),
                                           ("matmul_f8", 128, 0)):
            file = os.path.join(OPTIONS.data, "corpus", name + ".ttir")
            report = json.loads(self.lilac("compile", file, "--target", "sm_90a", "--launch-maps", "--emit", "json",
                                           *options).stdout)
            self.assertEqual([(one["block_size"][-1], one["pitch"]) for one in report["launch_maps"]], [(row, pitch)] * 2)

    def test_order_of_programs(self):
        file = os.path.join(OPTIONS.data, "corpus", "attention_f16_d128_causal.ttir")
        for options, order in (((), {"axis": "x", "descending": True}), (("--keep-order",), None)):
            report = json.loads(self.lilac("explain", file, "--json", *options).stdout)
            self.assertEqual(report["program_order"], order)

    def test_programs(self):
        """Of a launch, where the masks of stores say how many there are."""
        index = ("%c = arith.constant 128 : i32\n%b = tt.get_program_id x : i32\n%f = arith.muli %b, %c : i32\n"
                 "%g = tt.splat %f : i32 -> tensor<128xi32>\n"
                 "%h = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>\n"
                 "%i = arith.addi %g, %h : tensor<128xi32>")
        text = TWICE.replace("%i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>", index)
        file = self.write("programs.ttir", text)
        self.assertIsNone(json.loads(self.lilac("explain", file, "--json").stdout)["programs"])
        self.assertNotIn("minnctapersm", self.lilac("compile", file).stdout)
        file = self.write("programs.ttir", text.replace("tt.splat %n : i32 -> tensor<128xi32>",
                                                        "arith.constant dense<1000> : tensor<128xi32>"))
        self.assertEqual(json.loads(self.lilac("explain", file, "--json").stdout)["programs"], 8)
        self.assertIn("a launch has 8 programs by the masks of its stores\n", self.lilac("explain", file).stdout)
        self.assertIn(".minnctapersm 1", self.lilac("compile", file).stdout)

    def test_parts(self):
        """Only kernels whose sums can be divided have several blocks for a program."""
        done = self.lilac("run", self.file, "--grid", "1", "--arg", "x=empty:f32:128", "--arg",
                          "o=empty:f32:128", "--arg", "n=8", "--launch-maps", "--split-sums", "--parts", "2", status=REFUSED)
        self.assertRegex(done.stderr, r"no sum of products that several blocks can divide \[launch-condition\]")

    def test_emissions(self):
        self.assertIn(".visible .entry twice(", self.lilac("compile", self.file).stdout)
        self.assertIn("#ttg.linear<", self.lilac("compile", self.file, "--emit", "tile").stdout)
        self.assertIn("ld.global", self.lilac("compile", self.file, "--emit", "simt").stdout)
        done = self.lilac("compile", "-", "--newest-ptx", "8.0", input=TWICE)
        self.assertTrue(done.stdout.startswith(".version 8.0\n"))
        done = self.lilac("compile", "-", "--newest-ptx", "7.8", input=TWICE, status=REFUSED)
        self.assertIn("sm_90a needs PTX ISA version 8.0", done.stderr)
        done = self.lilac("compile", "-", "--emit", "json", "--num-warps=2", input=TWICE)
        self.assertEqual(len(done.stdout.splitlines()), 1)
        report = json.loads(done.stdout)
        self.assertEqual(report["name"], "twice")
        self.assertEqual(report["shared"], 0)
        self.assertEqual(report["num_warps"], 2)
        self.assertEqual(report["num_ctas"], 1)
        self.assertEqual(report["cluster_dims"], [1, 1, 1])
        self.assertEqual(report["target"], "sm_90a")
        for key in ("tmem_size", "global_scratch_size", "profile_scratch_size"):
            self.assertEqual(report[key], 0)
        for key in ("global_scratch_align", "profile_scratch_align"):
            self.assertEqual(report[key], 1)
        self.assertEqual(report["parameters"], [
            {"name": "x", "type": "!tt.ptr<f32>"}, {"name": "o", "type": "!tt.ptr<f32>"},
            {"name": "n", "type": "i32"}])
        names = [each["name"] for each in report["passes"]]
        self.assertEqual(names[:2], ["read", "verify"])
        self.assertEqual(names[-1], "ptx")
        for each in report["passes"]:
            self.assertGreater(each["operations"], 0)
            self.assertGreaterEqual(each["seconds"], 0)

    def test_emitted_tile_reads_back(self):
        for options in ([], ["--no-line-info"]):
            tile = self.lilac("compile", self.file, "--emit", "tile", *options).stdout
            again = self.lilac("compile", "-", "--emit", "tile", *options, input=tile).stdout
            self.assertEqual(tile, again)

    def test_output_file(self):
        ptx = self.lilac("compile", self.file).stdout
        done = self.lilac("compile", self.file, "-o", "twice.ptx", "--json")
        self.assertEqual(json.loads(done.stdout)["name"], "twice")
        with open(self.path("twice.ptx"), encoding="utf-8") as file:
            self.assertEqual(file.read(), ptx)
        self.assertEqual(sorted(os.listdir(self.folder)), ["twice.ptx", "twice.ttir"])

    def test_output_replaces(self):
        os.symlink("real.ptx", self.path("link.ptx"))
        self.write("real.ptx", "old")
        os.chmod(self.path("real.ptx"), 0o640)
        self.lilac("compile", self.file, "-o", "link.ptx")
        self.assertTrue(os.path.islink(self.path("link.ptx")))
        self.assertIn(".entry", open(self.path("real.ptx"), encoding="utf-8").read())
        self.assertEqual(stat.S_IMODE(os.stat(self.path("real.ptx")).st_mode), 0o640)

    def test_output_errors(self):
        done = self.lilac("compile", self.file, "-o", "nowhere/twice.ptx", status=REFUSED)
        self.assertIn("cannot write nowhere/twice.ptx: ", done.stderr)
        done = self.lilac("compile", self.file, "-o", ".", status=REFUSED)
        self.assertIn("cannot write .", done.stderr)
        if os.path.exists("/dev/full"):
            done = self.lilac("compile", self.file, "-o", "/dev/full", status=REFUSED)
            self.assertIn("cannot write /dev/full: ", done.stderr)

    def test_refused_input_leaves_the_output_alone(self):
        self.write("twice.ptx", "old")
        self.write("bad.ttir", TWICE.replace("tt.load", "tt.lod"))
        done = self.lilac("compile", "bad.ttir", "-o", "twice.ptx", "--json", status=REFUSED)
        self.assertEqual(done.stdout, "null\n")
        self.assertEqual(open(self.path("twice.ptx"), encoding="utf-8").read(), "old")

    def test_print_after_and_time(self):
        done = self.lilac("compile", self.file, "-o", os.devnull, "--print-after", "all", "--time",
                          "--verify")
        passes = re.findall(r"(?m)^// ---- after (\w+) ----$", done.stderr)
        times = re.findall(r"(?m)^(\w+) +\d+\.\d(?: +\d+)?$", done.stderr)
        self.assertEqual(times, passes + ["total"])
        done = self.lilac("compile", self.file, "-o", os.devnull, "--print-after", "lower")
        self.assertEqual(re.findall(r"after (\w+)", done.stderr), ["lower"])

    def test_no_line_info(self):
        source = os.path.join(OPTIONS.data, "corpus", "vector_add_f32.ttir")
        self.assertIn(".loc", self.lilac("compile", source).stdout)
        self.assertNotIn(".loc", self.lilac("compile", source, "--no-line-info").stdout)

    def test_unreadable_files(self):
        for name in ("missing.ttir", "."):
            done = self.lilac("compile", name, status=REFUSED)
            self.assertIn("cannot read %s: " % name, done.stderr)

    def test_bad_input(self):
        """Each kind: the text, the diagnostic's id, its line."""
        truncated = TWICE[:TWICE.index("%v = tt.load") + 14]
        not_onto = TWICE.replace(
            "tensor<128xi32>", "tensor<128xi32, #ttg.linear<{register = [], lane = [[1], [2], [4], "
            "[8], [32]], warp = [[0], [0]], block = []}>>", 1)
        for text, id, line, words in [
                (truncated, None, 8, None),
                (TWICE.replace("tt.load", "tt.lod"), "unknown-operation", 8, "tt.lod"),
                (TWICE.replace("%v, %v", "%v, %z"), "undefined-value", 9, "z"),
                (TWICE.replace("addf %v, %v : tensor<128xf32>", "addf %v, %v : tensor<128xf16>"),
                 None, 9, None),
                (TWICE.replace("addf %v, %v", "addf %v, %n"), None, 9, None),
                (TWICE.replace("128", "96"), None, 3, "96"),
                (not_onto, None, 3, None),
                ("", None, None, None),
                ("module {", None, 1, None),
                ("module {\n}\n", "no-kernel", 1, None),
                ("\x00\xff nonsense", None, 1, None),
        ]:
            with open(self.path("bad.ttir"), "w", encoding="latin-1") as file:
                file.write(text)
            done = command.run(OPTIONS.lilac, "compile", "bad.ttir", cwd=self.folder)
            self.assertEqual(done.returncode, REFUSED, text[:200] + done.stderr)
            self.assertEqual(done.stdout, "")
            first = re.match(r"bad\.ttir:(\d+):\d+: error: (.*) \[([a-z-]+)\]\n", done.stderr)
            self.assertIsNotNone(first, "%r gives %s" % (text[:200], done.stderr))
            if text.strip():
                self.assertRegex(done.stderr, r"(?m)^ *\^~*$")
            if line:
                self.assertEqual(int(first.group(1)), line, done.stderr)
            if id:
                self.assertEqual(first.group(3), id, done.stderr)
            if words:
                self.assertIn(words, first.group(2))

    def test_every_prefix_is_refused_or_done(self):
        """A file cut anywhere is refused with a place, and nothing worse."""
        for end in range(0, len(TWICE), 37):
            done = command.run(OPTIONS.lilac, "compile", "-", "--no-line-info", input=TWICE[:end])
            self.assertEqual(done.returncode, REFUSED, TWICE[:end])
            self.assertRegex(done.stderr, r"^<stdin>:\d+:\d+: error: ")

    def test_several_errors_in_one_run(self):
        text = TWICE.replace("tt.load", "tt.lod").replace("arith.addf", "arith.adf")
        done = self.lilac("compile", "-", input=text, status=REFUSED)
        self.assertIn("<stdin>:8:", done.stderr)
        self.assertIn("<stdin>:9:", done.stderr)


class TwiceTest(CommandTest):
    """Those of a kernel that doubles: its file, its operand and its answer."""

    def setUp(self):
        super().setUp()
        self.file = self.write("twice.ttir", TWICE)
        self.values = [0.25 * i - 7 for i in range(100)]
        npy.write(self.path("x.npy"), "f4", self.values)
        npy.write(self.path("twice.npy"), "f4", [2 * value for value in self.values], (10, 10))


class Run(TwiceTest):
    def twice(self, *words, status=DONE, x="@x.npy", o="zeros:f32:10x10", n=100):
        given = []
        for name, value in (("x", x), ("o", o), ("n", n)):
            if value is not None:
                given += ["--arg", "%s=%s" % (name, value)]
        return self.lilac("run", self.file, "--grid", "1", *given, *words, status=status)

    def test_result(self):
        done = self.twice("--save", "o=o.npy", "--json", "--expect", "o=twice.npy,0")
        report = json.loads(done.stdout)
        self.assertEqual(report["kernel"], "twice")
        self.assertEqual(report["grid"], [1, 1, 1])
        self.assertEqual(report["findings"], [])
        self.assertEqual(report["expect"], [{"name": "o", "largest_error": 0, "relative_error": 0,
                                             "tolerance": 0, "passed": True}])
        self.assertEqual(report["counters"]["blocks"], 1)
        self.assertEqual(report["counters"]["global_load_bytes"], 400)
        self.assertEqual(report["counters"]["global_store_bytes"], 400)
        values, descr, shape = npy.read(self.path("o.npy"))
        self.assertEqual((descr, shape), ("f4", (10, 10)))
        self.assertEqual(values, [2 * value for value in self.values])

    def test_table(self):
        done = self.twice("--expect", "o=twice.npy")
        self.assertTrue(done.stdout.startswith("twice: 1 × 1 × 1 blocks of 4 warps"), done.stdout)
        self.assertIn("o: largest error 0 ", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_same_file_twice_is_two_buffers(self):
        self.twice("--save", "x=after.npy", o="@x.npy")
        self.assertEqual(npy.read(self.path("after.npy"))[0], self.values)

    def test_part_of_a_buffer(self):
        npy.write(self.path("o.npy"), "f4", [5.0] * 128)
        self.twice("--save", "o=o.npy", o="@o.npy", n=3)
        self.assertEqual(npy.read(self.path("o.npy"))[0],
                         [2 * value for value in self.values[:3]] + [5.0] * 125)

    def test_failed_expectation(self):
        wrong = [2 * value for value in self.values]
        wrong[17] += 1
        npy.write(self.path("wrong.npy"), "f4", wrong)
        done = self.twice("--expect", "o=wrong.npy", status=CHECK)
        self.assertIn("o: largest error 1 (element 17 of 100)", done.stdout)
        self.assertIn("FAILED", done.stdout)
        self.twice("--expect", "o=wrong.npy,0.5")
        wrong[17] = float("nan")
        npy.write(self.path("wrong.npy"), "f4", wrong)
        done = self.twice("--expect", "o=wrong.npy,0.5", "--json", status=CHECK)
        self.assertIsNone(json.loads(done.stdout)["expect"][0]["relative_error"])

    def test_uninitialised_reads_are_found(self):
        done = self.twice("--json", x="empty:f32:100")
        report = json.loads(done.stdout)
        self.assertGreater(report["counters"]["uninitialised_reads"], 0)
        self.assertTrue(report["findings"])
        self.assertIn("warning: ", done.stderr)

    def test_out_of_bounds_traps(self):
        done = self.twice("--json", n=101, status=REFUSED)
        self.assertEqual(done.stdout, "null\n")
        self.assertRegex(done.stderr, r"twice\.ttir:\d+:\d+: error: |error: .*\[out-of-bounds\]")

    def test_missing_and_wrong_arguments_together(self):
        done = self.twice("--arg", "rows=4", "--arg", "x=@x.npy", x="@x.npy", o=None, n=None,
                          status=REFUSED)
        found = self.assertLocated(done, self.file, "missing-argument", 2, "!tt.ptr<f32>")
        self.assertEqual(TWICE.splitlines()[1][int(found.group(2)) - 1:][:2], "%o")
        self.assertIn("parameter 'n' of type i32 has no value", done.stderr)
        self.assertLocated(done, "<argument 2>", "unknown-argument", 1, "'rows'")
        self.assertLocated(done, "<argument 3>", "duplicate-argument", 1, "'x'")

    def test_wrong_values(self):
        npy.write(self.path("half.npy"), "f2", [1.0] * 100)
        for given, id, words in [
                ({"x": "@half.npy"}, "argument-type",
                 "half.npy holds float16, but the parameter points to f32, which needs float32"),
                ({"x": "@none.npy"}, "invalid-npy", "cannot be read"),
                ({"x": "7"}, "argument-type", "a buffer is needed"),
                ({"x": "zeros:f16:100"}, "argument-type", "a buffer of f16"),
                ({"x": "zeros:f32:"}, "argument-type", "no shape"),
                ({"x": "zeros:f32:4y4"}, "argument-type", "no shape"),
                ({"x": "zeros:f32:99999x99999x99999"}, "argument-type", "no shape"),
                ({"x": "zeros:q7:4"}, "argument-type", "does not name an element type"),
                ({"x": "random:f32:4x4:9"}, "argument-type", "random floats take no bound"),
                ({"x": "random:f32:4x"}, "argument-type", "no shape"),
                ({"n": "@x.npy"}, "argument-type", "a number is needed"),
                ({"n": "many"}, "argument-type", "'many' is no integer"),
                ({"n": "1.5"}, "argument-type", "'1.5' is no integer"),
                ({"n": "4294967296"}, "argument-range", "does not fit i32"),
                ({"n": "-2147483649"}, "argument-range", "does not fit i32"),
                ({"n": "99999999999999999999999"}, "argument-range", "does not fit i32"),
        ]:
            done = self.twice(status=REFUSED, **given)
            self.assertLocated(done, "<argument %d>" % ("xon".index(*given) + 1), id, 1, words)
            self.assertRegex(done.stderr, r"(?m)^%s:2:\d+: note: parameter '%s' has type "
                             % (re.escape(self.file), *given))

    def test_random_buffers(self):
        """The same ones in every run, other ones for another parameter, and from -1 to 1."""
        words = ["--save", "x=x1.npy", "--save", "o=o1.npy"]
        self.twice(*words, x="random:f32:10x10", o="random:f32:10x10", n=0)
        first, other = (npy.read(self.path(name))[0] for name in ("x1.npy", "o1.npy"))
        self.twice(*words, x="random:f32:10x10", o="random:f32:10x10", n=0)
        self.assertEqual(npy.read(self.path("x1.npy"))[0], first)
        self.assertNotEqual(first, other)
        self.assertTrue(all(-1 <= value < 1 for value in first))
        self.assertTrue(len(set(first)) > 90 and min(first) < -0.5 and max(first) > 0.5)

    def test_random_integers(self):
        text = TWICE.replace("!tt.ptr<f32>", "!tt.ptr<i16>").replace("xf32>", "xi16>")
        self.file = self.write("integers.ttir", text.replace("arith.addf", "arith.addi"))
        self.twice("--save", "x=x.npy", x="random:i16:1000:7", o="zeros:i16:100", n=0)
        self.assertEqual(sorted(set(npy.read(self.path("x.npy"))[0])), list(range(7)))
        for value, id, words in [("random:i16:100", "argument-type", "need a bound"),
                                 ("random:i16:100:0", "argument-range", "no bound of i16"),
                                 ("random:i16:100:32769", "argument-range", "no bound of i16"),
                                 ("random:i16:100:few", "argument-range", "no bound of i16")]:
            done = self.twice(status=REFUSED, x=value, o="zeros:i16:100")
            self.assertLocated(done, "<argument 1>", id, 1, words)

    def test_spellings_of_integers(self):
        for n, number in (("1e2", 100), ("1_00", 100), ("100.0", 100), ("-1e2", -100), ("+7", 7)):
            done = self.twice(n=n, status=REFUSED)
            self.assertLocated(done, "<argument 3>", "argument-type", 1, "write %d" % number)
        for n in ("1.5", "ten", "1e99", "nan", "0x"):
            self.twice(n=n, status=REFUSED)

    def test_numbers_at_their_limits(self):
        for n in ("-2147483648", "0", "0x10", "4294967295"):
            self.twice(n=n)

    def test_divisibility_is_held(self):
        text = TWICE.replace("%n: i32", "%n: i32 {tt.divisibility = 16 : i32}")
        self.file = self.write("divisible.ttir", text)
        self.twice(n=96)
        done = self.twice(n=100, status=REFUSED)
        self.assertLocated(done, "<argument 3>", "argument-not-divisible", 1, "100")

    def test_unknown_buffers(self):
        for option in ("--save", "--expect"):
            done = self.twice(option, "y=y.npy", status=REFUSED)
            self.assertIn("has no buffer 'y'", done.stderr)
            self.twice(option, "n=y.npy", status=REFUSED)
        done = self.twice("--expect", "o=x.npy,1e9", "--expect", "x=o.npy", status=REFUSED)
        self.assertIn("[invalid-npy]", done.stderr)

    def test_kernels_by_name(self):
        second = TWICE.replace("@twice", "@again").replace("addf", "mulf")
        both = TWICE.rstrip()[:-1] + second.split("\n", 1)[1]
        self.file = self.write("both.ttir", both)
        done = self.twice(status=REFUSED)
        self.assertIn("[unknown-kernel]", done.stderr)
        self.twice("--kernel", "thrice", status=REFUSED)
        self.twice("--kernel", "twice", "--expect", "o=twice.npy")
        self.twice("--kernel", "again", "--save", "o=o.npy")
        self.assertEqual(npy.read(self.path("o.npy"))[0], [value ** 2 for value in self.values])
        report = json.loads(self.lilac("compile", self.file, "--emit", "json").stdout)
        self.assertEqual(report["name"], "twice")
        self.assertEqual([each["name"] for each in report["more_kernels"]], ["again"])


class Scalars(CommandTest):
    """A kernel stores its scalar parameter: what the command line said arrives."""

    KEEP = """module {
  tt.func public @keep(%%s: %(type)s, %%o: !tt.ptr<%(type)s>) {
    tt.store %%o, %%s : !tt.ptr<%(type)s>
    tt.return
  }
}
"""

    def keep(self, type, value, status=DONE):
        file = self.write("keep.ttir", self.KEEP % {"type": type})
        done = self.lilac("run", file, "--grid", 1, "--arg", "s=%s" % value, "--arg",
                          "o=empty:%s:1" % type, "--save", "o=o.npy", status=status)
        return done if status else npy.read(self.path("o.npy"))[0][0]

    def test_integers(self):
        for bits in (8, 16, 32, 64):
            type, half = "i%d" % bits, 1 << (bits - 1)
            for value in (0, 1, -1, half - 1, -half, half, 2 * half - 1):
                self.assertEqual((self.keep(type, value) - value) % (2 * half), 0, (type, value))
            for value in (2 * half, -half - 1, 10 ** 30, -10 ** 30):
                done = self.keep(type, value, status=REFUSED)
                self.assertLocated(done, "<argument 1>", "argument-range", 1, "does not fit " + type)
        self.assertEqual(self.keep("i32", "-0x10"), -16)

    def test_floats(self):
        for type, rounded in [("f32", npy.round_f32), ("f16", npy.round_f16), ("f64", float)]:
            for value in (0.1, -3.5, 1e-5, 1000.25):
                self.assertEqual(self.keep(type, value), rounded(value))
        for value in (0.1, -3.5, 1e-5, 1000.25):
            self.assertEqual(self.keep("bf16", value), npy.bf16_bits(value))
        self.assertEqual(self.keep("f32", "inf"), float("inf"))
        self.assertEqual(self.keep("f32", "-inf"), -float("inf"))
        self.assertNotEqual(self.keep("f32", "nan"), self.keep("f32", "nan"))
        for type, value in [("f32", "1e39"), ("f16", "65536"), ("bf16", "-1e39"), ("f64", "1e999")]:
            done = self.keep(type, value, status=REFUSED)
            self.assertLocated(done, "<argument 1>", "argument-range", 1, "does not fit " + type)
        for value in ("one", "1.0.0", "@o.npy", "1 2"):
            done = self.keep("f32", value, status=REFUSED)
            self.assertLocated(done, "<argument 1>", "argument-type", 1)

    def test_what_has_no_value(self):
        file = self.write("pointer.ttir", """module {
  tt.func public @pointer(%p: !tt.ptr<i128>) {
    tt.return
  }
}
""")
        done = self.lilac("run", file, "--grid", 1, "--arg", "p=zeros:i128:4",
                          status=REFUSED)
        self.assertLocated(done, "<argument 1>", "unsupported-parameter", 1)


class Npy(CommandTest):
    """Buffers of every element type through a kernel that copies."""

    COPY = """module {
  tt.func public @copy(%%x: !tt.ptr<%(type)s>, %%o: !tt.ptr<%(type)s>) {
    %%i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %%p = tt.splat %%x : !tt.ptr<%(type)s> -> tensor<16x!tt.ptr<%(type)s>>
    %%q = tt.addptr %%p, %%i : tensor<16x!tt.ptr<%(type)s>>, tensor<16xi32>
    %%v = tt.load %%q : tensor<16x!tt.ptr<%(type)s>>
    %%r = tt.splat %%o : !tt.ptr<%(type)s> -> tensor<16x!tt.ptr<%(type)s>>
    %%s = tt.addptr %%r, %%i : tensor<16x!tt.ptr<%(type)s>>, tensor<16xi32>
    tt.store %%s, %%v : tensor<16x!tt.ptr<%(type)s>>
    tt.return
  }
}
"""

    def copy(self, type, status=DONE, o=None):
        file = self.write("copy.ttir", self.COPY % {"type": type})
        return self.lilac("run", file, "--grid", 1, "--num-warps", 1, "--arg", "x=@x.npy", "--arg",
                          "o=" + (o or "empty:%s:4x4" % type), "--save", "o=o.npy", "--expect",
                          "o=x.npy,0", status=status)

    def test_every_type(self):
        for type, descr, made in [("f16", "f2", "f2"), ("f32", "f4", "f4"), ("f64", "f8", "f8"),
                                  ("i8", "i1", "i1"), ("i8", "u1", "i1"), ("i16", "i2", "i2"),
                                  ("i16", "u2", "i2"), ("i32", "i4", "i4"), ("i32", "u4", "i4"),
                                  ("i64", "i8", "i8"), ("i64", "u8", "i8"), ("bf16", "i2", "i2"),
                                  ("bf16", "u2", "i2"), ("f8E4M3FN", "u1", "u1"),
                                  ("f8E5M2", "i1", "u1")]:
            with self.subTest(type=type, descr=descr):
                values = [float(i) for i in range(16)] if descr[0] == "f" else list(range(100, 116))
                npy.write(self.path("x.npy"), descr, values, (2, 8))
                self.copy(type)
                self.assertEqual(npy.read(self.path("o.npy")), (values, made, (4, 4)))

    def test_formats_2_and_3(self):
        npy.write(self.path("x.npy"), "f4", [float(i) for i in range(16)])
        with open(self.path("x.npy"), "rb") as file:
            data = file.read()
        for version in (2, 3):
            with open(self.path("x.npy"), "wb") as file:
                file.write(data[:6] + bytes([version, 0]) + data[8:10] + b"\0\0" + data[10:])
            self.copy("f32")

    def test_saved_with_the_type_and_shape_it_had(self):
        npy.write(self.path("x.npy"), "u2", list(range(16)))
        npy.write(self.path("y.npy"), "u2", [0] * 16, (2, 1, 8))
        self.copy("bf16", o="@y.npy")
        self.assertEqual(npy.read(self.path("o.npy")), (list(range(16)), "u2", (2, 1, 8)))

    def test_files_of_ml_dtypes(self):
        """numpy saves ml_dtypes' bfloat16 and 8-bit floats as bytes without a type, or as 'f1'."""
        for type, descr, size in (("bf16", "<V2", 2), ("f8E4M3FN", "<V1", 1), ("f8E5M2", "<f1", 1)):
            data = bytes(range(16 * size))
            self.header("{'descr': '%s', 'fortran_order': False, 'shape': (16,), }" % descr, data)
            self.copy(type)
            self.lilac("run", self.path("copy.ttir"), "--grid", 1, "--arg", "x=@x.npy", "--arg", "o=@x.npy",
                       "--save", "o=o.npy")
            with open(self.path("o.npy"), "rb") as file:
                saved = file.read()
            self.assertTrue(saved.endswith(data))
            self.assertIn(b"V%d'" % size, saved)
        self.header("{'descr': '<V2', 'fortran_order': False, 'shape': (16,), }", bytes(32))
        self.assertIn("elements of 2 bytes without a type", self.copy("f16", status=REFUSED).stderr)

    def header(self, text, data=b"\0" * 64, version=1):
        text = text.encode()
        length = struct.pack("<H" if version == 1 else "<I", len(text))
        with open(self.path("x.npy"), "wb") as file:
            file.write(b"\x93NUMPY" + bytes([version, 0]) + length + text + data)

    def test_refused(self):
        good = "{'descr': '<f4', 'fortran_order': False, 'shape': (16,), }"
        self.header(good)
        self.copy("f32")
        for text, words in [
                (good.replace("<f4", ">f4"), "big-endian"),
                (good.replace("False", "True").replace("16,", "4, 4"), "Fortran order"),
                (good.replace("'<f4'", "[('a', '<f4')]"), "records"),
                (good.replace("<f4", "<c8"), "'<c8'"),
                (good.replace("<f4", "<U4"), "'<U4'"),
                (good.replace("(16,)", "(17,)"), "cut short"),
                (good.replace("(16,)", "(-1,)"), "no number"),
                (good.replace("(16,)", "(99999999999999999999,)"), "no number"),
                (good.replace("(16,)", "(4294967296, 4294967296)"), "more than"),
                (good.replace("(16,)", "(" + "1, " * 33 + ")"), "32 dimensions"),
                (good.replace("'shape'", "'form'"), "unknown entry 'form'"),
                (good.replace("'shape': (16,), ", ""), "descr, fortran_order and shape"),
                (good[:-1], "malformed"),
                (good[:20], "malformed"),
                ("", "no dictionary"),
        ]:
            self.header(text)
            done = self.copy("f32", status=REFUSED)
            self.assertLocated(done, "<argument 1>", "invalid-npy", 1, words)
        for data, words in [(b"", "no .npy file"), (b"\x93NUMPY", "no .npy file"),
                            (b"\x93NUMPY\x01\x00", "cut short in its header"),
                            (b"\x93NUMPY\x01\x00\x40\x00{", "cut short in its header"),
                            (b"\x93NUMPY\x04\x00\x40\x00{", "format 4.0"),
                            (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", "longer than 1 MiB"),
                            (b"PK\x03\x04" * 10, "no .npy file")]:
            with open(self.path("x.npy"), "wb") as file:
                file.write(data)
            done = self.copy("f32", status=REFUSED)
            self.assertLocated(done, "<argument 1>", "invalid-npy", 1, words)

    def test_scalars_and_nothing(self):
        text = """module {
  tt.func public @one(%x: !tt.ptr<f32>, %o: !tt.ptr<f32>, %e: !tt.ptr<f32>) {
    %v = tt.load %x : !tt.ptr<f32>
    tt.store %o, %v : !tt.ptr<f32>
    tt.return
  }
}
"""
        file = self.write("one.ttir", text)
        npy.write(self.path("x.npy"), "f4", [2.5], ())
        npy.write(self.path("none.npy"), "f4", [], (0, 3))
        self.lilac("run", file, "--grid", 1, "--arg", "x=@x.npy", "--arg", "o=@x.npy", "--arg",
                   "e=@none.npy", "--save", "o=o.npy", "--save", "e=e.npy")
        self.assertEqual(npy.read(self.path("o.npy")), ([2.5], "f4", ()))
        self.assertEqual(npy.read(self.path("e.npy")), ([], "f4", (0, 3)))


def main():
    global OPTIONS
    OPTIONS = command.parse_arguments(__doc__)
    parts = {"usage": Usage, "layout": Layout, "compile": Compile, "run": Run, "scalars": Scalars,
             "npy": Npy}
    suite = unittest.TestSuite()
    for name in OPTIONS.names or parts:
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(parts[name]))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)


if __name__ == "__main__":
    main()
