"""lilac.explain: the text, the JSON, changes, refusals."""

import json
import os

import numpy
import pytest

import lilac
from lilac.explorer import page_path

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


LOADED_TRIPS = """
tt.func public @sum(%counts: !tt.ptr<i32>, %out: !tt.ptr<i32>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %pid = tt.get_program_id x : i32
  %at = tt.addptr %counts, %pid : !tt.ptr<i32>, i32
  %n = tt.load %at : !tt.ptr<i32>
  %sum = scf.for %k = %zero to %n step %one iter_args(%s = %zero) -> (i32) : i32 {
    %p = tt.addptr %out, %k : !tt.ptr<i32>, i32
    %v = tt.load %p {isVolatile = true} : !tt.ptr<i32>
    %t = arith.addi %s, %v : i32
    scf.yield %t : i32
  }
  tt.store %out, %sum : !tt.ptr<i32>
  tt.return
}
"""


def test_trip_counts():
    """From the contents of arrays, or as given for a line."""
    counts = numpy.array([4, 0, 8], dtype="int32")
    loop = lilac.explain(LOADED_TRIPS, grid=3, arguments={"counts": counts}).json["loops"][0]
    assert loop["from_launch"] and loop["estimate"] == 4
    loop = lilac.explain(LOADED_TRIPS, grid=3, trip_counts={8: 2.5}).json["loops"][0]
    assert loop["estimate"] == 2.5
    assert not lilac.explain(LOADED_TRIPS, grid=3).json["budget"]["exact"]


def test_page():
    """The explorer's page with a kernel; without the page, a refusal that names the cause."""
    if page_path() is None:
        with pytest.raises(lilac.Error, match="make explorer"):
            lilac.explore(SOFTMAX)
        return
    page = lilac.explore(SOFTMAX, num_warps=8)
    data = json.loads(page.html.split('id="kernel">')[1].split("</script>")[0])
    assert data["options"] == {"device": "", "warps": 8, "stages": ""} and data["sources"].keys() == {"kernels.py"}
    kernel = lilac.compile(SOFTMAX, num_warps=8)
    assert data["ptx"] == kernel.ptx and "tt.load" in data["tile"]
    assert page._repr_html_().startswith("<iframe srcdoc=")
    assert json.loads(lilac.explore(kernel).html.split('id="kernel">')[1].split("</script>")[0])["ptx"] == kernel.ptx
    with pytest.raises(lilac.CompilationError):
        lilac.explore("tt.func public @none() {\n")


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
