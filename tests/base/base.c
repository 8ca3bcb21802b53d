/* base: arenas, text, names, locations, diagnostics and the scanner. */

#include <lilac/source.h>

#include "support/test.h"

static void arena_gives_zeroed_aligned_memory(void **state) {
    (void)state;
    lilac_arena *arena = lilac_arena_create();
    lilac_random random;
    lilac_random_seed(&random, 1);
    unsigned char *before = NULL;
    size_t before_size = 0;
    for (int i = 0; i < 2000; i++) {
        size_t size = lilac_random_below(&random, i % 100 == 0 ? 3000000 / (size_t)(i + 1) : 300);
        unsigned char *memory = lilac_arena_alloc(arena, size);
        assert_int_equal((uintptr_t)memory % 16, 0);
        for (size_t k = 0; k < size; k++) {
            assert_int_equal(memory[k], 0);
        }
        memset(memory, 0xA5, size);
        for (size_t k = 0; k < before_size; k++) {
            assert_int_equal(before[k], 0x5A);
        }
        memset(memory, 0x5A, size);
        before = memory;
        before_size = size;
    }
    assert_true(lilac_arena_used(arena) > 2000 * 16);
    lilac_arena_destroy(arena);
}

static jmp_buf no_memory;
static size_t asked_for;

static void leave(size_t size) {
    asked_for = size;
    longjmp(no_memory, 1);
}

static void out_of_memory_calls_the_handler(void **state) {
    (void)state;
    lilac_arena *arena = lilac_arena_create();
    lilac_set_out_of_memory(leave);
    if (setjmp(no_memory) == 0) {
        lilac_arena_alloc(arena, SIZE_MAX / 2);
        fail_msg("there is no such memory");
    }
    assert_true(asked_for == SIZE_MAX / 2);
    lilac_set_out_of_memory(NULL);
    assert_non_null(lilac_arena_alloc(arena, 100));
    lilac_arena_destroy(arena);
}

static void text_grows_and_prints(void **state) {
    (void)state;
    lilac_text text = {0};
    assert_string_equal(lilac_text_get(&text), "");
    lilac_text_unsigned(&text, UINT64_MAX);
    lilac_text_char(&text, ' ');
    lilac_text_signed(&text, INT64_MIN);
    lilac_text_printf(&text, " %s %d", "x", 7);
    assert_string_equal(lilac_text_get(&text), "18446744073709551615 -9223372036854775808 x 7");
    lilac_text_reset(&text);
    lilac_text_json(&text, "a\"\\\n\t\001\xC3\xA9\xFF", 9);
    assert_string_equal(lilac_text_get(&text), "\"a\\\"\\\\\\n\\t\\u0001\xC3\xA9\\ufffd\"");
    lilac_text_reset(&text);
    for (int i = 0; i < 10000; i++) {
        lilac_text_char(&text, (char)('a' + i % 26));
    }
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(text.bytes[i], 'a' + i % 26);
    }
    lilac_text_clear(&text);
}

static void names_are_equal_when_texts_are(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_name names[3000];
    char text[16];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3000; i++) {
            int length = snprintf(text, sizeof text, "n%d", i);
            lilac_name name = lilac_intern(context, text, (size_t)length);
            assert_string_equal(name, text);
            if (round) {
                assert_ptr_equal(name, names[i]);
            }
            names[i] = name;
        }
    }
    assert_ptr_not_equal(names[1], names[2]);
    lilac_context_destroy(context);
}

static void random_numbers_cover_their_range(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 7);
    unsigned counts[6] = {0};
    for (int i = 0; i < 60000; i++) {
        counts[lilac_random_below(&random, 6)]++;
    }
    for (int i = 0; i < 6; i++) {
        assert_in_range(counts[i], 9500, 10500);
    }
}

