/* The time of a launch on an H200, from the segments of a block: its loops, and what is outside of
 * them (internal.h).
 *
 *   units            clocks of the busiest unit of a multiprocessor for one block: issue, integers,
 *                    shared memory and L1, tensor cores, special functions. A norm of them, since
 *                    they hide each other's work in part only
 *   alone            clocks of the segment where nothing hides its latencies (chain.c)
 *   segment          for r resident blocks, from max(alone, r units) to their sum: the more blocks
 *                    there are, the better they hide each other's latencies
 *   multiprocessor   the sum of the segments, for each wave of resident blocks; programs of
 *                    ttg.warp_specialize at the same time
 *   L2, memory       bytes at the bandwidth of the device; and the lines that an earlier kernel
 *                    left dirty in L2, which it writes back
 *   imbalance        what the longest block takes beyond the mean one
 *
 * The time is that of launching, a norm of multiprocessor, L2 and memory, and the imbalance. The constants
 * are fitted on half of the cases of lilac.bench (bench/predicted_times.py;
 * bench/results/h200_predicted_times.md has both halves). */
#include "internal.h"

#include <lilac/tile_loops.h>

#include <math.h>
#include <string.h>

static const double CLOCK = 1.69e9;     /* Hz, under load */
static const double LAUNCH = 4.64e-6;   /* s, events around it included */
static const double MEMORY = 4.45e12;   /* B/s */
static const double L2 = 12.7e12;       /* B/s */
static const double DIRTY = 28.7e6;     /* B */
static const double DIRTY_REACH = 45e6; /* B of traffic that evict most of them */

/* Clocks of a multiprocessor: for an issue slot of a warp, and those of the unit of integers; for a
 * wavefront of shared memory, a line of L1, a shuffle, an access to global memory; for an
 * instruction of a warp in the special function unit. */
static const double ISSUE = 0.265, INTEGER = 0.142, MOVE = 0.55, CONVERT = 0.2;
static const double WAVEFRONT = 0.53, LINE = 0.917, SHUFFLE = 0.477, ACCESS = 0.686;
static const double SPECIAL = 2, CONVERSION = 0.728;
/* For a clock of the tensor cores, which have a higher frequency; for 128 bytes of operands. */
static const double TENSOR = 0.696, OPERANDS = 1.11;
/* For a clock of chain.c that is no issue; for the first tiles of a pipeline; for a block. */
static const double LATENCY = 1.27, FILL = 3250, BLOCK = 64;

/* Exponents of norms: of units; of two resident blocks, and how it grows with their number. */
static const double UNITS = 2.91, BLOCKS = 2.17, GROWTH = 0.234, ROOFS = 7.2;
static const double LAST_WAVE = 0.091, IMBALANCE = 0.927;

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* From the larger of the two (a large p) to their sum (p = 1). */
static double norm(double a, double b, double p) {
    const double most = larger(a, b);
    return most > 0 ? most * pow(pow(a / most, p) + pow(b / most, p), 1 / p) : 0;
}

/* Iterations between the start of a copy and its use: the most buffers of an allocation, but for
 * one. */
