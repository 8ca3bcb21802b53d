#!/usr/bin/env python3
"""Times of stores of rows that start within sectors, divided among lanes and warps (bench/divided_rows.cu).

    nvcc -arch=sm_90a -cubin -o divided_rows.cubin bench/divided_rows.cu
    python3 bench/divided_rows.py divided_rows.cubin [--json FILE] [--markdown FILE]

196,608 rows; for each width the microseconds of each kernel, the median of seven launches, 256 MiB written before each.
Every result is checked. Needs a GPU and PyTorch.
"""

import argparse
import ctypes
import pathlib
import statistics
import sys

import report

ROWS, ROWS_OF_A_BLOCK, THREADS = 196608, 16, 128
WIDTHS = (64, 56, 52, 50, 49, 48)
KERNELS = [f"{what}_{lanes}_{how}" for what in ("store", "copy")
           for lanes, how in ((32, "rows"), (16, "rows"), (8, "rows"), (16, "columns"), (8, "columns"), (4, "columns"))]
LAUNCHES, FIRST = 9, 2


class Launcher:
    def __init__(self, torch, cubin):
        self.torch, self.driver, self.module = torch, ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        self.flushed = torch.empty(64 << 20, dtype=torch.int32, device="cuda")
        self.call("cuModuleLoad", ctypes.byref(self.module), str(cubin).encode())

    def call(self, name, *arguments):
        if status := getattr(self.driver, name)(*arguments):
            raise RuntimeError(f"{name}: error {status}")

    def time(self, kernel, read, written, width):
        """The median of the launches, in microseconds."""
        function, stream = ctypes.c_void_p(), ctypes.c_void_p(self.torch.cuda.current_stream().cuda_stream)
        self.call("cuModuleGetFunction", ctypes.byref(function), self.module, kernel.encode())
        values = [ctypes.c_uint64(read.data_ptr()), ctypes.c_uint64(written.data_ptr()), ctypes.c_int(width)]
        places = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        times = []
        for _ in range(LAUNCHES):
            begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            self.flushed.zero_()
            begin.record()
            self.call("cuLaunchKernel", function, ROWS // ROWS_OF_A_BLOCK, 1, 1, THREADS, 1, 1, 0, stream, places, None)
            end.record()
            end.synchronize()
            times.append(1e3 * begin.elapsed_time(end))
        return statistics.median(times[FIRST:])


def table(rows):
    lines = ["| kernel | " + " | ".join(f"{width} floats" for width in WIDTHS) + " |", "|---" + "|--:" * len(WIDTHS) + "|"]
    for kernel in KERNELS:
        times = {row["width"]: row["us"] for row in rows if row["kernel"] == kernel}
        lines.append(f"| {kernel} | " + " | ".join(f"{times[width]:.1f}" for width in WIDTHS) + " |")
    return "# Rows that start within sectors, in µs\n\n" + "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("cubin", type=pathlib.Path)
    report.add_options(parser)
    options = parser.parse_args()
    import torch

    torch.zeros(1, device="cuda")
    launcher, rows, wrong = Launcher(torch, options.cubin), [], 0
    for width in WIDTHS:
        read = torch.rand(ROWS * width, device="cuda")
        for kernel in KERNELS:
            written = torch.full_like(read, float("nan"))
            rows.append({"kernel": kernel, "width": width, "us": launcher.time(kernel, read, written, width)})
            wrong += not bool((written == (read + 1 if kernel.startswith("copy") else 1)).all())
    print(table(rows))
    if options.markdown:
        options.markdown.write_text(table(rows))
    about = report.environment(options, torch.cuda.get_device_name(), options.ptxas, torch=torch.__version__)
    report.write_json(options.json, about, rows=rows)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
