/* Tail masks: the masks of the rows of a loop come from one difference.
 *
 *     loop %i = %l to %u step 16 {             loop %i = %l to %u step 16 {
 *       %1 = add %i, 1                           %d = sub %u, %i
 *       %m1 = cmp lt %1, %u             →        %n = min_u %d, 16
 *       …                                        %m1 = cmp gt %n, 1
 *       %15 = add %i, 15                         …
 *       %m15 = cmp lt %15, %u                    %m15 = cmp gt %n, 15
 *
 * An addition and a comparison become one comparison with a constant, in 32 bits even if the
 * counter has 64, and %n is the only value that is live for all masks. A term that all sums have
 * in common, such as the thread number, is subtracted from %n once.
 *
 * In the body %i < %u, so their difference is correct as an unsigned number in every case, and as
 * a signed one if %l is a constant that is not negative. The other terms of a sum are not negative
 * and below the step, so a sum wraps only if the counter does, and such a loop does not end. The
 * pass needs LEAST saved instructions: below that the assembler's schedule changes more than they
 * save. */
#include "internal.h"

#include <string.h>

typedef lilac_simt_instruction instruction;

enum { MOST_PARTS = 4, LEAST = 8 };

typedef struct sum {
    bool counts;           /* the counter is one of its terms */
    lilac_simt_value part; /* another term, from outside the loop; 0: none */
    int64_t constant;
} sum;

typedef struct rest {
    lilac_simt_builder *b;
    const lilac_simt_body *body;
    lilac_simt_value counter, upper;
    lilac_simt_type type;
    int64_t step;
    lilac_simt_value parts[MOST_PARTS]; /* 0 too */
    lilac_simt_value left[MOST_PARTS];  /* the difference less each of them */
    uint32_t part_count;
} rest;

static bool add_up(const rest *r, lilac_simt_value x, uint32_t depth, sum *s) {
    uint64_t bits;
    if (x == r->counter) {
        bool first = !s->counts;
        s->counts = true;
        return first;
    }
    if (lilac_simt_constant_bits(r->b->kernel, x, &bits)) {
        return !__builtin_add_overflow(s->constant, lilac_simt_signed(r->type, bits), &s->constant);
    }
    if (r->b->kernel->values[x].body != r->body) {
        bool first = s->part == 0;
        s->part = x;
        return first;
    }
    const instruction *d = lilac_simt_defined_by(r->b, x, LILAC_SIMT_OP_ADD);
    return d != NULL && depth > 0 && add_up(r, d->operands[0], depth - 1, s) &&
           add_up(r, d->operands[1], depth - 1, s);
}

/* Is it the mask of a row? The counter itself is always below the bound and needs no mask. */
static bool is_mask(const rest *r, const instruction *i, sum *s) {
    *s = (sum){0};
    if (i->code != LILAC_SIMT_OP_CMP || i->detail != LILAC_SIMT_LT || i->operands[1] != r->upper ||
        i->operands[0] == r->counter || !add_up(r, i->operands[0], 4, s) || !s->counts ||
        s->constant < 0 || s->constant >= r->step) {
        return false;
    }
    uint64_t most = s->part == 0 ? 0 : lilac_simt_possible(r->b, s->part);
    return most < (uint64_t)(r->step - s->constant);
}

static uint32_t part_of(rest *r, lilac_simt_value part) {
    uint32_t k = 0;
    while (k < r->part_count && r->parts[k] != part) {
        k++;
    }
    if (k == r->part_count && k < MOST_PARTS) {
        r->parts[r->part_count++] = part;
    }
    return k;
}

/* Instructions removed less instructions added. A mask of 64 bits is two instructions, and
 * assemblers repeat the second one for each mask that it is combined with. */
static int64_t gain(rest *r, bool positive, const uint32_t *uses, uint32_t count) {
    bool wide = r->type == LILAC_SIMT_I64;
    int64_t gained = wide ? -5 : positive ? -1 : -2;
    sum s;
    for (const instruction *i = r->body->first; i != NULL; i = i->next) {
        if (!is_mask(r, i, &s)) {
            continue;
        }
        if (part_of(r, s.part) == MOST_PARTS) {
            return 0;
        }
        bool goes = i->operands[0] < count && uses[i->operands[0]] == 1;
        uint32_t used = i->result < count ? uses[i->result] : 0;
        gained += wide ? used + (goes ? 2 : 0) : goes;
    }
    for (uint32_t k = 0; k < r->part_count; k++) {
        gained -= r->parts[k] != 0;
    }
    return gained;
}

/* The number of rows from the counter on, at most a step. */
static lilac_simt_value rows_left(const rest *r, bool positive) {
    lilac_simt_builder *b = r->b;
    lilac_simt_value n = lilac_simt_op2(b, LILAC_SIMT_OP_SUB, r->type, r->upper, r->counter);
    if (r->type == LILAC_SIMT_I64 || !positive) {
        lilac_simt_value step = lilac_simt_constant(b, r->type, (uint64_t)r->step);
        n = lilac_simt_op2(b, LILAC_SIMT_OP_MIN_U, r->type, n, step);
    }
    return r->type == LILAC_SIMT_I64 ? lilac_simt_op1(b, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I32, n)
                                     : n;
}

