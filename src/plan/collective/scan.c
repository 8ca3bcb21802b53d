/* The plan of a scan: the layout that is scanned, and the runs of its axis.
 *
 *     lane   0 1 2 3 4                    lane   0 1 2 3 4
 *            e0+e1 e1 e2 e3 e4     →             e0 e1 e2 e3 e4
 *
 * A layout can be scanned if each bit of the axis is one column that does nothing else, and the
 * lanes' are below the warps'. Otherwise a near layout is scanned: each column that is independent
 * of the earlier ones keeps its place and becomes a unit vector: itself if it is one, otherwise the
 * pivot of its remainder modulo the earlier columns. Then the bits of the axis that lanes and warps
 * have are sorted: the lanes get the lower ones. */
#include "scan.h"

#include <string.h>

static uint64_t axis_mask(const lilac_layout_columns *columns, uint32_t axis) {
    return low_bits(columns->bits[axis]) << columns->start[axis];
}

/* ---- layouts ----------------------------------------------------------------------------- */

static bool can_scan(const lilac_layout_columns *columns, uint32_t axis) {
    const uint64_t along = axis_mask(columns, axis);
    uint64_t seen = 0, lanes = 0, warps = 0;
    for (uint32_t i = 0; i < columns->register_bits + columns->thread_bits; i++) {
        const bool in_register = i < columns->register_bits;
        const uint32_t thread = i - columns->register_bits;
        const uint64_t column = in_register ? columns->registers[i] : columns->threads[thread];
        if ((in_register && !(columns->distinct >> i & 1)) || (column & along) == 0) {
            continue;
        }
        if (!is_power_of_two(column) || (seen & column) != 0) {
            return false;
        }
        seen |= column;
        lanes |= !in_register && thread < columns->lane_bits ? column : 0;
        warps |= !in_register && thread >= columns->lane_bits ? column : 0;
    }
    return warps == 0 || lanes < (warps & (~warps + 1));
}

/* One column's new unit vector: itself if it is one, else the pivot of its remainder. 0: it depends
 * on the earlier ones. */
static uint64_t take_pivot(lilac_f2_basis *span, uint64_t column) {
    const uint64_t before = span->pivots;
    (void)lilac_f2_basis_add(span, column, 0);
    return span->pivots ^ before;
}

/* Sorts the columns that lanes and warps have along the axis: the lower ones go to the lanes. */
static void order_threads(lilac_layout_columns *columns, uint64_t along) {
    uint32_t places[LILAC_LAYOUT_MAX_BITS], count = 0;
    uint64_t *threads = columns->threads;
    for (uint32_t i = 0; i < columns->thread_bits; i++) {
        if (threads[i] & along) {
            places[count++] = i;
        }
    }
    for (uint32_t i = 1; i < count; i++) {
        for (uint32_t k = i; k > 0 && threads[places[k]] < threads[places[k - 1]]; k--) {
            const uint64_t higher = threads[places[k - 1]];
            threads[places[k - 1]] = threads[places[k]];
            threads[places[k]] = higher;
        }
    }
}

/* The near layout. Its registers are numbered without the copies of the source, and without those
 * that a thread bit has too. */
static void make_near(lilac_layout_columns *result, const lilac_layout_columns *source,
                      uint32_t axis) {
    lilac_f2_basis span;
    uint32_t registers = 0;
    lilac_f2_basis_init(&span);
    *result = *source;
    for (uint32_t i = 0; i < source->block_bits; i++) {
        (void)lilac_f2_basis_add(&span, source->blocks[i], 0);
    }
    /* Unit vectors first, so that they stay where they are. */
    for (uint32_t pass = 0; pass < 2; pass++) {
        registers = 0;
        for (uint32_t i = 0; i < source->register_bits; i++) {
            if (!(source->distinct >> i & 1)) {
                continue;
            }
            if (is_power_of_two(source->registers[i]) == (pass == 0)) {
                result->registers[registers] = take_pivot(&span, source->registers[i]);
            }
            registers++;
        }
        for (uint32_t i = 0; i < source->thread_bits; i++) {
            if (is_power_of_two(source->threads[i]) == (pass == 0)) {
                result->threads[i] = take_pivot(&span, source->threads[i]);
            }
        }
    }
    result->register_bits = 0;
    for (uint32_t i = 0; i < registers; i++) {
        if (result->registers[i] != 0) {
            result->registers[result->register_bits++] = result->registers[i];
        }
    }
    lilac_layout_columns_find_replicated(result);
    if (!can_scan(result, axis)) {
        order_threads(result, axis_mask(result, axis));
        lilac_layout_columns_find_replicated(result);
    }
}