double explain_copies_ahead(lilac_explanation *e) {
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

/* ---- a multiprocessor --------------------------------------------------------------------- */

static double unit_clocks(const explain_segment *s) {
    const double *slots = s->issue, mufu = slots[LILAC_EXPLAIN_SPECIAL];
    double issue = 0, clocks = 0;
    for (uint32_t k = 0; k < LILAC_EXPLAIN_CLASS_COUNT; k++) {
        issue += ISSUE * slots[k];
    }
    const double integer = INTEGER * slots[LILAC_EXPLAIN_INTEGER] +
                           MOVE * slots[LILAC_EXPLAIN_MOVE] +
                           CONVERT * slots[LILAC_EXPLAIN_CONVERT];
    const double shared = WAVEFRONT * s->shared + LINE * s->global + SHUFFLE * s->shuffles +
                          ACCESS * slots[LILAC_EXPLAIN_GLOBAL];
    const double tensor = larger(TENSOR * s->tensor, OPERANDS * s->operands);
    const double special = SPECIAL * mufu + CONVERSION * (s->special - mufu);
    const double units[] = {issue, integer, shared, tensor, special};
    for (uint32_t k = 0; k < sizeof units / sizeof *units; k++) {
        clocks = norm(clocks, units[k], UNITS);
    }
    return clocks;
}

static double segment_clocks(const explain_segment *s, double blocks) {
    const double units = unit_clocks(s), busy = s->busy < s->clocks ? s->busy : s->clocks;
    const double alone = larger(units, s->iterations * (busy + LATENCY * (s->clocks - busy)));
    const double exponent = BLOCKS * pow(blocks / 2, GROWTH);
    return norm(alone, blocks * units, larger(1, exponent));
}

/* Clocks of a multiprocessor from the start to the end of `blocks` resident blocks. */
static double resident_clocks(const lilac_explanation *e, double blocks) {
    double sum = BLOCK, longest = 0;
    for (uint32_t program = 0; program <= e->loop_count + 1; program++) {
        double own = 0;
        for (uint32_t k = 0; k <= e->loop_count; k++) {
            const explain_segment *s = &e->segments[k];
            own += s->program == program ? segment_clocks(s, blocks) : 0;
        }
        sum += program == 0 ? own : 0;
        longest = program > 0 ? larger(longest, own) : 0;
    }
    for (uint32_t k = 1; k <= e->loop_count; k++) {
        sum += e->segments[k].waits > 0 ? FILL * e->segments[k].entries : 0;
    }
    return sum + longest;
}

/* All blocks. Many waves run into each other: the last one is a part of a wave only. */
static double multiprocessor_clocks(const lilac_explanation *e, double blocks) {
    const double own = ceil(blocks / EXPLAIN_MULTIPROCESSORS);
    const double resident = own < e->budget.resident_blocks ? own : e->budget.resident_blocks;
    const double wave = resident_clocks(e, resident), waves = floor(own / resident);
    const double rest = own - waves * resident;
    const double few = waves * wave + (rest > 0 ? resident_clocks(e, rest) : 0);
    const double many = wave * (blocks / EXPLAIN_MULTIPROCESSORS / resident + LAST_WAVE);
    const double part = waves <= 2 ? 0 : waves >= 8 ? 1 : (waves - 2) / 6;
    return few + part * (many - few);
}

/* ---- the launch --------------------------------------------------------------------------- */

static double sectors_of(const lilac_explanation *e, bool memory) {
    double sum = 0;
    for (uint32_t k = 0; k <= e->loop_count; k++) {
        sum += memory ? e->segments[k].memory_sectors : e->segments[k].sectors;
    }
    return sum;
}

static double alone_clocks(const lilac_explanation *e) {
    double sum = 0;
    for (uint32_t k = 0; k <= e->loop_count; k++) {
        sum += e->segments[k].iterations * e->segments[k].clocks;
    }
    return sum;
}

void explain_predict(lilac_explanation *e) {
    lilac_explain_budget *b = &e->budget;
    const uint32_t *grid = e->options.launch.grid;
    const lilac_arch *arch = e->compilation.target.arch;
    const double blocks = (double)grid[0] * grid[1] * grid[2] * e->compilation.target.num_ctas;
    if (!lilac_arch_has(arch, LILAC_HAS_WGMMA)) {
        return;
    }
    b->clocks[LILAC_EXPLAIN_ROOF_LATENCY] = alone_clocks(e) / b->resident_blocks;
    if (blocks == 0) {
        return;
    }
    lilac_explain_time *t = &b->time;
    const double bytes = blocks * sectors_of(e, true) * arch->sector_bytes;
    t->launch = LAUNCH;
    t->memory = (bytes + DIRTY * (1 - exp(-bytes / DIRTY_REACH))) / MEMORY;
    t->l2 = blocks * sectors_of(e, false) * arch->sector_bytes / L2;
    t->multiprocessors = multiprocessor_clocks(e, blocks) / CLOCK;
    t->waves = larger(1, ceil(blocks / ((double)EXPLAIN_MULTIPROCESSORS * b->resident_blocks)));
    t->imbalance = IMBALANCE * (explain_imbalance(e) - 1) * resident_clocks(e, 1) / CLOCK;
    b->seconds =
        LAUNCH + norm(norm(t->memory, t->l2, ROOFS), t->multiprocessors, ROOFS) + t->imbalance;
}
