"""Linear layouts: every way of spreading a tensor over registers, lanes, warps and memory is
one linear map over F2, a bit matrix. And a compiler of tile kernels that works on them.

>>> import lilac
>>> tile = lilac.Layout.identity(4, "register", "dim1") * lilac.Layout.identity(32, "lane", "dim0")
>>> tile(register=3, lane=5)
{'dim1': 3, 'dim0': 5}

`Layout` is the type of layouts; `LayoutError` says why something is refused. `compile` makes PTX of a
kernel that Triton's front end wrote; `CompilationError` says what it refuses, and where. The
package `lilac.triton` makes Triton itself compile that way.
"""

from ._core import LayoutError
from ._core import version as __version__
from .compiler import Kernel, Pass, compile, devices
from .errors import CompilationError, Diagnostic
from .layout import Layout

__all__ = ["CompilationError", "Diagnostic", "Kernel", "Layout", "LayoutError", "Pass", "__version__",
           "compile", "devices"]
