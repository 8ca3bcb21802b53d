/* lower: ttg.fp4_to_fp on the simulator, every byte, along both axes, in layouts in which the two
 * numbers of a byte are in one thread, in two lanes and in two warps. */
#include "support/lower_harness.h"

enum { ROWS = 16, COLUMNS = 16, BYTES = ROWS * COLUMNS };

/* The layouts of the bytes and of the numbers, along axis 1 or 0. */
static const struct {
    const char *name, *bytes, *numbers;
    int axis;
} layouts[] = {
    {"one thread", "sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1]",
     "sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1]", 1},
    {"two lanes", "sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1]",
     "sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1]", 1},
    {"one thread", "sizePerThread = [2, 1], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1]",
     "sizePerThread = [4, 1], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1]", 0},
    {"two lanes", "sizePerThread = [1, 1], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1]",
     "sizePerThread = [1, 1], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1]", 0},
    {"two warps", "sizePerThread = [2, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4]",
     "sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1]", 0},
};

/* Tensors of offsets: rows times their size, plus columns. */
static void put_offsets(lilac_text *out, const char *name, int rows, int columns) {
    lilac_text_printf(
        out,
        "    %%%sr = tt.make_range {end = %d : i32, start = 0 : i32} : tensor<%dxi32, "
        "#ttg.slice<{dim = 1, parent = #%s}>>\n"
        "    %%%sc = tt.make_range {end = %d : i32, start = 0 : i32} : tensor<%dxi32, "
        "#ttg.slice<{dim = 0, parent = #%s}>>\n"
        "    %%%ss = arith.constant dense<%d> : tensor<%dxi32, #ttg.slice<{dim = 1, parent = "
        "#%s}>>\n"
        "    %%%sm = arith.muli %%%sr, %%%ss : tensor<%dxi32, #ttg.slice<{dim = 1, parent = "
        "#%s}>>\n",
        name, rows, rows, name, name, columns, columns, name, name, columns, rows, name, name, name,
        name, rows, name);
    lilac_text_printf(
        out,
        "    %%%se = tt.expand_dims %%%sm {axis = 1 : i32} : tensor<%dxi32, #ttg.slice<{dim = 1, "
        "parent = #%s}>> -> tensor<%dx1xi32, #%s>\n"
        "    %%%sf = tt.expand_dims %%%sc {axis = 0 : i32} : tensor<%dxi32, #ttg.slice<{dim = 0, "
        "parent = #%s}>> -> tensor<1x%dxi32, #%s>\n",
        name, name, rows, name, rows, name, name, name, columns, name, columns, name);
    lilac_text_printf(out,
                      "    %%%sg = tt.broadcast %%%se : tensor<%dx1xi32, #%s> -> tensor<%dx%dxi32, "
                      "#%s>\n"
                      "    %%%sh = tt.broadcast %%%sf : tensor<1x%dxi32, #%s> -> tensor<%dx%dxi32, "
                      "#%s>\n"
                      "    %%%so = arith.addi %%%sg, %%%sh : tensor<%dx%dxi32, #%s>\n",
                      name, name, rows, name, rows, columns, name, name, name, columns, name, rows,
                      columns, name, name, name, name, rows, columns, name);
}

static void put_pointers(lilac_text *out, const char *name, const char *type, int rows,
                         int columns) {
    put_offsets(out, name, rows, columns);
    lilac_text_printf(out,
                      "    %%%st = tt.splat %%%s : !tt.ptr<%s> -> tensor<%dx%dx!tt.ptr<%s>, #%s>\n"
                      "    %%%sp = tt.addptr %%%st, %%%so : tensor<%dx%dx!tt.ptr<%s>, #%s>, "
                      "tensor<%dx%dxi32, #%s>\n",
                      name, name, type, rows, columns, type, name, name, name, name, rows, columns,
                      type, name, rows, columns, name);
}

