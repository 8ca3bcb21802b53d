/* Operations of the async proxy: building and checking them.
 *
 *     cp.bulk.store [shared + immediate], predicate, (global, bytes) {global = offset}
 *     cp.bulk.load [shared], (global, bytes, mbarrier) {mbarrier = offset}
 *     cp.tensor.load [shared], (map, coordinate 0, coordinate 1, …, mbarrier)
 *     cp.tensor.load [shared], (map, coordinate 0, …, mbarrier, mask of blocks) {multicast}
 *     cp.tensor.store [shared], (map, coordinate 0, coordinate 1, …) */
#include "internal.h"

#include <lilac/tensor_map.h>

enum {
    BULK_BYTES = 16,        /* a bulk copy's size and addresses are multiples of it */
    TENSOR_ALIGNMENT = 128, /* of a box in shared memory */
    MASK_BITS = 16          /* of a multicast */
};

/* ---- building --------------------------------------------------------------------------- */

static void build_copy(lilac_simt_builder *b, const lilac_simt_instruction *like,
                       lilac_simt_value shared, lilac_simt_value predicate, lilac_simt_value global,
                       lilac_simt_value bytes) {
    lilac_simt_value operands[4] = {shared};
    uint32_t n = 1;
    if (predicate != 0) {
        operands[n++] = predicate;
    }
    operands[n++] = global;
    operands[n++] = bytes;
    lilac_simt_build(b, like, n, operands, 0, NULL);
}

void lilac_simt_bulk_store(lilac_simt_builder *b, lilac_simt_value shared, int64_t offset,
                           lilac_simt_value global, lilac_simt_value bytes,
                           lilac_simt_value predicate, const lilac_simt_instruction *modifiers) {
    lilac_simt_instruction like = {0};
    if (modifiers != NULL) {
        like = *modifiers;
    }
    like.code = LILAC_SIMT_OP_CP_BULK_STORE;
    like.immediate = offset;
    build_copy(b, &like, shared, predicate, global, bytes);
}

void lilac_simt_bulk_reduce(lilac_simt_builder *b, lilac_simt_atomic kind, lilac_scalar element,
                            lilac_simt_value shared, lilac_simt_value global,
                            lilac_simt_value bytes, lilac_simt_value predicate) {
    lilac_simt_instruction like = {
        .code = LILAC_SIMT_OP_CP_BULK_REDUCE, .detail = (uint8_t)kind, .scalar = (uint8_t)element};
    build_copy(b, &like, shared, predicate, global, bytes);
}

void lilac_simt_bulk_load(lilac_simt_builder *b, lilac_simt_value shared, lilac_simt_value global,
                          lilac_simt_value bytes, lilac_simt_value mbarrier,
                          lilac_simt_value predicate, const lilac_simt_instruction *modifiers) {
    lilac_simt_instruction like = {0};
    lilac_simt_value operands[5] = {shared};
    uint32_t n = 1;
    if (modifiers != NULL) {
        like = *modifiers;
    }
    like.code = LILAC_SIMT_OP_CP_BULK_LOAD;
    if (predicate != 0) {
        operands[n++] = predicate;
    }
    operands[n++] = global;
    operands[n++] = bytes;
    operands[n++] = mbarrier;
    lilac_simt_build(b, &like, n, operands, 0, NULL);
}

void lilac_simt_build_tensor_copy(lilac_simt_builder *b, const lilac_simt_instruction *modifiers,
                                  const lilac_simt_tensor_copy *copy) {
    lilac_simt_instruction like = *modifiers;
    lilac_simt_value operands[5 + LILAC_TENSOR_RANK] = {copy->shared};
    uint32_t n = 1;
    if (copy->predicate != 0) {
        operands[n++] = copy->predicate;
    }
    operands[n++] = copy->map;
    for (uint32_t k = 0; k < copy->rank; k++) {
        operands[n++] = copy->coordinates[k];
    }
    if (lilac_simt_completes_at_mbarrier(like.code)) {
        operands[n++] = copy->mbarrier;
        like.payload.bulk.multicast = copy->blocks != 0;
        if (copy->blocks != 0) {
            operands[n++] = copy->blocks;
        }
    }
    lilac_simt_build(b, &like, n, operands, 0, NULL);
}

static void build_effect(lilac_simt_builder *b, lilac_simt_opcode code, uint32_t detail,
                         int64_t immediate) {
    lilac_simt_instruction like = {
        .code = (uint16_t)code, .detail = (uint8_t)detail, .immediate = immediate};
    lilac_simt_build(b, &like, 0, NULL, 0, NULL);
}

void lilac_simt_bulk_commit(lilac_simt_builder *b) {
    build_effect(b, LILAC_SIMT_OP_BULK_COMMIT, 0, 0);
}

void lilac_simt_bulk_wait(lilac_simt_builder *b, uint32_t groups, bool read) {
    build_effect(b, read ? LILAC_SIMT_OP_BULK_WAIT_READ : LILAC_SIMT_OP_BULK_WAIT, 0, groups);
}

