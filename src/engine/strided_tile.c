/* strided_tile: which tile of which tensor a load reads through its pointers.
 *
 *     rows    = pid_m * 128 + range,  % M           pointers  a + 128 · pid_m · stride + 64 · k + stride · i₀ + i₁
 *     columns = k * 64 + range                      mask      i₁ < K − 64 · k
 *
 *     a tensor of M rows of K elements, whose rows are `stride` apart; the tile at (128 · pid_m, 64 · k)
 *
 * The mask gives the size of a dimension and where the tile is in it: the terms of the bound that
 * only depend on parameters, and the others. What remains of the address is distributed
 * over the other dimensions, by their strides, and new dimensions in front of size 1 in the tile:
 *
 *     k + head · length · 128 + start · 128 + 128 · i₀ + i₁          dimensions  length · 128, 128, 1
 *                                                                    at          head, start, 0
 *
 * A dimension without a mask is as large as a tensor map allows. Coordinates must not be
 * negative: what is in front of a tensor reads as zero. */
#include "strided_tile.h"

#include <lilac/tile_loops.h>

#include <string.h>

enum { MOST_DEPTH = 24 };

#define UNBOUNDED (INT64_C(1) << 31) /* elements of a dimension that no mask bounds */

/* ---- parameters and programs ----------------------------------------------------------------- */

static bool is_parameter(const lilac_tile_value *value) {
    return value->op == NULL && value->block->parent->parent == NULL;
}

/* The factors of a product that are parameters, with the number, and the others. */
static void split(const lilac_product *p, lilac_product *host, lilac_product *program) {
    *host = (lilac_product){.factor = p->factor};
    *program = (lilac_product){.factor = 1};
    for (uint32_t i = 0; i < p->count; i++) {
        lilac_product *to = is_parameter(p->values[i]) ? host : program;
        to->values[to->count++] = p->values[i];
    }
    program->wide = p->wide && program->count > 1;
}

/* The terms that only depend on parameters, and the others. */
static bool split_sum(const lilac_sum *sum, lilac_sum *host, lilac_sum *program) {
    *host = *program = (lilac_sum){0};
    bool good = true;
    for (uint32_t i = 0; i < sum->count; i++) {
        lilac_product h, p;
        split(&sum->terms[i], &h, &p);
        good = good && lilac_sum_add_product(p.count > 0 ? program : host, &sum->terms[i]);
    }
    return good;
}

/* ---- numbers that are not negative ----------------------------------------------------------- */

static bool is_natural(lilac_tile_conditions *c, lilac_tile_value *value, uint32_t depth);

static bool add_parameter(lilac_tile_conditions *c, const lilac_tile_value *value) {
    if (value->index >= 64) {
        return false;
    }
    c->parameters |= UINT64_C(1) << value->index;
    return true;
}

static bool add_divisor(lilac_tile_conditions *c, lilac_tile_op *division) {
    int64_t number;
    if (lilac_tile_constant(division->operands[1].value, &number)) {
        return number > 0;
    }
    for (uint32_t i = 0; i < c->divisor_count; i++) {
        if (c->divisions[i] == division) {
            return true;
        }
    }
    if (c->divisor_count == sizeof c->divisions / sizeof *c->divisions) {
        return false;
    }
    c->divisions[c->divisor_count++] = division;
    return true;
}

/* The counter of a loop, or what a loop carries from a natural number on. */
static bool is_natural_argument(lilac_tile_conditions *c, const lilac_tile_value *value,
                                uint32_t depth) {
    const lilac_tile_op *loop = value->block->parent->parent;
    int64_t step;
    return loop != NULL && loop->code == LILAC_TILE_OP_SCF_FOR && value->index == 0 &&
           lilac_tile_find(&loop->attributes, "unsignedCmp") == NULL &&
           lilac_tile_constant(lilac_tile_step(loop), &step) && step > 0 &&
           is_natural(c, lilac_tile_lower_bound(loop), depth);
}

/* Are all operands of the operation natural numbers, from number `first` on? */
static bool are_natural(lilac_tile_conditions *c, const lilac_tile_op *op, uint32_t first,
                        uint32_t depth) {
    bool natural = true;
    for (uint32_t i = first; natural && i < op->operand_count; i++) {
        natural = is_natural(c, op->operands[i].value, depth);
    }
    return natural;
}

