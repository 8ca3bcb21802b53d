/* layout: names, order and sizes of dimensions.
 *
 * A dimension is a name for a run of bits, so most of this leaves the columns alone or moves whole
 * runs of them: renaming and reshaping change the lists of dimensions only, ordering inputs moves
 * runs of columns, and everything about outputs is one move of the bit fields within a column.
 *
 * Fitting a layout to a tensor takes coordinates modulo the tensor's size along the dimensions on
 * which the layout is larger (several places then hold an element), and steps through copies of
 * itself along those on which it is smaller:
 *
 *     layout 4 × 4 on a tensor 2 × 8          new register bit: column 4
 *       0  1  2  3       0,8  1,9  2,10 3,11 | 0,8  1,9  2,10 3,11
 *       4  5  6  7       4,12 …              | 4,12 …
 *       8  9 10 11
 *      12 13 14 15
 */
#include "internal.h"

#include <assert.h>

/* ---- order ------------------------------------------------------------------------------ */

void lilac_layout_permute_ins(lilac_layout *result, const lilac_layout *layout,
                              const uint32_t *order) {
    lilac_layout_dim in[LILAC_LAYOUT_MAX_DIMS];
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    uint8_t starts[LILAC_LAYOUT_MAX_DIMS];
    uint32_t to = 0;
    assert(lilac_layout_order_fits(order, layout->in_count, NULL));
    dim_starts(starts, layout->in, layout->in_count);
    for (uint32_t i = 0; i < layout->in_count; i++) {
        in[i] = layout->in[order[i]];
        for (uint32_t k = 0; k < in[i].bits; k++) {
            columns[to++] = layout->columns[starts[order[i]] + k];
        }
    }
    lilac_layout_copy(result, layout);
    memcpy(result->in, in, result->in_count * sizeof in[0]);
    memcpy(result->columns, columns, to * sizeof columns[0]);
}

/* The permutation that a NULL-terminated list of all the names is. */
static bool order_of(uint32_t *order, const lilac_layout_dim *dims, uint32_t count,
                     const char *const *names, const char *what, lilac_reason *why) {
    uint32_t used = 0, seen = 0;
    for (; *names != NULL; names++) {
        int i = find_named(dims, count, *names, what, why);
        if (i < 0) {
            return false;
        }
        if (seen >> i & 1) {
            return lilac_layout_refuse(why, "%s '%s' is named twice", what, dims[i].name);
        }
        seen |= UINT32_C(1) << i;
        order[used++] = (uint32_t)i;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!(seen >> i & 1)) {
            return lilac_layout_refuse(why, "%s '%s' is missing from the order", what,
                                       dims[i].name);
        }
    }
    return true;
}

bool lilac_layout_order_ins(lilac_layout *result, const lilac_layout *layout,
                            const char *const *names, lilac_reason *why) {
    uint32_t order[LILAC_LAYOUT_MAX_DIMS];
    if (!order_of(order, layout->in, layout->in_count, names, "input", why)) {
        return false;
    }
    lilac_layout_permute_ins(result, layout, order);
    return true;
}

bool lilac_layout_order_outs(lilac_layout *result, const lilac_layout *layout,
                             const char *const *names, lilac_reason *why) {
    uint32_t order[LILAC_LAYOUT_MAX_DIMS];
    if (!order_of(order, layout->out, layout->out_count, names, "output", why)) {
        return false;
    }
    lilac_layout_permute_outs(result, layout, order);
    return true;
}

/* ---- names ------------------------------------------------------------------------------ */

/* The index of the dimension to rename, with the key of its new name; -1 when refused. */
static int renamed(lilac_layout_dim *key, const lilac_layout_dim *dims, uint32_t count,
                   const char *from, const char *to, const char *what, lilac_reason *why) {
    int i = lilac_layout_key(key, from) ? find_dim(dims, count, key) : -1;
    if (i < 0) {
        (void)lilac_layout_refuse(why, "there is no %s '%.14s'", what, from);
        return -1;
    }
    if (!lilac_layout_key(key, to)) {
        (void)lilac_layout_refuse(why, "an %s's name has 1 to 14 characters", what);
        return -1;
    }
    int taken = find_dim(dims, count, key);
    if (taken >= 0 && taken != i) {
        (void)lilac_layout_refuse(why, "there is an %s '%s' already", what, key->name);
        return -1;
    }
    key->bits = dims[i].bits;
    return i;
}

bool lilac_layout_rename_in(lilac_layout *result, const lilac_layout *layout, const char *from,
                            const char *to, lilac_reason *why) {
    lilac_layout_dim dim;
    int i = renamed(&dim, layout->in, layout->in_count, from, to, "input", why);
    if (i < 0) {
        return false;
    }
    lilac_layout_copy(result, layout);
    result->in[i] = dim;
    return true;
}

