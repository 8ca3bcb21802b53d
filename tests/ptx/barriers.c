/* target/ptx: operations on mbarriers become the expected lines, and ptxas accepts them. */
#define _POSIX_C_SOURCE 200809L /* mkstemp, popen */

#include <lilac/ptx.h>

#include "support/assemble.h"
#include "support/simt_text.h"
#include "support/test.h"

/* Writes the PTX of a module; of the heap. */
static char *write_ptx(const char *text) {
    simt_text t;
    lilac_text out = {0};
    assert_true(simt_text_read(&t, text) || (print_diagnostics(t.context), false));
    bool good = lilac_simt_verify(t.module) &&
                lilac_ptx_write(&out, t.module, &(lilac_ptx_options){.comments = false});
    if (!good) {
        print_diagnostics(t.context);
    }
    assert_true(good);
    char *ptx = strdup(lilac_text_get(&out));
    lilac_text_clear(&out);
    simt_text_clear(&t);
    return ptx;
}

/* The lines stand in the text in this order. */
static void need_lines(const char *ptx, const char *const *lines, size_t count) {
    const char *at = ptx;
    for (size_t k = 0; k < count; k++) {
        const char *found = strstr(at, lines[k]);
        if (!found) {
            fail_msg("no '%s' in this order in\n%s", lines[k], ptx);
        }
        at = found + strlen(lines[k]);
    }
}

static void assemble(char *ptx, const char *device) {
    const char *ptxas = find_ptxas();
    bool good = !ptxas || assembles(ptxas, device, ptx, "-v");
    free(ptx);
    assert_true(good);
    if (!ptxas) {
        print_message("skipped: no ptxas here, so nothing was assembled\n");
        skip();
    }
}

static const char mbarriers[] = "simt.module target \"sm_90a\" {\n"
                                "  kernel @k(%data: i64 ptr) warps 2 ctas 1 shared 1040 {\n"
                                "    %d = param 0 : i64\n"
                                "    %b = shared_base : i32\n"
                                "    %t = thread : i32\n"
                                "    %zero = const 0 : i32\n"
                                "    %bytes = const 64 : i32\n"
                                "    %first = cmp eq %t, %zero : i1\n"
                                "    %never = const false : i1\n"
                                "    mbarrier.init [%b + 8], %first, (%bytes)\n"
                                "    fence.mbarrier_init\n"
                                "    mbarrier.arrive [%b + 8], %never\n"
                                "    mbarrier.arrive [%b + 8]\n"
                                "    mbarrier.arrive [%b + 8], %first, (%t)\n"
                                "    mbarrier.expect [%b + 8], %first, (%bytes)\n"
                                "    cp.async [%b + 16], (%d) {size = 16}\n"
                                "    cp.async.mbarrier_arrive [%b + 8]\n"
                                "    mbarrier.wait [%b + 8], (%zero)\n"
                                "    %done = mbarrier.try_wait [%b + 8], (%zero) : i1\n"
                                "    st.shared [%b + 64], %done, (%t)\n"
                                "    %now = mbarrier.test [%b + 8], (%zero) : i1\n"
                                "    mbarrier.wait [%b + 8], %now, (%zero)\n"
                                "    mbarrier.wait [%b + 8], %never, (%zero)\n"
                                "    mbarrier.invalidate [%b + 8], %first\n"
                                "    return\n"
                                "  }\n"
                                "}\n";

static void operations_on_mbarriers(void **state) {
    static const char *const lines[] = {
        " mbarrier.init.shared::cta.b64 [",
        "fence.mbarrier_init.release.cluster;",
        "\tmbarrier.arrive.release.cta.shared::cta.b64 _, [",
        " mbarrier.arrive.release.cta.shared::cta.b64 _, [",
        " mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [",
        "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [",
        "$L_wait_0:\n\tmbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %tp",
        " bra $L_wait_0;\n\tbar.warp.sync 0xffffffff;\n",
        "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p",
        "mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %p",
        "\tnot.pred %tp",
        "$L_wait_1:\n\t@!%tp",
        "mbarrier.inval.shared::cta.b64 ["};
    (void)state;
    char *ptx = write_ptx(mbarriers);
    need_lines(ptx, lines, sizeof lines / sizeof *lines);
    assemble(ptx, "sm_90a");
}

