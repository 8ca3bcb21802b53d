"""A plug-in for pytest that runs a test suite with Triton compiling through lilac.

    pytest -p lilac.triton.testing                     refusals raise lilac.CompilationError
    pytest -p lilac.triton.testing --lilac-fallback    refusals are compiled by Triton, with a warning each

At the end it prints the compiler of each kernel, including those of pytest-xdist's workers.
"""

from __future__ import annotations

import os
from typing import Any

import _lilac_triton

from .rows import listen_to_children, report
from .switch import VARIABLE, disable


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("lilac", "Triton compiles through lilac")
    group.addoption("--lilac-fallback", action="store_true",
                    help="kernels that lilac refuses are compiled by Triton, with a warning each")
    group.addoption("--lilac-report", action="store", default=None, metavar="FILE",
                    help="write the table of kernels as JSON to FILE")


def pytest_configure(config: Any) -> None:
    # With the import of Triton, so that what a test suite sets up before that still comes before.
    os.environ[VARIABLE] = "fallback" if config.getoption("--lilac-fallback") else "1"
    listen_to_children()  # pytest-xdist's controller does not import Triton
    _lilac_triton.install()


def pytest_unconfigure(config: Any) -> None:
    _lilac_triton.remove()
    disable()


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    rows = report()
    terminalreporter.section("kernels compiled through lilac")
    terminalreporter.write_line(str(rows))
    path = config.getoption("--lilac-report")
    if path:
        with open(path, "w", encoding="utf-8") as file:
            file.write(rows.to_json())
