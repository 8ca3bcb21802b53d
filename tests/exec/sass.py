"""The machine code of kernels with matrix products: those of the corpus, TTIR and TTGIR, a sample of
tests/data/ttir, and those of tests/data/products. lilac compiles them for sm_90a, ptxas assembles them,
nvdisasm disassembles them.

Checked (tests/support/machine_code.py has the rules, tests/exec/sass_rules.py tests them):

    the kernel       no warning of ptxas, so no serialised wgmma (C75xx); no product fewer than in the
                     PTX; no local memory, no calls, no predicated wgmma; registers within what the
                     launch allows; nothing writes the A registers of a wgmma before the wait that
                     covers it
    each innermost   as many products, groups, barriers, fences of the async proxy, groups of copies and
    loop with        accesses to shared memory as its PTX; the same waits; copies of the same sizes; no
    products         more WARPGROUP.ARRIVE than the PTX has wgmma.fence; no R2UR beside wgmma; at most
                     1,000 instructions; work that the PTX has under products in flight stays there

The PTX's counts are the plan's: the lowering prints one instruction for each step. A kernel that violates
a rule has an entry in EXCEPTIONS, with the rules and the reason; all other rules hold for it, too.
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

# What lilac refuses, with the id of its diagnostic.
REFUSED = {}

# Kernels of Triton's tests that violate rules, and why.
EXCEPTIONS = {
    "_gemm_kernel_preshuffled_scales_cdna4-dc989cfe.ttir": (
        {"local memory", "size"},
        "operands A and B are converted from 4 bits at once, which are 128 and 64 registers of a thread"),
    "invariant.ttgir": (
        {"groups", "size"},
        "two blocks of rows whose operand A is in registers are two groups, and 64 scores of a thread are masked"),
    "kernel-1f82d4d3.ttir": (
        {"local memory"},
        "two f32 tensors of 4 x 32 x 64 in 64 threads are 256 registers of a thread"),
    "kernel-de5dbfc4.ttir": (
        {"local memory"},
        "a product of f32 that is not tf32: a thread reads all its rows of A and columns of B, 768 "
        "registers, before it multiplies, and ptxas does not move the reads over the barrier"),
    "matmul_kernel-63715bd6.ttir": (
        {"message", "local memory", "groups", "waits", "fences", "size", "overlap"},
        "64 x 512 accumulators in 128 threads are 256 registers of a thread"),
    "matmul_kernel-95a91a0e.ttir": (
        {"local memory"},
        "128 accumulators of a thread and 64 of a sum that is added to them (maxNumImpreciseAcc), beside a "
        "block of B that is transposed through registers"),
    "mxfp8_mxfp4_matmul_tma-1c1a751b.ttir": (
        {"message", "local memory", "groups", "waits", "fences", "size", "overlap",
         "uniform"},
        "128 x 256 scaled numbers are operand A, 128 registers of a thread beside 128 accumulators, and "
        "as many are converted to operand B"),
    "simple_persistent_kernel-69d21182.ttir": (
        {"local memory"},
        "128 accumulators of a thread, which a conditional in the loop stores and sets to zero"),
}

# What ptxas 12.8 compiles wrongly without care; each file says where that is taken.
DELICATE = os.path.join("products", "*.ttir"), os.path.join("products", "*.ttgir")

SAMPLES = 24  # of the kernels in tests/data/ttir that have the same name


def find_tool(name, folder):
    """A tool of the CUDA toolkit, rather that of a Triton package of this Python or below `folder`, which assembles
    the kernels that people run, than an installed one."""
    places = [os.environ["PATH"], "/usr/local/cuda/bin"]
    triton = importlib.util.find_spec("triton")
    packages = list(triton.submodule_search_locations) if triton else []
    packages += sorted(glob.glob(os.path.join(folder, "venv-*/lib/python*/site-packages/triton")))
    bundles = [os.path.join(package, "backends", "nvidia", "bin") for package in packages]
    return shutil.which(name, path=os.pathsep.join(bundles + places))


def read_corpus(data):
    """(file, options) of the corpus's kernels with products."""
    for name, case in sorted(command.read_cases(data).items()):
        options = ["--num-warps", case["num_warps"], "--num-stages", case["num_stages"]]
        for kind, own in [("ttir", options), ("ttgir", [])]:
            path = os.path.join(data, "corpus", "%s.%s" % (name, kind))
            if has_product(path):
                yield path, own


