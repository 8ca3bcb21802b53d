/* arch: the rows of the table are consistent, and ptxas accepts exactly the instructions that
 * the table lists for a device. */
#define _POSIX_C_SOURCE 200809L /* mkstemp */

#include <lilac/arch.h>
#include <lilac/bits.h>

#include <unistd.h>

#include "support/test.h"

static void rows_are_found_by_name(void **state) {
    (void)state;
    static const char *const expected[] = {"sm_80",   "sm_86",   "sm_89",   "sm_90",   "sm_90a",
                                           "sm_100a", "sm_103a", "sm_120a", "sm_121a", "gfx90a",
                                           "gfx942",  "gfx950",  "gfx1201"};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_non_null(lilac_arch_find(expected[i]));
        assert_string_equal(lilac_arch_find(expected[i])->name, expected[i]);
    }
    assert_null(lilac_arch_find("sm_9"));
    assert_null(lilac_arch_find(""));
    assert_ptr_not_equal(lilac_arch_find("sm_90"), lilac_arch_find("sm_90a"));
}

static void rows_make_sense(void **state) {
    (void)state;
    size_t count = 0;
    for (const lilac_arch *arch; (arch = lilac_arch_at(count)) != NULL; count++) {
        assert_ptr_equal(lilac_arch_find(arch->name), arch);
        assert_true(strlen(arch->description) > 0);
        assert_true(arch->warp_size == 32 || arch->warp_size == 64);
        assert_int_equal(arch->warp_size * arch->max_warps, 1024);
        assert_true(is_power_of_two(arch->banks) && is_power_of_two(arch->bank_bytes));
        assert_true(is_power_of_two(arch->vector_bytes) && is_power_of_two(arch->sector_bytes));
        assert_true(arch->shared_bytes >= 48 * 1024 && arch->shared_bytes % 1024 == 0);
        assert_true(arch->registers >= 65536);
        bool nvidia = arch->vendor == LILAC_NVIDIA;
        assert_true(nvidia == (strncmp(arch->name, "sm_", 3) == 0));
        assert_true(nvidia == (arch->capability != 0) && nvidia == (arch->ptx_version != 0));
        assert_true(arch->ptx_assembly >= arch->ptx_version && arch->ptx_assembly < 100);
        if (nvidia) {
            assert_int_equal(arch->capability, strtoul(arch->name + 3, NULL, 10));
        }
    }
    assert_null(lilac_arch_at(count));
    assert_null(lilac_arch_at(SIZE_MAX));
}

/* What one costs of everything that a price counts is there, and a narrower barrier is no dearer.
 */
static void costs_make_sense(void **state) {
    (void)state;
    const lilac_arch *arch;
    for (size_t i = 0; (arch = lilac_arch_at(i)) != NULL; i++) {
        const lilac_costs *costs = arch->costs;
        assert_true(strlen(costs->name) > 0);
        assert_true(costs->wavefront > 0 && costs->shuffle > 0 && costs->select > 0 &&
                    costs->permute > 0 && costs->pack > 0 && costs->issue > 0);
        assert_true(costs->sector > 0 && costs->global > 0 && costs->line > 0);
        assert_true(costs->overlap <= 16);
        assert_true(costs->barrier_warp <= costs->barrier_group);
        assert_true(costs->barrier_warp <= costs->barrier_block);
        if (lilac_arch_has(arch, LILAC_HAS_CLUSTERS)) {
            assert_true(costs->barrier_block < costs->barrier_cluster);
            assert_true(costs->remote > 0);
        }
    }
}

static void has_asks_for_all_bits(void **state) {
    (void)state;
    const lilac_arch *hopper = lilac_arch_find("sm_90a"), *ampere = lilac_arch_find("sm_80");
    assert_true(lilac_arch_has(hopper, LILAC_HAS_WGMMA));
    assert_true(lilac_arch_has(hopper, LILAC_HAS_WGMMA | LILAC_HAS_TMA));
    assert_false(lilac_arch_has(hopper, LILAC_HAS_WGMMA | LILAC_HAS_TENSOR_MEMORY));
    assert_false(lilac_arch_has(ampere, LILAC_HAS_TMA));
    assert_true(lilac_arch_has(ampere, LILAC_HAS_CP_ASYNC));
}

/* ---- what ptxas says -------------------------------------------------------------------- */

