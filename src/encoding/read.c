/* encoding: reading attributes and the types that have them.
 *
 *     encoding ::= #alias | #name<…>            by the row of its kind
 *     tensor   ::= tensor<16x32xf32, encoding> | tensor<16x!tt.ptr<f32>, encoding>
 *
 * One recursive reader over the shared scanner.
 */
#include "internal.h"

#include <string.h>

/* Slices of slices … each lose a dimension, so deeper nesting cannot be right. */
enum { MAX_DEPTH = LILAC_MAX_RANK };

typedef lilac_encoding_reader reader;

static const lilac_encoding *read_alias(reader *r) {
    const lilac_scanner *s = r->scanner;
    const lilac_encoding *encoding =
        r->aliases == NULL ? NULL : lilac_encoding_lookup(r->aliases, s->word, s->word_length);
    if (encoding == NULL) {
        (void)lilac_scanner_refuse(r->scanner, here(r), "layout-alias-undefined",
                                   "'#%.*s' is not defined",
                                   (int)(s->word_length < 64 ? s->word_length : 64), s->word);
        return NULL;
    }
    lilac_scanner_next(r->scanner);
    return encoding;
}

/* Kinds of Triton's that have no row. */
static bool is_known_elsewhere(const char *name, size_t length) {
    static const char *const names[] = {"ttig.warp_encoding", "ttig.subgroup_2d_block"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (text_is(name, length, names[i])) {
            return true;
        }
    }
    return false;
}

static void refuse_kind(reader *r) {
    const lilac_scanner *s = r->scanner;
    const int length = (int)(s->word_length < 64 ? s->word_length : 64);
    if (is_known_elsewhere(s->word, s->word_length)) {
        (void)lilac_scanner_refuse(r->scanner, here(r), "layout-not-supported",
                                   "layouts of kind '#%.*s' are not supported", length, s->word);
        return;
    }
    const char *spellings[LILAC_ENCODING_KIND_COUNT];
    for (uint32_t k = 0; k < LILAC_ENCODING_KIND_COUNT; k++) {
        spellings[k] = lilac_encoding_row_of((lilac_encoding_kind)k)->spelling;
    }
    const char *near =
        lilac_nearest_name(s->word, s->word_length, spellings, LILAC_ENCODING_KIND_COUNT);
    (void)lilac_scanner_refuse(r->scanner, here(r), "layout-unknown",
                               "there is no kind of layout '#%.*s'%s%s%s", length, s->word,
                               LILAC_DID_YOU_MEAN(near));
}

static const lilac_encoding *read_named(reader *r) {
    lilac_scanner *s = r->scanner;
    lilac_encoding *encoding = lilac_arena_new(lilac_context_arena(s->context), lilac_encoding);
    encoding->position = here(r);
    if (!lilac_encoding_kind_named(&encoding->kind, s->word, s->word_length)) {
        refuse_kind(r);
        return NULL;
    }
    lilac_scanner_next(s);
    return lilac_encoding_row_of(encoding->kind)->read(r, encoding) ? encoding : NULL;
}

const lilac_encoding *lilac_encoding_read_any(reader *r) {
    const lilac_scanner *s = r->scanner;
    if (s->kind != LILAC_TOKEN_HASH) {
        (void)lilac_scanner_expected(r->scanner, "a layout");
        return NULL;
    }
    if (memchr(s->word, '.', s->word_length) == NULL) {
        return read_alias(r);
    }
    if (r->depth == MAX_DEPTH) {
        (void)lilac_scanner_refuse(r->scanner, here(r), "layout-too-deep",
                                   "layouts are nested more than %d deep", MAX_DEPTH);
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
    return lilac_encoding_read_any(&r);
}

/* ---- tensor types ----------------------------------------------------------------------- */

bool lilac_encoding_read_scalar(reader *r, lilac_scalar *scalar) {
    const lilac_scanner *s = r->scanner;
    if (s->kind != LILAC_TOKEN_WORD) {
        return lilac_scanner_expected(r->scanner, "an element type");
    }
    if (!lilac_scalar_read(s->word, s->word_length, scalar)) {
        return lilac_scanner_refuse(r->scanner, here(r), "element-type-unknown",
                                    "there is no element type '%.*s'",
                                    (int)(s->word_length < 64 ? s->word_length : 64), s->word);
    }
    lilac_scanner_next(r->scanner);
    return true;
}

/* f32, !tt.ptr<f32>, !tt.ptr<f32, 1> */
static bool read_element(reader *r, lilac_encoding_tensor *result) {
    lilac_scanner *s = r->scanner;
    result->pointers = s->kind == LILAC_TOKEN_BANG && text_is(s->word, s->word_length, "tt.ptr");
    if (!result->pointers) {
        return lilac_encoding_read_scalar(r, &result->scalar);
    }
    lilac_scanner_next(s);
    uint64_t space;
    if (!lilac_scanner_expect(s, '<') || !lilac_encoding_read_scalar(r, &result->scalar)) {
        return false;
    }
    if (lilac_scanner_accept(s, ',') &&
        !lilac_encoding_read_natural(r, &space, INT32_MAX, "address-space")) {
        return false;
    }
    return lilac_scanner_expect(s, '>');
}

bool lilac_encoding_read_tensor(lilac_scanner *scanner, const lilac_encoding_aliases *aliases,
                                lilac_encoding_tensor *result) {
    reader r = {scanner, aliases, 0};
    lilac_encoding_tensor made;
    uint32_t bits[LILAC_MAX_RANK];
    memset(&made, 0, sizeof made);
    if (!lilac_scanner_expect_word(scanner, "tensor") || !lilac_scanner_expect(scanner, '<')) {
        return false;
    }
    lilac_position shape_at = here(&r);
    if (!lilac_scanner_shape(scanner, made.shape, LILAC_MAX_RANK, &made.rank) ||
        !lilac_encoding_check_shape(scanner->context, shape_at, made.rank, made.shape, bits) ||
        !read_element(&r, &made) || !lilac_scanner_expect(scanner, ',')) {
        return false;
    }
    made.encoding = lilac_encoding_read_any(&r);
    if (made.encoding == NULL || !lilac_scanner_expect(scanner, '>')) {
        return false;
    }
    if (lilac_encoding_place_of(made.encoding) != LILAC_ENCODING_OF_TENSOR) {
        return lilac_scanner_refuse(r.scanner, made.encoding->position, "layout-of-memory",
                                    "this is a layout of memory, not of a tensor");
    }
    if (!lilac_encoding_layout(scanner->context, &made.layout, made.encoding, made.rank,
                               made.shape)) {
        lilac_note(scanner->context, shape_at, 0, "for a tensor of this shape");
        return false;
    }
    *result = made;
    return true;
}
