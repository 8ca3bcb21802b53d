/* Types on the command line: one reader for every subcommand that takes a TYPE.
 *
 * A new kind of type (a memdesc, a CuTe layout …) that is read here is accepted by all subcommands.
 */
#include "types.h"

#include <stdio.h>
#include <string.h>

/* The bits of an element in registers and memory. */
static uint32_t element_bits(lilac_scalar scalar) {
    return scalar == LILAC_TF32 ? 32 : lilac_scalar_bits(scalar);
}

static bool read_tensor(lilac_scanner *scanner, const type_scope *scope, laid_out_type *type) {
    lilac_encoding_tensor tensor;
    if (!lilac_encoding_read_tensor(scanner, &scope->aliases, &tensor)) {
        return false;
    }
    type->rank = tensor.rank;
    memcpy(type->shape, tensor.shape, sizeof type->shape);
    type->scalar = tensor.scalar;
    type->pointers = tensor.pointers;
    type->element_bits = tensor.pointers ? 64 : element_bits(tensor.scalar);
    type->layout = tensor.layout;
    type->padding_count = 0;
    return true;
}

/* Padding counts elements and is not part of the layout. */
static void take_padding(laid_out_type *type, const lilac_encoding *encoding) {
    type->padding_count = 0;
    if (encoding != NULL && encoding->kind == LILAC_ENCODING_PADDED_SHARED) {
        type->padding_count = encoding->as.padded_shared.count;
        for (uint32_t i = 0; i < type->padding_count; i++) {
            type->padding[i].interval = encoding->as.padded_shared.interval[i];
            type->padding[i].padding = encoding->as.padded_shared.padding[i];
        }
    }
}

static bool read_memdesc(lilac_scanner *scanner, const type_scope *scope, laid_out_type *type) {
    lilac_encoding_memdesc memdesc;
    if (!lilac_encoding_read_memdesc(scanner, &scope->aliases, &memdesc)) {
        return false;
    }
    type->rank = memdesc.rank;
    memcpy(type->shape, memdesc.shape, sizeof type->shape);
    type->scalar = memdesc.scalar;
    type->pointers = false;
    type->element_bits = element_bits(memdesc.scalar);
    type->layout = memdesc.layout;
    take_padding(type, memdesc.encoding);
    return true;
}

/* A layout alone, applied to the tensor of --shape and --element. */
static bool read_attribute(lilac_scanner *scanner, const type_scope *scope, laid_out_type *type) {
    const lilac_position position = lilac_scanner_position(scanner);
    const lilac_encoding *encoding = lilac_encoding_read(scanner, &scope->aliases);
    if (encoding == NULL) {
        return false;
    }
    if (scope->rank == 0) {
        return lilac_scanner_refuse(scanner, position, "shape-missing",
                                    "a layout without a tensor has no shape: give --shape 128x64, "
                                    "or write tensor<128x64xf32, LAYOUT>");
    }
    type->rank = scope->rank;
    memcpy(type->shape, scope->shape, sizeof type->shape);
    type->scalar = scope->element;
    type->pointers = false;
    type->element_bits = element_bits(scope->element);
    take_padding(type, encoding);
    return lilac_encoding_layout(scanner->context, &type->layout, encoding, type->rank,
                                 type->shape);
}

/* "row_mayor(16x32)", "tensr<…>": a word that begins no type. */
static bool refuse_word(lilac_scanner *scanner) {
    static const char *const words[] = {"tensor",  "row_major", "column_major", "order",
                                        "strided", "tiled",     "padded"};
    const char *near = lilac_nearest_name(scanner->word, scanner->word_length, words,
                                          sizeof words / sizeof words[0]);
    return lilac_scanner_refuse(scanner, lilac_scanner_position(scanner), "type-unknown",
                                "'%.*s' begins neither a type nor a form of memory%s%s%s",
                                (int)(scanner->word_length < 64 ? scanner->word_length : 64),
                                scanner->word, LILAC_DID_YOU_MEAN(near));
}

static bool read_any(lilac_scanner *scanner, const type_scope *scope, laid_out_type *type) {
    switch (scanner->kind) {
    case LILAC_TOKEN_BANG:
        return read_memdesc(scanner, scope, type);
    case LILAC_TOKEN_HASH:
        return read_attribute(scanner, scope, type);
    case LILAC_TOKEN_WORD:
        return lilac_scanner_is_word(scanner, "tensor") ? read_tensor(scanner, scope, type)
                                                        : refuse_word(scanner);
    default:
        return lilac_scanner_expected(scanner, "a type, a layout or a form of memory");
    }
}

bool type_read(lilac_scanner *scanner, const type_scope *scope, laid_out_type *type) {
    if (form_at(scanner)) {
        return form_read_type(scanner, type);
    }
    if (!read_any(scanner, scope, type)) {
        return false;
    }
    if (scanner->kind != LILAC_TOKEN_END) {
        return lilac_scanner_expected(scanner, "the end of the type");
    }
    return lilac_error_count(scanner->context) == 0;
}

bool type_read_argument(lilac_context *context, const type_scope *scope, const char *text,
                        uint32_t number, laid_out_type *type) {
    char name[32];
    snprintf(name, sizeof name, "<argument %u>", number);
    const uint32_t source = lilac_source_add(context, name, text, strlen(text));
    if (source == 0) {
        return false;
    }
    lilac_scanner scanner;
    lilac_scanner_init(&scanner, context, source);
    return type_read(&scanner, scope, type);
}

bool type_of_tile(lilac_context *context, const lilac_tile_type *tile, laid_out_type *type) {
    if (tile->layout == NULL) {
        return false;
    }
    type->rank = tile->rank;
    memcpy(type->shape, tile->shape, tile->rank * sizeof *tile->shape);
    type->pointers = tile->element->kind == LILAC_TILE_POINTER;
    type->scalar = type->pointers ? tile->element->element->scalar : tile->scalar;
    type->element_bits = type->pointers ? 64 : element_bits(tile->scalar);
    take_padding(type, tile->encoding);
    if (tile->kind == LILAC_TILE_MEMDESC && tile->encoding != NULL) {
        const uint32_t buffers =
            tile->rank - tile->encoding->rank; /* a dimension that counts them */
        type->rank -= buffers;
        memmove(type->shape, type->shape + buffers, type->rank * sizeof *type->shape);
        return lilac_encoding_memory_layout(context, &type->layout, tile->encoding, type->rank,
                                            type->shape, tile->alloc_rank, tile->alloc_shape);
    }
    type->layout = *tile->layout;
    return true;
}

bool type_is_distributed(const laid_out_type *type) {
    return lilac_layout_in(&type->layout, "register") >= 0;
}

const lilac_arch *type_device(const laid_out_type *type) {
    return lilac_arch_find(lilac_layout_in_bits(&type->layout, "lane") == 6 ? "gfx942" : "sm_90a");
}
