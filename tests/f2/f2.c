/* f2: identities of matrices and subspaces, on all small ones and on random large ones. */

#include <lilac/f2.h>

#include "support/test.h"

static void random_matrix(lilac_f2_matrix *matrix, lilac_random *random, uint32_t rows,
                          uint32_t columns) {
    matrix->rows = rows;
    matrix->columns = columns;
    for (uint32_t c = 0; c < columns; c++) {
        matrix->column[c] = lilac_random_next(random) & low_bits(rows);
    }
}

/* Invertible by construction: a product of random elementary column operations. */
static void random_invertible(lilac_f2_matrix *matrix, lilac_random *random, uint32_t size) {
    lilac_f2_identity(matrix, size);
    for (uint32_t i = 0; size > 1 && i < 8 * size; i++) {
        uint32_t a = (uint32_t)lilac_random_below(random, size);
        uint32_t b = (uint32_t)lilac_random_below(random, size - 1);
        matrix->column[a] ^= matrix->column[b + (b >= a)];
    }
}

static bool is_identity(const lilac_f2_matrix *matrix, uint32_t size) {
    lilac_f2_matrix identity;
    lilac_f2_identity(&identity, size);
    return matrix->rows == size && matrix->columns == size &&
           memcmp(matrix->column, identity.column, size * sizeof identity.column[0]) == 0;
}

static uint32_t rank_by_counting(const lilac_f2_matrix *matrix) {
    /* 2^rank distinct values. */
    uint64_t seen[4] = {0};
    uint32_t values = 0, rank = 0;
    for (uint64_t x = 0; x < UINT64_C(1) << matrix->columns; x++) {
        seen[lilac_f2_apply(matrix, x) >> 6] |= UINT64_C(1) << (lilac_f2_apply(matrix, x) & 63);
    }
    for (uint32_t i = 0; i < 4; i++) {
        values += (uint32_t)__builtin_popcountll(seen[i]);
    }
    while (UINT32_C(1) << rank < values) {
        rank++;
    }
    return rank;
}

/* What the elimination promises, on one matrix. */
static void check_reduction(const lilac_f2_matrix *matrix) {
    lilac_f2_echelon echelon;
    lilac_f2_reduce(&echelon, matrix);
    assert_int_equal(echelon.rank + echelon.kernel_count, matrix->columns);
    uint64_t dependent = 0;
    for (uint32_t i = 0; i < echelon.kernel_count; i++) {
        assert_int_not_equal(echelon.kernel[i], 0);
        assert_int_equal(lilac_f2_apply(matrix, echelon.kernel[i]), 0);
        uint64_t top = UINT64_C(1) << (63 - __builtin_clzll(echelon.kernel[i]));
        assert_int_equal(dependent & top, 0);
        dependent |= top;
    }
    for (uint32_t i = 0; i < echelon.rank; i++) {
        assert_int_equal(lilac_f2_apply(matrix, echelon.combination[i]), echelon.vector[i]);
        assert_int_equal(echelon.combination[i] & dependent, 0);
        assert_int_equal(echelon.vector[i] >> echelon.pivot[i], 1);
        for (uint32_t k = 0; k < echelon.rank; k++) {
            assert_true((echelon.vector[k] >> echelon.pivot[i] & 1) == (k == i));
        }
    }
}

static void reduction_keeps_its_promises(void **state) {
    (void)state;
    lilac_f2_matrix matrix;
    for (uint32_t bits = 0; bits < 1U << 12; bits++) { /* all 4 × 3 matrices */
        matrix.rows = 4;
        matrix.columns = 3;
        for (uint32_t c = 0; c < 3; c++) {
            matrix.column[c] = bits >> (4 * c) & 15;
        }
        check_reduction(&matrix);
        assert_int_equal(lilac_f2_rank(&matrix), rank_by_counting(&matrix));
    }
    lilac_random random;
    lilac_random_seed(&random, 11);
    for (uint32_t i = 0; i < 300; i++) {
        random_matrix(&matrix, &random, (uint32_t)lilac_random_below(&random, 65),
                      (uint32_t)lilac_random_below(&random, 65));
        check_reduction(&matrix);
    }
}

