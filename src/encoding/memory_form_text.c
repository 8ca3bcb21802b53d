/* encoding: memory layouts read and printed.
 *
 *     form    ::= row_major(shape) | column_major(shape) | order(shape, [d, …])
 *               | strided(shape, [stride, …]) | tiled(shape, [piece, …]) | tiled(shape, name)
 *               | padded(shape, {[d, …],} interval:+padding, …)
 *     piece   ::= d | d/k | d%m | d/k%m
 *     name    ::= letters with /k after one and k alone for its low part: NHWC, NC/32HW32
 *               | NCHW_VECT_C k
 *
 * All but strided are packed: the strides are the products of the sizes of the pieces that follow.
 */
#include <lilac/memory_form.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint64_t max_extent = UINT64_C(1) << 62;

static const char *const kind_names[] = {
    [LILAC_MEMORY_ROW_MAJOR] = "row_major", [LILAC_MEMORY_COLUMN_MAJOR] = "column_major",
    [LILAC_MEMORY_ORDER] = "order",         [LILAC_MEMORY_STRIDED] = "strided",
    [LILAC_MEMORY_TILED] = "tiled",         [LILAC_MEMORY_PADDED] = "padded",
};

enum { KIND_COUNT = sizeof kind_names / sizeof kind_names[0] };

typedef struct reader {
    lilac_scanner *scanner;
    lilac_memory_form made;
} reader;

static lilac_position here(const reader *r) {
    return lilac_scanner_position(r->scanner);
}

static bool read_natural(reader *r, uint64_t *value, const char *id, const char *what) {
    const lilac_position position = here(r);
    int64_t number = 0;
    if (!lilac_scanner_integer(r->scanner, &number)) {
        return false;
    }
    if (number < 0) {
        return lilac_scanner_refuse(r->scanner, position, id,
                                    "%s may not be negative or beyond 2^63", what);
    }
    *value = (uint64_t)number;
    return true;
}

/* Of a dimension's number. */
static bool read_dim(reader *r, uint32_t *dim, const char *id) {
    const lilac_position position = here(r);
    uint64_t value = 0;
    if (!read_natural(r, &value, id, "a dimension")) {
        return false;
    }
    if (value >= r->made.rank) {
        return lilac_scanner_refuse(r->scanner, position, id,
                                    "there is no dimension %" PRIu64 " in a shape of rank %u",
                                    value, r->made.rank);
    }
    *dim = (uint32_t)value;
    return true;
}

/* ---- shape ------------------------------------------------------------------------------ */

/* "16x32", with nothing after it but what the form goes on with. */
static bool read_shape(reader *r) {
    lilac_scanner *scanner = r->scanner;
    r->made.rank = 0;
    for (;;) {
        const lilac_position position = here(r);
        uint64_t size = 0;
        if (scanner->kind != LILAC_TOKEN_INTEGER) {
            return lilac_scanner_expected(scanner, "the size of a dimension");
        }
        /* Not the scanner's integer: "0x16" is two dimensions. */
        uint32_t at = scanner->offset;
        for (; at < scanner->length && scanner->text[at] >= '0' && scanner->text[at] <= '9'; at++) {
            size = size * 10 + (uint64_t)(scanner->text[at] - '0');
            if (size > max_extent) {
                return lilac_scanner_refuse(r->scanner, position, "memory-form-too-large",
                                            "a dimension of more than 2^62 elements");
            }
        }
        if (size == 0) {
            return lilac_scanner_refuse(r->scanner, position, "bad-dimension",
                                        "a dimension of no elements");
        }
        if (r->made.rank == LILAC_LAYOUT_MAX_DIMS) {
            return lilac_scanner_refuse(r->scanner, position, "memory-form-too-large",
                                        "more than %d dimensions", LILAC_LAYOUT_MAX_DIMS);
        }
        r->made.shape[r->made.rank++] = size;
        const bool more = at < scanner->length && scanner->text[at] == 'x';
        lilac_scanner_seek(scanner, at + more);
        if (!more) {
            return true;
        }
    }
}

/* ---- pieces ----------------------------------------------------------------------------- */

