"""run --device cuda and bench, on a CUDA driver that has no GPU (tests/support/fake_cuda.c): what is
printed, and every error with its words and exit status.

usage: gpu.py --lilac LILAC --data DATA FAKE_DRIVER
"""

import json
import os
import stat
import sys
import unittest

import cli
from cli import CHECK, DONE, REFUSED, TWICE, command, npy

FAKE = None
KEEP = ("PATH", "HOME", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TMPDIR")


class GpuTest(cli.TwiceTest):
    def on_gpu(self, subcommand, *words, status=DONE, rules="", x="@x.npy", n=100, **variables):
        """The command on the fake driver, with rules for it; the calls of the driver are in
        self.calls."""
        log = self.path("log")
        environment = {key: os.environ[key] for key in KEEP if key in os.environ}
        environment.update(LILAC_LIBCUDA=FAKE, FAKE_CUDA=rules, FAKE_CUDA_LOG=log,
                           LILAC_PTXAS=self.path("no-ptxas"))
        environment.update(variables)
        given = ["--arg", "x=%s" % x, "--arg", "o=zeros:f32:10x10", "--arg", "n=%s" % n]
        if subcommand == "run":
            given += ["--device", "cuda"]
        done = self.lilac(subcommand, self.file, "--grid", 1, *given, *words, status=status,
                          env=environment)
        self.calls = ""
        if os.path.exists(log):
            with open(log, encoding="utf-8") as file:
                self.calls = file.read()
        return done

    def ptxas(self, body):
        """A script in ptxas's place."""
        path = self.write("ptxas", "#!/bin/sh\n" + body)
        os.chmod(path, stat.S_IRWXU)
        return path


# Gives the PTX back, which is all the machine code that the fake driver needs.
COPY = """echo "ptxas info    : Function properties for twice"
echo "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"
cp "$3" "$5"
"""


class Run(GpuTest):
    def test_result(self):
        done = self.on_gpu("run", "--save", "o=o.npy", "--expect", "o=twice.npy,0", "--json")
        self.assertEqual(done.stderr, "")
        report = json.loads(done.stdout)
        self.assertEqual(report, {
            "kernel": "twice", "grid": [1, 1, 1], "num_warps": 4, "num_ctas": 1, "shared": 0,
            "device": {"name": "Fake GPU 0", "capability": 90, "multiprocessors": 132,
                       "memory_bytes": 80 << 30, "bandwidth": 1.024e12, "cuda": 13000},
            "target": "sm_90a", "seconds": 10e-6,
            "code": {"compiler": "driver", "seconds": report["code"]["seconds"], "registers": 40,
                     "local": 16, "spill_stores": 4, "spill_loads": 8},
            "expect": [{"name": "o", "largest_error": 0, "relative_error": 0, "tolerance": 0,
                        "passed": True}]})
        self.assertGreater(report["code"]["seconds"], 0)
        values, descr, shape = npy.read(self.path("o.npy"))
        self.assertEqual((descr, shape), ("f4", (10, 10)))
        self.assertEqual(values, [2 * value for value in self.values])
        self.assertIn("  twice grid 1 1 1 block 128 1 1 shared 0 on the default stream (",
                      self.calls)
        self.assertIn(", 00000064, 0000000000000000, 0000000000000000)", self.calls)

    def test_table(self):
        done = self.on_gpu("run", "--expect", "o=twice.npy", "--num-warps", 2)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "twice: 1 × 1 × 1 blocks of 2 warps, 0 bytes of shared memory "
                                   "each, on Fake GPU 0 (sm_90a)")
        self.assertEqual(lines[1], "10.0 µs, its first launch")
        self.assertRegex(lines[2], r"^driver: \d+\.\d\d ms, 40 registers, 4 bytes of them spilled, "
                                   r"8 read again, 16 bytes of local memory$")
        self.assertIn("o: largest error 0 ", lines[3])

    def test_failed_expectation(self):
        done = self.on_gpu("run", "--expect", "o=x.npy", "--json", status=CHECK)
        self.assertFalse(json.loads(done.stdout)["expect"][0]["passed"])

    def test_ptxas(self):
        path = self.ptxas(COPY)
        done = self.on_gpu("run", "--compiler", "ptxas", "--expect", "o=twice.npy", "--json",
                           LILAC_PTXAS=path)
        code = json.loads(done.stdout)["code"]
        self.assertEqual((code["compiler"], code["program"]), ("ptxas", path))
        self.assertEqual((code["spill_stores"], code["spill_loads"]), (0, 0))

    def test_ptxas_that_refuses(self):
        path = self.ptxas("echo 'ptxas kernel.ptx, line 7; error : it does not like it'\nexit 255\n")
        done = self.on_gpu("run", "--compiler", "ptxas", "--json", status=REFUSED,
                           LILAC_PTXAS=path)
        self.assertEqual(done.stdout, "null\n")
        self.assertIn("%s refused the PTX: exit status 255 [ptx-refused]\n" % path, done.stderr)
        self.assertIn("line 7; error : it does not like it\n", done.stderr)
        done = self.on_gpu("run", "--compiler", "ptxas", status=REFUSED)
        self.assertIn("LILAC_PTXAS names no program [no-ptxas]", done.stderr)

    def test_ptx_version(self):
        """What the chosen compiler cannot read is refused before it is asked."""
        done = self.on_gpu("run", rules="version=11080", status=REFUSED)
        self.assertIn("sm_90a needs PTX ISA version 8.0, and the newest that may be written is 7.8 "
                      "[ptx-version]", done.stderr)
        self.on_gpu("run", rules="version=12000")
        release = "[ \"$1\" = --version ] && echo 'Cuda compilation tools, release %s' && exit 0\n"
        path = self.ptxas(release % "11.8" + COPY)
        done = self.on_gpu("run", "--compiler", "ptxas", status=REFUSED, LILAC_PTXAS=path)
        self.assertIn("is 7.8 [ptx-version]", done.stderr)
        self.on_gpu("run", "--compiler", "ptxas", LILAC_PTXAS=self.ptxas(release % "12.8" + COPY))

    def test_targets(self):
        """What nobody says is the device's own; what is said must run there."""
        for rules, words, target in [("", [], "sm_90a"), ("capability=80", [], "sm_80"),
                                     ("capability=103", [], "sm_103a"), ("capability=110", [], "sm_90"),
                                     ("", ["--target", "sm_80"], "sm_80")]:
            done = self.on_gpu("run", "--json", *words, rules=rules)
            self.assertEqual(json.loads(done.stdout)["target"], target)
        done = self.on_gpu("run", "--target", "sm_90a", rules="capability=100", status=REFUSED)
        self.assertIn("kernel 'twice' is compiled for sm_90a, but Fake GPU 0 has compute capability "
                      "10.0 [wrong-device]", done.stderr)
        self.assertIn("note: compile it for sm_100a", done.stderr)
        done = self.on_gpu("run", rules="capability=75", status=REFUSED)
        self.assertIn("Fake GPU 0 has compute capability 7.5", done.stderr)
        said = TWICE.replace("module {", "module attributes {ttg.target = \"cuda:80\"} {")
        self.file = self.write("said.ttir", said)
        self.assertEqual(json.loads(self.on_gpu("run", "--json").stdout)["target"], "sm_80")
        self.file = self.write("wrong.ttir", "module {")
        done = self.on_gpu("run", status=REFUSED)
        self.assertEqual(done.stderr.count("error: "), 1, done.stderr)

    def test_other_devices(self):
        done = self.on_gpu("run", "--device", "cuda:1", "--json", rules="devices=2")
        self.assertEqual(json.loads(done.stdout)["device"]["name"], "Fake GPU 1")
        done = self.on_gpu("run", "--device", "cuda:2", rules="devices=2", status=REFUSED)
        self.assertIn("there is no device 2: the CUDA driver finds 2 [no-cuda-device]", done.stderr)

    def test_what_the_driver_refuses(self):
        for rules, words in [
                ("devices=0", "there is no device 0: the CUDA driver finds 0 [no-cuda-device]"),
                ("cuInit=999", "the CUDA driver does not start: fake words (CUDA_ERROR_FAKE)"),
                ("cuCtxCreate_v2=2", "no CUDA context on device 0, Fake GPU 0: out of memory"),
                ("cuModuleLoadDataEx=218", "note: it said:\nptxas fatal   : the fake compiler's"),
                ("cuMemAlloc_v2=2", "no 400 bytes of memory on Fake GPU 0: out of memory"),
                ("cuLaunchKernelEx=701", "kernel 'twice' cannot be launched: 1 × 1 × 1 blocks"),
                ("cuMemcpyDtoH_v2=2", "copying 400 bytes from 0x"),
                ("kernel=700", "an illegal memory access was encountered "
                               "(CUDA_ERROR_ILLEGAL_ADDRESS) [cuda-error]\n"
                               "lilac: note: launched since all was last well: twice\n")]:
            for json_words in ([], ["--json"]):
                done = self.on_gpu("run", "--save", "o=o.npy", *json_words, rules=rules,
                                   status=REFUSED)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stdout, "null\n" if json_words else "")
            self.assertFalse(os.path.exists(self.path("o.npy")))

    def test_too_much_shared_memory(self):
        done = self.on_gpu("run", rules="shared=1000 static=1001", status=REFUSED)
        self.assertIn("kernel 'twice' needs 1001 bytes of shared memory per block; Fake GPU 0 has "
                      "at most 1000 [too-much-shared-memory]", done.stderr)

    def test_no_driver(self):
        done = self.on_gpu("run", "--json", status=REFUSED, LILAC_LIBCUDA=self.path("none.so"))
        self.assertEqual(done.stdout, "null\n")
        self.assertIn("the CUDA driver cannot be loaded: %s: " % self.path("none.so"), done.stderr)
        self.assertIn("[no-cuda-library]", done.stderr)

    def test_wrong_arguments(self):
        """They are reported as for the simulator, and nothing is launched."""
        done = self.on_gpu("run", n="many", status=REFUSED)
        self.assertLocated(done, "<argument 3>", "argument-type", 1, "'many' is no integer")
        self.on_gpu("run", "--save", "y=y.npy", status=REFUSED)
        self.assertNotIn("cuLaunchKernelEx", self.calls)


