/* raise_loads: the loads of a block precede the exchanges that wait for other loads.
 *
 * An exchange through shared memory has a barrier of the block, and an assembler moves no load
 * across it. A load behind the barrier therefore begins when the loads in front of it have ended.
 *
 *     %a = tt.load %p                          %a = tt.load %p
 *     %s = ttg.convert_layout %a         →     %b = tt.load %q
 *     %b = tt.load %q                          %s = ttg.convert_layout %a
 *     %t = arith.addf %s, %b                   %t = arith.addf %s, %b
 *
 * A load stays behind what may write what it reads, behind operations with regions other than those
 * of combiners, and where its address needs an exchange of loaded values. The results of loads that
 * a thread holds during an exchange have at most LILAC_MOST_WORDS registers: those that are moved,
 * and those that are loaded before it and used behind it. Bodies of loops with matrix products stay as they
 * are: their loads are copied ahead by pipeline_loops. So do blocks with products of wgmma, whose accumulators and
 * operands in registers are more than what is counted here (bench/results/decisions.md).
 *
 * The registers of a moved load can take resident blocks, which hide latencies too. With b resident
 * blocks that wait for memory twice, MEMORY for the first load and t for the second, a
 * multiprocessor completes b / (MEMORY + t) blocks in a unit of time; with b' blocks whose loads
 * overlap, b' / MEMORY. Addresses that are the same in all programs are read from the cache. */
#include "memory/raise.h"

#include <lilac/occupancy.h>
#include <lilac/tile_loops.h>

enum {
    MEMORY = 4,
    CACHE = 1,           /* latencies of loads, as a ratio, on a busy device */
    OTHER_REGISTERS = 24 /* of a thread for addresses, counters and temporary values */
};

typedef struct raising {
    const lilac_target *target;
    bool *waits;         /* by value: it depends on a load of its block */
    bool *varies;        /* by value: it depends on the program's number */
    uint64_t most_words; /* live across an exchange of the block */
    bool changed;
} raising;

/* An operation that may exchange values between threads: a conversion, reduction, scan, gather. */
static bool exchanges(const lilac_tile_op *op) {
    const uint32_t traits = lilac_tile_op_info_get(op->code)->traits;
    return (traits & LILAC_TILE_PURE) != 0 && op->operand_count > 0 && op->result_count > 0 &&
           !lilac_stays_in_thread(op);
}

/* May a load not move from behind the operation to its front? */
static bool stops_loads(const lilac_tile_op *op) {
    const lilac_tile_effect_summary effects = lilac_tile_summarize_effects(op);
    return effects.writes != 0 || effects.waits != 0 || effects.pending != 0 ||
           (op->region_count > 0 && !exchanges(op));
}

/* Notes which values of a block depend on its loads and on the program. False: the block has a matrix product, and is
 * the body of a loop or has its operands in memory. */
static bool note_dependences(const raising *r, const lilac_tile_block *block) {
    const lilac_tile_op *around = block->parent->parent;
    const bool in_loop = around != NULL && lilac_tile_is_loop(around);
    bool product = false;
    for (uint32_t i = 0; i < block->argument_count; i++) {
        const lilac_tile_value *argument = block->arguments[i];
        for (uint32_t k = 0; around != NULL && k < around->operand_count; k++) {
            r->varies[argument->id] |= r->varies[around->operands[k].value->id];
        }
    }
    for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
        bool waits = op->code == LILAC_TILE_OP_TT_LOAD;
        bool varies = op->code == LILAC_TILE_OP_TT_GET_PROGRAM_ID;
        for (uint32_t i = 0; i < op->operand_count; i++) {
            waits |= r->waits[op->operands[i].value->id];
            varies |= r->varies[op->operands[i].value->id];
        }
        for (uint32_t i = 0; i < op->result_count; i++) {
            r->waits[op->results[i].id] = waits;
            r->varies[op->results[i].id] = varies;
        }
        product |= op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT ||
                   (op->code == LILAC_TILE_OP_TT_DOT && in_loop);
    }
    return !product;
}

/* Is a result used behind an operation of the same block, or in another block? */
static bool used_behind(const lilac_tile_value *value, const lilac_tile_op *op) {
    const uint32_t limit = op->results[0].id;
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        const lilac_tile_op *user = use->op;
        const bool before = user == op || (user->parent == op->parent && user->result_count > 0 &&
                                           user->results[0].id < limit);
        if (!before) {
            return true;
        }
    }
    return false;
}

/* The registers of values in front of an exchange that are used behind it: of loads, and of all
 * that is computed from loads or carried by a loop. Splats and shape operations have none of their
 * own. */
