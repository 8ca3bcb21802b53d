"""Products whose tiles are loaded through tensor descriptors, each also with a loop that asks for warp specialisation:

    PYTHONPATH=bench python -m lilac.bench warp_specialisation

`ws_NAME` is the kernel of NAME with `warp_specialize=True`: of the loop over tiles in persistent kernels, otherwise of
the loop over K."""

import copy

import triton
import triton.language as tl
from lilac.bench.case import Constant
from lilac.bench.operators.products import descriptors
from lilac.bench.operators.products.operands import tile_of


@triton.jit
def described_matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TRANSPOSED: tl.constexpr):
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=True):
        left = a.load([row * BM, k])
        if TRANSPOSED:
            right = b.load([column * BN, k]).T
        else:
            right = b.load([k, column * BN])
        total = tl.dot(left, right, total)
    c.store([row * BM, column * BN], total.to(c.dtype))


@triton.jit
def made_descriptors(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr):
    a_tiles = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    b_tiles = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    c_tiles = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), PROGRAMS, flatten=True,
                         warp_specialize=True):
        row, column = tile_of(tile, M, N, BM, BN, 8)
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            total = tl.dot(a_tiles.load([row * BM, k * BK]), b_tiles.load([column * BN, k * BK]).T, total)
        c_tiles.store([row * BM, column * BN], total.to(c.dtype.element_ty))


def asking(case, kernel):
    """The same case with this kernel."""
    launch, twin = case.launch, copy.copy(case)
    constants = {name: a.value for name, a in launch.arguments.items() if isinstance(a, Constant)}
    twin.name = "ws_" + case.name
    twin.launch = type(launch)(kernel, launch.grid, [a for name, a in launch.arguments.items() if name not in constants],
                               **launch.options, **constants)
    return twin


def cases():
    made, described = descriptors.made_case, descriptors.described_case
    found = []
    for kernel, case in (
            (made_descriptors, made("f16", 4096, 4096, 4096)),
            (made_descriptors, made("f16", 8192, 8192, 8192)),
            (made_descriptors, made("bf16", 8192, 8192, 2048, tile=(128, 128, 64), num_stages=4)),
            (made_descriptors, made("f8e4m3", 8192, 8192, 4096, tile=(128, 256, 128))),
            (made_descriptors, made("f16", 8192, 8192, 1024)),
            (described_matmul, described("f16", "N", 4096, 4096, 4096)),
            (described_matmul, described("bf16", "T", 8192, 8192, 8192, tile=(128, 128, 64))),
            (described_matmul, described("f8e4m3", "T", 4096, 4096, 8192, tile=(128, 256, 128)))):
        found += [case, asking(case, kernel)]
    return found
