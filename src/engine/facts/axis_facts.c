/* axis_facts: contiguity, divisibility and constancy of every integer and pointer of a function.
 *
 * A sweep computes facts in program order, definitions before uses. A carried value first has the
 * facts of its init. Sweeps repeat until the values that loops yield agree:
 *
 *     sweep 1   %p enters 16-aligned   →  yields %p + 24: 8-aligned   (changed: join is 8)
 *     sweep 2   %p is 8-aligned        →  yields 8-aligned            (fixpoint)
 *
 * Joins only weaken facts. After PRECISE_SWEEPS sweeps, a fact that still changes becomes unknown,
 * so the number of sweeps does not depend on the nesting of loops.
 *
 * Ranges (ranges.c) say of some values that they are not negative where the facts of their operands
 * do not.
 */
#include "internal.h"

#include <lilac/tile_loops.h>

#include <assert.h>
#include <string.h>

#define PRECISE_SWEEPS 4 /* sweeps in which a carried fact may weaken step by step */
#define MOST_SWEEPS    8 /* then one more, in which nothing is known of carried values */
#define MANY_OPERANDS  64

#define ONES                                                                                       \
    { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }
#define P MAX_DIVISIBILITY
#define LARGEST                                                                                    \
    { P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P }
static_assert(LILAC_MAX_RANK == 24, "as many ones as dimensions");
static const lilac_axis_facts nothing = {.rank = LILAC_MAX_RANK,
                                         .contiguity = ONES,
                                         .divisibility = ONES,
                                         .constancy = ONES,
                                         .period = LARGEST};

typedef struct sweep {
    lilac_axis_analysis *analysis;
    lilac_arena *arena;
    lilac_axis_facts *unknown[LILAC_MAX_RANK + 1]; /* all ones, by rank */
    uint8_t *visited;                              /* by value id */
    lilac_range *ranges;                           /* the same */
    uint32_t round;
    bool changed;
    lilac_axis_facts
        scratch; /* of one operation; here, to keep the frames of recursive functions small */
} sweep;

static bool is_tracked(const lilac_tile_type *type) {
    const lilac_tile_type *element = lilac_tile_element(type);
    if (type->kind == LILAC_TILE_TENSOR && type->rank > LILAC_MAX_RANK) {
        return false;
    }
    return element->kind == LILAC_TILE_POINTER || element->kind == LILAC_TILE_SCALAR;
}

/* Floats have constancy and periods only. Without them, no facts are stored. */
static bool is_worth_storing(const lilac_axis_facts *facts, const lilac_tile_type *type) {
    const lilac_tile_type *element = lilac_tile_element(type);
    if (element->kind != LILAC_TILE_SCALAR || !lilac_scalar_is_float(element->scalar)) {
        return true;
    }
    for (uint32_t d = 0; d < facts->rank; d++) {
        if (facts->constancy[d] > 1 || facts->period[d] < MAX_DIVISIBILITY) {
            return true;
        }
    }
    return false;
}

static const lilac_axis_facts *facts_or_ones(sweep *run, const lilac_tile_value *value) {
    const lilac_axis_facts *known = run->analysis->facts[value->id];
    if (known != NULL) {
        return known;
    }
    const lilac_tile_type *type = value->type;
    uint32_t rank = type->kind == LILAC_TILE_TENSOR && type->rank > 0 ? type->rank : 1;
    rank = rank <= LILAC_MAX_RANK ? rank : 1;
    if (run->unknown[rank] == NULL) {
        run->unknown[rank] = lilac_arena_new(run->arena, lilac_axis_facts);
        lilac_axis_unknown(run->unknown[rank], rank);
    }
    return run->unknown[rank];
}

static bool is_equal(const lilac_axis_facts *a, const lilac_axis_facts *b) {
    size_t size = a->rank * sizeof a->contiguity[0];
    for (uint32_t d = 0; d < a->rank; d++) {
        if (((a->stride_known | a->stride_typical) >> d & 1) && a->stride[d] != b->stride[d]) {
            return false;
        }
    }
    return a->stride_known == b->stride_known && a->stride_typical == b->stride_typical &&
           a->origin == b->origin && a->rank == b->rank && a->constant == b->constant &&
           a->value == b->value && a->non_negative == b->non_negative &&
           memcmp(a->contiguity, b->contiguity, size) == 0 &&
           memcmp(a->divisibility, b->divisibility, size) == 0 &&
           memcmp(a->constancy, b->constancy, size) == 0 && memcmp(a->period, b->period, size) == 0;
}

static void set(sweep *run, const lilac_tile_value *value, const lilac_axis_facts *facts) {
    lilac_axis_facts **place = &run->analysis->facts[value->id];
    run->visited[value->id] = 1;
    if (*place == NULL) {
        *place = lilac_arena_new(run->arena, lilac_axis_facts);
    }
    **place = *facts;
    (*place)->non_negative |= run->ranges[value->id].low >= 0;
}

static void set_unknown(sweep *run, const lilac_tile_value *value) {
    run->visited[value->id] = 1;
    run->analysis->facts[value->id] = NULL;
}

