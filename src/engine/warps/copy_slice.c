/* What the copies of a specialised loop need: the operations and the carried values that a producer
 * keeps of `top`, or of its copy.
 *
 * Needed are the copies with their mbarriers, the control flow around them with its bounds and
 * conditions, and whatever these use. Everything else is removed, also values that control flow
 * carries in vain. */
#include "warps/specialise_warps.h"

typedef struct slice {
    const specialised *s;
    lilac_arena *arena;
    lilac_tile_op *top;
    bool *live;               /* by value id */
    lilac_tile_value **stack; /* live values whose operands are not marked yet */
    uint32_t count;
} slice;

/* ---- marking -------------------------------------------------------------------------------- */

static void mark(slice *p, lilac_tile_value *value) {
    if (p->live[value->id] || !lilac_tile_is_inside(value, p->top)) {
        return;
    }
    p->live[value->id] = true;
    p->stack[p->count++] = value;
}

static bool is_effect(const slice *p, const lilac_tile_op *op) {
    return lilac_is_barrier_of(lilac_copy_barrier(op), p->s->full) ||
           (op->code == LILAC_TILE_OP_TTNG_WAIT_BARRIER && p->s->empty != NULL &&
            lilac_is_barrier_of(op->operands[0].value, p->s->empty));
}

static bool keeps(const slice *p, const lilac_tile_op *op) {
    bool kept = is_effect(p, op);
    for (uint32_t r = 0; !kept && r < op->region_count; r++) {
        for (const lilac_tile_block *b = op->regions[r]->first; !kept && b != NULL; b = b->next) {
            for (const lilac_tile_op *inner = b->first; !kept && inner != NULL;
                 inner = inner->next) {
                kept = keeps(p, inner);
            }
        }
    }
    return kept;
}

/* Bounds and conditions. */
static void mark_control(slice *p, const lilac_tile_op *op) {
    const uint32_t count = op->code == LILAC_TILE_OP_SCF_IF    ? 1
                           : op->code == LILAC_TILE_OP_SCF_FOR ? lilac_tile_first_passed(op)
                                                               : 0;
    for (uint32_t i = 0; i < count; i++) {
        mark(p, op->operands[i].value);
    }
    if (op->code == LILAC_TILE_OP_SCF_WHILE) {
        mark(p, lilac_tile_while_condition(op));
    }
}

static void mark_roots(void *data, lilac_tile_op *op) {
    slice *p = data;
    if (op->region_count > 0 && keeps(p, op)) {
        mark_control(p, op);
    }
    for (uint32_t i = 0; is_effect(p, op) && i < op->operand_count; i++) {
        mark(p, op->operands[i].value);
    }
}

static void mark_sources(slice *p, const lilac_tile_op *op, const lilac_tile_value *receiver) {
    for (uint32_t i = 0; i < lilac_tile_phi_count(op); i++) {
        const lilac_tile_phi phi = lilac_tile_phi_get(op, i);
        bool found = false;
        for (uint32_t k = 0; k < phi.receiver_count; k++) {
            found |= phi.receivers[k] == receiver;
        }
        for (uint32_t k = 0; found && k < phi.source_count; k++) {
            mark(p, phi.sources[k]->value);
        }
        for (uint32_t k = 0; found && k < phi.receiver_count; k++) {
            mark(p, phi.receivers[k]);
        }
    }
}

static void mark_all(slice *p) {
    mark_roots(p, p->top);
    for (uint32_t r = 0; r < p->top->region_count; r++) {
        lilac_tile_walk(p->top->regions[r], mark_roots, p);
    }
    while (p->count > 0) {
        const lilac_tile_value *value = p->stack[--p->count];
        if (value->op == NULL) {
            mark_sources(p, value->block->parent->parent, value);
        } else if (value->op->region_count > 0) {
            mark_control(p, value->op);
            mark_sources(p, value->op, value);
        } else {
            for (uint32_t i = 0; i < value->op->operand_count; i++) {
                mark(p, value->op->operands[i].value);
            }
        }
    }
}

/* ---- removal of the rest -------------------------------------------------------------------- */

static bool is_live(const slice *p, const lilac_tile_op *op) {
    bool live =
        keeps(p, op) || (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_TERMINATOR) != 0;
    for (uint32_t i = 0; i < op->result_count; i++) {
        live |= p->live[op->results[i].id];
    }
    return live;
}

static bool is_dead_phi(const slice *p, const lilac_tile_phi *phi) {
    for (uint32_t k = 0; k < phi->receiver_count; k++) {
        if (p->live[phi->receivers[k]->id]) {
            return false;
        }
    }
    return true;
}

static lilac_tile_value *put_poison(const slice *p, lilac_tile_op *place,
                                    const lilac_tile_type *type) {
    const lilac_emitter e = {p->s->module, place};
    return lilac_emit(&e, LILAC_TILE_OP_UB_POISON, type, 0, NULL)->results;
}

/* Control flow that is kept passes poison on where it passes values on in vain. */
static void poison_phis(void *data, lilac_tile_op *op) {
    slice *p = data;
    for (uint32_t i = 0; is_live(p, op) && i < lilac_tile_phi_count(op); i++) {
        const lilac_tile_phi phi = lilac_tile_phi_get(op, i);
        for (uint32_t k = 0; is_dead_phi(p, &phi) && k < phi.source_count; k++) {
            lilac_tile_use *source = phi.sources[k];
            lilac_tile_set_operand(source->op, source->index,
                                   put_poison(p, source->op, source->value->type));
        }
    }
}

