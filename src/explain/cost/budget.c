/* What a block uses of each unit, and the time that follows.
 *
 * Each roof is the time of a block if only that unit mattered, where the resident blocks share the
 * multiprocessor: clocks of the unit that all warps of the block occupy. The block's own chain of
 * latencies is divided by the resident blocks, which hide it from each other. */
#include "internal.h"

#include <math.h>
#include <string.h>

/* ---- occupancy ---------------------------------------------------------------------------- */

/* Words of a thread that are kept in memory because registers do not suffice. Of straight code the
 * assembler finds an order that needs fewer, and of loops if little is missing; accumulators of
 * matrix products stay live. */
static uint32_t spilled_words(const lilac_explanation *e, uint32_t pressure, uint32_t most) {
    const bool spills = e->tensor_clocks > 0 && pressure > most + most / 8;
    return spills ? pressure - most : 0;
}

/* The most registers of a thread of a warp program; 0: none is set. */
static uint32_t set_registers(const lilac_simt_body *body) {
    uint32_t most = 0;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (i->code == LILAC_SIMT_OP_SET_MAX_REGISTERS) {
            most = max_u32(most, (uint32_t)i->immediate);
        }
        for (uint32_t b = 0; b < i->body_count; b++) {
            most = max_u32(most, set_registers(i->bodies[b]));
        }
    }
    return most;
}

static void find_occupancy(lilac_explanation *e) {
    lilac_explain_budget *b = &e->budget;
    const lilac_arch *arch = e->compilation.target.arch;
    const uint32_t most =
        e->kernel->min_blocks > 0
            ? lilac_registers_for_blocks(arch, e->kernel->num_warps, e->kernel->min_blocks)
            : LILAC_MOST_REGISTERS;
    const uint32_t pressure = lilac_simt_pressure(e->kernel, LILAC_SIMT_PRESSURE_EARLY);
    e->spilled = spilled_words(e, pressure, max_u32(most, set_registers(e->kernel->body)));
    b->shared_bytes = e->kernel->shared_bytes;
    b->registers_estimated = e->options.registers == 0;
    b->registers = e->options.registers;
    if (b->registers_estimated) {
        b->registers = min_u32(pressure + (pressure + 7) / 8 + 8, most);
    }
    const lilac_block_demand all = {e->kernel->num_warps, b->registers, b->shared_bytes};
    const lilac_block_demand registers = {e->kernel->num_warps, b->registers, 0};
    const lilac_block_demand shared = {e->kernel->num_warps, 0, b->shared_bytes};
    const lilac_block_demand warps = {e->kernel->num_warps, 0, 0};
    b->resident_blocks = max_u32(1, lilac_resident_blocks(arch, &all));
    b->resident_warps = b->resident_blocks * e->kernel->num_warps;
    b->limited_by = lilac_resident_blocks(arch, &registers) <= b->resident_blocks ? "registers"
                    : lilac_resident_blocks(arch, &shared) <= b->resident_blocks  ? "shared memory"
                                                                                  : "warps";
    if (lilac_resident_blocks(arch, &warps) <= b->resident_blocks) {
        b->limited_by = "warps";
    }
}

/* ---- sums --------------------------------------------------------------------------------- */

static void sum_operations(lilac_explanation *e) {
    e->budget.exact = true;
    for (uint32_t i = 0; i < e->count; i++) {
        explain_counts_add(&e->block, &e->operations[i].counts, e->executions[i]);
        e->budget.exact &= e->certain[i];
    }
    e->budget.counts = e->block;
    e->budget.counts.instructions = 0;
    for (uint32_t k = 0; k < LILAC_EXPLAIN_CLASS_COUNT; k++) {
        e->budget.counts.issue[k] = (uint64_t)llround(e->issue[k]);
        e->budget.counts.instructions += e->budget.counts.issue[k];
    }
}

/* ---- roofs -------------------------------------------------------------------------------- */

/* The sectors that a block exchanges with L2; `shared`: with memory: what several blocks access
 * counts in parts. */
double explain_sectors(const lilac_explanation *e, bool shared) {
    double sum = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        sum += e->executions[i] * e->traffic[i] * (shared ? e->share[i] : 1 - e->cached[i]);
    }
    return sum;
}

