/* accumulations: which reductions a loop accumulates, and how the layout of their operands divides the axis.
 *
 *   follow         reduction ─▶ shape operations, conversions ─▶ update ─▶ what the loop yields
 *                  carried value ──▶ (product with a factor) ──▶
 *   divide         the bits of the axis, the highest first, in runs: threads T, registers R
 *   find_layouts   the layout with the axis as two dimensions, T before R, and the one without R
 */
#include "reductions/accumulations.h"

#include <lilac/tile_loops.h>

#include <math.h>

/* ---- operations ------------------------------------------------------------------------- */

static int64_t float_bits(const lilac_tile_type *type, double value) {
    return (int64_t)lilac_scalar_encode(type->scalar, value, LILAC_ROUND_NEAREST_EVEN, false);
}

/* The bits of e with e ⊕ x = x for all x. The larger of a NaN and x is x for arith.maxnumf. False: the
 * operation is not associative and commutative, or has no such element. */
static bool neutral_of(lilac_tile_opcode code, const lilac_tile_type *type, int64_t *bits) {
    const bool is_float = type->kind == LILAC_TILE_SCALAR && lilac_scalar_is_float(type->scalar);
    const uint32_t width = type->kind == LILAC_TILE_SCALAR ? lilac_scalar_bits(type->scalar) : 0;
    if (width == 0 || width > 64 || (is_float && width < 16)) {
        return false;
    }
    const int64_t least = (int64_t)(~UINT64_C(0) << (width - 1));
    switch (code) {
    case LILAC_TILE_OP_ARITH_ADDF:
        *bits = float_bits(type, -0.0);
        return true;
    case LILAC_TILE_OP_ARITH_MULF:
        *bits = float_bits(type, 1);
        return true;
    case LILAC_TILE_OP_ARITH_MAXIMUMF:
        *bits = float_bits(type, -INFINITY);
        return true;
    case LILAC_TILE_OP_ARITH_MINIMUMF:
        *bits = float_bits(type, INFINITY);
        return true;
    case LILAC_TILE_OP_ARITH_MAXNUMF:
    case LILAC_TILE_OP_ARITH_MINNUMF:
        *bits = float_bits(type, NAN);
        return true;
    case LILAC_TILE_OP_ARITH_ADDI:
    case LILAC_TILE_OP_ARITH_ORI:
    case LILAC_TILE_OP_ARITH_XORI:
    case LILAC_TILE_OP_ARITH_MAXUI:
        *bits = 0;
        return true;
    case LILAC_TILE_OP_ARITH_MULI:
        *bits = 1;
        return true;
    case LILAC_TILE_OP_ARITH_ANDI:
    case LILAC_TILE_OP_ARITH_MINUI:
        *bits = -1;
        return true;
    case LILAC_TILE_OP_ARITH_MAXSI:
        *bits = least;
        return true;
    case LILAC_TILE_OP_ARITH_MINSI:
        *bits = ~least;
        return true;
    default:
        return false;
    }
}

static lilac_tile_use *only_use(const lilac_tile_value *value) {
    return value->uses != NULL && value->uses->next == NULL ? value->uses : NULL;
}

/* The operation that combines two elements of operand i; NONE: the region is not one such operation for
 * each operand. */
static lilac_tile_opcode combiner_of(const lilac_tile_op *reduce, uint32_t i) {
    const lilac_tile_block *block = reduce->regions[0]->first;
    const lilac_tile_op *end = block != NULL && block->next == NULL ? block->last : NULL;
    const uint32_t count = reduce->operand_count;
    if (end == NULL || end->operand_count != count || block->argument_count != 2 * count) {
        return LILAC_TILE_OP_NONE;
    }
    const lilac_tile_op *op = end->operands[i].value->op;
    if (op == NULL || op->parent != block || op->operand_count != 2) {
        return LILAC_TILE_OP_NONE;
    }
    const lilac_tile_value *a = op->operands[0].value, *b = op->operands[1].value;
    const lilac_tile_value *left = block->arguments[i], *right = block->arguments[i + count];
    return (a == left && b == right) || (a == right && b == left) ? op->code : LILAC_TILE_OP_NONE;
}

/* Does the operation only rearrange the elements of its operand? */
static bool rearranges(const lilac_tile_op *op) {
    return op->operand_count == 1 && op->result_count == 1 && op->region_count == 0 &&
           (op->code == LILAC_TILE_OP_TTG_CONVERT_LAYOUT || op->code == LILAC_TILE_OP_TT_SPLAT ||
            (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_SHAPE) != 0);
}

