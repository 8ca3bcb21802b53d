/* What the registers hold after each step of a plan.
 *
 * A step is a linear map from places after it to places before it, so the layout after it is the
 * layout before it composed with that map, column by column:
 *
 *   renaming   register bit i          ← the registers `from[i]`
 *   shuffle    before, shuffle, after  ← in this order, as the header writes them
 *   trip       the offset that a register of a lane of a warp loads from, through the memory's
 *              layout; which of the instruction's bits stand where in a row is below
 *
 * A matrix instruction moves words of four bytes. Row and column of the thread's own word within
 * an 8 × 8 matrix, and the bits of the lane that gives the address (row 0 1 2, matrix 3 4):
 *
 *                     bits of a row, from its start     bits of the address' lane 0 1 2
 *   matrix            the word's, lane 0, lane 1        lane 2, lane 3, lane 4
 *   transposed        the half's, lane 2, lane 3, lane 4  the word's half, lane 0, lane 1
 */
#include "plan.h"

#include <string.h>

/* The columns of a layout by level. */
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

/* Register r becomes what register `from`·r ⊕ shear·t was; `shear` NULL: nothing. Places of a word
 * that hold no element count as element 0: nobody takes them. */
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

/* ---- trips ------------------------------------------------------------------------------ */

/* Offsets that the bits of a side's registers and lanes access. */
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
    /* Bits of the vector along a row, then the half of a word where a matrix is transposed. */
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

static void load_places(places *at, const lilac_plan_trip *trip) {
    const lilac_plan_access *load = &trip->load;
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
        register_block[load->step_register[i]] = trip->remote ? trip->load_block_step[i] : 0;
    }
    const uint32_t round_start = lilac_layout_in_bits(&trip->memory, "offset") - trip->round_bits;
    for (uint32_t i = 0; i < trip->round_bits; i++) {
        offsets.reg[trip->load_round[i]] = UINT64_C(1) << (round_start + i);
    }
    at->bits[REGISTER] = load->vector_bits + load->step_bits + trip->round_bits;
    for (uint32_t i = 0; i < at->bits[REGISTER]; i++) {
        at->column[REGISTER][i] = element_at(&trip->memory, offsets.reg[i], register_block[i]);
    }
    for (uint32_t i = 0; i < at->bits[LANE]; i++) {
        at->column[LANE][i] =
            element_at(&trip->memory, offsets.lane[i], trip->remote ? trip->load_block_lane[i] : 0);
    }
    for (uint32_t i = 0; i < at->bits[WARP]; i++) {
        at->column[WARP][i] =
            element_at(&trip->memory, load->warp[i], trip->remote ? trip->load_block_warp[i] : 0);
    }
    for (uint32_t i = 0; i < at->bits[BLOCK]; i++) {
        at->column[BLOCK][i] =
            element_at(&trip->memory, trip->load_offset_block[i],
                       trip->remote ? trip->load_block_block[i] : UINT64_C(1) << i);
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
        case LILAC_PLAN_STEP_RENAMING:
            map_registers(&at, plan->renaming[index].from, plan->renaming[index].bits, NULL);
            break;
        case LILAC_PLAN_STEP_SHUFFLE:
            shuffle_places(&at, &plan->shuffle[index]);
            break;
        case LILAC_PLAN_STEP_TRIP:
            load_places(&at, &plan->trip);
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
