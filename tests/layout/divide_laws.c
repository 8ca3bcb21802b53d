/* Division undoes the product, wherever the tile stands, and refuses exactly when there is no
 * quotient: on all pairs of small maps, and on random ones of up to 14 bits. */
#include "support/random_pairs.h"

static void expect_equal(const lilac_layout *a, const lilac_layout *b) {
    assert_true(lilac_layout_equal(a, b));
}

/* The sum of two sizes is at most the bits of a map, so that products stay within 14. */
static void random_layout(lilac_layout *layout, lilac_random *random, uint32_t bits,
                          uint32_t kind) {
    uint64_t columns[MAX_BITS];
    uint32_t from = random_below(random, bits + 1),
             onto = random_below(random, kind == 0 ? bits + 1 : from + 1);
    parts in = cut(random, hardware, from), out = cut(random, tensor, onto);
    if (kind == 0) {
        random_columns(columns, random, from, onto);
    } else if (kind == 1) {
        distributed_columns(columns, random, from, onto);
    } else {
        surjective_columns(columns, random, from, onto);
    }
    layout_of(layout, &in, &out, columns);
}

/* A random permutation of the bits of an input. */
static void shuffle(uint8_t *order, lilac_random *random, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = random_below(random, i + 1);
        order[i] = order[k];
        order[k] = (uint8_t)i;
    }
}

/* a × b ÷ a = b and a × b ÷ b = a (up to dimensions of size one), and back again. */
static void division_undoes_product(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 41);
    for (uint32_t i = 0; i < scaled(3000); i++) {
        lilac_layout a, b, ab, quotient, again, expected;
        random_layout(&a, &random, MAX_BITS / 2, i % 3);
        random_layout(&b, &random, MAX_BITS / 2, random_below(&random, 3));
        assert_true(lilac_layout_product(&ab, &a, &b, NULL));

        assert_true(lilac_layout_divide_left(&quotient, &ab, &a, NULL));
        assert_int_equal(quotient.in_count, ab.in_count);
        assert_int_equal(quotient.out_count, ab.out_count);
        assert_true(lilac_layout_product(&again, &a, &quotient, NULL));
        expect_equal(&again, &ab);
        lilac_layout_drop_empty(&quotient, &quotient);
        lilac_layout_drop_empty(&expected, &b);
        assert_true(lilac_layout_equivalent(&quotient, &expected));

        assert_true(lilac_layout_divide_right(&quotient, &ab, &b, NULL));
        assert_true(lilac_layout_product(&again, &quotient, &b, NULL));
        expect_equal(&again, &ab);
        lilac_layout_drop_empty(&quotient, &quotient);
        lilac_layout_drop_empty(&expected, &a);
        expect_equal(&quotient, &expected);

        /* The result may be either argument. */
        quotient = ab;
        assert_true(lilac_layout_divide_left(&quotient, &quotient, &a, NULL));
        assert_true(lilac_layout_divide_left(&a, &ab, &a, NULL));
        expect_equal(&a, &quotient);
    }
}

/* Whether some map of the sizes that are left gives tile × map = layout, or map × tile. */
static bool quotient_exists(const lilac_layout *layout, const lilac_layout *tile, bool right) {
    uint32_t from = layout->in_bits - tile->in_bits, onto = layout->out_bits - tile->out_bits;
    parts in = {2, hardware, {0}}, out = {2, tensor, {0}};
    for (uint32_t k = 0; k < 2; k++) {
        in.bits[k] = layout->in[k].bits - tile->in[k].bits;
        out.bits[k] = layout->out[k].bits - tile->out[k].bits;
    }
    for (uint64_t bits = 0; bits < UINT64_C(1) << (from * onto); bits++) {
        uint64_t columns[4] = {0};
        lilac_layout map, product;
        for (uint32_t i = 0; i < from; i++) {
            columns[i] = bits >> (i * onto) & ((UINT64_C(1) << onto) - 1);
        }
        layout_of(&map, &in, &out, columns);
        assert_true(lilac_layout_product(&product, right ? &map : tile, right ? tile : &map, NULL));
        if (lilac_layout_equal(&product, layout)) {
            return true;
        }
    }
    return false;
}

