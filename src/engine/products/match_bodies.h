/* The operations that the bodies of two loops have in common (match_bodies.c). Private to the engine. */
#ifndef LILAC_ENGINE_MATCH_BODIES_H
#define LILAC_ENGINE_MATCH_BODIES_H

#include "internal.h"

#define NOT_CARRIED UINT32_MAX

typedef enum lilac_body_class {
    LILAC_BODY_UNMATCHED, /* in one body only */
    LILAC_BODY_EQUAL,     /* in both bodies, with equal operands */
    LILAC_BODY_MATCHED,   /* in both bodies, with different operands */
    LILAC_BODY_UNUSED     /* unmatched, and without a use in the joined body */
} lilac_body_class;

/* An operation of a body and the one of the other body that corresponds to it; NULL: none. */
typedef struct lilac_body_op {
    lilac_tile_op *op, *partner;
    lilac_body_class class;
} lilac_body_op;

/* One value of each body. The joined body selects between them. */
typedef struct lilac_body_choice {
    lilac_tile_value *values[2];
} lilac_body_choice;

/* A pair of values, one of them a product with a scalar that is defined outside of the loop. The joined body
 * selects between the plain values, and multiplies by the scalar in iterations of that body, by 1 in the others. */
typedef struct lilac_body_scale {
    lilac_tile_value *values[2];
    lilac_tile_value *plain[2];
    uint32_t body;            /* that multiplies */
    lilac_tile_value *factor; /* its operand: a scalar, or a tensor of equal elements */
    bool used;
} lilac_body_scale;

typedef struct lilac_bodies {
    lilac_arena *arena;
    const lilac_tile_function *function; /* numbered */
    lilac_tile_op *loops[2];             /* scf.for */
    uint32_t *carried[2]; /* the number in the other loop of what each carries; NOT_CARRIED: none */
    uint32_t counts[2];
    lilac_body_op *ops[2]; /* without the terminators, in order */
    uint32_t choice_count;
    lilac_body_choice *choices; /* for operands of matched operations and for carried values */
    uint32_t scale_count;
    lilac_body_scale *scales;
    uint32_t *places; /* by value id: 1 + the number of its operation; 0: in no body */
} lilac_bodies;

/* Classifies the operations of both bodies. The caller sets arena, function, loops and carried. False: an
 * operation has an effect, or one body has a load or a product that the other one has not. */
bool lilac_bodies_match(lilac_bodies *bodies);
/* The operation of a body (0, 1) that computes the value; NULL: none does. */
lilac_body_op *lilac_body_op_of(const lilac_bodies *bodies, uint32_t body,
                                const lilac_tile_value *value);
/* The operation of a body that has the use, perhaps in a region. */
const lilac_tile_op *lilac_body_user(const lilac_bodies *bodies, uint32_t body,
                                     const lilac_tile_use *use);
/* Do both bodies have this value, so that the joined body needs no choice? */
bool lilac_bodies_share(const lilac_bodies *bodies, const lilac_tile_value *first,
                        const lilac_tile_value *second);
/* NULL: the values are no such pair. */
lilac_body_scale *lilac_bodies_scale(const lilac_bodies *bodies, const lilac_tile_value *first,
                                     const lilac_tile_value *second);

#endif
