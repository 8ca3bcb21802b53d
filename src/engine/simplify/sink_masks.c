/* sink_masks: masks that only operations behind a matrix product use are computed behind it.
 *
 *     %m = arith.cmpi slt, %column, %n              %s = ttng.warp_group_dot …
 *     %s = ttng.warp_group_dot …              →     %m = arith.cmpi slt, %column, %n
 *     %t = arith.select %m, %s, %zero               %t = arith.select %m, %s, %zero
 *
 * A thread has seven predicate registers. A mask that lives across a product in more is packed into other
 * registers and unpacked again, two or three instructions for each; a comparison of numbers that the thread has in
 * any case is one or two. What the masks are computed from moves with them where nothing else uses it: smaller
 * masks, and numbers of rows and columns, which are computed from ranges and scalars. Not in bodies of loops, whose
 * registers are short: there a packed mask is fewer than the numbers. */
#include "internal.h"

#include "products/dot_operands.h"

enum {
    LARGE = 8, /* elements of a mask in a thread: more than there are predicates */
    MANY = 16  /* of all masks: fewer are one other register */
};

typedef struct sinking {
    uint8_t *derived; /* of values: computed from ranges, constants and scalars only */
    uint8_t *moved;   /* of values: their operation was moved */
    bool changed;
} sinking;

/* The elements of a mask in a thread; 0: it is no mask. */
static uint32_t elements_of(const lilac_tile_value *value) {
    const lilac_layout *layout = value->type->layout;
    if (!lilac_tile_is_tensor(value->type) || lilac_range_bits(value->type) != 1 ||
        layout == NULL) {
        return 0;
    }
    const int registers = lilac_layout_in(layout, "register");
    return registers < 0
               ? 0
               : 1u << (layout->in[registers].bits -
                        (uint32_t)__builtin_popcountll(lilac_layout_free_bits(layout, "register")));
}

static bool is_large_mask(const lilac_tile_value *value) {
    return elements_of(value) >= LARGE;
}

static bool is_derived(const sinking *s, const lilac_tile_op *op) {
    const uint32_t traits = lilac_tile_op_info_get(op->code)->traits;
    bool derived = op->region_count == 0 && op->result_count == 1 &&
                   lilac_tile_is_tensor(op->results[0].type) &&
                   (op->code == LILAC_TILE_OP_TT_MAKE_RANGE || op->code == LILAC_TILE_OP_TT_SPLAT ||
                    op->code == LILAC_TILE_OP_ARITH_CONSTANT ||
                    ((traits & LILAC_TILE_PURE) != 0 &&
                     (traits & (LILAC_TILE_ELEMENTWISE | LILAC_TILE_SHAPE)) != 0));
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_tile_value *operand = op->operands[i].value;
        derived = derived && (!lilac_tile_is_tensor(operand->type) || s->derived[operand->id]);
    }
    return derived;
}

static bool has_product(const lilac_tile_op *op) {
    bool found = lilac_dot_is_product(op) || op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT;
    for (uint32_t r = 0; r < op->region_count; r++) {
        for (const lilac_tile_block *block = op->regions[r]->first; block != NULL;
             block = block->next) {
            for (const lilac_tile_op *inner = block->first; inner != NULL && !found;
                 inner = inner->next) {
                found = has_product(inner);
            }
        }
    }
    return found;
}

/* The operation of this block that is the use or encloses it; NULL: there is none. */
static const lilac_tile_op *lift(const lilac_tile_op *user, const lilac_tile_block *block) {
    while (user != NULL && user->parent != block) {
        user = user->parent->parent->parent;
    }
    return user;
}

static bool is_use(const lilac_tile_op *op, const lilac_tile_value *value) {
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        if (lift(use->op, op->parent) == op) {
            return true;
        }
    }
    return false;
}

/* Is it only used in its block, by operations that move if it is no large mask itself? */
static bool may_move(const sinking *s, const lilac_tile_op *op) {
    const lilac_tile_value *value = &op->results[0];
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        if (lift(use->op, op->parent) == NULL ||
            (!is_large_mask(value) &&
             (use->op->result_count != 1 || !s->moved[use->op->results[0].id]))) {
            return false;
        }
    }
    return value->uses != NULL;
}

/* Its first use behind a product; NULL: there is none. */
static lilac_tile_op *find_place(const lilac_tile_op *op) {
    bool product = false;
    lilac_tile_op *place = op->next;
    while (place != NULL && !is_use(place, &op->results[0])) {
        product |= has_product(place);
        place = place->next;
    }
    return product ? place : NULL;
}

static void sink(sinking *s, lilac_tile_op *op) {
    lilac_tile_op *place = find_place(op);
    if (place != NULL) {
        lilac_tile_detach(op);
        lilac_tile_insert_before(place, op);
        s->moved[op->results[0].id] = true;
        s->changed = true;
    }
}

/* Marks what is derived. Returns the elements of the large masks that may move. */
static uint32_t survey(sinking *s, const lilac_tile_block *block) {
    uint32_t elements = 0;
    for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
        if (is_derived(s, op)) {
            s->derived[op->results[0].id] = true;
            if (is_large_mask(&op->results[0]) && may_move(s, op) && find_place(op) != NULL) {
                elements += elements_of(&op->results[0]);
            }
        }
    }
    return elements;
}

static void visit_block(sinking *s, const lilac_tile_block *block) {
    if (survey(s, block) < MANY) {
        return;
    }
    for (lilac_tile_op *op = block->last, *previous; op != NULL; op = previous) {
        previous = op->previous;
        if (op->result_count == 1 && s->derived[op->results[0].id] && may_move(s, op)) {
            sink(s, op);
        }
    }
}

bool lilac_engine_sink_masks(lilac_tile_module *module, const lilac_target *target, bool *changed) {
    (void)target;
    *changed = false;
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        if (function->body == NULL) {
            continue;
        }
        lilac_tile_number(function);
        lilac_arena *arena = lilac_arena_create();
        sinking s = {.derived = lilac_arena_array(arena, uint8_t, function->value_count + 1),
                     .moved = lilac_arena_array(arena, uint8_t, function->value_count + 1)};
        for (const lilac_tile_block *block = function->body->first; block != NULL;
             block = block->next) {
            visit_block(&s, block);
        }
        *changed = *changed || s.changed;
        lilac_arena_destroy(arena);
    }
    return true;
}
