/* Distributed layouts made at random, alone and in pairs of one tensor, of every kind there is:
 *
 *   dealt      unit vectors dealt to registers, lanes, warps and blocks in any order; copies
 * anywhere sums       the same with columns added to others: warp-swizzled layouts dense      any
 * matrix of full rank, copies by dependent columns
 *   blocked    \
 *   slice       | by the named layouts of Triton
 *   mma         |
 *   operand    /
 *
 * and a second one that is independent, or made from the first by moving bits within threads,
 * within warps, or between some of the warps. The same seed gives the same layouts everywhere. */
#ifndef LILAC_RANDOM_LAYOUTS_H
#define LILAC_RANDOM_LAYOUTS_H

#include <lilac/encoding.h>

#include "support/test.h"

enum { RANDOM_MAX_RANK = 3, RANDOM_MAX_COLUMNS = 32 };

/* A tensor, and where it may be. */
typedef struct random_space {
    uint32_t rank, bits[RANDOM_MAX_RANK];
    uint32_t lane_bits, warp_bits, block_bits;
    uint32_t register_limit; /* most register bits, copies too */
} random_space;

typedef enum random_kind {
    RANDOM_DEALT,
    RANDOM_SUMS,
    RANDOM_DENSE,
    RANDOM_BLOCKED,
    RANDOM_SLICE,
    RANDOM_MMA,
    RANDOM_OPERAND,
    RANDOM_KINDS
} random_kind;

typedef enum random_relation {
    RANDOM_INDEPENDENT,
    RANDOM_SAME_THREADS,
    RANDOM_SAME_WARPS,
    RANDOM_SOME_WARPS,
    RANDOM_RELATIONS
} random_relation;

static const char *const random_kind_name[RANDOM_KINDS] = {"dealt", "sums", "dense",  "blocked",
                                                           "slice", "mma",  "operand"};
static const char *const random_relation_name[RANDOM_RELATIONS] = {"independent", "same threads",
                                                                   "same warps", "some warps"};

static inline uint32_t random_space_bits(const random_space *space) {
    uint32_t sum = 0;
    for (uint32_t d = 0; d < space->rank; d++) {
        sum += space->bits[d];
    }
    return sum;
}

/* ---- columns ---------------------------------------------------------------------------- */

/* A layout's columns in one row: registers, lanes, warps, blocks. */
typedef struct random_columns {
    uint32_t count[4], total;
    uint64_t at[RANDOM_MAX_COLUMNS];
} random_columns;

static inline void random_shuffle(lilac_random *random, uint64_t *at, uint32_t count) {
    for (uint32_t i = count; i > 1; i--) {
        const uint32_t j = random_below(random, i);
        const uint64_t kept = at[i - 1];
        at[i - 1] = at[j];
        at[j] = kept;
    }
}

static inline bool random_build(lilac_layout *result, const random_space *space,
                                const random_columns *columns) {
    static const char *const inputs[4] = {"register", "lane", "warp", "block"};
    lilac_layout_init(result);
    for (uint32_t d = 0; d < space->rank; d++) {
        char name[16];
        snprintf(name, sizeof name, "dim%u", d);
        if (!lilac_layout_add_out(result, name, space->bits[d], NULL)) {
            return false;
        }
    }
    const uint64_t *at = columns->at;
    for (uint32_t i = 0; i < 4; i++) {
        if (!lilac_layout_add_in(result, inputs[i], columns->count[i], at, NULL)) {
            return false;
        }
        at += columns->count[i];
    }
    return lilac_layout_is_surjective(result);
}

static inline void random_take_apart(random_columns *columns, const lilac_layout *layout) {
    static const char *const inputs[4] = {"register", "lane", "warp", "block"};
    columns->total = 0;
    for (uint32_t i = 0; i < 4; i++) {
        columns->count[i] = lilac_layout_in_bits(layout, inputs[i]);
        for (uint32_t j = 0; j < columns->count[i]; j++) {
            columns->at[columns->total++] = lilac_layout_column(layout, inputs[i], j);
        }
    }
}

/* Adds columns to others within at[from …]: an invertible change. */
static inline void random_additions(lilac_random *random, uint64_t *at, uint32_t count,
                                    uint32_t additions) {
    for (; count > 1 && additions > 0; additions--) {
        const uint32_t to = random_below(random, count), from = random_below(random, count);
        at[to] ^= to != from ? at[from] : 0;
    }
}

