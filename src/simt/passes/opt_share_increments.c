/* Addresses of asynchronous copies that a loop advances by one step share one offset.
 *
 *     loop … (%p = %p0, %q = %q0) {            loop … (%o = 0) {
 *       cp.async [%s], (%p)                      %p = add %p0, %o : i64
 *       cp.async [%s + 512], (%q)                %q = add %q0, %o : i64
 *       %p1 = add %p, %step : i64         →      cp.async [%s], (%p)
 *       %q1 = add %q, %step : i64                cp.async [%s + 512], (%q)
 *       yield %p1, %q1                           %o1 = add %o, %step : i64
 *     }                                          yield %o1
 *                                              }
 *
 * A copy reads its address from registers some time after it is issued, when the copies in front of it are
 * through; until then nothing may overwrite them. Where the addresses themselves advance, the additions of one
 * iteration wait for its copies, and matrix products wait behind the additions. ptxas also keeps the halves
 * of a carried address in registers that are no pair and copies each pair together in front of its copy,
 * all through one pair, so that each copy waits for the one before it. Sums at the beginning of the body have
 * registers of their own, which are free long before the next iteration writes them.
 *
 * Measured: bench/results/decisions.md. The sums need two more registers an address. An address that
 * anything else than the copies uses stays. */
#include "internal.h"

#include <string.h>

enum { FEWEST = 2 }; /* addresses with one step */

typedef lilac_simt_instruction instruction;

/* A carried address. */
typedef struct address {
    uint32_t slot;
    instruction *advance; /* its sum with the step */
    lilac_simt_value step;
    uint32_t now, next; /* copies in the body that use it, and its advanced value */
    bool done;
} address;

typedef struct sharing {
    lilac_simt_kernel *kernel;
    uint32_t *uses; /* of the values that the kernel had */
    uint32_t *read; /* of the same: by copies of the loop's body */
    instruction *loop;
    instruction **copies; /* of the loop's body */
    uint32_t copy_count, copy_capacity;
    address *addresses;
    uint32_t count;
    bool changed;
} sharing;

static lilac_simt_value argument_of(const sharing *s, uint32_t slot) {
    return s->loop->bodies[0]->argument + 1 + slot;
}

/* The address in global memory that a copy reads. */
static lilac_simt_value *source_of(const sharing *s, instruction *copy) {
    const bool predicated = lilac_simt_type_of(s->kernel, copy->operands[1]) == LILAC_SIMT_I1;
    return &copy->operands[1 + predicated];
}

/* Is the carried value of the slot an address that only copies use? */
static bool find_address(const sharing *s, uint32_t slot, address *result) {
    const lilac_simt_kernel *kernel = s->kernel;
    const lilac_simt_body *body = s->loop->bodies[0];
    const lilac_simt_value argument = argument_of(s, slot), next = body->last->operands[slot];
    instruction *advance = kernel->values[next].definition;
    if (lilac_simt_type_of(kernel, argument) != LILAC_SIMT_I64 || advance == NULL ||
        advance->code != LILAC_SIMT_OP_ADD || advance->parent != body ||
        s->uses[s->loop->result + slot] != 0) {
        return false;
    }
    const uint32_t side = advance->operands[0] == argument ? 0 : 1;
    *result = (address){.slot = slot,
                        .advance = advance,
                        .step = advance->operands[1 - side],
                        .now = s->read[argument],
                        .next = s->read[next]};
    return advance->operands[side] == argument && kernel->values[result->step].body != body &&
           result->now + result->next > 0 && s->uses[argument] == result->now + 1 &&
           s->uses[next] == result->next + 1;
}

/* base + offset, before `place`. */
static lilac_simt_value add_before(const sharing *s, lilac_simt_value base, lilac_simt_value offset,
                                   instruction *place) {
    const instruction like = {.code = LILAC_SIMT_OP_ADD};
    const lilac_simt_value operands[2] = {base, offset};
    const lilac_simt_type type = LILAC_SIMT_I64;
    instruction *sum = lilac_simt_new_instruction(s->kernel, &like, 2, operands);
    sum->location = s->loop->location;
    lilac_simt_link(s->loop->bodies[0], place, sum);
    lilac_simt_give_results(s->kernel, sum, 1, &type);
    return sum->result;
}

static void replace_in_copies(const sharing *s, lilac_simt_value value, lilac_simt_value sum) {
    for (uint32_t k = 0; k < s->copy_count; k++) {
        lilac_simt_value *source = source_of(s, s->copies[k]);
        if (*source == value) {
            *source = sum;
        }
    }
}

/* The copies of an address use base + offset; `offset` and `advanced` are those before and after the step. */
static void rewrite(const sharing *s, address *a, lilac_simt_value base, lilac_simt_value offset,
                    lilac_simt_value advanced, instruction *place) {
    const lilac_simt_value argument = argument_of(s, a->slot), next = a->advance->result;
    if (a->now > 0) {
        replace_in_copies(s, argument, add_before(s, base, offset, place));
    }
    if (a->next > 0) {
        replace_in_copies(s, next, add_before(s, base, advanced, place));
    }
    a->done = true;
}

