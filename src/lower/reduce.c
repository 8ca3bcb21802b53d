/* tt.reduce, with any combine region, over several operands at once.
 *
 * Split a coordinate into what the result keeps (K) and the axis (A). Going through the register,
 * lane and warp bits in that order, each bit either
 *
 *   is new in K            it leads to other elements of the result: nothing to combine
 *   adds nothing in K …    (after xoring earlier bits that cancel its part there)
 *     … and is new in A    its two halves are combined
 *     … and not            its two halves are copies: they must not be combined
 *
 * and the combining goes bit by bit, each in its own way:
 *
 *   register   the thread's values, as a tree
 *   lane       butterflies: shuffle by xor with the bit (and the lane bits that cancel)
 *   warp       one lane for each element writes its warp's partial result to shared memory, and
 *              after a barrier every thread reads all partials of its elements
 *
 *        element 0          element 1
 *      | w0 w1 w2 w3 … | w0 w1 w2 w3 … |        8 warps of f32: 32 bytes, read as two vectors
 *
 * A lane bit whose part in K only a register bit cancels would need another register in each lane;
 * it goes through shared memory as a warp bit does, and from there straight into the result's
 * layout. Where nothing goes through shared memory and no renaming gives that layout, a movement
 * plan does. */
#include "lower_internal.h"

#include <string.h>

#define MAX_REGISTER_BITS 16
#define MAX_THREAD_BITS   16

typedef struct plan {
    const lilac_lower_view *in;
    const lilac_lower_view *out; /* NULL: a scalar */
    uint32_t axis, operands;
    uint32_t keep_bits; /* of a coordinate of the result */
    /* registers */
    uint32_t group_bits, group_register[MAX_REGISTER_BITS];
    uint32_t fold_bits, fold_masks[MAX_REGISTER_BITS];
    /* lanes */
    uint32_t lane_steps, lane_masks[MAX_THREAD_BITS], lane_pivots[MAX_THREAD_BITS];
    /* warps (and lanes that need another register) */
    uint32_t slot_bits, slot_thread[MAX_THREAD_BITS];
    uint32_t idle_threads; /* bits that are 0 in the threads that write */
    bool shared;           /* warps' results meet in shared memory */
    /* Otherwise, where the result's registers are among the groups; or `moves`: they stand in other
     * threads. */
    const uint32_t *source;
    bool moves;
} plan;

/* ---- the plan ---------------------------------------------------------------------------- */

/* The part of a coordinate that the result keeps: its own coordinate. */
static uint64_t kept(const plan *p, uint64_t coordinate) {
    uint32_t start = p->in->start[p->axis], bits = p->in->bits[p->axis];
    uint64_t below = coordinate & ((1ULL << start) - 1);
    uint64_t above = start + bits >= 64 ? 0 : coordinate >> (start + bits);
    return below | above << start;
}

static uint64_t along_axis(const plan *p, uint64_t coordinate) {
    uint32_t start = p->in->start[p->axis], bits = p->in->bits[p->axis];
    return coordinate >> start & ((1ULL << bits) - 1);
}

typedef enum role { KEEPS, COMBINES, COPIES } role;

/* What a bit with this column does. *tag comes with the bit's own mark and leaves with the marks of
 * all bits that make up the direction. */
static role classify(const plan *p, lilac_lower_basis *keeps, lilac_lower_basis *combines,
                     uint64_t column, uint64_t *tag) {
    uint64_t key = kept(p, column) | along_axis(p, column) << p->keep_bits;
    uint64_t own = *tag;
    uint64_t rest = lilac_lower_basis_reduce(keeps, key, tag);
    if (rest & ((1ULL << p->keep_bits) - 1)) {
        (void)lilac_lower_basis_add(keeps, key, own);
        return KEEPS;
    }
    return lilac_lower_basis_add(combines, rest, 0) ? COMBINES : COPIES;
}

#define THREAD_MARK 32 /* marks of thread bits stand above those of register bits */

