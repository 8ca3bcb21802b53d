/* cute: texts read and printed, the linear map equal to the integer definition at every coordinate,
 * maps back to CuTe, and every refusal by its id or reason. */
#include "support/scanned.h"

#include <lilac/cute.h>
#include <lilac/encoding.h>

#include <stdio.h>
#include <string.h>

static bool read_text(lilac_cute *cute, const char *text) {
    lilac_context *context = lilac_context_create();
    lilac_scanner scanner;
    scan(&scanner, context, text);
    assert_true(lilac_cute_at(&scanner));
    const bool good = lilac_cute_read(&scanner, cute) && scanner.kind == LILAC_TOKEN_END;
    assert_true(good == (lilac_error_count(context) == 0));
    lilac_context_destroy(context);
    return good;
}

static void expect_print(const lilac_cute *cute, const char *text) {
    lilac_text out = {0};
    lilac_cute_print(&out, cute);
    assert_string_equal(lilac_text_get(&out), text);
    lilac_text_clear(&out);
}

static void expect_normal(const char *text, const char *printed) {
    lilac_cute cute;
    assert_true(read_text(&cute, text));
    expect_print(&cute, printed);
    assert_true(read_text(&cute, printed));
    expect_print(&cute, printed);
}

static void test_text(void **state) {
    (void)state;
    expect_normal("((2,4),(8,2)):((16,1),(2,64))", "((2,4),(8,2)):((16,1),(2,64))");
    expect_normal("8:1", "8:1");
    expect_normal("(8):(1)", "8:1");
    expect_normal("_8 : _1", "8:1");
    expect_normal("((2,4)):((4,1))", "((2,4)):((4,1))");
    expect_normal("(_8,_64):(_64,_1)", "(8,64):(64,1)");
    expect_normal("((2,(2,2)),1):((1,(2,4)),0)", "((2,2,2),1):((1,2,4),0)");
    expect_normal("((2,(2,2)),4):((1,0),8)", "((2,2,2),4):((1,0,0),8)");
    expect_normal("(6,7):(7,1)", "(6,7):(7,1)"); /* CuTe's, if not linear */
    expect_normal("Sw<3,3,3> o 0 o (8,64):(64,1)", "Sw<3,3,3> o 0 o (8,64):(64,1)");
    expect_normal("Sw<3,3,3> o _0 o (_8,_64):(_64,_1)", "Sw<3,3,3> o 0 o (8,64):(64,1)");
    expect_normal("S<3,3,3> o (8,64):(64,1)", "Sw<3,3,3> o 0 o (8,64):(64,1)");
    expect_normal("Swizzle<3,3,3> o (8,64):(64,1)", "Sw<3,3,3> o 0 o (8,64):(64,1)");
    expect_normal("Swizzle<_2,_0,_3> o 64:1", "Sw<2,0,3> o 0 o 64:1");
    expect_normal("Swizzle<2,0,-3> o 64:1", "Sw<2,0,-3> o 0 o 64:1");
    expect_normal("Sw<0,4,3> o 0 o (8,64):(64,1)", "(8,64):(64,1)");
    /* In bytes: 16-bit elements are 2^1 of them, 4-bit ones 2^-1. */
    expect_normal("Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)",
                  "Sw<3,3,3> o 0 o (8,64):(64,1)");
    expect_normal("Sw<2,4,3> o smem_ptr[8b](unset) o (_8,_64):(_64,_1)",
                  "Sw<2,4,3> o 0 o (8,64):(64,1)");
    expect_normal("Sw<1,4,3> o smem_ptr[4b](unset) o (8,256):(256,1)",
                  "Sw<1,5,3> o 0 o (8,256):(256,1)");
}

static void expect_refused(const char *text, const char *id) {
    lilac_context *context = lilac_context_create();
    lilac_scanner scanner;
    lilac_cute cute;
    scan(&scanner, context, text);
    assert_false(lilac_cute_read(&scanner, &cute));
    expect_id(context, text, id);
    lilac_context_destroy(context);
}

