/* descriptor_accesses: accesses through tensor descriptors as accesses through pointers.
 *
 *     tt.descriptor_load %d[%y, %x] : tensor<32x64>      base p, shape m, n, strides s, 1
 *
 *     first   = p + (y * s + x)                          one pointer for the block
 *     pointer = first + r * s + c                        r in [0, 32), c in [0, 64)
 *     inside  = max(-y, 0) <= r < m - y  and  max(-x, 0) <= c < n - x
 *     result  = tt.load pointer, inside, nan ? NaN : 0
 *
 * What depends on the indices is scalar; what depends on the thread does not change in a loop. The
 * bounds are limited to [0, size of the block], so they fit 32 bits. Sums of indices and sizes are
 * computed in 64 bits and cannot overflow: sizes are below 2^63 - 2^31.
 *
 * Dimensions of size 1 need a condition only. A tensor with fewer of them than the block has
 * (tensor<32x64> of a block 1x32x64) is accessed in its own shape.
 *
 * Vectors. The pointers of a row are aligned where x is (the base and the rows are, by promise),
 * but a vector must be inside or outside as a whole, and the row's size n may be any number. Where
 * x has a divisor that n does not have, the last elements of the row are accessed apart, in a
 * branch that only blocks at the end of such rows take:
 *
 *     whole   = (n - x) & -8
 *     result  = tt.load pointer, … c < whole, …                       vectors of 8
 *     result' = scf.if whole != n - x { tt.load pointer, … whole <= c < n - x, result }
 *
 * A gather has the row x[i] in place of y + r:
 *
 *     pointer = p + y + x[i] * s + c          inside = 0 <= x[i] < m  and  …
 */
#include "descriptors/descriptors.h"

#include <lilac/tile_loops.h>

#include <math.h>
#include <string.h>

/* An access under construction. */
typedef struct access {
    lilac_emitter e;
    lilac_tile_op *op;
    const lilac_descriptor *d;
    uint32_t block_rank;
    const lilac_tile_type *tensor;                 /* of the access: its shape */
    lilac_tile_value *rows;                        /* of a gather or scatter; NULL: a box */
    lilac_tile_value *index[DESCRIPTOR_MOST_RANK]; /* i64, of each dimension of the descriptor */
    uint32_t axis[DESCRIPTOR_MOST_RANK];           /* of the tensor; of sizes above 1 */
    lilac_tile_value *uniform;                     /* condition on all elements; NULL: none */
    int64_t vector;                                /* elements that are inside together */
    lilac_tile_value *pointers, *mask;             /* the result */
    struct {                                       /* the elements behind the last whole vector */
        lilac_tile_value *range, *low, *whole, *high; /* along the last dimension; NULL: none */
        lilac_tile_value *mask;                       /* of the other dimensions; NULL: all */
    } tail;
} access;

static const lilac_tile_type *scalar(const access *a, lilac_scalar kind) {
    return lilac_tile_scalar(a->e.module, kind);
}

static lilac_tile_value *shape_of(const access *a, uint32_t d) {
    return a->d->parts[1 + d];
}

/* NULL: 1. */
static lilac_tile_value *stride_of(const access *a, uint32_t d) {
    return d + 1 < a->block_rank ? a->d->parts[1 + a->block_rank + d] : NULL;
}

/* The elements of the access along dimension d of the descriptor. */
static int64_t size_of(const access *a, uint32_t d) {
    return a->rows != NULL && d == 0 ? a->rows->type->shape[0] : a->d->block->shape[d];
}

/* ---- shapes ----------------------------------------------------------------------------- */

/* Do the block and the tensor have the same sizes, but for dimensions of size 1? Sets the axis of
 * each dimension of the block. */
static bool match_axes(access *a, const lilac_tile_type *tensor) {
    uint32_t t = 0;
    for (uint32_t d = 0; d < a->block_rank; d++) {
        if (size_of(a, d) == 1) {
            continue;
        }
        while (t < tensor->rank && tensor->shape[t] == 1) {
            t++;
        }
        if (t == tensor->rank || tensor->shape[t] != size_of(a, d)) {
            return false;
        }
        a->axis[d] = t++;
    }
    while (t < tensor->rank && tensor->shape[t] == 1) {
        t++;
    }
    return t == tensor->rank;
}