/* The solution is the smallest of all, and none is found exactly when there is none. */
static void solutions_are_smallest(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 12);
    for (uint32_t i = 0; i < 400; i++) {
        lilac_f2_matrix matrix;
        lilac_f2_echelon echelon;
        random_matrix(&matrix, &random, 5, (uint32_t)lilac_random_below(&random, 8));
        lilac_f2_reduce(&echelon, &matrix);
        for (uint64_t b = 0; b < 32; b++) {
            uint64_t x = 0, count = UINT64_C(1) << matrix.columns, first = 0, found = 0;
            while (first < count && lilac_f2_apply(&matrix, first) != b) {
                first++;
            }
            bool solved = lilac_f2_solve(&echelon, b, &found);
            assert_true(solved == (first < count));
            x = solved ? found : first;
            assert_int_equal(x, first);
        }
    }
}

static void inverse_undoes(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 13);
    uint32_t invertible = 0;
    for (uint32_t bits = 0; bits < 512; bits++) {
        lilac_f2_matrix matrix = {3, 3, {bits & 7, bits >> 3 & 7, bits >> 6}}, inverse, product;
        if (!lilac_f2_inverse(&inverse, &matrix)) {
            continue;
        }
        invertible++;
        lilac_f2_multiply(&product, &matrix, &inverse);
        assert_true(is_identity(&product, 3));
    }
    assert_int_equal(invertible, 7 * 6 * 4); /* |GL(3, 2)| */
    for (uint32_t size = 0; size <= 64; size++) {
        lilac_f2_matrix matrix, inverse, product;
        random_invertible(&matrix, &random, size);
        assert_true(lilac_f2_inverse(&inverse, &matrix));
        lilac_f2_multiply(&product, &matrix, &inverse);
        assert_true(is_identity(&product, size));
        lilac_f2_multiply(&inverse, &inverse, &matrix); /* result may alias */
        assert_true(is_identity(&inverse, size));
        if (size > 0) {
            matrix.column[size - 1] = size > 1 ? matrix.column[0] : 0;
            assert_false(lilac_f2_inverse(&inverse, &matrix));
        }
    }
    lilac_f2_matrix wide = {1, 2, {1, 0}};
    assert_false(lilac_f2_inverse(&wide, &wide));
}

static void multiplication_is_composition(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 14);
    for (uint32_t i = 0; i < 200; i++) {
        uint32_t n[4];
        for (uint32_t k = 0; k < 4; k++) {
            n[k] = 1 + (uint32_t)lilac_random_below(&random, 64);
        }
        lilac_f2_matrix a, b, c, ab, bc, left, right;
        random_matrix(&a, &random, n[0], n[1]);
        random_matrix(&b, &random, n[1], n[2]);
        random_matrix(&c, &random, n[2], n[3]);
        lilac_f2_multiply(&ab, &a, &b);
        lilac_f2_multiply(&bc, &b, &c);
        lilac_f2_multiply(&left, &ab, &c);
        lilac_f2_multiply(&right, &a, &bc);
        assert_memory_equal(left.column, right.column, n[3] * sizeof left.column[0]);
        /* (ab)' = b' a', and transposing twice is nothing. */
        lilac_f2_matrix at, bt, abt, twice;
        lilac_f2_transpose(&at, &a);
        lilac_f2_transpose(&bt, &b);
        lilac_f2_multiply(&bt, &bt, &at);
        lilac_f2_transpose(&abt, &ab);
        assert_memory_equal(abt.column, bt.column, n[0] * sizeof abt.column[0]);
        lilac_f2_transpose(&twice, &abt);
        assert_memory_equal(twice.column, ab.column, n[2] * sizeof twice.column[0]);
        uint64_t x = lilac_random_next(&random) & low_bits(n[2]);
        assert_int_equal(lilac_f2_apply(&ab, x), lilac_f2_apply(&a, lilac_f2_apply(&b, x)));
    }
}

