/* Programs on the simulator, one rule after another: named barriers, polling, copies that arrive for
 * another program, register budgets, poison. */

#include "support/simt_text.h"
#include "support/test.h"

static uint32_t data[1024], result[1024];

static void read_and_run(simt_text *t, const char *text) {
    if (!simt_text_read(t, text)) {
        print_diagnostics(t->context);
        fail_msg("a text that does not read\n%s", text);
    }
    for (uint32_t k = 0; k < 1024; k++) {
        data[k] = k * 2654435761u;
    }
    memset(result, 0, sizeof result);
    simt_text_give(t, "data", data, sizeof data);
    simt_text_give(t, "result", result, sizeof result);
    bool done = simt_text_run(t);
    assert_true(done || lilac_diagnostics(t->context) != NULL);
}

/* Two programs hand words over in both directions at named barriers; before and behind them the
 * block runs as a whole. Exchanges, uniform values and copy groups are those of a program. */
static const char relay[] =
    "simt.module target \"sm_90a\" {\n"
    "  kernel @k(%data: i64 ptr, %result: i64 ptr) warps 3 ctas 1 shared 1024 min_blocks 1 {\n"
    "    %d = param 0 : i64\n"
    "    %r = param 1 : i64\n"
    "    %t = thread : i32\n"
    "    %zero = const 0 : i32\n"
    "    %one = const 1 : i32\n"
    "    %four = const 4 : i32\n"
    "    %n = const 5 : i32\n"
    "    %at = mul %t, %four : i32\n"
    "    %wide = zext %at : i64\n"
    "    %from = add %d, %wide : i64\n"
    "    %to = add %r, %wide : i64\n"
    "    %outer = grid x : i32\n"
    "    %both = add %outer, %outer : i32\n"
    "    programs warps 0 to 1 {\n"
    "      loop %i = %zero to %n step %one {\n"
    "        cp.async [%at], (%from) {size = 4}\n"
    "        cp.async.commit\n"
    "        cp.async.wait\n"
    "        named_barrier.arrive {id = 1, threads = 96}\n"
    "        named_barrier.sync {id = 2, threads = 96}\n"
    "        yield\n"
    "      }\n"
    "      yield\n"
    "    } warps 1 to 3 {\n"
    "      %small = and %t, %four : i32\n"
    "      %odd = cmp ne %small, %zero : i1\n"
    "      %votes = ballot %odd : i32\n"
    "      %k = add %both, %one : i32\n"
    "      %sum = loop %j = %zero to %n step %one (%s = %zero) : i32 {\n"
    "        named_barrier.sync {id = 1, threads = 96} \n"
    "        %lane = lane : i32\n"
    "        %place = mul %lane, %four : i32\n"
    "        %x = ld.shared [%place] : i32\n"
    "        %y = shuffle xor %x, %one : i32\n"
    "        %p = mul %y, %k : i32\n"
    "        %s_1 = add %s, %p : i32\n"
    "        named_barrier.arrive {id = 2, threads = 96} \n"
    "        yield %s_1\n"
    "      }\n"
    "      %all = xor %sum, %votes : i32\n"
    "      st.shared [%at + 256], (%all)\n"
    "      yield\n"
    "    }\n"
    "    barrier\n"
    "    %z = ld.shared [%at + 256], %true, (%zero) : i32\n"
    "    st.global [%to], (%z)\n"
    "    return\n"
    "  }\n"
    "}\n";

static char *relay_text(void) {
    return replaced(relay, "    %outer",
                    "    %warp = warp : i32\n"
                    "    %true = cmp gt %warp, %zero : i1\n    %outer");
}

