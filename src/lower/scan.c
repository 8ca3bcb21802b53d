/* tt.scan, with any combine region, over several operands at once, forwards or in reverse.
 *
 * The bits of the axis, lowest first, stand in runs of registers, lanes and warps:
 *
 *     blocked, 4 registers a thread     r r l l l l l r        memory
 *                                       └0┘ └───1───┘ 2      w w r   (from the first warp bit up)
 *
 * Upwards, each run is scanned by itself and hands one total for each of its blocks to the next:
 *
 *   registers   one after another in the thread
 *   lanes       log2 steps; in step k the lanes whose bit k is set take the total of the half
 *               before theirs from its last lane
 *   memory      the last lane of each block writes its total; after one barrier every thread reads
 *               the totals of its line and adds them up as far as its own place
 *
 * Downwards, each run gets what stands before each of its blocks, combines it with what it has, and
 * hands what stands before each of its items to the run below. There is no neutral element, so
 * "nothing stands before" is known when compiling or a predicate.
 *
 * That asks for columns that are one unit vector of the axis or do not touch it, and for lanes
 * below warps. Other layouts are first moved to one like that (scan_layout.c), and back. Copies do
 * the same work side by side; in memory one of them writes. */
#include "scan.h"

#include <string.h>

#define MAX_RUNS 32

/* Instead of a predicate: whether anything stands before an item. */
#define NEVER  0
#define ALWAYS (~(lilac_simt_value)0)

typedef enum run_kind { REGISTERS, LANES, MEMORY } run_kind;

typedef struct run {
    run_kind kind;
    uint32_t count;
    bool in_thread_bits[LILAC_LAYOUT_MAX_BITS]; /* of memory: a warp's bit, not a register's */
    uint32_t where[LILAC_LAYOUT_MAX_BITS];      /* register or thread bits, lowest axis bit first */
    uint32_t items;                             /* mask of the register bits that number items */
} run;

typedef struct scan {
    lilac_lowering *l;
    const lilac_tile_op *op;
    const lilac_lower_view *view;
    const lilac_simt_type *types;
    uint32_t axis, operands;
    bool reverse;
    uint32_t run_count;
    run runs[MAX_RUNS];
} scan;

/* One level of the way up: a list of elements, `operands` values each. */
typedef struct level {
    uint32_t count;
    lilac_simt_value *values;
    lilac_simt_value *scanned;
} level;

/* What stands before each item, and whether it does. */
typedef struct prefix {
    lilac_simt_value *values;
    lilac_simt_value *valid;
} prefix;

/* ---- runs --------------------------------------------------------------------------------- */

static void find_runs(scan *s) {
    const lilac_lower_view *view = s->view;
    uint32_t own = lilac_lower_own_registers(view), items = own;
    run *last = NULL;
    for (uint32_t bit = 0; bit < view->bits[s->axis]; bit++) {
        uint64_t unit = 1ULL << (view->start[s->axis] + bit);
        run_kind kind = REGISTERS;
        uint32_t where = 0;
        for (uint32_t i = 0; i < view->register_bits; i++) {
            if ((own >> i & 1) && view->registers[i] == unit) {
                where = i;
            }
        }
        for (uint32_t i = 0; i < view->thread_bits; i++) {
            if (view->threads[i] == unit) {
                where = i;
                kind = i < view->lane_bits ? LANES : MEMORY;
            }
        }
        if (last == NULL || (last->kind != MEMORY && last->kind != kind)) {
            last = &s->runs[s->run_count++];
            *last = (run){.kind = kind, .items = items};
        }
        last->in_thread_bits[last->count] = kind != REGISTERS;
        last->where[last->count++] = where;
        items &= kind == REGISTERS ? ~(1U << where) : ~0U;
    }
}

/* Where a register bit stands in the number of an item. */
static uint32_t item_bit(const run *r, uint32_t where) {
    return (uint32_t)__builtin_popcount(r->items & ((1U << where) - 1));
}