class Bench(GpuTest):
    def test_measures(self):
        done = self.on_gpu("bench", "--json", "--seconds", "0.002", LILAC_PTXAS=self.ptxas(COPY))
        self.assertEqual(done.stderr, "")
        report = json.loads(done.stdout)
        self.assertEqual((report["kernel"], report["bytes"]), ("twice", 800))
        # The fake's launches take 10 to 14 microseconds by turns.
        self.assertEqual(report["launches"], 166)
        self.assertAlmostEqual(report["seconds"]["median"], 12e-6, delta=1e-8)
        self.assertAlmostEqual(report["seconds"]["least"], 10e-6, delta=1e-8)
        self.assertAlmostEqual(report["seconds"]["most"], 14e-6, delta=1e-8)
        self.assertAlmostEqual(report["seconds"]["low"], 10e-6, delta=1e-8)
        self.assertAlmostEqual(report["seconds"]["high"], 14e-6, delta=1e-8)
        self.assertAlmostEqual(report["bytes_per_second"], 800 / 12e-6, delta=1e5)
        self.assertEqual(report["code"]["registers"], 40)
        self.assertEqual(sorted(report["compile"]), ["driver", "lilac", "ptxas"])
        self.assertGreater(report["compile"]["lilac"], 0)
        for compiler in ("driver", "ptxas"):
            self.assertEqual(report["compile"][compiler]["compiler"], compiler)
            self.assertGreater(report["compile"][compiler]["seconds"], 0)

    def test_table(self):
        lines = self.on_gpu("bench", "--bytes", 1 << 40, LILAC_PTXAS=self.ptxas(COPY)).stdout.splitlines()
        self.assertIn("on Fake GPU 0 (sm_90a)", lines[0])
        self.assertRegex(lines[1], r"^time +12\.0 µs   median of 1000 launches; 5 % under 10\.0, 95 % "
                                   r"under 14\.0$")
        self.assertRegex(lines[2], r"^bandwidth +\d+\.\d\d\d TB/s 1099511627776 bytes, \d+\.\d % of "
                                   r"the 1\.02 TB/s of its pins$")
        self.assertRegex(lines[3], r"^lilac +\d+\.\d\d ms   TTIR to PTX$")
        self.assertRegex(lines[4], r"^driver +\d+\.\d\d ms   PTX to a loaded module, 40 registers, 4 \+ "
                                   r"8 bytes spilled and read again$")
        self.assertRegex(lines[5], r"^ptxas +\d+\.\d\d ms   PTX to a loaded module")

    def test_cold_and_warm(self):
        """What is overwritten before each launch is more than the cache holds, or nothing."""
        self.on_gpu("bench", "--launches", 3)
        self.assertEqual(self.calls.count("cuMemAlloc_v2\n"), 3)
        self.assertEqual(self.calls.count("cuLaunchKernelEx\n"), 5 + 3 + 3)
        self.on_gpu("bench", "--launches", 3, "--warm")
        self.assertEqual(self.calls.count("cuMemAlloc_v2\n"), 2)

    def test_without_ptxas(self):
        report = json.loads(self.on_gpu("bench", "--json").stdout)
        self.assertIsNone(report["compile"]["ptxas"])
        done = self.on_gpu("bench", LILAC_PTXAS=self.ptxas("echo no\nexit 1\n"))
        self.assertIn("refused the PTX: exit status 1 [ptx-refused]", done.stderr)
        self.assertNotRegex(done.stdout, r"(?m)^ptxas")
        self.assertRegex(done.stdout, r"(?m)^driver")

    def test_compiled_by_ptxas(self):
        path = self.ptxas(COPY)
        report = json.loads(self.on_gpu("bench", "--json", "--compiler", "ptxas",
                                        LILAC_PTXAS=path).stdout)
        self.assertEqual(report["code"]["compiler"], "ptxas")

    def test_refused(self):
        for rules, words in [("devices=0", "[no-cuda-device]"),
                             ("cuModuleLoadDataEx=218", "[ptx-refused]"),
                             ("cuMemAlloc_v2=2@3", "no 268435456 bytes of memory on Fake GPU 0"),
                             ("kernel=700", "launched since all was last well: twice")]:
            done = self.on_gpu("bench", "--json", rules=rules, status=REFUSED)
            self.assertEqual(done.stdout, "null\n")
            self.assertIn(words, done.stderr)
        done = self.on_gpu("bench", n="many", status=REFUSED)
        self.assertLocated(done, "<argument 3>", "argument-type", 1)
        self.file = self.path("none.ttir")
        self.assertIn("cannot read", self.on_gpu("bench", status=REFUSED).stderr)


if __name__ == "__main__":
    cli.OPTIONS = command.parse_arguments(__doc__)
    FAKE = os.path.abspath(cli.OPTIONS.names[0])
    unittest.main(argv=sys.argv[:1], verbosity=2)
