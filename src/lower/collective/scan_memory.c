/* tt.scan: the run that uses memory, always the last.
 *
 * A line is one setting of the coordinates off the axis. The last lane of each block writes the
 * block's total to the slot of its line that the block's number along the axis selects. After
 * one barrier every thread reads the totals of its lines, scans them and selects the prefix
 * before its own block:
 *
 *     totals of a line   t0   t1      t2         t3
 *     prefixes           -    t0    t0+t1    t0+t1+t2
 *                                     ▲ of the third warp
 *
 * The register bits of the block's number are known at compile time; a tree of selects applies
 * the warp's bits. */
#include "collective/region.h"
#include "memory/access.h"
#include "memory/shared_access.h"
#include "scan.h"

#include <string.h>

/* A predicate that is true in the threads that store a total: the last lane of each block, and of
 * threads with copies only the leader. */
static lilac_simt_value writes(const lilac_scan *s) {
    uint32_t lanes = lilac_plan_scan_lower_lanes(s->plan);
    lilac_simt_value predicate = 0;
    uint32_t mask = lanes | s->view->columns.free_threads;
    if (mask != 0) {
        lilac_simt_value bits = lilac_scan_bits_of(
            s, LILAC_SIMT_OP_AND, lilac_scan_index_of(s, LILAC_SIMT_OP_THREAD), mask);
        predicate =
            lilac_simt_compare_values(&s->l->builder, LILAC_SIMT_EQ, bits,
                                      lilac_scan_constant(s, s->plan->region.reverse ? 0 : lanes));
    }
    return predicate;
}

static void write_totals(const lilac_scan *s, const lilac_scan_run *r, const lilac_scan_level *at,
                         uint32_t operand, uint32_t start, const lilac_simt_instruction *promise) {
    const lilac_lower_view *view = s->view;
    uint32_t scale = log2_of(lilac_lower_memory_bytes(s->types[operand]));
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    for (uint32_t i = 0; i < view->columns.thread_bits; i++) {
        columns[i] = lilac_plan_scan_slot(s->plan, operand, view->columns.threads[i]) << scale;
    }
    lilac_lower_addressing a =
        lilac_lower_address_threads(s->l, view->columns.thread_bits, columns);
    lilac_simt_value predicate = writes(s);
    for (uint32_t item = 0; item < at->count; item++) {
        uint64_t coordinate = view->coordinates[lilac_lower_deposit(item, r->items)];
        int64_t immediate;
        lilac_simt_value address = lilac_lower_address_of(
            s->l, &a, lilac_plan_scan_slot(s->plan, operand, coordinate) << scale, &immediate);
        const lilac_lower_access access = {.code = LILAC_SIMT_OP_ST_SHARED,
                                           .type = s->types[operand],
                                           .count = 1,
                                           .address = address,
                                           .offset = immediate + start,
                                           .predicate = predicate,
                                           .modifiers = promise};
        lilac_lower_store_vector(s->l, &access, &at->values[(size_t)item * s->operands + operand]);
    }
}

static void read_totals(const lilac_scan *s, const lilac_scan_run *r, uint32_t item,
                        uint32_t operand, uint32_t start, const lilac_simt_instruction *promise,
                        lilac_simt_value *totals) {
    const lilac_lower_view *view = s->view;
    lilac_simt_type type = s->types[operand];
    uint32_t size = lilac_lower_memory_bytes(type), scale = log2_of(size);
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    for (uint32_t i = 0; i < view->columns.thread_bits; i++) {
        columns[i] = lilac_plan_scan_vector(s->plan, operand, view->columns.threads[i], 0) << scale;
    }
    lilac_lower_addressing a =
        lilac_lower_address_threads(s->l, view->columns.thread_bits, columns);
    uint64_t coordinate = view->coordinates[lilac_lower_deposit(item, r->items)];
    uint32_t count = 1U << r->count, vector = 1U << lilac_plan_scan_vector_bits(s->plan, operand);
    for (uint32_t i = 0; i < count; i += vector) {
        int64_t immediate;
        uint64_t first = lilac_plan_scan_vector(s->plan, operand, coordinate, i / vector);
        lilac_simt_value address = lilac_lower_address_of(s->l, &a, first << scale, &immediate);
        lilac_simt_value loaded[16];
        const lilac_lower_access access = {.code = LILAC_SIMT_OP_LD_SHARED,
                                           .type = type,
                                           .count = vector,
                                           .address = address,
                                           .offset = immediate + start,
                                           .modifiers = promise};
        lilac_lower_load_vector(s->l, &access, NULL, loaded);
        for (uint32_t k = 0; k < vector; k++) {
            uint32_t place = s->plan->region.reverse ? count - 1 - (i + k) : i + k;
            totals[(size_t)place * s->operands + operand] = loaded[k];
        }
    }
}

