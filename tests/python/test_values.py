"""Layouts as Python values: equality, hashing, pickling, texts, arrays, exceptions."""

import copy
import doctest
import gc
import json
import os
import pickle
import sys

import numpy
import pytest
from oracle import random_plain

import lilac
from lilac import Layout, LayoutError

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

def some():
    return Layout.from_bases({"register": [[0, 1], [0, 2]], "lane": [[1, 0], [2, 0]], "warp": [],
                              "block": []}, {"dim0": 4, "dim1": 4})


def test_equal_values_are_equal_keys():
    assert some() == some() and hash(some()) == hash(some())
    assert some() != some().transpose([1, 0])
    assert some() != "a text" and (some() == 1) is False
    assert {some(): 1}[some()] == 1
    for seed in range(20):
        plain = random_plain(seed)
        layout = Layout.from_bases(plain.bases, plain.sizes())
        assert pickle.loads(pickle.dumps(layout)) == layout
        assert copy.deepcopy(layout) == layout


def test_a_layout_does_not_change():
    with pytest.raises(AttributeError):
        some().rank = 3
    with pytest.raises(AttributeError):
        some().anything = 3
    layout = some()
    layout.in_dims["register"] = 1
    assert layout == some()


def test_texts():
    text = "#ttg.linear<{register = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0]], warp = [], block = []}>"
    assert str(some()) == text
    assert repr(some()) == f"<Layout {text} dim0=4 dim1=4>"
    assert str(Layout.standard((2, 2))) == "#ttg.shared_linear<{offset = [[0, 1], [1, 0]]}>"
    assert json.loads(some().to_json()) == some().bases
    assert Layout.from_json(some().to_json()) == some()
    wide = Layout.zeros(4, "lane", "dim0", 8)
    assert Layout.from_json(wide.to_json(), wide.out_dims) == wide
    for bad in ("[]", '{"lane": 1}', '{"lane": [[1], [1, 2]]}', '{"lane": [["x"]]}', '{"lane": [[-1]]}', "{"):
        with pytest.raises((ValueError, TypeError)):
            Layout.from_json(bad)


@pytest.mark.parametrize("seed", range(20))
def test_arrays(seed):
    plain = random_plain(seed)
    layout = Layout.from_bases(plain.bases, plain.sizes())
    table = layout.table()
    sizes = tuple(layout.in_dims.values())
    for name, array in table.items():
        assert array.shape == sizes and array.dtype == numpy.int32
    for index in plain.indices():
        at = tuple(index.values())
        assert {name: array[at] for name, array in table.items()} == plain(index)
    grid = numpy.ogrid[tuple(slice(size) for size in sizes)]
    applied = layout.apply(dict(zip(layout.in_dims, grid)))
    for name, array in applied.items():
        assert (array == table[name]).all()
    flat = layout.apply(numpy.arange(1 << layout.in_bits))
    assert flat.dtype == numpy.uint64
    assert flat.tolist() == [layout(i) for i in range(1 << layout.in_bits)]
    strided = numpy.arange(2 << layout.in_bits, dtype=numpy.int16)[::2] >> 1
    assert (layout.apply(strided) == flat).all()
    assert layout.matrix().shape == (layout.out_bits, layout.in_bits)
    assert [sum(int(b) << i for i, b in enumerate(column)) for column in layout.matrix().T] == \
        list(layout.columns)


def test_arrays_of_other_shapes():
    layout = some()
    assert layout.apply(numpy.zeros((2, 0), dtype=int)).shape == (2, 0)
    assert layout.apply(numpy.uint8(5)) == layout.apply(5)
    assert layout.apply([[1, 2], [3, 4]]).shape == (2, 2)
    assert layout.apply({"lane": numpy.arange(4), "register": 1})["dim1"].tolist() == [1] * 4
    wide = Layout.identity(1 << 40, "offset", "dim0")
    assert wide.apply({"offset": numpy.array([1 << 39])})["dim0"].tolist() == [1 << 39]
    far = Layout.strided(4, 1 << 40, "offset", "dim0").table()["dim0"]
    assert far.tolist() == [0, 1 << 40, 2 << 40, 3 << 40]
    whole = Layout.identity(1 << 64, "offset", "dim0")
    assert whole.in_dims == {"offset": 1 << 64}
    assert whole(2**64 - 1) == 2**64 - 1
    assert whole.apply(numpy.array([2**64 - 1], dtype=numpy.uint64)).tolist() == [2**64 - 1]


