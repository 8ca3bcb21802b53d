/* Dependences between operations: within a block, and between the iterations of scf.for.
 *
 * A use of an iteration argument is followed through the carried values to the operation that
 * computes it:
 *
 *     scf.for … iter_args(%x = …, %y = …) {
 *       %b = f(%y)                              %y ← %x of the iteration before
 *       %a = g(…)                               %x ← %a of the iteration before
 *       scf.yield %a, %x                        therefore a → b with distance 2
 *     }
 */
#include "internal.h"

#include <lilac/tile_loops.h>

/* The operation of `block` that is or holds this one; NULL: it is outside of the block. */
static const lilac_tile_op *holder_in(const lilac_tile_block *block, const lilac_tile_op *op) {
    while (op && op->parent != block) {
        op = op->parent && op->parent->parent ? op->parent->parent->parent : NULL;
    }
    return op;
}

/* ---- one block -------------------------------------------------------------------------- */

static bool uses_result(const lilac_tile_op *user, const lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->result_count; i++) {
        for (const lilac_tile_use *use = op->results[i].uses; use; use = use->next) {
            if (holder_in(user->parent, use->op) == user) {
                return true;
            }
        }
    }
    return false;
}

static bool is_terminator(const lilac_tile_op *op) {
    return (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_TERMINATOR) != 0;
}

bool lilac_tile_may_exchange(const lilac_tile_op *a, const lilac_tile_op *b) {
    if (is_terminator(a) || is_terminator(b) || uses_result(a, b) || uses_result(b, a)) {
        return false;
    }
    lilac_tile_effect_summary first = lilac_tile_summarize_effects(a);
    lilac_tile_effect_summary second = lilac_tile_summarize_effects(b);
    return !lilac_tile_effects_conflict(&first, &second);
}

static bool is_before(const lilac_tile_op *a, const lilac_tile_op *b) {
    while (a && a != b) {
        a = a->next;
    }
    return a != NULL;
}

const lilac_tile_op *lilac_tile_move_before(lilac_tile_op *op, lilac_tile_op *place) {
    bool down = is_before(op, place);
    const lilac_tile_op *end = down ? place : place->previous;
    for (const lilac_tile_op *at = op; op != place;) {
        at = down ? at->next : at->previous;
        if (at == end) {
            break;
        }
        if (!lilac_tile_may_exchange(op, at)) {
            return at;
        }
    }
    if (op != place) {
        lilac_tile_detach(op);
        lilac_tile_insert_before(place, op);
    }
    return NULL;
}

/* ---- loops ------------------------------------------------------------------------------ */

typedef struct collector {
    lilac_tile_dependences *result;
    lilac_arena *arena;
    const lilac_tile_op *loop;
    tile_table numbers; /* operation of the body → its number + 1 */
    uint32_t to;        /* the operation whose dependences are collected */
    uint32_t first;     /* the first of these in the list */
    uint32_t capacity;
} collector;

/* Keeps the dependence with the smallest distance between two operations, one for values and one
 * for effects. */
static void add(collector *c, const lilac_tile_dependence *dependence) {
    lilac_tile_dependences *result = c->result;
    for (uint32_t i = c->first; i < result->count; i++) {
        lilac_tile_dependence *old = &result->list[i];
        if (old->from != dependence->from || !old->value != !dependence->value) {
            continue;
        }
        if (dependence->distance < old->distance) {
            *old = *dependence;
        }
        return;
    }
    if (result->count == c->capacity) {
        c->capacity = c->capacity ? 2 * c->capacity : 64;
        lilac_tile_dependence *list =
            lilac_arena_array(c->arena, lilac_tile_dependence, c->capacity);
        for (uint32_t i = 0; i < result->count; i++) {
            list[i] = result->list[i];
        }
        result->list = list;
    }
    result->list[result->count++] = *dependence;
}

static void add_value(collector *c, const lilac_tile_value *value) {
    const lilac_tile_block *body = c->loop->regions[0]->first;
    uint32_t distance = 0, carried = lilac_tile_carried_count(c->loop);
    /* Carried values that only exchange their places come from no operation of the body. */
    while (value->block == body && value->index > 0 && distance <= carried) {
        value = lilac_tile_next(c->loop, value->index - 1);
        distance++;
    }
    const lilac_tile_op *op = value->op && value->op->parent == body ? value->op : NULL;
    if (!op) {
        return;
    }
    uint32_t from = (uint32_t)(uintptr_t)tile_table_get(&c->numbers, op) - 1;
    lilac_tile_dependence dependence = {from, c->to, distance, value, 0};
    add(c, &dependence);
}

static void add_operands(void *data, lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
        add_value(data, op->operands[i].value);
    }
}

static void add_effects(collector *c, const lilac_tile_effect_summary *effects) {
    const lilac_tile_effect_summary *b = &effects[c->to];
    for (uint32_t from = 0; from < c->result->op_count; from++) {
        const lilac_tile_effect_summary *a = &effects[from];
        if (!lilac_tile_effects_conflict(a, b)) {
            continue;
        }
        lilac_tile_dependence dependence = {from, c->to, from < c->to ? 0 : 1, NULL,
                                            (a->writes & (b->reads | b->writes)) |
                                                (a->reads & b->writes)};
        add(c, &dependence);
    }
}

void lilac_tile_find_dependences(lilac_tile_dependences *result, lilac_arena *arena,
                                 const lilac_tile_op *loop) {
    const lilac_tile_block *body = loop->regions[0]->first;
    collector c = {.result = result, .arena = arena, .loop = loop};
    *result = (lilac_tile_dependences){0};
    for (lilac_tile_op *op = body->first; op != body->last; op = op->next) {
        *tile_table_at(&c.numbers, op) = (void *)(uintptr_t)++result->op_count;
    }
    result->ops = lilac_arena_array(arena, lilac_tile_op *, result->op_count);
    lilac_tile_effect_summary *effects =
        lilac_arena_array(arena, lilac_tile_effect_summary, result->op_count);
    for (lilac_tile_op *op = body->first; op != body->last; op = op->next, c.to++) {
        result->ops[c.to] = op;
        effects[c.to] = lilac_tile_summarize_effects(op);
    }
    for (c.to = 0; c.to < result->op_count; c.to++) {
        lilac_tile_op *op = result->ops[c.to];
        c.first = result->count;
        add_operands(&c, op);
        for (uint32_t r = 0; r < op->region_count; r++) {
            lilac_tile_walk(op->regions[r], add_operands, &c);
        }
        add_effects(&c, effects);
    }
    tile_table_clear(&c.numbers);
}

const lilac_tile_dependence *lilac_tile_find_violation(const lilac_tile_dependences *dependences,
                                                       const uint32_t *stage,
                                                       const uint32_t *order) {
    for (uint32_t i = 0; i < dependences->count; i++) {
        const lilac_tile_dependence *d = &dependences->list[i];
        uint64_t from = stage[d->from], to = (uint64_t)stage[d->to] + d->distance;
        bool follows = order ? order[d->to] > order[d->from] : d->to > d->from;
        if (to < from || (to == from && !follows)) {
            return d;
        }
    }
    return NULL;
}
