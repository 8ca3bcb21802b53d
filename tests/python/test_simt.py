"""lilac.run on SIMT text, and its tensor maps: lilac.TensorMap."""

import os
import sys

import numpy
import pytest

import lilac

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from matrix_kernels import KERNELS  # noqa: E402

# out[i] = value · i, of 64 threads
SCALE = """simt.module target "sm_90a" {
  kernel @scale(%out: i64 ptr align 16, %value: i32) warps 2 ctas 1 shared 0 {
    %out = param 0 : i64
    %value = param 1 : i32
    %thread = thread : i32
    %product = mul %thread, %value : i32
    %four = const 4 : i32
    %offset = mulwide_s %thread, %four : i64
    %at = add %out, %offset : i64
    st.global [%at], (%product)
    return
  }
}
"""

# Copies the box at (row, column) of a map of 8 × 8 words to the same place of another map.
BOX = """simt.module target "sm_90a" {
  kernel @box(%from: i64 tensor_map, %to: i64 tensor_map, %row: i32, %column: i32) warps 1 ctas 1 shared 264 {
    %from = param 0 : i64
    %to = param 1 : i64
    %row = param 2 : i32
    %column = param 3 : i32
    %zero = const 0 : i32
    %one = const 1 : i32
    %bytes = const 256 : i32
    %thread = thread : i32
    %first = cmp eq %thread, %zero : i1
    %base = shared_base : i32
    %full = add %base, %bytes : i32
    mbarrier.init [%full], %first, (%one)
    fence.mbarrier_init
    barrier
    mbarrier.expect [%full], %first, (%bytes)
    cp.tensor.load [%base], %first, (%from, %column, %row, %full)
    mbarrier.wait [%full], (%zero)
    cp.tensor.store [%base], %first, (%to, %column, %row)
    bulk.commit
    bulk.wait
    return
  }
}
"""


def box_map(array, **options):
    return lilac.TensorMap(array, (8, 8), **options)


def matrix(rows=16, columns=16, kind="float32"):
    return numpy.arange(1, rows * columns + 1).astype(kind).reshape(rows, columns)


def test_simt_text_runs_unchanged():
    out = numpy.zeros(64, "int32")
    run = lilac.run(SCALE, 1, out, 3)
    assert (out == 3 * numpy.arange(64)).all()
    assert (run.kernel, run.target, run.num_warps, run.shared) == ("scale", "sm_90a", 2, 0)
    assert lilac.Run.from_json(run.to_json()) == run and "2 warps" in str(run)
    assert lilac.run(SCALE, grid=1, out=out.view("float32"), value=-1).findings == ()
    assert (out == -numpy.arange(64)).all()


def test_the_compilers_simt_text_gives_the_same_run():
    with open(os.path.join(os.path.dirname(__file__), "..", "data", "corpus", "vector_add_f32.ttir"),
              encoding="utf-8") as file:
        kernel = lilac.compile(file.read(), simt=True)
    x, y = (numpy.linspace(0, last, 1024, dtype="float32") for last in (1, 7))
    results = []
    for program in (kernel, kernel.simt):
        out = numpy.zeros_like(x)
        results.append((lilac.run(program, 1, x, y, out, 1024).counters, out.tolist()))
    assert results[0] == results[1]


def test_the_kernel_of_the_page():
    """The example of docs/asynchronous.md."""
    path = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "asynchronous", "square.simt")
    x = numpy.linspace(-1, 1, 64, dtype="float32").reshape(8, 8)
    y = numpy.zeros_like(x)
    assert lilac.run(path, 1, lilac.TensorMap(x, (8, 8)), y, empty=["to"]).findings == ()
    assert (y == x * x).all()


def test_options_of_simt_text(tmp_path):
    out = numpy.zeros(64, "int32")
    path = tmp_path / "scale.simt"
    path.write_text(SCALE)
    assert lilac.run(path, 1, out, 2, num_warps=2, target="sm_90a", name="scale").kernel == "scale"
    assert lilac.run(str(path), 1, out, 2).kernel == "scale" and out[3] == 6
    for options in ({"num_warps": 4}, {"target": "sm_80"}):
        with pytest.raises(lilac.CompilationError) as caught:
            lilac.run(SCALE, 1, out, 2, **options)
        assert caught.value.ids == ["invalid-target"]
    with pytest.raises(lilac.CompilationError) as caught:
        lilac.run(SCALE, 1, out, 2, name="none")
    assert caught.value.ids == ["unknown-kernel"]
    with pytest.raises(lilac.CompilationError) as caught:
        lilac.run(path.read_text().replace("mul ", "mull "), 1, out, 2, file="scale.simt")
    assert caught.value.ids == ["unknown-operation"] and caught.value.diagnostics[0].file == "scale.simt"
    assert caught.value.diagnostics[0].line == 6


