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

/* The only block of a region, and its terminator with `count` operands; NULL: there is none. */
static lilac_tile_op *end_of(const lilac_tile_op *op, uint32_t region, uint32_t count) {
    lilac_tile_block *block = op->regions[region]->first;
    lilac_tile_op *end = block != NULL && block->next == NULL ? block->last : NULL;
    bool fits = end != NULL && end->successor_count == 0 && end->operand_count == count;
    return fits ? end : NULL;
}

/* ---- dropping what is carried -------------------------------------------------------------- */

/* The terminator without the operands that are dropped, from operand number `first` on. */
static void shorten_end(buffers *p, lilac_tile_op *end, uint32_t first, const bool *dropped) {
    lilac_tile_value **kept = lilac_arena_array(p->arena, lilac_tile_value *, end->operand_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < end->operand_count; i++) {
        if (i < first || !dropped[i - first]) {
            kept[count++] = end->operands[i].value;
        }
    }
    lilac_tile_op *made =
        lilac_tile_op_create(p->module, end->code, count, kept, 0, NULL, 0, end->location);
    made->position = end->position;
    made->attributes = end->attributes;
    lilac_tile_insert_before(end, made);
    lilac_tile_remove(end);
}

/* The block without the arguments that are dropped, from number `first` on. */
static void shorten_arguments(lilac_tile_block *block, uint32_t first, const bool *dropped) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < block->argument_count; i++) {
        if (i < first || !dropped[i - first]) {
            block->arguments[count] = block->arguments[i];
            block->arguments[count]->index = count;
            count++;
        }
    }
    block->argument_count = count;
}

/* The operation without the operands that are dropped, from number `first` on, and without the
 * results that are dropped. */
static void shorten_op(buffers *p, lilac_tile_op *op, uint32_t first, const bool *operands,
                       const bool *results) {
    lilac_tile_value **kept = lilac_arena_array(p->arena, lilac_tile_value *, op->operand_count);
    const lilac_tile_type **types =
        lilac_arena_array(p->arena, const lilac_tile_type *, op->result_count);
    uint32_t operand_count = 0, result_count = 0;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (i < first || !operands[i - first]) {
            kept[operand_count++] = op->operands[i].value;
        }
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (!results[i]) {
            types[result_count++] = op->results[i].type;
        }
    }
    lilac_tile_op *made = lilac_tile_op_create(p->module, op->code, operand_count, kept,
                                               result_count, types, 0, op->location);
    made->position = op->position;
    made->attributes = op->attributes;
    made->region_count = op->region_count;
    made->regions = op->regions;
    for (uint32_t i = 0; i < made->region_count; i++) {
        made->regions[i]->parent = made;
    }
    for (uint32_t i = 0, at = 0; i < op->result_count; i++) {
        if (!results[i]) {
            made->results[at].name = op->results[i].name;
            lilac_tile_replace_uses(&op->results[i], &made->results[at++]);
        }
    }
    op->region_count = 0;
    lilac_tile_insert_before(op, made);
    lilac_tile_remove(op);
    p->changed = true;
}

static bool any(const bool *flags, uint32_t count) {
    return count != 0 && memchr(flags, true, count) != NULL;
}

/* ---- scf.if -------------------------------------------------------------------------------- */

static void visit_if(buffers *p, lilac_tile_op *op) {
    uint32_t count = op->result_count;
    lilac_tile_op *ends[2] = {end_of(op, 0, count), end_of(op, 1, count)};
    bool *dropped = lilac_arena_array(p->arena, bool, count + 1);
    if (ends[0] == NULL || ends[1] == NULL) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        lilac_tile_value *yes = ends[0]->operands[i].value, *no = ends[1]->operands[i].value;
        lilac_tile_value *value = is_poison(yes) ? no : yes;
        dropped[i] = is_reference(op->results[i].type) &&
                     (yes == no || is_poison(yes) || is_poison(no)) &&
                     !lilac_tile_is_inside(value, op);
        if (dropped[i]) {
            lilac_tile_replace_uses(&op->results[i], value);
        }
    }
    if (any(dropped, count)) {
        shorten_end(p, ends[0], 0, dropped);
        shorten_end(p, ends[1], 0, dropped);
        shorten_op(p, op, 1, dropped, dropped);
    }
}

/* ---- scf.for ------------------------------------------------------------------------------- */

static void visit_for(buffers *p, lilac_tile_op *op) {
    enum { INITS = 3 };
    uint32_t count = op->result_count;
    lilac_tile_op *end = end_of(op, 0, count);
    lilac_tile_block *body = op->regions[0]->first;
    bool *dropped = lilac_arena_array(p->arena, bool, count + 1);
    if (end == NULL || op->operand_count != INITS + count || body->argument_count != count + 1) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        lilac_tile_value *init = op->operands[INITS + i].value;
        lilac_tile_value *next = end->operands[i].value, *argument = body->arguments[i + 1];
        dropped[i] = is_reference(op->results[i].type) && (next == argument || next == init);
        if (dropped[i]) {
            lilac_tile_replace_uses(argument, init);
            lilac_tile_replace_uses(&op->results[i], init);
        }
    }
    if (any(dropped, count)) {
        shorten_end(p, end, 0, dropped);
        shorten_arguments(body, 1, dropped);
        shorten_op(p, op, INITS, dropped, dropped);
    }
}

/* ---- scf.while ----------------------------------------------------------------------------- */

/* Arguments of the first region whose value never changes: what is yielded for one is what the loop
 * begins with, its own argument, or what scf.condition passes on of these. */
static void find_constant(const lilac_tile_op *op, const lilac_tile_op *condition,
                          const lilac_tile_op *yield, bool *constant) {
    lilac_tile_block *before = op->regions[0]->first, *after = op->regions[1]->first;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_tile_value *next = yield->operands[i].value;
        if (next->block == after) {
            next = condition->operands[next->index + 1].value;
        }
        constant[i] = is_reference(op->operands[i].value->type) &&
                      (next == before->arguments[i] || next == op->operands[i].value);
    }
}

static void visit_while(buffers *p, lilac_tile_op *op) {
    uint32_t carried = op->operand_count, passed = op->result_count;
    lilac_tile_op *condition = end_of(op, 0, passed + 1), *yield = end_of(op, 1, carried);
    if (condition == NULL || yield == NULL || condition->code != LILAC_TILE_OP_SCF_CONDITION) {
        return;
    }
    lilac_tile_block *before = op->regions[0]->first, *after = op->regions[1]->first;
    if (before->argument_count != carried || after->argument_count != passed) {
        return;
    }
    bool *constant = lilac_arena_array(p->arena, bool, carried + 1);
    bool *dropped = lilac_arena_array(p->arena, bool, passed + 1);
    find_constant(op, condition, yield, constant);
    for (uint32_t i = 0; i < carried; i++) {
        if (constant[i]) {
            lilac_tile_replace_uses(before->arguments[i], op->operands[i].value);
        }
    }
    for (uint32_t i = 0; i < passed; i++) {
        lilac_tile_value *value = condition->operands[i + 1].value;
        dropped[i] = is_reference(op->results[i].type) && !lilac_tile_is_inside(value, op);
        if (dropped[i]) {
            lilac_tile_replace_uses(after->arguments[i], value);
            lilac_tile_replace_uses(&op->results[i], value);
        }
    }
    if (any(constant, carried) || any(dropped, passed)) {
        shorten_end(p, condition, 1, dropped);
        shorten_end(p, yield, 0, constant);
        shorten_arguments(before, 0, constant);
        shorten_arguments(after, 0, dropped);
        shorten_op(p, op, 0, constant, dropped);
    }
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
