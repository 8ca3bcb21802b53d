/* encoding: reading attributes and tensor types.
 *
 *     encoding ::= #alias | #ttg.blocked<{fields}> | #ttg.slice<{fields}> | #ttg.linear<{fields}>
 *     fields   ::= name = value, …              in any order, each once
 *     tensor   ::= tensor<16x32xf32, encoding> | tensor<16x!tt.ptr<f32>, encoding>
 *
 * One recursive reader over the shared scanner. A struct's fields are read by one loop that knows
 * the names a kind may have; what each value must be is checked where it is read, so that the
 * diagnostic points at it, and what relates several fields is checked at the end.
 */
#include "internal.h"

#include <inttypes.h>
#include <string.h>

/* Slices of slices … each lose a dimension, so deeper nesting cannot be right. */
enum { MAX_DEPTH = LILAC_MAX_RANK };

typedef struct reader {
    lilac_scanner *scanner;
    const lilac_encoding_aliases *aliases;
    uint32_t depth;
} reader;

static const lilac_encoding *read_encoding(reader *r);

static bool refuse_at(reader *r, lilac_position position, const char *id, const char *format, ...)
    LILAC_PRINTF(4, 5);

static bool refuse_at(reader *r, lilac_position position, const char *id, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    lilac_verror(r->scanner->context, position, 0, id, format, arguments);
    va_end(arguments);
    return false;
}

static lilac_position here(const reader *r) {
    return lilac_scanner_position(r->scanner);
}

static bool text_is(const char *bytes, size_t length, const char *string) {
    return strlen(string) == length && memcmp(bytes, string, length) == 0;
}

static uint32_t bit_length(uint64_t value) {
    return value == 0 ? 0 : 64U - (uint32_t)__builtin_clzll(value);
}

/* ---- values ----------------------------------------------------------------------------- */

/* One number of a list; checks what kind of number it has to be. */
typedef bool (*read_number)(reader *r, uint64_t *value);

static bool read_natural(reader *r, uint64_t *value, uint64_t max, const char *id) {
    lilac_position position = here(r);
    int64_t number;
    if (!lilac_scanner_integer(r->scanner, &number))
        return false;
    if (number < 0 || (uint64_t)number > max)
        return refuse_at(r, position, id, "%" PRId64 " is not between 0 and %" PRIu64, number, max);
    *value = (uint64_t)number;
    return true;
}

static bool read_size(reader *r, uint64_t *value) {
    lilac_position position = here(r);
    int64_t number;
    if (!lilac_scanner_integer(r->scanner, &number))
        return false;
    if (number <= 0 || (number & (number - 1)) != 0)
        return refuse_at(r, position, "layout-not-power-of-two",
                         "%" PRId64 " is not a power of two", number);
    if (number > INT32_MAX)
        return refuse_at(r, position, "layout-too-large", "%" PRId64 " is larger than 2^30",
                         number);
    *value = (uint64_t)number;
    return true;
}

static bool read_index(reader *r, uint64_t *value) {
    return read_natural(r, value, LILAC_MAX_RANK - 1, "layout-order");
}

static bool read_coordinate(reader *r, uint64_t *value) {
    return read_natural(r, value, INT64_MAX, "layout-basis");
}

/* [1, 2, …] */
static bool read_list(reader *r, uint64_t *values, uint32_t *count, read_number number) {
    *count = 0;
    if (!lilac_scanner_expect(r->scanner, '['))
        return false;
    if (lilac_scanner_accept(r->scanner, ']'))
        return true;
    do {
        if (*count == LILAC_MAX_RANK)
            return refuse_at(r, here(r), "layout-rank", "more than %d dimensions", LILAC_MAX_RANK);
        if (!number(r, &values[*count]))
            return false;
        (*count)++;
    } while (lilac_scanner_accept(r->scanner, ','));
    return lilac_scanner_expect(r->scanner, ']');
}

/* The rank is that of the first list read; the others must have the same. */
static bool same_rank(reader *r, lilac_position position, uint32_t *rank, bool *known,
                      uint32_t count) {
    if (*known && *rank != count)
        return refuse_at(r, position, "layout-rank",
                         "this list has %u entries and one before it %u", count, *rank);
    *known = true;
    *rank = count;
    return true;
}

