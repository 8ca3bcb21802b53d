/* Divisions of 64 bits in 32 bits where the numbers allow it at run time.
 *
 *     %q = div_s %x, %d : i64        →        %wide = ((%x | %d) >> 32) != 0
 *     %r = rem_s %y, %d : i64                 … or the same of %y
 *                                             %any = vote some %wide
 *                                             %q, %r = if %any { the divisions as they are }
 *                                                      else { 32-bit divisions of the low halves }
 *
 * The engine has narrowed the divisions whose operands are proved to fit (src/engine/simplify/narrow_divisions.c).
 * Of the others, a 64-bit division is a call of about 100 instructions, a 32-bit one a sequence of about 15. Sizes
 * that torch.compile passes as i64 arguments are almost always below 2^32. Numbers that are not
 * negative and below 2^32 have the same quotient and remainder in unsigned 32-bit arithmetic, of
 * either signedness in 64 bits.
 *
 * The divisions of a body share one branch as far as their operands can be computed before the first
 * of them: a vote and a branch for all elements of a tensor. */
#include "fold/simplify.h"

#include <string.h>

enum { MOST_MEMBERS = 32, MOST_MOVES = 128 };

typedef struct narrowing {
    lilac_simt_builder b;
    uint32_t *position;            /* of each value's definition in the body at hand, from 1 */
    lilac_simt_value *replacement; /* of each value; 0: itself */
    uint32_t count;                /* entries of both */
    instruction *members[MOST_MEMBERS];
    uint32_t member_count;
    bool changed;
} narrowing;

static lilac_simt_value resolve(const narrowing *n, lilac_simt_value value) {
    return value < n->count && n->replacement[value] != 0 ? n->replacement[value] : value;
}

static bool is_candidate(const narrowing *n, const instruction *i) {
    uint64_t bits;
    return lilac_simt_has_trait(i->code, LILAC_SIMT_DIVIDES) &&
           type_of(&n->b, i->result) == LILAC_SIMT_I64 && !constant(&n->b, i->operands[1], &bits) &&
           (!constant(&n->b, i->operands[0], &bits) || bits <= UINT32_MAX);
}

/* ---- what a group needs before it ------------------------------------------------------------ */

/* Is the value defined in front of the group, or outside its body? The results of a branch that this
 * pass has built, which have no position, are in front of all that follows its group. */
static bool is_before(const narrowing *n, lilac_simt_value value, uint32_t first) {
    value = resolve(n, value);
    return value >= n->count || n->position[value] < first ||
           n->b.kernel->values[value].body != n->members[0]->parent;
}

static bool is_member(const narrowing *n, const instruction *i) {
    for (uint32_t k = 0; k < n->member_count; k++) {
        if (n->members[k] == i) {
            return true;
        }
    }
    return false;
}

/* Can the value be computed before the group, whose first member is at `first`? Counts the
 * instructions that have to move, some of them several times. */
static bool can_move(const narrowing *n, lilac_simt_value value, uint32_t first, uint32_t *moves) {
    if (is_before(n, value, first)) {
        return true;
    }
    const instruction *d = n->b.kernel->values[value].definition;
    if (d == NULL || d->body_count > 0 || !lilac_simt_has_trait(d->code, LILAC_SIMT_PURE) ||
        is_member(n, d) || ++*moves > MOST_MOVES) {
        return false;
    }
    for (uint32_t k = 0; k < d->operand_count; k++) {
        if (!can_move(n, d->operands[k], first, moves)) {
            return false;
        }
    }
    return true;
}

static void move(narrowing *n, lilac_simt_value value, uint32_t first) {
    if (is_before(n, value, first)) {
        return;
    }
    instruction *d = n->b.kernel->values[value].definition;
    for (uint32_t k = 0; k < d->operand_count; k++) {
        move(n, d->operands[k], first);
        d->operands[k] = resolve(n, d->operands[k]);
    }
    lilac_simt_move(n->b.kernel, d, n->members[0]);
    for (uint32_t k = 0; k < d->result_count; k++) {
        n->position[d->result + k] = 0;
    }
}

/* Fills the group of the first member with those behind it. */
static void gather(narrowing *n, instruction *first) {
    uint32_t at = n->position[first->result];
    n->members[0] = first;
    n->member_count = 1;
    for (instruction *i = first->next; i != NULL && n->member_count < MOST_MEMBERS; i = i->next) {
        uint32_t moves = 0;
        if (is_candidate(n, i) && can_move(n, i->operands[0], at, &moves) &&
            can_move(n, i->operands[1], at, &moves)) {
            for (uint32_t k = 0; k < 2; k++) {
                move(n, i->operands[k], at);
                i->operands[k] = resolve(n, i->operands[k]);
            }
            n->members[n->member_count++] = i;
        }
    }
}

/* ---- the branch ------------------------------------------------------------------------------ */

