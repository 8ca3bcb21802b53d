/* The producer of a specialised loop: a partition that starts the copies and computes nothing else.
 *
 *     top:                                     partition0(…) num_warps(1) {
 *     scf.for %t = … {                           scf.for %t = … iter_args(%slot, %parity) {
 *       expect %full[0], bytes, %p                 if %p { ttng.wait_barrier %empty[%slot], %parity
 *       copies to %ring[0]                                expect %full[%slot], bytes
 *       %x = scf.for %k = … {             →               copies to %ring[%slot]  }
 *         products of %ring[…]                     scf.for %k = … {
 *         expect %full[…], bytes, %q                 if %q { the same }
 *         copies to %ring[…]                       }
 *       }                                        }
 *       epilogue of %x                         }
 *     }
 *
 * The partition is a copy of `top`. Each group of copies, which one mbarrier completes, becomes a
 * conditional that first waits until all warps have read the buffer. Groups use the buffers in
 * turn, so the position in the ring is carried by all control flow. What no copy needs is removed:
 * operations that the copies, the bounds and the conditions do not use, and values that control
 * flow carries in vain.
 *
 * The partition receives what it uses from outside as captures. Constants and descriptors in
 * scratch memory are made again: each warp acquires a tensor map itself. */
#include "specialise_warps.h"

enum { MOST_GROUP = SPECIALISED_RINGS, PRODUCER_WARPS = 1 };

typedef struct producer {
    const specialised *s;
    lilac_arena *arena;
    lilac_tile_op *top, *outer, *guard, *inner; /* of the copy */
    bool *live;                                 /* by value id */
    lilac_tile_value **stack;
    uint32_t count, capacity;
} producer;

static lilac_tile_value *i32(const lilac_emitter *e, int64_t value) {
    return lilac_emit_integer(e, lilac_tile_scalar(e->module, LILAC_I32), value);
}

ring_position lilac_ring_advance(const lilac_emitter *e, ring_position at, uint32_t buffers) {
    lilac_tile_value *one = i32(e, 1);
    lilac_tile_value *more = lilac_emit_binary(e, LILAC_TILE_OP_ARITH_ADDI, at.slot, one);
    lilac_tile_value *wraps = lilac_emit_compare(e, "eq", more, i32(e, buffers));
    lilac_tile_value *other = lilac_emit_binary(e, LILAC_TILE_OP_ARITH_XORI, at.phase, one);
    return (ring_position){lilac_emit_select(e, wraps, i32(e, 0), more),
                           lilac_emit_select(e, wraps, other, at.phase)};
}

/* ---- groups of copies ----------------------------------------------------------------------- */

/* A tensor copy: descriptor coordinates… barrier memory predicate. */
static lilac_tile_value *memory_of(const lilac_tile_op *copy) {
    return copy->operands[copy->operand_count - 2].value;
}

bool lilac_is_barrier_of(const lilac_tile_value *barrier, const lilac_tile_value *barriers) {
    return barrier != NULL && barrier->op != NULL &&
           barrier->op->code == LILAC_TILE_OP_TTG_MEMDESC_INDEX &&
           barrier->op->operands[0].value == barriers;
}

lilac_tile_value *lilac_copy_barrier(const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_TTNG_BARRIER_EXPECT:
        return op->operands[0].value;
    case LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL:
        return op->operands[op->operand_count - 3].value;
    default:
        return NULL;
    }
}

/* An scf.if in front of `place` with these results, whose regions end in yields of `otherwise`. */
static lilac_tile_op *put_conditional(const producer *p, lilac_tile_op *place,
                                      lilac_tile_value *condition, ring_position otherwise) {
    lilac_tile_module *module = p->s->module;
    const lilac_tile_type *type = lilac_tile_scalar(module, LILAC_I32), *types[2] = {type, type};
    lilac_tile_op *branch = lilac_tile_op_create(module, LILAC_TILE_OP_SCF_IF, 1, &condition, 2,
                                                 types, 2, place->location);
    for (uint32_t r = 0; r < 2; r++) {
        lilac_tile_block *block = lilac_tile_block_create(module, branch->regions[r]);
        lilac_tile_append(
            block, lilac_tile_op_create(module, LILAC_TILE_OP_SCF_YIELD, 2,
                                        (lilac_tile_value *[]){otherwise.slot, otherwise.phase}, 0,
                                        NULL, 0, place->location));
    }
    lilac_tile_insert_before(place, branch);
    return branch;
}

