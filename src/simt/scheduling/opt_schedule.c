/* Order of instructions: element by element, not operation by operation.
 *
 * The lowering emits each operation for all registers of a tensor before the next operation:
 *
 *     %a = ld   %b = ld                        %a = ld   %b = ld
 *     %c = f %a   %d = f %b                    %c = f %a   %e = g %c   %s = fadd %x, %e
 *     %e = g %c   %f = g %d             →      st %e
 *     %s = fadd %x, %e   %t = fadd %y, %f      %d = f %b   %f = g %d   %t = fadd %y, %f
 *     st %e   st %f                            st %f
 *     yield %s, %t                             yield %s, %t
 *
 * Assemblers start from the order of the text. In the right order fewer values are live at the
 * same time, so the code needs fewer registers. Instructions with an effect, among them loads, keep their
 * order. Each instruction follows its operands, placed depth first.
 *
 * Bodies of loops that consist of pure instructions and of loads and stores of global memory are ordered as a
 * whole. A carried value is placed before the first store that depends on loads at least as late as its own;
 * other carried values are placed at the end, in order.
 *
 * In all other bodies the lowering chose the order of reductions and exchanges, and an assembler delays loads
 * by itself, within limits. If a body's live words exceed the registers of a thread, its loads of global memory
 * are placed in front of their first use, together with what only computes their addresses, but not behind a
 * write of global memory, a barrier or an instruction with bodies:
 *
 *     %a = ld   %b = ld   %c = ld              %a = ld   %b = ld   %s = fadd %a, %b
 *     %s = fadd %a, %b                   →     %c = ld   %t = fadd %s, %c
 *     %t = fadd %s, %c
 *
 * ptxas moves them up again as far as registers allow; in the other direction it gives up, and spills. Bodies
 * with asynchronous copies or matrix products stay as they are.
 *
 * Otherwise only long computations move that depend on no load and no other effect, such as the random
 * numbers of dropout. Their operations are placed where the first result is used:
 *
 *     %p = round %i   %q = round %j            %x = ld   %y = ld
 *     %r = round %p   %s = round %q     →      %p = round %i   %r = round %p   %c = fmul %x, %r
 *     %x = ld   %y = ld                        %q = round %j   %s = round %q   %d = fmul %y, %s
 *     %c = fmul %x, %r   %d = fmul %y, %s
 *
 * Values that are uniform, such as the seed, do not count as loaded. An instruction with bodies stays behind
 * all instructions that precede it.
 *
 * A body is ordered only if its live words limit the threads of a multiprocessor to less than half (for loads:
 * if they exceed the registers of a thread) and the new order relieves it of an eighth of them or more: elsewhere
 * assemblers generate the same code from both orders. */
#include "internal.h"

#include <lilac/occupancy.h>

#include <string.h>

enum {
    LEAST = 64, /* a body of fewer instructions is not ordered as a whole, nor are its loads */
    LONG = 1024 /* at least as many instructions depend on no load; ptxas orders fewer by itself */
};

typedef lilac_simt_instruction instruction;

/* What moves. */
typedef enum movement { WHOLE, LOADS, COMPUTATIONS } movement;

typedef struct sorter {
    const lilac_simt_kernel *kernel;
    const lilac_simt_body *body;
    movement mode;
    instruction **list; /* the body's instructions */
    uint32_t count;
    uint32_t *place;  /* of values of this body: 1 + the index of their instruction in the list */
    uint32_t *latest; /* of instructions: 1 + the last load that they depend on */
    uint32_t *order, ordered;
    uint32_t *stack;
    uint8_t *placed, *movable; /* of instructions */
    uint8_t *alive;            /* of values */
} sorter;

static bool is_pure(const instruction *i) {
    return lilac_simt_has_trait(i->code, LILAC_SIMT_PURE) && i->result_count > 0;
}

static bool is_effect(const instruction *i) {
    return i->code == LILAC_SIMT_OP_LD_GLOBAL || i->code == LILAC_SIMT_OP_ST_GLOBAL ||
           (i->next == NULL && lilac_simt_has_trait(i->code, LILAC_SIMT_TERMINATOR));
}

/* Counts the instructions of the body. Returns whether it can be ordered as a whole. */
static bool is_plain(const lilac_simt_body *body, uint32_t *count) {
    bool plain = body->parent != NULL && body->parent->code == LILAC_SIMT_OP_LOOP;
    *count = 0;
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        plain &= i->body_count == 0 && (is_pure(i) || is_effect(i));
        (*count)++;
    }
    return plain;
}