/* The bits of an item's number that a run of registers uses, by position in the run; in a reversed
 * scan position 0 is the last register. */
static uint32_t item_of(const scan *s, const run *r, uint32_t position) {
    uint32_t item = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        if (!r->in_thread_bits[i]) {
            item |= ((position >> i & 1) ^ s->reverse) << item_bit(r, r->where[i]);
        }
    }
    return item;
}

static uint32_t run_items(const run *r) {
    uint32_t mask = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        mask |= r->in_thread_bits[i] ? 0 : 1U << item_bit(r, r->where[i]);
    }
    return mask;
}

/* The item of the next run that a block of this one is. */
static uint32_t block_of(const run *r, uint32_t item) {
    uint32_t mask = run_items(r), result = 0, next = 0;
    for (uint32_t i = 0; item >> i != 0; i++) {
        if (!(mask >> i & 1)) {
            result |= (item >> i & 1) << next++;
        }
    }
    return result;
}

static uint32_t thread_mask(const run *r) {
    uint32_t mask = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        mask |= r->in_thread_bits[i] ? 1U << r->where[i] : 0;
    }
    return mask;
}

/* ---- building ----------------------------------------------------------------------------- */

static lilac_simt_value *elements(const scan *s, uint32_t count) {
    return lilac_arena_array(s->l->arena, lilac_simt_value, (size_t)count * s->operands);
}

static lilac_simt_value constant(const scan *s, uint32_t number) {
    return lilac_simt_constant(&s->l->builder, LILAC_SIMT_I32, number);
}

static lilac_simt_value bits_of(const scan *s, lilac_simt_opcode code, lilac_simt_value a,
                                uint32_t mask) {
    return lilac_simt_op2(&s->l->builder, code, LILAC_SIMT_I32, a, constant(s, mask));
}

static lilac_simt_value index_of(const scan *s, lilac_simt_opcode code) {
    lilac_simt_instruction like = {.code = (uint16_t)code};
    lilac_simt_type type = LILAC_SIMT_I32;
    return lilac_simt_build(&s->l->builder, &like, 0, NULL, 1, &type);
}

/* Are any of these bits of the thread's index other than in the first place of the scan? */
static lilac_simt_value is_later(const scan *s, uint32_t mask) {
    lilac_simt_value bits = bits_of(s, LILAC_SIMT_OP_AND, index_of(s, LILAC_SIMT_OP_THREAD), mask);
    return lilac_simt_compare_values(&s->l->builder, LILAC_SIMT_NE, bits,
                                     constant(s, s->reverse ? mask : 0));
}

/* The lane with these bits in the last place of the scan. */
static lilac_simt_value last_lane(const scan *s, lilac_simt_value lane, uint32_t mask) {
    return s->reverse ? bits_of(s, LILAC_SIMT_OP_AND, lane, ~mask & 31U)
                      : bits_of(s, LILAC_SIMT_OP_OR, lane, mask);
}

static lilac_simt_value first_lane(const scan *s, lilac_simt_value lane, uint32_t mask) {
    return s->reverse ? bits_of(s, LILAC_SIMT_OP_OR, lane, mask)
                      : bits_of(s, LILAC_SIMT_OP_AND, lane, ~mask & 31U);
}

/* to = before combined with own, or own where `valid` is false. */
static bool put_before(const scan *s, const lilac_simt_value *before, lilac_simt_value valid,
                       const lilac_simt_value *own, lilac_simt_value *to) {
    lilac_simt_value mine[2 * LILAC_MAX_RANK], *list = mine;
    if (s->operands > 2 * LILAC_MAX_RANK) {
        list = elements(s, 1);
    }
    memcpy(list, own, s->operands * sizeof *own);
    if (valid != NEVER) {
        lilac_simt_value *both = elements(s, 1);
        memcpy(both, before, s->operands * sizeof *both);
        if (!lilac_lower_combine(s->l, s->op, both, list)) {
            return false;
        }
        for (uint32_t i = 0; i < s->operands; i++) {
            list[i] = valid == ALWAYS ? both[i] : lilac_lower_select(s->l, valid, both[i], list[i]);
        }
    }
    memcpy(to, list, s->operands * sizeof *to);
    return true;
}

