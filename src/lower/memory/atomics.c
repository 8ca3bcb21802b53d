/* Atomic operations.
 *
 *   tt.atomic_rmw   of the threads (registers, blocks) that hold copies of an element one acts
 *   tt.atomic_cas   a scalar is thread 0's; the others get what was there, if anybody wants it
 *
 * Floats that stand one after another are added several at a time: f32 by 2 or 4, f16 and bf16 in
 * pairs and pairs by 2 or 4, at most 16 bytes.
 *
 * Devices without additions of bf16 (before sm_90) compare and swap an element, or a pair as a
 * word:
 *
 *     expected = 0, pending = the predicate
 *     while any lane of the warp is pending:
 *         old = cas [address], expected, expected + value       where pending
 *         pending = pending and old ≠ expected
 *         expected = old                                        where it was pending
 *
 * The first swap succeeds where nothing was added yet; elsewhere it reads the element. An ordinary
 * load would do that too, but races with the other threads' swaps. `expected` ends as the old
 * value. A swap of 16 bits does not touch the other half of its word (ptxas makes it a loop of
 * swaps of the word).
 *
 * A scalar that releases stands behind a barrier of the block: what any thread wrote before is
 * released with it. One that acquires reaches the other threads through a barrier anyway. Elements
 * of a tensor order the accesses of the thread that holds them, and no others. */
#include "lower_internal.h"

/* ---- copies ------------------------------------------------------------------------------ */

/* For each lane the one that has its elements right, as columns; false when it is no lane of the
 * same warp that has them, or has them in other registers. */
static bool lane_of_copies(const lilac_lower_view *view, uint64_t *columns) {
    lilac_f2_basis span;
    lilac_f2_basis_init(&span);
    for (uint32_t i = 0; i < view->lane_bits; i++) {
        columns[i] = 1ULL << i;
        if (view->free_threads >> i & 1) {
            uint64_t tag;
            if (lilac_f2_basis_reduce(&span, view->threads[i], &tag) != 0) {
                return false;
            }
            columns[i] = tag;
        } else {
            (void)lilac_f2_basis_add(&span, view->threads[i], 1ULL << i);
        }
    }
    return view->free_threads >> view->lane_bits == 0;
}

/* Every element has a place in shared memory, by its coordinate. */
static void through_shared(lilac_lowering *l, const lilac_lower_view *view,
                           lilac_simt_value *registers) {
    lilac_simt_builder *b = &l->builder;
    lilac_simt_type type = lilac_simt_type_of(l->kernel, registers[0]);
    uint32_t scale = log2_of(lilac_lower_memory_bytes(type)), bits = 0;
    uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0}, of_threads = 0;
    uint32_t thread_bits = view == NULL ? 0 : view->thread_bits;
    for (uint32_t d = 0; view != NULL && d < view->rank; d++) {
        bits += view->bits[d];
    }
    for (uint32_t i = 0; i < thread_bits; i++) {
        columns[i] = view->threads[i] << scale;
        of_threads |= columns[i];
    }
    uint32_t threads = l->target->num_warps * l->target->arch->warp_size;
    lilac_lower_barrier(l);
    uint32_t bytes = 1U << bits << scale, scratch = lilac_lower_scratch_again(l, bytes);
    lilac_simt_instruction promise = {.shared_begin = scratch, .shared_end = scratch + bytes};
    lilac_simt_instruction shared = {.code = LILAC_SIMT_OP_SHARED_BASE};
    lilac_simt_type word = LILAC_SIMT_I32;
    lilac_simt_value base = lilac_simt_build(b, &shared, 0, NULL, 1, &word);
    lilac_simt_value thread = lilac_lower_linear(b, thread_bits, columns, 0, NULL);
    lilac_simt_value first =
        lilac_lower_one_copy(l, view == NULL ? threads - 1 : view->free_threads, 0);
    for (uint32_t load = 0; load < 2; load++) {
        for (uint32_t r = 0; r < (view == NULL ? 1 : view->count); r++) {
            if (view != NULL && view->canonical[r] != r) {
                continue;
            }
            int64_t part = view == NULL ? 0 : (int64_t)(view->coordinates[r] << scale);
            lilac_simt_value place = thread;
            if ((uint64_t)part & of_threads) {
                place = lilac_simt_op2(b, LILAC_SIMT_OP_XOR, LILAC_SIMT_I32, thread,
                                       lilac_lower_integer(l, LILAC_SIMT_I32, part));
                part = 0;
            }
            place = lilac_simt_op2(b, LILAC_SIMT_OP_ADD, LILAC_SIMT_I32, base, place);
            if (load) {
                lilac_lower_load_vector(l, LILAC_SIMT_OP_LD_SHARED, type, 1, place, scratch + part,
                                        0, NULL, &promise, &registers[r]);
            } else {
                lilac_lower_store_vector(l, LILAC_SIMT_OP_ST_SHARED, type, 1, &registers[r], place,
                                         scratch + part, first, &promise);
            }
        }
        if (!load) {
            lilac_lower_barrier(l);
        }
    }
}