static void programs_meet_at_named_barriers(void **state) {
    static const mutation mutations[] = {
        {"        named_barrier.sync {id = 2, threads = 96}\n", "", "named-barrier-reuse",
         "arrive {id = 1", "arrive {id = 1"},
        {"sync {id = 1, threads = 96} ", "arrive {id = 1, threads = 96} ", "shared-race",
         "ld.shared", "cp.async ["},
        {"        named_barrier.arrive {id = 1, threads = 96}\n", "", "deadlock", "sync {id = 2",
         "sync {id = 1"},
        {"%n = const 5", "%n = block x", NULL, NULL, NULL},
        {"loop %j = %zero to %n", "loop %j = %one to %n", "deadlock", "sync {id = 2",
         "sync {id = 2"},
        {"        cp.async.wait\n", "", "copy-in-flight", "ld.shared", "cp.async ["},
        {"    barrier\n", "", NULL, NULL, NULL},
        {"st.shared [%at + 256]", "st.shared [%zero + 256]", "shared-race", "st.shared",
         "st.shared"},
        {"loop %i = %zero to %n", "loop %i = %zero to %t", "simt-not-uniform", "loop", NULL},
    };
    (void)state;
    char *text = relay_text();
    simt_text t;
    read_and_run(&t, text);
    if (lilac_diagnostics(t.context)) {
        print_diagnostics(t.context);
        fail_msg("a relay that is right is reported");
    }
    assert_int_equal(result[0], 0);
    for (uint32_t k = 32; k < 96; k++) {
        assert_int_equal(result[k], (15 * data[(k % 32) ^ 1]) ^ 0xF0F0F0F0u);
    }
    simt_text_clear(&t);
    for (size_t k = 0; k < sizeof mutations / sizeof *mutations; k++) {
        const mutation *m = &mutations[k];
        char *changed = replaced(text, m->from, m->to);
        read_and_run(&t, changed);
        if (m->id ? !is_reported(&t, m->id, m->at, m->other)
                  : lilac_diagnostics(t.context) != NULL) {
            print_diagnostics(t.context);
            fail_msg("'%s' as '%s': not %s", m->from, m->to, m->id ? m->id : "right");
        }
        simt_text_clear(&t);
        free(changed);
    }
    free(text);
}

/* A program that polls an mbarrier in a while loop gives way to the one that arrives; the block goes
 * on as a whole afterwards, and the counts are those of both. */
static const char polling[] =
    "simt.module target \"sm_90a\" {\n"
    "  kernel @k(%data: i64 ptr, %result: i64 ptr) warps 2 ctas 1 shared 16 {\n"
    "    %r = param 1 : i64\n"
    "    %t = thread : i32\n"
    "    %zero = const 0 : i32\n"
    "    %one = const 1 : i32\n"
    "    %four = const 4 : i32\n"
    "    %n = const 40000 : i32\n"
    "    %count = const 32 : i32\n"
    "    %true = const true : i1\n"
    "    %first = cmp eq %t, %zero : i1\n"
    "    %at = mul %t, %four : i32\n"
    "    %wide = zext %at : i64\n"
    "    %to = add %r, %wide : i64\n"
    "    mbarrier.init [%zero], %first, (%count)\n"
    "    barrier\n"
    "    programs warps 0 to 1 {\n"
    "      %polls = while (%p = %zero) : i32 {\n"
    "        %done = mbarrier.try_wait [%zero], (%zero) : i1\n"
    "        %not = xor %done, %true : i1\n"
    "        %again = vote some %not : i1\n"
    "        condition %again, %p\n"
    "      } do (%q) {\n"
    "        %q_1 = add %q, %one : i32\n"
    "        yield %q_1\n"
    "      }\n"
    "      %y = ld.shared [%zero + 8] : i32\n"
    "      st.global [%to], (%y)\n"
    "      yield\n"
    "    } warps 1 to 2 {\n"
    "      %x = loop %i = %zero to %n step %one (%s = %zero) : i32 {\n"
    "        %s_1 = add %s, %i : i32\n"
    "        yield %s_1\n"
    "      }\n"
    "      st.shared [%zero + 8], (%x)\n"
    "      mbarrier.arrive [%zero]\n"
    "      yield\n"
    "    }\n"
    "    %l = ld.shared [%zero + 8] : i32\n"
    "    return\n"
    "  }\n"
    "}\n";

static void a_program_polls(void **state) {
    (void)state;
    simt_text t;
    read_and_run(&t, polling);
    /* the word of another warp: a program's end orders nothing, the polling did */
    if (lilac_diagnostics(t.context)) {
        print_diagnostics(t.context);
        fail_msg("polling is reported");
    }
    for (uint32_t k = 0; k < 32; k++) {
        assert_int_equal(result[k], 40000u * 39999u / 2);
    }
    assert_true(t.counters.instructions > 2 * 40000);
    simt_text_clear(&t);
    /* without the arrival it polls for ever */
    char *changed = replaced(polling, "mbarrier.arrive [%zero]", "");
    assert_true(simt_text_read(&t, changed));
    t.launch.stall_seconds = 0.05;
    simt_text_give(&t, "data", data, sizeof data);
    simt_text_give(&t, "result", result, sizeof result);
    assert_false(simt_text_run(&t));
    assert_true(is_reported(&t, "endless-loop", "while", NULL));
    simt_text_clear(&t);
    free(changed);
}

