/* f2: matrices and subspaces over the field of two elements, one machine word a vector.
 *
 * Everything is computed by the elimination of f2.h (lilac_f2_basis). Vectors are added in order,
 * and the first ones enter the basis. Where a basis is a result it is completed: each vector is
 * reduced by those with lower pivots.
 *
 *      bit   5 4 3 2 1 0
 *      v0    1 . * . . *      pivot 5      No vector has another's pivot bit, so the vectors whose
 *      v1    . 1 * . . *      pivot 4      sum is b are read off b's pivot bits at once. Equal
 *      v2    . . . 1 . *      pivot 2      spaces have equal completed bases.
 *      v3    . . . . 1 *      pivot 1
 *
 * When a column is the sum of earlier columns, the mask of these columns with its own bit is a
 * member of the kernel, and its highest bit is that very column.
 */
#include <lilac/f2.h>

#include <assert.h>
#include <string.h>

uint64_t lilac_f2_apply(const lilac_f2_matrix *matrix, uint64_t vector) {
    assert(matrix->columns == 64 || vector >> matrix->columns == 0);
    uint64_t sum = 0;
    for (; vector != 0; vector &= vector - 1) {
        sum ^= matrix->column[lowest_bit(vector)];
    }
    return sum;
}

void lilac_f2_identity(lilac_f2_matrix *result, uint32_t size) {
    assert(size <= 64);
    result->rows = result->columns = size;
    for (uint32_t i = 0; i < size; i++) {
        result->column[i] = UINT64_C(1) << i;
    }
}

void lilac_f2_transpose(lilac_f2_matrix *result, const lilac_f2_matrix *matrix) {
    uint64_t row[64] = {0};
    for (uint32_t c = 0; c < matrix->columns; c++) {
        for (uint64_t rest = matrix->column[c]; rest != 0; rest &= rest - 1) {
            row[lowest_bit(rest)] |= UINT64_C(1) << c;
        }
    }
    uint32_t rows = matrix->rows;
    result->rows = matrix->columns;
    result->columns = rows;
    memcpy(result->column, row, rows * sizeof row[0]);
}

void lilac_f2_multiply(lilac_f2_matrix *result, const lilac_f2_matrix *a,
                       const lilac_f2_matrix *b) {
    assert(a->columns == b->rows);
    uint64_t column[64];
    for (uint32_t c = 0; c < b->columns; c++) {
        column[c] = lilac_f2_apply(a, b->column[c]);
    }
    uint32_t rows = a->rows, columns = b->columns;
    result->rows = rows;
    result->columns = columns;
    memcpy(result->column, column, columns * sizeof column[0]);
}

uint32_t lilac_f2_rank(const lilac_f2_matrix *matrix) {
    lilac_f2_echelon echelon;
    lilac_f2_reduce(&echelon, matrix);
    return echelon.rank;
}

/* Clears each vector's bits at the other pivots. A vector has only lower pivots than its own, and
 * those below are complete already. */
static void complete(lilac_f2_basis *basis) {
    for (uint64_t rest = basis->pivots; rest != 0; rest &= rest - 1) {
        const uint32_t pivot = lowest_bit(rest);
        uint64_t *vector = &basis->vector[pivot], tag;
        const uint64_t top = UINT64_C(1) << pivot;
        *vector = lilac_f2_basis_reduce(basis, *vector ^ top, &tag) ^ top;
        basis->tag[pivot] ^= tag;
    }
}

void lilac_f2_reduce(lilac_f2_echelon *result, const lilac_f2_matrix *matrix) {
    lilac_f2_basis basis;
    lilac_f2_basis_init(&basis);
    result->rank = result->kernel_count = 0;
    for (uint32_t c = 0; c < matrix->columns; c++) {
        const uint64_t own = UINT64_C(1) << c;
        uint64_t combination;
        const uint64_t vector = lilac_f2_basis_reduce(&basis, matrix->column[c], &combination);
        if (lilac_f2_basis_add(&basis, vector, combination ^ own)) {
            result->pivot[result->rank++] = (uint8_t)highest_bit(vector);
        } else {
            result->kernel[result->kernel_count++] = combination ^ own;
        }
    }
    complete(&basis);
    for (uint32_t i = 0; i < result->rank; i++) {
        result->vector[i] = basis.vector[result->pivot[i]];
        result->combination[i] = basis.tag[result->pivot[i]];
    }
}

