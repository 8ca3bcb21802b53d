/* scale_extremes: minima and maxima of random bit patterns, with infinities, NaNs, subnormal numbers
 * and zeros, times a random positive number are the same bits before and after the pass, and so are exponentials of
 * sums with products with a power of two. */
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

/* `open`: the words that the interpreter leaves open, because a product with a large rounding error may
 * be contracted. */
static void run(const program *p, const uint32_t *in, uint32_t *out, bool *open, uint32_t count) {
    uint32_t words[COUNT];
    interpreter_buffer buffers[2] = {
        {.address = 0x1000, .size = sizeof words, .bytes = (uint8_t *)words},
        {.address = 0x8000, .size = count * sizeof *out, .bytes = (uint8_t *)out}};
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
    for (uint32_t k = 0; k < count; k++) {
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
        run(&p, in, before, open, ROWS);
        assert_true(lilac_engine_scale_extremes(p.module, &p.target, &changed));
        assert_true(changed && lilac_tile_verify(p.module, false));
        run(&p, in, after, no_longer, ROWS);
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

/* ---- powers of two ---------------------------------------------------------------------------- */

/* Stores the exponentials of y - most and of y + x, and most, of y = x 2^k c. */
static const char exponents[] =
    "%%c = arith.constant dense<0x%08X> : tensor<8x16xf32>\n"
    "%%power = arith.constant dense<0x%08X> : tensor<8x16xf32>\n"
    "%%r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>\n"
    "%%s = tt.splat %%p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>\n"
    "%%a = tt.addptr %%s, %%r : tensor<128x!tt.ptr<f32>>, tensor<128xi32>\n"
    "%%f = tt.load %%a : tensor<128x!tt.ptr<f32>>\n"
    "%%x = tt.reshape %%f : tensor<128xf32> -> tensor<8x16xf32>\n"
    "%%half = arith.mulf %%x, %%power : tensor<8x16xf32>\n"
    "%%y = arith.mulf %%c, %%half : tensor<8x16xf32>\n"
    "%%most = \"tt.reduce\"(%%y) <{axis = 1 : i32}> ({\n"
    "^bb0(%%l: f32, %%right: f32):\n%%g = arith.%s %%l, %%right : f32\ntt.reduce.return %%g : f32\n"
    "}) : (tensor<8x16xf32>) -> tensor<8xf32>\n"
    "%%m8 = tt.expand_dims %%most {axis = 1 : i32} : tensor<8xf32> -> tensor<8x1xf32>\n"
    "%%highest = tt.broadcast %%m8 : tensor<8x1xf32> -> tensor<8x16xf32>\n"
    "%%d0 = arith.subf %%y, %%highest : tensor<8x16xf32>\n"
    "%%d1 = arith.addf %%x, %%y : tensor<8x16xf32>\n"
    "%%e0 = math.exp2 %%d0 : tensor<8x16xf32>\n"
    "%%e1 = math.exp %%d1 : tensor<8x16xf32>\n"
    "%%place = tt.splat %%w : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>\n"
    "%%o0 = tt.addptr %%place, %%r : tensor<128x!tt.ptr<f32>>, tensor<128xi32>\n"
    "%%gap = arith.constant dense<128> : tensor<128xi32>\n"
    "%%o1 = tt.addptr %%o0, %%gap : tensor<128x!tt.ptr<f32>>, tensor<128xi32>\n"
    "%%v0 = tt.reshape %%e0 : tensor<8x16xf32> -> tensor<128xf32>\n"
    "%%v1 = tt.reshape %%e1 : tensor<8x16xf32> -> tensor<128xf32>\n"
    "tt.store %%o0, %%v0 : tensor<128x!tt.ptr<f32>>\n"
    "tt.store %%o1, %%v1 : tensor<128x!tt.ptr<f32>>\n"
    "%%r8 = tt.make_range {end = 264 : i32, start = 256 : i32} : tensor<8xi32>\n"
    "%%t = tt.splat %%w : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>\n"
    "%%o = tt.addptr %%t, %%r8 : tensor<8x!tt.ptr<f32>>, tensor<8xi32>\n"
    "tt.store %%o, %%most : tensor<8x!tt.ptr<f32>>\n";

/* Is the product with the power still there, for all elements? */
static bool multiplies_twice(const program *p) {
    lilac_text text = {0};
    lilac_tile_print(&text, p->module, false);
    const bool found = strstr(lilac_text_get(&text), "arith.mulf %c, %half") != NULL;
    lilac_text_clear(&text);
    return found;
}

static void exponentials_are_equal(void **state) {
    static const char *const operations[] = {"maxnumf", "minimumf"};
    enum { WORDS = 2 * COUNT + ROWS };
    uint32_t compared = 0, folded = 0;
    lilac_random random;
    lilac_random_seed(&random, 20261130);
    (void)state;
    for (uint32_t i = 0; i < CASES; i++) {
        uint32_t in[COUNT], before[WORDS], after[WORDS];
        bool open[WORDS], no_longer[WORDS], changed;
        /* a factor up to 2^20, or any; a power of two below 1, or up to 16 */
        uint32_t factor = i % 4 != 0
                              ? 0x3A000000 + (uint32_t)lilac_random_below(&random, 0x0F800001)
                              : 1 + (uint32_t)lilac_random_below(&random, 0x7F7FFFFF);
        uint32_t power = (1 + (uint32_t)lilac_random_below(&random, i % 8 != 0 ? 126 : 130)) << 23;
        for (uint32_t k = 0; k < COUNT; k++) {
            in[k] = draw(&random);
        }
        lilac_text text = {0};
        program p;
        lilac_text_printf(&text, exponents, factor, power, operations[i % 2]);
        program_body(&p, lilac_text_get(&text), 4);
        run(&p, in, before, open, WORDS);
        assert_true(lilac_engine_scale_extremes(p.module, &p.target, &changed));
        assert_true(changed && lilac_tile_verify(p.module, false));
        folded += !multiplies_twice(&p);
        if (power >= 0x3F800000 || factor > 0x49800000) {
            assert_true(multiplies_twice(&p));
        }
        run(&p, in, after, no_longer, WORDS);
        for (uint32_t k = 0; k < WORDS; k++) {
            const bool known = !open[k] && !no_longer[k];
            compared += known;
            if (known && !are_equal(before[k], after[k])) {
                fail_msg("case %u, %s of %08x and %08x: word %u is %08x, then %08x", i,
                         operations[i % 2], factor, power, k, before[k], after[k]);
            }
        }
        program_clear(&p);
        lilac_text_clear(&text);
    }
    assert_true(folded > CASES / 4 && compared > CASES * WORDS / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(bits_are_equal),
                                       cmocka_unit_test(exponentials_are_equal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
