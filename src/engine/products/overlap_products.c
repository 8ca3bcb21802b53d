/* overlap_products: a product that the program does not use yet stays in flight.
 *
 *     %d = ttng.warp_group_dot %a, %b, %c           %d = ttng.warp_group_dot %a, %b, %c {isAsync}
 *     other operations                       →      other operations
 *     a use of %d                                   %w = ttng.warp_group_dot_wait %d {pendings = 0}
 *                                                   a use of %w
 *
 * Products complete in order, so a wait for one counts the later ones that may stay. At the end of
 * its block no product is in flight. A store to memory, or the end of an operand's memory, waits
 * for all. A copy that pipeline_loops started writes buffers that no product of the iteration
 * reads, unless it starts last (lilac.last). So do the tensor copies of a loop whose schedule has
 * copies=behind: all warps are past the products of the iteration before when the first one starts.
 *
 * A loop whose schedule has products=wait keeps its waits.
 *
 * A fence that another one follows, before any product, orders nothing that the later one does not.
 * Behind a fence and before the next store is a barrier of the block, so it is removed (merge_fences.c). */
#include "pipeline/schedule.h"
#include "products/dot_operands.h"

#include <lilac/tile_loops.h>

enum { MOST_FLYING = 7 };

typedef struct overlap {
    lilac_tile_module *module;
    lilac_tile_op *flying[MOST_FLYING]; /* in the order of their start */
    uint32_t count;
    bool behind; /* the block's tensor copies fill buffers that no product in flight reads */
    bool changed;
} overlap;

static void set_number(const overlap *o, lilac_tile_op *op, const char *name, int64_t value,
                       bool truth) {
    const lilac_tile_attribute attribute = {
        .kind = truth ? LILAC_TILE_ATTR_BOOL : LILAC_TILE_ATTR_INTEGER,
        .name = lilac_intern_string(o->module->context, name),
        .type = lilac_tile_scalar(o->module, truth ? LILAC_I1 : LILAC_I32),
        .integer = value};
    lilac_tile_set_attribute(o->module, &op->attributes, &attribute);
}

/* Waits, before `place`, for the first `count` products in flight. A product that nothing separates
 * from its wait stays as it was. */
static void wait_for(overlap *o, uint32_t count, lilac_tile_op *place) {
    lilac_tile_value *values[MOST_FLYING];
    const lilac_tile_type *types[MOST_FLYING];
    if (count == 0) {
        return;
    }
    if (o->count == 1 && o->flying[0]->next == place) {
        o->count = 0;
        return;
    }
    for (uint32_t i = 0; i < o->count; i++) {
        set_number(o, o->flying[i], "isAsync", 1, true);
    }
    for (uint32_t i = 0; i < count; i++) {
        values[i] = &o->flying[i]->results[0];
        types[i] = values[i]->type;
    }
    lilac_tile_op *wait =
        lilac_tile_op_create(o->module, LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT, count, values,
                             count, types, 0, o->flying[0]->location);
    wait->position = o->flying[0]->position;
    set_number(o, wait, "pendings", o->count - count, false);
    for (uint32_t i = 0; i < count; i++) {
        lilac_tile_replace_uses(values[i], &wait->results[i]);
    }
    for (uint32_t i = 0; i < count; i++) { /* the wait's own operands again */
        lilac_tile_set_operand(wait, i, values[i]);
    }
    lilac_tile_insert_before(place, wait);
    for (uint32_t i = count; i < o->count; i++) {
        o->flying[i - count] = o->flying[i];
    }
    o->count -= count;
    o->changed = true;
}

static bool uses(const lilac_tile_op *op, const lilac_tile_value *value) {
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        const lilac_tile_op *user = use->op;
        while (user != NULL && user->parent != op->parent) {
            user = user->parent->parent->parent;
        }
        if (user == op) {
            return true;
        }
    }
    return false;
}

static bool is_pure(const lilac_tile_op *op) {
    return (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) != 0;
}

