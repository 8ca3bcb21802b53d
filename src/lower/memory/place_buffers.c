/* The lifetime of each allocation of shared memory, and its place.
 *
 * Operations are numbered in the order of the text; one with regions spans the numbers of those
 * inside. The lifetime of an allocation is an interval of numbers. It begins at the allocation,
 * and it covers, for each descriptor d that may name the allocation,
 *
 *     each use of d, up to the end of the operation in d's block that contains the use
 *     if the use starts asynchronous accesses, the wait that completes them
 *     the whole loop, if d is an argument or a result of it
 *
 * First fit: each allocation is placed at the lowest bytes that no allocation with an overlapping
 * lifetime occupies.
 *
 * An allocation in a loop has the same bytes in each iteration. So the buffer of one iteration must
 * not be in use when the next iteration allocates; otherwise the kernel is refused. */
#include "memory/buffers.h"
#include "operations.h"

#include <stdlib.h>

typedef lilac_lower_span span;

typedef struct placing {
    lilac_lowering *l;
    lilac_lower_buffers *buffers;
    uint32_t count;
    span *spans; /* sorted by address of the operation */
} placing;

/* ---- numbers of operations ----------------------------------------------------------------- */

static uint32_t count_ops(const lilac_tile_region *region) {
    uint32_t count = 0;
    for (const lilac_tile_block *b = region->first; b != NULL; b = b->next) {
        for (const lilac_tile_op *op = b->first; op != NULL; op = op->next) {
            count++;
            for (uint32_t i = 0; i < op->region_count; i++) {
                count += count_ops(op->regions[i]);
            }
        }
    }
    return count;
}

static void number_region(placing *p, const lilac_tile_region *region) {
    for (const lilac_tile_block *b = region->first; b != NULL; b = b->next) {
        for (const lilac_tile_op *op = b->first; op != NULL; op = op->next) {
            span *own = &p->spans[p->count++];
            *own = (span){.op = op, .begin = p->count};
            for (uint32_t i = 0; i < op->region_count; i++) {
                number_region(p, op->regions[i]);
            }
            own->end = p->count;
        }
    }
}

static int compare_spans(const void *a, const void *b) {
    uintptr_t x = (uintptr_t)((const span *)a)->op, y = (uintptr_t)((const span *)b)->op;
    return x < y ? -1 : x > y;
}

static const span *span_of(const placing *p, const lilac_tile_op *op) {
    const span key = {.op = op};
    return bsearch(&key, p->spans, p->count, sizeof key, compare_spans);
}

/* ---- uses ---------------------------------------------------------------------------------- */

static const lilac_tile_block *block_of(const lilac_tile_value *value) {
    return value->op != NULL ? value->op->parent : value->block;
}

/* The operation of `block` that is this one or contains it. */
static const lilac_tile_op *within_block(const lilac_tile_op *op, const lilac_tile_block *block) {
    while (op->parent != block) {
        op = op->parent->parent->parent;
    }
    return op;
}

static bool name_one_buffer(const placing *p, const lilac_tile_value *a,
                            const lilac_tile_value *b) {
    const lilac_lower_flow *x = p->buffers->by_value[a->id], *y = p->buffers->by_value[b->id];
    bool one = false;
    for (uint32_t i = 0; i < p->buffers->words; i++) {
        one |= (x->buffers[i] & y->buffers[i]) != 0;
    }
    return one;
}

/* Does `op` wait for the accesses of another operation through one of its operands? `groups`:
 * the number of groups that were started or committed since, the group of the accesses included.
 * Which phase of an mbarrier completes them is not known here; they are complete when the buffer
 * is freed. */
static bool completes(const placing *p, const lilac_tile_op *op, const lilac_tile_use *use,
                      uint32_t resource, uint32_t groups) {
    if (resource == LILAC_TILE_BARRIER) {
        return op->code == LILAC_TILE_OP_TTG_LOCAL_DEALLOC &&
               name_one_buffer(p, op->operands[0].value, use->value);
    }
    const char *left = resource == LILAC_TILE_COPIES ? "num" : "pendings";
    return op->region_count == 0 && (lilac_tile_summarize_effects(op).waits & resource) != 0 &&
           lilac_tile_find_integer(&op->attributes, left, 0) < groups;
}