/* All maps of 3 bits onto 3, divided by all tiles of 1 bit onto 1 and of 2 onto 1 or 2. */
static void division_is_refused_only_without_quotient(void **state) {
    (void)state;
    static const struct {
        uint32_t in[2], out[2];
    } tiles[] = {{{1, 0}, {1, 0}}, {{1, 0}, {0, 1}}, {{0, 1}, {1, 0}}, {{1, 1}, {1, 0}},
                 {{1, 1}, {1, 1}}, {{2, 0}, {1, 1}}, {{1, 0}, {2, 0}}, {{0, 0}, {1, 0}}};
    static const parts in = {2, hardware, {2, 1}}, out = {2, tensor, {2, 1}};
    uint32_t divisible = 0;
    for (size_t t = 0; t < sizeof tiles / sizeof tiles[0]; t++) {
        parts tile_in = {2, hardware, {tiles[t].in[0], tiles[t].in[1]}};
        parts tile_out = {2, tensor, {tiles[t].out[0], tiles[t].out[1]}};
        uint32_t from = tile_in.bits[0] + tile_in.bits[1];
        uint32_t onto = tile_out.bits[0] + tile_out.bits[1];
        for (uint64_t tile_bits = 0; tile_bits < UINT64_C(1) << (from * onto); tile_bits++) {
            uint64_t columns[2] = {0};
            lilac_layout tile, layout, quotient, again;
            for (uint32_t i = 0; i < from; i++) {
                columns[i] = tile_bits >> (i * onto) & ((UINT64_C(1) << onto) - 1);
            }
            layout_of(&tile, &tile_in, &tile_out, columns);
            for (uint64_t bits = 0; bits < 512; bits++) {
                layout_of(&layout, &in, &out,
                          (const uint64_t[]){bits & 7, bits >> 3 & 7, bits >> 6});
                bool left = lilac_layout_divide_left(&quotient, &layout, &tile, NULL);
                assert_true(left == quotient_exists(&layout, &tile, false));
                if (left) {
                    assert_true(lilac_layout_product(&again, &tile, &quotient, NULL));
                    expect_equal(&again, &layout);
                }
                bool right = lilac_layout_divide_right(&quotient, &layout, &tile, NULL);
                assert_true(right == quotient_exists(&layout, &tile, true));
                if (right) {
                    assert_true(lilac_layout_product(&again, &quotient, &tile, NULL));
                    expect_equal(&again, &layout);
                }
                divisible += left + right;
            }
        }
    }
    /* One layout for each tile, quotient and side. */
    assert_int_equal(divisible, 512);
}

/* With registers shuffled, an order is found that makes the product divisible again; and in the
 * general form no order is needed. */
static void shuffled_registers_are_put_in_order(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 42);
    for (uint32_t i = 0; i < scaled(3000); i++) {
        bool right = i % 2 == 1;
        lilac_layout a, b, ab, shuffled, ordered, quotient, expected, general;
        uint8_t order[MAX_BITS], back[MAX_BITS], at[MAX_BITS];
        random_layout(&a, &random, MAX_BITS / 2, 1 + random_below(&random, 2));
        random_layout(&b, &random, MAX_BITS / 2, random_below(&random, 3));
        assert_true(lilac_layout_product(&ab, &a, &b, NULL));
        const lilac_layout *tile = right ? &b : &a;
        uint32_t bits = lilac_layout_in_bits(&ab, "register");
        shuffle(order, &random, bits);
        lilac_layout_permute_bits(&shuffled, &ab, "register", order);
        assert_int_equal(lilac_layout_rank(&shuffled), lilac_layout_rank(&ab));

        assert_true(lilac_layout_division_order(back, &shuffled, tile, "register", right, NULL));
        lilac_layout_permute_bits(&ordered, &shuffled, "register", back);
        if (right) {
            assert_true(lilac_layout_divide_right(&quotient, &ordered, tile, NULL));
            assert_true(lilac_layout_divide_right(&expected, &ab, tile, NULL));
        } else {
            assert_true(lilac_layout_divide_left(&quotient, &ordered, tile, NULL));
            assert_true(lilac_layout_divide_left(&expected, &ab, tile, NULL));
        }
        /* The quotient is as it was but for the order of its registers, which is the layout's. */
        assert_int_equal(quotient.in_bits, expected.in_bits);
        assert_int_equal(quotient.out_bits, expected.out_bits);
        assert_int_equal(lilac_layout_rank(&quotient), lilac_layout_rank(&expected));
        uint32_t tile_bits = lilac_layout_in_bits(tile, "register");
        const uint8_t *rest = right ? back : back + tile_bits;
        for (uint32_t k = 1; k < bits - tile_bits; k++) {
            assert_true(rest[k - 1] < rest[k]);
        }

        if (right) {
            continue;
        }
        assert_true(lilac_layout_divide(&general, &shuffled, tile, NULL, at, NULL));
        expect_equal(&general, &quotient);
        for (uint32_t k = 0; k < tile->in_bits; k++) {
            uint64_t here = shuffled.columns[at[k]], there = tile->columns[k];
            for (uint32_t d = 0; d < tile->out_count; d++) {
                int out = lilac_layout_out(&shuffled, tile->out[d].name);
                assert_true(lilac_layout_coordinate(&shuffled, here, (uint32_t)out) ==
                            lilac_layout_coordinate(tile, there, d));
            }
        }
    }
}

