/* The layout of the registers after each step of a plan.
 *
 * A step is a linear map from positions after it to positions before it. The layout after the step
 * is the layout before it composed with this map, column by column:
 *
 *   permutation             register bit i         ←  registers from[i]
 *   shuffle                 before, shuffle, after ←  in this order, as in plan.h
 *   shared-memory exchange  the offset that each register, lane and warp loads from, composed with
 *                           the layout of the memory
 *
 * A matrix instruction moves words of four bytes. The position of a thread's word in an 8 × 8
 * matrix is given by bits of the row and by bits of the lane that supplies the address (0, 1, 2:
 * row; 3, 4: matrix):
 *
 *                 bits of a row, lowest first           address lane bits 0, 1, 2
 *   matrix        word, lane 0, lane 1                  lane 2, lane 3, lane 4
 *   transposed    half word, lane 2, lane 3, lane 4     half of the word, lane 0, lane 1
 */
#include "plan.h"

#include <string.h>

/* The columns of a layout by input. */
typedef struct places {
    uint32_t bits[LEVELS];
    uint64_t column[LEVELS][LILAC_PLAN_MAX_REGISTER_BITS];
} places;

static uint64_t sum_of(const uint64_t *columns, uint64_t mask) {
    uint64_t sum = 0;
    for (; mask != 0; mask &= mask - 1) {
        sum ^= columns[__builtin_ctzll(mask)];
    }
    return sum;
}

/* Applies register r := register from·r ⊕ shear·t (`shear` NULL: 0). Empty places of a word count
 * as element 0; no later step reads them. */
static void map_registers(places *at, const uint64_t *from, uint32_t bits, const uint64_t *shear) {
    uint64_t columns[LILAC_PLAN_MAX_REGISTER_BITS];
    const uint64_t there = (UINT64_C(1) << at->bits[REGISTER]) - 1;
    for (uint32_t i = 0; shear != NULL && i < at->bits[LANE] + at->bits[WARP]; i++) {
        const uint64_t moved = sum_of(at->column[REGISTER], shear[i] & there);
        if (i < at->bits[LANE]) {
            at->column[LANE][i] ^= moved;
        } else {
            at->column[WARP][i - at->bits[LANE]] ^= moved;
        }
    }
    for (uint32_t i = 0; i < bits; i++) {
        columns[i] = sum_of(at->column[REGISTER], from[i] & there);
    }
    at->bits[REGISTER] = bits;
    memcpy(at->column[REGISTER], columns, bits * sizeof columns[0]);
}

static void shuffle_places(places *at, const lilac_plan_shuffle *shuffle) {
    uint64_t lanes[LILAC_PLAN_MAX_LANE_BITS];
    map_registers(at, shuffle->kept, shuffle->register_bits, shuffle->before);
    for (uint32_t i = 0; i < at->bits[REGISTER]; i++) {
        at->column[REGISTER][i] ^= sum_of(at->column[LANE], shuffle->distance[i]);
    }
    for (uint32_t i = 0; i < at->bits[WARP]; i++) {
        at->column[WARP][i] ^= sum_of(at->column[LANE], shuffle->lane[at->bits[LANE] + i]);
    }
    for (uint32_t i = 0; i < at->bits[LANE]; i++) {
        lanes[i] = sum_of(at->column[LANE], shuffle->lane[i]);
    }
    memcpy(at->column[LANE], lanes, at->bits[LANE] * sizeof lanes[0]);
    map_registers(at, shuffle->taken, shuffle->after_bits, shuffle->after);
}

/* ---- shared-memory exchanges ------------------------------------------------------------- */

/* The offsets of a side's register and lane bits. */
typedef struct side_offsets {
    uint64_t reg[LILAC_PLAN_MAX_REGISTER_BITS], lane[LILAC_PLAN_MAX_LANE_BITS];
} side_offsets;

static void vector_offsets(side_offsets *offsets, const lilac_plan_access *access) {
    for (uint32_t i = 0; i < access->vector_bits; i++) {
        offsets->reg[access->vector_register[i]] = UINT64_C(1) << i;
    }
    memcpy(offsets->lane, access->lane, access->lane_bits * sizeof access->lane[0]);
}

static void matrix_offsets(side_offsets *offsets, const lilac_plan_access *access) {
    const bool transposed = access->instruction == LILAC_PLAN_MATRIX_TRANSPOSED;
    /* Bits of the vector within a row; for a transposed matrix the next bit is the half of a
     * word. */
    const uint32_t along = log2_of((transposed ? 2 : 4) / access->element_bytes);
    uint32_t vector = 0;
    for (; vector < along; vector++) {
        offsets->reg[access->vector_register[vector]] = UINT64_C(1) << vector;
    }
    if (transposed) {
        offsets->reg[access->vector_register[vector++]] = access->lane[0];
        offsets->lane[0] = access->lane[1];
        offsets->lane[1] = access->lane[2];
        for (uint32_t i = 0; i < 3; i++) {
            offsets->lane[2 + i] = UINT64_C(1) << (along + i);
        }
    } else {
        offsets->lane[0] = UINT64_C(1) << along;
        offsets->lane[1] = UINT64_C(2) << along;
        for (uint32_t i = 0; i < 3; i++) {
            offsets->lane[2 + i] = access->lane[i];
        }
    }
    for (uint32_t i = 0; vector < access->vector_bits; vector++, i++) {
        offsets->reg[access->vector_register[vector]] = access->lane[3 + i];
    }
}

