"""`python -m lilac.bench` without a GPU, PyTorch or Triton: the arithmetic, the runner on a GPU whose
clock is known, table and picture of known rows, modules, exit statuses."""

import concurrent.futures
import contextlib
import json
import math
import os
import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import pytest
from fake_gpu import Clock, FakeCase, FakeCompilers, fake_torch

from lilac.bench import __main__ as command
from lilac.bench import compile_time, discover, measure, picture, prepare, table
from lilac.bench.case import Library, Tuned
from lilac.bench.runner import Lost, Runner, check, compare, reason

# ---- arithmetic ---------------------------------------------------------------------------------


def test_geometric_mean():
    assert measure.geometric_mean([2, 8]) == pytest.approx(4)
    assert measure.geometric_mean([1.1, 1 / 1.1]) == pytest.approx(1)
    assert measure.geometric_mean([]) is None


def test_ratios_go_round_by_round():
    assert measure.ratios([2.0, 4.0, 6.0], [1.0, 4.0, 2.0]) == (2.0, 1.0, 3.0)


def test_spread():
    assert measure.spread([1.0, 1.1, 0.9]) == pytest.approx(0.2)


def test_launches_fill_the_budget_within_limits():
    assert measure.launches_in(budget_ms=400, turns=2, rounds=5, once_ms=0.4) == 100
    assert measure.launches_in(budget_ms=400, turns=2, rounds=5, once_ms=1e-3) == measure.MOST_LAUNCHES
    assert measure.launches_in(budget_ms=400, turns=2, rounds=5, once_ms=1e3) == measure.LEAST_LAUNCHES


def test_order_alternates():
    assert [measure.order(2, n) for n in range(3)] == [[0, 1], [1, 0], [0, 1]]


def test_host_bound():
    assert measure.host_bound(0.2, 0.07, 0.01)
    assert not measure.host_bound(0.03, 0.07, 0.01)


@pytest.mark.parametrize("host, count", [(0.05, 1), (0.08, 2), (0.15, 3), (9.0, measure.MOST_FLUSHES)])
def test_the_buffer_is_written_until_the_host_keeps_up(host, count):
    assert measure.flushes_for(host, once_ms=0.07, kernel_ms=0.01) == count


def test_compile_medians_are_taken_number_by_number():
    def account(lower, total, stub=0.0):
        return {"front_ms": 1.0, "lower_ms": lower, "library_ms": 0.1, "assemble_ms": 3.0, "load_ms": 0.0,
                "total_ms": total, "stub_ms": stub, "stages": {"ptx": lower}}

    middle = compile_time.medians([account(5, 30, 100.0), account(1, 10), account(2, 90)])
    assert (middle["lower_ms"], middle["total_ms"], middle["stub_ms"]) == (2, 30, 100.0)
    assert middle["stages"] == {"ptx": 2}
    assert compile_time.medians([]) is None


def test_first_calls_are_repeated_while_they_are_quick():
    assert compile_time.rounds_left(0, 0.0, 3)
    assert compile_time.rounds_left(2, 0.2, 3)
    assert not compile_time.rounds_left(3, 0.2, 3)
    assert not compile_time.rounds_left(1, 10.0, 3)
    assert not compile_time.rounds_left(0, 0.0, 0)


def test_a_stub_counts_apart(tmp_path):
    """Compiling the launcher's stub is taken off the total and reported next to it."""
    recorder = compile_time.Recorder()
    recorder.stub_folder = str(tmp_path)
    recorder.build_before = lambda **options: os.environ["TRITON_CACHE_DIR"]
    folders = []
    first = recorder.first_call(lambda: folders.append(recorder.stub(src="int x;")), str(tmp_path / "cache"))
    recorder.stubs = {key: 50.0 for key in recorder.stubs}  # had it taken that long
    again = recorder.first_call(lambda: folders.append(recorder.stub(src="int x;")), str(tmp_path / "cache"))
    assert folders == [str(tmp_path)] * 2
    assert 0 <= first["total_ms"] < 1e3 and first["stub_ms"] >= 0
    assert again["stub_ms"] == 50e3 and again["total_ms"] < 1e3
    assert "TRITON_CACHE_DIR" not in os.environ


def test_stages_between_ttir_and_cubin_are_the_compiler():
    class Times:
        ir_initialization = 4000
        lowering_stages = [("ttir", 1000), ("ttgir", 2000), ("llir", 3000), ("ptx", 500), ("cubin", 9000)]

    recorder = compile_time.Recorder()
    recorder.listener_before = None
    metadata = {"name": "k", "shared": 32, "num_warps": 4}

    def call(cached):
        recorder.compiled(src=object(), metadata=metadata, metadata_group={}, times=Times, cache_hit=cached)

    account = recorder.first_call(lambda: call(False), "nowhere")
    assert (account["front_ms"], account["lower_ms"], account["assemble_ms"]) == (5.0, 5.5, 9.0)
    assert recorder.kernels_used() == [{"name": "k", "compiler": "triton", "shared": 32, "num_warps": 4}]
    assert recorder.first_call(lambda: call(True), "nowhere")["lower_ms"] == 0


