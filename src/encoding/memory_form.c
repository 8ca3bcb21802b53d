/* encoding: what memory layouts mean: addresses, injectivity, linear and CuTe layouts.
 *
 * Every form is a list of pieces, digits of coordinates with strides, which is what a CuTe layout
 * is once the pieces of a dimension are put in order of their divisors; linear layouts come from
 * there.
 *
 * Injectivity of strides: two elements share an address exactly when some difference δ ≠ 0 of
 * coordinates, |δ_d| < size_d, has Σ δ_d·s_d = 0. The search goes from the largest stride down and
 * keeps only those δ_d that the smaller strides can still make up for, which leaves few.
 */
#include <lilac/memory_form.h>

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* ---- addresses -------------------------------------------------------------------------- */

static uint64_t padded(const lilac_memory_form *form, uint64_t address) {
    uint64_t sum = address;
    for (uint32_t i = 0; i < form->padding_count; i++) {
        sum += address / form->padding[i].interval * form->padding[i].padding;
    }
    return sum;
}

uint64_t lilac_memory_form_address(const lilac_memory_form *form, const uint64_t *coordinates) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < form->piece_count; i++) {
        const lilac_memory_piece *piece = &form->piece[i];
        sum += coordinates[piece->dim] / piece->divisor % piece->size * piece->stride;
    }
    return padded(form, sum);
}

uint64_t lilac_memory_form_extent(const lilac_memory_form *form) {
    uint64_t largest = 0;
    for (uint32_t i = 0; i < form->piece_count; i++) {
        largest += (form->piece[i].size - 1) * form->piece[i].stride;
    }
    return padded(form, largest) + 1;
}

/* ---- injectivity ------------------------------------------------------------------------ */

enum { MAX_TRIES = 1 << 20 };

typedef struct difference_search {
    uint32_t count; /* dimensions of more than one element, largest stride first */
    struct {
        uint32_t dim;
        int64_t most; /* |δ| */
        int64_t stride;
        int64_t below; /* what this and the later ones can make up: Σ most·stride */
    } at[LILAC_LAYOUT_MAX_DIMS + 1];
    int64_t delta[LILAC_LAYOUT_MAX_DIMS]; /* by dimension */
    uint32_t tries;
} difference_search;

static void sort_strides(difference_search *search, const lilac_memory_form *form) {
    for (uint32_t i = 0; i < form->piece_count; i++) {
        const lilac_memory_piece *piece = &form->piece[i];
        if (piece->size == 1) {
            continue;
        }
        uint32_t place = search->count++;
        for (; place > 0 && (uint64_t)search->at[place - 1].stride < piece->stride; place--) {
            search->at[place] = search->at[place - 1];
        }
        search->at[place].dim = piece->dim;
        search->at[place].most = (int64_t)(piece->size - 1);
        search->at[place].stride = (int64_t)piece->stride;
    }
    search->at[search->count].below = 0;
    for (uint32_t i = search->count; i-- > 0;) {
        search->at[i].below = search->at[i].most * search->at[i].stride + search->at[i + 1].below;
    }
}

