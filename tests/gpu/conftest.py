"""Tests that need an NVIDIA GPU, PyTorch and Triton; without them each is a visible skip. Tests with the mark
`command_only` need the GPU and the command, but neither PyTorch nor Triton; they report what is missing themselves.

    LILAC_PACKAGE=DIR python -m pytest -rs tests/gpu      DIR holds the package when it is not installed

Installed, it is tested in torch.compile's worker processes too; from DIR there are none (docs/triton.md).
"""

import os
import shutil
import subprocess
import sys

import pytest

IS_ON = "import triton, lilac.triton; print(lilac.triton.is_enabled())"


def missing():
    for package in ("torch", "triton", "numpy"):
        try:
            __import__(package)
        except ImportError:
            return f"no {package}"
    import torch
    return None if torch.cuda.is_available() else "no GPU"


def pytest_configure(config):
    config.addinivalue_line("markers", "command_only: the test needs neither PyTorch nor Triton")


def pytest_collection_modifyitems(items):
    with_torch = [item for item in items if item.get_closest_marker("command_only") is None]
    reason = missing() if with_torch else None
    if reason:
        for item in with_torch:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def started(tmp_path_factory):
    """The environment variables with which a program obeys LILAC_TRITON. An installed package has a .pth file
    for that; Python reads such files only in its own folders."""
    made = dict(os.environ)
    package = made.pop("LILAC_PACKAGE", None)
    if package:
        start = tmp_path_factory.mktemp("start")
        (start / "sitecustomize.py").write_text("import _lilac_triton\n_lilac_triton.install()\n")
        paths = [str(start), os.path.abspath(package), made.get("PYTHONPATH")]
        made["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    done = subprocess.run([sys.executable, "-c", IS_ON], env=made | {"LILAC_TRITON": "1"},
                          capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["True"], "LILAC_TRITON=1 has no effect: install lilac or set " \
        f"LILAC_PACKAGE\n{done.stdout}{done.stderr}"
    return made


@pytest.fixture
def environment(tmp_path, started):
    """The environment of a program, with separate caches. `lilac`: whether lilac compiles its kernels."""
    def make(lilac):
        made = dict(started)
        for cache in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
            made[cache] = str(tmp_path / f"{cache}-{'lilac' if lilac else 'triton'}")
            shutil.rmtree(made[cache], ignore_errors=True)
        made.pop("LILAC_TRITON", None)
        if lilac:
            made["LILAC_TRITON"] = "1"
            made["LILAC_TRITON_REPORT"] = str(tmp_path / "report.jsonl")
        return made
    return make
