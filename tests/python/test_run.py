"""lilac.run: kernels on the simulator, on NumPy arrays; arguments, results, findings, traps."""

import json
import os
import pathlib
import pickle
import sys

import numpy
import pytest

import lilac

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "corpus")
COUNT = 128

# Copies COUNT elements of any type.
COPY = """
tt.func public @copy(%dst: !tt.ptr<TYPE>, %src: !tt.ptr<TYPE>) {
  %range = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %from = tt.splat %src : !tt.ptr<TYPE> -> tensor<128x!tt.ptr<TYPE>>
  %a = tt.addptr %from, %range : tensor<128x!tt.ptr<TYPE>>, tensor<128xi32>
  %value = tt.load %a : tensor<128x!tt.ptr<TYPE>>
  %to = tt.splat %dst : !tt.ptr<TYPE> -> tensor<128x!tt.ptr<TYPE>>
  %b = tt.addptr %to, %range : tensor<128x!tt.ptr<TYPE>>, tensor<128xi32>
  tt.store %b, %value : tensor<128x!tt.ptr<TYPE>>
  tt.return
}
"""

# Stores one scalar of any type.
SCALAR = """
tt.func public @scalar(%out: !tt.ptr<TYPE>, %value: TYPE ATTRIBUTES) {
  tt.store %out, %value : !tt.ptr<TYPE>
  tt.return
}
"""

# out[i * step] = i
STEPS = """
tt.func public @steps(%out: !tt.ptr<i32>, %step: i32) {
  %range = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
  %steps = tt.splat %step : i32 -> tensor<8xi32>
  %offsets = arith.muli %range, %steps : tensor<8xi32>
  %base = tt.splat %out : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
  %at = tt.addptr %base, %offsets : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
  tt.store %at, %range : tensor<8x!tt.ptr<i32>>
  tt.return
}
"""

# A loop of n iterations.
LOOP = """
tt.func public @loop(%out: !tt.ptr<i32>, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    tt.store %out, %i : !tt.ptr<i32>
  }
  tt.return
}
"""


def copy(element):
    return COPY.replace("TYPE", element)


def scalar(element, attributes=""):
    return SCALAR.replace("TYPE", element).replace("ATTRIBUTES", attributes)


def corpus(name):
    return os.path.join(DATA, f"{name}.ttir")


def test_a_softmax_in_place():
    x = numpy.random.default_rng(1).standard_normal((4, 4096)).astype("float16")
    out = numpy.zeros_like(x)
    done = lilac.run(corpus("softmax_float16_4096"), 4, out, x, 4096, 4096, 4, 4096, num_warps=8)
    power = numpy.exp(x.astype("float64") - x.max(1, keepdims=True))
    assert numpy.allclose(out, power / power.sum(1, keepdims=True), rtol=2e-3, atol=1e-7)
    assert (done.kernel, done.target, done.grid, done.num_warps) == ("softmax", "sm_90a", (4, 1, 1), 8)
    assert done.counters["blocks"] == 4 and done.counters["global_loads"] == 64 and done.shared == 32
    assert (done.races, done.uninitialised_reads, done.findings, done.printed) == (0, 0, (), "")
    assert "global loads" in str(done) and "atomics" not in str(done)
    assert "<table>" in done._repr_html_()
    assert lilac.Run.from_json(done.to_json()) == done and pickle.loads(pickle.dumps(done)) == done


def test_every_way_to_give_a_kernel(tmp_path):
    x = numpy.arange(COUNT, dtype="int32")
    path = tmp_path / "copy.ttir"
    path.write_text(copy("i32"))
    kernel = lilac.compile(path, num_warps=1)
    for given in (copy("i32"), path, str(path), kernel, lilac.Kernel.from_json(kernel.to_json()),
                  pickle.loads(pickle.dumps(kernel))):
        out = numpy.zeros_like(x)
        lilac.run(given, 1, out, x)
        assert (out == x).all()
    assert lilac.run(kernel, 1, out, x).num_warps == 1
    ttgir = lilac.compile(path, tile=True, num_warps=2).tile
    assert lilac.run(ttgir, 1, out, x, num_warps=2).num_warps == 2
    with pytest.raises(TypeError, match="compiled already"):
        lilac.run(kernel, 1, out, x, num_warps=2)
    with pytest.raises(FileNotFoundError):
        lilac.run("nothing.ttir", 1)
    with pytest.raises(TypeError, match="a module is its text"):
        lilac.run(3, 1)
    with pytest.raises(lilac.CompilationError) as caught:
        lilac.run("nonsense", 1)
    assert caught.value.diagnostics


