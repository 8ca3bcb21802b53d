/* Stores and reductions of a descriptor's blocks as tensor copies: a part of the pass copy_boxes.
 *
 *     scf.for … {                                %m = ttg.local_alloc
 *       …                                        scf.for … {
 *       tt.descriptor_store %d[%y, %x], %v         …
 *     }                                            ttng.async_tma_store_wait {pendings = 0, lilac.written}
 *                                          →       ttg.local_store %v, %m
 *                                                  ttng.fence_async_shared
 *                                                  ttng.async_tma_copy_local_to_global %d[%y, %x] %m
 *                                                }
 *                                                ttng.async_tma_store_wait {pendings = 0}
 *                                                ttg.local_dealloc %m
 *
 * The store of an iteration overlaps with what the next one does until its own store: in a persistent kernel
 * with the products of the next tile. For that the memory lives as long as the loop. Where it does not fit
 * beside all other allocations, it is allocated at the store, which the program then waits for.
 *
 * Tensor copies of one thread are not ordered among each other. So a store waits until those before it have
 * written global memory, unless they are of the same block of code and write other elements. */
#include "descriptors/store_boxes.h"
#include "descriptors/boxes.h"
#include "products/block_demand.h"

#include <lilac/tile_loops.h>

/* ---- what two stores write ------------------------------------------------------------------ */

/* value = *base + the result, as far as additions of constants show. */
static int64_t constant_part(const lilac_tile_value *value, const lilac_tile_value **base) {
    int64_t sum = 0, term;
    if (lilac_tile_constant(value, &sum)) {
        *base = NULL;
        return sum;
    }
    while (value->op != NULL && value->op->code == LILAC_TILE_OP_ARITH_ADDI &&
           lilac_tile_constant(value->op->operands[1].value, &term)) {
        sum += term;
        value = value->op->operands[0].value;
    }
    *base = value;
    return sum;
}

/* Are the blocks apart along some dimension? */
static bool are_disjoint(const lilac_tile_op *a, const lilac_tile_op *b) {
    const lilac_tile_type *block = a->operands[0].value->type->element;
    if (a->operands[0].value != b->operands[0].value) {
        return lilac_engine_pointer_root(a->operands[0].value) !=
               lilac_engine_pointer_root(b->operands[0].value);
    }
    for (uint32_t d = 0; d < block->rank; d++) {
        const lilac_tile_value *x, *y;
        const int64_t from = constant_part(a->operands[2 + d].value, &x),
                      to = constant_part(b->operands[2 + d].value, &y);
        if (x == y && (from - to >= block->shape[d] || to - from >= block->shape[d])) {
            return true;
        }
    }
    return false;
}

static lilac_tile_op *outermost_loop(const lilac_tile_op *op) {
    lilac_tile_op *loop = NULL;
    for (lilac_tile_op *at = op->parent->parent->parent; at != NULL;
         at = at->parent->parent->parent) {
        loop = lilac_tile_is_loop(at) ? at : loop;
    }
    return loop;
}

/* Must the store wait for those before it in the list, and for those of earlier iterations? */
static bool must_wait(lilac_tile_op *const *stores, uint32_t number) {
    const lilac_tile_op *store = stores[number], *loop = outermost_loop(store);
    bool waits = loop != NULL; /* for those of earlier iterations */
    for (uint32_t i = 0; i < number; i++) {
        if (!are_disjoint(stores[i], store)) {
            return true;
        }
        waits = waits && stores[i]->parent != store->parent; /* that one waits for them */
    }
    return waits;
}

/* ---- the rewriting ------------------------------------------------------------------------------ */

static void put_store(lilac_tile_module *module, lilac_tile_op *store, lilac_tile_value *memory,
                      const lilac_target *target, bool waits) {
    const lilac_emitter e = {module, store};
    lilac_tile_value *operands[2] = {store->operands[1].value, memory};
    const lilac_tile_type *stored = lilac_box_stored(module, operands[0]->type);
    if (waits) {
        lilac_box_wait_for_stores(&e, true);
        if (target->num_ctas >
            1) { /* other blocks of the cluster may have written these elements */
            (void)lilac_emit(&e, LILAC_TILE_OP_GPU_BARRIER, NULL, 0, NULL);
        }
    }
    if (stored != operands[0]->type) {
        operands[0] = lilac_emit_unary(&e, LILAC_TILE_OP_TTG_CONVERT_LAYOUT, stored, operands[0]);
    }
    (void)lilac_emit(&e, LILAC_TILE_OP_TTG_LOCAL_STORE, NULL, 2, operands);
    lilac_box_fence(&e);
    lilac_box_store(&e, store, memory);
}

