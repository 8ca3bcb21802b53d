"""What the benchmark allows weighted sums whose weights are rounded, as in attention and linear attention: kernels in
NumPy with the roundings of a GPU's pass with a margin, and those with one fault do not. (The 14 bits that wgmma keeps
of sums of 8-bit floats are not imitated.)"""

import math

import pytest

from lilac.bench.case import ROUNDING
from lilac.bench.operators.products.chained import linearly
from lilac.bench.operators.products.operands import inexact, spread, weighted

numpy = pytest.importorskip("numpy")

LENGTH, D, BM, BN = 1024, 64, 128, 64
BITS = {"f16": (11, -14), "bf16": (8, -126), "f8e4m3": (4, -6), "f8e5m2": (3, -14)}  # digits, least exponent


def rounded(x, dtype):
    """To the nearest number of this type, ties to even; nothing here is large."""
    digits, least = BITS[dtype]
    x = numpy.asarray(x, numpy.float64)
    unit = numpy.exp2(numpy.maximum(numpy.frexp(x)[1] - 1, least) - digits + 1)
    return numpy.rint(x / unit) * unit


def test_rounding():
    x = numpy.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, 3e-8, -2.5, 0.0])
    assert rounded(x, "f16").tolist() == x.astype(numpy.float16).tolist()
    assert rounded([1.0625, 2.0**-10, 1.1 * 2.0**-10], "f8e4m3").tolist() == [1.0, 0.0, 2.0**-9]


def seen_by(rows, columns, window=0, off=0):
    """off: how many columns beyond the diagonal are seen."""
    distance = rows[:, None] - columns[None, :]
    return (distance >= -off) & (distance < (window or 2 * LENGTH))


def inputs(dtype, seed=1):
    generator = numpy.random.default_rng(seed)
    return [rounded(generator.standard_normal((LENGTH, D)), dtype) for _ in range(3)]


def kernel(q, k, v, dtype, out, seen, fault=None, stored=None):
    """The blocks of columns of attention in f32. Faults: see FAULTS."""
    f32 = numpy.float32
    scale = f32(D**-0.5 * math.log2(math.e))
    rows, results = numpy.arange(LENGTH), []
    for top in range(0, LENGTH, BM):
        at = rows[top:top + BM]
        highest, total, result = numpy.full(BM, -numpy.inf, f32), numpy.zeros(BM, f32), numpy.zeros((BM, D), f32)
        for number, start in enumerate(range(0, LENGTH, BN)):
            columns = rows[start:start + BN]
            mask = seen(at, columns)
            if start > at[-1] + 1 and not mask.any():
                break
            s = numpy.where(mask, (q[at] @ k[columns].T).astype(f32) * scale, f32(-1e6))
            higher = numpy.maximum(highest, s.max(1))
            p = numpy.exp2(s - higher[:, None])
            fade = numpy.exp2(highest - higher)
            total = total * (1 if fault == "total not faded" else fade) + p.sum(1)
            if fault != "result not faded":
                result = result * fade[:, None]
            if not (fault == "block left out" and number == 3):
                result = (result + rounded(p, stored or dtype) @ v[columns]).astype(f32)
            highest = higher
        results.append(rounded(result / total[:, None], out))
    return numpy.concatenate(results)


