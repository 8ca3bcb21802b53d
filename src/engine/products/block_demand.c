/* The registers and the shared memory that a function needs, estimated from its tensors.
 *
 *     %s = product …                  live: sum, %s
 *     %p = math.exp2 %s               live: sum, %p        in place, since %s ends here
 *     %t = arith.truncf %p            live: sum, %t
 *     %n = product of %t … %sum       live: %n
 *
 * One backward walk over the operations counts the words of live tensors. These take none:
 * pointers, indices and masks, which an assembler computes again where they are used; constants
 * and splats; broadcasts and other shape operations, which are names of their operand; loads
 * that become copies to shared memory. A value from outside a loop that the loop uses is live in
 * the whole loop. Both branches of scf.if count as live at the same time.
 *
 * Before tensors have layouts, the words are counted at products, at operations with regions, such as
 * reductions and loops, and at the end of blocks only: what elementwise operations between those compute
 * from each other need not be there for all elements at a time. */
#include "products/block_demand.h"

#include <lilac/tile_loops.h>

typedef struct liveness {
    const lilac_tile_op *loop; /* in which the most words are searched */
    bool *live;                /* by value id */
    uint32_t threads;          /* of a block, where tensors have no layouts yet; else 0 */
    uint32_t words, most;
    bool inside;                      /* the walk is in the loop */
    uint32_t begun_count, most_begun; /* values in the order in which they became live */
    const lilac_tile_value **begun;
} liveness;

uint64_t lilac_engine_bytes(const lilac_tile_type *type) {
    const uint32_t bits = lilac_tile_element_bits(type);
    const uint32_t parts = type->layout != NULL ? lilac_layout_part_bits(type->layout) : 0;
    return ((uint64_t)lilac_tile_element_count(type) * (bits < 8 ? 8 : bits) / 8) >> parts;
}

uint32_t lilac_engine_words(const lilac_tile_type *type) {
    if (!lilac_tile_is_tensor(type) || type->layout == NULL || type->layout->in_count == 0) {
        return 0;
    }
    const uint64_t free = lilac_layout_free_bits(type->layout, "register");
    const uint32_t bits = type->layout->in[0].bits - (uint32_t)__builtin_popcountll(free);
    return (uint32_t)(((UINT64_C(1) << bits) * lilac_tile_element_bits(type) + 31) / 32);
}

uint32_t lilac_engine_run_bits(const lilac_tile_type *type) {
    uint32_t bits = lilac_tile_element_bits(type);
    const int in = type->layout == NULL ? -1 : lilac_layout_in(type->layout, "register");
    if (in >= 0) {
        const uint64_t *columns =
            type->layout->columns + lilac_layout_in_start(type->layout, (uint32_t)in);
        for (uint32_t i = 0;
             i < type->layout->in[in].bits && columns[0] != 0 && columns[i] == columns[0] << i;
             i++) {
            bits *= 2;
        }
    }
    return bits;
}

/* The value whose registers these are. */
static const lilac_tile_value *source_of(const lilac_tile_value *value) {
    while (value->op != NULL) {
        switch (value->op->code) {
        case LILAC_TILE_OP_TT_BROADCAST:
        case LILAC_TILE_OP_TT_EXPAND_DIMS:
        case LILAC_TILE_OP_TT_RESHAPE:
        case LILAC_TILE_OP_TT_TRANS:
            value = value->op->operands[0].value;
            break;
        default:
            return value;
        }
    }
    return value;
}

static bool becomes_copy(const lilac_tile_value *value);

static bool is_load(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TT_LOAD || op->code == LILAC_TILE_OP_TT_DESCRIPTOR_LOAD;
}

/* Before operands have layouts: is the user a product, or a transposition that only products use? */
static bool is_operand(const lilac_tile_value *value, const lilac_tile_op *user) {
    return value->type->layout == NULL &&
           (user->code == LILAC_TILE_OP_TT_DOT ||
            (user->code == LILAC_TILE_OP_TT_TRANS && becomes_copy(user->results)));
}