/* Memory for the stored tensor. In a cluster each block has its part there and copies it through the
 * descriptor. */
static lilac_tile_value *allocate(lilac_tile_module *module, const lilac_tile_op *store,
                                  const lilac_tile_type *descriptor, lilac_tile_op *place) {
    const lilac_emitter e = {module, place};
    const lilac_tile_type *type = lilac_box_memory(
        module, lilac_box_stored(module, store->operands[1].value->type), descriptor);
    lilac_tile_value *memory =
        lilac_emit(&e, LILAC_TILE_OP_TTG_LOCAL_ALLOC, type, 0, NULL)->results;
    memory->op->position = store->position;
    memory->op->location = store->location;
    return memory;
}

static void free_behind_wait(lilac_tile_module *module, lilac_tile_value *memory,
                             lilac_tile_op *place, bool waits) {
    const lilac_emitter e = {module, place};
    if (waits) {
        lilac_box_wait_for_stores(&e, false);
    }
    (void)lilac_emit(&e, LILAC_TILE_OP_TTG_LOCAL_DEALLOC, NULL, 1, &memory);
}

static void add_allocation(void *data, lilac_tile_op *op) {
    uint64_t *bytes = data;
    if (op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC) {
        *bytes += lilac_engine_bytes(op->results[0].type);
    }
}

/* Do the memory of all stores, all other allocations, and a sixteenth for exchanges fit? */
static bool fits(const lilac_tile_function *f, lilac_tile_op *const *stores, uint32_t count,
                 const lilac_target *target) {
    const uint32_t shared_bytes = target->arch->shared_bytes;
    uint64_t bytes = shared_bytes / 16;
    lilac_tile_walk(f->body, add_allocation, &bytes);
    for (uint32_t i = 0; i < count; i++) {
        bytes += lilac_engine_bytes(stores[i]->operands[1].value->type);
    }
    return bytes <= shared_bytes;
}

/* The type that the descriptor of each store gets: in a cluster, with blocks that lie in one of its
 * blocks for all stores through it (divide_boxes.c). In the arena of the module. */
static const lilac_tile_type **divide(lilac_tile_module *module, lilac_tile_op *const *stores,
                                      uint32_t count, const lilac_target *target) {
    const lilac_tile_type **types =
        lilac_arena_array(module->arena, const lilac_tile_type *, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        const lilac_tile_value *descriptor = stores[i]->operands[0].value;
        types[i] = descriptor->type;
        for (uint32_t k = 0; k < count && target->num_ctas > 1; k++) {
            if (stores[k]->operands[0].value == descriptor) {
                types[i] = lilac_box_divide(
                    module, types[i], lilac_box_stored(module, stores[k]->operands[1].value->type));
            }
        }
    }
    return types;
}

/* The first operation behind the waits and deallocations of earlier stores. */
static lilac_tile_op *behind_waits(lilac_tile_op *op) {
    while (op->code == LILAC_TILE_OP_TTNG_ASYNC_TMA_STORE_WAIT ||
           op->code == LILAC_TILE_OP_TTG_LOCAL_DEALLOC) {
        op = op->next;
    }
    return op;
}

void lilac_store_boxes(lilac_tile_function *f, lilac_tile_op *const *stores, uint32_t count,
                       const lilac_target *target) {
    lilac_tile_module *module = f->module;
    const bool overlaps = fits(f, stores, count, target);
    const lilac_tile_type **descriptors = divide(module, stores, count, target);
    const lilac_tile_op *waited = NULL; /* in front of it, for all stores before */
    for (uint32_t i = 0; i < count; i++) {
        lilac_tile_op *store = stores[i], *loop = outermost_loop(store);
        lilac_tile_op *first = overlaps && loop != NULL ? loop : store;
        lilac_tile_op *last = !overlaps      ? store->next
                              : loop != NULL ? behind_waits(loop->next)
                                             : lilac_tile_terminator(store->parent->parent);
        lilac_tile_value *memory = allocate(module, store, descriptors[i], first);
        put_store(module, store, memory, target, must_wait(stores, i));
        free_behind_wait(module, memory, last, last != waited);
        waited = last;
    }
    for (uint32_t i = 0; i < count; i++) {
        stores[i]->operands[0].value->type = descriptors[i];
        lilac_tile_remove(stores[i]);
    }
}
