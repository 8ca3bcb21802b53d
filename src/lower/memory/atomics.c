/* Atomic operations.
 *
 *   tt.atomic_rmw   one of the threads that hold an element executes the instruction
 *   tt.atomic_cas   thread 0 executes it for a scalar
 *
 * If the result is used, the other holders of the element receive it, those in other blocks of the
 * cluster from the memory of the block whose thread executed the instruction. Consecutive floats
 * are added by one instruction: 2 or 4 f32, or 2, 4 or 8 f16 or bf16 as pairs; at most 16 bytes.
 *
 * Where no instruction computes the operation, additions of bf16 before sm_90, and minima and maxima
 * of 16-bit floats, the threads compare and swap one element, or a pair as a word:
 *
 *     expected = 0, pending = the predicate
 *     while any lane of the warp is pending:
 *         old = cas [address], expected, expected + value       where pending
 *         pending = pending and old ≠ expected
 *         expected = old                                        where it was pending
 *
 * The first swap succeeds if the element is 0; otherwise it reads the element. An ordinary load
 * would read it too, but it would race with the swaps of other threads. `expected` ends as the
 * old value. A swap of 16 bits leaves the other half of its word unchanged: ptxas builds a loop
 * of swaps of the word.
 *
 * A barrier of the block, or of the cluster, precedes a scalar operation with release order, so
 * that it releases the earlier writes of every thread. The result of one with acquire order reaches
 * the other threads through a barrier in any case. An operation on a tensor orders only the
 * accesses of the thread that executes it. */
#include "collective/region.h"
#include "control.h"
#include "executed_plans.h"
#include "memory/access.h"
#include "memory/shared_access.h"
#include "operations.h"

/* ---- copies ------------------------------------------------------------------------------ */

/* For each lane, the leader lane of its elements, as columns. False if the leader is in another
 * warp, or if it holds the elements in other registers. */
static bool lane_of_copies(const lilac_lower_view *view, uint64_t *columns) {
    lilac_f2_basis span;
    lilac_f2_basis_init(&span);
    for (uint32_t i = 0; i < view->columns.lane_bits; i++) {
        columns[i] = 1ULL << i;
        if (view->columns.free_threads >> i & 1) {
            uint64_t tag;
            if (lilac_f2_basis_reduce(&span, view->columns.threads[i], &tag) != 0) {
                return false;
            }
            columns[i] = tag;
        } else {
            (void)lilac_f2_basis_add(&span, view->columns.threads[i], 1ULL << i);
        }
    }
    return view->columns.free_threads >> view->columns.lane_bits == 0;
}

/* Shared memory in which the coordinate of an element, times its size, is its address. */
typedef struct copy_memory {
    const lilac_lower_view *view; /* NULL: a scalar */
    bool remote;                  /* the elected holder may be in another block of the cluster */
    lilac_simt_type type;
    uint32_t scale, scratch;       /* log2 of an element's bytes; first byte */
    uint64_t of_threads;           /* mask of the address bits that thread and block determine */
    lilac_simt_value base, thread; /* of shared memory; the thread's part of the address */
    lilac_simt_instruction range;
} copy_memory;

