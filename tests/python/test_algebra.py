"""The algebra against brute force: every index of random small layouts."""

import random

import pytest
from oracle import Plain, random_bijection, random_plain

from lilac import Layout, LayoutError

SEEDS = range(40)


def made(plain):
    return Layout.from_bases(plain.bases, plain.sizes())


@pytest.mark.parametrize("seed", SEEDS)
def test_apply_is_the_sum_of_bases(seed):
    plain = random_plain(seed)
    layout = made(plain)
    assert layout.bases == plain.bases
    assert layout.out_dims == plain.sizes()
    for index in plain.indices():
        place = plain(index)
        assert layout.apply(index) == place
        assert layout(**index) == place
        assert layout(index) == place
        assert layout(plain.flat_in(index)) == plain.flat_out(place)


@pytest.mark.parametrize("seed", SEEDS)
def test_rank_and_kinds(seed):
    plain = random_plain(seed)
    layout = made(plain)
    images = [plain.flat_out(plain(index)) for index in plain.indices()]
    reached = len(set(images))
    size = 1
    for out_size in plain.sizes().values():
        size *= out_size
    assert 1 << layout.rank == reached
    assert layout.is_injective == (reached == len(images))
    assert layout.is_surjective == (reached == size)
    assert layout.is_bijective == (reached == len(images) == size)


@pytest.mark.parametrize("seed", SEEDS)
def test_free_bits_hold_each_element_once(seed):
    plain = random_plain(seed)
    layout = made(plain)
    free = {name: layout.free_bits(name) for name in plain.bases}
    kept = [plain.flat_out(plain(index)) for index in plain.indices()
            if all(index[name] & free[name] == 0 for name in free)]
    assert sorted(kept) == sorted(set(plain.flat_out(plain(index)) for index in plain.indices()))


@pytest.mark.parametrize("seed", SEEDS)
def test_composition(seed):
    inner = random_plain(seed, outs=("a", "b"))
    outer = random_plain(seed + 1000, ins=("a", "b"), outs=("x", "y"), bits=3)
    outer.bases = {name: (rows + [[0] * len(outer.outs)] * 3)[:3] for name, rows in outer.bases.items()}
    layout = made(outer) @ made(inner)
    assert layout == made(inner).compose(made(outer))
    for index in inner.indices():
        assert layout(index) == outer(inner(index))


@pytest.mark.parametrize("seed", SEEDS)
def test_product(seed):
    a, b = random_plain(seed), random_plain(seed + 500, ins=("warp", "block"), outs=("dim1", "dim2"))
    layout = made(a) * made(b)
    assert list(layout.in_dims) == ["register", "lane", "warp", "block"]
    assert list(layout.out_dims) == ["dim0", "dim1", "dim2"]
    for x in a.indices():
        for y in list(b.indices())[:16]:
            joined = dict(x, block=y["block"])
            joined["warp"] = x["warp"] | y["warp"] << len(a.bases["warp"])
            low, high = a(x), b(y)
            assert layout(joined) == {"dim0": low["dim0"], "dim2": high["dim2"],
                                      "dim1": low["dim1"] | high["dim1"] << a.outs["dim1"]}


@pytest.mark.parametrize("seed", SEEDS)
def test_division_undoes_the_product(seed):
    tile = random_bijection(seed, {"register": 2, "lane": 1}, {"dim0": 1, "dim1": 2})
    rest = random_bijection(seed + 1, {"register": 1, "lane": 2}, {"dim0": 2, "dim1": 1})
    tile, rest = made(tile), made(rest)
    assert (tile * rest) / tile == rest
    assert (tile * rest).divide_left(tile) == rest
    assert (tile * rest).divide_right(rest) == tile
    assert tile * ((tile * rest) / tile) == tile * rest


def test_division_where_the_bits_stand():
    layout = Layout.from_bases({"register": [[4], [1], [2]]}, {"dim0": 8})
    tile = Layout.identity(4, "register", "dim0")
    with pytest.raises(LayoutError):
        layout / tile
    assert layout.divide(tile).bases == {"register": [[1]]}
    order = layout.division_order(tile)
    assert order == (1, 2, 0)
    assert layout.permute_bits("register", order) / tile == layout.divide(tile)
    high = Layout.identity(2, "register", "dim0")
    assert layout.divide(high, at={"dim0": 0b100}).bases == {"register": [[1], [2]]}


