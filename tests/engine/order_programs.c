/* order_programs: the axis and the direction by the bounds of loops, and the kernels that keep their order. */
#include "support/test.h"

#include <lilac/driver.h>
#include <lilac/engine.h>

typedef struct form {
    const char *bounds;  /* operations that define %from and %to */
    const char *second;  /* those of a second loop; NULL: there is none */
    const char *step;    /* of both; NULL: 64 */
    const char *outside; /* of a loop around them; NULL: there is none */
    const char *more;    /* further operations of the body */
    bool no_product, two_kernels;
} form;

static void put_loop(lilac_text *t, const form *c, const char *bounds) {
    lilac_text_printf(t, "%s\n", bounds);
    if (c->outside != NULL) {
        lilac_text_printf(t, "scf.for %%u = %s {\n", c->outside);
    }
    lilac_text_puts(t, "%l = scf.for %i = %from to %to step %step iter_args(%s = %zero) -> "
                       "(tensor<64x64xf32>) : i32 {\n");
    lilac_text_puts(t,
                    c->no_product
                        ? "%d = arith.addf %s, %s : tensor<64x64xf32>\n"
                        : "%d = tt.dot %tile, %tile, %s : tensor<64x64xf16> * tensor<64x64xf16> -> "
                          "tensor<64x64xf32>\n");
    lilac_text_printf(t,
                      "scf.yield %%d : tensor<64x64xf32>\n}\n"
                      "tt.store %%out, %%l : tensor<64x64x!tt.ptr<f32>>\n%s",
                      c->outside != NULL ? "}\n" : "");
}

static void put_kernel(lilac_text *t, const form *c, const char *name) {
    lilac_text_printf(
        t,
        "tt.func public @%s(%%a: !tt.ptr<f16>, %%o: !tt.ptr<f32>, %%lengths: !tt.ptr<i32>, "
        "%%length: i32) {\n"
        "%%x = tt.get_program_id x : i32\n%%y = tt.get_program_id y : i32\n"
        "%%z = tt.get_program_id z : i32\n%%all = tt.get_num_programs x : i32\n",
        name);
    static const int32_t constants[] = {-1, 0, 1, 8, 64, 128};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        lilac_text_printf(t, "%%c%s%d = arith.constant %d : i32\n", constants[i] < 0 ? "m" : "",
                          abs(constants[i]), constants[i]);
    }
    lilac_text_printf(t,
                      "%%true = arith.constant true\n"
                      "%%zero = arith.constant dense<0.0> : tensor<64x64xf32>\n"
                      "%%ap = tt.splat %%a : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>\n"
                      "%%tile = tt.load %%ap : tensor<64x64x!tt.ptr<f16>>\n"
                      "%%out = tt.splat %%o : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>\n"
                      "%%step = %s : i32\n",
                      c->step != NULL ? c->step : "arith.constant 64");
    lilac_text_puts(t, c->more != NULL ? c->more : "");
    if (c->second == NULL) {
        put_loop(t, c, c->bounds);
    } else { /* so that each has names of its own */
        lilac_text_puts(t, "scf.if %true {\n");
        put_loop(t, c, c->bounds);
        lilac_text_puts(t, "} else {\n");
        put_loop(t, c, c->second);
        lilac_text_puts(t, "}\n");
    }
    lilac_text_puts(t, "tt.return\n}\n");
}

static int32_t order_with(const form *c, lilac_target target) {
    lilac_context *context = lilac_context_create();
    lilac_text text = {0};
    lilac_options options;
    lilac_compilation result;
    lilac_text_puts(&text, "module {\n");
    put_kernel(&text, c, "f");
    if (c->two_kernels) {
        put_kernel(&text, c, "g");
    }
    lilac_text_puts(&text, "}\n");
    lilac_options_init(&options);
    options.target = target;
    options.stop_after = "order_programs";
    options.verify = true;
    if (!lilac_compile(&result, context,
                       lilac_source_add(context, "f.ttir", lilac_text_get(&text), text.length),
                       &options)) {
        print_diagnostics(context);
        fail_msg("%s", lilac_text_get(&text));
    }
    const int64_t order =
        lilac_tile_find_integer(&result.tile->functions->attributes, LILAC_PROGRAM_ORDER, 0);
    lilac_text_clear(&text);
    lilac_compilation_clear(&result);
    lilac_context_destroy(context);
    return (int32_t)order;
}

static const lilac_target usual = {.num_warps = 4, .num_ctas = 1, .num_stages = 2};

/* (x + 1) · 128, and the smaller one of it and the length */
#define NEXT                                                                                       \
    "%n0 = arith.addi %x, %c1 : i32\n%n1 = arith.muli %n0, %c128 : i32\n"                          \
    "%to = arith.minsi %n1, %length : i32\n"
#define FROM_0 "%from = arith.addi %c0, %c0 : i32\n"

