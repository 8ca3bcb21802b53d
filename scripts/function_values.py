#!/usr/bin/env python3
"""Writes the values of libdevice's functions, computed by mpmath, for tests/lower/functions.c.

    python3 scripts/function_values.py [COUNT [SEED]] > tests/data/functions.txt

There are COUNT values of each function and type: first special values, then random bits and random numbers
from an interval of interest of the function. The section of a function begins with the line
`NAME TYPE OPERANDS COUNT`, where OPERANDS has a letter for each operand (f d i: f32 f64 i32). Each line
below it has the bits of the operands and of the result, rounded to nearest.
"""

import math
import random
import struct
import sys

from mpmath import mp, mpf

mp.prec = 200
INF, NAN = math.inf, math.nan


def bits(value, kind):
    return struct.unpack("<Q" if kind == "d" else "<I", struct.pack("<" + kind, value))[0]


def from_bits(word, kind):
    return struct.unpack("<" + kind, struct.pack("<Q" if kind == "d" else "<I", word))[0]


def rounded(value, kind):
    """An mpf, or a float that is special, as a float of the kind."""
    if isinstance(value, mpf) and mp.isfinite(value):
        if value == 0:
            return 0.0
        places, least, top = (53, -1074, 1024) if kind == "d" else (24, -149, 128)
        unit = max(mp.floor(mp.log(abs(value), 2)) - places + 1, least)
        scaled = value / mpf(2) ** int(unit)
        whole = int(mp.nint(scaled))
        if abs(whole) * mpf(2) ** int(unit) >= mpf(2) ** top:
            return INF if whole > 0 else -INF
        return math.ldexp(whole, int(unit)) if whole else math.copysign(0.0, value)
    return float(value)


def one(function, low=None, high=None):
    """A function of one number: NaN outside low … high, limits at the ends by `function` too."""
    return function


def sign_zero(x, value):
    return math.copysign(0.0, x) if x == 0 else value


def limits(function, at_zero=None, minus=NAN, plus=NAN, domain=lambda x: True):
    """With the values at ±0 (None: the zero itself), at -∞ and ∞, and NaN outside of a domain."""
    def result(x):
        if math.isnan(x):
            return NAN
        if x == INF:
            return plus
        if x == -INF:
            return minus
        if x == 0:
            return x if at_zero is None else at_zero
        if not domain(x):
            return NAN
        return function(mpf(x))
    return result


def with_precision(function):
    def result(x):
        with mp.workprec(200 + max(0, 2 * mp.mag(x), -2 * mp.mag(x))):
            return +function(x)
    return result


def pole(at, value, function):
    return lambda x: value if x == at else function(x)


def erfcx(x):
    if x > 1e4:
        return (1 - 1 / (2 * x * x) + 3 / (4 * x**4)) / (x * mp.sqrt(mp.pi))
    if x < -60:
        return INF
    with mp.workprec(1500):
        return mp.exp(x * x) * mp.erfc(x)


def limited_exp(function, low, high, below):
    return lambda x: INF if x > high else below if x < low else function(x)


def sinpi(x):
    x = x - 2 * mp.floor(x / 2)
    with mp.workprec(1400):
        return mp.sin(mp.pi * x)


def cospi(x):
    x = x - 2 * mp.floor(x / 2)
    if x in (mpf(1) / 2, mpf(3) / 2):
        return mpf(0)
    with mp.workprec(1400):
        return mp.cos(mp.pi * x)


def cube_root(x):
    return mp.cbrt(x) if x > 0 else -mp.cbrt(-x)


def gamma(x):
    if x == mp.floor(x) and x < 0:
        return NAN
    if x > 180:
        return INF
    if x < -200:
        return mpf(0) if mp.floor(x) % 2 == 0 else -0.0
    return mp.gamma(x)


def lgamma(x):
    if x == mp.floor(x) and x <= 0:
        return INF
    return mp.re(mp.loggamma(x)) if x > 0 else mp.log(abs(mp.gamma(x))) if x > -1e4 else None


