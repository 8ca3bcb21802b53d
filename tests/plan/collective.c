/* Plans of collective operations: examples whose counts are known, what they explain, and what is
 * refused. That a plan's counts are the simulator's is tested on random layouts in tests/lower. */

#include <lilac/collective.h>
#include <lilac/encoding.h>

#include "support/test.h"

static lilac_target target_of(uint32_t warps) {
    return (lilac_target){
        .arch = lilac_arch_find("sm_90a"), .num_warps = warps, .num_ctas = 1, .num_stages = 1};
}

/* A tensor of 2^a × 2^b elements whose columns are units: bit i of the coordinate (dim0's bits
 * first) is dealt to the input in order[i]: 'r', 'l' or 'w'. */
static lilac_layout deal(uint32_t rows, uint32_t columns, const char *order) {
    static const char *const names[] = {"register", "lane", "warp"};
    uint64_t lists[3][16];
    uint32_t counts[3] = {0};
    lilac_layout layout;
    lilac_layout_init(&layout);
    assert_int_equal(strlen(order), rows + columns);
    assert_true(lilac_layout_add_out(&layout, "dim0", rows, NULL));
    assert_true(lilac_layout_add_out(&layout, "dim1", columns, NULL));
    for (uint32_t i = 0; order[i] != 0; i++) {
        uint32_t input = order[i] == 'r' ? 0 : order[i] == 'l' ? 1 : 2;
        lists[input][counts[input]++] = UINT64_C(1) << i;
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(lilac_layout_add_in(&layout, names[i], counts[i], lists[i], NULL));
    }
    assert_true(lilac_layout_add_in(&layout, "block", 0, NULL, NULL));
    return layout;
}

static const lilac_plan_operand one_float[] = {{.element_bits = 32, .commutative = true}};
static const lilac_plan_region sum = {.count = 1, .operands = one_float, .instructions = 1};

/* ---- reductions -------------------------------------------------------------------------- */

typedef struct reduce_case {
    uint32_t rows, columns, warps;
    const char *order;
    uint64_t shuffles, combines, stores, loads, bytes; /* of all warps */
} reduce_case;

static const reduce_case reductions[] = {
    /* In the thread. */
    {7, 3, 4, "lllllwwrrr", 0, 4 * 7, 0, 0, 0},
    /* Five butterflies in each of four warps. */
    {2, 5, 4, "wwlllll", 20, 20, 0, 0, 0},
    /* Four partials of one element: one store and one load of 16 bytes a warp. */
    {0, 7, 4, "lllllww", 20, 4 * 5 + 4 * 3, 4, 4, 16},
    /* Two elements a thread: the first butterfly sends one of them and keeps the other; each thread
     * needs both, whose 8 partials are 2 loads of 16 bytes. */
    {1, 7, 4, "rlllllww", 20, 4 * 5 + 4 * 6, 4, 8, 32},
};

static void counts_of_reductions(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
        const reduce_case *c = &reductions[i];
        const lilac_target target = target_of(c->warps);
        const lilac_layout source = deal(c->rows, c->columns, c->order);
        lilac_layout result;
        lilac_layout_slice(&result, &source, 1);
        lilac_plan_reduce plan;
        lilac_plan_price price;
        lilac_reason why = {0};
        assert_true(lilac_plan_reduce_init(&plan, &source, &result, 1, &sum, &target, &why));
        assert_true(lilac_plan_reduce_price(&price, &plan, &why));
        assert_int_equal(price.shuffles, c->shuffles);
        assert_int_equal(plan.combines, c->combines);
        assert_int_equal(price.stores, c->stores);
        assert_int_equal(price.loads, c->loads);
        assert_int_equal(plan.bytes, c->bytes);
        assert_int_equal(price.barriers, c->stores > 0 ? c->warps : 0);
        lilac_plan_bound bound;
        lilac_plan_reduce_bound(&bound, &plan);
        assert_true(bound.met);
    }
}

/* With sixteen warps each lane loads one partial, and butterflies combine them. */
static void lanes_load_partials(void **state) {
    (void)state;
    const lilac_target target = target_of(16);
    const lilac_layout source = deal(0, 9, "lllllwwww");
    lilac_plan_reduce plan;
    lilac_reason why = {0};
    assert_true(lilac_plan_reduce_init(&plan, &source, NULL, 1, &sum, &target, &why));
    assert_int_equal(plan.loading_lanes, 0xF);
    assert_int_equal(plan.price.shuffles, 16 * 9);
    assert_int_equal(plan.price.loads, 16);
}