static void remove_dead_phis(slice *p, lilac_tile_op *op) {
    const uint32_t count = lilac_tile_phi_count(op);
    bool *removed = lilac_arena_array(p->arena, bool, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        const lilac_tile_phi phi = lilac_tile_phi_get(op, i);
        removed[i] = is_dead_phi(p, &phi);
    }
    const char *why = lilac_tile_remove_phis(p->s->module, op, removed);
    (void)why; /* a value that is only passed on changes nothing */
}

/* Poison is made after the values are numbered: it has no id. */
static bool is_poison(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_UB_POISON;
}

static void remove_dead(slice *p, lilac_tile_region *region) {
    for (lilac_tile_op *op = region->first != NULL ? region->first->last : NULL, *previous;
         op != NULL; op = previous) {
        previous = op->previous;
        if (is_poison(op) ? false : !is_live(p, op)) {
            lilac_tile_remove(op);
            continue;
        }
        for (uint32_t r = 0; r < op->region_count; r++) {
            remove_dead(p, op->regions[r]);
        }
    }
}

static void remove_phis(slice *p, lilac_tile_region *region) {
    for (lilac_tile_op *op = region->first != NULL ? region->first->first : NULL; op != NULL;
         op = op->next) {
        for (uint32_t r = 0; r < op->region_count; r++) {
            remove_phis(p, op->regions[r]);
        }
        if (op->region_count > 0) {
            remove_dead_phis(p, op);
        }
    }
}

static void remove_poison(lilac_tile_region *region) {
    for (lilac_tile_op *op = region->first != NULL ? region->first->first : NULL, *next; op != NULL;
         op = next) {
        next = op->next;
        for (uint32_t r = 0; r < op->region_count; r++) {
            remove_poison(op->regions[r]);
        }
        if (is_poison(op) && op->results[0].uses == NULL) {
            lilac_tile_remove(op);
        }
    }
}

static slice mark_slice(const specialised *s, lilac_tile_op *top) {
    slice p = {.s = s, .top = top, .arena = lilac_arena_create()};
    lilac_tile_number(s->function);
    p.live = lilac_arena_array(p.arena, bool, s->function->value_count + 1);
    p.stack = lilac_arena_array(p.arena, lilac_tile_value *, s->function->value_count + 1);
    mark_all(&p);
    return p;
}

void lilac_copy_slice_prune(const specialised *s, lilac_tile_op *top) {
    slice p = mark_slice(s, top);
    lilac_tile_op *before = top->previous;
    poison_phis(&p, top);
    for (uint32_t r = 0; r < top->region_count; r++) {
        lilac_tile_walk(top->regions[r], poison_phis, &p);
    }
    for (uint32_t r = 0; r < top->region_count; r++) {
        remove_dead(&p, top->regions[r]);
    }
    for (uint32_t r = 0; r < top->region_count; r++) {
        remove_phis(&p, top->regions[r]);
    }
    remove_dead_phis(&p, top);
    for (uint32_t r = 0; r < top->region_count; r++) {
        remove_poison(top->regions[r]);
    }
    for (lilac_tile_op *op = top->previous, *previous; op != before; op = previous) {
        previous = op->previous; /* the poison of the inits */
        if (is_poison(op) && op->results[0].uses == NULL) {
            lilac_tile_remove(op);
        }
    }
    lilac_arena_destroy(p.arena);
}

/* ---- whether a producer can compute it ------------------------------------------------------ */

typedef struct checking {
    const slice *p;
    uint64_t loaded; /* parameters from which it loads */
    bool good;
} checking;

/* A scalar that is loaded, as the number of the next block. */
static bool is_scalar_load(checking *c, const lilac_tile_op *op) {
    const lilac_tile_value *root =
        op->code == LILAC_TILE_OP_TT_LOAD ? lilac_engine_pointer_root(op->operands[0].value) : NULL;
    if (root == NULL || root->index >= 64 ||
        lilac_tile_find_integer(&op->attributes, "isVolatile", 0) != 0) {
        return false;
    }
    c->loaded |= UINT64_C(1) << root->index;
    return true;
}

/* Is what the copies need computed from scalars, without effects? */
static void check(void *data, lilac_tile_op *op) {
    checking *c = data;
    bool live = false;
    for (uint32_t i = 0; i < op->result_count; i++) {
        live |= c->p->live[op->results[i].id];
        c->good &= !c->p->live[op->results[i].id] || !lilac_tile_is_tensor(op->results[i].type);
    }
    if (!live || op->region_count > 0 || op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC) {
        return;
    }
    c->good &=
        (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) != 0 || is_scalar_load(c, op);
    for (uint32_t i = 0; i < op->operand_count; i++) {
        c->good &= !lilac_tile_is_tensor(op->operands[i].value->type);
    }
}

bool lilac_copy_slice_is_possible(const specialised *s) {
    slice p = mark_slice(s, s->top);
    checking c = {.p = &p, .good = true};
    for (uint32_t r = 0; r < s->top->region_count; r++) {
        lilac_tile_walk(s->top->regions[r], check, &c);
    }
    lilac_arena_destroy(p.arena);
    return c.good && (c.loaded == 0 || lilac_engine_is_only_read(s->function, c.loaded));
}
