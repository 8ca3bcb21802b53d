/* layout: worked examples of construction, division, fitting and cutting, and every refusal of
 * these operations. The laws are in tests/layout/divide_laws.c and tests/layout/shape_laws.c. */

#include <lilac/layout.h>

#include "support/test.h"

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

static lilac_layout product(lilac_layout a, lilac_layout b) {
    lilac_layout layout;
    assert_true(lilac_layout_product(&layout, &a, &b, NULL));
    return layout;
}

/* ---- building --------------------------------------------------------------------------- */

/* The four cases of the product: names of inputs and outputs shared or not, the first lowest. */
static void products_of_shared_and_other_names(void **state) {
    (void)state;
    lilac_layout layout = product(identity(1, "i1", "o1"), identity(2, "i2", "o2"));
    assert_int_equal(layout.in_count, 2);
    assert_int_equal(layout.out_count, 2);
    assert_int_equal(lilac_layout_apply(&layout, 5), 5);
    layout = product(identity(2, "i", "o1"), identity(3, "i", "o2")); /* x mod 4, x / 4 */
    assert_int_equal(layout.in_count, 1);
    assert_int_equal(layout.out_count, 2);
    for (uint64_t x = 0; x < 32; x++) {
        uint64_t place = lilac_layout_apply(&layout, x);
        assert_int_equal(lilac_layout_coordinate(&layout, place, 0), x % 4);
        assert_int_equal(lilac_layout_coordinate(&layout, place, 1), x / 4);
    }
    layout = product(identity(2, "i1", "o"), identity(1, "i2", "o"));
    assert_int_equal(layout.in_count, 2);
    assert_int_equal(layout.out_count, 1);
    assert_int_equal(lilac_layout_column(&layout, "i2", 0), 4);
    layout = product(zeros(2, "i", "o", 0), identity(1, "i", "o")); /* x / 4 */
    for (uint64_t x = 0; x < 8; x++) {
        assert_int_equal(lilac_layout_apply(&layout, x), x / 4);
    }
    layout = product(identity(2, "i", "o"), zeros(1, "i", "o", 0)); /* x mod 4 */
    for (uint64_t x = 0; x < 8; x++) {
        assert_int_equal(lilac_layout_apply(&layout, x), x % 4);
    }
}

/* o0 = b2 ⊕ b0, o1 = b1 ⊕ b0, o2 = b2 ⊕ b1 ⊕ b0 (seed 002's example), and its swizzle of a
 * 32 × 32 matrix: bank = row ⊕ column. */
static void masks(void **state) {
    (void)state;
    static const lilac_layout_dim b[] = {{"b", 3}}, o[] = {{"o", 3}};
    static const lilac_layout_dim places[] = {{"c", 5}, {"r", 5}},
                                  memory[] = {{"bank", 5}, {"row", 5}};
    lilac_layout layout;
    assert_true(lilac_layout_from_masks(&layout, 1, b, 1, o, (const uint64_t[]){5, 3, 7}, NULL));
    assert_int_equal(layout.columns[0], 7);
    assert_int_equal(layout.columns[1], 6);
    assert_int_equal(layout.columns[2], 5);
    uint64_t rows[10];
    for (uint32_t i = 0; i < 5; i++) {
        rows[i] = UINT64_C(0x21) << i;
        rows[5 + i] = UINT64_C(0x20) << i;
    }
    assert_true(lilac_layout_from_masks(&layout, 2, places, 2, memory, rows, NULL));
    for (uint64_t r = 0; r < 32; r++) {
        for (uint64_t c = 0; c < 32; c++) {
            uint64_t place = lilac_layout_apply(&layout, c | r << 5);
            assert_int_equal(lilac_layout_coordinate(&layout, place, 0), r ^ c);
            assert_int_equal(lilac_layout_coordinate(&layout, place, 1), r);
        }
    }
    assert_true(lilac_layout_is_memory(&layout));
}

