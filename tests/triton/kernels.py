"""The kernels that these tests compile."""

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.language.extra.cuda import libdevice


@triton.jit
def scale(x, y, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * FACTOR, mask=i < n)


@triton.jit
def repeated(x, TIMES: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for k in tl.static_range(TIMES):
        tl.store(x + i + k * BLOCK, tl.load(x + i + k * BLOCK) * k)


@triton.jit
def multiply_add(x, y, z, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i) * tl.load(y + i) + tl.load(z + i))


@triton.jit
def powers(x, y, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(y + i, tl.math.exp2(tl.load(x + i)))


@triton.jit
def increment(x, y, SIZE: tl.constexpr):
    """lilac refuses the constraint: the operand in the register of the result."""
    i = tl.arange(0, SIZE)
    v = tl.load(x + i)
    v = tl.inline_asm_elementwise("add.f32 $0, $0, 0f3F800000;", "=f,0", [v], tl.float32, True, 1)
    tl.store(y + i, v)


@triton.jit
def copy_tile(count, source, target, row):
    """Descriptors from the host; the shape of one is read too."""
    target.store([0, row, 0], source.load([row, count])[None, :, :])
    source.store([row, source.shape[1] - 32], source.load([0, 0]))


@triton.jit
def copy_rows(x, y, rows, columns, FILL: tl.constexpr):
    """Descriptors that the kernel makes."""
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [16, 64], padding_option=FILL)
    target = tl.make_tensor_descriptor(y, [rows, columns], [columns, 1], [16, 64])
    for row in range(0, rows, 16):
        target.store([row, 0], source.load([row, 0]))


@triton.jit
def gather(x, index, y, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(y + i, tl.gather(tl.load(x + i), tl.load(index + i), 0))


@triton.jit
def long_row_sums(x, y, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r, c = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS], dtype=tl.float32)
    for first in range(0, columns, COLUMNS):
        total += tl.sum(tl.load(x + r[:, None] * columns + first + c[None, :]), 1)
    tl.store(y + r, total)


@triton.jit
def flattened(x, y, rows, columns, BLOCK: tl.constexpr, FLATTEN: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for row in tl.range(0, rows, flatten=FLATTEN):
        for first in tl.range(0, columns, BLOCK):
            total += tl.load(x + row * columns + first + i)
    tl.store(y + i, total)


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


@triton.autotune([triton.Config({}, num_warps=4), triton.Config({}, num_warps=2)], key=[])
@triton.jit
def tuned_warps(x):
    i = tl.arange(0, 128)
    tl.store(x + i, tl.load(x + i) + 1)


@triton.jit
def assembly(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.inline_asm_elementwise("{ .reg .pred p; testp.normal.f32 p, $1; selp.f32 $0, $1, 0f00000000, p; }", "=f,f", [tl.load(x + i)], tl.float32, True, 1)
    tl.store(y + i, v)


@gluon.jit
def turned(x, y, BLOCK: gl.constexpr):
    rows: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    runs: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    v = gl.convert_layout(gl.load(x + gl.arange(0, BLOCK, layout=rows)), runs)
    gl.store(y + gl.arange(0, BLOCK, layout=runs), v)


@triton.jit
def bessel(n, x, y, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    v, order = tl.load(x + i), tl.load(n + i)
    first = libdevice.j0(v) + libdevice.j1(v) + libdevice.jn(order, v)
    tl.store(y + i, first + libdevice.y0(v) + libdevice.y1(v) + libdevice.yn(order, v))


@triton.jit
def directed(x, y, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    v = tl.load(x + i)
    w = libdevice.fma_rz(libdevice.mul_rd(v, v), libdevice.div_ru(v, v), libdevice.rcp_rz(v))
    tl.store(y + i, libdevice.sub_rd(libdevice.add_ru(libdevice.sqrt_rz(w), v), w))


@triton.jit
def byte_floats(x, y, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    v = tl.abs(tl.load(x + i))
    tl.device_print("v", v)
    tl.store(y + i, tl.where(i < 7, v, tl.load(y + i)))
