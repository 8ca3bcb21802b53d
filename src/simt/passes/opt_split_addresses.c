/* Addresses and masks of copies in a loop: what is invariant apart from what is not.
 *
 *     loop %i … {                                   %b1 = add %a, %row : i64
 *       %v = … of %i                                %b2 = add %b1, %row : i64
 *       %p = add %v, %a : i64                       loop %i … {
 *       %p1 = add %p, %row : i64                      %v = … of %i
 *       %p2 = add %p1, %row : i64             →       %q1 = add %b1, %v : i64
 *       cp.async [%s], (%p1)                          %q2 = add %b2, %v : i64
 *       cp.async [%s + 512], (%p2)                    cp.async [%s], (%q1)
 *     }                                               cp.async [%s + 512], (%q2)
 *                                                   }
 *
 * A chain of sums makes each address wait for the one before it, and its registers for the copy
 * that reads them (opt_share_increments.c). Conjunctions of conditions likewise: the part that
 * changes is computed once for all copies. Below a conversion to a wider integer the same is done
 * with a narrow sum of products, whose products with invariant factors are split too:
 *
 *     %r = add %i, %row : i32                       %b = mul %row, %stride : i32   (invariant)
 *     %o = mul %r, %stride : i32                    %v = mul %i, %stride : i32     (one for all copies)
 *     %w = mulwide_s %o, 2 : i64             →      %o = add %b, %v : i32
 *                                                   %w = mulwide_s %o, 2 : i64
 *
 * The products in addresses of ordinary loads are split likewise; their sums of 64 bits stay. All of this
 * is exact, since sums and products wrap around. A loop with one copy or load stays as it is. */
#include "internal.h"

#include <string.h>

enum { MOST_PAIRS = 64, MOST_TERMS = 8 };

typedef lilac_simt_instruction instruction;

/* A value as the sum or conjunction of what is invariant and what is not; 0: nothing. */
typedef struct parts {
    bool known;
    lilac_simt_value invariant, varying;
} parts;

typedef struct pair {
    uint16_t code;
    lilac_simt_value a, b, result;
} pair;

typedef struct splitting {
    lilac_simt_kernel *kernel;
    instruction *loop;
    parts *parts; /* by value, of the values that the kernel had; of this loop */
    uint32_t count;
    pair pairs[MOST_PAIRS]; /* operations of the body on two parts */
    uint32_t pair_count;
    bool narrow; /* sums below conversions are split, whose parts need registers */
    bool changed;
} splitting;

static bool is_invariant(const splitting *s, lilac_simt_value value) {
    return !lilac_simt_is_inside(s->kernel, value, s->loop->bodies[0]);
}

/* The operation of two values before `place`. */
static lilac_simt_value make(const splitting *s, uint16_t code, lilac_simt_value a,
                             lilac_simt_value b, lilac_simt_body *body, instruction *place) {
    const instruction like = {.code = code};
    const lilac_simt_value operands[2] = {a, b};
    const lilac_simt_type type = lilac_simt_type_of(s->kernel, a);
    instruction *made = lilac_simt_new_instruction(s->kernel, &like, 2, operands);
    made->location = s->loop->location;
    lilac_simt_link(body, place, made);
    lilac_simt_give_results(s->kernel, made, 1, &type);
    return made->result;
}

static const pair *find_pair(const splitting *s, uint16_t code, lilac_simt_value a,
                             lilac_simt_value b) {
    for (uint32_t i = 0; i < s->pair_count; i++) {
        if (s->pairs[i].code == code && s->pairs[i].a == a && s->pairs[i].b == b) {
            return &s->pairs[i];
        }
    }
    return NULL;
}

static void add_pair(splitting *s, uint16_t code, lilac_simt_value a, lilac_simt_value b,
                     lilac_simt_value result) {
    if (s->pair_count < MOST_PAIRS) {
        s->pairs[s->pair_count++] = (pair){code, a, b, result};
    }
}

/* Is it the instruction at `place` or one behind it? */
static bool is_behind(const instruction *i, const instruction *place) {
    while (place != NULL && place != i) {
        place = place->next;
    }
    return place != NULL;
}

/* The same in the body, in front of `place`; once for each pair of values. Copies need not be in
 * the order of their addresses: what was made for an earlier copy may be behind `place`. */
static lilac_simt_value make_inside(splitting *s, uint16_t code, lilac_simt_value a,
                                    lilac_simt_value b, instruction *place) {
    const pair *known = find_pair(s, code, a, b);
    if (known != NULL) {
        instruction *made = s->kernel->values[known->result].definition;
        if (made != place && is_behind(made, place)) {
            lilac_simt_move(s->kernel, made, place);
        }
        return known->result;
    }
    const lilac_simt_value result = make(s, code, a, b, s->loop->bodies[0], place);
    add_pair(s, code, a, b, result);
    return result;
}