static void shuffle_all(const scan *s, lilac_simt_shuffle kind, lilac_simt_value lane,
                        uint32_t count, const lilac_simt_value *from, lilac_simt_value *to) {
    for (uint32_t i = 0; i < s->operands; i++) {
        lilac_lower_shuffle_row(s->l, kind, lane, count, s->operands, from + i, to + i);
    }
}

/* ---- registers ---------------------------------------------------------------------------- */

static bool scan_registers(const scan *s, const run *r, level *at) {
    uint32_t mask = run_items(r), n = s->operands;
    for (uint32_t item = 0; item < at->count; item++) {
        if ((item & mask) != item_of(s, r, 0)) {
            continue;
        }
        uint32_t rest = item & ~mask;
        for (uint32_t i = 1; i < 1U << r->count; i++) {
            lilac_simt_value *own = at->scanned + (size_t)(rest | item_of(s, r, i)) * n;
            const lilac_simt_value *before =
                at->scanned + (size_t)(rest | item_of(s, r, i - 1)) * n;
            if (!put_before(s, before, ALWAYS, own, own)) {
                return false;
            }
        }
    }
    return true;
}

/* With what stands before the blocks: all items whole. Where a predicate says whether anything
 * does, the block is scanned once more from its first item on, which takes one select. */
static bool finish_registers(const scan *s, const run *r, level *at, const prefix *before) {
    uint32_t mask = run_items(r), n = s->operands;
    for (uint32_t item = 0; item < at->count; item++) {
        if ((item & mask) != item_of(s, r, 0)) {
            continue;
        }
        uint32_t rest = item & ~mask, block = block_of(r, item);
        lilac_simt_value valid = before->valid[block];
        if (valid == NEVER) {
            continue;
        }
        const lilac_simt_value *front = before->values + (size_t)block * n;
        for (uint32_t i = 0; i < 1U << r->count; i++) {
            size_t place = (size_t)(rest | item_of(s, r, i)) * n;
            bool again = valid != ALWAYS && i > 0;
            const lilac_simt_value *own = valid == ALWAYS ? at->scanned : at->values;
            if (!put_before(s, front, again ? ALWAYS : valid, own + place, at->scanned + place)) {
                return false;
            }
            front = valid != ALWAYS ? at->scanned + place : front;
        }
    }
    return true;
}

/* What stands before each item of a run of registers. */
static void before_registers(const scan *s, const run *r, const level *at, const prefix *before,
                             prefix *result) {
    uint32_t mask = run_items(r), n = s->operands;
    for (uint32_t item = 0; item < at->count; item++) {
        if ((item & mask) != item_of(s, r, 0)) {
            continue;
        }
        uint32_t rest = item & ~mask, block = block_of(r, item);
        memcpy(result->values + (size_t)item * n, before->values + (size_t)block * n,
               n * sizeof *result->values);
        result->valid[item] = before->valid[block];
        for (uint32_t i = 1; i < 1U << r->count; i++) {
            uint32_t here = rest | item_of(s, r, i), there = rest | item_of(s, r, i - 1);
            memcpy(result->values + (size_t)here * n, at->scanned + (size_t)there * n,
                   n * sizeof *result->values);
            result->valid[here] = ALWAYS;
        }
    }
}

/* ---- lanes -------------------------------------------------------------------------------- */

