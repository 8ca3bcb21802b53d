/* What operations do with one element: floats and conversions. The column `meaning` of the rows
 * FLOAT, CAST and MATH of operations.def names the function of each operation. See interpreter.h
 * for what errors mean.
 *
 * Floats are computed in double, which holds every operand and every sum, product, quotient and
 * root of narrower floats well enough to be rounded once more; where an operand is off by an
 * error, so is the result, by the largest change over the interval and the rounding of the wider
 * result. */
#include "interpreter_machine.h"

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

/* What an implementation in the type may be off by, relatively and absolutely. */
static double unit_of(const interpreter_element *e) {
    return e->from->scalar == LILAC_F64 ? 0x1p-48 : 0x1p-22;
}

static double least_error(const interpreter_element *e) {
    return e->from->scalar == LILAC_F64 ? 0x1p-1020 : 0x1p-126;
}

static double first(const interpreter_element *e) {
    return value_of(e->from->scalar, &e->in[0]);
}

static void give_monotone(interpreter_element *e, function *f, double off) {
    e->out[0] = monotone(e->from->scalar, &e->in[0], f, off);
}

static void meaning_exp(interpreter_element *e) {
    double x = first(e);
    give_monotone(e, exp, (2 + fabs(x)) * unit_of(e) * exp(x) + least_error(e));
}

static void meaning_exp2(interpreter_element *e) {
    give_monotone(e, exp2, 2 * unit_of(e) * exp2(first(e)) + least_error(e));
}

static void meaning_log(interpreter_element *e) {
    give_monotone(e, log, 2 * unit_of(e) * (1 + fabs(log(first(e)))));
}

static void meaning_log2(interpreter_element *e) {
    give_monotone(e, logarithm2, 2 * unit_of(e) * (1 + fabs(log2(first(e)))));
}

static void meaning_sqrt(interpreter_element *e) {
    bool wide = e->from->scalar == LILAC_F64;
    give_monotone(e, sqrt, wide ? 0 : unit_of(e) * sqrt(first(e)) + 0x1p-126);
}

static void meaning_precise_sqrt(interpreter_element *e) {
    give_monotone(e, sqrt, 0);
}

static void meaning_rsqrt(interpreter_element *e) {
    give_monotone(e, reciprocal_root, unit_of(e) * reciprocal_root(first(e)));
}

static void meaning_tanh(interpreter_element *e) {
    give_monotone(e, tanh, 2 * unit_of(e) * fabs(tanh(first(e))) + least_error(e));
}

static void meaning_erf(interpreter_element *e) {
    give_monotone(e, erf, 2 * unit_of(e) * fabs(erf(first(e))) + least_error(e));
}

static void meaning_floor(interpreter_element *e) {
    give_monotone(e, floor, 0);
}

static void meaning_ceil(interpreter_element *e) {
    give_monotone(e, ceil, 0);
}

/* Sine and cosine grow by at most the error of the operand. */
static void give_periodic(interpreter_element *e, double y) {
    bool wide = e->from->scalar == LILAC_F64;
    double off = wide ? 0x1p-45 : 0x1p-19 * fmax(1, fabs(first(e)) / 8);
    e->out[0] = rounded(e->from->scalar, y, isnan(y) ? 0 : e->in[0].error + off);
}

static void meaning_sin(interpreter_element *e) {
    give_periodic(e, sin(first(e)));
}

static void meaning_cos(interpreter_element *e) {
    give_periodic(e, cos(first(e)));
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
    if (strcmp(what, "eq") == 0) {
        return exact(x == y);
    }
    if (strcmp(what, "ne") == 0) {
        return exact(x != y);
    }
    if (strcmp(what, "lt") == 0) {
        return exact(x < y);
    }
    if (strcmp(what, "le") == 0) {
        return exact(x <= y);
    }
    if (strcmp(what, "gt") == 0) {
        return exact(x > y);
    }
    return exact(x >= y);
}

/* ---- conversions ------------------------------------------------------------------------- */

static bool is_small_float(lilac_scalar scalar) {
    return lilac_scalar_bits(scalar) <= 8;
}

