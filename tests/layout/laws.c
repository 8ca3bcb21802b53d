/* The laws of layouts: on all maps of few bits, and on random ones of up to 14 bits. */
#include "support/random_pairs.h"

#include <lilac/encoding.h>

/* ---- the laws --------------------------------------------------------------------------- */

static bool is_identity(const lilac_layout *layout) {
    if (layout->in_bits != layout->out_bits || layout->in_count != layout->out_count) {
        return false;
    }
    for (uint32_t i = 0; i < layout->in_count; i++) {
        if (strcmp(layout->in[i].name, layout->out[i].name) != 0) {
            return false;
        }
    }
    for (uint32_t i = 0; i < layout->in_bits; i++) {
        if (layout->columns[i] != UINT64_C(1) << i) {
            return false;
        }
    }
    return true;
}

/* compose applies one after the other, associates, and has the identity as its unit. */
static void check_composition(const lilac_layout *a, const lilac_layout *b, const lilac_layout *c) {
    lilac_layout ab, bc, left, right;
    assert_true(lilac_layout_compose(&ab, a, b, NULL));
    assert_true(lilac_layout_compose(&bc, b, c, NULL));
    assert_true(lilac_layout_compose(&left, &ab, c, NULL));
    assert_true(lilac_layout_compose(&right, a, &bc, NULL));
    assert_true(lilac_layout_equal(&left, &right));
    for (uint32_t i = 0; i < c->in_bits; i++) {
        uint64_t index = UINT64_C(1) << i;
        index |= index >> 1;
        uint64_t step = lilac_layout_apply(b, lilac_layout_apply(c, index));
        assert_true(lilac_layout_apply(&left, index) == lilac_layout_apply(a, step));
    }
    /* The result may be either argument. */
    left = *a;
    assert_true(lilac_layout_compose(&left, &left, b, NULL));
    assert_true(lilac_layout_equal(&left, &ab));
    right = *b;
    assert_true(lilac_layout_compose(&right, a, &right, NULL));
    assert_true(lilac_layout_equal(&right, &ab));
}

static void composition_associates(void **state) {
    (void)state;
    parts one = {1, hardware, {2}}, two = {1, tensor, {2}}, three = {1, memory, {2}};
    for (uint64_t bits = 0; bits < 4096; bits++) { /* all triples of 2 × 2 maps */
        uint64_t columns[6];
        for (uint32_t i = 0; i < 6; i++) {
            columns[i] = bits >> (2 * i) & 3;
        }
        lilac_layout a, b, c;
        layout_of(&a, &two, &three, columns);
        layout_of(&b, &one, &two, columns + 2);
        layout_of(&c, &one, &one, columns + 4);
        check_composition(&a, &b, &c);
    }
    lilac_random random;
    lilac_random_seed(&random, 21);
    for (uint32_t i = 0; i < scaled(2000); i++) {
        uint64_t columns[MAX_BITS];
        parts cuts[4];
        lilac_layout layouts[3];
        cuts[0] = cut(&random, memory, random_below(&random, MAX_BITS + 1));
        cuts[1] = cut(&random, tensor, random_below(&random, MAX_BITS + 1));
        cuts[2] = cut(&random, hardware, random_below(&random, MAX_BITS + 1));
        cuts[3] = cut(&random, hardware, random_below(&random, MAX_BITS + 1));
        for (uint32_t k = 0; k < 3; k++) {
            uint32_t in = 0, out = 0;
            for (uint32_t n = 0; n < 4; n++) {
                out += cuts[k].bits[n];
                in += cuts[k + 1].bits[n];
            }
            random_columns(columns, &random, in, out);
            layout_of(&layouts[k], &cuts[k + 1], &cuts[k], columns);
        }
        check_composition(&layouts[0], &layouts[1], &layouts[2]);
    }
}

