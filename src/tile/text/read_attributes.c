/* Reading attributes, by recursive descent with a limit on depth: numbers with their types,
 * strings, symbols, types, lists, dictionaries, arrays of integers and dense tensors. A literal is
 * kept as text until its type is known, which is written behind it. */
#include "internal.h"

#include <string.h>

/* ---- attributes ------------------------------------------------------------------------- */

static bool read_value(tile_reader *reader, lilac_tile_attribute *attribute, uint32_t depth);
static bool read_dictionary(tile_reader *reader, lilac_tile_attributes *attributes, uint32_t depth);

typedef struct integer_list {
    int64_t *list;
    uint32_t count, capacity;
} integer_list;

static void integers_push(tile_reader *reader, integer_list *integers, int64_t value) {
    integers->list = tile_list_grow(reader, integers->list, integers->count, &integers->capacity,
                                    sizeof *integers->list);
    integers->list[integers->count++] = value;
}

static const int64_t *keep_integers(tile_reader *reader, const integer_list *integers) {
    int64_t *copy = lilac_arena_array(reader->module->arena, int64_t, integers->count);
    if (integers->count) {
        memcpy(copy, integers->list, sizeof *copy * integers->count);
    }
    return copy;
}

/* A literal as written; what it means depends on the type, which may come later. */
typedef struct literal {
    lilac_position position;
    lilac_token_kind kind; /* INTEGER, FLOAT or WORD (true, false) */
    bool negative;
    const char *text;
    uint32_t length;
} literal;

static bool scan_literal(tile_reader *reader, literal *value) {
    lilac_scanner *scan = &reader->scan;
    value->position = lilac_scanner_position(scan);
    value->negative = lilac_scanner_accept(scan, '-');
    bool word = lilac_scanner_is_word(scan, "true") || lilac_scanner_is_word(scan, "false");
    if (scan->kind != LILAC_TOKEN_INTEGER && scan->kind != LILAC_TOKEN_FLOAT &&
        !(word && !value->negative)) {
        return lilac_scanner_expected(scan, "a number");
    }
    value->kind = scan->kind;
    value->text = scan->word;
    value->length = scan->word_length;
    lilac_scanner_next(scan);
    return true;
}

static bool is_hex(const literal *value) {
    return value->kind == LILAC_TOKEN_INTEGER && value->length > 2 && value->text[1] == 'x';
}

static bool literal_magnitude(const literal *value, uint64_t *magnitude) {
    uint64_t sum = 0, base = is_hex(value) ? 16 : 10;
    for (uint32_t i = base == 16 ? 2 : 0; i < value->length; i++) {
        uint64_t digit = (uint64_t)lilac_hex_digit(value->text[i]);
        if (sum > (UINT64_MAX - digit) / base) {
            return false;
        }
        sum = sum * base + digit;
    }
    *magnitude = sum;
    return true;
}

/* The bits of a literal of a scalar type: a float's encoding, or an integer sign-extended. */
static bool literal_bits(tile_reader *reader, const literal *value, lilac_scalar scalar,
                         int64_t *bits) {
    uint32_t width = lilac_scalar_bits(scalar);
    uint64_t magnitude;
    if (value->kind == LILAC_TOKEN_WORD) {
        if (scalar != LILAC_I1) {
            return tile_fail(reader, value->position, "bad-literal",
                             "'%.*s' is a number of type i1 only", (int)value->length, value->text);
        }
        *bits = value->text[0] == 't';
        return true;
    }
    if (value->kind == LILAC_TOKEN_FLOAT) {
        if (!lilac_scalar_is_float(scalar)) {
            return tile_fail(reader, value->position, "bad-literal",
                             "a floating-point number for the type '%s'",
                             lilac_scalar_name(scalar));
        }
        *bits = (int64_t)tile_read_float(scalar, value->text, value->length, value->negative);
        return true;
    }
    if (!literal_magnitude(value, &magnitude)) {
        return tile_fail(reader, value->position, "integer-too-large",
                         "this integer does not fit 64 bits");
    }
    if (lilac_scalar_is_float(scalar)) {
        if (!is_hex(value) || value->negative) {
            return tile_fail(reader, value->position, "bad-literal",
                             "a floating-point number has a point, or is its bits in hexadecimal");
        }
        if (width < 64 && magnitude >> width) {
            return tile_fail(reader, value->position, "bad-literal", "more than %u bits for '%s'",
                             width, lilac_scalar_name(scalar));
        }
        *bits = (int64_t)magnitude;
        return true;
    }
    uint64_t limit = width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    if (value->negative ? magnitude > limit / 2 + 1 : magnitude > limit) {
        return tile_fail(reader, value->position, "bad-literal", "%s%.*s does not fit '%s'",
                         value->negative ? "-" : "", (int)(value->length > 40 ? 40 : value->length),
                         value->text, lilac_scalar_name(scalar));
    }
    uint64_t raw = value->negative ? 0 - magnitude : magnitude;
    *bits = width >= 64          ? (int64_t)raw
            : scalar == LILAC_I1 ? (int64_t)(raw & 1)
                                 : lilac_scalar_signed(scalar, raw & limit);
    return true;
}

