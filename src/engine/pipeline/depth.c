/* The number of buffers of a pipelined loop: the only place that decides it.
 *
 * num_stages = S asks for copies S − 1 iterations ahead: the distance D. A buffer may be filled
 * again when no warp reads it any more. One barrier an iteration, behind the wait for the copies,
 * says so about all that the warps did in earlier iterations:
 *
 *     operands are read by              buffers   barriers   read last in iteration
 *     loads, products that wait         D + 1     1          i − 1
 *     products in flight, copies first  D + 2     1          i − 2 (the wait for i − 2 is in i − 1)
 *     products in flight, copies last   D + 1     2          i − 1 (the wait for i − 1 is in i)
 *     delayed products                  D + 2     1          i − 2
 *
 * Delayed products overlap with the arithmetic between the products of an iteration, which is worth
 * more than a copy that starts early: D is the largest for which their buffer costs no resident
 * block, but no less than what hides the latency. What they carry takes registers: with too many
 * for a thread the products are not delayed.
 *
 * Products that stay in flight hide the latency of memory behind tensor cores. Let T be the clocks
 * of the products of an iteration of all resident blocks, and NEED = 1 + latency / T, rounded up.
 * Where num_stages allows NEED iterations, that many are copied ahead, and copies start last:
 * issued in front of the products they delay them. Where it does not, every clock counts until a
 * copy starts: copies first, if the additional buffer fits and costs no resident block. On an H200,
 * in millions of clocks (first, last): 8192³ bf16 with tiles of 128 × 128 × 64 (T = 1024, NEED = 2)
 * 2.28, 2.22; f16 128 × 256 × 64 (the same) 2.29, 2.29; 4096³ tf32 128 × 128 × 32 (T = 512, NEED =
 * 3, D = 2) 0.867, 0.868.
 *
 * What fits: the buffers, all other allocations of the function, the largest block of those that
 * tensor copies move in the loop without a ring (copy_boxes), and a sixteenth of the memory for
 * exchanges between warps if the loop may have any. Resident blocks are estimated from the shared
 * memory and from the registers of the accumulators. A loop over the tiles of a persistent program
 * has one: such kernels are launched with a program for each multiprocessor. While it issues copies
 * no other block multiplies, so they start last. */
#include "pipeline/pipeline.h"

#include <lilac/matrix.h>

#include <stdio.h>

enum {
    OTHER_REGISTERS = 64, /* of a thread, besides accumulators */
    MOST_REGISTERS = 256, /* of a thread; the last one is always zero */
    BLOCK_BYTES = 1024    /* shared memory that the system reserves in a block */
};

typedef struct demand {
    const pipeline *p;
    uint64_t other_bytes; /* allocations that are not rings */
    uint64_t
        box_bytes; /* the largest block of a tensor copy without a ring; one is there at a time */
    uint64_t accumulator_bytes;
    uint64_t clocks; /* of the products of an iteration */
    bool exchanges;
    bool persistent;
} demand;

static uint64_t bytes_of(const lilac_tile_type *type) {
    const uint32_t bits = lilac_tile_element_bits(type);
    return (uint64_t)lilac_tile_element_count(type) * (bits < 8 ? 8 : bits) / 8;
}

/* Clocks of a product on the tensor cores of a multiprocessor: instructions of 64 rows and 32 bytes
 * of k. */
static uint64_t clocks_of(const lilac_tile_op *op) {
    const lilac_tile_type *d = op->results[0].type, *a = op->operands[0].value->type;
    const uint32_t columns = (uint32_t)d->shape[1];
    const uint64_t steps = (uint64_t)a->shape[1] * lilac_tile_element_bits(a) / 256,
                   rows = (uint64_t)d->shape[0] / 64;
    return rows * steps * lilac_wgmma_cycles(columns);
}

static bool has_ring(const pipeline *p, const lilac_tile_op *load) {
    for (uint32_t i = 0; i < p->load_count; i++) {
        if (p->loads[i].op == load) {
            return true;
        }
    }
    return false;
}

static void add_box(demand *d, const lilac_tile_op *load) {
    if (lilac_box_of(load) != NULL && lilac_tile_is_inside(&load->results[0], d->p->loop) &&
        !has_ring(d->p, load)) {
        d->box_bytes = max_u64(d->box_bytes, bytes_of(load->results[0].type));
    }
}

/* Does the reduction combine elements of several warps? */
static bool crosses_warps(const lilac_tile_op *reduce) {
    const lilac_layout *layout = reduce->operands[0].value->type->layout;
    char axis[16];
    (void)snprintf(axis, sizeof axis, "dim%u",
                   (uint32_t)lilac_tile_find_integer(&reduce->attributes, "axis", 0));
    return layout == NULL || !lilac_layout_is_zero_over(layout, (const char *const[]){"warp", NULL},
                                                        (const char *const[]){axis, NULL});
}

