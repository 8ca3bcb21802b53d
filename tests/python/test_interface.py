"""What NumPy users expect of the package: signatures and keywords, stubs that are true, arrays and NumPy's
integers where lists and ints are taken, JSON that reads back, one class of exceptions, values that do not
change; and the command in the wheel."""

import ast
import collections
import inspect
import os
import pathlib
import pickle
import subprocess
import sys
import sysconfig

import numpy
import pytest

import lilac
from lilac import Layout, _core

PACKAGE = pathlib.Path(lilac.__file__).parent
DATA = PACKAGE.parent
CORPUS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "corpus")


def corpus(name):
    with open(os.path.join(CORPUS, f"{name}.ttir"), encoding="utf-8") as file:
        return file.read()


def public_callables():
    """(name, object) of every public function, class and method, those written in C too."""
    for name in lilac.__all__:
        value = getattr(lilac, name)
        if callable(value):
            yield name, value
        if inspect.isclass(value):
            for member in dir(value):
                if not member.startswith("_") and callable(getattr(value, member)):
                    if not hasattr(ValueError, member):
                        yield f"{name}.{member}", getattr(value, member)


@pytest.mark.parametrize("name, value", [pytest.param(*one, id=one[0]) for one in public_callables()])
def test_signatures(name, value):
    """Every public callable has a signature, all of its parameters can be given by name, and it is documented."""
    parameters = inspect.signature(value).parameters.values()
    own = [one for one in parameters if one.name not in ("self", "args", "kwargs")]
    assert all(one.kind is not one.POSITIONAL_ONLY for one in own), name
    assert inspect.getdoc(value), name


def test_methods_take_names():
    layout = Layout.from_triton("tensor<16x16xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], "
                                "warpsPerCTA = [2, 1], order = [1, 0]}>>")
    tile = Layout.identity(size=4, input="register", output="dim1")
    assert layout.compose(outer=layout.flatten_ins("x").rename_in("x", "dim0").sublayout(ins=["dim0"])
                          .reshape_ins({"dim0": 16, "dim1": 16})).out_dims == layout.out_dims
    for given, named in ((layout.apply(7), layout.apply(index=7)), (layout.slice(0), layout.slice(dim=0)),
                         (layout.transpose([1, 0]), layout.transpose(order=[1, 0])),
                         (layout.permute_ins([3, 2, 1, 0]), layout.permute_ins(order=[3, 2, 1, 0])),
                         (layout.rename_in("lane", "x"), layout.rename_in(new="x", old="lane")),
                         (layout.resize_in("lane", 64), layout.resize_in(name="lane", size=64)),
                         (layout.reshape([256]), layout.reshape(shape=[256])),
                         (layout.expand(0), layout.expand(axis=0)),
                         (layout.divide_left(tile), layout.divide_left(tile=tile)),
                         (layout.permute_bits("warp", [0]), layout.permute_bits(input="warp", order=[0])),
                         (layout.free_bits("lane"), layout.free_bits(input="lane")),
                         (layout.equivalent(layout), layout.equivalent(other=layout)),
                         (layout.is_zero_over(["block"], None), layout.is_zero_over(ins=["block"])),
                         (layout.flatten_outs("x"), layout.flatten_outs(name="x")),
                         (layout.invert_and_compose(layout), layout.invert_and_compose(other=layout))):
        assert given == named
    for bad in (lambda: layout.compose(), lambda: layout.compose(inner=layout), lambda: layout.slice(0, dim=0),
                lambda: layout.slice(0, 1), lambda: layout.rename_in("lane"), lambda: layout.inverse(1)):
        with pytest.raises(TypeError):
            bad()
    with pytest.raises(TypeError, match=r"slice\(\) takes one argument, 'dim'"):
        layout.slice(axis=0)


# ---- stubs --------------------------------------------------------------------------------------


def stub_parameters(function):
    """[(name, kind, default)] of a function in a stub."""
    given = function.args
    places = given.posonlyargs + given.args
    defaults = [None] * (len(places) - len(given.defaults)) + [ast.literal_eval(one) for one in given.defaults]
    kinds = ["only"] * len(given.posonlyargs) + ["place"] * len(given.args)
    return [(one.arg, kind, default) for one, kind, default in zip(places, kinds, defaults)]