/* Seed 001: sizes of outputs are the next powers of two. */
static void bases(void **state) {
    (void)state;
    static const lilac_layout_dim in[] = {{"in1", 3}};
    static const lilac_layout_dim out[] = {{"out1", LILAC_LAYOUT_INFER},
                                           {"out2", LILAC_LAYOUT_INFER}};
    static const uint64_t coordinates[] = {1, 0, 5, 1, 2, 2};
    lilac_layout layout;
    assert_true(lilac_layout_from_bases(&layout, 1, in, 2, out, coordinates, NULL));
    assert_int_equal(layout.out[0].bits, 3);
    assert_int_equal(layout.out[1].bits, 2);
    assert_int_equal(lilac_layout_column(&layout, "in1", 1), 5 | 1 << 3);
    assert_int_equal(lilac_layout_column(&layout, "in1", 2), 2 | 2 << 3);
    assert_true(lilac_layout_from_bases(&layout, 0, NULL, 0, NULL, NULL, NULL));
    assert_int_equal(layout.in_count + layout.out_count, 0);
    /* As many dimensions as there may be. */
    lilac_layout_dim dims[24];
    memset(dims, 0, sizeof dims);
    for (uint32_t i = 0; i < 24; i++) {
        dims[i].name[0] = (char)('a' + i);
    }
    assert_true(lilac_layout_from_bases(&layout, 24, dims, 24, dims, NULL, NULL));
    assert_int_equal(layout.in_count + layout.out_count, 48);
    assert_true(lilac_layout_from_masks(&layout, 24, dims, 24, dims, NULL, NULL));
    assert_true(lilac_layout_reshape_ins(&layout, &layout, 24, dims, NULL));
}

/* ---- division --------------------------------------------------------------------------- */

/* An accumulator of mma: each thread 2 neighbours of a row, 4 threads a row, 8 rows, then 8 rows
 * more. Its first 8 × 8 are ldmatrix's tile (section 5.3): 2 registers × 4 lanes of 16 bits. */
static lilac_layout accumulator(void) {
    static const lilac_layout_dim ins[] = {{"register", 2}, {"lane", 5}};
    static const lilac_layout_dim outs[] = {{"dim0", 4}, {"dim1", 3}};
    static const uint64_t coordinates[] = {0, 1, 8, 0, 0, 2, 0, 4, 1, 0, 2, 0, 4, 0};
    lilac_layout layout;
    assert_true(lilac_layout_from_bases(&layout, 2, ins, 2, outs, coordinates, NULL));
    return layout;
}

static void a_matrix_instruction_divides_its_layout(void **state) {
    (void)state;
    lilac_layout layout = accumulator(), quotient;
    lilac_layout tile = product(identity(1, "register", "dim1"), identity(2, "lane", "dim1"));
    assert_true(lilac_layout_divide_left(&quotient, &layout, &tile, NULL));
    assert_int_equal(lilac_layout_in_bits(&quotient, "register"), 1);
    assert_int_equal(lilac_layout_in_bits(&quotient, "lane"), 3);
    assert_int_equal(lilac_layout_out_bits(&quotient, "dim0"), 4);
    assert_int_equal(lilac_layout_out_bits(&quotient, "dim1"), 0);
    assert_int_equal(lilac_layout_column(&quotient, "register", 0), 8);
    assert_int_equal(lilac_layout_column(&quotient, "lane", 2), 4);
    lilac_layout rows = identity(1, "register", "dim0");
    assert_true(lilac_layout_divide_right(&quotient, &layout, &rows, NULL));
    assert_int_equal(lilac_layout_column(&quotient, "lane", 4), 4);
    assert_int_equal(quotient.out_bits, 6);

    /* Column-major: registers in the other order, which an order of them undoes. */
    uint8_t order[2];
    lilac_layout_permute_bits(&layout, &layout, "register", (const uint8_t[]){1, 0});
    assert_false(lilac_layout_divide_left(&quotient, &layout, &tile, NULL));
    assert_true(lilac_layout_division_order(order, &layout, &tile, "register", false, NULL));
    assert_int_equal(order[0], 1);
    assert_int_equal(order[1], 0);
    uint8_t at[3];
    assert_true(lilac_layout_divide(&quotient, &layout, &tile, NULL, at, NULL));
    assert_int_equal(at[0], 1);
    assert_int_equal(at[1], 2);
    assert_int_equal(at[2], 3);

    /* The same tile on rows 8 and up: the mask says where. */
    lilac_layout half = identity(1, "register", "dim0");
    assert_true(lilac_layout_divide(&quotient, &layout, &half, (const uint64_t[]){8}, at, NULL));
    assert_int_equal(at[0], 0);
    assert_int_equal(lilac_layout_out_bits(&quotient, "dim0"), 3);
    assert_int_equal(lilac_layout_column(&quotient, "lane", 4), 4);
}

/* ---- looking ---------------------------------------------------------------------------- */

/* Section 5.1: a tensor of 128 × 1 has runs along dim0, and runs go on across dimensions; a run
 * that comes in another order on some lane is none. */
