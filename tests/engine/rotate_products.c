/* select_dots, rotate_products and overlap_products: loops with products by wgmma compute on the
 * simulator what the interpreter says that they mean, for every number of iterations and of stages, and
 * nothing races. Each loop is one that rotate_products changes with more than one stage:
 *
 *     scores    p = f(q · k), sum += p · v
 *     extremes  the same, and the maxima of the scores
 *     weights   sum += convert(w) · v, with w of 8 bits
 *     both      two sums, of which each product has a converted operand
 *
 * Products of integers are compared bit for bit. */
#include "support/random_programs.h"
#include "support/test.h"

#include <lilac/engine.h>

enum { SIDE = 64, BLOCK = SIDE * SIDE, MOST_ITERATIONS = 4, CASES = 48 };

typedef enum form { SCORES, EXTREMES, WEIGHTS, BOTH, FORMS } form;

typedef struct loop_case {
    form form;
    bool integers; /* i8 and i32, else f16 and f32 */
    bool carried;  /* the loop carries the pointers, and the counter may start anywhere */
    bool masked;
    int64_t lower, step;
    uint32_t iterations, stages;
} loop_case;

/* ---- the text -------------------------------------------------------------------------------- */

static void put(lilac_text *t, const loop_case *c, const char *text) {
    /* E: elements; F: sums */
    const char *const element = c->integers ? "i8" : "f16", *const sum =
                                                                c->integers ? "i32" : "f32";
    for (; *text != '\0'; text++) {
        if (*text == 'E' || *text == 'F') {
            lilac_text_puts(t, *text == 'E' ? element : sum);
        } else {
            lilac_text_char(t, *text);
        }
    }
}

static void put_load(lilac_text *t, const loop_case *c, const char *name, const char *type) {
    const char *from = name;
    lilac_text_printf(t, "%%%s_s = tt.splat %%%s_at : !tt.ptr<%s> -> tensor<64x64x!tt.ptr<%s>>\n",
                      name, from, type, type);
    lilac_text_printf(t,
                      "%%%s_q = tt.addptr %%%s_s, %%offsets : tensor<64x64x!tt.ptr<%s>>, "
                      "tensor<64x64xi32>\n%%%s_x = tt.load %%%s_q%s : tensor<64x64x!tt.ptr<%s>>\n",
                      name, name, type, name, name, c->masked ? ", %mask" : "", type);
}

static void put_body(lilac_text *t, const loop_case *c) {
    const bool weights = c->form == WEIGHTS || c->form == BOTH;
    put_load(t, c, "k", weights ? "i8" : c->integers ? "i8" : "f16");
    put_load(t, c, "v", c->integers ? "i8" : "f16");
    if (weights) {
        put(t, c,
            c->integers ? "%a = arith.muli %k_x, %three : tensor<64x64xi8>\n"
                        : "%a = arith.sitofp %k_x : tensor<64x64xi8> to tensor<64x64xf16>\n");
        put(t, c,
            "%d = tt.dot %a, %v_x, %sum : tensor<64x64xE> * tensor<64x64xE> -> tensor<64x64xF>\n");
        if (c->form == BOTH) {
            put(t, c,
                c->integers ? "%b = arith.addi %k_x, %three : tensor<64x64xi8>\n"
                            : "%b = arith.addf %a, %a : tensor<64x64xf16>\n");
            put(t, c,
                "%f = tt.dot %b, %v_x, %more : tensor<64x64xE> * tensor<64x64xE> -> "
                "tensor<64x64xF>\n");
        }
        return;
    }
    put(t, c,
        "%kt = tt.trans %k_x {order = array<i32: 1, 0>} : tensor<64x64xE> -> tensor<64x64xE>\n"
        "%s = tt.dot %q_x, %kt, %zero : tensor<64x64xE> * tensor<64x64xE> -> tensor<64x64xF>\n");
    put(t, c,
        c->integers ? "%p = arith.trunci %s : tensor<64x64xi32> to tensor<64x64xi8>\n"
                    : "%small = arith.mulf %s, %scale : tensor<64x64xf32>\n"
                      "%p = arith.truncf %small : tensor<64x64xf32> to tensor<64x64xf16>\n");
    put(t, c,
        "%d = tt.dot %p, %v_x, %sum : tensor<64x64xE> * tensor<64x64xE> -> tensor<64x64xF>\n");
    if (c->form == EXTREMES) {
        put(t, c,
            c->integers ? "%f = arith.maxsi %more, %s : tensor<64x64xi32>\n"
                        : "%f = arith.maxnumf %more, %s : tensor<64x64xf32>\n");
    }
}

