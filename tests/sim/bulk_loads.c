/* Bulk loads: single rules, polling, programs of producers and consumers, clusters, refusals. */

#include "support/test.h"
#include "support/text_rig.h"

#define HEAD "kernel @k(%in: i64 ptr, %out: i64 ptr) warps 2 ctas 1 shared 1024"
#define VALUES                                                                                     \
    "%base = shared_base : i32\n%in = param 0 : i64\n%out = param 1 : i64\n%t = thread : i32\n"    \
    "%zero = const 0 : i32\n%one = const 1 : i32\n%four = const 4 : i32\n%n = const 256 : i32\n"   \
    "%yes = const true : i1\n%first = cmp eq %t, %zero : i1\n%at = mul %t, %four : i32\n"          \
    "%wide = zext %at : i64\n%from = add %in, %wide : i64\n%to = add %out, %wide : i64\n"
#define INIT "mbarrier.init [%base], %first, (%one)\nfence.mbarrier_init\nbarrier\n"
#define LOAD                                                                                       \
    "mbarrier.expect [%base], %first, (%n)\n"                                                      \
    "cp.bulk.load [%base + 256], %first, (%in, %n, %base)\n"
#define WAIT  "mbarrier.wait [%base], (%zero)\n"
#define READ  "%word = ld.shared [%at + 256] : i32\n"
#define STORE "st.global [%to], (%word)\n"

static uint32_t in[64], out[64];

static void start(text_rig *r, const char *head, const char *body) {
    text_open(r, head, VALUES, body, NULL);
    for (uint32_t k = 0; k < 64; k++) {
        in[k] = k * 2654435761u;
        out[k] = 0;
    }
    simt_text_give(&r->t, "in", in, sizeof in);
    simt_text_give(&r->t, "out", out, sizeof out);
}

static void check_out(const text_rig *r) {
    expect_nothing(r);
    for (uint32_t k = 0; k < 64; k++) {
        assert_int_equal(out[k], in[k]);
    }
}

/* A test of the phase, and a wait where its answer was no. */
#define TEST(n)                                                                                    \
    "%done" #n " = mbarrier.test [%base], (%zero) : i1\n%not" #n " = xor %done" #n ", %yes : i1\n"
#define WAIT_FOR(n) "mbarrier.wait [%base], %not" #n ", (%zero)\n"

