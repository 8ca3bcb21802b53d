"""The launches that are benchmarked, at any size: arguments, launch shape, least work, references.

No import of Triton or PyTorch here, so that a machine without a GPU can use the descriptions. The
kernels themselves are those of tests/data/corpus/kernels.py.
"""

import importlib.util
import pathlib
from collections import namedtuple

KERNELS = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "corpus" / "kernels.py"

# kind: "input", "output" (buffers of `dtype`, `shape`; the last dimension is used up to `used`),
# "labels" (an input of numbers below `value`), "sum" (an output that kernels add to, zeros before),
# "integer", "float", "constexpr" (a `value`). A grid is a number of programs or a tuple of them.
Argument = namedtuple("Argument", "name kind dtype shape used value")
Launch = namedtuple("Launch", "kernel grid num_warps arguments bytes tolerance")


def load_module(name, path):
    """A file of Python, as the module `name`."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def buffer(name, kind, dtype, shape, used=None, value=None):
    return Argument(name, kind, dtype, tuple(shape), shape[-1] if used is None else used, value)


def scalar(name, value):
    kind = "float" if isinstance(value, float) else "integer"
    return Argument(name, kind, None, None, None, value)


def constexpr(name, value):
    return Argument(name, "constexpr", None, None, None, value)


def power_of_two(n):
    return 1 << (n - 1).bit_length()


def size_of(dtype):
    return {"float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int8": 1}[dtype]


# Relative error of ||out - reference|| that is allowed.
TOLERANCE = {"float32": 1e-5, "float16": 5e-3, "bfloat16": 5e-3}


def vector_add(n):
    arguments = [buffer("x", "input", "float32", (n,)), buffer("y", "input", "float32", (n,)),
                 buffer("o", "output", "float32", (n,)), scalar("n", n), constexpr("B", 1024)]
    return Launch("vector_add", -(-n // 1024), 4, arguments, 12 * n, {"o": 1e-6})


def softmax(dtype, num_warps, rows, columns, stride=None):
    stride = stride or columns
    arguments = [buffer("o", "output", dtype, (rows, stride), columns),
                 buffer("x", "input", dtype, (rows, stride), columns), scalar("xs", stride),
                 scalar("os", stride), scalar("rows", rows), scalar("cols", columns),
                 constexpr("B", power_of_two(columns))]
    return Launch("softmax", rows, num_warps, arguments, 2 * rows * columns * size_of(dtype),
                  {"o": TOLERANCE[dtype]})


def layer_norm(block, num_warps, rows, columns, stride=None):
    stride = stride or columns
    arguments = [buffer("x", "input", "float16", (rows, stride), columns),
                 buffer("y", "output", "float16", (rows, stride), columns),
                 buffer("w", "input", "float16", (columns,)),
                 buffer("b", "input", "float16", (columns,)),
                 buffer("mean", "output", "float32", (rows,)),
                 buffer("rstd", "output", "float32", (rows,)), scalar("stride", stride),
                 scalar("N", columns), scalar("eps", 1e-5), constexpr("B", block)]
    return Launch("layer_norm", rows, num_warps, arguments, 4 * rows * columns,
                  {"y": 5e-3, "mean": 1e-5, "rstd": 1e-5})


def rms_norm(rows, columns, stride=None):
    stride = stride or columns
    arguments = [buffer("x", "input", "float16", (rows, stride), columns),
                 buffer("w", "input", "float16", (columns,)),
                 buffer("y", "output", "float16", (rows, stride), columns),
                 scalar("stride", stride), scalar("N", columns), scalar("eps", 1e-5),
                 constexpr("B", power_of_two(columns))]
    return Launch("rms_norm", rows, 8, arguments, 4 * rows * columns, {"y": 5e-3})


def swiglu(rows, columns, stride=None):
    stride = stride or columns
    arguments = [buffer("a", "input", "bfloat16", (rows, stride), columns),
                 buffer("b", "input", "bfloat16", (rows, stride), columns),
                 buffer("o", "output", "bfloat16", (rows, stride), columns),
                 scalar("stride", stride), scalar("N", columns),
                 constexpr("B", power_of_two(columns))]
    return Launch("swiglu", rows, 8, arguments, 6 * rows * columns, {"o": 5e-3})


def cross_entropy(rows, classes, stride=None):
    stride = stride or classes
    arguments = [buffer("x", "input", "bfloat16", (rows, stride), classes),
                 buffer("t", "labels", "int64", (rows,), value=classes),
                 buffer("loss", "output", "float32", (rows,)), scalar("stride", stride),
                 scalar("V", classes), constexpr("B", 4096)]
    return Launch("cross_entropy", rows, 8, arguments, 2 * rows * classes, {"loss": 1e-5})


def transpose(dtype, rows, columns):
    arguments = [buffer("x", "input", dtype, (rows, columns)),
                 buffer("y", "output", dtype, (columns, rows)), scalar("M", rows),
                 scalar("N", columns), constexpr("BM", 64), constexpr("BN", 64)]
    return Launch("transpose", (rows // 64, columns // 64), 4, arguments,
                  2 * rows * columns * size_of(dtype), {"y": 0})


def gather_rows(programs, rows, columns, axis, times=4, dtype="float32"):
    shape = (programs, rows, columns)
    arguments = [buffer("src", "input", dtype, shape),
                 buffer("idx", "labels", "int32", shape, value=(rows, columns)[axis]),
                 buffer("out", "output", dtype, shape), constexpr("R", rows),
                 constexpr("C", columns), constexpr("AX", axis), constexpr("K", times)]
    return Launch("gather_rows", programs, 4, arguments,
                  (4 + 2 * size_of(dtype)) * programs * rows * columns, {"out": 0})


def scan_rows(programs, rows, columns, reverse=False):
    shape = (programs, rows, columns)
    arguments = [buffer("x", "input", "float32", shape), buffer("y", "output", "float32", shape),
                 constexpr("R", rows), constexpr("C", columns), constexpr("REV", reverse)]
    return Launch("scan_rows", programs, 4, arguments, 8 * programs * rows * columns, {"y": 1e-5})


def rope(tokens, heads, size, positions):
    arguments = [buffer("q", "input", "float16", (tokens, heads, size)),
                 buffer("cos", "input", "float32", (positions, size // 2)),
                 buffer("sin", "input", "float32", (positions, size // 2)),
                 buffer("o", "output", "float16", (tokens, heads, size)),
                 scalar("seq", positions), scalar("H", heads), constexpr("D", size),
                 constexpr("B", power_of_two(heads))]
    return Launch("rope", tokens, 4, arguments, 4 * tokens * heads * size, {"o": 5e-3})


def reduce2d(programs, rows, columns, axis):
    left = columns if axis == 0 else rows
    arguments = [buffer("x", "input", "float32", (programs, rows, columns)),
                 buffer("y", "output", "float32", (programs, left)),
                 buffer("z", "output", "int32", (programs, left)), constexpr("M", rows),
                 constexpr("N", columns), constexpr("AX", axis)]
    return Launch("reduce2d", programs, 4, arguments, 4 * programs * rows * columns,
                  {"y": 1e-5, "z": 0})


def histogram_sort(programs, count, bins):
    arguments = [buffer("x", "labels", "int32", (programs, count), value=bins),
                 buffer("h", "sum", "int32", (bins,)),
                 buffer("s", "output", "int32", (programs, count)), constexpr("N", count),
                 constexpr("B", bins)]
    return Launch("histogram_sort", programs, 4, arguments, 8 * programs * count,
                  {"h": 0, "s": 0})


# name: (full size, other sizes; among them odd ones, strided rows, a single element or row)
LAUNCHES = {
    "vector_add_f32": (lambda: vector_add(1 << 26),
                       [lambda: vector_add(1000003), lambda: vector_add(1)]),
    "softmax_float16_4096": (lambda: softmax("float16", 8, 16384, 4096),
                             [lambda: softmax("float16", 8, 37, 4093, 4099),
                              lambda: softmax("float16", 8, 3, 17)]),
    "softmax_float32_1000": (lambda: softmax("float32", 4, 16384, 1000),
                             [lambda: softmax("float32", 4, 37, 777),
                              lambda: softmax("float32", 4, 1, 1024)]),
    "softmax_bfloat16_8192": (lambda: softmax("bfloat16", 8, 16384, 8192),
                              [lambda: softmax("bfloat16", 8, 19, 8191),
                               lambda: softmax("bfloat16", 8, 5, 4097, 8192)]),
    "layer_norm_f16_4096": (lambda: layer_norm(4096, 8, 8192, 4096),
                            [lambda: layer_norm(4096, 8, 37, 4091, 4097),
                             lambda: layer_norm(4096, 8, 3, 5000)]),
    "rms_norm_f16_4096": (lambda: rms_norm(8192, 4096),
                          [lambda: rms_norm(37, 4001), lambda: rms_norm(3, 100)]),
    "layer_norm_f16_5120": (lambda: layer_norm(1024, 4, 8192, 5120),
                            [lambda: layer_norm(1024, 4, 37, 5119),
                             lambda: layer_norm(1024, 4, 3, 77)]),
    "rms_norm_f16_5120": (lambda: rms_norm(8192, 5120),
                          [lambda: rms_norm(37, 5001, 5120), lambda: rms_norm(1, 7)]),
    "swiglu_bf16": (lambda: swiglu(8192, 4096),
                    [lambda: swiglu(37, 4001), lambda: swiglu(5, 300, 512)]),
    "cross_entropy_bf16": (lambda: cross_entropy(4096, 50257),
                           [lambda: cross_entropy(37, 4097), lambda: cross_entropy(5, 31)]),
}

# The rest of the corpus that needs no matrix product.
CORPUS = {
    "transpose_float16": (lambda: transpose("float16", 8192, 8192),
                          [lambda: transpose("float16", 192, 64)]),
    "transpose_float32": (lambda: transpose("float32", 8192, 8192),
                          [lambda: transpose("float32", 64, 320)]),
    "transpose_int8": (lambda: transpose("int8", 8192, 8192),
                       [lambda: transpose("int8", 128, 192)]),
    "gather_64x32_axis1": (lambda: gather_rows(4096, 64, 32, 1),
                           [lambda: gather_rows(3, 64, 32, 1, 1)]),
    "gather_32x64_axis0": (lambda: gather_rows(4096, 32, 64, 0),
                           [lambda: gather_rows(3, 32, 64, 0, 3)]),
    "gather_128x8_axis1": (lambda: gather_rows(4096, 128, 8, 1),
                           [lambda: gather_rows(5, 128, 8, 1, 2), lambda: gather_rows(2, 16, 4, 0)]),
    "cumsum_16x256": (lambda: scan_rows(8192, 16, 256),
                      [lambda: scan_rows(3, 16, 256, True), lambda: scan_rows(5, 2, 64)]),
    "rope_f16": (lambda: rope(16384, 32, 128, 4096),
                 [lambda: rope(37, 5, 128, 11), lambda: rope(3, 1, 64, 2)]),
    "reduce_64x64_axis0": (lambda: reduce2d(2048, 64, 64, 0), [lambda: reduce2d(3, 64, 32, 0)]),
    "reduce_16x256_axis1": (lambda: reduce2d(2048, 16, 256, 1), [lambda: reduce2d(3, 4, 256, 1)]),
    "reduce_128x128_axis0": (lambda: reduce2d(2048, 128, 128, 0),
                             [lambda: reduce2d(2, 128, 16, 0)]),
    "histogram_sort": (lambda: histogram_sort(4096, 512, 128),
                       [lambda: histogram_sort(3, 512, 128), lambda: histogram_sort(2, 64, 16)]),
}


def reference(kernel, torch, buffers):
    """The outputs in double precision; `buffers` holds the used part of each buffer, and the
    kernel's constants by these names."""
    names = {"AX": "axis", "K": "times", "REV": "reverse", "B": "bins"}
    b = {names.get(name, name): value.double() if hasattr(value, "is_floating_point")
         and value.is_floating_point() else value for name, value in buffers.items()}
    if kernel == "vector_add":
        return {"o": b["x"] + b["y"]}
    if kernel == "softmax":
        return {"o": torch.softmax(b["x"], -1)}
    if kernel == "layer_norm":
        mean = b["x"].mean(-1, keepdim=True)
        rstd = torch.rsqrt((b["x"] - mean).square().mean(-1, keepdim=True) + 1e-5)
        return {"y": (b["x"] - mean) * rstd * b["w"] + b["b"], "mean": mean[:, 0],
                "rstd": rstd[:, 0]}
    if kernel == "rms_norm":
        return {"y": b["x"] * torch.rsqrt(b["x"].square().mean(-1, keepdim=True) + 1e-5) * b["w"]}
    if kernel == "swiglu":
        return {"o": b["a"] * torch.sigmoid(b["a"]) * b["b"]}
    if kernel == "cross_entropy":
        picked = b["x"].gather(1, b["t"][:, None])[:, 0]
        return {"loss": torch.logsumexp(b["x"], 1) - picked}
    if kernel == "transpose":
        return {"y": b["x"].T}
    if kernel == "gather_rows":
        axis = b["axis"] + 1
        out = b["src"]
        for _ in range(b["times"]):
            out = torch.gather(out, axis, b["idx"].long())
        return {"out": out}
    if kernel == "scan_rows":
        x = b["x"].flip(2) if b["reverse"] else b["x"]
        sums = torch.cumsum(x, 2)
        return {"y": sums.flip(2) if b["reverse"] else sums}
    if kernel == "rope":
        place = torch.arange(b["q"].shape[0], device=b["q"].device) % b["cos"].shape[0]
        cos, sin = b["cos"][place][:, None], b["sin"][place][:, None]
        x, y = b["q"][..., 0::2], b["q"][..., 1::2]
        return {"o": torch.stack((x * cos - y * sin, x * sin + y * cos), -1).flatten(-2)}
    if kernel == "reduce2d":
        return {"y": b["x"].sum(b["axis"] + 1), "z": b["x"].argmax(b["axis"] + 1)}
    if kernel == "histogram_sort":
        return {"h": torch.bincount(b["x"].flatten().long(), minlength=b["bins"]),
                "s": b["x"].sort(1)[0]}
    raise KeyError(kernel)
