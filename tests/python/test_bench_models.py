"""`python -m lilac.bench models` without a GPU: the list of models, the report of known rows."""

import json
import os
import subprocess
import sys
import time
import types

import pytest

from lilac.bench.models import report, zoo


def kernel(model, name, launches, triton, lilac, **more):
    return {"model": model, "half": zoo.by_name()[model].half, "name": name, "launches": launches,
            "triton": {"ms": triton, "registers": 30, "code": {"LDG.128": 4, "FADD": 8}},
            "lilac": {"ms": lilac, "registers": 32, "code": {"LDG.64": 8, "FADD": 8}},
            "ratio": triton / lilac, "own_ratio": triton / lilac, "error": 0.0, **more}


KERNELS = [kernel("llama", "fast", 2, 1.0, 0.5), kernel("llama", "slow", 1, 2.0, 4.0),
           kernel("llama", "tiny", 1, 0.001, 0.1), kernel("vit", "same", 1, 1.0, 1.0)]
STEPS = [{"model": "llama", "compiler": "triton", "first_s": 20.0, "step_ms": 8.0, "eager_ms": 10.0, "error": 0.01},
         {"model": "llama", "compiler": "lilac", "first_s": 10.0, "step_ms": 4.0, "eager_ms": 10.0, "error": 0.01}]


def rows(kernels=KERNELS, steps=STEPS):
    known = {one["model"] for one in kernels}
    return report.model_rows([m for m in zoo.MODELS if m.name in known], kernels, steps)


def test_the_list_has_a_held_out_half_and_at_least_as_many_others():
    names = [model.name for model in zoo.MODELS]
    halves = [[m for m in zoo.MODELS if m.half == half] for half in report.HALVES]
    assert len(names) == len(set(names)) >= 20
    assert len(halves[0]) >= len(halves[1]) >= 12 and sum(map(len, halves)) == len(names)
    for half in halves:
        assert {m.step for m in half} == {"training", "inference"} and any(m.dynamic for m in half)
        assert {"float32", "float16", "bfloat16"} == {m.dtype for m in half}
        assert len({m.family for m in half}) >= 6


def test_a_model_is_the_sum_over_its_launches():
    llama = rows()[0]
    assert (llama["kernels"], llama["launches"], llama["failed"]) == (3, 4, 0)
    assert llama["triton_ms"] == pytest.approx(4.001) and llama["lilac_ms"] == pytest.approx(5.1)
    assert llama["ratio"] == pytest.approx(4.001 / 5.1) == llama["own_ratio"]
    assert llama["least"] == 0.5  # the kernel under 1 % of the model's time does not count
    assert llama["steps"]["lilac"]["first_s"] == 10.0


def test_failures_are_counted_and_listed():
    broken = {**kernel("vit", "wrong", 1, 1.0, 1.0, error=7.0)}
    broken["lilac"]["failure"] = "the result differs"
    refused = {"model": "vit", "half": "held-out", "name": "refused", "launches": 1, "triton": {},
               "lilac": {"failure": "no such operation"}}
    assert rows([broken, refused])[0]["failed"] == 2
    listed = report.failures([broken, refused], [{"model": "vit", "compiler": "lilac", "failure": "lost"}])
    assert len(listed) == 3 and "no such operation" in listed[1] and "the step under lilac" in listed[2]


def test_summary_has_both_halves_apart():
    found = report.summary(rows())
    assert found["development"]["models"] == found["held-out"]["models"] == 1
    assert found["held-out"]["ratio"] == 1 and found["development"]["least"] == pytest.approx(4.001 / 5.1)
    assert found["all"]["ratio"] == pytest.approx((4.001 / 5.1) ** 0.5)
    assert found["development"]["step_ratio"] == 2 == found["development"]["first_step_ratio"]
    assert (found["development"]["step_least_name"], found["development"]["first_step_models"]) == ("llama", 1)


