#!/usr/bin/env python3
"""Computes the polynomials of src/lower/math/f32_*.c and prints them.

    python3 scripts/coefficients_f32.py

Needs mpmath and NumPy. Each polynomial is the minimax approximation of its function on its interval,
where the error is multiplied by the weight of the polynomial in the result (Lawson's algorithm, iterated
weighted least squares on a Chebyshev grid). Its coefficients are rounded to f32 one after another,
lowest power first, and after each the remaining ones are fitted again. Printed are the largest relative
error of the result, before and after the roundings, and the coefficients.
"""

import math

import mpmath as mp
import numpy as np

mp.mp.dps = 50
POINTS, ITERATIONS = 600, 60


def lawson(wanted, weight, basis):
    """(largest weighted error, coefficients)"""
    share = np.full(len(wanted), 1 / len(wanted))
    best = None
    for _ in range(ITERATIONS):
        scale = np.sqrt(share) * weight
        q, r = np.linalg.qr(basis * scale[:, None])
        coefficients = np.linalg.solve(r, q.T @ (wanted * scale))
        errors = np.abs(weight * (basis @ coefficients - wanted))
        if best is None or errors.max() < best[0]:
            best = errors.max(), coefficients
        share = share * (errors / errors.max() + 1e-6)
        share /= share.sum()
    return best


def fit(function, low, high, terms, weight, fixed=()):
    k = np.arange(POINTS)
    xs = (low + high) / 2 + (high - low) / 2 * np.cos(math.pi * (2 * k + 1) / (2 * POINTS))
    ys = np.array([function(x) for x in xs])
    weights = np.array([weight(x) for x in xs])
    found, ideal = list(fixed), None
    while len(found) < terms:
        rest = ys - sum((c * xs**i for i, c in enumerate(found)), np.zeros(POINTS))
        error, c = lawson(rest, weights, np.stack([xs**i for i in range(len(found), terms)], 1))
        ideal = ideal or error
        found.append(float(np.float32(c[0])))
    return ideal, np.abs(weights * (sum(c * xs**i for i, c in enumerate(found)) - ys)).max(), found


def after_first(function):
    """(f(x) / x - 1) / x² of z = x², for an odd function."""
    def result(z):
        x = mp.sqrt(max(z, 1e-24))
        return float((function(x) / x - 1) / x**2)
    return result


def of_odd(function):
    """The weight of such a polynomial: its part of the result."""
    def result(z):
        x = math.sqrt(z)
        return z * x / function(x) if z > 1e-12 else 0
    return result


def log_tail(x):
    x = mp.mpf(x if abs(x) > 1e-12 else 1e-12)
    return float((mp.log1p(x) - x + x * x / 2) / x**3)


def log_weight(x):
    return abs(x**3 / math.log1p(x)) if abs(x) > 1e-9 else 0


def exp_tail(r):
    r = mp.mpf(r if abs(r) > 1e-12 else 1e-12)
    return float((mp.exp(r) - 1 - r) / r**2)


def cos_tail(z):
    x = mp.sqrt(max(z, 1e-24))
    return float((mp.cos(x) - 1) / x**2)


def atanh_tail(z):
    s = mp.sqrt(max(z, 1e-24))
    return float(2 / mp.log(2) * (mp.atanh(s) / s - 1) / s**2)


def scaled_erfc(t):
    """(1 + 2x) e^(x²) erfc x of t = (x - 4) / (x + 4)"""
    x = 4 * (1 + mp.mpf(t)) / (1 - mp.mpf(t))
    if x > 1000:
        return float((1 + 2 * x) / (x * mp.sqrt(mp.pi)) * (1 - 1 / (2 * x * x) + 3 / (4 * x**4)))
    return float((1 + 2 * x) * mp.exp(x * x) * mp.erfc(x))


def erfinv_center(log):
    x = mp.sqrt(1 - mp.mpf(2) ** min(log, -1e-9))
    return float(mp.erfinv(x) / x)


def erfcinv_tail(v):
    """v erfcinv c of v = 1 / √-log2 c"""
    c = mp.mpf(2) ** (-1 / mp.mpf(v) ** 2)
    start = mp.sqrt(-mp.log(c)) - 0.5
    return float(mp.findroot(lambda x: mp.log(mp.erfc(x)) - mp.log(c), start) * v)


def sinpi_tail(z):
    r = mp.sqrt(max(z, 1e-20))
    return float((mp.sin(mp.pi * r) / r - mp.pi) / r**2)


