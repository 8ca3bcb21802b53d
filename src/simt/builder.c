/* The builder: appends instructions, and builds nothing that it need not.
 *
 *   emit(op, operands):  simplify → a value that is already there?   return it
 *                        look up (code, modifiers, operands)         return what was found
 *                        link it, remember it, learn its known bits
 *
 * Operations without operands go to the head of the kernel's body wherever they are asked for. The
 * structured operations open a body, and close it with a terminator; what was remembered within is
 * forgotten then. */
#include "internal.h"

#include <assert.h>
#include <string.h>

void lilac_simt_builder_init(lilac_simt_builder *builder, lilac_simt_kernel *kernel) {
    *builder = (lilac_simt_builder){.kernel = kernel, .body = kernel->body};
    builder->memo = lilac_simt_memo_create(kernel);
}

void lilac_simt_builder_clear(lilac_simt_builder *builder) {
    lilac_simt_memo_destroy(builder->memo);
    builder->memo = NULL;
}

/* ---- pure operations -------------------------------------------------------------------- */

/* Links a leaf behind the ones at the head of the kernel's body. */
static void link_leaf(lilac_simt_builder *b, lilac_simt_instruction *leaf) {
    lilac_simt_body *body = b->kernel->body;
    struct lilac_simt_memo *memo = b->memo;
    lilac_simt_link(body, memo->last_leaf != NULL ? memo->last_leaf->next : body->first, leaf);
    memo->last_leaf = leaf;
}

static lilac_simt_instruction *append(lilac_simt_builder *b, const lilac_simt_instruction *like,
                                      uint32_t operands, const lilac_simt_value *values,
                                      uint32_t results, const lilac_simt_type *types) {
    lilac_simt_instruction *i = lilac_simt_new_instruction(b->kernel, like, operands, values);
    if (b->location != 0) {
        i->location = b->location;
    }
    if (operands == 0 && lilac_simt_has_trait(i->code, LILAC_SIMT_PURE)) {
        link_leaf(b, i);
    } else {
        lilac_simt_link(b->body, b->memo->before, i);
    }
    lilac_simt_give_results(b->kernel, i, results, types);
    if (results > 0) {
        bool uniform = lilac_simt_is_uniform(b->kernel, i);
        for (uint32_t k = 0; k < results; k++) {
            b->kernel->values[i->result + k].uniform = uniform;
        }
    }
    return i;
}

/* An instruction found in place of one to be built promises only what both promise. */
static void weaken(lilac_simt_kernel *kernel, lilac_simt_value found,
                   const lilac_simt_instruction *like) {
    lilac_simt_instruction *i = kernel->values[found].definition;
    uint32_t wrap = LILAC_SIMT_NO_SIGNED_WRAP | LILAC_SIMT_NO_UNSIGNED_WRAP;
    i->flags &= (uint8_t)(like->flags | ~wrap);
}

static lilac_simt_value share(lilac_simt_builder *b, lilac_simt_instruction *like, uint32_t results,
                              const lilac_simt_type *types) {
    uint32_t hash;
    lilac_simt_infer_wrap(b, like, types[0]);
    lilac_simt_value found =
        lilac_simt_memo_find(b->memo, b->kernel, like, results, types[0], &hash);
    if (found != 0) {
        weaken(b->kernel, found, like);
        return found;
    }
    lilac_simt_instruction *i =
        append(b, like, like->operand_count, like->operands, results, types);
    lilac_simt_memo_add(b->memo, i, hash);
    lilac_simt_learn(b, i);
    return i->result;
}

/* What stands for a uniform value is uniform, though it may be computed from what a marked value is
 * computed from: x ^ c of one number in all threads, where nothing says so of x. */
static void keep_uniform(lilac_simt_kernel *kernel, lilac_simt_value value, bool uniform) {
    if (uniform && !kernel->values[value].uniform) {
        lilac_simt_mark_uniform(kernel, value);
    }
}