void lilac_simt_fence_proxy_async(lilac_simt_builder *b, lilac_simt_fence kind) {
    build_effect(b, LILAC_SIMT_OP_FENCE_PROXY_ASYNC, kind, 0);
}

void lilac_simt_prefetch_tensor_map(lilac_simt_builder *b, lilac_simt_value map) {
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_PREFETCH_TENSOR_MAP};
    lilac_simt_build(b, &like, 1, &map, 0, NULL);
}

/* ---- tensor maps ------------------------------------------------------------------------ */

const lilac_simt_parameter *lilac_simt_tensor_map_of(const lilac_simt_kernel *kernel,
                                                     lilac_simt_value value) {
    const lilac_simt_instruction *d = kernel->values[value].definition;
    bool is_parameter = d != NULL && d->code == LILAC_SIMT_OP_PARAM && d->immediate >= 0 &&
                        (uint64_t)d->immediate < kernel->parameter_count;
    const lilac_simt_parameter *parameter = is_parameter ? &kernel->parameters[d->immediate] : NULL;
    return parameter != NULL && parameter->is_tensor_map ? parameter : NULL;
}

uint32_t lilac_simt_map_operand(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i) {
    if (lilac_simt_is_tensor_copy(i->code)) {
        return 1u + (kernel->values[i->operands[1]].type == LILAC_SIMT_I1);
    }
    return i->code == LILAC_SIMT_OP_PREFETCH_TENSOR_MAP ? 0 : UINT32_MAX;
}

static bool check_map(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i,
                      lilac_text *why) {
    uint32_t k = lilac_simt_map_operand(kernel, i);
    if (lilac_simt_tensor_map_of(kernel, i->operands[k]) != NULL ||
        lilac_simt_is_scratch_address(kernel, i->operands[k])) {
        return true;
    }
    lilac_text_printf(why,
                      "operand %u is no parameter that is a tensor map, and no address in the "
                      "kernel's scratch memory",
                      k + 1);
    return false;
}

/* ---- checking --------------------------------------------------------------------------- */

/* May a constant operand, with an offset added, be other than a multiple of `unit`? */
static bool is_multiple(const lilac_simt_kernel *kernel, lilac_simt_value value, int64_t offset,
                        uint32_t unit, uint64_t *found) {
    return !lilac_simt_constant_bits(kernel, value, found) ||
           (*found += (uint64_t)offset) % unit == 0;
}

/* The constant parts of a copy's addresses. */
static bool check_places(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i,
                         uint32_t unit, lilac_text *why) {
    uint64_t found = 0;
    if (!is_multiple(kernel, i->operands[0], i->immediate, unit, &found)) {
        lilac_text_printf(why, "the shared address %llu of %s is no multiple of %u",
                          (unsigned long long)found,
                          lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name, unit);
        return false;
    }
    if (lilac_simt_completes_at_mbarrier(i->code) &&
        !is_multiple(kernel, i->operands[lilac_simt_mbarrier_operand(i)], i->payload.bulk.mbarrier,
                     8, &found)) {
        lilac_text_printf(why, "the address %llu of the mbarrier is no multiple of 8",
                          (unsigned long long)found);
        return false;
    }
    return true;
}

static bool check_copy(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i,
                       lilac_text *why) {
    bool predicated = kernel->values[i->operands[1]].type == LILAC_SIMT_I1;
    uint64_t found = 0;
    if (!is_multiple(kernel, i->operands[2 + predicated], 0, BULK_BYTES, &found)) {
        lilac_text_printf(why, "a bulk copy of %llu bytes: the size is a multiple of 16",
                          (unsigned long long)found);
        return false;
    }
    if (i->code != LILAC_SIMT_OP_CP_BULK_LOAD && i->payload.bulk.mbarrier != 0) {
        lilac_text_puts(why, "a bulk store has no mbarrier");
        return false;
    }
    return check_places(kernel, i, BULK_BYTES, why);
}

/* A constant mask names at least one block, and only blocks of the kernel's cluster. */
static bool check_mask(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i,
                       lilac_text *why) {
    lilac_simt_value mask = i->operands[i->operand_count - 1u];
    uint32_t blocks = kernel->num_ctas < MASK_BITS ? kernel->num_ctas : MASK_BITS;
    uint64_t bits = 0;
    if (!lilac_simt_constant_bits(kernel, mask, &bits) || (bits != 0 && bits >> blocks == 0)) {
        return true;
    }
    if (bits == 0) {
        lilac_text_puts(why, "the multicast mask is 0; it names at least one block");
    } else {
        lilac_text_printf(why,
                          "the multicast mask 0x%llx names a block that the cluster does not have: "
                          "its blocks are 0 to %u",
                          (unsigned long long)bits, blocks - 1);
    }
    return false;
}

