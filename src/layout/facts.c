/* layout: predicates and what they are asked for.
 *
 * All are about the columns. Of a layout cut into named blocks,
 *
 *                    ins   rest
 *       names     [   I     .   ]     zero over, identity over: one block of the matrix;
 *       rest      [   .     R   ]     trivial over: three of the four.
 */
#include "internal.h"

#include <lilac/replication.h>

#include <assert.h>

bool lilac_layout_is_bijective(const lilac_layout *layout) {
    return layout->in_bits == layout->out_bits && lilac_layout_rank(layout) == layout->in_bits;
}

bool lilac_layout_is_memory(const lilac_layout *layout) {
    for (uint32_t i = 0; i < layout->in_bits; i++) {
        uint64_t left = layout->columns[i] & (layout->columns[i] - 1); /* less its lowest bit */
        if (layout->columns[i] == 0 || (left & (left - 1)) != 0) {
            return false;
        }
    }
    return lilac_layout_is_bijective(layout);
}

/* The bits of the named dimensions among the flattened ones; of all of them for no list. */
static uint64_t bits_of(const lilac_layout_dim *dims, uint32_t count, const char *const *names) {
    uint64_t mask = 0;
    for (uint32_t i = 0, start = 0; i < count; start += dims[i++].bits) {
        bool named = names == NULL;
        for (const char *const *name = names; !named && *name != NULL; name++) {
            named = strcmp(*name, dims[i].name) == 0;
        }
        if (named && dims[i].bits != 0) {
            mask |= low_bits(dims[i].bits) << start;
        }
    }
    return mask;
}

static bool zero_block(const lilac_layout *layout, uint64_t ins, uint64_t outs) {
    uint64_t moved = 0;
    for (; ins != 0; ins &= ins - 1) {
        moved |= layout->columns[lowest_bit(ins)];
    }
    return (moved & outs) == 0;
}

bool lilac_layout_is_zero_over(const lilac_layout *layout, const char *const *ins,
                               const char *const *outs) {
    return zero_block(layout, bits_of(layout->in, layout->in_count, ins),
                      bits_of(layout->out, layout->out_count, outs));
}

bool lilac_layout_is_identity_over(const lilac_layout *layout, const char *const *names) {
    uint64_t outs = bits_of(layout->out, layout->out_count, names), reached = 0;
    for (uint32_t i = 0, start = 0; i < layout->in_count; start += layout->in[i++].bits) {
        uint32_t bits = layout->in[i].bits;
        if (bits == 0 || (names != NULL && bits_of(&layout->in[i], 1, names) == 0)) {
            continue;
        }
        int out = find_dim(layout->out, layout->out_count, &layout->in[i]);
        if (out < 0 || layout->out[out].bits != bits) {
            return false;
        }
        uint32_t to = lilac_layout_out_start(layout, (uint32_t)out);
        for (uint32_t k = 0; k < bits; k++) {
            if ((layout->columns[start + k] & outs) != UINT64_C(1) << (to + k)) {
                return false;
            }
        }
        reached |= low_bits(bits) << to;
    }
    return reached == outs;
}

bool lilac_layout_is_trivial_over(const lilac_layout *layout, const char *const *names) {
    uint64_t ins = bits_of(layout->in, layout->in_count, names);
    uint64_t outs = bits_of(layout->out, layout->out_count, names);
    return lilac_layout_is_identity_over(layout, names) &&
           zero_block(layout, ins, low_bits(layout->out_bits) & ~outs) &&
           zero_block(layout, low_bits(layout->in_bits) & ~ins, outs);
}

/* ---- masks ------------------------------------------------------------------------------ */

void lilac_layout_find_replication(lilac_replication *result, const uint64_t *columns,
                                   uint32_t count) {
    lilac_f2_basis basis;
    lilac_f2_basis_init(&basis);
    result->replicated = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t own = UINT64_C(1) << i;
        if (lilac_f2_basis_add(&basis, columns[i], own)) {
            result->origin[i] = own;
        } else {
            result->origin[i] = lilac_f2_basis_tag(&basis, columns[i]);
            result->replicated |= own;
        }
    }
}

uint64_t lilac_layout_free_mask(const lilac_layout *layout) {
    lilac_replication replication;
    lilac_layout_find_replication(&replication, layout->columns, layout->in_bits);
    return replication.replicated;
}

uint64_t lilac_layout_additive_bits(const lilac_layout *layout, const char *in, uint64_t touched) {
    int index = lilac_layout_in(layout, in);
    if (index < 0 || layout->in[index].bits == 0) {
        return 0;
    }
    uint32_t start = lilac_layout_in_start(layout, (uint32_t)index), bits = layout->in[index].bits;
    for (uint32_t i = 0; i < layout->in_bits; i++) {
        if (i < start || i >= start + bits) {
            touched |= layout->columns[i];
        }
    }
    /* A column that shares a bit with those outside joins them, and may take others along. */
    uint64_t additive = low_bits(bits);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint64_t rest = additive; rest != 0; rest &= rest - 1) {
            uint32_t k = lowest_bit(rest);
            if ((layout->columns[start + k] & touched) != 0) {
                touched |= layout->columns[start + k];
                additive &= ~(UINT64_C(1) << k);
                changed = true;
            }
        }
    }
    return additive;
}

uint32_t lilac_layout_consecutive_in(const lilac_layout *layout, const char *in,
                                     const uint32_t *order) {
    int index = lilac_layout_in(layout, in);
    if (index < 0) {
        return 0;
    }
    uint32_t first = lilac_layout_in_start(layout, (uint32_t)index);
    uint32_t bits = layout->in[index].bits, count = 0;
    uint64_t reached[LILAC_LAYOUT_MAX_BITS]; /* by the run's first bits */
    for (uint32_t i = 0, ended = 0; i < layout->out_count && !ended; i++) {
        uint32_t dim = order != NULL ? order[i] : layout->out_count - 1 - i;
        uint32_t start = lilac_layout_out_start(layout, dim);
        for (uint32_t k = 0; k < layout->out[dim].bits && !ended; k++) {
            ended = count == bits || layout->columns[first + count] != UINT64_C(1) << (start + k);
            if (!ended) {
                reached[count++] = UINT64_C(1) << (start + k);
            }
        }
    }
    /* Where another column reaches one of the run's bits, the run must end below that bit: with
     * that column's bit set, its registers come in another order. */
    uint64_t others = 0;
    for (uint32_t i = 0; i < layout->in_bits; i++) {
        if (i < first || i >= first + count) {
            others |= layout->columns[i];
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if ((others & reached[i]) != 0) {
            count = i;
        }
    }
    return count;
}

uint32_t lilac_layout_consecutive(const lilac_layout *layout, const uint32_t *order) {
    return lilac_layout_consecutive_in(layout, "register", order);
}
