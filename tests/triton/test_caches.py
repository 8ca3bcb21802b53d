"""Kernels of the two compilers do not mix: on disk, in memory, in the autotuner, in either order."""

import glob
import json
import os

import kernels
import pytest
from standin import Pointer

import lilac.triton
from lilac.triton import switch

ORDERS = [(False, True), (True, False)]


def compiled_by_lilac(kernel):
    stages = set(kernel.asm)
    assert "ttgir" in stages and ("llir" in stages) != hasattr(kernel.metadata, "lilac")
    return hasattr(kernel.metadata, "lilac")


def scale(**options):
    return kernels.scale.warmup(Pointer("fp32"), Pointer("fp32"), 4096, 2.0, 1024, grid=(4,), **options)


def turn(lilac_is_on):
    (lilac.triton.enable if lilac_is_on else lilac.triton.disable)()


def entries(cache):
    return {os.path.dirname(path) for path in glob.glob(str(cache / "*" / "scale.json"))}


@pytest.mark.parametrize("order", ORDERS)
def test_in_memory(order):
    made = {}
    for on in order:
        turn(on)
        made[on] = scale()
        assert compiled_by_lilac(made[on]) == on
        assert scale() is made[on]
    for on in order * 2:
        turn(on)
        assert scale() is made[on]


@pytest.mark.parametrize("order", ORDERS)
def test_on_disk(cache, order):
    from conftest import forget

    for count, on in enumerate(order, 1):
        turn(on)
        scale()
        assert len(entries(cache)) == count
    for on in order:  # a process that starts anew finds both
        forget(kernels)
        lilac.triton.reset_report()
        turn(on)
        assert compiled_by_lilac(scale()) == on
        assert len(entries(cache)) == 2
        assert [row.cached for row in lilac.triton.report()] == ([True] if on else [])


def test_direct_compilation():
    """triton.compile, with no JITFunction's cache before it."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    source = ASTSource(kernels.scale, {"x": "*fp32", "y": "*fp32", "n": "i32", "FACTOR": "constexpr",
                                       "BLOCK": "constexpr"}, {"FACTOR": 2.0, "BLOCK": 1024})
    for on in (False, True, False, True):
        turn(on)
        assert compiled_by_lilac(triton.compile(source, target=GPUTarget("cuda", 90, 32))) == on


def test_two_builds(cache, monkeypatch):
    """Another build of lilac does not take this one's kernels from the disk, nor in memory."""
    turn(True)
    first = scale()
    monkeypatch.setattr(switch, "build_key", lambda: "lilac-another-build")
    turn(False)
    turn(True)
    second = scale()
    assert second is not first and len(entries(cache)) == 2
    monkeypatch.undo()


def test_build_key_names_the_library():
    key = switch.build_key()
    assert key.startswith(f"lilac-{lilac.__version__}-") and len(key.rsplit("-", 1)[1]) == 24


def test_both_ways_of_refusing(cache):
    """With and without a fall-back are two modes: a kernel that Triton compiled for the one is not
    found by the other."""
    arguments = Pointer("fp32"), Pointer("fp32"), 32
    with pytest.warns(lilac.triton.FallbackWarning):
        with lilac.triton.enabled("triton"):
            kernels.increment.warmup(*arguments, grid=(1,))
    with pytest.raises(lilac.CompilationError):
        with lilac.triton.enabled():
            kernels.increment.warmup(*arguments, grid=(1,))


def test_another_ptxas(cache, monkeypatch, tmp_path):
    """LILAC_PTXAS is part of the key too, and is what runs."""
    from triton import knobs

    own = tmp_path / "ptxas"
    log = tmp_path / "log"
    own.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec "{knobs.nvidia.ptxas.path}" "$@"\n')
    own.chmod(0o755)
    turn(True)
    plain = scale()
    turn(False)
    monkeypatch.setenv("LILAC_PTXAS", str(own))
    turn(True)
    other = scale()
    assert len(entries(cache)) == 2 and other.asm["ptx"] == plain.asm["ptx"]
    flags = log.read_text().split()
    assert {"-lineinfo", "-v", "--gpu-name=sm_90a"} <= set(flags) and flags[-2] == "-o"


def test_ptxas_named_late(cache, monkeypatch, tmp_path):
    """The key names the ptxas that runs, whichever ran first in this process: torch.compile sets
    TRITON_PTXAS_PATH when it compiles its first kernel, after it asked for the key or before."""
    from conftest import forget
    from triton import knobs

    own = tmp_path / "ptxas"
    own.write_text(f'#!/bin/sh\ncase "$*" in *--version*) echo "of torch, release 13.9" ;; '
                   f'*) exec "{knobs.nvidia.ptxas.path}" "$@" ;; esac\n')
    own.chmod(0o755)
    turn(True)
    scale()  # with Triton's ptxas
    for path in (str(own), knobs.nvidia.ptxas.path, str(own)):
        monkeypatch.setenv("TRITON_PTXAS_PATH", path)
        forget(kernels)
        scale()
        assert len(entries(cache)) == 2


@pytest.mark.parametrize("order", ORDERS)
def test_autotuner(order):
    """The best configuration found with one compiler is not the other's."""
    arguments = Pointer("fp32"), Pointer("fp32"), 4096
    found = {}
    for on in order:
        turn(on)
        assert kernels.tuned.cache == {}
        kernels.tuned.run(*arguments, grid=(4,), warmup=False)
        assert len(kernels.tuned.cache) == 1
        found[on] = kernels.tuned.cache
    assert found[False] is not found[True]
    for on in order:
        turn(on)
        assert kernels.tuned.cache is found[on]


def test_autotuner_on_disk(cache, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_AUTOTUNING", "1")
    monkeypatch.setattr(kernels.tuned, "cache_results", True)
    for on in (True, False):
        turn(on)
        kernels.tuned.run(Pointer("fp32"), Pointer("fp32"), 4096, grid=(4,), warmup=False)
    assert len(glob.glob(str(cache / "*" / "tuned.autotune.json"))) == 2


def test_what_is_stored(cache):
    turn(True)
    scale()
    (folder,) = entries(cache)
    stored = {name for name in os.listdir(folder) if not name.startswith("__grp__")}
    assert stored == {"scale.source", "scale.ttir", "scale.ttgir", "scale.ptx", "scale.cubin", "scale.json"}
    with open(os.path.join(folder, "scale.json"), encoding="utf-8") as file:
        metadata = json.load(file)
    assert metadata["lilac"]["compiler"] == "lilac" and metadata["lilac"]["version"] == lilac.__version__


def test_attributes_stay_triton_s():
    """With lilac off, the caches are the attributes that Triton's code has always seen."""
    turn(False)
    assert kernels.scale.device_caches is vars(kernels.scale)["device_caches"]
    kernels.scale.device_caches = replacement = {"a": 1}
    assert vars(kernels.scale)["device_caches"] is replacement
    from collections import defaultdict

    kernels.scale.device_caches = defaultdict(kernels.scale.create_binder)
