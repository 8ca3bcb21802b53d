/* Matrix products: tt.dot and tt.dot_scaled.
 *
 *     d[i, j] = c[i, j] + Σ_k a[i, k] · b[k, j]
 *
 * Integers are signed and wrap: every order of the sums gives the same bits. Of floats the sum is
 * computed with twice the bits of a double and rounded once. What another execution may give is
 * bounded here, and nowhere else:
 *
 *     |d' - d|  <=  E + n · ulp(M) + ulp(d) / 2
 *
 *     M   |c| + Σ |a| |b|, the largest magnitude that a partial sum may have
 *     n   roundings: every addition rounds or truncates to the accumulator's type, in any order. K + 1,
 *         or for products of p pieces (below) p K + 3
 *     E   what the operands are off by, through the products, and what the pieces lose
 *
 * Where M + E + n · ulp(M) is not a finite number of the accumulator's type, a partial sum may overflow:
 * the result is open. Where E = 0 and every product and c is a multiple of a quantum q, and M / q fits
 * the accumulator's significand, every partial sum is exact: so is the result.
 *
 * The bound does not cover wgmma of 8-bit floats on sm_90a, which adds with fewer bits than f32 has; the
 * simulator adds with all of them.
 *
 * Products of f32 by inputPrecision. u(x) is an ulp of tf32 or bf16 at x; of operands that the first
 * piece holds exactly nothing is lost:
 *
 *     ieee     nothing is lost
 *     tf32     operands are truncated, rounded or kept: off by u(a)
 *     tf32x3   a = a1 + a2 + …, |a2| <= u(a) / 2, the rest below u(a2); without a2 · b2
 *     bf16x3   a = a1 + a2 + …, |a2| <= u(a) / 2, the rest below u(a2) / 2; without a2 · b2
 *     bf16x6   three pieces; without a2 · b3, a3 · b2 and a3 · b3
 *
 * tt.dot_scaled is a product of operands in bf16, or in f16 if one side is f16. Each operand is
 *
 *     round(value · scale)        both in that type
 *
 * A scale s of 8 bits is 2^(s - 127), rounded to that type; 0 stands for the number 0, and for
 * s = 255 the operand is NaN. With fastMath the scale is infinity then. */
#include "interpreter_machine.h"

typedef enum input_precision { IEEE, TF32, TF32X3, BF16X3, BF16X6 } input_precision;

/* An operand's element. Its value is off by at most `error`, infinite: it is open. */
typedef struct factor {
    double value, error;
    double second, third; /* bounds of the pieces that follow the first one */
    int low;              /* of finite numbers but 0: the exponent of the lowest bit that is set */
} factor;

typedef struct product {
    input_precision precision;
    lilac_scalar a, b, d;
    uint64_t rows, columns, depth;
    const interpreter_cell *a_cells, *b_cells; /* of one matrix, by rows */
    factor *a_factors, *b_factors;             /* B by columns */
} product;

static const lilac_rounding NEAREST = LILAC_ROUND_NEAREST_EVEN;

/* ---- operands ---------------------------------------------------------------------------- */

static int lowest_bit(double value) {
    int exponent, count = 0;
    double fraction = frexp(fabs(value), &exponent);
    if (value == 0 || !isfinite(value)) {
        return INT16_MAX;
    }
    while (fraction != trunc(fraction)) {
        fraction *= 2;
        count++;
    }
    return exponent - count;
}

/* What an input precision loses of an operand of f32. */
static void lose(factor *f, input_precision precision) {
    const lilac_scalar piece = precision <= TF32X3 ? LILAC_TF32 : LILAC_BF16;
    const double most = f->error + fabs(f->value), unit = interpreter_ulp(piece, most);
    const double kept =
        lilac_scalar_decode(piece, lilac_scalar_encode(piece, f->value, LILAC_ROUND_ZERO, false));
    if (precision == IEEE || !isfinite(most) || (f->error == 0 && kept == f->value)) {
        return;
    }
    if (!isfinite(lilac_scalar_decode(
            LILAC_F32, lilac_scalar_encode(LILAC_F32, most + unit, NEAREST, false)))) {
        f->error = INFINITY; /* the first piece may be infinite */
        return;
    }
    if (precision == TF32) {
        f->error += unit;
        return;
    }
    f->second = unit / 2;
    double rest = interpreter_ulp(piece, f->second) / (precision == TF32X3 ? 1 : 2);
    if (precision == BF16X6) {
        f->third = rest;
        rest = interpreter_ulp(piece, rest) / 2;
    }
    f->error += rest;
}

