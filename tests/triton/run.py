#!/usr/bin/env python3
"""Installs Triton from PyPI and the Python package into a virtual environment kept in the build
folder, and runs the tests of the plug-in there. No GPU and no PyTorch are needed.

usage: run.py SOURCE_FOLDER WORK_FOLDER BUILD_FOLDER

BUILD_FOLDER is where the package is compiled, shared with its other tests. TRITON in the environment
names another version than 3.6.0.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import python_package  # noqa: E402

VERSION = os.environ.get("TRITON", "3.6.0")
NEEDED = {"scikit_build_core": "scikit-build-core>=0.10", "numpy": "numpy>=1.21", "pytest": "pytest>=7",
          "setuptools": "setuptools", "triton": f"triton=={VERSION}"}


def main():
    source, work, build = (os.path.abspath(folder) for folder in sys.argv[1:4])
    os.makedirs(work, exist_ok=True)
    python = python_package.environment(os.path.join(work, f"venv-{VERSION}"), NEEDED)
    python_package.install(python, source, build)
    python_package.test(python, os.path.join(source, "tests", "triton"), work)


if __name__ == "__main__":
    main()
