/* rematerialise: rewrites a function so that every tensor has its layout.
 *
 * Operations are visited from the last to the first, so that all uses of a value are visited before
 * its definition. The visit of an operation requests a layout of each operand:
 *
 *   operand is computed once      in its own layout: nothing to do; in another: recorded
 *   operand is cheap              recorded
 *
 * The visit of a definition materialises every layout requested of its result:
 *
 *   cheap           The definition adopts the first layout requested. Each other one gets a clone
 *                   behind it, whose operands are requested in turn.
 *   computed once   Each layout requested gets one ttg.convert_layout. Or, where that costs less, a
 *                   clone of the definition on operands in that layout: the conversion may then
 *                   move to narrower elements, a smaller tensor, or a value that is converted
 *                   already. The price includes the repeated work. There is none if no user needs
 *                   the value's own layout: the definition itself then adopts the layout requested.
 *
 *       %r = tt.make_range                        %r  = tt.make_range   : #slice
 *       %e = tt.expand_dims %r {axis = 1}    →    %r' = tt.make_range   : #blocked
 *       … %e …  … tt.addptr %p, %r                %e  = tt.expand_dims %r
 *                                                 … %e …  … tt.addptr %p, %r'
 *
 * A conversion follows the definition, so it is outside loops that only use the value; or, if one
 * branch contains all users, it is in that branch.
 *
 * So a chain is cloned at most once for each layout. Only the price estimate of a clone looks
 * ahead, a few operations deep.
 */
#include "layouts/assign.h"
#include "products/block_demand.h"
#include "products/dot_operands.h"

#include <lilac/tile_loops.h>

typedef struct pending_use {
    lilac_tile_op *op;
    uint32_t index;
    struct pending_use *next;
} pending_use;

/* A layout requested of a value. */
typedef struct request {
    const lilac_layout *layout;  /* NULL: any layout */
    lilac_tile_value *converted; /* the result of its conversion; NULL: none yet */
    pending_use *uses;           /* the operands that get the value in this layout */
    struct request *next;
} request;

struct rewriting {
    assignment *a;
    request **requests;          /* by value id */
    const lilac_layout **native; /* by value id: the value's own layout; NULL: not computed yet */
    uint8_t *kept;               /* by value id: a user needs the value in its own layout */
    uint8_t *materialised;       /* by value id: the layouts requested exist */
    const listed_op **listed;    /* by value id: the operation that defines the value */
};

#define MOST_LOOK_AHEAD 6

static bool refuse(rewriting *r, const lilac_tile_op *op) {
    lilac_error(r->a->module->context, lilac_tile_position(op), op->location,
                "unsupported-operation",
                "no layout of the operands of '%s' gives the layout chosen for its result",
                lilac_tile_op_info_get(op->code)->name);
    r->a->failed = true;
    return false;
}

static void set_layout(rewriting *r, lilac_tile_value *value, const lilac_layout *layout) {
    if (lilac_tile_is_tensor(value->type) && layout != NULL) {
        value->type = lilac_transfer_type(r->a, value->type, layout);
    }
}

/* The own layout of a value that is computed once: the one that its definition produces. */
static const lilac_layout *native_of(rewriting *r, const lilac_tile_value *value) {
    const lilac_layout **known = &r->native[value->id];
    if (*known != NULL) {
        return *known;
    }
    const layout_anchor *anchor = r->a->anchor_of[value->id];
    if (anchor == NULL) {
        *known = lilac_propagate_layout(r->a, value->id);
        return *known;
    }
    *known = lilac_propagate_layout(r->a, anchor->node);
    *known = lilac_transfer_forward(r->a, anchor->op, anchor->relation->leader, *known);
    return *known;
}

static request *request_of(rewriting *r, const lilac_tile_value *value,
                           const lilac_layout *layout) {
    request **place = &r->requests[value->id];
    while (*place != NULL && (*place)->layout != layout) {
        place = &(*place)->next;
    }
    if (*place == NULL) {
        *place = lilac_arena_new(r->a->arena, request);
        (*place)->layout = layout;
    }
    return *place;
}