static void test_refused_texts(void **state) {
    (void)state;
    expect_refused("(8,64):(64)", "cute-mismatch");
    expect_refused("(8,64):(64,1,1)", "cute-mismatch");
    expect_refused("(8,64):((64,1),1)", "cute-mismatch");
    expect_refused("((8,2),64):(64,1)", "cute-mismatch");
    expect_refused("(8,64):1", "cute-mismatch");
    expect_refused("8:(1,2)", "cute-mismatch");
    expect_refused("(8,64)", "syntax");
    expect_refused("(8,):(64,)", "syntax");
    expect_refused("():()", "syntax");
    expect_refused("(8,64:(64,1)", "syntax");
    expect_refused("(8,64):(64,1", "syntax");
    expect_refused("(8,x):(64,1)", "syntax");
    expect_refused("(8,_x):(64,1)", "syntax");
    expect_refused("Sw<3,4,3>(8,64):(64,1)", "syntax");
    expect_refused("Sw<3,4> o (8,64):(64,1)", "syntax");
    expect_refused("Sw<3,4,3> o gmem_ptr[16b](unset) o (8,64):(64,1)", "syntax");
    expect_refused("Sw<3,4,3> o smem_ptr[16b](0x10) o (8,64):(64,1)", "syntax");
    expect_refused("Sw<3,4,2> o (8,64):(64,1)", "cute-swizzle");
    expect_refused("Sw<3,4,-2> o (8,64):(64,1)", "cute-swizzle");
    expect_refused("Sw<-1,4,3> o (8,64):(64,1)", "cute-swizzle");
    expect_refused("Sw<3,-4,3> o (8,64):(64,1)", "cute-swizzle");
    expect_refused("Sw<20,30,30> o (8,64):(64,1)", "cute-swizzle");
    expect_refused("Sw<3,4,65> o (8,64):(64,1)", "cute-swizzle");
    expect_refused("Sw<3,4,9223372036854775807> o 1:1", "cute-swizzle");
    expect_refused("Sw<3,1,3> o smem_ptr[32b](unset) o (8,64):(64,1)", "cute-swizzle");
    expect_refused("Sw<3,4,3> o smem_ptr[6b](unset) o (8,64):(64,1)", "cute-swizzle");
    expect_refused("Sw<3,4,3> o smem_ptr[0b](unset) o (8,64):(64,1)", "cute-swizzle");
    expect_refused("Sw<3,4,3> o smem_ptr[-1b](unset) o (8,64):(64,1)", "cute-swizzle");
    expect_refused("Sw<3,4,3> o 64 o (8,64):(64,1)", "cute-offset");
    expect_refused("Sw<3,4,3> o -64 o (8,64):(64,1)", "cute-offset");
    expect_refused("(8,64):(-64,1)", "cute-stride");
    expect_refused("(-8,64):(64,1)", "cute-size");
    expect_refused("(0,64):(64,1)", "cute-size");
    expect_refused("(2,2):(4611686018427387904,4611686018427387904)", "cute-too-large");
    expect_refused("(2,2):(9223372036854775808,1)", "cute-too-large");
    expect_refused("(_99999999999999999999,2):(1,1)", "cute-too-large");
    expect_refused("(4611686018427387904,2):(0,0)", "cute-too-large");
    expect_refused("8:99999999999999999999", "integer-too-large");
    expect_refused("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1):0", "cute-too-large");

    lilac_text text = {0};
    lilac_text_repeat(&text, '(', 100);
    expect_refused(lilac_text_get(&text), "cute-too-deep");
    lilac_text_reset(&text);
    lilac_text_puts(&text, "((1");
    for (uint32_t i = 0; i < 64; i++) {
        lilac_text_puts(&text, ",1");
    }
    lilac_text_puts(&text, ")):0");
    expect_refused(lilac_text_get(&text), "cute-too-large");
    lilac_text_reset(&text);
    lilac_text_puts(&text, "((1");
    for (uint32_t i = 0; i < 1000; i++) {
        lilac_text_puts(&text, ",1");
    }
    expect_refused(lilac_text_get(&text), "cute-too-large");
    lilac_text_clear(&text);
}