def test_the_ratio_of_steps_is_of_rounds_in_turn():
    paired = [{**STEPS[0], "replay_ms": 6.0}, {
        **STEPS[1], "step_ratio": 1.5, "step_ratio_least": 1.25, "step_ratio_most": 2.5, "replay_ms": 4.0,
        "replay_ratio": 1.625, "replay_ratio_least": 1.5, "replay_ratio_most": 1.75}]
    assert report.summary(rows(steps=paired))["development"]["step_ratio"] == pytest.approx(1.5)
    text = report.text([zoo.by_name()["llama"]], [], paired, {})
    assert "| 1.500 |" in text and "1.250–2.500" in text and "(least 1.500, llama)" in text
    assert "4.00 / 6.00" in text and "1.500–1.750" in text and "host's time 1.625" in text


def test_slowest_kernels_say_what_differs():
    lost = report.slowest(rows(), KERNELS)
    assert [one["name"] for _, one in lost] == ["slow"] and lost[0][0] == 2.0
    assert report.what_differs(lost[0][1]) == "32 / 30 registers; +8 LDG.64 -4 LDG.128"


def test_the_text_and_the_picture():
    models = [m for m in zoo.MODELS if m.name in ("llama", "vit")]
    text = report.text(models, KERNELS, STEPS, {"gat": "torch_geometric is not installed"})
    assert "| llama |" in text and "slow" in text and "gat: not run" in text
    assert "4.00 / 8.00" in text and "10.0 / 20.0" in text
    picture = report.svg(models, KERNELS, STEPS, {"triton": "3.6.0", "gpu": "X"})
    assert picture.startswith("<svg") and "llama" in picture and "vit" in picture
    json.dumps(rows())


def test_results_that_rounding_explains_are_listed():
    found = {"excess": 0.5, "difference": 3e-8, "change": 2e-8, "draws": 4, "multiple": 16}
    text = report.text([zoo.by_name()["vit"]], [kernel("vit", "mean", 1, 1.0, 1.0, error=7.0, rounding=found)], [], {})
    assert "rounding explains" in text and "vit mean: differs by 3e-08" in text and "Failures" not in text


def test_the_row_of_a_model_names_its_worst_kernel_and_counts_quick_measurements():
    quick = kernel("llama", "small", 1, 0.004, 0.008, timed=0)
    row = rows([*KERNELS, quick])[0]
    assert (row["least"], row["least_name"]) == (0.5, "slow")
    assert row["slow_share"] == pytest.approx(2.001 / 4.005)  # "slow" and "tiny", not the quick measurement
    assert row["quick"] == 1 and row["quick_share"] == pytest.approx(0.004 / 4.005)
    text = report.text([zoo.by_name()[name] for name in ("llama", "vit")], [*KERNELS, quick], STEPS, {})
    assert "medians of 10 launches: 1 of 5" in text and "50.0%" in text
    assert "| 2.000 |" in text  # ratios of steps


def command(*words):
    return subprocess.run([sys.executable, "-m", "lilac.bench", "models", *words], capture_output=True, text=True,
                          check=False)


def test_the_command_lists_models_and_refuses_unknown_ones():
    done = command("--list")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == len(zoo.MODELS)
    done = command("no_such_model")
    assert done.returncode == 2 and "no_such_model" in done.stderr
    assert command("--kernels", "--steps").returncode == 2


# ---- workers ----------------------------------------------------------------------------------------------------

def play(connection, name, settings):
    """A worker whose behaviour is its model's name."""
    if name == "crashes":
        os._exit(7)
    if name == "sleeps":
        time.sleep(600)
    if name == "refuses":
        connection.send(("failed", "no such module", "Traceback"))
        return
    connection.send(("sources", []))
    assert connection.recv() == ("load",)
    connection.send(("prepared", 2))
    word, seconds = connection.recv()
    assert word == "measure"
    if name == "dies":
        os._exit(9)
    if name == "late":
        connection.send(("stopped", 1, 2))
    connection.send(("rows", [{"model": name, "process": os.getpid(), "seconds": seconds}], []))