static bool add_piece(reader *r, lilac_position position, uint32_t dim, uint64_t divisor,
                      uint64_t size) {
    if (r->made.piece_count == LILAC_MEMORY_FORM_MAX_PIECES) {
        return lilac_scanner_refuse(r->scanner, position, "memory-form-too-large",
                                    "more than %d pieces", LILAC_MEMORY_FORM_MAX_PIECES);
    }
    r->made.piece[r->made.piece_count++] = (lilac_memory_piece){dim, divisor, size, 0};
    return true;
}

/* Strides of packed pieces, the last one fastest. */
static bool pack(reader *r, lilac_position position) {
    uint64_t stride = 1;
    for (uint32_t i = r->made.piece_count; i-- > 0;) {
        r->made.piece[i].stride = stride;
        if (__builtin_mul_overflow(stride, r->made.piece[i].size, &stride) || stride > max_extent) {
            return lilac_scanner_refuse(r->scanner, position, "memory-form-too-large",
                                        "more than 2^62 elements");
        }
    }
    return true;
}

/* Whole dimensions, in an order given slowest first. */
static bool pack_order(reader *r, lilac_position position, const uint32_t *slowest_first) {
    for (uint32_t i = 0; i < r->made.rank; i++) {
        const uint32_t d = slowest_first[i];
        if (!add_piece(r, position, d, 1, r->made.shape[d])) {
            return false;
        }
    }
    return pack(r, position);
}

static bool pack_major(reader *r, lilac_position position, bool rows) {
    uint32_t order[LILAC_LAYOUT_MAX_DIMS];
    for (uint32_t d = 0; d < r->made.rank; d++) {
        order[d] = rows ? d : r->made.rank - 1 - d;
    }
    return pack_order(r, position, order);
}

/* [1, 0]: fastest first, every dimension once. */
static bool read_order(reader *r, uint32_t *slowest_first) {
    const lilac_position position = here(r);
    uint32_t count = 0, seen = 0;
    if (!lilac_scanner_expect(r->scanner, '[')) {
        return false;
    }
    do {
        uint32_t dim = 0;
        const lilac_position dim_at = here(r);
        if (!read_dim(r, &dim, "memory-form-order")) {
            return false;
        }
        if (seen >> dim & 1) {
            return lilac_scanner_refuse(r->scanner, dim_at, "memory-form-order",
                                        "dimension %u is here twice", dim);
        }
        seen |= UINT32_C(1) << dim;
        slowest_first[r->made.rank - 1 - count++] = dim;
    } while (lilac_scanner_accept(r->scanner, ','));
    if (count != r->made.rank) {
        return lilac_scanner_refuse(r->scanner, position, "memory-form-order",
                                    "an order of %u dimensions for a shape of rank %u", count,
                                    r->made.rank);
    }
    return lilac_scanner_expect(r->scanner, ']');
}

static bool read_strides(reader *r) {
    const lilac_position position = here(r);
    uint64_t largest = 0, reach;
    if (!lilac_scanner_expect(r->scanner, '[')) {
        return false;
    }
    do {
        const lilac_position stride_at = here(r);
        const uint32_t d = r->made.piece_count;
        uint64_t stride = 0;
        if (!read_natural(r, &stride, "memory-form-strides", "a stride")) {
            return false;
        }
        if (d == r->made.rank) {
            return lilac_scanner_refuse(r->scanner, stride_at, "memory-form-strides",
                                        "more strides than the %u dimensions", r->made.rank);
        }
        if (__builtin_mul_overflow(r->made.shape[d] - 1, stride, &reach) ||
            __builtin_add_overflow(largest, reach, &largest) || largest > max_extent ||
            stride > max_extent) {
            return lilac_scanner_refuse(r->scanner, stride_at, "memory-form-too-large",
                                        "offsets beyond 2^62");
        }
        r->made.piece[r->made.piece_count++] = (lilac_memory_piece){d, 1, r->made.shape[d], stride};
    } while (lilac_scanner_accept(r->scanner, ','));
    if (r->made.piece_count != r->made.rank) {
        return lilac_scanner_refuse(r->scanner, position, "memory-form-strides",
                                    "%u strides for a shape of rank %u", r->made.piece_count,
                                    r->made.rank);
    }
    return lilac_scanner_expect(r->scanner, ']');
}

