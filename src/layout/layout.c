/* layout: building layouts and looking at them.
 *
 * A layout's columns stand one after another, input by input, and a column is one word with the
 * outputs' fields side by side, so L(index) is the xor of the columns of the index's set bits, and
 * rank, injectivity and free bits are those of the matrix that the columns are.
 */
#include "internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

bool lilac_layout_refuse(lilac_reason *why, const char *format, ...) {
    if (why == NULL) {
        return false;
    }
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(why->text, sizeof why->text, format, arguments);
    va_end(arguments);
    return false;
}

void lilac_layout_copy(lilac_layout *result, const lilac_layout *layout) {
    if (result == layout) {
        return;
    }
    result->in_count = layout->in_count;
    result->out_count = layout->out_count;
    result->in_bits = layout->in_bits;
    result->out_bits = layout->out_bits;
    memcpy(result->in, layout->in, layout->in_count * sizeof layout->in[0]);
    memcpy(result->out, layout->out, layout->out_count * sizeof layout->out[0]);
    memcpy(result->columns, layout->columns, layout->in_bits * sizeof layout->columns[0]);
}

bool lilac_layout_key(lilac_layout_dim *key, const char *name) {
    memset(key, 0, sizeof *key);
    size_t length = 0;
    while (length < sizeof key->name && name[length] != '\0') {
        length++;
    }
    if (length == 0 || length == sizeof key->name) {
        return false;
    }
    memcpy(key->name, name, length);
    return true;
}

void lilac_layout_name_out(lilac_layout_dim *dim, uint32_t index) {
    assert(index < 100);
    memset(dim->name, 0, sizeof dim->name);
    memcpy(dim->name, "dim", 3);
    size_t at = 3;
    if (index >= 10) {
        dim->name[at++] = (char)('0' + index / 10);
    }
    dim->name[at] = (char)('0' + index % 10);
}

/* ---- building --------------------------------------------------------------------------- */

void lilac_layout_init(lilac_layout *layout) {
    memset(layout, 0, sizeof *layout);
}

/* The checks that an input and an output share. */
static bool add_dim(lilac_layout_dim *dims, uint8_t *count, uint8_t *sum, const char *name,
                    uint32_t bits, const char *what, lilac_reason *why) {
    lilac_layout_dim key;
    if (!lilac_layout_key(&key, name)) {
        return lilac_layout_refuse(why, "an %s's name has 1 to 14 characters", what);
    }
    if (find_dim(dims, *count, &key) >= 0) {
        return lilac_layout_refuse(why, "%s '%s' appears twice", what, key.name);
    }
    if (*count == LILAC_LAYOUT_MAX_DIMS) {
        return lilac_layout_refuse(why, "more than %d %ss", LILAC_LAYOUT_MAX_DIMS, what);
    }
    if (bits > (uint32_t)(LILAC_LAYOUT_MAX_BITS - *sum)) {
        return lilac_layout_refuse(why, "more than %d %s bits with '%s'", LILAC_LAYOUT_MAX_BITS,
                                   what, key.name);
    }
    key.bits = (uint8_t)bits;
    dims[(*count)++] = key;
    *sum = (uint8_t)(*sum + bits);
    return true;
}

bool lilac_layout_add_out(lilac_layout *layout, const char *name, uint32_t bits,
                          lilac_reason *why) {
    assert(layout->in_bits == 0);
    return add_dim(layout->out, &layout->out_count, &layout->out_bits, name, bits, "output", why);
}

bool lilac_layout_add_in(lilac_layout *layout, const char *name, uint32_t bits,
                         const uint64_t *columns, lilac_reason *why) {
    for (uint32_t i = 0; i < bits && i < LILAC_LAYOUT_MAX_BITS; i++) {
        if ((columns[i] & ~low_bits(layout->out_bits)) != 0) {
            return lilac_layout_refuse(why, "%.14s bit %u goes outside the outputs", name, i);
        }
    }
    uint32_t start = layout->in_bits;
    if (!add_dim(layout->in, &layout->in_count, &layout->in_bits, name, bits, "input", why)) {
        return false;
    }
    if (bits != 0) {
        memcpy(&layout->columns[start], columns, bits * sizeof columns[0]);
    }
    return true;
}

