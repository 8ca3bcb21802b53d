"""Gated activations of feed-forward layers, forward and backward: SwiGLU and GEGLU."""

import math

import triton
import triton.language as tl
from triton.language.extra import libdevice

from ..case import Buffer, Case, Launch, within


@triton.jit
def silu_and_mul(x, out, columns, BLOCK: tl.constexpr):
    """x holds gate and value side by side in each row."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    gate = tl.load(x + row * 2 * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    value = tl.load(x + row * 2 * columns + columns + offsets, mask=mask, other=0.0).to(tl.float32)
    result = gate * tl.sigmoid(gate) * value
    tl.store(out + row * columns + offsets, result.to(out.dtype.element_ty), mask=mask)


@triton.jit
def swiglu(gate, value, out, stride, columns, BLOCK: tl.constexpr):
    """A row a program."""
    row = tl.program_id(0).to(tl.int64)
    offsets = row * stride + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < columns
    g = tl.load(gate + offsets, mask=mask, other=0.0).to(tl.float32)
    v = tl.load(value + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + offsets, (g * tl.sigmoid(g) * v).to(out.dtype.element_ty), mask=mask)


@triton.jit
def swiglu_backward(gate, value, dout, dgate, dvalue, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    g = tl.load(gate + offsets, mask=mask, other=0.0).to(tl.float32)
    v = tl.load(value + offsets, mask=mask, other=0.0).to(tl.float32)
    d = tl.load(dout + offsets, mask=mask, other=0.0).to(tl.float32)
    sigmoid = tl.sigmoid(g)
    silu = g * sigmoid
    tl.store(dgate + offsets, (d * v * (silu * (1 - sigmoid) + sigmoid)).to(dgate.dtype.element_ty),
             mask=mask)
    tl.store(dvalue + offsets, (d * silu).to(dvalue.dtype.element_ty), mask=mask)


@triton.jit
def geglu_tanh(gate, value, out, stride, columns, BLOCK: tl.constexpr):
    """The approximation of GELU by a hyperbolic tangent."""
    row = tl.program_id(0).to(tl.int64)
    offsets = row * stride + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < columns
    g = tl.load(gate + offsets, mask=mask, other=0.0).to(tl.float32)
    v = tl.load(value + offsets, mask=mask, other=0.0)
    inner = 0.7978845608028654 * (g + 0.044715 * g * g * g)
    gelu = 0.5 * g * (1 + libdevice.tanh(inner))
    tl.store(out + offsets, (gelu * v.to(tl.float32)).to(out.dtype.element_ty), mask=mask)


@triton.jit
def geglu_erf(x, out, columns, BLOCK: tl.constexpr):
    """GELU itself; gate and value side by side in each row."""
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    gate = tl.load(x + row * 2 * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    value = tl.load(x + row * 2 * columns + columns + offsets, mask=mask, other=0.0).to(tl.float32)
    gelu = 0.5 * gate * (1 + tl.erf(gate * 0.7071067811865476))
    tl.store(out + row * columns + offsets, (gelu * value).to(out.dtype.element_ty), mask=mask)


@triton.jit
def geglu_tanh_backward(gate, value, dout, stride, columns, BLOCK: tl.constexpr):
    """The gradients take the place of gate and value."""
    row = tl.program_id(0).to(tl.int64)
    offsets = row * stride + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < columns
    g = tl.load(gate + offsets, mask=mask, other=0.0).to(tl.float32)
    v = tl.load(value + offsets, mask=mask, other=0.0).to(tl.float32)
    d = tl.load(dout + offsets, mask=mask, other=0.0).to(tl.float32)
    square = g * g
    tangent = libdevice.tanh(0.7978845608028654 * g * (1 + 0.044715 * square))
    gelu = 0.5 * g * (1 + tangent)
    slope = 0.7978845608028654 * (1 + 0.134145 * square)
    derivative = 0.5 * (1 + tangent) + 0.5 * g * (1 - tangent * tangent) * slope
    tl.store(gate + offsets, (d * v * derivative).to(gate.dtype.element_ty), mask=mask)
    tl.store(value + offsets, (d * gelu).to(value.dtype.element_ty), mask=mask)


def silu(x):
    return x * x.sigmoid()


def gelu_tanh(x):
    return 0.5 * x * (1 + (math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)).tanh())


def gelu(x):
    return 0.5 * x * (1 + (x * math.sqrt(0.5)).erf())


def halves_case(kernel, name, activation, dtype, rows, columns, block=1024, num_warps=4):
    launch = Launch(kernel, (rows, triton.cdiv(columns, block)),
                    [Buffer((rows, 2 * columns), dtype), Buffer((rows, columns), dtype, output=True),
                     columns], BLOCK=block, num_warps=num_warps)
    return Case(f"{name}_{dtype}_{rows}x{columns}", name.split("_")[0], launch,
                lambda a: activation(a.x[:, :columns]) * a.x[:, columns:],
                operations=6 * rows * columns, tolerance=within(dtype, 24))


def rows_case(kernel, name, activation, dtype, rows, columns, num_warps=8):
    matrix = Buffer((rows, columns), dtype)
    launch = Launch(kernel, rows,
                    [matrix, matrix, Buffer((rows, columns), dtype, output=True), columns, columns],
                    BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    return Case(f"{name}_{dtype}_{rows}x{columns}", name.split("_")[0], launch,
                lambda a: activation(a.gate) * a.value, operations=6 * rows * columns,
                tolerance=within(dtype, 24))


def swiglu_backward_case(dtype, rows, columns, block=1024, num_warps=4):
    n = rows * columns
    matrix, result = Buffer((rows, columns), dtype), Buffer((rows, columns), dtype, output=True)

    def reference(a):
        sigmoid = a.gate.sigmoid()
        return {"dgate": a.dout * a.value * sigmoid * (1 + a.gate * (1 - sigmoid)),
                "dvalue": a.dout * silu(a.gate)}

    launch = Launch(swiglu_backward, triton.cdiv(n, block), [matrix, matrix, matrix, result, result, n],
                    BLOCK=block, num_warps=num_warps)
    return Case(f"swiglu_backward_{dtype}_{rows}x{columns}", "swiglu", launch, reference,
                operations=12 * n, tolerance=within(dtype, 24))


def geglu_backward_case(dtype, rows, columns, num_warps=8):
    matrix = Buffer((rows, columns), dtype)
    changed = Buffer((rows, columns), dtype, "normal", output=True)

    def reference(a):
        gate = a.gate.clone().requires_grad_()
        gelu_tanh(gate).backward(a.dout * a.value)
        return {"gate": gate.grad, "value": a.dout * gelu_tanh(a.gate)}

    launch = Launch(geglu_tanh_backward, rows, [changed, changed, matrix, columns, columns],
                    BLOCK=triton.next_power_of_2(columns), num_warps=num_warps)
    return Case(f"geglu_backward_{dtype}_{rows}x{columns}", "geglu", launch, reference,
                operations=20 * rows * columns, tolerance=within(dtype, 48))


def cases():
    return [
        halves_case(silu_and_mul, "swiglu_halves", silu, "bf16", 4096, 11008),
        halves_case(silu_and_mul, "swiglu_halves", silu, "f16", 4096, 14336, block=2048, num_warps=8),
        rows_case(swiglu, "swiglu", silu, "f16", 4096, 8192),
        rows_case(swiglu, "swiglu", silu, "f32", 4096, 5000),
        swiglu_backward_case("bf16", 4096, 8192),
        swiglu_backward_case("f32", 2048, 5120, block=2048, num_warps=8),
        rows_case(geglu_tanh, "geglu_tanh", gelu_tanh, "bf16", 8192, 4096),
        rows_case(geglu_tanh, "geglu_tanh", gelu_tanh, "f32", 4096, 4096),
        halves_case(geglu_erf, "geglu_erf", gelu, "bf16", 4096, 10240),
        geglu_backward_case("bf16", 4096, 8192),
        geglu_backward_case("f16", 8192, 3072, num_warps=4),
    ]