bool lilac_layout_rename_out(lilac_layout *result, const lilac_layout *layout, const char *from,
                             const char *to, lilac_reason *why) {
    lilac_layout_dim dim;
    int i = renamed(&dim, layout->out, layout->out_count, from, to, "output", why);
    if (i < 0) {
        return false;
    }
    lilac_layout_copy(result, layout);
    result->out[i] = dim;
    return true;
}

/* ---- shapes ----------------------------------------------------------------------------- */

/* A list of dimensions that someone gives: checked, with names padded. */
static bool take_dims(lilac_layout_dim *made, uint32_t count, const lilac_layout_dim *dims,
                      uint32_t bits, const char *what, lilac_reason *why) {
    uint32_t total = 0;
    if (count > LILAC_LAYOUT_MAX_DIMS) {
        return lilac_layout_refuse(why, "more than %d %ss", LILAC_LAYOUT_MAX_DIMS, what);
    }
    for (uint32_t i = 0; i < count; i++) {
        char name[sizeof dims->name + 1] = {0};
        memcpy(name, dims[i].name, sizeof dims->name);
        if (!lilac_layout_key(&made[i], name)) {
            return lilac_layout_refuse(why, "an %s's name has 1 to 14 characters", what);
        }
        if (find_dim(made, i, &made[i]) >= 0) {
            return lilac_layout_refuse(why, "%s '%s' appears twice", what, made[i].name);
        }
        made[i].bits = dims[i].bits;
        total += dims[i].bits;
    }
    if (total != bits) {
        return lilac_layout_refuse(why, "%ss of %u bits cannot be cut into %u", what, bits, total);
    }
    return true;
}

bool lilac_layout_reshape_ins(lilac_layout *result, const lilac_layout *layout, uint32_t count,
                              const lilac_layout_dim *ins, lilac_reason *why) {
    lilac_layout_dim made[LILAC_LAYOUT_MAX_DIMS];
    if (!take_dims(made, count, ins, layout->in_bits, "input", why)) {
        return false;
    }
    lilac_layout_copy(result, layout);
    result->in_count = (uint8_t)count;
    memcpy(result->in, made, count * sizeof made[0]);
    return true;
}

bool lilac_layout_reshape_outs(lilac_layout *result, const lilac_layout *layout, uint32_t count,
                               const lilac_layout_dim *outs, lilac_reason *why) {
    lilac_layout_dim made[LILAC_LAYOUT_MAX_DIMS];
    if (!take_dims(made, count, outs, layout->out_bits, "output", why)) {
        return false;
    }
    lilac_layout_copy(result, layout);
    result->out_count = (uint8_t)count;
    memcpy(result->out, made, count * sizeof made[0]);
    return true;
}

void lilac_layout_flatten_ins(lilac_layout *result, const lilac_layout *layout, const char *name) {
    lilac_layout_dim dim;
    bool named = lilac_layout_key(&dim, name);
    assert(named);
    (void)named;
    lilac_layout_copy(result, layout);
    dim.bits = result->in_bits;
    result->in[0] = dim;
    result->in_count = 1;
}

void lilac_layout_flatten_outs(lilac_layout *result, const lilac_layout *layout, const char *name) {
    lilac_layout_dim dim;
    bool named = lilac_layout_key(&dim, name);
    assert(named);
    (void)named;
    lilac_layout_copy(result, layout);
    dim.bits = result->out_bits;
    result->out[0] = dim;
    result->out_count = 1;
}

/* ---- side by side ----------------------------------------------------------------------- */

static bool same_dims(const lilac_layout_dim *a, uint32_t a_count, const lilac_layout_dim *b,
                      uint32_t b_count, const char *what, lilac_reason *why) {
    for (uint32_t i = 0; i < a_count && i < b_count; i++) {
        if (!same_name(&a[i], &b[i])) {
            return lilac_layout_refuse(why, "%s %u is '%s' in one layout and '%s' in the other",
                                       what, i, a[i].name, b[i].name);
        }
        if (a[i].bits != b[i].bits) {
            return lilac_layout_refuse(why, "%s '%s' has %u bits in one layout and %u in the other",
                                       what, a[i].name, a[i].bits, b[i].bits);
        }
    }
    if (a_count != b_count) {
        return lilac_layout_refuse(why, "one layout has %u %ss and the other %u", a_count, what,
                                   b_count);
    }
    return true;
}