/* [[0, 1], [0, 2], …]: coordinates of columns. */
typedef struct bases {
    uint32_t count;
    uint64_t at[LILAC_LAYOUT_MAX_BITS][LILAC_MAX_RANK];
} bases;

/* In a distributed layout every bit moves along one dimension at most. */
static bool read_basis(reader *r, uint64_t *basis, uint32_t *rank, bool *known) {
    lilac_position position = here(r);
    uint32_t count, moves = 0;
    if (!read_list(r, basis, &count, read_coordinate) ||
        !same_rank(r, position, rank, known, count))
        return false;
    for (uint32_t d = 0; d < count; d++)
        moves += basis[d] != 0;
    if (moves > 1)
        return refuse_at(r, position, "layout-basis", "this basis moves along %u dimensions",
                         moves);
    return true;
}

/* Appends to what is in the list; `max` is of the whole list. */
static bool read_bases(reader *r, bases *list, uint32_t max, uint32_t *rank, bool *known) {
    if (!lilac_scanner_expect(r->scanner, '['))
        return false;
    if (lilac_scanner_accept(r->scanner, ']'))
        return true;
    do {
        if (list->count == max)
            return refuse_at(r, here(r), "layout-too-large", "more than %u bits", max);
        if (!read_basis(r, list->at[list->count], rank, known))
            return false;
        list->count++;
    } while (lilac_scanner_accept(r->scanner, ','));
    return lilac_scanner_expect(r->scanner, ']');
}

/* ---- fields ----------------------------------------------------------------------------- */

/* Reads "name =" and finds it among `count` names, none of which may come twice; -1 when refused.
 */
static int read_field_name(reader *r, const char *const *names, uint32_t count, uint32_t *seen) {
    lilac_position position = here(r);
    if (r->scanner->kind != LILAC_TOKEN_WORD) {
        (void)lilac_scanner_expected(r->scanner, "the name of a field");
        return -1;
    }
    const char *word = r->scanner->word;
    uint32_t length = r->scanner->word_length, field = 0;
    while (field < count && !text_is(word, length, names[field]))
        field++;
    if (field == count) {
        bool older = text_is(word, length, "CTAsPerCGA") || text_is(word, length, "CTASplitNum") ||
                     text_is(word, length, "CTAOrder");
        (void)refuse_at(r, position, older ? "layout-older-form" : "layout-field-unknown",
                        older ? "'%.*s' is the form of Triton before 3.6; blocks are read from "
                                "CGALayout = [[…]] only"
                              : "this layout has no field '%.*s'",
                        (int)length, word);
        return -1;
    }
    if (*seen >> field & 1) {
        (void)refuse_at(r, position, "layout-field-twice", "'%.*s' is here twice", (int)length,
                        word);
        return -1;
    }
    *seen |= UINT32_C(1) << field;
    lilac_scanner_next(r->scanner);
    return lilac_scanner_expect(r->scanner, '=') ? (int)field : -1;
}

static bool has_fields(reader *r, lilac_position position, const char *const *names, uint32_t count,
                       uint32_t seen) {
    for (uint32_t i = 0; i < count; i++) {
        if (!(seen >> i & 1))
            return refuse_at(r, position, "layout-field-missing", "this layout lacks '%s'",
                             names[i]);
    }
    return true;
}

static bool open_fields(reader *r) {
    return lilac_scanner_expect(r->scanner, '<') && lilac_scanner_expect(r->scanner, '{');
}

static bool close_fields(reader *r) {
    return lilac_scanner_expect(r->scanner, '}') && lilac_scanner_expect(r->scanner, '>');
}

/* ---- blocked ---------------------------------------------------------------------------- */

/* A permutation of 0 … count-1. */
static bool check_order(reader *r, lilac_position position, const uint64_t *order, uint32_t count) {
    uint32_t seen = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (order[i] >= count || (seen >> order[i] & 1))
            return refuse_at(r, position, "layout-order", "'order' is not a permutation of 0 to %u",
                             count - 1);
        seen |= UINT32_C(1) << order[i];
    }
    return true;
}