/* The element at an offset of a block's memory. */
static uint64_t element_at(const lilac_layout *memory, uint64_t offset, uint64_t block) {
    const uint32_t offset_bits = lilac_layout_in_bits(memory, "offset");
    const int blocks = lilac_layout_in(memory, "block");
    uint64_t element = 0;
    const int offsets = lilac_layout_in(memory, "offset");
    if (offsets >= 0) {
        element = sum_of(memory->columns + lilac_layout_in_start(memory, (uint32_t)offsets),
                         offset & ((UINT64_C(1) << offset_bits) - 1));
    }
    if (blocks >= 0) {
        element ^= sum_of(memory->columns + lilac_layout_in_start(memory, (uint32_t)blocks),
                          block & ((UINT64_C(1) << memory->in[blocks].bits) - 1));
    }
    return element;
}

static void load_places(places *at, const lilac_plan_staging *staging) {
    const lilac_plan_access *load = &staging->load;
    side_offsets offsets;
    uint64_t register_block[LILAC_PLAN_MAX_REGISTER_BITS] = {0};
    memset(&offsets, 0, sizeof offsets);
    if (load->instruction == LILAC_PLAN_VECTOR) {
        vector_offsets(&offsets, load);
    } else {
        matrix_offsets(&offsets, load);
    }
    for (uint32_t i = 0; i < load->step_bits; i++) {
        offsets.reg[load->step_register[i]] = load->step[i];
        register_block[load->step_register[i]] = staging->remote ? staging->load_block_step[i] : 0;
    }
    const uint32_t round_start =
        lilac_layout_in_bits(&staging->memory, "offset") - staging->round_bits;
    for (uint32_t i = 0; i < staging->round_bits; i++) {
        offsets.reg[staging->load_round[i]] = UINT64_C(1) << (round_start + i);
    }
    at->bits[REGISTER] = load->vector_bits + load->step_bits + staging->round_bits;
    for (uint32_t i = 0; i < at->bits[REGISTER]; i++) {
        at->column[REGISTER][i] = element_at(&staging->memory, offsets.reg[i], register_block[i]);
    }
    for (uint32_t i = 0; i < at->bits[LANE]; i++) {
        at->column[LANE][i] = element_at(&staging->memory, offsets.lane[i],
                                         staging->remote ? staging->load_block_lane[i] : 0);
    }
    for (uint32_t i = 0; i < at->bits[WARP]; i++) {
        at->column[WARP][i] = element_at(&staging->memory, load->warp[i],
                                         staging->remote ? staging->load_block_warp[i] : 0);
    }
    for (uint32_t i = 0; i < at->bits[BLOCK]; i++) {
        at->column[BLOCK][i] =
            element_at(&staging->memory, staging->load_offset_block[i],
                       staging->remote ? staging->load_block_block[i] : UINT64_C(1) << i);
    }
}

void lilac_plan_conversion_layout(lilac_layout *result, const lilac_plan_conversion *plan,
                                  const lilac_layout *source, uint32_t steps) {
    places at;
    lilac_layout layout = *source;
    memset(&at, 0, sizeof at);
    for (uint32_t level = 0; level < LEVELS; level++) {
        const int in = lilac_layout_in(source, lilac_plan_levels[level].name);
        at.bits[level] = in < 0 ? 0 : source->in[in].bits;
        if (in >= 0) {
            memcpy(at.column[level], source->columns + lilac_layout_in_start(source, (uint32_t)in),
                   at.bits[level] * sizeof at.column[level][0]);
        }
    }
    for (uint32_t i = 0; i < steps && i < plan->step_count; i++) {
        const uint32_t index = plan->step[i].index;
        switch (plan->step[i].kind) {
        case LILAC_PLAN_STEP_PERMUTATION:
            map_registers(&at, plan->permutation[index].from, plan->permutation[index].bits, NULL);
            break;
        case LILAC_PLAN_STEP_SHUFFLE:
            shuffle_places(&at, &plan->shuffle[index]);
            break;
        case LILAC_PLAN_STEP_STAGING:
            load_places(&at, &plan->staging);
            break;
        }
    }
    layout.in_count = LEVELS;
    layout.in_bits = 0;
    for (uint32_t level = 0; level < LEVELS; level++) {
        layout.in[level] = lilac_plan_levels[level];
        layout.in[level].bits = (uint8_t)at.bits[level];
        memcpy(layout.columns + layout.in_bits, at.column[level],
               at.bits[level] * sizeof at.column[level][0]);
        layout.in_bits = (uint8_t)(layout.in_bits + at.bits[level]);
    }
    *result = layout;
}
