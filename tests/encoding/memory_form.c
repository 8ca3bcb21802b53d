/* memory_form: texts read back, linear and CuTe layouts equal the integer definition at every
 * coordinate, injectivity equals a count of addresses, and every refusal. */
#include "support/scanned.h"

#include <lilac/memory_form.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_text(lilac_memory_form *form, const char *text) {
    lilac_context *context = lilac_context_create();
    lilac_scanner scanner;
    scan(&scanner, context, text);
    const bool good = lilac_memory_form_read(&scanner, form) && scanner.kind == LILAC_TOKEN_END;
    if (!good && lilac_diagnostics(context) != NULL) {
        print_message("%s: %s\n", text, lilac_diagnostics(context)->message);
    }
    lilac_context_destroy(context);
    return good;
}

static void expect_normal(const char *text, const char *printed) {
    lilac_memory_form form;
    lilac_text out = {0};
    assert_true(read_text(&form, text));
    lilac_memory_form_print(&out, &form);
    assert_string_equal(lilac_text_get(&out), printed);
    assert_true(read_text(&form, printed));
    lilac_text_reset(&out);
    lilac_memory_form_print(&out, &form);
    assert_string_equal(lilac_text_get(&out), printed);
    lilac_text_clear(&out);
}

static void test_text(void **state) {
    (void)state;
    static const char *const same[] = {
        "row_major(16x32)",
        "column_major(16x32)",
        "order(16x32x4, [1, 0, 2])",
        "strided(16x32, [64, 1])",
        "tiled(1x64x8x8, [0, 1/32, 2, 3, 1%32])",
        "tiled(64, [0/16, 0/4%4, 0%4])",
        "tiled(1x64x8x8, NC/32HW32)",
        "tiled(1x64x8x8, NCHW_VECT_C 32)",
        "tiled(2x4x8x16x32, NDHWC)",
        "tiled(2x64x8, NWC)",
        "padded(16x32, 32:+4)",
        "padded(16x32, [0, 1], 16:+4, 128:+8)",
        "row_major(24x100)",
        "row_major(7)",
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        expect_normal(same[i], same[i]);
    }
    expect_normal("row_major ( 16x 32 )", "row_major(16x32)");
    expect_normal("padded(16x32, [1, 0], 32:+4)", "padded(16x32, 32:+4)");
    expect_normal("tiled(4x8, [0/1%4, 1/1])", "tiled(4x8, [0, 1])");
    expect_normal("tiled(1x64x8x8, NCHW_VECT_C  4)", "tiled(1x64x8x8, NCHW_VECT_C 4)");
}

static void expect_refused(const char *text, const char *id) {
    lilac_context *context = lilac_context_create();
    lilac_scanner scanner;
    lilac_memory_form form;
    scan(&scanner, context, text);
    assert_false(lilac_memory_form_read(&scanner, &form));
    expect_id(context, text, id);
    lilac_context_destroy(context);
}

