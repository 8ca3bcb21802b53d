/* eliminate_redundant_loads: a load of a replicated tensor is executed by one of the warps that
 * hold a copy, if no other warp needs its copy.
 *
 * A layout may hold an element in several threads: the bits of the thread's index whose columns are
 * free. A mask of such bits describes the threads that need a value: a thread whose index has a
 * bit of the mask set does not need it.
 *
 *     store                       the mask of its layout's free bits: only the first copy is stored
 *     element-wise, shape         an operand is needed in the threads that need a result
 *     branches, loops             a yielded or carried value is needed where its receivers are
 *     load                        its pointers are needed in the threads that execute it
 *     other operations            the mask is empty: conversions, reductions … may read any copy
 *
 * The masks start full and lose bits until a fixpoint. A load whose mask covers whole warps then
 * gets the attribute lilac.idle, and these warps skip it:
 *
 *     %v = tt.load %p                         16 bytes in each of 64 threads, and copies in 64 more
 *     tt.store %q, %v                         the lower half stores
 *
 *  →  %v = tt.load %p {lilac.idle = 64 : i32}     the lower half loads
 *     tt.store %q, %v
 *
 * Copies in the lanes of one warp do not count: the hardware merges their accesses. Neither do
 * loads of scalars, which all threads need.
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

typedef struct elimination {
    lilac_tile_module *module;
    uint32_t lane_bits;
    uint32_t threads; /* all bits of the thread's index */
    uint32_t *idle;   /* by value id: threads with one of these bits set do not need the value */
    copies_of known[KNOWN_LAYOUTS];
    lilac_name name;
    bool changed;
    bool marking; /* the masks are final: the loads get their attributes */
} elimination;

/* The replicated bits of the thread's index: lanes, then warps. */
static uint32_t find_copies(const lilac_layout *layout) {
    uint32_t thread_bits = 0;
    for (uint32_t i = 1; i < layout->in_count && i < 3; i++) {
        thread_bits += layout->in[i].bits;
    }
    return (uint32_t)(lilac_layout_free_mask(layout) >> layout->in[0].bits & low_bits(thread_bits));
}

static uint32_t copies(elimination *t, const lilac_tile_type *type) {
    const lilac_layout *layout = type->layout;
    copies_of *known = &t->known[((uintptr_t)layout >> 6) % KNOWN_LAYOUTS];
    if (layout == NULL || !lilac_tile_is_tensor(type)) {
        return 0;
    }
    if (known->layout != layout) {
        *known = (copies_of){layout, find_copies(layout)};
    }
    return known->mask;
}

/* ---- needs ------------------------------------------------------------------------------ */

/* Removes the bits from the mask of a value that are not in `idle`. */
static void need(elimination *t, const lilac_tile_value *value, uint32_t idle) {
    uint32_t left = t->idle[value->id] & idle;
    if (left == t->idle[value->id]) {
        return;
    }
    t->idle[value->id] = left;
    t->changed = true;
}

static void need_all(elimination *t, const lilac_tile_op *op, uint32_t idle) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
        need(t, op->operands[i].value, idle);
    }
}

/* The iteration argument and the result of a carried value are needed in the same threads. */
static void need_both(elimination *t, const lilac_tile_value *a, const lilac_tile_value *b) {
    need(t, a, t->idle[b->id]);
    need(t, b, t->idle[a->id]);
}

/* Does each thread compute its elements of the results from its own elements of the operands? A
 * reshape may have any layout (`allow_reorder`). */
static bool stays_in_threads(const lilac_tile_op *op) {
    uint32_t traits = lilac_tile_op_info_get(op->code)->traits;
    if (traits & LILAC_TILE_SHAPE) {
        return op->code != LILAC_TILE_OP_TT_RESHAPE;
    }
    return (traits & LILAC_TILE_PURE) != 0 && (traits & LILAC_TILE_ELEMENTWISE) != 0 &&
           op->region_count == 0;
}

static uint32_t idle_of_results(const elimination *t, const lilac_tile_op *op) {
    uint32_t idle = t->threads;
    for (uint32_t i = 0; i < op->result_count; i++) {
        idle &= t->idle[op->results[i].id];
    }
    return idle;
}

/* The mask of a load if it covers whole warps; otherwise 0. */
static uint32_t skipped(const elimination *t, const lilac_tile_op *load) {
    uint32_t idle = t->idle[load->results[0].id];
    return lilac_tile_is_tensor(load->results[0].type) && idle >> t->lane_bits != 0 ? idle : 0;
}