static bool appended(const lilac_layout_dim *a, uint32_t a_count, uint32_t a_bits,
                     const lilac_layout_dim *b, uint32_t b_count, uint32_t b_bits, const char *what,
                     lilac_reason *why) {
    for (uint32_t i = 0; i < b_count; i++) {
        if (find_dim(a, a_count, &b[i]) >= 0) {
            return lilac_layout_refuse(why, "both layouts have an %s '%s'", what, b[i].name);
        }
    }
    if (a_count + b_count > LILAC_LAYOUT_MAX_DIMS) {
        return lilac_layout_refuse(why, "together more than %d %ss", LILAC_LAYOUT_MAX_DIMS, what);
    }
    if (a_bits + b_bits > LILAC_LAYOUT_MAX_BITS) {
        return lilac_layout_refuse(why, "together more than %d %s bits", LILAC_LAYOUT_MAX_BITS,
                                   what);
    }
    return true;
}

bool lilac_layout_concat_ins(lilac_layout *result, const lilac_layout *a, const lilac_layout *b,
                             lilac_reason *why) {
    if (!same_dims(a->out, a->out_count, b->out, b->out_count, "output", why) ||
        !appended(a->in, a->in_count, a->in_bits, b->in, b->in_count, b->in_bits, "input", why)) {
        return false;
    }
    lilac_layout made;
    lilac_layout_copy(&made, a);
    memcpy(&made.in[made.in_count], b->in, b->in_count * sizeof b->in[0]);
    memcpy(&made.columns[made.in_bits], b->columns, b->in_bits * sizeof b->columns[0]);
    made.in_count = (uint8_t)(a->in_count + b->in_count);
    made.in_bits = (uint8_t)(a->in_bits + b->in_bits);
    lilac_layout_copy(result, &made);
    return true;
}

bool lilac_layout_concat_outs(lilac_layout *result, const lilac_layout *a, const lilac_layout *b,
                              lilac_reason *why) {
    if (!same_dims(a->in, a->in_count, b->in, b->in_count, "input", why) ||
        !appended(a->out, a->out_count, a->out_bits, b->out, b->out_count, b->out_bits, "output",
                  why)) {
        return false;
    }
    lilac_layout made;
    lilac_layout_copy(&made, a);
    memcpy(&made.out[made.out_count], b->out, b->out_count * sizeof b->out[0]);
    for (uint32_t i = 0; b->out_bits != 0 && i < b->in_bits; i++) {
        made.columns[i] |= b->columns[i] << a->out_bits;
    }
    made.out_count = (uint8_t)(a->out_count + b->out_count);
    made.out_bits = (uint8_t)(a->out_bits + b->out_bits);
    lilac_layout_copy(result, &made);
    return true;
}

/* ---- sizes ------------------------------------------------------------------------------ */

bool lilac_layout_resize_in(lilac_layout *result, const lilac_layout *layout, const char *in,
                            uint32_t bits, lilac_reason *why) {
    int index = lilac_layout_in(layout, in);
    if (index < 0) {
        return lilac_layout_refuse(why, "there is no input '%.14s'", in);
    }
    uint32_t old = layout->in[index].bits;
    if (bits > old && bits - old > (uint32_t)(LILAC_LAYOUT_MAX_BITS - layout->in_bits)) {
        return lilac_layout_refuse(why, "more than %d input bits with '%.14s'",
                                   LILAC_LAYOUT_MAX_BITS, in);
    }
    uint32_t end = lilac_layout_in_start(layout, (uint32_t)index) + old;
    uint32_t from = end - old + (bits < old ? bits : old), to = end - old + bits;
    uint32_t above = layout->in_bits - end;
    lilac_layout_copy(result, layout);
    memmove(&result->columns[to], &result->columns[end], above * sizeof result->columns[0]);
    for (uint32_t i = from; i < to; i++) {
        result->columns[i] = 0;
    }
    result->in[index].bits = (uint8_t)bits;
    result->in_bits = (uint8_t)(to + above);
    return true;
}

bool lilac_layout_resize_out(lilac_layout *result, const lilac_layout *layout, const char *out,
                             uint32_t bits, lilac_reason *why) {
    int index = lilac_layout_out(layout, out);
    if (index < 0) {
        return lilac_layout_refuse(why, "there is no output '%.14s'", out);
    }
    uint32_t old = layout->out[index].bits, kept = bits < old ? bits : old;
    if (bits > old && bits - old > (uint32_t)(LILAC_LAYOUT_MAX_BITS - layout->out_bits)) {
        return lilac_layout_refuse(why, "more than %d output bits with '%.14s'",
                                   LILAC_LAYOUT_MAX_BITS, out);
    }
    uint32_t start = lilac_layout_out_start(layout, (uint32_t)index);
    uint32_t above = layout->out_bits - start - old;
    bit_fields fields = {.in_place = bits == old};
    add_field(&fields, 0, 0, start);
    add_field(&fields, start, start, kept);
    add_field(&fields, start + old, start + bits, above);
    lilac_layout_copy(result, layout);
    for (uint32_t i = 0; i < result->in_bits; i++) {
        result->columns[i] = move_fields(&fields, result->columns[i]);
    }
    result->out[index].bits = (uint8_t)bits;
    result->out_bits = (uint8_t)(start + bits + above);
    return true;
}