static bool check_tensor_copy(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i,
                              lilac_text *why) {
    bool load = i->code == LILAC_SIMT_OP_CP_TENSOR_LOAD;
    if (!check_map(kernel, i, why)) {
        return false;
    }
    uint32_t rest = i->operand_count - lilac_simt_map_operand(kernel, i) - 1u;
    uint32_t others = load + (i->payload.bulk.multicast ? 1u : 0); /* the mbarrier, the mask */
    uint32_t rank = rest > others ? rest - others : 0;
    if (rank == 0 || rank > LILAC_TENSOR_RANK) {
        lilac_text_printf(why, "%u coordinates; 1 to %u are allowed", rank, LILAC_TENSOR_RANK);
        return false;
    }
    if (i->payload.bulk.global != 0 || (!load && i->payload.bulk.mbarrier != 0)) {
        lilac_text_printf(why, "a tensor %s has no offset of %s", load ? "load" : "store",
                          i->payload.bulk.global != 0 ? "a global address" : "an mbarrier");
        return false;
    }
    if (i->code == LILAC_SIMT_OP_CP_TENSOR_REDUCE && i->detail >= LILAC_SIMT_ATOMIC_EXCHANGE) {
        lilac_text_printf(why,
                          "no tensor reduction '%s': and, or, xor, add, minima and maxima are "
                          "allowed",
                          i->detail < LILAC_SIMT_ATOMIC_COUNT ? lilac_simt_atomic_names[i->detail]
                                                              : "?");
        return false;
    }
    return check_places(kernel, i, TENSOR_ALIGNMENT, why) &&
           (!i->payload.bulk.multicast || check_mask(kernel, i, why));
}

static bool check_reduction(const lilac_simt_instruction *i, lilac_text *why) {
    bool adds = i->detail == LILAC_SIMT_ATOMIC_ADD;
    bool integer = i->scalar == LILAC_I32 || i->scalar == LILAC_I64;
    bool real = i->scalar == LILAC_F16 || i->scalar == LILAC_BF16 || i->scalar == LILAC_F32 ||
                i->scalar == LILAC_F64;
    if (i->detail < LILAC_SIMT_ATOMIC_EXCHANGE && (integer || (real && adds))) {
        return true;
    }
    lilac_text_printf(
        why, "no bulk reduction '%s' of %s: i32 and i64 have all, f16, bf16, f32 and f64 have add",
        i->detail < LILAC_SIMT_ATOMIC_COUNT ? lilac_simt_atomic_names[i->detail] : "?",
        i->scalar < LILAC_SCALAR_COUNT ? lilac_scalar_name((lilac_scalar)i->scalar) : "?");
    return false;
}

bool lilac_simt_check_bulk(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i,
                           lilac_text *why) {
    if (i->flags != 0 || i->cache != 0 || i->evict != 0) {
        lilac_text_puts(why, "the operation has no cache operator, eviction priority or flag");
        return false;
    }
    if (lilac_simt_is_bulk_copy(i->code) && i->code != LILAC_SIMT_OP_CP_TENSOR_LOAD &&
        i->payload.bulk.multicast) {
        lilac_text_printf(why, "%s has no multicast form; cp.tensor.load has one",
                          lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name);
        return false;
    }
    switch (i->code) {
    case LILAC_SIMT_OP_CP_BULK_STORE:
    case LILAC_SIMT_OP_CP_BULK_LOAD:
        return check_copy(kernel, i, why);
    case LILAC_SIMT_OP_CP_BULK_REDUCE:
        return check_reduction(i, why) && check_copy(kernel, i, why);
    case LILAC_SIMT_OP_CP_TENSOR_LOAD:
    case LILAC_SIMT_OP_CP_TENSOR_STORE:
    case LILAC_SIMT_OP_CP_TENSOR_REDUCE:
        return check_tensor_copy(kernel, i, why);
    case LILAC_SIMT_OP_TENSOR_MAP_SET:
    case LILAC_SIMT_OP_TENSOR_MAP_PUBLISH:
    case LILAC_SIMT_OP_TENSOR_MAP_ACQUIRE:
        return lilac_simt_check_tensor_map(kernel, i, why);
    case LILAC_SIMT_OP_PREFETCH_TENSOR_MAP:
        return check_map(kernel, i, why);
    default: /* a fence or commit */
        if (i->code == LILAC_SIMT_OP_FENCE_PROXY_ASYNC && i->detail >= LILAC_SIMT_FENCE_COUNT) {
            lilac_text_printf(why, "there is no kind %u of fence: they are shared, global and all",
                              i->detail);
            return false;
        }
        return true;
    }
}

lilac_simt_value lilac_simt_copy_predicate(const lilac_simt_kernel *kernel,
                                           const lilac_simt_instruction *i) {
    const bool copies =
        lilac_simt_is_bulk_copy(i->code) || i->code == LILAC_SIMT_OP_MBARRIER_EXPECT;
    return copies && i->operand_count > 1 &&
                   lilac_simt_type_of(kernel, i->operands[1]) == LILAC_SIMT_I1
               ? i->operands[1]
               : 0;
}