def test_files_are_kept_by_title(tmp_path):
    class Times:
        ir_initialization, lowering_stages = 1, []

    ptx = tmp_path / "k.ptx"
    ptx.write_text("code")
    kept = tmp_path / "kept"
    kept.mkdir()
    recorder = compile_time.Recorder(keep=str(kept))
    recorder.listener_before = None
    say = dict(src=object(), metadata={}, metadata_group={"k.ptx": ptx, "k.json": "nowhere"}, times=Times,
               cache_hit=False)
    recorder.compiled(**say)
    with recorder.titled("case.lilac"):
        recorder.compiled(**say)
    assert [file.name for file in kept.iterdir()] == ["case.lilac.ptx"]


# ---- the runner ---------------------------------------------------------------------------------


@pytest.fixture
def bench(monkeypatch):
    """(clock, compilers, function(**options) → runner). Launches take the host no time."""
    clock, compilers = Clock(), FakeCompilers()
    monkeypatch.setattr("lilac.bench.measure.time", SimpleNamespace(perf_counter=lambda: 0.0))
    torch = fake_torch(clock)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr("lilac.bench.runner.Compilers", lambda: compilers)
    return clock, compilers, lambda **options: Runner(**{"seed": 7, "budget": 0.01, "rounds": 3, **options})


def test_times_without_the_flush(bench):
    clock, compilers, make = bench
    case = FakeCase("a", clock, compilers, {"triton": 0.030, "lilac": 0.020}, bytes=4194304)
    runner = make()
    row = runner.row(case)
    assert row["triton"]["ms"] == pytest.approx(0.030) and row["lilac"]["ms"] == pytest.approx(0.020)
    assert row["ratio"] == pytest.approx(1.5)
    assert row["ratio_least"] == pytest.approx(1.5) and len(row["lilac"]["rounds"]) == 3
    assert row["triton"]["error"] == 0.1 and row["lilac"]["error"] == 0.2
    # A copy moves 2 GiB in 0.5 ms on this GPU, so these bytes take at least 1/1024 ms.
    assert row["lilac"]["share"] == pytest.approx(0.5 / 512 / 0.020)
    assert case.seed == 7 and case.freed


def test_a_slow_host_gets_more_time(bench):
    clock, compilers, make = bench
    runner = make()
    runner.watch.host_time = lambda launch: 0.1
    row = runner.row(FakeCase("a", clock, compilers, {"triton": 0.002, "lilac": 0.001}))
    assert row["flushes"] == 2 and row["ratio"] == pytest.approx(2)
    assert not row["lilac"]["host_bound"] and runner.watch.flush_ms == pytest.approx(0.14)
    runner.watch.host_time = lambda launch: 1.0
    row = runner.row(FakeCase("a", clock, compilers, {"triton": 0.002, "lilac": 0.001}))
    assert row["flushes"] == measure.MOST_FLUSHES and row["lilac"]["host_bound"]
    runner.watch.host_time = lambda launch: 0.01
    assert runner.row(FakeCase("a", clock, compilers, {"triton": 1, "lilac": 1}))["flushes"] == 1


def test_arithmetic_bounds_too(bench):
    clock, compilers, make = bench
    runner = make()
    assert runner.arithmetic == pytest.approx(256 * 100 * 1e9)
    case = FakeCase("a", clock, compilers, {"triton": 1, "lilac": 1}, bytes=1, operations=256e11)
    assert runner.bound(case) == (pytest.approx(1e3), "f32")
    case.bytes = 4e12 * 2
    assert runner.bound(case)[1] == "memory"


def test_matrix_units_bound(bench):
    """4096 operations a clock of f16 on sm_90; a type without a rate is bound by memory only."""
    clock, compilers, make = bench
    case = FakeCase("a", clock, compilers, {"triton": 1, "lilac": 1}, bytes=1, operations=4096e11)
    case.unit = "f16"
    runner = make()
    assert runner.bound(case)[1] == "memory"  # the fake GPU has no known capability
    runner.matrix_units = {"f16": 4096e11}
    row = runner.row(case)
    assert row["unit"] == "f16" and row["bound"] == {"ms": pytest.approx(1e3), "roof": "f16"}
    assert row["lilac"]["share"] == pytest.approx(1e3)
    case.unit = "f8"
    assert runner.bound(case)[1] == "memory"


def test_both_take_turns(bench):
    clock, compilers, make = bench
    case = FakeCase("a", clock, compilers, {"triton": 1.0, "lilac": 1.0})
    make().row(case)
    changes = [b for a, b in zip([None] + case.launched, case.launched) if a != b]
    assert {"triton", "lilac"} == set(changes) and len(changes) > 6