static void runs_across_dimensions(void **state) {
    (void)state;
    static const lilac_layout_dim ins[] = {{"register", 2}, {"lane", 5}};
    static const lilac_layout_dim outs[] = {{"dim0", 7}, {"dim1", 0}};
    uint64_t coordinates[14] = {0};
    for (uint32_t i = 0; i < 7; i++) {
        coordinates[2 * i] = UINT64_C(1) << i;
    }
    lilac_layout layout;
    assert_true(lilac_layout_from_bases(&layout, 2, ins, 2, outs, coordinates, NULL));
    assert_int_equal(lilac_layout_consecutive(&layout, NULL), 2);
    assert_int_equal(lilac_layout_consecutive_in(&layout, "lane", NULL), 0);
    assert_int_equal(lilac_layout_consecutive_in(&layout, "warp", NULL), 0);
    layout.columns[4] |= 1; /* lane 4 holds its pairs the other way round */
    assert_int_equal(lilac_layout_consecutive(&layout, NULL), 0);
    layout.columns[4] ^= 3;
    assert_int_equal(lilac_layout_consecutive(&layout, NULL), 1);
    lilac_layout memory = product(identity(3, "offset", "dim1"), identity(2, "offset", "dim0"));
    lilac_layout_permute_outs(&memory, &memory, (const uint32_t[]){1, 0});
    assert_int_equal(lilac_layout_consecutive_in(&memory, "offset", NULL), 5);
    assert_int_equal(lilac_layout_consecutive_in(&memory, "offset", (const uint32_t[]){0, 1}), 0);
}

/* Offsets of registers 1 and 2 may be added to a thread's address; register 4 shares a bit with a
 * lane, and takes register 8 along. */
static void additive_registers(void **state) {
    (void)state;
    static const lilac_layout_dim ins[] = {{"register", 4}, {"lane", 2}}, outs[] = {{"offset", 6}};
    static const uint64_t columns[] = {1, 2, 4 | 16, 16 | 32, 4, 8};
    lilac_layout layout;
    assert_true(lilac_layout_from_bases(&layout, 2, ins, 1, outs, columns, NULL));
    assert_int_equal(lilac_layout_additive_bits(&layout, "register", 0), 3);
    assert_int_equal(lilac_layout_additive_bits(&layout, "register", 2), 1);
    assert_int_equal(lilac_layout_additive_bits(&layout, "lane", 0), 2);
    assert_int_equal(lilac_layout_additive_bits(&layout, "warp", 0), 0);
    assert_int_equal(lilac_layout_free_mask(&layout), 0);
}

/* The tile's own registers need not come first in it, nor need it have any. */
static void orders_of_other_tiles(void **state) {
    (void)state;
    lilac_layout layout = accumulator(), permuted;
    lilac_layout lanes = identity(2, "lane", "dim1"), both, quotient;
    uint8_t order[2] = {7, 7};
    /* Not divisible on the left by the lanes alone: they stand above a register. */
    assert_false(lilac_layout_division_order(order, &layout, &lanes, "register", false, NULL));
    lanes = product(zeros(0, "register", "dim1", 1), identity(2, "lane", "dim1"));
    assert_false(lilac_layout_division_order(order, &layout, &lanes, "register", false, NULL));
    both = product(lanes, identity(1, "register", "dim0"));
    assert_false(lilac_layout_division_order(order, &layout, &both, "register", false, NULL));
    /* lanes first, then the register */
    lilac_layout_permute_bits(&layout, &layout, "register", (const uint8_t[]){1, 0});
    lilac_layout tile = product(identity(1, "register", "dim1"), identity(2, "lane", "dim1"));
    lilac_layout_permute_ins(&tile, &tile, (const uint32_t[]){1, 0});
    assert_true(lilac_layout_division_order(order, &layout, &tile, "register", false, NULL));
    assert_int_equal(order[0], 1);
    assert_int_equal(order[1], 0);
    lanes = product(identity(3, "lane", "dim0"), identity(2, "warp", "dim0"));
    layout = product(lanes, identity(2, "register", "dim1"));
    tile = identity(2, "lane", "dim0");
    assert_true(lilac_layout_division_order(order, &layout, &tile, "register", false, NULL));
    assert_int_equal(order[0], 0);
    assert_int_equal(order[1], 1);
    assert_true(lilac_layout_divide_left(&quotient, &layout, &tile, NULL));
    /* No such input: nothing to put in order. */
    lilac_layout_permute_bits(&permuted, &layout, "offset", NULL);
    assert_true(lilac_layout_equal(&permuted, &layout));
}