/* ---- tiles ------------------------------------------------------------------------------ */

static bool check_divides(reader *r, lilac_position position, uint32_t dim, uint64_t size) {
    if (size != 0 && r->made.shape[dim] % size == 0) {
        return true;
    }
    return lilac_scanner_refuse(r->scanner, position, "memory-form-tile",
                                "%" PRIu64 " does not divide the %" PRIu64
                                " elements of dimension %u",
                                size, r->made.shape[dim], dim);
}

/* d/k%m. The scanner takes "%m" as one token. */
static bool read_piece(reader *r) {
    const lilac_position position = here(r);
    uint32_t dim = 0;
    uint64_t divisor = 1, size;
    if (!read_dim(r, &dim, "memory-form-tile")) {
        return false;
    }
    if (lilac_scanner_accept(r->scanner, '/') &&
        (!read_natural(r, &divisor, "memory-form-tile", "a tile") ||
         !check_divides(r, position, dim, divisor))) {
        return false;
    }
    size = r->made.shape[dim] / divisor;
    if (r->scanner->kind == LILAC_TOKEN_VALUE) {
        const uint64_t whole = size;
        size = 0;
        for (uint32_t i = 0; i < r->scanner->word_length; i++) {
            const char c = r->scanner->word[i];
            if (c < '0' || c > '9' || size > max_extent / 16) {
                return lilac_scanner_expected(r->scanner, "a size after %");
            }
            size = size * 10 + (uint64_t)(c - '0');
        }
        if (size == 0 || whole % size != 0) {
            return lilac_scanner_refuse(r->scanner, position, "memory-form-tile",
                                        "%" PRIu64 " does not divide the %" PRIu64
                                        " that is left of dimension %u",
                                        size, whole, dim);
        }
        lilac_scanner_next(r->scanner);
    }
    return add_piece(r, position, dim, divisor, size);
}

/* The pieces of each dimension, in order of divisors, must go from 1 to its size without a gap. */
static bool check_pieces(reader *r, lilac_position position) {
    for (uint32_t d = 0; d < r->made.rank; d++) {
        uint64_t covered = 1;
        uint32_t used = 0, pieces = 0;
        for (uint32_t i = 0; i < r->made.piece_count; i++) {
            pieces += r->made.piece[i].dim == d && r->made.piece[i].size != 1;
        }
        for (uint32_t i = 0; i < r->made.piece_count;) {
            const lilac_memory_piece *piece = &r->made.piece[i++];
            if (piece->dim == d && piece->size != 1 && piece->divisor == covered) {
                covered *= piece->size;
                used++;
                i = 0;
            }
        }
        if (covered != r->made.shape[d]) {
            return lilac_scanner_refuse(r->scanner, position, "memory-form-tile",
                                        "nothing says where %" PRIu64 " along dimension %u goes",
                                        covered, d);
        }
        if (used != pieces) {
            return lilac_scanner_refuse(r->scanner, position, "memory-form-tile",
                                        "the pieces of dimension %u overlap", d);
        }
    }
    return true;
}

static bool read_pieces(reader *r) {
    if (!lilac_scanner_expect(r->scanner, '[')) {
        return false;
    }
    do {
        if (!read_piece(r)) {
            return false;
        }
    } while (lilac_scanner_accept(r->scanner, ','));
    return lilac_scanner_expect(r->scanner, ']');
}

/* ---- names of tilings ------------------------------------------------------------------- */

/* A walk over the bytes of a name. */
typedef struct name_walk {
    const char *bytes;
    uint32_t length, at;
    lilac_position position;
} name_walk;

static bool walk_number(name_walk *walk, uint64_t *value) {
    const uint32_t start = walk->at;
    for (*value = 0; walk->at < walk->length && walk->bytes[walk->at] >= '0' &&
                     walk->bytes[walk->at] <= '9' && *value <= max_extent / 16;
         walk->at++) {
        *value = *value * 10 + (uint64_t)(walk->bytes[walk->at] - '0');
    }
    return walk->at > start;
}

