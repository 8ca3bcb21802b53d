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
 * throughout, and slots and parities are carried from tile to tile.
 *
 * Which loops: one of a function, in a loop over tiles, in a conditional of pipeline_loops, or
 * both. Not loops with delayed products, whose iterations read two buffers, nor in clusters.
 *
 * Where it pays. With R registers of a multiprocessor's threads, the producer's warpgroup keeps
 * PRODUCER_REGISTERS for each thread and the others get the rest, so one block is resident. If two
 * blocks were resident before, each hides the epilogue and the barriers of the other one, and
 * nothing is gained by taking one away. If one is, the tensor cores stand still from the last
 * product of a tile to the first one of the next tile, and in each iteration until the slowest warp
 * has reached the barrier. The producer shortens the first gap by the latency of a copy and removes
 * the second one. Therefore:
 *
 *     a loop over tiles, eight warps, one resident block             always
 *     tt.warp_specialize, eight warps                                if one block is resident
 *     tt.warp_specialize, four warps                                 always: no registers are moved
 *
 * Blocks of sixteen warps have too few registers for a thread when they begin.
 * bench/results/h200_warp_specialisation.json has the times of both kinds of kernels. */
#include "specialise_warps.h"
#include "block_demand.h"

enum { WARPGROUP = 4 };

typedef struct consumer {
    specialised s;
    lilac_tile_value *slot, *phase; /* arguments of the loop */
    uint32_t slot_number, phase_number;
    lilac_tile_op *release;   /* the wait behind which a buffer is released, in the loop */
    lilac_tile_op *last_wait; /* behind the loop, for all products */
    bool own;                 /* the buffer of the same iteration, not of the one before */
    uint32_t product_count;
} consumer;

/* ---- which loops ---------------------------------------------------------------------------- */

static bool is_asked(const lilac_tile_op *loop) {
    for (const lilac_tile_op *op = loop; op != NULL; op = op->parent->parent->parent) {
        if (lilac_tile_find(&op->attributes, "tt.warp_specialize") != NULL) {
            return true;
        }
    }
    return false;
}

static bool is_empty_region(const lilac_tile_region *region) {
    return region->first == NULL || region->first->first == region->first->last;
}

/* The operations around the loop: at most a loop over tiles, and in it a conditional. */
static bool find_surroundings(specialised *s) {
    lilac_tile_op *op = s->inner->parent->parent->parent;
    s->block = s->inner->parent;
    s->top = s->inner;
    if (op != NULL && op->code == LILAC_TILE_OP_SCF_IF) {
        if (s->block != op->regions[0]->first || !is_empty_region(op->regions[1])) {
            return false;
        }
        s->guard = s->top = op;
        op = op->parent->parent->parent;
    }
    if (op != NULL && op->code == LILAC_TILE_OP_SCF_FOR) {
        s->outer = s->top = op;
        op = op->parent->parent->parent;
    }
    return op == NULL && s->top != s->inner;
}

static lilac_tile_op *allocation_of(const lilac_tile_value *memory) {
    const lilac_tile_op *index = memory->op;
    lilac_tile_op *made = index != NULL && index->code == LILAC_TILE_OP_TTG_MEMDESC_INDEX
                              ? index->operands[0].value->op
                              : NULL;
    return made != NULL && made->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC && made->operand_count == 0
               ? made
               : NULL;
}

static bool add_ring(specialised *s, lilac_tile_op *ring) {
    for (uint32_t i = 0; i < s->ring_count; i++) {
        if (s->rings[i] == ring) {
            return true;
        }
    }
    if (ring == NULL || ring->parent != s->block || s->ring_count == SPECIALISED_RINGS) {
        return false;
    }
    s->rings[s->ring_count++] = ring;
    return true;
}

/* The mbarriers, the slot and the parity, by the wait at the beginning. */
static bool find_wait(consumer *c, const lilac_tile_op *wait) {
    specialised *s = &c->s;
    const lilac_tile_op *made = allocation_of(wait->operands[0].value);
    if (s->full != NULL || made == NULL || made->parent != s->block || wait->operand_count != 2) {
        return false;
    }
    s->full = (lilac_tile_value *)made->results;
    s->buffers = (uint32_t)s->full->type->shape[0];
    c->slot = wait->operands[0].value->op->operands[1].value;
    c->phase = wait->operands[1].value;
    bool slot = false, phase = false;
    for (uint32_t k = 0; k < lilac_tile_carried_count(s->inner); k++) {
        const lilac_tile_value *argument = lilac_tile_iteration_argument(s->inner, k);
        if (argument == c->slot) {
            c->slot_number = k;
            slot = true;
        }
        if (argument == c->phase) {
            c->phase_number = k;
            phase = true;
        }
    }
    return slot && phase;
}

/* The first wait of the iteration behind which no product of an earlier one is in flight; better,
 * the one behind which none of this iteration is. `issued`: the products so far. */