def tuned(case, ms):
    """A launch with configurations that take `ms[compiler][name]`, or raise it."""
    def launch(each):
        def call():
            now = each[case.compilers.now]
            if isinstance(now, Exception):
                raise now
            case.launched.append(now)
            case.clock.run(now)
        return call

    names = list(ms["lilac"])
    case.launch = Tuned({name: launch({compiler: ms[compiler][name] for compiler in ms}) for name in names})
    return case


def test_each_compiler_chooses_its_configuration(bench):
    clock, compilers, make = bench
    too_large = RuntimeError("out of shared memory")
    case = tuned(FakeCase("a", clock, compilers, {}), {
        "triton": {"small": 0.05, "large": too_large, "odd": 0.06},
        "lilac": {"small": 0.05, "large": 0.02, "odd": 0.09}})
    row = make(first_calls=0).row(case)
    assert row["triton"]["configuration"] == "small" and row["lilac"]["configuration"] == "large"
    assert row["triton"]["ms"] == pytest.approx(0.05) and row["ratio"] == pytest.approx(2.5)
    # 0.09 is far behind the best so far and measured only as often as that takes to see.
    assert case.launched.count(0.09) < case.launched.count(0.06)


def test_no_configuration_can_be_launched(bench):
    clock, compilers, make = bench
    case = tuned(FakeCase("a", clock, compilers, {}), {
        "triton": {"small": 0.05, "large": 0.06},
        "lilac": {"small": RuntimeError("no"), "large": RuntimeError("out of shared memory")}})
    row = make(first_calls=0).row(case)
    assert row["lilac"]["failure"].endswith("out of shared memory") and row["triton"]["ms"] == pytest.approx(0.05)


def with_library(case, ms, error=0.5):
    case.launch = LaunchOnTensors(case.launch)

    def prepare(tensors):
        assert tensors.c == "c"
        return lambda: case.clock.run(ms) if not isinstance(ms, Exception) else (_ for _ in ()).throw(ms)

    def errors(launch):
        launch()
        return {"c": error}

    case.libraries, case.errors = [Library("cuBLAS", prepare)], errors
    return case


class LaunchOnTensors:
    def __init__(self, launch):
        self.launch, self.tensors = launch, {"c": SimpleNamespace(used="c")}

    def __call__(self):
        self.launch()


def test_a_library_takes_turns_too(bench):
    clock, compilers, make = bench
    case = with_library(FakeCase("a", clock, compilers, {"triton": 0.06, "lilac": 0.05}), 0.04, error=3)
    row = make(libraries=True, first_calls=0).row(case)
    library, = row["libraries"]
    assert library["ms"] == pytest.approx(0.04) and library["ratio"] == pytest.approx(0.8)
    assert library["error"] == 3 and row["ratio"] == pytest.approx(1.2)
    assert "0.800 cuBLAS" in table.table([row])
    assert "cuBLAS's time over lilac's 0.800 in the geometric mean of 1" in table.summary_text([row])
    row = make(first_calls=0).row(case)
    assert "libraries" not in row and "cuBLAS" not in table.table([row])


def test_a_library_that_does_not_take_the_operator(bench):
    clock, compilers, make = bench
    case = with_library(FakeCase("a", clock, compilers, {"triton": 0.06, "lilac": 0.05}), RuntimeError("no such type"))
    row = make(libraries=True, first_calls=0).row(case)
    assert row["libraries"][0]["failure"] == "RuntimeError: no such type" and row["ratio"] == pytest.approx(1.2)
    assert "ratio" not in row["libraries"][0] and "not cuBLAS" in table.table([row])


@pytest.mark.parametrize("verdict, word", [
    (RuntimeError("lilac says no"), "RuntimeError: lilac says no"),
    (False, "wrong result"),
    (1.5, "wrong result: 1.5 times"),
    (math.inf, "wrong result: inf times"),
    (math.nan, "wrong result: nan times"),
])
def test_one_compiler_fails_the_other_is_measured(bench, verdict, word):
    clock, compilers, make = bench
    case = FakeCase("a", clock, compilers, {"triton": 0.03, "lilac": 0.02},
                    {"triton": True, "lilac": verdict})
    row = make().row(case)
    assert row["lilac"]["failure"].startswith(word)
    assert "failure" not in row["triton"] and row["triton"]["ms"] == pytest.approx(0.03)
    assert "ratio" not in row and "ms" not in row["lilac"]
    assert table.failures([row]) == [("a", "lilac", row["lilac"]["failure"])]


def test_inputs_that_cannot_be_made(bench):
    clock, compilers, make = bench
    case = FakeCase("a", clock, compilers, {"triton": 1, "lilac": 1})
    case.make = lambda seed: 1 / 0
    row = make().row(case)
    assert "ZeroDivisionError" in row["triton"]["failure"] and "ZeroDivisionError" in row["lilac"]["failure"]
    assert case.freed


