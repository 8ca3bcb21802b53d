"""The kernels that these tests compile."""

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@triton.jit
def scale(x, y, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * FACTOR, mask=i < n)


@triton.jit
def multiply_add(x, y, z, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i) * tl.load(y + i) + tl.load(z + i))


@triton.jit
def product(x, y, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    a = tl.load(x + i[:, None] * SIZE + i[None, :])
    tl.store(y + i[:, None] * SIZE + i[None, :], tl.dot(a, a))  # what lilac refuses


@triton.jit
def gather(x, index, y, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(y + i, tl.gather(tl.load(x + i), tl.load(index + i), 0))


@triton.jit
def row_sums(x, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r, c = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    tl.store(y + r, tl.sum(tl.load(x + r[:, None] * COLUMNS + c[None, :]), 1))


@triton.jit
def functions(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.extra.cuda.libdevice.tanh(tl.load(x + i)))


@triton.autotune([triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 1024})],
                 key=["n"])
@triton.jit
def tuned(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@triton.jit
def histogram(index, y, SIZE: tl.constexpr):
    tl.store(y + tl.arange(0, SIZE), tl.histogram(tl.load(index + tl.arange(0, 1024)), SIZE))


@triton.autotune([triton.Config({"SIZE": 65536}, num_warps=32), triton.Config({"SIZE": 1024})], key=[])
@triton.jit
def tuned_histogram(index, y, SIZE: tl.constexpr):
    tl.store(y + tl.arange(0, SIZE), tl.histogram(tl.load(index + tl.arange(0, 1024)), SIZE))


@gluon.jit
def turned(x, y, BLOCK: gl.constexpr):
    rows: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    runs: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    v = gl.convert_layout(gl.load(x + gl.arange(0, BLOCK, layout=rows)), runs)
    gl.store(y + gl.arange(0, BLOCK, layout=runs), v)
