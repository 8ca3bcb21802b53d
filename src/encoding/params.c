/* encoding: reading the parameters of an attribute.
 *
 *     attribute ::= <{name = value, …}>        in any order, each once
 *
 * A kind lists its parameters, each with the reader of its value and where the value goes; one loop
 * reads them all. What each value must be is checked where it is read, so that the diagnostic
 * points at it; what relates several of them is checked by the kind at the end.
 */
#include "internal.h"

#include <inttypes.h>
#include <string.h>

typedef lilac_encoding_reader reader;

/* ---- numbers ---------------------------------------------------------------------------- */

/* One number of a list; checks what kind of number it has to be. */
typedef bool (*read_function)(reader *r, uint64_t *value);

bool lilac_encoding_read_natural(reader *r, uint64_t *value, uint64_t max, const char *id) {
    lilac_position position = here(r);
    int64_t number = 0;
    if (!lilac_scanner_integer(r->scanner, &number)) {
        return false;
    }
    if (number < 0 || (uint64_t)number > max) {
        return lilac_scanner_refuse(r->scanner, position, id,
                                    "%" PRId64 " is not between 0 and %" PRIu64, number, max);
    }
    *value = (uint64_t)number;
    return true;
}

static bool size_number(reader *r, uint64_t *value) {
    lilac_position position = here(r);
    int64_t number = 0;
    if (!lilac_scanner_integer(r->scanner, &number)) {
        return false;
    }
    if (number <= 0 || (number & (number - 1)) != 0) {
        return lilac_scanner_refuse(r->scanner, position, "layout-not-power-of-two",
                                    "%" PRId64 " is not a power of two", number);
    }
    if (number > INT32_MAX) {
        return lilac_scanner_refuse(r->scanner, position, "layout-too-large",
                                    "%" PRId64 " is larger than 2^30", number);
    }
    *value = (uint64_t)number;
    return true;
}

static bool index_number(reader *r, uint64_t *value) {
    return lilac_encoding_read_natural(r, value, LILAC_MAX_RANK - 1, "layout-order");
}

static bool coordinate_number(reader *r, uint64_t *value) {
    return lilac_encoding_read_natural(r, value, INT64_MAX, "layout-basis");
}

bool lilac_encoding_read_number(reader *r, lilac_encoding_rank *rank, void *into) {
    (void)rank;
    uint64_t value = 0;
    if (!lilac_encoding_read_natural(r, &value, INT32_MAX, "layout-number")) {
        return false;
    }
    *(uint32_t *)into = (uint32_t)value;
    return true;
}

bool lilac_encoding_read_size(reader *r, lilac_encoding_rank *rank, void *into) {
    (void)rank;
    uint64_t value = 0;
    if (!size_number(r, &value)) {
        return false;
    }
    *(uint32_t *)into = (uint32_t)value;
    return true;
}

bool lilac_encoding_read_flag(reader *r, lilac_encoding_rank *rank, void *into) {
    (void)rank;
    bool yes = lilac_scanner_is_word(r->scanner, "true");
    if (!yes && !lilac_scanner_is_word(r->scanner, "false")) {
        return lilac_scanner_expected(r->scanner, "true or false");
    }
    lilac_scanner_next(r->scanner);
    *(bool *)into = yes;
    return true;
}

/* ---- lists ------------------------------------------------------------------------------ */

/* [1, 2, …] */
static bool read_values(reader *r, uint64_t *values, uint32_t *count, read_function number) {
    *count = 0;
    if (!lilac_scanner_expect(r->scanner, '[')) {
        return false;
    }
    if (lilac_scanner_accept(r->scanner, ']')) {
        return true;
    }
    do {
        if (*count == LILAC_MAX_RANK) {
            return lilac_scanner_refuse(r->scanner, here(r), "layout-rank",
                                        "more than %d dimensions", LILAC_MAX_RANK);
        }
        if (!number(r, &values[*count])) {
            return false;
        }
        (*count)++;
    } while (lilac_scanner_accept(r->scanner, ','));
    return lilac_scanner_expect(r->scanner, ']');
}

/* The rank is that of the first list read; the others must have the same. */
static bool same_rank(reader *r, lilac_position position, lilac_encoding_rank *rank,
                      uint32_t count) {
    if (rank->known && rank->rank != count) {
        return lilac_scanner_refuse(r->scanner, position, "layout-rank",
                                    "this list has %u entries and one before it %u", count,
                                    rank->rank);
    }
    rank->known = true;
    rank->rank = count;
    return true;
}

