"""The corpus's kernels with matrix products, on the simulator: every number of stages gives the bits
that one stage gives, which leaves loops as they are, and nothing is reported.

K, where a kernel has it, is such that loops have no iteration, one, a part of one, and several. A kernel
that is refused is a visible skip.
"""

import json
import os
import random
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import npy  # noqa: E402

# name: the values of K that the buffers of the case have room for
KERNELS = {
    "matmul_f16": (0, 64, 112, 256),
    "matmul_bf16_bT": (0, 64, 112, 256),
    "matmul_f8": (0, 128, 208, 256),
    "matmul_i8": (0, 64, 112, 256),
    "matmul_tf32": (0, 32, 48, 128),
    "matmul_f16_skinny": (0, 128),
    "int4_matmul": (0, 64, 256),
    "mxfp4_matmul": (0, 128, 256),
    "attention_f16_d64_full": (None,),
    "attention_f16_d128_causal": (None,),
}
STAGES = (1, 2, 3, 4)


def numbers(source, argument, scale):
    """Small numbers, as numpy's type and values."""
    count, kind = argument["elements"], argument["dtype"]
    whole = [source.randrange(-4, 5) for _ in range(count)]
    if kind in ("float16", "float32"):
        return ("f2" if kind == "float16" else "f4"), [scale * x for x in whole]
    if kind == "bfloat16":
        return "u2", [struct.unpack("<I", struct.pack("<f", x))[0] >> 16 for x in whole]
    if kind.startswith("float8"):
        return "u1", [source.randrange(0x58) for _ in range(count)]
    return {"int8": "i1", "uint8": "u1", "int32": "i4"}[kind], [abs(x) for x in whole] \
        if kind == "uint8" else whole


def arguments_of(case, k, folder):
    source = random.Random("%s %s" % (case["name"], k))
    words, outputs = [], []
    for argument in case["arguments"]:
        name = argument["name"]
        if argument["kind"] == "scalar":
            value = k if name == "K" and k is not None else argument["value"]
            words += ["--arg", "%s=%s" % (name, value)]
            continue
        descr, values = numbers(source, argument, 0.25 if "attention" in case["name"] else 1)
        if argument["written"]:
            values = [0] * len(values)
            outputs.append(name)
        path = os.path.join(folder, name + ".npy")
        npy.write(path, descr, values)
        words += ["--arg", "%s=@%s" % (name, path)]
    return words, outputs


def source_of(data, case):
    return os.path.join(data, "corpus", case["name"] + ".ttir")


def run(lilac, source, case, stages, words, outputs, folder):
    """The outputs' bytes, or the reason why there are none; and whether the kernel is refused."""
    saved = [os.path.join(folder, "out_%s.npy" % name) for name in outputs]
    for name, path in zip(outputs, saved):
        words = words + ["--save", "%s=%s" % (name, path)]
    done = command.run(lilac, "run", source, "--grid",
                       ",".join(str(size) for size in case["grid"]), "--num-warps",
                       case["num_warps"], "--num-stages", stages, "--verify", "--json", *words)
    if done.returncode != 0:
        return None, done.stderr, "[unsupported-" in done.stderr
    if json.loads(done.stdout)["findings"] or done.stderr:
        return None, "the simulator reports:\n%s" % done.stderr, False
    contents = []
    for path in saved:
        with open(path, "rb") as file:
            contents.append(file.read())
    return contents, None, False


def check(lilac, data, case, k):
    """None, or the reason for a failure; and whether the kernel is refused."""
    with tempfile.TemporaryDirectory() as folder:
        words, outputs = arguments_of(case, k, folder)
        wanted = None
        for stages in STAGES:
            found, reason, refused = run(lilac, source_of(data, case), case, stages, words, outputs, folder)
            if found is None:
                return "%d stages: %s" % (stages, reason), refused
            wanted = wanted or found
            if found != wanted:
                return "%d stages: the outputs differ from those of one stage" % stages, False
    return None, False


def main():
    arguments = command.parse_arguments(__doc__)
    cases = command.read_cases(arguments.data)
    failures, count = [], 0
    for name in arguments.names or KERNELS:
        for k in KERNELS[name]:
            reason, refused = check(arguments.lilac, arguments.data, cases[name], k)
            print("%-26s K = %-5s %s" % (name, k, "SKIPPED: " + reason.split("\n")[0] if refused else
                                         "FAILED: " + reason if reason else "ok"))
            if refused:
                break
            count += 1
            if reason:
                failures.append(name)
    if count == 0:
        sys.exit(command.SKIPPED)
    command.finish(failures, count, "launches with every number of stages")


if __name__ == "__main__":
    main()
