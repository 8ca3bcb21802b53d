/* layout: worked examples, texts, and every refusal. The laws are in tests/layout/laws.c. */

#include <lilac/layout.h>

#include "support/test.h"

/* Layout A of the paper's Figure 1: 16 × 16, 2 × 2 registers, 4 × 8 lanes, 2 warps. Bits 0-3 are
 * dim0's, 4-7 dim1's. */
static lilac_layout figure_1(void) {
    static const uint64_t registers[] = {0x10, 0x01}, lanes[] = {0x20, 0x40, 0x80, 0x02, 0x04},
                          warps[] = {0x08};
    lilac_layout layout;
    lilac_layout_init(&layout);
    assert_true(lilac_layout_add_out(&layout, "dim0", 4, NULL));
    assert_true(lilac_layout_add_out(&layout, "dim1", 4, NULL));
    assert_true(lilac_layout_add_in(&layout, "register", 2, registers, NULL));
    assert_true(lilac_layout_add_in(&layout, "lane", 5, lanes, NULL));
    assert_true(lilac_layout_add_in(&layout, "warp", 1, warps, NULL));
    return layout;
}

static lilac_layout identity(uint32_t bits, const char *in, const char *out) {
    lilac_layout layout;
    lilac_layout_identity(&layout, bits, in, out);
    return layout;
}

static lilac_layout zeros(uint32_t bits, const char *in, const char *out, uint32_t out_bits) {
    lilac_layout layout;
    lilac_layout_zeros(&layout, bits, in, out, out_bits);
    return layout;
}

static lilac_layout product(const lilac_layout *a, const lilac_layout *b) {
    lilac_layout layout;
    assert_true(lilac_layout_product(&layout, a, b, NULL));
    return layout;
}

static void product_builds_the_papers_example(void **state) {
    (void)state;
    static const struct {
        uint32_t bits;
        const char *in, *out;
    } factors[] = {{1, "register", "dim1"},
                   {1, "register", "dim0"},
                   {3, "lane", "dim1"},
                   {2, "lane", "dim0"},
                   {1, "warp", "dim0"}};
    lilac_layout built, expected = figure_1();
    lilac_layout_init(&built);
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        lilac_layout factor = identity(factors[i].bits, factors[i].in, factors[i].out);
        built = product(&built, &factor);
    }
    assert_true(lilac_layout_equivalent(&built, &expected));
    assert_true(lilac_layout_equivalent(&expected, &built));
    assert_false(lilac_layout_equal(&built, &expected)); /* dim1 comes first in the product */
    lilac_layout_permute_outs(&built, &built, (const uint32_t[]){1, 0});
    assert_true(lilac_layout_equal(&built, &expected));
    assert_true(lilac_layout_hash(&built) == lilac_layout_hash(&expected));
    /* Section 4.1: register 1 of thread 9 of warp 0 is element (2, 3). */
    uint64_t flat = lilac_layout_apply(&built, 1 | 9 << 2 | 0 << 7);
    assert_int_equal(lilac_layout_coordinate(&built, flat, 0), 2);
    assert_int_equal(lilac_layout_coordinate(&built, flat, 1), 3);
    assert_int_equal(lilac_layout_pack(&built, (const uint64_t[]){2, 3}), flat);
}

