/* Removes what a rewritten loop computes in vain.
 *
 *     scf.for … iter_args(%p = %x, %a = %y) {          scf.for … iter_args(%a = %y) {
 *       %m = arith.cmpi slt, %k, %n             →        %b = arith.addf %a, %v
 *       %q = tt.addptr %p, %step                         scf.yield %b
 *       %b = arith.addf %a, %v                         }
 *       scf.yield %q, %b
 *     }
 *
 * Live are operations with effects other than reads, and what they use. A carried value is live if its result is used
 * or a live operation uses its argument; then what the loop yields for it is live. The rest goes: also
 * carried values that only their own next values use. */
#include "pipeline/pipeline.h"

typedef struct marking {
    lilac_tile_op *loop;
    bool *live;               /* by value id */
    lilac_tile_value **stack; /* live values whose operands are not marked yet */
    uint32_t count;
} marking;

static void mark(marking *m, lilac_tile_value *value) {
    if (m->live[value->id]) {
        return;
    }
    m->live[value->id] = true;
    m->stack[m->count++] = value;
}

static void mark_operands(void *data, lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
        mark(data, op->operands[i].value);
    }
}

static bool may_go(const lilac_tile_op *op) {
    return op->region_count == 0 &&
           ((lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) != 0 ||
            (op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC && op->operand_count > 0) ||
            op->code == LILAC_TILE_OP_TTG_LOCAL_LOAD ||
            (op->code == LILAC_TILE_OP_TT_LOAD &&
             lilac_tile_find_integer(&op->attributes, "isVolatile", 0) == 0));
}

static void mark_all(marking *m) {
    lilac_tile_block *body = m->loop->regions[0]->first;
    for (lilac_tile_op *op = body->first; op != body->last; op = op->next) {
        if (!may_go(op)) {
            mark_operands(m, op);
            for (uint32_t r = 0; r < op->region_count; r++) {
                lilac_tile_walk(op->regions[r], mark_operands, m);
            }
        }
    }
    for (uint32_t i = 0; i < m->loop->result_count; i++) {
        if (m->loop->results[i].uses != NULL) {
            mark(m, lilac_tile_next(m->loop, i));
            mark(m, lilac_tile_iteration_argument(m->loop, i));
        }
    }
    while (m->count > 0) {
        const lilac_tile_value *value = m->stack[--m->count];
        if (value->op != NULL && value->op->parent == body) {
            mark_operands(m, value->op);
        } else if (value->op == NULL && value->block == body && value->index > 0) {
            mark(m, lilac_tile_next(m->loop, value->index - 1));
        }
    }
}

static bool is_live(const marking *m, const lilac_tile_op *op) {
    bool live = !may_go(op);
    for (uint32_t i = 0; i < op->result_count; i++) {
        live |= m->live[op->results[i].id];
    }
    return live;
}

void lilac_pipeline_remove_dead(pipeline *p) {
    lilac_tile_op *loop = p->loop;
    lilac_tile_block *body = loop->regions[0]->first;
    lilac_tile_number(p->function);
    const uint32_t count = p->function->value_count + 1;
    marking m = {.loop = loop,
                 .live = lilac_arena_array(p->arena, bool, count),
                 .stack = lilac_arena_array(p->arena, lilac_tile_value *, count)};
    mark_all(&m);
    const uint32_t carried = lilac_tile_carried_count(loop);
    bool *removed = lilac_arena_array(p->arena, bool, carried + 1);
    for (uint32_t i = 0; i < carried; i++) {
        lilac_tile_value *argument = lilac_tile_iteration_argument(loop, i);
        removed[i] = !m.live[argument->id] && loop->results[i].uses == NULL;
        if (removed[i]) {
            lilac_tile_set_next(loop, i, argument);
        }
    }
    for (lilac_tile_op *op = body->last->previous, *previous; op != NULL; op = previous) {
        previous = op->previous;
        if (!is_live(&m, op)) {
            lilac_tile_remove(op);
        }
    }
    const char *why = lilac_tile_remove_phis(p->module, loop, removed);
    (void)why; /* a carried value that is only passed on changes nothing */
}
