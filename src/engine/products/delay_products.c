/* delay_products: a product of what this iteration computed is executed in the next one, so that
 * tensor cores work while this iteration computes.
 *
 *     scf.for … iter_args(%o = 0, %slot) {          scf.for … iter_args(%f = 0, %slot, %q = 0, %b = 0, %before) {
 *       %s = product of %ring_k[%slot]                %o = wait %f
 *       %p, %a = softmax(%s)                          %t = truncf %q
 *       %c = mulf %o, %a                     →        %s = product of %ring_k[%slot]
 *       %t = truncf %p                                %c = mulf %o, %b
 *       %n = product of %t, %ring_v[%slot], %c        %n = product of %t, %ring_v[%before], %c   in flight
 *       scf.yield %n, …                               %p, %a = softmax(%s)
 *     }                                               scf.yield %n, …, %p, %a, %slot
 *                                                   }
 *                                                   the same with the last %p and %a
 *
 * In attention the softmax of an iteration then overlaps with the product of the iteration before.
 * The product stays in flight over the back edge, because ptxas moves a wait within a body as early
 * as it can. For the same reason what is carried is %p and not %t, whose registers the product
 * still reads. No sum changes: the products are added in the same order. The first iteration adds a
 * product of zeros, for which a buffer of the ring is filled with zeros, to what the sum starts from: that is
 * +0, or a sum of an earlier loop that is never -0, as where a loop over the tiles that a mask leaves whole
 * follows one over the others. Such a sum starts from +0, too, and its scales are exponentials: neither
 * +0 · scale + p nor a further sum is -0 then.
 *
 * A product is delayed if its sum is otherwise used only to be scaled, its first operand is in registers and
 * is computed from another product of the iteration, and its second operand is a loaded tile. pipeline_loops gives the rings one buffer more, which keeps the tile of
 * the iteration before, puts the loop into a conditional (products.c says why), and marks the
 * product (lilac.delayed). */
#include "internal.h"

#include <lilac/tile_loops.h>

#include <string.h>

enum { MOST_SEARCHED = 512, MOST_LOOPS = 8, ONE = 0x3F800000 /* of f32 */ };

/* ---- which products -------------------------------------------------------------------------- */

static bool is_in_body(const lilac_tile_op *loop, const lilac_tile_value *value) {
    return value->op != NULL && value->op->parent == loop->regions[0]->first;
}

typedef struct product_search {
    const lilac_tile_op *loop;
    uint32_t budget;
    bool found;
} product_search;

static bool comes_from_product(const lilac_tile_op *loop, const lilac_tile_value *value,
                               uint32_t *budget);

static void search_operands(void *data, lilac_tile_op *op) {
    product_search *s = data;
    for (uint32_t i = 0; i < op->operand_count && !s->found; i++) {
        s->found = comes_from_product(s->loop, op->operands[i].value, &s->budget);
    }
}

/* Is the value computed from the result of a product of this iteration? */
static bool comes_from_product(const lilac_tile_op *loop, const lilac_tile_value *value,
                               uint32_t *budget) {
    if (!is_in_body(loop, value) || *budget == 0) {
        return false;
    }
    product_search s = {loop, *budget - 1, value->op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT};
    search_operands(&s, value->op);
    for (uint32_t r = 0; r < value->op->region_count && !s.found; r++) {
        lilac_tile_walk(value->op->regions[r], search_operands, &s);
    }
    *budget = s.budget;
    return s.found;
}

/* Moves with the product: a conversion of an operand, in the body, that nothing else uses. */
static bool is_own_conversion(const lilac_tile_op *loop, const lilac_tile_value *value) {
    if (!is_in_body(loop, value) || value->uses->next != NULL) {
        return false;
    }
    switch (value->op->code) {
    case LILAC_TILE_OP_ARITH_TRUNCF:
    case LILAC_TILE_OP_TT_FP_TO_FP:
    case LILAC_TILE_OP_TTG_CONVERT_LAYOUT:
    case LILAC_TILE_OP_TT_BROADCAST:
    case LILAC_TILE_OP_TT_EXPAND_DIMS:
        return true;
    default:
        return false;
    }
}

/* What is carried for an operand: the value before such conversions. */
static lilac_tile_value *source_of(const lilac_tile_op *loop, lilac_tile_value *value) {
    while (is_own_conversion(loop, value)) {
        value = value->op->operands[0].value;
    }
    return value;
}

/* The scale if the accumulator is the product of the sum and something else, which nothing else
 * uses; NULL otherwise. */
