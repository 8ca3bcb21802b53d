/* redefine_operands: registers of A that are invariant in a loop are redefined in each iteration.
 *
 *     loop {                              loop {
 *       wgmma.fence                         %b = opaque %a : i32 {volatile}
 *       %s = wgmma …, %a, …         →       wgmma.fence
 *       …                                   %s = wgmma …, %b, …
 *     }                                     …
 *                                         }
 *
 * ptxas (12.8 and 13.0) takes the registers of such an operand for other values of the loop behind the product,
 * and does not restore them: the next iteration multiplies other numbers. A copy does not help, for ptxas moves
 * it out of the loop. The opaque copy that is volatile adds zero to the register itself, which is a value that
 * the loop carries: ptxas gives it registers of its own, and keeps them.
 *
 * The copies are in front of the fence that orders them before the product. Nothing may move them afterwards. */
#include "internal.h"

#include <lilac/simt_matrix.h>

typedef lilac_simt_instruction instruction;

enum { MOST = 64 }; /* words of A of one group of products whose copies are shared */

typedef struct redefining {
    lilac_simt_kernel *kernel;
    instruction
        *place; /* where copies go: in front of the last fence, or of a product without one */
    lilac_simt_value words[MOST], copies[MOST]; /* those made at that place */
    uint32_t count;
    bool changed;
} redefining;

static bool is_loop(const instruction *i) {
    return i->code == LILAC_SIMT_OP_LOOP || i->code == LILAC_SIMT_OP_WHILE;
}

static bool is_inside(const lilac_simt_kernel *kernel, lilac_simt_value value,
                      const instruction *loop) {
    bool inside = false;
    for (uint32_t k = 0; k < loop->body_count; k++) {
        inside |= lilac_simt_is_inside(kernel, value, loop->bodies[k]);
    }
    return inside;
}

static lilac_simt_value insert(const redefining *r, instruction *before, const instruction *like,
                               lilac_simt_value operand) {
    const lilac_simt_type type = LILAC_SIMT_I32;
    instruction *made = lilac_simt_new_instruction(r->kernel, like, 1, &operand);
    made->location = before->location;
    lilac_simt_link(before->parent, before, made);
    lilac_simt_give_results(r->kernel, made, 1, &type);
    return made->result;
}

/* The word as an i32 in a register, in front of the loop. */
static lilac_simt_value register_of(const redefining *r, instruction *loop, lilac_simt_value word) {
    const instruction bitcast = {.code = LILAC_SIMT_OP_BITCAST};
    const instruction opaque = {.code = LILAC_SIMT_OP_OPAQUE};
    uint64_t bits;
    const bool constant = lilac_simt_constant_bits(r->kernel, word, &bits);
    if (lilac_simt_type_of(r->kernel, word) != LILAC_SIMT_I32) {
        word = insert(r, loop, &bitcast, word);
    }
    return constant ? insert(r, loop, &opaque, word) : word;
}

static lilac_simt_value redefined(redefining *r, instruction *loop, lilac_simt_value word) {
    const instruction like = {.code = LILAC_SIMT_OP_OPAQUE, .flags = LILAC_SIMT_VOLATILE};
    for (uint32_t k = 0; k < r->count; k++) {
        if (r->words[k] == word) {
            return r->copies[k];
        }
    }
    const lilac_simt_value copy = insert(r, r->place, &like, register_of(r, loop, word));
    if (r->count < MOST) {
        r->words[r->count] = word;
        r->copies[r->count++] = copy;
    }
    r->changed = true;
    return copy;
}

static void visit_product(redefining *r, instruction *loop, instruction *product) {
    const lilac_simt_group words = lilac_simt_group_of(product, 1);
    lilac_simt_value *operands = product->operands + (words.values - product->operands);
    for (uint32_t k = 0; k < words.count; k++) {
        if (!is_inside(r->kernel, operands[k], loop)) {
            operands[k] = redefined(r, loop, operands[k]);
        }
    }
}

/* `loop`: the innermost one around the body, or NULL. */
static void visit(redefining *r, lilac_simt_body *body, instruction *loop) {
    instruction *fence = NULL;
    for (instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            visit(r, i->bodies[k], is_loop(i) ? i : loop);
        }
        if (i->code == LILAC_SIMT_OP_WGMMA_FENCE) {
            fence = i;
        }
        if (i->code == LILAC_SIMT_OP_WGMMA && i->payload.matrix.registers && loop != NULL) {
            instruction *place = fence != NULL ? fence : i;
            if (r->place != place) {
                r->place = place;
                r->count = 0;
            }
            visit_product(r, loop, i);
        }
    }
}

bool lilac_simt_opt_redefine_operands(lilac_simt_kernel *kernel) {
    redefining r = {.kernel = kernel};
    visit(&r, kernel->body, NULL);
    return r.changed;
}