static factor factor_of(const product *p, lilac_scalar scalar, const interpreter_cell *cell) {
    factor f = {.value = lilac_scalar_decode(scalar, cell->bits), .error = cell->error};
    f.low = lowest_bit(f.value);
    lose(&f, p->precision);
    return f;
}

static void decode_operands(product *p) {
    for (uint64_t i = 0; i < p->rows * p->depth; i++) {
        p->a_factors[i] = factor_of(p, p->a, &p->a_cells[i]);
    }
    for (uint64_t k = 0; k < p->depth; k++) {
        for (uint64_t j = 0; j < p->columns; j++) {
            p->b_factors[j * p->depth + k] = factor_of(p, p->b, &p->b_cells[k * p->columns + j]);
        }
    }
}

/* ---- the sum ----------------------------------------------------------------------------- */

typedef struct sum {
    double high, low; /* of the finite terms */
    double special;   /* of the terms that are not finite; 0: there are none */
    double mass, error;
    int lowest;
    bool negative_zero; /* a term is -0 */
} sum;

static void add(sum *s, double x) {
    double total = s->high + x, part = total - s->high;
    s->low += (s->high - (total - part)) + (x - part);
    s->high = total;
}

static void add_product(sum *s, const factor *a, const factor *b) {
    double x = fabs(a->value), y = fabs(b->value), both = a->value * b->value;
    if (!isfinite(x) || !isfinite(y)) {
        s->special += both;
        /* An infinity times a number whose sign is open. */
        bool open = (isinf(x) && y <= b->error && b->error > 0) ||
                    (isinf(y) && x <= a->error && a->error > 0) || isinf(a->error + b->error);
        s->error += open ? INFINITY : 0;
        return;
    }
    add(s, both);
    s->low += fma(a->value, b->value, -both);
    s->mass += (x + a->error) * (y + b->error);
    s->error += x * b->error + y * a->error + a->error * b->error;
    s->error += a->third + b->third > 0
                    ? a->second * b->third + a->third * b->second + a->third * b->third
                    : a->second * b->second;
    if (both != 0) {
        int low = a->low + b->low;
        s->lowest = low < s->lowest ? low : s->lowest;
    }
    s->negative_zero = s->negative_zero || (both == 0 && signbit(both));
}

static bool overflows(lilac_scalar scalar, double magnitude) {
    return !isfinite(magnitude) ||
           magnitude > lilac_scalar_decode(
                           scalar, lilac_scalar_encode(scalar, 1.7e308, LILAC_ROUND_ZERO, true));
}

/* Is every partial sum a finite number, and exact? */
static bool is_exact(const product *p, const sum *s) {
    const double unit = interpreter_ulp(p->d, 1), quantum = ldexp(1, s->lowest);
    return s->error == 0 && !overflows(p->d, s->mass) &&
           (s->mass == 0 || (quantum >= interpreter_ulp(p->d, 0) && s->mass * unit < 2 * quantum));
}

