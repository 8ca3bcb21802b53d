/* assign_layouts: every tensor of a function gets a linear layout.
 *
 *     tensor<1024xf16>   →   tensor<1024xf16, #ttg.linear<{register = [[1], [2], [4]], lane = …
 *
 *   1  List the operations with the layout relations of their tensors; refuse an operation without
 *      one (transfer.c).
 *   2  Classify the tensors: cheap ones are computed again in each layout, the others once.
 *   3  Describe the memory accesses by axis facts (coalesce.c).
 *   4  Unite the values that must have one layout, choose layouts by price, and propagate them
 *      through shape operations (layout_constraints.c, propagate.c, refine.c).
 *   5  Rewrite: types, clones of cheap chains, conversions (rematerialise.c).
 *
 * A function whose tensors have layouts already keeps them; only their numbers of threads are
 * checked.
 */
#include "layouts/assign.h"

#include <lilac/tile_loops.h>

#include <string.h>

/* ---- listing ---------------------------------------------------------------------------- */

/* Numbers of operations, anchors and tensors of a function. */
typedef struct function_counts {
    uint32_t ops, anchors, with_layout, without;
    const lilac_tile_op *mixed; /* the first operation after which there are both; NULL: none */
} function_counts;

static void count_type(function_counts *counts, const lilac_tile_type *type,
                       const lilac_tile_op *op) {
    if (!lilac_tile_is_tensor(type)) {
        return;
    }
    if (type->layout != NULL) {
        counts->with_layout++;
    } else {
        counts->without++;
    }
    if (counts->with_layout > 0 && counts->without > 0 && counts->mixed == NULL) {
        counts->mixed = op;
    }
}

static void count_operations(function_counts *counts, const lilac_tile_region *region) {
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            counts->ops++;
            counts->anchors += lilac_layout_relation(op)->anchor;
            for (uint32_t i = 0; i < op->result_count; i++) {
                count_type(counts, op->results[i].type, op);
            }
            for (uint32_t r = 0; r < op->region_count; r++) {
                count_operations(counts, op->regions[r]);
            }
        }
    }
}

static bool is_covered(const lilac_tile_type *type) {
    if (!lilac_tile_is_tensor(type)) {
        return true;
    }
    uint32_t bits = 0;
    for (uint32_t d = 0; d < type->rank; d++) {
        if (type->shape[d] < 1 || power_of_two_in(type->shape[d]) != type->shape[d]) {
            return false;
        }
        bits += log2_of(type->shape[d]);
    }
    return type->rank <= LILAC_LAYOUT_MAX_DIMS && bits <= 40;
}

/* Refuses an operation without a layout relation, and results that no layout covers. */
static void check_operation(assignment *a, const lilac_tile_op *op, layout_rule rule) {
    if (rule == RULE_REFUSED) {
        lilac_error(a->module->context, lilac_tile_position(op), op->location,
                    "unsupported-operation", "'%s' on tensors has no layout rule yet",
                    lilac_tile_op_info_get(op->code)->name);
        a->failed = true;
        return;
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (is_covered(op->results[i].type)) {
            continue;
        }
        lilac_error(
            a->module->context, lilac_tile_position(op), op->location, "shape",
            "no layout covers result %u of '%s': every dimension must be a power of two, the "
            "rank at most %d, and the tensor has at most 2^40 elements",
            i, lilac_tile_op_info_get(op->code)->name, LILAC_LAYOUT_MAX_DIMS);
        a->failed = true;
        return;
    }
}

#define USUAL_TRIP_COUNT 32 /* of a loop whose trip count is not constant */
#define MOST_TRIP_COUNT  64
#define MOST_WEIGHT      (INT64_C(1) << 12)

int64_t lilac_engine_estimated_trip_count(const lilac_tile_op *op) {
    uint64_t count;
    if (!lilac_tile_is_loop(op)) {
        return 1;
    }
    if (!lilac_tile_trip_count(op, &count)) {
        return USUAL_TRIP_COUNT;
    }
    return count == 0 ? 1 : count < MOST_TRIP_COUNT ? (int64_t)count : MOST_TRIP_COUNT;
}

int64_t lilac_assign_inner_weight(const lilac_tile_op *op, int64_t weight) {
    if (lilac_tile_find(&op->attributes, "lilac.rare") != NULL) {
        return 0;
    }
    return min_i64(weight * lilac_engine_estimated_trip_count(op), MOST_WEIGHT);
}

