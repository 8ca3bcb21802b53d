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
    lilac_simt_value *replacement; /* by value; 0: none */
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

/* A row of values in place of `count` consecutive ones, and as many more as there are products. */
static lilac_simt_value extend_values(carrying *c, lilac_simt_value first, uint32_t count,
                                      instruction *definition, lilac_simt_body *body) {
    lilac_simt_kernel *kernel = c->kernel;
    lilac_simt_type *types =
        lilac_arena_array(kernel->module->arena, lilac_simt_type, count + c->count);
    for (uint32_t k = 0; k < count; k++) {
        types[k] = lilac_simt_type_of(kernel, first + k);
    }
    for (uint32_t k = 0; k < c->count; k++) {
        types[count + k] = lilac_simt_type_of(kernel, c->products[k].mul->result);
    }
    const lilac_simt_value made =
        lilac_simt_new_values(kernel, count + c->count, types, definition, body);
    for (uint32_t k = 0; k < count; k++) {
        kernel->values[made + k].marked = kernel->values[first + k].marked;
        kernel->values[made + k].name = kernel->values[first + k].name;
        c->replacement[first + k] = made + k;
    }
    return made;
}

/* More operands of an instruction: `added`, one for each product. */
static void extend_operands(const carrying *c, instruction *i, const lilac_simt_value *added) {
    const uint32_t count = i->operand_count;
    lilac_simt_value *operands =
        lilac_arena_array(c->kernel->module->arena, lilac_simt_value, count + c->count);
    if (count > 0) {
        memcpy(operands, i->operands, sizeof *operands * count);
    }
    memcpy(operands + count, added, sizeof *operands * c->count);
    i->operands = operands;
    i->operand_count = (uint16_t)(count + c->count);
}

static void replace_uses(const carrying *c, lilac_simt_body *body, uint32_t known) {
    for (instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->operand_count; k++) {
            const lilac_simt_value value = i->operands[k];
            if (value < known && c->replacement[value] != 0) {
                i->operands[k] = c->replacement[value];
            }
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            replace_uses(c, i->bodies[k], known);
        }
    }
}

static void carry(carrying *c) {
    lilac_simt_kernel *kernel = c->kernel;
    instruction *loop = c->loop;
    lilac_simt_body *body = loop->bodies[0];
    lilac_simt_value inits[MOST_PRODUCTS], steps[MOST_PRODUCTS], nexts[MOST_PRODUCTS];
    const uint32_t carried = body->argument_count, results = loop->result_count;
    for (uint32_t k = 0; k < c->count; k++) {
        inits[k] = multiply(c, &c->products[k], loop->operands[0]);
        steps[k] = multiply(c, &c->products[k], loop->operands[2]);
    }
    const uint32_t known = kernel->value_count;
    c->replacement = lilac_heap_grow(NULL, sizeof *c->replacement * known);
    memset(c->replacement, 0, sizeof *c->replacement * known);
    body->argument = extend_values(c, body->argument, carried, NULL, body);
    body->argument_count = carried + c->count;
    loop->result = extend_values(c, loop->result, results, loop, loop->parent);
    loop->result_count = (uint16_t)(results + c->count);
    for (uint32_t k = 0; k < c->count; k++) {
        const lilac_simt_value sum = body->argument + carried + k, operands[2] = {sum, steps[k]};
        c->replacement[c->products[k].mul->result] = sum;
        nexts[k] = make(c, LILAC_SIMT_OP_ADD, 2, operands, lilac_simt_type_of(kernel, sum), body,
                        body->last);
    }
    replace_uses(c, kernel->body, known);
    extend_operands(c, loop, inits);
    extend_operands(c, body->last, nexts);
    lilac_heap_free(c->replacement);
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
