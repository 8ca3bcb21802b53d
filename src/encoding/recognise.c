/* encoding: the named layout of a linear one.
 *
 * A blocked layout counts, in each of its three levels, along the dimensions in its order. Its
 * parameters can therefore be read off the columns, one level at a time, once the order is known:
 *
 *     order [1, 0]     register  (0,1) (0,2)            sizePerThread  [1, 4]
 *                      lane      (0,4) (0,8) (1,0) …    threadsPerWarp [8, 4]
 *                      warp      (8,0) 0                warpsPerCTA    [4, 1], the second bit a copy
 *
 * The candidates are all orders of up to three dimensions; of more, the order in which the columns
 * first move along each. A candidate is accepted if its layout is the given one, bit for bit.
 */
#include "internal.h"

#include <lilac/bits.h>

#include <string.h>

/* The only dimension and bit that a column moves along; false: it moves along none, or is mixed. */
static bool find_bit(const lilac_layout *layout, uint64_t column, uint32_t *dim, uint32_t *bit) {
    if (!is_power_of_two(column)) {
        return false;
    }
    uint32_t at = lilac_encoding_log2(column);
    for (*dim = 0; at >= layout->out[*dim].bits; at -= layout->out[(*dim)++].bits) {
    }
    *bit = at;
    return true;
}

/* May a copy at bit `from` of a level be one along `dim`? Then no bit of the levels above moves along
 * it, and no register moves along it above the bits of lanes and warps. */
static bool may_have_copies(const lilac_layout *layout, const char *name, uint32_t from,
                            uint32_t dim) {
    static const char *const levels[] = {"lane", "warp", "register"};
    uint32_t other, bit, ends[3] = {0};
    bool is_above = false;
    for (uint32_t l = 0; l < 3; l++) {
        for (uint32_t k = 0; k < lilac_layout_in_bits(layout, levels[l]); k++) {
            if (find_bit(layout, lilac_layout_column(layout, levels[l], k), &other, &bit) &&
                other == dim) {
                ends[l] = bit + 1 > ends[l] ? bit + 1 : ends[l];
                is_above |= l < 2 && (strcmp(name, levels[l]) == 0 ? k > from : l == 1);
            }
        }
    }
    uint32_t end = ends[0] > ends[1] ? ends[0] : ends[1];
    return !is_above && (end == 0 || ends[2] < end);
}

/* Sizes of each dimension in a level without registers. A zero column is a copy along the first
 * dimension that may have one, in order, from that of the column before it on. Sets `low` to the
 * lowest bit of each dimension. */
static void read_level(uint32_t *sizes, uint32_t *low, const lilac_layout *layout, const char *name,
                       const uint32_t *order) {
    uint32_t at = 0; /* in order */
    for (uint32_t d = 0; d < layout->out_count; d++) {
        sizes[d] = 1;
    }
    for (uint32_t k = 0; k < lilac_layout_in_bits(layout, name); k++) {
        uint32_t dim, bit;
        if (find_bit(layout, lilac_layout_column(layout, name, k), &dim, &bit)) {
            for (at = 0; order[at] != dim; at++) {
            }
            low[dim] = bit < low[dim] ? bit : low[dim];
        } else {
            while (at + 1 < layout->out_count && !may_have_copies(layout, name, k, order[at])) {
                at++;
            }
        }
        sizes[order[at]] *= 2;
    }
}

/* Elements of a thread that are adjacent along each dimension, below the bits of lanes and warps. */
static void read_registers(uint32_t *sizes, const uint32_t *low, const lilac_layout *layout,
                           const uint32_t *order) {
    uint32_t k = 0, count = lilac_layout_in_bits(layout, "register");
    for (uint32_t i = 0; i < layout->out_count; i++) {
        uint32_t d = order[i], dim, bit;
        sizes[d] = 1;
        for (uint32_t wanted = 0; wanted < low[d] && k < count; wanted++, k++) {
            uint64_t column = lilac_layout_column(layout, "register", k);
            if (!find_bit(layout, column, &dim, &bit) || dim != d || bit != wanted) {
                break;
            }
            sizes[d] *= 2;
        }
    }
}

static bool is_layout_of(lilac_context *context, const lilac_encoding *encoding,
                         const lilac_layout *layout) {
    int64_t shape[LILAC_LAYOUT_MAX_DIMS];
    lilac_layout made;
    for (uint32_t d = 0; d < layout->out_count; d++) {
        shape[d] = INT64_C(1) << layout->out[d].bits;
    }
    if (!lilac_encoding_layout(context, &made, encoding, layout->out_count, shape)) {
        lilac_diagnostics_reset(context);
        return false;
    }
    return lilac_layout_equal(&made, layout);
}

static bool try_order(lilac_context *context, lilac_encoding *result, const lilac_layout *layout,
                      const uint32_t *order) {
    uint32_t registers[LILAC_LAYOUT_MAX_DIMS], lanes[LILAC_LAYOUT_MAX_DIMS];
    uint32_t warps[LILAC_LAYOUT_MAX_DIMS], low[LILAC_LAYOUT_MAX_DIMS];
    for (uint32_t d = 0; d < layout->out_count; d++) {
        low[d] = layout->out[d].bits;
    }
    read_level(lanes, low, layout, "lane", order);
    read_level(warps, low, layout, "warp", order);
    read_registers(registers, low, layout, order);
    lilac_encoding_blocked(result, layout->out_count, registers, lanes, warps, order);
    return is_layout_of(context, result, layout);
}

/* The dimensions in the order in which the columns first move along them, then the last ones first. */
static void order_of_columns(uint32_t *order, const lilac_layout *layout) {
    static const char *const levels[] = {"register", "lane", "warp"};
    bool known[LILAC_LAYOUT_MAX_DIMS] = {false};
    uint32_t count = 0;
    for (uint32_t l = 0; l < 3; l++) {
        for (uint32_t k = 0; k < lilac_layout_in_bits(layout, levels[l]); k++) {
            uint32_t dim, bit;
            uint64_t column = lilac_layout_column(layout, levels[l], k);
            if (find_bit(layout, column, &dim, &bit) && !known[dim]) {
                known[dim] = true;
                order[count++] = dim;
            }
        }
    }
    for (uint32_t d = layout->out_count; d-- > 0;) {
        if (!known[d]) {
            order[count++] = d;
        }
    }
}

static bool is_blocked(lilac_context *context, lilac_encoding *result, const lilac_layout *layout) {
    static const uint32_t orders[4][6][3] = {
        {{0}},
        {{0}},
        {{1, 0}, {0, 1}},
        {{2, 1, 0}, {1, 2, 0}, {2, 0, 1}, {0, 2, 1}, {1, 0, 2}, {0, 1, 2}}};
    static const uint32_t order_counts[4] = {0, 1, 2, 6};
    uint32_t order[LILAC_LAYOUT_MAX_DIMS];
    order_of_columns(order, layout);
    bool found = try_order(context, result, layout, order);
    uint32_t more = layout->out_count < 4 ? order_counts[layout->out_count] : 0;
    for (uint32_t i = 0; i < more && !found; i++) {
        found = try_order(context, result, layout, orders[layout->out_count][i]);
    }
    return found;
}

void lilac_encoding_of_tensor(lilac_context *context, lilac_encoding *result,
                              const lilac_layout *layout) {
    if (layout->out_count > 0 && lilac_layout_in_bits(layout, "block") == 0 &&
        is_blocked(context, result, layout)) {
        return;
    }
    memset(result, 0, sizeof *result);
    result->kind = LILAC_ENCODING_LINEAR;
    result->rank = layout->out_count;
    result->as.linear = *layout;
}
