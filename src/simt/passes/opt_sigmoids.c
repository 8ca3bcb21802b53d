/* sigmoids: what 1 / (1 + e^x) does not need. The same holds for silu, tanh, softplus and their gradients.
 *
 * 1. ex2.approx.f32 returns subnormal numbers: the assembler tests for a small argument, scales it and the
 * result. A sum with a constant of at least 2^-100 cannot tell a number below 2^-126 from 0. Where an
 * exponential has no other use, its small results are flushed:
 *
 *     %e = fexp2 %x                →   %e = fexp2 %x {ftz}
 *     %d = fadd %e, 1.0
 *
 * So does an accurate exponential (lower/math/f32_exponential.c), 2^h + 2^h min(p, 1): its users see no
 * small 2^h if they see no small sum.
 *
 * 2. div.full.f32 is right for divisors of all sizes: the assembler tests whether the divisor is above
 * 2^126, where its reciprocal is subnormal, or subnormal itself, and scales both operands in either case.
 * A divisor that is at least 1 is never small, and a quarter of it has a reciprocal of full precision,
 * however large it is:
 *
 *     %q = fdiv %a, %d {approximate}    →   %s = fmul %d, 0.25
 *                                      %r = frcp %s {approximate, ftz}
 *                                      %n = fmul %a, 0.25
 *                                      %q = fmul %n, %r
 *
 * A quarter of a sum e + c is ffma e, 0.25, c / 4, which rounds as the sum does. If %a is a constant so is
 * a quarter of it; if that is a power of two and all uses of the quotient multiply it by a constant, it
 * becomes a factor of these constants:
 *
 *     %t = ffma (1 / (1 + e)), 2.0, -1.0   →   %t = ffma %r, 0.5, -1.0
 *
 * Let r = (1 + u) 4 / d, |u| as for rcp.approx. If |a| >= 2^-124 the quotient is (1 + u) a / d rounded once,
 * as that of div.full is. Below, a quarter of a loses up to two bits, and the quotient is off by at most two
 * units of the smallest subnormal number. An infinite divisor has the reciprocal 0: the quotient of a number
 * is 0, that of an infinity NaN. NaN stays NaN.
 *
 * 3. Triton writes -x as 0 - x. Where x is 0 the two have different signs, which an exponential, a
 * magnitude or a sum with a number does not depend on; if no user does:
 *
 *     %m = fsub 0.0, %x            →   %m = fneg %x
 *
 * which is free: an operand's sign. */
#include "internal.h"

#include <math.h>
#include <string.h>

typedef lilac_simt_instruction instruction;

enum { DEPTH = 4 }; /* how far sums and products are followed */

#define QUARTER 0.25F
#define LEAST   0x1p-100F /* a sum with it and a number below 2^-126 is rounded to it */

typedef struct sigmoids {
    lilac_simt_builder b;
    uint32_t *uses;
    uint32_t *unsigned_zero; /* uses of a value that cannot tell -0 from 0 */
    uint32_t *absorbed;      /* uses of a value that cannot tell a small number from 0 */
    uint32_t *scaled;        /* uses of a value that multiply it by a constant */
    float *factors;          /* of a quotient that its uses still have to be multiplied by, or 0 */
    uint32_t count;          /* entries of each: values made later have none */
    bool changed;
} sigmoids;

static bool is_number(const lilac_simt_kernel *kernel, lilac_simt_value value, float *number) {
    uint64_t bits;
    if (lilac_simt_type_of(kernel, value) != LILAC_SIMT_F32 ||
        !lilac_simt_constant_bits(kernel, value, &bits)) {
        return false;
    }
    const uint32_t word = (uint32_t)bits;
    memcpy(number, &word, sizeof *number);
    return true;
}

static lilac_simt_value number(lilac_simt_builder *b, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return lilac_simt_constant(b, LILAC_SIMT_F32, bits);
}

/* Rounded to nearest, without options. */
static bool is_plain(const instruction *i) {
    return i->flags == 0 && i->detail == LILAC_ROUND_NEAREST_EVEN;
}

static const instruction *made_by(const lilac_simt_kernel *kernel, lilac_simt_value value,
                                  lilac_simt_opcode code) {
    const instruction *d = kernel->values[value].definition;
    return d != NULL && d->code == code ? d : NULL;
}

/* ---- accurate exponentials ----------------------------------------------------------------- */

/* value = -h k + c: *k and *c. */
static bool is_rest(const lilac_simt_kernel *kernel, lilac_simt_value value, lilac_simt_value h,
                    float *k, lilac_simt_value *c) {
    const instruction *d = made_by(kernel, value, LILAC_SIMT_OP_FFMA);
    for (uint32_t side = 0; d != NULL && is_plain(d) && side < 2; side++) {
        const instruction *minus = made_by(kernel, d->operands[side], LILAC_SIMT_OP_FNEG);
        if (minus != NULL && minus->operands[0] == h &&
            is_number(kernel, d->operands[1 - side], k)) {
            *c = d->operands[2];
            return true;
        }
    }
    return false;
}

