/* order_accesses: barriers between accesses of global memory that different threads make.
 *
 *     tt.store %p, %v : layout A             tt.store %p, %v : layout A
 *     %x = tt.load %q : layout B      →      gpu.barrier
 *                                            %x = tt.load %q : layout B
 *
 * A program of tiles executes its operations in order, its threads do not. A load behind a store of the
 * same memory, or a store behind either, sees what it should if the thread that makes the second access
 * made the first one too. Threads do if both tiles have one layout without replicated threads. Otherwise
 * the accesses need a barrier of the block, or of the cluster, between them, which orders memory among its
 * threads.
 *
 * Pointers that come from different arguments are taken to name different memory. Pointers of unknown
 * origin (loaded, selected, computed from numbers) may name the same memory as each other, and are taken
 * to name none of an argument. Accesses with one layout but different pointers are taken to be made by the
 * same threads, as they are under Triton. Atomic operations order themselves, and so do tensor copies.
 *
 * The list of accesses since the last barrier follows the program. A barrier that accesses before a loop
 * or branch need is put before it. One that accesses of the preceding iteration need begins the body. */
#include "internal.h"

#include <lilac/bits.h>

#include <string.h>

enum { READS = 1, WRITES = 2, ATOMIC = 4, MOST = 64 };

typedef struct access {
    const lilac_tile_value *root; /* an argument of the function; NULL: unknown */
    const lilac_tile_type *type;  /* of the pointer */
    uint32_t kind;
} access;

typedef struct ordering {
    lilac_tile_module *module;
    lilac_arena *arena; /* for lists that are kept */
    access list[MOST];  /* since the last barrier */
    uint32_t count;
    bool changed;
} ordering;

/* ---- accesses -------------------------------------------------------------------------------- */

/* Is each element held by one thread? */
static bool is_injective(const lilac_layout *layout) {
    uint32_t thread_bits = 0;
    for (uint32_t i = 1; i < layout->in_count; i++) { /* lanes, warps, blocks */
        thread_bits += layout->in[i].bits;
    }
    return (lilac_layout_free_mask(layout) >> layout->in[0].bits & low_bits(thread_bits)) == 0;
}

/* Does the same thread access an element both times? All threads load a scalar, one stores it. */
static bool same_threads(const access *a, const access *b) {
    const bool tensors = lilac_tile_is_tensor(a->type);
    if (tensors != lilac_tile_is_tensor(b->type)) {
        return false;
    }
    if (!tensors) {
        return a->kind != READS && b->kind != READS;
    }
    const lilac_layout *first = a->type->layout, *second = b->type->layout;
    return first != NULL && second != NULL &&
           (first == second || lilac_layout_equal(first, second)) && is_injective(first);
}

static bool conflict(const access *a, const access *b) {
    return a->root == b->root && ((a->kind | b->kind) & WRITES) != 0 &&
           (a->kind & b->kind & ATOMIC) == 0 && !same_threads(a, b);
}

/* Tensor copies, and operations on tensor maps in memory: the waits of the program order them. */
static bool orders_itself(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL ||
           op->code == LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_LOCAL_TO_GLOBAL ||
           op->code == LILAC_TILE_OP_TTNG_ASYNC_TMA_REDUCE ||
           op->code == LILAC_TILE_OP_TTNG_TENSORMAP_CREATE ||
           op->code == LILAC_TILE_OP_TTNG_TENSORMAP_FENCEPROXY_ACQUIRE;
}

static bool read_access(const lilac_tile_op *op, access *found) {
    const lilac_tile_effect *effect =
        op->operand_count > 0 ? lilac_tile_operand_effect(op, 0) : NULL;
    if (effect == NULL || (effect->resources & LILAC_TILE_GLOBAL_MEMORY) == 0 ||
        orders_itself(op)) {
        return false;
    }
    const bool reads = (effect->access & LILAC_TILE_READS) != 0;
    const bool writes = (effect->access & LILAC_TILE_WRITES) != 0;
    *found = (access){.root = lilac_engine_pointer_root(op->operands[0].value),
                      .type = op->operands[0].value->type,
                      .kind = (reads ? READS : 0) | (writes ? WRITES : 0) |
                              (reads && writes ? ATOMIC : 0)};
    return true;
}