static void refused_reductions(void **state) {
    (void)state;
    lilac_layout source = deal(0, 7, "lllllww");
    const lilac_target few = target_of(2);
    lilac_target cluster = target_of(4);
    lilac_plan_reduce plan;
    lilac_reason why = {0};
    assert_false(lilac_plan_reduce_init(&plan, &source, NULL, 1, &sum, &few, &why));
    assert_string_equal(why.text, "the layout has 4 warps and the target has 2");
    lilac_layout_init(&source);
    const uint64_t column = 1;
    assert_true(lilac_layout_add_out(&source, "dim0", 1, NULL));
    assert_true(lilac_layout_add_in(&source, "block", 1, &column, NULL));
    cluster.num_ctas = 2;
    assert_false(lilac_plan_reduce_init(&plan, &source, NULL, 0, &sum, &cluster, &why));
    assert_string_equal(why.text, "the axis of operand 0 is distributed over the blocks of a "
                                  "cluster; a reduction combines elements of one block");
    lilac_layout_init(&source);
    assert_true(lilac_layout_add_out(&source, "dim0", 1, NULL));
    assert_true(lilac_layout_add_in(&source, "offset", 1, &column, NULL));
    assert_false(lilac_plan_reduce_init(&plan, &source, NULL, 0, &sum, &few, &why));
    assert_string_equal(why.text, "the layout has the input 'offset'; a distributed layout has "
                                  "register, lane, warp and block");
}

static void explained_reduction(void **state) {
    (void)state;
    const lilac_target target = target_of(2);
    const lilac_layout source = deal(1, 7, "rrlllllw");
    lilac_layout result;
    lilac_text text = {0};
    lilac_plan_reduce plan;
    lilac_reason why = {0};
    lilac_layout_slice(&result, &source, 1);
    assert_true(lilac_plan_reduce_init(&plan, &source, &result, 1, &sum, &target, &why));
    lilac_plan_reduce_explain(&text, &plan);
    assert_string_equal(lilac_text_get(&text),
                        "reduction of 1 operand along dim1, 2 warps, sm_90a\n"
                        "bits\n"
                        "  register 0    another element\n"
                        "  register 1    combined in the thread\n"
                        "  lane 0        butterfly\n"
                        "  lane 1        butterfly\n"
                        "  lane 2        butterfly\n"
                        "  lane 3        butterfly\n"
                        "  lane 4        butterfly; each lane keeps half of its elements\n"
                        "  warp 0        partial results in shared memory\n"
                        "memory        stores of 1 elements, loads of 4\n"
                        "results       each thread loads the partial results of its elements\n"
                        "totals        instructions  wavefronts       least\n"
                        "  shuffles              10\n"
                        "  selects                4\n"
                        "  stores                 2           2           2\n"
                        "  loads                  2           4           4\n"
                        "  barriers               2\n"
                        "  16 bytes of shared memory; no order of memory takes fewer wavefronts\n"
                        "  about 25.6 clocks of a multiprocessor\n");
    lilac_text_reset(&text);
    lilac_plan_reduce_json(&text, &plan);
    assert_non_null(strstr(lilac_text_get(&text),
                           "{\"kind\": \"reduce\", \"axis\": 1, \"operands\": 1, \"bits\": "
                           "{\"register 0\": \"another element\""));
    assert_non_null(strstr(lilac_text_get(&text),
                           "\"instructions\": {\"shuffle\": 10, \"select\": 4, \"permute\": 0, "
                           "\"pack\": 0, \"store\": 2, \"load\": 2, \"barrier\": 2}, "
                           "\"wavefronts\": {\"store\": 2, \"load\": 4}"));
    lilac_text_clear(&text);
}

/* ---- scans and gathers -------------------------------------------------------------------- */

