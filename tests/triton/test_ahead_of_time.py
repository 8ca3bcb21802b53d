"""triton.tools.compile under lilac: its C code launches as many warps as it was given, so the kernel has as many."""

import importlib.util

import pytest
from standin import Pointer

import lilac.triton

tool = pytest.importorskip("triton.tools.compile", reason="this version of Triton compiles ahead of time elsewhere")

PROGRAM = """
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j, l = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    for at in range(0, k, BK):
        x = tl.load(a + i[:, None] * k + (at + l)[None, :])
        y = tl.load(b + (at + l)[:, None] * BN + j[None, :])
        sums = tl.dot(x, y, sums)
    tl.store(c + i[:, None] * BN + j[None, :], sums)
"""


@pytest.mark.parametrize("warps, chosen", [(1, 4), (4, 4), (8, 4)])
def test_as_many_warps_as_it_was_given(warps, chosen, tmp_path, monkeypatch):
    """Also where the cache has the kernel with the number that the compiler chooses."""
    from triton.runtime import driver

    monkeypatch.setattr(driver.active, "map_python_to_cpp_type", str, raising=False)
    path = tmp_path / "product.py"
    path.write_text(PROGRAM)
    spec = importlib.util.spec_from_file_location("product", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    arguments = tool.CompileArgs(
        path=str(path), kernel_name="product", num_warps=warps, out_name="product", out_path=tmp_path / "made",
        signature="*fp16:16, *fp16:16, *fp32:16, i32:16, 64, 128, 64", grid="1, 1, 1")
    with lilac.triton.enabled():
        kernel = module.product.warmup(Pointer("fp16"), Pointer("fp16"), Pointer("fp32"), 1024, BM=64, BN=128, BK=64,
                                       grid=(1,), num_warps=warps)
        tool.compile_kernel(arguments)
    assert kernel.metadata.num_warps == chosen
    (source,) = tmp_path.glob("made*.c")
    assert f"{warps} * 32, 1, 1" in source.read_text()
    first, second = lilac.triton.report()
    assert (first.num_warps, second.num_warps) == (chosen, warps) or chosen == warps