static bool plan_bits(lilac_lowering *l, plan *p) {
    lilac_lower_basis keeps = {0}, combines = {0};
    for (uint32_t i = 0; i < p->in->register_bits; i++) {
        uint64_t tag = 1ULL << i;
        switch (classify(p, &keeps, &combines, p->in->registers[i], &tag)) {
        case KEEPS:
            p->group_register[p->group_bits++] = i;
            break;
        case COMBINES:
            p->fold_masks[p->fold_bits++] = (uint32_t)tag;
            break;
        default:
            break;
        }
    }
    for (uint32_t i = 0; i < p->in->thread_bits; i++) {
        uint64_t tag = 1ULL << (THREAD_MARK + i);
        role what = classify(p, &keeps, &combines, p->in->threads[i], &tag);
        bool needs_registers = (tag & ((1ULL << THREAD_MARK) - 1)) != 0;
        bool shuffles = i < p->in->lane_bits && !needs_registers;
        if (what == COMBINES && shuffles) {
            p->lane_pivots[p->lane_steps] = i;
            p->lane_masks[p->lane_steps++] = (uint32_t)(tag >> THREAD_MARK);
        } else if (what == COMBINES) {
            p->slot_thread[p->slot_bits++] = i;
        }
        if (what == COPIES || (what == COMBINES && shuffles)) {
            p->idle_threads |= 1U << i;
        }
    }
    for (uint32_t i = 0; i < p->in->block_bits; i++) {
        if (along_axis(p, p->in->blocks[i]) != 0) {
            return lilac_lower_unsupported(l, "the axis is spread over the blocks of a cluster");
        }
    }
    return true;
}

/* What a thread has after its registers and lanes are combined: one register for each group. */
static void reduced_view(const plan *p, lilac_lower_view *view) {
    memset(view, 0, sizeof *view);
    view->register_bits = p->group_bits;
    view->count = 1U << p->group_bits;
    view->lane_bits = p->in->lane_bits;
    view->thread_bits = p->in->thread_bits;
    view->block_bits = p->in->block_bits;
    view->layout = p->out->layout;
    view->rank = p->out->rank;
    memcpy(view->start, p->out->start, sizeof view->start);
    memcpy(view->bits, p->out->bits, sizeof view->bits);
    for (uint32_t i = 0; i < p->group_bits; i++) {
        view->registers[i] = kept(p, p->in->registers[p->group_register[i]]);
    }
    for (uint32_t i = 0; i < view->thread_bits; i++) {
        view->threads[i] = kept(p, p->in->threads[i]);
    }
    for (uint32_t i = 0; i < view->block_bits; i++) {
        view->blocks[i] = kept(p, p->in->blocks[i]);
    }
}

static bool make_plan(lilac_lowering *l, const lilac_tile_op *op, plan *p) {
    memset(p, 0, sizeof *p);
    const lilac_tile_type *type = lilac_tile_operand(op, 0)->type;
    p->in = lilac_lower_view_of(l, type);
    p->operands = op->operand_count;
    int64_t axis = lilac_tile_find_integer(&op->attributes, "axis", 0);
    if (p->in == NULL) {
        return false;
    }
    if (axis < 0 || axis >= p->in->rank || op->result_count != p->operands) {
        return lilac_lower_unsupported(l, "its axis or results do not fit");
    }
    p->axis = (uint32_t)axis;
    p->keep_bits = p->in->layout->out_bits - p->in->bits[p->axis];
    if (!plan_bits(l, p)) {
        return false;
    }
    p->shared = p->slot_bits > 0;
    if (!lilac_tile_is_tensor(op->results[0].type)) {
        return true;
    }
    p->out = lilac_lower_view_of(l, op->results[0].type);
    if (p->out == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < p->in->block_bits; i++) {
        if (kept(p, p->in->blocks[i]) != p->out->blocks[i]) {
            return lilac_lower_refuse(l, "layout-conversion",
                                      "the result of a reduction stands in another block");
        }
    }
    if (!p->shared) {
        lilac_lower_view reduced;
        lilac_lower_map map;
        reduced_view(p, &reduced);
        lilac_lower_map_identity(&map, p->keep_bits);
        p->moves = !lilac_lower_rename(l, &reduced, p->out, &map, &p->source);
    }
    return true;
}

/* ---- combining --------------------------------------------------------------------------- */

