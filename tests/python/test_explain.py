"""lilac.explain: the text, the JSON, changes, refusals."""

import os

import pytest

import lilac

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "corpus")
SOFTMAX = os.path.join(DATA, "softmax_float16_4096.ttir")
ONE = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [8], order = [0]}>"


def test_text_and_json():
    explanation = lilac.explain(SOFTMAX, num_warps=8)
    assert "load of 16 bytes per thread, 16 instructions, 256 sectors" in str(explanation)
    assert explanation.json["kernel"] == "softmax" and explanation.json["budget"]["exact"]
    assert explanation.json["budget"]["registers_estimated"]
    assert repr(explanation) == "<lilac.Explanation of softmax for sm_90a>"
    html = explanation._repr_html_()
    assert html.startswith("<pre>") and "&lt;{sizePerThread" in html


def test_kernel_keeps_its_options():
    kernel = lilac.compile(SOFTMAX, num_warps=8, target="sm_80", simt=True, tile=True)
    facts = lilac.explain(kernel).json
    assert (facts["num_warps"], facts["target"]) == (8, "sm_80")
    assert facts["ptx"]["text"] == kernel.ptx
    with pytest.raises(TypeError, match="no source"):
        lilac.explain(lilac.Kernel(kernel.ptx, "{}"))


def test_launch():
    path = os.path.join(DATA, "matmul_f16.ttir")
    loop = lilac.explain(path, grid=(64,), arguments={"K": 4096}).json["loops"][0]
    assert (loop["estimate"], loop["from_launch"]) == (64, True)
    assert lilac.explain(path).json["loops"][0]["from_launch"] is False
    assert lilac.explain(path, registers=168).json["budget"]["registers"] == 168
    with pytest.raises(lilac.CompilationError) as caught:
        lilac.explain(path, arguments={"nothing": 3})
    assert caught.value.ids == ["unknown-argument"]
    with pytest.raises(ValueError):
        lilac.explain(path, grid=(1, 2, 3, 4))


def test_why():
    explanation = lilac.explain(os.path.join(DATA, "transpose_float16.ttir"))
    assert "not chosen: row-major shared memory" in explanation.why(37)
    with pytest.raises(lilac.CompilationError) as caught:
        explanation.why(3)
    assert caught.value.ids == ["unknown-line"]
    with pytest.raises(lilac.Error):
        explanation.why(0)


def test_what_if():
    explanation = lilac.explain(SOFTMAX, num_warps=8)
    change = explanation.what_if(num_warps=4)
    assert str(change).startswith("with num_warps=4, for a block\n") and repr(change) == "<lilac.Change: num_warps=4>"
    assert change.json["before"] == explanation.json["budget"]
    assert change.json["after"] == lilac.explain(SOFTMAX, num_warps=4).json["budget"]
    assert "nothing changes" in str(explanation.what_if(num_warps=8))
    forced = explanation.what_if(layout=(26, ONE))
    assert forced.json["after"]["counts"]["access_bits"] == {"16": 256}
    with pytest.raises(lilac.CompilationError) as caught:
        explanation.what_if(layout=(18, ONE))
    assert caught.value.ids == ["forced-layout"]
    with pytest.raises(lilac.CompilationError):
        explanation.what_if(num_warps=3)


def test_advice():
    path = os.path.join(os.path.dirname(SOFTMAX), "..", "..", "..", "examples", "explain", "sum_rows.ttir")
    text = open(path, encoding="utf-8").read()
    explanation = lilac.explain(text, grid=4096, advice=True)
    for one in explanation.json["advice"]:
        assert one["seconds"] < 0.95 * one["base_seconds"]
        assert "  %s: predicted " % one["change"] in str(explanation)
    assert "predicted faster" in str(explanation)
    assert lilac.explain(text, grid=4096).json["advice"] == []


def test_divisibility():
    text = open(SOFTMAX, encoding="utf-8").read().replace("tt.divisibility = 16", "tt.divisibility = 2")
    explanation = lilac.explain(text, num_warps=8)
    change = explanation.what_if(divisibility={"x": 16, "o": 16, "xs": 16, "os": 16, "cols": 16})
    assert change.json["after"]["counts"]["access_bits"] == {"128": 32}
    assert "128" not in change.json["before"]["counts"]["access_bits"]
    with pytest.raises(lilac.CompilationError) as caught:
        explanation.what_if(divisibility={"nothing": 16})
    assert caught.value.ids == ["unknown-argument"]
    with pytest.raises(lilac.Error, match="power of two"):
        explanation.what_if(divisibility={"x": 12})
