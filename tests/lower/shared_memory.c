/* lower: local_alloc, local_store, local_load and views of memory, on the simulator. */
#include "support/lower_tensors.h"

#define ROW                                                                                        \
    "#row = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], " \
    "order = [1, 0]}>\n"
#define COL                                                                                        \
    "#col = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], " \
    "order = [0, 1]}>\n"
#define WIDE                                                                                       \
    "#wide = #ttg.blocked<{sizePerThread = [2, 4], threadsPerWarp = [2, 16], warpsPerCTA = [2, "   \
    "2], order = [1, 0]}>\n"
#define SPACE "#smem = #ttg.shared_memory\n"

static const char *const memories[] = {
    "#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>\n",
    "#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 2, maxPhase = 4, order = [0, 1]}>\n",
    "#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 16, order = [1, 0]}>\n",
    ("#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = "
     "16}>\n"),
    "#shared = #ttg.padded_shared<[64:+8] {order = [1, 0], shape = [64, 64]}>\n",
    "#shared = #ttg.padded_shared<[16:+4, 128:+16] {order = [0, 1], shape = [64, 64]}>\n",
};

enum { ROWS = 64, COLUMNS = 64, COUNT = ROWS * COLUMNS };

static uint8_t x[COUNT * 8], o[COUNT * 8];

/* o = x, stored to memory in one layout and loaded in another. */
static void through_memory(void **state) {
    (void)state;
    static const char *const types[] = {"i8", "f16", "i32", "i64"};
    static const uint32_t sizes[] = {1, 2, 4, 8};
    lilac_random random;
    lilac_random_seed(&random, 3);
    for (size_t m = 0; m < sizeof memories / sizeof *memories; m++) {
        for (size_t t = 0; t < 4; t++) {
            if (strstr(memories[m], "elementBitWidth") != NULL && sizes[t] != 2) {
                continue;
            }
            lilac_text text = {0}, layouts = {0};
            lilac_text_printf(&layouts, "%s", ROW COL SPACE);
            lilac_text_printf(&layouts, "%s", memories[m]);
            put_head(&text, lilac_text_get(&layouts), types[t]);
            put_pointers(&text, "a", "x", "#row", types[t], ROWS, COLUMNS);
            put_pointers(&text, "b", "o", "#col", types[t], ROWS, COLUMNS);
            put_load(&text, "a", "#row", types[t], ROWS, COLUMNS);
            lilac_text_printf(&text,
                              "    %%m = ttg.local_alloc : () -> !ttg.memdesc<64x64x%s, #shared, "
                              "#smem, mutable>\n"
                              "    ttg.local_store %%a, %%m : tensor<64x64x%s, #row> -> "
                              "!ttg.memdesc<64x64x%s, #shared, #smem, mutable>\n"
                              "    %%v = ttg.local_load %%m : !ttg.memdesc<64x64x%s, #shared, "
                              "#smem, mutable> -> tensor<64x64x%s, #col>\n",
                              types[t], types[t], types[t], types[t], types[t]);
            put_store(&text, "b", "v", "#col", types[t], ROWS, COLUMNS);
            put_tail(&text);
            harness h;
            open_text(&h, &text);
            run_kernel(&h, &random, x, (size_t)COUNT * sizes[t], o, (size_t)COUNT * sizes[t], 0);
            assert_memory_equal(x, o, (size_t)COUNT * sizes[t]);
            assert_int_equal(count_text(lilac_text_get(&h.text), "    barrier"), 1);
            harness_close(&h);
            lilac_text_clear(&layouts);
        }
    }
}

/* Operands of matrix products come by matrix instructions, straight and transposed. */
static void operands_by_matrices(void **state) {
    (void)state;
    static const char *const operands[2] = {"#ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>",
                                            "#ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>"};
    lilac_random random;
    lilac_random_seed(&random, 8);
    for (uint32_t i = 0; i < 2; i++) {
        lilac_text text = {0};
        put_head(&text,
                 ROW SPACE
                 "#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, "
                 "2], instrShape = [16, 8]}>\n"
                 "#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, "
                 "0]}>\n",
                 "f16");
        put_pointers(&text, "a", "x", "#row", "f16", ROWS, COLUMNS);
        put_pointers(&text, "b", "o", operands[i], "f16", ROWS, COLUMNS);
        put_load(&text, "a", "#row", "f16", ROWS, COLUMNS);
        lilac_text_printf(&text,
                          "    %%m = ttg.local_alloc %%a : (tensor<64x64xf16, #row>) -> "
                          "!ttg.memdesc<64x64xf16, #shared, #smem>\n"
                          "    %%v = ttg.local_load %%m : !ttg.memdesc<64x64xf16, #shared, #smem> "
                          "-> tensor<64x64xf16, %s>\n",
                          operands[i]);
        put_store(&text, "b", "v", operands[i], "f16", ROWS, COLUMNS);
        put_tail(&text);
        harness h;
        open_text(&h, &text);
        run_kernel(&h, &random, x, COUNT * 2, o, COUNT * 2, 0);
        assert_memory_equal(x, o, COUNT * 2);
        assert_true(h.counters.matrix_loads > 0);
        assert_int_equal(h.counters.matrix_loads, h.counters.shared_loads);
        harness_close(&h);
    }
}

