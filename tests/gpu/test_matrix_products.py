"""The hand-written matrix products of tests/support/matrix_kernels.py on a Hopper GPU, by `lilac run --device cuda`,
against products in double precision.

    python -m pytest -rs tests/gpu/test_matrix_products.py      LILAC=PATH names the command when it is not installed

The test needs the command, NumPy and a GPU of compute capability 9.0, but neither PyTorch nor Triton. Without one of
them it is a skip with the reason."""

import json
import os
import pathlib
import shutil
import sys

import pytest

numpy = pytest.importorskip("numpy")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import command  # noqa: E402
from matrix_launches import Launches  # noqa: E402

pytestmark = pytest.mark.command_only

# One store of one thread: a launch that reports the device.
PROBE = """simt.module target "sm_90a" {
  kernel @probe(%d: i64 ptr align 16) warps 1 ctas 1 shared 0 {
    %d = param 0 : i64
    %one = const 1 : i32
    st.global [%d], (%one)
    return
  }
}
"""
# M, N, K. The tiles are 64 or 128 by 64, in steps of 64 along K; more steps than stages reuse the buffers.
SHAPES = [(128, 64, 64), (256, 128, 320), (128, 192, 1024), (1024, 512, 2048)]


def product(a, b, m, n, k):
    """A · Bᵀ in double precision."""
    return (numpy.array(a).reshape(m, k) @ numpy.array(b).reshape(n, k).T).ravel().tolist()


def missing_device(lilac, folder):
    """Why there is no sm_90 GPU, or None."""
    kernel = folder / "probe.simt"
    kernel.write_text(PROBE)
    done = command.run(lilac, "run", kernel, "--device", "cuda", "--json", "--grid", "1", "--arg", "d=zeros:i32:4")
    if "[no-cuda-library]" in done.stderr or "[no-cuda-device]" in done.stderr:
        return "no GPU"
    if "[wrong-device]" in done.stderr:
        return "no GPU of compute capability 9.0"
    assert done.returncode == 0, done.stdout + done.stderr
    capability = json.loads(done.stdout)["device"]["capability"]
    return None if capability == 90 else f"the GPU has compute capability {capability / 10}, not 9.0"


@pytest.fixture(scope="module")
def launches(tmp_path_factory):
    lilac = os.environ.get("LILAC") or shutil.which("lilac")
    if lilac is None:
        pytest.skip("no command lilac on PATH, and LILAC is not set")
    folder = tmp_path_factory.mktemp("matrix")
    reason = missing_device(lilac, folder)
    if reason is not None:
        pytest.skip(reason)
    return Launches(lilac, str(folder), "cuda", product)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
@pytest.mark.parametrize("stages", [3, 4, 6])
@pytest.mark.parametrize("kernel", ["cp_async", "tensor_map", "specialized", "epilogue"])
def test_product(launches, kernel, stages, shape):
    done = launches.run(kernel, shape, stages)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kernel", ["tensor_map", "specialized"])
def test_two_stages(launches, kernel):
    """The smallest ring: each buffer is refilled in the iteration after its use."""
    done = launches.run(kernel, (256, 128, 1024), 2)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_product_fails(launches):
    """The comparison detects a kernel that computes only the first N elements of K."""
    def shorter(text):
        return text.replace("= shr_u %k, ", "= shr_u %n, ", 1)
    done = launches.run("cp_async", (128, 64, 1024), 4, shorter)
    assert done.returncode == 3, done.stdout + done.stderr  # --expect is not met