def test_every_way_to_give_arguments():
    x, out = numpy.arange(COUNT, dtype="int32"), numpy.zeros(COUNT, dtype="int32")
    for call in (lambda: lilac.run(copy("i32"), 1, out, x), lambda: lilac.run(copy("i32"), 1, out, src=x),
                 lambda: lilac.run(copy("i32"), grid=(1, 1, 1), dst=out, src=x),
                 lambda: lilac.run(copy("i32"), numpy.int64(1), {"dst": out, "src": x}),
                 lambda: lilac.run(copy("i32"), numpy.array([1, 1]), {"dst": out}, src=x)):
        out[:] = 0
        call()
        assert (out == x).all()
    for bad, words in (((out,), "no value for src: !tt.ptr<i32>"), ((out, x, 3), "has 2 parameters"),
                       ((out, [1] * COUNT), "NumPy array, not list"), ((out, 3), "NumPy array, not int")):
        with pytest.raises(TypeError, match=words):
            lilac.run(copy("i32"), 1, *bad)
    with pytest.raises(TypeError, match="two values for 'dst'"):
        lilac.run(copy("i32"), 1, out, x, dst=out)
    with pytest.raises(TypeError, match="no parameter 'other'.*dst, src"):
        lilac.run(copy("i32"), 1, out, other=x)
    for grid in (0, -1, (), (1, 1, 1, 1), 1 << 40):
        with pytest.raises(lilac.Error, match="grid"):
            lilac.run(copy("i32"), grid, out, x)
    for grid in ("x", 1.5, None):
        with pytest.raises(TypeError):
            lilac.run(copy("i32"), grid, out, x)


@pytest.mark.parametrize("element, dtypes, others", [
    ("i8", ["int8", "uint8"], ["int16", "bool"]), ("i16", ["int16", "uint16"], ["float16"]),
    ("i32", ["int32", "uint32"], ["int64", "float32"]), ("i64", ["int64", "uint64"], ["int32"]),
    ("f16", ["float16"], ["float32", "uint16"]), ("bf16", ["uint16", "int16", "bfloat16"], ["float16"]),
    ("f32", ["float32"], ["float64", "int32"]), ("f64", ["float64"], ["float32"]),
    ("f8E4M3FN", ["uint8", "float8_e4m3fn"], ["float16", "float8_e5m2"]),
    ("f8E5M2", ["uint8", "int8", "float8_e5m2"], ["float8_e4m3fn", "uint16"])])
def test_element_types(element, dtypes, others):
    def array(name):
        if not hasattr(numpy, name):
            name = getattr(pytest.importorskip("ml_dtypes"), name)
        return numpy.arange(COUNT).astype(name)

    for name in dtypes:
        x = array(name)
        out = numpy.zeros_like(x)
        lilac.run(copy(element), 1, out, x)
        assert (out.view("uint8") == x.view("uint8")).all() and x[3] == 3
    for name in others:
        with pytest.raises(lilac.Error, match=f"src is a pointer to {element}, which needs an array of"):
            lilac.run(copy(element), 1, array(dtypes[0]), array(name))