static bool refuse_name(reader *r, const name_walk *walk, const char *what) {
    return lilac_scanner_refuse(r->scanner, walk->position, "memory-form-tile", "%s in '%.*s'",
                                what, (int)(walk->length < 40 ? walk->length : 40), walk->bytes);
}

/* "NCHW_VECT_C 32": NCHW with C split, its low part fastest. */
static bool read_vect_c(reader *r, name_walk *walk) {
    uint64_t tile = 0;
    if (r->made.rank != 4) {
        return lilac_scanner_refuse(r->scanner, walk->position, "memory-form-tile",
                                    "NCHW_VECT_C is of rank 4 and the shape of rank %u",
                                    r->made.rank);
    }
    while (walk->at < walk->length && walk->bytes[walk->at] == ' ') {
        walk->at++;
    }
    if (!walk_number(walk, &tile) || walk->at != walk->length) {
        return refuse_name(r, walk, "expected the size of the vector at the end");
    }
    if (!check_divides(r, walk->position, 1, tile)) {
        return false;
    }
    snprintf(r->made.name, sizeof r->made.name, "NCHW_VECT_C %" PRIu64, tile);
    return add_piece(r, walk->position, 0, 1, r->made.shape[0]) &&
           add_piece(r, walk->position, 1, tile, r->made.shape[1] / tile) &&
           add_piece(r, walk->position, 2, 1, r->made.shape[2]) &&
           add_piece(r, walk->position, 3, 1, r->made.shape[3]) &&
           add_piece(r, walk->position, 1, 1, tile);
}

/* "NC/32HW32", "NHWC". */
static bool read_letters(reader *r, name_walk *walk) {
    static const char *const letters_of[] = {[3] = "NCW", [4] = "NCHW", [5] = "NCDHW"};
    if (r->made.rank < 3 || r->made.rank > 5) {
        return lilac_scanner_refuse(
            r->scanner, walk->position, "memory-form-tile",
            "names are of shapes of rank 3 (NCW), 4 (NCHW) or 5 (NCDHW); this one is "
            "of rank %u",
            r->made.rank);
    }
    const char *letters = letters_of[r->made.rank];
    uint32_t split = 0;
    uint64_t tile = 0, low;
    while (walk->at < walk->length) {
        const char c = walk->bytes[walk->at];
        const char *letter = strchr(letters, c);
        uint32_t dim = split;
        uint64_t divisor = 1, size = tile;
        if (letter != NULL && c != 0) {
            walk->at++;
            dim = (uint32_t)(letter - letters);
            if (walk->at < walk->length && walk->bytes[walk->at] == '/') {
                walk->at++;
                if (tile != 0 || !walk_number(walk, &tile)) {
                    return refuse_name(r, walk, "one dimension may be split, by a number,");
                }
                if (!check_divides(r, walk->position, dim, tile)) {
                    return false;
                }
                split = dim;
                divisor = tile;
            }
            size = r->made.shape[dim] / divisor;
        } else if (!walk_number(walk, &low) || tile == 0 || low != tile) {
            return refuse_name(r, walk, "expected a letter of the shape or the size of its tile");
        }
        if (!add_piece(r, walk->position, dim, divisor, size)) {
            return false;
        }
    }
    snprintf(r->made.name, sizeof r->made.name, "%.*s",
             (int)(walk->length < sizeof r->made.name ? walk->length : sizeof r->made.name - 1),
             walk->bytes);
    return true;
}

/* The bytes up to the closing bracket. */
static bool read_name(reader *r) {
    static const char vect_c[] = "NCHW_VECT_C";
    lilac_scanner *scanner = r->scanner;
    name_walk walk = {scanner->text + scanner->offset, 0, 0, here(r)};
    if (scanner->kind != LILAC_TOKEN_WORD) {
        return lilac_scanner_expected(scanner, "pieces of dimensions or the name of a format");
    }
    while (scanner->offset + walk.length < scanner->length && walk.bytes[walk.length] != ')' &&
           walk.bytes[walk.length] != '\n') {
        walk.length++;
    }
    lilac_scanner_seek(scanner, scanner->offset + walk.length);
    while (walk.length > 0 && walk.bytes[walk.length - 1] == ' ') {
        walk.length--;
    }
    if (walk.length >= sizeof r->made.name) {
        return refuse_name(r, &walk, "more than 31 letters");
    }
    if (walk.length >= sizeof vect_c - 1 && memcmp(walk.bytes, vect_c, sizeof vect_c - 1) == 0) {
        walk.at = sizeof vect_c - 1;
        return read_vect_c(r, &walk);
    }
    return read_letters(r, &walk);
}

