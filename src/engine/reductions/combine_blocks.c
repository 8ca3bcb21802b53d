/* combine_blocks: operations that combine elements of several blocks of a cluster.
 *
 * The plans of reductions, scans, gathers and histograms are those of one block. Where blocks hold parts of
 * the axis, the elements move to other blocks by a conversion, through distributed shared memory.
 *
 *     %s = "tt.reduce"(%v) {axis = 1}        %w = tt.reshape %v            axis = B × R, B in blocks
 *                                       →    %p = "tt.reduce"(%w) {axis = 2}     each block its part of R
 *                                            %q = ttg.convert_layout %p    all parts to all blocks
 *                                            %s = "tt.reduce"(%q) {axis = 1}
 *
 *     %s = "tt.scan"(%v)                →    %w = ttg.convert_layout %v    the axis undivided
 *                                            %t = "tt.scan"(%w)
 *                                            %s = ttg.convert_layout %t
 *
 * A reduction whose blocks do not have the highest bits of the axis is undivided first, too. A gather and
 * a histogram are computed by every block, from the whole tensor. The partial results of a
 * reduction are combined in the order of the blocks, by all blocks in the same way, so that scalars are
 * equal in all of them. */
#include "reductions/combine_blocks.h"

#include <lilac/collective.h>
#include <lilac/f2.h>
#include <lilac/plan.h>

#include <string.h>

enum { MOST_OPERANDS = 16 };

/* ---- layouts ------------------------------------------------------------------------------- */

static uint64_t axis_mask(const lilac_layout *layout, uint32_t axis) {
    return axis == LILAC_WHOLE_TENSOR
               ? low_bits(layout->out_bits)
               : low_bits(layout->out[axis].bits) << lilac_layout_out_start(layout, axis);
}

/* Does a block hold all elements along the axis whose other coordinates are those of one of its elements?
 * It may not although its own column keeps the axis: if a register moves along the axis and to other
 * coordinates, which only another block's column undoes, such elements are in both blocks. The columns of
 * a block that keep the other coordinates must span the axis. */
static bool holds_axis(const lilac_layout *layout, uint32_t axis) {
    const uint64_t mask = axis_mask(layout, axis);
    const int block = lilac_layout_in(layout, "block");
    lilac_f2_basis all, kept;
    uint32_t span = 0;
    lilac_f2_basis_init(&all);
    lilac_f2_basis_init(&kept);
    for (uint32_t i = 0; i < layout->in_count; i++) {
        const uint32_t start = lilac_layout_in_start(layout, i);
        for (uint32_t k = start; (int)i != block && k < start + layout->in[i].bits; k++) {
            span += lilac_f2_basis_add(&all, layout->columns[k], 0);
            span -= lilac_f2_basis_add(&kept, layout->columns[k] & ~mask, 0);
        }
    }
    return span == (uint32_t)__builtin_popcountll(mask);
}

bool lilac_blocks_divide(const lilac_layout *layout, uint32_t axis) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    const uint32_t count = lilac_layout_block_columns(columns, layout);
    bool divides = count > 0 && !holds_axis(layout, axis);
    for (uint32_t i = 0; i < count; i++) {
        divides |= (columns[i] & axis_mask(layout, axis)) != 0;
    }
    return divides;
}

bool lilac_blocks_undivided(lilac_layout *result, const lilac_layout *layout, uint32_t axis) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    const uint32_t count = lilac_layout_block_columns(columns, layout);
    lilac_reason why;
    for (uint32_t i = 0; i < count; i++) {
        columns[i] &= ~axis_mask(layout, axis);
    }
    if (!lilac_layout_change_blocks(result, layout, columns, &why)) {
        return false;
    }
    if (holds_axis(result, axis)) {
        return true;
    }
    memset(columns, 0, sizeof columns); /* every block holds all */
    return lilac_layout_change_blocks(result, layout, columns, &why);
}

/* A reduction along an axis that blocks divide. */
typedef struct block_reduction {
    bool in_parts;         /* each block reduces its part first */
    uint32_t block_bits;   /* of the axis */
    lilac_layout view;     /* with the axis as B × R, if R has bits */
    uint32_t part_bits;    /* of R */
    lilac_layout partial;  /* of what moves: partial results, or the operands */
    lilac_layout gathered; /* of the same tensor, with the axis undivided */
} block_reduction;

