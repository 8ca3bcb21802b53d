/* Loads that ask for early eviction of memory that is needed again.
 *
 * evict_first says that a program needs the memory once. Memory that is evicted first has few places
 * in a full cache: what needs it again finds it evicted, and loads it from memory. Loads get the
 * normal policy in two cases. All others keep theirs: without it, most kernels are slower
 * (bench/results/h200_kept_kernels.md).
 *
 * Other blocks read the rest of a sector. The cache holds whole sectors; where the runs of a tile are
 * shorter, each sector is shared with the tiles of other blocks:
 *
 *     tile of 8 × 256 elements of 2 bytes, columns contiguous: runs of 16 bytes
 *     memory   |--block 0--|--block 1--|        32 bytes, one sector
 *
 * The program stores to the same addresses. The policy says that it does not need the old values
 * again; the new ones are read by a later loop or by the next kernel, but their lines keep the policy
 * of the load that brought them:
 *
 *     for … {
 *         %x = tt.load %p evict_first
 *         tt.store %p, %y
 *     }
 *     for … {
 *         %z = tt.load %q             the same tensor
 *     }
 *
 * A load behind the program's own store to the same addresses reads what the program has written. If no
 * other store follows, nothing is needed again, and the load keeps its policy. */
#include "layouts/assign.h"

#include <string.h>

/* The policy of a load that evicts first; NULL: another operation or policy. */
static const lilac_tile_attribute *evict_first(const lilac_tile_op *op) {
    const lilac_tile_attribute *policy = lilac_tile_find(&op->attributes, "evict");
    const bool found = op->code == LILAC_TILE_OP_TT_LOAD && policy != NULL &&
                       policy->text != NULL && strcmp(policy->text, "evict_first") == 0;
    return found ? policy : NULL;
}

static void remove_attribute(lilac_tile_attributes *attributes,
                             const lilac_tile_attribute *removed) {
    uint32_t i = (uint32_t)(removed - attributes->list);
    for (attributes->count--; i < attributes->count; i++) {
        attributes->list[i] = attributes->list[i + 1];
    }
}

/* Are the runs of the tile shorter than a sector? */
static bool shares_sectors(const assignment *a, const lilac_plan_global *global) {
    const uint32_t fast = global->order[0];
    const int64_t bytes = global->run * global->element_bytes;
    return global->rank > 0 && global->across_bits[fast] == 0 &&
           bytes < (int64_t)a->target->arch->sector_bytes;
}

static bool is_behind(const lilac_tile_op *op, const lilac_tile_op *other) {
    while (op != NULL && op != other) {
        op = op->previous;
    }
    return op != NULL;
}

/* The program's stores to the addresses of a load: in front of it in its block, and others. */
typedef struct own_stores {
    bool before, after;
} own_stores;

static own_stores find_stores(const lilac_tile_op *load) {
    own_stores found = {false, false};
    const lilac_tile_value *pointer = load->operands[0].value;
    for (const lilac_tile_use *use = pointer->uses; use != NULL; use = use->next) {
        if (use->op->code == LILAC_TILE_OP_TT_STORE && use->index == 0) {
            const bool before = is_behind(load, use->op);
            found.before |= before;
            found.after |= !before;
        }
    }
    return found;
}

void lilac_keep_cached(const assignment *a) {
    for (uint32_t i = 0; i < a->op_count; i++) {
        const listed_op *listed = &a->ops[i];
        const lilac_tile_attribute *policy = evict_first(listed->op);
        if (listed->relation->rule != RULE_MEMORY || policy == NULL) {
            continue;
        }
        const own_stores stores = find_stores(listed->op);
        if (stores.after || (!stores.before && shares_sectors(a, &listed->anchor->access.global))) {
            remove_attribute(&listed->op->attributes, policy);
        }
    }
}
