/* What the files of simplification share: simplify.c and its parts.
 *
 *   simplify_integer.c   sums, products, shifts, divisions, extremes
 *   simplify_bits.c      and, or, xor
 *   simplify_width.c     widening, narrowing, packing; addresses
 *   simplify_float.c     sums, products, quotients, negations of floats
 *   simplify_other.c     comparisons, selections */
#ifndef LILAC_SIMT_SIMPLIFY_H
#define LILAC_SIMT_SIMPLIFY_H

#include "internal.h"

#define NSW LILAC_SIMT_NO_SIGNED_WRAP
#define NUW LILAC_SIMT_NO_UNSIGNED_WRAP

typedef lilac_simt_instruction instruction;

static inline bool constant(const lilac_simt_builder *b, lilac_simt_value value, uint64_t *bits) {
    return lilac_simt_constant_bits(b->kernel, value, bits);
}

static inline lilac_simt_type type_of(const lilac_simt_builder *b, lilac_simt_value value) {
    return lilac_simt_type_of(b->kernel, value);
}

/* *like becomes `code` of two operands and deserves another look; no value yet. */
static inline lilac_simt_value rewrite(instruction *like, lilac_simt_opcode code,
                                       lilac_simt_value a, lilac_simt_value c, uint32_t flags,
                                       bool *again) {
    like->code = (uint16_t)code;
    like->operands[0] = a;
    like->operands[1] = c;
    like->flags = (uint8_t)flags;
    *again = true;
    return 0;
}

/* The parts of lilac_simt_simplify; *again is set when *like was rewritten and deserves another
 * look. */
lilac_simt_value lilac_simt_simplify_integer(lilac_simt_builder *b, lilac_simt_instruction *like,
                                             lilac_simt_type type, bool *again);
lilac_simt_value lilac_simt_simplify_bits(lilac_simt_builder *b, lilac_simt_instruction *like,
                                          lilac_simt_type type, bool *again);
lilac_simt_value lilac_simt_simplify_width(lilac_simt_builder *b, lilac_simt_instruction *like,
                                           lilac_simt_type type, bool *again);
lilac_simt_value lilac_simt_simplify_float(lilac_simt_builder *b, lilac_simt_instruction *like,
                                           lilac_simt_type type, bool *again);
/* Calls lilac_simt_simplify_float for floats. */
lilac_simt_value lilac_simt_simplify_other(lilac_simt_builder *b, lilac_simt_instruction *like,
                                           lilac_simt_type type, bool *again);
/* Is value = *rest ^ *c for a constant c (a sum of numbers with no common bit counts)? */
bool lilac_simt_split_bits(const lilac_simt_builder *b, lilac_simt_value value,
                           lilac_simt_value *rest, uint64_t *c);

#endif