static bool scan_lanes(const scan *s, const run *r, level *at) {
    lilac_simt_value *others = elements(s, at->count);
    uint32_t below = 0;
    for (uint32_t k = 0; k < r->count; k++) {
        uint32_t bit = 1U << r->where[k];
        if (below == 0) {
            shuffle_all(s, LILAC_SIMT_SHFL_XOR, constant(s, bit), at->count, at->scanned, others);
        } else {
            lilac_simt_value lane = index_of(s, LILAC_SIMT_OP_LANE);
            lane = first_lane(s, last_lane(s, lane, below), bit);
            shuffle_all(s, LILAC_SIMT_SHFL_IDX, lane, at->count, at->scanned, others);
        }
        lilac_simt_value later = is_later(s, bit);
        for (uint32_t item = 0; item < at->count; item++) {
            lilac_simt_value *own = at->scanned + (size_t)item * s->operands;
            if (!put_before(s, others + (size_t)item * s->operands, later, own, own)) {
                return false;
            }
        }
        below |= bit;
    }
    return true;
}

static bool finish_lanes(const scan *s, level *at, const prefix *before) {
    for (uint32_t item = 0; item < at->count; item++) {
        lilac_simt_value *own = at->scanned + (size_t)item * s->operands;
        if (!put_before(s, before->values + (size_t)item * s->operands, before->valid[item], own,
                        own)) {
            return false;
        }
    }
    return true;
}

/* The lane one place earlier in the scan, for lanes that are not the first: the bits up to the
 * lowest one that is set change. */
static lilac_simt_value lane_before(const scan *s, const run *r) {
    lilac_simt_builder *b = &s->l->builder;
    lilac_simt_value lane = index_of(s, LILAC_SIMT_OP_LANE);
    uint32_t mask = thread_mask(r);
    bool ascending = true;
    for (uint32_t i = 1; i < r->count; i++) {
        ascending &= r->where[i] > r->where[i - 1];
    }
    if (ascending) { /* one less, or more, among these bits */
        lilac_simt_value bits = s->reverse ? bits_of(s, LILAC_SIMT_OP_OR, lane, ~mask & 31U)
                                           : bits_of(s, LILAC_SIMT_OP_AND, lane, mask);
        bits = bits_of(s, s->reverse ? LILAC_SIMT_OP_ADD : LILAC_SIMT_OP_SUB, bits, 1);
        bits = bits_of(s, LILAC_SIMT_OP_AND, bits, mask);
        return lilac_simt_op2(b, LILAC_SIMT_OP_OR, LILAC_SIMT_I32, bits,
                              bits_of(s, LILAC_SIMT_OP_AND, lane, ~mask & 31U));
    }
    lilac_simt_value change = constant(s, mask);
    for (uint32_t i = r->count - 1; i-- > 0;) {
        uint32_t up_to = 0;
        for (uint32_t k = 0; k <= i; k++) {
            up_to |= 1U << r->where[k];
        }
        change =
            lilac_lower_select(s->l, is_later(s, 1U << r->where[i]), constant(s, up_to), change);
    }
    return lilac_simt_op2(b, LILAC_SIMT_OP_XOR, LILAC_SIMT_I32, lane, change);
}

static void before_lanes(const scan *s, const run *r, const level *at, const prefix *before,
                         prefix *result) {
    lilac_simt_builder *b = &s->l->builder;
    uint32_t n = s->operands;
    shuffle_all(s, LILAC_SIMT_SHFL_IDX, lane_before(s, r), at->count, at->scanned, result->values);
    lilac_simt_value later = is_later(s, thread_mask(r));
    for (uint32_t item = 0; item < at->count; item++) {
        lilac_simt_value valid = before->valid[item];
        for (uint32_t i = 0; i < n && valid != NEVER; i++) {
            size_t place = (size_t)item * n + i;
            result->values[place] =
                lilac_lower_select(s->l, later, result->values[place], before->values[place]);
        }
        result->valid[item] =
            valid == NEVER    ? later
            : valid == ALWAYS ? ALWAYS
                              : lilac_simt_op2(b, LILAC_SIMT_OP_OR, LILAC_SIMT_I1, later, valid);
    }
}

