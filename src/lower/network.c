/* Executes networks on words: one SIMT operation for each operation of the network.
 *
 * Values that depend on the thread are computed first, once for each control, without selects and
 * permutes. The kernel then has exactly the selects and permutes that the plan counts:
 *
 *   predicate   one bit of the thread's index: (thread & mask) != 0; parity of more: popc & 1
 *   selector    of the parities p, q …: s₀ ⊕ p·(s₀ ⊕ s₁) ⊕ q·(s₀ ⊕ s₂) ⊕ p·q·(s₀ ⊕ s₁ ⊕ s₂ ⊕ s₃)
 *   lane        xor of columns over the thread's bits
 */
#include "coordinates.h"
#include "pack_words.h"

static lilac_simt_value word_of(lilac_simt_builder *b, uint64_t bits) {
    return lilac_simt_constant(b, LILAC_SIMT_I32, bits);
}

static lilac_simt_value word_op(lilac_simt_builder *b, lilac_simt_opcode code, lilac_simt_value x,
                                lilac_simt_value y) {
    return lilac_simt_op2(b, code, LILAC_SIMT_I32, x, y);
}

static lilac_simt_value thread_bits_under(lilac_simt_builder *b, uint64_t mask) {
    const lilac_simt_value bits = word_of(b, mask);
    return word_op(b, LILAC_SIMT_OP_AND, lilac_simt_thread(b), bits);
}

/* The parity of the thread's bits under the mask: any number other than 0 if odd (predicates), or 0
 * and 1. */
static lilac_simt_value parity(lilac_simt_builder *b, uint64_t mask, bool predicate) {
    lilac_simt_value bits = thread_bits_under(b, mask);
    bool one = (mask & (mask - 1)) == 0;
    if (!one) {
        bits = lilac_simt_op1(b, LILAC_SIMT_OP_POPC, LILAC_SIMT_I32, bits);
        bits = word_op(b, LILAC_SIMT_OP_AND, bits, word_of(b, 1));
    }
    if (predicate) {
        return lilac_simt_compare_values(b, LILAC_SIMT_NE, bits, word_of(b, 0));
    }
    return one && mask != 0 ? word_op(b, LILAC_SIMT_OP_SHR_U, bits, word_of(b, lowest_bit(mask)))
                            : bits;
}

/* The term of a set of parities is their product times the xor of the selectors of its subsets. */
static lilac_simt_value selector(lilac_simt_builder *b, const lilac_plan_control *control) {
    lilac_simt_value sum = word_of(b, control->selector[0]);
    for (uint32_t set = 1; set >> control->mask_count == 0; set++) {
        uint32_t factor = 0;
        for (uint32_t subset = 0; subset <= set; subset++) {
            factor ^= (subset & ~set) == 0 ? control->selector[subset] : 0;
        }
        if (factor == 0) {
            continue;
        }
        lilac_simt_value term = word_of(b, factor);
        for (uint32_t k = 0; k < control->mask_count; k++) {
            if (set >> k & 1) {
                term = word_op(b, LILAC_SIMT_OP_MUL, parity(b, control->masks[k], false), term);
            }
        }
        sum = word_op(b, LILAC_SIMT_OP_XOR, sum, term);
    }
    return sum;
}

static lilac_simt_value source_lane(lilac_simt_builder *b, const lilac_plan_control *control,
                                    uint32_t thread_bits) {
    if (control->identity) {
        return word_of(b, control->constant);
    }
    lilac_simt_value lane = lilac_lower_linear(b, thread_bits, control->lane, 0, NULL);
    return word_op(b, LILAC_SIMT_OP_XOR, lane, word_of(b, control->constant));
}

/* The value of an operation's control, built at its first use. All operations with one control have
 * the same kind. */
static lilac_simt_value control_value(lilac_simt_builder *b, const lilac_plan_word_op *op,
                                      const lilac_plan_control *control, uint32_t thread_bits) {
    switch (op->kind) {
    case LILAC_PLAN_WORD_SELECT:
        return parity(b, control->masks[0], true);
    case LILAC_PLAN_WORD_PERMUTE:
        return selector(b, control);
    default:
        return source_lane(b, control, thread_bits);
    }
}

static lilac_simt_value apply(lilac_simt_builder *b, const lilac_plan_word_op *op,
                              const lilac_plan_control *control, lilac_simt_value x,
                              lilac_simt_value y, lilac_simt_value with) {
    lilac_simt_type type = LILAC_SIMT_I32;
    switch (op->kind) {
    case LILAC_PLAN_WORD_SELECT:
        return lilac_simt_op3(b, LILAC_SIMT_OP_SELECT, type, with, x, y);
    case LILAC_PLAN_WORD_PERMUTE:
        return lilac_simt_op3(b, LILAC_SIMT_OP_PRMT, type, x, y, with);
    default: {
        lilac_simt_instruction like = {.code = LILAC_SIMT_OP_SHUFFLE,
                                       .detail = control->identity ? LILAC_SIMT_SHFL_XOR
                                                                   : LILAC_SIMT_SHFL_IDX};
        lilac_simt_value operands[2] = {x, with};
        return lilac_simt_build(b, &like, 2, operands, 1, &type);
    }
    }
}

/* Permutes values of 64 bits that are not split: both words of a value have the same
 * destination. */
static void rename_whole(lilac_arena *arena, const lilac_plan_network *network,
                         uint32_t register_bits, lilac_lower_words *words) {
    lilac_lower_words renamed =
        lilac_lower_words_like(register_bits, words->element_bits, words->wide);
    renamed.list = lilac_arena_array(arena, lilac_simt_value, renamed.count);
    for (uint32_t i = 0; i < renamed.count; i++) {
        renamed.list[i] = words->list[network->outputs[2 * i] / 2];
    }
    *words = renamed;
}

void lilac_lower_network(lilac_simt_builder *b, lilac_arena *arena,
                         const lilac_plan_network *network, uint32_t thread_bits,
                         uint32_t register_bits, lilac_lower_words *words) {
    if (words->wide != LILAC_SIMT_VOID) {
        rename_whole(arena, network, register_bits, words);
        return;
    }
    uint32_t inputs = network->input_count;
    lilac_simt_value *controls = lilac_arena_array(arena, lilac_simt_value, network->control_count);
    lilac_simt_value *made = lilac_arena_array(arena, lilac_simt_value, inputs + network->op_count);
    for (uint32_t i = 0; i < inputs; i++) {
        made[i] = words->list[i];
    }
    for (uint32_t i = 0; i < network->op_count; i++) {
        const lilac_plan_word_op *op = &network->ops[i];
        const lilac_plan_control *control = &network->controls[op->control];
        if (controls[op->control] == 0) {
            controls[op->control] = control_value(b, op, control, thread_bits);
        }
        lilac_simt_value y = op->kind == LILAC_PLAN_WORD_SHUFFLE ? 0 : made[op->b];
        made[inputs + i] = apply(b, op, control, made[op->a], y, controls[op->control]);
    }
    words->register_bits = register_bits;
    words->count = network->output_count;
    words->list = lilac_arena_array(arena, lilac_simt_value, words->count);
    for (uint32_t i = 0; i < words->count; i++) {
        words->list[i] = made[network->outputs[i]];
    }
}
