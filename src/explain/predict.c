/* The time of a launch on an H200, from the segments of a block: its loops, and what is outside of
 * them (internal.h).
 *
 *   units            clocks of a multiprocessor for one block: a norm of those of issue, integers,
 *                    shared memory and L1, tensor cores, special functions, which hide each
 *                    other's work in part only
 *   alone            clocks of the segment where no other block hides its latencies (chain.c)
 *   memory, L2       clocks of the device for the bytes of one block
 *   segment          of r resident blocks: a norm of alone and r units, whose exponent grows with r:
 *                    the more blocks there are, the better they hide each other's latencies; and of
 *                    that with memory and L2
 *   wave             the sum of the segments, for blocks in step; or a norm of the sums, for blocks
 *                    that are in different segments. Programs of ttg.warp_specialize are executed at
 *                    the same time
 *   multiprocessor   the waves of resident blocks; the last one has fewer
 *   imbalance        what the longest block takes beyond the mean one
 *
 * Memory also writes back the lines that an earlier kernel left dirty in L2. The time is that of
 * launching, the waves, and the imbalance. The constants are fitted by the measured times of half of
 * the cases of lilac.bench, with a penalty for those that differ from measured costs of instructions
 * (bench/fit_predicted_times.py; bench/results/h200_predicted_times_fit.md). */
#include "internal.h"

#include <lilac/tile_loops.h>

#include <math.h>
#include <string.h>

static const double CLOCK = 1.914e9;                  /* Hz */
static const double LAUNCH = 3.313e-6;                /* s, events around it included */
static const double MEMORY = 4.606e12, L2 = 1.325e13; /* B/s */
static const double DIRTY = 2.631e7;                  /* B */
static const double DIRTY_REACH = 4.574e7;            /* B of traffic that evict most of them */
static const double PART = 0.2286; /* of a sector that is not accessed, of a line that is */

/* Clocks of a multiprocessor: for an issue slot of a warp, and those of the unit of integers; for a
 * wavefront of shared memory, a line of L1, a shuffle, an access to global memory; for an
 * instruction of a warp in the special function unit. */
static const double ISSUE = 0.2366, INTEGER = 0.278, MOVE = 0.3358, CONVERT = 0.1896;
static const double WAVEFRONT = 0.6587, LINE = 0.4418, SHUFFLE = 0.8111, ACCESS = 2.154;
static const double SPECIAL = 2.35, CONVERSION = 2.264;
/* For a clock of the tensor cores; for 128 bytes of operands. */
static const double TENSOR = 0.6715, OPERANDS = 1.063;
/* For a clock of chain.c that is no issue; for the first tiles of a pipeline; for a block. */
static const double LATENCY = 0.9424, FILL = 1115, BLOCK = 94.97;

/* Exponents of norms: of units; of one resident block with itself; of two, and how it grows with
 * their number; of memory and L2; of these and a multiprocessor. */
static const double UNITS = 1.951, ONE = 1.985, BLOCKS = 1.913, GROWTH = 0.5513;
static const double DEVICE = 2.303, ROOFS = 7.787;
/* The part in which blocks of many waves are in different segments; that of the imbalance. */
static const double MIX = 0.4297, IMBALANCE = 1.001;

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

/* What one block takes, in clocks: on a multiprocessor, alone and of its units; of the device. */
typedef struct work {
    double alone, units, memory, l2;
} work;

/* The device clocks for a sector. */
typedef struct device {
    double memory, l2;
} device;

static double memory_sectors_of(const explain_segment *s) {
    return s->memory_sectors + PART * larger(s->unused_sectors, 0);
}

static work work_of(const explain_segment *s, const device *d) {
    const double units = unit_clocks(s), busy = s->busy < s->clocks ? s->busy : s->clocks;
    return (work){.alone = larger(units, s->iterations * (busy + LATENCY * (s->clocks - busy))),
                  .units = units,
                  .memory = memory_sectors_of(s) * d->memory,
                  .l2 = s->sectors * d->l2};
}

static void add_work(work *sum, const work *part) {
    sum->alone += part->alone;
    sum->units += part->units;
    sum->memory += part->memory;
    sum->l2 += part->l2;
}

