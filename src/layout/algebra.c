/* layout: product, composition, inverses and sublayouts.
 *
 * All of it is done on whole columns. A product sets the two matrices on a diagonal, output by
 * output and input by input; a composition sends each inner column through the outer map:
 *
 *     a × b = [ A . ]        (outer ∘ inner) column j = outer(inner column j)
 *             [ . B ]
 *
 * Inverses come from one elimination: when L is onto, every reduced vector is a unit vector e_r,
 * and the combination of columns that made it is the column r of a right inverse. Elimination
 * never uses a column that depends on earlier ones, so that inverse sets no free bit and is the
 * smallest preimage as a number: the lowest register, then the lowest lane … that holds the
 * element (section 5.4 of the paper calls it the minimum norm solution).
 */
#include "internal.h"

#include <assert.h>

/* The output bit `bit` in words: "dim1=8". Bits beyond 2^63 cannot be asked for. */
typedef struct place_text {
    char name[16];
    unsigned long long value;
} place_text;

static place_text place_of(const lilac_layout_dim *dims, uint32_t count, uint32_t bit) {
    place_text place = {{0}, 0};
    for (uint32_t i = 0; i < count; i++) {
        if (bit < dims[i].bits) {
            memcpy(place.name, dims[i].name, sizeof dims[i].name);
            place.value = bit;
            return place;
        }
        bit -= dims[i].bits;
    }
    return place;
}

static bool refuse_not_onto(const lilac_layout *layout, const lilac_f2_echelon *echelon,
                            lilac_reason *why) {
    uint64_t reached = 0;
    for (uint32_t i = 0; i < echelon->rank; i++) {
        reached |= UINT64_C(1) << echelon->pivot[i];
    }
    uint64_t missed = low_bits(layout->out_bits) & ~reached;
    place_text place = place_of(layout->out, layout->out_count, lowest_bit(missed));
    return lilac_layout_refuse(why, "not surjective: nothing goes to %s=%llu", place.name,
                               1ULL << place.value);
}

static bool refuse_not_injective(const lilac_layout *layout, const lilac_f2_echelon *echelon,
                                 lilac_reason *why) {
    uint32_t bit = highest_bit(echelon->kernel[0]);
    place_text place = place_of(layout->in, layout->in_count, bit);
    return lilac_layout_refuse(why, "not injective: %s bit %llu goes where lower bits go already",
                               place.name, place.value);
}

/* ---- product ---------------------------------------------------------------------------- */

/* Appends those dimensions of b that a lacks and widens those that both have. */
static bool join_dims(lilac_layout_dim *dims, uint8_t *count, uint8_t *sum,
                      const lilac_layout_dim *a, uint32_t a_count, const lilac_layout_dim *b,
                      uint32_t b_count, const char *what, lilac_reason *why) {
    uint32_t total = 0, used = a_count;
    memcpy(dims, a, a_count * sizeof a[0]);
    for (uint32_t i = 0; i < a_count; i++) {
        total += a[i].bits;
    }
    for (uint32_t i = 0; i < b_count; i++) {
        total += b[i].bits;
        if (total > LILAC_LAYOUT_MAX_BITS) {
            return lilac_layout_refuse(why, "the product has more than %d %s bits",
                                       LILAC_LAYOUT_MAX_BITS, what);
        }
        int j = find_dim(a, a_count, &b[i]);
        if (j >= 0) {
            dims[j].bits = (uint8_t)(dims[j].bits + b[i].bits);
        } else if (used < LILAC_LAYOUT_MAX_DIMS) {
            dims[used++] = b[i];
        } else {
            return lilac_layout_refuse(why, "the product has more than %d %ss",
                                       LILAC_LAYOUT_MAX_DIMS, what);
        }
    }
    *count = (uint8_t)used;
    *sum = (uint8_t)total;
    return true;
}

bool lilac_layout_product(lilac_layout *result, const lilac_layout *a, const lilac_layout *b,
                          lilac_reason *why) {
    lilac_layout made;
    if (!join_dims(made.in, &made.in_count, &made.in_bits, a->in, a->in_count, b->in, b->in_count,
                   "input", why) ||
        !join_dims(made.out, &made.out_count, &made.out_bits, a->out, a->out_count, b->out,
                   b->out_count, "output", why)) {
        return false;
    }

    uint8_t a_in[LILAC_LAYOUT_MAX_DIMS], b_in[LILAC_LAYOUT_MAX_DIMS];
    uint8_t a_out[LILAC_LAYOUT_MAX_DIMS], b_out[LILAC_LAYOUT_MAX_DIMS];
    dim_starts(a_in, a->in, a->in_count);
    dim_starts(b_in, b->in, b->in_count);
    dim_starts(a_out, a->out, a->out_count);
    dim_starts(b_out, b->out, b->out_count);

    bit_fields of_a = {.in_place = true}, of_b = {.in_place = true};
    uint32_t start = 0;
    for (uint32_t i = 0; i < made.out_count; i++) {
        uint32_t below = i < a->out_count ? a->out[i].bits : 0;
        if (i < a->out_count) {
            add_field(&of_a, a_out[i], start, below);
        }
        int j = find_dim(b->out, b->out_count, &made.out[i]);
        if (j >= 0) {
            add_field(&of_b, b_out[j], start + below, b->out[j].bits);
        }
        start += made.out[i].bits;
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < made.in_count; i++) {
        for (uint32_t k = 0; i < a->in_count && k < a->in[i].bits; k++) {
            made.columns[at++] = move_fields(&of_a, a->columns[a_in[i] + k]);
        }
        int j = find_dim(b->in, b->in_count, &made.in[i]);
        for (uint32_t k = 0; j >= 0 && k < b->in[j].bits; k++) {
            made.columns[at++] = move_fields(&of_b, b->columns[b_in[j] + k]);
        }
    }
    lilac_layout_copy(result, &made);
    return true;
}