static interpreter_cell result_of(const product *p, const sum *s) {
    static const uint32_t pieces[] = {
        [IEEE] = 1, [TF32] = 1, [TF32X3] = 3, [BF16X3] = 3, [BF16X6] = 6};
    const uint32_t count = pieces[p->precision];
    const double roundings = (double)count * (double)p->depth + (count > 1 ? 3 : 1);
    const double value = s->special != 0 ? s->special : s->high + s->low;
    interpreter_cell cell = {lilac_scalar_encode(p->d, value, NEAREST, false), 0, 0};
    if (isinf(s->error) || isnan(s->error)) {
        return OPEN;
    }
    if (isnan(value)) {
        return cell;
    }
    if (s->special == 0 && is_exact(p, s)) {
        /* The sign of a sum of zeros depends on the order. */
        cell.error = value == 0 && s->negative_zero && s->mass == 0 ? 1e-300 : 0;
        return cell;
    }
    const double error = s->error + roundings * interpreter_ulp(p->d, s->mass);
    if (overflows(p->d, s->mass + error)) {
        return OPEN;
    }
    if (s->special == 0) {
        cell.error = error + interpreter_ulp(p->d, fabs(value)) / 2;
    }
    return cell;
}

static interpreter_cell float_element(const product *p, const factor *a, const factor *b,
                                      const interpreter_cell *c) {
    const double start = lilac_scalar_decode(p->d, c->bits);
    sum s = {.lowest = lowest_bit(start), .error = c->error + c->slack};
    if (isfinite(start)) {
        s.high = start;
        s.mass = fabs(start) + s.error;
    } else {
        s.special = start;
    }
    s.negative_zero = start == 0 && signbit(start);
    for (uint64_t k = 0; k < p->depth; k++) {
        add_product(&s, &a[k], &b[k]);
    }
    return result_of(p, &s);
}

static interpreter_cell integer_element(const product *p, uint64_t row, uint64_t column,
                                        const interpreter_cell *c) {
    uint64_t total = c->bits;
    double error = c->error;
    for (uint64_t k = 0; k < p->depth; k++) {
        const interpreter_cell *a = &p->a_cells[row * p->depth + k];
        const interpreter_cell *b = &p->b_cells[k * p->columns + column];
        total += (uint64_t)lilac_scalar_signed(p->a, a->bits) *
                 (uint64_t)lilac_scalar_signed(p->b, b->bits);
        error += a->error + b->error;
    }
    return error != 0 ? OPEN : (interpreter_cell){lilac_scalar_mask(p->d, total), 0, 0};
}

/* ---- tt.dot ------------------------------------------------------------------------------ */

/* Multiplies the matrices of each batch. `a`, `b`: all of their elements, by rows. */
static void multiply(machine *m, const lilac_tile_op *op, product *p, const interpreter_cell *a,
                     const interpreter_cell *b) {
    const lilac_tile_type *type = op->results[0].type;
    const interpreter_cell *c = read(m, op, 2);
    const uint32_t rank = type->rank;
    p->d = kind_of(lilac_tile_element(type));
    p->rows = (uint64_t)type->shape[rank - 2];
    p->columns = (uint64_t)type->shape[rank - 1];
    const uint64_t size = p->rows * p->columns, batches = count_of(type) / size;
    const bool is_float = lilac_scalar_is_float(p->d);
    if (lilac_scalar_is_float(p->a) != is_float || lilac_scalar_is_float(p->b) != is_float) {
        end(m, INTERPRETER_UNSUPPORTED, op);
    }
    burn(m, op, count_of(type) * p->depth / 8);
    interpreter_cell *out = target(m, &op->results[0]);
    p->a_factors = malloc(p->rows * p->depth * sizeof *p->a_factors);
    p->b_factors = malloc(p->columns * p->depth * sizeof *p->b_factors);
    for (uint64_t batch = 0; batch < batches; batch++) {
        p->a_cells = a + batch * p->rows * p->depth;
        p->b_cells = b + batch * p->columns * p->depth;
        if (is_float) {
            decode_operands(p);
        }
        for (uint64_t e = 0; e < size; e++) {
            const uint64_t row = e / p->columns, column = e % p->columns, at_e = batch * size + e;
            out[at_e] = is_float ? float_element(p, p->a_factors + row * p->depth,
                                                 p->b_factors + column * p->depth, &c[at_e])
                                 : integer_element(p, row, column, &c[at_e]);
        }
    }
    free(p->a_factors);
    free(p->b_factors);
}

