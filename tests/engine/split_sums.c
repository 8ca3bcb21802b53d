/* Random products of matrices whose iterations 1, 2, 4 and 8 blocks of a cluster divide: the
 * simulator computes what the interpreter says that the source means, without a finding. The
 * numbers are small and whole, so that the sums do not depend on the order. Also the mutations of
 * the pass and of the exchange that it must find.
 *
 * LILAC_TEST_SCALE multiplies the number of programs. */
#include "support/product_launches.h"

#include <lilac/simt.h>

enum { CASES = 60 };

static bool is_split(const compiled *made) {
    return made->recipes.split.divisor > 0;
}

/* Without a third coordinate; every fifth is a product of bytes. */
static product_case planar_case(lilac_random *random, uint32_t i) {
    product_case c = random_case(random);
    c.planar = true;
    c.batches = c.asked = false;
    if (i % 5 == 0) {
        c.scaled = false;
        c.scalar = LILAC_I8;
        c.k = 32U << random_below(random, 2);
        c.a_along_k = c.b_along_k = true;
    }
    return c;
}

static void divided_sums(void **state) {
    (void)state;
    lilac_random random;
    uint32_t split = 0;
    lilac_random_seed(&random, 31);
    for (uint32_t i = 0; i < scaled(CASES); i++) {
        const product_case c = planar_case(&random, i);
        compiled made;
        sizes s = random_sizes(&random, &c);
        compile(&made, &c, NULL, false);
        if (is_split(&made) != made.described) {
            complain(&c, &made, &s, is_split(&made) ? "split" : "not split");
        }
        split += is_split(&made);
        for (s.parts = 1; s.parts <= (is_split(&made) ? 8 : 1); s.parts *= 2) {
            if (!launch(&made, &c, &s, LAUNCHED).right) {
                print_message("%u parts\n", s.parts);
                complain(&c, &made, &s, "wrong");
            }
        }
        compiled_clear(&made);
    }
    assert_true(split >= scaled(CASES) / 2);
}

/* Products of f16 with masks in all dimensions. */
static product_case masked_case(uint32_t k) {
    return (product_case){.scalar = LILAC_F16,
                          .m = 64,
                          .n = 32,
                          .k = k,
                          .warps = 4,
                          .stages = 3,
                          .m_form = MASKED,
                          .n_form = MASKED,
                          .k_form = MASKED};
}

/* The third coordinate is the program's own, or one warp starts the copies. */
static void kept_whole(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 32);
    for (uint32_t i = 0; i < 4; i++) {
        product_case c = masked_case(64);
        c.asked = i % 2 != 0;
        c.planar = i != 0;
        compiled made;
        compile(&made, &c, NULL, false);
        assert_true(made.described);
        assert_int_equal(is_split(&made), i == 2);
        compiled_clear(&made);
    }
}

/* The simulator has clusters along z only where nothing else is there. */
static void refused_launches(void **state) {
    (void)state;
    const product_case c = masked_case(64);
    lilac_random random;
    lilac_random_seed(&random, 34);
    compiled made;
    compile(&made, &c, NULL, false);
    sizes s = random_sizes(&random, &c);
    s.batches = 2;
    s.parts = 2;
    assert_false(launch(&made, &c, &s, LAUNCHED).ran);
    assert_string_equal(lilac_diagnostics(made.context)->id, "grid-size");
    compiled_clear(&made);
}

/* ---- iterations ------------------------------------------------------------------------------ */

/* The launcher's number of iterations is that of the loop. */
static void counted_iterations(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 33);
    for (uint32_t i = 0; i < 40; i++) {
        const product_case c = planar_case(&random, i);
        compiled made;
        const sizes s = random_sizes(&random, &c);
        compile(&made, &c, NULL, false);
        if (is_split(&made)) {
            const lilac_launch_split *split = &made.recipes.split;
            const int64_t values[ARGUMENTS] = {[K] = s.k, [FIRST] = s.first};
            const int32_t tile = (int32_t)c.k, last = (s.k + tile - 1) / tile;
            const int32_t first = !c.from_first ? 0 : c.counts_tiles ? s.first : s.first / tile;
            int64_t sum = 0;
            assert_true(lilac_launch_sum_evaluate(&sum, &split->iterations, values));
            const int64_t found = sum < 0 ? 0 : sum / split->divisor;
            const int64_t own = last > first ? last - first : 0;
            const uint32_t step = c.doubled ? 2 * c.k : c.k;
            const int64_t joined =
                split->divisor > step ? split->divisor / step : 1; /* resize_tiles */
            const int64_t expected = (own + joined - 1) / joined;
            if (found != expected) {
                complain(&c, &made, &s, "another number of iterations");
            }
            assert_int_equal(split->bytes, 4 * c.m * c.n);
        }
        compiled_clear(&made);
    }
}

