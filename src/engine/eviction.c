/* Loads that ask for early eviction of sectors that other blocks read too.
 *
 * evict_first says that a program needs the memory once. The cache holds whole sectors. Where the
 * runs of a tile are shorter, each sector is shared with the tiles of other blocks:
 *
 *     tile of 8 × 256 elements of 2 bytes, columns contiguous: runs of 16 bytes
 *     memory   |--block 0--|--block 1--|        32 bytes, one sector
 *
 * Memory that is evicted first has few places in a full cache, so the other blocks find the sector
 * evicted and load it again. Such loads get the normal policy. Runs of whole sectors keep it:
 * without it, most kernels are slower (bench/results/h200_kept_kernels.md). */
#include "assign.h"

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

void lilac_share_sectors(const assignment *a) {
    for (uint32_t i = 0; i < a->op_count; i++) {
        const listed_op *listed = &a->ops[i];
        const lilac_tile_attribute *policy = evict_first(listed->op);
        if (listed->relation->rule == RULE_MEMORY && policy != NULL &&
            shares_sectors(a, &listed->anchor->access.global)) {
            remove_attribute(&listed->op->attributes, policy);
        }
    }
}