def test_no_first_calls(bench):
    clock, compilers, make = bench
    row = make(first_calls=0).row(FakeCase("a", clock, compilers, {"triton": 1, "lilac": 1}))
    assert row["ratio"] == pytest.approx(1) and "compile" not in row["lilac"]
    assert "a" in table.table([row]) and "lilac" in table.summary_text([row])


def test_no_check(bench):
    clock, compilers, make = bench
    case = FakeCase("a", clock, compilers, {"triton": 1, "lilac": 1}, {"triton": False, "lilac": False})
    row = make(check=False).row(case)
    assert row["ratio"] == pytest.approx(1) and "error" not in row["lilac"]


def test_the_other_compilers_kernel_is_not_measured(bench):
    clock, compilers, make = bench
    runner = make()
    runner.recorder.kernels_used = lambda: [{"name": "k", "compiler": "triton"}]
    row = runner.row(FakeCase("a", clock, compilers, {"triton": 1, "lilac": 1}))
    assert row["lilac"]["failure"] == "compiled by triton" and "failure" not in row["triton"]


def test_a_lost_gpu_ends_the_run(bench, capsys):
    clock, compilers, make = bench
    runner = make()

    def broken():
        raise RuntimeError("an illegal memory access was encountered")

    case = FakeCase("a", clock, compilers, {"triton": 1, "lilac": 1})
    case.make = lambda seed: None
    synchronize = sys.modules["torch"].cuda.synchronize

    def check():
        sys.modules["torch"].cuda.synchronize = broken
        raise RuntimeError("launch failed")

    case.check = check
    with pytest.raises(Lost, match="^a under triton: RuntimeError: launch failed$"):
        runner.row(case)

    sys.modules["torch"].cuda.synchronize = synchronize
    runner.recorder.installed = contextlib.nullcontext
    good = FakeCase("good", clock, compilers, {"triton": 1, "lilac": 1})
    after = FakeCase("after", clock, compilers, {"triton": 1, "lilac": 1})
    rows = command.measure_all([good, case, after], runner, lambda rows: None)
    assert [r["name"] for r in rows] == ["good", "a", "after"] and not after.launched
    assert "launch failed" in rows[1]["lilac"]["failure"] and "GPU context is lost" in rows[2]["triton"]["failure"]
    assert "GPU context is lost" in capsys.readouterr().err


def test_what_a_check_may_give():
    assert check(True) == (None, None)
    assert check(0) == (0.0, None)
    assert check(1.0) == (1.0, None)
    assert check(1.0001)[1]
    assert check(False)[1] == "wrong result"


def test_reasons_are_one_line():
    assert reason(ValueError("\n  first\nsecond")) == "ValueError: first"
    assert len(reason(ValueError("x" * 1000))) <= 300
    assert reason(ValueError("at 9:12:\n  x = y\n      ^\nno y")) == "ValueError: at 9:12: no y"
    assert reason(ValueError()) == "ValueError: "


# ---- table and picture --------------------------------------------------------------------------


def row(name, family, ratio, lower=(0.5, 20.0), total=(20.0, 60.0), **more):
    def part(at, ms):
        kernel = {"name": "k", "registers": 32 + at, "spills": 0, "shared": 128, "num_warps": 4}
        return {"ms": ms, "rounds": [ms], "error": 0.25, "share": 0.5, "host_bound": False, "kernels": [kernel],
                "compile": {"front_ms": 5.0, "lower_ms": lower[at], "library_ms": 0.2 * (1 - at),
                            "assemble_ms": 12.0, "load_ms": 0.5, "total_ms": total[at], "stub_ms": 100.0,
                            "stages": {}}}
    made = {"name": name, "family": family, "bytes": 1, "operations": 1, "lilac": part(0, 0.010),
            "triton": part(1, 0.010 * ratio), **more}
    return compare(made)


def failed(name, family, why):
    return {"name": name, "family": family, "bytes": 1, "operations": 1, "lilac": {"failure": why},
            "triton": row(name, family, 1.0)["triton"]}


ROWS = [row("softmax_1", "softmax", 1.0), row("softmax_2", "softmax", 1.21), row("sort_1", "sort", 0.9),
        failed("scan_1", "scan", "kernel.py:3: no such operation [unsupported-operation]")]


def test_compare():
    made = ROWS[1]
    assert made["ratio"] == pytest.approx(1.21) and made["lower_ratio"] == 40
    assert made["first_ratio"] == 3 and made["first_ratio_with_stub"] == pytest.approx(160 / 120)


