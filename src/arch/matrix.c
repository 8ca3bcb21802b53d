/* Matrix instructions: the tables, the fragments and the descriptors (matrix.h). */
#include <lilac/matrix.h>

const char *lilac_matrix_type_name(uint32_t type) {
#define NAME(name, text, bits) text,
    static const char *const names[] = {LILAC_MATRIX_TYPES(NAME)};
#undef NAME
    return names[type < LILAC_MATRIX_TYPE_COUNT ? type : LILAC_MATRIX_NONE];
}

uint32_t lilac_matrix_type_bits(lilac_matrix_type type) {
#define BITS(name, text, bits) bits,
    static const uint8_t stored[] = {LILAC_MATRIX_TYPES(BITS)};
#undef BITS
    return (uint32_t)type < LILAC_MATRIX_TYPE_COUNT ? stored[type] : 0;
}

lilac_matrix_type lilac_matrix_type_class(lilac_matrix_type type) {
    switch (type) {
    case LILAC_MATRIX_E5M2:
        return LILAC_MATRIX_E4M3;
    case LILAC_MATRIX_U8:
        return LILAC_MATRIX_S8;
    default:
        return type;
    }
}

/* ---- tables ----------------------------------------------------------------------------- */

static const lilac_mma mmas[] = {
#define MMA(class, d, m, n, k, capability, ptx)                                                    \
    {LILAC_MATRIX_##class, LILAC_MATRIX_##d, m, n, k, capability, ptx},
#include "matrix.def"
#undef MMA
};

static const lilac_wgmma wgmmas[] = {
#define WGMMA(class, d, k, transposes, scales, narrow)                                             \
    {LILAC_MATRIX_##class, LILAC_MATRIX_##d, k, transposes, scales, narrow},
#include "matrix.def"
#undef WGMMA
};

/* The class of A and B, or NONE where they may not be mixed. */
static lilac_matrix_type common_class(const lilac_matrix_shape *shape) {
    lilac_matrix_type class = lilac_matrix_type_class(shape->a);
    return class == lilac_matrix_type_class(shape->b) ? class : LILAC_MATRIX_NONE;
}

const lilac_mma *lilac_mma_at(size_t index) {
    return index < sizeof mmas / sizeof *mmas ? &mmas[index] : NULL;
}

const lilac_mma *lilac_mma_find(const lilac_matrix_shape *shape) {
    lilac_matrix_type class = common_class(shape);
    const lilac_mma *row;
    for (size_t k = 0; (row = lilac_mma_at(k)) != NULL; k++) {
        if (row->kind == class && row->d == shape->d && row->m == shape->m && row->n == shape->n &&
            row->k == shape->k) {
            return row;
        }
    }
    return NULL;
}

bool lilac_mma_has(const lilac_arch *arch, const lilac_mma *row) {
    return lilac_arch_has(arch, LILAC_HAS_MMA_SYNC) && arch->capability >= row->capability;
}

const lilac_wgmma *lilac_wgmma_at(size_t index) {
    return index < sizeof wgmmas / sizeof *wgmmas ? &wgmmas[index] : NULL;
}

const lilac_wgmma *lilac_wgmma_find(const lilac_matrix_shape *shape) {
    lilac_matrix_type class = common_class(shape);
    const lilac_wgmma *row;
    for (size_t k = 0; (row = lilac_wgmma_at(k)) != NULL; k++) {
        if (row->kind == class && row->d == shape->d) {
            return row;
        }
    }
    return NULL;
}

bool lilac_wgmma_has_columns(const lilac_wgmma *row, uint32_t n) {
    return n >= 8 && n <= 256 && n % 8 == 0 && (!row->narrow_list || n < 32 || n % 16 == 0);
}

uint32_t lilac_wgmma_cycles(uint32_t n) {
    return n / 2 > 19 ? n / 2 : 19;
}

/* ---- fragments -------------------------------------------------------------------------- */

/* Registers that hold `elements` elements in `lanes` lanes. */
static uint32_t registers_of(lilac_matrix_type type, uint32_t elements, uint32_t lanes) {
    uint32_t bits = lilac_matrix_type_bits(type), width = bits == 64 ? 64 : 32;
    return elements * bits / width / lanes;
}

uint32_t lilac_matrix_a_registers(const lilac_matrix_shape *shape, uint32_t lanes) {
    return registers_of(shape->a, shape->m * shape->k, lanes);
}

uint32_t lilac_matrix_b_registers(const lilac_matrix_shape *shape, uint32_t lanes) {
    return registers_of(shape->b, shape->k * shape->n, lanes);
}

uint32_t lilac_matrix_d_registers(const lilac_matrix_shape *shape, uint32_t lanes) {
    return registers_of(shape->d, shape->m * shape->n, lanes);
}

void lilac_matrix_a_place(uint32_t rows, uint32_t lane, uint32_t i, uint32_t *row, uint32_t *word) {
    *row = lane / 4 + 8 * (i % (rows / 8));
    *word = lane % 4 + 4 * (i / (rows / 8));
}

void lilac_matrix_b_place(uint32_t lane, uint32_t i, uint32_t *column, uint32_t *word) {
    *column = lane / 4;
    *word = lane % 4 + 4 * i;
}

void lilac_matrix_d_place(uint32_t rows, uint32_t lane, uint32_t e, uint32_t *row,
                          uint32_t *column) {
    *row = lane / 4 + 8 * (e / 2 % (rows / 8));
    *column = 2 * (lane % 4) + e % 2 + 8 * (e / 2 / (rows / 8));
}

/* ---- descriptors ------------------------------------------------------------------------ */

enum { UNIT = 16, FIELD = 0x3FFF };

uint64_t lilac_matrix_descriptor_encode(const lilac_matrix_descriptor *d) {
    return (uint64_t)(d->start / UNIT & FIELD) | (uint64_t)(d->leading / UNIT & FIELD) << 16 |
           (uint64_t)(d->stride / UNIT & FIELD) << 32 | (uint64_t)(d->base_offset & 7) << 49 |
           (uint64_t)d->swizzle << 62;
}

lilac_matrix_descriptor lilac_matrix_descriptor_decode(uint64_t bits) {
    return (lilac_matrix_descriptor){.start = (uint32_t)(bits & FIELD) * UNIT,
                                     .leading = (uint32_t)(bits >> 16 & FIELD) * UNIT,
                                     .stride = (uint32_t)(bits >> 32 & FIELD) * UNIT,
                                     .base_offset = (uint32_t)(bits >> 49 & 7),
                                     .swizzle = (lilac_matrix_swizzle)(bits >> 62)};
}

uint32_t lilac_matrix_swizzle_bytes(lilac_matrix_swizzle swizzle) {
    return swizzle == LILAC_MATRIX_SWIZZLE_NONE ? 16 : 256u >> swizzle;
}

/* The xor of the swizzle: of 128 bytes, address bits 4 … 6 with 7 … 9; of 64, bits 4, 5 with 7, 8; of
 * 32, bit 4 with bit 7. It acts on the whole address, shifted by the base offset. */
static uint32_t swizzled(const lilac_matrix_descriptor *d, uint32_t address) {
    uint32_t chunks = lilac_matrix_swizzle_bytes(d->swizzle) / UNIT;
    uint32_t pattern = (address >> 7) - d->base_offset;
    return address ^ (pattern & (chunks - 1)) << 4;
}

uint32_t lilac_matrix_descriptor_address(const lilac_matrix_descriptor *d, uint32_t bits,
                                         bool transposed, uint32_t row, uint32_t k) {
    uint32_t span = lilac_matrix_swizzle_bytes(d->swizzle), address = d->start;
    bool plain = d->swizzle == LILAC_MATRIX_SWIZZLE_NONE;
    if (!transposed) {
        uint32_t byte = k * bits / 8;
        address += row / 8 * d->stride + row % 8 * span;
        address += plain ? byte / UNIT * d->leading + byte % UNIT : byte;
    } else {
        uint32_t piece = span * 8 / bits, byte = row % piece * bits / 8;
        address += row / piece * (plain ? d->stride : d->leading);
        address += k / 8 * (plain ? d->leading : d->stride) + k % 8 * span + byte;
    }
    return swizzled(d, address);
}