static void open_copy_memory(lilac_lowering *l, copy_memory *m) {
    lilac_simt_builder *b = &l->builder;
    const lilac_layout_columns *columns = m->view == NULL ? NULL : &m->view->columns;
    uint64_t places[LILAC_LAYOUT_MAX_BITS] = {0};
    uint32_t thread_bits = columns == NULL ? 0 : columns->thread_bits;
    uint32_t bits = columns == NULL ? 0 : columns->out_bits;
    uint64_t of_blocks[LILAC_LAYOUT_MAX_BITS] = {0};
    uint32_t block_bits = m->remote && columns != NULL ? columns->block_bits : 0;
    for (uint32_t i = 0; i < thread_bits; i++) {
        places[i] = columns->threads[i] << m->scale;
        m->of_threads |= places[i];
    }
    for (uint32_t i = 0; i < block_bits; i++) {
        of_blocks[i] = columns->blocks[i] << m->scale;
        m->of_threads |= of_blocks[i];
    }
    lilac_lower_barrier(l);
    uint32_t bytes = 1U << bits << m->scale;
    m->scratch = lilac_lower_scratch_reused(l, bytes);
    m->range.shared_begin = m->scratch;
    m->range.shared_end = m->scratch + bytes;
    lilac_simt_instruction shared = {.code = LILAC_SIMT_OP_SHARED_BASE};
    lilac_simt_type word = LILAC_SIMT_I32;
    m->base = lilac_simt_build(b, &shared, 0, NULL, 1, &word);
    m->thread = lilac_lower_linear(b, thread_bits, places, block_bits, of_blocks);
}

/* The access of register r. */
static lilac_lower_access copy_access(lilac_lowering *l, const copy_memory *m, uint32_t r) {
    lilac_simt_builder *b = &l->builder;
    int64_t part = m->view == NULL ? 0 : (int64_t)(m->view->coordinates[r] << m->scale);
    lilac_simt_value place = m->thread;
    if ((uint64_t)part & m->of_threads) {
        place = lilac_simt_op2(b, LILAC_SIMT_OP_XOR, LILAC_SIMT_I32, m->thread,
                               lilac_lower_integer(l, LILAC_SIMT_I32, part));
        part = 0;
    }
    place = lilac_simt_op2(b, LILAC_SIMT_OP_ADD, LILAC_SIMT_I32, m->base, place);
    return (lilac_lower_access){.type = m->type,
                                .count = 1,
                                .address = place,
                                .offset = m->scratch + part,
                                .modifiers = &m->range};
}

/* The rank of the block of the elected holder of this block's elements. */
static lilac_simt_value rank_of_copies(lilac_lowering *l, const lilac_lower_view *view) {
    uint64_t ranks[LILAC_LAYOUT_MAX_BITS] = {0};
    const lilac_layout_columns *columns = view == NULL ? NULL : &view->columns;
    lilac_f2_basis holders;
    lilac_f2_basis_init(&holders);
    for (uint32_t i = 0; columns != NULL && i < columns->register_bits; i++) {
        (void)lilac_f2_basis_add(&holders, columns->registers[i], 0);
    }
    for (uint32_t i = 0; columns != NULL && i < columns->thread_bits; i++) {
        (void)lilac_f2_basis_add(&holders, columns->threads[i], 0);
    }
    for (uint32_t i = 0; columns != NULL && i < columns->block_bits; i++) {
        (void)lilac_f2_basis_add(&holders, columns->blocks[i], UINT64_C(1) << i);
        ranks[i] = lilac_f2_basis_tag(&holders, columns->blocks[i]);
    }
    return lilac_lower_linear(&l->builder, 0, NULL, log2_of(l->target->num_ctas), ranks);
}

/* The accesses as plans, for those who explain the kernel. */
static void note_copies(const lilac_lowering *l, const copy_memory *m) {
    const uint32_t warps = l->target->num_warps, size = 1U << m->scale;
    const lilac_layout_columns *columns = m->view == NULL ? NULL : &m->view->columns;
    lilac_plan_access access = {.element_bytes = size,
                                .lane_bits = log2_of(l->target->arch->warp_size),
                                .warp_bits = log2_of(warps),
                                .transaction_lanes = l->target->arch->warp_size,
                                .transactions = 1,
                                .transaction_wavefronts = 1,
                                .instructions = warps,
                                .wavefronts = warps};
    uint64_t places[LILAC_LAYOUT_MAX_BITS];
    lilac_layout layout, memory;
    lilac_arch arch = *l->target->arch;
    arch.vector_bytes = size; /* of single elements */
    if (columns != NULL) {
        lilac_layout_init(&memory);
        bool good = lilac_layout_columns_layout(&layout, columns, columns->distinct, NULL);
        for (uint32_t d = 0; good && d < layout.out_count; d++) {
            good = lilac_layout_add_out(&memory, layout.out[d].name, layout.out[d].bits, NULL);
        }
        for (uint32_t i = 0; i < columns->out_bits; i++) {
            places[i] = UINT64_C(1) << i;
        }
        good = good && lilac_layout_add_in(&memory, "offset", columns->out_bits, places, NULL);
        if (!good || !lilac_plan_access_init(&access, &layout, &memory, 8 * size, &arch, NULL)) {
            return;
        }
    }
    lilac_lower_note_shared(l, &access, false,
                            columns == NULL ? (warps << access.lane_bits) - 1
                                            : columns->free_threads);
    lilac_plan_access_as_load(&access, l->target->arch);
    lilac_lower_note_shared(l, &access, true, 0);
}

