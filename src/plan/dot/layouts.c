/* Units and layouts that matrix products propose.
 *
 *     D    registers   n 1, m 8, then n from 8 on, then m        (of wgmma: n 1, m 8, n 8 … n 128)
 *          lanes       n 2, n 4, m 1, m 2, m 4
 *          warps       the batch, then M and N: always the dimension that is longer in a warp, so that
 *                      the warps together load the fewest elements of A and B. wgmma: two bits along
 *                      M first
 *     FMA  registers   n 1, n 2, m 1, m 2, then n, then m
 *          lanes       n, up to 8 of them, then m
 *
 * In a cluster this is the layout of the part of a block, and the blocks have the highest bits. The parts
 * of A that blocks beside each other need are copies, as are those of B of blocks above each other. */
#include <lilac/bits.h>
#include <lilac/dot.h>

#include <string.h>

enum {
    MOST_FMA_COLUMNS = 3, /* log2 of the lanes along N */
    FMA_TILE_BITS = 2,    /* log2 of the rows and of the columns of a thread's tile */
    GROUP_WARP_BITS = 2
};

/* A layout in the making: for each dimension the bits that are not distributed yet. */
typedef struct making {
    const lilac_plan_dot_problem *problem;
    uint32_t next[3]; /* the next bit along the batch, M, N */
    uint32_t
        early[3]; /* masks of bits that are distributed already, in front of those below them */
    uint64_t registers[LILAC_LAYOUT_MAX_BITS], lanes[LILAC_LAYOUT_MAX_BITS],
        warps[LILAC_LAYOUT_MAX_BITS];
    uint32_t register_count, lane_count, warp_count;
    uint64_t blocks[LILAC_LAYOUT_MAX_BITS]; /* of an operand; those of D are added to its part */
    uint32_t block_count;
} making;

enum { ALONG_BATCH, ALONG_M, ALONG_N };

static uint32_t bits_along(const lilac_plan_dot_problem *p, uint32_t dim) {
    return dim == ALONG_BATCH ? p->batch_bits : dim == ALONG_M ? p->m_bits : p->n_bits;
}

static uint32_t left_along(const making *m, uint32_t dim) {
    const uint32_t all = (UINT32_C(1) << bits_along(m->problem, dim)) - 1;
    return (uint32_t)__builtin_popcount((all & ~m->early[dim]) >> m->next[dim]);
}

static uint32_t start_of(const lilac_plan_dot_problem *p, uint32_t dim) {
    return dim == ALONG_BATCH ? 0 : p->batch_bits + (dim == ALONG_N ? p->m_bits : 0);
}

static uint64_t coordinate(const making *m, uint32_t dim, uint32_t bit) {
    return bit < bits_along(m->problem, dim) ? UINT64_C(1) << (start_of(m->problem, dim) + bit) : 0;
}

/* The next coordinate along a dimension, 0 at its end. */
static uint64_t take(making *m, uint32_t dim) {
    while (((m->early[dim] >> m->next[dim]) & 1) != 0) {
        m->next[dim]++;
    }
    return coordinate(m, dim, m->next[dim]++);
}

/* A coordinate that is not the next one. */
static uint64_t take_early(making *m, uint32_t dim, uint32_t bit) {
    m->early[dim] |= UINT32_C(1) << bit;
    return coordinate(m, dim, bit);
}

static void take_register(making *m, uint32_t dim) {
    const uint64_t column = take(m, dim);
    if (column != 0) {
        m->registers[m->register_count++] = column;
    }
}

/* The rest of a dimension goes to registers. */
static void take_rest(making *m, uint32_t dim) {
    while (left_along(m, dim) > 0) {
        take_register(m, dim);
    }
}

static void take_warps(making *m, uint32_t count, bool chained) {
    while (m->warp_count < count) {
        uint32_t dim = ALONG_BATCH;
        if (left_along(m, ALONG_BATCH) == 0) {
            const uint32_t along_m = left_along(m, ALONG_M), along_n = left_along(m, ALONG_N);
            dim =
                along_m > 0 && (chained || along_n == 0 || along_m >= along_n) ? ALONG_M : ALONG_N;
        }
        m->warps[m->warp_count++] = take(m, dim);
    }
}