static void looking(void **state) {
    (void)state;
    lilac_layout layout = figure_1();
    assert_int_equal(lilac_layout_in(&layout, "lane"), 1);
    assert_int_equal(lilac_layout_in(&layout, "block"), -1);
    assert_int_equal(lilac_layout_in(&layout, "a name that is far too long"), -1);
    assert_int_equal(lilac_layout_out(&layout, "dim1"), 1);
    assert_int_equal(lilac_layout_out(&layout, "dim"), -1);
    assert_int_equal(lilac_layout_in_bits(&layout, "lane"), 5);
    assert_int_equal(lilac_layout_in_bits(&layout, "block"), 0);
    assert_int_equal(lilac_layout_out_bits(&layout, "dim1"), 4);
    assert_int_equal(lilac_layout_in_start(&layout, 2), 7);
    assert_int_equal(lilac_layout_out_start(&layout, 1), 4);
    assert_int_equal(lilac_layout_column(&layout, "lane", 3), 2);
    assert_int_equal(lilac_layout_rank(&layout), 8);
    assert_true(lilac_layout_is_injective(&layout) && lilac_layout_is_surjective(&layout));
    assert_true(lilac_layout_is_distributed(&layout));

    layout.columns[0] = 0; /* nothing goes to dim1 = 1 now */
    assert_false(lilac_layout_is_injective(&layout) || lilac_layout_is_surjective(&layout));
    assert_false(lilac_layout_is_distributed(&layout));
    layout.columns[0] = 0x11; /* onto again, but not along one dimension */
    assert_true(lilac_layout_is_surjective(&layout));
    assert_false(lilac_layout_is_distributed(&layout));
    lilac_layout copies = identity(2, "register", "dim0"), lanes = zeros(2, "lane", "dim0", 0);
    copies = product(&copies, &lanes);
    assert_true(lilac_layout_is_distributed(&copies));
    copies.columns[2] = 1; /* a lane holds what a register holds already */
    assert_false(lilac_layout_is_distributed(&copies));
}

static void free_bits_are_zero_or_dependent(void **state) {
    (void)state;
    lilac_layout layout;
    lilac_layout_init(&layout);
    assert_true(lilac_layout_add_out(&layout, "dim0", 3, NULL));
    assert_true(lilac_layout_add_in(&layout, "register", 2, (const uint64_t[]){1, 2}, NULL));
    assert_true(lilac_layout_add_in(&layout, "lane", 4, (const uint64_t[]){0, 3, 4, 5}, NULL));
    assert_true(lilac_layout_add_in(&layout, "warp", 0, NULL, NULL));
    assert_int_equal(lilac_layout_free_bits(&layout, "register"), 0);
    assert_int_equal(lilac_layout_free_bits(&layout, "lane"), 0xB);
    assert_int_equal(lilac_layout_free_bits(&layout, "warp"), 0);
    assert_int_equal(lilac_layout_free_bits(&layout, "block"), 0);
}

static void consecutive_elements(void **state) {
    (void)state;
    static const uint32_t rows_first[] = {0, 1};
    lilac_layout layout = figure_1();
    assert_int_equal(lilac_layout_consecutive(&layout, NULL), 1);
    assert_int_equal(lilac_layout_consecutive(&layout, rows_first), 0);
    /* 4 × 2, all in registers, along dim1 and on into dim0. */
    lilac_layout_init(&layout);
    assert_true(lilac_layout_add_out(&layout, "dim0", 2, NULL));
    assert_true(lilac_layout_add_out(&layout, "dim1", 1, NULL));
    assert_true(lilac_layout_add_in(&layout, "register", 3, (const uint64_t[]){4, 1, 2}, NULL));
    assert_int_equal(lilac_layout_consecutive(&layout, NULL), 3);
    assert_int_equal(lilac_layout_consecutive(&layout, rows_first), 0);
    layout = identity(3, "lane", "dim0");
    assert_int_equal(lilac_layout_consecutive(&layout, NULL), 0);
}

static void inverses_of_copies_take_the_smallest_source(void **state) {
    (void)state;
    lilac_layout layout, inverse;
    lilac_layout_init(&layout);
    assert_true(lilac_layout_add_out(&layout, "dim0", 2, NULL));
    assert_true(lilac_layout_add_in(&layout, "register", 2, (const uint64_t[]){0, 1}, NULL));
    assert_true(lilac_layout_add_in(&layout, "lane", 3, (const uint64_t[]){1, 0, 3}, NULL));
    assert_true(lilac_layout_pseudoinvert(&inverse, &layout, NULL));
    assert_int_equal(inverse.in_count, 1);
    assert_int_equal(inverse.out_count, 2);
    assert_int_equal(inverse.columns[0], 2);      /* register 2 */
    assert_int_equal(inverse.columns[1], 2 | 16); /* register 2 of lane 4 */
}

