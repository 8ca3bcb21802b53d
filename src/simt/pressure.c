/* How many registers a thread needs: the most words that are alive at once.
 *
 * Text order is not what will run: the lowering writes operation after operation over all registers
 * of a tensor, and an assembler computes a value when it is wanted. So each body is put in this
 * order first: what has an effect, loads, shuffles and structured operations stay in theirs, and
 * pure operations follow, each just before the first of those that needs it, operands first.
 *
 *     %a = ld  %b = ld                        %a = ld  %b = ld
 *     %c = fcvt %a  %d = fcvt %b        →     %c = fcvt %a
 *     %e = fadd %c, %x  %f = fadd %d, %x      %e = fadd %c, %x
 *     st %e  st %f                            st %e
 *                                             %d = fcvt %b …
 *
 * Loads that every block makes alike (weights, tables: no block index in their address) are soon
 * found in the second-level cache, so they may come late too. When the caller asks for that, they
 * wait as pure operations do, but not beyond a barrier, a loop or the next row of stores.
 *
 * One walk backwards over that order counts. A value takes the words of its type; what lives
 * elsewhere takes none: constants, parameters (constant bank), uniform integers (registers of the
 * warp), values that only rename others. Predicates have seven registers of their own; those beyond
 * are kept in others or computed again from what is kept there. What a loop uses from outside is
 * alive all through it. Both sides of an if are taken to be alive together. */
#include "internal.h"

#include <string.h>

enum {
    ON_TOP = 12,           /* an assembler needs a twelfth more than what is alive: found with ptxas
                              over the kernels of the benchmark; with less it spills */
    PREDICATES = 7,        /* registers of one bit that a thread has */
    UNIT = 8,              /* a thread's registers come in as many at a time */
    RESERVED_SHARED = 1024 /* bytes of shared memory that a block takes besides its own */
};

typedef lilac_simt_instruction instruction;

typedef struct counter {
    const lilac_simt_kernel *kernel;
    uint8_t *placed; /* of values: their instruction has its place in the order */
    uint8_t *alive;
    uint8_t *apart; /* of values: may differ between blocks */
    bool late;
    bool blocks;         /* are there different ones? */
    instruction **order; /* of the bodies that are open, one behind the other */
    uint32_t order_count, order_capacity;
    instruction **stack;
    uint32_t stack_count, stack_capacity;
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
           !c->apart[i->operands[0]];
}

static bool waits(const counter *c, const instruction *i) {
    return (lilac_simt_has_trait(i->code, LILAC_SIMT_PURE) && i->result_count > 0) ||
           is_late_load(c, i);
}

/* The definition of operand k where it has yet to be placed in this body, else NULL. */
static instruction *pending(const counter *c, const lilac_simt_body *body, lilac_simt_value v) {
    const lilac_simt_value_info *value = &c->kernel->values[v];
    return value->body == body && value->definition != NULL && !c->placed[value->definition->result]
               ? value->definition
               : NULL;
}

/* Places what a value needs and then its instruction; depth first with a stack of its own. */
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
            c->placed[i->result] = 1;
            push(&c->order, &c->order_count, &c->order_capacity, i);
        }
    }
}

static void place_operands(counter *c, const lilac_simt_body *body, const instruction *i) {
    for (uint32_t k = 0; k < i->operand_count; k++) {
        place(c, body, i->operands[k]);
    }
    for (uint32_t b = 0; b < i->body_count; b++) {
        for (const instruction *inner = i->bodies[b]->first; inner; inner = inner->next) {
            place_operands(c, body, inner);
        }
    }
}

/* What the stores from here to the next other effect store: loads do not pass them, so it is
 * computed before the first. */
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
    const instruction *late = NULL; /* the first load that waits */
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
        if (i->result_count > 0) {
            c->placed[i->result] = 1;
        }
        push(&c->order, &c->order_count, &c->order_capacity, i);
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

