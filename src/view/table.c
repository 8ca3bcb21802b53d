/* The view of a tensor's cells: in each the slots that hold the element.
 *
 * Columns are the bits of the last dimension, rows those of the one before, slices the rest, the
 * last of them fastest. A tensor of rank 1 is wrapped into rows of 2^wrap_bits.
 *
 * Owners are a coset of the kernel. When the kernel is the sum of its parts within each input, as
 * it always is for a distributed layout, the owners are the product of one set an input, and the
 * fields are these sets: w0,2 t3 r1. Otherwise the fields are the first owner, with a count: ×4.
 */
#include "grid.h"

#include <stdio.h>

enum { LISTED = 3 }; /* of the members of a set, when it is not everything */

static uint64_t input_mask(const lilac_layout *layout, uint32_t input) {
    return low_bits(layout->in[input].bits) << (lilac_layout_in_start(layout, input) & 63);
}

/* How many kernel vectors lie within an input. */
static uint32_t set_bits(const view_grid *grid, uint32_t input) {
    const uint64_t mask = input_mask(grid->layout, input);
    uint32_t count = 0;
    for (uint32_t k = 0; k < grid->owners.copy_bits; k++) {
        count += (grid->owners.copies[k] & ~mask) == 0;
    }
    return count;
}

/* Is the set of an input 2^count values that follow each other? */
static bool is_run(const view_grid *grid, uint32_t input) {
    const uint64_t mask = input_mask(grid->layout, input);
    uint64_t reached = 0;
    for (uint32_t k = 0; k < grid->owners.copy_bits; k++) {
        reached |= (grid->owners.copies[k] & ~mask) == 0 ? grid->owners.copies[k] : 0;
    }
    reached >>= lilac_layout_in_start(grid->layout, input) & 63;
    return reached == low_bits(set_bits(grid, input));
}

static bool copies_are_sets(const view_grid *grid) {
    uint32_t within = 0;
    for (uint32_t i = 0; i < grid->layout->in_count; i++) {
        within += grid->layout->in[i].bits != 0 ? set_bits(grid, i) : 0;
    }
    return within == grid->owners.copy_bits;
}

static uint32_t field_width(const view_grid *grid, uint32_t input) {
    const lilac_layout_dim *dim = &grid->layout->in[input];
    char space[32];
    const uint32_t letter = lilac_view_characters(lilac_view_letter(dim, space, sizeof space));
    const uint32_t digits = lilac_view_digits_of(lilac_view_pad(grid, low_bits(dim->bits)));
    const uint32_t set = grid->sets ? set_bits(grid, input) : 0;
    if (set == 0) {
        return letter + digits;
    }
    if (set == dim->bits) {
        return letter + 1;
    }
    if (set > 1 && is_run(grid, input)) {
        return letter + 2 * digits + 1;
    }
    const uint32_t listed = set == 1 ? 2 : LISTED;
    return letter + listed * digits + (listed - 1) + (set == 1 ? 0 : 2);
}

static void deal(view_axis *axis, const lilac_layout *layout, uint32_t output) {
    const uint32_t start = lilac_layout_out_start(layout, output);
    for (uint32_t k = 0; k < layout->out[output].bits; k++) {
        axis->at[axis->bits++] = (uint8_t)(start + k);
    }
}

bool lilac_view_table_init(view_grid *grid, uint32_t wrap_bits, lilac_reason *why) {
    const lilac_layout *layout = grid->layout;
    (void)why;
    if (layout->out_count == 1) {
        for (uint32_t k = 0; k < layout->out[0].bits; k++) {
            view_axis *axis = &grid->axes[k < wrap_bits ? VIEW_COLUMNS : VIEW_ROWS];
            axis->at[axis->bits++] = (uint8_t)k;
        }
    }
    for (uint32_t d = layout->out_count; layout->out_count > 1 && d-- > 0;) {
        const uint32_t back = layout->out_count - d;
        deal(&grid->axes[back == 1   ? VIEW_COLUMNS
                         : back == 2 ? VIEW_ROWS
                                     : VIEW_SLICES],
             layout, d);
    }
    grid->sets = copies_are_sets(grid);
    grid->tile_mask = low_bits(layout->in_bits);
    if (grid->memory) {
        grid->tile_mask &= ~grid->chunk_mask;
    } else {
        const int input = lilac_layout_in(layout, "register");
        if (input >= 0 && layout->in[input].bits != 0) {
            grid->tile_mask &= ~input_mask(layout, (uint32_t)input);
        }
    }
    for (uint32_t i = layout->in_count; i-- > 0;) {
        if (layout->in[i].bits != 0) {
            grid->field_width[grid->field_count++] = field_width(grid, i);
        }
    }
    if (!grid->sets) {
        grid->field_width[grid->field_count++] = 1 + lilac_view_digits(grid->owners.copy_bits);
    }
    if (grid->field_count == 0) {
        grid->field_width[grid->field_count++] = 1;
    }
    return true;
}