void lilac_layout_identity(lilac_layout *layout, uint32_t bits, const char *in, const char *out) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    assert(bits <= LILAC_LAYOUT_MAX_BITS);
    for (uint32_t i = 0; i < bits; i++) {
        columns[i] = UINT64_C(1) << i;
    }
    lilac_layout_init(layout);
    bool added = lilac_layout_add_out(layout, out, bits, NULL) &&
                 lilac_layout_add_in(layout, in, bits, columns, NULL);
    assert(added);
    (void)added;
}

void lilac_layout_zeros(lilac_layout *layout, uint32_t bits, const char *in, const char *out,
                        uint32_t out_bits) {
    const uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
    lilac_layout_init(layout);
    bool added = lilac_layout_add_out(layout, out, out_bits, NULL) &&
                 lilac_layout_add_in(layout, in, bits, columns, NULL);
    assert(added);
    (void)added;
}

/* ---- looking ---------------------------------------------------------------------------- */

int lilac_layout_in(const lilac_layout *layout, const char *name) {
    lilac_layout_dim key;
    return lilac_layout_key(&key, name) ? find_dim(layout->in, layout->in_count, &key) : -1;
}

int lilac_layout_out(const lilac_layout *layout, const char *name) {
    lilac_layout_dim key;
    return lilac_layout_key(&key, name) ? find_dim(layout->out, layout->out_count, &key) : -1;
}

uint32_t lilac_layout_in_bits(const lilac_layout *layout, const char *name) {
    int index = lilac_layout_in(layout, name);
    return index < 0 ? 0 : layout->in[index].bits;
}

uint32_t lilac_layout_out_bits(const lilac_layout *layout, const char *name) {
    int index = lilac_layout_out(layout, name);
    return index < 0 ? 0 : layout->out[index].bits;
}

static uint32_t start_of(const lilac_layout_dim *dims, uint32_t index) {
    uint32_t start = 0;
    for (uint32_t i = 0; i < index; i++) {
        start += dims[i].bits;
    }
    return start;
}

uint32_t lilac_layout_in_start(const lilac_layout *layout, uint32_t index) {
    assert(index <= layout->in_count);
    return start_of(layout->in, index);
}

uint32_t lilac_layout_out_start(const lilac_layout *layout, uint32_t index) {
    assert(index <= layout->out_count);
    return start_of(layout->out, index);
}

uint64_t lilac_layout_column(const lilac_layout *layout, const char *in, uint32_t bit) {
    int index = lilac_layout_in(layout, in);
    assert(index >= 0 && bit < layout->in[index].bits);
    return layout->columns[start_of(layout->in, (uint32_t)index) + bit];
}

uint64_t lilac_layout_coordinate(const lilac_layout *layout, uint64_t flat, uint32_t index) {
    assert(index < layout->out_count);
    uint32_t bits = layout->out[index].bits;
    return bits == 0 ? 0 : flat >> start_of(layout->out, index) & low_bits(bits);
}

uint64_t lilac_layout_pack(const lilac_layout *layout, const uint64_t *coordinates) {
    uint64_t flat = 0;
    uint32_t start = 0;
    for (uint32_t i = 0; i < layout->out_count; i++) {
        uint32_t bits = layout->out[i].bits;
        assert((coordinates[i] & ~low_bits(bits)) == 0);
        if (bits != 0) {
            flat |= coordinates[i] << start;
        }
        start += bits;
    }
    return flat;
}

uint64_t lilac_layout_apply(const lilac_layout *layout, uint64_t index) {
    assert((index & ~low_bits(layout->in_bits)) == 0);
    uint64_t sum = 0;
    for (; index != 0; index &= index - 1) {
        sum ^= layout->columns[lowest_bit(index)];
    }
    return sum;
}