static input_precision precision_of(const lilac_tile_op *op) {
    static const char *const names[] = {"ieee", "tf32", "tf32x3", "bf16x3", "bf16x6"};
    lilac_name name = lilac_tile_find_text(&op->attributes, "inputPrecision");
    for (uint32_t i = 0; name != NULL && i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            return (input_precision)i;
        }
    }
    return IEEE;
}

void interpreter_run_dot(machine *m, const lilac_tile_op *op) {
    const lilac_tile_type *a = op->operands[0].value->type, *b = op->operands[1].value->type;
    product p = {.a = kind_of(lilac_tile_element(a)), .b = kind_of(lilac_tile_element(b))};
    p.depth = (uint64_t)a->shape[a->rank - 1];
    p.precision = p.a == LILAC_F32 && p.b == LILAC_F32 ? precision_of(op) : IEEE;
    multiply(m, op, &p, read(m, op, 0), read(m, op, 1));
}

/* ---- tt.dot_scaled ----------------------------------------------------------------------- */

typedef struct scaled_operand {
    machine *m;
    const lilac_tile_op *op;
    uint32_t index;        /* 0: A, 1: B */
    uint32_t scale;        /* its operand's number; 0: there is none */
    bool is_fp4, k_packed; /* two numbers in a byte, along K or along the other dimension */
    bool fast;
    lilac_scalar element, scale_scalar, to;
    uint64_t shape[2]; /* of the matrix, unpacked: M × K or K × N */
    uint64_t batches, group;
} scaled_operand;

static bool element_type(const lilac_tile_op *op, uint32_t index, lilac_scalar *result) {
    static const struct {
        const char *name;
        lilac_scalar scalar;
    } rows[] = {{"e2m1", LILAC_F4E2M1FN},
                {"e4m3", LILAC_F8E4M3FN},
                {"e5m2", LILAC_F8E5M2},
                {"bf16", LILAC_BF16},
                {"fp16", LILAC_F16}};
    lilac_name name =
        lilac_tile_find_text(&op->attributes, index == 0 ? "a_elem_type" : "b_elem_type");
    for (size_t i = 0; name != NULL && i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            *result = rows[i].scalar;
            return true;
        }
    }
    return false;
}

static scaled_operand operand_of(machine *m, const lilac_tile_op *op, uint32_t index) {
    scaled_operand o = {.m = m, .op = op, .index = index, .batches = 1};
    lilac_scalar other = LILAC_BF16;
    const lilac_tile_type *type = op->operands[index].value->type;
    const uint32_t rank = type->rank, k = index == 0 ? 1 : 0;
    const lilac_tile_attribute *sizes = lilac_tile_find(&op->attributes, "operandSegmentSizes");
    if (!element_type(op, index, &o.element) || !element_type(op, 1 - index, &other)) {
        end(m, INTERPRETER_UNSUPPORTED, op);
    }
    o.to = o.element == LILAC_F16 || other == LILAC_F16 ? LILAC_F16 : LILAC_BF16;
    o.is_fp4 = o.element == LILAC_F4E2M1FN;
    o.k_packed =
        lilac_tile_find_integer(&op->attributes, index == 0 ? "lhs_k_pack" : "rhs_k_pack", 1) != 0;
    o.fast = lilac_tile_find_integer(&op->attributes, "fastMath", 0) != 0;
    for (uint32_t d = 0; d < 2; d++) {
        o.shape[d] = (uint64_t)type->shape[rank - 2 + d];
    }
    if (o.is_fp4) {
        o.shape[o.k_packed ? k : 1 - k] *= 2;
    }
    o.batches = rank == 3 ? (uint64_t)type->shape[0] : 1;
    /* Without sizes of the groups, the first scale is that of A. */
    const uint32_t of_a = sizes != NULL ? (uint32_t)sizes->integers[3] : op->operand_count > 3;
    const uint32_t of_b = sizes != NULL ? (uint32_t)sizes->integers[4] : op->operand_count > 4;
    if ((index == 0 ? of_a : of_b) != 0) {
        o.scale = 3 + (index == 1 ? of_a : 0);
        const lilac_tile_type *scales = op->operands[o.scale].value->type;
        o.scale_scalar = kind_of(lilac_tile_element(scales));
        o.group = o.shape[k] / (uint64_t)scales->shape[rank - 1];
    }
    return o;
}