def test_without_ml_dtypes(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    x = numpy.arange(COUNT, dtype="uint16")
    out = numpy.zeros_like(x)
    lilac.run(copy("bf16"), 1, out, x)
    assert (out == x).all()


def test_scalars():
    for element, dtype, good, bad in (
            ("i32", "int32", [5, -5, numpy.int8(-3), numpy.uint64(7), True, numpy.bool_(True)],
             [1 << 32, -(1 << 31) - 1]),
            ("i64", "int64", [-(1 << 63), (1 << 63) - 1], [1 << 64]), ("i8", "int8", [127, -128], [256, -129]),
            ("f32", "float32", [1.5, 3, numpy.float64(2.5), numpy.float16(-1), float("inf")], [1e39, 10**400]),
            ("f64", "float64", [1e300], []), ("f16", "float16", [0.5], [1e6])):
        out = numpy.zeros(1, dtype=dtype)
        for value in good:
            lilac.run(scalar(element), 1, out, value)
            assert out[0] == value, (element, value)
        for value in bad:
            with pytest.raises(lilac.Error, match="range"):
                lilac.run(scalar(element), 1, out, value)
        for value in ("3", None, numpy.zeros(2, dtype), out):
            with pytest.raises(TypeError, match=f"value is {element}"):
                lilac.run(scalar(element), 1, out, value)
    with pytest.raises(TypeError):
        lilac.run(scalar("i32"), 1, numpy.zeros(1, "int32"), 1.0)
    unsigned = numpy.zeros(1, dtype="uint32")
    lilac.run(scalar("i32"), 1, unsigned, 0xFFFFFFFF)
    assert unsigned[0] == 0xFFFFFFFF
    with pytest.raises(lilac.Error, match="multiples of 16"):
        lilac.run(scalar("i32", "{tt.divisibility = 16 : i32}"), 1, unsigned, 24)


def test_strides_and_memory_that_is_shared():
    """A pointer is the address of the first element; views of one array are one memory."""
    base = numpy.zeros(64, dtype="int32")
    lilac.run(STEPS, 1, base[3::4], 4)
    assert base[3:35:4].tolist() == list(range(8)) and base.sum() == 28
    base[:] = 0
    lilac.run(STEPS, 1, base[::-1], -2)
    assert base[::-2][:8].tolist() == list(range(8))
    x = numpy.arange(2 * COUNT, dtype="int32")
    lilac.run(copy("i32"), 1, x[COUNT:], x[:COUNT])
    assert x.tolist() == list(range(COUNT)) * 2
    lilac.run(copy("i32"), 1, x, x)
    with pytest.raises(lilac.SimulationError) as caught:
        lilac.run(STEPS, 1, base[3::4], 16)
    assert caught.value.ids == ["out-of-bounds"]


def test_traps_say_where():
    x = numpy.arange(COUNT, dtype="int32")
    with pytest.raises(lilac.SimulationError) as caught:
        lilac.run(copy("i32"), 1, numpy.zeros(100, "int32"), x, file="copy.ttir")
    error = caught.value
    assert isinstance(error, lilac.Error) and isinstance(error, ValueError)
    assert error.ids == ["out-of-bounds"] and "thread" in str(error) and "dst" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.diagnostics, again.printed) == (str(error), error.diagnostics, "")
    frozen = numpy.zeros(COUNT, "int32")
    frozen.flags.writeable = False
    with pytest.raises(lilac.SimulationError) as caught:
        lilac.run(copy("i32"), 1, frozen, x)
    assert caught.value.ids == ["read-only"] and not frozen.any()
    with pytest.raises(lilac.SimulationError) as caught:
        lilac.run(copy("i32"), 1, None, x)
    assert caught.value.ids == ["null-pointer"]
    empty = numpy.zeros(0, "int32")
    with pytest.raises(lilac.SimulationError):
        lilac.run(copy("i32"), 1, empty, x)


def test_findings():
    x, out = numpy.arange(COUNT, dtype="int32"), numpy.zeros(COUNT, dtype="int32")
    done = lilac.run(copy("i32"), 1, out, x, empty=["src"])
    assert done.uninitialised_reads > 0 and (out == x).all()
    assert {one.id for one in done.findings} == {"uninitialised-read"}
    assert all(one.severity == "warning" for one in done.findings)
    assert "uninitialised" in str(done) and "uninitialised" in done._repr_html_()
    assert lilac.Run.from_json(done.to_json()) == done
    assert lilac.run(copy("i32"), 1, out, x, empty=["dst"]).findings == ()
    with pytest.raises(lilac.Error, match="'none', which `empty` names"):
        lilac.run(copy("i32"), 1, out, x, empty=["none"])


def test_prints():
    text = """
    tt.func public @say(%x: i32) {
      tt.print " x: " {hex = false, isSigned = array<i32: 1>} : %x : i32
      tt.return
    }
    """
    done = lilac.run(text, 2, 42, num_warps=1)
    assert done.printed.count("42") >= 2 and "42" in str(done)