/* The sum 2^h + 2^h min(p, 1) where h is x k rounded down and p = x - h / k: it is NaN or not negative. For p
 * is not negative but for roundings, which are less than 2^-20 of h: where 2^h is neither 0 nor infinite p is
 * above -1, and where it is infinite the sum is infinite or NaN. */
static bool is_accurate_exponential(const lilac_simt_kernel *kernel, const instruction *i) {
    const instruction *power = made_by(kernel, i->operands[0], LILAC_SIMT_OP_FEXP2);
    const instruction *least = made_by(kernel, i->operands[1], LILAC_SIMT_OP_FMIN);
    if (power == NULL || least == NULL || i->operands[2] != i->operands[0] || !is_plain(i)) {
        return false;
    }
    const lilac_simt_value h = power->operands[0];
    const instruction *product = made_by(kernel, h, LILAC_SIMT_OP_FMUL);
    float factor, high, low, bound;
    lilac_simt_value first, x;
    return product != NULL && product->detail == LILAC_ROUND_DOWN && product->flags == 0 &&
           is_number(kernel, product->operands[1], &factor) && factor > 0 &&
           is_number(kernel, least->operands[1], &bound) && bound == 1 &&
           is_rest(kernel, least->operands[0], h, &low, &first) &&
           is_rest(kernel, first, h, &high, &x) && x == product->operands[0] &&
           fabs((double)factor * ((double)high + (double)low) - 1) < 0x1p-24;
}

/* ---- uses ---------------------------------------------------------------------------------- */

/* Can no user tell the value from one that differs in the sign of a zero? The users come first. */
static bool is_zero_unsigned(const sigmoids *s, lilac_simt_value value) {
    return s->unsigned_zero[value] == s->uses[value];
}

static bool is_absorbed(const sigmoids *s, lilac_simt_value value) {
    return s->absorbed[value] == s->uses[value];
}

/* A sum, product or product and sum with constants. */
static void count_constants(const sigmoids *s, const instruction *i) {
    const bool sum = i->code == LILAC_SIMT_OP_FADD || i->code == LILAC_SIMT_OP_FSUB;
    const bool fused = i->code == LILAC_SIMT_OP_FFMA;
    for (uint32_t side = 0; side < 2; side++) {
        const lilac_simt_value value = i->operands[side];
        float k, c = 0;
        if (!is_number(s->b.kernel, i->operands[1 - side], &k)) {
            continue;
        }
        if (sum) {
            s->absorbed[value] += fabsf(k) >= LEAST;
        } else {
            s->scaled[value]++;
            s->absorbed[value] += fused && fabsf(k) <= 1 &&
                                  is_number(s->b.kernel, i->operands[2], &c) && fabsf(c) >= LEAST;
        }
    }
}

/* Of two numbers that differ in the sign of a zero an operation makes numbers that differ in the sign of a
 * zero at most, unless it divides by them or takes their bits; a sum with a number that no option flushes makes
 * equal ones. */
static void count_signs_of_zeros(const sigmoids *s, const instruction *i) {
    const bool same = i->result != 0 && is_zero_unsigned(s, i->result);
    bool constant_sum = false;
    float k;
    switch (i->code) {
    case LILAC_SIMT_OP_FEXP2:
    case LILAC_SIMT_OP_FABS:
        s->unsigned_zero[i->operands[0]]++;
        return;
    case LILAC_SIMT_OP_FADD:
    case LILAC_SIMT_OP_FSUB:
        for (uint32_t side = 0; side < 2; side++) {
            constant_sum |= is_number(s->b.kernel, i->operands[side], &k) && fabsf(k) >= LEAST;
        }
        break;
    case LILAC_SIMT_OP_FFMA:
        constant_sum = is_number(s->b.kernel, i->operands[2], &k) && fabsf(k) >= LEAST;
        break;
    case LILAC_SIMT_OP_FNEG:
    case LILAC_SIMT_OP_FMUL:
    case LILAC_SIMT_OP_FMIN:
    case LILAC_SIMT_OP_FMAX:
        break;
    default:
        return;
    }
    for (uint32_t side = 0; side < i->operand_count; side++) {
        s->unsigned_zero[i->operands[side]] += same || constant_sum;
    }
}