bool lilac_lower_broadcast_copies(lilac_lowering *l, const lilac_lower_view *view,
                                  lilac_simt_value *registers) {
    uint32_t warps = l->target->num_warps, lane_bits = log2_of(l->target->arch->warp_size);
    if (view == NULL ? l->target->num_ctas > 1 : view->free_blocks != 0) {
        return lilac_lower_unsupported(l, "its result would have to reach other blocks");
    }
    uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
    if (view == NULL ? warps == 1 : view->free_threads != 0 && lane_of_copies(view, columns)) {
        lilac_simt_value lane = lilac_lower_linear(&l->builder, lane_bits, columns, 0, NULL);
        for (uint32_t r = 0; r < (view == NULL ? 1 : view->count); r++) {
            if (view == NULL || view->canonical[r] == r) {
                registers[r] = lilac_lower_shuffle(l, LILAC_SIMT_SHFL_IDX, registers[r], lane);
            }
        }
    } else if (view == NULL || view->free_threads != 0) {
        through_shared(l, view, registers);
    }
    if (view == NULL) {
        lilac_simt_mark_uniform(l->kernel, registers[0]);
    }
    return true;
}

/* ---- what an operation asks for ---------------------------------------------------------- */

typedef struct request {
    bool swaps, wanted;
    bool by_swaps; /* additions that the device does not have */
    uint32_t kind; /* lilac_simt_atomic */
    lilac_simt_type type;
    lilac_simt_instruction modifiers; /* order and scope */
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
    if (kind < 0 || order < 0 || scope < 0) {
        return lilac_lower_unsupported(l, "its kind, memory order or scope is unknown");
    }
    q->kind = kind_of[kind];
    q->modifiers.order = (uint8_t)order;
    q->modifiers.scope = (uint8_t)scope;
    uint32_t bits = lilac_simt_type_bits(q->type);
    bool is_float = lilac_simt_type_is_float(q->type);
    bool adds = q->kind == LILAC_SIMT_ATOMIC_ADD;
    bool bitwise = q->kind <= LILAC_SIMT_ATOMIC_XOR || q->kind == LILAC_SIMT_ATOMIC_EXCHANGE;
    bool fine = q->swaps     ? bits >= 16
                : bits >= 32 ? adds || bitwise || !is_float
                             : adds && is_float;
    q->by_swaps = q->type == LILAC_SIMT_BF16 && adds && !q->swaps &&
                  !lilac_arch_has(l->target->arch, LILAC_HAS_BF16_ATOMICS);
    return fine || lilac_lower_refuse(l, "unsupported-type",
                                      "no device has '%s' of this kind on elements of %u bits",
                                      lilac_tile_op_info_get(op->code)->name, bits);
}