def test_summary():
    total = table.summary(ROWS)
    assert (total["cases"], total["failed"], total["measured"]) == (4, 1, 3)
    assert total["ratio"] == pytest.approx((1.0 * 1.21 * 0.9) ** (1 / 3))
    assert (total["ratio_least"], total["ratio_most"]) == (pytest.approx(0.9), pytest.approx(1.21))
    assert total["lower_ratio"] == pytest.approx(40) and total["first_ratio"] == pytest.approx(3)
    assert (total["plugin_ms"], total["plugin_ms_most"]) == (pytest.approx(0.3), pytest.approx(0.3))
    text = table.summary_text(ROWS)
    assert "under 0.97: sort_1 0.900" in text
    assert "FAILED scan_1 under lilac: kernel.py:3: no such operation" in text


def test_table():
    lines = table.table(ROWS).splitlines()
    assert len({len(line) for line in lines}) == 1 and len(lines) == 2 + len(ROWS)
    cells = [cell.strip() for cell in lines[3].strip("|").split("|")]
    assert cells == ["softmax_2", "10.00 / 12.10", "1.210", "1.210–1.210", "–", "–", "50%", "0.50 / 20.00", "40",
                     "12 / 12", "20 / 60", "3.00", "32 / 33", "0 / 0", "128 / 128", "0.25"]
    assert [cell.strip() for cell in lines[5].strip("|").split("|")][:3] == ["scan_1", "– / 10.00", "failed"]


def test_rates_and_roofs():
    made = row("matmul", "matmul", 1.1, unit="f16", bound={"ms": 0.008, "roof": "f16"})
    made["operations"] = 2_000_000_000
    cells = [cell.strip() for cell in table.table([made]).splitlines()[2].strip("|").split("|")]
    assert cells[4:7] == ["200 / 182", "8.00 f16", "50%"]
    made["operations"] = 20_000_000
    assert "2.0 / 1.8" in table.table([made])
    del made["lilac"]["ms"]
    assert "– / 1.8" in table.table([made])


def test_table_without_a_gpu():
    head = table.table(ROWS, gpu=False).splitlines()[0]
    assert "TTIR→PTX" in head and "of bound" not in head and "µs" not in head


def test_host_bound_cases_are_marked():
    bound = row("tiny", "tiny", 1.0)
    bound["triton"]["host_bound"] = True
    assert "1.000*" in table.table([bound]) and "bound by the host" in table.summary_text([bound])


def test_families_of_the_picture():
    assert [(g[0], g[4]) for g in picture.families(ROWS)] == [("sort", 1), ("softmax", 2)]
    name, mean, least, most, _ = picture.families(ROWS)[1]
    assert (mean, least, most) == (pytest.approx(1.1), pytest.approx(1.0), pytest.approx(1.21))


def test_picture_is_drawn_to_scale():
    tree = ElementTree.fromstring(picture.svg(ROWS, "a < b & c", "below"))
    space = "{http://www.w3.org/2000/svg}"
    bars = [g for g in tree.iter(space + "g")]
    assert [g.find(space + "title").text.split(":")[0] for g in bars] == ["sort", "softmax", "geometric mean"]
    base = [line for line in tree.iter(space + "line") if line.get("stroke-dasharray")]
    one = float(base[0].get("y1"))
    slow, fast = (g.find(space + "rect") for g in bars[:2])
    assert float(slow.get("y")) == pytest.approx(one, abs=0.1)               # hangs from the baseline
    assert float(fast.get("y")) + float(fast.get("height")) == pytest.approx(one, abs=0.1)
    # 0.9 and 1.1 are equally far from 1.
    assert float(slow.get("height")) == pytest.approx(float(fast.get("height")), abs=0.2)
    whisker = bars[1].findall(space + "line")[0]
    assert float(whisker.get("y2")) < float(fast.get("y")) < float(whisker.get("y1")) + 0.1
    assert "a < b & c" in [t.text for t in tree.iter(space + "text")]


def test_what_does_not_fit_is_cut_off_and_says_so():
    rows = [row(f"a{n}", f"f{n}", 1 + 0.01 * n) for n in range(9)] + [row("b", "far", 7.25)]
    assert picture.ceiling(picture.families(rows)) < 1.2
    drawn = picture.svg(rows, "t", "s")
    assert ">to 7.25<" in drawn and "<path" in drawn
    tall = [float(rect.get("height")) for rect in ElementTree.fromstring(drawn).iter(
        "{http://www.w3.org/2000/svg}rect")][1:]
    assert max(tall) <= picture.HEIGHT - picture.TOP - picture.BOTTOM


def test_picture_of_nothing():
    assert "no case was measured" in picture.svg([], "t", "s")


@pytest.mark.parametrize("low, high", [(0.9, 1.1), (0.2, 1.1), (0.97, 40.0), (0.9, 1.31)])
def test_ticks_cover(low, high):
    marks = picture.ticks(low, high)
    assert marks[0] <= low + 1e-9 and marks[-1] >= high - 1e-9 and 2 <= len(marks) <= 9
    assert 1 in marks or high > 10


