/* encoding: memdesc types.
 *
 *     memdesc ::= !ttg.memdesc<16x16xf16, [encoding,] #space [, mutable] [, 32x16]>
 *
 * Only tile IR may leave out the encoding: assign_layouts chooses a layout for such memory.
 *
 * The shape at the end is that of the allocation of which this is a part; it may have dimensions
 * more in front. The layout is the allocation's, restricted to the part: bits that lead out of it
 * move nothing, and those at an input's end are dropped.
 */
#include "internal.h"

#include <inttypes.h>
#include <string.h>

static bool word_is(const lilac_scanner *s, const char *string) {
    return text_is(s->word, s->word_length, string);
}

/* Is the next token the name of a memory space? */
static bool is_space(const lilac_scanner *s) {
    return s->kind == LILAC_TOKEN_HASH && (word_is(s, "ttg.shared_memory") || word_is(s, "smem") ||
                                           word_is(s, "ttng.tensor_memory") || word_is(s, "tmem"));
}

/* #ttg.shared_memory, #ttng.tensor_memory, or the aliases that Triton gives them. The encoding is
 * NULL for memory without a layout, which is shared memory. */
static bool read_space(lilac_encoding_reader *r, const lilac_encoding *encoding) {
    lilac_scanner *s = r->scanner;
    if (s->kind != LILAC_TOKEN_HASH) {
        return lilac_scanner_expected(s, "a memory space");
    }
    bool shared = word_is(s, "ttg.shared_memory") || word_is(s, "smem");
    bool tensor = word_is(s, "ttng.tensor_memory") || word_is(s, "tmem");
    lilac_position position = lilac_scanner_position(s);
    if (!shared && !tensor) {
        return lilac_scanner_refuse(r->scanner, position, "memory-space-unknown",
                                    "there is no memory space '#%.*s'",
                                    (int)(s->word_length < 64 ? s->word_length : 64), s->word);
    }
    if (encoding == NULL && tensor) {
        return lilac_scanner_refuse(r->scanner, position, "memory-space",
                                    "tensor memory needs a layout; only shared memory may have "
                                    "none");
    }
    if (encoding != NULL &&
        tensor != (lilac_encoding_place_of(encoding) == LILAC_ENCODING_OF_TENSOR_MEMORY)) {
        return lilac_scanner_refuse(r->scanner, position, "memory-space",
                                    "this layout is not of the memory space '#%.*s'",
                                    (int)s->word_length, s->word);
    }
    lilac_scanner_next(s);
    return true;
}

static bool add_dimension(lilac_encoding_reader *r, lilac_position position,
                          lilac_encoding_memdesc *result, uint64_t size) {
    if (result->alloc_rank == LILAC_MAX_RANK) {
        return lilac_scanner_refuse(r->scanner, position, "layout-rank", "more than %d dimensions",
                                    LILAC_MAX_RANK);
    }
    result->alloc_shape[result->alloc_rank++] = (int64_t)size;
    return true;
}

/* "32x16": to the scanner an integer and then words like x16 or x16x8. */
static bool read_alloc_shape(lilac_encoding_reader *r, lilac_encoding_memdesc *result) {
    lilac_scanner *s = r->scanner;
    lilac_position position = lilac_scanner_position(s);
    int64_t size;
    result->alloc_rank = 0;
    if (!lilac_scanner_integer(s, &size) || !add_dimension(r, position, result, (uint64_t)size)) {
        return false;
    }
    while (s->kind == LILAC_TOKEN_WORD && s->offset == s->previous_end) {
        const char *word = s->word, *end = word + s->word_length;
        while (word < end) {
            uint64_t value = 0;
            if (*word++ != 'x' || word == end || *word < '0' || *word > '9') {
                return lilac_scanner_expected(s, "x and a size");
            }
            for (; word < end && *word >= '0' && *word <= '9'; word++) {
                if (value > INT64_MAX / 16) {
                    return lilac_scanner_refuse(r->scanner, lilac_scanner_position(s),
                                                "integer-too-large",
                                                "this size does not fit 64 bits");
                }
                value = 10 * value + (uint64_t)(*word - '0');
            }
            if (!add_dimension(r, position, result, value)) {
                return false;
            }
        }
        lilac_scanner_next(s);
    }
    if (result->alloc_rank < result->rank) {
        return lilac_scanner_refuse(r->scanner, position, "alloc-shape",
                                    "the allocation has %u dimensions, its part %u",
                                    result->alloc_rank, result->rank);
    }
    const int64_t *last = result->alloc_shape + result->alloc_rank - result->rank;
    for (uint32_t d = 0; d < result->rank; d++) {
        if (last[d] < result->shape[d]) {
            return lilac_scanner_refuse(r->scanner, position, "alloc-shape",
                                        "the allocation has %" PRId64
                                        " elements along dimension %u, its part %" PRId64,
                                        last[d], d, result->shape[d]);
        }
    }
    return true;
}

