/* Operands of matrix instructions as SIMT values (fragments.c). */
#ifndef LILAC_LOWER_MATRIX_FRAGMENTS_H
#define LILAC_LOWER_MATRIX_FRAGMENTS_H

#include "coordinates.h"

#include <lilac/dot.h>

/* The registers of a tensor by the coordinates that they have in thread 0. */
typedef struct lilac_lower_lookup {
    const lilac_lower_value *value;
    lilac_f2_basis basis; /* of the distinct registers' columns; tags are masks of register bits */
} lilac_lower_lookup;

void lilac_lower_lookup_init(lilac_lower_lookup *lookup, const lilac_lower_value *value);
/* The register at a coordinate of thread 0. False: no register has it. */
bool lilac_lower_lookup_register(const lilac_lower_lookup *lookup, uint64_t flat, uint32_t *r);

/* The operands of the dot that is being lowered. */
typedef struct lilac_lower_dot {
    lilac_lowering *l;
    const lilac_plan_dot *plan;
    lilac_lower_lookup a, b;      /* of operands in registers */
    lilac_simt_value idle;        /* lanes whose inner indices are beyond K; 0: none */
    const lilac_lower_value *c;   /* accumulators before */
    lilac_lower_value *d;         /* and after */
} lilac_lower_dot;

/* The inner coordinate of step number `index`. */
uint64_t lilac_lower_dot_step(const lilac_plan_dot *plan, uint32_t index);
/* The registers of operand A or B of one instruction, whose row 0 (column 0) is `kept` and whose inner
 * index 0 is `inner`. False after a refusal. */
bool lilac_lower_dot_words(const lilac_lower_dot *dot, bool is_a, uint64_t batch, uint64_t kept,
                           uint64_t inner, lilac_simt_value *words);
/* The register of D that holds accumulator number `element` of the instruction at register `base`. */
uint32_t lilac_lower_dot_element(const lilac_plan_dot *plan, uint32_t base, uint32_t element);
/* The accumulators of an instruction from the values of D's registers, and back. f16 is in pairs. */
void lilac_lower_dot_gather(const lilac_lower_dot *dot, const lilac_simt_value *registers,
                            uint32_t base, lilac_simt_value *accumulators);
void lilac_lower_dot_scatter(const lilac_lower_dot *dot, const lilac_simt_value *accumulators,
                             uint32_t base, lilac_simt_value *registers);
/* The payload of the plan's instruction. */
lilac_simt_matrix_payload lilac_lower_dot_payload(const lilac_plan_dot *plan);

#endif
