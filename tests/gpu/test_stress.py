"""Kernels with products and random delays between their warps compute what they should, and the comparison notices a
wait that is missing (programs/stress.py, here with fewer launches)."""

import json
import pathlib
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).parent / "programs" / "stress.py"


def test_stress(tmp_path, started):
    import torch

    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("the device has no wgmma")
    made = dict(started) | {"TRITON_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, PROGRAM, "--launches", "200", "--mutations", "--json", tmp_path / "r.json"],
                          env=made, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "r.json").read_text())
    assert all(row["different"] == 0 and row["launches"] == 200 for row in found["kernels"])
    assert {row["kind"] for row in found["mutations"] if row["noticed"]} == {"mbarrier", "cp.async", "barrier"}
    schedules = " ".join(text for row in found["kernels"] for text in row["schedules"])
    assert all(word in schedules for word in ("products=in_flight", "products=delay", "products=overlap", "rotate=yes",
                                              "producer=yes", "decouple=yes"))