/* What a loop's bodies use from outside of them. */
static void use_outside(counter *c, const instruction *loop, const lilac_simt_body *body) {
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->operand_count; k++) {
            const lilac_simt_body *at = c->kernel->values[i->operands[k]].body;
            while (at != NULL && at->parent != loop) {
                at = at->parent != NULL ? at->parent->parent : NULL;
            }
            if (at == NULL) {
                use(c, i->operands[k]);
            }
        }
        for (uint32_t b = 0; b < i->body_count; b++) {
            use_outside(c, loop, i->bodies[b]);
        }
    }
}

static void count_body(counter *c, const lilac_simt_body *body) {
    uint32_t begin = c->order_count;
    put_in_order(c, body);
    for (uint32_t at = c->order_count; at > begin; at--) {
        instruction *i = c->order[at - 1];
        define(c, i->result, i->result_count);
        if (i->code == LILAC_SIMT_OP_LOOP || i->code == LILAC_SIMT_OP_WHILE) {
            for (uint32_t b = 0; b < i->body_count; b++) {
                use_outside(c, i, i->bodies[b]);
            }
        }
        for (uint32_t b = i->body_count; b > 0; b--) {
            count_body(c, i->bodies[b - 1]);
            define(c, i->bodies[b - 1]->argument, i->bodies[b - 1]->argument_count);
        }
        /* What an instruction gives may take the place of what it takes, if that dies here. */
        for (uint32_t k = 0; k < i->operand_count; k++) {
            use(c, i->operands[k]);
        }
        uint32_t words = c->words + (c->bits > PREDICATES ? c->bits - PREDICATES : 0);
        c->most = words > c->most ? words : c->most;
    }
    c->order_count = begin;
}

/* Which values may differ between blocks: what follows from a block index, from memory that is
 * written, or from a carried value. */
static void find_apart(counter *c, const lilac_simt_body *body) {
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        bool index = i->code == LILAC_SIMT_OP_BLOCK || i->code == LILAC_SIMT_OP_CTA;
        c->blocks |= index;
        bool apart =
            index || i->body_count > 0 ||
            (i->code != LILAC_SIMT_OP_LD_GLOBAL && lilac_simt_has_trait(i->code, LILAC_SIMT_READS));
        for (uint32_t k = 0; k < i->operand_count && !apart; k++) {
            apart = c->apart[i->operands[k]] != 0;
        }
        for (uint32_t b = 0; b < i->body_count; b++) {
            const lilac_simt_body *inner = i->bodies[b];
            memset(c->apart + inner->argument, 1, inner->argument_count);
            if (i->code == LILAC_SIMT_OP_LOOP) {
                c->apart[inner->argument] = c->apart[i->operands[0]] || c->apart[i->operands[2]];
            }
            find_apart(c, inner);
        }
        if (apart && i->result_count > 0) {
            memset(c->apart + i->result, 1, i->result_count);
        }
    }
}

uint32_t lilac_simt_pressure(const lilac_simt_kernel *kernel, bool late) {
    size_t size = 3 * (size_t)kernel->value_count;
    uint8_t *memory = lilac_heap_grow(NULL, size);
    memset(memory, 0, size);
    counter c = {.kernel = kernel,
                 .late = late,
                 .placed = memory,
                 .alive = memory + kernel->value_count,
                 .apart = memory + 2 * (size_t)kernel->value_count};
    find_apart(&c, kernel->body);
    c.late &= c.blocks;
    count_body(&c, kernel->body);
    lilac_heap_free(memory);
    lilac_heap_free(c.order);
    lilac_heap_free(c.stack);
    return c.most;
}

uint32_t lilac_simt_resident_blocks(const lilac_simt_kernel *kernel, uint32_t pressure) {
    const lilac_arch *arch = kernel->module->arch;
    uint32_t need = pressure + (pressure + ON_TOP - 1) / ON_TOP;
    need = (need + UNIT - 1) / UNIT * UNIT;
    uint32_t warps = need > 0 ? arch->registers / (arch->warp_size * need) : arch->resident_warps;
    warps = warps < arch->resident_warps ? warps : arch->resident_warps;
    uint32_t blocks = warps / kernel->num_warps;
    uint32_t shared =
        (arch->shared_bytes + RESERVED_SHARED) / (kernel->shared_bytes + RESERVED_SHARED);
    return blocks < shared ? blocks : shared;
}
