/* The width of the accesses that the lowering generates for a tile operation. */
#ifndef LILAC_TESTS_ACCESS_WIDTHS_H
#define LILAC_TESTS_ACCESS_WIDTHS_H

#include "support/engine_harness.h"

#include <lilac/lower.h>

static inline uint32_t narrower(uint32_t a, uint32_t b) {
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static inline bool is_made_of(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i,
                              const lilac_tile_op *op) {
    lilac_position text;
    return op->location != 0 ? i->location == op->location
                             : lilac_location_text(kernel->module->context, i->location, &text) &&
                                   text.offset == op->position.offset;
}

static inline uint32_t width_in(const lilac_simt_kernel *kernel, const lilac_simt_body *body,
                                const lilac_tile_op *op) {
    bool load = op->code == LILAC_TILE_OP_TT_LOAD;
    uint32_t code = load ? LILAC_SIMT_OP_LD_GLOBAL : LILAC_SIMT_OP_ST_GLOBAL, narrowest = 0;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t b = 0; b < i->body_count; b++) {
            narrowest = narrower(narrowest, width_in(kernel, i->bodies[b], op));
        }
        if (i->code != code || !is_made_of(kernel, i, op)) {
            continue;
        }
        uint32_t bits = 0;
        for (uint32_t k = 0; load && k < i->result_count; k++) {
            bits += lilac_simt_type_bits(lilac_simt_type_of(kernel, i->result + k));
        }
        for (uint32_t k = 1; !load && k < i->operand_count; k++) {
            lilac_simt_type type =
                i->operands[k] == 0 ? LILAC_SIMT_I1 : lilac_simt_type_of(kernel, i->operands[k]);
            bits += type == LILAC_SIMT_I1 ? 0 : lilac_simt_type_bits(type); /* the predicate */
        }
        narrowest = narrower(narrowest, bits / 8);
    }
    return narrowest;
}

/* Bytes of the narrowest access of a thread for the tt.load or tt.store `op`, which is found by
 * its location. 0: the lowering generated no access. */
static inline uint32_t access_bytes(const lilac_simt_module *lowered, const lilac_tile_op *op) {
    return width_in(lowered->kernels, lowered->kernels->body, op);
}

#endif