/* ---- memory ------------------------------------------------------------------------------- */

/* The part of a coordinate beside the axis, closed up. */
static uint64_t line_of(const scan *s, uint64_t coordinate) {
    uint32_t start = s->view->start[s->axis], bits = s->view->bits[s->axis];
    uint64_t below = coordinate & ((1ULL << start) - 1);
    uint64_t above = start + bits >= 64 ? 0 : coordinate >> (start + bits);
    return below | above << start;
}

/* Its place among the totals: line, then what of the axis is above the lower runs. */
static uint64_t slot_of(const scan *s, const run *r, uint64_t coordinate) {
    uint32_t start = s->view->start[s->axis], bits = s->view->bits[s->axis];
    uint64_t along = coordinate >> start & ((1ULL << bits) - 1);
    return line_of(s, coordinate) << r->count | along >> (bits - r->count);
}

/* The threads that write: one of the copies, and of the lanes of a block the last. */
static lilac_simt_value writes(const scan *s, const run *r) {
    uint32_t lanes = 0;
    for (const run *lower = s->runs; lower < r; lower++) {
        lanes |= lower->kind == LANES ? thread_mask(lower) : 0;
    }
    lilac_simt_value predicate = 0;
    uint32_t mask = lanes | s->view->free_threads;
    if (mask != 0) {
        lilac_simt_value bits =
            bits_of(s, LILAC_SIMT_OP_AND, index_of(s, LILAC_SIMT_OP_THREAD), mask);
        predicate = lilac_simt_compare_values(&s->l->builder, LILAC_SIMT_EQ, bits,
                                              constant(s, s->reverse ? 0 : lanes));
    }
    return predicate;
}

static void write_totals(const scan *s, const run *r, const level *at, uint32_t operand,
                         uint32_t start, const lilac_simt_instruction *promise) {
    const lilac_lower_view *view = s->view;
    uint32_t scale = lilac_lower_log2(lilac_lower_memory_bytes(s->types[operand]));
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    for (uint32_t i = 0; i < view->thread_bits; i++) {
        columns[i] = slot_of(s, r, view->threads[i]) << scale;
    }
    lilac_lower_addressing a = lilac_lower_address_threads(s->l, view->thread_bits, columns);
    lilac_simt_value predicate = writes(s, r);
    for (uint32_t item = 0; item < at->count; item++) {
        uint64_t coordinate = view->coordinates[lilac_lower_deposit(item, r->items)];
        int64_t immediate;
        lilac_simt_value address =
            lilac_lower_address_of(s->l, &a, slot_of(s, r, coordinate) << scale, &immediate);
        lilac_lower_store_vector(s->l, LILAC_SIMT_OP_ST_SHARED, s->types[operand], 1,
                                 &at->values[(size_t)item * s->operands + operand], address,
                                 immediate + start, predicate, promise);
    }
}

static void read_totals(const scan *s, const run *r, uint32_t item, uint32_t operand,
                        uint32_t start, const lilac_simt_instruction *promise,
                        lilac_simt_value *totals) {
    const lilac_lower_view *view = s->view;
    lilac_simt_type type = s->types[operand];
    uint32_t size = lilac_lower_memory_bytes(type), scale = lilac_lower_log2(size) + r->count;
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    for (uint32_t i = 0; i < view->thread_bits; i++) {
        columns[i] = line_of(s, view->threads[i]) << scale;
    }
    lilac_lower_addressing a = lilac_lower_address_threads(s->l, view->thread_bits, columns);
    uint64_t line = line_of(s, view->coordinates[lilac_lower_deposit(item, r->items)]);
    int64_t immediate;
    lilac_simt_value address = lilac_lower_address_of(s->l, &a, line << scale, &immediate);
    uint32_t count = 1U << r->count, most = s->l->target->arch->vector_bytes / size;
    uint32_t vector = count < most ? count : most;
    for (uint32_t i = 0; i < count; i += vector) {
        lilac_simt_value loaded[16];
        lilac_lower_load_vector(s->l, LILAC_SIMT_OP_LD_SHARED, type, vector, address,
                                immediate + start + (int64_t)i * size, 0, NULL, promise, loaded);
        for (uint32_t k = 0; k < vector; k++) {
            uint32_t place = s->reverse ? count - 1 - (i + k) : i + k;
            totals[(size_t)place * s->operands + operand] = loaded[k];
        }
    }
}