static void positions_resolve_to_lines(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    const char *bytes = "ab\n\ncde";
    uint32_t source = lilac_source_add(context, "t", bytes, strlen(bytes));
    const struct {
        uint32_t offset, line, column;
    } cases[] = {{0, 1, 1}, {2, 1, 3}, {3, 2, 1}, {4, 3, 1}, {6, 3, 3}, {7, 3, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t line, column;
        lilac_position_resolve(context, (lilac_position){source, cases[i].offset}, &line, &column);
        assert_int_equal(line, cases[i].line);
        assert_int_equal(column, cases[i].column);
    }
    lilac_context_destroy(context);
}

static lilac_location file_location(lilac_context *context, const char *file, uint32_t line) {
    lilac_location_info info = {.kind = LILAC_LOCATION_FILE,
                                .name = lilac_intern_string(context, file),
                                .line = line,
                                .column = 3};
    return lilac_location_get(context, &info);
}

static void locations_are_interned_trees(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_location inner = file_location(context, "lib.py", 9);
    lilac_location outer = file_location(context, "user.py", 4);
    assert_int_equal(inner, file_location(context, "lib.py", 9));
    assert_int_not_equal(inner, outer);
    lilac_location call = lilac_location_get(
        context, &(lilac_location_info){.kind = LILAC_LOCATION_CALLSITE, .a = inner, .b = outer});
    lilac_location list[] = {0, call};
    lilac_location_info fused = {.kind = LILAC_LOCATION_FUSED, .count = 2, .list = list};
    lilac_location both = lilac_location_get(context, &fused);
    assert_int_equal(both, lilac_location_get(context, &fused));
    lilac_name file;
    uint32_t line, column;
    assert_true(lilac_location_file(context, both, &file, &line, &column));
    assert_string_equal(file, "user.py");
    assert_int_equal(line, 4);
    assert_int_equal(column, 3);
    assert_false(lilac_location_file(context, 0, &file, &line, &column));
    for (uint32_t i = 0; i < 1000; i++) {
        file_location(context, "many.py", i);
    }
    assert_int_equal(both, lilac_location_get(context, &fused));
    lilac_context_destroy(context);
}

static void diagnostics_print_with_a_caret(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    const char *bytes = "module {\n  %v = tt.lod %p\n}\n";
    uint32_t source = lilac_source_add(context, "a.ttir", bytes, strlen(bytes));
    lilac_error(context, (lilac_position){source, 16}, file_location(context, "k.py", 17),
                "unknown-operation", "unknown operation '%s'", "tt.lod");
    lilac_note(context, (lilac_position){source, 0}, 0, "in this module");
    lilac_text text = {0};
    lilac_diagnostic_print(&text, context, lilac_diagnostics(context), false);
    assert_string_equal(lilac_text_get(&text),
                        "a.ttir:2:8: error: unknown operation 'tt.lod' [unknown-operation]\n"
                        "      %v = tt.lod %p\n"
                        "           ^~~~~~\n"
                        "k.py:17:3: note: from this line of the program\n"
                        "a.ttir:1:1: note: in this module\n"
                        "    module {\n"
                        "    ^~~~~~\n");
    lilac_text_reset(&text);
    lilac_diagnostic_json(&text, context, lilac_diagnostics(context));
    assert_string_equal(
        lilac_text_get(&text),
        "{\"severity\": \"error\", \"id\": \"unknown-operation\", \"file\": \"a.ttir\", "
        "\"line\": 2, \"column\": 8, \"location\": {\"file\": \"k.py\", \"line\": 17, "
        "\"column\": 3}, \"message\": \"unknown operation 'tt.lod'\", \"notes\": [{\"severity\": "
        "\"note\", \"file\": \"a.ttir\", \"line\": 1, \"column\": 1, \"message\": \"in this "
        "module\"}]}");
    for (int i = 0; i < 100; i++) {
        lilac_error(context, (lilac_position){source, 0}, 0, "again", "again");
    }
    assert_int_equal(lilac_error_count(context), 101);
    int recorded = 0;
    for (const lilac_diagnostic *d = lilac_diagnostics(context); d; d = d->next) {
        recorded++;
    }
    assert_int_equal(recorded, 64);
    lilac_diagnostics_reset(context);
    assert_null(lilac_diagnostics(context));
    lilac_text_clear(&text);
    lilac_context_destroy(context);
}

static void scan(lilac_scanner *scanner, lilac_context *context, const char *bytes) {
    lilac_scanner_init(scanner, context, lilac_source_add(context, "t", bytes, strlen(bytes)));
}

static void scanner_gives_tokens(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    const struct {
        const char *text;
        lilac_token_kind kind;
        const char *word;
    } cases[] = {
        {"tt.load", LILAC_TOKEN_WORD, "tt.load"},
        {"%v_1", LILAC_TOKEN_VALUE, "v_1"},
        {"%0#1", LILAC_TOKEN_VALUE, "0"},
        {"#loc12", LILAC_TOKEN_HASH, "loc12"},
        {"@f", LILAC_TOKEN_SYMBOL, "f"},
        {"@\"f g\"", LILAC_TOKEN_SYMBOL, "f g"},
        {"^bb0:", LILAC_TOKEN_BLOCK, "bb0"},
        {"!tt.ptr<f32>", LILAC_TOKEN_BANG, "tt.ptr"},
        {"42", LILAC_TOKEN_INTEGER, "42"},
        {"0xFF8", LILAC_TOKEN_INTEGER, "0xFF8"},
        {"1.5e+00", LILAC_TOKEN_FLOAT, "1.5e+00"},
        {"\"a\\\"b\"", LILAC_TOKEN_STRING, "a\\\"b"},
        {"->", LILAC_TOKEN_ARROW, "->"},
        {"  // note\n x", LILAC_TOKEN_WORD, "x"},
        {"%a-b->", LILAC_TOKEN_VALUE, "a-b"},
        {"", LILAC_TOKEN_END, ""},
        {"// only", LILAC_TOKEN_END, ""},
        {"{", LILAC_TOKEN_PUNCTUATION, "{"},
        {"\"open", LILAC_TOKEN_ERROR, "\""},
        {"\x01", LILAC_TOKEN_ERROR, "\x01"},
        {"%", LILAC_TOKEN_ERROR, "%"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_scanner scanner;
        scan(&scanner, context, cases[i].text);
        assert_int_equal(scanner.kind, cases[i].kind);
        assert_int_equal(scanner.word_length, strlen(cases[i].word));
        assert_memory_equal(scanner.word, cases[i].word, scanner.word_length);
    }
    assert_int_equal(lilac_error_count(context), 3);
    lilac_context_destroy(context);
}

static void scanner_reads_integers_and_shapes(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_scanner scanner;
    int64_t value, shape[4];
    uint32_t rank;
    scan(&scanner, context, "-9223372036854775808 18446744073709551615 0x10 18446744073709551616");
    assert_true(lilac_scanner_integer(&scanner, &value) && value == INT64_MIN);
    assert_true(lilac_scanner_integer(&scanner, &value) && value == -1);
    assert_true(lilac_scanner_integer(&scanner, &value) && value == 16);
    assert_false(lilac_scanner_integer(&scanner, &value));
    scan(&scanner, context, "16x1x32xbf16>");
    assert_true(lilac_scanner_shape(&scanner, shape, 4, &rank));
    assert_int_equal(rank, 3);
    assert_int_equal(shape[0] * 10000 + shape[1] * 100 + shape[2], 160132);
    assert_true(lilac_scanner_is_word(&scanner, "bf16"));
    scan(&scanner, context, "4x!tt.ptr<f32>");
    assert_true(lilac_scanner_shape(&scanner, shape, 4, &rank) && rank == 1);
    assert_int_equal(scanner.kind, LILAC_TOKEN_BANG);
    scan(&scanner, context, "f32");
    assert_true(lilac_scanner_shape(&scanner, shape, 4, &rank) && rank == 0);
    const char *refused[] = {"0x4xf32", "4x?xf32", "1x2x3x4x5xf32", "4 , f32",
                             "99999999999999999999xf32"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        uint32_t before = lilac_error_count(context);
        scan(&scanner, context, refused[i]);
        assert_false(lilac_scanner_shape(&scanner, shape, 4, &rank));
        assert_int_equal(lilac_error_count(context), before + 1);
    }
    lilac_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_gives_zeroed_aligned_memory),
        cmocka_unit_test(out_of_memory_calls_the_handler),
        cmocka_unit_test(text_grows_and_prints),
        cmocka_unit_test(names_are_equal_when_texts_are),
        cmocka_unit_test(random_numbers_cover_their_range),
        cmocka_unit_test(positions_resolve_to_lines),
        cmocka_unit_test(locations_are_interned_trees),
        cmocka_unit_test(diagnostics_print_with_a_caret),
        cmocka_unit_test(scanner_gives_tokens),
        cmocka_unit_test(scanner_reads_integers_and_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