static void find_release(consumer *c, lilac_tile_op *wait, uint32_t issued) {
    const int64_t left = lilac_tile_find_integer(&wait->attributes, "pendings", 0);
    if (left == 0 && issued == c->product_count) {
        c->own = true;
        c->release = wait;
    } else if (left <= issued && c->release == NULL) {
        c->release = wait;
    }
}

static void count_product(void *data, lilac_tile_op *op) {
    *(uint32_t *)data += op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT;
}

/* Sorts the operations of the loop's body. */
static bool find_body(consumer *c) {
    specialised *s = &c->s;
    lilac_tile_block *body = s->inner->regions[0]->first;
    uint32_t issued = 0;
    lilac_tile_walk(s->inner->regions[0], count_product, &c->product_count);
    for (lilac_tile_op *op = body->first; op != NULL; op = op->next) {
        switch (op->code) {
        case LILAC_TILE_OP_TTNG_WAIT_BARRIER:
            if (!find_wait(c, op)) {
                return false;
            }
            break;
        case LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL:
            if (!add_ring(s, allocation_of(op->operands[op->operand_count - 2].value))) {
                return false;
            }
            break;
        case LILAC_TILE_OP_TTNG_WARP_GROUP_DOT:
            issued++;
            break;
        case LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT:
            find_release(c, op, issued);
            break;
        case LILAC_TILE_OP_TTNG_INIT_BARRIER:
        case LILAC_TILE_OP_TTNG_INVAL_BARRIER:
        case LILAC_TILE_OP_TTNG_ARRIVE_BARRIER:
        case LILAC_TILE_OP_TTG_LOCAL_ALLOC:
        case LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_LOCAL_TO_GLOBAL:
        case LILAC_TILE_OP_TTNG_ASYNC_TMA_REDUCE:
            return false;
        default:
            break;
        }
    }
    return issued == c->product_count && c->release != NULL && s->full != NULL && s->ring_count > 0;
}

/* Behind the loop, where the products that it leaves in flight are complete. */
static bool find_last_wait(consumer *c) {
    for (lilac_tile_op *op = c->s.inner->next; op != NULL && c->last_wait == NULL; op = op->next) {
        if (op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT &&
            lilac_tile_find_integer(&op->attributes, "pendings", 1) == 0) {
            c->last_wait = op;
        }
    }
    return c->own || c->last_wait != NULL;
}

static bool precedes(const lilac_tile_op *op, const lilac_tile_op *other) {
    while (op != NULL && op != other) {
        op = op->next;
    }
    return op == other;
}

/* Do the operations of the iteration that read a buffer, products, loads and those of its views,
 * precede this one of the body? */
static bool reads_before(const lilac_tile_value *memory, const lilac_tile_op *end) {
    for (const lilac_tile_use *use = memory->uses; use != NULL; use = use->next) {
        const lilac_tile_op *op = use->op;
        const bool view = op->result_count == 1 && op->results[0].type->kind == LILAC_TILE_MEMDESC;
        if (op->parent != end->parent || op == end || !precedes(op, end) ||
            (view && !reads_before(&op->results[0], end))) {
            return false;
        }
    }
    return true;
}

/* Is the memory of the ring used by the loop and the first copies only, and by the loop in the slot
 * of its iteration, up to the wait if that releases it? */
static bool check_ring(const consumer *c, const lilac_tile_op *ring) {
    const specialised *s = &c->s;
    for (const lilac_tile_use *use = ring->results[0].uses; use != NULL; use = use->next) {
        const lilac_tile_op *op = use->op;
        if (op->code == LILAC_TILE_OP_TTG_LOCAL_DEALLOC) {
            continue;
        }
        if (op->code != LILAC_TILE_OP_TTG_MEMDESC_INDEX ||
            (op->parent != s->block && op->parent != s->inner->regions[0]->first)) {
            return false;
        }
        const bool copied =
            op->results[0].uses != NULL && op->results[0].uses->next == NULL &&
            op->results[0].uses->op->code == LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL;
        const lilac_tile_op *end = c->own ? c->release : s->inner->regions[0]->first->last;
        if (!copied && (op->parent == s->block || op->operands[1].value != c->slot ||
                        !reads_before(&op->results[0], end))) {
            return false;
        }
    }
    return (uint32_t)ring->results[0].type->shape[0] == s->buffers;
}

static void add_bytes(void *data, lilac_tile_op *op) {
    uint64_t *bytes = data;
    if (op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC) {
        *bytes += lilac_engine_bytes(op->results[0].type);
    }
}

/* The memory that is there at the same time as the rings, which live as long as `top`. */
static uint64_t memory_of(const specialised *s) {
    uint64_t bytes = 0;
    if (s->outer != NULL) {
        lilac_tile_walk(s->function->body, add_bytes, &bytes);
        return bytes;
    }
    for (uint32_t r = 0; r < s->top->region_count; r++) {
        lilac_tile_walk(s->top->regions[r], add_bytes, &bytes);
    }
    for (lilac_tile_op *op = s->top->previous; op != NULL; op = op->previous) {
        add_bytes(&bytes, op);
    }
    return bytes;
}

