/* orient_dots: a program and what the pass makes of it have one meaning, by the reference interpreter:
 * products in loops and outside of them, with every combination of loaded, computed and transposed
 * operands. The pass fires where the header of its source says so, and nowhere else. */
#include "support/random_programs.h"
#include "support/test.h"

#include <lilac/engine.h>

#include <math.h>

typedef enum operand_form { LOADED, TRANSPOSED, COMPUTED, OUTSIDE, OPERAND_FORMS } operand_form;
typedef enum sum_form { CARRIED, SCALED, USED_TWICE, CONSTANT, CROSSED, SUM_FORMS } sum_form;

typedef struct dot_case {
    operand_form a, b;
    sum_form sum;
    bool integers; /* i8 and i32, else f16 and f32 */
    uint32_t m, n, k;
} dot_case;

/* ---- the text -------------------------------------------------------------------------------- */

/* Row-major offsets of a matrix, of the name `name`. */
static void put_offsets(lilac_text *t, const char *name, uint32_t rows, uint32_t columns) {
    lilac_text_printf(t,
                      "%%%s_r = tt.make_range {end = %u : i32, start = 0 : i32} : tensor<%uxi32>\n"
                      "%%%s_c = tt.make_range {end = %u : i32, start = 0 : i32} : tensor<%uxi32>\n"
                      "%%%s_n = arith.constant dense<%u> : tensor<%uxi32>\n"
                      "%%%s_m = arith.muli %%%s_r, %%%s_n : tensor<%uxi32>\n",
                      name, rows, rows, name, columns, columns, name, columns, rows, name, name,
                      name, rows);
    lilac_text_printf(
        t,
        "%%%s_rr = tt.expand_dims %%%s_m {axis = 1 : i32} : tensor<%uxi32> -> tensor<%ux1xi32>\n"
        "%%%s_cc = tt.expand_dims %%%s_c {axis = 0 : i32} : tensor<%uxi32> -> tensor<1x%uxi32>\n"
        "%%%s_x = tt.broadcast %%%s_rr : tensor<%ux1xi32> -> tensor<%ux%uxi32>\n"
        "%%%s_y = tt.broadcast %%%s_cc : tensor<1x%uxi32> -> tensor<%ux%uxi32>\n"
        "%%%s_o = arith.addi %%%s_x, %%%s_y : tensor<%ux%uxi32>\n",
        name, name, rows, rows, name, name, columns, columns, name, name, rows, rows, columns, name,
        name, columns, rows, columns, name, name, name, rows, columns);
}

/* Pointers to a matrix in the buffer of the same name. */
static void put_pointers(lilac_text *t, const char *name, uint32_t rows, uint32_t columns,
                         const char *type) {
    put_offsets(t, name, rows, columns);
    lilac_text_printf(t,
                      "%%%s_s = tt.splat %%%s : !tt.ptr<%s> -> tensor<%ux%ux!tt.ptr<%s>>\n"
                      "%%%s_p = tt.addptr %%%s_s, %%%s_o : tensor<%ux%ux!tt.ptr<%s>>, "
                      "tensor<%ux%uxi32>\n",
                      name, name, type, rows, columns, type, name, name, name, rows, columns, type,
                      rows, columns);
}

static void put_load(lilac_text *t, const char *name, uint32_t rows, uint32_t columns,
                     const char *type) {
    lilac_text_printf(t, "%%%s_v = tt.load %%%s_p : tensor<%ux%ux!tt.ptr<%s>>\n", name, name, rows,
                      columns, type);
}

/* The operand %a_d or %b_d, from the loaded matrix. */
static void put_operand(lilac_text *t, const char *name, operand_form form, uint32_t rows,
                        uint32_t columns, const char *type) {
    if (form == TRANSPOSED) {
        lilac_text_printf(
            t,
            "%%%s_d = tt.trans %%%s_v {order = array<i32: 1, 0>} : tensor<%ux%ux%s> -> "
            "tensor<%ux%ux%s>\n",
            name, name, columns, rows, type, rows, columns, type);
    } else if (form == COMPUTED) {
        lilac_text_printf(t, "%%%s_d = arith.add%c %%%s_v, %%%s_v : tensor<%ux%ux%s>\n", name,
                          type[0] == 'i' ? 'i' : 'f', name, name, rows, columns, type);
    }
}

