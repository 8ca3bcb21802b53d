#!/usr/bin/env python3
"""Builds the explorer's page and tests it in Chromium, with Playwright from PyPI in a virtual environment
kept in the build folder.

usage: run.py SOURCE_FOLDER WORK_FOLDER LILAC

A visible skip without clang, lld, wasi-libc, Chromium, pip or the network.
"""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import python_package  # noqa: E402

NEEDED = {"playwright": "playwright>=1.40", "pytest": "pytest>=7", "axe_core_python": "axe-core-python"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def build(source, folder):
    """The page."""
    for tool in ("clang", "wasm-ld", "cmake"):
        if shutil.which(tool) is None:
            python_package.skip(f"there is no {tool}; scripts/need EXPLORER installs what `make explorer` needs")
    done = python_package.run("clang", "--target=wasm32-wasi", "-x", "c", "-", "-o", os.devnull,
                              input="#include <stdio.h>\nint main(void) { return puts(\"\"); }\n")
    if done.returncode != 0:
        python_package.skip("clang cannot build for wasm32-wasi; scripts/need EXPLORER installs wasi-libc")
    configure = ["cmake", "-S", source, "-B", folder, "--toolchain", os.path.join(source, "cmake", "wasm32-wasi.cmake"),
                 "-DCMAKE_BUILD_TYPE=Release"]
    if shutil.which("ccache"):
        configure.append("-DCMAKE_C_COMPILER_LAUNCHER=ccache")
    for command in (configure, ["cmake", "--build", folder, "-j", str(os.cpu_count() or 2)]):
        done = python_package.run(*command)
        if done.returncode != 0 or "warning:" in done.stdout:
            sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-4000:]}")
    return os.path.join(folder, "explorer", "explorer.html")


def main():
    source, work, lilac = (os.path.abspath(path) for path in sys.argv[1:4])
    os.makedirs(work, exist_ok=True)
    browser = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if browser is None:
        python_package.skip("there is no Chromium; scripts/need BROWSER installs it")
    page = build(source, os.path.join(work, "wasm"))
    python = python_package.environment(os.path.join(work, "venv"), NEEDED, compiles=False)
    environment = dict(os.environ, LILAC=lilac, LILAC_PAGE=page, LILAC_BROWSER=browser)
    done = subprocess.run([python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", os.path.dirname(__file__)],
                          cwd=work, env=environment)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