static void meaning_float_cast(interpreter_element *e) {
    const lilac_tile_attribute *tt = lilac_tile_find(&e->op->attributes, "rounding");
    const char *mode =
        lilac_tile_find_text(&e->op->attributes, tt != NULL ? "rounding" : "roundingmode");
    lilac_rounding rounding = LILAC_ROUND_NEAREST_EVEN;
    if (mode != NULL && (strcmp(mode, "rtz") == 0 || strcmp(mode, "toward_zero") == 0)) {
        rounding = LILAC_ROUND_ZERO;
    } else if (mode != NULL && strcmp(mode, "downward") == 0) {
        rounding = LILAC_ROUND_DOWN;
    } else if (mode != NULL && strcmp(mode, "upward") == 0) {
        rounding = LILAC_ROUND_UP;
    }
    lilac_scalar to = e->to->scalar;
    e->out[0] = e->in[0].error == 0
                    ? exact(lilac_scalar_encode(to, first(e), rounding, is_small_float(to)))
                    : rounded(to, first(e), e->in[0].error);
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

static void meaning_from_signed(interpreter_element *e) {
    e->out[0] = from_integer(e->from->scalar, e->to->scalar, e->in[0].bits, true);
}

static void meaning_from_unsigned(interpreter_element *e) {
    e->out[0] = from_integer(e->from->scalar, e->to->scalar, e->in[0].bits, false);
}

static void meaning_to_signed(interpreter_element *e) {
    e->out[0] = to_integer(e->from->scalar, e->to->scalar, &e->in[0], true);
}

static void meaning_to_unsigned(interpreter_element *e) {
    e->out[0] = to_integer(e->from->scalar, e->to->scalar, &e->in[0], false);
}

static void meaning_resize_s(interpreter_element *e) {
    int64_t number = lilac_scalar_signed(e->from->scalar, e->in[0].bits);
    e->out[0] = exact(lilac_scalar_mask(e->to->scalar, (uint64_t)number));
}

static void meaning_resize_u(interpreter_element *e) {
    e->out[0] = exact(lilac_scalar_mask(e->to->scalar, e->in[0].bits));
}

static void meaning_bits(interpreter_element *e) {
    const lilac_tile_type *from = e->from, *to = e->to;
    e->out[0] = (interpreter_cell){e->in[0].bits, e->in[0].error, 0};
    if (from->kind == LILAC_TILE_SCALAR && lilac_scalar_is_float(from->scalar) &&
        !(to->kind == LILAC_TILE_SCALAR && to->scalar == from->scalar) &&
        (e->in[0].error != 0 || isnan(lilac_scalar_decode(from->scalar, e->in[0].bits)))) {
        e->out[0] = OPEN; /* the bits of a NaN are not determined */
    }
}

/* ---- arithmetic of floats --------------------------------------------------------------- */

static uint64_t sign_bit(const interpreter_element *e) {
    return 1ULL << (lilac_scalar_bits(e->from->scalar) - 1);
}

static void meaning_addf(interpreter_element *e) {
    e->out[0] = interpreter_add(e->from->scalar, e->in[0], e->in[1]);
}

static void meaning_subf(interpreter_element *e) {
    interpreter_cell minus = e->in[1];
    minus.bits ^= sign_bit(e);
    e->out[0] = interpreter_add(e->from->scalar, e->in[0], minus);
}

static void meaning_mulf(interpreter_element *e) {
    e->out[0] = multiply(e->from->scalar, &e->in[0], &e->in[1]);
}

static void meaning_divf(interpreter_element *e) {
    e->out[0] = divide(e->from->scalar, &e->in[0], &e->in[1], false);
}

static void meaning_precise_divf(interpreter_element *e) {
    e->out[0] = divide(e->from->scalar, &e->in[0], &e->in[1], true);
}

static void meaning_fma(interpreter_element *e) {
    const interpreter_cell *in = e->in;
    lilac_scalar scalar = e->from->scalar;
    if (in[0].error == 0 && in[1].error == 0 && in[2].error == 0) {
        e->out[0] = exact(lilac_scalar_fma(scalar, in[0].bits, in[1].bits, in[2].bits));
        return;
    }
    double x = value_of(scalar, &in[0]), y = value_of(scalar, &in[1]);
    double off = fabs(x) * in[1].error + fabs(y) * in[0].error + in[0].error * in[1].error;
    off += in[2].error;
    e->out[0] = rounded(scalar, fma(x, y, value_of(scalar, &in[2])), isnan(off) ? INFINITY : off);
}

static void meaning_remf(interpreter_element *e) {
    bool open = e->in[0].error != 0 || e->in[1].error != 0;
    double y = value_of(e->from->scalar, &e->in[1]);
    e->out[0] = open ? OPEN : rounded(e->from->scalar, fmod(first(e), y), 0);
}

static void meaning_minnumf(interpreter_element *e) {
    e->out[0] = extreme(e->from->scalar, e->in[0], e->in[1], false, false);
}

static void meaning_maxnumf(interpreter_element *e) {
    e->out[0] = extreme(e->from->scalar, e->in[0], e->in[1], true, false);
}

static void meaning_minimumf(interpreter_element *e) {
    e->out[0] = extreme(e->from->scalar, e->in[0], e->in[1], false, true);
}

static void meaning_maximumf(interpreter_element *e) {
    e->out[0] = extreme(e->from->scalar, e->in[0], e->in[1], true, true);
}

static void meaning_clampf(interpreter_element *e) {
    lilac_scalar scalar = e->from->scalar;
    const char *text = lilac_tile_find_text(&e->op->attributes, "propagateNan");
    bool propagate = text != NULL && strcmp(text, "all") == 0;
    if (isnan(value_of(scalar, &e->in[1])) || isnan(value_of(scalar, &e->in[2]))) {
        e->out[0] = OPEN;
        return;
    }
    interpreter_cell raised = extreme(scalar, e->in[0], e->in[1], true, propagate);
    e->out[0] = extreme(scalar, raised, e->in[2], false, propagate);
}

static void meaning_negf(interpreter_element *e) {
    e->out[0] = e->in[0];
    e->out[0].bits ^= sign_bit(e);
}

static void meaning_absf(interpreter_element *e) {
    e->out[0] = e->in[0];
    e->out[0].bits &= ~sign_bit(e);
}

static void meaning_cmpf(interpreter_element *e) {
    e->out[0] = compare_floats(lilac_tile_find_text(&e->op->attributes, "predicate"),
                               e->from->scalar, &e->in[0], &e->in[1]);
}

void interpreter_select(interpreter_element *e) {
    const interpreter_cell *in = e->in;
    bool same = in[1].error == 0 && in[2].error == 0 && in[1].bits == in[2].bits;
    e->out[0] = in[0].error == 0 ? in[in[0].bits & 1 ? 1 : 2] : same ? in[1] : OPEN;
}

/* ---- functions of libraries -------------------------------------------------------------- */

static double power_of_ten(double x) {
    return pow(10, x);
}

/* By libdevice's names, without the f of the functions of f32. */
static const struct {
    const char *name;
    double (*one)(double);
    double (*two)(double, double);
} library[] = {
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

/* By libdevice's names, which end in f for f32. Within four units in the last place (double's own
 * library is off by some as well); what comes of operands with errors is open. */
void interpreter_library_function(interpreter_element *e) {
    const lilac_tile_op *op = e->op;
    const interpreter_cell *in = e->in;
    const lilac_scalar scalar = e->to->kind == LILAC_TILE_SCALAR ? e->to->scalar : LILAC_I1;
    const char *name = lilac_tile_find_text(&op->attributes, "symbol");
    if (name == NULL || strncmp(name, "__nv_", 5) != 0 ||
        (scalar != LILAC_F32 && scalar != LILAC_F64)) {
        e->unsupported = true;
        return;
    }
    name += 5;
    size_t length = strlen(name) - (scalar == LILAC_F32 ? 1 : 0);
    for (size_t i = 0; i < sizeof library / sizeof *library; i++) {
        if (strlen(library[i].name) != length || memcmp(library[i].name, name, length) != 0 ||
            op->operand_count != (library[i].one != NULL ? 1u : 2u)) {
            continue;
        }
        bool open = in[0].error != 0 || (library[i].two != NULL && in[1].error != 0);
        double x = value_of(scalar, &in[0]);
        double y = library[i].one != NULL ? library[i].one(x)
                                          : library[i].two(x, value_of(scalar, &in[1]));
        e->out[0] =
            open ? OPEN : rounded(scalar, y, isfinite(y) ? 4 * interpreter_ulp(scalar, y) : 0);
        return;
    }
    e->unsupported = true;
}

/* ---- the table -------------------------------------------------------------------------- */

static interpreter_meaning *const meanings[LILAC_TILE_OP_COUNT] = {
#define FLOAT(code, compute, instruction, meaning) [LILAC_TILE_OP_##code] = meaning,
#define CAST(code, instruction, meaning)           [LILAC_TILE_OP_##code] = meaning,
#define MATH(code, f32, f64, meaning)              [LILAC_TILE_OP_##code] = meaning,
#include <lilac/operations.def>
};

/* Is the result open whatever the operation is? */
static bool has_open_operand(const interpreter_element *e) {
    bool is_float = e->from->kind == LILAC_TILE_SCALAR && lilac_scalar_is_float(e->from->scalar);
    for (uint32_t i = 0; i < e->op->operand_count; i++) {
        if (is_float ? isinf(e->in[i].error) : e->in[i].error != 0) {
            return true;
        }
    }
    return false;
}

void interpreter_compute(interpreter_element *e) {
    interpreter_meaning *meaning = meanings[e->op->code] != NULL
                                       ? meanings[e->op->code]
                                       : interpreter_integer_meaning(e->op->code);
    if (meaning == NULL) {
        e->unsupported = true;
    } else if (has_open_operand(e)) {
        e->out[0] = e->out[1] = OPEN;
    } else {
        meaning(e);
    }
}
