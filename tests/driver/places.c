/* Diagnostics have a place: without loc(…), the line of the text that was read, with its caret, at
 * every stage. What lilac itself got wrong is an error of another kind. */

#include <lilac/driver.h>
#include <lilac/sim.h>

#include "support/test.h"

#define KERNEL(parameters, body)                                                                   \
    "module {\n  tt.func public @k(" parameters ") {\n" body "    tt.return\n  }\n}\n"
#define RANGE "    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>\n"

static const struct {
    const char *device, *text, *id, *under; /* under: what the caret points at */
} cases[] = {
    /* reader, verifier */
    {"sm_90a", KERNEL("%n: i32", "    %x = tt.lod %n : i32\n"), "unknown-operation", "tt.lod"},
    {"sm_90a", KERNEL("%n: i32", "    %x = scf.if %n -> (i32) {\n    }\n"), "type-mismatch", "%n"},
    {"sm_90a", KERNEL("%n: i1", "    scf.if %n {\n      tt.return\n    }\n"), "bad-terminator",
     "tt.return"},
    /* passes on tile IR */
    {"sm_90a", KERNEL("%n: i1", "    cf.br ^a\n  ^a:\n    cf.cond_br %n, ^a, ^b\n  ^b:\n"),
     "unsupported-control-flow", "cf.cond_br"},
    {"sm_90a",
     "module {\n  tt.func private @f()\n  tt.func public @k() {\n    tt.call @f() : () -> ()\n"
     "    tt.return\n  }\n}\n",
     "unsupported-call", "tt.call"},
    {"sm_90a", KERNEL("%t: tensor<8xi32>", ""), "unsupported-operation", "tt.func"},
    /* lowering */
    {"sm_90a", KERNEL("%n: i128", ""), "unsupported-type", "tt.func"},
    {"sm_90a",
     KERNEL("%n: i32, %o: !tt.ptr<i32>",
            "    %a = tt.extern_elementwise %n {libname = \"\", libpath = \"\", pure = true, "
            "symbol = \"__nv_nothing\"} : (i32) -> i32\n    tt.store %o, %a : !tt.ptr<i32>\n"),
     "unknown-function", "tt.extern_elementwise"},
    /* PTX */
    {"sm_80",
     KERNEL("%p: !tt.ptr<bf16>, %v: bf16",
            "    %true = arith.constant true\n"
            "    %o = tt.atomic_rmw fadd, acq_rel, gpu, %p, %v, %true : (!tt.ptr<bf16>, bf16, i1) "
            "-> bf16\n"),
     NULL, "tt.atomic_rmw"},
};

/* The text that the diagnostic's caret points at. */
static const char *pointed_at(lilac_context *context, const lilac_diagnostic *d) {
    size_t length;
    const char *text = lilac_source_bytes(context, d->position.source, &length);
    return d->position.source != 0 && d->position.offset < length ? text + d->position.offset : "";
}

static void every_stage_has_places(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_context *context = lilac_context_create();
        uint32_t source = lilac_source_add(context, "k.ttir", cases[i].text, strlen(cases[i].text));
        lilac_options options;
        lilac_options_init(&options);
        options.target.arch = lilac_arch_find(cases[i].device);
        options.verify = true;
        lilac_compilation made;
        bool good = lilac_compile(&made, context, source, &options);
        const lilac_diagnostic *first = lilac_diagnostics(context);
        assert_true(good ? cases[i].id == NULL : first != NULL);
        if (!good) {
            if (strncmp(pointed_at(context, first), cases[i].under, strlen(cases[i].under)) != 0) {
                fail_msg("%s: %s [%s] at '%.20s', not at '%s'", cases[i].text, first->message,
                         first->id, pointed_at(context, first), cases[i].under);
            }
            if (cases[i].id != NULL) {
                assert_string_equal(first->id, cases[i].id);
            }
            assert_string_not_equal(first->id, "internal-error");
        }
        lilac_compilation_clear(&made);
        lilac_context_destroy(context);
    }
}

