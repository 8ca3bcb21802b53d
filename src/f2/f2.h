/* f2: vectors, matrices and subspaces over the field of two elements.
 *
 * A vector of up to 64 entries is the bits of a uint64_t. A matrix is an array of columns; row r of
 * column c is bit r of columns[c]. Adding is xor; a product M·x is the xor of the columns of x's
 * set bits. At most 64 rows and 64 columns. No allocation. Results may alias arguments.
 *
 * Subspaces are computed by one elimination, lilac_f2_basis: every other function of this component
 * and of those above it calls it.
 *
 * Who may use it: layout, view, plan, engine, lower.
 */
#ifndef LILAC_F2_H
#define LILAC_F2_H

#include <lilac/base.h>
#include <lilac/bits.h>

LILAC_BEGIN

/* A basis in echelon form that grows by one vector at a time. The pivot of a vector is its highest
 * bit, and no two vectors have the same pivot:
 *
 *      bit   5 4 3 2 1 0
 *            1 * * * * *      pivot 5      The pivots are the highest bits of the members of the
 *            . 1 * * * *      pivot 4      space, so they depend on the space only and not on the
 *            . . . 1 * *      pivot 2      order of the vectors.
 *            . . . . 1 *      pivot 1
 *
 * Every vector has a tag, which is linear as well: the tag of a sum is the sum of the tags. With
 * unit vectors as the tags, the tag of a sum is the mask of the vectors in it. With a vector of a
 * second space as the tag, the basis is the graph of a linear map.
 *
 * A function that adds or reduces a vector takes at most one step for each pivot. */
typedef struct lilac_f2_basis {
    uint64_t pivots;     /* mask of the pivots; other entries of the arrays are undefined */
    uint64_t vector[64]; /* by pivot */
    uint64_t tag[64];
} lilac_f2_basis;

/* The basis of the space that has no vector but 0. */
static inline void lilac_f2_basis_init(lilac_f2_basis *basis) {
    basis->pivots = 0;
}

/* Costs less than an assignment: only the entries of the pivots are copied. */
static inline void lilac_f2_basis_copy(lilac_f2_basis *result, const lilac_f2_basis *basis) {
    result->pivots = basis->pivots;
    for (uint64_t rest = basis->pivots; rest != 0; rest &= rest - 1) {
        const uint32_t pivot = lowest_bit(rest);
        result->vector[pivot] = basis->vector[pivot];
        result->tag[pivot] = basis->tag[pivot];
    }
}

static inline uint32_t lilac_f2_basis_dimension(const lilac_f2_basis *basis) {
    return (uint32_t)__builtin_popcountll(basis->pivots);
}

/* The vector modulo the space: the member of vector + space with no bit at a pivot. It is 0 exactly
 * for members of the space, and equal for two vectors exactly when they differ by a member. *tag is
 * the tag of the member that was subtracted. */
static inline uint64_t lilac_f2_basis_reduce(const lilac_f2_basis *basis, uint64_t vector,
                                             uint64_t *tag) {
    uint64_t sum = 0;
    for (uint64_t left = vector & basis->pivots; left != 0; left = vector & basis->pivots) {
        const uint32_t pivot = highest_bit(left);
        vector ^= basis->vector[pivot];
        sum ^= basis->tag[pivot];
    }
    *tag = sum;
    return vector;
}

/* The tag alone. */
static inline uint64_t lilac_f2_basis_tag(const lilac_f2_basis *basis, uint64_t vector) {
    uint64_t tag;
    (void)lilac_f2_basis_reduce(basis, vector, &tag);
    return tag;
}

static inline bool lilac_f2_basis_contains(const lilac_f2_basis *basis, uint64_t vector) {
    uint64_t tag;
    return lilac_f2_basis_reduce(basis, vector, &tag) == 0;
}

/* Adds a vector with its tag. False, and no change, when the vector is in the space. */
static inline bool lilac_f2_basis_add(lilac_f2_basis *basis, uint64_t vector, uint64_t tag) {
    while (vector != 0) {
        const uint32_t pivot = highest_bit(vector);
        if ((basis->pivots >> pivot & 1) == 0) {
            basis->pivots |= UINT64_C(1) << pivot;
            basis->vector[pivot] = vector;
            basis->tag[pivot] = tag;
            return true;
        }
        vector ^= basis->vector[pivot];
        tag ^= basis->tag[pivot];
    }
    return false;
}

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
