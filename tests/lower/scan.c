/* lower: scans of any shape, axis, type, region, direction and layout, compared with plain
 * loops; and their cost. */
#include "support/collective_plans.h"
#include "support/lower_combines.h"
#include "support/lower_named.h"

/* Associative, not commutative. */
static uint64_t first_of(lilac_scalar s, uint64_t a, uint64_t b) {
    (void)s, (void)b;
    return a;
}

static uint64_t last_of(lilac_scalar s, uint64_t a, uint64_t b) {
    (void)s, (void)a;
    return b;
}

static const combine kinds[] = {
    {LILAC_I32, "%c = arith.addi %a, %b : i32", sum_of},
    {LILAC_F32, "%c = arith.addf %a, %b : f32", sum_of},
    {LILAC_F32, "%c = arith.maxnumf %a, %b : f32", larger_of},
    {LILAC_I8, "%c = arith.addi %a, %b : i8", sum_of},
    {LILAC_I1, "%c = arith.xori %a, %b : i1", xor_of},
    {LILAC_F16, "%c = arith.maxnumf %a, %b : f16", larger_of},
    {LILAC_BF16, "%c = arith.maxnumf %a, %b : bf16", larger_of},
    {LILAC_I64, "%c = arith.muli %a, %b : i64", product_of},
    {LILAC_F64, "%c = arith.addf %a, %b : f64", sum_of},
    {LILAC_I16, "%z = arith.constant 0 : i16\n      %c = arith.addi %a, %z : i16", first_of},
    {LILAC_I32, "%z = arith.constant 0 : i32\n      %c = arith.addi %b, %z : i32", last_of},
};

static const struct {
    uint32_t rank, bits[3], axis;
} shapes[] = {
    {1, {10}, 0},      {1, {3}, 0},       {1, {0}, 0},    {1, {11}, 0},      {2, {4, 5}, 0},
    {2, {4, 5}, 1},    {2, {7, 4}, 0},    {2, {1, 2}, 1}, {3, {2, 3, 4}, 0}, {3, {2, 3, 4}, 1},
    {3, {3, 2, 3}, 2}, {3, {0, 5, 2}, 1}, {2, {0, 6}, 0}, {2, {2, 8}, 1},    {2, {8, 2}, 0},
};

static uint8_t data[3][(1 << 12) * 8];

/* Position of element k along the axis of line number j. */
static uint32_t element_of(const named_tensor *t, uint32_t axis, uint32_t j, uint32_t k) {
    uint32_t inner = 0;
    for (uint32_t d = axis + 1; d < t->rank; d++) {
        inner += t->bits[d];
    }
    uint32_t low = j & ((1U << inner) - 1), high = j >> inner;
    return (high << t->bits[axis] | k) << inner | low;
}

static void make_scan(lilac_text *out, const named_tensor *list, uint32_t axis, bool reverse,
                      const combine *r) {
    const char *name = lilac_scalar_name(r->scalar);
    named_parameters(out, list, 2);
    named_load(out, &list[0]);
    lilac_text_printf(out,
                      "    %%y = \"tt.scan\"(%%x) <{axis = %u : i32, reverse = %s}> ({\n"
                      "    ^bb0(%%a: %s, %%b: %s):\n      %s\n"
                      "      tt.scan.return %%c : %s\n    }) : (",
                      axis, reverse ? "true" : "false", name, name, r->line, name);
    named_type(out, &list[0]);
    lilac_text_puts(out, ") -> ");
    named_type(out, &list[1]);
    lilac_text_puts(out, "\n");
    named_store(out, &list[1], "%y");
    lilac_text_puts(out, "    tt.return\n  }\n}\n");
}