/* Do blocks alone have the highest bits of the axis? *bits: their number. */
static bool has_highest_bits(uint32_t *bits, const lilac_layout *layout, uint32_t axis) {
    const uint64_t mask = axis_mask(layout, axis);
    const int input = lilac_layout_in(layout, "block");
    const uint32_t start = lilac_layout_in_start(layout, (uint32_t)input);
    uint64_t taken = 0, others = 0;
    for (uint32_t i = 0; i < layout->in_bits; i++) {
        const uint64_t column = layout->columns[i];
        if (i < start || i >= start + layout->in[input].bits) {
            others |= column & mask;
        } else if ((column & mask) != 0) {
            if (!is_power_of_two(column) || (taken & column) != 0) {
                return false;
            }
            taken |= column;
        }
    }
    *bits = (uint32_t)__builtin_popcountll(taken);
    const uint32_t end = lilac_layout_out_start(layout, axis) + layout->out[axis].bits;
    return taken == low_bits(*bits) << (end - *bits) && (others & taken) == 0;
}

static bool find_view(block_reduction *r, const lilac_layout *layout, uint32_t axis) {
    uint32_t bits[LILAC_LAYOUT_MAX_DIMS + 1], rank = 0;
    r->part_bits = layout->out[axis].bits - r->block_bits;
    if (r->part_bits == 0) {
        r->partial = *layout;
        return true;
    }
    if (layout->out_count + 1U > LILAC_LAYOUT_MAX_DIMS || layout->out_count + 1U > LILAC_MAX_RANK) {
        return false;
    }
    for (uint32_t d = 0; d < layout->out_count; d++) {
        bits[rank++] = d == axis ? r->block_bits : layout->out[d].bits;
        if (d == axis) {
            bits[rank++] = r->part_bits;
        }
    }
    if (!lilac_layout_reshape(&r->view, layout, rank, bits, NULL)) {
        return false;
    }
    lilac_layout_slice(&r->partial, &r->view, axis + 1);
    return true;
}

static bool find_reduction(block_reduction *r, const lilac_layout *layout, uint32_t axis) {
    *r = (block_reduction){0};
    r->in_parts = has_highest_bits(&r->block_bits, layout, axis) && find_view(r, layout, axis) &&
                  (r->part_bits == 0 || holds_axis(&r->view, axis + 1));
    if (!r->in_parts) {
        r->part_bits = 0;
        r->partial = *layout;
    }
    return lilac_blocks_undivided(&r->gathered, &r->partial, axis);
}

/* ---- the price ----------------------------------------------------------------------------- */

static bool price_in_block(int64_t *price, const lilac_plan_region *region,
                           const lilac_layout *layout, uint32_t axis, const lilac_target *target) {
    lilac_plan_reduce plan;
    lilac_plan_price all;
    lilac_reason why;
    lilac_layout result;
    lilac_layout_slice(&result, layout, axis);
    if (!lilac_plan_reduce_init(&plan, layout, layout->out_count > 1 ? &result : NULL, axis, region,
                                target, &why) ||
        !lilac_plan_reduce_price(&all, &plan, &why)) {
        return false;
    }
    *price = (int64_t)all.cycles;
    return true;
}

bool lilac_price_of_reduction(int64_t *price, lilac_arena *arena, const lilac_tile_op *op,
                              const lilac_layout *layout, uint32_t axis,
                              const lilac_target *target) {
    lilac_plan_region region;
    block_reduction r;
    int64_t inside = 0, last;
    lilac_engine_region(&region, arena, op);
    if (!lilac_blocks_divide(layout, axis)) {
        return price_in_block(price, &region, layout, axis, target);
    }
    if (!find_reduction(&r, layout, axis) ||
        (r.part_bits > 0 && !price_in_block(&inside, &region, &r.view, axis + 1, target)) ||
        !price_in_block(&last, &region, &r.gathered, axis, target)) {
        return false;
    }
    for (uint32_t i = 0; i < region.count; i++) {
        const uint32_t bits = region.operands[i].element_bits;
        lilac_plan_conversion plan;
        lilac_reason why;
        if (!lilac_plan_conversion_init(&plan, &r.partial, &r.gathered, bits < 8 ? 8 : bits, NULL,
                                        target->arch, &why)) {
            return false;
        }
        inside += (int64_t)plan.price.cycles;
    }
    *price = inside + last;
    return true;
}