/* Between the stores of copies and their loads, and behind loads from other blocks. */
static void wait_for_copies(lilac_lowering *l, const copy_memory *m) {
    if (m->remote) {
        lilac_simt_cluster_barrier(&l->builder);
    } else {
        lilac_lower_barrier(l);
    }
}

/* Replicates through shared memory: the leader of each element stores it, and all of its holders
 * load it, from the memory of the leader's block. */
static void through_shared(lilac_lowering *l, const lilac_lower_view *view, bool remote,
                           lilac_simt_value *registers) {
    copy_memory m = {
        .view = view, .remote = remote, .type = lilac_simt_type_of(l->kernel, registers[0])};
    uint32_t threads = l->target->num_warps * l->target->arch->warp_size;
    uint32_t count = view == NULL ? 1 : view->count;
    m.scale = log2_of(lilac_lower_memory_bytes(m.type));
    open_copy_memory(l, &m);
    if (l->options->plans != NULL && !remote) {
        note_copies(l, &m);
    }
    lilac_simt_value leader =
        remote ? lilac_lower_elect_holder_of(l, view)
               : lilac_lower_elect_holder(
                     l, view == NULL ? threads - 1 : view->columns.free_threads, 0);
    for (uint32_t r = 0; r < count; r++) {
        if (view == NULL || view->canonical[r] == r) {
            lilac_lower_access access = copy_access(l, &m, r);
            access.code = LILAC_SIMT_OP_ST_SHARED;
            access.predicate = leader;
            lilac_lower_store_vector(l, &access, &registers[r]);
        }
    }
    wait_for_copies(l, &m);
    if (remote) {
        m.base = lilac_simt_map_shared(&l->builder, m.base, rank_of_copies(l, view));
    }
    for (uint32_t r = 0; r < count; r++) {
        if (view == NULL || view->canonical[r] == r) {
            lilac_lower_access access = copy_access(l, &m, r);
            access.code = remote ? LILAC_SIMT_OP_LD_CLUSTER : LILAC_SIMT_OP_LD_SHARED;
            lilac_lower_load_vector(l, &access, NULL, &registers[r]);
        }
    }
    if (remote) {
        wait_for_copies(l, &m);
    }
}

bool lilac_lower_broadcast_copies(lilac_lowering *l, const lilac_lower_view *view,
                                  lilac_simt_value *registers) {
    uint32_t warps = l->target->num_warps, lane_bits = log2_of(l->target->arch->warp_size);
    uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
    if (view == NULL ? l->target->num_ctas > 1 : view->columns.free_blocks != 0) {
        through_shared(l, view, true, registers);
    } else if (view == NULL ? warps == 1
                            : view->columns.free_threads != 0 && lane_of_copies(view, columns)) {
        lilac_simt_value lane = lilac_lower_linear(&l->builder, lane_bits, columns, 0, NULL);
        for (uint32_t r = 0; r < (view == NULL ? 1 : view->count); r++) {
            if (view == NULL || view->canonical[r] == r) {
                registers[r] = lilac_lower_shuffle(l, LILAC_SIMT_SHFL_IDX, registers[r], lane);
            }
        }
    } else if (view == NULL || view->columns.free_threads != 0) {
        through_shared(l, view, false, registers);
    }
    if (view == NULL) {
        lilac_simt_mark_uniform(l->kernel, registers[0]);
    }
    return true;
}

