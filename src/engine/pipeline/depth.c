/* The number of buffers of a pipelined loop: the only place that decides it.
 *
 * num_stages = S asks for copies S − 1 iterations ahead: the distance D. A buffer may be filled
 * again when no warp reads it any more. One barrier an iteration, behind the wait for the copies,
 * says so about all that the warps did in earlier iterations:
 *
 *     operands are read by              buffers   barriers   read last in iteration
 *     loads, products that wait         D + 1     1          i − 1
 *     the same, copies last             D         2          i
 *     products in flight, copies first  D + 2     1          i − 2 (the wait for i − 2 is in i − 1)
 *     products in flight, copies last   D + 1     2          i − 1 (the wait for i − 1 is in i)
 *     the same, multicast (multicast.c) D + 2     1          i − 2
 *     delayed products                  D + 2     1          i − 2
 *       their operands copied late      D + 1     1          i − 1, late ones i − 2
 *
 * Products that stay in flight hide the latency of memory behind tensor cores. Let T be the clocks
 * of the products of an iteration of a block, b the number of resident blocks (block_demand.h), and
 * W the clocks of its waits and barriers. Two grids are priced, in clocks for an iteration of one
 * block:
 *
 *     many blocks, which hide the latency from each other     max(T, (T + W) / b)
 *     one block for a multiprocessor                          max(T + W, L / D)
 *
 * b follows from the registers that ptxas takes, except for the second block: the pass occupancy
 * asks for it. L is the latency of a busy memory. The distance is the one with the smallest product
 * of both prices, and among equal ones the smallest. So a further buffer may cost a third resident
 * block, whose work the other two do as well, and the second only if one block then waits less than
 * two did.
 *
 * Where the distance hides the latency in the full grid, copies start last: issued in front of the
 * products they delay them. Where it does not, every clock counts until a copy starts: copies
 * first, if the additional buffer fits and costs no resident block. This choice and those below were
 * measured: bench/results/decisions.md.
 *
 * Where an iteration waits for its products and computes their first operands from what it loads,
 * the thread that starts tensor copies makes all warps wait for its operands. If the distance hides
 * the latency, these copies follow the first product, at the price of a barrier. Where the iteration
 * has a barrier anyway, because threads copy other operands or store one, they always follow it, as
 * copies by threads do; but not if the addresses of the copies
 * take registers that the loop's tensors do not leave: they are live while the product is in flight,
 * and spilled.
 *
 * Loops that only multiply by mma are bound by memory. Where one buffer less gains a resident
 * block, more bytes are in flight, and their copies start behind the products, which read the same
 * buffer. Other arithmetic would delay the copies. Such loops have a smaller distance where that saves a fifth
 * of the product of two prices, with b resident blocks, C the clocks of an iteration and U those of its busiest unit:
 *
 *     many iterations           max(U, max(C, L / D) / b)
 *     the first one's copies    L / b
 *
 * The first copies are all that a loop of one iteration waits for, and the others of its ring occupy memory for
 * nothing. With a known trip count both prices are the first one (bench/results/decisions.md).
 *
 * That matters less in a loop of few iterations, whose time is mostly that of its first copies. In a
 * loop with products, let n be a known trip count and C the clocks of an iteration of one block that
 * waits for no copy. Where copies start s clocks after their iteration begins, a block spends
 *
 *     t(s) = L + (n / D - 1) max(D C, L + s) + D C
 *
 * clocks: the first copies, a wait for each further D iterations, and the last D. Both grids are
 * priced again: copies start last where b / t(C)² with the blocks of the smaller rings is above
 * b / t(0)². Exchanges between warps take memory, too.
 *
 * An iteration that waits for its products computes while the tensor cores stand still, unless
 * another block multiplies. The distance is a smaller one than asked for where that makes a further
 * block resident and saves a quarter of the product of both prices. Its arithmetic takes two clocks for
 * each instruction of a warp, or one for each of all warps of a partition.
 *
 * Delayed products overlap with the arithmetic between the products of an iteration, which is worth
 * more than a copy that starts early: D is the largest for which their buffer costs no resident
 * block, but no less than what hides the latency, or a smaller one by the rule of waiting. The products
 * are not delayed where waiting for them saves a quarter by that rule, or where the loop's tensors leave
 * no registers to what they carry.
 *
 * Tensor copies go further ahead than num_stages asks for, where a block that has a multiprocessor
 * for itself would wait for them and memory is free: one thread starts them, so that a further
 * buffer costs nothing else. Of more than three resident blocks some give way to further buffers
 * (bench/results/h100_ring_depth.md); in a kernel for launches in which no multiprocessor gets two
 * (target->one_block), all do (bench/results/h200_small_grids.md). The grid is not known here: the
 * function gets lilac.launch_one_block if its rings would then be longer, and its launcher chooses
 * (tensor_map.h). The latency of the copies is that of 32 KB from memory for
 * each of 50 multiprocessors of an H200, in whose loop the distance was 2: 1.28 µs less the time of
 * an iteration's products. Where an iteration waits for its products, its copies follow the first
 * one and num_stages asks for a distance of 1, a second one is worth its buffers if two iterations
 * are shorter than that. Copies by threads go further ahead, too, in the loops of persistent programs, whose
 * block has a multiprocessor for itself. Elsewhere the blocks of a multiprocessor hide each other's latency,
 * and more copies in front of a loop delay its first product.
 *
 * What fits: the buffers, all other allocations that are live in the loop, the largest block of those that
 * tensor copies move in the loop without a ring (copy_boxes), and a sixteenth of the memory for
 * exchanges between warps if the loop may have any. Blocks that tensor copies store in a loop
 * over tiles have memory beside the rings if a distance of two iterations is left
 * (store_boxes.c). A loop over the tiles of a persistent program has one resident block: such
 * kernels are launched with a program for each multiprocessor. While it issues copies no other
 * block multiplies, so they start last. */
