/* Fuzz target: tensor and memdesc types with layouts, from any bytes.
 *
 * Whatever the bytes, the reader answers with a type or with a diagnostic. A type that it accepts
 * has a layout onto the whole tensor, and what it prints reads back as the same layout. A part of
 * an allocation has one of the part's shape, which need not be onto. */
#include <lilac/encoding.h>

#include <stdint.h>

static void check(bool holds) {
    if (!holds) {
        __builtin_trap();
    }
}

/* What both kinds of types have. */
typedef struct any_type {
    bool memory, part;
    uint32_t rank;
    const int64_t *shape;
    lilac_scalar scalar;
    const lilac_encoding *encoding;
    const lilac_layout *layout;
    lilac_encoding_tensor tensor;
    lilac_encoding_memdesc memdesc;
} any_type;

static bool read_tensor(lilac_scanner *scanner, any_type *type) {
    lilac_encoding_tensor *tensor = &type->tensor;
    type->memory = type->part = false;
    if (!lilac_encoding_read_tensor(scanner, NULL, tensor)) {
        return false;
    }
    type->rank = tensor->rank;
    type->shape = tensor->shape;
    type->scalar = tensor->scalar;
    type->encoding = tensor->encoding;
    type->layout = &tensor->layout;
    return true;
}

static bool read_memdesc(lilac_scanner *scanner, any_type *type) {
    lilac_encoding_memdesc *memdesc = &type->memdesc;
    type->memory = true;
    type->part = false;
    if (!lilac_encoding_read_memdesc(scanner, NULL, memdesc)) {
        return false;
    }
    type->rank = memdesc->rank;
    type->shape = memdesc->shape;
    type->scalar = memdesc->scalar;
    type->encoding = memdesc->encoding;
    type->layout = &memdesc->layout;
    for (uint32_t d = 0; d < memdesc->rank; d++) {
        type->part |=
            memdesc->shape[d] != memdesc->alloc_shape[memdesc->alloc_rank - memdesc->rank + d];
    }
    return true;
}

static bool read_type(lilac_context *context, const char *bytes, size_t length, any_type *type) {
    uint32_t source = lilac_source_add(context, "fuzz", bytes, length);
    lilac_scanner scanner;
    lilac_scanner_init(&scanner, context, source);
    return scanner.kind == LILAC_TOKEN_BANG ? read_memdesc(&scanner, type)
                                            : read_tensor(&scanner, type);
}

/* The same type again, from what its encoding prints. */
static void check_reads_back(lilac_context *context, const any_type *type) {
    bool tensor_memory = lilac_encoding_place_of(type->encoding) == LILAC_ENCODING_OF_TENSOR_MEMORY;
    lilac_text text = {0};
    lilac_text_puts(&text, type->memory ? "!ttg.memdesc<" : "tensor<");
    for (uint32_t d = 0; d < type->rank; d++) {
        lilac_text_signed(&text, type->shape[d]);
        lilac_text_char(&text, 'x');
    }
    lilac_text_puts(&text, lilac_scalar_name(type->scalar));
    lilac_text_puts(&text, ", ");
    lilac_encoding_print(&text, type->encoding);
    if (type->memory) {
        lilac_text_puts(&text, tensor_memory ? ", #tmem" : ", #smem");
    }
    for (uint32_t d = 0; type->memory && d < type->memdesc.alloc_rank; d++) {
        lilac_text_puts(&text, d == 0 ? ", " : "x");
        lilac_text_signed(&text, type->memdesc.alloc_shape[d]);
    }
    lilac_text_char(&text, '>');
    any_type again;
    check(read_type(context, text.bytes, text.length, &again));
    check(lilac_layout_equal(again.layout, type->layout));
    check(again.scalar == type->scalar);
    lilac_text_clear(&text);
}

static void check_type(lilac_context *context, const any_type *type) {
    check(type->layout->out_count == type->rank);
    for (uint32_t d = 0; d < type->rank; d++) {
        check(type->shape[d] == INT64_C(1) << type->layout->out[d].bits);
    }
    check_reads_back(context, type);
    if (type->part) {
        return;
    }
    lilac_layout inverse, unit;
    check(lilac_layout_is_surjective(type->layout));
    check(lilac_layout_pseudoinvert(&inverse, type->layout, NULL));
    check(lilac_layout_compose(&unit, type->layout, &inverse, NULL));
    for (uint32_t i = 0; i < unit.in_bits; i++) {
        check(unit.columns[i] == UINT64_C(1) << i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    lilac_context *context = lilac_context_create();
    any_type type;
    if (read_type(context, (const char *)data, size, &type)) {
        check_type(context, &type);
    } else {
        check(lilac_error_count(context) > 0);
    }
    lilac_text text = {0};
    for (const lilac_diagnostic *d = lilac_diagnostics(context); d != NULL; d = d->next) {
        lilac_diagnostic_print(&text, context, d, false);
    }
    lilac_text_clear(&text);
    lilac_context_destroy(context);
    return 0;
}