@pytest.mark.parametrize("call", [
    lambda layout: layout(16),
    lambda layout: layout(-1),
    lambda layout: layout(1 << 70),
    lambda layout: layout(register=4),
    lambda layout: layout(register=-1),
    lambda layout: layout(nothing=0),
    lambda layout: layout.apply({"lane": 1 << 70}),
    lambda layout: layout.apply(numpy.array([16])),
    lambda layout: layout.apply(numpy.array([-1])),
    lambda layout: layout.apply({"lane": numpy.array([4])}),
    lambda layout: layout.apply({"none": numpy.array([0])}),
    lambda layout: layout.apply({"lane": numpy.array([-1])}),
    lambda layout: layout * (Layout.identity(1 << 62, "register", "dim0")),
    lambda layout: layout @ layout,
    lambda layout: ~layout.slice(0),
    lambda layout: layout / Layout.identity(2, "block", "dim0"),
    lambda layout: layout.transpose([0]),
    lambda layout: layout.transpose([0, 0]),
    lambda layout: layout.transpose([0, 2]),
    lambda layout: layout.permute_ins(["register"]),
    lambda layout: layout.slice(2),
    lambda layout: layout.slice(-3),
    lambda layout: layout.slice(1 << 70),
    lambda layout: layout.slice("dim2"),
    lambda layout: layout.expand(3),
    lambda layout: layout.expand("dim0"),
    lambda layout: layout.reshape([16, 2]),
    lambda layout: layout.reshape([3]),
    lambda layout: layout.reshape([1] * 25),
    lambda layout: layout.free_bits("nothing"),
    lambda layout: layout.drop_free("nothing"),
    lambda layout: layout.sublayout(["nothing"]),
    lambda layout: layout.sublayout(["lane"] * 25),
    lambda layout: layout.rename_in("lane", "warp"),
    lambda layout: layout.rename_in("lane", ""),
    lambda layout: layout.rename_in("lane", "fifteen letters"),
    lambda layout: layout.rename_in("lane", "nu\0l"),
    lambda layout: layout.flatten_ins(""),
    lambda layout: layout.flatten_outs("a name that is too long"),
    lambda layout: layout.resize_in("lane", 0),
    lambda layout: layout.resize_in("lane", -4),
    lambda layout: layout.resize_in("lane", 1 << 300),
    lambda layout: layout.resize_in("nothing", 4),
    lambda layout: layout.quotient(["dim0"]),
    lambda layout: layout.fit([4]),
    lambda layout: layout.fit([4, 3]),
    lambda layout: layout.fit([4, 8], input="nothing"),
    lambda layout: layout.permute_bits("lane", [0]),
    lambda layout: layout.permute_bits("lane", [0, 0]),
    lambda layout: layout.permute_bits("lane", [0, 1 << 40]),
    lambda layout: layout.divide(Layout.identity(2, "lane", "dim0"), {"dim0": 3}),
    lambda layout: layout.divide(Layout.identity(2, "lane", "dim0"), {"dim9": 1}),
    lambda layout: layout.concat_ins(layout),
    lambda layout: layout.concat_outs(layout),
    lambda layout: layout.invert_and_compose(layout.slice(0)),
    lambda _: Layout.identity(3, "a", "b"),
    lambda _: Layout.identity(1 << 65, "a", "b"),
    lambda _: Layout.strided(4, 3, "a", "b"),
    lambda _: Layout.strided(4, 0, "a", "b"),
    lambda _: Layout.standard([4, 4], [0, 0]),
    lambda _: Layout.standard([4, 4], [0]),
    lambda _: Layout.standard([4, 4], [0, 1 << 40]),
    lambda _: Layout.from_bases({"a": [[1], [1, 2]]}),
    lambda _: Layout.from_bases({"a": [[2]]}, {"x": 2}),
    lambda _: Layout.from_bases({"a": [[-1]]}),
    lambda _: Layout.from_bases({"a": [[1, 1]]}, ["x", "x"]),
    lambda _: Layout.from_bases([("a", [[1]]), ("a", [[2]])]),
    lambda _: Layout.from_bases({"a": [[1]] * 65}),
    lambda _: Layout.from_bases({f"a{i}": [] for i in range(25)}, {}),
    lambda _: Layout.from_bases({}, {"x": 3}),
    lambda _: Layout.from_masks({"x": [4]}, {"a": 4}),
    lambda _: Layout.identity(1 << 40, "a", "b").table(),
])
def test_refusals_have_reasons(call):
    with pytest.raises(LayoutError) as caught:
        call(some())
    assert len(str(caught.value)) > 8
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("call", [
    lambda layout: layout * 3,
    lambda layout: layout @ "x",
    lambda layout: layout.compose(3),
    lambda layout: layout.equivalent(None),
    lambda layout: layout(1, 2),
    lambda layout: layout("x"),
    lambda layout: layout(1.5),
    lambda layout: layout.apply(numpy.array([1.5])),
    lambda layout: layout.apply({"lane": numpy.array([0.5])}),
    lambda layout: layout.apply({"lane": "x"}),
    lambda layout: layout.sublayout("lane"),
    lambda layout: layout.sublayout(3),
    lambda layout: layout.slice(None),
    lambda layout: layout.reshape(3),
    lambda layout: layout.rename_in("lane", 3),
    lambda layout: layout.reshape_ins([("a", 4)]),
    lambda layout: layout.resize_in("lane", 2.0),
    lambda layout: layout.quotient(None),
    lambda _: Layout(3),
    lambda _: Layout.identity(4.0, "a", "b"),
    lambda _: Layout.from_bases({"a": [["x"]]}),
    lambda _: Layout.from_bases({"a": [[1]]}, "x"),
])
def test_wrong_types(call):
    with pytest.raises(TypeError):
        call(some())