/* A number with or without a type: 16 : i32, 1.0 : f32, true. */
static bool read_number(tile_reader *reader, lilac_tile_attribute *attribute) {
    literal value;
    lilac_scanner *scan = &reader->scan;
    if (!scan_literal(reader, &value)) {
        return false;
    }
    if (value.kind == LILAC_TOKEN_WORD) {
        attribute->kind = LILAC_TILE_ATTR_BOOL;
        attribute->type = lilac_tile_scalar(reader->module, LILAC_I1);
        attribute->integer = value.text[0] == 't';
        return true;
    }
    bool is_float = value.kind == LILAC_TOKEN_FLOAT;
    attribute->type = lilac_tile_scalar(reader->module, is_float ? LILAC_F64 : LILAC_I64);
    if (lilac_scanner_accept(scan, ':')) {
        lilac_position position = lilac_scanner_position(scan);
        attribute->type = tile_read_type(reader);
        if (!attribute->type) {
            return false;
        }
        if (attribute->type->kind != LILAC_TILE_SCALAR) {
            return tile_fail(reader, position, "bad-literal", "a number cannot have the type '%s'",
                             tile_type_text(reader->module, attribute->type));
        }
    }
    lilac_scalar scalar = attribute->type->scalar;
    attribute->kind =
        lilac_scalar_is_float(scalar) ? LILAC_TILE_ATTR_FLOAT : LILAC_TILE_ATTR_INTEGER;
    if (scalar == LILAC_I1) {
        attribute->kind = LILAC_TILE_ATTR_BOOL;
    }
    return literal_bits(reader, &value, scalar, &attribute->integer);
}

/* array<i32: 1, 0> */
static bool read_integers(tile_reader *reader, lilac_tile_attribute *attribute) {
    lilac_scanner *scan = &reader->scan;
    lilac_scanner_next(scan);
    if (!lilac_scanner_expect(scan, '<')) {
        return false;
    }
    lilac_position position = lilac_scanner_position(scan);
    attribute->kind = LILAC_TILE_ATTR_INTEGERS;
    attribute->type = tile_read_type(reader);
    if (!attribute->type) {
        return false;
    }
    if (attribute->type->kind != LILAC_TILE_SCALAR ||
        lilac_scalar_is_float(attribute->type->scalar)) {
        return tile_fail(reader, position, "unsupported-attribute", "only arrays of integers");
    }
    integer_list integers = {0};
    if (lilac_scanner_accept(scan, ':')) {
        do {
            literal value;
            int64_t bits;
            if (!scan_literal(reader, &value) ||
                !literal_bits(reader, &value, attribute->type->scalar, &bits)) {
                return false;
            }
            integers_push(reader, &integers, bits);
        } while (lilac_scanner_accept(scan, ','));
    }
    attribute->count = integers.count;
    attribute->integers = keep_integers(reader, &integers);
    return lilac_scanner_expect(scan, '>');
}

typedef struct dense {
    literal *list;
    uint32_t count, capacity;
    uint32_t rank; /* depth of the lists, known from the first literal on */
    bool has_rank;
    int64_t shape[LILAC_MAX_RANK];
} dense;

/* [[1, 2], [3, 4]]: the literals in order; all lists of one depth must be of one length. */
static bool read_dense_list(tile_reader *reader, dense *all, uint32_t depth) {
    lilac_scanner *scan = &reader->scan;
    lilac_position position = lilac_scanner_position(scan);
    bool list = lilac_scanner_is(scan, '[');
    if (all->has_rank && (list ? depth >= all->rank : depth != all->rank)) {
        return tile_fail(reader, position, "shape-mismatch", "lists of different depth");
    }
    if (!list) {
        all->has_rank = true;
        all->rank = depth;
        all->list =
            tile_list_grow(reader, all->list, all->count, &all->capacity, sizeof *all->list);
        return scan_literal(reader, &all->list[all->count]) && ++all->count;
    }
    if (depth >= LILAC_MAX_RANK) {
        return tile_fail(reader, position, "nested-too-deep", "lists are nested too deep here");
    }
    lilac_scanner_next(scan);
    int64_t length = 0;
    do {
        if (!read_dense_list(reader, all, depth + 1)) {
            return false;
        }
        length++;
    } while (lilac_scanner_accept(scan, ','));
    if (all->shape[depth] == 0) {
        all->shape[depth] = length;
    }
    if (all->shape[depth] != length) {
        return tile_fail(reader, position, "shape-mismatch", "lists of different length");
    }
    return lilac_scanner_expect(scan, ']');
}

