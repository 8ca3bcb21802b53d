/* In front of a loop, the first copies start before anything waits for a load.
 *
 *     %q = tt.load …                               %q = tt.load …
 *     %m = ttg.local_alloc %q                      ttg.async_copy_global_to_local …
 *     ttng.fence_async_shared                      ttg.async_commit_group
 *     ttg.async_copy_global_to_local …       →     %m = ttg.local_alloc %q
 *     ttg.async_commit_group                       ttng.fence_async_shared
 *     scf.for … { … %m … }                         scf.for … { … %m … }
 *
 * What is computed from a load of the same block, and is used in the loop or behind it only, moves
 * to the front of the loop: memory for loaded tensors with its fence, and pure operations. A
 * conversion moves only if the loop has the same one: its exchange needs shared memory beside the
 * rings.
 *
 * Loads stay where they are if threads copy: the addresses of their copies are computed meanwhile.
 * If there are only tensor copies, the loads start behind them, and their addresses are computed
 * there: the fence behind the init of mbarriers waits for the loads in front of it
 * (bench/results/decisions.md). */
#include "pipeline/pipeline.h"

typedef struct sinking {
    const pipeline *p;
    lilac_tile_op *place; /* the first operation that moved, or the loop */
    bool *waits;          /* by value id: computed from a load of the block */
    bool *moved;          /* by value id */
    bool orders;          /* no load moves behind an operation that was seen */
} sinking;

/* Is the operation, or the one of the loop's block that contains it, at `place` or behind it? */
static bool is_behind(const sinking *s, const lilac_tile_op *op) {
    const lilac_tile_op *behind = s->place;
    while (op != NULL && op->parent != s->p->loop->parent) {
        op = op->parent->parent->parent;
    }
    while (behind != NULL && behind != op) {
        behind = behind->next;
    }
    return op != NULL && behind != NULL;
}

static bool is_used_behind(const sinking *s, const lilac_tile_op *op) {
    bool behind = op->result_count > 0;
    for (uint32_t i = 0; i < op->result_count; i++) {
        for (const lilac_tile_use *use = op->results[i].uses; behind && use != NULL;
             use = use->next) {
            behind = is_behind(s, use->op);
        }
    }
    return behind;
}

/* Does the body convert such a tensor in the same way? */
static bool has_conversion(const pipeline *p, const lilac_tile_op *conversion) {
    const lilac_tile_op *op = p->loop->regions[0]->first->first;
    while (op != NULL && !(op->code == LILAC_TILE_OP_TTG_CONVERT_LAYOUT &&
                           op->operands[0].value->type == conversion->operands[0].value->type &&
                           op->results[0].type == conversion->results[0].type)) {
        op = op->next;
    }
    return op != NULL;
}

/* Do only operations that moved use it? */
static bool is_for_moved(const sinking *s, const lilac_tile_op *op) {
    bool moved = op->result_count == 1 && op->results[0].uses != NULL;
    for (const lilac_tile_use *use = op->results[0].uses; moved && use != NULL; use = use->next) {
        moved = use->op->result_count == 1 && s->moved[use->op->results[0].id];
    }
    return moved;
}

static bool can_sink(const sinking *s, const lilac_tile_op *op) {
    const bool tensor_copies = s->p->box_count == s->p->load_count;
    if (op->result_count == 0 || !is_used_behind(s, op) ||
        !(s->waits[op->results[0].id] || (tensor_copies && is_for_moved(s, op)))) {
        return false;
    }
    switch (op->code) {
    case LILAC_TILE_OP_TT_LOAD:
        return tensor_copies && !s->orders &&
               lilac_tile_find_integer(&op->attributes, "isVolatile", 0) == 0;
    case LILAC_TILE_OP_TTG_LOCAL_ALLOC:
        return true;
    case LILAC_TILE_OP_TTG_CONVERT_LAYOUT:
        return has_conversion(s->p, op);
    default:
        return op->region_count == 0 &&
               (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) != 0;
    }
}

/* Marks what is computed from loads in the block of `end`, in front of it. */
static void mark_waits(const sinking *s, const lilac_tile_op *end) {
    for (const lilac_tile_op *op = end->parent->first; op != end; op = op->next) {
        bool waits = op->code == LILAC_TILE_OP_TT_LOAD;
        for (uint32_t i = 0; i < op->operand_count; i++) {
            waits |= s->waits[op->operands[i].value->id];
        }
        for (uint32_t i = 0; i < op->result_count; i++) {
            s->waits[op->results[i].id] = waits;
        }
    }
}

static void sink(sinking *s, lilac_tile_op *op) {
    lilac_tile_detach(op);
    lilac_tile_insert_before(s->place, op);
    s->place = op;
    s->moved[op->results[0].id] = true;
}

/* The memory between a fence and the one in front of it. */
typedef struct fenced {
    lilac_tile_op *fence; /* NULL: none is behind */
    bool moved, stays;    /* some of the memory */
} fenced;

/* The fence of memory that moved is behind all that moved. */
static void move_fence(const sinking *s, const fenced *f, bool *made) {
    if (f->fence == NULL || !f->moved) {
        return;
    }
    if (!*made) {
        lilac_tile_insert_before(s->p->loop, lilac_tile_clone(s->p->module, f->fence));
        *made = true;
    }
    if (!f->stays) {
        lilac_tile_remove(f->fence);
    }
}

void lilac_pipeline_sink_waits(pipeline *p, const lilac_tile_op *end) {
    lilac_tile_number(p->function);
    sinking s = {.p = p,
                 .place = p->loop,
                 .waits = lilac_arena_array(p->arena, bool, p->function->value_count + 1),
                 .moved = lilac_arena_array(p->arena, bool, p->function->value_count + 1)};
    fenced f = {0};
    bool made = false;
    mark_waits(&s, end);
    for (lilac_tile_op *op = end->previous, *before; op != NULL; op = before) {
        before = op->previous;
        const bool moves = can_sink(&s, op);
        if (op->code == LILAC_TILE_OP_TTNG_FENCE_ASYNC_SHARED) {
            move_fence(&s, &f, &made);
            f = (fenced){.fence = op};
        } else if (lilac_pipeline_may_store(op)) {
            f.moved |= moves;
            f.stays |= !moves;
        }
        if (moves) {
            sink(&s, op);
        } else {
            s.orders |= (lilac_tile_summarize_effects(op).writes &
                         ~(uint32_t)(LILAC_TILE_SHARED_MEMORY | LILAC_TILE_BARRIER)) != 0;
        }
    }
    move_fence(&s, &f, &made);
}
