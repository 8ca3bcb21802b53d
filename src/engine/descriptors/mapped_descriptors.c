/* Which tensor descriptors become tensor maps, so that tensor copies execute all accesses through them.
 *
 * The host makes the map of a descriptor that is a parameter. A descriptor that the kernel makes needs
 * a map in global memory, which each program writes before it uses it. So its operation moves in front
 * of the loops, and the kernel must have a loop over tiles for the map to be worth its price:
 *
 *     accesses                        from the host                        made by the kernel
 *     loads only                      one in a loop with a product         the same, in a loop over tiles
 *     stores and reductions only      in a kernel with a product           the same, in a loop over tiles
 *     minima, maxima of f16, bf16     always: no other instruction has them
 *
 * In a cluster each block copies its part of a block of the tensor (divide_boxes.c): of descriptors
 * from the host, for blocks with two dimensions above 1 and a swizzle.
 *
 * Tensor copies are not ordered with other accesses of the program. Copies from memory that the program
 * writes, or to memory that it accesses otherwise, remain accesses through pointers. As elsewhere,
 * different arguments name different memory. */
#include "descriptors/boxes.h"
#include "descriptors/descriptors.h"
#include "products/dot_operands.h"

#include <lilac/tile_loops.h>

#include <string.h>

typedef struct use_summary {
    uint32_t loads, stores;
    bool other;        /* an access that tensor copies do not execute */
    bool product_loop; /* a load is in a loop with a product */
    bool tile_loop;    /* all accesses are in a loop over tiles */
    bool extreme;      /* a minimum or maximum of 16-bit floats */
} use_summary;

/* ---- accesses ------------------------------------------------------------------------------- */

/* Have both the same sizes, but for dimensions of size 1? */
static bool is_whole(const lilac_tile_type *tensor, const lilac_tile_type *block) {
    uint32_t t = 0;
    for (uint32_t d = 0; d < block->rank; d++) {
        while (t < tensor->rank && tensor->shape[t] == 1) {
            t++;
        }
        if (block->shape[d] == 1) {
            continue;
        }
        if (t == tensor->rank || tensor->shape[t++] != block->shape[d]) {
            return false;
        }
    }
    while (t < tensor->rank && tensor->shape[t] == 1) {
        t++;
    }
    return tensor->layout == NULL && t == tensor->rank;
}

static const lilac_tile_op *parent_of(const lilac_tile_op *op) {
    return op->parent->parent->parent;
}

/* Is a load in two loops, or an access in one that begins at the number of the program? */
static bool is_in_tile_loop(const lilac_tile_op *access) {
    uint32_t loops = 0;
    for (const lilac_tile_op *op = parent_of(access); op != NULL; op = parent_of(op)) {
        loops += lilac_tile_is_loop(op);
    }
    return loops > 1 || lilac_engine_is_persistent(access);
}

bool lilac_box_reduces(const lilac_tile_op *reduce, bool *extreme) {
    const lilac_tile_type *element = lilac_tile_element(reduce->operands[0].value->type->element);
    const char *kind = lilac_tile_find_text(&reduce->attributes, "kind");
    const bool integer = element->scalar == LILAC_I32 || element->scalar == LILAC_I64;
    const bool half = element->scalar == LILAC_F16 || element->scalar == LILAC_BF16;
    const bool is_extreme = kind != NULL && (strcmp(kind, "min") == 0 || strcmp(kind, "max") == 0);
    const bool is_sum = kind != NULL && strcmp(kind, "add") == 0;
    const bool bits = kind != NULL && (strcmp(kind, "and") == 0 || strcmp(kind, "or") == 0 ||
                                       strcmp(kind, "xor") == 0);
    *extreme = half && is_extreme;
    return (integer && (is_sum || is_extreme || bits)) || (half && (is_sum || is_extreme)) ||
           (element->scalar == LILAC_F32 && is_sum);
}

static void look_at(use_summary *s, const lilac_tile_use *use, const lilac_tile_type *block) {
    const lilac_tile_op *op = use->op;
    const bool load = op->code == LILAC_TILE_OP_TT_DESCRIPTOR_LOAD;
    const bool reduce = op->code == LILAC_TILE_OP_TT_DESCRIPTOR_REDUCE;
    bool extreme = false;
    if (use->index != 0 || !(load || reduce || op->code == LILAC_TILE_OP_TT_DESCRIPTOR_STORE) ||
        !is_whole(load ? op->results[0].type : op->operands[1].value->type, block) ||
        (reduce && !lilac_box_reduces(op, &extreme))) {
        s->other = true;
        return;
    }
    s->loads += load;
    s->stores += !load;
    s->extreme |= extreme;
    s->product_loop |= load && lilac_dot_loop(op, NULL) != NULL;
    s->tile_loop &= is_in_tile_loop(op);
}

/* May the block be an operand in shared memory: a matrix with a swizzle? */
static bool is_operand(const lilac_tile_type *block, const lilac_box *box) {
    uint32_t wide = 0;
    for (uint32_t d = 0; d < block->rank; d++) {
        wide += block->shape[d] > 1;
    }
    return wide == 2 && box->swizzle_bytes > 0;
}

static uint64_t bytes_of(const lilac_tile_type *block) {
    return (uint64_t)lilac_tile_element_count(block) * lilac_tile_element_bits(block) / 8;
}

/* Do tensor copies move blocks of this type? In a cluster, also the parts of its blocks. */
static bool has_copies(lilac_box *box, const lilac_tile_type *block, const lilac_target *target) {
    return lilac_arch_has(target->arch, LILAC_HAS_TMA) && lilac_engine_box(box, block) &&
           (target->num_ctas == 1 || is_operand(block, box));
}