/* An operation that a pass made has the place of one that was read. */
static void made_operations_have_places(void **state) {
    (void)state;
    static const char text[] = KERNEL("%n: i1, %p: !tt.ptr<i32>, %i: i32",
                                      "    cf.cond_br %n, ^a, ^b\n  ^a:\n    tt.store %p, %i : "
                                      "!tt.ptr<i32>\n    cf.br ^b\n  ^b:\n");
    lilac_context *context = lilac_context_create();
    uint32_t source = lilac_source_add(context, "k.ttir", text, strlen(text));
    lilac_options options;
    lilac_options_init(&options);
    options.stop_after = "structurize";
    lilac_compilation made;
    assert_true(lilac_compile(&made, context, source, &options));
    const lilac_tile_block *block = made.tile->functions->body->first;
    for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
        assert_int_equal(lilac_tile_position(op).source, source);
    }
    lilac_compilation_clear(&made);
    lilac_context_destroy(context);
}

/* A trap on the simulator is at the line of the TTIR, or of the SIMT text. */
static void traps_have_places(void **state) {
    (void)state;
    static const char text[] = KERNEL("%p: !tt.ptr<i32>", "    %v = tt.load %p : !tt.ptr<i32>\n"
                                                          "    tt.store %p, %v : !tt.ptr<i32>\n");
    for (int simt = 0; simt < 2; simt++) {
        lilac_context *context = lilac_context_create();
        uint32_t source = lilac_source_add(context, "k.ttir", text, strlen(text));
        lilac_options options;
        lilac_options_init(&options);
        lilac_compilation made;
        assert_true(lilac_compile(&made, context, source, &options));
        lilac_simt_module *module = made.simt;
        if (simt) {
            lilac_text printed = {0};
            lilac_simt_print(&printed, made.simt);
            assert_null(strstr(printed.bytes, "loc("));
            source = lilac_source_add(context, "k.simt", printed.bytes, printed.length);
            module = lilac_simt_read(context, source);
            assert_non_null(module);
            lilac_text again = {0};
            lilac_simt_print(&again, module);
            assert_string_equal(printed.bytes, again.bytes);
            lilac_text_clear(&again);
            lilac_text_clear(&printed);
        }
        uint64_t nowhere = 64; /* in no buffer */
        lilac_sim_launch launch = {.kernel = module->kernels,
                                   .grid = {1, 1, 1},
                                   .arguments = &nowhere,
                                   .argument_count = 1,
                                   .threads = 1};
        lilac_sim_counters counters;
        assert_false(lilac_sim_run(context, &launch, &counters));
        const lilac_diagnostic *first = lilac_diagnostics(context);
        assert_non_null(first);
        const char *under = simt ? "ld.global" : "tt.load";
        assert_int_equal(strncmp(pointed_at(context, first), under, strlen(under)), 0);
        lilac_text out = {0};
        lilac_diagnostic_print(&out, context, first, false);
        assert_non_null(strstr(out.bytes, simt ? "k.simt:" : "k.ttir:3:10: error"));
        assert_non_null(strstr(out.bytes, "^~~"));
        lilac_text_clear(&out);
        if (simt) {
            lilac_simt_module_destroy(module);
        }
        lilac_compilation_clear(&made);
        lilac_context_destroy(context);
    }
}

/* Places in texts give no line information to PTX. */
static void places_are_no_line_information(void **state) {
    (void)state;
    static const char text[] =
        KERNEL("%p: !tt.ptr<i32>", "    %v = tt.load %p : !tt.ptr<i32> loc(\"f.py\":3:4)\n"
                                   "    tt.store %p, %v : !tt.ptr<i32>\n"
                                   "    tt.store %p, %v : !tt.ptr<i32> loc(\"f.py\":3:4)\n");
    lilac_context *context = lilac_context_create();
    uint32_t source = lilac_source_add(context, "k.ttir", text, strlen(text));
    lilac_options options;
    lilac_options_init(&options);
    lilac_compilation made;
    assert_true(lilac_compile(&made, context, source, &options));
    const char *first = strstr(lilac_text_get(&made.ptx), "\t.loc");
    assert_non_null(first);
    assert_null(strstr(first + 1, "\t.loc"));
    assert_null(strstr(lilac_text_get(&made.ptx), "k.ttir"));
    lilac_compilation_clear(&made);
    lilac_context_destroy(context);
}

