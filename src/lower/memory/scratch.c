/* Scratch memory: shared memory that exchanges and reductions use for a short time.
 *
 * It is reserved as consecutive intervals, one for each exchange. When the next would exceed the
 * limit, reservation starts again at the beginning. So two exchanges in a loop have separate bytes,
 * and no barrier is needed between the loads of one and the stores of the other:
 *
 *     | local_alloc … | exchange 1 | exchange 2 | reductions |  exchange 3 …
 *                     └──────────────── limit ───────────────┘
 *
 * Reductions have few partial results and share one interval. The limit in a loop is a sixteenth of
 * a multiprocessor's memory for each warp and a quarter of it for a block, or what allocations leave: a
 * second buffer saves a barrier, but it must not reduce the number of resident warps that hide latency. An exchange
 * outside loops executes its barrier once; there the limit is the share of a warp when the
 * multiprocessor is full.
 *
 * Behind allocations, such as the rings of a pipelined loop, separate bytes must not cost the
 * second resident block: there reservation starts again, too.
 *
 * The first exchange of a loop uses the bytes of those in front of it again where separate ones
 * cost a resident block as far as shared memory limits them: in the loop it needs a barrier anyway,
 * after its own loads of the iteration before (bench/results/decisions.md).
 *
 * The intervals begin behind the allocations that are live at the operation. Each exchange begins with a
 * barrier, which orders it after accesses to other memory with the same bytes. */
#include "memory/shared_access.h"
#include "operations.h"

#include <lilac/occupancy.h>

enum { SCRATCH_ALIGNMENT = 16, RESIDENT_WARPS = 64 };

/* The innermost loop around the operation; NULL: there is none. */
static const lilac_tile_op *loop_around(const lilac_tile_op *op) {
    while (op != NULL && op->code != LILAC_TILE_OP_SCF_FOR && op->code != LILAC_TILE_OP_SCF_WHILE) {
        op = op->parent == NULL ? NULL : op->parent->parent->parent;
    }
    return op;
}

static uint32_t scratch_limit(const lilac_lowering *l) {
    uint32_t shared = l->target->arch->shared_bytes;
    uint32_t warps = l->target->num_warps;
    if (loop_around(l->op) == NULL) {
        return shared / RESIDENT_WARPS * warps;
    }
    return shared / 16 * (warps < 4 ? warps : 4);
}

static void count(lilac_lowering *l, uint64_t end) {
    l->shared_bytes = end > l->shared_bytes ? (uint32_t)end : l->shared_bytes;
}

/* The resident blocks that shared memory allows if memory is used up to `end`. */
static uint32_t blocks_up_to(const lilac_lowering *l, uint64_t end) {
    const lilac_block_demand demand = {.warps = l->target->num_warps,
                                       .shared_bytes =
                                           end > l->shared_bytes ? end : l->shared_bytes};
    return lilac_resident_blocks(l->target->arch, &demand);
}

/* Does an interval at scratch_next, behind allocations, leave one block where one at
 * scratch_begin leaves several? */
static bool costs_second_block(const lilac_lowering *l, uint64_t bytes) {
    return l->scratch_begin > 0 && blocks_up_to(l, l->scratch_next + bytes) <= 1 &&
           blocks_up_to(l, l->scratch_begin + bytes) > 1;
}

/* Is this the first exchange of a loop, and does an interval at scratch_next leave fewer blocks than
 * one at scratch_begin? */
static bool costs_block_of_loop(lilac_lowering *l, uint64_t bytes) {
    const lilac_tile_op *loop = loop_around(l->op);
    const bool first = loop != NULL && loop != l->scratch_loop;
    l->scratch_loop = loop;
    return first && l->scratch_begin > 0 &&
           blocks_up_to(l, l->scratch_next + bytes) < blocks_up_to(l, l->scratch_begin + bytes);
}

uint32_t lilac_lower_scratch(lilac_lowering *l, uint64_t bytes) {
    lilac_lower_place_scratch(l);
    uint64_t start = l->scratch_next;
    const bool begins_loop = costs_block_of_loop(l, bytes);
    if (start + bytes > (uint64_t)l->scratch_begin + scratch_limit(l) ||
        start + bytes > l->target->arch->shared_bytes || costs_second_block(l, bytes) ||
        begins_loop) {
        start = l->scratch_begin;
    }
    uint64_t end = start + bytes;
    l->scratch_next =
        (uint32_t)((end + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT);
    count(l, end);
    return (uint32_t)start;
}

uint32_t lilac_lower_scratch_reused(lilac_lowering *l, uint64_t bytes) {
    lilac_lower_place_scratch(l);
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
