/* Buffers and tokens in control flow: what is the same value on every path works, the rest is
 * refused at its operation (engine/buffers.c, lower/control.c). In the bodies, M is the type of a
 * buffer of 128 f32, T that of a tensor, P of its pointers. */
#include "support/lower_harness.h"

enum { COUNT = 128 };

static const char head[] =
    "#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = "
    "[0]}>\n"
    "#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>\n"
    "#smem = #ttg.shared_memory\n"
    "module attributes {\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = 4 : i32, ttg.target = "
    "\"cuda:90\", \"ttg.threads-per-warp\" = 32 : i32} {\n"
    "  tt.func private @same(%m: M, %o: M) -> M {\n"
    "    tt.return %m : M\n"
    "  }\n"
    "  tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {\n"
    "    %c0 = arith.constant 0 : i32\n"
    "    %c1 = arith.constant 1 : i32\n"
    "    %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #b>\n"
    "    %ps = tt.splat %p : !tt.ptr<f32> -> P\n"
    "    %pp = tt.addptr %ps, %r : P, tensor<128xi32, #b>\n"
    "    %v = tt.load %pp : P\n"
    "    %w = arith.addf %v, %v : T\n"
    "    %m = ttg.local_alloc %v : (T) -> M\n"
    "    %o = ttg.local_alloc %w : (T) -> M\n"
    "    %c = arith.cmpi slt, %n, %c1 : i32\n";
static const char store_q[] = "    %xq = ttg.local_load %q : M -> T\n"
                              "    tt.store %pp, %xq : P\n";
static const char tail[] = "    tt.return\n  }\n}\n";

static void put_expanded(lilac_text *out, const char *text) {
    for (const char *at = text; *at != 0; at++) {
        bool alone = at != text && (at[-1] == ' ' || at[-1] == '(') &&
                     (at[1] == 0 || strchr(" ,()\n", at[1]) != NULL);
        if (alone && *at == 'M') {
            lilac_text_puts(out, "!ttg.memdesc<128xf32, #s, #smem, mutable>");
        } else if (alone && *at == 'T') {
            lilac_text_puts(out, "tensor<128xf32, #b>");
        } else if (alone && *at == 'P') {
            lilac_text_puts(out, "tensor<128x!tt.ptr<f32>, #b>");
        } else {
            lilac_text_char(out, *at);
        }
    }
}

static void put_module(lilac_text *text, const char *body) {
    put_expanded(text, head);
    put_expanded(text, body);
    put_expanded(text, store_q);
    put_expanded(text, tail);
}

#define FOR(yielded)                                                                               \
    "    %q = scf.for %i = %c0 to %n step %c1 iter_args(%a = %m) -> (M) : i32 {\n"                 \
    "      %x = ttg.local_load %a : M -> T\n"                                                      \
    "      tt.store %pp, %x : P\n"                                                                 \
    "      scf.yield " yielded " : M\n"                                                            \
    "    }\n"
#define IF(yes, no)                                                                                \
    "    %z = ub.poison : M\n"                                                                     \
    "    %q = scf.if %c -> (M) {\n"                                                                \
    "      scf.yield " yes " : M\n"                                                                \
    "    } else {\n"                                                                               \
    "      tt.store %pp, %w : P\n"                                                                 \
    "      scf.yield " no " : M\n"                                                                 \
    "    }\n"
#define WHILE(yielded)                                                                             \
    "    %k:2, %q = scf.while (%k0 = %c0, %a = %m, %k1 = %c1) : (i32, M , i32) -> (i32, i32, M ) " \
    "{\n"                                                                                          \
    "      %t = arith.cmpi slt, %k0, %n : i32\n"                                                   \
    "      scf.condition(%t) %k1, %k0, %a : i32, i32, M\n"                                         \
    "    } do {\n"                                                                                 \
    "    ^bb0(%j1: i32, %j0: i32, %d: M):\n"                                                       \
    "      %x = ttg.local_load %d : M -> T\n"                                                      \
    "      tt.store %pp, %x : P\n"                                                                 \
    "      %next = arith.addi %j0, %j1 : i32\n"                                                    \
    "      scf.yield %next, " yielded ", %j1 : i32, M , i32\n"                                     \
    "    }\n"

