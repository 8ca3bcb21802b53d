"""The explorer's page with a kernel in it (docs/explorer.md)."""

from __future__ import annotations

import html
import json
import os
import re
import sysconfig
from typing import Optional, Union

from . import _core
from .compiler import _LINE_INFO, _TILE_IR, Kernel, Text, source_of
from .errors import CompilationError, Error, diagnostics_of

_PLACE = '<script type="application/json" id="kernel">null</script>'
_NAMED_FILE = re.compile(r'loc\("([^"<>]+)":[0-9]+:[0-9]+')


def page_path() -> Optional[str]:
    """The explorer's page: installed with the package, or built by `make explorer` in lilac's repository; None: there
    is none."""
    package = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.join(sysconfig.get_path("data"), "share", "lilac"),
              os.path.join(os.path.dirname(package), "share", "lilac"),
              os.path.join(package, "..", "..", "build", "wasm", "explorer")]
    paths = [os.path.join(place, "explorer.html") for place in places]
    return next((path for path in paths if os.path.isfile(path)), None)


class Page:
    """One HTML page that shows a kernel, and needs neither a server nor a network. `explore` makes it; notebooks
    display it."""

    __slots__ = ("_html", "name")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self._html = text

    @property
    def html(self) -> str:
        """The page's text."""
        return self._html

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the page to a file, which a browser opens."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._html)

    def _repr_html_(self) -> str:
        return (f'<iframe srcdoc="{html.escape(self._html)}" title="{html.escape(self.name)}" '
                'style="width: 100%; height: 48em; border: 1px solid"></iframe>')

    def __repr__(self) -> str:
        return f"<lilac.Page of {self.name}, {len(self._html) / 1e6:.1f} MB>"


def _sources(text: str, beside: str) -> dict[str, str]:
    """The file of the first place that the kernel names, if it is on this machine: as it is named, or beside the
    kernel's file."""
    found = _NAMED_FILE.search(text)
    names = [found.group(1), os.path.join(os.path.dirname(beside), found.group(1))] if found else []
    for name in names:
        if os.path.isfile(name):
            with open(name, encoding="utf-8", errors="replace") as file:
                return {os.path.basename(name): file.read()}
    return {}


def explore(module: Union[Text, Kernel], *, target: Optional[str] = None, num_warps: Optional[int] = None,
            num_ctas: Optional[int] = None, num_stages: Optional[int] = None, file: Optional[str] = None) -> Page:
    """The explorer's page with a kernel in it: source, tile IR and PTX side by side, layouts as pictures, banks,
    conversions, time lines, and the budget.

    module, target, num_warps, num_ctas, num_stages, file: as for `compile`; or a `Kernel`, whose options are kept.

    Raises the exceptions of `compile`, and Error where the package was built without the page."""
    path = page_path()
    if path is None:
        raise Error("the explorer's page is not installed: the package was built without it (`make explorer`, then "
                    "`pip install ./python`)")
    if isinstance(module, Kernel):
        source = module._source  # noqa: SLF001
        if source is None:
            raise TypeError("this kernel has no source; lilac.compile makes kernels that have one")
        source = source._replace(flags=_LINE_INFO | _TILE_IR)
    else:
        source = source_of(module, file, target, num_warps, num_ctas, num_stages, _LINE_INFO | _TILE_IR)
    result = _core.compile(*source, 0)
    if result[0] is None:
        raise CompilationError(diagnostics_of(source.text, result[1], result[2]))
    ptx, metadata, tile = result[0], json.loads(result[1]), result[2]
    name = os.path.basename(source.file)
    data = {"name": name, "text": source.text,
            "options": {"device": source.target or "", "warps": source.num_warps or "",
                        "stages": source.num_stages or ""},
            "metadata": metadata, "sources": _sources(source.text, source.file), "ptx": ptx, "tile": tile}
    with open(path, encoding="utf-8") as opened:
        before, place, after = opened.read().partition(_PLACE)
    if not place:
        raise Error(f"{path} is not the explorer's page: it has no place for a kernel")
    return Page(name, before + _PLACE.replace("null", json.dumps(data).replace("</", "<\\/")) + after)
