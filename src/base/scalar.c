/* Scalars: decoding is exact; encoding rounds once.
 *
 * A float format is (exponent bits e, mantissa bits m, bias, what its top codes mean). A double
 * holds every value of every format here exactly. Encoding scales the value by a power of two so
 * that the format's unit in the last place is 1, rounds to an integer, and puts the integer's bits
 * into place: the carry out of the mantissa is the next exponent, so no case is special. */
#include <lilac/scalar.h>

#include <math.h>
#include <string.h>

typedef enum top_codes {
    NOT_FLOAT,
    IEEE,          /* all-ones exponent: infinities and NaNs */
    FINITE_NAN,    /* only the all-ones code is NaN, both signs; no infinity */
    FINITE,        /* neither infinity nor NaN */
    UNSIGNED_ZERO, /* NaN is the code of negative zero; no infinity */
    EXPONENT_ONLY  /* e8m0: 2^(code - 127), 255 is NaN; no zero, no sign */
} top_codes;

typedef struct format {
    const char *name;
    uint8_t bits, exponent, mantissa;
    uint8_t top;
    int16_t bias;
} format;

static const format formats[LILAC_SCALAR_COUNT] = {
    [LILAC_I1] = {"i1", 1, 0, 0, NOT_FLOAT, 0},
    [LILAC_I2] = {"i2", 2, 0, 0, NOT_FLOAT, 0},
    [LILAC_I4] = {"i4", 4, 0, 0, NOT_FLOAT, 0},
    [LILAC_I8] = {"i8", 8, 0, 0, NOT_FLOAT, 0},
    [LILAC_I16] = {"i16", 16, 0, 0, NOT_FLOAT, 0},
    [LILAC_I32] = {"i32", 32, 0, 0, NOT_FLOAT, 0},
    [LILAC_I64] = {"i64", 64, 0, 0, NOT_FLOAT, 0},
    [LILAC_I128] = {"i128", 128, 0, 0, NOT_FLOAT, 0},
    [LILAC_INDEX] = {"index", 32, 0, 0, NOT_FLOAT, 0},
    [LILAC_F4E2M1FN] = {"f4E2M1FN", 4, 2, 1, FINITE, 1},
    [LILAC_F8E4M3FN] = {"f8E4M3FN", 8, 4, 3, FINITE_NAN, 7},
    [LILAC_F8E5M2] = {"f8E5M2", 8, 5, 2, IEEE, 15},
    [LILAC_F8E4M3FNUZ] = {"f8E4M3FNUZ", 8, 4, 3, UNSIGNED_ZERO, 8},
    [LILAC_F8E5M2FNUZ] = {"f8E5M2FNUZ", 8, 5, 2, UNSIGNED_ZERO, 16},
    [LILAC_F8E4M3B11FNUZ] = {"f8E4M3B11FNUZ", 8, 4, 3, UNSIGNED_ZERO, 11},
    [LILAC_F8E8M0FNU] = {"f8E8M0FNU", 8, 8, 0, EXPONENT_ONLY, 127},
    [LILAC_BF16] = {"bf16", 16, 8, 7, IEEE, 127},
    [LILAC_F16] = {"f16", 16, 5, 10, IEEE, 15},
    [LILAC_TF32] = {"tf32", 19, 8, 10, IEEE, 127},
    [LILAC_F32] = {"f32", 32, 8, 23, IEEE, 127},
    [LILAC_F64] = {"f64", 64, 11, 52, IEEE, 1023},
};

const char *lilac_scalar_name(lilac_scalar scalar) {
    return formats[scalar].name;
}

bool lilac_scalar_read(const char *bytes, size_t length, lilac_scalar *scalar) {
    for (int i = 0; i < LILAC_SCALAR_COUNT; i++) {
        if (strlen(formats[i].name) == length && memcmp(formats[i].name, bytes, length) == 0) {
            *scalar = (lilac_scalar)i;
            return true;
        }
    }
    return false;
}

uint32_t lilac_scalar_bits(lilac_scalar scalar) {
    return formats[scalar].bits;
}

bool lilac_scalar_is_float(lilac_scalar scalar) {
    return formats[scalar].top != NOT_FLOAT;
}

uint64_t lilac_scalar_mask(lilac_scalar scalar, uint64_t bits) {
    uint32_t width = formats[scalar].bits;
    return width >= 64 ? bits : bits & ((UINT64_C(1) << width) - 1);
}

int64_t lilac_scalar_signed(lilac_scalar scalar, uint64_t bits) {
    uint32_t width = formats[scalar].bits;
    if (width >= 64) {
        return (int64_t)bits;
    }
    uint64_t sign = UINT64_C(1) << (width - 1);
    bits = lilac_scalar_mask(scalar, bits);
    return (int64_t)((bits ^ sign) - sign);
}

