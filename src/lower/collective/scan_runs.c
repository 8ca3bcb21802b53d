/* tt.scan: the scans of runs of registers and of lanes.
 *
 *   axis bits    r r l l l r w        runs: 2 registers, 3 lanes, 1 register, memory from w on
 *
 * The items of a run are numbered by the register bits that no run below it has used. Those that
 * the run itself uses number an item within its block, the others number the block. A run is
 * scanned first without the prefix of its blocks, which follows on the way down:
 *
 *   scan_…     scans each block separately; its last item is its total
 *   finish_…   combines the prefix before the block with each item
 *   before_…   computes the prefix before each item
 *
 * Reversed scans execute the same steps with all bits of positions inverted. */
#include "collective/region.h"
#include "coordinates.h"
#include "scan.h"

#include <string.h>

/* ---- runs --------------------------------------------------------------------------------- */

uint32_t lilac_scan_item_bit(const lilac_scan_run *r, uint32_t where) {
    return (uint32_t)__builtin_popcount(r->items & ((1U << where) - 1));
}

uint32_t lilac_scan_item_of(const lilac_scan *s, const lilac_scan_run *r, uint32_t position) {
    uint32_t item = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        if (!(r->in_threads >> i & 1)) {
            item |= ((position >> i & 1) ^ s->plan->region.reverse)
                    << lilac_scan_item_bit(r, r->place[i]);
        }
    }
    return item;
}

uint32_t lilac_scan_run_items(const lilac_scan_run *r) {
    uint32_t mask = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        mask |= r->in_threads >> i & 1 ? 0 : 1U << lilac_scan_item_bit(r, r->place[i]);
    }
    return mask;
}

uint32_t lilac_scan_block_of(const lilac_scan_run *r, uint32_t item) {
    uint32_t mask = lilac_scan_run_items(r), result = 0, next = 0;
    for (uint32_t i = 0; item >> i != 0; i++) {
        if (!(mask >> i & 1)) {
            result |= (item >> i & 1) << next++;
        }
    }
    return result;
}

uint32_t lilac_scan_thread_mask(const lilac_scan_run *r) {
    uint32_t mask = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        mask |= r->in_threads >> i & 1 ? 1U << r->place[i] : 0;
    }
    return mask;
}

/* ---- building ----------------------------------------------------------------------------- */

lilac_simt_value *lilac_scan_elements(const lilac_scan *s, uint32_t count) {
    return lilac_arena_array(s->l->arena, lilac_simt_value, (size_t)count * s->operands);
}

lilac_simt_value lilac_scan_constant(const lilac_scan *s, uint32_t number) {
    return lilac_simt_constant(&s->l->builder, LILAC_SIMT_I32, number);
}

lilac_simt_value lilac_scan_bits_of(const lilac_scan *s, lilac_simt_opcode code, lilac_simt_value a,
                                    uint32_t mask) {
    return lilac_simt_op2(&s->l->builder, code, LILAC_SIMT_I32, a, lilac_scan_constant(s, mask));
}

lilac_simt_value lilac_scan_index_of(const lilac_scan *s, lilac_simt_opcode code) {
    if (code == LILAC_SIMT_OP_THREAD) {
        return lilac_simt_thread(&s->l->builder);
    }
    lilac_simt_instruction like = {.code = (uint16_t)code};
    lilac_simt_type type = LILAC_SIMT_I32;
    return lilac_simt_build(&s->l->builder, &like, 0, NULL, 1, &type);
}

lilac_simt_value lilac_scan_is_later(const lilac_scan *s, uint32_t mask) {
    lilac_simt_value bits = lilac_scan_bits_of(s, LILAC_SIMT_OP_AND,
                                               lilac_scan_index_of(s, LILAC_SIMT_OP_THREAD), mask);
    return lilac_simt_compare_values(&s->l->builder, LILAC_SIMT_NE, bits,
                                     lilac_scan_constant(s, s->plan->region.reverse ? mask : 0));
}

/* All bits of a lane's number: 31 on devices with 32 lanes a warp, 63 on those with 64. */
static uint32_t lane_bits(const lilac_scan *s) {
    return s->l->target->arch->warp_size - 1;
}

lilac_simt_value lilac_scan_last_lane(const lilac_scan *s, lilac_simt_value lane, uint32_t mask) {
    return s->plan->region.reverse
               ? lilac_scan_bits_of(s, LILAC_SIMT_OP_AND, lane, lane_bits(s) & ~mask)
               : lilac_scan_bits_of(s, LILAC_SIMT_OP_OR, lane, mask);
}

static lilac_simt_value first_lane(const lilac_scan *s, lilac_simt_value lane, uint32_t mask) {
    return s->plan->region.reverse
               ? lilac_scan_bits_of(s, LILAC_SIMT_OP_OR, lane, mask)
               : lilac_scan_bits_of(s, LILAC_SIMT_OP_AND, lane, lane_bits(s) & ~mask);
}

