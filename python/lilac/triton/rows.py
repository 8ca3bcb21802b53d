"""The report: the kernels that were compiled or loaded while lilac is active, and their compilers.

A row is added when a kernel is compiled, loaded from Triton's cache, or refused. Processes that this
one starts (torch.compile's workers) append their rows to a file that their environment names, and
`report()` reads it; with LILAC_TRITON_REPORT=FILE every process appends its rows to FILE, one JSON
object a line.
"""

from __future__ import annotations

import atexit
import html
import json
import os
import tempfile
import threading
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Optional, Union

from ..explorer import Page, explore
from . import mapped

FILE_VARIABLE = "LILAC_TRITON_REPORT"
PARENT_VARIABLE = "LILAC_TRITON_PARENT"  # "pid:file" of the process that will read the rows


@dataclass
class Row:
    """One kernel as compiled for one set of types, constants and options."""

    name: str
    compiler: str
    """"lilac", "triton" (handed back) or "refused"."""
    file: Optional[str] = None
    line: Optional[int] = None
    target: Optional[int] = None
    num_warps: Optional[int] = None
    num_ctas: Optional[int] = None
    num_stages: Optional[int] = None
    registers: Optional[int] = None
    """32-bit registers of a thread."""
    spills: Optional[int] = None
    """32-bit words of local memory of a thread, which is what Triton calls n_spills."""
    shared: Optional[int] = None
    """Bytes of dynamic shared memory of a block."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Of each stage: "front end", "ttir" (Triton's; of Gluon's kernels "ttgir"), "print", "lilac", "triton"
    (after a refusal), "ptxas"; "maps": of the same kernel with tensor maps of the launcher, beside "ptxas"."""
    compile: Optional[float] = None
    """Seconds inside the library itself, from text to PTX; part of seconds["lilac"]."""
    cached: bool = False
    """It came from the cache on disk; `seconds` are those of when it was compiled."""
    diagnostics: list[dict[str, Any]] = field(default_factory=list)
    """Why lilac refuses it, when it does."""
    maps: int = 0
    """Tensor maps that the launcher makes (docs/triton.md); 0: there is only the plain kernel."""
    mapped: dict[str, Optional[int]] = field(default_factory=dict)
    """`registers`, `spills`, `shared`, `num_warps` of the kernel with maps; the row's own are of the plain kernel."""
    one_block: dict[str, Optional[int]] = field(default_factory=dict)
    """The same of the kernel with maps for launches whose blocks have a multiprocessor each; empty: it is no other one."""
    one_block_refused: str = ""
    """Why there is no such kernel although its rings would be longer."""
    maps_refused: str = ""
    """Why a kernel that could have maps is launched without: its compilation, or the device."""
    mapped_launches: int = 0
    """Launches with maps, in this process."""
    divided_launches: int = 0
    """Those of them with several blocks for each program, which divide its sums of products."""
    one_block_launches: int = 0
    """Those of the launches with maps that are of the kernel for one block of a multiprocessor."""
    plain_launches: dict[str, int] = field(default_factory=dict)
    """Launches of a kernel with maps without them, by the reason: "condition" (the kernel is correct for
    fewer values or blocks), "limit" (of tensor maps: alignment, strides, sizes), "argument" (of another kind), "few
    iterations" (with which the plain kernel is faster)."""
    hash: str = ""
    pid: int = 0

    @property
    def reason(self) -> str:
        if not self.diagnostics:
            return ""
        first = self.diagnostics[0]
        place = f"{os.path.basename(first['file'])}:{first['line']}: " if first.get("file") else ""
        return f"{place}{first['message']} [{first['id']}]"

    def ttir(self) -> Optional[str]:
        """The kernel's TTIR from Triton's cache; None: it is not there."""
        from triton.runtime.cache import get_cache_manager

        path = get_cache_manager(self.hash).get_file(f"{self.name[:150]}.ttir")
        if path is None or not os.path.isfile(path):
            return None
        with open(path, encoding="utf-8") as file:
            return file.read()

    def page(self) -> Optional[Page]:
        """The explorer's page of a kernel that lilac compiled (docs/explorer.md): its layouts, conversions and banks as
        pictures. None: another compiler compiled it, or its TTIR is not in Triton's cache."""
        from .backend import device_name

        text = self.ttir() if self.compiler == "lilac" else None
        if text is None:
            return None
        return explore(text, target=device_name(self.target) if self.target else None, num_warps=self.num_warps,
                       num_ctas=self.num_ctas, num_stages=self.num_stages, file=f"{self.name}.ttir")

    @property
    def launches(self) -> str:
        """What the report says about the launches of a kernel with tensor maps of the launcher."""
        if self.maps_refused:
            return f"launched without tensor maps: {self.maps_refused}"
        if not self.maps:
            return ""
        articles = {"condition": "a ", "limit": "a ", "argument": "an "}
        without = ", ".join(f"{count} because of {articles.get(why, '')}{why}"
                            for why, count in self.plain_launches.items() if count)
        launches = f"{self.mapped_launches} launch{'' if self.mapped_launches == 1 else 'es'}"
        maps = f"{self.maps} tensor map{'' if self.maps == 1 else 's'}"
        kinds = {"with divided sums": self.divided_launches, "with one block for each multiprocessor": self.one_block_launches}
        known = ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)
        return f"{launches}{f' ({known})' if known else ''} with {maps} of the launcher{'; without: ' if without else ''}{without}{self._resources}"

    @property
    def _resources(self) -> str:
        others = {"the kernel with maps": self.mapped, "that for one block of a multiprocessor": self.one_block}
        refused = f"; none for one block of a multiprocessor: {self.one_block_refused}" if self.one_block_refused else ""
        return "".join(f"; {kernel} has {known}" for kernel, resources in others.items()
                       if (known := _listed(resources))) + refused

    @property
    def place(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}" if self.file else ""


