"""lilac.compile: texts to PTX, refusals, threads."""

import os
import pickle
import re
import sys
import threading
import time

import pytest

import lilac

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "corpus")


def corpus(name):
    with open(os.path.join(DATA, f"{name}.ttir"), encoding="utf-8") as file:
        return file.read()


def test_compile():
    text = corpus("softmax_float16_4096")
    kernel = lilac.compile(text, num_warps=8, tile=True, simt=True)
    assert (kernel.name, kernel.target, kernel.num_warps, kernel.num_ctas) == ("softmax", "sm_90a", 8, 1)
    assert ".reqntid 256" in kernel.ptx and kernel.shared > 0
    assert "#blocked = #ttg.blocked<" in kernel.tile and "kernel @softmax" in kernel.simt
    assert [one.name for one in kernel.passes][0] == "read" and kernel.seconds > 0
    assert [one["operation"] for one in kernel.accesses] == ["tt.load", "tt.store"]
    assert all(one["plan"]["bytes"] == 16 for one in kernel.accesses)
    assert lilac.compile(text).tile is None and lilac.compile(text).num_warps == 4
    assert ".loc" not in lilac.compile(text, line_info=False).ptx
    assert lilac.compile(text, target="sm_80").ptx.count(".target sm_80") == 1
    with pytest.raises(ValueError, match="sm_1"):
        lilac.compile(text, target="sm_1")
    for bad in (0, -1, 1 << 40):
        with pytest.raises(ValueError):
            lilac.compile(text, num_warps=bad)
    with pytest.raises(lilac.CompilationError) as caught:
        lilac.compile(text, num_warps=3)
    assert caught.value.ids == ["invalid-target"]
    assert "sm_90a" in lilac.devices()


def test_compiling_lets_other_threads_run():
    """No thread is ever made to give up Python's lock here: that another one runs while this one
    compiles means that the compiler let go of it."""
    text = corpus("histogram_sort")
    spans, ticks = [], []
    done = threading.Event()

    def compile():
        for _ in range(10):
            begin = time.perf_counter()
            lilac.compile(text)
            spans.append((begin, time.perf_counter()))
        done.set()

    before = sys.getswitchinterval()
    sys.setswitchinterval(60)
    try:
        thread = threading.Thread(target=compile)
        thread.start()
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0001)
        thread.join()
    finally:
        sys.setswitchinterval(before)
    inside = [any(begin < tick < end for tick in ticks) for begin, end in spans]
    assert sum(inside) >= 5


def test_text_that_is_none():
    """A module that cannot be read has its line too, from the module's own locations."""
    text = 'module {\n  tt.func public @k() {\n    tt.nothing loc(#loc1)\n    tt.return\n  }\n}\n' \
           '#loc1 = loc("v"(#loc2))\n#loc2 = loc("some.py":17:4)\n'
    with pytest.raises(lilac.CompilationError) as caught:
        lilac.compile(text, file="k.ttir")
    first = caught.value.diagnostics[0]
    assert (first.file, first.line, first.column) == ("some.py", 17, 5)
    assert (first.ir_file, first.ir_line) == ("k.ttir", 3)


def test_refusal_points_at_the_program(tmp_path):
    """With the user's line and a caret, where the file is there to be read."""
    program = tmp_path / "kernels.py"
    program.write_text("".join(f"line {i}\n" for i in range(1, 200)))
    text = corpus("softmax_float16_4096").replace('"kernels.py"', f'"{program}"')
    text = re.sub(r"math.exp (%\w+) (?:fastmath<\w+> )?: (tensor<[^>]*>)", r'tt.extern_elementwise \1 {libname = "", libpath = "", '
                  r'pure = true, symbol = "__nv_nothing"} : (\2) -> \2', text)
    with pytest.raises(lilac.CompilationError) as caught:
        lilac.compile(text, num_warps=8, file="softmax.ttir")
    error = caught.value
    first = error.diagnostics[0]
    assert first.file == str(program) and f"    line {first.line}\n" in str(error) and "^" in str(error)
    assert first.ir_file == "softmax.ttir" and "__nv_nothing" in error.text and first.to_json()["id"] == first.id
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_products_and_sums_apart():
    text = corpus("rope_f16")
    assert "fma.rn" in lilac.compile(text).ptx and "fma.rn" not in lilac.compile(text, fuse=False).ptx


SUBNORMALS = """
tt.func public @k(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
  %range = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %from = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %a = tt.addptr %from, %range : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  %value = tt.load %a : tensor<32x!tt.ptr<f32>>
  %result = FUNCTION : (tensor<32xf32>) -> tensor<32xf32>
  %to = tt.splat %out : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %b = tt.addptr %to, %range : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  tt.store %b, %result : tensor<32x!tt.ptr<f32>>
  tt.return
}
"""


@pytest.mark.parametrize("name, argument, kept", [
    ("exp2f", -127.0, 2.0**-127), ("sqrtf", 2.0**-130, 2.0**-65), ("rsqrtf", 2.0**-130, 2.0**65),
    ("fast_log2f", 2.0**-130, -130.0)])
def test_subnormals(name, argument, kept):
    """Functions that are one instruction: flushed as under Triton, or kept."""
    import numpy

    text = SUBNORMALS.replace("FUNCTION", f'tt.extern_elementwise %value {{libname = "", libpath = "", pure = true, '
                              f'symbol = "__nv_{name}"}}')
    flushed = {"exp2f": 0.0, "sqrtf": 0.0, "rsqrtf": numpy.inf, "fast_log2f": -numpy.inf}[name]
    for flush, expected in ((True, flushed), (False, kept)):
        kernel = lilac.compile(text, num_warps=1, flush_subnormals=flush)
        assert (".ftz" in kernel.ptx) == flush
        x, out = numpy.full(32, argument, numpy.float32), numpy.zeros(32, numpy.float32)
        lilac.run(kernel, 1, x, out)
        assert (out == numpy.float32(expected)).all(), (flush, out[0])
