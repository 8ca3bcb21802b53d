/* decouple_warps: in a pipelined loop with delayed products, warps wait for buffers and not for
 * each other.
 *
 *     scf.for … iter_args(%slot) {                   scf.for … iter_args(%slot, %phase, %round) {
 *       ttng.warp_group_dot_wait                       ttng.warp_group_dot_wait
 *       ttg.async_wait {num = D - 1}                   ttng.arrive_barrier %passed      each warp
 *       product of %ring_k[%slot]                      ttng.wait_barrier %full[%slot], %phase
 *       delayed product of %ring_v[%before]            product of %ring_k[%slot]
 *       copies to %ring[%c]                     →      delayed product of %ring_v[%before]
 *       ttg.async_commit_group                         softmax
 *       softmax                                        ttng.wait_barrier %passed, %round
 *     }                                                copies to %ring[%c]
 *                                                      ttg.async_commit_group
 *                                                      ttng.async_copy_mbarrier_arrive %full[%c]
 *                                                    }
 *
 * The lowering puts a barrier of the block behind ttg.async_wait. It makes all warps multiply at
 * the same time and then compute the softmax at the same time, so that tensor cores and arithmetic
 * take turns. With mbarriers one warpgroup multiplies while another one computes. Each warp waits
 * twice:
 *
 *     full      one mbarrier for each buffer: all threads' copies to it are complete
 *     passed    all warps have passed the beginning of this iteration
 *
 * Let the ring have B buffers and the distance be D with B >= D + 2. Iteration i reads the buffers
 * of iterations i and, by delayed products, i - 1. At its beginning all products that the warp has
 * issued before are complete. Its copies, at its end, fill the buffer of iteration i + D, which is
 * that of i + D - B <= i - 2 before. The last products that read this buffer were issued in
 * iteration i - 1, so every warp that has passed the beginning of iteration i has read it. A warp
 * that is one iteration ahead reads the buffers of i + 1 and i, no copy's target since 2 <= D.
 *
 * Where pipeline_loops copies what delayed products read one iteration later than the rest
 * (lilac.late), B >= D + 1 suffices. Then iteration i reads the buffers of iteration i of the other
 * rings, and of i - 1 of these. The copies fill the buffers of iteration i + D of the others, of
 * i - 1 or before, and of i + D - 1 of these, of i - 2 or before: every warp that has passed the
 * beginning of iteration i has read them. Both belong to the mbarrier of iteration i + D, whose
 * beginning they precede.
 *
 * `passed` completes one phase for each iteration, and `full` one for each turn of the ring.
 *
 * Copies move to the end of the body: there no warp waits for one that is half an iteration behind.
 *
 * Which loops: those of pipeline_loops with a delayed product (lilac.delayed), at least eight
 * warps, copies by threads only, and no other operation in the body that accesses shared memory or
 * combines warps, whose barriers would bring the warps together anyway. */
#include "descriptors/boxes.h"
#include "pipeline/schedule.h"

#include <lilac/tile_loops.h>

enum { FEWEST_WARPS = 8, MOST_COPIES = 16, MOST_DISTANCE = 8 };

typedef struct loop_parts {
    lilac_tile_module *module;
    const lilac_target *target;
    lilac_tile_op *loop;
    lilac_tile_op *retire; /* the wait for all products at the beginning */
    lilac_tile_op *wait;   /* for the copies of this iteration */
    lilac_tile_op *copies[MOST_COPIES], *commit;
    uint32_t copy_count;
    lilac_tile_op *first_commits[MOST_DISTANCE]; /* in front of the loop, by iteration */
    lilac_tile_op *last_wait;                    /* behind the loop, for all copies */
    uint32_t distance, buffers;
    bool late;                          /* some copies are late */
    uint32_t slot_number;               /* of the carried value */
    lilac_tile_value *slot, *next_slot; /* the buffer of this iteration, and of the next one */
    lilac_tile_value *target_slot;      /* the buffer that the copies fill */
} loop_parts;

/* ---- which loops ----------------------------------------------------------------------------- */

