/* blocks: the part of a layout that says which elements each block of a cluster has.
 *
 * change_blocks visits the columns in the order new blocks, registers, lanes, warps. A column that
 * is independent of those before it stays. The others leave a gap: of a register, it closes; a lane or
 * warp whose column was not zero takes a vector that no column covers.
 *
 *     block  e3                  block  e2
 *     lane   e0 e1      e2  →    lane   e0 e1         blocks that had rows get columns
 *     warp   e2                  warp   e3                                                   */
#include "internal.h"

#include <lilac/f2.h>

#include <string.h>

uint32_t lilac_layout_block_columns(uint64_t *columns, const lilac_layout *layout) {
    const int input = lilac_layout_in(layout, "block");
    if (input < 0) {
        return 0;
    }
    const uint32_t bits = layout->in[input].bits;
    memcpy(columns, layout->columns + lilac_layout_in_start(layout, (uint32_t)input),
           bits * sizeof *columns);
    return bits;
}

bool lilac_layout_same_blocks(const lilac_layout *a, const lilac_layout *b) {
    uint64_t first[LILAC_LAYOUT_MAX_BITS], second[LILAC_LAYOUT_MAX_BITS];
    const uint32_t count = lilac_layout_block_columns(first, a);
    return count == lilac_layout_block_columns(second, b) &&
           memcmp(first, second, count * sizeof *first) == 0;
}

uint32_t lilac_layout_part_bits(const lilac_layout *layout) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    const uint32_t count = lilac_layout_block_columns(columns, layout);
    lilac_f2_basis parts;
    lilac_f2_basis_init(&parts);
    for (uint32_t i = 0; i < count; i++) {
        (void)lilac_f2_basis_add(&parts, columns[i], 0);
    }
    return lilac_f2_basis_dimension(&parts);
}

/* ---- adding ------------------------------------------------------------------------------- */

/* The vector of the part with its bits at the positions of the mask. */
static uint64_t deposit(uint64_t vector, uint64_t mask) {
    uint64_t result = 0;
    for (; mask != 0; mask &= mask - 1, vector >>= 1) {
        result |= (vector & 1) * (mask & (~mask + 1));
    }
    return result;
}

/* The bits of the tensor that blocks have; false if a column is no unit vector or repeats one. */
static bool find_taken(uint64_t *taken, uint32_t bits, const uint64_t *columns) {
    *taken = 0;
    for (uint32_t i = 0; i < bits; i++) {
        if ((columns[i] & (columns[i] - 1)) != 0 || (columns[i] & *taken) != 0) {
            return false;
        }
        *taken |= columns[i];
    }
    return true;
}

/* Appends the inputs of the part but for `block`. */
static bool add_inputs(lilac_layout *result, const lilac_layout *part, uint64_t rest,
                       lilac_reason *why) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < part->in_count; at += part->in[i++].bits) {
        uint64_t columns[LILAC_LAYOUT_MAX_BITS];
        if (strcmp(part->in[i].name, "block") == 0) {
            continue;
        }
        for (uint32_t bit = 0; bit < part->in[i].bits; bit++) {
            columns[bit] = deposit(part->columns[at + bit], rest);
        }
        if (!lilac_layout_add_in(result, part->in[i].name, part->in[i].bits, columns, why)) {
            return false;
        }
    }
    return true;
}

bool lilac_layout_add_blocks(lilac_layout *result, const lilac_layout *part, const uint32_t *sizes,
                             uint32_t bits, const uint64_t *columns, lilac_reason *why) {
    lilac_layout whole;
    uint64_t taken;
    lilac_layout_init(&whole);
    if (lilac_layout_in_bits(part, "block") != 0 || !find_taken(&taken, bits, columns)) {
        return lilac_layout_refuse(why, "the columns of the blocks are not zero or distinct unit "
                                        "vectors");
    }
    for (uint32_t d = 0; d < part->out_count; d++) {
        const uint64_t mask = low_bits(sizes[d]) << whole.out_bits;
        const uint32_t blocks = (uint32_t)__builtin_popcountll(taken & mask);
        if (part->out[d].bits + blocks != sizes[d]) {
            return lilac_layout_refuse(why, "%s has 2^%u elements; a block has 2^%u of 2^%u",
                                       part->out[d].name, part->out[d].bits, sizes[d] - blocks,
                                       sizes[d]);
        }
        if (!lilac_layout_add_out(&whole, part->out[d].name, sizes[d], why)) {
            return false;
        }
    }
    if (!add_inputs(&whole, part, low_bits(whole.out_bits) & ~taken, why) ||
        !lilac_layout_add_in(&whole, "block", bits, columns, why)) {
        return false;
    }
    lilac_layout_copy(result, &whole);
    return true;
}

