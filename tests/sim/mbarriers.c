/* mbarriers on the simulator: kernels that are right run without a report, each mutation is reported
 * with both places, and single rules. */

#include "support/simt_text.h"
#include "support/test.h"

enum { THREADS = 64 };

static uint32_t data[4 * THREADS], result[2 * THREADS];

static void run(simt_text *t, const char *text, bool good) {
    assert_true(simt_text_read(t, text) || (print_diagnostics(t->context), false));
    for (uint32_t k = 0; k < 4 * THREADS; k++) {
        data[k] = k * 2654435761u;
    }
    memset(result, 0, sizeof result);
    simt_text_give(t, "data", data, sizeof data);
    simt_text_give(t, "result", result, sizeof result);
    bool done = simt_text_run(t);
    if (good && (!done || lilac_diagnostics(t->context))) {
        print_diagnostics(t->context);
        fail_msg("a kernel that is right is reported");
    }
}

static void expect_report(const char *text, const mutation *m) {
    simt_text t;
    run(&t, text, false);
    if (!is_reported(&t, m->id, m->at, m->other)) {
        print_diagnostics(t.context);
        fail_msg("'%s' as '%s' gives no %s", m->from, m->to, m->id);
    }
    simt_text_clear(&t);
}

static void check_mutations(const char *text, const mutation *mutations, size_t count) {
    for (size_t k = 0; k < count; k++) {
        char *changed = replaced(text, mutations[k].from, mutations[k].to);
        expect_report(changed, &mutations[k]);
        free(changed);
    }
}

/* Every thread writes a word, arrives, waits, and reads the word of the other warp; twice, so that
 * both parities occur. */
static const char exchange[] =
    "simt.module target \"sm_90a\" {\n"
    "  kernel @k(%data: i64 ptr, %result: i64 ptr) warps 2 ctas 1 shared 320 {\n"
    "    %d = param 0 : i64\n"
    "    %r = param 1 : i64\n"
    "    %t = thread : i32\n"
    "    %zero = const 0 : i32\n"
    "    %one = const 1 : i32\n"
    "    %two = const 2 : i32\n"
    "    %four = const 4 : i32\n"
    "    %half = const 32 : i32\n"
    "    %count = const 64 : i32\n"
    "    %first = cmp eq %t, %zero : i1\n"
    "    %other = xor %t, %half : i32\n"
    "    %mine = mul %t, %four : i32\n"
    "    %theirs = mul %other, %four : i32\n"
    "    %w = zext %mine : i64\n"
    "    %from = add %d, %w : i64\n"
    "    %to = add %r, %w : i64\n"
    "    mbarrier.init [%zero], %first, (%count)\n"
    "    mbarrier.init [%zero + 8], %first, (%count)\n"
    "    barrier\n"
    "    %sum = loop %i = %zero to %four step %one (%s = %zero) : i32 {\n"
    "      %parity = and %i, %one : i32\n"
    "      %x = ld.global [%from] : i32\n"
    "      %y = mul %x, %i : i32\n"
    "      st.shared [%mine + 64], (%y)\n"
    "      mbarrier.arrive [%zero]\n"
    "      mbarrier.wait [%zero], (%parity)\n"
    "      %z = ld.shared [%theirs + 64] : i32\n"
    "      mbarrier.arrive [%zero + 8]\n"
    "      mbarrier.wait [%zero + 8], (%parity) \n"
    "      %s_1 = add %s, %z : i32\n"
    "      yield %s_1\n"
    "    }\n"
    "    st.global [%to], (%sum)\n"
    "    return\n"
    "  }\n"
    "}\n";

static void an_exchange_is_right(void **state) {
    (void)state;
    simt_text t;
    run(&t, exchange, true);
    assert_int_equal(t.counters.races, 0);
    for (uint32_t k = 0; k < THREADS; k++) {
        assert_int_equal(result[k], 6 * data[k ^ 32]);
    }
    simt_text_clear(&t);
}

