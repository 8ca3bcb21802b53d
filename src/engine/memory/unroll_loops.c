/* unroll_loops: loads of several iterations are in flight at the same time.
 *
 * An iteration of a loop waits for its loads. If the loop has one load, a thread has one in flight.
 * Three transformations change that. They apply to the innermost scf.for that loads from global memory
 * and writes nothing: a load must not pass a store that may write what it reads.
 *
 * 1. Peeling. Where the body asks for the first iteration, that one is executed before the loop, and
 *    the branch is folded in both. (Welford's algorithm, as torch.compile generates it.)
 *
 *     %r = scf.for %i = %c0 to %n step %s {          first branch of body with i ↦ 0
 *       %first = arith.cmpi eq, %i, %c0         →    %r = scf.for %i = %s to %n step %s {
 *       scf.if %first { … } else { … }                 second branch
 *
 * 2. Unrolling, where the trip count is a constant. If all iterations are at most MOST_WORK
 *    instructions (FEW_WORK where they are at most FEW_ITERATIONS), they replace the loop: offsets, masks
 *    and branches become constants, and the assembler can move loads across iterations. Otherwise the
 *    loop is unrolled by a factor. By Little's law a multiprocessor keeps its share of the bandwidth busy with
 *
 *        bytes in flight = latency of memory · bandwidth of a multiprocessor
 *
 *    The grid is not known here; it may have no more blocks than the device has multiprocessors, so
 *    the loads of one block must suffice:
 *
 *        factor = bytes in flight / bytes that a block loads in an iteration
 *
 *    at most MOST_FACTOR, and at most as many iterations as have LILAC_MOST_WORDS registers of loads and
 *    MOST_BODY instructions. A loop of more than FEW_ITERATIONS iterations whose factor is 1 stays.
 *    bench/unroll_sweep.py compares factors. Loops whose trip count is not known stay: ptxas unrolls
 *    those without barriers by itself (src/target/ptx/control.c). The attribute
 *    tt.loop_unroll_factor of a loop overrides the rule.
 *
 * 3. Hoisting. The loads of as many iterations as fit in LILAC_MOST_WORDS registers are moved behind the
 *    loads of the first of them:
 *
 *     %a = tt.load %p                          %a = tt.load %p
 *     %s = "tt.reduce"(%a) …                   %b = tt.load %q
 *     %b = tt.load %q                    →     %s = "tt.reduce"(%a) …
 *     %t = "tt.reduce"(%b) …                   %t = "tt.reduce"(%b) …
 *
 * A loop of at most FEW_ITERATIONS iterations that also stores is unrolled completely where its code stays
 * short. Its loads are not moved.
 *
 * The operations on each element keep their order: no sum is reassociated. */
#include "memory/raise.h"
#include "simplify/fold_branches.h"

#include <lilac/tile_loops.h>

#include <string.h>

enum {
    MOST_WORK = 512,      /* instructions of a thread in an unrolled loop */
    MOST_BODY = 256,      /* instructions of a thread in a loop that remains */
    FEW_ITERATIONS = 4,   /* iterations of a loop that is unrolled without any other gain */
    FEW_WORK = 1024,      /* instructions of a thread in such a loop */
    MOST_ITERATIONS = 64, /* iterations of a loop that is unrolled completely */
    MOST_FACTOR = 8,      /* of a loop that remains */
    EXCHANGE_WORK = 16,   /* instructions of an operation that exchanges values between threads */
    LEAST_SLOW = 8,       /* issue slots of an operation that is computed by several instructions */
    SLOW_WORK = 6         /* instructions of a division or a mathematical function */
};

typedef struct unroller {
    lilac_tile_module *module;
    lilac_tile_function *function;
    const lilac_target *target;
    bool changed;
} unroller;

/* ---- what an iteration executes ---------------------------------------------------------- */

typedef struct iteration {
    const unroller *u;
    uint32_t loads;   /* of global memory, in the body itself */
    uint64_t words;   /* registers of a thread that their results occupy */
    uint64_t bytes;   /* that they read for all threads of the block */
    uint64_t work;    /* instructions of a thread */
    bool nested;      /* a loop is inside */
    bool is_volatile; /* a load is */
    bool converts;    /* a tensor changes its layout inside */
} iteration;