/* Section 5.4: an input on which both sides agree stays put, even where its columns are copies. */
static void conversion_keeps_what_agrees(void **state) {
    (void)state;
    lilac_layout a, b, c;
    lilac_layout_init(&a);
    assert_true(lilac_layout_add_out(&a, "dim0", 3, NULL));
    b = a;
    assert_true(lilac_layout_add_in(&a, "register", 1, (const uint64_t[]){1}, NULL));
    assert_true(lilac_layout_add_in(&a, "lane", 2, (const uint64_t[]){2, 0}, NULL));
    assert_true(lilac_layout_add_in(&a, "warp", 2, (const uint64_t[]){4, 0}, NULL));
    assert_true(lilac_layout_add_in(&b, "register", 2, (const uint64_t[]){4, 1}, NULL));
    assert_true(lilac_layout_add_in(&b, "lane", 2, (const uint64_t[]){2, 0}, NULL));
    assert_true(lilac_layout_add_in(&b, "warp", 1, (const uint64_t[]){0}, NULL));
    assert_true(lilac_layout_invert_compose(&c, &a, &b, NULL));
    assert_int_equal(c.in_bits, 5);
    assert_int_equal(c.out_bits, 5);
    assert_int_equal(c.columns[0], 2); /* register 1 from register 2 */
    assert_int_equal(c.columns[1], 4); /* lanes stay, */
    assert_int_equal(c.columns[2], 8); /* the copy too */
    assert_int_equal(c.columns[3], 1); /* warp 1 reads register 1 */
    assert_int_equal(c.columns[4], 0); /* the copy in warp 2 reads warp 0's */
    /* The other way round, dim0 renamed on one side only. */
    memcpy(b.out[0].name, "dim9", 4);
    lilac_reason why;
    assert_false(lilac_layout_invert_compose(&c, &a, &b, &why));
    assert_string_equal(why.text, "only one of the layouts has an output 'dim0'");
}

static void shapes(void **state) {
    (void)state;
    static const uint32_t swapped[] = {1, 0}, flat[] = {8}, cube[] = {1, 4, 3};
    lilac_layout layout = figure_1(), result;

    lilac_layout_transpose(&result, &layout, swapped);
    assert_string_equal(result.out[0].name, "dim0");
    assert_int_equal(lilac_layout_column(&result, "register", 0), 0x01);
    assert_int_equal(lilac_layout_column(&result, "warp", 0), 0x80);
    lilac_layout_permute_outs(&result, &layout, swapped);
    assert_string_equal(result.out[0].name, "dim1");
    assert_true(lilac_layout_equivalent(&result, &layout));

    /* Row-major: dim1 is the fastest, so element (r, c) is number 16 r + c. */
    assert_true(lilac_layout_reshape(&result, &layout, 1, flat, NULL));
    assert_int_equal(result.out_count, 1);
    for (uint64_t i = 0; i < 256; i++) {
        uint64_t place = lilac_layout_apply(&layout, i);
        assert_int_equal(lilac_layout_apply(&result, i), 16 * (place & 15) + (place >> 4));
    }
    assert_true(lilac_layout_reshape(&result, &result, 3, cube, NULL));
    assert_string_equal(result.out[2].name, "dim2");
    for (uint64_t i = 0; i < 256; i++) {
        uint64_t place = lilac_layout_apply(&layout, i), to = lilac_layout_apply(&result, i);
        assert_int_equal(lilac_layout_coordinate(&result, to, 0) * 128 +
                             lilac_layout_coordinate(&result, to, 1) * 8 +
                             lilac_layout_coordinate(&result, to, 2),
                         16 * (place & 15) + (place >> 4));
    }

    lilac_layout_expand(&result, &layout, 1);
    assert_int_equal(result.out_count, 3);
    assert_string_equal(result.out[2].name, "dim2");
    assert_int_equal(result.out[1].bits, 0);
    assert_int_equal(result.out[2].bits, 4);
    lilac_layout_slice(&result, &result, 1);
    assert_true(lilac_layout_equal(&result, &layout));

    lilac_layout_slice(&result, &layout, 0);
    assert_int_equal(result.out_count, 1);
    assert_string_equal(result.out[0].name, "dim0");
    assert_int_equal(lilac_layout_in_bits(&result, "register"), 1); /* the copy is gone, */
    assert_int_equal(lilac_layout_in_bits(&result, "lane"), 5);     /* these stay */
    assert_int_equal(lilac_layout_free_bits(&result, "lane"), 0x18);
    assert_int_equal(lilac_layout_free_bits(&result, "warp"), 1);
    lilac_layout_drop_free(&result, &result, "lane");
    assert_int_equal(lilac_layout_in_bits(&result, "lane"), 3);
    assert_int_equal(lilac_layout_in_bits(&result, "warp"), 1);
    lilac_layout_drop_free(&layout, &result, "block");
    assert_true(lilac_layout_equal(&layout, &result));
}

