"""The kernels of tests/data/corpus that need no matrix product, at full size and as they stand there."""

import triton
import triton.language as tl

from ..case import Buffer, Case, Launch, within
from .norms import EPSILON, layer_norm_reference, normalised
from .reductions import first_argmax
from .rope import turned


@triton.jit
def vector_add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@triton.jit
def softmax(o, x, xs, os, rows, cols, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    m = c < cols
    v = tl.load(x + r * xs + c, mask=m, other=-float("inf")).to(tl.float32)
    v = tl.exp(v - tl.max(v, 0))
    v = v / tl.sum(v, 0)
    tl.store(o + r * os + c, v.to(o.dtype.element_ty), mask=m)


@triton.jit
def layer_norm(x, y, weight, bias, mean, rstd, stride, N, epsilon, B: tl.constexpr):
    row = tl.program_id(0)
    x += row * stride
    y += row * stride
    acc = tl.zeros([B], tl.float32)
    for off in range(0, N, B):
        c = off + tl.arange(0, B)
        acc += tl.load(x + c, mask=c < N, other=0.0).to(tl.float32)
    mu = tl.sum(acc, 0) / N
    acc = tl.zeros([B], tl.float32)
    for off in range(0, N, B):
        c = off + tl.arange(0, B)
        v = tl.load(x + c, mask=c < N, other=0.0).to(tl.float32)
        v = tl.where(c < N, v - mu, 0.0)
        acc += v * v
    rs = 1 / tl.sqrt(tl.sum(acc, 0) / N + epsilon)
    tl.store(mean + row, mu)
    tl.store(rstd + row, rs)
    for off in range(0, N, B):
        c = off + tl.arange(0, B)
        m = c < N
        v = (tl.load(x + c, mask=m, other=0.0).to(tl.float32) - mu) * rs
        v = v * tl.load(weight + c, mask=m) + tl.load(bias + c, mask=m)
        tl.store(y + c, v.to(y.dtype.element_ty), mask=m)


@triton.jit
def rms_norm(x, weight, y, stride, N, epsilon, B: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, B)
    m = c < N
    v = tl.load(x + row * stride + c, mask=m, other=0.0).to(tl.float32)
    v = v * tl.rsqrt(tl.sum(v * v, 0) / N + epsilon)
    v = v * tl.load(weight + c, mask=m, other=0.0)
    tl.store(y + row * stride + c, v.to(y.dtype.element_ty), mask=m)


@triton.jit
def swiglu(a, b, o, stride, N, B: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, B)
    m = c < N
    x = tl.load(a + r * stride + c, mask=m, other=0).to(tl.float32)
    y = tl.load(b + r * stride + c, mask=m, other=0)
    tl.store(o + r * stride + c, (x * tl.sigmoid(x)).to(y.dtype) * y, mask=m)


@triton.jit
def cross_entropy(x, t, loss, stride, V, B: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    x += r * stride
    y = tl.load(t + r)
    m = -float("inf")
    d = 0.0
    for i in range(0, V, B):
        c = i + tl.arange(0, B)
        v = tl.load(x + c, mask=c < V, other=-float("inf")).to(tl.float32)
        bm = tl.max(v, 0)
        mn = tl.maximum(m, bm)
        d = d * tl.exp(m - mn) + tl.sum(tl.exp(v - mn), 0)
        m = mn
    tl.store(loss + r, m + tl.log(d) - tl.load(x + y).to(tl.float32))


@triton.jit
def transpose(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    v = tl.load(x + rm[:, None] * N + rn[None, :])
    tl.store(y + rn[:, None] * M + rm[None, :], tl.trans(v))


@triton.jit
def gather_rows(src, idx, out, R: tl.constexpr, C: tl.constexpr, AX: tl.constexpr, K: tl.constexpr):
    p = tl.program_id(0)
    r = tl.arange(0, R)
    c = tl.arange(0, C)
    s = tl.load(src + p * R * C + r[:, None] * C + c[None, :])
    ix = tl.load(idx + p * R * C + r[:, None] * C + c[None, :])
    for _ in range(K):
        s = tl.gather(s, ix, AX)
    tl.store(out + p * R * C + r[:, None] * C + c[None, :], s)


@triton.jit
def scan_rows(x, y, R: tl.constexpr, C: tl.constexpr, REV: tl.constexpr):
    p = tl.program_id(0)
    o = p * R * C + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    tl.store(y + o, tl.cumsum(tl.load(x + o), 1, reverse=REV))


@triton.jit
def rope(q, cos, sin, o, seq, H, D: tl.constexpr, B: tl.constexpr):
    t = tl.program_id(0)
    h = tl.arange(0, B)
    d = tl.arange(0, D)
    cs = tl.load(cos + (t % seq) * (D // 2) + tl.arange(0, D // 2))
    sn = tl.load(sin + (t % seq) * (D // 2) + tl.arange(0, D // 2))
    x = tl.load(q + t * H * D + h[:, None] * D + d[None, :], mask=h[:, None] < H, other=0.0)
    a, b = tl.split(x.reshape(B, D // 2, 2))
    a = a.to(tl.float32)
    b = b.to(tl.float32)
    y = tl.join(a * cs[None, :] - b * sn[None, :], a * sn[None, :] + b * cs[None, :]).reshape(B, D)
    tl.store(o + t * H * D + h[:, None] * D + d[None, :], y.to(o.dtype.element_ty), mask=h[:, None] < H)


@triton.jit
def reduce2d(x, y, z, M: tl.constexpr, N: tl.constexpr, AX: tl.constexpr):
    p = tl.program_id(0)
    v = tl.load(x + p * M * N + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    L: tl.constexpr = N if AX == 0 else M
    tl.store(y + p * L + tl.arange(0, L), tl.sum(v, AX))
    tl.store(z + p * L + tl.arange(0, L), tl.argmax(v, AX))


@triton.jit
def histogram_sort(x, h, s, N: tl.constexpr, B: tl.constexpr):
    p = tl.program_id(0)
    v = tl.load(x + p * N + tl.arange(0, N))
    tl.atomic_add(h + tl.arange(0, B), tl.histogram(v, B))
    tl.store(s + p * N + tl.arange(0, N), tl.sort(v))


def matrix(rows, columns, dtype, output=False):
    return Buffer((rows, columns), dtype, output=output)


def vector_add_case(n=1 << 26):
    launch = Launch(vector_add, triton.cdiv(n, 1024),
                    [Buffer(n, "f32"), Buffer(n, "f32"), Buffer(n, "f32", output=True), n], B=1024)
    return Case("vector_add_f32", "corpus", launch, lambda a: a.x + a.y, operations=n,
                tolerance=within("f32"))


def softmax_case(name, dtype, columns, num_warps, rows=16384):
    launch = Launch(softmax, rows,
                    [matrix(rows, columns, dtype, True), matrix(rows, columns, dtype), columns, columns,
                     rows, columns], B=triton.next_power_of_2(columns), num_warps=num_warps)
    return Case(f"softmax_{name}_{columns}", "corpus", launch, lambda a: a.x.softmax(-1),
                operations=5 * rows * columns, tolerance=within(dtype, 48))


def layer_norm_case(columns, block, num_warps, rows=8192):
    statistic = Buffer(rows, "f32", output=True)
    launch = Launch(layer_norm, rows,
                    [matrix(rows, columns, "f16"), matrix(rows, columns, "f16", True),
                     Buffer(columns, "f16"), Buffer(columns, "f16"), statistic, statistic, columns,
                     columns, EPSILON], B=block, num_warps=num_warps)
    return Case(f"layer_norm_f16_{columns}", "corpus", launch, layer_norm_reference,
                operations=8 * rows * columns,
                tolerance={"y": within("f16", 64), "mean": within("f32", 64), "rstd": within("f32", 32)})


def rms_norm_case(columns, rows=8192):
    launch = Launch(rms_norm, rows,
                    [matrix(rows, columns, "f16"), Buffer(columns, "f16"),
                     matrix(rows, columns, "f16", True), columns, columns, EPSILON],
                    B=triton.next_power_of_2(columns), num_warps=8)
    return Case(f"rms_norm_f16_{columns}", "corpus", launch,
                lambda a: normalised(a.x, a.weight, a.epsilon), operations=5 * rows * columns,
                tolerance=within("f16", 32))


def swiglu_case(rows=8192, columns=4096):
    launch = Launch(swiglu, rows,
                    [matrix(rows, columns, "bf16"), matrix(rows, columns, "bf16"),
                     matrix(rows, columns, "bf16", True), columns, columns],
                    B=triton.next_power_of_2(columns), num_warps=8)
    # x * sigmoid(x) is rounded before the product, which is rounded again.
    return Case("swiglu_bf16", "corpus", launch, lambda a: a.a * a.a.sigmoid() * a.b,
                operations=6 * rows * columns, tolerance=2.01 * within("bf16", 24))


def cross_entropy_case(rows=4096, classes=50257):
    launch = Launch(cross_entropy, rows,
                    [matrix(rows, classes, "bf16"), Buffer(rows, "i64", ("integers", 0, classes)),
                     Buffer(rows, "f32", output=True), classes, classes], B=4096, num_warps=8)
    return Case("cross_entropy_bf16", "corpus", launch,
                lambda a: a.x.logsumexp(-1) - a.x.gather(1, a.t[:, None])[:, 0],
                operations=4 * rows * classes, tolerance=within("f32", 64))


def transpose_case(name, dtype, size=8192):
    launch = Launch(transpose, (size // 64, size // 64),
                    [matrix(size, size, dtype), matrix(size, size, dtype, True), size, size],
                    BM=64, BN=64)
    return Case(f"transpose_{name}", "corpus", launch, lambda a: a.x.T)


def gather_case(rows, columns, axis, programs=4096, times=4):
    shape = (programs, rows, columns)

    def reference(a):
        result = a.src
        for _ in range(times):
            result = result.gather(axis + 1, a.idx)
        return result

    launch = Launch(gather_rows, programs,
                    [Buffer(shape, "f32"), Buffer(shape, "i32", ("integers", 0, (rows, columns)[axis])),
                     Buffer(shape, "f32", output=True)], R=rows, C=columns, AX=axis, K=times)
    return Case(f"gather_{rows}x{columns}_axis{axis}", "corpus", launch, reference)


def cumsum_case(programs=8192, rows=16, columns=256):
    shape = (programs, rows, columns)
    launch = Launch(scan_rows, programs, [Buffer(shape, "f32"), Buffer(shape, "f32", output=True)],
                    R=rows, C=columns, REV=False)
    return Case(f"cumsum_{rows}x{columns}", "corpus", launch, lambda a: a.x.cumsum(-1),
                operations=programs * rows * columns, tolerance=within("f32", 64))


def rope_case(tokens=16384, heads=32, size=128, positions=4096):
    shape, angles = (tokens, heads, size), Buffer((positions, size // 2), "f32")
    launch = Launch(rope, tokens,
                    [Buffer(shape, "f16"), angles, angles, Buffer(shape, "f16", output=True), positions,
                     heads], D=size, B=triton.next_power_of_2(heads))
    return Case("rope_f16", "corpus", launch, lambda a: turned(a.q, a.cos, a.sin, False),
                operations=3 * tokens * heads * size, tolerance=within("f16", 4))


def reduce_case(rows, columns, axis, programs=2048):
    left = columns if axis == 0 else rows
    launch = Launch(reduce2d, programs,
                    [Buffer((programs, rows, columns), "f32"), Buffer((programs, left), "f32", output=True),
                     Buffer((programs, left), "i32", output=True)], M=rows, N=columns, AX=axis)
    return Case(f"reduce_{rows}x{columns}_axis{axis}", "corpus", launch,
                lambda a: {"y": a.x.sum(axis + 1), "z": first_argmax(a.x, axis + 1)},
                operations=2 * programs * rows * columns,
                tolerance={"y": within("f32", 32), "z": 0})


def histogram_sort_case(programs=4096, count=512, bins=128):
    launch = Launch(histogram_sort, programs,
                    [Buffer((programs, count), "i32", ("integers", 0, bins)),
                     Buffer(bins, "i32", "zeros", output=True),
                     Buffer((programs, count), "i32", output=True)], N=count, B=bins)
    return Case("histogram_sort", "corpus", launch,
                lambda a: {"h": a.x.flatten().bincount(minlength=bins), "s": a.x.sort(-1)[0]},
                operations=programs * count * (count - 1).bit_length())


def cases():
    return [
        vector_add_case(),
        softmax_case("float16", "f16", 4096, 8),
        softmax_case("float32", "f32", 1000, 4),
        softmax_case("bfloat16", "bf16", 8192, 8),
        layer_norm_case(4096, 4096, 8),
        layer_norm_case(5120, 1024, 4),
        rms_norm_case(4096),
        rms_norm_case(5120),
        swiglu_case(),
        cross_entropy_case(),
        transpose_case("float16", "f16"),
        transpose_case("float32", "f32"),
        transpose_case("int8", "i8"),
        gather_case(64, 32, 1),
        gather_case(32, 64, 0),
        gather_case(128, 8, 1),
        cumsum_case(),
        rope_case(),
        reduce_case(64, 64, 0),
        reduce_case(16, 256, 1),
        reduce_case(128, 128, 0),
        histogram_sort_case(),
    ]
