/* Floating-point literals in MLIR's spelling, which is LLVM's:
 *
 *   1. six digits, 1.000000e+00, when those read back to the same bits;
 *   2. else as many digits as tell all values of the type apart (2 + precision · 59/196), in plain
 *      form 6.28318548 or, three places or more off, as 4.6566126E-10;
 *   3. infinities, NaNs and what form 2 has no point for, as the bits: 0xFF800000.
 *
 * Form 2 starts from the value's exact decimal expansion m · 10^e with m odd times a power of five.
 * Digits of m beyond what the precision needs are first cut off in one go (their number is computed
 * from the bits of m, as 59/196 is log 2 rounded), and what is left is rounded half up: the result
 * is not always the nearest decimal, but it is the one that is printed.
 */
#include "internal.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exact decimal digits of a double: at most 767 significant ones. */
typedef struct decimal {
    char digits[800]; /* most significant first, '0' to '9', no leading or trailing zeros */
    int count;
    int exponent; /* of the last digit */
} decimal;

static void trim(decimal *d) {
    while (d->count > 1 && d->digits[d->count - 1] == '0') {
        d->count--;
        d->exponent++;
    }
}

static void expand(decimal *d, double value) {
    char text[840];
    int length = snprintf(text, sizeof text, "%.790e", value);
    d->count = 0;
    int at = 0;
    /* The separator is the locale's, so everything that is no digit is skipped. */
    for (; at < length && text[at] != 'e'; at++) {
        if (text[at] >= '0' && text[at] <= '9') {
            d->digits[d->count++] = text[at];
        }
    }
    d->exponent = atoi(text + at + 1) - (d->count - 1);
    trim(d);
}

/* Cuts off the digits that need not be looked at (see above). Integers are cut as they are, with
 * their trailing zeros. */
static void cut(decimal *d, double value, int wanted) {
    int exponent = d->exponent < 0 ? d->exponent : 0;
    double log2_m = log2(fabs(value)) - exponent * 3.32192809488736234787;
    double rounded = nearbyint(log2_m);
    int bits = fabs(log2_m - rounded) < 1e-9 ? (int)rounded + 1 : (int)floor(log2_m) + 1;
    int needed = (wanted * 196 + 58) / 59;
    int removable = bits > needed ? (bits - needed) * 59 / 196 : 0;
    removable -= d->exponent - exponent;
    if (removable <= 0 || removable >= d->count) {
        return;
    }
    d->count -= removable;
    d->exponent += removable;
}

/* Rounds half up to at most `wanted` digits. */
static void round_to(decimal *d, int wanted) {
    if (d->count <= wanted) {
        trim(d);
        return;
    }
    bool up = d->digits[wanted] >= '5';
    d->exponent += d->count - wanted;
    d->count = wanted;
    while (up && d->count > 0) {
        char *last = &d->digits[d->count - 1];
        if (*last != '9') {
            ++*last;
            break;
        }
        d->count--;
        d->exponent++;
    }
    if (d->count == 0) {
        d->digits[0] = '1';
        d->count = 1;
    }
    trim(d);
}

