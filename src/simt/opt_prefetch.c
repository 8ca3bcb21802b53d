/* Loads one iteration ahead: in a loop that keeps the block in step, the next iteration's loads are
 * issued before this one's barriers.
 *
 *     loop %i = %a to %b step %s {            %v0 = ld.global [%p + %a], %a < %b
 *       %v = ld.global [%p + %i]              loop %i = %a to %b step %s (%v = %v0) {
 *       … %v …                           →      %w = ld.global [%p + (%i + %s)], %b - %i > %s
 *       barrier                                 … %v …
 *       …                                       barrier
 *     }                                         …
 *                                               yield %w
 *                                             }
 *
 * Without it every warp of the block waits for memory at the same time and memory waits while they
 * reduce: a barrier in the loop is what makes other warps' loads no help. With it there is always
 * an iteration's worth on its way. The price is a register for each word that is loaded.
 *
 * A loop is changed when
 *   - it has no loop in it, and a barrier of the block or of a group of warps;
 *   - nothing in it writes to global memory, asserts, or orders memory beyond the block's shared
 *     part, so that a load may stand in front of all that came between;
 *   - every load in it has an address, predicate and replacements that follow from the counter and
 *     what is outside, by pure operations that cannot trap;
 *   - the words loaded are few (MOST_WORDS), and so are the operations that lead to them, for they
 *     may be needed twice.
 *
 * The counter of the next iteration may wrap behind the last one; whether there is a next one is
 * therefore asked as upper - counter > step on unsigned numbers, which is exact, as counter < upper
 * and step > 0. */
#include "internal.h"

#include <string.h>

enum {
    MOST_WORDS = 16,      /* that are on their way, of a thread */
    MOST_OPERATIONS = 16, /* for each load, that lead to it */
};

typedef lilac_simt_instruction instruction;

typedef struct fetcher {
    lilac_simt_kernel *kernel;
    lilac_simt_value *replacement; /* of values of a loop that was written anew; 0: itself */
    lilac_simt_value *clone;       /* of what leads to loads, in the copy at hand */
    uint8_t *ahead;                /* of each value of the body: can it be computed ahead? */
    uint32_t count;                /* of values before the pass */
    bool changed;
} fetcher;

/* ---- which loops ------------------------------------------------------------------------ */

/* May a load move from behind this instruction to its front? */
static bool lets_pass(const instruction *i) {
    switch (i->code) {
    case LILAC_SIMT_OP_BARRIER:
    case LILAC_SIMT_OP_GROUP_BARRIER:
    case LILAC_SIMT_OP_WARP_BARRIER:
        return (i->flags & LILAC_SIMT_SHARED_ONLY) != 0;
    case LILAC_SIMT_OP_LD_GLOBAL:
        return (i->flags & LILAC_SIMT_VOLATILE) == 0 && i->cache != LILAC_SIMT_CACHE_CV;
    case LILAC_SIMT_OP_ST_SHARED:
    case LILAC_SIMT_OP_ST_MATRIX:
    case LILAC_SIMT_OP_ATOMIC_SHARED:
        return i->order == LILAC_SIMT_RELAXED;
    default:
        return !lilac_simt_has_trait(i->code, LILAC_SIMT_WRITES | LILAC_SIMT_SYNC);
    }
}

/* All of a body, with what is in its ifs; *barrier: one that other warps wait at. */
static bool all_let_pass(const lilac_simt_body *body, bool *barrier) {
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        if (!lets_pass(i) || i->code == LILAC_SIMT_OP_LOOP || i->code == LILAC_SIMT_OP_WHILE) {
            return false;
        }
        *barrier |= i->code == LILAC_SIMT_OP_BARRIER || i->code == LILAC_SIMT_OP_GROUP_BARRIER;
        for (uint32_t k = 0; k < i->body_count; k++) {
            if (!all_let_pass(i->bodies[k], barrier)) {
                return false;
            }
        }
    }
    return true;
}

static bool has_load(const lilac_simt_body *body) {
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        if (i->code == LILAC_SIMT_OP_LD_GLOBAL) {
            return true;
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            if (has_load(i->bodies[k])) {
                return true;
            }
        }
    }
    return false;
}

static bool operands_ahead(const fetcher *f, const instruction *i) {
    for (uint32_t k = 0; k < i->operand_count; k++) {
        lilac_simt_value v = i->operands[k];
        if (f->kernel->values[v].body == i->parent && !f->ahead[v]) {
            return false;
        }
    }
    return true;
}

static bool can_be_ahead(const fetcher *f, const instruction *i) {
    return lilac_simt_has_trait(i->code, LILAC_SIMT_PURE) && i->code != LILAC_SIMT_OP_ASM &&
           i->result_count > 0 && !lilac_simt_may_trap(f->kernel, i) && operands_ahead(f, i);
}

static void need_operands(const fetcher *f, const instruction *i) {
    for (uint32_t k = 0; k < i->operand_count; k++) {
        const lilac_simt_value_info *value = &f->kernel->values[i->operands[k]];
        if (value->body == i->parent && value->definition != NULL) {
            value->definition->mark = 1;
        }
    }
}

