/* specialise_warps: one warp starts the copies of a loop with products, the other ones multiply.
 *
 *     scf.for %t = … {                               ttg.warp_specialize(…)
 *       rings, mbarriers                             default {
 *       start the first copies                         scf.for %t = … iter_args(%slot, %phase) {
 *       %x = scf.for %k = … {                             %x = scf.for %k = … {
 *         ttng.wait_barrier %full[%slot]                    ttng.wait_barrier %full[%slot], %phase
 *         product                                           product
 *         wait until one product is in flight      →        wait until one product is in flight
 *         copies for a later iteration                      ttng.arrive_barrier %empty[%before]   each warp
 *       }                                                 }
 *       wait for the last product                         wait for the last product
 *       epilogue of %x                                    ttng.arrive_barrier %empty[%last]       each warp
 *     }                                                   epilogue of %x
 *                                                       }
 *                                                     }
 *                                                     partition0(…) num_warps(1) { … }              producer.c
 *
 * The loop is one of pipeline_loops whose copies are tensor copies. It has a barrier of the block
 * in front of the copies; without them it has none, so the warpgroups of the default region run on
 * their own. The producer is ahead by the buffers of the ring, also across tiles: it fills them
 * while the default region executes the epilogue.
 *
 * A buffer is empty when every warp has arrived behind the wait that completes the products of it.
 * In iteration i that is the buffer of i if the wait leaves no product in flight, otherwise the one
 * of i - 1; the last one of a tile is released behind the loop. Rings and mbarriers live
 * throughout, and slots and parities are carried from tile to tile. Delayed products of
 * iteration i - 1 read the buffer of i - 2: with them it is the one of i - 2. The first iteration
 * reads a buffer of zeros, so that one is not empty at first; the others are. specialised_loops.c
 * says which loops. */
#include "warps/specialise_warps.h"

#include "pipeline/schedule.h"

/* ---- memory --------------------------------------------------------------------------------- */

static lilac_tile_value *i32(const lilac_emitter *e, int64_t value) {
    return lilac_emit_integer(e, lilac_tile_scalar(e->module, LILAC_I32), value);
}

/* Removes the uses of the old mbarriers in the block: their beginning and end. */
static void remove_old_barriers(const specialised *s) {
    for (lilac_tile_op *op = s->block->first, *next; op != NULL; op = next) {
        next = op->next;
        const bool ends = (op->code == LILAC_TILE_OP_TTNG_INIT_BARRIER ||
                           op->code == LILAC_TILE_OP_TTNG_INVAL_BARRIER) &&
                          lilac_is_barrier_of(op->operands[0].value, s->full);
        if (ends ||
            (op->code == LILAC_TILE_OP_TTG_LOCAL_DEALLOC && op->operands[0].value == s->full)) {
            lilac_tile_remove(op);
        }
    }
}

/* Moves the rings and the mbarriers out of everything. */
static void move_memory(consumer *c) {
    specialised *s = &c->s;
    const lilac_emitter e = {s->module, s->top};
    lilac_tile_op *old = s->full->op;
    for (uint32_t i = 0; i < s->ring_count; i++) {
        lilac_tile_detach(s->rings[i]);
        lilac_tile_insert_before(s->top, s->rings[i]);
    }
    for (lilac_tile_op *op = s->block->first, *next; op != NULL; op = next) {
        next = op->next;
        for (uint32_t i = 0; i < s->ring_count && op->code == LILAC_TILE_OP_TTG_LOCAL_DEALLOC;
             i++) {
            if (op->operands[0].value == s->rings[i]->results) {
                lilac_tile_remove(op);
                break;
            }
        }
    }
    remove_old_barriers(s);
    lilac_tile_value *full = lilac_box_make_barriers(&e, 1, s->buffers, 1);
    s->empty = lilac_box_make_barriers(&e, 1, s->buffers, s->target->num_warps);
    lilac_tile_replace_uses(s->full, full);
    s->full = full;
    lilac_tile_remove(old);
}

/* ---- the default region --------------------------------------------------------------------- */

static void remove_copies(const specialised *s, lilac_tile_block *block) {
    for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
        next = op->next;
        if (lilac_is_barrier_of(lilac_copy_barrier(op), s->full)) {
            lilac_tile_remove(op);
        }
    }
}