/* Registers of a thread for what the loop carries and for operands. Products update their sums in
 * place. */
static uint32_t registers_of(const specialised *s) {
    uint32_t words = LILAC_ENGINE_OTHER_REGISTERS;
    for (uint32_t k = 0; k < lilac_tile_carried_count(s->inner); k++) {
        words += lilac_engine_words(lilac_tile_iteration_argument(s->inner, k)->type);
    }
    for (const lilac_tile_op *op = s->inner->regions[0]->first->first; op != NULL; op = op->next) {
        if (op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
            words += lilac_engine_words(op->operands[0].value->type);
        }
    }
    return words;
}

/* Have the warps enough registers, beside a warpgroup with the producer's? */
static bool has_registers(const specialised *s) {
    const lilac_arch *arch = s->target->arch;
    const uint32_t threads = s->target->num_warps * arch->warp_size;
    const uint32_t left = arch->registers - WARPGROUP * arch->warp_size * PRODUCER_REGISTERS;
    return registers_of(s) <= left / threads;
}

static bool pays(const specialised *s, uint64_t bytes) {
    const lilac_block_demand demand = {
        .warps = s->target->num_warps, .registers = registers_of(s), .shared_bytes = bytes};
    if (s->target->num_warps < WARPS_WITH_REGISTERS) {
        return is_asked(s->inner);
    }
    return (s->outer != NULL || is_asked(s->inner)) && has_registers(s) &&
           lilac_resident_blocks(s->target->arch, &demand) <= 1;
}

static bool survey(consumer *c) {
    specialised *s = &c->s;
    if (s->target->num_warps % WARPGROUP != 0 || s->target->num_warps > WARPS_WITH_REGISTERS ||
        !find_surroundings(s) || !find_body(c) || !find_last_wait(c)) {
        return false;
    }
    for (uint32_t i = 0; i < s->ring_count; i++) {
        if (!check_ring(c, s->rings[i])) {
            return false;
        }
    }
    const uint64_t bytes = memory_of(s);
    return bytes <= s->target->arch->shared_bytes && pays(s, bytes) &&
           lilac_specialise_is_possible(s);
}

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
    lilac_tile_value *full = lilac_box_make_barriers(&e, s->buffers, 1);
    s->empty = lilac_box_make_barriers(&e, s->buffers, s->target->num_warps);
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

/* Releases the buffers of the iterations. */
static void release_buffers(const consumer *c) {
    const specialised *s = &c->s;
    const lilac_emitter in_front = {s->module, s->inner}, e = {s->module, c->release->next};
    if (c->own) {
        put_arrival(c, &e, c->slot, NULL);
        return;
    }
    const uint32_t before = lilac_tile_carried_count(s->inner);
    lilac_tile_add_carried(s->module, s->inner, 1, (lilac_tile_value *const[]){i32(&in_front, 0)});
    lilac_tile_set_next(s->inner, before, c->slot);
    lilac_tile_value *later = lilac_emit_compare(&e, "ne", lilac_tile_induction_variable(s->inner),
                                                 lilac_tile_lower_bound(s->inner));
    put_arrival(c, &e, lilac_tile_iteration_argument(s->inner, before), later);
    const lilac_emitter behind = {s->module, c->last_wait->next};
    lilac_tile_value *any = lilac_emit_compare(&behind, "slt", lilac_tile_lower_bound(s->inner),
                                               lilac_tile_upper_bound(s->inner));
    put_arrival(c, &behind, &s->inner->results[before], any);
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

/* The mbarriers order the copies before the products. Other memory, which threads have written
 * before the loop, is ordered by a barrier in front of it. */
static void order_products(const consumer *c) {
    const specialised *s = &c->s;
    const lilac_emitter in_front = {s->module, s->inner};
    bool ordered = true;
    for (lilac_tile_op *op = s->inner->regions[0]->first->first; op != NULL; op = op->next) {
        if (op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
            ordered &= is_ordered(s, op->operands[0].value) && is_ordered(s, op->operands[1].value);
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

static void rewrite(consumer *c) {
    specialised *s = &c->s;
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

typedef struct finding {
    lilac_tile_op *loop;
    uint32_t count;
} finding;

static void find_loop(void *data, lilac_tile_op *op) {
    finding *f = data;
    if (op->code == LILAC_TILE_OP_SCF_FOR &&
        lilac_tile_find(&op->attributes, "lilac.tensor_copies") != NULL) {
        f->loop = op;
        f->count++;
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
        consumer c = {
            .s = {.function = f, .module = module, .target = target, .inner = found.loop}};
        if (found.count == 1 && survey(&c)) {
            rewrite(&c);
            lilac_tile_number(f);
            *changed = true;
        }
    }
    return true;
}
