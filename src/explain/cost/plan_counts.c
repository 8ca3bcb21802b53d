/* Counters of accesses to memory, from the plans of an operation.
 *
 * Plans count the warps that execute an access, which the instructions do not show: threads that
 * hold replicas skip it by a predicate. */
#include "internal.h"

#include <lilac/tile_loops.h>

/* ---- global memory ------------------------------------------------------------------------ */

/* Lanes of a warp that execute the access. */
static uint64_t active_lanes(const lilac_explanation *e, uint32_t idle_threads) {
    const uint32_t lanes = e->compilation.target.arch->warp_size;
    return lanes >> (uint32_t)__builtin_popcount(idle_threads & (lanes - 1));
}

static void count_access(lilac_explain_counts *c, const lilac_explanation *e,
                         const lilac_plan_global_access *plan) {
    const uint64_t instructions = plan->counts.instructions;
    const uint32_t size = plan->element_bytes << plan->vector_bits;
    const uint64_t bytes = instructions * active_lanes(e, plan->idle_threads) * size;
    switch (plan->kind) {
    case LILAC_PLAN_LOAD:
        c->global_loads += instructions;
        c->global_load_sectors += plan->counts.sectors;
        c->global_load_bytes += bytes;
        break;
    case LILAC_PLAN_STORE:
        c->global_stores += instructions;
        c->global_store_sectors += plan->counts.sectors;
        c->global_store_bytes += bytes;
        break;
    case LILAC_PLAN_COPY:
        c->async_sectors += plan->counts.sectors;
        return;
    case LILAC_PLAN_ATOMIC:
        c->atomics += instructions;
        return;
    }
    c->access_bits[log2_of(size) < LILAC_EXPLAIN_WIDTHS ? log2_of(size)
                                                        : LILAC_EXPLAIN_WIDTHS - 1] += instructions;
}

/* ---- shared memory ------------------------------------------------------------------------ */

/* Warps that hold copies do not store, nor do lanes; lanes that fill transactions cost nothing. */
static void count_shared(lilac_explain_counts *c, const lilac_explanation *e,
                         const lilac_lowered_shared *plan, bool copies) {
    const lilac_plan_access *a = &plan->access;
    const uint32_t lanes = e->compilation.target.arch->warp_size;
    uint64_t instructions = a->instructions, wavefronts = a->wavefronts;
    if (!plan->loads) {
        const uint32_t warps = (uint32_t)__builtin_popcount(plan->replicas / lanes);
        uint32_t skipped = 0;
        for (uint32_t i = 0; a->instruction == LILAC_PLAN_VECTOR && i < a->lane_bits; i++) {
            skipped += (plan->replicas >> i & 1) != 0 && 1U << i >= a->transaction_lanes;
        }
        instructions >>= warps;
        wavefronts >>= warps + skipped;
    }
    const uint32_t matrices = a->instruction != LILAC_PLAN_VECTOR;
    if (copies) {
        c->async_copies += instructions;
        c->async_wavefronts += wavefronts;
        c->async_bytes +=
            instructions * active_lanes(e, plan->replicas) * (a->element_bytes << a->vector_bits);
    } else if (plan->loads) {
        c->shared_loads += instructions;
        c->shared_load_wavefronts += wavefronts;
        c->matrix_loads += matrices * instructions;
    } else {
        c->shared_stores += instructions;
        c->shared_store_wavefronts += wavefronts;
        c->matrix_stores += matrices * instructions;
    }
}

static void count_price(lilac_explain_counts *c, const lilac_plan_price *price) {
    c->shared_loads += price->loads;
    c->shared_stores += price->stores;
    c->shared_load_wavefronts += price->load_wavefronts;
    c->shared_store_wavefronts += price->store_wavefronts;
}

static void count_conversion(lilac_explain_counts *c, const lilac_plan_conversion *plan) {
    count_price(c, &plan->price);
    for (uint32_t s = 0; s < plan->step_count; s++) {
        if (plan->step[s].kind != LILAC_PLAN_STEP_STAGING) {
            continue;
        }
        const lilac_plan_staging *staging = &plan->staging;
        c->matrix_loads += staging->load.instruction != LILAC_PLAN_VECTOR ? plan->price.loads : 0;
        c->matrix_stores +=
            staging->store.instruction != LILAC_PLAN_VECTOR ? plan->price.stores : 0;
        c->cluster_loads += staging->remote ? plan->price.loads : 0;
    }
}

/* ---- tensor copies ------------------------------------------------------------------------ */

/* The block of a tensor copy; NULL: the operation is none. */
static const lilac_tile_type *copied_block(const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL:
    case LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_LOCAL_TO_GLOBAL:
    case LILAC_TILE_OP_TTNG_ASYNC_TMA_REDUCE:
        for (uint32_t i = 0; i < op->operand_count; i++) {
            if (op->operands[i].value->type->kind == LILAC_TILE_DESCRIPTOR) {
                return op->operands[i].value->type->element;
            }
        }
        return NULL;
    default:
        return NULL;
    }
}