/* ---- conversions ------------------------------------------------------------------------ */

/* The operation of this block that is `op` or contains it in its regions; NULL: none. */
static lilac_tile_op *ancestor_in(const lilac_tile_block *block, lilac_tile_op *op) {
    while (op != NULL && op->parent != block) {
        op = op->parent->parent->parent;
    }
    return op;
}

/* The block of `branch` that contains all uses, or NULL. */
static const lilac_tile_block *block_of_all(const lilac_tile_op *branch, const pending_use *uses) {
    for (uint32_t r = 0; r < branch->region_count; r++) {
        const lilac_tile_block *block = branch->regions[r]->first;
        const pending_use *use = uses;
        if (block == NULL || block->next != NULL) {
            continue;
        }
        while (use != NULL && ancestor_in(block, use->op) != NULL) {
            use = use->next;
        }
        if (use == NULL) {
            return block;
        }
    }
    return NULL;
}

/* The block in which a conversion of a value is placed: that of the definition, or the innermost
 * branch that contains all uses. A conversion is moved into no loop. */
static const lilac_tile_block *block_of_conversion(const lilac_tile_value *value,
                                                   const pending_use *uses) {
    const lilac_tile_block *block = value->op != NULL ? value->op->parent : value->block;
    while (uses != NULL) {
        const lilac_tile_op *first = ancestor_in(block, uses->op);
        if (first == NULL || first->code != LILAC_TILE_OP_SCF_IF || first == uses->op) {
            break;
        }
        const lilac_tile_block *inner = block_of_all(first, uses);
        if (inner == NULL) {
            break;
        }
        block = inner;
    }
    return block;
}

/* Inserts a conversion after the definition; in a branch, before the first use. */
static void insert_conversion(lilac_tile_op *conversion, const lilac_tile_value *value,
                              const pending_use *uses) {
    const lilac_tile_block *home = value->op != NULL ? value->op->parent : value->block;
    const lilac_tile_block *block = block_of_conversion(value, uses);
    if (block == home && value->op != NULL) {
        lilac_tile_insert_after(value->op, conversion);
        return;
    }
    lilac_tile_op *place = block->first;
    for (bool found = block == home; !found;) {
        for (const pending_use *use = uses; use != NULL && !found; use = use->next) {
            found = ancestor_in(block, use->op) == place;
        }
        if (!found) {
            place = place->next;
        }
    }
    lilac_tile_insert_before(place, conversion);
}

static lilac_tile_value *convert(rewriting *r, lilac_tile_value *value, request *requested,
                                 const lilac_tile_op *user) {
    if (requested->converted != NULL) {
        return requested->converted;
    }
    set_layout(r, value, native_of(r, value));
    const lilac_tile_type *type = lilac_transfer_type(r->a, value->type, requested->layout);
    lilac_tile_op *conversion =
        lilac_tile_op_create(r->a->module, LILAC_TILE_OP_TTG_CONVERT_LAYOUT, 1, &value, 1, &type, 0,
                             value->op != NULL ? value->op->location : user->location);
    conversion->position = value->op != NULL ? value->op->position : user->position;
    conversion->results[0].name = value->name;
    insert_conversion(conversion, value, requested->uses);
    requested->converted = &conversion->results[0];
    return requested->converted;
}

static void add_use(rewriting *r, lilac_tile_op *op, uint32_t index, request *requested) {
    pending_use *use = lilac_arena_new(r->a->arena, pending_use);
    *use = (pending_use){op, index, requested->uses};
    requested->uses = use;
}