static bool is_natural(lilac_tile_conditions *c, lilac_tile_value *value, uint32_t depth) {
    lilac_tile_op *op = value->op;
    int64_t number;
    if (depth-- == 0) {
        return false;
    }
    if (op == NULL) {
        return is_parameter(value) ? add_parameter(c, value) : is_natural_argument(c, value, depth);
    }
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_CONSTANT:
        return lilac_tile_constant(value, &number) && number >= 0;
    case LILAC_TILE_OP_TT_GET_PROGRAM_ID:
    case LILAC_TILE_OP_TT_GET_NUM_PROGRAMS:
        return true;
    case LILAC_TILE_OP_ARITH_ADDI:
    case LILAC_TILE_OP_ARITH_MULI:
    case LILAC_TILE_OP_ARITH_MINSI:
    case LILAC_TILE_OP_ARITH_EXTSI:
        return are_natural(c, op, 0, depth);
    case LILAC_TILE_OP_ARITH_SELECT:
        return are_natural(c, op, 1, depth);
    case LILAC_TILE_OP_ARITH_REMSI: /* has the sign of the dividend */
    case LILAC_TILE_OP_ARITH_SHRSI:
        return is_natural(c, op->operands[0].value, depth);
    case LILAC_TILE_OP_ARITH_DIVSI:
        return is_natural(c, op->operands[0].value, depth) && add_divisor(c, op);
    case LILAC_TILE_OP_ARITH_MAXSI: {
        const lilac_tile_conditions before = *c;
        for (uint32_t i = 0; i < 2; i++) {
            if (is_natural(c, op->operands[1 - i].value, depth)) {
                return true; /* one suffices; the second is the constant, if there is one */
            }
            *c = before;
        }
        return false;
    }
    default:
        return false;
    }
}

/* The largest value of a natural number. */
static int64_t most_of(lilac_tile_conditions *c, const lilac_tile_value *value) {
    if (value->op != NULL && value->op->code == LILAC_TILE_OP_TT_GET_PROGRAM_ID) {
        c->small_grid = true;
        return TILE_MOST_PROGRAMS - 1;
    }
    return c->ranges[value->id].high;
}

/* Is the sum of natural numbers known to be one of 32 bits? */
static bool is_small(lilac_tile_conditions *c, const lilac_sum *sum) {
    const bool before = c->small_grid;
    int64_t most = 0;
    bool known = true;
    for (uint32_t i = 0; known && i < sum->count; i++) {
        int64_t product = sum->terms[i].factor;
        for (uint32_t k = 0; known && k < sum->terms[i].count; k++) {
            known = !__builtin_mul_overflow(product, most_of(c, sum->terms[i].values[k]), &product);
        }
        known = known && product >= 0 && !__builtin_add_overflow(most, product, &most);
    }
    if (!known || most > INT32_MAX) {
        c->small_grid = before; /* the grid does not help */
        return false;
    }
    return true;
}

/* Is a sum one of 32 bits because it is computed in 32 bits, where nothing overflows (affine.h),
 * and not added up of pointers? */
static bool is_narrow(const lilac_sum *sum, bool computed) {
    bool narrow = computed || sum->count <= 1;
    for (uint32_t i = 0; i < sum->count; i++) {
        narrow = narrow && !sum->terms[i].wide;
    }
    return narrow;
}

/* Is the number a sum of natural numbers of 32 bits? */
static bool is_coordinate(lilac_tile_conditions *c, const lilac_sum *at, bool natural) {
    bool good = true;
    for (uint32_t i = 0; good && i < at->count; i++) {
        const lilac_product *p = &at->terms[i];
        good = !natural || p->factor > 0;
        for (uint32_t k = 0; good && k < p->count; k++) {
            good = p->values[k]->type->scalar == LILAC_I32 &&
                   (!natural || is_natural(c, p->values[k], MOST_DEPTH));
        }
        good = good && p->factor >= INT32_MIN && p->factor <= INT32_MAX;
    }
    return good;
}

/* ---- masks --------------------------------------------------------------------------------- */

/* An element is read where low ≤ index < high along each dimension. */
typedef struct bounds {
    const lilac_sum *low[AFFINE_MOST_RANK], *high[AFFINE_MOST_RANK]; /* NULL: no bound */
    bool wide; /* some comparison is one of 64 bits */
    lilac_arena *arena;
} bounds;

/* The dimension along which the step of a difference is the number, and zero along all others;
 * the rank: there is none. */