/* The blocks of each dimension must be numbered by 1, 2, 4 … of the basis vectors. */
static bool set_blocks(reader *r, lilac_position position, lilac_encoding *encoding,
                       const bases *blocks) {
    for (uint32_t d = 0; d < encoding->rank; d++) {
        uint64_t reached = 0;
        for (uint32_t k = 0; k < blocks->count; k++) {
            uint64_t step = blocks->at[k][d];
            if ((step & (step - 1)) != 0 || (step & reached) != 0 || step >> 31 != 0)
                return refuse_at(r, position, "layout-basis",
                                 "%" PRIu64 " along dimension %u is not a power of two or is "
                                 "here twice",
                                 step, d);
            reached |= step;
            encoding->as.blocked.block[k][d] = (uint32_t)step;
        }
        if ((reached & (reached + 1)) != 0)
            return refuse_at(r, position, "layout-not-surjective",
                             "no block goes to %" PRIu64 " along dimension %u",
                             (reached + 1) & ~reached, d);
    }
    encoding->as.blocked.block_bits = blocks->count;
    return true;
}

static bool read_blocked(reader *r, lilac_encoding *encoding) {
    static const char *const names[] = {"sizePerThread", "threadsPerWarp", "warpsPerCTA", "order",
                                        "CGALayout"};
    uint32_t *const lists[] = {encoding->as.blocked.size_per_thread,
                               encoding->as.blocked.threads_per_warp,
                               encoding->as.blocked.warps_per_cta, encoding->as.blocked.order};
    uint32_t seen = 0;
    bool known = false;
    bases blocks;
    lilac_position blocks_at = encoding->position;
    blocks.count = 0;
    if (!open_fields(r))
        return false;
    do {
        int field = read_field_name(r, names, 5, &seen);
        lilac_position position = here(r);
        if (field < 0)
            return false;
        if (field == 4) {
            blocks_at = position;
            if (!read_bases(r, &blocks, 8, &encoding->rank, &known))
                return false;
            continue;
        }
        uint64_t values[LILAC_MAX_RANK];
        uint32_t count;
        if (!read_list(r, values, &count, field == 3 ? read_index : read_size) ||
            !same_rank(r, position, &encoding->rank, &known, count) ||
            (field == 3 && !check_order(r, position, values, count)))
            return false;
        for (uint32_t d = 0; d < count; d++)
            lists[field][d] = (uint32_t)values[d];
    } while (lilac_scanner_accept(r->scanner, ','));
    return close_fields(r) && has_fields(r, encoding->position, names, 4, seen) &&
           set_blocks(r, blocks_at, encoding, &blocks);
}

/* ---- slice ------------------------------------------------------------------------------ */

static bool read_slice(reader *r, lilac_encoding *encoding) {
    static const char *const names[] = {"dim", "parent"};
    uint32_t seen = 0;
    uint64_t dim = 0;
    lilac_position dim_at = encoding->position;
    if (!open_fields(r))
        return false;
    do {
        int field = read_field_name(r, names, 2, &seen);
        if (field < 0)
            return false;
        if (field == 0) {
            dim_at = here(r);
            if (!read_natural(r, &dim, LILAC_MAX_RANK - 1, "layout-slice-dim"))
                return false;
        } else {
            encoding->as.slice.parent = read_encoding(r);
            if (encoding->as.slice.parent == NULL)
                return false;
        }
    } while (lilac_scanner_accept(r->scanner, ','));
    if (!close_fields(r) || !has_fields(r, encoding->position, names, 2, seen))
        return false;
    uint32_t rank = encoding->as.slice.parent->rank;
    if (dim >= rank)
        return refuse_at(r, dim_at, "layout-slice-dim",
                         "there is no dimension %" PRIu64 " in a layout of rank %u", dim, rank);
    encoding->as.slice.dim = (uint32_t)dim;
    encoding->rank = rank - 1;
    return true;
}

/* ---- linear ----------------------------------------------------------------------------- */

/* The bases of an input among all that the attribute has. */
typedef struct field_range {
    uint32_t start, count;
} field_range;

