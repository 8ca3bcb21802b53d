/* raise_operands: what products read from shared memory is stored before earlier products, where registers are short.
 *
 *     %a = arith.truncf %x                          %a = arith.truncf %x
 *     %s = ttng.warp_group_dot …                    %m = ttg.local_alloc %a
 *     …                                             ttng.fence_async_shared
 *     %m = ttg.local_alloc %a                  →    %s = ttng.warp_group_dot …
 *     ttng.fence_async_shared                       …
 *     %d = ttng.warp_group_dot %m, …                %d = ttng.warp_group_dot %m, …
 *
 * select_dots stores an operand in front of its product, so that memory is occupied for a short time. In a long
 * sequence of products, such as those of a recurrence's gradient, operands that are computed early then wait in
 * registers. Where all live tensors need more registers than a thread has, they wait in memory: an operand that
 * nothing else reads later is stored before the first product behind it, if a multiprocessor still has the memory for
 * as many resident blocks as it has registers for. Bodies of loops stay as they are: their operands come from rings. */
#include "products/dot_operands.h"
#include "products/live_ranges.h"

#include <lilac/bits.h>

static bool is_product(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT || op->code == LILAC_TILE_OP_TT_DOT;
}

/* The place of the operation that defines the value in the block, or that uses it last in front of `before`. */
static uint32_t last_use(const lilac_live_ranges *r, const lilac_tile_value *value,
                         uint32_t before) {
    uint32_t found = before;
    for (uint32_t place = before; found == before && place-- > 0;) {
        const lilac_tile_op *op = r->ops[place];
        for (uint32_t i = 0; i < op->operand_count; i++) {
            found = op->operands[i].value == value ? place : found;
        }
        found = op == value->op || op->region_count > 0 ? place : found;
    }
    return found;
}

/* The fence for an allocation, which may be for others, too; NULL: none. */
static lilac_tile_op *fence_of(const lilac_tile_op *alloc) {
    lilac_tile_op *op = alloc->next;
    while (op != NULL && (op->code == LILAC_TILE_OP_TTG_MEMDESC_TRANS ||
                          op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC)) {
        op = op->next;
    }
    return op != NULL && op->code == LILAC_TILE_OP_TTNG_FENCE_ASYNC_SHARED ? op : NULL;
}

static bool raise(lilac_tile_module *module, lilac_live_ranges *r, uint32_t place,
                  uint64_t allowed) {
    lilac_tile_op *alloc = r->ops[place];
    const lilac_tile_value *tensor = alloc->operands[0].value;
    const uint64_t bytes = lilac_engine_bytes(alloc->results[0].type);
    const lilac_tile_op *fence = fence_of(alloc);
    if (tensor->op == NULL || tensor->op->parent != alloc->parent || fence == NULL ||
        r->last[tensor->id] != place) {
        return false;
    }
    uint32_t to = last_use(r, tensor, place) + 1;
    while (to < place && !is_product(r->ops[to])) {
        to++;
    }
    if (to >= place || lilac_live_most(r->bytes, to, place) + bytes > allowed) {
        return false;
    }
    lilac_tile_detach(alloc);
    lilac_tile_insert_before(r->ops[to], alloc);
    lilac_tile_insert_before(r->ops[to], lilac_tile_clone(module, fence));
    lilac_live_add(r->bytes, to, place, bytes);
    return true;
}

static bool visit_block(lilac_tile_module *module, const lilac_tile_function *function,
                        const lilac_tile_block *block, const lilac_target *target) {
    lilac_live_ranges ranges;
    lilac_live_ranges_init(&ranges, function, block);
    const uint64_t allowed = lilac_live_bytes_allowed(&ranges, target);
    bool changed = false;
    if (lilac_live_most(ranges.words, 0, ranges.count) + LILAC_ENGINE_OTHER_REGISTERS >
        LILAC_MOST_REGISTERS) {
        for (uint32_t place = 0; place < ranges.count; place++) {
            const lilac_tile_op *op = ranges.ops[place];
            if (op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC && op->operand_count == 1) {
                changed |= raise(module, &ranges, place, allowed);
            }
        }
    }
    lilac_live_ranges_destroy(&ranges);
    return changed;
}

static uint32_t count_products(const lilac_tile_block *block) {
    uint32_t count = 0;
    for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
        count += is_product(op);
    }
    return count;
}

bool lilac_engine_raise_operands(lilac_tile_module *module, const lilac_target *target,
                                 bool *changed) {
    *changed = false;
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        if (function->body == NULL) {
            continue;
        }
        lilac_tile_number(function);
        for (const lilac_tile_block *block = function->body->first; block != NULL;
             block = block->next) {
            *changed |= count_products(block) > 1 && visit_block(module, function, block, target);
        }
        if (*changed) {
            (void)lilac_dot_merge_fences(function->body);
        }
    }
    return true;
}
