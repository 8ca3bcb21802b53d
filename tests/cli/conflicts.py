"""lilac conflicts from outside: Triton's pairs with their simulations, both output forms, bad input."""

import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cli  # noqa: E402
import command  # noqa: E402

DONE, REFUSED, USAGE = 0, 1, 2

# Lanes along a row of 32 words, registers down the rows; and the other way round.
ROWS = ("tensor<32x32xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], "
        "warpsPerCTA = [1, 1], order = [1, 0]}>>")
COLUMNS = ROWS.replace("[1, 32]", "[32, 1]")
PLAIN = ("!ttg.memdesc<32x32xf32, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, "
         "order = [1, 0]}>, #ttg.shared_memory, mutable>")
SWIZZLED = PLAIN.replace("maxPhase = 1", "maxPhase = 32")
FIELDS = ["instructions", "wavefronts", "conflicts", "simulated_wavefronts"]


def answer(instructions, wavefronts, conflicts):
    return dict(zip(FIELDS, (instructions, wavefronts, conflicts, wavefronts)))


class Conflicts(cli.CommandTest):
    def lines(self, name):
        with open(os.path.join(cli.OPTIONS.data, name), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def pairs(self, pairs, *words, status=DONE):
        text = "".join("%s\t%s\n" % pair for pair in pairs)
        return self.lilac("conflicts", "-", *words, input=text, status=status)

    def test_json(self):
        for tensor, memory, expected in ((ROWS, PLAIN, answer(32, 32, 0)), (COLUMNS, PLAIN, answer(8, 256, 7)),
                                         (ROWS, SWIZZLED, answer(32, 32, 0)),
                                         (COLUMNS, SWIZZLED, answer(32, 32, 0))):
            done = self.lilac("conflicts", tensor, memory, "--json")
            self.assertEqual(json.loads(done.stdout), expected)
            self.assertEqual(list(json.loads(done.stdout)), FIELDS)

    def test_vectors(self):
        """Eight halves a lane: four transactions of eight lanes, two wavefronts each."""
        tensor = ("tensor<32x64xf16, #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 2], "
                  "warpsPerCTA = [2, 4], order = [1, 0]}>>")
        memory = PLAIN.replace("32x32xf32", "32x64xf16")
        done = self.lilac("conflicts", tensor, memory, "--json")
        self.assertEqual(json.loads(done.stdout), answer(8, 8 * 4 * 4, 3))

    def test_padding(self):
        """Rows of 32 words and `pad` more: columns begin `pad` banks apart."""
        memory = "!ttg.memdesc<32x32xf32, #ttg.padded_shared<[32:+%d] {order = [1, 0], shape = [32, 32]}>, #smem, mutable>"
        for tensor, pad, expected in ((ROWS, 1, answer(32, 32, 0)), (COLUMNS, 1, answer(32, 32, 0)),
                                      (COLUMNS, 2, answer(16, 32, 0)), (COLUMNS, 4, answer(8, 32, 0)),
                                      (COLUMNS, 8, answer(8, 64, 1))):
            done = self.lilac("conflicts", tensor, memory % pad, "--json")
            self.assertEqual(json.loads(done.stdout), expected, pad)

    def test_layouts_written_out(self):
        """CuTe layouts and forms of memory, of elements of the tensor's type."""
        swizzle = "Sw<5,2,5> o smem_ptr[32b](unset) o (32,32):(32,1)"
        for memory, rows, columns in (("(32,32):(32,1)", answer(32, 32, 0), answer(8, 256, 7)),
                                      ("row_major(32x32)", answer(32, 32, 0), answer(8, 256, 7)),
                                      ("column_major(32x32)", answer(8, 256, 7), answer(32, 32, 0)),
                                      ("padded(32x32, 32:+1)", answer(32, 32, 0), answer(32, 32, 0)),
                                      (swizzle, answer(32, 32, 0), answer(32, 32, 0))):
            done = self.pairs([(ROWS, memory), (COLUMNS, memory)], "--json")
            self.assertEqual([json.loads(line) for line in done.stdout.splitlines()], [rows, columns], memory)
        done = self.lilac("conflicts", COLUMNS, "(32,32):(32,1)")
        self.assertIn("\nin (32,32):(32,1)\n", done.stdout)

    def test_layouts_written_out_are_refused(self):
        for tensor, memory, file, id in (
                (ROWS, "(32,64):(64,1)", "<argument 2>", "no-shared-access"),
                (ROWS, "(32,33):(33,1)", "<argument 2>", "no-linear-layout"),
                (ROWS, "padded(32x32, 32:+3)", "<argument 2>", "no-shared-access"),
                (ROWS, "padded(32x32, 32:+4294967297)", "<argument 2>", "no-shared-access"),
                ("(32,32):(32,1)", "(32,32):(32,1)", "<argument 1>", "layout-of-memory"),
                (PLAIN, PLAIN, "<argument 1>", "layout-of-memory"),
                (ROWS, ROWS, "<argument 2>", "layout-of-tensor")):
            done = self.lilac("conflicts", tensor, memory, status=REFUSED)
            self.assertLocated(done, file, id)
            self.assertEqual(done.stdout, "null\n")

    def test_text(self):
        text = self.lilac("conflicts", COLUMNS, PLAIN).stdout
        self.assertIn("a thread        8 instructions of 4 elements, 16 bytes", text)
        self.assertIn("a transaction   8 wavefronts: 7 conflicts", text)
        self.assertIn("simulated       256 wavefronts", text)
        self.assertEqual(re.findall(r"(?m)^  banks? .*$", text),
                         ["  banks  0-3    " + "  ".join("%d@%d" % (lane, 128 * lane) for lane in range(8))])
        self.assertNotIn("bank  0", self.lilac("conflicts", ROWS, PLAIN).stdout)  # no conflict, no table

    def test_text_joins_lanes_of_one_word(self):
        tensor = ROWS.replace("32x32xf32", "8x128xi8").replace("[1, 32]", "[8, 4]")
        text = self.lilac("conflicts", tensor, PLAIN.replace("32x32xf32", "8x128xi8")).stdout
        words = ("%s@%d" % ("+".join(str(4 * row + lane) for lane in range(4)), 128 * row) for row in range(8))
        self.assertEqual(re.findall(r"(?m)^  banks? .*$", text), ["  bank  0   " + "  ".join(words)])

    def test_lanes_choose_the_device(self):
        tensor = ROWS.replace("32x32", "32x64").replace("[1, 32]", "[1, 64]")
        memory = PLAIN.replace("32x32", "32x64")
        self.assertIn("on gfx942, 32 banks", self.lilac("conflicts", tensor, memory).stdout)
        done = self.lilac("conflicts", tensor, memory, "--json")
        self.assertEqual(json.loads(done.stdout), answer(32, 64, 0))
        done = self.lilac("conflicts", tensor, memory, "--json", "--target", "gfx950")
        self.assertEqual(json.loads(done.stdout), answer(32, 32, 0))
        done = self.lilac("conflicts", tensor, memory, "--target", "sm_90a", status=REFUSED)
        self.assertIn("2^6 lanes", done.stderr)

    def test_triton(self):
        """Every pair's simulation stores each element at its place and counts as the formula does
        (the exit status), and the conflicts are Triton's but for those that are listed."""
        goldens = self.lines("goldens/conflicts.jsonl")
        done = self.pairs([(line["type"], line["memdesc"]) for line in goldens], "--json")
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(answers), 849)
        differ = {(line["type"], line["memdesc"]): line for line in self.lines("conflicts_that_differ.jsonl")}
        for golden, ours in zip(goldens, answers):
            self.assertEqual(ours["wavefronts"], ours["simulated_wavefronts"])
            listed = differ.pop((golden["type"], golden["memdesc"]), None)
            if listed is None:
                self.assertEqual(ours["conflicts"], golden["conflicts"], golden)
            else:
                self.assertEqual({name: listed[name] for name in FIELDS}, ours)
                self.assertEqual(listed["triton"], golden["conflicts"])
        self.assertFalse(differ)

    def test_a_refused_line_is_null_and_the_rest_go_on(self):
        done = self.pairs([(ROWS, PLAIN), (ROWS, ROWS), (PLAIN, PLAIN), (COLUMNS, PLAIN)], "--json", status=REFUSED)
        self.assertEqual([json.loads(line) for line in done.stdout.splitlines()],
                         [answer(32, 32, 0), None, None, answer(8, 256, 7)])
        self.assertRegex(done.stderr, r"(?m)^<stdin>:2:\d+: error: ")
        self.assertRegex(done.stderr, r"(?m)^<stdin>:3:\d+: error: ")
        done = self.lilac("conflicts", "-", input="no tab\n\n%s\t\n" % ROWS, status=REFUSED)
        self.assertEqual(done.stdout, "null\n" * 3)
        self.assertLocated(done, "<stdin>", "pair-expected", line=1)
        self.assertEqual(self.lilac("conflicts", "-", input="").stdout, "")

    def test_refused_pairs(self):
        half = PLAIN.replace("f32", "f16")
        done = self.lilac("conflicts", ROWS, half, "--json", status=REFUSED)
        self.assertEqual(done.stdout, "null\n")
        self.assertLocated(done, "<argument 2>", "element-types-differ")
        done = self.lilac("conflicts", ROWS, PLAIN.replace("32x32", "64x32"), status=REFUSED)
        self.assertLocated(done, "<argument 2>", "no-shared-access")
        big = [type.replace("32x32", "512x512") for type in (ROWS, PLAIN)]
        done = self.lilac("conflicts", *big, status=REFUSED)
        self.assertLocated(done, "<argument 2>", "no-shared-access")
        self.assertIn("the memory is of 1048576 bytes", done.stderr)
        done = self.lilac("conflicts", "tensor<", "!ttg.memdesc<", status=REFUSED)
        self.assertIn("<argument 1>:", done.stderr)
        self.assertIn("<argument 2>:", done.stderr)

    def test_usage(self):
        for words in ((), (ROWS,), (ROWS, PLAIN, PLAIN), (ROWS, PLAIN, "--target", "sm_1")):
            self.lilac("conflicts", *words, status=USAGE)
        self.assertIn("--json", self.lilac("conflicts", "--help").stdout)


if __name__ == "__main__":
    cli.OPTIONS = command.parse_arguments(__doc__)
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Conflicts)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)
