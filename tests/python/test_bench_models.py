"""`python -m lilac.bench models` without a GPU: the list of models, the report of known rows."""

import json
import subprocess
import sys

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


def test_the_list_has_two_halves_of_the_same_size():
    names = [model.name for model in zoo.MODELS]
    halves = [[m for m in zoo.MODELS if m.half == half] for half in report.HALVES]
    assert len(names) == len(set(names)) >= 20
    assert len(halves[0]) == len(halves[1]) and sum(map(len, halves)) == len(names)
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


def command(*words):
    return subprocess.run([sys.executable, "-m", "lilac.bench", "models", *words], capture_output=True, text=True,
                          check=False)


def test_the_command_lists_models_and_refuses_unknown_ones():
    done = command("--list")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == len(zoo.MODELS)
    done = command("no_such_model")
    assert done.returncode == 2 and "no_such_model" in done.stderr
    assert command("--kernels", "--steps").returncode == 2
