/* Addresses of accesses behind a barrier are computed again.
 *
 *     %o = mulwide_s %i, 2                     %o = mulwide_s %i, 2
 *     %p = add %x, %o   ld.global [%p]         %p = add %x, %o   ld.global [%p]
 *     %q = add %y, %o   ld.global [%q]         %q = add %y, %o   ld.global [%q]
 *     … barrier …                        →     … barrier …
 *     ld.global [%p]                           %j = opaque %i
 *     ld.global [%q]                           %o1 = mulwide_s %j, 2
 *                                              %p1 = add %x, %o1   ld.global [%p1]
 *                                              %q1 = add %y, %o1   ld.global [%q1]
 *
 * A kernel that reduces rows and then reads the same rows again, in loops that were unrolled, has the
 * addresses of all elements in common. Each takes two registers during the reduction, and an
 * assembler keeps them: a block of 16 warps needed 126 registers, so that one was resident instead
 * of three. An index takes one register for all arrays, and an address of a uniform base is one
 * instruction. The assembler must not find that the addresses are equal, so the index is an opaque
 * copy.
 *
 * Only accesses in the body itself are changed, where that saves LEAST registers or more: few cost
 * little. Addresses with other uses behind the barrier stay, and so do those that no access in front
 * of it uses: an assembler computes these behind it. */
#include "internal.h"

#include <string.h>

enum { LEAST = 16 };

typedef lilac_simt_instruction instruction;

/* What is known of a value. Segments are the parts of a body between barriers, numbered from 1
 * through the whole kernel. */
typedef struct entry {
    uint32_t segment;      /* that defines it; 0: none of the body */
    uint32_t first;        /* the first one with an access that uses it; 0: none */
    uint32_t copied;       /* the segment that `copy` is for; 0: none */
    lilac_simt_value copy; /* the same value, computed again */
    bool crosses;          /* accesses of later segments use it, too */
    bool stays;            /* other instructions of segments behind the definition use it */
    bool counted;          /* an index of an address that crosses */
} entry;

typedef struct rematerializer {
    lilac_simt_kernel *kernel;
    entry *entries; /* of the values that the kernel had before the pass */
    uint32_t segments;
    bool changed;
} rematerializer;

/* The definition of a value in this body by this operation; NULL: another one. */
static const instruction *defined_by(const rematerializer *r, const lilac_simt_body *body,
                                     lilac_simt_value value, bool (*is)(uint32_t code)) {
    const instruction *d = r->kernel->values[value].definition;
    return d != NULL && d->parent == body && is(d->code) ? d : NULL;
}

static bool is_add(uint32_t code) {
    return code == LILAC_SIMT_OP_ADD;
}

static bool is_wide_product(uint32_t code) {
    return code == LILAC_SIMT_OP_MULWIDE_S || code == LILAC_SIMT_OP_MULWIDE_U;
}

/* Is the value a uniform base plus the product of an index, which is not uniform, and a constant?
 * `*side`: the operand that is the product. */
static bool is_address(const rematerializer *r, const lilac_simt_body *body, lilac_simt_value value,
                       uint32_t *side) {
    const lilac_simt_value_info *values = r->kernel->values;
    const instruction *sum = defined_by(r, body, value, is_add);
    if (sum == NULL || values[value].type != LILAC_SIMT_I64) {
        return false;
    }
    for (uint32_t k = 0; k < 2; k++) {
        const instruction *product = defined_by(r, body, sum->operands[k], is_wide_product);
        uint64_t bits;
        if (product != NULL && values[sum->operands[1 - k]].uniform &&
            !values[product->operands[0]].uniform &&
            lilac_simt_constant_bits(r->kernel, product->operands[1], &bits)) {
            *side = k;
            return true;
        }
    }
    return false;
}

static bool is_access(const instruction *i) {
    return i->code == LILAC_SIMT_OP_LD_GLOBAL || i->code == LILAC_SIMT_OP_ST_GLOBAL ||
           i->code == LILAC_SIMT_OP_ATOMIC_GLOBAL;
}

/* Does a barrier end the segment? */
static bool ends_segment(const instruction *i) {
    bool waits = i->code == LILAC_SIMT_OP_BARRIER || i->code == LILAC_SIMT_OP_GROUP_BARRIER;
    for (uint32_t k = 0; k < i->body_count; k++) {
        waits |= lilac_simt_waits(i->bodies[k]);
    }
    return waits;
}

/* What an instruction inside another one uses is not changed. */
static void keep_uses(rematerializer *r, const lilac_simt_body *body) {
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->operand_count; k++) {
            r->entries[i->operands[k]].stays = true;
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            keep_uses(r, i->bodies[k]);
        }
    }
}