static size_t print_six(char *out, const decimal *d) {
    size_t n = 0;
    out[n++] = d->digits[0];
    out[n++] = '.';
    for (int i = 1; i < 7; i++) {
        out[n++] = i < d->count ? d->digits[i] : '0';
    }
    int exponent = d->exponent + d->count - 1;
    n += (size_t)snprintf(out + n, 16, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    return n;
}

/* Form 2; 0 when it would have no point. */
static size_t print_plain(char *out, const decimal *d, int precision) {
    size_t n = 0;
    int last = d->exponent, first = d->exponent + d->count - 1;
    bool scientific = last >= 0 ? last > 3 || d->count + last > precision : first < 0 && -first > 3;
    if (scientific) {
        out[n++] = d->digits[0];
        out[n++] = '.';
        if (d->count == 1) {
            out[n++] = '0';
        }
        for (int i = 1; i < d->count; i++) {
            out[n++] = d->digits[i];
        }
        n += (size_t)snprintf(out + n, 16, "E%c%d", first < 0 ? '-' : '+', abs(first));
        return n;
    }
    if (last >= 0) {
        return 0;
    }
    if (first < 0) {
        out[n++] = '0';
        out[n++] = '.';
        for (int i = -1; i > first; i--) {
            out[n++] = '0';
        }
    }
    for (int i = 0; i < d->count; i++) {
        out[n++] = d->digits[i];
        if (first - i == 0) {
            out[n++] = '.';
        }
    }
    return n;
}

static int precision_of(lilac_scalar scalar) {
    switch (scalar) {
    case LILAC_F64:
        return 53;
    case LILAC_F32:
        return 24;
    case LILAC_F16:
    case LILAC_TF32:
        return 11;
    case LILAC_BF16:
        return 8;
    case LILAC_F8E4M3FN:
    case LILAC_F8E4M3FNUZ:
    case LILAC_F8E4M3B11FNUZ:
        return 4;
    case LILAC_F8E5M2:
    case LILAC_F8E5M2FNUZ:
        return 3;
    case LILAC_F4E2M1FN:
        return 2;
    default:
        return 1;
    }
}

void tile_print_float(lilac_text *out, lilac_scalar scalar, uint64_t bits) {
    double value = lilac_scalar_decode(scalar, bits);
    if (isfinite(value)) {
        bool negative = signbit(value) != 0;
        char text[64];
        if (value == 0) {
            lilac_text_puts(out, negative ? "-0.000000e+00" : "0.000000e+00");
            return;
        }
        decimal exact, shown;
        expand(&exact, fabs(value));
        shown = exact;
        cut(&shown, value, 6);
        round_to(&shown, 6);
        size_t length = print_six(text, &shown);
        if (tile_read_float(scalar, text, length, negative) != bits) {
            int precision = 2 + precision_of(scalar) * 59 / 196;
            shown = exact;
            cut(&shown, value, precision);
            round_to(&shown, precision);
            length = print_plain(text, &shown, precision);
            if (length && tile_read_float(scalar, text, length, negative) != bits) {
                length = 0;
            }
        }
        if (length) {
            if (negative) {
                lilac_text_char(out, '-');
            }
            lilac_text_put(out, text, length);
            return;
        }
    }
    lilac_text_printf(out, "0x%llX", (unsigned long long)bits);
}

/* strtod reads the locale's decimal point, so ours is put in its place. */
static double read_decimal(const char *text, size_t length) {
    char small[64];
    char *copy = length + 8 < sizeof small ? small : lilac_heap_grow(NULL, length + 8);
    const char *point = localeconv()->decimal_point;
    size_t width = strlen(point), n = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] != '.' || width == 0 || width > 7) {
            copy[n++] = text[i];
        } else {
            memcpy(copy + n, point, width);
            n += width;
        }
    }
    copy[n] = 0;
    double value = strtod(copy, NULL);
    if (copy != small) {
        lilac_heap_free(copy);
    }
    return value;
}

/* Short decimals are exact quotients or products of two doubles and need no strtod. */
static bool read_short(const char *text, size_t length, double *value) {
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    uint64_t digits = 0;
    int exponent = 0;
    size_t i = 0;
    bool point = false;
    for (; i < length && (text[i] == '.' || (text[i] >= '0' && text[i] <= '9')); i++) {
        if (text[i] == '.') {
            point = true;
            continue;
        }
        if (digits > (UINT64_C(1) << 53) / 10 - 1) {
            return false;
        }
        digits = digits * 10 + (uint64_t)(text[i] - '0');
        exponent -= point;
    }
    if (i < length) {
        bool negative = i + 1 < length && text[i + 1] == '-';
        int written = 0;
        for (i += 1 + (negative || (i + 1 < length && text[i + 1] == '+')); i < length; i++) {
            if (written > 400) {
                return false;
            }
            written = written * 10 + (text[i] - '0');
        }
        exponent += negative ? -written : written;
    }
    if (exponent < -22 || exponent > 22) {
        return false;
    }
    *value = exponent < 0 ? (double)digits / tens[-exponent] : (double)digits * tens[exponent];
    return true;
}

uint64_t tile_read_float(lilac_scalar scalar, const char *text, size_t length, bool negative) {
    double value;
    if (!read_short(text, length, &value)) {
        value = read_decimal(text, length);
    }
    return lilac_scalar_encode(scalar, negative ? -value : value, LILAC_ROUND_NEAREST_EVEN, false);
}
