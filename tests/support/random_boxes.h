/* Random tensor maps with a box, and a model of the walk over the box of a tensor copy. */
#ifndef LILAC_TESTS_RANDOM_BOXES_H
#define LILAC_TESTS_RANDOM_BOXES_H

#include <lilac/tensor_map.h>

enum { MEMORY = 1 << 16, SHARED = 16384 };

static uint64_t box_seed = 1;

static inline uint32_t below(uint32_t bound) {
    box_seed = box_seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(box_seed >> 33) % bound;
}

typedef struct box {
    lilac_tensor_map map;
    int32_t coordinates[LILAC_TENSOR_RANK];
    uint32_t at; /* in shared memory */
} box;

/* A map whose elements are distinct bytes of MEMORY and whose box fits behind `at`. */
static inline bool choose(box *b) {
    lilac_tensor_map *m = &b->map;
    *b = (box){.map = {.element = (lilac_tensor_element)below(LILAC_TENSOR_ELEMENT_COUNT),
                       .rank = 1 + below(LILAC_TENSOR_RANK),
                       .swizzle = (lilac_tensor_swizzle)below(LILAC_TENSOR_SWIZZLE_COUNT),
                       .fill = (lilac_tensor_fill)below(LILAC_TENSOR_FILL_COUNT)}};
    uint32_t size = lilac_tensor_element_bytes(m->element), unit = 16 / size;
    uint64_t extent = 0, pitch = 0;
    if (m->element < LILAC_TENSOR_F16) {
        m->fill = LILAC_TENSOR_FILL_ZERO;
    }
    for (uint32_t k = 0; k < m->rank; k++) {
        m->dims[k] = 1 + below(k == 0 ? 5 * unit : 6);
        m->box[k] = 1 + below(5);
        m->element_strides[k] = 1 + below(k > 0 && below(3) == 0 ? 3 : 1);
        b->coordinates[k] = (int32_t)below((uint32_t)m->dims[k] + 6) - 4;
        if (k > 0) {
            m->strides[k - 1] = pitch;
        }
        extent = pitch == 0 ? m->dims[0] * size : pitch * m->dims[k];
        pitch = (extent + 15) / 16 * 16 + 16 * below(2);
    }
    m->box[0] = m->swizzle ? (16u << m->swizzle) / size : unit * (1 + below(8));
    b->coordinates[0] =
        below(2) ? b->coordinates[0] / (int32_t)unit * (int32_t)unit : b->coordinates[0];
    b->at = 1024 * (1 + below(3));
    return m->box[0] <= 256 && pitch <= MEMORY && lilac_tensor_map_bytes(m) + b->at <= SHARED;
}

/* The model: calls `visit` for each element of the box with its byte in shared memory and its byte
 * in the tensor (-1: outside). */
typedef void visitor(const box *b, uint32_t shared, int64_t global);

static inline void walk(const box *b, visitor *visit) {
    const lilac_tensor_map *m = &b->map;
    uint32_t size = lilac_tensor_element_bytes(m->element), counts[5] = {1, 1, 1, 1, 1}, at = b->at;
    uint32_t chunks = 1u << m->swizzle;
    for (uint32_t d = 0; d < m->rank; d++) {
        for (counts[d] = 0; counts[d] * (d ? m->element_strides[d] : 1) < m->box[d];) {
            counts[d]++;
        }
    }
    for (uint32_t e = 0; e < counts[0] * counts[1] * counts[2] * counts[3] * counts[4]; e++) {
        int64_t global = 0;
        uint32_t rest = e;
        for (uint32_t d = 0; d < m->rank; d++) {
            int64_t x =
                b->coordinates[d] + (int64_t)(rest % counts[d]) * (d ? m->element_strides[d] : 1);
            rest /= counts[d];
            global = global < 0 || x < 0 || x >= (int64_t)m->dims[d]
                         ? -1
                         : global + x * (int64_t)(d ? m->strides[d - 1] : size);
        }
        uint32_t chunk = at / 16 % chunks, line = at / 128;
        visit(b, at - chunk * 16 + (chunk ^ line % chunks) * 16, global);
        at += size;
    }
}

#endif
