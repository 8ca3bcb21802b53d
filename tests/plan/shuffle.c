/* Exchanges within warps, case by case: how many shuffles, selects and byte permutes of a warp. */

#include <lilac/plan.h>

#include "support/run_network.h"
#include "support/test.h"

enum { R = 4, L = 5 }; /* of most cases: 16 registers, 32 lanes */

typedef struct counts {
    uint64_t shuffles, selects, permutes;
} counts;

/* Columns are written as registers, lanes and warps of unit vectors or sums of them. */
typedef struct places {
    uint32_t registers, lanes, warps;
    uint64_t column[16];
} places;

static places identity(uint32_t registers, uint32_t lanes, uint32_t warps) {
    places p = {registers, lanes, warps, {0}};
    for (uint32_t i = 0; i < registers + lanes + warps; i++) {
        p.column[i] = UINT64_C(1) << i;
    }
    return p;
}

static places swapped(places p, uint32_t a, uint32_t b) {
    const uint64_t kept = p.column[a];
    p.column[a] = p.column[b];
    p.column[b] = kept;
    return p;
}

static places added(places p, uint32_t to, uint32_t from) {
    p.column[to] ^= p.column[from];
    return p;
}

static lilac_layout layout_of(const places *p, uint32_t bits) {
    lilac_layout layout;
    lilac_layout_init(&layout);
    assert_true(lilac_layout_add_out(&layout, "dim0", bits, NULL));
    assert_true(lilac_layout_add_in(&layout, "register", p->registers, p->column, NULL));
    assert_true(lilac_layout_add_in(&layout, "lane", p->lanes, p->column + p->registers, NULL));
    assert_true(
        lilac_layout_add_in(&layout, "warp", p->warps, p->column + p->registers + p->lanes, NULL));
    assert_true(lilac_layout_add_in(&layout, "block", 0, NULL, NULL));
    return layout;
}

static uint64_t element_at(const places *p, uint32_t reg, uint32_t thread) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->registers; i++) {
        sum ^= (reg >> i & 1) != 0 ? p->column[i] : 0;
    }
    for (uint32_t i = 0; i < p->lanes + p->warps; i++) {
        sum ^= (thread >> i & 1) != 0 ? p->column[p->registers + i] : 0;
    }
    return sum;
}

/* Plans, prices, expands and runs; all three must agree. */
static lilac_plan_shuffle exchange(const places *a, const places *b, uint32_t bits,
                                   uint32_t element_bits, counts expected) {
    const uint32_t bytes = element_bits / 8, threads = UINT32_C(1) << (a->lanes + a->warps);
    const lilac_layout source = layout_of(a, bits), target = layout_of(b, bits);
    lilac_plan_shuffle shuffle;
    lilac_plan_network network;
    lilac_plan_price price = {0};
    lilac_reason why = {""};
    lilac_arena *arena = lilac_arena_create();
    if (!lilac_plan_shuffle_init(&shuffle, &source, &target, element_bits,
                                 lilac_arch_find("sm_90a"), &why)) {
        fail_msg("%s", why.text);
    }
    lilac_plan_price_shuffle(&price, &shuffle, element_bits, 1);
    assert_int_equal(price.shuffles, expected.shuffles);
    assert_int_equal(price.selects, expected.selects);
    assert_int_equal(price.permutes, expected.permutes);

    network_block block = {a->lanes, a->warps, 1 << 10, NULL};
    block.words = lilac_arena_array(arena, uint32_t, (size_t)block.stride * threads);
    for (uint32_t t = 0; t < threads; t++) {
        for (uint32_t r = 0; r >> a->registers == 0; r++) {
            for (uint32_t i = 0; i < bytes; i++) {
                *byte_of(block.words + t * block.stride, r, bytes, i) =
                    element_byte(element_at(a, r, t), i);
            }
        }
    }
    assert_true(lilac_plan_expand_shuffle(&network, arena, &shuffle, element_bits));
    assert_int_equal(network.op_count, expected.shuffles + expected.selects + expected.permutes);
    run_network(&block, &network);
    for (uint32_t t = 0; t < threads; t++) {
        for (uint32_t r = 0; r >> b->registers == 0; r++) {
            for (uint32_t i = 0; i < bytes; i++) {
                assert_int_equal(*byte_of(block.words + t * block.stride, r, bytes, i),
                                 element_byte(element_at(b, r, t), i));
            }
        }
    }
    lilac_arena_destroy(arena);
    return shuffle;
}

static void swap_of_one_bit(void **state) {
    places a = identity(R, L, 0), b = swapped(a, 1, R + 3);
    (void)state;
    lilac_plan_shuffle s = exchange(&a, &b, R + L, 32, (counts){8, 24, 0});
    for (uint32_t i = 0; i < L; i++) {
        assert_int_equal(s.lane[i], UINT64_C(1) << i);
    }
}

/* m swaps: 2m - 2^-m selects and 1 - 2^-m shuffles a register. */
static void swaps_of_more(void **state) {
    places a = identity(R, L, 0), b = a;
    (void)state;
    for (uint32_t m = 1; m <= R; m++) {
        b = swapped(b, m - 1, R + L - m);
        exchange(&a, &b, R + L, 32, (counts){16 - (16U >> m), 2U * m * 16 - (16U >> m), 0});
    }
}