static void explained_scan(void **state) {
    (void)state;
    const lilac_target target = target_of(4);
    const lilac_layout source = deal(0, 9, "rrlllllww");
    lilac_text text = {0};
    lilac_plan_scan plan;
    lilac_reason why = {0};
    assert_true(lilac_plan_scan_init(&plan, &source, &source, 1, &sum, &target, &why));
    lilac_plan_scan_explain(&text, &plan);
    /* Upwards 3 in the thread and 5 butterflies; 2 of the four totals; downwards 1 for the lane
     * and 4 for its elements. */
    assert_int_equal(plan.combines, 4 * (3 + 5 + 2 + 1 + 4));
    assert_string_equal(lilac_text_get(&text),
                        "scan of 1 operand along dim1, 4 warps, sm_90a\n"
                        "layout        the operands'\n"
                        "runs of the axis, lowest bit first\n"
                        "  registers   register 0, register 1\n"
                        "  lanes       lane 0, lane 1, lane 2, lane 3, lane 4\n"
                        "  memory      warp 0, warp 1\n"
                        "totals        instructions  wavefronts       least\n"
                        "  shuffles              24\n"
                        "  selects               44\n"
                        "  stores                 4           4           4\n"
                        "  loads                  4           8           8\n"
                        "  barriers               4\n"
                        "  16 bytes of shared memory; no order of memory takes fewer wavefronts\n"
                        "  about 60.9 clocks of a multiprocessor\n");
    lilac_text_reset(&text);
    lilac_plan_scan_json(&text, &plan);
    assert_non_null(strstr(lilac_text_get(&text),
                           "\"runs\": [{\"kind\": \"registers\", \"bits\": [\"register 0\", "
                           "\"register 1\"]}, {\"kind\": \"lanes\""));
    lilac_text_clear(&text);
}

static void refused_scans(void **state) {
    (void)state;
    const uint64_t column = 1;
    lilac_target cluster = target_of(4);
    lilac_plan_scan plan;
    lilac_layout source;
    lilac_reason why = {0};
    lilac_layout_init(&source);
    assert_true(lilac_layout_add_out(&source, "dim0", 1, NULL));
    assert_true(lilac_layout_add_in(&source, "block", 1, &column, NULL));
    cluster.num_ctas = 2;
    assert_false(lilac_plan_scan_init(&plan, &source, &source, 0, &sum, &cluster, &why));
    assert_string_equal(why.text, "the axis of operand 0 is distributed over the blocks of a "
                                  "cluster; a scan combines elements of one block");
}

static void explained_gathers(void **state) {
    (void)state;
    const lilac_target target = target_of(4);
    const lilac_layout source = deal(4, 5, "wwrrlllll");
    const lilac_plan_gather_options any = {.axis = 1, .element_bits = 32};
    lilac_plan_gather_options shared = any;
    shared.strategy = LILAC_PLAN_BY_SHARED;
    lilac_text text = {0};
    lilac_plan_gather plan;
    lilac_reason why = {0};
    assert_true(lilac_plan_gather_init(&plan, &source, &source, &any, &target, &why));
    assert_int_equal(plan.kind, LILAC_PLAN_GATHER_SHUFFLES);
    assert_true(plan.in_warp && plan.work.moves);
    /* An index selects a lane: one shuffle for each of four results, in four warps. */
    assert_int_equal(plan.price.shuffles, 16);
    lilac_plan_gather_explain(&text, &plan);
    assert_non_null(strstr(lilac_text_get(&text),
                           "strategy      shuffles\n"
                           "index         selects one of 1 register of any lane\n"));
    lilac_text_reset(&text);
    const uint64_t cycles = plan.price.cycles;
    assert_true(lilac_plan_gather_init(&plan, &source, &source, &shared, &target, &why));
    assert_int_equal(plan.kind, LILAC_PLAN_GATHER_MEMORY);
    assert_true(plan.price.cycles >= cycles);
    assert_int_equal(plan.bytes, 4 * 512);
    lilac_plan_gather_explain(&text, &plan);
    assert_non_null(strstr(lilac_text_get(&text),
                           "memory        1 round of 2048 bytes, barrier of the warp\n"
                           "loads         no index causes a conflict\n"));
    lilac_text_reset(&text);
    lilac_plan_gather_json(&text, &plan);
    assert_non_null(strstr(lilac_text_get(&text),
                           "{\"kind\": \"gather\", \"axis\": 1, \"strategy\": \"shared memory\", "
                           "\"rounds\": 1, \"in_warp\": true, \"barrier\": \"warp\""));
    lilac_text_clear(&text);
}