static bool becomes_copy(const lilac_tile_value *value) {
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        if (use->op->code != LILAC_TILE_OP_TTG_LOCAL_ALLOC &&
            use->op->code != LILAC_TILE_OP_TTG_CONVERT_LAYOUT && !is_operand(value, use->op)) {
            return false;
        }
    }
    return true;
}

static bool is_product(const lilac_tile_op *op) {
    return op != NULL &&
           (op->code == LILAC_TILE_OP_TT_DOT || op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT);
}

/* Integers are indices, apart from loaded ones and sums of products. */
static bool is_data(const lilac_tile_value *value) {
    const lilac_tile_op *op = value->op;
    const lilac_tile_type *element = value->type->element;
    if (element->kind != LILAC_TILE_SCALAR) {
        return false;
    }
    if (op == NULL || op->code == LILAC_TILE_OP_SCF_FOR) {
        const lilac_tile_op *loop = op != NULL ? op : value->block->parent->parent;
        for (uint32_t i = 0; loop != NULL && loop->code == LILAC_TILE_OP_SCF_FOR &&
                             i < lilac_tile_carried_count(loop);
             i++) {
            if (value == &loop->results[i] || value == lilac_tile_iteration_argument(loop, i)) {
                op = lilac_tile_next(loop, i)->op;
            }
        }
    }
    return lilac_scalar_is_float(element->scalar) || is_product(op) || (op != NULL && is_load(op));
}

static bool is_counted(const lilac_tile_value *value) {
    const lilac_tile_op *op = value->op;
    if (!lilac_tile_is_tensor(value->type) || !is_data(value)) {
        return false;
    }
    return op == NULL ||
           (op->code != LILAC_TILE_OP_ARITH_CONSTANT && op->code != LILAC_TILE_OP_TT_SPLAT &&
            !(is_load(op) && becomes_copy(value)));
}

static uint32_t words_of(const liveness *l, const lilac_tile_type *type) {
    if (l->threads == 0) {
        return lilac_engine_words(type);
    }
    const uint64_t bits =
        (uint64_t)lilac_tile_element_count(type) * lilac_tile_element_bits(type) / l->threads;
    return (uint32_t)((bits + 31) / 32);
}

static void count(liveness *l) {
    l->most = max_u32(l->most, l->inside ? l->words : 0);
}

static void begin(liveness *l, const lilac_tile_value *value) {
    value = source_of(value);
    if (is_counted(value) && !l->live[value->id]) {
        l->live[value->id] = true;
        l->words += words_of(l, value->type);
        if (l->begun_count < l->most_begun) {
            l->begun[l->begun_count++] = value;
        }
        if (l->threads == 0) {
            count(l);
        }
    }
}

static void end(liveness *l, const lilac_tile_value *value) {
    if (l->live[value->id]) {
        l->live[value->id] = false;
        l->words -= words_of(l, value->type);
    }
}

typedef struct outer_uses {
    liveness *l;
    const lilac_tile_op *loop;
} outer_uses;

static void begin_outer(void *data, lilac_tile_op *op) {
    outer_uses *o = data;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_tile_value *value = source_of(op->operands[i].value);
        if (!lilac_tile_is_inside(value, o->loop)) {
            begin(o->l, value);
        }
    }
}

static void walk(liveness *l, const lilac_tile_region *region);

/* Of the branches of a conditional one is executed: what only one uses is not live in the other. */
static void walk_branches(liveness *l, const lilac_tile_op *op) {
    const uint32_t first = l->begun_count;
    uint32_t kept = first;
    for (uint32_t r = 0; r < op->region_count; r++) {
        const uint32_t mark = l->begun_count;
        walk(l, op->regions[r]);
        for (uint32_t i = mark; i < l->begun_count; i++) {
            if (l->live[l->begun[i]->id]) {
                end(l, l->begun[i]);
                l->begun[kept++] = l->begun[i];
            }
        }
        l->begun_count = kept;
    }
    l->begun_count = first;
    for (uint32_t i = first; i < kept; i++) {
        begin(l, l->begun[i]);
    }
}

