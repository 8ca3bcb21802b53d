"""Launches that go wrong do so as under Triton: the same exception, the kernel named, the process
alive."""

import pathlib
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).parent / "programs" / "failures.py"


def outcomes(environment, *names):
    done = subprocess.run([sys.executable, PROGRAM, *names], env=environment, capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr  # no signal: the process lives to its end
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def test_what_leaves_the_device_as_it_was(environment):
    names = ("masked", "zero_grid", "cpu_tensor", "shared_memory", "works")
    triton, lilac = (outcomes(environment(compiler), *names) for compiler in (False, True))
    for name in ("masked", "zero_grid", "works"):
        assert lilac[name] == triton[name] == "ok"
    assert lilac["cpu_tensor"].split(":")[0] == triton["cpu_tensor"].split(":")[0] == "ValueError"
    assert "edge_copy" in lilac["cpu_tensor"]
    assert "OutOfResources" in triton["shared_memory"] and "shared memory" in lilac["shared_memory"]
    assert "edge_histogram" in lilac["shared_memory"]


@pytest.mark.parametrize("name", ["null", "out_of_bounds"])
def test_faults(environment, name):
    """A fault ends the device's context, with either compiler; the launch after it says so too. With
    CUDA_LAUNCH_BLOCKING the launch itself reports it, and names the kernel."""
    blocking = {"CUDA_LAUNCH_BLOCKING": "1"}
    triton, lilac = (outcomes(environment(compiler) | blocking, name, "works") for compiler in (False, True))
    for outcome in (triton, lilac):
        assert "illegal memory access" in outcome[name] and outcome["works"] != "ok"
    assert "edge_copy" in lilac[name]