/* The index of a buffer of a ring; NULL: the memory is none. */
static lilac_tile_value *index_in_ring(const lilac_tile_value *memory) {
    while (memory->op != NULL && (memory->op->code == LILAC_TILE_OP_TTG_MEMDESC_TRANS ||
                                  memory->op->code == LILAC_TILE_OP_TTG_MEMDESC_RESHAPE)) {
        memory = memory->op->operands[0].value;
    }
    return memory->op != NULL && memory->op->code == LILAC_TILE_OP_TTG_MEMDESC_INDEX
               ? memory->op->operands[1].value
               : NULL;
}

static bool is_outside(const loop_parts *p, const lilac_tile_value *value) {
    return !lilac_tile_is_inside(value, p->loop);
}

/* Is it the slot of this iteration, or of the one before? */
static bool is_read_slot(const loop_parts *p, const lilac_tile_value *index) {
    for (uint32_t k = 0; k < lilac_tile_carried_count(p->loop); k++) {
        if (lilac_tile_iteration_argument(p->loop, k) == index) {
            return index == p->slot || lilac_tile_next(p->loop, k) == p->slot;
        }
    }
    return false;
}

static bool is_late(const lilac_tile_op *copy) {
    return lilac_tile_find_integer(&copy->attributes, "lilac.late", 0) != 0;
}

/* The ring of a buffer. */
static const lilac_tile_value *ring_of(const lilac_tile_value *memory) {
    while (memory->op->code != LILAC_TILE_OP_TTG_MEMDESC_INDEX) {
        memory = memory->op->operands[0].value;
    }
    return memory->op->operands[0].value;
}

/* Do late copies fill the ring and is the buffer that of the iteration before, or neither? */
static bool is_copied_in_time(const loop_parts *p, const lilac_tile_value *memory,
                              const lilac_tile_value *index) {
    for (uint32_t i = 0; i < p->copy_count; i++) {
        if (ring_of(p->copies[i]->operands[1].value) == ring_of(memory)) {
            return is_late(p->copies[i]) == (index != p->slot);
        }
    }
    return false;
}

/* A product that reads memory from before the loop, or buffers of this iteration or the one before.
 * */
static bool is_product(const loop_parts *p, const lilac_tile_op *op) {
    for (uint32_t k = 0; k < 2; k++) {
        const lilac_tile_value *memory = op->operands[k].value;
        if (memory->type->kind != LILAC_TILE_MEMDESC) {
            continue;
        }
        const lilac_tile_value *index = index_in_ring(memory);
        if (index != NULL ? !is_read_slot(p, index) : !is_outside(p, memory)) {
            return false;
        }
        if (index != NULL && p->late && !is_copied_in_time(p, memory, index)) {
            return false;
        }
    }
    return true;
}

static bool is_allowed(const loop_parts *p, const lilac_tile_op *op);

static bool are_allowed(const loop_parts *p, const lilac_tile_block *body) {
    for (const lilac_tile_op *op = body->first; op != NULL; op = op->next) {
        if (!is_allowed(p, op)) {
            return false;
        }
    }
    return true;
}

/* Has the lowering of the operation no barrier and no access to shared memory but those of `p`? */
static bool is_allowed(const loop_parts *p, const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_TTNG_WARP_GROUP_DOT:
        return is_product(p, op);
    case LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT:
        return true;
    case LILAC_TILE_OP_TT_REDUCE:
        return !lilac_engine_crosses_warps(op);
    case LILAC_TILE_OP_TTG_CONVERT_LAYOUT:
    case LILAC_TILE_OP_TT_SCAN:
    case LILAC_TILE_OP_TT_GATHER:
    case LILAC_TILE_OP_TT_HISTOGRAM:
    case LILAC_TILE_OP_TT_DOT:
        return false;
    case LILAC_TILE_OP_TTG_ASYNC_COPY_GLOBAL_TO_LOCAL:
    case LILAC_TILE_OP_TTG_ASYNC_COMMIT_GROUP:
    case LILAC_TILE_OP_TTG_ASYNC_WAIT:
        return op->parent == p->loop->regions[0]->first; /* find_parts has looked at them */
    default:
        break;
    }
    if (op->region_count > 0) {
        for (uint32_t r = 0; r < op->region_count; r++) {
            if (op->code != LILAC_TILE_OP_SCF_IF ||
                (op->regions[r]->first != NULL && !are_allowed(p, op->regions[r]->first))) {
                return false;
            }
        }
        return true;
    }
    const lilac_tile_effect_summary effects = lilac_tile_summarize_effects(op);
    return effects.writes == 0 && effects.waits == 0 &&
           (effects.reads & ~(uint32_t)LILAC_TILE_GLOBAL_MEMORY) == 0;
}

