/* columns: a distributed layout by hardware dimension.
 *
 *     layout        inputs register, lane, warp, block in any order, any of them absent
 *     columns       registers[] | threads[] = lanes, then warps | blocks[]
 *
 * Replicated bits are found by one elimination in this order. The registers come first: a register
 * bit is replicated only if a thread holds its element twice. */
#include "internal.h"

#include <lilac/replication.h>

#include <stdio.h>

/* Copies the columns of a named input. Zero columns fill the input up to `bits`. */
static void read_input(uint64_t *columns, const lilac_layout *layout, const char *name,
                       uint32_t bits) {
    const int input = lilac_layout_in(layout, name);
    const uint32_t have = input < 0 ? 0 : layout->in[input].bits;
    const uint32_t start = input < 0 ? 0 : lilac_layout_in_start(layout, (uint32_t)input);
    for (uint32_t i = 0; i < bits; i++) {
        columns[i] = i < have ? layout->columns[start + i] : 0;
    }
}

void lilac_layout_columns_fit(lilac_layout_columns *result, const lilac_layout *layout,
                              uint32_t lane_bits, uint32_t warp_bits, uint32_t block_bits) {
    const uint32_t registers = lilac_layout_in_bits(layout, "register");
    memset(result, 0, sizeof *result);
    result->rank = layout->out_count;
    result->out_bits = layout->out_bits;
    for (uint32_t d = 0; d < result->rank; d++) {
        result->start[d] = lilac_layout_out_start(layout, d);
        result->bits[d] = layout->out[d].bits;
    }
    result->register_bits =
        registers < LILAC_LAYOUT_MAX_REGISTER_BITS ? registers : LILAC_LAYOUT_MAX_REGISTER_BITS;
    result->lane_bits = lane_bits;
    result->thread_bits = lane_bits + warp_bits;
    result->block_bits = block_bits;
    read_input(result->registers, layout, "register", result->register_bits);
    read_input(result->threads, layout, "lane", lane_bits);
    read_input(result->threads + lane_bits, layout, "warp", warp_bits);
    read_input(result->blocks, layout, "block", block_bits);
    lilac_layout_columns_find_replicated(result);
}

static bool input_fits(const lilac_layout *layout, const char *name, uint32_t bits,
                       lilac_reason *why) {
    const uint32_t have = lilac_layout_in_bits(layout, name);
    if (have > bits) {
        return lilac_layout_refuse(why, "the layout has %llu %ss and the target has %llu",
                                   1ULL << have, name, 1ULL << bits);
    }
    return true;
}

bool lilac_layout_columns_init(lilac_layout_columns *result, const lilac_layout *layout,
                               uint32_t lane_bits, uint32_t warp_bits, uint32_t block_bits,
                               lilac_reason *why) {
    for (uint32_t i = 0; i < layout->in_count; i++) {
        const char *name = layout->in[i].name;
        if (strcmp(name, "register") != 0 && strcmp(name, "lane") != 0 &&
            strcmp(name, "warp") != 0 && strcmp(name, "block") != 0) {
            return lilac_layout_refuse(why,
                                       "the layout has the input '%s'; a distributed layout has "
                                       "register, lane, warp and block",
                                       name);
        }
    }
    const uint32_t registers = lilac_layout_in_bits(layout, "register");
    if (registers > LILAC_LAYOUT_MAX_REGISTER_BITS) {
        return lilac_layout_refuse(why, "the layout has %u register bits; at most %u are supported",
                                   registers, LILAC_LAYOUT_MAX_REGISTER_BITS);
    }
    if (!input_fits(layout, "lane", lane_bits, why) ||
        !input_fits(layout, "warp", warp_bits, why) ||
        !input_fits(layout, "block", block_bits, why)) {
        return false;
    }
    lilac_layout_columns_fit(result, layout, lane_bits, warp_bits, block_bits);
    return true;
}

void lilac_layout_columns_find_replicated(lilac_layout_columns *columns) {
    lilac_replication replication;
    uint64_t all[LILAC_LAYOUT_MAX_BITS];
    const uint32_t threads = columns->register_bits, blocks = threads + columns->thread_bits;
    memcpy(all, columns->registers, columns->register_bits * sizeof *all);
    memcpy(all + threads, columns->threads, columns->thread_bits * sizeof *all);
    memcpy(all + blocks, columns->blocks, columns->block_bits * sizeof *all);
    lilac_layout_find_replication(&replication, all, blocks + columns->block_bits);
    columns->distinct = (uint32_t)(low_bits(threads) & ~replication.replicated);
    columns->free_threads =
        (uint32_t)(replication.replicated >> threads & low_bits(columns->thread_bits));
    columns->free_blocks =
        (uint32_t)(replication.replicated >> blocks & low_bits(columns->block_bits));
    for (uint32_t i = 0; i < columns->register_bits; i++) {
        columns->origin[i] = (uint32_t)replication.origin[i];
    }
}

bool lilac_layout_columns_layout(lilac_layout *result, const lilac_layout_columns *columns,
                                 uint32_t registers, lilac_reason *why) {
    lilac_layout layout;
    uint64_t kept[LILAC_LAYOUT_MAX_BITS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < columns->register_bits; i++) {
        if (registers >> i & 1) {
            kept[count++] = columns->registers[i];
        }
    }
    lilac_layout_init(&layout);
    for (uint32_t d = 0; d < columns->rank; d++) {
        char name[16];
        snprintf(name, sizeof name, "dim%u", d);
        if (!lilac_layout_add_out(&layout, name, columns->bits[d], why)) {
            return false;
        }
    }
    if (!lilac_layout_add_in(&layout, "register", count, kept, why) ||
        !lilac_layout_add_in(&layout, "lane", columns->lane_bits, columns->threads, why) ||
        !lilac_layout_add_in(&layout, "warp", columns->thread_bits - columns->lane_bits,
                             columns->threads + columns->lane_bits, why) ||
        !lilac_layout_add_in(&layout, "block", columns->block_bits, columns->blocks, why)) {
        return false;
    }
    lilac_layout_copy(result, &layout);
    return true;
}

bool lilac_layout_columns_equal(const lilac_layout_columns *a, const lilac_layout_columns *b) {
    return a->rank == b->rank && a->register_bits == b->register_bits &&
           a->lane_bits == b->lane_bits && a->thread_bits == b->thread_bits &&
           a->block_bits == b->block_bits &&
           memcmp(a->bits, b->bits, a->rank * sizeof *a->bits) == 0 &&
           memcmp(a->registers, b->registers, a->register_bits * sizeof *a->registers) == 0 &&
           memcmp(a->threads, b->threads, a->thread_bits * sizeof *a->threads) == 0 &&
           memcmp(a->blocks, b->blocks, a->block_bits * sizeof *a->blocks) == 0;
}
