/* Layouts of memory that the engine chooses.
 *
 * Results: the kernels of tests/data/memory_values without the layouts of their memory compute what
 * they compute with them. Counts: the wavefronts that the engine predicts are those that the
 * simulator counts, and not more than those of row-major memory. */
#include "support/lower_harness.h"

#include <dirent.h>

enum { COUNT = 4096, LEAST_FILES = 37, RUNS = 300 };

/* Removes the layout of each type of memory: "64xf32, #s, #smem" becomes "64xf32, #smem". */
static void remove_layouts(char *text) {
    for (char *at = text; (at = strstr(at, ", #smem")) != NULL; at++) {
        char *layout = at - 1;
        while (layout > text && strchr("#<", *layout) == NULL) {
            layout--;
        }
        if (*layout == '#' && layout[-1] == ' ' && layout[-2] == ',') {
            memmove(layout - 2, at, strlen(at) + 1);
            at = layout - 2;
        }
    }
}

static char *read_module(const char *name) {
    char path[512];
    (void)snprintf(path, sizeof path, "memory_values/%s", name);
    char *text = read_data(path, NULL);
    assert_non_null(text);
    return text;
}

static void run_kernel(harness *h, uint32_t number, float *output, int64_t n) {
    static float input[COUNT];
    lilac_simt_kernel *first = h->simt->kernels;
    for (uint32_t i = 0; i < COUNT; i++) {
        input[i] = (float)(i * 2654435761U >> 16 & 7) / 2.0F - 1.5F;
    }
    memset(output, 0, COUNT * sizeof *output);
    h->simt->kernels = number == 0 ? first : first->next;
    const buffer buffers[] = {{input, sizeof input}, {output, COUNT * sizeof *output}};
    harness_run(h, 1, buffers, 2, &n, 1);
    h->simt->kernels = first;
    assert_int_equal(h->counters.uninitialised_reads, 0);
    assert_null(lilac_diagnostics(h->context));
}

static void compare(const char *name, const char *text, int64_t n) {
    static float got[COUNT], want[COUNT];
    harness h;
    harness_open(&h, text, 4, true);
    run_kernel(&h, 1, want, n);
    run_kernel(&h, 0, got, n);
    for (uint32_t i = 0; i < COUNT; i++) {
        if (got[i] != want[i]) {
            fail_msg("%s, n = %lld: element %u is %g, not %g", name, (long long)n, i,
                     (double)got[i], (double)want[i]);
        }
    }
    harness_close(&h);
}

static void kernels(void **state) {
    (void)state;
    DIR *folder = opendir(LILAC_TEST_DATA "/memory_values");
    assert_non_null(folder);
    uint32_t count = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (strstr(entry->d_name, ".ttgir") == NULL) {
            continue;
        }
        char *text = read_module(entry->d_name);
        remove_layouts(text);
        char *at = strstr(text, "// n: ");
        assert_non_null(at);
        count++;
        if (strstr(text, "ttg.memdesc_reinterpret") != NULL) {
            harness h;
            assert_false(harness_try(&h, text, 4, true, NULL));
            assert_string_equal(lilac_diagnostics(h.context)->id, "memory-without-layout");
            harness_close(&h);
            free(text);
            continue;
        }
        at += 6;
        for (char *end; *at != '\n'; at = end) {
            int64_t n = strtoll(at, &end, 10);
            assert_true(end != at);
            compare(entry->d_name, text, n);
        }
        free(text);
    }
    (void)closedir(folder);
    assert_true(count >= LEAST_FILES);
}

/* ---- predicted wavefronts ------------------------------------------------------------------ */

typedef struct sample {
    uint32_t bits[2], element; /* log2 of the shape; an element type */
    bool trans;                /* the load is of the transposed memory */
    char layouts[2][160];      /* of the stored and of the loaded tensor */
} sample;

static const char *const elements[] = {"i8", "f16", "f32", "f64"};

static void put_layout(char *text, size_t size, lilac_random *random) {
    const uint32_t order = (uint32_t)lilac_random_below(random, 2);
    uint32_t parts[3] = {0, 5, 2}, split[3];
    parts[0] = (uint32_t)lilac_random_below(random, 4);
    split[0] = order == 1 ? 0 : parts[0]; /* the vector lies along the fastest dimension */
    for (uint32_t i = 1; i < 3; i++) {
        split[i] = (uint32_t)lilac_random_below(random, parts[i] + 1);
    }
    (void)snprintf(text, size,
                   "#ttg.blocked<{sizePerThread = [%u, %u], threadsPerWarp = [%u, %u], warpsPerCTA "
                   "= [%u, %u], order = [%u, %u]}>",
                   1U << split[0], 1U << (parts[0] - split[0]), 1U << split[1],
                   1U << (parts[1] - split[1]), 1U << split[2], 1U << (parts[2] - split[2]), order,
                   1 - order);
}