def module_parameters(value):
    kinds = {inspect.Parameter.POSITIONAL_ONLY: "only", inspect.Parameter.POSITIONAL_OR_KEYWORD: "place"}
    return [(one.name, kinds.get(one.kind), None if one.default is one.empty else one.default)
            for one in inspect.signature(value).parameters.values()]


def stub():
    tree = ast.parse((PACKAGE / "_core.pyi").read_text(encoding="utf-8"))
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    values = {one.target.id for one in tree.body if isinstance(one, ast.AnnAssign)}
    classes = {one.name: one for one in tree.body if isinstance(one, ast.ClassDef)}
    assert set(classes) == {"LayoutBase", "MappedLauncher"}
    methods = {one.name: one for one in classes["LayoutBase"].body if isinstance(one, ast.FunctionDef)}
    return functions, values, methods


def test_the_stub_has_what_the_module_has():
    functions, values, methods = stub()
    assert (PACKAGE / "py.typed").exists()
    assert {*functions, *values, "LayoutBase", "MappedLauncher"} == {name for name in dir(_core) if not name.startswith("__")}
    own = {name for name in vars(_core.LayoutBase) if not name.startswith("__")}
    assert {name for name in methods if not name.startswith("__")} == own


def test_the_stub_has_the_modules_signatures():
    functions, _, methods = stub()
    for name, function in functions.items():
        assert stub_parameters(function) == module_parameters(getattr(_core, name)), name
    compared = 0
    for name, method in methods.items():
        properties = [one.id for one in method.decorator_list if isinstance(one, ast.Name)]
        if name.startswith("_") or "property" in properties:
            continue
        real = module_parameters(getattr(_core.LayoutBase, name))
        assert stub_parameters(method)[1:] == real[1:], name
        compared += 1
    assert compared > 30


# ---- arrays -------------------------------------------------------------------------------------


def test_arrays_where_lists_are_taken():
    array, integer = numpy.array, numpy.int64
    bases = {"register": [[0, 1], [0, 2]], "lane": [[1, 0], [2, 0]]}
    layout = Layout.from_bases(bases)
    assert Layout.from_bases({name: array(rows) for name, rows in bases.items()}) == layout
    assert Layout.from_bases({name: [array(row) for row in rows] for name, rows in bases.items()}) == layout
    assert Layout.from_bases({"a": array([1, 2])}) == Layout.from_bases({"a": [1, 2]})
    assert Layout.from_bases({"a": array([[1], [2]])}) == Layout.from_bases({"a": [[1], [2]]})
    assert Layout.from_bases(bases, {"dim0": integer(4), "dim1": numpy.uint8(4)}) == layout
    assert Layout.from_bases(bases, array(["dim0", "dim1"])) == layout
    assert Layout.from_bases({"a": array([], dtype=int)}, {"x": 2}) == Layout.from_bases({"a": []}, {"x": 2})
    assert Layout.from_masks({"x": array([1, 3])}, {"a": integer(4)}) == Layout.from_masks({"x": [1, 3]}, {"a": 4})
    assert Layout.standard(array([4, 8]), array([0, 1])) == Layout.standard([4, 8], [0, 1])
    assert Layout.identity(integer(4), "a", "b") == Layout.identity(4, "a", "b")
    text = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>"
    assert Layout.from_triton(text, array([256])) == Layout.from_triton(text, [256])
    order = array([1, 0])
    assert layout.transpose(order) == layout.transpose([1, 0])
    assert layout.permute_ins(order) == layout.permute_ins([1, 0])
    assert layout.permute_outs(array(["dim1", "dim0"])) == layout.permute_outs(["dim1", "dim0"])
    assert layout.permute_bits("lane", order) == layout.permute_bits("lane", [1, 0])
    assert layout.reshape(array([16])) == layout.reshape([16])
    assert layout.fit(array([8, 4]), array([0, 1])) == layout.fit([8, 4], [0, 1])
    assert layout.slice(integer(0)) == layout.slice(0) and layout.expand(integer(-1)) == layout.expand(-1)
    assert layout.resize_in("lane", integer(8)) == layout.resize_in("lane", 8)
    assert layout.consecutive(array([0, 1])) == layout.consecutive([0, 1])
    assert layout.reshape_outs({"x": integer(16)}) == layout.reshape_outs(collections.OrderedDict(x=16))
    assert layout.reshape_ins(collections.ChainMap({"x": 16})) == layout.reshape_ins({"x": 16})
    assert layout.divide(Layout.identity(2, "lane", "dim0"), {"dim0": integer(1)}).in_dims["lane"] == 2
    assert layout(lane=integer(3)) == layout.apply(collections.ChainMap({"lane": 3})) == layout(lane=3)
    assert layout.sublayout(array(["lane"])) == layout.sublayout(["lane"])
    kernel = lilac.compile(corpus("softmax_float16_4096"), num_warps=integer(8))
    assert kernel.num_warps == 8


