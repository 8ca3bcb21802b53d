/* Reductions, scans and maps: a region on lines of elements.
 *
 * A line is folded in order. What other orders may give goes into the error: for sums and products
 * by the bound of interpreter.h, for other regions that round by folding in blocks as well. */
#include "interpreter_machine.h"

/* Runs a region on cells; its results are read by the caller from the terminator's operands. */
static const lilac_tile_op *apply(machine *m, const lilac_tile_region *region, uint32_t count,
                                  const interpreter_cell *in) {
    for (uint32_t i = 0; i < count; i++) {
        target(m, region->first->arguments[i])[0] = in[i];
    }
    return interpreter_run_blocks(m, region->first);
}

typedef enum region_kind { EXACT, SUM, PRODUCT, ROUNDS } region_kind;

static void look_at(void *data, lilac_tile_op *op) {
    region_kind *kind = data;
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_SELECT:
    case LILAC_TILE_OP_ARITH_MINNUMF:
    case LILAC_TILE_OP_ARITH_MAXNUMF:
    case LILAC_TILE_OP_ARITH_MINIMUMF:
    case LILAC_TILE_OP_ARITH_MAXIMUMF:
    case LILAC_TILE_OP_ARITH_NEGF:
    case LILAC_TILE_OP_ARITH_CONSTANT:
    case LILAC_TILE_OP_MATH_ABSF:
    case LILAC_TILE_OP_SCF_IF:
        return;
    default:
        break;
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        const lilac_tile_type *type = op->results[i].type;
        if (type->kind == LILAC_TILE_SCALAR && lilac_scalar_is_float(type->scalar)) {
            *kind = ROUNDS;
        }
    }
}

/* Of result `r`: what its error is made of. */
static region_kind kind_of_region(const lilac_tile_op *op, uint32_t r) {
    lilac_tile_block *block = op->regions[0]->first;
    const lilac_tile_value *from = block->last->operands[r].value;
    const uint32_t n = op->operand_count;
    if (from->op != NULL && from->op->operand_count == 2 &&
        (from->op->code == LILAC_TILE_OP_ARITH_ADDF ||
         from->op->code == LILAC_TILE_OP_ARITH_MULF)) {
        const lilac_tile_value *a = from->op->operands[0].value, *b = from->op->operands[1].value;
        const lilac_tile_value *x = block->arguments[r], *y = block->arguments[n + r];
        if ((a == x && b == y) || (a == y && b == x)) {
            return from->op->code == LILAC_TILE_OP_ARITH_ADDF ? SUM : PRODUCT;
        }
    }
    region_kind kind = EXACT;
    lilac_tile_walk(op->regions[0], look_at, &kind);
    return kind;
}

typedef struct folding {
    machine *m;
    const lilac_tile_op *op;
    uint32_t operands;
    region_kind kind[MOST_OPERANDS];
    lilac_scalar scalar[MOST_OPERANDS];
    uint64_t first, stride, size; /* the line: elements first + i stride */
    bool reverse;
} folding;

static interpreter_cell element_of_line(const folding *f, uint32_t k, uint64_t i) {
    uint64_t place = f->reverse ? f->size - 1 - i : i;
    interpreter_cell cell = at(f->m, f->op, k, f->first + place * f->stride);
    cell.error += cell.slack; /* the sum may be contracted with what made it */
    cell.slack = 0;
    return cell;
}

static void combine_by_region(const folding *f, interpreter_cell *left,
                              const interpreter_cell *right) {
    interpreter_cell in[2 * MOST_OPERANDS];
    memcpy(in, left, f->operands * sizeof *in);
    memcpy(in + f->operands, right, f->operands * sizeof *in);
    const lilac_tile_op *last = apply(f->m, f->op->regions[0], 2 * f->operands, in);
    for (uint32_t k = 0; k < f->operands; k++) {
        left[k] = read(f->m, last, k)[0];
    }
}

/* What association may change, for the fold of the first `count` elements, folded in order into
 * `cell`. Magnitudes: sums of |x| for SUM. */
