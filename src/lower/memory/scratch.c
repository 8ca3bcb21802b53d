/* Scratch memory: shared memory that trips and reductions need for a while.
 *
 * It is handed out as intervals, one for each trip, one after another and from the beginning again
 * when they would take more than the limit. So in a loop of two trips each has its own bytes, and
 * no barrier need stand between the loads of one and the stores of the next:
 *
 *     | local_alloc … | trip 1 | trip 2 | reductions |  trip 3 …
 *                     └──────────── limit ───────────┘
 *
 * Reductions, whose partial results are few, share one. The limit in a loop is a sixteenth of a
 * multiprocessor's memory for each warp, a quarter of it for a block: a second buffer is worth a
 * barrier, but not the warps that could otherwise hide each other's latency. What is not in a loop
 * passes its barrier once, and has no more than a warp's share when as many warps are there as a
 * multiprocessor takes. */
#include "memory/shared_access.h"

enum { SCRATCH_ALIGNMENT = 16, RESIDENT_WARPS = 64 };

static bool is_in_loop(const lilac_tile_op *op) {
    while (op != NULL && op->code != LILAC_TILE_OP_SCF_FOR && op->code != LILAC_TILE_OP_SCF_WHILE) {
        op = op->parent == NULL ? NULL : op->parent->parent->parent;
    }
    return op != NULL;
}

static uint32_t scratch_limit(const lilac_lowering *l) {
    uint32_t shared = l->target->arch->shared_bytes;
    uint32_t warps = l->target->num_warps;
    if (!is_in_loop(l->op)) {
        return shared / RESIDENT_WARPS * warps;
    }
    return shared / 16 * (warps < 4 ? warps : 4);
}

static void count(lilac_lowering *l, uint64_t end) {
    l->shared_bytes = end > l->shared_bytes ? (uint32_t)end : l->shared_bytes;
}

uint32_t lilac_lower_scratch(lilac_lowering *l, uint64_t bytes) {
    uint64_t start = l->scratch_next;
    if (start + bytes > (uint64_t)l->scratch_begin + scratch_limit(l)) {
        start = l->scratch_begin;
    }
    uint64_t end = start + bytes;
    l->scratch_next =
        (uint32_t)((end + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT);
    count(l, end);
    return (uint32_t)start;
}

uint32_t lilac_lower_scratch_reused(lilac_lowering *l, uint64_t bytes) {
    if (l->reused_end == l->scratch_next) {
        /* The last interval, which may grow. */
        l->scratch_next = l->reused_begin;
    } else if (bytes <= l->reused_end - l->reused_begin) {
        count(l, l->reused_begin + bytes); /* the interval ends aligned: this may need more of it */
        return l->reused_begin;
    }
    l->reused_begin = lilac_lower_scratch(l, bytes);
    l->reused_end = l->scratch_next;
    return l->reused_begin;
}
