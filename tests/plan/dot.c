/* Plans of matrix products. The fragments of matrix.h say which row, column and inner index each lane
 * and register of an instruction holds. By them, each element of D is the sum of the products of its row
 * of A and its column of B, each inner index once:
 *
 *     proposed    the layouts that lilac proposes for a problem
 *     mapped      the same after random linear maps of rows, columns, inner indices and batches, with
 *                 registers in another order
 *     mutated     with random columns of any layout changed: right, or refused
 *
 * and wgmma reads each element of its operands in shared memory from the byte where the layout of the
 * memory has it. LILAC_TEST_SCALE multiplies the number of random products. */
#include <lilac/dot.h>
#include <lilac/encoding.h>

#include "support/test.h"

enum { MOST_BITS = 14, MOST_ELEMENTS = 1 << MOST_BITS, WARP_LANES = 32, GROUP_ROWS = 16 };

/* ---- products ------------------------------------------------------------------------------ */

typedef struct product {
    lilac_plan_dot_problem problem;
    lilac_plan_dot_unit unit;
    lilac_matrix_shape shape;
    lilac_target target;
    bool a_in_memory;         /* of wgmma */
    lilac_plan_dot_rows rows; /* of wgmma with A in registers */
    lilac_layout_columns a, b, d;
} product;

static const struct {
    lilac_matrix_type a, b, d;
} types[] = {
    {LILAC_MATRIX_F16, LILAC_MATRIX_F16, LILAC_MATRIX_F32},
    {LILAC_MATRIX_F16, LILAC_MATRIX_F16, LILAC_MATRIX_F16},
    {LILAC_MATRIX_BF16, LILAC_MATRIX_BF16, LILAC_MATRIX_F32},
    {LILAC_MATRIX_TF32, LILAC_MATRIX_TF32, LILAC_MATRIX_F32},
    {LILAC_MATRIX_F64, LILAC_MATRIX_F64, LILAC_MATRIX_F64},
    {LILAC_MATRIX_S8, LILAC_MATRIX_U8, LILAC_MATRIX_S32},
    {LILAC_MATRIX_E4M3, LILAC_MATRIX_E5M2, LILAC_MATRIX_F32},
    {LILAC_MATRIX_NONE, LILAC_MATRIX_NONE, LILAC_MATRIX_NONE},
};

enum { TYPE_COUNT = sizeof types / sizeof *types };

static uint32_t log2_of_power(uint32_t power) {
    return (uint32_t)__builtin_ctz(power);
}

static uint32_t lane_bits_of(const product *p) {
    return log2_of_power(p->target.arch->warp_size);
}

static uint32_t warp_bits_of(const product *p) {
    return log2_of_power(p->target.num_warps);
}

static void set_columns(lilac_layout_columns *columns, const product *p,
                        const lilac_layout *layout) {
    lilac_reason why = {""};
    assert_true(lilac_layout_is_surjective(layout));
    if (!lilac_layout_columns_init(columns, layout, lane_bits_of(p), warp_bits_of(p), 0, &why)) {
        fail_msg("%s", why.text);
    }
}

static void propose(product *p, bool chained) {
    lilac_layout layout;
    lilac_reason why = {""};
    bool good = lilac_plan_dot_result_layout(&layout, &p->problem, p->unit, &p->shape, &p->target,
                                             (lilac_plan_dot_wishes){chained, p->rows}, &why);
    set_columns(&p->d, p, &layout);
    for (uint32_t i = 0; good && i < 2; i++) {
        good =
            lilac_plan_dot_operand_layout(&layout, &p->problem, p->unit, &p->shape, &p->d, i, &why);
        set_columns(i == 0 ? &p->a : &p->b, p, &layout);
    }
    if (!good) {
        fail_msg("%s", why.text);
    }
}

static bool plan_of(lilac_plan_dot *plan, const product *p, lilac_reason *why) {
    const bool wgmma = p->unit == LILAC_PLAN_DOT_WGMMA;
    return lilac_plan_dot_init(plan, &p->problem, p->unit, &p->shape,
                               wgmma && p->a_in_memory ? NULL : &p->a, wgmma ? NULL : &p->b, &p->d,
                               why);
}

/* `large`: wgmma may compute it. */
static void choose_problem(product *p, lilac_random *random, bool large) {
    static const char *const devices[] = {"sm_80", "sm_89", "sm_90a", "sm_100a", "gfx942"};
    const uint32_t type = random_below(random, TYPE_COUNT);
    const uint32_t rank = large ? 2 : 2 + (random_below(random, 6) == 0);
    lilac_plan_dot_problem *q = &p->problem;
    p->target =
        (lilac_target){.arch = lilac_arch_find(devices[large ? 2 : random_below(random, 5)]),
                       .num_warps = 1U << ((large ? 2 : 0) + random_below(random, large ? 2 : 4)),
                       .num_ctas = 1,
                       .num_stages = 1};
    do {
        *q = (lilac_plan_dot_problem){
            .rank = rank,
            .batch_bits = rank == 3 ? random_below(random, 3) : 0,
            .m_bits = large ? 6 + random_below(random, 3) : random_below(random, 9),
            .n_bits = large ? 3 + random_below(random, 6) : random_below(random, 9),
            .k_bits = random_below(random, 8),
            .a = types[type].a,
            .b = types[type].b,
            .d = types[type].d};
    } while (q->batch_bits + q->m_bits + q->n_bits + q->k_bits > MOST_BITS + 3 ||
             q->batch_bits + q->m_bits + q->n_bits > MOST_BITS ||
             q->batch_bits + q->m_bits + q->k_bits > MOST_BITS ||
             q->batch_bits + q->k_bits + q->n_bits > MOST_BITS);
}

