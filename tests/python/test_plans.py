"""lilac.convert, lilac.swizzle, lilac.conflicts: plans as objects, equal to what the command reports."""

import json
import pickle
import subprocess
import xml.etree.ElementTree as xml

import numpy
import pytest

import lilac
from lilac import Layout
from lilac.__main__ import command as installed

ROWS = ("tensor<64x64xf16, #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], "
        "warpsPerCTA = [4, 1], order = [1, 0]}>>")
COLUMNS = ("tensor<64x64xf16, #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], "
           "warpsPerCTA = [1, 4], order = [0, 1]}>>")
SHARED = ("!ttg.memdesc<64x64xf16, #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>, "
          "#ttg.shared_memory>")


def command(*arguments):
    """The installed command."""
    done = subprocess.run([installed(), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def small_figure(text):
    assert len(text.encode()) <= 50_000
    assert xml.fromstring(text).tag.endswith("svg")


def pictures_and_values(made):
    small_figure(made.svg())
    assert len(made._repr_svg_()) + len(made._repr_html_()) <= 50_000  # a notebook keeps both
    assert made.svg() in made._repr_html_() and str(made) and repr(made).startswith("<lilac.")
    again = type(made).from_json(made.to_json())
    assert again == made and hash(again) == hash(made) and type(again) is type(made)
    assert pickle.loads(pickle.dumps(made)) == made
    for bad in ("{", "[]", "{}", '{"kind": 1}'):
        with pytest.raises(lilac.Error):
            type(made).from_json(bad)
    with pytest.raises(AttributeError):
        made.device = "x"


def test_a_conversion():
    plan = lilac.convert(ROWS, COLUMNS)
    assert (plan.kind, plan.device, plan.element_bits, plan.shared_bytes) == ("shared", "sm_90a", 16, 8192)
    assert plan.why == "shared memory: elements leave their warps" and plan.why in plan.explanation
    assert plan.correct and plan.as_planned and plan.simulated["stores"] == plan.instructions["store"] == 16
    assert plan.wavefronts == {"store": 64, "load": 64} and plan.lower_bound["met"] and plan.cycles > 0
    assert len(plan.layouts) == len(plan.steps) and plan.layouts[-1] == plan.target
    assert plan.memory.is_memory and plan.memory.out_dims == {"dim0": 64, "dim1": 64}
    assert ".entry convert" in plan.ptx and "kernel @convert" in plan.simt
    pictures_and_values(plan)


def test_conversions_of_every_kind():
    rows, columns = Layout.from_triton(ROWS), Layout.from_triton(COLUMNS)
    assert lilac.convert(rows, columns, dtype="f16") == lilac.convert(ROWS, COLUMNS) == lilac.convert(ROWS, columns)
    none = lilac.convert(rows, rows, dtype=numpy.float16)
    assert none.kind == "none" and none.steps == () and none.memory is None
    pictures_and_values(none)
    plain = lilac.convert(ROWS, COLUMNS, through="unswizzled", check=False)
    assert plain.wavefronts["load"] == 1024 and plain.simulated is None and plain.correct is None
    pictures_and_values(plain)
    swapped = rows.permute_bits("lane", [1, 0, 2, 3, 4])
    shuffles = lilac.convert(rows, swapped, dtype=32, through="shuffles", target="sm_80")
    assert shuffles.kind == "shuffles" and shuffles.device == "sm_80" and shuffles.correct
    pictures_and_values(shuffles)
    wide = Layout.from_bases({"register": [[0, 1]], "lane": [[1 << i, 0] for i in range(6)], "warp": []})
    assert lilac.convert(wide, wide.permute_bits("lane", [5, 4, 3, 2, 1, 0]), dtype="f32").device == "gfx942"


@pytest.mark.parametrize("dtype, bits", [("f16", 16), ("bf16", 16), ("f8E5M2", 8), ("i64", 64), ("i1", 8), (128, 128),
                                         ("float32", 32), (numpy.float64, 64), (numpy.dtype("int8"), 8),
                                         (numpy.int64(16), 16)])
def test_element_types(dtype, bits):
    rows = Layout.from_triton(ROWS)
    assert lilac.convert(rows, rows, dtype=dtype).element_bits == bits


def test_the_plan_is_the_commands():
    plan, said = lilac.convert(ROWS, COLUMNS), json.loads(command("convert", "--json", ROWS, COLUMNS))
    assert list(plan.steps) == said["steps"] and plan.instructions == said["instructions"]
    assert (plan.wavefronts, plan.lower_bound, plan.cycles) == (said["wavefronts"], said["lower_bound"], said["cycles"])
    assert plan.explanation in command("convert", ROWS, COLUMNS)
    assert plan.ptx == command("convert", "--emit", "ptx", ROWS, COLUMNS)
    assert plan.simt == command("convert", "--emit", "simt", ROWS, COLUMNS)
    for vector in ((), ("--vector", "4")):
        said = json.loads(command("swizzle", *vector, "--json", ROWS, COLUMNS))
        made = lilac.swizzle(ROWS, COLUMNS, vector=int(vector[1]) if vector else None)
        assert made.memory == Layout.from_json(json.dumps(said["memory"]), {"dim0": 64, "dim1": 64})
        for name, key in (("named", "named"), ("cute", "cute"), ("formula", "offset"), ("rounds", "rounds"),
                          ("lower_bound", "lower_bound"), ("unswizzled", "unswizzled"), ("correct", "correct"),
                          ("family_bits", "family_bits"), ("shared_bytes", "shared_bytes"), ("simulated", "simulated")):
            assert getattr(made, name) == said[key], name
        assert (list(made.bits), list(made.block_bits)) == (said["bits"], said["block_bits"])
        for side in ("store", "load"):
            assert made.__getattribute__(side).__dict__ == said[side]
    for memory in (SHARED, "row_major(64x64)", "padded(64x64, 64:+8)", "(64,64):(64,1)"):
        said, made = json.loads(command("conflicts", "--json", COLUMNS, memory)), lilac.conflicts(COLUMNS, memory)
        assert {key: getattr(made, key) for key in said} == said


def test_a_swizzle():
    made = lilac.swizzle(ROWS, COLUMNS, vector=4)
    assert made.store.wavefronts == 64 and made.load.wavefronts == 128 and made.unswizzled["load"] == 1024
    assert made.correct and made.as_planned and made.simulated == {"store": 64, "load": 128}
    assert "offset = " in repr(made) and made.formula in made.explanation and "without  256 + 1024" in str(made)
    pictures_and_values(made)
    unchecked = lilac.swizzle(Layout.from_triton(ROWS), Layout.from_triton(COLUMNS), dtype="f16", check=False)
    assert unchecked.correct is None and unchecked.simulated is None
    pictures_and_values(unchecked)
    names = {lilac.swizzle(ROWS, COLUMNS, vector=vector).named for vector in (2, 4, 8, 16)}
    assert names <= {None} | {name for name in names if str(name).startswith("#ttg.")}


def test_conflicts():
    made = lilac.conflicts(COLUMNS, "row_major(64x64)")
    assert made.wavefronts == made.simulated_wavefronts > made.least and made.conflicts > 0 and made.correct
    words = [words for words in made.words.values() if len(words) == made.conflicts + 1]
    assert words and sum(len(lanes) for bank in made.words.values() for lanes in bank.values()) == \
        made.transaction_lanes
    assert "lanes of one bank wait" in made.explanation
    pictures_and_values(made)
    free = lilac.conflicts(ROWS, SHARED)
    assert free.conflicts == 0 and free.wavefronts == free.least
    pictures_and_values(free)
    lanes = Layout.from_bases({"register": [], "lane": [[1 << i, 0] for i in range(5)],
                               "warp": [[0, 1 << i] for i in range(5)]})
    assert lilac.conflicts(lanes, "row_major(32x32)", dtype="f32").conflicts == 31
    padded = lilac.conflicts(lanes, "padded(32x32, 32:+1)", dtype="f32")
    assert padded.padding == ((32, 1),) and padded.conflicts == 0
    pictures_and_values(padded)
    as_layouts = lilac.conflicts(Layout.from_triton(COLUMNS), Layout.from_memory("row_major(64x64)"), dtype="f16")
    assert as_layouts == made


@pytest.mark.parametrize("call, words", [
    (lambda: lilac.convert(ROWS, COLUMNS.replace("f16", "f32")), "element types differ"),
    (lambda: lilac.convert(ROWS, ROWS.replace("64x64", "32x32")), "shape|size"),
    (lambda: lilac.convert(ROWS, "tensor<64x64xf16, #ttg.nothing<{}>>"), "nothing"),
    (lambda: lilac.convert(ROWS, "#ttg.blocked<{}>"), "is an attribute, which has no shape: give"),
    (lambda: lilac.convert(ROWS, SHARED), "not memory"),
    (lambda: lilac.convert(ROWS, COLUMNS, through="shuffles"), "warp"),
    (lambda: lilac.convert(ROWS, COLUMNS, scratch=4, through="shared"), "bytes"),
    (lambda: lilac.convert(ROWS, COLUMNS, target="gfx942"), "lanes"),
    (lambda: lilac.convert(ROWS, COLUMNS, dtype="f32"), "32 bits"),
    (lambda: lilac.convert(ROWS, COLUMNS, dtype="nothing"), "dtype"),
    (lambda: lilac.convert(ROWS, COLUMNS, through="magic"), "through is one of"),
    (lambda: lilac.convert(ROWS, COLUMNS, scratch=-1), "scratch"),
    (lambda: lilac.convert(ROWS, COLUMNS, target="sm_1"), "no device"),
    (lambda: lilac.swizzle(ROWS, COLUMNS, vector=3), "power of two"),
    (lambda: lilac.conflicts(ROWS, COLUMNS), "a layout of memory is expected"),
    (lambda: lilac.conflicts(SHARED, SHARED), "not memory"),
    (lambda: lilac.conflicts(ROWS, "row_major(32x32)"), "6 bits here and 5 there"),
    (lambda: lilac.conflicts(ROWS, "row_major(64x60)"), "power of two"),
])
def test_refusals(call, words):
    with pytest.raises(lilac.Error, match=words) as caught:
        call()
    assert len(str(caught.value)) > 8


@pytest.mark.parametrize("call", [
    lambda: lilac.convert(None, ROWS), lambda: lilac.convert(ROWS, 3), lambda: lilac.convert(ROWS),
    lambda: lilac.convert(Layout.from_triton(ROWS), Layout.from_triton(ROWS)),
    lambda: lilac.convert(ROWS, ROWS, through=3), lambda: lilac.convert(ROWS, ROWS, scratch=1.5),
    lambda: lilac.convert(ROWS, ROWS, target=90), lambda: lilac.swizzle(ROWS, ROWS, vector="4"),
    lambda: lilac.conflicts(ROWS, None), lambda: lilac.Plan.from_json(3),
])
def test_wrong_types(call):
    with pytest.raises(TypeError):
        call()
