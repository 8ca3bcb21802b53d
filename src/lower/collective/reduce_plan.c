/* tt.reduce: which bits of the operands' layout combine, and how each does.
 *
 * Split a coordinate into what the result keeps (K) and the axis (A). Going through the register,
 * lane and warp bits in that order, each bit either
 *
 *   is new in K            it leads to other elements of the result: nothing to combine
 *   adds nothing in K …    (after xoring earlier bits that cancel its part there)
 *     … and is new in A    its two halves are combined
 *     … and not            its two halves are copies: they must not be combined
 *
 * A lane bit that combines is a butterfly's step, unless only a register bit cancels its part in
 * K: then it meets the others in shared memory, as a warp bit does. Where nothing goes there, the
 * result's registers are a renaming of the groups, or a movement plan brings them to their
 * threads. */
#include "reduce.h"

#include <string.h>

uint64_t lilac_reduce_kept(const lilac_reduce_plan *p, uint64_t coordinate) {
    uint32_t start = p->in->start[p->axis], bits = p->in->bits[p->axis];
    uint64_t below = coordinate & ((1ULL << start) - 1);
    uint64_t above = start + bits >= 64 ? 0 : coordinate >> (start + bits);
    return below | above << start;
}

static uint64_t along_axis(const lilac_reduce_plan *p, uint64_t coordinate) {
    uint32_t start = p->in->start[p->axis], bits = p->in->bits[p->axis];
    return coordinate >> start & ((1ULL << bits) - 1);
}

typedef enum role { KEEPS, COMBINES, COPIES } role;

/* What a bit with this column does. *tag comes with the bit's own mark and leaves with the marks of
 * all bits that make up the direction. */
static role classify(const lilac_reduce_plan *p, lilac_f2_basis *keeps, lilac_f2_basis *combines,
                     uint64_t column, uint64_t *tag) {
    const uint32_t axis_bits = p->in->bits[p->axis];
    uint64_t key = lilac_reduce_kept(p, column) << axis_bits | along_axis(p, column), others;
    uint64_t rest = lilac_f2_basis_reduce(keeps, key, &others);
    if (rest >> axis_bits != 0) {
        (void)lilac_f2_basis_add(keeps, key, *tag);
        return KEEPS;
    }
    *tag ^= others;
    return lilac_f2_basis_add(combines, rest, 0) ? COMBINES : COPIES;
}

#define THREAD_MARK 32 /* marks of thread bits stand above those of register bits */

static bool plan_bits(lilac_lowering *l, lilac_reduce_plan *p) {
    lilac_f2_basis keeps, combines;
    lilac_f2_basis_init(&keeps);
    lilac_f2_basis_init(&combines);
    for (uint32_t i = 0; i < p->in->register_bits; i++) {
        uint64_t tag = 1ULL << i;
        switch (classify(p, &keeps, &combines, p->in->registers[i], &tag)) {
        case KEEPS:
            p->group_register[p->group_bits++] = i;
            break;
        case COMBINES:
            p->fold_masks[p->fold_bits++] = (uint32_t)tag;
            break;
        default:
            break;
        }
    }
    for (uint32_t i = 0; i < p->in->thread_bits; i++) {
        uint64_t tag = 1ULL << (THREAD_MARK + i);
        role what = classify(p, &keeps, &combines, p->in->threads[i], &tag);
        bool needs_registers = (tag & ((1ULL << THREAD_MARK) - 1)) != 0;
        bool shuffles = i < p->in->lane_bits && !needs_registers;
        if (what == COMBINES && shuffles) {
            p->lane_pivots[p->lane_steps] = i;
            p->lane_masks[p->lane_steps++] = (uint32_t)(tag >> THREAD_MARK);
        } else if (what == COMBINES) {
            p->slot_thread[p->slot_bits++] = i;
        }
        if (what == COPIES || (what == COMBINES && shuffles)) {
            p->idle_threads |= 1U << i;
        }
    }
    for (uint32_t i = 0; i < p->in->block_bits; i++) {
        if (along_axis(p, p->in->blocks[i]) != 0) {
            return lilac_lower_unsupported(l, "the axis is spread over the blocks of a cluster");
        }
    }
    return true;
}

void lilac_reduce_view(const lilac_reduce_plan *p, lilac_lower_view *view) {
    memset(view, 0, sizeof *view);
    view->register_bits = p->group_bits;
    view->count = 1U << p->group_bits;
    view->lane_bits = p->in->lane_bits;
    view->thread_bits = p->in->thread_bits;
    view->block_bits = p->in->block_bits;
    view->layout = p->out->layout;
    view->rank = p->out->rank;
    memcpy(view->start, p->out->start, sizeof view->start);
    memcpy(view->bits, p->out->bits, sizeof view->bits);
    for (uint32_t i = 0; i < p->group_bits; i++) {
        view->registers[i] = lilac_reduce_kept(p, p->in->registers[p->group_register[i]]);
    }
    for (uint32_t i = 0; i < view->thread_bits; i++) {
        view->threads[i] = lilac_reduce_kept(p, p->in->threads[i]);
    }
    for (uint32_t i = 0; i < view->block_bits; i++) {
        view->blocks[i] = lilac_reduce_kept(p, p->in->blocks[i]);
    }
}

bool lilac_reduce_make_plan(lilac_lowering *l, const lilac_tile_op *op, lilac_reduce_plan *p) {
    memset(p, 0, sizeof *p);
    const lilac_tile_type *type = lilac_tile_operand(op, 0)->type;
    p->in = lilac_lower_view_of(l, type);
    p->operands = op->operand_count;
    int64_t axis = lilac_tile_find_integer(&op->attributes, "axis", 0);
    if (p->in == NULL) {
        return false;
    }
    if (axis < 0 || axis >= p->in->rank || op->result_count != p->operands) {
        return lilac_lower_unsupported(l, "its axis or results do not fit");
    }
    p->axis = (uint32_t)axis;
    p->keep_bits = p->in->layout->out_bits - p->in->bits[p->axis];
    if (!plan_bits(l, p)) {
        return false;
    }
    p->shared = p->slot_bits > 0;
    uint32_t size = 1;
    for (uint32_t i = 0; i < p->operands; i++) {
        lilac_simt_type element;
        if (!lilac_lower_type(l, lilac_tile_operand(op, i)->type, &element)) {
            return false;
        }
        uint32_t bytes = lilac_lower_memory_bytes(element);
        size = bytes > size ? bytes : size;
    }
    if (!lilac_tile_is_tensor(op->results[0].type)) {
        if (p->shared) {
            lilac_reduce_plan_shared(l, p, size);
        }
        return true;
    }
    p->out = lilac_lower_view_of(l, op->results[0].type);
    if (p->out == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < p->in->block_bits; i++) {
        if (lilac_reduce_kept(p, p->in->blocks[i]) != p->out->blocks[i]) {
            return lilac_lower_refuse(l, "layout-conversion",
                                      "the result of a reduction stands in another block");
        }
    }
    if (p->shared) {
        lilac_reduce_plan_shared(l, p, size);
    } else {
        lilac_lower_view reduced;
        lilac_lower_map map;
        lilac_reduce_view(p, &reduced);
        lilac_lower_map_identity(&map, p->keep_bits);
        p->moves = !lilac_lower_rename(l, &reduced, p->out, &map, &p->source);
    }
    return true;
}