static void mutations_of_an_exchange(void **state) {
    static const mutation mutations[] = {
        {"mbarrier.wait [%zero], (%parity)", "", "shared-race", "ld.shared", "st.shared"},
        {"mbarrier.wait [%zero + 8], (%parity)", "", "shared-race", "st.shared", "ld.shared"},
        {"    barrier\n", "", "shared-race", "mbarrier.arrive [%zero]", "mbarrier.init [%zero]"},
        {"%count = const 64", "%count = const 65", "deadlock", "mbarrier.wait", "mbarrier.arrive"},
        {"mbarrier.arrive [%zero]\n", "mbarrier.arrive [%zero], %first\n", "deadlock",
         "mbarrier.wait [%zero]", "mbarrier.arrive [%zero], %first"},
        {"mbarrier.arrive [%zero]\n", "", "deadlock", "mbarrier.wait [%zero]", "mbarrier.init"},
        {"mbarrier.arrive [%zero]\n", "mbarrier.arrive [%zero], (%two)\n", "mbarrier-missed",
         "mbarrier.wait [%zero]", "mbarrier.arrive [%zero]"},
        {"and %i, %one", "xor %one, %i", "deadlock", "mbarrier.wait", "mbarrier.arrive"},
        {"mbarrier.init [%zero + 8], %first, (%count)", "", "mbarrier-missing",
         "mbarrier.arrive [%zero + 8]", NULL},
        {"mbarrier.init [%zero + 8]", "mbarrier.init [%zero]", "mbarrier-in-use",
         "mbarrier.init [%zero]", "mbarrier.init [%zero]"},
        {"mbarrier.arrive [%zero]\n", "mbarrier.expect [%zero], (%one)\n", "deadlock",
         "mbarrier.wait [%zero]", "mbarrier.expect"},
        {"mbarrier.init [%zero], %first", "mbarrier.init [%zero]", "mbarrier-in-use",
         "mbarrier.init [%zero]", "mbarrier.init [%zero]"},
        {"mbarrier.arrive [%zero]\n",
         "%three = add %one, %two : i32\n mbarrier.arrive [%zero], (%three)\n", "mbarrier-count",
         "mbarrier.arrive", "mbarrier.arrive"},
    };
    (void)state;
    check_mutations(exchange, mutations, sizeof mutations / sizeof *mutations);
}

/* Each thread copies 16 bytes, and reads those of a thread of the other warp; the mbarrier says when
 * the copies are complete. */
static const char copies[] =
    "simt.module target \"sm_90a\" {\n"
    "  kernel @k(%data: i64 ptr, %result: i64 ptr) warps 2 ctas 1 shared 1040 {\n"
    "    %d = param 0 : i64\n"
    "    %r = param 1 : i64\n"
    "    %t = thread : i32\n"
    "    %zero = const 0 : i32\n"
    "    %four = const 4 : i32\n"
    "    %sixteen = const 16 : i32\n"
    "    %half = const 32 : i32\n"
    "    %count = const 64 : i32\n"
    "    %first = cmp eq %t, %zero : i1\n"
    "    %other = xor %t, %half : i32\n"
    "    %mine = mul %t, %sixteen : i32\n"
    "    %theirs = mul %other, %sixteen : i32\n"
    "    %w = zext %mine : i64\n"
    "    %from = add %d, %w : i64\n"
    "    %four_t = mul %t, %four : i32\n"
    "    %v = zext %four_t : i64\n"
    "    %to = add %r, %v : i64\n"
    "    mbarrier.init [%zero], %first, (%count)\n"
    "    barrier\n"
    "    cp.async [%mine + 16], (%from) {size = 16}\n"
    "    cp.async.mbarrier_arrive [%zero]\n"
    "    mbarrier.wait [%zero], (%zero)\n"
    "    %x = ld.shared [%theirs + 16] : i32\n"
    "    st.global [%to], (%x)\n"
    "    return\n"
    "  }\n"
    "}\n";

