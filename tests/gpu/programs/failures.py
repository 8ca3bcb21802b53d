"""Launches at the edge of what a launch may be, and past it; each named on the command line in turn.
Prints one line a launch: its name, then "ok" or the exception's type and text.

    python failures.py NAME…
"""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def edge_copy(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask), mask=mask)


@triton.jit
def edge_histogram(index, out, N: tl.constexpr):
    tl.store(out + tl.arange(0, N), tl.histogram(tl.load(index + tl.arange(0, 1024)), N))


def copy(x, out, n, grid=(4,)):
    edge_copy[grid](x, out, n, 1024)


def masked():
    """Elements that the mask leaves out lie far outside every allocation."""
    x = torch.randn(8, device="cuda")
    out = torch.full((1 << 12,), 7.0, device="cuda")
    copy(x, out, 8, (1 << 12,))
    torch.cuda.synchronize()
    assert torch.equal(out[:8], x) and bool((out[8:] == 7).all())


def zero_grid():
    x = torch.randn(4096, device="cuda")
    out = torch.zeros_like(x)
    copy(x, out, 4096, (0,))
    torch.cuda.synchronize()
    assert bool((out == 0).all())


def cpu_tensor():
    copy(torch.randn(4096), torch.zeros(4096, device="cuda"), 4096)


def null():
    """None is a null pointer to Triton when its type says so: reading it is a fault."""
    class Null:
        dtype = torch.float32

        def data_ptr(self):
            return 0
    copy(Null(), torch.zeros(4096, device="cuda"), 4096)
    torch.cuda.synchronize()


def out_of_bounds():
    x = torch.randn(16, device="cuda")
    copy(x, torch.zeros(16, device="cuda"), 1 << 40, (1 << 20,))
    torch.cuda.synchronize()


def shared_memory():
    """A histogram whose bins take 256 KiB of shared memory."""
    n = 1 << 16
    edge_histogram[(1,)](torch.randint(n, (1024,), device="cuda", dtype=torch.int32),
                         torch.zeros(n, device="cuda", dtype=torch.int32), n, num_warps=32)


def works():
    """After a failure that leaves the device as it was, launches still run."""
    x = torch.randn(4096, device="cuda")
    out = torch.zeros_like(x)
    copy(x, out, 4096)
    assert torch.equal(out, x)


def main():
    for name in sys.argv[1:]:
        try:
            globals()[name]()
            said = "ok"
        except Exception as error:
            notes = " ".join(getattr(error, "__notes__", []))
            said = " ".join(f"{type(error).__name__}: {error} {notes}".split())
        print(name, said, flush=True)


if __name__ == "__main__":
    main()
