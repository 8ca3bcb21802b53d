/* Masks of a loop's rows: random loops, of both widths, from and to any numbers, compute the same
 * masks after folding; where there are enough of them none is a sum any more, and where a sum may
 * reach the next row's it stays. */
#include <lilac/sim.h>

#include "support/test.h"

enum { THREADS = 32, MOST = 24 };

/* What a loop's masks are made of. */
typedef struct shape {
    bool wide;         /* it counts in 64 bits */
    bool fixed;        /* its lower bound is a constant */
    int64_t low, high; /* its bounds */
    int64_t step;
    uint32_t masks, spread; /* mask k is of row k·spread after the counter */
    uint32_t part;          /* … and after the thread's number shifted left, less 1; 0: no */
} shape;

/* Every iteration adds what each mask says to a carried number: sum = 3·sum + mask. */
static void generate(lilac_text *out, const shape *s) {
    const char *type = s->wide ? "i64" : "i32";
    lilac_text_puts(out, "simt.module target \"sm_90a\" {\nkernel @k(%o: i64 ptr align 16, ");
    lilac_text_printf(out,
                      "%%l: %s, %%u: %s) warps 1 ctas 1 shared 0 {\n%%o = param 0 : i64\n"
                      "%%l = param 1 : %s\n%%u = param 2 : %s\n%%t = thread : i32\n",
                      type, type, type, type);
    if (s->fixed) {
        lilac_text_printf(out, "%%first = const %lld : %s\n", (long long)s->low, type);
    }
    lilac_text_printf(out,
                      "%%step = const %lld : %s\n%%z = const 0 : i32\n%%three = const 3 : i32\n",
                      (long long)s->step, type);
    for (uint32_t k = 0; k < s->masks; k++) {
        lilac_text_printf(out, "%%c%u = const %u : %s\n", k, k * s->spread, type);
    }
    if (s->part > 0) {
        lilac_text_printf(out, "%%by = const %u : i32\n%%moved = shl %%t, %%by : i32\n",
                          s->part - 1);
        lilac_text_puts(out, s->wide ? "%part = zext %moved : i64\n" : "");
    }
    lilac_text_printf(out, "%%r = loop %%i = %s to %%u step %%step (%%s = %%z) : i32 {\n",
                      s->fixed ? "%first" : "%l");
    if (s->part > 0) {
        lilac_text_printf(out, "%%row = add %%i, %s : %s\n", s->wide ? "%part" : "%moved", type);
    }
    lilac_text_puts(out, "%a0 = add %s, %z : i32\n");
    for (uint32_t k = 0; k < s->masks; k++) {
        lilac_text_printf(out,
                          "%%x%u = add %s, %%c%u : %s\n%%m%u = cmp lt %%x%u, %%u : i1\n"
                          "%%w%u = zext %%m%u : i32\n%%b%u = mul %%a%u, %%three : i32\n"
                          "%%a%u = add %%b%u, %%w%u : i32\n",
                          k, s->part > 0 ? "%row" : "%i", k, type, k, k, k, k, k, k, k + 1, k, k);
    }
    lilac_text_printf(out, "yield %%a%u\n}\n%%four = const 4 : i32\n", s->masks);
    lilac_text_puts(out, "%to = mulwide_u %t, %four : i64\n%place = add %o, %to : i64\n"
                         "st.global [%place], (%r)\nreturn\n}\n}\n");
}

static void execute(lilac_context *context, const lilac_simt_module *module, const shape *s,
                    uint32_t *output) {
    memset(output, 0x5A, THREADS * sizeof *output);
    lilac_sim_buffer buffer = {
        .name = "out", .bytes = (uint8_t *)output, .size = THREADS * sizeof *output};
    lilac_sim_place(&buffer, 1);
    uint64_t width = s->wide ? UINT64_MAX : UINT32_MAX;
    uint64_t arguments[3] = {buffer.address, (uint64_t)s->low & width, (uint64_t)s->high & width};
    lilac_sim_launch launch = {.kernel = module->kernels,
                               .grid = {1, 1, 1},
                               .arguments = arguments,
                               .argument_count = 3,
                               .buffers = &buffer,
                               .buffer_count = 1,
                               .threads = 1};
    lilac_sim_counters counters = {0};
    assert_true(lilac_sim_run(context, &launch, &counters));
}