static bool read_ranked(reader *r, lilac_encoding_rank *rank, uint32_t *into,
                        read_function number) {
    uint64_t values[LILAC_MAX_RANK];
    uint32_t count;
    lilac_position position = here(r);
    if (!read_values(r, values, &count, number) || !same_rank(r, position, rank, count)) {
        return false;
    }
    for (uint32_t d = 0; d < count; d++) {
        into[d] = (uint32_t)values[d];
    }
    return true;
}

bool lilac_encoding_read_sizes(reader *r, lilac_encoding_rank *rank, void *into) {
    return read_ranked(r, rank, into, size_number);
}

bool lilac_encoding_read_order(reader *r, lilac_encoding_rank *rank, void *into) {
    lilac_position position = here(r);
    const uint32_t *order = into;
    if (!read_ranked(r, rank, into, index_number)) {
        return false;
    }
    uint32_t seen = 0;
    for (uint32_t i = 0; i < rank->rank; i++) {
        if (order[i] >= rank->rank || (seen >> order[i] & 1)) {
            return lilac_scanner_refuse(r->scanner, position, "layout-order",
                                        "'order' is not a permutation of 0 to %u", rank->rank - 1);
        }
        seen |= UINT32_C(1) << order[i];
    }
    return true;
}

bool lilac_encoding_read_sizes_of_any_rank(reader *r, lilac_encoding_rank *rank, void *into) {
    (void)rank;
    lilac_encoding_list *list = into;
    lilac_encoding_rank own = {false, 0};
    if (!read_ranked(r, &own, list->at, size_number)) {
        return false;
    }
    list->count = own.rank;
    return true;
}

/* ---- bases ------------------------------------------------------------------------------ */

static bool read_basis(reader *r, uint64_t *basis, lilac_encoding_rank *rank, bool mixed) {
    lilac_position position = here(r);
    uint32_t count, moves = 0;
    if (!read_values(r, basis, &count, coordinate_number) || !same_rank(r, position, rank, count)) {
        return false;
    }
    for (uint32_t d = 0; d < count; d++) {
        moves += basis[d] != 0;
    }
    if (moves > 1 && !mixed) {
        return lilac_scanner_refuse(r->scanner, position, "layout-basis",
                                    "this basis moves along %u dimensions", moves);
    }
    return true;
}

/* Appends to what is in the list; `max` is of the whole list. */
static bool append_bases(reader *r, lilac_encoding_bases *list, uint32_t max,
                         lilac_encoding_rank *rank, bool mixed) {
    if (!lilac_scanner_expect(r->scanner, '[')) {
        return false;
    }
    if (lilac_scanner_accept(r->scanner, ']')) {
        return true;
    }
    do {
        if (list->count == max) {
            return lilac_scanner_refuse(r->scanner, here(r), "layout-too-large",
                                        "more than %u bits", max);
        }
        if (!read_basis(r, list->at[list->count], rank, mixed)) {
            return false;
        }
        list->count++;
    } while (lilac_scanner_accept(r->scanner, ','));
    return lilac_scanner_expect(r->scanner, ']');
}

bool lilac_encoding_read_bases(reader *r, lilac_encoding_rank *rank, void *into) {
    return append_bases(r, into, LILAC_LAYOUT_MAX_BITS, rank, false);
}

bool lilac_encoding_read_mixed_bases(reader *r, lilac_encoding_rank *rank, void *into) {
    return append_bases(r, into, LILAC_LAYOUT_MAX_BITS, rank, true);
}

/* The blocks of each dimension must be numbered by 1, 2, 4 … of the basis vectors. */
bool lilac_encoding_read_blocks(reader *r, lilac_encoding_rank *rank, void *into) {
    lilac_position position = here(r);
    lilac_encoding_blocks *blocks = into;
    lilac_encoding_bases list;
    list.count = 0;
    if (!append_bases(r, &list, LILAC_ENCODING_MAX_BLOCK_BITS, rank, false)) {
        return false;
    }
    for (uint32_t d = 0; list.count != 0 && d < rank->rank; d++) {
        uint64_t reached = 0;
        for (uint32_t k = 0; k < list.count; k++) {
            uint64_t step = list.at[k][d];
            if ((step & (step - 1)) != 0 || (step & reached) != 0 || step >> 31 != 0) {
                return lilac_scanner_refuse(r->scanner, position, "layout-basis",
                                            "%" PRIu64
                                            " along dimension %u is not a power of two or is "
                                            "here twice",
                                            step, d);
            }
            reached |= step;
            blocks->basis[k][d] = (uint32_t)step;
        }
        if ((reached & (reached + 1)) != 0) {
            return lilac_scanner_refuse(r->scanner, position, "layout-not-surjective",
                                        "no block goes to %" PRIu64 " along dimension %u",
                                        (reached + 1) & ~reached, d);
        }
    }
    blocks->bits = list.count;
    return true;
}