static void add_operation(void *data, lilac_tile_op *op) {
    demand *d = data;
    switch (op->code) {
    case LILAC_TILE_OP_TT_LOAD:
        add_box(d, op);
        break;
    case LILAC_TILE_OP_TTG_LOCAL_ALLOC:
        if (lilac_pipeline_load_of_alloc(d->p, op) == NULL) {
            d->other_bytes += bytes_of(op->results[0].type);
        }
        break;
    case LILAC_TILE_OP_TT_DOT:
    case LILAC_TILE_OP_TTNG_WARP_GROUP_DOT:
        if (lilac_tile_is_inside(&op->results[0], d->p->loop)) {
            d->accumulator_bytes += bytes_of(op->results[0].type);
            d->clocks += op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT ? clocks_of(op) : 0;
        }
        break;
    case LILAC_TILE_OP_TT_REDUCE:
        d->exchanges |= lilac_tile_is_inside(&op->results[0], d->p->loop) && crosses_warps(op);
        break;
    case LILAC_TILE_OP_TTG_CONVERT_LAYOUT:
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
    const uint64_t bytes = slot_bytes * buffers + d->other_bytes + d->box_bytes;
    const uint64_t threads = (uint64_t)target->num_warps * arch->warp_size;
    const uint64_t registers = d->accumulator_bytes / 4 + threads * OTHER_REGISTERS;
    const uint64_t reserve = d->exchanges ? arch->shared_bytes / 16 : 0;
    if (bytes + reserve > arch->shared_bytes) {
        return 0;
    }
    const uint64_t by_memory = ((uint64_t)arch->shared_bytes + BLOCK_BYTES) / (bytes + BLOCK_BYTES);
    const uint64_t by_registers = arch->registers / registers;
    const uint64_t least = by_memory < by_registers ? by_memory : by_registers;
    return least > 0 && !d->persistent ? least : 1;
}

static bool set(pipeline *p, uint32_t distance, uint32_t buffers, bool copies_last) {
    p->distance = distance;
    p->buffers = buffers;
    p->copies_last = copies_last;
    return true;
}

/* The iterations ahead that hide the latency of memory. Most tiles are in the L2 cache, since other
 * blocks read them too: half the latency of a busy memory. */
static uint64_t needed(const demand *d, uint64_t blocks) {
    const uint64_t clocks = d->clocks * blocks;
    const uint64_t latency = d->p->target->arch->costs->latency / 2;
    return clocks == 0 ? UINT64_MAX : 1 + (latency + clocks - 1) / clocks;
}

static bool choose_in_flight(pipeline *p, const demand *d, uint64_t slot_bytes, uint32_t distance) {
    for (uint32_t less = 1; less <= distance; less++) {
        const uint64_t blocks = resident(d, slot_bytes, less + 1);
        if (blocks > 0 && less >= needed(d, blocks)) {
            return set(p, less, less + 1, true);
        }
    }
    const uint64_t blocks = resident(d, slot_bytes, distance + 1);
    const bool first = !d->persistent && resident(d, slot_bytes, distance + 2) == blocks;
    return blocks > 0 && set(p, distance, distance + (first ? 2 : 1), !first);
}

/* Copies that start in front of the products of an iteration have its time, which is one more than
 * behind them. */
static bool choose_delayed(pipeline *p, const demand *d, uint64_t slot_bytes, uint32_t distance) {
    const uint64_t threads = (uint64_t)p->target->num_warps * p->target->arch->warp_size;
    if ((d->accumulator_bytes + p->delayed_bytes) / 4 + threads * OTHER_REGISTERS >
        threads * MOST_REGISTERS) {
        return false;
    }
    for (uint32_t less = distance; less > 0; less--) {
        const uint64_t blocks = resident(d, slot_bytes, less + 2);
        if (blocks > 0 && resident(d, slot_bytes, less + 1) == blocks) {
            return (less == distance || less + 1 >= needed(d, blocks)) &&
                   set(p, less, less + 2, false);
        }
    }
    return false;
}

static bool choose(pipeline *p, const demand *d, uint64_t slot_bytes, uint32_t distance) {
    if (p->in_flight) {
        return choose_in_flight(p, d, slot_bytes, distance);
    }
    p->delays = p->delays && choose_delayed(p, d, slot_bytes, distance);
    return p->delays ||
           (resident(d, slot_bytes, distance + 1) > 0 && set(p, distance, distance + 1, false));
}

bool lilac_pipeline_choose_depth(pipeline *p, uint32_t stages) {
    demand d = {.p = p, .persistent = lilac_engine_is_persistent(p->loop)};
    uint64_t slot_bytes = 0, distance = stages - 1;
    for (uint32_t i = 0; i < p->load_count; i++) {
        slot_bytes += p->loads[i].bytes;
    }
    lilac_tile_walk(p->function->body, add_operation, &d);
    if (p->trips_known && distance > p->trips - 1) {
        distance = p->trips - 1;
    }
    while (distance > 0 && !choose(p, &d, slot_bytes, (uint32_t)distance)) {
        distance--;
    }
    return distance > 0;
}
