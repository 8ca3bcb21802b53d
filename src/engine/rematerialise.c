/* rematerialise: rewrites a function so that every tensor has its layout.
 *
 * Operations are visited from the last to the first, so that all uses of a value come before its
 * definition. A visit says in which layout it wants each operand:
 *
 *   operand is computed once      in its own layout: nothing; in another: the want is noted
 *   operand is cheap              the want is noted
 *
 * When the visit comes to the definition, every layout wanted is made there:
 *
 *   cheap           the first layout wanted is given to it and each other one gets a copy of it
 *                   beside it, whose operands are wanted in turn
 *   computed once   by one ttg.convert_layout for each layout wanted; or, where that costs less, by
 *                   doing its operation again on operands in that layout, which may move the
 *                   conversion to where elements are narrower, the tensor is smaller or it is
 *                   converted already. Work that is repeated is priced too; it is not where nobody
 *                   wants the value in its own layout.
 *
 *       %r = tt.make_range                        %r  = tt.make_range   : #slice 1
 *       %e = tt.expand_dims %r {axis = 1}    →    %r' = tt.make_range   : #blocked
 *       … %e …  … tt.addptr %p, %r                %e  = tt.expand_dims %r
 *
 * A conversion stands right after the definition, so outside the loops that only use it; or, where
 * all that want it are in one branch, in that branch.
 *
 * So a chain is copied once for each layout and never more. Only the estimate of what an operation
 * done again costs looks ahead, a few operations deep.
 */
#include "assign.h"

#include <lilac/tile_loops.h>

typedef struct noted_use {
    lilac_tile_op *op;
    uint32_t index;
    struct noted_use *next;
} noted_use;

/* A layout in which a value is wanted. */
typedef struct want {
    const lilac_layout *layout; /* NULL: any will do */
    lilac_tile_value *converted;
    noted_use *uses;
    struct want *next;
} want;

typedef struct rewriting {
    assignment *a;
    want **wants;                /* by value id */
    const lilac_layout **native; /* of values computed once, by id; NULL: not asked yet */
    uint8_t *kept;               /* by value id: someone wants it in its own layout */
    uint8_t *resolved;           /* by value id: the layouts wanted have been made */
    const listed_op **listed;    /* of the operation that defines a value, by value id */
} rewriting;

#define LOOK_AHEAD 6

static bool refuse(rewriting *r, const lilac_tile_op *op) {
    lilac_error(r->a->module->context, lilac_tile_position(op), op->location,
                "unsupported-operation",
                "no layout of the operands of '%s' fits the layout of its result",
                lilac_tile_op_info_get(op->code)->name);
    r->a->failed = true;
    return false;
}

static void give(rewriting *r, lilac_tile_value *value, const lilac_layout *layout) {
    if (lilac_tile_is_tensor(value->type) && layout != NULL)
        value->type = lilac_transfer_type(r->a, value->type, layout);
}

/* The layout in which a value that is computed once comes out of its definition. */
static const lilac_layout *native_of(rewriting *r, const lilac_tile_value *value) {
    const lilac_layout **known = &r->native[value->id];
    if (*known != NULL)
        return *known;
    const layout_site *site = r->a->site_of[value->id];
    if (site == NULL) {
        *known = lilac_propagate_layout(r->a, value->id);
        return *known;
    }
    *known = lilac_propagate_layout(r->a, site->node);
    *known = lilac_transfer_forward(r->a, site->op, site->relation->leader, *known);
    return *known;
}

static want *want_of(rewriting *r, const lilac_tile_value *value, const lilac_layout *layout) {
    want **place = &r->wants[value->id];
    while (*place != NULL && (*place)->layout != layout)
        place = &(*place)->next;
    if (*place == NULL) {
        *place = lilac_arena_new(r->a->arena, want);
        (*place)->layout = layout;
    }
    return *place;
}

/* ---- conversions ------------------------------------------------------------------------ */

/* The operation of this block in whose regions `op` is, or `op` itself; NULL: neither. */
static lilac_tile_op *ancestor_in(const lilac_tile_block *block, lilac_tile_op *op) {
    while (op != NULL && op->parent != block)
        op = op->parent->parent->parent;
    return op;
}

