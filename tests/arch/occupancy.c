/* Resident blocks: what the programming guide's tables say, and the laws of the model for all
 * devices. */
#include <lilac/occupancy.h>

#include "support/test.h"

static uint32_t resident(const lilac_arch *arch, uint32_t warps, uint32_t registers,
                         uint64_t bytes) {
    return lilac_resident_blocks(
        arch, &(lilac_block_demand){.warps = warps, .registers = registers, .shared_bytes = bytes});
}

/* Numbers that CUDA's occupancy calculation also has for compute capability 9.0. */
static void known_numbers(void **state) {
    (void)state;
    const lilac_arch *hopper = lilac_arch_find("sm_90a");
    static const struct {
        uint32_t warps, registers;
        uint64_t bytes;
        uint32_t blocks;
    } known[] = {{8, 128, 0, 2},      {8, 129, 0, 1},     {4, 168, 0, 3},     {4, 169, 0, 2},
                 {4, 255, 0, 2},      {16, 64, 0, 2},     {16, 66, 0, 1},     {4, 32, 0, 16},
                 {8, 32, 0, 8},       {4, 32, 115712, 2}, {4, 32, 115713, 1}, {4, 32, 232448, 1},
                 {4, 32, 232449, 0},  {4, 168, 76800, 3}, {4, 168, 76801, 2}, {8, 128, 139264, 1},
                 {8, 128, 104448, 2}, {4, 96, 50176, 4},  {32, 64, 0, 1},     {32, 65, 0, 0},
                 {1, 0, 0, 32},       {2, 0, 0, 32}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_int_equal(resident(hopper, known[i].warps, known[i].registers, known[i].bytes),
                         known[i].blocks);
    }
}

/* r <= registers_for_blocks(b) ⇔ resident(r) >= b, and the same for shared memory. */
static void inverses(void **state) {
    (void)state;
    const lilac_arch *arch;
    for (size_t i = 0; (arch = lilac_arch_at(i)) != NULL; i++) {
        for (uint32_t warps = 1; warps <= arch->max_warps; warps *= 2) {
            for (uint32_t blocks = 1; blocks <= arch->resident_warps; blocks++) {
                const uint32_t most = lilac_registers_for_blocks(arch, warps, blocks);
                for (uint32_t r = 1; r <= LILAC_MOST_REGISTERS; r++) {
                    assert_int_equal(r <= most, resident(arch, warps, r, 0) >= blocks);
                }
            }
        }
        for (uint32_t blocks = 1; blocks <= arch->resident_blocks; blocks++) {
            const uint64_t most = lilac_shared_for_blocks(arch, blocks);
            assert_true(resident(arch, 1, 1, most) >= blocks);
            assert_true(resident(arch, 1, 1, most + 1) < blocks);
        }
    }
}

/* More of any resource never makes more blocks. */
static void monotonous(void **state) {
    (void)state;
    const lilac_arch *arch;
    for (size_t i = 0; (arch = lilac_arch_at(i)) != NULL; i++) {
        for (uint32_t warps = 1; warps < arch->max_warps; warps++) {
            for (uint32_t r = 0; r < LILAC_MOST_REGISTERS; r += 5) {
                for (uint64_t bytes = 0; bytes <= arch->shared_bytes; bytes += 9001) {
                    const uint32_t blocks = resident(arch, warps, r, bytes);
                    assert_true(resident(arch, warps + 1, r, bytes) <= blocks);
                    assert_true(resident(arch, warps, r + 1, bytes) <= blocks);
                    assert_true(resident(arch, warps, r, bytes + 1) <= blocks);
                }
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_numbers),
        cmocka_unit_test(inverses),
        cmocka_unit_test(monotonous),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
