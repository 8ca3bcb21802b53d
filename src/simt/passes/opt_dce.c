/* Dead code elimination: removes instructions whose results no effect needs.
 *
 *     %0 = ld.shared [%s] : f32                     (no use)
 *     %1, %2 = loop … (%a = %x, %b = %y) : … {  →   %1 = loop … (%a = %x) : … {
 *       %3 = add %b, %c : i32                         yield %a
 *       yield %a, %3                                }
 *     }
 *     st.shared [%s], (%1)                          st.shared [%s], (%1)
 *
 * The roots are stores, barriers, asserts, volatile reads and while loops, which may not end. From
 * them liveness flows to operands. Through a loop it flows by carried value: a carried value is
 * live if its result or its argument is, and then its initial value and its next value are. A loop
 * or if is live if its bodies have a root or one of its results is live. Instructions that are not
 * live are unlinked, and dead carried values are removed, which renumbers the results of the loop. */
#include "internal.h"

#include <string.h>

typedef struct sweeper {
    lilac_simt_kernel *kernel;
    uint8_t *alive; /* of each value */
    lilac_simt_value *work;
    uint32_t work_count;
    lilac_simt_value *replacement; /* renumbered values; 0: itself */
    uint32_t count;                /* of values before the pass */
    bool changed;
} sweeper;

typedef lilac_simt_instruction instruction;

/* ---- marking ---------------------------------------------------------------------------- */

static void need(sweeper *s, lilac_simt_value value) {
    if (!s->alive[value]) {
        s->alive[value] = 1;
        s->work[s->work_count++] = value;
    }
}

static void need_operand(sweeper *s, const instruction *i, uint32_t index) {
    if (i != NULL && index < i->operand_count) {
        need(s, i->operands[index]);
    }
}

/* The instruction stays: its operands are needed; of structured ones what steers them. */
static void keep(sweeper *s, instruction *i) {
    if (i->mark != 0) {
        return;
    }
    i->mark = 1;
    uint32_t count = i->code == LILAC_SIMT_OP_LOOP    ? 3
                     : i->code == LILAC_SIMT_OP_IF    ? 1
                     : i->code == LILAC_SIMT_OP_WHILE ? 0
                                                      : i->operand_count;
    for (uint32_t k = 0; k < count; k++) {
        need_operand(s, i, k);
    }
    if (i->code == LILAC_SIMT_OP_WHILE) {
        need_operand(s, i->bodies[0]->last, 0);
    }
}

static void need_loop_slot(sweeper *s, instruction *loop, uint32_t slot) {
    need(s, loop->bodies[0]->argument + 1 + slot);
    need(s, loop->result + slot);
    need_operand(s, loop, 3 + slot);
    need_operand(s, loop->bodies[0]->last, slot);
}

static void need_carried_slot(sweeper *s, instruction *loop, uint32_t slot) {
    need(s, loop->bodies[0]->argument + slot);
    need_operand(s, loop, slot);
    need_operand(s, loop->bodies[1]->last, slot);
}

static void need_passed_slot(sweeper *s, instruction *loop, uint32_t slot) {
    need(s, loop->result + slot);
    need(s, loop->bodies[1]->argument + slot);
    need_operand(s, loop->bodies[0]->last, 1 + slot);
}

static void follow(sweeper *s, lilac_simt_value value) {
    const lilac_simt_value_info *info = &s->kernel->values[value];
    instruction *owner = info->definition;
    if (owner == NULL) { /* an argument */
        owner = info->body->parent;
        uint32_t index = value - info->body->argument;
        keep(s, owner);
        if (owner->code == LILAC_SIMT_OP_LOOP && index > 0) {
            need_loop_slot(s, owner, index - 1);
        } else if (owner->code == LILAC_SIMT_OP_WHILE) {
            if (info->body == owner->bodies[0]) {
                need_carried_slot(s, owner, index);
            } else {
                need_passed_slot(s, owner, index);
            }
        }
        return;
    }
    uint32_t index = value - owner->result;
    keep(s, owner);
    if (owner->code == LILAC_SIMT_OP_LOOP) {
        need_loop_slot(s, owner, index);
    } else if (owner->code == LILAC_SIMT_OP_WHILE) {
        need_passed_slot(s, owner, index);
    } else if (owner->code == LILAC_SIMT_OP_IF) {
        need_operand(s, owner->bodies[0]->last, index);
        need_operand(s, owner->bodies[1]->last, index);
    }
}

/* Keeps the roots of a body; true when there are any. */
static bool keep_roots(sweeper *s, lilac_simt_body *body) {
    bool any = false;
    for (instruction *i = body->first; i != NULL; i = i->next) {
        bool root = lilac_simt_has_trait(i->code, LILAC_SIMT_WRITES | LILAC_SIMT_SYNC) ||
                    i->code == LILAC_SIMT_OP_WHILE || (i->flags & LILAC_SIMT_VOLATILE) != 0;
        for (uint32_t k = 0; k < i->body_count; k++) {
            root |= keep_roots(s, i->bodies[k]);
        }
        if (root) {
            keep(s, i);
        }
        any |= root;
    }
    return any;
}

/* ---- sweeping --------------------------------------------------------------------------- */

/* Takes the dead ones out of `count` consecutive values; alive[k] of the first `fixed` is ignored.
 * Returns the first of the new row, whose owner sets the links. */
