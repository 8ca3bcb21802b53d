/* f2: elimination over the field of two elements, one machine word a vector.
 *
 * Everything rests on one elimination (Gauss-Jordan by columns). Columns are taken in order; each
 * is reduced by the vectors found so far, and what is left of it, if anything, becomes a vector
 * whose pivot is its highest set bit:
 *
 *      bit   5 4 3 2 1 0
 *      v0    1 . * . . *      pivot 5      No vector has another's pivot bit, so the vectors that
 *      v1    . 1 * . . *      pivot 4      sum to b are read off b's pivot bits at once. The pivot
 *      v2    . . . 1 . *      pivot 2      bits are the highest bits of the members of the space.
 *      v3    . . . . 1 *      pivot 1
 *
 * The highest bit stays the pivot when a later vector is subtracted to clear its pivot bit p: a
 * vector that has bit p has its own pivot above p. Of a column that comes to nothing, the
 * combination that did it is a member of the kernel, and its highest bit is that very column.
 */
#include <lilac/f2.h>

#include <assert.h>
#include <string.h>

static uint32_t lowest_bit(uint64_t word) {
    return (uint32_t)__builtin_ctzll(word);
}

static uint32_t highest_bit(uint64_t word) {
    return 63U - (uint32_t)__builtin_clzll(word);
}

uint64_t lilac_f2_apply(const lilac_f2_matrix *matrix, uint64_t vector) {
    assert(matrix->columns == 64 || vector >> matrix->columns == 0);
    uint64_t sum = 0;
    for (; vector != 0; vector &= vector - 1)
        sum ^= matrix->column[lowest_bit(vector)];
    return sum;
}

void lilac_f2_identity(lilac_f2_matrix *result, uint32_t size) {
    assert(size <= 64);
    result->rows = result->columns = size;
    for (uint32_t i = 0; i < size; i++)
        result->column[i] = UINT64_C(1) << i;
}