/* Requests a layout of operand `index`. NULL: the layout that the operand has. */
static void request_operand(rewriting *r, lilac_tile_op *op, uint32_t index,
                            const lilac_layout *layout) {
    lilac_tile_value *value = op->operands[index].value;
    switch ((value_kind)r->a->kind[value->id]) {
    case VALUE_SCALAR:
        break;
    case VALUE_FIXED:
        if (layout == NULL || native_of(r, value) == layout) {
            r->kept[value->id] = 1;
        } else if (r->materialised
                       [value->id]) { /* blocks out of order: the definition was visited before */
            lilac_tile_set_operand(op, index, convert(r, value, request_of(r, value, layout), op));
        } else {
            add_use(r, op, index, request_of(r, value, layout));
        }
        break;
    case VALUE_CHEAP:
        add_use(r, op, index, request_of(r, value, layout));
        break;
    }
}

static void request_all(rewriting *r, lilac_tile_op *op, const lilac_layout *layout) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
        request_operand(r, op, i, layout);
    }
}

/* Requests of each tensor operand the layout that follows from that of the results. False: none
 * follows. */
static bool request_transferred(rewriting *r, lilac_tile_op *op, const lilac_layout *result) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (!lilac_tile_is_tensor(op->operands[i].value->type)) {
            continue;
        }
        const lilac_layout *operand = lilac_transfer_backward(r->a, op, i, result);
        if (operand == NULL) {
            return false;
        }
        request_operand(r, op, i, operand);
    }
    return true;
}

/* ---- cheap values ----------------------------------------------------------------------- */

/* The attribute of a constant has the type of its result. */
static void retype_constant(rewriting *r, lilac_tile_op *op) {
    const lilac_tile_attribute *given = lilac_tile_find(&op->attributes, "value");
    if (op->code != LILAC_TILE_OP_ARITH_CONSTANT || given == NULL || given->type == NULL ||
        given->type->kind != LILAC_TILE_TENSOR) {
        return;
    }
    lilac_tile_attribute changed = *given;
    changed.type = op->results[0].type;
    lilac_tile_set_attribute(r->a->module, &op->attributes, &changed);
}

/* Gives a cheap operation or a clone its layout, and requests those of its operands. */
static bool define_in(rewriting *r, lilac_tile_op *op, const lilac_layout *layout) {
    set_layout(r, &op->results[0], layout);
    retype_constant(r, op);
    return request_transferred(r, op, layout) || refuse(r, op);
}

/* Materialises the layouts requested of a cheap value: the operation and its clones. */
static bool visit_cheap(rewriting *r, lilac_tile_op *op) {
    lilac_tile_value *value = &op->results[0];
    request *requests = r->requests[value->id], *first = NULL;
    for (request *w = requests; w != NULL && first == NULL; w = w->next) {
        first = w->layout != NULL ? w : NULL;
    }
    const lilac_layout *layout =
        first != NULL ? first->layout : lilac_coalesce_default(r->a, value->type);
    if (layout == NULL) {
        return false;
    }
    lilac_tile_op *after = op;
    for (request *w = requests; w != NULL; w = w->next) {
        if (w == first || w->layout == NULL) {
            continue;
        }
        lilac_tile_op *copy = lilac_tile_clone(r->a->module, op);
        lilac_tile_insert_after(after, copy);
        after = copy;
        for (pending_use *use = w->uses; use != NULL; use = use->next) {
            lilac_tile_set_operand(use->op, use->index, &copy->results[0]);
        }
        if (!define_in(r, copy, w->layout)) {
            return false;
        }
    }
    return define_in(r, op, layout);
}

/* ---- values computed once --------------------------------------------------------------- */

/* May the operation be cloned in another layout? */
static bool is_repeatable(const listed_op *listed) {
    return listed != NULL && listed->op->result_count == 1 && listed->op->region_count == 0 &&
           (listed->relation->rule == RULE_SAME || listed->relation->rule == RULE_SHAPE) &&
           (lilac_tile_op_info_get(listed->op->code)->traits & LILAC_TILE_PURE);
}

