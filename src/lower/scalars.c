/* Finds the operations whose regions compute scalars only: they access no memory and contain no
 * tensors. If a value that they use differs between threads, their control flow may differ as well;
 * then they are lowered with selects (map_elementwise.c).
 *
 * One walk over the function finds them, in time linear in its operands. A use is recorded once, at
 * the outermost scalar operation that contains the use and not the definition:
 *
 *   %c = …                 scalar operation   records
 *   scf.if %c {            the outer if       %c, %x
 *     %y = … %x
 *     scf.if %y {          the inner if       %y, but not %x
 *       … %x
 *
 * If %x differs between threads, the outer operation and everything in it are lowered with selects.
 * If not, the inner operation need not examine %x again. */
#include "control.h"
#include "operations.h"

#include <stdlib.h>

typedef struct scalar_op {
    const lilac_tile_op *op;
    bool touches_memory, is_scalar, is_of_elements;
    const struct scalar_use *uses;
} scalar_op;

typedef struct scalar_use {
    const lilac_tile_value *value;
    const struct scalar_use *next;
} scalar_use;

typedef struct lilac_lower_scalars {
    uint32_t count;
    scalar_op *list; /* sorted by address when it is complete */
} lilac_lower_scalars;

typedef struct walk {
    lilac_arena *arena;
    lilac_lower_scalars *found;
    uint32_t *depths; /* of values: number of operations that enclose the definition */
    uint32_t *path;   /* by depth: the enclosing operation, as index into the list */
    uint32_t depth;
    uint32_t elements; /* enclosing operations that compute their region for each element */
} walk;

/* ---- the operations with regions --------------------------------------------------------- */

static void count_region(const lilac_tile_region *region, uint32_t depth, uint32_t *count,
                         uint32_t *deepest) {
    *deepest = depth > *deepest ? depth : *deepest;
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            *count += op->region_count > 0;
            for (uint32_t r = 0; r < op->region_count; r++) {
                count_region(op->regions[r], depth + 1, count, deepest);
            }
        }
    }
}

static bool has_tensors(const lilac_tile_op *op) {
    bool tensors = false;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        tensors |= lilac_tile_is_tensor(op->operands[i].value->type);
    }
    return tensors;
}

/* Whether the operation has an effect that threads on an inactive path must not have. (Inline assembly
 * is executed by all threads anyway.) */
static bool has_effects(const lilac_tile_op *op) {
    uint32_t count;
    const lilac_tile_effect *effects = lilac_tile_effects(op->code, &count);
    uint32_t resources = 0;
    for (uint32_t i = 0; i < count; i++) {
        resources |= effects[i].resources;
    }
    return (resources & ~(uint32_t)LILAC_TILE_TEXT) != 0;
}

static bool is_per_element(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TT_MAP_ELEMENTWISE || op->code == LILAC_TILE_OP_TT_REDUCE ||
           op->code == LILAC_TILE_OP_TT_SCAN;
}

typedef struct content {
    bool effects, tensors;
} content;

/* Lists the operations that have regions, in the order of the text. */
static content list_region(walk *w, const lilac_tile_region *region) {
    content all = {false, false};
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (uint32_t i = 0; i < block->argument_count; i++) {
            w->depths[block->arguments[i]->id] = w->depth;
        }
        for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            content own = {false, false};
            uint32_t index = w->found->count;
            for (uint32_t i = 0; i < op->result_count; i++) {
                w->depths[op->results[i].id] = w->depth;
            }
            if (op->region_count > 0) {
                w->found->list[w->found->count++] =
                    (scalar_op){.op = op, .is_of_elements = w->elements > 0};
            }
            w->depth++;
            w->elements += is_per_element(op);
            for (uint32_t r = 0; r < op->region_count; r++) {
                content inner = list_region(w, op->regions[r]);
                own.effects |= inner.effects;
                own.tensors |= inner.tensors;
            }
            w->elements -= is_per_element(op);
            w->depth--;
            own.tensors |= has_tensors(op);
            if (op->region_count > 0) {
                w->found->list[index].touches_memory = own.effects;
                w->found->list[index].is_scalar = !own.effects && !own.tensors;
            }
            all.effects |= own.effects || has_effects(op);
            all.tensors |= own.tensors;
        }
    }
    return all;
}

