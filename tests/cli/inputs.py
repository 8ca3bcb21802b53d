"""What subcommands take beside one type: names of layouts, files, modules, layouts alone; lists; spellings."""

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402

DONE, REFUSED, USAGE, CHECK = 0, 1, 2, 3
ATTRIBUTE = ("#ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], "
             "order = [1, 0]}>")
COLUMNS = ATTRIBUTE.replace("order = [1, 0]", "order = [0, 1]")
TENSOR = "tensor<16x16xf32, %s>"
KERNEL = """  tt.func public @%(name)s(%%p: !tt.ptr<f32>) {
    %%c = arith.constant %(value)s : f32
    tt.call @%(callee)s(%%p, %%c) : (!tt.ptr<f32>, f32) -> ()
    tt.return
  }
  tt.func private @%(callee)s(%%p: !tt.ptr<f32>, %%v: f32) attributes {noinline = false} {
    tt.store %%p, %%v : !tt.ptr<f32>
    tt.return
  }
"""

MEMORY_LAYOUTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "engine", "memory_layouts.ttir")
OPTIONS = None


class InputTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def lilac(self, *words, status=DONE, **options):
        done = command.run(OPTIONS.lilac, *words, cwd=self.folder, **options)
        self.assertEqual(done.returncode, status, "lilac %s\n%s%s" % (words, done.stdout, done.stderr))
        return done

    def data(self, *names):
        return os.path.join(OPTIONS.data, *names)


class Names(InputTest):
    def test_names_in_operands(self):
        expected = self.lilac("layout", TENSOR % ATTRIBUTE).stdout
        self.assertEqual(self.lilac("layout", "#b = " + ATTRIBUTE, TENSOR % "#b").stdout, expected)
        nested = "tensor<16xf32, #ttg.slice<{dim = 0, parent = %s}>>"
        self.assertEqual(self.lilac("layout", "#b=" + ATTRIBUTE, nested % "#b").stdout,
                         self.lilac("layout", nested % ATTRIBUTE).stdout)

    def test_names_of_both_sides(self):
        words = ["#b = " + ATTRIBUTE, "#c = " + COLUMNS]
        for subcommand in ("convert", "swizzle"):
            expected = self.lilac(subcommand, TENSOR % ATTRIBUTE, TENSOR % COLUMNS, "--json").stdout
            done = self.lilac(subcommand, *words, TENSOR % "#b", TENSOR % "#c", "--json")
            self.assertEqual(json.loads(done.stdout), json.loads(expected))
        memory = "#s = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 4, order = [1, 0]}>"
        done = self.lilac("conflicts", words[0], memory, TENSOR % "#b",
                          "!ttg.memdesc<16x16xf32, #s, #smem>", "--json")
        spelled = self.lilac("conflicts", TENSOR % ATTRIBUTE,
                             "!ttg.memdesc<16x16xf32, %s, #smem>" % memory[5:], "--json")
        self.assertEqual(done.stdout, spelled.stdout)
        self.lilac("view", words[0], TENSOR % "#b")

    def test_names_in_lines_outlive_contexts(self):
        """Commands use one context for so many lines; a name is known in all of them."""
        lines = ["#b = " + ATTRIBUTE, "#smem = #ttg.shared_memory", '#loc1 = loc("k.py":1:0)']
        lines += [TENSOR % "#b"] * 400
        expected = self.lilac("layout", TENSOR % ATTRIBUTE).stdout
        path = self.write("types.txt", "\n".join(lines) + "\n")
        self.assertEqual(self.lilac("layout", path).stdout, expected * 400)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(self.lilac("layout", "-", stdin=file).stdout, expected * 400)

    def test_later_definitions_count(self):
        text = "#b = %s\n%s\n#b = %s\n%s\n" % (ATTRIBUTE, TENSOR % "#b", COLUMNS, TENSOR % "#b")
        done = self.lilac("layout", self.write("types.txt", text))
        self.assertEqual(done.stdout, self.lilac("layout", TENSOR % ATTRIBUTE, TENSOR % COLUMNS).stdout)

    def test_bad_definitions(self):
        done = self.lilac("layout", "#b = #ttg.blocked<{}>", TENSOR % "#b", status=REFUSED)
        self.assertIn("<argument 1>:1:", done.stderr)
        path = self.write("types.txt", "#b = nothing\n%s\n" % (TENSOR % ATTRIBUTE))
        done = self.lilac("layout", path, status=REFUSED)
        self.assertIn("types.txt:1:6: error:", done.stderr)
        self.assertEqual(done.stdout.split("\n")[0], "null")
        self.assertIn("#ttg.linear", done.stdout.split("\n")[1])
        done = self.lilac("layout", TENSOR % "#b", status=REFUSED)
        self.assertIn("[layout-alias-undefined]", done.stderr)