/* The copy again, to the buffer of the slot. */
static void put_copy(const producer *p, const lilac_emitter *e, const lilac_tile_op *copy,
                     lilac_tile_value *slot, lilac_tile_value *barrier,
                     lilac_tile_value *predicate) {
    const lilac_tile_op *index = memory_of(copy)->op;
    lilac_tile_value *ring[2] = {index->operands[0].value, slot};
    lilac_tile_value *operands[LILAC_MAX_RANK + 4];
    const uint32_t n = copy->operand_count;
    for (uint32_t i = 0; i < n; i++) {
        operands[i] = copy->operands[i].value;
    }
    (void)p;
    operands[n - 3] = barrier;
    operands[n - 2] =
        lilac_emit(e, LILAC_TILE_OP_TTG_MEMDESC_INDEX, index->results[0].type, 2, ring)->results;
    operands[n - 1] = predicate;
    (void)lilac_emit(e, LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL, NULL, n, operands);
}

/* Replaces the announcement and its copies. Returns the position behind them. */
static ring_position replace_group(const producer *p, lilac_tile_op *expect, ring_position at) {
    lilac_tile_op *copies[MOST_GROUP], *last = expect;
    uint32_t count = 0;
    for (lilac_tile_op *op = expect->next; op != NULL; op = op->next) {
        if (lilac_copy_barrier(op) == expect->operands[0].value && count < MOST_GROUP) {
            copies[count++] = last = op;
        }
    }
    lilac_tile_op *branch = put_conditional(p, last->next, expect->operands[1].value, at);
    lilac_tile_op *end = branch->regions[0]->first->last;
    const lilac_emitter e = {p->s->module, end};
    lilac_tile_value *yes = lilac_emit_integer(&e, lilac_tile_scalar(e.module, LILAC_I1), 1);
    lilac_box_wait(&e, lilac_box_barrier(&e, p->s->empty, at.slot), at.phase);
    lilac_tile_value *full = lilac_box_barrier(&e, p->s->full, at.slot);
    lilac_box_expect(&e, full, (uint64_t)lilac_tile_find_integer(&expect->attributes, "size", 0),
                     yes);
    for (uint32_t i = 0; i < count; i++) {
        put_copy(p, &e, copies[i], at.slot, full, yes);
        lilac_tile_remove(copies[i]);
    }
    lilac_tile_remove(expect);
    const ring_position next = lilac_ring_advance(&e, at, p->s->buffers);
    lilac_tile_set_operand(end, 0, next.slot);
    lilac_tile_set_operand(end, 1, next.phase);
    return (ring_position){&branch->results[0], &branch->results[1]};
}

/* The groups of a block; the loop in it, too. */
static ring_position replace_groups(const producer *p, lilac_tile_block *block, ring_position at) {
    for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
        next = op->next;
        if (op->code == LILAC_TILE_OP_TTNG_BARRIER_EXPECT &&
            lilac_is_barrier_of(op->operands[0].value, p->s->full)) {
            lilac_tile_op *before = op->previous;
            at = replace_group(p, op, at);
            next = before != NULL ? before->next : block->first;
        } else if (op == p->inner && block != op->regions[0]->first) {
            const uint32_t first = lilac_tile_carried_count(op);
            lilac_tile_add_carried(p->s->module, op, 2,
                                   (lilac_tile_value *const[]){at.slot, at.phase});
            const ring_position inside = {lilac_tile_iteration_argument(op, first),
                                          lilac_tile_iteration_argument(op, first + 1)};
            const ring_position behind = replace_groups(p, op->regions[0]->first, inside);
            lilac_tile_set_next(op, first, behind.slot);
            lilac_tile_set_next(op, first + 1, behind.phase);
            at = (ring_position){&op->results[first], &op->results[first + 1]};
        }
    }
    return at;
}