static void test_refused_texts(void **state) {
    (void)state;
    expect_refused("diagonal(16x32)", "memory-form-unknown");
    expect_refused("(16x32)", "memory-form-unknown");
    expect_refused("row_major()", "syntax");
    expect_refused("row_major(16x)", "syntax");
    expect_refused("row_major(16y32)", "syntax");
    expect_refused("row_major(16x32", "syntax");
    expect_refused("row_major(16x32, [1, 0])", "syntax");
    expect_refused("row_major(16x0)", "bad-dimension");
    expect_refused("row_major(0x16)", "bad-dimension");
    expect_refused("row_major(-1)", "syntax");
    expect_refused("row_major(99999999999999999999)", "memory-form-too-large");
    expect_refused("row_major(4294967296x4294967296)", "memory-form-too-large");
    expect_refused("row_major(1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1)",
                   "memory-form-too-large");
    expect_refused("order(16x32)", "syntax");
    expect_refused("order(16x32, [])", "syntax");
    expect_refused("order(16x32, [0])", "memory-form-order");
    expect_refused("order(16x32, [0, 0])", "memory-form-order");
    expect_refused("order(16x32, [0, 2])", "memory-form-order");
    expect_refused("order(16x32, [0, -1])", "memory-form-order");
    expect_refused("strided(16x32, [1])", "memory-form-strides");
    expect_refused("strided(16x32, [1, 2, 3])", "memory-form-strides");
    expect_refused("strided(16x32, [-1, 2])", "memory-form-strides");
    expect_refused("strided(16x32, [4611686018427387904, 1])", "memory-form-too-large");
    expect_refused("tiled(16x32)", "syntax");
    expect_refused("tiled(16x32, [])", "syntax");
    expect_refused("tiled(16x32, 5)", "syntax");
    expect_refused("tiled(16x32, [0, 1/5])", "memory-form-tile");
    expect_refused("tiled(16x32, [0, 1/0])", "memory-form-tile");
    expect_refused("tiled(16x32, [0, 1%0])", "memory-form-tile");
    expect_refused("tiled(16x32, [0, 1%5])", "memory-form-tile");
    expect_refused("tiled(16x32, [0, 1%x])", "syntax");
    expect_refused("tiled(16x32, [0, 1%99999999999999999999])", "syntax");
    expect_refused("tiled(16x32, [0, 1/8])", "memory-form-tile");    /* a piece is missing */
    expect_refused("tiled(16x32, [0])", "memory-form-tile");         /* and here */
    expect_refused("tiled(16x32, [0, 1, 1%8])", "memory-form-tile"); /* overlap */
    expect_refused("tiled(16x32, [0, 1/8, 1%8, 1%8])", "memory-form-tile");
    expect_refused("tiled(16x32, [0, 2])", "memory-form-tile");
    expect_refused("tiled(16x32, NC)", "memory-form-tile"); /* rank */
    expect_refused("tiled(1x64x8x8, NCHX)", "memory-form-tile");
    expect_refused("tiled(1x64x8x8, NCHW32)", "memory-form-tile"); /* of no split */
    expect_refused("tiled(1x64x8x8, NC/32HW16)", "memory-form-tile");
    expect_refused("tiled(1x64x8x8, NC/32HW)", "memory-form-tile");
    expect_refused("tiled(1x64x8x8, NC/HW)", "memory-form-tile");
    expect_refused("tiled(1x64x8x8, NC/3HW3)", "memory-form-tile");
    expect_refused("tiled(1x64x8x8, N/1C/32HW32)", "memory-form-tile"); /* two splits */
    expect_refused("tiled(1x64x8x8, NCHWC)", "memory-form-tile");
    expect_refused("tiled(1x64x8x8, NCHW_VECT_C)", "memory-form-tile");
    expect_refused("tiled(1x64x8x8, NCHW_VECT_C 3)", "memory-form-tile");
    expect_refused("tiled(1x64x8x8, NCHW_VECT_C 32 4)", "memory-form-tile");
    expect_refused("tiled(64x8x8, NCHW_VECT_C 32)", "memory-form-tile");
    expect_refused("tiled(1x64x8x8, NCHWNCHWNCHWNCHWNCHWNCHWNCHWNCHWNCHW)", "memory-form-tile");
    expect_refused("padded(16x32)", "syntax");
    expect_refused("padded(16x32, 16)", "syntax");
    expect_refused("padded(16x32, 16:4)", "syntax");
    expect_refused("padded(16x32, 24:+4)", "memory-form-padding");
    expect_refused("padded(16x32, 0:+4)", "memory-form-padding");
    expect_refused("padded(16x32, 16:+0)", "memory-form-padding");
    expect_refused("padded(16x32, 16:+-4)", "memory-form-padding");
    expect_refused("padded(16x32, 16:+4, 16:+4)", "memory-form-padding");
    expect_refused("padded(16x32, 16:+9223372036854775807)", "memory-form-too-large");
    expect_refused("padded(16x32, 1:+1, 2:+1, 4:+1, 8:+1, 16:+1, 32:+1, 64:+1, 128:+1, 256:+1)",
                   "memory-form-too-large");
}

/* ---- meaning ---------------------------------------------------------------------------- */

static bool next_coordinates(const lilac_memory_form *form, uint64_t *at) {
    for (uint32_t d = 0; d < form->rank; d++) {
        if (++at[d] < form->shape[d]) {
            return true;
        }
        at[d] = 0;
    }
    return false;
}

static uint64_t elements(const lilac_memory_form *form) {
    uint64_t count = 1;
    for (uint32_t d = 0; d < form->rank; d++) {
        count *= form->shape[d];
    }
    return count;
}

