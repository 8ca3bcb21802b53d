"""`python -m lilac.bench --compile-only` with Triton itself: the stages it tells of, what it writes, and a
case that lilac refuses. --prepare: a launch finds what was compiled before."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import standin

import lilac.triton
from lilac.bench import prepare
from lilac.bench.case import DATA_TYPES, Buffer, Constant
from lilac.bench.discover import discover

triton = pytest.importorskip("triton")
if not hasattr(getattr(getattr(triton, "knobs", None), "runtime", None), "kernel_load_start_hook"):
    pytest.skip(f"Triton {triton.__version__} does not tell when it loads a kernel", allow_module_level=True)

REFUSED = '''
import triton
import triton.language as tl

from lilac.bench.case import Buffer, Case, Launch


@triton.jit
def increment(x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    v = tl.load(x + at)
    v = tl.inline_asm_elementwise("add.f32 $0, $0, 0f3F800000;", "=f,0", [v], tl.float32, True, 1)
    tl.store(y + at, v)


@triton.jit
def double(x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(y + at, 2 * tl.load(x + at))


def cases():
    row = [Buffer(64, "f32"), Buffer(64, "f32", output=True)]
    return [Case("increment", "increment", Launch(increment, 1, row, N=64), lambda a: a.x + 1),
            Case("double", "double", Launch(double, 1, row, N=64), lambda a: 2 * a.x)]
'''


def bench(*arguments):
    return subprocess.run([sys.executable, "-B", "-m", "lilac.bench", "--compile-only", *map(str, arguments)],
                          capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """(exit status, standard output, data, folder of what was kept) of both kernels."""
    folder = tmp_path_factory.mktemp("bench")
    (folder / "mine.py").write_text(REFUSED)
    done = bench(folder / "mine.py", "--json", folder / "r.json", "--keep", folder / "kept")
    return done.returncode, done.stdout, json.loads((folder / "r.json").read_text()), folder / "kept"


def test_a_refusal_is_a_failed_case(run):
    status, output, data, _ = run
    increment = data["cases"][0]
    assert status == 3
    line = REFUSED[:REFUSED.index("tl.inline_asm")].count("\n") + 1
    assert f"mine.py:{line}: " in increment["lilac"]["failure"] and "failure" not in increment["triton"]
    assert f"FAILED increment under lilac: {increment['lilac']['failure']}" in output


def test_stages_of_both(run):
    double = run[2]["cases"][1]
    triton, lilac = double["triton"]["compile"], double["lilac"]["compile"]
    assert {"ttir", "ttgir", "llir", "ptx", "cubin"} <= set(triton["stages"])
    assert "llir" not in lilac["stages"] and {"ttir", "ttgir", "ptx", "cubin"} <= set(lilac["stages"])
    for part in (triton, lilac):  # all were measured, none came from a cache, and they add up
        assert min(part["lower_ms"], part["assemble_ms"], part["front_ms"]) > 0
        assert part["lower_ms"] + part["assemble_ms"] + part["front_ms"] <= 1.5 * part["total_ms"]
    for part in (double["triton"], double["lilac"]):
        assert len(part["kernels"]) == 1 and part["kernels"][0]["registers"] > 0
    assert 0 < lilac["library_ms"] <= lilac["lower_ms"] and triton["library_ms"] == 0
    assert double["lower_ratio"] == pytest.approx(triton["lower_ms"] / lilac["lower_ms"], rel=1e-4)


def test_what_is_kept(run):
    kept = {file.name for file in run[3].iterdir()}
    assert {"double.lilac.ttir", "double.lilac.ptx", "double.lilac.cubin", "double.triton.ttir",
            "double.triton.ttgir", "double.triton.ptx", "double.triton.cubin"} <= kept
    assert "LLVM" in (run[3] / "double.triton.ptx").read_text()
    assert "LLVM" not in (run[3] / "double.lilac.ptx").read_text()


def test_the_built_in_cases_are_listed():
    done = subprocess.run([sys.executable, "-B", "-m", "lilac.bench", "--list"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0 and len(done.stdout.split()) >= 100


def test_the_package_of_products_is_a_module_with_cases():
    package = "lilac.bench.operators.products"
    whole = subprocess.run([sys.executable, "-B", "-m", "lilac.bench", "--list", package], capture_output=True,
                           text=True, check=False)
    assert whole.returncode == 0 and len(whole.stdout.split()) >= 250
    part = subprocess.run([sys.executable, "-B", "-m", "lilac.bench", "--list", package + ".attention"],
                          capture_output=True, text=True, check=False)
    assert part.returncode == 0 and set(part.stdout.split()) < set(whole.stdout.split())
    helper = bench("--list", package + ".operands")
    assert helper.returncode == 1 and "it defines no cases()" in helper.stderr


def passed(argument):
    """What a launch is given, with no GPU."""
    if not isinstance(argument, Buffer):
        return argument.value if isinstance(argument, Constant) else argument
    kind = DATA_TYPES[argument.dtype]
    if not argument.block:
        return standin.Pointer(kind.triton)
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor.from_tensor(standin.Tensor(argument.shape, kind.triton, kind.bytes), list(argument.block))


def found_in_the_cache(case, monkeypatch):
    """Whether a launch finds its kernel on disk, under each compiler."""
    from triton import knobs

    hits = []
    monkeypatch.setattr(knobs.compilation, "listener", lambda **facts: hits.append(facts["cache_hit"]))
    for compiler in (contextlib.nullcontext(), lilac.triton.enabled()):
        with compiler:
            case.launch.kernel.device_caches.clear()
            case.launch.kernel.warmup(*map(passed, case.launch.arguments.values()), grid=case.launch.grid,
                                      **case.launch.options)
    return hits


def test_prepared_kernels_are_found(monkeypatch, tmp_path, cache):
    """Processes fill the cache folder for both compilers; a refusal leaves the others alone."""
    path = tmp_path / "mine.py"
    path.write_text(REFUSED)
    increment, double = discover([str(path)])
    assert found_in_the_cache(double, monkeypatch) == [False, False]
    shutil.rmtree(cache)
    said = []
    assert prepare.fill([str(path)], [increment, double], 2, 90, said.append) == 3
    assert any(line.startswith("compiled 4 of 4") for line in said)
    assert said[-1] == "1 of 4 compilations failed; the reasons follow with the cases"
    assert found_in_the_cache(double, monkeypatch) == [True, True]


def test_kernels_with_all_kinds_of_arguments_are_found(monkeypatch, tmp_path):
    """A compilation by itself and that of a launch have one key: pointers, descriptors, floats, integers that 16
    divides, those that are 1, constants."""
    path = tmp_path / "some.py"
    path.write_text("from lilac.bench.operators import products\n"
                    "def cases(): return [module.small()[-1] for module in products.modules()]\n")
    for case in discover([str(path)]):
        assert [prepare.compiled((str(path),), case.name, None, name, 90) for name in ("triton", "lilac")] == [True, True]
        assert found_in_the_cache(case, monkeypatch) == [True, True], case.name


def test_the_page_s_example(tmp_path):
    """The module that docs/benchmarks.md shows is one."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(root, "docs", "benchmarks.md"), encoding="utf-8") as file:
        shown = [part for part in re.findall(r"```python\n(.*?)```", file.read(), re.S) if "@triton.jit" in part]
    assert len(shown) == 1
    (tmp_path / "shown.py").write_text(shown[0])
    done = bench(tmp_path / "shown.py", "--first-calls", 1, "--markdown", tmp_path / "r.md")
    assert done.returncode == 0, done.stderr
    assert "cases: 2, failed: 0" in (tmp_path / "r.md").read_text()