/* Does the access need a barrier after those of the list? A full list may lack some. */
static bool meets(const ordering *o, const access *a) {
    if (o->count == MOST) {
        return true;
    }
    for (uint32_t i = 0; i < o->count; i++) {
        if (conflict(&o->list[i], a)) {
            return true;
        }
    }
    return false;
}

/* Adds an access if no equal one is in the list. */
static void add(ordering *o, const access *a) {
    for (uint32_t i = 0; i < o->count; i++) {
        const access *other = &o->list[i];
        if (other->root == a->root && other->type == a->type && other->kind == a->kind) {
            return;
        }
    }
    if (o->count < MOST) {
        o->list[o->count++] = *a;
    }
}

typedef struct kept_list {
    const access *list;
    uint32_t count;
} kept_list;

static kept_list keep(const ordering *o) {
    access *list = o->count > 0 ? lilac_arena_array(o->arena, access, o->count) : NULL;
    for (uint32_t i = 0; i < o->count; i++) {
        list[i] = o->list[i];
    }
    return (kept_list){list, o->count};
}

static void add_all(ordering *o, const kept_list *from) {
    for (uint32_t i = 0; i < from->count; i++) {
        add(o, &from->list[i]);
    }
}

/* ---- the walk -------------------------------------------------------------------------------- */

static void insert_barrier(ordering *o, lilac_tile_op *before) {
    lilac_tile_op *barrier = lilac_tile_op_create(o->module, LILAC_TILE_OP_GPU_BARRIER, 0, NULL, 0,
                                                  NULL, 0, before->location);
    barrier->position = before->position;
    lilac_tile_insert_before(before, barrier);
    o->count = 0;
    o->changed = true;
}

/* Does an access in the region meet one of the list? */
static bool region_meets(const ordering *o, const lilac_tile_region *region) {
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            access found;
            if (read_access(op, &found) && meets(o, &found)) {
                return true;
            }
            for (uint32_t i = 0; i < op->region_count; i++) {
                if (region_meets(o, op->regions[i])) {
                    return true;
                }
            }
        }
    }
    return false;
}

static void walk(ordering *o, lilac_tile_region *region);

static void walk_regions(ordering *o, lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->region_count; i++) {
        if (o->count > 0 && region_meets(o, op->regions[i])) {
            insert_barrier(o, op);
        }
    }
    const kept_list before = keep(o);
    if (op->code == LILAC_TILE_OP_SCF_FOR || op->code == LILAC_TILE_OP_SCF_WHILE) {
        for (uint32_t i = 0; i < op->region_count; i++) {
            walk(o, op->regions[i]);
        }
        bool again = false;
        for (uint32_t i = 0; i < op->region_count; i++) {
            again |= o->count > 0 && region_meets(o, op->regions[i]);
        }
        if (again) {
            const kept_list end = keep(o);
            insert_barrier(o, op->regions[0]->first->first);
            add_all(o, &end);
        }
        add_all(o, &before); /* no iteration: no barrier */
        return;
    }
    kept_list after = before; /* of any of the branches */
    for (uint32_t i = 0; i < op->region_count; i++) {
        o->count = 0;
        add_all(o, &before);
        walk(o, op->regions[i]);
        add_all(o, &after);
        after = keep(o);
    }
}

static void walk(ordering *o, lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            access found;
            if (op->code == LILAC_TILE_OP_GPU_BARRIER) {
                o->count = 0;
            } else if (op->region_count > 0) {
                walk_regions(o, op);
            } else if (read_access(op, &found)) {
                if (meets(o, &found)) {
                    insert_barrier(o, op);
                }
                add(o, &found);
            }
        }
    }
}

bool lilac_engine_order_accesses(lilac_tile_module *module, const lilac_target *target,
                                 bool *changed) {
    (void)target;
    *changed = false;
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        ordering o = {.module = module, .arena = lilac_arena_create()};
        if (function->body != NULL) {
            walk(&o, function->body);
        }
        *changed |= o.changed;
        lilac_arena_destroy(o.arena);
    }
    return true;
}