/* The price of an operation's instructions without copies, weighted by its executions. */
static int64_t work_of(const rewriting *r, const listed_op *listed) {
    if (listed->relation->rule == RULE_SHAPE) {
        return 0;
    }
    const lilac_arch *arch = r->a->target->arch;
    int64_t warps = lilac_tile_element_count(listed->op->results[0].type) / arch->warp_size + 1;
    return warps * arch->costs->issue * lilac_engine_issues(listed->op) * listed->weight;
}

/* Is the operation a product, or one whose result only products use, after further such operations? */
static bool feeds_products(const lilac_tile_op *op, uint32_t depth) {
    const layout_rule rule = lilac_layout_relation(op)->rule;
    if (rule == RULE_DOT) {
        return true;
    }
    bool feeds = depth > 0 && op->result_count == 1 && op->results[0].uses != NULL &&
                 (rule == RULE_SAME || rule == RULE_SHAPE) &&
                 (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) != 0;
    for (const lilac_tile_use *use = feeds ? op->results[0].uses : NULL; feeds && use != NULL;
         use = use->next) {
        feeds = feeds_products(use->op, depth - 1);
    }
    return feeds;
}

/* Can pipeline_loops copy the loaded tensor to shared memory, for products alone? Its conversion
 * is then a load from there. */
static bool becomes_copy(rewriting *r, const lilac_tile_value *value) {
    const lilac_tile_op *op = value->op;
    if (op == NULL || op->code != LILAC_TILE_OP_TT_LOAD || r->kept[value->id] ||
        op->parent->parent->parent == NULL || !lilac_tile_is_loop(op->parent->parent->parent)) {
        return false;
    }
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        if (!feeds_products(use->op, MOST_LOOK_AHEAD)) {
            return false;
        }
    }
    const lilac_layout *layout = native_of(r, value);
    return layout != NULL &&
           lilac_engine_run_bits(lilac_transfer_type(r->a, value->type, layout)) >=
               LILAC_ENGINE_LEAST_COPY_BITS;
}

static int64_t conversion_price(rewriting *r, const lilac_tile_value *value,
                                const lilac_layout *layout) {
    const uint32_t bits = lilac_tile_element_bits(value->type);
    const int64_t price = becomes_copy(r, value)
                              ? lilac_price_staged_load(r->a, native_of(r, value), layout, bits)
                              : lilac_price_conversion(r->a, native_of(r, value), layout, bits);
    return lilac_price_times(price, r->a->weight[value->id]);
}

static int64_t clone_price(rewriting *r, const listed_op *listed, const lilac_layout *layout,
                           bool moves, uint32_t depth);

/* The lowest price of an operand in a layout. */
static int64_t operand_price(rewriting *r, const lilac_tile_value *value,
                             const lilac_layout *layout, uint32_t depth) {
    if (r->a->kind[value->id] != VALUE_FIXED || native_of(r, value) == layout) {
        return 0;
    }
    for (const request *w = r->requests[value->id]; w != NULL; w = w->next) {
        if (w->layout == layout) {
            return 0; /* exists anyway */
        }
    }
    int64_t price = conversion_price(r, value, layout);
    if (depth == 0 || !is_repeatable(r->listed[value->id])) {
        return price;
    }
    bool moves = !r->kept[value->id] && value->uses != NULL && value->uses->next == NULL;
    int64_t repeated = clone_price(r, r->listed[value->id], layout, moves, depth - 1);
    return repeated < price ? repeated : price;
}

/* The price of a clone of an operation in a layout. `moves`: the operation itself adopts the
 * layout, so no work is repeated. */
static int64_t clone_price(rewriting *r, const listed_op *listed, const lilac_layout *layout,
                           bool moves, uint32_t depth) {
    int64_t price = moves ? 0 : work_of(r, listed);
    for (uint32_t i = 0; i < listed->op->operand_count; i++) {
        const lilac_layout *operand = lilac_transfer_backward(r->a, listed->op, i, layout);
        if (operand == NULL) {
            return PRICE_IMPOSSIBLE;
        }
        price += operand_price(r, listed->op->operands[i].value, operand, depth);
    }
    return price;
}

