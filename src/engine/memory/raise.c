/* Moving loads to an earlier place of their block: what unroll_loops and raise_loads share. */
#include "memory/raise.h"

enum {
    DEEPEST = 64,     /* operations on the way from a load to what its address depends on */
    MOST_VISITS = 512 /* operands that are looked at for it */
};

static bool has_trait(const lilac_tile_op *op, uint32_t traits) {
    return (lilac_tile_op_info_get(op->code)->traits & traits) != 0;
}

bool lilac_is_plain_load(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TT_LOAD &&
           lilac_tile_find_integer(&op->attributes, "isVolatile", 0) == 0;
}

bool lilac_stays_in_thread(const lilac_tile_op *op) {
    return has_trait(op, LILAC_TILE_PURE) && op->region_count == 0 &&
           (op->operand_count == 0 || op->code == LILAC_TILE_OP_TT_SPLAT ||
            has_trait(op, LILAC_TILE_SHAPE | LILAC_TILE_ELEMENTWISE));
}

uint64_t lilac_elements_held(const lilac_target *target, const lilac_tile_type *type) {
    if (!lilac_tile_is_tensor(type)) {
        return 1;
    }
    if (type->layout != NULL && type->layout->in_count > 0) {
        return UINT64_C(1) << type->layout->in[0].bits;
    }
    const uint64_t threads = (uint64_t)target->arch->warp_size * target->num_warps;
    return ((uint64_t)lilac_tile_element_count(type) + threads - 1) / threads;
}

uint64_t lilac_words_held(const lilac_target *target, const lilac_tile_type *type) {
    return (lilac_elements_held(target, type) * lilac_tile_element_bits(type) + 31) / 32;
}

static bool is_available(const lilac_raise *to, const lilac_tile_value *value) {
    return value->id <= to->limit;
}

static bool may_move(const lilac_raise *to, const lilac_tile_op *op) {
    const bool converts = op->code == LILAC_TILE_OP_TTG_CONVERT_LAYOUT && to->waits != NULL &&
                          !to->waits[op->results[0].id];
    return lilac_is_plain_load(op) || lilac_stays_in_thread(op) || converts;
}

static bool can_rise(lilac_raise *to, const lilac_tile_value *value, uint32_t depth) {
    const lilac_tile_op *op = value->op;
    if (is_available(to, value)) {
        return true;
    }
    if (op == NULL || op->parent != to->block || !may_move(to, op) || depth == DEEPEST ||
        to->visits++ == MOST_VISITS) {
        return false;
    }
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (!can_rise(to, op->operands[i].value, depth + 1)) {
            return false;
        }
    }
    return true;
}

bool lilac_can_rise(lilac_raise *to, const lilac_tile_value *value) {
    to->visits = 0;
    return can_rise(to, value, 0);
}

void lilac_rise(lilac_raise *to, const lilac_tile_value *value) {
    lilac_tile_op *op = value->op;
    if (is_available(to, value)) {
        return;
    }
    for (uint32_t i = 0; i < op->operand_count; i++) {
        lilac_rise(to, op->operands[i].value);
    }
    lilac_tile_detach(op);
    lilac_tile_insert_after(to->last, op);
    to->last = op;
    for (uint32_t i = 0; i < op->result_count; i++) {
        op->results[i].id = 0;
    }
}