bool lilac_scan_put_before(const lilac_scan *s, const lilac_simt_value *before,
                           lilac_simt_value valid, const lilac_simt_value *own,
                           lilac_simt_value *to) {
    lilac_simt_value mine[2 * LILAC_MAX_RANK], *list = mine;
    if (s->operands > 2 * LILAC_MAX_RANK) {
        list = lilac_scan_elements(s, 1);
    }
    memcpy(list, own, s->operands * sizeof *own);
    if (valid != LILAC_SCAN_NEVER) {
        lilac_simt_value *both = lilac_scan_elements(s, 1);
        memcpy(both, before, s->operands * sizeof *both);
        if (!lilac_lower_combine(s->l, s->op, both, list)) {
            return false;
        }
        for (uint32_t i = 0; i < s->operands; i++) {
            list[i] = valid == LILAC_SCAN_ALWAYS
                          ? both[i]
                          : lilac_lower_select(s->l, valid, both[i], list[i]);
        }
    }
    memcpy(to, list, s->operands * sizeof *to);
    return true;
}

void lilac_scan_shuffle_all(const lilac_scan *s, lilac_simt_shuffle kind, lilac_simt_value lane,
                            uint32_t count, const lilac_simt_value *from, lilac_simt_value *to) {
    for (uint32_t i = 0; i < s->operands; i++) {
        lilac_lower_shuffle_row(s->l, kind, lane, count, s->operands, from + i, to + i);
    }
}

/* ---- registers ---------------------------------------------------------------------------- */

/* The item at a position of the block that `item` is in. */
static uint32_t item_at(const lilac_scan *s, const lilac_scan_run *r, uint32_t item,
                        uint32_t position) {
    return (item & ~lilac_scan_run_items(r)) | lilac_scan_item_of(s, r, position);
}

bool lilac_scan_registers(const lilac_scan *s, const lilac_scan_run *r, lilac_scan_level *at) {
    uint32_t n = s->operands;
    for (uint32_t item = 0; item < at->count; item++) {
        if (item != item_at(s, r, item, 0)) {
            continue;
        }
        for (uint32_t i = 1; i < 1U << r->count; i++) {
            lilac_simt_value *own = at->scanned + (size_t)item_at(s, r, item, i) * n;
            const lilac_simt_value *before = at->scanned + (size_t)item_at(s, r, item, i - 1) * n;
            if (!lilac_scan_put_before(s, before, LILAC_SCAN_ALWAYS, own, own)) {
                return false;
            }
        }
    }
    return true;
}

bool lilac_scan_finish_registers(const lilac_scan *s, const lilac_scan_run *r, lilac_scan_level *at,
                                 const lilac_scan_prefix *before) {
    uint32_t n = s->operands;
    for (uint32_t item = 0; item < at->count; item++) {
        if (item != item_at(s, r, item, 0)) {
            continue;
        }
        uint32_t block = lilac_scan_block_of(r, item);
        lilac_simt_value valid = before->valid[block];
        if (valid == LILAC_SCAN_NEVER) {
            continue;
        }
        const lilac_simt_value *front = before->values + (size_t)block * n;
        for (uint32_t i = 0; i < 1U << r->count; i++) {
            size_t place = (size_t)item_at(s, r, item, i) * n;
            bool again = valid != LILAC_SCAN_ALWAYS && i > 0;
            const lilac_simt_value *own = valid == LILAC_SCAN_ALWAYS ? at->scanned : at->values;
            if (!lilac_scan_put_before(s, front, again ? LILAC_SCAN_ALWAYS : valid, own + place,
                                       at->scanned + place)) {
                return false;
            }
            front = valid != LILAC_SCAN_ALWAYS ? at->scanned + place : front;
        }
    }
    return true;
}

void lilac_scan_before_registers(const lilac_scan *s, const lilac_scan_run *r,
                                 const lilac_scan_level *at, const lilac_scan_prefix *before,
                                 lilac_scan_prefix *result) {
    uint32_t n = s->operands;
    for (uint32_t item = 0; item < at->count; item++) {
        if (item != item_at(s, r, item, 0)) {
            continue;
        }
        uint32_t block = lilac_scan_block_of(r, item);
        memcpy(result->values + (size_t)item * n, before->values + (size_t)block * n,
               n * sizeof *result->values);
        result->valid[item] = before->valid[block];
        for (uint32_t i = 1; i < 1U << r->count; i++) {
            uint32_t here = item_at(s, r, item, i), there = item_at(s, r, item, i - 1);
            memcpy(result->values + (size_t)here * n, at->scanned + (size_t)there * n,
                   n * sizeof *result->values);
            result->valid[here] = LILAC_SCAN_ALWAYS;
        }
    }
}

/* ---- lanes -------------------------------------------------------------------------------- */

