/* Layouts over the blocks of a cluster: adding blocks to a part and changing those of a layout, on random
 * divisions of random layouts. */
#include "support/random_pairs.h"
#include "support/test.h"

#include <string.h>

enum { LANES = 5, WARPS = 2, BLOCKS = 2 };

/* The columns of a layout by input, without those that are zero: those of registers, then all others. */
static bool holds_all(const lilac_layout *layout) {
    return lilac_layout_is_surjective(layout);
}

/* A random layout of 2^rows × 2^columns elements in which each unit vector is in one place; the rest are
 * copies. */
static void make(lilac_layout *result, lilac_random *random, uint32_t rows, uint32_t columns) {
    const uint32_t total = rows + columns, places = LANES + WARPS + BLOCKS;
    const uint32_t registers = total > places ? total - places : random_below(random, 2);
    uint64_t list[64] = {0};
    for (uint32_t i = 0; i < total; i++) {
        list[i] = UINT64_C(1) << i;
    }
    const uint32_t all = registers + places;
    for (uint32_t i = all; i > 1; i--) {
        const uint32_t k = random_below(random, i);
        const uint64_t kept = list[i - 1];
        list[i - 1] = list[k];
        list[k] = kept;
    }
    lilac_layout_init(result);
    assert_true(lilac_layout_add_out(result, "dim0", rows, NULL));
    assert_true(lilac_layout_add_out(result, "dim1", columns, NULL));
    assert_true(lilac_layout_add_in(result, "register", registers, list, NULL));
    assert_true(lilac_layout_add_in(result, "lane", LANES, list + registers, NULL));
    assert_true(lilac_layout_add_in(result, "warp", WARPS, list + registers + LANES, NULL));
    assert_true(
        lilac_layout_add_in(result, "block", BLOCKS, list + registers + LANES + WARPS, NULL));
}

/* Zero or distinct unit vectors. */
static void choose_blocks(uint64_t *columns, lilac_random *random, uint32_t bits) {
    for (uint32_t i = 0; i < BLOCKS; i++) {
        columns[i] = random_below(random, 3) == 0 ? 0 : UINT64_C(1) << random_below(random, bits);
        for (uint32_t k = 0; k < i; k++) {
            columns[i] = columns[k] == columns[i] ? 0 : columns[i];
        }
    }
}

/* The changed layout has the new blocks and every element, and the old ones again if they are put back. */
static void changing(void **state) {
    (void)state;
    lilac_random random = {{1}};
    for (uint32_t n = 0; n < scaled(2000); n++) {
        const uint32_t rows = random_below(&random, 8), columns = 1 + random_below(&random, 7);
        lilac_layout layout, changed, again;
        uint64_t blocks[BLOCKS], found[LILAC_LAYOUT_MAX_BITS], old[LILAC_LAYOUT_MAX_BITS];
        make(&layout, &random, rows, columns);
        choose_blocks(blocks, &random, rows + columns);
        assert_int_equal(lilac_layout_block_columns(old, &layout), BLOCKS);
        assert_true(lilac_layout_change_blocks(&changed, &layout, blocks, NULL));
        assert_true(holds_all(&changed));
        assert_int_equal(lilac_layout_block_columns(found, &changed), BLOCKS);
        assert_memory_equal(found, blocks, sizeof blocks);
        assert_int_equal(lilac_layout_in_bits(&changed, "lane"), LANES);
        assert_int_equal(lilac_layout_in_bits(&changed, "warp"), WARPS);
        assert_true(lilac_layout_change_blocks(&again, &changed, old, NULL));
        assert_true(lilac_layout_same_blocks(&again, &layout) && holds_all(&again));
        assert_true(lilac_layout_change_blocks(&again, &layout, old, NULL));
        assert_true(holds_all(&again));
    }
}

/* A layout whose blocks are unit vectors is its part with the blocks added. */
static void adding(void **state) {
    (void)state;
    lilac_random random = {{2}};
    for (uint32_t n = 0; n < scaled(2000); n++) {
        const uint32_t sizes[2] = {random_below(&random, 8), 1 + random_below(&random, 7)};
        uint64_t blocks[BLOCKS], rest = 0;
        uint32_t part_sizes[2] = {sizes[0], sizes[1]};
        choose_blocks(blocks, &random, sizes[0] + sizes[1]);
        for (uint32_t i = 0; i < BLOCKS; i++) {
            part_sizes[blocks[i] >> sizes[0] == 0 ? 0 : 1] -= blocks[i] != 0;
            rest |= blocks[i];
        }
        lilac_layout part, whole;
        const uint32_t bits = part_sizes[0] + part_sizes[1];
        uint64_t places[64];
        for (uint32_t i = 0; i < bits; i++) {
            places[i] = UINT64_C(1) << i;
        }
        lilac_layout_init(&part);
        assert_true(lilac_layout_add_out(&part, "dim0", part_sizes[0], NULL));
        assert_true(lilac_layout_add_out(&part, "dim1", part_sizes[1], NULL));
        assert_true(lilac_layout_add_in(&part, "offset", bits, places, NULL));
        assert_true(lilac_layout_add_blocks(&whole, &part, sizes, BLOCKS, blocks, NULL));
        assert_true(holds_all(&whole));
        assert_int_equal(lilac_layout_part_bits(&whole), sizes[0] + sizes[1] - bits);
        uint64_t before = 0;
        for (uint32_t i = 0; i < bits; i++) {
            const uint64_t column = lilac_layout_column(&whole, "offset", i);
            assert_true(column > before && (column & (column - 1)) == 0 && (column & rest) == 0);
            before = column;
        }
    }
}

static void refusals(void **state) {
    (void)state;
    const uint32_t sizes[1] = {3};
    const uint64_t same[2] = {4, 4}, sums[1] = {6}, good[1] = {4}, unit[2] = {1, 2};
    lilac_layout part, whole;
    lilac_reason why;
    lilac_layout_init(&part);
    assert_true(lilac_layout_add_out(&part, "dim0", 2, NULL));
    assert_true(lilac_layout_add_in(&part, "offset", 2, unit, NULL));
    assert_true(lilac_layout_add_blocks(&whole, &part, sizes, 1, good, &why));
    assert_false(lilac_layout_add_blocks(&whole, &part, sizes, 2, same, &why));
    assert_false(lilac_layout_add_blocks(&whole, &part, sizes, 1, sums, &why));
    assert_false(lilac_layout_add_blocks(&whole, &part, sizes, 0, NULL, &why));
    assert_non_null(strstr(why.text, "dim0"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(changing), cmocka_unit_test(adding),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