#include "pipeline/pipeline.h"

#include "products/block_demand.h"
#include "products/dot_operands.h"

#include <lilac/matrix.h>
#include <lilac/plan.h>

enum {
    WAIT = 100,          /* clocks of an iteration's waits and barriers */
    BARRIER = 50,        /* of a second barrier, in front of copies that start last */
    COPY_LATENCY = 2400, /* clocks from the start of a tensor copy to its data */
    MOST_DISTANCE = 8,   /* beyond num_stages: the copies before the loop are code */
    PARTITIONS = 4,      /* of a multiprocessor, which issue instructions of their own warps */
    LEAST_BLOCKS = 3,    /* that stay resident where further buffers cost blocks */
    FP4_INSTRUCTIONS = 5 /* for a word of two elements (src/lower/fp4.c) */
};

typedef struct demand {
    const pipeline *p;
    uint64_t other_bytes; /* allocations that are live in the loop and not its rings */
    uint64_t
        box_bytes; /* the largest block of a tensor copy without a ring; one is there at a time */
    uint64_t store_bytes;  /* of blocks that tensor copies store in loops */
    uint64_t result_bytes; /* of the accumulators, which may be exchanged beside rings that stay */
    uint32_t words;        /* live registers of a thread that hold tensors */
    uint32_t sums;         /* and those of the accumulators of the loop's products */
    uint64_t clocks;       /* of the products of an iteration by wgmma */
    uint64_t mma;          /* and of those by mma on a partition */
    uint64_t computed;     /* instructions of a thread and iteration in other arithmetic */
    uint64_t reserve;      /* for exchanges between warps */
    bool multiplies;       /* by mma */
    bool chained;          /* products of products */
    bool computes;         /* other arithmetic than products */
    bool persistent;
    bool asked_to_delay; /* by a request */
} demand;

/* Clocks of a block's part of a product on the tensor cores of a multiprocessor: instructions of 64
 * rows and 32 bytes of k. */
static uint64_t clocks_of(const lilac_tile_op *op) {
    const lilac_tile_type *d = op->results[0].type, *a = op->operands[0].value->type;
    const uint32_t columns = (uint32_t)d->shape[1];
    const uint64_t steps = (uint64_t)a->shape[1] * lilac_tile_element_bits(a) / 256,
                   rows = (uint64_t)d->shape[0] / 64;
    const uint32_t parts = d->layout != NULL ? lilac_layout_part_bits(d->layout) : 0;
    return (rows * steps * lilac_wgmma_cycles(columns)) >> parts;
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
        d->box_bytes = max_u64(d->box_bytes, lilac_engine_bytes(load->results[0].type));
    }
}