static uint32_t only_step(const lilac_affine *f, int64_t number) {
    uint32_t found = f->rank;
    for (uint32_t d = 0; d < f->rank; d++) {
        if (f->below[d] != NULL) {
            return f->rank; /* also where steps cancel: x % b − x */
        }
        if (f->step[d].factor == 0) {
            continue;
        }
        if (found != f->rank || f->step[d].factor != number || f->step[d].count > 0) {
            return f->rank;
        }
        found = d;
    }
    return found;
}

static bool set_bound(bounds *b, const lilac_sum **place, const lilac_sum *bound) {
    lilac_sum *kept = lilac_arena_new(b->arena, lilac_sum);
    if (*place != NULL) {
        return lilac_sum_equal(*place, bound);
    }
    *kept = *bound;
    *place = kept;
    return true;
}

/* x < y, x ≤ y and their inverses, where x − y has a step of 1 or −1 along one dimension. */
static bool add_comparison(bounds *b, const lilac_tile_op *op, const uint32_t *dims) {
    const char *predicate = lilac_tile_find_text(&op->attributes, "predicate");
    lilac_affine x, y;
    if (predicate == NULL || predicate[0] != 's' || strlen(predicate) != 3) {
        return false;
    }
    const bool less = predicate[1] == 'l', equal = predicate[2] == 'e';
    const lilac_tile_value *first = op->operands[less ? 0 : 1].value,
                           *second = op->operands[less ? 1 : 0].value;
    b->wide |= lilac_tile_element_bits(first->type) > 32;
    if (!lilac_affine_of(&x, first, b->arena) || !lilac_affine_of(&y, second, b->arena)) {
        return false;
    }
    const lilac_product one = {.factor = equal}; /* x < y + equal */
    const uint32_t up = only_step(&x, 1), down = only_step(&y, 1);
    if (!(up < x.rank && lilac_affine_is_uniform(&y)) &&
        !(down < y.rank && lilac_affine_is_uniform(&x))) {
        return false;
    }
    lilac_sum bound = up < x.rank ? y.uniform : x.uniform;
    if (up < x.rank) { /* index < y − x + equal */
        return lilac_sum_subtract(&bound, &x.uniform) && lilac_sum_add_product(&bound, &one) &&
               set_bound(b, &b->high[dims[up]], &bound);
    }
    const lilac_product next = {.factor = !equal}; /* index ≥ x − y, or one more */
    return lilac_sum_subtract(&bound, &y.uniform) && lilac_sum_add_product(&bound, &next) &&
           set_bound(b, &b->low[dims[down]], &bound);
}

/* The bounds that a mask says. dims: the dimensions of the value among those of the access.
 * False: it says more than bounds; those that it says are set. */
static bool add_mask(bounds *b, const lilac_tile_value *mask, const uint32_t *dims,
                     uint32_t depth) {
    const lilac_tile_op *op = mask->op;
    int64_t number;
    if (lilac_tile_constant(mask, &number)) {
        return number != 0;
    }
    if (op == NULL || depth == 0) {
        return false;
    }
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_ANDI: {
        const bool first = add_mask(b, op->operands[0].value, dims, depth - 1);
        return add_mask(b, op->operands[1].value, dims, depth - 1) && first;
    }
    case LILAC_TILE_OP_TT_BROADCAST:
        return add_mask(b, op->operands[0].value, dims, depth - 1);
    case LILAC_TILE_OP_TT_EXPAND_DIMS: {
        const uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
        uint32_t inner[AFFINE_MOST_RANK];
        for (uint32_t d = 0, i = 0; d < op->results[0].type->rank; d++) {
            if (d != axis) {
                inner[i++] = dims[d];
            }
        }
        return add_mask(b, op->operands[0].value, inner, depth - 1);
    }
    case LILAC_TILE_OP_ARITH_CMPI:
        return lilac_tile_is_tensor(op->operands[0].value->type) && add_comparison(b, op, dims);
    default:
        return false;
    }
}

static bool find_bounds(bounds *b, lilac_arena *arena, const lilac_tile_value *mask) {
    static const uint32_t dims[AFFINE_MOST_RANK] = {0, 1, 2, 3, 4};
    *b = (bounds){.arena = arena};
    return mask == NULL ||
           (mask->type->rank <= AFFINE_MOST_RANK && add_mask(b, mask, dims, MOST_DEPTH));
}

