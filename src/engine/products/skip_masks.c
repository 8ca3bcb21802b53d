/* skip_masks: a mask that is true for a whole tile is not computed.
 *
 *     %m = arith.cmpi sge, %row, %column            %all = smallest row >= largest column
 *     %r = arith.select %m, %s, %other         →    %r = scf.if %all {
 *                                                     scf.yield %s
 *                                                   } else {
 *                                                     %m = arith.cmpi sge, %row, %column
 *                                                     %t = arith.select %m, %s, %other
 *                                                     scf.yield %t
 *                                                   }
 *
 * In attention with a causal mask, or with a length that is no multiple of the tile, the mask
 * changes something in few iterations only, but costs two or three instructions for each element in
 * all of them.
 *
 * Where the product with a positive number is masked, and what is masked only has its maximum taken and
 * is added to, the number leaves the branch: 1 for tiles that are masked. A scalar of the program may be
 * anything, so %all then includes that it is positive and finite. What follows is then one fused
 * multiply-add for each element, as without a mask (scale_extremes):
 *
 *     %s = arith.mulf %x, dense<1.44>              %r, %k = scf.if %all {
 *     %r = arith.select %m, %s, %other               scf.yield %x, 1.44
 *     %h = tt.reduce(%r) {maxnumf}                 } else {
 *     %d = arith.subf %r, %h                   →     %t = arith.select %m, %x · 1.44, %other
 *                                                    scf.yield %t, 1.0
 *                                                  }
 *                                                  %h = tt.reduce(%r) {maxnumf} · %k
 *                                                  %d = arith.subf %r · %k, %h
 *
 * A mask may be a conjunction of comparisons. Their operands are sums of uniform scalars, ranges
 * and constants of type i32. Their bounds are computed in 64 bits. A sum of 32 bits that wraps is
 * no bound, so the branch is taken only where the bounds are numbers of 32 bits. Only masks in
 * loops with products of matrices that have LEAST elements in a thread: elsewhere memory binds. */
#include "emit.h"
#include "simplify/scale_extremes.h"

#include <lilac/tile_loops.h>

#include <string.h>

enum { LEAST = 8, MOST_TERMS = 8, MOST_DEPTH = 16, MOST_CONDITIONS = 4 };
enum { ONE = 0x3F800000, INFINITY_BITS = 0x7F800000 }; /* of f32 */

/* A sum of scalars and a number between two constants. */
typedef struct bounds {
    uint32_t count;
    lilac_tile_value *terms[MOST_TERMS];
    int64_t low, high;
} bounds;

typedef struct skipping {
    lilac_tile_module *module;
    lilac_tile_block *body;
    bool changed;
} skipping;

/* ---- bounds ---------------------------------------------------------------------------------- */

static bool add_constant(bounds *b, const lilac_tile_op *op) {
    const lilac_tile_attribute *found = lilac_tile_find(&op->attributes, "value");
    if (found == NULL || found->kind != LILAC_TILE_ATTR_DENSE || found->count != 1) {
        return false;
    }
    b->low += (int32_t)found->integers[0];
    b->high += (int32_t)found->integers[0];
    return true;
}

static bool add_bounds(bounds *b, lilac_tile_value *value, uint32_t depth) {
    const lilac_tile_op *op = value->op;
    if (op == NULL || depth == 0) {
        return false;
    }
    switch (op->code) {
    case LILAC_TILE_OP_TT_MAKE_RANGE:
        b->low += lilac_tile_find_integer(&op->attributes, "start", 0);
        b->high += lilac_tile_find_integer(&op->attributes, "end", 1) - 1;
        return true;
    case LILAC_TILE_OP_TT_SPLAT:
        if (b->count == MOST_TERMS) {
            return false;
        }
        b->terms[b->count++] = op->operands[0].value;
        return true;
    case LILAC_TILE_OP_ARITH_CONSTANT:
        return add_constant(b, op);
    case LILAC_TILE_OP_TT_BROADCAST:
    case LILAC_TILE_OP_TT_EXPAND_DIMS:
    case LILAC_TILE_OP_TTG_CONVERT_LAYOUT:
        return add_bounds(b, op->operands[0].value, depth - 1);
    case LILAC_TILE_OP_ARITH_ADDI:
        return add_bounds(b, op->operands[0].value, depth - 1) &&
               add_bounds(b, op->operands[1].value, depth - 1);
    default:
        return false;
    }
}

