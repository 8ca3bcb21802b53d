/* The allocations that each memory descriptor may name.
 *
 * Descriptors pass along edges: from the operand of a view to its result, and from the values
 * that a loop, a branch or a select chooses among to the value that it chooses:
 *
 *     scf.for     initial value, yielded value       →  argument, result
 *     scf.while   initial value, value of scf.yield  →  argument of the first region
 *                 value of scf.condition             →  argument of the second region, result
 *     scf.if      value of either branch             →  result
 *     select      either operand                     →  result
 *     warp_specialize   operand                      →  argument of each partition
 *                       value of ttg.warp_yield      →  result
 *
 * The sets, the alignments and the possible shifts are the least solution along the edges.
 *
 * A chosen value whose other sources all equal one value r equals r too. If r is visible at the
 * operation that chooses, the value needs no SIMT value of its own. A buffer that a loop only
 * passes on therefore costs nothing. A poison value equals r in a branch, but not in a loop:
 * there the argument is one iteration behind the yielded value. */
#include "memory/buffers.h"
#include "memory/memory_type.h"

typedef struct walk {
    lilac_lowering *l;
    lilac_lower_buffers *found;
    uint32_t buffer_capacity, flow_capacity, edge_capacity;
} walk;

/* ---- collection -------------------------------------------------------------------------- */

/* A larger copy of a full array. */
#define GROW(w, list, type, count, capacity)                                                       \
    do {                                                                                           \
        if ((count) == (capacity)) {                                                               \
            (capacity) = (capacity) == 0 ? 16 : 2 * (capacity);                                    \
            type *grown = lilac_arena_array((w)->l->arena, type, capacity);                        \
            for (uint32_t n = 0; n < (count); n++) {                                               \
                grown[n] = (list)[n];                                                              \
            }                                                                                      \
            (list) = grown;                                                                        \
        }                                                                                          \
    } while (0)

static void add_flow(walk *w, const lilac_tile_value *value, const lilac_tile_op *carrier) {
    lilac_lower_buffers *found = w->found;
    if (value->type->kind != LILAC_TILE_MEMDESC) {
        return;
    }
    GROW(w, found->flows, lilac_lower_flow *, found->flow_count, w->flow_capacity);
    lilac_lower_flow *flow = lilac_arena_new(w->l->arena, lilac_lower_flow);
    *flow = (lilac_lower_flow){.value = value,
                               .carrier = carrier,
                               .equal = value,
                               .alignment = LILAC_LOWER_BUFFER_ALIGNMENT};
    found->flows[found->flow_count++] = flow;
    found->by_value[value->id] = flow;
}

static void add_edge(walk *w, const lilac_tile_value *to, const lilac_tile_value *from,
                     const lilac_tile_op *op) {
    lilac_lower_buffers *found = w->found;
    if (to->type->kind != LILAC_TILE_MEMDESC || from->type->kind != LILAC_TILE_MEMDESC) {
        return;
    }
    bool poison = from->op != NULL && from->op->code == LILAC_TILE_OP_UB_POISON;
    GROW(w, found->edges, lilac_lower_flow_edge, found->edge_count, w->edge_capacity);
    found->edges[found->edge_count++] = (lilac_lower_flow_edge){
        .to = found->by_value[to->id], .from = poison ? NULL : found->by_value[from->id], .op = op};
}

/* The terminator of a region's only block with at least `count` operands; NULL: there is none. */
static const lilac_tile_op *end_of(const lilac_tile_op *op, uint32_t region, uint32_t count) {
    const lilac_tile_block *block = op->regions[region]->first;
    const lilac_tile_op *end = block != NULL && block->next == NULL ? block->last : NULL;
    return end != NULL && end->operand_count >= count ? end : NULL;
}

static void add_for(walk *w, const lilac_tile_op *op) {
    enum { INITS = 3 };
    uint32_t count = op->result_count;
    const lilac_tile_block *body = op->regions[0]->first;
    const lilac_tile_op *end = end_of(op, 0, count);
    if (end == NULL || op->operand_count != INITS + count || body->argument_count != count + 1) {
        return; /* the lowering refuses it */
    }
    for (uint32_t i = 0; i < count; i++) {
        const lilac_tile_value *init = op->operands[INITS + i].value;
        add_edge(w, body->arguments[i + 1], init, op);
        add_edge(w, body->arguments[i + 1], end->operands[i].value, op);
        add_edge(w, &op->results[i], init, op);
        add_edge(w, &op->results[i], end->operands[i].value, op);
    }
}

static void add_while(walk *w, const lilac_tile_op *op) {
    uint32_t carried = op->operand_count, passed = op->result_count;
    const lilac_tile_op *condition = end_of(op, 0, passed + 1), *yield = end_of(op, 1, carried);
    if (condition == NULL || yield == NULL || op->regions[0]->first->argument_count != carried ||
        op->regions[1]->first->argument_count != passed) {
        return;
    }
    for (uint32_t i = 0; i < passed; i++) {
        const lilac_tile_value *next = condition->operands[i + 1].value;
        add_edge(w, op->regions[1]->first->arguments[i], next, op);
        add_edge(w, &op->results[i], next, op);
    }
    for (uint32_t i = 0; i < carried; i++) {
        const lilac_tile_value *argument = op->regions[0]->first->arguments[i];
        add_edge(w, argument, op->operands[i].value, op);
        add_edge(w, argument, yield->operands[i].value, op);
    }
}

