/* coalesce: what memory operations want of their layouts.
 *
 * Order the dimensions by how long runs of neighbours in memory are along them; give each thread
 * one vector of the first, then lanes along it, then warps, and go on with the next dimension:
 *
 *     tensor<16x256xf32>, rows contiguous, 4 warps of 32       v = 4 elements, 128 bits
 *     dim1  lane 0: 0-3  lane 1: 4-7  …  lane 31: 124-127  | registers 4-7: 128-255
 *     dim0  warp 0: row 0 … warp 3: row 3                  | more registers: rows 4-15
 *
 * Memory operations that share values would share one layout. The cost of an access is what it
 * moves and issues, by the device's table of costs:
 *
 *     sectors      bytes · 32 / (bytes of a run that a warp's registers and lanes cover together,
 * at most 32); registers count because the parts of a sector that one instruction leaves are in the
 * cache for the next
 *     + for writes a quarter of the sectors more that single instructions touch, where registers do
 *                  not count: the cache behind merges the parts, but each is sent
 *     + each instruction of a warp, and the lines that it touches beyond the fewest
 *     + for loads of narrow elements that no vector takes, what their lanes leave out of two lines,
 *                  as so many lines beyond the fewest: such elements stand in runs of 8 bytes a
 * thread all the same. The first load of a run then asks for all of two lines and the others find
 * them in the cache; side by side, lanes ask for 64 bytes at a time (H200: a sum of 16-bit elements
 * with a mask 74.8 us, in runs of 4, 8 and 16 bytes 70.6, 68.5 and 69.8; two loads and a store of
 * each place, 114 us, with runs of 8 for the loads and a conversion before the store 102)
 */
#include "assign.h"

#include <string.h>

#define SECTOR_BYTES     32
#define LINE_BYTES       128
#define RUN_BYTES        8 /* of narrow elements that a thread loads one by one */
#define DIFFERENT_ORDERS 4
#define DIFFERENT_WIDTHS 8

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

/* Deals `count` out over the dimensions, `room[d]` each at most and at most `limit` to order[0] at
 * first; from the back of the order when `slow`. What is left makes copies along the last. */
static void deal(uint32_t *given, uint32_t rank, const uint32_t *order, int64_t *room,
                 int64_t count, int64_t limit, bool slow) {
    for (uint32_t d = 0; d < rank; d++)
        given[d] = 1;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t k = 0; k < rank; k++) {
            uint32_t i = slow ? rank - 1 - k : k, d = order[i];
            int64_t most = pass == 0 && i == 0 && limit > 0 ? min_i64(room[d], limit) : room[d];
            int64_t here = between(most, 1, count);
            given[d] *= (uint32_t)here;
            room[d] = max_i64(room[d] / here, 1);
            count /= here;
        }
    }
    given[order[rank - 1]] *= (uint32_t)count;
}

const lilac_layout *lilac_coalesce_shaped(assignment *a, const lilac_tile_type *type,
                                          const blocked_shape *shape) {
    uint32_t sizes[LILAC_MAX_RANK], lanes[LILAC_MAX_RANK], warps[LILAC_MAX_RANK];
    int64_t room[LILAC_MAX_RANK];
    const uint32_t *order = shape->order;
    lilac_layout layout;
    if (type->rank == 0) {
        replicated(&layout, a->target);
        return lilac_tile_intern_layout(a->module, &layout);
    }
    int64_t threads = (int64_t)a->target->arch->warp_size * a->target->num_warps;
    int64_t count = lilac_tile_element_count(type);
    int64_t each = shape->copies ? count : max_i64(count / threads, 1);
    for (uint32_t i = 0; i < type->rank; i++) {
        uint32_t d = order[i];
        int64_t wanted = i == 0 ? shape->vector : (i == 1 ? max_i64(shape->tile, 1) : 1);
        int64_t here = min_i64(min_i64(wanted, each), type->shape[d]);
        sizes[d] = (uint32_t)here;
        each /= here;
        room[d] = max_i64(type->shape[d] / here, 1);
    }
    deal(lanes, type->rank, order, room, a->target->arch->warp_size, shape->lanes, false);
    deal(warps, type->rank, order, room, a->target->num_warps, 0, shape->slow_warps);
    lilac_encoding encoding;
    memset(&encoding, 0, sizeof encoding);
    lilac_encoding_blocked(&encoding, type->rank, sizes, lanes, warps, order);
    if (!lilac_encoding_layout(a->module->context, &layout, &encoding, type->rank, type->shape)) {
        a->failed = true;
        return NULL;
    }
    return lilac_tile_intern_layout(a->module, &layout);
}

