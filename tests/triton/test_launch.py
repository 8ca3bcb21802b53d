"""Launching is Triton's: its exceptions, which name the kernel."""

import kernels
import pytest
import standin
from standin import Pointer
from triton.runtime.errors import OutOfResources

import lilac.triton


def scale(grid=(4,)):
    return kernels.scale[grid](Pointer("fp32"), Pointer("fp32"), 4096, 2.0, 1024)


def words(error):
    return " ".join([str(error), *getattr(error, "__notes__", [])])


@pytest.mark.parametrize("kind", [ValueError, RuntimeError])
def test_error_of_the_launcher(kind):
    driver = standin.use(error=kind("Pointer argument (at 0) cannot be accessed from Triton (cpu tensor?)"))
    with lilac.triton.enabled():
        with pytest.raises(kind) as caught:
            scale()
        assert type(caught.value) is kind and "'scale'" in words(caught.value)
        assert words(caught.value).startswith("Pointer argument")
        driver.error = None
        assert scale().name == "scale"  # the process lives on
    assert driver.launched == ["scale", "scale"]


def test_named_once():
    error = RuntimeError("illegal memory access in kernel 'scale'")
    standin.use(error=error)
    with lilac.triton.enabled(), pytest.raises(RuntimeError) as caught:
        scale()
    assert words(caught.value) == "illegal memory access in kernel 'scale'"


def test_shared_memory_of_a_smaller_device():
    """The device says at the launch what it has."""
    standin.use(shared=1024)
    with lilac.triton.enabled(), pytest.raises(OutOfResources, match="out of resource: shared memory") as caught:
        kernels.gather[(1,)](Pointer("fp32"), Pointer("i32"), Pointer("fp32"), 1024)
    assert "'gather'" in words(caught.value)


def test_nothing_is_added_when_off():
    standin.use(error=RuntimeError("no"))
    lilac.triton.enable()
    lilac.triton.disable()
    with pytest.raises(RuntimeError) as caught:
        scale()
    assert words(caught.value) == "no"


def test_metadata_for_the_launcher():
    """Everything that Triton's own stages leave for the launcher is there, and the same where the
    two compilers have no choice."""
    own = kernels.scale.warmup(Pointer("fp32"), Pointer("fp32"), 4096, 2.0, 1024, grid=(4,)).metadata
    with lilac.triton.enabled():
        ours = kernels.scale.warmup(Pointer("fp32"), Pointer("fp32"), 4096, 2.0, 1024, grid=(4,)).metadata
    assert set(ours._fields) == set(own._fields) | {"lilac"}
    for key in set(own._fields) - {"hash", "shared"}:
        assert getattr(ours, key) == getattr(own, key), key
    assert ours.shared == own.shared == 0


def parameters(ptx):
    head = ptx[ptx.index(".entry") : ptx.index(")", ptx.index(".entry"))]
    return head.count(".param")


def test_parameters_for_the_launcher():
    own = kernels.scale.warmup(Pointer("fp32"), Pointer("fp32"), 4096, 2.0, 1024, grid=(4,))
    with lilac.triton.enabled():
        ours = kernels.scale.warmup(Pointer("fp32"), Pointer("fp32"), 4096, 2.0, 1024, grid=(4,))
    assert parameters(ours.asm["ptx"]) == parameters(own.asm["ptx"])


def test_nothing_is_added_to_a_launch():
    """A launch runs Triton's own `run`, and reads its caches as plain attributes."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    run, tune = JITFunction.run, Autotuner.run
    with lilac.triton.enabled():
        assert JITFunction.run is run and Autotuner.run is tune
        assert "device_caches" not in vars(JITFunction) and "cache" not in vars(Autotuner)
        assert "device_caches" in vars(kernels.scale) and "cache" in vars(kernels.tuned)


def test_error_in_an_autotuned_kernel():
    standin.use(error=RuntimeError("no"))
    with lilac.triton.enabled(), pytest.raises(RuntimeError) as caught:
        kernels.tuned[(4,)](Pointer("fp32"), Pointer("fp32"), 4096)
    assert "'tuned'" in words(caught.value)


def test_functions_made_while_enabled():
    """A function that is made while lilac is enabled has caches of both compilers too."""
    import triton

    with lilac.triton.enabled():
        made = triton.jit(kernels.scale.fn)
        arguments = Pointer("fp32"), Pointer("fp32"), 4096, 2.0, 1024
        ours = made.warmup(*arguments, grid=(4,))
    own = made.warmup(*arguments, grid=(4,))
    assert hasattr(ours.metadata, "lilac") and not hasattr(own.metadata, "lilac")
    with lilac.triton.enabled():
        assert made.warmup(*arguments, grid=(4,)) is ours
    assert made.warmup(*arguments, grid=(4,)) is own
