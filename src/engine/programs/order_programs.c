/* order_programs: the programs with the most work start first.
 *
 * A device starts programs in the order of their numbers as multiprocessors have space. In causal attention
 * the rows of block x see the columns up to themselves, so a program has about x iterations:
 *
 *     scf.for %start = 0 to minsi((%x + 1) · 128, %length) step 64 { … tt.dot … }
 *
 * The last programs to start are then the longest, and most multiprocessors wait for the last of all
 * (bench/results/h200_program_order.md).
 * The pass finds the axis and the direction. Lowering (src/lower/program_order.c) gives the program that starts
 * as number i the place of i in the order of decreasing work; each place is given once.
 *
 * The slope of an integer is how much it grows from one program to the next along an axis:
 *
 *     tt.get_program_id x                1 along x, 0 along y and z
 *     a + b, a - b                       the sum, the difference
 *     a · c, a / c, with a constant c    c times, the c-th part; of c > 0 in a quotient
 *     minima, maxima                     the larger one, if none falls while the other grows
 *     anything else                      0 where its operands have 0, or else unknown
 *
 * and that of a trip count the difference of those of the bounds, divided by the step. The order is that of
 * the only axis along which the trip counts of loops with products have slopes of LEAST_SLOPE or more, all of
 * the same sign, and none is unknown. Programs that divide tiles among a number of them (persistent ones) have
 * smaller slopes.
 *
 * The order that a device keeps is no promise, but programs exist that rely on it, which wait for others: a
 * kernel with an atomic or volatile access, or inline assembly, in scf.while keeps its numbers. So do clusters, and kernels whose
 * launcher may start several blocks for a program (split_sums.c). */
#include "internal.h"

#include "products/dot_operands.h"

#include <lilac/tile_loops.h>

#include <math.h>

enum { AXES = 3, MOST_OPERANDS = 3, MOST_DEPTH = 24 };

#define LEAST_SLOPE 0.125 /* iterations from one program to the next */

/* Along each axis; NAN: unknown. */
typedef struct slopes {
    double along[AXES];
} slopes;

static const slopes none, unknown = {{NAN, NAN, NAN}};

static slopes slopes_of(const lilac_tile_value *value, uint32_t depth);

static slopes of_program(const lilac_tile_op *op) {
    const int64_t number = lilac_tile_program_axis(op);
    slopes made = none;
    if (number < 0 || number >= AXES) {
        return unknown;
    }
    made.along[number] = 1;
    return made;
}

/* Of minima and maxima. */
static double larger(double a, double b) {
    return a * b < 0 ? NAN : fabs(a) > fabs(b) || isnan(a) ? a : b;
}

static slopes of_several(lilac_tile_opcode code, const slopes operands[MOST_OPERANDS]) {
    slopes made;
    for (uint32_t i = 0; i < AXES; i++) {
        const double x = operands[0].along[i], y = operands[1].along[i];
        switch (code) {
        case LILAC_TILE_OP_ARITH_ADDI:
            made.along[i] = x + y;
            break;
        case LILAC_TILE_OP_ARITH_SUBI:
            made.along[i] = x - y;
            break;
        case LILAC_TILE_OP_ARITH_MINSI:
        case LILAC_TILE_OP_ARITH_MINUI:
        case LILAC_TILE_OP_ARITH_MAXSI:
        case LILAC_TILE_OP_ARITH_MAXUI:
            made.along[i] = larger(x, y);
            break;
        default:
            made.along[i] = x == 0 && y == 0 && operands[2].along[i] == 0 ? 0 : NAN;
        }
    }
    return made;
}

static slopes times(slopes a, double factor) {
    for (uint32_t i = 0; i < AXES; i++) {
        a.along[i] *= factor;
    }
    return a;
}

static slopes of_operation(const lilac_tile_op *op, uint32_t depth) {
    slopes operands[MOST_OPERANDS] = {none, none};
    int64_t constant;
    if (op->code == LILAC_TILE_OP_TT_GET_PROGRAM_ID) {
        return of_program(op);
    }
    if (op->operand_count > MOST_OPERANDS) {
        return unknown;
    }
    for (uint32_t i = 0; i < op->operand_count; i++) {
        operands[i] = slopes_of(op->operands[i].value, depth);
    }
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_EXTSI:
    case LILAC_TILE_OP_ARITH_EXTUI:
    case LILAC_TILE_OP_ARITH_TRUNCI:
    case LILAC_TILE_OP_ARITH_INDEX_CAST:
        return operands[0];
    case LILAC_TILE_OP_ARITH_MULI:
        if (lilac_tile_constant(op->operands[0].value, &constant)) {
            return times(operands[1], (double)constant);
        }
        if (lilac_tile_constant(op->operands[1].value, &constant)) {
            return times(operands[0], (double)constant);
        }
        break;
    case LILAC_TILE_OP_ARITH_DIVSI:
    case LILAC_TILE_OP_ARITH_DIVUI:
        if (lilac_tile_constant(op->operands[1].value, &constant) && constant > 0) {
            return times(operands[0], 1 / (double)constant);
        }
        break;
    default:
        break;
    }
    return of_several(op->code, operands);
}

