"""The CUDA driver without a GPU (tests/support/fake_cuda.c) under Triton: memory, modules, and what was launched."""

import ctypes
import os
import subprocess
import sysconfig

HERE = os.path.dirname(os.path.abspath(__file__))


def build(folder):
    """The driver's library; None: there is no C compiler."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    path = os.path.join(folder, "libfake_cuda.so")
    source = os.path.join(os.path.dirname(HERE), "support", "fake_cuda.c")
    try:
        subprocess.run([compiler, "-std=c17", "-shared", "-fPIC", "-o", path, source], check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return path


class Gpu:
    """One device with a current context."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.fake_cuda_log.restype = ctypes.c_char_p
        self.reset()

    def reset(self, rules=""):
        self.library.fake_cuda_reset(rules.encode())
        context, device = ctypes.c_void_p(), ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxPushCurrent_v2", context)

    def leave(self):
        """Now the thread has no current context."""
        self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def rule(self, rule):
        self.library.fake_cuda_rule(rule.encode())

    def call(self, name, *arguments):
        assert getattr(self.library, name)(*arguments) == 0, name

    def memory(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def load(self, name, parameters):
        """The handles of a module and its kernel with these parameters and two pointers to scratch memory."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        listed = ", ".join([*parameters, ".param .u64 s", ".param .u64 s"])
        ptx = f".version 8.6\n.target sm_90a\n.visible .entry {name}({listed})\n{{\n\tret;\n}}\n"
        self.call("cuModuleLoadDataEx", ctypes.byref(module), ptx.encode() + b"\0", 0, None, None)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        self.call("cuFuncSetAttribute", function, 8, 232448)  # the most shared memory
        return module.value, function.value

    @property
    def log(self):
        return self.library.fake_cuda_log().decode()

    def launches(self):
        """The lines of the log about launches."""
        lines = self.log.split("\n")
        return [after.strip() for line, after in zip(lines, lines[1:]) if line == "cuLaunchKernelEx"]

    def count(self, function):
        return self.log.split("\n").count(function)