/* The price of the conversions that an operation in its own layout needs of its operands, and of
 * theirs: what is saved if it adopts another layout and its operands with it. A value that others
 * use too may be needed in any case. */
static int64_t own_price(rewriting *r, const listed_op *listed, uint32_t depth) {
    const lilac_layout *own = native_of(r, &listed->op->results[0]);
    int64_t price = 0;
    for (uint32_t i = 0; i < listed->op->operand_count; i++) {
        const lilac_tile_value *value = listed->op->operands[i].value;
        const lilac_layout *operand = lilac_transfer_backward(r->a, listed->op, i, own);
        if (operand == NULL || r->a->kind[value->id] != VALUE_FIXED || value->uses->next != NULL) {
            continue;
        }
        if (native_of(r, value) != operand) {
            price += operand_price(r, value, operand, depth);
        } else if (depth > 0 && is_repeatable(r->listed[value->id])) {
            price += own_price(r, r->listed[value->id], depth - 1);
        }
    }
    return price;
}

/* Converts a value into each layout that is still requested of it. */
static void materialise(rewriting *r, lilac_tile_value *value) {
    r->materialised[value->id] = 1;
    for (request *w = r->requests[value->id]; w != NULL; w = w->next) {
        if (w->uses == NULL || w->converted != NULL) {
            continue;
        }
        (void)convert(r, value, w, w->uses->op);
        for (pending_use *use = w->uses; use != NULL; use = use->next) {
            lilac_tile_set_operand(use->op, use->index, w->converted);
        }
    }
}

static void materialise_arguments(rewriting *r, const lilac_tile_block *block) {
    for (uint32_t i = 0; i < block->argument_count; i++) {
        if (r->a->kind[block->arguments[i]->id] == VALUE_FIXED) {
            materialise(r, block->arguments[i]);
        }
    }
}

/* Is the layout requested for operands of matrix products only? */
static bool is_for_products(const request *w) {
    for (const pending_use *use = w->uses; use != NULL; use = use->next) {
        if (!feeds_products(use->op, MOST_LOOK_AHEAD)) {
            return false;
        }
    }
    return w->uses != NULL;
}

/* Where a clone costs as much as the conversion: does the operation come behind the conversion? An
 * operation on one tensor in the loop of a product does, since a loaded tensor that is converted can come
 * from shared memory in the product's layout (pipeline_loops). */
static bool comes_behind(const rewriting *r, const lilac_tile_op *op, const request *w) {
    return op->operand_count == 1 && is_for_products(w) &&
           lilac_coalesce_repeated(r->a, op->results[0].type, w->layout) == 0;
}

/* Clones the operation where that costs less than the conversion. If no user needs the value's own
 * layout and one other is requested, the operation adopts that one, which becomes the value's
 * own. */
static bool clone_where_cheaper(rewriting *r, const listed_op *listed) {
    lilac_tile_op *op = listed->op;
    lilac_tile_value *value = &op->results[0];
    bool moves = !r->kept[value->id];
    for (request *w = r->requests[value->id]; w != NULL; w = w->next) {
        bool adopts = moves && w == r->requests[value->id] && w->next == NULL;
        if (w->uses == NULL) {
            continue;
        }
        const int64_t gain = conversion_price(r, value, w->layout) +
                             (adopts ? own_price(r, listed, MOST_LOOK_AHEAD) : 0) -
                             clone_price(r, listed, w->layout, adopts, MOST_LOOK_AHEAD);
        if (gain < 0 || (gain == 0 && !(adopts && comes_behind(r, op, w)))) {
            continue;
        }
        if (adopts) {
            r->native[value->id] = w->layout;
            w->uses = NULL;
            continue;
        }
        lilac_tile_op *copy = lilac_tile_clone(r->a->module, op);
        lilac_tile_insert_after(op, copy);
        for (pending_use *use = w->uses; use != NULL; use = use->next) {
            lilac_tile_set_operand(use->op, use->index, &copy->results[0]);
        }
        w->uses = NULL;
        if (!define_in(r, copy, w->layout)) {
            return false;
        }
    }
    return true;
}