/* The first operation after the use, in its block or an enclosing block, that completes the
 * accesses that the use starts. NULL: they are complete at the end of the function. Each
 * operation that starts accesses is a group, except that copies become a group when they are
 * committed. */
static const lilac_tile_op *completion_of(const placing *p, const lilac_tile_use *use,
                                          uint32_t resource) {
    uint32_t groups = resource == LILAC_TILE_COPIES ? 0 : 1;
    for (const lilac_tile_op *at = use->op; at != NULL; at = at->parent->parent->parent) {
        for (const lilac_tile_op *op = at->next; op != NULL; op = op->next) {
            groups += resource == LILAC_TILE_COPIES
                          ? op->code == LILAC_TILE_OP_TTG_ASYNC_COMMIT_GROUP
                          : op->code == use->op->code;
            if (completes(p, op, use, resource, groups)) {
                return op;
            }
        }
    }
    return NULL;
}

/* The end of a use of a descriptor that is visible in `block`: the end of the operation in `block`
 * that contains the use, or of the wait that completes the accesses that the use starts. */
static uint32_t end_of_use(const placing *p, const lilac_tile_use *use,
                           const lilac_tile_block *block) {
    uint32_t end = span_of(p, within_block(use->op, block))->end;
    const lilac_tile_effect *effect = lilac_tile_operand_effect(use->op, use->index);
    if (effect == NULL || effect->completion == LILAC_TILE_NO_RESOURCE) {
        return end;
    }
    const lilac_tile_op *last = completion_of(p, use, effect->completion);
    uint32_t complete = last == NULL ? p->count : span_of(p, last)->end;
    return complete > end ? complete : end;
}

static void extend(lilac_lower_buffer *buffer, uint32_t first, uint32_t last) {
    buffer->first = first < buffer->first ? first : buffer->first;
    buffer->last = last > buffer->last ? last : buffer->last;
}

static void extend_all(placing *p, const lilac_lower_flow *flow, uint32_t first, uint32_t last) {
    for (uint32_t i = 0; i < p->buffers->count; i++) {
        if (lilac_lower_may_name(flow, i)) {
            extend(&p->buffers->list[i], first, last);
        }
    }
}

static void find_lifetimes(placing *p) {
    lilac_lower_buffers *buffers = p->buffers;
    for (uint32_t i = 0; i < buffers->count; i++) {
        buffers->list[i].first = span_of(p, buffers->list[i].op)->begin;
        buffers->list[i].last = buffers->list[i].first;
    }
    for (uint32_t i = 0; i < buffers->flow_count; i++) {
        const lilac_lower_flow *flow = buffers->flows[i];
        const lilac_tile_block *block = block_of(flow->value);
        for (const lilac_tile_use *use = flow->value->uses; use != NULL; use = use->next) {
            extend_all(p, flow, UINT32_MAX, end_of_use(p, use, block));
        }
        if (lilac_lower_is_loop(flow->carrier) && flow->equal == flow->value) {
            const span *loop = span_of(p, flow->carrier);
            extend_all(p, flow, loop->begin, loop->end);
        }
    }
}

/* The regions of ttg.warp_specialize execute at the same time: what is live in one is live in all.
 * */
static void extend_to_partitions(placing *p, const lilac_tile_block *block) {
    for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
        if (op->code != LILAC_TILE_OP_TTG_WARP_SPECIALIZE) {
            continue;
        }
        const span *all = span_of(p, op);
        for (uint32_t i = 0; i < p->buffers->count; i++) {
            lilac_lower_buffer *a = &p->buffers->list[i];
            if (a->first <= all->end && a->last >= all->begin) {
                extend(a, all->begin, all->end);
            }
        }
    }
}

/* ---- allocations in loops ------------------------------------------------------------------- */

static bool refuse_overlap(placing *p, const lilac_tile_op *allocation, const lilac_tile_op *user) {
    p->l->op = allocation;
    (void)lilac_lower_unsupported(
        p->l,
        "the buffer of the previous iteration is still in use when the loop allocates the next "
        "one, by '%s'; allocate the buffers before the loop",
        lilac_tile_op_info_get(user->code)->name);
    return false;
}