@dataclass
class Report:
    """The rows so far; prints as a table."""

    rows: list[Row]
    links: dict[str, str] = field(default_factory=dict)
    """Pages of kernels, by `hash`; `pages` sets it."""

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def lilac(self) -> list[Row]:
        return [row for row in self.rows if row.compiler == "lilac"]

    @property
    def triton(self) -> list[Row]:
        return [row for row in self.rows if row.compiler == "triton"]

    @property
    def refused(self) -> list[Row]:
        return [row for row in self.rows if row.compiler == "refused"]

    def to_json(self) -> str:
        return json.dumps([asdict(row) for row in self.rows])

    def pages(self, folder: Union[str, "os.PathLike[str]"]) -> list[str]:
        """Writes the explorer's page of each kernel that lilac compiled into a folder, and index.html, the table with
        links to them. Returns their paths, index.html first. Raises Error where the package has no explorer page."""
        os.makedirs(folder, exist_ok=True)
        paths = [os.path.join(folder, "index.html")]
        for row in self.lilac:
            page = row.page()
            if page is not None:
                paths.append(os.path.join(folder, f"{row.name}-{row.hash[:12]}.html"))
                page.save(paths[-1])
                self.links[row.hash] = paths[-1]
        names = {key: os.path.basename(path) for key, path in self.links.items()}
        with open(paths[0], "w", encoding="utf-8") as file:
            file.write('<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><title>lilac: kernels</title>\n'
                       f"<body>{self._table(names)}</body></html>\n")
        return paths

    def _repr_html_(self) -> str:
        return self._table(self.links)

    def _table(self, links: dict[str, str]) -> str:
        lines = ["<table><thead><tr>" + "".join(f"<th>{name}</th>" for name in (
            "kernel", "where", "compiler", "warps", "registers", "spills", "shared memory", "")) + "</tr></thead><tbody>"]
        for row in self.rows:
            name = html.escape(row.name)
            if row.hash in links:
                name = f'<a href="{html.escape(links[row.hash])}">{name}</a>'
            cells = [name, html.escape(row.place), row.compiler, _number(row.num_warps), _number(row.registers),
                     _number(row.spills), _number(row.shared), html.escape(row.reason)]
            lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        return "\n".join(lines) + "</tbody></table>"

    def __str__(self) -> str:
        if not self.rows:
            return "lilac: no kernel was compiled"
        table = [("kernel", "where", "compiler", "warps", "front end", "ttir", "compiler", "ptxas", "registers",
                  "spills", "shared", "")]
        for row in self.rows:
            own = row.seconds.get("lilac", 0) + row.seconds.get("triton", 0)
            table.append((row.name, row.place, row.compiler, _number(row.num_warps),
                          _milliseconds(row.seconds.get("front end")), _milliseconds(row.seconds.get("ttir")),
                          _milliseconds(own or None), _milliseconds(row.seconds.get("ptxas")),
                          _number(row.registers), _number(row.spills), _number(row.shared),
                          "from the cache" if row.cached else ""))
        widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
        left = (0, 1, 2, 11)
        lines = ["  ".join(cell.ljust(width) if i in left else cell.rjust(width)
                           for i, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in table]
        counts = [(len(self.lilac), "compiled by lilac"), (len(self.triton), "handed back to Triton"),
                  (len(self.refused), "refused")]
        lines.append("lilac: " + ", ".join(f"{count} {what}" for count, what in counts if count) +
                     " (times in ms, shared memory in bytes)")
        for row in self.triton + self.refused:
            lines.append(f"  {row.name}: {row.reason}")
        lines += [f"  {row.name}: {row.launches}" for row in self.rows if row.launches]
        return "\n".join(lines)


def _number(value: Optional[int]) -> str:
    return "" if value is None else str(value)


def _milliseconds(value: Optional[float]) -> str:
    return "" if value is None else f"{1e3 * value:.2f}"


# ---- collecting --------------------------------------------------------------------------------

_lock = threading.Lock()
_rows: dict[str, Row] = {}
_pid = os.getpid()
_RESOURCES = {"num_warps": "warps", "registers": "registers", "spills": "spills", "shared": "bytes of shared memory"}


def _listed(resources: dict[str, Optional[int]]) -> str:
    return ", ".join(f"{resources[key]} {name}" for key, name in _RESOURCES.items() if resources.get(key) is not None)


def _row(metadata: dict[str, Any], cached: bool) -> Row:
    record = metadata["lilac"]
    with_maps = record.get("mapped", {})
    target = metadata.get("target")
    return Row(name=str(record["name"]), compiler=record["compiler"], file=record["file"], line=record["line"],
               target=getattr(target, "arch", None), num_warps=metadata.get("num_warps"),
               num_ctas=metadata.get("num_ctas"), num_stages=metadata.get("num_stages"),
               registers=record.get("registers"), spills=record.get("spills"),
               shared=metadata.get("shared"), seconds=dict(record["seconds"]), compile=record.get("compile"),
               cached=cached, diagnostics=record.get("diagnostics", []),
               maps=len(with_maps.get("launch_maps", ())), maps_refused=record.get("maps_refused", ""),
               mapped={key: with_maps[key] for key in _RESOURCES if key in with_maps},
               one_block={key: value for key, value in with_maps.get("one_block", {}).items() if key in _RESOURCES},
               one_block_refused=with_maps.get("one_block_refused", ""),
               hash=metadata["hash"], pid=os.getpid())


def _add(row: Row) -> None:
    global _pid
    with _lock:
        if row.pid != _pid:  # a forked child: what its parent compiled is its parent's to tell
            _pid = row.pid
            _rows.clear()
        known = _rows.get(row.hash)
        if known is not None and row.cached:
            return
        _rows[row.hash] = row
    file = os.environ.get(FILE_VARIABLE)
    if file:
        _append(file, row, os.O_CREAT)
    parent, file = _parent()
    if file and parent != os.getpid() and os.path.exists(file):
        _append(file, row, 0)


def _append(path: str, row: Row, flags: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | flags, 0o644)
        try:  # one write, so that the lines of several processes do not mix
            os.write(descriptor, (json.dumps(asdict(row)) + "\n").encode())
        finally:
            os.close(descriptor)
    except OSError as problem:  # no reason for a kernel not to run
        warnings.warn(f"lilac's report is incomplete: {problem}", RuntimeWarning, stacklevel=2)


def compiled(metadata: dict[str, Any]) -> None:
    _add(_row(metadata, False))


refused = compiled


def loaded(metadata: Any, settings: Any) -> None:
    """Triton created a kernel that it compiled or loaded from its cache."""
    record = getattr(metadata, "lilac", None)
    if record is None:
        return
    with _lock:
        known = os.getpid() == _pid and metadata.hash in _rows
    if not known:
        _add(_row(metadata._asdict(), True))
    if record["compiler"] == "triton":
        from .backend import warn_of_fallback

        warn_of_fallback(record)


def _parent() -> tuple[int, str]:
    """The process that reads its children's rows, and the file in which it looks for them."""
    parent, _, file = os.environ.get(PARENT_VARIABLE, "").partition(":")
    return int(parent or 0), file


def listen_to_children() -> None:
    """Makes the file into which processes that this one starts write their rows."""
    if PARENT_VARIABLE in os.environ:
        return  # this process is such a one
    descriptor, path = tempfile.mkstemp(prefix="lilac-", suffix=".jsonl")
    os.close(descriptor)
    os.environ[PARENT_VARIABLE] = f"{os.getpid()}:{path}"
    atexit.register(_forget_children)


def _forget_children() -> None:
    parent, file = _parent()
    if file and parent == os.getpid() and os.path.exists(file):
        os.unlink(file)


def _rows_of_children() -> list[Row]:
    parent, file = _parent()
    if not file or parent != os.getpid() or not os.path.exists(file):
        return []
    with open(file, encoding="utf-8") as lines:
        return [Row(**json.loads(line)) for line in lines]


def report() -> Report:
    """The kernels compiled, loaded or refused since lilac was first enabled, or since `reset_report`."""
    with _lock:
        rows = dict(_rows) if _pid == os.getpid() else {}
    for row in _rows_of_children():
        known = rows.get(row.hash)
        if known is None or (known.cached and not row.cached):
            rows[row.hash] = row
    return Report([_counted(row) for row in rows.values()])


def _counted(row: Row) -> Row:
    """The row with the launches so far."""
    counts, why = mapped.counts(row.hash)
    if counts is None:
        return row
    launches, *plain, divided, one_block = counts
    return replace(row, mapped_launches=launches, divided_launches=divided, one_block_launches=one_block,
                   plain_launches=dict(zip(("condition", "limit", "argument", "few iterations"), plain)),
                   maps_refused=why or row.maps_refused)


def reset_report() -> None:
    """Forgets the rows, and counts launches from zero."""
    mapped.reset()
    with _lock:
        _rows.clear()
    parent, file = _parent()
    if file and parent == os.getpid() and os.path.exists(file):
        os.truncate(file, 0)
