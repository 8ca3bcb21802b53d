"""The CUDA driver and ptxas for the programs of bench/, without PyTorch and Triton."""

import ctypes
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from library import LilacError


# ---- assembling -----------------------------------------------------------------------------


def bundled_ptxas():
    """The ptxas that Triton assembles with."""
    import triton
    try:
        return triton.knobs.nvidia.ptxas.path
    except AttributeError:  # before Triton 3.4
        bundled = pathlib.Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
        return str(bundled) if bundled.exists() else None


def find_ptxas(given=None):
    """One on PATH, CUDA's, or Triton's."""
    return given or shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas") or bundled_ptxas()


def assemble(ptxas, device, ptx):
    """Cubin, registers, bytes spilled, seconds, what ptxas warned of."""
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = pathlib.Path(folder) / "k.ptx", pathlib.Path(folder) / "k.cubin"
        source.write_text(ptx)
        start = time.perf_counter()
        run = subprocess.run([ptxas, f"-arch={device}", "-v", "-lineinfo", str(source), "-o",
                              str(cubin)], capture_output=True, text=True)
        seconds = time.perf_counter() - start
        report = run.stdout + run.stderr
        if run.returncode:
            raise LilacError("ptxas refuses the PTX:\n" + report)
        registers = re.search(r"Used (\d+) registers", report)
        spills = sum(int(n) for n in re.findall(r"(\d+) bytes spill", report))
        warnings = [line for line in report.splitlines() if "warning" in line or "(C75" in line]
        return (cubin.read_bytes(), int(registers.group(1)) if registers else -1, spills, seconds,
                warnings)


# ---- loading and launching ------------------------------------------------------------------


SCRATCH = (ctypes.c_uint64(0), ctypes.c_uint64(0))  # a kernel's last two parameters: global, profile


def pointers_to(storage):
    """The arguments of a launch: their addresses, and the ctypes values, which must stay alive."""
    return (ctypes.c_void_p * len(storage))(*[ctypes.addressof(value) for value in storage])


class Driver:
    """The functions of the CUDA driver that are used, in the current context, which is PyTorch's."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")

    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'?').decode()}")

    def module(self, image):
        """A cubin or PTX, loaded."""
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), image)
        return module

    def function(self, module, name):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def load(self, image, name):
        return self.function(self.module(image), name)

    def allow_shared(self, function, size):
        if size > 48 * 1024:  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self.call("cuFuncSetAttribute", function, 8, size)


class Device(Driver):
    """The first GPU with a context of its own."""

    def __init__(self):
        super().__init__()
        device, context, count = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", name, 100, device)
        self.name = name.value.decode()
        self.call("cuDeviceGetAttribute", ctypes.byref(count), 16, device)
        self.multiprocessors = count.value

    def allocate(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def free(self, address):
        self.call("cuMemFree_v2", address)

    def upload(self, address, host):
        """A ctypes array to the device."""
        self.call("cuMemcpyHtoD_v2", address, host, ctypes.c_size_t(ctypes.sizeof(host)))

    def download(self, host, address):
        self.call("cuMemcpyDtoH_v2", host, address, ctypes.c_size_t(ctypes.sizeof(host)))

    def launch(self, function, blocks, threads, shared, *arguments):
        """Launches with the arguments (ctypes values) and waits."""
        self.allow_shared(function, shared)
        self.call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, shared, None,
                  pointers_to(arguments), None)
        self.call("cuCtxSynchronize")