static lilac_tile_value *scale_of(const lilac_tile_op *loop, const lilac_tile_value *accumulator,
                                  const lilac_tile_value *sum) {
    const lilac_tile_op *op = accumulator->op;
    if (!is_in_body(loop, accumulator) || op->code != LILAC_TILE_OP_ARITH_MULF ||
        accumulator->uses->next != NULL || sum->uses == NULL || sum->uses->next != NULL ||
        sum->uses->op != op) {
        return NULL;
    }
    return op->operands[1 - sum->uses->index].value;
}

/* Is the scale an exponential of f32, which is not below 0, in any shape and layout? */
static bool is_exponential(const lilac_tile_value *scale) {
    const lilac_tile_op *op = scale->op;
    while (op != NULL &&
           (op->code == LILAC_TILE_OP_TT_BROADCAST || op->code == LILAC_TILE_OP_TT_EXPAND_DIMS ||
            op->code == LILAC_TILE_OP_TTG_CONVERT_LAYOUT)) {
        op = op->operands[0].value->op;
    }
    return op != NULL && lilac_tile_element(scale->type)->scalar == LILAC_F32 &&
           (op->code == LILAC_TILE_OP_MATH_EXP2 || op->code == LILAC_TILE_OP_MATH_EXP);
}

static bool is_never_minus_zero(const lilac_tile_value *sum, uint32_t depth);

/* The sum number k that a loop carries: a product, added to the scaled sum of the iteration before. */
static bool is_never_minus_zero_sum(const lilac_tile_op *loop, uint32_t k, uint32_t depth) {
    const lilac_tile_op *product = lilac_tile_next(loop, k)->op;
    if (product == NULL || product->parent != loop->regions[0]->first ||
        product->code != LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
        return false;
    }
    const lilac_tile_value *scale =
        scale_of(loop, product->operands[2].value, lilac_tile_iteration_argument(loop, k));
    return scale != NULL && is_exponential(scale) &&
           is_never_minus_zero(lilac_tile_init(loop, k), depth);
}

static bool is_never_minus_zero(const lilac_tile_value *sum, uint32_t depth) {
    const lilac_tile_op *op = sum->op;
    if (lilac_tile_is_zero(sum)) {
        return true;
    }
    if (op == NULL || depth == 0) {
        return false;
    }
    if (op->code == LILAC_TILE_OP_SCF_FOR) {
        return is_never_minus_zero_sum(op, sum->index, depth - 1);
    }
    bool never = op->code == LILAC_TILE_OP_SCF_IF;
    for (uint32_t r = 0; never && r < op->region_count; r++) {
        const lilac_tile_op *yield = lilac_tile_terminator(op->regions[r]);
        never = is_never_minus_zero(yield->operands[sum->index].value, depth - 1);
    }
    return never;
}

/* Does the sum start from +0, or from one that is never -0, and stays so? */
static bool starts_without_minus_zero(const lilac_tile_op *loop, uint32_t k,
                                      const lilac_tile_value *scale) {
    const lilac_tile_value *init = lilac_tile_init(loop, k);
    return lilac_tile_is_zero(init) ||
           (is_exponential(scale) && is_never_minus_zero(init, MOST_LOOPS));
}

bool lilac_engine_can_delay(const lilac_tile_op *loop, const lilac_tile_op *op) {
    const lilac_tile_block *body = loop->regions[0]->first;
    if (op->code != LILAC_TILE_OP_TTNG_WARP_GROUP_DOT || op->parent != body) {
        return false;
    }
    const lilac_tile_use *use = op->results[0].uses;
    const lilac_tile_value *a = op->operands[0].value, *b = op->operands[1].value;
    if (use == NULL || use->next != NULL || use->op != body->last) {
        return false;
    }
    const lilac_tile_value *scale =
        scale_of(loop, op->operands[2].value, lilac_tile_iteration_argument(loop, use->index));
    uint32_t budget = MOST_SEARCHED;
    return scale != NULL && starts_without_minus_zero(loop, use->index, scale) &&
           lilac_tile_is_tensor(a->type) && is_in_body(loop, b) &&
           comes_from_product(loop, a, &budget);
}

/* ---- rewriting ------------------------------------------------------------------------------- */

typedef struct delay {
    lilac_tile_module *module;
    const lilac_target *target;
    lilac_tile_op *loop;
} delay;

static lilac_tile_op *make(const delay *d, lilac_tile_opcode code, uint32_t count,
                           lilac_tile_value *const *operands, const lilac_tile_type *type,
                           lilac_tile_op *place) {
    lilac_tile_op *op = lilac_tile_op_create(d->module, code, count, operands, type != NULL, &type,
                                             0, d->loop->location);
    op->position = d->loop->position;
    lilac_tile_insert_before(place, op);
    return op;
}

