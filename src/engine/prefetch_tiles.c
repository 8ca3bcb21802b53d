/* prefetch_tiles: in a loop over tiles, the first tensor copies for the next tile start in front of the epilogue
 * of this one, which they overlap with.
 *
 *     scf.for %t = … {                               rings and mbarriers: ttg.local_alloc
 *       rings and mbarriers: ttg.local_alloc         start(lower)
 *       start(t)                                     scf.for %t = … {
 *       scf.for %k = … { … }                    →      scf.for %k = … { … }
 *       ttng.inval_barrier …                           ttng.inval_barrier …
 *       epilogue                                       start(t + step)
 *     }                                                epilogue
 *                                                    }
 *                                                    ttng.inval_barrier …
 *
 *     start(t)     ttng.fence_async_shared, init_barrier, barrier_expect and
 *                  async_tma_copy_global_to_local of the inner loop's first iterations
 *
 * The copies for a tile that does not exist are predicated off. The inner loop may be in a conditional without an
 * else branch of its own, which pipeline_loops puts around loops that may have no iteration.
 *
 * All copies of the inner loop are tensor copies (lilac.tensor_copies: pipeline_loops made them), so nothing but their coordinates and predicates is computed
 * ahead: by pure operations, from the counter of the outer loop. The rings live throughout the outer loop, so
 * the epilogue must need no scratch memory: it exchanges nothing between threads. Tensor copies load memory that
 * the program does not write (mapped_descriptors.c). */
#include "block_demand.h"
#include "boxes.h"

#include <lilac/tile_loops.h>

enum { MOST_START = 64, MOST_DEPTH = 16 };

typedef struct prefetch {
    lilac_tile_module *module;
    lilac_tile_op *outer, *inner;
    lilac_tile_op *guard;    /* the conditional around the inner loop; NULL: none */
    lilac_tile_block *block; /* of the inner loop */
    lilac_tile_op *start[MOST_START], *allocs[MOST_START];
    uint32_t start_count, alloc_count, barrier_count;
    lilac_tile_value *barriers;
} prefetch;

/* ---- what there is ------------------------------------------------------------------------------- */

static lilac_tile_op *find_code(lilac_tile_block *block, lilac_tile_opcode code) {
    lilac_tile_op *op = block->first;
    while (op != NULL && op->code != code) {
        op = op->next;
    }
    return op;
}

/* Does the operation exchange elements between threads, or do anything else that may need scratch memory? */
static bool needs_scratch(const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_TTG_CONVERT_LAYOUT:
    case LILAC_TILE_OP_TT_REDUCE:
    case LILAC_TILE_OP_TT_SCAN:
    case LILAC_TILE_OP_TT_GATHER:
    case LILAC_TILE_OP_TT_HISTOGRAM:
    case LILAC_TILE_OP_TT_DOT:
        return true;
    case LILAC_TILE_OP_TT_LOAD:
    case LILAC_TILE_OP_TT_STORE:
    case LILAC_TILE_OP_TTG_LOCAL_STORE:
    case LILAC_TILE_OP_TTG_MEMDESC_INDEX:
    case LILAC_TILE_OP_TTNG_FENCE_ASYNC_SHARED:
    case LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_LOCAL_TO_GLOBAL:
    case LILAC_TILE_OP_TTNG_ASYNC_TMA_REDUCE:
    case LILAC_TILE_OP_TTNG_ASYNC_TMA_STORE_WAIT:
    case LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT:
    case LILAC_TILE_OP_TTNG_INIT_BARRIER:
    case LILAC_TILE_OP_TTNG_INVAL_BARRIER:
    case LILAC_TILE_OP_TTNG_BARRIER_EXPECT:
    case LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL:
    case LILAC_TILE_OP_TTG_LOCAL_ALLOC: /* without an operand: add_op */
    case LILAC_TILE_OP_TTG_LOCAL_DEALLOC:
    case LILAC_TILE_OP_SCF_YIELD:
        return false;
    default:
        return op->region_count > 0 ||
               (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) == 0;
    }
}