static void count_use(const sigmoids *s, const instruction *i) {
    count_signs_of_zeros(s, i);
    switch (i->code) {
    case LILAC_SIMT_OP_FADD:
    case LILAC_SIMT_OP_FSUB:
    case LILAC_SIMT_OP_FMUL:
        if (is_plain(i)) {
            count_constants(s, i);
        }
        break;
    case LILAC_SIMT_OP_FFMA:
        if (is_plain(i)) {
            count_constants(s, i);
            s->absorbed[i->operands[0]] +=
                is_accurate_exponential(s->b.kernel, i) && is_absorbed(s, i->result) ? 2 : 0;
        }
        break;
    default:
        break;
    }
}

/* From the last instruction on: the uses of a result are known when its definition is met. */
static void count_uses(const sigmoids *s, const lilac_simt_body *body) {
    for (const instruction *i = body->last; i != NULL; i = i->previous) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            count_uses(s, i->bodies[k]);
        }
        count_use(s, i);
    }
}

/* ---- bounds -------------------------------------------------------------------------------- */

static bool is_at_least(const lilac_simt_kernel *kernel, lilac_simt_value value, float bound,
                        uint32_t depth);

static bool is_square_or_positive(const lilac_simt_kernel *kernel, const instruction *d,
                                  uint32_t depth) {
    return d->operands[0] == d->operands[1] || (is_at_least(kernel, d->operands[0], 0, depth) &&
                                                is_at_least(kernel, d->operands[1], 0, depth));
}

/* Is the value NaN or at least `bound`, which is 0 (then it may be -0) or 1? Rounding to nearest keeps
 * both. */
static bool is_at_least(const lilac_simt_kernel *kernel, lilac_simt_value value, float bound,
                        uint32_t depth) {
    const instruction *d = kernel->values[value].definition;
    float constant;
    if (is_number(kernel, value, &constant)) {
        return constant >= bound;
    }
    if (d == NULL || depth == 0 || d->detail != LILAC_ROUND_NEAREST_EVEN) {
        return false;
    }
    const uint32_t below = depth - 1;
    switch (d->code) {
    case LILAC_SIMT_OP_FEXP2:
    case LILAC_SIMT_OP_FABS:
    case LILAC_SIMT_OP_FSQRT:
        return bound == 0;
    case LILAC_SIMT_OP_FADD:
        return (is_at_least(kernel, d->operands[0], bound, below) &&
                is_at_least(kernel, d->operands[1], 0, below)) ||
               (is_at_least(kernel, d->operands[0], 0, below) &&
                is_at_least(kernel, d->operands[1], bound, below));
    case LILAC_SIMT_OP_FMUL:
        return bound == 0 && is_square_or_positive(kernel, d, below);
    case LILAC_SIMT_OP_FFMA:
        return (bound == 0 && is_accurate_exponential(kernel, d)) ||
               (is_square_or_positive(kernel, d, below) &&
                is_at_least(kernel, d->operands[2], bound, below));
    default:
        return false;
    }
}

/* ---- divisions ----------------------------------------------------------------------------- */

/* A quarter of a value, computed where the builder stands. */
static lilac_simt_value quarter_of(lilac_simt_builder *b, lilac_simt_value value) {
    const lilac_simt_kernel *kernel = b->kernel;
    float constant;
    if (is_number(kernel, value, &constant)) {
        return number(b, constant * QUARTER);
    }
    const instruction *sum = lilac_simt_defined_by(b, value, LILAC_SIMT_OP_FADD);
    const lilac_simt_value quarter = number(b, QUARTER);
    for (uint32_t side = 0; sum != NULL && is_plain(sum) && side < 2; side++) {
        if (sum->parent == b->body && is_number(kernel, sum->operands[side], &constant)) {
            const lilac_simt_value rest = number(b, constant * QUARTER);
            return lilac_simt_op3(b, LILAC_SIMT_OP_FFMA, LILAC_SIMT_F32, sum->operands[1 - side],
                                  quarter, rest);
        }
    }
    return lilac_simt_op2(b, LILAC_SIMT_OP_FMUL, LILAC_SIMT_F32, value, quarter);
}

/* The assembler decides the comparisons of a constant divisor. */
static bool is_division(const lilac_simt_kernel *kernel, const instruction *i) {
    float constant;
    return i->code == LILAC_SIMT_OP_FDIV && i->flags == LILAC_SIMT_APPROXIMATE &&
           !is_number(kernel, i->operands[1], &constant) &&
           is_at_least(kernel, i->operands[1], 1, DEPTH);
}

/* The power of two that the uses of a quotient can be multiplied by, or 0. */
static float common_factor(const sigmoids *s, const instruction *i) {
    float constant;
    int exponent;
    return is_number(s->b.kernel, i->operands[0], &constant) && i->result < s->count &&
                   s->scaled[i->result] == s->uses[i->result] &&
                   fabsf(frexpf(constant, &exponent)) == 0.5F && fabsf(constant) <= 1 &&
                   fabsf(constant) >= LEAST
               ? constant * QUARTER
               : 0;
}

