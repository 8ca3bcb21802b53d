/* fuse_reductions: reductions that share an operand and have one axis become one reduction.
 *
 *     %s     = tt.reduce(%x)     {add}
 *     %m, %i = tt.reduce(%x, %n) {arg-max}
 *
 *  →  %s, %m, %i = tt.reduce(%x, %x, %n) {add; arg-max}
 *
 * With separate reductions, each element occupies a register until the last reduction has read it.
 * The fused reduction reads each element once, and one shared-memory exchange with one barrier
 * moves all partial results.
 *
 * The later reduction moves up to the earlier one. Each of its operands must be defined before that
 * position, or by a pure operation that can move up too; an operand that depends on the earlier
 * reduction forbids it. Values are numbered in program order, so one comparison decides whether a
 * value is defined before an operation.
 */
#include "internal.h"

#include <string.h>

#define REMEMBERED 8  /* reductions of a block that later ones may join */
#define DEEPEST    16 /* length of a chain of operations that moves up */
#define WIDEST     16 /* operands of one reduction */

typedef struct fusion {
    lilac_tile_module *module;
    bool changed;
} fusion;

static lilac_tile_block *region_of(const lilac_tile_op *op) {
    lilac_tile_block *block = op->region_count == 1 ? op->regions[0]->first : NULL;
    bool plain = block != NULL && block->next == NULL && block->last != NULL &&
                 block->last->code == LILAC_TILE_OP_TT_REDUCE_RETURN &&
                 block->argument_count == 2 * op->operand_count &&
                 block->last->operand_count == op->operand_count;
    return plain ? block : NULL;
}

static bool shares_operand(const lilac_tile_op *a, const lilac_tile_op *b) {
    for (uint32_t i = 0; i < a->operand_count; i++) {
        for (uint32_t k = 0; k < b->operand_count; k++) {
            if (a->operands[i].value == b->operands[k].value) {
                return true;
            }
        }
    }
    return false;
}

/* Do the two reductions share an operand, the axis and the type of the results? */
static bool may_fuse(const lilac_tile_op *a, const lilac_tile_op *b) {
    const lilac_tile_type *x = a->results[0].type, *y = b->results[0].type;
    return lilac_tile_find_integer(&a->attributes, "axis", 0) ==
               lilac_tile_find_integer(&b->attributes, "axis", 0) &&
           a->operand_count == a->result_count && b->operand_count == b->result_count &&
           a->operand_count + b->operand_count <= WIDEST &&
           lilac_tile_is_tensor(x) == lilac_tile_is_tensor(y) &&
           (!lilac_tile_is_tensor(x) || x->layout == y->layout) && shares_operand(a, b);
}

/* Is the value defined before `place`, or can its definition move there? */
static bool can_rise(const lilac_tile_value *value, const lilac_tile_op *place, uint32_t depth) {
    if (value->id < place->results[0].id) {
        return true;
    }
    const lilac_tile_op *op = value->op;
    if (op == NULL || op->parent != place->parent || op->region_count > 0 || depth == DEEPEST ||
        !(lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE)) {
        return false;
    }
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (!can_rise(op->operands[i].value, place, depth + 1)) {
            return false;
        }
    }
    return true;
}

/* Moves the definition of a value, with its operands, before `place`. */
static void rise(const lilac_tile_value *value, lilac_tile_op *place) {
    lilac_tile_op *op = value->op;
    if (value->id < place->results[0].id) {
        return;
    }
    for (uint32_t i = 0; i < op->operand_count; i++) {
        rise(op->operands[i].value, place);
    }
    lilac_tile_detach(op);
    lilac_tile_insert_before(place, op);
    for (uint32_t i = 0; i < op->result_count; i++) {
        op->results[i].id = 0; /* precedes all other values */
    }
}

/* Moves the operations of a reduction's region into the fused region, in which the arguments of the
 * reduction start at `first` of each half. `returned`: the values that the region returns. */