class Alone(InputTest):
    def test_a_layout_alone(self):
        for subcommand in ("layout", "view"):
            self.assertEqual(self.lilac(subcommand, ATTRIBUTE, "--shape", "16x16").stdout,
                             self.lilac(subcommand, TENSOR % ATTRIBUTE).stdout)
        shared = "#ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 4, order = [1, 0]}>"
        alone = self.lilac("conflicts", ATTRIBUTE, shared, "--shape", "16x16", "--element", "f16", "--json")
        typed = self.lilac("conflicts", "tensor<16x16xf16, %s>" % ATTRIBUTE,
                           "!ttg.memdesc<16x16xf16, %s, #smem>" % shared, "--json")
        self.assertEqual(alone.stdout, typed.stdout)
        alone = self.lilac("convert", ATTRIBUTE, COLUMNS, "--shape", "16x16", "--element", "i8", "--json")
        typed = self.lilac("convert", TENSOR.replace("f32", "i8") % ATTRIBUTE,
                           TENSOR.replace("f32", "i8") % COLUMNS, "--json")
        self.assertEqual(alone.stdout, typed.stdout)

    def test_a_shape_is_needed(self):
        done = self.lilac("layout", ATTRIBUTE, status=REFUSED)
        self.assertIn("give --shape 128x64", done.stderr)
        self.assertIn("[shape-missing]", done.stderr)
        for shape in ("", "x", "16x", "0x16", "16x16x", "16,16", "99999999999"):
            self.assertIn("--shape takes", self.lilac("layout", ATTRIBUTE, "--shape", shape, status=USAGE).stderr)
        self.assertIn("--element takes", self.lilac("layout", ATTRIBUTE, "--element", "half", status=USAGE).stderr)


class Files(InputTest):
    def test_types_of_a_module(self):
        path = self.data("ttgir", "shared_memory.ttgir")
        lines = self.lilac("layout", path).stdout.splitlines()
        types = [line.split("\t")[0] for line in lines]
        self.assertEqual(len(types), len(set(types)))
        with open(path, encoding="utf-8") as file:
            names = [line.strip() for line in file if re.match(r"#\w+ = ", line)]
        checked = 0
        for line in lines:
            type, layout = line.split("\t")
            if not type.startswith("!ttg.memdesc<4x"):  # a ring: its layout is one buffer's
                self.assertEqual(self.lilac("layout", *names, type).stdout.strip(), layout)
                checked += 1
        self.assertGreater(checked, 20)
        for line in self.lilac("layout", path, "--json").stdout.splitlines():
            self.assertEqual(set(json.loads(line)), {"type", "layout"})

    def test_conversions_of_a_module(self):
        path = self.data("ttgir", "convert_mma_f16.ttgir")
        with open(path, encoding="utf-8") as file:
            places = [number for number, line in enumerate(file, 1) if "ttg.convert_layout" in line]
        for subcommand in ("convert", "swizzle"):
            lines = self.lilac(subcommand, path).stdout.splitlines()
            self.assertEqual([int(line[len(path) + 1:].split(":")[0]) for line in lines], places)
            self.assertEqual(len(self.lilac(subcommand, path, "--json").stdout.splitlines()), len(places))

    def test_accesses_of_a_module(self):
        path = self.data("ttgir", "shared_memory.ttgir")
        with open(path, encoding="utf-8") as file:
            accesses = len(re.findall(r"ttg\.local_(?:load|store) |ttg\.local_alloc %", file.read()))
        answers = [json.loads(line) for line in self.lilac("conflicts", path, "--json").stdout.splitlines()]
        self.assertEqual(len(answers), accesses)
        for answer in answers:
            self.assertEqual(answer["wavefronts"], answer["simulated_wavefronts"])

    def test_modules_without(self):
        ttir = self.data("corpus", "vector_add_f32.ttir")
        self.assertIn("[no-layouts]", self.lilac("layout", ttir, status=REFUSED).stderr)
        self.assertIn("[no-pairs]", self.lilac("convert", ttir, status=REFUSED).stderr)
        self.assertIn("cannot read no.ttgir", self.lilac("layout", "no.ttgir", status=REFUSED).stderr)
        self.assertIn("cannot read no.ttgir", self.lilac("conflicts", "no.ttgir", status=REFUSED).stderr)
        broken = self.write("broken.ttgir", "module {\n  tt.func @k() {\n    tt.nothing\n  }\n}\n")
        done = self.lilac("layout", broken, status=REFUSED)
        self.assertRegex(done.stderr, r"broken\.ttgir:3:5: error: .*\[unknown-operation\]")