static void forget_marks(const lilac_simt_body *body) {
    for (instruction *i = body->first; i != NULL; i = i->next) {
        i->mark = 0;
    }
}

static uint32_t words_of(const lilac_simt_kernel *kernel, const instruction *load) {
    lilac_simt_type type = (lilac_simt_type)kernel->values[load->result].type;
    return load->result_count * ((lilac_simt_type_widths[type] + 31u) / 32u);
}

/* Marks the loads of a body and what leads to them. False, with no marks left, when there are none
 * or one of them must stay. */
static bool mark_loads(fetcher *f, const lilac_simt_body *body) {
    uint32_t loads = 0, words = 0, operations = 0;
    bool good = true;
    f->ahead[body->argument] = 1;
    for (instruction *i = body->first; i != NULL && good; i = i->next) {
        if (i->code == LILAC_SIMT_OP_LD_GLOBAL) {
            good = operands_ahead(f, i);
            i->mark = 1;
            loads++;
            words += words_of(f->kernel, i);
        } else if (can_be_ahead(f, i)) {
            memset(f->ahead + i->result, 1, i->result_count);
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            good &= !has_load(i->bodies[k]);
        }
    }
    if (good && loads > 0 && words <= MOST_WORDS) {
        for (instruction *i = body->last; i != NULL; i = i->previous) {
            if (i->mark) {
                need_operands(f, i);
                operations += i->code != LILAC_SIMT_OP_LD_GLOBAL;
            }
        }
        if (operations <= MOST_OPERATIONS * loads) {
            return true;
        }
    }
    forget_marks(body);
    return false;
}

/* ---- writing them anew ------------------------------------------------------------------ */

static lilac_simt_value build(fetcher *f, instruction *where, lilac_simt_opcode code,
                              uint8_t detail, lilac_simt_type type, lilac_simt_value a,
                              lilac_simt_value b) {
    const instruction like = {
        .code = (uint16_t)code, .detail = detail, .location = where->location};
    instruction *made = lilac_simt_new_instruction(f->kernel, &like, 2, (lilac_simt_value[]){a, b});
    lilac_simt_link(where->parent, where, made);
    lilac_simt_give_results(f->kernel, made, 1, &type);
    return made->result;
}

static lilac_simt_type type_of(const fetcher *f, lilac_simt_value value) {
    return (lilac_simt_type)f->kernel->values[value].type;
}

/* A copy of a marked instruction in front of `where`; a load's also asks `predicate`. */
static void copy(fetcher *f, const instruction *i, instruction *where, lilac_simt_value predicate) {
    lilac_simt_kernel *kernel = f->kernel;
    lilac_arena *arena = kernel->module->arena;
    lilac_simt_value *operands = lilac_arena_array(arena, lilac_simt_value, i->operand_count + 1u);
    lilac_simt_type *types = lilac_arena_array(arena, lilac_simt_type, i->result_count);
    uint32_t count = i->operand_count;
    for (uint32_t k = 0; k < count; k++) {
        lilac_simt_value v = i->operands[k];
        operands[k] = kernel->values[v].body == i->parent ? f->clone[v] : v;
    }
    for (uint32_t k = 0; k < i->result_count; k++) {
        types[k] = type_of(f, i->result + k);
    }
    if (i->code == LILAC_SIMT_OP_LD_GLOBAL) {
        operands[1] =
            count > 1 ? build(f, where, LILAC_SIMT_OP_AND, 0, LILAC_SIMT_I1, operands[1], predicate)
                      : predicate;
        count += count == 1;
    }
    instruction *made = lilac_simt_new_instruction(kernel, i, count, operands);
    lilac_simt_link(where->parent, where, made);
    lilac_simt_give_results(kernel, made, i->result_count, types);
    for (uint32_t k = 0; k < i->result_count; k++) {
        kernel->values[made->result + k].name = kernel->values[i->result + k].name;
        f->clone[i->result + k] = made->result + k;
    }
}

/* Copies of all marked instructions with this counter; what the loads give goes to `loaded`. */
static void copy_all(fetcher *f, const lilac_simt_body *body, instruction *where,
                     lilac_simt_value counter, lilac_simt_value predicate,
                     lilac_simt_value *loaded) {
    f->clone[body->argument] = counter;
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        if (!i->mark) {
            continue;
        }
        copy(f, i, where, predicate);
        for (uint32_t k = 0; i->code == LILAC_SIMT_OP_LD_GLOBAL && k < i->result_count; k++) {
            *loaded++ = f->clone[i->result + k];
        }
    }
}

/* More operands at the end. */
static void extend(fetcher *f, instruction *i, uint32_t count, const lilac_simt_value *values) {
    lilac_simt_value *all =
        lilac_arena_array(f->kernel->module->arena, lilac_simt_value, i->operand_count + count);
    memcpy(all, i->operands, sizeof *all * i->operand_count);
    memcpy(all + i->operand_count, values, sizeof *all * count);
    i->operands = all;
    i->operand_count = (uint16_t)(i->operand_count + count);
}

