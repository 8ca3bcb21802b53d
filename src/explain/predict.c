/* The time of a launch on an H200, from the budget of a block.
 *
 *   memory    the bytes that memory delivers, at its bandwidth; and the lines that an earlier kernel left dirty in L2,
 *             which it writes back
 *   L2        the sectors that multiprocessors exchange with L2, at its bandwidth
 *   units     the busiest multiprocessor has ceil(blocks / multiprocessors) blocks. Its busiest unit, and a part of the
 *             others' work that it does not hide
 *   latency   the chain of a block: each iteration that waits for its loads, or, of copies D iterations ahead, the
 *             D-th part; each barrier. Resident blocks hide it from each other, so it counts once for each wave
 *
 * The time is that of launching and the largest of the four. The constants are fitted on half of
 * the cases of lilac.bench (bench/predicted_times.py; bench/results/h200_predicted_times.md has
 * both halves). */
#include "internal.h"

#include <lilac/tile_loops.h>

#include <math.h>
#include <string.h>

enum { MULTIPROCESSORS = 132 };

static const double CLOCK = 1.755e9;    /* Hz, under load */
static const double LAUNCH = 5.8e-6;    /* s, events around it included */
static const double MEMORY = 4.54e12;   /* B/s */
static const double L2 = 11.4e12;       /* B/s */
static const double DIRTY = 19e6;       /* B */
static const double DIRTY_REACH = 30e6; /* B of traffic that evict most of them */
static const double UNHIDDEN = 0.34;    /* of the other units' work */
static const double ISSUE = 1.1;        /* issue slots for each counted instruction */
static const double TENSOR = 0.8;       /* clocks of CLOCK for one clock of a tensor core */
static const double LOAD = 1.1e-6;      /* s, from a load to its use on a busy device */
static const double COPY = 1.0e-6;      /* the same of copies */
static const double BARRIER = 0.04e-6;  /* s */

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* Iterations between the start of a copy and its use: the most buffers of an allocation, but for
 * one. */
static double copies_ahead(lilac_explanation *e) {
    enum { MOST = 256 };
    uint32_t list[MOST];
    int64_t most = 1;
    const uint32_t count = explain_buffers(e, list, MOST);
    for (uint32_t i = 0; i < count; i++) {
        const lilac_tile_type *type = e->operations[list[i]].op->results[0].type;
        const uint32_t own = type->layout != NULL ? type->layout->out_count : type->rank;
        if (type->rank > own && type->shape[0] > most) {
            most = type->shape[0];
        }
    }
    return most > 2 ? (double)(most - 1) : 1;
}

static bool is_copy(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TTG_ASYNC_COPY_GLOBAL_TO_LOCAL ||
           op->code == LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL;
}

/* Seconds of the latencies of a block that follow each other. */
static double chain_of(lilac_explanation *e) {
    const double ahead = copies_ahead(e);
    double *loads = lilac_arena_array(e->arena, double, e->loop_count + 1);
    double *copies = lilac_arena_array(e->arena, double, e->loop_count + 1);
    double chain = BARRIER * (double)e->budget.counts.barriers;
    for (uint32_t i = 0; i < e->count; i++) {
        const lilac_explain_operation *o = &e->operations[i];
        if (o->rare || e->traffic[i] == 0) {
            continue;
        }
        if (o->op->code == LILAC_TILE_OP_TT_LOAD || o->op->code == LILAC_TILE_OP_TT_ATOMIC_RMW ||
            (is_copy(o->op) && o->loop == 0)) {
            loads[o->loop] = o->loop == 0 ? 1 : e->executions[i];
        } else if (is_copy(o->op)) {
            copies[o->loop] = e->executions[i];
        }
    }
    for (uint32_t l = 0; l <= e->loop_count; l++) {
        chain += loads[l] > 0 ? LOAD * loads[l] : COPY * copies[l] / ahead;
    }
    return chain;
}

static double unit_clocks(const lilac_explain_budget *b) {
    const double units[] = {
        b->clocks[LILAC_EXPLAIN_ROOF_SHARED], TENSOR * b->clocks[LILAC_EXPLAIN_ROOF_TENSOR],
        ISSUE * b->clocks[LILAC_EXPLAIN_ROOF_ISSUE], b->clocks[LILAC_EXPLAIN_ROOF_SPECIAL]};
    double most = 0, sum = 0;
    for (uint32_t i = 0; i < 4; i++) {
        most = larger(most, units[i]);
        sum += units[i];
    }
    return most + UNHIDDEN * (sum - most);
}

void explain_predict(lilac_explanation *e) {
    lilac_explain_budget *b = &e->budget;
    const uint32_t *grid = e->options.launch.grid;
    const lilac_arch *arch = e->compilation.target.arch;
    const double blocks = (double)grid[0] * grid[1] * grid[2] * e->compilation.target.num_ctas;
    if (!lilac_arch_has(arch, LILAC_HAS_WGMMA)) {
        return;
    }
    const double chain = chain_of(e);
    b->clocks[LILAC_EXPLAIN_ROOF_LATENCY] = chain * CLOCK / b->resident_blocks;
    if (blocks == 0) {
        return;
    }
    const double bytes = blocks * b->unique_bytes;
    const double memory = (bytes + DIRTY * (1 - exp(-bytes / DIRTY_REACH))) / MEMORY;
    const double l2 = blocks * explain_sectors(e, false) * arch->sector_bytes / L2;
    const double units = ceil(blocks / MULTIPROCESSORS) * unit_clocks(b) / CLOCK;
    const double waves = larger(1, blocks / ((double)MULTIPROCESSORS * b->resident_blocks));
    b->seconds = LAUNCH + larger(larger(memory, l2), larger(units, waves * chain));
}