/* The position of an item in the run, with the warp's bits all in the first place. */
static uint32_t position_of(const scan *s, const run *r, uint32_t item) {
    uint32_t position = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        if (!r->in_thread_bits[i]) {
            position |= ((item >> item_bit(r, r->where[i]) & 1) ^ s->reverse) << i;
        }
    }
    return position;
}

/* Of the scanned totals the one before the thread's own place: by the warp's bits, in a tree. */
static void choose_total(const scan *s, const run *r, const lilac_simt_value *totals,
                         uint32_t position, lilac_simt_value *result) {
    uint32_t bits[LILAC_LAYOUT_MAX_BITS], count = 0, n = s->operands;
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->in_thread_bits[i]) {
            bits[count++] = i;
        }
    }
    lilac_simt_value *list = elements(s, 1U << count);
    for (uint32_t w = 0; w < 1U << count; w++) {
        uint32_t place = position;
        for (uint32_t i = 0; i < count; i++) {
            place |= (w >> i & 1) << bits[i];
        }
        /* Before the first nothing stands; what is taken there does not matter. */
        place -= place > 0;
        memcpy(list + (size_t)w * n, totals + (size_t)place * n, n * sizeof *list);
    }
    for (uint32_t i = count; i-- > 0;) {
        lilac_simt_value later = is_later(s, 1U << r->where[bits[i]]);
        for (uint32_t k = 0; k < n << i; k++) {
            lilac_simt_value second = list[k + (size_t)(n << i)];
            list[k] = list[k] == second ? second : lilac_lower_select(s->l, later, second, list[k]);
        }
    }
    memcpy(result, list, n * sizeof *result);
}

static bool before_memory(const scan *s, const run *r, const level *at, prefix *result) {
    lilac_lowering *l = s->l;
    uint32_t n = s->operands, bytes = 0, slots = 1U << r->count;
    uint32_t line_bits = s->view->layout->out_bits - s->view->bits[s->axis];
    uint32_t *starts = lilac_arena_array(l->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        starts[i] = (bytes + 15) / 16 * 16;
        bytes = starts[i] + (lilac_lower_memory_bytes(s->types[i]) << r->count << line_bits);
    }
    uint32_t scratch = lilac_lower_scratch_again(l, bytes);
    lilac_simt_instruction promise = {.shared_begin = scratch, .shared_end = scratch + bytes};
    lilac_lower_barrier(l);
    for (uint32_t i = 0; i < n; i++) {
        starts[i] += scratch;
        write_totals(s, r, at, i, starts[i], &promise);
    }
    lilac_lower_barrier(l);
    uint32_t mask = run_items(r);
    lilac_simt_value later = is_later(s, thread_mask(r));
    for (uint32_t item = 0; item < at->count; item++) {
        if ((item & mask) != 0) {
            continue;
        }
        lilac_simt_value *totals = elements(s, slots);
        for (uint32_t i = 0; i < n; i++) {
            read_totals(s, r, item, i, starts[i], &promise, totals);
        }
        for (uint32_t i = 1; i + 1 < slots; i++) {
            lilac_simt_value *own = totals + (size_t)i * n;
            if (!put_before(s, own - n, ALWAYS, own, own)) {
                return false;
            }
        }
        for (uint32_t other = item; other < at->count; other++) {
            if ((other & ~mask) != item) {
                continue;
            }
            uint32_t position = position_of(s, r, other);
            choose_total(s, r, totals, position, result->values + (size_t)other * n);
            result->valid[other] = position == 0 ? later : ALWAYS;
        }
    }
    return true;
}