/* Is an operand of a member not below 2^32 in any lane of the warp? */
static lilac_simt_value any_wide(narrowing *n) {
    lilac_simt_builder *b = &n->b;
    lilac_simt_value seen[2 * MOST_MEMBERS], all = 0;
    uint32_t count = 0;
    for (uint32_t k = 0; k < 2 * n->member_count; k++) {
        lilac_simt_value value = n->members[k / 2]->operands[k % 2];
        lilac_simt_value high = lilac_simt_op2(b, LILAC_SIMT_OP_SHR_U, LILAC_SIMT_I64, value,
                                               lilac_simt_constant(b, LILAC_SIMT_I64, 32));
        uint32_t old = 0;
        while (old < count && seen[old] != high) {
            old++;
        }
        if (old == count) {
            seen[count++] = high;
            high = lilac_simt_op1(b, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I32, high);
            all = all == 0 ? high : lilac_simt_op2(b, LILAC_SIMT_OP_OR, LILAC_SIMT_I32, all, high);
        }
    }
    return lilac_simt_any_lane(
        b, lilac_simt_compare_values(b, LILAC_SIMT_NE, all,
                                     lilac_simt_constant(b, LILAC_SIMT_I32, 0)));
}

/* A remainder is that of the quotient, which a division of the group may compute too. */
static lilac_simt_value narrow(lilac_simt_builder *b, const instruction *i) {
    lilac_simt_value x = lilac_simt_op1(b, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I32, i->operands[0]);
    lilac_simt_value d = lilac_simt_op1(b, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I32, i->operands[1]);
    lilac_simt_value result = lilac_simt_op2(b, LILAC_SIMT_OP_DIV_U, LILAC_SIMT_I32, x, d);
    if (i->code == LILAC_SIMT_OP_REM_S || i->code == LILAC_SIMT_OP_REM_U) {
        result = lilac_simt_op2(b, LILAC_SIMT_OP_MUL, LILAC_SIMT_I32, result, d);
        result = lilac_simt_op2(b, LILAC_SIMT_OP_SUB, LILAC_SIMT_I32, x, result);
    }
    return lilac_simt_op1(b, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I64, result);
}

static void build_branch(narrowing *n) {
    lilac_simt_builder *b = &n->b;
    lilac_simt_type types[MOST_MEMBERS];
    lilac_simt_value values[MOST_MEMBERS];
    instruction *first = n->members[0];
    b->body = first->parent;
    b->location = first->location;
    b->memo->before = first;
    for (uint32_t k = 0; k < n->member_count; k++) {
        types[k] = LILAC_SIMT_I64;
    }
    instruction *branch = lilac_simt_if_begin(b, any_wide(n), n->member_count, types);
    for (uint32_t k = 0; k < n->member_count; k++) {
        const instruction *i = n->members[k];
        values[k] = lilac_simt_op2(b, (lilac_simt_opcode)i->code, LILAC_SIMT_I64, i->operands[0],
                                   i->operands[1]);
    }
    lilac_simt_if_else(b, branch, values);
    for (uint32_t k = 0; k < n->member_count; k++) {
        values[k] = narrow(b, n->members[k]);
    }
    lilac_simt_value results = lilac_simt_if_end(b, branch, values);
    for (uint32_t k = 0; k < n->member_count; k++) {
        n->replacement[n->members[k]->result] = results + k;
        lilac_simt_unlink(n->members[k]);
    }
    n->changed = true;
}

/* ---- the pass -------------------------------------------------------------------------------- */

static void narrow_body(narrowing *n, lilac_simt_body *body) {
    uint32_t mark = lilac_simt_memo_open(n->b.memo), at = 0;
    for (instruction *i = body->first; i != NULL; i = i->next) {
        at++;
        for (uint32_t k = 0; k < i->result_count; k++) {
            n->position[i->result + k] = at;
        }
    }
    instruction *next;
    for (instruction *i = body->first; i != NULL; i = next) {
        for (uint32_t k = 0; k < i->operand_count; k++) {
            i->operands[k] = resolve(n, i->operands[k]);
        }
        if (is_candidate(n, i)) {
            gather(n, i);
            next = i->next;
            while (next != NULL && is_member(n, next)) {
                next = next->next;
            }
            build_branch(n);
            continue;
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            narrow_body(n, i->bodies[k]);
        }
        next = i->next;
    }
    lilac_simt_memo_close(n->b.memo, mark);
}

static bool has_candidate(const narrowing *n, const lilac_simt_body *body) {
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        if (is_candidate(n, i)) {
            return true;
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            if (has_candidate(n, i->bodies[k])) {
                return true;
            }
        }
    }
    return false;
}

bool lilac_simt_opt_narrow_divisions(lilac_simt_kernel *kernel) {
    narrowing n = {.b = {.kernel = kernel}};
    if (!has_candidate(&n, kernel->body)) {
        return false;
    }
    lilac_simt_opt_dce(kernel); /* operands of divisions without uses are not tested */
    n.count = kernel->value_count;
    size_t size = sizeof(uint32_t) * n.count;
    n.position = lilac_heap_grow(NULL, size);
    n.replacement = lilac_heap_grow(NULL, size);
    memset(n.position, 0, size);
    memset(n.replacement, 0, size);
    lilac_simt_builder_init(&n.b, kernel);
    narrow_body(&n, kernel->body);
    lilac_simt_builder_clear(&n.b);
    lilac_heap_free(n.position);
    lilac_heap_free(n.replacement);
    if (n.changed) {
        lilac_simt_infer_uniform(kernel);
    }
    return n.changed;
}