def inverse_erfc(y):
    x = mp.sqrt(-mp.log(y)) * mpf("0.9") if y < mpf("0.3") else (1 - y) * mpf("0.886")
    for _ in range(80):
        value = mp.erfc(x)
        step = mp.log(value / y) * value * -mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
        x -= step
        if abs(step) < mpf(10) ** -40 * abs(x):
            break
    return x


def erfinv(y):
    if abs(y) < 1e-10:
        return y * mp.sqrt(mp.pi) / 2 * (1 + mp.pi * y * y / 12)
    return mp.sign(y) * inverse_erfc(1 - abs(y)) if abs(y) < 1 else mp.sign(y) * INF


def erfcinv(y):
    if y in (0, 2):
        return INF if y == 0 else -INF
    return inverse_erfc(y) if y < 1 else mpf(0) if y == 1 else -inverse_erfc(2 - y)


def bessel(function, n, x, second):
    """J or Y of any order n ≥ 0, x > 0; for large x by Hankel's expansion (DLMF 10.17)"""
    if x < 2**16:
        with mp.workprec(300):
            return +function(n, x)
    with mp.workprec(300 + mp.mag(x)):
        chi = x - (2 * n + 1) * mp.pi / 4
        total, term = mp.mpc(0), mp.mpc(1)
        for j in range(1, 60):
            total += term
            term *= 1j * (4 * n * n - (2 * j - 1) ** 2) / (8 * j * x)
            if abs(term) < mpf(2) ** -250:
                break
        wave = total * mp.expj(chi) * mp.sqrt(2 / (mp.pi * x))
        return wave.imag if second else wave.real


def first_kind(n):
    return lambda x: (-1 if x < 0 and n % 2 else 1) * bessel(mp.besselj, n, abs(x), False)


def second_kind(n):
    return lambda x: bessel(mp.bessely, n, x, True)


def jn(n, x):
    if n < 0 or math.isnan(x):
        return NAN
    if math.isinf(x) or (x == 0 and n > 0):
        return math.copysign(0.0, x) if n % 2 else 0.0
    if n > 4 * abs(x) + 800:
        return mpf(0)
    return first_kind(n)(mpf(x)) if x else 1.0


def yn(n, x):
    if n < 0 or math.isnan(x) or x < 0:
        return NAN
    if math.isinf(x) or x == 0:
        return 0.0 if x else -INF
    if n > 20000 and x < 1000:
        return -INF
    return second_kind(n)(mpf(x))


