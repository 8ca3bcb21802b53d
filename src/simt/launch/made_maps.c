/* Tensor maps that a kernel makes: building and checking their operations.
 *
 *     tensor_map.set [shared + immediate], predicate, (address, size 0, size 1, …, stride 1, …)
 *         {element = f16, swizzle = b128, box0 = 64, box1 = 128}
 *     tensor_map.publish [shared + immediate], predicate, (map)
 *     tensor_map.acquire predicate, map */
#include "internal.h"

#include <lilac/tensor_map.h>

enum { MOST_OPERANDS = 2 + 2 * LILAC_TENSOR_RANK, MOST_BOX = 256 };

/* ---- building --------------------------------------------------------------------------- */

void lilac_simt_tensor_map_set(lilac_simt_builder *b, const lilac_simt_instruction *like,
                               lilac_simt_value shared, lilac_simt_value predicate, uint32_t rank,
                               lilac_simt_value address, const lilac_simt_value *sizes,
                               const lilac_simt_value *strides) {
    lilac_simt_instruction set = *like;
    lilac_simt_value operands[MOST_OPERANDS] = {shared, predicate};
    uint32_t n = 1 + (predicate != 0);
    operands[n++] = address;
    for (uint32_t k = 0; k < rank; k++) {
        operands[n++] = sizes[k];
    }
    for (uint32_t k = 0; k + 1 < rank; k++) {
        operands[n++] = strides[k];
    }
    set.code = LILAC_SIMT_OP_TENSOR_MAP_SET;
    lilac_simt_build(b, &set, n, operands, 0, NULL);
}

void lilac_simt_tensor_map_publish(lilac_simt_builder *b, const lilac_simt_instruction *like,
                                   lilac_simt_value shared, lilac_simt_value predicate,
                                   lilac_simt_value map) {
    lilac_simt_instruction publish = *like;
    lilac_simt_value operands[3] = {shared, predicate};
    uint32_t n = 1 + (predicate != 0);
    operands[n++] = map;
    publish.code = LILAC_SIMT_OP_TENSOR_MAP_PUBLISH;
    lilac_simt_build(b, &publish, n, operands, 0, NULL);
}

void lilac_simt_tensor_map_acquire(lilac_simt_builder *b, lilac_simt_value predicate,
                                   lilac_simt_value map) {
    const lilac_simt_instruction like = {.code = LILAC_SIMT_OP_TENSOR_MAP_ACQUIRE};
    lilac_simt_value operands[2] = {predicate, map};
    const uint32_t first = predicate == 0;
    lilac_simt_build(b, &like, 2 - first, operands + first, 0, NULL);
}

/* ---- checking --------------------------------------------------------------------------- */

static bool is_scratch(const lilac_simt_kernel *kernel, lilac_simt_value value, uint32_t depth) {
    const lilac_simt_instruction *d = kernel->values[value].definition;
    if (d == NULL || depth == 0) {
        return false;
    }
    return d->code == LILAC_SIMT_OP_GLOBAL_SCRATCH ||
           (d->code == LILAC_SIMT_OP_ADD && (is_scratch(kernel, d->operands[0], depth - 1) ||
                                             is_scratch(kernel, d->operands[1], depth - 1)));
}

bool lilac_simt_is_scratch_address(const lilac_simt_kernel *kernel, lilac_simt_value value) {
    enum { DEPTH = 4 };
    return is_scratch(kernel, value, DEPTH);
}

static uint32_t rest_of(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i) {
    return i->operand_count - 1u - (kernel->values[i->operands[1]].type == LILAC_SIMT_I1);
}

uint32_t lilac_simt_map_rank(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i) {
    return rest_of(kernel, i) / 2; /* an address, `rank` sizes, rank - 1 strides */
}

/* The box against the limits of the device. */
static bool check_box(const lilac_simt_instruction *i, uint32_t rank, lilac_text *why) {
    const lilac_simt_tensor_map_payload *map = &i->payload.tensor_map;
    const uint32_t bytes =
        map->box[0] * lilac_tensor_element_bytes((lilac_tensor_element)map->element);
    for (uint32_t k = 0; k < LILAC_TENSOR_RANK; k++) {
        if (k < rank ? map->box[k] == 0 || map->box[k] > MOST_BOX : map->box[k] != 0) {
            lilac_text_printf(
                why,
                "a box of %u elements along dimension %u of a tensor of rank %u: 1 to "
                "256 are allowed in its dimensions, 0 in others",
                map->box[k], k, rank);
            return false;
        }
    }
    if (bytes % 16 != 0 ||
        (map->swizzle != LILAC_TENSOR_SWIZZLE_NONE && bytes > 16u << map->swizzle)) {
        lilac_text_printf(why,
                          "a box of %u bytes along dimension 0: a multiple of 16 not above the "
                          "swizzle is allowed",
                          bytes);
        return false;
    }
    return true;
}

bool lilac_simt_check_tensor_map(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i,
                                 lilac_text *why) {
    uint64_t shared = 0;
    if (i->code != LILAC_SIMT_OP_TENSOR_MAP_SET &&
        !lilac_simt_is_scratch_address(kernel, i->operands[i->operand_count - 1u])) {
        lilac_text_printf(why, "operand %u is no address in the kernel's scratch memory",
                          i->operand_count);
        return false;
    }
    if (i->code == LILAC_SIMT_OP_TENSOR_MAP_ACQUIRE) {
        return true;
    }
    const uint32_t rest = rest_of(kernel, i);
    if (lilac_simt_constant_bits(kernel, i->operands[0], &shared) &&
        (shared + (uint64_t)i->immediate) % LILAC_TENSOR_MAP_BYTES != 0) {
        lilac_text_printf(why, "the shared address %llu of a tensor map is no multiple of 128",
                          (unsigned long long)(shared + (uint64_t)i->immediate));
        return false;
    }
    if (i->code == LILAC_SIMT_OP_TENSOR_MAP_PUBLISH) {
        return true;
    }
    if (rest % 2 != 0 || rest < 2 || rest > 2 * LILAC_TENSOR_RANK) {
        lilac_text_printf(why,
                          "%u numbers: a tensor of rank n, 1 to 5, has an address, n sizes and n - "
                          "1 strides",
                          rest);
        return false;
    }
    return check_box(i, rest / 2, why);
}