/* The same view of a ring with another index, before `place`. */
static lilac_tile_value *view(const delay *d, const lilac_tile_value *memory,
                              lilac_tile_value *index, lilac_tile_op *place) {
    const lilac_tile_op *op = memory->op;
    const bool takes_buffer = op->code == LILAC_TILE_OP_TTG_MEMDESC_INDEX;
    lilac_tile_value *inner = takes_buffer ? index : view(d, op->operands[0].value, index, place);
    lilac_tile_op *copy = lilac_tile_clone(d->module, op);
    lilac_tile_set_operand(copy, takes_buffer ? 1 : 0, inner);
    lilac_tile_insert_before(place, copy);
    return &copy->results[0];
}

/* The operation that takes a buffer of the operand's ring. */
static const lilac_tile_op *index_of(const lilac_tile_value *memory) {
    const lilac_tile_op *op = memory->op;
    while (op->code != LILAC_TILE_OP_TTG_MEMDESC_INDEX) {
        op = op->operands[0].value->op;
    }
    return op;
}

/* The copy by threads that fills the ring in the loop; NULL: a tensor copy does. */
static const lilac_tile_op *copy_to(const delay *d, const lilac_tile_value *ring) {
    const lilac_tile_op *op = d->loop->regions[0]->first->first;
    while (op != NULL && !(op->code == LILAC_TILE_OP_TTG_ASYNC_COPY_GLOBAL_TO_LOCAL &&
                           index_of(op->operands[1].value)->operands[0].value == ring)) {
        op = op->next;
    }
    return op;
}

static bool is_late(const lilac_tile_op *op) {
    return lilac_tile_find_integer(&op->attributes, "lilac.late", 0) != 0;
}

/* Where the product of the last iteration is executed: behind the loop, and behind a wait for its
 * copies if these are late. The wait of pipeline_loops remains behind the product, whose buffer may
 * be filled again behind that wait's barrier. */
static lilac_tile_op *behind_loop(const delay *d, const lilac_tile_value *ring) {
    const lilac_tile_op *copy = copy_to(d, ring);
    lilac_tile_op *next = d->loop->next;
    if (copy == NULL || !is_late(copy)) {
        return next;
    }
    if (!is_late(next)) {
        next = make(d, LILAC_TILE_OP_TTG_ASYNC_WAIT, 0, NULL, lilac_tile_token(d->module), next);
        lilac_engine_set_integer(d->module, next, "num", 0);
        lilac_engine_set_integer(d->module, next, "lilac.late", 1);
    }
    return next->next;
}

/* A layout of a buffer in registers: vectors along the rows. */
static const lilac_layout *row_layout(const delay *d, const lilac_tile_type *buffer) {
    static const uint32_t order[2] = {1, 0};
    const uint32_t lanes = d->target->arch->warp_size;
    const uint32_t most = d->target->arch->vector_bytes * 8 / lilac_tile_element_bits(buffer);
    const uint32_t columns = (uint32_t)buffer->shape[1];
    const uint32_t vector = columns < most ? columns : most;
    const uint32_t across = columns / vector < lanes ? columns / vector : lanes;
    lilac_encoding encoding;
    lilac_layout layout;
    lilac_encoding_blocked(&encoding, 2, (const uint32_t[]){1, vector},
                           (const uint32_t[]){lanes / across, across},
                           (const uint32_t[]){d->target->num_warps, 1}, order);
    return lilac_encoding_layout(d->module->context, &layout, &encoding, 2, buffer->shape)
               ? lilac_tile_intern_layout(d->module, &layout)
               : NULL;
}

/* Fills the ring's last buffer with zeros before the loop. */
static void clear_last(const delay *d, const lilac_tile_value *memory, lilac_tile_value *last) {
    const lilac_tile_op *index = index_of(memory);
    const lilac_tile_type *buffer = index->results[0].type;
    const lilac_tile_op *copy = copy_to(d, index->operands[0].value);
    const lilac_tile_type *type = lilac_tile_tensor(
        d->module, buffer->element, buffer->rank, buffer->shape,
        copy != NULL ? copy->operands[0].value->type->layout : row_layout(d, buffer));
    lilac_tile_value *operands[2] = {
        &lilac_engine_make_constant(d->module, d->loop, type, 0)->results[0],
        view(d, &index->results[0], last, d->loop)};
    (void)make(d, LILAC_TILE_OP_TTG_LOCAL_STORE, 2, operands, NULL, d->loop);
    lilac_tile_op *fence = make(d, LILAC_TILE_OP_TTNG_FENCE_ASYNC_SHARED, 0, NULL, NULL, d->loop);
    const lilac_tile_attribute own_block = {.kind = LILAC_TILE_ATTR_BOOL,
                                            .name =
                                                lilac_intern_string(d->module->context, "bCluster"),
                                            .type = lilac_tile_scalar(d->module, LILAC_I1)};
    lilac_tile_set_attribute(d->module, &fence->attributes, &own_block);
}

