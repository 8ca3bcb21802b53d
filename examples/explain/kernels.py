"""The kernels of docs/explain.md. `python kernels.py` writes their TTIR (Triton 3.6; no GPU is needed)."""

import os

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def copy(out, x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask), mask=mask)


@triton.jit
def sum_rows(out, x, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.arange(0, ROWS)
    columns = tl.arange(0, COLUMNS)
    tile = tl.load(x + rows[:, None] * stride + columns[None, :])
    tl.store(out + columns, tl.sum(tile, axis=0))


@triton.jit
def sum_columns(out, x, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    for k in range(0, n, COLUMNS):
        columns = k + tl.arange(0, COLUMNS)
        total += tl.sum(tl.load(x + rows[:, None] + columns[None, :] * 4096), axis=1)
    tl.store(out + rows, total)


@triton.jit
def transpose(out, x, M, N, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(x + rows[:, None] * N + columns[None, :])
    tl.store(out + columns[:, None] * M + rows[None, :], tl.trans(tile))


@triton.jit
def matmul(c, a, b, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        right = tl.load(b + (k + inner)[:, None] * N + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16))


@triton.jit
def matmul_of_transposed(c, a, b, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        right = tl.load(b + columns[:, None] * K + (k + inner)[None, :])
        total = tl.dot(left, tl.trans(right), total)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16))


@triton.jit
def two_products(out, a, b, c, bias, BM: tl.constexpr, BK: tl.constexpr, BN: tl.constexpr):
    rows, inner, columns = tl.arange(0, BM), tl.arange(0, BK), tl.arange(0, BN)
    first = tl.dot(tl.load(a + rows[:, None] * BK + inner[None, :]), tl.load(b + inner[:, None] * BN + columns[None, :]))
    first += tl.load(bias + rows[:, None] * BN + columns[None, :])
    second = tl.load(c + columns[:, None] * BN + columns[None, :])
    tl.store(out + rows[:, None] * BN + columns[None, :], tl.dot(first.to(tl.float16), second))


def write(name, kernel, signature, constants, aligned=True, **options):
    names = list(signature)
    pointers = {(k,): [["tt.divisibility", 16]] for k, one in enumerate(names) if aligned and
                (signature[one].startswith("*") or one in ("M", "N", "K", "n", "stride"))}
    constants = {(kernel.arg_names.index(one),): value for one, value in constants.items()}
    signature = {**signature, **{kernel.arg_names[k]: "constexpr" for (k,) in constants}}
    source = ASTSource(kernel, signature, constants, pointers)
    text = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ttir"]
    with open(name + ".ttir", "w", encoding="utf-8") as file:
        file.write(text.replace(os.path.abspath(__file__), "kernels.py"))


def main():
    half, single = "*fp16", "*fp32"
    write("copy", copy, {"out": half, "x": half, "n": "i32"}, {"BLOCK": 1024})
    write("copy_unaligned", copy, {"out": half, "x": half, "n": "i32"}, {"BLOCK": 1024}, aligned=False)
    write("sum_rows", sum_rows, {"out": single, "x": single, "stride": "i32"}, {"ROWS": 4, "COLUMNS": 32}, num_warps=1)
    write("sum_columns", sum_columns, {"out": single, "x": single, "n": "i32"}, {"ROWS": 8, "COLUMNS": 128})
    write("transpose", transpose, {"out": half, "x": half, "M": "i32", "N": "i32"}, {"BLOCK": 128})
    sizes = {"M": "i32", "N": "i32", "K": "i32"}
    products = {"c": half, "a": half, "b": half, **sizes}
    write("matmul", matmul, products, {"BM": 64, "BN": 64, "BK": 32})
    write("matmul_32", matmul, products, {"BM": 32, "BN": 64, "BK": 32})
    write("matmul_of_transposed", matmul_of_transposed, products, {"BM": 128, "BN": 128, "BK": 64})
    write("two_products", two_products, {"out": single, "a": half, "b": half, "c": half, "bias": single},
          {"BM": 64, "BK": 64, "BN": 64})


if __name__ == "__main__":
    main()