bool lilac_mask_implies(const lilac_tile_value *mask, uint32_t dim, const lilac_sum *below,
                        lilac_arena *arena) {
    bounds b;
    (void)find_bounds(&b, arena, mask); /* what else it says only removes elements */
    return mask != NULL && b.high[dim] != NULL && lilac_sum_equal(b.high[dim], below);
}

/* ---- dimensions ------------------------------------------------------------------------------ */

/* A dimension of the tensor under construction. */
typedef struct dimension {
    lilac_product stride; /* of parameters */
    lilac_sum size, at;
    bool bounded; /* the mask says where the tile is; address terms cannot be moved to it */
} dimension;

typedef struct tensor {
    uint32_t count;
    dimension dims[TILE_MOST_RANK]; /* those of the load, then new ones */
    lilac_sum rest;                 /* of the address */
} tensor;

/* The dimension ends where the index reaches `high`. */
static bool bound_dimension(tensor *t, dimension *d, const lilac_sum *high) {
    lilac_sum program, moved;
    const lilac_product minus = {.factor = -1};
    if (!split_sum(high, &d->size, &program) || !lilac_sum_multiply(&program, &minus)) {
        return false;
    }
    d->at = moved = program;
    d->bounded = true;
    return lilac_sum_multiply(&moved, &d->stride) && lilac_sum_subtract(&t->rest, &moved);
}

/* Moves a term of the address to the dimension without a bound that has most parameters of its
 * stride in common. */
static bool move_to_dimension(lilac_tile_conditions *c, tensor *t, const lilac_product *term) {
    dimension *best = NULL;
    lilac_product steps = {0};
    for (uint32_t i = 0; i < t->count; i++) {
        dimension *d = &t->dims[i];
        lilac_product quotient, host, program;
        if (d->bounded || !lilac_product_divide(&quotient, term, &d->stride)) {
            continue;
        }
        split(&quotient, &host, &program);
        if (host.count > 0) {
            continue; /* a stride of more parameters than this dimension's */
        }
        if (best == NULL || d->stride.count > best->stride.count ||
            (d->stride.count == best->stride.count && d->stride.factor > best->stride.factor)) {
            best = d;
            steps = quotient;
        }
    }
    lilac_sum at;
    if (best != NULL) {
        at = best->at;
    }
    if (best == NULL || !lilac_sum_add_product(&at, &steps) ||
        (!is_narrow(&at, false) && !is_small(c, &at))) {
        return false;
    }
    best->at = at;
    return true;
}

static bool add_dimension(lilac_tile_conditions *c, tensor *t, const lilac_product *term) {
    lilac_product host, program;
    if (t->count == TILE_MOST_RANK) {
        return false;
    }
    split(term, &host, &program);
    const lilac_product most = {.factor = UNBOUNDED};
    dimension *d = &t->dims[t->count++];
    *d = (dimension){.stride = host};
    return host.factor > 0 && lilac_sum_add_product(&d->size, &most) &&
           lilac_sum_add_product(&d->at, &program) &&
           (is_narrow(&d->at, false) || is_small(c, &d->at));
}

/* Distributes the terms of the address that depend on the program. */
static bool place_terms(lilac_tile_conditions *c, tensor *t) {
    lilac_sum host, program;
    if (!split_sum(&t->rest, &host, &program)) {
        return false;
    }
    for (uint32_t i = 0; i < program.count; i++) {
        if (!move_to_dimension(c, t, &program.terms[i]) &&
            !add_dimension(c, t, &program.terms[i])) {
            return false;
        }
    }
    t->rest = host;
    return true;
}

static bool start_dimension(tensor *t, const lilac_product *step) {
    const lilac_product most = {.factor = UNBOUNDED};
    lilac_product host, program;
    split(step, &host, &program);
    dimension *d = &t->dims[t->count++];
    *d = (dimension){.stride = *step};
    return program.count == 0 && step->factor > 0 && lilac_sum_add_product(&d->size, &most);
}

/* ---- the tile -------------------------------------------------------------------------------- */

static bool is_contiguous(const dimension *d) {
    return d->stride.factor == 1 && d->stride.count == 0;
}