static bool build_linear(lilac_encoding *encoding, const bases *list, const field_range *inputs,
                         const char *const *names, lilac_reason *why) {
    static const char *const out_names[LILAC_MAX_RANK] = {
        "dim0",  "dim1",  "dim2",  "dim3",  "dim4",  "dim5",  "dim6",  "dim7",
        "dim8",  "dim9",  "dim10", "dim11", "dim12", "dim13", "dim14", "dim15",
        "dim16", "dim17", "dim18", "dim19", "dim20", "dim21", "dim22", "dim23"};
    lilac_layout *layout = &encoding->as.linear;
    lilac_layout_init(layout);
    for (uint32_t d = 0; d < encoding->rank; d++) {
        uint64_t reached = 0;
        for (uint32_t k = 0; k < list->count; k++)
            reached |= list->at[k][d];
        if (!lilac_layout_add_out(layout, out_names[d], bit_length(reached), why))
            return false;
    }
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t columns[LILAC_LAYOUT_MAX_BITS];
        for (uint32_t k = 0; k < inputs[i].count; k++)
            columns[k] = lilac_layout_pack(layout, list->at[inputs[i].start + k]);
        if (!lilac_layout_add_in(layout, names[i], inputs[i].count, columns, why))
            return false;
    }
    return true;
}

static bool read_linear(reader *r, lilac_encoding *encoding) {
    static const char *const names[] = {"register", "lane", "warp", "block"};
    bases list;
    field_range inputs[4];
    uint32_t seen = 0;
    bool known = false;
    list.count = 0;
    if (!open_fields(r))
        return false;
    do {
        int field = read_field_name(r, names, 4, &seen);
        if (field < 0)
            return false;
        inputs[field].start = list.count;
        if (!read_bases(r, &list, LILAC_LAYOUT_MAX_BITS, &encoding->rank, &known))
            return false;
        inputs[field].count = list.count - inputs[field].start;
    } while (lilac_scanner_accept(r->scanner, ','));
    if (!close_fields(r) || !has_fields(r, encoding->position, names, 4, seen))
        return false;
    if (!known)
        return refuse_at(r, encoding->position, "layout-rank",
                         "a layout with no basis does not say its rank");
    lilac_reason why;
    if (!build_linear(encoding, &list, inputs, names, &why))
        return refuse_at(r, encoding->position, "layout-too-large", "%s", why.text);
    lilac_layout inverse;
    if (!lilac_layout_pseudoinvert(&inverse, &encoding->as.linear, &why))
        return refuse_at(r, encoding->position, "layout-not-surjective", "%s", why.text);
    return true;
}

/* ---- any -------------------------------------------------------------------------------- */

static bool is_known_elsewhere(const char *name, size_t length) {
    static const char *const names[] = {"ttg.dot_op",
                                        "ttg.nvidia_mma",
                                        "ttg.amd_mfma",
                                        "ttg.amd_wmma",
                                        "ttg.swizzled_shared",
                                        "ttg.nvmma_shared",
                                        "ttg.amd_rotating_shared",
                                        "ttg.padded_shared",
                                        "ttg.shared_linear",
                                        "ttg.partitioned_shared",
                                        "ttng.tensor_memory_encoding",
                                        "ttng.tensor_memory_scales_encoding",
                                        "ttig.dpas",
                                        "ttig.warp_encoding"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (text_is(name, length, names[i]))
            return true;
    }
    return false;
}

static const lilac_encoding *read_alias(reader *r) {
    const lilac_scanner *s = r->scanner;
    const lilac_encoding *encoding =
        r->aliases == NULL ? NULL : lilac_encoding_lookup(r->aliases, s->word, s->word_length);
    if (encoding == NULL) {
        (void)refuse_at(r, here(r), "layout-alias-undefined", "'#%.*s' is not defined",
                        (int)(s->word_length < 64 ? s->word_length : 64), s->word);
        return NULL;
    }
    lilac_scanner_next(r->scanner);
    return encoding;
}