static bool build(lilac_layout *result, uint32_t rank, const uint32_t *bits, const making *m,
                  lilac_reason *why) {
    static const char *const names[] = {"dim0", "dim1", "dim2"};
    lilac_layout_init(result);
    for (uint32_t d = 0; d < rank; d++) {
        if (!lilac_layout_add_out(result, names[d], bits[d], why)) {
            return false;
        }
    }
    return lilac_layout_add_in(result, "register", m->register_count, m->registers, why) &&
           lilac_layout_add_in(result, "lane", m->lane_count, m->lanes, why) &&
           lilac_layout_add_in(result, "warp", m->warp_count, m->warps, why) &&
           lilac_layout_add_in(result, "block", m->block_count, m->blocks, why);
}

/* ---- blocks of a cluster ------------------------------------------------------------------ */

enum { LEAST_PART_M = 6, LEAST_PART_N = 3 }; /* log2 of what a wgmma needs */

/* What a block computes. */
static lilac_plan_dot_problem part_of(const lilac_plan_dot_problem *problem) {
    lilac_plan_dot_problem part = *problem;
    part.batch_bits -= problem->blocks[ALONG_BATCH];
    part.m_bits -= problem->blocks[ALONG_M];
    part.n_bits -= problem->blocks[ALONG_N];
    memset(part.blocks, 0, sizeof part.blocks);
    return part;
}

/* The dimension that two more blocks divide; ALONG_M also if no dimension is left. */
static uint32_t choose_division(const lilac_plan_dot_problem *part, bool chained) {
    if (part->batch_bits > 0) {
        return ALONG_BATCH;
    }
    const bool m = part->m_bits > LEAST_PART_M, n = part->n_bits > LEAST_PART_N;
    if (m != n) {
        return m ? ALONG_M : ALONG_N;
    }
    if (part->m_bits == 0 || part->n_bits == 0) {
        return part->n_bits == 0 ? ALONG_M : ALONG_N;
    }
    return chained || part->m_bits >= part->n_bits ? ALONG_M : ALONG_N;
}

void lilac_plan_dot_divide(lilac_plan_dot_problem *problem, const lilac_target *target,
                           bool chained) {
    memset(problem->blocks, 0, sizeof problem->blocks);
    for (uint32_t i = 0; i < log2_of(target->num_ctas); i++) {
        const lilac_plan_dot_problem part = part_of(problem);
        const uint32_t dim = choose_division(&part, chained);
        problem->blocks[dim] += bits_along(&part, dim) > 0;
    }
}

void lilac_plan_dot_divide_as(lilac_plan_dot_problem *problem, const lilac_layout_columns *d) {
    static const uint32_t which[3] = {[ALONG_BATCH] = 2, [ALONG_M] = 0, [ALONG_N] = 1};
    for (uint32_t dim = 0; dim < 3; dim++) {
        problem->blocks[dim] = 0;
        for (uint32_t i = 0; i < d->block_bits; i++) {
            problem->blocks[dim] += lilac_plan_dot_coordinate(d, d->blocks[i], which[dim]) != 0 &&
                                    problem->blocks[dim] < bits_along(problem, dim);
        }
    }
}

/* Adds the blocks to the layout of a part of D: the highest bits of each dimension. */
static bool add_blocks(lilac_layout *result, const lilac_plan_dot_problem *problem,
                       const lilac_target *target, lilac_reason *why) {
    const uint32_t all[3] = {problem->batch_bits, problem->m_bits, problem->n_bits};
    uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
    uint32_t count = 0, start = 0;
    for (uint32_t dim = 0; dim < 3; start += all[dim++]) {
        for (uint32_t i = 0; i < problem->blocks[dim]; i++) {
            columns[count++] = UINT64_C(1) << (start + all[dim] - problem->blocks[dim] + i);
        }
    }
    return lilac_layout_add_blocks(result, result, all + (3 - problem->rank),
                                   log2_of(target->num_ctas), columns, why);
}

static bool build_shaped(lilac_layout *result, const lilac_plan_dot_problem *p, uint32_t rows,
                         uint32_t columns, const making *m, lilac_reason *why) {
    const uint32_t bits[3] = {p->batch_bits, rows, columns};
    return build(result, p->rank, bits + (3 - p->rank), m, why);
}

/* ---- units -------------------------------------------------------------------------------- */