static void add_if(walk *w, const lilac_tile_op *op) {
    for (uint32_t side = 0; side < 2; side++) {
        const lilac_tile_op *end = end_of(op, side, op->result_count);
        for (uint32_t i = 0; end != NULL && i < op->result_count; i++) {
            add_edge(w, &op->results[i], end->operands[i].value, op);
        }
    }
}

static void add_partitions(walk *w, const lilac_tile_op *op) {
    const lilac_tile_op *end = end_of(op, 0, op->result_count);
    for (uint32_t r = 1; r < op->region_count; r++) {
        for (uint32_t i = 0; i < op->operand_count; i++) {
            add_edge(w, op->regions[r]->first->arguments[i], op->operands[i].value, op);
        }
    }
    for (uint32_t i = 0; end != NULL && i < op->result_count; i++) {
        add_edge(w, &op->results[i], end->operands[i].value, op);
    }
}

static void add_edges(walk *w, const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_TTG_WARP_SPECIALIZE:
        add_partitions(w, op);
        break;
    case LILAC_TILE_OP_SCF_FOR:
        add_for(w, op);
        break;
    case LILAC_TILE_OP_SCF_WHILE:
        add_while(w, op);
        break;
    case LILAC_TILE_OP_SCF_IF:
        add_if(w, op);
        break;
    default:
        break;
    }
    uint32_t first, end;
    for (bool view = lilac_tile_view_operands(op, &first, &end); view && first < end; first++) {
        add_edge(w, &op->results[0], op->operands[first].value, op);
    }
}

static void collect_region(walk *w, const lilac_tile_region *region) {
    lilac_lower_buffers *found = w->found;
    for (const lilac_tile_block *b = region->first; b != NULL; b = b->next) {
        for (uint32_t i = 0; i < b->argument_count; i++) {
            add_flow(w, b->arguments[i], region->parent);
        }
        for (const lilac_tile_op *op = b->first; op != NULL; op = op->next) {
            bool chooses = op->region_count > 0 || op->code == LILAC_TILE_OP_ARITH_SELECT;
            for (uint32_t i = 0; i < op->result_count; i++) {
                add_flow(w, &op->results[i], chooses ? op : NULL);
            }
            if (op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC) {
                const lilac_tile_type *type = op->results[0].type;
                GROW(w, found->list, lilac_lower_buffer, found->count, w->buffer_capacity);
                found->list[found->count++] = (lilac_lower_buffer){
                    .op = op, .bytes = lilac_lower_memory_size(type, type->alloc_rank)};
            }
            for (uint32_t i = 0; i < op->region_count; i++) {
                collect_region(w, op->regions[i]);
            }
            add_edges(w, op);
        }
    }
}

/* ---- sets, alignments, shifts ------------------------------------------------------------- */

/* Applies the effect of a view to the alignment and the possible shifts of its operand. A number
 * that is not known yet may be any number. */
static void apply_view(const lilac_tile_op *op, uint32_t *alignment, uint64_t *shift) {
    const lilac_tile_type *from = op->operands[0].value->type;
    if (from->layout == NULL) {
        return;
    }
    if (op->code == LILAC_TILE_OP_TTG_MEMDESC_SUBSLICE) {
        const lilac_tile_attribute *offsets = lilac_tile_find(&op->attributes, "offsets");
        uint64_t offset = 0;
        lilac_reason why;
        if (offsets != NULL && offsets->count == from->layout->out_count &&
            lilac_lower_memory_offset(from->layout, offsets->integers, &offset, &why)) {
            *shift |= offset;
        }
    } else if (op->code == LILAC_TILE_OP_TTG_MEMDESC_INDEX && lilac_lower_is_buffer_array(from)) {
        uint64_t stride = (uint64_t)lilac_lower_buffer_stride(from, op->results[0].type);
        stride &= ~stride + 1;
        *alignment = stride < *alignment ? (uint32_t)stride : *alignment;
    } else if (op->code == LILAC_TILE_OP_TTG_MEMDESC_INDEX) {
        *shift |= (1ULL << lilac_layout_in_bits(from->layout, "offset")) - 1;
    }
}

/* Adds the allocations, the alignment and the shifts of `from` to those of `to`. */
static bool join(const lilac_lower_buffers *found, const lilac_lower_flow_edge *edge) {
    lilac_lower_flow *to = edge->to;
    const lilac_lower_flow *from = edge->from;
    if (from == NULL) {
        return false;
    }
    uint32_t alignment = from->alignment;
    uint64_t shift = from->shift;
    if (to->carrier == NULL) {
        apply_view(edge->op, &alignment, &shift);
    }
    bool changed = alignment < to->alignment || (shift & ~to->shift) != 0;
    to->alignment = alignment < to->alignment ? alignment : to->alignment;
    to->shift |= shift;
    for (uint32_t i = 0; i < found->words; i++) {
        changed |= (from->buffers[i] & ~to->buffers[i]) != 0;
        to->buffers[i] |= from->buffers[i];
    }
    return changed;
}

