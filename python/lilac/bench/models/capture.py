"""The kernels that one step of a compiled model launches.

`launches(run)` calls `run()` and returns one `Launch` for each different pair of a kernel and its arguments, in the
order of the first launches, with the number of launches. Tensors are copied before the launch, with their strides,
so that the kernel can be run again later with the same values; indices in them remain valid. A copy's address has
the same remainder modulo ALIGNMENT as the original's: views that begin within a vector stay so.
"""

import contextlib
import dataclasses
import os

ALIGNMENT = 16  # bytes, of the widest access and of what Triton assumes of pointers
FREE = 0.2  # of the GPU's memory: below, recorded arguments are kept in the host's


@dataclasses.dataclass
class Launch:
    name: str        # of the kernel
    source: object   # the generated Python file, one kernel each; of a model that is not compiled, see jit.py
    args: tuple      # tensors (or Stored ones) and numbers, as the kernel was launched; only tensors, see jit.py
    options: dict    # keyword arguments of the launch
    count: int = 0   # launches with these shapes in the step


class Changed(RuntimeError):
    """This version of PyTorch launches its kernels in a way that is not known here."""


def memory(value):
    """The storage from the first to the last element of a tensor, as a vector."""
    import torch

    needed = 1 + sum((n - 1) * s for n, s in zip(value.size(), value.stride())) if value.numel() else 0
    return torch.as_strided(value, (needed,), (1,))


@dataclasses.dataclass(eq=False)
class Stored:
    """A tensor in the host's memory, for want of the GPU's."""
    flat: object
    size: tuple
    stride: tuple
    device: object
    remainder: int  # of the address modulo ALIGNMENT


def store(args):
    """The arguments with their tensors in the host's memory."""
    import torch

    made = {id(a): Stored(memory(a).cpu(), a.size(), a.stride(), a.device, a.data_ptr() % ALIGNMENT)
            for a in args if isinstance(a, torch.Tensor)}
    return tuple(made.get(id(a), a) for a in args)


def _placed(flat, device, remainder):
    """A copy of a vector on the device, at an address with this remainder modulo ALIGNMENT."""
    import torch

    made = torch.empty(flat.numel() + ALIGNMENT // flat.element_size(), dtype=flat.dtype, device=device)
    first = (remainder - made.data_ptr()) % ALIGNMENT // flat.element_size()
    return made[first:first + flat.numel()].copy_(flat.detach())


def _copy(value):
    """A tensor with the same values, size, strides and alignment in storage of its own."""
    import torch

    if isinstance(value, Stored):
        flat = _placed(value.flat, value.device, value.remainder)
        return torch.as_strided(flat, value.size, value.stride)
    if not isinstance(value, torch.Tensor):
        return value
    flat = _placed(memory(value), value.device, value.data_ptr() % ALIGNMENT)
    return torch.as_strided(flat, value.size(), value.stride())


def copies(args):
    """Fresh copies of the arguments of a launch. A tensor that is passed twice remains one tensor."""
    made = {}
    return tuple(made.setdefault(id(a), _copy(a)) for a in args)


def memory_is_short():
    import torch

    free, whole = torch.cuda.mem_get_info()
    return free < FREE * whole


def shape(value):
    import torch

    if isinstance(value, torch.Tensor):
        return (tuple(value.size()), value.stride(), value.dtype, value.data_ptr() % ALIGNMENT)
    return value


def _autotuner():
    try:
        from torch._inductor.runtime.triton_heuristics import CachingAutotuner
    except ImportError as problem:
        raise Changed(str(problem)) from problem
    return CachingAutotuner


@contextlib.contextmanager
def _replaced(name, make):
    """Replaces a method of the autotuner by make(the method)."""
    autotuner = _autotuner()
    before = getattr(autotuner, name, None)
    if before is None:
        raise Changed(f"CachingAutotuner has no method {name}")
    setattr(autotuner, name, make(before))
    try:
        yield
    finally:
        setattr(autotuner, name, before)


def _source(tuner):
    if not tuner.filename or not os.path.exists(tuner.filename):
        raise Changed(f"the source of {tuner.fn.__name__} is not on disk")
    return tuner.filename


def first_options():
    """In this context a kernel runs with the first of its launch options. The autotuner measures nothing, and stores
    no choice beside the generated file, where a fresh autotuner of the file would find it."""
    def make(before):
        def first(self, *args, **options):
            self.launchers = self.launchers[:1]
        return first
    return _replaced("autotune_to_one_config", make)


def sources(run):
    """The generated files of the kernels that `run()` launches, in the order of the first launches."""
    found = {}

    def make(before):
        def recorded(self, *args, **options):
            found[_source(self)] = None
            return before(self, *args, **options)
        return recorded

    with _replaced("run", make):
        run()
    return list(found)


def launches(run):
    """The launches of `run()`, which compiled everything in a call before this one."""
    found = {}

    def make(before):
        def recorded(self, *args, stream, **options):
            key = (_source(self), tuple(map(shape, args)), tuple(sorted(options)))
            if key not in found:
                copied = copies(args)
                found[key] = Launch(self.fn.__name__, self.filename,
                                    store(copied) if memory_is_short() else copied, dict(options))
            found[key].count += 1
            return before(self, *args, stream=stream, **options)
        return recorded

    with _replaced("run", make):
        run()
    return list(found.values())