/* ---- meaning ---------------------------------------------------------------------------- */

/* Goes to the next coordinates, the first mode fastest; false after the last. */
static bool next_coordinates(const lilac_cute *cute, uint64_t *at) {
    for (uint32_t m = 0; m < cute->rank; m++) {
        if (++at[m] < lilac_cute_size(cute, m)) {
            return true;
        }
        at[m] = 0;
    }
    return false;
}

/* The map equals the definition everywhere. */
static void expect_map(const lilac_cute *cute, const lilac_layout *map) {
    uint64_t at[LILAC_CUTE_MAX_RANK] = {0}, index = 0;
    assert_int_equal(map->in_count, cute->rank);
    do {
        assert_int_equal(lilac_layout_apply(map, index), lilac_cute_offset(cute, at));
        index++;
    } while (next_coordinates(cute, at));
    assert_int_equal(index, UINT64_C(1) << map->in_bits);
}

/* For power-of-two sizes: is the definition linear over F2? By its values at the unit vectors. */
static bool is_linear(const lilac_cute *cute) {
    uint64_t at[LILAC_CUTE_MAX_RANK] = {0};
    do {
        uint64_t sum = 0;
        for (uint32_t m = 0; m < cute->rank; m++) {
            for (uint64_t k = 1; k <= at[m]; k *= 2) {
                uint64_t unit[LILAC_CUTE_MAX_RANK] = {0};
                unit[m] = k;
                if (at[m] & k) {
                    sum ^= lilac_cute_offset(cute, unit);
                }
            }
        }
        if (sum != lilac_cute_offset(cute, at)) {
            return false;
        }
    } while (next_coordinates(cute, at));
    return true;
}

static void random_cute(lilac_cute *cute, lilac_random *random) {
    *cute = (lilac_cute){.rank = 1 + (uint32_t)lilac_random_below(random, 3)};
    uint32_t left = 9;
    for (uint32_t m = 0; m < cute->rank; m++) {
        for (uint64_t leaves = 1 + lilac_random_below(random, 3); leaves > 0; leaves--) {
            const uint32_t bits = (uint32_t)lilac_random_below(random, left < 3 ? left + 1 : 4);
            uint64_t stride = UINT64_C(1) << lilac_random_below(random, 10);
            if (lilac_random_below(random, 6) == 0) {
                stride = lilac_random_below(random, 12);
            }
            left -= bits;
            cute->leaf[cute->leaf_count++] = (lilac_cute_leaf){UINT64_C(1) << bits, stride, m};
        }
    }
    if (lilac_random_below(random, 2)) {
        cute->swizzle_bits = 1 + (uint32_t)lilac_random_below(random, 3);
        cute->swizzle_base = (uint32_t)lilac_random_below(random, 5);
        cute->swizzle_shift =
            (int32_t)(cute->swizzle_bits + (uint32_t)lilac_random_below(random, 3));
        if (lilac_random_below(random, 2)) {
            cute->swizzle_shift = -cute->swizzle_shift;
        }
    }
}