const lilac_layout *lilac_coalesce_blocked(assignment *a, const lilac_tile_type *type,
                                           const uint32_t *order, int64_t vector) {
    return lilac_coalesce_shaped(a, type, &(blocked_shape){.order = order, .vector = vector});
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

/* The most elements of an access that one instruction takes; 0: as many as fit. Additions of floats
 * have instructions for vectors since sm_90; before, compare-and-swap adds a pair of bf16. Other
 * atomics take one element. */
static int64_t most_elements(const lilac_tile_op *op, const lilac_arch *arch) {
    if (op->code == LILAC_TILE_OP_TT_ATOMIC_CAS)
        return 1;
    if (op->code != LILAC_TILE_OP_TT_ATOMIC_RMW)
        return 0;
    lilac_name kind = lilac_tile_find_text(&op->attributes, "atomic_rmw_op");
    const lilac_tile_type *type = op->operands[1].value->type;
    if (arch->vendor != LILAC_NVIDIA || kind == NULL || strcmp(kind, "fadd") != 0 ||
        lilac_tile_element_bits(type) > 32)
        return 1;
    if (arch->capability >= 90)
        return 0;
    bool bf16 = lilac_tile_element(type)->scalar == LILAC_BF16;
    return bf16 && !lilac_arch_has(arch, LILAC_HAS_BF16_ATOMICS) ? 2 : 1;
}

/* Where rows are short and stand one after another, a vector takes several of them. */
static void go_across(const assignment *a, memory_access *access, const lilac_tile_value *pointer,
                      const lilac_tile_value *mask) {
    uint32_t fast = access->order[0];
    if (access->type->rank < 2 || access->vector != access->type->shape[fast])
        return;
    for (uint32_t i = 1; i < access->type->rank && access->across == 1; i++) {
        uint32_t next = access->order[i];
        int64_t vector =
            lilac_axis_vector_across(&a->axis, pointer, fast, next, a->target->arch->vector_bytes);
        if (mask != NULL)
            vector = min_i64(vector,
                             access->vector * lilac_axis_facts_of(&a->axis, mask)->constancy[next]);
        if (vector <= access->vector)
            continue;
        access->across = vector / access->vector;
        access->order[i] = access->order[1];
        access->order[1] = next;
    }
}

void lilac_coalesce_access(const assignment *a, memory_access *access, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    const lilac_tile_value *pointer = op->operands[0].value, *mask = mask_of(op);
    const lilac_axis_facts *facts = lilac_axis_facts_of(&a->axis, pointer);
    uint32_t rank = pointer->type->rank;
    access->type = pointer->type;
    access->bytes = lilac_axis_unit(pointer->type);
    access->writes = op->code != LILAC_TILE_OP_TT_LOAD;
    access->weight = listed->weight;
    access->once = op->code == LILAC_TILE_OP_TT_STORE ||
                   (op->code == LILAC_TILE_OP_TT_LOAD && a->once[op->results[0].id]);
    /* longest runs first; of equal ones the later dimension */
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t d = rank - 1 - i, at = i;
        while (at > 0 && facts->contiguity[access->order[at - 1]] < facts->contiguity[d]) {
            access->order[at] = access->order[at - 1];
            at--;
        }
        access->order[at] = d;
    }
    access->run = access->vector = access->across = access->thread_run = 1;
    if (rank == 0)
        return;
    uint32_t fast = access->order[0];
    access->run = facts->contiguity[fast];
    access->vector = lilac_axis_vector(&a->axis, pointer, fast, a->target->arch->vector_bytes);
    if (mask != NULL)
        access->vector =
            min_i64(access->vector, lilac_axis_facts_of(&a->axis, mask)->constancy[fast]);
    const int64_t most = most_elements(op, a->target->arch);
    if (most != 0)
        access->vector = min_i64(access->vector, most);
    else
        go_across(a, access, pointer, mask);
    access->thread_run = access->vector;
    if (!access->writes && access->bytes < 4 && access->across == 1)
        access->thread_run =
            max_i64(access->vector, min_i64(access->run, RUN_BYTES / access->bytes));
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

/* The same as the access sees it: at most its run, or across rows that stand one after another. */
static int64_t covered_by(const memory_access *access, const lilac_layout *layout, bool lanes,
                          int64_t below) {
    int64_t along = min_i64(reach(layout, access->order[0], lanes, below), access->run);
    if (access->across > 1 && along == access->type->shape[access->order[0]])
        along *=
            reach(layout, access->order[1], lanes, below == INT64_MAX ? INT64_MAX : access->across);
    return along;
}

static int64_t sector_bytes(const memory_access *access, int64_t bytes, int64_t neighbours) {
    int64_t covered = neighbours * access->bytes;
    return bytes * max_i64(SECTOR_BYTES / covered, 1);
}

static uint32_t bits_in_use(const lilac_layout *layout, uint32_t input) {
    uint32_t count = 0, at = 0;
    for (uint32_t i = 0; i < input; i++)
        at += layout->in[i].bits;
    for (uint32_t i = 0; i < layout->in[input].bits; i++)
        count += layout->columns[at + i] != 0;
    return count;
}

/* A load of 16 bytes is done for a quarter of the lanes at a time, unless all lanes want the same.
 */
static bool in_quarters(const memory_access *access, const lilac_layout *layout, int64_t vector) {
    return !access->writes && vector * access->bytes >= 16 && bits_in_use(layout, 1) > 0;
}

/* Lines that one instruction of a warp touches, if every run starts one; lanes of other quarters
 * that hold copies look lines up once more. `vector`: elements a lane. */
static int64_t lines_of(const memory_access *access, const lilac_layout *layout, int64_t vector) {
    uint32_t lanes = layout->in[1].bits, apart = 0;
    uint32_t parts = in_quarters(access, layout, vector) ? 2 : 0;
    int64_t line = max_i64(LINE_BYTES / access->bytes, 1), within = min_i64(access->run, line);
    uint64_t inside = (uint64_t)(within - 1) << lilac_layout_out_start(layout, access->order[0]);
    if (access->across > 1) /* rows of the line */
        inside |= (uint64_t)(max_i64(line / access->vector, 1) - 1)
                  << lilac_layout_out_start(layout, access->order[1]);
    for (uint32_t i = 0; i < lanes; i++) {
        uint64_t column = layout->columns[layout->in[0].bits + i];
        apart += (column & ~inside) != 0 || (column == 0 && i + parts >= lanes);
    }
    return INT64_C(1) << apart;
}

/* What of two lines the lanes of a warp and the runs of a thread leave out, in bytes. */
static int64_t left_out(const memory_access *access, const lilac_layout *layout) {
    if (access->thread_run == access->vector)
        return 0;
    int64_t span = covered_by(access, layout, true, access->thread_run) * access->bytes;
    return max_i64(2 * LINE_BYTES - span, 0);
}

int64_t lilac_coalesce_repeated(const assignment *a, const lilac_tile_type *type,
                                const lilac_layout *layout) {
    int64_t warp = a->target->arch->warp_size;
    int64_t done = (INT64_C(1) << bits_in_use(layout, 0)) * a->target->num_warps;
    return max_i64(done - max_i64(lilac_tile_element_count(type) / warp, 1), 0);
}

/* What all warps pay so that some of them skip an access: the test, and what a load gives then, two
 * words at a time. */
static int64_t choice_cost(const assignment *a, const memory_access *access, int64_t each) {
    int64_t words = access->writes ? 0 : max_i64(each * access->bytes / 4, 1);
    return a->target->num_warps * a->target->arch->costs->issue * (1 + (words + 1) / 2);
}

int64_t lilac_coalesce_cost(const assignment *a, const memory_access *access,
                            const lilac_layout *layout) {
    const lilac_costs *costs = a->target->arch->costs;
    int64_t elements = lilac_tile_element_count(access->type), bytes = elements * access->bytes;
    int64_t each = INT64_C(1) << bits_in_use(layout, 0), all = a->target->num_warps;
    int64_t warps = access->once ? INT64_C(1) << bits_in_use(layout, 2) : all;
    int64_t issues = each * warps, choosing = warps < all ? choice_cost(a, access, each) : 0;
    if (access->type->rank == 0)
        return (bytes * costs->sector / SECTOR_BYTES + issues * costs->global + choosing) *
               access->weight;
    uint32_t fast = access->order[0];
    int64_t near = reach(layout, fast, false, INT64_MAX);
    int64_t along = min_i64(near, access->vector), vector = along;
    if (access->across > 1 && along == access->vector)
        vector *= min_i64(reach(layout, access->order[1], false, INT64_MAX), access->across);
    int64_t traffic = sector_bytes(access, bytes, covered_by(access, layout, true, INT64_MAX));
    if (access->writes)
        traffic +=
            (sector_bytes(access, bytes, covered_by(access, layout, true, along)) - bytes) / 4;
    int64_t run = max_i64(vector, min_i64(near, access->thread_run));
    int64_t once = (run * access->bytes) << bits_in_use(layout, 1);
    int64_t fewest = max_i64(once / LINE_BYTES, in_quarters(access, layout, vector) ? 4 : 1);
    int64_t lines = lines_of(access, layout, vector) - fewest;
    issues = max_i64(issues / vector, 1);
    int64_t narrow = left_out(access, layout) * costs->line / LINE_BYTES;
    return (traffic * costs->sector / SECTOR_BYTES +
            issues * (costs->global + max_i64(lines, 0) * costs->line + narrow) + choosing) *
           access->weight;
}

static bool same_order(const uint32_t *a, const uint32_t *b, uint32_t rank) {
    return memcmp(a, b, rank * sizeof *a) == 0;
}

/* Adds a width to a list that does not have it. */
static void add_width(int64_t *widths, uint32_t *count, int64_t width) {
    for (uint32_t i = 0; i < *count; i++)
        if (widths[i] == width)
            return;
    if (*count < DIFFERENT_WIDTHS)
        widths[(*count)++] = width;
}

typedef struct choices {
    uint32_t order_count, width_count, vector_count;
    const uint32_t *orders[DIFFERENT_ORDERS];
    int64_t widths[DIFFERENT_WIDTHS]; /* of vectors, then of runs of a thread */
} choices;

static void collect(choices *result, const layout_site *first) {
    result->order_count = result->width_count = result->vector_count = 0;
    for (const layout_site *site = first; site != NULL; site = site->next) {
        const memory_access *access = &site->access;
        uint32_t o = 0;
        while (o < result->order_count &&
               !same_order(result->orders[o], access->order, access->type->rank))
            o++;
        if (o == result->order_count && o < DIFFERENT_ORDERS)
            result->orders[result->order_count++] = access->order;
        add_width(result->widths, &result->width_count, access->vector);
    }
    result->vector_count = result->width_count;
    for (const layout_site *site = first; site != NULL; site = site->next)
        add_width(result->widths, &result->width_count, site->access.thread_run);
}

/* Adds a layout to a list that does not have it. */
static void add(const lilac_layout **list, uint32_t *count, uint32_t most,
                const lilac_layout *layout) {
    for (uint32_t i = 0; i < *count; i++)
        if (list[i] == layout)
            return;
    if (layout != NULL && *count < most)
        list[(*count)++] = layout;
}

/* Lanes along order[0] that cover so many bytes. */
static int64_t lanes_for(int64_t bytes, const memory_access *access, int64_t vector) {
    return max_i64(bytes / (vector * access->bytes), 1);
}

/* Rows of order[0] that a thread takes beside one another, `most` at most: no more than leave whole
 * rows to the registers and so many lanes, so that no other warp has a part of them. */
static int64_t rows_for(const assignment *a, const memory_access *access, int64_t most,
                        int64_t vector, int64_t lanes) {
    int64_t threads = (int64_t)a->target->arch->warp_size * a->target->num_warps;
    int64_t each = lilac_tile_element_count(access->type) / threads;
    int64_t row = max_i64(access->type->shape[access->order[0]], 1);
    int64_t wide = min_i64(row, vector * (lanes > 0 ? lanes : row));
    return between(each / max_i64(row * vector / wide, vector), 1, most);
}

void lilac_coalesce_own(assignment *a, layout_site *site) {
    const memory_access *access = &site->access;
    blocked_shape shape = {
        .order = access->order, .vector = access->vector, .tile = access->across};
    add(site->own, &site->own_count, OWN_LAYOUTS, lilac_coalesce_shaped(a, access->type, &shape));
    if (access->thread_run > access->vector) {
        shape.vector = access->thread_run;
        add(site->own, &site->own_count, OWN_LAYOUTS,
            lilac_coalesce_shaped(a, access->type, &shape));
        shape.vector = access->vector;
    }
    if (access->type->rank < 2)
        return;
    for (uint32_t variant = 1; variant < 4; variant++) {
        shape.tile = variant & 1 ? max_i64(a->target->arch->vector_bytes / access->bytes, 1) : 0;
        shape.lanes = variant & 2 ? lanes_for(LINE_BYTES, access, access->vector) : 0;
        add(site->own, &site->own_count, OWN_LAYOUTS,
            lilac_coalesce_shaped(a, access->type, &shape));
    }
}

/* How many rows the accesses of this order and width take at once. */
static int64_t across_of(const layout_site *first, const uint32_t *order, int64_t width) {
    int64_t across = 1;
    for (const layout_site *site = first; site != NULL; site = site->next)
        if (site->access.vector == width &&
            same_order(site->access.order, order, site->access.type->rank))
            across = max_i64(across, site->access.across);
    return across;
}

uint32_t lilac_coalesce_candidates(assignment *a, const layout_site *first, uint32_t kinds,
                                   const lilac_layout **result, uint32_t most) {
    const memory_access *access = &first->access;
    uint32_t count = 0;
    choices all;
    collect(&all, first);
    for (uint32_t o = 0; o < all.order_count; o++)
        for (uint32_t w = 0; w < all.width_count; w++) {
            blocked_shape shape = {.order = all.orders[o], .vector = all.widths[w]};
            shape.tile = across_of(first, all.orders[o], all.widths[w]);
            add(result, &count, most, lilac_coalesce_shaped(a, access->type, &shape));
            shape.copies = true;
            if (kinds & CANDIDATES_COPIES)
                add(result, &count, most, lilac_coalesce_shaped(a, access->type, &shape));
        }
    if (!(kinds & CANDIDATES_VARIED) || access->type->rank < 2 || a->failed)
        return a->failed ? 0 : count;
    int64_t tile = max_i64(a->target->arch->vector_bytes / access->bytes, 1);
    for (uint32_t o = 0; o < all.order_count; o++) {
        blocked_shape shape = {.order = all.orders[o], .vector = 1};
        for (uint32_t w = 0; w < all.vector_count; w++)
            shape.vector = max_i64(shape.vector, all.widths[w]);
        for (uint32_t variant = 1; variant < 20 && !a->failed; variant++) {
            shape.lanes = variant / 4 == 0
                              ? 0
                              : lanes_for(SECTOR_BYTES << (variant / 4 - 1), access, shape.vector);
            shape.tile = variant & 2 ? rows_for(a, access, tile, shape.vector, shape.lanes) : 0;
            shape.slow_warps = variant & 1;
            add(result, &count, most, lilac_coalesce_shaped(a, access->type, &shape));
        }
    }
    return a->failed ? 0 : count;
}