/* ---- uses --------------------------------------------------------------------------------- */

/* Records the operands of an operation. `around`: the number of operations that contain it, itself
 * included if it has regions. */
static void record_uses(walk *w, const lilac_tile_op *op, uint32_t around) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_tile_value *value = op->operands[i].value;
        if (lilac_tile_is_tensor(value->type)) {
            continue;
        }
        /* Regions of scalar operations contain scalar operations only, so the scalar ones are at the
         * end of the path: the first is found by bisection. */
        uint32_t low = w->depths[value->id], high = around;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (w->found->list[w->path[middle]].is_scalar) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        if (low < around) {
            scalar_op *holder = &w->found->list[w->path[low]];
            scalar_use *use = lilac_arena_new(w->arena, scalar_use);
            *use = (scalar_use){value, holder->uses};
            holder->uses = use;
        }
    }
}

/* `next` counts operations with regions in the order of the list. */
static void record_region(walk *w, const lilac_tile_region *region, uint32_t *next) {
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            if (op->region_count == 0) {
                record_uses(w, op, w->depth);
                continue;
            }
            w->path[w->depth++] = (*next)++;
            record_uses(w, op, w->depth);
            for (uint32_t r = 0; r < op->region_count; r++) {
                record_region(w, op->regions[r], next);
            }
            w->depth--;
        }
    }
}

/* ---- questions -------------------------------------------------------------------------- */

static int compare(const void *a, const void *b) {
    uintptr_t x = (uintptr_t)((const scalar_op *)a)->op, y = (uintptr_t)((const scalar_op *)b)->op;
    return (x > y) - (x < y);
}

void lilac_lower_find_scalars(lilac_lowering *l) {
    lilac_lower_scalars *found = lilac_arena_new(l->arena, lilac_lower_scalars);
    l->scalars = found;
    uint32_t count = 0, deepest = 0, next = 0;
    count_region(l->function->body, 0, &count, &deepest);
    if (count == 0) {
        return;
    }
    found->list = lilac_arena_array(l->arena, scalar_op, count);
    walk w = {.arena = l->arena, .found = found};
    w.depths = lilac_arena_array(l->arena, uint32_t, l->function->value_count);
    w.path = lilac_arena_array(l->arena, uint32_t, deepest);
    (void)list_region(&w, l->function->body);
    record_region(&w, l->function->body, &next);
    qsort(found->list, found->count, sizeof *found->list, compare);
}

static const scalar_op *find(const lilac_lowering *l, const lilac_tile_op *op) {
    const scalar_op key = {.op = op};
    return bsearch(&key, l->scalars->list, l->scalars->count, sizeof key, compare);
}

bool lilac_lower_touches_memory(const lilac_lowering *l, const lilac_tile_op *op) {
    const scalar_op *found = find(l, op);
    return found != NULL && found->touches_memory;
}

bool lilac_lower_is_scalar(const lilac_lowering *l, const lilac_tile_op *op) {
    const scalar_op *found = find(l, op);
    return found != NULL && found->is_scalar;
}

bool lilac_lower_is_per_element(const lilac_lowering *l, const lilac_tile_op *op) {
    const scalar_op *found = find(l, op);
    return found != NULL && found->is_of_elements;
}

bool lilac_lower_uses_divergent(const lilac_lowering *l, const lilac_tile_op *op) {
    const scalar_op *found = find(l, op);
    for (const scalar_use *use = found->uses; use != NULL; use = use->next) {
        const lilac_lower_value *value = &l->values[use->value->id];
        if (value->base != NULL && !l->kernel->values[value->base[0]].uniform) {
            return true;
        }
    }
    return false;
}
