/* Tensor maps: their limits, sizes and swizzles (tensor_map.h). */
#include <lilac/source.h>
#include <lilac/tensor_map.h>

static const struct {
    uint8_t bytes;
    bool is_float;
} elements[LILAC_TENSOR_ELEMENT_COUNT] = {
    [LILAC_TENSOR_U8] = {1, false},  [LILAC_TENSOR_U16] = {2, false},
    [LILAC_TENSOR_U32] = {4, false}, [LILAC_TENSOR_S32] = {4, false},
    [LILAC_TENSOR_U64] = {8, false}, [LILAC_TENSOR_S64] = {8, false},
    [LILAC_TENSOR_F16] = {2, true},  [LILAC_TENSOR_F32] = {4, true},
    [LILAC_TENSOR_F64] = {8, true},  [LILAC_TENSOR_BF16] = {2, true},
};

uint32_t lilac_tensor_element_bytes(lilac_tensor_element element) {
    return elements[element].bytes;
}

uint32_t lilac_tensor_map_extent(const lilac_tensor_map *map, uint32_t dimension) {
    uint32_t stride = dimension == 0 ? 1 : map->element_strides[dimension];
    return (map->box[dimension] + stride - 1) / stride;
}

uint64_t lilac_tensor_map_bytes(const lilac_tensor_map *map) {
    uint64_t bytes = lilac_tensor_element_bytes(map->element);
    for (uint32_t k = 0; k < map->rank; k++) {
        bytes *= lilac_tensor_map_extent(map, k);
    }
    return bytes;
}

lilac_tensor_swizzle lilac_tensor_swizzle_of(uint32_t bytes) {
    return bytes == 128  ? LILAC_TENSOR_SWIZZLE_128
           : bytes == 64 ? LILAC_TENSOR_SWIZZLE_64
           : bytes == 32 ? LILAC_TENSOR_SWIZZLE_32
                         : LILAC_TENSOR_SWIZZLE_NONE;
}

uint32_t lilac_tensor_swizzle_period(lilac_tensor_swizzle swizzle) {
    return 128u << swizzle;
}

uint64_t lilac_tensor_swizzle_apply(lilac_tensor_swizzle swizzle, uint64_t address) {
    uint64_t mask = (UINT64_C(1) << swizzle) - 1; /* 0, 1, 2 or 3 bits from bit 7 on */
    return address ^ (address >> 7 & mask) << 4;
}

/* ---- limits --------------------------------------------------------------------------------- */

typedef struct check {
    lilac_context *context;
    const char *what;
} check;

LILAC_PRINTF(2, 3)
static bool refuse(const check *c, const char *format, ...) {
    lilac_text text = {0};
    va_list arguments;
    if (c->context == NULL) {
        return false;
    }
    va_start(arguments, format);
    lilac_text_vprintf(&text, format, arguments);
    va_end(arguments);
    lilac_error(c->context, (lilac_position){0}, 0, "tensor-map", "tensor map '%s': %s", c->what,
                lilac_text_get(&text));
    lilac_text_clear(&text);
    return false;
}

static bool check_dimension(const check *c, const lilac_tensor_map *map, uint32_t k) {
    const uint64_t most = UINT64_C(1) << 32;
    if (map->dims[k] == 0 || map->dims[k] > most) {
        return refuse(c, "dimension %u has %llu elements; 1 to 2^32 are allowed", k,
                      (unsigned long long)map->dims[k]);
    }
    if (k > 0 && (map->strides[k - 1] % 16 != 0 || map->strides[k - 1] >= UINT64_C(1) << 40)) {
        return refuse(c,
                      "the stride of dimension %u is %llu bytes; a multiple of 16 below 2^40 is "
                      "allowed",
                      k, (unsigned long long)map->strides[k - 1]);
    }
    if (map->box[k] == 0 || map->box[k] > 256) {
        return refuse(c, "the box has %u elements along dimension %u; 1 to 256 are allowed",
                      map->box[k], k);
    }
    if (map->element_strides[k] == 0 || map->element_strides[k] > 8) {
        return refuse(c, "the element stride of dimension %u is %u; 1 to 8 are allowed", k,
                      map->element_strides[k]);
    }
    return true;
}

/* The innermost dimension of the box against what moves it. */
static bool check_inner(const check *c, const lilac_tensor_map *map) {
    uint32_t bytes = map->box[0] * lilac_tensor_element_bytes(map->element);
    uint32_t span = 16u << map->swizzle;
    if (bytes % 16 != 0) {
        return refuse(c, "the box has %u bytes along dimension 0; a multiple of 16 is allowed",
                      bytes);
    }
    if (map->swizzle != LILAC_TENSOR_SWIZZLE_NONE && bytes > span) {
        return refuse(c,
                      "the box has %u bytes along dimension 0; the swizzle of %u bytes allows "
                      "%u",
                      bytes, span, span);
    }
    return true;
}

bool lilac_tensor_map_check(lilac_context *context, const lilac_tensor_map *map, const char *what) {
    const check c = {context, what};
    if ((uint32_t)map->element >= LILAC_TENSOR_ELEMENT_COUNT ||
        (uint32_t)map->swizzle >= LILAC_TENSOR_SWIZZLE_COUNT ||
        (uint32_t)map->fill >= LILAC_TENSOR_FILL_COUNT) {
        return refuse(&c, "there is no element type %u, swizzle %u or fill %u",
                      (uint32_t)map->element, (uint32_t)map->swizzle, (uint32_t)map->fill);
    }
    if (map->rank == 0 || map->rank > LILAC_TENSOR_RANK) {
        return refuse(&c, "the rank is %u; 1 to 5 are allowed", map->rank);
    }
    if (map->address % 16 != 0) {
        return refuse(&c, "the address is 0x%llx; a multiple of 16 is allowed",
                      (unsigned long long)map->address);
    }
    for (uint32_t k = 0; k < map->rank; k++) {
        if (!check_dimension(&c, map, k)) {
            return false;
        }
    }
    if (map->fill == LILAC_TENSOR_FILL_NAN && !elements[map->element].is_float) {
        return refuse(&c, "integers are filled with NaN; only zero is allowed");
    }
    if (map->l2_promotion != 0 && map->l2_promotion != 64 && map->l2_promotion != 128 &&
        map->l2_promotion != 256) {
        return refuse(&c, "the promotion is to %u bytes; 0, 64, 128 and 256 are allowed",
                      map->l2_promotion);
    }
    return check_inner(&c, map);
}
