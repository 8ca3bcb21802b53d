"""Products through pointers, as Triton's tutorial writes them, and one with masks in place of remainders. For each
case, a line with its name, the largest error, and how many launches had tensor maps of the launcher, had none, had
several blocks for each program, or were of the kernel for one block of a multiprocessor. The first line says whether the compiler knows such maps.

    python launch_maps.py
"""

import torch
import triton
import triton.language as tl

import lilac
import lilac.triton

BLOCKS = {"BM": 128, "BN": 128, "BK": 64, "GROUP": 8, "num_warps": 8, "num_stages": 3}


@triton.jit
def tutorial(a, b, c, M, N, K, am, ak, bk, bn, cm, cn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
             GROUP: tl.constexpr):
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = pid // (GROUP * columns)
    size = min(rows - group * GROUP, GROUP)
    m, n = group * GROUP + pid % (GROUP * columns) % size, pid % (GROUP * columns) // size
    i, j, k = (m * BM + tl.arange(0, BM)) % M, (n * BN + tl.arange(0, BN)) % N, tl.arange(0, BK)
    x, y = a + (i[:, None] * am + k[None, :] * ak), b + (k[:, None] * bk + j[None, :] * bn)
    sums = tl.zeros((BM, BN), tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        p = tl.load(x, mask=k[None, :] < K - step * BK, other=0.0)
        q = tl.load(y, mask=k[:, None] < K - step * BK, other=0.0)
        sums = tl.dot(p, q, sums)
        x += BK * ak
        y += BK * bk
    i, j = m * BM + tl.arange(0, BM), n * BN + tl.arange(0, BN)
    tl.store(c + cm * i[:, None] + cn * j[None, :], sums.to(tl.float16), (i[:, None] < M) & (j[None, :] < N))


@triton.jit
def masked(a, b, c, M, N, K, am, ak, bk, bn, cm, cn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           GROUP: tl.constexpr):
    m, n = tl.program_id(0) % tl.cdiv(M, BM), tl.program_id(0) // tl.cdiv(M, BM)
    i, j, k = m * BM + tl.arange(0, BM), n * BN + tl.arange(0, BN), tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    for at in range(0, K, BK):
        p = tl.load(a + i[:, None] * am + (at + k[None, :]) * ak, (i[:, None] < M) & (at + k[None, :] < K), 0.0)
        q = tl.load(b + (at + k[:, None]) * bk + j[None, :] * bn, (at + k[:, None] < K) & (j[None, :] < N), 0.0)
        sums = tl.dot(p, q, sums)
    tl.store(c + cm * i[:, None] + cn * j[None, :], sums.to(tl.float16), (i[:, None] < M) & (j[None, :] < N))


@triton.jit
def unmasked(a, b, c, M, N, K, am, ak, bk, bn, cm, cn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
             GROUP: tl.constexpr):
    """The tiles cover the matrices."""
    m, n = tl.program_id(0) % tl.cdiv(M, BM), tl.program_id(0) // tl.cdiv(M, BM)
    i, j, k = m * BM + tl.arange(0, BM), n * BN + tl.arange(0, BN), tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        p = tl.load(a + i[:, None] * am + (step * BK + k[None, :]) * ak)
        q = tl.load(b + (step * BK + k[:, None]) * bk + j[None, :] * bn)
        sums = tl.dot(p, q, sums)
    tl.store(c + cm * i[:, None] + cn * j[None, :], sums.to(tl.float16))


def matrix(rows, columns, pitch=None, offset=0):
    """Integers, so that sums are exact."""
    pitch = columns if pitch is None else pitch
    storage = torch.randint(-2, 3, (rows * pitch + offset,), device="cuda").half()
    return torch.as_strided(storage, (rows, columns), (pitch, 1), offset)


def surrounded(rows, columns):
    """A part of a matrix, the rest of which is NaN."""
    whole = torch.full((rows + 64, columns + 64), float("nan"), device="cuda", dtype=torch.float16)
    whole[:rows, :columns] = matrix(rows, columns)
    return whole[:rows, :columns]


def launch(kernel, a, b, c, k=None, **blocks):
    (M, K), N, blocks = a.shape, b.shape[1], BLOCKS | blocks
    grid = triton.cdiv(M, blocks["BM"]) * triton.cdiv(N, blocks["BN"])
    kernel[(grid,)](a, b, c, M, N, K if k is None else k, *a.stride(), *b.stride(), *c.stride(), **blocks)


def counts():
    rows = lilac.triton.report().rows
    return (sum(row.mapped_launches for row in rows), sum(sum(row.plain_launches.values()) for row in rows),
            sum(row.divided_launches for row in rows), sum(row.one_block_launches for row in rows))


def case(name, run):
    """`run` returns the result and what is expected."""
    before = counts()
    result, expected = run()
    error = (result.double() - expected).abs().max().item() if result.numel() else 0
    print(name, error, *(now - then for now, then in zip(counts(), before)))


def product(kernel, a, b, **words):
    def run():
        c = torch.full((a.shape[0], b.shape[1]), 7, device="cuda", dtype=torch.float16)
        launch(kernel, a, b, c, **words)
        return c, a.double() @ b.double()
    return run


def nothing(kernel, a, b):
    """Sums of nothing: tensors without columns have no maps."""
    def run():
        c = torch.full((a.shape[0], b.shape[1]), 7, device="cuda", dtype=torch.float16)
        launch(kernel, a, b, c, k=0)
        return c, torch.zeros_like(c).double()
    return run


def graph(kernel, a, b):
    """A captured launch, replayed with other contents."""
    def run():
        c = torch.zeros((a.shape[0], b.shape[1]), device="cuda", dtype=torch.float16)
        launch(kernel, a, b, c)
        torch.cuda.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            launch(kernel, a, b, c)
        a.copy_(matrix(*a.shape))
        captured.replay()
        torch.cuda.synchronize()
        return c, a.double() @ b.double()
    return run


def main():
    torch.manual_seed(1)
    print("compiler", "launch_maps" in lilac.compile("tt.func public @k() {\n  tt.return\n}\n").metadata)
    a, b = matrix(512, 640), matrix(640, 384)
    for kernel in (tutorial, masked):
        name = kernel.fn.__name__
        case(f"{name}", product(kernel, a, b))
        case(f"{name}-repeated", product(kernel, a, b))
        case(f"{name}-edges", product(kernel, matrix(496, 624), matrix(624, 368)))
        case(f"{name}-pitch", product(kernel, matrix(512, 640, 672), matrix(640, 384, 400)))
        case(f"{name}-odd_pitch", product(kernel, matrix(512, 640, 641), b))
        case(f"{name}-odd_base", product(kernel, matrix(512, 640, offset=1), b))
        case(f"{name}-graph", graph(kernel, a, b))
        case(f"{name}-few", product(kernel, matrix(512, 320), matrix(320, 384)))
        case(f"{name}-long", product(kernel, matrix(248, 8216), matrix(8216, 360)))
        case(f"{name}-long_graph", graph(kernel, matrix(248, 8216), matrix(8216, 360)))
    for kernel in (tutorial, masked, unmasked):
        name, rows = kernel.fn.__name__, 512 if kernel is unmasked else 496
        case(f"{name}-joined", product(kernel, surrounded(rows, 672), surrounded(672, 384), BK=32, num_warps=4))
        case(f"{name}-few_blocks", product(kernel, matrix(512, 1024), matrix(1024, 384), num_warps=4))
        case(f"{name}-many_blocks", product(kernel, matrix(5120, 1024), matrix(1024, 512), num_warps=4))
        case(f"{name}-divided", product(kernel, surrounded(rows, 640), surrounded(640, 384), BK=128))
    case("masked-nothing", nothing(masked, a, b))
    try:
        launch(tutorial, a, b, torch.zeros(512, 384, dtype=torch.float16))
        print("cpu no error")
    except ValueError:
        print("cpu ValueError")


if __name__ == "__main__":
    main()
