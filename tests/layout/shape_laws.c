/* The laws of everything about a layout that is not a product or an inverse: bases and masks, names
 * and sizes, fitting to a tensor, predicates, application to ranges. What an operation is said to
 * do is checked point by point, on all maps of few bits and on random ones of up to 14. */
#include "support/random_pairs.h"

#include <lilac/replication.h>

static uint64_t any_index(lilac_random *random, const lilac_layout *layout) {
    return lilac_random_next(random) & ((UINT64_C(1) << layout->in_bits) - 1);
}

static void random_layout(lilac_layout *layout, lilac_random *random) {
    uint64_t columns[MAX_BITS];
    uint32_t from = random_below(random, MAX_BITS + 1), onto = random_below(random, MAX_BITS + 1);
    parts in = cut(random, hardware, from), out = cut(random, tensor, onto);
    random_columns(columns, random, from, onto);
    layout_of(layout, &in, &out, columns);
}

static uint64_t coordinate_named(const lilac_layout *layout, uint64_t flat, const char *name) {
    int out = lilac_layout_out(layout, name);
    return out < 0 ? 0 : lilac_layout_coordinate(layout, flat, (uint32_t)out);
}

/* ---- bases and masks -------------------------------------------------------------------- */

/* A layout is its bases, and it is its masks. */
static void bases_and_masks_make_the_layout(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 51);
    for (uint32_t i = 0; i < scaled(2000); i++) {
        lilac_layout layout, again;
        uint64_t masks[64], coordinates[MAX_BITS * 4];
        random_layout(&layout, &random);
        lilac_layout_masks(masks, &layout);
        uint64_t index = any_index(&random, &layout), place = 0;
        for (uint32_t k = 0; k < layout.out_bits; k++) {
            place |= (uint64_t)__builtin_parityll(masks[k] & index) << k;
        }
        assert_true(place == lilac_layout_apply(&layout, index));
        assert_true(lilac_layout_from_masks(&again, layout.in_count, layout.in, layout.out_count,
                                            layout.out, masks, NULL));
        assert_true(lilac_layout_equal(&again, &layout));

        for (uint32_t k = 0; k < layout.in_bits; k++) {
            for (uint32_t d = 0; d < layout.out_count; d++) {
                coordinates[k * layout.out_count + d] =
                    lilac_layout_coordinate(&layout, layout.columns[k], d);
            }
        }
        assert_true(lilac_layout_from_bases(&again, layout.in_count, layout.in, layout.out_count,
                                            layout.out, coordinates, NULL));
        assert_true(lilac_layout_equal(&again, &layout));
        /* Sizes that are not given are the smallest that hold the coordinates. */
        lilac_layout_dim outs[4];
        for (uint32_t d = 0; d < layout.out_count; d++) {
            outs[d] = layout.out[d];
            outs[d].bits = LILAC_LAYOUT_INFER;
        }
        assert_true(lilac_layout_from_bases(&again, layout.in_count, layout.in, layout.out_count,
                                            outs, coordinates, NULL));
        for (uint32_t d = 0; d < layout.out_count; d++) {
            bool used = again.out[d].bits == 0;
            for (uint32_t k = 0; k < layout.in_bits && !used; k++) {
                used =
                    lilac_layout_coordinate(&again, again.columns[k], d) >> (again.out[d].bits - 1);
            }
            assert_true(used);
            assert_true(
                lilac_layout_resize_out(&again, &again, outs[d].name, layout.out[d].bits, NULL));
        }
        assert_true(lilac_layout_equal(&again, &layout));
    }
}

