"""Linear layouts: every way of spreading a tensor over registers, lanes, warps, blocks or memory is
one linear map over F2, a bit matrix.

>>> import lilac
>>> tile = lilac.Layout.identity(4, "register", "dim1") * lilac.Layout.identity(32, "lane", "dim0")
>>> tile(register=3, lane=5)
{'dim1': 3, 'dim0': 5}

`Layout` is the one type; `LayoutError` says why something is refused.
"""

from ._core import LayoutError
from ._core import version as __version__
from .layout import Layout

__all__ = ["Layout", "LayoutError", "__version__"]