@pytest.fixture
def scheduler(monkeypatch, tmp_path):
    from lilac.bench.models import scheduler as module

    monkeypatch.setattr(module, "serve", play)
    monkeypatch.setattr(module, "has_room", lambda: True)
    made = module.Scheduler(str(tmp_path), rounds=3, budget=0.08, jobs=2)
    yield made
    made.close()


def named(*names):
    return [types.SimpleNamespace(name=name) for name in names]


def test_workers_are_prepared_in_parallel_and_measured_in_turn(scheduler):
    models = named("one", "two", "three")
    scheduler.prepare(models)
    assert all(map(scheduler.is_prepared, models))
    found = [scheduler.measure(model, 100.0) for model in models]
    assert [rows[0]["model"] for rows, why in found if not why] == ["one", "two", "three"]
    assert len({rows[0]["process"] for rows, _ in found}) == 3 and not scheduler.workers


def test_a_worker_that_fails_stops_no_other(scheduler):
    models = named("crashes", "one", "refuses", "dies", "late")
    scheduler.prepare(models)
    assert [m.name for m in models if scheduler.is_prepared(m)] == ["one", "dies", "late"]
    why = {m.name: scheduler.measure(m, 100.0)[1] for m in models}
    assert why == {"crashes": "its process ended with exit status 7", "one": None, "refuses": "no such module",
                   "dies": "its process ended with exit status 9", "late": "the time was over after 1 of 2 kernels"}


def test_models_that_are_not_compiled_in_time_are_compiled_later(scheduler):
    models = named("sleeps", "one", "two")
    scheduler.jobs = 1
    scheduler.prepare(models, time.perf_counter() + 2)
    assert not any(map(scheduler.is_prepared, models)) and "sleeps" in scheduler.failures and not scheduler.workers
    assert scheduler.measure(models[1], 100.0)[1] is None
    assert scheduler.measure(models[0], 1.0) == (None, "not compiled within the time for it")


# ---- whole steps --------------------------------------------------------------------------------------------------

STEP = """
import json, sys, time
compiler, model, place = sys.argv[1:]
if model == "sleeps":
    time.sleep(600)
if (model, compiler) == ("crashes", "lilac"):
    sys.exit(7)
print("some other output")
if (model, compiler) == ("fails", "lilac"):
    print(json.dumps({"model": model, "compiler": compiler, "failure": "no such module"}), flush=True)
    sys.exit()
row = {"model": model, "compiler": compiler, "first_s": 2.0, "eager_ms": 9.0, "error": 0.0, "place": place}
print(json.dumps(row), flush=True)
for count, line in enumerate(sys.stdin):
    if (model, compiler) == ("stops", "triton") or (model, line) == ("dies", "replay\\n"):
        sys.exit(9)
    times = [(6.0 if compiler == "triton" else 3.0) + count] * 5
    print([] if (model, line) == ("waits", "replay\\n") else times, flush=True)
"""


@pytest.fixture
def measure_steps(monkeypatch):
    from lilac.bench.models import steps

    monkeypatch.setattr(steps, "command", lambda compiler, model, place: [
        sys.executable, "-c", STEP, compiler, model, ",".join(map(str, place))])
    monkeypatch.setattr(steps, "processors", lambda: list(range(4)))
    monkeypatch.setattr(steps, "ROUNDS", 3)

    def run(*models, seconds=100.0):
        found = []
        steps.measure(models, 2, time.perf_counter() + seconds, found.append)
        return {(row["model"], row["compiler"]): row for rows in found for row in rows}
    return run