/* The names that are composed may stand in another order, and be smaller inside. */
static void composition_matches_names(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 22);
    for (uint32_t i = 0; i < scaled(1000); i++) {
        static const uint32_t orders[2][3] = {{1, 2, 0}, {2, 1, 0}};
        uint64_t columns[MAX_BITS];
        parts dims = {
            3,
            tensor,
            {random_below(&random, 4), random_below(&random, 4), random_below(&random, 4)}};
        parts in = cut(&random, hardware, random_below(&random, 12));
        uint32_t out = dims.bits[0] + dims.bits[1] + dims.bits[2];
        lilac_layout inner, outer, expected, result;
        random_columns(columns, &random, MAX_BITS, out);
        layout_of(&inner, &in, &dims, columns);
        parts larger = dims;
        larger.bits[random_below(&random, 3)] += random_below(&random, 3);
        random_columns(columns, &random, MAX_BITS, 8);
        layout_of(&outer, &larger, &(parts){1, memory, {8}}, columns);
        lilac_layout_permute_outs(&result, &inner, orders[i % 2]);
        assert_true(lilac_layout_compose(&result, &outer, &result, NULL));
        assert_true(lilac_layout_compose(&expected, &outer, &inner, NULL));
        assert_true(lilac_layout_equal(&result, &expected));
        for (uint32_t k = 0; k < 8; k++) {
            uint64_t index = lilac_random_next(&random) & ((UINT64_C(1) << inner.in_bits) - 1);
            uint64_t place = lilac_layout_apply(&inner, index), to = 0;
            for (uint32_t d = 0; d < 3; d++) {
                to |= lilac_layout_coordinate(&inner, place, d) << lilac_layout_in_start(&outer, d);
            }
            assert_true(lilac_layout_apply(&result, index) == lilac_layout_apply(&outer, to));
        }
    }
}

static void check_inverse(const lilac_layout *layout, bool invertible) {
    lilac_layout inverse, unit;
    assert_true(lilac_layout_invert(&inverse, layout, NULL) == invertible);
    assert_true((lilac_layout_is_injective(layout) && lilac_layout_is_surjective(layout)) ==
                invertible);
    if (!invertible) {
        return;
    }
    assert_true(lilac_layout_compose(&unit, layout, &inverse, NULL));
    assert_true(is_identity(&unit));
    assert_true(lilac_layout_compose(&unit, &inverse, layout, NULL));
    assert_true(is_identity(&unit));
    assert_true(lilac_layout_pseudoinvert(&unit, layout, NULL));
    assert_true(lilac_layout_equal(&unit, &inverse));
    assert_true(lilac_layout_invert(&inverse, &inverse, NULL));
    assert_true(lilac_layout_equal(&inverse, layout));
}

static void inverse_undoes(void **state) {
    (void)state;
    uint32_t invertible = 0;
    parts in = {2, hardware, {1, 2}}, out = {2, tensor, {2, 1}};
    for (uint64_t bits = 0; bits < 512; bits++) {
        lilac_layout layout;
        layout_of(&layout, &in, &out, (const uint64_t[]){bits & 7, bits >> 3 & 7, bits >> 6});
        bool onto = lilac_layout_rank(&layout) == 3;
        check_inverse(&layout, onto);
        invertible += onto;
    }
    assert_int_equal(invertible, 168);
    lilac_random random;
    lilac_random_seed(&random, 23);
    for (uint32_t i = 0; i < scaled(2000); i++) {
        uint64_t columns[MAX_BITS];
        uint32_t bits = 1 + random_below(&random, MAX_BITS);
        in = cut(&random, hardware, bits);
        out = cut(&random, tensor, bits);
        lilac_layout layout;
        invertible_columns(columns, &random, bits);
        layout_of(&layout, &in, &out, columns);
        check_inverse(&layout, true);
        columns[bits - 1] = bits == 1 ? 0 : columns[0];
        layout_of(&layout, &in, &out, columns);
        check_inverse(&layout, false);
    }
}

