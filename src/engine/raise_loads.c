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
 * and those that are loaded before it and used behind it. Blocks with matrix products stay as they
 * are: their loads are copied ahead by pipeline_loops. */
#include "raise.h"

typedef struct raising {
    const lilac_target *target;
    bool *waits; /* by value: it depends on a load of its block */
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

/* Notes which values of a block depend on its loads. False: the block has a matrix product. */
static bool note_waits(const raising *r, const lilac_tile_block *block) {
    for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
        bool waits = op->code == LILAC_TILE_OP_TT_LOAD;
        for (uint32_t i = 0; i < op->operand_count; i++) {
            waits |= r->waits[op->operands[i].value->id];
        }
        for (uint32_t i = 0; i < op->result_count; i++) {
            r->waits[op->results[i].id] = waits;
        }
        if (op->code == LILAC_TILE_OP_TT_DOT || op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
            return false;
        }
    }
    return true;
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

/* The registers of loads in front of an exchange that are used behind it. */
static uint64_t words_across(const raising *r, const lilac_tile_op *exchange) {
    uint64_t words = 0;
    for (const lilac_tile_op *op = exchange->previous; op != NULL; op = op->previous) {
        if (op->code == LILAC_TILE_OP_TT_LOAD && used_behind(&op->results[0], exchange)) {
            words += lilac_words_held(r->target, op->results[0].type);
        }
    }
    return words;
}

/* Moves loads from behind an exchange to its front. */
static void raise_over(raising *r, lilac_tile_op *exchange) {
    lilac_raise to = {.block = exchange->parent,
                      .limit = exchange->results[0].id - 1,
                      .last = exchange->previous,
                      .waits = r->waits};
    uint64_t words = words_across(r, exchange);
    for (lilac_tile_op *op = exchange->next, *next; op != NULL && !stops_loads(op); op = next) {
        next = op->next;
        if (!lilac_is_plain_load(op)) {
            continue;
        }
        const uint64_t more = lilac_words_held(r->target, op->results[0].type);
        if (words + more <= LILAC_MOST_WORDS && lilac_can_rise(&to, &op->results[0])) {
            lilac_rise(&to, &op->results[0]);
            words += more;
            r->changed = true;
        }
    }
}

static void visit(raising *r, const lilac_tile_region *region) {
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        const bool free = note_waits(r, block);
        for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            if (free && exchanges(op) && r->waits[op->results[0].id]) {
                raise_over(r, op);
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
        visit(&r, function->body);
        lilac_arena_destroy(arena);
    }
    *changed = r.changed;
    return true;
}
