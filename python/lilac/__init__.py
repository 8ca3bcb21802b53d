"""Linear layouts, and a compiler of tile kernels that is built on them. A linear layout is a linear map over F2,
a bit matrix; it describes how a tensor is distributed over registers, lanes, warps and memory.

>>> import lilac
>>> tile = lilac.Layout.identity(4, "register", "dim1") * lilac.Layout.identity(32, "lane", "dim0")
>>> tile(register=3, lane=5)
{'dim1': 3, 'dim0': 5}

`Layout` is the type of layouts. `convert` plans the conversion of a tensor from one layout to another, `swizzle`
the memory layout of a shared-memory exchange, and `conflicts` counts bank conflicts; they return a `Plan`, a
`Swizzle` and `Conflicts`.

`compile` translates a kernel that Triton's front end wrote to PTX and returns a `Kernel`. `run` executes a kernel on
the simulator, with NumPy arrays as its memory, and returns a `Run`; a `TensorMap` describes an array to the tensor
copies of a kernel. `explain` says what became of each line of a kernel and returns an `Explanation`; `explore` shows
it as an HTML page, a `Page`. With the package `lilac.triton`, Triton itself compiles with lilac.

The package also installs the command `lilac`, which is the same as `python -m lilac`.

Input that lilac refuses raises `Error`, a ValueError, or a class derived from it: `LayoutError`,
`CompilationError`, `SimulationError`; its `diagnostics` describe the mistakes and their places. Objects of wrong
Python types raise TypeError.
"""

from ._core import version as __version__
from .compiler import Kernel, Pass, compile, devices
from .errors import CompilationError, Diagnostic, Error, LayoutError, SimulationError
from .explanation import Change, Explanation, explain
from .explorer import Page, explore
from .layout import Layout
from .plans import Access, Conflicts, Plan, Swizzle, conflicts, convert, swizzle
from .simulator import Run, run
from .tensor_map import TensorMap

__all__ = ["Access", "Change", "CompilationError", "Conflicts", "Diagnostic", "Error", "Explanation", "Kernel",
           "Layout", "LayoutError", "Page", "Pass", "Plan", "Run", "SimulationError", "Swizzle", "TensorMap", "__version__",
           "compile", "conflicts", "convert", "devices", "explain", "explore", "run", "swizzle"]