/* The lower or the upper bound as an i64. */
static lilac_tile_value *emit_bound(const lilac_emitter *e, const bounds *b, bool upper) {
    lilac_tile_value *sum =
        lilac_emit_integer(e, lilac_tile_scalar(e->module, LILAC_I64), upper ? b->high : b->low);
    for (uint32_t i = 0; i < b->count; i++) {
        sum = lilac_emit_sum(e, sum, lilac_emit_i64(e, b->terms[i]));
    }
    return sum;
}

/* ---- which selects --------------------------------------------------------------------------- */

/* The comparison as a >= b or a > b, with its operands in this order. */
static bool read_comparison(const lilac_tile_op *op, lilac_tile_value **larger,
                            lilac_tile_value **smaller, bool *strict) {
    const lilac_tile_attribute *predicate = lilac_tile_find(&op->attributes, "predicate");
    static const struct {
        const char *name;
        bool exchanged, strict;
    } known[] = {
        {"sge", false, false}, {"sgt", false, true}, {"sle", true, false}, {"slt", true, true}};
    for (uint32_t i = 0; predicate != NULL && i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(predicate->text, known[i].name) == 0) {
            *larger = op->operands[known[i].exchanged ? 1 : 0].value;
            *smaller = op->operands[known[i].exchanged ? 0 : 1].value;
            *strict = known[i].strict;
            return true;
        }
    }
    return false;
}

/* A comparison that a mask is made of, larger >= smaller or larger > smaller. */
typedef struct condition {
    bounds larger, smaller;
    bool strict;
} condition;

/* Adds the comparisons of which the mask is the conjunction. False: it is something else. */
static bool add_conditions(condition *conditions, uint32_t *count, const lilac_tile_value *mask,
                           uint32_t depth) {
    const lilac_tile_op *op = mask->op;
    if (op == NULL || depth == 0) {
        return false;
    }
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_ANDI:
        return add_conditions(conditions, count, op->operands[0].value, depth - 1) &&
               add_conditions(conditions, count, op->operands[1].value, depth - 1);
    case LILAC_TILE_OP_TT_BROADCAST:
    case LILAC_TILE_OP_TT_EXPAND_DIMS:
    case LILAC_TILE_OP_TTG_CONVERT_LAYOUT:
        return add_conditions(conditions, count, op->operands[0].value, depth - 1);
    case LILAC_TILE_OP_ARITH_CMPI:
        break;
    default:
        return false;
    }
    lilac_tile_value *larger, *smaller;
    condition *c = &conditions[*count];
    if (*count == MOST_CONDITIONS || lilac_tile_element_bits(op->operands[0].value->type) != 32 ||
        !read_comparison(op, &larger, &smaller, &c->strict)) {
        return false;
    }
    c->larger = c->smaller = (bounds){0};
    (*count)++;
    return add_bounds(&c->larger, larger, MOST_DEPTH) &&
           add_bounds(&c->smaller, smaller, MOST_DEPTH);
}

static bool has_product(const lilac_tile_block *body) {
    bool found = false;
    for (const lilac_tile_op *op = body->first; op != NULL; op = op->next) {
        found |= op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT || op->code == LILAC_TILE_OP_TT_DOT;
    }
    return found;
}

/* Is the tensor worth a branch? */
static bool is_large(const lilac_tile_type *type) {
    return lilac_tile_is_tensor(type) && type->layout != NULL && type->layout->in_count > 0 &&
           1U << type->layout->in[0].bits >= LEAST;
}

/* ---- rewriting ------------------------------------------------------------------------------- */

/* Moves the operation in front of `place`, and what only it needs of the body before it. */
static void move(const skipping *s, lilac_tile_op *op, lilac_tile_op *place) {
    lilac_tile_detach(op);
    lilac_tile_insert_before(place, op);
    for (uint32_t i = 0; i < op->operand_count; i++) {
        lilac_tile_value *value = op->operands[i].value;
        if (value->op != NULL && value->op->parent == s->body && value->uses->next == NULL &&
            value->op->region_count == 0 && value->op->result_count == 1 &&
            (lilac_tile_op_info_get(value->op->code)->traits & LILAC_TILE_PURE) != 0) {
            move(s, value->op, op);
        }
    }
}

