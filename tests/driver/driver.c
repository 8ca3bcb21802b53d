/* driver: options that it refuses before any pass runs, the pass after which it stops, its
 * output, and the state that it leaves. */

#include <lilac/driver.h>
#include <lilac/lower.h>

#include "support/test.h"

static const char copy[] =
    "module {\n"
    "  tt.func public @copy(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {\n"
    "    %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>\n"
    "    %p = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>\n"
    "    %q = tt.addptr %p, %i : tensor<256x!tt.ptr<f32>>, tensor<256xi32>\n"
    "    %v = tt.load %q : tensor<256x!tt.ptr<f32>>\n"
    "    %r = tt.splat %y : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>\n"
    "    %s = tt.addptr %r, %i : tensor<256x!tt.ptr<f32>>, tensor<256xi32>\n"
    "    tt.store %s, %v : tensor<256x!tt.ptr<f32>>\n"
    "    tt.return\n"
    "  }\n"
    "}\n";

typedef struct fixture {
    lilac_context *context;
    lilac_options options;
    lilac_compilation compilation;
    lilac_text printed;
} fixture;

static int open_fixture(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    f.context = lilac_context_create();
    lilac_options_init(&f.options);
    f.options.verify = true;
    f.options.printed = &f.printed;
    *state = &f;
    return 0;
}

static int close_fixture(void **state) {
    fixture *f = *state;
    lilac_compilation_clear(&f->compilation);
    lilac_text_clear(&f->printed);
    lilac_context_destroy(f->context);
    return 0;
}

static bool compile(fixture *f, const char *text) {
    const uint32_t source = lilac_source_add(f->context, "test.ttir", text, strlen(text));
    assert_int_not_equal(source, 0);
    return lilac_compile(&f->compilation, f->context, source, &f->options);
}

static void assert_refused(fixture *f, const char *text, const char *id) {
    assert_false(compile(f, text));
    assert_int_not_equal(lilac_error_count(f->context), 0);
    assert_string_equal(lilac_diagnostics(f->context)->id, id);
}

static uint32_t count_passes(void) {
    uint32_t count = 0;
    while (lilac_pass_name(count) != NULL) {
        count++;
    }
    return count;
}

static void options_have_defaults(void **state) {
    const fixture *f = *state;
    assert_null(f->options.target.arch);
    assert_int_equal(f->options.target.num_warps, 0);
    assert_int_equal(f->options.target.num_ctas, 0);
    assert_null(f->options.print_after);
    assert_null(f->options.stop_after);
}

static void every_pass_runs_in_order(void **state) {
    fixture *f = *state;
    assert_true(compile(f, copy));
    assert_int_equal(f->compilation.pass_count, count_passes());
    for (uint32_t i = 0; i < f->compilation.pass_count; i++) {
        assert_string_equal(f->compilation.passes[i].name, lilac_pass_name(i));
        assert_true(f->compilation.passes[i].seconds >= 0);
        assert_true(f->compilation.passes[i].operations > 0);
    }
    assert_null(lilac_pass_name(count_passes()));
    assert_null(lilac_pass_name(UINT32_MAX));
    assert_non_null(f->compilation.tile);
    assert_non_null(f->compilation.simt);
    assert_string_equal(f->compilation.target.arch->name, "sm_90a");
    assert_int_equal(f->compilation.target.num_warps, 4);
    assert_int_equal(f->compilation.target.num_ctas, 1);
    assert_non_null(strstr(lilac_text_get(&f->compilation.ptx), ".entry copy("));
}

static void stops_after_the_pass_named(void **state) {
    fixture *f = *state;
    f->options.stop_after = "assign_layouts";
    assert_true(compile(f, copy));
    const uint32_t count = f->compilation.pass_count;
    assert_string_equal(f->compilation.passes[count - 1].name, "assign_layouts");
    assert_null(f->compilation.simt);
    assert_int_equal(f->compilation.ptx.length, 0);

    lilac_text json = {0};
    lilac_compilation_json(&json, &f->compilation, &f->options);
    assert_non_null(strstr(lilac_text_get(&json), "\"shared\": null"));
    assert_null(strchr(lilac_text_get(&json), '\n'));
    lilac_text_clear(&json);
}

static void stops_after_the_last_of_two(void **state) {
    fixture *f = *state;
    f->options.stop_after = "fold";
    assert_true(compile(f, copy));
    uint32_t folds = 0;
    for (uint32_t i = 0; lilac_pass_name(i) != NULL; i++) {
        folds += strcmp(lilac_pass_name(i), "fold") == 0;
    }
    for (uint32_t i = 0; i < f->compilation.pass_count; i++) {
        folds -= strcmp(f->compilation.passes[i].name, "fold") == 0;
    }
    assert_int_equal(folds, 0);
    assert_int_equal(f->compilation.ptx.length, 0);
}