static void solve(walk *w) {
    lilac_lower_buffers *found = w->found;
    found->words = found->count / 64 + 1;
    for (uint32_t i = 0; i < found->flow_count; i++) {
        found->flows[i]->buffers = lilac_arena_array(w->l->arena, uint64_t, found->words);
    }
    for (uint32_t i = 0; i < found->count; i++) {
        found->by_value[found->list[i].op->results[0].id]->buffers[i / 64] |= 1ULL << (i % 64);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < found->edge_count; i++) {
            changed |= join(found, &found->edges[i]);
        }
    }
}

/* ---- equal values ------------------------------------------------------------------------- */

static const lilac_tile_value *root_of(const lilac_lower_buffers *found,
                                       const lilac_tile_value *value) {
    while (found->by_value[value->id]->equal != value) {
        value = found->by_value[value->id]->equal;
    }
    return value;
}

/* Visits all edges once. A chosen value equals its only source other than itself. */
static bool find_equal(walk *w, const lilac_tile_value **source, bool *several) {
    lilac_lower_buffers *found = w->found;
    for (uint32_t i = 0; i < found->flow_count; i++) {
        source[found->flows[i]->value->id] = NULL;
        several[found->flows[i]->value->id] = false;
    }
    for (uint32_t i = 0; i < found->edge_count; i++) {
        const lilac_lower_flow_edge *edge = &found->edges[i];
        uint32_t id = edge->to->value->id;
        if (edge->from == NULL) {
            several[id] |= lilac_lower_is_loop(edge->op);
            continue;
        }
        const lilac_tile_value *root = root_of(found, edge->from->value);
        if (root != edge->to->value) {
            several[id] |= source[id] != NULL && source[id] != root;
            source[id] = root;
        }
    }
    bool changed = false;
    for (uint32_t i = 0; i < found->flow_count; i++) {
        lilac_lower_flow *flow = found->flows[i];
        uint32_t id = flow->value->id;
        if (flow->carrier != NULL && flow->equal == flow->value && source[id] != NULL &&
            !several[id] && root_of(found, source[id]) != flow->value) {
            flow->equal = source[id];
            changed = true;
        }
    }
    return changed;
}

/* Is the value defined in a block around the operation? */
static bool is_visible(const lilac_tile_value *value, const lilac_tile_op *op) {
    const lilac_tile_block *block = value->op != NULL ? value->op->parent : value->block;
    while (op != NULL && op->parent != block) {
        op = op->parent->parent->parent;
    }
    return op != NULL;
}

static void solve_equal(walk *w) {
    lilac_lower_buffers *found = w->found;
    uint32_t values = w->l->function->value_count;
    const lilac_tile_value **source =
        lilac_arena_array(w->l->arena, const lilac_tile_value *, values);
    bool *several = lilac_arena_array(w->l->arena, bool, values);
    while (find_equal(w, source, several)) {
    }
    for (uint32_t i = 0; i < found->flow_count; i++) {
        source[found->flows[i]->value->id] = root_of(found, found->flows[i]->value);
    }
    for (uint32_t i = 0; i < found->flow_count; i++) {
        lilac_lower_flow *flow = found->flows[i];
        const lilac_tile_value *root = source[flow->value->id];
        bool visible = flow->carrier != NULL && is_visible(root, flow->carrier);
        flow->equal = visible ? root : flow->value;
    }
}

/* ---- the function ------------------------------------------------------------------------- */

/* Does the region define a descriptor without a descriptor as operand? All others are derived from
 * such ones. */
static bool has_descriptors(const lilac_tile_region *region) {
    for (const lilac_tile_block *b = region->first; b != NULL; b = b->next) {
        for (const lilac_tile_op *op = b->first; op != NULL; op = op->next) {
            if (op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC ||
                (op->code == LILAC_TILE_OP_UB_POISON &&
                 op->results[0].type->kind == LILAC_TILE_MEMDESC)) {
                return true;
            }
            for (uint32_t i = 0; i < op->region_count; i++) {
                if (has_descriptors(op->regions[i])) {
                    return true;
                }
            }
        }
    }
    return false;
}

lilac_lower_buffers *lilac_lower_find_buffers(lilac_lowering *l) {
    if (!has_descriptors(l->function->body)) {
        return NULL;
    }
    walk w = {.l = l, .found = lilac_arena_new(l->arena, lilac_lower_buffers)};
    w.found->by_value = lilac_arena_array(l->arena, lilac_lower_flow *, l->function->value_count);
    collect_region(&w, l->function->body);
    solve(&w);
    solve_equal(&w);
    return w.found;
}