def test_nothing_is_kept():
    """References: many operations leave the counts of what they touched as they were."""
    layout, name, one = some(), "register", 10**30
    other = layout.transpose([1, 0])

    def everything():
        layout.apply({name: 1}), layout(3), layout.bases, layout.columns, layout.masks
        layout * other, layout == other, hash(layout), str(layout), layout.to_json()
        layout.invert_and_compose(other), layout.sublayout([name]), layout.rename_in("lane", "x")
        layout.table(), layout.apply(numpy.arange(4)), Layout.from_triton(f"tensor<4x4xf32, {layout}>")
        for bad in (lambda: layout(one), lambda: ~layout.slice(0), lambda: layout.slice(one),
                    lambda: layout.apply({name: one}), lambda: Layout.from_triton("x")):
            with pytest.raises(LayoutError):
                bad()

    def counts():
        gc.collect()  # tracebacks are cycles
        return [sys.getrefcount(x) for x in (layout, other, name, one, Layout)]

    everything()
    before = counts()
    for _ in range(50):
        everything()
    after = counts()
    assert all(abs(x - y) < 5 for x, y in zip(before, after)), (before, after)


def test_subclasses_keep_their_class():
    class Mine(Layout):
        pass

    mine = Mine.identity(4, "a", "b")
    assert type(mine) is Mine and type(mine * some()) is Mine and type(~mine) is Mine
    assert mine == Layout.identity(4, "a", "b")
    assert pickle.loads(pickle.dumps(some())).__class__ is Layout


def test_the_package():
    assert lilac.__version__.count(".") == 2
    for name in dir(Layout):
        if not name.startswith("_"):
            assert getattr(Layout, name).__doc__, name


def test_examples_of_the_docstrings_and_the_readme():
    readme = os.path.join(ROOT, "python", "README.md")
    for failed, tried in (doctest.testmod(lilac), doctest.testmod(lilac.layout),
                          doctest.testfile(readme, module_relative=False)):
        assert failed == 0 and tried > 0
