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
 * negative: what is in front of a tensor reads as zero.
 *
 * If the sign of a coordinate is unknown, as of a loaded number, the tensor begins in front of the pointer
 * (`begin_in_front`). This requires a dimension without a mask and offsets of 32 bits, which are assumed not to
 * overflow. A coordinate of n terms along a dimension of stride s, and a constant, is then less than
 * (n + 1) · 2^31 / s away from the pointer:
 *
 *     k + (start + moved) · 128 + 128 · i₀ + i₁      a tensor of rows of 128 elements from k - 3 · (2^24 + 1) · 128 on
 *                                                    at (3 · (2^24 + 1) + start + moved, 0) */
#include "launch_maps/strided_tile.h"

#include "facts/mask_bounds.h"

/* ---- parameters and programs ----------------------------------------------------------------- */

/* The factors of a product that the launcher knows, with the number, and the others. */
static void split(const lilac_product *p, lilac_product *host, lilac_product *program) {
    int64_t divisor;
    *host = (lilac_product){.factor = p->factor};
    *program = (lilac_product){.factor = 1};
    for (uint32_t i = 0; i < p->count; i++) {
        lilac_product *to = lilac_launch_value(p->values[i], &divisor) != NULL ? host : program;
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

/* ---- dimensions ------------------------------------------------------------------------------ */

enum { MOST_BOX = 256 };

/* An upper bound, in multiples of the stride, of the sum of `terms` products of 32 bits and a constant. */
static int64_t in_front_of(int64_t stride, uint32_t terms) {
    return ((INT64_C(1) << 31) / stride + 1) * (terms + 1);
}

/* A dimension of the tensor under construction. */
typedef struct dimension {
    lilac_product stride; /* of parameters */
    lilac_sum size, at;
    bool bounded;  /* the mask says where the tile is; address terms cannot be moved to it */
    bool any_sign; /* the coordinate may be negative */
    bool wide;     /* coordinates times the stride may exceed 32 bits */
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
    if (!split_sum(high, &d->size, &program) || !lilac_sum_scale(&program, &minus)) {
        return false;
    }
    d->at = moved = program;
    d->bounded = true;
    return lilac_sum_scale(&moved, &d->stride) && lilac_sum_subtract(&t->rest, &moved);
}

/* Can the tensor begin so far in front of the pointer that this coordinate is not negative? */
static bool may_have_any_sign(const lilac_tile_conditions *c, const dimension *d,
                              const lilac_sum *at) {
    bool narrow = c->any_sign && d->stride.count == 0;
    for (uint32_t i = 0; i < at->count; i++) {
        narrow = narrow && !at->terms[i].wide;
    }
    return narrow && !d->wide &&
           2 * in_front_of(d->stride.factor, at->count) <= TILE_UNBOUNDED - MOST_BOX;
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
    if (best == NULL || !lilac_sum_add_product(&at, &steps)) {
        return false;
    }
    if (!lilac_coordinate_is_narrow(&at, false) && !lilac_coordinate_is_small(c, &at)) {
        if (!may_have_any_sign(c, best, &at)) {
            return false;
        }
        best->any_sign = true;
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
    dimension *d = &t->dims[t->count++];
    *d = (dimension){.stride = host, .wide = term->wide};
    return host.factor > 0 && lilac_sum_add_number(&d->size, TILE_UNBOUNDED) &&
           lilac_sum_add_product(&d->at, &program) &&
           (lilac_coordinate_is_narrow(&d->at, false) || lilac_coordinate_is_small(c, &d->at));
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
    lilac_product host, program;
    split(step, &host, &program);
    dimension *d = &t->dims[t->count++];
    *d = (dimension){.stride = *step};
    return program.count == 0 && step->factor > 0 && lilac_sum_add_number(&d->size, TILE_UNBOUNDED);
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

/* Bounds of one dimension: of the mask, and of what a remainder changes. */
static bool bound(tensor *t, lilac_strided_tile *tile, const lilac_mask_bounds *b,
                  const lilac_affine *f, uint32_t d) {
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

/* Moves the beginning of the tensor in front of the pointer, along one dimension. */
static bool begin_in_front(lilac_tile_conditions *c, lilac_strided_tile *tile, uint32_t number,
                           const dimension *d) {
    lilac_sum *at = &tile->at[number];
    const int64_t rows = in_front_of(d->stride.factor, at->count);
    for (uint32_t i = 0; i < tile->offset.count; i++) {
        if (tile->offset.terms[i].count > 0) {
            return false; /* a parameter may be a part of the sum that is multiplied */
        }
    }
    return !d->bounded && may_have_any_sign(c, d, at) && lilac_coordinate_is_valid(c, at, false) &&
           lilac_sum_add_number(at, rows) &&
           lilac_sum_add_number(&tile->offset, -rows * d->stride.factor);
}

bool lilac_strided_tile_of(lilac_strided_tile *tile, lilac_tile_conditions *conditions,
                           const lilac_tile_op *load, lilac_arena *arena) {
    const lilac_tile_value *mask = lilac_tile_operand(load, 1),
                           *other = lilac_tile_operand(load, 2);
    lilac_affine f;
    lilac_mask_bounds b;
    tensor t = {0};
    *tile = (lilac_strided_tile){.load_rank = load->results[0].type->rank};
    if (!lilac_affine_of(&f, load->operands[0].value, arena) || f.base == NULL ||
        !lilac_mask_bounds_of(&b, mask, arena) || (other != NULL && !lilac_tile_is_zero(other))) {
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
            (!lilac_coordinate_is_narrow(&t.dims[d].at, computed) &&
             (b.low[d] != NULL /* may be negative */ ||
              !lilac_coordinate_is_small(conditions, &t.dims[d].at)))) {
            return false;
        }
    }
    if (!place_terms(conditions, &t) || !put_tensor(tile, &t, f.rank)) {
        return false;
    }
    bool good = true;
    for (uint32_t i = 0; good && i < tile->rank; i++) {
        const uint32_t front = tile->rank - f.rank,
                       d = i < front ? f.rank + i : tile->order[i - front];
        const bool natural = d >= f.rank || b.low[d] == NULL;
        const lilac_tile_conditions before = *conditions;
        good = !t.dims[d].any_sign && lilac_coordinate_is_valid(conditions, &tile->at[i], natural);
        if (!good) {
            *conditions = before;
            good = begin_in_front(conditions, tile, i, &t.dims[d]);
        }
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