static parts split(splitting *s, uint16_t code, lilac_simt_value value);

/* Is it a product or shift of the body with an invariant factor or distance? */
static bool is_scaled(const splitting *s, const instruction *d) {
    return d != NULL && d->parent == s->loop->bodies[0] &&
           (d->code == LILAC_SIMT_OP_SHL ? is_invariant(s, d->operands[1])
            : d->code == LILAC_SIMT_OP_MUL
                ? is_invariant(s, d->operands[0]) != is_invariant(s, d->operands[1])
                : false);
}

/* A shifted or multiplied sum is the sum of its shifted or multiplied parts, modulo 2^32 too. */
static parts split_scaled(splitting *s, lilac_simt_value value, const instruction *d) {
    const bool first = d->code == LILAC_SIMT_OP_MUL && is_invariant(s, d->operands[0]);
    const lilac_simt_value sum = d->operands[first], factor = d->operands[!first];
    const parts inner = split(s, LILAC_SIMT_OP_ADD, sum);
    if (inner.invariant == 0 || inner.varying == 0) {
        return (parts){true, 0, value};
    }
    instruction *place = s->kernel->values[value].definition;
    return (parts){true, make(s, d->code, inner.invariant, factor, s->loop->parent, s->loop),
                   make_inside(s, d->code, inner.varying, factor, place)};
}

/* Is it an operation of the body that makes an integer wider, which is no sum of its parts? */
static bool is_widening(const splitting *s, const instruction *d) {
    return d != NULL && d->parent == s->loop->bodies[0] &&
           (d->code == LILAC_SIMT_OP_SEXT || d->code == LILAC_SIMT_OP_ZEXT ||
            d->code == LILAC_SIMT_OP_MULWIDE_S || d->code == LILAC_SIMT_OP_MULWIDE_U);
}

/* Is one of the terms a product with a factor that is no constant? Sums without one are as cheap as
 * their parts, which would take registers. */
static bool has_product(const splitting *s, lilac_simt_value value, uint32_t depth) {
    const instruction *d = s->kernel->values[value].definition;
    if (d == NULL || depth == 0 || d->parent != s->loop->bodies[0]) {
        return false;
    }
    switch (d->code) {
    case LILAC_SIMT_OP_ADD:
        return has_product(s, d->operands[0], depth - 1) ||
               has_product(s, d->operands[1], depth - 1);
    case LILAC_SIMT_OP_SHL:
        return has_product(s, d->operands[0], depth - 1);
    default:
        return d->code == LILAC_SIMT_OP_MUL && is_scaled(s, d);
    }
}

static void replace(splitting *s, uint16_t code, lilac_simt_value *operand, instruction *place);

static parts split(splitting *s, uint16_t code, lilac_simt_value value) {
    if (is_invariant(s, value)) {
        return (parts){true, value, 0};
    }
    instruction *d = s->kernel->values[value].definition;
    if (value < s->count && code == LILAC_SIMT_OP_ADD && is_scaled(s, d)) {
        if (!s->parts[value].known) {
            s->parts[value] = split_scaled(s, value, d);
        }
        return s->parts[value];
    }
    if (value < s->count && code == LILAC_SIMT_OP_ADD && s->narrow && is_widening(s, d) &&
        has_product(s, d->operands[0], MOST_TERMS)) {
        replace(s, code, &d->operands[0], d);
    }
    if (value >= s->count || d == NULL || d->code != code || d->parent != s->loop->bodies[0]) {
        return (parts){true, 0, value};
    }
    if (!s->parts[value].known) {
        const parts a = split(s, code, d->operands[0]), b = split(s, code, d->operands[1]);
        parts *p = &s->parts[value];
        p->known = true;
        p->invariant = a.invariant == 0 ? b.invariant
                       : b.invariant == 0
                           ? a.invariant
                           : make(s, code, a.invariant, b.invariant, s->loop->parent, s->loop);
        p->varying = p->invariant == 0 ? value
                     : a.varying == 0  ? b.varying
                     : b.varying == 0  ? a.varying
                                       : make_inside(s, code, a.varying, b.varying, d);
    }
    return s->parts[value];
}

/* The address in global memory that a copy reads, and the condition under which it reads; NULL:
 * none. */
static void find_operands(const splitting *s, instruction *i, lilac_simt_value **address,
                          lilac_simt_value **condition) {
    const bool predicated = lilac_simt_type_of(s->kernel, i->operands[1]) == LILAC_SIMT_I1;
    *address = &i->operands[1 + predicated];
    *condition = NULL;
    if (i->operand_count > 2u + predicated) {
        instruction *bytes = s->kernel->values[i->operands[2 + predicated]].definition;
        if (bytes != NULL && bytes->code == LILAC_SIMT_OP_SELECT && bytes->parent == i->parent) {
            *condition = &bytes->operands[0];
        }
    }
}