def cospi_tail(z):
    r = mp.sqrt(max(z, 1e-20))
    return float((mp.cos(mp.pi * r) - 1) / r**2)


def lgamma_between(t):
    t = mp.mpf(t if min(abs(t), abs(t + 1)) > 1e-9 else t + 1e-9)
    return float(mp.loggamma(t + 2) / (t * (t + 1)))


def stirling(z):
    x = 1 / mp.sqrt(max(z, 1e-8))
    return float((mp.loggamma(x) - (x - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2) * x)


def bessel_near(order):
    def result(z):
        x = mp.sqrt(max(z, 1e-12))
        return float(mp.besseli(order, x) / x**order)
    return result


def bessel_far(order):
    def result(v):
        a = 1 / mp.mpf(max(v, 1e-7))
        return float(mp.besseli(order, a) * mp.exp(-a) * mp.sqrt(a))
    return result


def relative(name, function, low, high, terms):
    return name, function, low, high, terms, lambda x: 1 / abs(function(x)), ()


def odd(name, function, host, high, terms):
    return name, after_first(function), 0, high, terms, of_odd(host), ()


TABLES = [
    ("(log(1 + f) - f + f² / 2) / f³, |f| ≤ 1/3", log_tail, -1 / 3, 1 / 3, 8, log_weight, ()),
    ("the same, -1/4 ≤ f ≤ 1/2", log_tail, -0.25, 0.5, 8, log_weight, ()),
    ("the same, √½ - 1 ≤ f ≤ √2 - 1", log_tail, -0.29290, 0.41422, 8, log_weight, ()),
    ("(e^r - 1 - r) / r², |r| ≤ ln 2 / 2", exp_tail, -0.3466, 0.3466, 5,
     lambda r: abs(r * r / math.expm1(r)) if abs(r) > 1e-9 else 0, ()),
    ("(cos r - 1) / r² of r²", cos_tail, 0, 0.62, 4, lambda z: z / math.cos(math.sqrt(z)), (-0.5,)),
    ("2 log2 e (atanh s / s - 1) / s² of s²", atanh_tail, 0, 0.02946, 4, lambda z: z / 2.885, ()),
    odd("sin", mp.sin, math.sin, 0.62, 3),
    odd("tan", mp.tan, math.tan, 0.62, 6),
    odd("asin", mp.asin, math.asin, 0.25, 5),
    odd("atan", mp.atan, math.atan, 1, 8),
    odd("sinh", mp.sinh, math.sinh, 1, 3),
    odd("tanh", mp.tanh, math.tanh, 0.55**2, 5),
    relative("(1 + 2x) e^(x²) erfc x, x ≤ 10.5", scaled_erfc, -1, 0.45, 11),
    relative("the same, all x", scaled_erfc, -1, 1, 13),
    relative("erfinv x / x of log2(1 - x²)", erfinv_center, -8.2, 0, 10),
    relative("v erfcinv c of v = 1 / √-log2 c", erfcinv_tail, 1 / 12.3, 1 / 2.6, 10),
    ("(sin πr / r - π) / r² of r²", sinpi_tail, 0, 1 / 16, 4, lambda z: z / 2, ()),
    ("(cos πr - 1) / r² of r²", cospi_tail, 0, 1 / 16, 4, lambda z: z / math.cos(math.pi * math.sqrt(z)), ()),
    relative("log Γ(t + 2) / t (t + 1)", lgamma_between, -1, 1, 12),
    ("Stirling's remainder times x, of 1 / x²", stirling, 0, 1 / 9, 3, lambda z: math.sqrt(z) / 0.7, ()),
    relative("I0 x of x²", bessel_near(0), 0, 64, 11),
    relative("I1 x / x of x²", bessel_near(1), 0, 64, 10),
    ("I0 x √x e^-x of 1 / x", bessel_far(0), 0, 1 / 8, 6, lambda v: 2.5, ()),
    ("I1 x √x e^-x of 1 / x", bessel_far(1), 0, 1 / 8, 7, lambda v: 2.5, ()),
]


def main():
    for name, function, low, high, terms, weight, fixed in TABLES:
        ideal, error, found = fit(function, low, high, terms, weight, fixed)
        print(f"{name}: 2^{math.log2(ideal):.1f}, rounded 2^{math.log2(error):.1f}")
        print("    " + ", ".join(c.hex() for c in found))


if __name__ == "__main__":
    main()