/* The shape of the access: the tensor's, or the block's where the tensor is reshaped. */
static void choose_shape(access *a, const lilac_tile_type *tensor) {
    a->tensor = tensor;
    if (!match_axes(a, tensor)) {
        a->tensor = a->d->block;
        for (uint32_t d = 0; d < a->block_rank; d++) {
            a->axis[d] = d;
        }
    }
}

static const lilac_tile_type *shaped(const access *a, const lilac_tile_type *element) {
    return lilac_emit_shaped(&a->e, element, a->tensor);
}

static lilac_tile_value *splat(const access *a, lilac_tile_value *value,
                               const lilac_tile_type *shape) {
    return lilac_emit_unary(&a->e, LILAC_TILE_OP_TT_SPLAT,
                            lilac_emit_shaped(&a->e, value->type, shape), value);
}

/* A tensor of one dimension as one of the shape of the access, of size 1 along the other axes. */
static lilac_tile_value *expand_to_axis(const access *a, lilac_tile_value *value, uint32_t axis) {
    const int64_t size = value->type->shape[0];
    const lilac_tile_type *element = lilac_tile_element(value->type);
    for (uint32_t t = 0; t < a->tensor->rank; t++) {
        if (t == axis) {
            continue;
        }
        int64_t shape[LILAC_MAX_RANK];
        for (uint32_t i = 0; i <= value->type->rank; i++) {
            shape[i] = 1;
        }
        shape[t < axis ? t + 1 : axis] = size;
        const lilac_tile_type *type =
            lilac_tile_tensor(a->e.module, element, value->type->rank + 1, shape, NULL);
        value = lilac_emit_unary(&a->e, LILAC_TILE_OP_TT_EXPAND_DIMS, type, value);
        lilac_emit_attribute(&a->e, value->op, "axis", t);
    }
    return value;
}

static lilac_tile_value *broadcast(const access *a, lilac_tile_value *value) {
    const lilac_tile_type *type = shaped(a, lilac_tile_element(value->type));
    return type == value->type ? value
                               : lilac_emit_unary(&a->e, LILAC_TILE_OP_TT_BROADCAST, type, value);
}

/* 0, 1, … along the axis of dimension d. */
static lilac_tile_value *range_of(const access *a, uint32_t d) {
    const int64_t size = size_of(a, d);
    const lilac_tile_type *type =
        lilac_tile_tensor(a->e.module, scalar(a, LILAC_I32), 1, &size, NULL);
    lilac_tile_op *range = lilac_emit(&a->e, LILAC_TILE_OP_TT_MAKE_RANGE, type, 0, NULL);
    lilac_emit_attribute(&a->e, range, "start", 0);
    lilac_emit_attribute(&a->e, range, "end", size);
    return expand_to_axis(a, range->results, a->axis[d]);
}

/* ---- pointers --------------------------------------------------------------------------- */

static void add_offsets(access *a, lilac_tile_value *offsets, lilac_tile_value *stride) {
    if (stride != NULL) {
        lilac_tile_value *wide = lilac_emit_i64(&a->e, offsets);
        offsets =
            lilac_emit_binary(&a->e, LILAC_TILE_OP_ARITH_MULI, wide, splat(a, stride, wide->type));
    }
    a->pointers =
        lilac_emit_binary(&a->e, LILAC_TILE_OP_TT_ADDPTR, a->pointers, broadcast(a, offsets));
}

/* The pointer to the first element of the block, for all elements. */
static void start_pointers(access *a) {
    lilac_tile_value *first = NULL;
    for (uint32_t d = a->rows != NULL; d < a->block_rank; d++) {
        lilac_tile_value *stride = stride_of(a, d), *offset = a->index[d];
        if (stride != NULL) {
            offset = lilac_emit_binary(&a->e, LILAC_TILE_OP_ARITH_MULI, offset, stride);
        }
        first = lilac_emit_sum(&a->e, first, offset);
    }
    a->pointers = splat(a, lilac_emit_binary(&a->e, LILAC_TILE_OP_TT_ADDPTR, a->d->parts[0], first),
                        a->tensor);
}