/* The first product of the body that is not delayed. */
static lilac_tile_op *first_product(const delay *d) {
    lilac_tile_op *op = d->loop->regions[0]->first->first;
    while (op->code != LILAC_TILE_OP_TTNG_WARP_GROUP_DOT ||
           lilac_tile_find_integer(&op->attributes, "lilac.ordered", 0) != 0) {
        op = op->next;
    }
    return op;
}

/* The conversions of a value again, of another source, before `place`. */
static lilac_tile_value *convert(const delay *d, lilac_tile_value *value, lilac_tile_value *source,
                                 lilac_tile_op *place) {
    if (!is_own_conversion(d->loop, value)) {
        return source;
    }
    lilac_tile_value *inner = convert(d, value->op->operands[0].value, source, place);
    lilac_tile_op *copy = lilac_tile_clone(d->module, value->op);
    lilac_tile_set_operand(copy, 0, inner);
    lilac_tile_insert_before(place, copy);
    return &copy->results[0];
}

static lilac_tile_value *wait_for(const delay *d, lilac_tile_value *sum, lilac_tile_op *place) {
    lilac_tile_op *wait =
        make(d, LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT, 1, &sum, sum->type, place);
    lilac_engine_set_integer(d->module, wait, "pendings", 0);
    return &wait->results[0];
}

/* A copy of `like` with other values in the order of its operands, before `place`. */
static lilac_tile_op *again(const delay *d, const lilac_tile_op *like, uint32_t count,
                            lilac_tile_value *const *operands, lilac_tile_op *place) {
    lilac_tile_op *op = lilac_tile_clone(d->module, like);
    for (uint32_t i = 0; i < count; i++) {
        lilac_tile_set_operand(op, i, operands[i]);
    }
    lilac_tile_insert_before(place, op);
    return op;
}

/* Removes what nothing uses any more from an operand of the product on. */
static void remove_unused(lilac_tile_value *value) {
    lilac_tile_op *op = value->op;
    if (op == NULL || value->uses != NULL || op->region_count > 0 ||
        (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) == 0) {
        return;
    }
    lilac_tile_value *operands[3];
    const uint32_t count = op->operand_count < 3 ? op->operand_count : 3;
    for (uint32_t i = 0; i < count; i++) {
        operands[i] = op->operands[i].value;
    }
    lilac_tile_remove(op);
    for (uint32_t i = 0; i < count; i++) {
        remove_unused(operands[i]);
    }
}

/* A delayed product, and what is carried to it. */
typedef struct delayed {
    lilac_tile_op *op;
    uint32_t sum; /* number of the carried value */
    lilac_tile_value *scale;
    lilac_tile_value *carried[3]; /* sources of the first operand and of the scale, the slot */
} delayed;

/* The product with the carried values of the iteration before: its first operand is converted
 * before `early`, the rest is before `place`. */
static lilac_tile_op *execute(const delay *d, const delayed *p, lilac_tile_value *sum,
                              lilac_tile_value *const *values, lilac_tile_op *early,
                              lilac_tile_op *place) {
    const lilac_tile_op *multiply = p->op->operands[2].value->op;
    lilac_tile_value *a = convert(d, p->op->operands[0].value, values[0], early);
    lilac_tile_value *factors[2] = {sum, sum};
    factors[multiply->operands[0].value == p->scale ? 0 : 1] =
        convert(d, p->scale, values[1], place);
    lilac_tile_value *operands[3] = {a, view(d, p->op->operands[1].value, values[2], place),
                                     &again(d, multiply, 2, factors, place)->results[0]};
    return again(d, p->op, 3, operands, place);
}

/* Is the scale the exponential of a difference from what the loop carries, exp2(%highest - %higher)? It is
 * 1 wherever the maximum is that of the iteration before. */
