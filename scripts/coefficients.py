#!/usr/bin/env python3
"""Computes the polynomials of src/lower/math/coefficients.c.

    python3 scripts/coefficients.py > src/lower/math/coefficients.c

Needs mpmath. Each polynomial interpolates its function in the Chebyshev points of its interval. It has
the least number of terms for which the largest error on the interval, multiplied by the weight of the
polynomial in the result, is under 2^-58 (wide: for results in f64) and 2^-31 (narrow: for f32). The interpolant
is within a few percent of the minimax polynomial of the same degree.
"""

from mpmath import mp, mpf

mp.dps = 60
WIDE, NARROW = mpf(2) ** -58, mpf(2) ** -29
TINY = mpf(10) ** -30


def away(function):
    """The function; at 0, where its formula is 0 / 0, it is evaluated at a number close to 0."""
    return lambda x: function(x if abs(x) > TINY else TINY)


def root(function):
    return away(lambda z: function(mp.sqrt(z), z))


def exp_tail(r):
    with mp.workdps(140):
        return (mp.exp(r) - 1 - r) / r**2


def atanh_tail(s, z):
    with mp.workdps(140):
        return (mp.atanh(s) / s - 1) / z


def log1p_tail(f):
    with mp.workdps(140):
        return (mp.log1p(f) - f + f * f / 2) / f**3


def sin_tail(r, z):
    with mp.workdps(140):
        return (mp.sin(r) / r - 1) / z


def cos_tail(r, z):
    with mp.workdps(140):
        return (mp.cos(r) - 1 + z / 2) / z**2


def atan_tail(t, z):
    with mp.workdps(140):
        return (mp.atan(t) / t - 1) / z


def asin_tail(t, z):
    with mp.workdps(140):
        return (mp.asin(t) / t - 1) / z


def erf_tail(t, z):
    with mp.workdps(140):
        return (mp.erf(t) / t - 2 / mp.sqrt(mp.pi)) / z


def erfcx(x):
    """e^(x²) erfc x"""
    if x > 60:
        total = term = mpf(1)
        for k in range(1, 30):
            term *= -(2 * k - 1) / (2 * x * x)
            total += term
        return total / (x * mp.sqrt(mp.pi))
    with mp.workdps(100):
        return mp.exp(x * x) * mp.erfc(x)


def erfcx_scaled(t):
    """(1 + 2x) erfcx x of t = (x - 4) / (x + 4)"""
    if 1 - t < mpf(10) ** -25:
        return 2 / mp.sqrt(mp.pi)
    x = 4 * (1 + t) / (1 - t)
    return (1 + 2 * x) * erfcx(x)


