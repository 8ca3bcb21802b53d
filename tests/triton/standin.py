"""An active driver for machines with no GPU: `kernel.warmup(…)` compiles, and nothing can be launched."""

from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.driver import CudaDriver
from triton.runtime import driver


class Utils:
    @staticmethod
    def get_device_properties(device):
        return {"max_shared_mem": 232448, "multiprocessor_count": 132}


class Driver:
    """What a JITFunction asks of a driver up to its launch."""

    launcher_cls = None
    utils = Utils()

    def __init__(self, capability=90):
        self.capability = capability

    @staticmethod
    def is_active():
        return True

    def get_current_target(self):
        return GPUTarget("cuda", self.capability, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def map_python_to_cpp_type(self, type):
        return CudaDriver.map_python_to_cpp_type(self, type)


def use(capability=90):
    driver.set_active(Driver(capability))


class Pointer:
    """A tensor as far as compiling goes: a type, and an address that is a multiple of 16 or not."""

    def __init__(self, dtype, address=0):
        self.dtype = dtype
        self.address = address

    def data_ptr(self):
        return self.address