void lilac_f2_transpose(lilac_f2_matrix *result, const lilac_f2_matrix *matrix) {
    uint64_t row[64] = {0};
    for (uint32_t c = 0; c < matrix->columns; c++) {
        for (uint64_t rest = matrix->column[c]; rest != 0; rest &= rest - 1)
            row[lowest_bit(rest)] |= UINT64_C(1) << c;
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
    for (uint32_t c = 0; c < b->columns; c++)
        column[c] = lilac_f2_apply(a, b->column[c]);
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

void lilac_f2_reduce(lilac_f2_echelon *result, const lilac_f2_matrix *matrix) {
    uint8_t at[64]; /* index of the vector with this pivot bit */
    uint64_t pivots = 0;
    result->rank = result->kernel_count = 0;
    for (uint32_t c = 0; c < matrix->columns; c++) {
        uint64_t vector = matrix->column[c];
        uint64_t combination = UINT64_C(1) << c;
        for (uint64_t rest = vector & pivots; rest != 0; rest &= rest - 1) {
            uint32_t i = at[lowest_bit(rest)];
            vector ^= result->vector[i];
            combination ^= result->combination[i];
        }
        if (vector == 0) {
            result->kernel[result->kernel_count++] = combination;
            continue;
        }
        uint32_t pivot = highest_bit(vector);
        for (uint32_t i = 0; i < result->rank; i++) {
            if (result->vector[i] >> pivot & 1) {
                result->vector[i] ^= vector;
                result->combination[i] ^= combination;
            }
        }
        at[pivot] = (uint8_t)result->rank;
        pivots |= UINT64_C(1) << pivot;
        result->vector[result->rank] = vector;
        result->combination[result->rank] = combination;
        result->pivot[result->rank] = (uint8_t)pivot;
        result->rank++;
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
    if (left != 0)
        return false;
    *x = solution;
    return true;
}

bool lilac_f2_inverse(lilac_f2_matrix *result, const lilac_f2_matrix *matrix) {
    lilac_f2_echelon echelon;
    if (matrix->rows != matrix->columns)
        return false;
    lilac_f2_reduce(&echelon, matrix);
    if (echelon.rank != matrix->rows)
        return false;
    /* At full rank every reduced vector is the unit vector of its pivot. */
    result->rows = result->columns = echelon.rank;
    for (uint32_t i = 0; i < echelon.rank; i++)
        result->column[echelon.pivot[i]] = echelon.combination[i];
    return true;
}

/* ---- subspaces -------------------------------------------------------------------------- */

/* The same elimination without combinations, kept indexed by pivot: of[p] has highest bit p, or
 * is zero. Takes any number of vectors, one after another. */
typedef struct pivot_table {
    uint64_t pivots;
    uint64_t of[64];
} pivot_table;

static uint64_t remainder_of(const pivot_table *table, uint64_t vector) {
    for (uint64_t rest = vector & table->pivots; rest != 0; rest &= rest - 1)
        vector ^= table->of[lowest_bit(rest)];
    return vector;
}

static void insert(pivot_table *table, uint64_t vector) {
    vector = remainder_of(table, vector);
    if (vector == 0)
        return;
    uint32_t pivot = highest_bit(vector);
    for (uint64_t rest = table->pivots; rest != 0; rest &= rest - 1) {
        uint32_t p = lowest_bit(rest);
        if (table->of[p] >> pivot & 1)
            table->of[p] ^= vector;
    }
    table->of[pivot] = vector;
    table->pivots |= UINT64_C(1) << pivot;
}

static void insert_all(pivot_table *table, const uint64_t *vectors, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        insert(table, vectors[i]);
}

static void basis_of(lilac_f2_space *result, const pivot_table *table) {
    result->dimension = 0;
    for (uint64_t rest = table->pivots; rest != 0; rest &= rest - 1)
        result->basis[result->dimension++] = table->of[lowest_bit(rest)];
}

void lilac_f2_span(lilac_f2_space *result, const uint64_t *vectors, uint32_t count) {
    pivot_table table = {0};
    insert_all(&table, vectors, count);
    basis_of(result, &table);
}

bool lilac_f2_contains(const lilac_f2_space *space, uint64_t vector) {
    pivot_table table = {0};
    insert_all(&table, space->basis, space->dimension);
    return remainder_of(&table, vector) == 0;
}

void lilac_f2_sum(lilac_f2_space *result, const lilac_f2_space *a, const lilac_f2_space *b) {
    pivot_table table = {0};
    insert_all(&table, a->basis, a->dimension);
    insert_all(&table, b->basis, b->dimension);
    basis_of(result, &table);
}

/* Zassenhaus: pairs (a, a) of the one basis and (b, 0) of the other are eliminated on their first
 * halves; where a first half comes to nothing, a sum of a's equals a sum of b's, and the second
 * half says which vector that is. */
void lilac_f2_intersection(lilac_f2_space *result, const lilac_f2_space *a,
                           const lilac_f2_space *b) {
    pivot_table first = {0}, common = {0};
    uint64_t second[64];
    for (uint32_t i = 0; i < a->dimension + b->dimension; i++) {
        bool of_a = i < a->dimension;
        uint64_t vector = of_a ? a->basis[i] : b->basis[i - a->dimension];
        uint64_t tail = of_a ? vector : 0;
        /* Not reduced among themselves, so go down from the highest bit. */
        while (vector != 0) {
            uint32_t pivot = highest_bit(vector);
            if (!(first.pivots >> pivot & 1)) {
                first.pivots |= UINT64_C(1) << pivot;
                first.of[pivot] = vector;
                second[pivot] = tail;
                break;
            }
            vector ^= first.of[pivot];
            tail ^= second[pivot];
        }
        if (vector == 0)
            insert(&common, tail);
    }
    basis_of(result, &common);
}

void lilac_f2_complement(lilac_f2_space *result, const lilac_f2_space *space, uint32_t bits) {
    assert(bits <= 64);
    pivot_table table = {0};
    insert_all(&table, space->basis, space->dimension);
    /* e_i lies in the span of the space and the unit vectors below it exactly when a member of the
     * space has highest bit i. */
    uint32_t count = 0;
    for (uint32_t i = 0; i < bits; i++) {
        if (!(table.pivots >> i & 1))
            result->basis[count++] = UINT64_C(1) << i;
    }
    result->dimension = count;
}