def test_the_simulators_options():
    x, out = numpy.arange(COUNT, dtype="int32"), numpy.zeros(COUNT, dtype="int32")
    assert lilac.run(copy("i32"), 1, out, x, target="gfx942", threads=1).target == "gfx942"
    with pytest.raises(lilac.SimulationError) as caught:
        lilac.run(LOOP, 1, out, 1 << 20, limit=100, num_warps=1)
    assert caught.value.ids == ["instruction-limit"]
    for bad in (-1, 1 << 64):
        with pytest.raises(lilac.Error):
            lilac.run(copy("i32"), 1, out, x, limit=bad)
    with pytest.raises(lilac.Error, match="no device 'sm_1'"):
        lilac.run(copy("i32"), 1, out, x, target="sm_1")
    two = copy("i32") + STEPS
    assert lilac.run("module {" + two + "}", 1, out, 1, name="steps").kernel == "steps"
    assert lilac.run("module {" + two + "}", 1, out, x).kernel == "copy"
    with pytest.raises(lilac.CompilationError) as caught:
        lilac.run("module {" + two + "}", 1, out, x, name="none")
    assert caught.value.ids == ["unknown-kernel"]


def test_paths_of_other_kinds():
    kernel = lilac.compile(pathlib.Path(corpus("softmax_float16_4096")), num_warps=8)
    assert kernel.name == "softmax"


# out = a * (a P b) + b * (b Q a), as torch.compile prints minima and maxima
CHOICES = """
tt.func public @choices(%out: !tt.ptr<i32>, %x: !tt.ptr<i32>, %y: !tt.ptr<i32>) {
  %range = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %zero = arith.constant dense<0> : tensor<128xi32>
  %xs = tt.splat %x : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
  %xp = tt.addptr %xs, %range : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
  %a = tt.load %xp : tensor<128x!tt.ptr<i32>>
  %ys = tt.splat %y : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
  %yp = tt.addptr %ys, %range : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
  %b = tt.load %yp : tensor<128x!tt.ptr<i32>>
  %p = arith.cmpi FIRST : tensor<128xi32>
  %pi = arith.extui %p : tensor<128xi1> to tensor<128xi32>
  %s = arith.muli %a, %pi : tensor<128xi32>
  %q = arith.cmpi SECOND : tensor<128xi32>
  %qi = arith.extui %q : tensor<128xi1> to tensor<128xi32>
  %t = arith.muli %qi, %b : tensor<128xi32>
  %sum = arith.addi %s, %t : tensor<128xi32>
  %z = arith.cmpi FIRSTZERO : tensor<128xi32>
  %zi = arith.extui %z : tensor<128xi1> to tensor<128xi32>
  %positive = arith.muli %zi, %a : tensor<128xi32>
  %both = arith.xori %sum, %positive : tensor<128xi32>
  %os = tt.splat %out : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
  %op = tt.addptr %os, %range : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
  tt.store %op, %both : tensor<128x!tt.ptr<i32>>
  tt.return
}
"""
COMPARED = {"slt": numpy.less, "sle": numpy.less_equal, "sgt": numpy.greater, "sge": numpy.greater_equal}


@pytest.mark.parametrize("first", [*COMPARED, "ult", "uge", "eq"])
def test_minima_and_maxima_of_products(first):
    edges = numpy.array([0, 1, -1, 2, -2, 7, 2**31 - 1, -2**31, 5, 5, -7, 1000], dtype=numpy.int32)
    a, b = (numpy.resize(numpy.tile(part, 12), 128).astype(numpy.int32)
            for part in (numpy.repeat(edges, 12)[:128], edges))

    def compare(name, x, y):
        if name == "eq":
            return x == y
        x, y = (x.view(numpy.uint32), y.view(numpy.uint32)) if name[0] == "u" else (x, y)
        return COMPARED["s" + name[1:]](x, y)

    # Products with the same order of exchanged operands, one strict, or with the opposite order.
    exchanged = {"slt": "sle", "sle": "slt", "sgt": "sge", "sge": "sgt", "ult": "ule", "uge": "ugt"}
    opposite = {"slt": "sge", "sge": "slt", "sgt": "sle", "sle": "sgt", "ult": "uge", "uge": "ult"}
    for second in (*COMPARED, "ult", "ugt", "ule", "uge"):
        for swapped in (False, True):
            text = CHOICES.replace("FIRSTZERO", f"{first}, %a, %zero").replace("FIRST", f"{first}, %a, %b")
            text = text.replace("SECOND", f"{second}, %a, %b" if swapped else f"{second}, %b, %a")
            out = numpy.zeros(128, numpy.int32)
            lilac.run(text, 1, out, a, b)
            with numpy.errstate(over="ignore"):
                q = compare(second, a, b) if swapped else compare(second, b, a)
                wanted = (a * compare(first, a, b) + b * q) ^ (a * compare(first, a, numpy.zeros_like(a)))
            assert (out == wanted).all(), (first, second, swapped)
            is_sum = second == (opposite if swapped else exchanged).get(first)
            products = (0 if is_sum else 2) + (first not in COMPARED)  # what is neither minimum nor maximum
            assert lilac.compile(text, tile=True).tile.count("arith.muli") == products, (first, second, swapped)


