/* Programs, named barriers and register budgets: the text reads back, the builder builds it, what the
 * verifier refuses, what passes keep. */

#include "support/sim_kernels.h"
#include "support/simt_text.h"
#include "support/test.h"

static const char programs[] = "simt.module target \"sm_90a\" {\n"
                               "  kernel @k() warps 12 ctas 1 shared 64 min_blocks 1 {\n"
                               "    %t = thread : i32\n"
                               "    %0 = const 4 : i32\n"
                               "    barrier {shared}\n"
                               "    programs warps 0 to 4 {\n"
                               "      set_max_registers dec {registers = 40}\n"
                               "      %1 = elect : i1\n"
                               "      st.shared [%0], %1, (%t)\n"
                               "      named_barrier.arrive {id = 3, threads = 384}\n"
                               "      yield\n"
                               "    } warps 4 to 12 {\n"
                               "      set_max_registers inc {registers = 232}\n"
                               "      loop %2 = %0 to %0 step %0 {\n"
                               "        %3 = add %0, %0 : i32\n"
                               "        st.shared [%3], (%t)\n"
                               "        yield\n"
                               "      }\n"
                               "      named_barrier.sync {id = 3, threads = 384}\n"
                               "      yield\n"
                               "    }\n"
                               "    return\n"
                               "  }\n"
                               "}\n";

static void text_reads_back(void **state) {
    (void)state;
    simt_text t;
    lilac_text out = {0};
    assert_true(simt_text_read(&t, programs));
    bool good = lilac_simt_verify(t.module);
    if (!good) {
        print_diagnostics(t.context);
    }
    assert_true(good);
    lilac_simt_print(&out, t.module);
    assert_string_equal(lilac_text_get(&out), programs);
    lilac_text_clear(&out);
    simt_text_clear(&t);
}

/* The passes leave programs, their barriers and the number of blocks; invariants stay in their
 * program. */
static void passes_keep_programs(void **state) {
    (void)state;
    simt_text t;
    assert_true(simt_text_read(&t, programs));
    lilac_simt_opt_fold(t.kernel);
    lilac_simt_opt_cse(t.kernel);
    lilac_simt_opt_licm(t.kernel);
    assert_false(lilac_simt_opt_barriers(t.kernel));
    lilac_simt_opt_dce(t.kernel);
    lilac_simt_opt_rematerialize_addresses(t.kernel);
    lilac_simt_opt_schedule(t.kernel);
    lilac_simt_opt_occupancy(t.kernel);
    lilac_simt_opt_schedule_barriers(t.kernel);
    lilac_simt_opt_rematerialize_predicates(t.kernel);
    assert_true(lilac_simt_verify(t.module));
    assert_int_equal(t.kernel->min_blocks, 1);
    const lilac_simt_instruction *i = t.kernel->body->first;
    while (i && i->code != LILAC_SIMT_OP_PROGRAMS) {
        i = i->next;
    }
    assert_non_null(i);
    assert_int_equal(i->body_count, 2);
    assert_int_equal(i->bodies[0]->first->code, LILAC_SIMT_OP_SET_MAX_REGISTERS);
    assert_int_equal(i->bodies[0]->last->previous->code, LILAC_SIMT_OP_NAMED_BARRIER_ARRIVE);
    assert_int_equal(i->bodies[1]->last->previous->code, LILAC_SIMT_OP_NAMED_BARRIER_SYNC);
    simt_text_clear(&t);
}

static void the_builder_builds_programs(void **state) {
    static const uint32_t warps[] = {4, 8};
    static const char built[] = "simt.module target \"sm_90a\" {\n"
                                "  kernel @k() warps 12 ctas 1 shared 0 min_blocks 1 {\n"
                                "    programs warps 0 to 4 {\n"
                                "      set_max_registers dec {registers = 40}\n"
                                "      named_barrier.arrive {id = 1, threads = 384}\n"
                                "      yield\n"
                                "    } warps 4 to 12 {\n"
                                "      named_barrier.sync {id = 1, threads = 384}\n"
                                "      yield\n"
                                "    }\n"
                                "    return\n"
                                "  }\n"
                                "}\n";
    (void)state;
    rig r;
    lilac_text out = {0};
    rig_init(&r, 12, 0, 0);
    r.kernel->min_blocks = 1;
    lilac_simt_instruction *i = lilac_simt_programs_begin(&r.b, 2, warps);
    lilac_simt_set_max_registers(&r.b, false, 40);
    lilac_simt_named_barrier(&r.b, false, 1, 384);
    lilac_simt_programs_next(&r.b, i);
    lilac_simt_named_barrier(&r.b, true, 1, 384);
    lilac_simt_programs_end(&r.b, i);
    effect(&r, LILAC_SIMT_OP_RETURN);
    assert_true(lilac_simt_verify(r.module));
    lilac_simt_print(&out, r.module);
    assert_string_equal(lilac_text_get(&out), built);
    lilac_text_clear(&out);
    rig_clear(&r);
}

