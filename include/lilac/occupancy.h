/* occupancy: how many blocks of a kernel a multiprocessor holds at a time.
 *
 *     resident blocks = min( registers of the multiprocessor / registers of a block,
 *                            shared memory of the multiprocessor / shared memory of a block,
 *                            most warps of the multiprocessor / warps of a block,
 *                            most blocks of the multiprocessor )
 *
 * All estimates of resident blocks in the compiler end here: those before lowering, from tensors
 * and buffers (src/engine/products/block_demand.h), and those after it, from live words
 * (lilac_simt_pressure). Registers are allocated to each thread in units of 8. The system
 * reserves 1024 bytes of shared memory in each block; a multiprocessor has as much shared memory
 * as the largest block with its reserve. The number of warps need not be a multiple of the
 * number of partitions. Source: CUDA C++ programming guide, compute capabilities. */
#ifndef LILAC_OCCUPANCY_H
#define LILAC_OCCUPANCY_H

#include <lilac/arch.h>

LILAC_BEGIN

enum { LILAC_MOST_REGISTERS = 255 /* of a thread */ };

/* The resources of a block. */
typedef struct lilac_block_demand {
    uint32_t warps;        /* at least 1 */
    uint32_t registers;    /* of a thread, 32 bits each; 0: not limited by registers */
    uint64_t shared_bytes; /* without the reserve of the system */
} lilac_block_demand;

/* The number of resident blocks; 0: not even one fits. Falls with each member of the demand. */
LILAC_API uint32_t lilac_resident_blocks(const lilac_arch *arch, const lilac_block_demand *demand);
/* The most registers of a thread, up to LILAC_MOST_REGISTERS, with which `blocks` blocks of `warps`
 * warps are resident; 0: there are none. For 1 to 255 registers r:
 *     r <= this  ⇔  lilac_resident_blocks with r registers and no shared memory >= blocks */
LILAC_API uint32_t lilac_registers_for_blocks(const lilac_arch *arch, uint32_t warps,
                                              uint32_t blocks);
/* The most bytes of shared memory of a block with which `blocks` blocks, at least one, are
 * resident; the same equivalence holds. 0 also if the reserve alone is too large. */
LILAC_API uint64_t lilac_shared_for_blocks(const lilac_arch *arch, uint32_t blocks);

LILAC_END

#endif