static void count_words_across(const raising *r, const lilac_tile_op *exchange, uint64_t *loads,
                               uint64_t *all) {
    *loads = *all = 0;
    for (uint32_t i = 0; i < exchange->parent->argument_count; i++) {
        const lilac_tile_type *type = exchange->parent->arguments[i]->type;
        *all += lilac_tile_is_tensor(type) ? lilac_words_held(r->target, type) : 0;
    }
    for (const lilac_tile_op *op = exchange->previous; op != NULL; op = op->previous) {
        const bool counts = op->result_count > 0 && r->waits[op->results[0].id] &&
                            (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_SHAPE) == 0 &&
                            lilac_tile_is_tensor(op->results[0].type);
        for (uint32_t i = 0; counts && i < op->result_count; i++) {
            if (used_behind(&op->results[i], exchange)) {
                const uint64_t words = lilac_words_held(r->target, op->results[i].type);
                *all += words;
                *loads += op->code == LILAC_TILE_OP_TT_LOAD ? words : 0;
            }
        }
    }
}

static uint32_t resident_blocks(const raising *r, uint64_t words) {
    const lilac_block_demand demand = {
        .warps = r->target->num_warps,
        .registers = (uint32_t)min_u64(words + OTHER_REGISTERS, LILAC_MOST_REGISTERS)};
    return lilac_resident_blocks(r->target->arch, &demand);
}

/* The loads that can move over an exchange, without moving them: their number, and their words. */
typedef struct raised_loads {
    uint32_t count;
    uint64_t words;
    bool varies; /* the address of one */
} raised_loads;

/* Is it faster to move these loads, with `across` other words live during the exchange? */
static bool pays(const raising *r, const raised_loads *loads, uint64_t across) {
    const uint32_t before = resident_blocks(r, r->most_words);
    const uint32_t after = resident_blocks(r, max_u64(r->most_words, across + loads->words));
    return after * (MEMORY + (loads->varies ? MEMORY : CACHE)) >= before * MEMORY;
}

/* Looks for loads behind an exchange that can move to its front, and moves them if asked to. */
static raised_loads raise_over(raising *r, lilac_tile_op *exchange, uint64_t held, bool move) {
    lilac_raise to = {.block = exchange->parent,
                      .limit = exchange->results[0].id - 1,
                      .last = exchange->previous,
                      .waits = r->waits};
    raised_loads loads = {0};
    for (lilac_tile_op *op = exchange->next, *next; op != NULL && !stops_loads(op); op = next) {
        next = op->next;
        if (!lilac_is_plain_load(op)) {
            continue;
        }
        const uint64_t more = lilac_words_held(r->target, op->results[0].type);
        if (held + loads.words + more > LILAC_MOST_WORDS || !lilac_can_rise(&to, &op->results[0])) {
            continue;
        }
        loads.count++;
        loads.words += more;
        loads.varies |= r->varies[op->operands[0].value->id];
        if (move) {
            lilac_rise(&to, &op->results[0]);
        }
    }
    return loads;
}

/* An exchange of loaded values that may have a barrier of the block. The first operation of a block
 * waits for no load of it. */
static bool waits_for_loads(const raising *r, const lilac_tile_op *op) {
    const bool in_warps = op->code == LILAC_TILE_OP_TT_REDUCE && !lilac_engine_crosses_warps(op);
    return op->previous != NULL && exchanges(op) && !in_warps && r->waits[op->results[0].id];
}

static void visit_exchange(raising *r, lilac_tile_op *exchange) {
    uint64_t held, across;
    count_words_across(r, exchange, &held, &across);
    const raised_loads loads = raise_over(r, exchange, held, false);
    if (loads.count > 0 && pays(r, &loads, across)) {
        raise_over(r, exchange, held, true);
        r->changed = true;
    }
}

/* The most words that are live across an exchange of the block. */
static uint64_t most_words(const raising *r, const lilac_tile_block *block) {
    uint64_t most = 0, loads, across;
    for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
        if (waits_for_loads(r, op)) {
            count_words_across(r, op, &loads, &across);
            most = max_u64(most, across);
        }
    }
    return most;
}

static void visit(raising *r, const lilac_tile_region *region) {
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        const bool free = note_dependences(r, block);
        const uint64_t most = free ? most_words(r, block) : 0;
        for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            if (free && waits_for_loads(r, op)) {
                r->most_words = most;
                visit_exchange(r, op);
            }
            for (uint32_t i = 0; i < op->region_count && !exchanges(op); i++) {
                visit(r, op->regions[i]);
            }
        }
    }
}

bool lilac_engine_raise_loads(lilac_tile_module *module, const lilac_target *target,
                              bool *changed) {
    raising r = {.target = target};
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        if (function->body == NULL) {
            continue;
        }
        lilac_tile_number(function);
        lilac_arena *arena = lilac_arena_create();
        r.waits = lilac_arena_array(arena, bool, function->value_count + 1);
        r.varies = lilac_arena_array(arena, bool, function->value_count + 1);
        visit(&r, function->body);
        lilac_arena_destroy(arena);
    }
    *changed = r.changed;
    return true;
}