/* ---- the rewriting ------------------------------------------------------------------------- */

typedef struct combining {
    lilac_tile_module *module;
    bool failed, changed;
} combining;

static const lilac_tile_type *tensor_of(const combining *c, const lilac_tile_type *like,
                                        const lilac_layout *layout) {
    int64_t shape[LILAC_LAYOUT_MAX_DIMS];
    for (uint32_t d = 0; d < layout->out_count; d++) {
        shape[d] = INT64_C(1) << layout->out[d].bits;
    }
    return lilac_tile_tensor(c->module, lilac_tile_element(like), layout->out_count, shape,
                             lilac_tile_intern_layout(c->module, layout));
}

/* A new operation on one tensor, before `place`; the tensor itself if it has the type already. */
static lilac_tile_value *unary(const combining *c, lilac_tile_opcode code, lilac_tile_value *value,
                               const lilac_tile_type *type, lilac_tile_op *place) {
    if (value->type == type) {
        return value;
    }
    lilac_tile_op *op =
        lilac_tile_op_create(c->module, code, 1, &value, 1, &type, 0, place->location);
    op->position = place->position;
    lilac_tile_insert_before(place, op);
    return &op->results[0];
}

static lilac_tile_value *convert(const combining *c, lilac_tile_value *value,
                                 const lilac_layout *layout, lilac_tile_op *place) {
    return unary(c, LILAC_TILE_OP_TTG_CONVERT_LAYOUT, value, tensor_of(c, value->type, layout),
                 place);
}

/* Does a value of one type need no conversion to be one of the other? */
static bool is_same(const lilac_tile_type *a, const lilac_tile_type *b) {
    return a == b ||
           (a->layout != NULL && b->layout != NULL && lilac_layout_equal(a->layout, b->layout));
}

/* The users of the operation's results use those of `made`, converted where the layouts differ. */
static void replace(combining *c, lilac_tile_op *op, lilac_tile_op *made) {
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (is_same(made->results[i].type, op->results[i].type)) {
            made->results[i].type = op->results[i].type;
        }
        lilac_tile_value *value =
            unary(c, LILAC_TILE_OP_TTG_CONVERT_LAYOUT, &made->results[i], op->results[i].type, op);
        lilac_tile_replace_uses(&op->results[i], value);
    }
    lilac_tile_remove(op);
    c->changed = true;
}

static void refuse(combining *c, const lilac_tile_op *op) {
    lilac_error(
        c->module->context, lilac_tile_position(op), op->location, "unsupported-clusters",
        "'%s' combines elements of several blocks of the cluster, and no layout in which one "
        "block has all of them fits its registers",
        lilac_tile_op_info_get(op->code)->name);
    c->failed = true;
}

/* A clone of the operation, before it, that reduces values of the layout `source` along another axis. */
static lilac_tile_op *reduce_again(const combining *c, lilac_tile_op *op, lilac_tile_value **values,
                                   uint32_t axis, const lilac_layout *source) {
    lilac_tile_op *made = lilac_tile_clone(c->module, op);
    lilac_tile_attribute attribute = *lilac_tile_find(&op->attributes, "axis");
    lilac_layout result;
    attribute.integer = axis;
    lilac_tile_set_attribute(c->module, &made->attributes, &attribute);
    lilac_layout_slice(&result, source, axis);
    for (uint32_t i = 0; i < op->operand_count; i++) {
        lilac_tile_set_operand(made, i, values[i]);
        if (source->out_count > 1) {
            made->results[i].type = tensor_of(c, values[i]->type, &result);
        }
    }
    lilac_tile_insert_before(op, made);
    return made;
}