/* A random problem, its unit and the layouts that lilac proposes. */
static void choose_product(product *p, lilac_random *random) {
    memset(p, 0, sizeof *p);
    choose_problem(p, random, random_below(random, 2) == 0);
    p->unit = LILAC_PLAN_DOT_WGMMA;
    p->a_in_memory = random_below(random, 2) == 0;
    if (random_below(random, 6) == 0 ||
        !lilac_plan_dot_choose_wgmma(&p->shape, &p->problem, &p->target)) {
        p->unit = lilac_plan_dot_choose(&p->shape, &p->problem, &p->target);
    }
    if (p->unit == LILAC_PLAN_DOT_WGMMA && !p->a_in_memory) {
        p->rows = (lilac_plan_dot_rows)random_below(random, 3);
    }
    propose(p, random_below(random, 2) != 0);
}

/* ---- what an instruction computes ----------------------------------------------------------- */

/* The element that a register of a thread holds. */
static uint64_t held(const lilac_layout_columns *columns, uint32_t thread, uint32_t r) {
    uint64_t flat = 0;
    for (uint32_t i = 0; i < columns->thread_bits; i++) {
        flat ^= thread >> i & 1 ? columns->threads[i] : 0;
    }
    for (uint32_t i = 0; i < columns->register_bits; i++) {
        flat ^= r >> i & 1 ? columns->registers[i] : 0;
    }
    return flat;
}

static uint64_t sum_of(const uint64_t *vectors, uint32_t bits, uint32_t index) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < bits; i++) {
        sum ^= index >> i & 1 ? vectors[i] : 0;
    }
    return sum;
}

/* The inner index of an instruction has a bit that K lacks: the element is a zero. */
static bool is_beyond(const lilac_plan_dot *plan, uint32_t inner) {
    for (uint32_t i = 0; i < plan->inner_bits; i++) {
        if ((inner >> i & 1) != 0 && plan->inner[i] == 0) {
            return true;
        }
    }
    return false;
}

/* A flattened coordinate of D, A or B, whose dimensions are the batch, then `first`, then another. */
static uint64_t flat_of(const product *p, uint32_t first_bits, uint64_t batch, uint64_t first,
                        uint64_t second) {
    return batch | first << p->problem.batch_bits | second << (p->problem.batch_bits + first_bits);
}

/* The batch, row and column of an element of D. */
typedef struct place {
    uint64_t batch, row, column;
} place;

static place place_of(const product *p, uint64_t flat) {
    const uint32_t batch = p->problem.batch_bits, rows = batch + p->problem.m_bits;
    return (place){flat & ((1U << batch) - 1), flat >> batch & ((1U << p->problem.m_bits) - 1),
                   flat >> rows};
}

/* Where an instruction has what register number `index` of a thread holds: the row of A or column of B
 * and the word along k, or the row and column of D. */
static void find_in_instruction(const product *p, char matrix, uint32_t thread, uint32_t index,
                                uint32_t *outer, uint32_t *other) {
    const uint32_t lane = thread % WARP_LANES, warp = thread / WARP_LANES % 4;
    const bool wgmma = p->unit == LILAC_PLAN_DOT_WGMMA;
    const uint32_t rows = wgmma ? GROUP_ROWS : p->shape.m;
    if (p->unit == LILAC_PLAN_DOT_FMA) {
        *outer = *other = 0;
        return;
    }
    if (matrix == 'a') {
        lilac_matrix_a_place(rows, lane, index, outer, other);
    } else if (matrix == 'b') {
        lilac_matrix_b_place(lane, index, outer, other);
    } else {
        lilac_matrix_d_place(rows, lane, index, outer, other);
    }
    *outer += wgmma && matrix != 'b' ? GROUP_ROWS * warp : 0;
}

/* The threads that execute one instruction together differ in these bits. */
static uint32_t threads_of_instruction(const product *p) {
    return p->unit == LILAC_PLAN_DOT_FMA ? 1 : p->unit == LILAC_PLAN_DOT_MMA ? 32 : 128;
}

static uint32_t deposit(uint32_t index, uint32_t mask) {
    uint32_t result = 0;
    for (; mask != 0; mask &= mask - 1, index >>= 1) {
        result |= index & 1 ? mask & -mask : 0;
    }
    return result;
}

/* Each inner index of the tensors occurs once. */
static void check_inner(const product *p, const lilac_plan_dot *plan) {
    bool seen[1 << 8] = {false};
    uint32_t count = 0;
    for (uint32_t s = 0; s >> plan->step_bits == 0; s++) {
        for (uint32_t i = 0; i >> plan->inner_bits == 0; i++) {
            const uint64_t k =
                sum_of(plan->step, plan->step_bits, s) ^ sum_of(plan->inner, plan->inner_bits, i);
            if (is_beyond(plan, i)) {
                continue;
            }
            assert_true(k >> p->problem.k_bits == 0);
            if (seen[k]) {
                fail_msg("inner index %u is added twice", (unsigned)k);
            }
            seen[k] = true;
            count++;
        }
    }
    assert_int_equal(count, 1U << p->problem.k_bits);
}

/* The accumulators of the instruction at register `base` of D are its elements. */
static void check_accumulators(const product *p, const lilac_plan_dot *plan, uint32_t base,
                               bool *covered) {
    const uint32_t threads = 1U << p->d.thread_bits, group = threads_of_instruction(p);
    assert_int_equal(group << plan->element_bits, p->shape.m * p->shape.n);
    for (uint32_t e = 0; e >> plan->element_bits == 0; e++) {
        uint32_t r = base;
        for (uint32_t i = 0; i < plan->element_bits; i++) {
            const int8_t bit = plan->element_register[i];
            r ^= (e >> i & 1) != 0 && bit >= 0 ? 1U << bit : 0;
        }
        covered[r] = true;
        for (uint32_t t = 0; t < threads; t++) {
            uint32_t row, column;
            find_in_instruction(p, 'd', t, e, &row, &column);
            const uint64_t wanted =
                held(&p->d, t / group * group, base) ^
                flat_of(p, p->problem.m_bits, 0, sum_of(plan->row, plan->row_bits, row),
                        sum_of(plan->column, plan->column_bits, column));
            assert_int_equal(held(&p->d, t, r), wanted);
        }
    }
}