/* Clocks of a partition for its warps' part of a product by mma, at five eighths of the rate of wgmma. */
static uint64_t mma_clocks_of(const demand *d, const lilac_tile_op *op) {
    enum { BITS = 8192 * 5 / 8 }; /* of A's elements that a partition multiplies in a clock */
    const lilac_tile_type *a = op->operands[0].value->type;
    const uint64_t products =
        (uint64_t)lilac_tile_element_count(op->results[0].type) * (uint64_t)a->shape[a->rank - 1];
    return products * lilac_tile_element_bits(a) / BITS /
           min_u32(d->p->target->num_warps, PARTITIONS);
}

/* Does the operation compute floats, other than a product, a load or a name of its operand? */
static bool is_arithmetic(const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_CONSTANT:
    case LILAC_TILE_OP_TTG_CONVERT_LAYOUT:
    case LILAC_TILE_OP_TTG_LOCAL_LOAD:
    case LILAC_TILE_OP_TT_BROADCAST:
    case LILAC_TILE_OP_TT_EXPAND_DIMS:
    case LILAC_TILE_OP_TT_GATHER:
    case LILAC_TILE_OP_TT_RESHAPE:
    case LILAC_TILE_OP_TT_SPLAT:
    case LILAC_TILE_OP_TT_TRANS:
        return false;
    default:
        return op->result_count == 1 && op->region_count == 0 &&
               lilac_tile_is_tensor(op->results[0].type) &&
               op->results[0].type->element->kind == LILAC_TILE_SCALAR &&
               lilac_scalar_is_float(op->results[0].type->element->scalar);
    }
}

static void add_operation(void *data, lilac_tile_op *op) {
    demand *d = data;
    switch (op->code) {
    case LILAC_TILE_OP_TT_LOAD:
        add_box(d, op);
        break;
    case LILAC_TILE_OP_TT_DESCRIPTOR_STORE:
    case LILAC_TILE_OP_TT_DESCRIPTOR_REDUCE:
        if (op->parent->parent->parent != NULL) {
            d->store_bytes += lilac_engine_bytes(op->operands[1].value->type);
        }
        break;
    case LILAC_TILE_OP_TTG_LOCAL_ALLOC:
        if (lilac_pipeline_load_of_alloc(d->p, op) == NULL &&
            lilac_engine_is_live_in(op, d->p->loop)) {
            d->other_bytes += lilac_engine_bytes(op->results[0].type);
        }
        break;
    case LILAC_TILE_OP_TT_DOT:
    case LILAC_TILE_OP_TTNG_WARP_GROUP_DOT:
        if (lilac_tile_is_inside(&op->results[0], d->p->loop)) {
            d->multiplies |= op->code == LILAC_TILE_OP_TT_DOT;
            d->mma += op->code == LILAC_TILE_OP_TT_DOT ? mma_clocks_of(d, op) : 0;
            d->chained |= lilac_dot_is_chained(op);
            /* mma converts elements of 8 bits */
            d->computes |= lilac_tile_element_bits(op->operands[0].value->type) < 16;
            d->sums += lilac_engine_words(op->results[0].type);
            d->clocks += op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT ? clocks_of(op) : 0;
        }
        break;
    default:
        if (is_arithmetic(op) && lilac_tile_is_inside(&op->results[0], d->p->loop)) {
            d->computes = true;
            d->computed += (op->code == LILAC_TILE_OP_TTG_FP4_TO_FP ? FP4_INSTRUCTIONS : 1) *
                           lilac_engine_words(op->results[0].type);
        }
        break;
    }
}

static uint64_t bytes_of_rings(const demand *d, uint64_t slot_bytes, uint32_t buffers) {
    return slot_bytes * buffers + d->other_bytes + d->box_bytes;
}

/* Blocks that are resident at a time with these rings and `registers` registers of each thread. */
static uint32_t resident_with(const demand *d, uint64_t slot_bytes, uint32_t buffers,
                              uint32_t registers) {
    const lilac_block_demand block = {.warps = d->p->target->num_warps,
                                      .registers = registers,
                                      .shared_bytes = bytes_of_rings(d, slot_bytes, buffers)};
    return lilac_resident_blocks(d->p->target->arch, &block);
}

/* The registers of a thread where the pass occupancy asks for a second block. Tensor copies need no
 * addresses. Products of products keep the full number: a limit of registers would serialise them. */
