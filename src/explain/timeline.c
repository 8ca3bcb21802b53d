/* Asynchronous operations in their order: which buffer a copy fills, and what a wait completes.
 *
 * A wait names the operations that started what it completes: of groups of copies the copies before
 * the commits, in its own loop or in front of it; of an mbarrier the copies that signal at it. */
#include "internal.h"

#include <math.h>

#include <lilac/tile_loops.h>

typedef struct event_kind {
    lilac_tile_opcode code;
    const char *kind;
    const char *pending; /* the attribute with the groups that a wait leaves incomplete */
    uint32_t awaits[3];  /* opcodes whose work it completes */
} event_kind;

static const event_kind kinds[] = {
    {LILAC_TILE_OP_TTG_ASYNC_COPY_GLOBAL_TO_LOCAL, "copy", NULL, {0}},
    {LILAC_TILE_OP_TTG_ASYNC_COMMIT_GROUP, "commit", NULL, {0}},
    {LILAC_TILE_OP_TTG_ASYNC_WAIT,
     "wait copies",
     "num",
     {LILAC_TILE_OP_TTG_ASYNC_COPY_GLOBAL_TO_LOCAL}},
    {LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL, "box", NULL, {0}},
    {LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_LOCAL_TO_GLOBAL, "store box", NULL, {0}},
    {LILAC_TILE_OP_TTNG_ASYNC_TMA_REDUCE, "store box", NULL, {0}},
    {LILAC_TILE_OP_TTNG_ASYNC_TMA_STORE_WAIT,
     "wait stores",
     "pendings",
     {LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_LOCAL_TO_GLOBAL, LILAC_TILE_OP_TTNG_ASYNC_TMA_REDUCE}},
    {LILAC_TILE_OP_TTNG_BARRIER_EXPECT, "expect", NULL, {0}},
    {LILAC_TILE_OP_TTNG_WAIT_BARRIER,
     "wait mbarrier",
     NULL,
     {LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL, LILAC_TILE_OP_TTNG_ARRIVE_BARRIER,
      LILAC_TILE_OP_TTNG_ASYNC_COPY_MBARRIER_ARRIVE}},
    {LILAC_TILE_OP_TTNG_ARRIVE_BARRIER, "arrive", NULL, {0}},
    {LILAC_TILE_OP_TTNG_WARP_GROUP_DOT, "product", NULL, {0}},
    {LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT,
     "wait products",
     "pendings",
     {LILAC_TILE_OP_TTNG_WARP_GROUP_DOT}},
    {LILAC_TILE_OP_TTG_LOCAL_BARRIER, "barrier", NULL, {0}},
};

static const event_kind *kind_of(const lilac_tile_op *op) {
    for (uint32_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (kinds[i].code == op->code) {
            return &kinds[i];
        }
    }
    return NULL;
}

/* The value that an argument of a block begins with: of a loop, or of a partition, which captures
 * it. */
static const lilac_tile_value *passed_to(const lilac_tile_value *argument) {
    const lilac_tile_op *owner = argument->block->parent->parent;
    if (owner != NULL && owner->code == LILAC_TILE_OP_TTG_WARP_SPECIALIZE) {
        return owner->operands[argument->index].value;
    }
    return owner != NULL && owner->code == LILAC_TILE_OP_SCF_FOR && argument->index > 0
               ? lilac_tile_init(owner, argument->index - 1)
               : NULL;
}

/* The allocation that memory is a part of. */
static const lilac_tile_op *allocation_of(const lilac_tile_value *memory) {
    for (uint32_t step = 0; step < 64 && memory != NULL; step++) {
        const lilac_tile_op *op = memory->op;
        if (op == NULL) {
            memory = passed_to(memory);
            continue;
        }
        if (op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC) {
            return op;
        }
        memory = op->operand_count > 0 ? op->operands[0].value : NULL;
        if (op->code == LILAC_TILE_OP_ARITH_SELECT) {
            memory = op->operands[1].value;
        }
    }
    return NULL;
}

static const lilac_tile_op *memory_operand(const lilac_tile_op *op) {
    const lilac_tile_op *found = NULL;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_tile_value *value = op->operands[i].value;
        if (value->type->kind != LILAC_TILE_MEMDESC) {
            continue;
        }
        const lilac_tile_op *allocation = allocation_of(value);
        const bool barrier = lilac_tile_element_bits(value->type) == 64 &&
                             lilac_tile_element_count(value->type) == 1;
        if (allocation != NULL && (found == NULL || !barrier)) {
            found = allocation;
        }
    }
    return found;
}

