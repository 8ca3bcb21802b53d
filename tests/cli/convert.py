"""lilac convert and lilac swizzle from outside: plans with their simulations, every form of output, bad input."""

import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cli  # noqa: E402
import command  # noqa: E402

DONE, REFUSED, USAGE = 0, 1, 2


def blocked(shape, element, size, lanes, warps, order="[1, 0]"):
    return ("tensor<%sx%s, #ttg.blocked<{sizePerThread = %s, threadsPerWarp = %s, warpsPerCTA = %s, order = %s}>>"
            % (shape, element, size, lanes, warps, order))


def linear(shape, element, register, lane, warp="[]", block="[]"):
    return ("tensor<%sx%s, #ttg.linear<{register = %s, lane = %s, warp = %s, block = %s}>>"
            % (shape, element, register, lane, warp, block))


# The article's transpose: 16 × 32 words of one warp, rows to columns.
ROWS = linear("16x32", "f32", "[[1, 0], [2, 0], [4, 0], [8, 0]]", "[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]]")
COLUMNS = linear("16x32", "f32", "[[0, 2], [0, 4], [0, 8], [0, 16]]", "[[1, 0], [2, 0], [4, 0], [8, 0], [0, 1]]")
# A register bit and a lane bit change places.
PAIRS = linear("64", "f32", "[[1]]", "[[2], [4], [8], [16], [32]]")
HALVES = linear("64", "f32", "[[2]]", "[[1], [4], [8], [16], [32]]")
# Four warps: rows, and columns.
ROW = blocked("64x64", "f16", "[1, 8]", "[4, 8]", "[4, 1]")
COLUMN = blocked("64x64", "f16", "[8, 1]", "[8, 4]", "[1, 4]", "[0, 1]")
# Both hold the rows' highest bit in registers, so that a half can go after the other.
TALL, TALL_COLUMN = (type.replace("64x64", "128x64") for type in (ROW, COLUMN))
MEMORY = ("!ttg.memdesc<64x64xf16, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>, "
          "#ttg.shared_memory, mutable>")


# Two blocks: halves by rows, and by columns.
CLUSTER = (blocked("64x64", "f32", "[1, 4]", "[4, 8]", "[4, 1]", "[1, 0], CGALayout = [[1, 0]]"),
           blocked("64x64", "f32", "[4, 1]", "[8, 4]", "[1, 4]", "[0, 1], CGALayout = [[0, 1]]"))


class MovementTest(cli.CommandTest):
    def lines(self, subcommand, pairs, *words, status=DONE):
        text = "".join("%s\t%s\n" % pair for pair in pairs)
        return self.lilac(subcommand, "-", *words, input=text, status=status).stdout.splitlines()

    def json(self, subcommand, source, target, *words):
        return json.loads(self.lilac(subcommand, source, target, "--json", *words).stdout)

    def refused_pairs(self, subcommand):
        """(words, where, id, text) for pairs that both subcommands refuse."""
        return [
            ((ROW, COLUMN.replace("64x64", "64x32")), "<argument 2>", "no-conversion", ""),
            ((ROW, PAIRS.replace("f32", "f16")), "<argument 2>", "no-conversion", ""),
            ((ROW, COLUMN.replace("f16", "bf16")), "<argument 2>", "element-types-differ", ""),
            ((ROW, COLUMN.replace("f16", "!tt.ptr<f16>")), "<argument 2>", "element-types-differ", ""),
            ((ROW.replace("f16", "i4"), COLUMN.replace("f16", "i4")), "<argument 2>", "no-conversion", ""),
            ((MEMORY, ROW), "<argument 1>", "layout-of-memory", ""),
            ((ROW, MEMORY), "<argument 2>", "layout-of-memory", ""),
            ((ROW, "(64,64):(64,1)"), "<argument 2>", "layout-of-memory", ""),
            ((ROW, COLUMN.replace("[1, 4]", "[1, 2]")), "<argument 2>", "no-conversion", "warp"),
            ((ROW, COLUMN, "--target", "gfx942"), "<argument 2>", "no-conversion", "lanes"),
            ((ROW, COLUMN, "--scratch", "16"), "<argument 2>", "no-conversion",
             "bytes of shared memory"),
            (("tensor<", COLUMN), "<argument 1>", "syntax", ""),
        ]

    def check_refusals(self, subcommand):
        for words, where, id, text in self.refused_pairs(subcommand):
            done = self.lilac(subcommand, *words, status=REFUSED)
            self.assertEqual(done.stdout, "null\n", words)
            self.assertLocated(done, where, id, text=text)
        done = self.lilac(subcommand, "tensor<", "tensor<", status=REFUSED)
        self.assertIn("<argument 1>:", done.stderr)
        self.assertIn("<argument 2>:", done.stderr)
        done = self.lilac(subcommand, "-", "--json", status=REFUSED,
                          input="%s\t%s\nno tab\n%s\t%s\n\n" % (ROW, COLUMN, COLUMN, ROW))
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([answer is None for answer in answers], [False, True, False, True])
        self.assertLocated(done, "<stdin>", "pair-expected", line=2)
        self.assertEqual(self.lilac(subcommand, "-", input="").stdout, "")

    def check_usage(self, subcommand):
        for words, hint in [
                ([], "two tensor types, or a file or - with pairs of them"), ([ROW], "two tensor types"),
                ([ROW, COLUMN, ROW], "two tensor types"), (["-", "-", "-"], "two tensor types"),
                ([ROW, COLUMN, "--target", "sm_1"], "no device 'sm_1'"),
                ([ROW, COLUMN, "--scratch", "many"], "a number of bytes, not 'many'"),
                ([ROW, COLUMN, "--scratch", "0"], "a number of bytes"),
                ([ROW, COLUMN, "--scratch", "99999999999"], "a number of bytes"),
                ([ROW, COLUMN, "--jsn"], "did you mean '--json'")]:
            self.assertIn(hint, self.lilac(subcommand, *words, status=USAGE).stderr, words)


