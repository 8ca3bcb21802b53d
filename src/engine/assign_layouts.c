/* assign_layouts: every tensor of a function gets a linear layout.
 *
 *     tensor<1024xf16>   →   tensor<1024xf16, #ttg.linear<{register = [[1], [2], [4]], lane = …
 *
 *   1  list the operations with the rule each has for its tensors; refuse what has none
 *   2  tell the tensors that are cheap to make anew from those that are computed once
 *   3  ask memory operations what they want, by axis facts                       (coalesce.c)
 *   4  group what must agree, choose, and spread over shape operations           (propagate.c)
 *   5  rewrite: types, copies of cheap chains, conversions                       (rematerialise.c)
 */
#include "assign.h"

#include <lilac/tile_loops.h>

#include <string.h>

/* ---- costs ------------------------------------------------------------------------------ */

static const uint8_t cost_of[LILAC_TILE_OP_COUNT] = {
#define OPERATION(code, cost, layout, facts, strides, sign, fold, lower, reference)                \
    [LILAC_TILE_OP_##code] = LILAC_TILE_COST_##cost,
#include <lilac/operations.def>
};

bool lilac_assign_is_heavy(lilac_tile_opcode code) {
    return cost_of[code] == LILAC_TILE_COST_SPECIAL;
}

int64_t lilac_assign_issues(const lilac_tile_op *op) {
    /* `wide`: the logarithm of the factor for results of more than 32 bits */
    static const struct {
        uint8_t count, wide;
    } issues[] = {[LILAC_TILE_COST_SIMPLE] = {1, 1},
                  [LILAC_TILE_COST_CONVERT] = {4, 0},
                  [LILAC_TILE_COST_SPECIAL] = {8, 1},
                  [LILAC_TILE_COST_DIVIDE] = {16, 2},
                  [LILAC_TILE_COST_PROGRAM] = {32, 0}};
    bool words = op->result_count > 0 && lilac_tile_element_bits(op->results[0].type) > 32;
    lilac_tile_cost cost = (lilac_tile_cost)cost_of[op->code];
    return (int64_t)issues[cost].count << (words ? issues[cost].wide : 0);
}

/* ---- listing ---------------------------------------------------------------------------- */

typedef struct tally {
    uint32_t ops, sites, with_layout, without;
    const lilac_tile_op *odd; /* an operation where both meet, for the diagnostic */
} tally;

static void count_type(tally *t, const lilac_tile_type *type, const lilac_tile_op *op) {
    if (!lilac_tile_is_tensor(type))
        return;
    if (type->layout != NULL)
        t->with_layout++;
    else
        t->without++;
    if (t->with_layout > 0 && t->without > 0 && t->odd == NULL)
        t->odd = op;
}

static void count(tally *t, const lilac_tile_region *region) {
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            t->ops++;
            t->sites += lilac_layout_relation(op)->anchor;
            for (uint32_t i = 0; i < op->result_count; i++)
                count_type(t, op->results[i].type, op);
            for (uint32_t r = 0; r < op->region_count; r++)
                count(t, op->regions[r]);
        }
    }
}

static bool is_covered(const lilac_tile_type *type) {
    if (!lilac_tile_is_tensor(type))
        return true;
    uint32_t bits = 0;
    for (uint32_t d = 0; d < type->rank; d++) {
        if (type->shape[d] < 1 || power_of_two_in(type->shape[d]) != type->shape[d])
            return false;
        bits += log2_of(type->shape[d]);
    }
    return type->rank <= LILAC_LAYOUT_MAX_DIMS && bits <= 40;
}

static void check(assignment *a, const lilac_tile_op *op, layout_rule rule) {
    if (rule == RULE_REFUSED) {
        lilac_error(a->module->context, lilac_tile_position(op), op->location,
                    "unsupported-operation", "'%s' on tensors has no layout rule yet",
                    lilac_tile_op_info_get(op->code)->name);
        a->failed = true;
        return;
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (is_covered(op->results[i].type))
            continue;
        lilac_error(a->module->context, lilac_tile_position(op), op->location, "shape",
                    "no layout covers a tensor of this shape: every dimension must be a power of "
                    "two, and all together at most 2^40 elements");
        a->failed = true;
        return;
    }
}

#define USUAL_TRIPS 8
#define MOST_TRIPS  64
#define MOST_WEIGHT (INT64_C(1) << 12)

/* How often the body of a loop runs, roughly; 1 for what is no loop. */
static int64_t trips(const lilac_tile_op *op) {
    uint64_t count;
    if (!lilac_tile_is_loop(op))
        return 1;
    if (!lilac_tile_trip_count(op, &count))
        return USUAL_TRIPS;
    return count == 0 ? 1 : count < MOST_TRIPS ? (int64_t)count : MOST_TRIPS;
}

