/* Reading types, by recursive descent with a limit on depth:
 *
 *   scalar      i32 f16 index … si8 ui8 (in descriptors)
 *   pointer     !tt.ptr<type> !tt.ptr<type, space>
 *   tensor      tensor<8x16xf32> tensor<8x!tt.ptr<f16>, layout>
 *   descriptor  !tt.tensordesc<tensor<8x16xf32>>   the tensor may have a layout of shared memory
 *   memory      !ttg.memdesc<2x8x16xf32, layout, #smem, mutable>
 *
 * A layout is read by `encoding` and becomes a linear layout at once, with the tensor's shape. */
#include "internal.h"

#include <string.h>

/* ---- lists ------------------------------------------------------------------------------ */

void *tile_list_grow(tile_reader *reader, void *old, uint32_t count, uint32_t *capacity,
                     size_t size) {
    if (count < *capacity) {
        return old;
    }
    *capacity = *capacity ? *capacity * 2 : 8;
    void *list = lilac_arena_alloc(reader->scratch, size * *capacity);
    if (count) {
        memcpy(list, old, size * count);
    }
    return list;
}

void tile_operands_push(tile_reader *reader, tile_operands *operands, tile_operand operand) {
    operands->list = tile_list_grow(reader, operands->list, operands->count, &operands->capacity,
                                    sizeof *operands->list);
    operands->list[operands->count++] = operand;
}

void tile_type_list_push(tile_reader *reader, tile_type_list *list, const lilac_tile_type *type) {
    list->list =
        tile_list_grow(reader, list->list, list->count, &list->capacity, sizeof *list->list);
    list->list[list->count++] = type;
}

/* ---- tokens ---------------------------------------------------------------------------- */

lilac_name tile_token_name(tile_reader *reader) {
    return lilac_intern(reader->context, reader->scan.word, reader->scan.word_length);
}

bool tile_token_is(const lilac_scanner *scan, const char *word) {
    return strlen(word) == scan->word_length && memcmp(word, scan->word, scan->word_length) == 0;
}

/* ---- types ------------------------------------------------------------------------------ */

static const lilac_tile_type *read_type(tile_reader *reader, uint32_t depth, bool described);

static bool check_shape(tile_reader *reader, lilac_position position, uint32_t rank,
                        const int64_t *shape) {
    int64_t elements = 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] & (shape[i] - 1)) {
            return tile_fail(reader, position, "not-a-power-of-two",
                             "dimension %u of this tensor is %lld, which is not a power of two", i,
                             (long long)shape[i]);
        }
        if (shape[i] > TILE_MAX_ELEMENTS || (elements *= shape[i]) > TILE_MAX_ELEMENTS) {
            return tile_fail(reader, position, "tensor-too-large",
                             "this tensor has more than %lld elements",
                             (long long)TILE_MAX_ELEMENTS);
        }
    }
    return true;
}

/* The layout of a tensor, or of the memory that a descriptor's tensors go to. */
static bool read_layout(tile_reader *reader, bool described, uint32_t rank, const int64_t *shape,
                        const lilac_encoding **encoding, lilac_layout *layout) {
    lilac_position at = lilac_scanner_position(&reader->scan);
    *encoding = lilac_encoding_read(&reader->scan, &reader->encodings);
    if (!*encoding) {
        return false;
    }
    lilac_encoding_place place = lilac_encoding_place_of(*encoding);
    if (place != LILAC_ENCODING_OF_TENSOR && !described) {
        return tile_fail(reader, at, "layout-of-memory",
                         "this is a layout of memory, not of a tensor");
    }
    return lilac_encoding_layout(reader->context, layout, *encoding, rank, shape);
}

/* "<8x16xf32, #layout>" after tensor. */
static const lilac_tile_type *read_tensor(tile_reader *reader, lilac_position position,
                                          uint32_t depth, bool described) {
    lilac_scanner *scan = &reader->scan;
    int64_t shape[LILAC_MAX_RANK];
    uint32_t rank;
    if (!lilac_scanner_expect(scan, '<') ||
        !lilac_scanner_shape(scan, shape, LILAC_MAX_RANK, &rank) ||
        !check_shape(reader, position, rank, shape)) {
        return NULL;
    }
    lilac_position at = lilac_scanner_position(scan);
    const lilac_tile_type *element = read_type(reader, depth + 1, false);
    if (!element) {
        return NULL;
    }
    if (element->kind != LILAC_TILE_SCALAR && element->kind != LILAC_TILE_POINTER) {
        if (element->kind == LILAC_TILE_INTEGER) {
            (void)tile_fail(reader, at, "unsupported-type", "tensors of '%s' are not supported",
                            tile_type_text(reader->module, element));
        } else {
            (void)tile_fail(reader, at, "bad-type", "a tensor's elements are numbers or pointers");
        }
        return NULL;
    }
    lilac_layout layout;
    const lilac_encoding *encoding = NULL;
    if (lilac_scanner_accept(scan, ',') &&
        !read_layout(reader, described, rank, shape, &encoding, &layout)) {
        return NULL;
    }
    if (!lilac_scanner_expect(scan, '>')) {
        return NULL;
    }
    if (!encoding) {
        return lilac_tile_tensor(reader->module, element, rank, shape, NULL);
    }
    return tile_tensor_spelled(reader->module, element, rank, shape, &layout, encoding);
}