lilac_simt_value lilac_simt_emit(lilac_simt_builder *b, lilac_simt_instruction *like,
                                 lilac_simt_type type) {
    if (like->operand_count == 0) {
        return share(b, like, 1, &type);
    }
    const bool uniform = lilac_simt_is_uniform(b->kernel, like);
    lilac_simt_value value = lilac_simt_simplify(b, like, type);
    if (value == 0) {
        value = share(b, like, 1, &type);
    }
    keep_uniform(b->kernel, value, uniform);
    return value;
}

lilac_simt_value lilac_simt_constant(lilac_simt_builder *b, lilac_simt_type type, uint64_t bits) {
    lilac_simt_instruction like = {
        .code = LILAC_SIMT_OP_CONST,
        .immediate = (int64_t)(bits & lilac_simt_type_mask(type)),
    };
    return share(b, &like, 1, &type);
}

lilac_simt_value lilac_simt_parameter_value(lilac_simt_builder *b, uint32_t index) {
    assert(index < b->kernel->parameter_count);
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_PARAM, .immediate = index};
    const lilac_simt_parameter *parameter = &b->kernel->parameters[index];
    lilac_simt_type type = parameter->type;
    lilac_simt_value value = share(b, &like, 1, &type);
    if (b->kernel->values[value].name == NULL) {
        b->kernel->values[value].name = parameter->name;
    }
    return value;
}

lilac_simt_value lilac_simt_op1(lilac_simt_builder *b, lilac_simt_opcode code, lilac_simt_type type,
                                lilac_simt_value a) {
    lilac_simt_value operands[4] = {a};
    lilac_simt_instruction like = {
        .code = (uint16_t)code, .operand_count = 1, .operands = operands};
    return lilac_simt_emit(b, &like, type);
}

lilac_simt_value lilac_simt_op2_flags(lilac_simt_builder *b, lilac_simt_opcode code,
                                      lilac_simt_type type, lilac_simt_value a, lilac_simt_value c,
                                      uint32_t flags) {
    lilac_simt_value operands[4] = {a, c};
    lilac_simt_instruction like = {
        .code = (uint16_t)code, .flags = (uint8_t)flags, .operand_count = 2, .operands = operands};
    return lilac_simt_emit(b, &like, type);
}

lilac_simt_value lilac_simt_op2(lilac_simt_builder *b, lilac_simt_opcode code, lilac_simt_type type,
                                lilac_simt_value a, lilac_simt_value c) {
    return lilac_simt_op2_flags(b, code, type, a, c, 0);
}

lilac_simt_value lilac_simt_op3(lilac_simt_builder *b, lilac_simt_opcode code, lilac_simt_type type,
                                lilac_simt_value a, lilac_simt_value c, lilac_simt_value d) {
    lilac_simt_value operands[4] = {a, c, d};
    lilac_simt_instruction like = {
        .code = (uint16_t)code, .operand_count = 3, .operands = operands};
    return lilac_simt_emit(b, &like, type);
}

lilac_simt_value lilac_simt_compare_values(lilac_simt_builder *b, lilac_simt_compare kind,
                                           lilac_simt_value a, lilac_simt_value c) {
    lilac_simt_value operands[4] = {a, c};
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_CMP,
                                   .detail = (uint8_t)kind,
                                   .operand_count = 2,
                                   .operands = operands};
    return lilac_simt_emit(b, &like, LILAC_SIMT_I1);
}

lilac_simt_value lilac_simt_pack(lilac_simt_builder *b, lilac_simt_type type, uint32_t count,
                                 const lilac_simt_value *parts) {
    lilac_simt_value operands[8];
    assert(count >= 1 && count <= 8);
    memcpy(operands, parts, sizeof *parts * count);
    lilac_simt_instruction like = {
        .code = LILAC_SIMT_OP_PACK, .operand_count = (uint16_t)count, .operands = operands};
    return lilac_simt_emit(b, &like, type);
}

void lilac_simt_unpack(lilac_simt_builder *b, lilac_simt_type part, lilac_simt_value value,
                       uint32_t count, lilac_simt_value *parts) {
    assert(count >= 1 && count <= 8);
    if (lilac_simt_known_parts(b, value, part, count, parts)) {
        return;
    }
    lilac_simt_instruction like = {
        .code = LILAC_SIMT_OP_UNPACK, .operand_count = 1, .operands = &value};
    lilac_simt_type types[8] = {part, part, part, part, part, part, part, part};
    lilac_simt_value first = share(b, &like, count, types);
    for (uint32_t k = 0; k < count; k++) {
        parts[k] = first + k;
    }
}