static uint32_t least_registers(const demand *d) {
    const bool addresses = d->chained || d->p->box_count < d->p->load_count;
    const uint32_t other =
        LILAC_ENGINE_OTHER_REGISTERS - (addresses ? 0 : LILAC_ENGINE_COPY_REGISTERS);
    return min_u32(d->words + other, LILAC_MOST_REGISTERS);
}

/* Blocks that are resident at a time with these rings; 0: the rings do not fit. */
static uint64_t resident(const demand *d, uint64_t slot_bytes, uint32_t buffers) {
    if (bytes_of_rings(d, slot_bytes, buffers) + d->reserve > d->p->target->arch->shared_bytes) {
        return 0;
    }
    uint32_t blocks = resident_with(d, slot_bytes, buffers, d->words + LILAC_ENGINE_FREE_REGISTERS);
    if (blocks < 2) {
        blocks = min_u32(resident_with(d, slot_bytes, buffers, least_registers(d)), 2);
    }
    return blocks > 0 && !d->persistent ? blocks : 1;
}

static bool set(pipeline *p, uint32_t distance, uint32_t buffers, uint32_t copies) {
    p->distance = distance;
    p->buffers = buffers;
    p->copies = copies;
    return true;
}

lilac_tile_op *lilac_pipeline_first_product(const pipeline *p) {
    lilac_tile_op *op = p->loop->regions[0]->first->first;
    while (op != NULL && op->code != LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
        op = op->next;
    }
    return op;
}

/* The product of an iteration's prices in a full and in a small grid, in sixteenths of clocks
 * each. */
static uint64_t price(const demand *d, uint64_t blocks, uint32_t distance) {
    const uint64_t latency = UINT64_C(16) * d->p->target->arch->costs->latency;
    const uint64_t clocks = 16 * d->clocks, block = 16 * (d->clocks + WAIT);
    return max_u64(clocks, block / blocks) * max_u64(block, latency / distance);
}

/* Does this distance hide the latency in a full grid? */
static bool hides(const demand *d, uint64_t blocks, uint32_t distance) {
    return 2 * (distance - 1) * blocks * d->clocks >= d->p->target->arch->costs->latency;
}

static bool choose_in_flight(pipeline *p, const demand *d, uint64_t slot_bytes, uint32_t distance) {
    const uint32_t more = p->multicasts ? 2 : 1;
    uint32_t best = 0;
    uint64_t least = UINT64_MAX;
    for (uint32_t less = 1; less <= distance; less++) {
        const uint64_t blocks = resident(d, slot_bytes, less + more);
        if (blocks > 0 && price(d, blocks, less) < least) {
            best = less;
            least = price(d, blocks, less);
        }
    }
    if (best == 0 && p->multicasts) {
        p->multicasts = false;
        return choose_in_flight(p, d, slot_bytes, distance);
    }
    if (best == 0 || p->multicasts) {
        return best > 0 && set(p, best, best + more, LILAC_COPIES_LAST);
    }
    const uint64_t blocks = resident(d, slot_bytes, best + 1);
    const bool first =
        !d->persistent && !hides(d, blocks, best) && resident(d, slot_bytes, best + 2) == blocks;
    return first ? set(p, best, best + 2, LILAC_COPIES_FIRST)
                 : set(p, best, best + 1, LILAC_COPIES_LAST);
}

/* Clocks of an iteration of one block that waits for no copy. */
static uint64_t clocks_of_iteration(const demand *d) {
    const lilac_target *target = d->p->target;
    return d->clocks + WAIT + d->computed * target->num_warps * target->arch->costs->issue / 16;
}

/* The product of both prices for an iteration that waits for its products: what it computes from
 * them does not overlap with them. A warp issues an instruction every second clock at most, so that a block
 * of one warp for each partition needs twice the clocks of its instructions. */
static uint64_t price_of_waiting(const demand *d, uint64_t blocks, uint32_t distance) {
    const lilac_target *target = d->p->target;
    const uint64_t latency = UINT64_C(16) * target->arch->costs->latency;
    const uint64_t issue = d->computed * target->arch->costs->issue;
    const uint64_t products = 16 * d->clocks,
                   longest = max_u64(products, issue * target->num_warps);
    const uint64_t alone =
        products + 16 * WAIT + issue * max_u32(target->num_warps, 2 * PARTITIONS);
    return max_u64(longest, alone / blocks) * max_u64(alone, latency / distance);
}

