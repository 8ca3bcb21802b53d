/* Bulk stores and reductions on the simulator, and the proxies.
 *
 * A kernel of two warps that is right: each thread stores a word, one thread copies all of them to
 * global memory, the words are overwritten, and each thread reads another one's word back. Each
 * line that is left out is reported with both places. Then single rules. */

#include "support/test.h"
#include "support/text_rig.h"

#define HEAD "kernel @k(%out: i64 ptr, %back: i64 ptr) warps 2 ctas 1 shared 1024"
#define VALUES                                                                                     \
    "%base = shared_base : i32\n%out = param 0 : i64\n%back = param 1 : i64\n%t = thread : i32\n"  \
    "%zero = const 0 : i32\n%four = const 4 : i32\n%n = const 256 : i32\n%seven = const 7 : i32\n" \
    "%flip = const 32 : i32\n%first = cmp eq %t, %zero : i1\n%at = mul %t, %four : i32\n"          \
    "%other = xor %t, %flip : i32\n%far = mul %other, %four : i32\n%wide = zext %far : i64\n"      \
    "%own = zext %at : i64\n%there = add %out, %wide : i64\n%here = add %back, %own : i64\n"       \
    "%word = mul %t, %seven : i32\n"
#define BODY                                                                                       \
    "st.shared [%at], (%word)\n"                                                                   \
    "fence.proxy_async shared\n"                                                                   \
    "barrier {shared}\n"                                                                           \
    "cp.bulk.store [%base], %first, (%out, %n)\n"                                                  \
    "bulk.commit\n"                                                                                \
    "bulk.wait_read\n"                                                                             \
    "barrier\n"                                                                                    \
    "st.shared [%at], (%zero)\n"                                                                   \
    "bulk.wait {groups = 0}\n"
#define END                                                                                        \
    "%read = ld.global [%there] : i32\n"                                                           \
    "st.global [%here], (%read)\n"

static uint32_t out[64], back[64];

static void start(text_rig *r, const char *body, const char *without) {
    text_open(r, HEAD, VALUES, body, without);
    memset(out, 0, sizeof out);
    memset(back, 0, sizeof back);
    simt_text_give(&r->t, "out", out, sizeof out);
    simt_text_give(&r->t, "back", back, sizeof back);
}

static void a_store_is_right(void **state) {
    (void)state;
    text_rig r;
    start(&r, BODY "barrier\n" END, NULL);
    assert_true(simt_text_run(&r.t));
    expect_nothing(&r);
    assert_int_equal(r.t.counters.bulk_copies, 1);
    assert_int_equal(r.t.counters.bulk_bytes, 256);
    for (uint32_t t = 0; t < 64; t++) {
        assert_int_equal(out[t], 7 * t);
        assert_int_equal(back[t], 7 * (t ^ 32));
    }
    /* of the barriers that order shared memory alone none is left out */
    uint64_t barriers = r.t.counters.barriers;
    assert_false(lilac_simt_opt_barriers(r.t.kernel));
    assert_true(simt_text_run(&r.t));
    assert_int_equal(r.t.counters.barriers, barriers);
    text_close(&r);
}

static void mutations_are_found(void **state) {
    static const struct {
        const char *without, *id, *at, *other;
    } cases[] = {
        {"fence", "missing-proxy-fence", "cp.bulk.store", "st.shared"},
        {"barrier {shared}", "missing-proxy-fence", "cp.bulk.store", "st.shared"},
        {"barrier {shared}", "shared-race", "cp.bulk.store", "st.shared"},
        {"bulk.wait_read", "copy-source-written", "st.shared", "cp.bulk.store"},
        {"bulk.wait {groups", "copy-in-flight", "ld.global", "cp.bulk.store"},
        {"bulk.commit", "copy-source-written", "st.shared", "cp.bulk.store"},
        {"bulk.commit", "copy-in-flight", "ld.global", "cp.bulk.store"},
        {"bulk.commit", "copy-not-awaited", "cp.bulk.store", NULL},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        text_rig r;
        start(&r, BODY "barrier\n" END, cases[k].without);
        assert_true(simt_text_run(&r.t));
        expect_finding(&r, cases[k].id, cases[k].at, cases[k].other);
        assert_true(r.t.counters.races > 0);
        text_close(&r);
    }
}