class Compile(InputTest):
    def read(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    def two(self):
        text = "module {\n%s%s}\n" % (KERNEL % {"name": "a", "callee": "f", "value": "1.0"},
                                       KERNEL % {"name": "b", "callee": "g", "value": "2.0"})
        return self.write("two.ttir", text)

    def test_one_kernel(self):
        path = self.two()
        both = self.lilac("compile", path, "--no-line-info").stdout
        self.assertEqual(re.findall(r"\.entry (\w+)", both), ["a", "b"])
        for name in "ab":
            ptx = self.lilac("compile", path, "--kernel", name, "--no-line-info").stdout
            self.assertEqual(re.findall(r"\.entry (\w+)", ptx), [name])
            self.assertIn("0f3F800000" if name == "a" else "0f40000000", ptx)
            tile = self.lilac("compile", path, "--kernel", name, "--emit", "tile").stdout
            self.assertEqual(re.findall(r"tt\.func public @(\w+)", tile), [name])
        done = self.lilac("compile", path, "--kernel", "f", status=REFUSED)
        self.assertIn("this module has no kernel 'f'", done.stderr)
        self.assertIn("kernel 'a' is here", done.stderr)
        self.assertIn("kernel 'b' is here", done.stderr)

    def test_a_kernel_that_is_not_chosen_may_be_wrong_for_the_target(self):
        text = self.read(self.two())
        unsupported = text.replace("module {\n", """module {
  tt.func public @refused(%p: !tt.ptr<f32>) {
    tt.call @nowhere(%p) : (!tt.ptr<f32>) -> ()
    tt.return
  }
  tt.func private @nowhere(%p: !tt.ptr<f32>)
""", 1)
        path = self.write("three.ttir", unsupported)
        self.lilac("compile", path, status=REFUSED)
        self.lilac("compile", path, "--kernel", "refused", status=REFUSED)
        self.lilac("compile", path, "--kernel", "b")

    def test_input_is_not_overwritten(self):
        path = self.two()
        text = self.read(path)
        os.symlink(path, os.path.join(self.folder, "link.ttir"))
        for output in (path, "two.ttir", "./two.ttir", "link.ttir"):
            done = self.lilac("compile", path, "-o", output, status=USAGE)
            self.assertIn("is the file that is compiled", done.stderr)
        self.assertEqual(self.read(path), text)

    def test_short_options(self):
        path = self.two()
        self.lilac("compile", path, "-otwo.ptx", "--no-line-info")
        with open(os.path.join(self.folder, "two.ptx"), encoding="utf-8") as file:
            self.assertEqual(file.read(), self.lilac("compile", path, "--no-line-info").stdout)
        done = self.lilac("compile", path, "-v", "-o", "two.ptx")
        self.assertEqual(len(re.findall(r"lilac: kernel '[ab]' for sm_90a: 4 warps, 0 layout conversions, "
                                        r"0 bytes of shared memory\n", done.stderr)), 2)
        self.assertIn(": store: ", done.stderr)
        self.assertRegex(done.stderr, r"\n  sectors \d+, at least \d+ in any layout\n")
        done = self.lilac("compile", MEMORY_LAYOUTS, "-v", "-o", "memory.ptx")
        self.assertRegex(done.stderr, r":13: memory layout: optimal swizzle of ttg.local_alloc and "
                                      r"ttg.local_load; 32 wavefronts of stores, 32 of loads, ")
        self.assertEqual(self.lilac("-v").stdout, self.lilac("--version").stdout)
        self.assertIn("unknown option '-x'", self.lilac("compile", path, "-x", status=USAGE).stderr)
        self.assertIn("unknown option '-vv'", self.lilac("compile", path, "-vv", status=USAGE).stderr)

    def test_lists(self):
        passes = self.lilac("--list-passes").stdout
        self.assertEqual(passes, self.lilac("compile", "--list-passes").stdout)
        times = self.lilac("compile", self.two(), "--time").stderr
        ran = [line.split()[0] for line in times.splitlines() if re.match(r"\w+ +[\d.]+ +\d+$", line)]
        self.assertEqual(passes.split(), ran)
        devices = self.lilac("--list-devices").stdout
        self.assertEqual(devices, self.lilac("compile", "--list-devices").stdout)
        names = [line.split()[0] for line in devices.splitlines()[1:]]
        known = self.lilac("compile", "x", "--target", "none", status=USAGE).stderr
        self.assertEqual(re.search(r"known are (.*)", known).group(1).split(", "), names)

    def test_spellings_of_numbers(self):
        for word, number in (("1e1", 10), ("0x8", 8), ("4.0", 4), ("+4", 4)):
            done = self.lilac("compile", "x", "--num-warps", word, status=USAGE)
            self.assertIn("in decimal digits: %d, not '%s'" % (number, word), done.stderr)
        for word in ("4.5", "-4", "four", "", "1e99", "nan"):
            done = self.lilac("compile", "x", "--num-warps", word, status=USAGE)
            self.assertIn("takes a number from 0 to 4294967294 in decimal digits", done.stderr)

    def test_near_words(self):
        for words, near in [(["layout", "x", "--as", "cutte"], "cute"), (["view", "x", "--as", "matrx"], "matrix"),
                            (["view", "x", "--colour", "allways"], "always"),
                            (["compile", "x", "--emit", "simd"], "simt"),
                            (["convert", "x", "y", "--through", "share"], "shared"),
                            (["convert", "x", "y", "--emit", "ptxx"], "ptx")]:
            self.assertIn("did you mean '%s'?" % near, self.lilac(*words, status=USAGE).stderr)
        for word, near in [("row_mayor(16x32)", "row_major"), ("tensr<16xf32>", "tensor"), ("padd(1x2)", "padded"),
                           (TENSOR % "#ttg.bloked<{}>", "ttg.blocked")]:
            self.assertIn("did you mean '%s'" % near, self.lilac("layout", word, status=REFUSED).stderr)


class Terminal(InputTest):
    def test_view_has_the_width_of_the_terminal(self):
        type = "tensor<32x64xf32, %s>" % ATTRIBUTE
        widths = {}
        for columns in (60, 200):
            master, slave = pty.openpty()
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
            process = subprocess.Popen([OPTIONS.lilac, "view", type, "--colour", "never"], stdout=slave)
            os.close(slave)
            text = b""
            while True:
                try:
                    part = os.read(master, 65536)
                except OSError:  # Linux says so when the other end is closed
                    break
                if not part:
                    break
                text += part
            os.close(master)
            self.assertEqual(process.wait(), DONE)
            cells = [line for line in text.decode().splitlines() if re.match(r" *\d+ |    ", line)]
            widths[columns] = max(len(line) for line in cells)
            self.assertLessEqual(widths[columns], columns)
        self.assertGreater(widths[200], 100)
        self.assertLessEqual(max(len(line) for line in self.lilac("view", type).stdout.splitlines()), 100)


if __name__ == "__main__":
    OPTIONS = command.parse_arguments(__doc__)
    unittest.main(argv=[sys.argv[0], "-v"] + OPTIONS.names)