# Copies the 8 × 16 elements from row y, column x on.
TILE = """
tt.func public @tile(%d: !tt.tensordesc<tensor<8x16xf32>>, %out: !tt.ptr<f32>, %y: i32, %x: i32) {
  %v = tt.descriptor_load %d[%y, %x] : !tt.tensordesc<tensor<8x16xf32>> -> tensor<8x16xf32>
  %flat = tt.reshape %v : tensor<8x16xf32> -> tensor<128xf32>
  %range = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %to = tt.splat %out : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %at = tt.addptr %to, %range : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  tt.store %at, %flat : tensor<128x!tt.ptr<f32>>
  tt.return
}
"""


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("row, column", [(0, 0), (3, 4), (-5, -3), (7, 30), (100, 0), (-2**31, 2**31 - 1)])
def test_tensor_descriptors(row, column, nan):
    """An array is the tensor: its shape, its strides (those of a slice too), and what is outside."""
    whole = numpy.arange(12 * 40, dtype="float32").reshape(12, 40)
    d = whole[1:11, 4:37]  # 10 × 33, rows of 40
    out = numpy.full((8, 16), -1, dtype="float32")
    done = lilac.run(TILE, 1, d, out, row, column, d_nan=nan)
    expected = numpy.full((8, 16), numpy.nan if nan else 0, dtype="float32")
    for i in range(8):
        for j in range(16):
            if 0 <= row + i < 10 and 0 <= column + j < 33:
                expected[i, j] = d[row + i, column + j]
    numpy.testing.assert_array_equal(out, expected)
    assert done.findings == ()


def test_parts_of_a_descriptor_by_name():
    """The shape and the strides can be given: of a part of the array, or of an array of another rank."""
    out = numpy.zeros(128, dtype="float32")
    lilac.run(TILE, 1, numpy.ones(200, dtype="float32"), out, 0, 0, d_shape0=3, d_shape1=5, d_stride0=8, d_stride1=1)
    assert out.sum() == 15


@pytest.mark.parametrize("array, message", [
    (numpy.zeros(128, "float32"), "d is a descriptor of 2 dimensions; the array has 1"),
    (numpy.zeros((16, 32), "float32").T, "the last dimension of a descriptor is contiguous"),
    (numpy.zeros((8, 15), "float32"), "multiples of 4"),
    (numpy.zeros((8, 33), "float32")[:, 1:], "multiples of"),
])
def test_arrays_that_are_no_descriptor(array, message):
    with pytest.raises(lilac.Error, match=message):
        lilac.run(TILE, 1, array, numpy.zeros((8, 16), "float32"), 0, 0)


def test_parts_of_a_descriptor_are_not_positional():
    with pytest.raises(TypeError, match=r"tile has 4 parameters \(d, out, y, x\), not 5"):
        lilac.run(TILE, 1, numpy.zeros((8, 16), "float32"), numpy.zeros((8, 16), "float32"), 0, 0, 1)


SQUARE = """
tt.func public @square(%d: !tt.tensordesc<tensor<64x32xf16>>, %out: !tt.tensordesc<tensor<64x64xf32>>, %n: i32) {
  %z = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %r = scf.for %k = %c0 to %n step %step iter_args(%c = %z) -> (tensor<64x64xf32>)  : i32 {
    %a = tt.descriptor_load %d[%c0, %k] : !tt.tensordesc<tensor<64x32xf16>> -> tensor<64x32xf16>
    %t = tt.trans %a {order = array<i32: 1, 0>} : tensor<64x32xf16> -> tensor<32x64xf16>
    %s = tt.dot %a, %t, %c : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %s : tensor<64x64xf32>
  }
  tt.descriptor_store %out[%c0, %c0], %r : !tt.tensordesc<tensor<64x64xf32>>, tensor<64x64xf32>
  tt.return
}
"""