/* The position of an item in the run, as if the warp's bits were those of the first position. */
static uint32_t position_of(const lilac_scan *s, const lilac_scan_run *r, uint32_t item) {
    uint32_t position = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        if (!(r->in_threads >> i & 1)) {
            position |=
                ((item >> lilac_scan_item_bit(r, r->place[i]) & 1) ^ s->plan->region.reverse) << i;
        }
    }
    return position;
}

/* Selects, in a tree over the warp's bits, the scanned total before the thread's own position. */
static void choose_total(const lilac_scan *s, const lilac_scan_run *r,
                         const lilac_simt_value *totals, uint32_t position,
                         lilac_simt_value *result) {
    uint32_t bits[LILAC_LAYOUT_MAX_BITS], count = 0, n = s->operands;
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->in_threads >> i & 1) {
            bits[count++] = i;
        }
    }
    lilac_simt_value *list = lilac_scan_elements(s, 1U << count);
    for (uint32_t w = 0; w < 1U << count; w++) {
        uint32_t place = position;
        for (uint32_t i = 0; i < count; i++) {
            place |= (w >> i & 1) << bits[i];
        }
        /* The first position has no prefix. Any total may be selected for it. */
        place -= place > 0;
        memcpy(list + (size_t)w * n, totals + (size_t)place * n, n * sizeof *list);
    }
    for (uint32_t i = count; i-- > 0;) {
        lilac_simt_value later = lilac_scan_is_later(s, 1U << r->place[bits[i]]);
        for (uint32_t k = 0; k < n << i; k++) {
            lilac_simt_value second = list[k + (size_t)(n << i)];
            list[k] = list[k] == second ? second : lilac_lower_select(s->l, later, second, list[k]);
        }
    }
    memcpy(result, list, n * sizeof *result);
}

bool lilac_scan_before_memory(const lilac_scan *s, const lilac_scan_run *r,
                              const lilac_scan_level *at, lilac_scan_prefix *result) {
    lilac_lowering *l = s->l;
    const lilac_layout_columns *columns = &s->plan->scanned;
    uint32_t n = s->operands, slots = 1U << r->count;
    uint32_t line_bits = columns->out_bits - columns->bits[s->plan->axis];
    uint32_t *starts = lilac_arena_array(l->arena, uint32_t, n);
    (void)lilac_plan_region_bytes(&s->plan->region, r->count + line_bits, starts);
    uint32_t scratch = lilac_lower_scratch_reused(l, s->plan->bytes);
    lilac_simt_instruction promise = {.shared_begin = scratch,
                                      .shared_end = (uint32_t)(scratch + s->plan->bytes)};
    lilac_lower_barrier(l);
    for (uint32_t i = 0; i < n; i++) {
        starts[i] += scratch;
        write_totals(s, r, at, i, starts[i], &promise);
    }
    lilac_lower_barrier(l);
    uint32_t mask = lilac_scan_run_items(r);
    lilac_simt_value later = lilac_scan_is_later(s, lilac_scan_thread_mask(r));
    for (uint32_t item = 0; item < at->count; item++) {
        if ((item & mask) != 0) {
            continue;
        }
        lilac_simt_value *totals = lilac_scan_elements(s, slots);
        for (uint32_t i = 0; i < n; i++) {
            read_totals(s, r, item, i, starts[i], &promise, totals);
        }
        for (uint32_t i = 1; i + 1 < slots; i++) {
            lilac_simt_value *own = totals + (size_t)i * n;
            if (!lilac_scan_put_before(s, own - n, LILAC_SCAN_ALWAYS, own, own)) {
                return false;
            }
        }
        for (uint32_t other = item; other < at->count; other++) {
            if ((other & ~mask) != item) {
                continue;
            }
            uint32_t position = position_of(s, r, other);
            choose_total(s, r, totals, position, result->values + (size_t)other * n);
            result->valid[other] = position == 0 ? later : LILAC_SCAN_ALWAYS;
        }
    }
    return true;
}