/* ---- any operation ---------------------------------------------------------------------- */

lilac_simt_value lilac_simt_build(lilac_simt_builder *b, const lilac_simt_instruction *like,
                                  uint32_t operands, const lilac_simt_value *values,
                                  uint32_t results, const lilac_simt_type *types) {
    assert(!lilac_simt_has_trait(like->code, LILAC_SIMT_REGIONS));
    lilac_simt_value local[24];
    lilac_simt_value *copy =
        operands <= 24 ? local
                       : lilac_arena_array(b->kernel->module->arena, lilac_simt_value, operands);
    if (operands > 0) {
        memcpy(copy, values, sizeof *values * operands);
    }
    lilac_simt_instruction wanted = *like;
    wanted.operands = copy;
    wanted.operand_count = (uint16_t)operands;
    wanted.bodies = NULL;
    wanted.body_count = 0;
    if (lilac_simt_has_trait(like->code, LILAC_SIMT_PURE) && results > 0) {
        return results == 1 ? lilac_simt_emit(b, &wanted, types[0])
                            : share(b, &wanted, results, types);
    }
    if (lilac_simt_is_access(like->code)) {
        lilac_simt_simplify_access(b, &wanted);
    }
    return append(b, &wanted, wanted.operand_count, wanted.operands, results, types)->result;
}

/* An access with these modifiers, or none. */
static lilac_simt_instruction access_like(lilac_simt_opcode code, int64_t offset,
                                          const lilac_simt_instruction *modifiers) {
    lilac_simt_instruction like = {0};
    if (modifiers != NULL) {
        like = *modifiers;
    }
    like.code = (uint16_t)code;
    like.immediate = offset;
    return like;
}

/* The operands that every access begins with; how many. */
static uint32_t put_place(lilac_simt_value *operands, lilac_simt_value address,
                          lilac_simt_value predicate) {
    operands[0] = address;
    operands[1] = predicate;
    return predicate != 0 ? 2 : 1;
}

lilac_simt_value lilac_simt_load(lilac_simt_builder *b, lilac_simt_opcode code,
                                 lilac_simt_type type, uint32_t count, lilac_simt_value address,
                                 int64_t offset, lilac_simt_value predicate,
                                 const lilac_simt_value *others,
                                 const lilac_simt_instruction *modifiers) {
    lilac_simt_instruction like = access_like(code, offset, modifiers);
    lilac_simt_value operands[10];
    lilac_simt_type types[8];
    assert(count >= 1 && count <= 8);
    uint32_t n = put_place(operands, address, predicate);
    for (uint32_t k = 0; predicate != 0 && others != NULL && k < count; k++) {
        operands[n++] = others[k];
    }
    for (uint32_t k = 0; k < count; k++) {
        types[k] = type;
    }
    return lilac_simt_build(b, &like, n, operands, count, types);
}

void lilac_simt_store(lilac_simt_builder *b, lilac_simt_opcode code, uint32_t count,
                      const lilac_simt_value *values, lilac_simt_value address, int64_t offset,
                      lilac_simt_value predicate, const lilac_simt_instruction *modifiers) {
    lilac_simt_instruction like = access_like(code, offset, modifiers);
    lilac_simt_value operands[10];
    assert(count >= 1 && count <= 8);
    uint32_t n = put_place(operands, address, predicate);
    for (uint32_t k = 0; k < count; k++) {
        operands[n++] = values[k];
    }
    lilac_simt_build(b, &like, n, operands, 0, NULL);
}

lilac_simt_value lilac_simt_load_matrix(lilac_simt_builder *b, bool transposed,
                                        lilac_simt_type type, uint32_t count,
                                        lilac_simt_value address, int64_t offset,
                                        const lilac_simt_instruction *modifiers) {
    lilac_simt_instruction like = {0};
    if (modifiers != NULL) {
        like = *modifiers;
    }
    like.detail = transposed;
    return lilac_simt_load(b, LILAC_SIMT_OP_LD_MATRIX, type, count, address, offset, 0, NULL,
                           &like);
}

