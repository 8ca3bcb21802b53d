/* unroll_loops: random loops compute what they state, whatever their bounds, their trip counts, the
 * order that their operations need and the attribute; loads stay behind the stores of earlier iterations,
 * and an assertion of an invariant condition changes nothing. */
#include "support/lower_harness.h"

enum { LINE = 256, PLACES = 8192, BASE = 1024, CASES = 300 };

typedef struct loop_case {
    int32_t lower, step, iterations;
    bool known;      /* the upper bound is a constant */
    bool first;      /* a branch asks for the first iteration */
    bool negated;    /* by ne */
    bool masked;     /* elements below the upper bound */
    bool indirect;   /* a second load, from where the first one says */
    bool reduced;    /* the sum of an iteration's elements is added */
    bool writes;     /* an iteration adds what the one before it has stored, and stores */
    bool asserts;    /* an iteration asserts an invariant condition */
    uint32_t factor; /* tt.loop_unroll_factor; 0: none */
} loop_case;

static int32_t upper_of(const loop_case *c) {
    return c->lower + c->iterations * c->step;
}

#define NUMBERS  "tensor<256xi32>"
#define POINTERS "tensor<256x!tt.ptr<i32>>"

static void put_body(lilac_text *text, const loop_case *c) {
    lilac_text_puts(text, "%ks = tt.splat %k : i32 -> " NUMBERS "\n"
                          "%at = arith.addi %ks, %i : " NUMBERS "\n"
                          "%place = arith.addi %at, %base : " NUMBERS "\n"
                          "%p = tt.addptr %xs, %place : " POINTERS ", " NUMBERS "\n"
                          "%m = arith.cmpi slt, %at, %us : " NUMBERS "\n");
    lilac_text_printf(text, "%%v0 = tt.load %%p%s : " POINTERS "\n",
                      c->masked ? ", %m, %none" : "");
    if (c->indirect) {
        lilac_text_puts(text, "%w = arith.andi %v0, %low : " NUMBERS "\n"
                              "%pw = tt.addptr %xs, %w : " POINTERS ", " NUMBERS "\n"
                              "%v1 = tt.load %pw : " POINTERS "\n");
    } else {
        lilac_text_puts(text, "%v1 = arith.addi %v0, %none : " NUMBERS "\n");
    }
    if (c->reduced) {
        lilac_text_puts(text, "%sum = \"tt.reduce\"(%v1) <{axis = 0 : i32}> ({\n^bb0(%a: i32, %b: "
                              "i32):\n%ab = arith.addi %a, %b : i32\ntt.reduce.return %ab : i32\n"
                              "}) : (" NUMBERS ") -> i32\n"
                              "%sums = tt.splat %sum : i32 -> " NUMBERS "\n"
                              "%v2 = arith.addi %v1, %sums : " NUMBERS "\n");
    } else {
        lilac_text_puts(text, "%v2 = arith.addi %v1, %none : " NUMBERS "\n");
    }
    lilac_text_puts(text, "%t0 = arith.muli %s, %three : " NUMBERS "\n"
                          "%t1 = arith.addi %t0, %v2 : " NUMBERS "\n");
    if (c->first) { /* the first iteration does not multiply */
        const char *const regular = "scf.yield %t1 : " NUMBERS "\n", *const first =
                                                                         "scf.yield %v2 : " NUMBERS
                                                                         "\n";
        lilac_text_printf(text,
                          "%%is = arith.cmpi %s, %%k, %%lower : i32\n"
                          "%%t = scf.if %%is -> (" NUMBERS ") {\n%s} else {\n%s}\n",
                          c->negated ? "ne" : "eq", c->negated ? regular : first,
                          c->negated ? first : regular);
    } else {
        lilac_text_puts(text, "%t = arith.addi %t1, %none : " NUMBERS "\n");
    }
    if (c->asserts) {
        lilac_text_puts(text, "tt.assert %fine, \"fine\" : i1\n");
    }
    if (c->writes) {
        lilac_text_puts(text, "%old = tt.load %q : " POINTERS "\n"
                              "%u = arith.addi %t, %old : " NUMBERS "\n"
                              "tt.store %q, %u : " POINTERS "\n");
    }
}