static bool is_start(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TTNG_FENCE_ASYNC_SHARED ||
           op->code == LILAC_TILE_OP_TTNG_INIT_BARRIER ||
           op->code == LILAC_TILE_OP_TTNG_BARRIER_EXPECT ||
           op->code == LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL;
}

/* An operation in front of the inner loop. */
static bool add_op(prefetch *p, lilac_tile_op *op) {
    if (op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC) {
        if (op->operand_count > 0 || p->alloc_count == MOST_START) {
            return false;
        }
        p->allocs[p->alloc_count++] = op;
    } else if (is_start(op)) {
        if (p->start_count == MOST_START) {
            return false;
        }
        p->start[p->start_count++] = op;
        if (op->code == LILAC_TILE_OP_TTNG_INIT_BARRIER) {
            const lilac_tile_op *index = op->operands[0].value->op;
            if (index == NULL || index->code != LILAC_TILE_OP_TTG_MEMDESC_INDEX) {
                return false;
            }
            p->barriers = index->operands[0].value;
            p->barrier_count++;
        }
    }
    return true;
}

/* The loop in the outer loop's body, or in a conditional there. */
static bool find_inner(prefetch *p) {
    lilac_tile_block *body = p->outer->regions[0]->first;
    p->block = body;
    p->inner = find_code(body, LILAC_TILE_OP_SCF_FOR);
    if (p->inner == NULL) {
        p->guard = find_code(body, LILAC_TILE_OP_SCF_IF);
        p->block = p->guard != NULL ? p->guard->regions[0]->first : NULL;
        p->inner = p->block != NULL ? find_code(p->block, LILAC_TILE_OP_SCF_FOR) : NULL;
    }
    return body->next == NULL && p->inner != NULL &&
           lilac_tile_find(&p->inner->attributes, "lilac.tensor_copies") != NULL &&
           find_code(p->inner->regions[0]->first, LILAC_TILE_OP_TTNG_WAIT_BARRIER) != NULL &&
           (p->guard == NULL || p->guard->regions[1]->first == NULL ||
            p->guard->regions[1]->first->first->code == LILAC_TILE_OP_SCF_YIELD);
}

static void find_flying(void *data, lilac_tile_op *op) {
    bool *flying = data;
    *flying |= op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT &&
               lilac_tile_find_integer(&op->attributes, "pendings", 0) > 0;
}

/* Has the inner loop read its rings completely in front of its mbarriers' end? */
static bool has_read_rings(const prefetch *p) {
    bool flying = false;
    lilac_tile_walk(p->inner->regions[0], find_flying, &flying);
    for (const lilac_tile_op *op = p->inner->next;
         flying && op != NULL && op->code != LILAC_TILE_OP_TTNG_INVAL_BARRIER; op = op->next) {
        flying = op->code != LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT ||
                 lilac_tile_find_integer(&op->attributes, "pendings", 0) > 0;
    }
    return !flying;
}

/* Sorts the operations around the inner loop. */
static bool survey(prefetch *p) {
    for (lilac_tile_op *op = p->block->first; op != p->inner; op = op->next) {
        if (needs_scratch(op) || !add_op(p, op)) {
            return false;
        }
    }
    for (const lilac_tile_op *op = p->inner->next; op != NULL; op = op->next) {
        if (needs_scratch(op) || op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC) {
            return false;
        }
    }
    for (const lilac_tile_op *op = p->outer->regions[0]->first->first;
         p->guard != NULL && op != NULL; op = op->next) {
        if (op != p->guard && (needs_scratch(op) || op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC)) {
            return false;
        }
    }
    return p->barrier_count > 0 && has_read_rings(p);
}

