/* Types on the command line: one reader for every subcommand that takes a TYPE.
 *
 * A new kind of type (a memdesc, a CuTe layout …) is read here, and then known to all of them.
 */
#include "types.h"

#include <stdio.h>
#include <string.h>

/* What one takes in registers and memory. */
static uint32_t element_bits(lilac_scalar scalar) {
    return scalar == LILAC_TF32 ? 32 : lilac_scalar_bits(scalar);
}

static bool read_tensor(lilac_scanner *scanner, laid_out_type *type) {
    lilac_encoding_tensor tensor;
    if (!lilac_encoding_read_tensor(scanner, NULL, &tensor)) {
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

static bool read_memdesc(lilac_scanner *scanner, laid_out_type *type) {
    lilac_encoding_memdesc memdesc;
    if (!lilac_encoding_read_memdesc(scanner, NULL, &memdesc)) {
        return false;
    }
    type->rank = memdesc.rank;
    memcpy(type->shape, memdesc.shape, sizeof type->shape);
    type->scalar = memdesc.scalar;
    type->pointers = false;
    type->element_bits = element_bits(memdesc.scalar);
    type->layout = memdesc.layout;
    type->padding_count = 0;
    if (memdesc.encoding->kind == LILAC_ENCODING_PADDED_SHARED) {
        type->padding_count = memdesc.encoding->as.padded_shared.count;
        for (uint32_t i = 0; i < type->padding_count; i++) {
            type->padding[i].interval = memdesc.encoding->as.padded_shared.interval[i];
            type->padding[i].padding = memdesc.encoding->as.padded_shared.padding[i];
        }
    }
    return true;
}

bool type_read(lilac_scanner *scanner, laid_out_type *type) {
    if (form_at(scanner)) {
        return form_read_type(scanner, type);
    }
    const bool memory = scanner->kind == LILAC_TOKEN_BANG;
    if (!(memory ? read_memdesc(scanner, type) : read_tensor(scanner, type))) {
        return false;
    }
    if (scanner->kind != LILAC_TOKEN_END) {
        return lilac_scanner_expected(scanner, "the end of the type");
    }
    return lilac_error_count(scanner->context) == 0;
}

bool type_read_argument(lilac_context *context, const char *text, uint32_t number,
                        laid_out_type *type) {
    char name[32];
    snprintf(name, sizeof name, "<argument %u>", number);
    const uint32_t source = lilac_source_add(context, name, text, strlen(text));
    if (source == 0) {
        return false;
    }
    lilac_scanner scanner;
    lilac_scanner_init(&scanner, context, source);
    return type_read(&scanner, type);
}

bool type_is_distributed(const laid_out_type *type) {
    return lilac_layout_in(&type->layout, "register") >= 0;
}

const lilac_arch *type_device(const laid_out_type *type) {
    return lilac_arch_find(lilac_layout_in_bits(&type->layout, "lane") == 6 ? "gfx942" : "sm_90a");
}
