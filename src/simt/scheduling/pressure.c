/* Register pressure: an estimate of the registers of a thread, from the most words that are live
 * at the same time.
 *
 * The order of the text is not the order of execution. The lowering emits each operation for all
 * registers of a tensor; an assembler computes a value shortly before its use. So the instructions
 * of each body are ordered first. Instructions with an effect, loads, shuffles and instructions
 * with bodies keep their order; each pure instruction is placed directly before the first of them
 * that needs it, after its operands.
 *
 *     %a = ld  %b = ld                        %a = ld  %b = ld
 *     %c = fcvt %a  %d = fcvt %b        →     %c = fcvt %a
 *     %e = fadd %c, %x  %f = fadd %d, %x      %e = fadd %c, %x
 *     st %e  st %f                            st %e
 *                                             %d = fcvt %b …
 *
 * Loads whose address does not depend on the block (weights, tables) usually hit the second-level
 * cache, so an assembler may issue them late at no cost. If the caller asks for that, such loads
 * are placed as pure instructions are, but never past a barrier, a loop or the next row of stores.
 *
 * A value that several instructions need is live until the last of them. Where each of two sums of a
 * tree needs the differences that the other one has computed (Welford's algorithm), the first sum
 * would leave all of them. If the caller asks for that, an instruction is placed as soon as its
 * operands are there and those that it uses last have the registers of its results.
 *
 * The order of the text is of use, too: an assembler does not always find the better one, so the
 * larger of both estimates bounds the spills of a limit.
 *
 * One backward walk over this order counts live words. A value takes the words of its type. These
 * take none: constants, parameters (constant bank), uniform integers (uniform registers), and
 * values that are another name of a value. Seven predicates have registers of their own; further
 * ones are kept in general registers or computed again. A value from outside a loop that the loop
 * uses is live in the whole loop. Both branches of an if count as live at the same time, unless one only
 * chooses values. */
#include "internal.h"

#include <lilac/occupancy.h>

#include <stdlib.h>
#include <string.h>

enum {
    ON_TOP = 12,   /* an assembler needs a twelfth more registers than live words, or it spills
                       (ptxas on the kernels of the benchmark) */
    PREDICATES = 7 /* registers of one bit that a thread has */
};

typedef lilac_simt_instruction instruction;

/* A value that is used within an instruction with bodies and defined outside of it. */
typedef struct inner_use {
    const instruction *around;
    uint32_t sequence; /* of the use, in the order of the text */
    lilac_simt_value value;
} inner_use;

typedef struct inner_uses {
    inner_use *list; /* sorted by `around`, then by `sequence` */
    uint32_t count, capacity;
} inner_uses;

typedef struct counter {
    const lilac_simt_kernel *kernel;
    uint8_t *placed; /* of values: their instruction is in the order already */
    uint8_t *alive;
    uint8_t *varies; /* of values: may differ between blocks */
    bool late, text, prompt;
    bool blocks;          /* some value differs between blocks */
    uint32_t *uses;       /* prompt: of values: their uses that are not placed yet */
    uint32_t *first_user; /* prompt: of values: their first user in `users`; of one more: the end */
    instruction **users;  /* prompt: by value, in the order of the text, without bodies */
    instruction **order;  /* of the open bodies, concatenated */
    uint32_t order_count, order_capacity;
    instruction **stack;
    uint32_t stack_count, stack_capacity;
    /* Each use is listed once: at the instruction that stands in the body of the value, and at the
     * outermost loop that contains the use and not the value. */
    inner_uses inside, outside;
    uint32_t words, bits, most;
} counter;

static uint32_t words_of(const counter *c, lilac_simt_value v) {
    const lilac_simt_value_info *value = &c->kernel->values[v];
    const instruction *d = value->definition;
    uint32_t words = (lilac_simt_type_widths[value->type] + 31u) / 32u;
    if (value->type == LILAC_SIMT_I1) {
        return 0;
    }
    if (d == NULL) {
        return value->uniform && lilac_simt_type_is_integer(value->type) ? 0 : words;
    }
    switch (d->code) {
    case LILAC_SIMT_OP_CONST:
    case LILAC_SIMT_OP_PARAM:
        return 0;
    default:
        return value->uniform && lilac_simt_type_is_integer(value->type) &&
                       lilac_simt_has_trait(d->code, LILAC_SIMT_PURE)
                   ? 0
                   : words;
    }
}

/* ---- uses within bodies ------------------------------------------------------------------ */