int64_t lilac_assign_inner_weight(const lilac_tile_op *op, int64_t weight) {
    return min_i64(weight * trips(op), MOST_WEIGHT);
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
            *entry = (listed_op){.op = op, .rule = relation->rule, .weight = weight};
            check(a, op, entry->rule);
            if (relation->anchor) {
                entry->site = &a->sites[a->site_count];
                entry->site->op = op;
                entry->site->relation = relation;
                entry->site->node = a->value_count + a->site_count++;
                entry->site->is_memory = entry->rule == RULE_MEMORY;
                entry->site->weight = weight;
            }
            for (uint32_t i = 0; i < op->result_count; i++) {
                a->value[op->results[i].id] = &op->results[i];
                a->weight[op->results[i].id] = weight;
                a->site_of[op->results[i].id] = entry->site;
            }
            for (uint32_t r = 0; r < op->region_count; r++)
                list(a, op->regions[r], lilac_assign_inner_weight(op, weight));
        }
    }
}

/* ---- kinds of values -------------------------------------------------------------------- */

static bool is_cheap(const assignment *a, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    if (op->result_count != 1 || op->region_count != 0)
        return false;
    if (listed->rule == RULE_SOURCE)
        return true;
    if ((listed->rule != RULE_SAME && listed->rule != RULE_SHAPE) ||
        !(lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) ||
        lilac_assign_is_heavy(op->code))
        return false;
    for (uint32_t i = 0; i < op->operand_count; i++)
        if (a->kind[op->operands[i].value->id] == VALUE_FIXED)
            return false;
    return true;
}

/* In blocks that are not in order of dominance a use may come before its definition; such values
 * are not made anew. */
static void mark_early_uses(assignment *a) {
    uint8_t *defined = lilac_arena_array(a->arena, uint8_t, a->value_count + 1);
    for (uint32_t i = 0; i < a->op_count; i++) {
        const lilac_tile_op *op = a->ops[i].op;
        for (uint32_t k = 0; k < op->operand_count; k++) {
            const lilac_tile_value *value = op->operands[k].value;
            if (value->op != NULL && !defined[value->id] && lilac_tile_is_tensor(value->type))
                a->kind[value->id] = VALUE_FIXED;
        }
        for (uint32_t k = 0; k < op->result_count; k++)
            defined[op->results[k].id] = 1;
    }
}

static void sort_values(assignment *a) {
    for (uint32_t i = 0; i < a->value_count; i++)
        if (a->value[i] != NULL && a->value[i]->op == NULL &&
            lilac_tile_is_tensor(a->value[i]->type))
            a->kind[i] = VALUE_FIXED;
    mark_early_uses(a);
    for (uint32_t i = 0; i < a->op_count; i++) {
        const lilac_tile_op *op = a->ops[i].op;
        bool cheap = is_cheap(a, &a->ops[i]);
        for (uint32_t k = 0; k < op->result_count; k++) {
            const lilac_tile_value *value = &op->results[k];
            if (lilac_tile_is_tensor(value->type) && a->kind[value->id] != VALUE_FIXED)
                a->kind[value->id] = cheap ? VALUE_CHEAP : VALUE_FIXED;
        }
    }
}

/* Whether those who use an operation's operands need one copy of an element only: stores, and what
 * stays in its thread, if those who use the results do. duplicates.c sees more, once there are
 * layouts; this is what prices may count on in all of them. */
static bool needs_once(const assignment *a, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    if (op->code == LILAC_TILE_OP_TT_STORE)
        return true;
    bool stays = listed->rule == RULE_SAME && op->region_count == 0 &&
                 (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) != 0;
    if (!stays && op->code != LILAC_TILE_OP_TT_LOAD)
        return false;
    for (uint32_t i = 0; i < op->result_count; i++)
        if (!a->once[op->results[i].id])
            return false;
    return true;
}

static void find_once(assignment *a) {
    memset(a->once, 1, a->value_count);
    for (uint32_t i = a->op_count; i-- > 0;) {
        bool once = needs_once(a, &a->ops[i]);
        for (uint32_t k = 0; k < a->ops[i].op->operand_count && !once; k++)
            a->once[a->ops[i].op->operands[k].value->id] = 0;
    }
}

/* ---- the pass --------------------------------------------------------------------------- */

static void refuse_parameters(assignment *a) {
    for (uint32_t i = 0; i < a->function->parameter_count; i++) {
        if (!lilac_tile_is_tensor(a->function->parameters[i]->type))
            continue;
        lilac_error(a->module->context, a->function->position, a->function->location,
                    "unsupported-operation",
                    "a function with tensor parameters has no layout rule yet");
        a->failed = true;
        return;
    }
}