/* New values for `count` old ones and those in `more` behind them. */
static lilac_simt_value renew(fetcher *f, lilac_simt_value first, uint32_t count, uint32_t more,
                              const lilac_simt_value *like, instruction *definition,
                              lilac_simt_body *body) {
    lilac_simt_kernel *kernel = f->kernel;
    lilac_simt_type *types =
        lilac_arena_array(kernel->module->arena, lilac_simt_type, count + more);
    for (uint32_t k = 0; k < count + more; k++) {
        types[k] = type_of(f, k < count ? first + k : like[k - count]);
    }
    lilac_simt_value made = lilac_simt_new_values(kernel, count + more, types, definition, body);
    for (uint32_t k = 0; k < count + more; k++) {
        lilac_simt_value old = k < count ? first + k : like[k - count];
        kernel->values[made + k].name = kernel->values[old].name;
        if (k < count) {
            kernel->values[made + k].marked = kernel->values[old].marked;
            f->replacement[old] = made + k;
        }
    }
    return made;
}

static void fetch_ahead(fetcher *f, instruction *loop) {
    lilac_simt_body *body = loop->bodies[0];
    lilac_simt_value lower = loop->operands[0], upper = loop->operands[1], step = loop->operands[2],
                     counter = body->argument;
    lilac_simt_type type = type_of(f, counter);
    uint32_t count = 0;
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        count += i->mark && i->code == LILAC_SIMT_OP_LD_GLOBAL ? i->result_count : 0;
    }
    lilac_simt_value *first = lilac_arena_array(f->kernel->module->arena, lilac_simt_value, count);
    lilac_simt_value *next = lilac_arena_array(f->kernel->module->arena, lilac_simt_value, count);

    lilac_simt_value any =
        build(f, loop, LILAC_SIMT_OP_CMP, LILAC_SIMT_LT, LILAC_SIMT_I1, lower, upper);
    copy_all(f, body, loop, lower, any, first);

    instruction *head = body->first;
    lilac_simt_value left = build(f, head, LILAC_SIMT_OP_SUB, 0, type, upper, counter);
    lilac_simt_value more =
        build(f, head, LILAC_SIMT_OP_CMP, LILAC_SIMT_UGT, LILAC_SIMT_I1, left, step);
    lilac_simt_value then = build(f, head, LILAC_SIMT_OP_ADD, 0, type, counter, step);
    /* What copy_all puts in front of `head` has no marks: the walk starts behind it. */
    lilac_simt_body old = {.argument = body->argument, .first = head};
    copy_all(f, &old, head, then, more, next);

    uint32_t carried = loop->result_count;
    extend(f, loop, count, first);
    extend(f, body->last, count, next);
    lilac_simt_value arguments = renew(f, body->argument, carried + 1, count, first, NULL, body);
    body->argument = arguments;
    body->argument_count += count;
    loop->result = renew(f, loop->result, carried, count, first, loop, loop->parent);
    loop->result_count = (uint16_t)(carried + count);

    lilac_simt_value argument = arguments + 1 + carried;
    instruction *following;
    for (instruction *i = head; i != NULL; i = following) {
        following = i->next;
        if (i->mark && i->code == LILAC_SIMT_OP_LD_GLOBAL) {
            for (uint32_t k = 0; k < i->result_count; k++) {
                f->replacement[i->result + k] = argument++;
            }
            lilac_simt_unlink(i);
        }
        i->mark = 0;
    }
    f->changed = true;
}

static void visit(fetcher *f, lilac_simt_body *body) {
    for (instruction *i = body->first; i != NULL; i = i->next) {
        bool barrier = false;
        if (i->code == LILAC_SIMT_OP_LOOP && all_let_pass(i->bodies[0], &barrier) && barrier) {
            if (mark_loads(f, i->bodies[0])) {
                fetch_ahead(f, i);
            }
            continue; /* no loop in it */
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            visit(f, i->bodies[k]);
        }
    }
}

static void replace(const fetcher *f, lilac_simt_body *body) {
    for (instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->operand_count; k++) {
            lilac_simt_value v = i->operands[k];
            if (v < f->count && f->replacement[v] != 0) {
                i->operands[k] = f->replacement[v];
            }
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            replace(f, i->bodies[k]);
        }
    }
}

bool lilac_simt_opt_prefetch(lilac_simt_kernel *kernel) {
    uint32_t count = kernel->value_count;
    size_t size = (2 * sizeof(lilac_simt_value) + 1) * (size_t)count;
    lilac_simt_value *memory = lilac_heap_grow(NULL, size);
    memset(memory, 0, size);
    fetcher f = {.kernel = kernel,
                 .replacement = memory,
                 .clone = memory + count,
                 .ahead = (uint8_t *)(memory + 2 * (size_t)count),
                 .count = count};
    visit(&f, kernel->body);
    if (f.changed) {
        replace(&f, kernel->body);
        lilac_simt_infer_uniform(kernel);
    }
    lilac_heap_free(memory);
    return f.changed;
}