/* ---- masks ------------------------------------------------------------------------------ */

static lilac_tile_value *both(const access *a, lilac_tile_value *x, lilac_tile_value *y) {
    if (x == NULL || y == NULL) {
        return x != NULL ? x : y;
    }
    return lilac_emit_binary(&a->e, LILAC_TILE_OP_ARITH_ANDI, x, y);
}

/* low <= value < high; NULL: no lower bound. */
static lilac_tile_value *is_between(const access *a, lilac_tile_value *low, lilac_tile_value *value,
                                    lilac_tile_value *high) {
    if (lilac_tile_is_tensor(value->type)) {
        low = splat(a, low, value->type);
        high = splat(a, high, value->type);
    }
    lilac_tile_value *below = lilac_emit_compare(&a->e, "slt", value, high);
    return both(a, lilac_emit_compare(&a->e, "sge", value, low), below);
}

static void add_condition(access *a, lilac_tile_value *condition) {
    a->mask = both(a, a->mask, broadcast(a, condition));
}

/* An i64 limited to [0, size], as i32. */
static lilac_tile_value *limited(const access *a, lilac_tile_value *value, int64_t size) {
    const lilac_tile_type *i64 = scalar(a, LILAC_I64);
    value = lilac_emit_binary(&a->e, LILAC_TILE_OP_ARITH_MAXSI, value,
                              lilac_emit_integer(&a->e, i64, 0));
    value = lilac_emit_binary(&a->e, LILAC_TILE_OP_ARITH_MINSI, value,
                              lilac_emit_integer(&a->e, i64, size));
    return lilac_emit_unary(&a->e, LILAC_TILE_OP_ARITH_TRUNCI, scalar(a, LILAC_I32), value);
}

/* Sets the elements of a vector that the index of the last dimension allows. May the end of a row
 * be within such a vector? */
static bool is_ragged(access *a, const lilac_axis_analysis *facts, const lilac_tile_value *index) {
    const int64_t bytes = lilac_tile_element_bits(a->d->block) / 8;
    a->vector = min_i64(lilac_axis_facts_of(facts, index)->divisibility[0],
                        power_of_two_in(size_of(a, a->block_rank - 1)));
    a->vector = min_i64(a->vector, bytes > 0 ? 16 / bytes : 16);
    return a->vector > 1 && (a->d->row_divisor == 0 || a->d->row_divisor % a->vector != 0);
}

/* The elements of a box along dimension d: their pointers and their mask. */
static void add_dimension(access *a, uint32_t d) {
    lilac_tile_value *index = a->index[d], *zero;
    if (size_of(a, d) == 1) {
        return;
    }
    lilac_tile_value *range = range_of(a, d);
    zero = lilac_emit_integer(&a->e, index->type, 0);
    lilac_tile_value *low = lilac_emit_binary(&a->e, LILAC_TILE_OP_ARITH_SUBI, zero, index);
    lilac_tile_value *high =
        lilac_emit_binary(&a->e, LILAC_TILE_OP_ARITH_SUBI, shape_of(a, d), index);
    low = limited(a, low, size_of(a, d));
    high = limited(a, high, size_of(a, d));
    if (a->uniform != NULL) { /* no element is inside where the condition is false */
        high = lilac_emit_select(&a->e, a->uniform, high, lilac_emit_integer(&a->e, high->type, 0));
        a->uniform = NULL;
    }
    add_offsets(a, range, stride_of(a, d));
    if (d + 1 == a->block_rank && a->vector > 1) {
        lilac_tile_value *multiple = lilac_emit_integer(&a->e, high->type, -a->vector);
        a->tail.high = high;
        a->tail.low = low;
        a->tail.range = range;
        a->tail.mask = a->mask;
        high = a->tail.whole = lilac_emit_binary(&a->e, LILAC_TILE_OP_ARITH_ANDI, high, multiple);
    }
    add_condition(a, is_between(a, low, range, high));
}