class Convert(MovementTest):
    KEYS = ("kind", "instructions", "wavefronts", "lower_bound", "simulated", "correct", "as_planned", "shared_bytes")

    def plan(self, source, target, *words):
        answer = self.json("convert", source, target, *words)
        for key in self.KEYS:
            self.assertIn(key, answer)
        self.assertIs(answer["correct"], True)
        self.assertIs(answer["as_planned"], True)
        self.assertEqual(answer["simulated"], answer["wavefronts"])
        return answer

    def test_nothing_to_do(self):
        plan = self.plan(ROW, ROW)
        self.assertEqual(plan["kind"], "none")
        self.assertFalse(any(plan["instructions"].values()))

    def test_registers(self):
        turned = ROWS.replace("[[1, 0], [2, 0], [4, 0], [8, 0]]", "[[8, 0], [2, 0], [1, 0], [4, 0]]")
        plan = self.plan(ROWS, turned)
        self.assertEqual(plan["kind"], "registers")
        self.assertFalse(any(plan["instructions"].values()))

    def test_shuffles(self):
        """One swap of a register bit and a lane bit: half as many shuffles as registers."""
        plan = self.plan(PAIRS, HALVES)
        self.assertEqual(plan["kind"], "shuffles")
        self.assertEqual(plan["instructions"]["shuffle"], 1)
        self.assertEqual(plan["instructions"]["select"], 3)
        self.assertEqual(plan["wavefronts"], {"store": 0, "load": 0})

    def test_the_transpose(self):
        """16 + 256 wavefronts in row-major memory, 16 + 16 at best."""
        self.assertEqual(self.plan(ROWS, COLUMNS, "--through", "unswizzled")["wavefronts"], {"store": 16, "load": 256})
        plan = self.plan(ROWS, COLUMNS, "--through", "shared")
        self.assertEqual(plan["wavefronts"], {"store": 16, "load": 16})
        self.assertEqual(plan["shared_bytes"], 16 * 32 * 4)
        plan = self.plan(ROWS, COLUMNS, "--through", "shuffles")
        self.assertEqual(plan["kind"], "shuffles")
        self.assertEqual(plan["instructions"]["store"], 0)

    def test_widths(self):
        for element in ("i1", "i8", "f8E4M3FN", "f16", "bf16", "f32", "tf32", "i64", "f64", "i128", "!tt.ptr<f32>"):
            for way in ("any", "shared", "unswizzled"):
                self.plan(ROW.replace("f16", element), COLUMN.replace("f16", element), "--through", way)

    def test_scratch_in_rounds(self):
        whole = self.plan(TALL, TALL_COLUMN, "--through", "shared")
        half = self.plan(TALL, TALL_COLUMN, "--through", "shared", "--scratch", "8192")
        self.assertEqual((whole["shared_bytes"], half["shared_bytes"]), (16384, 8192))
        self.assertEqual(half["wavefronts"], whole["wavefronts"])
        self.assertGreater(half["instructions"]["barrier"], whole["instructions"]["barrier"])

    def test_devices(self):
        for device in ("sm_80", "sm_90a", "sm_100a", "gfx1201"):
            self.plan(ROW, COLUMN, "--target", device)
        wide = [type.replace(a, b) for type, a, b in ((ROW, "[4, 8]", "[8, 8]"), (COLUMN, "[8, 4]", "[8, 8]"))]
        text = self.lilac("convert", *wide).stdout
        self.assertIn("gfx942", text)

    def test_clusters(self):
        """Counts are of one block, as everywhere; the text says those of all blocks together."""
        plan = self.plan(*CLUSTER)
        self.assertEqual(plan["kind"], "cluster")
        self.assertEqual(plan["wavefronts"], {"store": 64, "load": 64})
        text = self.lilac("convert", *CLUSTER).stdout
        self.assertIn("simulated on sm_90a, 2 blocks together\n", text)
        self.assertRegex(text, r"(?m)^  store wavefronts +128$")
        self.assertIn("ld.shared::cluster", self.lilac("convert", *CLUSTER, "--emit", "ptx").stdout)
        done = self.lilac("convert", *CLUSTER, "--target", "sm_80", status=REFUSED)
        self.assertLocated(done, "<argument 2>", "no-conversion")

    def test_text(self):
        text = self.lilac("convert", ROWS, COLUMNS, "--through", "shared").stdout
        self.assertIn("simulated on sm_90a\n", text)
        self.assertRegex(text, r"(?m)^  store wavefronts +16$")
        self.assertRegex(text, r"(?m)^  load wavefronts +16$")
        self.assertIn("every one of 512 registers of all threads has its element\n", text)

    def test_emit(self):
        self.assertEqual(self.lilac("convert", PAIRS, HALVES, "--emit", "json").stdout,
                         self.lilac("convert", PAIRS, HALVES, "--json").stdout)
        simt = self.lilac("convert", PAIRS, HALVES, "--emit", "simt").stdout
        self.assertEqual(len(re.findall(r"= shuffle", simt)), 1)
        ptx = self.lilac("convert", PAIRS, HALVES, "--emit", "ptx").stdout
        self.assertEqual(len(re.findall(r"shfl\.sync", ptx)), 1)
        self.assertIn(".visible .entry convert(", ptx)
        done = self.lilac("convert", *(type.replace("[32]]", "[32], [0]]") for type in (PAIRS, HALVES)), "--emit", "ptx",
                          status=REFUSED)
        self.assertEqual(done.stdout, "null\n")
        self.assertIn("unsupported-on-target", done.stderr)

    def test_lines(self):
        lines = self.lines("convert", [(ROW, COLUMN), (ROW, ROW), (PAIRS, HALVES)])
        self.assertEqual(len(lines), 3)
        self.assertTrue(lines[1].startswith("none"))
        self.assertTrue(lines[2].startswith("shuffles: shuffles 1, selects 3; "), lines[2])
        for line in lines:
            self.assertTrue(line.endswith("; simulated, as planned"), line)
        answers = [json.loads(line) for line in self.lines("convert", [(ROW, COLUMN), (PAIRS, HALVES)], "--json")]
        self.assertEqual(answers[1]["kind"], "shuffles")

    def test_refused(self):
        self.check_refusals("convert")
        done = self.lilac("convert", ROW, COLUMN, "--through", "shuffles", status=REFUSED)
        self.assertLocated(done, "<argument 2>", "no-conversion")

    def test_usage(self):
        self.check_usage("convert")
        for words, hint in [
                (["--emit", "cubin"], "ptx, simt or json, not 'cubin'"),
                (["--through", "magic"], "any, shuffles, shared or unswizzled, not 'magic'"),
                (["--emit", "ptx", "--json"], "cannot both be")]:
            self.assertIn(hint, self.lilac("convert", ROW, COLUMN, *words, status=USAGE).stderr)
        self.assertIn("one pair", self.lilac("convert", "-", "--emit", "simt", status=USAGE).stderr)
        self.assertIn("--through", self.lilac("convert", "--help").stdout)