def expected(q, k, v, dtype, out, seen):
    rows = numpy.arange(LENGTH)
    s = numpy.where(seen(rows, rows), D**-0.5 * (q @ k.T), -numpy.inf)
    weights = numpy.exp(s - s.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    return weighted(weights, v, dtype, out, inexact(dtype, D, LENGTH), weights.max(1, keepdims=True))


def error(got, want):
    return (abs(got - want.value) / want.allowed).max()


MASKS = {"full": lambda rows, columns: numpy.ones((len(rows), len(columns)), bool), "causal": seen_by,
         "window": lambda rows, columns: seen_by(rows, columns, 200)}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", BITS)
def test_right_kernels(dtype, mask):
    """The margin: among 65536 elements, the worst is at most three quarters of what is allowed."""
    out = "f16" if dtype.startswith("f8") else dtype
    q, k, v = inputs(dtype)
    assert 0.05 < error(kernel(q, k, v, dtype, out, MASKS[mask]), expected(q, k, v, dtype, out, MASKS[mask])) < 0.75


FAULTS = {
    "one column too many": {"seen": lambda rows, columns: seen_by(rows, columns, off=1)},
    "one column too few": {"seen": lambda rows, columns: seen_by(rows, columns, off=-1) | (rows == 0)[:, None]},
    "total not faded": {"fault": "total not faded"},
    "result not faded": {"fault": "result not faded"},
    "block left out": {"fault": "block left out"},
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("dtype", BITS)
def test_faults_under_a_causal_mask(dtype, fault):
    out = "f16" if dtype.startswith("f8") else dtype
    q, k, v = inputs(dtype)
    wrong = kernel(q, k, v, dtype, out, **{"seen": seen_by, **FAULTS[fault]})
    assert error(wrong, expected(q, k, v, dtype, out, seen_by)) > (2 if dtype == "f8e5m2" else 3)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("window", [199, 201])
def test_windows_that_are_one_column_off(dtype, window):
    q, k, v = inputs(dtype)
    wrong = kernel(q, k, v, dtype, dtype, lambda rows, columns: seen_by(rows, columns, window))
    assert error(wrong, expected(q, k, v, dtype, dtype, MASKS["window"])) > 3


@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("dtype, stored", [("f16", "bf16"), ("bf16", "f8e4m3")])
def test_weights_of_too_few_bits(dtype, stored, mask):
    q, k, v = inputs(dtype)
    wrong = kernel(q, k, v, dtype, dtype, MASKS[mask], stored=stored)
    assert error(wrong, expected(q, k, v, dtype, dtype, MASKS[mask])) > 1.2


CHUNK = 64


def linear_kernel(q, k, v, dtype, gamma, fault=None):
    """Linear attention in chunks, as lilac.bench.operators.products.chained has it."""
    f32 = numpy.float32
    at = numpy.arange(CHUNK)
    distance = at[:, None] - at[None, :]
    mask = numpy.where(distance >= (-1 if fault == "one column too many" else 0), gamma**distance.astype(float), 0)
    state, results, scale = numpy.zeros((D, D), f32), [], D**-0.5
    for start in range(0, LENGTH, CHUNK):
        query, key, value = (one[start:start + CHUNK] for one in (q, k, v))
        inner = rounded((query @ key.T * scale * mask).astype(f32), dtype) @ value
        late = 0 if fault == "decayed one row late" else 1
        outer = query @ rounded(state, dtype) * scale * gamma**(at + late)[:, None]
        results.append(rounded((inner + outer).astype(f32), dtype))
        faded = rounded(key.T * gamma**(CHUNK - 1 - at), dtype)
        fade = 1 if fault == "state not faded" else gamma**CHUNK
        state = (state * fade + faded @ value).astype(f32)
    return numpy.concatenate(results)


@pytest.mark.parametrize("gamma", [1 - 2.0**-5, 1 - 2.0**-9, 1.0])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_linear_attention(dtype, gamma):
    q, k, v = inputs(dtype)
    at = numpy.arange(LENGTH)
    distance = (at[:, None] - at[None, :]).astype(float)
    scale = D**-0.5 * numpy.where(distance >= 0, gamma**numpy.maximum(distance, 0), 0)
    want = linearly(q, k, v, scale, at[:, None] // CHUNK == at[None, :] // CHUNK, gamma != 1, dtype)
    assert 0.1 < error(linear_kernel(q, k, v, dtype, gamma), want) < 0.75
    assert error(linear_kernel(q, k, v, dtype, gamma, "one column too many"), want) > 3
    if gamma != 1:
        assert error(linear_kernel(q, k, v, dtype, gamma, "state not faded"), want) > 3
    if gamma < 0.99:  # by 2^-9, the size of a rounding, it is not seen
        assert error(linear_kernel(q, k, v, dtype, gamma, "decayed one row late"), want) > (1.2 if dtype == "bf16" else 3)


def test_a_sum_is_within_its_spread():
    """Both bounds: two terms reach the sum of their magnitudes, a thousand stay far below it."""
    one = numpy.ones((1, 2)), numpy.array([[1.0, 1.0], [2.0, -2.0]])
    assert spread(*one).tolist() == [[3.0, 3.0]]
    generator = numpy.random.default_rng(2)
    errors, values = numpy.ones((1, 1000)), generator.standard_normal((1000, 4000))
    bound = spread(errors, values)
    assert (abs(errors @ values) < 0.7 * bound).all() and (bound < 0.4 * abs(values).sum(0)).all()


def test_the_rounding_decides():
    """What f32 adds is less than the rounding of the weights, for the lengths of the cases in 16 bits."""
    assert inexact("f16", 64, 4096) < ROUNDING["f16"] and inexact("bf16", 128, 16384) < ROUNDING["bf16"]
