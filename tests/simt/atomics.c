/* simt: atomics, votes, prints, assembly and timers: text, verifier, passes, PTX and simulator. */

#include <lilac/ptx.h>
#include <lilac/sim.h>

#include <math.h>

#include "support/test.h"

typedef struct bench {
    lilac_context *context;
    lilac_simt_module *module;
    lilac_sim_counters counters;
} bench;

static bool try_open(bench *b, const char *text) {
    memset(b, 0, sizeof *b);
    b->context = lilac_context_create();
    uint32_t source = lilac_source_add(b->context, "test.simt", text, strlen(text));
    b->module = lilac_simt_read(b->context, source);
    return b->module != NULL && lilac_simt_verify(b->module);
}

static void open(bench *b, const char *text) {
    if (!try_open(b, text)) {
        print_diagnostics(b->context);
        fail_msg("refused");
    }
}

static void close_bench(bench *b) {
    if (b->module != NULL) {
        lilac_simt_module_destroy(b->module);
    }
    lilac_context_destroy(b->context);
}

/* A kernel with one pointer %x around these lines. */
static void wrap(lilac_text *out, const char *device, const char *lines) {
    lilac_text_reset(out);
    lilac_text_printf(out,
                      "simt.module target \"%s\" {\n"
                      "  kernel @k(%%x: i64 ptr) warps 2 ctas 1 shared 256 {\n"
                      "    %%x = param 0 : i64\n%s    return\n  }\n}\n",
                      device, lines);
}

static void run_on(bench *b, void *bytes, size_t size, uint32_t blocks, uint32_t threads,
                   lilac_text *printed) {
    lilac_sim_buffer buffer = {.name = "x", .bytes = bytes, .size = size};
    lilac_sim_place(&buffer, 1);
    lilac_sim_launch launch = {.kernel = b->module->kernels,
                               .grid = {blocks, 1, 1},
                               .arguments = &buffer.address,
                               .argument_count = 1,
                               .buffers = &buffer,
                               .buffer_count = 1,
                               .threads = threads,
                               .printed = printed};
    if (!lilac_sim_run(b->context, &launch, &b->counters)) {
        print_diagnostics(b->context);
        fail_msg("trapped");
    }
}

static void ptx_of(bench *b, lilac_text *out) {
    lilac_ptx_options options = {0};
    lilac_text_reset(out);
    if (!lilac_ptx_write(out, b->module, &options)) {
        print_diagnostics(b->context);
        fail_msg("no PTX");
    }
}

static const char *const everything =
    "simt.module target \"sm_90a\" {\n"
    "  kernel @k(%x: i64 ptr) warps 2 ctas 1 shared 256 {\n"
    "    %x = param 0 : i64\n"
    "    %t = thread : i32\n"
    "    %s = shared_base : i32\n"
    "    %f = const 1.5 : f32\n"
    "    %l = const 7 : i64\n"
    "    %p = cmp lt %t, %t : i1\n"
    "    %0 = atomic.global add [%x + 4], %p, (%t) : i32 {order = acq_rel}\n"
    "    atomic.global add [%x], (%f, %f, %f, %f) {order = release, scope = sys}\n"
    "    %1, %2 = atomic.global add [%x], (%f, %f) : f32, f32 {scope = cta}\n"
    "    %3 = atomic.global max_s [%x - 8], (%l) : i64 {order = acquire}\n"
    "    %4 = cas.global [%x], %p, (%t, %t) : i32\n"
    "    cas.global [%x], (%f, %f)\n"
    "    %5 = atomic.shared exch [%s], (%t) : i32 {bytes = 0 to 16}\n"
    "    %6 = vote any %p : i1\n"
    "    %7 = vote all %p : i1\n"
    "    %8 = match %f : i32\n"
    "    %9 = redux min_u %t : i32\n"
    "    %10 = redux xor %t : i32\n"
    "    print %p, %t, %f, %l {text = \"%d %5.2f %llx\\0A\"}\n"
    "    print {text = \"100%%\"}\n"
    "    %11, %12 = asm %t, %f : i32, f32 {text = \"vadd $0, $2, $2; mov.b32 $1, $3; // $$\"}\n"
    "    asm.volatile {text = \"nanosleep.u32 20;\"}\n"
    "    %13 = timer global : i64\n"
    "    %14 = timer clock : i64\n"
    "    return\n"
    "  }\n"
    "}\n";