/* ---- attributes and operands ------------------------------------------------------------- */

typedef lilac_lower_aligned aligned;

typedef struct request {
    bool swaps;    /* tt.atomic_cas */
    bool wanted;   /* the result is used */
    bool by_swaps; /* in a loop of compare-and-swap */
    uint32_t kind; /* lilac_simt_atomic */
    lilac_simt_type type;
    lilac_simt_instruction modifiers; /* order and scope */
    aligned first, second;            /* operands 1 and 2: value and mask, or compare and value */
} request;

static bool read_request(lilac_lowering *l, const lilac_tile_op *op, request *q) {
    static const char *const kinds[] = {"and", "or",  "xor",  "add",  "fadd",
                                        "max", "min", "umax", "umin", "exch"};
    static const uint8_t kind_of[] = {LILAC_SIMT_ATOMIC_AND,   LILAC_SIMT_ATOMIC_OR,
                                      LILAC_SIMT_ATOMIC_XOR,   LILAC_SIMT_ATOMIC_ADD,
                                      LILAC_SIMT_ATOMIC_ADD,   LILAC_SIMT_ATOMIC_MAX_S,
                                      LILAC_SIMT_ATOMIC_MIN_S, LILAC_SIMT_ATOMIC_MAX_U,
                                      LILAC_SIMT_ATOMIC_MIN_U, LILAC_SIMT_ATOMIC_EXCHANGE};
    static const char *const orders[] = {"relaxed", "acquire", "release", "acq_rel"};
    static const char *const scopes[] = {"gpu", "cta", "sys"};
    *q = (request){.swaps = op->code == LILAC_TILE_OP_TT_ATOMIC_CAS,
                   .wanted = op->results[0].uses != NULL};
    const lilac_tile_type *pointers = lilac_tile_operand(op, 0)->type;
    if (!lilac_lower_type(l, lilac_tile_element(pointers)->element, &q->type)) {
        return false;
    }
    int kind = q->swaps ? 0 : lilac_lower_word(op, "atomic_rmw_op", 10, kinds, -1);
    int order = lilac_lower_word(op, "sem", 4, orders, -1);
    int scope = lilac_lower_word(op, "scope", 3, scopes, -1);
    if (kind < 0) {
        return lilac_lower_bad_attribute(l, "atomic_rmw_op",
                                         "and, or, xor, add, fadd, max, min, umax, umin or exch");
    }
    if (order < 0) {
        return lilac_lower_bad_attribute(l, "sem", "relaxed, acquire, release or acq_rel");
    }
    if (scope < 0) {
        return lilac_lower_bad_attribute(l, "scope", "gpu, cta or sys");
    }
    q->kind = kind_of[kind];
    q->modifiers.order = (uint8_t)order;
    /* the threads of a program may be in several blocks */
    q->modifiers.scope = (uint8_t)(scope == LILAC_SIMT_SCOPE_BLOCK && l->target->num_ctas > 1
                                       ? LILAC_SIMT_SCOPE_DEVICE
                                       : scope);
    uint32_t bits = lilac_simt_type_bits(q->type);
    bool is_float = lilac_simt_type_is_float(q->type);
    bool adds = q->kind == LILAC_SIMT_ATOMIC_ADD;
    bool bitwise = q->kind <= LILAC_SIMT_ATOMIC_XOR || q->kind == LILAC_SIMT_ATOMIC_EXCHANGE;
    bool extreme = q->kind == LILAC_SIMT_ATOMIC_MAX_S || q->kind == LILAC_SIMT_ATOMIC_MIN_S;
    bool fine = q->swaps     ? bits >= 16
                : bits >= 32 ? adds || bitwise || !is_float
                             : (adds || (extreme && bits == 16)) && is_float;
    q->by_swaps = !q->swaps && bits == 16 && is_float &&
                  (extreme || (adds && q->type == LILAC_SIMT_BF16 &&
                               !lilac_arch_has(l->target->arch, LILAC_HAS_BF16_ATOMICS)));
    return fine || lilac_lower_refuse(l, "unsupported-type",
                                      "no instruction computes '%s' (%s) on elements of type %s",
                                      lilac_tile_op_info_get(op->code)->name,
                                      q->swaps ? "compare and swap" : kinds[kind],
                                      lilac_simt_type_name(q->type));
}