/* The product of the prices of an iteration and of the first copies, in a full grid, in sixteenths of clocks, for
 * products by mma with other arithmetic. */
static uint64_t price_of_mma(const demand *d, uint64_t blocks, uint32_t distance) {
    const lilac_target *target = d->p->target;
    const uint64_t latency = UINT64_C(16) * target->arch->costs->latency;
    const uint64_t issue = d->computed * target->arch->costs->issue;
    const uint64_t share = min_u32(target->num_warps, PARTITIONS);
    const uint64_t alone =
        16 * (d->mma + WAIT) + issue * max_u32(target->num_warps, 2 * PARTITIONS);
    const uint64_t longest = max_u64(16 * d->mma * share / PARTITIONS, issue * target->num_warps);
    const uint64_t iteration = max_u64(longest, max_u64(alone, latency / distance) / blocks);
    return iteration * (d->p->trip_count_known ? iteration : latency / blocks);
}

/* Is the smaller distance with more resident blocks worth it: does it save a quarter of the price? Not
 * less: memory is counted that may not be in use at the same time. With mma, a fifth. */
static bool saves_enough(const demand *d, uint64_t more, uint32_t less, uint64_t blocks,
                         uint32_t distance) {
    if (more <= blocks) {
        return false;
    }
    return d->clocks > 0
               ? 4 * price_of_waiting(d, more, less) < 3 * price_of_waiting(d, blocks, distance)
               : 5 * price_of_mma(d, more, less) < 4 * price_of_mma(d, blocks, distance);
}

/* The largest distance of at most this one with `more` buffers than it for which they cost no
 * resident block, and that hides the latency, or a smaller one with further blocks; 0: none. Copies that
 * start in front of the products of an iteration have its time, which is one more than behind them. */
static uint32_t delayed_distance(const demand *d, uint64_t slot_bytes, uint32_t distance,
                                 uint32_t more) {
    uint32_t best = 0;
    uint64_t best_blocks = 0;
    for (uint32_t less = distance; less > 0; less--) {
        const uint64_t blocks = resident(d, slot_bytes, less + more);
        if (blocks == 0 || resident(d, slot_bytes, less + 1) != blocks ||
            !(less == distance || hides(d, blocks, less + 1))) {
            continue;
        }
        if (best == 0 || saves_enough(d, blocks, less, best_blocks, best)) {
            best = less;
            best_blocks = blocks;
        }
    }
    return best;
}

/* Late copies need one buffer less, and addresses of their own: only where that permits a larger
 * distance. */
static bool choose_delayed(pipeline *p, const demand *d, uint64_t slot_bytes, uint32_t distance) {
    if (d->words + LILAC_ENGINE_OTHER_REGISTERS > LILAC_MOST_REGISTERS ||
        d->sums + p->delayed_words + LILAC_ENGINE_FREE_REGISTERS > LILAC_MOST_REGISTERS) {
        return false;
    }
    const uint32_t plain = delayed_distance(d, slot_bytes, distance, 2);
    const uint32_t late = p->can_be_late ? delayed_distance(d, slot_bytes, distance, 1) : 0;
    p->late = late > plain;
    const uint32_t copies = p->box_count == 0 ? LILAC_COPIES_BEHIND : LILAC_COPIES_FIRST;
    return max_u32(plain, late) > 0 &&
           (p->late ? set(p, late, late + 1, copies) : set(p, plain, plain + 2, copies));
}

/* Registers of a thread for the addresses of its copies of an iteration. */
static uint64_t copy_registers(const pipeline *p) {
    enum { VECTOR = 16, ADDRESS = 2 };
    const uint64_t bytes = (uint64_t)p->target->num_warps * p->target->arch->warp_size * VECTOR;
    uint64_t copies = 0;
    for (uint32_t i = 0; i < p->load_count; i++) {
        copies += p->loads[i].box == NULL ? (p->loads[i].bytes + bytes - 1) / bytes : 0;
    }
    return copies * ADDRESS;
}

typedef struct exchange_search {
    const demand *d;
    uint64_t bytes;
} exchange_search;