static bool has_trait(const lilac_tile_op *op, uint32_t traits) {
    return (lilac_tile_op_info_get(op->code)->traits & traits) != 0;
}

static bool is_slow(const lilac_tile_op *op) {
    return lilac_engine_issues(op) >= LEAST_SLOW;
}

/* Offsets and masks are mostly computed once for a vector. */
static uint64_t work_of_result(const unroller *u, const lilac_tile_type *type) {
    const lilac_tile_type *element = lilac_tile_element(type);
    const uint64_t elements = lilac_elements_held(u->target, type);
    const bool index = lilac_tile_is_pointer(element) || (element->kind == LILAC_TILE_SCALAR &&
                                                          !lilac_scalar_is_float(element->scalar));
    return index ? (elements + 3) / 4 : elements;
}

static uint64_t work_of(const unroller *u, const lilac_tile_op *op) {
    uint64_t work = 0;
    if (op->code == LILAC_TILE_OP_ARITH_CONSTANT || op->code == LILAC_TILE_OP_TT_SPLAT ||
        has_trait(op, LILAC_TILE_SHAPE | LILAC_TILE_TERMINATOR)) {
        return 0;
    }
    if (op->code == LILAC_TILE_OP_TT_LOAD) {
        return 1 + lilac_words_held(u->target, op->results[0].type) /
                       (u->target->arch->vector_bytes / 4);
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        work += work_of_result(u, op->results[i].type);
    }
    if (!lilac_stays_in_thread(op)) {
        return work + EXCHANGE_WORK;
    }
    return is_slow(op) ? SLOW_WORK * work : work;
}

static void add_op(void *data, lilac_tile_op *op) {
    iteration *t = data;
    t->work += work_of(t->u, op);
    t->nested |= lilac_tile_is_loop(op);
    t->is_volatile |= op->code == LILAC_TILE_OP_TT_LOAD && !lilac_is_plain_load(op);
    t->converts |= op->code == LILAC_TILE_OP_TTG_CONVERT_LAYOUT;
}

static iteration survey(const unroller *u, const lilac_tile_op *loop) {
    iteration t = {.u = u};
    lilac_tile_walk(loop->regions[0], add_op, &t);
    for (const lilac_tile_op *op = loop->regions[0]->first->first; op != NULL; op = op->next) {
        if (lilac_is_plain_load(op)) {
            const lilac_tile_type *type = op->results[0].type;
            t.loads++;
            t.words += lilac_words_held(u->target, type);
            t.bytes += (uint64_t)lilac_tile_element_count(type) *
                       ((lilac_tile_element_bits(type) + 7) / 8);
        }
    }
    return t;
}

/* Loads, and no effect that a load must not pass. */
static bool only_loads(const lilac_tile_op *loop) {
    const lilac_tile_effect_summary effects = lilac_tile_summarize_effects(loop);
    return effects.writes == 0 && effects.waits == 0 &&
           (effects.reads & LILAC_TILE_GLOBAL_MEMORY) != 0;
}

/* ---- the factor -------------------------------------------------------------------------- */

/* The iterations whose loads fit in LILAC_MOST_WORDS registers, at least 1. */
static uint32_t depth_of(const iteration *t) {
    const uint64_t depth = t->words > 0 ? LILAC_MOST_WORDS / t->words : 1;
    return depth > 1 ? (uint32_t)depth : 1;
}

/* By Little's law: what a multiprocessor needs in flight. */
static uint64_t bytes_in_flight(const lilac_arch *arch) {
    return (uint64_t)arch->costs->latency * 16 * arch->sector_bytes / arch->costs->sector;
}

/* Would more loads be in flight, and are more needed? */
static bool gains(const iteration *t) {
    return depth_of(t) > 1 && t->bytes < bytes_in_flight(t->u->target->arch);
}

