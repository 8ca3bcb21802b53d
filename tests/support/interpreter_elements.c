/* What operations do with one element. See interpreter.h for what errors mean.
 *
 * Floats are computed in double, which holds every operand and every sum, product, quotient and
 * root of narrower floats well enough to be rounded once more; where an operand is off by an error,
 * so is the result, by the largest change over the interval and the rounding of the wider result.
 */
#include "interpreter.h"

#include <math.h>
#include <string.h>

#define OPEN ((interpreter_cell){0, INFINITY, 0})

__extension__ typedef __int128 wide_integer;
__extension__ typedef unsigned __int128 wide_unsigned_integer;

static interpreter_cell exact(uint64_t bits) {
    return (interpreter_cell){bits, 0, 0};
}

static void format_of(lilac_scalar scalar, int *mantissa, int *least, double *most) {
    static const struct {
        lilac_scalar scalar;
        int mantissa, least;
    } rows[] = {
        {LILAC_F4E2M1FN, 1, 0},    {LILAC_F8E4M3FN, 3, -6},    {LILAC_F8E5M2, 2, -14},
        {LILAC_F8E4M3FNUZ, 3, -7}, {LILAC_F8E5M2FNUZ, 2, -15}, {LILAC_F8E4M3B11FNUZ, 3, -10},
        {LILAC_BF16, 7, -126},     {LILAC_F16, 10, -14},       {LILAC_TF32, 10, -126},
        {LILAC_F32, 23, -126},     {LILAC_F64, 52, -1022}};
    *mantissa = 0;
    *least = -127;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].scalar == scalar) {
            *mantissa = rows[i].mantissa;
            *least = rows[i].least;
        }
    }
    uint64_t bits = lilac_scalar_encode(scalar, 1.7e308, LILAC_ROUND_ZERO, true);
    *most = lilac_scalar_decode(scalar, bits);
}

double interpreter_ulp(lilac_scalar scalar, double value) {
    int mantissa, least, exponent;
    double most;
    format_of(scalar, &mantissa, &least, &most);
    if (!isfinite(value)) {
        return INFINITY;
    }
    (void)frexp(value, &exponent);
    exponent = value == 0 || exponent - 1 < least ? least : exponent - 1;
    return ldexp(1.0, exponent - mantissa);
}

/* ---- floats ------------------------------------------------------------------------------ */

/* The cell of a result that is `value` before its rounding, off by `error`. */
static interpreter_cell rounded(lilac_scalar scalar, double value, double error) {
    if (!(error > 0) && error == 0) {
        return exact(lilac_scalar_encode(scalar, value, LILAC_ROUND_NEAREST_EVEN, false));
    }
    int mantissa, least;
    double most;
    format_of(scalar, &mantissa, &least, &most);
    if (!isfinite(value) || !isfinite(error) || fabs(value) + error >= most) {
        return OPEN;
    }
    interpreter_cell cell = {0, 0, 0};
    cell.bits = lilac_scalar_encode(scalar, value, LILAC_ROUND_NEAREST_EVEN, false);
    cell.error = error + 2 * interpreter_ulp(scalar, fabs(value) + error);
    return cell;
}

static double value_of(lilac_scalar scalar, const interpreter_cell *cell) {
    return lilac_scalar_decode(scalar, cell->bits);
}

interpreter_cell interpreter_add(lilac_scalar scalar, interpreter_cell a, interpreter_cell b) {
    return rounded(scalar, value_of(scalar, &a) + value_of(scalar, &b),
                   a.error + a.slack + b.error + b.slack);
}

static interpreter_cell multiply(lilac_scalar scalar, const interpreter_cell *a,
                                 const interpreter_cell *b) {
    double x = value_of(scalar, a), y = value_of(scalar, b), product = x * y;
    double error = a->error == 0 && b->error == 0
                       ? 0
                       : fabs(x) * b->error + fabs(y) * a->error + a->error * b->error;
    interpreter_cell cell = rounded(scalar, product, isnan(error) ? INFINITY : error);
    double left = fma(x, y, -lilac_scalar_decode(scalar, cell.bits));
    if (!isfinite(product) || !isfinite(left)) {
        /* An overflow here is none where the product is not rounded. */
        cell.slack = isfinite(x) && isfinite(y) ? INFINITY : 0;
    } else if (left != 0) {
        cell.slack = interpreter_ulp(scalar, product);
    }
    return cell;
}

