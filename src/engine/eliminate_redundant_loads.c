/* duplicates: loads of which nobody needs every copy are done by one of the copies.
 *
 * A layout may hold an element in several threads: lanes or warps whose column brings nothing new.
 * Which threads need a value is told by a mask of bits of the thread's index: those in which one of
 * the bits is set need nothing of it.
 *
 *     store       only the first of the copies writes: its layout's own copies are the mask
 *     same thread element by element, shapes: an operand is needed where a result is
 *     branches    what is yielded, where the result is; of loops the least of all that is carried
 *     load        its pointers are needed where it is done
 *     the rest    everywhere: conversions, reductions … read whichever copy they like
 *
 * Masks begin full and lose bits until nothing changes. A load whose mask has whole warps then says
 * so (lilac.idle), and these warps skip it:
 *
 *     %v = tt.load %p  : 16 bytes in each of 64 threads, and the same again in 64 more
 *     tt.store %q, %v                                    the lower half stores
 *     →  %v = tt.load %p {lilac.idle = 64 : i32}         and the lower half loads
 *
 * Lanes that hold copies are no reason to: what a warp asks for twice comes once. Nor is an access
 * of scalars, which all threads need.
 */
#include "internal.h"

#include <lilac/bits.h>
#include <lilac/tile_loops.h>

#include <string.h>

typedef struct copies_of {
    const lilac_layout *layout;
    uint32_t mask;
} copies_of;

#define KNOWN_LAYOUTS 16

typedef struct thinning {
    lilac_tile_module *module;
    uint32_t lane_bits, threads; /* all bits of a thread's index */
    uint32_t *idle;              /* by value id */
    copies_of known[KNOWN_LAYOUTS];
    lilac_name name;
    bool changed, marking;
} thinning;

/* Replicated bits of the thread's index: lanes, then warps. */
static uint32_t find_copies(const lilac_layout *layout) {
    uint32_t thread_bits = 0;
    for (uint32_t i = 1; i < layout->in_count && i < 3; i++)
        thread_bits += layout->in[i].bits;
    return (uint32_t)(lilac_layout_free_mask(layout) >> layout->in[0].bits & low_bits(thread_bits));
}

static uint32_t copies(thinning *t, const lilac_tile_type *type) {
    const lilac_layout *layout = type->layout;
    copies_of *known = &t->known[((uintptr_t)layout >> 6) % KNOWN_LAYOUTS];
    if (layout == NULL || !lilac_tile_is_tensor(type))
        return 0;
    if (known->layout != layout)
        *known = (copies_of){layout, find_copies(layout)};
    return known->mask;
}

/* ---- needs ------------------------------------------------------------------------------ */

static void need(thinning *t, const lilac_tile_value *value, uint32_t idle) {
    uint32_t left = t->idle[value->id] & idle;
    if (left == t->idle[value->id])
        return;
    t->idle[value->id] = left;
    t->changed = true;
}

static void need_all(thinning *t, const lilac_tile_op *op, uint32_t idle) {
    for (uint32_t i = 0; i < op->operand_count; i++)
        need(t, op->operands[i].value, idle);
}

/* Two values that are carried as one. */
static void alike(thinning *t, const lilac_tile_value *a, const lilac_tile_value *b) {
    need(t, a, t->idle[b->id]);
    need(t, b, t->idle[a->id]);
}

/* Does each thread compute its elements of the results from its own elements of the operands? A
 * reshape may have any layout (`allow_reorder`). */
static bool stays_in_threads(const lilac_tile_op *op) {
    uint32_t traits = lilac_tile_op_info_get(op->code)->traits;
    if (traits & LILAC_TILE_SHAPE)
        return op->code != LILAC_TILE_OP_TT_RESHAPE;
    return (traits & LILAC_TILE_PURE) != 0 && (traits & LILAC_TILE_ELEMENTWISE) != 0 &&
           op->region_count == 0;
}

static uint32_t idle_of_results(const thinning *t, const lilac_tile_op *op) {
    uint32_t idle = t->threads;
    for (uint32_t i = 0; i < op->result_count; i++)
        idle &= t->idle[op->results[i].id];
    return idle;
}

/* The threads that may skip a load; only whole warps are worth it. */
static uint32_t skipped(const thinning *t, const lilac_tile_op *load) {
    uint32_t idle = t->idle[load->results[0].id];
    return lilac_tile_is_tensor(load->results[0].type) && idle >> t->lane_bits != 0 ? idle : 0;
}