/* ---- the column `rewrite` of the table of relations ------------------------------------- */

static void set_results(rewriting *r, lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (r->a->kind[op->results[i].id] == VALUE_FIXED) {
            set_layout(r, &op->results[i], native_of(r, &op->results[i]));
        }
    }
}

bool lilac_rewrite_same(rewriting *r, const listed_op *listed) {
    lilac_tile_op *op = listed->op;
    const lilac_layout *layout = NULL;
    for (uint32_t i = 0; i < op->result_count && layout == NULL; i++) {
        if (r->a->kind[op->results[i].id] == VALUE_FIXED) {
            layout = native_of(r, &op->results[i]);
        }
    }
    set_results(r, op);
    retype_constant(r, op);
    request_all(r, op, layout);
    return true;
}

bool lilac_rewrite_shape(rewriting *r, const listed_op *listed) {
    lilac_tile_op *op = listed->op;
    set_results(r, op);
    return request_transferred(r, op, native_of(r, &op->results[0])) || refuse(r, op);
}

bool lilac_rewrite_anchor(rewriting *r, const listed_op *listed) {
    lilac_tile_op *op = listed->op;
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (r->a->kind[op->results[i].id] == VALUE_FIXED && native_of(r, &op->results[i]) == NULL) {
            return refuse(r, op);
        }
    }
    set_results(r, op);
    request_all(r, op, lilac_propagate_layout(r->a, listed->anchor->node));
    return true;
}

/* The gather itself moves the elements of its source, which may have any layout. A cheap source of
 * the result's shape is computed in the layout of the result. */
bool lilac_rewrite_gather(rewriting *r, const listed_op *listed) {
    lilac_tile_op *op = listed->op;
    const lilac_layout *layout = lilac_propagate_layout(r->a, listed->anchor->node);
    const lilac_tile_type *source = op->operands[0].value->type, *result = op->results[0].type;
    bool same = r->a->kind[op->operands[0].value->id] == VALUE_CHEAP;
    for (uint32_t d = 0; d < source->rank; d++) {
        same &= source->shape[d] == result->shape[d];
    }
    set_results(r, op);
    request_operand(r, op, 0, same ? layout : NULL);
    request_operand(r, op, 1, layout);
    return true;
}

/* The layouts of A and B follow from that of the accumulator. */
bool lilac_rewrite_dot(rewriting *r, const listed_op *listed) {
    lilac_tile_op *op = listed->op;
    const lilac_layout *layout = lilac_propagate_layout(r->a, listed->anchor->node);
    set_results(r, op);
    request_operand(r, op, 2, layout);
    for (uint32_t i = 0; i < 2; i++) {
        if (lilac_tile_is_tensor(op->operands[i].value->type)) {
            const lilac_layout *operand =
                lilac_dot_operand_layout(r->a->module, r->a->target, op, i, layout);
            if (operand == NULL) {
                return refuse(r, op);
            }
            request_operand(r, op, i, operand);
        }
    }
    return true;
}

/* All operands, such as a histogram's values and mask, get the layout of the first one that is
 * computed once. */
bool lilac_rewrite_free(rewriting *r, const listed_op *listed) {
    lilac_tile_op *op = listed->op;
    const lilac_layout *layout = NULL;
    for (uint32_t i = 0; i < op->operand_count && layout == NULL; i++) {
        if (r->a->kind[op->operands[i].value->id] == VALUE_FIXED) {
            layout = native_of(r, op->operands[i].value);
        }
    }
    if (layout == NULL) {
        layout = lilac_coalesce_default(r->a, op->operands[0].value->type);
    }
    if (layout == NULL) {
        return false;
    }
    set_results(r, op);
    request_all(r, op, layout);
    return true;
}