bool lilac_scan_lanes(const lilac_scan *s, const lilac_scan_run *r, lilac_scan_level *at) {
    lilac_simt_value *others = lilac_scan_elements(s, at->count);
    uint32_t below = 0;
    for (uint32_t k = 0; k < r->count; k++) {
        uint32_t bit = 1U << r->place[k];
        if (below == 0) {
            lilac_scan_shuffle_all(s, LILAC_SIMT_SHFL_XOR, lilac_scan_constant(s, bit), at->count,
                                   at->scanned, others);
        } else {
            lilac_simt_value lane = lilac_scan_index_of(s, LILAC_SIMT_OP_LANE);
            lane = first_lane(s, lilac_scan_last_lane(s, lane, below), bit);
            lilac_scan_shuffle_all(s, LILAC_SIMT_SHFL_IDX, lane, at->count, at->scanned, others);
        }
        lilac_simt_value later = lilac_scan_is_later(s, bit);
        for (uint32_t item = 0; item < at->count; item++) {
            lilac_simt_value *own = at->scanned + (size_t)item * s->operands;
            if (!lilac_scan_put_before(s, others + (size_t)item * s->operands, later, own, own)) {
                return false;
            }
        }
        below |= bit;
    }
    return true;
}

bool lilac_scan_finish_lanes(const lilac_scan *s, lilac_scan_level *at,
                             const lilac_scan_prefix *before) {
    for (uint32_t item = 0; item < at->count; item++) {
        lilac_simt_value *own = at->scanned + (size_t)item * s->operands;
        if (!lilac_scan_put_before(s, before->values + (size_t)item * s->operands,
                                   before->valid[item], own, own)) {
            return false;
        }
    }
    return true;
}

/* The lane of the previous position in the scan, for lanes that are not the first. It differs in
 * the lowest set bit and the bits below it. */
static lilac_simt_value lane_before(const lilac_scan *s, const lilac_scan_run *r) {
    lilac_simt_builder *b = &s->l->builder;
    lilac_simt_value lane = lilac_scan_index_of(s, LILAC_SIMT_OP_LANE);
    uint32_t mask = lilac_scan_thread_mask(r);
    bool ascending = true;
    for (uint32_t i = 1; i < r->count; i++) {
        ascending &= r->place[i] > r->place[i - 1];
    }
    if (ascending) { /* one less, or more, among these bits */
        lilac_simt_value bits =
            s->plan->region.reverse
                ? lilac_scan_bits_of(s, LILAC_SIMT_OP_OR, lane, lane_bits(s) & ~mask)
                : lilac_scan_bits_of(s, LILAC_SIMT_OP_AND, lane, mask);
        bits = lilac_scan_bits_of(
            s, s->plan->region.reverse ? LILAC_SIMT_OP_ADD : LILAC_SIMT_OP_SUB, bits, 1);
        bits = lilac_scan_bits_of(s, LILAC_SIMT_OP_AND, bits, mask);
        return lilac_simt_op2(b, LILAC_SIMT_OP_OR, LILAC_SIMT_I32, bits,
                              lilac_scan_bits_of(s, LILAC_SIMT_OP_AND, lane, lane_bits(s) & ~mask));
    }
    lilac_simt_value change = lilac_scan_constant(s, mask);
    for (uint32_t i = r->count - 1; i-- > 0;) {
        uint32_t up_to = 0;
        for (uint32_t k = 0; k <= i; k++) {
            up_to |= 1U << r->place[k];
        }
        lilac_simt_value until = lilac_scan_constant(s, up_to);
        change = lilac_lower_select(s->l, lilac_scan_is_later(s, 1U << r->place[i]), until, change);
    }
    return lilac_simt_op2(b, LILAC_SIMT_OP_XOR, LILAC_SIMT_I32, lane, change);
}

void lilac_scan_before_lanes(const lilac_scan *s, const lilac_scan_run *r,
                             const lilac_scan_level *at, const lilac_scan_prefix *before,
                             lilac_scan_prefix *result) {
    lilac_simt_builder *b = &s->l->builder;
    uint32_t n = s->operands;
    lilac_scan_shuffle_all(s, LILAC_SIMT_SHFL_IDX, lane_before(s, r), at->count, at->scanned,
                           result->values);
    lilac_simt_value later = lilac_scan_is_later(s, lilac_scan_thread_mask(r));
    for (uint32_t item = 0; item < at->count; item++) {
        lilac_simt_value valid = before->valid[item];
        for (uint32_t i = 0; i < n && valid != LILAC_SCAN_NEVER; i++) {
            size_t place = (size_t)item * n + i;
            result->values[place] =
                lilac_lower_select(s->l, later, result->values[place], before->values[place]);
        }
        result->valid[item] =
            valid == LILAC_SCAN_NEVER ? later
            : valid == LILAC_SCAN_ALWAYS
                ? LILAC_SCAN_ALWAYS
                : lilac_simt_op2(b, LILAC_SIMT_OP_OR, LILAC_SIMT_I1, later, valid);
    }
}
