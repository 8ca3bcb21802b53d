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
 * turn, so the position in the ring is carried by all control flow. What no copy needs is removed
 * (copy_slice.c).
 *
 * The partition receives what it uses from outside as captures. Constants and descriptors in
 * scratch memory are made again: each warp acquires a tensor map itself. */
#include "warps/specialise_warps.h"

enum { MOST_GROUP = SPECIALISED_RINGS, PRODUCER_WARPS = 1 };

typedef struct producer {
    const specialised *s;
    lilac_arena *arena;
    lilac_tile_op *top, *outer, *guard, *inner; /* of the copy */
} producer;

/* The buffer that comes next, and the parity of the phase of its mbarrier that ends before it is
 * used. */
typedef struct ring_position {
    lilac_tile_value *slot, *phase;
} ring_position;

static lilac_tile_value *i32(const lilac_emitter *e, int64_t value) {
    return lilac_emit_integer(e, lilac_tile_scalar(e->module, LILAC_I32), value);
}

/* The position behind this one. In the first round nothing is awaited in front of the full buffer: the
 * phases begin there, or where the ring begins if all buffers are empty. */
static ring_position advance(const specialised *s, const lilac_emitter *e, ring_position at) {
    lilac_tile_value *one = i32(e, 1);
    lilac_tile_value *more = lilac_emit_binary(e, LILAC_TILE_OP_ARITH_ADDI, at.slot, one);
    lilac_tile_value *wraps = lilac_emit_compare(e, "eq", more, i32(e, s->buffers));
    lilac_tile_value *begins =
        s->full_buffer == 0 ? wraps : lilac_emit_compare(e, "eq", more, i32(e, s->full_buffer));
    lilac_tile_value *other = lilac_emit_binary(e, LILAC_TILE_OP_ARITH_XORI, at.phase, one);
    return (ring_position){lilac_emit_select(e, wraps, i32(e, 0), more),
                           lilac_emit_select(e, begins, other, at.phase)};
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
static void put_copy(const lilac_emitter *e, const lilac_tile_op *copy, lilac_tile_value *slot,
                     lilac_tile_value *barrier, lilac_tile_value *predicate) {
    const lilac_tile_op *index = memory_of(copy)->op;
    lilac_tile_value *ring[2] = {index->operands[0].value, slot};
    lilac_tile_value *operands[LILAC_MAX_RANK + 4];
    const uint32_t n = copy->operand_count;
    for (uint32_t i = 0; i < n; i++) {
        operands[i] = copy->operands[i].value;
    }
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
    (void)lilac_box_expect(&e, full,
                           (uint64_t)lilac_tile_find_integer(&expect->attributes, "size", 0), yes);
    for (uint32_t i = 0; i < count; i++) {
        put_copy(&e, copies[i], at.slot, full, yes);
        lilac_tile_remove(copies[i]);
    }
    lilac_tile_remove(expect);
    const ring_position next = advance(p->s, &e, at);
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
    /* A wait for parity 1 passes at first. */
    ring_position at = {i32(&e, 0), i32(&e, 1)};
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
    const uint32_t warps = PRODUCER_WARPS, registers = p->s->registers;
    lilac_tile_op *ws = lilac_tile_create_partitions(
        module, count, operands, 1, &warps, registers > 0 ? &registers : NULL, p->top->location);
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

/* ---- the function --------------------------------------------------------------------------- */

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
    lilac_copy_slice_prune(s, p.top);
    lilac_tile_op *ws = enclose(&p);
    lilac_arena_destroy(p.arena);
    return ws;
}