void lilac_simt_store_matrix(lilac_simt_builder *b, bool transposed, uint32_t count,
                             const lilac_simt_value *values, lilac_simt_value address,
                             int64_t offset, lilac_simt_value predicate,
                             const lilac_simt_instruction *modifiers) {
    lilac_simt_instruction like = {0};
    if (modifiers != NULL) {
        like = *modifiers;
    }
    like.detail = transposed;
    lilac_simt_store(b, LILAC_SIMT_OP_ST_MATRIX, count, values, address, offset, predicate, &like);
}

void lilac_simt_copy_async(lilac_simt_builder *b, uint32_t size, lilac_simt_value shared,
                           int64_t offset, lilac_simt_value global, int32_t source_offset,
                           lilac_simt_value predicate, lilac_simt_value bytes,
                           const lilac_simt_instruction *modifiers) {
    lilac_simt_instruction like = access_like(LILAC_SIMT_OP_CP_ASYNC, offset, modifiers);
    lilac_simt_value operands[4];
    like.detail = (uint8_t)size;
    like.payload.copy.source = source_offset;
    uint32_t n = put_place(operands, shared, predicate);
    operands[n++] = global;
    if (bytes != 0) {
        operands[n++] = bytes;
    }
    lilac_simt_build(b, &like, n, operands, 0, NULL);
}

static lilac_simt_value build_atomic(lilac_simt_builder *b, const lilac_simt_instruction *like,
                                     uint32_t count, const lilac_simt_value *values,
                                     lilac_simt_value address, lilac_simt_value predicate,
                                     uint32_t results) {
    lilac_simt_value operands[10];
    lilac_simt_type types[8];
    assert(count >= 1 && count <= 8);
    uint32_t n = put_place(operands, address, predicate);
    for (uint32_t k = 0; k < count; k++) {
        types[k] = lilac_simt_type_of(b->kernel, values[k]);
        operands[n++] = values[k];
    }
    return lilac_simt_build(b, like, n, operands, results, types);
}

lilac_simt_value lilac_simt_atomic_op(lilac_simt_builder *b, lilac_simt_opcode code,
                                      lilac_simt_atomic kind, uint32_t count,
                                      const lilac_simt_value *values, lilac_simt_value address,
                                      int64_t offset, lilac_simt_value predicate, bool wanted,
                                      const lilac_simt_instruction *modifiers) {
    lilac_simt_instruction like = {0};
    if (modifiers != NULL) {
        like = *modifiers;
    }
    like.code = (uint16_t)code;
    like.detail = (uint8_t)kind;
    like.immediate = offset;
    return build_atomic(b, &like, count, values, address, predicate, wanted ? count : 0);
}

lilac_simt_value lilac_simt_compare_and_swap(lilac_simt_builder *b, lilac_simt_value compare,
                                             lilac_simt_value value, lilac_simt_value address,
                                             int64_t offset, lilac_simt_value predicate,
                                             bool wanted, const lilac_simt_instruction *modifiers) {
    lilac_simt_instruction like = {0};
    lilac_simt_value values[2] = {compare, value};
    if (modifiers != NULL) {
        like = *modifiers;
    }
    like.code = LILAC_SIMT_OP_CAS_GLOBAL;
    like.immediate = offset;
    return build_atomic(b, &like, 2, values, address, predicate, wanted);
}

/* ---- windows of warps ------------------------------------------------------------------- */

static uint32_t warp_size(const lilac_simt_builder *b) {
    const lilac_arch *arch = b->kernel->module->arch;
    return arch != NULL ? arch->warp_size : 32;
}

uint32_t lilac_simt_threads(const lilac_simt_builder *b) {
    return (b->window.warps > 0 ? b->window.warps : b->kernel->num_warps) * warp_size(b);
}