/* Plans exchange two bits one after the other: on this device selects take longer than shuffles. */
static void swaps_one_after_another(void **state) {
    places a = identity(R, L, 0), b = swapped(swapped(a, 0, R), 1, R + 1);
    const lilac_layout source = layout_of(&a, R + L), target = layout_of(&b, R + L);
    lilac_plan_conversion plan;
    (void)state;
    assert_true(lilac_plan_conversion_init(&plan, &source, &target, 32, NULL,
                                           lilac_arch_find("sm_90a"), NULL));
    assert_int_equal(plan.kind, LILAC_PLAN_SHUFFLES);
    assert_int_equal(plan.step_count, 2);
    assert_int_equal(plan.price.shuffles, 16);
    assert_int_equal(plan.price.selects, 48);
}

static void wide_elements_take_as_many_words(void **state) {
    places a = identity(R, L, 0), b = swapped(a, 0, R);
    (void)state;
    exchange(&a, &b, R + L, 64, (counts){16, 48, 0});
    exchange(&a, &b, R + L, 128, (counts){32, 96, 0});
}

static void lanes_alone(void **state) {
    places a = identity(R, L, 0), b = swapped(swapped(a, R, R + 4), R + 1, R + 3);
    (void)state;
    exchange(&a, &b, R + L, 32, (counts){16, 0, 0});
    exchange(&a, &b, R + L, 16, (counts){8, 0, 0});
    b = added(b, R, R + 1);
    exchange(&a, &b, R + L, 32, (counts){16, 0, 0});
}

/* A permutation of lanes is fused into the shuffles of a swap: all registers are shuffled then. */
static void lanes_with_a_swap(void **state) {
    places a = identity(R, L, 0), b = swapped(swapped(a, 0, R), R + 1, R + 2);
    (void)state;
    exchange(&a, &b, R + L, 32, (counts){16, 32, 0});
}

static void shears_are_selects(void **state) {
    places a = identity(R, L, 2), b = added(a, R + 2, 1);
    (void)state;
    exchange(&a, &b, R + L + 2, 32, (counts){0, 16, 0});
    b = added(added(b, R + 3, 2), R + L, 1); /* by a warp, too: one direction, one predicate more */
    exchange(&a, &b, R + L + 2, 32, (counts){0, 32, 0});
    b = added(added(a, R + L, 0), R + L + 1, 0);
    exchange(&a, &b, R + L + 2, 32, (counts){0, 16, 0});
}

/* A lane chosen by the warp. */
static void lanes_by_warps(void **state) {
    places a = identity(R, L, 1), b = added(a, R + L, R);
    (void)state;
    exchange(&a, &b, R + L + 1, 32, (counts){16, 0, 0});
}

/* All of the lanes have all elements: each finds its own among its registers, and nothing moves. */
static void copies_among_lanes_are_there(void **state) {
    places a = {5, L, 0, {1, 2, 4, 8, 16}}, b = {0, L, 0, {1, 2, 4, 8, 16}};
    (void)state;
    exchange(&a, &b, 5, 32, (counts){0, 31, 0});
    exchange(&a, &b, 5, 16, (counts){0, 14, 1});
    exchange(&a, &b, 5, 8, (counts){0, 6, 1});
    /* Lanes 0 and 1 hold the same; a target where they do as well reads nothing. */
    places c = {1, L, 0, {1, 0, 2, 4, 8, 16}};
    exchange(&c, &c, 5, 32, (counts){0, 0, 0});
    /* And one where they do not takes a register by the lane. */
    places d = {0, L, 0, {1, 2, 4, 8, 16}};
    exchange(&c, &d, 5, 32, (counts){0, 1, 0});
}

/* One element a lane, wanted by all lanes. */
static void copies_are_made(void **state) {
    places a = {0, L, 0, {1, 2, 4, 8, 16}}, b = {1, L, 0, {1, 0, 2, 4, 8, 16}};
    (void)state;
    exchange(&a, &b, 5, 32, (counts){2, 0, 0});
}

/* Several lanes need different registers of one lane, and there are no separate registers to
 * receive them. */
static void registers_beyond_those_there(void **state) {
    places a = {1, 1, 1, {1, 2, 0}}, b = {0, 1, 1, {1, 2}};
    (void)state;
    exchange(&a, &b, 2, 32, (counts){2, 1, 0});
}

static void words_of_halves(void **state) {
    places a = identity(R, L, 0);
    places by_word = swapped(a, 2, R), within = swapped(a, 0, R), permuted = swapped(a, 0, 1);
    (void)state;
    exchange(&a, &by_word, R + L, 16, (counts){4, 12, 0});
    exchange(&a, &permuted, R + L, 16, (counts){0, 0, 8});
    /* Exchanged with a bit of words on the way, by the permutes that select. */
    exchange(&a, &within, R + L, 16, (counts){4, 0, 12});
    /* No words to exchange with: the lane's word, and a permute. */
    places c = identity(1, L, 0), d = swapped(c, 0, 1);
    exchange(&c, &d, 1 + L, 16, (counts){1, 0, 1});
}

