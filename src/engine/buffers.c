/* buffers: memory descriptors and tokens that control flow passes on unchanged become uses of the
 * value itself.
 *
 *     %q = scf.for … iter_args(%b = %a) {           scf.for … {
 *       %x = ttg.local_load %b              →         %x = ttg.local_load %a
 *       scf.yield %b                                }
 *     }                                             ttg.local_load %a
 *     ttg.local_load %q
 *
 * A descriptor is not a value of SIMT IR: which bytes it stands for is known when its uses are
 * lowered (lower/local.c). So a value of one of these types may leave a region only if it is the
 * same value whichever way control goes:
 *
 *     scf.if      both sides yield it, and it is made outside
 *     scf.for     the body yields what the loop begins with, or its own argument for that
 *     scf.while   the same, through scf.condition
 *
 * Inner operations come first, so that what goes through several of them is followed to its
 * beginning. What is not the same on every path stays, and the lowering refuses it at its
 * operation. */
#include "internal.h"

#include <lilac/tile_loops.h>

#include <assert.h>
#include <string.h>

typedef struct buffers {
    lilac_tile_module *module;
    lilac_arena *arena;
    bool changed;
} buffers;

static bool is_reference(const lilac_tile_type *type) {
    return type->kind == LILAC_TILE_MEMDESC || type->kind == LILAC_TILE_TOKEN;
}

static bool is_poison(const lilac_tile_value *value) {
    return value->op != NULL && value->op->code == LILAC_TILE_OP_UB_POISON;
}

/* Removes the phis whose receivers have been replaced. */
static void drop(buffers *p, lilac_tile_op *op, const bool *dropped) {
    uint32_t count = lilac_tile_phi_count(op);
    if (count != 0 && memchr(dropped, true, count) != NULL) {
        const char *why = lilac_tile_remove_phis(p->module, op, dropped);
        assert(why == NULL);
        (void)why;
        p->changed = true;
    }
}

/* ---- scf.if -------------------------------------------------------------------------------- */

static void visit_if(buffers *p, lilac_tile_op *op) {
    bool *dropped = lilac_arena_array(p->arena, bool, op->result_count + 1);
    for (uint32_t i = 0; i < op->result_count; i++) {
        lilac_tile_value *yes = lilac_tile_yielded(op, 0, i), *no = lilac_tile_yielded(op, 1, i);
        lilac_tile_value *value = is_poison(yes) ? no : yes;
        dropped[i] = is_reference(op->results[i].type) &&
                     (yes == no || is_poison(yes) || is_poison(no)) &&
                     !lilac_tile_is_inside(value, op);
        if (dropped[i]) {
            lilac_tile_replace_uses(&op->results[i], value);
        }
    }
    drop(p, op, dropped);
}

/* ---- scf.for ------------------------------------------------------------------------------- */

static void visit_for(buffers *p, lilac_tile_op *op) {
    bool *dropped = lilac_arena_array(p->arena, bool, op->result_count + 1);
    for (uint32_t i = 0; i < op->result_count; i++) {
        lilac_tile_value *init = lilac_tile_init(op, i), *next = lilac_tile_next(op, i);
        lilac_tile_value *argument = lilac_tile_iteration_argument(op, i);
        dropped[i] = is_reference(op->results[i].type) && (next == argument || next == init);
        if (dropped[i]) {
            lilac_tile_replace_uses(argument, init);
            lilac_tile_replace_uses(&op->results[i], init);
        }
    }
    drop(p, op, dropped);
}

/* ---- scf.while ----------------------------------------------------------------------------- */

/* Does a carried value never change? What is yielded for it is what the loop begins with, its own
 * argument, or what scf.condition passes on of these. */
static bool is_constant(const lilac_tile_op *op, uint32_t i) {
    const lilac_tile_value *next = lilac_tile_next(op, i), *init = lilac_tile_init(op, i);
    if (next->block == op->regions[1]->first) {
        next = lilac_tile_passed(op, next->index);
    }
    return is_reference(init->type) &&
           (next == lilac_tile_iteration_argument(op, i) || next == init);
}

static void visit_while(buffers *p, lilac_tile_op *op) {
    uint32_t carried = lilac_tile_carried_count(op);
    bool *dropped = lilac_arena_array(p->arena, bool, lilac_tile_phi_count(op) + 1);
    for (uint32_t i = 0; i < carried; i++) {
        dropped[i] = is_constant(op, i);
    }
    for (uint32_t i = 0; i < carried; i++) {
        if (dropped[i]) {
            lilac_tile_replace_uses(lilac_tile_iteration_argument(op, i), lilac_tile_init(op, i));
        }
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        lilac_tile_value *value = lilac_tile_passed(op, i);
        dropped[carried + i] =
            is_reference(op->results[i].type) && !lilac_tile_is_inside(value, op);
        if (dropped[carried + i]) {
            lilac_tile_replace_uses(lilac_tile_passed_argument(op, i), value);
            lilac_tile_replace_uses(&op->results[i], value);
        }
    }
    drop(p, op, dropped);
}

/* ---- the walk ------------------------------------------------------------------------------ */

static void visit_region(buffers *p, lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
            next = op->next;
            for (uint32_t i = 0; i < op->region_count; i++) {
                visit_region(p, op->regions[i]);
            }
            if (op->code == LILAC_TILE_OP_SCF_IF) {
                visit_if(p, op);
            } else if (op->code == LILAC_TILE_OP_SCF_FOR) {
                visit_for(p, op);
            } else if (op->code == LILAC_TILE_OP_SCF_WHILE) {
                visit_while(p, op);
            }
        }
    }
}

bool lilac_engine_buffers(lilac_tile_module *module, const lilac_target *target, bool *changed) {
    (void)target;
    buffers p = {.module = module, .arena = lilac_arena_create()};
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        if (f->body != NULL) {
            visit_region(&p, f->body);
        }
    }
    lilac_arena_destroy(p.arena);
    *changed = p.changed;
    return true;
}