/* A right inverse that gives the smallest preimage, found here by going through all. */
static void check_pseudo_inverse(const lilac_layout *layout) {
    lilac_layout inverse, unit;
    assert_true(lilac_layout_pseudoinvert(&inverse, layout, NULL));
    assert_true(lilac_layout_compose(&unit, layout, &inverse, NULL));
    assert_true(is_identity(&unit));
    uint64_t free_bits = 0;
    for (uint32_t i = 0; i < layout->in_count; i++) {
        free_bits |= lilac_layout_free_bits(layout, layout->in[i].name)
                     << lilac_layout_in_start(layout, i);
    }
    assert_int_equal(__builtin_popcountll(free_bits), layout->in_bits - layout->out_bits);
    for (uint64_t y = 0; layout->in_bits <= 10 && y < UINT64_C(1) << layout->out_bits; y++) {
        uint64_t x = 0;
        while (lilac_layout_apply(layout, x) != y) {
            x++;
        }
        assert_true(lilac_layout_apply(&inverse, y) == x);
        assert_true((x & free_bits) == 0);
    }
    for (uint32_t i = 0; i < inverse.in_bits; i++) {
        assert_true((inverse.columns[i] & free_bits) == 0);
    }
}

static void pseudo_inverse_is_the_smallest(void **state) {
    (void)state;
    parts in = {2, hardware, {2, 2}}, out = {2, tensor, {1, 1}};
    for (uint64_t bits = 0; bits < 256; bits++) {
        lilac_layout layout;
        layout_of(&layout, &in, &out,
                  (const uint64_t[]){bits & 3, bits >> 2 & 3, bits >> 4 & 3, bits >> 6});
        lilac_reason why;
        if (lilac_layout_is_surjective(&layout)) {
            check_pseudo_inverse(&layout);
        } else {
            assert_false(lilac_layout_pseudoinvert(&layout, &layout, &why));
        }
    }
    lilac_random random;
    lilac_random_seed(&random, 24);
    for (uint32_t i = 0; i < scaled(400); i++) {
        uint64_t columns[MAX_BITS];
        uint32_t from = random_below(&random, MAX_BITS + 1), onto = random_below(&random, from + 1);
        in = cut(&random, hardware, from);
        out = cut(&random, tensor, onto);
        lilac_layout layout;
        surjective_columns(columns, &random, from, onto);
        layout_of(&layout, &in, &out, columns);
        check_pseudo_inverse(&layout);
    }
}

/* b ∘ (b⁻¹ ∘ a) = a; what agrees stays; elsewhere the smallest index is taken. */
static void conversion_reaches_the_same_element(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 25);
    for (uint32_t i = 0; i < scaled(2000); i++) {
        static const uint32_t orders[2][2] = {{0, 1}, {1, 0}};
        uint64_t columns[2][MAX_BITS];
        uint32_t onto = random_below(&random, 9);
        parts out = {2, tensor, {0}}, in[2];
        out.bits[0] = random_below(&random, onto + 1);
        out.bits[1] = onto - out.bits[0];
        lilac_layout a, b, moved, conversion, again, inverse;
        bool units = random_below(&random, 2) == 0;
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t from = onto + random_below(&random, MAX_BITS - onto + 1);
            in[k] = cut(&random, hardware, from);
            if (units) {
                distributed_columns(columns[k], &random, from, onto);
            } else {
                surjective_columns(columns[k], &random, from, onto);
            }
        }
        layout_of(&a, &in[0], &out, columns[0]);
        layout_of(&b, &in[1], &out, columns[1]);
        uint32_t agreeing = random_below(&random, 3);
        if (agreeing == 0) {
            b = a; /* agrees throughout */
        } else if (agreeing == 1 && in[0].count > 1) {
            /* Agrees on the first inputs, when the rest is still onto. */
            lilac_layout partly = a;
            uint32_t kept = in[0].bits[0];
            random_columns(partly.columns + kept, &random, a.in_bits - kept, onto);
            if (lilac_layout_is_surjective(&partly)) {
                b = partly;
            }
        }
        lilac_layout_permute_outs(&moved, &a, orders[i % 2]);
        assert_true(lilac_layout_invert_compose(&conversion, &moved, &b, NULL));
        assert_true(lilac_layout_compose(&again, &b, &conversion, NULL));
        assert_true(lilac_layout_equal(&again, &a));
        assert_true(lilac_layout_pseudoinvert(&inverse, &b, NULL));
        for (uint32_t k = 0, start = 0; k < a.in_count; start += a.in[k++].bits) {
            const char *name = a.in[k].name;
            int other = lilac_layout_in(&b, name);
            bool same = other >= 0 && a.in[k].bits == b.in[other].bits;
            for (uint32_t n = 0; same && n < a.in[k].bits; n++) {
                same = lilac_layout_column(&a, name, n) == lilac_layout_column(&b, name, n);
            }
            for (uint32_t n = 0; n < a.in[k].bits; n++) {
                uint64_t expected = same ? UINT64_C(1)
                                               << (lilac_layout_in_start(&b, (uint32_t)other) + n)
                                         : lilac_layout_apply(&inverse, a.columns[start + n]);
                assert_true(conversion.columns[start + n] == expected);
            }
        }
    }
}