EVERY = (-1e3, 1e3)
ONE = {
    "exp": (limits(limited_exp(mp.exp, -800, 800, mpf(0)), 1.0, 0.0, INF), (-760, 720)),
    "exp2": (limits(limited_exp(lambda x: mpf(2) ** x, -1200, 1200, mpf(0)), 1.0, 0.0, INF),
             (-1080, 1030)),
    "exp10": (limits(limited_exp(lambda x: mpf(10) ** x, -400, 400, mpf(0)), 1.0, 0.0, INF),
              (-330, 310)),
    "expm1": (limits(limited_exp(with_precision(mp.expm1), -800, 800, mpf(-1)), None, -1.0, INF),
              (-5, 5)),
    "sinh": (limits(lambda x: mp.sign(x) * INF if abs(x) > 800 else with_precision(mp.sinh)(x), None,
                    -INF, INF), (-5, 5)),
    "cosh": (limits(lambda x: INF if abs(x) > 800 else mp.cosh(x), 1.0, INF, INF), (-5, 5)),
    "tanh": (limits(lambda x: mp.sign(x) if abs(x) > 50 else with_precision(mp.tanh)(x), None, -1.0,
                    1.0), (-3, 3)),
    "log": (limits(mp.log, -INF, NAN, INF, lambda x: x > 0), (0, 3)),
    "log2": (limits(lambda x: mp.log(x) / mp.log(2), -INF, NAN, INF, lambda x: x > 0), (0, 3)),
    "log10": (limits(lambda x: mp.log(x) / mp.log(10), -INF, NAN, INF, lambda x: x > 0), (0, 3)),
    "log1p": (limits(pole(-1, -INF, with_precision(mp.log1p)), None, NAN, INF, lambda x: x >= -1),
              (-1, 2)),
    "asinh": (limits(with_precision(mp.asinh), None, -INF, INF), (-3, 3)),
    "acosh": (limits(mp.acosh, NAN, NAN, INF, lambda x: x >= 1), (1, 4)),
    "atanh": (limits(lambda x: mp.sign(x) * INF if abs(x) == 1 else with_precision(mp.atanh)(x), None,
                     NAN, NAN, lambda x: abs(x) <= 1), (-1, 1)),
    "sin": (limits(with_precision(mp.sin)), (-20, 20)),
    "cos": (limits(with_precision(mp.cos), 1.0), (-20, 20)),
    "tan": (limits(with_precision(mp.tan)), (-20, 20)),
    "sinpi": (limits(lambda x: math.copysign(0.0, x) if x == mp.floor(x) else mp.sign(x) * sinpi(abs(x))),
              (-4, 4)),
    "cospi": (limits(lambda x: cospi(abs(x)), 1.0), (-4, 4)),
    "asin": (limits(with_precision(mp.asin), None, NAN, NAN, lambda x: abs(x) <= 1), (-1, 1)),
    "acos": (limits(mp.acos, rounded(mp.pi / 2, "d"), NAN, NAN, lambda x: abs(x) <= 1), (-1, 1)),
    "atan": (limits(with_precision(mp.atan), None, rounded(-mp.pi / 2, "d"), rounded(mp.pi / 2, "d")),
             (-7, 7)),
    "rsqrt": (lambda x: math.copysign(INF, x) if x == 0 else
              limits(lambda v: 1 / mp.sqrt(v), INF, NAN, 0.0, lambda v: v > 0)(x), (0, 9)),
    "cbrt": (limits(cube_root, None, -INF, INF), (-9, 9)),
    "rcbrt": (lambda x: math.copysign(INF, x) if x == 0 else
              limits(lambda v: 1 / cube_root(v), INF, -0.0, 0.0)(x), (-9, 9)),
    "erf": (limits(lambda x: mp.sign(x) if abs(x) > 50 else with_precision(mp.erf)(x), None, -1.0,
                   1.0), (-4, 4)),
    "erfc": (limits(lambda x: mpf(0) if x > 50 else mpf(2) if x < -50 else mp.erfc(x), 1.0, 2.0, 0.0),
             (-5, 27)),
    "erfcx": (limits(erfcx, 1.0, INF, 0.0), (-10, 10)),
    "normcdf": (limits(lambda x: mpf(0) if x < -60 else mpf(1) if x > 60 else
                       mp.erfc(-x / mp.sqrt(2)) / 2, 0.5, 0.0, 1.0), (-38, 8)),
    "erfinv": (limits(erfinv, None, NAN, NAN, lambda x: abs(x) <= 1), (-1, 1)),
    "erfcinv": (limits(erfcinv, INF, NAN, NAN, lambda x: 0 <= x <= 2), (0, 2)),
    "normcdfinv": (limits(lambda p: INF if p == 1 else -mp.sqrt(2) * erfcinv(2 * p), -INF, NAN, NAN,
                          lambda x: 0 <= x <= 1), (0, 1)),
    "tgamma": (lambda x: math.copysign(INF, x) if x == 0 else limits(gamma, INF, NAN, INF)(x),
               (-20, 40)),
    "lgamma": (limits(lgamma, INF, INF, INF, lambda x: True), (0, 20)),
    "cyl_bessel_i0": (limits(lambda x: INF if abs(x) > 800 else mp.besseli(0, x), 1.0, INF, INF),
                      (-20, 20)),
    "cyl_bessel_i1": (limits(lambda x: mp.sign(x) * INF if abs(x) > 800 else mp.besseli(1, x), None,
                             -INF, INF), (-20, 20)),
}