/* State of the walk that lists the uses. */
typedef struct use_walk {
    counter *c;
    uint32_t *depths;         /* of values: number of instructions around the defining body */
    const instruction **path; /* the enclosing instructions, outermost first */
    uint32_t *loops;          /* the depths of those that are loops */
    uint32_t depth, loop_count, capacity, sequence;
} use_walk;

static void list_use(inner_uses *uses, const instruction *around, uint32_t sequence,
                     lilac_simt_value value) {
    if (uses->count == uses->capacity) {
        uses->capacity = uses->capacity ? uses->capacity * 2 : 256;
        uses->list = lilac_heap_grow(uses->list, sizeof *uses->list * (size_t)uses->capacity);
    }
    uses->list[uses->count++] = (inner_use){around, sequence, value};
}

static void list_operand(use_walk *w, lilac_simt_value value) {
    uint32_t depth = w->depths[value];
    if (depth >= w->depth) {
        return;
    }
    w->sequence++;
    if (w->c->kernel->values[value].definition != NULL) {
        list_use(&w->c->inside, w->path[depth], w->sequence, value);
    }
    uint32_t low = 0, high = w->loop_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (w->loops[middle] >= depth) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if (low < w->loop_count) {
        list_use(&w->c->outside, w->path[w->loops[low]], w->sequence, value);
    }
}

static void open_body(use_walk *w, const instruction *i) {
    if (w->depth == w->capacity) {
        w->capacity = w->capacity ? w->capacity * 2 : 16;
        w->path = lilac_heap_grow(w->path, sizeof *w->path * (size_t)w->capacity);
        w->loops = lilac_heap_grow(w->loops, sizeof *w->loops * (size_t)w->capacity);
    }
    if (i->code == LILAC_SIMT_OP_LOOP || i->code == LILAC_SIMT_OP_WHILE) {
        w->loops[w->loop_count++] = w->depth;
    }
    w->path[w->depth++] = i;
}

static void close_body(use_walk *w) {
    w->depth--;
    if (w->loop_count > 0 && w->loops[w->loop_count - 1] == w->depth) {
        w->loop_count--;
    }
}

static void list_body(use_walk *w, const lilac_simt_body *body) {
    for (uint32_t k = 0; k < body->argument_count; k++) {
        w->depths[body->argument + k] = w->depth;
    }
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->result_count; k++) {
            w->depths[i->result + k] = w->depth;
        }
        for (uint32_t k = 0; k < i->operand_count; k++) {
            list_operand(w, i->operands[k]);
        }
        if (i->body_count > 0) {
            open_body(w, i);
            for (uint32_t b = 0; b < i->body_count; b++) {
                list_body(w, i->bodies[b]);
            }
            close_body(w);
        }
    }
}

