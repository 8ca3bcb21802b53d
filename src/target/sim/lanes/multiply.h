/* Products of small matrices, as mma and wgmma compute them, and the step of mma.
 *
 *     d = round(c + Σ a·b)      over k in ascending order
 *
 * The products are exact. Of floats, their sum is computed in double precision, c is added last,
 * and the result is rounded once to nearest even: a device may round and truncate otherwise. Of
 * f64, each product is added to c by a fused multiply-add. Of integers all is exact, and the
 * result wraps, or is saturated where the instruction says so. tf32 ignores the low 13 bits of its operands. */
#ifndef LILAC_SIM_MULTIPLY_H
#define LILAC_SIM_MULTIPLY_H

#include "program.h"

struct lilac_sim_worker;

enum {
    LILAC_SIM_MOST_A = 64 * 256,    /* elements of A: m · k */
    LILAC_SIM_MOST_B = 256 * 256,   /* of B */
    LILAC_SIM_MOST_D = 64 * 256,    /* of D */
    LILAC_SIM_MOST_REGISTERS = 128, /* of one operand in a thread */
    LILAC_SIM_GROUP_WARPS = 4       /* of a warpgroup */
};

/* The operands of a matrix instruction as offsets into the register file. */
typedef struct lilac_sim_matrix {
    lilac_matrix_shape shape;
    const lilac_simt_matrix_payload *payload;
    uint32_t a_count, b_count, d_count;
    uint32_t c[LILAC_SIM_MOST_REGISTERS], d[LILAC_SIM_MOST_REGISTERS];
    uint32_t a[8], b[4];
    uint32_t accumulate; /* wgmma: predicate */
} lilac_sim_matrix;

/* Elements as numbers: A by rows, B by columns (k contiguous in both). */
typedef struct lilac_sim_factors {
    double a[LILAC_SIM_MOST_A], b[LILAC_SIM_MOST_B];
} lilac_sim_factors;

/* The number of an element's bits. */
double lilac_sim_matrix_number(lilac_matrix_type type, uint64_t bits);
/* The bits of D at a row and column, from those of C. */
uint64_t lilac_sim_matrix_dot(const lilac_sim_matrix *matrix, const lilac_sim_factors *factors,
                              uint32_t row, uint32_t column, uint64_t c);
/* The elements of one word along k: into `to`. */
void lilac_sim_matrix_word(lilac_matrix_type type, uint64_t word, double *to);

/* The step of mma, for all warps. */
void lilac_sim_mma(struct lilac_sim_worker *worker, const lilac_sim_step *step);

/* Element e of the accumulators of a thread: from the register arrays, and back. */
uint64_t lilac_sim_read_accumulator(const uint8_t *registers, const uint32_t *arrays,
                                    lilac_matrix_type type, uint32_t e, uint32_t thread);
void lilac_sim_write_accumulator(uint8_t *registers, const uint32_t *arrays, lilac_matrix_type type,
                                 uint32_t e, uint32_t thread, uint64_t bits);

#endif
