/* Contraction: a product and a sum in the same body become one fused operation.
 *
 *     fadd (fmul a, b), c  →  ffma a, b, c
 *     fsub (fmul a, b), c  →  ffma a, b, (fneg c)
 *     fsub c, (fmul a, b)  →  ffma (fneg a), b, c
 *
 * The product is not rounded then, so the result's last bit may differ (for the better); the user's
 * compiler does the same unless an option forbids it, and so does lilac: see kernel->no_contraction.
 * As in LLVM, a product that has other uses is fused, too: it stays for them, and the sum is no more work. Of two
 * products that of fewer uses is fused, else the first. Not of f64, whose functions compute with what is left of
 * rounded products (src/lower/math). */
#include "internal.h"

#include <string.h>

/* The product that operand `side` is, if it may be fused. */
static lilac_simt_instruction *product_of(const lilac_simt_kernel *kernel,
                                          const lilac_simt_instruction *sum, uint32_t side,
                                          const uint32_t *uses) {
    const lilac_simt_value value = sum->operands[side];
    lilac_simt_instruction *d = kernel->values[value].definition;
    bool fits = d != NULL && d->code == LILAC_SIMT_OP_FMUL && d->flags == 0 &&
                d->detail == LILAC_ROUND_NEAREST_EVEN && d->parent == sum->parent &&
                (uses[value] == 1 || lilac_simt_type_of(kernel, value) != LILAC_SIMT_F64);
    return fits ? d : NULL;
}

static void contract(lilac_simt_builder *b, lilac_simt_instruction *sum,
                     lilac_simt_instruction *product, uint32_t side, uint32_t *uses) {
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
    for (uint32_t i = 0; i < 2; i++) {
        uses[product->operands[i]]++;
    }
    if (--uses[product->result] == 0) {
        for (uint32_t i = 0; i < 2; i++) {
            uses[product->operands[i]]--;
        }
        lilac_simt_unlink(product);
    }
}

/* Fuses one of the products that a sum adds; false: it adds none. */
static bool contract_sum(lilac_simt_builder *b, lilac_simt_instruction *sum, uint32_t *uses) {
    lilac_simt_instruction *products[2] = {product_of(b->kernel, sum, 0, uses),
                                           product_of(b->kernel, sum, 1, uses)};
    if (products[0] == NULL && products[1] == NULL) {
        return false;
    }
    const uint32_t side =
        products[0] == NULL ||
        (products[1] != NULL && uses[products[1]->result] < uses[products[0]->result]);
    contract(b, sum, products[side], side, uses);
    return true;
}

static bool contract_body(lilac_simt_builder *b, lilac_simt_body *body, uint32_t *uses) {
    bool changed = false;
    uint32_t mark = b->memo != NULL ? lilac_simt_memo_open(b->memo) : 0;
    for (lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            changed |= contract_body(b, i->bodies[k], uses);
        }
        if ((i->code == LILAC_SIMT_OP_FADD || i->code == LILAC_SIMT_OP_FSUB) && i->flags == 0 &&
            i->detail == LILAC_ROUND_NEAREST_EVEN) {
            changed |= contract_sum(b, i, uses);
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
