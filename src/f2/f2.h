/* f2: vectors, matrices and subspaces over the field of two elements.
 *
 * A vector of up to 64 entries is the bits of a uint64_t. A matrix is an array of columns; row r of
 * column c is bit r of columns[c]. Adding is xor; a product M·x is the xor of the columns of x's
 * set bits. At most 64 rows and 64 columns. No allocation. Results may alias arguments.
 *
 * Who may use it: layout, movement.
 */
#ifndef LILAC_F2_H
#define LILAC_F2_H

#include <lilac/base.h>

LILAC_BEGIN

typedef struct lilac_f2_matrix {
    uint32_t rows, columns;
    uint64_t column[64];
} lilac_f2_matrix;

uint64_t lilac_f2_apply(const lilac_f2_matrix *matrix, uint64_t vector);
void lilac_f2_identity(lilac_f2_matrix *result, uint32_t size);
void lilac_f2_transpose(lilac_f2_matrix *result, const lilac_f2_matrix *matrix);
void lilac_f2_multiply(lilac_f2_matrix *result, const lilac_f2_matrix *a, const lilac_f2_matrix *b);
uint32_t lilac_f2_rank(const lilac_f2_matrix *matrix);

/* Row-reduced column space with the combination of columns that makes each pivot. */
typedef struct lilac_f2_echelon {
    uint32_t rank;
    uint64_t vector[64];      /* independent, each with a pivot bit no other has */
    uint64_t combination[64]; /* vector[i] = xor of the columns in this mask */
    uint64_t kernel[64];      /* masks of columns whose xor is 0; columns - rank of them */
    uint32_t kernel_count;
    uint8_t pivot[64]; /* vector[i]'s highest set bit */
} lilac_f2_echelon;

/* Columns are taken in order, so a column that depends on earlier ones is never in a combination of
 * lilac_f2_solve: the solution uses the earliest columns, which makes it the smallest number among
 * all solutions. The highest bit of each kernel mask is such a dependent column, a different one
 * for each. Cost: about columns × rank steps. */
void lilac_f2_reduce(lilac_f2_echelon *result, const lilac_f2_matrix *matrix);
/* x with M·x = b; false when b is not in the column space. */
LILAC_MUST_USE bool lilac_f2_solve(const lilac_f2_echelon *echelon, uint64_t b, uint64_t *x);
/* The inverse of a square matrix; false when singular. */
LILAC_MUST_USE bool lilac_f2_inverse(lilac_f2_matrix *result, const lilac_f2_matrix *matrix);

/* Subspaces, by bases (arrays of vectors; a basis never holds zero or dependent vectors). The ones
 * made here (but for a complement's) are fully reduced and sorted by their highest bits, so equal
 * spaces have equal bases. */
typedef struct lilac_f2_space {
    uint32_t dimension;
    uint64_t basis[64];
} lilac_f2_space;

void lilac_f2_span(lilac_f2_space *result, const uint64_t *vectors, uint32_t count);
bool lilac_f2_contains(const lilac_f2_space *space, uint64_t vector);
void lilac_f2_sum(lilac_f2_space *result, const lilac_f2_space *a, const lilac_f2_space *b);
void lilac_f2_intersection(lilac_f2_space *result, const lilac_f2_space *a,
                           const lilac_f2_space *b);
/* A complement of `space` in F2^bits made of unit vectors, lowest first. */
void lilac_f2_complement(lilac_f2_space *result, const lilac_f2_space *space, uint32_t bits);

LILAC_END

#endif