static interpreter_cell divide(lilac_scalar scalar, const interpreter_cell *a,
                               const interpreter_cell *b, bool precise) {
    double x = value_of(scalar, a), y = value_of(scalar, b), quotient = x / y;
    double error = 0;
    if (a->error != 0 || b->error != 0) {
        if (fabs(y) <= b->error) {
            return OPEN;
        }
        error = (a->error + fabs(quotient) * b->error) / (fabs(y) - b->error);
    }
    if (!precise && scalar != LILAC_F64 && isfinite(quotient) && quotient != 0) {
        /* Two units in the last place of f32, and beyond 2^126 it may be anything. */
        if (fabs(y) > 0x1p126 || fabs(y) < 0x1p-126) {
            return OPEN;
        }
        error += 2 * interpreter_ulp(LILAC_F32, quotient);
    }
    return rounded(scalar, quotient, error);
}

typedef double function(double);

static double reciprocal_root(double x) {
    return 1 / sqrt(x);
}

static double logarithm2(double x) {
    return log2(x);
}

/* A function that only grows or only falls between the ends of the operand's interval; `off` is
 * what an implementation in f32 (or in f64) may be off by at an exact operand. */
static interpreter_cell monotone(lilac_scalar scalar, const interpreter_cell *a, function *f,
                                 double off) {
    double x = value_of(scalar, a), y = f(x), error = off;
    if (a->error != 0) {
        double low = f(x - a->error), high = f(x + a->error);
        double d = fmax(fabs(low - y), fabs(high - y));
        if (!isfinite(d) || isnan(low) || isnan(high)) {
            return OPEN;
        }
        error += d;
    }
    return rounded(scalar, y, isfinite(y) ? error : 0);
}

static interpreter_cell math_of(lilac_tile_opcode code, lilac_scalar scalar,
                                const interpreter_cell *a) {
    const bool wide = scalar == LILAC_F64;
    double x = value_of(scalar, a), unit = wide ? 0x1p-48 : 0x1p-22;
    double floor_of_errors = wide ? 0x1p-1020 : 0x1p-126;
    switch (code) {
    case LILAC_TILE_OP_MATH_EXP:
        return monotone(scalar, a, exp, (2 + fabs(x)) * unit * exp(x) + floor_of_errors);
    case LILAC_TILE_OP_MATH_EXP2:
        return monotone(scalar, a, exp2, 2 * unit * exp2(x) + floor_of_errors);
    case LILAC_TILE_OP_MATH_LOG:
        return monotone(scalar, a, log, 2 * unit * (1 + fabs(log(x))));
    case LILAC_TILE_OP_MATH_LOG2:
        return monotone(scalar, a, logarithm2, 2 * unit * (1 + fabs(log2(x))));
    case LILAC_TILE_OP_MATH_SQRT:
        return monotone(scalar, a, sqrt, wide ? 0 : unit * sqrt(x) + 0x1p-126);
    case LILAC_TILE_OP_TT_PRECISE_SQRT:
        return monotone(scalar, a, sqrt, 0);
    case LILAC_TILE_OP_MATH_RSQRT:
        return monotone(scalar, a, reciprocal_root, unit * reciprocal_root(x));
    case LILAC_TILE_OP_MATH_TANH:
        return monotone(scalar, a, tanh, 2 * unit * fabs(tanh(x)) + floor_of_errors);
    case LILAC_TILE_OP_MATH_ERF:
        return monotone(scalar, a, erf, 2 * unit * fabs(erf(x)) + floor_of_errors);
    case LILAC_TILE_OP_MATH_SIN:
    case LILAC_TILE_OP_MATH_COS: {
        double y = code == LILAC_TILE_OP_MATH_SIN ? sin(x) : cos(x);
        double off = wide ? 0x1p-45 : 0x1p-19 * fmax(1, fabs(x) / 8);
        return rounded(scalar, y, isnan(y) ? 0 : a->error + off);
    }
    case LILAC_TILE_OP_MATH_FLOOR:
        return monotone(scalar, a, floor, 0);
    default:
        return monotone(scalar, a, ceil, 0);
    }
}

/* -0 is less than 0, as the machine has it. */
static bool less(double a, double b) {
    return a < b || (a == 0 && b == 0 && signbit(a) && !signbit(b));
}