/* The copies, the commit and the waits of the body, each where pipeline_loops puts it. */
static bool find_parts(loop_parts *p) {
    bool delayed = false;
    for (lilac_tile_op *op = p->loop->regions[0]->first->first; op != NULL; op = op->next) {
        switch (op->code) {
        case LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT:
            if (p->wait == NULL && lilac_tile_find_integer(&op->attributes, "pendings", 1) == 0) {
                p->retire = op;
            }
            break;
        case LILAC_TILE_OP_TTNG_WARP_GROUP_DOT:
            if (p->wait == NULL) {
                return false;
            }
            delayed |= lilac_tile_find_integer(&op->attributes, "lilac.in_flight", 0) != 0;
            break;
        case LILAC_TILE_OP_TTG_ASYNC_WAIT:
            if (p->wait != NULL || op->results[0].uses != NULL) {
                return false;
            }
            p->wait = op;
            break;
        case LILAC_TILE_OP_TTG_ASYNC_COPY_GLOBAL_TO_LOCAL:
            if (p->copy_count == MOST_COPIES || p->commit != NULL ||
                lilac_tile_find_integer(&op->attributes, "lilac.ordered", 0) == 0) {
                return false;
            }
            p->copies[p->copy_count++] = op;
            break;
        case LILAC_TILE_OP_TTG_ASYNC_COMMIT_GROUP:
            if (p->commit != NULL) {
                return false;
            }
            p->commit = op;
            break;
        default:
            break;
        }
    }
    return delayed && p->retire != NULL && p->wait != NULL && p->commit != NULL &&
           p->copy_count > 0;
}

/* The ring's number of buffers and the slots: the copies fill one buffer of each ring, at an index
 * D behind the carried one; late ones at D - 1. */
static bool find_slots(loop_parts *p) {
    p->distance = 1 + (uint32_t)lilac_tile_find_integer(&p->wait->attributes, "num", 0);
    for (uint32_t i = 0; i < p->copy_count; i++) {
        const lilac_tile_value *memory = p->copies[i]->operands[1].value;
        if (index_in_ring(memory) == NULL || memory->op->code != LILAC_TILE_OP_TTG_MEMDESC_INDEX) {
            return false;
        }
        const uint32_t buffers = (uint32_t)memory->op->operands[0].value->type->shape[0];
        lilac_tile_value *index = index_in_ring(memory);
        const bool late = is_late(p->copies[i]);
        if ((i > 0 && p->buffers != buffers) ||
            (!late && p->target_slot != NULL && p->target_slot != index)) {
            return false;
        }
        p->late |= late;
        p->target_slot = late ? p->target_slot : index;
        p->buffers = buffers;
    }
    for (uint32_t k = 0; k < lilac_tile_carried_count(p->loop); k++) {
        const lilac_tile_op *init = lilac_tile_init(p->loop, k)->op;
        int64_t first;
        if (init == NULL || !lilac_tile_constant(&init->results[0], &first) || first != 0) {
            continue;
        }
        lilac_tile_value *slot = lilac_tile_iteration_argument(p->loop, k);
        for (const lilac_tile_use *use = slot->uses; use != NULL; use = use->next) {
            if (use->op->code == LILAC_TILE_OP_TTG_MEMDESC_INDEX && use->index == 1) {
                p->slot_number = k;
                p->slot = slot;
                p->next_slot = lilac_tile_next(p->loop, k);
            }
        }
    }
    return p->slot != NULL && p->target_slot != NULL && p->distance >= 2 &&
           p->distance <= MOST_DISTANCE && p->buffers >= p->distance + (p->late ? 1 : 2);
}

