"""Fresh random inputs, at sizes that are no multiples of a block, against references in plain Python.

The corpus's TTIR is specialised to sizes divisible by 16. Where other sizes are tried, that promise
is first taken out of the kernel's text. Output buffers are longer than what the kernel may write and
hold random numbers before the launch: what lies outside must come back bit for bit.
"""

import json
import math
import os
import random
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402
import npy  # noqa: E402


class Format:
    """An element type: how numpy holds it, how a real number is rounded to it."""

    def __init__(self, descr, rounded, pack=None, unpack=None, tolerance=0.0):
        self.descr, self.rounded, self.tolerance = descr, rounded, tolerance
        self.pack = pack or (lambda value: value)
        self.unpack = unpack or (lambda value: value)


F16 = Format("f2", npy.round_f16, tolerance=5e-3)
BF16 = Format("i2", npy.round_bf16, npy.bf16_bits, npy.bf16_value, tolerance=5e-3)
F32 = Format("f4", npy.round_f32, tolerance=1e-5)
I64 = Format("i8", int)


def numbers(source, format, count, low=-2.0, high=2.0):
    return [format.rounded(source.uniform(low, high)) for _ in range(count)]


# ---- references: each returns what the kernel writes, as {buffer: {index: value}} ----------------


def vector_add(buffers, n, **_):
    return {"o": {i: buffers["x"][i] + buffers["y"][i] for i in range(n)}}


def softmax(buffers, xs, os, rows, cols, **_):
    out = {}
    for row in range(rows):
        values = buffers["x"][row * xs:row * xs + cols]
        top = max(values)
        powers = [math.exp(value - top) for value in values]
        total = math.fsum(powers)
        out.update((row * os + i, power / total) for i, power in enumerate(powers))
    return {"o": out}


def layer_norm(buffers, rows, stride, N, eps, **_):
    y, means, deviations = {}, {}, {}
    for row in range(rows):
        values = buffers["x"][row * stride:row * stride + N]
        mean = math.fsum(values) / N
        rstd = 1 / math.sqrt(math.fsum((value - mean) ** 2 for value in values) / N + eps)
        means[row], deviations[row] = mean, rstd
        for i, value in enumerate(values):
            y[row * stride + i] = (value - mean) * rstd * buffers["w"][i] + buffers["b"][i]
    return {"y": y, "mean": means, "rstd": deviations}


def rms_norm(buffers, rows, stride, N, eps, **_):
    y = {}
    for row in range(rows):
        values = buffers["x"][row * stride:row * stride + N]
        scale = 1 / math.sqrt(math.fsum(value * value for value in values) / N + eps)
        for i, value in enumerate(values):
            y[row * stride + i] = value * scale * buffers["w"][i]
    return {"y": y}


def swiglu(buffers, rows, stride, N, **_):
    out = {}
    for index in (row * stride + i for row in range(rows) for i in range(N)):
        a = buffers["a"][index]
        out[index] = npy.round_bf16(a / (1 + math.exp(-a))) * buffers["b"][index]
    return {"o": out}


def cross_entropy(buffers, rows, stride, V, **_):
    losses = {}
    for row in range(rows):
        values = buffers["x"][row * stride:row * stride + V]
        top = max(values)
        total = math.fsum(math.exp(value - top) for value in values)
        losses[row] = top + math.log(total) - values[buffers["t"][row]]
    return {"loss": losses}


# ---- the launches ------------------------------------------------------------------------


class Launch:
    """A kernel of the corpus with scalars, and its buffers: name -> (format, elements, low, high)."""

    def __init__(self, label, corpus, reference, scalars, buffers, rows, warps=None):
        self.label, self.corpus, self.reference = label, corpus, reference
        self.scalars, self.buffers, self.rows, self.warps = scalars, buffers, rows, warps


def row_launches():
    """(label, launch) for kernels that work on rows of `size` elements, `stride` apart."""
    sizes = [  # corpus kernel, row length, distance between rows, rows
        ("softmax_float16_4096", 1, 7, 3), ("softmax_float16_4096", 777, 778, 3),
        ("softmax_float16_4096", 4095, 4095, 2), ("softmax_float16_4096", 4080, 4112, 2),
        ("softmax_float32_1000", 1, 1, 4), ("softmax_float32_1000", 333, 1001, 3),
        ("softmax_float32_1000", 1023, 1023, 3), ("softmax_bfloat16_8192", 8176, 8192, 1),
        ("softmax_bfloat16_8192", 4099, 4101, 1),
        ("layer_norm_f16_4096", 4095, 4097, 2), ("layer_norm_f16_4096", 3, 5, 2),
        ("layer_norm_f16_5120", 777, 779, 3), ("layer_norm_f16_5120", 5104, 5120, 2),
        ("rms_norm_f16_4096", 777, 779, 3), ("rms_norm_f16_5120", 5119, 5119, 2),
        ("rms_norm_f16_4096", 4080, 4096, 2),
        ("swiglu_bf16", 1001, 1003, 2), ("swiglu_bf16", 4080, 4096, 2),
        ("cross_entropy_bf16", 1237, 1237, 3), ("cross_entropy_bf16", 8193, 8195, 1),
        ("cross_entropy_bf16", 1, 3, 2),
    ]
    for corpus, size, stride, rows in sizes:
        yield row_launch(corpus, size, stride, rows)