/* What is printed is what was read, and PTX says each thing once. */
static void text_and_ptx(void **state) {
    (void)state;
    bench b;
    open(&b, everything);
    lilac_text once = {0};
    lilac_simt_print(&once, b.module);
    assert_string_equal(lilac_text_get(&once), everything);
    ptx_of(&b, &once);
    static const char *const lines[] = {"atom.global.gpu.acq_rel.add.u32 %r",
                                        "atom.global.sys.release.add.v4.f32 _, [%rd",
                                        "atom.global.cta.relaxed.add.v2.f32 {%f",
                                        "atom.global.gpu.acquire.max.s64 %rd",
                                        "atom.global.relaxed.gpu.cas.b32 %r",
                                        "atom.global.relaxed.gpu.cas.b32 _, [",
                                        "atom.shared.gpu.relaxed.exch.b32 %r",
                                        "vote.sync.any.pred %p",
                                        "vote.sync.all.pred %p",
                                        "match.any.sync.b32 %r",
                                        "redux.sync.min.u32 %r",
                                        "redux.sync.xor.b32 %r",
                                        "nanosleep.u32 20;",
                                        "// $\n",
                                        "%globaltimer;",
                                        "%clock64;"};
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        const char *first = strstr(lilac_text_get(&once), lines[k]);
        if (first == NULL) {
            print_message("%s\n%s\n", lines[k], lilac_text_get(&once));
        }
        assert_non_null(first);
        assert_null(strstr(first + 1, lines[k]));
    }
    lilac_text_clear(&once);
    close_bench(&b);
}