/* In a cluster a wait acquires with its scope, and an arrival may go to another block. */
static void mbarriers_of_a_cluster(void **state) {
    static const char text[] = "simt.module target \"sm_90\" {\n"
                               "  kernel @k() warps 1 ctas 2 shared 16 {\n"
                               "    %b = shared_base : i32\n"
                               "    %one = const 1 : i32\n"
                               "    %there = map_shared %b, %one : i32\n"
                               "    mbarrier.arrive.cluster [%there], (%one)\n"
                               "    mbarrier.wait [%b], (%one)\n"
                               "    return\n"
                               "  }\n"
                               "}\n";
    static const char *const lines[] = {"mbarrier.arrive.release.cta.shared::cluster.b64 _, [",
                                        "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 "};
    (void)state;
    char *ptx = write_ptx(text);
    need_lines(ptx, lines, sizeof lines / sizeof *lines);
    assemble(ptx, "sm_90");
}

static const char programs[] = "simt.module target \"sm_90a\" {\n"
                               "  kernel @k() warps 12 ctas 1 shared 2048 min_blocks 1 {\n"
                               "    %t = thread : i32\n"
                               "    %b = shared_base : i32\n"
                               "    programs warps 0 to 4 {\n"
                               "      set_max_registers dec {registers = 40}\n"
                               "      %p = elect : i1\n"
                               "      st.shared [%b], %p, (%t)\n"
                               "      named_barrier.arrive {id = 3, threads = 384}\n"
                               "      yield\n"
                               "    } warps 4 to 8 {\n"
                               "      set_max_registers inc {registers = 232}\n"
                               "      named_barrier.sync {id = 3, threads = 384}\n"
                               "      yield\n"
                               "    } warps 8 to 12 {\n"
                               "      set_max_registers inc {registers = 232}\n"
                               "      named_barrier.sync {id = 3, threads = 384}\n"
                               "      yield\n"
                               "    }\n"
                               "    st.shared [%b + 64], (%t)\n"
                               "    return\n"
                               "  }\n"
                               "}\n";

/* ptxas keeps setmaxnreg: a warning that it is ignored (C7507, C7508) fails the test. */
static void programs_branch_on_the_warp(void **state) {
    static const char *const lines[] = {".reqntid 384",
                                        ".minnctapersm 1",
                                        "shfl.sync.idx.b32 %tr",
                                        ", 0, 0x1f, 0xffffffff;\n\tsetp.ge.u32 %tp",
                                        ", 4;\n\t@%tp",
                                        "bra.uni $L_program_1;\n",
                                        "setmaxnreg.dec.sync.aligned.u32 40;\n",
                                        "elect.sync %tr",
                                        "bar.arrive 3, 384;\n\tbra.uni $L_programs_end_0;\n"
                                        "$L_program_1:\n",
                                        "bra.uni $L_program_2;\n"
                                        "\tsetmaxnreg.inc.sync.aligned.u32 232;\n"
                                        "\tbar.sync 3, 384;\n\tbra.uni $L_programs_end_0;\n"
                                        "$L_program_2:\n\tsetmaxnreg.inc.sync.aligned.u32 232;\n"
                                        "\tbar.sync 3, 384;\n$L_programs_end_0:\n"};
    (void)state;
    char *ptx = write_ptx(programs);
    need_lines(ptx, lines, sizeof lines / sizeof *lines);
    assemble(ptx, "sm_90a");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(operations_on_mbarriers),
                                       cmocka_unit_test(mbarriers_of_a_cluster),
                                       cmocka_unit_test(programs_branch_on_the_warp)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