/* A range of many runs, from the middle on. */
static void long_ranges(void **state) {
    (void)state;
    static const uint32_t bits[] = {11, 10};
    static uint32_t narrow[1 << 20];
    static uint64_t wide[1 << 20];
    lilac_layout layout;
    assert_true(lilac_layout_standard(&layout, "offset", 2, bits, (const uint32_t[]){0, 1}, NULL));
    for (uint32_t i = 5; i < 21; i++) {
        layout.columns[i] ^= layout.columns[i - 5];
    }
    const uint64_t first = (1 << 20) - 7;
    assert_true(lilac_layout_apply_range32(narrow, &layout, first, 1 << 20, NULL));
    assert_true(lilac_layout_apply_range(wide, &layout, first, 1 << 20, NULL));
    for (uint64_t i = 0; i < 1 << 20; i += 61) {
        assert_true(wide[i] == lilac_layout_apply(&layout, first + i));
        assert_true(narrow[i] == wide[i]);
    }
}

/* ---- fitting ---------------------------------------------------------------------------- */

/* Seed 001: a layout of 4 × 4 threads on a tensor of 2 × 8, thread 4 i + j at (i, j): element
 * (i, k) is on threads 4 i + k mod 4 and 8 more. */
static void threads_wrap_around_a_tensor(void **state) {
    (void)state;
    static const uint32_t square[] = {2, 2}, wide[] = {1, 3};
    lilac_layout layout, fitted;
    assert_true(lilac_layout_standard(&layout, "lane", 2, square, NULL, NULL));
    layout = product(zeros(0, "register", "dim0", 0), layout);
    assert_true(lilac_layout_fit(&fitted, &layout, wide, NULL, "register", NULL));
    assert_int_equal(lilac_layout_in_bits(&fitted, "register"), 1);
    assert_int_equal(lilac_layout_free_bits(&fitted, "lane"), 8);
    for (uint64_t lane = 0; lane < 16; lane++) {
        for (uint64_t copy = 0; copy < 2; copy++) {
            uint64_t place = lilac_layout_apply(&fitted, copy | lane << 1);
            assert_int_equal(lilac_layout_coordinate(&fitted, place, 0), lane / 4 % 2);
            assert_int_equal(lilac_layout_coordinate(&fitted, place, 1), lane % 4 + 4 * copy);
        }
    }
}

static void sixty_four_bits_are_cut_and_applied(void **state) {
    (void)state;
    static const lilac_layout_dim halves[] = {{"a", 32}, {"b", 32}}, out[] = {{"o", 64}};
    lilac_layout layout = identity(64, "offset", "dim0"), cut, none;
    uint64_t places[3], columns[64];
    uint32_t narrow[3];
    assert_true(lilac_layout_reshape_ins(&cut, &layout, 2, halves, NULL));
    assert_true(lilac_layout_reshape_outs(&cut, &cut, 2, halves, NULL));
    assert_true(lilac_layout_apply_range(places, &cut, UINT64_MAX - 2, 3, NULL));
    assert_true(places[0] == UINT64_MAX - 2 && places[2] == UINT64_MAX);
    assert_true(lilac_layout_coordinates32(narrow, &cut, 1, UINT64_MAX - 2, 3, NULL));
    assert_true(narrow[0] == UINT32_MAX && narrow[2] == UINT32_MAX);
    assert_true(lilac_layout_apply_each(places, &cut, places, 3, NULL));
    assert_true(places[0] == UINT64_MAX - 2 && places[2] == UINT64_MAX);
    lilac_layout_masks(columns, &cut);
    assert_true(columns[63] == UINT64_C(1) << 63);
    assert_true(lilac_layout_divide_left(&none, &cut, &cut, NULL));
    assert_int_equal(none.in_bits + none.out_bits, 0);
    assert_true(lilac_layout_divide_right(&none, &layout, &layout, NULL));
    assert_int_equal(none.in_bits + none.out_bits, 0);
    assert_true(lilac_layout_is_memory(&layout));
    assert_true(lilac_layout_is_identity_over(&cut, (const char *const[]){"a", "b", NULL}));
    assert_true(lilac_layout_quotient(&none, &cut, (const char *const[]){"a", NULL}, NULL));
    assert_true(none.columns[31] == UINT64_C(1) << 31);
    assert_true(lilac_layout_resize_out(&none, &layout, "dim0", 0, NULL));
    assert_int_equal(none.columns[63], 0);
    assert_true(lilac_layout_resize_in(&none, &layout, "offset", 0, NULL));
    assert_int_equal(none.in_bits, 0);
    assert_true(lilac_layout_apply_range(places, &none, 0, 1, NULL));
    assert_int_equal(places[0], 0);
    for (uint32_t i = 0; i < 64; i++) {
        columns[i] = UINT64_C(1) << i;
    }
    assert_true(lilac_layout_from_bases(&none, 2, halves, 1, out, columns, NULL));
    assert_true(lilac_layout_apply(&none, UINT64_MAX) == UINT64_MAX);
    assert_true(lilac_layout_strided(&none, 1, UINT64_C(1) << 63, "i", "o", NULL));
    assert_true(none.columns[0] == UINT64_C(1) << 63);
}

