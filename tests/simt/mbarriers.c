/* The text of operations on mbarriers reads back, what the verifier refuses, and what passes keep. */

#include "support/simt_text.h"
#include "support/test.h"

static const char operations[] = "simt.module target \"sm_90a\" {\n"
                                 "  kernel @k() warps 4 ctas 1 shared 64 {\n"
                                 "    %b = shared_base : i32\n"
                                 "    %t = thread : i32\n"
                                 "    %0 = const 4 : i32\n"
                                 "    %1 = cmp eq %t, %0 : i1\n"
                                 "    mbarrier.init [%b + 8], %1, (%0)\n"
                                 "    fence.mbarrier_init\n"
                                 "    barrier {shared}\n"
                                 "    mbarrier.arrive [%b + 8]\n"
                                 "    mbarrier.arrive [%b + 8], %1\n"
                                 "    mbarrier.arrive [%b + 8], (%0) {bytes = 8 to 16}\n"
                                 "    mbarrier.arrive.cluster [%b + 8], %1, (%0)\n"
                                 "    mbarrier.expect [%b + 8], %1, (%0)\n"
                                 "    cp.async.mbarrier_arrive [%b + 8]\n"
                                 "    mbarrier.wait [%b + 8], (%0)\n"
                                 "    %2 = mbarrier.try_wait [%b + 8], (%0) : i1\n"
                                 "    mbarrier.invalidate [%b + 8], %1\n"
                                 "    return\n"
                                 "  }\n"
                                 "}\n";

static void text_reads_back(void **state) {
    (void)state;
    simt_text t;
    lilac_text out = {0};
    assert_true(simt_text_read(&t, operations));
    assert_true(lilac_simt_verify(t.module));
    lilac_simt_print(&out, t.module);
    assert_string_equal(lilac_text_get(&out), operations);
    lilac_text_clear(&out);
    simt_text_clear(&t);
}

/* No pass moves, merges or removes one, nor the barrier between an init and its uses. */
static void passes_keep_them(void **state) {
    (void)state;
    simt_text t;
    lilac_text out = {0};
    assert_true(simt_text_read(&t, operations));
    lilac_simt_opt_fold(t.kernel);
    lilac_simt_opt_cse(t.kernel);
    lilac_simt_opt_licm(t.kernel);
    lilac_simt_opt_barriers(t.kernel);
    lilac_simt_opt_dce(t.kernel);
    lilac_simt_opt_schedule(t.kernel);
    assert_true(lilac_simt_verify(t.module));
    lilac_simt_print(&out, t.module);
    assert_string_equal(lilac_text_get(&out), operations);
    lilac_text_clear(&out);
    simt_text_clear(&t);
}

static void refusals(void **state) {
    static const mutation mutations[] = {
        {"mbarrier.wait [%b + 8], (%0)", "mbarrier.wait [%b + 8], (%t)", "simt-not-uniform",
         "mbarrier.wait", NULL},
        {"mbarrier.wait [%b + 8]", "mbarrier.wait [%t + 8]", "simt-not-uniform", "mbarrier.wait",
         NULL},
        {"mbarrier.try_wait [%b", "mbarrier.try_wait [%t", "simt-not-uniform", "try_wait", NULL},
        {"mbarrier.wait [%b + 8]", "mbarrier.wait [%0 + 2]", "simt-mbarrier", "mbarrier.wait",
         NULL},
        {"const 4 : i32", "const 0 : i32", "simt-mbarrier", "mbarrier.init", NULL},
        {"const 4 : i32", "const 1048576 : i32", "simt-mbarrier", "mbarrier.expect", NULL},
        {"mbarrier.init [%b + 8], %1, (%0)", "mbarrier.init [%b + 8], %1", "simt-operand-count",
         "mbarrier.init", NULL},
        {"%b = shared_base : i32", "%b = param 0 : i64", "simt-operand-type", "mbarrier.init",
         NULL},
        {"%2 = mbarrier.try_wait [%b + 8], (%0) : i1",
         "%2 = mbarrier.try_wait [%b + 8], (%0) : i32", "simt-operand-type", "try_wait", NULL},
        {"sm_90a", "sm_89", "simt-feature", "mbarrier.init", NULL},
        {"sm_90a", "sm_89", "simt-feature", "fence.mbarrier_init", NULL},
        {"{bytes = 8 to 16}", "{bytes = 16 to 8}", "simt-interval", "mbarrier.arrive", NULL},
    };
    (void)state;
    for (size_t k = 0; k < sizeof mutations / sizeof *mutations; k++) {
        const mutation *m = &mutations[k];
        char *changed = replaced(operations, m->from, m->to);
        simt_text t;
        assert_true(simt_text_read(&t, changed));
        assert_false(lilac_simt_verify(t.module));
        if (!is_reported(&t, m->id, m->at, m->other)) {
            print_diagnostics(t.context);
            fail_msg("'%s' as '%s' gives no %s", m->from, m->to, m->id);
        }
        simt_text_clear(&t);
        free(changed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(text_reads_back),
                                       cmocka_unit_test(passes_keep_them),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
