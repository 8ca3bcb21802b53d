"""What devices before Hopper have no instructions for, as programs use it: from Python to a cubin."""

import pytest
import standin
import triton
import triton.language as tl
from standin import Pointer

import lilac.triton

OLDER = [80, 86, 89]


@triton.jit
def cast(x, y, TYPE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i).to(TYPE))


@triton.jit
def add(x, y, old, n, STEP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(old + i, tl.atomic_add(y + i * STEP, tl.load(x + i), mask=i < n))


@triton.jit
def add_scalar(x, y):
    tl.store(x, tl.atomic_add(y, tl.load(x)))


@triton.jit
def WARP_SZ(x):
    tl.store(x, 1)


CASTS = [("i64", "bf16", tl.bfloat16), ("u64", "bf16", tl.bfloat16), ("fp64", "bf16", tl.bfloat16),
         ("fp16", "fp8e5", tl.float8e5), ("bf16", "fp8e5", tl.float8e5), ("fp32", "fp8e5", tl.float8e5),
         ("fp64", "fp8e5", tl.float8e5), ("fp8e5", "fp16", tl.float16), ("fp8e5", "bf16", tl.bfloat16),
         ("fp8e5", "fp32", tl.float32), ("fp8e5", "fp64", tl.float64), ("fp16", "fp8e4b15", tl.float8e4b15),
         ("fp32", "fp8e4b15", tl.float8e4b15), ("fp8e4b15", "fp16", tl.float16), ("fp8e4b15", "fp32", tl.float32)]


@pytest.fixture(params=OLDER)
def capability(request):
    standin.use(request.param)
    for kernel in (cast, add, add_scalar):  # which keep what they were compiled for
        for store in [one for name, one in vars(kernel).items() if name.startswith("device_caches")]:
            store.clear()
    lilac.triton.enable()
    return request.param


def check(kernel):
    assert kernel.asm["cubin"][:4] == b"\x7fELF"
    assert lilac.triton.report().rows[-1].compiler == "lilac"


@pytest.mark.parametrize("source, target, dtype", CASTS, ids=lambda value: str(value))
def test_casts(capability, source, target, dtype):
    check(cast.warmup(Pointer(source), Pointer(target), dtype, 1024, grid=(1,)))


@pytest.mark.parametrize("step, swaps", [(1, "cas.b32"), (3, "cas.b16")])
def test_bf16_additions(capability, step, swaps):
    kernel = add.warmup(Pointer("bf16"), Pointer("bf16"), Pointer("bf16"), 1024, step, 1024, grid=(1,), num_warps=4)
    check(kernel)
    assert swaps in kernel.asm["ptx"]


def test_bf16_addition_of_a_scalar(capability):
    check(add_scalar.warmup(Pointer("bf16"), Pointer("bf16"), grid=(1,)))


def test_reserved_name():
    """The launcher finds the kernel under the name that it has in the PTX."""
    lilac.triton.enable()
    kernel = WARP_SZ.warmup(Pointer("i32"), grid=(1,))
    assert kernel.metadata.name == "kernel_WARP_SZ" and ".entry kernel_WARP_SZ(" in kernel.asm["ptx"]
    assert kernel.asm["cubin"][:4] == b"\x7fELF"
    (row,) = lilac.triton.report()
    assert row.name == "WARP_SZ"