/* ---- refusals: the result is left alone and the reason says what is wrong ---------------------
 */

static lilac_layout result, before;
static lilac_reason why;

static void refused(bool accepted, const char *reason) {
    assert_false(accepted);
    assert_string_equal(why.text, reason);
    assert_true(lilac_layout_equal(&result, &before));
}

static void building_is_refused(void **state) {
    (void)state;
    result = before = identity(3, "lane", "dim0");
    refused(lilac_layout_strided(&result, 2, 3, "lane", "dim0", &why),
            "stride 3 is not a power of two");
    refused(lilac_layout_strided(&result, 2, 0, "lane", "dim0", &why),
            "stride 0 is not a power of two");
    refused(lilac_layout_strided(&result, 62, 8, "lane", "dim0", &why),
            "2^62 times stride 8 is more than 2^64");
    refused(lilac_layout_strided(&result, UINT32_MAX, 1, "lane", "dim0", &why),
            "2^4294967295 times stride 1 is more than 2^64");
    refused(lilac_layout_strided(&result, 2, 2, "", "dim0", &why),
            "an input's name has 1 to 14 characters");
    refused(lilac_layout_strided(&result, 2, 2, "lane", "a name far too long", &why),
            "an output's name has 1 to 14 characters");

    static const uint32_t bits[25] = {40, 40};
    refused(lilac_layout_standard(&result, "lane", 25, bits, NULL, &why), "more than 24 outputs");
    refused(lilac_layout_standard(&result, "lane", 2, bits, NULL, &why),
            "more than 64 output bits with 'dim1'");
    refused(lilac_layout_standard(&result, "lane", 2, bits, (const uint32_t[]){0, 2}, &why),
            "the order names dimension 2 of 2");
    refused(lilac_layout_standard(&result, "lane", 2, bits, (const uint32_t[]){1, 1}, &why),
            "the order names dimension 1 twice");
    refused(lilac_layout_standard(&result, "", 1, bits, NULL, &why),
            "an input's name has 1 to 14 characters");

    static const lilac_layout_dim many[25] = {{"a", 33}, {"b", 32}}, one[] = {{"dim0", 2}},
                                  twice[] = {{"a", 1}, {"a", 1}}, unnamed[] = {{"", 1}};
    static const lilac_layout_dim full[] = {
        {{'f', 'i', 'f', 't', 'e', 'e', 'n', ' ', 'l', 'e', 't', 't', 'e', 'r', 's'}, 1}};
    static const uint64_t words[64] = {1, 4};
    refused(lilac_layout_from_bases(&result, 25, many, 1, one, words, &why), "more than 24 inputs");
    refused(lilac_layout_from_bases(&result, 2, many, 1, one, words, &why),
            "more than 64 input bits");
    refused(lilac_layout_from_bases(&result, 1, one, 25, many, words, &why),
            "more than 24 outputs");
    refused(lilac_layout_from_bases(&result, 1, one, 1, one, words, &why),
            "basis 1 goes to dim0=4, outside its 2^2");
    refused(lilac_layout_from_bases(&result, 2, twice, 1, many, words, &why),
            "input 'a' appears twice");
    refused(lilac_layout_from_bases(&result, 0, NULL, 2, twice, words, &why),
            "output 'a' appears twice");
    refused(lilac_layout_from_bases(&result, 0, NULL, 2, many, words, &why),
            "more than 64 output bits with 'b'");
    refused(lilac_layout_from_bases(&result, 1, unnamed, 1, one, words, &why),
            "an input's name has 1 to 14 characters");
    refused(lilac_layout_from_bases(&result, 1, full, 1, one, words, &why),
            "an input's name has 1 to 14 characters");

    refused(lilac_layout_from_masks(&result, 25, many, 1, one, words, &why), "more than 24 inputs");
    refused(lilac_layout_from_masks(&result, 2, many, 1, one, words, &why),
            "more than 64 input bits");
    refused(lilac_layout_from_masks(&result, 1, one, 25, many, words, &why),
            "more than 24 outputs");
    refused(lilac_layout_from_masks(&result, 1, one, 2, many, words, &why),
            "more than 64 output bits");
    refused(lilac_layout_from_masks(&result, 1, one, 1, one, words, &why),
            "mask 1 goes outside the 2 input bits");
    refused(lilac_layout_from_masks(&result, 1, one, 1, one, words + 1, &why),
            "mask 0 goes outside the 2 input bits");
    refused(lilac_layout_from_masks(&result, 1, one, 1, full, words, &why),
            "an output's name has 1 to 14 characters");
    refused(lilac_layout_from_masks(&result, 2, twice, 1, one, (const uint64_t[]){1, 2}, &why),
            "input 'a' appears twice");
}