/* By marking every address. */
static bool all_differ(const lilac_memory_form *form) {
    const uint64_t extent = lilac_memory_form_extent(form);
    uint64_t at[LILAC_LAYOUT_MAX_DIMS] = {0};
    uint8_t *seen = calloc(extent, 1);
    bool differ = true;
    uint64_t largest = 0;
    assert_non_null(seen);
    do {
        const uint64_t address = lilac_memory_form_address(form, at);
        assert_true(address < extent);
        differ = differ && !seen[address];
        seen[address] = 1;
        largest = address > largest ? address : largest;
    } while (next_coordinates(form, at));
    assert_int_equal(largest + 1, extent);
    free(seen);
    return differ;
}

/* The offset before padding, by the inverse of counting paddings: from the pieces themselves. */
static uint64_t offset_of(const lilac_memory_form *form, const uint64_t *at) {
    lilac_memory_form plain = *form;
    plain.padding_count = 0;
    return lilac_memory_form_address(&plain, at);
}

static void expect_layout(const lilac_memory_form *form) {
    lilac_layout map, memory;
    lilac_reason why = {""};
    uint64_t at[LILAC_LAYOUT_MAX_DIMS] = {0}, index = 0;
    assert_true(lilac_memory_form_map(&map, form, &why));
    assert_true(lilac_memory_form_layout(&memory, form, &why));
    do {
        const uint64_t offset = offset_of(form, at);
        const uint64_t found = lilac_layout_apply(&memory, offset);
        assert_int_equal(lilac_layout_apply(&map, index++), offset);
        for (uint32_t d = 0; d < form->rank; d++) {
            assert_int_equal(lilac_layout_coordinate(&memory, found, d), at[d]);
        }
    } while (next_coordinates(form, at));
}

static void expect_cute(const lilac_memory_form *form) {
    lilac_cute cute;
    lilac_reason why = {""};
    uint64_t at[LILAC_LAYOUT_MAX_DIMS] = {0};
    assert_true(lilac_memory_form_cute(&cute, form, &why));
    do {
        assert_int_equal(lilac_cute_offset(&cute, at), lilac_memory_form_address(form, at));
    } while (next_coordinates(form, at));
}

static void put_shape(lilac_text *text, const char *kind, const uint64_t *shape, uint32_t rank) {
    lilac_text_reset(text);
    lilac_text_puts(text, kind);
    for (uint32_t d = 0; d < rank; d++) {
        lilac_text_printf(text, "%c%" PRIu64, d == 0 ? '(' : 'x', shape[d]);
    }
}

static void put_random_order(lilac_text *text, uint32_t rank, lilac_random *random) {
    uint32_t order[8];
    for (uint32_t d = 0; d < rank; d++) {
        const uint32_t j = (uint32_t)lilac_random_below(random, d + 1);
        order[d] = order[j];
        order[j] = d;
    }
    for (uint32_t d = 0; d < rank; d++) {
        lilac_text_printf(text, "%s%u", d == 0 ? ", [" : ", ", order[d]);
    }
    lilac_text_char(text, ']');
}

/* Each dimension cut once or twice, the pieces in a random order. */
static void put_random_tiles(lilac_text *text, const uint64_t *shape, uint32_t rank,
                             lilac_random *random) {
    char piece[16][48];
    uint32_t count = 0;
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t bits = (uint32_t)__builtin_ctzll(shape[d]);
        const uint32_t low = (uint32_t)lilac_random_below(random, bits + 1);
        const uint32_t middle = (uint32_t)lilac_random_below(random, bits - low + 1);
        snprintf(piece[count++], 48, "%u%%%u", d, 1U << low);
        snprintf(piece[count++], 48, "%u/%u%%%u", d, 1U << low, 1U << middle);
        snprintf(piece[count++], 48, "%u/%u", d, 1U << (low + middle));
    }
    for (uint32_t i = count; i > 0; i--) {
        const uint32_t j = (uint32_t)lilac_random_below(random, i);
        lilac_text_printf(text, "%s%s", i == count ? ", [" : ", ", piece[j]);
        memcpy(piece[j], piece[i - 1], sizeof piece[j]);
    }
    lilac_text_char(text, ']');
}

static void put_random_paddings(lilac_text *text, lilac_random *random) {
    const uint32_t first = (uint32_t)lilac_random_below(random, 6);
    lilac_text_printf(text, ", %u:+%u", 1U << first, 1 + (uint32_t)lilac_random_below(random, 9));
    if (lilac_random_below(random, 2)) {
        lilac_text_printf(text, ", %u:+%u", 2U << (first + lilac_random_below(random, 3)),
                          1 + (uint32_t)lilac_random_below(random, 9));
    }
}