static void words_of_bytes(void **state) {
    places a = identity(R, L, 0);
    places by_word = swapped(a, 2, R), one = swapped(a, 1, R),
           four = swapped(swapped(a, 0, 2), 1, 3);
    (void)state;
    exchange(&a, &by_word, R + L, 8, (counts){2, 6, 0});
    exchange(&a, &one, R + L, 8, (counts){2, 0, 6});
    exchange(&a, &four, R + L, 8, (counts){0, 0, 8}); /* 4 × 4 bytes transposed in two stages */
    places c = identity(2, L, 0), d = swapped(swapped(c, 0, 2), 1, 3);
    exchange(&c, &d, 2 + L, 8, (counts){3, 0, 3});
    places within = swapped(a, 0, 1);
    exchange(&a, &within, R + L, 8, (counts){0, 0, 4});
}

static void words_filled_in_part(void **state) {
    places a = {0, L, 0, {1, 2, 4, 8, 16}}, b = {1, L, 0, {1, 2, 4, 8, 16, 0}};
    (void)state;
    exchange(&a, &b, 5, 16, (counts){2, 0, 1});
    exchange(&b, &a, 5, 16, (counts){1, 0, 1});
    exchange(&a, &a, 5, 8, (counts){0, 0, 0});
}

static void refused(const places *a, const places *b, uint32_t bits, const char *text) {
    const lilac_layout source = layout_of(a, bits), target = layout_of(b, bits);
    lilac_plan_shuffle shuffle;
    lilac_reason why = {""};
    assert_false(
        lilac_plan_shuffle_init(&shuffle, &source, &target, 32, lilac_arch_find("sm_90a"), &why));
    assert_string_equal(why.text, text);
}

static void what_is_not_within_warps(void **state) {
    places a = identity(1, L, 1), b = swapped(a, 0, 1 + L);
    (void)state;
    refused(&a, &b, 2 + L, "register bit 0 comes from another warp");
    b = swapped(a, 2, 1 + L);
    refused(&a, &b, 2 + L, "lane bit 1 comes from another warp");
    places c = {1, L, 1, {1, 2, 4, 8, 16, 32, 0}};
    places d = {0, L, 1, {2, 4, 8, 16, 32, 1}};
    exchange(&c, &d, 1 + L, 32, (counts){0, 1, 0}); /* each warp has all of it */
    refused(&d, &c, 1 + L, "register bit 0 comes from another warp");
    places e = identity(1, 4, 2);
    refused(&a, &e, 2 + L, "the layouts differ in elements, lanes, warps or blocks");
}

/* Permutations of registers that fill no word take no instruction, nor do copies of words. */
static void permutations(void **state) {
    lilac_plan_permutation r = {.before_bits = 4, .bits = 4, .from = {1, 2, 8, 4}};
    lilac_plan_price price = {0};
    (void)state;
    lilac_plan_price_permutation(&price, &r, 8, 4);
    lilac_plan_price_permutation(&price, &r, 16, 4);
    lilac_plan_price_permutation(&price, &r, 64, 4);
    assert_int_equal(price.permutes, 0);
    r.from[0] = 4;
    r.from[3] = 1;
    lilac_plan_price_permutation(&price, &r, 16, 4);
    assert_int_equal(price.permutes, 8 * 4);
    lilac_plan_permutation spread = {.before_bits = 2, .bits = 4, .from = {1, 2, 0, 0}};
    lilac_plan_permutation pick = {.before_bits = 4, .bits = 1, .from = {2}};
    price = (lilac_plan_price){0};
    lilac_plan_price_permutation(&price, &spread, 16, 1);
    assert_int_equal(price.permutes, 0);
    lilac_plan_price_permutation(&price, &pick, 16, 1);
    assert_int_equal(price.permutes, 1);
    assert_int_equal(price.selects + price.shuffles, 0);
    assert_int_equal(lilac_plan_words(0, 8), 1);
    assert_int_equal(lilac_plan_words(3, 8), 2);
    assert_int_equal(lilac_plan_words(3, 16), 4);
    assert_int_equal(lilac_plan_words(3, 128), 32);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(swap_of_one_bit),
        cmocka_unit_test(swaps_of_more),
        cmocka_unit_test(swaps_one_after_another),
        cmocka_unit_test(wide_elements_take_as_many_words),
        cmocka_unit_test(lanes_alone),
        cmocka_unit_test(lanes_with_a_swap),
        cmocka_unit_test(shears_are_selects),
        cmocka_unit_test(lanes_by_warps),
        cmocka_unit_test(copies_among_lanes_are_there),
        cmocka_unit_test(copies_are_made),
        cmocka_unit_test(registers_beyond_those_there),
        cmocka_unit_test(words_of_halves),
        cmocka_unit_test(words_of_bytes),
        cmocka_unit_test(words_filled_in_part),
        cmocka_unit_test(what_is_not_within_warps),
        cmocka_unit_test(permutations),
    };
    return cmocka_run_group_tests_name("shuffle", tests, NULL, NULL);
}