lilac_plan_dot_unit lilac_plan_dot_choose(lilac_matrix_shape *shape,
                                          const lilac_plan_dot_problem *problem,
                                          const lilac_target *target) {
    const lilac_mma *best = NULL, *row;
    for (size_t i = 0; (row = lilac_mma_at(i)) != NULL; i++) {
        const lilac_matrix_shape wanted = {problem->a, problem->b, problem->d,
                                           row->m,     row->n,     row->k};
        if (lilac_mma_find(&wanted) != row || !lilac_mma_has(target->arch, row)) {
            continue;
        }
        /* the largest whose inner indices K fills; otherwise the one with the fewest */
        const bool fits = row->k <= 1U << problem->k_bits;
        const bool best_fits = best != NULL && best->k <= 1U << problem->k_bits;
        if (best == NULL || (fits && !best_fits) ||
            (fits == best_fits &&
             (fits ? row->m * row->k > best->m * best->k : row->k < best->k))) {
            best = row;
        }
    }
    if (best == NULL || target->arch->warp_size != 32) {
        *shape = (lilac_matrix_shape){problem->a, problem->b, problem->d, 1, 1, 1};
        return LILAC_PLAN_DOT_FMA;
    }
    *shape = (lilac_matrix_shape){problem->a, problem->b, problem->d, best->m, best->n, best->k};
    return LILAC_PLAN_DOT_MMA;
}

bool lilac_plan_dot_choose_wgmma(lilac_matrix_shape *shape, const lilac_plan_dot_problem *problem,
                                 const lilac_target *target) {
    *shape = (lilac_matrix_shape){problem->a, problem->b, problem->d, 64, 8, 0};
    const lilac_wgmma *row = lilac_wgmma_find(shape);
    const lilac_plan_dot_problem part = part_of(problem);
    if (!lilac_arch_has(target->arch, LILAC_HAS_WGMMA) || row == NULL || problem->rank != 2 ||
        target->num_warps % 4 != 0 || part.m_bits < LEAST_PART_M || part.n_bits < LEAST_PART_N ||
        1U << problem->k_bits < row->k) {
        return false;
    }
    /* the columns of one group of warps: as many groups as there are lie along M first */
    const uint32_t groups = log2_of(target->num_warps) - GROUP_WARP_BITS;
    const uint32_t along_m = part.m_bits - LEAST_PART_M;
    const uint32_t along_n = groups > along_m ? groups - along_m : 0;
    const uint32_t columns = part.n_bits > along_n ? part.n_bits - along_n : 0;
    shape->n = 1U << (columns < 3 ? 3 : columns > 8 ? 8 : columns);
    shape->k = row->k;
    return lilac_wgmma_has_columns(row, shape->n);
}

/* ---- layouts of D ------------------------------------------------------------------------- */

/* Rows of wgmma whose A has words that are contiguous along M, in rows of 128 bytes with the swizzle
 * of 128 bytes: word (k, m) is at 32 k + (m ^ 4 (k % 8)). The lanes of a fragment have k 1 and k 2,
 * which exchange words 4 and 8. With m 16 in a lane, and registers and lanes for m 1 to m 8, the
 * words that a part of a warp loads at once are in different banks:
 *
 *     four words a thread     8 lanes     k 1, k 2, m 16             where a group has a further row
 *     two words              16 lanes     k 1, k 2, m 2, m 16                 bit for registers */
static void take_word_rows(making *m, uint32_t warps) {
    enum { FAR = 4 /* m 16 */, INSTRUCTION_BITS = LEAST_PART_M };
    const uint32_t groups = warps - GROUP_WARP_BITS;
    const bool four = m->problem->m_bits > INSTRUCTION_BITS + groups;
    take_register(m, ALONG_M);
    if (four) {
        take_register(m, ALONG_M);
        m->lanes[m->lane_count++] = take_early(m, ALONG_M, FAR);
        m->lanes[m->lane_count++] = take(m, ALONG_M);
    } else {
        m->lanes[m->lane_count++] = take(m, ALONG_M);
        m->lanes[m->lane_count++] = take_early(m, ALONG_M, FAR);
    }
    m->lanes[m->lane_count++] = take(m, ALONG_M);
}

static void take_rows(making *m, const lilac_matrix_shape *shape, uint32_t warps,
                      lilac_plan_dot_rows rows) {
    if (rows == LILAC_PLAN_DOT_WORD_ROWS) {
        take_word_rows(m, warps);
        return;
    }
    if (rows == LILAC_PLAN_DOT_ROW_PAIRS) {
        take_register(m, ALONG_M);
    }
    for (uint32_t i = 0; i < 3; i++) {
        m->lanes[m->lane_count++] = take(m, ALONG_M);
    }
    if (shape->m > 8 && rows == LILAC_PLAN_DOT_USUAL_ROWS) {
        take_register(m, ALONG_M);
    }
}