@pytest.mark.parametrize("nan", [False, True])
def test_descriptors_that_are_tensor_maps(nan):
    """An array is the tensor, and so is a slice; d_nan says what is outside; a TensorMap says all of it."""
    kernel = lilac.compile(SQUARE)
    (box, other) = kernel.metadata["tensordesc_meta"]
    assert box["block_size"] == [64, 32] and other["block_size"] == [64, 32]  # two boxes a block
    whole = numpy.random.default_rng(1).integers(-2, 3, (64, 96)).astype("float16")
    d, out = whole[:50, 8:80], numpy.full((64, 64), -1, dtype="float32")
    done = lilac.run(kernel, 1, d, out, 72, d_nan=nan)
    expected = numpy.zeros((64, 64), dtype="float32")
    expected[:50, :50] = d.astype("float32") @ d.astype("float32").T
    numpy.testing.assert_array_equal(out, numpy.full_like(out, numpy.nan) if nan else expected)
    assert done.findings == () and done.counters["bulk_copies"] == 5
    again = numpy.zeros_like(out)
    fill = "nan" if nan else "zero"
    lilac.run(kernel, 1, lilac.TensorMap(d, (64, 32), swizzle=64, fill=fill), again, 72)
    numpy.testing.assert_array_equal(again, out)


@pytest.mark.parametrize("array, error, message", [
    (numpy.zeros(128, "float16"), lilac.Error, "d is a descriptor of 2 dimensions; the array has 1"),
    (numpy.zeros((64, 32), "float16").T, lilac.Error, "the last dimension of a descriptor is contiguous"),
    (7, TypeError, "d is a tensor descriptor: give an array, not int"),
])
def test_arrays_that_are_no_tensor_map(array, error, message):
    with pytest.raises(error, match=message):
        lilac.run(SQUARE, 1, array, numpy.zeros((64, 64), "float32"), 32)


def test_rows_of_any_size_are_read_in_vectors():
    """Vectors of 16 bytes up to the last whole one of a row, and single elements behind it."""
    tile = """
tt.func public @copy(%d: !tt.tensordesc<tensor<64x64xf16>>, %e: !tt.tensordesc<tensor<64x64xf16>>) {
  %size = arith.constant 64 : i32
  %p = tt.get_program_id x : i32
  %x = arith.muli %p, %size : i32
  %y = arith.constant 0 : i32
  %v = tt.descriptor_load %d[%y, %x] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
  tt.descriptor_store %e[%y, %x], %v : !tt.tensordesc<tensor<64x64xf16>>, tensor<64x64xf16>
  tt.return
}
"""
    d = numpy.arange(64 * 104, dtype="float16").reshape(64, 104)[:, :99]
    e = numpy.zeros((64, 104), dtype="float16")[:, :99]
    first = lilac.run(tile, 1, d, e).counters["access_bits"]
    assert first["128"] > 0 and first["16"] == 0
    numpy.testing.assert_array_equal(e[:, :64], d[:, :64])
    assert not e[:, 64:].any()
    both = lilac.run(tile, 2, d, e).counters["access_bits"]
    assert both["128"] > first["128"] and both["16"] > 0
    numpy.testing.assert_array_equal(e, d)


# ---- tensor maps that the launcher makes --------------------------------------------------------

SUMS = """
tt.func public @sums(%x: !tt.ptr<f16>, %o: !tt.ptr<f32>, %m: i32, %k: i32, %pitch: i64,
                     %d: !tt.tensordesc<tensor<64x32xf16>>) {
  %zero = arith.constant dense<0.0> : tensor<64x16xf32>
  %ones = arith.constant dense<1.0> : tensor<32x16xf16>
  %c0 = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %sums = scf.for %i = %c0 to %k step %step iter_args(%c = %zero) -> (tensor<64x16xf32>)  : i32 {
    %v = tt.descriptor_load %d[%c0, %i] : !tt.tensordesc<tensor<64x32xf16>> -> tensor<64x32xf16>
    %s = tt.dot %v, %ones, %c : tensor<64x32xf16> * tensor<32x16xf16> -> tensor<64x16xf32>
    scf.yield %s : tensor<64x16xf32>
  }
  %flat = tt.reshape %sums : tensor<64x16xf32> -> tensor<1024xf32>
  %i = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  %p = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %q = tt.addptr %p, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  tt.store %q, %flat : tensor<1024x!tt.ptr<f32>>
  tt.return
}
"""


