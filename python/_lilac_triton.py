"""Switches lilac on when Triton is imported, in a process whose environment says LILAC_TRITON=1 or
=fallback. lilac_triton.pth imports this at start-up, then and only then.

It stands beside the package and not in it, so that neither lilac nor Triton is imported before the
program imports Triton itself.
"""

import os
import sys
from typing import Any


class _Loader:
    """Triton's own loader, and lilac switched on after it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        remove()
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        switch_on()


class _Finder:
    """First in sys.meta_path until Triton is imported. Programs also look for it without that."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "triton":
            return None
        for finder in list(sys.meta_path):
            look = None if finder is cls else getattr(finder, "find_spec", None)
            spec = look(name, path, target) if look is not None else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


def switch_on() -> None:
    value = os.environ.get("LILAC_TRITON", "")
    if value in ("", "0"):
        return
    if value not in ("1", "fallback"):
        raise ImportError(f"LILAC_TRITON is 1, fallback or 0, not {value!r}")
    import lilac.triton

    try:
        lilac.triton.enable(fallback="triton" if value == "fallback" else None)
    except lilac.triton.UnknownTriton as problem:
        if value != "fallback":
            raise
        import warnings

        warnings.warn(f"{problem}: Triton compiles by itself", RuntimeWarning, stacklevel=2)


def install() -> None:
    if "triton" in sys.modules:
        switch_on()
    elif _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)


def remove() -> None:
    if _Finder in sys.meta_path:
        sys.meta_path.remove(_Finder)
