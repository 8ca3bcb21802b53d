"""What ptxas says of the ten kernels, and what their PTX asks of the memory system.

No warning and no spill; global accesses as wide as the parameters' attributes allow; no more
barriers, and no more shared memory, than in what Triton makes of the same TTIR (recorded in
tests/data/corpus/triton_ptx.json).
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402

# Global accesses that a tensor's attributes allow to be 128 bits wide must be; these are the others,
# with what they are: scalars, and rows whose length is not known to be a multiple of anything.
NARROW = {
    "softmax_float32_1000": {32},          # row strides and lengths of any size
    "layer_norm_f16_4096": {32},           # one mean and one deviation a row
    "layer_norm_f16_5120": {32},
    "cross_entropy_bf16": {16, 32, 64},    # rows of any length; a loss and a target a row
}

ACCESS = re.compile(r"\b(?:ld|st)\.(?:volatile\.|relaxed\.|weak\.)?global([\w.:]*)")
BARRIER = re.compile(r"\bbar(?:rier)?\.(?:cta\.)?sync\b")


def access_bits(suffix):
    vector = re.search(r"\.v([248])\b", suffix)
    width = re.search(r"\.[bsuf](8|16|32|64|128)$", suffix)
    return int(width.group(1)) * (int(vector.group(1)) if vector else 1)


def code_lines(ptx):
    return [line.split("//")[0] for line in ptx.splitlines()]


def check_accesses(name, ptx):
    allowed = NARROW.get(name, set()) | {128}
    widths = [access_bits(match.group(1)) for line in code_lines(ptx)
              for match in [ACCESS.search(line)] if match]
    if not widths:
        return "no global access found"
    wrong = sorted(set(widths) - allowed)
    if wrong:
        return "global accesses of %s bits" % wrong
    if name not in ("softmax_float32_1000", "cross_entropy_bf16") and 128 not in widths:
        return "no global access of 128 bits"
    return None


def check_against_triton(ptx, shared, triton):
    barriers = sum(len(BARRIER.findall(line)) for line in code_lines(ptx))
    if barriers > triton["barriers"]:
        return "%d barriers, Triton has %d" % (barriers, triton["barriers"])
    if shared > triton["shared"]:
        return "%d bytes of shared memory, Triton has %d" % (shared, triton["shared"])
    return None


def check_ptxas(ptxas, path):
    """Why ptxas is not content, or None; and the registers it reports."""
    done = subprocess.run([ptxas, "-arch=sm_90a", "-v", "-o", os.devnull, path],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    if done.returncode != 0:
        return "ptxas refuses it:\n%s" % done.stdout, 0
    if "warning" in done.stdout.lower():
        return "ptxas warns:\n%s" % done.stdout, 0
    spills = re.findall(r"(\d+) bytes spill", done.stdout)
    if not spills or any(int(bytes) for bytes in spills):
        return "registers are spilled:\n%s" % done.stdout, 0
    return None, int(re.search(r"Used (\d+) registers", done.stdout).group(1))


def check(lilac, data, ptxas, case, triton):
    source = os.path.join(data, "corpus", case["name"] + ".ttir")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.ptx")
        done = command.run(lilac, "compile", source, "-o", path, "--json",
                           "--num-warps", case["num_warps"], "--num-stages", case["num_stages"])
        if done.returncode != 0 or done.stderr:
            return "exit status %d\n%s" % (done.returncode, done.stderr)
        with open(path, encoding="utf-8") as file:
            ptx = file.read()
        shared = json.loads(done.stdout)["shared"]
        reason = check_accesses(case["name"], ptx) or check_against_triton(ptx, shared, triton)
        if reason or not ptxas:
            return reason
        reason, registers = check_ptxas(ptxas, path)
    if not reason:
        print("%-24s %3d registers, %d bytes of shared memory" % (case["name"], registers, shared))
    return reason


def main():
    arguments = command.parse_arguments(__doc__)
    cases = command.read_cases(arguments.data)
    ptxas = shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")
    with open(os.path.join(arguments.data, "corpus", "triton_ptx.json"), encoding="utf-8") as file:
        triton = json.load(file)["launches"]
    failures = []
    names = arguments.names or command.LAUNCHES
    for name in names:
        reason = check(arguments.lilac, arguments.data, ptxas, cases[name], triton[name])
        if reason:
            failures.append(name)
            print("%-24s FAILED: %s" % (name, reason))
    if not failures and not ptxas:
        print("skipped: the PTX is as it should be, but there is no ptxas here to ask")
        sys.exit(command.SKIPPED)
    command.finish(failures, len(names), "kernels")


if __name__ == "__main__":
    main()