/* ---- by compare-and-swap ------------------------------------------------------------------ */

/* Combines a 16-bit float or a pair with the memory. Returns the old value, or 0 where the predicate
 * is false. */
static lilac_simt_value combine_by_swaps(lilac_lowering *l, uint32_t kind, lilac_simt_value value,
                                         const lilac_lower_access *at) {
    lilac_simt_builder *b = &l->builder;
    const lilac_simt_opcode combines = kind == LILAC_SIMT_ATOMIC_ADD     ? LILAC_SIMT_OP_FADD
                                       : kind == LILAC_SIMT_ATOMIC_MAX_S ? LILAC_SIMT_OP_FMAX
                                                                         : LILAC_SIMT_OP_FMIN;
    const lilac_simt_type type = lilac_simt_type_of(l->kernel, value);
    const lilac_simt_type bits = lilac_simt_type_bits(type) == 16 ? LILAC_SIMT_I16 : LILAC_SIMT_I32;
    const lilac_simt_type types[2] = {bits, LILAC_SIMT_I1};
    const lilac_simt_value all = lilac_simt_constant(b, LILAC_SIMT_I1, 1);
    const lilac_simt_value starts[2] = {lilac_simt_constant(b, bits, 0),
                                        at->predicate != 0 ? at->predicate : all};
    lilac_simt_value first;
    lilac_simt_instruction *loop = lilac_simt_while_begin(b, 2, starts, 2, types, &first);
    const lilac_simt_value before[2] = {first, first + 1};
    lilac_simt_while_condition(b, loop, lilac_simt_any_lane(&l->builder, before[1]), before,
                               &first);
    const lilac_simt_value expected = first, pending = first + 1;
    lilac_simt_value sum = lilac_simt_op2(
        b, combines, type, lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, type, expected), value);
    sum = lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, bits, sum);
    lilac_simt_value old = lilac_simt_compare_and_swap(b, expected, sum, at->address, at->offset,
                                                       pending, true, at->modifiers);
    lilac_simt_value differs = lilac_simt_compare_values(b, LILAC_SIMT_NE, old, expected);
    lilac_simt_value next[2];
    next[0] = lilac_lower_select(l, pending, old, expected);
    next[1] = lilac_lower_both(l, pending, differs);
    return lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, type, lilac_simt_while_end(b, loop, next));
}

/* ---- instructions ------------------------------------------------------------------------- */

/* The elements of register r and those of its vector, packed for one instruction. Returns the
 * number of values. */
static uint32_t pack_values(lilac_lowering *l, const request *q,
                            const lilac_plan_global_access *plan, uint32_t r, bool pairs,
                            lilac_simt_value *values) {
    uint32_t elements = 1U << plan->vector_bits;
    lilac_simt_type pair = q->type == LILAC_SIMT_F16 ? LILAC_SIMT_F16X2 : LILAC_SIMT_BF16X2;
    for (uint32_t e = 0; e < elements; e++) {
        values[e] = lilac_lower_aligned_get(l, &q->first, lilac_plan_global_register(plan, r, e));
    }
    for (uint32_t e = 0; pairs && e < elements; e += 2) {
        values[e / 2] = lilac_simt_pack(&l->builder, pair, 2, &values[e]);
    }
    return pairs ? elements / 2 : elements;
}