static void walk(liveness *l, const lilac_tile_region *region) {
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (const lilac_tile_op *op = block->last; op != NULL; op = op->previous) {
            const bool whole =
                l->threads > 0 && (is_product(op) || op->region_count > 0 || op->next == NULL);
            if (whole) {
                count(l);
            }
            for (uint32_t i = 0; i < op->result_count; i++) {
                end(l, &op->results[i]);
            }
            if (op->code == LILAC_TILE_OP_SCF_IF) {
                walk_branches(l, op);
            }
            for (uint32_t r = 0; op->code != LILAC_TILE_OP_SCF_IF && r < op->region_count; r++) {
                if (lilac_tile_is_loop(op)) {
                    outer_uses o = {l, op};
                    lilac_tile_walk(op->regions[r], begin_outer, &o);
                }
                l->inside |= op == l->loop;
                walk(l, op->regions[r]);
                l->inside &= op != l->loop;
            }
            for (uint32_t i = 0; i < op->operand_count; i++) {
                begin(l, op->operands[i].value);
            }
            if (whole) {
                count(l);
            }
        }
        for (uint32_t i = 0; i < block->argument_count; i++) {
            end(l, block->arguments[i]);
        }
    }
}

static uint32_t most_words(const lilac_tile_function *function, const lilac_tile_op *loop,
                           uint32_t threads) {
    lilac_arena *arena = lilac_arena_create();
    liveness l = {.loop = loop,
                  .threads = threads,
                  .live = lilac_arena_array(arena, bool, function->value_count + 1),
                  .most_begun = 2 * function->value_count + 1};
    l.begun = lilac_arena_array(arena, const lilac_tile_value *, l.most_begun);
    walk(&l, function->body);
    lilac_arena_destroy(arena);
    return l.most;
}

uint32_t lilac_engine_live_words(const lilac_tile_function *function, const lilac_tile_op *loop) {
    return most_words(function, loop, 0);
}

uint32_t lilac_engine_live_words_of(const lilac_tile_function *function, const lilac_tile_op *loop,
                                    uint32_t threads) {
    return most_words(function, loop, threads);
}

/* ---- shared memory --------------------------------------------------------------------------- */

/* The operation of this block that is `op` or has it in its regions; NULL: none. */
static const lilac_tile_op *in_block(const lilac_tile_op *op, const lilac_tile_block *block) {
    while (op != NULL && op->parent != block) {
        op = op->parent->parent->parent;
    }
    return op;
}

static bool is_behind(const lilac_tile_op *op, const lilac_tile_op *other) {
    for (other = other->next; other != NULL && other != op; other = other->next) {
    }
    return other != NULL;
}

/* Is the result the operand's memory, or memory for a tensor? */
static bool is_name(const lilac_tile_op *op) {
    uint32_t first, end;
    return op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC ||
           op->code == LILAC_TILE_OP_TTG_CONVERT_LAYOUT ||
           lilac_tile_view_operands(op, &first, &end);
}

/* May an operation use the memory, or the tensor, that is `place`, of its block, or behind it? */
static bool is_used_from(const lilac_tile_value *memory, const lilac_tile_op *place) {
    for (const lilac_tile_use *use = memory->uses; use != NULL; use = use->next) {
        const lilac_tile_op *user = in_block(use->op, place->parent);
        if (user == NULL || user == place || is_behind(user, place) ||
            user == place->parent->last ||
            (is_name(use->op) && is_used_from(&use->op->results[0], place))) {
            return true;
        }
    }
    return false;
}

bool lilac_engine_is_live_in(const lilac_tile_op *alloc, const lilac_tile_op *loop) {
    const lilac_tile_op *place = in_block(loop, alloc->parent);
    return place != NULL ? is_behind(place, alloc) && is_used_from(&alloc->results[0], place)
                         : lilac_tile_is_inside(&alloc->results[0], loop);
}

