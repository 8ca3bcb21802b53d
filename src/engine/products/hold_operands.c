/* hold_operands: a first operand that a loop's product of few columns reads in every iteration is held in
 * registers.
 *
 *     %m = ttg.local_alloc %q                       %h = ttg.convert_layout %q
 *     scf.for …                                →    scf.for …
 *       %s = ttng.warp_group_dot %m, %k, %c           %s = ttng.warp_group_dot %h, %k, %c
 *
 * A wgmma of n columns reads 64 rows of A and n columns of B from shared memory, which delivers 128 bytes in a
 * clock, and occupies the tensor cores for n / 2 clocks if the elements have 16 bits:
 *
 *     (64 + n) 32 / 128 = 16 + n / 4   clocks of shared memory, or   n / 4   with A in registers
 *
 * Below n = 64 shared memory is the slower one. Such products are those of attention with long rows (Q K^T
 * with 32 columns for each group of warps). That alone gains nothing where the rings have all the buffers that
 * they need (bench/results/decisions.md). The operand is held if
 * without its memory the rings fit in shared memory with one stage more, no resident block is lost, and threads have registers
 * for it besides those that an assembler takes where nothing limits it: with fewer, products wait for each
 * other. */
#include "emit.h"
#include "products/block_demand.h"
#include "products/dot_operands.h"

#include <lilac/tile_loops.h>

enum { BITS = 16, ROWS = 64 };

typedef struct holding {
    lilac_tile_module *module;
    lilac_tile_function *function;
    const lilac_target *target;
    bool changed;
} holding;

static lilac_tile_op *around(const lilac_tile_op *op) {
    return op->parent->parent->parent;
}

static const lilac_tile_op *innermost_loop(const lilac_tile_op *op) {
    const lilac_tile_op *loop = around(op);
    while (loop != NULL && !lilac_tile_is_loop(loop)) {
        loop = around(loop);
    }
    return loop;
}

/* The tensor in memory whose layout this compiler chose and that one product alone reads, as its first operand;
 * else NULL. */
static lilac_tile_value *tensor_in(const lilac_tile_value *memory) {
    const lilac_tile_op *allocation = memory->op;
    if (allocation == NULL || allocation->code != LILAC_TILE_OP_TTG_LOCAL_ALLOC ||
        allocation->operand_count != 1 ||
        lilac_tile_find_text(&allocation->attributes, "lilac.memory") == NULL ||
        memory->uses->next != NULL) {
        return NULL;
    }
    return allocation->operands[0].value;
}

/* Does an instruction of the product read more of A than of B? */
static bool has_few_columns(const holding *h, const lilac_tile_op *product) {
    lilac_plan_dot_problem problem;
    lilac_matrix_shape shape;
    lilac_reason why;
    return lilac_engine_dot_problem(&problem, product, h->target, &why) &&
           lilac_plan_dot_choose_wgmma(&shape, &problem, h->target) && shape.n < ROWS;
}

/* Do the rings get a stage more without the operand's memory? A sixteenth is for exchanges (pipeline/depth.c). */
static bool gains_stage(const holding *h, const lilac_tile_op *loop, uint64_t bytes) {
    const uint64_t all = h->target->arch->shared_bytes, most = all - all / 16;
    lilac_target deeper = *h->target;
    deeper.num_stages++;
    const uint64_t wanted = lilac_engine_block_demand(h->function, loop, &deeper).shared_bytes;
    return wanted > most && wanted - bytes <= most;
}

static bool has_registers(const holding *h, const lilac_tile_op *loop, uint32_t words) {
    const lilac_block_demand before = lilac_engine_block_demand(h->function, loop, h->target);
    lilac_block_demand after = before;
    after.registers += words;
    return after.registers - LILAC_ENGINE_OTHER_REGISTERS + LILAC_ENGINE_FREE_REGISTERS <=
               LILAC_MOST_REGISTERS &&
           lilac_resident_blocks(h->target->arch, &after) >=
               lilac_resident_blocks(h->target->arch, &before);
}

static void visit_product(holding *h, lilac_tile_op *product) {
    lilac_tile_value *memory = product->operands[0].value;
    const lilac_tile_op *loop = innermost_loop(product);
    if (loop == NULL || lilac_tile_is_tensor(memory->type) ||
        lilac_tile_element_bits(memory->type) != BITS || lilac_tile_is_inside(memory, loop) ||
        !has_few_columns(h, product)) {
        return;
    }
    lilac_tile_value *tensor = tensor_in(memory);
    const lilac_layout *layout = lilac_dot_operand_layout(h->module, h->target, product, 0,
                                                          product->results[0].type->layout);
    if (tensor == NULL || layout == NULL) {
        return;
    }
    const lilac_tile_type *type = lilac_tile_with_layout(h->module, tensor->type, layout);
    if (!gains_stage(h, loop, lilac_engine_bytes(type)) ||
        !has_registers(h, loop, lilac_engine_words(type))) {
        return;
    }
    const lilac_emitter e = {h->module, memory->op};
    lilac_tile_value *held = lilac_emit_unary(&e, LILAC_TILE_OP_TTG_CONVERT_LAYOUT, type, tensor);
    held->name = memory->name;
    lilac_tile_set_operand(product, 0, held);
    lilac_tile_remove(memory->op);
    lilac_tile_number(h->function);
    h->changed = true;
}

static void visit_region(holding *h, const lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            for (uint32_t r = 0; r < op->region_count; r++) {
                visit_region(h, op->regions[r]);
            }
            if (op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
                visit_product(h, op);
            }
        }
    }
}

bool lilac_engine_hold_operands(lilac_tile_module *module, const lilac_target *target,
                                bool *changed) {
    holding h = {.module = module, .target = target};
    for (h.function = module->functions; h.function != NULL; h.function = h.function->next) {
        if (h.function->body != NULL) {
            lilac_tile_number(h.function);
            visit_region(&h, h.function->body);
        }
    }
    *changed = h.changed;
    return true;
}