/* The list of all names but those given, in storage of the caller's. */
static void other_names(const char **others, const lilac_layout_dim *dims, uint32_t count,
                        const char *const *names) {
    for (uint32_t i = 0; i < count; i++) {
        bool named = false;
        for (const char *const *name = names; !named && *name != NULL; name++) {
            named = strcmp(*name, dims[i].name) == 0;
        }
        if (!named) {
            *others++ = dims[i].name;
        }
    }
    *others = NULL;
}

bool lilac_layout_quotient(lilac_layout *result, const lilac_layout *layout,
                           const char *const *names, lilac_reason *why) {
    for (const char *const *name = names; *name != NULL; name++) {
        if (lilac_layout_in(layout, *name) < 0) {
            return lilac_layout_refuse(why, "there is no input '%.14s'", *name);
        }
        if (lilac_layout_out(layout, *name) < 0) {
            return lilac_layout_refuse(why, "there is no output '%.14s'", *name);
        }
    }
    if (!lilac_layout_is_identity_over(layout, names)) {
        return lilac_layout_refuse(why, "the layout is not the identity on what is divided out");
    }
    if (!lilac_layout_is_trivial_over(layout, names)) {
        return lilac_layout_refuse(why, "what is divided out and the rest move along one another");
    }
    const char *ins[LILAC_LAYOUT_MAX_DIMS + 1], *outs[LILAC_LAYOUT_MAX_DIMS + 1];
    other_names(ins, layout->in, layout->in_count, names);
    other_names(outs, layout->out, layout->out_count, names);
    return lilac_layout_sublayout(result, layout, ins, outs, why);
}

static uint8_t drop_empty(lilac_layout_dim *dims, uint32_t count) {
    uint8_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (dims[i].bits != 0) {
            dims[kept++] = dims[i];
        }
    }
    return kept;
}

void lilac_layout_drop_empty(lilac_layout *result, const lilac_layout *layout) {
    lilac_layout_copy(result, layout);
    result->in_count = drop_empty(result->in, result->in_count);
    result->out_count = drop_empty(result->out, result->out_count);
}

bool lilac_layout_fit(lilac_layout *result, const lilac_layout *layout, const uint32_t *bits,
                      const uint32_t *order, const char *in, lilac_reason *why) {
    uint32_t rank = layout->out_count, more = 0, total = 0;
    int index = lilac_layout_in(layout, in);
    if (index < 0) {
        return lilac_layout_refuse(why, "there is no input '%.14s'", in);
    }
    if (!lilac_layout_order_fits(order, rank, why)) {
        return false;
    }
    for (uint32_t i = 0; i < rank; i++) {
        if (bits[i] > LILAC_LAYOUT_MAX_BITS - total) {
            return lilac_layout_refuse(why, "more than %d output bits", LILAC_LAYOUT_MAX_BITS);
        }
        total += bits[i];
        more += bits[i] > layout->out[i].bits ? bits[i] - layout->out[i].bits : 0;
    }
    lilac_layout made;
    uint32_t old = layout->in[index].bits;
    if (!lilac_layout_resize_in(&made, layout, in, old + more, why)) {
        return false;
    }

    uint32_t start = 0;
    bit_fields fields = {.in_place = false};
    uint8_t starts[LILAC_LAYOUT_MAX_DIMS];
    dim_starts(starts, layout->out, rank);
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t had = layout->out[i].bits;
        add_field(&fields, starts[i], start, had < bits[i] ? had : bits[i]);
        made.out[i].bits = (uint8_t)bits[i];
        start += bits[i];
    }
    made.out_bits = (uint8_t)total;
    for (uint32_t i = 0; i < made.in_bits; i++) {
        made.columns[i] = move_fields(&fields, made.columns[i]);
    }

    uint64_t *column = &made.columns[lilac_layout_in_start(&made, (uint32_t)index) + old];
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t dim = order != NULL ? order[i] : rank - 1 - i;
        uint32_t to = lilac_layout_out_start(&made, dim);
        for (uint32_t k = layout->out[dim].bits; k < bits[dim]; k++) {
            *column++ = UINT64_C(1) << (to + k);
        }
    }
    lilac_layout_copy(result, &made);
    return true;
}
