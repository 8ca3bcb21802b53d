/* Which loops specialise_warps changes, and what it has to know about them.
 *
 * The last one of a function for which all this holds, in a loop over tiles, in a conditional of pipeline_loops,
 * or both; with delayed products not in a loop over tiles. Not in clusters. Of several, as in FlexAttention, the last one
 * usually has the blocks that need no mask, which are most; loops that continue each other are one (join_loops).
 *
 * Where it pays. The producer's warpgroup keeps few registers for each thread and the others get the
 * rest of the block's, so one block is resident. If two blocks were resident before, each
 * hides the epilogue and the barriers of the other one, and nothing is gained by taking one away.
 * If one is, the tensor cores stand still from the last product of a tile to the first one of the
 * next tile, and in each iteration until the slowest warp has reached the barrier. The producer
 * shortens the first gap by the latency of a copy and removes the second one. With delayed products
 * the second gap is the whole gain: a warpgroup multiplies while another one computes. Therefore:
 *
 *     a loop over tiles, eight warps, one resident block             always
 *     delayed products, eight warps, one resident block              always
 *     tt.warp_specialize, eight warps                                if one block is resident
 *     tt.warp_specialize, four warps                                 always: no registers are moved
 *
 * A request (lilac/schedule.h) decides instead, where there is one.
 *
 * Blocks of sixteen warps have too few registers for a thread when they begin.
 * bench/results/h200_warp_specialisation.json has the times of both kinds of kernels. */
#include "pipeline/schedule.h"
#include "products/block_demand.h"
#include "warps/specialise_warps.h"

enum { WARPGROUP = 4, REGISTER_STEP = 8, LEAST_REGISTERS = 24, TILE_LOOP_REGISTERS = 40 };

static bool is_asked(const lilac_tile_op *loop) {
    for (const lilac_tile_op *op = loop; op != NULL; op = op->parent->parent->parent) {
        if (lilac_tile_find(&op->attributes, "tt.warp_specialize") != NULL) {
            return true;
        }
    }
    return false;
}

static void find_sum_of_blocks(void *data, lilac_tile_op *op) {
    *(bool *)data |= op->code == LILAC_TILE_OP_LILAC_SUM_BLOCKS;
}