/* x ↦ stride · x; the numbers of a tensor's elements in any order of its dimensions. */
static void strides_and_orders_number_elements(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 52);
    for (uint32_t i = 0; i < scaled(500); i++) {
        lilac_layout layout;
        uint32_t bits = random_below(&random, 8), shift = random_below(&random, 8);
        assert_true(
            lilac_layout_strided(&layout, bits, UINT64_C(1) << shift, "lane", "dim0", NULL));
        assert_int_equal(layout.out_bits, bits + shift);
        for (uint64_t x = 0; x < UINT64_C(1) << bits; x++) {
            assert_true(lilac_layout_apply(&layout, x) == x << shift);
        }

        uint32_t rank = 1 + random_below(&random, 4), sizes[4], order[4];
        for (uint32_t k = 0; k < rank; k++) {
            uint32_t at = random_below(&random, k + 1);
            sizes[k] = random_below(&random, 4);
            order[k] = order[at];
            order[at] = k;
        }
        assert_true(lilac_layout_standard(&layout, "offset", rank, sizes, order, NULL));
        assert_true(lilac_layout_is_bijective(&layout) && lilac_layout_is_memory(&layout));
        for (uint64_t x = 0; x < UINT64_C(1) << layout.in_bits; x++) {
            uint64_t place = lilac_layout_apply(&layout, x), number = 0;
            for (uint32_t k = rank; k-- > 0;) {
                number =
                    number << sizes[order[k]] | lilac_layout_coordinate(&layout, place, order[k]);
            }
            assert_true(number == x);
        }
    }
}

/* ---- names and sizes -------------------------------------------------------------------- */

static void order_and_names_move_nothing(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 53);
    for (uint32_t i = 0; i < scaled(1500); i++) {
        lilac_layout layout, moved, back;
        const char *names[5] = {NULL}, *old[5] = {NULL};
        random_layout(&layout, &random);
        uint32_t order[4];
        for (uint32_t k = 0; k < layout.in_count; k++) {
            uint32_t at = random_below(&random, k + 1);
            order[k] = order[at];
            order[at] = k;
        }
        for (uint32_t k = 0; k < layout.in_count; k++) {
            names[k] = hardware[order[k]];
            old[k] = hardware[k];
        }
        assert_true(lilac_layout_order_ins(&moved, &layout, names, NULL));
        assert_true(lilac_layout_equivalent(&moved, &layout));
        uint64_t index = any_index(&random, &layout), to = 0;
        for (uint32_t k = 0, start = 0; k < moved.in_count; start += moved.in[k++].bits) {
            assert_string_equal(moved.in[k].name, names[k]);
            uint64_t part = index >> lilac_layout_in_start(&layout, order[k]);
            to |= (part & ((UINT64_C(1) << moved.in[k].bits) - 1)) << start;
        }
        assert_true(lilac_layout_apply(&moved, to) == lilac_layout_apply(&layout, index));
        lilac_layout_permute_ins(&back, &layout, order);
        assert_true(lilac_layout_equal(&back, &moved));
        assert_true(lilac_layout_order_ins(&moved, &moved, old, NULL));
        assert_true(lilac_layout_equal(&moved, &layout));

        const char *reversed[5] = {NULL};
        uint32_t out_order[4];
        for (uint32_t k = 0; k < layout.out_count; k++) {
            out_order[k] = layout.out_count - 1 - k;
            reversed[k] = tensor[out_order[k]];
        }
        assert_true(lilac_layout_order_outs(&moved, &layout, reversed, NULL));
        lilac_layout_permute_outs(&back, &layout, out_order);
        assert_true(lilac_layout_equal(&moved, &back));
        assert_true(lilac_layout_equivalent(&moved, &layout));

        assert_true(lilac_layout_rename_in(&moved, &layout, "register", "offset", NULL));
        assert_true(lilac_layout_rename_out(&moved, &moved, "dim0", "row", NULL));
        assert_int_equal(lilac_layout_in(&moved, "register"), -1);
        assert_int_equal(lilac_layout_out(&moved, "row"), 0);
        assert_true(lilac_layout_apply(&moved, index) == lilac_layout_apply(&layout, index));
        assert_true(lilac_layout_rename_in(&moved, &moved, "offset", "register", NULL));
        assert_true(lilac_layout_rename_out(&moved, &moved, "row", "dim0", NULL));
        assert_true(lilac_layout_equal(&moved, &layout));
    }
}