static inline bool random_by_columns(lilac_layout *result, lilac_random *random, random_kind kind,
                                     const random_space *space) {
    const uint32_t bits = random_space_bits(space);
    const uint32_t threads = space->lane_bits + space->warp_bits + space->block_bits;
    /* Mostly no copies; now and then some bits of threads hold them, or of registers. */
    uint32_t copies = random_below(random, 3) == 0 ? random_below(random, 4) : 0;
    copies += random_below(random, 4) == 0 ? random_below(random, 3) : 0;
    const uint32_t least = bits + copies > threads ? bits + copies - threads : 0;
    if (least > space->register_limit || least + threads > RANDOM_MAX_COLUMNS) {
        return false;
    }
    random_columns columns = {
        .count = {least, space->lane_bits, space->warp_bits, space->block_bits},
        .total = least + threads};
    for (uint32_t i = 0; i < bits; i++) {
        columns.at[i] = UINT64_C(1) << i;
    }
    if (kind != RANDOM_DEALT) {
        random_additions(random, columns.at, bits,
                         kind == RANDOM_SUMS ? 1 + random_below(random, 5) : 40);
    }
    for (uint32_t i = bits; i < columns.total && kind == RANDOM_DENSE; i++) {
        columns.at[i] = random_below(random, 2) == 0
                            ? 0
                            : lilac_random_next(random) & ((UINT64_C(1) << bits) - 1);
    }
    random_shuffle(random, columns.at, columns.total);
    return random_build(result, space, &columns);
}

/* ---- named layouts ---------------------------------------------------------------------- */

/* Powers of two whose exponents sum to `bits`, dealt to the dims. */
static inline void random_split(lilac_random *random, uint32_t *sizes, uint32_t rank,
                                uint32_t bits) {
    for (uint32_t d = 0; d < rank; d++) {
        sizes[d] = 1;
    }
    for (; bits > 0; bits--) {
        sizes[random_below(random, rank)] *= 2;
    }
}

static inline void random_blocks(lilac_random *random, lilac_encoding *encoding, uint32_t bits) {
    uint32_t next[LILAC_MAX_RANK];
    for (uint32_t d = 0; d < encoding->rank; d++) {
        next[d] = 1;
    }
    encoding->blocks.bits = bits;
    for (uint32_t i = 0; i < bits; i++) {
        memset(encoding->blocks.basis[i], 0, sizeof encoding->blocks.basis[i]);
        const uint32_t d = random_below(random, encoding->rank + 1);
        if (d < encoding->rank) { /* else all blocks of this bit hold copies */
            encoding->blocks.basis[i][d] = next[d];
            next[d] *= 2;
        }
    }
}

static inline void random_blocked(lilac_random *random, lilac_encoding *encoding, uint32_t rank,
                                  const random_space *space) {
    uint32_t size[LILAC_MAX_RANK], lanes[LILAC_MAX_RANK], warps[LILAC_MAX_RANK];
    uint32_t order[LILAC_MAX_RANK];
    random_split(random, size, rank, random_below(random, 5));
    random_split(random, lanes, rank, space->lane_bits);
    random_split(random, warps, rank, space->warp_bits);
    for (uint32_t d = 0; d < rank; d++) {
        const uint32_t at = random_below(random, d + 1);
        order[d] = at < d ? order[at] : d;
        order[at] = d;
    }
    lilac_encoding_blocked(encoding, rank, size, lanes, warps, order);
    random_blocks(random, encoding, space->block_bits);
}

/* Matrix units of 32 lanes: mma of version 2 or 3; of 64: mfma. */
static inline bool random_mma(lilac_random *random, lilac_encoding *encoding,
                              const random_space *space) {
    uint32_t warps[2];
    random_split(random, warps, 2, space->warp_bits);
    if (space->lane_bits == 6) {
        static const uint32_t shapes[2][3] = {{32, 32, 8}, {16, 16, 16}};
        if (!lilac_encoding_amd_mfma(encoding, 2, 3, shapes[random_below(random, 2)],
                                     random_below(random, 2), 0, warps, NULL)) {
            return false;
        }
    } else if (space->warp_bits >= 2 && random_below(random, 2) == 0) {
        const uint32_t groups[2] = {4, 1U << (space->warp_bits - 2)};
        const uint32_t shape[3] = {16, 8U << random_below(random, 5), 16};
        lilac_encoding_nvidia_mma(encoding, 3, 0, 2, groups, shape);
    } else {
        lilac_encoding_nvidia_mma(encoding, 2, 0, 2, warps, (const uint32_t[]){16, 8});
    }
    random_blocks(random, encoding, space->block_bits);
    return true;
}