/* ---- composition ------------------------------------------------------------------------ */

bool lilac_layout_compose(lilac_layout *result, const lilac_layout *outer,
                          const lilac_layout *inner, lilac_reason *why) {
    if (inner->out_count != outer->in_count) {
        return lilac_layout_refuse(why, "the inner layout has %u outputs and the outer %u inputs",
                                   inner->out_count, outer->in_count);
    }
    uint8_t starts[LILAC_LAYOUT_MAX_DIMS];
    dim_starts(starts, outer->in, outer->in_count);
    bit_fields fields = {.in_place = true};
    uint32_t from = 0;
    for (uint32_t i = 0; i < inner->out_count; i++) {
        const lilac_layout_dim *dim = &inner->out[i];
        int j = find_dim(outer->in, outer->in_count, dim);
        if (j < 0) {
            return lilac_layout_refuse(
                why, "output '%s' of the inner layout is no input of the outer", dim->name);
        }
        if (dim->bits > outer->in[j].bits) {
            return lilac_layout_refuse(why,
                                       "'%s' has %u bits in the inner layout and %u in the outer",
                                       dim->name, dim->bits, outer->in[j].bits);
        }
        add_field(&fields, from, starts[j], dim->bits);
        from += dim->bits;
    }
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    for (uint32_t i = 0; i < inner->in_bits; i++) {
        columns[i] = lilac_layout_apply(outer, move_fields(&fields, inner->columns[i]));
    }
    if (result != inner) {
        result->in_count = inner->in_count;
        result->in_bits = inner->in_bits;
        memcpy(result->in, inner->in, inner->in_count * sizeof inner->in[0]);
    }
    if (result != outer) {
        result->out_count = outer->out_count;
        result->out_bits = outer->out_bits;
        memcpy(result->out, outer->out, outer->out_count * sizeof outer->out[0]);
    }
    memcpy(result->columns, columns, result->in_bits * sizeof columns[0]);
    return true;
}

/* ---- inverses --------------------------------------------------------------------------- */

/* From the elimination of a surjective layout: result's inputs are layout's outputs and its outputs
 * layout's inputs. */
static void right_inverse(lilac_layout *result, const lilac_layout *layout,
                          const lilac_f2_echelon *echelon) {
    lilac_layout made;
    made.in_count = layout->out_count;
    made.in_bits = layout->out_bits;
    made.out_count = layout->in_count;
    made.out_bits = layout->in_bits;
    memcpy(made.in, layout->out, layout->out_count * sizeof layout->out[0]);
    memcpy(made.out, layout->in, layout->in_count * sizeof layout->in[0]);
    for (uint32_t i = 0; i < echelon->rank; i++) {
        made.columns[echelon->pivot[i]] = echelon->combination[i];
    }
    lilac_layout_copy(result, &made);
}

bool lilac_layout_invert(lilac_layout *result, const lilac_layout *layout, lilac_reason *why) {
    lilac_f2_echelon echelon;
    lilac_layout_reduce(&echelon, layout);
    if (echelon.rank != layout->in_bits) {
        return refuse_not_injective(layout, &echelon, why);
    }
    if (echelon.rank != layout->out_bits) {
        return refuse_not_onto(layout, &echelon, why);
    }
    right_inverse(result, layout, &echelon);
    return true;
}

bool lilac_layout_pseudoinvert(lilac_layout *result, const lilac_layout *layout,
                               lilac_reason *why) {
    lilac_f2_echelon echelon;
    lilac_layout_reduce(&echelon, layout);
    if (echelon.rank != layout->out_bits) {
        return refuse_not_onto(layout, &echelon, why);
    }
    right_inverse(result, layout, &echelon);
    return true;
}