static bool is_often_one(const delay *d, const delayed *p) {
    const lilac_tile_op *op = p->carried[1]->op;
    if (op == NULL || (op->code != LILAC_TILE_OP_MATH_EXP2 && op->code != LILAC_TILE_OP_MATH_EXP)) {
        return false;
    }
    const lilac_tile_op *inner = op->operands[0].value->op;
    if (inner != NULL && inner->code == LILAC_TILE_OP_ARITH_MULF) {
        inner = inner->operands[0].value->op;
    }
    return inner != NULL && inner->code == LILAC_TILE_OP_ARITH_SUBF &&
           inner->operands[0].value->block == d->loop->regions[0]->first &&
           inner->operands[0].value->op == NULL;
}

static void delay_product(const delay *d, lilac_tile_op *op) {
    lilac_tile_op *loop = d->loop;
    const lilac_tile_op *index = index_of(op->operands[1].value);
    delayed p = {.op = op, .sum = op->results[0].uses->index};
    lilac_tile_value *sum = lilac_tile_iteration_argument(loop, p.sum);
    p.scale = scale_of(loop, op->operands[2].value, sum);
    p.carried[0] = source_of(loop, op->operands[0].value);
    p.carried[1] = source_of(loop, p.scale);
    p.carried[2] = index->operands[1].value;
    const int64_t first_scale = lilac_tile_is_zero(lilac_tile_init(loop, p.sum)) ? 0 : ONE;
    lilac_tile_value *inits[3], *arguments[3], *results[3];
    for (uint32_t i = 0; i < 3; i++) {
        const int64_t last_buffer = index->operands[0].value->type->shape[0] - 1;
        const int64_t value = i == 0 ? 0 : i == 1 ? first_scale : last_buffer;
        inits[i] =
            &lilac_engine_make_constant(d->module, loop, p.carried[i]->type, value)->results[0];
    }
    clear_last(d, op->operands[1].value, inits[2]);
    const uint32_t added = lilac_tile_carried_count(loop);
    lilac_tile_add_carried(d->module, loop, 3, inits);
    for (uint32_t i = 0; i < 3; i++) {
        lilac_tile_set_next(loop, added + i, p.carried[i]);
        arguments[i] = lilac_tile_iteration_argument(loop, added + i);
        results[i] = &loop->results[added + i];
    }
    /* in the loop */
    lilac_tile_op *first = first_product(d);
    lilac_tile_value *complete = wait_for(d, sum, loop->regions[0]->first->first);
    lilac_tile_op *now = execute(d, &p, complete, arguments, first, first->next);
    lilac_engine_set_integer(d->module, now, "lilac.ordered", 1);
    lilac_engine_set_integer(d->module, now, "lilac.in_flight", 1);
    if (is_often_one(d, &p)) {
        lilac_tile_op *scaled = now->operands[2].value->op;
        lilac_engine_set_integer(d->module, scaled, "lilac.often_one",
                                 scaled->operands[0].value == complete ? 1 : 0);
    }
    lilac_tile_set_next(loop, p.sum, &now->results[0]);
    /* behind it */
    lilac_tile_op *place = behind_loop(d, index->operands[0].value);
    lilac_tile_value *result = &loop->results[p.sum];
    lilac_tile_value *last = wait_for(d, result, place);
    lilac_tile_op *end = execute(d, &p, last, results, place, place);
    lilac_tile_replace_uses(result, &end->results[0]);
    lilac_tile_set_operand(last->op, 0, result);
    lilac_tile_value *operands[3] = {op->operands[0].value, op->operands[1].value,
                                     op->operands[2].value};
    lilac_tile_remove(op);
    for (uint32_t i = 0; i < 3; i++) {
        remove_unused(operands[i]);
    }
}

static void unmark(lilac_tile_attributes *attributes) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < attributes->count; i++) {
        if (strcmp(attributes->list[i].name, "lilac.delayed") != 0) {
            attributes->list[kept++] = attributes->list[i];
        }
    }
    attributes->count = kept;
}

static bool visit(lilac_tile_module *module, const lilac_target *target,
                  lilac_tile_region *region) {
    bool changed = false;
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
            next = op->next;
            for (uint32_t r = 0; r < op->region_count; r++) {
                changed |= visit(module, target, op->regions[r]);
            }
            if (lilac_tile_find_integer(&op->attributes, "lilac.delayed", 0) != 0) {
                const delay d = {.module = module, .target = target, .loop = region->parent};
                unmark(&op->attributes);
                delay_product(&d, op);
                changed = true;
            }
        }
    }
    return changed;
}

bool lilac_engine_delay_products(lilac_tile_module *module, const lilac_target *target,
                                 bool *changed) {
    *changed = false;
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        if (function->body != NULL && visit(module, target, function->body)) {
            *changed = true;
            lilac_tile_number(function);
        }
    }
    return true;
}