static void make_matrix_result(making *m, bool wgmma, const lilac_matrix_shape *shape,
                               const lilac_target *target, lilac_plan_dot_wishes wishes) {
    const uint32_t warps = log2_of(target->num_warps);
    take_register(m, ALONG_N);
    m->lanes[m->lane_count++] = take(m, ALONG_N);
    m->lanes[m->lane_count++] = take(m, ALONG_N);
    take_rows(m, shape, warps, wishes.rows);
    if (wgmma) {
        m->warps[m->warp_count++] = take(m, ALONG_M);
        m->warps[m->warp_count++] = take(m, ALONG_M);
        /* more groups: along M while it lasts, then along N above the instruction's columns */
        uint32_t along_n = 0;
        while (m->warp_count < warps && left_along(m, ALONG_M) > 0) {
            m->warps[m->warp_count++] = take(m, ALONG_M);
        }
        along_n = warps - m->warp_count;
        while (left_along(m, ALONG_N) > along_n) {
            take_register(m, ALONG_N);
        }
        while (m->warp_count < warps) {
            m->warps[m->warp_count++] = take(m, ALONG_N);
        }
    } else {
        take_warps(m, warps, wishes.chained);
    }
    take_rest(m, ALONG_N);
    take_rest(m, ALONG_M);
    take_rest(m, ALONG_BATCH);
}

static void make_fma_result(making *m, const lilac_target *target) {
    const uint32_t lanes = log2_of(target->arch->warp_size);
    const uint32_t threads = lanes + log2_of(target->num_warps);
    const uint32_t all = m->problem->batch_bits + m->problem->m_bits + m->problem->n_bits;
    uint32_t spare = all > threads ? all - threads : 0; /* bits that registers must hold */
    for (uint32_t i = 0; i < FMA_TILE_BITS && spare > 0 && left_along(m, ALONG_N) > 0; i++) {
        take_register(m, ALONG_N);
        spare--;
    }
    for (uint32_t i = 0; i < FMA_TILE_BITS && spare > 0 && left_along(m, ALONG_M) > 0; i++) {
        take_register(m, ALONG_M);
        spare--;
    }
    while (m->lane_count < lanes) {
        const bool along_n = left_along(m, ALONG_N) > 0 &&
                             (m->lane_count < MOST_FMA_COLUMNS || left_along(m, ALONG_M) == 0);
        m->lanes[m->lane_count++] = take(m, along_n                      ? ALONG_N
                                            : left_along(m, ALONG_M) > 0 ? ALONG_M
                                                                         : ALONG_BATCH);
    }
    take_warps(m, log2_of(target->num_warps), false);
    take_rest(m, ALONG_N);
    take_rest(m, ALONG_M);
    take_rest(m, ALONG_BATCH);
}

bool lilac_plan_dot_result_layout(lilac_layout *result, const lilac_plan_dot_problem *problem,
                                  lilac_plan_dot_unit unit, const lilac_matrix_shape *shape,
                                  const lilac_target *target, lilac_plan_dot_wishes wishes,
                                  lilac_reason *why) {
    const lilac_plan_dot_problem part = part_of(problem);
    making m = {.problem = &part};
    if (unit == LILAC_PLAN_DOT_FMA) {
        make_fma_result(&m, target);
    } else {
        make_matrix_result(&m, unit == LILAC_PLAN_DOT_WGMMA, shape, target, wishes);
    }
    return build_shaped(result, &part, part.m_bits, part.n_bits, &m, why) &&
           add_blocks(result, problem, target, why);
}

/* ---- layouts of A and B ------------------------------------------------------------------- */

enum { ROWS = 0, COLUMNS = 1, BATCH = 2 };

/* An operand in the making: its dimension that D has too lies at `kept`, K at `summed`. */
typedef struct operand_making {
    making m;
    uint32_t kept, summed; /* first bits of the flattened coordinate */
    uint32_t which;        /* the dimension of D: ROWS or COLUMNS */
    const lilac_layout_columns *d;
    uint32_t k_bits, next_k;
} operand_making;

static uint64_t take_k(operand_making *o) {
    const uint32_t bit = o->next_k++;
    return bit < o->k_bits ? UINT64_C(1) << (o->summed + bit) : 0;
}

static void take_k_register(operand_making *o) {
    const uint64_t column = take_k(o);
    if (column != 0) {
        o->m.registers[o->m.register_count++] = column;
    }
}

/* The operand's column for the elements of D that a column of D moves to. */
static uint64_t column_of(const operand_making *o, uint64_t flat) {
    return lilac_plan_dot_coordinate(o->d, flat, BATCH) |
           lilac_plan_dot_coordinate(o->d, flat, o->which) << o->kept;
}