def test_steps_of_both_compilers_are_timed_in_turn(measure_steps):
    found = measure_steps("one", "two")
    assert len(found) == 4 and {row["place"] for row in found.values()} == {"0,1", "2,3"}
    lilac, triton = (found["one", name] for name in ("lilac", "triton"))
    assert triton["step_rounds"] == [7, 8, 9] and lilac["step_ms"] == 5 and triton["step_ms"] == 8
    assert lilac["step_ratio"] == pytest.approx(8 / 5) and lilac["step_ratio_most"] == 7 / 4
    assert lilac["replay_rounds"] == [8, 9, 10] and lilac["replay_ratio"] == pytest.approx(12 / 9)
    assert all(row["first_s"] == 2 for row in found.values())


def test_a_step_that_cannot_be_captured_is_timed_with_the_host(measure_steps):
    found = measure_steps("waits", "dies")
    for model in ("waits", "dies"):
        assert found[model, "lilac"]["step_ms"] == 5 and "replay_ms" not in found[model, "lilac"]
        assert not any("failure" in found[model, name] for name in ("lilac", "triton"))


def test_a_process_of_steps_that_fails_stops_no_other(measure_steps):
    found = measure_steps("crashes", "fails", "stops", "one")
    assert found["crashes", "lilac"]["failure"] == "its process ended"
    assert found["fails", "lilac"]["failure"] == "no such module" and "step_ms" not in found["fails", "triton"]
    assert found["stops", "triton"]["failure"] == "no times of its steps"
    assert found["one", "lilac"]["step_ms"] == 5


def test_first_steps_that_are_not_done_in_time_are_not_reported(measure_steps):
    assert measure_steps("sleeps", seconds=2.0) == {}


def test_processors_are_divided_equally():
    from lilac.bench.models.steps import places

    assert places(list(range(16)), None) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]
    assert places([3, 5, 7], 2) == [[3], [5]] and places([3], None) == [[3]] and places([1, 2], 9) == [[1], [2]]



# ---- results ------------------------------------------------------------------------------------------------------

@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float32", "int64", "complex128"])
def test_copies_keep_values_strides_and_alignment(torch, dtype):
    from lilac.bench.models.capture import ALIGNMENT, copies, store

    whole = torch.arange(600).to(getattr(torch, dtype))
    views = [whole[first:first + 500] for first in range(17)]
    views += [whole[5:].as_strided((7, 9), (40, 2)), whole[3:3], whole[9], whole[1:2].expand(6)]
    views += [whole[7:87].view(8, 10).T]
    for made in copies(views), copies(store(views)):
        for copy, view in zip(made, views):
            assert (copy.size(), copy.stride(), copy.dtype) == (view.size(), view.stride(), view.dtype)
            assert torch.equal(copy, view)
            if view.numel():
                assert copy.data_ptr() % ALIGNMENT == view.data_ptr() % ALIGNMENT
                assert copy.untyped_storage().data_ptr() != whole.untyped_storage().data_ptr()


def test_a_tensor_that_is_passed_twice_remains_one_tensor(torch):
    from lilac.bench.models.capture import copies

    x = torch.zeros(8)
    first, number, second = copies((x, 5, x))
    assert first is second and first is not x and number == 5


def noise_only(torch, *, reverse=False, wrong=0.0):
    """A kernel whose second result consists of rounding errors: the mean of a layer norm's output. Reversed, its
    sums have another order. `wrong` is added to all means."""
    def run(args):
        x, normed, mean = args
        columns = torch.flip(x, [1]) if reverse else x
        centred = columns - columns.mean(1, keepdim=True)
        found = centred * torch.rsqrt(centred.square().mean(1, keepdim=True) + 1e-5)
        mean.copy_(found.cumsum(1)[:, -1] / x.shape[1] + wrong)
        normed.copy_(torch.flip(found, [1]) if reverse else found)
        return [normed, mean]
    return run


