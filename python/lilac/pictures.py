"""Pictures for notebooks: SVG documents that stay small, whatever the size of the layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Optional

from .errors import LayoutError

if TYPE_CHECKING:
    from .layout import Layout

LIMIT = 50_000
"""Bytes of a layout's picture that a notebook keeps with its output, at most."""

PLAN_LIMIT = 20_000
"""The same of a plan's: a notebook keeps it twice, as SVG and within the HTML."""


def _largest(draw: Callable[[int], str], most: int, limit: int) -> Optional[str]:
    """The picture with the most rows, a power of two of at most `most`, that is small enough; None when a
    single row is too large."""
    while most > 0:
        picture = draw(most)
        if len(picture.encode()) <= limit:
            return picture
        most //= 2
    return None


def layout(drawn: Layout) -> Optional[tuple[str, str]]:
    """(view, picture): the cells; or, where they take too many bytes, the matrix; or a part of the cells. None
    where there is no picture: without outputs, or with too many cells."""
    try:
        whole = drawn.svg("cells")
        if len(whole.encode()) <= LIMIT and all(size <= 64 for size in drawn.out_dims.values()):
            return "cells", whole
    except LayoutError:
        whole = ""
    try:
        matrix_of = drawn.svg("matrix")
        if len(matrix_of.encode()) <= LIMIT:
            return "matrix", matrix_of
    except LayoutError:
        pass
    part = _largest(lambda count: drawn.svg("cells", rows=range(count), columns=range(count), slices=range(1)),
                    16, LIMIT) if whole else None
    return None if part is None else ("cells", part)


def matrix(drawn: Layout, title: str) -> str:
    """The bit matrix; of one that is too large, the title alone."""
    picture = drawn.svg("matrix", title=title)
    return picture if len(picture.encode()) <= PLAN_LIMIT else note(f"{title}; the matrix is too large to draw")


def memory(drawn: Layout, element_bits: int, title: str, padding: Sequence[tuple[int, int]] = ()) -> str:
    """Shared memory by its banks, the first rows of it; where rows of banks cannot be drawn (elements of more
    than a row, 64 banks …) the matrix."""
    def rows(count: int) -> str:
        return drawn._view("svg", "hardware", 0, False, None, None, (0, count), None, element_bits, 32, 4, title,
                           list(padding))
    try:
        picture = _largest(rows, 64, PLAN_LIMIT)
    except LayoutError:
        picture = None
    return picture if picture is not None else matrix(drawn, title)


def note(text: str) -> str:
    """A line of text as a picture."""
    from xml.sax.saxutils import escape

    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{12 + 8 * len(text)}" height="28">'
            f'<text x="6" y="19" font-family="sans-serif" font-size="14">{escape(text)}</text></svg>')
