"""What switching tells torch.compile, with stand-ins for the modules of PyTorch that it finds. (With
PyTorch itself: tests/gpu.)"""

import functools
import os
import sys
import threading
from types import SimpleNamespace

import pytest

import lilac.triton
from lilac.triton import switch


@pytest.fixture
def torch(monkeypatch):
    made = SimpleNamespace(config=SimpleNamespace(cache_key_tag="mine"), inductor=SimpleNamespace(compile_threads=8),
                           asked=[])

    @functools.lru_cache(maxsize=None)
    def triton_hash_with_backend():
        made.asked.append(os.environ.get("LILAC_TRITON"))
        return len(made.asked)

    made.hash = triton_hash_with_backend
    helpers = SimpleNamespace(triton_hash_with_backend=made.hash)
    made.left = threading.Event()
    pool = SimpleNamespace(shutdown=made.left.set)
    made.pools = {"a pool": pool}
    made.workers = SimpleNamespace(AsyncCompile=SimpleNamespace(_ready_future=object()), _pool_set=[pool])
    made.workers.after_fork = made.workers._pool_set.clear
    for name, module in {"torch.compiler.config": made.config, "torch.utils._triton": helpers,
                         "torch._inductor.async_compile": made.workers, "torch._inductor.config": made.inductor}.items():
        monkeypatch.setitem(sys.modules, name, module)
    return made


def test_caches_know_the_compiler(torch):
    assert torch.hash() == 1
    with lilac.triton.enabled():
        one = torch.config.cache_key_tag
        assert one.startswith("minelilac-") and torch.hash() == 2
        with lilac.triton.enabled("triton"):
            assert torch.config.cache_key_tag not in ("mine", one) and torch.hash() == 3
            assert torch.config.cache_key_tag.count("lilac-") == 1
        assert torch.config.cache_key_tag == one
    assert torch.config.cache_key_tag == "mine"
    torch.hash()
    assert torch.asked == [None, "1", "fallback", None]


def test_workers_are_started_anew(torch):
    lilac.triton.enable()
    assert torch.workers._pool_set == [] and torch.workers.AsyncCompile._ready_future is None
    assert torch.left.wait(10)
    assert torch.inductor.compile_threads == 8


def test_worker_of_a_process_with_lilac(torch, monkeypatch):
    """Its tag came with the environment, and is the same after lilac was switched on there too."""
    with lilac.triton.enabled():
        tag = torch.config.cache_key_tag
    torch.config.cache_key_tag = tag
    monkeypatch.setenv("TORCH_COMPILE_CACHE_KEY_TAG", tag)
    with lilac.triton.enabled():
        assert torch.config.cache_key_tag == os.environ["TORCH_COMPILE_CACHE_KEY_TAG"] == tag


def test_no_workers_without_the_hook(torch, monkeypatch):
    """They would compile with Triton, in silence."""
    monkeypatch.setattr(switch, "hook_is_installed", lambda: False)
    with pytest.warns(RuntimeWarning, match="no worker processes"):
        lilac.triton.enable()
    assert torch.inductor.compile_threads == 1 and os.environ["TORCHINDUCTOR_COMPILE_THREADS"] == "1"
    lilac.triton.disable()
    assert torch.inductor.compile_threads == 8 and "TORCHINDUCTOR_COMPILE_THREADS" not in os.environ


def test_thehook_is_installed():
    assert switch.hook_is_installed()