@pytest.mark.parametrize("seed", SEEDS)
def test_inverses(seed):
    layout = made(random_bijection(seed, {"register": 2, "lane": 3}, {"dim0": 4, "dim1": 1}))
    inverse = ~layout
    assert inverse == layout.inverse() == layout.pseudoinverse()
    assert ~inverse == layout
    for index in range(32):
        assert inverse(layout(index)) == index
        assert (inverse @ layout)(index) == index


@pytest.mark.parametrize("seed", SEEDS)
def test_pseudoinverse_is_a_right_inverse(seed):
    layout = made(random_bijection(seed, {"register": 2, "lane": 3}, {"dim0": 4, "dim1": 1}))
    copies = layout * Layout.zeros(4, "lane", "dim0")
    right = copies.pseudoinverse()
    identity = copies @ right
    assert all(identity(place) == place for place in range(32))
    assert all(right(place) & copies.free_mask == 0 for place in range(32))


@pytest.mark.parametrize("seed", SEEDS)
def test_invert_and_compose_finds_each_element(seed):
    rng = random.Random(seed)
    # Other names than b's, so that no input stays where it is for agreeing with b's.
    a = made(Plain({"x": [[rng.randrange(8)], [rng.randrange(8)]],
                    "y": [[rng.randrange(8)], [rng.randrange(8)]]}, {"dim0": 3}))
    b = made(random_bijection(seed, {"register": 1, "lane": 2}, {"dim0": 3}))
    b = b * Layout.zeros(2, "register", "dim0")
    move = a.invert_and_compose(b)
    assert b @ move == a
    for index in range(16):
        smallest = min(i for i in range(16) if b(i) == a(index))
        assert b(move(index)) == a(index)
        assert move(index) == smallest


def test_what_agrees_stays_where_it_is():
    a = Layout.from_bases({"register": [[1], [0]], "lane": [[2], [4]]}, {"dim0": 8})
    b = Layout.from_bases({"register": [[1], [0]], "lane": [[4], [2]]}, {"dim0": 8})
    move = a.invert_and_compose(b)
    assert move.bases["register"] == [[1, 0], [2, 0]]
    assert move.bases["lane"] == [[0, 2], [0, 1]]


def test_masks_are_rows():
    # bit 0 is the parity of index & 0b101, bit 1 that of index & 0b110
    layout = Layout.from_masks({"bank": [0b101, 0b110]}, {"offset": 8})
    for index in range(8):
        assert layout(index) == bin(index & 0b101).count("1") % 2 | bin(index & 0b110).count("1") % 2 << 1
    assert layout.masks == (0b101, 0b110)
    assert layout.matrix().tolist() == [[1, 0, 1], [0, 1, 1]]


