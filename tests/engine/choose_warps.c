/* choose_warps: the number of warps by the rows and the tensors of products, and the kernels that keep theirs. */
#include "support/test.h"

#include <lilac/driver.h>
#include <lilac/engine.h>

typedef struct kernel_form {
    uint32_t m, n, k;
    uint32_t columns;      /* of a second product, of the first one's result; 0: there is none */
    uint32_t sums;         /* products with sums of their own; 0: one */
    const char *attribute; /* of the module; NULL: none */
    bool persistent, no_loop, assembly, two_kernels;
} kernel_form;

static void put_load(lilac_text *t, const char *name, uint32_t rows, uint32_t columns) {
    lilac_text_printf(t,
                      "%%%s_p = tt.splat %%a : !tt.ptr<f16> -> tensor<%ux%ux!tt.ptr<f16>>\n"
                      "%%%s = tt.load %%%s_p : tensor<%ux%ux!tt.ptr<f16>>\n",
                      name, rows, columns, name, name, rows, columns);
}

static void put_product(lilac_text *t, const kernel_form *c, uint32_t i, const char *sum) {
    lilac_text_printf(t,
                      "%%d%u = tt.dot %%x, %%y, %s : tensor<%ux%uxf16> * tensor<%ux%uxf16> -> "
                      "tensor<%ux%uxf32>\n",
                      i, sum, c->m, c->k, c->k, c->n, c->m, c->n);
}

/* Sums of x y in a loop, or of a function of x y times z. */
static void put_body(lilac_text *t, const kernel_form *c) {
    put_load(t, "x", c->m, c->k);
    put_load(t, "y", c->k, c->n);
    if (c->columns > 0) {
        put_load(t, "z", c->n, c->columns);
        put_product(t, c, 0, "%none");
        lilac_text_printf(t,
                          "%%e = math.exp2 %%d0 : tensor<%ux%uxf32>\n"
                          "%%h = arith.truncf %%e : tensor<%ux%uxf32> to tensor<%ux%uxf16>\n"
                          "%%r0 = tt.dot %%h, %%z, %%s0 : tensor<%ux%uxf16> * tensor<%ux%uxf16> -> "
                          "tensor<%ux%uxf32>\n",
                          c->m, c->n, c->m, c->n, c->m, c->n, c->m, c->n, c->n, c->columns, c->m,
                          c->columns);
        return;
    }
    for (uint32_t i = 0; i < (c->sums > 0 ? c->sums : 1); i++) {
        char sum[16];
        (void)snprintf(sum, sizeof sum, "%%s%u", i);
        put_product(t, c, i, c->no_loop ? "%zero" : sum);
        if (c->assembly) {
            lilac_text_printf(
                t,
                "%%r%u = tt.elementwise_inline_asm \"mov.b32 $0, $1;\" {constraints = "
                "\"=f,f\", packed_element = 1 : i32, pure = false} %%d%u : "
                "tensor<%ux%uxf32> -> tensor<%ux%uxf32>\n",
                i, i, c->m, c->n, c->m, c->n);
        } else {
            lilac_text_printf(t, "%%r%u = arith.addf %%d%u, %%d%u : tensor<%ux%uxf32>\n", i, i, i,
                              c->m, c->n);
        }
    }
}

static void put_kernel(lilac_text *t, const kernel_form *c, const char *name) {
    const uint32_t sums = (c->sums > 0 ? c->sums : 1), columns = c->columns > 0 ? c->columns : c->n;
    lilac_text_printf(t,
                      "tt.func public @%s(%%a: !tt.ptr<f16>, %%o: !tt.ptr<f32>, %%count: i32) {\n"
                      "%%c0 = arith.constant 0 : i32\n%%c1 = arith.constant 1 : i32\n"
                      "%%none = arith.constant dense<0.0> : tensor<%ux%uxf32>\n"
                      "%%zero = arith.constant dense<0.0> : tensor<%ux%uxf32>\n"
                      "%%op = tt.splat %%o : !tt.ptr<f32> -> tensor<%ux%ux!tt.ptr<f32>>\n",
                      name, c->m, c->n, c->m, columns, c->m, columns);
    if (c->persistent) {
        lilac_text_puts(t, "%first = tt.get_program_id x : i32\n"
                           "%all = tt.get_num_programs x : i32\n"
                           "scf.for %tile = %first to %count step %all : i32 {\n");
    }
    if (c->no_loop) {
        put_body(t, c);
        lilac_text_printf(t, "tt.store %%op, %%r0 : tensor<%ux%ux!tt.ptr<f32>>\n", c->m, columns);
    } else {
        lilac_text_printf(t, "%%l:%u = scf.for %%i = %%c0 to %%count step %%c1 iter_args(", sums);
        for (uint32_t i = 0; i < sums; i++) {
            lilac_text_printf(t, "%s%%s%u = %%zero", i > 0 ? ", " : "", i);
        }
        for (uint32_t i = 0; i < sums; i++) {
            lilac_text_printf(t, "%stensor<%ux%uxf32>", i > 0 ? ", " : ") -> (", c->m, columns);
        }
        lilac_text_puts(t, ") : i32 {\n");
        put_body(t, c);
        for (uint32_t i = 0; i < sums; i++) {
            lilac_text_printf(t, "%s%%r%u", i > 0 ? ", " : "scf.yield ", i);
        }
        for (uint32_t i = 0; i < sums; i++) {
            lilac_text_printf(t, "%stensor<%ux%uxf32>", i > 0 ? ", " : " : ", c->m, columns);
        }
        lilac_text_puts(t, "\n}\n");
        for (uint32_t i = 0; i < sums; i++) {
            lilac_text_printf(t, "tt.store %%op, %%l#%u : tensor<%ux%ux!tt.ptr<f32>>\n", i, c->m,
                              columns);
        }
    }
    lilac_text_puts(t, c->persistent ? "}\ntt.return\n}\n" : "tt.return\n}\n");
}