bool lilac_f2_solve(const lilac_f2_echelon *echelon, uint64_t b, uint64_t *x) {
    uint64_t left = b, solution = 0;
    for (uint32_t i = 0; i < echelon->rank; i++) {
        if (b >> echelon->pivot[i] & 1) {
            left ^= echelon->vector[i];
            solution ^= echelon->combination[i];
        }
    }
    if (left != 0) {
        return false;
    }
    *x = solution;
    return true;
}

bool lilac_f2_inverse(lilac_f2_matrix *result, const lilac_f2_matrix *matrix) {
    lilac_f2_echelon echelon;
    if (matrix->rows != matrix->columns) {
        return false;
    }
    lilac_f2_reduce(&echelon, matrix);
    if (echelon.rank != matrix->rows) {
        return false;
    }
    /* At full rank every reduced vector is the unit vector of its pivot. */
    result->rows = result->columns = echelon.rank;
    for (uint32_t i = 0; i < echelon.rank; i++) {
        result->column[echelon.pivot[i]] = echelon.combination[i];
    }
    return true;
}

/* ---- subspaces -------------------------------------------------------------------------- */

static void add_all(lilac_f2_basis *basis, const uint64_t *vectors, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        (void)lilac_f2_basis_add(basis, vectors[i], 0);
    }
}

static void take_basis(lilac_f2_space *result, lilac_f2_basis *basis) {
    complete(basis);
    result->dimension = 0;
    for (uint64_t rest = basis->pivots; rest != 0; rest &= rest - 1) {
        result->basis[result->dimension++] = basis->vector[lowest_bit(rest)];
    }
}

void lilac_f2_span(lilac_f2_space *result, const uint64_t *vectors, uint32_t count) {
    lilac_f2_basis basis;
    lilac_f2_basis_init(&basis);
    add_all(&basis, vectors, count);
    take_basis(result, &basis);
}

bool lilac_f2_contains(const lilac_f2_space *space, uint64_t vector) {
    lilac_f2_basis basis;
    lilac_f2_basis_init(&basis);
    add_all(&basis, space->basis, space->dimension);
    return lilac_f2_basis_contains(&basis, vector);
}

void lilac_f2_sum(lilac_f2_space *result, const lilac_f2_space *a, const lilac_f2_space *b) {
    lilac_f2_basis basis;
    lilac_f2_basis_init(&basis);
    add_all(&basis, a->basis, a->dimension);
    add_all(&basis, b->basis, b->dimension);
    take_basis(result, &basis);
}

/* Zassenhaus: a's vectors have themselves as their tags and b's have 0. Where a sum of a's vectors
 * equals a sum of b's, the tag is that vector. */
void lilac_f2_intersection(lilac_f2_space *result, const lilac_f2_space *a,
                           const lilac_f2_space *b) {
    lilac_f2_basis sum, common;
    lilac_f2_basis_init(&sum);
    lilac_f2_basis_init(&common);
    for (uint32_t i = 0; i < a->dimension; i++) {
        (void)lilac_f2_basis_add(&sum, a->basis[i], a->basis[i]);
    }
    for (uint32_t i = 0; i < b->dimension; i++) {
        uint64_t tag;
        const uint64_t rest = lilac_f2_basis_reduce(&sum, b->basis[i], &tag);
        if (!lilac_f2_basis_add(&sum, rest, tag)) {
            (void)lilac_f2_basis_add(&common, tag, 0);
        }
    }
    take_basis(result, &common);
}

void lilac_f2_complement(lilac_f2_space *result, const lilac_f2_space *space, uint32_t bits) {
    assert(bits <= 64);
    lilac_f2_basis basis;
    lilac_f2_basis_init(&basis);
    add_all(&basis, space->basis, space->dimension);
    /* e_i lies in the span of the space and the unit vectors below it exactly when a member of the
     * space has highest bit i. */
    result->dimension = 0;
    for (uint64_t rest = low_bits(bits) & ~basis.pivots; rest != 0; rest &= rest - 1) {
        result->basis[result->dimension++] = rest & (~rest + 1);
    }
}