/* The registers of D along the operand's dimension and the batch, each once. */
static void take_result_registers(operand_making *o) {
    for (uint32_t i = 0; i < o->d->register_bits; i++) {
        const uint64_t column = column_of(o, o->d->registers[i]);
        bool known = column == 0 || (o->d->distinct >> i & 1) == 0;
        for (uint32_t k = 0; k < o->m.register_count && !known; k++) {
            known = o->m.registers[k] == column;
        }
        if (!known) {
            o->m.registers[o->m.register_count++] = column;
        }
    }
}

/* The first register of D along a dimension only, as a column of the operand; 0: none. */
static uint64_t first_register(const operand_making *o, uint32_t which) {
    for (uint32_t i = 0; i < o->d->register_bits; i++) {
        const uint64_t flat = o->d->registers[i];
        const uint64_t other =
            lilac_plan_dot_coordinate(o->d, flat, which == ROWS ? COLUMNS : ROWS);
        if ((o->d->distinct >> i & 1) != 0 && other == 0 &&
            lilac_plan_dot_coordinate(o->d, flat, BATCH) == 0 &&
            lilac_plan_dot_coordinate(o->d, flat, which) != 0) {
            return column_of(o, flat);
        }
    }
    return 0;
}

static void make_fragment(operand_making *o, const lilac_matrix_shape *shape, bool is_a) {
    const uint32_t bits = lilac_matrix_type_bits(shape->a);
    const uint32_t word_bits = bits < 32 ? log2_of(32 / bits) : 0;
    const uint32_t word_registers = log2_of(shape->k) - word_bits - 2;
    making *m = &o->m;
    for (uint32_t i = 0; i < word_bits; i++) {
        take_k_register(o);
    }
    m->lanes[0] = take_k(o);
    m->lanes[1] = take_k(o);
    for (uint32_t i = 2; i < 5; i++) {
        /* B: column bit 0 is a register of D, column bits 1 and 2 are its lanes 0 and 1 */
        m->lanes[i] = is_a     ? column_of(o, o->d->threads[i])
                      : i == 2 ? first_register(o, COLUMNS)
                               : column_of(o, o->d->threads[i - 3]);
    }
    m->lane_count = 5;
    if (is_a && shape->m > 8) {
        const uint64_t row = first_register(o, ROWS);
        if (row != 0) {
            m->registers[m->register_count++] = row;
        }
    }
    for (uint32_t i = 0; i < word_registers; i++) {
        take_k_register(o);
    }
}

bool lilac_plan_dot_operand_layout(lilac_layout *result, const lilac_plan_dot_problem *problem,
                                   lilac_plan_dot_unit unit, const lilac_matrix_shape *shape,
                                   const lilac_layout_columns *d, uint32_t operand,
                                   lilac_reason *why) {
    const bool is_a = operand == 0;
    operand_making o = {.m = {.problem = problem},
                        .kept = problem->batch_bits + (is_a ? 0 : problem->k_bits),
                        .summed = problem->batch_bits + (is_a ? problem->m_bits : 0),
                        .which = is_a ? ROWS : COLUMNS,
                        .d = d,
                        .k_bits = problem->k_bits};
    if (unit == LILAC_PLAN_DOT_FMA) {
        for (uint32_t i = 0; i < d->lane_bits; i++) {
            o.m.lanes[o.m.lane_count++] = column_of(&o, d->threads[i]);
        }
    } else {
        make_fragment(&o, shape, is_a);
    }
    while (o.next_k < problem->k_bits) {
        take_k_register(&o);
    }
    const uint64_t first_column =
        !is_a && unit != LILAC_PLAN_DOT_FMA ? first_register(&o, COLUMNS) : 0;
    take_result_registers(&o);
    /* column bit 0 of an mma's B is in its lanes */
    for (uint32_t i = 0; first_column != 0 && i < o.m.register_count; i++) {
        if (o.m.registers[i] == first_column) {
            o.m.register_count--;
            memmove(o.m.registers + i, o.m.registers + i + 1,
                    (o.m.register_count - i) * sizeof *o.m.registers);
        }
    }
    for (uint32_t i = d->lane_bits; i < d->thread_bits; i++) {
        o.m.warps[o.m.warp_count++] = column_of(&o, d->threads[i]);
    }
    for (uint32_t i = 0; i < d->block_bits; i++) {
        o.m.blocks[o.m.block_count++] = column_of(&o, d->blocks[i]);
    }
    return build_shaped(result, problem, is_a ? problem->m_bits : problem->k_bits,
                        is_a ? problem->k_bits : problem->n_bits, &o.m, why);
}