/* The buffers that a load has as soon as it is a copy to a ring; 0: it is none. */
static uint64_t ring_bytes(const lilac_tile_op *load, uint32_t buffers) {
    const bool ring = load->code == LILAC_TILE_OP_TT_LOAD && lilac_tile_is_in_loop(load) &&
                      lilac_tile_is_tensor(load->results[0].type) &&
                      load->results[0].uses != NULL && becomes_copy(&load->results[0]);
    return ring ? buffers * lilac_engine_bytes(load->results[0].type) : 0;
}

/* Does a loop use the memory, perhaps through transpositions of it? */
static bool is_used_in_loop(const lilac_tile_value *memory) {
    for (const lilac_tile_use *use = memory->uses; use != NULL; use = use->next) {
        const lilac_tile_op *op = use->op;
        if (op->code == LILAC_TILE_OP_TTG_MEMDESC_TRANS ? is_used_in_loop(&op->results[0])
                                                        : lilac_tile_is_in_loop(op)) {
            return true;
        }
    }
    return false;
}

uint64_t lilac_engine_ring_bytes(const lilac_tile_op *op, uint32_t buffers) {
    if (op->code != LILAC_TILE_OP_TTG_LOCAL_ALLOC) {
        return ring_bytes(op, buffers);
    }
    const lilac_tile_op *source = op->operand_count > 0 ? op->operands[0].value->op : NULL;
    const bool ring = source != NULL && ring_bytes(source, 1) > 0;
    return !ring && is_used_in_loop(&op->results[0]) ? lilac_engine_bytes(op->results[0].type) : 0;
}

typedef struct byte_count {
    const lilac_tile_op *loop;
    uint64_t bytes;
    uint32_t buffers;
} byte_count;

static void add_bytes(void *data, lilac_tile_op *op) {
    byte_count *c = data;
    if (op->result_count == 1 && lilac_engine_is_live_in(op, c->loop)) {
        c->bytes += lilac_engine_ring_bytes(op, c->buffers);
    }
}

lilac_block_demand lilac_engine_block_demand(const lilac_tile_function *function,
                                             const lilac_tile_op *loop,
                                             const lilac_target *target) {
    byte_count c = {.loop = loop, .buffers = target->num_stages};
    lilac_tile_walk(function->body, add_bytes, &c);
    return (lilac_block_demand){.warps = target->num_warps,
                                .registers = lilac_engine_live_words(function, loop) +
                                             LILAC_ENGINE_OTHER_REGISTERS,
                                .shared_bytes = c.bytes};
}

static void find_exchange(void *data, lilac_tile_op *op) {
    bool *found = data;
    switch (op->code) {
    case LILAC_TILE_OP_TT_REDUCE:
        *found |= lilac_engine_crosses_warps(op);
        break;
    case LILAC_TILE_OP_TTG_CONVERT_LAYOUT:
    case LILAC_TILE_OP_TT_SCAN:
    case LILAC_TILE_OP_TT_GATHER:
    case LILAC_TILE_OP_TT_HISTOGRAM:
        *found |= op->result_count > 0;
        break;
    default:
        break;
    }
}

uint64_t lilac_engine_exchange_reserve(const lilac_tile_op *loop, const lilac_arch *arch) {
    bool found = false;
    lilac_tile_walk(loop->regions[0], find_exchange, &found);
    return found ? arch->shared_bytes / 16 : 0;
}

/* ---- overlaps -------------------------------------------------------------------------------- */

bool lilac_engine_overlap_pays(const lilac_arch *arch, const lilac_block_demand *before,
                               const lilac_block_demand *after) {
    const uint32_t blocks = lilac_resident_blocks(arch, after);
    return after->registers <= LILAC_MOST_REGISTERS &&
           (blocks > 1 || lilac_resident_blocks(arch, before) <= 1);
}