/* Adds where the outputs of a are in b. Refused where they are not the same. */
static bool match_outputs(bit_fields *fields, const lilac_layout *a, const lilac_layout *b,
                          lilac_reason *why) {
    if (a->out_count != b->out_count) {
        return lilac_layout_refuse(why, "the layouts have %u and %u outputs", a->out_count,
                                   b->out_count);
    }
    uint8_t b_out[LILAC_LAYOUT_MAX_DIMS];
    dim_starts(b_out, b->out, b->out_count);
    uint32_t from = 0;
    for (uint32_t i = 0; i < a->out_count; i++) {
        int j = find_dim(b->out, b->out_count, &a->out[i]);
        if (j < 0) {
            return lilac_layout_refuse(why, "only one of the layouts has an output '%s'",
                                       a->out[i].name);
        }
        if (a->out[i].bits != b->out[j].bits) {
            return lilac_layout_refuse(why, "output '%s' has %u bits here and %u there",
                                       a->out[i].name, a->out[i].bits, b->out[j].bits);
        }
        add_field(fields, from, b_out[j], a->out[i].bits);
        from += a->out[i].bits;
    }
    return true;
}

/* The inputs of b for each input bit of a. `echelon`: the elimination of b, which is surjective. */
static void solve_columns(uint64_t *columns, const lilac_layout *a, const lilac_layout *b,
                          const bit_fields *fields, const lilac_f2_echelon *echelon) {
    uint64_t preimage[LILAC_LAYOUT_MAX_BITS]; /* of each output bit */
    uint8_t b_in[LILAC_LAYOUT_MAX_DIMS];
    dim_starts(b_in, b->in, b->in_count);
    for (uint32_t i = 0; i < echelon->rank; i++) {
        preimage[echelon->pivot[i]] = echelon->combination[i];
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < a->in_count; i++) {
        uint32_t bits = a->in[i].bits, start = at;
        int j = find_dim(b->in, b->in_count, &a->in[i]);
        bool same = j >= 0 && b->in[j].bits == bits;
        for (uint32_t k = 0; k < bits; k++, at++) {
            uint64_t column = move_fields(fields, a->columns[at]), sum = 0;
            same = same && column == b->columns[b_in[j] + k];
            for (; column != 0; column &= column - 1) {
                sum ^= preimage[lowest_bit(column)];
            }
            columns[at] = sum;
        }
        /* Where both sides agree on a whole input, its own bits are a solution too, and the one
         * that moves nothing. */
        for (uint32_t k = 0; same && k < bits; k++) {
            columns[start + k] = UINT64_C(1) << (b_in[j] + k);
        }
    }
}

bool lilac_layout_invert_compose(lilac_layout *result, const lilac_layout *a, const lilac_layout *b,
                                 lilac_reason *why) {
    bit_fields fields = {.in_place = true};
    lilac_f2_echelon echelon;
    lilac_layout made;
    if (!match_outputs(&fields, a, b, why)) {
        return false;
    }
    lilac_layout_reduce(&echelon, b);
    if (echelon.rank != b->out_bits) {
        return refuse_not_onto(b, &echelon, why);
    }
    solve_columns(made.columns, a, b, &fields, &echelon);
    made.in_count = a->in_count;
    made.in_bits = a->in_bits;
    made.out_count = b->in_count;
    made.out_bits = b->in_bits;
    memcpy(made.in, a->in, a->in_count * sizeof a->in[0]);
    memcpy(made.out, b->in, b->in_count * sizeof b->in[0]);
    lilac_layout_copy(result, &made);
    return true;
}

/* ---- sublayouts ------------------------------------------------------------------------- */

/* Which of the dimensions a NULL-terminated list names; all for no list. */
static bool chosen(uint32_t *mask, const lilac_layout_dim *dims, uint32_t count,
                   const char *const *names, const char *what, lilac_reason *why) {
    *mask = names == NULL ? (uint32_t)low_bits(count) : 0;
    for (; names != NULL && *names != NULL; names++) {
        int i = find_named(dims, count, *names, what, why);
        if (i < 0) {
            return false;
        }
        *mask |= UINT32_C(1) << i;
    }
    return true;
}

bool lilac_layout_sublayout(lilac_layout *result, const lilac_layout *layout,
                            const char *const *ins, const char *const *outs, lilac_reason *why) {
    uint32_t in_mask, out_mask;
    if (!chosen(&in_mask, layout->in, layout->in_count, ins, "input", why) ||
        !chosen(&out_mask, layout->out, layout->out_count, outs, "output", why)) {
        return false;
    }
    lilac_layout made;
    made.in_count = made.out_count = made.in_bits = made.out_bits = 0;
    bit_fields fields = {.in_place = out_mask == (uint32_t)low_bits(layout->out_count)};
    uint32_t start = 0;
    for (uint32_t i = 0; i < layout->out_count; i++) {
        uint32_t bits = layout->out[i].bits;
        if (out_mask >> i & 1) {
            add_field(&fields, start, made.out_bits, bits);
            made.out[made.out_count++] = layout->out[i];
            made.out_bits = (uint8_t)(made.out_bits + bits);
        }
        start += bits;
    }
    start = 0;
    for (uint32_t i = 0; i < layout->in_count; i++) {
        uint32_t bits = layout->in[i].bits;
        if (in_mask >> i & 1) {
            made.in[made.in_count++] = layout->in[i];
            for (uint32_t k = 0; k < bits; k++) {
                made.columns[made.in_bits++] = move_fields(&fields, layout->columns[start + k]);
            }
        }
        start += bits;
    }
    lilac_layout_copy(result, &made);
    return true;
}