/* Iterations whose tiles resize_tiles halves, and whose loop begins at a parameter: the number of them may be one
 * too large (write_launch_maps.c, find_bound). */
static void counted_parts(void **state) {
    (void)state;
    const product_case c = {.scalar = LILAC_F32,
                            .m = 128,
                            .n = 64,
                            .k = 64,
                            .warps = 8,
                            .stages = 3,
                            .m_form = UNBOUNDED,
                            .n_form = MASKED,
                            .k_form = UNBOUNDED,
                            .counts_tiles = true,
                            .from_first = true,
                            .planar = true};
    const int64_t own = 640 / 64 - 3;
    compiled made;
    compile(&made, &c, NULL, false);
    assert_true(is_split(&made));
    for (int64_t k = 640 - 63; k <= 640; k++) {
        const int64_t values[ARGUMENTS] = {[K] = k, [FIRST] = 3};
        int64_t sum;
        assert_true(lilac_launch_sum_evaluate(&sum, &made.recipes.split.iterations, values));
        assert_in_range(sum / made.recipes.split.divisor, 2 * own, 2 * own + (k > 640 - 32));
    }
    compiled_clear(&made);
}

/* ---- the choice ------------------------------------------------------------------------------ */

static uint32_t parts_of(uint32_t programs, int64_t iterations, uint32_t blocks) {
    const lilac_launch_split split = {.divisor = 64,
                                      .iterations = {2, {{1, 1, {0}}, {63, 0, {0}}}},
                                      .clocks = 512,
                                      .loads = 32768,
                                      .bytes = 65536};
    const lilac_launch_capacity capacity = {
        .multiprocessors = 132, .clusters = {blocks, blocks / 2, blocks / 4, blocks / 8}};
    const uint32_t grid[3] = {programs, 1, 1};
    const int64_t values[1] = {64 * iterations - 63};
    return lilac_launch_parts(&split, &capacity, NULL, grid, values);
}

/* Tiles of 128 × 64 × 64 of 16 bits. `alone`: there is a kernel for one block. */
static uint32_t parts_of_tile(uint32_t programs, int64_t iterations, bool alone) {
    static const lilac_launch_capacity two = {132, {264, 132, 64, 32}},
                                       one = {132, {132, 66, 32, 16}};
    const lilac_launch_split split = {.divisor = 1,
                                      .iterations = {1, {{1, 1, {0}}}},
                                      .clocks = 256,
                                      .loads = 24576,
                                      .bytes = 32768};
    return lilac_launch_parts(&split, &two, alone ? &one : NULL, (uint32_t[3]){programs, 1, 1},
                              &iterations);
}

static void chosen_parts(void **state) {
    (void)state;
    assert_int_equal(parts_of(16, 4, 132), 1);     /* the exchange costs more */
    assert_int_equal(parts_of(132, 1000, 132), 1); /* two do not fit */
    assert_int_equal(parts_of(67, 1000, 132), 1);
    assert_int_equal(parts_of(66, 1000, 132), 2);
    assert_int_equal(parts_of(33, 1000, 132), 4);
    assert_int_equal(parts_of(16, 1000, 132), 8);
    assert_int_equal(parts_of(132, 1000, 264), 1); /* two blocks share a multiprocessor */
    assert_int_equal(parts_of(1, 1 << 20, 0), 1);  /* the driver has not said how many fit */
    const lilac_launch_split none = {0};
    const lilac_launch_capacity capacity = {132, {132, 66, 33, 16}};
    assert_int_equal(lilac_launch_parts(&none, &capacity, NULL, (uint32_t[3]){1, 1, 1}, NULL), 1);
    const lilac_launch_split long_sum = {
        .divisor = 1, .iterations = {1, {{1000, 0, {0}}}}, .clocks = 700, .bytes = 65536};
    static const uint32_t flat[3] = {4, 4, 1}, deep[3] = {4, 2, 2};
    assert_int_equal(lilac_launch_parts(&long_sum, &capacity, NULL, flat, NULL), 8);
    assert_int_equal(lilac_launch_parts(&long_sum, &capacity, NULL, deep, NULL), 1);
    /* longer rings hide latency, and all multiprocessors together wait for the second-level cache */
    assert_int_equal(parts_of_tile(66, 32, false), 2);
    assert_int_equal(parts_of_tile(66, 32, true), 1);
    assert_int_equal(parts_of_tile(66, 64, true), 1);
    assert_int_equal(parts_of_tile(33, 128, true), 2);
    assert_int_equal(parts_of_tile(4, 16, false), 8);
    assert_int_equal(parts_of_tile(4, 16, true), 1);
    assert_int_equal(parts_of_tile(4, 256, true), 8);
    assert_int_equal(parts_of_tile(200, 256, true), parts_of_tile(200, 256, false));
}