static void visit_loop(elimination *t, const lilac_tile_op *op) {
    need(t, lilac_tile_lower_bound(op), 0);
    need(t, lilac_tile_upper_bound(op), 0);
    need(t, lilac_tile_step(op), 0);
    for (uint32_t i = 0; i < op->result_count; i++) {
        need_both(t, &op->results[i], lilac_tile_iteration_argument(op, i));
        need(t, lilac_tile_next(op, i), t->idle[op->results[i].id]);
        need(t, lilac_tile_init(op, i), t->idle[op->results[i].id]);
    }
}

static void visit_while(elimination *t, const lilac_tile_op *op) {
    need(t, lilac_tile_while_condition(op), 0);
    for (uint32_t i = 0; i < op->result_count; i++) {
        need_both(t, &op->results[i], lilac_tile_passed_argument(op, i));
        need(t, lilac_tile_passed(op, i), t->idle[op->results[i].id]);
    }
    for (uint32_t i = 0; i < lilac_tile_carried_count(op); i++) {
        uint32_t idle = t->idle[lilac_tile_iteration_argument(op, i)->id];
        need(t, lilac_tile_init(op, i), idle);
        need(t, lilac_tile_next(op, i), idle);
    }
}

static void visit_if(elimination *t, const lilac_tile_op *op) {
    need_all(t, op, 0);
    for (uint32_t r = 0; r < op->region_count; r++) {
        for (uint32_t i = 0; i < op->result_count; i++) {
            need(t, lilac_tile_yielded(op, r, i), t->idle[op->results[i].id]);
        }
    }
}

static void mark(elimination *t, lilac_tile_op *load) {
    uint32_t idle = skipped(t, load);
    if (idle == 0) {
        return;
    }
    lilac_tile_attribute attribute = {.kind = LILAC_TILE_ATTR_INTEGER,
                                      .name = t->name,
                                      .type = lilac_tile_scalar(t->module, LILAC_I32),
                                      .integer = idle};
    lilac_tile_set_attribute(t->module, &load->attributes, &attribute);
    t->changed = true;
}

static void visit(elimination *t, lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_TT_STORE:
        need_all(t, op, copies(t, op->operands[0].value->type));
        break;
    case LILAC_TILE_OP_TT_LOAD:
        if (t->marking) {
            mark(t, op);
        } else {
            need_all(t, op, skipped(t, op));
        }
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
    case LILAC_TILE_OP_SCF_CONDITION: /* visited with the parent operation */
        break;
    default:
        need_all(t, op, stays_in_threads(op) ? idle_of_results(t, op) : 0);
        break;
    }
}

static void sweep(elimination *t, const lilac_tile_region *region) {
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->last; op != NULL; op = op->previous) {
            visit(t, op);
            for (uint32_t r = op->region_count; r-- > 0;) {
                sweep(t, op->regions[r]);
            }
        }
    }
}

/* ---- the pass --------------------------------------------------------------------------- */

typedef struct survey {
    bool copies; /* the layout of a load replicates elements in whole warps */
    bool blocks; /* a region has several blocks */
    elimination *t;
} survey;

static void look(void *data, lilac_tile_op *op) {
    survey *s = data;
    if (op->code == LILAC_TILE_OP_TT_LOAD) {
        s->copies |= copies(s->t, op->results[0].type) >> s->t->lane_bits != 0;
    }
    for (uint32_t r = 0; r < op->region_count; r++) {
        s->blocks |= op->regions[r]->first != NULL && op->regions[r]->first->next != NULL;
    }
}

static void eliminate(lilac_tile_function *function, const lilac_target *target, bool *changed) {
    elimination t = {.module = function->module,
                     .lane_bits = log2_of(target->arch->warp_size),
                     .threads = target->arch->warp_size * target->num_warps - 1};
    survey s = {.t = &t};
    lilac_tile_walk(function->body, look, &s);
    if (!s.copies || s.blocks || function->body->first->next != NULL) {
        return;
    }
    lilac_arena *arena = lilac_arena_create();
    lilac_tile_number(function);
    t.name = lilac_intern_string(function->module->context, "lilac.idle");
    t.idle = lilac_arena_array(arena, uint32_t, function->value_count + 1);
    for (uint32_t i = 0; i < function->value_count; i++) {
        t.idle[i] = t.threads;
    }
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
         function = function->next) {
        if (function->body != NULL) {
            eliminate(function, target, changed);
        }
    }
    return true;
}