static inline bool random_named(lilac_layout *result, lilac_random *random, lilac_context *context,
                                random_kind kind, const random_space *space) {
    lilac_encoding parent = {0}, child = {0};
    const lilac_encoding *encoding = &parent;
    if (kind == RANDOM_BLOCKED) {
        random_blocked(random, &parent, space->rank, space);
    } else if (kind == RANDOM_SLICE) {
        if (space->rank == 1 && random_below(random, 2) == 0) {
            if (!random_mma(random, &parent, space)) {
                return false;
            }
        } else {
            random_blocked(random, &parent, space->rank + 1, space);
        }
        lilac_encoding_slice(&child, random_below(random, space->rank + 1), &parent);
        encoding = &child;
    } else if (space->rank != 2 || !random_mma(random, &parent, space)) {
        return false;
    } else if (kind == RANDOM_OPERAND) {
        if (parent.kind != LILAC_ENCODING_NVIDIA_MMA) {
            return false;
        }
        const uint32_t operand =
            parent.as.nvidia_mma.version_major == 3 ? 0 : random_below(random, 2);
        lilac_encoding_dot_operand(&child, operand, &parent, 1U << random_below(random, 4));
        encoding = &child;
    }
    int64_t shape[RANDOM_MAX_RANK];
    for (uint32_t d = 0; d < space->rank; d++) {
        shape[d] = INT64_C(1) << space->bits[d];
    }
    const bool good = lilac_encoding_layout(context, result, encoding, space->rank, shape);
    lilac_diagnostics_reset(context);
    return good && lilac_layout_in_bits(result, "register") <= space->register_limit;
}

/* A layout of this kind; false when the space has none of it or none came up: ask again. */
static inline bool random_layout(lilac_layout *result, lilac_random *random, lilac_context *context,
                                 random_kind kind, const random_space *space) {
    return kind <= RANDOM_DENSE ? random_by_columns(result, random, kind, space)
                                : random_named(result, random, context, kind, space);
}

/* ---- pairs ------------------------------------------------------------------------------ */

/* Another order, and now and then sums, of the columns from … to. */
static inline void random_mix(lilac_random *random, random_columns *columns, uint32_t from,
                              uint32_t to) {
    uint64_t *at = columns->at + from;
    const uint32_t count = to - from;
    switch (random_below(random, 4)) {
    case 0: /* a few bits change places */
        for (uint32_t n = 1 + random_below(random, 3); count > 1 && n > 0; n--) {
            const uint32_t i = random_below(random, count), j = random_below(random, count);
            const uint64_t kept = at[i];
            at[i] = at[j];
            at[j] = kept;
        }
        break;
    case 1:
        random_additions(random, at, count, 1 + random_below(random, 4));
        break;
    case 2:
        random_shuffle(random, at, count);
        random_additions(random, at, count, random_below(random, 20));
        break;
    default:
        random_shuffle(random, at, count);
    }
}