static interpreter_cell extreme(lilac_scalar scalar, interpreter_cell a, interpreter_cell b,
                                bool largest, bool propagate) {
    double x = value_of(scalar, &a), y = value_of(scalar, &b);
    interpreter_cell cell;
    if (isnan(x) || isnan(y)) {
        if (isinf(a.error) || isinf(b.error)) {
            return OPEN;
        }
        if (propagate || (isnan(x) && isnan(y))) {
            return exact(lilac_scalar_encode(scalar, NAN, LILAC_ROUND_NEAREST_EVEN, false));
        }
        cell = isnan(x) ? b : a;
    } else {
        cell = less(x, y) != largest ? a : b;
        cell.error = fmax(a.error, b.error);
    }
    cell.slack = 0;
    return cell;
}

static interpreter_cell compare_floats(const char *p, lilac_scalar scalar,
                                       const interpreter_cell *a, const interpreter_cell *b) {
    double x = value_of(scalar, a), y = value_of(scalar, b), e = a->error + b->error;
    if (strcmp(p, "true") == 0 || strcmp(p, "false") == 0) {
        return exact(p[0] == 't');
    }
    if (isinf(e) || (e > 0 && !(fabs(x - y) > e) && !isnan(x) && !isnan(y))) {
        return OPEN;
    }
    const bool unordered = isnan(x) || isnan(y);
    if (strcmp(p, "ord") == 0 || strcmp(p, "uno") == 0) {
        return exact(unordered == (p[0] == 'u'));
    }
    if (unordered) {
        return exact(p[0] == 'u');
    }
    const char *what = p + 1;
    if (strcmp(what, "eq") == 0)
        return exact(x == y);
    if (strcmp(what, "ne") == 0)
        return exact(x != y);
    if (strcmp(what, "lt") == 0)
        return exact(x < y);
    if (strcmp(what, "le") == 0)
        return exact(x <= y);
    if (strcmp(what, "gt") == 0)
        return exact(x > y);
    return exact(x >= y);
}

/* ---- conversions ------------------------------------------------------------------------- */

static bool is_small_float(lilac_scalar scalar) {
    return lilac_scalar_bits(scalar) <= 8;
}

static interpreter_cell convert_float(const lilac_tile_op *op, lilac_scalar from, lilac_scalar to,
                                      const interpreter_cell *a) {
    const char *mode = lilac_tile_find_text(
        &op->attributes, op->code == LILAC_TILE_OP_TT_FP_TO_FP ? "rounding" : "roundingmode");
    lilac_rounding rounding = LILAC_ROUND_NEAREST_EVEN;
    if (mode != NULL && (strcmp(mode, "rtz") == 0 || strcmp(mode, "toward_zero") == 0)) {
        rounding = LILAC_ROUND_ZERO;
    } else if (mode != NULL && strcmp(mode, "downward") == 0) {
        rounding = LILAC_ROUND_DOWN;
    } else if (mode != NULL && strcmp(mode, "upward") == 0) {
        rounding = LILAC_ROUND_UP;
    }
    double x = value_of(from, a);
    if (a->error == 0) {
        return exact(lilac_scalar_encode(to, x, rounding, is_small_float(to)));
    }
    return rounded(to, x, a->error);
}

/* An integer's magnitude as a double that rounds to any narrower float as it does: the last bit of
 * the 53 is set where bits below it were. */
static double sticky(uint64_t magnitude) {
    if (magnitude >> 53 == 0) {
        return (double)magnitude;
    }
    uint64_t high = magnitude >> 11 | ((magnitude & 0x7FF) != 0);
    return ldexp((double)high, 11);
}

static interpreter_cell from_integer(lilac_scalar from, lilac_scalar to, uint64_t bits,
                                     bool is_signed) {
    int64_t number = lilac_scalar_signed(from, bits);
    bool negative = is_signed && number < 0;
    uint64_t magnitude = negative    ? 0 - (uint64_t)number
                         : is_signed ? (uint64_t)number
                                     : lilac_scalar_mask(from, bits);
    double value = to == LILAC_F64 ? (double)magnitude : sticky(magnitude);
    return exact(
        lilac_scalar_encode(to, negative ? -value : value, LILAC_ROUND_NEAREST_EVEN, false));
}