/* ---- additions by compare-and-swap -------------------------------------------------------- */

static lilac_simt_value any_lane(lilac_simt_builder *b, lilac_simt_value predicate) {
    lilac_simt_instruction vote = {.code = LILAC_SIMT_OP_VOTE, .detail = 2};
    lilac_simt_type type = LILAC_SIMT_I1;
    return lilac_simt_build(b, &vote, 1, &predicate, 1, &type);
}

/* Adds a bf16 or a bf16x2; what was there, 0 where the predicate does not hold. */
static lilac_simt_value add_by_swaps(lilac_lowering *l, const request *q, lilac_simt_value value,
                                     lilac_simt_value address, int64_t immediate,
                                     lilac_simt_value predicate) {
    lilac_simt_builder *b = &l->builder;
    const lilac_simt_type type = lilac_simt_type_of(l->kernel, value);
    const lilac_simt_type bits = type == LILAC_SIMT_BF16 ? LILAC_SIMT_I16 : LILAC_SIMT_I32;
    const lilac_simt_type types[2] = {bits, LILAC_SIMT_I1};
    const lilac_simt_value all = lilac_simt_constant(b, LILAC_SIMT_I1, 1);
    const lilac_simt_value starts[2] = {lilac_simt_constant(b, bits, 0),
                                        predicate != 0 ? predicate : all};
    lilac_simt_value first;
    lilac_simt_instruction *loop = lilac_simt_while_begin(b, 2, starts, 2, types, &first);
    const lilac_simt_value before[2] = {first, first + 1};
    lilac_simt_while_condition(b, loop, any_lane(b, before[1]), before, &first);
    const lilac_simt_value expected = first, pending = first + 1;
    lilac_simt_value sum =
        lilac_simt_op2(b, LILAC_SIMT_OP_FADD, type,
                       lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, type, expected), value);
    sum = lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, bits, sum);
    lilac_simt_value old = lilac_simt_compare_and_swap(b, expected, sum, address, immediate,
                                                       pending, true, &q->modifiers);
    lilac_simt_value differs = lilac_simt_compare_values(b, LILAC_SIMT_NE, old, expected);
    const lilac_simt_value next[2] = {lilac_lower_select(l, pending, old, expected),
                                      lilac_lower_both(l, pending, differs)};
    return lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, type, lilac_simt_while_end(b, loop, next));
}

/* ---- acting ------------------------------------------------------------------------------ */

typedef lilac_lower_companion companion;

/* How many elements go in one instruction. */
static lilac_lower_vector choose(lilac_lowering *l, const lilac_tile_op *op, const request *q,
                                 const lilac_lower_view *view) {
    lilac_lower_vector v = {0};
    bool adds = !q->swaps && q->kind == LILAC_SIMT_ATOMIC_ADD;
    uint32_t capability = l->target->arch->capability, most = 0;
    if (view != NULL && adds && q->type == LILAC_SIMT_F32) {
        most = capability >= 90 ? 2 : 0;
    } else if (view != NULL && adds && q->type == LILAC_SIMT_F16) {
        most = capability >= 90 ? 3 : 1;
    } else if (view != NULL && adds && q->type == LILAC_SIMT_BF16) {
        most = capability >= 90 ? 3 : 1;
    }
    if (most > 0) {
        v = lilac_lower_choose_vector(l, op, view, lilac_tile_operand(op, 2));
    }
    while (v.log2_size > most) {
        v.mask &= ~(1U << v.bits[--v.log2_size]);
    }
    return v;
}