static const lilac_encoding *read_named(reader *r) {
    lilac_scanner *s = r->scanner;
    lilac_encoding *encoding = lilac_arena_new(lilac_context_arena(s->context), lilac_encoding);
    bool (*read_fields)(reader *, lilac_encoding *) = NULL;
    encoding->position = here(r);
    if (text_is(s->word, s->word_length, "ttg.blocked")) {
        encoding->kind = LILAC_ENCODING_BLOCKED;
        read_fields = read_blocked;
    } else if (text_is(s->word, s->word_length, "ttg.slice")) {
        encoding->kind = LILAC_ENCODING_SLICE;
        read_fields = read_slice;
    } else if (text_is(s->word, s->word_length, "ttg.linear")) {
        encoding->kind = LILAC_ENCODING_LINEAR;
        read_fields = read_linear;
    } else {
        bool known = is_known_elsewhere(s->word, s->word_length);
        (void)refuse_at(r, here(r), known ? "layout-not-supported" : "layout-unknown",
                        known ? "layouts of kind '#%.*s' are not supported"
                              : "there is no kind of layout '#%.*s'",
                        (int)(s->word_length < 64 ? s->word_length : 64), s->word);
        return NULL;
    }
    lilac_scanner_next(s);
    return read_fields(r, encoding) ? encoding : NULL;
}

static const lilac_encoding *read_encoding(reader *r) {
    const lilac_scanner *s = r->scanner;
    if (s->kind != LILAC_TOKEN_HASH) {
        (void)lilac_scanner_expected(r->scanner, "a layout");
        return NULL;
    }
    if (memchr(s->word, '.', s->word_length) == NULL)
        return read_alias(r);
    if (r->depth == MAX_DEPTH) {
        (void)refuse_at(r, here(r), "layout-too-deep", "slices are nested more than %d deep",
                        MAX_DEPTH);
        return NULL;
    }
    r->depth++;
    const lilac_encoding *encoding = read_named(r);
    r->depth--;
    return encoding;
}

const lilac_encoding *lilac_encoding_read(lilac_scanner *scanner,
                                          const lilac_encoding_aliases *aliases) {
    reader r = {scanner, aliases, 0};
    return read_encoding(&r);
}

/* ---- tensor types ----------------------------------------------------------------------- */

static bool read_scalar(reader *r, lilac_scalar *scalar) {
    const lilac_scanner *s = r->scanner;
    if (s->kind != LILAC_TOKEN_WORD)
        return lilac_scanner_expected(r->scanner, "an element type");
    if (!lilac_scalar_read(s->word, s->word_length, scalar))
        return refuse_at(r, here(r), "element-type-unknown", "there is no element type '%.*s'",
                         (int)(s->word_length < 64 ? s->word_length : 64), s->word);
    lilac_scanner_next(r->scanner);
    return true;
}

/* f32, !tt.ptr<f32>, !tt.ptr<f32, 1> */
static bool read_element(reader *r, lilac_encoding_tensor *result) {
    lilac_scanner *s = r->scanner;
    result->pointers = s->kind == LILAC_TOKEN_BANG && text_is(s->word, s->word_length, "tt.ptr");
    if (!result->pointers)
        return read_scalar(r, &result->scalar);
    lilac_scanner_next(s);
    uint64_t space;
    if (!lilac_scanner_expect(s, '<') || !read_scalar(r, &result->scalar))
        return false;
    if (lilac_scanner_accept(s, ',') && !read_natural(r, &space, INT32_MAX, "address-space"))
        return false;
    return lilac_scanner_expect(s, '>');
}

bool lilac_encoding_read_tensor(lilac_scanner *scanner, const lilac_encoding_aliases *aliases,
                                lilac_encoding_tensor *result) {
    reader r = {scanner, aliases, 0};
    lilac_encoding_tensor made;
    uint32_t bits[LILAC_MAX_RANK];
    memset(&made, 0, sizeof made);
    if (!lilac_scanner_expect_word(scanner, "tensor") || !lilac_scanner_expect(scanner, '<'))
        return false;
    lilac_position shape_at = here(&r);
    if (!lilac_scanner_shape(scanner, made.shape, LILAC_MAX_RANK, &made.rank) ||
        !lilac_encoding_check_shape(scanner->context, shape_at, made.rank, made.shape, bits) ||
        !read_element(&r, &made) || !lilac_scanner_expect(scanner, ','))
        return false;
    made.encoding = read_encoding(&r);
    if (made.encoding == NULL || !lilac_scanner_expect(scanner, '>'))
        return false;
    if (!lilac_encoding_layout(scanner->context, &made.layout, made.encoding, made.rank,
                               made.shape)) {
        lilac_note(scanner->context, shape_at, 0, "for a tensor of this shape");
        return false;
    }
    *result = made;
    return true;
}