/* The block of `branch` that has all uses, or NULL. */
static const lilac_tile_block *block_of_all(const lilac_tile_op *branch, const noted_use *uses) {
    for (uint32_t r = 0; r < branch->region_count; r++) {
        const lilac_tile_block *block = branch->regions[r]->first;
        const noted_use *use = uses;
        if (block == NULL || block->next != NULL)
            continue;
        while (use != NULL && ancestor_in(block, use->op) != NULL)
            use = use->next;
        if (use == NULL)
            return block;
    }
    return NULL;
}

/* Puts a conversion where it belongs: `place` is the first operation that may follow it. Into a
 * branch that has all its uses, but into no loop. */
static void insert_conversion(lilac_tile_op *made, const lilac_tile_value *value,
                              const noted_use *uses) {
    const lilac_tile_block *block = value->op != NULL ? value->op->parent : value->block, *inner;
    lilac_tile_op *place = NULL;
    while (uses != NULL) {
        const lilac_tile_op *first = ancestor_in(block, uses->op);
        if (first == NULL || first->code != LILAC_TILE_OP_SCF_IF || first == uses->op)
            break;
        inner = block_of_all(first, uses);
        if (inner == NULL)
            break;
        block = inner;
        place = block->first;
    }
    if (place != NULL) { /* before the first use */
        for (bool found = false; !found;) {
            for (const noted_use *use = uses; use != NULL && !found; use = use->next)
                found = ancestor_in(block, use->op) == place;
            if (!found)
                place = place->next;
        }
        lilac_tile_insert_before(place, made);
    } else if (value->op != NULL) {
        lilac_tile_insert_after(value->op, made);
    } else {
        lilac_tile_insert_before(value->block->first, made);
    }
}

static lilac_tile_value *convert(rewriting *r, lilac_tile_value *value, want *wanted,
                                 const lilac_tile_op *user) {
    if (wanted->converted != NULL)
        return wanted->converted;
    give(r, value, native_of(r, value));
    const lilac_tile_type *type = lilac_transfer_type(r->a, value->type, wanted->layout);
    lilac_tile_op *made =
        lilac_tile_op_create(r->a->module, LILAC_TILE_OP_TTG_CONVERT_LAYOUT, 1, &value, 1, &type, 0,
                             value->op != NULL ? value->op->location : user->location);
    made->position = value->op != NULL ? value->op->position : user->position;
    made->results[0].name = value->name;
    insert_conversion(made, value, wanted->uses);
    wanted->converted = &made->results[0];
    return wanted->converted;
}

static void note(rewriting *r, lilac_tile_op *op, uint32_t index, want *wanted) {
    noted_use *use = lilac_arena_new(r->a->arena, noted_use);
    *use = (noted_use){op, index, wanted->uses};
    wanted->uses = use;
}

/* Operand `index` is wanted in a layout; NULL: in whichever it has. */
static void ask(rewriting *r, lilac_tile_op *op, uint32_t index, const lilac_layout *layout) {
    lilac_tile_value *value = op->operands[index].value;
    switch ((value_kind)r->a->kind[value->id]) {
    case VALUE_SCALAR:
        break;
    case VALUE_FIXED:
        if (layout == NULL || native_of(r, value) == layout)
            r->kept[value->id] = 1;
        else if (r->resolved[value->id]) /* a use before the definition: blocks out of order */
            lilac_tile_set_operand(op, index, convert(r, value, want_of(r, value, layout), op));
        else
            note(r, op, index, want_of(r, value, layout));
        break;
    case VALUE_CHEAP:
        note(r, op, index, want_of(r, value, layout));
        break;
    }
}

static void ask_all(rewriting *r, lilac_tile_op *op, const lilac_layout *layout) {
    for (uint32_t i = 0; i < op->operand_count; i++)
        ask(r, op, i, layout);
}

/* Asks for each tensor operand in the layout that follows from that of the results. False: there is
 * none. */
static bool ask_transferred(rewriting *r, lilac_tile_op *op, const lilac_layout *result) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (!lilac_tile_is_tensor(op->operands[i].value->type))
            continue;
        const lilac_layout *operand = lilac_transfer_backward(r->a, op, i, result);
        if (operand == NULL)
            return false;
        ask(r, op, i, operand);
    }
    return true;
}

/* ---- cheap values ----------------------------------------------------------------------- */