def judged(torch, ours, theirs, args):
    from lilac.bench.models import results
    from lilac.bench.models.capture import copies

    a, b = ours(copies(args)), theirs(copies(args))
    worst = max(map(results.difference, a, b))
    return worst, results.rounding(theirs, args, a, b)


def layer_norm_arguments(torch):
    torch.manual_seed(1)
    return torch.randn(512, 96) * 3 + 1, torch.zeros(512, 96), torch.zeros(512)


def test_a_result_of_rounding_errors_is_no_failure(torch):
    args = layer_norm_arguments(torch)
    error, found = judged(torch, noise_only(torch, reverse=True), noise_only(torch), args)
    assert error > 10 and 0 < found["excess"] <= 1 and found["change"] < 1e-5


def test_a_wrong_result_among_rounding_errors_is_a_failure(torch):
    error, found = judged(torch, noise_only(torch, wrong=1e-4), noise_only(torch), layer_norm_arguments(torch))
    assert error > 10 and found["excess"] > 1


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_a_wrong_softmax_is_a_failure(torch, dtype):
    def softmax(args, factor=1.0):
        args[1].copy_(torch.softmax(args[0] * factor, -1))
        return [args[1]]

    x = torch.randn(64, 256).to(getattr(torch, dtype))
    error, found = judged(torch, lambda args: softmax(args, 1.5), softmax, (x, torch.zeros_like(x)))
    assert error > 1 and found["excess"] > 1
    assert judged(torch, softmax, softmax, (x, torch.zeros_like(x)))[0] == 0


def test_one_ill_conditioned_element_does_not_excuse_the_others(torch):
    def divide(args, wrong=0.0):
        args[1].copy_(1 / (args[0] - 1) + wrong)
        return [args[1]]

    x = torch.full((4096,), 3.0)
    x[0] = 1 + 2**-12  # a unit in the last place changes the result, 4096, by 2
    error, found = judged(torch, lambda args: divide(args, 20.0), divide, (x, torch.zeros(4096)))
    assert error > 1 and found["difference"] < 16 * found["change"]  # the maximum norm alone would excuse it
    assert found["excess"] > 1


def test_integers_and_infinities(torch):
    from lilac.bench.models import results

    def positive(args, flip=0):
        args[1].copy_(args[0] - args[0].flip(0) > 0)
        args[1][:flip] ^= True
        return [args[1]]

    x = torch.randn(1000)
    zeros = torch.zeros(1000, dtype=torch.bool)
    assert judged(torch, lambda args: positive(args, 3), positive, (x, zeros))[1]["excess"] == float("inf")
    tied = torch.cat([x, x.flip(0)])  # x - x: the sign of a difference of equal numbers is rounding
    assert judged(torch, lambda args: positive(args, 3), positive, (tied, zeros.repeat(2)))[1]["excess"] <= 1
    one, other = torch.tensor([1.0, float("inf")]), torch.tensor([1.0, 2.0])
    assert results.difference(one, other) == results.difference(other, one) == float("inf")
    assert results.difference(one, one.clone()) == 0
    nan = torch.tensor([float("nan"), 1.0])
    assert results.difference(nan, nan.clone()) == 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_a_perturbation_is_at_most_a_unit_in_the_last_place(torch, dtype):
    from lilac.bench.models import results

    kind = getattr(torch, dtype)
    x = torch.randn(1000).to(kind)
    x[:4] = torch.tensor([0.0, float("inf"), float("nan"), torch.finfo(kind).max], dtype=kind)
    args = (x, x, x[::2], 7, torch.arange(3))
    drawn = results.perturbed(args, 1)
    assert drawn[0] is drawn[1] and drawn[3] == 7 and torch.equal(drawn[4], args[4])
    assert drawn[2].stride() == (2,)
    assert drawn[0][0] == 0 and drawn[0][1] == float("inf") and drawn[0][2].isnan() and drawn[0][3].isfinite()
    moved = (drawn[0][4:].double() - x[4:].double()).abs() / x[4:].double().abs()
    assert 0 < moved.max() <= torch.finfo(kind).eps