/* Effects stay, what was there and is not wanted goes, pure assembly that nobody uses goes. */
static void passes(void **state) {
    (void)state;
    bench b;
    open(&b, everything);
    lilac_simt_kernel *kernel = b.module->kernels;
    (void)lilac_simt_opt_fold(kernel);
    (void)lilac_simt_opt_cse(kernel);
    (void)lilac_simt_opt_licm(kernel);
    (void)lilac_simt_opt_dce(kernel);
    assert_true(lilac_simt_verify(b.module));
    lilac_text text = {0};
    lilac_simt_print(&text, b.module);
    const char *simt = lilac_text_get(&text);
    assert_null(strstr(simt, "= atomic"));
    assert_null(strstr(simt, "= cas"));
    assert_non_null(strstr(simt, "    atomic.global max_s [%x - 8]"));
    assert_non_null(strstr(simt, "    atomic.shared exch"));
    assert_null(strstr(simt, "= asm "));
    assert_non_null(strstr(simt, "asm.volatile {text"));
    assert_non_null(strstr(simt, "print {text = \"100%%\"}"));
    lilac_text_clear(&text);
    close_bench(&b);
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *device, *lines, *id;
    } rows[] = {
        {"sm_90a", "    %a = const 1 : i16\n    atomic.global add [%x], (%a)\n",
         "simt-operand-type"},
        {"sm_90a", "    %a = const 1 : i8\n    cas.global [%x], (%a, %a)\n", "simt-operand-type"},
        {"sm_90a", "    %a = const 1.0 : f32\n    atomic.global max_s [%x], (%a)\n",
         "simt-operand-type"},
        {"sm_90a", "    %a = const 1.0 : f16\n    atomic.global exch [%x], (%a)\n",
         "simt-operand-type"},
        {"sm_90a", "    %a = const 1 : i32\n    atomic.global add [%x], (%a, %a)\n",
         "simt-access-size"},
        {"sm_90a", "    %a = const 1.0 : f32\n    atomic.global add [%x], (%a, %a, %a)\n",
         "simt-access-size"},
        {"sm_90a", "    %a = const 1.0 : f64\n    atomic.global add [%x], (%a, %a)\n",
         "simt-access-size"},
        {"sm_90a", "    %a = const 1.0 : f32\n    %b = atomic.global add [%x], (%a, %a) : f32\n",
         "simt-operand-count"},
        {"sm_90a", "    %a = const 1 : i32\n    cas.global [%x], (%a)\n", "simt-operand-count"},
        {"sm_90a", "    %a = const 1 : i32\n    print %a {text = \"%f\"}\n", "simt-text"},
        {"sm_90a", "    %a = const 1 : i32\n    print %a {text = \"%lld\"}\n", "simt-text"},
        {"sm_90a", "    %a = const 1 : i32\n    print %a {text = \"%s\"}\n", "simt-text"},
        {"sm_90a", "    %a = const 1 : i32\n    print %a {text = \"%n\"}\n", "simt-text"},
        {"sm_90a", "    %a = const 1 : i32\n    print %a {text = \"%*d\"}\n", "simt-text"},
        {"sm_90a", "    %a = const 1 : i32\n    print %a {text = \"%9999d\"}\n", "simt-text"},
        {"sm_90a", "    %a = const 1 : i32\n    print %a {text = \"no\"}\n", "simt-text"},
        {"sm_90a", "    print {text = \"%d\"}\n", "simt-text"},
        {"sm_90a", "    print {text = \"%\"}\n", "simt-text"},
        {"sm_90a", "    print {text = \"%ll\"}\n", "simt-text"},
        {"sm_90a", "    %a = const 1 : i32\n    %b = asm %a : i32 {text = \"mov $0, $2;\"}\n",
         "simt-text"},
        {"sm_90a", "    %a = const 1 : i32\n    %b = asm %a : i32 {text = \"mov $0, $;\"}\n",
         "simt-text"},
        {"sm_90a",
         "    %a = const 1 : i32\n    %b = asm %a : i32 {text = \"$99999999999999999\"}\n",
         "simt-text"},
        {"sm_90a", "    %a = const 1 : i32\n    %b = asm %a : i32\n", "simt-text"},
        {"sm_90a", "    %a = const 1 : i32\n    %b = redux exch %a : i32\n", "simt-detail"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        lilac_text text = {0};
        bench b;
        wrap(&text, rows[k].device, rows[k].lines);
        if (try_open(&b, lilac_text_get(&text))) {
            fail_msg("accepted: %s", rows[k].lines);
        }
        assert_string_equal(lilac_diagnostics(b.context)->id, rows[k].id);
        close_bench(&b);
        lilac_text_clear(&text);
    }
    /* Fine in SIMT IR, but older devices have no such instruction. */
    static const char *const newer[] = {
        "    %a = const 1.0 : f32\n    atomic.global add [%x], (%a, %a)\n",
        "    %a = const 1.0 : bf16\n    atomic.global add [%x], (%a)\n"};
    for (size_t k = 0; k < 2; k++) {
        lilac_text text = {0}, out = {0};
        bench b;
        lilac_ptx_options options = {0};
        wrap(&text, "sm_80", newer[k]);
        open(&b, lilac_text_get(&text));
        assert_false(lilac_ptx_write(&out, b.module, &options));
        assert_string_equal(lilac_diagnostics(b.context)->id, "unsupported-on-target");
        close_bench(&b);
        lilac_text_clear(&text);
        lilac_text_clear(&out);
    }
}

/* Every thread of every block adds to one place: nothing is lost, whatever the host's threads. */
static void many_blocks(void **state) {
    (void)state;
    lilac_text text = {0};
    wrap(&text, "sm_90a",
         "    %one = const 1 : i32\n    %wide = const 1 : i64\n"
         "    atomic.global add [%x], (%one)\n"
         "    %old = atomic.global add [%x + 8], (%wide) : i64\n"
         "    atomic.global max_s [%x + 16], (%old)\n");
    bench b;
    open(&b, lilac_text_get(&text));
    enum { BLOCKS = 500 };
    for (uint32_t threads = 1; threads <= 4; threads++) {
        int64_t x[3] = {0, 0, -1};
        run_on(&b, x, sizeof x, BLOCKS, threads, NULL);
        assert_int_equal(x[0], BLOCKS * 64);
        assert_int_equal(x[1], BLOCKS * 64);
        assert_int_equal(x[2], BLOCKS * 64 - 1);
        assert_int_equal(b.counters.atomics, BLOCKS * 2 * 3);
    }
    close_bench(&b);
    lilac_text_clear(&text);
}