def test_arguments_of_simt_text():
    out = numpy.zeros(68, "int32")
    with pytest.raises(TypeError, match="no value for value: i32"):
        lilac.run(SCALE, 1, out)
    with pytest.raises(TypeError, match="out is a pointer: give a NumPy array, not list"):
        lilac.run(SCALE, 1, [1], 2)
    with pytest.raises(lilac.Error, match="value is i32: 4294967296 is outside"):
        lilac.run(SCALE, 1, out, 1 << 32)
    with pytest.raises(lilac.SimulationError) as caught:
        lilac.run(SCALE, 1, None, 1)
    assert caught.value.ids == ["null-pointer"]
    both = SCALE.replace("%value: i32)", "%value: i32, %base: i64 ptr)")
    with pytest.raises(lilac.Error, match=r"multiples of 16 bytes \(align\)"):
        lilac.run(both, 1, out[1:65], 1, out)
    assert lilac.run(both, 1, out[4:], 1, out).findings == () and out[4:8].tolist() == [0, 1, 2, 3]
    with pytest.raises(lilac.Error, match="parameters of type f16x2 are not supported"):
        lilac.run(SCALE.replace("%value: i32)", "%value: i32, %pair: f16x2)"), 1, out, 1, 0.0)


@pytest.mark.parametrize("kind", ["float32", "int32", "uint32"])
def test_a_box(kind):
    x, out = matrix(kind=kind), numpy.zeros((16, 16), kind)
    run = lilac.run(BOX, 1, box_map(x), box_map(out), 8, 4)
    expected = numpy.zeros_like(x)
    expected[8:, 4:12] = x[8:, 4:12]
    assert (out == expected).all() and run.findings == ()
    assert run.counters["bulk_copies"] == 2 and run.counters["bulk_bytes"] == 512


def test_boxes_that_exceed_the_array():
    """A load fills, a store drops; the map of the copy is larger than that of the source."""
    x = matrix()
    for fill in ("zero", "nan"):
        wide = numpy.zeros((32, 32), "float32")
        lilac.run(BOX, 1, box_map(x, fill=fill), box_map(wide), 12, 12)
        assert (wide[12:16, 12:16] == x[12:, 12:]).all()
        rest = wide[16:20, 12:20]
        assert numpy.isnan(rest).all() if fill == "nan" else not rest.any()
    out = numpy.zeros((16, 16), "float32")
    lilac.run(BOX, 1, box_map(x), box_map(out), -4, -4)
    assert (out[:4, :4] == x[:4, :4]).all() and not out[4:].any() and not out[:, 4:].any()


def test_views():
    """Strides are the array's: a tensor with the pitch of a larger one. Views share a buffer."""
    x = matrix(32, 32)
    out = numpy.zeros((16, 64), "float32")
    lilac.run(BOX, 1, box_map(x[::2, 16:]), box_map(out[:, 32:48]), 8, 8)
    assert (out[8:, 40:48] == x[16::2, 24:]).all() and numpy.count_nonzero(out) == 64
    lilac.run(BOX, 1, box_map(x[:, :8]), box_map(x[:, 8:16]), 0, 0)
    assert (x[:8, 8:16] == x[:8, :8]).all()


def test_findings_and_traps_with_tensor_maps():
    x, out = matrix(), numpy.zeros((16, 16), "float32")
    no_wait = BOX.replace("    mbarrier.wait [%full], (%zero)\n", "")
    assert "copy-in-flight" in {finding.id for finding in lilac.run(no_wait, 1, box_map(x), box_map(out), 0, 0).findings}
    run = lilac.run(BOX, 1, box_map(x), box_map(out), 0, 0, empty=["from"])
    assert {finding.id for finding in run.findings} == {"uninitialised-read"}
    out.flags.writeable = False
    with pytest.raises(lilac.SimulationError) as caught:
        lilac.run(BOX, 1, box_map(x), box_map(out), 0, 0)
    assert caught.value.ids == ["read-only"]