static const char *operand_of(operand_form form) {
    return form == TRANSPOSED || form == COMPUTED ? "d" : "v";
}

static void put_case(lilac_text *t, const dot_case *c) {
    const char *e = c->integers ? "i8" : "f16", *f = c->integers ? "i32" : "f32";
    const uint32_t m = c->m, n = c->n, k = c->k;
    const bool at = c->a == TRANSPOSED, bt = c->b == TRANSPOSED;
    lilac_text_printf(t,
                      "module {\ntt.func public @f(%%a: !tt.ptr<%s> {tt.divisibility = 16 : i32}, "
                      "%%b: !tt.ptr<%s> {tt.divisibility = 16 : i32}, %%c: !tt.ptr<%s>, %%o: "
                      "!tt.ptr<%s>) {\n",
                      e, e, f, f);
    put_pointers(t, "a", at ? k : m, at ? m : k, e);
    put_pointers(t, "b", bt ? n : k, bt ? k : n, e);
    put_pointers(t, "c", m, n, f);
    put_pointers(t, "o", m, n, f);
    put_load(t, "c", m, n, f);
    if (c->a == OUTSIDE) {
        put_load(t, "a", m, k, e);
    }
    if (c->b == OUTSIDE) {
        put_load(t, "b", k, n, e);
    }
    lilac_text_printf(
        t,
        "%%c0 = arith.constant 0 : i32\n%%c1 = arith.constant 1 : i32\n"
        "%%c2 = arith.constant 2 : i32\n"
        "%%r:2 = scf.for %%i = %%c0 to %%c2 step %%c1 iter_args(%%u = %%c_v, %%w = %%c_v) "
        "-> (tensor<%ux%ux%s>, tensor<%ux%ux%s>) : i32 {\n",
        m, n, f, m, n, f);
    if (c->a != OUTSIDE) {
        put_load(t, "a", at ? k : m, at ? m : k, e);
    }
    if (c->b != OUTSIDE) {
        put_load(t, "b", bt ? n : k, bt ? k : n, e);
    }
    put_operand(t, "a", c->a, m, k, e);
    put_operand(t, "b", c->b, k, n, e);
    lilac_text_printf(t,
                      "%%d = tt.dot %%a_%s, %%b_%s, %%%s : tensor<%ux%ux%s> * tensor<%ux%ux%s> -> "
                      "tensor<%ux%ux%s>\n",
                      operand_of(c->a), operand_of(c->b), c->sum == CONSTANT ? "c_v" : "u", m, k, e,
                      k, n, e, m, n, f);
    const char *next = "d", *other = "w", kind = c->integers ? 'i' : 'f';
    if (c->sum == SCALED || c->sum == CONSTANT) {
        lilac_text_printf(t, "%%next = arith.add%c %%d, %%u : tensor<%ux%ux%s>\n", kind, m, n, f);
        next = "next";
    } else if (c->sum == USED_TWICE) {
        lilac_text_printf(t, "%%other = arith.add%c %%d, %%w : tensor<%ux%ux%s>\n", kind, m, n, f);
        other = "other";
    } else if (c->sum == CROSSED) { /* the loop carries the sum as another value */
        next = "w";
        other = "d";
    }
    lilac_text_printf(t,
                      "scf.yield %%%s, %%%s : tensor<%ux%ux%s>, tensor<%ux%ux%s>\n}\n"
                      "%%sum = arith.add%c %%r#0, %%r#1 : tensor<%ux%ux%s>\n"
                      "tt.store %%o_p, %%sum : tensor<%ux%ux!tt.ptr<%s>>\ntt.return\n}\n}\n",
                      next, other, m, n, f, m, n, f, kind, m, n, f, m, n, f);
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* wgmma has N rows of the exchanged product, in groups of 64. Operands that the loop computes go to its
 * first place; of 8 bits, so do those with n contiguous, if the other one has k contiguous then. */
static bool is_exchanged(const dot_case *c) {
    const bool a_has_k_contiguous = c->a != TRANSPOSED, b_has_n_contiguous = c->b != TRANSPOSED;
    if (c->a == COMPUTED || c->n < 64 || c->m < 8) {
        return false;
    }
    if (c->b == COMPUTED) {
        return !c->integers || a_has_k_contiguous;
    }
    return c->integers && a_has_k_contiguous && b_has_n_contiguous;
}

static void try_case(const dot_case *c, uint64_t seed, program_comparison *all) {
    const lilac_target target = {
        .arch = lilac_arch_find("sm_90a"), .num_warps = 4, .num_ctas = 1, .num_stages = 1};
    lilac_context *context = lilac_context_create();
    lilac_text text = {0};
    program p;
    bool changed;
    put_case(&text, c);
    lilac_tile_module *module = lilac_tile_read(
        context, lilac_source_add(context, "dot.ttir", lilac_text_get(&text), text.length));
    if (module == NULL || !lilac_tile_verify(module, false)) {
        print_diagnostics(context);
        fail_msg("%s", lilac_text_get(&text));
    }
    assert_true(lilac_engine_orient_dots(module, &target, &changed));
    assert_true(lilac_tile_verify(module, false));
    assert_true(program_of_text(&p, lilac_text_get(&text), text.length, 4, 128 * 128));
    p.data_seed = seed;
    p.plain_data = true;
    const program_comparison j = program_compare_within(&p, module);
    if (j.outcome != PROGRAM_SAME || changed != is_exchanged(c)) {
        fputs(lilac_text_get(&text), stderr);
        fail_msg("case %llu, changed %d: %s", (unsigned long long)seed, changed, j.why);
    }
    all->exact += j.exact;
    all->within += j.within;
    all->open += j.open;
    program_clear(&p);
    lilac_text_clear(&text);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void exchanged_products_are_equal(void **state) {
    (void)state;
    static const uint32_t shapes[][3] = {
        {64, 64, 32}, {64, 128, 32}, {128, 64, 32}, {64, 32, 32}, {16, 64, 64}};
    program_comparison all = {.outcome = PROGRAM_SAME};
    lilac_random random;
    lilac_random_seed(&random, 1);
    for (uint32_t i = 0; i < OPERAND_FORMS * OPERAND_FORMS * SUM_FORMS; i++) {
        const uint32_t *shape = shapes[random_below(&random, 5)];
        const dot_case c = {.a = (operand_form)(i % OPERAND_FORMS),
                            .b = (operand_form)(i / OPERAND_FORMS % OPERAND_FORMS),
                            .sum = (sum_form)(i / OPERAND_FORMS / OPERAND_FORMS),
                            .integers = random_below(&random, 2) != 0,
                            .m = shape[0],
                            .n = shape[1],
                            .k = shape[2]};
        try_case(&c, i + 1, &all);
    }
    print_message("%llu exact, %llu within their error, %llu open\n", (unsigned long long)all.exact,
                  (unsigned long long)all.within, (unsigned long long)all.open);
    assert_true(all.exact > 20 * all.open && all.within > 0);
}

/* Devices without wgmma, and too few warps for one. */
static void other_targets_keep_products(void **state) {
    (void)state;
    static const struct {
        const char *device;
        uint32_t warps;
        bool changed;
    } cases[] = {
        {"sm_90a", 4, true}, {"sm_90a", 2, false}, {"sm_80", 4, false}, {"sm_100a", 4, false}};
    const dot_case c = {.a = LOADED, .b = COMPUTED, .m = 64, .n = 64, .k = 32};
    lilac_text text = {0};
    put_case(&text, &c);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const lilac_target target = {.arch = lilac_arch_find(cases[i].device),
                                     .num_warps = cases[i].warps,
                                     .num_ctas = 1,
                                     .num_stages = 1};
        lilac_context *context = lilac_context_create();
        lilac_tile_module *module = lilac_tile_read(
            context, lilac_source_add(context, "dot.ttir", lilac_text_get(&text), text.length));
        bool changed;
        assert_true(lilac_engine_orient_dots(module, &target, &changed));
        assert_int_equal(changed, cases[i].changed);
        lilac_tile_module_destroy(module);
        lilac_context_destroy(context);
    }
    lilac_text_clear(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchanged_products_are_equal),
        cmocka_unit_test(other_targets_keep_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