static void add_rows(access *a) {
    lilac_tile_value *rows = expand_to_axis(a, lilac_emit_i64(&a->e, a->rows), 0);
    add_offsets(a, rows, stride_of(a, 0));
    add_condition(
        a, is_between(a, lilac_emit_integer(&a->e, scalar(a, LILAC_I64), 0), rows, shape_of(a, 0)));
}

static void build_pointers(access *a) {
    const uint32_t first = a->rows != NULL;
    start_pointers(a);
    for (uint32_t d = first; d < a->block_rank; d++) {
        if (size_of(a, d) == 1) {
            lilac_tile_value *zero = lilac_emit_integer(&a->e, a->index[d]->type, 0);
            a->uniform = both(a, a->uniform, is_between(a, zero, a->index[d], shape_of(a, d)));
        }
    }
    if (a->rows != NULL) {
        add_rows(a);
    }
    for (uint32_t d = first; d < a->block_rank; d++) {
        add_dimension(a, d);
    }
    if (a->uniform != NULL) {
        a->mask = both(a, a->mask, splat(a, a->uniform, a->tensor));
    }
}

/* ---- accesses --------------------------------------------------------------------------- */

static void copy_attributes(const access *a, lilac_tile_op *to) {
    for (uint32_t i = 0; i < a->op->attributes.count; i++) {
        lilac_tile_set_attribute(a->e.module, &to->attributes, &a->op->attributes.list[i]);
    }
}

static lilac_tile_value *reshape(const access *a, lilac_tile_value *value,
                                 const lilac_tile_type *shape) {
    const lilac_tile_type *type = lilac_emit_shaped(&a->e, lilac_tile_element(value->type), shape);
    return type == value->type ? value
                               : lilac_emit_unary(&a->e, LILAC_TILE_OP_TT_RESHAPE, type, value);
}

/* What is read outside of the tensor. */
static lilac_tile_value *outside(const access *a, const lilac_tile_type *type) {
    const lilac_scalar kind = lilac_tile_element(type)->scalar;
    lilac_tile_value *zero = lilac_emit_integer(&a->e, type, 0);
    if (!lilac_scalar_is_float(kind)) {
        return zero;
    }
    const uint64_t nan = lilac_scalar_encode(kind, NAN, LILAC_ROUND_NEAREST_EVEN, false);
    return lilac_emit_select(&a->e, a->d->parts[2 * a->block_rank],
                             lilac_emit_integer(&a->e, type, (int64_t)nan), zero);
}

/* Ends a block with what it yields; NULL: nothing. */
static void put_yield(const access *a, lilac_tile_block *block, lilac_tile_value *value) {
    lilac_tile_op *yield = lilac_tile_op_create(a->e.module, LILAC_TILE_OP_SCF_YIELD, value != NULL,
                                                &value, 0, NULL, 0, a->op->location);
    yield->position = a->op->position;
    lilac_tile_append(block, yield);
}

/* Opens the branch for the elements behind the last whole vector, whose result (of this type, NULL:
 * none) is `otherwise` where there are none. From here on the access is built in it, with their
 * mask. Returns the conditional; NULL: there are no such elements. */
static lilac_tile_op *open_tail(access *a, const lilac_tile_type *type,
                                lilac_tile_value *otherwise) {
    if (a->tail.whole == NULL) {
        return NULL;
    }
    lilac_tile_value *ragged = lilac_emit_compare(&a->e, "ne", a->tail.whole, a->tail.high);
    lilac_tile_op *branch = lilac_tile_op_create(a->e.module, LILAC_TILE_OP_SCF_IF, 1, &ragged,
                                                 type != NULL, &type, 2, a->op->location);
    const lilac_tile_attribute rare = {.kind = LILAC_TILE_ATTR_UNIT,
                                       .name =
                                           lilac_intern_string(a->e.module->context, "lilac.rare")};
    branch->position = a->op->position;
    lilac_tile_set_attribute(a->e.module, &branch->attributes, &rare);
    lilac_tile_insert_before(a->op, branch);
    lilac_tile_block *then_block = lilac_tile_block_create(a->e.module, branch->regions[0]);
    put_yield(a, then_block, otherwise);
    if (otherwise != NULL) {
        put_yield(a, lilac_tile_block_create(a->e.module, branch->regions[1]), otherwise);
    }
    a->e.place = then_block->last;
    lilac_tile_value *low =
        lilac_emit_binary(&a->e, LILAC_TILE_OP_ARITH_MAXSI, a->tail.low, a->tail.whole);
    a->mask = a->tail.mask;
    add_condition(a, is_between(a, low, a->tail.range, a->tail.high));
    return branch;
}