static void find_exchange(void *data, lilac_tile_op *op) {
    exchange_search *s = data;
    if (op->code != LILAC_TILE_OP_TTG_CONVERT_LAYOUT) {
        return;
    }
    const lilac_tile_value *source = op->operands[0].value;
    const lilac_tile_type *to = op->results[0].type;
    lilac_plan_conversion plan;
    lilac_reason why;
    if ((source->op == NULL || !has_ring(s->d->p, source->op)) && to->layout != NULL &&
        lilac_plan_conversion_init(&plan, source->type->layout, to->layout,
                                   max_u32(lilac_tile_element_bits(to), 8), NULL,
                                   s->d->p->target->arch, &why) &&
        plan.kind == LILAC_PLAN_SHARED) {
        s->bytes = max_u64(s->bytes, plan.staging.bytes);
    }
}

/* Clocks of a block in a loop of few iterations, times the distance. The copies of an iteration
 * start `start` clocks after it. */
static uint64_t time_of_loop(const demand *d, uint64_t clocks, uint64_t distance, uint64_t start) {
    const uint64_t latency = d->p->target->arch->costs->latency;
    const uint64_t last = distance * clocks;
    return distance * (latency + last) +
           (d->p->trip_count - distance) * max_u64(last, latency + start);
}

/* The memory of the largest exchange between warps that the loop may have. */
static uint64_t exchange_bytes(const demand *d) {
    exchange_search s = {.d = d};
    lilac_tile_walk(d->p->loop->regions[0], find_exchange, &s);
    return s.bytes;
}

/* Do copies that start last, from `distance` buffers, gain more than they lose? */
static bool last_pays(const demand *d, uint64_t slot_bytes, uint32_t distance) {
    if (d->multiplies && !d->computes && d->clocks == 0) {
        return resident(d, slot_bytes, distance) > resident(d, slot_bytes, distance + 1);
    }
    if (!d->p->trip_count_known || (!d->multiplies && d->clocks == 0)) {
        return false;
    }
    demand with = *d;
    with.other_bytes += exchange_bytes(d);
    const uint64_t clocks = clocks_of_iteration(d);
    const uint64_t early = time_of_loop(d, clocks, distance, 0);
    const uint64_t late = time_of_loop(d, clocks, distance, clocks);
    return resident(&with, slot_bytes, distance) * early * early >
           resident(&with, slot_bytes, distance + 1) * late * late;
}

/* Is an operand of the product memory that the threads write in the body? Then a barrier of the block
 * is in front of it. */
static bool reads_stored_memory(const pipeline *p, const lilac_tile_op *product) {
    bool stored = false;
    for (uint32_t i = 0; i < 2; i++) {
        const lilac_tile_op *made = product->operands[i].value->op;
        stored |= made != NULL && made->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC &&
                  made->operand_count > 0 && made->parent == p->loop->regions[0]->first &&
                  lilac_pipeline_load_of_alloc(p, made) == NULL;
    }
    return stored;
}

/* Is there a barrier of the block in an iteration up to the product, behind which no warp reads the
 * buffer of the iteration before? The wait for copies by threads is one. */
bool lilac_pipeline_begins_with_barrier(const pipeline *p, const lilac_tile_op *product) {
    return p->box_count < p->load_count || reads_stored_memory(p, product);
}

/* Do the copies start behind the first product, if the iteration waits for it? That costs tensor
 * copies a barrier where the iteration has none. */
static bool follow_product(const pipeline *p, const lilac_tile_op *product, bool few_registers,
                           bool boxes_follow) {
    return p->box_count == 0 ||
           (!p->delays &&
            ((lilac_pipeline_begins_with_barrier(p, product) && !few_registers) ||
             (boxes_follow && lilac_tile_is_tensor(product->operands[0].value->type))));
}

/* The distance that num_stages asks for, or a smaller one with further resident blocks, which work while
 * the others wait for their products. */
static uint32_t waiting_distance(const demand *d, uint64_t slot_bytes, uint32_t distance) {
    uint32_t best = distance;
    uint64_t best_blocks = resident(d, slot_bytes, distance + 1);
    for (uint32_t less = distance - 1; less > 0 && best_blocks > 0; less--) {
        const uint64_t blocks = resident(d, slot_bytes, less + 1);
        if (saves_enough(d, blocks, less, best_blocks, best)) {
            best = less;
            best_blocks = blocks;
        }
    }
    return best;
}