static void carry_position(const producer *p) {
    const lilac_emitter e = {p->s->module, p->top};
    ring_position at = {i32(&e, 0), i32(&e, 1)}; /* a wait for parity 1 passes at first */
    uint32_t first = 0;
    if (p->outer != NULL) {
        first = lilac_tile_carried_count(p->outer);
        lilac_tile_add_carried(p->s->module, p->outer, 2,
                               (lilac_tile_value *const[]){at.slot, at.phase});
        at = (ring_position){lilac_tile_iteration_argument(p->outer, first),
                             lilac_tile_iteration_argument(p->outer, first + 1)};
    }
    if (p->guard == NULL) {
        at = replace_groups(p, p->inner->parent, at);
    } else {
        const ring_position behind = replace_groups(p, p->inner->parent, at);
        lilac_tile_add_if_results(p->s->module, p->guard, 2,
                                  (lilac_tile_value *const[]){behind.slot, behind.phase},
                                  (lilac_tile_value *const[]){at.slot, at.phase});
        const uint32_t n = p->guard->result_count;
        at = (ring_position){&p->guard->results[n - 2], &p->guard->results[n - 1]};
    }
    if (p->outer != NULL) {
        lilac_tile_set_next(p->outer, first, at.slot);
        lilac_tile_set_next(p->outer, first + 1, at.phase);
    }
}

/* ---- what the copies need ------------------------------------------------------------------- */

static void mark(producer *p, lilac_tile_value *value) {
    if (p->live[value->id] || !lilac_tile_is_inside(value, p->top)) {
        return;
    }
    p->live[value->id] = true;
    if (p->count == p->capacity) {
        p->capacity = 2 * p->capacity + 64;
        lilac_tile_value **grown = lilac_arena_array(p->arena, lilac_tile_value *, p->capacity);
        for (uint32_t i = 0; i < p->count; i++) {
            grown[i] = p->stack[i];
        }
        p->stack = grown;
    }
    p->stack[p->count++] = value;
}

static bool is_effect(const producer *p, const lilac_tile_op *op) {
    return lilac_is_barrier_of(lilac_copy_barrier(op), p->s->full) ||
           (op->code == LILAC_TILE_OP_TTNG_WAIT_BARRIER && p->s->empty != NULL &&
            lilac_is_barrier_of(op->operands[0].value, p->s->empty));
}