def length(values, inverse):
    if any(math.isinf(v) for v in values):
        return 0.0 if inverse else INF
    if any(math.isnan(v) for v in values):
        return NAN
    total = mp.sqrt(mp.fsum(mpf(v) ** 2 for v in values))
    if total == 0:
        return INF if inverse else 0.0
    return 1 / total if inverse else total


def power(x, y):
    try:
        special = math.pow(x, y)
        if special in (0.0, 1.0) or not math.isfinite(special) or x == 0 or y == 0:
            if x == 0 or math.isinf(x) or math.isinf(y) or x == 1 or y == 0 or math.isnan(special):
                return special
    except OverflowError:
        pass
    except ValueError:
        return math.copysign(INF, x) if x == 0 and y == math.floor(y) and y % 2 == 1 else (
            INF if x == 0 else NAN)
    odd = y % 2 == 1
    log = mpf(y) * mp.log(abs(mpf(x)))
    sign = -1 if x < 0 and odd else 1
    return sign * (INF if log > 800 else mpf(0) if log < -800 else mp.exp(log))


def zero_power(x, y):
    if x == 0 and y < 0:
        return math.copysign(INF, x) if y % 2 == 1 else INF
    result = power(x, y)
    if isinstance(result, mpf) and result == 0:
        return -0.0 if x < 0 and y % 2 == 1 else 0.0
    return result


def remainder(x, y):
    try:
        return math.remainder(x, y)
    except ValueError:
        return NAN


def fmod(x, y):
    try:
        return math.fmod(x, y)
    except ValueError:
        return NAN


def atan2(y, x):
    if 0 in (x, y) or not (math.isfinite(x) and math.isfinite(y)):
        return math.atan2(y, x)
    with mp.workprec(2400):
        return mp.atan2(mpf(y), mpf(x))


MORE = {
    "pow": (2, zero_power), "atan2": (2, atan2), "fmod": (2, fmod), "remainder": (2, remainder),
    "hypot": (2, lambda *v: length(v, False)), "rhypot": (2, lambda *v: length(v, True)),
    "norm3d": (3, lambda *v: length(v, False)), "rnorm3d": (3, lambda *v: length(v, True)),
    "norm4d": (4, lambda *v: length(v, False)), "rnorm4d": (4, lambda *v: length(v, True)),
}


OSCILLATING = {
    "j0": (limits(first_kind(0), 1.0, 0.0, 0.0), (-20, 20)),
    "j1": (limits(first_kind(1), None, -0.0, 0.0), (-20, 20)),
    "y0": (limits(second_kind(0), -INF, NAN, 0.0, lambda x: x > 0), (0, 20)),
    "y1": (limits(second_kind(1), -INF, NAN, 0.0, lambda x: x > 0), (0, 20)),
}
ZEROS = {"j0": (2.4, 5.5), "j1": (3.8, 7.0), "y0": (0.9, 4.0, 7.1), "y1": (2.2, 5.4)}


def next_to_zeros(name, kind):
    """The numbers of the kind on both sides of each zero below 8"""
    function = OSCILLATING[name][0]
    for guess in ZEROS[name]:
        with mp.workprec(300):
            zero = mp.findroot(lambda x: function(x), mpf(guess))
        word = bits(float(zero), kind)
        yield from ((from_bits(word + step, kind),) for step in (-1, 0, 1))


# Of these, the last points are replaced.
TURNING = ("sin", "cos", "tan")


def multiples_of_quarter_turns(kind):
    """The numbers of the kind that are next to n π/2, where the reduction of the argument cancels."""
    chosen = random.Random(1)
    for exponent in range(24):
        n = chosen.randrange(1 << exponent, 2 << exponent)
        yield (from_bits(bits(float(n * mp.pi / 2), kind), kind),)