static void sublayouts(void **state) {
    (void)state;
    static const char *const lane_and_warp[] = {"warp", "lane", NULL},
                             *const dim1[] = {"dim1", NULL}, *const none[] = {NULL};
    lilac_layout layout = figure_1(), result;
    assert_true(lilac_layout_sublayout(&result, &layout, lane_and_warp, dim1, NULL));
    assert_int_equal(result.in_count, 2);
    assert_string_equal(result.in[0].name, "lane");
    assert_int_equal(result.out_count, 1);
    assert_int_equal(lilac_layout_column(&result, "lane", 2), 8);
    assert_int_equal(lilac_layout_column(&result, "lane", 3), 0);
    assert_int_equal(lilac_layout_column(&result, "warp", 0), 0);
    assert_true(lilac_layout_sublayout(&result, &layout, NULL, NULL, NULL));
    assert_true(lilac_layout_equal(&result, &layout));
    assert_true(lilac_layout_sublayout(&result, &layout, none, none, NULL));
    assert_int_equal(result.in_count + result.out_count + result.in_bits + result.out_bits, 0);
}

static void texts(void **state) {
    (void)state;
    lilac_layout layout = figure_1(), memory = identity(2, "offset", "dim0"),
                 blocks = zeros(1, "block", "dim0", 0), none;
    lilac_text text = {0};
    lilac_layout_json(&text, &layout);
    assert_string_equal(lilac_text_get(&text),
                        "{\"register\": [[0,1],[1,0]], \"lane\": [[0,2],[0,4],[0,8],[2,0],[4,0]], "
                        "\"warp\": [[8,0]]}");
    lilac_text_reset(&text);
    lilac_layout_print(&text, &layout);
    assert_string_equal(lilac_text_get(&text),
                        "#ttg.linear<{register = [[0, 1], [1, 0]], lane = [[0, 2], [0, 4], [0, 8], "
                        "[2, 0], [4, 0]], warp = [[8, 0]]}>");
    lilac_text_reset(&text);
    memory = product(&memory, &blocks);
    lilac_layout_print(&text, &memory);
    assert_string_equal(lilac_text_get(&text),
                        "#ttg.shared_linear<{offset = [[1], [2]], block = [[0]]}>");
    lilac_text_reset(&text);
    lilac_layout_init(&none);
    lilac_layout_json(&text, &none);
    assert_string_equal(lilac_text_get(&text), "{}");
    lilac_text_clear(&text);
}

