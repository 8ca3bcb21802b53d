#!/usr/bin/env python3
"""Installs the Python package from the source tree with pip, as a user would, into a virtual
environment kept in the build folder, and runs its tests there.

usage: run.py SOURCE_FOLDER WORK_FOLDER

What the tests need from outside (pip, the network for three packages, Python's headers) may be
missing: then exit status 77 and a line with the reason. A package that does not build is a failure.
"""

import os
import subprocess
import sys
import sysconfig
import venv

SKIPPED = 77
NEEDED = ["scikit-build-core>=0.10", "numpy>=1.21", "pytest>=7"]


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def last_lines(text, count=3):
    return " / ".join(line.strip() for line in text.strip().splitlines()[-count:])


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def environment(folder):
    """The environment's python, made on the first run."""
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        try:
            venv.create(folder, with_pip=True)
        except (subprocess.CalledProcessError, OSError) as problem:
            skip(f"no virtual environment with pip can be made ({problem})")
    has_all = run(python, "-c", "import scikit_build_core, numpy, pytest").returncode == 0
    if not has_all:
        done = run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1",
                   "--timeout", "20", *NEEDED)
        if done.returncode != 0:
            skip(f"pip cannot install {', '.join(NEEDED)} here ({last_lines(done.stdout)})")
    return python


def main():
    source, work = (os.path.abspath(folder) for folder in sys.argv[1:3])
    header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
    if not os.path.exists(header):
        skip(f"there is no {header} (python3-dev)")
    os.makedirs(work, exist_ok=True)
    python = environment(os.path.join(work, "venv"))
    # Nothing but the package itself is left to install. The build folder is kept, so that a second
    # run compiles only what changed.
    done = run(python, "-m", "pip", "install", "--disable-pip-version-check", "--no-build-isolation",
               "--no-deps", "--force-reinstall", f"--config-settings=build-dir={os.path.join(work, 'build')}",
               os.path.join(source, "python"))
    if done.returncode != 0:
        sys.exit(f"pip install ./python: exit {done.returncode}\n{done.stdout}")
    print(last_lines(done.stdout, 1))
    tests = os.path.join(source, "tests", "python")
    done = subprocess.run([python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", tests], cwd=work)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