/* (a × b)(x above y) = a(x) and b(y) side by side; × associates and the empty layout is its unit.
 */
static void product_sets_side_by_side(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 26);
    for (uint32_t i = 0; i < scaled(2000); i++) {
        lilac_layout layouts[3], ab, bc, left, right, empty;
        for (uint32_t k = 0; k < 3; k++) {
            uint64_t columns[8];
            uint32_t from = random_below(&random, 8), to = random_below(&random, 8);
            parts in = cut(&random, hardware, from);
            parts out = cut(&random, tensor, to);
            random_columns(columns, &random, from, to);
            layout_of(&layouts[k], &in, &out, columns);
        }
        const lilac_layout *a = &layouts[0], *b = &layouts[1], *c = &layouts[2];
        assert_true(lilac_layout_product(&ab, a, b, NULL));
        assert_true(lilac_layout_product(&bc, b, c, NULL));
        assert_true(lilac_layout_product(&left, &ab, c, NULL));
        assert_true(lilac_layout_product(&right, a, &bc, NULL));
        assert_true(lilac_layout_equal(&left, &right));
        lilac_layout_init(&empty);
        assert_true(lilac_layout_product(&left, a, &empty, NULL));
        assert_true(lilac_layout_equal(&left, a));
        assert_true(lilac_layout_product(&right, &empty, a, NULL));
        assert_true(lilac_layout_equal(&right, a));
        assert_int_equal(lilac_layout_rank(&ab), lilac_layout_rank(a) + lilac_layout_rank(b));

        uint64_t x[4], y[4], index[4], from_a, from_b, both;
        for (uint32_t k = 0; k < ab.in_count; k++) {
            uint32_t a_bits = lilac_layout_in_bits(a, ab.in[k].name);
            uint32_t b_bits = lilac_layout_in_bits(b, ab.in[k].name);
            x[k] = lilac_random_next(&random) & ((UINT64_C(1) << a_bits) - 1);
            y[k] = lilac_random_next(&random) & ((UINT64_C(1) << b_bits) - 1);
            index[k] = x[k] | y[k] << a_bits;
        }
        from_a = from_b = both = 0;
        for (uint32_t k = 0; k < ab.in_count; k++) {
            int in_a = lilac_layout_in(a, ab.in[k].name), in_b = lilac_layout_in(b, ab.in[k].name);
            from_a |= in_a < 0 ? 0 : x[k] << lilac_layout_in_start(a, (uint32_t)in_a);
            from_b |= in_b < 0 ? 0 : y[k] << lilac_layout_in_start(b, (uint32_t)in_b);
            both |= index[k] << lilac_layout_in_start(&ab, k);
        }
        from_a = lilac_layout_apply(a, from_a);
        from_b = lilac_layout_apply(b, from_b);
        both = lilac_layout_apply(&ab, both);
        for (uint32_t k = 0; k < ab.out_count; k++) {
            const char *name = ab.out[k].name;
            int in_a = lilac_layout_out(a, name), in_b = lilac_layout_out(b, name);
            uint64_t low = in_a < 0 ? 0 : lilac_layout_coordinate(a, from_a, (uint32_t)in_a);
            uint64_t high = in_b < 0 ? 0 : lilac_layout_coordinate(b, from_b, (uint32_t)in_b);
            assert_true(lilac_layout_coordinate(&ab, both, k) ==
                        (low | high << lilac_layout_out_bits(a, name)));
        }
    }
}

