/* encoding: CuTe layouts read and printed.
 *
 *     layout  ::= {swizzle "o" {(offset | pointer) "o"}} tree ":" tree
 *     swizzle ::= (Sw | S | Swizzle) < B , M , S >
 *     offset  ::= 0 | _0
 *     pointer ::= smem_ptr [ N b ] ( unset )
 *     tree    ::= number | ( tree , … )              number: 8 or _8
 *
 * The sizes are read into a list of brackets and numbers, and the strides then in step with that
 * list, so that a difference in nesting is found where it is. A mode is a tree at the first level;
 * below, brackets change nothing about the function and are dropped.
 */
#include <lilac/cute.h>

#include <inttypes.h>
#include <string.h>

enum {
    MAX_ITEMS = 512, /* brackets and numbers of the sizes */
    MAX_DEPTH = 32
};

static const uint64_t max_offset = UINT64_C(1) << 62;

typedef struct size_item {
    char kind; /* ( ) or 0 for a number */
    uint64_t size;
    uint32_t mode;
} size_item;

typedef struct reader {
    lilac_scanner *scanner;
    uint32_t count, at; /* items; the next one to match */
    size_item item[MAX_ITEMS];
    lilac_cute made;
} reader;

static lilac_position here(const reader *r) {
    return lilac_scanner_position(r->scanner);
}

/* ---- numbers ---------------------------------------------------------------------------- */

/* "_64", CuTe's static integers. */
static bool is_static(const lilac_scanner *scanner) {
    if (scanner->kind != LILAC_TOKEN_WORD || scanner->word_length < 2 || scanner->word[0] != '_') {
        return false;
    }
    for (uint32_t i = 1; i < scanner->word_length; i++) {
        if (scanner->word[i] < '0' || scanner->word[i] > '9') {
            return false;
        }
    }
    return true;
}

static bool is_number(const lilac_scanner *scanner) {
    return scanner->kind == LILAC_TOKEN_INTEGER || is_static(scanner) ||
           lilac_scanner_is(scanner, '-');
}

/* At most 2^62; negative ones are refused by `id`. */
static bool read_number(reader *r, uint64_t *value, const char *id, const char *what) {
    lilac_scanner *scanner = r->scanner;
    const lilac_position position = here(r);
    if (lilac_scanner_is(scanner, '-')) {
        return lilac_scanner_refuse(r->scanner, position, id, "a negative %s is not supported",
                                    what);
    }
    *value = 0;
    if (is_static(scanner)) {
        for (uint32_t i = 1; i < scanner->word_length && *value <= max_offset; i++) {
            *value = *value * 10 + (uint64_t)(scanner->word[i] - '0');
        }
        lilac_scanner_next(scanner);
    } else {
        int64_t number;
        if (scanner->kind != LILAC_TOKEN_INTEGER) {
            return lilac_scanner_expected(scanner, what);
        }
        if (!lilac_scanner_integer(scanner, &number)) {
            return false;
        }
        *value = (uint64_t)number;
    }
    if (*value > max_offset) {
        return lilac_scanner_refuse(r->scanner, position, "cute-too-large",
                                    "this %s is larger than 2^62", what);
    }
    return true;
}

/* ---- swizzle ---------------------------------------------------------------------------- */

static bool at_swizzle(const lilac_scanner *scanner) {
    return lilac_scanner_is_word(scanner, "Sw") || lilac_scanner_is_word(scanner, "S") ||
           lilac_scanner_is_word(scanner, "Swizzle");
}

static bool read_parameter(reader *r, int64_t *value) {
    const lilac_position position = here(r);
    if (is_static(r->scanner)) {
        uint64_t number;
        if (!read_number(r, &number, "cute-swizzle", "a parameter of a swizzle")) {
            return false;
        }
        *value = (int64_t)number;
    } else if (!lilac_scanner_integer(r->scanner, value)) {
        return false;
    }
    if (*value < -64 || *value > 64) {
        return lilac_scanner_refuse(r->scanner, position, "cute-swizzle",
                                    "%" PRId64 " is more than the 64 bits there are", *value);
    }
    return true;
}

