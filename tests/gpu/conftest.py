"""Tests that need an NVIDIA GPU, PyTorch and Triton; without them each is a visible skip.

    LILAC_PACKAGE=DIR python -m pytest -rs tests/gpu      DIR holds the package `lilac` when it is not installed
"""

import os
import shutil

import pytest


def missing():
    for package in ("torch", "triton", "numpy"):
        try:
            __import__(package)
        except ImportError:
            return f"no {package}"
    import torch
    return None if torch.cuda.is_available() else "no GPU"


def pytest_collection_modifyitems(items):
    reason = missing()
    if reason:
        for item in items:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def environment(tmp_path):
    """The environment of a program: caches of its own; `lilac` says whether its kernels are ours."""
    def make(lilac):
        made = dict(os.environ)
        for cache in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
            made[cache] = str(tmp_path / f"{cache}-{'lilac' if lilac else 'triton'}")
            shutil.rmtree(made[cache], ignore_errors=True)
        made.pop("LILAC_TRITON", None)
        if lilac:
            made["LILAC_TRITON"] = "1"
            made["LILAC_TRITON_REPORT"] = str(tmp_path / "report.jsonl")
        return made
    return make
