"""The built-in cases: our own kernels for the operators that people measure, each family in a module with
`cases()`, at the sizes of language models and of production tables. `products` has the matrix products; the other
operators are bound by memory."""

from importlib import import_module

MODULES = ("corpus", "pointwise", "reductions", "softmax", "norms", "welford", "jagged", "gated", "rope",
           "losses", "embedding", "scans", "sorting", "transposes", "products")


def cases():
    """All the built-in cases."""
    return [case for name in MODULES for case in import_module("." + name, __name__).cases()]