/* Nothing is in flight. */
static bool choose_waiting(pipeline *p, const demand *d, uint64_t slot_bytes, uint32_t distance) {
    if (d->clocks > 0 || (d->multiplies && d->computes)) {
        distance = waiting_distance(d, slot_bytes, distance);
    }
    const uint64_t blocks = resident(d, slot_bytes, distance + 1);
    if (distance > 1 && last_pays(d, slot_bytes, distance)) {
        return set(p, distance, distance, LILAC_COPIES_LAST);
    }
    const bool few_registers =
        d->words + LILAC_ENGINE_FREE_REGISTERS + copy_registers(p) > LILAC_MOST_REGISTERS;
    const lilac_tile_op *first = lilac_pipeline_first_product(p);
    const bool follow = first != NULL && follow_product(p, first, few_registers,
                                                        d->computes && hides(d, blocks, distance));
    return blocks > 0 &&
           set(p, distance, distance + 1, follow ? LILAC_COPIES_BEHIND : LILAC_COPIES_FIRST);
}

/* Are delayed products worth the blocks that their buffers cost? */
static bool delay_pays(const pipeline *p, const demand *d, uint64_t slot_bytes, uint32_t distance) {
    const uint32_t waiting = waiting_distance(d, slot_bytes, distance);
    return !saves_enough(d, resident(d, slot_bytes, waiting + 1), waiting,
                         resident(d, slot_bytes, p->buffers), p->distance);
}

static bool choose(pipeline *p, const demand *d, uint64_t slot_bytes, uint32_t distance) {
    if (p->in_flight) {
        return choose_in_flight(p, d, slot_bytes, distance);
    }
    p->delays = p->delays && choose_delayed(p, d, slot_bytes, distance) &&
                (d->asked_to_delay || delay_pays(p, d, slot_bytes, distance));
    return p->delays || choose_waiting(p, d, slot_bytes, distance);
}

/* Would a block that has a multiprocessor for itself wait for copies that are so far ahead? */
static bool waits(const pipeline *p, const demand *d) {
    return (d->clocks + WAIT) * p->distance < COPY_LATENCY &&
           !(p->trip_count_known && p->distance >= p->trip_count - 1);
}

/* Further buffers, until a block does not wait, that cost no resident block, or the fourth and more
 * of them if the others have as many iterations in flight. Where no other fits, copies that start
 * last are one iteration further ahead with as many buffers (bench/results/decisions.md). */
static void deepen(pipeline *p, const demand *d, uint64_t slot_bytes, bool one_block) {
    uint64_t blocks = one_block ? 1 : resident(d, slot_bytes, p->buffers);
    demand with = *d;
    with.other_bytes += d->result_bytes;
    while (p->distance < MOST_DISTANCE && waits(p, d)) {
        uint64_t others = resident(&with, slot_bytes, p->buffers + 1);
        others = one_block ? min_u64(others, 1) : others;
        if (others < min_u64(blocks, LEAST_BLOCKS) ||
            others * (p->distance + 1) < blocks * p->distance) {
            break;
        }
        blocks = others;
        p->distance++;
        p->buffers++;
    }
    const uint64_t first = max_u64(d->clocks + WAIT, COPY_LATENCY / p->distance);
    const uint64_t last = max_u64(d->clocks + WAIT + BARRIER, COPY_LATENCY / (p->distance + 1));
    if (waits(p, d) && p->copies == LILAC_COPIES_FIRST && last < first) {
        (void)set(p, p->distance + 1, p->buffers, LILAC_COPIES_LAST);
    }
}

/* Where an iteration waits for its products, a block alone would wait for the copies of the next one for
 * more than half of its time, and they start behind its first product: a second iteration, if two blocks
 * remain, and no third one that an assembler might find registers for loses its memory
 * (bench/results/decisions.md). */
static void add_second_iteration(pipeline *p, const demand *d, uint64_t slot_bytes) {
    demand with = *d;
    with.other_bytes += exchange_bytes(d);
    if (p->distance == 1 && p->copies == LILAC_COPIES_BEHIND &&
        2 * clocks_of_iteration(d) < COPY_LATENCY && !(p->trip_count_known && p->trip_count <= 2) &&
        resident(d, slot_bytes, p->buffers) == 2 &&
        resident(&with, slot_bytes, p->buffers + 1) == 2 &&
        resident_with(&with, slot_bytes, p->buffers + 1, least_registers(d)) >=
            resident_with(&with, slot_bytes, p->buffers, least_registers(d))) {
        p->distance++;
        p->buffers++;
    }
}