static void sixty_four_bits_fit(void **state) {
    (void)state;
    static const uint32_t halves[] = {32, 32};
    lilac_layout layout = identity(64, "offset", "dim0"), inverse, both;
    assert_true(lilac_layout_invert(&inverse, &layout, NULL));
    assert_true(lilac_layout_compose(&both, &layout, &inverse, NULL));
    assert_int_equal(lilac_layout_apply(&both, UINT64_MAX), UINT64_MAX);
    assert_int_equal(lilac_layout_coordinate(&layout, UINT64_MAX, 0), UINT64_MAX);
    assert_true(lilac_layout_reshape(&layout, &layout, 2, halves, NULL));
    assert_int_equal(lilac_layout_column(&layout, "offset", 0), UINT64_C(1) << 32);
    lilac_layout_slice(&layout, &layout, 1);
    assert_int_equal(lilac_layout_column(&layout, "offset", 63), UINT64_C(1) << 31);
    lilac_text text = {0};
    lilac_reason why;
    layout = identity(64, "offset", "dim0");
    layout.columns[63] = 0;
    assert_false(lilac_layout_pseudoinvert(&inverse, &layout, &why));
    assert_string_equal(why.text, "not surjective: nothing goes to dim0=9223372036854775808");
    lilac_text_clear(&text);
}

/* ---- refusals: the result is left alone and the reason says what is wrong ---------------------
 */

static void expect(bool accepted, const lilac_reason *why, const char *reason,
                   const lilac_layout *result, const lilac_layout *before) {
    assert_false(accepted);
    assert_string_equal(why->text, reason);
    assert_true(lilac_layout_equal(result, before));
}

static void building_is_refused(void **state) {
    (void)state;
    lilac_layout layout = figure_1(), before = layout;
    lilac_reason why;
    expect(lilac_layout_add_in(&layout, "lane", 0, NULL, &why), &why, "input 'lane' appears twice",
           &layout, &before);
    expect(lilac_layout_add_in(&layout, "", 0, NULL, &why), &why,
           "an input's name has 1 to 14 characters", &layout, &before);
    expect(lilac_layout_add_in(&layout, "fifteen letters", 0, NULL, &why), &why,
           "an input's name has 1 to 14 characters", &layout, &before);
    expect(lilac_layout_add_in(&layout, "block", 1, (const uint64_t[]){0x100}, &why), &why,
           "block bit 0 goes outside the outputs", &layout, &before);
    static const uint64_t many[64] = {0};
    expect(lilac_layout_add_in(&layout, "block", 57, many, &why), &why,
           "more than 64 input bits with 'block'", &layout, &before);
    expect(lilac_layout_add_in(&layout, "block", UINT32_MAX, many, &why), &why,
           "more than 64 input bits with 'block'", &layout, &before);
    for (char name[] = "a"; layout.in_count < LILAC_LAYOUT_MAX_DIMS; name[0]++) {
        assert_true(lilac_layout_add_in(&layout, name, 0, NULL, NULL));
    }
    before = layout;
    expect(lilac_layout_add_in(&layout, "block", 0, NULL, &why), &why, "more than 24 inputs",
           &layout, &before);

    lilac_layout_init(&layout);
    assert_true(lilac_layout_add_out(&layout, "dim0", 60, NULL));
    before = layout;
    expect(lilac_layout_add_out(&layout, "dim0", 1, &why), &why, "output 'dim0' appears twice",
           &layout, &before);
    expect(lilac_layout_add_out(&layout, "dim1", 5, &why), &why,
           "more than 64 output bits with 'dim1'", &layout, &before);
}