static bool read_parent(reader *r, lilac_encoding_place place, const char *id, const char *refusal,
                        void *into) {
    lilac_position position = here(r);
    const lilac_encoding *parent = lilac_encoding_read_any(r);
    if (parent == NULL) {
        return false;
    }
    if (lilac_encoding_place_of(parent) != place) {
        return lilac_scanner_refuse(r->scanner, position, id, "%s", refusal);
    }
    *(const lilac_encoding **)into = parent;
    return true;
}

bool lilac_encoding_read_parent(reader *r, lilac_encoding_rank *rank, void *into) {
    (void)rank;
    return read_parent(r, LILAC_ENCODING_OF_TENSOR, "layout-of-memory",
                       "a layout of memory cannot be the parent of a tensor's", into);
}

bool lilac_encoding_read_memory_parent(reader *r, lilac_encoding_rank *rank, void *into) {
    (void)rank;
    return read_parent(r, LILAC_ENCODING_OF_SHARED_MEMORY, "layout-of-tensor",
                       "this is no layout of shared memory", into);
}

/* ---- the parameters of an attribute ----------------------------------------------------- */

/* Reads "name =" and finds it; NULL when refused. */
static lilac_encoding_param *read_name(reader *r, lilac_encoding_param *params, uint32_t count) {
    lilac_position position = here(r);
    if (r->scanner->kind != LILAC_TOKEN_WORD) {
        (void)lilac_scanner_expected(r->scanner, "the name of a field");
        return NULL;
    }
    const char *word = r->scanner->word;
    uint32_t length = r->scanner->word_length, i = 0;
    while (i < count && !text_is(word, length, params[i].name)) {
        i++;
    }
    if (i == count) {
        bool older = text_is(word, length, "CTAsPerCGA") || text_is(word, length, "CTASplitNum") ||
                     text_is(word, length, "CTAOrder");
        (void)lilac_scanner_refuse(
            r->scanner, position, older ? "layout-older-form" : "layout-field-unknown",
            older ? "'%.*s' is the form of Triton before 3.6; blocks are read from "
                    "CGALayout = [[…]] only"
                  : "this layout has no field '%.*s'",
            (int)length, word);
        return NULL;
    }
    if (params[i].given) {
        (void)lilac_scanner_refuse(r->scanner, position, "layout-field-twice",
                                   "'%.*s' is here twice", (int)length, word);
        return NULL;
    }
    params[i].given = true;
    lilac_scanner_next(r->scanner);
    return lilac_scanner_expect(r->scanner, '=') ? &params[i] : NULL;
}

static bool read_list(reader *r, lilac_encoding_param *params, uint32_t count,
                      lilac_encoding_rank *rank) {
    do {
        lilac_encoding_param *param = read_name(r, params, count);
        if (param == NULL) {
            return false;
        }
        param->position = here(r);
        if (!param->read(r, rank, param->into)) {
            return false;
        }
    } while (lilac_scanner_accept(r->scanner, ','));
    return true;
}

static bool none_missing(reader *r, lilac_position position, const lilac_encoding_param *params,
                         uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (!params[i].given && !params[i].optional) {
            return lilac_scanner_refuse(r->scanner, position, "layout-field-missing",
                                        "this layout lacks '%s'", params[i].name);
        }
    }
    return true;
}

bool lilac_encoding_read_params(reader *r, lilac_position position, lilac_encoding_param *params,
                                uint32_t count, lilac_encoding_rank *rank) {
    return lilac_scanner_expect(r->scanner, '{') && read_list(r, params, count, rank) &&
           lilac_scanner_expect(r->scanner, '}') && none_missing(r, position, params, count);
}

bool lilac_encoding_read_attribute(reader *r, lilac_position position, lilac_encoding_param *params,
                                   uint32_t count, lilac_encoding_rank *rank) {
    return lilac_scanner_expect(r->scanner, '<') &&
           lilac_encoding_read_params(r, position, params, count, rank) &&
           lilac_scanner_expect(r->scanner, '>');
}

/* For attributes without braces: tensor memory's. */
bool lilac_encoding_read_bare_attribute(reader *r, lilac_position position,
                                        lilac_encoding_param *params, uint32_t count,
                                        lilac_encoding_rank *rank) {
    lilac_scanner *s = r->scanner;
    if (!lilac_scanner_expect(s, '<')) {
        return false;
    }
    bool empty = lilac_scanner_accept(s, '>');
    if (!empty && (!read_list(r, params, count, rank) || !lilac_scanner_expect(s, '>'))) {
        return false;
    }
    return none_missing(r, position, params, count);
}