class Swizzle(MovementTest):
    def swizzle(self, source, target, *words):
        answer = self.json("swizzle", source, target, *words)
        self.assertIs(answer["correct"], True)
        for side in ("store", "load"):
            self.assertEqual(answer["simulated"][side], answer[side]["wavefronts"])
            self.assertGreaterEqual(answer[side]["wavefronts"], answer["lower_bound"][side])
        return answer

    def test_the_transpose(self):
        """With words alone it is the article's; with all that the device has, another one as good."""
        answer = self.swizzle(ROWS, COLUMNS, "--vector", "4")
        self.assertEqual(answer["offset"], "32*m + (n ^ 2*m)")
        self.assertEqual(answer["bits"], ["n0", "n1^m0", "n2^m1", "n3^m2", "n4^m3", "m0", "m1", "m2", "m3"])
        self.assertEqual(answer["unswizzled"], {"store": 16, "load": 256})
        self.assertEqual(answer["simulated"], {"store": 16, "load": 16})
        self.assertEqual([answer[side]["bytes"] for side in ("store", "load")], [4, 4])
        self.assertIs(answer["lower_bound"]["met"], True)
        self.assertEqual(answer["named"],
                         "#ttg.swizzled_shared<{vec = 2, perPhase = 1, maxPhase = 16, order = [1, 0]}>")
        self.assertEqual(answer["cute"], "Sw<4,1,4> o 0 o (16,32):(32,1)")
        answer = self.swizzle(ROWS, COLUMNS)
        self.assertEqual(answer["simulated"], {"store": 16, "load": 16})
        self.assertGreater(answer["store"]["bytes"], 4)

    def test_text(self):
        text = self.lilac("swizzle", ROWS, COLUMNS, "--vector", "4").stdout
        self.assertTrue(text.startswith("#ttg.shared_linear<"), text)
        self.assertIn("  offset   32*m + (n ^ 2*m)\n", text)
        self.assertIn("  as       #ttg.swizzled_shared<", text)
        self.assertIn("  CuTe     Sw<4,1,4> o 0 o (16,32):(32,1)\n", text)
        self.assertIn("  bits     0: n0, 1: n1^m0, ", text)
        self.assertIn("  store    16 vector instructions of 4 bytes a thread, 16 wavefronts", text)
        self.assertIn("  bound    16 + 16 wavefronts, whatever the memory layout: met\n", text)
        self.assertIn("  without  16 + 256 wavefronts in row-major memory\n", text)
        self.assertIn("  family   2^18 choices of segments", text)

    def test_the_memory_is_the_plan_s(self):
        """`lilac conflicts` finds the same wavefronts in the layout that comes out."""
        answer = self.swizzle(ROWS, COLUMNS, "--vector", "4")
        text = self.lilac("swizzle", ROWS, COLUMNS, "--vector", "4").stdout.splitlines()[0]
        memory = "!ttg.memdesc<16x32xf32, %s, #smem, mutable>" % text
        for type, side in ((ROWS, "store"), (COLUMNS, "load")):
            conflicts = json.loads(self.lilac("conflicts", type, memory, "--json").stdout)
            self.assertEqual(conflicts["wavefronts"], answer[side]["wavefronts"])

    def test_formulas(self):
        """What the formula and the bits say of each element is where the layout has it."""
        shapes = [(ROWS, COLUMNS), (COLUMNS, ROWS), (ROW, COLUMN), (TALL, TALL_COLUMN), (PAIRS, HALVES),
                  (ROW.replace("f16", "i8"), COLUMN.replace("f16", "i8")),
                  (ROW.replace("f16", "f64"), COLUMN.replace("f16", "f64"))]
        shapes += [(source.replace("tensor<", "tensor<2x").replace("= [", "= [1, ").replace("order = [1, 1, 0]",
                                                                                            "order = [2, 1, 0]"),
                    target.replace("tensor<", "tensor<2x").replace("= [", "= [1, ").replace("order = [1, 0, 1]",
                                                                                            "order = [1, 2, 0]"))
                   for source, target in [(ROW, COLUMN)]]
        for source, target in shapes:
            for words in ([], ["--vector", "8" if "f64" in source else "4"]):
                answer = self.swizzle(source, target, *words)
                basis = answer["memory"]["offset"]
                rank = len(basis[0])
                names = {1: "i", 2: "mn", 3: "lmn"}[rank]
                formula = answer["offset"].replace("/", "//")
                for offset in range(1 << len(basis)):
                    place = [0] * rank
                    for bit, column in enumerate(basis):
                        if offset >> bit & 1:
                            place = [a ^ b for a, b in zip(place, column)]
                    self.assertEqual(eval(formula, dict(zip(names, place))), offset, (formula, place))
                    for bit, terms in enumerate(answer["bits"]):
                        value = 0
                        for term in terms.split("^"):
                            value ^= place[names.index(term[0])] >> int(term[1:]) & 1
                        self.assertEqual(value, offset >> bit & 1, (terms, place))

    def test_names(self):
        """A name that is given is one of this very layout: `lilac layout` reads it back."""
        wide = blocked("32x64", "f32", "[1, 4]", "[4, 8]", "[1, 1]")
        tall = blocked("32x64", "f32", "[4, 1]", "[4, 8]", "[1, 1]", "[0, 1]")
        found = set()
        for source, target in [(ROWS, COLUMNS), (COLUMNS, ROWS), (wide, tall), (wide, wide.replace("[4, 8]", "[2, 16]")),
                               (tall, tall.replace("[4, 8]", "[8, 4]")), (wide, wide)]:
            for words in ([], ["--vector", "4"], ["--vector", "8"]):
                answer = self.swizzle(source, target, *words)
                shape = source[len("tensor<"):source.index(",")]
                if answer["named"] is not None:
                    found.add(answer["named"][:answer["named"].index("<")])
                    memory = "!ttg.memdesc<%s, %s, #smem, mutable>" % (shape, answer["named"])
                    layout = json.loads(self.lilac("layout", memory, "--json").stdout)
                    self.assertEqual(layout, answer["memory"])
                if answer["cute"] is not None:
                    layout = json.loads(self.lilac("layout", answer["cute"], "--json").stdout)
                    self.assertEqual(layout["offset"], answer["memory"]["offset"])
        self.assertIn("#ttg.swizzled_shared", found)

    def test_clusters(self):
        answer = self.swizzle(*CLUSTER)
        self.assertEqual(answer["block_bits"], ["m5"])
        self.assertIn("  block    0: m5\n", self.lilac("swizzle", *CLUSTER).stdout)

    def test_rounds(self):
        answer = self.swizzle(TALL, TALL_COLUMN, "--scratch", "8192")
        self.assertEqual((answer["shared_bytes"], answer["rounds"]), (8192, 2))
        self.assertIn("  rounds   2, ", self.lilac("swizzle", TALL, TALL_COLUMN, "--scratch", "8192").stdout)

    def test_lines(self):
        lines = self.lines("swizzle", [(ROWS, COLUMNS), (ROW, COLUMN)], "--vector", "4")
        self.assertEqual(lines[0], "offset = 32*m + (n ^ 2*m), 16 + 16 wavefronts (row-major: 16 + 256)")
        self.assertEqual(len(lines), 2)
        self.assertEqual(len(self.lines("swizzle", [(ROWS, COLUMNS), (ROW, COLUMN)], "--json")), 2)

    def test_refused(self):
        self.check_refusals("swizzle")

    def test_usage(self):
        self.check_usage("swizzle")
        self.assertIn("power of two", self.lilac("swizzle", ROWS, COLUMNS, "--vector", "3", status=USAGE).stderr)
        self.assertIn("--scratch", self.lilac("swizzle", "--help").stdout)

    def test_widest_access(self):
        """--vector: no access is wider, and none is a matrix instruction, of convert as of swizzle."""
        self.assertIn("matrix", json.dumps(self.json("convert", ROWS, COLUMNS)))
        for width in (4, 8, 16):
            plan = self.json("convert", ROWS, COLUMNS, "--through", "shared", "--vector", str(width))
            exchange = next(step for step in plan["steps"] if "memory" in step)
            swizzle = self.swizzle(ROWS, COLUMNS, "--vector", str(width))
            self.assertTrue(plan["correct"] and plan["as_planned"])
            for side in ("store", "load"):
                self.assertEqual(exchange[side]["instruction"], "vector")
                self.assertLessEqual(exchange[side]["bytes"], width)
                self.assertEqual(swizzle[side]["instruction"], "vector")
                self.assertLessEqual(swizzle[side]["bytes"], width)
        self.assertIn("power of two", self.lilac("convert", ROWS, COLUMNS, "--vector", "3", status=USAGE).stderr)


if __name__ == "__main__":
    cli.OPTIONS = command.parse_arguments(__doc__)
    loader = unittest.defaultTestLoader
    suite = unittest.TestSuite([loader.loadTestsFromTestCase(Convert), loader.loadTestsFromTestCase(Swizzle)])
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)