static void put_arrival(const consumer *c, const lilac_emitter *e, lilac_tile_value *slot,
                        lilac_tile_value *predicate) {
    lilac_tile_value *operands[2] = {lilac_box_barrier(e, c->s.empty, slot), predicate};
    lilac_tile_op *arrival =
        lilac_emit(e, LILAC_TILE_OP_TTNG_ARRIVE_BARRIER, NULL, predicate != NULL ? 2 : 1, operands);
    lilac_emit_attribute(e, arrival, "count", 1);
    lilac_emit_attribute(e, arrival, "lilac.each_warp", 1);
}

/* Carries slots and parities from tile to tile. */
static void carry_position(const consumer *c, lilac_tile_op *ws) {
    const specialised *s = &c->s;
    const lilac_emitter e = {s->module, ws};
    if (s->outer == NULL) {
        return;
    }
    lilac_tile_value *zero = i32(&e, 0);
    const uint32_t first = lilac_tile_carried_count(s->outer);
    lilac_tile_add_carried(s->module, s->outer, 2, (lilac_tile_value *const[]){zero, zero});
    lilac_tile_value *slot = lilac_tile_iteration_argument(s->outer, first),
                     *phase = lilac_tile_iteration_argument(s->outer, first + 1);
    lilac_tile_set_init(s->inner, c->slot_number, slot);
    lilac_tile_set_init(s->inner, c->phase_number, phase);
    lilac_tile_value *next[2] = {&s->inner->results[c->slot_number],
                                 &s->inner->results[c->phase_number]};
    if (s->guard != NULL) {
        lilac_tile_add_if_results(s->module, s->guard, 2, next,
                                  (lilac_tile_value *const[]){slot, phase});
        const uint32_t n = s->guard->result_count;
        next[0] = &s->guard->results[n - 2];
        next[1] = &s->guard->results[n - 1];
    }
    lilac_tile_set_next(s->outer, first, next[0]);
    lilac_tile_set_next(s->outer, first + 1, next[1]);
}

/* Releases the buffers of the iterations. In iteration i, without a product in flight, that is the
 * one of i - 1; with delayed products, whose last one may be the buffer of i - 2, that one. */
static void release_buffers(const consumer *c) {
    const specialised *s = &c->s;
    const lilac_emitter in_front = {s->module, s->inner}, e = {s->module, c->release->next};
    if (c->own) {
        put_arrival(c, &e, c->slot, NULL);
        return;
    }
    const uint32_t last = lilac_tile_carried_count(s->inner);
    lilac_tile_add_carried(s->module, s->inner, 1, (lilac_tile_value *const[]){i32(&in_front, 0)});
    lilac_tile_set_next(s->inner, last, c->before != NULL ? c->before : c->slot);
    lilac_tile_value *later = lilac_emit_compare(&e, "ne", lilac_tile_induction_variable(s->inner),
                                                 lilac_tile_lower_bound(s->inner));
    put_arrival(c, &e, lilac_tile_iteration_argument(s->inner, last), later);
    if (s->outer == NULL) {
        return; /* no copy waits for the last buffers */
    }
    const lilac_emitter behind = {s->module, c->last_wait->next};
    lilac_tile_value *any = lilac_emit_compare(&behind, "slt", lilac_tile_lower_bound(s->inner),
                                               lilac_tile_upper_bound(s->inner));
    put_arrival(c, &behind, &s->inner->results[last], any);
}

/* Is the operand a tensor, or memory of a ring? */
static bool is_ordered(const specialised *s, const lilac_tile_value *operand) {
    while (operand->type->kind == LILAC_TILE_MEMDESC && operand->op != NULL &&
           operand->op->code != LILAC_TILE_OP_TTG_LOCAL_ALLOC) {
        operand = operand->op->operands[0].value;
    }
    bool ordered = operand->type->kind != LILAC_TILE_MEMDESC;
    for (uint32_t i = 0; i < s->ring_count; i++) {
        ordered |= operand == s->rings[i]->results;
    }
    return ordered;
}

static bool has_ordered_operands(const specialised *s, const lilac_tile_op *product) {
    return is_ordered(s, product->operands[0].value) && is_ordered(s, product->operands[1].value);
}

/* The mbarriers order the copies before the products. Other memory, which threads have written
 * before the loop, is ordered by a barrier in front of it. The product of the last
 * iteration, if it is delayed, is behind the loop. */