/* Combines `count` (a power of two) elements standing one after another into the first. */
static bool combine_tree(lilac_lowering *l, const lilac_tile_op *op, lilac_simt_value *elements,
                         uint32_t count) {
    uint32_t stride = op->operand_count;
    for (uint32_t half = count / 2; half > 0; half /= 2) {
        for (uint32_t i = 0; i < half; i++) {
            if (!lilac_lower_combine(l, op, elements + (size_t)i * stride,
                                     elements + (size_t)(i + half) * stride)) {
                return false;
            }
        }
    }
    return true;
}

/* Is each result one commutative operation of its own two elements? Then partners in a butterfly
 * get the same bits; otherwise which of them was first may show. */
static bool is_commutative(const lilac_tile_op *op) {
    const lilac_tile_block *block = op->regions[0]->first;
    const lilac_tile_op *end = block->last;
    for (uint32_t i = 0; i < op->operand_count && i < end->operand_count; i++) {
        const lilac_tile_op *made_by = end->operands[i].value->op;
        if (made_by == NULL || made_by->parent != block || made_by->operand_count != 2 ||
            !(lilac_tile_op_info_get(made_by->code)->traits & LILAC_TILE_COMMUTATIVE)) {
            return false;
        }
        const lilac_tile_value *first = made_by->operands[0].value;
        const lilac_tile_value *second = made_by->operands[1].value;
        const lilac_tile_value *a = block->arguments[i];
        const lilac_tile_value *b = block->arguments[i + op->operand_count];
        if (!(first == a && second == b) && !(first == b && second == a)) {
            return false;
        }
    }
    return true;
}

/* ---- registers --------------------------------------------------------------------------- */

/* One element for each group. */
static lilac_simt_value *fold_registers(lilac_lowering *l, const lilac_tile_op *op, const plan *p) {
    uint32_t groups = 1U << p->group_bits, folds = 1U << p->fold_bits, n = p->operands;
    lilac_simt_value *results = lilac_arena_array(l->arena, lilac_simt_value, (size_t)groups * n);
    lilac_simt_value *list = lilac_arena_array(l->arena, lilac_simt_value, (size_t)folds * n);
    for (uint32_t g = 0; g < groups; g++) {
        uint32_t start = 0;
        for (uint32_t i = 0; i < p->group_bits; i++) {
            start |= (g >> i & 1) << p->group_register[i];
        }
        for (uint32_t t = 0; t < folds; t++) {
            uint32_t r = start;
            for (uint32_t i = 0; i < p->fold_bits; i++) {
                r ^= t >> i & 1 ? p->fold_masks[i] : 0;
            }
            for (uint32_t i = 0; i < n; i++) {
                list[(size_t)t * n + i] = lilac_lower_get(l, lilac_lower_operand(l, op, i), r);
            }
        }
        if (!combine_tree(l, op, list, folds)) {
            return NULL;
        }
        memcpy(results + (size_t)g * n, list, n * sizeof *list);
    }
    return results;
}

/* ---- lanes ------------------------------------------------------------------------------- */

static bool fold_lanes(lilac_lowering *l, const lilac_tile_op *op, const plan *p,
                       lilac_simt_value *elements) {
    uint32_t groups = 1U << p->group_bits, n = p->operands;
    lilac_simt_value *others = lilac_arena_array(l->arena, lilac_simt_value, (size_t)groups * n);
    for (uint32_t step = p->lane_steps; step-- > 0;) {
        lilac_simt_value mask =
            lilac_simt_constant(&l->builder, LILAC_SIMT_I32, p->lane_masks[step]);
        for (uint32_t i = 0; i < n; i++) {
            lilac_lower_shuffle_row(l, LILAC_SIMT_SHFL_XOR, mask, groups, n, elements + i,
                                    others + i);
        }
        for (uint32_t g = 0; g < groups; g++) {
            if (!lilac_lower_combine(l, op, elements + (size_t)g * n, others + (size_t)g * n)) {
                return false;
            }
        }
    }
    return true;
}