/* One instruction for the elements of register r and those of its vector. */
static void act(lilac_lowering *l, const request *q, const lilac_lower_vector *v, uint32_t r,
                lilac_simt_value address, int64_t immediate, lilac_simt_value predicate,
                const companion *first, const companion *second, lilac_simt_value *olds) {
    lilac_simt_builder *b = &l->builder;
    if (q->swaps) {
        olds[r] = lilac_simt_compare_and_swap(b, lilac_lower_of_companion(l, first, r),
                                              lilac_lower_of_companion(l, second, r), address,
                                              immediate, predicate, q->wanted, &q->modifiers);
        return;
    }
    uint32_t elements = 1U << v->log2_size;
    bool pairs = elements > 1 && lilac_simt_type_bits(q->type) == 16;
    lilac_simt_type pair = q->type == LILAC_SIMT_F16 ? LILAC_SIMT_F16X2 : LILAC_SIMT_BF16X2;
    lilac_simt_value values[8];
    for (uint32_t e = 0; e < elements; e++) {
        values[e] = lilac_lower_of_companion(l, first, lilac_lower_register_at(v, r, e));
    }
    for (uint32_t e = 0; pairs && e < elements; e += 2) {
        values[e / 2] = lilac_simt_pack(b, pair, 2, &values[e]);
    }
    uint32_t count = pairs ? elements / 2 : elements;
    lilac_simt_value old =
        q->by_swaps ? add_by_swaps(l, q, values[0], address, immediate, predicate)
                    : lilac_simt_atomic_op(b, LILAC_SIMT_OP_ATOMIC_GLOBAL,
                                           (lilac_simt_atomic)q->kind, count, values, address,
                                           immediate, predicate, q->wanted, &q->modifiers);
    for (uint32_t k = 0; q->wanted && k < count; k++) {
        lilac_simt_value parts[2] = {old + k};
        if (pairs) {
            lilac_simt_unpack(b, q->type, old + k, 2, parts);
        }
        for (uint32_t p = 0; p < (pairs ? 2U : 1U); p++) {
            olds[lilac_lower_register_at(v, r, pairs ? 2 * k + p : k)] = parts[p];
        }
    }
}

bool lilac_lower_atomic(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_simt_builder *b = &l->builder;
    const lilac_lower_value *pointer = lilac_lower_operand(l, op, 0);
    const lilac_lower_view *view = pointer->view;
    lilac_lower_value *result = lilac_lower_result(l, op, 0);
    request q;
    companion first, second, mask = {0};
    if (result == NULL || !read_request(l, op, &q) ||
        !lilac_lower_accompany(l, op, 1, view, &first) ||
        !lilac_lower_accompany(l, op, 2, view, &second)) {
        return false;
    }
    if (result->view != view) {
        return lilac_lower_refuse(l, "layout-conversion",
                                  "an atomic operation's pointers and result differ in layout");
    }
    if (!q.swaps) {
        mask = second;
    }
    bool releases =
        q.modifiers.order == LILAC_SIMT_RELEASE || q.modifiers.order == LILAC_SIMT_ACQUIRE_RELEASE;
    if (view == NULL && releases && l->target->num_warps > 1) {
        lilac_simt_instruction barrier = {.code = LILAC_SIMT_OP_BARRIER};
        (void)lilac_simt_build(b, &barrier, 0, NULL, 0, NULL);
    }
    lilac_simt_value one_copy = lilac_lower_one_copy_of(l, view);
    lilac_lower_vector v = choose(l, op, &q, view);
    for (uint32_t r = 0; r < pointer->count; r++) {
        if ((view != NULL && view->canonical[r] != r) || (r & v.mask) != 0) {
            continue;
        }
        int64_t immediate;
        lilac_simt_value address = lilac_lower_address(l, pointer, r, &immediate);
        lilac_simt_value predicate = mask.value != NULL ? lilac_lower_of_companion(l, &mask, r) : 0;
        predicate = lilac_lower_both(l, predicate, one_copy);
        act(l, &q, &v, r, address, immediate, predicate, &first, &second, result->base);
    }
    if (!q.wanted) {
        return true;
    }
    if (!lilac_lower_broadcast_copies(l, view, result->base)) {
        return false;
    }
    if (view != NULL) {
        lilac_lower_give_copies(view, result->base);
    }
    return true;
}