static void internal_errors_ask_for_a_report(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    uint32_t source = lilac_source_add(context, "k.ttir", "module {}", 9);
    lilac_warning(context, (lilac_position){0}, 0, "earlier", "stays");
    const lilac_diagnostic *last = lilac_diagnostics(context);
    lilac_error(context, (lilac_position){0}, 0, "simt-width", "one");
    lilac_error(context, (lilac_position){0}, 0, "simt-links", "two");
    lilac_internal_error(context, last, (lilac_position){source, 0}, "after the pass '%s'", "fold");
    assert_int_equal(lilac_error_count(context), 1);
    const lilac_diagnostic *error = lilac_diagnostics(context)->next;
    assert_string_equal(error->id, "internal-error");
    assert_int_equal(error->position.source, source);
    assert_null(error->next);
    assert_non_null(strstr(error->notes->message, "report it"));
    assert_string_equal(error->notes->next->id, "simt-width");
    assert_string_equal(error->notes->next->next->id, "simt-links");
    lilac_diagnostics_reset(context);
    lilac_error(context, (lilac_position){0}, 0, "simt-width", "one");
    lilac_internal_error(context, NULL, (lilac_position){source, 0}, "again");
    assert_int_equal(lilac_error_count(context), 1);
    assert_string_equal(lilac_diagnostics(context)->id, "internal-error");
    lilac_context_destroy(context);
}

/* The line of the annotated text that follows the line which contains `line`. */
static void assert_annotated(lilac_context *context, uint32_t source, const char *line,
                             const char *annotation) {
    lilac_text text;
    lilac_text_init(&text);
    lilac_source_annotate(&text, context, source);
    const char *found = strstr(lilac_text_get(&text), line);
    assert_non_null(found);
    const char *next = strchr(found, '\n');
    assert_non_null(next);
    const char *end = strchr(next + 1, '\n');
    const char *place = strstr(next + 1, annotation);
    assert_true(place != NULL && end != NULL && place < end);
    lilac_text_clear(&text);
}

static const char broken_input[] =
    KERNEL("%p: !tt.ptr<f32>, %a: f32", "    %b = arith.addf %a, %a : f32 loc(\"k.py\":3:1)\n"
                                        "    tt.store %p, %b : !tt.ptr<f32>\n");

static void find_addition(void *data, lilac_tile_op *op) {
    if (op->code == LILAC_TILE_OP_ARITH_ADDF) {
        *(lilac_tile_op **)data = op;
    }
}

/* An error in tile IR that a pass left malformed is shown at its line of the IR. */
static void malformed_tile_ir_is_annotated(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    const uint32_t input = lilac_source_add(context, "k.ttir", broken_input, strlen(broken_input));
    lilac_tile_module *module = lilac_tile_read(context, input);
    assert_non_null(module);
    lilac_tile_op *addition = NULL;
    lilac_tile_walk(module->functions->body, find_addition, &addition);
    addition->code = LILAC_TILE_OP_ARITH_ADDI;
    const uint32_t source = lilac_tile_print_source(module, "<after fold>");
    assert_false(lilac_tile_verify(module, false));
    const lilac_diagnostic *error = lilac_diagnostics(context);
    assert_int_equal(error->position.source, source);
    assert_memory_equal(pointed_at(context, error), "%b = arith.addi", 15);
    assert_annotated(context, source, "%b = arith.addi %a, %a", error->message);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void malformed_simt_ir_is_annotated(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    const uint32_t input = lilac_source_add(context, "k.ttir", broken_input, strlen(broken_input));
    lilac_options options;
    lilac_options_init(&options);
    options.stop_at = LILAC_STAGE_SIMT;
    lilac_compilation made;
    assert_true(lilac_compile(&made, context, input, &options));
    assert_int_equal(made.malformed, 0);
    for (lilac_simt_instruction *i = made.simt->kernels->body->first; i != NULL; i = i->next) {
        i->code = i->code == LILAC_SIMT_OP_FADD ? LILAC_SIMT_OP_ADD : i->code;
    }
    const uint32_t source = lilac_simt_print_source(made.simt, "<after fold>");
    assert_false(lilac_simt_verify(made.simt));
    const lilac_diagnostic *error = lilac_diagnostics(context);
    assert_string_equal(error->id, "simt-operand-type");
    assert_int_equal(error->position.source, source);
    assert_annotated(context, source, "= add %a, %a", "[simt-operand-type]");
    lilac_diagnostics_forget(context, NULL);
    assert_null(lilac_diagnostics(context));
    assert_int_equal(lilac_error_count(context), 0);
    lilac_compilation_clear(&made);
    lilac_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stage_has_places),
        cmocka_unit_test(made_operations_have_places),
        cmocka_unit_test(traps_have_places),
        cmocka_unit_test(places_are_no_line_information),
        cmocka_unit_test(internal_errors_ask_for_a_report),
        cmocka_unit_test(malformed_tile_ir_is_annotated),
        cmocka_unit_test(malformed_simt_ir_is_annotated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