static const lilac_tile_type *read_pointer(tile_reader *reader, uint32_t depth) {
    lilac_scanner *scan = &reader->scan;
    if (!lilac_scanner_expect(scan, '<')) {
        return NULL;
    }
    const lilac_tile_type *pointee = read_type(reader, depth + 1, false);
    int64_t space = 1;
    if (!pointee) {
        return NULL;
    }
    if (lilac_scanner_accept(scan, ',')) {
        lilac_position at = lilac_scanner_position(scan);
        if (!lilac_scanner_integer(scan, &space)) {
            return NULL;
        }
        if (space < 0 || space > 255) {
            (void)tile_fail(reader, at, "bad-type", "address spaces are numbers from 0 to 255");
            return NULL;
        }
    }
    if (!lilac_scanner_expect(scan, '>')) {
        return NULL;
    }
    return lilac_tile_pointer(reader->module, pointee, (uint32_t)space);
}

static const lilac_tile_type *read_descriptor(tile_reader *reader, uint32_t depth) {
    lilac_scanner *scan = &reader->scan;
    if (!lilac_scanner_expect(scan, '<')) {
        return NULL;
    }
    lilac_position at = lilac_scanner_position(scan);
    const lilac_tile_type *tensor = read_type(reader, depth + 1, true);
    if (!tensor) {
        return NULL;
    }
    if (tensor->kind != LILAC_TILE_TENSOR) {
        (void)tile_fail(reader, at, "bad-type", "a tensor descriptor describes tensors");
        return NULL;
    }
    if (!lilac_scanner_expect(scan, '>')) {
        return NULL;
    }
    return lilac_tile_descriptor(reader->module, tensor);
}

/* What follows !ttg.memdesc. */
static const lilac_tile_type *read_memory(tile_reader *reader) {
    lilac_position at = lilac_scanner_position(&reader->scan);
    lilac_encoding_memdesc memory;
    if (!lilac_encoding_read_memory(&reader->scan, &reader->encodings, true, &memory)) {
        return NULL;
    }
    int64_t elements = 1;
    for (uint32_t i = 0; i < memory.alloc_rank; i++) {
        if (memory.alloc_shape[i] <= TILE_MAX_ELEMENTS) {
            elements *= memory.alloc_shape[i];
        }
        if (memory.alloc_shape[i] > TILE_MAX_ELEMENTS || elements > TILE_MAX_ELEMENTS) {
            (void)tile_fail(reader, at, "tensor-too-large",
                            "this memory has more than %lld elements",
                            (long long)TILE_MAX_ELEMENTS);
            return NULL;
        }
    }
    if (memory.encoding == NULL) {
        return lilac_tile_memory(reader->module, &memory);
    }
    const int64_t *last = memory.alloc_shape + memory.alloc_rank - memory.encoding->rank;
    if (!lilac_encoding_layout(reader->context, &memory.layout, memory.encoding,
                               memory.encoding->rank, last)) {
        return NULL;
    }
    return lilac_tile_memory(reader->module, &memory);
}

static const lilac_tile_type *unknown_type(tile_reader *reader) {
    lilac_scanner *scan = &reader->scan;
    (void)tile_fail(reader, lilac_scanner_position(scan), "unknown-type", "unknown type '%.*s'",
                    (int)(scan->end - scan->offset > 60 ? 60 : scan->end - scan->offset),
                    scan->text + scan->offset);
    return NULL;
}

/* i7, i48, …: integers that no operation computes with. The widest is MLIR's. */
static const lilac_tile_type *read_integer(tile_reader *reader, const char *word, uint32_t length,
                                           char sign) {
    enum { WIDEST = (1 << 24) - 1 };
    uint32_t width = 0;
    for (uint32_t i = 1; i < length; i++) {
        bool digit = word[i] >= (i == 1 ? '1' : '0') && word[i] <= '9';
        if (word[0] != 'i' || !digit) {
            return unknown_type(reader);
        }
        width = width * 10 + (uint32_t)(word[i] - '0');
        if (width > WIDEST) {
            (void)tile_fail(reader, lilac_scanner_position(&reader->scan), "bad-type",
                            "an integer of more than %d bits", WIDEST);
            return NULL;
        }
    }
    if (width == 0) {
        return unknown_type(reader);
    }
    lilac_scanner_next(&reader->scan);
    return tile_type_intern(
        reader->module,
        &(lilac_tile_type){.kind = LILAC_TILE_INTEGER, .width = width, .sign = sign});
}