static slopes slopes_of(const lilac_tile_value *value, uint32_t depth) {
    const lilac_tile_op *op = value->op;
    if (op == NULL) { /* a parameter, or what a loop carries */
        return value->block->parent->parent == NULL ? none : unknown;
    }
    return depth == 0 || op->region_count > 0 ? unknown : of_operation(op, depth - 1);
}

typedef struct survey {
    const lilac_tile_op *last; /* the loop that was looked at last */
    double least[AXES], most[AXES];
    bool spins;
} survey;

/* Is it an access that other programs may be waited for with? */
static bool is_signal(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TT_ATOMIC_CAS || op->code == LILAC_TILE_OP_TT_ATOMIC_RMW ||
           op->code == LILAC_TILE_OP_TT_ELEMENTWISE_INLINE_ASM ||
           lilac_tile_find_integer(&op->attributes, "isVolatile", 0) != 0;
}

static bool is_in_while(const lilac_tile_op *op) {
    while (op != NULL && op->code != LILAC_TILE_OP_SCF_WHILE) {
        op = op->parent->parent->parent;
    }
    return op != NULL;
}

/* All loops around a product. */
static void add_loops(survey *s, const lilac_tile_op *op) {
    for (; op != NULL; op = op->parent->parent->parent) {
        int64_t step;
        if (op->code != LILAC_TILE_OP_SCF_FOR || op == s->last) {
            continue;
        }
        s->last = op;
        const bool known = lilac_tile_constant(lilac_tile_step(op), &step) && step > 0;
        const slopes bounds[MOST_OPERANDS] = {slopes_of(lilac_tile_upper_bound(op), MOST_DEPTH),
                                              slopes_of(lilac_tile_lower_bound(op), MOST_DEPTH)};
        const slopes trips =
            known ? times(of_several(LILAC_TILE_OP_ARITH_SUBI, bounds), 1 / (double)step) : unknown;
        for (uint32_t i = 0; i < AXES; i++) {
            s->least[i] = isnan(trips.along[i]) ? -INFINITY : fmin(s->least[i], trips.along[i]);
            s->most[i] = isnan(trips.along[i]) ? INFINITY : fmax(s->most[i], trips.along[i]);
        }
    }
}

static void look_at(void *data, lilac_tile_op *op) {
    survey *s = data;
    s->spins |= is_signal(op) && is_in_while(op);
    if (lilac_dot_is_product(op)) {
        add_loops(s, op);
    }
}

/* 1, 2, 3: the work grows along x, y, z; negative: it shrinks; 0: neither, or along several axes. */
static int32_t growing_axis(const survey *s) {
    int32_t found = 0;
    for (int32_t i = 0; i < AXES; i++) {
        const bool grows = s->least[i] >= 0 && s->most[i] >= LEAST_SLOPE,
                   shrinks = s->most[i] <= 0 && s->least[i] <= -LEAST_SLOPE;
        const bool known = isfinite(s->least[i]) && isfinite(s->most[i]);
        if (known && (grows || shrinks)) {
            if (found != 0) {
                return 0;
            }
            found = grows ? i + 1 : -i - 1;
        }
    }
    return found;
}

bool lilac_engine_order_programs(lilac_tile_module *module, const lilac_target *target,
                                 bool *changed) {
    lilac_tile_function *kernel = module->functions;
    survey s = {.spins = false};
    *changed = false;
    if (target->keep_order || target->num_ctas > 1 || kernel == NULL || kernel->next != NULL ||
        kernel->body == NULL ||
        lilac_tile_find(&kernel->attributes, "lilac.launch_split") != NULL) {
        return true;
    }
    lilac_tile_walk(kernel->body, look_at, &s);
    const int32_t axis = s.spins ? 0 : growing_axis(&s);
    if (axis != 0) {
        lilac_tile_attribute order = {.kind = LILAC_TILE_ATTR_INTEGER,
                                      .name =
                                          lilac_intern_string(module->context, LILAC_PROGRAM_ORDER),
                                      .type = lilac_tile_scalar(module, LILAC_I32),
                                      .integer = -axis};
        lilac_tile_set_attribute(module, &kernel->attributes, &order);
        *changed = true;
    }
    return true;
}