/* A number of the block, in windows of `size` of which the builder's begins at `first`. */
static lilac_simt_value in_window(lilac_simt_builder *b, lilac_simt_opcode code, uint32_t first,
                                  uint32_t size) {
    const lilac_simt_instruction like = {.code = (uint16_t)code};
    const lilac_simt_type type = LILAC_SIMT_I32;
    lilac_simt_value number = lilac_simt_build(b, &like, 0, NULL, 1, &type);
    if (first % size != 0) {
        number = lilac_simt_op2(b, LILAC_SIMT_OP_SUB, type, number,
                                lilac_simt_constant(b, type, first % size));
    }
    return first == 0 ? number
                      : lilac_simt_op2(b, LILAC_SIMT_OP_AND, type, number,
                                       lilac_simt_constant(b, type, size - 1));
}

lilac_simt_value lilac_simt_thread(lilac_simt_builder *b) {
    return in_window(b, LILAC_SIMT_OP_THREAD, b->window.first_warp * warp_size(b),
                     lilac_simt_threads(b));
}

lilac_simt_value lilac_simt_warp(lilac_simt_builder *b) {
    return in_window(b, LILAC_SIMT_OP_WARP, b->window.first_warp,
                     lilac_simt_threads(b) / warp_size(b));
}

lilac_simt_value lilac_simt_elected_thread(lilac_simt_builder *b) {
    const lilac_simt_instruction like = {.code = LILAC_SIMT_OP_ELECT};
    const lilac_simt_type type = LILAC_SIMT_I1;
    const lilac_simt_value lane = lilac_simt_build(b, &like, 0, NULL, 1, &type);
    if (lilac_simt_threads(b) <= warp_size(b)) {
        return lane;
    }
    const lilac_simt_value size = lilac_simt_constant(b, LILAC_SIMT_I32, warp_size(b));
    const lilac_simt_value first_warp =
        lilac_simt_compare_values(b, LILAC_SIMT_LT, lilac_simt_thread(b), size);
    return lilac_simt_op2(b, LILAC_SIMT_OP_AND, type, lane, first_warp);
}

/* ---- barriers --------------------------------------------------------------------------- */

static void build_effect(lilac_simt_builder *b, lilac_simt_opcode code, uint32_t flags) {
    lilac_simt_instruction like = {.code = (uint16_t)code, .flags = (uint8_t)flags};
    lilac_simt_build(b, &like, 0, NULL, 0, NULL);
}

/* The barrier of a program's warps. */
static void window_barrier(lilac_simt_builder *b, uint32_t flags) {
    const lilac_simt_instruction like = {.code = LILAC_SIMT_OP_NAMED_BARRIER_SYNC,
                                         .flags = (uint8_t)flags,
                                         .detail = (uint8_t)b->window.barrier,
                                         .immediate = lilac_simt_threads(b)};
    lilac_simt_build(b, &like, 0, NULL, 0, NULL);
}

void lilac_simt_barrier(lilac_simt_builder *b) {
    if (b->window.warps == 1) {
        lilac_simt_warp_barrier(b);
    } else if (b->window.warps > 0) {
        window_barrier(b, 0);
    } else {
        build_effect(b, LILAC_SIMT_OP_BARRIER, LILAC_SIMT_SHARED_ONLY);
    }
}

void lilac_simt_memory_barrier(lilac_simt_builder *b) {
    if (b->window.warps > 0) {
        window_barrier(b, 0);
    } else {
        build_effect(b, LILAC_SIMT_OP_BARRIER, 0);
    }
}

void lilac_simt_warp_barrier(lilac_simt_builder *b) {
    build_effect(b, LILAC_SIMT_OP_WARP_BARRIER, LILAC_SIMT_SHARED_ONLY);
}

void lilac_simt_schedule_accesses(lilac_simt_builder *b) {
    build_effect(b, LILAC_SIMT_OP_SCHEDULE_ACCESSES, 0);
}

void lilac_simt_copy_commit(lilac_simt_builder *b) {
    build_effect(b, LILAC_SIMT_OP_CP_ASYNC_COMMIT, 0);
}

void lilac_simt_copy_wait(lilac_simt_builder *b, uint32_t groups) {
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_CP_ASYNC_WAIT, .immediate = groups};
    lilac_simt_build(b, &like, 0, NULL, 0, NULL);
}

void lilac_simt_copy_wait_all(lilac_simt_builder *b) {
    build_effect(b, LILAC_SIMT_OP_CP_ASYNC_WAIT_ALL, 0);
}