@pytest.mark.parametrize("array, options, message", [
    (matrix(16, 15), {}, "the stride of dimension 1 is 60 bytes; a multiple of 16"),
    (matrix(16, 16)[:, 1:], {}, "the address is 0x"),
    (matrix(16, 16), {"swizzle": 32, "box": (8, 16)}, "the box has 64 bytes along dimension 0; the swizzle of 32 bytes allows 32"),
    (matrix(16, 16), {"box": (257, 8)}, "the box has 257 elements along dimension 1; 1 to 256 are allowed"),
    (matrix(16, 16), {"box": (8, 0)}, "the box has 0 elements along dimension 0"),
    (matrix(16, 16), {"promote": 32}, "the promotion is to 32 bytes; 0, 64, 128 and 256 are allowed"),
    (matrix(16, 16, "int32"), {"fill": "nan"}, "integers are filled with NaN"),
    (numpy.zeros((1, 1, 1, 1, 8, 8), "float32"), {"box": (1, 1, 1, 1, 8, 8)}, "the rank is 6; 1 to 5 are allowed"),
    (numpy.zeros((0, 16), "float32"), {}, "dimension 1 has 0 elements"),
])
def test_limits(array, options, message):
    """The diagnostics of the library name the parameter, the field, its value and what is allowed."""
    options = {"box": (8, 8), **options}
    given = {"from": lilac.TensorMap(array, **options), "to": box_map(numpy.zeros((16, 16), "float32"))}
    with pytest.raises(lilac.SimulationError) as caught:
        # The base array is an argument too, so that a slice begins inside its buffer.
        text = BOX.replace("%column: i32)", "%column: i32, %all: i64 ptr)")
        lilac.run(text, 1, {**given, "row": 0, "column": 0, "all": array if array.base is None else array.base})
    assert caught.value.ids == ["tensor-map"] and f"tensor map 'from': {message}" in caught.value.text


@pytest.mark.parametrize("array, box, options, error, message", [
    (matrix(), (8, 8, 8), {}, lilac.Error, "the box has 3 dimensions, the array has 2"),
    (matrix(), (8, 8), {"swizzle": 16}, lilac.Error, "swizzle is 16; 0, 32, 64 and 128 bytes are allowed"),
    (matrix(), (8, 8), {"fill": "one"}, lilac.Error, "fill is 'one'; 'zero' and 'nan' are allowed"),
    (matrix(), (8, -8), {}, lilac.Error, "a size of the box is an integer from 0"),
    (matrix(), (8, 8.5), {}, TypeError, "a size of the box is an integer, not 8.5"),
    (matrix().T, (8, 8), {}, lilac.Error, "the last dimension of the array has a stride of 64 bytes"),
    (matrix()[::-1], (8, 8), {}, lilac.Error, "a stride of -64 bytes; a tensor map has no negative strides"),
    (matrix().astype("complex64"), (8, 8), {}, lilac.Error, "no element type for complex64"),
    (matrix().astype(">f4"), (8, 8), {}, lilac.Error, "no element type for >f4"),
    (numpy.float32(1), (), {}, TypeError, "describes a NumPy array, not float32"),
    (numpy.array(1.0), (), {}, lilac.Error, "this array has none"),
    ([1, 2], 2, {}, TypeError, "describes a NumPy array, not list"),
])
def test_maps_that_are_refused(array, box, options, error, message):
    with pytest.raises(error, match=message):
        lilac.TensorMap(array, box, **options)


def test_a_map_is_a_value():
    one = lilac.TensorMap(numpy.zeros(64, "int8"), 64)
    assert one.box == (64,) and repr(one) == "<lilac.TensorMap boxes of 64 in int8[64], swizzle 0, fill zero>"
    for change in (lambda: setattr(one, "box", 1), lambda: delattr(one, "box")):
        with pytest.raises(AttributeError, match="a TensorMap does not change"):
            change()
    with pytest.raises(TypeError, match=r"from is a tensor map: give lilac.TensorMap\(array, box\), not ndarray"):
        lilac.run(BOX, 1, matrix(), box_map(matrix()), 0, 0)
    with pytest.raises(TypeError, match="out is a pointer"):
        lilac.run(SCALE, 1, one, 1)


@pytest.mark.parametrize("kernel, stages", [("cp_async", 3), ("tensor_map", 3), ("specialized", 2), ("epilogue", 4)])
def test_matrix_products(kernel, stages):
    m, n, k = 128, 128, 192
    rows = 128 if kernel == "specialized" else 64
    draw = numpy.random.default_rng(5)
    a, b = (draw.uniform(-1, 1, (count, k)).astype("float16") for count in (m, n))
    d = numpy.zeros((m, n), "float16" if kernel == "epilogue" else "float32")
    text = KERNELS[kernel](stages)
    if "tensor_map" in text:
        operands = [lilac.TensorMap(a, (rows, 64), swizzle=128), lilac.TensorMap(b, (64, 64), swizzle=128)]
    else:
        operands = [a, b]
    run = lilac.run(text, (m // rows, n // 64), *operands, d, n, k, empty=["d"])
    exact = a.astype("float64") @ b.astype("float64").T
    assert abs(d - exact).max() < (1e-2 if kernel == "epilogue" else 1e-5)
    assert run.findings == () and run.counters["wgmmas"] > 0
