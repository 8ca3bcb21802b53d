/* coalesce: what memory operations want of their layouts.
 *
 * Order the dimensions by how long runs of neighbours in memory are along them; give each thread
 * one vector of the first, then lanes along it, then warps, and go on with the next dimension:
 *
 *     tensor<16x256xf32>, rows contiguous, 4 warps of 32       v = 4 elements, 128 bits
 *     dim1  lane 0: 0-3  lane 1: 4-7  …  lane 31: 124-127  | registers 4-7: 128-255
 *     dim0  warp 0: row 0 … warp 3: row 3                  | more registers: rows 4-15
 *
 * Memory operations that share values would share one layout. Among the orders and vectors that
 * they want, the cheapest in total wins. The cost of an access is what it moves and issues:
 *
 *     bytes · 32 / (bytes of a run that a warp's registers and lanes cover together, at most 32)
 *       the sectors touched; registers count because the parts of a sector that one instruction
 *       leaves are in the cache for the next,
 *     + 1 byte for each instruction of a thread: a multiprocessor issues one of a warp about every
 *       two clocks, in which its share of the memory's bandwidth is some 37 bytes,
 *     + for writes a quarter of the sectors more that single instructions touch, where registers
 *       do not count: the cache behind merges the parts, but each is sent.
 */
#include "assign.h"

#include <string.h>

#define SECTOR_BYTES     32
#define BYTES_PER_ISSUE  1
#define DIFFERENT_ORDERS 4
#define DIFFERENT_WIDTHS 8

static int64_t at_least_one(int64_t value) {
    return larger(value, 1);
}

static int64_t between(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : (value > high ? high : value);
}

/* A tensor of no dimensions: every register, lane and warp has the one element. */
static void replicated(lilac_layout *layout, const lilac_target *target) {
    static const uint64_t zeros[LILAC_LAYOUT_MAX_BITS];
    lilac_layout_init(layout);
    bool done =
        lilac_layout_add_in(layout, "register", 0, zeros, NULL) &&
        lilac_layout_add_in(layout, "lane", log2_of(target->arch->warp_size), zeros, NULL) &&
        lilac_layout_add_in(layout, "warp", log2_of(target->num_warps), zeros, NULL) &&
        lilac_layout_add_in(layout, "block", 0, zeros, NULL);
    (void)done; /* four different names and at most 16 bits */
}

const lilac_layout *lilac_coalesce_blocked(assignment *a, const lilac_tile_type *type,
                                           const uint32_t *order, int64_t vector) {
    uint32_t sizes[LILAC_MAX_RANK], lanes[LILAC_MAX_RANK], warps[LILAC_MAX_RANK];
    lilac_layout layout;
    if (type->rank == 0) {
        replicated(&layout, a->target);
        return lilac_transfer_intern(a, &layout);
    }
    int64_t warp_size = a->target->arch->warp_size, warp_count = a->target->num_warps;
    int64_t threads = warp_size * warp_count;
    vector = smaller(vector, at_least_one(lilac_tile_element_count(type) / threads));
    vector = smaller(vector, type->shape[order[0]]);
    int64_t lanes_left = warp_size, warps_left = warp_count;
    for (uint32_t i = 0; i < type->rank; i++) {
        uint32_t d = order[i];
        sizes[d] = i == 0 ? (uint32_t)vector : 1;
        if (i + 1 == type->rank) { /* the rest, copies included */
            lanes[d] = (uint32_t)lanes_left;
            warps[d] = (uint32_t)warps_left;
            break;
        }
        int64_t wanted = at_least_one(type->shape[d] / sizes[d]);
        int64_t here = between(wanted, 1, lanes_left);
        lanes[d] = (uint32_t)here;
        warps[d] = (uint32_t)between(wanted / here, 1, warps_left);
        lanes_left /= lanes[d];
        warps_left /= warps[d];
    }
    lilac_encoding encoding;
    memset(&encoding, 0, sizeof encoding);
    lilac_encoding_blocked(&encoding, type->rank, sizes, lanes, warps, order);
    if (!lilac_encoding_layout(a->module->context, &layout, &encoding, type->rank, type->shape)) {
        a->failed = true;
        return NULL;
    }
    return lilac_transfer_intern(a, &layout);
}

const lilac_layout *lilac_coalesce_default(assignment *a, const lilac_tile_type *type) {
    uint32_t order[LILAC_MAX_RANK];
    for (uint32_t i = 0; i < type->rank; i++)
        order[i] = type->rank - 1 - i;
    return lilac_coalesce_blocked(a, type, order, 1);
}

/* ---- what an operation wants ------------------------------------------------------------ */

static const lilac_tile_value *mask_of(const lilac_tile_op *op) {
    if (op->code == LILAC_TILE_OP_TT_LOAD)
        return lilac_tile_operand(op, 1);
    if (op->code == LILAC_TILE_OP_TT_STORE || op->code == LILAC_TILE_OP_TT_ATOMIC_RMW)
        return lilac_tile_operand(op, 2);
    return NULL;
}