static void cutting_and_flattening_move_nothing(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 54);
    for (uint32_t i = 0; i < scaled(1500); i++) {
        lilac_layout layout, flat, other, again, shape;
        random_layout(&layout, &random);
        lilac_layout_flatten_ins(&flat, &layout, "offset");
        lilac_layout_flatten_outs(&flat, &flat, "dim0");
        assert_int_equal(flat.in_count + flat.out_count, 2);
        uint64_t index = any_index(&random, &layout);
        assert_true(lilac_layout_apply(&flat, index) == lilac_layout_apply(&layout, index));
        assert_true(lilac_layout_reshape_ins(&again, &flat, layout.in_count, layout.in, NULL) &&
                    lilac_layout_reshape_outs(&again, &again, layout.out_count, layout.out, NULL));
        assert_true(lilac_layout_equal(&again, &layout));

        parts in = cut(&random, memory, layout.in_bits),
              out = cut(&random, tensor, layout.out_bits);
        uint64_t zeros[MAX_BITS] = {0};
        layout_of(&shape, &in, &out, zeros); /* for its lists of dimensions */
        assert_true(lilac_layout_reshape_ins(&other, &layout, shape.in_count, shape.in, NULL));
        assert_true(lilac_layout_reshape_outs(&other, &other, shape.out_count, shape.out, NULL));
        assert_true(lilac_layout_apply(&other, index) == lilac_layout_apply(&layout, index));
        assert_int_equal(lilac_layout_rank(&other), lilac_layout_rank(&layout));
        lilac_layout_flatten_ins(&other, &other, "offset");
        lilac_layout_flatten_outs(&other, &other, "dim0");
        assert_true(lilac_layout_equal(&other, &flat));

        /* Row-major reshape is this one between two reversals of the outputs. */
        uint32_t order[4], sizes[4];
        for (uint32_t k = 0; k < layout.out_count; k++) {
            order[k] = layout.out_count - 1 - k;
        }
        lilac_layout_permute_outs(&other, &layout, order);
        lilac_layout_dim turned[4];
        for (uint32_t k = 0; k < shape.out_count; k++) {
            sizes[k] = shape.out[k].bits;
            turned[shape.out_count - 1 - k] = shape.out[k];
        }
        assert_true(lilac_layout_reshape_outs(&other, &other, shape.out_count, turned, NULL));
        for (uint32_t k = 0; k < shape.out_count; k++) {
            order[k] = shape.out_count - 1 - k;
        }
        lilac_layout_permute_outs(&other, &other, order);
        assert_true(lilac_layout_reshape(&again, &layout, shape.out_count, sizes, NULL));
        assert_true(lilac_layout_equal(&again, &other));
    }
}

static void side_by_side(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 55);
    for (uint32_t i = 0; i < scaled(1500); i++) {
        lilac_layout a, b, both;
        uint64_t columns[MAX_BITS];
        uint32_t size[2] = {random_below(&random, 8), random_below(&random, 8)},
                 shared = random_below(&random, 8);
        parts in_a = cut(&random, hardware, size[0]), in_b = cut(&random, memory, size[1]),
              out = cut(&random, tensor, shared);
        random_columns(columns, &random, size[0], shared);
        layout_of(&a, &in_a, &out, columns);
        random_columns(columns, &random, size[1], shared);
        layout_of(&b, &in_b, &out, columns);
        assert_true(lilac_layout_concat_ins(&both, &a, &b, NULL));
        uint64_t x = any_index(&random, &a), y = any_index(&random, &b);
        assert_true(lilac_layout_apply(&both, x | y << size[0]) ==
                    (lilac_layout_apply(&a, x) ^ lilac_layout_apply(&b, y)));

        in_a = cut(&random, hardware, shared);
        parts out_a = cut(&random, tensor, size[0]), out_b = cut(&random, memory, size[1]);
        random_columns(columns, &random, shared, size[0]);
        layout_of(&a, &in_a, &out_a, columns);
        random_columns(columns, &random, shared, size[1]);
        layout_of(&b, &in_a, &out_b, columns);
        assert_true(lilac_layout_concat_outs(&both, &a, &b, NULL));
        x = any_index(&random, &a);
        assert_true(lilac_layout_apply(&both, x) ==
                    (lilac_layout_apply(&a, x) | lilac_layout_apply(&b, x) << size[0]));
        /* Each half is a sublayout of the whole. */
        assert_true(lilac_layout_concat_outs(&b, &b, &a, NULL));
        const char *names[5] = {NULL};
        for (uint32_t k = 0; k < out_a.count; k++) {
            names[k] = tensor[k];
        }
        assert_true(lilac_layout_sublayout(&both, &b, NULL, names, NULL));
        assert_true(lilac_layout_equal(&both, &a));
    }
}