/* ---- up and down -------------------------------------------------------------------------- */

/* The totals of a level's blocks, as the next level's items. */
static void pass_up(const scan *s, uint32_t index, const level *from, level *to) {
    const run *r = &s->runs[index];
    uint32_t n = s->operands;
    bool to_memory = s->runs[index + 1].kind == MEMORY;
    to->count = 1U << __builtin_popcount(s->runs[index + 1].items);
    to->values = elements(s, to->count);
    to->scanned = elements(s, to->count);
    if (r->kind == LANES && !to_memory) {
        lilac_simt_value lane = last_lane(s, index_of(s, LILAC_SIMT_OP_LANE), thread_mask(r));
        shuffle_all(s, LILAC_SIMT_SHFL_IDX, lane, to->count, from->scanned, to->values);
    } else if (r->kind == LANES) {
        memcpy(to->values, from->scanned, (size_t)to->count * n * sizeof *to->values);
    } else {
        uint32_t mask = run_items(r), last = item_of(s, r, (1U << r->count) - 1);
        for (uint32_t item = 0; item < from->count; item++) {
            if ((item & mask) == last) {
                memcpy(to->values + (size_t)block_of(r, item) * n, from->scanned + (size_t)item * n,
                       n * sizeof *to->values);
            }
        }
    }
    memcpy(to->scanned, to->values, (size_t)to->count * n * sizeof *to->values);
}

static prefix make_prefix(const scan *s, uint32_t count) {
    return (prefix){elements(s, count), lilac_arena_array(s->l->arena, lilac_simt_value, count)};
}

/* bottom->scanned: the results. */
static bool scan_levels(const scan *s, level *levels) {
    uint32_t top = s->run_count - 1;
    for (uint32_t i = 0; i <= top; i++) {
        const run *r = &s->runs[i];
        bool done = r->kind == REGISTERS ? scan_registers(s, r, &levels[i])
                    : r->kind == LANES   ? scan_lanes(s, r, &levels[i])
                                         : true;
        if (!done) {
            return false;
        }
        if (i < top) {
            pass_up(s, i, &levels[i], &levels[i + 1]);
        }
    }
    prefix before = make_prefix(s, levels[top].count); /* of the runs above: nothing */
    for (uint32_t i = top + 1; i-- > 0;) {
        const run *r = &s->runs[i];
        prefix items = make_prefix(s, levels[i].count);
        if (r->kind == MEMORY) {
            if (!before_memory(s, r, &levels[i], &items)) {
                return false;
            }
        } else if (r->kind == REGISTERS) {
            if (!finish_registers(s, r, &levels[i], &before)) {
                return false;
            }
            before_registers(s, r, &levels[i], &before, &items);
        } else {
            if (!finish_lanes(s, &levels[i], &before)) {
                return false;
            }
            if (i > 0) {
                before_lanes(s, r, &levels[i], &before, &items);
            }
        }
        before = items;
        if (i == 0 && r->kind == MEMORY) {
            return finish_lanes(s, &levels[0], &before);
        }
    }
    return true;
}

/* ---- the whole ---------------------------------------------------------------------------- */

