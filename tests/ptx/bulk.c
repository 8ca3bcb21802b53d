/* target/ptx: operations of the async proxy, as text and as ptxas accepts them. */
#define _POSIX_C_SOURCE 200809L /* mkstemp, popen */

#include <lilac/ptx.h>

#include "support/assemble.h"
#include "support/test.h"
#include "support/text_rig.h"

#define HEAD "kernel @k(%p: i64 ptr, %n: i32, %m: i64 tensor_map) warps 4 ctas 1 shared 4096"
#define VALUES                                                                                     \
    "%s = shared_base : i32\n%p = param 0 : i64\n%n = param 1 : i32\n%t = thread : i32\n%m = "     \
    "param 2 : i64\n"                                                                              \
    "%zero = const 0 : i32\n%one = const 1 : i32\n%yes = const true : i1\n%no = const false : "    \
    "i1\n"                                                                                         \
    "%size = const 256 : i32\n%first = cmp eq %t, %zero : i1\n"

/* Each operation with its PTX; NULL: no instruction is written. */
static const struct {
    const char *operation, *ptx;
} cases[] = {
    {"fence.proxy_async shared", "\tfence.proxy.async.shared::cta;\n"},
    {"fence.proxy_async global", "\tfence.proxy.async.global;\n"},
    {"fence.proxy_async all", "\tfence.proxy.async;\n"},
    {"cp.bulk.load [%s + 16], %first, (%p, %n, %s) {global = 64, mbarrier = 8}",
     "\tcp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r"},
    {"cp.bulk.load [%s], %first, (%p, %n, %s)", " bra $L_copies_end_0;\n"},
    {"cp.bulk.load [%s], %first, (%p, %n, %s)",
     ";\n$L_copies_end_0:\n\tbar.warp.sync 0xffffffff;\n"},
    {"cp.bulk.load [%s + 16], (%p, %size, %s) {global = 64, mbarrier = 8}", "+64], 256, [%r"},
    {"cp.bulk.load [%s], %no, (%p, %n, %s)", NULL},
    {"cp.tensor.load [%s], (%m, %n, %s) {mbarrier = 8}",
     "\tcp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r"},
    {"cp.tensor.load [%s], %first, (%m, %n, %zero, %s)", ", 0}], [%r"},
    {"cp.tensor.load [%s], (%m, %n, %n, %n, %n, %n, %s)", ".tensor.5d.shared::cluster"},
    {"cp.tensor.load [%s], %first, (%m, %n, %n, %s, %n) {mbarrier = 8, multicast}",
     ".tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r"},
    {"cp.tensor.load [%s], (%m, %n, %s, %n) {multicast}", "\tcvt.u16.u32 %ts"},
    {"cp.tensor.load [%s], (%m, %n, %s, %one) {multicast}", "\tmov.b16 %ts"},
    {"cp.tensor.load [%s], (%m, %n, %n, %n, %n, %n, %s, %one) {multicast}",
     ".tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r"},
    {"cp.tensor.store [%s], (%m, %n, %n)",
     "\tcp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd"},
    {"cp.tensor.reduce add [%s], (%m, %n, %n, %n)",
     "\tcp.reduce.async.bulk.tensor.3d.global.shared::cta.add.bulk_group [%rd"},
    {"cp.tensor.reduce xor [%s], (%m, %n)", ".shared::cta.xor.bulk_group [%rd"},
    {"cp.tensor.reduce and [%s], (%m, %n)", ".shared::cta.and.bulk_group [%rd"},
    {"cp.tensor.reduce or [%s], (%m, %n)", ".shared::cta.or.bulk_group [%rd"},
    {"cp.tensor.reduce min_s [%s], (%m, %n)", ".shared::cta.min.bulk_group [%rd"},
    {"cp.tensor.reduce max_u [%s], (%m, %n)", ".shared::cta.max.bulk_group [%rd"},
    {"prefetch.tensor_map %m", "\tprefetch.tensormap [%rd"},
    {"prefetch.tensor_map %m", "\tcvta.param.u64 %rd"},
    {"prefetch.tensor_map %m", "\t.param .align 64 .b8 parameter_2[128],\n"},
    {"bulk.commit", "\tcp.async.bulk.commit_group;\n"},
    {"bulk.wait {groups = 3}", "\tcp.async.bulk.wait_group 3;\n"},
    {"bulk.wait_read", "\tcp.async.bulk.wait_group.read 0;\n"},
    {"cp.bulk.store [%s], (%p, %n)", "\tcp.async.bulk.global.shared::cta.bulk_group [%rd"},
    {"cp.bulk.store [%s + 32], %first, (%p, %size) {global = -48}", "+-48], [%r"},
    {"cp.bulk.store [%s + 64], %yes, (%p, %size)", "+64], 256;\n"},
    {"cp.bulk.store [%s], %no, (%p, %n)", NULL},
    {"cp.bulk.reduce add [%s], (%p, %n) {scalar = i32}",
     "\tcp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd"},
    {"cp.bulk.reduce add [%s], (%p, %n) {scalar = i64}", ".add.u64 "},
    {"cp.bulk.reduce and [%s], (%p, %n) {scalar = i32}", ".and.b32 "},
    {"cp.bulk.reduce or [%s], (%p, %n) {scalar = i64}", ".or.b64 "},
    {"cp.bulk.reduce xor [%s], (%p, %n) {scalar = i32}", ".xor.b32 "},
    {"cp.bulk.reduce min_s [%s], (%p, %n) {scalar = i32}", ".min.s32 "},
    {"cp.bulk.reduce max_s [%s], (%p, %n) {scalar = i64}", ".max.s64 "},
    {"cp.bulk.reduce min_u [%s], (%p, %n) {scalar = i64}", ".min.u64 "},
    {"cp.bulk.reduce max_u [%s], (%p, %n) {scalar = i32}", ".max.u32 "},
    {"cp.bulk.reduce add [%s], (%p, %n) {scalar = f16}", ".add.noftz.f16 "},
    {"cp.bulk.reduce add [%s], (%p, %n) {scalar = bf16}", ".add.noftz.bf16 "},
    {"cp.bulk.reduce add [%s], (%p, %n) {scalar = f32}", ".add.f32 "},
    {"cp.bulk.reduce add [%s], (%p, %n) {scalar = f64}", ".add.f64 "},
};
enum { CASES = sizeof cases / sizeof *cases };

