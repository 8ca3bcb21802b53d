"""The examples of docs/triton.md."""

import os
import subprocess
import sys

from conftest import ROOT


def test_examples(cache):
    # `python` in them is this one.
    command = [sys.executable, "-B", os.path.join(ROOT, "tests", "docs", "docs.py"), "--lilac", sys.executable,
               os.path.join(ROOT, "docs", "triton.md")]
    made = {name: value for name, value in os.environ.items() if not name.startswith("LILAC_")}
    made["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(command, env=made, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def test_parameters_of_the_page():
    """Every variable and every field that the page names is there, and the other way round."""
    import dataclasses
    import re

    import lilac.triton

    with open(os.path.join(ROOT, "docs", "triton.md"), encoding="utf-8") as file:
        page = file.read()
    named = set(re.findall(r"`(\w+)`", page[page.index("| field |") : page.index("has the same fields")]))
    assert {field.name for field in dataclasses.fields(lilac.triton.Row)} <= named
