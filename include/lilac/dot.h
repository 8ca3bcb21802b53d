/* dot: plans of matrix products D = A·B + C.
 *
 * A product of tensors is a grid of products of one instruction. An instruction has its own indices:
 * a row, a column and an inner index, which its lanes and registers hold in fixed places (matrix.h).
 * A plan says which coordinate of the tensors each bit of these indices is:
 *
 *     instruction            tensors                        held by
 *     ---------------------  -----------------------------  ------------------------------------
 *     row bit i              row[i], along M                lanes 2 to 4 and registers of A and D
 *     column bit j           column[j], along N             lanes and registers of B and D
 *     inner bit l            inner[l], along K              lanes 0, 1 and registers of A and B
 *
 * The coordinates are vectors over F₂. They need not be those of a named layout: any layouts of A, B
 * and D fit, as long as they agree about row, column and inner. So a dot has a family of layouts, the
 * instruction's own after any linear map of the rows, columns and inner indices.
 *
 * Three units compute products: fused multiply-adds (each thread has whole rows of A and whole columns
 * of B), mma.sync (one warp), and wgmma (four warps; B and possibly A in shared memory).
 *
 * Users: engine, lower. */
#ifndef LILAC_DOT_H
#define LILAC_DOT_H

#include <lilac/layout.h>
#include <lilac/matrix.h>

LILAC_BEGIN

typedef enum lilac_plan_dot_unit {
    LILAC_PLAN_DOT_FMA,
    LILAC_PLAN_DOT_MMA,
    LILAC_PLAN_DOT_WGMMA
} lilac_plan_dot_unit;

/* D is [batch ×] M × N, A [batch ×] M × K, B [batch ×] K × N; all sizes are powers of two. */
typedef struct lilac_plan_dot_problem {
    uint32_t rank; /* 2, or 3 with a batch as dim0 */
    uint32_t batch_bits, m_bits, n_bits, k_bits;
    lilac_matrix_type a, b, d; /* LILAC_MATRIX_NONE: no tensor core has the type */
    /* log2 of the blocks of the cluster among which the batch, M and N are divided. K is not: each
     * block computes its part of D from its rows of A and its columns of B. */
    uint32_t blocks[3];
} lilac_plan_dot_problem;

/* Divides the problem among the blocks of the target: the batch first, then the longer one of M and N in
 * the part of a block, as long as the part fills a wgmma. `chained`: only M, if it is long enough, as in
 * lilac_plan_dot_result_layout. */
LILAC_API void lilac_plan_dot_divide(lilac_plan_dot_problem *problem, const lilac_target *target,
                                     bool chained);
/* Divides it as a layout of D does. */
LILAC_API void lilac_plan_dot_divide_as(lilac_plan_dot_problem *problem,
                                        const lilac_layout_columns *d);

enum {
    LILAC_PLAN_DOT_MOST_ROWS = 6,
    LILAC_PLAN_DOT_MOST_COLUMNS = 8,
    LILAC_PLAN_DOT_MOST_INNER = 8,
    LILAC_PLAN_DOT_MOST_BLOCKS = 8, /* log2 of the blocks of a cluster */
    LILAC_PLAN_DOT_NO_REGISTER = -1
};

/* A coordinate of 0 means that the tensor is smaller than the instruction: rows and columns of the
 * instruction are then repeated; inner indices beyond K are filled with zeros. */
typedef struct lilac_plan_dot {
    lilac_plan_dot_unit unit;
    lilac_matrix_shape shape;                   /* of one instruction; FMA: 1 × 1 × 1 */
    uint32_t row_bits, column_bits, inner_bits; /* log2 of its m, n, k */
    uint64_t row[LILAC_PLAN_DOT_MOST_ROWS], column[LILAC_PLAN_DOT_MOST_COLUMNS],
        inner[LILAC_PLAN_DOT_MOST_INNER];
    uint32_t word_bits; /* log2 of the elements in a register of A or B */
    /* The register bit of D for each bit of an accumulator's number, or NO_REGISTER. */
    uint32_t element_bits;
    int8_t element_register[LILAC_PLAN_DOT_MOST_ROWS + LILAC_PLAN_DOT_MOST_COLUMNS];
    uint32_t
        instruction_registers; /* mask of these register bits; the others number instructions */
    /* The inner coordinates of the instructions of one accumulator: sums of these vectors. */
    uint32_t step_bits;
    uint64_t step[LILAC_LAYOUT_MAX_BITS];
    /* The row and the column of D at which the part of each block begins, by bits of its rank. */
    uint32_t block_bits;
    uint64_t block_row[LILAC_PLAN_DOT_MOST_BLOCKS], block_column[LILAC_PLAN_DOT_MOST_BLOCKS];
} lilac_plan_dot;

/* The coordinate along the last but one (0) or the last dimension (1) of a matrix, or along the
 * batch (2), of a flattened coordinate. */
