"""lilac view from outside: what it shows against what lilac layout says, files, colour, refusals."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402

DONE, REFUSED, USAGE = 0, 1, 2

BLOCKED = "#ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]}>"
PAPER = "tensor<16x16xf32, %s>" % BLOCKED
SLICE = "tensor<16xf16, #ttg.slice<{dim = 1, parent = %s}>>" % BLOCKED
SMALL = "tensor<8x4xf32, %s>" % BLOCKED
CUBE = ("tensor<4x8x8x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 2, 4], threadsPerWarp = "
        "[2, 4, 4], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>>")
TYPES = [PAPER, SLICE, SMALL, CUBE]

OPTIONS = None


class ViewTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def lilac(self, *words, status=DONE, **options):
        done = command.run(OPTIONS.lilac, *words, cwd=self.folder, **options)
        self.assertEqual(done.returncode, status, "lilac %s\n%s%s" % (words, done.stdout, done.stderr))
        return done

    def layout(self, type):
        return json.loads(self.lilac("layout", type, "--json").stdout)

    def slots(self, layout):
        """Every slot, as a list of inputs' values, with its element."""
        for values in itertools.product(*(range(2 ** len(bases)) for bases in layout.values())):
            element = [0] * self.rank
            for value, bases in zip(values, layout.values()):
                for bit, basis in enumerate(bases):
                    if value >> bit & 1:
                        element = [a ^ b for a, b in zip(element, basis)]
            yield list(values), element

    def owners(self, type):
        self.rank = len(re.match(r"tensor<((?:\d+x)+)", type).group(1).split("x")) - 1
        owners = {}
        for slot, element in self.slots(self.layout(type)):
            owners.setdefault(tuple(element), []).append(slot)
        return owners

    def test_cells_are_preimages(self):
        for type in TYPES:
            owners = self.owners(type)
            view = json.loads(self.lilac("view", type, "--json").stdout)
            self.assertEqual(len(view["cells"]), len(owners))
            for cell in view["cells"]:
                self.assertCountEqual(cell["owners"], owners[tuple(cell["element"])], type)
                self.assertEqual(len(cell["owners"]), view["copies"])

    def test_hardware_holds_its_elements(self):
        for type in TYPES:
            owners = self.owners(type)
            view = json.loads(self.lilac("view", type, "--as", "hardware", "--json").stdout)
            self.assertEqual(len(view["slots"]), sum(map(len, owners.values())))
            first = set()
            for slot in view["slots"]:
                element = tuple(slot["element"])
                self.assertIn(slot["slot"], owners[element])
                if not slot["copy"]:
                    self.assertNotIn(element, first)
                    first.add(element)
            self.assertEqual(first, set(owners))

    def test_text_of_cells(self):
        """Every cell of the text, put together from its panels, is the owner."""
        owners = self.owners(PAPER)
        text = self.lilac("view", PAPER).stdout
        self.assertTrue(text.startswith("16×16 tensor, where each element is: w warp (2)"))
        seen = {}
        for line in text.splitlines()[1:]:
            self.assertLessEqual(len(line), 100)
            if line.startswith("dim0"):
                columns = [int(word) for word in line.split()[1:]]
            elif re.match(r"\d", line):
                row = int(line.split()[0])
                cells = re.findall(r"w(\d+) t(\d+) +r(\d+)", line)
                self.assertEqual(len(cells), len(columns))
                for column, cell in zip(columns, cells):
                    seen[row, column] = [[int(x) for x in (cell[2], cell[1], cell[0])] + [0]]
        self.assertEqual(seen, owners)

    def test_matrix(self):
        for type in TYPES:
            layout = self.layout(type)
            view = json.loads(self.lilac("view", type, "--as", "matrix", "--json").stdout)
            columns = [basis for bases in layout.values() for basis in bases]
            rows = []
            for output, dim in enumerate(view["outputs"]):
                for bit in range(dim["bits"]):
                    rows.append([basis[output] >> bit & 1 for basis in columns])
            self.assertEqual(view["rows"], rows)
            self.assertEqual([(dim["name"], dim["bits"]) for dim in view["inputs"]],
                             [(name, len(bases)) for name, bases in layout.items()])

    def test_left_out(self):
        text = self.lilac("view", "tensor<128x256xf32, %s>" % BLOCKED).stdout
        self.assertLess(text.count("\n"), 100)
        self.assertRegex(text, r"left out: rows 32–127 of 128; columns \d+–255 of 256\n$")
        text = self.lilac("view", CUBE, "--slices", "1:2", "--rows", "3", "--columns", ":2").stdout
        self.assertIn("\ndim0 = 1\n", text)
        self.assertRegex(text, r"left out: slices 0 and 2–3 of 4; rows 0–2 and 4–7 of 8; "
                               r"columns 2–7 of 8\n$")

    def test_colour(self):
        plain = self.lilac("view", PAPER).stdout
        self.assertNotIn("\x1b", plain)
        self.assertEqual(plain, self.lilac("view", PAPER, "--colour", "never").stdout)
        coloured = self.lilac("view", PAPER, "--colour", "always").stdout
        self.assertIn("colours: \x1b", coloured)
        self.assertEqual(re.sub(r"\x1b\[[0-9;]*m|colours:.*\n", "", coloured), plain)
        by_lane = self.lilac("view", PAPER, "--colour", "always", "--colour-by", "lane").stdout
        self.assertNotEqual(by_lane, coloured)

    def test_svg(self):
        space = "{http://www.w3.org/2000/svg}"
        for type, kind, cells in [(PAPER, "cells", 256), (PAPER, "hardware", 256),
                                  (PAPER, "matrix", 64), (SLICE, "hardware", 128),
                                  (CUBE, "cells", 256)]:
            words = ["view", type, "--as", kind, "--title", "a < b & \"c\"", "--svg", "x.svg"]
            self.assertEqual(self.lilac(*words).stdout, "")
            path = os.path.join(self.folder, "x.svg")
            with open(path, encoding="utf-8") as file:
                first = file.read()
            self.lilac(*words)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), first)
            root = xml.etree.ElementTree.fromstring(first)
            self.assertEqual(root.tag, space + "svg")
            self.assertEqual(root.find(space + "title").text, 'a < b & "c"')
            self.assertTrue(root.find(space + "desc").text.strip())
            ids = [element.get("id") for element in root if element.get("id")]
            self.assertEqual(root.get("aria-labelledby").split(), ids)
            width, height = int(root.get("width")), int(root.get("height"))
            places = set()
            for rect in root.iter(space + "rect"):
                if rect.get("class") != "cell":
                    continue
                x, y, w, h = (int(rect.get(name)) for name in ("x", "y", "width", "height"))
                self.assertTrue(0 <= x and x + w <= width and 0 <= y and y + h <= height)
                places.add((x, y))
            self.assertEqual(len(places), cells)
            self.assertNotIn("url(", first)
            self.assertNotIn("<style", first)

    def test_figures_of_the_documentation(self):
        """docs/images holds what scripts/figures.sh draws."""
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        done = subprocess.run([os.path.join(root, "scripts", "figures.sh"), OPTIONS.lilac,
                               self.folder], stderr=subprocess.PIPE, universal_newlines=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        images = os.path.join(root, "docs", "images")
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(os.listdir(images)))
        for name in os.listdir(images):
            with open(os.path.join(images, name), "rb") as file, \
                    open(os.path.join(self.folder, name), "rb") as drawn:
                self.assertEqual(file.read(), drawn.read(), name)

    def test_svg_to_standard_output(self):
        self.assertTrue(self.lilac("view", PAPER, "--svg", "-").stdout.startswith("<svg "))

    def test_refusals(self):
        done = self.lilac("view", "tensor<16x16xf32, #ttg.unknown<{}>>", status=REFUSED)
        self.assertIn("[layout-unknown]", done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn("the end of the type", self.lilac("view", PAPER + " x", status=REFUSED).stderr)
        for words, hint in [(["--rows", "16:"], "there is no row 16: there are 16"),
                            (["--colour-by", "bank"], "no input 'bank'")]:
            done = self.lilac("view", PAPER, *words, status=REFUSED)
            self.assertIn(hint, done.stderr)
        self.assertIn("cannot", self.lilac("view", PAPER, "--svg", "none/x.svg",
                                           status=REFUSED).stderr)

    def test_wrong_usage(self):
        for words, hint in [([], "which type"), ([PAPER, PAPER], "one type"),
                            ([PAPER, "--as", "cubes"], "cells, hardware or matrix"),
                            ([PAPER, "--colour", "red"], "auto, always or never"),
                            ([PAPER, "--rows", "3:2"], "FIRST:END"),
                            ([PAPER, "--columns", "a:b"], "FIRST:END"),
                            ([PAPER, "--slices", ""], "FIRST:END"),
                            ([PAPER, "--width", "wide"], "takes a number"),
                            ([PAPER, "--json", "--svg", "x"], "ask for one")]:
            self.assertIn(hint, self.lilac("view", *words, status=USAGE).stderr)

    def test_help(self):
        text = self.lilac("view", "--help").stdout
        self.assertTrue(text.startswith("usage: lilac view "))
        self.assertEqual(text, self.lilac("help", "view").stdout)
        self.assertRegex(self.lilac("--help").stdout, r"(?m)^  view\s+\S")
        for line in text.splitlines():
            self.assertLessEqual(len(line), 100)


def main():
    global OPTIONS
    OPTIONS = command.parse_arguments(__doc__)
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(ViewTest)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)


if __name__ == "__main__":
    main()