static lilac_simt_value compact_values(sweeper *s, lilac_simt_value first, uint32_t *count,
                                       uint32_t fixed) {
    lilac_simt_kernel *kernel = s->kernel;
    lilac_simt_value_info like = kernel->values[first];
    lilac_simt_value new_first = 0;
    uint32_t kept = 0;
    for (uint32_t k = 0; k < *count; k++) {
        if (k >= fixed && !s->alive[first + k]) {
            continue;
        }
        lilac_simt_type type = (lilac_simt_type)kernel->values[first + k].type;
        lilac_simt_value value =
            lilac_simt_new_values(kernel, 1, &type, like.definition, like.body);
        kernel->values[value].uniform = kernel->values[first + k].uniform;
        kernel->values[value].marked = kernel->values[first + k].marked;
        kernel->values[value].name = kernel->values[first + k].name;
        s->replacement[first + k] = value;
        new_first = kept == 0 ? value : new_first;
        kept++;
    }
    *count = kept;
    return new_first;
}

static uint32_t dead_among(const sweeper *s, lilac_simt_value first, uint32_t count) {
    uint32_t dead = 0;
    for (uint32_t k = 0; k < count; k++) {
        dead += !s->alive[first + k];
    }
    return dead;
}

/* Takes out operands[skip + k] where value first + k is dead. */
static void compact_operands(const sweeper *s, instruction *i, uint32_t skip,
                             lilac_simt_value first) {
    uint32_t kept = skip;
    for (uint32_t k = skip; k < i->operand_count; k++) {
        if (s->alive[first + k - skip]) {
            i->operands[kept++] = i->operands[k];
        }
    }
    i->operand_count = (uint16_t)kept;
}

static void compact_results(sweeper *s, instruction *i) {
    uint32_t count = i->result_count;
    i->result = compact_values(s, i->result, &count, 0);
    i->result_count = (uint16_t)count;
}

/* Takes dead slots out of a structured operation that stays. */
static void compact_slots(sweeper *s, instruction *i) {
    if (i->code == LILAC_SIMT_OP_WHILE) {
        lilac_simt_body *before = i->bodies[0];
        lilac_simt_body *after = i->bodies[1];
        if (dead_among(s, before->argument, before->argument_count) > 0) {
            compact_operands(s, i, 0, before->argument);
            compact_operands(s, after->last, 0, before->argument);
            before->argument = compact_values(s, before->argument, &before->argument_count, 0);
            s->changed = true;
        }
        if (dead_among(s, i->result, i->result_count) > 0) {
            compact_operands(s, before->last, 1, i->result);
            after->argument = compact_values(s, after->argument, &after->argument_count, 0);
            compact_results(s, i);
            s->changed = true;
        }
        return;
    }
    if (dead_among(s, i->result, i->result_count) == 0) {
        return;
    }
    lilac_simt_body *body = i->bodies[0];
    if (i->code == LILAC_SIMT_OP_LOOP) {
        compact_operands(s, i, 3, i->result);
        compact_operands(s, body->last, 0, i->result);
        body->argument = compact_values(s, body->argument, &body->argument_count, 1);
    } else {
        compact_operands(s, body->last, 0, i->result);
        compact_operands(s, i->bodies[1]->last, 0, i->result);
    }
    compact_results(s, i);
    s->changed = true;
}

static bool stays(const sweeper *s, const instruction *i) {
    return i->mark != 0 || lilac_simt_has_trait(i->code, LILAC_SIMT_TERMINATOR) ||
           dead_among(s, i->result, i->result_count) < i->result_count;
}

static void sweep(sweeper *s, lilac_simt_body *body) {
    instruction *next;
    for (instruction *i = body->first; i != NULL; i = next) {
        next = i->next;
        if (!stays(s, i)) {
            lilac_simt_unlink(i);
            s->changed = true;
            continue;
        }
        i->mark = 0;
        if (lilac_simt_is_atomic(i->code) && i->result_count > 0 &&
            dead_among(s, i->result, i->result_count) == i->result_count) {
            i->result_count = 0; /* then it need not wait for what was there */
            i->result = 0;
            s->changed = true;
        }
        for (uint32_t k = 0; k < i->operand_count; k++) {
            lilac_simt_value value = s->replacement[i->operands[k]];
            i->operands[k] = value != 0 ? value : i->operands[k];
        }
        if (i->body_count > 0) {
            compact_slots(s, i);
            for (uint32_t k = 0; k < i->body_count; k++) {
                sweep(s, i->bodies[k]);
            }
        }
    }
}

bool lilac_simt_opt_dce(lilac_simt_kernel *kernel) {
    uint32_t count = kernel->value_count;
    size_t size = (sizeof(lilac_simt_value) * 2 + 1) * (size_t)count;
    lilac_simt_value *memory = lilac_heap_grow(NULL, size);
    memset(memory, 0, size);
    sweeper s = {.kernel = kernel, .work = memory, .replacement = memory + count, .count = count};
    s.alive = (uint8_t *)(memory + 2 * (size_t)count);
    keep_roots(&s, kernel->body);
    while (s.work_count > 0) {
        follow(&s, s.work[--s.work_count]);
    }
    sweep(&s, kernel->body);
    lilac_heap_free(memory);
    return s.changed;
}