/* A product whose inputs' and outputs' bits are scattered: the general form finds the tile. */
static void a_scattered_tile_is_found(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 43);
    for (uint32_t i = 0; i < scaled(2000); i++) {
        lilac_layout a, b, ab, scattered, quotient, expected;
        uint64_t masks[4] = {0};
        uint8_t to[MAX_BITS]; /* where each output bit of the product goes */
        random_layout(&a, &random, MAX_BITS / 2, 2);
        random_layout(&b, &random, MAX_BITS / 2, 0);
        assert_true(lilac_layout_product(&ab, &a, &b, NULL));
        scattered = ab;
        /* Along each output, which of its places are the tile's: both keep their order. */
        for (uint32_t d = 0, start = 0; d < ab.out_count; start += ab.out[d++].bits) {
            uint32_t bits = ab.out[d].bits, own = lilac_layout_out_bits(&a, ab.out[d].name);
            uint64_t mask = 0;
            for (uint32_t k = 0, left = own; k < bits; k++) {
                if (random_below(&random, bits - k) < left) {
                    mask |= UINT64_C(1) << k;
                    left--;
                }
            }
            uint32_t tile_bit = 0, rest_bit = own;
            for (uint32_t k = 0; k < bits; k++) {
                to[start + (mask >> k & 1 ? tile_bit++ : rest_bit++)] = (uint8_t)(start + k);
            }
            int in_a = lilac_layout_out(&a, ab.out[d].name);
            if (in_a >= 0) {
                masks[in_a] = mask;
            }
        }
        for (uint32_t k = 0; k < ab.in_bits; k++) {
            scattered.columns[k] = 0;
            for (uint32_t n = 0; n < ab.out_bits; n++) {
                scattered.columns[k] |= (ab.columns[k] >> n & 1) << to[n];
            }
        }
        for (uint32_t d = 0; d < ab.in_count; d++) {
            uint8_t order[MAX_BITS];
            shuffle(order, &random, ab.in[d].bits);
            lilac_layout_permute_bits(&scattered, &scattered, ab.in[d].name, order);
        }
        assert_true(lilac_layout_divide(&quotient, &scattered, &a, masks, NULL, NULL));
        assert_true(lilac_layout_divide_left(&expected, &ab, &a, NULL));
        assert_int_equal(quotient.in_bits, expected.in_bits);
        assert_int_equal(quotient.out_bits, expected.out_bits);
        /* The same columns, input by input, in some order. */
        for (uint32_t d = 0, start = 0; d < quotient.in_count; start += quotient.in[d++].bits) {
            uint64_t unused = UINT64_MAX;
            assert_int_equal(quotient.in[d].bits, expected.in[d].bits);
            for (uint32_t k = 0; k < quotient.in[d].bits; k++) {
                uint32_t n = 0;
                while (n < quotient.in[d].bits &&
                       (!(unused >> n & 1) ||
                        expected.columns[start + n] != quotient.columns[start + k])) {
                    n++;
                }
                assert_true(n < quotient.in[d].bits);
                unused &= ~(UINT64_C(1) << n);
            }
        }
    }
}

/* Theorem 5.1 on the conversions that it is for: what registers of a layout the identity tile of n
 * bits divides are 2^n consecutive elements of memory, for every place. */
static void vectors_are_consecutive(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 44);
    uint32_t divided = 0;
    for (uint32_t i = 0; i < scaled(1500); i++) {
        lilac_layout layout, tile, quotient;
        uint64_t columns[10];
        uint32_t from = 1 + random_below(&random, 10);
        parts in = cut(&random, hardware, from), out = {1, memory, {from}};
        if (i % 2 == 0) {
            distributed_columns(columns, &random, from, from);
        } else {
            invertible_columns(columns, &random, from);
        }
        layout_of(&layout, &in, &out, columns);
        uint32_t n = lilac_layout_consecutive(&layout, NULL);
        for (uint32_t k = 0; k <= in.bits[0]; k++) {
            lilac_layout_identity(&tile, k, "register", "offset");
            assert_true(lilac_layout_divide_left(&quotient, &layout, &tile, NULL) == (k <= n));
        }
        for (uint64_t index = 0; index < UINT64_C(1) << from; index++) {
            uint64_t run = index & ((UINT64_C(1) << n) - 1);
            assert_true(lilac_layout_apply(&layout, index) ==
                        lilac_layout_apply(&layout, index ^ run) + run);
        }
        divided += n > 0;
    }
    assert_true(divided > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(division_undoes_product),
        cmocka_unit_test(division_is_refused_only_without_quotient),
        cmocka_unit_test(shuffled_registers_are_put_in_order),
        cmocka_unit_test(a_scattered_tile_is_found),
        cmocka_unit_test(vectors_are_consecutive),
    };
    return cmocka_run_group_tests_name("layout division", tests, NULL, NULL);
}