static void list(assignment *a, const lilac_tile_region *region, int64_t weight) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (uint32_t i = 0; i < block->argument_count; i++) {
            a->value[block->arguments[i]->id] = block->arguments[i];
            a->weight[block->arguments[i]->id] = weight;
        }
        for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            listed_op *entry = &a->ops[a->op_count++];
            const layout_relation *relation = lilac_layout_relation(op);
            *entry = (listed_op){.op = op, .relation = relation, .weight = weight};
            check_operation(a, op, relation->rule);
            a->has_products |= op->code == LILAC_TILE_OP_TT_DOT ||
                               op->code == LILAC_TILE_OP_TT_DOT_SCALED ||
                               op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT;
            if (relation->anchor) {
                entry->anchor = &a->anchors[a->anchor_count];
                entry->anchor->op = op;
                entry->anchor->relation = relation;
                entry->anchor->node = a->value_count + a->anchor_count++;
                entry->anchor->is_memory = relation->rule == RULE_MEMORY;
                entry->anchor->weight = weight;
            }
            for (uint32_t i = 0; i < op->result_count; i++) {
                a->value[op->results[i].id] = &op->results[i];
                a->weight[op->results[i].id] = weight;
                a->anchor_of[op->results[i].id] = entry->anchor;
            }
            for (uint32_t r = 0; r < op->region_count; r++) {
                list(a, op->regions[r], lilac_assign_inner_weight(op, weight));
            }
        }
    }
}

/* ---- broadcasts --------------------------------------------------------------------------- */

static bool accesses_memory(const lilac_tile_op *op) {
    return lilac_layout_relation(op)->rule == RULE_MEMORY;
}

/* Gives each memory operation broadcasts of its own. The operand of a broadcast can be converted
 * for each of them at little cost, so a mask of rows that a load and a store share must not force
 * one layout on both. */
static void separate_broadcasts(lilac_tile_module *module, const lilac_tile_region *region) {
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            for (uint32_t i = 0; i < op->operand_count && accesses_memory(op); i++) {
                lilac_tile_op *broadcast = op->operands[i].value->op;
                if (broadcast != NULL && broadcast->code == LILAC_TILE_OP_TT_BROADCAST &&
                    op->operands[i].value->uses->next != NULL) {
                    lilac_tile_op *copy = lilac_tile_clone(module, broadcast);
                    lilac_tile_insert_after(broadcast, copy);
                    lilac_tile_set_operand(op, i, &copy->results[0]);
                }
            }
            for (uint32_t r = 0; r < op->region_count; r++) {
                separate_broadcasts(module, op->regions[r]);
            }
        }
    }
}

/* ---- kinds of values -------------------------------------------------------------------- */

/* The most instructions for each element that a chain of cheap values may have. A conversion
 * through shared memory stores and loads the element, two wavefronts for the 32 elements of a
 * register: in this time the four schedulers of a multiprocessor issue eight instructions. Chains
 * of offsets may be several times longer, because different layouts share most of their
 * instructions. */
#define MOST_REPEATED_ISSUES 64

/* Instructions of a cheap operation for each element. A division by a constant is a multiplication
 * and a shift. */
static uint32_t repeated_issues(const lilac_tile_op *op) {
    int64_t divisor;
    if (lilac_tile_divides(op->code) && lilac_tile_constant(op->operands[1].value, &divisor)) {
        return 4;
    }
    return (uint32_t)lilac_engine_issues(op);
}

/* The chain of cheap values that a value is computed from. */
typedef struct cheap_chains {
    uint32_t *issues;  /* by value id: of the chain, common parts counted once for each use; an
                          upper bound of the true number */
    uint32_t *visited; /* by value id: the last search that visited the value */
    uint32_t searches;
} cheap_chains;

/* Adds the operation and the cheap ones behind its operands that this search has not visited, until
 * the limit is exceeded. */
static uint32_t count_issues(const assignment *a, cheap_chains *chains, const lilac_tile_op *op) {
    uint32_t sum = repeated_issues(op);
    for (uint32_t i = 0; i < op->operand_count && sum <= MOST_REPEATED_ISSUES; i++) {
        const lilac_tile_value *value = op->operands[i].value;
        if (a->kind[value->id] == VALUE_CHEAP && value->op != NULL &&
            chains->visited[value->id] != chains->searches) {
            chains->visited[value->id] = chains->searches;
            sum += count_issues(a, chains, value->op);
        }
    }
    return sum;
}

/* Is the operation, with the cheap ones that it is computed from, a chain short enough to be
 * repeated? */
static bool has_short_chain(const assignment *a, cheap_chains *chains, const lilac_tile_op *op) {
    uint32_t bound = repeated_issues(op);
    for (uint32_t i = 0; i < op->operand_count; i++) {
        bound += chains->issues[op->operands[i].value->id];
    }
    if (bound > MOST_REPEATED_ISSUES) {
        chains->searches++;
        bound = count_issues(a, chains, op);
    }
    chains->issues[op->results[0].id] = bound;
    return bound <= MOST_REPEATED_ISSUES;
}