static void copies_arrive(void **state) {
    static const mutation mutations[] = {
        {"mbarrier.wait [%zero], (%zero)", "", "copy-in-flight", "ld.shared", "cp.async ["},
        {"mbarrier.wait [%zero], (%zero)", "", "copy-not-awaited", "cp.async [", NULL},
        {"cp.async.mbarrier_arrive", "mbarrier.arrive", "copy-in-flight", "ld.shared",
         "cp.async ["},
        {"mbarrier.wait [%zero], (%zero)", "cp.async.wait_all", "shared-race", "ld.shared",
         "cp.async ["},
        {"mbarrier.wait [%zero], (%zero)", "cp.async.commit\n    cp.async.wait {groups = 1}",
         "copy-in-flight", "ld.shared", "cp.async ["},
        {"mbarrier.wait [%zero], (%zero)",
         "cp.async.wait_all\n    mbarrier.invalidate [%zero], %first", "mbarrier-missing",
         "cp.async.mbarrier_arrive", NULL},
        {"%count = const 64", "%count = const 32", "copy-in-flight", "ld.shared", "cp.async ["},
    };
    (void)state;
    simt_text t;
    run(&t, copies, true);
    for (uint32_t k = 0; k < THREADS; k++) {
        assert_int_equal(result[k], data[4 * (k ^ 32)]);
    }
    simt_text_clear(&t);
    /* A thread that waits for its copies may read them, also when they have arrived at an mbarrier
     * before. An arrival takes place even if no thread waits for its phase. */
    char *own = replaced(copies, "ld.shared [%theirs", "ld.shared [%mine");
    char *waits = replaced(own, "mbarrier.wait [%zero], (%zero)\n", "cp.async.wait_all\n");
    run(&t, waits, true);
    simt_text_clear(&t);
    free(waits);
    waits = replaced(own, "mbarrier.wait [%zero], (%zero)\n",
                     "cp.async.commit\n    if %low {\n    mbarrier.wait [%zero], (%zero)\n"
                     "    yield\n    }\n    cp.async.wait\n");
    char *both =
        replaced(waits, "%first = cmp eq", "%low = cmp eq %zero, %zero : i1\n    %first = cmp eq");
    run(&t, both, true);
    simt_text_clear(&t);
    free(both);
    free(waits);
    free(own);
    check_mutations(copies, mutations, sizeof mutations / sizeof *mutations);
}

/* One warp: try_wait sees a phase complete, a number out of range, a phase without its last arrival
 * at the end, and life after invalidate. */
static const char single[] =
    "simt.module target \"sm_90a\" {\n"
    "  kernel @k(%data: i64 ptr, %result: i64 ptr) warps 1 ctas 1 shared 64 {\n"
    "    %r = param 1 : i64\n"
    "    %t = thread : i32\n"
    "    %zero = const 0 : i32\n"
    "    %one = const 1 : i32\n"
    "    %count = const 32 : i32\n"
    "    %first = cmp eq %t, %zero : i1\n"
    "    mbarrier.init [%zero], %first, (%count)\n"
    "    fence.mbarrier_init\n"
    "    %fresh = mbarrier.try_wait [%zero], (%one) : i1\n"
    "    %before = mbarrier.try_wait [%zero], (%zero) : i1\n"
    "    mbarrier.arrive [%zero]\n"
    "    %after = mbarrier.try_wait [%zero], (%zero) : i1\n"
    "    %a = select %fresh, %one, %zero : i32\n"
    "    %b = select %before, %one, %zero : i32\n"
    "    %c = select %after, %one, %zero : i32\n"
    "    st.global [%r], %first, (%a, %b)\n"
    "    st.global [%r + 8], %first, (%c)\n"
    "    mbarrier.invalidate [%zero], %first\n"
    "    mbarrier.init [%zero], %first, (%count)\n"
    "    return\n"
    "  }\n"
    "}\n";