bool lilac_layout_equal(const lilac_layout *a, const lilac_layout *b) {
    return a->in_count == b->in_count && a->out_count == b->out_count && a->in_bits == b->in_bits &&
           a->out_bits == b->out_bits && memcmp(a->in, b->in, a->in_count * sizeof a->in[0]) == 0 &&
           memcmp(a->out, b->out, a->out_count * sizeof a->out[0]) == 0 &&
           memcmp(a->columns, b->columns, a->in_bits * sizeof a->columns[0]) == 0;
}

uint64_t lilac_layout_hash(const lilac_layout *layout) {
    uint64_t hash = (uint64_t)layout->in_count << 8 | layout->out_count;
    hash = lilac_hash(layout->in, layout->in_count * sizeof layout->in[0], hash);
    hash = lilac_hash(layout->out, layout->out_count * sizeof layout->out[0], hash);
    return lilac_hash(layout->columns, layout->in_bits * sizeof layout->columns[0], hash);
}

bool lilac_layout_equivalent(const lilac_layout *a, const lilac_layout *b) {
    if (a->in_count != b->in_count || a->out_count != b->out_count || a->in_bits != b->in_bits ||
        a->out_bits != b->out_bits) {
        return false;
    }
    uint8_t a_out[LILAC_LAYOUT_MAX_DIMS], b_in[LILAC_LAYOUT_MAX_DIMS];
    dim_starts(a_out, a->out, a->out_count);
    dim_starts(b_in, b->in, b->in_count);
    bit_fields fields = {.in_place = true};
    uint32_t from = 0;
    for (uint32_t i = 0; i < b->out_count; i++) {
        int j = find_dim(a->out, a->out_count, &b->out[i]);
        if (j < 0 || a->out[j].bits != b->out[i].bits) {
            return false;
        }
        add_field(&fields, from, a_out[j], b->out[i].bits);
        from += b->out[i].bits;
    }
    uint32_t start = 0;
    for (uint32_t i = 0; i < a->in_count; i++) {
        int j = find_dim(b->in, b->in_count, &a->in[i]);
        if (j < 0 || a->in[i].bits != b->in[j].bits) {
            return false;
        }
        for (uint32_t k = 0; k < a->in[i].bits; k++) {
            if (a->columns[start + k] != move_fields(&fields, b->columns[b_in[j] + k])) {
                return false;
            }
        }
        start += a->in[i].bits;
    }
    return true;
}

void lilac_layout_reduce(lilac_f2_echelon *result, const lilac_layout *layout) {
    lilac_f2_matrix matrix;
    matrix.rows = layout->out_bits;
    matrix.columns = layout->in_bits;
    memcpy(matrix.column, layout->columns, layout->in_bits * sizeof layout->columns[0]);
    lilac_f2_reduce(result, &matrix);
}

uint32_t lilac_layout_rank(const lilac_layout *layout) {
    lilac_f2_echelon echelon;
    lilac_layout_reduce(&echelon, layout);
    return echelon.rank;
}

bool lilac_layout_is_injective(const lilac_layout *layout) {
    return layout->in_bits <= layout->out_bits && lilac_layout_rank(layout) == layout->in_bits;
}

bool lilac_layout_is_surjective(const lilac_layout *layout) {
    return layout->out_bits <= layout->in_bits && lilac_layout_rank(layout) == layout->out_bits;
}

bool lilac_layout_is_distributed(const lilac_layout *layout) {
    uint64_t reached = 0;
    for (uint32_t i = 0; i < layout->in_bits; i++) {
        uint64_t column = layout->columns[i];
        if ((column & (column - 1)) != 0 || (column & reached) != 0) {
            return false;
        }
        reached |= column;
    }
    return reached == low_bits(layout->out_bits);
}

uint64_t lilac_layout_free_bits(const lilac_layout *layout, const char *in) {
    int index = lilac_layout_in(layout, in);
    if (index < 0 || layout->in[index].bits == 0) {
        return 0;
    }
    uint64_t dependent = lilac_layout_free_mask(layout);
    return dependent >> start_of(layout->in, (uint32_t)index) & low_bits(layout->in[index].bits);
}