static lilac_tile_op *append_yield(const skipping *s, lilac_tile_block *block, uint32_t count,
                                   lilac_tile_value *const *values, const lilac_tile_op *like) {
    lilac_tile_op *yield = lilac_tile_op_create(s->module, LILAC_TILE_OP_SCF_YIELD, count, values,
                                                0, NULL, 0, like->location);
    yield->position = like->position;
    lilac_tile_append(block, yield);
    return yield;
}

/* Is the comparison true for all elements? */
static lilac_tile_value *emit_test(const lilac_emitter *e, const condition *c) {
    const lilac_tile_type *wide = lilac_tile_scalar(e->module, LILAC_I64);
    lilac_tile_value *most = emit_bound(e, &c->smaller, true);
    lilac_tile_value *least = emit_bound(e, &c->larger, false);
    lilac_tile_value *holds = lilac_emit_compare(e, c->strict ? "sgt" : "sge", least, most);
    lilac_tile_value *limit = lilac_emit_integer(e, wide, INT32_MAX);
    lilac_tile_value *fits = lilac_emit_compare(e, "sle", emit_bound(e, &c->larger, true), limit);
    limit = lilac_emit_integer(e, wide, INT32_MIN);
    lilac_tile_value *reaches =
        lilac_emit_compare(e, "sge", emit_bound(e, &c->smaller, false), limit);
    lilac_tile_value *both = lilac_emit_binary(e, LILAC_TILE_OP_ARITH_ANDI, holds, fits);
    return lilac_emit_binary(e, LILAC_TILE_OP_ARITH_ANDI, both, reaches);
}

/* What is masked: a product with a factor that can leave the branch. */
typedef struct scaled_tile {
    lilac_tile_value *plain;  /* without the factor; NULL: it is no such product */
    uint64_t number;          /* the factor's bits … */
    lilac_tile_value *scalar; /* … or where it is computed */
} scaled_tile;

static scaled_tile scaled_of(const lilac_tile_op *select) {
    const lilac_tile_op *product = select->operands[1].value->op;
    if (product == NULL || product->code != LILAC_TILE_OP_ARITH_MULF ||
        product->results[0].uses->next != NULL ||
        lilac_tile_element(product->results[0].type)->scalar != LILAC_F32 ||
        !lilac_extremes_has_known_uses(&select->results[0])) {
        return (scaled_tile){0};
    }
    for (uint32_t k = 0; k < 2; k++) {
        lilac_tile_value *factor = product->operands[k].value;
        const scaled_tile found = {.plain = product->operands[1 - k].value,
                                   .number = lilac_extremes_positive_number(factor),
                                   .scalar = factor->op != NULL &&
                                                     factor->op->code == LILAC_TILE_OP_TT_SPLAT
                                                 ? factor->op->operands[0].value
                                                 : NULL};
        if (found.number != 0 || found.scalar != NULL) {
            return found;
        }
    }
    return (scaled_tile){0};
}

/* Is the scalar positive and finite? Its bits are in order then. */
static lilac_tile_value *emit_is_positive(const lilac_emitter *e, lilac_tile_value *scalar) {
    const lilac_tile_type *word = lilac_tile_scalar(e->module, LILAC_I32);
    lilac_tile_value *bits = lilac_emit_unary(e, LILAC_TILE_OP_ARITH_BITCAST, word, scalar);
    lilac_tile_value *positive = lilac_emit_compare(e, "sgt", bits, lilac_emit_integer(e, word, 0));
    lilac_tile_value *finite =
        lilac_emit_compare(e, "slt", bits, lilac_emit_integer(e, word, INFINITY_BITS));
    return lilac_emit_binary(e, LILAC_TILE_OP_ARITH_ANDI, positive, finite);
}

/* The value times the scalar. */
static lilac_tile_value *emit_scaled(const lilac_emitter *e, lilac_tile_value *value,
                                     lilac_tile_value *scalar) {
    return lilac_emit_binary(e, LILAC_TILE_OP_ARITH_MULF, value,
                             lilac_emit_unary(e, LILAC_TILE_OP_TT_SPLAT, value->type, scalar));
}