/* The warps of the compiled module, for these. */
static uint32_t warps_of(const kernel_form *c, lilac_target target, lilac_compilation *result) {
    lilac_context *context = lilac_context_create();
    lilac_text text = {0};
    lilac_options options;
    lilac_text_printf(&text, "module%s%s {\n", c->attribute != NULL ? " attributes " : "",
                      c->attribute != NULL ? c->attribute : "");
    put_kernel(&text, c, "f");
    if (c->two_kernels) {
        put_kernel(&text, c, "g");
    }
    lilac_text_puts(&text, "}\n");
    lilac_options_init(&options);
    options.target = target;
    options.target.num_stages = target.num_stages > 0 ? target.num_stages : 2;
    options.stop_after = "resize_tiles";
    options.verify = true;
    if (!lilac_compile(result, context,
                       lilac_source_add(context, "f.ttir", lilac_text_get(&text), text.length),
                       &options)) {
        print_diagnostics(context);
        fail_msg("%s", lilac_text_get(&text));
    }
    assert_int_equal(result->asked_warps, target.num_warps);
    const uint32_t warps = result->target.num_warps;
    assert_true(warps == target.num_warps || result->warps_reason.text[0] != '\0');
    lilac_text_clear(&text);
    lilac_compilation_clear(result);
    lilac_context_destroy(context);
    return warps;
}

static const lilac_target four = {.num_warps = 4, .num_ctas = 1},
                          eight = {.num_warps = 8, .num_ctas = 1};