def test_arguments_are_copied_with_their_strides_also_from_the_hosts_memory(torch):
    from lilac.bench.models import capture

    x = torch.arange(24.0).reshape(4, 6)
    args = (x, x, x[1:, ::2], 5, x.expand(2, 4, 6))
    for held in (args, capture.store(args)):
        made = capture.copies(held)
        assert made[0] is made[1] and made[0] is not x and made[3] == 5
        for a, b in zip(made, args):
            if isinstance(b, torch.Tensor):
                assert torch.equal(a, b) and a.stride() == b.stride()
        made[0].zero_()
        assert x[3, 5] == 23 and torch.equal(capture.copies(held)[0], x)


class Stub:
    """The parts of kernels.Measurer that need no GPU, with measurements of known times."""

    def __init__(self, kernels, times):
        self.times, self.long, self.keep = times, [], None
        self.measure = kernels.Measurer.measure.__get__(self)

    def quick(self, entry):
        if entry.launch.name in self.times:
            ms = self.times[entry.launch.name]
            entry.best, entry.chosen = {"triton": {(): ms}, "lilac": {(): ms}}, ()
            entry.row.update(kernel("llama", entry.launch.name, entry.launch.count, ms, ms, timed=0))

    def longer(self, entry):
        self.long.append(entry.launch.name)
        entry.row["timed"] = 100

    def attempt(self, entry, names, function):
        function()


def entries_of(kernels, *names):
    from lilac.bench.models.capture import Launch

    return [kernels.Entry(Launch(name, "", (), {}, 2), {}, {}) for name in names]


def test_kernels_that_take_little_of_the_time_are_measured_quickly(torch):
    from lilac.bench.models import kernels

    stub = Stub(kernels, {"large": 1.0, "small": 0.0019, "middle": 0.003})
    entries = entries_of(kernels, "large", "small", "refused", "middle")
    seen = []
    assert stub.measure(entries, lambda: False, lambda number, entry: seen.append(number)) == 4
    assert stub.long == ["large", "middle"] and sorted(seen) == [1, 2, 3, 4]
    assert [entry.row.get("timed") for entry in entries] == [100, 0, None, 100]


def test_the_time_stops_a_measurement_after_a_kernel(torch):
    from lilac.bench.models import kernels

    stub = Stub(kernels, {"large": 1.0, "middle": 0.003})
    assert stub.measure(entries_of(kernels, "large", "middle"), lambda: True, lambda *_: None) == 0
    assert stub.measure(entries_of(kernels, "large", "middle"), lambda: bool(stub.long), lambda *_: None) == 1


# ---- kernels that programs launch themselves


class Compiled:
    """What a compilation of the fake Triton below returns."""

    def __init__(self, compiler, values):
        self.metadata = types.SimpleNamespace(shared=0, lilac={"compiler": compiler} if compiler == "lilac" else None)
        self.n_regs, self.n_spills, self.values, self.launched = 32, 0, values, []

    def _init_handles(self):
        if self.values[-1] == "too large":
            raise RuntimeError("out of resources")

    def __getitem__(self, grid):
        return lambda *values, stream: self.launched.append((grid, values, stream))


