/* Range tests: random trees of comparisons say the same after lilac_simt_opt_merge_range_tests, for numbers
 * and bounds at all edges, and a conjunction of two such comparisons is one comparison. */
#include <lilac/sim.h>

#include "support/test.h"

enum { THREADS = 32, LEAVES = 8, CASES = 600 };

typedef struct tree {
    bool wide, disjunctions; /* most of its joints are */
    uint32_t leaves;
    lilac_random *random;
} tree;

static const int64_t narrow_edges[] = {0, 1, -1, 2, 7, -7, INT32_MAX, INT32_MIN, INT32_MAX - 1};
static const int64_t wide_edges[] = {0, 1, -1, 7, -7, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
enum { EDGES = sizeof narrow_edges / sizeof *narrow_edges };

static uint32_t below(const tree *t, uint32_t bound) {
    return (uint32_t)lilac_random_below(t->random, bound);
}

/* The names of the numbers: two of each thread, bounds of the kernel, constants, a bound of each
 * thread, and one that is not negative. */
static const char *operand(const tree *t) {
    static const char *const names[] = {"x",    "x",    "y",     "n",     "n",   "m",
                                        "zero", "zero", "minus", "seven", "far", "natural"};
    return names[below(t, sizeof names / sizeof *names)];
}

/* A comparison; every second one may be the other half of a range test with the one before. */
static void put_leaf(lilac_text *out, const tree *t, uint32_t number) {
    static const char *const kinds[] = {"lt", "lt", "ge", "ge", "le", "gt", "ne", "ult", "uge"};
    static const char *const bounds[] = {"n", "n", "m", "seven", "minus", "far", "natural"};
    const bool outside = t->disjunctions;
    if (number % 2 == 1 && below(t, 2) == 0) {
        lilac_text_printf(out, "%%t%u = cmp %s %%x, %%%s : i1\n", number, outside ? "ge" : "lt",
                          bounds[below(t, sizeof bounds / sizeof *bounds)]);
    } else if (number % 2 == 0 && below(t, 2) == 0) {
        lilac_text_printf(out, "%%t%u = cmp %s %%x, %%zero : i1\n", number, outside ? "lt" : "ge");
    } else {
        lilac_text_printf(out, "%%t%u = cmp %s %%%s, %%%s : i1\n", number,
                          kinds[below(t, sizeof kinds / sizeof *kinds)], operand(t), operand(t));
    }
}

/* Joins the leaves pairwise in random order; now and then one is joined twice. */
static uint32_t put_joints(lilac_text *out, const tree *t) {
    uint32_t open[LEAVES], count = t->leaves, names = t->leaves;
    for (uint32_t i = 0; i < count; i++) {
        open[i] = i;
    }
    while (count > 1) {
        const uint32_t a = below(t, count), b = (a + 1 + below(t, count - 1)) % count;
        const bool conjunction = (below(t, 6) == 0) == t->disjunctions;
        lilac_text_printf(out, "%%t%u = %s %%t%u, %%t%u : i1\n", names, conjunction ? "and" : "or",
                          open[a], open[b]);
        open[a] = names++;
        if (below(t, 8) != 0 || count == LEAVES) {
            open[b] = open[--count];
        }
        if (names > 3 * LEAVES) {
            break;
        }
    }
    return open[0];
}

static void generate(lilac_text *out, const tree *t) {
    const char *type = t->wide ? "i64" : "i32";
    lilac_text_printf(
        out,
        "simt.module target \"sm_90a\" {\nkernel @k(%%o: i64 ptr align 16, %%i: i64 ptr align 16, "
        "%%n: %s, %%m: %s) warps 1 ctas 1 shared 0 {\n%%o = param 0 : i64\n%%i = param 1 : i64\n"
        "%%n = param 2 : %s\n%%m = param 3 : %s\n%%t = thread : i32\n",
        type, type, type, type);
    lilac_text_printf(out,
                      "%%zero = const 0 : %s\n%%minus = const -1 : %s\n%%seven = const 7 : %s\n",
                      type, type, type);
    lilac_text_printf(out,
                      "%%size = const %u : i32\n%%at = mulwide_u %%t, %%size : i64\n%%from = add "
                      "%%i, %%at : i64\n"
                      "%%x = ld.global [%%from] : %s\n%%y = ld.global [%%from + %u] : %s\n"
                      "%%far = ld.global [%%from + %u] : %s\n%%natural = and %%far, %%seven : %s\n",
                      t->wide ? 24u : 12u, type, t->wide ? 8u : 4u, type, t->wide ? 16u : 8u, type,
                      type);
    for (uint32_t i = 0; i < t->leaves; i++) {
        put_leaf(out, t, i);
    }
    const uint32_t root = put_joints(out, t);
    lilac_text_printf(
        out,
        "%%r = zext %%t%u : i32\n%%four = const 4 : i32\n%%to = mulwide_u %%t, %%four : i64\n"
        "%%place = add %%o, %%to : i64\nst.global [%%place], (%%r)\nreturn\n}\n}\n",
        root);
}

/* All threads for all pairs of bounds. */
static void execute(lilac_context *context, const lilac_simt_module *module, const tree *t,
                    const uint8_t *input, uint32_t output[EDGES * EDGES][THREADS]) {
    const int64_t *edges = t->wide ? wide_edges : narrow_edges;
    const uint64_t mask = t->wide ? UINT64_MAX : UINT32_MAX;
    for (uint32_t k = 0; k < EDGES * EDGES; k++) {
        lilac_sim_buffer buffers[2] = {
            {.name = "out", .bytes = (uint8_t *)output[k], .size = sizeof output[k]},
            {.name = "in",
             .bytes = (uint8_t *)(uintptr_t)input,
             .size = THREADS * 24,
             .read_only = true}};
        lilac_sim_place(buffers, 2);
        const uint64_t arguments[4] = {buffers[0].address, buffers[1].address,
                                       (uint64_t)edges[k / EDGES] & mask,
                                       (uint64_t)edges[k % EDGES] & mask};
        const lilac_sim_launch launch = {.kernel = module->kernels,
                                         .grid = {1, 1, 1},
                                         .arguments = arguments,
                                         .argument_count = 4,
                                         .buffers = buffers,
                                         .buffer_count = 2,
                                         .threads = 1};
        lilac_sim_counters counters = {0};
        assert_true(lilac_sim_run(context, &launch, &counters));
    }
}

static void fill(const tree *t, uint8_t *input) {
    for (uint32_t i = 0; i < THREADS * 3; i++) {
        const int64_t number = below(t, 4) == 0 ? (int64_t)lilac_random_next(t->random)
                               : t->wide        ? wide_edges[below(t, EDGES)]
                                                : narrow_edges[below(t, EDGES)];
        memcpy(input + (t->wide ? 8 : 4) * i, &number, t->wide ? 8 : 4);
    }
}

static lilac_simt_module *read(lilac_context *context, const lilac_text *text) {
    lilac_simt_module *module =
        lilac_simt_read(context, lilac_source_add(context, "tests", text->bytes, text->length));
    if (module == NULL || !lilac_simt_verify(module)) {
        fail_msg("%s", text->bytes);
    }
    return module;
}

static bool same(const tree *t) {
    static uint32_t wanted[EDGES * EDGES][THREADS], got[EDGES * EDGES][THREADS];
    uint8_t input[THREADS * 24];
    lilac_text text = {0};
    generate(&text, t);
    fill(t, input);
    lilac_context *context = lilac_context_create();
    lilac_simt_module *module = read(context, &text);
    execute(context, module, t, input, wanted);
    const bool changed = lilac_simt_opt_merge_range_tests(module->kernels);
    assert_true(lilac_simt_verify(module));
    execute(context, module, t, input, got);
    if (memcmp(wanted, got, sizeof got) != 0) {
        fail_msg("other answers:\n%s", text.bytes);
    }
    lilac_text_clear(&text);
    lilac_simt_module_destroy(module);
    lilac_context_destroy(context);
    return changed;
}

static void random_trees(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 29);
    uint32_t changed = 0;
    for (uint32_t round = 0; round < CASES; round++) {
        tree t = {.random = &random};
        t.wide = below(&t, 2) == 1;
        t.disjunctions = below(&t, 2) == 1;
        t.leaves = 2 + below(&t, LEAVES - 1);
        changed += same(&t);
    }
    assert_in_range(changed, CASES / 4, CASES);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_trees)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