/* And are they at most half of the shared memory? */
static bool is_movable(lilac_box *box, const lilac_tile_type *block, const lilac_target *target) {
    return has_copies(box, block, target) && bytes_of(block) <= target->arch->shared_bytes / 2;
}

bool lilac_descriptor_is_operand(const lilac_tile_type *block, const lilac_target *target) {
    lilac_box box;
    return has_copies(&box, block, target) && bytes_of(block) <= target->arch->shared_bytes &&
           lilac_arch_has(target->arch, LILAC_HAS_WGMMA) && is_operand(block, &box);
}

/* ---- the memory of a descriptor that the kernel makes ----------------------------------------- */

typedef struct root_uses {
    bool reads, writes; /* by other accesses than those of the descriptor */
    const lilac_tile_op *maker;
} root_uses;

static void look_at_pointer(root_uses *r, const lilac_tile_value *pointer);

static void look_at_pointer_use(root_uses *r, const lilac_tile_use *use) {
    const lilac_tile_op *op = use->op;
    switch (op->code) {
    case LILAC_TILE_OP_TT_ADDPTR:
    case LILAC_TILE_OP_TT_SPLAT:
    case LILAC_TILE_OP_TT_BROADCAST:
    case LILAC_TILE_OP_TT_EXPAND_DIMS:
        look_at_pointer(r, &op->results[0]);
        break;
    case LILAC_TILE_OP_TT_LOAD:
        r->reads = true;
        break;
    case LILAC_TILE_OP_TT_MAKE_TENSOR_DESCRIPTOR:
        for (const lilac_tile_use *u = op->results[0].uses; u != NULL && op != r->maker;
             u = u->next) {
            const bool load = u->op->code == LILAC_TILE_OP_TT_DESCRIPTOR_LOAD;
            r->reads |= load;
            r->writes |= !load;
        }
        break;
    default:
        r->reads = r->writes = true;
        break;
    }
}

static void look_at_pointer(root_uses *r, const lilac_tile_value *pointer) {
    for (const lilac_tile_use *use = pointer->uses; use != NULL; use = use->next) {
        look_at_pointer_use(r, use);
    }
}

/* The function's first block. */
static const lilac_tile_block *top_of(const lilac_tile_op *op) {
    while (parent_of(op) != NULL) {
        op = parent_of(op);
    }
    return op->parent;
}

/* Does the program access the memory of the descriptor only through it, or only read it? */
static bool has_own_memory(const lilac_tile_op *maker, bool stores) {
    const lilac_tile_value *base = lilac_tile_operand(maker, 0);
    while (base->op != NULL && base->op->code == LILAC_TILE_OP_TT_ADDPTR) {
        base = base->op->operands[0].value;
    }
    root_uses r = {.maker = maker};
    if (base->op != NULL || base->block != top_of(maker)) {
        return false; /* no argument of the function */
    }
    look_at_pointer(&r, base);
    return !r.writes && !(stores && r.reads);
}

/* ---- moving the operation ----------------------------------------------------------------------- */

enum { MOST_DEPTH = 16 };

/* Can the value be computed in the function's first block? */
static bool can_move(const lilac_tile_value *value, const lilac_tile_block *top, uint32_t depth) {
    const lilac_tile_op *op = value->op;
    if (op == NULL || op->parent == top) {
        return op != NULL || value->block == top;
    }
    bool good = depth > 0 && op->region_count == 0 && !lilac_tile_divides(op->code) &&
                (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) != 0;
    for (uint32_t i = 0; good && i < op->operand_count; i++) {
        good = can_move(op->operands[i].value, top, depth - 1);
    }
    return good;
}

static void move(lilac_tile_op *op, const lilac_tile_block *top, lilac_tile_op *place) {
    if (op == NULL || op->parent == top) {
        return;
    }
    for (uint32_t i = 0; i < op->operand_count; i++) {
        move(op->operands[i].value->op, top, place);
    }
    lilac_tile_detach(op);
    lilac_tile_insert_before(place, op);
}

void lilac_descriptor_hoist(lilac_tile_op *maker) {
    lilac_tile_op *outer = maker;
    while (outer->parent->parent->parent != NULL) {
        outer = outer->parent->parent->parent;
    }
    move(maker, outer->parent, outer);
}

/* ---- the rule --------------------------------------------------------------------------------- */

bool lilac_descriptor_is_mapped(const lilac_tile_function *function,
                                const lilac_tile_value *descriptor, const lilac_target *target) {
    const lilac_tile_type *block = descriptor->type->element;
    const lilac_tile_op *maker = descriptor->op;
    use_summary s = {.tile_loop = true};
    lilac_box box;
    if (descriptor->type->kind != LILAC_TILE_DESCRIPTOR || !is_movable(&box, block, target)) {
        return false;
    }
    for (const lilac_tile_use *use = descriptor->uses; use != NULL; use = use->next) {
        look_at(&s, use, block);
    }
    if (s.other || (s.loads > 0) == (s.stores > 0)) {
        return false;
    }
    if (maker != NULL &&
        (maker->code != LILAC_TILE_OP_TT_MAKE_TENSOR_DESCRIPTOR || target->num_ctas > 1 ||
         !lilac_arch_has(target->arch, LILAC_HAS_TENSOR_MAPS) ||
         !can_move(descriptor, top_of(maker), MOST_DEPTH) ||
         !has_own_memory(maker, s.stores > 0))) {
        return false;
    }
    if (s.extreme) {
        return true;
    }
    const bool pays = s.loads > 0 ? s.product_loop && is_operand(block, &box)
                                  : lilac_dot_is_inside(function->body, NULL);
    return pays && lilac_arch_has(target->arch, LILAC_HAS_WGMMA) && (maker == NULL || s.tile_loop);
}