/* The map exists exactly when the definition is linear, equals it, and comes back. */
static void test_random(void **state) {
    (void)state;
    lilac_random random;
    uint32_t linear = 0, bijective = 0, refused = 0;
    lilac_random_seed(&random, 3);
    for (uint32_t i = 0; i < 3000; i++) {
        lilac_cute cute, back;
        lilac_layout map, again, memory, inverse;
        lilac_reason why = {""};
        random_cute(&cute, &random);
        const bool good = lilac_cute_map(&map, &cute, &why);
        assert_true(good == is_linear(&cute));
        if (!good) {
            assert_true(strstr(why.text, "is not a power of two") ||
                        strstr(why.text, "segments overlap"));
            assert_false(lilac_cute_memory(&memory, &cute, NULL));
            refused++;
            continue;
        }
        linear++;
        expect_map(&cute, &map);
        assert_true(lilac_cute_of_map(&back, &map, &why));
        assert_true(lilac_cute_map(&again, &back, &why));
        assert_true(lilac_layout_equal(&map, &again));
        assert_true(back.swizzle_bits <= cute.swizzle_bits);

        const bool onto = lilac_layout_is_injective(&map) && lilac_layout_is_surjective(&map);
        assert_true(lilac_cute_memory(&memory, &cute, &why) == onto);
        if (!onto) {
            assert_true(strstr(why.text, "not injective, so it has no inverse") ||
                        strstr(why.text, "nothing is at offset"));
            continue;
        }
        bijective++;
        assert_int_equal(lilac_layout_in_bits(&memory, "block"), 0);
        assert_true(lilac_layout_in(&memory, "block") == 1);
        assert_true(lilac_layout_invert(&inverse, &map, &why));
        for (uint64_t offset = 0; offset < UINT64_C(1) << map.in_bits; offset++) {
            assert_int_equal(lilac_layout_apply(&memory, offset),
                             lilac_layout_apply(&inverse, offset));
        }
        assert_true(lilac_cute_of_layout(&back, &memory, &why));
        assert_true(lilac_cute_map(&again, &back, &why));
        assert_true(lilac_layout_equal(&map, &again));
    }
    assert_true(linear > 300 && refused > 300 && bijective > 30);
}

/* What is read, printed and read again is the same, whatever the layout. */
static void test_random_texts(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 4);
    lilac_text text = {0};
    for (uint32_t i = 0; i < 1000; i++) {
        lilac_cute cute, again;
        random_cute(&cute, &random);
        lilac_text_reset(&text);
        lilac_cute_print(&text, &cute);
        assert_true(read_text(&again, lilac_text_get(&text)));
        assert_int_equal(again.rank, cute.rank);
        assert_int_equal(again.leaf_count, cute.leaf_count);
        assert_int_equal(again.swizzle_bits, cute.swizzle_bits);
        assert_int_equal(again.swizzle_base, cute.swizzle_base);
        assert_int_equal(again.swizzle_shift, cute.swizzle_shift);
        for (uint32_t k = 0; k < cute.leaf_count; k++) {
            assert_int_equal(again.leaf[k].size, cute.leaf[k].size);
            assert_int_equal(again.leaf[k].stride, cute.leaf[k].stride);
            assert_int_equal(again.leaf[k].mode, cute.leaf[k].mode);
        }
    }
    lilac_text_clear(&text);
}

/* Small enough to try everything: of_map says no only where no swizzle over any strides gives that
 * map. All maps of 3 bits into 3, against all swizzles over all columns that share no bit. */
static void test_exhaustive(void **state) {
    (void)state;
    static bool possible[512];
    for (uint32_t d = 0; d < 512; d++) {
        const uint64_t columns[3] = {d & 7, d >> 3 & 7, d >> 6};
        if ((columns[0] & columns[1]) || (columns[0] & columns[2]) || (columns[1] & columns[2])) {
            continue;
        }
        for (uint32_t bits = 0; bits <= 1; bits++) {
            for (uint32_t base = 0; base < 3; base++) {
                for (int32_t shift = -2; shift <= 2; shift++) {
                    const uint32_t distance = (uint32_t)(shift < 0 ? -shift : shift);
                    if (distance < bits || base + distance + bits > 3) {
                        continue;
                    }
                    uint64_t made = 0;
                    for (uint32_t k = 0; k < 3; k++) {
                        made |= lilac_cute_swizzle(bits, base, shift, columns[k]) << 3 * k;
                    }
                    possible[made] = true;
                }
            }
        }
    }
    uint32_t refused = 0;
    for (uint32_t d = 0; d < 512; d++) {
        const uint64_t columns[3] = {d & 7, d >> 3 & 7, d >> 6};
        lilac_layout map, again;
        lilac_cute cute;
        lilac_reason why = {""};
        lilac_layout_init(&map);
        assert_true(lilac_layout_add_out(&map, "offset", 3, NULL));
        assert_true(lilac_layout_add_in(&map, "dim0", 1, columns, NULL));
        assert_true(lilac_layout_add_in(&map, "dim1", 2, columns + 1, NULL));
        assert_true(lilac_cute_of_map(&cute, &map, &why) == possible[d]);
        if (!possible[d]) {
            refused++;
            assert_non_null(strstr(why.text, "this xor is not a Swizzle<B,M,S>"));
        } else {
            assert_true(lilac_cute_map(&again, &cute, &why));
            for (uint32_t k = 0; k < 8; k++) {
                assert_int_equal(lilac_layout_apply(&again, k), lilac_layout_apply(&map, k));
            }
        }
    }
    assert_true(refused > 50 && refused < 450);
}

