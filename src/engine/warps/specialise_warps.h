/* A loop whose copies a warp of their own starts (specialise_warps.c, producer.c). Private to the
 * engine. */
#ifndef LILAC_ENGINE_SPECIALISE_WARPS_H
#define LILAC_ENGINE_SPECIALISE_WARPS_H

#include "descriptors/boxes.h"

#include <lilac/tile_loops.h>

enum { SPECIALISED_RINGS = 8 };
/* Threads of blocks with fewer warps have all the registers that they can use; with more, the pass
 * does not apply. */
enum { WARPS_WITH_REGISTERS = 8 };

typedef struct specialised {
    lilac_tile_function *function;
    lilac_tile_module *module;
    const lilac_target *target;
    lilac_tile_op *top;   /* the operation of the function's block that is, or contains, the loop */
    lilac_tile_op *outer; /* the loop over tiles around it; NULL: none */
    lilac_tile_op *guard; /* the conditional around it; NULL: none */
    lilac_tile_op *inner; /* the loop */
    lilac_tile_block *block;                 /* of the loop */
    lilac_tile_op *rings[SPECIALISED_RINGS]; /* allocations of the buffers that copies fill */
    uint32_t ring_count;
    uint32_t buffers;        /* of each ring */
    uint32_t registers;      /* of the producer's threads; 0: as they begin */
    uint32_t full_buffer;    /* the one that is not empty at first; 0: all are */
    lilac_tile_value *full;  /* mbarriers of the buffers: the copies are complete */
    lilac_tile_value *empty; /* mbarriers of the buffers: all warps have read them */
} specialised;

/* The loop of the warps that multiply. */
typedef struct consumer {
    specialised s;
    lilac_tile_value *slot, *phase; /* arguments of the loop */
    lilac_tile_value *before;       /* the slot of the iteration before, for delayed products */
    uint32_t slot_number, phase_number;
    lilac_tile_op *release;   /* the wait behind which a buffer is released, in the loop */
    lilac_tile_op *last_wait; /* behind the loop, for all products */
    bool own;                 /* the buffer of the same iteration, not of the one before */
    uint32_t product_count;
} consumer;

/* Is it one of these mbarriers? */
bool lilac_is_barrier_of(const lilac_tile_value *barrier, const lilac_tile_value *barriers);
/* The mbarrier of an announcement or a tensor load; NULL: the operation is another one. */
lilac_tile_value *lilac_copy_barrier(const lilac_tile_op *op);

/* ---- specialised_loops.c ------------------------------------------------------------------ */

/* The registers of a thread of the producer's warpgroup. */
uint32_t lilac_producer_registers(const specialised *s);
/* Can a producer start the copies of the loop c->s.inner, and does that pay? Sets the rest. */
bool lilac_specialise_survey(consumer *c);

/* ---- copy_slice.c ------------------------------------------------------------------------- */

/* Can the warps of a producer compute what the copies of `top` need: coordinates, predicates, bounds
 * and conditions from scalars, without effects? */
bool lilac_copy_slice_is_possible(const specialised *s);
/* Removes what the copies in `top`, a copy of s->top, do not need. */
void lilac_copy_slice_prune(const specialised *s, lilac_tile_op *top);

/* ---- producer.c --------------------------------------------------------------------------- */

/* Puts a ttg.warp_specialize in front of `top`, whose partition executes the copies of `top`. The
 * rings and mbarriers are outside of `top`. The default region is empty. */
lilac_tile_op *lilac_specialise_producer(const specialised *s);

#endif