static void test_random_packed(void **state) {
    (void)state;
    static const char *const kinds[] = {"row_major", "column_major", "order",
                                        "tiled",     "padded",       "padded"};
    lilac_random random;
    lilac_text text = {0};
    lilac_random_seed(&random, 5);
    for (uint32_t i = 0; i < 600; i++) {
        const uint32_t kind = i % 6, rank = 1 + (uint32_t)lilac_random_below(&random, 4);
        uint64_t shape[4];
        lilac_memory_form form;
        for (uint32_t d = 0; d < rank; d++) {
            shape[d] = UINT64_C(1) << lilac_random_below(&random, 4);
        }
        put_shape(&text, kinds[kind], shape, rank);
        if (kind == 2 || kind == 5) {
            put_random_order(&text, rank, &random);
        }
        if (kind == 3) {
            put_random_tiles(&text, shape, rank, &random);
        }
        if (kind >= 4) {
            put_random_paddings(&text, &random);
        }
        lilac_text_char(&text, ')');
        assert_true(read_text(&form, lilac_text_get(&text)));
        assert_true(lilac_memory_form_is_injective(&form, NULL));
        assert_true(all_differ(&form));
        expect_layout(&form);
        expect_cute(&form);
        if (kind < 4) {
            assert_int_equal(lilac_memory_form_extent(&form), elements(&form));
        }
    }
    lilac_text_clear(&text);
}

/* Any sizes and strides: injective exactly when all addresses differ. */
static void test_random_strided(void **state) {
    (void)state;
    lilac_random random;
    lilac_text text = {0};
    uint32_t injective = 0, shared = 0, linear = 0;
    lilac_random_seed(&random, 6);
    for (uint32_t i = 0; i < 2000; i++) {
        const uint32_t rank = 1 + (uint32_t)lilac_random_below(&random, 4);
        uint64_t shape[4];
        lilac_memory_form form;
        lilac_layout map, memory;
        lilac_reason why = {""};
        for (uint32_t d = 0; d < rank; d++) {
            shape[d] = i % 2 ? 1 + lilac_random_below(&random, 6)
                             : UINT64_C(1) << lilac_random_below(&random, 4);
        }
        put_shape(&text, "strided", shape, rank);
        for (uint32_t d = 0; d < rank; d++) {
            lilac_text_printf(&text, "%s%u", d == 0 ? ", [" : ", ",
                              lilac_random_below(&random, 2)
                                  ? (uint32_t)lilac_random_below(&random, 40)
                                  : 1U << lilac_random_below(&random, 9));
        }
        lilac_text_puts(&text, "])");
        assert_true(read_text(&form, lilac_text_get(&text)));
        const bool differ = all_differ(&form);
        assert_true(lilac_memory_form_is_injective(&form, &why) == differ);
        expect_cute(&form);
        if (differ) {
            injective++;
        } else {
            assert_non_null(strstr(why.text, "are both at offset"));
            assert_false(lilac_memory_form_layout(&memory, &form, &why));
            assert_non_null(strstr(why.text, "not injective"));
            shared++;
        }
        if (lilac_memory_form_map(&map, &form, &why)) {
            uint64_t at[LILAC_LAYOUT_MAX_DIMS] = {0}, index = 0;
            linear++;
            do {
                assert_int_equal(lilac_layout_apply(&map, index++),
                                 lilac_memory_form_address(&form, at));
            } while (next_coordinates(&form, at));
            if (lilac_memory_form_layout(&memory, &form, &why)) {
                expect_layout(&form);
            }
        }
    }
    assert_true(injective > 300 && shared > 300 && linear > 100);
    lilac_text_clear(&text);
}

/* Sizes that are no powers of two are CuTe layouts, padded ones too where they can be. */
static void test_other_sizes(void **state) {
    (void)state;
    static const char *const texts[] = {"row_major(3x5x7)",
                                        "order(6x5x2, [1, 0, 2])",
                                        "tiled(6x10, [0/3, 1/5, 0%3, 1%5])",
                                        "tiled(3x64x5x7, NC/32HW32)",
                                        "padded(24x16, 16:+4)",
                                        "padded(3x64, 32:+1)",
                                        "padded(5x3, 16:+7)"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        lilac_memory_form form;
        lilac_layout map;
        lilac_reason why = {""};
        assert_true(read_text(&form, texts[i]));
        assert_true(all_differ(&form));
        expect_cute(&form);
        assert_false(lilac_memory_form_map(&map, &form, &why));
        assert_non_null(strstr(why.text, "is not a power of two"));
        assert_false(lilac_memory_form_layout(&map, &form, &why));
    }
    static const char *const cut[] = {"padded(3x5x2, 8:+1)", "padded(2x15, 16:+1)",
                                      "padded(4x5x3, 16:+2)", "padded(4x24, 16:+2)"};
    for (size_t i = 0; i < sizeof cut / sizeof cut[0]; i++) {
        lilac_memory_form form;
        lilac_cute cute;
        lilac_reason why = {""};
        assert_true(read_text(&form, cut[i]));
        assert_true(all_differ(&form));
        assert_false(lilac_memory_form_cute(&cute, &form, &why));
        assert_non_null(strstr(why.text, "where no stride says it"));
    }
}

