"""The machine code of kernels with matrix products: those of the corpus, TTIR and TTGIR, and samples of
Triton's tests. lilac compiles them for sm_90a, ptxas assembles them, nvdisasm disassembles them.

Checked (tests/support/machine_code.py has the rules):

    the kernel       no warning of ptxas, so no serialised wgmma (C75xx); no local memory, no calls, no
                     predicated wgmma; registers within what the launch allows; nothing writes the A
                     registers of a wgmma before the wait that covers it
    each innermost   as many products, groups, barriers, fences of the async proxy and groups of copies
    loop with        as its PTX; the same waits; copies of the same sizes; no more WARPGROUP.ARRIVE than
    products         the PTX has wgmma.fence; no R2UR beside wgmma; at most 1,000 instructions; work
                     that the PTX has under products in flight stays there

The PTX's counts are the plan's: the lowering prints one instruction for each step.
"""

import glob
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import machine_code  # noqa: E402

PRODUCT = re.compile(r"\btt\.dot\b|\btt\.dot_scaled\b|\bttng\.warp_group_dot\b")

# What lilac refuses, with the id of its diagnostic. TTGIR of descriptors needs tensor maps.
REFUSED = {"matmul_descriptor_f16.ttgir": "unsupported-operation"}

# ptxas moves the softmax in front of the product of the next scores: the loop carries the scores, and
# ptxas keeps those of this iteration and the next one in the same registers.
LOSES_OVERLAP = {"attention_f16_d64_full.ttir"}

# One of each shape of dot_scale_kernel and kernel suffices; there are many.
SAMPLES = 200


def find_tool(name, folder):
    """A tool of the CUDA toolkit: installed, or of a Triton package of this Python or below `folder`."""
    places = [os.environ["PATH"], "/usr/local/cuda/bin"]
    triton = importlib.util.find_spec("triton")
    packages = list(triton.submodule_search_locations) if triton else []
    packages += sorted(glob.glob(os.path.join(folder, "venv-*/lib/python*/site-packages/triton")))
    places += [os.path.join(package, "backends", "nvidia", "bin") for package in packages]
    return shutil.which(name, path=os.pathsep.join(places))


def read_names(data):
    """(file, options) of the corpus's kernels with products, and of some of the sample's."""
    for name, case in sorted(command.read_cases(data).items()):
        for kind, options in [("ttir", ["--num-warps", case["num_warps"], "--num-stages",
                                        case["num_stages"]]), ("ttgir", [])]:
            yield os.path.join(data, "corpus", "%s.%s" % (name, kind)), options
    with open(os.path.join(data, "ttir", "index.jsonl"), encoding="utf-8") as file:
        for case in map(json.loads, file):
            path = os.path.join(data, "ttir", case["file"])
            yield path, ["--num-warps", case["num_warps"], "--num-stages", case["num_stages"]]


def has_product(path):
    with open(path, encoding="utf-8") as file:
        return PRODUCT.search(file.read()) is not None


class Kernel:
    """What became of a kernel: its failures, the loops' counts, a note."""

    def __init__(self, name):
        self.name, self.failures, self.loops, self.note, self.registers = name, [], [], "", 0


def run(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True)


def check(lilac, ptxas, nvdisasm, path, options):
    kernel = Kernel(os.path.basename(path))
    with tempfile.TemporaryDirectory() as folder:
        text, binary = os.path.join(folder, "kernel.ptx"), os.path.join(folder, "kernel.cubin")
        done = command.run(lilac, "compile", path, "-o", text, "--target", "sm_90a", "--no-line-info", *options)
        expected = REFUSED.get(kernel.name)
        if done.returncode != 0 or expected:
            kernel.note = "refused: " + done.stderr.split("\n")[0].split("error: ")[-1]
            if done.returncode == 0:
                kernel.failures.append("it compiles: remove it from REFUSED")
            elif "[%s]" % expected not in done.stderr and (
                    "corpus" in path.split(os.sep) or "[unsupported-" not in done.stderr):
                kernel.failures.append(done.stderr)
            return kernel
        with open(text, encoding="utf-8") as file:
            ptx = file.read()
        done = run(ptxas, "-arch=sm_90a", "-v", "-o", binary, text)
        kernel.failures, kernel.registers = machine_code.check_log(done.stdout, ptx)
        if done.returncode != 0:
            return kernel
        done = run(nvdisasm, "-c", binary)
        if done.returncode != 0:
            kernel.failures.append("nvdisasm: " + done.stdout)
            return kernel
    ptx, sass = machine_code.Program(ptx), machine_code.Program(done.stdout)
    kernel.failures += machine_code.check_kernel(ptx, sass)
    kernel.loops = machine_code.compare_loops(ptx, sass) or []
    lost = any(machine_code.lost_overlap(*loop) for loop in kernel.loops)
    if lost and kernel.name not in LOSES_OVERLAP:
        kernel.failures.append("ptxas moves work out from under the products in flight")
    elif lost:
        kernel.note = "known: ptxas moves work out from under the products in flight"
    return kernel


def describe(kernel):
    print("%-44s %s" % (kernel.name[:44], kernel.note or "%d registers" % kernel.registers))
    for ptx, sass in kernel.loops:
        print("    loop of %4d: %3d products in %d groups, %d fences, waits %s, %d barriers, copies %s, "
              "%d R2UR; in flight %3.0f %% of the PTX, %3.0f %% of the SASS" % (
                  sass["instructions"], sass["products"], sass["groups"], sass["fences"], sass["waits"],
                  sass["barriers"], machine_code.show(sass["copies"]), sass["to uniform"],
                  100 * ptx["in flight"], 100 * sass["in flight"]))
    for failure in kernel.failures:
        print("    FAILED: " + failure)


def main():
    arguments = command.parse_arguments(__doc__, tools="the folder of environments with Triton")
    ptxas, nvdisasm = (find_tool(name, arguments.tools or "") for name in ("ptxas", "nvdisasm"))
    if not ptxas or not nvdisasm:
        print("skipped: there is no %s here" % ("nvdisasm" if ptxas else "ptxas"))
        sys.exit(command.SKIPPED)
    chosen = [(path, options) for path, options in read_names(arguments.data) if has_product(path) and
              (not arguments.names or os.path.basename(path) in arguments.names)]
    with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as workers:
        kernels = list(workers.map(
            lambda one: check(arguments.lilac, ptxas, nvdisasm, *one), chosen))
    for kernel in kernels:
        describe(kernel)
    assembled = [kernel for kernel in kernels if kernel.registers]
    print("%d kernels refused; %d assembled, with %d loops and %d products in them" % (
        len(kernels) - len(assembled), len(assembled), sum(len(kernel.loops) for kernel in kernels),
        sum(sass["products"] for kernel in kernels for _, sass in kernel.loops)))
    command.finish([kernel.name for kernel in kernels if kernel.failures], len(kernels), "kernels")


if __name__ == "__main__":
    main()