static void mark_use(entry *e, uint32_t segment, bool as_address) {
    if (as_address && e->first == 0) {
        e->first = segment;
    }
    e->crosses |= as_address && e->segment != 0 && e->first < segment;
    e->stays |= !as_address && e->segment != 0 && e->segment < segment;
}

/* Numbers the segments of the body and marks the uses of its values. */
static void mark(rematerializer *r, const lilac_simt_body *body) {
    r->segments++;
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->operand_count; k++) {
            mark_use(&r->entries[i->operands[k]], r->segments, is_access(i) && k == 0);
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            keep_uses(r, i->bodies[k]);
        }
        for (uint32_t k = 0; k < i->result_count; k++) {
            r->entries[i->result + k].segment = r->segments;
        }
        r->segments += ends_segment(i);
    }
}

/* May the accesses of later segments compute this address again? */
static bool moves(const rematerializer *r, const lilac_simt_body *body, lilac_simt_value value,
                  uint32_t *side) {
    const entry *e = &r->entries[value];
    return e->crosses && !e->stays && is_address(r, body, value, side);
}

/* The registers that are saved at the barriers of the body. */
static int64_t registers_saved(rematerializer *r, const lilac_simt_body *body) {
    int64_t saved = 0;
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        uint32_t side;
        if (i->result_count == 1 && moves(r, body, i->result, &side)) {
            const instruction *product = r->kernel->values[i->operands[side]].definition;
            entry *index = &r->entries[product->operands[0]];
            saved += index->counted ? 2 : 1;
            index->counted = true;
        }
    }
    return saved;
}

/* The value of `like`, computed in front of the access from these operands; once in a segment. */
static lilac_simt_value again(rematerializer *r, instruction *access, uint32_t segment,
                              lilac_simt_value value, const instruction *like, uint32_t count,
                              const lilac_simt_value *operands) {
    const lilac_simt_type type = lilac_simt_type_of(r->kernel, value);
    instruction *made = lilac_simt_new_instruction(r->kernel, like, count, operands);
    made->location = access->location;
    lilac_simt_link(access->parent, access, made);
    lilac_simt_give_results(r->kernel, made, 1, &type);
    r->entries[value].copied = segment;
    r->entries[value].copy = made->result;
    return made->result;
}

static lilac_simt_value index_again(rematerializer *r, instruction *access, uint32_t segment,
                                    lilac_simt_value value) {
    const instruction opaque = {.code = LILAC_SIMT_OP_OPAQUE};
    return r->entries[value].copied == segment
               ? r->entries[value].copy
               : again(r, access, segment, value, &opaque, 1, &value);
}

static lilac_simt_value product_again(rematerializer *r, instruction *access, uint32_t segment,
                                      lilac_simt_value value) {
    const instruction *d = r->kernel->values[value].definition;
    if (r->entries[value].copied == segment) {
        return r->entries[value].copy;
    }
    const lilac_simt_value operands[2] = {index_again(r, access, segment, d->operands[0]),
                                          d->operands[1]};
    return again(r, access, segment, value, d, 2, operands);
}

static lilac_simt_value address_again(rematerializer *r, instruction *access, uint32_t segment,
                                      lilac_simt_value value, uint32_t side) {
    const instruction *d = r->kernel->values[value].definition;
    lilac_simt_value operands[2] = {d->operands[0], d->operands[1]};
    if (r->entries[value].copied == segment) {
        return r->entries[value].copy;
    }
    operands[side] = product_again(r, access, segment, operands[side]);
    return again(r, access, segment, value, d, 2, operands);
}

/* `segment`: the first one of the body. */
static void rewrite(rematerializer *r, lilac_simt_body *body, uint32_t segment) {
    for (instruction *i = body->first; i != NULL; i = i->next) {
        uint32_t side;
        if (is_access(i) && r->entries[i->operands[0]].first < segment &&
            moves(r, body, i->operands[0], &side)) {
            i->operands[0] = address_again(r, i, segment, i->operands[0], side);
            r->changed = true;
        }
        segment += ends_segment(i);
    }
}

static void visit(rematerializer *r, lilac_simt_body *body) {
    const uint32_t first = r->segments + 1;
    mark(r, body);
    if (registers_saved(r, body) >= LEAST) {
        rewrite(r, body, first);
    }
}

bool lilac_simt_opt_rematerialize_addresses(lilac_simt_kernel *kernel) {
    const size_t size = sizeof(entry) * kernel->value_count;
    rematerializer r = {.kernel = kernel, .entries = lilac_heap_grow(NULL, size)};
    memset(r.entries, 0, size);
    visit(&r, kernel->body);
    lilac_heap_free(r.entries);
    if (r.changed) {
        lilac_simt_infer_uniform(kernel);
    }
    return r.changed;
}
