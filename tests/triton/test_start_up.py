"""Programs that cannot be edited: LILAC_TRITON in the environment."""

import json
import os
import subprocess
import sys

import pytest

import lilac.triton

PROGRAM = """
import sys
assert "triton" not in sys.modules and "lilac" not in sys.modules
import triton
import standin, kernels
standin.use()
from standin import Pointer
kernel = kernels.scale.warmup(Pointer("fp32"), Pointer("fp32"), 4096, 2.0, 1024, grid=(4,))
print(*sorted(kernel.asm), hasattr(kernel.metadata, "lilac"), "lilac" in sys.modules)
"""
REFUSED = PROGRAM.replace("kernels.scale.", "kernels.increment.").replace("4096, 2.0, 1024", "32")


def test_off(program):
    for environment in ({}, {"LILAC_TRITON": "0"}, {"LILAC_TRITON": ""}):
        assert program(PROGRAM, **environment) == "cubin llir ptx source ttgir ttir False False\n"


def test_on(program, tmp_path):
    report = tmp_path / "report.jsonl"
    assert program(PROGRAM, LILAC_TRITON="1", LILAC_TRITON_REPORT=str(report)) == "cubin ptx source ttgir ttir True True\n"
    (row,) = [json.loads(line) for line in report.read_text().splitlines()]
    assert row["name"] == "scale" and row["compiler"] == "lilac" and not row["cached"] and row["pid"] > 0
    program(PROGRAM, LILAC_TRITON="1", LILAC_TRITON_REPORT=str(report))
    rows = [json.loads(line) for line in report.read_text().splitlines()]
    assert [row["cached"] for row in rows] == [False, True]


def test_report_that_cannot_be_written(program, tmp_path):
    said = program(PROGRAM, "-Wdefault", LILAC_TRITON="1", LILAC_TRITON_REPORT=str(tmp_path / "nowhere" / "report"))
    assert said == "cubin ptx source ttgir ttir True True\n"


def test_refusal(program):
    said = program(REFUSED, LILAC_TRITON="1", fails=True)
    assert "lilac.errors.CompilationError: lilac cannot compile kernel 'increment'" in said
    assert "kernels.py:" in said and "^" in said


def test_fallback(program):
    said = program(REFUSED, "-Werror::DeprecationWarning", LILAC_TRITON="fallback")
    assert said == "cubin ptx source ttgir ttir True True\n"


def test_looking_for_triton_is_not_importing_it(program):
    """As PyTorch does before it imports it."""
    look = 'import importlib.util\nassert importlib.util.find_spec("triton").loader is not None\n'
    assert program(look + PROGRAM, LILAC_TRITON="1").endswith("True True\n")
    assert program("import importlib.util, sys\n"
                   'print(importlib.util.find_spec("triton") is not None, "triton" in sys.modules, '
                   '"lilac" in sys.modules)', LILAC_TRITON="1") == "True False False\n"


def test_loader_is_triton_s_own(program):
    text = 'import triton\nprint(type(triton.__spec__.loader).__name__, triton.__loader__ is triton.__spec__.loader)\n'
    assert program(text, LILAC_TRITON="1") == program(text)


def test_bad_value(program):
    assert "LILAC_TRITON is 1, fallback or 0" in program("import triton", LILAC_TRITON="yes", fails=True)


def test_free_when_not_asked_for(program):
    assert program('import sys; print("_lilac_triton" in sys.modules)') == "False\n"
    assert program('import sys; print("_lilac_triton" in sys.modules)', LILAC_TRITON="1") == "True\n"


def test_children(program, cache):
    """A process that switches lilac on hands that to those it starts, and reports their kernels."""
    text = """
import subprocess, sys, lilac.triton
lilac.triton.enable()
subprocess.run([sys.executable, "-B", "-c", sys.argv[1]], check=True)
(row,) = lilac.triton.report().rows
assert row.name == "scale" and row.compiler == "lilac"
lilac.triton.disable()
subprocess.run([sys.executable, "-B", "-c", sys.argv[1]], check=True)
"""
    child = PROGRAM.replace('assert "triton" not in sys.modules and "lilac" not in sys.modules', "")
    said = program(text.replace("sys.argv[1]", repr(child)))
    assert said == "cubin ptx source ttgir ttir True True\ncubin llir ptx source ttgir ttir False False\n"