/* One rule each: a body that is right, or the one finding it has. */
static void rules(void **state) {
#define FILL  "st.shared [%at], (%word)\nfence.proxy_async shared\nbarrier\n"
#define STORE "cp.bulk.store [%base], %first, (%out, %n)\nbulk.commit\n"
    static const struct {
        const char *body, *id, *at, *other;
    } cases[] = {
        /* the source may be given up before global memory is written, which the end does too */
        {FILL STORE "bulk.wait_read\n", NULL, NULL, NULL},
        /* the newest group may be incomplete */
        {FILL STORE "bulk.commit\nbulk.wait_read {groups = 1}\n", NULL, NULL, NULL},
        {FILL STORE "bulk.wait_read {groups = 1}\n", "copy-not-awaited", "cp.bulk.store", NULL},
        /* another thread's wait does not help, nor is its order known without a barrier */
        {FILL STORE "bulk.wait_read\nst.shared [%far], (%zero)\n", "shared-race", "st.shared",
         "cp.bulk.store"},
        /* a fence of the reader is none of the writers */
        {"st.shared [%at], (%word)\nbarrier\nfence.proxy_async shared\n" STORE "bulk.wait\n",
         "missing-proxy-fence", "cp.bulk.store", "st.shared"},
        {"st.shared [%at], (%word)\nfence.proxy_async global\nbarrier\n" STORE "bulk.wait\n",
         "missing-proxy-fence", "cp.bulk.store", "st.shared"},
        /* a write after the fence needs another one */
        {"fence.proxy_async shared\nst.shared [%at], (%word)\nbarrier\n" STORE "bulk.wait\n",
         "missing-proxy-fence", "cp.bulk.store", "st.shared"},
        {"st.shared [%at], (%word)\nfence.proxy_async all\nfence.proxy_async all\nbarrier\n" STORE
         "bulk.wait\n",
         NULL, NULL, NULL},
        /* cp.async needs a wait and a barrier, no fence */
        {"cp.async [%at], (%here) {size = 4}\ncp.async.wait_all\nbarrier\n" STORE "bulk.wait\n",
         NULL, NULL, NULL},
        {"cp.async [%at], (%here) {size = 4}\nbarrier\n" STORE "bulk.wait\ncp.async.wait_all\n",
         "copy-in-flight", "cp.bulk.store", "cp.async"},
        /* another warp reads what is written, with no barrier */
        {BODY END, "global-race", "ld.global", "cp.bulk.store"},
        /* what nothing wrote */
        {STORE "bulk.wait\n", "uninitialised-read", "cp.bulk.store", NULL},
        /* ordinary stores to what the copy writes or reads need a fence of global memory */
        {"st.global [%there], (%zero)\n" FILL STORE "bulk.wait\n", "missing-proxy-fence",
         "cp.bulk.store", "st.global"},
        {"st.global [%there], (%zero)\nfence.proxy_async global\n" FILL STORE "bulk.wait\n", NULL,
         NULL, NULL},
        {"st.global [%there], (%zero)\nfence.proxy_async all\n" FILL STORE "bulk.wait\n", NULL,
         NULL, NULL},
        {"atomic.global add [%there], (%zero)\n" FILL STORE "bulk.wait\n", "missing-proxy-fence",
         "cp.bulk.store", "atomic.global"},
        {"st.global [%here], (%zero)\n" FILL STORE "bulk.wait\n", NULL, NULL, NULL},
        /* accesses to the destination before the wait */
        {FILL STORE "bulk.wait_read\nst.global [%there], (%zero)\nbulk.wait\n", "copy-in-flight",
         "st.global", "cp.bulk.store"},
        {FILL STORE "bulk.wait_read\natomic.global add [%there], (%zero)\nbulk.wait\n",
         "copy-in-flight", "atomic.global", "cp.bulk.store"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        text_rig r;
        start(&r, cases[k].body, NULL);
        assert_true(simt_text_run(&r.t));
        if (cases[k].id) {
            expect_finding(&r, cases[k].id, cases[k].at, cases[k].other);
        } else {
            expect_nothing(&r);
        }
        text_close(&r);
    }
}

static void traps(void **state) {
    static const struct {
        const char *body, *id;
    } cases[] = {
        {"%m = add %n, %at : i32\ncp.bulk.store [%base], (%out, %m)\n", "copy-size"},
        {"cp.bulk.store [%at], (%out, %n)\n", "misaligned-access"},
        {"cp.bulk.store [%base], (%out, %n) {global = 4}\n", "misaligned-access"},
        {"cp.bulk.store [%base + 1024], (%out, %n)\n", "out-of-bounds"},
        {"cp.bulk.store [%base], (%out, %n) {global = 16}\n", "out-of-bounds"},
        {"cp.bulk.store [%base + 16], (%out, %n) {bytes = 0 to 256}\n", "outside-interval"},
        {"%q = div_u %t, %zero : i32\nst.shared [%at], (%q)\nfence.proxy_async shared\nbarrier\n"
         "cp.bulk.store [%base], (%out, %n)\nbulk.commit\nbulk.wait\n",
         "division-by-zero"},
        {"%q = div_u %t, %zero : i32\ncp.bulk.store [%base], (%out, %q)\n", "division-by-zero"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        text_rig r;
        start(&r, cases[k].body, NULL);
        bool found = false, done = simt_text_run(&r.t);
        for (const lilac_diagnostic *d = lilac_diagnostics(r.t.context); d; d = d->next) {
            found |= d->severity == LILAC_ERROR && strcmp(d->id, cases[k].id) == 0;
        }
        if (done || !found) {
            text_fail(&r, cases[k].id);
        }
        text_close(&r);
    }
}

/* Every kind and type against the scalars' own arithmetic: 64 threads' words, added twice. */
static void reductions(void **state) {
    static const struct {
        const char *operation, *type;
        uint32_t old, value, result; /* of each 32-bit word */
    } cases[] = {
        {"add", "i32", 0xFFFFFFFF, 3, 2},
        {"and", "i32", 0xFF00FF00, 0x0FF00FF0, 0x0F000F00},
        {"or", "i32", 0xFF00FF00, 0x0FF00FF0, 0xFFF0FFF0},
        {"xor", "i64", 0xFF00FF00, 0x0FF00FF0, 0xF0F0F0F0},
        {"min_s", "i32", 0xFFFFFFFF, 3, 0xFFFFFFFF},
        {"max_s", "i32", 0xFFFFFFFF, 3, 3},
        {"min_u", "i32", 0xFFFFFFFF, 3, 3},
        {"max_u", "i32", 0xFFFFFFFF, 3, 0xFFFFFFFF},
        {"add", "f32", 0x3F800000, 0x40000000, 0x40400000},
        {"add", "f16", 0x3C003C00, 0x40003C00, 0x42004000},
        {"add", "bf16", 0x3F803F80, 0x40003F80, 0x40404000},
        {"add", "f64", 0x40000000, 0x40000000, 0x40000000}, /* not words: see below */
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        text_rig r;
        lilac_text body = {0};
        bool wide = strcmp(cases[k].type, "f64") == 0;
        lilac_text_printf(&body,
                          "%%v = const %u : i32\nst.shared [%%at], (%%v)\n"
                          "fence.proxy_async shared\nbarrier\n"
                          "cp.bulk.reduce %s [%%base], %%first, (%%out, %%n) {scalar = %s}\n"
                          "bulk.commit\nbulk.wait\n",
                          cases[k].value, cases[k].operation, cases[k].type);
        start(&r, lilac_text_get(&body), NULL);
        for (uint32_t t = 0; t < 64; t++) {
            out[t] = cases[k].old;
        }
        assert_true(simt_text_run(&r.t));
        expect_nothing(&r);
        double before, value, after;
        uint32_t pair[2] = {cases[k].old, cases[k].old};
        memcpy(&before, pair, 8);
        pair[0] = pair[1] = cases[k].value;
        memcpy(&value, pair, 8);
        for (uint32_t t = 0; t < 64; t += 2) {
            memcpy(&after, &out[t], 8);
            if (wide) {
                assert_true(after == before + value);
            } else {
                assert_true(out[t] == cases[k].result && out[t + 1] == cases[k].result);
            }
        }
        lilac_text_clear(&body);
        text_close(&r);
    }
}

/* Blocks that add to the same bytes do not race; those that store do. */
static void blocks(void **state) {
    (void)state;
    for (uint32_t reduces = 0; reduces < 2; reduces++) {
        text_rig r;
        start(&r,
              reduces ? "%b = block x : i32\nst.shared [%at], (%seven)\nfence.proxy_async shared\n"
                        "barrier\ncp.bulk.reduce add [%base], %first, (%out, %n) {scalar = i32}\n"
                        "bulk.commit\nbulk.wait\n"
                      : "%b = block x : i32\nst.shared [%at], (%b)\nfence.proxy_async shared\n"
                        "barrier\n" STORE "bulk.wait\n",
              NULL);
        r.t.launch.grid[0] = 20;
        r.t.launch.threads = 3;
        assert_true(simt_text_run(&r.t));
        assert_int_equal(r.t.counters.bulk_copies, 20);
        if (reduces) {
            expect_nothing(&r);
            for (uint32_t t = 0; t < 64; t++) {
                assert_int_equal(out[t], 140);
            }
        } else {
            expect_finding(&r, "global-race", "cp.bulk.store", "cp.bulk.store");
        }
        text_close(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_is_right),
        cmocka_unit_test(mutations_are_found),
        cmocka_unit_test(rules),
        cmocka_unit_test(traps),
        cmocka_unit_test(reductions),
        cmocka_unit_test(blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