/* The groups of copies in front of the loop, and the wait for all behind it. */
static bool find_surroundings(loop_parts *p) {
    uint32_t left = p->distance;
    for (lilac_tile_op *op = p->loop->previous; op != NULL && left > 0; op = op->previous) {
        if (op->code == LILAC_TILE_OP_TTG_ASYNC_COMMIT_GROUP) {
            p->first_commits[--left] = op;
        }
    }
    for (lilac_tile_op *op = p->loop->next; op != NULL && p->last_wait == NULL; op = op->next) {
        if (op->code == LILAC_TILE_OP_TTG_ASYNC_WAIT &&
            lilac_tile_find_integer(&op->attributes, "num", 1) == 0) {
            p->last_wait = op;
        }
    }
    return left == 0 && p->last_wait != NULL;
}

/* ---- the rewriting --------------------------------------------------------------------------- */

static void move_before(lilac_tile_op *place, lilac_tile_op *op) {
    lilac_tile_detach(op);
    lilac_tile_insert_before(place, op);
}

/* Behind `commit`: this thread's copies so far are an arrival at the buffer's mbarrier. */
static void arrive_with_copies(const loop_parts *p, lilac_tile_op *commit, lilac_tile_value *full,
                               lilac_tile_value *slot) {
    const lilac_emitter e = {p->module, commit->next};
    const lilac_tile_attribute once = {.kind = LILAC_TILE_ATTR_UNIT,
                                       .name =
                                           lilac_intern_string(p->module->context, "noIncrement")};
    lilac_tile_value *barrier = lilac_box_barrier(&e, full, slot);
    lilac_tile_op *arrival =
        lilac_emit(&e, LILAC_TILE_OP_TTNG_ASYNC_COPY_MBARRIER_ARRIVE, NULL, 1, &barrier);
    lilac_tile_set_attribute(p->module, &arrival->attributes, &once);
}

static lilac_tile_value *i32(const lilac_emitter *e, int64_t value) {
    return lilac_emit_integer(e, lilac_tile_scalar(e->module, LILAC_I32), value);
}

/* The parity of the next iteration: of `full` where the ring begins again, of `passed` always. */
static void advance(const loop_parts *p, uint32_t first) {
    const lilac_emitter e = {p->module, p->loop->regions[0]->first->last};
    lilac_tile_value *phase = lilac_tile_iteration_argument(p->loop, first),
                     *round = lilac_tile_iteration_argument(p->loop, first + 1);
    lilac_tile_set_next(p->loop, first, lilac_box_next_parity(&e, phase, p->next_slot));
    lilac_tile_set_next(p->loop, first + 1,
                        lilac_emit_binary(&e, LILAC_TILE_OP_ARITH_XORI, round, i32(&e, 1)));
}

/* No barrier of the block is in front of the body's products. */
static void order_products(const loop_parts *p) {
    for (lilac_tile_op *op = p->loop->regions[0]->first->first; op != NULL; op = op->next) {
        if (op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
            lilac_engine_set_integer(p->module, op, "lilac.ordered", 1);
        }
    }
}

/* Behind the loop: waits for the arrivals of the last copies, of iterations that do not exist.
 * Without it an arrival could come when the mbarrier's memory has another use. */
static void await_last_arrivals(const loop_parts *p, const lilac_emitter *e, lilac_tile_value *full,
                                uint32_t first) {
    lilac_tile_value *slot = &p->loop->results[p->slot_number], *phase = &p->loop->results[first];
    lilac_tile_value *buffers = i32(e, p->buffers), *one = i32(e, 1);
    for (uint32_t d = 0; d < p->distance; d++) {
        lilac_tile_value *sum = lilac_emit_binary(e, LILAC_TILE_OP_ARITH_ADDI, slot, i32(e, d));
        lilac_tile_value *wraps = lilac_emit_compare(e, "sge", sum, buffers);
        lilac_tile_value *index = lilac_emit_select(
            e, wraps, lilac_emit_binary(e, LILAC_TILE_OP_ARITH_SUBI, sum, buffers), sum);
        lilac_tile_value *other = lilac_emit_binary(e, LILAC_TILE_OP_ARITH_XORI, phase, one);
        lilac_tile_value *parity = lilac_emit_select(e, wraps, other, phase);
        lilac_box_wait(e, lilac_box_barrier(e, full, index), parity);
    }
}