/* The operands' own registers in the layout that is scanned, one element after another. */
static bool read_operands(const scan *s, lilac_simt_value *to) {
    uint32_t own = lilac_lower_own_registers(s->view), n = s->operands;
    uint32_t count = 1U << __builtin_popcount(own);
    lilac_simt_value *made = lilac_arena_array(s->l->arena, lilac_simt_value, s->view->count);
    for (uint32_t i = 0; i < n; i++) {
        const lilac_lower_value *from = lilac_lower_operand(s->l, s->op, i);
        lilac_simt_value *values =
            lilac_arena_array(s->l->arena, lilac_simt_value, from->view->count);
        for (uint32_t r = 0; r < from->view->count; r++) {
            values[r] = from->view->canonical[r] == r ? lilac_lower_get(s->l, from, r) : 0;
        }
        if (from->view == s->view) {
            made = values;
        } else if (!lilac_lower_move(s->l, from->simt, from->view, s->view, LILAC_MOVEMENT_ANY,
                                     values, made)) {
            return false;
        }
        for (uint32_t k = 0; k < count; k++) {
            to[(size_t)k * n + i] = made[lilac_lower_deposit(k, own)];
        }
    }
    return true;
}

static bool write_results(const scan *s, const lilac_simt_value *from) {
    uint32_t own = lilac_lower_own_registers(s->view), n = s->operands;
    uint32_t count = 1U << __builtin_popcount(own);
    lilac_simt_value *made = lilac_arena_array(s->l->arena, lilac_simt_value, s->view->count);
    for (uint32_t i = 0; i < n; i++) {
        lilac_lower_value *to = lilac_lower_result(s->l, s->op, i);
        if (to == NULL) {
            return false;
        }
        for (uint32_t k = 0; k < count; k++) {
            made[lilac_lower_deposit(k, own)] = from[(size_t)k * n + i];
        }
        if (to->view != s->view) {
            if (!lilac_lower_move(s->l, to->simt, s->view, to->view, LILAC_MOVEMENT_ANY, made,
                                  to->base)) {
                return false;
            }
            continue;
        }
        for (uint32_t r = 0; r < to->count; r++) {
            to->base[r] = made[to->view->canonical[r]];
        }
    }
    return true;
}

bool lilac_lower_scan(lilac_lowering *l, const lilac_tile_op *op) {
    scan *s = lilac_arena_new(l->arena, scan);
    *s = (scan){.l = l, .op = op, .operands = op->operand_count};
    int64_t axis = lilac_tile_find_integer(&op->attributes, "axis", 0);
    s->reverse = lilac_tile_find_integer(&op->attributes, "reverse", 0) != 0;
    const lilac_lower_value *first = lilac_lower_operand(l, op, 0);
    if (first->view == NULL || axis < 0 || axis >= first->view->rank ||
        op->result_count != s->operands) {
        return lilac_lower_unsupported(l, "its axis or results do not fit");
    }
    s->axis = (uint32_t)axis;
    for (uint32_t i = 0; i < first->view->block_bits; i++) {
        if (first->view->blocks[i] & lilac_scan_axis(first->view, s->axis)) {
            return lilac_lower_unsupported(l, "the axis is spread over the blocks of a cluster");
        }
    }
    lilac_simt_type *types = lilac_arena_array(l->arena, lilac_simt_type, s->operands);
    for (uint32_t i = 0; i < s->operands; i++) {
        types[i] = lilac_lower_operand(l, op, i)->simt;
    }
    s->types = types;
    s->view = lilac_scan_fits(first->view, s->axis) ? first->view
                                                    : lilac_scan_near(l, first->view, s->axis);
    find_runs(s);
    level *levels = lilac_arena_array(l->arena, level, s->run_count + 1);
    levels[0].count = 1U << __builtin_popcount(lilac_lower_own_registers(s->view));
    levels[0].values = elements(s, levels[0].count);
    levels[0].scanned = elements(s, levels[0].count);
    if (!read_operands(s, levels[0].values)) {
        return false;
    }
    memcpy(levels[0].scanned, levels[0].values,
           (size_t)levels[0].count * s->operands * sizeof *levels[0].values);
    if (s->run_count > 0 && !scan_levels(s, levels)) {
        return false;
    }
    return write_results(s, levels[0].scanned);
}