/* What a tensor copy of the block needs; NULL: none moves it. */
static lilac_tile_value *make_box(const access *a) {
    lilac_tile_value *operands[1 + DESCRIPTOR_MOST_RANK] = {a->d->map};
    for (uint32_t d = 0; d < a->block_rank; d++) {
        operands[1 + d] = lilac_tile_operand(a->op, 1 + d);
    }
    return a->d->map == NULL
               ? NULL
               : lilac_emit(&a->e, LILAC_TILE_OP_LILAC_TENSOR_BOX, lilac_tile_token(a->e.module),
                            1 + a->block_rank, operands)
                     ->results;
}

static lilac_tile_op *put_one_load(access *a, const lilac_tile_type *type,
                                   lilac_tile_value *other) {
    lilac_tile_value *operands[4] = {a->pointers, a->mask, other, make_box(a)};
    lilac_tile_op *load = lilac_emit(&a->e, LILAC_TILE_OP_TT_LOAD, type, 4, operands);
    copy_attributes(a, load);
    return load;
}

static void put_load(access *a) {
    const lilac_tile_type *result = a->op->results[0].type;
    const lilac_tile_type *type = shaped(a, lilac_tile_element(result));
    const bool copied = a->d->map != NULL; /* also the elements behind the last whole vector */
    lilac_tile_value *other = copied ? lilac_emit_integer(&a->e, type, 0) : outside(a, type);
    lilac_tile_value *loaded = put_one_load(a, type, other)->results;
    loaded->name = a->op->results[0].name;
    lilac_tile_op *branch = copied ? NULL : open_tail(a, type, loaded);
    if (branch != NULL) {
        lilac_tile_set_yielded(branch, 0, 0, put_one_load(a, type, loaded)->results);
        loaded = branch->results;
        a->e.place = a->op;
    }
    lilac_tile_replace_uses(&a->op->results[0], reshape(a, loaded, result));
}

/* copy_boxes replaces a store or reduction that a tensor copy executes. */
static void keep_store(const access *a, lilac_tile_value *source) {
    const lilac_tile_attribute mark = {
        .kind = LILAC_TILE_ATTR_UNIT,
        .name = lilac_intern_string(a->e.module->context, "lilac.tensor_map")};
    lilac_tile_set_attribute(a->e.module, &a->op->attributes, &mark);
    lilac_tile_set_operand(a->op, 0, a->d->map);
    lilac_tile_set_operand(a->op, 1, reshape(a, source, a->tensor));
}

static void put_store(access *a, lilac_tile_value *source) {
    lilac_tile_value *operands[3] = {a->pointers, reshape(a, source, a->tensor), a->mask};
    copy_attributes(a, lilac_emit(&a->e, LILAC_TILE_OP_TT_STORE, NULL, 3, operands));
    if (open_tail(a, NULL, NULL) != NULL) {
        operands[2] = a->mask;
        copy_attributes(a, lilac_emit(&a->e, LILAC_TILE_OP_TT_STORE, NULL, 3, operands));
    }
}

/* The read-modify-write operation of a tt.descriptor_reduce; NULL: there is none. */
static const char *rmw_of(const char *kind, const lilac_tile_type *element) {
    static const struct {
        const char *kind, *of_float, *of_signed, *of_unsigned, *of_signless;
    } rows[] = {
        /* kind   float   si      ui      i    */
        {"add", "fadd", "add", "add", "add"}, {"min", NULL, "min", "umin", NULL},
        {"max", NULL, "max", "umax", NULL},   {"and", NULL, "and", "and", "and"},
        {"or", NULL, "or", "or", "or"},       {"xor", NULL, "xor", "xor", "xor"},
    };
    const bool half = element->scalar == LILAC_F16 || element->scalar == LILAC_BF16;
    if (half && (strcmp(kind, "min") == 0 || strcmp(kind, "max") == 0)) {
        return kind;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].kind, kind) == 0) {
            return lilac_scalar_is_float(element->scalar) ? rows[i].of_float
                   : element->sign == 's'                 ? rows[i].of_signed
                   : element->sign == 'u'                 ? rows[i].of_unsigned
                                                          : rows[i].of_signless;
        }
    }
    return NULL;
}