static uint32_t count(const lilac_simt_body *body, lilac_simt_opcode code, int detail) {
    uint32_t found = 0;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        found += i->code == code && (detail < 0 || i->detail == detail);
        for (uint32_t k = 0; k < i->body_count; k++) {
            found += count(i->bodies[k], code, detail);
        }
    }
    return found;
}

/* The masks that are still orders of sums. */
static uint32_t left_over(const shape *s) {
    uint32_t wanted[THREADS], got[THREADS];
    lilac_text text = {0};
    generate(&text, s);
    lilac_context *context = lilac_context_create();
    lilac_simt_module *module = lilac_simt_read(
        context, lilac_source_add(context, "masks", lilac_text_get(&text), text.length));
    if (module == NULL || !lilac_simt_verify(module)) {
        fail_msg("%s", text.bytes);
    }
    execute(context, module, s, wanted);
    (void)lilac_simt_opt_tail_masks(module->kernels);
    assert_true(lilac_simt_verify(module));
    (void)lilac_simt_opt_fold(module->kernels);
    (void)lilac_simt_opt_licm(module->kernels);
    (void)lilac_simt_opt_tail_masks(module->kernels);
    (void)lilac_simt_opt_fold(module->kernels);
    (void)lilac_simt_opt_dce(module->kernels);
    assert_true(lilac_simt_verify(module));
    execute(context, module, s, got);
    if (memcmp(wanted, got, sizeof got) != 0) {
        fail_msg("other masks:\n%s", text.bytes);
    }
    uint32_t left = count(module->kernels->body, LILAC_SIMT_OP_CMP, LILAC_SIMT_LT);
    lilac_text_clear(&text);
    lilac_simt_module_destroy(module);
    lilac_context_destroy(context);
    return left;
}

static int64_t pick(lilac_random *random, const int64_t *from, uint32_t of) {
    return from[lilac_random_below(random, of)];
}

static void random_loops(void **state) {
    (void)state;
    static const int64_t narrow[] = {0, 1, -1, 5, -70, 1000, INT32_MIN, INT32_MAX - 4096};
    static const int64_t wide[] = {
        0, 1, -1, 5, -70, (int64_t)1 << 40, INT64_MIN, INT32_MIN, INT32_MAX, INT64_MAX - 4096};
    lilac_random random;
    lilac_random_seed(&random, 17);
    uint32_t counted = 0;
    for (uint32_t round = 0; round < 3000; round++) {
        shape s = {.wide = lilac_random_below(&random, 2) == 1,
                   .fixed = lilac_random_below(&random, 2) == 1,
                   .masks = (uint32_t)lilac_random_below(&random, MOST) + 1,
                   .spread = 1u << lilac_random_below(&random, 4),
                   .part = (uint32_t)lilac_random_below(&random, 5)};
        s.low = s.wide ? pick(&random, wide, 10) : pick(&random, narrow, 8);
        s.step = (int64_t)1 << lilac_random_below(&random, 10);
        s.high = s.low + (int64_t)lilac_random_below(&random, (uint64_t)(3 * s.step));
        counted += left_over(&s) == 0;
    }
    assert_in_range(counted, 500, 2500); /* both happen often */
}

/* More rows than a signed number of the counter's width says. */
static void far_bounds(void **state) {
    (void)state;
    for (int fixed = 0; fixed < 2; fixed++) {
        shape s = {.fixed = fixed == 1,
                   .low = INT32_MIN,
                   .high = (1 << 30) - 5,
                   .step = 1 << 30,
                   .masks = 16,
                   .spread = 1};
        assert_int_equal(left_over(&s), 0);
        s.high = INT32_MIN + 7;
        assert_int_equal(left_over(&s), 0);
    }
}

static void what_counts(void **state) {
    (void)state;
    shape s = {.low = 3, .high = 47, .step = 16, .masks = 16, .spread = 1};
    assert_int_equal(left_over(&s), 0);
    s.masks = 17; /* the last is of the next iteration's first row */
    assert_int_equal(left_over(&s), 1);
    s.masks = 4; /* too few to be worth it: all but the counter's own */
    assert_int_equal(left_over(&s), 3);
    s.wide = true; /* dearer in 64 bits */
    s.masks = 6;
    assert_int_equal(left_over(&s), 0);
    s.masks = 16; /* 31 threads more than fit in one step */
    s.part = 1;
    assert_int_equal(left_over(&s), 16);
    s.step = 64;
    assert_int_equal(left_over(&s), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_loops),
        cmocka_unit_test(far_bounds),
        cmocka_unit_test(what_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