static void check_scan(harness *h, const named_tensor *t, uint32_t axis, bool reverse,
                       const combine *r, uint64_t seed) {
    uint32_t bits = named_bits(t), length = 1U << t->bits[axis];
    lilac_random random;
    lilac_random_seed(&random, seed);
    for (uint32_t i = 0; i < 1U << bits; i++) {
        set_element(data[0], r->scalar, i, exact_element(&random, r));
    }
    memset(data[1], 0x55, sizeof data[1]);
    size_t size = (size_t)bytes_of(r->scalar) << bits;
    buffer buffers[] = {{data[0], size}, {data[1], size}};
    harness_run(h, 1, buffers, 2, NULL, 0);
    assert_int_equal(h->counters.uninitialised_reads, 0);
    for (uint32_t j = 0; j < 1U << (bits - t->bits[axis]); j++) {
        uint64_t want = 0;
        for (uint32_t k = 0; k < length; k++) {
            uint32_t at = element_of(t, axis, j, reverse ? length - 1 - k : k);
            uint64_t next = get_element(data[0], r->scalar, at);
            want = k == 0 ? next : r->combine(r->scalar, want, next);
            uint64_t got = get_element(data[1], r->scalar, at);
            if (got != want &&
                !(lilac_scalar_is_float(r->scalar) && same_float(r->scalar, got, want))) {
                print_message("%s\n", lilac_text_get(&h->text));
                fail_msg("%s: line %u, %u: %llx, not %llx", r->line, j, k, (unsigned long long)got,
                         (unsigned long long)want);
            }
        }
    }
}

/* Layouts of every kind, for operand and result each its own now and then. */
static void any_layout(void **state) {
    (void)state;
    uint32_t met = 0;
    lilac_context *context = lilac_context_create();
    lilac_text text = {0};
    lilac_random random;
    lilac_random_seed(&random, 11);
    for (uint32_t i = 0; i < 700; i++) {
        uint32_t s = random_below(&random, sizeof shapes / sizeof *shapes);
        const combine *r = &kinds[random_below(&random, sizeof kinds / sizeof *kinds)];
        const lilac_arch *device = harness_device(i);
        uint32_t warp_bits = random_warp_bits(&random, device, 5);
        bool reverse = random_below(&random, 2) == 1, engine = i % 5 == 0;
        named_tensor list[2] = {{.letter = 'x', .scalar = r->scalar, .rank = shapes[s].rank}};
        memcpy(list[0].bits, shapes[s].bits, sizeof list[0].bits);
        named_random(&list[0], &random, context, device, warp_bits);
        list[1] = list[0];
        list[1].letter = 'y';
        if (i % 3 == 0) {
            named_random(&list[1], &random, context, device, warp_bits);
        }
        make_scan(&text, list, shapes[s].axis, reverse, r);
        harness h;
        named_open(&h, &text, device, 1U << warp_bits, engine, list, 2);
        check_scan(&h, &list[0], shapes[s].axis, reverse, r, i);
        if (!engine) {
            met |= check_collective(&h, device, 1U << warp_bits);
        }
        harness_close(&h);
    }
    lilac_text_clear(&text);
    lilac_context_destroy(context);
    const uint32_t all = PLAN_SHUFFLES | PLAN_MEMORY | PLAN_CONVERTS;
    assert_int_equal(met & all, all);
}

