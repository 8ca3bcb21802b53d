/* Executes networks of words (plan.h) on all threads of a block, byte by byte. Tests compare an
 * expansion with the result. */
#ifndef LILAC_TESTS_RUN_NETWORK_H
#define LILAC_TESTS_RUN_NETWORK_H

#include <lilac/plan.h>

#include <stdlib.h>
#include <string.h>

/* Thread t (lane bits, warp bits above) has words at words[t * stride]; results come back there. */
typedef struct network_block {
    uint32_t lane_bits, warp_bits, stride;
    uint32_t *words;
} network_block;

static inline uint32_t parity_under(uint64_t mask, uint32_t thread) {
    return (uint32_t)__builtin_parityll(mask & thread);
}

static inline uint32_t permuted_bytes(uint32_t a, uint32_t b, uint32_t selector) {
    const uint64_t pair = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (uint32_t i = 0; i < 4; i++) {
        result |= (uint32_t)(pair >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
    }
    return result;
}

static inline uint32_t selector_of(const lilac_plan_control *control, uint32_t thread) {
    uint32_t k = 0;
    for (uint32_t i = 0; i < control->mask_count; i++) {
        k |= parity_under(control->masks[i], thread) << i;
    }
    return control->selector[k];
}

static inline uint32_t source_thread(const lilac_plan_control *control, uint32_t lane_bits,
                                     uint32_t thread_bits, uint32_t thread) {
    const uint32_t lanes = (UINT32_C(1) << lane_bits) - 1;
    uint64_t lane = control->constant;
    for (uint32_t i = 0; i < thread_bits; i++) {
        lane ^= (thread >> i & 1) != 0 ? control->lane[i] : 0;
    }
    if (control->identity) {
        lane = (thread ^ control->constant) & lanes;
    }
    return (thread & ~lanes) | ((uint32_t)lane & lanes);
}

static inline void run_network(const network_block *block, const lilac_plan_network *network) {
    const uint32_t thread_bits = block->lane_bits + block->warp_bits;
    const uint32_t threads = UINT32_C(1) << thread_bits;
    const uint32_t count = network->input_count + network->op_count;
    uint32_t *values = calloc((size_t)threads * (count == 0 ? 1 : count), sizeof *values);
    for (uint32_t t = 0; t < threads; t++) {
        memcpy(values + (size_t)t * count, block->words + (size_t)t * block->stride,
               network->input_count * sizeof *values);
    }
    for (uint32_t i = 0; i < network->op_count; i++) {
        const lilac_plan_word_op *op = &network->ops[i];
        const lilac_plan_control *control = &network->controls[op->control];
        for (uint32_t t = 0; t < threads; t++) {
            uint32_t *mine = values + (size_t)t * count;
            uint32_t from = t;
            switch (op->kind) {
            case LILAC_PLAN_WORD_SELECT:
                mine[network->input_count + i] =
                    parity_under(control->masks[0], t) ? mine[op->a] : mine[op->b];
                break;
            case LILAC_PLAN_WORD_PERMUTE:
                mine[network->input_count + i] =
                    permuted_bytes(mine[op->a], mine[op->b], selector_of(control, t));
                break;
            default:
                from = source_thread(control, block->lane_bits, thread_bits, t);
                mine[network->input_count + i] = values[(size_t)from * count + op->a];
            }
        }
    }
    for (uint32_t t = 0; t < threads; t++) {
        for (uint32_t i = 0; i < network->output_count; i++) {
            block->words[(size_t)t * block->stride + i] =
                values[(size_t)t * count + network->outputs[i]];
        }
    }
    free(values);
}

/* Byte `byte` of element number `element`. No two elements have equal bytes. */
static inline uint8_t element_byte(uint64_t element, uint32_t byte) {
    return (uint8_t)(lilac_hash_word(element * 16 + byte, 77) >> 24);
}

/* The byte `byte` of register r in a thread's words. */
static inline uint8_t *byte_of(uint32_t *words, uint32_t reg, uint32_t element_bytes,
                               uint32_t byte) {
    return (uint8_t *)words + reg * element_bytes + byte;
}

#endif