/* The number at a row and column, before its scale, in the operand's own type. */
static interpreter_cell unscaled(const scaled_operand *o, uint64_t batch, uint64_t row,
                                 uint64_t column) {
    const bool along_columns = o->is_fp4 && o->k_packed == (o->index == 0);
    const uint64_t columns = along_columns ? o->shape[1] / 2 : o->shape[1];
    const uint64_t rows = o->is_fp4 && !along_columns ? o->shape[0] / 2 : o->shape[0];
    const uint64_t i = o->is_fp4 && !along_columns ? row / 2 : row;
    const uint64_t j = along_columns ? column / 2 : column;
    interpreter_cell cell = at(o->m, o->op, o->index, (batch * rows + i) * columns + j);
    if (o->is_fp4) {
        cell.bits = cell.bits >> ((along_columns ? column : row) % 2 * 4) & 15;
    }
    return cell;
}

/* The scale in the type of the product; NaN where it makes the operand NaN. */
static double scale_at(const scaled_operand *o, const interpreter_cell *cell) {
    const uint64_t bits = cell->bits & 0xFF;
    double scale = ldexp(1, (int)bits - 127);
    if (lilac_scalar_is_float(o->scale_scalar)) {
        scale = lilac_scalar_decode(o->scale_scalar, cell->bits);
    } else if (bits == 0) {
        scale = 0;
    } else if (bits == 255) {
        scale = o->fast ? (double)INFINITY : (double)NAN;
    }
    return lilac_scalar_decode(o->to, lilac_scalar_encode(o->to, scale, NEAREST, false));
}

static interpreter_cell scaled(const scaled_operand *o, uint64_t batch, uint64_t row,
                               uint64_t column) {
    interpreter_cell cell = unscaled(o, batch, row, column);
    const bool approximate = cell.error != 0;
    if (approximate && lilac_scalar_bits(o->element) < 16) {
        return OPEN;
    }
    double value = lilac_scalar_decode(o->element, cell.bits), by = 1;
    value = lilac_scalar_decode(o->to, lilac_scalar_encode(o->to, value, NEAREST, false));
    if (o->scale != 0) {
        const uint64_t k = o->index == 0 ? column : row, other = o->index == 0 ? row : column;
        const uint64_t depth = o->shape[1 - o->index] / o->group;
        const uint64_t others = o->shape[o->index];
        interpreter_cell scale =
            at(o->m, o->op, o->scale, (batch * others + other) * depth + k / o->group);
        if (scale.error != 0) {
            return OPEN;
        }
        by = scale_at(o, &scale);
    }
    value *= by;
    cell.bits = lilac_scalar_encode(o->to, value, NEAREST, false);
    cell.slack = 0;
    if (approximate) {
        cell.error = cell.error * fabs(by) + 2 * interpreter_ulp(o->to, fabs(value));
        cell.error =
            isnan(cell.error) || overflows(o->to, fabs(value) + cell.error) ? INFINITY : cell.error;
    }
    return cell;
}

static interpreter_cell *scaled_elements(const scaled_operand *o) {
    const uint64_t size = o->shape[0] * o->shape[1];
    interpreter_cell *all = malloc(o->batches * size * sizeof *all);
    for (uint64_t e = 0; e < o->batches * size; e++) {
        all[e] = scaled(o, e / size, e % size / o->shape[1], e % o->shape[1]);
    }
    return all;
}

void interpreter_run_dot_scaled(machine *m, const lilac_tile_op *op) {
    const scaled_operand a = operand_of(m, op, 0), b = operand_of(m, op, 1);
    product p = {.a = a.to, .b = b.to, .depth = a.shape[1]};
    interpreter_cell *left = scaled_elements(&a), *right = scaled_elements(&b);
    multiply(m, op, &p, left, right);
    free(left);
    free(right);
}
