/* What the files of tt.gather share: gather.c, gather_memory.c. */
#ifndef LILAC_LOWER_GATHER_H
#define LILAC_LOWER_GATHER_H

#include "coordinates.h"
#include "pack_words.h"

typedef struct lilac_gather {
    lilac_lowering *l;
    const lilac_lower_value *source;
    lilac_lower_value *result;
    const lilac_lower_view *from, *to;
    lilac_tile_movement way;
    uint32_t axis, own, own_bits; /* registers of the source */
    lilac_simt_value *values;     /* its own ones, in order */
    lilac_simt_value *index;      /* i32, by register of the result */
    bool in_warp;                 /* each warp needs its own elements only */
    /* Where: the source's register in the low bits, the change of lane above (gather.c). */
    bool by_lanes;
    uint64_t of_register[LILAC_LAYOUT_MAX_BITS], of_thread[LILAC_LAYOUT_MAX_BITS];
    uint64_t of_index[LILAC_LAYOUT_MAX_BITS];
    /* Coordinate bits of the source that number the rounds, when its elements go through memory in
     * several; coordinates in memory lack them. */
    uint64_t rounds;
} lilac_gather;

/* A coordinate of the source without the bits that number the rounds. */
uint64_t lilac_gather_in_round(const lilac_gather *g, uint64_t coordinate);

/* A coordinate of a view (the source's or the result's) in the source's bits, without the axis, and
 * a bit of the axis; both within a round. */
uint64_t lilac_gather_beside(const lilac_gather *g, const lilac_lower_view *view,
                             uint64_t coordinate);
uint64_t lilac_gather_axis_unit(const lilac_gather *g, uint32_t bit);
/* What its prices are made of. */
lilac_plan_gather lilac_gather_counts(const lilac_gather *g);

/* ---- gather_memory.c ------------------------------------------------------------------------ */

typedef struct lilac_gather_memory {
    lilac_layout source; /* of its own registers */
    lilac_layout layout;
    lilac_plan_access store;
    uint64_t price; /* of the stores, a barrier and the loads, in 1/16 clocks */
} lilac_gather_memory;

/* The memory in which stores and loads cost least; false with the reason when there is none. */
bool lilac_gather_choose_memory(const lilac_gather *g, lilac_gather_memory *memory,
                                lilac_reason *why);

static inline uint32_t lilac_gather_element_bits(const lilac_gather *g) {
    return lilac_lower_carried_bits(lilac_simt_type_bits(g->source->simt));
}

#endif