static void rewrite_reduction(combining *c, lilac_tile_op *op, uint32_t axis) {
    lilac_tile_value *values[MOST_OPERANDS];
    block_reduction r;
    if (op->operand_count > MOST_OPERANDS ||
        !find_reduction(&r, op->operands[0].value->type->layout, axis)) {
        refuse(c, op);
        return;
    }
    for (uint32_t i = 0; i < op->operand_count; i++) {
        values[i] = op->operands[i].value;
        if (r.part_bits > 0) {
            values[i] = unary(c, LILAC_TILE_OP_TT_RESHAPE, values[i],
                              tensor_of(c, values[i]->type, &r.view), op);
        }
    }
    if (r.part_bits > 0) {
        lilac_tile_op *inner = reduce_again(c, op, values, axis + 1, &r.view);
        for (uint32_t i = 0; i < op->operand_count; i++) {
            values[i] = &inner->results[i];
        }
    }
    for (uint32_t i = 0; i < op->operand_count; i++) {
        values[i] = convert(c, values[i], &r.gathered, op);
    }
    replace(c, op, reduce_again(c, op, values, axis, &r.gathered));
}

/* Gives the operands and the results layouts in which the axis, or the whole tensor, is undivided. */
static void rewrite_undivided(combining *c, lilac_tile_op *op, uint32_t axis) {
    lilac_tile_op *made = lilac_tile_clone(c->module, op);
    bool good = true;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        lilac_tile_value *value = op->operands[i].value;
        lilac_layout layout;
        if (!lilac_tile_is_tensor(value->type)) {
            continue;
        }
        good = good && lilac_blocks_undivided(&layout, value->type->layout, axis);
        if (good) {
            lilac_tile_set_operand(made, i, convert(c, value, &layout, op));
        }
    }
    for (uint32_t i = 0; good && i < op->result_count; i++) {
        const lilac_tile_type *type = op->results[i].type;
        lilac_layout layout;
        good = lilac_blocks_undivided(&layout, type->layout, axis);
        made->results[i].type = good ? tensor_of(c, type, &layout) : type;
    }
    if (!good) {
        refuse(c, op);
        return;
    }
    lilac_tile_insert_before(op, made);
    replace(c, op, made);
}

/* Do blocks hold parts of a tensor of the operation? */
static bool divides_any(const lilac_tile_op *op) {
    bool divides = false;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_tile_type *type = op->operands[i].value->type;
        divides |=
            lilac_tile_is_tensor(type) && lilac_blocks_divide(type->layout, LILAC_WHOLE_TENSOR);
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        const lilac_tile_type *type = op->results[i].type;
        divides |=
            lilac_tile_is_tensor(type) && lilac_blocks_divide(type->layout, LILAC_WHOLE_TENSOR);
    }
    return divides;
}

static void visit(combining *c, lilac_tile_op *op) {
    const uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    switch (op->code) {
    case LILAC_TILE_OP_TT_REDUCE:
        if (lilac_blocks_divide(op->operands[0].value->type->layout, axis)) {
            rewrite_reduction(c, op, axis);
        }
        break;
    case LILAC_TILE_OP_TT_SCAN:
        if (lilac_blocks_divide(op->operands[0].value->type->layout, axis)) {
            rewrite_undivided(c, op, axis);
        }
        break;
    case LILAC_TILE_OP_TT_GATHER:
    case LILAC_TILE_OP_TT_HISTOGRAM:
        if (divides_any(op)) {
            rewrite_undivided(c, op, LILAC_WHOLE_TENSOR);
        }
        break;
    default:
        break;
    }
}

static void walk(combining *c, lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first, *next; op != NULL && !c->failed; op = next) {
            next = op->next;
            for (uint32_t r = 0; r < op->region_count; r++) {
                walk(c, op->regions[r]);
            }
            visit(c, op);
        }
    }
}

bool lilac_engine_combine_blocks(lilac_tile_module *module, const lilac_target *target,
                                 bool *changed) {
    combining c = {.module = module};
    for (lilac_tile_function *function = module->functions;
         target->num_ctas > 1 && function != NULL && !c.failed; function = function->next) {
        if (function->body != NULL) {
            walk(&c, function->body);
            lilac_tile_number(function);
        }
    }
    *changed = c.changed;
    return !c.failed;
}