static bool read_parameters(reader *r, int64_t value[3]) {
    lilac_scanner_next(r->scanner);
    return lilac_scanner_expect(r->scanner, '<') && read_parameter(r, &value[0]) &&
           lilac_scanner_expect(r->scanner, ',') && read_parameter(r, &value[1]) &&
           lilac_scanner_expect(r->scanner, ',') && read_parameter(r, &value[2]) &&
           lilac_scanner_expect(r->scanner, '>');
}

/* smem_ptr[16b](unset): what is swizzled is the address in bytes. By how many bits less that is for
 * the number of the element. */
static bool read_pointer(reader *r, int64_t *down) {
    lilac_scanner *scanner = r->scanner;
    lilac_scanner_next(scanner);
    const lilac_position position = here(r);
    uint64_t width;
    if (!lilac_scanner_expect(scanner, '[') ||
        !read_number(r, &width, "cute-swizzle", "a width in bits") ||
        !lilac_scanner_expect_word(scanner, "b") || !lilac_scanner_expect(scanner, ']') ||
        !lilac_scanner_expect(scanner, '(') || !lilac_scanner_expect_word(scanner, "unset") ||
        !lilac_scanner_expect(scanner, ')')) {
        return false;
    }
    if (width == 0 || (width & (width - 1)) != 0 || width > 128) {
        return lilac_scanner_refuse(
            r->scanner, position, "cute-swizzle",
            "elements of %" PRIu64 " bits; powers of two up to 128 are supported", width);
    }
    *down = (int64_t)__builtin_ctzll(width) - 3;
    return true;
}

static bool set_swizzle(reader *r, lilac_position position, const int64_t value[3], int64_t down) {
    const int64_t bits = value[0], base = value[1], shift = value[2];
    const int64_t distance = shift < 0 ? -shift : shift;
    if (bits < 0 || base < 0) {
        return lilac_scanner_refuse(r->scanner, position, "cute-swizzle",
                                    "B and M of a swizzle may not be negative");
    }
    if (bits == 0) {
        return true; /* the identity, whatever M and S are */
    }
    if (distance < bits) {
        return lilac_scanner_refuse(r->scanner, position, "cute-swizzle",
                                    "a swizzle of %" PRId64 " bits by a shift of %" PRId64
                                    " overlaps itself: |S| must be B at least",
                                    bits, shift);
    }
    if (base < down) {
        return lilac_scanner_refuse(r->scanner, position, "cute-swizzle",
                                    "this swizzle begins at bit %" PRId64
                                    " of the address in bytes, inside an element",
                                    base);
    }
    if (base - down + distance + bits > 64) {
        return lilac_scanner_refuse(r->scanner, position, "cute-swizzle",
                                    "this swizzle needs more than 64 bits");
    }
    r->made.swizzle_bits = (uint32_t)bits;
    r->made.swizzle_base = (uint32_t)(base - down);
    r->made.swizzle_shift = (int32_t)shift;
    return true;
}

static bool read_swizzle(reader *r) {
    lilac_scanner *scanner = r->scanner;
    const lilac_position position = here(r);
    int64_t value[3], down = 0;
    if (!at_swizzle(scanner)) {
        return true;
    }
    if (!read_parameters(r, value) || !lilac_scanner_expect_word(scanner, "o")) {
        return false;
    }
    if (lilac_scanner_is_word(scanner, "smem_ptr")) {
        if (!read_pointer(r, &down) || !lilac_scanner_expect_word(scanner, "o")) {
            return false;
        }
    } else if (is_number(scanner)) {
        /* An offset; or, in "Sw<3,4,3> o 64:1", the layout itself. */
        const lilac_position offset_at = here(r);
        uint64_t offset;
        if (!read_number(r, &offset, "cute-offset", "offset")) {
            return false;
        }
        if (!lilac_scanner_accept_word(scanner, "o")) {
            lilac_scanner_seek(scanner, offset_at.offset);
        } else if (offset != 0) {
            return lilac_scanner_refuse(
                r->scanner, offset_at, "cute-offset",
                "an offset of %" PRIu64 " makes the layout affine, not linear", offset);
        }
    }
    return set_swizzle(r, position, value, down);
}