static void put_atomic(const access *a, lilac_tile_value *source, const char *rmw) {
    lilac_tile_value *operands[3] = {a->pointers, source, a->mask};
    lilac_tile_op *atomic =
        lilac_emit(&a->e, LILAC_TILE_OP_TT_ATOMIC_RMW, source->type, 3, operands);
    lilac_emit_keyword(&a->e, atomic, "atomic_rmw_op", rmw);
    lilac_emit_keyword(&a->e, atomic, "sem", "release");
    lilac_emit_keyword(&a->e, atomic, "scope", "gpu");
}

static bool put_reduce(access *a) {
    const char *kind = lilac_tile_find_text(&a->op->attributes, "kind");
    const lilac_tile_type *element = lilac_tile_element(a->d->block);
    const char *rmw = kind != NULL ? rmw_of(kind, element) : NULL;
    if (rmw == NULL) {
        lilac_text name = {0};
        lilac_tile_print_type(&name, element);
        lilac_error(a->e.module->context, lilac_tile_position(a->op), a->op->location,
                    "unsupported-descriptor",
                    "'tt.descriptor_reduce' has no operation %s on %s; expected add, or min or max "
                    "of si or ui integers, f16 or bf16, or and, or, xor of integers",
                    kind != NULL ? kind : "", lilac_text_get(&name));
        lilac_text_clear(&name);
        return false;
    }
    lilac_tile_value *source = reshape(a, lilac_tile_operand(a->op, 1), a->tensor);
    put_atomic(a, source, rmw);
    if (open_tail(a, NULL, NULL) != NULL) {
        put_atomic(a, source, rmw);
    }
    return true;
}

bool lilac_descriptor_expand(lilac_tile_module *module, lilac_tile_op *op,
                             const lilac_descriptor *descriptor, const lilac_axis_analysis *facts) {
    access a = {
        .e = {module, op}, .op = op, .d = descriptor, .block_rank = descriptor->block->rank};
    const bool gathers = op->code == LILAC_TILE_OP_TT_DESCRIPTOR_GATHER;
    const bool loads = gathers || op->code == LILAC_TILE_OP_TT_DESCRIPTOR_LOAD;
    const bool scatters = op->code == LILAC_TILE_OP_TT_DESCRIPTOR_SCATTER;
    uint32_t first = op->code == LILAC_TILE_OP_TT_DESCRIPTOR_LOAD ? 1 : 2;
    lilac_tile_value *source = loads ? NULL : lilac_tile_operand(op, scatters ? 3 : 1);
    if (gathers || scatters) {
        a.rows = lilac_tile_operand(op, 1);
        a.index[1] = lilac_emit_i64(&a.e, lilac_tile_operand(op, 2));
    }
    for (uint32_t d = 0; d < a.block_rank && a.rows == NULL; d++) {
        a.index[d] = lilac_emit_i64(&a.e, lilac_tile_operand(op, first + d));
    }
    const uint32_t last = gathers || scatters ? 2 : first + a.block_rank - 1;
    if (!is_ragged(&a, facts, lilac_tile_operand(op, last))) {
        a.vector = 1;
    }
    choose_shape(&a, loads ? op->results[0].type : source->type);
    if (descriptor->map == NULL || loads) {
        build_pointers(&a);
    }
    bool good = true;
    if (descriptor->map != NULL && !loads) {
        keep_store(&a, source);
        return true;
    }
    if (loads) {
        put_load(&a);
    } else if (op->code == LILAC_TILE_OP_TT_DESCRIPTOR_REDUCE) {
        good = put_reduce(&a);
    } else {
        put_store(&a, source);
    }
    if (good) {
        lilac_tile_remove(op);
    }
    return good;
}