/* Copies arrive at an mbarrier because another program waits there; the thread that started them
 * still needs a wait of its own before it reads them. */
static const char copier[] =
    "simt.module target \"sm_90a\" {\n"
    "  kernel @k(%data: i64 ptr, %result: i64 ptr) warps 2 ctas 1 shared 640 {\n"
    "    %d = param 0 : i64\n"
    "    %r = param 1 : i64\n"
    "    %t = thread : i32\n"
    "    %zero = const 0 : i32\n"
    "    %four = const 4 : i32\n"
    "    %count = const 32 : i32\n"
    "    %first = cmp eq %t, %zero : i1\n"
    "    %at = mul %t, %four : i32\n"
    "    %wide = zext %at : i64\n"
    "    %from = add %d, %wide : i64\n"
    "    %to = add %r, %wide : i64\n"
    "    mbarrier.init [%zero], %first, (%count)\n"
    "    barrier\n"
    "    programs warps 0 to 1 {\n"
    "      cp.async [%at + 128], (%from) {size = 4}\n"
    "      cp.async.commit\n"
    "      cp.async.mbarrier_arrive [%zero]\n"
    "      named_barrier.sync {id = 1, threads = 64}\n"
    "      cp.async.wait\n"
    "      %x = ld.shared [%at + 128] : i32\n"
    "      st.global [%to], (%x)\n"
    "      yield\n"
    "    } warps 1 to 2 {\n"
    "      mbarrier.wait [%zero], (%zero)\n"
    "      %y = ld.shared [%at] : i32\n"
    "      st.global [%to], (%y)\n"
    "      named_barrier.arrive {id = 1, threads = 64}\n"
    "      yield\n"
    "    }\n"
    "    return\n"
    "  }\n"
    "}\n";

static void copies_arrive_for_another_program(void **state) {
    (void)state;
    simt_text t;
    read_and_run(&t, copier);
    if (lilac_diagnostics(t.context)) {
        print_diagnostics(t.context);
        fail_msg("copies that are waited for are reported");
    }
    for (uint32_t k = 0; k < 64; k++) {
        assert_int_equal(result[k], data[k % 32]);
    }
    simt_text_clear(&t);
    /* the named barrier passes on what the other program acquired: no wait of its own is needed */
    char *without = replaced(copier, "      cp.async.wait\n", "");
    read_and_run(&t, without);
    assert_null(lilac_diagnostics(t.context));
    simt_text_clear(&t);
    /* the copies are complete by the wait, before the mbarrier says so */
    char *unordered = replaced(copier, "      named_barrier.sync {id = 1, threads = 64}\n", "");
    char *alone = replaced(unordered, "      named_barrier.arrive {id = 1, threads = 64}\n", "");
    read_and_run(&t, alone);
    assert_null(lilac_diagnostics(t.context));
    simt_text_clear(&t);
    char *neither = replaced(alone, "      cp.async.wait\n", "");
    read_and_run(&t, neither);
    assert_true(is_reported(&t, "copy-in-flight", "ld.shared [%at + 128]", "cp.async ["));
    simt_text_clear(&t);
    free(neither);
    free(unordered);
    free(alone);
    free(without);
}

/* An increase waits for a decrease; without one there is a deadlock that names both programs. */
static const char budget[] = "simt.module target \"sm_90a\" {\n"
                             "  kernel @k() warps 12 ctas 1 shared 16 min_blocks 1 {\n"
                             "    %zero = const 0 : i32\n"
                             "    programs warps 0 to 4 {\n"
                             "      set_max_registers inc {registers = 240}\n"
                             "      yield\n"
                             "    } warps 4 to 8 {\n"
                             "      set_max_registers dec {registers = 24}\n"
                             "      yield\n"
                             "    } warps 8 to 12 {\n"
                             "      set_max_registers inc {registers = 240} \n"
                             "      yield\n"
                             "    }\n"
                             "    return\n"
                             "  }\n"
                             "}\n";