static void divide(sigmoids *s, instruction *i) {
    lilac_simt_builder *b = &s->b;
    const uint8_t flags = LILAC_SIMT_APPROXIMATE | LILAC_SIMT_FTZ;
    const lilac_simt_type type = LILAC_SIMT_F32;
    const lilac_simt_value divisor = quarter_of(b, i->operands[1]);
    const float factor = common_factor(s, i);
    if (factor != 0) {
        s->factors[i->result] = factor;
        i->operands[0] = divisor;
        i->operand_count = 1;
        i->code = LILAC_SIMT_OP_FRCP;
        i->flags = flags;
    } else {
        const instruction reciprocal = {.code = LILAC_SIMT_OP_FRCP, .flags = flags};
        const lilac_simt_value dividend = quarter_of(b, i->operands[0]);
        i->operands[1] = lilac_simt_build(b, &reciprocal, 1, &divisor, 1, &type);
        i->operands[0] = dividend;
        i->code = LILAC_SIMT_OP_FMUL;
        i->flags = 0;
    }
    s->changed = true;
}

/* 0 - x */
static void negate(sigmoids *s, instruction *i) {
    float constant;
    if (is_number(s->b.kernel, i->operands[0], &constant) && constant == 0 && is_plain(i)) {
        i->code = LILAC_SIMT_OP_FNEG;
        i->operands[0] = i->operands[1];
        i->operand_count = 1;
        s->changed = true;
    }
}

/* Multiplies the constant that a quotient is multiplied by. */
static void scale(sigmoids *s, instruction *i) {
    for (uint32_t side = 0; side < 2; side++) {
        const lilac_simt_value value = i->operands[side];
        float constant;
        if (value < s->count && s->factors[value] != 0 &&
            is_number(s->b.kernel, i->operands[1 - side], &constant)) {
            i->operands[1 - side] = number(&s->b, constant * s->factors[value]);
            return;
        }
    }
}

/* ---- the pass ------------------------------------------------------------------------------ */

/* The builder stands in front of the instruction. Most kernels have nothing to build. */
static void stand(lilac_simt_builder *b, instruction *before) {
    if (b->memo == NULL) {
        lilac_simt_builder_init(b, b->kernel);
    }
    b->body = before->parent;
    b->memo->before = before;
    b->location = before->location;
}

static void visit(sigmoids *s, lilac_simt_body *body) {
    lilac_simt_builder *b = &s->b;
    const uint32_t mark = b->memo != NULL ? lilac_simt_memo_open(b->memo) : 0;
    for (instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            visit(s, i->bodies[k]);
        }
        if (is_division(b->kernel, i)) {
            stand(b, i);
            divide(s, i);
        } else if ((i->code == LILAC_SIMT_OP_FMUL || i->code == LILAC_SIMT_OP_FFMA) &&
                   b->memo != NULL) {
            stand(b, i);
            scale(s, i);
        } else if (i->code == LILAC_SIMT_OP_FEXP2 && i->flags == 0 && is_absorbed(s, i->result)) {
            i->flags = LILAC_SIMT_FTZ;
            s->changed = true;
        } else if (i->code == LILAC_SIMT_OP_FSUB && is_zero_unsigned(s, i->result)) {
            negate(s, i);
        }
    }
    if (b->memo != NULL) {
        lilac_simt_memo_close(b->memo, mark);
    }
}

static bool has_exponential_or_division(const lilac_simt_kernel *kernel) {
    for (uint32_t v = 1; v < kernel->value_count; v++) {
        const instruction *d = kernel->values[v].definition;
        if (d != NULL && (d->code == LILAC_SIMT_OP_FEXP2 || d->code == LILAC_SIMT_OP_FDIV)) {
            return true;
        }
    }
    return false;
}

bool lilac_simt_opt_sigmoids(lilac_simt_kernel *kernel) {
    sigmoids s = {.b = {.kernel = kernel}, .count = kernel->value_count};
    if (!has_exponential_or_division(kernel)) {
        return false;
    }
    uint32_t *counts = lilac_heap_grow(NULL, sizeof *counts * 4 * s.count);
    memset(counts, 0, sizeof *counts * 4 * s.count);
    s.uses = counts;
    s.absorbed = counts + s.count;
    s.scaled = counts + 2 * (size_t)s.count;
    s.unsigned_zero = counts + 3 * (size_t)s.count;
    s.factors = lilac_heap_grow(NULL, sizeof *s.factors * s.count);
    memset(s.factors, 0, sizeof *s.factors * s.count);
    lilac_simt_count_uses(kernel->body, s.uses);
    count_uses(&s, kernel->body);
    visit(&s, kernel->body);
    lilac_simt_builder_clear(&s.b);
    lilac_heap_free(s.factors);
    lilac_heap_free(counts);
    return s.changed;
}