static interpreter_cell to_integer(lilac_scalar from, lilac_scalar to, const interpreter_cell *a,
                                   bool is_signed) {
    double x = value_of(from, a), low = trunc(x - a->error), high = trunc(x + a->error);
    double end = ldexp(1.0, (int)lilac_scalar_bits(to) - (is_signed ? 1 : 0));
    if (!(low == high) || high >= end || low < (is_signed ? -end : 0.0)) {
        return OPEN; /* what does not fit is poison */
    }
    return exact(lilac_scalar_mask(to, low < 0 ? 0 - (uint64_t)(-low) : (uint64_t)low));
}

/* ---- integers ---------------------------------------------------------------------------- */

static interpreter_cell compare_integers(const char *p, lilac_scalar scalar, uint64_t a,
                                         uint64_t b) {
    int64_t x = lilac_scalar_signed(scalar, a), y = lilac_scalar_signed(scalar, b);
    if (p[0] == 'e' || p[0] == 'n')
        return exact((a == b) == (p[0] == 'e'));
    bool below = p[0] == 's' ? x < y : a < b;
    if (strcmp(p + 1, "lt") == 0)
        return exact(below);
    if (strcmp(p + 1, "le") == 0)
        return exact(below || a == b);
    if (strcmp(p + 1, "gt") == 0)
        return exact(!below && a != b);
    return exact(!below);
}

/* Whether what the flags promise does not hold. */
static bool breaks_promise(const lilac_tile_op *op, wide_integer wide, wide_integer wide_unsigned,
                           lilac_scalar scalar) {
    const char *flags = lilac_tile_find_text(&op->attributes, "overflowFlags");
    if (flags == NULL) {
        return false;
    }
    int64_t got = lilac_scalar_signed(scalar, (uint64_t)wide);
    uint64_t unsigned_got = lilac_scalar_mask(scalar, (uint64_t)wide_unsigned);
    return (strstr(flags, "nsw") != NULL && got != wide) ||
           (strstr(flags, "nuw") != NULL && unsigned_got != (wide_unsigned_integer)wide_unsigned);
}

static interpreter_cell integer_binary(const lilac_tile_op *op, lilac_scalar scalar, uint64_t a,
                                       uint64_t b, bool *trap) {
    const uint32_t bits = lilac_scalar_bits(scalar);
    wide_integer x = lilac_scalar_signed(scalar, a), y = lilac_scalar_signed(scalar, b), wide;
    wide_integer ux = (wide_integer)a, uy = (wide_integer)b, wide_unsigned;
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_ADDI:
        wide = x + y;
        wide_unsigned = ux + uy;
        break;
    case LILAC_TILE_OP_ARITH_SUBI:
        wide = x - y;
        wide_unsigned = ux - uy;
        break;
    case LILAC_TILE_OP_ARITH_MULI:
        wide = x * y;
        wide_unsigned = (wide_integer)((wide_unsigned_integer)a * b);
        break;
    case LILAC_TILE_OP_ARITH_SHLI:
        if (b >= bits)
            return OPEN;
        wide = x * ((wide_integer)1 << b);
        wide_unsigned = ux << b;
        break;
    case LILAC_TILE_OP_ARITH_SHRSI:
        return b >= bits ? OPEN : exact(lilac_scalar_mask(scalar, (uint64_t)(x >> b)));
    case LILAC_TILE_OP_ARITH_SHRUI:
        return b >= bits ? OPEN : exact(a >> b);
    case LILAC_TILE_OP_ARITH_ANDI:
        return exact(a & b);
    case LILAC_TILE_OP_ARITH_ORI:
        return exact(a | b);
    case LILAC_TILE_OP_ARITH_XORI:
        return exact(a ^ b);
    case LILAC_TILE_OP_ARITH_MINSI:
        return exact(x < y ? a : b);
    case LILAC_TILE_OP_ARITH_MAXSI:
        return exact(x > y ? a : b);
    case LILAC_TILE_OP_ARITH_MINUI:
        return exact(a < b ? a : b);
    case LILAC_TILE_OP_ARITH_MAXUI:
        return exact(a > b ? a : b);
    case LILAC_TILE_OP_TT_MULHIUI:
        return exact(lilac_scalar_mask(scalar, (uint64_t)(((wide_unsigned_integer)a * b) >> bits)));
    default: /* divisions */
        if (b == 0) {
            *trap = true;
            return OPEN;
        }
        switch (op->code) {
        case LILAC_TILE_OP_ARITH_DIVUI:
            return exact(a / b);
        case LILAC_TILE_OP_ARITH_REMUI:
            return exact(a % b);
        case LILAC_TILE_OP_ARITH_CEILDIVUI:
            return exact(a / b + (a % b != 0));
        default:
            break;
        }
        if (y == -1 && a == 1ULL << (bits - 1)) {
            return OPEN; /* overflow */
        }
        switch (op->code) {
        case LILAC_TILE_OP_ARITH_DIVSI:
            wide = x / y;
            break;
        case LILAC_TILE_OP_ARITH_REMSI:
            wide = x % y;
            break;
        case LILAC_TILE_OP_ARITH_CEILDIVSI:
            wide = x / y + (x % y != 0 && (x < 0) == (y < 0));
            break;
        default:
            wide = x / y - (x % y != 0 && (x < 0) != (y < 0));
            break;
        }
        return exact(lilac_scalar_mask(scalar, (uint64_t)wide));
    }
    if (breaks_promise(op, wide, wide_unsigned, scalar)) {
        return OPEN;
    }
    return exact(lilac_scalar_mask(scalar, (uint64_t)wide));
}