/* dense<"0x0A0B…">: the elements' bytes, lowest first. */
static bool read_dense_bytes(tile_reader *reader, const literal *text,
                             lilac_tile_attribute *attribute) {
    const lilac_tile_type *type = attribute->type;
    uint32_t bits = lilac_scalar_bits(type->scalar), width = bits / 8;
    uint64_t elements = (uint64_t)lilac_tile_element_count(type);
    uint32_t digits = text->length - 2;
    if (bits % 8 != 0 || width > 8) {
        return tile_fail(reader, text->position, "unsupported-attribute",
                         "elements of type '%s' as bytes", lilac_scalar_name(type->scalar));
    }
    uint64_t count = digits / (2 * width);
    if (digits % (2 * width) != 0 || (count != 1 && count != elements)) {
        return tile_fail(reader, text->position, "shape-mismatch",
                         "%u hexadecimal digits for %llu elements of %u bits", digits,
                         (unsigned long long)elements, bits);
    }
    integer_list integers = {0};
    for (uint64_t i = 0; i < count; i++) {
        uint64_t value = 0;
        for (uint32_t b = 0; b < width; b++) {
            const char *at = text->text + 2 + (i * width + b) * 2;
            int high = lilac_hex_digit(at[0]), low = lilac_hex_digit(at[1]);
            if (high < 0 || low < 0) {
                return tile_fail(reader, text->position, "bad-literal", "not hexadecimal digits");
            }
            value |= (uint64_t)(high << 4 | low) << (8 * b);
        }
        integers_push(reader, &integers, (int64_t)value);
    }
    attribute->count = (uint32_t)count;
    attribute->integers = keep_integers(reader, &integers);
    return true;
}

static bool dense_elements(tile_reader *reader, const dense *all, lilac_position position,
                           lilac_tile_attribute *attribute) {
    const lilac_tile_type *type = attribute->type;
    if (all->rank && (all->rank != type->rank ||
                      memcmp(all->shape, type->shape, sizeof *all->shape * all->rank) != 0)) {
        return tile_fail(reader, position, "shape-mismatch",
                         "the lists do not have the shape of '%s'",
                         tile_type_text(reader->module, type));
    }
    integer_list integers = {0};
    for (uint32_t i = 0; i < all->count; i++) {
        int64_t bits;
        if (!literal_bits(reader, &all->list[i], type->scalar, &bits)) {
            return false;
        }
        if (lilac_scalar_bits(type->scalar) <= 64) {
            bits = (int64_t)lilac_scalar_mask(type->scalar, (uint64_t)bits);
        }
        integers_push(reader, &integers, bits);
    }
    attribute->count = integers.count;
    attribute->integers = keep_integers(reader, &integers);
    return true;
}

/* dense<…> : tensor<…> */
static bool read_dense(tile_reader *reader, lilac_tile_attribute *attribute) {
    lilac_scanner *scan = &reader->scan;
    lilac_position position = lilac_scanner_position(scan);
    lilac_scanner_next(scan);
    if (!lilac_scanner_expect(scan, '<')) {
        return false;
    }
    dense all = {0};
    literal bytes = {.kind = LILAC_TOKEN_STRING, .position = lilac_scanner_position(scan)};
    if (scan->kind == LILAC_TOKEN_STRING && scan->word_length >= 2 &&
        memcmp(scan->word, "0x", 2) == 0) {
        bytes.text = scan->word;
        bytes.length = scan->word_length;
        lilac_scanner_next(scan);
    } else if (!read_dense_list(reader, &all, 0)) {
        return false;
    }
    if (!lilac_scanner_expect(scan, '>') || !lilac_scanner_expect(scan, ':')) {
        return false;
    }
    lilac_position type_position = lilac_scanner_position(scan);
    attribute->kind = LILAC_TILE_ATTR_DENSE;
    attribute->type = tile_read_type(reader);
    if (!attribute->type) {
        return false;
    }
    if (attribute->type->kind != LILAC_TILE_TENSOR ||
        attribute->type->element->kind != LILAC_TILE_SCALAR) {
        return tile_fail(reader, type_position, "bad-literal",
                         "dense<…> is a tensor of numbers, not a '%s'",
                         tile_type_text(reader->module, attribute->type));
    }
    if (bytes.text) {
        return read_dense_bytes(reader, &bytes, attribute);
    }
    return dense_elements(reader, &all, position, attribute);
}