/* A histogram in shared memory: atomics do not race with each other, but with plain accesses. */
static void shared_memory(void **state) {
    (void)state;
    static const char *const lines =
        "    %%t = thread : i32\n    %%s = shared_base : i32\n    %%zero = const 0 : i32\n"
        "    %%one = const 1 : i32\n    %%two = const 2 : i32\n    %%three = const 3 : i32\n"
        "    %%o = shl %%t, %%two : i32\n    %%own = add %%s, %%o : i32\n"
        "    st.shared [%%own], (%%zero)\n%s"
        "    %%b = and %%t, %%three : i32\n    %%bo = shl %%b, %%two : i32\n"
        "    %%bin = add %%s, %%bo : i32\n    atomic.shared add [%%bin], (%%one)\n%s"
        "    %%v = ld.shared [%%own] : i32\n    %%w = sext %%o : i64\n    %%p = add %%x, %%w : "
        "i64\n"
        "    st.global [%%p], (%%v)\n";
    for (int barriers = 0; barriers < 4; barriers++) { /* bit 0: before, bit 1: after */
        bool ordered = barriers == 3;
        lilac_text text = {0}, all = {0};
        lilac_text_printf(&text, lines, barriers & 1 ? "    barrier\n" : "",
                          barriers & 2 ? "    barrier\n" : "");
        wrap(&all, "sm_90a", lilac_text_get(&text));
        bench b;
        open(&b, lilac_text_get(&all));
        uint32_t x[64];
        run_on(&b, x, sizeof x, 1, 1, NULL);
        for (uint32_t k = 0; k < 64 && ordered; k++) {
            assert_int_equal(x[k], k < 4 ? 16 : 0);
        }
        assert_int_equal(b.counters.races > 0, !ordered);
        close_bench(&b);
        lilac_text_clear(&text);
        lilac_text_clear(&all);
    }
}

/* f32: subnormals count as zero in global memory, and are kept in shared memory. */
static void float_sums(void **state) {
    (void)state;
    lilac_text text = {0};
    wrap(&text, "sm_90a",
         "    %t = thread : i32\n    %zero = const 0 : i32\n    %p = cmp eq %t, %zero : i1\n"
         "    %s = shared_base : i32\n    %small = const 0x00000003 : f32\n"
         "    %pair = const 0x3C004000 : f16x2\n    %big = const 0x7BFF : f16\n"
         "    %b = const 0x3F80 : bf16\n    %d = const 0.1 : f64\n"
         "    atomic.global add [%x], %p, (%small)\n"
         "    st.shared [%s], %p, (%small)\n"
         "    atomic.shared add [%s], %p, (%small)\n"
         "    %v = ld.shared [%s], %p : f32\n    st.global [%x + 4], %p, (%v)\n"
         "    atomic.global add [%x + 8], %p, (%pair)\n"
         "    atomic.global add [%x + 12], %p, (%big)\n"
         "    atomic.global add [%x + 14], %p, (%b)\n"
         "    atomic.global add [%x + 16], %p, (%d)\n");
    bench b;
    open(&b, lilac_text_get(&text));
    uint8_t x[24] = {0};
    uint32_t words[] = {5, 0, 0x3C003C00}; /* a subnormal, -, (1, 1) */
    uint16_t halves[] = {0x7BFF, 0x7F7F};
    double d = 0.2;
    memcpy(x, words, 12);
    memcpy(x + 12, halves, 4);
    memcpy(x + 16, &d, 8);
    run_on(&b, x, sizeof x, 1, 1, NULL);
    memcpy(words, x, 12);
    memcpy(halves, x + 12, 4);
    memcpy(&d, x + 16, 8);
    assert_int_equal(words[0], 0);
    assert_int_equal(words[1], 6);
    assert_int_equal(words[2], 0x40004200); /* (1 + 2, 1 + 1) */
    assert_int_equal(halves[0], 0x7C00);
    assert_int_equal(halves[1], 0x7F7F);
    assert_true(d == 0.1 + 0.2);
    close_bench(&b);
    lilac_text_clear(&text);
}