static void by_bounds(void **state) {
    (void)state;
    static const struct {
        form form;
        int32_t order;
    } cases[] = {
        /* rows see the columns up to themselves */
        {{.bounds = FROM_0 NEXT}, -1},
        /* columns are seen by the rows from themselves on */
        {{.bounds = "%f0 = arith.muli %x, %c128 : i32\n%f1 = arith.divsi %f0, %c64 : i32\n"
                    "%from = arith.muli %c64, %f1 : i32\n%to = arith.addi %length, %c0 : i32"},
         1},
        /* a window: as many iterations for all */
        {{.bounds = NEXT "%f0 = arith.subi %n1, %c128 : i32\n%from = arith.maxsi %f0, %c0 : i32"},
         0},
        /* the same for all */
        {{.bounds = FROM_0 "%to = arith.addi %length, %c0 : i32"}, 0},
        /* lengths of sequences, along y, are not known */
        {{.bounds = "%lp = tt.addptr %lengths, %y : !tt.ptr<i32>, i32\n"
                    "%lv = tt.load %lp : !tt.ptr<i32>\n" FROM_0
                    "%n0 = arith.muli %x, %c128 : i32\n%to = arith.minsi %n0, %lv : i32"},
         -1},
        /* and along x */
        {{.bounds = "%lp = tt.addptr %lengths, %x : !tt.ptr<i32>, i32\n"
                    "%lv = tt.load %lp : !tt.ptr<i32>\n" FROM_0
                    "%n0 = arith.muli %x, %c128 : i32\n%to = arith.minsi %n0, %lv : i32"},
         0},
        /* other axes */
        {{.bounds = FROM_0 "%to = arith.muli %y, %c64 : i32"}, -2},
        {{.bounds = FROM_0 "%e = arith.extsi %z : i32 to i64\n%f = arith.trunci %e : i64 to i32\n"
                           "%to = arith.muli %f, %c64 : i32"},
         -3},
        {{.bounds = FROM_0 "%n = arith.addi %x, %y : i32\n%to = arith.muli %n, %c64 : i32"}, 0},
        /* an eighth of an iteration is enough, half of that is not */
        {{.bounds = FROM_0 "%to = arith.muli %x, %c8 : i32"}, -1},
        {{.bounds = FROM_0 "%to = arith.muli %x, %c8 : i32", .step = "arith.constant 128"}, 0},
        {{.bounds = FROM_0 "%n = arith.muli %x, %c64 : i32\n%to = arith.muli %n, %cm1 : i32"}, 1},
        /* minima of what grows and what shrinks */
        {{.bounds = FROM_0 "%n0 = arith.muli %x, %c64 : i32\n%n1 = arith.subi %length, %n0 : i32\n"
                           "%to = arith.minsi %n0, %n1 : i32"},
         0},
        {{.bounds = FROM_0 "%n = arith.muli %x, %c64 : i32\n%to = arith.remsi %n, %length : i32"},
         0},
        {{.bounds = FROM_0 "%n = arith.muli %x, %c64 : i32\n%to = arith.divsi %n, %length : i32"},
         0},
        /* persistent programs */
        {{.bounds = "%from = arith.addi %x, %c0 : i32\n%to = arith.addi %length, %c0 : i32",
          .step = "arith.addi %all, %c0"},
         0},
        /* a loop around it, with bounds that all programs share */
        {{.bounds = FROM_0 NEXT, .outside = "%c0 to %length step %c1 : i32"}, -1},
        /* or with bounds of its own */
        {{.bounds = FROM_0 NEXT, .outside = "%x to %length step %c1 : i32"}, 0},
        /* two loops: the diagonal after the rest; work that grows and work that shrinks */
        {{.bounds = FROM_0 "%to = arith.muli %x, %c128 : i32",
          .second = "%from = arith.muli %x, %c128 : i32\n%to = arith.addi %from, %c128 : i32"},
         -1},
        {{.bounds = FROM_0 NEXT,
          .second = "%from = arith.muli %x, %c128 : i32\n%to = arith.addi %length, %c0 : i32"},
         0},
        {{.bounds = FROM_0 NEXT, .second = FROM_0 "%to = arith.remsi %x, %length : i32"}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int32_t order = order_with(&cases[i].form, usual);
        if (order != cases[i].order) {
            fail_msg("case %zu: %d, not %d", i, order, cases[i].order);
        }
    }
}

/* Each of these would have another order, but for one member. */
static void kept(void **state) {
    (void)state;
    const form plain = {.bounds = FROM_0 NEXT};
    assert_int_equal(order_with(&plain, usual), -1);
    lilac_target target = usual;
    target.keep_order = true;
    assert_int_equal(order_with(&plain, target), 0);
    target = usual;
    target.num_ctas = 2;
    assert_int_equal(order_with(&plain, target), 0);
    form changed = plain;
    changed.no_product = true;
    assert_int_equal(order_with(&changed, usual), 0);
    changed = plain;
    changed.two_kernels = true;
    assert_int_equal(order_with(&changed, usual), 0);
    /* waiting for another program; an atomic operation alone waits for nobody */
    changed = plain;
    changed.more = "%old = tt.atomic_rmw add, acq_rel, gpu, %lengths, %c1, %true : "
                   "(!tt.ptr<i32>, i32, i1) -> i32\n";
    assert_int_equal(order_with(&changed, usual), -1);
    changed.more =
        "scf.while : () -> () {\n%old = tt.atomic_rmw add, acq_rel, gpu, %lengths, %c0, "
        "%true : (!tt.ptr<i32>, i32, i1) -> i32\n%again = arith.cmpi eq, %old, %c0 : i32\n"
        "scf.condition(%again)\n} do {\nscf.yield\n}\n";
    assert_int_equal(order_with(&changed, usual), 0);
    changed.more = "scf.while : () -> () {\n%old = tt.load %lengths {isVolatile = true} : "
                   "!tt.ptr<i32>\n%again = arith.cmpi eq, %old, %c0 : i32\n"
                   "scf.condition(%again)\n} do {\nscf.yield\n}\n";
    assert_int_equal(order_with(&changed, usual), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_bounds),
        cmocka_unit_test(kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