/* Views: a transpose, a part, a reshape; memory with copies among the threads that store it. */
static void views(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 4);
    lilac_text text = {0};
    put_head(&text,
             ROW COL SPACE
             "#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [1, "
             "0]}>\n"
             "#trans = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [0, "
             "1]}>\n",
             "f16");
    put_pointers(&text, "a", "x", "#row", "f16", ROWS, COLUMNS);
    put_pointers(&text, "b", "o", "#row", "f16", ROWS, COLUMNS);
    put_load(&text, "a", "#row", "f16", ROWS, COLUMNS);
    lilac_text_printf(
        &text,
        "    %%m = ttg.local_alloc %%a : (tensor<64x64xf16, #row>) -> !ttg.memdesc<64x64xf16, "
        "#shared, #smem>\n"
        "    %%t = ttg.memdesc_trans %%m {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, "
        "#shared, #smem> -> !ttg.memdesc<64x64xf16, #trans, #smem>\n"
        "    %%v = ttg.local_load %%t : !ttg.memdesc<64x64xf16, #trans, #smem> -> "
        "tensor<64x64xf16, #row>\n");
    put_store(&text, "b", "v", "#row", "f16", ROWS, COLUMNS);
    lilac_text_puts(&text, "    gpu.barrier\n"); /* the same rows by other threads */
    /* rows 1, 3, … of the transposed array become rows 1 and 3 of x */
    static const uint32_t parts[] = {1, 3, 62};
    for (size_t i = 0; i < 3; i++) {
        char name[8], value[8];
        snprintf(name, sizeof name, "c%zu", i);
        snprintf(value, sizeof value, "w%zu", i);
        put_pointers(&text, name, "o", "#row", "f16", 1, COLUMNS);
        lilac_text_printf(
            &text,
            "    %%s%zu = ttg.memdesc_subslice %%m[%u, 0] : !ttg.memdesc<64x64xf16, #shared, "
            "#smem> -> !ttg.memdesc<1x64xf16, #shared, #smem, 64x64>\n"
            "    %%%s = ttg.local_load %%s%zu : !ttg.memdesc<1x64xf16, #shared, #smem, 64x64> -> "
            "tensor<1x64xf16, #row>\n"
            "    %%d%zu = arith.constant dense<%u> : tensor<1x64xi32, #row>\n"
            "    %%e%zu = tt.addptr %%%sp, %%d%zu : tensor<1x64x!tt.ptr<f16>, #row>, "
            "tensor<1x64xi32, #row>\n"
            "    tt.store %%e%zu, %%%s : tensor<1x64x!tt.ptr<f16>, #row>\n",
            i, parts[i], value, i, i, parts[i] * COLUMNS, i, name, i, i, value);
    }
    put_tail(&text);
    harness h;
    open_text(&h, &text);
    run_kernel(&h, &random, x, COUNT * 2, o, COUNT * 2, 0);
    for (uint32_t i = 0; i < ROWS; i++) {
        bool part = i == 1 || i == 3 || i == 62;
        for (uint32_t j = 0; j < COLUMNS; j++) {
            uint64_t want = get_element(x, LILAC_I16, part ? i * COLUMNS + j : j * COLUMNS + i);
            assert_int_equal(get_element(o, LILAC_I16, (size_t)i * COLUMNS + j), want);
        }
    }
    harness_close(&h);
}