static void write_ptx(text_rig *r, const char *body, lilac_text *ptx) {
    lilac_ptx_options options = {.comments = false};
    text_open(r, HEAD, VALUES, body, NULL);
    if (!lilac_ptx_write(ptx, r->t.module, &options)) {
        text_fail(r, "no PTX");
    }
}

static void each_operation_has_its_text(void **state) {
    (void)state;
    for (size_t k = 0; k < CASES; k++) {
        text_rig r;
        lilac_text ptx = {0}, body = {0};
        lilac_text_puts(&body, cases[k].operation);
        lilac_text_puts(&body, "\n");
        write_ptx(&r, lilac_text_get(&body), &ptx);
        bool found = strstr(lilac_text_get(&ptx), cases[k].ptx ? cases[k].ptx : "bulk") != NULL;
        if (found != (cases[k].ptx != NULL)) {
            fail_msg("%s: %s", cases[k].operation, lilac_text_get(&ptx));
        }
        lilac_text_clear(&ptx);
        lilac_text_clear(&body);
        text_close(&r);
    }
}

/* All of them in one kernel, for each device that has them. ptxas warns of a multicast on devices without
 * the suffix a. */
static void ptxas_accepts(void **state) {
    static const char *const devices[] = {"sm_90", "sm_90a", "sm_100a", "sm_120"};
    const char *ptxas = find_ptxas();
    (void)state;
    if (!ptxas) {
        print_message("skipped: no ptxas here, so nothing was assembled\n");
        skip();
    }
    for (size_t k = 0; k < sizeof devices / sizeof *devices; k++) {
        const lilac_arch *arch = lilac_arch_find(devices[k]);
        text_rig r;
        lilac_text ptx = {0}, body = {0};
        lilac_ptx_options options = {.comments = false};
        if (!arch || !lilac_arch_has(arch, LILAC_HAS_TMA)) {
            continue;
        }
        for (size_t c = 0; c < CASES; c++) {
            if (strstr(cases[c].operation, "multicast") && !strchr(devices[k], 'a')) {
                continue;
            }
            lilac_text_puts(&body, cases[c].operation);
            lilac_text_puts(&body, "\n");
        }
        text_open(&r, HEAD, VALUES, lilac_text_get(&body), NULL);
        r.t.module->arch = arch;
        assert_true(lilac_ptx_write(&ptx, r.t.module, &options));
        assert_true(assembles(ptxas, arch->name, lilac_text_get(&ptx), ""));
        lilac_text_clear(&ptx);
        lilac_text_clear(&body);
        text_close(&r);
    }
}

static uint32_t count(const char *text, const char *part) {
    uint32_t found = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) {
        found++;
    }
    return found;
}

/* One branch for neighbours under one predicate; none for announcements without a copy. */
static void copies_under_one_branch(void **state) {
    (void)state;
    static const struct {
        const char *body;
        uint32_t branches, guards;
    } bodies[] = {
        {"mbarrier.expect [%s], %first, (%n)\ncp.tensor.load [%s], %first, (%m, %n, %s)\n"
         "cp.tensor.load [%s + 128], %first, (%m, %n, %s)\n",
         1, 0},
        {"cp.tensor.load [%s], %first, (%m, %n, %s)\nbarrier\n"
         "cp.tensor.load [%s + 128], %first, (%m, %n, %s)\n",
         2, 0},
        {"cp.tensor.load [%s], %first, (%m, %n, %s)\ncp.tensor.load [%s], (%m, %n, %s)\n"
         "cp.tensor.store [%s], %first, (%m, %n)\nbulk.commit\n",
         2, 0},
        {"mbarrier.expect [%s], %first, (%n)\nbarrier\n", 0, 1},
        {"cp.tensor.store [%s], (%m, %n)\ncp.tensor.store [%s], %yes, (%m, %n)\n", 0, 0},
    };
    for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++) {
        text_rig r;
        lilac_text ptx = {0};
        write_ptx(&r, bodies[k].body, &ptx);
        const char *text = lilac_text_get(&ptx);
        if (count(text, "bra $L_copies_end_") != bodies[k].branches ||
            count(text, "\n$L_copies_end_") != bodies[k].branches ||
            count(text, "\t@%p") != bodies[k].guards) {
            fail_msg("%s: %s", bodies[k].body, text);
        }
        lilac_text_clear(&ptx);
        text_close(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_operation_has_its_text),
        cmocka_unit_test(copies_under_one_branch),
        cmocka_unit_test(ptxas_accepts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
