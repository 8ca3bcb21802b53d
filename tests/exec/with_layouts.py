"""Modules that come with layouts on the simulator: every layout of Triton's is kept.

    recorded    the corpus's launches from the TTGIR that Triton made of them
    written     tests/data/ttgir: loops of conversions, which must give back what they were given;
                reductions in slices; buffers of shared memory and views of them

The number of warps comes from the module. Nothing may be reported, and races would be.
"""

import json
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import corpus  # noqa: E402
import npy  # noqa: E402


def integers(descr, bits):
    return lambda source: source.randrange(-(1 << (bits - 1)), 1 << (bits - 1))


def halves(source):
    return npy.round_f16(source.uniform(-2, 2))


def whole(source):
    """Sums of these are exact in f32, in any order."""
    return float(source.randrange(-64, 64))


def converted(x):
    return {"dst": list(x)}


def sliced(x):
    rows, columns = 64, 64
    sums = [sum(x[r * columns:(r + 1) * columns]) for r in range(rows)]
    tops = [max(x[c::columns]) for c in range(columns)]
    return {"sums": sums, "dst": [x[r * columns + c] - sums[r] + tops[c]
                                  for r in range(rows) for c in range(columns)]}


def viewed(x):
    """One of several buffers, a buffer transposed, its lower half, all of it in another shape and
    as numbers of another type, one after the other."""
    turned = [x[r * 64 + c] for c in range(64) for r in range(64)]
    return {"dst": x + turned + x[32 * 64:] + [0] * (32 * 64) + x + x}


# name: buffers with their types and sizes, the other arguments, numbers, reference
KERNELS = {
    "convert_mma_f16": ({"src": ("f2", 64 * 128), "dst": ("f2", 64 * 128)}, {"n": 3}, halves,
                        converted),
    "convert_blocked_i8": ({"src": ("i1", 128 * 64), "dst": ("i1", 128 * 64)}, {"n": 2},
                           integers("i1", 8), converted),
    "convert_wgmma_i32": ({"src": ("i4", 64 * 64), "dst": ("i4", 64 * 64)}, {"n": 3},
                          integers("i4", 32), converted),
    "convert_blocked_i64": ({"src": ("i8", 32 * 64), "dst": ("i8", 32 * 64)}, {"n": 1},
                            integers("i8", 64), converted),
    "slices_f32": ({"src": ("f4", 64 * 64), "dst": ("f4", 64 * 64), "sums": ("f4", 64)}, {"n": 2},
                   whole, sliced),
    "shared_memory": ({"src": ("f2", 64 * 64), "dst": ("f2", 5 * 64 * 64)}, {}, halves, viewed),
}
# Of the corpus: what is lowered from TTGIR by now.
RECORDED = command.LAUNCHES + ["transpose_float16", "transpose_int8", "reduce_64x64_axis0",
                               "reduce_16x256_axis1"]


def findings(done, outputs):
    """Why a run fails, or None."""
    if done.returncode not in (0, 3):
        return "exit status %d\n%s" % (done.returncode, done.stderr)
    report = json.loads(done.stdout)
    if len(report["expect"]) != outputs:
        return "not every output was compared"
    if done.returncode != 0:
        return "outputs differ: %s" % json.dumps(report["expect"])
    if report["findings"] or done.stderr:
        return "it has something to say:\n%s" % done.stderr
    return None


def check_written(lilac, data, name):
    buffers, scalars, number, reference = KERNELS[name]
    source = random.Random(name)
    x = [number(source) for _ in range(buffers["src"][1])]
    words = ["--grid", "1"]
    with tempfile.TemporaryDirectory() as folder:
        for buffer, (descr, count) in buffers.items():
            path = os.path.join(folder, buffer + ".npy")
            npy.write(path, descr, x if buffer == "src" else [0] * count)
            words += ["--arg", "%s=@%s" % (buffer, path)]
        for scalar, value in scalars.items():
            words += ["--arg", "%s=%s" % (scalar, value)]
        wanted = reference(x)
        for buffer, values in wanted.items():
            path = os.path.join(folder, "want_%s.npy" % buffer)
            npy.write(path, buffers[buffer][0], values)
            words += ["--expect", "%s=%s,0" % (buffer, path)]
        done = command.run(lilac, "run", os.path.join(data, "ttgir", name + ".ttgir"), "--verify",
                           "--json", *words)
    return findings(done, len(wanted))


def check_recorded(lilac, data, case):
    """As corpus.py, of the text with layouts and without --num-warps."""
    words = ["--grid", ",".join(str(size) for size in case["grid"])]
    return corpus.check(lilac, data, case, suffix=".ttgir", words=words)[0]


def main():
    arguments = command.parse_arguments(__doc__)
    cases = command.read_cases(arguments.data)
    failures = []
    names = arguments.names or list(KERNELS) + RECORDED
    for name in names:
        reason = (check_written(arguments.lilac, arguments.data, name) if name in KERNELS
                  else check_recorded(arguments.lilac, arguments.data, cases[name]))
        print("%-24s %s" % (name, "FAILED: " + reason if reason else "ok"))
        if reason:
            failures.append(name)
    command.finish(failures, len(names), "modules with layouts")


if __name__ == "__main__":
    main()