static bool keeps(const producer *p, const lilac_tile_op *op) {
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
static void mark_control(producer *p, const lilac_tile_op *op) {
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
    producer *p = data;
    if (op->region_count > 0 && keeps(p, op)) {
        mark_control(p, op);
    }
    for (uint32_t i = 0; is_effect(p, op) && i < op->operand_count; i++) {
        mark(p, op->operands[i].value);
    }
}

static void mark_sources(producer *p, const lilac_tile_op *op, const lilac_tile_value *receiver) {
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

static void mark_all(producer *p) {
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

static bool is_live(const producer *p, const lilac_tile_op *op) {
    bool live =
        keeps(p, op) || (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_TERMINATOR) != 0;
    for (uint32_t i = 0; i < op->result_count; i++) {
        live |= p->live[op->results[i].id];
    }
    return live;
}

static bool is_dead_phi(const producer *p, const lilac_tile_phi *phi) {
    for (uint32_t k = 0; k < phi->receiver_count; k++) {
        if (p->live[phi->receivers[k]->id]) {
            return false;
        }
    }
    return true;
}

static lilac_tile_value *put_poison(const producer *p, lilac_tile_op *place,
                                    const lilac_tile_type *type) {
    const lilac_emitter e = {p->s->module, place};
    return lilac_emit(&e, LILAC_TILE_OP_UB_POISON, type, 0, NULL)->results;
}

/* Control flow that is kept passes poison on where it passes values on in vain. */
static void poison_phis(void *data, lilac_tile_op *op) {
    producer *p = data;
    for (uint32_t i = 0; is_live(p, op) && i < lilac_tile_phi_count(op); i++) {
        const lilac_tile_phi phi = lilac_tile_phi_get(op, i);
        for (uint32_t k = 0; is_dead_phi(p, &phi) && k < phi.source_count; k++) {
            lilac_tile_use *source = phi.sources[k];
            lilac_tile_set_operand(source->op, source->index,
                                   put_poison(p, source->op, source->value->type));
        }
    }
}

static void remove_dead_phis(producer *p, lilac_tile_op *op) {
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

static void remove_dead(producer *p, lilac_tile_region *region) {
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

static void remove_phis(producer *p, lilac_tile_region *region) {
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

static void prune(producer *p) {
    lilac_tile_number(p->s->function);
    p->live = lilac_arena_array(p->arena, bool, p->s->function->value_count + 1);
    mark_all(p);
    lilac_tile_op *before = p->top->previous;
    poison_phis(p, p->top);
    for (uint32_t r = 0; r < p->top->region_count; r++) {
        lilac_tile_walk(p->top->regions[r], poison_phis, p);
    }
    for (uint32_t r = 0; r < p->top->region_count; r++) {
        remove_dead(p, p->top->regions[r]);
    }
    for (uint32_t r = 0; r < p->top->region_count; r++) {
        remove_phis(p, p->top->regions[r]);
    }
    remove_dead_phis(p, p->top);
    for (uint32_t r = 0; r < p->top->region_count; r++) {
        remove_poison(p->top->regions[r]);
    }
    for (lilac_tile_op *op = p->top->previous, *previous; op != before; op = previous) {
        previous = op->previous; /* the poison of the inits */
        if (is_poison(op) && op->results[0].uses == NULL) {
            lilac_tile_remove(op);
        }
    }
}

/* ---- captures ------------------------------------------------------------------------------- */

typedef struct capturing {
    const producer *p;
    lilac_tile_value **outside;
    uint32_t count;
} capturing;

static void add_capture(capturing *c, lilac_tile_value *value) {
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->outside[i] == value) {
            return;
        }
    }
    c->outside[c->count++] = value;
}

static void collect(void *data, lilac_tile_op *op) {
    capturing *c = data;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (!lilac_tile_is_inside(op->operands[i].value, c->p->top)) {
            add_capture(c, op->operands[i].value);
        }
    }
}

typedef struct replacing {
    lilac_tile_value *from, *to;
} replacing;

static void replace(void *data, lilac_tile_op *op) {
    const replacing *r = data;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (op->operands[i].value == r->from) {
            lilac_tile_set_operand(op, i, r->to);
        }
    }
}

static bool is_map(const lilac_tile_value *value) {
    return value->op != NULL && value->op->code == LILAC_TILE_OP_TTNG_REINTERPRET_TENSOR_DESCRIPTOR;
}

static bool is_constant(const lilac_tile_value *value) {
    return value->op != NULL && value->op->code == LILAC_TILE_OP_ARITH_CONSTANT;
}

/* What the partition uses in place of the outside value. */
static lilac_tile_value *inside(const lilac_emitter *e, lilac_tile_value *outside,
                                lilac_tile_value *argument) {
    if (is_constant(outside)) {
        lilac_tile_op *copy = lilac_tile_clone(e->module, outside->op);
        lilac_tile_insert_before(e->place, copy);
        return copy->results;
    }
    if (is_map(outside)) {
        (void)lilac_emit(e, LILAC_TILE_OP_TTNG_TENSORMAP_FENCEPROXY_ACQUIRE, NULL, 1, &argument);
        return lilac_emit_unary(e, LILAC_TILE_OP_TTNG_REINTERPRET_TENSOR_DESCRIPTOR, outside->type,
                                argument);
    }
    return argument;
}

/* Moves the copy into the partition of a new ttg.warp_specialize in its place. */
static lilac_tile_op *enclose(producer *p) {
    lilac_tile_module *module = p->s->module;
    const uint32_t most = p->s->function->value_count + 1;
    capturing c = {.p = p, .outside = lilac_arena_array(p->arena, lilac_tile_value *, most)};
    collect(&c, p->top);
    for (uint32_t r = 0; r < p->top->region_count; r++) {
        lilac_tile_walk(p->top->regions[r], collect, &c);
    }
    lilac_tile_value **operands = lilac_arena_array(p->arena, lilac_tile_value *, most);
    uint32_t count = 0;
    for (uint32_t i = 0; i < c.count; i++) {
        if (!is_constant(c.outside[i])) {
            operands[count++] =
                is_map(c.outside[i]) ? c.outside[i]->op->operands[0].value : c.outside[i];
        }
    }
    const uint32_t warps = PRODUCER_WARPS, registers = PRODUCER_REGISTERS;
    lilac_tile_op *ws = lilac_tile_create_partitions(
        module, count, operands, 1, &warps,
        p->s->target->num_warps >= WARPS_WITH_REGISTERS ? &registers : NULL, p->top->location);
    lilac_tile_insert_before(p->top, ws);
    lilac_tile_detach(p->top);
    lilac_tile_block *block = ws->regions[1]->first;
    lilac_tile_insert_before(block->last, p->top);
    const lilac_emitter e = {module, p->top};
    for (uint32_t i = 0, next = 0; i < c.count; i++) {
        lilac_tile_value *argument = is_constant(c.outside[i]) ? NULL : block->arguments[next++];
        replacing r = {c.outside[i], inside(&e, c.outside[i], argument)};
        replace(&r, p->top);
        for (uint32_t k = 0; k < p->top->region_count; k++) {
            lilac_tile_walk(p->top->regions[k], replace, &r);
        }
    }
    return ws;
}

/* ---- the functions -------------------------------------------------------------------------- */

typedef struct checking {
    const producer *p;
    bool good;
} checking;

/* Is what the copies need computed from scalars, without effects? */
static void check_slice(void *data, lilac_tile_op *op) {
    checking *c = data;
    bool live = false;
    for (uint32_t i = 0; i < op->result_count; i++) {
        live |= c->p->live[op->results[i].id];
        c->good &= !c->p->live[op->results[i].id] || !lilac_tile_is_tensor(op->results[i].type);
    }
    if (!live || op->region_count > 0 || op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC) {
        return;
    }
    c->good &= (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) != 0;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        c->good &= !lilac_tile_is_tensor(op->operands[i].value->type);
    }
}

bool lilac_specialise_is_possible(const specialised *s) {
    producer p = {.s = s, .top = s->top, .arena = lilac_arena_create()};
    lilac_tile_number(s->function);
    p.live = lilac_arena_array(p.arena, bool, s->function->value_count + 1);
    mark_all(&p);
    checking c = {&p, true};
    for (uint32_t r = 0; r < s->top->region_count; r++) {
        lilac_tile_walk(s->top->regions[r], check_slice, &c);
    }
    lilac_arena_destroy(p.arena);
    return c.good;
}

lilac_tile_op *lilac_specialise_producer(const specialised *s) {
    producer p = {.s = s, .arena = lilac_arena_create()};
    lilac_tile_mapping *mapping = lilac_tile_mapping_create();
    p.top = lilac_tile_clone_mapped(s->module, s->top, mapping);
    lilac_tile_insert_before(s->top, p.top);
    const lilac_tile_value *counter =
        lilac_tile_mapped(mapping, lilac_tile_induction_variable(s->inner));
    p.inner = counter->block->parent->parent;
    p.guard = s->guard != NULL ? p.inner->parent->parent->parent : NULL;
    p.outer = s->outer != NULL ? p.top : NULL;
    lilac_tile_mapping_destroy(mapping);
    carry_position(&p);
    prune(&p);
    lilac_tile_op *ws = enclose(&p);
    lilac_arena_destroy(p.arena);
    return ws;
}
