"""torch.compile in two processes of one host, with one GPU each: DDP, FSDP2 and tensor parallelism. The
program runs under Triton, then twice under lilac with one folder of caches for both processes, at first empty."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import numpy
import pytest

PROGRAM = pathlib.Path(__file__).parent / "programs" / "distributed.py"
WAYS = ("ddp", "fsdp2", "tensor_parallel")
RUNS = {"triton": "triton", "first": "lilac", "second": "lilac"}  # the run and its folder of caches
CACHES = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")


def run(folder, name, started):
    made = dict(started)
    for cache in CACHES:
        made[cache] = str(folder / RUNS[name] / cache)
    made["LILAC_TRITON"] = "0" if name == "triton" else "1"
    made["LILAC_TRITON_REPORT"] = str(folder / f"{name}.jsonl")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", PROGRAM,
               folder / f"{name}.npz"]
    process = subprocess.Popen(command, env=made, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True)
    try:
        output, _ = process.communicate(timeout=280)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the processes that torchrun started too
        output, _ = process.communicate()
        pytest.fail(f"the run '{name}' has not ended after 280 s\n{output[-4000:]}")
    assert process.returncode == 0, output[-4000:]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, started):
    import torch

    if torch.cuda.device_count() < 2:
        pytest.skip(f"two GPUs are needed; {torch.cuda.device_count()} found")
    made = tmp_path_factory.mktemp("distributed")
    for name in RUNS:
        run(made, name, started)
    return made


@pytest.fixture(scope="module")
def saved(folder):
    return {name: dict(numpy.load(folder / f"{name}.npz")) for name in RUNS}


def rows(folder, name):
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def distance(a, b):
    return numpy.linalg.norm(a.astype("f8") - b) / (numpy.linalg.norm(b.astype("f8")) + 1e-30)


def check_equal(found, expected, way, other=None):
    """Equal except for the order of f32 additions. `other`: the way that `expected` is of."""
    for name in [name for name in found if name.startswith(f"{way}.") and ".compilers." not in name]:
        limit = 1e-5 if name.endswith(".losses") else 1e-4
        assert distance(found[name], expected[name.replace(way, other or way, 1)]) < limit, name


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["first", "second"])
def test_losses_and_gradients(saved, name, way):
    losses = saved[name][f"{way}.losses"]
    assert len(losses) == 3 and numpy.isfinite(losses).all()
    check_equal(saved[name], saved["triton"], way)


@pytest.mark.parametrize("name", RUNS)
def test_ways_compute_the_same(saved, name):
    for way in WAYS[1:]:
        check_equal(saved[name], saved[name], way, WAYS[0])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RUNS)
def test_compiler_of_every_kernel(saved, name, way):
    for rank in range(2):
        compilers = saved[name][f"{way}.compilers.{rank}"]
        assert len(compilers) >= 7 and set(compilers) == {RUNS[name]}, f"process {rank}"


def test_caches_are_shared(folder):
    first = rows(folder, "first")
    assert first and {row["compiler"] for row in first} == {"lilac"}
    assert not all(row["cached"] for row in first)
    again = [row["name"] for row in rows(folder, "second") if not row["cached"]]
    assert not again, "compiled although an earlier run had compiled them"


def test_cache_entries_are_complete(folder):
    """Each group file names the files of its entry. Nothing of an unfinished write remains."""
    cache = folder / "lilac" / "TRITON_CACHE_DIR"
    groups = list(cache.rglob("__grp__*.json"))
    assert groups
    for group in groups:
        for file in json.loads(group.read_text())["child_paths"].values():
            assert pathlib.Path(file).stat().st_size > 0, file
    assert not list(cache.rglob("tmp.pid_*"))
