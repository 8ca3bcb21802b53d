/* Contraction: a product that only one sum uses, in the same body, becomes one fused operation.
 *
 *     fadd (fmul a, b), c  →  ffma a, b, c
 *     fsub (fmul a, b), c  →  ffma a, b, (fneg c)
 *     fsub c, (fmul a, b)  →  ffma (fneg a), b, c
 *
 * The product is not rounded then, so the result's last bit may differ (for the better); the user's
 * compiler does the same unless an option forbids it, and so does lilac: see kernel->no_contraction.
 */
#include "internal.h"

#include <string.h>

/* The product that operand `side` is, when nothing else needs it. */
static lilac_simt_instruction *own_product(const lilac_simt_kernel *kernel,
                                           const lilac_simt_instruction *sum, uint32_t side,
                                           const uint32_t *uses) {
    lilac_simt_value value = sum->operands[side];
    lilac_simt_instruction *d = kernel->values[value].definition;
    bool fits = d != NULL && d->code == LILAC_SIMT_OP_FMUL && d->flags == 0 &&
                d->detail == LILAC_ROUND_NEAREST_EVEN && d->parent == sum->parent &&
                uses[value] == 1;
    return fits ? d : NULL;
}

static void contract(lilac_simt_builder *b, lilac_simt_instruction *sum,
                     lilac_simt_instruction *product, uint32_t side) {
    lilac_simt_kernel *kernel = b->kernel;
    lilac_simt_type type = lilac_simt_type_of(kernel, sum->result);
    if (b->memo == NULL) { /* most kernels have nothing to contract */
        lilac_simt_builder_init(b, kernel);
    }
    lilac_simt_value *operands = lilac_arena_array(kernel->module->arena, lilac_simt_value, 3);
    b->body = sum->parent;
    b->memo->before = sum;
    b->location = sum->location;
    operands[0] = product->operands[0];
    operands[1] = product->operands[1];
    operands[2] = sum->operands[!side];
    if (sum->code == LILAC_SIMT_OP_FSUB) {
        uint32_t negated = side == 0 ? 2 : 0;
        operands[negated] = lilac_simt_op1(b, LILAC_SIMT_OP_FNEG, type, operands[negated]);
    }
    sum->code = LILAC_SIMT_OP_FFMA;
    sum->operands = operands;
    sum->operand_count = 3;
    lilac_simt_unlink(product);
}

static bool contract_body(lilac_simt_builder *b, lilac_simt_body *body, const uint32_t *uses) {
    bool changed = false;
    uint32_t mark = b->memo != NULL ? lilac_simt_memo_open(b->memo) : 0;
    for (lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            changed |= contract_body(b, i->bodies[k], uses);
        }
        if ((i->code != LILAC_SIMT_OP_FADD && i->code != LILAC_SIMT_OP_FSUB) || i->flags != 0 ||
            i->detail != LILAC_ROUND_NEAREST_EVEN) {
            continue;
        }
        for (uint32_t side = 0; side < 2; side++) {
            lilac_simt_instruction *product = own_product(b->kernel, i, side, uses);
            if (product != NULL) {
                contract(b, i, product, side);
                changed = true;
                break;
            }
        }
    }
    if (b->memo != NULL) {
        lilac_simt_memo_close(b->memo, mark);
    }
    return changed;
}

bool lilac_simt_opt_contract(lilac_simt_kernel *kernel) {
    if (kernel->no_contraction) {
        return false;
    }
    size_t size = sizeof(uint32_t) * kernel->value_count;
    uint32_t *uses = lilac_heap_grow(NULL, size);
    memset(uses, 0, size);
    lilac_simt_count_uses(kernel->body, uses);
    lilac_simt_builder b = {.kernel = kernel};
    bool changed = contract_body(&b, kernel->body, uses);
    lilac_simt_builder_clear(&b);
    lilac_heap_free(uses);
    return changed;
}
