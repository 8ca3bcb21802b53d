/* Range tests: two comparisons of one number with zero and with a bound become one.
 *
 *     %a = cmp ge %x, 0                            %b = max_s %n, 0       (once for all x; of a constant none)
 *     %b = cmp lt %x, %n              →            %m = cmp ult %x, %b
 *     %m = and %a, %b
 *
 *     or (cmp lt %x, 0), (cmp ge %x, %n)           cmp uge %x, (max_s %n, 0)
 *
 * As an unsigned number, a negative x is above every signed one. If n is negative no x is between
 * 0 and n, and none is below max(n, 0) = 0. The two need not be operands of one conjunction: a tree of
 * conjunctions is searched, each used only by the next one. The bound must be the same for
 * all threads, or a number known not to be negative: otherwise the maximum costs what is saved.
 *
 * Such tests come from paddings: rows and columns of an image, shifted sequences. */
#include "internal.h"

#include <string.h>

enum { MOST_LEAVES = 16, MOST_DEPTH = 12 };

typedef lilac_simt_instruction instruction;

/* A tree of conjunctions (code: and) or disjunctions (or). */
typedef struct tree {
    lilac_simt_opcode code;
    uint32_t count;
    lilac_simt_value leaves[MOST_LEAVES];
    bool fits;
} tree;

typedef struct merging {
    lilac_simt_builder b;
    const uint32_t *uses;
    bool *inner;    /* by value: part of the tree of its user */
    uint32_t count; /* of the values that the kernel had */
    bool changed;
} merging;

static instruction *definition_of(const merging *m, lilac_simt_value value) {
    return m->b.kernel->values[value].definition;
}

static bool is_joint(const merging *m, const instruction *i, lilac_simt_opcode code) {
    return i != NULL && i->code == code &&
           lilac_simt_type_of(m->b.kernel, i->result) == LILAC_SIMT_I1;
}

/* Does only one instruction use it, in the same tree? */
static bool is_inner(const merging *m, const instruction *i, const instruction *root) {
    return is_joint(m, i, (lilac_simt_opcode)root->code) && i->parent == root->parent &&
           i->result < m->count && m->uses[i->result] == 1;
}

static void add_leaves(const merging *m, tree *t, const instruction *i, const instruction *root,
                       uint32_t depth) {
    for (uint32_t k = 0; k < 2 && t->fits; k++) {
        const instruction *d = definition_of(m, i->operands[k]);
        if (depth > 0 && is_inner(m, d, root)) {
            add_leaves(m, t, d, root, depth - 1);
        } else if (t->count == MOST_LEAVES) {
            t->fits = false;
        } else {
            t->leaves[t->count++] = i->operands[k];
        }
    }
}

/* ---- the comparisons ------------------------------------------------------------------------- */

/* The comparison that must hold for x to be in the range: of the leaf itself, or of its opposite
 * where the leaf says that x is outside. */
static lilac_simt_compare inside(const tree *t, const instruction *leaf) {
    const lilac_simt_compare kind = (lilac_simt_compare)leaf->detail;
    return t->code == LILAC_SIMT_OP_AND ? kind : lilac_simt_compare_inverse(kind, false);
}

static const instruction *comparison(const merging *m, lilac_simt_value leaf) {
    const instruction *d = definition_of(m, leaf);
    return d != NULL && d->code == LILAC_SIMT_OP_CMP &&
                   lilac_simt_type_is_integer(lilac_simt_type_of(m->b.kernel, d->operands[0]))
               ? d
               : NULL;
}

/* The number that the leaf says is not negative; 0: none. */
static lilac_simt_value natural_of(const merging *m, const tree *t, lilac_simt_value leaf) {
    const instruction *c = comparison(m, leaf);
    if (c == NULL) {
        return 0;
    }
    for (uint32_t side = 0; side < 2; side++) {
        const lilac_simt_compare kind =
            side == 0 ? inside(t, c) : lilac_simt_compare_swapped(inside(t, c));
        const lilac_simt_type type = lilac_simt_type_of(m->b.kernel, c->operands[0]);
        uint64_t bits;
        if (lilac_simt_constant_bits(m->b.kernel, c->operands[1 - side], &bits)) {
            const int64_t number = lilac_simt_signed(type, bits);
            if ((kind == LILAC_SIMT_GE && number == 0) || (kind == LILAC_SIMT_GT && number == -1)) {
                return c->operands[side];
            }
        }
    }
    return 0;
}

/* The bound that the leaf says x is below; 0: none. */
static lilac_simt_value bound_of(const merging *m, const tree *t, lilac_simt_value leaf,
                                 lilac_simt_value x) {
    const instruction *c = comparison(m, leaf);
    if (c == NULL) {
        return 0;
    }
    const lilac_simt_compare kind = inside(t, c);
    return kind == LILAC_SIMT_LT && c->operands[0] == x   ? c->operands[1]
           : kind == LILAC_SIMT_GT && c->operands[1] == x ? c->operands[0]
                                                          : 0;
}