/* By the definition in CuTe's documentation: YYY onto ZZZ. */
static void test_swizzle(void **state) {
    (void)state;
    assert_int_equal(lilac_cute_swizzle(3, 4, 3, 0x380), 0x3f0);
    assert_int_equal(lilac_cute_swizzle(3, 4, 3, 0x70), 0x70);
    assert_int_equal(lilac_cute_swizzle(2, 0, 3, 8 | 1), 8);
    assert_int_equal(lilac_cute_swizzle(2, 0, -3, 1), 9);
    assert_int_equal(lilac_cute_swizzle(2, 0, -3, 9), 1);
    assert_int_equal(lilac_cute_swizzle(0, 3, 3, 0xffff), 0xffff);
    for (uint64_t x = 0; x < 4096; x++) {
        for (int32_t shift = -4; shift <= 4; shift++) {
            if (shift <= -3 || shift >= 3) {
                assert_int_equal(
                    lilac_cute_swizzle(3, 2, shift, lilac_cute_swizzle(3, 2, shift, x)), x);
            }
        }
    }
}

static void expect_reason(const char *text, bool memory, const char *reason) {
    lilac_cute cute;
    lilac_layout layout;
    lilac_reason why = {""};
    assert_true(read_text(&cute, text));
    assert_false(memory ? lilac_cute_memory(&layout, &cute, &why)
                        : lilac_cute_map(&layout, &cute, &why));
    if (strstr(why.text, reason) == NULL) {
        fail_msg("%s: %s", text, why.text);
    }
}

static void test_reasons(void **state) {
    (void)state;
    lilac_cute cute;
    lilac_layout map;
    expect_reason("(3,4):(4,1)", false, "size 3 of mode 0 is not a power of two");
    expect_reason("(4,4):(16,3)", false, "stride 3 is not a power of two: in mode 1, 3 + 6");
    expect_reason("(4,4):(2,1)", false, "segments overlap: 4:2 of mode 0 and 4:1 of mode 1");
    expect_reason("(2,2):(1,1)", false, "segments overlap");
    expect_reason("(8,8):(0,1)", true, "not injective, so it has no inverse: mode 0");
    expect_reason("(8,8):(16,1)", true, "nothing is at offset 8");
    expect_reason("Sw<1,2,1> o (2,4):(8,1)", true, "nothing is at offset 4");
    /* Strides that are no powers of two and still carry nowhere. */
    assert_true(read_text(&cute, "(2,4):(3,4)"));
    assert_true(lilac_cute_map(&map, &cute, NULL));
    expect_map(&cute, &map);
    assert_true(read_text(&cute, "4:5"));
    assert_true(lilac_cute_map(&map, &cute, NULL));
    expect_map(&cute, &map);
}

/* ---- layouts of this library ------------------------------------------------------------- */

static bool cute_of_tensor(lilac_cute *cute, const char *type, lilac_reason *why) {
    lilac_context *context = lilac_context_create();
    lilac_scanner scanner;
    lilac_encoding_tensor tensor;
    scan(&scanner, context, type);
    assert_true(lilac_encoding_read_tensor(&scanner, NULL, &tensor));
    const bool good = lilac_cute_of_layout(cute, &tensor.layout, why);
    lilac_context_destroy(context);
    return good;
}