static void algebra_is_refused(void **state) {
    (void)state;
    lilac_layout layout = figure_1(), other = identity(60, "lane", "dim0"), result = layout;
    lilac_reason why;
    expect(lilac_layout_product(&result, &layout, &other, &why), &why,
           "the product has more than 64 input bits", &result, &layout);
    other = zeros(0, "lane", "dim2", 60);
    expect(lilac_layout_product(&result, &layout, &other, &why), &why,
           "the product has more than 64 output bits", &result, &layout);
    lilac_layout_init(&other);
    for (char name[] = "a"; other.in_count < LILAC_LAYOUT_MAX_DIMS; name[0]++) {
        assert_true(lilac_layout_add_in(&other, name, 0, NULL, NULL));
    }
    expect(lilac_layout_product(&result, &layout, &other, &why), &why,
           "the product has more than 24 inputs", &result, &layout);

    other = identity(4, "dim0", "offset");
    expect(lilac_layout_compose(&result, &other, &layout, &why), &why,
           "the inner layout has 2 outputs and the outer 1 inputs", &result, &layout);
    lilac_layout more = identity(4, "dim2", "offset");
    more = product(&other, &more);
    expect(lilac_layout_compose(&result, &more, &layout, &why), &why,
           "output 'dim1' of the inner layout is no input of the outer", &result, &layout);
    more = identity(3, "dim1", "offset");
    more = product(&other, &more);
    expect(lilac_layout_compose(&result, &more, &layout, &why), &why,
           "'dim1' has 4 bits in the inner layout and 3 in the outer", &result, &layout);

    other = layout;
    other.columns[5] = 0x20; /* lane bit 3 as lane bit 0; nothing goes to dim0 = 2 */
    expect(lilac_layout_invert(&result, &other, &why), &why,
           "not injective: lane bit 3 goes where lower bits go already", &result, &layout);
    expect(lilac_layout_pseudoinvert(&result, &other, &why), &why,
           "not surjective: nothing goes to dim0=2", &result, &layout);
    expect(lilac_layout_invert_compose(&result, &layout, &other, &why), &why,
           "not surjective: nothing goes to dim0=2", &result, &layout);
    other = zeros(0, "register", "dim0", 1);
    expect(lilac_layout_invert(&result, &other, &why), &why,
           "not surjective: nothing goes to dim0=1", &result, &layout);
    expect(lilac_layout_invert_compose(&result, &layout, &other, &why), &why,
           "the layouts have 2 and 1 outputs", &result, &layout);
    lilac_layout wide = zeros(0, "warp", "dim1", 5);
    other = identity(4, "register", "dim0");
    other = product(&other, &wide);
    expect(lilac_layout_invert_compose(&result, &layout, &other, &why), &why,
           "output 'dim1' has 4 bits here and 5 there", &result, &layout);

    static const char *const block[] = {"block", NULL}, *const dim2[] = {"dim2", NULL};
    expect(lilac_layout_sublayout(&result, &layout, block, NULL, &why), &why,
           "there is no input 'block'", &result, &layout);
    expect(lilac_layout_sublayout(&result, &layout, NULL, dim2, &why), &why,
           "there is no output 'dim2'", &result, &layout);
    static const uint32_t bits[25] = {8}, large[2] = {UINT32_MAX, 9}, few[2] = {3, 4};
    expect(lilac_layout_reshape(&result, &layout, 25, bits, &why), &why, "more than 24 outputs",
           &result, &layout);
    expect(lilac_layout_reshape(&result, &layout, 2, large, &why), &why, "more than 64 output bits",
           &result, &layout);
    expect(lilac_layout_reshape(&result, &layout, 2, few, &why), &why,
           "a tensor of 2^8 elements cannot have a shape of 2^7", &result, &layout);
    /* No reason asked for is fine. */
    assert_false(lilac_layout_reshape(&result, &layout, 2, few, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(product_builds_the_papers_example),
        cmocka_unit_test(looking),
        cmocka_unit_test(free_bits_are_zero_or_dependent),
        cmocka_unit_test(consecutive_elements),
        cmocka_unit_test(inverses_of_copies_take_the_smallest_source),
        cmocka_unit_test(conversion_keeps_what_agrees),
        cmocka_unit_test(shapes),
        cmocka_unit_test(sublayouts),
        cmocka_unit_test(texts),
        cmocka_unit_test(sixty_four_bits_fit),
        cmocka_unit_test(building_is_refused),
        cmocka_unit_test(algebra_is_refused),
    };
    return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
