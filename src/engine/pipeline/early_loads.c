/* Loads that the addresses of copies need, one iteration before these copies.
 *
 *     %j = tt.load %jp                          %j = tt.load %jp for iteration D
 *     %p = tt.addptr %x, %j                     scf.for … iter_args(%next = %j) {
 *     %a = tt.load %p                     →       ttg.async_copy_global_to_local %x + %next
 *                                                 %j' = tt.load %jp for iteration i + D + 1
 *                                                 scf.yield %j'
 *                                               }
 *
 * Otherwise each iteration would wait for such a load before its copies start. The result is carried in
 * registers, of which MOST_WORDS of a thread may be used. A load whose own address needs a load is
 * executed with the copies, and so is what that address needs. */
#include "pipeline/pipeline.h"

enum { MOST_WORDS = 32 };

typedef struct search {
    const pipeline *p;
    bool *needed; /* by value id */
    lilac_tile_value **stack;
    uint32_t count;
} search;

static void push(search *s, lilac_tile_value *value) {
    if (!s->needed[value->id] && lilac_tile_is_inside(value, s->p->loop)) {
        s->needed[value->id] = true;
        s->stack[s->count++] = value;
    }
}

/* Marks what the load's operands need. False: another load is among it; the marks are removed. */
static bool mark_needed(search *s, const lilac_tile_op *load) {
    bool good = true;
    s->count = 0;
    for (uint32_t i = 0; i < load->operand_count; i++) {
        push(s, load->operands[i].value);
    }
    for (uint32_t next = 0; good && next < s->count; next++) {
        const lilac_tile_value *value = s->stack[next];
        if (value->op == NULL && value->index > 0) {
            push(s, lilac_tile_next(s->p->loop, value->index - 1));
        }
        good = value->op == NULL || value->op->code != LILAC_TILE_OP_TT_LOAD;
        for (uint32_t i = 0; good && value->op != NULL && i < value->op->operand_count; i++) {
            push(s, value->op->operands[i].value);
        }
    }
    for (uint32_t i = 0; !good && i < s->count; i++) {
        s->needed[s->stack[i]->id] = false;
    }
    return good;
}

/* 32-bit registers of a thread. */
static uint32_t words_of(const lilac_tile_type *type) {
    const bool tensor = lilac_tile_is_tensor(type);
    const uint32_t bits = tensor && type->layout != NULL ? type->layout->in[0].bits : 0;
    return lilac_tile_element_bits(type) > 32 ? 2U << bits : 1U << bits;
}

void lilac_pipeline_find_early_loads(pipeline_rewriting *r) {
    const pipeline *p = r->p;
    const uint32_t values = p->function->value_count + 1;
    search s = {.p = p,
                .needed = lilac_arena_array(p->arena, bool, values),
                .stack = lilac_arena_array(p->arena, lilac_tile_value *, values)};
    uint32_t words = 0;
    r->early = lilac_arena_array(p->arena, lilac_tile_op *, r->op_count + 1);
    r->near = lilac_arena_array(p->arena, lilac_tile_op *, r->op_count + 1);
    for (uint32_t i = 0; i < r->op_count; i++) {
        lilac_tile_op *op = r->ops[i];
        const uint32_t more = words_of(op->results[0].type);
        if (op->code == LILAC_TILE_OP_TT_LOAD && words + more <= MOST_WORDS &&
            mark_needed(&s, op)) {
            words += more;
            r->early[r->early_count++] = op;
        }
    }
    for (uint32_t i = 0; i < r->op_count; i++) {
        bool needed = false;
        for (uint32_t k = 0; k < r->ops[i]->result_count; k++) {
            needed |= s.needed[r->ops[i]->results[k].id];
        }
        if (needed) {
            r->near[r->near_count++] = r->ops[i];
        }
    }
}

bool lilac_pipeline_is_early(const pipeline_rewriting *r, const lilac_tile_op *op) {
    bool early = false;
    for (uint32_t i = 0; i < r->early_count; i++) {
        early |= r->early[i] == op;
    }
    return early;
}

void lilac_pipeline_clone_early(pipeline_rewriting *r, lilac_tile_value *exists,
                                lilac_tile_op *place) {
    for (uint32_t i = 0; i < r->near_count; i++) {
        lilac_tile_insert_before(place,
                                 lilac_tile_clone_mapped(r->p->module, r->near[i], r->mapping));
    }
    for (uint32_t i = 0; i < r->early_count; i++) {
        lilac_pipeline_clone_load(r, r->early[i], exists, place);
    }
}