/* Has the body, or one inside it, asynchronous copies or products of matrices? */
static bool has_products(const lilac_simt_body *body) {
    bool found = false;
    for (const instruction *i = body->first; i != NULL && !found; i = i->next) {
        found =
            lilac_simt_has_trait(i->code, LILAC_SIMT_ASYNCHRONOUS) || i->code == LILAC_SIMT_OP_MMA;
        for (uint32_t k = 0; k < i->body_count; k++) {
            found |= has_products(i->bodies[k]);
        }
    }
    return found;
}

/* 1 + the index of the instruction that defines operand k, if that is in this body and not placed. */
static uint32_t pending(const sorter *s, lilac_simt_value v) {
    uint32_t at = s->place[v];
    return at != 0 && !s->placed[at - 1] ? at : 0;
}

static void put(sorter *s, uint32_t wanted) {
    uint32_t depth = 0;
    s->stack[depth++] = wanted;
    while (depth > 0) {
        uint32_t at = s->stack[depth - 1], before = 0;
        const instruction *i = s->list[at];
        for (uint32_t k = 0; k < i->operand_count && before == 0; k++) {
            before = pending(s, i->operands[k]);
        }
        if (before != 0) {
            s->stack[depth++] = before - 1;
            continue;
        }
        depth--;
        s->placed[at] = 1;
        s->order[s->ordered++] = at;
    }
}

static void find_latest_loads(sorter *s) {
    for (uint32_t at = 0; at < s->count; at++) {
        const instruction *i = s->list[at];
        uint32_t latest = 0;
        for (uint32_t k = 0; k < i->operand_count; k++) {
            uint32_t from = s->place[i->operands[k]];
            if (from != 0 && s->latest[from - 1] > latest) {
                latest = s->latest[from - 1];
            }
        }
        bool loads = !is_pure(i) && i->result_count > 0 &&
                     (s->mode == WHOLE || !s->kernel->values[i->result].uniform);
        s->latest[at] = loads ? at + 1 : latest;
    }
}

static bool is_movable_load(const instruction *i) {
    return i->code == LILAC_SIMT_OP_LD_GLOBAL && (i->flags & LILAC_SIMT_VOLATILE) == 0;
}

/* Must loads that precede it stay in front? */
static bool holds_loads(const instruction *i) {
    return i->body_count > 0 || i->next == NULL ||
           lilac_simt_has_trait(i->code, LILAC_SIMT_SYNC | LILAC_SIMT_MBARRIER) ||
           (lilac_simt_has_trait(i->code, LILAC_SIMT_GLOBAL) &&
            lilac_simt_has_trait(i->code, LILAC_SIMT_WRITES));
}

/* Loads, and what only they and other movable instructions need. */
static void find_movable_loads(sorter *s) {
    for (uint32_t at = 0; at < s->count; at++) {
        s->movable[at] = is_movable_load(s->list[at]) || is_pure(s->list[at]);
    }
    for (uint32_t at = s->count; at-- > 0;) { /* users before what they use */
        const instruction *i = s->list[at];
        for (uint32_t k = 0; !s->movable[at] && k < i->operand_count; k++) {
            const uint32_t from = s->place[i->operands[k]];
            if (from != 0) {
                s->movable[from - 1] = is_movable_load(s->list[from - 1]);
            }
        }
    }
}

/* The number of instructions that move, or of loads. */
static uint32_t find_movable(sorter *s) {
    uint32_t movable = 0;
    find_latest_loads(s);
    if (s->mode == LOADS) {
        find_movable_loads(s);
    }
    for (uint32_t at = 0; at < s->count; at++) {
        if (s->mode != LOADS) {
            s->movable[at] = is_pure(s->list[at]) && (s->mode == WHOLE || s->latest[at] == 0);
        }
        movable += s->movable[at] && (s->mode != LOADS || is_movable_load(s->list[at]));
    }
    return movable;
}

/* Places the instructions before an instruction with bodies, which may use all of their results, or the loads
 * that may not move behind an instruction. */
static void put_all_before(sorter *s, uint32_t end, bool loads) {
    for (uint32_t at = 0; at < end; at++) {
        if (!s->placed[at] && (!loads || is_movable_load(s->list[at]))) {
            put(s, at);
        }
    }
}