/* Inputs and outputs of another size, compared point by point. Adding bits and removing them
 * again is the identity. */
static void sizes_change_only_what_is_new(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 56);
    for (uint32_t i = 0; i < scaled(1500); i++) {
        lilac_layout layout, sized, back;
        random_layout(&layout, &random);
        uint32_t dim = random_below(&random, layout.in_count), old = layout.in[dim].bits;
        uint32_t bits = random_below(&random, old + 4), kept = bits < old ? bits : old;
        uint32_t start = lilac_layout_in_start(&layout, dim);
        assert_true(lilac_layout_resize_in(&sized, &layout, hardware[dim], bits, NULL));
        assert_int_equal(sized.in_bits, layout.in_bits - old + bits);
        uint64_t index = any_index(&random, &sized), low = index & ((UINT64_C(1) << start) - 1);
        uint64_t part = index >> start & ((UINT64_C(1) << kept) - 1),
                 high = index >> (start + bits);
        assert_true(lilac_layout_apply(&sized, index) ==
                    lilac_layout_apply(&layout, low | part << start | high << (start + old)));
        if (bits >= old) {
            assert_true(lilac_layout_resize_in(&back, &sized, hardware[dim], old, NULL));
            assert_true(lilac_layout_equal(&back, &layout));
        }

        dim = random_below(&random, layout.out_count);
        old = layout.out[dim].bits;
        bits = random_below(&random, old + 4);
        assert_true(lilac_layout_resize_out(&sized, &layout, tensor[dim], bits, NULL));
        index = any_index(&random, &layout);
        uint64_t place = lilac_layout_apply(&layout, index), to = lilac_layout_apply(&sized, index);
        for (uint32_t d = 0; d < layout.out_count; d++) {
            uint64_t coordinate = lilac_layout_coordinate(&layout, place, d);
            if (d == dim) {
                coordinate &= (UINT64_C(1) << bits) - 1;
            }
            assert_true(lilac_layout_coordinate(&sized, to, d) == coordinate);
        }
        if (bits >= old) {
            assert_true(lilac_layout_resize_out(&back, &sized, tensor[dim], old, NULL));
            assert_true(lilac_layout_equal(&back, &layout));
        }
    }
}

/* Seed 001: element i of a tensor is where the layout has i modulo its size, or, of a smaller
 * tensor, i, i + size, i + 2 size … */
static void fitting_wraps_and_broadcasts(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 57);
    for (uint32_t i = 0; i < scaled(600); i++) {
        lilac_layout layout, fitted;
        uint64_t columns[10];
        uint32_t onto = random_below(&random, 7), from = onto + random_below(&random, 3), more = 0;
        parts in = cut(&random, hardware, from), out = cut(&random, tensor, onto);
        if (i % 2 == 0) {
            distributed_columns(columns, &random, from, onto);
        } else {
            surjective_columns(columns, &random, from, onto);
        }
        layout_of(&layout, &in, &out, columns);
        uint32_t bits[4], order[4];
        for (uint32_t d = 0; d < out.count; d++) {
            uint32_t at = random_below(&random, d + 1);
            bits[d] = random_below(&random, 4);
            more += bits[d] > out.bits[d] ? bits[d] - out.bits[d] : 0;
            order[d] = order[at];
            order[at] = d;
        }
        assert_true(lilac_layout_fit(&fitted, &layout, bits, order, "register", NULL));
        assert_true(lilac_layout_is_surjective(&fitted));
        assert_true(!lilac_layout_is_distributed(&layout) || lilac_layout_is_distributed(&fitted));
        assert_int_equal(fitted.in[0].bits, layout.in[0].bits + more);
        uint32_t old = layout.in[0].bits;
        for (uint64_t index = 0; index < UINT64_C(1) << fitted.in_bits; index++) {
            uint64_t copy = index >> old & ((UINT64_C(1) << more) - 1);
            uint64_t within = (index & ((UINT64_C(1) << old) - 1)) | index >> (old + more) << old;
            uint64_t was = lilac_layout_apply(&layout, within);
            uint64_t is = lilac_layout_apply(&fitted, index);
            /* The copies are counted in the order asked for. */
            uint64_t counted = 0;
            for (uint32_t k = out.count; k-- > 0;) {
                uint32_t d = order[k];
                uint64_t there = lilac_layout_coordinate(&layout, was, d);
                uint64_t here = lilac_layout_coordinate(&fitted, is, d);
                if (bits[d] <= out.bits[d]) {
                    assert_true(here == (there & ((UINT64_C(1) << bits[d]) - 1)));
                } else {
                    assert_true((here & ((UINT64_C(1) << out.bits[d]) - 1)) == there);
                    counted = counted << (bits[d] - out.bits[d]) | here >> out.bits[d];
                }
            }
            assert_true(counted == copy);
        }
        /* To its own size it is itself. */
        assert_true(lilac_layout_fit(&fitted, &layout, out.bits, NULL, "register", NULL));
        assert_true(lilac_layout_equal(&fitted, &layout));
    }
}