uint32_t explain_buffers(lilac_explanation *e, uint32_t *list, uint32_t most) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < e->count && count < most; i++) {
        if (e->operations[i].op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC) {
            list[count++] = i;
        }
    }
    return count;
}

/* Does the wait share its mbarrier, if it has one, with the operation? */
static bool shares_barrier(const lilac_tile_op *wait, const lilac_tile_op *op) {
    if (wait->code != LILAC_TILE_OP_TTNG_WAIT_BARRIER) {
        return true;
    }
    const lilac_tile_op *barrier = allocation_of(wait->operands[0].value);
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_tile_value *value = op->operands[i].value;
        if (value->type->kind == LILAC_TILE_MEMDESC && allocation_of(value) == barrier) {
            return true;
        }
    }
    return false;
}

/* The region of ttg.warp_specialize that the operation is in; NULL: in none. */
static const lilac_tile_region *partition_of(const lilac_tile_op *op) {
    const lilac_tile_region *region = op->parent->parent;
    while (region->parent != NULL && region->parent->code != LILAC_TILE_OP_TTG_WARP_SPECIALIZE) {
        region = region->parent->parent->parent;
    }
    return region->parent != NULL ? region : NULL;
}

/* Do other warps execute them at the same time? */
static bool are_concurrent(const lilac_tile_op *a, const lilac_tile_op *b) {
    const lilac_tile_region *of_a = partition_of(a), *of_b = partition_of(b);
    return of_a != NULL && of_b != NULL && of_a != of_b;
}

static void find_awaited(lilac_explanation *e, const event_kind *kind, uint32_t index,
                         explain_event *event) {
    const lilac_tile_op *wait = e->operations[index].op;
    for (uint32_t i = 0; i < e->count && event->awaited_count < 16; i++) {
        const lilac_tile_op *op = e->operations[i].op;
        bool starts = false;
        for (uint32_t k = 0; k < 3; k++) {
            starts |= kind->awaits[k] != 0 && op->code == kind->awaits[k];
        }
        const bool reached =
            i < index || are_concurrent(op, wait) ||
            (e->operations[i].loop == e->operations[index].loop && e->operations[i].loop != 0);
        if (starts && reached && shares_barrier(wait, op)) {
            event->awaited[event->awaited_count++] = i + 1;
        }
    }
}

bool explain_event_of(lilac_explanation *e, uint32_t index, explain_event *event) {
    const lilac_tile_op *op = e->operations[index].op;
    const event_kind *kind = kind_of(op);
    if (kind == NULL) {
        return false;
    }
    *event = (explain_event){.number = index + 1, .kind = kind->kind, .pending = -1, .buffer = -1};
    if (kind->pending != NULL) {
        event->pending = lilac_tile_find_integer(&op->attributes, kind->pending, 0);
    }
    if (kind->awaits[0] != 0) {
        find_awaited(e, kind, index, event);
    }
    const uint32_t memory = explain_number_of(e, memory_operand(op));
    event->buffer = memory > 0 ? (int32_t)memory : -1;
    return true;
}

/* The most buffers of an allocation. */
static double most_buffers(lilac_explanation *e) {
    enum { MOST = 256 };
    uint32_t list[MOST];
    int64_t most = 1;
    const uint32_t count = explain_buffers(e, list, MOST);
    for (uint32_t i = 0; i < count; i++) {
        const lilac_tile_type *type = e->operations[list[i]].op->results[0].type;
        const uint32_t own = type->layout != NULL ? type->layout->out_count : type->rank;
        if (type->rank > own && type->shape[0] > most) {
            most = type->shape[0];
        }
    }
    return (double)most;
}

/* Tensor copies in front of a loop are those of its first iterations: as many for each one as the
 * loop has. A producer starts copies as long as there is a buffer. */
double explain_copies_ahead(lilac_explanation *e, uint32_t loop) {
    const double most = most_buffers(e) - 1;
    const uint32_t around = e->loops[loop].parent;
    uint32_t inside = 0, before = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        if (e->operations[i].op->code == LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL) {
            const uint32_t own = e->operations[i].loop;
            before += own == around;
            inside += own > 0 && e->loops[own - 1].parent == around;
        }
    }
    const double ahead = before >= inside && inside > 0 ? floor((double)before / inside) : most;
    return ahead > most ? (most > 1 ? most : 1) : ahead > 1 ? ahead : 1;
}