/* The iteration argument that the operand is, if its only use is this one. */
static bool is_accumulator(const lilac_tile_op *loop, const lilac_tile_value *value,
                           uint32_t *slot) {
    for (uint32_t i = 0; i < lilac_tile_carried_count(loop); i++) {
        if (lilac_tile_iteration_argument(loop, i) == value) {
            *slot = i;
            return only_use(value) != NULL;
        }
    }
    return false;
}

/* Finds the carried value that the update adds to: its operand, or, of sums that need no other operation,
 * a factor of it. f32 and f64 alone, so that the division of an initial value by a power of two is exact. */
static bool find_accumulator(accumulation *result, const lilac_tile_op *loop,
                             const lilac_tile_op *reduce) {
    const lilac_tile_value *value = result->update->operands[result->side].value;
    if (is_accumulator(loop, value, &result->slot)) {
        return true;
    }
    lilac_tile_op *scale = value->op;
    if (scale == NULL || scale->code != LILAC_TILE_OP_ARITH_MULF ||
        scale->parent != reduce->parent || only_use(value) == NULL || result->moved_count > 0 ||
        result->update->code != LILAC_TILE_OP_ARITH_ADDF ||
        lilac_tile_element_bits(value->type) < 32) {
        return false;
    }
    result->scale = scale;
    for (result->scale_side = 0; result->scale_side < 2; result->scale_side++) {
        if (is_accumulator(loop, scale->operands[result->scale_side].value, &result->slot)) {
            return true;
        }
    }
    return false;
}

/* Follows result i of the reduction to what the loop carries. */
static bool follow(accumulation *result, const lilac_tile_op *loop, const lilac_tile_op *reduce,
                   uint32_t i) {
    const lilac_tile_opcode code = combiner_of(reduce, i);
    const lilac_tile_value *value = &reduce->results[i];
    if (code == LILAC_TILE_OP_NONE ||
        !neutral_of(code, lilac_tile_element(value->type), &result->neutral)) {
        return false;
    }
    for (;;) {
        const lilac_tile_use *use = only_use(value);
        if (use == NULL || use->op->parent != reduce->parent) {
            return false;
        }
        if (use->op->code == code) {
            result->update = use->op;
            result->side = 1 - use->index;
            break;
        }
        if (!rearranges(use->op) || result->moved_count == MOST_MOVED) {
            return false;
        }
        result->moved[result->moved_count++] = use->op;
        value = &use->op->results[0];
    }
    const lilac_tile_value *sum = &result->update->results[0];
    return find_accumulator(result, loop, reduce) && only_use(sum) != NULL &&
           lilac_tile_next(loop, result->slot) == sum;
}

/* Are all results of the reduction accumulators of the loop? */
static bool follow_all(accumulation *of, const lilac_tile_op *loop, const lilac_tile_op *reduce) {
    if (reduce->operand_count == 0 || reduce->operand_count > MOST_REDUCED ||
        reduce->operand_count != reduce->result_count) {
        return false;
    }
    for (uint32_t i = 0; i < reduce->operand_count; i++) {
        if (!follow(&of[i], loop, reduce, i)) {
            return false;
        }
    }
    return true;
}

const lilac_tile_op *lilac_split_loop(const lilac_tile_op *reduce) {
    accumulation of[MOST_REDUCED] = {0};
    const lilac_tile_op *loop = reduce->parent->parent->parent;
    const bool is_loop = loop != NULL && loop->code == LILAC_TILE_OP_SCF_FOR;
    return is_loop && follow_all(of, loop, reduce) ? loop : NULL;
}

/* ---- layouts ---------------------------------------------------------------------------- */

/* Divides the axis into runs. False: a bit of it is no bit of one input alone. */
static bool divide(axis_split *split, const lilac_layout *layout, uint32_t axis) {
    const uint32_t bits = layout->out[axis].bits;
    const uint32_t start = lilac_layout_out_start(layout, axis);
    const uint64_t mask = ((UINT64_C(1) << bits) - 1) << start;
    uint64_t owned = 0, in_threads = 0;
    for (uint32_t i = 0; i < layout->in_bits; i++) {
        const uint64_t column = layout->columns[i];
        if ((column & mask) == 0) {
            continue;
        }
        if ((column & (column - 1)) != 0 || (owned & column) != 0) {
            return false;
        }
        owned |= column;
        in_threads |= i >= layout->in[0].bits ? column : 0;
    }
    for (uint32_t bit = bits; bit-- > 0;) {
        const bool thread = (in_threads >> (start + bit) & 1) != 0;
        const bool same = split->runs > 0 && split->in_threads[split->runs - 1] == thread;
        split->in_threads[split->runs] = thread;
        split->runs += !same;
        split->bits[split->runs - 1] = same ? split->bits[split->runs - 1] + 1 : 1;
        split->thread_bits += thread;
        split->register_bits += !thread;
    }
    return owned == mask && split->thread_bits > 0;
}

