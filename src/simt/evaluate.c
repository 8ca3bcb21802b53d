/* evaluate: values of a kernel that its parameters and the program's number determine.
 *
 *     %trips = div_u (add %K, 63), 64        K = 4096, known     ──▶  64
 *     %first = mul %block.x, 128             program 3           ──▶  384
 *
 * A value is evaluated from its definition, once. Loads, results of loops and arguments of bodies
 * are not known, except for those that the caller sets. */
#include "internal.h"

#include <string.h>

enum { UNSEEN, KNOWN, NOT_KNOWN };
enum { MOST_DEPTH = 2000, MOST_OPERANDS = 3 };

void lilac_simt_evaluation_init(lilac_simt_evaluation *e, const lilac_simt_kernel *kernel) {
    *e = (lilac_simt_evaluation){.kernel = kernel};
    e->bits = lilac_heap_grow(NULL, kernel->value_count * sizeof *e->bits);
    e->state = lilac_heap_grow(NULL, kernel->value_count);
    memset(e->state, UNSEEN, kernel->value_count);
}

void lilac_simt_evaluation_clear(lilac_simt_evaluation *e) {
    lilac_heap_free(e->bits);
    lilac_heap_free(e->state);
    *e = (lilac_simt_evaluation){0};
}

void lilac_simt_evaluation_set(lilac_simt_evaluation *e, lilac_simt_value value, uint64_t bits) {
    e->state[value] = KNOWN;
    e->bits[value] = bits & lilac_simt_type_mask((lilac_simt_type)e->kernel->values[value].type);
}

void lilac_simt_evaluation_reset(lilac_simt_evaluation *e) {
    memset(e->state, UNSEEN, e->kernel->value_count);
}

static bool evaluate(lilac_simt_evaluation *e, lilac_simt_value value, uint32_t depth);

static bool operation(lilac_simt_evaluation *e, const lilac_simt_instruction *i, uint32_t depth,
                      uint64_t *result) {
    lilac_simt_type types[MOST_OPERANDS];
    uint64_t bits[MOST_OPERANDS];
    const uint32_t traits = lilac_simt_op_info_get((lilac_simt_opcode)i->code)->traits;
    if (!(traits & LILAC_SIMT_PURE) || i->result_count != 1 || i->operand_count == 0 ||
        i->operand_count > MOST_OPERANDS || i->body_count != 0) {
        return false;
    }
    for (uint32_t k = 0; k < i->operand_count; k++) {
        const lilac_simt_value v = i->operands[k];
        types[k] = (lilac_simt_type)e->kernel->values[v].type;
        if (!evaluate(e, v, depth)) {
            return false;
        }
        bits[k] = e->bits[v];
    }
    if (i->code == LILAC_SIMT_OP_OPAQUE) {
        *result = bits[0];
        return true;
    }
    return lilac_simt_evaluate(i, types, bits, (lilac_simt_type)e->kernel->values[i->result].type,
                               result);
}

static bool definition(lilac_simt_evaluation *e, const lilac_simt_instruction *i, uint32_t depth,
                       uint64_t *bits) {
    switch (i->code) {
    case LILAC_SIMT_OP_CONST:
        *bits = (uint64_t)i->immediate;
        return true;
    case LILAC_SIMT_OP_PARAM:
        *bits = i->immediate < e->argument_count ? e->arguments[i->immediate] : 0;
        return i->immediate < e->argument_count && e->argument_known[i->immediate];
    case LILAC_SIMT_OP_BLOCK:
        *bits = e->program[i->detail];
        return e->programs_known;
    case LILAC_SIMT_OP_THREAD:
    case LILAC_SIMT_OP_LANE:
    case LILAC_SIMT_OP_WARP:
    case LILAC_SIMT_OP_CTA:
    case LILAC_SIMT_OP_SHARED_BASE:
        *bits = 0;
        return e->first_thread;
    case LILAC_SIMT_OP_GRID:
        *bits = e->grid[i->detail];
        return e->programs_known;
    default:
        return operation(e, i, depth, bits);
    }
}

static bool evaluate(lilac_simt_evaluation *e, lilac_simt_value value, uint32_t depth) {
    if (e->state[value] == UNSEEN) {
        const lilac_simt_instruction *i = e->kernel->values[value].definition;
        uint64_t bits = 0;
        e->state[value] = NOT_KNOWN; /* also while its operands are evaluated */
        if (i != NULL && i->result == value && depth < MOST_DEPTH &&
            definition(e, i, depth + 1, &bits)) {
            lilac_simt_evaluation_set(e, value, bits);
        }
    }
    return e->state[value] == KNOWN;
}

bool lilac_simt_evaluation_get(lilac_simt_evaluation *e, lilac_simt_value value, uint64_t *bits) {
    if (!evaluate(e, value, 0)) {
        return false;
    }
    *bits = e->bits[value];
    return true;
}
