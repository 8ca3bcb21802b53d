/* coalesce: the layouts that memory operations propose, and their prices.
 *
 * Order the dimensions by the length of their contiguous runs. Give each thread one vector along
 * the first dimension, then lanes along it, then warps, and continue with the next dimension:
 *
 *     tensor<16x256xf32>, rows contiguous, 4 warps of 32       v = 4 elements, 128 bits
 *     dim1  lane 0: 0-3  lane 1: 4-7  …  lane 31: 124-127  | registers 4-7: 128-255
 *     dim0  warp 0: row 0 … warp 3: row 3                  | more registers: rows 4-15
 *
 * Memory operations that share values should share one layout. The price of an access in a layout
 * is that of its plan (src/plan/access_layout.c). The candidates are two tables: layouts for one
 * access (own_forms) and layouts for all accesses of a component (shared_forms).
 */
#include "layouts/assign.h"

#include <string.h>

#define DIFFERENT_ORDERS 4
#define DIFFERENT_WIDTHS 8
#define OTHER_REGISTERS  12 /* of a thread for offsets, addresses and masks */

static int64_t between(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : (value > high ? high : value);
}

/* The layout of a tensor without dimensions: every lane and warp holds the one element. */
static void replicated(lilac_layout *layout, const lilac_target *target) {
    static const uint64_t zeros[LILAC_LAYOUT_MAX_BITS];
    lilac_layout_init(layout);
    bool valid =
        lilac_layout_add_in(layout, "register", 0, zeros, NULL) &&
        lilac_layout_add_in(layout, "lane", log2_of(target->arch->warp_size), zeros, NULL) &&
        lilac_layout_add_in(layout, "warp", log2_of(target->num_warps), zeros, NULL) &&
        lilac_layout_add_in(layout, "block", log2_of(target->num_ctas), zeros, NULL);
    (void)valid; /* always: the four names differ and have at most 16 bits */
}

/* Distributes `count` lanes or warps over the dimensions in their order, from its back if `slow`:
 * at most remaining[d] to dimension d. The first pass limits the first dimension to `limit` (0: no
 * limit); the second one has no limit. The lanes or warps that remain hold copies, along the last
 * dimension of the order. */
static void distribute(uint32_t *counts, uint32_t rank, const uint32_t *order, int64_t *remaining,
                       int64_t count, int64_t limit, bool slow) {
    for (uint32_t d = 0; d < rank; d++) {
        counts[d] = 1;
    }
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t k = 0; k < rank; k++) {
            uint32_t i = slow ? rank - 1 - k : k, d = order[i];
            int64_t most =
                pass == 0 && i == 0 && limit > 0 ? min_i64(remaining[d], limit) : remaining[d];
            int64_t share = between(most, 1, count);
            counts[d] *= (uint32_t)share;
            remaining[d] = max_i64(remaining[d] / share, 1);
            count /= share;
        }
    }
    counts[order[rank - 1]] *= (uint32_t)count;
}

/* The part of a tensor that one block of the cluster holds. */
static int64_t find_part(const assignment *a, const lilac_tile_type *type, const uint64_t *blocks,
                         int64_t *part) {
    uint32_t start = 0;
    int64_t count = 1;
    for (uint32_t d = 0; d < type->rank; d++) {
        part[d] = type->shape[d];
        for (uint32_t i = 0; blocks != NULL && i < log2_of(a->target->num_ctas); i++) {
            const uint64_t column = blocks[i] >> start & low_bits(log2_of(type->shape[d]));
            part[d] = column != 0 ? part[d] / 2 : part[d];
        }
        start += log2_of(type->shape[d]);
        count *= part[d];
    }
    return count;
}

/* Adds the blocks of the cluster to the layout of a part. */
static bool add_blocks(const assignment *a, lilac_layout *layout, const lilac_tile_type *type,
                       const uint64_t *blocks) {
    static const uint64_t copies[LILAC_LAYOUT_MAX_BITS];
    uint32_t bits[LILAC_MAX_RANK];
    lilac_reason why;
    for (uint32_t d = 0; d < type->rank; d++) {
        bits[d] = log2_of(type->shape[d]);
    }
    return a->target->num_ctas == 1 ||
           lilac_layout_add_blocks(layout, layout, bits, log2_of(a->target->num_ctas),
                                   blocks != NULL ? blocks : copies, &why);
}