/* ---- predicates ------------------------------------------------------------------------- */

/* By definition, going through all points of all maps of 3 bits to 3, cut in two ways. */
static void predicates_by_definition(void **state) {
    (void)state;
    static const char *const a[] = {"a", NULL}, *const b[] = {"b", NULL}, *const none[] = {NULL};
    static const char *const names[] = {"a", "b"};
    static const parts cuts[2] = {{2, names, {2, 1}}, {2, names, {1, 2}}};
    uint32_t counts[4] = {0};
    for (uint32_t c = 0; c < 4; c++) {
        for (uint64_t bits = 0; bits < 512; bits++) {
            lilac_layout layout;
            layout_of(&layout, &cuts[c & 1], &cuts[c >> 1],
                      (const uint64_t[]){bits & 7, bits >> 3 & 7, bits >> 6});
            uint32_t a_in = layout.in[0].bits, a_out = layout.out[0].bits, reached = 0;
            bool zero = true, identity = a_in == a_out, trivial = identity, memory_like = true;
            bool units = true;
            for (uint64_t x = 0; x < 8; x++) {
                uint64_t y = lilac_layout_apply(&layout, x);
                uint64_t x_a = x & ((1U << a_in) - 1), y_a = y & ((1U << a_out) - 1);
                reached |= 1U << y;
                zero = zero && (x != x_a || y_a == 0);
                identity = identity && (x != x_a || y_a == x_a);
                trivial = trivial && y_a == x_a &&
                          lilac_layout_apply(&layout, x ^ x_a) >> a_out == y >> a_out;
            }
            for (uint32_t k = 0; k < 3; k++) {
                int ones = __builtin_popcountll(layout.columns[k]);
                memory_like = memory_like && (ones == 1 || ones == 2);
                units = units && ones <= 1;
            }
            assert_true(lilac_layout_is_bijective(&layout) == (reached == 255));
            assert_true(lilac_layout_is_memory(&layout) == (memory_like && reached == 255));
            assert_true(lilac_layout_is_distributed(&layout) == (units && reached == 255));
            assert_true(lilac_layout_is_zero_over(&layout, a, a) == zero);
            assert_true(lilac_layout_is_identity_over(&layout, a) == identity);
            assert_true(lilac_layout_is_trivial_over(&layout, a) == trivial);
            assert_true(lilac_layout_is_zero_over(&layout, NULL, NULL) == (bits == 0));
            assert_true(lilac_layout_is_zero_over(&layout, none, NULL));
            assert_true(lilac_layout_is_trivial_over(&layout, none));
            bool whole = c % 3 == 0 && layout.columns[0] == 1 && layout.columns[1] == 2 &&
                         layout.columns[2] == 4;
            assert_true(lilac_layout_is_identity_over(&layout, NULL) == whole);
            assert_true(lilac_layout_is_trivial_over(&layout, NULL) == whole);
            lilac_layout quotient;
            bool divided = lilac_layout_quotient(&quotient, &layout, a, NULL);
            assert_true(divided == trivial);
            if (divided) {
                lilac_layout unit, again;
                lilac_layout_identity(&unit, a_in, "a", "a");
                assert_int_equal(quotient.in_count, 1);
                assert_true(lilac_layout_product(&again, &unit, &quotient, NULL));
                assert_true(lilac_layout_equal(&again, &layout));
            }
            counts[0] += lilac_layout_is_bijective(&layout);
            counts[1] += trivial;
            counts[2] += lilac_layout_is_memory(&layout);
            counts[3] += lilac_layout_is_trivial_over(&layout, b);
        }
    }
    assert_int_equal(counts[0], 4 * 168);
    assert_int_equal(counts[1], 2 + 16); /* what is left: 1 × 1 and 2 × 2 maps */
    assert_int_equal(counts[3], 2 + 16);
    assert_int_equal(counts[2], 4 * 96); /* ordered bases without the vector 111 */
}

