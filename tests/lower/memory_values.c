/* Memory descriptors and tokens as values: loops, branches, selects and calls pass them on.
 *
 * Each file of tests/data/memory_values has two kernels: @k keeps its tensors in shared memory, and
 * @reference passes the same tensors on as registers. Both run on the simulator for each n that the
 * file lists, and must write the same. */
#include "support/lower_harness.h"

#include <dirent.h>

enum { COUNT = 4096, MOST_BYTES = 1 << 16, LEAST_FILES = 37 };

/* What runs of the compiler: the passes on tile IR or only those that make its regions simple, and
 * the passes on SIMT IR or only the one that removes barriers. */
typedef struct mode {
    const char *name;
    bool tile, simt;
} mode;

static const mode modes[] = {
    {"lowering", false, false}, {"tile passes", true, false}, {"all passes", true, true}};

static void fill(float *values) {
    for (uint32_t i = 0; i < COUNT; i++) {
        values[i] = (float)(i * 2654435761U >> 16 & 7) / 2.0F - 1.5F;
    }
}

static void run_kernel(harness *h, uint32_t number, float *output, int64_t n) {
    static float input[COUNT];
    lilac_simt_kernel *first = h->simt->kernels;
    fill(input);
    memset(output, 0, COUNT * sizeof *output);
    h->simt->kernels = number == 0 ? first : first->next;
    const buffer buffers[] = {{input, sizeof input}, {output, COUNT * sizeof *output}};
    harness_run(h, 1, buffers, 2, &n, 1);
    h->simt->kernels = first;
    if (h->counters.uninitialised_reads != 0 || lilac_diagnostics(h->context) != NULL) {
        print_diagnostics(h->context);
        fail_msg("the simulator reports something about kernel %u", number);
    }
}

static void compare(const char *name, const char *text, mode how, int64_t n) {
    static float got[COUNT], want[COUNT];
    harness h;
    harness_open(&h, text, 4, how.tile);
    if (how.simt) {
        lilac_run_simt_passes(h.simt);
    }
    assert_non_null(h.simt->kernels->next);
    run_kernel(&h, 1, want, n);
    run_kernel(&h, 0, got, n);
    for (uint32_t i = 0; i < COUNT; i++) {
        if (got[i] != want[i]) {
            print_message("%s\n", lilac_text_get(&h.text));
            fail_msg("%s, %s, n = %lld: element %u is %g, not %g", name, how.name, (long long)n, i,
                     (double)got[i], (double)want[i]);
        }
    }
    harness_close(&h);
}

static void files(void **state) {
    (void)state;
    DIR *folder = opendir(LILAC_TEST_DATA "/memory_values");
    assert_non_null(folder);
    uint32_t count = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (strstr(entry->d_name, ".ttgir") == NULL) {
            continue;
        }
        char path[512];
        snprintf(path, sizeof path, "memory_values/%s", entry->d_name);
        char *text = read_data(path, NULL);
        char *at = strstr(text, "// n: ");
        assert_non_null(at);
        at += 6;
        for (char *end; *at != '\n'; at = end) {
            int64_t n = strtoll(at, &end, 10);
            assert_true(end != at);
            for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
                compare(entry->d_name, text, modes[i], n);
            }
        }
        free(text);
        count++;
    }
    (void)closedir(folder);
    assert_true(count >= LEAST_FILES);
}

/* ---- refusals ------------------------------------------------------------------------------ */

/* In the bodies, M is the type of a buffer of 128 f32, T that of a tensor, P of its pointers, K of
 * tokens, H of 128 f16 in memory. */
