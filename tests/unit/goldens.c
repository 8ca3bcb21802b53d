/* The linear layouts that Triton computes for tensor types, against ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lilac/encoding.h>

#include "jsonl.h"

static const char *const inputs[] = {"register", "lane", "warp", "block"};

static bool read_type(lilac_context *context, const char *text, lilac_encoding_tensor *tensor) {
    lilac_scanner scanner;
    lilac_scanner_init(&scanner, context, lilac_source_add(context, "golden", text, strlen(text)));
    return lilac_encoding_read_tensor(&scanner, NULL, tensor) && scanner.kind == LILAC_TOKEN_END;
}

/* Whether every input has the columns of the array under its name in `expected`. */
static bool same_columns(const lilac_layout *layout, const char *expected) {
    for (uint32_t i = 0; i < 4; i++) {
        const char *array = json_member(expected, inputs[i]);
        assert_non_null(array);
        uint32_t bit = 0;
        for (const char *basis = json_first(array); basis != NULL; basis = json_after(basis)) {
            if (bit >= lilac_layout_in_bits(layout, inputs[i]))
                return false;
            uint64_t column = lilac_layout_column(layout, inputs[i], bit++);
            uint32_t dim = 0;
            for (const char *at = json_first(basis); at != NULL; at = json_after(at)) {
                if (dim >= layout->out_count ||
                    lilac_layout_coordinate(layout, column, dim++) != (uint64_t)json_number(at))
                    return false;
            }
            if (dim != layout->out_count)
                return false;
        }
        if (bit != lilac_layout_in_bits(layout, inputs[i]))
            return false;
    }
    return true;
}

static bool same_shape(const lilac_encoding_tensor *tensor, const char *shape) {
    uint32_t dim = 0;
    for (const char *at = json_first(shape); at != NULL; at = json_after(at), dim++) {
        if (dim >= tensor->rank || tensor->shape[dim] != json_number(at) ||
            (INT64_C(1) << tensor->layout.out[dim].bits) != json_number(at))
            return false;
    }
    return dim == tensor->rank && tensor->layout.out_count == tensor->rank;
}

/* The same layout written as #ttg.linear<…> must read as itself. */
static bool linear_form_is_same(lilac_context *context, const char *type,
                                const lilac_encoding_tensor *tensor) {
    lilac_text text = {0};
    lilac_encoding_tensor again;
    lilac_text_put(&text, type, (size_t)(strchr(type, '#') - type));
    lilac_layout_print(&text, &tensor->layout);
    lilac_text_char(&text, '>');
    bool same = read_type(context, lilac_text_get(&text), &again) &&
                lilac_layout_equal(&again.layout, &tensor->layout);
    lilac_text_clear(&text);
    return same;
}

/* And the attribute's own text must print as it was read. */
static bool prints_as_read(const char *type, const lilac_encoding_tensor *tensor) {
    lilac_text text = {0};
    lilac_encoding_print(&text, tensor->encoding);
    lilac_text_char(&text, '>');
    bool same = strcmp(strchr(type, '#'), lilac_text_get(&text)) == 0;
    lilac_text_clear(&text);
    return same;
}

static void compare_file(const char *path, const char *bases, uint32_t at_least) {
    json_lines lines = {fopen(path, "r"), NULL, 0};
    assert_non_null(lines.file);
    uint32_t equal = 0, wrong = 0, skipped = 0;
    for (const char *line; (line = json_next_line(&lines)) != NULL;) {
        lilac_context *context = lilac_context_create();
        char *type = json_string(json_member(line, "type"));
        const char *expected = bases == NULL ? line : json_member(line, bases);
        lilac_encoding_tensor tensor;
        if (!read_type(context, type, &tensor)) {
            const lilac_diagnostic *diagnostic = lilac_diagnostics(context);
            bool unsupported = diagnostic && strcmp(diagnostic->id, "layout-not-supported") == 0;
            skipped += unsupported;
            wrong += !unsupported;
            if (!unsupported)
                print_error("refused: %s\n", type);
        } else if (!same_shape(&tensor, json_member(line, "shape")) ||
                   !same_columns(&tensor.layout, expected)) {
            print_error("wrong layout: %s\n", type);
            wrong++;
        } else if (!linear_form_is_same(context, type, &tensor) || !prints_as_read(type, &tensor)) {
            print_error("reads back differently: %s\n", type);
            wrong++;
        } else {
            equal++;
        }
        free(type);
        lilac_context_destroy(context);
    }
    fclose(lines.file);
    free(lines.line);
    print_message("%u equal, %u wrong, %u of kinds not supported\n", equal, wrong, skipped);
    assert_int_equal(wrong, 0);
    assert_true(equal >= at_least);
}

static void layouts_are_those_of_triton(void **state) {
    (void)state;
    compare_file(LILAC_TEST_DATA "/goldens/layouts_blocked_slice.jsonl", NULL, 1250);
}

static void layouts_are_those_of_triton_main(void **state) {
    (void)state;
    compare_file(LILAC_TEST_DATA "/goldens/unit_blocked_slice.jsonl", "bases", 12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_are_those_of_triton),
        cmocka_unit_test(layouts_are_those_of_triton_main),
    };
    return cmocka_run_group_tests_name("goldens", tests, NULL, NULL);
}