# The first operand is an i32.
ORDERS = {"jn": jn, "yn": yn}


def orders(function, kind, count, randomness):
    points = [(n, x) for n in (0, 1, 2, 3, -1, 7) for x in (0.0, -0.0, INF, -INF, NAN, 1.0, -2.5)]
    points += [(2**31 - 1, 3.0), (-2**31, 3.0), (128, 128.0), (127, 128.0), (128, 1e-3), (5, 1e-30),
               (2, 1e-20), (2, 1e-170 if kind == "d" else 1e-20), (1500, 1500.0), (1000, 180.0),
               (900, 20.0), (60, 1.0), (3, 1e9)]
    while len(points) < count:
        n = int(2 ** randomness.uniform(0, 8))
        x = n * 2 ** randomness.uniform(-3, 3) if randomness.random() < 0.8 else (
            10 ** randomness.uniform(-12, 6))
        x = -x if randomness.random() < 0.2 and function is jn else x
        points.append((n, x))
    return [(n, from_bits(bits(x, kind), kind)) for n, x in points[:count]]


def specials(kind):
    least, tiny, top = ((5e-324, 2.0**-1022, sys.float_info.max) if kind == "d" else
                        (2.0**-149, 2.0**-126, (2 - 2.0**-23) * 2.0**127))
    eps = 2.0**-52 if kind == "d" else 2.0**-23
    base = [0.0, 1.0, INF, least, 3 * least, tiny, top, 0.5, 2.0, 1 + eps, 1 - eps / 2, 3.0,
            float(from_bits(bits(math.pi, kind), kind)), 1e-3, 10.0, 100.0, 710.0, 88.5, 1e5, 2.0**60]
    return [NAN] + [s * v for v in base for s in (1, -1)]


def number(kind, randomness, low, high):
    how = randomness.random()
    if how < 0.3:
        while True:
            value = from_bits(randomness.getrandbits(64 if kind == "d" else 32), kind)
            if value == value:
                return value
    value = randomness.uniform(low, high)
    if how > 0.9:
        value *= 10 ** randomness.uniform(-8, 0)
    return from_bits(bits(value, kind), kind)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 128
    randomness = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    wanted = sys.argv[3].split(",") if len(sys.argv) > 3 else None
    for name in [*ONE, *MORE, *OSCILLATING, *ORDERS]:
        if wanted and name not in wanted:
            continue
        for kind in "fd":
            operands = MORE[name][0] if name in MORE else 2 if name in ORDERS else 1
            points = []
            if name in OSCILLATING:
                function, (low, high) = OSCILLATING[name]
                points = [*next_to_zeros(name, kind), *((v,) for v in specials(kind))]
            elif name in ORDERS:
                function = ORDERS[name]
                points = orders(function, kind, count, randomness)
            elif operands == 1:
                function, (low, high) = ONE[name]
                points = [(v,) for v in specials(kind)]
            else:
                function, (low, high) = MORE[name][1], (-9, 9)
                few = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 3.0, -2.5]
                if operands == 2:
                    points = [(a, b) for a in few for b in few]
            points = points[:count]
            while len(points) < count:
                point = [number(kind, randomness, low, high) for _ in range(operands)]
                if name == "pow" and randomness.random() < 0.7:
                    point[0] = abs(point[0])
                points.append(tuple(point))
            if name in TURNING:
                turns = [*multiples_of_quarter_turns(kind)]
                points[-len(turns):] = turns
            types = "i" + kind if name in ORDERS else kind * operands
            print(f"{name}{'f' if kind == 'f' else ''} {kind} {types} {count}")
            for point in points:
                result = function(*point)
                if result is None:
                    point, result = (1.0,), 0.0
                words = [v & 0xFFFFFFFF if type(v) is int else bits(v, kind) for v in point]
                words.append(bits(rounded(result, kind), kind))
                print(" ".join(f"{w:x}" for w in words))


if __name__ == "__main__":
    main()