/* ---- sizes and strides ------------------------------------------------------------------ */

static bool add_item(reader *r, size_item item) {
    if (r->count == MAX_ITEMS) {
        return lilac_scanner_refuse(r->scanner, here(r), "cute-too-large",
                                    "more than %d sizes and brackets", MAX_ITEMS);
    }
    r->item[r->count++] = item;
    return true;
}

static bool read_size(reader *r) {
    const lilac_position position = here(r);
    size_item item = {.mode = r->made.rank};
    if (!read_number(r, &item.size, "cute-size", "size")) {
        return false;
    }
    if (item.size == 0) {
        return lilac_scanner_refuse(r->scanner, position, "cute-size", "a mode of no elements");
    }
    return add_item(r, item);
}

static bool read_sizes(reader *r, uint32_t depth) {
    lilac_scanner *scanner = r->scanner;
    if (!lilac_scanner_is(scanner, '(')) {
        if (!read_size(r)) {
            return false;
        }
    } else {
        if (depth == MAX_DEPTH) {
            return lilac_scanner_refuse(r->scanner, here(r), "cute-too-deep",
                                        "more than %d brackets in brackets", MAX_DEPTH);
        }
        if (!add_item(r, (size_item){.kind = '('})) {
            return false;
        }
        lilac_scanner_next(scanner);
        do {
            if (!read_sizes(r, depth + 1)) {
                return false;
            }
        } while (lilac_scanner_accept(scanner, ','));
        if (!lilac_scanner_expect(scanner, ')') || !add_item(r, (size_item){.kind = ')'})) {
            return false;
        }
    }
    /* A tree at the first level is a mode, and so is a number with no brackets at all. */
    if (depth == 1 || (depth == 0 && r->item[0].kind == 0)) {
        r->made.rank++;
    }
    if (r->made.rank > LILAC_CUTE_MAX_RANK) {
        return lilac_scanner_refuse(r->scanner, here(r), "cute-too-large", "more than %d modes",
                                    LILAC_CUTE_MAX_RANK);
    }
    return true;
}

static bool add_leaf(reader *r, lilac_position position, const size_item *item, uint64_t stride) {
    if (r->made.leaf_count == LILAC_CUTE_MAX_LEAVES) {
        return lilac_scanner_refuse(r->scanner, position, "cute-too-large", "more than %d sizes",
                                    LILAC_CUTE_MAX_LEAVES);
    }
    r->made.leaf[r->made.leaf_count++] = (lilac_cute_leaf){item->size, stride, item->mode};
    return true;
}

/* A stride of 0 for a whole tuple: the leaves up to its bracket. */
static bool skip_tuple(reader *r, lilac_position position) {
    uint32_t depth = 0;
    do {
        const size_item *item = &r->item[r->at++];
        if (item->kind == 0 && !add_leaf(r, position, item, 0)) {
            return false;
        }
        depth += item->kind == '(';
        depth -= item->kind == ')';
    } while (depth != 0);
    return true;
}

static bool mismatch(reader *r, const char *what) {
    return lilac_scanner_refuse(r->scanner, here(r), "cute-mismatch", "the strides have %s", what);
}

