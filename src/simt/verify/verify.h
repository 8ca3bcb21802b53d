/* The state of the verifier and the rules that its files share. Private to verify*.c.
 *
 *   verify.c             errors; the walk over bodies, with dominance and terminators; kernels
 *   verify_signature.c   the types of operands and results against the operation's signature
 *   verify_operations.c  a table: the rules of each operation beyond its signature
 *   verify_access.c      rules of memory accesses, copies, atomics and barriers
 *   verify_control.c     rules of loops, conditionals and programs
 */
#ifndef LILAC_SIMT_VERIFY_H
#define LILAC_SIMT_VERIFY_H

#include "internal.h"

typedef struct verifier {
    const lilac_simt_module *module;
    const lilac_simt_kernel *kernel;
    uint8_t *reach; /* by value: 0 not defined yet, 1 in reach, 2 defined but out of reach */
    const lilac_simt_instruction *instruction; /* errors are reported at it; NULL: the kernel */
    bool maps;                                 /* the kernel has a parameter that is a tensor map */
    bool ok;
} verifier;

/* Checks one instruction and reports what is wrong. Its signature holds. */
typedef void lilac_simt_verify_rule(verifier *v, const lilac_simt_instruction *i);

static inline lilac_simt_type type_of(const verifier *v, lilac_simt_value value) {
    return value < v->kernel->value_count ? (lilac_simt_type)v->kernel->values[value].type
                                          : LILAC_SIMT_VOID;
}

static inline const char *type_name_of(const verifier *v, lilac_simt_value value) {
    return lilac_simt_type_name(type_of(v, value));
}

static inline const char *operation_name(const lilac_simt_instruction *i) {
    return lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name;
}

/* Is operand 1 a predicate? Operand 0 is an address. */
static inline bool has_predicate(const verifier *v, const lilac_simt_instruction *i) {
    return i->operand_count > 1 && type_of(v, i->operands[1]) == LILAC_SIMT_I1;
}

/* ---- errors and the walk (verify.c) ----------------------------------------------------- */

/* Reports an error at v->instruction. */
void lilac_simt_verify_fail(verifier *v, const char *id, const char *format, ...)
    LILAC_PRINTF(3, 4);
/* Reports a value that may differ between threads. `what` names it in the error. */
void lilac_simt_verify_uniform(verifier *v, lilac_simt_value value, const char *what);
/* Checks all instructions of a body, which ends with `terminator`. */
void lilac_simt_verify_body(verifier *v, const lilac_simt_body *body, lilac_simt_opcode terminator);

/* ---- rules ------------------------------------------------------------------------------ */

/* Checks the types of operands and results. False after an error. (verify_signature.c) */
bool lilac_simt_verify_signature(verifier *v, const lilac_simt_instruction *i);
/* Checks all rules of an operation beyond its signature, the bodies of control flow included.
 * (verify_operations.c) */
void lilac_simt_verify_operation(verifier *v, const lilac_simt_instruction *i);

/* verify_access.c */
lilac_simt_verify_rule lilac_simt_verify_access, lilac_simt_verify_copy, lilac_simt_verify_wait,
    lilac_simt_verify_atomic, lilac_simt_verify_interval, lilac_simt_verify_group_barrier,
    lilac_simt_verify_mbarrier;
/* verify_control.c */
lilac_simt_verify_rule lilac_simt_verify_loop, lilac_simt_verify_if, lilac_simt_verify_while,
    lilac_simt_verify_program_bodies;

#endif