/* Is the value computed from the counter and from outside by pure operations? */
static bool is_ahead(const prefetch *p, const lilac_tile_value *value, uint32_t depth) {
    const lilac_tile_op *op = value->op;
    if (!lilac_tile_is_inside(value, p->outer)) {
        return true;
    }
    if (op == NULL) {
        return value == lilac_tile_induction_variable(p->outer);
    }
    for (uint32_t i = 0; i < p->alloc_count; i++) {
        if (op == p->allocs[i]) {
            return true;
        }
    }
    bool good = depth > 0 && op->region_count == 0 &&
                (op->code == LILAC_TILE_OP_TTG_MEMDESC_INDEX ||
                 (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) != 0);
    for (uint32_t i = 0; good && i < op->operand_count; i++) {
        good = is_ahead(p, op->operands[i].value, depth - 1);
    }
    return good;
}

static bool can_start_ahead(const prefetch *p) {
    bool good = p->guard == NULL || is_ahead(p, p->guard->operands[0].value, MOST_DEPTH);
    for (uint32_t i = 0; i < p->start_count; i++) {
        for (uint32_t k = 0; good && k < p->start[i]->operand_count; k++) {
            good = is_ahead(p, p->start[i]->operands[k].value, MOST_DEPTH);
        }
    }
    return good;
}

static void add_bytes(void *data, lilac_tile_op *op) {
    uint64_t *bytes = data;
    if (op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC) {
        *bytes += lilac_engine_bytes(op->results[0].type);
    }
}

/* ---- the rewriting --------------------------------------------------------------------------------- */

/* The value for the tile that the mapping has, computed in front of `place`. */
static lilac_tile_value *value_ahead(const prefetch *p, lilac_tile_mapping *mapping,
                                     lilac_tile_value *value, lilac_tile_op *place) {
    lilac_tile_value *known = lilac_tile_mapped(mapping, value);
    if (known != value || !lilac_tile_is_inside(value, p->outer) || value->op == NULL) {
        return known;
    }
    for (uint32_t i = 0; i < value->op->operand_count; i++) {
        (void)value_ahead(p, mapping, value->op->operands[i].value, place);
    }
    lilac_tile_insert_before(place, lilac_tile_clone_mapped(p->module, value->op, mapping));
    return lilac_tile_mapped(mapping, value);
}

/* Starts the copies for the tile of that counter, if `exists` is true. */
static void put_start(const prefetch *p, lilac_tile_value *counter, lilac_tile_value *exists,
                      lilac_tile_op *place) {
    const lilac_emitter e = {p->module, place};
    lilac_tile_mapping *mapping = lilac_tile_mapping_create();
    lilac_tile_map(mapping, lilac_tile_induction_variable(p->outer), counter);
    if (p->guard != NULL) {
        exists = lilac_emit_binary(&e, LILAC_TILE_OP_ARITH_ANDI, exists,
                                   value_ahead(p, mapping, p->guard->operands[0].value, place));
    }
    for (uint32_t i = 0; i < p->start_count; i++) {
        const lilac_tile_op *op = p->start[i];
        const uint32_t last = op->operand_count - 1; /* the predicate of announcements and copies */
        for (uint32_t k = 0; k < op->operand_count; k++) {
            (void)value_ahead(p, mapping, op->operands[k].value, place);
        }
        lilac_tile_op *copy = lilac_tile_clone_mapped(p->module, op, mapping);
        lilac_tile_insert_before(place, copy);
        if (op->code == LILAC_TILE_OP_TTNG_BARRIER_EXPECT ||
            op->code == LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL) {
            const lilac_emitter at = {p->module, copy};
            lilac_tile_set_operand(copy, last,
                                   lilac_emit_binary(&at, LILAC_TILE_OP_ARITH_ANDI,
                                                     copy->operands[last].value, exists));
        }
    }
    lilac_tile_mapping_destroy(mapping);
}