static void test_of_layouts(void **state) {
    (void)state;
    lilac_cute cute;
    lilac_reason why = {""};
    /* CuTe writes the accumulator of m16n8 so: (thread, value) to the column-major number. */
    assert_true(cute_of_tensor(&cute,
                               "tensor<16x8xf32, #ttg.linear<{register = [[0, 1], [8, 0]], lane = "
                               "[[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [], block = "
                               "[]}>>",
                               &why));
    expect_print(&cute, "((4,8),(2,2)):((32,1),(16,8))");
    /* Copies are strides of 0, blocks a third mode. */
    assert_true(cute_of_tensor(&cute,
                               "tensor<4x2xf32, #ttg.linear<{register = [], lane = [[1, 0], [0, "
                               "0]], warp = [[2, 0]], block = [[0, 1]]}>>",
                               &why));
    expect_print(&cute, "((2,2,2),1,2):((1,0,2),0,4)");

    /* 8 rows of 128 bytes of 16-bit elements, swizzled by 128 bytes. */
    lilac_layout map, memory;
    assert_true(read_text(&cute, "Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)"));
    assert_true(lilac_cute_memory(&memory, &cute, &why));
    assert_true(lilac_cute_of_layout(&cute, &memory, &why));
    expect_print(&cute, "Sw<3,3,3> o 0 o (8,64):(64,1)");

    const uint64_t copies[3] = {1, 0, 2}, blocks[1] = {4}, xors[3] = {1, 3, 7};
    lilac_layout_init(&map);
    assert_true(lilac_layout_add_out(&map, "dim0", 2, NULL));
    assert_true(lilac_layout_add_in(&map, "offset", 3, copies, NULL));
    assert_false(lilac_cute_of_layout(&cute, &map, &why));
    assert_string_equal(why.text,
                        "not injective, so it has no inverse: bit 1 of the offset holds copies");

    lilac_layout_init(&map);
    assert_true(lilac_layout_add_out(&map, "dim0", 3, NULL));
    assert_true(lilac_layout_add_in(&map, "offset", 2, xors, NULL));
    assert_true(lilac_layout_add_in(&map, "block", 1, blocks, NULL));
    assert_false(lilac_cute_of_layout(&cute, &map, &why));
    assert_non_null(strstr(why.text, "this memory has 1 bits of 'block'"));

    lilac_layout_init(&map);
    assert_true(lilac_layout_add_out(&map, "dim0", 3, NULL));
    assert_true(lilac_layout_add_in(&map, "offset", 2, xors, NULL));
    assert_false(lilac_cute_of_layout(&cute, &map, &why));
    assert_non_null(strstr(why.text, "not surjective"));

    lilac_layout_init(&map);
    assert_true(lilac_layout_add_out(&map, "dim0", 3, NULL));
    assert_true(lilac_layout_add_in(&map, "row", 3, xors, NULL));
    assert_false(lilac_cute_of_layout(&cute, &map, &why));
    assert_string_equal(why.text, "a CuTe layout has no input 'row'");

    lilac_layout_init(&map);
    assert_false(lilac_cute_of_map(&cute, &map, &why));
    assert_string_equal(why.text, "a layout of no dimensions has no shape to write");

    const uint64_t many[63] = {0};
    lilac_layout_init(&map);
    assert_true(lilac_layout_add_in(&map, "dim0", 63, many, NULL));
    assert_false(lilac_cute_of_map(&cute, &map, &why));
    assert_string_equal(why.text, "more than 62 bits");
}

/* The atoms that CuTe names for its matrix units are the shared memory of Triton's NVMMA layouts: 8
 * rows of 32, 64 or 128 bytes, whatever the element. Two descriptions that know nothing of each
 * other. */