/* Marks the descriptors that may be computed from flow number `start`, that one included. */
static void mark_derived(const placing *p, uint32_t start, bool *derived) {
    const lilac_lower_buffers *buffers = p->buffers;
    derived[buffers->flows[start]->value->id] = true;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < buffers->edge_count; i++) {
            const lilac_lower_flow_edge *edge = &buffers->edges[i];
            bool *to = &derived[edge->to->value->id];
            if (edge->from != NULL && derived[edge->from->value->id] && !*to) {
                *to = changed = true;
            }
        }
    }
}

/* An argument of a loop may name a buffer that the loop allocated in an earlier iteration. Its uses
 * must end before the allocation is executed again. */
static bool check_argument(placing *p, uint32_t number) {
    const lilac_lower_buffers *buffers = p->buffers;
    const lilac_lower_flow *argument = buffers->flows[number];
    const lilac_tile_block *body = argument->value->block;
    bool *derived = NULL;
    for (uint32_t i = 0; i < buffers->count; i++) {
        const span *made = span_of(p, buffers->list[i].op);
        if (!lilac_lower_may_name(argument, i) || made->begin < span_of(p, body->first)->begin ||
            made->begin > span_of(p, body->last)->end) {
            continue;
        }
        if (derived == NULL) {
            derived = lilac_arena_array(p->l->arena, bool, p->l->function->value_count);
            mark_derived(p, number, derived);
        }
        for (uint32_t k = 0; k < buffers->flow_count; k++) {
            const lilac_lower_flow *flow = buffers->flows[k];
            const lilac_tile_use *use = derived[flow->value->id] ? flow->value->uses : NULL;
            for (; use != NULL && lilac_lower_may_name(flow, i); use = use->next) {
                bool frees = use->op->code == LILAC_TILE_OP_TTG_LOCAL_DEALLOC;
                bool inside = span_of(p, use->op)->begin <= span_of(p, body->last)->end;
                if (!frees && inside && end_of_use(p, use, block_of(flow->value)) > made->begin) {
                    return refuse_overlap(p, buffers->list[i].op, use->op);
                }
            }
        }
    }
    return true;
}

/* Asynchronous accesses of a buffer that a loop allocates must complete in the same iteration. */
static bool check_completions(placing *p, const lilac_lower_flow *flow) {
    for (uint32_t i = 0; i < p->buffers->count; i++) {
        const lilac_tile_op *made = p->buffers->list[i].op, *loop = made->parent->parent->parent;
        while (loop != NULL && !lilac_lower_is_loop(loop)) {
            loop = loop->parent->parent->parent;
        }
        if (loop == NULL || !lilac_lower_may_name(flow, i)) {
            continue;
        }
        for (const lilac_tile_use *use = flow->value->uses; use != NULL; use = use->next) {
            const lilac_tile_effect *effect = lilac_tile_operand_effect(use->op, use->index);
            bool later = effect != NULL && effect->completion != LILAC_TILE_NO_RESOURCE;
            if (later && end_of_use(p, use, use->op->parent) > span_of(p, loop)->end) {
                return refuse_overlap(p, made, use->op);
            }
        }
    }
    return true;
}

static bool check_loops(placing *p) {
    for (uint32_t i = 0; i < p->buffers->flow_count; i++) {
        const lilac_lower_flow *flow = p->buffers->flows[i];
        bool argument = flow->value->op == NULL && lilac_lower_is_loop(flow->carrier);
        if ((argument && flow->equal == flow->value && !check_argument(p, i)) ||
            !check_completions(p, flow)) {
            return false;
        }
    }
    return true;
}

/* ---- places -------------------------------------------------------------------------------- */

enum { SWIZZLE_PATTERN = 1024 };

/* Does the layout xor coordinates within a pattern: is a column of an offset no unit vector? */
static bool is_swizzled(const lilac_layout *layout) {
    const int in = lilac_layout_in(layout, "offset");
    bool swizzled = false;
    for (uint32_t i = 0; in >= 0 && i < layout->in[in].bits; i++) {
        const uint64_t column = layout->columns[lilac_layout_in_start(layout, (uint32_t)in) + i];
        swizzled |= (column & (column - 1)) != 0;
    }
    return swizzled;
}

/* Matrix instructions and tensor copies swizzle addresses, with a pattern of at most
 * SWIZZLE_PATTERN bytes. Memory that is divided among the blocks of a cluster has no named encoding. */
