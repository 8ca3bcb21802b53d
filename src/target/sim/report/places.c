/* The names of operations, blocks, threads, warps and addresses in diagnostics. */
#include "report.h"

const char *lilac_sim_name_of(const lilac_simt_instruction *instruction) {
    return lilac_simt_op_info_get((lilac_simt_opcode)instruction->code)->name;
}

void lilac_sim_put_block(lilac_text *out, const lilac_sim_launch *launch, uint64_t block) {
    uint32_t ctas = launch->kernel->num_ctas;
    uint64_t program = block / ctas, x = launch->grid[0], y = launch->grid[1];
    lilac_text_printf(out, "block (%llu, %llu, %llu)", (unsigned long long)(program % x),
                      (unsigned long long)(program / x % y), (unsigned long long)(program / x / y));
    if (ctas > 1) {
        lilac_text_printf(out, ", rank %llu", (unsigned long long)(block % ctas));
    }
}

void lilac_sim_put_place(lilac_text *out, const lilac_sim_launch *launch, uint64_t block,
                         uint32_t thread) {
    lilac_sim_put_block(out, launch, block);
    lilac_text_printf(out, ", thread %u", thread);
}

void lilac_sim_put_rank(lilac_text *out, const lilac_sim_launch *launch, uint32_t rank) {
    if (launch->kernel->num_ctas > 1) {
        lilac_text_printf(out, " of rank %u", rank);
    }
}

void lilac_sim_put_warp(lilac_text *out, const lilac_sim_launch *launch, uint32_t warp) {
    uint32_t warps = launch->kernel->num_warps;
    lilac_text_printf(out, "warp %u", warp % warps);
    lilac_sim_put_rank(out, launch, warp / warps);
}

void lilac_sim_put_address(lilac_text *out, const lilac_sim_memory *memory, uint64_t address) {
    const lilac_sim_buffer *buffer = lilac_sim_memory_find(memory, address, 1);
    if (buffer) {
        lilac_text_printf(out, "'%s' + %llu", buffer->name ? buffer->name : "?",
                          (unsigned long long)(address - buffer->address));
    } else {
        lilac_text_printf(out, "0x%llx", (unsigned long long)address);
    }
}