/* A stage ends with the last of its passes, whichever that is, and the stages come in order. */
static void stops_at_the_stage_asked_for(void **state) {
    fixture *f = *state;
    for (int stage = LILAC_STAGE_SOURCE; stage < LILAC_STAGE_COUNT; stage++) {
        f->options.stop_at = (lilac_stage)stage;
        assert_true(compile(f, copy));
        const uint32_t count = f->compilation.pass_count;
        assert_int_equal(lilac_pass_stage(count - 1), stage);
        assert_true(lilac_pass_stage(count) > (lilac_stage)stage);
        assert_int_equal(f->compilation.simt != NULL, stage >= LILAC_STAGE_SIMT);
        assert_int_equal(f->compilation.ptx.length != 0, stage == LILAC_STAGE_TEXT);
        lilac_compilation_clear(&f->compilation);
    }
    assert_int_equal(lilac_pass_stage(count_passes()), LILAC_STAGE_COUNT);
    assert_true(compile(f, copy));
}

/* The PTX with registers numbered in the order in which they appear, without their declarations. */
static void put_renumbered(lilac_text *out, const char *ptx) {
    enum { MOST = 64 };
    const char *names[MOST];
    size_t lengths[MOST], count = 0;
    for (const char *at = ptx; *at != '\0'; at++) {
        if (strncmp(at, "\t.reg", 5) == 0) {
            at = strchr(at, '\n');
        } else if (*at != '%') {
            lilac_text_char(out, *at);
        } else {
            size_t k = 0, length = 1 + strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_0123456789");
            while (k < count && (lengths[k] != length || memcmp(names[k], at, length) != 0)) {
                k++;
            }
            assert_true(k < MOST);
            names[k] = at;
            lengths[k] = length;
            count += k == count;
            lilac_text_printf(out, "%%%zu", k);
            at += length - 1;
        }
    }
}

/* The SIMT text at the end of its stage is all that the PTX is written from. Values are numbered
 * afresh when it is read. */
static void ptx_is_written_from_the_simt_text(void **state) {
    fixture *f = *state;
    f->options.line_info = f->options.comments = false;
    assert_true(compile(f, copy));
    lilac_text text = {0}, ptx = {0}, expected = {0}, written = {0};
    lilac_simt_print(&text, f->compilation.simt);
    const uint32_t source =
        lilac_source_add(f->context, "copy.simt", lilac_text_get(&text), text.length);
    lilac_simt_module *module = lilac_simt_read(f->context, source);
    assert_non_null(module);
    assert_true(lilac_ptx_write(&ptx, module, &(lilac_ptx_options){0}));
    put_renumbered(&expected, lilac_text_get(&f->compilation.ptx));
    put_renumbered(&written, lilac_text_get(&ptx));
    assert_string_equal(lilac_text_get(&written), lilac_text_get(&expected));
    lilac_simt_module_destroy(module);
    lilac_text_clear(&text);
    lilac_text_clear(&ptx);
    lilac_text_clear(&expected);
    lilac_text_clear(&written);
}

/* The passes of the stages alone do what they do in the pipeline. */
static void stages_run_alone(void **state) {
    fixture *f = *state;
    f->options.stop_at = LILAC_STAGE_SIMT;
    assert_true(compile(f, copy));
    const uint32_t source = lilac_source_add(f->context, "copy.ttir", copy, strlen(copy));
    lilac_tile_module *tile = lilac_tile_read(f->context, source);
    assert_non_null(tile);
    assert_true(lilac_run_tile_passes(tile, &f->compilation.target));
    lilac_simt_module *simt = lilac_lower(tile, &f->compilation.target);
    assert_non_null(simt);
    lilac_run_simt_passes(simt);
    lilac_text whole = {0}, alone = {0};
    lilac_simt_print(&whole, f->compilation.simt);
    lilac_simt_print(&alone, simt);
    assert_string_equal(lilac_text_get(&alone), lilac_text_get(&whole));
    lilac_simt_module_destroy(simt);
    lilac_tile_module_destroy(tile);
    lilac_text_clear(&whole);
    lilac_text_clear(&alone);
}

static void prints_after_each_pass(void **state) {
    fixture *f = *state;
    f->options.print_after = "all";
    assert_true(compile(f, copy));
    const char *at = lilac_text_get(&f->printed);
    for (uint32_t i = 0; lilac_pass_name(i) != NULL; i++) {
        at = strstr(at, "// ---- after ");
        assert_non_null(at);
        at += strlen("// ---- after ");
        assert_memory_equal(at, lilac_pass_name(i), strlen(lilac_pass_name(i)));
    }
    assert_null(strstr(at, "// ---- after "));
}

static void prints_nothing_unasked(void **state) {
    fixture *f = *state;
    assert_true(compile(f, copy));
    assert_int_equal(f->printed.length, 0);
}