/* The factor of a loop that remains. */
static uint32_t rule(const iteration *t, uint64_t trip_count) {
    const uint64_t in_flight = bytes_in_flight(t->u->target->arch);
    uint32_t factor = 1;
    while (factor < MOST_FACTOR && factor * t->bytes < in_flight && 2 * factor <= depth_of(t) &&
           2 * factor * t->work <= MOST_BODY && 2 * factor <= trip_count) {
        factor *= 2;
    }
    return factor;
}

/* May all iterations replace the loop? */
static bool stays_short(const iteration *t, uint64_t trip_count) {
    return trip_count <= MOST_ITERATIONS &&
           trip_count * t->work <= (trip_count <= FEW_ITERATIONS ? FEW_WORK : MOST_WORK);
}

/* A loop that loads and stores, whose iterations replace it for constant offsets and masks only: their
 * loads stay behind the stores of earlier iterations. Conversions would need more shared memory and
 * registers (bench/results/decisions.md). */
static bool is_short(const iteration *t, uint64_t trip_count) {
    return t->loads > 0 && !t->nested && !t->converts && !t->is_volatile && trip_count > 1 &&
           trip_count <= FEW_ITERATIONS && stays_short(t, trip_count);
}

/* 1: the loop stays as it is; at least its trip count: no loop remains. */
static uint32_t factor_of(const iteration *t, const lilac_tile_op *loop, bool streams,
                          const uint64_t *trip_count) {
    const int64_t wanted = lilac_tile_find_integer(&loop->attributes, "tt.loop_unroll_factor", 0);
    if (wanted > 0) {
        return wanted < UINT16_MAX ? (uint32_t)wanted : UINT16_MAX;
    }
    if (trip_count == NULL) {
        return 1;
    }
    if (!streams) {
        return is_short(t, *trip_count) ? (uint32_t)*trip_count : 1;
    }
    if (stays_short(t, *trip_count) && (*trip_count <= FEW_ITERATIONS || gains(t))) {
        return *trip_count > 0 ? (uint32_t)*trip_count : 1;
    }
    return rule(t, *trip_count);
}

/* ---- hoisting ---------------------------------------------------------------------------- */

/* The loads from `first` to `end`, as many in each iteration. Moves those of the iterations that
 * fit in LILAC_MOST_WORDS registers behind the last load of the first of these. */
static void hoist(const unroller *u, lilac_tile_op *first, const lilac_tile_op *end,
                  const iteration *t) {
    const uint32_t window = depth_of(t) * t->loads;
    lilac_raise to = {.block = first->parent};
    uint32_t count = 0;
    lilac_tile_number(u->function);
    for (lilac_tile_op *op = first, *next; op != end; op = next) {
        next = op->next;
        if (!lilac_is_plain_load(op)) {
            continue;
        }
        if (count++ % window < t->loads) {
            to.limit = op->results[0].id;
            to.last = op;
        } else if (lilac_can_rise(&to, &op->results[0])) {
            lilac_rise(&to, &op->results[0]);
        }
    }
}

/* ---- the first iteration ----------------------------------------------------------------- */

/* A comparison of the induction variable with the lower bound, for equality, that a branch of the
 * body uses; NULL: there is none. `*equal`: it is true in the first iteration. */
static lilac_tile_op *asks_for_first(const lilac_tile_op *loop, bool *equal) {
    const lilac_tile_value *lower = lilac_tile_lower_bound(loop);
    const lilac_tile_value *variable = lilac_tile_induction_variable(loop);
    for (lilac_tile_op *op = loop->regions[0]->first->first; op != NULL; op = op->next) {
        int64_t a, b;
        if (op->code != LILAC_TILE_OP_ARITH_CMPI || op->operands[0].value != variable) {
            continue;
        }
        const lilac_tile_value *other = op->operands[1].value;
        const char *predicate = lilac_tile_find_text(&op->attributes, "predicate");
        *equal = predicate != NULL && strcmp(predicate, "eq") == 0;
        const bool same = other == lower || (lilac_tile_constant(other, &a) &&
                                             lilac_tile_constant(lower, &b) && a == b);
        bool branch = false;
        for (const lilac_tile_use *use = op->results[0].uses; use != NULL; use = use->next) {
            branch |= use->op->code == LILAC_TILE_OP_SCF_IF;
        }
        if (same && branch && (*equal || (predicate != NULL && strcmp(predicate, "ne") == 0))) {
            return op;
        }
    }
    return NULL;
}

