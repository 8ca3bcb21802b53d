"""The loops of the corpus's pipelined products in PTX: barriers of the block, asynchronous copies,
the products that are in flight over the back edge, and no fence; ptxas does not serialise the products.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402

# name: barriers and the groups of products that the last wait of an iteration leaves in flight
# (None: products by mma.sync). Copies that start behind the products have a barrier of their own
# (src/engine/pipeline/depth.c); in attention a delayed product stays in flight, and mbarriers take the
# place of barriers (src/engine/warps/decouple_warps.c). int4_matmul converts its weights through shared memory, with a barrier behind the stores; that in front of
# them is the one behind the copies' wait.
KERNELS = {
    "matmul_f16": (2, 1),
    "matmul_bf16_bT": (2, 1),
    "matmul_f8": (2, 1),
    "matmul_i8": (1, 1),
    "matmul_tf32": (1, 0),
    "matmul_f16_skinny": (2, None),
    "int4_matmul": (2, 0),
    "attention_f16_d64_full": (0, 1),
    "attention_f16_d128_causal": (0, 1),
}

LOOP = re.compile(r"^\$L_loop_(\d+):$(.*?)^\s*@%\w+ bra(?:\.uni)? \$L_loop_\1;$", re.M | re.S)


def check_loop(loop, barriers, in_flight):
    found = len(re.findall(r"\bbar\.sync\b", loop))
    if found != barriers:
        return "%d barriers in the loop, expected %d" % (found, barriers)
    if "ld.global" in loop or "fence.proxy" in loop or "cp.async.cg" not in loop:
        return "the loop has loads from global memory, fences, or no copies"
    waits = re.findall(r"wgmma\.wait_group\S* (\d+);", loop)
    left = int(waits[-1]) if waits else None
    if left != in_flight:
        return "the last wait leaves %s groups in flight, expected %s" % (left, in_flight)
    return None


def check_ptxas(ptxas, path):
    done = subprocess.run([ptxas, "-arch=sm_90a", "-v", "-o", os.devnull, path],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    if done.returncode != 0 or re.search(r"C75\d\d|warning", done.stdout):
        return "ptxas says:\n%s" % done.stdout
    spills = re.findall(r"(\d+) bytes spill", done.stdout)
    return None if not any(int(count) for count in spills) else "registers are spilled"


def check(lilac, data, ptxas, case):
    """None, or the reason for a failure; and whether the kernel is refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.ptx")
        done = command.run(lilac, "compile", os.path.join(data, "corpus", case["name"] + ".ttir"),
                           "-o", path, "--num-warps", case["num_warps"], "--num-stages",
                           case["num_stages"])
        if done.returncode != 0:
            return done.stderr, "[unsupported-" in done.stderr
        with open(path, encoding="utf-8") as file:
            loops = [match.group(2) for match in LOOP.finditer(file.read())]
        loops = [loop for loop in loops if "mma" in loop]
        if len(loops) != 1:
            return "%d loops with products, expected 1" % len(loops), False
        reason = check_loop(loops[0], *KERNELS[case["name"]])
        return reason or (check_ptxas(ptxas, path) if ptxas else None), False


def main():
    arguments = command.parse_arguments(__doc__)
    cases = command.read_cases(arguments.data)
    ptxas = shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")
    failures, count = [], 0
    for name in arguments.names or KERNELS:
        reason, refused = check(arguments.lilac, arguments.data, ptxas, cases[name])
        print("%-26s %s" % (name, "SKIPPED: " + reason.split("\n")[0] if refused else
                            "FAILED: " + reason if reason else "ok"))
        count += not refused
        if reason and not refused:
            failures.append(name)
    if not failures and (not ptxas or count == 0):
        print("skipped: there is no ptxas here, or all kernels are refused")
        sys.exit(command.SKIPPED)
    command.finish(failures, count, "pipelined loops")


if __name__ == "__main__":
    main()
