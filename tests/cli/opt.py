"""lilac opt: passes on text. One pass after the other, each from the text of the one before, ends where the pipeline ends."""

import glob
import os
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402

DONE, REFUSED, USAGE = 0, 1, 2
OPTIONS = None


def renumbered(text):
    """The text with values named in the order in which they appear: reading text makes new name hints."""
    names = {}
    lines = [line for line in text.split("\n") if not line.startswith(("\t.reg", "\t\t"))]
    return re.sub(r"%[\w.$]+", lambda name: names.setdefault(name[0], "%%%d" % len(names)), "\n".join(lines))


class OptTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def lilac(self, *words, status=DONE, **options):
        done = command.run(OPTIONS.lilac, *words, cwd=self.folder, **options)
        self.assertEqual(done.returncode, status, "lilac %s\n%s%s" % (words, done.stdout, done.stderr))
        return done

    def kernel(self, name="softmax_float32_1000"):
        return os.path.join(OPTIONS.data, "corpus", name + ".ttir")

    def text(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


class Passes(OptTest):
    def test_one_by_one(self):
        passes = self.lilac("--list-passes").stdout.split()
        self.assertEqual((passes[:2], passes[-1]), (["read", "verify"], "ptx"))
        compared = 0
        for path in sorted(glob.glob(os.path.join(OPTIONS.data, "corpus", "*.ttir")))[::2]:
            done = command.run(OPTIONS.lilac, "compile", path, "--emit", "simt", "--num-warps", "8", cwd=self.folder)
            if done.returncode != DONE:
                continue  # an operation that is not supported
            with open(path, encoding="utf-8") as file:
                state = file.read()
            for one in passes[2:-1]:
                warps = [] if state.startswith("simt.module") else ["--num-warps", "8"]
                state = self.lilac("opt", "-", "--pass", one, "--verify", *warps, input=state).stdout
            self.assertEqual(renumbered(state), renumbered(done.stdout), path)
            compared += 1
        self.assertGreater(compared, 5)

    def test_stages(self):
        kernel = self.kernel()
        tile = self.lilac("opt", kernel).stdout
        self.assertEqual(tile, self.lilac("compile", kernel, "--emit", "tile").stdout)
        simt = self.lilac("opt", kernel, "--to", "simt").stdout
        self.assertEqual(simt, self.lilac("compile", kernel, "--emit", "simt").stdout)
        path = self.text("k.simt", simt)
        self.assertEqual(self.lilac("opt", path, "--from", "simt").stdout, simt)
        ptx = self.lilac("opt", path, "--from", "simt", "--to", "text", "--no-line-info").stdout
        self.assertEqual(renumbered(ptx), renumbered(self.lilac("compile", kernel, "--no-line-info").stdout))
        lowered = self.lilac("opt", self.text("k.ttgir", tile), "--pass", "lower").stdout
        self.assertEqual(renumbered(self.lilac("opt", "-", input=lowered).stdout), renumbered(simt))
        self.assertEqual(self.lilac("opt", "-", "--from", "tile", "--to", "simt", input=tile).stdout.count("{"),
                         simt.count("{"))

    def test_skip(self):
        kernel = self.kernel()
        whole = self.lilac("opt", kernel, "--to", "simt").stdout
        less = self.lilac("opt", kernel, "--to", "simt", "--skip", "fold,dce").stdout
        self.assertGreater(less.count("\n"), whole.count("\n"))
        self.assertEqual(less, self.lilac("compile", kernel, "--emit", "simt", "--skip", "fold,dce").stdout)


class Refusals(OptTest):
    def refused(self, said, *words, status=REFUSED, **options):
        done = self.lilac("opt", *words, status=status, **options)
        self.assertIn(said, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_order(self):
        kernel = self.kernel()
        self.refused("the pass 'fold' is for SIMT IR; the program is tile IR here", kernel, "--pass", "fold")
        self.refused("[pass-order]", kernel, "--pass", "assign_layouts,lower,simplify")
        self.refused("the program is PTX here", kernel, "--pass", "assign_layouts,lower,ptx,dce")
        self.refused("[pass-order]", kernel, "--pass", "read")
        self.refused("[pass-order]", kernel, "--to", "simt", "--skip", "lower")
        self.refused("[pass-order]", kernel, "--to", "tile", "--skip", "read")

    def test_simt_text(self):
        simt = self.lilac("opt", self.kernel(), "--to", "simt").stdout
        self.refused("this module is for the device 'sm_90a', not for sm_80", "-", "--target", "sm_80", input=simt)
        self.refused("[simt-", "-", input=simt.replace(" = thread : i32", " = thread : i64", 1))
        self.refused("[no-kernel]", "-", input='// nothing\nsimt.module target "sm_90a" {\n}\n')
        self.refused("[syntax]", "-", input="simt.module")
        self.refused("[syntax]", "-", input="/")

    def test_usage(self):
        kernel = self.kernel()
        self.refused("did you mean 'fold'?", kernel, "--pass", "dce,flod", status=USAGE)
        self.refused("--skip: there is no pass ''", kernel, "--skip", "dce,", status=USAGE)
        self.refused("--to takes source, tile, simt or text, not 'ptx'", kernel, "--to", "ptx", status=USAGE)
        self.refused("--from and --to select stages", kernel, "--pass", "dce", "--to", "simt", status=USAGE)
        self.refused("-o %s is the file" % kernel, kernel, "-o", kernel, status=USAGE)


if __name__ == "__main__":
    OPTIONS = command.parse_arguments(__doc__)
    unittest.main(argv=[sys.argv[0], "-v"] + OPTIONS.names)