/* A constant's attribute has its type. */
static void retype_constant(rewriting *r, lilac_tile_op *op) {
    const lilac_tile_attribute *given = lilac_tile_find(&op->attributes, "value");
    if (op->code != LILAC_TILE_OP_ARITH_CONSTANT || given == NULL || given->type == NULL ||
        given->type->kind != LILAC_TILE_TENSOR)
        return;
    lilac_tile_attribute changed = *given;
    changed.type = op->results[0].type;
    lilac_tile_set_attribute(r->a->module, &op->attributes, &changed);
}

static bool make_in(rewriting *r, lilac_tile_op *op, const lilac_layout *layout) {
    give(r, &op->results[0], layout);
    retype_constant(r, op);
    return ask_transferred(r, op, layout) || refuse(r, op);
}

static bool visit_cheap(rewriting *r, lilac_tile_op *op) {
    lilac_tile_value *value = &op->results[0];
    want *wants = r->wants[value->id], *first = NULL;
    for (want *w = wants; w != NULL && first == NULL; w = w->next)
        first = w->layout != NULL ? w : NULL;
    const lilac_layout *layout =
        first != NULL ? first->layout : lilac_coalesce_default(r->a, value->type);
    if (layout == NULL)
        return false;
    lilac_tile_op *after = op;
    for (want *w = wants; w != NULL; w = w->next) {
        if (w == first || w->layout == NULL)
            continue;
        lilac_tile_op *copy = lilac_tile_clone(r->a->module, op);
        lilac_tile_insert_after(after, copy);
        after = copy;
        for (noted_use *use = w->uses; use != NULL; use = use->next)
            lilac_tile_set_operand(use->op, use->index, &copy->results[0]);
        if (!make_in(r, copy, w->layout))
            return false;
    }
    return make_in(r, op, layout);
}

/* ---- values computed once --------------------------------------------------------------- */

/* Can the operation be done again in another layout? */
static bool can_repeat(const listed_op *listed) {
    return listed != NULL && listed->op->result_count == 1 && listed->op->region_count == 0 &&
           (listed->rule == RULE_SAME || listed->rule == RULE_SHAPE) &&
           (lilac_tile_op_info_get(listed->op->code)->traits & LILAC_TILE_PURE);
}

/* An operation's instructions, once for each element: those that take long as special functions
 * do, at a quarter of the rate. */
static int64_t work_of(const rewriting *r, const listed_op *listed) {
    if (listed->rule == RULE_SHAPE)
        return 0;
    const lilac_arch *arch = r->a->target->arch;
    int64_t warps = lilac_tile_element_count(listed->op->results[0].type) / arch->warp_size + 1;
    return warps * arch->costs->issue * lilac_assign_issues(listed->op) * listed->weight;
}

static int64_t conversion_price(rewriting *r, const lilac_tile_value *value,
                                const lilac_layout *layout) {
    int64_t price = lilac_price_conversion(r->a, native_of(r, value), layout,
                                           lilac_tile_element_bits(value->type));
    return lilac_price_times(price, r->a->weight[value->id]);
}

static int64_t repeat_price(rewriting *r, const listed_op *listed, const lilac_layout *layout,
                            bool moves, uint32_t depth);

/* The least that an operand in a layout costs. */
static int64_t operand_price(rewriting *r, const lilac_tile_value *value,
                             const lilac_layout *layout, uint32_t depth) {
    if (r->a->kind[value->id] != VALUE_FIXED || native_of(r, value) == layout)
        return 0;
    for (const want *w = r->wants[value->id]; w != NULL; w = w->next)
        if (w->layout == layout)
            return 0; /* is made anyway */
    int64_t price = conversion_price(r, value, layout);
    if (depth == 0 || !can_repeat(r->listed[value->id]))
        return price;
    bool moves = !r->kept[value->id] && value->uses != NULL && value->uses->next == NULL;
    int64_t repeated = repeat_price(r, r->listed[value->id], layout, moves, depth - 1);
    return repeated < price ? repeated : price;
}

