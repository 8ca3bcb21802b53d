"""Triton compiles through lilac.

    import lilac.triton
    lilac.triton.enable()                      # refusals raise lilac.CompilationError
    lilac.triton.enable(fallback="triton")     # refusals are compiled by Triton, with a warning each
    print(lilac.triton.report())               # the compiler of each kernel, and the times
    print(lilac.triton.explain(kernel))        # what became of each line of a compiled kernel
    lilac.triton.disable()

Programs that cannot be edited: LILAC_TRITON=1 (or =fallback) in the environment. Tests:
`pytest -p lilac.triton.testing`. See docs/triton.md.
"""

from .backend import FallbackWarning
from .explain import explain
from .rows import Report, Row, report, reset_report
from .switch import UnknownTriton, disable, enable, enabled, is_enabled

__all__ = ["FallbackWarning", "Report", "Row", "UnknownTriton", "disable", "enable", "enabled", "explain", "is_enabled",
           "report", "reset_report"]