static void division_is_refused(void **state) {
    (void)state;
    lilac_layout layout = accumulator(), tile = identity(1, "warp", "dim0");
    result = before = layout;
    refused(lilac_layout_divide_left(&result, &layout, &tile, &why),
            "the layout has no input 'warp', which the tile has");
    tile = identity(1, "lane", "dim2");
    refused(lilac_layout_divide_left(&result, &layout, &tile, &why),
            "the layout has no output 'dim2', which the tile has");
    tile = identity(3, "register", "dim0");
    refused(lilac_layout_divide_right(&result, &layout, &tile, &why),
            "input 'register' has 2 bits here and 3 in the tile");
    tile = zeros(2, "register", "dim1", 4);
    refused(lilac_layout_divide_right(&result, &layout, &tile, &why),
            "output 'dim1' has 3 bits here and 4 in the tile");
    tile = identity(2, "register", "dim1");
    refused(lilac_layout_divide_left(&result, &layout, &tile, &why),
            "register bit 1 goes to dim0=8 here and to dim1=2 in the tile");
    refused(lilac_layout_divide_right(&result, &layout, &tile, &why),
            "register bit 0 goes to dim1=1 here and to dim1=2 in the tile");
    tile = zeros(1, "register", "dim0", 0);
    refused(lilac_layout_divide_left(&result, &layout, &tile, &why),
            "register bit 0 goes to dim1=1 here and to nothing in the tile");
    tile = product(identity(1, "register", "dim1"), zeros(0, "lane", "dim1", 1));
    refused(lilac_layout_divide_left(&result, &layout, &tile, &why),
            "lane bit 0 goes to dim1=2, which the tile covers");

    tile = identity(2, "register", "dim1");
    refused(lilac_layout_divide(&result, &layout, &tile, NULL, NULL, &why),
            "no other register bit goes to dim1=2, as bit 1 of the tile does");
    tile = identity(1, "register", "dim0");
    refused(lilac_layout_divide(&result, &layout, &tile, NULL, NULL, &why),
            "no register bit goes to dim0=1, as bit 0 of the tile does");
    refused(lilac_layout_divide(&result, &layout, &tile, (const uint64_t[]){16}, NULL, &why),
            "the tile's place goes outside the 4 bits of 'dim0'");
    refused(lilac_layout_divide(&result, &layout, &tile, (const uint64_t[]){9}, NULL, &why),
            "the tile has 1 bits along 'dim0' and 2 places");
    tile = product(tile, zeros(0, "lane", "dim2", 0)); /* an output of size one is no matter */
    refused(lilac_layout_divide(&result, &layout, &tile, (const uint64_t[]){1, 1}, NULL, &why),
            "the tile's place goes outside the 0 bits of 'dim2'");
}

static void division_orders_are_refused(void **state) {
    (void)state;
    lilac_layout layout = accumulator(), tile = identity(2, "register", "dim1");
    uint8_t order[2] = {7, 7};
    assert_false(lilac_layout_division_order(order, &layout, &tile, "register", false, &why));
    assert_string_equal(why.text,
                        "no other register bit goes to dim1=2, as bit 1 of the tile does");
    assert_false(lilac_layout_division_order(order, &layout, &tile, "warp", false, &why));
    assert_string_equal(why.text, "there is no input 'warp'");
    tile = identity(1, "lane", "dim0");
    assert_false(lilac_layout_division_order(order, &layout, &tile, "register", false, &why));
    assert_string_equal(why.text, "lane bit 0 goes to dim1=2 here and to dim0=1 in the tile");
    tile = identity(3, "register", "dim1");
    assert_false(lilac_layout_division_order(order, &layout, &tile, "register", true, &why));
    assert_string_equal(why.text, "input 'register' has 2 bits here and 3 in the tile");
    assert_int_equal(order[0], 7); /* nothing was written */
    assert_int_equal(order[1], 7);
}

