/* How many blocks a multiprocessor is to hold: .minnctapersm.
 *
 * An assembler gives a thread the registers with which its schedule is shortest, and may take one
 * more than leaves room for another block:
 *
 *     66 registers of 512 threads    1 block of 65536 / (72 · 512)
 *     64 registers                   2 blocks
 *
 * That is dear where the threads of a block wait for each other: while they do, only other blocks
 * keep memory busy. What it takes them for is, as a rule, loads issued early that could come late
 * at no cost: those that all blocks make alike, as of weights, for the second-level cache has them.
 * So in kernels with barriers it is asked how many blocks there is room for when such loads come
 * early and when they come late (lilac_simt_pressure), and where that differs the assembler is told
 * the larger number, unless that is near the most that a multiprocessor holds, where another block
 * is worth little and a register too few much. Everywhere else it is left alone: being told a
 * number it also takes all the registers that this number allows.
 */
#include "emit.h"

bool lilac_ptx_waits(const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (i->code == LILAC_SIMT_OP_BARRIER || i->code == LILAC_SIMT_OP_GROUP_BARRIER) {
            return true;
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            if (lilac_ptx_waits(i->bodies[k])) {
                return true;
            }
        }
    }
    return false;
}

uint32_t lilac_ptx_blocks(const lilac_simt_kernel *kernel, const lilac_arch *arch) {
    if (kernel->num_ctas > 1 || !lilac_ptx_waits(kernel->body)) {
        return 0;
    }
    uint32_t late = lilac_simt_resident_blocks(kernel, lilac_simt_pressure(kernel, true));
    uint32_t early = lilac_simt_resident_blocks(kernel, lilac_simt_pressure(kernel, false));
    bool near_most = 4 * late * kernel->num_warps > 3 * arch->resident_warps;
    return late > early && late > 1 && !near_most ? late : 0;
}