/* [a, b] */
static bool read_array(tile_reader *reader, lilac_tile_attribute *attribute, uint32_t depth) {
    lilac_scanner *scan = &reader->scan;
    lilac_scanner_next(scan);
    lilac_tile_attributes list = {0};
    if (!lilac_scanner_is(scan, ']')) {
        do {
            lilac_tile_attribute element = {0};
            if (!read_value(reader, &element, depth + 1)) {
                return false;
            }
            tile_attribute_append(reader->module->arena, &list, &element);
        } while (lilac_scanner_accept(scan, ','));
    }
    attribute->kind = LILAC_TILE_ATTR_ARRAY;
    attribute->count = list.count;
    attribute->elements = list.list;
    return lilac_scanner_expect(scan, ']');
}

/* An array of these types, as an attribute. */
static lilac_tile_attribute type_array(tile_reader *reader, const tile_type_list *types) {
    lilac_tile_attributes list = {0};
    for (uint32_t i = 0; i < types->count; i++) {
        tile_attribute_append(
            reader->module->arena, &list,
            &(lilac_tile_attribute){.kind = LILAC_TILE_ATTR_TYPE, .type = types->list[i]});
    }
    return (lilac_tile_attribute){
        .kind = LILAC_TILE_ATTR_ARRAY, .count = list.count, .elements = list.list};
}

/* (i32, f16) -> f32 */
static bool read_function_type(tile_reader *reader, lilac_tile_attribute *attribute) {
    lilac_scanner *scan = &reader->scan;
    tile_type_list inputs = {0}, outputs = {0};
    if (!tile_read_parenthesized_types(reader, &inputs)) {
        return false;
    }
    if (scan->kind != LILAC_TOKEN_ARROW) {
        return lilac_scanner_expected(scan, "'->'");
    }
    lilac_scanner_next(scan);
    if (!tile_read_function_results(reader, &outputs)) {
        return false;
    }
    lilac_tile_attribute *both = lilac_arena_array(reader->module->arena, lilac_tile_attribute, 2);
    both[0] = type_array(reader, &inputs);
    both[1] = type_array(reader, &outputs);
    attribute->kind = LILAC_TILE_ATTR_FUNCTION;
    attribute->count = 2;
    attribute->elements = both;
    return true;
}

/* #arith.overflow<nsw, nuw>: an attribute that custom assembly writes as keywords. The text stays
 * whole: only the operation whose attribute it is takes the words out of it (see read_op.c). */