static uint64_t alignment_of(const lilac_lower_buffer *buffer) {
    const lilac_tile_type *type = buffer->op->results[0].type;
    const lilac_encoding *encoding = type->encoding;
    const bool named = encoding != NULL && encoding->kind == LILAC_ENCODING_NVMMA_SHARED;
    const bool part = type->layout != NULL && lilac_layout_in_bits(type->layout, "block") > 0 &&
                      is_swizzled(type->layout);
    return named || part ? SWIZZLE_PATTERN : LILAC_LOWER_BUFFER_ALIGNMENT;
}

static uint64_t align_to(uint64_t offset, uint64_t alignment) {
    return (offset + alignment - 1) / alignment * alignment;
}

/* The lowest offset at which the allocation overlaps no earlier one with an overlapping
 * lifetime. */
static uint64_t first_fit(const lilac_lower_buffers *buffers, const lilac_lower_buffer *wanted) {
    uint64_t begin = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (const lilac_lower_buffer *a = buffers->list; a < wanted; a++) {
            bool together = a->last >= wanted->first && wanted->last >= a->first;
            if (together && a->begin < begin + wanted->bytes && begin < a->begin + a->bytes) {
                begin = align_to(a->begin + a->bytes, alignment_of(wanted));
                moved = true;
            }
        }
    }
    return begin;
}

static bool place_all(lilac_lowering *l, uint64_t *end) {
    for (uint32_t i = 0; i < l->buffers->count; i++) {
        lilac_lower_buffer *a = &l->buffers->list[i];
        a->begin = first_fit(l->buffers, a);
        *end = a->begin + a->bytes > *end ? a->begin + a->bytes : *end;
        if (*end > l->target->arch->shared_bytes) {
            l->op = a->op;
            return lilac_lower_refuse(
                l, "too-much-shared-memory",
                "with this allocation the kernel needs %llu bytes of shared memory, "
                "and %s has %u",
                (unsigned long long)*end, l->target->arch->name, l->target->arch->shared_bytes);
        }
    }
    return true;
}

bool lilac_lower_place_memory(lilac_lowering *l) {
    uint64_t end = 0;
    l->buffers = lilac_lower_find_buffers(l);
    if (l->buffers != NULL) {
        placing p = {.l = l, .buffers = l->buffers};
        p.spans = lilac_arena_array(l->arena, span, count_ops(l->function->body));
        number_region(&p, l->function->body);
        qsort(p.spans, p.count, sizeof *p.spans, compare_spans);
        find_lifetimes(&p);
        extend_to_partitions(&p, l->function->body->first);
        l->buffers->spans = p.spans;
        l->buffers->span_count = p.count;
        if (!check_loops(&p) || !place_all(l, &end)) {
            return false;
        }
    }
    l->scratch_begin = (uint32_t)align_to(end, LILAC_LOWER_BUFFER_ALIGNMENT);
    l->scratch_next = l->reused_begin = l->reused_end = l->scratch_begin;
    l->shared_bytes = (uint32_t)end;
    return true;
}

static void place_scratch_at(lilac_lowering *l, uint64_t end) {
    const uint32_t begin = (uint32_t)align_to(end, LILAC_LOWER_BUFFER_ALIGNMENT);
    if (begin != l->scratch_begin) {
        l->scratch_begin = l->scratch_next = l->reused_begin = l->reused_end = begin;
    }
}

void lilac_lower_place_scratch(lilac_lowering *l) {
    if (l->buffers == NULL) {
        place_scratch_at(l, l->scratch_floor);
        return;
    }
    const placing p = {
        .l = l, .buffers = l->buffers, .count = l->buffers->span_count, .spans = l->buffers->spans};
    const span *at = l->op != NULL ? span_of(&p, l->op) : NULL;
    uint64_t end = 0;
    for (uint32_t i = 0; i < l->buffers->count; i++) {
        const lilac_lower_buffer *a = &l->buffers->list[i];
        const bool live = at == NULL || (a->first <= at->end && a->last >= at->begin);
        end = live && a->begin + a->bytes > end ? a->begin + a->bytes : end;
    }
    place_scratch_at(l, end > l->scratch_floor ? end : l->scratch_floor);
}