/* A slice forgets one coordinate; what is left is unchanged, up to registers that are copies. */
static void slice_forgets_a_coordinate(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 27);
    for (uint32_t i = 0; i < scaled(2000); i++) {
        uint64_t columns[MAX_BITS];
        uint32_t from = random_below(&random, MAX_BITS + 1), onto = random_below(&random, from + 1);
        parts in = cut(&random, hardware, from), out = cut(&random, tensor, onto);
        lilac_layout layout, slice, sub;
        distributed_columns(columns, &random, from, onto);
        layout_of(&layout, &in, &out, columns);
        uint32_t dim = random_below(&random, out.count), kept = 0;
        const char *names[5] = {NULL};
        for (uint32_t k = 0; k < out.count; k++) {
            if (k != dim) {
                names[kept++] = tensor[k];
            }
        }
        lilac_layout_slice(&slice, &layout, dim);
        assert_true(lilac_layout_sublayout(&sub, &layout, NULL, names, NULL));
        lilac_layout_drop_free(&sub, &sub, "register");
        for (uint32_t k = 0; k < kept; k++) {
            assert_string_equal(slice.out[k].name, tensor[k]);
            memcpy(sub.out[k].name, tensor[k], 4);
        }
        assert_true(lilac_layout_equal(&slice, &sub));
        assert_true(lilac_layout_is_distributed(&slice)); /* Theorem 9.3 */
        /* Back up by expand_dims: the element at coordinate 0. */
        lilac_layout_expand(&slice, &slice, dim);
        assert_int_equal(slice.out[dim].bits, 0);
        lilac_layout_slice(&slice, &slice, dim);
        assert_true(lilac_layout_equal(&slice, &sub));
    }
}

/* Transposing and reshaping renumber elements one to one, and undo each other. */
static void shape_operations_permute(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 28);
    for (uint32_t i = 0; i < scaled(2000); i++) {
        uint64_t columns[MAX_BITS];
        uint32_t from = random_below(&random, MAX_BITS + 1),
                 onto = random_below(&random, MAX_BITS + 1);
        parts in = cut(&random, hardware, from), out = cut(&random, tensor, onto),
              shape = cut(&random, tensor, onto);
        lilac_layout layout, moved, back;
        random_columns(columns, &random, from, onto);
        layout_of(&layout, &in, &out, columns);

        uint32_t order[4], inverse[4];
        for (uint32_t k = 0; k < out.count; k++) {
            uint32_t at = random_below(&random, k + 1);
            order[k] = order[at];
            order[at] = k;
        }
        for (uint32_t k = 0; k < out.count; k++) {
            inverse[order[k]] = k;
        }
        lilac_layout_transpose(&moved, &layout, order);
        assert_int_equal(lilac_layout_rank(&moved), lilac_layout_rank(&layout));
        uint64_t index = lilac_random_next(&random) & ((UINT64_C(1) << from) - 1);
        uint64_t before = lilac_layout_apply(&layout, index),
                 after = lilac_layout_apply(&moved, index);
        for (uint32_t k = 0; k < out.count; k++) {
            assert_true(lilac_layout_coordinate(&moved, after, k) ==
                        lilac_layout_coordinate(&layout, before, order[k]));
        }
        lilac_layout_transpose(&back, &moved, inverse);
        assert_true(lilac_layout_equal(&back, &layout));

        assert_true(lilac_layout_reshape(&moved, &layout, shape.count, shape.bits, NULL));
        after = lilac_layout_apply(&moved, index);
        uint64_t number = 0, renumbered = 0;
        for (uint32_t k = 0; k < out.count; k++) {
            number = number << out.bits[k] | lilac_layout_coordinate(&layout, before, k);
        }
        for (uint32_t k = 0; k < shape.count; k++) {
            renumbered = renumbered << shape.bits[k] | lilac_layout_coordinate(&moved, after, k);
        }
        assert_true(number == renumbered);
        assert_true(lilac_layout_reshape(&back, &moved, out.count, out.bits, NULL));
        assert_true(lilac_layout_equal(&back, &layout));
        assert_true(lilac_layout_reshape(&layout, &layout, shape.count, shape.bits, NULL));
        assert_true(lilac_layout_equal(&layout, &moved));
    }
}

