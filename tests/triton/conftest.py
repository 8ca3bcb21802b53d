import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import standin  # noqa: E402

import lilac.triton  # noqa: E402


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache on disk of its own, no kernel in memory, no GPU, and lilac off before and after."""
    import kernels

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    forget(kernels)
    standin.use()
    lilac.triton.disable()
    lilac.triton.reset_report()
    yield tmp_path / "cache"
    lilac.triton.disable()
    forget(kernels)


def forget(module):
    """Empties the caches in memory, with each compiler switched on in turn."""
    from triton.runtime.jit import JITFunction

    for value in vars(module).values():
        function = value.fn if hasattr(value, "configs") else value
        if isinstance(function, JITFunction):
            for store in [one for name, one in vars(function).items() if name.startswith("device_caches")]:
                store.clear()
            for store in [one for name, one in vars(value).items() if name.startswith("cache")]:
                if isinstance(store, dict):
                    store.clear()


@pytest.fixture
def program(tmp_path):
    """Runs a program in a process of its own, and gives what it printed."""
    import subprocess

    def run(text, *arguments, fails=False, **environment):
        file = tmp_path / "program.py"
        file.write_text(text)
        made = {name: value for name, value in os.environ.items() if not name.startswith("LILAC_")}
        made.update(environment, PYTHONPATH=HERE)
        done = subprocess.run([sys.executable, "-B", *arguments, str(file)], env=made, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=120)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout + (done.stderr if fails else "")

    run.errors = None
    return run
