"""An active driver for machines with no GPU, and tensors that are an address and a type.

`kernel.warmup(…)` compiles under it. A launch gets as far as its launcher, which `Driver.launches`
stands for: it raises what it is given, or counts.
"""

import functools

from triton.backends.compiler import GPUTarget
from triton.runtime import driver


class Launcher:
    def __init__(self, source, metadata):
        self.metadata = metadata

    def __call__(self, *arguments):
        active = driver.active
        active.launched.append(self.metadata.name)
        if active.error is not None:
            raise active.error


class Utils:
    """What Triton asks of a device: here what a test sets."""

    def __init__(self, shared):
        self.shared = shared

    def get_device_properties(self, device):
        return {"max_shared_mem": self.shared, "multiprocessor_count": 132}

    def load_binary(self, name, kernel, shared, device):
        assert kernel[:4] == b"\x7fELF"
        return object(), object(), 32, 0, 1024  # module, function, registers, spills, most threads

    def unload_module(self, module):
        pass


class Driver:
    launcher_cls = Launcher

    def __init__(self, capability=90, shared=232448, error=None):
        self.capability, self.error, self.launched = capability, error, []
        self.utils = Utils(shared)

    @staticmethod
    def is_active():
        return True

    def get_current_target(self):
        return GPUTarget("cuda", self.capability, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_benchmarker(self):
        # Longer for every configuration that follows: the first one wins.
        count = iter(range(1, 1000))

        def bench(call, quantiles):
            call()
            return [float(next(count))] * len(quantiles)

        return bench


def use(capability=90, shared=232448, error=None):
    from triton.compiler.compiler import max_shared_mem

    max_shared_mem.cache_clear()
    made = Driver(capability, shared, error)
    driver.set_active(made)
    return made


class Pointer:
    """A tensor as far as compiling goes."""

    def __init__(self, dtype, address=0):
        self.dtype, self.address = dtype, address

    def data_ptr(self):
        return self.address


@functools.lru_cache(maxsize=None)
class Elements:
    """The type of a tensor's elements, as `TensorDescriptor` asks for it. One object for each type, as PyTorch has:
    Triton's launcher knows them by their address."""

    def __init__(self, name, itemsize, is_floating_point=True):
        self.name, self.itemsize, self.is_floating_point = name, itemsize, is_floating_point

    def __str__(self):
        return self.name


class Tensor(Pointer):
    """A contiguous tensor, for descriptors."""

    def __init__(self, shape, dtype="fp16", itemsize=2, address=0):
        super().__init__(Elements(dtype, itemsize), address)
        self.shape = tuple(shape)

    def stride(self):
        strides = [1]
        for size in self.shape[:0:-1]:
            strides.insert(0, strides[0] * size)
        return tuple(strides)