/* ---- attributes that are assumed to be true
 * ---------------------------------------------------------- */

static void assume_attribute(const lilac_tile_attributes *attributes, const char *name,
                             int64_t *facts, const lilac_tile_type *type, bool bounded) {
    const lilac_tile_attribute *given = lilac_tile_find(attributes, name);
    if (given == NULL) {
        return;
    }
    uint32_t rank = type->kind == LILAC_TILE_TENSOR && type->rank > 0 ? type->rank : 1;
    for (uint32_t d = 0; d < rank; d++) {
        int64_t value = 1;
        if (given->kind == LILAC_TILE_ATTR_INTEGER) {
            value = given->integer;
        } else if ((given->kind == LILAC_TILE_ATTR_DENSE ||
                    given->kind == LILAC_TILE_ATTR_INTEGERS) &&
                   given->count > 0) {
            value = given->integers[given->count == 1 ? 0 : (d < given->count ? d : 0)];
        }
        if (value <= 0) {
            continue;
        }
        value = power_of_two_in(value);
        if (bounded) {
            value = min_i64(value, type->kind == LILAC_TILE_TENSOR && d < type->rank
                                       ? power_of_two_in(type->shape[d])
                                       : 1);
        }
        facts[d] = max_i64(facts[d], value);
    }
}

static void assume_attributes(lilac_axis_facts *facts, const lilac_tile_attributes *attributes,
                              const lilac_tile_type *type) {
    if (attributes->count == 0) {
        return;
    }
    assume_attribute(attributes, "tt.contiguity", facts->contiguity, type, true);
    assume_attribute(attributes, "tt.constancy", facts->constancy, type, true);
    assume_attribute(attributes, "tt.divisibility", facts->divisibility, type, false);
}

/* ---- loops and branches ----------------------------------------------------------------- */

/* Joins the facts of a carried value with those of `incoming`, its init or the value yielded for
 * it. */
static void carry(sweep *run, const lilac_tile_value *value, const lilac_tile_value *incoming) {
    if (!is_tracked(value->type)) {
        return;
    }
    if (run->round > MOST_SWEEPS) {
        set_unknown(run, value);
        return;
    }
    const lilac_axis_facts *in = facts_or_ones(run, incoming);
    if (!run->visited[value->id]) {
        set(run, value, in);
        return;
    }
    const lilac_axis_facts *old = facts_or_ones(run, value);
    lilac_axis_facts *joined = &run->scratch;
    lilac_axis_join(joined, old, in, lilac_axis_unit(value->type));
    joined->non_negative |= run->ranges[value->id].low >= 0;
    if (is_equal(joined, old)) {
        return;
    }
    run->changed = true;
    if (run->round >= PRECISE_SWEEPS) {
        lilac_axis_unknown(joined, joined->rank);
    }
    set(run, value, joined);
}

static void copy_facts(sweep *run, const lilac_tile_value *to, const lilac_tile_value *from) {
    if (is_tracked(to->type)) {
        set(run, to, facts_or_ones(run, from));
    }
}

static void sweep_region(sweep *run, lilac_tile_region *region);

/* scf.for: the induction variable is lower + n·step, n >= 0. */
static void sweep_for(sweep *run, lilac_tile_op *op) {
    const lilac_axis_facts *lower = facts_or_ones(run, lilac_tile_lower_bound(op));
    const lilac_axis_facts *step = facts_or_ones(run, lilac_tile_step(op));
    lilac_axis_facts *counter = &run->scratch;
    lilac_axis_unknown(counter, 1);
    counter->divisibility[0] = min_i64(lower->divisibility[0], step->divisibility[0]);
    counter->non_negative =
        lower->non_negative && lilac_tile_find(&op->attributes, "unsignedCmp") == NULL;
    set(run, lilac_tile_induction_variable(op), counter);
    for (uint32_t i = 0; i < op->result_count; i++) {
        carry(run, lilac_tile_iteration_argument(op, i), lilac_tile_init(op, i));
    }
    sweep_region(run, op->regions[0]);
    for (uint32_t i = 0; i < op->result_count; i++) {
        carry(run, lilac_tile_iteration_argument(op, i), lilac_tile_next(op, i));
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        copy_facts(run, &op->results[i], lilac_tile_iteration_argument(op, i));
    }
}

/* scf.while: before(carried) … scf.condition(%c) passed;  after(passed) … scf.yield carried */
static void sweep_while(sweep *run, lilac_tile_op *op) {
    uint32_t carried = lilac_tile_carried_count(op);
    for (uint32_t i = 0; i < carried; i++) {
        carry(run, lilac_tile_iteration_argument(op, i), lilac_tile_init(op, i));
    }
    sweep_region(run, op->regions[0]);
    for (uint32_t i = 0; i < op->result_count; i++) {
        copy_facts(run, lilac_tile_passed_argument(op, i), lilac_tile_passed(op, i));
        copy_facts(run, &op->results[i], lilac_tile_passed(op, i));
    }
    sweep_region(run, op->regions[1]);
    for (uint32_t i = 0; i < carried; i++) {
        carry(run, lilac_tile_iteration_argument(op, i), lilac_tile_next(op, i));
    }
}