static int compare_uses(const void *a, const void *b) {
    const inner_use *x = a, *y = b;
    uintptr_t i = (uintptr_t)x->around, k = (uintptr_t)y->around;
    return i != k ? (i > k) - (i < k) : (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

static void list_uses(counter *c) {
    use_walk w = {.c = c};
    w.depths = lilac_heap_grow(NULL, sizeof *w.depths * ((size_t)c->kernel->value_count + 1));
    list_body(&w, c->kernel->body);
    if (c->inside.count > 0) {
        qsort(c->inside.list, c->inside.count, sizeof *c->inside.list, compare_uses);
    }
    if (c->outside.count > 0) {
        qsort(c->outside.list, c->outside.count, sizeof *c->outside.list, compare_uses);
    }
    lilac_heap_free(w.depths);
    lilac_heap_free(w.path);
    lilac_heap_free(w.loops);
}

/* The first of the uses listed at an instruction, and the one after `u`; NULL: no more. */
static const inner_use *first_use(const inner_uses *uses, const instruction *around) {
    uint32_t low = 0, high = around->body_count > 0 ? uses->count : 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if ((uintptr_t)uses->list[middle].around >= (uintptr_t)around) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    bool found = around->body_count > 0 && low < uses->count && uses->list[low].around == around;
    return found ? &uses->list[low] : NULL;
}

static const inner_use *next_use(const inner_uses *uses, const inner_use *u) {
    const inner_use *next = u + 1;
    return next < uses->list + uses->count && next->around == u->around ? next : NULL;
}

/* ---- users ------------------------------------------------------------------------------ */

/* Counts the uses of each value, and in first_user[v + 1] its pure users. */
static void count_uses(counter *c, const lilac_simt_body *body) {
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        const bool pure = lilac_simt_has_trait(i->code, LILAC_SIMT_PURE) && i->result_count > 0;
        for (uint32_t k = 0; k < i->operand_count; k++) {
            c->uses[i->operands[k]]++;
            c->first_user[i->operands[k] + 1] += pure;
        }
        for (uint32_t b = 0; b < i->body_count; b++) {
            count_uses(c, i->bodies[b]);
        }
    }
}

/* Puts each pure user at the end of its lists, whose ends move from `ends`. */
static void fill_users(counter *c, const lilac_simt_body *body, uint32_t *ends) {
    for (instruction *i = body->first; i != NULL; i = i->next) {
        const bool pure = lilac_simt_has_trait(i->code, LILAC_SIMT_PURE) && i->result_count > 0;
        for (uint32_t k = 0; k < i->operand_count && pure; k++) {
            c->users[ends[i->operands[k]]++] = i;
        }
        for (uint32_t b = 0; b < i->body_count; b++) {
            fill_users(c, i->bodies[b], ends);
        }
    }
}

static void list_users(counter *c) {
    const size_t count = c->kernel->value_count, size = sizeof(uint32_t) * (count + 1);
    c->uses = lilac_heap_grow(NULL, size);
    c->first_user = lilac_heap_grow(NULL, size);
    memset(c->uses, 0, size);
    memset(c->first_user, 0, size);
    count_uses(c, c->kernel->body);
    for (size_t v = 0; v < count; v++) {
        c->first_user[v + 1] += c->first_user[v];
    }
    const size_t users = c->first_user[count];
    uint32_t *ends = lilac_heap_grow(NULL, size);
    memcpy(ends, c->first_user, size);
    c->users = lilac_heap_grow(NULL, sizeof(instruction *) * (users + 1));
    fill_users(c, c->kernel->body, ends);
    lilac_heap_free(ends);
}

/* ---- the order -------------------------------------------------------------------------- */

static void push(instruction ***list, uint32_t *count, uint32_t *capacity, instruction *i) {
    if (*count == *capacity) {
        *capacity = *capacity ? *capacity * 2 : 256;
        *list = lilac_heap_grow(*list, sizeof **list * (size_t)*capacity);
    }
    (*list)[(*count)++] = i;
}

static bool is_late_load(const counter *c, const instruction *i) {
    return c->late && i->code == LILAC_SIMT_OP_LD_GLOBAL && (i->flags & LILAC_SIMT_VOLATILE) == 0 &&
           !c->varies[i->operands[0]];
}

static bool waits(const counter *c, const instruction *i) {
    bool pure = lilac_simt_has_trait(i->code, LILAC_SIMT_PURE) && i->result_count > 0;
    return !c->text && (pure || is_late_load(c, i));
}

/* The definition of operand k where it has yet to be placed in this body, else NULL. */
static instruction *pending(const counter *c, const lilac_simt_body *body, lilac_simt_value v) {
    const lilac_simt_value_info *value = &c->kernel->values[v];
    return value->body == body && value->definition != NULL && !c->placed[value->definition->result]
               ? value->definition
               : NULL;
}

/* The words of the operands whose last use this instruction is. */
static uint32_t words_that_end(const counter *c, const instruction *i) {
    uint32_t words = 0;
    for (uint32_t k = 0; k < i->operand_count; k++) {
        uint32_t same = 0;
        bool before = false;
        for (uint32_t j = 0; j < i->operand_count; j++) {
            same += i->operands[j] == i->operands[k];
            before |= j < k && i->operands[j] == i->operands[k];
        }
        words += !before && c->uses[i->operands[k]] == same ? words_of(c, i->operands[k]) : 0;
    }
    return words;
}

/* Can the instruction be placed, in the body of its operand, and are no more words live then? */
static bool is_prompt(const counter *c, const instruction *i, const lilac_simt_body *body) {
    uint32_t words = 0;
    if (!waits(c, i) || c->placed[i->result] || c->kernel->values[i->result].body != body) {
        return false;
    }
    for (uint32_t k = 0; k < i->operand_count; k++) {
        const instruction *operand = pending(c, body, i->operands[k]);
        if (operand != NULL && (operand->operand_count > 0 || words_of(c, i->operands[k]) > 0)) {
            return false; /* not a constant */
        }
    }
    for (uint32_t r = 0; r < i->result_count; r++) {
        words += words_of(c, i->result + r);
    }
    return words <= words_that_end(c, i);
}

static void push_placed(counter *c, instruction *i) {
    if (i->result_count > 0) {
        memset(c->placed + i->result, 1, i->result_count);
    }
    push(&c->order, &c->order_count, &c->order_capacity, i);
}

static void push_prompt_users(counter *c, const lilac_simt_body *body, lilac_simt_value v) {
    for (uint32_t u = c->first_user[v]; u < c->first_user[v + 1]; u++) {
        instruction *user = c->users[u];
        if (!is_prompt(c, user, body)) {
            continue;
        }
        for (uint32_t k = 0; k < user->operand_count; k++) {
            instruction *constant = pending(c, body, user->operands[k]);
            if (constant != NULL) {
                push_placed(c, constant);
            }
        }
        push_placed(c, user);
    }
}

static void note_uses(counter *c, const instruction *i) {
    for (uint32_t k = 0; k < i->operand_count && c->prompt; k++) {
        c->uses[i->operands[k]]--;
    }
}

/* Appends a pure instruction to the order, and then those that have become prompt. None follows a
 * load in this way: the loads of a row are issued before their results are used. */
static void append(counter *c, const lilac_simt_body *body, instruction *first) {
    uint32_t at = c->order_count;
    push_placed(c, first);
    for (; c->prompt && at < c->order_count; at++) {
        const instruction *i = c->order[at];
        note_uses(c, i);
        for (uint32_t r = 0; r < i->result_count; r++) {
            push_prompt_users(c, body, i->result + r);
        }
        for (uint32_t k = 0; k < i->operand_count; k++) {
            push_prompt_users(c, body, i->operands[k]);
        }
    }
}

/* Places the operands of a value, then its instruction; depth first, with an explicit stack. */
static void place(counter *c, const lilac_simt_body *body, lilac_simt_value wanted) {
    instruction *first = pending(c, body, wanted);
    if (first == NULL) {
        return;
    }
    push(&c->stack, &c->stack_count, &c->stack_capacity, first);
    while (c->stack_count > 0) {
        instruction *i = c->stack[c->stack_count - 1];
        instruction *before = NULL;
        for (uint32_t k = 0; k < i->operand_count && before == NULL; k++) {
            before = pending(c, body, i->operands[k]);
        }
        if (before != NULL) {
            push(&c->stack, &c->stack_count, &c->stack_capacity, before);
            continue;
        }
        c->stack_count--;
        if (!c->placed[i->result]) {
            append(c, body, i);
        }
    }
}

static void place_operands(counter *c, const lilac_simt_body *body, const instruction *i) {
    for (uint32_t k = 0; k < i->operand_count; k++) {
        place(c, body, i->operands[k]);
    }
    for (const inner_use *u = first_use(&c->inside, i); u != NULL; u = next_use(&c->inside, u)) {
        place(c, body, u->value);
    }
}

/* Places the operands of the stores from here to the next other effect. Loads do not move past the
 * stores, so the operands are placed before the first store. */
static void place_row(counter *c, const lilac_simt_body *body, const instruction *store) {
    for (const instruction *i = store; i != NULL; i = i->next) {
        if (i->code == LILAC_SIMT_OP_ST_GLOBAL) {
            place_operands(c, body, i);
        } else if (!waits(c, i)) {
            return;
        }
    }
}

static void put_in_order(counter *c, const lilac_simt_body *body) {
    const instruction *late = NULL; /* the first load that is not placed yet */
    for (instruction *i = body->first; i != NULL; i = i->next) {
        if (waits(c, i)) {
            late = late == NULL && is_late_load(c, i) ? i : late;
            continue;
        }
        bool fence = i->code != LILAC_SIMT_OP_ST_GLOBAL &&
                     (i->body_count > 0 || lilac_simt_has_trait(i->code, LILAC_SIMT_SYNC));
        if (late != NULL && i->code == LILAC_SIMT_OP_ST_GLOBAL) {
            place_row(c, body, i);
        }
        for (; late != NULL && late != i && (fence || i->code == LILAC_SIMT_OP_ST_GLOBAL);
             late = late->next) {
            if (is_late_load(c, late)) {
                place(c, body, late->result);
            }
        }
        late = late == i ? NULL : late;
        place_operands(c, body, i);
        push_placed(c, i);
        note_uses(c, i);
    }
}

/* ---- counting --------------------------------------------------------------------------- */

static uint32_t bits_of(const counter *c, lilac_simt_value v) {
    const lilac_simt_value_info *value = &c->kernel->values[v];
    return value->type == LILAC_SIMT_I1 && !value->uniform ? 1 : 0;
}

static void use(counter *c, lilac_simt_value v) {
    if (!c->alive[v]) {
        c->alive[v] = 1;
        c->words += words_of(c, v);
        c->bits += bits_of(c, v);
    }
}

static void define(counter *c, lilac_simt_value first, uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        if (c->alive[first + k]) {
            c->alive[first + k] = 0;
            c->words -= words_of(c, first + k);
            c->bits -= bits_of(c, first + k);
        }
    }
}