static void widen(const folding *f, uint32_t k, interpreter_cell *cell, uint64_t count, double mass,
                  double errors) {
    cell->slack = 0;
    if (count < 2 || f->kind[k] == EXACT || f->kind[k] == ROUNDS || isinf(cell->error)) {
        return;
    }
    double value = lilac_scalar_decode(f->scalar[k], cell->bits);
    if (!isfinite(value) || !isfinite(mass)) {
        *cell = isfinite(mass) ? OPEN : *cell;
        return;
    }
    if (f->kind[k] == SUM) {
        cell->error = errors + (double)count * interpreter_ulp(f->scalar[k], mass + errors);
        /* The largest sum that some association may meet: past the last finite number? */
        double most = mass + cell->error;
        if (!isfinite(lilac_scalar_decode(
                f->scalar[k],
                lilac_scalar_encode(f->scalar[k], most, LILAC_ROUND_NEAREST_EVEN, false)))) {
            *cell = OPEN;
        }
    } else {
        /* `mass` is the product of the magnitudes above one: none underflows before. */
        cell->error += 2 * (double)count * interpreter_ulp(f->scalar[k], value);
    }
}

/* Folds all of the line, or, when `all` is given, every beginning of it (all[i * operands + k]). */
static void fold_in_order(const folding *f, interpreter_cell *result, interpreter_cell *all) {
    double mass[MOST_OPERANDS] = {0}, errors[MOST_OPERANDS] = {0};
    for (uint64_t i = 0; i < f->size; i++) {
        interpreter_cell next[MOST_OPERANDS];
        for (uint32_t k = 0; k < f->operands; k++) {
            next[k] = element_of_line(f, k, i);
            if (f->kind[k] == SUM) {
                mass[k] += fabs(lilac_scalar_decode(f->scalar[k], next[k].bits));
                errors[k] += next[k].error;
            }
        }
        if (i == 0) {
            memcpy(result, next, f->operands * sizeof *next);
        } else {
            combine_by_region(f, result, next);
        }
        for (uint32_t k = 0; k < f->operands; k++) {
            if (all != NULL) {
                all[i * f->operands + k] = result[k];
                widen(f, k, &all[i * f->operands + k], i + 1, mass[k], errors[k]);
            }
        }
    }
    for (uint32_t k = 0; k < f->operands; k++) {
        widen(f, k, &result[k], f->size, mass[k], errors[k]);
    }
}

/* The same in blocks of eight: another association. */
static void fold_in_blocks(const folding *f, interpreter_cell *all) {
    interpreter_cell carry[MOST_OPERANDS], block[MOST_OPERANDS];
    for (uint64_t i = 0; i < f->size; i++) {
        interpreter_cell next[MOST_OPERANDS];
        for (uint32_t k = 0; k < f->operands; k++) {
            next[k] = element_of_line(f, k, i);
        }
        if (i % 8 == 0) {
            memcpy(block, next, sizeof block);
        } else {
            combine_by_region(f, block, next);
        }
        interpreter_cell here[MOST_OPERANDS];
        memcpy(here, i < 8 ? block : carry, sizeof here);
        if (i >= 8) {
            combine_by_region(f, here, block);
        }
        memcpy(&all[i * f->operands], here, f->operands * sizeof *here);
        if (i % 8 == 7) {
            memcpy(carry, here, sizeof carry);
        }
    }
}

/* The error of regions that round and do not associate; see interpreter.h. */
static void spread(const folding *f, uint32_t k, uint64_t count, interpreter_cell *cell,
                   const interpreter_cell *other, double largest) {
    if (f->kind[k] != ROUNDS || isinf(cell->error) || count < 2) {
        return;
    }
    if (!lilac_scalar_is_float(f->scalar[k])) {
        if (cell->bits != other->bits || isinf(other->error)) {
            *cell = OPEN;
        }
        return;
    }
    double a = lilac_scalar_decode(f->scalar[k], cell->bits);
    double b = lilac_scalar_decode(f->scalar[k], other->bits);
    if (!isfinite(a) || !isfinite(b)) {
        *cell = OPEN;
        return;
    }
    cell->error = fmax(cell->error, other->error) + 16 * fabs(a - b) +
                  (double)count * interpreter_ulp(f->scalar[k], fmax(largest, fabs(a)));
}

