/* The operations of the kernel in the order of their numbers, its loops, and the plans of each. */
#include "internal.h"

#include <lilac/tile_loops.h>

typedef struct collection {
    lilac_explanation *e;
    uint32_t next; /* index of the next operation */
} collection;

static void count(void *data, lilac_tile_op *op) {
    (void)op;
    ++*(uint32_t *)data;
}

static uint32_t add_loop(lilac_explanation *e, const lilac_tile_op *op, uint32_t number,
                         uint32_t parent) {
    uint64_t trip_count;
    const bool known = op->code == LILAC_TILE_OP_SCF_FOR &&
                       lilac_tile_trip_count(op, &trip_count) && trip_count < 1U << 30;
    e->loops[e->loop_count++] = (lilac_explain_loop){
        .operation = number,
        .parent = parent,
        .trip_count = known ? (int64_t)trip_count : -1,
        .estimate = known ? (double)trip_count : (double)lilac_engine_estimated_trip_count(op)};
    return e->loop_count;
}

static void visit(collection *c, const lilac_tile_region *region,
                  const lilac_explain_operation *around) {
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            lilac_explain_operation *o = &c->e->operations[c->next++];
            const uint32_t number = c->next;
            *o = *around;
            o->op = op;
            lilac_explain_operation inside = *o;
            inside.parent = number;
            inside.depth = o->depth + 1;
            inside.rare |= lilac_tile_find(&op->attributes, "lilac.rare") != NULL;
            if (lilac_tile_is_loop(op)) {
                inside.loop = add_loop(c->e, op, number, o->loop);
            }
            for (uint32_t r = 0; r < op->region_count; r++) {
                visit(c, op->regions[r], &inside);
            }
        }
    }
}

/* The plans of other functions of the module have numbers, too. */
static uint32_t number_of_plan(const lilac_explanation *e, const lilac_lowered_plan *plan) {
    const uint32_t number = explain_number_of(e, plan->op);
    return number > 0 && e->operations[number - 1].op == plan->op ? number : 0;
}

static void collect_plans(lilac_explanation *e) {
    for (const lilac_lowered_plan *p = e->lowered.first; p != NULL; p = p->next) {
        const uint32_t number = number_of_plan(e, p);
        if (number > 0) {
            e->plans[number - 1].count++;
        }
    }
    for (uint32_t i = 0; i < e->count; i++) {
        e->plans[i].list =
            lilac_arena_array(e->arena, const lilac_lowered_plan *, e->plans[i].count + 1);
        e->plans[i].count = 0;
    }
    for (const lilac_lowered_plan *p = e->lowered.first; p != NULL; p = p->next) {
        const uint32_t number = number_of_plan(e, p);
        if (number > 0) {
            explain_plans *plans = &e->plans[number - 1];
            plans->list[plans->count++] = p;
        }
    }
}

void explain_collect(lilac_explanation *e) {
    lilac_tile_walk(e->function->body, count, &e->count);
    e->operations = lilac_arena_array(e->arena, lilac_explain_operation, e->count + 1);
    e->plans = lilac_arena_array(e->arena, explain_plans, e->count + 1);
    e->executions = lilac_arena_array(e->arena, double, e->count + 1);
    e->certain = lilac_arena_array(e->arena, bool, e->count + 1);
    e->emitted = lilac_arena_array(e->arena, explain_emitted, e->count + 1);
    e->traffic = lilac_arena_array(e->arena, double, e->count + 1);
    e->lines = lilac_arena_array(e->arena, double, e->count + 1);
    e->requests = lilac_arena_array(e->arena, double, e->count + 1);
    e->pieces = lilac_arena_array(e->arena, double, e->count + 1);
    e->span = lilac_arena_array(e->arena, double, e->count + 1);
    e->cached = lilac_arena_array(e->arena, double, e->count + 1);
    e->active = lilac_arena_array(e->arena, double, e->count + 1);
    e->again = lilac_arena_array(e->arena, uint32_t, e->count + 1);
    e->distinct = lilac_arena_array(e->arena, double, e->count + 1);
    e->footprint = lilac_arena_array(e->arena, double, e->count + 1);
    e->share = lilac_arena_array(e->arena, double, e->count + 1);
    e->tensor = lilac_arena_array(e->arena, double, e->count + 1);
    e->loops = lilac_arena_array(e->arena, lilac_explain_loop, e->count + 1);
    e->segments = lilac_arena_array(e->arena, explain_segment, e->count + 1);
    collection c = {.e = e};
    const lilac_explain_operation outside = {0};
    visit(&c, e->function->body, &outside);
    collect_plans(e);
}