void lilac_simt_fence_mbarrier_init(lilac_simt_builder *b) {
    build_effect(b, LILAC_SIMT_OP_FENCE_MBARRIER_INIT, 0);
}

lilac_simt_value lilac_simt_mbarrier(lilac_simt_builder *b, lilac_simt_opcode code,
                                     lilac_simt_value address, int64_t offset,
                                     lilac_simt_value predicate, lilac_simt_value value) {
    lilac_simt_instruction like = access_like(code, offset, NULL);
    lilac_simt_value operands[3];
    lilac_simt_type type = LILAC_SIMT_I1;
    uint32_t n = put_place(operands, address, predicate);
    if (value != 0) {
        operands[n++] = value;
    }
    const bool tests =
        code == LILAC_SIMT_OP_MBARRIER_TRY_WAIT || code == LILAC_SIMT_OP_MBARRIER_TEST;
    return lilac_simt_build(b, &like, n, operands, tests, &type);
}

void lilac_simt_named_barrier(lilac_simt_builder *b, bool waits, uint32_t id, uint32_t threads) {
    lilac_simt_instruction like = {.code = waits ? LILAC_SIMT_OP_NAMED_BARRIER_SYNC
                                                 : LILAC_SIMT_OP_NAMED_BARRIER_ARRIVE,
                                   .detail = (uint8_t)id,
                                   .immediate = threads};
    lilac_simt_build(b, &like, 0, NULL, 0, NULL);
}

void lilac_simt_set_max_registers(lilac_simt_builder *b, bool increases, uint32_t registers) {
    lilac_simt_instruction like = {
        .code = LILAC_SIMT_OP_SET_MAX_REGISTERS, .detail = increases, .immediate = registers};
    lilac_simt_build(b, &like, 0, NULL, 0, NULL);
}

void lilac_simt_cluster_barrier(lilac_simt_builder *b) {
    build_effect(b, LILAC_SIMT_OP_CLUSTER_BARRIER, 0);
}

void lilac_simt_group_barrier(lilac_simt_builder *b, lilac_simt_value number, uint32_t threads) {
    lilac_simt_group_barrier_partition(b, number, threads, 0);
}

void lilac_simt_group_barrier_partition(lilac_simt_builder *b, lilac_simt_value number,
                                        uint32_t threads, uint32_t partition) {
    if (b->window.warps > 0) {
        lilac_simt_barrier(b);
        return;
    }
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_GROUP_BARRIER,
                                   .flags = LILAC_SIMT_SHARED_ONLY,
                                   .immediate = threads,
                                   .shared_partition = partition};
    lilac_simt_build(b, &like, 1, &number, 0, NULL);
}

lilac_simt_value lilac_simt_map_shared(lilac_simt_builder *b, lilac_simt_value address,
                                       lilac_simt_value rank) {
    return lilac_simt_op2(b, LILAC_SIMT_OP_MAP_SHARED, LILAC_SIMT_I32, address, rank);
}

/* ---- loop, if, while -------------------------------------------------------------------- */

/* The memo's mark of each open body is kept in its instruction's immediate until it closes. A body
 * is built at its end; what follows its owner is built behind the owner. */
static void open_body(lilac_simt_builder *b, lilac_simt_instruction *owner, uint32_t index) {
    owner->immediate = lilac_simt_memo_open(b->memo);
    b->body = owner->bodies[index];
    b->memo->before = NULL;
}

static void close_body(lilac_simt_builder *b, lilac_simt_instruction *owner,
                       lilac_simt_opcode terminator, uint32_t count,
                       const lilac_simt_value *values) {
    lilac_simt_instruction like = {.code = (uint16_t)terminator, .location = owner->location};
    lilac_simt_instruction *end = lilac_simt_new_instruction(b->kernel, &like, count, values);
    lilac_simt_link(b->body, NULL, end);
    lilac_simt_memo_close(b->memo, (uint32_t)owner->immediate);
    owner->immediate = 0;
    b->body = owner->parent;
    b->memo->before = owner->next;
}

