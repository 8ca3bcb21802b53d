/* hoist_assertions: an assertion about values from outside a loop is executed once, before the loop.
 *
 *     scf.for %i = %c0 to %c4096 step %c2048 {        tt.assert %c
 *       %a = tt.load %p                               scf.for %i = %c0 to %c4096 step %c2048 {
 *       tt.assert %c                             →      %a = tt.load %p
 *       …                                               …
 *     }                                               }
 *     scf.for … { tt.assert %c … }                    scf.for … { … }
 *
 * An assertion is an effect, so a loop that has one is not a loop that only loads, and unroll_loops
 * leaves it (torch.compile asserts the bounds of indices in every iteration).
 *
 * Hoisting. The condition is defined outside the loop, the loop executes at least one iteration, and no
 * operation of the body before the assertion conflicts with it: another assertion that stays, a print.
 *
 * Removal. An assertion whose condition an earlier assertion in a block around it has tested holds. */
#include "internal.h"

#include <lilac/tile_loops.h>

enum { MOST_TESTED = 32 /* conditions that are remembered: bounds compile time */ };

typedef struct tested {
    const lilac_tile_value *conditions[MOST_TESTED];
    const lilac_tile_block *blocks[MOST_TESTED]; /* of the assertions */
    uint32_t count;
} tested;

static bool is_assertion(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TT_ASSERT || op->code == LILAC_TILE_OP_CF_ASSERT;
}

/* Is a block the block of an operation, or around it? */
static bool encloses(const lilac_tile_block *block, const lilac_tile_op *op) {
    for (; op != NULL; op = op->parent->parent->parent) {
        if (op->parent == block) {
            return true;
        }
    }
    return false;
}

static bool is_defined_in(const lilac_tile_value *value, const lilac_tile_op *loop) {
    const lilac_tile_block *body = loop->regions[0]->first;
    if (value->op != NULL) {
        return encloses(body, value->op);
    }
    for (uint32_t i = 0; i < body->argument_count; i++) {
        if (body->arguments[i] == value) {
            return true;
        }
    }
    return false;
}

static bool runs(const lilac_tile_op *op) {
    uint64_t trip_count;
    return op->code == LILAC_TILE_OP_SCF_FOR && lilac_tile_terminator(op->regions[0]) != NULL &&
           !lilac_tile_keeps_invariants(op) && lilac_tile_trip_count(op, &trip_count) &&
           trip_count > 0;
}

static bool hoist(lilac_tile_op *loop) {
    lilac_tile_block *body = loop->regions[0]->first;
    bool changed = false;
    for (lilac_tile_op *op = body->first, *next; op != NULL; op = next) {
        next = op->next;
        if (!is_assertion(op) || is_defined_in(op->operands[0].value, loop) ||
            (op != body->first && lilac_tile_move_before(op, body->first) != NULL)) {
            continue;
        }
        lilac_tile_detach(op);
        lilac_tile_insert_before(loop, op);
        changed = true;
    }
    return changed;
}

/* Inner loops first: what leaves them may leave the loops around them. */
static bool hoist_all(const lilac_tile_region *region) {
    bool changed = false;
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            for (uint32_t r = 0; r < op->region_count; r++) {
                changed |= hoist_all(op->regions[r]);
            }
            changed |= runs(op) && hoist(op);
        }
    }
    return changed;
}

static bool is_tested(const tested *t, const lilac_tile_op *assertion) {
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->conditions[i] == assertion->operands[0].value && encloses(t->blocks[i], assertion)) {
            return true;
        }
    }
    return false;
}

static bool remove_all(tested *t, const lilac_tile_region *region) {
    bool changed = false;
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
            next = op->next;
            for (uint32_t r = 0; r < op->region_count; r++) {
                changed |= remove_all(t, op->regions[r]);
            }
            if (!is_assertion(op)) {
                continue;
            }
            if (is_tested(t, op)) {
                lilac_tile_remove(op);
                changed = true;
            } else if (t->count < MOST_TESTED) {
                t->conditions[t->count] = op->operands[0].value;
                t->blocks[t->count++] = block;
            }
        }
    }
    return changed;
}

bool lilac_engine_hoist_assertions(lilac_tile_module *module, const lilac_target *target,
                                   bool *changed) {
    (void)target;
    *changed = false;
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        tested t = {.count = 0};
        if (function->body != NULL) {
            *changed |= hoist_all(function->body);
            *changed |= remove_all(&t, function->body);
        }
    }
    return true;
}