/* The largest distance of at most this one that fits, and more of tensor copies; 0: none. */
static uint32_t search(pipeline *p, const demand *d, uint64_t slot_bytes, uint64_t distance) {
    p->longer_with_one_block = false;
    while (distance > 0 && !choose(p, d, slot_bytes, (uint32_t)distance)) {
        distance--;
    }
    if (distance > 0 && p->in_flight && !p->multicasts &&
        (p->box_count == p->load_count || d->persistent)) {
        pipeline other = *p;
        deepen(&other, d, slot_bytes, true);
        deepen(p, d, slot_bytes, p->target->one_block);
        p->longer_with_one_block = other.distance > p->distance;
    } else if (distance > 0 && !p->in_flight && !p->delays && p->box_count > 0 && d->clocks > 0) {
        add_second_iteration(p, d, slot_bytes);
    }
    return distance > 0 ? p->distance : 0;
}

/* As `search`, with memory for blocks that tensor copies store if that leaves two iterations. */
static bool search_with_stores(pipeline *p, demand *d, uint64_t slot_bytes, uint64_t distance) {
    if (d->store_bytes > 0) {
        const bool delays = p->delays, multicasts = p->multicasts;
        d->other_bytes += d->store_bytes;
        const bool enough = search(p, d, slot_bytes, distance) >= min_u64(distance, 2);
        d->other_bytes -= d->store_bytes;
        if (enough) {
            return distance > 0;
        }
        p->delays = delays;
        p->multicasts = multicasts;
    }
    const uint32_t threads = p->target->num_warps * p->target->arch->warp_size;
    d->result_bytes = d->persistent ? (uint64_t)d->sums * threads * sizeof(uint32_t) : 0;
    return search(p, d, slot_bytes, distance) > 0;
}

/* The bytes that all rings may have. */
static uint64_t ring_bytes(const demand *d) {
    const uint64_t all = d->p->target->arch->shared_bytes,
                   other = d->other_bytes + d->box_bytes + d->reserve;
    return other < all ? all - other : 0;
}

/* The function's record that a kernel compiled with target->one_block has longer rings. */
static void mark_one_block(const pipeline *p) {
    const lilac_tile_attribute attribute = {
        .kind = LILAC_TILE_ATTR_UNIT,
        .name = lilac_intern_string(p->module->context, "lilac.launch_one_block")};
    lilac_tile_set_attribute(p->module, &p->function->attributes, &attribute);
}

bool lilac_pipeline_choose_depth(pipeline *p, uint32_t stages) {
    demand d = {.p = p,
                .words = lilac_engine_live_words(p->function, p->loop),
                .reserve = lilac_engine_exchange_reserve(p->loop, p->target->arch),
                .persistent = lilac_engine_is_persistent(p->loop)};
    uint64_t slot_bytes = 0, distance = stages - 1;
    lilac_schedule asked;
    const bool requested =
        lilac_engine_asked(&asked, p->loop) && lilac_pipeline_is_requested(&asked);
    if (requested && !lilac_pipeline_request_products(p, &asked)) {
        return false;
    }
    d.asked_to_delay = requested && asked.has[LILAC_SCHEDULE_PRODUCTS] && p->delays;
    for (uint32_t i = 0; i < p->load_count; i++) {
        slot_bytes += p->loads[i].bytes;
    }
    lilac_tile_walk(p->function->body, add_operation, &d);
    const bool shares = lilac_pipeline_find_shares(p, d.clocks);
    if (p->trip_count_known && distance > p->trip_count - 1) {
        distance = p->trip_count - 1;
    }
    const bool found = search_with_stores(p, &d, slot_bytes, distance);
    if (requested && !found) { /* the smallest, with the memory that the request has */
        (void)set(p, 1, 1, p->in_flight ? LILAC_COPIES_LAST : LILAC_COPIES_FIRST);
    }
    if (requested) {
        return lilac_pipeline_request_depth(p, &asked, slot_bytes, ring_bytes(&d), shares);
    }
    if (found && p->longer_with_one_block && p->target->launch_maps) {
        mark_one_block(p);
    }
    return found;
}
