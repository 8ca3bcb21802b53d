/* The plan of a reduction: which bits of the operands' layout combine, and how each does.
 *
 * Split a coordinate into the part that the result keeps (K) and the axis (A). Visit the register,
 * lane and warp bits in that order. Each bit either
 *
 *   is new in K            it leads to other elements of the result: nothing to combine
 *   adds nothing in K …    (after xoring earlier bits that cancel its part there)
 *     … and is new in A    its two halves are combined
 *     … and is not         its two halves are copies: they must not be combined
 *
 * A lane bit that combines is a step of a butterfly, unless only a register bit cancels its part in
 * K: then its partials are combined in shared memory, as those of a warp bit are
 * (reduce_memory.c). If nothing is combined there, the result's registers are a permutation of the
 * groups, or a conversion moves the groups to their threads. */
#include "reduce.h"

#include <string.h>

uint64_t lilac_plan_reduce_kept(const lilac_plan_reduce *plan, uint64_t coordinate) {
    return lilac_plan_columns_off(&plan->source, plan->axis, coordinate);
}

uint64_t lilac_plan_reduce_place(const lilac_plan_reduce *plan, uint64_t element) {
    uint64_t index = 0;
    for (; element != 0; element &= element - 1) {
        index ^= plan->element_place[lowest_bit(element)];
    }
    return index;
}

/* ---- classes ----------------------------------------------------------------------------- */

typedef enum bit_class { KEEPS, COMBINES, COPIES } bit_class;

/* The class of a bit with this column. *tag: on entry the bit's own mark, on return the marks of
 * all bits whose xor is the direction. */
static bit_class classify(const lilac_plan_reduce *plan, lilac_f2_basis *keeps,
                          lilac_f2_basis *combines, uint64_t column, uint64_t *tag) {
    const uint32_t axis_bits = plan->source.bits[plan->axis];
    const uint64_t key = lilac_plan_reduce_kept(plan, column) << axis_bits |
                         lilac_plan_columns_along(&plan->source, plan->axis, column);
    uint64_t others;
    const uint64_t rest = lilac_f2_basis_reduce(keeps, key, &others);
    if (rest >> axis_bits != 0) {
        (void)lilac_f2_basis_add(keeps, key, *tag);
        return KEEPS;
    }
    *tag ^= others;
    return lilac_f2_basis_add(combines, rest, 0) ? COMBINES : COPIES;
}

enum { THREAD_MARK = 32 }; /* marks of thread bits are above those of register bits */

static void classify_registers(lilac_plan_reduce *plan, lilac_f2_basis *keeps,
                               lilac_f2_basis *combines) {
    for (uint32_t i = 0; i < plan->source.register_bits; i++) {
        uint64_t tag = UINT64_C(1) << i;
        switch (classify(plan, keeps, combines, plan->source.registers[i], &tag)) {
        case KEEPS:
            plan->group_register[plan->group_bits++] = i;
            break;
        case COMBINES:
            plan->fold_masks[plan->fold_bits++] = (uint32_t)tag;
            break;
        case COPIES:
            break;
        }
    }
}

static void classify_threads(lilac_plan_reduce *plan, lilac_f2_basis *keeps,
                             lilac_f2_basis *combines) {
    for (uint32_t i = 0; i < plan->source.thread_bits; i++) {
        uint64_t tag = UINT64_C(1) << (THREAD_MARK + i);
        const bit_class what = classify(plan, keeps, combines, plan->source.threads[i], &tag);
        const bool needs_registers = (tag & low_bits(THREAD_MARK)) != 0;
        const bool shuffles = i < plan->source.lane_bits && !needs_registers;
        if (what == COMBINES && shuffles) {
            plan->lane_pivots[plan->lane_steps] = i;
            plan->lane_masks[plan->lane_steps++] = (uint32_t)(tag >> THREAD_MARK);
        } else if (what == COMBINES) {
            plan->slot_thread[plan->slot_bits++] = i;
        }
        if (what == COPIES || (what == COMBINES && shuffles)) {
            plan->idle_threads |= 1U << i;
        }
    }
}

/* ---- the order of the registers ---------------------------------------------------------- */

/* Words of a thread's elements up to which all of them may wait in registers, and from which on
 * they keep ptxas from loading ahead unless they do. */
enum { MAX_WAITING_WORDS = 128, MANY_WORDS = 64 };

/* Registers are combined in the order in which they are loaded, all groups in parallel, so that
 * few elements wait. If vectors hold many groups, ptxas then loads few of them ahead, to save
 * registers. As long as the registers hold all elements, the groups are therefore finished one
 * after the other: the first needs every vector, and all loads are in flight at once. */
static bool is_group_major(const lilac_plan_reduce *plan) {
    const uint32_t registers = 1U << (plan->group_bits + plan->fold_bits);
    const uint32_t words = registers * plan->region.operands[0].element_bits / 32;
    return words > MANY_WORDS && words <= MAX_WAITING_WORDS;
}