uint32_t lilac_accumulation_divided(const accumulation_candidate *c, const lilac_layout *layout,
                                    uint32_t *bits) {
    uint32_t rank = 0;
    for (uint32_t d = 0; d < layout->out_count; d++) {
        if (d != c->axis) {
            bits[rank++] = layout->out[d].bits;
            continue;
        }
        memcpy(bits + rank, c->split.bits, c->split.runs * sizeof *bits);
        rank += c->split.runs;
    }
    return rank;
}

bool lilac_accumulation_order(const accumulation_candidate *c, uint32_t rank, uint32_t *order) {
    bool moves = false;
    uint32_t at = 0;
    for (uint32_t d = 0; d < c->axis; d++) {
        order[at++] = d;
    }
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t run = 0; run < c->split.runs; run++) {
            if (c->split.in_threads[run] == (pass == 0)) {
                moves |= at != c->axis + run;
                order[at++] = c->axis + run;
            }
        }
    }
    for (; at < rank; at++) {
        order[at] = at;
    }
    return moves;
}

/* The dimensions with the axis as T × R, or T alone. */
static uint32_t viewed_bits(const accumulation_candidate *c, const lilac_layout *layout,
                            uint32_t *bits) {
    uint32_t rank = 0;
    for (uint32_t d = 0; d < layout->out_count; d++) {
        bits[rank++] = d == c->axis ? c->split.thread_bits : layout->out[d].bits;
        if (d == c->axis && c->split.register_bits > 0) {
            bits[rank++] = c->split.register_bits;
        }
    }
    return rank;
}

/* Computes the layouts of the view and of the accumulators. */
static bool find_layouts(accumulation_candidate *c, const lilac_layout *layout) {
    uint32_t bits[2 * LILAC_LAYOUT_MAX_BITS], order[2 * LILAC_LAYOUT_MAX_BITS];
    if (c->split.register_bits == 0) {
        c->view = c->partial = *layout;
        return true;
    }
    if (layout->out_count + c->split.runs > LILAC_LAYOUT_MAX_DIMS ||
        layout->out_count + c->split.runs > LILAC_MAX_RANK) {
        return false;
    }
    const uint32_t rank = lilac_accumulation_divided(c, layout, bits);
    if (!lilac_layout_reshape(&c->view, layout, rank, bits, NULL)) {
        return false;
    }
    if (lilac_accumulation_order(c, rank, order)) {
        lilac_layout_transpose(&c->view, &c->view, order);
    }
    const uint32_t viewed = viewed_bits(c, layout, bits);
    if (!lilac_layout_reshape(&c->view, &c->view, viewed, bits, NULL)) {
        return false;
    }
    lilac_layout_slice(&c->partial, &c->view, c->axis + 1);
    return true;
}

bool lilac_split_layout(lilac_layout *view, const lilac_layout *layout, uint32_t axis,
                        uint32_t *register_bits) {
    accumulation_candidate c = {.axis = axis};
    if (axis >= layout->out_count || !divide(&c.split, layout, axis) || !find_layouts(&c, layout)) {
        return false;
    }
    *view = c.view;
    *register_bits = c.split.register_bits;
    return true;
}

/* Do all threads that have a part of an element's sum have its factor? */
static bool check_scales(const accumulation_candidate *c) {
    lilac_layout slice;
    lilac_layout_slice(&slice, &c->partial, c->axis);
    for (uint32_t i = 0; i < c->reduce->operand_count; i++) {
        const accumulation *of = &c->of[i];
        const lilac_tile_type *type = of->update->results[0].type;
        if (of->scale != NULL && lilac_tile_is_tensor(type) &&
            (type->layout == NULL || !lilac_layout_equal(type->layout, &slice))) {
            return false;
        }
    }
    return true;
}

bool lilac_accumulation_find(accumulation_candidate *c) {
    const lilac_tile_op *reduce = c->reduce;
    if (!follow_all(c->of, c->loop, reduce)) {
        return false;
    }
    const lilac_layout *layout = reduce->operands[0].value->type->layout;
    for (uint32_t i = 0; i < reduce->operand_count; i++) {
        if (layout == NULL || reduce->operands[i].value->type->layout != layout) {
            return false;
        }
    }
    c->axis = (uint32_t)lilac_tile_find_integer(&reduce->attributes, "axis", 0);
    return c->axis < layout->out_count && divide(&c->split, layout, c->axis) &&
           find_layouts(c, layout) && check_scales(c);
}
