"""lilac explore from outside: its JSON, the page it fills in, refusals. The page itself: tests/explorer."""

import json
import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402

DONE, REFUSED, USAGE = 0, 1, 2
PLACE = '<script type="application/json" id="kernel">null</script>'

OPTIONS = None


class ExploreTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.kernel = os.path.join(OPTIONS.data, "corpus", "softmax_float16_4096.ttir")

    def lilac(self, *words, status=DONE, program=None):
        done = command.run(program or OPTIONS.lilac, *words, cwd=self.folder)
        self.assertEqual(done.returncode, status, "lilac %s\n%s%s" % (words, done.stdout, done.stderr))
        return done

    def path(self, name, text=None):
        path = os.path.join(self.folder, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    @staticmethod
    def read(path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    def test_json(self):
        kernel = json.loads(self.lilac("explore", self.kernel, "--json", "--num-warps", "8", "--num-stages", "2").stdout)
        compiled = ("compile", self.kernel, "--num-warps", "8", "--num-stages", "2")
        self.assertEqual(kernel["name"], "softmax_float16_4096.ttir")
        self.assertEqual(kernel["text"], self.read(self.kernel))
        self.assertEqual(kernel["options"], {"device": "", "warps": 8, "stages": 2})
        self.assertEqual(kernel["ptx"], self.lilac(*compiled).stdout)
        self.assertEqual(kernel["tile"], self.lilac(*compiled, "--emit", "tile").stdout)
        self.assertEqual(kernel["metadata"]["parameters"][0], {"name": "o", "type": "!tt.ptr<f16>"})

    def test_sources(self):
        """The user's file: beside the kernel, or as its locations name it from here; else none."""
        beside = json.loads(self.lilac("explore", self.kernel, "--json").stdout)["sources"]
        self.assertEqual(beside, {"kernels.py": self.read(os.path.join(OPTIONS.data, "corpus", "kernels.py"))})
        alone = self.path("alone.ttir", self.read(self.kernel))
        self.assertEqual(json.loads(self.lilac("explore", alone, "--json").stdout)["sources"], {})
        self.path("kernels.py", "# here\n")
        self.assertEqual(json.loads(self.lilac("explore", "alone.ttir", "--json").stdout)["sources"], {"kernels.py": "# here\n"})

    def test_page(self):
        """The kernel takes the place of null, and nothing in it ends the script."""
        kernel = self.path("kernel.ttir", self.read(self.kernel).replace('"kernels.py"', '"</script>.py"'))
        page = self.path("page.html", "<p>before</p>%s<p>after</p>" % PLACE)
        self.lilac("explore", kernel, "--page", page, "-o", "out.html")
        text = self.read(self.path("out.html"))
        self.assertTrue(text.startswith("<p>before</p>" + PLACE[:-len("null</script>")] + "{"), text[:100])
        self.assertTrue(text.endswith("}\n</script><p>after</p>"), text[-100:])
        self.assertEqual(text.count("</script"), 1)
        data = json.loads(text[text.index("{"):text.rindex("}") + 1])
        self.assertIn('"</script>.py"', data["text"])

    def test_no_page(self):
        """Without the page: how it is built."""
        program = shutil.copy(OPTIONS.lilac, self.path("lilac"))
        message = self.lilac("explore", self.kernel, status=REFUSED, program=program).stderr
        self.assertIn("make explorer", message)
        self.lilac("explore", self.kernel, "--json", program=program)
        other = self.path("other.html", "<html></html>")
        message = self.lilac("explore", self.kernel, "--page", other, status=REFUSED).stderr
        self.assertIn("not the explorer's page", message)
        self.assertIn("cannot read", self.lilac("explore", self.kernel, "--page", "none.html", status=REFUSED).stderr)

    def test_installed(self):
        """The page that was installed with the command."""
        os.makedirs(self.path("share/lilac"))
        os.makedirs(self.path("bin"))
        program = shutil.copy(OPTIONS.lilac, self.path("bin/lilac"))
        self.path("share/lilac/explorer.html", PLACE)
        self.assertIn('"name": "softmax_float16_4096.ttir"', self.lilac("explore", self.kernel, program=program).stdout)

    def test_refused(self):
        bad = self.path("bad.ttir", "module {\n  tt.func public @k() {\n    tt.lod\n  }\n}\n")
        page = self.path("page.html", PLACE)
        done = self.lilac("explore", bad, "--page", page, "-o", "out.html", status=REFUSED)
        self.assertIn("bad.ttir:3:5: error: unknown operation 'tt.lod'", done.stderr)
        self.assertFalse(os.path.exists(self.path("out.html")))
        self.lilac("explore", status=USAGE)
        self.lilac("explore", self.kernel, self.kernel, status=USAGE)
        self.lilac("explore", bad, "-o", bad, status=USAGE)
        self.lilac("explore", self.kernel, "--target", "sm_10", status=USAGE)


def main():
    global OPTIONS
    OPTIONS = command.parse_arguments(__doc__)
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(ExploreTest)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)


if __name__ == "__main__":
    main()
