/* The number of buffers of a pipelined loop: the only place that decides it.
 *
 * num_stages = S asks for copies S − 1 iterations ahead: the distance D. A buffer may be filled again
 * when no warp reads it any more. One barrier an iteration, behind the wait for the copies, says so
 * about all that the warps did in earlier iterations:
 *
 *     operands are read by              buffers   barriers   read last in iteration
 *     loads, products that wait         D + 1     1          i − 1
 *     products in flight, copies first  D + 2     1          i − 2 (the wait for i − 2 is in i − 1)
 *     products in flight, copies last   D + 1     2          i − 1 (the wait for i − 1 is in i)
 *     delayed products                  D + 2     1          i − 2
 *
 * The choice is the largest D whose buffers fit; for products in flight, copies first. Copies last cost
 * a second barrier; they are chosen where the additional buffer does not fit or would cost a resident
 * block, and D is at most NEAR: a larger D gives up one iteration of it instead.
 *
 * What fits: the buffers, all other allocations of the function, and a sixteenth of the memory for
 * exchanges between threads if the loop has any. Resident blocks are estimated from the shared
 * memory and from the registers of the accumulators. */
#include "pipeline/pipeline.h"

enum {
    NEAR = 2,             /* iterations ahead that hide the latency of memory */
    OTHER_REGISTERS = 64, /* of a thread, besides accumulators */
    BLOCK_BYTES = 1024    /* shared memory that the system reserves in a block */
};

typedef struct demand {
    const pipeline *p;
    uint64_t other_bytes; /* allocations that are not rings */
    uint64_t accumulator_bytes;
    bool exchanges;
} demand;

static uint64_t bytes_of(const lilac_tile_type *type) {
    const uint32_t bits = lilac_tile_element_bits(type);
    return (uint64_t)lilac_tile_element_count(type) * (bits < 8 ? 8 : bits) / 8;
}

static void add_operation(void *data, lilac_tile_op *op) {
    demand *d = data;
    switch (op->code) {
    case LILAC_TILE_OP_TTG_LOCAL_ALLOC:
        if (lilac_pipeline_load_of_alloc(d->p, op) == NULL) {
            d->other_bytes += bytes_of(op->results[0].type);
        }
        break;
    case LILAC_TILE_OP_TT_DOT:
    case LILAC_TILE_OP_TTNG_WARP_GROUP_DOT:
        if (lilac_tile_is_inside(&op->results[0], d->p->loop)) {
            d->accumulator_bytes += bytes_of(op->results[0].type);
        }
        break;
    case LILAC_TILE_OP_TTG_CONVERT_LAYOUT:
    case LILAC_TILE_OP_TT_REDUCE:
    case LILAC_TILE_OP_TT_SCAN:
    case LILAC_TILE_OP_TT_GATHER:
    case LILAC_TILE_OP_TT_HISTOGRAM:
        d->exchanges |= op->result_count > 0 && lilac_tile_is_inside(&op->results[0], d->p->loop);
        break;
    default:
        break;
    }
}

/* Blocks that are resident at a time with these rings; 0: the rings do not fit. */
static uint64_t resident(const demand *d, uint64_t slot_bytes, uint32_t buffers) {
    const lilac_target *target = d->p->target;
    const lilac_arch *arch = target->arch;
    const uint64_t bytes = slot_bytes * buffers + d->other_bytes;
    const uint64_t threads = (uint64_t)target->num_warps * arch->warp_size;
    const uint64_t registers = d->accumulator_bytes / 4 + threads * OTHER_REGISTERS;
    const uint64_t reserve = d->exchanges ? arch->shared_bytes / 16 : 0;
    if (bytes + reserve > arch->shared_bytes) {
        return 0;
    }
    const uint64_t by_memory = ((uint64_t)arch->shared_bytes + BLOCK_BYTES) / (bytes + BLOCK_BYTES);
    const uint64_t by_registers = arch->registers / registers;
    const uint64_t least = by_memory < by_registers ? by_memory : by_registers;
    return least > 0 ? least : 1;
}

static bool set(pipeline *p, uint32_t distance, uint32_t buffers, bool copies_last) {
    p->distance = distance;
    p->buffers = buffers;
    p->copies_last = copies_last;
    return true;
}

bool lilac_pipeline_choose_depth(pipeline *p, uint32_t stages) {
    demand d = {.p = p};
    uint64_t slot_bytes = 0;
    for (uint32_t i = 0; i < p->load_count; i++) {
        slot_bytes += p->loads[i].bytes;
    }
    lilac_tile_walk(p->function->body, add_operation, &d);
    uint64_t distance = stages - 1;
    if (p->trips_known && distance > p->trips - 1) {
        distance = p->trips - 1;
    }
    for (; distance > 0; distance--) {
        const uint32_t ahead = (uint32_t)distance;
        const uint64_t less = resident(&d, slot_bytes, ahead + 1);
        if (less == 0) {
            continue;
        }
        if ((p->in_flight || p->delays) && resident(&d, slot_bytes, ahead + 2) == less) {
            return set(p, ahead, ahead + 2, false);
        }
        if (!p->in_flight) {
            p->delays = false;
            return set(p, ahead, ahead + 1, false);
        }
        if (ahead <= NEAR) {
            return set(p, ahead, ahead + 1, true);
        }
    }
    return false;
}
