/* Operands of matrix instructions as SIMT values. The plan says which coordinate each bit of an
 * instruction's index is; the register of a coordinate is the sum of register bits whose columns add up
 * to it. */
#include "matrix/fragments.h"

#include <lilac/simt_matrix.h>

void lilac_lower_lookup_init(lilac_lower_lookup *lookup, const lilac_lower_value *value) {
    const lilac_layout_columns *columns = &value->view->columns;
    lookup->value = value;
    lilac_f2_basis_init(&lookup->basis);
    for (uint32_t i = 0; i < columns->register_bits; i++) {
        if ((columns->distinct >> i & 1) != 0) {
            (void)lilac_f2_basis_add(&lookup->basis, columns->registers[i], UINT64_C(1) << i);
        }
    }
}

bool lilac_lower_lookup_register(const lilac_lower_lookup *lookup, uint64_t flat, uint32_t *r) {
    uint64_t tag;
    const bool found = lilac_f2_basis_reduce(&lookup->basis, flat, &tag) == 0;
    *r = (uint32_t)tag;
    return found;
}

uint64_t lilac_lower_dot_step(const lilac_plan_dot *plan, uint32_t index) {
    uint64_t inner = 0;
    for (uint32_t i = 0; i < plan->step_bits; i++) {
        inner ^= index >> i & 1 ? plan->step[i] : 0;
    }
    return inner;
}

/* The coordinate of an index of the instruction; *beyond: it has a bit that the tensor lacks. */
static uint64_t coordinate_of(const uint64_t *vectors, uint32_t bits, uint32_t index, bool *beyond) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < bits; i++) {
        if ((index >> i & 1) != 0) {
            *beyond |= vectors[i] == 0;
            sum ^= vectors[i];
        }
    }
    return sum;
}

/* One element of an operand. 0: its inner index is beyond K. */
static bool element_of(const lilac_lower_dot *dot, bool is_a, uint64_t flat, lilac_simt_value *value) {
    const lilac_lower_lookup *lookup = is_a ? &dot->a : &dot->b;
    uint32_t r;
    if (!lilac_lower_lookup_register(lookup, flat, &r)) {
        return lilac_lower_refuse(dot->l, "layout-conversion",
                                  "the layout of %s does not give each thread the elements that the "
                                  "matrix instruction needs",
                                  is_a ? "A" : "B");
    }
    *value = lilac_lower_get(dot->l, lookup->value, r);
    return true;
}

bool lilac_lower_dot_words(const lilac_lower_dot *dot, bool is_a, uint64_t batch, uint64_t kept,
                           uint64_t inner, lilac_simt_value *words) {
    enum { WORD_ELEMENTS = 4 };
    const lilac_plan_dot *plan = dot->plan;
    const lilac_lower_value *value = is_a ? dot->a.value : dot->b.value;
    const uint32_t halves = is_a && plan->row_bits > 3 ? 2 : 1; /* rows 0 – 7 and 8 – 15 */
    const uint32_t groups = 1U << (plan->inner_bits - plan->word_bits - 2);
    lilac_simt_builder *b = &dot->l->builder;
    for (uint32_t i = 0; i < halves * groups; i++) {
        lilac_simt_value parts[WORD_ELEMENTS];
        for (uint32_t e = 0; e >> plan->word_bits == 0; e++) {
            const uint32_t index = e | i / halves << (plan->word_bits + 2);
            bool beyond = false;
            const uint64_t along_k =
                inner ^ coordinate_of(plan->inner, plan->inner_bits, index, &beyond);
            const uint64_t outer = kept ^ (i % halves != 0 ? plan->row[3] : 0);
            const lilac_layout_columns *columns = &value->view->columns;
            const uint64_t flat = is_a ? lilac_plan_dot_flat(columns, batch, outer, along_k)
                                       : lilac_plan_dot_flat(columns, batch, along_k, outer);
            parts[e] = lilac_simt_constant(b, value->simt, 0);
            if (!beyond && !element_of(dot, is_a, flat, &parts[e])) {
                return false;
            }
        }
        words[i] = plan->word_bits == 0 ? parts[0]
                                        : lilac_simt_pack(b, LILAC_SIMT_I32, 1U << plan->word_bits,
                                                          parts);
        if (dot->idle != 0) {
            const lilac_simt_type type = lilac_simt_type_of(dot->l->kernel, words[i]);
            words[i] = lilac_lower_select(dot->l, dot->idle, lilac_simt_constant(b, type, 0),
                                          words[i]);
        }
    }
    return true;
}

uint32_t lilac_lower_dot_element(const lilac_plan_dot *plan, uint32_t base, uint32_t element) {
    for (uint32_t i = 0; i < plan->element_bits; i++) {
        if ((element >> i & 1) != 0 && plan->element_register[i] >= 0) {
            base ^= 1U << plan->element_register[i];
        }
    }
    return base;
}

void lilac_lower_dot_gather(const lilac_lower_dot *dot, const lilac_simt_value *registers,
                            uint32_t base, lilac_simt_value *accumulators) {
    const lilac_plan_dot *plan = dot->plan;
    const bool pairs = plan->shape.d == LILAC_MATRIX_F16;
    for (uint32_t e = 0; e >> plan->element_bits == 0; e += pairs ? 2 : 1) {
        const lilac_simt_value parts[2] = {
            registers[lilac_lower_dot_element(plan, base, e)],
            pairs ? registers[lilac_lower_dot_element(plan, base, e + 1)] : 0};
        *accumulators++ =
            pairs ? lilac_simt_pack(&dot->l->builder, LILAC_SIMT_F16X2, 2, parts) : parts[0];
    }
}

void lilac_lower_dot_scatter(const lilac_lower_dot *dot, const lilac_simt_value *accumulators,
                             uint32_t base, lilac_simt_value *registers) {
    const lilac_plan_dot *plan = dot->plan;
    const bool pairs = plan->shape.d == LILAC_MATRIX_F16;
    /* from the last: where the tensor lacks a bit, the accumulator without it remains */
    for (uint32_t e = 1U << plan->element_bits; e > 0;) {
        lilac_simt_value parts[2];
        e -= pairs ? 2 : 1;
        if (pairs) {
            lilac_simt_unpack(&dot->l->builder, LILAC_SIMT_F16, accumulators[e / 2], 2, parts);
            registers[lilac_lower_dot_element(plan, base, e + 1)] = parts[1];
        } else {
            parts[0] = accumulators[e];
        }
        registers[lilac_lower_dot_element(plan, base, e)] = parts[0];
    }
}

lilac_simt_matrix_payload lilac_lower_dot_payload(const lilac_plan_dot *plan) {
    return (lilac_simt_matrix_payload){.a = (uint8_t)plan->shape.a,
                                       .b = (uint8_t)plan->shape.b,
                                       .d = (uint8_t)plan->shape.d,
                                       .m = (uint16_t)plan->shape.m,
                                       .n = (uint16_t)plan->shape.n,
                                       .k = (uint16_t)plan->shape.k};
}