static void names_and_sizes_are_refused(void **state) {
    (void)state;
    lilac_layout layout = accumulator(), other;
    result = before = layout;
#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})
    refused(lilac_layout_order_ins(&result, &layout, NAMES("lane", "warp"), &why),
            "there is no input 'warp'");
    refused(lilac_layout_order_ins(&result, &layout, NAMES("lane", "lane"), &why),
            "input 'lane' is named twice");
    refused(lilac_layout_order_ins(&result, &layout, NAMES("lane"), &why),
            "input 'register' is missing from the order");
    refused(lilac_layout_order_outs(&result, &layout, NAMES("dim1", "dim2"), &why),
            "there is no output 'dim2'");
    refused(lilac_layout_order_outs(&result, &layout, NAMES("dim1", "dim1"), &why),
            "output 'dim1' is named twice");
    refused(lilac_layout_order_outs(&result, &layout, NAMES("dim1"), &why),
            "output 'dim0' is missing from the order");

    refused(lilac_layout_rename_in(&result, &layout, "warp", "w", &why),
            "there is no input 'warp'");
    refused(lilac_layout_rename_in(&result, &layout, "lane", "", &why),
            "an input's name has 1 to 14 characters");
    refused(lilac_layout_rename_in(&result, &layout, "lane", "register", &why),
            "there is an input 'register' already");
    refused(lilac_layout_rename_out(&result, &layout, "dim2", "w", &why),
            "there is no output 'dim2'");
    refused(lilac_layout_rename_out(&result, &layout, "dim1", "a name far too long", &why),
            "an output's name has 1 to 14 characters");
    refused(lilac_layout_rename_out(&result, &layout, "dim1", "dim0", &why),
            "there is an output 'dim0' already");

    static const lilac_layout_dim many[25] = {{"a", 1}}, wrong[] = {{"a", 3}, {"b", 3}},
                                  twice[] = {{"a", 3}, {"a", 4}}, unnamed[] = {{"", 7}};
    refused(lilac_layout_reshape_ins(&result, &layout, 25, many, &why), "more than 24 inputs");
    refused(lilac_layout_reshape_ins(&result, &layout, 2, wrong, &why),
            "inputs of 7 bits cannot be cut into 6");
    refused(lilac_layout_reshape_ins(&result, &layout, 2, twice, &why), "input 'a' appears twice");
    refused(lilac_layout_reshape_ins(&result, &layout, 1, unnamed, &why),
            "an input's name has 1 to 14 characters");
    refused(lilac_layout_reshape_outs(&result, &layout, 25, many, &why), "more than 24 outputs");
    refused(lilac_layout_reshape_outs(&result, &layout, 2, wrong, &why),
            "outputs of 7 bits cannot be cut into 6");
    refused(lilac_layout_reshape_outs(&result, &layout, 2, twice, &why),
            "output 'a' appears twice");
    refused(lilac_layout_reshape_outs(&result, &layout, 1, unnamed, &why),
            "an output's name has 1 to 14 characters");

    other = identity(2, "warp", "dim0");
    refused(lilac_layout_concat_ins(&result, &layout, &other, &why),
            "output 'dim0' has 4 bits in one layout and 2 in the other");
    other = identity(4, "warp", "dim0");
    refused(lilac_layout_concat_ins(&result, &layout, &other, &why),
            "one layout has 2 outputs and the other 1");
    other = identity(4, "warp", "dim1");
    refused(lilac_layout_concat_ins(&result, &layout, &other, &why),
            "output 0 is 'dim0' in one layout and 'dim1' in the other");
    refused(lilac_layout_concat_ins(&result, &layout, &layout, &why),
            "both layouts have an input 'register'");
    assert_true(lilac_layout_sublayout(&other, &layout, NAMES("lane"), NULL, NULL));
    assert_true(lilac_layout_rename_in(&other, &other, "lane", "warp", NULL));
    assert_true(lilac_layout_resize_in(&other, &other, "warp", 58, NULL));
    refused(lilac_layout_concat_ins(&result, &layout, &other, &why),
            "together more than 64 input bits");
    assert_true(lilac_layout_resize_in(&other, &other, "warp", 0, NULL));
    for (char name[] = "a"; other.in_count < 23; name[0]++) {
        assert_true(lilac_layout_add_in(&other, name, 0, NULL, NULL));
    }
    refused(lilac_layout_concat_ins(&result, &layout, &other, &why),
            "together more than 24 inputs");
    refused(lilac_layout_concat_outs(&result, &layout, &layout, &why),
            "both layouts have an output 'dim0'");
    other = identity(7, "offset", "dim2");
    refused(lilac_layout_concat_outs(&result, &layout, &other, &why),
            "input 0 is 'register' in one layout and 'offset' in the other");
    other = identity(2, "register", "dim2");
    refused(lilac_layout_concat_outs(&result, &layout, &other, &why),
            "one layout has 2 inputs and the other 1");
    other = product(identity(2, "register", "dim2"), zeros(5, "lane", "dim2", 56));
    refused(lilac_layout_concat_outs(&result, &layout, &other, &why),
            "together more than 64 output bits");

    refused(lilac_layout_resize_in(&result, &layout, "warp", 1, &why), "there is no input 'warp'");
    refused(lilac_layout_resize_in(&result, &layout, "lane", 63, &why),
            "more than 64 input bits with 'lane'");
    refused(lilac_layout_resize_out(&result, &layout, "dim2", 1, &why),
            "there is no output 'dim2'");
    refused(lilac_layout_resize_out(&result, &layout, "dim1", UINT32_MAX, &why),
            "more than 64 output bits with 'dim1'");

    lilac_layout square = product(identity(2, "a", "a"), identity(2, "b", "b"));
    square.columns[0] = 8; /* a bit 0 goes to b=2 */
    refused(lilac_layout_quotient(&result, &square, NAMES("a"), &why),
            "the layout is not the identity on what is divided out");
    refused(lilac_layout_quotient(&result, &square, NAMES("b"), &why),
            "what is divided out and the rest move along one another");
    refused(lilac_layout_quotient(&result, &square, NAMES("c"), &why), "there is no input 'c'");
    other = zeros(0, "c", "d", 0);
    refused(lilac_layout_quotient(&result, &other, NAMES("c"), &why), "there is no output 'c'");
#undef NAMES

    static const uint32_t huge[] = {63, 2}, small[] = {4, 3};
    refused(lilac_layout_fit(&result, &layout, small, NULL, "offset", &why),
            "there is no input 'offset'");
    refused(lilac_layout_fit(&result, &layout, small, (const uint32_t[]){0, 0}, "lane", &why),
            "the order names dimension 0 twice");
    refused(lilac_layout_fit(&result, &layout, small, (const uint32_t[]){0, 9}, "lane", &why),
            "the order names dimension 9 of 2");
    refused(lilac_layout_fit(&result, &layout, huge, NULL, "lane", &why),
            "more than 64 output bits");
    refused(lilac_layout_fit(&result, &layout, (const uint32_t[]){63, 1}, NULL, "lane", &why),
            "more than 64 input bits with 'lane'");
}