/* Gives all lanes that combined their values the bits of one of them. */
static void agree(lilac_lowering *l, const plan *p, lilac_simt_value *elements) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
    for (uint32_t i = 0; i < p->in->lane_bits; i++) {
        columns[i] = 1ULL << i;
    }
    for (uint32_t step = 0; step < p->lane_steps; step++) {
        uint32_t pivot = p->lane_pivots[step];
        columns[pivot] = p->lane_masks[step] ^ (1ULL << pivot);
    }
    lilac_simt_value lane = lilac_lower_linear(&l->builder, p->in->lane_bits, columns, 0, NULL);
    for (uint32_t i = 0; i < p->operands; i++) {
        lilac_lower_shuffle_row(l, LILAC_SIMT_SHFL_IDX, lane, 1U << p->group_bits, p->operands,
                                elements + i, elements + i);
    }
}

/* ---- warps ------------------------------------------------------------------------------- */

static void write_partials(lilac_lowering *l, const plan *p, uint32_t operand, uint32_t start,
                           const lilac_simt_instruction *promise,
                           const lilac_simt_value *elements) {
    lilac_simt_type type = lilac_simt_type_of(l->kernel, elements[operand]);
    uint32_t scale = lilac_lower_log2(lilac_lower_memory_bytes(type));
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    for (uint32_t i = 0; i < p->in->thread_bits; i++) {
        columns[i] = kept(p, p->in->threads[i]) << p->slot_bits << scale;
    }
    for (uint32_t s = 0; s < p->slot_bits; s++) {
        columns[p->slot_thread[s]] |= 1ULL << s << scale;
    }
    lilac_lower_addressing a = lilac_lower_address_threads(l, p->in->thread_bits, columns);
    lilac_simt_value writes = lilac_lower_one_copy(l, p->idle_threads, 0);
    for (uint32_t g = 0; g < 1U << p->group_bits; g++) {
        uint64_t part = 0;
        for (uint32_t i = 0; i < p->group_bits; i++) {
            part ^= g >> i & 1 ? kept(p, p->in->registers[p->group_register[i]]) : 0;
        }
        int64_t immediate;
        lilac_simt_value address =
            lilac_lower_address_of(l, &a, part << p->slot_bits << scale, &immediate);
        lilac_lower_store_vector(l, LILAC_SIMT_OP_ST_SHARED, type, 1,
                                 &elements[(size_t)g * p->operands + operand], address,
                                 immediate + start, writes, promise);
    }
}

/* The partials of the result's register r, one after another `operands` apart. */
static void read_partials(lilac_lowering *l, const plan *p, uint32_t operand, uint32_t start,
                          lilac_simt_type type, uint32_t r, const lilac_simt_instruction *promise,
                          lilac_simt_value *partials) {
    uint32_t size = lilac_lower_memory_bytes(type), scale = lilac_lower_log2(size);
    uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
    uint32_t bits = p->out == NULL ? 0 : p->out->thread_bits;
    for (uint32_t i = 0; i < bits; i++) {
        columns[i] = p->out->threads[i] << p->slot_bits << scale;
    }
    lilac_lower_addressing a = lilac_lower_address_threads(l, bits, columns);
    uint64_t part = p->out == NULL ? 0 : p->out->coordinates[r];
    int64_t immediate;
    lilac_simt_value address =
        lilac_lower_address_of(l, &a, part << p->slot_bits << scale, &immediate);
    uint32_t count = 1U << p->slot_bits;
    uint32_t most = l->target->arch->vector_bytes / size;
    uint32_t vector = count < most ? count : most;
    for (uint32_t i = 0; i < count; i += vector) {
        lilac_simt_value loaded[16];
        lilac_lower_load_vector(l, LILAC_SIMT_OP_LD_SHARED, type, vector, address,
                                immediate + start + (int64_t)i * size, 0, NULL, promise, loaded);
        for (uint32_t k = 0; k < vector; k++) {
            partials[(size_t)(i + k) * p->operands + operand] = loaded[k];
        }
    }
}