LILAC_API uint64_t lilac_plan_dot_coordinate(const lilac_layout_columns *columns, uint64_t flat,
                                             uint32_t which);
/* The flattened coordinate of an element. */
LILAC_API uint64_t lilac_plan_dot_flat(const lilac_layout_columns *columns, uint64_t batch,
                                       uint64_t row, uint64_t column);

/* The unit for operands in registers, and the shape of its instruction: mma where the device has one
 * for the types, else FMA. */
LILAC_API lilac_plan_dot_unit lilac_plan_dot_choose(lilac_matrix_shape *shape,
                                                    const lilac_plan_dot_problem *problem,
                                                    const lilac_target *target);
/* The shape of the wgmma for the problem. False: there is none, or the tensor or the number of warps
 * does not fill it. */
LILAC_API bool lilac_plan_dot_choose_wgmma(lilac_matrix_shape *shape,
                                           const lilac_plan_dot_problem *problem,
                                           const lilac_target *target);

/* Which rows of D a thread of wgmma holds, with A in registers.
 *
 *     usual       rows i and i + 8, i < 8
 *     pairs       rows 2 i and 2 i + 1: with elements of 8 bits that are contiguous along M, ldmatrix
 *                 reads both rows of A as one element of 16 bits
 *     words       rows 4 i to 4 i + 3, or 2 i and 2 i + 1, where a row is a word of A that is
 *                 contiguous along M: vectors, which are loaded without bank conflicts */
typedef enum lilac_plan_dot_rows {
    LILAC_PLAN_DOT_USUAL_ROWS,
    LILAC_PLAN_DOT_ROW_PAIRS,
    LILAC_PLAN_DOT_WORD_ROWS
} lilac_plan_dot_rows;

/* What a layout of D is to suit besides the unit.
 *
 *     chained     the product is an operand of another one, or the reverse: all warps lie along M */
typedef struct lilac_plan_dot_wishes {
    bool chained;
    lilac_plan_dot_rows rows;
} lilac_plan_dot_wishes;

/* A layout of D for a unit. */
LILAC_API LILAC_MUST_USE bool
lilac_plan_dot_result_layout(lilac_layout *result, const lilac_plan_dot_problem *problem,
                             lilac_plan_dot_unit unit, const lilac_matrix_shape *shape,
                             const lilac_target *target, lilac_plan_dot_wishes wishes,
                             lilac_reason *why);
/* The layout of operand 0 (A) or 1 (B) in registers for a layout of D, with inner indices in their
 * order. */
LILAC_API LILAC_MUST_USE bool
lilac_plan_dot_operand_layout(lilac_layout *result, const lilac_plan_dot_problem *problem,
                              lilac_plan_dot_unit unit, const lilac_matrix_shape *shape,
                              const lilac_layout_columns *d, uint32_t operand, lilac_reason *why);

/* The plan for given layouts. `a`, `b`: the columns of the operands; of wgmma NULL for operands in
 * shared memory. Refused where the layouts do not agree about rows, columns or inner indices. */
LILAC_API LILAC_MUST_USE bool
lilac_plan_dot_init(lilac_plan_dot *plan, const lilac_plan_dot_problem *problem,
                    lilac_plan_dot_unit unit, const lilac_matrix_shape *shape,
                    const lilac_layout_columns *a, const lilac_layout_columns *b,
                    const lilac_layout_columns *d, lilac_reason *why);

/* ---- operands of wgmma in shared memory -------------------------------------------------- */

/* How wgmma reads an operand. The matrix of one instruction starts at the byte that holds its row 0 (of
 * B: column 0) and inner index 0. */
typedef struct lilac_plan_dot_memory {
    lilac_matrix_descriptor like; /* without the start */
    bool transposed;              /* m or n, not k, is contiguous */
    lilac_layout offsets;         /* coordinates to elements from the beginning of the memory */
    uint32_t element_bytes;
} lilac_plan_dot_memory;

/* The descriptor of operand 0 or 1 of the plan in memory with this layout (offset and block to
 * coordinates).
 * `shift`: xored to every offset, in elements; a part of a buffer starts there. Refused: no descriptor reads
 * the elements where the layout has them; a block has other rows or columns in its memory than its part of
 * D needs. */
LILAC_API LILAC_MUST_USE bool lilac_plan_dot_memory_init(lilac_plan_dot_memory *result,
                                                         const lilac_plan_dot *plan,
                                                         uint32_t operand,
                                                         const lilac_layout *memory, uint64_t shift,
                                                         lilac_reason *why);
/* The byte at which the matrix of an instruction starts, from the beginning of the memory. `kept`: the
 * coordinate along M of A, along N of B; `inner`: along K. */
LILAC_API uint32_t lilac_plan_dot_memory_start(const lilac_plan_dot_memory *memory,
                                               uint32_t operand, uint64_t kept, uint64_t inner);

LILAC_END

#endif