@pytest.mark.parametrize("version", ["3.3.1", "4.0.0", "strange"])
def test_unknown_triton(monkeypatch, version):
    import triton

    monkeypatch.setattr(triton, "__version__", version)
    with pytest.raises(lilac.triton.UnknownTriton, match=version):
        lilac.triton.enable()
    assert not lilac.triton.is_enabled() and "LILAC_TRITON" not in os.environ


def test_environment_is_left_as_it_was(monkeypatch):
    monkeypatch.setenv("TORCH_COMPILE_CACHE_KEY_TAG", "mine")
    before = dict(os.environ)
    with lilac.triton.enabled():
        assert os.environ["LILAC_TRITON"] == "1"
        assert os.environ["TORCH_COMPILE_CACHE_KEY_TAG"].startswith("minelilac-")
        with lilac.triton.enabled("triton"):
            assert os.environ["LILAC_TRITON"] == "fallback"
            assert os.environ["TORCH_COMPILE_CACHE_KEY_TAG"].count("lilac-") == 1
        assert lilac.triton.is_enabled() and os.environ["LILAC_TRITON"] == "1"
    after = dict(os.environ)
    after.pop("LILAC_TRITON_PARENT", None), before.pop("LILAC_TRITON_PARENT", None)
    assert after == before


# ---- pytest ------------------------------------------------------------------------------------

SUITE = """
import standin
from standin import Pointer

def test_scale():
    import kernels
    standin.use()
    assert hasattr(kernels.scale.warmup(Pointer("fp32"), Pointer("fp32"), 4096, 2.0, 1024, grid=(4,)).metadata, "lilac")

def test_increment():
    import kernels
    standin.use()
    kernels.increment.warmup(Pointer("fp32"), Pointer("fp32"), 32, grid=(1,))
"""


@pytest.mark.parametrize("fallback", [False, True])
def test_pytest_plugin(tmp_path, fallback):
    suite = tmp_path / "test_suite.py"
    suite.write_text(SUITE)
    made = {name: value for name, value in os.environ.items() if not name.startswith("LILAC_")}
    made["PYTHONPATH"] = os.path.dirname(os.path.abspath(__file__))
    report = tmp_path / "report.json"
    options = ["--lilac-fallback"] if fallback else []
    done = subprocess.run([sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p",
                           "lilac.triton.testing", f"--lilac-report={report}", *options, str(suite)], env=made,
                          cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    said = done.stdout
    assert (done.returncode == 0) == fallback, said
    assert "kernels compiled through lilac" in said
    assert ("1 compiled by lilac, 1 handed back to Triton" if fallback else "1 compiled by lilac, 1 refused") in said
    assert "increment: kernels.py:" in said
    rows = {row["name"]: row["compiler"] for row in json.loads(report.read_text())}
    assert rows == {"scale": "lilac", "increment": "triton" if fallback else "refused"}


CHILD = """
import subprocess, sys

def test_in_a_child():
    assert "triton" not in sys.modules
    subprocess.run([sys.executable, "-B", "-c", "from test_suite import test_scale; test_scale()"], check=True)
"""


def test_pytest_plugin_of_a_process_without_triton(tmp_path):
    """As pytest-xdist's controller: only the processes that it starts import Triton."""
    (tmp_path / "test_suite.py").write_text(SUITE)
    suite, report = tmp_path / "test_child.py", tmp_path / "report.json"
    suite.write_text(CHILD)
    made = {name: value for name, value in os.environ.items() if not name.startswith("LILAC_")}
    made["PYTHONPATH"] = os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), str(tmp_path)])
    subprocess.run([sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "lilac.triton.testing",
                    f"--lilac-report={report}", str(suite)], env=made, cwd=tmp_path, check=True, timeout=120)
    (row,) = json.loads(report.read_text())
    assert row["name"] == "scale" and row["compiler"] == "lilac"