static void votes(void **state) {
    (void)state;
    lilac_text text = {0};
    wrap(&text, "sm_90a",
         "    %t = thread : i32\n    %c = const 33 : i32\n    %seven = const 7 : i32\n"
         "    %two = const 2 : i32\n    %five = const 5 : i32\n"
         "    %p = cmp lt %t, %c : i1\n    %any = vote any %p : i1\n    %all = vote all %p : i1\n"
         "    %low = and %t, %seven : i32\n    %same = match %low : i32\n"
         "    %sum = redux add %t : i32\n    %m = sub %t, %c : i32\n    %least = redux min_s %m : "
         "i32\n"
         "    %most = redux max_u %m : i32\n    %a = zext %any : i32\n    %b = zext %all : i32\n"
         "    %o = shl %t, %five : i32\n    %w = sext %o : i64\n    %q = add %x, %w : i64\n"
         "    st.global [%q], (%a, %b, %same, %sum)\n    st.global [%q + 16], (%least, %most)\n");
    bench b;
    open(&b, lilac_text_get(&text));
    uint32_t x[64][8];
    run_on(&b, x, sizeof x, 1, 1, NULL);
    for (uint32_t t = 0; t < 64; t++) {
        uint32_t warp = t / 32;
        assert_int_equal(x[t][0], 1);
        assert_int_equal(x[t][1], warp == 0);
        assert_int_equal(x[t][2], 0x01010101u << t % 8);
        assert_int_equal(x[t][3], 496 + warp * 1024);
        assert_int_equal((int32_t)x[t][4], (int32_t)(warp * 32) - 33);
        assert_int_equal(x[t][5], warp == 0 ? UINT32_MAX - 1 : UINT32_MAX);
    }
    close_bench(&b);
    lilac_text_clear(&text);
}

/* Atomics trap where accesses do. */
static void traps(void **state) {
    (void)state;
    static const struct {
        const char *lines, *id;
    } rows[] = {
        {"    %a = const 1 : i64\n    atomic.global add [%x + 4], (%a)\n", "misaligned-access"},
        {"    %a = const 1 : i64\n    atomic.global add [%x + 64], (%a)\n", "out-of-bounds"},
        {"    %a = const 1.0 : f32\n    atomic.global add [%x + 8], (%a, %a, %a, %a)\n",
         "misaligned-access"},
        {"    %s = shared_base : i32\n    atomic.shared add [%s + 256], (%s)\n", "out-of-bounds"},
        {"    %s = shared_base : i32\n    atomic.shared add [%s + 8], (%s) {bytes = 0 to 8}\n",
         "outside-interval"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        lilac_text text = {0};
        bench b;
        wrap(&text, "sm_90a", rows[k].lines);
        open(&b, lilac_text_get(&text));
        uint8_t x[64] = {0};
        lilac_sim_buffer buffer = {.name = "x", .bytes = x, .size = sizeof x};
        lilac_sim_place(&buffer, 1);
        lilac_sim_launch launch = {.kernel = b.module->kernels,
                                   .grid = {1, 1, 1},
                                   .arguments = &buffer.address,
                                   .argument_count = 1,
                                   .buffers = &buffer,
                                   .buffer_count = 1,
                                   .threads = 1};
        assert_false(lilac_sim_run(b.context, &launch, &b.counters));
        assert_string_equal(lilac_diagnostics(b.context)->id, rows[k].id);
        close_bench(&b);
        lilac_text_clear(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_ptx),  cmocka_unit_test(passes),    cmocka_unit_test(refusals),
        cmocka_unit_test(many_blocks),   cmocka_unit_test(votes),     cmocka_unit_test(traps),
        cmocka_unit_test(shared_memory), cmocka_unit_test(float_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