static void refusals(void **state) {
    static const mutation mutations[] = {
        {"warps 4 to 12", "warps 5 to 12", "simt-programs", "programs", NULL},
        {"warps 4 to 12", "warps 4 to 11", "simt-programs", "programs", NULL},
        {"warps 0 to 4", "warps 0 to 0", "simt-programs", "programs", NULL},
        {"%1 = elect : i1\n", "%1 = elect : i1\n barrier\n", "simt-programs", "barrier", NULL},
        {"%1 = elect : i1\n", "%1 = elect : i1\n group_barrier %0 {threads = 32}\n",
         "simt-programs", "group_barrier", NULL},
        {"%1 = elect : i1\n", "%1 = elect : i1\n cluster_barrier\n", "simt-programs",
         "cluster_barrier", NULL},
        {"%1 = elect : i1\n", "%1 = elect : i1\n programs warps 0 to 12 {\n yield\n }\n",
         "simt-programs", "programs warps 0 to 12", NULL},
        {"loop %2 = %0 to %0 step %0 {\n", "loop %2 = %0 to %t step %0 {\n", "simt-not-uniform",
         "loop", NULL},
        {"arrive {id = 3", "arrive {id = 16", "simt-named-barrier", "arrive", NULL},
        {"sync {id = 3", "sync {id = 0", "simt-named-barrier", "sync", NULL},
        {"sync {id = 3, threads = 384", "sync {id = 3, threads = 416", "simt-named-barrier", "sync",
         NULL},
        {"sync {id = 3, threads = 384", "sync {id = 3, threads = 33", "simt-named-barrier", "sync",
         NULL},
        {"sync {id = 3, threads = 384", "sync {id = 3, threads = 256", "simt-named-barrier", "sync",
         NULL},
        {"barrier {shared}", "group_barrier %t {threads = 128}", "simt-named-barrier", "arrive",
         NULL},
        {"barrier {shared}", "%two = const 2 : i32\n group_barrier %two {threads = 384}",
         "simt-named-barrier", "arrive", NULL},
        {"registers = 40", "registers = 42", "simt-registers", "dec", NULL},
        {"registers = 40", "registers = 16", "simt-registers", "dec", NULL},
        {"registers = 40", "registers = 264", "simt-registers", "dec", NULL},
        {"registers = 40", "registers = 56", "simt-registers", "programs", NULL},
        /* as many as a multiprocessor has, but more than the block: 384 times 168 */
        {"registers = 40", "registers = 48", "simt-registers", "programs", NULL},
        {"      set_max_registers dec {registers = 40}\n", "", "simt-registers", "programs", NULL},
        {"min_blocks 1", "min_blocks 2", "simt-registers", "dec", NULL},
        {"    barrier {shared}\n", "    set_max_registers dec {registers = 40}\n", "simt-registers",
         "dec", NULL},
        {"    return\n", "    programs warps 0 to 12 {\n yield\n }\n    return\n", "simt-registers",
         "inc", NULL},
        {"registers = 40", "registers = -8", "simt-registers", "dec", NULL},
        {"sm_90a", "sm_90", "simt-feature", "set_max_registers", NULL},
        {"sm_90a", "sm_89", "simt-feature", "elect", NULL},
        {"warps 12 ctas", "warps 33 ctas", "simt-launch-shape", NULL, NULL},
    };
    (void)state;
    for (size_t k = 0; k < sizeof mutations / sizeof *mutations; k++) {
        const mutation *m = &mutations[k];
        char *changed = replaced(programs, m->from, m->to);
        simt_text t;
        assert_true(simt_text_read(&t, changed));
        bool good = lilac_simt_verify(t.module);
        if (good || !is_reported(&t, m->id, m->at, m->other)) {
            print_diagnostics(t.context);
            fail_msg("'%s' as '%s' gives no %s", m->from, m->to, m->id);
        }
        simt_text_clear(&t);
        free(changed);
    }
}