/* `shared`: the layout of the memory with a comma, or nothing. */
static void put_kernel(lilac_text *text, const sample *s, const char *shared,
                       const char *transposed) {
    const char *e = elements[s->element];
    const uint32_t r = 1U << s->bits[0], c = 1U << s->bits[1];
    lilac_text_printf(text, "#a = %s\n#b = %s\n#smem = #ttg.shared_memory\n", s->layouts[0],
                      s->layouts[1]);
    lilac_text_printf(text,
                      "module attributes {\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = 4 : i32, "
                      "\"ttg.threads-per-warp\" = 32 : i32} {\n"
                      "  tt.func public @k(%%p: !tt.ptr<%s>) {\n"
                      "    %%s = tt.splat %%p : !tt.ptr<%s> -> tensor<%ux%ux!tt.ptr<%s>, #a>\n"
                      "    %%v = tt.load %%s : tensor<%ux%ux!tt.ptr<%s>, #a>\n"
                      "    %%m = ttg.local_alloc %%v : (tensor<%ux%ux%s, #a>) -> "
                      "!ttg.memdesc<%ux%ux%s%s, #smem>\n",
                      e, e, r, c, e, r, c, e, r, c, e, r, c, e, shared);
    const uint32_t lr = s->trans ? c : r, lc = s->trans ? r : c;
    if (s->trans) {
        lilac_text_printf(text,
                          "    %%t = ttg.memdesc_trans %%m {order = array<i32: 1, 0>} : "
                          "!ttg.memdesc<%ux%ux%s%s, #smem> -> !ttg.memdesc<%ux%ux%s%s, #smem>\n",
                          r, c, e, shared, lr, lc, e, transposed);
    }
    lilac_text_printf(text,
                      "    %%w = ttg.local_load %%%s : !ttg.memdesc<%ux%ux%s%s, #smem> -> "
                      "tensor<%ux%ux%s, #b>\n"
                      "    %%q = tt.splat %%p : !tt.ptr<%s> -> tensor<%ux%ux!tt.ptr<%s>, #b>\n"
                      "    tt.store %%q, %%w : tensor<%ux%ux!tt.ptr<%s>, #b>\n"
                      "    tt.return\n  }\n}\n",
                      s->trans ? "t" : "m", lr, lc, e, s->trans ? transposed : shared, lr, lc, e, e,
                      lr, lc, e, lr, lc, e);
}

/* Runs the kernel; the memory of element 0 is all that it reads and writes. */
static void simulate(harness *h, const char *text) {
    static uint64_t memory[1];
    harness_open(h, text, 4, true);
    const buffer buffers[] = {{memory, sizeof memory}};
    harness_run(h, 1, buffers, 1, NULL, 0);
}

static void wavefronts_are_predicted(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 13);
    uint32_t better = 0;
    for (uint32_t run = 0; run < RUNS; run++) {
        sample s = {.element = (uint32_t)lilac_random_below(&random, 4),
                    .trans = lilac_random_below(&random, 2) != 0};
        s.bits[0] = 4 + (uint32_t)lilac_random_below(&random, 3);
        s.bits[1] = 4 + (uint32_t)lilac_random_below(&random, 3);
        put_layout(s.layouts[0], sizeof s.layouts[0], &random);
        put_layout(s.layouts[1], sizeof s.layouts[1], &random);
        lilac_text chosen = {0}, plain = {0};
        put_kernel(&chosen, &s, "", "");
        put_kernel(&plain, &s,
                   ", #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>",
                   ", #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>");
        harness h, row_major;
        simulate(&h, lilac_text_get(&chosen));
        simulate(&row_major, lilac_text_get(&plain));
        lilac_arena *arena = lilac_arena_create();
        lilac_memory_layout_report report;
        const lilac_target target = {
            .arch = lilac_arch_find("sm_90a"), .num_warps = 4, .num_ctas = 1, .num_stages = 1};
        lilac_engine_memory_layouts(&report, arena, h.tile->functions, &target);
        assert_int_equal(report.count, 1);
        const lilac_memory_layout *layout = &report.layouts[0];
        const uint64_t want =
            row_major.counters.shared_store_wavefronts + row_major.counters.shared_load_wavefronts;
        const uint64_t got = layout->store_wavefronts + layout->load_wavefronts;
        if (layout->store_wavefronts != h.counters.shared_store_wavefronts ||
            layout->load_wavefronts != h.counters.shared_load_wavefronts || got > want) {
            print_message("%s%s\n", lilac_text_get(&chosen), layout->name);
            fail_msg("run %u: predicted %llu and %llu wavefronts, counted %llu and %llu, row-major "
                     "%llu",
                     run, (unsigned long long)layout->store_wavefronts,
                     (unsigned long long)layout->load_wavefronts,
                     (unsigned long long)h.counters.shared_store_wavefronts,
                     (unsigned long long)h.counters.shared_load_wavefronts,
                     (unsigned long long)want);
        }
        better += got < want;
        lilac_arena_destroy(arena);
        harness_close(&h);
        harness_close(&row_major);
        lilac_text_clear(&chosen);
        lilac_text_clear(&plain);
    }
    assert_true(better > RUNS / 4);
}