/* Of `resident` blocks on each of `active` multiprocessors. */
static double clocks_of(const work *w, double resident, double active) {
    const double all = resident * active;
    const double exponent = resident <= 1 ? ONE : larger(1, BLOCKS * pow(resident / 2, GROWTH));
    return norm(norm(w->alone, resident * w->units, exponent),
                norm(all * w->memory, all * w->l2, DEVICE), ROOFS);
}

typedef struct wave {
    double in_step, mixed; /* clocks of blocks in the same segments, and in different ones */
} wave;

/* From the start to the end of `resident` blocks on each of `active` multiprocessors. */
static wave wave_clocks(const lilac_explanation *e, const device *d, double resident,
                        double active) {
    double sum = BLOCK, longest = 0, longest_alone = 0;
    work all = {0};
    for (uint32_t k = 1; k <= e->loop_count; k++) {
        sum += e->segments[k].waits > 0 ? FILL * e->segments[k].entries : 0;
    }
    double alone = sum;
    for (uint32_t program = 0; program <= e->loop_count + 1; program++) {
        double own = 0, own_alone = 0;
        for (uint32_t k = 0; k <= e->loop_count; k++) {
            if (e->segments[k].program == program) {
                const work w = work_of(&e->segments[k], d);
                add_work(&all, &w);
                own += clocks_of(&w, resident, active);
                own_alone += w.alone;
            }
        }
        sum += program == 0 ? own : 0;
        alone += program == 0 ? own_alone : 0;
        longest = program > 0 ? larger(longest, own) : 0;
        longest_alone = program > 0 ? larger(longest_alone, own_alone) : 0;
    }
    all.alone = alone + longest_alone;
    const double in_step = sum + longest, mixed = clocks_of(&all, resident, active);
    return (wave){in_step, mixed < in_step ? mixed : in_step};
}

/* All blocks. Many waves run into each other: the last one is a part of a wave only. */
static double multiprocessor_clocks(const lilac_explanation *e, const device *d, double blocks) {
    const double own = ceil(blocks / EXPLAIN_MULTIPROCESSORS);
    const double places = e->budget.resident_blocks, resident = own < places ? own : places;
    const double full = resident * EXPLAIN_MULTIPROCESSORS, waves = floor(own / resident);
    if (own <= places) {
        return wave_clocks(e, d, resident, blocks / own).in_step;
    }
    const wave w = wave_clocks(e, d, resident, EXPLAIN_MULTIPROCESSORS);
    const double left = larger(0, blocks - waves * full);
    const double rest = ceil(left / EXPLAIN_MULTIPROCESSORS);
    const double few =
        waves * w.in_step + (rest > 0 ? wave_clocks(e, d, rest, left / rest).in_step : 0);
    const double many = (w.in_step + MIX * (w.mixed - w.in_step)) * blocks / full;
    const double part = waves <= 2 ? 0 : waves >= 8 ? 1 : (waves - 2) / 6;
    return few + part * (many - few);
}

/* ---- the launch --------------------------------------------------------------------------- */

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
    const double sector = e->compilation.target.arch->sector_bytes;
    const double blocks = (double)grid[0] * grid[1] * grid[2] * e->compilation.target.num_ctas;
    b->clocks[LILAC_EXPLAIN_ROOF_LATENCY] = alone_clocks(e) / b->resident_blocks;
    if (blocks == 0) {
        return;
    }
    lilac_explain_time *t = &b->time;
    double memory = 0, l2 = 0;
    for (uint32_t k = 0; k <= e->loop_count; k++) {
        memory += blocks * sector * memory_sectors_of(&e->segments[k]);
        l2 += blocks * sector * e->segments[k].sectors;
    }
    const double dirty = DIRTY * (1 - exp(-memory / DIRTY_REACH));
    t->launch = LAUNCH;
    t->memory = (memory + dirty) / MEMORY;
    t->l2 = l2 / L2;
    const device none = {0}, d = {.memory = memory > 0 ? CLOCK * t->memory * sector / memory : 0,
                                  .l2 = CLOCK * sector / L2};
    t->multiprocessors = multiprocessor_clocks(e, &none, blocks) / CLOCK;
    t->waves = larger(1, ceil(blocks / ((double)EXPLAIN_MULTIPROCESSORS * b->resident_blocks)));
    t->imbalance =
        IMBALANCE * (explain_imbalance(e) - 1) * wave_clocks(e, &d, 1, 1).in_step / CLOCK;
    b->seconds = LAUNCH + multiprocessor_clocks(e, &d, blocks) / CLOCK + t->imbalance;
}
