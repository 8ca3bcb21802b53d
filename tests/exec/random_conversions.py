"""Conversions between the random pairs of layouts in tests/data/conversions.tsv: every kernel passes
ptxas without a spill where there is a ptxas, and on a machine with a GPU that runs sm_90a code every
register of every thread gets its element there too.

The pairs are of tests/support/random_layouts.h: layouts of all kinds, 8 to 128 bits, 1 to 8 warps, some of
several blocks. Each takes another way than the one before it, so that all ways come up.
"""

import ctypes
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402

WAYS = ["any", "any", "shared", "unswizzled"]
INPUTS = ["register", "lane", "warp", "block"]


class Device:
    """The CUDA driver's interface, as far as these kernels need it."""

    ROOM = 1 << 24

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.check(self.driver.cuInit(0))
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.check(self.driver.cuDeviceGet(ctypes.byref(device), 0))
        major = ctypes.c_int()
        self.check(self.driver.cuDeviceGetAttribute(ctypes.byref(major), 75, device))
        if major.value != 9:
            raise OSError("not a device that runs sm_90a code")
        self.check(self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        self.check(self.driver.cuCtxSetCurrent(context))
        self.source, self.target, self.scratch = (self.allocate(self.ROOM) for _ in range(3))

    def check(self, result):
        if result != 0:
            name = ctypes.c_char_p()
            self.driver.cuGetErrorName(result, ctypes.byref(name))
            raise OSError((name.value or b"CUDA error").decode())

    def allocate(self, size):
        address = ctypes.c_uint64()
        self.check(self.driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)))
        return address

    def run(self, ptx, launch, source, target):
        """What the kernel makes of the bytes `source` where `target` was before."""
        driver, module, kernel = self.driver, ctypes.c_void_p(), ctypes.c_void_p()
        self.check(driver.cuModuleLoadData(ctypes.byref(module), ptx.encode() + b"\0"))
        self.check(driver.cuModuleGetFunction(ctypes.byref(kernel), module, b"convert"))
        self.check(driver.cuFuncSetAttribute(kernel, 8, launch["shared"]))
        self.check(driver.cuMemcpyHtoD_v2(self.source, source, ctypes.c_size_t(len(source))))
        self.check(driver.cuMemcpyHtoD_v2(self.target, target, ctypes.c_size_t(len(target))))
        arguments = [self.source, self.target, self.scratch, self.scratch]
        pointers = (ctypes.c_void_p * 4)(*[ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments])
        self.check(driver.cuLaunchKernel(kernel, launch["ctas"], 1, 1, 32 * launch["warps"], 1, 1,
                                         launch["shared"], None, pointers, None))
        self.check(driver.cuCtxSynchronize())
        result = ctypes.create_string_buffer(len(target))
        self.check(driver.cuMemcpyDtoH_v2(result, self.target, ctypes.c_size_t(len(target))))
        self.check(driver.cuModuleUnload(module))
        return result.raw[:len(target)]


def find_device():
    try:
        return Device()
    except (OSError, AttributeError):
        return None


def places(layout):
    """The number of the element in each register of each thread."""
    def table(names):
        values = [0]
        for name in names:
            for column in layout[name]:
                values += [value ^ column for value in values]
        return values
    registers = table(["register"])
    return [thread ^ register for thread in table(["lane", "warp", "block"]) for register in registers]


def element(number, size, digit):
    """An element that says where it belongs; a narrow one says a digit of it."""
    if size < 4:
        return (number >> 8 * size * digit & (1 << 8 * size) - 1).to_bytes(size, "little")
    return b"".join(struct.pack("<I", number ^ word << 29) for word in range(size // 4))


def numbered(lilac, type):
    """The layout of a tensor type with elements numbered, its element's bytes, its bits."""
    layout = json.loads(command.run(lilac, "layout", type, "--json").stdout)
    shape, bits = re.match(r"tensor<([\dx]+)xi(\d+),", type).groups()
    shifts, total = [], 0
    for size in shape.split("x"):
        shifts.append(total)
        total += int(size).bit_length() - 1
    return ({name: [sum(value << shift for value, shift in zip(column, shifts)) for column in layout[name]]
             for name in INPUTS}, int(bits) // 8, total)


def check_on_device(device, lilac, pair, ptx, launch):
    (source, size, bits), (target, _, _) = (numbered(lilac, type) for type in pair)
    source, target = places(source), places(target)
    for digit in range(-(-bits // (8 * size)) if size < 4 else 1):
        elements = {number: element(number, size, digit) for number in set(source) | set(target)}
        expected = b"".join(elements[number] for number in target)
        before = bytes(byte ^ 0xFF for byte in expected)  # what is not written is wrong
        if device.run(ptx, launch, b"".join(elements[number] for number in source), before) != expected:
            return "wrong on the device"
    return None


def check_with_ptxas(ptxas, ptx, folder):
    path = os.path.join(folder, "convert.ptx")
    with open(path, "w", encoding="utf-8") as file:
        file.write(ptx)
    done = subprocess.run([ptxas, "-arch=sm_90a", "-v", path, "-o", os.devnull], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True)
    if done.returncode != 0 or "warning" in done.stdout:
        return done.stdout
    spill = re.search(r"(\d+) bytes spill stores", done.stdout)
    return "spills" if spill and spill.group(1) != "0" else None


def check_pair(lilac, pair, way, ptxas, device, folder):
    words = [*pair, "--through", way, "--target", "sm_90a", "--emit"]
    simt, ptx = (command.run(lilac, "convert", *words, form) for form in ("simt", "ptx"))
    if simt.returncode != 0 or ptx.returncode != 0:
        return simt.stderr + ptx.stderr
    launch = re.search(r"warps (?P<warps>\d+) ctas (?P<ctas>\d+) shared (?P<shared>\d+)", simt.stdout)
    launch = {name: int(value) for name, value in launch.groupdict().items()}
    problem = check_with_ptxas(ptxas, ptx.stdout, folder) if ptxas else None
    if problem is None and device is not None:
        problem = check_on_device(device, lilac, pair, ptx.stdout, launch)
    return problem


def main():
    arguments = command.parse_arguments(__doc__)
    ptxas, device = shutil.which("ptxas"), find_device()
    if ptxas is None and device is None:
        print("skipped: there is neither ptxas nor a device that runs sm_90a code")
        sys.exit(command.SKIPPED)
    with open(os.path.join(arguments.data, "conversions.tsv"), encoding="utf-8") as file:
        pairs = [line.rstrip("\n").split("\t") for line in file]
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for number, pair in enumerate(pairs):
            problem = check_pair(arguments.lilac, pair, WAYS[number % len(WAYS)], ptxas, device, folder)
            if problem is not None:
                print("%s\n%s\n%s" % (*pair, problem))
                failures.append(str(number + 1))
    command.finish(failures, len(pairs), "conversions %s" % " and ".join(
        where for where, there in (("through ptxas", ptxas), ("on the device", device)) if there))


main()