# ---- JSON ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [
    Layout(), Layout.zeros(4, "lane", "dim0", 8), Layout.identity(4, "a", "b"), Layout.identity(1, "a", "b"),
    Layout.identity(1 << 64, "offset", "dim0"), Layout.from_bases({}, {"x": 4, "y": 1}),
    Layout.from_bases({"bases": [[1]], "outs": [[0]]}), Layout.from_bases({"x": []}, {"bases": 2}),
    Layout.from_bases({"register": [[0, 1]], "lane": [[1, 0]]}, {"dim1": 2, "dim0": 8}),
    Layout.from_triton("tensor<16x16xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], "
                       "warpsPerCTA = [2, 1], order = [1, 0]}>>"),
], ids=str)
def test_layouts_read_back(layout):
    assert Layout.from_json(layout.to_json()) == layout


def test_what_is_no_layout_in_json():
    for bad in ("{", "[]", "3", '{"lane": 1}', '{"lane": [["x"]]}', '{"lane": [[1.5]]}', '{"lane": [null]}',
                '{"bases": {"x": [[1]]}, "outs": {"y": 3}}', '{"bases": {"x": 1}, "outs": {"y": 2}}'):
        with pytest.raises(lilac.LayoutError):
            Layout.from_json(bad)
    for bad in (None, 3, {}):
        with pytest.raises(TypeError):
            Layout.from_json(bad)


def test_kernels_and_diagnostics_read_back():
    kernel = lilac.compile(corpus("softmax_float16_4096"), tile=True)
    assert lilac.Kernel.from_json(kernel.to_json()) == kernel
    with pytest.raises(lilac.CompilationError) as caught:
        lilac.compile(corpus("matmul_f16"), target="sm_80", num_ctas=2)
    for one in caught.value.diagnostics:
        assert lilac.Diagnostic.from_json(one.to_json()) == one
    for kind in (lilac.Kernel, lilac.Diagnostic, lilac.Run, lilac.Plan, lilac.Swizzle, lilac.Conflicts):
        for bad in ("{", "[]", "3", '{"x": 1}'):
            with pytest.raises(lilac.Error):
                kind.from_json(bad)
        with pytest.raises(TypeError):
            kind.from_json(None)


# ---- exceptions ---------------------------------------------------------------------------------


def test_one_class_of_exceptions():
    text = corpus("softmax_float16_4096")
    calls = [lambda: Layout.from_triton("nonsense"), lambda: Layout.identity(3, "a", "b"),
             lambda: Layout.from_json("{"), lambda: lilac.compile("nonsense"), lambda: lilac.compile(text, num_warps=0),
             lambda: lilac.compile(text, target="sm_1"), lambda: lilac.compile(text, target="sm_80", num_ctas=2),
             lambda: lilac.run("module {}", 1), lambda: lilac.convert("x", "y"), lambda: Layout()(5),
             lambda: Layout().text("nothing")]
    for call in calls:
        with pytest.raises(lilac.Error) as caught:
            call()
        error = caught.value
        assert isinstance(error, ValueError) and isinstance(error.diagnostics, tuple) and str(error)
        assert error.ids == [one.id for one in error.diagnostics]
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.diagnostics) == (type(error), str(error), error.diagnostics)
    for kind in (lilac.LayoutError, lilac.CompilationError, lilac.SimulationError):
        assert issubclass(kind, lilac.Error)


