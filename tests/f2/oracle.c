/* f2 and the inverses of layouts against an oracle: M4RI, a library for dense matrices over F2 that
 * works by rows, by tables and by block recursion, and shares nothing with the code here.
 *
 * All maps of up to 3 × 3 bits, and random ones of up to 64 × 64 and of chosen rank. Without M4RI
 * the test is a skip that says so. */
#include "support/random_pairs.h"

#ifndef LILAC_M4RI

#include <stdio.h>

int main(void) {
    puts("skipped: there is no M4RI (Debian: libm4ri-dev)");
    return 77;
}

#else

#include <lilac/f2.h>

#include <m4ri/m4ri.h>

static uint64_t mask_of(uint32_t bits) {
    return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

/* ---- between the two -------------------------------------------------------------------- */

static mzd_t *theirs(const lilac_f2_matrix *matrix) {
    mzd_t *result = mzd_init((rci_t)matrix->rows, (rci_t)matrix->columns);
    for (uint32_t c = 0; c < matrix->columns; c++) {
        for (uint32_t r = 0; r < matrix->rows; r++) {
            mzd_write_bit(result, (rci_t)r, (rci_t)c, (BIT)(matrix->column[c] >> r & 1));
        }
    }
    return result;
}

static mzd_t *theirs_layout(const lilac_layout *layout) {
    lilac_f2_matrix matrix = {layout->out_bits, layout->in_bits, {0}};
    memcpy(matrix.column, layout->columns, layout->in_bits * sizeof layout->columns[0]);
    return theirs(&matrix);
}

/* Whether this column of M4RI's matrix equals `word`. */
static bool column_is(const mzd_t *matrix, uint32_t column, uint64_t word) {
    for (rci_t r = 0; r < matrix->nrows; r++) {
        if (mzd_read_bit(matrix, r, (rci_t)column) != (int)(word >> r & 1)) {
            return false;
        }
    }
    return true;
}

static bool is_matrix(const mzd_t *matrix, const lilac_f2_matrix *expected) {
    if ((uint32_t)matrix->nrows != expected->rows || (uint32_t)matrix->ncols != expected->columns) {
        return false;
    }
    for (uint32_t c = 0; c < expected->columns; c++) {
        if (!column_is(matrix, c, expected->column[c])) {
            return false;
        }
    }
    return true;
}

static uint32_t their_rank(const lilac_f2_matrix *matrix) {
    if (matrix->rows == 0 || matrix->columns == 0) {
        return 0;
    }
    mzd_t *copy = theirs(matrix);
    uint32_t rank = (uint32_t)mzd_echelonize(copy, 0);
    mzd_free(copy);
    return rank;
}

/* ---- the comparisons -------------------------------------------------------------------- */

static void check_inverse(const lilac_f2_matrix *matrix, uint32_t rank) {
    lilac_f2_matrix inverse;
    bool full = rank == matrix->rows && rank == matrix->columns;
    assert_true(lilac_f2_inverse(&inverse, matrix) == full);
    if (!full || rank == 0) {
        return;
    }
    mzd_t *copy = theirs(matrix), *found = mzd_inv_m4ri(NULL, copy, 0);
    assert_non_null(found);
    assert_true(is_matrix(found, &inverse));
    mzd_free(copy);
    mzd_free(found);
}

/* M4RI's basis of the kernel must span the same space as ours. Returns it in reduced row echelon form
 * with the columns reversed, so that the first 1 of a row is its highest bit. */
static mzd_t *check_kernel(const lilac_f2_matrix *matrix, const lilac_f2_echelon *echelon) {
    uint32_t in = matrix->columns, dimension = in - echelon->rank;
    assert_int_equal(echelon->kernel_count, dimension);
    for (uint32_t i = 0; i < echelon->kernel_count; i++) {
        assert_true(lilac_f2_apply(matrix, echelon->kernel[i]) == 0);
    }
    mzd_t *copy = theirs(matrix), *kernel = mzd_kernel_left_pluq(copy, 0);
    mzd_free(copy);
    assert_true((kernel == NULL ? 0 : (uint32_t)kernel->ncols) == dimension);
    if (kernel == NULL) {
        return NULL;
    }
    mzd_t *rows = mzd_init(kernel->ncols, kernel->nrows);
    mzd_t *both = mzd_init(2 * kernel->ncols, kernel->nrows);
    for (rci_t i = 0; i < kernel->ncols; i++) {
        for (rci_t k = 0; k < kernel->nrows; k++) {
            mzd_write_bit(rows, i, (rci_t)in - 1 - k, mzd_read_bit(kernel, k, i));
            mzd_write_bit(both, i, k, mzd_read_bit(kernel, k, i));
            mzd_write_bit(both, kernel->ncols + i, k, (BIT)(echelon->kernel[i] >> k & 1));
        }
    }
    assert_true((uint32_t)mzd_echelonize(both, 1) == dimension);
    assert_true((uint32_t)mzd_echelonize(rows, 1) == dimension);
    mzd_free(both);
    mzd_free(kernel);
    return rows;
}

/* Both libraries must agree on whether the system has a solution. Ours must be the smallest one as an
 * integer: its bits at the leading positions of the kernel's reduced basis are 0. */
static void check_solution(const lilac_f2_matrix *matrix, const lilac_f2_echelon *echelon,
                           const mzd_t *kernel, uint64_t b) {
    uint32_t tall = matrix->rows > matrix->columns ? matrix->rows : matrix->columns;
    mzd_t *copy = theirs(matrix), *found = mzd_init((rci_t)tall, 1);
    for (uint32_t r = 0; r < matrix->rows; r++) {
        mzd_write_bit(found, (rci_t)r, 0, (BIT)(b >> r & 1));
    }
    bool solvable = mzd_solve_left(copy, found, 0, 1) == 0;
    uint64_t x = 0, y = 0;
    assert_true(lilac_f2_solve(echelon, b, &x) == solvable);
    if (solvable) {
        for (uint32_t c = 0; c < matrix->columns; c++) {
            y |= (uint64_t)mzd_read_bit(found, (rci_t)c, 0) << c;
        }
        assert_true(lilac_f2_apply(matrix, y) == b);
        assert_true(lilac_f2_apply(matrix, x) == b);
        assert_true((x & ~mask_of(matrix->columns)) == 0);
        for (rci_t i = 0; kernel != NULL && i < kernel->nrows; i++) {
            rci_t pivot = 0;
            while (!mzd_read_bit(kernel, i, pivot)) {
                pivot++;
            }
            assert_false(x >> (kernel->ncols - 1 - pivot) & 1);
        }
    }
    mzd_free(copy);
    mzd_free(found);
}

static void check_matrix(const lilac_f2_matrix *matrix, lilac_random *random) {
    uint32_t rank = their_rank(matrix);
    lilac_f2_matrix turned;
    lilac_f2_echelon echelon;
    assert_int_equal(lilac_f2_rank(matrix), rank);
    lilac_f2_transpose(&turned, matrix);
    assert_int_equal(lilac_f2_rank(&turned), rank);
    check_inverse(matrix, rank);
    if (matrix->rows == 0 || matrix->columns == 0) {
        return;
    }
    lilac_f2_reduce(&echelon, matrix);
    assert_int_equal(echelon.rank, rank);
    mzd_t *kernel = check_kernel(matrix, &echelon);
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t any = lilac_random_next(random);
        check_solution(matrix, &echelon, kernel, any & mask_of(matrix->rows));
        check_solution(matrix, &echelon, kernel,
                       lilac_f2_apply(matrix, any & mask_of(matrix->columns)));
    }
    if (kernel != NULL) {
        mzd_free(kernel);
    }
}

