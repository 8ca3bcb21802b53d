"""Launches of the kernels of matrix_kernels.py by `lilac run`, compared with products in double precision."""

import json
import os
import random
import re

import command
import matrix_kernels
import npy


def product(a, b, m, n, k):
    """A · Bᵀ in double precision."""
    rows = [a[i * k:(i + 1) * k] for i in range(m)]
    columns = [b[i * k:(i + 1) * k] for i in range(n)]
    return [sum(x * y for x, y in zip(row, column)) for row in rows for column in columns]


class Launches:
    """Launches of the kernels on random f16 matrices, whose files are in `folder`. `device` is the simulator or
    cuda; `multiply` computes the expected product."""

    def __init__(self, lilac, folder, device="simulator", multiply=product):
        self.lilac, self.folder, self.device, self.multiply = lilac, folder, device, multiply
        self.shapes = set()

    def path(self, name):
        return os.path.join(self.folder, name)

    def data(self, m, n, k):
        """The names of files with A, B and A · Bᵀ."""
        tag = "%dx%dx%d" % (m, n, k)
        names = [self.path("%s_%s.npy" % (what, tag)) for what in ("a", "b", "f32", "f16")]
        if tag not in self.shapes:
            draw = random.Random(tag)
            a, b = ([npy.round_f16(draw.uniform(-1, 1)) for _ in range(rows * k)] for rows in (m, n))
            npy.write(names[0], "f2", a, (m, k))
            npy.write(names[1], "f2", b, (n, k))
            exact = self.multiply(a, b, m, n, k)
            npy.write(names[2], "f4", exact, (m, n))
            npy.write(names[3], "f2", exact, (m, n))
            self.shapes.add(tag)
        return names

    def run(self, kernel, shape, stages, change=None):
        """Runs a kernel, or its text after `change`: the finished process, with --json."""
        m, n, k = shape
        a, b, f32, f16 = self.data(m, n, k)
        text = matrix_kernels.KERNELS[kernel](stages)
        if change is not None:
            changed = change(text)
            assert changed != text, "the change of %s does not apply" % kernel
            text = changed
        file = self.path(kernel + ".simt")
        with open(file, "w", encoding="utf-8") as out:
            out.write(text)
        rows = 128 if kernel == "specialized" else 64
        half = kernel == "epilogue"
        words = ["--arg", "a=@" + a, "--arg", "b=@" + b]
        if "ma: i64 tensor_map" in text:
            words = ["--buffer", "a=@" + a, "--buffer", "b=@" + b,
                     "--arg", "ma=tensor_map:a:%dx64:swizzle=128" % rows, "--arg", "mb=tensor_map:b:64x64:swizzle=128"]
        words += ["--arg", "d=empty:%s:%dx%d" % ("f16" if half else "f32", m, n), "--arg", "n=%d" % n, "--arg", "k=%d" % k,
                  "--expect", "d=%s,%s" % ((f16, "1e-3") if half else (f32, "1e-5"))]
        return command.run(self.lilac, "run", file, "--device", self.device, "--json",
                           "--grid", "%d,%d" % (m // rows, n // 64), *words)


def reports(done):
    """What a run said: pairs of an id and the number of places that the diagnostic names."""
    if done.returncode == 0 or done.stdout.startswith("{"):
        findings = json.loads(done.stdout).get("findings", [])
        found = [(f["id"], 1 + len([note for note in f.get("notes", []) if "line" in note])) for f in findings]
    else:
        found = []
    for block in re.split(r"(?m)^(?=\S+:\d+:\d+: (?:error|warning): )", done.stderr):
        head = re.match(r"\S+:\d+:\d+: (?:error|warning): [^\n]*\[([a-z0-9-]+)\]", block)
        if head:
            found.append((head.group(1), 1 + len(re.findall(r"(?m)^\S+:\d+:\d+: note: ", block))))
    return found
