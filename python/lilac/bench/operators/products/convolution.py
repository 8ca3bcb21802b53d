"""Convolutions of images (channels last) as matrix products without a copy of the image: the rows of A are the
pixels of the result, its columns run over the window and the input's channels."""

import triton
import triton.language as tl

from ...case import Buffer, Case, Launch
from .operands import KINDS, multiplied, numbers, operand


@triton.jit
def convolution(x, w, bias, y, pixels, height, width, channels, out_height, out_width, out_channels,
                KERNEL: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                BK: tl.constexpr, RELU: tl.constexpr):
    """x is [batch, height, width, channels], w is [KERNEL, KERNEL, channels, out_channels]."""
    pixel = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    batch = pixel // (out_height * out_width)
    top = pixel // out_width % out_height * STRIDE - PADDING
    left = pixel % out_width * STRIDE - PADDING
    steps = tl.cdiv(channels, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, KERNEL * KERNEL * steps):
        window = step // steps
        channel = step % steps * BK + depth
        row = top + window // KERNEL
        column = left + window % KERNEL
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width) & (pixel < pixels)
        x_at = x + ((batch * height + row) * width + column)[:, None] * channels + channel[None, :]
        w_at = w + (window * channels + channel)[:, None] * out_channels + columns[None, :]
        image = tl.load(x_at, mask=inside[:, None] & (channel < channels)[None, :], other=0.0)
        filters = tl.load(w_at, mask=(channel < channels)[:, None] & (columns < out_channels)[None, :], other=0.0)
        total = tl.dot(image, filters, total)
    total += tl.load(bias + columns, mask=columns < out_channels, other=0.0).to(tl.float32)[None, :]
    if RELU:
        total = tl.maximum(total, 0.0)
    mask = (pixel < pixels)[:, None] & (columns < out_channels)[None, :]
    tl.store(y + pixel[:, None] * out_channels + columns[None, :], total.to(y.dtype.element_ty), mask=mask)


def windows(x, kernel, stride, padding, out_height, out_width):
    """(row, column, the pixels of x that this element of the window meets) for each element of the window."""
    from torch.nn import functional

    padded = functional.pad(x, (0, 0, padding, padding, padding, padding))
    for row in range(kernel):
        for column in range(kernel):
            yield row, column, padded[:, row:row + (out_height - 1) * stride + 1:stride,
                                      column:column + (out_width - 1) * stride + 1:stride]


def sizes(height, width, kernel, stride, padding):
    return (height + 2 * padding - kernel) // stride + 1, (width + 2 * padding - kernel) // stride + 1


