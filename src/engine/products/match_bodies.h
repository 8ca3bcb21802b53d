/* The operations that the bodies of two loops have in common (match_bodies.c). Private to the engine. */
#ifndef LILAC_ENGINE_MATCH_BODIES_H
#define LILAC_ENGINE_MATCH_BODIES_H

#include "internal.h"

#define NOT_CARRIED UINT32_MAX

typedef enum lilac_body_class {
    LILAC_BODY_OWN,   /* of one body alone */
    LILAC_BODY_EQUAL, /* of both, of equal operands */
    LILAC_BODY_ALIKE, /* of both, of operands that differ */
    LILAC_BODY_UNUSED /* a product in whose place a scale is, or without uses */
} lilac_body_class;

/* An operation of a body and the one of the other body that corresponds to it; NULL: none. */
typedef struct lilac_body_op {
    lilac_tile_op *op, *partner;
    lilac_body_class class;
} lilac_body_op;

/* A value of each loop that are the same to what follows. */
typedef struct lilac_body_choice {
    lilac_tile_value *values[2];
} lilac_body_choice;

/* Two values of which one is a product with a scalar from outside: the plain values, chosen or shared, times
 * the scalar in its body and times 1 in the other one. */
typedef struct lilac_body_scale {
    lilac_tile_value *values[2];
    lilac_tile_value *plain[2];
    uint32_t body;            /* that multiplies */
    lilac_tile_value *factor; /* the tensor or number by which it does, of equal elements */
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
    lilac_body_choice *choices; /* operands of operations that are alike, and next carried values */
    uint32_t scale_count;
    lilac_body_scale *scales;
    uint32_t *places; /* by value id: 1 + the number of its operation; 0: in no body */
} lilac_bodies;

/* Sorts the operations of both bodies; the first four fields are set. False: an operation has an effect, or a
 * load or a product is in one body alone. */
bool lilac_bodies_match(lilac_bodies *bodies);
/* The operation of a body (0, 1) that computes the value; NULL: none does. */
lilac_body_op *lilac_body_op_of(const lilac_bodies *bodies, uint32_t body,
                                const lilac_tile_value *value);
/* The operation of a body that has the use, perhaps in a region. */
const lilac_tile_op *lilac_body_user(const lilac_bodies *bodies, uint32_t body,
                                     const lilac_tile_use *use);
/* Is the value of the second loop that of the first one without a choice? */
bool lilac_bodies_share(const lilac_bodies *bodies, const lilac_tile_value *first,
                        const lilac_tile_value *second);
/* NULL: the values are no such pair. */
lilac_body_scale *lilac_bodies_scale(const lilac_bodies *bodies, const lilac_tile_value *first,
                                     const lilac_tile_value *second);

#endif