def test_random_products_are_drawn():
    """The same for one seed, all different, of all kinds, and such as cuBLAS takes for 8-bit floats."""
    from lilac.bench.operators.random_products import KINDS_DRAWN, LEAST, MOST, drawn

    cases = drawn(1, 100)
    assert cases == drawn(1, 100) != drawn(2, 100) and len(set(cases)) == 100
    assert {kind for kind, *_ in cases} == set(KINDS_DRAWN)
    assert all(LEAST <= size <= MOST for _, _, *sizes in cases for size in sizes)
    assert all(layout == "NT" and not any(size % 16 for size in sizes) for kind, layout, *sizes in cases if kind == "f8e4m3")
    assert any(size % 8 for _, _, *sizes in cases for size in sizes)


def test_models_record_their_environment(monkeypatch, tmp_path):
    """All that the run of no models needs of its options is there. PyTorch is a stand-in with a device."""
    from types import SimpleNamespace

    from lilac.bench import measure
    from lilac.bench.models import __main__ as models

    device = SimpleNamespace(get_device_name=lambda: "X", empty_cache=lambda: None)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=device, version=SimpleNamespace(cuda="0"),
                                                              __version__="0"))
    monkeypatch.setattr(measure, "Stopwatch", lambda torch: SimpleNamespace(bandwidth=lambda: 1e12))
    options = models.arguments(["--kernels", "--json", str(tmp_path / "m.json")])
    run = models.Run(options, [])
    models.measure(run, options, [])
    assert run.about["gpu"] == "X" and run.about["bandwidth"].startswith("1.000 TB/s")