/* What may be added, by definition; and no larger set of that input's bits may. */
static void additive_bits_are_the_largest_set(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 58);
    for (uint32_t i = 0; i < scaled(600); i++) {
        lilac_layout layout;
        uint64_t columns[7];
        uint32_t from = 1 + random_below(&random, 7), onto = 1 + random_below(&random, 7);
        parts in = cut(&random, hardware, from), out = cut(&random, tensor, onto);
        if (i % 2 == 0) {
            random_columns(columns, &random, from, onto);
            for (uint32_t k = 0; k < from; k++) { /* few bits set */
                columns[k] &= lilac_random_next(&random) & lilac_random_next(&random);
            }
        } else {
            distributed_columns(columns, &random, from, from < onto ? from : onto);
        }
        layout_of(&layout, &in, &out, columns);
        uint64_t touched = i % 3 == 0 ? 0 : UINT64_C(1) << random_below(&random, onto);
        uint64_t found = lilac_layout_additive_bits(&layout, "register", touched);
        for (uint64_t set = 0; set < UINT64_C(1) << in.bits[0]; set++) {
            bool additive = true;
            for (uint64_t x = 0; additive && x < UINT64_C(1) << from; x++) {
                uint64_t own = lilac_layout_apply(&layout, x & set);
                uint64_t rest = lilac_layout_apply(&layout, x & ~set);
                additive = lilac_layout_apply(&layout, x) == own + rest && (own & touched) == 0;
            }
            assert_true(!additive || (set & ~found) == 0);
            assert_true(additive || set != found);
        }
    }
}

/* The bits that are free hold copies, and without them each element is held once. */
static void free_bits_hold_copies(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 59);
    for (uint32_t i = 0; i < scaled(300); i++) {
        lilac_layout layout;
        uint64_t columns[10], seen[16] = {0};
        uint32_t onto = random_below(&random, 8), from = onto + random_below(&random, 3);
        parts in = cut(&random, hardware, from), out = cut(&random, tensor, onto);
        surjective_columns(columns, &random, from, onto);
        layout_of(&layout, &in, &out, columns);
        uint64_t mask = lilac_layout_free_mask(&layout), together = 0;
        for (uint32_t k = 0; k < in.count; k++) {
            together |= lilac_layout_free_bits(&layout, hardware[k])
                        << lilac_layout_in_start(&layout, k);
        }
        assert_true(together == mask);
        for (uint64_t x = 0; x < UINT64_C(1) << from; x++) {
            if ((x & mask) != 0) {
                continue;
            }
            uint64_t place = lilac_layout_apply(&layout, x);
            assert_false(seen[place >> 6] >> (place & 63) & 1);
            seen[place >> 6] |= UINT64_C(1) << (place & 63);
        }
        for (uint64_t place = 0; place < UINT64_C(1) << onto; place++) {
            assert_true(seen[place >> 6] >> (place & 63) & 1);
        }
    }
}

/* Every bit leads where its origin leads; origins have no replicated bit, and the bits that are not
 * replicated are the first basis among the columns. */
