/* Texts that the reader must accept or refuse as MLIR does: integers of any width, attributes of
 * parameters, names of locations, divisibility that is not a power of two. */

#include <lilac/driver.h>

#include "support/test.h"

typedef struct text_case {
    const char *text; /* of a module */
    const char *id;   /* of the first diagnostic; NULL: it compiles */
    uint32_t line;    /* of the diagnostic */
    const char *says; /* a part of it */
} text_case;

#define KERNEL(parameters, body)                                                                   \
    "module {\n  tt.func public @k(" parameters ") {\n" body "    tt.return\n  }\n}\n"

static const text_case cases[] = {
    {KERNEL("%o: !tt.ptr<i7>", ""), NULL, 0, NULL},
    {KERNEL("%o: !tt.ptr<!tt.ptr<i48>>", ""), NULL, 0, NULL},
    {KERNEL("%o: !tt.ptr<si9>, %p: !tt.ptr<ui65>", ""), NULL, 0, NULL},
    {KERNEL("%o: !tt.ptr<i16777215>", ""), NULL, 0, NULL},
    {KERNEL("%o: !tt.ptr<i7>",
            "    %p = tt.bitcast %o : !tt.ptr<i7> -> !tt.ptr<i8>\n"
            "    %v = tt.load %p : !tt.ptr<i8>\n    tt.store %p, %v : !tt.ptr<i8>\n"),
     NULL, 0, NULL},
    {KERNEL("%o: !tt.ptr<i16777216>", ""), "bad-type", 2, "16777215"},
    {KERNEL("%o: !tt.ptr<i0>", ""), "unknown-type", 2, "i0"},
    {KERNEL("%o: !tt.ptr<i07>", ""), "unknown-type", 2, "i07"},
    {KERNEL("%o: !tt.ptr<i7x>", ""), "unknown-type", 2, "i7x"},
    {KERNEL("%o: tensor<8xi7>", ""), "unsupported-type", 2, "'i7'"},
    {KERNEL("%o: i7", ""), "unsupported-type", 2, "i7"},
    {KERNEL("%o: !tt.ptr<i7>",
            "    %v = tt.load %o : !tt.ptr<i7>\n    tt.store %o, %v : !tt.ptr<i7>\n"),
     "unsupported-type", 3, "i7"},
    {KERNEL("%o: !tt.ptr<i7>, %n: i32",
            "    %p = tt.addptr %o, %n : !tt.ptr<i7>, i32\n"
            "    %q = tt.bitcast %p : !tt.ptr<i7> -> !tt.ptr<i8>\n"
            "    %v = tt.load %q : !tt.ptr<i8>\n    tt.store %q, %v : !tt.ptr<i8>\n"),
     "unsupported-type", 3, "7 bits"},
    {KERNEL("%o: !tt.ptr<i32> {tt.divisibility = 24 : i32}", ""), NULL, 0, NULL},
    {KERNEL("%o: !tt.ptr<i32> {tt.divisibility = 0 : i32}", ""), NULL, 0, NULL},
    {KERNEL("%o: !tt.ptr<i32> {tt.divisibility = -16 : i32}", ""), NULL, 0, NULL},
    {KERNEL("%o: !tt.ptr<i32> {other.name = 1 : i32}", ""), NULL, 0, NULL},
    {KERNEL("%o: !tt.ptr<i32> {name = 1 : i32}", ""), "bad-attribute", 2, "'tt.name'"},
    {KERNEL("%o: !tt.ptr<i32> {tt.divisibility = 16 : i32, name}", ""), "bad-attribute", 2, "name"},
    {"module {\n  \"tt.func\"() <{arg_attrs = [{name = 1 : i32}], function_type = (i32) -> (), "
     "sym_name = \"k\", sym_visibility = \"public\"}> ({\n  ^bb0(%a: i32):\n    tt.return\n  }) : "
     "() -> ()\n}\n",
     "bad-attribute", 2, "name"},
    {"module {\n} loc(#loc3)\n", "undefined-alias", 2, "#loc3"},
    {"#loc1 = loc(\"x\"(#loc2))\n" KERNEL("%n: i32", ""), "undefined-alias", 1, "#loc2"},
    {"#loc1 = loc(nothing)\n" KERNEL("%n: i32", ""), "syntax", 1, "location"},
    {"#loc1 = loc(\"x\"(#loc2))\n#loc2 = loc(\"y\"(#loc1))\n" KERNEL("%n: i32", ""),
     "cyclic-location", 2, "itself"},
    {"#loc1 = loc(\"x\" 3)\n" KERNEL("%n: i32", ""), "syntax", 1, "')'"},
    {"#loc1 = loc(\"x\"(#loc2))\n#loc2 = loc(\"y\")\n" KERNEL("%n: i32", ""), NULL, 0, NULL},
};

static void texts_as_in_mlir(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const text_case *c = &cases[i];
        lilac_context *context = lilac_context_create();
        uint32_t source = lilac_source_add(context, "case.ttir", c->text, strlen(c->text));
        lilac_options options;
        lilac_options_init(&options);
        options.verify = true;
        lilac_compilation made;
        bool good = lilac_compile(&made, context, source, &options);
        const lilac_diagnostic *first = lilac_diagnostics(context);
        if (good != (c->id == NULL) || (first && strcmp(first->id, c->id) != 0)) {
            fail_msg("%s\n%s: %s", c->text, first ? first->id : "accepted",
                     first ? first->message : "");
        }
        if (first) {
            uint32_t line, column;
            assert_true(first->position.source != 0);
            lilac_position_resolve(context, first->position, &line, &column);
            assert_int_equal(line, c->line);
            if (!strstr(first->message, c->says)) {
                fail_msg("%s: not '%s'", first->message, c->says);
            }
        }
        lilac_compilation_clear(&made);
        lilac_context_destroy(context);
    }
}

/* 24 promises what 8 does. */
static void divisibility_counts_by_its_power_of_two(void **state) {
    (void)state;
    static const int64_t given[] = {8, 24, 40, 16, 48, 12, 4};
    uint32_t alignment[7];
    for (uint32_t i = 0; i < 7; i++) {
        lilac_context *context = lilac_context_create();
        lilac_text text = {0};
        lilac_text_printf(&text, KERNEL("%%o: !tt.ptr<i32> {tt.divisibility = %lld : i32}", ""),
                          (long long)given[i]);
        uint32_t source = lilac_source_add(context, "case.ttir", text.bytes, text.length);
        lilac_options options;
        lilac_options_init(&options);
        lilac_compilation made;
        assert_true(lilac_compile(&made, context, source, &options));
        alignment[i] = made.simt->kernels->parameters[0].alignment;
        assert_int_equal(alignment[i], given[i] & -given[i]);
        lilac_compilation_clear(&made);
        lilac_text_clear(&text);
        lilac_context_destroy(context);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_as_in_mlir),
        cmocka_unit_test(divisibility_counts_by_its_power_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