/* In a cluster, a tensor that is stored for a product is divided among the blocks as the product is. */
bool lilac_rewrite_any(rewriting *r, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    const bool alloc = op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC && op->operand_count > 0;
    const lilac_layout *native = alloc && r->a->kind[op->operands[0].value->id] == VALUE_FIXED
                                     ? native_of(r, op->operands[0].value)
                                     : NULL;
    request_all(r, listed->op, alloc ? lilac_stored_layout(r->a, op, native) : NULL);
    return true;
}

static void set_arguments(rewriting *r, const lilac_tile_block *block) {
    for (uint32_t i = 0; i < block->argument_count; i++) {
        if (r->a->kind[block->arguments[i]->id] == VALUE_FIXED) {
            set_layout(r, block->arguments[i], native_of(r, block->arguments[i]));
        }
    }
}

/* A value that control flow passes on has the layout of its receiver. */
bool lilac_rewrite_control(rewriting *r, const listed_op *listed) {
    lilac_tile_op *op = listed->op;
    set_results(r, op);
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_tile_value *receiver = lilac_tile_receiver(&op->operands[i]);
        if (receiver != NULL && r->a->kind[receiver->id] == VALUE_FIXED) {
            request_operand(r, op, i, native_of(r, receiver));
        }
    }
    for (uint32_t i = 0; lilac_tile_is_loop(op) && i < op->region_count; i++) {
        set_arguments(r, op->regions[i]->first);
    }
    return true;
}

/* ---- the walk --------------------------------------------------------------------------- */

static bool visit(rewriting *r, const listed_op *listed) {
    lilac_tile_op *op = listed->op;
    if (op->result_count == 1 && r->a->kind[op->results[0].id] == VALUE_CHEAP) {
        return visit_cheap(r, op);
    }
    if (is_repeatable(listed) && r->a->kind[op->results[0].id] == VALUE_FIXED &&
        r->requests[op->results[0].id] != NULL && !clone_where_cheaper(r, listed)) {
        return false;
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (r->a->kind[op->results[i].id] == VALUE_FIXED) {
            materialise(r, &op->results[i]);
        }
    }
    const bool control = listed->relation->rule == RULE_CONTROL;
    for (uint32_t i = 0; control && i < op->region_count; i++) {
        for (const lilac_tile_block *block = op->regions[i]->first; block != NULL;
             block = block->next) {
            materialise_arguments(r, block);
        }
    }
    return listed->relation->rewrite == NULL || listed->relation->rewrite(r, listed);
}

bool lilac_rematerialise(assignment *a) {
    rewriting r = {.a = a};
    r.requests = lilac_arena_array(a->arena, request *, a->value_count + 1);
    r.native = lilac_arena_array(a->arena, const lilac_layout *, a->value_count + 1);
    r.kept = lilac_arena_array(a->arena, uint8_t, a->value_count + 1);
    r.materialised = lilac_arena_array(a->arena, uint8_t, a->value_count + 1);
    r.listed = lilac_arena_array(a->arena, const listed_op *, a->value_count + 1);
    for (uint32_t i = 0; i < a->op_count; i++) {
        for (uint32_t k = 0; k < a->ops[i].op->result_count; k++) {
            r.listed[a->ops[i].op->results[k].id] = &a->ops[i];
        }
    }
    for (uint32_t i = a->op_count; i-- > 0;) {
        if (!visit(&r, &a->ops[i])) {
            return false;
        }
    }
    for (const lilac_tile_block *block = a->function->body->first; block != NULL;
         block = block->next) {
        materialise_arguments(&r, block);
        set_arguments(&r, block);
    }
    return !a->failed;
}