/* Where thread 0 has each element of an operand; -1: nowhere. */
static void find_registers(const lilac_layout_columns *columns, int32_t *registers) {
    memset(registers, 0xFF, MOST_ELEMENTS * sizeof *registers);
    for (uint32_t r = 0; r >> columns->register_bits == 0; r++) {
        registers[held(columns, 0, r)] = (int32_t)r;
    }
}

/* One element of an operand of the instruction at `base`, for inner coordinate `step`. The register is the
 * same in all threads. False: thread 0 has none. */
static bool check_element(const product *p, const lilac_plan_dot *plan, bool is_a, uint32_t base,
                          uint64_t step, uint32_t index, uint32_t part, const int32_t *registers) {
    const lilac_layout_columns *columns = is_a ? &p->a : &p->b;
    const uint32_t threads = 1U << p->d.thread_bits, group = threads_of_instruction(p);
    int32_t r = -1;
    for (uint32_t t = 0; t < threads; t++) {
        uint32_t outer, word;
        find_in_instruction(p, is_a ? 'a' : 'b', t, index, &outer, &word);
        const uint32_t inner = word << plan->word_bits | part;
        if (is_beyond(plan, inner)) {
            continue;
        }
        const place origin = place_of(p, held(&p->d, t / group * group, base));
        const uint64_t k = step ^ sum_of(plan->inner, plan->inner_bits, inner);
        const uint64_t wanted =
            is_a ? flat_of(p, p->problem.m_bits, origin.batch,
                           origin.row ^ sum_of(plan->row, plan->row_bits, outer), k)
                 : flat_of(p, p->problem.k_bits, origin.batch, k,
                           origin.column ^ sum_of(plan->column, plan->column_bits, outer));
        if (t == 0 && registers[wanted] < 0) {
            return false;
        }
        r = t == 0 ? registers[wanted] : r;
        if (held(columns, t, (uint32_t)r) != wanted) {
            fail_msg("%c: thread %u has element 0x%x where the instruction needs 0x%x",
                     is_a ? 'A' : 'B', t, (unsigned)held(columns, t, (uint32_t)r),
                     (unsigned)wanted);
        }
    }
    return true;
}

static bool check_operand(const product *p, const lilac_plan_dot *plan, bool is_a, uint32_t base) {
    static int32_t registers[MOST_ELEMENTS];
    const uint32_t words = p->unit == LILAC_PLAN_DOT_FMA ? 1
                           : is_a ? lilac_matrix_a_registers(&p->shape, threads_of_instruction(p))
                                  : lilac_matrix_b_registers(&p->shape, 32);
    find_registers(is_a ? &p->a : &p->b, registers);
    for (uint32_t s = 0; s >> plan->step_bits == 0; s++) {
        for (uint32_t i = 0; i < words << plan->word_bits; i++) {
            if (!check_element(p, plan, is_a, base, sum_of(plan->step, plan->step_bits, s),
                               i >> plan->word_bits, i & ((1U << plan->word_bits) - 1),
                               registers)) {
                return false;
            }
        }
    }
    return true;
}

/* All elements of D are the sums that they should be. False: an operand has no register for an element,
 * which the lowering refuses. */
static bool check_plan(const product *p, const lilac_plan_dot *plan) {
    static bool covered[MOST_ELEMENTS];
    const uint32_t blocks = p->d.distinct & ~plan->instruction_registers;
    memset(covered, 0, sizeof covered);
    check_inner(p, plan);
    for (uint32_t i = 0; i >> __builtin_popcount(blocks) == 0; i++) {
        const uint32_t base = deposit(i, blocks);
        check_accumulators(p, plan, base, covered);
        if ((p->unit != LILAC_PLAN_DOT_WGMMA || !p->a_in_memory) &&
            !check_operand(p, plan, true, base)) {
            return false;
        }
        if (p->unit != LILAC_PLAN_DOT_WGMMA && !check_operand(p, plan, false, base)) {
            return false;
        }
    }
    for (uint32_t r = 0; r >> p->d.register_bits == 0; r++) {
        assert_true(covered[r] || (r & ~p->d.distinct) != 0);
    }
    return true;
}

static void describe(const product *p, uint64_t seed) {
    static const char *const units[] = {"fma", "mma", "wgmma"};
    const lilac_plan_dot_problem *q = &p->problem;
    print_message(
        "product %llu: %s of %s, %u warps, %s · %s → %s, bits: batch %u, m %u, n %u, k %u; "
        "instruction %u × %u × %u\n",
        (unsigned long long)seed, units[p->unit], p->target.arch->name, p->target.num_warps,
        lilac_matrix_type_name(q->a), lilac_matrix_type_name(q->b), lilac_matrix_type_name(q->d),
        q->batch_bits, q->m_bits, q->n_bits, q->k_bits, p->shape.m, p->shape.n, p->shape.k);
}

/* The plan of a product that must have one. */
static void expect_right(const product *p, uint64_t seed) {
    lilac_plan_dot plan;
    lilac_reason why = {""};
    if (!plan_of(&plan, p, &why)) {
        describe(p, seed);
        fail_msg("%s", why.text);
    }
    if (!check_plan(p, &plan)) {
        describe(p, seed);
        fail_msg("an operand has no register for an element");
    }
}

/* ---- proposed and mapped layouts -------------------------------------------------------------- */

static void proposed_layouts(void **state) {
    (void)state;
    lilac_random random;
    uint32_t units[3] = {0};
    lilac_random_seed(&random, 1);
    for (uint32_t i = 0; i < scaled(240); i++) {
        product p;
        choose_product(&p, &random);
        units[p.unit]++;
        expect_right(&p, i);
    }
    print_message("%u by fma, %u by mma, %u by wgmma\n", units[0], units[1], units[2]);
    assert_true(units[0] > 20 && units[1] > 20 && units[2] > 20);
}

/* An invertible map: a product of elementary ones. */
static void random_map(uint64_t *columns, lilac_random *random, uint32_t bits) {
    for (uint32_t i = 0; i < bits; i++) {
        columns[i] = UINT64_C(1) << i;
    }
    for (uint32_t i = 0; bits > 1 && i < 4 * bits; i++) {
        const uint32_t to = random_below(random, bits), from = random_below(random, bits - 1);
        columns[to] ^= columns[from + (from >= to)];
    }
}