def read_delicate(data):
    """(file, options) of the kernels that DELICATE names."""
    for pattern in DELICATE:
        for path in sorted(glob.glob(os.path.join(data, pattern))):
            yield path, ["--num-warps", "4"]


def read_samples(data):
    """(file, options) of some kernels of Triton's tests: at most SAMPLES of a name, evenly spread, and
    those with exceptions."""
    kinds = {}
    with open(os.path.join(data, "ttir", "index.jsonl"), encoding="utf-8") as file:
        for case in map(json.loads, file):
            if has_product(os.path.join(data, "ttir", case["file"])):
                kinds.setdefault(case["kernel"], []).append(case)
    for cases in kinds.values():
        step = max(1, -(-len(cases) // SAMPLES))
        for at, case in enumerate(cases):
            if at % step == 0 or case["file"] in EXCEPTIONS:
                yield os.path.join(data, "ttir", case["file"]), [
                    "--num-warps", case["num_warps"], "--num-stages", case["num_stages"]]


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


def add_failures(kernel, violations):
    """A violation is a failure unless its rule is excepted for this kernel."""
    rules, reason = EXCEPTIONS.get(kernel.name, (set(), ""))
    violated = {violation.rule for violation in violations}
    kernel.failures += ["[%s] %s" % violation for violation in violations if violation.rule not in rules]
    if rules & violated:
        kernel.note = "excepted: %s (%s)" % (", ".join(sorted(rules & violated)), reason)
    if rules - violated:
        kernel.note += "; no longer necessary: " + ", ".join(sorted(rules - violated))


def check_refusal(kernel, done):
    kernel.note = "refused: " + done.stderr.split("\n")[0].split("error: ")[-1]
    expected = REFUSED.get(kernel.name)
    if done.returncode == 0:
        kernel.failures.append("it compiles: remove it from REFUSED")
    elif expected is None or "[%s]" % expected not in done.stderr:
        kernel.failures.append(done.stderr)
    return kernel


def check(lilac, ptxas, nvdisasm, path, options):
    kernel = Kernel(os.path.basename(path))
    with tempfile.TemporaryDirectory() as folder:
        text, binary = os.path.join(folder, "kernel.ptx"), os.path.join(folder, "kernel.cubin")
        done = command.run(lilac, "compile", path, "-o", text, "--target", "sm_90a", "--no-line-info",
                           *options)
        if done.returncode != 0 or kernel.name in REFUSED:
            return check_refusal(kernel, done)
        with open(text, encoding="utf-8") as file:
            ptx = file.read()
        done = run(ptxas, "-arch=sm_90a", "-v", "-o", binary, text)
        violations, kernel.registers = machine_code.check_log(done.stdout, ptx)
        if done.returncode != 0:
            kernel.failures.append("ptxas: " + done.stdout)
            return kernel
        done = run(nvdisasm, "-c", binary)
        if done.returncode != 0:
            kernel.failures.append("nvdisasm: " + done.stdout)
            return kernel
    ptx, sass = machine_code.Program(ptx), machine_code.Program(done.stdout)
    if not sass.instructions:
        kernel.failures.append("nvdisasm writes no instructions")
    add_failures(kernel, violations + machine_code.check_kernel(ptx, sass))
    kernel.loops = machine_code.compare_loops(ptx, sass) or []
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
    chosen = [(path, options)
              for path, options in [*read_corpus(arguments.data), *read_samples(arguments.data),
                                    *read_delicate(arguments.data)]
              if not arguments.names or os.path.basename(path) in arguments.names]
    with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as workers:
        kernels = list(workers.map(
            lambda one: check(arguments.lilac, ptxas, nvdisasm, *one), chosen))
    for kernel in kernels:
        describe(kernel)
    assembled = [kernel for kernel in kernels if kernel.registers]
    loops = [sass for kernel in kernels for _, sass in kernel.loops]
    print("%d kernels refused; %d assembled, %d of them with exceptions; %d loops with %d products" % (
        len(kernels) - len(assembled), len(assembled),
        sum(kernel.name in EXCEPTIONS for kernel in assembled), len(loops),
        sum(sass["products"] for sass in loops)))
    command.finish([kernel.name for kernel in kernels if kernel.failures], len(kernels), "kernels")


if __name__ == "__main__":
    main()