static void replicated_bits_have_origins(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 60);
    for (uint32_t i = 0; i < scaled(1000); i++) {
        lilac_layout layout;
        lilac_replication replication;
        uint64_t sums = 1,
                 span[64] = {0}; /* members of the span of the columns so far, from 0 on */
        random_layout(&layout, &random);
        if (layout.out_bits > 6) {
            continue;
        }
        lilac_layout_find_replication(&replication, layout.columns, layout.in_bits);
        assert_true(replication.replicated == lilac_layout_free_mask(&layout));
        for (uint32_t k = 0; k < layout.in_bits; k++) {
            const uint64_t column = layout.columns[k], own = UINT64_C(1) << k;
            bool known = false;
            for (uint64_t s = 0; s < sums; s++) {
                known |= span[s] == column;
            }
            assert_true(((replication.replicated & own) != 0) == known);
            assert_true((replication.origin[k] & replication.replicated) == 0);
            assert_true(known ? replication.origin[k] < own : replication.origin[k] == own);
            assert_true(lilac_layout_apply(&layout, replication.origin[k]) == column);
            for (uint64_t s = 0; !known && s < sums; s++) {
                span[sums + s] = span[s] ^ column;
            }
            sums <<= !known;
        }
    }
}

/* ---- application ------------------------------------------------------------------------ */

static void ranges_are_applied_one_by_one(void **state) {
    (void)state;
    enum { MOST = 3000 };
    static uint64_t wide[MOST], indices[MOST];
    static uint32_t narrow[MOST];
    lilac_random random;
    lilac_random_seed(&random, 60);
    for (uint32_t i = 0; i < scaled(600); i++) {
        lilac_layout layout;
        random_layout(&layout, &random);
        uint64_t size = UINT64_C(1) << layout.in_bits;
        uint64_t first = lilac_random_below(&random, size), count = size - first;
        if (count > MOST) {
            count = MOST;
        }
        if (i % 2 == 0) {
            count = lilac_random_below(&random, count + 1);
        }
        memset(wide, 0xAA, sizeof wide);
        assert_true(lilac_layout_apply_range(wide, &layout, first, count, NULL));
        assert_true(lilac_layout_apply_range32(narrow, &layout, first, count, NULL));
        for (uint64_t k = 0; k < count; k++) {
            assert_true(wide[k] == lilac_layout_apply(&layout, first + k));
            assert_true(narrow[k] == wide[k]);
            indices[k] = any_index(&random, &layout);
        }
        if (count < MOST) {
            assert_true(wide[count] == UINT64_C(0xAAAAAAAAAAAAAAAA));
        }
        for (uint32_t d = 0; d < layout.out_count; d++) {
            assert_true(lilac_layout_coordinates32(narrow, &layout, d, first, count, NULL));
            for (uint64_t k = 0; k < count; k++) {
                assert_true(narrow[k] == coordinate_named(&layout, wide[k], tensor[d]));
            }
        }
        assert_true(lilac_layout_apply_each(wide, &layout, indices, count, NULL));
        for (uint64_t k = 0; k < count; k++) {
            assert_true(wide[k] == lilac_layout_apply(&layout, indices[k]));
        }
        assert_true(lilac_layout_apply_each(indices, &layout, indices, count, NULL));
        assert_true(count == 0 || memcmp(indices, wide, count * sizeof wide[0]) == 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bases_and_masks_make_the_layout),
        cmocka_unit_test(strides_and_orders_number_elements),
        cmocka_unit_test(order_and_names_move_nothing),
        cmocka_unit_test(cutting_and_flattening_move_nothing),
        cmocka_unit_test(side_by_side),
        cmocka_unit_test(sizes_change_only_what_is_new),
        cmocka_unit_test(fitting_wraps_and_broadcasts),
        cmocka_unit_test(predicates_by_definition),
        cmocka_unit_test(additive_bits_are_the_largest_set),
        cmocka_unit_test(free_bits_hold_copies),
        cmocka_unit_test(replicated_bits_have_origins),
        cmocka_unit_test(ranges_are_applied_one_by_one),
    };
    return cmocka_run_group_tests_name("layout shapes", tests, NULL, NULL);
}