/* "w0,2": the values of an input over the owners. */
static void put_set(char *field, const view_grid *grid, uint32_t input, uint64_t owner) {
    const lilac_layout *layout = grid->layout;
    const uint32_t start = lilac_layout_in_start(layout, input);
    const uint64_t mask = input_mask(layout, input);
    char space[32];
    const char *letter = lilac_view_letter(&layout->in[input], space, sizeof space);
    const uint32_t set = grid->sets ? set_bits(grid, input) : 0;
    if (set != 0 && set == layout->in[input].bits) {
        snprintf(field, VIEW_FIELD_SIZE, "%s*", letter);
        return;
    }
    const uint64_t first = lilac_view_pad(grid, (owner & mask) >> (start & 63));
    const bool merged = grid->merged_bits != 0 && strcmp(layout->in[input].name, "offset") == 0;
    if (merged || (set > 1 && is_run(grid, input))) {
        snprintf(field, VIEW_FIELD_SIZE, "%s%llu–%llu", letter, (unsigned long long)first,
                 (unsigned long long)(first | low_bits(merged ? grid->merged_bits : set)));
        return;
    }
    uint64_t vectors[LILAC_LAYOUT_MAX_BITS] = {0};
    uint32_t count = 0;
    for (uint32_t k = 0; set != 0 && k < grid->owners.copy_bits; k++) {
        if ((grid->owners.copies[k] & ~mask) == 0) {
            vectors[count++] = grid->owners.copies[k];
        }
    }
    const uint32_t listed = set == 0 ? 1 : set == 1 ? 2 : LISTED;
    int at = snprintf(field, VIEW_FIELD_SIZE, "%s", letter);
    for (uint32_t n = 0; n < listed && at < VIEW_FIELD_SIZE; n++) {
        uint64_t value = owner;
        for (uint32_t k = 0; n >> k != 0; k++) {
            value ^= (n >> k & 1) != 0 ? vectors[k] : 0;
        }
        at += snprintf(field + at, (size_t)(VIEW_FIELD_SIZE - at), "%s%llu", n == 0 ? "" : ",",
                       (unsigned long long)lilac_view_pad(grid, (value & mask) >> start));
    }
    if (set > 1 && at < VIEW_FIELD_SIZE) {
        snprintf(field + at, (size_t)(VIEW_FIELD_SIZE - at), ",…");
    }
}

void lilac_view_table_cell(view_cell *cell, const view_grid *grid, uint64_t element) {
    const lilac_layout *layout = grid->layout;
    uint64_t owner = 0;
    cell->empty = !lilac_view_owner(&grid->owners, element, 0, &owner);
    if (cell->empty) {
        cell->tile = UINT64_MAX;
        snprintf(cell->fields[cell->field_count++], VIEW_FIELD_SIZE, "·");
        return;
    }
    cell->key = lilac_view_pad(grid, owner) >> (grid->key_shift & 63) & low_bits(grid->key_bits);
    cell->tile = owner & grid->tile_mask;
    for (uint32_t i = layout->in_count; i-- > 0;) {
        if (layout->in[i].bits != 0) {
            put_set(cell->fields[cell->field_count++], grid, i, owner);
        }
    }
    if (!grid->sets) {
        snprintf(cell->fields[cell->field_count++], VIEW_FIELD_SIZE, "×%llu",
                 1ULL << (grid->owners.copy_bits & 63));
    }
    if (cell->field_count == 0) {
        snprintf(cell->fields[cell->field_count++], VIEW_FIELD_SIZE, "0");
    }
}