static void put_invalidation(const prefetch *p, lilac_tile_op *place) {
    const lilac_emitter e = {p->module, place};
    for (uint32_t i = 0; i < p->barrier_count; i++) {
        lilac_tile_value *index =
            lilac_emit_integer(&e, lilac_tile_scalar(p->module, LILAC_I32), i);
        lilac_tile_value *barrier = lilac_box_barrier(&e, p->barriers, index);
        lilac_tile_op *op = lilac_emit(&e, LILAC_TILE_OP_TTNG_INVAL_BARRIER, NULL, 1, &barrier);
        if (i > 0) { /* the barrier of the block in front of the first one is enough */
            lilac_emit_attribute(&e, op, "lilac.ordered", 1);
        }
    }
}

/* Moves the rings and mbarriers out of the outer loop. Returns the first operation of the epilogue. */
static lilac_tile_op *move_memory(prefetch *p) {
    lilac_tile_op *epilogue = p->guard != NULL ? p->guard->next : p->inner->next;
    for (lilac_tile_op *op = p->inner->next, *next; op != NULL; op = next) {
        next = op->next;
        if (op->code == LILAC_TILE_OP_TTG_LOCAL_DEALLOC) {
            lilac_tile_detach(op);
            lilac_tile_insert_after(p->outer, op);
        } else if (op->code == LILAC_TILE_OP_TTNG_INVAL_BARRIER) {
            lilac_tile_remove(op);
        } else {
            continue;
        }
        epilogue = p->guard != NULL ? epilogue : next;
    }
    for (uint32_t i = 0; i < p->alloc_count; i++) {
        lilac_tile_detach(p->allocs[i]);
        lilac_tile_insert_before(p->outer, p->allocs[i]);
    }
    return epilogue;
}

static void rewrite(prefetch *p) {
    lilac_tile_op *epilogue = move_memory(p);
    const lilac_emitter before = {p->module, p->outer}, e = {p->module, epilogue};
    lilac_tile_value *lower = lilac_tile_lower_bound(p->outer),
                     *upper = lilac_tile_upper_bound(p->outer), *step = lilac_tile_step(p->outer),
                     *counter = lilac_tile_induction_variable(p->outer);
    put_start(p, lower, lilac_emit_compare(&before, "slt", lower, upper), p->outer);
    put_invalidation(p, p->outer->next); /* in front of the deallocations */
    put_invalidation(p, epilogue);
    lilac_tile_value *left = lilac_emit_binary(&e, LILAC_TILE_OP_ARITH_SUBI, upper, counter);
    lilac_tile_value *exists = lilac_emit_compare(&e, "ugt", left, step);
    put_start(p, lilac_emit_binary(&e, LILAC_TILE_OP_ARITH_ADDI, counter, step), exists, epilogue);
    for (uint32_t i = p->start_count; i-- > 0;) {
        lilac_tile_remove(p->start[i]);
    }
}

static bool visit_loop(lilac_tile_function *f, lilac_tile_op *loop, const lilac_target *target) {
    prefetch p = {.module = f->module, .outer = loop};
    uint64_t bytes = 0;
    if (!find_inner(&p) || !survey(&p) || !can_start_ahead(&p)) {
        return false;
    }
    lilac_tile_walk(f->body, add_bytes, &bytes);
    if (bytes > target->arch->shared_bytes) {
        return false;
    }
    rewrite(&p);
    return true;
}

static bool walk(lilac_tile_function *f, lilac_tile_region *region, const lilac_target *target) {
    bool changed = false;
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
            next = op->next;
            if (op->code == LILAC_TILE_OP_SCF_FOR && visit_loop(f, op, target)) {
                changed = true;
                continue;
            }
            for (uint32_t r = 0; r < op->region_count; r++) {
                changed |= walk(f, op->regions[r], target);
            }
        }
    }
    return changed;
}

bool lilac_engine_prefetch_tiles(lilac_tile_module *module, const lilac_target *target,
                                 bool *changed) {
    *changed = false;
    if (!lilac_arch_has(target->arch, LILAC_HAS_TMA)) {
        return true;
    }
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        if (f->body != NULL && walk(f, f->body, target)) {
            lilac_tile_number(f);
            *changed = true;
        }
    }
    return true;
}