/* Where the sums of the copies' addresses are: at the beginning of the body, or where the copies wait at
 * an mbarrier for other warps, behind the wait, so that no address is live during the iteration. */
static instruction *place_of_sums(const lilac_simt_body *body) {
    instruction *place = body->first;
    for (instruction *i = body->first; i != NULL && i->code != LILAC_SIMT_OP_CP_ASYNC;
         i = i->next) {
        place = i->code == LILAC_SIMT_OP_MBARRIER_WAIT ? i->next : place;
    }
    return place;
}

/* The first address of a group gives its place among the carried values to the offset. */
static void share(sharing *s, uint32_t first, lilac_simt_value zero) {
    address *leader = &s->addresses[first];
    const lilac_simt_body *body = s->loop->bodies[0];
    const lilac_simt_value offset = argument_of(s, leader->slot), next = leader->advance->result;
    const lilac_simt_value base = s->loop->operands[3 + leader->slot];
    instruction *place = place_of_sums(body);
    if (place == leader->advance) {
        place = place->next;
    } else {
        lilac_simt_move(s->kernel, leader->advance, place);
    }
    s->loop->operands[3 + leader->slot] = zero;
    s->kernel->values[offset].name = s->kernel->values[next].name = NULL;
    rewrite(s, leader, base, offset, next, place);
    for (uint32_t k = first + 1; k < s->count; k++) {
        address *a = &s->addresses[k];
        if (a->step == leader->step && !a->done) {
            rewrite(s, a, s->loop->operands[3 + a->slot], offset, next, place);
            body->last->operands[a->slot] = argument_of(s, a->slot); /* unused: dce removes it */
        }
    }
    s->changed = true;
}

static uint32_t count_step(const sharing *s, uint32_t first) {
    uint32_t count = 0;
    for (uint32_t k = first; k < s->count; k++) {
        count += s->addresses[k].step == s->addresses[first].step;
    }
    return count;
}

static void visit_loop(sharing *s, instruction *loop) {
    const uint32_t carried = loop->operand_count - 3u;
    lilac_simt_value zero = 0;
    s->loop = loop;
    s->count = 0;
    s->addresses = lilac_heap_grow(NULL, sizeof *s->addresses * (carried + 1));
    for (uint32_t slot = 0; slot < carried; slot++) {
        s->count += find_address(s, slot, &s->addresses[s->count]);
    }
    for (uint32_t k = 0; k < s->copy_count; k++) {
        s->read[*source_of(s, s->copies[k])] = 0; /* for the next loop */
    }
    for (uint32_t k = 0; k < s->count; k++) {
        if (s->addresses[k].done || count_step(s, k) < FEWEST) {
            continue;
        }
        if (zero == 0) {
            const instruction like = {.code = LILAC_SIMT_OP_CONST};
            const lilac_simt_type type = LILAC_SIMT_I64;
            instruction *constant = lilac_simt_new_instruction(s->kernel, &like, 0, NULL);
            lilac_simt_link(s->kernel->body, s->kernel->body->first, constant);
            lilac_simt_give_results(s->kernel, constant, 1, &type);
            zero = constant->result;
        }
        share(s, k, zero);
    }
    lilac_heap_free(s->addresses);
}

/* Lists the copies of the body, and counts what they read. Whether there is one. */
static bool list_copies(sharing *s, const lilac_simt_body *body) {
    s->copy_count = 0;
    for (instruction *i = body->first; i != NULL; i = i->next) {
        if (i->code != LILAC_SIMT_OP_CP_ASYNC) {
            continue;
        }
        if (s->copy_count == s->copy_capacity) {
            s->copy_capacity = 2 * s->copy_capacity + 16;
            s->copies = lilac_heap_grow(s->copies, sizeof(instruction *) * s->copy_capacity);
        }
        s->copies[s->copy_count++] = i;
        s->read[*source_of(s, i)]++;
    }
    return s->copy_count > 0;
}

static void visit(sharing *s, lilac_simt_body *body) {
    for (instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            visit(s, i->bodies[k]);
        }
        if (i->code == LILAC_SIMT_OP_LOOP && list_copies(s, i->bodies[0])) {
            visit_loop(s, i);
        }
    }
}

bool lilac_simt_opt_share_increments(lilac_simt_kernel *kernel) {
    sharing s = {.kernel = kernel};
    const size_t size = sizeof *s.uses * kernel->value_count;
    s.uses = lilac_heap_grow(NULL, size);
    s.read = lilac_heap_grow(NULL, size);
    memset(s.uses, 0, size);
    memset(s.read, 0, size);
    lilac_simt_count_uses(kernel->body, s.uses);
    visit(&s, kernel->body);
    lilac_heap_free(s.uses);
    lilac_heap_free(s.read);
    lilac_heap_free(s.copies);
    if (s.changed) {
        lilac_simt_infer_uniform(kernel);
    }
    return s.changed;
}