/* All warps of a block exchange sums with other blocks. */
static bool sums_blocks(const specialised *s) {
    bool found = false;
    lilac_tile_walk(s->function->body, find_sum_of_blocks, &found);
    return found;
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

/* The slot of the iteration before, if the body reads that buffer. At first it is the last one. */
static bool find_slot_before(consumer *c) {
    const specialised *s = &c->s;
    for (uint32_t k = 0; k < lilac_tile_carried_count(s->inner); k++) {
        lilac_tile_value *argument = lilac_tile_iteration_argument(s->inner, k);
        for (const lilac_tile_use *use = argument->uses; use != NULL; use = use->next) {
            if (lilac_tile_next(s->inner, k) == c->slot && use->index == 1 &&
                use->op->code == LILAC_TILE_OP_TTG_MEMDESC_INDEX) {
                int64_t first;
                if (!lilac_tile_constant(lilac_tile_init(s->inner, k), &first) ||
                    first != (int64_t)s->buffers - 1) {
                    return false;
                }
                c->before = argument;
            }
        }
    }
    return true;
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
    if (issued != c->product_count || c->release == NULL || s->full == NULL || s->ring_count == 0) {
        return false;
    }
    if (!find_slot_before(c)) {
        return false;
    }
    s->full_buffer = c->before != NULL ? s->buffers - 1 : 0;
    return c->before == NULL || (s->outer == NULL && !c->own);
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

/* Is the view of a ring's buffer one that a copy fills, or that the loop reads: in the slot of its
 * iteration, up to the wait if that releases the buffer, or of the iteration before? A delayed
 * product also reads one behind the loop, and one that is filled with zeros in front of it. */
static bool check_view(const consumer *c, const lilac_tile_op *view) {
    const specialised *s = &c->s;
    const lilac_tile_use *use = view->results[0].uses;
    const lilac_tile_block *body = s->inner->regions[0]->first;
    if (use != NULL && use->next == NULL &&
        use->op->code == LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL) {
        return view->parent == s->block || view->parent == body;
    }
    if (view->parent == s->block) {
        return c->before != NULL;
    }
    const lilac_tile_value *index = view->operands[1].value;
    return view->parent == body &&
           (index == c->slot || (c->before != NULL && index == c->before)) &&
           reads_before(&view->results[0], c->own ? c->release : body->last);
}

static bool check_ring(const consumer *c, const lilac_tile_op *ring) {
    for (const lilac_tile_use *use = ring->results[0].uses; use != NULL; use = use->next) {
        const lilac_tile_op *op = use->op;
        if (op->code != LILAC_TILE_OP_TTG_LOCAL_DEALLOC &&
            (op->code != LILAC_TILE_OP_TTG_MEMDESC_INDEX || !check_view(c, op))) {
            return false;
        }
    }
    return (uint32_t)ring->results[0].type->shape[0] == c->s.buffers;
}

typedef struct byte_count {
    const lilac_tile_op *top;
    uint64_t bytes;
} byte_count;

static void add_bytes(void *data, lilac_tile_op *op) {
    byte_count *c = data;
    if (op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC && lilac_engine_is_live_in(op, c->top)) {
        c->bytes += lilac_engine_bytes(op->results[0].type);
    }
}

/* The memory that is there at the same time as the rings, which live as long as `top`. */
static uint64_t memory_of(const specialised *s) {
    byte_count c = {.top = s->top};
    lilac_tile_walk(s->function->body, add_bytes, &c);
    return c.bytes;
}

/* Do only operations in front of this one use the value? */
static bool is_read_before(const lilac_tile_value *value, const lilac_tile_op *end) {
    bool before = true;
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        before =
            before && use->op->parent == end->parent && use->op != end && precedes(use->op, end);
    }
    return before;
}

/* Registers of a thread for what the loop carries, for operands and for results that the loop does
 * not carry. Products update their sums in place. What is only read in front of the first product,
 * such as the source of a delayed product's operand, leaves its registers to those results. */
static uint32_t registers_of(const specialised *s) {
    const lilac_tile_op *body = s->inner->regions[0]->first->first, *first = body;
    uint32_t words = LILAC_ENGINE_OTHER_REGISTERS, early = 0, results = 0;
    while (first->code != LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
        first = first->next;
    }
    for (uint32_t k = 0; k < lilac_tile_carried_count(s->inner); k++) {
        const lilac_tile_value *argument = lilac_tile_iteration_argument(s->inner, k);
        *(is_read_before(argument, first) ? &early : &words) += lilac_engine_words(argument->type);
    }
    for (const lilac_tile_op *op = first; op != NULL; op = op->next) {
        if (op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
            const lilac_tile_value *sum = op->operands[2].value;
            const bool begins = sum->op != NULL && sum->op->code == LILAC_TILE_OP_ARITH_CONSTANT;
            words += lilac_engine_words(op->operands[0].value->type);
            results += begins ? lilac_engine_words(sum->type) : 0;
        }
    }
    return words + max_u32(early, results);
}

/* setmaxnreg has 24 at least. A loop over tiles may compute coordinates from a tile's number. */
uint32_t lilac_producer_registers(const specialised *s) {
    return s->outer != NULL ? TILE_LOOP_REGISTERS : LEAST_REGISTERS;
}

/* Have the warps enough registers, beside a warpgroup with the producer's? */
static bool has_registers(const specialised *s) {
    const lilac_arch *arch = s->target->arch;
    const uint32_t threads = s->target->num_warps * arch->warp_size;
    const uint32_t producers = WARPGROUP * arch->warp_size, all = threads + producers;
    const uint32_t entry = arch->registers / all / REGISTER_STEP * REGISTER_STEP;
    return registers_of(s) <= (entry * all - producers * lilac_producer_registers(s)) / threads;
}

static bool pays(const consumer *c, uint64_t bytes) {
    const specialised *s = &c->s;
    const lilac_block_demand demand = {
        .warps = s->target->num_warps, .registers = registers_of(s), .shared_bytes = bytes};
    if (s->target->num_warps < WARPS_WITH_REGISTERS) {
        return is_asked(s->inner);
    }
    return (s->outer != NULL || c->before != NULL || is_asked(s->inner)) && has_registers(s) &&
           lilac_resident_blocks(s->target->arch, &demand) <= 1;
}

bool lilac_specialise_survey(consumer *c) {
    specialised *s = &c->s;
    if (lilac_engine_is_asked(s->inner, LILAC_SCHEDULE_PRODUCER, 0)) {
        return false;
    }
    if (s->target->num_warps % WARPGROUP != 0 || s->target->num_warps > WARPS_WITH_REGISTERS ||
        !find_surroundings(s) || sums_blocks(s) || !find_body(c) || !find_last_wait(c)) {
        return false;
    }
    for (uint32_t i = 0; i < s->ring_count; i++) {
        if (!check_ring(c, s->rings[i])) {
            return false;
        }
    }
    const uint64_t bytes = memory_of(s);
    const bool asked = lilac_engine_is_asked(s->inner, LILAC_SCHEDULE_PRODUCER, 1);
    return bytes <= s->target->arch->shared_bytes && (asked || pays(c, bytes)) &&
           lilac_copy_slice_is_possible(s);
}