/* ---- padding ---------------------------------------------------------------------------- */

static bool read_padding(reader *r) {
    const lilac_position position = here(r);
    uint64_t interval = 0, padding = 0;
    if (!read_natural(r, &interval, "memory-form-padding", "an interval") ||
        !lilac_scanner_expect(r->scanner, ':') || !lilac_scanner_expect(r->scanner, '+') ||
        !read_natural(r, &padding, "memory-form-padding", "a padding")) {
        return false;
    }
    if (interval == 0 || (interval & (interval - 1)) != 0) {
        return lilac_scanner_refuse(r->scanner, position, "memory-form-padding",
                                    "an interval of %" PRIu64 " is not a power of two", interval);
    }
    if (padding == 0) {
        return lilac_scanner_refuse(r->scanner, position, "memory-form-padding",
                                    "a padding of no elements");
    }
    for (uint32_t i = 0; i < r->made.padding_count; i++) {
        if (r->made.padding[i].interval == interval) {
            return lilac_scanner_refuse(r->scanner, position, "memory-form-padding",
                                        "the interval %" PRIu64 " is here twice", interval);
        }
    }
    if (r->made.padding_count == LILAC_MEMORY_FORM_MAX_PADDINGS) {
        return lilac_scanner_refuse(r->scanner, position, "memory-form-too-large",
                                    "more than %d paddings", LILAC_MEMORY_FORM_MAX_PADDINGS);
    }
    r->made.padding[r->made.padding_count].interval = interval;
    r->made.padding[r->made.padding_count++].padding = padding;
    return true;
}

/* The largest address, padding included, is countable. */
static bool check_extent(reader *r, lilac_position position) {
    uint64_t largest = 0;
    for (uint32_t i = 0; i < r->made.piece_count; i++) {
        largest += (r->made.piece[i].size - 1) * r->made.piece[i].stride;
    }
    uint64_t sum = largest;
    for (uint32_t i = 0; i < r->made.padding_count; i++) {
        uint64_t added = 0;
        if (__builtin_mul_overflow(largest / r->made.padding[i].interval,
                                   r->made.padding[i].padding, &added) ||
            __builtin_add_overflow(sum, added, &sum) || sum > max_extent) {
            return lilac_scanner_refuse(r->scanner, position, "memory-form-too-large",
                                        "offsets beyond 2^62");
        }
    }
    return true;
}

static bool read_padded(reader *r, lilac_position position) {
    uint32_t order[LILAC_LAYOUT_MAX_DIMS];
    bool good;
    if (lilac_scanner_is(r->scanner, '[')) {
        good = read_order(r, order) && lilac_scanner_expect(r->scanner, ',') &&
               pack_order(r, position, order);
    } else {
        good = pack_major(r, position, true);
    }
    if (!good) {
        return false;
    }
    do {
        if (!read_padding(r)) {
            return false;
        }
    } while (lilac_scanner_accept(r->scanner, ','));
    return check_extent(r, position);
}

/* ---- any -------------------------------------------------------------------------------- */

static bool read_rest(reader *r, lilac_position position) {
    uint32_t order[LILAC_LAYOUT_MAX_DIMS];
    if (r->made.kind == LILAC_MEMORY_ROW_MAJOR || r->made.kind == LILAC_MEMORY_COLUMN_MAJOR) {
        return pack_major(r, position, r->made.kind == LILAC_MEMORY_ROW_MAJOR);
    }
    if (!lilac_scanner_expect(r->scanner, ',')) {
        return false;
    }
    switch (r->made.kind) {
    case LILAC_MEMORY_ORDER:
        return read_order(r, order) && pack_order(r, position, order);
    case LILAC_MEMORY_STRIDED:
        return read_strides(r);
    case LILAC_MEMORY_TILED:
        return (lilac_scanner_is(r->scanner, '[') ? read_pieces(r) : read_name(r)) &&
               check_pieces(r, position) && pack(r, position);
    default:
        return read_padded(r, position);
    }
}