static void order_products(const consumer *c) {
    const specialised *s = &c->s;
    const lilac_emitter in_front = {s->module, s->inner};
    bool ordered = c->before == NULL; /* threads write the zeros */
    for (lilac_tile_op *op = s->inner->regions[0]->first->first; op != NULL; op = op->next) {
        if (op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
            ordered &= has_ordered_operands(s, op);
            lilac_engine_set_integer(s->module, op, "lilac.ordered", 1);
        }
    }
    for (lilac_tile_op *op = s->inner->next; op != NULL; op = op->next) {
        if (op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT && has_ordered_operands(s, op)) {
            lilac_engine_set_integer(s->module, op, "lilac.ordered", 1);
        }
    }
    if (!ordered) {
        (void)lilac_emit(&in_front, LILAC_TILE_OP_TTG_LOCAL_BARRIER, NULL, 0, NULL);
    }
}

/* Moves `top` into the default region, which yields its results. */
static void enclose(const specialised *s, lilac_tile_op *ws) {
    lilac_tile_op *top = s->top, *end = ws->regions[0]->first->last;
    lilac_tile_op *place = top->next;
    lilac_tile_detach(top);
    lilac_tile_insert_before(end, top);
    const lilac_emitter e = {s->module, place};
    lilac_box_remove_barriers(&e, s->empty, s->buffers);
    lilac_box_remove_barriers(&e, s->full, s->buffers);
    for (uint32_t i = 0; i < s->ring_count; i++) {
        lilac_tile_value *ring = s->rings[i]->results;
        (void)lilac_emit(&e, LILAC_TILE_OP_TTG_LOCAL_DEALLOC, NULL, 1, &ring);
    }
    lilac_tile_add_partition_results(s->module, ws, top->result_count, top->results);
}

/* The registers of the producer's threads, and what the loop's record has. */
static void choose_registers(specialised *s) {
    lilac_schedule asked;
    lilac_engine_record(s->module, s->inner, LILAC_SCHEDULE_PRODUCER, 1);
    if (s->target->num_warps < WARPS_WITH_REGISTERS) {
        return;
    }
    s->registers = lilac_producer_registers(s);
    if (lilac_engine_asked(&asked, s->inner) && asked.has[LILAC_SCHEDULE_REGISTERS]) {
        s->registers = asked.values[LILAC_SCHEDULE_REGISTERS];
    }
    lilac_engine_record(s->module, s->inner, LILAC_SCHEDULE_REGISTERS, s->registers);
}

static void rewrite(consumer *c) {
    specialised *s = &c->s;
    choose_registers(s);
    move_memory(c);
    lilac_tile_op *ws = lilac_specialise_producer(s);
    remove_copies(s, s->block);
    remove_copies(s, s->inner->regions[0]->first);
    carry_position(c, ws);
    release_buffers(c);
    order_products(c);
    enclose(s, ws);
}

/* ---- the pass ------------------------------------------------------------------------------- */

enum { MOST_LOOPS = 8 };

/* The loops whose copies are tensor copies, in order. */
typedef struct finding {
    lilac_tile_op *loops[MOST_LOOPS];
    uint32_t count;
} finding;

static void find_loop(void *data, lilac_tile_op *op) {
    finding *f = data;
    if (op->code == LILAC_TILE_OP_SCF_FOR && f->count < MOST_LOOPS &&
        lilac_tile_find(&op->attributes, "lilac.tensor_copies") != NULL) {
        f->loops[f->count++] = op;
    }
}

bool lilac_engine_specialise_warps(lilac_tile_module *module, const lilac_target *target,
                                   bool *changed) {
    *changed = false;
    if (!lilac_arch_has(target->arch, LILAC_HAS_WGMMA) ||
        !lilac_arch_has(target->arch, LILAC_HAS_TMA) || target->num_ctas > 1 ||
        lilac_tile_has_partitions(module)) {
        return true;
    }
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        finding found = {0};
        if (f->body == NULL) {
            continue;
        }
        lilac_tile_walk(f->body, find_loop, &found);
        for (uint32_t i = found.count; i-- > 0;) {
            consumer c = {
                .s = {.function = f, .module = module, .target = target, .inner = found.loops[i]}};
            if (lilac_specialise_survey(&c)) {
                rewrite(&c);
                lilac_tile_number(f);
                *changed = true;
                break;
            }
        }
    }
    return true;
}
