/* scale_extremes: minima and maxima of random bit patterns, with infinities, NaNs, subnormal numbers
 * and zeros, times a random positive number are the same bits before and after the pass. */
#include "support/engine_harness.h"
#include "support/interpreter.h"

#include <math.h>

enum { ROWS = 8, COLUMNS = 16, COUNT = ROWS * COLUMNS, CASES = 400 };

static const char body[] =
    "%%c = arith.constant dense<0x%08X> : tensor<8x16xf32>\n"
    "%%r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>\n"
    "%%s = tt.splat %%p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>\n"
    "%%a = tt.addptr %%s, %%r : tensor<128x!tt.ptr<f32>>, tensor<128xi32>\n"
    "%%f = tt.load %%a : tensor<128x!tt.ptr<f32>>\n"
    "%%x = tt.reshape %%f : tensor<128xf32> -> tensor<8x16xf32>\n"
    "%%y = arith.mulf %%x, %%c : tensor<8x16xf32>\n"
    "%%most = \"tt.reduce\"(%%y) <{axis = 1 : i32}> ({\n"
    "^bb0(%%l: f32, %%k: f32):\n%%g = arith.%s %%l, %%k : f32\ntt.reduce.return %%g : f32\n"
    "}) : (tensor<8x16xf32>) -> tensor<8xf32>\n"
    "%%r8 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>\n"
    "%%t = tt.splat %%w : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>\n"
    "%%o = tt.addptr %%t, %%r8 : tensor<8x!tt.ptr<f32>>, tensor<8xi32>\n"
    "tt.store %%o, %%most : tensor<8x!tt.ptr<f32>>\n";

/* Numbers of all magnitudes; equal ones are frequent. */
static uint32_t draw(lilac_random *random) {
    static const uint32_t special[] = {0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000,
                                       1, 0x80000001, 0x007FFFFF, 0x7F7FFFFF, 0xFF7FFFFF};
    const uint32_t bits = (uint32_t)lilac_random_next(random);
    switch (lilac_random_below(random, 4)) {
    case 0:
        return special[lilac_random_below(random, sizeof special / sizeof *special)];
    case 1: /* near 1 */
        return 0x3F800000 + (bits & 7) + (bits & 0x80000000);
    default:
        return (bits & 0x7F800000) == 0x7F800000 ? bits & 0x7F000000 : bits;
    }
}

/* `open`: the rows of which the interpreter leaves the result open, because a product with a large
 * rounding error may be contracted. */
static void run(const program *p, const uint32_t *in, uint32_t *out, bool *open) {
    uint32_t words[COUNT];
    interpreter_buffer buffers[2] = {
        {.address = 0x1000, .size = sizeof words, .bytes = (uint8_t *)words},
        {.address = 0x8000, .size = ROWS * sizeof *out, .bytes = (uint8_t *)out}};
    uint64_t arguments[9] = {0x1000, 0x1000, 0x8000};
    memcpy(words, in, sizeof words);
    interpreter_run one = {.module = p->module,
                           .arguments = arguments,
                           .argument_count = 9,
                           .grid = {1, 1, 1},
                           .buffers = buffers,
                           .buffer_count = 2};
    const interpreter_status status = interpreter_execute(&one);
    if (status != INTERPRETER_DONE) {
        fail_msg("%s", interpreter_status_name(status));
    }
    for (uint32_t k = 0; k < ROWS; k++) {
        open[k] = isinf(buffers[1].error[k * sizeof *out]);
    }
    interpreter_buffer_clear(&buffers[0]);
    interpreter_buffer_clear(&buffers[1]);
}

static bool is_nan(uint32_t bits) {
    return (bits & 0x7FFFFFFF) > 0x7F800000;
}

/* Equal bits; zeros are equal, as are NaNs. */
static bool are_equal(uint32_t a, uint32_t b) {
    return a == b || ((a | b) & 0x7FFFFFFF) == 0 || (is_nan(a) && is_nan(b));
}

static void bits_are_equal(void **state) {
    static const char *const operations[] = {"maxnumf", "maximumf", "minnumf", "minimumf"};
    uint32_t compared = 0;
    lilac_random random;
    lilac_random_seed(&random, 20261123);
    (void)state;
    for (uint32_t i = 0; i < CASES; i++) {
        const char *operation = operations[i % 4];
        uint32_t in[COUNT], before[ROWS], after[ROWS], factor;
        bool open[ROWS], no_longer[ROWS];
        do {
            factor = draw(&random) & 0x7FFFFFFF;
        } while (factor == 0 || factor >= 0x7F800000);
        for (uint32_t k = 0; k < COUNT; k++) {
            in[k] = draw(&random);
        }
        lilac_text text = {0};
        bool changed;
        program p;
        lilac_text_printf(&text, body, factor, operation);
        program_body(&p, lilac_text_get(&text), 4);
        run(&p, in, before, open);
        assert_true(lilac_engine_scale_extremes(p.module, &p.target, &changed));
        assert_true(changed && lilac_tile_verify(p.module, false));
        run(&p, in, after, no_longer);
        for (uint32_t k = 0; k < ROWS; k++) {
            compared += !open[k];
            if (!open[k] && !are_equal(before[k], after[k])) {
                fail_msg("case %u, %s times %08x: %08x, then %08x", i, operation, factor, before[k],
                         after[k]);
            }
        }
        program_clear(&p);
        lilac_text_clear(&text);
    }
    assert_true(compared > CASES * ROWS / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(bits_are_equal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