/* Maps each dimension of a layout on its own. `maps`: the batch's, then those of the dimensions. */
static void map_columns(const product *p, lilac_layout_columns *columns, uint32_t first_bits,
                        uint64_t (*const maps[3])[8]) {
    const uint32_t batch = p->problem.batch_bits, all = columns->out_bits;
    uint64_t *lists[2] = {columns->registers, columns->threads};
    const uint32_t counts[2] = {columns->register_bits, columns->thread_bits};
    for (uint32_t l = 0; l < 2; l++) {
        for (uint32_t i = 0; i < counts[l]; i++) {
            const uint32_t flat = (uint32_t)lists[l][i];
            lists[l][i] =
                flat_of(p, first_bits, sum_of(*maps[0], batch, flat),
                        sum_of(*maps[1], first_bits, flat >> batch),
                        sum_of(*maps[2], all - batch - first_bits, flat >> (batch + first_bits)));
        }
    }
}

static void reorder_registers(lilac_layout_columns *columns, lilac_random *random) {
    for (uint32_t i = columns->register_bits; i > 1; i--) {
        const uint32_t k = random_below(random, i);
        const uint64_t kept = columns->registers[i - 1];
        columns->registers[i - 1] = columns->registers[k];
        columns->registers[k] = kept;
    }
    lilac_layout_columns_find_replicated(columns);
}

static void map_product(product *p, lilac_random *random) {
    uint64_t batches[8], rows[8], columns[8], inner[8];
    random_map(batches, random, p->problem.batch_bits);
    random_map(rows, random, p->problem.m_bits);
    random_map(columns, random, p->problem.n_bits);
    random_map(inner, random, p->problem.k_bits);
    map_columns(p, &p->a, p->problem.m_bits, (uint64_t(*const[3])[8]){&batches, &rows, &inner});
    map_columns(p, &p->b, p->problem.k_bits, (uint64_t(*const[3])[8]){&batches, &inner, &columns});
    map_columns(p, &p->d, p->problem.m_bits, (uint64_t(*const[3])[8]){&batches, &rows, &columns});
    reorder_registers(&p->a, random);
    reorder_registers(&p->b, random);
    reorder_registers(&p->d, random);
}

static void mapped_layouts(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 2);
    for (uint32_t i = 0; i < scaled(240); i++) {
        product p;
        choose_product(&p, &random);
        map_product(&p, &random);
        expect_right(&p, i);
    }
}

/* ---- layouts that do not agree -------------------------------------------------------------- */

/* Another vector in a column of one layout, or the same vector in the same lane of A and B. */
static void mutate(product *p, lilac_random *random) {
    lilac_layout_columns *const all[3] = {&p->a, &p->b, &p->d};
    lilac_layout_columns *c = all[random_below(random, 3)];
    const uint64_t all_bits = (UINT64_C(1) << c->out_bits) - 1;
    const uint32_t t = random_below(random, c->thread_bits);
    switch (random_below(random, 4)) {
    case 0:
        c->threads[t] = lilac_random_next(random) & all_bits;
        break;
    case 1:
        c->threads[t] ^= c->register_bits > 0 ? c->registers[random_below(random, c->register_bits)]
                                              : c->threads[random_below(random, c->thread_bits)];
        break;
    case 2:
        if (c->register_bits > 0) {
            c->registers[random_below(random, c->register_bits)] ^=
                lilac_random_next(random) & all_bits;
        }
        break;
    default: /* two lanes or warps, exchanged in all layouts */
        for (uint32_t i = 0, u = random_below(random, c->thread_bits); i < 3; i++) {
            const uint64_t kept = all[i]->threads[t];
            all[i]->threads[t] = all[i]->threads[u];
            all[i]->threads[u] = kept;
        }
        break;
    }
    for (uint32_t i = 0; i < 3; i++) {
        lilac_layout_columns_find_replicated(all[i]);
    }
}

static void mutated_layouts(void **state) {
    (void)state;
    lilac_random random;
    uint32_t right = 0, refused = 0, without_register = 0;
    lilac_random_seed(&random, 3);
    for (uint32_t i = 0; i < scaled(700); i++) {
        product p;
        lilac_plan_dot plan;
        lilac_reason why = {""};
        choose_product(&p, &random);
        map_product(&p, &random);
        mutate(&p, &random);
        if (!plan_of(&plan, &p, &why)) {
            assert_true(strlen(why.text) > 20);
            refused++;
        } else if (check_plan(&p, &plan)) {
            right++;
        } else {
            without_register++;
        }
    }
    print_message("%u right, %u refused, %u without a register for an element\n", right, refused,
                  without_register);
    assert_true(right > 100 && refused > 100 && without_register > 10);
}

/* A lane and a register may hold the same elements of A and B. An instruction would add the products of
 * such an inner index twice. */
static void replicated_inner_indices(void **state) {
    (void)state;
    for (uint32_t lane = 0; lane < 2; lane++) {
        for (uint32_t form = 0; form < 3; form++) {
            product p = {
                .problem = {2, 0, 4, 3, 5, LILAC_MATRIX_F16, LILAC_MATRIX_F16, LILAC_MATRIX_F32},
                .target = {lilac_arch_find("sm_80"), 1, 1, 1}};
            p.unit = lilac_plan_dot_choose(&p.shape, &p.problem, &p.target);
            propose(&p, false);
            lilac_layout_columns *const both[2] = {&p.a, &p.b};
            for (uint32_t i = 0; i < 2; i++) {
                lilac_layout_columns *c = both[i];
                const uint64_t old = c->threads[lane];
                /* the lane's elements move to a register; the lane has none, the same, others */
                memmove(c->registers + 1, c->registers, c->register_bits++ * sizeof *c->registers);
                c->registers[0] = old;
                c->threads[lane] = form == 0 ? 0 : form == 1 ? old : old ^ c->registers[1];
                lilac_layout_columns_find_replicated(c);
            }
            lilac_plan_dot plan;
            lilac_reason why = {""};
            if (form == 0) {
                expect_right(&p, 0);
            } else if (plan_of(&plan, &p, &why)) {
                assert_true(check_plan(&p, &plan));
            } else {
                assert_string_equal(why.text, "lanes 0 and 1 of A hold the same inner indices");
            }
        }
    }
}