static void rules(void **state) {
    static const struct {
        const char *body, *id, *at, *other; /* id NULL: it is right */
    } cases[] = {
        {INIT LOAD WAIT READ STORE, NULL, NULL, NULL},
        /* several copies of one phase; those that move no byte */
        {INIT "mbarrier.expect [%base], %first, (%n)\n"
              "%h = const 128 : i32\ncp.bulk.load [%base + 256], %first, (%in, %h, %base)\n"
              "cp.bulk.load [%base + 384], %first, (%in, %h, %base) {global = 128}\n"
              "cp.bulk.load [%base], %first, (%in, %zero, %base)\n" WAIT READ STORE,
         NULL, NULL, NULL},
        /* the copy may be started before its bytes are announced */
        {INIT "cp.bulk.load [%base + 256], %first, (%in, %n, %base)\n"
              "mbarrier.expect [%base], %first, (%n)\n" WAIT READ STORE,
         NULL, NULL, NULL},
        /* a loop around try_wait */
        {INIT LOAD "while () {\n"
                   "%done = mbarrier.try_wait [%base], (%zero) : i1\n"
                   "%not = xor %done, %yes : i1\n%go = vote some %not : i1\n"
                   "condition %go\n} do () {\nyield\n}\n" READ STORE,
         NULL, NULL, NULL},
        /* every other test finds that the copies have arrived, and there is no need to wait */
        {INIT LOAD TEST(0) WAIT_FOR(0) READ STORE, NULL, NULL, NULL},
        {INIT LOAD TEST(0) TEST(1) WAIT_FOR(1) READ STORE, NULL, NULL, NULL},
        {INIT LOAD TEST(0) TEST(1) READ STORE, NULL, NULL, NULL},
        {INIT LOAD TEST(0) READ WAIT STORE, "copy-in-flight", "ld.shared", "cp.bulk.load"},
        {INIT LOAD
         "%never = const false : i1\nmbarrier.wait [%base], %never, (%zero)\n" READ WAIT STORE,
         "copy-in-flight", "ld.shared", "cp.bulk.load"},
        /* what was written before needs a fence, then a barrier or the same thread */
        {INIT
         "st.shared [%at + 256], (%one)\nfence.proxy_async shared\nbarrier\n" LOAD WAIT READ STORE,
         NULL, NULL, NULL},
        {INIT "st.shared [%at + 256], (%one)\nbarrier\n" LOAD WAIT READ STORE,
         "missing-proxy-fence", "cp.bulk.load", "st.shared"},
        {INIT LOAD READ WAIT STORE, "copy-in-flight", "ld.shared", "cp.bulk.load"},
        {INIT LOAD "st.shared [%at + 256], (%one)\n" WAIT READ STORE, "copy-in-flight", "st.shared",
         "cp.bulk.load"},
        {INIT LOAD "barrier\n" READ WAIT STORE, "copy-in-flight", "ld.shared", "cp.bulk.load"},
        /* the source must not change */
        {INIT LOAD "st.global [%from], (%one)\n" WAIT READ STORE, "copy-source-changed",
         "cp.bulk.load", "mbarrier.init"},
        {INIT LOAD, "copy-not-awaited", "cp.bulk.load", NULL},
        {INIT LOAD, "mbarrier-unfinished", "mbarrier.init", NULL},
        {"st.global [%from], (%one)\nbarrier\n" INIT LOAD WAIT READ STORE, "missing-proxy-fence",
         "cp.bulk.load", "st.global"},
        {"st.global [%from], (%one)\nfence.proxy_async global\n" INIT LOAD WAIT READ STORE, NULL,
         NULL, NULL},
        /* two copies into the same bytes */
        {INIT LOAD "cp.bulk.load [%base + 256], %first, (%in, %zero, %base)\n" WAIT READ STORE,
         NULL, NULL, NULL},
        {INIT "%d = const 512 : i32\nmbarrier.expect [%base], %first, (%d)\n"
              "cp.bulk.load [%base + 256], %first, (%in, %n, %base)\n"
              "cp.bulk.load [%base + 256], %first, (%out, %n, %base)\n" WAIT,
         "copy-in-flight", "cp.bulk.load [%base + 256], %first, (%out", "cp.bulk.load"},
        /* a store reads what a load wrote, with no fence; its source is loaded again too early */
        {INIT LOAD WAIT "cp.bulk.store [%base + 256], %first, (%out, %n)\nbulk.commit\nbulk.wait\n",
         NULL, NULL, NULL},
        {INIT LOAD WAIT "cp.bulk.store [%base + 256], %first, (%out, %n)\nbulk.commit\n"
                        "cp.bulk.load [%base + 256], %first, (%in, %n, %base)\n"
                        "mbarrier.expect [%base], %first, (%n)\nbulk.wait\n"
                        "mbarrier.wait [%base], (%one)\n",
         "copy-source-written", "cp.bulk.load", "cp.bulk.store"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        text_rig r;
        start(&r, HEAD, cases[k].body);
        bool done = simt_text_run(&r.t);
        if (!done) {
            text_fail(&r, "a trap");
        }
        if (!cases[k].id) {
            check_out(&r);
        } else {
            expect_finding(&r, cases[k].id, cases[k].at, cases[k].other);
        }
        text_close(&r);
    }
}

static void traps(void **state) {
    static const struct {
        const char *body, *id;
    } cases[] = {
        {LOAD WAIT, "mbarrier-missing"},
        {INIT "cp.bulk.load [%base + 256], %first, (%in, %n, %base) {mbarrier = 8}\n",
         "mbarrier-missing"},
        {INIT "%m = add %n, %at : i32\ncp.bulk.load [%base + 256], (%in, %m, %base)\n",
         "copy-size"},
        {INIT "cp.bulk.load [%base + 896], %first, (%in, %n, %base)\n", "out-of-bounds"},
        {INIT "cp.bulk.load [%base + 256], %first, (%in, %n, %base) {global = 16}\n",
         "out-of-bounds"},
        {INIT "mbarrier.expect [%base], %first, (%four)\n"
              "cp.bulk.load [%base + 256], %first, (%in, %n, %base)\n" WAIT,
         "mbarrier-bytes"},
        {INIT "mbarrier.expect [%base], %first, (%n)\n" WAIT, "deadlock"},
        {INIT "%q = div_u %n, %zero : i32\ncp.bulk.load [%base + 256], %first, (%in, %n, %q)\n",
         "division-by-zero"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        text_rig r;
        bool found = false;
        start(&r, HEAD, cases[k].body);
        bool done = simt_text_run(&r.t);
        for (const lilac_diagnostic *d = lilac_diagnostics(r.t.context); d; d = d->next) {
            found |= d->severity == LILAC_ERROR && strcmp(d->id, cases[k].id) == 0;
        }
        if (done || !found) {
            text_fail(&r, cases[k].id);
        }
        text_close(&r);
    }
}

/* One program starts the copy, the other waits for it; groups and fences are those of a program. */
static void programs(void **state) {
    (void)state;
    text_rig r;
    start(&r, HEAD,
          INIT "programs warps 0 to 1 {\n" LOAD "yield\n} warps 1 to 2 {\n" WAIT READ STORE
               "yield\n}\n");
    assert_true(simt_text_run(&r.t));
    expect_nothing(&r);
    for (uint32_t n = 0; n < 64; n++) {
        assert_int_equal(out[n], n < 32 ? 0 : in[n]);
    }
    text_close(&r);
    start(&r, HEAD,
          "%half = const 128 : i32\n%own = and %first, %first : i1\nst.shared [%at], (%at)\n"
          "programs warps 0 to 1 {\nfence.proxy_async shared\nnamed_barrier.sync {id = 1, threads "
          "= 64}\n"
          "yield\n} warps 1 to 2 {\nnamed_barrier.sync {id = 1, threads = 64}\n"
          "%lead = const 32 : i32\n%elected = cmp eq %t, %lead : i1\n"
          "cp.bulk.store [%base], %elected, (%out, %half)\n"
          "cp.bulk.store [%base + 128], %elected, (%out, %half) {global = 128}\n"
          "bulk.commit\nbulk.wait\nyield\n}\nbulk.wait_read\n");
    assert_true(simt_text_run(&r.t));
    expect_finding(&r, "missing-proxy-fence", "cp.bulk.store [%base + 128]", "st.shared");
    for (uint32_t n = 0; n < 64; n++) {
        assert_int_equal(out[n], 4 * n);
    }
    assert_null(lilac_diagnostics(r.t.context)->next);
    text_close(&r);
}

/* Each block of a cluster has its own copies, mbarriers and memory. */
static void clusters(void **state) {
    (void)state;
    text_rig r;
    start(&r, "kernel @k(%in: i64 ptr, %out: i64 ptr) warps 2 ctas 2 shared 1024",
          INIT LOAD WAIT READ "%rank = cta : i32\n%mine = cmp eq %rank, %one : i1\n"
                              "st.global [%to], %mine, (%word)\n");
    assert_true(simt_text_run(&r.t));
    assert_int_equal(r.t.counters.bulk_copies, 2);
    check_out(&r);
    text_close(&r);
}

/* ---- launches with tensor maps ------------------------------------------------------------ */

static void tensor_maps_are_checked(void **state) {
    static const struct {
        lilac_tensor_map map;
        uint64_t argument;
        const char *body, *refused; /* NULL: it runs */
    } cases[] = {
        {{.element = LILAC_TENSOR_U32,
          .rank = 1,
          .dims = {64},
          .box = {64},
          .element_strides = {1}},
         0,
         "cp.tensor.load [%base + 256], %first, (%m, %zero, %base)\n" WAIT READ STORE,
         NULL},
        {{.element = LILAC_TENSOR_U32,
          .rank = 1,
          .dims = {64},
          .box = {64},
          .element_strides = {1}},
         1,
         WAIT,
         "parameter 'm' is tensor map 1, and the launch has 1"},
        {{.element = LILAC_TENSOR_U32, .rank = 1, .dims = {64}, .box = {3}, .element_strides = {1}},
         0,
         WAIT,
         "tensor map 'm': the box has 12 bytes along dimension 0"},
        {{.element = LILAC_TENSOR_U32,
          .rank = 1,
          .dims = {64},
          .box = {64},
          .element_strides = {1}},
         0,
         "cp.tensor.load [%base + 256], %first, (%m, %zero, %zero, %base)\n",
         "cp.tensor.load has 2 coordinates, and its tensor map has the rank 1"},
        {{.element = LILAC_TENSOR_F16,
          .rank = 1,
          .dims = {64},
          .box = {64},
          .element_strides = {1}},
         0,
         "cp.tensor.reduce or [%base + 256], %first, (%m, %zero)\n",
         "the elements of its tensor map are others"},
        {{.element = LILAC_TENSOR_F16,
          .rank = 1,
          .dims = {64},
          .box = {8},
          .element_strides = {1},
          .swizzle = LILAC_TENSOR_SWIZZLE_32},
         0,
         "cp.tensor.load [%base + 256], %first, (%m, %zero, %base)\n",
         "the simulator has no swizzle of 32 bytes of boxes with 16 bytes"},
        /* the map says more than the buffer holds */
        {{.element = LILAC_TENSOR_U32,
          .rank = 1,
          .dims = {80},
          .box = {64},
          .element_strides = {1}},
         0,
         "cp.tensor.load [%base + 256], %first, (%m, %n, %base)\n"
         "%c = const 32 : i32\ncp.tensor.load [%base + 512], %first, (%m, %c, %base)\n",
         "is outside every buffer; it begins at the end of 'in'"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        text_rig r;
        lilac_text body = {0};
        lilac_tensor_map map = cases[k].map;
        lilac_text_printf(&body, "%%m = param 2 : i64\n%s%s%s", INIT,
                          "mbarrier.expect [%base], %first, (%n)\n", cases[k].body);
        start(&r,
              "kernel @k(%in: i64 ptr, %out: i64 ptr, %m: i64 tensor_map) warps 2 ctas 1 shared "
              "1024",
              lilac_text_get(&body));
        lilac_sim_place(r.t.buffers, 2);
        for (uint32_t b = 0; b < 2; b++) {
            r.t.arguments[b] = r.t.buffers[b].address;
        }
        r.t.arguments[2] = cases[k].argument;
        map.address = r.t.buffers[0].address;
        r.t.launch.argument_count = 3;
        r.t.launch.tensor_maps = &map;
        r.t.launch.tensor_map_count = 1;
        bool done = lilac_sim_run(r.t.context, &r.t.launch, &r.t.counters);
        const lilac_diagnostic *d = lilac_diagnostics(r.t.context);
        if (cases[k].refused && (done || !strstr(d->message, cases[k].refused))) {
            text_fail(&r, cases[k].refused);
        }
        if (!cases[k].refused) {
            check_out(&r);
        }
        lilac_text_clear(&body);
        text_close(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules),
        cmocka_unit_test(traps),
        cmocka_unit_test(programs),
        cmocka_unit_test(clusters),
        cmocka_unit_test(tensor_maps_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