static void test_atoms(void **state) {
    (void)state;
    for (uint32_t swizzle = 1; swizzle <= 3; swizzle++) {
        for (uint32_t width = 8; width <= 32; width *= 2) {
            const uint32_t row = 128U << swizzle; /* bits */
            char cute_text[128], type[256];
            lilac_cute cute;
            lilac_layout memory;
            lilac_reason why = {""};
            lilac_encoding_memdesc memdesc;
            lilac_context *context = lilac_context_create();
            lilac_scanner scanner;
            snprintf(cute_text, sizeof cute_text,
                     "Sw<%u,4,3> o smem_ptr[%ub](unset) o (_8,_%u):(_%u,_1)", swizzle, width,
                     row / width, row / width);
            snprintf(type, sizeof type,
                     "!ttg.memdesc<8x%uxi%u, #ttg.nvmma_shared<{swizzlingByteWidth = %u, "
                     "transposed = false, elementBitWidth = %u}>, #smem>",
                     row / width, width, row / 8, width);
            assert_true(read_text(&cute, cute_text));
            assert_true(lilac_cute_memory(&memory, &cute, &why));
            scan(&scanner, context, type);
            assert_true(lilac_encoding_read_memdesc(&scanner, NULL, &memdesc));
            assert_true(lilac_layout_equal(&memory, &memdesc.layout));
            lilac_context_destroy(context);
        }
    }
}

static uint64_t padded(uint64_t offset, uint32_t count, const uint64_t *interval,
                       const uint64_t *padding) {
    uint64_t sum = offset;
    for (uint32_t i = 0; i < count; i++) {
        sum += offset / interval[i] * padding[i];
    }
    return sum;
}

/* Padded layouts have the padded offsets everywhere, or are refused and left alone. */
static void test_padding(void **state) {
    (void)state;
    lilac_random random;
    uint32_t good = 0, refused = 0;
    lilac_random_seed(&random, 7);
    for (uint32_t i = 0; i < 3000; i++) {
        lilac_cute cute, pad;
        lilac_reason why = {""};
        uint64_t at[LILAC_CUTE_MAX_RANK] = {0};
        const uint32_t count = 1 + (uint32_t)lilac_random_below(&random, 2);
        const uint64_t interval[2] = {UINT64_C(1) << lilac_random_below(&random, 6),
                                      1 + lilac_random_below(&random, 40)};
        const uint64_t padding[2] = {1 + lilac_random_below(&random, 9),
                                     lilac_random_below(&random, 9)};
        random_cute(&cute, &random);
        pad = cute;
        if (!lilac_cute_pad(&pad, count, interval, padding, &why)) {
            assert_true(cute.swizzle_bits != 0 || strstr(why.text, "no stride says it"));
            assert_memory_equal(&pad, &cute, sizeof cute);
            refused++;
            continue;
        }
        assert_int_equal(cute.swizzle_bits, 0);
        good++;
        do {
            assert_int_equal(lilac_cute_offset(&pad, at),
                             padded(lilac_cute_offset(&cute, at), count, interval, padding));
        } while (next_coordinates(&cute, at));
    }
    assert_true(good > 300 && refused > 300);

    const uint64_t none[1] = {0}, one[1] = {1}, many[1] = {UINT64_C(1) << 62};
    lilac_cute cute;
    lilac_reason why = {""};
    assert_true(read_text(&cute, "(8,8):(8,1)"));
    assert_false(lilac_cute_pad(&cute, 1, none, one, &why));
    assert_string_equal(why.text, "padding every 0 elements");
    assert_false(lilac_cute_pad(&cute, 1, one, many, &why));
    assert_string_equal(why.text, "offsets beyond 2^62");
    assert_true(read_text(&cute, "Sw<1,0,3> o (8,8):(8,1)"));
    assert_false(lilac_cute_pad(&cute, 1, one, one, &why));
    assert_string_equal(why.text, "padding after a swizzle: a CuTe layout swizzles last");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),       cmocka_unit_test(test_refused_texts),
        cmocka_unit_test(test_random),     cmocka_unit_test(test_random_texts),
        cmocka_unit_test(test_exhaustive), cmocka_unit_test(test_swizzle),
        cmocka_unit_test(test_reasons),    cmocka_unit_test(test_of_layouts),
        cmocka_unit_test(test_atoms),      cmocka_unit_test(test_padding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