static void put_case(lilac_text *t, const loop_case *c) {
    const bool two = c->form == EXTREMES || c->form == BOTH;
    const char *k = c->form == WEIGHTS || c->form == BOTH || c->integers ? "i8" : "f16";
    const char *v = c->integers ? "i8" : "f16";
    put(t, c, "module {\ntt.func public @k(%q_at: !tt.ptr<E> {tt.divisibility = 16 : i32}, ");
    lilac_text_printf(t, "%%k: !tt.ptr<%s> {tt.divisibility = 16 : i32}, ", k);
    put(t, c,
        "%v: !tt.ptr<E> {tt.divisibility = 16 : i32}, %o: !tt.ptr<F> {tt.divisibility = 16 : "
        "i32}, %lower: i32, %upper: i32) {\n%zero = arith.constant dense<0");
    put(t, c, c->integers ? "> : tensor<64x64xF>\n" : ".0> : tensor<64x64xF>\n");
    put(t, c,
        c->integers ? "%three = arith.constant dense<3> : tensor<64x64xi8>\n"
                    : "%scale = arith.constant dense<0.000244140625> : tensor<64x64xf32>\n");
    lilac_text_printf(
        t,
        "%%step = arith.constant %lld : i32\n%%c4096 = arith.constant 4096 : i32\n"
        "%%n = arith.constant dense<64> : tensor<64x1xi32>\n"
        "%%r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
        "%%rows = tt.expand_dims %%r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>\n"
        "%%columns = tt.expand_dims %%r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>\n"
        "%%down = arith.muli %%rows, %%n : tensor<64x1xi32>\n"
        "%%x = tt.broadcast %%down : tensor<64x1xi32> -> tensor<64x64xi32>\n"
        "%%y = tt.broadcast %%columns : tensor<1x64xi32> -> tensor<64x64xi32>\n"
        "%%offsets = arith.addi %%x, %%y : tensor<64x64xi32>\n"
        "%%limit = arith.constant dense<4000> : tensor<64x64xi32>\n"
        "%%mask = arith.cmpi slt, %%offsets, %%limit : tensor<64x64xi32>\n",
        (long long)c->step);
    loop_case unmasked = *c;
    unmasked.masked = false;
    put_load(t, &unmasked, "q", v);
    const char *results = two ? "%res:2" : "%res", *more = two ? ", %more = %zero" : "";
    lilac_text_printf(
        t, "%s = scf.for %%i = %%lower to %%upper step %%step iter_args(%%sum = %%zero%s",
        c->carried ? (two ? "%res:4" : "%res:3") : results, more);
    lilac_text_printf(t, "%s) -> (", c->carried ? ", %k_at = %k, %v_at = %v" : "");
    put(t, c, two ? "tensor<64x64xF>, tensor<64x64xF>" : "tensor<64x64xF>");
    if (c->carried) {
        lilac_text_printf(t, ", !tt.ptr<%s>, !tt.ptr<%s>", k, v);
    }
    lilac_text_puts(t, ") : i32 {\n");
    if (!c->carried) {
        lilac_text_printf(t,
                          "%%at = arith.muli %%i, %%c4096 : i32\n"
                          "%%k_at = tt.addptr %%k, %%at : !tt.ptr<%s>, i32\n"
                          "%%v_at = tt.addptr %%v, %%at : !tt.ptr<%s>, i32\n",
                          k, v);
    }
    put_body(t, c);
    if (c->carried) {
        lilac_text_printf(t,
                          "%%k_next = tt.addptr %%k_at, %%c4096 : !tt.ptr<%s>, i32\n"
                          "%%v_next = tt.addptr %%v_at, %%c4096 : !tt.ptr<%s>, i32\n",
                          k, v);
    }
    lilac_text_printf(t, "scf.yield %%d%s%s : ", two ? ", %f" : "",
                      c->carried ? ", %k_next, %v_next" : "");
    put(t, c, two ? "tensor<64x64xF>, tensor<64x64xF>" : "tensor<64x64xF>");
    if (c->carried) {
        lilac_text_printf(t, ", !tt.ptr<%s>, !tt.ptr<%s>", k, v);
    }
    lilac_text_puts(t, "\n}\n");
    put(t, c,
        "%out = tt.splat %o : !tt.ptr<F> -> tensor<64x64x!tt.ptr<F>>\n"
        "%oq = tt.addptr %out, %offsets : tensor<64x64x!tt.ptr<F>>, tensor<64x64xi32>\n");
    put(t, c,
        c->carried || two ? "tt.store %oq, %res#0 : tensor<64x64x!tt.ptr<F>>\n"
                          : "tt.store %oq, %res : tensor<64x64x!tt.ptr<F>>\n");
    if (two) {
        put(t, c,
            "%block = arith.constant dense<4096> : tensor<64x64xi32>\n"
            "%om = tt.addptr %oq, %block : tensor<64x64x!tt.ptr<F>>, tensor<64x64xi32>\n"
            "tt.store %om, %res#1 : tensor<64x64x!tt.ptr<F>>\n");
    }
    lilac_text_puts(t, "tt.return\n}\n}\n");
}

/* ---- the passes -------------------------------------------------------------------------------- */

typedef struct counts {
    uint32_t outside, inside, asynchronous;
} counts;