/* The users of what is masked use it times the factor; extremes are taken before. */
static void scale_uses(const skipping *s, lilac_tile_op *branch, lilac_tile_op *select) {
    const lilac_emitter behind = {s->module, branch->next};
    lilac_tile_value *plain = &branch->results[0], *scale = &branch->results[1];
    lilac_tile_value *scaled = emit_scaled(&behind, plain, scale);
    for (lilac_tile_use *use = select->results[0].uses, *next; use != NULL; use = next) {
        next = use->next;
        lilac_tile_op *user = use->op;
        if (!lilac_extremes_is_reduction(user)) {
            lilac_tile_set_operand(user, use->index, scaled);
            continue;
        }
        const lilac_emitter after = {s->module, user->next};
        lilac_tile_value *extreme = emit_scaled(&after, plain, scale); /* of plain for now */
        extreme->type = user->results[0].type;
        extreme->op->operands[1].value->type = extreme->type;
        lilac_tile_replace_uses(&user->results[0], extreme);
        lilac_tile_set_operand(extreme->op, 0, &user->results[0]);
        lilac_tile_set_operand(user, 0, plain);
    }
}

static void skip(skipping *s, lilac_tile_op *select, const condition *conditions, uint32_t count) {
    const lilac_emitter e = {.module = s->module, .place = select};
    const lilac_tile_type *types[2] = {select->results[0].type,
                                       lilac_tile_scalar(s->module, LILAC_F32)};
    const scaled_tile scaled = scaled_of(select);
    const uint32_t results = scaled.plain != NULL ? 2 : 1;
    lilac_tile_value *all = emit_test(&e, &conditions[0]);
    for (uint32_t i = 1; i < count; i++) {
        all = lilac_emit_binary(&e, LILAC_TILE_OP_ARITH_ANDI, all, emit_test(&e, &conditions[i]));
    }
    lilac_tile_value *kept[2] = {select->operands[1].value}, *masked[2] = {&select->results[0]};
    if (scaled.plain != NULL) {
        kept[0] = scaled.plain;
        kept[1] = scaled.scalar;
        masked[1] = &lilac_engine_make_constant(s->module, select, types[1], ONE)->results[0];
    }
    if (scaled.number != 0) {
        kept[1] = &lilac_engine_make_constant(s->module, select, types[1], (int64_t)scaled.number)
                       ->results[0];
    } else if (scaled.scalar != NULL) {
        all = lilac_emit_binary(&e, LILAC_TILE_OP_ARITH_ANDI, all,
                                emit_is_positive(&e, scaled.scalar));
    }
    lilac_tile_op *branch = lilac_tile_op_create(s->module, LILAC_TILE_OP_SCF_IF, 1, &all, results,
                                                 types, 2, select->location);
    branch->position = select->position;
    branch->results[0].name = select->results[0].name;
    lilac_tile_insert_before(select, branch);
    lilac_tile_block *then = lilac_tile_block_create(s->module, branch->regions[0]);
    lilac_tile_block *otherwise = lilac_tile_block_create(s->module, branch->regions[1]);
    if (scaled.plain != NULL) {
        scale_uses(s, branch, select);
    } else {
        lilac_tile_replace_uses(&select->results[0], &branch->results[0]);
    }
    (void)append_yield(s, then, results, kept, select);
    lilac_tile_op *yield = append_yield(s, otherwise, results, masked, select);
    move(s, select, yield);
    s->changed = true;
}

static void visit_select(skipping *s, lilac_tile_op *op) {
    const lilac_tile_value *mask = op->operands[0].value;
    condition conditions[MOST_CONDITIONS];
    uint32_t count = 0;
    if (mask->op != NULL && mask->op->parent == s->body && is_large(op->results[0].type) &&
        lilac_tile_is_tensor(mask->type) && add_conditions(conditions, &count, mask, MOST_DEPTH)) {
        skip(s, op, conditions, count);
    }
}

static void visit_region(skipping *s, lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        const bool loop =
            region->parent != NULL && lilac_tile_is_loop(region->parent) && has_product(block);
        for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
            next = op->next;
            for (uint32_t r = 0; r < op->region_count; r++) {
                visit_region(s, op->regions[r]);
            }
            if (loop && op->code == LILAC_TILE_OP_ARITH_SELECT) {
                s->body = block;
                visit_select(s, op);
            }
        }
    }
}

bool lilac_engine_skip_masks(lilac_tile_module *module, const lilac_target *target, bool *changed) {
    skipping s = {.module = module};
    (void)target;
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        if (function->body != NULL) {
            visit_region(&s, function->body);
            lilac_tile_number(function);
        }
    }
    *changed = s.changed;
    return true;
}