/* ---- refusals ------------------------------------------------------------------------------ */

typedef struct refusal {
    const char *body, *id, *says;
} refusal;

#define M "!ttg.memdesc<16x16xf32, #smem, mutable>"
#define P "!ttg.memdesc<16x16xf32, #p, #smem, mutable>"

static const refusal refusals[] = {
    {"    %m = ttg.local_alloc : () -> " M "\n"
     "    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %m) -> (" M ") : i32 {\n"
     "      %t = ttg.memdesc_trans %a {order = array<i32: 1, 0>} : " M " -> " M "\n"
     "      scf.yield %t : " M "\n    }\n",
     "memory-without-layout", "'ttg.memdesc_trans': its memory would need two different layouts"},
    {"    %m = ttg.local_alloc : () -> " M "\n"
     "    %r = ttg.memdesc_reinterpret %m : " M " -> " M "\n"
     "    ttg.local_dealloc %r : " M "\n",
     "memory-without-layout", "'ttg.memdesc_reinterpret': it uses memory whose type has no layout"},
    {"    %m = ttg.local_alloc : () -> !ttg.memdesc<16x16xi8, #smem, mutable>\n"
     "    %ps = tt.splat %p : !tt.ptr<i8> -> tensor<16x16x!tt.ptr<i8>, #b>\n"
     "    %t = ttg.async_copy_global_to_local %ps, %m : tensor<16x16x!tt.ptr<i8>, #b> -> "
     "<16x16xi8, #smem, mutable>\n",
     "memory-without-layout",
     "'ttg.async_copy_global_to_local': a thread's elements are contiguous"},
    {"    %m = ttg.local_alloc : () -> !ttg.memdesc<3x16xf32, #smem, mutable>\n", "shape",
     "the dimensions of a buffer must be powers of two"},
    {"    %m = ttg.local_alloc : () -> " P "\n"
     "    %t = ttg.memdesc_trans %m {order = array<i32: 1, 0>} : " P " -> " M "\n"
     "    ttg.local_dealloc %t : " M "\n",
     "layout-mismatch", "'ttg.memdesc_trans': the layouts of its memory do not follow"},
    {"    %m = ttg.local_alloc : () -> !ttg.memdesc<16x16xf32, #tmem, mutable>\n", "memory-space",
     "tensor memory needs a layout"},
};

static void refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        lilac_text text = {0};
        lilac_text_printf(
            &text,
            "#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, "
            "1], order = [1, 0]}>\n"
            "#p = #ttg.padded_shared<[32:+4] {order = [1, 0], shape = [16, 16]}>\n"
            "#smem = #ttg.shared_memory\n"
            "module attributes {\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = 4 : i32, "
            "\"ttg.threads-per-warp\" = 32 : i32} {\n"
            "  tt.func public @k(%%p: !tt.ptr<i8>, %%n: i32) {\n"
            "    %%c0 = arith.constant 0 : i32\n    %%c1 = arith.constant 1 : i32\n%s"
            "    tt.return\n  }\n}\n",
            refusals[i].body);
        harness h;
        if (harness_try(&h, lilac_text_get(&text), 4, true, NULL)) {
            fail_msg("refusal %zu: the kernel was not refused", i);
        }
        const lilac_diagnostic *found = lilac_diagnostics(h.context);
        assert_non_null(found);
        if (strcmp(found->id, refusals[i].id) != 0 ||
            strstr(found->message, refusals[i].says) == NULL) {
            print_diagnostics(h.context);
            fail_msg("refusal %zu: [%s] %s", i, found->id, found->message);
        }
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

/* The verifier accepts memory without a layout until layouts are required. */
static void verified(void **state) {
    (void)state;
    static const char text[] = "#smem = #ttg.shared_memory\n"
                               "module {\n"
                               "  tt.func @f() {\n"
                               "    %0 = ttg.local_alloc : () -> " M " loc(unknown)\n"
                               "    tt.return\n  }\n}\n";
    lilac_context *context = lilac_context_create();
    uint32_t source = lilac_source_add(context, "test.ttir", text, strlen(text));
    lilac_tile_module *module = lilac_tile_read(context, source);
    assert_non_null(module);
    assert_true(lilac_tile_verify(module, false));
    assert_null(lilac_diagnostics(context));
    lilac_text printed = {0};
    lilac_tile_print(&printed, module, false);
    assert_non_null(strstr(lilac_text_get(&printed), "ttg.local_alloc : () -> " M "\n"));
    lilac_text_clear(&printed);
    assert_false(lilac_tile_verify(module, true));
    assert_string_equal(lilac_diagnostics(context)->id, "no-layout");
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels),
        cmocka_unit_test(wavefronts_are_predicted),
        cmocka_unit_test(refused),
        cmocka_unit_test(verified),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
