"""python -m lilac runs the command `lilac` of the package, also if its folder is not on PATH."""

import os
import subprocess
import sys
from importlib import metadata


def command() -> str:
    """The path of the program."""
    for file in metadata.files("lilac") or ():
        path = str(file.locate())
        if os.path.splitext(os.path.basename(path))[0] == "lilac" and os.access(path, os.X_OK) \
                and os.path.isfile(path):
            return path
    sys.exit("lilac: the command is not among the files of the installed package: pip install ./python")


if __name__ == "__main__":
    sys.exit(subprocess.call([command(), *sys.argv[1:]]))