def test_markdown_tells_all():
    text = table.markdown(ROWS, {"gpu": "a GPU", "seed": 3})
    assert text.startswith("# lilac beside Triton on a GPU") and "| softmax | 2 | 1.100" in text
    assert "- seed: 3" in text


# ---- modules and the command --------------------------------------------------------------------

MODULE = """
class Made:
    bytes, operations = 8, 1
    def __init__(self, name, family=None):
        self.name = name
        if family:
            self.family = family
    def launch(self): pass
    def check(self): return True
def cases():
    return [Made("add_small", "add"), Made("add_large", "add"), Made("lone")]
"""


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MODULE)
    return str(path)


def names(cases):
    return [case.name for case in cases]


def test_a_file_is_a_module(module):
    assert names(discover.discover([module])) == ["add_small", "add_large", "lone"]


def test_a_module_by_its_name(module, monkeypatch):
    monkeypatch.syspath_prepend(os.path.dirname(module))
    assert names(discover.discover(["mine"])) == ["add_small", "add_large", "lone"]
    sys.modules.pop("mine")


def test_filters(module):
    assert names(discover.discover([module], ["large"])) == ["add_large"]
    assert names(discover.discover([module], ["add"])) == ["add_small", "add_large"]
    assert names(discover.discover([module], ["l*e"])) == ["lone"]
    assert names(discover.discover([module], ["small|lone"])) == ["add_small", "lone"]
    with pytest.raises(discover.Usage, match="no case matches nothing"):
        discover.discover([module], ["nothing"])


@pytest.mark.parametrize("text, words", [
    ("x = 1", r"defines no cases\(\)"),
    ("1 / 0", "ZeroDivisionError"),
    ("def cases(): raise KeyError('k')", r"cases\(\): KeyError"),
    ("class C: name = 'c'\ndef cases(): return [C()]", "case c has no launch, check, bytes, operations"),
    (MODULE + "\nold = cases\ndef cases(): return old() + old()", "two cases are called add_small"),
])
def test_modules_that_cannot_be_used(tmp_path, text, words):
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(discover.Broken, match=words):
        discover.discover([str(path)])


@pytest.mark.parametrize("name", ["no_such_file.py", "no.such.module", "nosuchmodule"])
def test_modules_that_are_not_there(name):
    with pytest.raises(discover.Usage, match=re.escape(name)):
        discover.discover([name])


def bench_command(*arguments):
    return subprocess.run([sys.executable, "-B", "-m", "lilac.bench", *arguments], capture_output=True,
                          text=True, check=False)


def test_list(module):
    done = bench_command("--list", module)
    assert (done.returncode, done.stdout) == (0, "add_small\nadd_large\nlone\n")


@pytest.mark.parametrize("arguments", [["--rounds", "0"], ["--rounds", "x"], ["--budget", "-1"], ["--budget", "nan"], ["--first-calls", "-1"], ["--frobnicate"],
                                       ["--prepare", "0"], ["--prepare", "2", "--compile-only"],
                                       ["--clean", "--dirty"], ["--compile-only", "--svg", "x.svg"]])
def test_wrong_usage(arguments):
    done = bench_command(*arguments)
    assert done.returncode == 2 and "usage" in done.stderr and not done.stdout


def test_wrong_names(module):
    done = bench_command("--list", "no_such_file.py")
    assert done.returncode == 2 and done.stderr == "lilac.bench: no_such_file.py: no such file\n"
    done = bench_command("--list", module, "--filter", "zebra")
    assert done.returncode == 2 and "no case matches zebra" in done.stderr


def test_help():
    done = bench_command("--help")
    assert done.returncode == 0
    for word in ("--filter", "--compile-only", "--svg", "exit status"):
        assert word in done.stdout


@pytest.mark.parametrize("here, only, words", [
    ({"triton": None}, False, "Triton is needed"),
    ({"triton": object(), "torch": None}, False, "PyTorch is needed"),
    ({"triton": object(), "torch": "no gpu"}, False, "no GPU here that PyTorch can use; --compile-only"),
    ({"triton": object(), "torch": None}, True, None),
])
def test_what_is_missing(monkeypatch, capsys, module, here, only, words):
    for name, value in here.items():
        if value == "no gpu":
            value = fake_torch(Clock())
            value.cuda.is_available = lambda: False
        monkeypatch.setitem(sys.modules, name, value)
    if words is None:
        monkeypatch.setattr("lilac.bench.runner.Compilers", FakeCompilers)
        command.require(only)
        return
    assert command.main([module]) == 1
    assert words in capsys.readouterr().err


def test_wrong_usage_is_reported_before_what_is_missing(monkeypatch, capsys, module):
    """A filter of nothing and a module that is not there exit with 2 where PyTorch is missing too."""
    monkeypatch.setitem(sys.modules, "triton", object())
    monkeypatch.setitem(sys.modules, "torch", None)
    assert command.main([module, "--filter", "zebra"]) == 2
    assert capsys.readouterr().err == "lilac.bench: no case matches zebra\n"
    assert command.main(["no_such_file.py"]) == 2
    assert capsys.readouterr().err == "lilac.bench: no_such_file.py: no such file\n"


