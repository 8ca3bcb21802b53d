/* evaluate: values of a kernel that its parameters and the program's number determine.
 *
 *     %count = div_u (add %K, 63), 64        K = 4096, known     ──▶  64
 *     %first = mul %block.x, 128             program 3           ──▶  384
 *
 * A value is evaluated from its definition, once. Loads of memory whose contents are not known,
 * results of loops and arguments of bodies are not known, except for those that the caller sets. */
#include "internal.h"

#include <string.h>

enum { UNSEEN, KNOWN, NOT_KNOWN };
enum { MOST_DEPTH = 2000, MOST_OPERANDS = 3 };

void lilac_simt_evaluation_init(lilac_simt_evaluation *e, const lilac_simt_kernel *kernel) {
    *e = (lilac_simt_evaluation){.kernel = kernel};
    e->bits = lilac_heap_grow(NULL, kernel->value_count * sizeof *e->bits);
    e->state = lilac_heap_grow(NULL, kernel->value_count);
    e->seen = lilac_heap_grow(NULL, kernel->value_count * sizeof *e->seen);
    memset(e->state, UNSEEN, kernel->value_count);
}

void lilac_simt_evaluation_clear(lilac_simt_evaluation *e) {
    lilac_heap_free(e->bits);
    lilac_heap_free(e->state);
    lilac_heap_free(e->seen);
    *e = (lilac_simt_evaluation){0};
}

static void note(lilac_simt_evaluation *e, lilac_simt_value value, uint8_t state) {
    if (e->state[value] == UNSEEN) {
        e->seen[e->seen_count++] = value;
    }
    e->state[value] = state;
}

void lilac_simt_evaluation_set(lilac_simt_evaluation *e, lilac_simt_value value, uint64_t bits) {
    note(e, value, KNOWN);
    e->bits[value] = bits & lilac_simt_type_mask((lilac_simt_type)e->kernel->values[value].type);
}

void lilac_simt_evaluation_forget(lilac_simt_evaluation *e, uint32_t mark) {
    while (e->seen_count > mark) {
        e->state[e->seen[--e->seen_count]] = UNSEEN;
    }
}

void lilac_simt_evaluation_reset(lilac_simt_evaluation *e) {
    lilac_simt_evaluation_forget(e, 0);
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

/* Result number k of a load from known memory that no predicate turns off. */
static bool loaded(lilac_simt_evaluation *e, const lilac_simt_instruction *i, uint32_t k,
                   uint32_t depth, uint64_t *bits) {
    const uint32_t width = lilac_simt_type_bits((lilac_simt_type)e->kernel->values[i->result].type);
    const uint64_t bytes = width / 8;
    const bool guarded =
        i->operand_count > 1 && e->kernel->values[i->operands[1]].type == LILAC_SIMT_I1;
    if (e->memory_count == 0 || width % 8 != 0 || !evaluate(e, i->operands[0], depth) ||
        (guarded && (!evaluate(e, i->operands[1], depth) || e->bits[i->operands[1]] == 0))) {
        return false;
    }
    const uint64_t address = e->bits[i->operands[0]] + (uint64_t)i->immediate + k * bytes;
    for (uint32_t m = 0; m < e->memory_count; m++) {
        const lilac_simt_known_memory *memory = &e->memory[m];
        const uint64_t offset = address - memory->address;
        if (offset < memory->length && bytes <= memory->length - offset) {
            *bits = 0;
            memcpy(bits, memory->bytes + offset, (size_t)bytes);
            return true;
        }
    }
    return false;
}

static const lilac_simt_instruction *
find_store(const lilac_simt_body *body, const lilac_simt_instruction *load, uint32_t *count) {
    const lilac_simt_instruction *found = NULL;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (i->code == LILAC_SIMT_OP_ST_SHARED && i->operands[0] == load->operands[0] &&
            i->immediate == load->immediate) {
            found = i;
            ++*count;
        }
        for (uint32_t b = 0; b < i->body_count; b++) {
            const lilac_simt_instruction *inner = find_store(i->bodies[b], load, count);
            found = inner != NULL ? inner : found;
        }
    }
    return found;
}

/* What one warp program passes to another: a load from shared memory of a value that only one
 * instruction stores there, outside of loops. */
static bool passed(lilac_simt_evaluation *e, const lilac_simt_instruction *i, uint32_t depth,
                   uint64_t *bits) {
    uint32_t count = 0;
    const lilac_simt_body *body = i->parent;
    while (body->parent != NULL && body->parent->code != LILAC_SIMT_OP_PROGRAMS) {
        body = body->parent->parent;
    }
    if (i->result_count != 1 || body->parent == NULL) {
        return false;
    }
    const lilac_simt_instruction *store = find_store(e->kernel->body, i, &count);
    if (count != 1 || store->parent == i->parent || store->parent->parent == NULL ||
        store->parent->parent->code != LILAC_SIMT_OP_PROGRAMS) {
        return false;
    }
    const lilac_simt_value value = store->operands[store->operand_count - 1];
    if (e->kernel->values[value].type != e->kernel->values[i->result].type ||
        !evaluate(e, value, depth)) {
        return false;
    }
    *bits = e->bits[value];
    return true;
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
        *bits = e->thread;
        return e->thread_known;
    case LILAC_SIMT_OP_LANE:
        *bits = e->thread % e->kernel->module->arch->warp_size;
        return e->thread_known;
    case LILAC_SIMT_OP_WARP:
        *bits = e->thread / e->kernel->module->arch->warp_size;
        return e->thread_known;
    case LILAC_SIMT_OP_LD_SHARED:
        return passed(e, i, depth, bits);
    case LILAC_SIMT_OP_CTA:
    case LILAC_SIMT_OP_SHARED_BASE:
        *bits = 0;
        return e->thread_known;
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
        note(e, value, NOT_KNOWN); /* also while its operands are evaluated */
        if (i != NULL && depth < MOST_DEPTH &&
            (i->code == LILAC_SIMT_OP_LD_GLOBAL
                 ? loaded(e, i, value - i->result, depth + 1, &bits)
                 : i->result == value && definition(e, i, depth + 1, &bits))) {
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
