"""Texts that are read and pictures that are drawn: Triton's types, CuTe layouts, memory by name,
views."""

import itertools
import xml.etree.ElementTree as xml

import numpy
import pytest
from oracle import random_plain

from lilac import Layout, LayoutError

BLOCKED = ("#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [2, 1], "
           "order = [1, 0]}>")


def test_tensors():
    layout = Layout.from_triton(f"tensor<16x16xf32, {BLOCKED}>")
    assert layout.bases == {"register": [[0, 1], [0, 2]],
                            "lane": [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], "warp": [[8, 0]], "block": []}
    assert Layout.from_triton(BLOCKED, shape=(16, 16)) == layout
    assert Layout.from_triton(BLOCKED, shape=[32, 16]).out_dims == {"dim0": 32, "dim1": 16}
    assert Layout.from_triton(f"tensor<16x16xf32, {layout}>") == layout


def test_memory_descriptors():
    encoding = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 4, order = [1, 0]}>"
    layout = Layout.from_triton(f"!ttg.memdesc<4x4xf32, {encoding}, #ttg.shared_memory>")
    assert layout.in_dims == {"offset": 16, "block": 1}
    for row, column in itertools.product(range(4), range(4)):
        assert layout(offset=4 * row + (column ^ row)) == {"dim0": row, "dim1": column}


def test_what_is_wrong_is_said():
    with pytest.raises(LayoutError) as caught:
        Layout.from_triton("tensor<16x16xf32, #ttg.nothing<{}>>")
    assert caught.value.ids == ["layout-unknown"] and "^" in str(caught.value)
    with pytest.raises(LayoutError) as caught:
        Layout.from_triton(BLOCKED, shape=(3, 16))
    assert caught.value.ids == ["shape-not-power-of-two"]
    for bad in ("", "tensor<", "tensor<16x16xf32>", f"tensor<16x16xf32, {BLOCKED}> and more", "\0", "!",
                f"tensor<16xf32, {BLOCKED}>", "!ttg.memdesc<16xf32>", "\N{BULLET}", "(4,2):(2,1)"):
        with pytest.raises(LayoutError) as caught:
            Layout.from_triton(bad)
        assert caught.value.ids, bad
    with pytest.raises(TypeError):
        Layout.from_triton(16)
    for shape in ((1 << 70, 16), (16, -16), (16,), (0, 16), (1 << 63, 1 << 63), (2,) * 25):
        with pytest.raises(LayoutError):
            Layout.from_triton(BLOCKED, shape=shape)
    with pytest.raises(TypeError):
        Layout.from_triton(BLOCKED, shape=(16.0, 16))


def test_goldens_of_triton(goldens):
    """Every type in tests/data/goldens/layouts.jsonl has the bases that Triton gives it."""
    lines = goldens("layouts.jsonl")
    assert len(lines) > 7000
    for line in lines:
        bases = Layout.from_triton(line["type"]).bases
        assert [bases[name] for name in ("register", "lane", "warp", "block")] == \
            [line[name] for name in ("register", "lane", "warp", "block")], line["type"]


def test_goldens_of_memory_and_matrix_units(goldens):
    lines = goldens("unit.jsonl")
    assert len(lines) == 192
    for line in lines:
        assert Layout.from_triton(line["type"]).bases == line["bases"], line["type"]


@pytest.mark.parametrize("text,sizes,strides,swizzle", [
    ("8:1", (8,), (1,), None),
    ("(4,2):(2,1)", (4, 2), (2, 1), None),
    ("(8,64):(64,1)", (8, 64), (64, 1), None),
    ("Sw<3,3,3> o 0 o (8,64):(64,1)", (8, 64), (64, 1), (3, 3, 3)),
    ("Sw<2,0,3> o 0 o (4,16):(1,4)", (4, 16), (1, 4), (2, 0, 3)),
])
def test_cute(text, sizes, strides, swizzle):
    offsets, memory = Layout.from_cute(text, offsets=True), Layout.from_cute(text)
    for place in itertools.product(*map(range, sizes)):
        offset = sum(x * stride for x, stride in zip(place, strides))
        if swizzle:
            bits, base, shift = swizzle
            offset ^= (offset >> shift) & (((1 << bits) - 1) << base)
        named = {f"dim{i}": x for i, x in enumerate(place)}
        assert offsets(**named) == {"offset": offset}
        assert memory(offset=offset) == named
    assert memory.to_cute() == text
    assert Layout.from_cute(memory.to_cute()) == memory