static void extended_product(lilac_scalar scalar, const interpreter_cell *in, interpreter_cell *out,
                             bool is_signed) {
    wide_integer wide = is_signed ? (wide_integer)lilac_scalar_signed(scalar, in[0].bits) *
                                        lilac_scalar_signed(scalar, in[1].bits)
                                  : (wide_integer)((wide_unsigned_integer)in[0].bits * in[1].bits);
    out[0] = exact(lilac_scalar_mask(scalar, (uint64_t)wide));
    out[1] = exact(lilac_scalar_mask(scalar, (uint64_t)(wide >> lilac_scalar_bits(scalar))));
}

/* ---- the table --------------------------------------------------------------------------- */

static interpreter_cell choose(const lilac_tile_type *type, const interpreter_cell *in) {
    (void)type;
    if (in[0].error == 0) {
        return in[0].bits & 1 ? in[1] : in[2];
    }
    if (in[1].error == 0 && in[2].error == 0 && in[1].bits == in[2].bits) {
        return in[1];
    }
    return OPEN;
}

static interpreter_cell bitcast(const lilac_tile_type *from, const lilac_tile_type *to,
                                const interpreter_cell *a) {
    if (from->kind == LILAC_TILE_SCALAR && lilac_scalar_is_float(from->scalar) &&
        !(to->kind == LILAC_TILE_SCALAR && to->scalar == from->scalar)) {
        /* Which NaN it is stays open. */
        if (a->error != 0 || isnan(lilac_scalar_decode(from->scalar, a->bits))) {
            return OPEN;
        }
    }
    return (interpreter_cell){a->bits, a->error, 0};
}

static interpreter_cell clamp(const lilac_tile_op *op, lilac_scalar scalar,
                              const interpreter_cell *in) {
    const char *text = lilac_tile_find_text(&op->attributes, "propagateNan");
    bool propagate = text != NULL && strcmp(text, "all") == 0;
    if (isnan(value_of(scalar, &in[1])) || isnan(value_of(scalar, &in[2]))) {
        return OPEN;
    }
    return extreme(scalar, extreme(scalar, in[0], in[1], true, propagate), in[2], false, propagate);
}

static interpreter_cell multiply_add(lilac_scalar scalar, const interpreter_cell *in) {
    if (in[0].error == 0 && in[1].error == 0 && in[2].error == 0) {
        return exact(lilac_scalar_fma(scalar, in[0].bits, in[1].bits, in[2].bits));
    }
    double x = value_of(scalar, &in[0]), y = value_of(scalar, &in[1]);
    double e = fabs(x) * in[1].error + fabs(y) * in[0].error + in[0].error * in[1].error;
    e += in[2].error;
    return rounded(scalar, fma(x, y, value_of(scalar, &in[2])), isnan(e) ? INFINITY : e);
}