/* The memory that it fills or reads. */
static const lilac_tile_type *copied_memory(const lilac_tile_op *op) {
    const lilac_tile_type *memory = NULL;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_tile_type *type = op->operands[i].value->type;
        memory = type->kind == LILAC_TILE_MEMDESC ? type : memory;
    }
    return memory; /* the last: a load has its mbarrier in front of it */
}

/* A block copies its part of the memory, in boxes. A multicast load copies a share of it to each
 * block that needs the part, so a block of the cluster on the average as much as alone. */
static void count_boxes(lilac_explain_counts *c, const lilac_tile_type *block,
                        const lilac_tile_type *memory) {
    lilac_box box;
    uint64_t columns[LILAC_LAYOUT_MAX_BITS], elements = lilac_tile_element_count(memory), size = 1;
    if (!lilac_engine_box(&box, block)) {
        return;
    }
    const uint32_t bits =
        memory->layout != NULL ? lilac_layout_block_columns(columns, memory->layout) : 0;
    for (uint32_t i = 0; i < bits; i++) {
        elements >>= columns[i] != 0;
    }
    for (uint32_t d = 0; d < box.rank; d++) {
        size *= box.sizes[d];
    }
    c->bulk_copies += elements / size;
    c->bulk_bytes += elements * lilac_tile_element_bits(block) / 8;
}

/* ---- operations --------------------------------------------------------------------------- */

/* The price of its accesses, as the engine prices those of memory that the program names. */
uint64_t explain_shared_cycles(const lilac_explanation *e, const lilac_lowered_shared *plan) {
    lilac_explain_counts counts = {0};
    count_shared(&counts, e, plan, false);
    const lilac_plan_price price = {.loads = counts.shared_loads,
                                    .stores = counts.shared_stores,
                                    .load_wavefronts = counts.shared_load_wavefronts,
                                    .store_wavefronts = counts.shared_store_wavefronts};
    return lilac_plan_price_cycles(&price, LILAC_PLAN_BARRIER_WARP, e->compilation.target.arch);
}

/* Several instructions that access the same sectors find them in L1: the sectors of the tile count,
 * those of the layout with the fewest. Atomics read and write in L2. */
static double traffic_of(const lilac_plan_global_access *plan) {
    return (plan->kind == LILAC_PLAN_ATOMIC ? 2.0 : 1.0) * (double)plan->bound.sectors;
}

/* Loads whose results nothing uses are removed after the lowering: of a scan or a reduction of
 * several operands, the loads of some operands. */
static void drop(uint64_t *instructions, uint64_t *wavefronts, uint64_t *matrices,
                 uint64_t emitted) {
    if (*instructions > emitted) {
        *wavefronts = *wavefronts * emitted / *instructions;
        *matrices = min_u64(*matrices, emitted);
        *instructions = emitted;
    }
}

static void drop_removed(lilac_explanation *e, uint32_t index) {
    lilac_explain_counts *c = &e->operations[index].counts;
    const uint64_t warps = e->kernel->num_warps;
    drop(&c->shared_loads, &c->shared_load_wavefronts, &c->matrix_loads,
         warps * e->emitted[index].loads);
    drop(&c->shared_stores, &c->shared_store_wavefronts, &c->matrix_stores,
         warps * e->emitted[index].stores);
}

void explain_count_plans(lilac_explanation *e, uint32_t index) {
    lilac_explain_operation *o = &e->operations[index];
    lilac_explain_counts *c = &o->counts;
    const bool copies = o->op->code == LILAC_TILE_OP_TTG_ASYNC_COPY_GLOBAL_TO_LOCAL;
    const bool dead = e->emitted[index].accesses == 0; /* its results were not used */
    for (uint32_t i = 0; i < e->plans[index].count; i++) {
        const lilac_lowered_plan *p = e->plans[index].list[i];
        lilac_explain_counts unused = {0}, *to = dead ? &unused : c;
        o->cycles += p->kind == LILAC_LOWERED_DOT ? (uint64_t)(16 * e->tensor[index])
                                                  : explain_plan_cycles(e, p);
        switch (p->kind) {
        case LILAC_LOWERED_ACCESS:
            count_access(to, e, p->is.access);
            e->traffic[index] += dead ? 0 : traffic_of(p->is.access);
            break;
        case LILAC_LOWERED_SHARED:
            count_shared(to, e, p->is.shared, copies);
            break;
        case LILAC_LOWERED_CONVERSION:
            count_conversion(to, p->is.conversion);
            break;
        case LILAC_LOWERED_REDUCTION:
            count_price(to, &p->is.reduction->price);
            break;
        case LILAC_LOWERED_SCAN:
            count_price(to, &p->is.scan->price);
            break;
        case LILAC_LOWERED_GATHER:
            count_price(to, &p->is.gather->price);
            break;
        case LILAC_LOWERED_HISTOGRAM:
            count_price(to, &p->is.histogram->price);
            to->atomics += p->is.histogram->atomics;
            break;
        case LILAC_LOWERED_DOT:
            break;
        }
    }
    drop_removed(e, index);
    const lilac_tile_type *block = copied_block(o->op);
    if (block != NULL && !dead) {
        count_boxes(c, block, copied_memory(o->op));
        e->traffic[index] += (double)c->bulk_bytes / e->compilation.target.arch->sector_bytes;
    }
}