static void put_case(lilac_text *text, const loop_case *c) {
    lilac_text_printf(
        text,
        "module {\n  tt.func public @k(%%x: !tt.ptr<i32> {tt.divisibility = 16 : i32}, "
        "%%y: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %%n: i32) {\n"
        "%%lower = arith.constant %d : i32\n%%step = arith.constant %d : i32\n"
        "%%known = arith.constant %d : i32\n"
        "%%none = arith.constant dense<0> : " NUMBERS "\n"
        "%%three = arith.constant dense<3> : " NUMBERS "\n"
        "%%low = arith.constant dense<4095> : " NUMBERS "\n"
        "%%one = arith.constant dense<1> : " NUMBERS "\n"
        "%%base = arith.constant dense<%d> : " NUMBERS "\n"
        "%%i = tt.make_range {end = 256 : i32, start = 0 : i32} : " NUMBERS "\n"
        "%%xs = tt.splat %%x : !tt.ptr<i32> -> " POINTERS "\n"
        "%%ys = tt.splat %%y : !tt.ptr<i32> -> " POINTERS "\n"
        "%%q = tt.addptr %%ys, %%i : " POINTERS ", " NUMBERS "\n"
        "%%odd = arith.constant 1000000 : i32\n%%fine = arith.cmpi ne, %%n, %%odd : i32\n"
        "%%us = tt.splat %%%s : i32 -> " NUMBERS "\n"
        "%%r = scf.for %%k = %%lower to %%%s step %%step iter_args(%%s = %%one) -> (" NUMBERS
        ") : i32 {\n",
        c->lower, c->step, upper_of(c), BASE, c->known ? "known" : "n", c->known ? "known" : "n");
    put_body(text, c);
    lilac_text_printf(text, "scf.yield %s : " NUMBERS "\n}", c->writes ? "%u" : "%t");
    if (c->factor > 0) {
        lilac_text_printf(text, " {tt.loop_unroll_factor = %u : i32}", c->factor);
    }
    lilac_text_puts(text, "\ntt.store %q, %r : " POINTERS "\ntt.return\n  }\n}\n");
}

/* What y must be. */
static void compute(const loop_case *c, const int32_t *x, uint32_t *s) {
    for (uint32_t i = 0; i < LINE; i++) {
        s[i] = 1;
    }
    for (int32_t n = 0; n < c->iterations; n++) {
        uint32_t v[LINE], sum = 0;
        for (int32_t i = 0; i < LINE; i++) {
            const int32_t at = c->lower + n * c->step + i;
            v[i] = !c->masked || at < upper_of(c) ? (uint32_t)x[BASE + at] : 0;
            v[i] = c->indirect ? (uint32_t)x[v[i] & 4095] : v[i];
            sum += v[i];
        }
        for (uint32_t i = 0; i < LINE; i++) {
            v[i] += c->reduced ? sum : 0;
            const uint32_t old = c->writes && n > 0 ? s[i] : 0;
            s[i] = (c->first && n == 0 ? v[i] : 3 * s[i] + v[i]) + old;
        }
    }
}

static loop_case random_case(lilac_random *random) {
    loop_case c = {.lower = (int32_t)lilac_random_below(random, 40) - 20,
                   .step = 1 + (int32_t)lilac_random_below(random, 40),
                   .iterations =
                       (int32_t)lilac_random_below(random, lilac_random_below(random, 2) ? 12 : 70),
                   .known = lilac_random_below(random, 4) != 0,
                   .first = lilac_random_below(random, 3) == 0,
                   .negated = lilac_random_below(random, 2) == 0,
                   .masked = lilac_random_below(random, 2) == 0,
                   .indirect = lilac_random_below(random, 4) == 0,
                   .reduced = lilac_random_below(random, 3) == 0,
                   .writes = lilac_random_below(random, 5) == 0,
                   .asserts = lilac_random_below(random, 5) == 0};
    if (lilac_random_below(random, 4) == 0) {
        c.factor = 1 + (uint32_t)lilac_random_below(random, 9);
    }
    return c;
}

static void count_loops(void *data, lilac_tile_op *op) {
    *(uint32_t *)data += op->code == LILAC_TILE_OP_SCF_FOR;
}

static void random_loops(void **state) {
    (void)state;
    static int32_t x[PLACES];
    lilac_random random;
    lilac_random_seed(&random, 20261122);
    for (uint32_t i = 0; i < PLACES; i++) {
        x[i] = (int32_t)lilac_random_below(&random, 1u << 20);
    }
    for (uint32_t n = 0; n < CASES; n++) {
        const loop_case c = random_case(&random);
        uint32_t y[LINE] = {0}, expected[LINE], loops = 0;
        lilac_text text;
        harness h;
        lilac_text_init(&text);
        put_case(&text, &c);
        harness_open(&h, lilac_text_get(&text), 4, true);
        lilac_tile_walk(h.tile->functions->body, count_loops, &loops);
        const buffer buffers[] = {{x, sizeof x}, {y, sizeof y}};
        const int64_t scalars[] = {upper_of(&c)};
        harness_run(&h, 1, buffers, 2, scalars, 1);
        compute(&c, x, expected);
        for (uint32_t i = 0; i < LINE; i++) {
            if (y[i] != expected[i]) {
                fail_msg("case %u: element %u is %u and not %u\n%s", n, i, y[i], expected[i],
                         lilac_text_get(&text));
            }
        }
        /* short loops are gone; others stay, but for the first iteration, where they store or their trip
         * count is not known */
        if (c.factor == 0 && c.known && c.iterations > (c.writes ? 1 : 0) && c.iterations <= 4) {
            assert_int_equal(loops, 0);
        } else if (c.factor == 0 && (c.writes ? c.iterations > 5 : !c.known && c.iterations > 1)) {
            assert_int_equal(loops, 1);
        }
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_loops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