static void count_products(void *data, lilac_tile_op *op) {
    counts *c = data;
    if (op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
        const bool inside = op->parent->parent->parent != NULL;
        c->inside += inside;
        c->outside += !inside;
        c->asynchronous += lilac_tile_find_integer(&op->attributes, "isAsync", 0) != 0;
    }
}

/* What the passes change, one after another. */
static void expect_changes(const loop_case *c, const char *text) {
    const lilac_target target = {
        .arch = lilac_arch_find("sm_90a"), .num_warps = 4, .num_ctas = 1, .num_stages = c->stages};
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module =
        lilac_tile_read(context, lilac_source_add(context, "loop.ttir", text, strlen(text)));
    bool changed, rotated, overlapped;
    counts before = {0}, after = {0};
    assert_non_null(module);
    assert_true(lilac_engine_simplify(module, &target, &changed));
    assert_true(lilac_engine_orient_dots(module, &target, &changed));
    assert_true(lilac_engine_select_dots(module, &target, &changed) && changed);
    assert_true(lilac_engine_assign_layouts(module, &target, &changed));
    lilac_tile_walk(module->functions->body, count_products, &before);
    assert_true(lilac_engine_rotate_products(module, &target, &rotated));
    assert_true(lilac_tile_verify(module, true));
    assert_int_equal(rotated, c->stages > 1);
    assert_true(lilac_engine_overlap_products(module, &target, &overlapped));
    assert_true(lilac_tile_verify(module, true));
    lilac_tile_walk(module->functions->body, count_products, &after);
    /* scores: one product moves over the back edge, and has a copy in front of the loop */
    const bool scores = c->form == SCORES || c->form == EXTREMES;
    assert_int_equal(before.outside, 0);
    assert_int_equal(before.inside, scores || c->form == BOTH ? 2 : 1);
    assert_int_equal(after.inside, before.inside);
    assert_int_equal(after.outside, rotated && scores ? 1 : 0);
    assert_true(!rotated || (overlapped && after.asynchronous > 0));
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static program_comparison try_case(const loop_case *c, uint64_t seed) {
    lilac_text text = {0};
    program p;
    put_case(&text, c);
    expect_changes(c, lilac_text_get(&text));
    assert_true(
        program_of_text(&p, lilac_text_get(&text), text.length, 4, MOST_ITERATIONS * BLOCK));
    p.data_seed = seed;
    p.plain_data = true;
    p.stages = c->stages;
    p.device = lilac_arch_find("sm_90a");
    p.parameters[4].bits = (uint32_t)c->lower;
    p.parameters[5].bits =
        (uint32_t)(c->lower + (int64_t)c->iterations * c->step - (c->step + 1) / 2);
    if (c->iterations == 0) {
        p.parameters[5].bits = (uint32_t)c->lower;
    }
    const program_comparison j = program_check(&p, lilac_text_get(&text));
    if (j.outcome != PROGRAM_SAME) {
        fputs(lilac_text_get(&text), stderr);
        fail_msg("case %llu, %u iterations, %u stages: %s", (unsigned long long)seed, c->iterations,
                 c->stages, j.why);
    }
    program_clear(&p);
    lilac_text_clear(&text);
    return j;
}

static void random_loops(void **state) {
    (void)state;
    lilac_random random;
    uint64_t exact = 0, within = 0, open = 0;
    lilac_random_seed(&random, 1);
    for (uint32_t i = 0; i < scaled(CASES); i++) {
        loop_case c = {.form = (form)(i % FORMS),
                       .integers = i / FORMS % 2 != 0,
                       .carried = random_below(&random, 2) != 0,
                       .masked = random_below(&random, 3) == 0,
                       .step = 1,
                       .iterations = random_below(&random, MOST_ITERATIONS + 1),
                       .stages = 1 + random_below(&random, 4)};
        if (c.carried) {
            c.step = 1 + random_below(&random, 3);
            c.lower = (int64_t)random_below(&random, 9) - 4;
        }
        const program_comparison j = try_case(&c, i + 1);
        exact += j.exact;
        within += j.within;
        open += j.open;
    }
    print_message("%llu elements exact, %llu within their error, %llu open\n",
                  (unsigned long long)exact, (unsigned long long)within, (unsigned long long)open);
    assert_true(exact > 8 * BLOCK && within > 8 * BLOCK);
    assert_true(open < exact / 8);
}

/* The distance from the counter to the upper bound is no signed number of 32 bits. */
static void wide_ranges(void **state) {
    (void)state;
    for (uint32_t f = 0; f < FORMS; f++) {
        const loop_case c = {.form = (form)f,
                             .integers = true,
                             .carried = true,
                             .lower = -2000000000,
                             .step = 1000000000,
                             .iterations = 4,
                             .stages = 3};
        try_case(&c, 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_loops),
        cmocka_unit_test(wide_ranges),
    };
    cmocka_set_test_filter(getenv("LILAC_TEST_ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
