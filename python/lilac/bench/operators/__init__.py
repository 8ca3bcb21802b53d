"""The built-in cases: our own kernels for the memory-bound operators that people measure, each family
in a module with `cases()`, at the sizes of language models and of production tables."""

from importlib import import_module

MODULES = ("corpus", "pointwise", "reductions", "softmax", "norms", "welford", "jagged", "gated", "rope",
           "losses", "embedding", "scans", "sorting", "transposes")


def cases():
    """All the built-in cases."""
    return [case for name in MODULES for case in import_module("." + name, __name__).cases()]