static int64_t floor_divide(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

/* Is there a way to make `rest` 0 with the dimensions from `level` on, not all of them 0 unless
 * `moved` already? */
static bool find_difference(difference_search *search, uint32_t level, int64_t rest, bool moved) {
    if (level == search->count) {
        return moved && rest == 0;
    }
    const int64_t stride = search->at[level].stride, most = search->at[level].most;
    const int64_t below = search->at[level + 1].below;
    int64_t low = -most, high = most;
    if (stride == 0) {
        /* The smallest of them all: it can change nothing any more, except that there is a
         * difference. */
        if (rest != 0) {
            return false;
        }
        low = high = moved ? 0 : 1;
    } else {
        const int64_t least = -floor_divide(below + rest, stride);
        const int64_t largest = floor_divide(below - rest, stride);
        low = low > least ? low : least;
        high = high < largest ? high : largest;
    }
    if (!moved && low < 0) {
        low = 0; /* a difference and its negative say the same */
    }
    for (int64_t delta = high; delta >= low; delta--) {
        if (search->tries == MAX_TRIES) {
            return false;
        }
        search->tries++;
        search->delta[search->at[level].dim] = delta;
        if (find_difference(search, level + 1, rest + delta * stride, moved || delta != 0)) {
            return true;
        }
    }
    search->delta[search->at[level].dim] = 0;
    return false;
}

static void put_element(lilac_text *out, const int64_t *delta, uint32_t rank, int64_t sign) {
    for (uint32_t d = 0; d < rank; d++) {
        lilac_text_puts(out, d == 0 ? "[" : ", ");
        lilac_text_signed(out, delta[d] * sign > 0 ? delta[d] * sign : 0);
    }
    lilac_text_char(out, ']');
}

bool lilac_memory_form_is_injective(const lilac_memory_form *form, lilac_reason *why) {
    if (form->kind != LILAC_MEMORY_STRIDED) {
        return true;
    }
    difference_search search = {0};
    sort_strides(&search, form);
    if (!find_difference(&search, 0, 0, false)) {
        if (search.tries < MAX_TRIES) {
            return true;
        }
        return lilac_layout_refuse(
            why, "not known to be injective: %d differences were tried in vain", MAX_TRIES);
    }
    uint64_t place[LILAC_LAYOUT_MAX_DIMS];
    lilac_text text = {0};
    for (uint32_t d = 0; d < form->rank; d++) {
        place[d] = (uint64_t)(search.delta[d] > 0 ? search.delta[d] : 0);
    }
    put_element(&text, search.delta, form->rank, 1);
    lilac_text_puts(&text, " and ");
    put_element(&text, search.delta, form->rank, -1);
    lilac_text_printf(&text, " are both at offset %" PRIu64,
                      lilac_memory_form_address(form, place));
    lilac_layout_refuse(why, "not injective: %s", lilac_text_get(&text));
    lilac_text_clear(&text);
    return false;
}

/* ---- layouts ---------------------------------------------------------------------------- */

static bool too_many(lilac_reason *why) {
    return lilac_layout_refuse(why, "more than %d pieces", LILAC_CUTE_MAX_LEAVES);
}

/* Pieces of each dimension, lowest divisor first. */
static bool cute_before_padding(lilac_cute *result, const lilac_memory_form *form,
                                lilac_reason *why) {
    if (form->rank == 0) {
        return lilac_layout_refuse(why, "a layout of no dimensions has no shape to write");
    }
    *result = (lilac_cute){.rank = form->rank};
    for (uint32_t d = 0; d < form->rank; d++) {
        const uint32_t start = result->leaf_count;
        uint64_t divisor[LILAC_CUTE_MAX_LEAVES];
        for (uint32_t i = 0; i < form->piece_count; i++) {
            const lilac_memory_piece *piece = &form->piece[i];
            if (piece->dim != d) {
                continue;
            }
            if (result->leaf_count == LILAC_CUTE_MAX_LEAVES) {
                return too_many(why);
            }
            uint32_t place = result->leaf_count++;
            /* A piece of one element stands anywhere; before its equals, the order stays one of
             * digits. */
            for (; place > start && divisor[place - 1] > piece->divisor; place--) {
                result->leaf[place] = result->leaf[place - 1];
                divisor[place] = divisor[place - 1];
            }
            divisor[place] = piece->divisor;
            result->leaf[place] = (lilac_cute_leaf){piece->size, piece->stride, d};
        }
    }
    return true;
}

bool lilac_memory_form_cute(lilac_cute *result, const lilac_memory_form *form, lilac_reason *why) {
    uint64_t interval[LILAC_MEMORY_FORM_MAX_PADDINGS], padding[LILAC_MEMORY_FORM_MAX_PADDINGS];
    for (uint32_t i = 0; i < form->padding_count; i++) {
        interval[i] = form->padding[i].interval;
        padding[i] = form->padding[i].padding;
    }
    lilac_cute made;
    if (!cute_before_padding(&made, form, why) ||
        !lilac_cute_pad(&made, form->padding_count, interval, padding, why)) {
        return false;
    }
    *result = made;
    return true;
}

/* Said of dimensions here, before it is said of modes. */
static bool check_shape(const lilac_memory_form *form, lilac_reason *why) {
    for (uint32_t d = 0; d < form->rank; d++) {
        if ((form->shape[d] & (form->shape[d] - 1)) != 0) {
            return lilac_layout_refuse(
                why, "dimension %u has %" PRIu64 " elements, which is not a power of two", d,
                form->shape[d]);
        }
    }
    return true;
}

bool lilac_memory_form_map(lilac_layout *result, const lilac_memory_form *form, lilac_reason *why) {
    lilac_cute cute;
    return check_shape(form, why) && cute_before_padding(&cute, form, why) &&
           lilac_cute_map(result, &cute, why);
}

bool lilac_memory_form_layout(lilac_layout *result, const lilac_memory_form *form,
                              lilac_reason *why) {
    lilac_cute cute;
    lilac_layout map;
    const bool linear = lilac_memory_form_map(&map, form, why);
    /* That two elements share a place is worse than that the map is not linear. */
    lilac_reason shared;
    if (!lilac_memory_form_is_injective(form, &shared)) {
        if (why != NULL) {
            *why = shared;
        }
        return false;
    }
    return linear && cute_before_padding(&cute, form, why) && lilac_cute_memory(result, &cute, why);
}