static lilac_simt_value less(const rest *r, lilac_simt_value n, lilac_simt_value part) {
    if (part == 0) {
        return n;
    }
    if (r->type == LILAC_SIMT_I64) {
        part = lilac_simt_op1(r->b, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I32, part);
    }
    return lilac_simt_op2(r->b, LILAC_SIMT_OP_SUB, LILAC_SIMT_I32, n, part);
}

/* Rewrites the masks of one loop's body; the builder's memo holds the values computed before it. */
static bool rewrite_masks(lilac_simt_builder *b, lilac_simt_body *body, const uint32_t *uses,
                          uint32_t count) {
    const instruction *loop = body->parent;
    uint64_t step, lower;
    if (loop == NULL || loop->code != LILAC_SIMT_OP_LOOP ||
        !lilac_simt_constant_bits(b->kernel, loop->operands[2], &step)) {
        return false;
    }
    rest r = {.b = b,
              .body = body,
              .counter = body->argument,
              .upper = loop->operands[1],
              .type = lilac_simt_type_of(b->kernel, body->argument)};
    r.step = lilac_simt_signed(r.type, step);
    bool positive = lilac_simt_constant_bits(b->kernel, loop->operands[0], &lower) &&
                    lilac_simt_signed(r.type, lower) >= 0;
    if (r.step <= 0 || r.step > INT32_MAX || gain(&r, positive, uses, count) < LEAST) {
        return false;
    }
    instruction *first = body->first;
    b->body = body;
    b->location = loop->location;
    b->memo->before = first;
    lilac_simt_value n = rows_left(&r, positive);
    for (uint32_t k = 0; k < r.part_count; k++) {
        r.left[k] = less(&r, n, r.parts[k]);
    }
    sum s;
    for (instruction *i = first; i != NULL; i = i->next) {
        if (is_mask(&r, i, &s)) {
            i->detail = LILAC_SIMT_GT;
            i->operands[0] = r.left[part_of(&r, s.part)];
            i->operands[1] = lilac_simt_constant(b, LILAC_SIMT_I32, (uint64_t)s.constant);
        }
    }
    return true;
}

/* ---- the walk --------------------------------------------------------------------------- */

/* Does the loop have a constant step and a comparison with its upper bound? */
static bool has_candidate(const lilac_simt_kernel *kernel, const lilac_simt_body *body) {
    const instruction *loop = body->parent;
    uint64_t step;
    const bool counts = loop != NULL && loop->code == LILAC_SIMT_OP_LOOP &&
                        lilac_simt_constant_bits(kernel, loop->operands[2], &step);
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        if (counts && i->code == LILAC_SIMT_OP_CMP && i->detail == LILAC_SIMT_LT &&
            i->operands[1] == loop->operands[1] && i->operands[0] != body->argument) {
            return true;
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            if (has_candidate(kernel, i->bodies[k])) {
                return true;
            }
        }
    }
    return false;
}

/* Makes a computed value available to what is built later, and learns its known bits. */
static void remember(lilac_simt_builder *b, const instruction *i) {
    uint32_t hash;
    lilac_simt_type type = lilac_simt_type_of(b->kernel, i->result);
    if (i->operand_count == 0 && i->parent != b->kernel->body) {
        return; /* the memo keeps leaves of the kernel's body only */
    }
    if (lilac_simt_memo_find(b->memo, b->kernel, i, i->result_count, type, &hash) == 0) {
        lilac_simt_memo_add(b->memo, i, hash);
    }
    lilac_simt_learn(b, i);
}

static bool walk(lilac_simt_builder *b, lilac_simt_body *body, const uint32_t *uses,
                 uint32_t count) {
    uint32_t mark = lilac_simt_memo_open(b->memo);
    bool changed = rewrite_masks(b, body, uses, count);
    for (instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            changed |= walk(b, i->bodies[k], uses, count);
        }
        if (lilac_simt_has_trait(i->code, LILAC_SIMT_PURE) && i->result_count > 0) {
            remember(b, i);
        }
    }
    lilac_simt_memo_close(b->memo, mark);
    return changed;
}

bool lilac_simt_opt_tail_masks(lilac_simt_kernel *kernel) {
    if (!has_candidate(kernel, kernel->body)) {
        return false;
    }
    const uint32_t count = kernel->value_count;
    uint32_t *uses = lilac_heap_grow(NULL, sizeof *uses * count);
    memset(uses, 0, sizeof *uses * count);
    lilac_simt_count_uses(kernel->body, uses);
    lilac_simt_builder b;
    lilac_simt_builder_init(&b, kernel);
    const bool changed = walk(&b, kernel->body, uses, count);
    lilac_simt_builder_clear(&b);
    lilac_heap_free(uses);
    if (changed) {
        lilac_simt_infer_uniform(kernel);
    }
    return changed;
}
