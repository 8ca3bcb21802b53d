"""lilac.triton.explain: kernels that Triton has compiled, with lilac and by itself."""

import kernels
import pytest
import triton
import triton.language as tl
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


@triton.jit
def product(a, b, c, m, n, k, pitch, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j, l = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    for at in range(0, k, BK):
        x = tl.load(a + i[:, None] * pitch + (at + l)[None, :], (i[:, None] < m) & (at + l[None, :] < k), 0.0)
        y = tl.load(b + (at + l)[:, None] * n + j[None, :], (j[None, :] < n) & (at + l[:, None] < k), 0.0)
        sums = tl.dot(x, y, sums)
    tl.store(c + i[:, None] * n + j[None, :], sums, (i[:, None] < m) & (j[None, :] < n))


@pytest.mark.parametrize("pitch, mapped", [(1024, True), (1032, True), (1028, False)])
def test_the_kernel_that_the_launcher_starts(pitch, mapped):
    """Rows of A must begin at multiples of 16 bytes."""
    with lilac.triton.enabled():
        kernel = product.warmup(Pointer("fp16"), Pointer("fp16"), Pointer("fp32"), 384, 64, 1024, 1025, BM=128, BN=64,
                                BK=64, grid=(3,))
    if kernel.metadata.lilac.get("mapped") is None:
        pytest.skip("no kernel with tensor maps was assembled")
    facts = lilac.triton.explain(kernel, grid=3, arguments={"m": 384, "n": 64, "k": 1024, "pitch": pitch}).json
    assert facts["launch_maps"] == mapped


@pytest.mark.parametrize("programs, alone", [(132, True), (133, False)])
@pytest.mark.parametrize("loaded", [False, True])
def test_the_kernel_for_one_block(programs, alone, loaded):
    with lilac.triton.enabled():
        kernel = product.warmup(Pointer("fp16"), Pointer("fp16"), Pointer("fp32"), 128 * programs, 64, 1024, 1024, BM=128,
                                BN=64, BK=64, grid=(programs,), num_stages=4)
    made = kernel.metadata.lilac.get("mapped")
    if made is None:
        pytest.skip("no kernel with tensor maps was assembled")
    kernel.n_regs = 32 if loaded else None  # of the plain kernel
    arguments = {"m": 128 * programs, "n": 64, "k": 1024, "pitch": 1024}
    facts = lilac.triton.explain(kernel, grid=programs, arguments=arguments).json
    chosen = made["one_block"] if alone else made
    assert facts["launch_maps"] and facts["one_block"] == alone
    assert facts["budget"]["shared_bytes"] == chosen["shared"]
    assert facts["budget"]["registers_estimated"] == (not loaded)
    assert not loaded or facts["budget"]["registers"] == chosen["registers"]


@pytest.mark.parametrize("asked, columns, warps", [(4, 256, 8), (8, 64, 4), (4, 64, 4)])
def test_warps_that_the_compiler_chooses(asked, columns, warps):
    def compiled(**options):
        return product.warmup(Pointer("fp16"), Pointer("fp16"), Pointer("fp32"), 384, columns, 1024, 1024, BM=128,
                              BN=columns, BK=64, grid=(3,), num_warps=asked, **options)

    with lilac.triton.enabled():
        kernel, limited = compiled(), compiled(maxnreg=168)
    facts = lilac.triton.explain(kernel).json
    assert (kernel.metadata.num_warps, facts["num_warps"], facts["asked_warps"]) == (warps, warps, asked)
    assert (facts["warps_reason"] is None) == (warps == asked)
    assert f".reqntid {32 * warps}" in kernel.asm["ptx"]
    assert lilac.triton.explain(limited).json["num_warps"] == limited.metadata.num_warps == asked
    with lilac.triton.enabled(choose_warps=False):
        kept = compiled()
    assert lilac.triton.explain(kept).json["num_warps"] == kept.metadata.num_warps == asked


@triton.jit
def triangle(a, b, c, k, BM: tl.constexpr, BK: tl.constexpr):
    """Rows see the columns up to themselves."""
    block = tl.program_id(0)
    i, l, j = block * BM + tl.arange(0, BM), tl.arange(0, BK), tl.arange(0, BM)
    sums = tl.zeros((BM, BM), tl.float32)
    for at in range(0, (block + 1) * BM, BK):
        x = tl.load(a + i[:, None] * k + (at + l)[None, :])
        y = tl.load(b + (at + l)[:, None] * BM + j[None, :])
        sums = tl.dot(x, y, sums)
    tl.store(c + i[:, None] * BM + j[None, :], sums)


@pytest.mark.parametrize("variable", [None, "0", "1"])
def test_the_order_of_programs(variable, monkeypatch):
    def compiled():
        return triangle.warmup(Pointer("fp16"), Pointer("fp16"), Pointer("fp32"), 1024, BM=64, BK=32, grid=(16,))

    if variable is not None:
        monkeypatch.setenv("LILAC_TRITON_ORDER_PROGRAMS", variable)
    with lilac.triton.enabled():
        kernel = compiled()
    with lilac.triton.enabled(order_programs=False):
        kept = compiled()
    descending = {"axis": "x", "descending": True}
    explanation = lilac.triton.explain(kernel)
    assert explanation.json["program_order"] == (None if variable == "0" else descending)
    assert ("programs with the most work start first" in str(explanation)) == (variable != "0")
    assert lilac.triton.explain(kept).json["program_order"] is None
    assert ("nctaid" in kernel.asm["ptx"]) == (variable != "0") and "nctaid" not in kept.asm["ptx"]
    for words in ({}, {"keep_order": True}):
        compiled_by_lilac = lilac.compile(kernel.asm["ttir"], **words)
        assert ("nctaid" in compiled_by_lilac.ptx) == (not words)
