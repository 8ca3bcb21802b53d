/* encoding: the kinds of layout, one a row.
 *
 * Reading finds a row by its spelling, everything else by the kind. A parent is a kind of which
 * there are dot operands.
 */
#include "internal.h"

#include <string.h>

#define ROW(spelling, place, name)                                                                 \
    {                                                                                              \
        spelling, LILAC_ENCODING_OF_##place, lilac_encoding_##name##_read,                         \
            lilac_encoding_##name##_print, lilac_encoding_##name##_layout, NULL                    \
    }
#define PARENT(spelling, place, name)                                                              \
    {                                                                                              \
        spelling, LILAC_ENCODING_OF_##place, lilac_encoding_##name##_read,                         \
            lilac_encoding_##name##_print, lilac_encoding_##name##_layout,                         \
            lilac_encoding_##name##_dot_layout                                                     \
    }
#define UNSUPPORTED(spelling, place)                                                               \
    { spelling, LILAC_ENCODING_OF_##place, NULL, NULL, NULL, NULL }

/* clang-format off */
static const lilac_encoding_row rows[LILAC_ENCODING_KIND_COUNT] = {
    [LILAC_ENCODING_BLOCKED]              = PARENT("ttg.blocked", TENSOR, blocked),
    [LILAC_ENCODING_SLICE]                = ROW("ttg.slice", TENSOR, slice),
    [LILAC_ENCODING_LINEAR]               = ROW("ttg.linear", TENSOR, linear),
    [LILAC_ENCODING_GENERIC_LINEAR]       = ROW("ttg.generic_linear", TENSOR, generic_linear),
    [LILAC_ENCODING_DOT_OPERAND]          = ROW("ttg.dot_op", TENSOR, dot_operand),
    [LILAC_ENCODING_NVIDIA_MMA]           = PARENT("ttg.nvidia_mma", TENSOR, nvidia_mma),
    [LILAC_ENCODING_AMD_MFMA]             = PARENT("ttg.amd_mfma", TENSOR, amd_mfma),
    [LILAC_ENCODING_AMD_WMMA]             = PARENT("ttg.amd_wmma", TENSOR, amd_wmma),
    [LILAC_ENCODING_INTEL_DPAS]           = PARENT("ttig.dpas", TENSOR, intel_dpas),
    [LILAC_ENCODING_SWIZZLED_SHARED]      = ROW("ttg.swizzled_shared", SHARED_MEMORY, swizzled_shared),
    [LILAC_ENCODING_AMD_ROTATING_SHARED]  = ROW("ttg.amd_rotating_shared", SHARED_MEMORY, amd_rotating_shared),
    [LILAC_ENCODING_NVMMA_SHARED]         = ROW("ttg.nvmma_shared", SHARED_MEMORY, nvmma_shared),
    [LILAC_ENCODING_PADDED_SHARED]        = ROW("ttg.padded_shared", SHARED_MEMORY, padded_shared),
    [LILAC_ENCODING_SHARED_LINEAR]        = ROW("ttg.shared_linear", SHARED_MEMORY, shared_linear),
    [LILAC_ENCODING_PARTITIONED_SHARED]   = ROW("ttg.partitioned_shared", SHARED_MEMORY, partitioned_shared),
    [LILAC_ENCODING_TENSOR_MEMORY]        = ROW("ttng.tensor_memory_encoding", TENSOR_MEMORY, tensor_memory),
    [LILAC_ENCODING_TENSOR_MEMORY_SCALES] = ROW("ttng.tensor_memory_scales_encoding", TENSOR_MEMORY, tensor_memory_scales),
    [LILAC_ENCODING_TENSOR_MEMORY_LINEAR] = ROW("ttng.tensor_memory_linear", TENSOR_MEMORY, tensor_memory_linear),
};
/* clang-format on */

const lilac_encoding_row *lilac_encoding_row_of(lilac_encoding_kind kind) {
    return &rows[kind];
}

bool lilac_encoding_kind_named(lilac_encoding_kind *kind, const char *name, size_t length) {
    for (uint32_t k = 0; k < LILAC_ENCODING_KIND_COUNT; k++) {
        const char *spelling = rows[k].spelling;
        if (strlen(spelling) == length && memcmp(spelling, name, length) == 0) {
            *kind = (lilac_encoding_kind)k;
            return true;
        }
    }
    return false;
}

lilac_encoding_place lilac_encoding_place_of(const lilac_encoding *encoding) {
    return rows[encoding->kind].place;
}

void lilac_encoding_print(lilac_text *out, const lilac_encoding *encoding) {
    lilac_text_char(out, '#');
    lilac_text_puts(out, rows[encoding->kind].spelling);
    rows[encoding->kind].print(out, encoding);
}

bool lilac_encoding_layout_of(lilac_context *context, lilac_layout *result,
                              const lilac_encoding *encoding, const lilac_encoding_shape *shape) {
    return rows[encoding->kind].layout(context, result, encoding, shape);
}