/* Programs that share a warpgroup set the same number of registers. */
static void warpgroups_set_one_number(void **state) {
    static const char shared[] = "simt.module target \"sm_90a\" {\n"
                                 "  kernel @k() warps 8 ctas 1 shared 0 min_blocks 1 {\n"
                                 "    programs warps 0 to 4 {\n"
                                 "      yield\n"
                                 "    } warps 4 to 5 {\n"
                                 "      set_max_registers dec {registers = 40}\n"
                                 "      yield\n"
                                 "    } warps 5 to 8 {\n"
                                 "      set_max_registers dec {registers = 40}\n"
                                 "      yield\n"
                                 "    }\n"
                                 "    return\n"
                                 "  }\n"
                                 "}\n";
    static const char *const changes[][2] = {
        {"5 {\n      set_max_registers dec {registers = 40}\n", "5 {\n"},
        {"8 {\n      set_max_registers dec {registers = 40}\n",
         "8 {\n      set_max_registers dec {registers = 48}\n"},
        {"warps 8 ctas", "warps 7 ctas"}};
    (void)state;
    simt_text t;
    assert_true(simt_text_read(&t, shared));
    assert_true(lilac_simt_verify(t.module));
    simt_text_clear(&t);
    for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
        char *changed = replaced(shared, changes[k][0], changes[k][1]);
        assert_true(simt_text_read(&t, changed));
        assert_false(lilac_simt_verify(t.module));
        simt_text_clear(&t);
        free(changed);
    }
}

/* A builder in a window builds the threads and the barrier of its program. */
static void windows_have_their_own_threads(void **state) {
    (void)state;
    rig r;
    lilac_text out = {0};
    rig_init(&r, 11, 0, 4);
    const uint32_t warps[] = {4, 4, 2, 1};
    lilac_simt_instruction *i = lilac_simt_programs_begin(&r.b, 4, warps);
    for (uint32_t k = 0, first = 0; k < 4; first += warps[k++]) {
        r.b.window = (lilac_simt_window){.first_warp = first, .warps = warps[k], .barrier = 1 + k};
        assert_int_equal(lilac_simt_threads(&r.b), 32 * warps[k]);
        lilac_simt_value base = lilac_simt_constant(&r.b, LILAC_SIMT_I32, 0),
                         thread = lilac_simt_thread(&r.b);
        lilac_simt_store(&r.b, LILAC_SIMT_OP_ST_SHARED, 1, &thread, base, 0, 0, NULL);
        lilac_simt_barrier(&r.b);
        if (k < 3) {
            lilac_simt_programs_next(&r.b, i);
        }
    }
    lilac_simt_programs_end(&r.b, i);
    lilac_simt_print(&out, r.module);
    static const char *const parts[] = {
        "st.shared [%0], (%1)\n      named_barrier.sync {id = 1, threads = 128}",
        "and %1, %2 : i32\n      st.shared [%0], (%5)\n      named_barrier.sync {id = 2, threads = "
        "128}",
        "named_barrier.sync {id = 3, threads = 64}", "warp_barrier"};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        if (strstr(lilac_text_get(&out), parts[k]) == NULL) {
            fail_msg("there is no '%s' in\n%s", parts[k], lilac_text_get(&out));
        }
    }
    lilac_text_clear(&out);
    rig_clear(&r);
}

/* Without programs the number of warps stays a power of two; the reader refuses broken heads. */
static void other_refusals(void **state) {
    (void)state;
    simt_text t;
    assert_true(simt_text_read(&t, "simt.module target \"sm_90a\" {\n"
                                   "  kernel @k() warps 12 ctas 1 shared 0 {\n"
                                   "    return\n  }\n}\n"));
    assert_false(lilac_simt_verify(t.module));
    simt_text_clear(&t);
    static const char *const heads[] = {
        "programs {\n yield\n }\n", "programs warps 0 {\n yield\n }\n",
        "programs warps 0 to -1 {\n yield\n }\n", "programs warps 0 to 1\n"};
    for (size_t k = 0; k < sizeof heads / sizeof *heads; k++) {
        char text[256];
        snprintf(text, sizeof text,
                 "simt.module target \"sm_90a\" {\n  kernel @k() warps 1 ctas 1 shared 0 {\n%s"
                 "    return\n  }\n}\n",
                 heads[k]);
        assert_false(simt_text_read(&t, text));
        lilac_context_destroy(t.context);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(text_reads_back),
                                       cmocka_unit_test(passes_keep_programs),
                                       cmocka_unit_test(the_builder_builds_programs),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(warpgroups_set_one_number),
                                       cmocka_unit_test(windows_have_their_own_threads),
                                       cmocka_unit_test(other_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