def stirling(z):
    """x (log Γ x - (x - 1/2) log x + x - log √2π) of z = 1 / x²"""
    x = 1 / mp.sqrt(z)
    if x > 10**6:
        return mpf(1) / 12 - z / 360 + z * z / 1260
    with mp.workdps(100):
        return x * (mp.loggamma(x) - (x - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)


def lgamma_bump(u):
    """log Γ(x) / ((x - 1)(x - 2)) of u = x - 3/2"""
    x = u + mpf(3) / 2
    for zero in (1, 2):
        if abs(x - zero) < mpf(10) ** -20:
            x = zero + mpf(10) ** -20
    with mp.workdps(100):
        return mp.loggamma(x) / ((x - 1) * (x - 2))


def bessel_near(order):
    """I0 x: (I0(x) - 1) / x²; I1 x: I1(x) / x, of z = x²"""
    def function(z):
        x = mp.sqrt(z)
        with mp.workdps(100):
            return (mp.besseli(0, x) - 1) / z if order == 0 else mp.besseli(1, x) / x
    return away(function)


def bessel_far(order):
    """√x e^-x I(x) of 16 / x - 1"""
    def function(t):
        y = (t + 1) / 16
        if y < mpf(10) ** -6:
            m = 4 * order * order
            return (1 - (m - 1) * y / 8 + (m - 1) * (m - 9) * y * y / 128
                    - (m - 1) * (m - 9) * (m - 25) * y**3 / 3072) / mp.sqrt(2 * mp.pi)
        x = 1 / y
        with mp.workdps(100):
            return mp.sqrt(x) * mp.exp(-x) * mp.besseli(order, x)
    return function


def zero_of(function, low, high):
    with mp.workdps(80):
        return mp.findroot(function, (mpf(low), mpf(high)), solver="anderson", tol=mpf(10) ** -150)


def first_kind(order):
    return lambda x: mp.besselj(order, x)


def second_kind(order):
    return lambda x: mp.bessely(order, x)


# The zeros that src/lower/math/bessel_oscillating.c has as pairs of doubles.
ZEROS = {name: zero_of(function, low, high) for name, function, low, high in [
    ("j0_near", first_kind(0), 2.3, 2.5), ("j0_middle", first_kind(0), 5.4, 5.6),
    ("j1_near", first_kind(1), 3.7, 3.9), ("j1_middle", first_kind(1), 6.9, 7.1),
    ("y0_near", second_kind(0), 0.8, 1.0), ("y0_low", second_kind(0), 3.9, 4.0),
    ("y0_middle", second_kind(0), 7.0, 7.2), ("y1_low", second_kind(1), 2.1, 2.3),
    ("y1_middle", second_kind(1), 5.4, 5.5)]}


def by_square(name, function, order, center):
    """f(x) / (x^order (x² - zero²)) of x² - center, for an entire function"""
    def result(t):
        with mp.workdps(100):
            x = mp.sqrt(max(t + center, TINY))
            return function(x) / (x**order * (x * x - ZEROS[name] ** 2))
    return result


def by_zero(name, function, center):
    """f(x) / (x - zero) of x - center"""
    def result(t):
        x = t + mpf(center)
        x = x if abs(x - ZEROS[name]) > TINY else ZEROS[name] + TINY
        with mp.workdps(100):
            return function(x) / (x - ZEROS[name])
    return result


def y0_rest(t):
    """(Y0(x) - 2/π log(x / zero) J0(x)) / (x² - zero²) of x² - 2"""
    zero = ZEROS["y0_near"]
    x = mp.sqrt(max(t + 2, mpf(10) ** -40))
    x = x if abs(x - zero) > TINY else zero + TINY
    with mp.workdps(100):
        first = 2 / mp.pi * mp.log(x / zero) * mp.besselj(0, x)
        return (mp.bessely(0, x) - first) / (x * x - zero * zero)


def y1_rest(z):
    """(Y1(x) - 2/π (log x J1(x) - 1/x)) / x of x²"""
    x = mp.sqrt(max(z, mpf(10) ** -30))
    with mp.workdps(120):
        return (mp.bessely(1, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x


def hankel(order, imaginary):
    """P or x Q of 1 / x², (J + iY)(x) = √(2 / πx) e^iχ (P + iQ), χ = x - (2 order + 1) π/4
    (DLMF 10.17)"""
    m = 4 * order * order

    def result(t):
        if t < mpf(10) ** -14:
            if imaginary:
                return mpf(m - 1) / 8 - t * (m - 1) * (m - 9) * (m - 25) / 3072
            return (1 - t * (m - 1) * (m - 9) / 128
                    + t * t * (m - 1) * (m - 9) * (m - 25) * (m - 49) / 98304)
        with mp.workdps(90):
            x = 1 / mp.sqrt(t)
            turned = mp.expj((2 * order + 1) * mp.pi / 4 - x) * mp.sqrt(mp.pi * x / 2)
            both = (mp.besselj(order, x) + 1j * mp.bessely(order, x)) * turned
            return both.imag * x if imaginary else both.real
    return result


def inverse_erfc(y):
    """By Newton's method on log erfc, which is nearly a parabola."""
    x = mp.sqrt(-mp.log(y)) * mpf("0.9") if y < mpf("0.3") else (1 - y) * mpf("0.886")
    for _ in range(60):
        value = mp.erfc(x)
        step = mp.log(value / y) * value * -mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
        x -= step
        if abs(step) < mpf(10) ** -25 * abs(x):
            break
    return x


def inverse_near(w):
    """erfinv(y) / y of w = -log(1 - y²), after Giles"""
    if w < mpf(10) ** -20:
        return mp.sqrt(mp.pi) / 2
    y = mp.sqrt(1 - mp.exp(-w))
    return inverse_erfc(1 - y) / y


def inverse_far(s):
    """erfcinv(y) / s of s = √-log y"""
    return inverse_erfc(mp.exp(-s * s)) / s


def fit(function, low, high, target, weight):
    terms = 2
    while True:
        chebyshev = [mp.cos(mp.pi * (2 * k + 1) / (2 * terms)) for k in range(terms)]
        xs = [(low + high) / 2 + (high - low) / 2 * c for c in chebyshev]
        ys = [function(x) for x in xs]
        # Newton's divided differences, then powers.
        table = list(ys)
        for level in range(1, terms):
            for k in range(terms - 1, level - 1, -1):
                table[k] = (table[k] - table[k - 1]) / (xs[k] - xs[k - level])
        powers = [mpf(0)]
        for k in range(terms - 1, -1, -1):
            powers = [mpf(0)] + powers
            for i in range(len(powers) - 1):
                powers[i] -= xs[k] * powers[i + 1]
            powers[0] += table[k]
        powers = powers[:terms]
        error = mpf(0)
        for i in range(4 * terms + 1):
            x = low + (high - low) * i / (4 * terms)
            error = max(error, abs(mp.polyval(powers[::-1], x) - function(x)))
        if error * weight < target:
            return powers
        terms += 1 if terms < 12 else 2


QUARTER = mp.pi / 4
TABLES = [
    ("exp", "(e^r - 1 - r) / r²", away(exp_tail), -0.3466, 0.3466, 0.12, 1),
    ("log", "(atanh √z / √z - 1) / z", root(atanh_tail), 0, 0.0295, 0.03, 512),
    ("sin", "(sin √z / √z - 1) / z", root(sin_tail), 0, QUARTER**2 + 0.001, 0.62, 1),
    ("cos", "(cos √z - 1 + z / 2) / z²", root(cos_tail), 0, QUARTER**2 + 0.001, 0.5, 1),
    ("atan", "(atan √z / √z - 1) / z", root(atan_tail), 0, 0.05, 0.05, 1),
    ("asin", "(asin √z / √z - 1) / z", root(asin_tail), 0, 0.25, 0.25, 1),
    ("erf", "(erf √z / √z - 2 / √π) / z", root(erf_tail), 0, 1, 1, 1),
    ("erfcx", "(1 + 2x) e^x² erfc x, of (x - 4) / (x + 4)", erfcx_scaled, -1, 1, 1, 1),
    ("stirling", "x (log Γ x - (x - 1/2) log x + x - log √2π), of 1 / x²", away(stirling), 0,
     mpf(1) / 144, 0.1, 1),
    ("lgamma", "log Γ x / ((x - 1) (x - 2)), of x - 3/2", lgamma_bump, -0.5, 0.5, 2, 1),
    ("i0_near", "(I0 √z - 1) / z", bessel_near(0), 0, 64, 0.2, 1),
    ("i0_far", "√x e^-x I0 x, of 16 / x - 1", bessel_far(0), -1, 1, 2.5, 1),
    ("i1_near", "I1 √z / √z", bessel_near(1), 0, 64, 0.02, 1),
    ("i1_far", "√x e^-x I1 x, of 16 / x - 1", bessel_far(1), -1, 1, 2.5, 1),
    ("inverse_near", "erfinv(y) / y, of -log(1 - y²) - 3", lambda w: inverse_near(w + 3), -3, 3.25,
     1, 0),
    ("inverse_middle", "erfcinv(y) / √-log y, of √-log y - 4", lambda s: inverse_far(s + 4), -2, 4,
     1, 0),
    ("inverse_far", "erfcinv(y) / s, of 8 / s for s = √-log y",
     lambda v: inverse_far(8 / v), 8 / mpf(28), 1.01, 1, 0),
    ("log1p_single", "(log(1 + f) - f + f² / 2) / f³, in f32", away(log1p_tail), mpf("-0.2929"),
     mpf("0.4143"), mpf("16"), 0),
    ("j0_near", "J0 x / (x² - zero²), of x² - 8", by_square("j0_near", first_kind(0), 0, 8), -8, 8, 30,
     1),
    ("j0_middle", "J0 x / (x - zero), of x - 6", by_zero("j0_middle", first_kind(0), 6), -2, 2, 10, 1),
    ("j1_near", "J1 x / (x (x² - zero²)), of x² - 12.5",
     by_square("j1_near", first_kind(1), 1, mpf(12.5)), -12.5, 12.5, 100, 1),
    ("j1_middle", "J1 x / (x - zero), of x - 6.5", by_zero("j1_middle", first_kind(1), 6.5), -1.5, 1.5,
     6, 1),
    ("y0_near", "(Y0 x - 2/π log(x / zero) J0 x) / (x² - zero²), of x² - 2", y0_rest, -2, 2.85, 10, 1),
    ("y0_low", "Y0 x / (x - zero), of x - 3.375", by_zero("y0_low", second_kind(0), 3.375), -1.18, 1.25,
     5, 1),
    ("y0_middle", "Y0 x / (x - zero), of x - 6.25", by_zero("y0_middle", second_kind(0), 6.25), -1.65,
     1.75, 8, 1),
    ("y1_near", "(Y1 x - 2/π (log x J1 x - 1/x)) / x, of x²", y1_rest, 0, 2, 4, 1),
    ("y1_low", "Y1 x / (x - zero), of x - 2.375", by_zero("y1_low", second_kind(1), 2.375), -0.98, 1.03,
     3, 1),
    ("y1_middle", "Y1 x / (x - zero), of x - 5.75", by_zero("y1_middle", second_kind(1), 5.75), -2.36,
     2.25, 10, 1),
    ("hankel_p0", "P of order 0, of 1 / x²", hankel(0, False), 0, mpf(1) / 64, 1, 1),
    ("hankel_q0", "x Q of order 0, of 1 / x²", hankel(0, True), 0, mpf(1) / 64, 0.125, 1),
    ("hankel_p1", "P of order 1, of 1 / x²", hankel(1, False), 0, mpf(1) / 64, 1, 1),
    ("hankel_q1", "x Q of order 1, of 1 / x²", hankel(1, True), 0, mpf(1) / 64, 0.125, 1),
]


def array(name, powers):
    lines, line = [], "   "
    for power in powers:
        text = f" {float(power)!r},"
        if len(line) + len(text) > 99:
            lines.append(line)
            line = "   "
        line += text
    lines.append(line)
    return f"static const double {name}[] = {{\n" + "\n".join(lines) + "\n};\n"


def main():
    print("/* Polynomials of the elementary and special functions, lowest power first. Written by\n"
          " * scripts/coefficients.py, which says how they are computed. */\n"
          "#include \"functions.h\"\n")
    for name, what, function, low, high, weight, scale in TABLES:
        low, high, weight = mpf(low), mpf(high), mpf(weight)
        print(f"/* {what}, from {mp.nstr(low, 4)} to {mp.nstr(high, 4)} */")
        if scale == 0:  # 2^-20 of a first guess, or of what a weight makes of it
            wide = narrow = fit(function, low, high, mpf(2) ** -20, weight)
            print(array(f"{name}_start", wide), end="")
            sides = f"{name}_start, {len(wide)}, {name}_start, {len(wide)}"
        else:
            wide = fit(function, low, high, WIDE / scale, weight)
            narrow = fit(function, low, high, NARROW / 4, weight)
            print(array(f"{name}_wide", wide), end="")
            print(array(f"{name}_narrow", narrow), end="")
            sides = f"{name}_wide, {len(wide)}, {name}_narrow, {len(narrow)}"
        print(f"const lilac_lower_polynomial lilac_lower_{name}_polynomial = {{{sides}}};\n",
              flush=True)


if __name__ == "__main__":
    main()