/* Builds one instruction for the elements of register r and those of its vector. */
static void build_atomic(lilac_lowering *l, const request *q, const lilac_plan_global_access *plan,
                         uint32_t r, const lilac_lower_access *at, lilac_simt_value *olds) {
    lilac_simt_builder *b = &l->builder;
    if (q->swaps) {
        lilac_simt_value second = lilac_lower_aligned_get(l, &q->second, r);
        olds[r] = lilac_simt_compare_and_swap(b, lilac_lower_aligned_get(l, &q->first, r), second,
                                              at->address, at->offset, at->predicate, q->wanted,
                                              at->modifiers);
        return;
    }
    bool pairs = plan->vector_bits > 0 && lilac_simt_type_bits(q->type) == 16;
    lilac_simt_value values[8];
    uint32_t count = pack_values(l, q, plan, r, pairs, values);
    lilac_simt_value old =
        q->by_swaps ? combine_by_swaps(l, q->kind, values[0], at)
                    : lilac_simt_atomic_op(b, LILAC_SIMT_OP_ATOMIC_GLOBAL,
                                           (lilac_simt_atomic)q->kind, count, values, at->address,
                                           at->offset, at->predicate, q->wanted, at->modifiers);
    for (uint32_t k = 0; q->wanted && k < count; k++) {
        lilac_simt_value parts[2] = {old + k};
        if (pairs) {
            lilac_simt_unpack(b, q->type, old + k, 2, parts);
        }
        for (uint32_t p = 0; p < (pairs ? 2U : 1U); p++) {
            olds[lilac_plan_global_register(plan, r, pairs ? 2 * k + p : k)] = parts[p];
        }
    }
}

bool lilac_lower_atomic(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_simt_builder *b = &l->builder;
    const lilac_lower_value *pointer = lilac_lower_operand(l, op, 0);
    const lilac_lower_view *view = pointer->view;
    lilac_lower_value *result = lilac_lower_result(l, op, 0);
    request q;
    aligned mask = {0};
    if (result == NULL || !read_request(l, op, &q) ||
        !lilac_lower_align_operand(l, op, 1, view, &q.first) ||
        !lilac_lower_align_operand(l, op, 2, view, &q.second)) {
        return false;
    }
    if (result->view != view) {
        return lilac_lower_refuse(
            l, "layout-conversion",
            "the result of an atomic operation has another layout than its pointers, operand 0");
    }
    if (!q.swaps) {
        mask = q.second;
    }
    bool releases =
        q.modifiers.order == LILAC_SIMT_RELEASE || q.modifiers.order == LILAC_SIMT_ACQUIRE_RELEASE;
    if (view == NULL && releases && l->target->num_ctas > 1) {
        lilac_simt_cluster_barrier(b);
    } else if (view == NULL && releases && l->target->num_warps > 1) {
        lilac_simt_memory_barrier(b);
    }
    lilac_plan_global_access plan;
    lilac_engine_plan_access(&plan, op, &l->facts, l->target);
    lilac_lower_note_access(l, &plan);
    lilac_simt_value leader = lilac_lower_elect_holder(l, plan.idle_threads, plan.idle_blocks);
    for (uint32_t r = 0; r < pointer->count; r++) {
        if ((r & plan.skipped_registers) != 0) {
            continue;
        }
        lilac_lower_access access = {.modifiers = &q.modifiers};
        access.address = lilac_lower_address(l, pointer, r, &access.offset);
        lilac_simt_value predicate = mask.value != NULL ? lilac_lower_aligned_get(l, &mask, r) : 0;
        access.predicate = lilac_lower_both(l, predicate, leader);
        build_atomic(l, &q, &plan, r, &access, result->base);
    }
    if (!q.wanted) {
        return true;
    }
    if (!lilac_lower_broadcast_copies(l, view, result->base)) {
        return false;
    }
    if (view != NULL) {
        lilac_lower_replicate(view, result->base);
    }
    return true;
}