static bool read_keywords(tile_reader *reader, lilac_tile_attribute *attribute) {
    lilac_scanner *scan = &reader->scan;
    bool arith = scan->word_length > 6 && memcmp(scan->word, "arith.", 6) == 0;
    const tile_keywords *set =
        arith ? tile_keywords_find(scan->word + 6, scan->word_length - 6) : NULL;
    if (!set || !set->separator) {
        return tile_fail(reader, lilac_scanner_position(scan), "unsupported-attribute",
                         "attributes like '#%.*s' are not supported",
                         (int)(scan->word_length > 60 ? 60 : scan->word_length), scan->word);
    }
    lilac_scanner_next(scan);
    if (!lilac_scanner_expect(scan, '<')) {
        return false;
    }
    lilac_text text = {0};
    lilac_text_printf(&text, "#arith.%s<", set->name);
    bool good = true, first = true;
    do {
        good =
            scan->kind == LILAC_TOKEN_WORD && tile_keywords_has(set, scan->word, scan->word_length);
        if (!good) {
            (void)lilac_scanner_expected(scan, set->words);
            break;
        }
        if (!first) {
            lilac_text_puts(&text, set->separator);
        }
        first = false;
        lilac_text_put(&text, scan->word, scan->word_length);
        lilac_scanner_next(scan);
    } while (lilac_scanner_accept(scan, ','));
    lilac_text_char(&text, '>');
    attribute->kind = LILAC_TILE_ATTR_KEYWORD;
    attribute->text = lilac_intern(reader->context, lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
    return good && lilac_scanner_expect(scan, '>');
}

/* A value that begins with a punctuation character. */
static bool read_punctuated(tile_reader *reader, lilac_tile_attribute *attribute, uint32_t depth) {
    lilac_scanner *scan = &reader->scan;
    if (scan->punctuation == '-') {
        return read_number(reader, attribute);
    }
    if (scan->punctuation == '[') {
        return read_array(reader, attribute, depth);
    }
    if (scan->punctuation == '(') {
        return read_function_type(reader, attribute);
    }
    if (scan->punctuation == '{') {
        lilac_tile_attributes inner = {0};
        if (!read_dictionary(reader, &inner, depth + 1)) {
            return false;
        }
        attribute->kind = LILAC_TILE_ATTR_DICTIONARY;
        attribute->count = inner.count;
        attribute->elements = inner.list;
        return true;
    }
    return lilac_scanner_expected(scan, "an attribute");
}

static bool read_value(tile_reader *reader, lilac_tile_attribute *attribute, uint32_t depth) {
    lilac_scanner *scan = &reader->scan;
    if (depth > TILE_MAX_ATTRIBUTE_DEPTH) {
        return tile_fail(reader, lilac_scanner_position(scan), "nested-too-deep",
                         "attributes are nested too deep here");
    }
    switch (scan->kind) {
    case LILAC_TOKEN_INTEGER:
    case LILAC_TOKEN_FLOAT:
        return read_number(reader, attribute);
    case LILAC_TOKEN_STRING:
        attribute->kind = LILAC_TILE_ATTR_STRING;
        attribute->text = tile_token_name(reader);
        lilac_scanner_next(scan);
        return true;
    case LILAC_TOKEN_SYMBOL:
        attribute->kind = LILAC_TILE_ATTR_SYMBOL;
        attribute->text = tile_token_name(reader);
        lilac_scanner_next(scan);
        return true;
    case LILAC_TOKEN_HASH:
        if (tile_is_llvm(scan) || !memchr(scan->word, '.', scan->word_length)) {
            return tile_read_llvm(reader, attribute);
        }
        return read_keywords(reader, attribute);
    case LILAC_TOKEN_PUNCTUATION:
        return read_punctuated(reader, attribute, depth);
    case LILAC_TOKEN_WORD:
        if (tile_token_is(scan, "true") || tile_token_is(scan, "false")) {
            return read_number(reader, attribute);
        }
        if (tile_token_is(scan, "array")) {
            return read_integers(reader, attribute);
        }
        if (tile_token_is(scan, "dense")) {
            return read_dense(reader, attribute);
        }
        if (tile_token_is(scan, "unit")) {
            attribute->kind = LILAC_TILE_ATTR_UNIT;
            lilac_scanner_next(scan);
            return true;
        }
        break;
    default:
        break;
    }
    attribute->kind = LILAC_TILE_ATTR_TYPE;
    attribute->type = tile_read_type(reader);
    return attribute->type != NULL;
}

bool tile_read_attribute_value(tile_reader *reader, lilac_tile_attribute *attribute) {
    return read_value(reader, attribute, 0);
}

static bool read_dictionary(tile_reader *reader, lilac_tile_attributes *attributes,
                            uint32_t depth) {
    lilac_scanner *scan = &reader->scan;
    if (!lilac_scanner_expect(scan, '{')) {
        return false;
    }
    if (lilac_scanner_accept(scan, '}')) {
        return true;
    }
    do {
        lilac_tile_attribute attribute = {0};
        lilac_position position = lilac_scanner_position(scan);
        if (scan->kind != LILAC_TOKEN_WORD && scan->kind != LILAC_TOKEN_STRING) {
            return lilac_scanner_expected(scan, "an attribute's name");
        }
        attribute.name = tile_token_name(reader);
        lilac_scanner_next(scan);
        if (attributes->count >= 64) {
            return tile_fail(reader, position, "too-many-attributes",
                             "more than 64 attributes in one place");
        }
        if (lilac_tile_find(attributes, attribute.name)) {
            return tile_fail(reader, position, "redefinition", "attribute '%s' is there twice",
                             attribute.name);
        }
        attribute.kind = LILAC_TILE_ATTR_UNIT;
        if (lilac_scanner_accept(scan, '=') && !read_value(reader, &attribute, depth)) {
            return false;
        }
        tile_attribute_append(reader->module->arena, attributes, &attribute);
    } while (lilac_scanner_accept(scan, ','));
    return lilac_scanner_expect(scan, '}');
}

bool tile_read_dictionary(tile_reader *reader, lilac_tile_attributes *attributes) {
    return !lilac_scanner_is(&reader->scan, '{') || read_dictionary(reader, attributes, 0);
}