static void count_body(counter *c, const lilac_simt_body *body);

/* The bodies from the last to the first; the body of an `if` that only chooses values comes last, so that
 * they are not live in the other one. */
static void count_bodies(counter *c, const instruction *i) {
    for (uint32_t empty = 0; empty < 2; empty++) {
        for (uint32_t b = i->body_count; b > 0; b--) {
            const lilac_simt_body *body = i->bodies[b - 1];
            if ((i->code == LILAC_SIMT_OP_IF && body->first == body->last) == (empty != 0)) {
                count_body(c, body);
                define(c, body->argument, body->argument_count);
            }
        }
    }
}

static void count_body(counter *c, const lilac_simt_body *body) {
    uint32_t begin = c->order_count;
    put_in_order(c, body);
    for (uint32_t at = c->order_count; at > begin; at--) {
        instruction *i = c->order[at - 1];
        define(c, i->result, i->result_count);
        for (const inner_use *u = first_use(&c->outside, i); u; u = next_use(&c->outside, u)) {
            use(c, u->value);
        }
        count_bodies(c, i);
        /* A result may use the register of an operand that dies here. */
        for (uint32_t k = 0; k < i->operand_count; k++) {
            use(c, i->operands[k]);
        }
        uint32_t words = c->words + (c->bits > PREDICATES ? c->bits - PREDICATES : 0);
        c->most = words > c->most ? words : c->most;
    }
    c->order_count = begin;
}

