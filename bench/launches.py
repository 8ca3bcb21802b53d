"""The ten launches that are benchmarked, at any size: arguments, launch shape, least work, references.

No import of Triton or PyTorch here, so that a machine without a GPU can use the descriptions. The
kernels themselves are those of tests/data/corpus/kernels.py.
"""

from collections import namedtuple

# kind: "input", "output" (buffers of `dtype`, `shape`; the last dimension is used up to `used`),
# "labels" (an input of class numbers below `value`), "integer", "float", "constexpr" (a `value`).
Argument = namedtuple("Argument", "name kind dtype shape used value")
Launch = namedtuple("Launch", "kernel grid num_warps arguments bytes tolerance")


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
    return {"float32": 4, "float16": 2, "bfloat16": 2, "int64": 8}[dtype]


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


def reference(kernel, torch, buffers):
    """The outputs in double precision; `buffers` holds the used part of each buffer."""
    b = {name: value.double() if value.is_floating_point() else value
         for name, value in buffers.items()}
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
    raise KeyError(kernel)