def test_constructors():
    assert [Layout.identity(8, "a", "b")(x) for x in range(8)] == list(range(8))
    assert [Layout.strided(4, 8, "a", "b")(x) for x in range(4)] == [0, 8, 16, 24]
    assert Layout.strided(4, 8, "a", "b").out_dims == {"b": 32}
    zeros = Layout.zeros(4, "a", "b", 8)
    assert [zeros(x) for x in range(4)] == [0] * 4 and zeros.out_dims == {"b": 8}
    rows = Layout.standard((4, 8))
    assert [rows(offset=i) for i in range(32)] == [{"dim0": i // 8, "dim1": i % 8} for i in range(32)]
    columns = Layout.standard((4, 8), order=[0, 1])
    assert [columns(offset=i) for i in range(32)] == [{"dim0": i % 4, "dim1": i // 4} for i in range(32)]
    assert Layout().in_dims == {} and Layout() * rows == rows
    assert Layout.from_bases({"a": [1, 4]}).out_dims == {"dim0": 8}
    assert Layout.from_bases({"a": [[1, 0], [0, 3]]}, ["x", "y"]).out_dims == {"x": 2, "y": 4}


def test_shapes_as_numpy_does_them():
    import numpy

    layout = Layout.from_bases({"register": [[0, 1], [1, 2]], "lane": [[2, 0], [1, 4], [3, 3]]})
    tensor = numpy.arange(32).reshape(4, 8)

    def held(layout, tensor):
        places = layout.table()
        return tensor[tuple(places[f"dim{i}"] for i in range(tensor.ndim))]

    before = held(layout, tensor)
    assert (held(layout.transpose([1, 0]), tensor.T) == before).all()
    assert (held(layout.reshape([2, 2, 8]), tensor.reshape(2, 2, 8)) == before).all()
    assert (held(layout.expand(1), tensor.reshape(4, 1, 8)) == before).all()
    assert (held(layout.expand(-1), tensor.reshape(4, 8, 1)) == before).all()


def test_dimensions():
    layout = Layout.from_bases({"register": [[1, 0]], "lane": [[0, 1], [0, 2]]})
    assert layout.sublayout(["lane"], ["dim1"]).bases == {"lane": [[1], [2]]}
    assert layout.slice(0).bases == {"register": [], "lane": [[1], [2]]}
    assert layout.slice("dim0") == layout.slice(-2) == layout.slice(0)
    assert list(layout.permute_ins(["lane", "register"]).in_dims) == ["lane", "register"]
    assert list(layout.permute_outs([1, 0]).out_dims) == ["dim1", "dim0"]
    assert layout.permute_outs([1, 0]) != layout
    assert layout.permute_outs([1, 0]).equivalent(layout)
    assert layout.rename_in("lane", "thread").in_dims == {"register": 2, "thread": 4}
    assert layout.rename_out("dim0", "row").out_dims == {"row": 2, "dim1": 4}
    assert layout.flatten_ins("index").in_dims == {"index": 8}
    assert layout.flatten_outs("place").bases == {"register": [[1]], "lane": [[2], [4]]}
    assert layout.reshape_ins({"a": 4, "b": 2}).bases == {"a": [[1, 0], [0, 1]], "b": [[0, 2]]}
    assert layout.reshape_outs({"a": 4, "b": 2}).bases == {"register": [[1, 0]], "lane": [[2, 0], [0, 1]]}
    assert layout.resize_in("lane", 2).bases["lane"] == [[0, 1]]
    assert layout.resize_in("lane", 8).bases["lane"] == [[0, 1], [0, 2], [0, 0]]
    assert layout.resize_out("dim1", 2).bases["lane"] == [[0, 1], [0, 0]]
    assert layout.fit((2, 8)).bases["register"] == [[1, 0], [0, 4]]
    assert layout.fit((1, 4)).bases["register"] == [[0, 0]]
    assert layout.concat_ins(Layout.from_bases({"warp": [[1, 1]]}, layout.out_dims)).bases["warp"] == [[1, 1]]
    assert list(layout.concat_outs(layout.rename_out("dim0", "x").rename_out("dim1", "y")).out_dims) == \
        ["dim0", "dim1", "x", "y"]
    square = Layout.identity(4, "warp", "warp") * Layout.identity(2, "lane", "register")
    assert square.quotient(["warp"]) == Layout.identity(2, "lane", "register")
    assert square.is_trivial_over(["warp"]) and square.is_identity_over(["warp"])
    assert square.is_zero_over(["lane"], ["warp"]) and not square.is_zero_over(None, None)
    assert layout.resize_in("lane", 1).drop_empty().in_dims == {"register": 2}
    assert layout.resize_in("lane", 8).drop_free("lane") == layout
    assert layout.consecutive() == 1
    assert layout.consecutive([0, 1]) == 2
    assert layout.consecutive(input="lane") == layout.consecutive([1, 0], "lane") == 4
    assert layout.additive_bits("register") == 1
    assert layout.additive_bits("lane", touched=2) == 0b10


def test_predicates():
    assert Layout.from_bases({"register": [[1]], "lane": [[0], [2]]}).is_distributed
    assert not Layout.from_bases({"register": [[1]], "lane": [[3]]}).is_distributed
    assert Layout.from_bases({"offset": [[1], [3]]}).is_memory
    assert not Layout.from_bases({"offset": [[1], [2], [0]]}).is_memory