def convolution_case(kind, batch, height, width, channels, out_channels, kernel=3, stride=1, relu=False,
                     tile=(128, 128, 64), num_warps=8, num_stages=3):
    padding, known = kernel // 2, KINDS[kind]
    out_height, out_width = sizes(height, width, kernel, stride, padding)
    pixels, image = batch * out_height * out_width, (batch, height, width, channels)
    launch = Launch(convolution, (triton.cdiv(pixels, tile[0]), triton.cdiv(out_channels, tile[1])),
                    [Buffer(image, known.dtype, numbers(kind, image)),
                     operand(kind, channels, out_channels, batch=(kernel, kernel)), Buffer(out_channels, known.dtype),
                     Buffer((batch, out_height, out_width, out_channels), known.out, output=True), pixels, height,
                     width,
                     channels, out_height, out_width, out_channels],
                    KERNEL=kernel, STRIDE=stride, PADDING=padding, BM=tile[0], BN=tile[1], BK=tile[2], RELU=relu,
                    num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        total = a.bias
        for row, column, image in windows(a.x, kernel, stride, padding, out_height, out_width):
            total = total + image @ a.w[row, column]
        return total.relu() if relu else total

    depth = kernel * kernel * channels
    return Case(f"convolution_{kind}_{batch}x{height}x{width}x{channels}_to_{out_channels}_window_{kernel}"
                + (f"_stride_{stride}" if stride > 1 else ""), "convolution", launch, reference,
                operations=2 * pixels * out_channels * depth, unit=known.unit,
                tolerance=multiplied(kind, known.out, depth))


@triton.jit
def convolution_gradient(x, dy, dw, pixels, height, width, channels, out_height, out_width, out_channels,
                         KERNEL: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr, SPLIT: tl.constexpr,
                         BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The gradient of the filters: for each element of the window, imageᵀ dy. SPLIT programs add to each tile."""
    channel = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    window = tl.program_id(2) // SPLIT
    part = tl.program_id(2) % SPLIT
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(part * BK, pixels, SPLIT * BK):
        pixel = start + tl.arange(0, BK)
        row = pixel // out_width % out_height * STRIDE - PADDING + window // KERNEL
        column = pixel % out_width * STRIDE - PADDING + window % KERNEL
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width) & (pixel < pixels)
        place = (pixel // (out_height * out_width) * height + row) * width + column
        image = tl.load(x + place[None, :] * channels + channel[:, None],
                        mask=inside[None, :] & (channel < channels)[:, None], other=0.0)
        gradient = tl.load(dy + pixel[:, None] * out_channels + columns[None, :],
                           mask=(pixel < pixels)[:, None] & (columns < out_channels)[None, :], other=0.0)
        total = tl.dot(image, gradient, total)
    at = dw + (window * channels + channel)[:, None] * out_channels + columns[None, :]
    tl.atomic_add(at, total, mask=(channel < channels)[:, None] & (columns < out_channels)[None, :], sem="relaxed")


def gradient_case(kind, batch, height, width, channels, out_channels, kernel=3, stride=1, split=4, tile=(64, 64, 64),
                  num_warps=4, num_stages=3):
    padding, known = kernel // 2, KINDS[kind]
    out_height, out_width = sizes(height, width, kernel, stride, padding)
    pixels = batch * out_height * out_width
    launch = Launch(convolution_gradient,
                    (triton.cdiv(channels, tile[0]), triton.cdiv(out_channels, tile[1]), kernel * kernel * split),
                    [Buffer((batch, height, width, channels), known.dtype),
                     Buffer((batch, out_height, out_width, out_channels), known.dtype),
                     Buffer((kernel, kernel, channels, out_channels), "f32", "zeros", output=True), pixels, height,
                     width,
                     channels, out_height, out_width, out_channels],
                    KERNEL=kernel, STRIDE=stride, PADDING=padding, SPLIT=split, BM=tile[0], BN=tile[1], BK=tile[2],
                    num_warps=num_warps, num_stages=num_stages)

    def reference(a):
        dw = a.x.new_empty((kernel, kernel, channels, out_channels))
        for row, column, image in windows(a.x, kernel, stride, padding, out_height, out_width):
            dw[row, column] = image.reshape(pixels, channels).T @ a.dy.reshape(pixels, out_channels)
        return dw

    return Case(f"convolution_gradient_{kind}_{batch}x{height}x{width}x{channels}_to_{out_channels}_window_{kernel}",
                "convolution", launch, reference, operations=2 * pixels * out_channels * kernel * kernel * channels,
                unit=known.unit, tolerance=multiplied(kind, "f32", pixels))


def cases():
    return [
        convolution_case("f16", 32, 56, 56, 64, 64, tile=(128, 64, 64), num_warps=4),
        convolution_case("f16", 32, 28, 28, 128, 128),
        convolution_case("bf16", 64, 14, 14, 256, 256),
        convolution_case("f16", 32, 56, 56, 128, 256, stride=2),
        convolution_case("bf16", 32, 56, 56, 256, 512, kernel=1, relu=True),
        convolution_case("f16", 32, 224, 224, 3, 64, kernel=7, stride=2, tile=(128, 64, 16), num_warps=4),
        convolution_case("bf16", 4, 64, 64, 320, 640),
        convolution_case("f16", 8, 128, 128, 100, 200, kernel=5, tile=(128, 128, 32)),
        convolution_case("tf32", 16, 56, 56, 128, 128, tile=(128, 128, 32)),
        gradient_case("f16", 32, 28, 28, 128, 128),
        gradient_case("bf16", 32, 56, 56, 64, 64, split=16),
    ]


def small():
    tile = {"tile": (32, 32, 16), "num_warps": 4}
    return [
        convolution_case("f16", 1, 9, 7, 20, 24, **tile),
        convolution_case("bf16", 1, 8, 8, 16, 32, stride=2, relu=True, **tile),
        convolution_case("tf32", 1, 6, 6, 16, 16, kernel=1, **tile),
        convolution_case("f16", 1, 12, 12, 3, 16, kernel=7, stride=2, **tile),
        gradient_case("f16", 1, 6, 7, 20, 24, split=2, **tile)]