def test_a_module_that_needs_what_is_missing(monkeypatch, capsys, tmp_path):
    """The reason is given, not the import that fails for it."""
    path = tmp_path / "mine.py"
    path.write_text("import torch\n")
    monkeypatch.setitem(sys.modules, "triton", object())
    monkeypatch.setitem(sys.modules, "torch", None)
    assert command.main([str(path)]) == 1
    assert "PyTorch is needed" in capsys.readouterr().err


def test_a_triton_that_the_plugin_does_not_know(monkeypatch, capsys, module):
    def unknown():
        raise ImportError("this is Triton 9.9")

    monkeypatch.setitem(sys.modules, "triton", object())
    monkeypatch.setattr("lilac.bench.runner.Compilers", unknown)
    assert command.main(["--compile-only", module]) == 1
    assert capsys.readouterr().err == "lilac.bench: this is Triton 9.9\n"


def test_a_run(monkeypatch, capsys, tmp_path, bench):
    """From the command line to the files, on the known clock."""
    clock, compilers, make = bench
    cases = [FakeCase("good", clock, compilers, {"triton": 0.03, "lilac": 0.02}, family="f"),
             FakeCase("bad", clock, compilers, {"triton": 0.03, "lilac": 0.02},
                      {"triton": True, "lilac": RuntimeError("it cannot")}, family="f")]
    runner = make()
    runner.recorder.installed = contextlib.nullcontext
    monkeypatch.setattr(command, "require", lambda only: None)
    monkeypatch.setattr(command, "make_runner", lambda options: runner)
    monkeypatch.setattr(command, "environment", lambda options, runner: {"gpu": "a GPU", "triton": "3.6.0"})
    monkeypatch.setattr(discover, "discover", lambda modules, filters: cases)
    files = {kind: tmp_path / f"out.{kind}" for kind in ("json", "markdown", "svg")}
    asked = [word for kind, path in files.items() for word in (f"--{kind}", str(path))]

    assert command.main(asked) == 3
    said = capsys.readouterr()
    assert "FAILED bad under lilac: RuntimeError: it cannot" in said.out
    assert "[  1/2] good" in said.err and "FAILED under lilac: RuntimeError: it cannot" in said.err
    data = json.loads(files["json"].read_text())
    assert [r["name"] for r in data["cases"]] == ["good", "bad"]
    assert data["summary"]["ratio"] == pytest.approx(1.5) and data["environment"]["gpu"] == "a GPU"
    assert "failed" in files["markdown"].read_text()
    ElementTree.fromstring(files["svg"].read_text())

    del cases[1]
    assert command.main([]) == 0
    assert os.listdir(tmp_path).count("out.json") == 1 and not list(tmp_path.glob("*.new"))


def test_data_has_six_digits():
    assert command.short({"a": [1 / 3, 2, "x", None, True], "b": 1e-9 / 7}) == {
        "a": [0.333333, 2, "x", None, True], "b": 1.42857e-10}


def test_an_interrupted_run_keeps_what_it_has(monkeypatch, bench, capsys):
    clock, compilers, make = bench
    cases = [FakeCase("one", clock, compilers, {"triton": 0.03, "lilac": 0.02}),
             FakeCase("two", clock, compilers, {"triton": 0.03, "lilac": 0.02})]
    runner = make()
    runner.recorder.installed = contextlib.nullcontext
    before = runner.row
    monkeypatch.setattr(runner, "row", lambda case: before(case) if case is cases[0] else (_ for _ in ()).throw(
        KeyboardInterrupt))
    assert [r["name"] for r in command.measure_all(cases, runner, lambda rows: None)] == ["one"]
    assert "interrupted after 1 of 2" in capsys.readouterr().err


@pytest.fixture
def run(monkeypatch, bench):
    """(function(cases, *words) → exit status of the command, what was called) on the known clock."""
    called = []

    def start(cases, *words):
        runner = bench[2]()
        runner.recorder.installed = contextlib.nullcontext
        monkeypatch.setattr(command, "require", lambda only: None)
        monkeypatch.setattr(command, "make_runner", lambda options: called.append("runner") or runner)
        monkeypatch.setattr(command, "environment", lambda options, runner: {"gpu": "a GPU", "triton": "3.6.0"})
        monkeypatch.setattr(discover, "discover", lambda modules, filters: cases)
        return command.main(list(words))

    return start, called


