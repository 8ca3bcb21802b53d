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
 *                    that are in different segments. The programs of ttg.warp_specialize are
 *                    one segment: they are executed at the same time
 *   multiprocessor   the waves of resident blocks; the last one has fewer
 *   imbalance        what the longest block takes beyond the mean one
 *   power            tensor cores that are busy for long lower the clock
 *
 * Memory also writes back the lines that an earlier kernel left dirty in L2. The time is that of
 * launching, the waves, the imbalance and the power. The constants are fitted by the measured times
 * of half of the cases of lilac.bench, with a penalty for those that differ from measured costs of
 * instructions (bench/fit_predicted_times.py; bench/results/h200_predicted_times_fit.md). */
#include "internal.h"

#include <math.h>
#include <string.h>

static const double CLOCK = 1.925e9;                  /* Hz */
static const double LAUNCH = 3.586e-6;                /* s, events around it included */
static const double MEMORY = 4.632e12, L2 = 1.343e13; /* B/s */
static const double DIRTY = 2.684e7;                  /* B */
static const double DIRTY_REACH = 4.461e7;            /* B of traffic that evict most of them */
static const double PART = 0.2361;    /* of a sector that is not accessed, of a line that is */
static const double PARTIAL = 0.4716; /* likewise of a line that a tensor copy requests of L2 */

/* Clocks of a multiprocessor: for an issue slot of a warp, and those of the unit of integers; for a
 * wavefront of shared memory, a line of L1, a shuffle, an access to global memory; for an
 * instruction of a warp in the special function unit. */
static const double ISSUE = 0.2366, INTEGER = 0.3142, MOVE = 0.3827, CONVERT = 0.205;
static const double WAVEFRONT = 0.7677, LINE = 0.5167, SHUFFLE = 0.8695, ACCESS = 1.921;
static const double SPECIAL = 2.124, CONVERSION = 2.25;
/* For a clock of the tensor cores; for 128 bytes of operands. */
static const double TENSOR = 0.7167, OPERANDS = 0.9797;
/* For a clock of chain.c that is no issue; for the first tiles of a pipeline; for a block. */
static const double LATENCY = 0.9758, FILL = 1039, BLOCK = 92.64;

/* Exponents of norms: of units; of one resident block with itself; of two, and how it grows with
 * their number; of memory and L2; of these and a multiprocessor. */
static const double UNITS = 2.346, ONE = 2.514, BLOCKS = 2.043, GROWTH = 0.4576;
static const double DEVICE = 2.218, ROOFS = 7.432;
/* Busy tensor cores reach the power limit, and the device lowers its clock. A launch much longer than
 * POWER_TIME seconds takes POWER of their time longer, one of that length half of it. */
static const double POWER = 0.2556, POWER_TIME = 0.0003454;
/* The part in which blocks of many waves are in different segments; that of the imbalance. */
static const double MIX = 0.3617, IMBALANCE = 0.9207;

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* From the larger of the two (a large p) to their sum (p = 1). */
static double norm(double a, double b, double p) {
    const double most = larger(a, b);
    return most > 0 ? most * pow(pow(a / most, p) + pow(b / most, p), 1 / p) : 0;
}

/* ---- a multiprocessor --------------------------------------------------------------------- */

/* What a block occupies of each unit, in clocks. */
enum { ISSUES, INTEGERS, SHARED, TENSORS, OPERAND_READS, SPECIALS, UNIT_COUNT };

typedef struct units {
    double clocks[UNIT_COUNT];
} units;

static units units_of(const explain_segment *s) {
    const double *slots = s->issue, mufu = slots[LILAC_EXPLAIN_SPECIAL];
    double issued = 0;
    for (uint32_t k = 0; k < LILAC_EXPLAIN_CLASS_COUNT; k++) {
        issued += slots[k];
    }
    return (units){{
        [ISSUES] = ISSUE * issued,
        [INTEGERS] = INTEGER * (slots[LILAC_EXPLAIN_INTEGER] + s->extremes) +
                     MOVE * slots[LILAC_EXPLAIN_MOVE] + CONVERT * slots[LILAC_EXPLAIN_CONVERT],
        [SHARED] = WAVEFRONT * s->shared + LINE * s->global + SHUFFLE * s->shuffles +
                   ACCESS * slots[LILAC_EXPLAIN_GLOBAL],
        [TENSORS] = TENSOR * s->tensor,
        [OPERAND_READS] = OPERANDS * s->operands,
        [SPECIALS] = SPECIAL * mufu + CONVERSION * (s->special - mufu),
    }};
}