static void rewrite(const loop_parts *p) {
    const lilac_emitter start = {p->module, p->first_commits[0]};
    const uint32_t first = lilac_tile_carried_count(p->loop);
    lilac_tile_value *full = lilac_box_make_barriers(
        &start, 1, p->buffers, p->target->num_warps * p->target->arch->warp_size);
    lilac_tile_value *passed = lilac_box_make_barriers(&start, 1, 1, p->target->num_warps);
    (void)lilac_emit(&start, LILAC_TILE_OP_TTG_LOCAL_BARRIER, NULL, 0, NULL);
    for (uint32_t d = 0; d < p->distance; d++) {
        const lilac_emitter e = {p->module, p->first_commits[d]};
        arrive_with_copies(p, p->first_commits[d], full, i32(&e, d));
    }
    const lilac_emitter in_front = {p->module, p->loop};
    (void)lilac_emit(&in_front, LILAC_TILE_OP_TTG_LOCAL_BARRIER, NULL, 0, NULL);
    lilac_tile_value *zero = i32(&in_front, 0);
    lilac_tile_add_carried(p->module, p->loop, 2, (lilac_tile_value *const[]){zero, zero});

    const lilac_emitter e = {p->module, p->wait};
    lilac_tile_value *entered = lilac_box_barrier(&e, passed, i32(&e, 0));
    lilac_tile_op *arrival = lilac_emit(&e, LILAC_TILE_OP_TTNG_ARRIVE_BARRIER, NULL, 1, &entered);
    lilac_emit_attribute(&e, arrival, "count", 1);
    lilac_engine_set_integer(p->module, arrival, "lilac.each_warp", 1);
    lilac_box_wait(&e, lilac_box_barrier(&e, full, p->slot),
                   lilac_tile_iteration_argument(p->loop, first));
    lilac_tile_remove(p->wait);

    lilac_tile_op *last = p->loop->regions[0]->first->last;
    const lilac_emitter end = {p->module, last};
    lilac_box_wait(&end, entered, lilac_tile_iteration_argument(p->loop, first + 1));
    for (uint32_t i = 0; i < p->copy_count; i++) {
        move_before(last, p->copies[i]);
    }
    move_before(last, p->commit);
    arrive_with_copies(p, p->commit, full, p->target_slot);
    order_products(p);
    advance(p, first);
    const lilac_emitter behind = {p->module, p->last_wait->next};
    await_last_arrivals(p, &behind, full, first);
    lilac_box_remove_barriers(&behind, passed, 1);
    lilac_box_remove_barriers(&behind, full, p->buffers);
}

static bool walk(lilac_tile_module *module, const lilac_target *target, lilac_tile_region *region) {
    bool changed = false;
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
            next = op->next;
            for (uint32_t r = 0; r < op->region_count; r++) {
                changed |= walk(module, target, op->regions[r]);
            }
            loop_parts p = {.module = module, .target = target, .loop = op};
            if (op->code == LILAC_TILE_OP_SCF_FOR &&
                !lilac_engine_is_asked(op, LILAC_SCHEDULE_DECOUPLE, 0) && find_parts(&p) &&
                find_slots(&p) && are_allowed(&p, op->regions[0]->first) && find_surroundings(&p)) {
                lilac_engine_record(module, op, LILAC_SCHEDULE_DECOUPLE, 1);
                rewrite(&p);
                changed = true;
            }
        }
    }
    return changed;
}

bool lilac_engine_decouple_warps(lilac_tile_module *module, const lilac_target *target,
                                 bool *changed) {
    *changed = false;
    if (!lilac_arch_has(target->arch, LILAC_HAS_WGMMA) || target->num_warps < FEWEST_WARPS ||
        target->num_ctas > 1) {
        return true; /* the lowering knows mbarriers of one block only */
    }
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        if (function->body != NULL && walk(module, target, function->body)) {
            *changed = true;
            lilac_tile_number(function);
        }
    }
    return true;
}