static lilac_simt_instruction *begin(lilac_simt_builder *b, lilac_simt_opcode code,
                                     uint32_t operands, const lilac_simt_value *values,
                                     uint32_t results, const lilac_simt_type *types,
                                     uint32_t bodies) {
    lilac_simt_instruction like = {.code = (uint16_t)code};
    lilac_simt_instruction *i = append(b, &like, operands, values, results, types);
    i->body_count = (uint16_t)bodies;
    i->bodies = lilac_arena_array(b->kernel->module->arena, lilac_simt_body *, bodies);
    for (uint32_t k = 0; k < results; k++) {
        b->kernel->values[i->result + k].uniform = true;
    }
    return i;
}

static lilac_simt_type *types_of(lilac_simt_builder *b, uint32_t count,
                                 const lilac_simt_value *values, uint32_t spare) {
    lilac_simt_type *types =
        lilac_arena_array(b->kernel->module->arena, lilac_simt_type, count + spare);
    for (uint32_t k = 0; k < count; k++) {
        types[spare + k] = (lilac_simt_type)b->kernel->values[values[k]].type;
    }
    return types;
}

static void set_uniform(lilac_simt_kernel *kernel, lilac_simt_value first, uint32_t count,
                        const lilac_simt_value *like) {
    for (uint32_t k = 0; k < count; k++) {
        kernel->values[first + k].uniform = like == NULL || kernel->values[like[k]].uniform;
    }
}

lilac_simt_instruction *lilac_simt_loop_begin(lilac_simt_builder *b, lilac_simt_value lower,
                                              lilac_simt_value upper, lilac_simt_value step,
                                              uint32_t carried, const lilac_simt_value *inits,
                                              lilac_simt_value *variable) {
    lilac_arena *arena = b->kernel->module->arena;
    lilac_simt_value *operands = lilac_arena_array(arena, lilac_simt_value, carried + 3);
    operands[0] = lower;
    operands[1] = upper;
    operands[2] = step;
    if (carried > 0) {
        memcpy(operands + 3, inits, sizeof *inits * carried);
    }
    lilac_simt_type *types = types_of(b, carried, operands + 3, 1);
    types[0] = (lilac_simt_type)b->kernel->values[lower].type;
    lilac_simt_instruction *loop =
        begin(b, LILAC_SIMT_OP_LOOP, carried + 3, operands, carried, types + 1, 1);
    loop->bodies[0] = lilac_simt_new_body(b->kernel, loop, carried + 1, types);
    *variable = loop->bodies[0]->argument;
    lilac_simt_value_info *values = b->kernel->values;
    values[*variable].uniform =
        values[lower].uniform && values[upper].uniform && values[step].uniform;
    set_uniform(b->kernel, *variable + 1, carried, operands + 3);
    open_body(b, loop, 0);
    return loop;
}

lilac_simt_value lilac_simt_loop_end(lilac_simt_builder *b, lilac_simt_instruction *loop,
                                     const lilac_simt_value *next) {
    const lilac_simt_value_info *values = b->kernel->values;
    lilac_simt_body *body = loop->bodies[0];
    bool settled = values[body->argument].uniform;
    for (uint32_t k = 0; k < loop->result_count; k++) {
        bool carried = values[body->argument + 1 + k].uniform;
        settled &= carried == values[next[k]].uniform && carried;
    }
    close_body(b, loop, LILAC_SIMT_OP_YIELD, loop->result_count, next);
    if (!settled) {
        lilac_simt_settle_uniform(b->kernel, loop);
    }
    return loop->result;
}

lilac_simt_value lilac_simt_any_lane(lilac_simt_builder *b, lilac_simt_value predicate) {
    lilac_simt_instruction vote = {.code = LILAC_SIMT_OP_VOTE, .detail = 2};
    lilac_simt_type type = LILAC_SIMT_I1;
    return lilac_simt_build(b, &vote, 1, &predicate, 1, &type);
}

lilac_simt_instruction *lilac_simt_if_begin(lilac_simt_builder *b, lilac_simt_value condition,
                                            uint32_t results, const lilac_simt_type *types) {
    lilac_simt_instruction *branch = begin(b, LILAC_SIMT_OP_IF, 1, &condition, results, types, 2);
    branch->bodies[0] = lilac_simt_new_body(b->kernel, branch, 0, NULL);
    branch->bodies[1] = lilac_simt_new_body(b->kernel, branch, 0, NULL);
    open_body(b, branch, 0);
    return branch;
}

