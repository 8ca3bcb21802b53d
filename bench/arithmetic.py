#!/usr/bin/env python3
"""Runs on a GPU what bench/arithmetic.c wrote, and compares with what the simulator computed.

    python3 bench/arithmetic.py FOLDER [--ptxas PATH]

Needs an NVIDIA GPU, NumPy and a ptxas (one on PATH, or Triton's). Exit status 1 when a result differs.
"""

import argparse
import ctypes
import pathlib
import sys

import numpy as np

from driver import SCRATCH, Device, assemble, find_ptxas

THREADS, BLOCK, OPERANDS, RESULTS = 1024, 128, 4, 8
BITS = {"i1": 32, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f16": 16, "bf16": 16, "f32": 32,
        "f64": 64, "f16x2": 32, "bf16x2": 32}


def halves(words, kind):
    """The floats in each word, as doubles."""
    words = words.astype(np.uint32)
    parts = np.stack((words & 0xFFFF, words >> 16), -1).astype(np.uint16)
    if kind == "f16":
        return parts.view(np.float16).astype(np.float64)
    return (parts.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def floats(words, kind):
    if kind in ("f16x2", "bf16x2"):
        return halves(words, kind[:-2])
    if kind in ("f16", "bf16"):
        return halves(words, kind)[..., :1]
    if kind == "f32":
        return words.astype(np.uint32).view(np.float32).astype(np.float64)[..., None]
    if kind == "f64":
        return words.view(np.float64)[..., None]
    return None


def wrong(got, want, kind, how, first):
    """Which elements differ; `first` is each thread's first operand."""
    mask = np.uint64((1 << BITS[kind]) - 1)
    got, want = got & mask, want & mask
    different = got != want
    a, b = floats(got, kind), floats(want, kind)
    if a is None:
        return different
    same = (np.isnan(a) & np.isnan(b)) | (a == b) & (np.signbit(a) == np.signbit(b))
    if how == "angle":  # PTX bounds the error of a sine within a few turns only
        angle = np.abs(floats(first, "f32"))
        same |= (np.abs(a - b) <= 1e-4) | ~(angle < 6.2)[:, None]
    if how == "near":  # approximations: flushed subnormals, a few units in the last place
        same |= np.abs(a - b) <= 1e-30 + 5e-4 * np.maximum(np.abs(b), 1e-3)
        same |= np.abs(b) < 1.2e-38
    return different & ~same.all(-1)


def main():
    np.seterr(invalid="ignore", over="ignore")  # NaNs are among the values
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--ptxas")
    options = parser.parse_args()
    folder = options.folder
    device = Device()
    cubin = assemble(find_ptxas(options.ptxas), "sm_90a", (folder / "kernels.ptx").read_text())[0]
    module = device.module(cubin)
    inputs = np.fromfile(folder / "inputs.bin", np.uint64).reshape(THREADS, OPERANDS)
    expected = np.fromfile(folder / "expected.bin", np.uint64)
    source, target = device.allocate(inputs.nbytes), device.allocate(THREADS * RESULTS * 8)
    device.upload(source, np.ctypeslib.as_ctypes(inputs))
    got = np.empty((THREADS, RESULTS), np.uint64)
    lines = (folder / "kernels.txt").read_text().splitlines()
    failures = 0
    for line in lines:
        name, kind, results, how, what = line.split(" ", 4)
        results = int(results)
        want, expected = np.split(expected, [THREADS * results])
        want = want.reshape(THREADS, results)
        device.call("cuMemsetD8_v2", target, ctypes.c_ubyte(0), ctypes.c_size_t(got.nbytes))
        device.launch(device.function(module, name), THREADS // BLOCK, BLOCK, 0, source, target, *SCRATCH)
        device.download(np.ctypeslib.as_ctypes(got), target)
        bad = wrong(got[:, :results], want, kind, how, inputs[:, 0])
        if bad.any():
            failures += 1
            thread, result = np.argwhere(bad)[0]
            print(f"{what} ({name}): {bad.sum()} of {bad.size} differ; thread {thread} result "
                  f"{result}: operands {[hex(v) for v in inputs[thread]]} device "
                  f"{int(got[thread, result]):#x} simulator {int(want[thread, result]):#x}")
    print(f"{len(lines)} kernels, {failures} differ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