static int kind_at(const lilac_scanner *scanner) {
    for (int i = 0; i < KIND_COUNT; i++) {
        if (lilac_scanner_is_word(scanner, kind_names[i])) {
            return i;
        }
    }
    return -1;
}

bool lilac_memory_form_at(const lilac_scanner *scanner) {
    return kind_at(scanner) >= 0;
}

bool lilac_memory_form_read(lilac_scanner *scanner, lilac_memory_form *result) {
    reader r = {.scanner = scanner};
    const lilac_position position = lilac_scanner_position(scanner);
    const int kind = kind_at(scanner);
    if (kind < 0) {
        return lilac_scanner_refuse(
            r.scanner, position, "memory-form-unknown",
            "expected row_major, column_major, order, strided, tiled or padded");
    }
    r.made.kind = (lilac_memory_form_kind)kind;
    lilac_scanner_next(scanner);
    if (!lilac_scanner_expect(scanner, '(') || !read_shape(&r) || !read_rest(&r, position) ||
        !lilac_scanner_expect(scanner, ')')) {
        return false;
    }
    *result = r.made;
    return true;
}

/* ---- printing --------------------------------------------------------------------------- */

static void print_order(lilac_text *out, const lilac_memory_form *form) {
    lilac_text_puts(out, ", [");
    for (uint32_t i = form->piece_count; i-- > 0;) {
        lilac_text_unsigned(out, form->piece[i].dim);
        if (i != 0) {
            lilac_text_puts(out, ", ");
        }
    }
    lilac_text_char(out, ']');
}

static void print_pieces(lilac_text *out, const lilac_memory_form *form) {
    lilac_text_puts(out, ", [");
    for (uint32_t i = 0; i < form->piece_count; i++) {
        const lilac_memory_piece *piece = &form->piece[i];
        lilac_text_puts(out, i == 0 ? "" : ", ");
        lilac_text_unsigned(out, piece->dim);
        if (piece->divisor != 1) {
            lilac_text_printf(out, "/%" PRIu64, piece->divisor);
        }
        if (piece->size != form->shape[piece->dim] / piece->divisor) {
            lilac_text_printf(out, "%%%" PRIu64, piece->size);
        }
    }
    lilac_text_char(out, ']');
}

static void print_strides(lilac_text *out, const lilac_memory_form *form) {
    lilac_text_puts(out, ", [");
    for (uint32_t i = 0; i < form->piece_count; i++) {
        lilac_text_puts(out, i == 0 ? "" : ", ");
        lilac_text_unsigned(out, form->piece[i].stride);
    }
    lilac_text_char(out, ']');
}

static bool is_row_major(const lilac_memory_form *form) {
    for (uint32_t i = 0; i < form->piece_count; i++) {
        if (form->piece[i].dim != i) {
            return false;
        }
    }
    return true;
}

void lilac_memory_form_print(lilac_text *out, const lilac_memory_form *form) {
    lilac_text_puts(out, kind_names[form->kind]);
    for (uint32_t d = 0; d < form->rank; d++) {
        lilac_text_char(out, d == 0 ? '(' : 'x');
        lilac_text_unsigned(out, form->shape[d]);
    }
    if (form->kind == LILAC_MEMORY_STRIDED) {
        print_strides(out, form);
    } else if (form->kind == LILAC_MEMORY_TILED && form->name[0] != 0) {
        lilac_text_printf(out, ", %s", form->name);
    } else if (form->kind == LILAC_MEMORY_TILED) {
        print_pieces(out, form);
    } else if (form->kind == LILAC_MEMORY_ORDER ||
               (form->kind == LILAC_MEMORY_PADDED && !is_row_major(form))) {
        print_order(out, form);
    }
    for (uint32_t i = 0; i < form->padding_count; i++) {
        lilac_text_printf(out, ", %" PRIu64 ":+%" PRIu64, form->padding[i].interval,
                          form->padding[i].padding);
    }
    lilac_text_char(out, ')');
}
