/* encoding: building named layouts from C.
 *
 * Each builder fills in what the reader of its kind would; what a reader refuses is a broken
 * precondition here.
 */
#include "internal.h"

#include <assert.h>
#include <string.h>

static void start(lilac_encoding *result, lilac_encoding_kind kind, uint32_t rank) {
    assert(rank <= LILAC_MAX_RANK);
    memset(result, 0, sizeof *result);
    result->kind = kind;
    result->rank = rank;
}

static void set(uint32_t *result, const uint32_t *values, uint32_t count) {
    memcpy(result, values, count * sizeof *values);
}

void lilac_encoding_blocked(lilac_encoding *result, uint32_t rank, const uint32_t *size_per_thread,
                            const uint32_t *threads_per_warp, const uint32_t *warps_per_cta,
                            const uint32_t *order) {
    start(result, LILAC_ENCODING_BLOCKED, rank);
    set(result->as.blocked.size_per_thread, size_per_thread, rank);
    set(result->as.blocked.threads_per_warp, threads_per_warp, rank);
    set(result->as.blocked.warps_per_cta, warps_per_cta, rank);
    set(result->as.blocked.order, order, rank);
}

void lilac_encoding_slice(lilac_encoding *result, uint32_t dim, const lilac_encoding *parent) {
    assert(dim < parent->rank && lilac_encoding_place_of(parent) == LILAC_ENCODING_OF_TENSOR);
    start(result, LILAC_ENCODING_SLICE, parent->rank - 1);
    result->as.slice.dim = dim;
    result->as.slice.parent = parent;
}

void lilac_encoding_dot_operand(lilac_encoding *result, uint32_t operand,
                                const lilac_encoding *parent, uint32_t k_width) {
    assert(operand <= 1 && parent->rank >= 2);
    assert(lilac_encoding_row_of(parent->kind)->dot_layout != NULL);
    assert((parent->kind == LILAC_ENCODING_BLOCKED) == (k_width == 0));
    start(result, LILAC_ENCODING_DOT_OPERAND, parent->rank);
    result->as.dot.operand = operand;
    result->as.dot.k_width = k_width;
    result->as.dot.parent = parent;
}

void lilac_encoding_nvidia_mma(lilac_encoding *result, uint32_t version_major,
                               uint32_t version_minor, uint32_t rank, const uint32_t *warps_per_cta,
                               const uint32_t *instr_shape) {
    assert(version_major == 2 || (version_major == 3 && rank == 2));
    start(result, LILAC_ENCODING_NVIDIA_MMA, rank);
    result->as.nvidia_mma.version_major = version_major;
    result->as.nvidia_mma.version_minor = version_minor;
    result->as.nvidia_mma.instr_rank = version_major == 3 ? 3 : rank;
    set(result->as.nvidia_mma.warps_per_cta, warps_per_cta, rank);
    set(result->as.nvidia_mma.instr_shape, instr_shape, result->as.nvidia_mma.instr_rank);
}

void lilac_encoding_swizzled_shared(lilac_encoding *result, uint32_t rank, uint32_t vec,
                                    uint32_t per_phase, uint32_t max_phase, const uint32_t *order) {
    start(result, LILAC_ENCODING_SWIZZLED_SHARED, rank);
    result->as.swizzled.vec = vec;
    result->as.swizzled.per_phase = per_phase;
    result->as.swizzled.max_phase = max_phase;
    set(result->as.swizzled.order, order, rank);
}

void lilac_encoding_nvmma_shared(lilac_encoding *result, uint32_t rank,
                                 uint32_t swizzling_byte_width, bool transposed,
                                 uint32_t element_bits, bool fp4_padded) {
    start(result, LILAC_ENCODING_NVMMA_SHARED, rank);
    result->as.nvmma_shared.swizzling_byte_width = swizzling_byte_width;
    result->as.nvmma_shared.transposed = transposed;
    result->as.nvmma_shared.element_bits = element_bits;
    result->as.nvmma_shared.fp4_padded = fp4_padded;
}

static bool has_inputs(const lilac_layout *layout, const char *const *names, uint32_t count) {
    bool same = layout->in_count == count;
    for (uint32_t i = 0; same && i < count; i++) {
        same = strcmp(layout->in[i].name, names[i]) == 0;
    }
    return same;
}

bool lilac_encoding_linear(lilac_encoding *result, const lilac_layout *layout) {
    static const char *const distributed[] = {"register", "lane", "warp", "block"};
    static const char *const shared[] = {"offset", "block", "partition"};
    static const char *const tensor[] = {"row", "col", "block"};
    lilac_encoding_kind kind = LILAC_ENCODING_GENERIC_LINEAR;
    if (has_inputs(layout, shared, 2) || has_inputs(layout, shared, 3)) {
        kind = LILAC_ENCODING_SHARED_LINEAR;
    } else if (has_inputs(layout, tensor, 3)) {
        kind = LILAC_ENCODING_TENSOR_MEMORY_LINEAR;
    } else if (!has_inputs(layout, distributed, 4)) {
        return false;
    }
    if (!lilac_layout_is_surjective(layout)) {
        return false;
    }
    for (uint32_t d = 0; d < layout->out_count; d++) {
        if (strcmp(layout->out[d].name, lilac_encoding_dim_name(d)) != 0) {
            return false;
        }
    }
    lilac_layout copy = *layout; /* it may be inside the result */
    start(result, kind, layout->out_count);
    *(kind == LILAC_ENCODING_SHARED_LINEAR ? &result->as.shared_linear.linear
                                           : &result->as.linear) = copy;
    return true;
}
