/* How tile values cross the edges of loops and conditionals (carried_values.c). Private to
 * `lower`. */
#ifndef LILAC_LOWER_CARRIED_VALUES_H
#define LILAC_LOWER_CARRIED_VALUES_H

#include "lower_internal.h"

/* How one tile value crosses the edge of a loop or leaves a region. By default each distinct
 * register is one SIMT value.
 *
 * A tensor of pointers or offsets that only advances by uniform steps keeps its constant offsets
 * and is carried as its distinct bases, usually one:
 *
 *   p = splat(x) + range;  for … { load p;  p += splat(step) }
 *
 * Elements of 8 and 16 bits that are loaded, stored or converted to another layout are carried as
 * packed words, as are elements of 8 bits that products read from registers. Otherwise each
 * iteration would unpack and pack the same words. */
typedef struct carried_value {
    bool is_reference; /* a memory descriptor or token; the other fields are those of registers */
    bool by_base, packed;
    uint32_t width;         /* SIMT values */
    lilac_simt_type type;   /* of each */
    uint32_t count;         /* distinct registers */
    uint32_t *registers;    /* their numbers */
    uint32_t *places;       /* for each register of the tensor: the index of its distinct one */
    const int64_t *offsets; /* if by_base */
    int64_t offset_low, offset_high;
} carried_value;

/* All tile values that cross one edge. */
typedef struct loop_values {
    uint32_t count; /* tile values */
    carried_value *plans;
    uint32_t width;
    lilac_simt_value *values;
    lilac_simt_type *types;
} loop_values;

/* Is the value carried as packed words? `inside`: the value in the region, `next`: a value
 * that is passed to it. */
bool lilac_lower_is_carried_packed(const lilac_tile_value *inside, const lilac_tile_value *next);
/* Plans to carry a value. */
void lilac_lower_carry_value(lilac_lowering *l, const lilac_lower_value *like, bool packed,
                             carried_value *c);
/* Defines a value's registers from the carried values from `first` on. */
void lilac_lower_receive_value(lilac_lowering *l, const carried_value *c, lilac_lower_value *value,
                               lilac_simt_value first);

/* Plans the edge to the values `like` of the tile values `tiles`. The edge passes the operands of
 * `next` from number `first` on. */
loop_values lilac_lower_loop_values_make(lilac_lowering *l, uint32_t count,
                                         lilac_lower_value *const *like,
                                         lilac_tile_value *const *tiles, const lilac_tile_op *next,
                                         uint32_t first);
/* Allocates the SIMT values and fills in their types, from the plans of the tile values. */
void lilac_lower_loop_values_fill(lilac_lowering *l, loop_values *b);
/* Passes the operands of `op` from number `first` on. False after a diagnostic. */
bool lilac_lower_loop_values_send(lilac_lowering *l, loop_values *b, const lilac_tile_op *op,
                                  uint32_t first, lilac_lower_value *const *like);
/* Defines the values from the SIMT values from `first` on. */
void lilac_lower_loop_values_receive(lilac_lowering *l, const loop_values *b,
                                     lilac_lower_value *const *values, lilac_simt_value first);

#endif