/* May the operand be an operation of this loop that has both parts? */
static bool has_parts(const splitting *s, uint16_t code, lilac_simt_value value) {
    const instruction *d = s->kernel->values[value].definition;
    return d != NULL && value < s->count &&
           ((d->code == code && d->parent == s->loop->bodies[0]) ||
            (code == LILAC_SIMT_OP_ADD && is_scaled(s, d)));
}

static void replace(splitting *s, uint16_t code, lilac_simt_value *operand, instruction *place) {
    if (!has_parts(s, code, *operand)) {
        return;
    }
    const parts p = split(s, code, *operand);
    const instruction *d = s->kernel->values[*operand].definition;
    if (d->code == code && d->operands[0] == p.invariant && d->operands[1] == p.varying &&
        find_pair(s, code, p.invariant, p.varying) == NULL) {
        add_pair(s, code, p.invariant, p.varying, *operand); /* as it should be */
    }
    if (p.invariant != 0 && p.varying != 0) {
        const lilac_simt_value made = make_inside(s, code, p.invariant, p.varying, place);
        s->changed |= made != *operand;
        *operand = made;
    }
}

/* The products in the address of a load: only the narrow sums change, so the loop has fewer operations
 * and the sums of 64 bits stay as the assembler merges them with the loads. */
static void split_products(splitting *s, lilac_simt_value address, uint32_t depth) {
    instruction *d = s->kernel->values[address].definition;
    if (d == NULL || depth == 0 || d->parent != s->loop->bodies[0]) {
        return;
    }
    if (d->code == LILAC_SIMT_OP_ADD) {
        split_products(s, d->operands[0], depth - 1);
        split_products(s, d->operands[1], depth - 1);
    } else if (is_widening(s, d) && has_product(s, d->operands[0], MOST_TERMS)) {
        replace(s, LILAC_SIMT_OP_ADD, &d->operands[0], d);
    }
}

static uint32_t count_in(const lilac_simt_body *body, lilac_simt_opcode code) {
    uint32_t count = 0;
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        count += i->code == code;
    }
    return count;
}

/* Is there a narrow sum with a product below a conversion? If not, no registers are needed for its parts,
 * and none are counted. */
static bool has_narrow_products(const splitting *s) {
    const instruction *i = s->loop->bodies[0]->first;
    while (i != NULL && !(is_widening(s, i) && has_product(s, i->operands[0], MOST_TERMS))) {
        i = i->next;
    }
    return i != NULL;
}

static void visit_loop(splitting *s, instruction *loop) {
    lilac_simt_body *body = loop->bodies[0];
    const uint32_t copies = count_in(body, LILAC_SIMT_OP_CP_ASYNC),
                   loads = count_in(body, LILAC_SIMT_OP_LD_GLOBAL);
    if (copies < 2 && loads < 2) {
        return;
    }
    s->loop = loop;
    s->narrow = has_narrow_products(s) && lilac_simt_has_registers(s->kernel, copies + loads);
    s->pair_count = 0;
    memset(s->parts, 0, sizeof *s->parts * s->count);
    for (instruction *i = body->first; i != NULL; i = i->next) {
        if (i->code == LILAC_SIMT_OP_LD_GLOBAL && loads > 1 && s->narrow) {
            split_products(s, i->operands[0], MOST_TERMS);
        }
        if (i->code == LILAC_SIMT_OP_CP_ASYNC && copies > 1) {
            lilac_simt_value *address, *condition;
            find_operands(s, i, &address, &condition);
            replace(s, LILAC_SIMT_OP_ADD, address, s->kernel->values[*address].definition);
            if (condition != NULL) {
                replace(s, LILAC_SIMT_OP_AND, condition, s->kernel->values[*condition].definition);
            }
        }
    }
}

static void visit(splitting *s, lilac_simt_body *body) {
    for (instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            visit(s, i->bodies[k]);
        }
        if (i->code == LILAC_SIMT_OP_LOOP) {
            visit_loop(s, i);
        }
    }
}

bool lilac_simt_opt_split_addresses(lilac_simt_kernel *kernel) {
    splitting s = {.kernel = kernel, .count = kernel->value_count};
    s.parts = lilac_heap_grow(NULL, sizeof *s.parts * s.count);
    visit(&s, kernel->body);
    lilac_heap_free(s.parts);
    if (s.changed) {
        lilac_simt_infer_uniform(kernel);
    }
    return s.changed;
}
