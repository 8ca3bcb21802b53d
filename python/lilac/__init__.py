"""Linear layouts: every way of spreading a tensor over registers, lanes, warps and memory is
one linear map over F2, a bit matrix. And a compiler of tile kernels that works on them.

>>> import lilac
>>> tile = lilac.Layout.identity(4, "register", "dim1") * lilac.Layout.identity(32, "lane", "dim0")
>>> tile(register=3, lane=5)
{'dim1': 3, 'dim0': 5}

`Layout` is the type of layouts. `convert`, `swizzle` and `conflicts` plan how tensors get from one layout to
another and through which shared memory; they return a `Plan`, a `Swizzle` and `Conflicts`.

`compile` makes PTX of a kernel that Triton's front end wrote, a `Kernel`; `run` runs one on the simulator, with
NumPy arrays in place, and returns a `Run`. The package `lilac.triton` makes Triton itself compile with lilac.

The package installs the command `lilac` too, which is also `python -m lilac`.

Input that lilac refuses raises `Error`, a ValueError, or a class derived from it: `LayoutError`,
`CompilationError`, `SimulationError`; its `diagnostics` say what and where. Objects of wrong Python types raise
TypeError.
"""

from ._core import version as __version__
from .compiler import Kernel, Pass, compile, devices
from .errors import CompilationError, Diagnostic, Error, LayoutError, SimulationError
from .layout import Layout
from .plans import Access, Conflicts, Plan, Swizzle, conflicts, convert, swizzle
from .simulator import Run, run

__all__ = ["Access", "CompilationError", "Conflicts", "Diagnostic", "Error", "Kernel", "Layout", "LayoutError",
           "Pass", "Plan", "Run", "SimulationError", "Swizzle", "__version__", "compile", "conflicts", "convert",
           "devices", "run", "swizzle"]