static void kernel_text(lilac_text *out, size_t layout, const char *type) {
    const int axis = layouts[layout].axis;
    const int rows = axis == 0 ? 2 * ROWS : ROWS, columns = axis == 1 ? 2 * COLUMNS : COLUMNS;
    lilac_text_printf(out,
                      "#x = #ttg.blocked<{%s, order = [1, 0]}>\n"
                      "#y = #ttg.blocked<{%s, order = [1, 0]}>\n"
                      "module attributes {\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = 4 : i32, "
                      "\"ttg.threads-per-warp\" = 32 : i32} {\n"
                      "  tt.func public @k(%%x: !tt.ptr<i8>, %%y: !tt.ptr<%s>) {\n",
                      layouts[layout].bytes, layouts[layout].numbers, type);
    put_pointers(out, "x", "i8", ROWS, COLUMNS);
    put_pointers(out, "y", type, rows, columns);
    lilac_text_printf(out,
                      "    %%b = tt.load %%xp : tensor<%dx%dx!tt.ptr<i8>, #x>\n"
                      "    %%v = ttg.fp4_to_fp %%b {axis = %d : i32} : tensor<%dx%dxi8, #x> -> "
                      "tensor<%dx%dx%s, #y>\n"
                      "    tt.store %%yp, %%v : tensor<%dx%dx!tt.ptr<%s>, #y>\n"
                      "    tt.return\n  }\n}\n",
                      ROWS, COLUMNS, axis, ROWS, COLUMNS, rows, columns, type, rows, columns, type);
}

/* The number of the result with these coordinates, from its byte. */
static double expected(const uint8_t *x, int axis, int row, int column) {
    int byte = axis == 0 ? row / 2 * COLUMNS + column : row * COLUMNS + column / 2;
    int half = (axis == 0 ? row : column) % 2;
    return lilac_scalar_decode(LILAC_F4E2M1FN, (uint64_t)(x[byte] >> 4 * half & 15));
}

static void check(size_t layout, lilac_scalar scalar) {
    const int axis = layouts[layout].axis, columns = axis == 1 ? 2 * COLUMNS : COLUMNS;
    lilac_text text = {0};
    harness h;
    uint8_t x[BYTES], y[2 * BYTES * 8] = {0};
    for (uint32_t i = 0; i < BYTES; i++) {
        x[i] = (uint8_t)(i * 37); /* every byte once */
    }
    kernel_text(&text, layout, lilac_scalar_name(scalar));
    harness_open(&h, lilac_text_get(&text), 4, false);
    buffer buffers[] = {{x, sizeof x}, {y, 2 * (size_t)BYTES * bytes_of(scalar)}};
    harness_run(&h, 1, buffers, 2, NULL, 0);
    for (int i = 0; i < 2 * BYTES; i++) {
        double want = expected(x, axis, i / columns, i % columns);
        uint64_t bits = lilac_scalar_encode(scalar, want, LILAC_ROUND_NEAREST_EVEN, false);
        if (get_element(y, scalar, (size_t)i) != bits) {
            fail_msg("%s, axis %d, %s: element %d is %g, not %g", layouts[layout].name, axis,
                     lilac_scalar_name(scalar), i,
                     lilac_scalar_decode(scalar, get_element(y, scalar, (size_t)i)), want);
        }
    }
    harness_close(&h);
    lilac_text_clear(&text);
}

static void every_byte(void **state) {
    static const lilac_scalar scalars[] = {LILAC_F16, LILAC_BF16, LILAC_F32, LILAC_F64};
    (void)state;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        for (size_t k = 0; k < sizeof scalars / sizeof *scalars; k++) {
            check(i, scalars[k]);
        }
    }
}

static void refuses_small_floats(void **state) {
    (void)state;
    lilac_text text = {0};
    harness h;
    kernel_text(&text, 0, "f8E5M2");
    assert_false(harness_try(&h, lilac_text_get(&text), 4, false, NULL));
    const lilac_diagnostic *first = lilac_diagnostics(h.context);
    assert_non_null(first);
    assert_string_equal(first->id, "unsupported-type");
    harness_close(&h);
    lilac_text_clear(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_byte),
                                       cmocka_unit_test(refuses_small_floats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