/* After dead code elimination every value is needed by an effect. */
static bool put_in_order(sorter *s) {
    const instruction *end = s->list[s->count - 1];
    for (uint32_t at = 0; at < s->count; at++) {
        const instruction *i = s->list[at];
        if (s->movable[at]) {
            continue;
        }
        if (i->body_count > 0 || (s->mode == LOADS && holds_loads(i))) {
            put_all_before(s, at, i->body_count == 0);
        }
        for (uint32_t k = 0;
             s->mode == WHOLE && i->code == LILAC_SIMT_OP_ST_GLOBAL && k < end->operand_count;
             k++) {
            uint32_t carried = pending(s, end->operands[k]);
            if (carried != 0 && s->latest[carried - 1] <= s->latest[at]) {
                put(s, carried - 1);
            }
        }
        put(s, at);
    }
    return s->ordered == s->count;
}

static uint32_t words_of(const sorter *s, lilac_simt_value v) {
    const lilac_simt_value_info *value = &s->kernel->values[v];
    bool elsewhere =
        value->type == LILAC_SIMT_I1 || (value->uniform && lilac_simt_type_is_integer(value->type));
    return elsewhere ? 0 : (lilac_simt_type_widths[value->type] + 31u) / 32u;
}

/* The most words of this body's values and arguments that are live at the same time. */
static uint32_t most_words(sorter *s, const uint32_t *order) {
    uint32_t words = 0, most = 0;
    memset(s->alive, 0, s->kernel->value_count);
    for (uint32_t at = s->count; at-- > 0;) {
        const instruction *i = s->list[order != NULL ? order[at] : at];
        for (uint32_t r = 0; r < i->result_count; r++) {
            words -= s->alive[i->result + r] ? words_of(s, i->result + r) : 0;
            s->alive[i->result + r] = 0;
        }
        for (uint32_t k = 0; k < i->operand_count; k++) {
            lilac_simt_value v = i->operands[k];
            if (!s->alive[v] && s->kernel->values[v].body == s->body) {
                s->alive[v] = 1;
                words += words_of(s, v);
            }
        }
        most = words > most ? words : most;
    }
    return most;
}

/* Are more words live than the registers hold, for LOADS of one block, otherwise of half of the threads? */
static bool is_too_much(const sorter *s, uint32_t words) {
    const lilac_arch *arch = s->kernel->module->arch;
    return s->mode == LOADS ? words > lilac_registers_for_blocks(arch, s->kernel->num_warps, 1)
                            : words * arch->resident_warps * arch->warp_size > 2 * arch->registers;
}

static bool is_worthwhile(sorter *s) {
    const uint32_t before = most_words(s, NULL);
    return is_too_much(s, before) && find_movable(s) >= (s->mode == COMPUTATIONS ? LONG : 1) &&
           put_in_order(s) && 8 * most_words(s, s->order) <= 7 * before;
}

static bool sort(lilac_simt_kernel *kernel, lilac_simt_body *body, uint32_t count, movement mode) {
    size_t words = (size_t)count * 4 + kernel->value_count;
    uint32_t *memory = lilac_heap_grow(NULL, sizeof *memory * words);
    const size_t flags = 2 * (size_t)count + kernel->value_count;
    uint8_t *bytes = lilac_heap_grow(NULL, flags);
    memset(memory, 0, sizeof *memory * words);
    memset(bytes, 0, flags);
    sorter s = {.kernel = kernel,
                .body = body,
                .mode = mode,
                .list = lilac_heap_grow(NULL, sizeof *s.list * count),
                .place = memory,
                .latest = memory + kernel->value_count,
                .order = memory + kernel->value_count + count,
                .stack = memory + kernel->value_count + 2 * (size_t)count,
                .placed = bytes,
                .movable = bytes + count,
                .alive = bytes + 2 * (size_t)count};
    for (instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t r = 0; r < i->result_count; r++) {
            s.place[i->result + r] = s.count + 1;
        }
        s.list[s.count++] = i;
    }
    bool better = is_worthwhile(&s);
    for (uint32_t at = 0; better && at + 1 < count; at++) {
        lilac_simt_move(kernel, s.list[s.order[at]], s.list[count - 1]);
    }
    lilac_heap_free(s.list);
    lilac_heap_free(memory);
    lilac_heap_free(bytes);
    return better;
}

static bool order_body(lilac_simt_kernel *kernel, lilac_simt_body *body) {
    bool changed = false;
    for (instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            changed |= order_body(kernel, i->bodies[k]);
        }
    }
    uint32_t count;
    if (is_plain(body, &count)) {
        return (count >= LEAST && sort(kernel, body, count, WHOLE)) || changed;
    }
    changed |= count >= LEAST && !has_products(body) && sort(kernel, body, count, LOADS);
    return (count >= LONG && sort(kernel, body, count, COMPUTATIONS)) || changed;
}

bool lilac_simt_opt_schedule(lilac_simt_kernel *kernel) {
    return order_body(kernel, kernel->body);
}