const lilac_layout *lilac_coalesce_shaped(assignment *a, const lilac_tile_type *type,
                                          const blocked_shape *shape) {
    uint32_t sizes[LILAC_MAX_RANK], lanes[LILAC_MAX_RANK], warps[LILAC_MAX_RANK];
    int64_t remaining[LILAC_MAX_RANK], part[LILAC_MAX_RANK];
    const uint32_t *order = shape->order;
    lilac_layout layout;
    if (type->rank == 0) {
        replicated(&layout, a->target);
        return lilac_tile_intern_layout(a->module, &layout);
    }
    int64_t threads = (int64_t)a->target->arch->warp_size * a->target->num_warps;
    int64_t count = find_part(a, type, shape->blocks, part);
    int64_t each = shape->copies ? count : max_i64(count / threads, 1);
    for (uint32_t i = 0; i < type->rank; i++) {
        uint32_t d = order[i];
        int64_t wanted = i == 0 ? shape->vector : (i == 1 ? max_i64(shape->tile, 1) : 1);
        int64_t size = min_i64(min_i64(wanted, each), part[d]);
        sizes[d] = (uint32_t)size;
        each /= size;
        remaining[d] = max_i64(part[d] / size, 1);
    }
    distribute(lanes, type->rank, order, remaining, a->target->arch->warp_size, shape->lanes,
               false);
    distribute(warps, type->rank, order, remaining, a->target->num_warps, 0, shape->slow_warps);
    lilac_encoding encoding;
    memset(&encoding, 0, sizeof encoding);
    lilac_encoding_blocked(&encoding, type->rank, sizes, lanes, warps, order);
    if (!lilac_encoding_layout(a->module->context, &layout, &encoding, type->rank, part) ||
        !add_blocks(a, &layout, type, shape->blocks)) {
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
    for (uint32_t i = 0; i < type->rank; i++) {
        order[i] = type->rank - 1 - i;
    }
    return lilac_coalesce_blocked(a, type, order, 1);
}

/* ---- prices ----------------------------------------------------------------------------- */

void lilac_coalesce_access(const assignment *a, memory_access *access, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    lilac_engine_access(&access->global, op, &a->axis, a->target->arch);
    /* Operands of products go on to shared memory, where a thread stores its run at once. Outside
     * loops a thread whose run is in one row computes the index of one row; where its elements are
     * in several rows, it divides and compares for each (bench/results/decisions.md). */
    access->global.runs_share_lines |= a->has_products || listed->weight == 1;
    access->type = lilac_tile_operand(op, 0)->type;
    access->weight = listed->weight;
    access->one_copy =
        access->global.kind == LILAC_PLAN_LOAD && a->needs_one_copy[op->results[0].id];
}

int64_t lilac_coalesce_repeated(const assignment *a, const lilac_tile_type *type,
                                const lilac_layout *layout) {
    int64_t warp = a->target->arch->warp_size, count = a->target->num_warps;
    for (uint32_t i = 0; i < layout->in[0].bits; i++) {
        count <<= layout->columns[i] != 0;
    }
    const int64_t blocks = a->target->num_ctas;
    return max_i64(count - max_i64(lilac_tile_element_count(type) / warp / blocks, 1), 0);
}

int64_t lilac_coalesce_price(const assignment *a, const memory_access *access,
                             const lilac_layout *layout, bool one_copy) {
    lilac_plan_global_access plan;
    lilac_plan_global_access_init(&plan, &access->global, layout,
                                  one_copy ? LILAC_PLAN_IDLE_REPLICAS : 0, a->target);
    return (int64_t)plan.cycles * access->weight;
}

/* ---- candidates ------------------------------------------------------------------------- */

static bool same_order(const uint32_t *a, const uint32_t *b, uint32_t rank) {
    return memcmp(a, b, rank * sizeof *a) == 0;
}

/* Adds a width to a list unless the list contains it or is full. */
static void add_width(int64_t *widths, uint32_t *count, int64_t width) {
    for (uint32_t i = 0; i < *count; i++) {
        if (widths[i] == width) {
            return;
        }
    }
    if (*count < DIFFERENT_WIDTHS) {
        widths[(*count)++] = width;
    }
}

/* The distinct orders and widths of the accesses of a component. */
typedef struct choices {
    uint32_t order_count, width_count, vector_count;
    const uint32_t *orders[DIFFERENT_ORDERS];
    int64_t widths[DIFFERENT_WIDTHS]; /* those of vectors first, then those of a thread's runs */
} choices;

static int64_t vector_of(const memory_access *access) {
    return INT64_C(1) << access->global.vector_bits[access->global.order[0]];
}

/* The number of elements along order[1] that continue a vector. */
static int64_t across_of(const memory_access *access) {
    const lilac_plan_global *global = &access->global;
    const uint32_t fast = global->order[0], bits = global->across_bits[fast];
    return bits == 0 ? 1 : INT64_C(1) << (bits - global->vector_bits[fast]);
}

static void collect(choices *result, const layout_anchor *first) {
    result->order_count = result->width_count = result->vector_count = 0;
    for (const layout_anchor *anchor = first; anchor != NULL; anchor = anchor->next) {
        const memory_access *access = &anchor->access;
        uint32_t o = 0;
        while (o < result->order_count &&
               !same_order(result->orders[o], access->global.order, access->type->rank)) {
            o++;
        }
        if (o == result->order_count && o < DIFFERENT_ORDERS) {
            result->orders[result->order_count++] = access->global.order;
        }
        add_width(result->widths, &result->width_count, vector_of(access));
    }
    result->vector_count = result->width_count;
    for (const layout_anchor *anchor = first; anchor != NULL; anchor = anchor->next) {
        add_width(result->widths, &result->width_count, anchor->access.global.thread_run);
    }
}

/* Adds a layout to a list unless the list contains it or is full. */
static void add(const lilac_layout **list, uint32_t *count, uint32_t most,
                const lilac_layout *layout) {
    for (uint32_t i = 0; i < *count; i++) {
        if (list[i] == layout) {
            return;
        }
    }
    if (layout != NULL && *count < most) {
        list[(*count)++] = layout;
    }
}

/* The number of lanes along order[0] that cover `bytes`; 0, which means all lanes, for 0. */
static int64_t lanes_for(int64_t bytes, const memory_access *access, int64_t vector) {
    return bytes == 0 ? 0 : max_i64(bytes / (vector * access->global.element_bytes), 1);
}

/* The number of rows along order[1] that a thread has in forms with `rows`: the number of elements
 * of the widest vector, so that vectors along order[1] are possible too. */
static int64_t most_rows(const assignment *a, const memory_access *access) {
    return max_i64(a->target->arch->vector_bytes / access->global.element_bytes, 1);
}

/* The same number, limited so that the registers and the lanes along order[0] cover whole rows and
 * no other warp holds a part of these rows. */
static int64_t rows_for(const assignment *a, const memory_access *access, int64_t vector,
                        int64_t lanes) {
    int64_t threads = (int64_t)a->target->arch->warp_size * a->target->num_warps;
    int64_t each = lilac_tile_element_count(access->type) / threads;
    int64_t row = max_i64(access->type->shape[access->global.order[0]], 1);
    int64_t wide = min_i64(row, vector * (lanes > 0 ? lanes : row));
    return between(each / max_i64(row * vector / wide, vector), 1, most_rows(a, access));
}

/* A form of a blocked layout. */
typedef struct layout_form {
    uint32_t lane_bytes; /* bytes that the lanes along order[0] cover; 0: no limit */
    bool rows;           /* each thread has several rows along order[1] */
    bool slow_warps;     /* warps along the last dimensions of the order first */
} layout_form;

/* The layouts of one access for tensors of two dimensions or more, after the plain one. */
/* clang-format off */
static const layout_form own_forms[] = {
    /* lane_bytes, rows, slow_warps */
    {  0,  true, false}, /* rows of a thread */
    {128, false, false}, /* lines */
    {128,  true, false}, /* lines, rows of a thread */
};
/* clang-format on */

/* The layouts of a component whose operations are cheapest in different layouts, after the plain
 * ones. */
/* clang-format off */
static const layout_form shared_forms[] = {
    /* lane_bytes, rows, slow_warps */
    {  0, false,  true}, /* slow warps */
    {  0,  true, false}, /* rows of a thread */
    {  0,  true,  true}, /* rows of a thread, slow warps */
    { 32, false, false}, /* sectors */
    { 32, false,  true}, /* sectors, slow warps */
    { 32,  true, false}, /* sectors, rows of a thread */
    { 32,  true,  true}, /* sectors, rows of a thread, slow warps */
    { 64, false, false}, /* half lines */
    { 64, false,  true}, /* half lines, slow warps */
    { 64,  true, false}, /* half lines, rows of a thread */
    { 64,  true,  true}, /* half lines, rows of a thread, slow warps */
    {128, false, false}, /* lines */
    {128, false,  true}, /* lines, slow warps */
    {128,  true, false}, /* lines, rows of a thread */
    {128,  true,  true}, /* lines, rows of a thread, slow warps */
    {256, false, false}, /* two lines */
    {256, false,  true}, /* two lines, slow warps */
    {256,  true, false}, /* two lines, rows of a thread */
    {256,  true,  true}, /* two lines, rows of a thread, slow warps */
};
/* clang-format on */

void lilac_coalesce_own(assignment *a, layout_anchor *anchor) {
    const memory_access *access = &anchor->access;
    const int64_t vector = vector_of(access), run = access->global.thread_run;
    blocked_shape shape = {
        .order = access->global.order, .vector = vector, .tile = across_of(access)};
    add(anchor->own, &anchor->own_count, MOST_OWN_LAYOUTS,
        lilac_coalesce_shaped(a, access->type, &shape));
    if (run > vector) {
        shape.vector = run;
        add(anchor->own, &anchor->own_count, MOST_OWN_LAYOUTS,
            lilac_coalesce_shaped(a, access->type, &shape));
        shape.vector = vector;
    }
    if (access->type->rank < 2) {
        return;
    }
    for (size_t i = 0; i < sizeof own_forms / sizeof *own_forms; i++) {
        shape.tile = own_forms[i].rows ? most_rows(a, access) : 0;
        shape.lanes = lanes_for(own_forms[i].lane_bytes, access, vector);
        add(anchor->own, &anchor->own_count, MOST_OWN_LAYOUTS,
            lilac_coalesce_shaped(a, access->type, &shape));
    }
}

/* The largest number of rows that continue a vector, over the accesses with this order and
 * width. */
static int64_t most_across(const layout_anchor *first, const uint32_t *order, int64_t width) {
    int64_t across = 1;
    for (const layout_anchor *anchor = first; anchor != NULL; anchor = anchor->next) {
        if (vector_of(&anchor->access) == width &&
            same_order(anchor->access.global.order, order, anchor->access.type->rank)) {
            across = max_i64(across, across_of(&anchor->access));
        }
    }
    return across;
}

/* Does a thread have registers for the results of all loads in this layout, with all warps of a
 * multiprocessor resident? Otherwise an assembler issues loads behind the first uses of others, and
 * the thread waits for memory several times; or fewer warps are resident, and some have no elements
 * (bench/results/decisions.md). */
static bool loads_fit(const assignment *a, const layout_anchor *first, const lilac_layout *layout) {
    const lilac_arch *arch = a->target->arch;
    const uint64_t registers = arch->registers / (arch->resident_warps * arch->warp_size);
    uint64_t words = 0;
    for (const layout_anchor *anchor = first; anchor != NULL; anchor = anchor->next) {
        const uint64_t bytes = (uint64_t)anchor->access.global.element_bytes << layout->in[0].bits;
        words += anchor->access.global.kind == LILAC_PLAN_LOAD ? (bytes + 3) / 4 : 0;
    }
    return words + OTHER_REGISTERS <= registers;
}

uint32_t lilac_coalesce_candidates(assignment *a, const layout_anchor *first, uint32_t kinds,
                                   const uint64_t *blocks, const lilac_layout **result,
                                   uint32_t most) {
    const memory_access *access = &first->access;
    uint32_t count = 0;
    choices all;
    collect(&all, first);
    for (uint32_t o = 0; o < all.order_count; o++) {
        for (uint32_t w = 0; w < all.width_count; w++) {
            blocked_shape shape = {
                .order = all.orders[o], .vector = all.widths[w], .blocks = blocks};
            shape.tile = most_across(first, all.orders[o], all.widths[w]);
            add(result, &count, most, lilac_coalesce_shaped(a, access->type, &shape));
            shape.copies = true;
            const lilac_layout *copies =
                kinds & CANDIDATES_COPIES ? lilac_coalesce_shaped(a, access->type, &shape) : NULL;
            if (copies != NULL && loads_fit(a, first, copies)) {
                add(result, &count, most, copies);
            }
        }
    }
    if (!(kinds & CANDIDATES_VARIED) || access->type->rank < 2 || a->failed) {
        return a->failed ? 0 : count;
    }
    for (uint32_t o = 0; o < all.order_count; o++) {
        blocked_shape shape = {.order = all.orders[o], .vector = 1, .blocks = blocks};
        for (uint32_t w = 0; w < all.vector_count; w++) {
            shape.vector = max_i64(shape.vector, all.widths[w]);
        }
        for (size_t i = 0; i < sizeof shared_forms / sizeof *shared_forms && !a->failed; i++) {
            const layout_form *form = &shared_forms[i];
            shape.lanes = lanes_for(form->lane_bytes, access, shape.vector);
            shape.tile = form->rows ? rows_for(a, access, shape.vector, shape.lanes) : 0;
            shape.slow_warps = form->slow_warps;
            add(result, &count, most, lilac_coalesce_shaped(a, access->type, &shape));
        }
    }
    return a->failed ? 0 : count;
}