/* The definition of NCHW_VECT_C in words: n, the high bits of c, h, w, the low bits of c. */
static void test_vect_c(void **state) {
    (void)state;
    static const char *const same[] = {"tiled(2x64x8x4, NCHW_VECT_C 32)",
                                       "tiled(2x64x8x4, NC/32HW32)",
                                       "tiled(2x64x8x4, [0, 1/32, 2, 3, 1%32])"};
    for (size_t i = 0; i < 3; i++) {
        lilac_memory_form form;
        uint64_t at[LILAC_LAYOUT_MAX_DIMS] = {0};
        assert_true(read_text(&form, same[i]));
        do {
            const uint64_t c = at[1];
            assert_int_equal(lilac_memory_form_address(&form, at),
                             (((at[0] * 2 + c / 32) * 8 + at[2]) * 4 + at[3]) * 32 + c % 32);
        } while (next_coordinates(&form, at));
        expect_layout(&form);
    }
}

static void expect_cute_text(const char *text, const char *printed) {
    lilac_memory_form form;
    lilac_cute cute;
    lilac_text out = {0};
    assert_true(read_text(&form, text));
    assert_true(lilac_memory_form_cute(&cute, &form, NULL));
    lilac_cute_print(&out, &cute);
    assert_string_equal(lilac_text_get(&out), printed);
    lilac_text_clear(&out);
}

static void test_cute(void **state) {
    (void)state;
    expect_cute_text("row_major(16x32)", "(16,32):(32,1)");
    expect_cute_text("column_major(16x32)", "(16,32):(1,16)");
    expect_cute_text("padded(16x32, 32:+4)", "(16,32):(36,1)");
    expect_cute_text("padded(16x32, 16:+4)", "(16,(16,2)):(40,(1,20))");
    expect_cute_text("tiled(8x8, [0/4, 1/2, 0%4, 1%2])", "((4,2),(2,4)):((2,32),(1,8))");
    expect_cute_text("strided(3x5, [7, 0])", "(3,5):(7,0)");
}

static void expect_reason(const char *text, const char *reason) {
    lilac_memory_form form;
    lilac_layout layout;
    lilac_reason why = {""};
    assert_true(read_text(&form, text));
    assert_false(lilac_memory_form_layout(&layout, &form, &why));
    if (strstr(why.text, reason) == NULL) {
        fail_msg("%s: %s", text, why.text);
    }
}

static void test_reasons(void **state) {
    (void)state;
    lilac_memory_form form;
    lilac_reason why = {""};
    expect_reason("row_major(24x32)", "dimension 0 has 24 elements, which is not a power of two");
    expect_reason("strided(16x32, [40, 1])", "stride 40 is not a power of two");
    expect_reason("strided(16x32, [64, 1])", "nothing is at offset 32");
    expect_reason("strided(16x32, [16, 1])",
                  "not injective: [1, 0] and [0, 16] are both at offset 16");
    expect_reason("strided(16x32, [0, 1])",
                  "not injective: [1, 0] and [0, 0] are both at offset 0");
    /* A knapsack that is too hard to decide within a million tries says so. */
    assert_true(read_text(&form, "strided(9x9x9x9x9x9x9x9, [100000000, 100000002, 100000022, "
                                 "100000134, 100001478, 100016256, 100180000, 101970001])"));
    assert_false(lilac_memory_form_is_injective(&form, &why));
    assert_non_null(strstr(why.text, "not known to be injective"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),          cmocka_unit_test(test_refused_texts),
        cmocka_unit_test(test_random_packed), cmocka_unit_test(test_random_strided),
        cmocka_unit_test(test_other_sizes),   cmocka_unit_test(test_vect_c),
        cmocka_unit_test(test_cute),          cmocka_unit_test(test_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