/* Is the result computed from cheap values by a few instructions? */
static bool is_cheap(const assignment *a, cheap_chains *chains, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    if (op->result_count != 1 || op->region_count != 0) {
        return false;
    }
    if (listed->relation->rule == RULE_SOURCE) {
        return true;
    }
    if ((listed->relation->rule != RULE_SAME && listed->relation->rule != RULE_SHAPE) ||
        !(lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) ||
        lilac_engine_is_expensive(op->code)) {
        return false;
    }
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (a->kind[op->operands[i].value->id] == VALUE_FIXED) {
            return false;
        }
    }
    return has_short_chain(a, chains, op);
}

/* In blocks that are not in order of dominance a use may precede its definition. Such values are
 * not computed again. */
static void mark_early_uses(assignment *a) {
    uint8_t *defined = lilac_arena_array(a->arena, uint8_t, a->value_count + 1);
    for (uint32_t i = 0; i < a->op_count; i++) {
        const lilac_tile_op *op = a->ops[i].op;
        for (uint32_t k = 0; k < op->operand_count; k++) {
            const lilac_tile_value *value = op->operands[k].value;
            if (value->op != NULL && !defined[value->id] && lilac_tile_is_tensor(value->type)) {
                a->kind[value->id] = VALUE_FIXED;
            }
        }
        for (uint32_t k = 0; k < op->result_count; k++) {
            defined[op->results[k].id] = 1;
        }
    }
}

static void classify_values(assignment *a) {
    for (uint32_t i = 0; i < a->value_count; i++) {
        if (a->value[i] != NULL && a->value[i]->op == NULL &&
            lilac_tile_is_tensor(a->value[i]->type)) {
            a->kind[i] = VALUE_FIXED;
        }
    }
    mark_early_uses(a);
    cheap_chains chains = {.issues = lilac_arena_array(a->arena, uint32_t, a->value_count + 1),
                           .visited = lilac_arena_array(a->arena, uint32_t, a->value_count + 1)};
    for (uint32_t i = 0; i < a->op_count; i++) {
        const lilac_tile_op *op = a->ops[i].op;
        bool cheap = is_cheap(a, &chains, &a->ops[i]);
        for (uint32_t k = 0; k < op->result_count; k++) {
            const lilac_tile_value *value = &op->results[k];
            if (lilac_tile_is_tensor(value->type) && a->kind[value->id] != VALUE_FIXED) {
                a->kind[value->id] = cheap ? VALUE_CHEAP : VALUE_FIXED;
            }
        }
    }
}

/* Does an operation use one copy of each element of its operands only? A store does. An operation
 * whose threads compute their elements from their own elements does if the users of its results do.
 * eliminate_redundant_loads decides this more precisely for given layouts; this answer holds for
 * all layouts, so prices may use it. */
static bool uses_one_copy(const assignment *a, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    if (op->code == LILAC_TILE_OP_TT_STORE) {
        return true;
    }
    bool same_thread = listed->relation->rule == RULE_SAME && op->region_count == 0 &&
                       (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) != 0;
    if (!same_thread && op->code != LILAC_TILE_OP_TT_LOAD) {
        return false;
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (!a->needs_one_copy[op->results[i].id]) {
            return false;
        }
    }
    return true;
}

static void find_one_copy_uses(assignment *a) {
    memset(a->needs_one_copy, 1, a->value_count);
    for (uint32_t i = a->op_count; i-- > 0;) {
        bool one_copy = uses_one_copy(a, &a->ops[i]);
        for (uint32_t k = 0; k < a->ops[i].op->operand_count && !one_copy; k++) {
            a->needs_one_copy[a->ops[i].op->operands[k].value->id] = 0;
        }
    }
}

/* ---- the pass --------------------------------------------------------------------------- */

static void refuse_parameters(assignment *a) {
    for (uint32_t i = 0; i < a->function->parameter_count; i++) {
        if (!lilac_tile_is_tensor(a->function->parameters[i]->type)) {
            continue;
        }
        lilac_error(a->module->context, a->function->position, a->function->location,
                    "unsupported-operation",
                    "parameter %u is a tensor; tensor parameters have no layout rule yet", i);
        a->failed = true;
        return;
    }
}