/* The first thing that differs is named. */
static void disagreements_are_named(void **state) {
    (void)state;
    static const struct {
        char matrix;
        uint32_t thread; /* bit 0 … 4: lanes, then warps */
        uint64_t column;
        const char *reason;
    } cases[] = {
        /* D is 32 × 32 and K is 32: bits 0 … 4 of a coordinate are rows of A and D, or K of B */
        {'d', 0, 1, "the lanes of the result are not those of the instruction"},
        {'d', 2, 1 << 5, "the lanes of the result are not those of the instruction"},
        {'b', 2, 1 << 6, "the columns of the result are not those of B"},
        {'a', 1, 2, "lanes 0 and 1 of A do not lie along K"},
        {'a', 3, 4,
         "lanes that differ in bit 3 of A hold other elements than the instruction needs"},
        {'b', 0, 1,
         "lanes that differ in bit 0 of B hold other elements than the instruction needs"},
        {'a', 5, 1, "warps, bit 0 of A hold other elements than the instruction needs"},
        {'b', 6, 1 << 5, "warps, bit 1 of B hold other elements than the instruction needs"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        product p = {
            .problem = {2, 0, 5, 5, 5, LILAC_MATRIX_F16, LILAC_MATRIX_F16, LILAC_MATRIX_F32},
            .target = {lilac_arch_find("sm_80"), 4, 1, 1}};
        lilac_plan_dot plan;
        lilac_reason why = {""};
        p.unit = lilac_plan_dot_choose(&p.shape, &p.problem, &p.target);
        propose(&p, false);
        expect_right(&p, i);
        lilac_layout_columns *c = cases[i].matrix == 'a'   ? &p.a
                                  : cases[i].matrix == 'b' ? &p.b
                                                           : &p.d;
        c->threads[cases[i].thread] = cases[i].column;
        lilac_layout_columns_find_replicated(c);
        assert_false(plan_of(&plan, &p, &why));
        assert_string_equal(why.text, cases[i].reason);
    }
}

static void other_refusals(void **state) {
    (void)state;
    product p = {.problem = {2, 0, 6, 6, 5, LILAC_MATRIX_F16, LILAC_MATRIX_F16, LILAC_MATRIX_F32},
                 .target = {lilac_arch_find("sm_90a"), 2, 1, 1}};
    lilac_plan_dot plan;
    lilac_reason why = {""};
    p.unit = lilac_plan_dot_choose(&p.shape, &p.problem, &p.target);
    propose(&p, false);
    p.unit = LILAC_PLAN_DOT_WGMMA;
    p.shape.m = 64;
    assert_false(plan_of(&plan, &p, &why));
    assert_string_equal(why.text, "the instruction needs more lanes or warps");

    product fma = {
        .problem = {2, 0, 5, 5, 5, LILAC_MATRIX_NONE, LILAC_MATRIX_NONE, LILAC_MATRIX_NONE},
        .target = {lilac_arch_find("sm_80"), 4, 1, 1}};
    fma.unit = lilac_plan_dot_choose(&fma.shape, &fma.problem, &fma.target);
    propose(&fma, false);
    fma.a.threads[3] ^= 1 << 5; /* along K */
    lilac_layout_columns_find_replicated(&fma.a);
    assert_false(plan_of(&plan, &fma, &why));
    assert_string_equal(why.text,
                        "the threads do not hold the rows of A and the columns of B that their "
                        "elements of the result need");
}

/* ---- units ---------------------------------------------------------------------------------- */

/* No instruction of the device for the types has more products and inner indices that K fills. */
static void largest_instructions_are_chosen(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 4);
    for (uint32_t i = 0; i < scaled(2000); i++) {
        product p = {.unit = LILAC_PLAN_DOT_FMA};
        const lilac_mma *row;
        bool any = false;
        choose_problem(&p, &random, false);
        const lilac_plan_dot_unit unit = lilac_plan_dot_choose(&p.shape, &p.problem, &p.target);
        const uint32_t k = 1U << p.problem.k_bits, chosen = p.shape.m * p.shape.k;
        for (size_t r = 0; (row = lilac_mma_at(r)) != NULL; r++) {
            const bool same = row->kind == lilac_matrix_type_class(p.problem.a) &&
                              row->d == p.problem.d && lilac_mma_has(p.target.arch, row);
            any |= same;
            assert_false(same && row->k <= k && (p.shape.k > k || row->m * row->k > chosen));
            assert_false(same && p.shape.k > k && row->k < p.shape.k);
        }
        assert_int_equal(unit, any ? LILAC_PLAN_DOT_MMA : LILAC_PLAN_DOT_FMA);
        if (any) {
            row = lilac_mma_find(&p.shape);
            assert_true(row != NULL && lilac_mma_has(p.target.arch, row));
        } else {
            assert_int_equal(p.shape.m * p.shape.n * p.shape.k, 1);
        }
    }
}