/* Does it cost less than a comparison to make sure that the bound is not negative? */
static bool is_cheap(const merging *m, lilac_simt_value bound) {
    const lilac_simt_type type = lilac_simt_type_of(m->b.kernel, bound);
    const uint64_t sign = UINT64_C(1) << (lilac_simt_type_widths[type] - 1);
    return m->b.kernel->values[bound].uniform || (lilac_simt_possible(&m->b, bound) & sign) == 0;
}

static lilac_simt_value natural(merging *m, lilac_simt_value bound) {
    const lilac_simt_type type = lilac_simt_type_of(m->b.kernel, bound);
    const uint64_t sign = UINT64_C(1) << (lilac_simt_type_widths[type] - 1);
    return (lilac_simt_possible(&m->b, bound) & sign) == 0
               ? bound
               : lilac_simt_op2(&m->b, LILAC_SIMT_OP_MAX_S, type, bound,
                                lilac_simt_constant(&m->b, type, 0));
}

/* ---- the tree -------------------------------------------------------------------------------- */

/* Replaces two leaves by one. False: there are no two. */
static bool merge_two(merging *m, tree *t, instruction *root) {
    for (uint32_t i = 0; i < t->count; i++) {
        const lilac_simt_value x = natural_of(m, t, t->leaves[i]);
        for (uint32_t k = 0; x != 0 && k < t->count; k++) {
            const lilac_simt_value bound = bound_of(m, t, t->leaves[k], x);
            if (k == i || bound == 0 || !is_cheap(m, bound)) {
                continue;
            }
            m->b.memo->before = root;
            t->leaves[k < i ? k : i] = lilac_simt_compare_values(
                &m->b, t->code == LILAC_SIMT_OP_AND ? LILAC_SIMT_ULT : LILAC_SIMT_UGE, x,
                natural(m, bound));
            memmove(&t->leaves[k < i ? i : k], &t->leaves[k < i ? i + 1 : k + 1],
                    (--t->count - (k < i ? i : k)) * sizeof *t->leaves);
            return true;
        }
    }
    return false;
}

/* The root becomes the last joint of the leaves, or the only one of them. */
static void rebuild(merging *m, const tree *t, instruction *root) {
    lilac_simt_value joint = t->leaves[0];
    for (uint32_t i = 1; i + 1 < t->count; i++) {
        joint = lilac_simt_op2(&m->b, t->code, LILAC_SIMT_I1, joint, t->leaves[i]);
    }
    root->operands[0] = joint;
    root->operands[1] = t->leaves[t->count - 1];
}

static void visit_tree(merging *m, instruction *root) {
    tree t = {.code = (lilac_simt_opcode)root->code, .fits = true};
    add_leaves(m, &t, root, root, MOST_DEPTH);
    bool merged = false;
    while (t.fits && t.count > 1 && merge_two(m, &t, root)) {
        merged = true;
    }
    if (merged) {
        rebuild(m, &t, root);
        m->changed = true;
    }
}

/* Finds the roots of trees: what is not an inner part of another one. */
static void find_inner(merging *m, const lilac_simt_body *body) {
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            find_inner(m, i->bodies[k]);
        }
        const bool joins = is_joint(m, i, LILAC_SIMT_OP_AND) || is_joint(m, i, LILAC_SIMT_OP_OR);
        for (uint32_t k = 0; joins && k < 2; k++) {
            m->inner[i->operands[k]] |= is_inner(m, definition_of(m, i->operands[k]), i);
        }
    }
}

static void visit(merging *m, lilac_simt_body *body) {
    const uint32_t mark = lilac_simt_memo_open(m->b.memo);
    for (instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            visit(m, i->bodies[k]);
        }
        const bool joins = is_joint(m, i, LILAC_SIMT_OP_AND) || is_joint(m, i, LILAC_SIMT_OP_OR);
        if (joins && i->result < m->count && !m->inner[i->result]) {
            m->b.body = body;
            m->b.location = i->location;
            visit_tree(m, i);
        }
        if (lilac_simt_has_trait(i->code, LILAC_SIMT_PURE) && i->result_count > 0) {
            lilac_simt_learn(&m->b, i);
        }
    }
    lilac_simt_memo_close(m->b.memo, mark);
}

bool lilac_simt_opt_merge_range_tests(lilac_simt_kernel *kernel) {
    const uint32_t count = kernel->value_count;
    uint32_t *uses = lilac_heap_grow(NULL, sizeof *uses * count);
    memset(uses, 0, sizeof *uses * count);
    lilac_simt_count_uses(kernel->body, uses);
    bool *inner = lilac_heap_grow(NULL, count);
    memset(inner, 0, count);
    merging m = {.uses = uses, .inner = inner, .count = count};
    lilac_simt_builder_init(&m.b, kernel);
    find_inner(&m, kernel->body);
    visit(&m, kernel->body);
    lilac_simt_builder_clear(&m.b);
    lilac_heap_free(inner);
    lilac_heap_free(uses);
    if (m.changed) {
        lilac_simt_infer_uniform(kernel);
    }
    return m.changed;
}
