/* Random distributed layouts for the tests of `lower`. */
#ifndef LILAC_LOWER_LAYOUTS_H
#define LILAC_LOWER_LAYOUTS_H

#include "support/lower_harness.h"

#define MAX_BITS 12

/* A distributed layout as lists of coordinates. */
typedef struct columns {
    uint32_t rank, bits[3];
    uint32_t count[3]; /* register, lane, warp */
    uint32_t at[3][16][3];
} columns;

static inline lilac_layout layout_of(const columns *c) {
    static const char *const inputs[3] = {"register", "lane", "warp"};
    lilac_layout layout;
    lilac_layout_init(&layout);
    for (uint32_t d = 0; d < c->rank; d++) {
        char name[16];
        snprintf(name, sizeof name, "dim%u", d);
        assert_true(lilac_layout_add_out(&layout, name, c->bits[d], NULL));
    }
    for (int i = 0; i < 3; i++) {
        uint64_t list[16];
        for (uint32_t k = 0; k < c->count[i]; k++) {
            uint64_t coordinates[3] = {c->at[i][k][0], c->at[i][k][1], c->at[i][k][2]};
            list[k] = lilac_layout_pack(&layout, coordinates);
        }
        assert_true(lilac_layout_add_in(&layout, inputs[i], c->count[i], list, NULL));
    }
    assert_true(lilac_layout_add_in(&layout, "block", 0, NULL, NULL));
    return layout;
}

/* Unit vectors dealt to registers, lanes and warps in any order, zero columns where there are more
 * places; `mixed` adds columns that stand before to some. */
static inline columns random_columns(lilac_random *random, uint32_t rank, const uint32_t *bits,
                                     const lilac_arch *device, uint32_t warp_bits, bool mixed) {
    columns c = {.rank = rank};
    uint32_t units[MAX_BITS][3] = {{0}}, total = 0, sum = 0;
    for (uint32_t d = 0; d < rank; d++) {
        sum += bits[d];
    }
    assert_true(sum <= MAX_BITS);
    for (uint32_t d = 0; d < rank; d++) {
        c.bits[d] = bits[d];
        for (uint32_t j = 0; j < bits[d]; j++) {
            units[total++][d] = 1U << j;
        }
    }
    for (uint32_t i = total; i > 1; i--) {
        uint32_t j = (uint32_t)lilac_random_below(random, i), other[3];
        memcpy(other, units[j], sizeof other);
        memcpy(units[j], units[i - 1], sizeof other);
        memcpy(units[i - 1], other, sizeof other);
    }
    uint32_t lane_bits = log2_of(device->warp_size);
    c.count[1] = lane_bits;
    c.count[2] = warp_bits;
    uint32_t next = 0, places = lane_bits + warp_bits;
    uint32_t copies = (uint32_t)lilac_random_below(random, 3);
    for (uint32_t p = 0; p < places; p++) {
        int input = p < lane_bits ? 1 : 2;
        uint32_t k = p < lane_bits ? p : p - lane_bits;
        bool copy = copies > 0 && lilac_random_below(random, 4) == 0;
        copies -= copy;
        if (!copy && next < total) {
            memcpy(c.at[input][k], units[next++], sizeof units[0]);
        }
    }
    while (next < total) {
        if (lilac_random_below(random, 6) == 0 && c.count[0] < 14) {
            c.count[0]++; /* a register copy */
        }
        memcpy(c.at[0][c.count[0]++], units[next++], sizeof units[0]);
    }
    for (int i = 0; i < 3 && mixed; i++) {
        for (uint32_t k = 0; k < c.count[i]; k++) {
            int from = (int)lilac_random_below(random, (uint64_t)i + 1);
            uint32_t below = from == i ? k : c.count[from];
            if (below == 0 || lilac_random_below(random, 3) != 0) {
                continue;
            }
            uint32_t other = (uint32_t)lilac_random_below(random, below);
            for (uint32_t d = 0; d < rank; d++) {
                c.at[i][k][d] ^= c.at[from][other][d];
            }
        }
    }
    return c;
}

/* Sets the layouts of all tensors of a module: each tensor has the first layout of its shape. */
typedef struct layouts_of_shapes {
    lilac_tile_module *module;
    uint32_t count;
    columns choices[5];
} layouts_of_shapes;

static inline void lay_out_op(void *data, lilac_tile_op *op) {
    const layouts_of_shapes *all = data;
    for (uint32_t i = 0; i < op->result_count; i++) {
        const lilac_tile_type *type = op->results[i].type;
        for (uint32_t k = 0; k < all->count && type->kind == LILAC_TILE_TENSOR; k++) {
            const columns *c = &all->choices[k];
            bool fits = c->rank == type->rank;
            for (uint32_t d = 0; d < type->rank && fits; d++) {
                fits = type->shape[d] == (int64_t)1 << c->bits[d];
            }
            if (fits) {
                lilac_layout *layout = lilac_arena_new(all->module->arena, lilac_layout);
                *layout = layout_of(c);
                op->results[i].type = lilac_tile_with_layout(all->module, type, layout);
                break;
            }
        }
    }
}

static inline void lay_out(layouts_of_shapes *all) {
    lilac_tile_walk(all->module->functions->body, lay_out_op, all);
}

#endif