/* ---- the matrices ----------------------------------------------------------------------- */

static void all_small_matrices(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 71);
    for (uint32_t rows = 1; rows <= 3; rows++) {
        for (uint32_t columns = 1; columns <= 3; columns++) {
            for (uint64_t bits = 0; bits < UINT64_C(1) << (rows * columns); bits++) {
                lilac_f2_matrix matrix = {rows, columns, {0}};
                for (uint32_t c = 0; c < columns; c++) {
                    matrix.column[c] = bits >> (rows * c) & mask_of(rows);
                }
                check_matrix(&matrix, &random);
            }
        }
    }
}

static void random_matrix(lilac_f2_matrix *matrix, lilac_random *random, uint32_t rows,
                          uint32_t columns) {
    matrix->rows = rows;
    matrix->columns = columns;
    for (uint32_t c = 0; c < columns; c++) {
        matrix->column[c] = rows == 0 ? 0 : lilac_random_next(random) & mask_of(rows);
    }
}

/* The rank of A·B is at most the inner dimension, so products give matrices of chosen rank. */
static void random_matrices(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 72);
    for (uint32_t i = 0; i < scaled(300); i++) {
        uint32_t rows = 1 + random_below(&random, 64), columns = 1 + random_below(&random, 64);
        uint32_t through = 1 + random_below(&random, 64);
        if (i % 3 == 0) {
            columns = rows;
        }
        lilac_f2_matrix a, b, product;
        random_matrix(&a, &random, rows, through);
        random_matrix(&b, &random, through, columns);
        check_matrix(&a, &random);
        lilac_f2_multiply(&product, &a, &b);
        check_matrix(&product, &random);
        mzd_t *left = theirs(&a), *right = theirs(&b), *both = mzd_mul(NULL, left, right, 0);
        assert_true(is_matrix(both, &product));
        mzd_free(left);
        mzd_free(right);
        mzd_free(both);
    }
}