/* What it costs to do an operation in a layout; `moves`: instead of in its own. */
static int64_t repeat_price(rewriting *r, const listed_op *listed, const lilac_layout *layout,
                            bool moves, uint32_t depth) {
    int64_t price = moves ? 0 : work_of(r, listed);
    for (uint32_t i = 0; i < listed->op->operand_count; i++) {
        const lilac_layout *operand = lilac_transfer_backward(r->a, listed->op, i, layout);
        if (operand == NULL)
            return PRICE_IMPOSSIBLE;
        price += operand_price(r, listed->op->operands[i].value, operand, depth);
    }
    return price;
}

/* Makes a value in each layout in which it is wanted, beside its own. */
static void resolve(rewriting *r, lilac_tile_value *value) {
    r->resolved[value->id] = 1;
    for (want *w = r->wants[value->id]; w != NULL; w = w->next) {
        if (w->uses == NULL || w->converted != NULL)
            continue;
        (void)convert(r, value, w, w->uses->op);
        for (noted_use *use = w->uses; use != NULL; use = use->next)
            lilac_tile_set_operand(use->op, use->index, w->converted);
    }
}

static void resolve_arguments(rewriting *r, const lilac_tile_block *block) {
    for (uint32_t i = 0; i < block->argument_count; i++)
        if (r->a->kind[block->arguments[i]->id] == VALUE_FIXED)
            resolve(r, block->arguments[i]);
}

/* Does the operation again where that costs less than the conversion. When nobody wants the value
 * in its own layout, the operation itself takes the layout, which is then the value's own. */
static bool repeat_where_cheaper(rewriting *r, const listed_op *listed) {
    lilac_tile_op *op = listed->op;
    lilac_tile_value *value = &op->results[0];
    bool moves = !r->kept[value->id];
    for (want *w = r->wants[value->id]; w != NULL; w = w->next) {
        bool alone = moves && w == r->wants[value->id] && w->next == NULL;
        if (w->uses == NULL || repeat_price(r, listed, w->layout, alone, LOOK_AHEAD) >=
                                   conversion_price(r, value, w->layout))
            continue;
        if (alone) {
            r->native[value->id] = w->layout;
            w->uses = NULL;
            continue;
        }
        lilac_tile_op *copy = lilac_tile_clone(r->a->module, op);
        lilac_tile_insert_after(op, copy);
        for (noted_use *use = w->uses; use != NULL; use = use->next)
            lilac_tile_set_operand(use->op, use->index, &copy->results[0]);
        w->uses = NULL;
        if (!make_in(r, copy, w->layout))
            return false;
    }
    return true;
}

/* ---- the others ------------------------------------------------------------------------- */

static void give_results(rewriting *r, lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->result_count; i++)
        if (r->a->kind[op->results[i].id] == VALUE_FIXED)
            give(r, &op->results[i], native_of(r, &op->results[i]));
}

static void visit_same(rewriting *r, lilac_tile_op *op) {
    const lilac_layout *layout = NULL;
    for (uint32_t i = 0; i < op->result_count && layout == NULL; i++)
        if (r->a->kind[op->results[i].id] == VALUE_FIXED)
            layout = native_of(r, &op->results[i]);
    give_results(r, op);
    retype_constant(r, op);
    ask_all(r, op, layout);
}

static bool visit_shape(rewriting *r, lilac_tile_op *op) {
    give_results(r, op);
    return ask_transferred(r, op, native_of(r, &op->results[0])) || refuse(r, op);
}

static bool visit_site(rewriting *r, lilac_tile_op *op, const layout_site *site) {
    for (uint32_t i = 0; i < op->result_count; i++)
        if (r->a->kind[op->results[i].id] == VALUE_FIXED && native_of(r, &op->results[i]) == NULL)
            return refuse(r, op);
    give_results(r, op);
    ask_all(r, op, lilac_propagate_layout(r->a, site->node));
    return true;
}

/* The source moves in the gather itself, wherever it is; one that is made for it comes as the
 * result is. */
static void visit_gather(rewriting *r, lilac_tile_op *op, const layout_site *site) {
    const lilac_layout *layout = lilac_propagate_layout(r->a, site->node);
    const lilac_tile_type *source = op->operands[0].value->type, *result = op->results[0].type;
    bool alike = r->a->kind[op->operands[0].value->id] == VALUE_CHEAP;
    for (uint32_t d = 0; d < source->rank; d++)
        alike &= source->shape[d] == result->shape[d];
    give_results(r, op);
    ask(r, op, 0, alike ? layout : NULL);
    ask(r, op, 1, layout);
}