def say_map(monkeypatch, stride):
    """The metadata say that the launcher makes the map %d: m rows of k elements, `stride` apart, from element 8 on."""
    from lilac import simulator

    def prepare(*arguments):
        program, metadata, parameters = prepared(*arguments)
        facts = json.loads(metadata)
        facts["launch_maps"] = [{**facts["tensordesc_meta"].pop(), "parameter": 5, "base": 0, "offset": [[8]],
                                 "sizes": [[[1, 2]], [[1, 3]]], "strides": [[stride]]}]
        facts["launch_conditions"] = {"grid": [8, 1, 1], "parameters": [2, 3]}
        return program, json.dumps(facts), parameters

    prepared = simulator._core.prepare
    monkeypatch.setattr(simulator._core, "prepare", prepare)


@pytest.fixture(params=([1, 4], [2, [4, 2]]), ids=("pitch", "quotient"))
def made(monkeypatch, request):
    """The stride is the parameter `pitch`, or twice its half."""
    say_map(monkeypatch, request.param)


@pytest.mark.parametrize("quotient, message", [
    ([4, 0], "the divisor of a quotient is 1 to 2"),
    ([4, 1 << 31], "the divisor of a quotient is 1 to 2"),
    ([4], "a quotient is a list of a parameter and a divisor"),
    ([4, 2, 2], "too long"),
])
def test_maps_with_bad_quotients(monkeypatch, quotient, message):
    say_map(monkeypatch, [1, quotient])
    x, o = numpy.zeros((60, 48), "float16"), numpy.zeros((64, 16), "float32")
    with pytest.raises(ValueError, match=message):
        lilac.run(SUMS, 1, x, o, 50, 36, 48)


def test_launcher_makes_maps(made):
    x = numpy.random.default_rng(1).integers(-2, 3, (60, 48)).astype("float16")
    o = numpy.full((64, 16), -1, dtype="float32")
    done = lilac.run(lilac.compile(SUMS, launch_maps=True), 1, x, o, 50, 36, 48)
    expected = numpy.zeros((64, 16), dtype="float32")
    expected[:50] = x[:50, 8:44].astype("float32").sum(1)[:, None]
    numpy.testing.assert_array_equal(o, expected)
    assert done.findings == () and done.counters["bulk_copies"] == 2
    lilac.run(SUMS, 1, x=x[1:], o=o, m=2, k=4, pitch=48)  # a pointer into an array, and named arguments
    numpy.testing.assert_array_equal(o[:3, 0], [*x[1:3, 8:12].astype("float32").sum(1), 0])


@pytest.mark.parametrize("change, message", [
    ({"m": -1}, r"parameter 2, 'm', is -1.*\[launch-condition\]"),
    ({"k": (1 << 30) + 1}, r"parameter 3, 'k', is 1073741825"),
    ({"grid": 9}, r"the grid is 9 along x"),
    ({"m": 0}, r"tensor map 'd': dimension 1 has 0 elements.*\[tensor-map\]"),
    ({"pitch": 44}, r"the stride of dimension 1 is 88 bytes; a multiple of 16"),
    ({"pitch": -48}, r"the stride is negative"),
    ({"x": numpy.zeros((60, 48), "float16").reshape(-1)[1:]}, r"the address is 0x\w+; a multiple of 16"),
])
def test_maps_that_the_launcher_cannot_make(made, change, message):
    values = {"x": numpy.zeros((60, 48), "float16"), "o": numpy.zeros((64, 16), "float32"), "m": 50, "k": 36,
              "pitch": 48, "grid": 1, **change}
    # In memory that another array shares, an array may begin anywhere.
    whole = values["x"].base if values["x"].base is not None else None
    grid = values.pop("grid")
    with pytest.raises(lilac.SimulationError, match=message):
        lilac.run(SUMS, grid, values if whole is None else {**values, "o": whole.view("float32")})


def test_made_maps_are_no_arguments(made):
    arguments = numpy.zeros((60, 48), "float16"), numpy.zeros((64, 16), "float32"), 1, 1, 48
    with pytest.raises(TypeError, match="'d' is a tensor map that the launcher makes from the other arguments"):
        lilac.run(SUMS, 1, *arguments, d=arguments[0])
    with pytest.raises(TypeError, match="sums has 5 parameters"):
        lilac.run(SUMS, 1, *arguments, arguments[0])
