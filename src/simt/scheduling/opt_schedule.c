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
 * by itself. There only long computations move that depend on no load and no other effect, such as the random
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
 * A body is ordered only if its live words limit the threads of a multiprocessor to less than half and the new
 * order relieves it of an eighth of them or more: elsewhere assemblers generate the same code from both
 * orders. */
#include "internal.h"

#include <string.h>

enum {
    LEAST = 64, /* a body of fewer instructions is not ordered as a whole */
    LONG = 1024 /* at least as many instructions depend on no load; ptxas orders fewer by itself */
};

typedef lilac_simt_instruction instruction;

typedef struct sorter {
    const lilac_simt_kernel *kernel;
    const lilac_simt_body *body;
    bool whole;         /* all pure instructions move, not only those that depend on no load */
    instruction **list; /* the body's instructions */
    uint32_t count;
    uint32_t *place;  /* of values of this body: 1 + the index of their instruction in the list */
    uint32_t *latest; /* of instructions: 1 + the last load that they depend on */
    uint32_t *order, ordered;
    uint32_t *stack;
    uint8_t *placed; /* of instructions */
    uint8_t *alive;  /* of values */
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
                     (s->whole || !s->kernel->values[i->result].uniform);
        s->latest[at] = loads ? at + 1 : latest;
    }
}

static bool is_movable(const sorter *s, uint32_t at) {
    return is_pure(s->list[at]) && (s->whole || s->latest[at] == 0);
}

/* Places the instructions before an instruction with bodies, which may use all of their results. */
static void put_all_before(sorter *s, uint32_t end) {
    for (uint32_t at = 0; at < end; at++) {
        if (!s->placed[at]) {
            put(s, at);
        }
    }
}

/* After dead code elimination every value is needed by an effect. */
static bool put_in_order(sorter *s) {
    const instruction *end = s->list[s->count - 1];
    for (uint32_t at = 0; at < s->count; at++) {
        const instruction *i = s->list[at];
        if (is_movable(s, at)) {
            continue;
        }
        if (i->body_count > 0) {
            put_all_before(s, at);
        }
        for (uint32_t k = 0;
             s->whole && i->code == LILAC_SIMT_OP_ST_GLOBAL && k < end->operand_count; k++) {
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

static bool is_worthwhile(sorter *s) {
    const lilac_arch *arch = s->kernel->module->arch;
    uint32_t movable = 0;
    uint32_t before = most_words(s, NULL);
    if (before * arch->resident_warps * arch->warp_size <= 2 * arch->registers) {
        return false;
    }
    find_latest_loads(s);
    for (uint32_t at = 0; at < s->count; at++) {
        movable += is_movable(s, at);
    }
    return (s->whole || movable >= LONG) && put_in_order(s) &&
           8 * most_words(s, s->order) <= 7 * before;
}

static bool sort(lilac_simt_kernel *kernel, lilac_simt_body *body, uint32_t count, bool whole) {
    size_t words = (size_t)count * 4 + kernel->value_count;
    uint32_t *memory = lilac_heap_grow(NULL, sizeof *memory * words);
    uint8_t *bytes = lilac_heap_grow(NULL, (size_t)count + kernel->value_count);
    memset(memory, 0, sizeof *memory * words);
    memset(bytes, 0, (size_t)count + kernel->value_count);
    sorter s = {.kernel = kernel,
                .body = body,
                .whole = whole,
                .list = lilac_heap_grow(NULL, sizeof *s.list * count),
                .place = memory,
                .latest = memory + kernel->value_count,
                .order = memory + kernel->value_count + count,
                .stack = memory + kernel->value_count + 2 * (size_t)count,
                .placed = bytes,
                .alive = bytes + count};
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
    bool whole = is_plain(body, &count);
    return (count >= (whole ? LEAST : LONG) && sort(kernel, body, count, whole)) || changed;
}

bool lilac_simt_opt_schedule(lilac_simt_kernel *kernel) {
    return order_body(kernel, kernel->body);
}
