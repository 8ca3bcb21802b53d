"""For tests of the Python package: a virtual environment kept in the build folder, and the package
installed into it from the source tree by pip, as a user would.

What that needs from outside (pip, the network, Python's headers) may be missing: then exit status 77
and a line with the reason. A package that does not build is a failure.
"""

import fcntl
import os
import subprocess
import sys
import sysconfig
import venv

SKIPPED = 77


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def last_lines(text, count=3):
    return " / ".join(line.strip() for line in text.strip().splitlines()[-count:])


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def environment(folder, needed, compiles=True):
    """The environment's python; `needed` are requirements by the names of what they install. Made,
    and filled, when something is missing, by one test at a time. `compiles`: Python's headers are needed."""
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with open(folder + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return filled_environment(folder, needed, compiles)


def filled_environment(folder, needed, compiles):
    header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
    if compiles and not os.path.exists(header):
        skip(f"there is no {header} (python3-dev)")
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        try:
            venv.create(folder, with_pip=True)
        except (subprocess.CalledProcessError, OSError) as problem:
            skip(f"no virtual environment with pip can be made ({problem})")
    if run(python, "-c", f"import {', '.join(needed)}").returncode != 0:
        done = run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1",
                   "--timeout", "20", *needed.values())
        if done.returncode != 0:
            skip(f"pip cannot install {', '.join(needed.values())} here ({last_lines(done.stdout)})")
    return python


def install(python, source, build):
    """Installs the package. The build folder is kept, so that a second run compiles only what
    changed; nothing but the package itself is left to install."""
    done = run(python, "-m", "pip", "install", "--disable-pip-version-check", "--no-build-isolation",
               "--no-deps", "--force-reinstall", f"--config-settings=build-dir={build}",
               os.path.join(source, "python"))
    if done.returncode != 0:
        sys.exit(f"pip install ./python: exit {done.returncode}\n{done.stdout}")
    print(last_lines(done.stdout, 1))


def test(python, folder, work):
    done = subprocess.run([python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", folder], cwd=work)
    sys.exit(done.returncode)