static void fold_body(const unroller *u, const lilac_tile_region *region) {
    lilac_engine_fold_branches(u->module, region->first, NULL, NULL);
}

/* The operation behind `before`; NULL: the block's first. */
static lilac_tile_op *behind(const lilac_tile_block *block, const lilac_tile_op *before) {
    return before != NULL ? before->next : block->first;
}

/* The induction variable of all iterations but the first differs from the lower bound. */
static void peel_first(unroller *u, lilac_tile_op *loop, bool *removed) {
    bool equal = false;
    uint64_t trip_count;
    lilac_tile_op *compare = asks_for_first(loop, &equal);
    int64_t step, lower;
    *removed = false;
    if (compare == NULL || !lilac_tile_constant(lilac_tile_step(loop), &step) || step < 1 ||
        !lilac_tile_constant(lilac_tile_lower_bound(loop), &lower) ||
        (lilac_tile_trip_count(loop, &trip_count) && trip_count == 0)) {
        return;
    }
    lilac_tile_op *before = loop->previous, *after = loop->next;
    lilac_tile_block *block = loop->parent;
    if (lilac_tile_peel_first(u->module, loop, 1, removed) != NULL) {
        return;
    }
    u->changed = true;
    if (!*removed) {
        const lilac_tile_type *type = compare->results[0].type;
        lilac_tile_op *known = lilac_engine_make_constant(u->module, compare, type, equal ? 0 : 1);
        lilac_tile_replace_uses(&compare->results[0], &known->results[0]);
        lilac_tile_remove(compare);
        fold_body(u, loop->regions[0]);
    }
    lilac_tile_op *end = *removed ? after : loop;
    lilac_engine_fold_branches(u->module, block, before, end);
    for (lilac_tile_op *op = behind(block, before); op != end; op = op->next) {
        if (op->code == LILAC_TILE_OP_SCF_IF) { /* the iteration, where the loop may have none */
            fold_body(u, op->regions[0]);
        }
    }
}

/* ---- the pass ---------------------------------------------------------------------------- */

static void unroll(unroller *u, lilac_tile_op *loop) {
    uint64_t trip_count;
    bool removed;
    peel_first(u, loop, &removed);
    if (removed) {
        return;
    }
    const bool known = lilac_tile_trip_count(loop, &trip_count);
    const iteration t = survey(u, loop);
    const bool streams = t.loads > 0 && !t.nested && !t.is_volatile && only_loads(loop);
    const uint32_t factor = factor_of(&t, loop, streams, known ? &trip_count : NULL);
    lilac_tile_op *before = loop->previous, *after = loop->next;
    lilac_tile_block *block = loop->parent;
    const bool whole = known && trip_count <= factor && (streams || factor > 1);
    if ((factor == 1 && !whole) || lilac_tile_unroll(u->module, loop, factor, &removed) != NULL) {
        return;
    }
    u->changed = true;
    if (removed) {
        lilac_engine_fold_branches(u->module, block, before, after);
    }
    if (streams) {
        hoist(u, removed ? behind(block, before) : loop->regions[0]->first->first,
              removed ? after : NULL, &t);
    }
    if (!removed && known && loop->next != after) { /* the iterations that remain */
        unroll(u, loop->next);
    }
}

/* Inner loops first. */
static void visit(unroller *u, const lilac_tile_region *region) {
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
            next = op->next;
            for (uint32_t r = 0; r < op->region_count; r++) {
                visit(u, op->regions[r]);
            }
            if (op->code == LILAC_TILE_OP_SCF_FOR &&
                lilac_tile_terminator(op->regions[0]) != NULL) {
                unroll(u, op);
            }
        }
    }
}

bool lilac_engine_unroll_loops(lilac_tile_module *module, const lilac_target *target,
                               bool *changed) {
    unroller u = {.module = module, .target = target};
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        if (function->body != NULL) {
            u.function = function;
            visit(&u, function->body);
        }
    }
    *changed = u.changed;
    return true;
}
