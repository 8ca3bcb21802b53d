/* count_programs: how many programs a launch has, as far as the masks of stores say.
 *
 *     %b = muli %program, 64
 *     %m = cmpi slt, splat(%b) + range(0, 64), 51200        program < 51200 / 64
 *     tt.store %p, %v, %m
 *
 * A program that stores nothing is not launched, so its number is below the bound: 800 programs. Kernels that a compiler
 * writes for one shape (torch.compile) have such bounds, those that take sizes as arguments have none.
 *
 * A number of programs is the product over the axes that the kernel asks the numbers of; each must be bounded by the
 * masks of all stores and atomic operations. Two axes can be one: y + z · (programs along y). Of several bounds the largest
 * counts. It is a hint for the number of resident blocks (src/simt/scheduling/opt_occupancy.c): every launch is right. */
#include "internal.h"

#include <string.h>

enum { AXES = 3, MOST_DEPTH = 24 };

#define MOST_PROGRAMS (INT64_C(1) << 31)

/* The indices of a program's elements. The least index is `step` times the number of the program along the axes. */
typedef struct place {
    uint32_t axes; /* bits 0 to 2: x, y, z; 0: the integers are no such indices */
    int64_t step;
} place;

static uint32_t axis_of(const lilac_tile_op *op) {
    const int64_t number = lilac_tile_program_axis(op);
    return number >= 0 && number < AXES ? UINT32_C(1) << number : 0;
}

static const lilac_tile_op *made_by(const lilac_tile_value *value, lilac_tile_opcode code) {
    return value->op != NULL && value->op->code == code ? value->op : NULL;
}

static bool is_view(lilac_tile_opcode code) {
    return code == LILAC_TILE_OP_TT_SPLAT || code == LILAC_TILE_OP_TT_BROADCAST ||
           code == LILAC_TILE_OP_TT_EXPAND_DIMS || code == LILAC_TILE_OP_TT_RESHAPE ||
           code == LILAC_TILE_OP_TT_TRANS;
}

/* Are the integers 0, 1, 2, …? */
static bool is_range(const lilac_tile_value *value) {
    while (value->op != NULL && is_view(value->op->code)) {
        value = value->op->operands[0].value;
    }
    const lilac_tile_op *range = made_by(value, LILAC_TILE_OP_TT_MAKE_RANGE);
    return range != NULL && lilac_tile_find_integer(&range->attributes, "start", 0) == 0;
}

/* The axis of z in z · (programs along the axis `fast`); 0: the value is something else. */
static uint32_t slow_axis(const lilac_tile_value *value, uint32_t fast) {
    const lilac_tile_op *product = made_by(value, LILAC_TILE_OP_ARITH_MULI);
    for (uint32_t i = 0; product != NULL && i < 2; i++) {
        const lilac_tile_op *id =
            made_by(product->operands[i].value, LILAC_TILE_OP_TT_GET_PROGRAM_ID);
        const lilac_tile_op *count =
            made_by(product->operands[1 - i].value, LILAC_TILE_OP_TT_GET_NUM_PROGRAMS);
        if (id != NULL && count != NULL && axis_of(count) == fast) {
            return axis_of(id);
        }
    }
    return 0;
}

static place place_of(const lilac_tile_value *value, uint32_t depth);

static place place_of_sum(const lilac_tile_op *op, uint32_t depth) {
    for (uint32_t i = 0; i < 2; i++) {
        place p = place_of(op->operands[i].value, depth);
        const lilac_tile_value *other = op->operands[1 - i].value;
        const uint32_t slow = p.axes != 0 && p.step == 1 ? slow_axis(other, p.axes) : 0;
        if (p.axes != 0 && (is_range(other) || slow != 0)) {
            p.axes |= slow;
            return p;
        }
    }
    return (place){0, 0};
}

static place place_of(const lilac_tile_value *value, uint32_t depth) {
    const lilac_tile_op *op = value->op;
    int64_t factor = 1;
    if (op == NULL || depth == 0) {
        return (place){0, 0};
    }
    if (is_view(op->code)) {
        return place_of(op->operands[0].value, depth - 1);
    }
    switch (op->code) {
    case LILAC_TILE_OP_TT_GET_PROGRAM_ID:
        return (place){axis_of(op), 1};
    case LILAC_TILE_OP_ARITH_ADDI:
        return place_of_sum(op, depth - 1);
    case LILAC_TILE_OP_ARITH_MULI:
        if (lilac_tile_constant(op->operands[1].value, &factor) && factor > 0 &&
            factor < MOST_PROGRAMS) {
            place p = place_of(op->operands[0].value, depth - 1);
            p.step = p.step < MOST_PROGRAMS ? p.step * factor : 0;
            p.axes = p.step > 0 ? p.axes : 0;
            return p;
        }
        return (place){0, 0};
    default:
        return (place){0, 0};
    }
}