static const char head[] =
    "#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = "
    "[0]}>\n"
    "#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>\n"
    "#smem = #ttg.shared_memory\n"
    "module attributes {\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = 4 : i32, "
    "\"ttg.threads-per-warp\" = 32 : i32} {\n"
    "  tt.func public @k(%p: !tt.ptr<f32>, %h: !tt.ptr<f16>, %n: i32) {\n"
    "    %c0 = arith.constant 0 : i32\n"
    "    %c1 = arith.constant 1 : i32\n"
    "    %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #b>\n"
    "    %ps = tt.splat %p : !tt.ptr<f32> -> P\n"
    "    %pp = tt.addptr %ps, %r : P, tensor<128xi32, #b>\n"
    "    %hs = tt.splat %h : !tt.ptr<f16> -> tensor<128x!tt.ptr<f16>, #b>\n"
    "    %hp = tt.addptr %hs, %r : tensor<128x!tt.ptr<f16>, #b>, tensor<128xi32, #b>\n"
    "    %v = tt.load %pp : P\n"
    "    %m = ttg.local_alloc %v : (T) -> M\n"
    "    %o = ttg.local_alloc %v : (T) -> M\n"
    "    %c = arith.cmpi slt, %n, %c1 : i32\n";

static void put_module(lilac_text *text, const char *body) {
    static const char *const types[][2] = {{"M", "!ttg.memdesc<128xf32, #s, #smem, mutable>"},
                                           {"H", "!ttg.memdesc<128xf16, #s, #smem, mutable>"},
                                           {"K", "!ttg.async.token"},
                                           {"T", "tensor<128xf32, #b>"},
                                           {"P", "tensor<128x!tt.ptr<f32>, #b>"}};
    const char *const parts[] = {head, body, "    tt.return\n  }\n}\n"};
    for (size_t part = 0; part < 3; part++) {
        for (const char *at = parts[part]; *at != 0; at++) {
            const char *type = NULL;
            for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
                bool alone = at != parts[part] && strchr(" (", at[-1]) != NULL &&
                             strchr(" ,()\n", at[1]) != NULL;
                type = alone && *at == types[i][0][0] ? types[i][1] : type;
            }
            if (type != NULL) {
                lilac_text_puts(text, type);
            } else {
                lilac_text_char(text, *at);
            }
        }
    }
}

/* A body, the operation at which it is refused, and a part of the diagnostic. */
typedef struct refusal {
    const char *device, *body, *at, *says;
} refusal;

#define FOR_NEW(before, after, yielded)                                                            \
    "    %q = scf.for %i = %c0 to %n step %c1 iter_args(%a = %m) -> (M) : i32 {\n" before          \
    "      %z = ttg.local_alloc %v : (T) -> M\n" after "      scf.yield " yielded " : M\n"         \
    "    }\n"
#define COPY(modifiers)                                                                            \
    "    %t = ttg.async_copy_global_to_local %pp, %m " modifiers                                   \
    ": P -> <128xf32, #s, #smem, mutable>\n"

