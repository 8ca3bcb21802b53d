/* Fuzz target: tensor types with layouts, from any bytes.
 *
 * Whatever the bytes, the reader answers with a type or with a diagnostic. A type that it accepts
 * has a layout onto the whole tensor, and what it prints reads back as the same layout. */
#include <lilac/encoding.h>

#include <stdint.h>

static void check(bool holds) {
    if (!holds)
        __builtin_trap();
}

static bool read_type(lilac_context *context, const char *bytes, size_t length,
                      lilac_encoding_tensor *tensor) {
    uint32_t source = lilac_source_add(context, "fuzz", bytes, length);
    lilac_scanner scanner;
    lilac_scanner_init(&scanner, context, source);
    return lilac_encoding_read_tensor(&scanner, NULL, tensor);
}

static void check_type(lilac_context *context, const lilac_encoding_tensor *tensor) {
    check(lilac_layout_is_surjective(&tensor->layout));
    check(tensor->layout.out_count == tensor->rank);
    lilac_text text = {0};
    lilac_text_puts(&text, "tensor<");
    for (uint32_t d = 0; d < tensor->rank; d++) {
        check(tensor->shape[d] == INT64_C(1) << tensor->layout.out[d].bits);
        lilac_text_signed(&text, tensor->shape[d]);
        lilac_text_char(&text, 'x');
    }
    lilac_text_puts(&text, lilac_scalar_name(tensor->scalar));
    lilac_text_puts(&text, ", ");
    lilac_encoding_print(&text, tensor->encoding);
    lilac_text_char(&text, '>');
    lilac_encoding_tensor again;
    check(read_type(context, text.bytes, text.length, &again));
    check(lilac_layout_equal(&again.layout, &tensor->layout));
    check(again.scalar == tensor->scalar);

    lilac_layout inverse, unit;
    check(lilac_layout_pseudoinvert(&inverse, &tensor->layout, NULL));
    check(lilac_layout_compose(&unit, &tensor->layout, &inverse, NULL));
    for (uint32_t i = 0; i < unit.in_bits; i++)
        check(unit.columns[i] == UINT64_C(1) << i);
    lilac_text_clear(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    lilac_context *context = lilac_context_create();
    lilac_encoding_tensor tensor;
    if (read_type(context, (const char *)data, size, &tensor))
        check_type(context, &tensor);
    else
        check(lilac_error_count(context) > 0);
    lilac_text text = {0};
    for (const lilac_diagnostic *d = lilac_diagnostics(context); d != NULL; d = d->next)
        lilac_diagnostic_print(&text, context, d, false);
    lilac_text_clear(&text);
    lilac_context_destroy(context);
    return 0;
}