static const struct {
    lilac_feature feature;
    const char *body;
} probes[] = {
    {LILAC_HAS_LDMATRIX, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r}, [s];"},
    {LILAC_HAS_STMATRIX, "mov.b32 r, 0; stmatrix.sync.aligned.m8n8.x1.shared.b16 [s], {r};"},
    {LILAC_HAS_CP_ASYNC, "cp.async.cg.shared.global [s], [g], 16;"},
    {LILAC_HAS_TMA, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], "
                    "512, [m];"},
    {LILAC_HAS_MMA_SYNC, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {f,f,f,f}, "
                         "{r,r,r,r}, {r,r}, {f,f,f,f};"},
    {LILAC_HAS_WGMMA, "wgmma.fence.sync.aligned;"},
    {LILAC_HAS_CLUSTERS, "barrier.cluster.arrive; barrier.cluster.wait;"},
    {LILAC_HAS_BF16_ARITHMETIC, "add.bf16 h, h, h; sub.bf16 h, h, h; mul.bf16 h, h, h;"},
    {LILAC_HAS_F8_CONVERSIONS, "cvt.rn.satfinite.e4m3x2.f32 h, f, f; "
                               "cvt.rn.satfinite.e5m2x2.f32 h, f, f;"},
    {LILAC_HAS_BF16_ATOMICS, "red.relaxed.gpu.global.add.noftz.bf16 [g], h;"},
    {LILAC_HAS_TENSOR_MAPS, "tensormap.replace.tile.rank.shared::cta.b1024.b32 [s], 1;"},
    {LILAC_HAS_TENSOR_MEMORY, "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32;"},
};

static bool ptxas_accepts(const char *ptxas, const char *path, const lilac_arch *arch,
                          uint32_t version, const char *body) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            ".version %u.%u\n.target %s\n.address_size 64\n.visible .entry k()\n{\n"
            ".reg .b32 r; .reg .b16 h; .reg .f32 f; .reg .b64 g;\n"
            ".shared .align 16 .b8 s[512]; .shared .align 8 .b64 m;\n"
            "mov.b32 r, 0; mov.b16 h, 0; mov.f32 f, 0f00000000; mov.b64 g, 0;\n%s\nret;\n}\n",
            version / 10, version % 10, arch->name, body);
    fclose(file);
    char command[512];
    snprintf(command, sizeof command, "%s -arch=%s %s -o /dev/null >/dev/null 2>&1", ptxas,
             arch->name, path);
    return system(command) == 0;
}

static void ptxas_agrees(void **state) {
    (void)state;
    static const char *const places[] = {"ptxas", "/usr/local/cuda/bin/ptxas"};
    const char *ptxas = NULL;
    for (size_t i = 0; i < 2 && ptxas == NULL; i++) {
        char command[128];
        snprintf(command, sizeof command, "%s --version >/dev/null 2>&1", places[i]);
        if (system(command) == 0) {
            ptxas = places[i];
        }
    }
    if (ptxas == NULL) {
        print_message("skipped: no ptxas here to ask\n");
        skip();
    }
    char path[] = "lilac-arch-XXXXXX";
    int handle = mkstemp(path);
    assert_true(handle >= 0);
    close(handle);
    const lilac_arch *arch;
    uint32_t asked = 0;
    for (size_t i = 0; (arch = lilac_arch_at(i)) != NULL; i++) {
        if (arch->vendor != LILAC_NVIDIA) {
            continue;
        }
        if (!ptxas_accepts(ptxas, path, arch, arch->ptx_assembly, "")) {
            print_message("skipped: %s, which this ptxas does not know\n", arch->name);
            continue;
        }
        asked++;
        /* The row's version is the oldest with the device: 8.0 follows 7.8, and 9.0 follows 8.8. */
        const uint32_t oldest = arch->ptx_version;
        const uint32_t before = oldest % 10 != 0 ? oldest - 1 : oldest == 70 ? 65 : oldest - 2;
        assert_true(ptxas_accepts(ptxas, path, arch, oldest, ""));
        assert_false(ptxas_accepts(ptxas, path, arch, before, ""));
        for (size_t k = 0; k < sizeof probes / sizeof probes[0]; k++) {
            bool accepted = ptxas_accepts(ptxas, path, arch, arch->ptx_assembly, probes[k].body);
            if (accepted != lilac_arch_has(arch, probes[k].feature)) {
                print_error("%s: %s\n", arch->name, probes[k].body);
            }
            assert_true(accepted == lilac_arch_has(arch, probes[k].feature));
        }
    }
    remove(path);
    assert_true(asked > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_found_by_name), cmocka_unit_test(rows_make_sense),
        cmocka_unit_test(costs_make_sense),       cmocka_unit_test(has_asks_for_all_bits),
        cmocka_unit_test(ptxas_agrees),
    };
    return cmocka_run_group_tests_name("arch", tests, NULL, NULL);
}