def test_errors_of_layouts_have_diagnostics():
    with pytest.raises(lilac.LayoutError) as caught:
        Layout.from_triton("tensor<16x16xf32, #ttg.nothing<{}>>")
    first = caught.value.diagnostics[0]
    assert (first.id, first.line, first.column) == ("layout-unknown", 1, 19)
    assert caught.value.text.startswith("<text>:1:19: error: ")


def test_what_to_give_is_said():
    with pytest.raises(TypeError, match="the text of a type, such as 'tensor<.*, not None"):
        Layout.from_triton(None)
    with pytest.raises(lilac.LayoutError, match=r"has no shape: give shape=\(16, 16\), or a type") as caught:
        Layout.from_triton("#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>")
    assert caught.value.ids == ["shape-missing"]
    for call, words in ((lambda: Layout.from_cute(None), "CuTe"), (lambda: Layout.from_memory(3), "row_major"),
                        (lambda: lilac.compile(None), "a module is its text"),
                        (lambda: lilac.compile("x", num_warps="4"), "num_warps is an integer, not '4'"),
                        (lambda: lilac.compile("x", num_warps=4.0), "num_warps is an integer"),
                        (lambda: lilac.compile("x", target=90), "target is a device's name or None, not 90")):
        with pytest.raises(TypeError, match=words):
            call()


# ---- kernels are values -------------------------------------------------------------------------


def test_a_kernel_is_a_value():
    text = corpus("softmax_float16_4096")
    one, other = lilac.compile(text, num_warps=8), lilac.compile(text, num_warps=8)
    assert one == other and hash(one) == hash(other) and len({one, other}) == 1
    assert one != lilac.compile(text, num_warps=4) and one != lilac.compile(text, num_warps=8, tile=True)
    assert one != one.ptx and pickle.loads(pickle.dumps(one)) == one
    for name in ("ptx", "tile", "shared", "name", "anything", "_ptx"):
        with pytest.raises(AttributeError):
            setattr(one, name, 1)
    with pytest.raises(AttributeError):
        del one._ptx
    one.metadata["name"] = "x"
    one.metadata["parameters"].clear()
    assert one == other and one.metadata["parameters"]


def test_the_default_device():
    assert inspect.signature(lilac.compile).parameters["target"].default is None
    text = corpus("softmax_float16_4096")
    assert lilac.compile(text).target == "sm_90a"
    assert "None: what the module specifies, or else sm_90a" in " ".join(inspect.getdoc(lilac.compile).split())
    head = 'module attributes {"ttg.num-warps" = 2 : i32, ttg.target = "cuda:80"} {\n'
    kernel = lilac.compile(head + "tt.func public @k() { tt.return }\n}")
    assert (kernel.target, kernel.num_warps) == ("sm_80", 2)


# ---- pictures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(16, 16), (64, 64), (256, 256), (8, 64, 64), (4096,), (1 << 20,)])
def test_pictures_for_notebooks_are_small(shape):
    rank = len(shape)
    blocked = (f"#ttg.blocked<{{sizePerThread = {[1] * rank}, threadsPerWarp = {[1] * (rank - 1) + [32]}, "
               f"warpsPerCTA = {[4] + [1] * (rank - 1)}, order = {list(range(rank))[::-1]}}}>")
    for layout in (Layout.from_triton(blocked, shape), Layout.standard(shape)):
        bundle = layout._repr_mimebundle_()
        assert len(bundle["image/svg+xml"].encode()) <= 50_000
        assert bundle["text/plain"].startswith(repr(layout))


def test_pictures_of_dense_matrices_are_small():
    dense = Layout.from_masks({"x": [(1 << 60) - 1 << (i % 4) & (1 << 60) - 1 for i in range(60)]}, {"a": 1 << 60})
    bundle = dense._repr_mimebundle_()
    assert len(bundle.get("image/svg+xml", "").encode()) <= 50_000 and bundle["text/plain"]


# ---- the command --------------------------------------------------------------------------------


def test_the_command_is_installed():
    path = os.path.join(sysconfig.get_path("scripts"), "lilac")
    if not os.path.exists(path):
        pytest.skip(f"the package is not installed here: there is no {path}")
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    assert lilac.__version__ in done.stdout
    with open(path, "rb") as file:
        assert file.read(4) == b"\x7fELF" or sys.platform != "linux"
    done = subprocess.run([sys.executable, "-m", "lilac", "convert"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "usage" in done.stderr