static bool float_op(const lilac_tile_op *op, lilac_scalar s, const interpreter_cell *in,
                     interpreter_cell *out) {
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_ADDF:
        *out = interpreter_add(s, in[0], in[1]);
        return true;
    case LILAC_TILE_OP_ARITH_SUBF: {
        interpreter_cell minus = in[1];
        minus.bits ^= 1ULL << (lilac_scalar_bits(s) - 1);
        *out = interpreter_add(s, in[0], minus);
        return true;
    }
    case LILAC_TILE_OP_ARITH_MULF:
        *out = multiply(s, &in[0], &in[1]);
        return true;
    case LILAC_TILE_OP_ARITH_DIVF:
    case LILAC_TILE_OP_TT_PRECISE_DIVF:
        *out = divide(s, &in[0], &in[1], op->code == LILAC_TILE_OP_TT_PRECISE_DIVF);
        return true;
    case LILAC_TILE_OP_ARITH_REMF:
        *out = in[0].error != 0 || in[1].error != 0
                   ? OPEN
                   : rounded(s, fmod(value_of(s, &in[0]), value_of(s, &in[1])), 0);
        return true;
    case LILAC_TILE_OP_ARITH_MINNUMF:
    case LILAC_TILE_OP_ARITH_MINIMUMF:
        *out = extreme(s, in[0], in[1], false, op->code == LILAC_TILE_OP_ARITH_MINIMUMF);
        return true;
    case LILAC_TILE_OP_ARITH_MAXNUMF:
    case LILAC_TILE_OP_ARITH_MAXIMUMF:
        *out = extreme(s, in[0], in[1], true, op->code == LILAC_TILE_OP_ARITH_MAXIMUMF);
        return true;
    case LILAC_TILE_OP_ARITH_NEGF:
        *out = in[0];
        out->bits ^= 1ULL << (lilac_scalar_bits(s) - 1);
        return true;
    case LILAC_TILE_OP_MATH_ABSF:
        *out = in[0];
        out->bits &= ~(1ULL << (lilac_scalar_bits(s) - 1));
        return true;
    case LILAC_TILE_OP_MATH_FMA:
        *out = multiply_add(s, in);
        return true;
    case LILAC_TILE_OP_TT_CLAMPF:
        *out = clamp(op, s, in);
        return true;
    case LILAC_TILE_OP_ARITH_CMPF:
        *out =
            compare_floats(lilac_tile_find_text(&op->attributes, "predicate"), s, &in[0], &in[1]);
        return true;
    case LILAC_TILE_OP_MATH_EXP:
    case LILAC_TILE_OP_MATH_EXP2:
    case LILAC_TILE_OP_MATH_LOG:
    case LILAC_TILE_OP_MATH_LOG2:
    case LILAC_TILE_OP_MATH_SQRT:
    case LILAC_TILE_OP_TT_PRECISE_SQRT:
    case LILAC_TILE_OP_MATH_RSQRT:
    case LILAC_TILE_OP_MATH_SIN:
    case LILAC_TILE_OP_MATH_COS:
    case LILAC_TILE_OP_MATH_TANH:
    case LILAC_TILE_OP_MATH_ERF:
    case LILAC_TILE_OP_MATH_FLOOR:
    case LILAC_TILE_OP_MATH_CEIL:
        *out = math_of(op->code, s, &in[0]);
        return true;
    default:
        return false;
    }
}

static bool integer_op(const lilac_tile_op *op, lilac_scalar s, const interpreter_cell *in,
                       interpreter_cell *out, bool *trap) {
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_ADDI:
    case LILAC_TILE_OP_ARITH_SUBI:
    case LILAC_TILE_OP_ARITH_MULI:
    case LILAC_TILE_OP_ARITH_SHLI:
    case LILAC_TILE_OP_ARITH_SHRSI:
    case LILAC_TILE_OP_ARITH_SHRUI:
    case LILAC_TILE_OP_ARITH_ANDI:
    case LILAC_TILE_OP_ARITH_ORI:
    case LILAC_TILE_OP_ARITH_XORI:
    case LILAC_TILE_OP_ARITH_MINSI:
    case LILAC_TILE_OP_ARITH_MAXSI:
    case LILAC_TILE_OP_ARITH_MINUI:
    case LILAC_TILE_OP_ARITH_MAXUI:
    case LILAC_TILE_OP_TT_MULHIUI:
    case LILAC_TILE_OP_ARITH_DIVSI:
    case LILAC_TILE_OP_ARITH_DIVUI:
    case LILAC_TILE_OP_ARITH_REMSI:
    case LILAC_TILE_OP_ARITH_REMUI:
    case LILAC_TILE_OP_ARITH_CEILDIVSI:
    case LILAC_TILE_OP_ARITH_CEILDIVUI:
    case LILAC_TILE_OP_ARITH_FLOORDIVSI:
        *out = integer_binary(op, s, in[0].bits, in[1].bits, trap);
        return true;
    case LILAC_TILE_OP_ARITH_MULSI_EXTENDED:
    case LILAC_TILE_OP_ARITH_MULUI_EXTENDED:
        extended_product(s, in, out, op->code == LILAC_TILE_OP_ARITH_MULSI_EXTENDED);
        return true;
    case LILAC_TILE_OP_ARITH_CMPI:
        *out = compare_integers(lilac_tile_find_text(&op->attributes, "predicate"), s, in[0].bits,
                                in[1].bits);
        return true;
    case LILAC_TILE_OP_MATH_ABSI:
        *out = exact(lilac_scalar_signed(s, in[0].bits) < 0 ? lilac_scalar_mask(s, 0 - in[0].bits)
                                                            : in[0].bits);
        return true;
    default:
        return false;
    }
}