static void visit_loop(thinning *t, const lilac_tile_op *op) {
    need(t, lilac_tile_lower_bound(op), 0);
    need(t, lilac_tile_upper_bound(op), 0);
    need(t, lilac_tile_step(op), 0);
    for (uint32_t i = 0; i < op->result_count; i++) {
        alike(t, &op->results[i], lilac_tile_iteration_argument(op, i));
        need(t, lilac_tile_next(op, i), t->idle[op->results[i].id]);
        need(t, lilac_tile_init(op, i), t->idle[op->results[i].id]);
    }
}

static void visit_while(thinning *t, const lilac_tile_op *op) {
    need(t, lilac_tile_while_condition(op), 0);
    for (uint32_t i = 0; i < op->result_count; i++) {
        alike(t, &op->results[i], lilac_tile_passed_argument(op, i));
        need(t, lilac_tile_passed(op, i), t->idle[op->results[i].id]);
    }
    for (uint32_t i = 0; i < lilac_tile_carried_count(op); i++) {
        uint32_t idle = t->idle[lilac_tile_iteration_argument(op, i)->id];
        need(t, lilac_tile_init(op, i), idle);
        need(t, lilac_tile_next(op, i), idle);
    }
}

static void visit_if(thinning *t, const lilac_tile_op *op) {
    need_all(t, op, 0);
    for (uint32_t r = 0; r < op->region_count; r++)
        for (uint32_t i = 0; i < op->result_count; i++)
            need(t, lilac_tile_yielded(op, r, i), t->idle[op->results[i].id]);
}

static void mark(thinning *t, lilac_tile_op *load) {
    uint32_t idle = skipped(t, load);
    if (idle == 0)
        return;
    lilac_tile_attribute attribute = {.kind = LILAC_TILE_ATTR_INTEGER,
                                      .name = t->name,
                                      .type = lilac_tile_scalar(t->module, LILAC_I32),
                                      .integer = idle};
    lilac_tile_set_attribute(t->module, &load->attributes, &attribute);
    t->changed = true;
}

static void visit(thinning *t, lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_TT_STORE:
        need_all(t, op, copies(t, op->operands[0].value->type));
        break;
    case LILAC_TILE_OP_TT_LOAD:
        if (t->marking)
            mark(t, op);
        else
            need_all(t, op, skipped(t, op));
        break;
    case LILAC_TILE_OP_SCF_FOR:
        visit_loop(t, op);
        break;
    case LILAC_TILE_OP_SCF_WHILE:
        visit_while(t, op);
        break;
    case LILAC_TILE_OP_SCF_IF:
        visit_if(t, op);
        break;
    case LILAC_TILE_OP_SCF_YIELD:
    case LILAC_TILE_OP_SCF_CONDITION: /* read by what they end */
        break;
    default:
        need_all(t, op, stays_in_threads(op) ? idle_of_results(t, op) : 0);
        break;
    }
}

static void sweep(thinning *t, const lilac_tile_region *region) {
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->last; op != NULL; op = op->previous) {
            visit(t, op);
            for (uint32_t r = op->region_count; r-- > 0;)
                sweep(t, op->regions[r]);
        }
    }
}

/* ---- the pass --------------------------------------------------------------------------- */

typedef struct survey {
    bool copies; /* a load has them in whole warps */
    bool blocks; /* a region has several blocks, or belongs to no operation known here */
    thinning *t;
} survey;

static void look(void *data, lilac_tile_op *op) {
    survey *s = data;
    if (op->code == LILAC_TILE_OP_TT_LOAD)
        s->copies |= copies(s->t, op->results[0].type) >> s->t->lane_bits != 0;
    for (uint32_t r = 0; r < op->region_count; r++)
        s->blocks |= op->regions[r]->first != NULL && op->regions[r]->first->next != NULL;
}

static void thin(lilac_tile_function *function, const lilac_target *target, bool *changed) {
    thinning t = {.module = function->module,
                  .lane_bits = log2_of(target->arch->warp_size),
                  .threads = target->arch->warp_size * target->num_warps - 1};
    survey s = {.t = &t};
    lilac_tile_walk(function->body, look, &s);
    if (!s.copies || s.blocks || function->body->first->next != NULL)
        return;
    lilac_arena *arena = lilac_arena_create();
    lilac_tile_number(function);
    t.name = lilac_intern_string(function->module->context, "lilac.idle");
    t.idle = lilac_arena_array(arena, uint32_t, function->value_count + 1);
    for (uint32_t i = 0; i < function->value_count; i++)
        t.idle[i] = t.threads;
    do {
        t.changed = false;
        sweep(&t, function->body);
    } while (t.changed);
    t.marking = true;
    sweep(&t, function->body);
    *changed = *changed || t.changed;
    lilac_arena_destroy(arena);
}

bool lilac_engine_eliminate_redundant_loads(lilac_tile_module *module, const lilac_target *target,
                                            bool *changed) {
    *changed = false;
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next)
        if (function->body != NULL)
            thin(function, target, changed);
    return true;
}
