#!/usr/bin/env python3
"""Installs the Python package into a virtual environment kept in the build folder, and runs its
tests there.

usage: run.py SOURCE_FOLDER WORK_FOLDER
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import python_package  # noqa: E402

NEEDED = {"scikit_build_core": "scikit-build-core>=0.10", "numpy": "numpy>=1.21", "pytest": "pytest>=7"}


def main():
    source, work = (os.path.abspath(folder) for folder in sys.argv[1:3])
    os.makedirs(work, exist_ok=True)
    python = python_package.environment(os.path.join(work, "venv"), NEEDED)
    python_package.install(python, source, os.path.join(work, "build"))
    python_package.test(python, os.path.join(source, "tests", "python"), work)


if __name__ == "__main__":
    main()