static void refused_gathers(void **state) {
    (void)state;
    const lilac_target target = target_of(4);
    const lilac_layout across = deal(0, 7, "lllllww"), small = deal(1, 6, "wlllllw");
    const lilac_layout large = deal(2, 5, "llllwwl");
    const lilac_plan_gather_options any = {.axis = 1, .element_bits = 32};
    lilac_plan_gather_options shuffles = any, little = any;
    shuffles.strategy = LILAC_PLAN_BY_SHUFFLES;
    little.strategy = LILAC_PLAN_BY_SHARED;
    little.scratch_bytes = 64;
    lilac_plan_gather plan;
    lilac_reason why = {0};
    assert_false(lilac_plan_gather_init(&plan, &across, &across, &shuffles, &target, &why));
    assert_string_equal(why.text, "lilac.movement is \"shuffles\", but an index may select an "
                                  "element that only another warp holds");
    assert_int_equal(plan.bytes, 0);
    assert_false(lilac_plan_gather_init(&plan, &across, &across, &little, &target, &why));
    assert_int_equal(plan.bytes, 512);
    assert_string_equal(why.text,
                        "the gather needs 512 bytes of shared memory, sm_90a has 64 bytes left, "
                        "and no register bit of the layout splits the source into smaller rounds");
    assert_false(lilac_plan_gather_init(&plan, &small, &large, &any, &target, &why));
    assert_string_equal(why.text, "dimension 0 of the index has 4 elements and the source has 2; "
                                  "only the axis of the index may be larger");
}

/* ---- histograms --------------------------------------------------------------------------- */

static void histograms(void **state) {
    (void)state;
    const lilac_target target = target_of(4);
    const lilac_layout numbers = deal(0, 9, "rrlllllww"), bins = deal(0, 10, "rrrlllllww");
    lilac_layout many;
    lilac_text text = {0};
    lilac_plan_histogram plan;
    lilac_reason why = {0};
    assert_true(lilac_plan_histogram_init(&plan, &numbers, &bins, &target, &why));
    lilac_plan_histogram_explain(&text, &plan);
    assert_string_equal(lilac_text_get(&text),
                        "histogram of 1024 bins, 4 warps, sm_90a\n"
                        "clear         128 threads, 4 counts at a time\n"
                        "additions     16, about 55 wavefronts\n"
                        "totals        instructions  wavefronts       least\n"
                        "  stores                 8          32          32\n"
                        "  loads                 32         256          32\n"
                        "  barriers               8\n"
                        "  4096 bytes of shared memory; the least may not be reached by any order "
                        "of memory\n"
                        "  about 422.0 clocks of a multiprocessor\n");
    lilac_text_reset(&text);
    lilac_plan_histogram_json(&text, &plan);
    assert_non_null(strstr(lilac_text_get(&text), "{\"kind\": \"histogram\", \"bins\": 1024, "
                                                  "\"clear_threads\": 128, \"clear_vector\": 4"));
    lilac_text_clear(&text);
    lilac_layout_init(&many);
    assert_true(lilac_layout_add_out(&many, "dim0", 17, NULL));
    assert_false(lilac_plan_histogram_init(&plan, &numbers, &many, &target, &why));
    assert_int_equal(plan.bytes, 4 << 17);
    assert_string_equal(why.text, "the histogram has 2^17 bins; at most 2^16 are supported");
    lilac_target cluster = target;
    cluster.num_ctas = 2;
    assert_true(lilac_plan_histogram_init(&plan, &numbers, &bins, &cluster, &why)); /* copies */
    const uint64_t column = 1;
    lilac_layout divided;
    lilac_layout_init(&divided);
    assert_true(lilac_layout_add_out(&divided, "dim0", 1, NULL));
    assert_true(lilac_layout_add_in(&divided, "block", 1, &column, NULL));
    assert_false(lilac_plan_histogram_init(&plan, &divided, &bins, &cluster, &why));
    assert_string_equal(why.text,
                        "operand 0 is distributed over 2 blocks of a cluster; a histogram "
                        "counts the elements of one block");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_of_reductions), cmocka_unit_test(lanes_load_partials),
        cmocka_unit_test(refused_reductions),   cmocka_unit_test(explained_reduction),
        cmocka_unit_test(explained_scan),       cmocka_unit_test(refused_scans),
        cmocka_unit_test(explained_gathers),    cmocka_unit_test(refused_gathers),
        cmocka_unit_test(histograms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