void lilac_simt_if_else(lilac_simt_builder *b, lilac_simt_instruction *branch,
                        const lilac_simt_value *values) {
    close_body(b, branch, LILAC_SIMT_OP_YIELD, branch->result_count, values);
    open_body(b, branch, 1);
}

lilac_simt_value lilac_simt_if_end(lilac_simt_builder *b, lilac_simt_instruction *branch,
                                   const lilac_simt_value *values) {
    if (b->body == branch->bodies[0]) { /* no else: then there is nothing to yield */
        assert(branch->result_count == 0);
        lilac_simt_if_else(b, branch, NULL);
        values = NULL;
    }
    close_body(b, branch, LILAC_SIMT_OP_YIELD, branch->result_count, values);
    lilac_simt_settle_uniform(b->kernel, branch);
    return branch->result;
}

lilac_simt_instruction *lilac_simt_programs_begin(lilac_simt_builder *b, uint32_t count,
                                                  const uint32_t *warps) {
    lilac_simt_instruction *programs = begin(b, LILAC_SIMT_OP_PROGRAMS, 0, NULL, 0, NULL, count);
    for (uint32_t k = 0, first = 0; k < count; first += warps[k++]) {
        programs->bodies[k] = lilac_simt_new_body(b->kernel, programs, 0, NULL);
        programs->bodies[k]->first_warp = first;
        programs->bodies[k]->end_warp = first + warps[k];
    }
    open_body(b, programs, 0);
    return programs;
}

void lilac_simt_programs_next(lilac_simt_builder *b, lilac_simt_instruction *programs) {
    uint32_t k = 0;
    while (programs->bodies[k] != b->body) {
        k++;
    }
    close_body(b, programs, LILAC_SIMT_OP_YIELD, 0, NULL);
    open_body(b, programs, k + 1);
}

void lilac_simt_programs_end(lilac_simt_builder *b, lilac_simt_instruction *programs) {
    close_body(b, programs, LILAC_SIMT_OP_YIELD, 0, NULL);
}

lilac_simt_instruction *lilac_simt_while_begin(lilac_simt_builder *b, uint32_t carried,
                                               const lilac_simt_value *inits, uint32_t results,
                                               const lilac_simt_type *types,
                                               lilac_simt_value *first) {
    lilac_simt_instruction *loop = begin(b, LILAC_SIMT_OP_WHILE, carried, inits, results, types, 2);
    loop->bodies[0] = lilac_simt_new_body(b->kernel, loop, carried, types_of(b, carried, inits, 0));
    loop->bodies[1] = lilac_simt_new_body(b->kernel, loop, results, types);
    *first = loop->bodies[0]->argument;
    set_uniform(b->kernel, *first, carried, inits);
    open_body(b, loop, 0);
    return loop;
}

void lilac_simt_while_condition(lilac_simt_builder *b, lilac_simt_instruction *loop,
                                lilac_simt_value condition, const lilac_simt_value *passed,
                                lilac_simt_value *first) {
    lilac_simt_value *values =
        lilac_arena_array(b->kernel->module->arena, lilac_simt_value, loop->result_count + 1u);
    values[0] = condition;
    if (loop->result_count > 0) {
        memcpy(values + 1, passed, sizeof *passed * loop->result_count);
    }
    *first = loop->bodies[1]->argument;
    set_uniform(b->kernel, *first, loop->result_count, passed);
    /* The before body runs whenever the after body does and dominates it, but what it computed is
     * not in reach by the scoping rule: a body sees the bodies around it. */
    close_body(b, loop, LILAC_SIMT_OP_CONDITION, loop->result_count + 1u, values);
    open_body(b, loop, 1);
}

lilac_simt_value lilac_simt_while_end(lilac_simt_builder *b, lilac_simt_instruction *loop,
                                      const lilac_simt_value *next) {
    close_body(b, loop, LILAC_SIMT_OP_YIELD, loop->operand_count, next);
    lilac_simt_settle_uniform(b->kernel, loop);
    return loop->result;
}