static const refusal refusals[] = {
    {"sm_90a",
     FOR_NEW("", "      %x = ttg.local_load %a : M -> T\n      tt.store %pp, %x : P\n", "%z"),
     "ttg.local_alloc %v : (tensor<128xf32, #b>) -> !ttg.memdesc<128xf32, #s, #smem, mutable>\n  "
     "    %x",
     "the buffer of the previous iteration is still in use when the loop allocates the next one, "
     "by 'ttg.local_load'"},
    {"sm_90a",
     "    %q, %q1 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %m, %d = %o) -> (M, M) : i32 {\n"
     "      %z = ttg.local_alloc %v : (T) -> M\n"
     "      scf.yield %z, %a : M, M\n"
     "    }\n",
     NULL, "still in use when the loop allocates the next one, by 'scf.yield'"},
    {"sm_90a",
     "    scf.for %i = %c0 to %n step %c1 : i32 {\n"
     "      %z = ttg.local_alloc : () -> M\n"
     "      %t = ttg.async_copy_global_to_local %pp, %z : P -> <128xf32, #s, #smem, mutable>\n"
     "      %g = ttg.async_commit_group tokens %t\n"
     "      %w = ttg.async_wait %g {num = 1 : i32}\n"
     "    }\n"
     "    %e = ttg.async_wait {num = 0 : i32}\n",
     "ttg.local_alloc : ()", "by 'ttg.async_copy_global_to_local'"},
    {"sm_90a",
     "    %e = ttg.local_alloc : () -> H\n"
     "    %t = ttg.async_copy_global_to_local %hp, %e : tensor<128x!tt.ptr<f16>, #b> -> "
     "<128xf16, #s, #smem, mutable>\n",
     "ttg.async_copy",
     "elements are contiguous for 2 bytes in both memories; a copy has 4, 8 or 16 bytes"},
    {"sm_90a", COPY("cacheModifier = cs "), "ttg.async_copy", "expected none, ca or cg"},
    {"sm_90a", COPY("{isVolatile = true} "), "ttg.async_copy", "expected false"},
    {"gfx1201", COPY(""), "ttg.async_copy", "gfx1201 has no asynchronous copies"},
    {"gfx1201", "    %t = ttg.async_wait {num = 0 : i32}\n", "ttg.async_wait",
     "gfx1201 has no asynchronous copies"},
    {"sm_90a",
     "    %z = ub.poison : M\n"
     "    %x = ttg.local_load %z : M -> T\n"
     "    tt.store %pp, %x : P\n",
     "ttg.local_load", "not derived from a ttg.local_alloc of this kernel"},
    {"sm_90a",
     "    %e = ttg.local_alloc : () -> !ttg.memdesc<256xf32, #s, #smem, mutable>\n"
     "    %s0 = ttg.memdesc_subslice %e[0] : !ttg.memdesc<256xf32, #s, #smem, mutable> -> "
     "!ttg.memdesc<128xf32, #s, #smem, mutable, 256>\n"
     "    %s1 = ttg.memdesc_subslice %e[128] : !ttg.memdesc<256xf32, #s, #smem, mutable> -> "
     "!ttg.memdesc<128xf32, #s, #smem, mutable, 256>\n"
     "    %q = arith.select %c, %s0, %s1 : !ttg.memdesc<128xf32, #s, #smem, mutable, 256>\n"
     "    %u = ttg.memdesc_reinterpret %q : !ttg.memdesc<128xf32, #s, #smem, mutable, 256> -> M\n"
     "    %x = ttg.local_load %u : M -> T\n"
     "    tt.store %pp, %x : P\n",
     "ttg.memdesc_reinterpret", "operand 0 is a subslice; expected a whole buffer"},
    {"sm_90a",
     "    %q = arith.select %c, %m, %o : M\n"
     "    %u = ttg.memdesc_reinterpret %q : M -> !ttg.memdesc<128xf32, #ttg.padded_shared<[32:+4] "
     "{order = [0], shape = [128]}>, #smem, mutable>\n"
     "    %x = ttg.local_load %u : !ttg.memdesc<128xf32, #ttg.padded_shared<[32:+4] {order = [0], "
     "shape = [128]}>, #smem, mutable> -> T\n"
     "    tt.store %pp, %x : P\n",
     "ttg.memdesc_reinterpret", "the result has 560 bytes; the allocation of operand 0 has 512"},
    {"sm_90a", "    tt.print \"m\" {hex = false, isSigned = array<i32: 0>} : %m : M\n", "tt.print",
     "operand 0 is of type !ttg.memdesc<"},
};

static void refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        lilac_text text = {0};
        harness h;
        put_module(&text, r->body);
        if (harness_try(&h, lilac_text_get(&text), 4, true, r->device)) {
            fail_msg("accepted\n%s", lilac_text_get(&text));
        }
        const lilac_diagnostic *d = lilac_diagnostics(h.context);
        const char *at = r->at == NULL ? NULL : strstr(lilac_text_get(&text), r->at);
        bool here = d != NULL && (r->at == NULL ||
                                  (at != NULL && at == lilac_text_get(&text) + d->position.offset));
        if (!here || strstr(d->message, r->says) == NULL) {
            print_diagnostics(h.context);
            fail_msg("refusal %zu: not at %s, or not: %s", i, r->at, r->says);
        }
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
