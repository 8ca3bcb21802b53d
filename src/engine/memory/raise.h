/* Moving loads, and what computes their addresses, to an earlier place of their block. Private to
 * the engine. */
#ifndef LILAC_ENGINE_RAISE_H
#define LILAC_ENGINE_RAISE_H

#include "internal.h"

enum { LILAC_MOST_WORDS = 32 /* registers of a thread that hold loads in flight */ };

/* A place in a block whose function was numbered. Values have ascending numbers in the order of the
 * operations, except those that were moved: they have number 0. */
typedef struct lilac_raise {
    const lilac_tile_block *block;
    uint32_t limit;      /* values up to this number are available at the place */
    lilac_tile_op *last; /* the operation before the place; operations are inserted behind it */
    const bool *waits;   /* by value: it depends on a load; NULL: no conversion is moved */
    uint32_t visits;     /* of lilac_can_rise */
} lilac_raise;

/* Is the value available at the place, or can the operations that compute it move there? They are
 * in its block, and only loads that are not volatile, pure operations of single threads, and
 * conversions of values that depend on no load. The caller has checked that the loads may pass what
 * is between. */
bool lilac_can_rise(lilac_raise *to, const lilac_tile_value *value);
/* Moves the definition of a value that can rise, with its operands. */
void lilac_rise(lilac_raise *to, const lilac_tile_value *value);

/* A load of global memory that is not volatile. */
bool lilac_is_plain_load(const lilac_tile_op *op);
/* A pure operation that needs values of its own thread only. */
bool lilac_stays_in_thread(const lilac_tile_op *op);
/* Elements and 32-bit registers of a value that a thread holds; without a layout, of an even
 * share. */
uint64_t lilac_elements_held(const lilac_target *target, const lilac_tile_type *type);
uint64_t lilac_words_held(const lilac_target *target, const lilac_tile_type *type);

#endif