/* Tensor cores wait for their operands. */
static double unit_clocks(const units *u) {
    const double *c = u->clocks;
    const double parts[] = {c[ISSUES], c[INTEGERS], c[SHARED], larger(c[TENSORS], c[OPERAND_READS]),
                            c[SPECIALS]};
    double clocks = 0;
    for (uint32_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        clocks = norm(clocks, parts[k], UNITS);
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

static double l2_sectors_of(const explain_segment *s) {
    return s->sectors + PARTIAL * s->partial_sectors;
}

static work work_of(const explain_segment *s, const device *d) {
    const units u = units_of(s);
    const double clocks = unit_clocks(&u), busy = s->busy < s->clocks ? s->busy : s->clocks;
    return (work){.alone = larger(clocks, s->iterations * (busy + LATENCY * (s->clocks - busy))),
                  .units = clocks,
                  .memory = memory_sectors_of(s) * d->memory,
                  .l2 = l2_sectors_of(s) * d->l2};
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

/* The warp programs of a block, which are executed at the same time: the longest of them alone,
 * and what all of them occupy. */
static work programs_of(const lilac_explanation *e, const device *d) {
    work all = {0};
    units sum = {{0}};
    for (uint32_t program = 1; program <= e->loop_count + 1; program++) {
        double alone = 0;
        for (uint32_t k = 0; k <= e->loop_count; k++) {
            if (e->segments[k].program != program) {
                continue;
            }
            const work w = work_of(&e->segments[k], d);
            const units own = units_of(&e->segments[k]);
            for (uint32_t u = 0; u < UNIT_COUNT; u++) {
                sum.clocks[u] += own.clocks[u];
            }
            alone += w.alone;
            all.memory += w.memory;
            all.l2 += w.l2;
        }
        all.alone = larger(all.alone, alone);
    }
    all.units = unit_clocks(&sum);
    return all;
}

/* Loads in front of a loop fill its pipeline. Those of a program whose only work they are go on
 * while others finish the tile before. */
static double filling_clocks(const lilac_explanation *e) {
    double fills = 0;
    bool programs = false;
    for (uint32_t k = 1; k <= e->loop_count; k++) {
        const explain_segment *s = &e->segments[k];
        fills += s->waits > 0 && s->program == 0 ? s->entries : 0;
        programs |= s->program > 0;
    }
    return FILL * (fills + programs);
}

/* From the start to the end of `resident` blocks on each of `active` multiprocessors. */
static wave wave_clocks(const lilac_explanation *e, const device *d, double resident,
                        double active) {
    work all = programs_of(e, d);
    const double begin = BLOCK + filling_clocks(e);
    double in_step = begin + clocks_of(&all, resident, active);
    for (uint32_t k = 0; k <= e->loop_count; k++) {
        if (e->segments[k].program == 0) {
            const work w = work_of(&e->segments[k], d);
            add_work(&all, &w);
            in_step += clocks_of(&w, resident, active);
        }
    }
    all.alone += begin;
    const double mixed = clocks_of(&all, resident, active);
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
    double memory = 0, l2 = 0, tensor = 0;
    for (uint32_t k = 0; k <= e->loop_count; k++) {
        memory += blocks * sector * memory_sectors_of(&e->segments[k]);
        l2 += blocks * sector * l2_sectors_of(&e->segments[k]);
        tensor += blocks * e->segments[k].tensor;
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
    t->power =
        POWER * tensor / (EXPLAIN_MULTIPROCESSORS * CLOCK) * b->seconds / (b->seconds + POWER_TIME);
    b->seconds += t->power;
}