/* ---- results without shared memory ------------------------------------------------------- */

/* The groups in which the result's registers find their elements; false when these are in other
 * threads. */
static bool find_groups(lilac_plan_reduce *plan) {
    lilac_f2_basis groups;
    lilac_f2_basis_init(&groups);
    for (uint32_t i = 0; i < plan->source.thread_bits; i++) {
        if (lilac_plan_reduce_kept(plan, plan->source.threads[i]) != plan->result.threads[i]) {
            return false;
        }
    }
    for (uint32_t i = 0; i < plan->group_bits; i++) {
        (void)lilac_f2_basis_add(&groups, lilac_plan_reduce_group_column(plan, i),
                                 UINT64_C(1) << i);
    }
    for (uint32_t i = 0; i < plan->result.register_bits; i++) {
        uint64_t group;
        if (lilac_f2_basis_reduce(&groups, plan->result.registers[i], &group) != 0) {
            return false;
        }
        plan->result_group[i] = (uint32_t)group;
    }
    return true;
}

/* The groups as columns, in the shape of the result. */
static void group_columns(const lilac_plan_reduce *plan, lilac_layout_columns *columns) {
    *columns = plan->result;
    columns->register_bits = plan->group_bits;
    for (uint32_t i = 0; i < plan->group_bits; i++) {
        columns->registers[i] = lilac_plan_reduce_group_column(plan, i);
    }
    for (uint32_t i = 0; i < columns->thread_bits; i++) {
        columns->threads[i] = lilac_plan_reduce_kept(plan, plan->source.threads[i]);
    }
    for (uint32_t i = 0; i < columns->block_bits; i++) {
        columns->blocks[i] = lilac_plan_reduce_kept(plan, plan->source.blocks[i]);
    }
    lilac_layout_columns_find_replicated(columns);
}

bool lilac_plan_reduce_finished(const lilac_plan_reduce *plan, lilac_layout_columns *columns) {
    const lilac_layout_columns *loader = lilac_plan_reduce_loader(plan);
    if (plan->scalar) {
        return false;
    }
    if (plan->slot_bits > 0) {
        *columns = *loader;
    } else {
        group_columns(plan, columns);
    }
    return true;
}

/* ---- the plan ---------------------------------------------------------------------------- */

static bool check(const lilac_plan_reduce *plan, lilac_reason *why) {
    const lilac_layout_columns *source = &plan->source;
    if (source->register_bits > LILAC_PLAN_MAX_COMBINED ||
        source->thread_bits > LILAC_PLAN_MAX_COMBINED) {
        return lilac_layout_refuse(
            why, "the layout has %u register bits and %u thread bits; at most %u are supported",
            source->register_bits, source->thread_bits, LILAC_PLAN_MAX_COMBINED);
    }
    return lilac_plan_check_axis(source, plan->axis, "a reduction", why);
}

bool lilac_plan_reduce_init(lilac_plan_reduce *plan, const lilac_layout *source,
                            const lilac_layout *result, uint32_t axis,
                            const lilac_plan_region *region, const lilac_target *target,
                            lilac_reason *why) {
    lilac_layout_columns columns[2];
    return lilac_plan_columns_init(&columns[0], source, target, why) &&
           (result == NULL || lilac_plan_columns_init(&columns[1], result, target, why)) &&
           lilac_plan_reduce_init_columns(plan, &columns[0], result != NULL ? &columns[1] : NULL,
                                          axis, region, target, why);
}

bool lilac_plan_reduce_init_columns(lilac_plan_reduce *plan, const lilac_layout_columns *source,
                                    const lilac_layout_columns *result, uint32_t axis,
                                    const lilac_plan_region *region, const lilac_target *target,
                                    lilac_reason *why) {
    lilac_f2_basis keeps, combines;
    memset(plan, 0, sizeof *plan);
    plan->arch = target->arch;
    plan->num_warps = target->num_warps;
    plan->axis = axis;
    plan->region = *region;
    plan->scalar = result == NULL;
    plan->source = *source;
    if (result != NULL) {
        plan->result = *result;
    }
    if (!check(plan, why)) {
        return false;
    }
    plan->kept_bits = plan->source.out_bits - plan->source.bits[axis];
    lilac_f2_basis_init(&keeps);
    lilac_f2_basis_init(&combines);
    classify_registers(plan, &keeps, &combines);
    classify_threads(plan, &keeps, &combines);
    const uint32_t combined = plan->fold_bits + plan->lane_steps + plan->slot_bits;
    if (combined != plan->source.bits[axis]) {
        return lilac_layout_refuse(
            why,
            "a block holds 2^%u of the 2^%u elements that a reduction along dimension %u combines",
            combined, plan->source.bits[axis], axis);
    }
    plan->group_major = is_group_major(plan);
    if (plan->slot_bits > 0) {
        lilac_plan_reduce_order_memory(plan);
    } else if (!plan->scalar) {
        plan->moves = !find_groups(plan);
    }
    lilac_plan_reduce_count(plan);
    return true;
}