/* The allocation's layout as the part sees it. */
static bool restrict_to(lilac_layout *result, const lilac_layout *whole,
                        const lilac_encoding_shape *shape) {
    lilac_layout made;
    bool added = lilac_encoding_outs(&made, shape, NULL);
    for (uint32_t i = 0; added && i < whole->in_count; i++) {
        uint64_t columns[LILAC_LAYOUT_MAX_BITS];
        uint32_t start = lilac_layout_in_start(whole, i), count = 0;
        for (uint32_t k = 0; k < whole->in[i].bits; k++) {
            uint64_t place[LILAC_MAX_RANK];
            for (uint32_t d = 0; d < shape->rank; d++) {
                place[d] = lilac_layout_coordinate(whole, whole->columns[start + k], d);
                if (shape->bits[d] < 64) {
                    place[d] &= (UINT64_C(1) << shape->bits[d]) - 1;
                }
            }
            columns[k] = lilac_layout_pack(&made, place);
            if (columns[k] != 0 || whole->columns[start + k] == 0) {
                count = k + 1;
            }
        }
        added = lilac_layout_add_in(&made, whole->in[i].name, count, columns, NULL);
    }
    if (added) {
        *result = made;
    }
    return added;
}

bool lilac_encoding_memory_layout(lilac_context *context, lilac_layout *result,
                                  const lilac_encoding *encoding, uint32_t rank,
                                  const int64_t *shape, uint32_t alloc_rank,
                                  const int64_t *alloc_shape) {
    lilac_encoding_shape part = {rank, {0}, 0};
    lilac_layout whole;
    const int64_t *last = alloc_rank < rank ? shape : alloc_shape + (alloc_rank - rank);
    if (!lilac_encoding_check_shape(context, encoding->position, rank, shape, part.bits) ||
        !lilac_encoding_layout(context, &whole, encoding, rank, last)) {
        return false;
    }
    bool same = true;
    for (uint32_t d = 0; d < rank; d++) {
        same = same && last[d] == shape[d];
    }
    if (same) {
        *result = whole;
    }
    return same || restrict_to(result, &whole, &part);
}

/* The dimension in front of the encoding's, if there is one: the number of buffers. Without an
 * encoding the first of several dimensions may be that number. */
static bool check_buffers(lilac_encoding_reader *r, lilac_position at,
                          const lilac_encoding_memdesc *memory, bool buffers, uint32_t *first) {
    uint32_t bits[LILAC_MAX_RANK];
    *first = buffers && (memory->encoding == NULL ? memory->rank > 1
                                                  : memory->rank == memory->encoding->rank + 1);
    return lilac_encoding_check_shape(r->scanner->context, at, memory->rank - *first,
                                      memory->shape + *first, bits);
}

bool lilac_encoding_read_memory(lilac_scanner *scanner, const lilac_encoding_aliases *aliases,
                                bool buffers, lilac_encoding_memdesc *result) {
    lilac_encoding_reader r = {scanner, aliases, 0};
    lilac_encoding_memdesc made;
    uint32_t first;
    memset(&made, 0, sizeof made);
    if (!lilac_scanner_expect(scanner, '<')) {
        return false;
    }
    lilac_position shape_at = lilac_scanner_position(scanner);
    if (!lilac_scanner_shape(scanner, made.shape, LILAC_MAX_RANK, &made.rank) ||
        !lilac_encoding_read_scalar(&r, &made.scalar) || !lilac_scanner_expect(scanner, ',')) {
        return false;
    }
    made.alloc_rank = made.rank;
    memcpy(made.alloc_shape, made.shape, sizeof made.shape);
    lilac_position layout_at = lilac_scanner_position(scanner);
    if (!buffers || !is_space(scanner)) {
        made.encoding = lilac_encoding_read_any(&r);
        if (made.encoding == NULL) {
            return false;
        }
    }
    if (!check_buffers(&r, shape_at, &made, buffers, &first)) {
        return false;
    }
    if (made.encoding != NULL &&
        lilac_encoding_place_of(made.encoding) == LILAC_ENCODING_OF_TENSOR) {
        return lilac_scanner_refuse(r.scanner, layout_at, "layout-of-tensor",
                                    "this is a layout of a tensor, not of memory");
    }
    if ((made.encoding != NULL && !lilac_scanner_expect(scanner, ',')) ||
        !read_space(&r, made.encoding)) {
        return false;
    }
    bool more = lilac_scanner_accept(scanner, ',');
    if (more && lilac_scanner_accept_word(scanner, "mutable")) {
        made.is_mutable = true;
        more = lilac_scanner_accept(scanner, ',');
    }
    if ((more && !read_alloc_shape(&r, &made)) || !lilac_scanner_expect(scanner, '>')) {
        return false;
    }
    if (made.encoding != NULL &&
        !lilac_encoding_memory_layout(scanner->context, &made.layout, made.encoding,
                                      made.rank - first, made.shape + first, made.alloc_rank,
                                      made.alloc_shape)) {
        lilac_note(scanner->context, shape_at, 0, "for memory of this shape");
        return false;
    }
    *result = made;
    return true;
}

bool lilac_encoding_read_memdesc(lilac_scanner *scanner, const lilac_encoding_aliases *aliases,
                                 lilac_encoding_memdesc *result) {
    if (scanner->kind != LILAC_TOKEN_BANG || !word_is(scanner, "ttg.memdesc")) {
        return lilac_scanner_expected(scanner, "!ttg.memdesc");
    }
    lilac_scanner_next(scanner);
    return lilac_encoding_read_memory(scanner, aliases, false, result);
}