static void find_effect(void *data, lilac_tile_op *op) {
    *(bool *)data |= !is_pure(op) && op->next != NULL;
}

/* A conditional that chooses values (skip_masks)? */
static bool is_pure_branch(const lilac_tile_op *op) {
    bool effect = op->code != LILAC_TILE_OP_SCF_IF;
    for (uint32_t r = 0; !effect && r < op->region_count; r++) {
        lilac_tile_walk(op->regions[r], find_effect, &effect);
    }
    return !effect;
}

/* May a product stay in flight over the operation? Not over stores to memory, waits and loops. */
static bool is_independent(const overlap *o, const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_TTNG_BARRIER_EXPECT:
    case LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL:
        return o->behind || lilac_tile_find_integer(&op->attributes, "lilac.ordered", 0) != 0;
    case LILAC_TILE_OP_TTG_ASYNC_COPY_GLOBAL_TO_LOCAL:
        return lilac_tile_find_integer(&op->attributes, "lilac.last", 0) == 0;
    case LILAC_TILE_OP_TTG_ASYNC_COMMIT_GROUP:
    case LILAC_TILE_OP_TTG_LOCAL_LOAD:
    case LILAC_TILE_OP_TTNG_WARP_GROUP_DOT:
    case LILAC_TILE_OP_TT_LOAD:
        return true;
    default:
        return is_pure(op) || (op->region_count == 2 && is_pure_branch(op));
    }
}

static bool stays_in_flight(const lilac_tile_op *product) {
    return lilac_tile_find_integer(&product->attributes, "lilac.in_flight", 0) != 0;
}

static void visit_block(overlap *o, lilac_tile_block *block) {
    o->count = 0;
    for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
        next = op->next;
        uint32_t count = is_independent(o, op) ? 0 : o->count;
        if (next == NULL) { /* products that delay_products leaves in flight over the back edge */
            while (count > 0 && stays_in_flight(o->flying[count - 1])) {
                set_number(o, o->flying[--count], "isAsync", 1, true);
            }
        }
        for (uint32_t i = o->count; next != NULL && i > count; i--) {
            if (uses(op, &o->flying[i - 1]->results[0])) {
                count = i;
                break;
            }
        }
        wait_for(o, count, op);
        if (op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
            if (o->count == MOST_FLYING) {
                wait_for(o, 1, op);
            }
            o->flying[o->count++] = op;
        }
    }
}

static bool is_eligible(const lilac_tile_block *block) {
    bool found = false, waits = false, delayed = false;
    for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
        if (lilac_tile_find_integer(&op->attributes, "isAsync", 0) != 0) {
            return false;
        }
        waits |= op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT;
        found |= op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT;
        delayed |= stays_in_flight(op);
    }
    return found && (!waits || delayed);
}

/* Does the schedule of a loop have this value of a key? */
static bool has(const lilac_tile_op *loop, uint32_t key, uint32_t value) {
    lilac_schedule record;
    return loop != NULL && lilac_schedule_of(&record, loop) && record.has[key] &&
           record.values[key] == value;
}

static void visit_region(overlap *o, lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            for (uint32_t r = 0; r < op->region_count; r++) {
                visit_region(o, op->regions[r]);
            }
        }
        if (is_eligible(block) &&
            !has(region->parent, LILAC_SCHEDULE_PRODUCTS, LILAC_PRODUCTS_WAIT)) {
            o->behind = has(region->parent, LILAC_SCHEDULE_COPIES, LILAC_COPIES_BEHIND);
            visit_block(o, block);
        }
    }
}

bool lilac_engine_overlap_products(lilac_tile_module *module, const lilac_target *target,
                                   bool *changed) {
    overlap o = {.module = module};
    (void)target;
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        if (function->body != NULL) {
            visit_region(&o, function->body);
            o.changed |= lilac_dot_merge_fences(function->body);
            lilac_tile_number(function);
        }
    }
    *changed = o.changed;
    return true;
}