/* Any layout, but one for all operands: a mask goes with its values. */
static bool visit_free(rewriting *r, lilac_tile_op *op) {
    const lilac_layout *layout = NULL;
    for (uint32_t i = 0; i < op->operand_count && layout == NULL; i++)
        if (r->a->kind[op->operands[i].value->id] == VALUE_FIXED)
            layout = native_of(r, op->operands[i].value);
    if (layout == NULL)
        layout = lilac_coalesce_default(r->a, op->operands[0].value->type);
    if (layout == NULL)
        return false;
    give_results(r, op);
    ask_all(r, op, layout);
    return true;
}

static void give_arguments(rewriting *r, const lilac_tile_block *block) {
    for (uint32_t i = 0; i < block->argument_count; i++)
        if (r->a->kind[block->arguments[i]->id] == VALUE_FIXED)
            give(r, block->arguments[i], native_of(r, block->arguments[i]));
}

/* What control flow passes on has the layout of its receiver. */
static void visit_control(rewriting *r, lilac_tile_op *op) {
    give_results(r, op);
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_tile_value *receiver = lilac_tile_receiver(&op->operands[i]);
        if (receiver != NULL && r->a->kind[receiver->id] == VALUE_FIXED)
            ask(r, op, i, native_of(r, receiver));
    }
    for (uint32_t i = 0; lilac_tile_is_loop(op) && i < op->region_count; i++)
        give_arguments(r, op->regions[i]->first);
}

static bool visit(rewriting *r, const listed_op *listed) {
    lilac_tile_op *op = listed->op;
    if (op->result_count == 1 && r->a->kind[op->results[0].id] == VALUE_CHEAP)
        return visit_cheap(r, op);
    if (can_repeat(listed) && r->a->kind[op->results[0].id] == VALUE_FIXED &&
        r->wants[op->results[0].id] != NULL && !repeat_where_cheaper(r, listed))
        return false;
    for (uint32_t i = 0; i < op->result_count; i++)
        if (r->a->kind[op->results[i].id] == VALUE_FIXED)
            resolve(r, &op->results[i]);
    for (uint32_t i = 0; i < op->region_count && listed->rule == RULE_CONTROL; i++)
        for (const lilac_tile_block *block = op->regions[i]->first; block != NULL;
             block = block->next)
            resolve_arguments(r, block);
    switch (listed->rule) {
    case RULE_SAME:
    case RULE_SOURCE:
        visit_same(r, op);
        return true;
    case RULE_MEMORY:
    case RULE_REDUCE:
    case RULE_SCAN:
    case RULE_JOIN:
        return visit_site(r, op, listed->site);
    case RULE_SHAPE:
    case RULE_SPLIT:
        return visit_shape(r, op);
    case RULE_CONTROL:
        visit_control(r, op);
        return true;
    case RULE_GATHER:
        visit_gather(r, op, listed->site);
        return true;
    case RULE_FREE:
        return visit_free(r, op);
    case RULE_ANY:
        ask_all(r, op, NULL);
        return true;
    case RULE_NONE:
    case RULE_REFUSED:
        return true;
    }
    return true;
}

bool lilac_rematerialise(assignment *a) {
    rewriting r = {.a = a};
    r.wants = lilac_arena_array(a->arena, want *, a->value_count + 1);
    r.native = lilac_arena_array(a->arena, const lilac_layout *, a->value_count + 1);
    r.kept = lilac_arena_array(a->arena, uint8_t, a->value_count + 1);
    r.resolved = lilac_arena_array(a->arena, uint8_t, a->value_count + 1);
    r.listed = lilac_arena_array(a->arena, const listed_op *, a->value_count + 1);
    for (uint32_t i = 0; i < a->op_count; i++)
        for (uint32_t k = 0; k < a->ops[i].op->result_count; k++)
            r.listed[a->ops[i].op->results[k].id] = &a->ops[i];
    for (uint32_t i = a->op_count; i-- > 0;)
        if (!visit(&r, &a->ops[i]))
            return false;
    for (const lilac_tile_block *block = a->function->body->first; block != NULL;
         block = block->next) {
        resolve_arguments(&r, block);
        give_arguments(&r, block);
    }
    return !a->failed;
}
