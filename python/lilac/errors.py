"""Exceptions: `Error` for every input that lilac refuses, with diagnostics for the reasons and places.

Input of the right Python type that lilac refuses raises `Error`, a ValueError, or a class derived from it:
`LayoutError`, `CompilationError`, `SimulationError`. An object of a wrong Python type raises TypeError."""

from __future__ import annotations

import json
import linecache
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Optional


@dataclass(frozen=True)
class Diagnostic:
    """One message about one place, immutable.

    `id` is the kebab-case name of what is wrong, `severity` "error" or "warning".

    `file`, `line` and `column` (from 1) are the user's Python where the module says it, and the
    module's own otherwise; `ir_file`, `ir_line` and `ir_column` are always the module's, None where
    the diagnostic is about no place in it. `text` is what the command `lilac` prints."""

    id: str
    message: str
    file: Optional[str] = None
    line: Optional[int] = None
    column: Optional[int] = None
    severity: str = "error"
    ir_file: Optional[str] = None
    ir_line: Optional[int] = None
    ir_column: Optional[int] = None
    notes: tuple[str, ...] = field(default=())
    text: str = ""

    def to_json(self) -> dict[str, Any]:
        """The fields, for json.dumps; `from_json` is the inverse."""
        return {**asdict(self), "notes": list(self.notes)}

    @classmethod
    def from_json(cls, data: Any) -> Diagnostic:
        """The inverse of `to_json`: from its dict, or from that dict as JSON text.

        Raises Error for anything else."""
        fields = object_of(data, "a diagnostic")
        try:
            return cls(**{**fields, "notes": tuple(fields.get("notes", ()))})
        except TypeError as problem:
            raise Error(f"no diagnostic: {problem}") from None

    def __str__(self) -> str:
        lines = [_header(self.file, self.line, self.column, f"{self.severity}: {self.message} [{self.id}]")]
        lines += _excerpt(self.file, self.line, self.column)
        shown = [line for line in self.text.splitlines()[1:] if not line.endswith(_FROM)]
        if self.file != self.ir_file and self.ir_line is not None:
            lines.append(_header(self.ir_file, self.ir_line, self.ir_column, "note: in the module's text"))
        if self.ir_line is not None:
            lines += shown
        else:
            lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)


# Notes of the library that repeat the place of the diagnostic.
_FROM = ("note: from here", "note: from this line of the program")


def _header(file: Optional[str], line: Optional[int], column: Optional[int], rest: str) -> str:
    place = [str(part) for part in (file, line, column) if part]
    return ":".join(place + [" " + rest]) if place else rest


def _excerpt(file: Optional[str], line: Optional[int], column: Optional[int]) -> list[str]:
    """The user's line with a caret, where the file can be read."""
    source = linecache.getline(file, line).rstrip("\n") if file and line else ""
    if not source:
        return []
    shown = [f"    {source}"]
    if column:
        before = "".join("\t" if c == "\t" else " " for c in source[: column - 1])
        shown.append(f"    {before}^")
    return shown


class Error(ValueError):
    """Input that lilac refuses; `str()` returns the reason.

    `diagnostics` is a tuple of `Diagnostic`, empty where the message has no identifier and no place."""

    diagnostics: tuple[Diagnostic, ...] = ()

    def __init__(self, message: str = "", diagnostics: Sequence[Diagnostic] = ()) -> None:
        ValueError.__init__(self, message)
        self.diagnostics = tuple(diagnostics)

    @property
    def ids(self) -> list[str]:
        """The identifiers of the diagnostics, in order: ["shape-not-power-of-two"]."""
        return [diagnostic.id for diagnostic in self.diagnostics]

    @property
    def text(self) -> str:
        """The diagnostics as the command `lilac` prints them."""
        return "".join(diagnostic.text for diagnostic in self.diagnostics)


class LayoutError(Error):
    """An operation on layouts, or the text of a layout, that lilac refuses."""