@pytest.fixture
def program(monkeypatch):
    """(the recorder, the tuned kernel, the plain kernel) of a fake Triton with the parts that jit.py replaces."""
    import importlib.machinery
    import inspect

    from lilac.bench.models import jit

    current, ran = ["triton"], []
    monkeypatch.setattr(jit, "memory_is_short", lambda: False)

    class JITFunction:
        def __init__(self, function):
            self.fn, self.signature, self.__name__ = function, inspect.signature(function), function.__name__
            self.params = list(self.signature.parameters.values())

        def run(self, *args, grid, warmup, **options):
            bound = self.signature.bind(*args, **{k: v for k, v in options.items() if k in self.signature.parameters})
            if warmup:
                return Compiled(current[0], list(bound.arguments.values()))
            ran.append((self.__name__, dict(bound.arguments), options.get("num_warps")))
            return None

    class Config:
        def __init__(self, warps, **kwargs):
            self.kwargs, self.num_warps, self.num_stages, self.pre_hook = kwargs, warps, 3, None

        def all_kwargs(self):
            return {**self.kwargs, "num_warps": self.num_warps}

        def __str__(self):
            return f"{self.kwargs} {self.num_warps}"

    class Autotuner:
        def __init__(self, fn, configs):
            self.fn, self.configs, self.base_fn = fn, configs, fn
            self.arg_names = [p.name for p in fn.params]

        def prune_configs(self, options):
            return self.configs

        def run(self, *args, **options):
            raise AssertionError("an autotuner measures")

    class Compilers:
        def __call__(self, name, function):
            def under(*args):
                current[0] = name
                return function(*args)
            return under

    for name, content in {"triton.runtime.autotuner": {"Autotuner": Autotuner},
                          "triton.runtime.jit": {"JITFunction": JITFunction}}.items():
        monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(**content))
    for name in ("triton", "triton.runtime"):
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        monkeypatch.setitem(sys.modules, name, module)

    def tuned(x, y, n, BLOCK):
        pass

    def plain(x, n, what):
        pass

    kernel = Autotuner(JITFunction(tuned), [Config(warps, BLOCK=block) for warps in (2, 4) for block in (16, 32, 64)])
    return types.SimpleNamespace(recorder=jit.Recorder(Compilers()), tuned=kernel, plain=JITFunction(plain), ran=ran,
                                 limit=jit.CONFIGURATIONS)


def test_the_kernels_of_a_program_are_compiled_by_both_and_recorded(torch, program):
    x, y = torch.arange(8.0), torch.zeros(8)

    def run():
        for _ in range(2):
            program.tuned.run(x, y, 8, grid=lambda meta: (meta["BLOCK"],), warmup=False)
        program.plain.run(x, 8, "small", grid=(3,), warmup=False, num_warps=8)

    assert program.recorder.compile(run) == 2
    first, second = program.recorder.made.items()
    assert first[0][0] == "tuned" and set(first[1]) == {"triton", "lilac"}
    assert len(first[1]["lilac"]) == program.limit == len(first[1]["triton"])
    assert [key[1:] for key in second[1]["lilac"]] == [(8, 3)]
    launches = program.recorder.launches(run)
    assert [(one.name, one.count, one.source) for one in launches] == [("tuned", 2, first[0]), ("plain", 1, second[0])]
    assert [len(one.args) for one in launches] == [2, 1]
    assert launches[0].args[0] is not x and torch.equal(launches[0].args[0], x)
    assert len(program.ran) == 6  # the program's own launches, once for each run
    for (options, _, _), (launcher, kernel) in first[1]["lilac"].items():
        launcher(*launches[0].args, stream=5)
        (grid, values, stream), = kernel.launched
        assert stream == 5 and values[0] is launches[0].args[0] and values[1] is launches[0].args[1]
        assert values[2] == 8 and grid == (values[3], 1, 1) and dict(options)["BLOCK"] == values[3]
        assert launcher.tensor_names() == ["x", "y"]


def test_a_kernel_that_cannot_be_loaded_or_copied_is_a_failure(torch, program):
    x = torch.arange(8.0)
    program.recorder.compile(lambda: program.plain.run(x, 8, "too large", grid=(3,), warmup=False))
    (made,) = program.recorder.made.values()
    assert all("no configuration" in str(made[name]) for name in ("triton", "lilac"))
    with pytest.raises(RuntimeError, match="argument of type dict"):
        program.recorder.compile(lambda: program.plain.run(x, 8, {}, grid=(3,), warmup=False))