def row_launch(corpus, size, stride, rows):
    room = stride * rows + 32
    label = "%s, %d × %d" % (corpus, rows, size)
    kernel = re.match(r"softmax|layer_norm|rms_norm|swiglu|cross_entropy", corpus).group(0)
    if kernel == "softmax":
        format = {"float16": F16, "float32": F32, "bfloat16": BF16}[corpus.split("_")[1]]
        scalars = {"xs": stride, "os": stride, "rows": rows, "cols": size}
        buffers = {"x": (format, room, -4.0, 4.0), "o": (format, room, -1.0, 1.0)}
        return Launch(label, corpus, softmax, scalars, buffers, rows)
    if kernel == "layer_norm":
        scalars = {"stride": stride, "N": size, "eps": 1e-5}
        buffers = {"x": (F16, room, -1.0, 2.0), "y": (F16, room, -1.0, 1.0),
                   "w": (F16, size + 16, 0.5, 1.5), "b": (F16, size + 16, -1.0, 1.0),
                   "mean": (F32, rows + 5, -1.0, 1.0), "rstd": (F32, rows + 5, -1.0, 1.0)}
        return Launch(label, corpus, layer_norm, scalars, buffers, rows)
    if kernel == "rms_norm":
        scalars = {"stride": stride, "N": size, "eps": 1e-5}
        buffers = {"x": (F16, room, -2.0, 2.0), "y": (F16, room, -1.0, 1.0),
                   "w": (F16, size + 16, 0.5, 1.5)}
        return Launch(label, corpus, rms_norm, scalars, buffers, rows)
    if kernel == "swiglu":
        scalars = {"stride": stride, "N": size}
        buffers = {"a": (BF16, room, -4.0, 4.0), "b": (BF16, room, -2.0, 2.0),
                   "o": (BF16, room, -1.0, 1.0)}
        return Launch(label, corpus, swiglu, scalars, buffers, rows)
    scalars = {"stride": stride, "V": size}
    buffers = {"x": (BF16, room, -4.0, 4.0), "t": (I64, rows, 0, size - 1),
               "loss": (F32, rows + 5, -1.0, 1.0)}
    return Launch(label, corpus, cross_entropy, scalars, buffers, rows)


def launches():
    for n in (1, 9999, 4097):
        buffers = {name: (F32, n + 40, -2.0, 2.0) for name in "xyo"}
        yield Launch("vector_add_f32, %d" % n, "vector_add_f32", vector_add, {"n": n}, buffers,
                     (n + 1023) // 1024)
    yield from row_launches()


# ---- running -------------------------------------------------------------------------------


def specialised_text(data, launch):
    """The kernel's text without the promises that these scalars would break."""
    with open(os.path.join(data, "corpus", launch.corpus + ".ttir"), encoding="utf-8") as file:
        text = file.read()
    for name, value in launch.scalars.items():
        if value % 16 != 0:
            text = re.sub(r"(%%%s: i32) \{tt\.divisibility = 16 : i32\}" % name, r"\1", text)
    return text


def compare(launch, before, expected, folder):
    """Why the buffers after the launch are wrong, or None."""
    for name, (format, _, _, _) in launch.buffers.items():
        after = [format.unpack(value) for value in
                 npy.read(os.path.join(folder, "after_%s.npy" % name))[0]]
        written = expected.get(name, {})
        for index, value in enumerate(before[name]):
            if index not in written and after[index] != value:
                return "%s[%d] was %r, which nothing may write, and is %r" % (
                    name, index, value, after[index])
        errors = math.fsum((after[i] - value) ** 2 for i, value in written.items())
        norm = math.fsum(value ** 2 for value in written.values())
        if written and not errors <= format.tolerance ** 2 * norm:
            return "%s is off by %g of %g" % (name, math.sqrt(errors), math.sqrt(norm))
    return None


def fill(launch, source):
    contents = {}
    for name, (format, count, low, high) in launch.buffers.items():
        if format is I64:
            contents[name] = [source.randint(low, high) for _ in range(count)]
        else:
            contents[name] = numbers(source, format, count, low, high)
    return contents


def check(lilac, data, case, launch, seed):
    """Why this launch fails, or None."""
    before = fill(launch, random.Random(seed))
    expected = launch.reference(before, **dict(launch.scalars, rows=launch.rows))
    with tempfile.TemporaryDirectory() as folder:
        words = ["--grid", launch.rows, "--num-warps", case["num_warps"]]
        for name, value in launch.scalars.items():
            words += ["--arg", "%s=%s" % (name, value)]
        for name, (format, _, _, _) in launch.buffers.items():
            path = os.path.join(folder, "before_%s.npy" % name)
            npy.write(path, format.descr, [format.pack(value) for value in before[name]])
            words += ["--arg", "%s=@%s" % (name, path)]
            words += ["--save", "%s=%s" % (name, os.path.join(folder, "after_%s.npy" % name))]
        done = command.run(lilac, "run", "-", "--json", *words,
                           input=specialised_text(data, launch))
        if done.returncode != 0 or done.stderr:
            return "exit status %d\n%s" % (done.returncode, done.stderr)
        counters = json.loads(done.stdout)["counters"]
        if counters["races"] or counters["uninitialised_reads"]:
            return "the simulator found something: %s" % counters
        return compare(launch, before, expected, folder)


def main():
    arguments = command.parse_arguments(__doc__)
    cases = command.read_cases(arguments.data)
    failures, count = [], 0
    for seed, launch in enumerate(launches()):
        if arguments.names and launch.corpus not in arguments.names:
            continue
        count += 1
        reason = check(arguments.lilac, arguments.data, cases[launch.corpus], launch, seed)
        print("%-40s %s" % (launch.label, "FAILED: " + reason if reason else "good"))
        if reason:
            failures.append(launch.label)
    command.finish(failures, count, "launches on random inputs")


if __name__ == "__main__":
    main()