typedef struct counting {
    uint32_t asked;              /* axes of whose programs the kernel asks the number */
    uint32_t unbounded;          /* along which some store has no bound */
    uint32_t bounded;            /* along which the store that is looked at has one */
    int64_t programs[1 << AXES]; /* by the axes of a place */
} counting;

/* place < bound, or bound > place: the programs with an element below the bound. */
static void add_comparison(counting *c, const lilac_tile_op *op) {
    const char *predicate = lilac_tile_find_text(&op->attributes, "predicate");
    int64_t bound;
    if (predicate == NULL || strlen(predicate) != 3 ||
        (predicate[1] != 'l' && predicate[1] != 'g')) {
        return;
    }
    const bool less = predicate[1] == 'l', equal = predicate[2] == 'e';
    const place p = place_of(op->operands[less ? 0 : 1].value, MOST_DEPTH);
    if (p.axes == 0 || !lilac_tile_constant(op->operands[less ? 1 : 0].value, &bound) ||
        bound <= 0 || bound >= MOST_PROGRAMS) {
        return;
    }
    const int64_t programs = (bound - !equal) / p.step + 1;
    c->programs[p.axes] = max_i64(c->programs[p.axes], programs);
    c->bounded |= p.axes;
}

static void add_mask(counting *c, const lilac_tile_value *mask, uint32_t depth) {
    const lilac_tile_op *op = mask->op;
    if (op == NULL || depth == 0) {
        return;
    }
    if (op->code == LILAC_TILE_OP_ARITH_CMPI) {
        add_comparison(c, op);
    } else if (op->code == LILAC_TILE_OP_ARITH_ANDI || is_view(op->code)) {
        for (uint32_t i = 0; i < op->operand_count; i++) {
            add_mask(c, op->operands[i].value, depth - 1);
        }
    }
}

/* Does the operation write global memory that an operand names? */
static bool stores(const lilac_tile_op *op) {
    bool any = false;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_tile_effect *effect = lilac_tile_operand_effect(op, i);
        any |= effect != NULL && (effect->access & LILAC_TILE_WRITES) != 0 &&
               (effect->resources & LILAC_TILE_GLOBAL_MEMORY) != 0;
    }
    return any;
}

static void look_at(void *data, lilac_tile_op *op) {
    counting *c = data;
    if (op->code == LILAC_TILE_OP_TT_GET_PROGRAM_ID) {
        c->asked |= axis_of(op);
    }
    if (stores(op)) {
        const bool has_mask =
            op->code == LILAC_TILE_OP_TT_STORE || op->code == LILAC_TILE_OP_TT_ATOMIC_RMW;
        c->bounded = 0;
        if (has_mask && op->operand_count > 2) {
            add_mask(c, op->operands[2].value, MOST_DEPTH);
        }
        c->unbounded |= ~c->bounded;
    }
}

/* The product over disjoint sets of axes that cover those asked for; 0: there is none. */
static int64_t programs_of(const counting *c) {
    int64_t product = 1;
    uint32_t covered = 0;
    for (uint32_t axes = (1 << AXES) - 1; axes > 0; axes--) { /* each set before its subsets */
        const bool is_new = c->programs[axes] > 0 && (axes & covered) == 0;
        covered |= is_new ? axes : 0;
        product *= is_new ? c->programs[axes] : 1;
        if (product >= MOST_PROGRAMS) {
            return 0;
        }
    }
    return c->asked != 0 && (c->asked & (~covered | c->unbounded)) == 0 ? product : 0;
}

bool lilac_engine_count_programs(lilac_tile_module *module, const lilac_target *target,
                                 bool *changed) {
    lilac_tile_function *kernel = module->functions;
    counting c = {0};
    *changed = false;
    if (target->num_ctas > 1 || kernel == NULL || kernel->next != NULL || kernel->body == NULL) {
        return true;
    }
    lilac_tile_walk(kernel->body, look_at, &c);
    const int64_t programs = programs_of(&c);
    if (programs > 0) {
        const lilac_tile_attribute count = {
            .kind = LILAC_TILE_ATTR_INTEGER,
            .name = lilac_intern_string(module->context, LILAC_PROGRAMS),
            .type = lilac_tile_scalar(module, LILAC_I32),
            .integer = programs};
        lilac_tile_set_attribute(module, &kernel->attributes, &count);
        *changed = true;
    }
    return true;
}