/* Operations between two types; integers are exact by now. */
static bool cast_op(const lilac_tile_op *op, const lilac_tile_type *from, const lilac_tile_type *to,
                    const interpreter_cell *in, interpreter_cell *out) {
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_EXTSI:
    case LILAC_TILE_OP_ARITH_INDEX_CAST:
        *out = exact(
            lilac_scalar_mask(to->scalar, (uint64_t)lilac_scalar_signed(from->scalar, in[0].bits)));
        return true;
    case LILAC_TILE_OP_ARITH_EXTUI:
    case LILAC_TILE_OP_ARITH_INDEX_CASTUI:
    case LILAC_TILE_OP_ARITH_TRUNCI:
        *out = exact(lilac_scalar_mask(to->scalar, in[0].bits));
        return true;
    case LILAC_TILE_OP_ARITH_EXTF:
    case LILAC_TILE_OP_ARITH_TRUNCF:
    case LILAC_TILE_OP_TT_FP_TO_FP:
        *out = convert_float(op, from->scalar, to->scalar, &in[0]);
        return true;
    case LILAC_TILE_OP_ARITH_SITOFP:
    case LILAC_TILE_OP_ARITH_UITOFP:
        *out = from_integer(from->scalar, to->scalar, in[0].bits,
                            op->code == LILAC_TILE_OP_ARITH_SITOFP);
        return true;
    case LILAC_TILE_OP_ARITH_FPTOSI:
    case LILAC_TILE_OP_ARITH_FPTOUI:
        *out = to_integer(from->scalar, to->scalar, &in[0], op->code == LILAC_TILE_OP_ARITH_FPTOSI);
        return true;
    case LILAC_TILE_OP_ARITH_BITCAST:
    case LILAC_TILE_OP_TT_BITCAST:
    case LILAC_TILE_OP_TT_INT_TO_PTR:
    case LILAC_TILE_OP_TT_PTR_TO_INT:
        *out = bitcast(from, to, &in[0]);
        return true;
    default:
        return false;
    }
}

/* ---- functions of libraries -------------------------------------------------------------- */

static double power_of_ten(double x) {
    return pow(10, x);
}

/* By libdevice's names, which end in f for f32. Within four units in the last place (double's own
 * library is off by some as well); what comes of operands with errors is open. */