static void move_region(lilac_tile_block *to, const lilac_tile_op *op, uint32_t first,
                        lilac_tile_value **returned) {
    lilac_tile_block *from = region_of(op);
    uint32_t count = op->operand_count, all = to->argument_count / 2;
    for (uint32_t i = 0; i < 2 * count; i++) {
        lilac_tile_replace_uses(from->arguments[i],
                                to->arguments[first + (i < count ? i : all + i - count)]);
    }
    lilac_tile_op *end = from->last;
    for (uint32_t i = 0; i < count; i++) {
        returned[i] = end->operands[i].value;
    }
    lilac_tile_remove(end);
    for (lilac_tile_op *inner = from->first, *next; inner != NULL; inner = next) {
        next = inner->next;
        lilac_tile_detach(inner);
        lilac_tile_append(to, inner);
    }
}

/* Replaces two reductions by one in the position of the first. */
static lilac_tile_op *fuse(fusion *f, lilac_tile_op *a, lilac_tile_op *b) {
    lilac_tile_value *operands[WIDEST], *returned[WIDEST];
    const lilac_tile_type *types[WIDEST];
    lilac_tile_op *both[2] = {a, b};
    uint32_t count = 0;
    for (uint32_t i = 0; i < b->operand_count; i++) {
        rise(b->operands[i].value, a);
    }
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < both[k]->operand_count; i++, count++) {
            operands[count] = both[k]->operands[i].value;
            types[count] = both[k]->results[i].type;
        }
    }
    lilac_tile_op *fused =
        lilac_tile_op_create(f->module, a->code, count, operands, count, types, 1, a->location);
    for (uint32_t i = 0; i < a->attributes.count; i++) {
        lilac_tile_set_attribute(f->module, &fused->attributes, &a->attributes.list[i]);
    }
    fused->position = a->position;
    lilac_tile_block *block = lilac_tile_block_create(f->module, fused->regions[0]);
    for (uint32_t half = 0; half < 2; half++) {
        for (uint32_t k = 0; k < 2; k++) {
            const lilac_tile_block *old = region_of(both[k]);
            for (uint32_t i = 0; i < both[k]->operand_count; i++) {
                const lilac_tile_value *argument =
                    old->arguments[half * both[k]->operand_count + i];
                lilac_tile_add_argument(f->module, block, argument->type, argument->name,
                                        argument->location);
            }
        }
    }
    lilac_location end = region_of(a)->last->location;
    move_region(block, a, 0, returned);
    move_region(block, b, a->operand_count, returned + a->operand_count);
    lilac_tile_append(block, lilac_tile_op_create(f->module, LILAC_TILE_OP_TT_REDUCE_RETURN, count,
                                                  returned, 0, NULL, 0, end));
    lilac_tile_insert_before(a, fused);
    for (uint32_t i = 0; i < count; i++) {
        lilac_tile_op *old = i < a->operand_count ? a : b;
        lilac_tile_value *result = &old->results[old == a ? i : i - a->operand_count];
        fused->results[i].id = a->results[0].id;
        lilac_tile_replace_uses(result, &fused->results[i]);
    }
    lilac_tile_remove(a);
    lilac_tile_remove(b);
    f->changed = true;
    return fused;
}

static bool may_join(const lilac_tile_op *a, const lilac_tile_op *b) {
    if (!may_fuse(a, b)) {
        return false;
    }
    for (uint32_t i = 0; i < b->operand_count; i++) {
        if (!can_rise(b->operands[i].value, a, 0)) {
            return false;
        }
    }
    return true;
}

static void walk(fusion *f, lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        lilac_tile_op *seen[REMEMBERED];
        uint32_t count = 0;
        for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
            next = op->next;
            if (op->code != LILAC_TILE_OP_TT_REDUCE) {
                for (uint32_t r = 0; r < op->region_count; r++) {
                    walk(f, op->regions[r]);
                }
                continue;
            }
            if (region_of(op) == NULL) {
                continue;
            }
            uint32_t i = 0;
            while (i < count && !may_join(seen[i], op)) {
                i++;
            }
            if (i < count) {
                seen[i] = fuse(f, seen[i], op);
            } else {
                seen[count < REMEMBERED ? count++ : REMEMBERED - 1] = op;
            }
        }
    }
}

bool lilac_engine_fuse_reductions(lilac_tile_module *module, const lilac_target *target,
                                  bool *changed) {
    (void)target;
    fusion f = {.module = module};
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        if (function->body != NULL) {
            lilac_tile_number(function);
            walk(&f, function->body);
            lilac_tile_number(function);
        }
    }
    *changed = f.changed;
    return true;
}