static bool read_strides(reader *r) {
    lilac_scanner *scanner = r->scanner;
    const lilac_position position = here(r);
    const size_item *item = &r->item[r->at];
    if (item->kind == '(' && lilac_scanner_is(scanner, '(')) {
        lilac_scanner_next(scanner);
        r->at++;
        do {
            if (r->item[r->at].kind == ')') {
                return mismatch(r, "an entry here that the sizes do not have");
            }
            if (!read_strides(r)) {
                return false;
            }
        } while (lilac_scanner_accept(scanner, ','));
        if (lilac_scanner_is(scanner, ')') && r->item[r->at].kind != ')') {
            return mismatch(r, "fewer entries here than the sizes");
        }
        r->at++;
        return lilac_scanner_expect(scanner, ')');
    }
    if (lilac_scanner_is(scanner, '(')) {
        return mismatch(r, "a tuple where the sizes have a number");
    }
    uint64_t stride;
    if (!read_number(r, &stride, "cute-stride", "stride")) {
        return false;
    }
    if (item->kind == '(') {
        return stride == 0
                   ? skip_tuple(r, position)
                   : lilac_scanner_refuse(r->scanner, position, "cute-mismatch",
                                          "the strides have a number where the sizes have a tuple");
    }
    r->at++;
    return add_leaf(r, position, item, stride);
}

/* Elements and offsets must be countable. */
static bool check_range(reader *r, lilac_position position) {
    uint64_t elements = 1, largest = 0;
    bool fits = true;
    for (uint32_t i = 0; fits && i < r->made.leaf_count; i++) {
        const lilac_cute_leaf *leaf = &r->made.leaf[i];
        uint64_t reach;
        fits = !__builtin_mul_overflow(elements, leaf->size, &elements) &&
               !__builtin_mul_overflow(leaf->size - 1, leaf->stride, &reach) &&
               !__builtin_add_overflow(largest, reach, &largest) && elements <= max_offset &&
               largest <= max_offset;
    }
    return fits || lilac_scanner_refuse(r->scanner, position, "cute-too-large",
                                        "this layout has more than 2^62 elements or offsets");
}

bool lilac_cute_at(const lilac_scanner *scanner) {
    return lilac_scanner_is(scanner, '(') || is_number(scanner) || at_swizzle(scanner);
}

bool lilac_cute_read(lilac_scanner *scanner, lilac_cute *result) {
    reader r = {.scanner = scanner};
    const lilac_position position = lilac_scanner_position(scanner);
    if (!read_swizzle(&r) || !read_sizes(&r, 0) || !lilac_scanner_expect(scanner, ':') ||
        !read_strides(&r) || !check_range(&r, position)) {
        return false;
    }
    *result = r.made;
    return true;
}

/* ---- printing --------------------------------------------------------------------------- */

static void print_tree(lilac_text *out, const lilac_cute *cute, bool strides) {
    const bool plain = cute->rank == 1 && cute->leaf_count == 1;
    if (!plain) {
        lilac_text_char(out, '(');
    }
    for (uint32_t i = 0; i < cute->leaf_count; i++) {
        const lilac_cute_leaf *leaf = &cute->leaf[i];
        const bool first = i == 0 || leaf[-1].mode != leaf->mode;
        const bool last = i + 1 == cute->leaf_count || leaf[1].mode != leaf->mode;
        if (i != 0) {
            lilac_text_char(out, ',');
        }
        if (first && !last) {
            lilac_text_char(out, '(');
        }
        lilac_text_unsigned(out, strides ? leaf->stride : leaf->size);
        if (last && !first) {
            lilac_text_char(out, ')');
        }
    }
    if (!plain) {
        lilac_text_char(out, ')');
    }
}

void lilac_cute_print(lilac_text *out, const lilac_cute *cute) {
    if (cute->swizzle_bits != 0) {
        lilac_text_printf(out, "Sw<%u,%u,%d> o 0 o ", cute->swizzle_bits, cute->swizzle_base,
                          cute->swizzle_shift);
    }
    print_tree(out, cute, false);
    lilac_text_char(out, ':');
    print_tree(out, cute, true);
}