/* A second layout of the first one's tensor in the same threads. */
static inline bool random_related(lilac_layout *result, lilac_random *random,
                                  random_relation relation, const random_space *space,
                                  const lilac_layout *first) {
    random_columns columns;
    random_take_apart(&columns, first);
    const uint32_t registers = columns.count[0], warps = registers + columns.count[1];
    const uint32_t blocks = warps + columns.count[2];
    uint32_t to = registers;
    if (relation == RANDOM_SAME_WARPS) {
        to = warps;
    } else if (relation == RANDOM_SOME_WARPS) {
        to = warps + (columns.count[2] > 0 ? random_below(random, columns.count[2] + 1) : 0);
    }
    random_mix(random, &columns, 0, to);
    /* What a bit of the warp's or the block's number adds to every register of its thread. */
    for (uint32_t n = random_below(random, 3); relation != RANDOM_SAME_THREADS && n > 0 && to > 0;
         n--) {
        if (to < blocks && random_below(random, 2) == 0) {
            columns.at[to + random_below(random, blocks - to)] ^=
                columns.at[random_below(random, to)];
        }
    }
    /* Copies among the registers: sums of other registers' columns, or zeros. */
    for (uint32_t n = random_below(random, 3);
         n > 0 && random_below(random, 2) == 0 && columns.count[0] < space->register_limit &&
         columns.total < RANDOM_MAX_COLUMNS;
         n--) {
        const uint32_t at = random_below(random, columns.count[0] + 1);
        uint64_t sum = 0;
        for (uint32_t i = 0; i < columns.count[0] && random_below(random, 2) == 0; i++) {
            sum ^= random_below(random, 2) == 0 ? columns.at[i] : 0;
        }
        memmove(columns.at + at + 1, columns.at + at, (columns.total - at) * sizeof *columns.at);
        columns.at[at] = sum;
        columns.count[0]++;
        columns.total++;
    }
    return random_build(result, space, &columns);
}

typedef struct random_pair {
    random_kind kind[2];
    random_relation relation;
    lilac_layout source, target;
} random_pair;

/* Two layouts of one tensor. */
static inline void random_pair_init(random_pair *pair, lilac_random *random, lilac_context *context,
                                    const random_space *space) {
    do {
        pair->kind[0] = (random_kind)random_below(random, RANDOM_KINDS);
    } while (!random_layout(&pair->source, random, context, pair->kind[0], space));
    pair->relation = (random_relation)random_below(random, RANDOM_RELATIONS + 2);
    if (pair->relation >= RANDOM_RELATIONS) {
        pair->relation = RANDOM_INDEPENDENT;
    }
    pair->kind[1] = pair->kind[0];
    do {
        if (pair->relation == RANDOM_INDEPENDENT) {
            pair->kind[1] = (random_kind)random_below(random, RANDOM_KINDS);
        }
    } while (!(pair->relation == RANDOM_INDEPENDENT
                   ? random_layout(&pair->target, random, context, pair->kind[1], space)
                   : random_related(&pair->target, random, pair->relation, space, &pair->source)));
}

/* A tensor of rank 1 to 3 whose elements of `element_bits` take at most 2^word_bits 32-bit words of
 * a thread, when there are no copies. */
static inline void random_space_init(random_space *space, lilac_random *random, uint32_t lane_bits,
                                     uint32_t warp_bits, uint32_t block_bits, uint32_t element_bits,
                                     uint32_t word_bits) {
    uint32_t registers = word_bits;
    for (uint32_t width = 32; width > element_bits && width > 8; width /= 2) {
        registers++;
    }
    for (uint32_t width = 32; width < element_bits && registers > 0; width *= 2) {
        registers--;
    }
    *space = (random_space){.rank = 1 + random_below(random, RANDOM_MAX_RANK),
                            .lane_bits = lane_bits,
                            .warp_bits = warp_bits,
                            .block_bits = block_bits,
                            .register_limit = registers};
    const uint32_t most = lane_bits + warp_bits + block_bits + registers;
    const uint32_t least = most > registers + 3 ? most - registers - 3 : 0;
    space->rank = random_below(random, 2) == 0 ? 2 : space->rank;
    for (uint32_t n = least + random_below(random, most - least + 1); n > 0; n--) {
        space->bits[random_below(random, space->rank)]++;
    }
}

/* The pair as two types, a tab between them: what `lilac convert` reads. */
static inline void random_pair_print(lilac_text *out, const random_pair *pair,
                                     uint32_t element_bits) {
    for (int side = 0; side < 2; side++) {
        const lilac_layout *layout = side == 0 ? &pair->source : &pair->target;
        lilac_text_puts(out, side == 0 ? "tensor<" : "\ttensor<");
        for (uint32_t d = 0; d < layout->out_count; d++) {
            lilac_text_printf(out, "%ux", 1U << layout->out[d].bits);
        }
        lilac_text_printf(out, "i%u, ", element_bits);
        lilac_encoding encoding;
        if (lilac_encoding_linear(&encoding, layout)) {
            lilac_encoding_print(out, &encoding);
        }
        lilac_text_char(out, '>');
    }
}

#endif
