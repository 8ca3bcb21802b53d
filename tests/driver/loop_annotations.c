/* #llvm.loop_annotation of a loop: read and printed with its aliases, and obeyed. */

#include <lilac/driver.h>

#include "support/test.h"

static const char loop[] =
    "module {\n"
    "  tt.func public @k(%o: !tt.ptr<i32>, %n: i32, %m: i32) {\n"
    "    %zero = arith.constant 0 : i32\n"
    "    %one = arith.constant 1 : i32\n"
    "    %r = scf.for %i = %zero to %n step %one iter_args(%s = %zero) -> (i32)  : i32 {\n"
    "      %x = arith.muli %m, %m : i32\n"
    "      %y = arith.xori %x, %s : i32\n"
    "      scf.yield %y : i32\n"
    "    }";
static const char rest[] = "\n    tt.store %o, %r : !tt.ptr<i32>\n    tt.return\n  }\n}\n";

typedef struct made {
    lilac_context *context;
    lilac_compilation compilation;
    lilac_text printed;
    bool good;
} made;

static made compile(const char *definitions, const char *attributes, const char *print) {
    made m = {.context = lilac_context_create()};
    lilac_text text = {0};
    lilac_text_printf(&text, "%s%s%s%s", definitions, loop, attributes, rest);
    uint32_t source = lilac_source_add(m.context, "loop.ttir", text.bytes, text.length);
    lilac_options options;
    lilac_options_init(&options);
    options.verify = true;
    options.line_info = false;
    options.print_after = print;
    options.printed = &m.printed;
    m.good = lilac_compile(&m.compilation, m.context, source, &options);
    lilac_text_clear(&text);
    return m;
}

static void finish(made *m) {
    lilac_compilation_clear(&m->compilation);
    lilac_text_clear(&m->printed);
    lilac_context_destroy(m->context);
}

/* Is the product computed in the loop, in the text after the pass; without one, in the SIMT text? */
static bool computes_in_loop(const char *definitions, const char *attributes, const char *pass,
                             const char *begin, const char *product) {
    made m = compile(definitions, attributes, pass);
    assert_true(m.good);
    if (pass == NULL) {
        lilac_simt_print(&m.printed, m.compilation.simt);
    }
    const char *text = lilac_text_get(&m.printed);
    const char *at = strstr(text, begin), *mul = strstr(text, product);
    assert_true(at != NULL && mul != NULL);
    bool inside = mul > at;
    finish(&m);
    return inside;
}

#define LICM     "#loop_licm = #llvm.loop_licm<disable = true, versioningDisable = true>\n"
#define ANNOTATE "#loop_annotation = #llvm.loop_annotation<licm = #loop_licm>\n"
#define USE      " {llvm.loop_annotation = #loop_annotation}"

static void loops_keep_their_invariants(void **state) {
    (void)state;
    static const struct {
        const char *definitions, *attributes;
        bool keeps;
    } cases[] = {
        {"", "", false},
        {LICM ANNOTATE, USE, true},
        {"",
         " {llvm.loop_annotation = #llvm.loop_annotation<licm = #llvm.loop_licm<disable = "
         "true>>}",
         true},
        {"",
         " {llvm.loop_annotation = #llvm.loop_annotation<licm = #llvm.loop_licm<"
         "versioningDisable = true, disable = true>, mustProgress = true>}",
         true},
        {"",
         " {llvm.loop_annotation = #llvm.loop_annotation<licm = #llvm.loop_licm<disable = "
         "false>>}",
         false},
        {"",
         " {llvm.loop_annotation = #llvm.loop_annotation<unroll = #llvm.loop_unroll<disable = "
         "true, count = 4 : i32>>}",
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *definitions = cases[i].definitions, *attributes = cases[i].attributes;
        assert_int_equal(
            computes_in_loop(definitions, attributes, "simplify", "scf.for", "arith.muli"),
            cases[i].keeps);
        assert_int_equal(computes_in_loop(definitions, attributes, NULL, " loop ", "= mul "),
                         cases[i].keeps);
    }
}

/* The SIMT text says it, and reads back. */
static void simt_text_keeps_it(void **state) {
    (void)state;
    made m = compile(LICM ANNOTATE, USE, NULL);
    assert_true(m.good);
    lilac_text first = {0}, second = {0};
    lilac_simt_print(&first, m.compilation.simt);
    assert_non_null(strstr(first.bytes, "keep_invariants {"));
    uint32_t source = lilac_source_add(m.context, "k.simt", first.bytes, first.length);
    lilac_simt_module *module = lilac_simt_read(m.context, source);
    assert_non_null(module);
    assert_false(lilac_simt_opt_licm(module->kernels));
    lilac_simt_print(&second, module);
    assert_string_equal(first.bytes, second.bytes);
    lilac_simt_module_destroy(module);
    lilac_text_clear(&first);
    lilac_text_clear(&second);
    finish(&m);
}

static void prints_as_it_reads(void **state) {
    (void)state;
    static const char fields[] =
        "#other = #llvm.loop_annotation<disableNonforced = false, a = -3 : "
        "i32, s = \"text\", x = #llvm.loop_x>\n";
    made m = compile(LICM ANNOTATE, USE, "read");
    assert_true(m.good);
    assert_non_null(strstr(m.printed.bytes, LICM ANNOTATE));
    assert_non_null(strstr(m.printed.bytes, "}" USE "\n"));
    finish(&m);
    m = compile(fields, " {llvm.loop_annotation = #other, tt.flatten}", "read");
    assert_true(m.good);
    assert_non_null(strstr(m.printed.bytes, fields));
    assert_non_null(strstr(m.printed.bytes, "} {llvm.loop_annotation = #other, tt.flatten}\n"));
    finish(&m);
}

static void bad_ones_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *definitions, *attributes, *id;
    } cases[] = {
        {"", USE, "undefined-alias"},
        {ANNOTATE, "", "undefined-alias"},
        {LICM LICM, "", "redefinition"},
        {"", " {llvm.loop_annotation = #llvm.loop_annotation<licm>}", "expected"},
        {"", " {llvm.loop_annotation = #llvm.loop_annotation<licm = {}>}", "expected"},
        {"", " {llvm.loop_annotation = #llvm.loop_annotation<licm = true}", "expected"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        made m = compile(cases[i].definitions, cases[i].attributes, NULL);
        assert_false(m.good);
        const lilac_diagnostic *first = lilac_diagnostics(m.context);
        if (strcmp(cases[i].id, "expected") != 0) {
            assert_string_equal(first->id, cases[i].id);
        }
        assert_int_not_equal(first->position.source, 0);
        finish(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_keep_their_invariants),
        cmocka_unit_test(simt_text_keeps_it),
        cmocka_unit_test(prints_as_it_reads),
        cmocka_unit_test(bad_ones_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