/* i32, f16, … and si8, ui8. */
static const lilac_tile_type *read_scalar(tile_reader *reader) {
    lilac_scanner *scan = &reader->scan;
    lilac_scalar scalar;
    char sign = 0;
    const char *word = scan->word;
    uint32_t length = scan->word_length;
    if (length > 2 && (word[0] == 's' || word[0] == 'u') && word[1] == 'i') {
        sign = word[0];
        word++;
        length--;
    }
    if (!lilac_scalar_read(word, length, &scalar)) {
        return read_integer(reader, word, length, sign);
    }
    lilac_scanner_next(scan);
    if (!sign) {
        return lilac_tile_scalar(reader->module, scalar);
    }
    return tile_type_intern(
        reader->module,
        &(lilac_tile_type){.kind = LILAC_TILE_SCALAR, .scalar = scalar, .sign = sign});
}

static const lilac_tile_type *read_type(tile_reader *reader, uint32_t depth, bool described) {
    lilac_scanner *scan = &reader->scan;
    lilac_position position = lilac_scanner_position(scan);
    if (depth > TILE_MAX_TYPE_DEPTH) {
        (void)tile_fail(reader, position, "nested-too-deep", "types are nested too deep here");
        return NULL;
    }
    if (scan->kind == LILAC_TOKEN_WORD) {
        if (!tile_token_is(scan, "tensor")) {
            return read_scalar(reader);
        }
        lilac_scanner_next(scan);
        return read_tensor(reader, position, depth, described);
    }
    if (scan->kind != LILAC_TOKEN_BANG) {
        (void)lilac_scanner_expected(scan, "a type");
        return NULL;
    }
    if (tile_token_is(scan, "tt.ptr")) {
        lilac_scanner_next(scan);
        return read_pointer(reader, depth);
    }
    if (tile_token_is(scan, "tt.tensordesc")) {
        lilac_scanner_next(scan);
        return read_descriptor(reader, depth);
    }
    if (tile_token_is(scan, "ttg.memdesc")) {
        lilac_scanner_next(scan);
        return read_memory(reader);
    }
    if (tile_token_is(scan, "ttg.async.token")) {
        lilac_scanner_next(scan);
        return lilac_tile_token(reader->module);
    }
    return unknown_type(reader);
}

/* The end of the text of a type that begins at the token and has its last ">" on the same line; 0
 * when it is not so simple. */
static uint32_t text_end(const lilac_scanner *scan) {
    uint32_t depth = 0;
    size_t limit = scan->offset + 1024 < scan->length ? scan->offset + 1024 : scan->length;
    for (size_t at = scan->offset; at < limit; at++) {
        char c = scan->text[at];
        if (c == '<') {
            depth++;
        } else if (c == '>' && (depth == 0 || --depth == 0)) {
            return depth == 0 ? (uint32_t)at + 1 : 0;
        } else if (c == '\n' || c == '"' || c == '/' || (depth == 0 && (c == ' ' || c == ','))) {
            return 0;
        }
    }
    return 0;
}

/* A kernel writes the same few types again and again: their texts are remembered. */
const lilac_tile_type *tile_read_type(tile_reader *reader) {
    lilac_scanner *scan = &reader->scan;
    bool composite =
        scan->kind == LILAC_TOKEN_BANG || (scan->kind == LILAC_TOKEN_WORD && scan->word[0] == 't');
    uint32_t end = composite ? text_end(scan) : 0;
    if (!end) {
        return read_type(reader, 0, false);
    }
    lilac_name text = lilac_intern(reader->context, scan->text + scan->offset, end - scan->offset);
    const lilac_tile_type *type = tile_table_get(&reader->types, text);
    if (type) {
        lilac_scanner_seek(scan, end);
        return type;
    }
    type = read_type(reader, 0, false);
    if (type && scan->previous_end == end) {
        *tile_table_at(&reader->types, text) = (void *)(uintptr_t)type;
    }
    return type;
}

const lilac_tile_type *tile_read_type_rest(tile_reader *reader, lilac_tile_type_kind kind) {
    return kind == LILAC_TILE_DESCRIPTOR ? read_descriptor(reader, 0)
           : kind == LILAC_TILE_MEMDESC  ? read_memory(reader)
                                         : read_pointer(reader, 0);
}

bool tile_read_types(tile_reader *reader, tile_type_list *list) {
    do {
        const lilac_tile_type *type = tile_read_type(reader);
        if (!type) {
            return false;
        }
        tile_type_list_push(reader, list, type);
    } while (lilac_scanner_accept(&reader->scan, ','));
    return true;
}

bool tile_read_parenthesized_types(tile_reader *reader, tile_type_list *list) {
    if (!lilac_scanner_expect(&reader->scan, '(')) {
        return false;
    }
    if (lilac_scanner_accept(&reader->scan, ')')) {
        return true;
    }
    return tile_read_types(reader, list) && lilac_scanner_expect(&reader->scan, ')');
}

bool tile_read_function_results(tile_reader *reader, tile_type_list *list) {
    if (lilac_scanner_is(&reader->scan, '(')) {
        return tile_read_parenthesized_types(reader, list);
    }
    const lilac_tile_type *type = tile_read_type(reader);
    if (type) {
        tile_type_list_push(reader, list, type);
    }
    return type != NULL;
}
