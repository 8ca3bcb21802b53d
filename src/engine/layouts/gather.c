/* gather: the layouts that tt.gather proposes. price.c has their prices.
 *
 *   lanes along the axis       shuffles find the elements of an index, or few banks hold them
 *   lanes off the axis too     as many as coalescing needs; each lane has banks of its own
 *
 * Warps lie off the axis where possible, so that a warp exchanges its own elements only. */
#include "layouts/assign.h"

/* The elements of a thread along the fastest dimension: a number, half a sector, or a sector. */
typedef enum candidate_vector { ONE = 1, TWO = 2, HALF_SECTOR, SECTOR } candidate_vector;

/* The names of the proposed layouts. */
typedef enum candidate_name {
    LANES_ALONG_AXIS, /* the axis is the fastest dimension */
    LANES_ALONG_AXIS_PAIRS,
    MEMORY_ORDER, /* the fastest dimension is that of memory */
    MEMORY_ORDER_PAIRS,
    ONE_LANE_HALF_SECTORS, /* memory is contiguous along the axis, and one lane lies along it */
    ONE_LANE_SECTORS,
    TWO_LANES_HALF_SECTORS,
    TWO_LANES_SECTORS,
    FOUR_LANES, /* lanes along memory's fastest dimension */
    FOUR_LANES_PAIRS,
    EIGHT_LANES,
    EIGHT_LANES_PAIRS,
    SIXTEEN_LANES,
    SIXTEEN_LANES_PAIRS,
    CANDIDATE_COUNT
} candidate_name;

typedef struct gather_candidate {
    bool axis_first; /* the axis is the fastest dimension; otherwise the order of memory */
    bool axis_fast;  /* proposed only if memory is contiguous along the axis */
    candidate_vector vector;
    int64_t lanes; /* limit of lanes along the fastest dimension, unless the other lanes fit in no
                      other dimension; 0: none */
} gather_candidate;

static const gather_candidate candidates[CANDIDATE_COUNT] = {
    [LANES_ALONG_AXIS] = {true, false, ONE, 0},
    [LANES_ALONG_AXIS_PAIRS] = {true, false, TWO, 0},
    [MEMORY_ORDER] = {false, false, ONE, 0},
    [MEMORY_ORDER_PAIRS] = {false, false, TWO, 0},
    [ONE_LANE_HALF_SECTORS] = {false, true, HALF_SECTOR, 1},
    [ONE_LANE_SECTORS] = {false, true, SECTOR, 1},
    [TWO_LANES_HALF_SECTORS] = {false, true, HALF_SECTOR, 2},
    [TWO_LANES_SECTORS] = {false, true, SECTOR, 2},
    [FOUR_LANES] = {false, false, ONE, 4},
    [FOUR_LANES_PAIRS] = {false, false, TWO, 4},
    [EIGHT_LANES] = {false, false, ONE, 8},
    [EIGHT_LANES_PAIRS] = {false, false, TWO, 8},
    [SIXTEEN_LANES] = {false, false, ONE, 16},
    [SIXTEEN_LANES_PAIRS] = {false, false, TWO, 16},
};

static int64_t vector_of(candidate_vector vector, int64_t sector) {
    return vector == SECTOR ? sector : vector == HALF_SECTOR ? max_i64(sector / 2, 1) : vector;
}

uint32_t lilac_gather_candidates(assignment *a, const lilac_tile_op *op, const uint32_t *order,
                                 const lilac_layout **result, uint32_t most) {
    const lilac_tile_type *type = op->results[0].type;
    uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0), count = 0;
    uint32_t first[LILAC_MAX_RANK], next = 0;
    if (axis >= type->rank) {
        return 0;
    }
    first[next++] = axis;
    for (uint32_t i = 0; i < type->rank; i++) {
        if (order[i] != axis) {
            first[next++] = order[i];
        }
    }
    const uint32_t bits = lilac_tile_element_bits(type);
    const int64_t sector = (int64_t)a->target->arch->sector_bytes * 8 / (bits < 8 ? 8 : bits);
    const bool fast = order[0] == axis;
    for (uint32_t i = 0; i < CANDIDATE_COUNT && count < most; i++) {
        const gather_candidate *c = &candidates[i];
        if (c->axis_fast && !fast) {
            continue;
        }
        const blocked_shape shape = {.order = c->axis_first ? first : order,
                                     .vector = vector_of(c->vector, sector),
                                     .lanes = c->lanes,
                                     .slow_warps = fast || c->axis_first};
        result[count] = lilac_coalesce_shaped(a, type, &shape);
        count += result[count] != NULL;
    }
    return count;
}