/* ---- mutations ------------------------------------------------------------------------------- */

typedef struct search {
    lilac_tile_opcode code;
    uint32_t skipped; /* operations of this code in front of the one that is looked for */
    lilac_tile_op *found;
} search;

static void find_op(void *data, lilac_tile_op *op) {
    search *s = data;
    if (op->code == s->code && s->found == NULL && s->skipped-- == 0) {
        s->found = op;
    }
}

static lilac_tile_op *find(lilac_tile_module *module, lilac_tile_opcode code, uint32_t skipped) {
    search s = {.code = code, .skipped = skipped};
    lilac_tile_walk(module->functions->body, find_op, &s);
    assert_non_null(s.found);
    return s.found;
}

/* The last iterations belong to every block. */
static void open_end(lilac_tile_module *module) {
    lilac_tile_op *loop = find(module, LILAC_TILE_OP_SCF_FOR, 0);
    lilac_tile_op *least = lilac_tile_upper_bound(loop)->op;
    assert_int_equal(least->code, LILAC_TILE_OP_ARITH_MINSI);
    lilac_tile_set_upper_bound(loop, least->operands[1].value);
}

/* The first ones do. */
static void open_begin(lilac_tile_module *module) {
    lilac_tile_op *loop = find(module, LILAC_TILE_OP_SCF_FOR, 0);
    lilac_tile_op *least = lilac_tile_lower_bound(loop)->op;
    assert_int_equal(least->code, LILAC_TILE_OP_ARITH_MINSI);
    lilac_tile_set_lower_bound(loop, &find(module, LILAC_TILE_OP_ARITH_CONSTANT, 0)->results[0]);
}

static void keep_partial_sums(lilac_tile_module *module) {
    lilac_tile_op *sum = find(module, LILAC_TILE_OP_LILAC_SUM_BLOCKS, 0);
    lilac_tile_replace_uses(&sum->results[0], sum->operands[0].value);
    lilac_tile_remove(sum);
}

/* The second block stores, which has its own sum only. */
static void other_block(lilac_tile_module *module) {
    const lilac_tile_op *branch = find(module, LILAC_TILE_OP_SCF_IF, 0);
    lilac_tile_op *compare = branch->operands[0].value->op;
    assert_int_equal(compare->code, LILAC_TILE_OP_ARITH_CMPI);
    lilac_tile_set_operand(compare, 1, &find(module, LILAC_TILE_OP_ARITH_CONSTANT, 1)->results[0]);
}

/* The number of blocks minus one is not added before the division. */
static void round_down(lilac_tile_module *module) {
    const lilac_tile_op *loop = find(module, LILAC_TILE_OP_SCF_FOR, 0);
    const lilac_tile_op *end = lilac_tile_upper_bound(loop)->op;
    const lilac_tile_op *each = end->operands[0].value->op->operands[1].value->op;
    assert_int_equal(each->code, LILAC_TILE_OP_ARITH_SHRSI);
    lilac_tile_op *shift = (lilac_tile_op *)each;
    lilac_tile_set_operand(shift, 0, shift->operands[0].value->op->operands[0].value);
}

/* ---- mutations of the exchange --------------------------------------------------------------- */

typedef void simt_mutation(lilac_simt_instruction *i);