static void random_inverses(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 73);
    for (uint32_t i = 0; i < scaled(200); i++) {
        lilac_f2_matrix matrix;
        uint32_t size = 1 + random_below(&random, 64);
        lilac_f2_identity(&matrix, size);
        for (uint32_t k = 0; size > 1 && k < 6 * size; k++) {
            uint32_t a = random_below(&random, size), b = random_below(&random, size - 1);
            matrix.column[a] ^= matrix.column[b + (b >= a)];
        }
        check_inverse(&matrix, size);
        check_matrix(&matrix, &random);
    }
}

static uint32_t rank_of(const uint64_t *a, uint32_t a_count, const uint64_t *b, uint32_t b_count) {
    if (a_count + b_count == 0) {
        return 0;
    }
    mzd_t *rows = mzd_init((rci_t)(a_count + b_count), 64);
    for (uint32_t i = 0; i < a_count + b_count; i++) {
        uint64_t word = i < a_count ? a[i] : b[i - a_count];
        for (rci_t k = 0; k < 64; k++) {
            mzd_write_bit(rows, (rci_t)i, k, (BIT)(word >> k & 1));
        }
    }
    uint32_t rank = (uint32_t)mzd_echelonize(rows, 0);
    mzd_free(rows);
    return rank;
}

/* Whether a ⊆ b: adding a's vectors to b's basis does not raise the rank. */
static bool within(const lilac_f2_space *a, const lilac_f2_space *b) {
    return rank_of(a->basis, a->dimension, b->basis, b->dimension) == b->dimension;
}

static void subspaces(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 74);
    for (uint32_t i = 0; i < scaled(300); i++) {
        uint64_t vectors[2][64];
        uint32_t bits = 1 + random_below(&random, 64), count[2];
        lilac_f2_space space[2], sum, common, rest, all;
        for (uint32_t k = 0; k < 2; k++) {
            count[k] = random_below(&random, bits + 1);
            for (uint32_t n = 0; n < count[k]; n++) {
                vectors[k][n] =
                    lilac_random_next(&random) & lilac_random_next(&random) & mask_of(bits);
            }
            for (uint32_t n = 0; k == 1 && n < count[1] && n < count[0]; n += 2) {
                vectors[1][n] = vectors[0][n]; /* something in common */
            }
            lilac_f2_span(&space[k], vectors[k], count[k]);
            assert_int_equal(space[k].dimension, rank_of(vectors[k], count[k], NULL, 0));
            assert_int_equal(rank_of(space[k].basis, space[k].dimension, NULL, 0),
                             space[k].dimension);
        }
        uint32_t together =
            rank_of(space[0].basis, space[0].dimension, space[1].basis, space[1].dimension);
        lilac_f2_sum(&sum, &space[0], &space[1]);
        assert_int_equal(sum.dimension, together);
        lilac_f2_intersection(&common, &space[0], &space[1]);
        assert_int_equal(common.dimension, space[0].dimension + space[1].dimension - together);
        for (uint32_t k = 0; k < 2; k++) {
            assert_true(within(&space[k], &sum));
            assert_true(within(&common, &space[k]));
        }
        lilac_f2_complement(&rest, &sum, bits);
        lilac_f2_sum(&all, &sum, &rest);
        assert_int_equal(rest.dimension, bits - sum.dimension);
        assert_int_equal(rank_of(sum.basis, sum.dimension, rest.basis, rest.dimension), bits);
        assert_int_equal(all.dimension, bits);
    }
}