static void assign_function(assignment *a, const tally *t) {
    lilac_engine_axis_facts(&a->axis, a->arena, a->function);
    a->value_count = a->function->value_count;
    a->node_count = a->value_count + t->sites;
    a->ops = lilac_arena_array(a->arena, listed_op, t->ops + 1);
    a->sites = lilac_arena_array(a->arena, layout_site, t->sites + 1);
    a->value = lilac_arena_array(a->arena, lilac_tile_value *, a->value_count + 1);
    a->kind = lilac_arena_array(a->arena, uint8_t, a->value_count + 1);
    a->weight = lilac_arena_array(a->arena, int64_t, a->value_count + 1);
    a->once = lilac_arena_array(a->arena, uint8_t, a->value_count + 1);
    a->site_of = lilac_arena_array(a->arena, layout_site *, a->value_count + 1);
    a->group = lilac_arena_array(a->arena, uint32_t, a->node_count + 1);
    a->component = lilac_arena_array(a->arena, uint32_t, a->node_count + 1);
    a->layout = lilac_arena_array(a->arena, const lilac_layout *, a->node_count + 1);
    refuse_parameters(a);
    list(a, a->function->body, 1);
    if (a->failed)
        return;
    sort_values(a);
    find_once(a);
    for (uint32_t i = 0; i < a->op_count; i++)
        if (a->ops[i].rule == RULE_MEMORY)
            lilac_coalesce_access(a, &a->ops[i].site->access, &a->ops[i]);
    lilac_propagate_layouts(a);
    if (!a->failed && !lilac_rematerialise(a))
        a->failed = true;
}

/* ---- functions that have layouts -------------------------------------------------------- */

/* Whether a layout that the text gave is for as many threads as the kernel has. */
static bool check_threads(const lilac_tile_function *function, const lilac_target *target,
                          const lilac_tile_type *type, lilac_position position,
                          lilac_location location) {
    const struct {
        const char *input;
        uint32_t count;
    } inputs[] = {{"lane", target->arch->warp_size},
                  {"warp", target->num_warps},
                  {"block", target->num_ctas}};
    if (!lilac_tile_is_tensor(type))
        return true;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        int at = lilac_layout_in(type->layout, inputs[i].input);
        uint32_t bits = at < 0 ? 0 : type->layout->in[at].bits;
        if (bits == log2_of(inputs[i].count))
            continue;
        lilac_error(function->module->context, position, location, "layout-of-other-threads",
                    "the layout of a tensor here has 2^%u %ss, but the kernel %u", bits,
                    inputs[i].input, inputs[i].count);
        return false;
    }
    return true;
}

static bool check_region(const lilac_tile_function *function, const lilac_target *target,
                         const lilac_tile_region *region) {
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            for (uint32_t i = 0; i < op->result_count; i++)
                if (!check_threads(function, target, op->results[i].type, op->position,
                                   op->location))
                    return false;
            for (uint32_t r = 0; r < op->region_count; r++)
                if (!check_region(function, target, op->regions[r]))
                    return false;
        }
    }
    return true;
}

static bool assign_tensors(lilac_tile_function *function, const lilac_target *target, bool *changed) {
    tally t = {0};
    count(&t, function->body);
    if (t.with_layout > 0 && t.without > 0) {
        lilac_error(function->module->context, lilac_tile_position(t.odd), t.odd->location,
                    "mixed-layouts",
                    "some tensors of the function have a layout and some have none");
        return false;
    }
    if (t.with_layout > 0)
        return check_region(function, target, function->body);
    assignment *a = lilac_heap_grow(NULL, sizeof *a);
    memset(a, 0, sizeof *a);
    a->module = function->module;
    a->function = function;
    a->target = target;
    a->arena = lilac_arena_create();
    assign_function(a, &t);
    lilac_tile_number(function);
    bool done = !a->failed;
    *changed = *changed || t.without > 0;
    lilac_arena_destroy(a->arena);
    lilac_heap_free(a);
    return done;
}

/* Layouts of memory are chosen last: their prices depend on the layouts of the tensors. */
static bool assign(lilac_tile_function *function, const lilac_target *target, bool *changed) {
    return assign_tensors(function, target, changed) &&
           lilac_assign_memory_layouts(function, target, changed);
}

bool lilac_engine_assign_layouts(lilac_tile_module *module, const lilac_target *target,
                                 bool *changed) {
    *changed = false;
    bool done = true;
    if (target->num_ctas > 1) {
        lilac_tile_function *first = module->functions;
        lilac_position nowhere = {0};
        lilac_error(module->context, first != NULL ? first->position : nowhere,
                    first != NULL ? first->location : module->location, "unsupported-clusters",
                    "clusters of %u blocks are not supported yet, only of one", target->num_ctas);
        return false;
    }
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next)
        if (function->body != NULL && !assign(function, target, changed))
            done = false;
    return done;
}
