/* Fences between the threads' stores to shared memory and the products that read it by the async proxy: one for all
 * stores since the product before.
 *
 *     %m = ttg.local_alloc %a                       %m = ttg.local_alloc %a
 *     ttng.fence_async_shared                       %n = ttg.local_alloc %b
 *     %n = ttg.local_alloc %b                  →    ttng.fence_async_shared
 *     ttng.fence_async_shared                       %d = ttng.warp_group_dot %m, %n, …
 *     %d = ttng.warp_group_dot %m, %n, …            %e = ttng.warp_group_dot %n, %m, …
 *     ttng.fence_async_shared
 *     %e = ttng.warp_group_dot %n, %m, … */
#include "products/dot_operands.h"

/* Does a fence behind the operation make one in front of it unnecessary? It does if the operation reads nothing by
 * the async proxy and sends nothing to other programs. */
static bool is_ordinary(const lilac_tile_op *op) {
    const uint32_t traits = lilac_tile_op_info_get(op->code)->traits;
    return (op->region_count == 0 && (traits & LILAC_TILE_PURE) != 0) ||
           op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC || op->code == LILAC_TILE_OP_TTG_LOCAL_STORE ||
           op->code == LILAC_TILE_OP_TTG_LOCAL_LOAD || op->code == LILAC_TILE_OP_TT_LOAD;
}

/* Does it store nothing that products read? */
static bool stores_nothing(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT ||
           op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT ||
           (is_ordinary(op) && op->code != LILAC_TILE_OP_TTG_LOCAL_STORE &&
            !(op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC && op->operand_count > 0));
}

static bool has_cluster(const lilac_tile_op *fence) {
    return lilac_tile_find_integer(&fence->attributes, "bCluster", 0) != 0;
}

static bool merge(const lilac_tile_block *block) {
    lilac_tile_op *fence = NULL;      /* that a later one may replace */
    const lilac_tile_op *last = NULL; /* behind which nothing was stored */
    bool changed = false;
    for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
        next = op->next;
        if (op->code != LILAC_TILE_OP_TTNG_FENCE_ASYNC_SHARED) {
            fence = is_ordinary(op) ? fence : NULL;
            last = stores_nothing(op) ? last : NULL;
        } else if (last != NULL && has_cluster(last) == has_cluster(op)) {
            lilac_tile_remove(op);
            changed = true;
        } else {
            if (fence != NULL && has_cluster(fence) == has_cluster(op)) {
                lilac_tile_remove(fence);
                changed = true;
            }
            fence = op;
            last = op;
        }
    }
    return changed;
}

bool lilac_dot_merge_fences(lilac_tile_region *region) {
    bool changed = false;
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            for (uint32_t r = 0; r < op->region_count; r++) {
                changed |= lilac_dot_merge_fences(op->regions[r]);
            }
        }
        changed |= merge(block);
    }
    return changed;
}
