/* share_operands: products that read the same tensor from shared memory read one copy of it.
 *
 *     %m = ttg.local_alloc %a                       %m = ttg.local_alloc %a
 *     ttng.fence_async_shared                       ttng.fence_async_shared
 *     %s = ttng.warp_group_dot %k, %m, %c           %s = ttng.warp_group_dot %k, %m, %c
 *     %n = ttg.local_alloc %a                  →
 *     ttng.fence_async_shared
 *     %d = ttng.warp_group_dot %p, %n, %e           %d = ttng.warp_group_dot %p, %m, %e
 *
 * select_dots stores the operand of each product for itself. Where assign_layouts has chosen the same layout, the
 * second copy is the first one: elements of 16 bits are read along both dimensions, so transposed, too. The shared
 * copy lives as long as both did and what is between them. It must not take a resident block (live_ranges.h).
 * Memory whose layout the source states is left as it is. */
#include "products/live_ranges.h"

#include <lilac/bits.h>

typedef struct sharing {
    const lilac_target *target;
    lilac_tile_function *function;
    bool changed;
} sharing;

/* Do only products use the memory, perhaps transposed? They read it. */
static bool is_multiplied(const lilac_tile_value *memory) {
    bool found = memory->uses != NULL;
    for (const lilac_tile_use *use = memory->uses; found && use != NULL; use = use->next) {
        found = use->op->code == LILAC_TILE_OP_TTG_MEMDESC_TRANS
                    ? is_multiplied(&use->op->results[0])
                    : use->op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT;
    }
    return found;
}

static bool is_copy(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC && op->operand_count == 1 &&
           lilac_tile_find_text(&op->attributes, "lilac.memory") != NULL &&
           is_multiplied(&op->results[0]);
}

/* The first copy of the same tensor with the same layout in front of this one in its block; NULL: none. */
static lilac_tile_op *earlier_copy(const lilac_live_ranges *ranges, const lilac_tile_op *copy) {
    lilac_tile_op *found = NULL;
    uint32_t first = ranges->place[copy->results[0].id];
    for (const lilac_tile_use *use = copy->operands[0].value->uses; use != NULL; use = use->next) {
        lilac_tile_op *other = use->op;
        if (is_copy(other) && other->parent == copy->parent &&
            other->results[0].type == copy->results[0].type &&
            ranges->place[other->results[0].id] < first) {
            found = other;
            first = ranges->place[other->results[0].id];
        }
    }
    return found;
}

/* Removes a copy that nothing reads, and the fence that makes it visible to products. */
static void remove_copy(lilac_tile_op *copy) {
    lilac_tile_op *fence = copy->next;
    while (fence != NULL && fence->code == LILAC_TILE_OP_TTG_MEMDESC_TRANS) {
        fence = fence->next;
    }
    if (fence != NULL && fence->code == LILAC_TILE_OP_TTNG_FENCE_ASYNC_SHARED) {
        lilac_tile_remove(fence);
    }
    lilac_tile_remove(copy);
}

static void visit_block(sharing *s, const lilac_tile_block *block) {
    lilac_live_ranges ranges;
    lilac_live_ranges_init(&ranges, s->function, block);
    const uint64_t allowed = lilac_live_bytes_allowed(&ranges, s->target);
    for (lilac_tile_op *copy = block->first, *next; copy != NULL; copy = next) {
        next = copy->next;
        lilac_tile_op *shared = is_copy(copy) ? earlier_copy(&ranges, copy) : NULL;
        if (shared == NULL) {
            continue;
        }
        const uint64_t bytes = lilac_engine_bytes(copy->results[0].type);
        const uint32_t from = ranges.last[shared->results[0].id],
                       to = ranges.place[copy->results[0].id],
                       last = ranges.last[copy->results[0].id];
        if (lilac_live_most(ranges.bytes, from, to) + bytes <= allowed) {
            lilac_live_add(ranges.bytes, from, to, bytes);
            ranges.last[shared->results[0].id] = max_u32(from, last);
            lilac_tile_replace_uses(&copy->results[0], &shared->results[0]);
            next = copy->next->code == LILAC_TILE_OP_TTNG_FENCE_ASYNC_SHARED ? copy->next->next
                                                                             : copy->next;
            remove_copy(copy);
            s->changed = true;
        }
    }
    lilac_live_ranges_destroy(&ranges);
}

static bool has_copies(const lilac_tile_block *block) {
    uint32_t count = 0;
    for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
        count += is_copy(op);
    }
    return count > 1;
}

static void visit_region(sharing *s, const lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            for (uint32_t r = 0; r < op->region_count; r++) {
                visit_region(s, op->regions[r]);
            }
        }
        if (has_copies(block)) {
            visit_block(s, block);
        }
    }
}

bool lilac_engine_share_operands(lilac_tile_module *module, const lilac_target *target,
                                 bool *changed) {
    sharing s = {.target = target};
    for (s.function = module->functions; s.function != NULL; s.function = s.function->next) {
        if (s.function->body != NULL) {
            lilac_tile_number(s.function);
            visit_region(&s, s.function->body);
        }
    }
    *changed = s.changed;
    return true;
}