/* What p[i] = i becomes, times i. */
static void accepted(void **state) {
    (void)state;
    static const struct {
        const char *body;
        int64_t n;
        float times;
    } cases[] = {
        {FOR("%a"), 3, 1},
        {FOR("%m"), 0, 1},
        {IF("%m", "%m"), 3, 1},
        {IF("%o", "%z"), 3, 2},
        {IF("%z", "%m"), 0, 1},
        {WHILE("%d"), 3, 1},
        {WHILE("%m"), 3, 1},
        {WHILE("%d"), 0, 1},
        /* Through a call, and out of two loops. */
        {"    %q = scf.for %i = %c0 to %n step %c1 iter_args(%a = %o) -> (M) : i32 {\n"
         "      %u = scf.for %j = %c0 to %n step %c1 iter_args(%d = %a) -> (M) : i32 {\n"
         "        %e = tt.call @same(%d, %m) : (M, M) -> M\n"
         "        scf.yield %e : M\n"
         "      }\n"
         "      scf.yield %u : M\n"
         "    }\n",
         2, 2},
        /* Beside values that change. */
        {"    %q1:3 = scf.for %i = %c0 to %n step %c1 iter_args(%e = %v, %a = %m, %f = %v) -> (T, "
         "M, "
         "T) : i32 {\n"
         "      %x = ttg.local_load %a : M -> T\n"
         "      %y = arith.addf %e, %x : T\n"
         "      %g = arith.addf %f, %y : T\n"
         "      scf.yield %y, %a, %g : T, M, T\n"
         "    }\n"
         "    %sum = arith.addf %q1#0, %q1#2 : T\n"
         "    ttg.local_store %sum, %q1#1 : T -> M\n"
         "    %q = scf.if %c -> (M) {\n"
         "      scf.yield %q1#1 : M\n"
         "    } else {\n"
         "      scf.yield %m : M\n"
         "    }\n",
         2, 9},
        /* Branches between blocks. */
        {"    cf.cond_br %c, ^bb1, ^bb2\n"
         "  ^bb1:\n"
         "    cf.br ^bb3(%o : M)\n"
         "  ^bb2:\n"
         "    cf.br ^bb3(%o : M)\n"
         "  ^bb3(%q: M):\n",
         3, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_text text = {0};
        float values[COUNT];
        harness h;
        for (uint32_t k = 0; k < COUNT; k++) {
            values[k] = (float)k;
        }
        put_module(&text, cases[i].body);
        harness_open(&h, lilac_text_get(&text), 4, true);
        harness_run(&h, 1, &(buffer){values, sizeof values}, 1, &cases[i].n, 1);
        for (uint32_t k = 0; k < COUNT; k++) {
            if (values[k] != cases[i].times * (float)k) {
                fail_msg("element %u is %g\n%s", k, (double)values[k], lilac_text_get(&text));
            }
        }
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

/* The diagnostic is at this place of the text, and names the value and its type. */
static void refused(void **state) {
    (void)state;
    static const struct {
        const char *body, *at, *says;
    } cases[] = {
        {FOR("%o"), "scf.for", "'scf.for' passes on %a of type !ttg.memdesc<128xf32, "},
        {"    %q, %q1 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %m, %d = %o) -> (M, M) : "
         "i32 {\n"
         "      scf.yield %d, %a : M, M\n"
         "    }\n",
         "scf.for", "'scf.for' passes on %a of type !ttg.memdesc<"},
        {"    %q = scf.for %i = %c0 to %n step %c1 iter_args(%a = %m) -> (M) : i32 {\n"
         "      %z = ttg.local_alloc %v : (T) -> M\n"
         "      scf.yield %z : M\n"
         "    }\n",
         "scf.for", "'scf.for' passes on %a of type !ttg.memdesc<"},
        {IF("%m", "%o"), "scf.if", "'scf.if' passes on %q of type !ttg.memdesc<"},
        {WHILE("%o"), "scf.while", "'scf.while' passes on %a of type !ttg.memdesc<"},
        {"    cf.cond_br %c, ^bb1, ^bb2\n"
         "  ^bb1:\n"
         "    cf.br ^bb3(%m : M)\n"
         "  ^bb2:\n"
         "    cf.br ^bb3(%o : M)\n"
         "  ^bb3(%q: M):\n",
         "cf.cond_br", "'scf.if' passes on value number 0 of type !ttg.memdesc<"},
        {"    %t0 = ttg.async_commit_group\n"
         "    %q = scf.if %c -> (M) {\n"
         "      scf.yield %m : M\n"
         "    } else {\n"
         "      scf.yield %m : M\n"
         "    }\n",
         "ttg.async_commit_group", "'ttg.async_commit_group' cannot be lowered"},
        {"    %q = arith.select %c, %m, %o : M\n", "arith.select",
         "'arith.select' cannot be lowered: operand 1 is of type !ttg.memdesc<"},
        {"    %q = ub.poison : M\n", "ub.poison", "values of type !ttg.memdesc<"},
        {"    tt.print \"m\" {hex = false, isSigned = array<i32: 0>} : %m : M\n"
         "    %q = tt.call @same(%m, %o) : (M, M) -> M\n",
         "tt.print", "'tt.print' cannot be lowered: operand 0 is of type !ttg.memdesc<"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_text text = {0};
        harness h;
        put_module(&text, cases[i].body);
        if (harness_try(&h, lilac_text_get(&text), 4, true, NULL)) {
            fail_msg("accepted\n%s", lilac_text_get(&text));
        }
        const lilac_diagnostic *d = lilac_diagnostics(h.context);
        assert_non_null(d);
        if (strstr(d->message, cases[i].says) == NULL ||
            strstr(lilac_text_get(&text), cases[i].at) !=
                lilac_text_get(&text) + d->position.offset) {
            harness_print(&h);
            fail_msg("not at %s, or not: %s", cases[i].at, cases[i].says);
        }
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

static void tokens_are_refused(void **state) {
    (void)state;
    static const char body[] = "    %t0 = ub.poison : !ttg.async.token\n"
                               "    %t1 = ub.poison : !ttg.async.token\n"
                               "    %u = scf.for %i = %c0 to %n step %c1 iter_args(%t = %t0) -> "
                               "(!ttg.async.token) : i32 {\n"
                               "      scf.yield %t1 : !ttg.async.token\n"
                               "    }\n"
                               "    %q = scf.if %c -> (M) {\n"
                               "      scf.yield %m : M\n"
                               "    } else {\n"
                               "      scf.yield %m : M\n"
                               "    }\n";
    lilac_text text = {0};
    harness h;
    put_module(&text, body);
    assert_false(harness_try(&h, lilac_text_get(&text), 4, true, NULL));
    assert_non_null(strstr(lilac_diagnostics(h.context)->message, "!ttg.async.token"));
    harness_close(&h);
    lilac_text_clear(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepted),
        cmocka_unit_test(refused),
        cmocka_unit_test(tokens_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
