/* Names of linear layouts of tensors: every blocked layout without copies is found, and every name
 * means the layout that it was found for. */

#include <lilac/encoding.h>

#include "support/test.h"

static void make(lilac_context *context, lilac_layout *layout, const lilac_encoding *encoding,
                 const uint32_t *bits) {
    int64_t shape[LILAC_MAX_RANK];
    for (uint32_t d = 0; d < encoding->rank; d++) {
        shape[d] = INT64_C(1) << bits[d];
    }
    assert_true(lilac_encoding_layout(context, layout, encoding, encoding->rank, shape));
}

/* Do two threads, or two registers of one, hold the same element? */
static bool has_copies(const lilac_layout *layout, const char *input) {
    for (uint32_t k = 0; k < lilac_layout_in_bits(layout, input); k++) {
        if (lilac_layout_column(layout, input, k) == 0) {
            return true;
        }
    }
    return false;
}

/* A blocked layout of `rank` dimensions with 32 lanes and up to 8 warps. */
static void random_blocked(lilac_random *random, lilac_encoding *encoding, uint32_t rank) {
    uint32_t sizes[3][4] = {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}}, order[4] = {0, 1, 2, 3};
    uint32_t bits[3] = {random_below(random, 4), 5, random_below(random, 4)};
    for (uint32_t level = 0; level < 3; level++) {
        for (uint32_t k = 0; k < bits[level]; k++) {
            sizes[level][random_below(random, rank)] *= 2;
        }
    }
    for (uint32_t d = rank; d > 1; d--) {
        uint32_t other = random_below(random, d), kept = order[d - 1];
        order[d - 1] = order[other];
        order[other] = kept;
    }
    lilac_encoding_blocked(encoding, rank, sizes[0], sizes[1], sizes[2], order);
}

/* The kind of the name, which means the layout that it was found for. */
static lilac_encoding_kind find(lilac_context *context, const lilac_layout *layout,
                                const uint32_t *bits) {
    lilac_encoding found;
    lilac_layout again;
    lilac_encoding_of_tensor(context, &found, layout);
    make(context, &again, &found, bits);
    assert_true(lilac_layout_equal(&again, layout));
    return found.kind;
}

static void blocked_layouts_are_found(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 14);
    uint32_t found = 0, missed = 0;
    for (uint32_t round = 0; round < 4000; round++) {
        lilac_context *context = lilac_context_create();
        uint32_t rank = 1 + round % 3, bits[4];
        lilac_encoding encoding;
        lilac_layout layout;
        random_blocked(&random, &encoding, rank);
        for (uint32_t d = 0; d < rank; d++) {
            bits[d] = random_below(&random, 8);
        }
        make(context, &layout, &encoding, bits);
        if (!has_copies(&layout, "register")) {
            bool is_blocked = find(context, &layout, bits) == LILAC_ENCODING_BLOCKED;
            bool copies = has_copies(&layout, "lane") || has_copies(&layout, "warp");
            assert_true(is_blocked || copies);
            found += is_blocked;
            missed += !is_blocked;
        }
        lilac_context_destroy(context);
    }
    assert_true(found > 1000 && missed < found / 100);
}

/* Lanes that do not count along a dimension from its lowest free bit are no blocked layout. */
static void others_are_linear(void **state) {
    (void)state;
    static const uint64_t lanes[][5] = {{2, 1, 4, 8, 16}, {1, 2, 4, 16, 8}, {3, 1, 4, 8, 16}};
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++) {
        lilac_context *context = lilac_context_create();
        lilac_layout layout;
        const uint64_t warps[] = {32, 64};
        const uint32_t bits[] = {7};
        lilac_layout_init(&layout);
        assert_true(lilac_layout_add_out(&layout, "dim0", 7, NULL));
        assert_true(lilac_layout_add_in(&layout, "register", 0, NULL, NULL));
        assert_true(lilac_layout_add_in(&layout, "lane", 5, lanes[i], NULL));
        assert_true(lilac_layout_add_in(&layout, "warp", 2, warps, NULL));
        assert_true(lilac_layout_add_in(&layout, "block", 0, NULL, NULL));
        assert_int_equal(find(context, &layout, bits), LILAC_ENCODING_LINEAR);
        lilac_context_destroy(context);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocked_layouts_are_found),
        cmocka_unit_test(others_are_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