static void random_space(lilac_f2_space *space, lilac_random *random, uint32_t bits) {
    uint64_t vectors[64];
    uint32_t count = (uint32_t)lilac_random_below(random, bits + 1);
    for (uint32_t i = 0; i < count; i++) {
        vectors[i] = lilac_random_next(random) & low_bits(bits);
    }
    lilac_f2_span(space, vectors, count);
}

/* Membership of sums and intersections, vector by vector. */
static void subspaces_by_membership(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 15);
    for (uint32_t i = 0; i < 300; i++) {
        lilac_f2_space a, b, sum, common, again;
        random_space(&a, &random, 6);
        random_space(&b, &random, 6);
        lilac_f2_sum(&sum, &a, &b);
        lilac_f2_intersection(&common, &a, &b);
        assert_int_equal(sum.dimension + common.dimension, a.dimension + b.dimension);
        for (uint64_t v = 0; v < 64; v++) {
            bool in_sum = false;
            for (uint64_t w = 0; w < 64 && !in_sum; w++) {
                in_sum = lilac_f2_contains(&a, w) && lilac_f2_contains(&b, v ^ w);
            }
            assert_true(lilac_f2_contains(&sum, v) == in_sum);
            assert_true(lilac_f2_contains(&common, v) ==
                        (lilac_f2_contains(&a, v) && lilac_f2_contains(&b, v)));
        }
        /* Equal spaces have equal bases. */
        lilac_f2_sum(&again, &b, &a);
        assert_int_equal(again.dimension, sum.dimension);
        assert_memory_equal(again.basis, sum.basis, sum.dimension * sizeof sum.basis[0]);
    }
}

static void large_subspaces_by_dimension(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 16);
    for (uint32_t i = 0; i < 200; i++) {
        lilac_f2_space a, b, sum, common, rest;
        random_space(&a, &random, 64);
        random_space(&b, &random, 64);
        lilac_f2_sum(&sum, &a, &b);
        lilac_f2_intersection(&common, &a, &b);
        assert_int_equal(sum.dimension + common.dimension, a.dimension + b.dimension);
        for (uint32_t k = 0; k < common.dimension; k++) {
            assert_true(lilac_f2_contains(&a, common.basis[k]));
            assert_true(lilac_f2_contains(&b, common.basis[k]));
        }
        lilac_f2_complement(&rest, &a, 64);
        lilac_f2_sum(&sum, &a, &rest);
        lilac_f2_intersection(&common, &a, &rest);
        assert_int_equal(sum.dimension, 64);
        assert_int_equal(common.dimension, 0);
    }
}

/* A unit vector is in the complement exactly when the space and the units before do not reach it.
 */
static void complement_is_lowest_first(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 17);
    for (uint32_t i = 0; i < 200; i++) {
        lilac_f2_space space, rest, grown;
        random_space(&space, &random, 7);
        lilac_f2_complement(&rest, &space, 7);
        uint32_t next = 0;
        grown = space;
        for (uint32_t bit = 0; bit < 7; bit++) {
            lilac_f2_space unit = {1, {UINT64_C(1) << bit}};
            if (!lilac_f2_contains(&grown, unit.basis[0])) {
                assert_true(next < rest.dimension);
                assert_int_equal(rest.basis[next++], unit.basis[0]);
            }
            lilac_f2_sum(&grown, &grown, &unit);
        }
        assert_int_equal(next, rest.dimension);
    }
}

/* ---- the incremental basis --------------------------------------------------------------- */

/* Adds the vectors with unit vectors as tags and checks the basis against all members of the space:
 * member[v] says whether v is a sum of them. */