static lilac_simt_instruction *find_simt(const lilac_simt_body *body, lilac_simt_opcode code,
                                         uint32_t *skipped) {
    for (lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (i->code == code && (*skipped)-- == 0) {
            return i;
        }
        for (uint32_t b = 0; b < i->body_count; b++) {
            lilac_simt_instruction *found = find_simt(i->bodies[b], code, skipped);
            if (found != NULL) {
                return found;
            }
        }
    }
    return NULL;
}

static void drop(lilac_simt_instruction *i) {
    i->code = LILAC_SIMT_OP_SCHEDULE_BARRIER;
}

/* The last value of a vector is the one before it. */
static void store_twice(lilac_simt_instruction *i) {
    i->operands[i->operand_count - 1] = i->operands[i->operand_count - 2];
}

static const sizes mutated_sizes = {.m = 70,
                                    .n = 73,
                                    .k = 330,
                                    .pitch_a = 80,
                                    .pitch_b = 80,
                                    .batches = 1,
                                    .za = 30000,
                                    .zb = 30000,
                                    .parts = 4};

/* Compiles a kernel of four parts with a mutation of the tile IR and one of SIMT IR, each NULL: none. */
static outcome launch_mutated(compiled *made, mutation *mutate, lilac_simt_opcode code,
                              uint32_t skipped, simt_mutation *mutate_simt) {
    product_case c = masked_case(32);
    c.counts_tiles = c.planar = true;
    compile(made, &c, mutate, false);
    if (mutate_simt != NULL) {
        lilac_simt_instruction *found = find_simt(made->result.simt->kernels->body, code, &skipped);
        assert_non_null(found);
        mutate_simt(found);
    }
    return launch(made, &c, &mutated_sizes, LAUNCHED);
}

static void mutated_parts(void **state) {
    (void)state;
    static const struct {
        const char *name;
        mutation *mutate;
    } mutations[] = {
        {"nothing", NULL},
        {"open_end", open_end},
        {"open_begin", open_begin},
        {"keep_partial_sums", keep_partial_sums},
        {"other_block", other_block},
        {"round_down", round_down},
    };
    for (uint32_t i = 0; i < sizeof mutations / sizeof *mutations; i++) {
        compiled made;
        const outcome o =
            launch_mutated(&made, mutations[i].mutate, LILAC_SIMT_OP_BARRIER, 0, NULL);
        if (!o.made || o.right != (i == 0)) {
            print_diagnostics(made.context);
            fail_msg("%s: %s", mutations[i].name, !o.made ? "refused" : "not found");
        }
        compiled_clear(&made);
    }
}

static bool has_finding(const compiled *made, const char *id) {
    bool found = false;
    for (const lilac_diagnostic *d = lilac_diagnostics(made->context); d != NULL; d = d->next) {
        found = found || strcmp(d->id, id) == 0;
    }
    return found;
}

static void mutated_exchange(void **state) {
    (void)state;
    static const struct {
        const char *name;
        lilac_simt_opcode code;
        uint32_t skipped;
        simt_mutation *mutate;
        const char *finding; /* NULL: the result is wrong */
    } mutations[] = {
        {"no barrier in front of the loads", LILAC_SIMT_OP_CLUSTER_BARRIER, 0, drop,
         "shared-lifetime"},
        {"no barrier behind the loads", LILAC_SIMT_OP_CLUSTER_BARRIER, 1, drop, "shared-lifetime"},
        {"another register", LILAC_SIMT_OP_ST_SHARED, 0, store_twice, NULL},
        {"another sum", LILAC_SIMT_OP_ST_CLUSTER, 2, store_twice, NULL},
    };
    for (uint32_t i = 0; i < sizeof mutations / sizeof *mutations; i++) {
        compiled made;
        const outcome o = launch_mutated(&made, NULL, mutations[i].code, mutations[i].skipped,
                                         mutations[i].mutate);
        if (mutations[i].finding == NULL ? !o.ran || o.right
                                         : !has_finding(&made, mutations[i].finding)) {
            print_diagnostics(made.context);
            fail_msg("%s: not found", mutations[i].name);
        }
        compiled_clear(&made);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divided_sums),     cmocka_unit_test(kept_whole),
        cmocka_unit_test(refused_launches), cmocka_unit_test(counted_iterations),
        cmocka_unit_test(counted_parts),    cmocka_unit_test(chosen_parts),
        cmocka_unit_test(mutated_parts),    cmocka_unit_test(mutated_exchange),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