static bool through_shared(lilac_lowering *l, const lilac_tile_op *op, const plan *p,
                           const lilac_simt_value *elements, lilac_lower_value *const *results) {
    uint32_t n = p->operands, slots = 1U << p->slot_bits, bytes = 0, scratch;
    uint32_t *starts = lilac_arena_array(l->arena, uint32_t, n);
    lilac_lower_barrier(l);
    for (uint32_t i = 0; i < n; i++) {
        starts[i] = (bytes + 15) / 16 * 16;
        bytes = starts[i] +
                (lilac_lower_memory_bytes(results[i]->simt) << p->slot_bits << p->keep_bits);
    }
    scratch = lilac_lower_scratch_again(l, bytes);
    lilac_simt_instruction promise = {.shared_begin = scratch, .shared_end = scratch + bytes};
    for (uint32_t i = 0; i < n; i++) {
        starts[i] += scratch;
        write_partials(l, p, i, starts[i], &promise, elements);
    }
    lilac_lower_barrier(l);
    uint32_t registers = results[0]->count;
    lilac_simt_value *partials =
        lilac_arena_array(l->arena, lilac_simt_value, (size_t)registers * slots * n);
    for (uint32_t r = 0; r < registers; r++) {
        bool is_copy = p->out != NULL && p->out->canonical[r] != r;
        for (uint32_t i = 0; i < n && !is_copy; i++) {
            read_partials(l, p, i, starts[i], results[i]->simt, r, &promise,
                          partials + (size_t)r * slots * n);
        }
    }
    for (uint32_t r = 0; r < registers; r++) {
        uint32_t same = p->out == NULL ? r : p->out->canonical[r];
        lilac_simt_value *list = partials + (size_t)r * slots * n;
        if (same == r && !combine_tree(l, op, list, slots)) {
            return false;
        }
        for (uint32_t i = 0; i < n; i++) {
            results[i]->base[r] = same == r ? list[i] : results[i]->base[same];
        }
    }
    return true;
}

/* ---- the whole --------------------------------------------------------------------------- */

/* The groups' elements in the result's layout. */
static bool move_results(lilac_lowering *l, const plan *p, const lilac_simt_value *elements,
                         lilac_lower_value *const *results) {
    lilac_lower_view reduced;
    reduced_view(p, &reduced);
    lilac_lower_find_copies(l, &reduced);
    lilac_simt_value *values = lilac_arena_array(l->arena, lilac_simt_value, reduced.count);
    for (uint32_t i = 0; i < p->operands; i++) {
        for (uint32_t g = 0; g < reduced.count; g++) {
            values[g] = elements[(size_t)g * p->operands + i];
        }
        if (!lilac_lower_move(l, results[i]->simt, &reduced, p->out, LILAC_MOVEMENT_ANY, values,
                              results[i]->base)) {
            return false;
        }
    }
    return true;
}

bool lilac_lower_reduce(lilac_lowering *l, const lilac_tile_op *op) {
    plan p;
    if (!make_plan(l, op, &p)) {
        return false;
    }
    lilac_lower_value **results = lilac_arena_array(l->arena, lilac_lower_value *, p.operands);
    for (uint32_t i = 0; i < p.operands; i++) {
        results[i] = lilac_lower_result(l, op, i);
        if (results[i] == NULL) {
            return false;
        }
        if (results[i]->view != p.out || lilac_lower_operand(l, op, i)->view != p.in) {
            return lilac_lower_refuse(l, "layout-conversion",
                                      "the operands of a reduction have different layouts");
        }
    }
    lilac_simt_value *elements = fold_registers(l, op, &p);
    if (elements == NULL || !fold_lanes(l, op, &p, elements)) {
        return false;
    }
    if (p.shared) {
        if (!through_shared(l, op, &p, elements, results)) {
            return false;
        }
    } else {
        if (p.lane_steps > 0 && !is_commutative(op)) {
            agree(l, &p, elements);
        }
        if (p.moves && !move_results(l, &p, elements, results)) {
            return false;
        }
        for (uint32_t i = 0; i < p.operands && !p.moves; i++) {
            for (uint32_t r = 0; r < results[i]->count; r++) {
                uint32_t group = p.source != NULL ? p.source[r] : r;
                results[i]->base[r] = elements[(size_t)group * p.operands + i];
            }
        }
    }
    for (uint32_t i = 0; i < p.operands && p.out == NULL; i++) {
        lilac_simt_mark_uniform(l->kernel, results[i]->base[0]);
    }
    return true;
}