void lilac_coalesce_access(const assignment *a, memory_access *access, const lilac_tile_op *op,
                           uint32_t loops) {
    const lilac_tile_value *pointer = op->operands[0].value, *mask = mask_of(op);
    const lilac_axis_facts *facts = lilac_axis_facts_of(&a->axis, pointer);
    uint32_t rank = pointer->type->rank;
    access->type = pointer->type;
    access->bytes = lilac_axis_unit(pointer->type);
    access->writes = op->code != LILAC_TILE_OP_TT_LOAD;
    access->weight = INT64_C(1) << (3 * (loops < 4 ? loops : 4));
    /* longest runs first; of equal ones the later dimension */
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t d = rank - 1 - i, at = i;
        while (at > 0 && facts->contiguity[access->order[at - 1]] < facts->contiguity[d]) {
            access->order[at] = access->order[at - 1];
            at--;
        }
        access->order[at] = d;
    }
    access->run = access->vector = 1;
    if (rank == 0)
        return;
    uint32_t fast = access->order[0];
    access->run = facts->contiguity[fast];
    access->vector = lilac_axis_vector(&a->axis, pointer, fast, a->target->arch->vector_bytes);
    if (mask != NULL)
        access->vector =
            smaller(access->vector, lilac_axis_facts_of(&a->axis, mask)->constancy[fast]);
    if (op->code == LILAC_TILE_OP_TT_ATOMIC_CAS || op->code == LILAC_TILE_OP_TT_ATOMIC_RMW)
        access->vector = 1;
}

/* ---- what a layout costs ---------------------------------------------------------------- */

/* How many neighbours along one dimension the lanes and the registers whose column is below `below`
 * (in elements of it) cover without a gap. */
static int64_t reach(const lilac_layout *layout, uint32_t dim, bool lanes, int64_t below) {
    uint32_t registers = layout->in[0].bits, all = registers + (lanes ? layout->in[1].bits : 0);
    uint32_t start = lilac_layout_out_start(layout, dim), covered = 0;
    uint64_t have = 0;
    for (uint32_t i = 0; i < all; i++) {
        uint64_t column = layout->columns[i];
        bool unit = column != 0 && (column & (column - 1)) == 0;
        if (unit && (i >= registers || column >> start < (uint64_t)below))
            have |= column;
    }
    while (covered < layout->out[dim].bits && (have >> (start + covered) & 1))
        covered++;
    return INT64_C(1) << covered;
}

static int64_t sector_bytes(const memory_access *access, int64_t bytes, int64_t neighbours) {
    int64_t covered = smaller(neighbours, access->run) * access->bytes;
    return bytes * at_least_one(SECTOR_BYTES / covered);
}

int64_t lilac_coalesce_cost(const memory_access *access, const lilac_layout *layout) {
    int64_t elements = lilac_tile_element_count(access->type), bytes = elements * access->bytes;
    if (access->type->rank == 0)
        return bytes * access->weight;
    uint32_t fast = access->order[0];
    int64_t vector = smaller(reach(layout, fast, false, INT64_MAX), access->vector);
    int64_t cost = sector_bytes(access, bytes, reach(layout, fast, true, INT64_MAX));
    if (access->writes)
        cost += (sector_bytes(access, bytes, reach(layout, fast, true, vector)) - bytes) / 4;
    return (cost + elements / vector * BYTES_PER_ISSUE) * access->weight;
}

static bool same_order(const uint32_t *a, const uint32_t *b, uint32_t rank) {
    return memcmp(a, b, rank * sizeof *a) == 0;
}

typedef struct choices {
    uint32_t order_count, width_count;
    const uint32_t *orders[DIFFERENT_ORDERS];
    int64_t widths[DIFFERENT_WIDTHS];
} choices;

static void collect(choices *result, const layout_site *first) {
    result->order_count = result->width_count = 0;
    for (const layout_site *site = first; site != NULL; site = site->next) {
        const memory_access *access = &site->access;
        uint32_t o = 0, w = 0;
        while (o < result->order_count &&
               !same_order(result->orders[o], access->order, access->type->rank))
            o++;
        if (o == result->order_count && o < DIFFERENT_ORDERS)
            result->orders[result->order_count++] = access->order;
        while (w < result->width_count && result->widths[w] != access->vector)
            w++;
        if (w == result->width_count && w < DIFFERENT_WIDTHS)
            result->widths[result->width_count++] = access->vector;
    }
}

const lilac_layout *lilac_coalesce_best(assignment *a, const layout_site *first, int64_t *cost) {
    choices all;
    const lilac_layout *best = NULL;
    *cost = 0;
    collect(&all, first);
    for (uint32_t o = 0; o < all.order_count; o++) {
        for (uint32_t w = 0; w < all.width_count; w++) {
            const lilac_layout *layout =
                lilac_coalesce_blocked(a, first->access.type, all.orders[o], all.widths[w]);
            if (layout == NULL)
                return NULL;
            int64_t total = 0;
            for (const layout_site *site = first; site != NULL; site = site->next)
                total += lilac_coalesce_cost(&site->access, layout);
            if (best == NULL || total < *cost) {
                best = layout;
                *cost = total;
            }
        }
    }
    return best;
}