/* ---- runs -------------------------------------------------------------------------------- */

/* The kind and the place of one unit of the axis. */
static lilac_plan_scan_kind find_unit(const lilac_layout_columns *columns, uint64_t unit,
                                      uint32_t *place) {
    lilac_plan_scan_kind kind = LILAC_PLAN_SCAN_REGISTERS;
    *place = 0;
    for (uint32_t i = 0; i < columns->register_bits; i++) {
        if ((columns->distinct >> i & 1) && columns->registers[i] == unit) {
            *place = i;
        }
    }
    for (uint32_t i = 0; i < columns->thread_bits; i++) {
        if (columns->threads[i] == unit) {
            *place = i;
            kind = i < columns->lane_bits ? LILAC_PLAN_SCAN_LANES : LILAC_PLAN_SCAN_MEMORY;
        }
    }
    return kind;
}

static void find_runs(lilac_plan_scan *plan) {
    const lilac_layout_columns *columns = &plan->scanned;
    uint32_t items = columns->distinct;
    lilac_plan_scan_run *last = NULL;
    for (uint32_t bit = 0; bit < columns->bits[plan->axis]; bit++) {
        uint32_t place;
        const uint64_t unit = UINT64_C(1) << (columns->start[plan->axis] + bit);
        const lilac_plan_scan_kind kind = find_unit(columns, unit, &place);
        const bool in_register = kind == LILAC_PLAN_SCAN_REGISTERS;
        if (last == NULL || (last->kind != LILAC_PLAN_SCAN_MEMORY && last->kind != kind)) {
            last = &plan->runs[plan->run_count++];
            *last = (lilac_plan_scan_run){.kind = kind, .items = items};
        }
        last->in_threads |= (uint32_t)!in_register << last->count;
        last->place[last->count++] = (uint8_t)place;
        items &= in_register ? ~(1U << place) : ~0U;
    }
}

/* ---- memory ------------------------------------------------------------------------------ */

static uint32_t line_bits(const lilac_plan_scan *plan) {
    return plan->scanned.out_bits - plan->scanned.bits[plan->axis];
}

/* Orders the bits of a line's number: those that lanes have alone, lowest lane first, then the others. */
static void order_lines(lilac_plan_scan *plan) {
    const lilac_layout_columns *columns = &plan->scanned;
    uint64_t ordered = 0;
    uint32_t place = 0;
    for (uint32_t i = 0; i < columns->lane_bits; i++) {
        const uint64_t line = lilac_plan_columns_off(columns, plan->axis, columns->threads[i]);
        if (line != 0 && (line & (line - 1)) == 0 && (line & ordered) == 0) {
            plan->line_place[log2_of(line)] = (uint8_t)place++;
            ordered |= line;
        }
    }
    for (uint32_t bit = 0; bit < line_bits(plan); bit++) {
        if (!(ordered >> bit & 1)) {
            plan->line_place[bit] = (uint8_t)place++;
        }
    }
}

uint32_t lilac_plan_scan_vector_bits(const lilac_plan_scan *plan, uint32_t operand) {
    const uint32_t size = lilac_plan_stored_bytes(plan->region.operands[operand].element_bits);
    return min_u32(plan->runs[plan->run_count - 1].count, log2_of(plan->arch->vector_bytes / size));
}