/* Buffers chosen by a loop's counter, filled in one loop and read in another. */
static void buffers_in_loops(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 5);
    lilac_text text = {0};
    put_head(&text,
             ROW COL SPACE
             "#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [1, "
             "0]}>\n",
             "i32");
    put_pointers(&text, "a", "x", "#row", "i32", ROWS, COLUMNS);
    put_pointers(&text, "b", "o", "#col", "i32", ROWS, COLUMNS);
    put_load(&text, "a", "#row", "i32", ROWS, COLUMNS);
    lilac_text_printf(
        &text,
        "    %%c0 = arith.constant 0 : i32\n    %%c1 = arith.constant 1 : i32\n"
        "    %%c3 = arith.constant 3 : i32\n"
        "    %%zero = arith.constant dense<0> : tensor<64x64xi32, #col>\n"
        "    %%m = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xi32, #shared, #smem, mutable>\n"
        "    scf.for %%k = %%c0 to %%c3 step %%c1 : i32 {\n"
        "      %%s = tt.splat %%k : i32 -> tensor<64x64xi32, #row>\n"
        "      %%y = arith.muli %%a, %%s : tensor<64x64xi32, #row>\n"
        "      %%q = ttg.memdesc_index %%m[%%k] : !ttg.memdesc<3x64x64xi32, #shared, #smem, "
        "mutable> -> !ttg.memdesc<64x64xi32, #shared, #smem, mutable>\n"
        "      ttg.local_store %%y, %%q : tensor<64x64xi32, #row> -> !ttg.memdesc<64x64xi32, "
        "#shared, #smem, mutable>\n"
        "    }\n"
        "    %%sum = scf.for %%k = %%c0 to %%c3 step %%c1 iter_args(%%t = %%zero) -> "
        "(tensor<64x64xi32, #col>) : i32 {\n"
        "      %%q = ttg.memdesc_index %%m[%%k] : !ttg.memdesc<3x64x64xi32, #shared, #smem, "
        "mutable> -> !ttg.memdesc<64x64xi32, #shared, #smem, mutable>\n"
        "      %%v = ttg.local_load %%q : !ttg.memdesc<64x64xi32, #shared, #smem, mutable> -> "
        "tensor<64x64xi32, #col>\n"
        "      %%u = arith.addi %%t, %%v : tensor<64x64xi32, #col>\n"
        "      scf.yield %%u : tensor<64x64xi32, #col>\n"
        "    }\n"
        "    ttg.local_dealloc %%m : !ttg.memdesc<3x64x64xi32, #shared, #smem, mutable>\n");
    put_store(&text, "b", "sum", "#col", "i32", ROWS, COLUMNS);
    put_tail(&text);
    harness h;
    open_text(&h, &text);
    run_kernel(&h, &random, x, COUNT * 4, o, COUNT * 4, 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(get_element(o, LILAC_I32, i),
                         (uint32_t)(3 * get_element(x, LILAC_I32, i)));
    }
    harness_close(&h);
}

/* Allocations share bytes only if their lifetimes do not overlap. */
static void lives(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 6);
    lilac_text text = {0};
    put_head(&text,
             ROW WIDE SPACE "#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, "
                            "maxPhase = 1, order = [1, 0]}>\n",
             "i32");
    put_pointers(&text, "a", "x", "#row", "i32", ROWS, COLUMNS);
    put_pointers(&text, "b", "o", "#wide", "i32", ROWS, COLUMNS);
    put_load(&text, "a", "#row", "i32", ROWS, COLUMNS);
    lilac_text_printf(&text, "    %%zero = arith.constant dense<0> : tensor<64x64xi32, #wide>\n");
    const char *sum = "zero";
    static const char *const sums[] = {"s0", "s1", "s2"};
    for (int i = 0; i < 3; i++) {
        lilac_text_printf(&text,
                          "    %%m%d = ttg.local_alloc %%a : (tensor<64x64xi32, #row>) -> "
                          "!ttg.memdesc<64x64xi32, #shared, #smem>\n",
                          i);
        if (i > 0) {
            lilac_text_printf(&text,
                              "    %%v%d = ttg.local_load %%m%d : !ttg.memdesc<64x64xi32, #shared, "
                              "#smem> -> tensor<64x64xi32, #wide>\n"
                              "    %%%s = arith.addi %%%s, %%v%d : tensor<64x64xi32, #wide>\n",
                              i, i - 1, sums[i], sum, i);
            sum = sums[i];
        }
    }
    put_store(&text, "b", sum, "#wide", "i32", ROWS, COLUMNS);
    put_tail(&text);
    harness h;
    open_text(&h, &text);
    assert_int_equal(h.simt->kernels->shared_bytes, 2 * COUNT * 4);
    run_kernel(&h, &random, x, COUNT * 4, o, COUNT * 4, 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(get_element(o, LILAC_I32, i),
                         (uint32_t)(2 * get_element(x, LILAC_I32, i)));
    }
    harness_close(&h);
}

static void too_large(void **state) {
    (void)state;
    lilac_text text = {0};
    put_head(&text,
             ROW SPACE "#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = "
                       "1, order = [1, 0]}>\n",
             "i32");
    lilac_text_printf(&text,
                      "    %%m = ttg.local_alloc : () -> !ttg.memdesc<16x64x64xi32, #shared, "
                      "#smem, mutable>\n"
                      "    ttg.local_dealloc %%m : !ttg.memdesc<16x64x64xi32, #shared, #smem, "
                      "mutable>\n");
    put_tail(&text);
    harness h;
    assert_false(harness_try(&h, lilac_text_get(&text), 4, false, NULL));
    assert_string_equal(lilac_diagnostics(h.context)->id, "too-much-shared-memory");
    lilac_text_clear(&text);
    harness_close(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(through_memory), cmocka_unit_test(operands_by_matrices),
        cmocka_unit_test(views),          cmocka_unit_test(buffers_in_loops),
        cmocka_unit_test(lives),          cmocka_unit_test(too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
