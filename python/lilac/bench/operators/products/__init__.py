"""The built-in cases with matrix products, at the sizes of language models, diffusion models and recommenders:

    python -m lilac.bench lilac.bench.operators.products

Each module has `cases()`, and `small()`: the same kernels with sizes for the simulator, as tests run them."""

from importlib import import_module

MODULES = ("matmul", "fused", "schedules", "attention", "attention_backward", "grouped", "quantized",
           "scaled", "convolution", "chained", "descriptors")


def modules():
    return [import_module("." + name, __name__) for name in MODULES]


def cases():
    return [case for module in modules() for case in module.cases()]


def small():
    return [case for module in modules() for case in module.small()]
