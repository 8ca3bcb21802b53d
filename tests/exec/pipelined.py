"""Loops that Triton pipelined, on the simulator: rings of buffers, asynchronous copies with masks,
tokens that loops carry (tests/data/ttgir/pipelined_*.ttgir, which pipelined.py wrote there).

The trip counts are below, at and above the depth of the pipeline. Inputs are small integers, so the
outputs are exact. Nothing may be reported.
"""

import json
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import npy  # noqa: E402


def whole(source, count, least=-8, most=8):
    return [source.randrange(least, most) for _ in range(count)]


def run_sum(source, n):
    p = whole(source, 512 * max(n, 1))
    return {"p": ("f4", p)}, [sum(p[i * 512 + j] for i in range(n)) for j in range(512)]


def run_rows(source, n):
    p = whole(source, 32 * n)
    return {"p": ("f2", p)}, [sum(p[r * n:(r + 1) * n]) for r in range(32)]


def run_gather(source, n):
    p = whole(source, 4096)
    index = whole(source, 512 * max(n, 1), 0, 4200)
    x = [p[i] if i < 4096 else 2 for i in index]
    return ({"p": ("f4", p), "idx": ("i4", index)},
            [sum(x[i * 512 + j] for i in range(n)) for j in range(512)])


def run_max(source, n):
    p, w = whole(source, 64 * n), whole(source, n)
    return ({"p": ("f2", p), "w": ("f4", w)},
            [max(p[r * n + c] * w[c] for c in range(n)) for r in range(64)])


# name: inputs and the expected output for n; the values of n
KERNELS = {
    "pipelined_sum": (run_sum, (0, 1, 2, 3, 9)),
    "pipelined_rows": (run_rows, (16, 64, 128, 208, 400)),
    "pipelined_gather": (run_gather, (0, 1, 2, 3, 5)),
    "pipelined_max": (run_max, (64, 128, 192, 320)),
}


def check(lilac, data, name, n):
    reference, _ = KERNELS[name]
    inputs, wanted = reference(random.Random("%s %d" % (name, n)), n)
    words = ["--grid", "1", "--arg", "n=%d" % n, "--arg", "q=zeros:f32:%d" % len(wanted)]
    with tempfile.TemporaryDirectory() as folder:
        for buffer, (descr, values) in inputs.items():
            path = os.path.join(folder, buffer + ".npy")
            npy.write(path, descr, values)
            words += ["--arg", "%s=@%s" % (buffer, path)]
        path = os.path.join(folder, "want.npy")
        npy.write(path, "f4", wanted)
        words += ["--expect", "q=%s,0" % path]
        done = command.run(lilac, "run", os.path.join(data, "ttgir", name + ".ttgir"), "--verify",
                           "--json", *words)
    if done.returncode not in (0, 3):
        return "exit status %d\n%s" % (done.returncode, done.stderr)
    report = json.loads(done.stdout)
    if len(report["expect"]) != 1 or done.returncode != 0:
        return "the output differs: %s" % json.dumps(report["expect"])
    if report["findings"] or done.stderr:
        return "the simulator reports:\n%s" % done.stderr
    return None


def main():
    arguments = command.parse_arguments(__doc__)
    failures = []
    runs = [(name, n) for name in arguments.names or KERNELS for n in KERNELS[name][1]]
    for name, n in runs:
        reason = check(arguments.lilac, arguments.data, name, n)
        print("%-20s n = %-4d %s" % (name, n, "FAILED: " + reason if reason else "ok"))
        if reason:
            failures.append(name)
    command.finish(failures, len(runs), "launches of pipelined loops")


if __name__ == "__main__":
    main()