static void sweep_if(sweep *run, lilac_tile_op *op) {
    for (uint32_t r = 0; r < op->region_count; r++) {
        sweep_region(run, op->regions[r]);
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (!is_tracked(op->results[i].type)) {
            continue;
        }
        lilac_axis_join(&run->scratch, facts_or_ones(run, lilac_tile_yielded(op, 0, i)),
                        facts_or_ones(run, lilac_tile_yielded(op, 1, i)),
                        lilac_axis_unit(op->results[i].type));
        set(run, &op->results[i], &run->scratch);
    }
}

/* ---- straight lines --------------------------------------------------------------------- */

static void sweep_plain(sweep *run, lilac_tile_op *op) {
    const lilac_axis_facts *operands[MANY_OPERANDS];
    bool few = op->operand_count <= MANY_OPERANDS;
    for (uint32_t i = 0; few && i < op->operand_count; i++) {
        operands[i] = facts_or_ones(run, op->operands[i].value);
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (!is_tracked(op->results[i].type)) {
            continue;
        }
        if (!few) {
            set_unknown(run, &op->results[i]);
            continue;
        }
        lilac_axis_facts *facts = &run->scratch;
        lilac_axis_transfer(facts, op, i, operands);
        assume_attributes(facts, &op->attributes, op->results[i].type);
        lilac_axis_periods(facts, op, i, operands);
        if (!is_worth_storing(facts, op->results[i].type)) {
            set_unknown(run, &op->results[i]);
            continue;
        }
        lilac_axis_strides(facts, op, i, operands);
        set(run, &op->results[i], facts);
    }
}

static void sweep_other(sweep *run, lilac_tile_op *op) {
    const bool partitions = op->code == LILAC_TILE_OP_TTG_WARP_SPECIALIZE;
    for (uint32_t r = 1; partitions && r < op->region_count; r++) {
        for (uint32_t i = 0; i < op->operand_count; i++) {
            copy_facts(run, op->regions[r]->first->arguments[i], op->operands[i].value);
        }
    }
    for (uint32_t r = 0; r < op->region_count; r++) {
        sweep_region(run, op->regions[r]);
    }
    sweep_plain(run, op);
}

static void sweep_region(sweep *run, lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            if (op->code == LILAC_TILE_OP_SCF_FOR) {
                sweep_for(run, op);
            } else if (op->code == LILAC_TILE_OP_SCF_WHILE) {
                sweep_while(run, op);
            } else if (op->code == LILAC_TILE_OP_SCF_IF) {
                sweep_if(run, op);
            } else {
                sweep_other(run, op);
            }
        }
    }
}

static void parameters(sweep *run, const lilac_tile_function *function) {
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        const lilac_tile_value *value = function->parameters[i];
        if (!is_tracked(value->type)) {
            continue;
        }
        lilac_axis_facts facts;
        lilac_axis_unknown(&facts, value->type->kind == LILAC_TILE_TENSOR && value->type->rank > 0
                                       ? value->type->rank
                                       : 1);
        assume_attributes(&facts, &function->parameter_attributes[i], value->type);
        set(run, value, &facts);
    }
}

void lilac_engine_axis_facts(lilac_axis_analysis *result, lilac_arena *arena,
                             lilac_tile_function *function) {
    lilac_tile_number(function);
    result->count = function->value_count;
    result->facts = lilac_arena_array(arena, lilac_axis_facts *, function->value_count);
    if (function->body == NULL) {
        return;
    }
    sweep run = {.analysis = result,
                 .arena = arena,
                 .visited = lilac_arena_array(arena, uint8_t, function->value_count),
                 .ranges = lilac_arena_array(arena, lilac_range, function->value_count)};
    lilac_engine_ranges(run.ranges, function);
    parameters(&run, function);
    do {
        run.changed = false;
        run.round++;
        sweep_region(&run, function->body);
    } while (run.changed && run.round <= MOST_SWEEPS);
}

/* ---- questions -------------------------------------------------------------------------- */

const lilac_axis_facts *lilac_axis_facts_of(const lilac_axis_analysis *analysis,
                                            const lilac_tile_value *value) {
    if (value->id >= analysis->count || analysis->facts[value->id] == NULL) {
        return &nothing;
    }
    return analysis->facts[value->id];
}

uint64_t lilac_axis_same_coordinates(const lilac_axis_facts *facts, const lilac_tile_type *type) {
    uint64_t mask = 0;
    uint32_t start = 0;
    if (!lilac_tile_is_tensor(type) || facts->rank != type->rank) {
        return 0;
    }
    for (uint32_t d = 0; d < type->rank; d++) {
        const uint64_t size = (uint64_t)type->shape[d];
        if ((size & (size - 1)) != 0 || start + log2_of(size) > 64) {
            return 0;
        }
        const uint64_t equal = min_u64((uint64_t)max_i64(facts->constancy[d], 1), size);
        const uint64_t period = min_u64((uint64_t)facts->period[d], size);
        if (size > 1) {
            mask |= ((equal - 1) | (size - period)) << start;
        }
        start += log2_of(size);
    }
    return mask;
}