static void registers_are_budgeted(void **state) {
    static const mutation mutations[] = {
        {"dec {registers = 24}",
         "dec {registers = 24}\n      named_barrier.sync {id = 1, threads "
         "= 256}",
         "deadlock", "named_barrier", "named_barrier"},
        {"      set_max_registers dec",
         "      named_barrier.sync {id = 1, threads = 256}\n      "
         "set_max_registers dec",
         "deadlock", "inc", "named_barrier"},
        {"dec {registers = 24}", "inc {registers = 24}", "register-budget", "inc {registers = 24}",
         NULL},
        {"inc {registers = 240} ", "dec {registers = 240} ", "register-budget",
         "dec {registers = 240}", NULL},
    };
    (void)state;
    simt_text t;
    assert_true(simt_text_read(&t, budget));
    assert_true(simt_text_run(&t) || (print_diagnostics(t.context), false));
    simt_text_clear(&t);
    for (size_t k = 0; k < sizeof mutations / sizeof *mutations; k++) {
        const mutation *m = &mutations[k];
        char *changed = replaced(budget, m->from, m->to);
        assert_true(simt_text_read(&t, changed));
        assert_false(simt_text_run(&t));
        if (!is_reported(&t, m->id, m->at, m->other)) {
            print_diagnostics(t.context);
            fail_msg("'%s' as '%s' gives no %s", m->from, m->to, m->id);
        }
        simt_text_clear(&t);
        free(changed);
    }
}

/* Poison of a division by zero stays in its program's threads, and traps there. */
static const char divisions[] =
    "simt.module target \"sm_90a\" {\n"
    "  kernel @k(%data: i64 ptr, %result: i64 ptr) warps 2 ctas 1 shared 0 {\n"
    "    %r = param 1 : i64\n"
    "    %t = thread : i32\n"
    "    %zero = const 0 : i32\n"
    "    %four = const 4 : i32\n"
    "    %half = const 40 : i32\n"
    "    %at = mul %t, %four : i32\n"
    "    %wide = zext %at : i64\n"
    "    %to = add %r, %wide : i64\n"
    "    %low = cmp lt %t, %half : i1\n"
    "    %divisor = select %low, %four, %zero : i32\n"
    "    %outer = div_u %at, %divisor : i32\n"
    "    programs warps 0 to 1 {\n"
    "      %q = div_u %at, %zero : i32\n"
    "      %m = add %q, %four : i32\n"
    "      %s = select %low, %outer, %m : i32\n"
    "      st.global [%to], (%s)\n"
    "      yield\n"
    "    } warps 1 to 2 {\n"
    "      %u = add %outer, %four : i32\n"
    "      %v = add %u, %four : i32\n"
    "      st.global [%to], %low, (%v)\n"
    "      yield\n"
    "    }\n"
    "    return\n"
    "  }\n"
    "}\n";

static void poison_stays_in_its_program(void **state) {
    static const mutation mutations[] = {
        {"st.global [%to], %low, (%v)", "st.global [%to], (%v)", "division-by-zero",
         "%outer = div_u", "st.global [%to], (%v)"},
        {"st.global [%to], (%s)", "st.global [%to], (%m)", "division-by-zero", "%q = div_u",
         "st.global [%to], (%m)"},
    };
    (void)state;
    simt_text t;
    read_and_run(&t, divisions);
    if (lilac_diagnostics(t.context)) {
        print_diagnostics(t.context);
        fail_msg("divisions that are masked are reported");
    }
    for (uint32_t k = 0; k < 40; k++) {
        assert_int_equal(result[k], k < 32 ? k : k + 8);
    }
    simt_text_clear(&t);
    for (size_t k = 0; k < sizeof mutations / sizeof *mutations; k++) {
        const mutation *m = &mutations[k];
        char *changed = replaced(divisions, m->from, m->to);
        read_and_run(&t, changed);
        if (!is_reported(&t, m->id, m->at, m->other)) {
            print_diagnostics(t.context);
            fail_msg("'%s' as '%s' gives no %s", m->from, m->to, m->id);
        }
        simt_text_clear(&t);
        free(changed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_meet_at_named_barriers), cmocka_unit_test(a_program_polls),
        cmocka_unit_test(copies_arrive_for_another_program),
        cmocka_unit_test(registers_are_budgeted), cmocka_unit_test(poison_stays_in_its_program)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