/* (f, v) ∘ (g, w) = (f·g, v·g + w): two operands, associative, not commutative. */
static void linear_recurrence(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_text text = {0};
    lilac_random random;
    lilac_random_seed(&random, 12);
    for (uint32_t i = 0; i < 150; i++) {
        uint32_t s = random_below(&random, sizeof shapes / sizeof *shapes);
        const lilac_arch *device = harness_device(i);
        uint32_t warp_bits = random_warp_bits(&random, device, 3), axis = shapes[s].axis;
        bool reverse = random_below(&random, 2) == 1;
        named_tensor list[4] = {{.letter = 'x', .scalar = LILAC_I64, .rank = shapes[s].rank}};
        memcpy(list[0].bits, shapes[s].bits, sizeof list[0].bits);
        named_random(&list[0], &random, context, device, warp_bits);
        list[1] = list[2] = list[0];
        list[1].letter = 'y';
        list[2].letter = 'v';
        list[3] = list[0];
        list[3].letter = 'w';
        named_parameters(&text, list, 4);
        named_load(&text, &list[0]);
        named_load(&text, &list[1]);
        lilac_text_printf(
            &text,
            "    %%1v:2 = \"tt.scan\"(%%x, %%y) <{axis = %u : i32, reverse = %s}> ({\n"
            "    ^bb0(%%f: i64, %%v: i64, %%g: i64, %%w: i64):\n"
            "      %%h = arith.muli %%f, %%g : i64\n"
            "      %%l = arith.muli %%v, %%g : i64\n"
            "      %%m = arith.addi %%l, %%w : i64\n"
            "      tt.scan.return %%h, %%m : i64, i64\n    }) : (",
            axis, reverse ? "true" : "false");
        for (uint32_t k = 0; k < 2; k++) {
            named_type(&text, &list[0]);
            lilac_text_puts(&text, ", ");
            named_type(&text, &list[1]);
            lilac_text_puts(&text, k == 0 ? ") -> (" : ")\n");
        }
        named_store(&text, &list[2], "%1v#0");
        named_store(&text, &list[3], "%1v#1");
        lilac_text_puts(&text, "    tt.return\n  }\n}\n");
        harness h;
        named_open(&h, &text, device, 1U << warp_bits, i % 4 == 0, list, 4);
        static uint8_t made[2][(1 << 12) * 8];
        uint32_t bits = named_bits(&list[0]), length = 1U << list[0].bits[axis];
        for (uint32_t k = 0; k < 1U << bits; k++) {
            set_element(data[0], LILAC_I64, k, lilac_random_next(&random));
            set_element(data[1], LILAC_I64, k, lilac_random_next(&random));
        }
        size_t size = (size_t)8 << bits;
        buffer buffers[] = {{data[0], size}, {data[1], size}, {made[0], size}, {made[1], size}};
        harness_run(&h, 1, buffers, 4, NULL, 0);
        if (i % 4 != 0) {
            (void)check_collective(&h, device, 1U << warp_bits);
        }
        for (uint32_t j = 0; j < 1U << (bits - list[0].bits[axis]); j++) {
            uint64_t f = 1, v = 0;
            for (uint32_t k = 0; k < length; k++) {
                uint32_t at = element_of(&list[0], axis, j, reverse ? length - 1 - k : k);
                uint64_t g = get_element(data[0], LILAC_I64, at);
                v = v * g + get_element(data[1], LILAC_I64, at);
                f *= g;
                assert_int_equal(get_element(made[0], LILAC_I64, at), f);
                assert_int_equal(get_element(made[1], LILAC_I64, at), v);
            }
        }
        harness_close(&h);
    }
    lilac_text_clear(&text);
    lilac_context_destroy(context);
}

/* ---- what they cost ---------------------------------------------------------------------- */

/* Instructions before dead ones are taken away: shuffles that nothing uses count. */
static void shuffles_and_barriers(void **state) {
    (void)state;
    static const struct {
        const char *layout, *shape;
        uint32_t axis, warps, shuffles, barriers;
    } cases[] = {
        /* in the thread */
        {"#ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], "
         "order = [1, 0]}>",
         "128x16", 1, 4, 0, 0},
        /* five steps and one that hands on, for each register */
        {"#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], "
         "order = [1, 0]}>",
         "4x128", 1, 4, 6, 0},
        /* two lanes' bits */
        {"#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], "
         "order = [1, 0]}>",
         "32x4", 1, 4, 2, 0},
        /* warps: one barrier */
        {"#ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = "
         "[0]}>",
         "512", 0, 4, 6, 1},
        {"#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], "
         "order = [1, 0]}>",
         "4x128", 0, 4, 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_text text = {0};
        harness h;
        const char *shape = cases[i].shape;
        lilac_text_printf(&text,
                          "#l = %s\nmodule {\n  tt.func public @k(%%p: !tt.ptr<i32>, %%q: "
                          "!tt.ptr<i32>) {\n"
                          "    %%1 = tt.splat %%p : !tt.ptr<i32> -> tensor<%sx!tt.ptr<i32>, #l>\n"
                          "    %%2 = tt.load %%1 : tensor<%sx!tt.ptr<i32>, #l>\n"
                          "    %%3 = \"tt.scan\"(%%2) <{axis = %u : i32, reverse = false}> ({\n"
                          "    ^bb0(%%a: i32, %%b: i32):\n      %%c = arith.addi %%a, %%b : i32\n"
                          "      tt.scan.return %%c : i32\n    }) : (tensor<%sxi32, #l>) -> "
                          "tensor<%sxi32, #l>\n"
                          "    tt.store %%1, %%3 : tensor<%sx!tt.ptr<i32>, #l>\n"
                          "    tt.return\n  }\n}\n",
                          cases[i].layout, shape, shape, cases[i].axis, shape, shape, shape);
        harness_open(&h, lilac_text_get(&text), cases[i].warps, false);
        assert_int_equal(count_text(lilac_text_get(&h.text), "shuffle"), cases[i].shuffles);
        assert_int_equal(count_text(lilac_text_get(&h.text), "    barrier"), cases[i].barriers);
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_layout),
        cmocka_unit_test(linear_recurrence),
        cmocka_unit_test(shuffles_and_barriers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
