"""lilac.triton.explain: kernels that Triton has compiled, with lilac and by itself."""

import kernels
import pytest
from standin import Pointer

import lilac
import lilac.triton


def test_compiled_by_lilac():
    with lilac.triton.enabled():
        kernel = kernels.row_sums.warmup(Pointer("fp32"), Pointer("fp32"), 64, 256, grid=(1,), num_warps=2)
    explanation = lilac.triton.explain(kernel, grid=64)
    assert str(explanation).startswith(kernels.__file__)
    facts = explanation.json
    assert (facts["num_warps"], facts["kernel"]) == (2, "row_sums") and facts["budget"]["blocks"] == 64
    assert facts["ptx"]["text"].count("ld.global") == kernel.asm["ptx"].count("ld.global")
    with open(kernels.__file__, encoding="utf-8") as file:
        lines = file.read().split("\n")
    load = next(one for one in facts["operations"] if one["name"] == "tt.load")
    assert "tl.load" in lines[load["source"][1] - 1]
    assert "tt.load" in explanation.why(load["source"][1])


def test_compiled_by_triton():
    kernel = kernels.scale.warmup(Pointer("fp32"), Pointer("fp32"), 4096, 2.0, 1024, grid=(4,), num_warps=8)
    assert lilac.triton.explain(kernel).json["num_warps"] == 8


def test_what_is_no_kernel():
    for thing in (kernels.scale, "text", None):
        with pytest.raises(TypeError, match="expected a kernel that Triton compiled"):
            lilac.triton.explain(thing)