def test_cute_refusals():
    for bad, part in (("(4,3):(2,1)", "power of two"), ("4:3", "power of two"), ("(4,4):(1,2)", "overlap"),
                      ("(4,2):(2,0)", ""), ("(4,2):2", ""), ("", ""), ("8:1 8:1", "")):
        with pytest.raises(LayoutError) as caught:
            Layout.from_cute(bad)
        assert part in str(caught.value) and caught.value.ids, bad
    with pytest.raises(LayoutError):
        Layout.from_bases({"x": [1, 3, 7]}).to_cute()


def test_memory_by_name():
    grid = numpy.arange(64).reshape(4, 16)

    def held(text):
        table = Layout.from_memory(text).table()
        return grid[table["dim0"], table["dim1"]].reshape(-1).tolist()

    assert held("row_major(4x16)") == grid.reshape(-1).tolist()
    assert held("column_major(4x16)") == grid.T.reshape(-1).tolist()
    assert held("order(4x16, [0, 1])") == grid.T.reshape(-1).tolist()
    assert held("strided(4x16, [1, 4])") == grid.T.reshape(-1).tolist()
    assert held("tiled(4x16, [1/4, 0, 1%4])") == grid.reshape(4, 4, 4).transpose(1, 0, 2).reshape(-1).tolist()
    assert held("padded(4x16, 16:+4)") == grid.reshape(-1).tolist()
    assert Layout.from_memory("row_major(4x16)") == Layout.from_cute("(4,16):(16,1)")
    rows = Layout.from_memory("row_major(4x16)", offsets=True)
    assert rows(dim0=2, dim1=3) == {"offset": 35}
    for bad in ("row_major(3x4)", "nothing(4x4)", "order(4x4, [0, 0])", "row_major(4x4", ""):
        with pytest.raises(LayoutError) as caught:
            Layout.from_memory(bad)
        assert caught.value.ids, bad


@pytest.mark.parametrize("seed", range(30))
def test_views_say_who_holds_what(seed):
    plain = random_plain(seed)
    layout = Layout.from_bases(plain.bases, plain.sizes())
    owners = {}
    for index in plain.indices():
        owners.setdefault(tuple(plain(index).values()), []).append(list(index.values()))
    cells = layout.view()
    assert cells["shape"] == list(plain.sizes().values())
    drawn = {tuple(cell["element"]): cell["owners"] for cell in cells["cells"]}
    assert len(drawn) == len(cells["cells"])
    for element in itertools.product(*(range(size) for size in plain.sizes().values())):
        assert sorted(drawn.get(element, [])) == sorted(owners.get(element, []))
    slots = layout.view("hardware")["slots"]
    assert {tuple(slot["slot"]): tuple(slot["element"]) for slot in slots} == \
        {tuple(index.values()): tuple(plain(index).values()) for index in plain.indices()}
    assert layout.view("matrix")["rows"] == layout.matrix().tolist()


def test_pictures():
    layout = Layout.from_triton(f"tensor<16x16xf32, {BLOCKED}>")
    for view in ("cells", "hardware", "matrix"):
        text = layout.text(view)
        assert max(map(len, text.splitlines())) <= 100
        assert "\033[" not in text
        figure = xml.fromstring(layout.svg(view, title="a < b"))
        assert figure.tag.endswith("svg")
    assert "\033[" in layout.text(colour=True)
    assert layout.text() == layout.text("cells") != layout.text("hardware")
    cells = [cell for cell in xml.fromstring(layout.svg()).iter() if cell.get("class") == "cell"]
    assert len(cells) == 256
    assert layout.svg(colour_by="register") != layout.svg(colour_by="lane")
    assert "t15" in layout.text(rows=range(0, 4)) and "t16" not in layout.text(rows=range(0, 4))
    bundle = layout._repr_mimebundle_()
    assert bundle["text/plain"].startswith(repr(layout)) and bundle["image/svg+xml"] == layout.svg()
    huge = Layout.identity(1 << 40, "offset", "dim0")._repr_mimebundle_()
    assert huge["text/plain"].startswith("<Layout ")
    assert Layout()._repr_mimebundle_()["text/plain"].startswith("<Layout ")
    for bad in (lambda: layout.text("nothing"), lambda: layout.text(rows=range(16, 20)),
                lambda: layout.text(rows=range(0, 8, 2)), lambda: layout.text(rows=range(3, 3)),
                lambda: layout.text(colour_by="nothing")):
        with pytest.raises(LayoutError):
            bad()
    with pytest.raises(TypeError):
        layout.text(rows=3)