/* Finds the values that may differ between blocks: those computed from a block index, from memory
 * that the kernel writes, or from a carried value that differs. */
static void find_varying(counter *c, const lilac_simt_body *body) {
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        bool index = i->code == LILAC_SIMT_OP_BLOCK || i->code == LILAC_SIMT_OP_CTA;
        c->blocks |= index;
        bool varies =
            index || i->body_count > 0 ||
            (i->code != LILAC_SIMT_OP_LD_GLOBAL && lilac_simt_has_trait(i->code, LILAC_SIMT_READS));
        for (uint32_t k = 0; k < i->operand_count && !varies; k++) {
            varies = c->varies[i->operands[k]] != 0;
        }
        for (uint32_t b = 0; b < i->body_count; b++) {
            const lilac_simt_body *inner = i->bodies[b];
            memset(c->varies + inner->argument, 1, inner->argument_count);
            if (i->code == LILAC_SIMT_OP_LOOP) {
                c->varies[inner->argument] = c->varies[i->operands[0]] || c->varies[i->operands[2]];
            }
            find_varying(c, inner);
        }
        if (varies && i->result_count > 0) {
            memset(c->varies + i->result, 1, i->result_count);
        }
    }
}

uint32_t lilac_simt_pressure(const lilac_simt_kernel *kernel, lilac_simt_pressure_order order) {
    size_t size = 3 * (size_t)kernel->value_count;
    uint8_t *memory = lilac_heap_grow(NULL, size);
    memset(memory, 0, size);
    counter c = {.kernel = kernel,
                 .late = order == LILAC_SIMT_PRESSURE_LATE,
                 .text = order == LILAC_SIMT_PRESSURE_TEXT,
                 .prompt = order == LILAC_SIMT_PRESSURE_PROMPT,
                 .placed = memory,
                 .alive = memory + kernel->value_count,
                 .varies = memory + 2 * (size_t)kernel->value_count};
    find_varying(&c, kernel->body);
    c.late &= c.blocks;
    list_uses(&c);
    if (c.prompt) {
        list_users(&c);
    }
    count_body(&c, kernel->body);
    lilac_heap_free(memory);
    lilac_heap_free(c.order);
    lilac_heap_free(c.stack);
    lilac_heap_free(c.inside.list);
    lilac_heap_free(c.outside.list);
    lilac_heap_free(c.uses);
    lilac_heap_free(c.first_user);
    lilac_heap_free(c.users);
    return c.most;
}

uint32_t lilac_simt_resident_blocks(const lilac_simt_kernel *kernel, uint32_t pressure) {
    const lilac_block_demand demand = {.warps = kernel->num_warps,
                                       .registers = pressure + (pressure + ON_TOP - 1) / ON_TOP,
                                       .shared_bytes = kernel->shared_bytes};
    return lilac_resident_blocks(kernel->module->arch, &demand);
}
