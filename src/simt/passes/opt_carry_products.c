/* Products of a loop's counter with invariant factors become carried sums, in loops of asynchronous
 * copies.
 *
 *     loop %i = %l to %u step %s {                  %x0 = mul %l, %f
 *       %x = mul %i, %f                             %d = mul %s, %f
 *       %p = add %b, %x                      →      loop %i = %l to %u step %s (%x = %x0) {
 *       …                                             %p = add %b, %x
 *     }                                               …
 *                                                     %x1 = add %x, %d
 *                                                     yield %x1
 *                                                   }
 *
 * This is strength reduction of induction variables. It is exact, since products and sums wrap
 * around. split_addresses leaves one such product for all copies of a tile, and ptxas would undo
 * its work: of b · f + i · f it makes (b + i) · f for each copy, in few registers, so that a
 * product waits for the copy that still reads them. It leaves carried values as they are. The
 * counter may be shifted, or converted to a wider integer. Constant factors stay. So do all
 * products where the registers of the sums, one for each copy, would spill or cost a resident
 * block. */
#include "internal.h"

#include <string.h>

enum {
    FEWEST = 2, /* copies of a loop */
    MOST_PRODUCTS = 8
};

typedef lilac_simt_instruction instruction;

/* mul (shl (sext %i), distance), factor; sext and shl may be missing. */
typedef struct product {
    instruction *mul;
    lilac_simt_value factor;
    instruction *shift, *widening;
} product;

typedef struct carrying {
    lilac_simt_kernel *kernel;
    instruction *loop;
    product products[MOST_PRODUCTS];
    uint32_t count;
} carrying;

static bool is_invariant(const carrying *c, lilac_simt_value value) {
    return !lilac_simt_is_inside(c->kernel, value, c->loop->bodies[0]);
}

static instruction *defined_in_body(const carrying *c, lilac_simt_value value, uint32_t code) {
    instruction *d = c->kernel->values[value].definition;
    return d != NULL && d->code == code && d->parent == c->loop->bodies[0] ? d : NULL;
}

static bool find_product(const carrying *c, instruction *i, product *result) {
    uint64_t bits;
    if (i->code != LILAC_SIMT_OP_MUL ||
        is_invariant(c, i->operands[0]) == is_invariant(c, i->operands[1])) {
        return false;
    }
    const uint32_t side = is_invariant(c, i->operands[0]);
    lilac_simt_value counter = i->operands[side];
    *result = (product){.mul = i, .factor = i->operands[1 - side]};
    result->shift = defined_in_body(c, counter, LILAC_SIMT_OP_SHL);
    if (result->shift != NULL && is_invariant(c, result->shift->operands[1])) {
        counter = result->shift->operands[0];
    }
    result->widening = defined_in_body(c, counter, LILAC_SIMT_OP_SEXT);
    if (result->widening != NULL) {
        counter = result->widening->operands[0];
    }
    return counter == c->loop->bodies[0]->argument &&
           !lilac_simt_constant_bits(c->kernel, result->factor, &bits);
}

static void find_products(carrying *c) {
    const lilac_simt_body *body = c->loop->bodies[0];
    uint32_t copies = 0;
    c->count = 0;
    for (instruction *i = body->first; i != NULL; i = i->next) {
        copies += i->code == LILAC_SIMT_OP_CP_ASYNC;
        if (c->count < MOST_PRODUCTS && find_product(c, i, &c->products[c->count])) {
            c->count++;
        }
    }
    if (copies < FEWEST || c->count == 0 ||
        !lilac_simt_has_registers(c->kernel, copies + c->count)) {
        c->count = 0;
    }
}

static lilac_simt_value make(const carrying *c, uint16_t code, uint32_t count,
                             const lilac_simt_value *operands, lilac_simt_type type,
                             lilac_simt_body *body, instruction *place) {
    const instruction like = {.code = code};
    instruction *made = lilac_simt_new_instruction(c->kernel, &like, count, operands);
    made->location = c->loop->location;
    lilac_simt_link(body, place, made);
    lilac_simt_give_results(c->kernel, made, 1, &type);
    return made->result;
}

/* The product with another number in the counter's place, before the loop. */
static lilac_simt_value multiply(const carrying *c, const product *p, lilac_simt_value number) {
    const lilac_simt_type type = lilac_simt_type_of(c->kernel, p->mul->result);
    lilac_simt_body *body = c->loop->parent;
    if (p->widening != NULL) {
        number = make(c, LILAC_SIMT_OP_SEXT, 1, &number, type, body, c->loop);
    }
    if (p->shift != NULL) {
        const lilac_simt_value operands[2] = {number, p->shift->operands[1]};
        number = make(c, LILAC_SIMT_OP_SHL, 2, operands, type, body, c->loop);
    }
    const lilac_simt_value operands[2] = {number, p->factor};
    return make(c, LILAC_SIMT_OP_MUL, 2, operands, type, body, c->loop);
}

static void carry(carrying *c) {
    lilac_simt_kernel *kernel = c->kernel;
    lilac_simt_body *body = c->loop->bodies[0];
    lilac_simt_value inits[MOST_PRODUCTS], steps[MOST_PRODUCTS], nexts[MOST_PRODUCTS];
    for (uint32_t k = 0; k < c->count; k++) {
        inits[k] = multiply(c, &c->products[k], c->loop->operands[0]);
        steps[k] = multiply(c, &c->products[k], c->loop->operands[2]);
    }
    const lilac_simt_value first = lilac_simt_add_carried(kernel, c->loop, c->count, inits);
    const uint32_t known = kernel->value_count;
    lilac_simt_value *replacement = lilac_heap_grow(NULL, sizeof *replacement * known);
    memset(replacement, 0, sizeof *replacement * known);
    for (uint32_t k = 0; k < c->count; k++) {
        const lilac_simt_value sum = first + k, operands[2] = {sum, steps[k]};
        replacement[c->products[k].mul->result] = sum;
        nexts[k] = make(c, LILAC_SIMT_OP_ADD, 2, operands, lilac_simt_type_of(kernel, sum), body,
                        body->last);
    }
    lilac_simt_replace_uses(body, known, replacement);
    lilac_simt_add_operands(kernel, body->last, c->count, nexts);
    lilac_heap_free(replacement);
}

static bool visit(lilac_simt_kernel *kernel, lilac_simt_body *body) {
    bool changed = false;
    for (instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            changed |= visit(kernel, i->bodies[k]);
        }
        carrying c = {.kernel = kernel, .loop = i};
        if (i->code == LILAC_SIMT_OP_LOOP) {
            find_products(&c);
        }
        if (c.count > 0) {
            carry(&c);
            changed = true;
        }
    }
    return changed;
}

bool lilac_simt_opt_carry_products(lilac_simt_kernel *kernel) {
    const bool changed = visit(kernel, kernel->body);
    if (changed) {
        lilac_simt_infer_uniform(kernel);
    }
    return changed;
}