def test_data_is_written_after_every_case(run, bench, tmp_path):
    """Also of a run that is killed: a case finds those before it in the file."""
    start, _ = run
    clock, compilers, _ = bench
    file, found = tmp_path / "r.json", []
    cases = [FakeCase(name, clock, compilers, {"triton": 0.03, "lilac": 0.02}) for name in ("a", "b", "c")]
    for case in cases[1:]:
        case.make = lambda seed: found.append([one["name"] for one in json.loads(file.read_text())["cases"]])
    cases[2].check = lambda: (_ for _ in ()).throw(KeyboardInterrupt)
    assert start(cases, "--json", str(file)) == 3
    assert found == [["a"], ["a", "b"]]
    assert [one["name"] for one in json.loads(file.read_text())["cases"]] == ["a", "b"]


def test_cases_are_prepared_before_the_gpu_is_used(run, bench, monkeypatch, capsys):
    start, called = run
    clock, compilers, _ = bench
    sys.modules["torch"].cuda.get_device_capability = lambda: (9, 0)
    monkeypatch.setattr(prepare, "fill", lambda *given: called.append(given[:4]))
    cases = [FakeCase("a", clock, compilers, {"triton": 0.03, "lilac": 0.02})]
    assert start(cases, "mine.py", "--prepare", "3") == 0
    assert called == [(["mine.py"], cases, 3, 90), "runner"]

    def interrupted(*given):
        raise KeyboardInterrupt

    called.clear()
    monkeypatch.setattr(prepare, "fill", interrupted)
    assert start(cases, "--prepare", "3") == 3 and not called
    assert "interrupted before the first case" in capsys.readouterr().err


def test_prepared_cases(monkeypatch):
    """Every case under both compilers; failures are counted; a launch that cannot be compiled is left out."""
    def compiled(names, case, configuration, compiler, capability):
        done.append((names, case, configuration, compiler, capability))
        return (case, compiler) != ("b", "lilac")

    done, said = [], []
    monkeypatch.setattr(prepare, "compiled", compiled)
    cases = [SimpleNamespace(name=name, launch=SimpleNamespace(compile=None)) for name in "ab"]
    cases.append(SimpleNamespace(name="c", launch=lambda: None))
    pools = concurrent.futures.ThreadPoolExecutor
    assert prepare.fill(["mine.py"], cases, 2, 90, said.append, pools) == 3
    assert sorted(done, key=str) == [(("mine.py",), case, None, name, 90) for case in "ab" for name in ("lilac", "triton")]
    assert said[0].startswith("1 cases are compiled when they are measured")
    assert any(line.startswith("compiled 4 of 4 ") for line in said) and said[-1].startswith("1 of 4 compilations failed")


def test_equal_kernels_are_prepared_once():
    """A kernel for several sizes or configurations is one, if its specialization and options are the same."""
    def launch(specialization, **options):
        return SimpleNamespace(kernel=len, options=options, specialization=lambda: specialization, compile=None)

    cases = [SimpleNamespace(name="a", launch=launch("16", num_warps=4)),
             SimpleNamespace(name="b", launch=launch("16", num_warps=4)),
             SimpleNamespace(name="c", launch=Tuned({"4": launch("16", num_warps=4), "8": launch("16", num_warps=8)})),
             SimpleNamespace(name="d", launch=Tuned({"4": launch("1", num_warps=4), "8": launch("16", num_warps=8)}))]
    assert prepare.distinct(cases) == [("a", None), ("c", "8"), ("d", "4")]


def crash(*given):
    os._exit(1)


def test_a_process_that_crashes_ends_the_preparation_only(monkeypatch):
    said = []
    monkeypatch.setattr(prepare, "compiled", crash)
    cases = [SimpleNamespace(name="a", launch=SimpleNamespace(compile=None))]
    assert prepare.fill(["mine.py"], cases, 1, 90, said.append) == 0
    assert "the rest is compiled when it is measured" in said[0]


@pytest.mark.parametrize("prepared", [False, True])
def test_prepared_kernels_come_from_the_cache_folder(bench, monkeypatch, prepared):
    """It is the usual one then; otherwise each case has an empty one."""
    clock, compilers, make = bench
    monkeypatch.setenv("TRITON_CACHE_DIR", "usual")
    case, seen = FakeCase("a", clock, compilers, {"triton": 1.0, "lilac": 1.0}), set()
    before = case.launch
    case.launch = lambda: seen.add(os.environ["TRITON_CACHE_DIR"]) or before()
    assert "failure" not in make(prepared=prepared, first_calls=0).row(case)["lilac"]
    assert (seen == {"usual"}) == prepared and len(seen) == 1


def test_examples_of_the_documentation():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(root, "docs", "benchmarks.md"), encoding="utf-8") as file:
        page = file.read()
    for title, *_ in table.COLUMNS:  # every column is explained
        assert f"| {title} |" in page or f"**{title}**" in page or f"`{title}`" in page, title
    parts = re.findall(r"```python\n(.*?)```", page, re.S)
    assert parts
    for part in parts:
        compile(textwrap.dedent(part), "docs/benchmarks.md", "exec")
