/* Removes fences that order no ordinary store of the operands.
 *
 *     %m = ttg.local_alloc %a                     %v = ttg.memdesc_index %ring[%slot]
 *     ttng.fence_async_shared               →     %d = ttng.warp_group_dot %v, …
 *     %d = ttng.warp_group_dot %m, …
 *
 * A product reads shared memory through the async proxy, so a fence follows ordinary stores of its
 * operands. Copies are no ordinary stores. Once the operands are in rings, a fence is needed only
 * behind stores that the body still has, or, once, behind those before the loop. */
#include "pipeline/pipeline.h"

static bool is_fence(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TTNG_FENCE_ASYNC_SHARED;
}

static void find_store(void *data, lilac_tile_op *op) {
    bool *stores = data;
    *stores |= op->code == LILAC_TILE_OP_TTG_LOCAL_STORE ||
               (op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC && op->operand_count > 0);
}

bool lilac_pipeline_may_store(lilac_tile_op *op) {
    bool stores = false;
    find_store(&stores, op);
    for (uint32_t i = 0; i < op->region_count; i++) {
        lilac_tile_walk(op->regions[i], find_store, &stores);
    }
    return stores;
}

/* The operand's memory before views. */
static const lilac_tile_value *root_of(const lilac_tile_value *memory) {
    uint32_t first, end;
    while (memory->op != NULL && memory->op->region_count == 0 &&
           lilac_tile_view_operands(memory->op, &first, &end) && end == first + 1) {
        memory = memory->op->operands[first].value;
    }
    return memory;
}

static bool is_ring(const pipeline *p, const lilac_tile_value *memory) {
    bool found = false;
    for (uint32_t i = 0; i < p->load_count; i++) {
        found |= memory == p->loads[i].ring;
    }
    return found;
}

/* Has the memory been fenced when the loop begins? It has if it is an allocation of a tensor with a
 * fence behind it in its block, before the loop. */
static bool is_fenced(const pipeline *p, const lilac_tile_value *memory) {
    const lilac_tile_op *op = memory->op;
    if (memory->type->kind != LILAC_TILE_MEMDESC || is_ring(p, memory)) {
        return true;
    }
    if (lilac_tile_is_inside(memory, p->loop)) {
        return true; /* the body's stores are looked at one by one */
    }
    if (op == NULL || op->code != LILAC_TILE_OP_TTG_LOCAL_ALLOC || op->operand_count == 0) {
        return false;
    }
    while (op != NULL && op != p->loop && !is_fence(op)) {
        op = op->next;
    }
    return op != NULL && is_fence(op);
}

void lilac_pipeline_remove_fences(const pipeline *p) {
    lilac_tile_block *body = p->loop->regions[0]->first;
    bool stored = false;
    for (lilac_tile_op *op = body->first; op != NULL; op = op->next) {
        for (uint32_t i = 0; op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT && i < 2; i++) {
            stored |= !is_fenced(p, root_of(op->operands[i].value));
        }
        stored |= lilac_pipeline_may_store(op); /* also in the iteration before */
    }
    for (lilac_tile_op *op = body->first, *next; op != NULL; op = next) {
        next = op->next;
        if (is_fence(op) && !stored) {
            lilac_tile_remove(op);
        } else if (is_fence(op)) {
            stored = false;
        } else {
            stored |= lilac_pipeline_may_store(op);
        }
    }
}