static void find_roofs(lilac_explanation *e) {
    lilac_explain_budget *b = &e->budget;
    const lilac_explain_counts *c = &b->counts;
    const lilac_arch *arch = e->compilation.target.arch;
    const lilac_costs *costs = arch->costs;
    enum { L2_BYTES_PER_CLOCK = 64, BULK_WAVEFRONT = 128, ISSUE_PER_CLOCK = 4 };
    const double sectors = explain_sectors(e, false);
    b->unique_bytes = explain_sectors(e, true) * arch->sector_bytes;
    b->clocks[LILAC_EXPLAIN_ROOF_MEMORY] =
        b->unique_bytes / arch->sector_bytes * costs->sector / 16;
    b->clocks[LILAC_EXPLAIN_ROOF_L2] = sectors * arch->sector_bytes / L2_BYTES_PER_CLOCK;
    b->clocks[LILAC_EXPLAIN_ROOF_SHARED] =
        (double)(c->shared_load_wavefronts + c->shared_store_wavefronts + c->async_wavefronts +
                 c->shuffles) *
            costs->wavefront / 16 +
        (double)(c->wgmma_bytes + c->bulk_bytes) / BULK_WAVEFRONT;
    b->clocks[LILAC_EXPLAIN_ROOF_TENSOR] = e->tensor_clocks;
    b->clocks[LILAC_EXPLAIN_ROOF_ISSUE] = (double)c->instructions / ISSUE_PER_CLOCK;
    b->clocks[LILAC_EXPLAIN_ROOF_SPECIAL] = e->issue[LILAC_EXPLAIN_SPECIAL] * costs->special / 16;
    explain_predict(e);
    for (uint32_t k = 0; k < LILAC_EXPLAIN_ROOF_COUNT; k++) {
        b->bound = b->clocks[k] > b->clocks[b->bound] ? (lilac_explain_roof)k : b->bound;
    }
}

enum { SECTORS = 4 }; /* of a line */

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* Sectors of the lines that a tensor copy requests of L2 beyond those that it copies. */
static double partial_sectors(const lilac_explanation *e, uint32_t index) {
    return larger(0, SECTORS * e->requests[index] - e->traffic[index]);
}

/* Sectors that an operation does not access of the lines that memory delivers for it; negative, if
 * an operation before it has accessed other sectors of these lines. What a loop leaves in one
 * iteration it may access in the next one. */
static double unused_sectors(const lilac_explanation *e, uint32_t index) {
    const bool atomic = e->operations[index].op->code == LILAC_TILE_OP_TT_ATOMIC_RMW;
    if (e->span[index] == 0 || e->again[index] > 0 || e->operations[index].loop > 0 || atomic) {
        return 0;
    }
    return e->share[index] * (SECTORS * e->pieces[index] - e->traffic[index]);
}

/* Adds accesses to memory to the segments; instructions are in them (emitted.c). */
static void fill_segments(lilac_explanation *e) {
    for (uint32_t i = 0; i < e->count; i++) {
        const lilac_explain_operation *o = &e->operations[i];
        const lilac_explain_counts *c = &o->counts;
        explain_segment *s = &e->segments[o->loop];
        const double times = e->executions[i];
        uint64_t global = c->atomics;
        for (uint32_t w = 0; w < LILAC_EXPLAIN_WIDTHS; w++) {
            global += c->access_bits[w] * (w > 2 ? 1u << (w - 2) : 1u); /* 128 bytes each */
        }
        s->shared += times * ((double)(c->shared_load_wavefronts + c->shared_store_wavefronts +
                                       c->async_wavefronts) +
                              (double)c->bulk_bytes / 128);
        s->operands += times * (double)c->wgmma_bytes / 128;
        s->shuffles += times * (double)c->shuffles;
        s->global += times * larger(e->lines[i], e->active[i] * (double)global);
        s->sectors += times * e->traffic[i] * (1 - e->cached[i]);
        s->memory_sectors += times * e->traffic[i] * e->share[i];
        s->unused_sectors += times * unused_sectors(e, i);
        s->partial_sectors += times * partial_sectors(e, i);
    }
}

/* A word that is kept in memory is stored and loaded in each iteration of the loops with products:
 * a line of L1 for a warp. */
static void spill(lilac_explanation *e) {
    for (uint32_t k = 1; k <= e->loop_count; k++) {
        explain_segment *s = &e->segments[k];
        const double accesses = 2.0 * e->spilled * e->kernel->num_warps * s->iterations;
        if (s->tensor > 0) {
            s->global += accesses;
            s->issue[LILAC_EXPLAIN_GLOBAL] += accesses;
        }
    }
}

void explain_find_budget(lilac_explanation *e) {
    find_occupancy(e);
    sum_operations(e);
    explain_find_reuse(e);
    fill_segments(e);
    explain_find_chains(e);
    spill(e);
    find_roofs(e);
}