static void application_is_refused(void **state) {
    (void)state;
    lilac_layout layout = accumulator(), large = identity(40, "offset", "dim0");
    uint64_t places[4] = {9, 9, 9, 9};
    uint32_t narrow[4] = {9, 9, 9, 9};
    assert_false(lilac_layout_apply_range(places, &layout, 126, 3, &why));
    assert_string_equal(why.text, "indices 126 … 126 + 3 go outside the 2^7 inputs");
    assert_false(lilac_layout_apply_range(places, &layout, 128, 1, &why));
    assert_string_equal(why.text, "indices 128 … 128 + 1 go outside the 2^7 inputs");
    assert_false(lilac_layout_apply_range(places, &layout, 1, UINT64_MAX, &why));
    assert_false(lilac_layout_apply_range32(narrow, &layout, 126, 3, &why));
    assert_false(lilac_layout_coordinates32(narrow, &layout, 0, 126, 3, &why));
    assert_false(lilac_layout_apply_range32(narrow, &large, 0, 1, &why));
    assert_string_equal(why.text, "places of 40 bits do not fit in 32");
    assert_false(lilac_layout_coordinates32(narrow, &large, 0, 0, 1, &why));
    assert_string_equal(why.text, "coordinates of 40 bits do not fit in 32");
    assert_false(lilac_layout_apply_each(places, &layout, (const uint64_t[]){0, 128}, 2, &why));
    assert_string_equal(why.text, "an index goes outside the 2^7 inputs");
    assert_true(places[0] == 9 && narrow[0] == 9);
    assert_true(lilac_layout_apply_range(places, &layout, 200, 0, NULL)); /* none at all */
    assert_true(lilac_layout_apply_each(places, &layout, NULL, 0, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_shared_and_other_names),
        cmocka_unit_test(masks),
        cmocka_unit_test(bases),
        cmocka_unit_test(a_matrix_instruction_divides_its_layout),
        cmocka_unit_test(runs_across_dimensions),
        cmocka_unit_test(orders_of_other_tiles),
        cmocka_unit_test(long_ranges),
        cmocka_unit_test(additive_registers),
        cmocka_unit_test(threads_wrap_around_a_tensor),
        cmocka_unit_test(sixty_four_bits_are_cut_and_applied),
        cmocka_unit_test(building_is_refused),
        cmocka_unit_test(division_is_refused),
        cmocka_unit_test(division_orders_are_refused),
        cmocka_unit_test(names_and_sizes_are_refused),
        cmocka_unit_test(application_is_refused),
    };
    return cmocka_run_group_tests_name("layout algebra", tests, NULL, NULL);
}