/* ---- layouts ---------------------------------------------------------------------------- */

static void expect_product(const lilac_layout *a, const lilac_layout *b,
                           const lilac_layout *product) {
    mzd_t *left = theirs_layout(a), *right = theirs_layout(b);
    mzd_t *both = mzd_mul(NULL, left, right, 0);
    for (uint32_t c = 0; c < product->in_bits; c++) {
        assert_true(column_is(both, c, product->columns[c]));
    }
    mzd_free(left);
    mzd_free(right);
    mzd_free(both);
}

/* Whether M4RI's product of a and b is the identity. */
static void expect_unit(const lilac_layout *a, const lilac_layout *b) {
    mzd_t *left = theirs_layout(a), *right = theirs_layout(b);
    mzd_t *both = mzd_mul(NULL, left, right, 0), *unit = mzd_init(both->nrows, both->ncols);
    mzd_set_ui(unit, 1);
    assert_true(mzd_equal(both, unit));
    mzd_free(left);
    mzd_free(right);
    mzd_free(both);
    mzd_free(unit);
}

static void layouts(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 75);
    for (uint32_t i = 0; i < scaled(400); i++) {
        uint64_t columns[MAX_BITS];
        uint32_t onto = 1 + random_below(&random, MAX_BITS);
        uint32_t from = onto + random_below(&random, MAX_BITS - onto + 1);
        parts in = cut(&random, hardware, from), in_b = cut(&random, hardware, from),
              out = cut(&random, tensor, onto);
        lilac_layout a, b, inverse, conversion, again;
        random_columns(columns, &random, from, onto);
        layout_of(&a, &in, &out, columns);
        surjective_columns(columns, &random, from, onto);
        layout_of(&b, &in_b, &out, columns);
        mzd_t *copy = theirs_layout(&a);
        uint32_t rank = (uint32_t)mzd_echelonize(copy, 0);
        mzd_free(copy);
        assert_int_equal(lilac_layout_rank(&a), rank);
        assert_true(lilac_layout_is_injective(&a) == (rank == from));
        assert_true(lilac_layout_is_surjective(&a) == (rank == onto));
        assert_true(lilac_layout_is_bijective(&a) == (rank == onto && rank == from));
        assert_int_equal(__builtin_popcountll(lilac_layout_free_mask(&a)), from - rank);

        assert_true(lilac_layout_pseudoinvert(&inverse, &b, NULL));
        expect_unit(&b, &inverse);
        if (from == onto) {
            assert_true(lilac_layout_invert(&inverse, &b, NULL));
            expect_unit(&inverse, &b);
        }
        assert_true(lilac_layout_invert_compose(&conversion, &a, &b, NULL));
        expect_product(&b, &conversion, &a);
        assert_true(lilac_layout_compose(&again, &inverse, &a, NULL));
        expect_product(&inverse, &a, &again);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_small_matrices),
        cmocka_unit_test(random_matrices),
        cmocka_unit_test(random_inverses),
        cmocka_unit_test(subspaces),
        cmocka_unit_test(layouts),
    };
    int failed = cmocka_run_group_tests_name("F2 against M4RI", tests, NULL, NULL);
    m4ri_fini();
    return failed;
}

#endif