static double from_f64(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t to_f64(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The largest finite code and the NaN code, sign bit clear. */
static uint64_t largest_code(const format *f) {
    uint64_t all = (UINT64_C(1) << (f->exponent + f->mantissa)) - 1;
    switch (f->top) {
    case IEEE:
        return all - (UINT64_C(1) << f->mantissa);
    case FINITE_NAN:
        return all - 1;
    default:
        return all;
    }
}

static uint64_t nan_code(const format *f) {
    switch (f->top) {
    case UNSIGNED_ZERO:
        return UINT64_C(1) << (f->bits - 1);
    case FINITE: /* no NaN: the hardware's conversions give the largest positive number */
        return largest_code(f);
    default:
        return (UINT64_C(1) << (f->exponent + f->mantissa)) - 1;
    }
}

double lilac_scalar_decode(lilac_scalar scalar, uint64_t bits) {
    const format *f = &formats[scalar];
    if (scalar == LILAC_F64) {
        return from_f64(bits);
    }
    if (scalar == LILAC_F32) {
        uint32_t word = (uint32_t)bits;
        float value;
        memcpy(&value, &word, sizeof value);
        return (double)value;
    }
    if (scalar == LILAC_TF32) {
        bits >>= 13; /* kept in an f32's place */
    }
    if (f->top == EXPONENT_ONLY) {
        return (bits & 0xFF) == 0xFF ? (double)NAN : ldexp(1.0, (int)(bits & 0xFF) - f->bias);
    }
    bits = lilac_scalar_mask(scalar, bits);
    bool negative = bits >> (f->bits - 1);
    uint64_t code = bits & ((UINT64_C(1) << (f->bits - 1)) - 1);
    if (f->top == UNSIGNED_ZERO && negative && code == 0) {
        return (double)NAN;
    }
    if (code > largest_code(f)) {
        bool infinite = f->top == IEEE && (code & ((UINT64_C(1) << f->mantissa) - 1)) == 0;
        double top = infinite ? (double)INFINITY : (double)NAN;
        return negative ? -top : top;
    }
    uint64_t exponent = code >> f->mantissa;
    uint64_t mantissa = code & ((UINT64_C(1) << f->mantissa) - 1);
    if (exponent) {
        mantissa |= UINT64_C(1) << f->mantissa;
    } else {
        exponent = 1; /* subnormal */
    }
    double value = ldexp((double)mantissa, (int)exponent - f->bias - f->mantissa);
    return negative ? -value : value;
}

static double round_integral(double value, lilac_rounding rounding, bool negative) {
    switch (rounding) {
    case LILAC_ROUND_ZERO:
        return trunc(value);
    case LILAC_ROUND_DOWN:
        return negative ? ceil(value) : floor(value);
    case LILAC_ROUND_UP:
        return negative ? floor(value) : ceil(value);
    default:
        break;
    }
    double low = floor(value), rest = value - low;
    if (rest > 0.5 || (rest == 0.5 && fmod(low, 2.0) != 0.0)) {
        low += 1.0;
    }
    return low;
}

/* Does this rounding of an overflowing number stop at the largest finite one? */
static bool stops_at_largest(lilac_rounding rounding, bool negative) {
    return rounding == LILAC_ROUND_ZERO || (rounding == LILAC_ROUND_DOWN && !negative) ||
           (rounding == LILAC_ROUND_UP && negative);
}

static uint64_t encode_exponent(double value, lilac_rounding rounding) {
    if (!(value > 0)) { /* zero and negative numbers have no code of their own */
        return value == value ? 0 : 0xFF;
    }
    int exponent;
    double fraction = frexp(value, &exponent); /* value = fraction·2^exponent, 0.5 ≤ fraction < 1 */
    int code = exponent - 1 + 127;
    if ((rounding == LILAC_ROUND_UP && fraction > 0.5) ||
        (rounding == LILAC_ROUND_NEAREST_EVEN &&
         (fraction > 0.75 || (fraction == 0.75 && (code & 1))))) {
        code++;
    }
    return (uint64_t)(code < 0 ? 0 : code > 254 ? 254 : code);
}

uint64_t lilac_scalar_encode(lilac_scalar scalar, double value, lilac_rounding rounding,
                             bool saturate) {
    const format *f = &formats[scalar];
    if (scalar == LILAC_F64) {
        return value != value ? UINT64_C(0x7FF8000000000000) : to_f64(value);
    }
    if (f->top == EXPONENT_ONLY) {
        return isinf(value) ? 0xFE : encode_exponent(value, rounding);
    }
    uint32_t shift = scalar == LILAC_TF32 ? 13 : 0;
    if (value != value) {
        return scalar == LILAC_TF32 ? 0x7FFFFFFF : nan_code(f);
    }
    bool negative = signbit(value) != 0;
    uint64_t sign = (uint64_t)negative << (f->bits - 1);
    double magnitude = fabs(value);
    uint64_t largest = largest_code(f);
    uint64_t code = largest + 1; /* overflow, unless it is found to fit */
    if (magnitude == 0) {
        code = 0;
    } else if (!isinf(magnitude)) {
        int exponent;
        frexp(magnitude, &exponent);
        int least = 1 - f->bias; /* exponent of the smallest normal number */
        int scale = exponent - 1 > least ? exponent - 1 : least;
        double rounded = round_integral(ldexp(magnitude, f->mantissa - scale), rounding, negative);
        /* rounded = mantissa with its leading 1 (normal) or without (subnormal) */
        if (scale - least <= (1 << f->exponent) + 1) {
            code = (uint64_t)rounded + ((uint64_t)(scale - least) << f->mantissa);
        }
    }
    if (code > largest) {
        bool infinite = isinf(magnitude) != 0;
        if (saturate || f->top == FINITE || (!infinite && stops_at_largest(rounding, negative))) {
            code = largest;
        } else if (f->top == IEEE) {
            code = largest + 1;
        } else {
            return f->top == UNSIGNED_ZERO ? nan_code(f) : sign | nan_code(f);
        }
    }
    if (f->top == UNSIGNED_ZERO && code == 0) {
        sign = 0;
    }
    return (sign | code) << shift;
}

/* Exact error of a sum: a + b = sum + error (Knuth's two-sum). */
static double sum_error(double a, double b, double sum) {
    double b_part = sum - a;
    return (a - (sum - b_part)) + (b - b_part);
}

/* The upper 53 bits of a number that has more, and the next number where the others count. */
static double upper_bits(uint64_t magnitude, bool negative, lilac_rounding rounding) {
    int shift = 0;
    while (magnitude >> shift >> 53 != 0) {
        shift++;
    }
    const uint64_t upper = magnitude >> shift, lost = magnitude - (upper << shift);
    const uint64_t half = shift > 0 ? UINT64_C(1) << (shift - 1) : 0;
    const bool away = rounding == LILAC_ROUND_UP     ? !negative && lost != 0
                      : rounding == LILAC_ROUND_DOWN ? negative && lost != 0
                      : rounding == LILAC_ROUND_ZERO
                          ? false
                          : lost > half || (lost == half && lost != 0 && (upper & 1) != 0);
    return ldexp((double)(upper + away), shift);
}

/* Odd rounding to 53 bits, then rounding to at most 51, is rounding once. */
uint64_t lilac_scalar_encode_integer(lilac_scalar scalar, uint64_t magnitude, bool negative,
                                     lilac_rounding rounding) {
    double value;
    if (scalar == LILAC_F64) {
        value = upper_bits(magnitude, negative, rounding);
    } else if (magnitude >> 53 != 0) {
        const uint64_t sticky = (magnitude & 2047) != 0;
        value = (double)(magnitude >> 11 | sticky) * 2048.0;
    } else {
        value = (double)magnitude;
    }
    return lilac_scalar_encode(scalar, negative ? -value : value, rounding, false);
}

uint64_t lilac_scalar_fma(lilac_scalar scalar, uint64_t a, uint64_t b, uint64_t c) {
    double x = lilac_scalar_decode(scalar, a), y = lilac_scalar_decode(scalar, b),
           z = lilac_scalar_decode(scalar, c);
    if (scalar == LILAC_F64) {
        return lilac_scalar_encode(LILAC_F64, fma(x, y, z), LILAC_ROUND_NEAREST_EVEN, false);
    }
    if (scalar == LILAC_F32) {
        return lilac_scalar_encode(LILAC_F32, (double)fmaf((float)x, (float)y, (float)z),
                                   LILAC_ROUND_NEAREST_EVEN, false);
    }
    /* The product of two f16 or bf16 is exact in a double; the sum is rounded to odd there, which
     * keeps the second rounding right (Boldo and Melquiond, 2005). */
    double product = x * y, sum = product + z;
    if (isfinite(sum)) {
        double error = sum_error(product, z, sum);
        uint64_t bits = to_f64(sum);
        if (error != 0 && !(bits & 1)) {
            bool away = (error > 0) == (sum > 0);
            sum = from_f64(away ? bits + 1 : bits - 1);
        }
    }
    return lilac_scalar_encode(scalar, sum, LILAC_ROUND_NEAREST_EVEN, false);
}