static void same_text_gives_same_ptx(void **state) {
    fixture *f = *state;
    assert_true(compile(f, copy));
    lilac_text first = {0};
    lilac_text_puts(&first, lilac_text_get(&f->compilation.ptx));
    lilac_compilation_clear(&f->compilation);
    assert_true(compile(f, copy));
    assert_string_equal(lilac_text_get(&first), lilac_text_get(&f->compilation.ptx));
    lilac_text_clear(&first);
}

static void refuses_launch_shapes(void **state) {
    fixture *f = *state;
    const uint32_t wrong[] = {3, 64, 12};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        f->options.target.num_warps = wrong[i];
        assert_refused(f, copy, "invalid-target");
        assert_int_equal(f->compilation.pass_count, 0);
        lilac_diagnostics_reset(f->context);
        lilac_compilation_clear(&f->compilation);
    }
    f->options.target.num_warps = 4;
    f->options.target.num_ctas = 5;
    assert_refused(f, copy, "invalid-target");
}

/* A module that says what it is for; `attributes` beside the ones given. */
static void with_attributes(lilac_text *out, const char *attributes) {
    lilac_text_puts(out, "module attributes {");
    lilac_text_puts(out, attributes);
    lilac_text_puts(out, "} {\n");
    lilac_text_puts(out, strchr(copy, '\n') + 1);
}

static void modules_say_what_they_are_for(void **state) {
    fixture *f = *state;
    static const struct {
        const char *attributes;
        const char *arch;
        uint32_t num_warps; /* given; 0: none */
        uint32_t made_for;  /* 0: refused */
    } cases[] = {
        {"\"ttg.num-warps\" = 8 : i32", NULL, 0, 8},
        {"\"ttg.num-warps\" = 8 : i32, ttg.target = \"cuda:80\"", NULL, 0, 8},
        {"\"ttg.num-warps\" = 8 : i32", NULL, 8, 8},
        {"\"ttg.num-warps\" = 8 : i32", NULL, 4, 0},
        {"\"ttg.num-warps\" = 3 : i32", NULL, 0, 0},
        {"\"ttg.num-warps\" = \"four\"", NULL, 0, 0},
        {"\"ttg.threads-per-warp\" = 32 : i32, ttg.target = \"cuda:90\"", "sm_90a", 2, 2},
        {"\"ttg.threads-per-warp\" = 64 : i32", "sm_90a", 2, 0},
        {"ttg.target = \"cuda:90\"", "sm_80", 0, 0},
        {"ttg.target = \"cuda:17\"", NULL, 0, 0},
        {"ttg.target = \"hip:gfx000\"", NULL, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_text text = {0};
        with_attributes(&text, cases[i].attributes);
        f->options.target.arch = cases[i].arch ? lilac_arch_find(cases[i].arch) : NULL;
        f->options.target.num_warps = cases[i].num_warps;
        if (cases[i].made_for == 0) {
            assert_refused(f, lilac_text_get(&text), "invalid-target");
        } else {
            assert_true(compile(f, lilac_text_get(&text)));
            assert_int_equal(f->compilation.target.num_warps, cases[i].made_for);
            assert_int_equal(f->compilation.simt->kernels->num_warps, cases[i].made_for);
        }
        lilac_diagnostics_reset(f->context);
        lilac_compilation_clear(&f->compilation);
        lilac_text_clear(&text);
    }
}

static void refuses_unknown_passes(void **state) {
    fixture *f = *state;
    f->options.print_after = "unroll";
    assert_refused(f, copy, "unknown-pass");
    lilac_diagnostics_reset(f->context);
    f->options.print_after = NULL;
    f->options.stop_after = "all";
    assert_refused(f, copy, "unknown-pass");
}

static void refuses_modules_without_kernels(void **state) {
    fixture *f = *state;
    assert_refused(f, "module {\n}\n", "no-kernel");
}

static void stops_at_the_first_pass_that_refuses(void **state) {
    fixture *f = *state;
    assert_false(compile(f, "module {\n  tt.func public @f() {\n    tt.nonsense\n  }\n}\n"));
    assert_int_equal(f->compilation.pass_count, 1);
    assert_string_equal(f->compilation.passes[0].name, "read");
    assert_null(f->compilation.tile);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(options_have_defaults),
        TEST(every_pass_runs_in_order),
        TEST(stops_after_the_pass_named),
        TEST(stops_after_the_last_of_two),
        TEST(stops_at_the_stage_asked_for),
        TEST(ptx_is_written_from_the_simt_text),
        TEST(stages_run_alone),
        TEST(prints_after_each_pass),
        TEST(prints_nothing_unasked),
        TEST(same_text_gives_same_ptx),
        TEST(refuses_launch_shapes),
        TEST(modules_say_what_they_are_for),
        TEST(refuses_unknown_passes),
        TEST(refuses_modules_without_kernels),
        TEST(stops_at_the_first_pass_that_refuses),
    };
    return cmocka_run_group_tests_name("driver", tests, NULL, NULL);
}
