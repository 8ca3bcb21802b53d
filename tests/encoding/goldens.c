/* The linear layouts that Triton computes for tensor types, against ours. */

#include <lilac/encoding.h>

#include "support/jsonl.h"
#include "support/test.h"

/* A tensor's or a memory's type. */
typedef struct golden {
    const lilac_encoding *encoding;
    uint32_t rank;
    const int64_t *shape;
    const lilac_layout *layout;
    lilac_encoding_tensor tensor;
    lilac_encoding_memdesc memdesc;
} golden;

static bool read_type(lilac_context *context, const char *text, golden *type) {
    lilac_scanner scanner;
    lilac_scanner_init(&scanner, context, lilac_source_add(context, "golden", text, strlen(text)));
    bool good;
    if (text[0] == '!') {
        good = lilac_encoding_read_memdesc(&scanner, NULL, &type->memdesc);
        type->encoding = type->memdesc.encoding;
        type->rank = type->memdesc.rank;
        type->shape = type->memdesc.shape;
        type->layout = &type->memdesc.layout;
    } else {
        good = lilac_encoding_read_tensor(&scanner, NULL, &type->tensor);
        type->encoding = type->tensor.encoding;
        type->rank = type->tensor.rank;
        type->shape = type->tensor.shape;
        type->layout = &type->tensor.layout;
    }
    return good && scanner.kind == LILAC_TOKEN_END;
}

/* The columns of one input against its array. */
static bool same_input(const lilac_layout *layout, const char *input, const char *array) {
    uint32_t bit = 0;
    for (const char *basis = json_first(array); basis != NULL; basis = json_after(basis)) {
        if (bit >= lilac_layout_in_bits(layout, input)) {
            return false;
        }
        uint64_t column = lilac_layout_column(layout, input, bit++);
        uint32_t dim = 0;
        for (const char *at = json_first(basis); at != NULL; at = json_after(at)) {
            if (dim >= layout->out_count ||
                lilac_layout_coordinate(layout, column, dim++) != (uint64_t)json_number(at)) {
                return false;
            }
        }
        if (dim != layout->out_count) {
            return false;
        }
    }
    return bit == lilac_layout_in_bits(layout, input);
}

/* Whether the layout's inputs are those that `expected` has, with their columns. */
static bool same_columns(const lilac_layout *layout, const char *expected) {
    static const char *const names[] = {"register", "lane",      "warp", "block",
                                        "offset",   "partition", "row",  "col"};
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *array = json_member(expected, names[i]);
        if ((array != NULL) != (lilac_layout_in(layout, names[i]) >= 0) ||
            (array != NULL && !same_input(layout, names[i], array))) {
            return false;
        }
    }
    return true;
}

static bool same_shape(const golden *type, const char *shape) {
    uint32_t dim = 0;
    for (const char *at = json_first(shape); at != NULL; at = json_after(at), dim++) {
        if (dim >= type->rank || type->shape[dim] != json_number(at) ||
            (INT64_C(1) << type->layout->out[dim].bits) != json_number(at)) {
            return false;
        }
    }
    return dim == type->rank && type->layout->out_count == type->rank;
}

/* The same layout written by its bases must read as itself. */
static bool linear_form_is_same(lilac_context *context, const char *text, const golden *type) {
    /* A part of an allocation may lack elements. */
    if (text[0] == '!' && !lilac_layout_is_surjective(type->layout)) {
        return true;
    }
    bool rows = lilac_layout_in(type->layout, "row") >= 0;
    lilac_text again_text = {0};
    golden again;
    lilac_text_put(&again_text, text, (size_t)(strchr(text, '#') - text));
    lilac_layout_print(&again_text, type->layout);
    lilac_text_puts(&again_text, text[0] != '!' ? ">" : rows ? ", #tmem>" : ", #smem>");
    bool same = read_type(context, lilac_text_get(&again_text), &again) &&
                lilac_layout_equal(again.layout, type->layout);
    lilac_text_clear(&again_text);
    return same;
}

/* The attribute's text with its fields in the order that they are printed in must print as it was
 * read; another order must at least read back. */
static bool prints_as_read(lilac_context *context, const char *text, const golden *type) {
    lilac_text again_text = {0};
    golden again;
    const char *start = strchr(text, '#');
    lilac_text_put(&again_text, text, (size_t)(start - text));
    size_t at = again_text.length;
    lilac_encoding_print(&again_text, type->encoding);
    bool same = strncmp(start, again_text.bytes + at, again_text.length - at) == 0;
    lilac_text_puts(&again_text, start + (again_text.length - at));
    same = same && read_type(context, lilac_text_get(&again_text), &again) &&
           lilac_layout_equal(again.layout, type->layout);
    lilac_text_clear(&again_text);
    return same;
}

static void compare_file(const char *path, const char *bases, uint32_t expected_count) {
    json_lines lines = {fopen(path, "r"), NULL, 0};
    assert_non_null(lines.file);
    uint32_t equal = 0, wrong = 0;
    for (const char *line; (line = json_next_line(&lines)) != NULL;) {
        lilac_context *context = lilac_context_create();
        char *text = json_string(json_member(line, "type"));
        const char *expected = bases == NULL ? line : json_member(line, bases);
        golden type;
        if (!read_type(context, text, &type)) {
            const lilac_diagnostic *diagnostic = lilac_diagnostics(context);
            print_error("refused: %s: %s\n", text, diagnostic ? diagnostic->message : "");
            wrong++;
        } else if (!same_shape(&type, json_member(line, "shape")) ||
                   !same_columns(type.layout, expected)) {
            lilac_text ours = {0};
            lilac_layout_json(&ours, type.layout);
            print_error("wrong layout: %s\n  %s\n", text, lilac_text_get(&ours));
            lilac_text_clear(&ours);
            wrong++;
        } else if (!linear_form_is_same(context, text, &type) ||
                   !prints_as_read(context, text, &type)) {
            print_error("reads back differently: %s\n", text);
            wrong++;
        } else {
            equal++;
        }
        free(text);
        lilac_context_destroy(context);
    }
    fclose(lines.file);
    free(lines.line);
    print_message("%u equal, %u wrong\n", equal, wrong);
    assert_int_equal(wrong, 0);
    assert_int_equal(equal, expected_count);
}

static void layouts_are_those_of_triton(void **state) {
    (void)state;
    compare_file(LILAC_TEST_DATA "/goldens/layouts.jsonl", NULL, 7566);
}

static void layouts_are_those_of_triton_main(void **state) {
    (void)state;
    compare_file(LILAC_TEST_DATA "/goldens/unit.jsonl", "bases", 192);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_are_those_of_triton),
        cmocka_unit_test(layouts_are_those_of_triton_main),
    };
    return cmocka_run_group_tests_name("goldens", tests, NULL, NULL);
}