/* Sets the order of the dimensions: those in front, those of the load, the contiguous one. */
static bool put_tensor(lilac_strided_tile *tile, const tensor *t, uint32_t rank) {
    uint32_t last = rank, sources[TILE_MOST_RANK], count = 0;
    for (uint32_t d = 0; d < rank; d++) {
        last = is_contiguous(&t->dims[d]) ? d : last;
    }
    if (last == rank) {
        return false;
    }
    for (uint32_t d = rank; d < t->count; d++) {
        sources[count++] = d;
    }
    for (uint32_t d = 0, i = 0; d < rank; d++) {
        if (d != last) {
            sources[count++] = tile->order[i++] = d;
        }
    }
    sources[count++] = tile->order[rank - 1] = last;
    tile->rank = count;
    tile->offset = t->rest;
    bool good = true;
    for (uint32_t i = 0; i < count; i++) {
        const dimension *d = &t->dims[sources[i]];
        tile->at[i] = d->at;
        tile->sizes[i] = d->size;
        good = good && (i + 1 == count || lilac_sum_add_product(&tile->strides[i], &d->stride));
    }
    return good;
}

static bool is_zero(const lilac_tile_value *other) {
    const lilac_tile_attribute *value =
        other->op != NULL ? lilac_tile_find(&other->op->attributes, "value") : NULL;
    return other->op != NULL && other->op->code == LILAC_TILE_OP_ARITH_CONSTANT && value != NULL &&
           value->kind == LILAC_TILE_ATTR_DENSE && value->count == 1 && value->integers[0] == 0;
}

/* Bounds of one dimension: of the mask, and of what a remainder changes. */
static bool bound(tensor *t, lilac_strided_tile *tile, const bounds *b, const lilac_affine *f,
                  uint32_t d) {
    dimension *own = &t->dims[d];
    const lilac_sum *high = b->high[d] != NULL ? b->high[d] : f->below[d];
    if (high == NULL) {
        return b->low[d] == NULL;
    }
    if (f->below[d] != NULL) {
        if (b->high[d] != NULL && !lilac_sum_equal(b->high[d], f->below[d])) {
            return false;
        }
        tile->below[d] = b->high[d] == NULL ? f->below[d] : NULL;
    }
    if (!bound_dimension(t, own, high) || (f->below[d] != NULL && own->size.count != 1)) {
        return false;
    }
    if (b->low[d] == NULL) {
        return true;
    }
    lilac_sum first = own->at; /* index ≥ −at: the tensor begins there */
    return lilac_sum_add(&first, b->low[d]) && first.count == 0;
}

bool lilac_strided_tile_of(lilac_strided_tile *tile, lilac_tile_conditions *conditions,
                           const lilac_tile_op *load, lilac_arena *arena) {
    const lilac_tile_value *mask = lilac_tile_operand(load, 1),
                           *other = lilac_tile_operand(load, 2);
    lilac_affine f;
    bounds b;
    tensor t = {0};
    *tile = (lilac_strided_tile){.load_rank = load->results[0].type->rank};
    if (!lilac_affine_of(&f, load->operands[0].value, arena) || f.base == NULL ||
        !find_bounds(&b, arena, mask) || (other != NULL && !is_zero(other))) {
        return false;
    }
    t.rest = f.uniform;
    tile->base = f.base;
    for (uint32_t d = 0; d < f.rank; d++) {
        if (!start_dimension(&t, &f.step[d])) {
            return false;
        }
    }
    for (uint32_t d = 0; d < f.rank; d++) {
        const bool computed = b.high[d] != NULL ? !b.wide : !f.wide_limits;
        if (!bound(&t, tile, &b, &f, d) ||
            (!is_narrow(&t.dims[d].at, computed) &&
             (b.low[d] != NULL /* may be negative */ || !is_small(conditions, &t.dims[d].at)))) {
            return false;
        }
    }
    if (!place_terms(conditions, &t) || !put_tensor(tile, &t, f.rank)) {
        return false;
    }
    bool good = true;
    for (uint32_t i = 0; good && i < tile->rank; i++) {
        const uint32_t front = tile->rank - f.rank;
        const bool natural = i < front || b.low[tile->order[i - front]] == NULL;
        good = is_coordinate(conditions, &tile->at[i], natural);
    }
    return good;
}

bool lilac_strided_tile_is_of(const lilac_strided_tile *a, const lilac_strided_tile *b) {
    bool same = a->base == b->base && a->rank == b->rank && lilac_sum_equal(&a->offset, &b->offset);
    for (uint32_t i = 0; same && i < a->rank; i++) {
        same = lilac_sum_equal(&a->sizes[i], &b->sizes[i]) &&
               (i + 1 == a->rank || lilac_sum_equal(&a->strides[i], &b->strides[i]));
    }
    return same;
}