static void shapes_of_wgmma(void **state) {
    (void)state;
    static const struct {
        const char *device;
        uint32_t warps, rank, m, n, k; /* bits */
        uint32_t type, columns;        /* row of `types`; of the instruction, 0: none */
    } cases[] = {
        {"sm_90a", 4, 2, 6, 3, 4, 0, 8},
        {"sm_90a", 4, 2, 6, 8, 4, 0, 256},
        {"sm_90a", 4, 2, 7, 9, 6, 0, 256},
        {"sm_90a", 8, 2, 7, 7, 6, 0, 128},
        {"sm_90a", 8, 2, 6, 7, 6, 0, 64},
        {"sm_90a", 16, 2, 6, 4, 6, 0, 8},
        {"sm_90a", 4, 2, 6, 3, 5, 5, 8},
        {"sm_90a", 4, 2, 6, 6, 3, 3, 64},
        {"sm_90a", 4, 2, 6, 6, 5, 6, 64},
        {"sm_90a", 4, 2, 5, 6, 5, 0, 0}, /* 32 rows */
        {"sm_90a", 4, 2, 6, 2, 5, 0, 0},
        {"sm_90a", 4, 2, 6, 6, 3, 0, 0}, /* few columns, small K */
        {"sm_90a", 2, 2, 6, 6, 5, 0, 0},
        {"sm_90a", 4, 3, 6, 6, 5, 0, 0}, /* warps, batch */
        {"sm_90a", 4, 2, 6, 6, 5, 4, 0},
        {"sm_90a", 4, 2, 6, 6, 5, 7, 0}, /* types */
        {"sm_80", 4, 2, 6, 6, 5, 0, 0},
        {"sm_90", 4, 2, 6, 6, 5, 0, 0},
        {"sm_100a", 4, 2, 6, 6, 5, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t t = cases[i].type;
        const lilac_plan_dot_problem problem = {cases[i].rank, 0,          cases[i].m,
                                                cases[i].n,    cases[i].k, types[t].a,
                                                types[t].b,    types[t].d, {0}};
        const lilac_target target = {.arch = lilac_arch_find(cases[i].device),
                                     .num_warps = cases[i].warps,
                                     .num_ctas = 1,
                                     .num_stages = 1};
        lilac_matrix_shape shape;
        const bool found = lilac_plan_dot_choose_wgmma(&shape, &problem, &target);
        if (found != (cases[i].columns != 0) || (found && shape.n != cases[i].columns)) {
            fail_msg("case %u: %d, %u columns", (unsigned)i, found, shape.n);
        }
        assert_true(!found || (shape.m == 64 && shape.k * lilac_matrix_type_bits(shape.a) == 256));
    }
}

/* The warps of chained products lie along M as long as it lasts, so that no row of the first product is
 * in two warps. */
static void chained_products_have_warps_along_rows(void **state) {
    (void)state;
    for (uint32_t m = 4; m <= 8; m++) {
        for (uint32_t n = 3; n <= 8; n++) {
            product p = {
                .problem = {2, 0, m, n, 5, LILAC_MATRIX_F16, LILAC_MATRIX_F16, LILAC_MATRIX_F32},
                .target = {lilac_arch_find("sm_80"), 8, 1, 1}};
            uint32_t rows = 0, columns = 0;
            p.unit = lilac_plan_dot_choose(&p.shape, &p.problem, &p.target);
            propose(&p, true);
            for (uint32_t i = 5; i < 8; i++) {
                const place moved = place_of(&p, p.d.threads[i]);
                rows += moved.row != 0;
                columns += moved.column != 0;
                assert_true(moved.row == 0 || moved.column == 0);
            }
            assert_int_equal(rows, m - 4 < 3 ? m - 4 : 3);
            assert_int_equal(columns, 3 - rows < n - 3 ? 3 - rows : n - 3);
        }
    }
}

/* ---- operands in shared memory -------------------------------------------------------------- */

/* Memory of one operand, by coordinates. */
typedef struct memory_case {
    product p;
    lilac_plan_dot plan;
    uint32_t operand, element_bytes;
    lilac_layout memory, offsets;
} memory_case;

static bool open_case(memory_case *c, uint32_t type, uint32_t m, uint32_t n, uint32_t k,
                      uint32_t warps, uint32_t operand) {
    lilac_reason why = {""};
    memset(c, 0, sizeof *c);
    c->operand = operand;
    c->p.problem =
        (lilac_plan_dot_problem){2, 0, m, n, k, types[type].a, types[type].b, types[type].d, {0}};
    c->p.target = (lilac_target){
        .arch = lilac_arch_find("sm_90a"), .num_warps = warps, .num_ctas = 1, .num_stages = 1};
    c->p.unit = LILAC_PLAN_DOT_WGMMA;
    c->p.a_in_memory = true;
    c->element_bytes = lilac_matrix_type_bits(types[type].a) / 8;
    if (!lilac_plan_dot_choose_wgmma(&c->p.shape, &c->p.problem, &c->p.target)) {
        return false;
    }
    propose(&c->p, false);
    assert_true(plan_of(&c->plan, &c->p, &why));
    return true;
}

/* The byte of an element by the layout; `kept`: along M of A, along N of B. */
static uint32_t byte_of(const memory_case *c, uint64_t kept, uint64_t k) {
    const uint32_t first = c->operand == 0 ? c->p.problem.m_bits : c->p.problem.k_bits;
    const uint64_t flat = c->operand == 0 ? kept | k << first : k | kept << first;
    return (uint32_t)lilac_layout_apply(&c->offsets, flat) * c->element_bytes;
}

/* All elements of one instruction, whose first row (column) is `kept` and whose first inner index is `k`. */
static void check_instruction(const memory_case *c, const lilac_plan_dot_memory *m, uint64_t kept,
                              uint64_t k, uint32_t shift) {
    const uint32_t outer_bits = c->operand == 0 ? c->plan.row_bits : c->plan.column_bits;
    const uint64_t *outer = c->operand == 0 ? c->plan.row : c->plan.column;
    lilac_matrix_descriptor descriptor = m->like;
    descriptor.start = lilac_plan_dot_memory_start(m, c->operand, kept, k) + shift;
    const lilac_matrix_descriptor read =
        lilac_matrix_descriptor_decode(lilac_matrix_descriptor_encode(&descriptor));
    assert_int_equal(descriptor.start, byte_of(c, kept, k) + shift);
    assert_memory_equal(&read, &descriptor, sizeof read); /* its fields hold the numbers */
    for (uint32_t i = 0; i >> outer_bits == 0; i++) {
        for (uint32_t l = 0; l >> c->plan.inner_bits == 0; l++) {
            const uint32_t wanted = byte_of(c, kept ^ sum_of(outer, outer_bits, i),
                                            k ^ sum_of(c->plan.inner, c->plan.inner_bits, l));
            const uint32_t got =
                lilac_matrix_descriptor_address(&read, 8 * c->element_bytes, m->transposed, i, l);
            if (got != wanted + shift) {
                fail_msg("element (%u, %u) of the instruction at (%u, %u) is read from byte %u, "
                         "and lies "
                         "at %u",
                         i, l, (unsigned)kept, (unsigned)k, got, wanted + shift);
            }
        }
    }
}

/* All instructions of all warpgroups. */
static void check_memory(const memory_case *c, const lilac_plan_dot_memory *m, uint32_t shift) {
    const uint32_t blocks = c->p.d.distinct & ~c->plan.instruction_registers;
    for (uint32_t t = 0; t >> c->p.d.thread_bits == 0; t += 128) {
        for (uint32_t i = 0; i >> __builtin_popcount(blocks) == 0; i++) {
            const place origin = place_of(&c->p, held(&c->p.d, t, deposit(i, blocks)));
            for (uint32_t s = 0; s >> c->plan.step_bits == 0; s++) {
                check_instruction(c, m, c->operand == 0 ? origin.row : origin.column,
                                  sum_of(c->plan.step, c->plan.step_bits, s), shift);
            }
        }
    }
}

static bool set_memory(memory_case *c, uint32_t span, bool transposed) {
    static const char *const inputs[] = {"offset", NULL};
    lilac_context *context = lilac_context_create();
    lilac_encoding shared;
    const lilac_plan_dot_problem *q = &c->p.problem;
    const int64_t shape[2] = {INT64_C(1) << (c->operand == 0 ? q->m_bits : q->k_bits),
                              INT64_C(1) << (c->operand == 0 ? q->k_bits : q->n_bits)};
    lilac_encoding_nvmma_shared(&shared, 2, span, transposed, 8 * c->element_bytes, false);
    bool good = lilac_encoding_layout(context, &c->memory, &shared, 2, shape);
    if (good) {
        lilac_layout offsets;
        assert_true(lilac_layout_sublayout(&offsets, &c->memory, inputs, NULL, NULL));
        assert_true(lilac_layout_invert(&c->offsets, &offsets, NULL));
    }
    lilac_context_destroy(context);
    return good;
}

/* nvmma_shared with a swizzle is read where k is contiguous, and for 16 bits also where it is not.
 * Without a swizzle its rows lie one behind the other: only rows of 16 bytes are columns of cores. */
static void nvmma_shared_is_read(void **state) {
    (void)state;
    static const uint32_t spans[] = {0, 32, 64, 128}, kinds[] = {0, 2, 3, 5, 6};
    uint32_t accepted[4] = {0}, transposed_count = 0, refused = 0;
    for (uint32_t i = 0; i < 5 * 4 * 2 * 2 * 3 * 6 * 5; i++) {
        uint32_t rest = i;
        const uint32_t type = kinds[rest % 5], span = spans[(rest /= 5) % 4];
        const bool transposed = (rest /= 4) % 2 != 0;
        const uint32_t operand = (rest /= 2) % 2, m = 6 + (rest /= 2) % 3, n = 3 + (rest /= 3) % 6,
                       k = 3 + rest / 6 % 5;
        memory_case c;
        lilac_plan_dot_memory memory;
        lilac_reason why = {""};
        if ((operand == 0 && n != 3) || (operand == 1 && m != 6) || /* the other operand's */
            !open_case(&c, type, m, n, k, i % 3 == 0 ? 8 : 4, operand) ||
            !set_memory(&c, span, transposed)) {
            continue;
        }
        const bool k_contiguous = transposed == (operand == 1);
        const bool got = lilac_plan_dot_memory_init(&memory, &c.plan, operand, &c.memory, 0, &why);
        if (span != 0 && got != (k_contiguous || c.element_bytes == 2)) {
            describe(&c.p, i);
            fail_msg("operand %u, swizzle %u, transposed %d: %s", operand, span, transposed,
                     why.text);
        }
        if (!got) {
            assert_non_null(strstr(why.text, "no descriptor of wgmma reads the elements"));
            refused++;
            continue;
        }
        accepted[(i / 5) % 4]++;
        transposed_count += memory.transposed;
        assert_int_equal(memory.element_bytes, c.element_bytes);
        check_memory(&c, &memory, 0);
        /* a part of a buffer, behind others of its size */
        const uint64_t elements = UINT64_C(1) << c.memory.in_bits;
        for (uint32_t part = 1; part < 4 && part * elements * c.element_bytes < 1 << 16; part++) {
            assert_true(lilac_plan_dot_memory_init(&memory, &c.plan, operand, &c.memory,
                                                   part * elements, &why));
            check_memory(&c, &memory, (uint32_t)(part * elements) * c.element_bytes);
        }
    }
    print_message("%u of 32, %u of 64, %u of 128 bytes, %u without swizzle; %u refused\n",
                  accepted[1], accepted[2], accepted[3], accepted[0], refused);
    assert_true(accepted[1] > 40 && accepted[2] > 40 && accepted[3] > 40 && accepted[0] > 0);
    assert_true(transposed_count > 40 && refused > 40);
}

/* Cores of 8 rows of 16 bytes in any order: read if the strides are constant, refused otherwise. */
static void cores_in_any_order(void **state) {
    (void)state;
    lilac_random random;
    uint32_t read = 0, refused = 0;
    lilac_random_seed(&random, 5);
    for (uint32_t i = 0; i < scaled(600); i++) {
        static const uint32_t kinds[] = {0, 3, 5};
        memory_case c;
        lilac_plan_dot_memory memory;
        lilac_reason why = {""};
        const uint32_t operand = i % 2, type = kinds[random_below(&random, 3)];
        const bool k_contiguous = random_below(&random, 2) != 0;
        if (!open_case(&c, type, 6 + random_below(&random, 2), 3 + random_below(&random, 4),
                       5 + random_below(&random, 2), 4, operand)) {
            continue;
        }
        /* bits of the first dimension, then of the second; `fast` has the 16 bytes */
        const uint32_t bits[2] = {operand == 0 ? c.p.problem.m_bits : c.p.problem.k_bits,
                                  operand == 0 ? c.p.problem.k_bits : c.p.problem.n_bits};
        const uint32_t k_dim = operand == 0 ? 1 : 0, fast = k_contiguous ? k_dim : 1 - k_dim;
        const uint32_t start[2] = {0, bits[0]}, unit = log2_of_power(16 / c.element_bytes);
        uint64_t columns[16];
        uint32_t count = 0, used[2] = {0};
        used[fast] = unit < bits[fast] ? unit : bits[fast];
        used[1 - fast] = 3;
        for (uint32_t k = 0; k < used[fast]; k++) {
            columns[count++] = UINT64_C(1) << (start[fast] + k);
        }
        for (uint32_t k = 0; k < 3; k++) {
            columns[count++] = UINT64_C(1) << (start[1 - fast] + k);
        }
        while (count < bits[0] + bits[1]) {
            const uint32_t dim =
                used[0] == bits[0] || (used[1] < bits[1] && random_below(&random, 2));
            columns[count++] = UINT64_C(1) << (start[dim] + used[dim]++);
        }
        lilac_layout_init(&c.memory);
        assert_true(lilac_layout_add_out(&c.memory, "dim0", bits[0], NULL) &&
                    lilac_layout_add_out(&c.memory, "dim1", bits[1], NULL) &&
                    lilac_layout_add_in(&c.memory, "offset", count, columns, NULL));
        assert_true(lilac_layout_invert(&c.offsets, &c.memory, NULL));
        if (lilac_plan_dot_memory_init(&memory, &c.plan, operand, &c.memory, 0, &why)) {
            assert_int_equal(memory.like.swizzle, LILAC_MATRIX_SWIZZLE_NONE);
            check_memory(&c, &memory, 0);
            read++;
        } else {
            assert_non_null(strstr(why.text, "no descriptor of wgmma reads the elements"));
            refused++;
        }
    }
    print_message("%u read, %u refused\n", read, refused);
    assert_true(read > 40 && refused > 40);
}

static void other_memory_is_refused(void **state) {
    (void)state;
    memory_case c;
    lilac_plan_dot_memory memory;
    lilac_reason why = {""};
    assert_true(open_case(&c, 0, 6, 6, 6, 4, 0) && set_memory(&c, 128, false));
    lilac_layout flat = c.memory;
    lilac_layout_flatten_outs(&flat, &c.memory, "dim0");
    assert_false(lilac_plan_dot_memory_init(&memory, &c.plan, 0, &flat, 0, &why));
    assert_non_null(strstr(why.text, "two dimensions, and one place for each element"));
    lilac_layout twice = c.memory;
    twice.columns[11] = 0;
    assert_false(lilac_plan_dot_memory_init(&memory, &c.plan, 0, &twice, 0, &why));
    assert_non_null(strstr(why.text, "two dimensions, and one place for each element"));
    lilac_layout moved = c.memory;
    moved.columns[9] ^= moved.columns[5]; /* another swizzle of row 8 */
    assert_false(lilac_plan_dot_memory_init(&memory, &c.plan, 0, &moved, 0, &why));
    assert_non_null(strstr(why.text, "where the layout of the memory of A has them"));
}

/* Threads load words that are contiguous along M in vectors, from rows of 128 bytes with the swizzle of
 * 128 bytes: the vectors of a part of a warp that one wavefront may serve are in different banks. */
static void word_rows_have_no_bank_conflicts(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        product p = {.target = {lilac_arch_find("sm_90a"), i % 2 == 0 ? 4 : 8, 1, 1, false, false},
                     .unit = LILAC_PLAN_DOT_WGMMA,
                     .rows = LILAC_PLAN_DOT_WORD_ROWS,
                     .problem = {.rank = 2,
                                 .m_bits = 6 + i / 2,
                                 .n_bits = 5,
                                 .k_bits = 5,
                                 .a = LILAC_MATRIX_TF32,
                                 .b = LILAC_MATRIX_TF32,
                                 .d = LILAC_MATRIX_F32}};
        assert_true(lilac_plan_dot_choose_wgmma(&p.shape, &p.problem, &p.target));
        propose(&p, false);
        const uint32_t words = p.problem.m_bits > 6 + warp_bits_of(&p) - 2 ? 4 : 2;
        for (uint32_t w = 1; w < words; w *= 2) { /* a register bit for each word of a vector */
            bool found = false;
            for (uint32_t r = 0; r < p.a.register_bits; r++) {
                found |= p.a.registers[r] == w;
            }
            assert_true(found);
        }
        uint32_t used = 0;
        for (uint32_t thread = 0; thread < WARP_LANES * p.target.num_warps; thread++) {
            const uint64_t flat = held(&p.a, thread, 0);
            const uint64_t m = lilac_plan_dot_coordinate(&p.a, flat, 0);
            const uint64_t k = lilac_plan_dot_coordinate(&p.a, flat, 1);
            const uint32_t bank = (uint32_t)((m ^ 4 * (k % 8)) % 32);
            const uint32_t banks = ((1U << words) - 1) << bank;
            used = thread % (32 / words) == 0 ? 0 : used;
            assert_int_equal(bank % words, 0);
            assert_int_equal(used & banks, 0);
            used |= banks;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(proposed_layouts),
        cmocka_unit_test(mapped_layouts),
        cmocka_unit_test(mutated_layouts),
        cmocka_unit_test(replicated_inner_indices),
        cmocka_unit_test(disagreements_are_named),
        cmocka_unit_test(other_refusals),
        cmocka_unit_test(largest_instructions_are_chosen),
        cmocka_unit_test(shapes_of_wgmma),
        cmocka_unit_test(chained_products_have_warps_along_rows),
        cmocka_unit_test(word_rows_have_no_bank_conflicts),
        cmocka_unit_test(nvmma_shared_is_read),
        cmocka_unit_test(cores_in_any_order),
        cmocka_unit_test(other_memory_is_refused),
    };
    cmocka_set_test_filter(getenv("LILAC_TEST_ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