/* Reordering inputs and outputs by name is seen by equal and not by equivalent. */
static void equivalence_forgets_order(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 29);
    for (uint32_t i = 0; i < scaled(1000); i++) {
        uint64_t columns[MAX_BITS];
        uint32_t from = random_below(&random, MAX_BITS + 1),
                 onto = 1 + random_below(&random, MAX_BITS);
        parts in = cut(&random, hardware, from), out = cut(&random, tensor, onto);
        lilac_layout layout, moved;
        random_columns(columns, &random, from, onto);
        layout_of(&layout, &in, &out, columns);
        uint32_t reversed[4];
        for (uint32_t k = 0; k < out.count; k++) {
            reversed[k] = out.count - 1 - k;
        }
        lilac_layout_permute_outs(&moved, &layout, reversed);
        /* The inputs too, by hand: the last one first. */
        lilac_layout inputs_moved = moved;
        inputs_moved.in[0] = moved.in[in.count - 1];
        for (uint32_t k = 1; k < in.count; k++) {
            inputs_moved.in[k] = moved.in[k - 1];
        }
        uint32_t last = in.bits[in.count - 1];
        for (uint32_t k = 0; k < from; k++) {
            inputs_moved.columns[(k + last) % from] = moved.columns[k];
        }
        assert_true(lilac_layout_equivalent(&layout, &inputs_moved));
        assert_true(lilac_layout_equivalent(&inputs_moved, &layout));
        assert_true(lilac_layout_equal(&layout, &inputs_moved) ==
                    (in.count == 1 && out.count == 1));
        if (from > 0) {
            inputs_moved.columns[random_below(&random, from)] ^= UINT64_C(1)
                                                                 << random_below(&random, onto);
            assert_false(lilac_layout_equivalent(&layout, &inputs_moved));
        }
    }
}

/* Printed as #ttg.linear, a distributed layout reads as itself. */
static void print_then_read_is_nothing(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 30);
    for (uint32_t i = 0; i < scaled(500); i++) {
        uint64_t columns[MAX_BITS];
        uint32_t from = 1 + random_below(&random, MAX_BITS), onto = random_below(&random, from + 1);
        parts in = cut(&random, hardware, from), out = cut(&random, tensor, onto);
        in.count = 4;
        lilac_layout layout;
        distributed_columns(columns, &random, from, onto);
        layout_of(&layout, &in, &out, columns);

        lilac_context *context = lilac_context_create();
        lilac_text text = {0};
        lilac_scanner scanner;
        lilac_layout_print(&text, &layout);
        lilac_scanner_init(&scanner, context,
                           lilac_source_add(context, "printed", text.bytes, text.length));
        const lilac_encoding *encoding = lilac_encoding_read(&scanner, NULL);
        assert_non_null(encoding);
        int64_t shape[4];
        for (uint32_t k = 0; k < out.count; k++) {
            shape[k] = INT64_C(1) << out.bits[k];
        }
        lilac_layout read;
        assert_true(lilac_encoding_layout(context, &read, encoding, out.count, shape));
        assert_true(lilac_layout_equal(&read, &layout));
        assert_true(lilac_layout_hash(&read) == lilac_layout_hash(&layout));
        lilac_text_clear(&text);
        lilac_context_destroy(context);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(composition_associates),
        cmocka_unit_test(composition_matches_names),
        cmocka_unit_test(inverse_undoes),
        cmocka_unit_test(pseudo_inverse_is_the_smallest),
        cmocka_unit_test(conversion_reaches_the_same_element),
        cmocka_unit_test(product_sets_side_by_side),
        cmocka_unit_test(slice_forgets_a_coordinate),
        cmocka_unit_test(shape_operations_permute),
        cmocka_unit_test(equivalence_forgets_order),
        cmocka_unit_test(print_then_read_is_nothing),
    };
    return cmocka_run_group_tests_name("layout laws", tests, NULL, NULL);
}