class CompilationError(Error):
    """A module that the compiler refuses. `diagnostics` says what and where; `kernel` is the kernel's name
    where it is known, else None."""

    def __init__(self, diagnostics: Sequence[Diagnostic], kernel: Optional[str] = None) -> None:
        self.diagnostics = tuple(diagnostics)
        self.kernel = kernel
        Exception.__init__(self, self._message())  # also where a class derives from another one too

    def _message(self) -> str:
        head = [f"lilac cannot compile kernel '{self.kernel}'"] if self.kernel else []
        return "\n".join(head + [str(diagnostic) for diagnostic in self.diagnostics])

    def __reduce__(self) -> Any:
        return type(self), (self.diagnostics, self.kernel)

    @property
    def summary(self) -> str:
        """One line: the first diagnostic's place and message."""
        if not self.diagnostics:
            return "refused"
        first = self.diagnostics[0]
        return _header(first.file, first.line, first.column, f"{first.message} [{first.id}]")


class SimulationError(Error):
    """A launch that the simulator refuses or that traps. `diagnostics` says what and where, `printed` is
    what the kernel printed before."""

    def __init__(self, diagnostics: Sequence[Diagnostic], printed: str = "") -> None:
        Error.__init__(self, "\n".join(str(diagnostic) for diagnostic in diagnostics), diagnostics)
        self.printed = printed

    def __reduce__(self) -> Any:
        return type(self), (self.diagnostics, self.printed)


# As a user imports them, in tracebacks and pickles.
for _class in (Error, LayoutError, SimulationError):
    _class.__module__ = "lilac"


# ---- from the library's diagnostics ------------------------------------------------------------


def object_of(data: Any, what: str) -> dict[str, Any]:
    """A JSON object, from a dict or from text."""
    if isinstance(data, (str, bytes)):
        try:
            data = json.loads(data)
        except ValueError as problem:
            raise Error(f"{what} in JSON is expected: {problem}") from None
        if not isinstance(data, dict):
            raise Error(f"{what} in JSON is an object, not {data!r}")
    if not isinstance(data, dict):
        raise TypeError(f"{what} is a dict or JSON text, not {data!r}")
    return data


def refused_text(as_json: Sequence[str], as_printed: Sequence[str]) -> LayoutError:
    """The exception for a text that the library refuses; its message is what the command prints."""
    return LayoutError("".join(as_printed).rstrip("\n"), diagnostics_of("", as_json, as_printed))


def diagnostics_of(module: str, as_json: Sequence[str], as_printed: Sequence[str]) -> list[Diagnostic]:
    return [_diagnostic(module, json.loads(one), text) for one, text in zip(as_json, as_printed)]


def _diagnostic(module: str, said: dict[str, Any], text: str) -> Diagnostic:
    ir = (said.get("file"), said.get("line"), said.get("column"))
    place = said.get("location")
    if place is not None:
        user = (place["file"], place["line"], place["column"])
    else:
        user = _location_on_line(module, ir[1]) or ir
    notes = tuple(note["message"] for note in said.get("notes", ()))
    column = user[2]
    if user is not ir:  # Python counts columns from 0; 0 means no column
        column = column + 1 if column else None
    return Diagnostic(said.get("id", ""), said["message"], user[0], user[1], column, said["severity"],
                      ir[0], ir[1], ir[2], notes, text)


_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')


def _location_on_line(module: str, line: Optional[int]) -> Optional[tuple[str, int, int]]:
    """The user's place that a line of the module names, for texts that could not be read so far
    that the library knows it. Of calls, the outermost caller."""
    lines = module.split("\n")
    if line is None or not 0 < line <= len(lines):
        return None
    found = re.findall(r"loc\((.*?)\)\s*$", lines[line - 1])
    aliases = dict(_ALIAS.findall(module))
    text = found[0] if found else ""
    for _ in range(64):
        place = _FILE.search(text)
        if place is not None:
            return place.group(1), int(place.group(2)), int(place.group(3))
        name = re.findall(r"#loc\d*", text)
        if not name:
            return None
        text = aliases.get(name[-1], "")
    return None