static void rules_of_one_mbarrier(void **state) {
    static const mutation mutations[] = {
        {"mbarrier.arrive [%zero]", "mbarrier.arrive [%zero], (%t)", "mbarrier-range",
         "mbarrier.arrive", "mbarrier.init"},
        {"mbarrier.init [%zero], %first, (%count)", "mbarrier.init [%zero], %first, (%t)",
         "mbarrier-range", "mbarrier.init", NULL},
        {"    mbarrier.invalidate [%zero], %first\n    mbarrier.init [%zero], %first, (%count)\n",
         "    mbarrier.arrive [%zero], %first\n", "mbarrier-unfinished", "mbarrier.init",
         "mbarrier.arrive [%zero], %first"},
        {"    mbarrier.invalidate [%zero], %first\n", "", "mbarrier-in-use", "mbarrier.init",
         "mbarrier.init"},
        {"    mbarrier.init [%zero], %first, (%count)\n    return",
         "    mbarrier.arrive [%zero]\n    return", "mbarrier-missing", "mbarrier.arrive", NULL},
        {"%fresh = mbarrier.try_wait [%zero]",
         "%two = add %one, %one : i32\n    %fresh = mbarrier.try_wait [%two]", "misaligned-access",
         "try_wait [%two]", NULL},
        {"mbarrier.try_wait [%zero], (%one)", "mbarrier.try_wait [%count], (%one)",
         "mbarrier-missing", "mbarrier.try_wait [%count]", NULL},
    };
    (void)state;
    simt_text t;
    run(&t, single, true);
    assert_int_equal(result[0], 1);
    assert_int_equal(result[1], 0);
    assert_int_equal(result[2], 1);
    simt_text_clear(&t);
    check_mutations(single, mutations, sizeof mutations / sizeof *mutations);
}

/* Block 1 writes to the memory of block 0, then arrives there; block 0 waits. */
static const char cluster[] =
    "simt.module target \"sm_90a\" {\n"
    "  kernel @k(%data: i64 ptr, %result: i64 ptr) warps 1 ctas 2 shared 192 {\n"
    "    %r = param 1 : i64\n"
    "    %t = thread : i32\n"
    "    %rank = cta : i32\n"
    "    %zero = const 0 : i32\n"
    "    %one = const 1 : i32\n"
    "    %four = const 4 : i32\n"
    "    %count = const 32 : i32\n"
    "    %first = cmp eq %t, %zero : i1\n"
    "    %is_zero = cmp eq %rank, %zero : i1\n"
    "    %mine = mul %t, %four : i32\n"
    "    %w = zext %mine : i64\n"
    "    %to = add %r, %w : i64\n"
    "    mbarrier.init [%zero], %first, (%count)\n"
    "    fence.mbarrier_init\n"
    "    cluster_barrier\n"
    "    if %is_zero {\n"
    "      mbarrier.wait [%zero], (%zero)\n"
    "      %x = ld.shared [%mine + 64] : i32\n"
    "      st.global [%to], (%x)\n"
    "      yield\n"
    "    } else {\n"
    "      %there = map_shared %zero, %zero : i32\n"
    "      %place = add %there, %mine : i32\n"
    "      st.cluster [%place + 64], (%t)\n"
    "      mbarrier.arrive.cluster [%there]\n"
    "      yield\n"
    "    }\n"
    "    cluster_barrier\n"
    "    return\n"
    "  }\n"
    "}\n";

static void blocks_of_a_cluster_arrive(void **state) {
    static const mutation mutations[] = {
        {"mbarrier.arrive.cluster [%there]", "", "deadlock", "mbarrier.wait", "mbarrier.init"},
        {"mbarrier.wait [%zero], (%zero)", "mbarrier.wait [%zero], (%one)", "uninitialised-read",
         "ld.shared", NULL},
        {"    cluster_barrier\n    if", "    if", "shared-lifetime", "st.cluster", NULL},
    };
    (void)state;
    simt_text t;
    run(&t, cluster, true);
    for (uint32_t k = 0; k < 32; k++) {
        assert_int_equal(result[k], k);
    }
    simt_text_clear(&t);
    check_mutations(cluster, mutations, sizeof mutations / sizeof *mutations);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exchange_is_right), cmocka_unit_test(mutations_of_an_exchange),
        cmocka_unit_test(copies_arrive), cmocka_unit_test(rules_of_one_mbarrier),
        cmocka_unit_test(blocks_of_a_cluster_arrive)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
