/* Resident blocks, and the inverse: the most of one resource for a number of blocks. */
#include <lilac/occupancy.h>

enum {
    UNIT = 8,       /* registers are allocated to a thread in units of this size */
    RESERVED = 1024 /* bytes of shared memory that the system reserves for each block */
};

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static uint32_t resident_warps(const lilac_arch *arch, uint32_t registers) {
    const uint64_t allocated = ((uint64_t)registers + UNIT - 1) / UNIT * UNIT;
    const uint64_t warps =
        allocated > 0 ? arch->registers / (arch->warp_size * allocated) : arch->resident_warps;
    return warps < arch->resident_warps ? (uint32_t)warps : arch->resident_warps;
}

uint32_t lilac_resident_blocks(const lilac_arch *arch, const lilac_block_demand *demand) {
    const uint32_t by_warps =
        least(resident_warps(arch, demand->registers) / demand->warps, arch->resident_blocks);
    const uint64_t shared = (uint64_t)arch->shared_bytes + RESERVED;
    if (demand->shared_bytes > arch->shared_bytes) {
        return 0;
    }
    return least(by_warps, (uint32_t)(shared / (demand->shared_bytes + RESERVED)));
}

uint32_t lilac_registers_for_blocks(const lilac_arch *arch, uint32_t warps, uint32_t blocks) {
    const uint64_t threads = (uint64_t)arch->warp_size * warps * blocks;
    if ((uint64_t)warps * blocks > arch->resident_warps || blocks > arch->resident_blocks) {
        return 0;
    }
    if (threads == 0) {
        return LILAC_MOST_REGISTERS;
    }
    const uint64_t most = arch->registers / threads / UNIT * UNIT;
    return most < LILAC_MOST_REGISTERS ? (uint32_t)most : LILAC_MOST_REGISTERS;
}

uint64_t lilac_shared_for_blocks(const lilac_arch *arch, uint32_t blocks) {
    const uint64_t each = ((uint64_t)arch->shared_bytes + RESERVED) / blocks;
    return each > RESERVED ? each - RESERVED : 0;
}