/* The tensors of one thread of four warps are in the comments, in words. */
static void by_rows_and_words(void **state) {
    (void)state;
    static const struct {
        kernel_form form;
        uint32_t of_four, of_eight;
    } cases[] = {
        {{.m = 128, .n = 64, .k = 64}, 4, 4},                 /* 64 */
        {{.m = 128, .n = 128, .k = 64}, 4, 8},                /* 128 */
        {{.m = 256, .n = 64, .k = 64}, 4, 8},                 /* 128 */
        {{.m = 128, .n = 256, .k = 64}, 8, 8},                /* 256 */
        {{.m = 256, .n = 128, .k = 32}, 8, 8},                /* 256 */
        {{.m = 128, .n = 64, .k = 64, .sums = 2}, 4, 8},      /* 128 */
        {{.m = 128, .n = 64, .k = 64, .sums = 3}, 8, 8},      /* 192 */
        {{.m = 64, .n = 64, .k = 64}, 4, 4},                  /* 32 */
        {{.m = 64, .n = 256, .k = 64}, 4, 4},                 /* 128 */
        {{.m = 64, .n = 128, .k = 64, .sums = 3}, 8, 8},      /* 192 */
        {{.m = 64, .n = 64, .k = 64, .columns = 64}, 4, 4},   /* 64 */
        {{.m = 64, .n = 256, .k = 64, .columns = 128}, 4, 4}, /* 192, of a chain */
        {{.m = 64, .n = 256, .k = 64, .columns = 256}, 8, 8}, /* 256, of a chain */
        {{.m = 128, .n = 64, .k = 32, .columns = 32}, 4, 4},  /* 96 */
        {{.m = 128, .n = 64, .k = 64, .columns = 64}, 4, 8},  /* 128 */
        {{.m = 128, .n = 128, .k = 32, .columns = 32}, 8, 8}, /* 160 */
        {{.m = 128, .n = 128, .k = 64, .columns = 64}, 8, 8}, /* 192 */
        {{.m = 128, .n = 32, .k = 64, .columns = 128}, 4, 8}, /* 160, of short iterations */
        {{.m = 128, .n = 32, .k = 64, .columns = 256}, 8, 8}, /* 288 */
        {{.m = 128, .n = 64, .k = 64, .columns = 128}, 8, 8}, /* 192 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint32_t maps = 0; maps < 2; maps++) {
            lilac_target of_four = four, of_eight = eight;
            lilac_compilation result;
            of_four.launch_maps = of_eight.launch_maps = maps != 0;
            const uint32_t found = warps_of(&cases[i].form, of_four, &result);
            const uint32_t other = warps_of(&cases[i].form, of_eight, &result);
            if (found != cases[i].of_four || other != cases[i].of_eight) {
                fail_msg("case %zu: %u and %u warps", i, found, other);
            }
        }
    }
}

/* With one stage, four stay four where eight would divide columns, unless their tensors alone are too many. */
static void of_one_stage(void **state) {
    (void)state;
    const kernel_form sums = {.m = 64, .n = 128, .k = 64, .sums = 3}, /* 192 */
        chain = {.m = 64, .n = 256, .k = 64, .columns = 256},         /* 256 */
        rows = {.m = 128, .n = 64, .k = 64, .sums = 3};               /* 192 */
    lilac_target target = four;
    lilac_compilation result;
    target.num_stages = 1;
    assert_int_equal(warps_of(&sums, target, &result), 4);
    assert_int_equal(warps_of(&chain, target, &result), 8);
    assert_int_equal(warps_of(&rows, target, &result), 8);
    target.num_stages = 2;
    assert_int_equal(warps_of(&sums, target, &result), 8);
}

/* Each of these would have the other number of warps, but for one member. */
static void kept(void **state) {
    (void)state;
    const kernel_form large = {.m = 128, .n = 256, .k = 64}, small = {.m = 128, .n = 64, .k = 64};
    lilac_compilation result;
    assert_int_equal(warps_of(&large, four, &result), 8);
    assert_int_equal(warps_of(&small, eight, &result), 4);
    static const char *const devices[] = {"sm_80", "sm_89", "sm_90", "sm_100a", "sm_120a"};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        lilac_target target = four;
        target.arch = lilac_arch_find(devices[i]);
        assert_non_null(target.arch);
        assert_int_equal(warps_of(&large, target, &result), 4);
    }
    lilac_target target = four;
    target.keep_warps = true;
    assert_int_equal(warps_of(&large, target, &result), 4);
    target = four;
    target.num_ctas = 2;
    assert_int_equal(warps_of(&large, target, &result), 4);
    kernel_form form = large;
    form.attribute = "{\"ttg.num-warps\" = 4 : i32}";
    assert_int_equal(warps_of(&form, four, &result), 4);
    form = large;
    form.assembly = true;
    assert_int_equal(warps_of(&form, four, &result), 4);
    form = large;
    form.no_loop = true;
    assert_int_equal(warps_of(&form, four, &result), 4);
    form = large;
    form.two_kernels = true;
    assert_int_equal(warps_of(&form, four, &result), 4);
    form = small;
    form.persistent = true;
    assert_int_equal(warps_of(&form, eight, &result), 8);
    form.m = 64;
    assert_int_equal(warps_of(&form, eight, &result), 8);
    form = large; /* what spills spills in persistent programs, too */
    form.persistent = true;
    assert_int_equal(warps_of(&form, four, &result), 8);
    form = large; /* and 8 columns or more, of all products */
    form.columns = 4;
    assert_int_equal(warps_of(&form, four, &result), 4);
    form = large; /* wgmma has 64 rows */
    form.m = 32;
    form.n = 1024;
    assert_int_equal(warps_of(&form, four, &result), 4);
}

static void of_other_numbers(void **state) {
    (void)state;
    static const uint32_t asked[] = {1, 2, 16, 32};
    static const struct {
        kernel_form form;
        uint32_t of[4];
    } cases[] = {
        {{.m = 64, .n = 32, .k = 64}, {1, 2, 4, 4}},                         /* 16 */
        {{.m = 64, .n = 64, .k = 64}, {4, 4, 4, 4}},                         /* 32 */
        {{.m = 128, .n = 128, .k = 64}, {4, 4, 8, 8}},                       /* 128 */
        {{.m = 128, .n = 256, .k = 64}, {8, 8, 8, 8}},                       /* 256 */
        {{.m = 256, .n = 256, .k = 64}, {8, 8, 16, 32}},                     /* 512 */
        {{.m = 128, .n = 128, .k = 64, .persistent = true}, {4, 4, 16, 32}}, /* 128 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
            lilac_compilation result;
            const lilac_target target = {.num_warps = asked[k], .num_ctas = 1};
            const uint32_t found = warps_of(&cases[i].form, target, &result);
            if (found != cases[i].of[k]) {
                fail_msg("case %zu, %u warps: %u", i, asked[k], found);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_rows_and_words),
        cmocka_unit_test(of_one_stage),
        cmocka_unit_test(kept),
        cmocka_unit_test(of_other_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