static void assign_function(assignment *a, const function_counts *counts) {
    lilac_engine_axis_facts(&a->axis, a->arena, a->function);
    a->value_count = a->function->value_count;
    a->node_count = a->value_count + counts->anchors;
    a->ops = lilac_arena_array(a->arena, listed_op, counts->ops + 1);
    a->anchors = lilac_arena_array(a->arena, layout_anchor, counts->anchors + 1);
    a->value = lilac_arena_array(a->arena, lilac_tile_value *, a->value_count + 1);
    a->kind = lilac_arena_array(a->arena, uint8_t, a->value_count + 1);
    a->weight = lilac_arena_array(a->arena, int64_t, a->value_count + 1);
    a->needs_one_copy = lilac_arena_array(a->arena, uint8_t, a->value_count + 1);
    a->anchor_of = lilac_arena_array(a->arena, layout_anchor *, a->value_count + 1);
    a->equality_class = lilac_arena_array(a->arena, uint32_t, a->node_count + 1);
    a->component = lilac_arena_array(a->arena, uint32_t, a->node_count + 1);
    a->layout = lilac_arena_array(a->arena, const lilac_layout *, a->node_count + 1);
    refuse_parameters(a);
    list(a, a->function->body, 1);
    if (a->failed) {
        return;
    }
    classify_values(a);
    find_one_copy_uses(a);
    for (uint32_t i = 0; i < a->op_count; i++) {
        if (a->ops[i].relation->rule == RULE_MEMORY) {
            lilac_coalesce_access(a, &a->ops[i].anchor->access, &a->ops[i]);
        }
    }
    lilac_keep_cached(a);
    lilac_propagate_layouts(a);
    if (!a->failed && !lilac_rematerialise(a)) {
        a->failed = true;
    }
}

/* ---- functions that have layouts -------------------------------------------------------- */

/* Checks that a layout from the text has as many lanes, warps and blocks as the kernel. */
static bool check_threads(const lilac_tile_function *function, const lilac_target *target,
                          const lilac_tile_type *type, lilac_position position,
                          lilac_location location) {
    const struct {
        const char *input;
        uint32_t count;
    } inputs[] = {{"lane", target->arch->warp_size},
                  {"warp", target->num_warps},
                  {"block", target->num_ctas}};
    if (!lilac_tile_is_tensor(type)) {
        return true;
    }
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        int at = lilac_layout_in(type->layout, inputs[i].input);
        uint32_t bits = at < 0 ? 0 : type->layout->in[at].bits;
        if (bits == log2_of(inputs[i].count)) {
            continue;
        }
        lilac_error(function->module->context, position, location, "layout-of-other-threads",
                    "the layout of a tensor has 2^%u %ss; the kernel has %u", bits, inputs[i].input,
                    inputs[i].count);
        return false;
    }
    return true;
}

static bool check_region(const lilac_tile_function *function, const lilac_target *target,
                         const lilac_tile_region *region) {
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            for (uint32_t i = 0; i < op->result_count; i++) {
                if (!check_threads(function, target, op->results[i].type, op->position,
                                   op->location)) {
                    return false;
                }
            }
            for (uint32_t r = 0; r < op->region_count; r++) {
                if (!check_region(function, target, op->regions[r])) {
                    return false;
                }
            }
        }
    }
    return true;
}

static bool assign_tensors(lilac_tile_function *function, const lilac_target *target,
                           bool *changed) {
    function_counts counts = {0};
    count_operations(&counts, function->body);
    if (counts.with_layout > 0 && counts.without > 0) {
        lilac_error(function->module->context, lilac_tile_position(counts.mixed),
                    counts.mixed->location, "mixed-layouts",
                    "some tensors of the function have a layout and some have none (%u and %u)",
                    counts.with_layout, counts.without);
        return false;
    }
    if (counts.with_layout > 0) {
        return check_region(function, target, function->body);
    }
    separate_broadcasts(function->module, function->body);
    lilac_tile_number(function);
    counts = (function_counts){0};
    count_operations(&counts, function->body);
    assignment *a = lilac_heap_grow(NULL, sizeof *a);
    memset(a, 0, sizeof *a);
    a->module = function->module;
    a->function = function;
    a->target = target;
    a->arena = lilac_arena_create();
    assign_function(a, &counts);
    lilac_tile_number(function);
    bool valid = !a->failed;
    *changed = *changed || counts.without > 0;
    lilac_arena_destroy(a->arena);
    lilac_heap_free(a);
    return valid;
}

/* Layouts of memory are chosen last: their prices depend on the layouts of the tensors. */
static bool assign(lilac_tile_function *function, const lilac_target *target, bool *changed) {
    return assign_tensors(function, target, changed) &&
           lilac_assign_memory_layouts(function, target, changed);
}

bool lilac_engine_assign_layouts(lilac_tile_module *module, const lilac_target *target,
                                 bool *changed) {
    *changed = false;
    bool valid = true;
    if (target->num_ctas > 1 && !lilac_arch_has(target->arch, LILAC_HAS_CLUSTERS)) {
        lilac_tile_function *first = module->functions;
        lilac_position nowhere = {0};
        lilac_error(module->context, first != NULL ? first->position : nowhere,
                    first != NULL ? first->location : module->location, "unsupported-clusters",
                    "a cluster of %u blocks; %s has no clusters", target->num_ctas,
                    target->arch->name);
        return false;
    }
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        if (function->body != NULL && !assign(function, target, changed)) {
            valid = false;
        }
    }
    return valid;
}
