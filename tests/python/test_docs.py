"""The Python examples of docs/layouts.md and docs/python.md."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def test_examples_of_the_pages():
    done = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "tests", "docs", "python_examples.py")],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