static bool library_function(const lilac_tile_op *op, lilac_scalar scalar,
                             const interpreter_cell *in, interpreter_cell *out) {
    static const struct {
        const char *name;
        double (*one)(double);
        double (*two)(double, double);
    } rows[] = {
        {"sin", sin, NULL},
        {"cos", cos, NULL},
        {"tan", tan, NULL},
        {"asin", asin, NULL},
        {"acos", acos, NULL},
        {"atan", atan, NULL},
        {"sinh", sinh, NULL},
        {"cosh", cosh, NULL},
        {"tanh", tanh, NULL},
        {"asinh", asinh, NULL},
        {"acosh", acosh, NULL},
        {"atanh", atanh, NULL},
        {"exp", exp, NULL},
        {"exp2", exp2, NULL},
        {"exp10", power_of_ten, NULL},
        {"expm1", expm1, NULL},
        {"log", log, NULL},
        {"log2", log2, NULL},
        {"log10", log10, NULL},
        {"log1p", log1p, NULL},
        {"sqrt", sqrt, NULL},
        {"cbrt", cbrt, NULL},
        {"rsqrt", reciprocal_root, NULL},
        {"erf", erf, NULL},
        {"erfc", erfc, NULL},
        {"tgamma", tgamma, NULL},
        {"lgamma", lgamma, NULL},
        {"floor", floor, NULL},
        {"ceil", ceil, NULL},
        {"trunc", trunc, NULL},
        {"round", round, NULL},
        {"rint", rint, NULL},
        {"fabs", fabs, NULL},
        {"pow", NULL, pow},
        {"fmod", NULL, fmod},
        {"atan2", NULL, atan2},
        {"hypot", NULL, hypot},
        {"fmin", NULL, fmin},
        {"fmax", NULL, fmax},
    };
    const char *name = lilac_tile_find_text(&op->attributes, "symbol");
    if (name == NULL || strncmp(name, "__nv_", 5) != 0 ||
        (scalar != LILAC_F32 && scalar != LILAC_F64)) {
        return false;
    }
    name += 5;
    size_t length = strlen(name) - (scalar == LILAC_F32 ? 1 : 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strlen(rows[i].name) != length || memcmp(rows[i].name, name, length) != 0 ||
            op->operand_count != (rows[i].one != NULL ? 1u : 2u)) {
            continue;
        }
        bool open = in[0].error != 0 || (rows[i].two != NULL && in[1].error != 0);
        double x = value_of(scalar, &in[0]);
        double y = rows[i].one != NULL ? rows[i].one(x) : rows[i].two(x, value_of(scalar, &in[1]));
        *out = open ? OPEN : rounded(scalar, y, isfinite(y) ? 4 * interpreter_ulp(scalar, y) : 0);
        return true;
    }
    return false;
}

static bool has_no_element(lilac_tile_opcode code) {
    switch (code) {
    case LILAC_TILE_OP_TT_LOAD:
    case LILAC_TILE_OP_TT_STORE:
    case LILAC_TILE_OP_TT_ATOMIC_RMW:
    case LILAC_TILE_OP_TT_ATOMIC_CAS:
    case LILAC_TILE_OP_TT_EXTERN_ELEMENTWISE:
    case LILAC_TILE_OP_TT_ELEMENTWISE_INLINE_ASM:
        return true;
    default:
        return (lilac_tile_op_info_get(code)->traits & LILAC_TILE_ELEMENTWISE) == 0;
    }
}

bool interpreter_element(const lilac_tile_op *op, const interpreter_cell *in, interpreter_cell *out,
                         bool *trap) {
    if (op->code == LILAC_TILE_OP_TT_EXTERN_ELEMENTWISE && op->operand_count > 0) {
        const lilac_tile_type *type = lilac_tile_element(op->results[0].type);
        return type->kind == LILAC_TILE_SCALAR && library_function(op, type->scalar, in, out);
    }
    if (has_no_element(op->code)) {
        return false;
    }
    const lilac_tile_type *from = lilac_tile_element(op->operands[0].value->type);
    const lilac_tile_type *to = lilac_tile_element(op->results[0].type);
    if (op->code == LILAC_TILE_OP_ARITH_SELECT) {
        *out = choose(to, in);
        return true;
    }
    if (op->code == LILAC_TILE_OP_TT_ADDPTR) {
        const lilac_tile_type *offset = lilac_tile_element(op->operands[1].value->type);
        uint64_t unit = (lilac_tile_element_bits(from->element) + 7) / 8;
        *out = exact(in[0].bits + (uint64_t)lilac_scalar_signed(offset->scalar, in[1].bits) * unit);
        out->error = in[0].error + in[1].error;
        return true;
    }
    bool is_float = from->kind == LILAC_TILE_SCALAR && lilac_scalar_is_float(from->scalar);
    for (uint32_t i = 0; i < op->operand_count && !is_float; i++) {
        if (in[i].error != 0) {
            for (uint32_t r = 0; r < op->result_count; r++) {
                out[r] = OPEN;
            }
            return true;
        }
    }
    for (uint32_t i = 0; i < op->operand_count && is_float; i++) {
        if (isinf(in[i].error)) {
            *out = OPEN;
            return true;
        }
    }
    return cast_op(op, from, to, in, out) ||
           (is_float ? float_op(op, from->scalar, in, out)
                     : integer_op(op, from->scalar, in, out, trap));
}