/* The total number `block` of the coordinate's line. */
static uint64_t slot_of(const lilac_plan_scan *plan, uint32_t operand, uint64_t coordinate,
                        uint64_t block) {
    const uint64_t line = lilac_plan_columns_off(&plan->scanned, plan->axis, coordinate);
    const uint32_t vector = lilac_plan_scan_vector_bits(plan, operand);
    uint64_t ordered = 0;
    for (uint32_t bit = 0; bit < line_bits(plan); bit++) {
        ordered |= (line >> bit & 1) << plan->line_place[bit];
    }
    return (block & ((UINT64_C(1) << vector) - 1)) | ordered << vector |
           block >> vector << (vector + line_bits(plan));
}

uint64_t lilac_plan_scan_slot(const lilac_plan_scan *plan, uint32_t operand, uint64_t coordinate) {
    const uint32_t bits = plan->scanned.bits[plan->axis];
    const uint32_t count = plan->runs[plan->run_count - 1].count;
    const uint64_t along = lilac_plan_columns_along(&plan->scanned, plan->axis, coordinate);
    return slot_of(plan, operand, coordinate, along >> (bits - count));
}

uint64_t lilac_plan_scan_vector(const lilac_plan_scan *plan, uint32_t operand, uint64_t coordinate,
                                uint32_t vector) {
    return slot_of(plan, operand, coordinate,
                   (uint64_t)vector << lilac_plan_scan_vector_bits(plan, operand));
}

uint32_t lilac_plan_scan_lower_lanes(const lilac_plan_scan *plan) {
    uint32_t lanes = 0;
    for (uint32_t i = 0; i + 1 < plan->run_count; i++) {
        const lilac_plan_scan_run *run = &plan->runs[i];
        for (uint32_t k = 0; k < run->count; k++) {
            lanes |= run->in_threads >> k & 1 ? 1U << run->place[k] : 0;
        }
    }
    return lanes;
}

/* ---- the plan ---------------------------------------------------------------------------- */

static bool check(const lilac_plan_scan *plan, lilac_reason *why) {
    const lilac_layout_columns *source = &plan->source;
    if (source->bits[plan->axis] > LILAC_PLAN_MAX_SCAN) {
        return lilac_layout_refuse(why, "the axis has 2^%u elements; a scan has at most 2^%u",
                                   source->bits[plan->axis], LILAC_PLAN_MAX_SCAN);
    }
    return lilac_plan_check_axis(source, plan->axis, "a scan", why);
}

bool lilac_plan_scan_init(lilac_plan_scan *plan, const lilac_layout *source,
                          const lilac_layout *result, uint32_t axis,
                          const lilac_plan_region *region, const lilac_target *target,
                          lilac_reason *why) {
    lilac_layout_columns columns[2];
    return lilac_plan_columns_init(&columns[0], source, target, why) &&
           lilac_plan_columns_init(&columns[1], result, target, why) &&
           lilac_plan_scan_init_columns(plan, &columns[0], &columns[1], axis, region, target, why);
}

bool lilac_plan_scan_init_columns(lilac_plan_scan *plan, const lilac_layout_columns *source,
                                  const lilac_layout_columns *result, uint32_t axis,
                                  const lilac_plan_region *region, const lilac_target *target,
                                  lilac_reason *why) {
    memset(plan, 0, sizeof *plan);
    plan->arch = target->arch;
    plan->num_warps = target->num_warps;
    plan->region = *region;
    plan->axis = axis;
    plan->source = *source;
    plan->result = *result;
    if (!check(plan, why)) {
        return false;
    }
    plan->moves_operands = !can_scan(&plan->source, axis);
    plan->moves_results = plan->moves_operands || !lilac_layout_columns_equal(source, result);
    if (plan->moves_operands) {
        make_near(&plan->scanned, &plan->source, axis);
    } else {
        plan->scanned = plan->source;
    }
    find_runs(plan);
    order_lines(plan);
    lilac_plan_scan_count(plan);
    return true;
}