static void fold_line(folding *f, interpreter_cell *const *out, uint64_t out_first, bool scan) {
    const uint32_t n = f->operands;
    interpreter_cell result[MOST_OPERANDS];
    interpreter_cell *all = malloc(f->size * n * sizeof *all);
    interpreter_cell *other = malloc(f->size * n * sizeof *other);
    fold_in_order(f, result, all);
    bool rounds = false;
    for (uint32_t k = 0; k < n; k++) {
        rounds = rounds || f->kind[k] == ROUNDS;
    }
    if (rounds) {
        fold_in_blocks(f, other);
    }
    for (uint32_t k = 0; k < n; k++) {
        double largest = 0;
        for (uint64_t i = 0; i < f->size; i++) {
            interpreter_cell cell = all[i * n + k];
            if (rounds && lilac_scalar_is_float(f->scalar[k])) {
                interpreter_cell in = element_of_line(f, k, i);
                largest = fmax(largest, fabs(lilac_scalar_decode(f->scalar[k], in.bits)));
            }
            if (rounds) {
                spread(f, k, i + 1, &cell, &other[i * n + k], largest);
            }
            if (scan) {
                uint64_t place = f->reverse ? f->size - 1 - i : i;
                out[k][f->first + place * f->stride] = cell;
            } else if (i == f->size - 1) {
                out[k][out_first] = cell;
            }
        }
    }
    free(all);
    free(other);
}

void interpreter_run_fold(machine *m, const lilac_tile_op *op) {
    const lilac_tile_type *type = op->operands[0].value->type;
    const uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    const bool scan = op->code == LILAC_TILE_OP_TT_SCAN;
    folding f = {.m = m, .op = op, .operands = op->operand_count, .stride = 1};
    interpreter_cell *out[MOST_OPERANDS];
    if (op->operand_count > MOST_OPERANDS) {
        end(m, INTERPRETER_UNSUPPORTED, op);
    }
    f.reverse = scan && lilac_tile_find_integer(&op->attributes, "reverse", 0) != 0;
    f.size = (uint64_t)type->shape[axis];
    for (uint32_t d = axis + 1; d < type->rank; d++) {
        f.stride *= (uint64_t)type->shape[d];
    }
    for (uint32_t k = 0; k < f.operands; k++) {
        f.kind[k] = kind_of_region(op, k);
        f.scalar[k] = kind_of(lilac_tile_element(op->operands[k].value->type));
        out[k] = target(m, &op->results[k]);
    }
    uint64_t lines = count_of(type) / f.size;
    for (uint64_t line = 0; line < lines; line++) {
        f.first = line / f.stride * f.stride * f.size + line % f.stride;
        fold_line(&f, out, line, scan);
    }
}

void interpreter_run_map(machine *m, const lilac_tile_op *op) {
    const uint64_t pack = (uint64_t)lilac_tile_find_integer(&op->attributes, "pack", 1);
    const uint64_t count = count_of(op->operands[0].value->type);
    interpreter_cell in[256];
    if (op->operand_count * pack > 256) {
        end(m, INTERPRETER_UNSUPPORTED, op);
    }
    for (uint64_t e = 0; e < count; e += pack) {
        for (uint32_t k = 0; k < op->operand_count; k++) {
            for (uint64_t p = 0; p < pack; p++) {
                in[k * pack + p] = at(m, op, k, e + p);
            }
        }
        const lilac_tile_op *last =
            apply(m, op->regions[0], (uint32_t)(op->operand_count * pack), in);
        for (uint32_t r = 0; r < op->result_count; r++) {
            for (uint64_t p = 0; p < pack; p++) {
                target(m, &op->results[r])[e + p] = read(m, last, (uint32_t)(r * pack + p))[0];
            }
        }
    }
}