static void check_basis(const uint64_t *vectors, uint32_t count, uint32_t bits) {
    bool member[256] = {true};
    uint64_t accepted = 0, pivots = 0;
    lilac_f2_matrix matrix = {bits, count, {0}};
    lilac_f2_basis basis, copy;
    lilac_f2_basis_init(&basis);
    for (uint32_t i = 0; i < count; i++) {
        const bool known = member[vectors[i]];
        matrix.column[i] = vectors[i];
        assert_true(lilac_f2_basis_contains(&basis, vectors[i]) == known);
        assert_true(lilac_f2_basis_add(&basis, vectors[i], UINT64_C(1) << i) == !known);
        accepted |= known ? 0 : UINT64_C(1) << i;
        for (uint64_t v = 0; v >> bits == 0; v++) { /* closed under adding the new vector */
            member[v ^ vectors[i]] |= member[v];
        }
    }
    for (uint64_t v = 1; v >> bits == 0; v++) {
        pivots |= member[v] ? UINT64_C(1) << highest_bit(v) : 0;
    }
    assert_true(basis.pivots == pivots);
    assert_int_equal(lilac_f2_basis_dimension(&basis), lilac_f2_rank(&matrix));
    lilac_f2_basis_copy(&copy, &basis);
    for (uint64_t v = 0; v >> bits == 0; v++) {
        uint64_t tag, again;
        const uint64_t rest = lilac_f2_basis_reduce(&basis, v, &tag);
        assert_true((rest == 0) == member[v]);
        assert_true((rest & pivots) == 0 && (tag & ~accepted) == 0);
        assert_true((v ^ rest) == lilac_f2_apply(&matrix, tag));
        assert_true(lilac_f2_basis_tag(&basis, v) == tag);
        assert_true(lilac_f2_basis_reduce(&copy, v, &again) == rest && again == tag);
        /* The remainder is one for each coset, and linear. */
        for (uint32_t i = 0; i < count; i++) {
            assert_true(lilac_f2_basis_reduce(&basis, v ^ vectors[i], &again) == rest);
        }
    }
}

static void basis_of_all_short_lists(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 1U << 12; bits++) { /* four vectors of three bits */
        const uint64_t vectors[4] = {bits & 7, bits >> 3 & 7, bits >> 6 & 7, bits >> 9};
        check_basis(vectors, 4, 3);
    }
    lilac_random random;
    lilac_random_seed(&random, 18);
    for (uint32_t i = 0; i < 200; i++) {
        uint64_t vectors[10];
        const uint32_t count = (uint32_t)lilac_random_below(&random, 11);
        for (uint32_t k = 0; k < count; k++) {
            vectors[k] = lilac_random_next(&random) & low_bits(8);
        }
        check_basis(vectors, count, 8);
    }
}

/* A basis whose tags are images is the graph of a linear map. */
static void tags_are_linear(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 19);
    for (uint32_t i = 0; i < 200; i++) {
        lilac_f2_matrix map, other;
        lilac_f2_basis graph;
        random_invertible(&map, &random, 64);
        random_matrix(&other, &random, 64, 64);
        lilac_f2_basis_init(&graph);
        for (uint32_t k = 0; k < 64; k++) {
            assert_true(lilac_f2_basis_add(&graph, map.column[k], other.column[k]));
        }
        const uint64_t x = lilac_random_next(&random);
        assert_true(lilac_f2_basis_tag(&graph, lilac_f2_apply(&map, x)) ==
                    lilac_f2_apply(&other, x));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reduction_keeps_its_promises),
        cmocka_unit_test(solutions_are_smallest),
        cmocka_unit_test(inverse_undoes),
        cmocka_unit_test(multiplication_is_composition),
        cmocka_unit_test(subspaces_by_membership),
        cmocka_unit_test(large_subspaces_by_dimension),
        cmocka_unit_test(complement_is_lowest_first),
        cmocka_unit_test(basis_of_all_short_lists),
        cmocka_unit_test(tags_are_linear),
    };
    return cmocka_run_group_tests_name("f2", tests, NULL, NULL);
}