/* ---- changing ------------------------------------------------------------------------------ */

typedef struct change {
    const lilac_layout *layout;
    uint64_t columns[LILAC_LAYOUT_MAX_BITS]; /* by input bit: the new column */
    uint64_t gaps;                           /* mask of the input bits whose column gives way */
    lilac_f2_basis covered;
} change;

static void keep_independent(change *c, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++) {
        const uint64_t column = c->layout->columns[i];
        if (lilac_f2_basis_add(&c->covered, column, 0)) {
            c->columns[i] = column;
        } else if (column != 0) {
            c->gaps |= UINT64_C(1) << i;
        }
    }
}

/* The lowest unit vector that no column covers, which is covered from now on; 0: there is none. */
static uint64_t next_uncovered(change *c) {
    for (uint32_t bit = 0; bit < c->layout->out_bits; bit++) {
        if (lilac_f2_basis_add(&c->covered, UINT64_C(1) << bit, 0)) {
            return UINT64_C(1) << bit;
        }
    }
    return 0;
}

/* The registers: those that stay, and what neither lanes nor warps cover. */
static uint32_t collect_registers(change *c, uint32_t first, uint32_t end, uint64_t *columns) {
    uint32_t count = 0;
    for (uint32_t i = first; i < end; i++) {
        if (c->columns[i] != 0) {
            columns[count++] = c->columns[i];
        }
    }
    for (uint64_t more = next_uncovered(c); more != 0; more = next_uncovered(c)) {
        columns[count++] = more;
    }
    return count;
}

bool lilac_layout_change_blocks(lilac_layout *result, const lilac_layout *layout,
                                const uint64_t *columns, lilac_reason *why) {
    change c = {.layout = layout};
    lilac_layout changed;
    lilac_f2_basis_init(&c.covered);
    for (uint32_t i = 0; i < lilac_layout_in_bits(layout, "block"); i++) {
        (void)lilac_f2_basis_add(&c.covered, columns[i], 0);
    }
    for (uint32_t i = 0; i < layout->in_count; i++) {
        const uint32_t start = lilac_layout_in_start(layout, i);
        if (strcmp(layout->in[i].name, "block") != 0) {
            keep_independent(&c, start, start + layout->in[i].bits);
        }
    }
    for (uint32_t i = lilac_layout_in_bits(layout, "register"); i < layout->in_bits; i++) {
        c.columns[i] = c.gaps >> i & 1 ? next_uncovered(&c) : c.columns[i];
    }
    lilac_layout_init(&changed);
    for (uint32_t d = 0; d < layout->out_count; d++) {
        if (!lilac_layout_add_out(&changed, layout->out[d].name, layout->out[d].bits, why)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < layout->in_count; i++) {
        const uint32_t start = lilac_layout_in_start(layout, i);
        uint64_t registers[LILAC_LAYOUT_MAX_BITS];
        const uint64_t *list = c.columns + start;
        uint32_t count = layout->in[i].bits;
        if (strcmp(layout->in[i].name, "register") == 0) {
            count = collect_registers(&c, start, start + count, registers);
            list = registers;
        } else if (strcmp(layout->in[i].name, "block") == 0) {
            list = columns;
        }
        if (!lilac_layout_add_in(&changed, layout->in[i].name, count, list, why)) {
            return false;
        }
    }
    lilac_layout_copy(result, &changed);
    return true;
}
