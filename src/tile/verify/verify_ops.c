/* The verifier: what each operation demands beyond its signature: attributes, shapes, the arguments
 * of its regions and what leaves them. One short function for each kind of demand, found by opcode
 * in the table at the end. */
#include "verify/verify.h"

#include <string.h>

static const char *name_of(const lilac_tile_op *op) {
    return lilac_tile_op_info_get(op->code)->name;
}

static bool refuse(const tile_verifier *verifier, const lilac_tile_op *op, const char *id,
                   const char *message) {
    tile_op_error(verifier->module, op, id, "'%s' %s", name_of(op), message);
    return false;
}

static const lilac_tile_type *operand_type(const lilac_tile_op *op, uint32_t index) {
    return op->operands[index].value->type;
}

/* Reports that two types that must be equal are not. */
static bool same_type(const tile_verifier *verifier, const lilac_tile_op *op, const char *what,
                      uint32_t index, const lilac_tile_type *type, const lilac_tile_type *wanted) {
    if (type == wanted) {
        return true;
    }
    tile_op_error(verifier->module, op, "type-mismatch",
                  "%s %u of '%s' has type '%s', but '%s' is needed", what, index + 1, name_of(op),
                  tile_type_text(verifier->module, type), tile_type_text(verifier->module, wanted));
    return false;
}

static bool same_count(const tile_verifier *verifier, const lilac_tile_op *op, const char *what,
                       uint32_t count, uint32_t wanted) {
    if (count == wanted) {
        return true;
    }
    tile_op_error(verifier->module, op, "count-mismatch", "'%s' has %u %s, but %u are needed",
                  name_of(op), count, what, wanted);
    return false;
}

static bool shape_fault(const tile_verifier *verifier, const lilac_tile_op *op,
                        const lilac_tile_type *from, const lilac_tile_type *to) {
    tile_op_error(verifier->module, op, "shape-mismatch", "'%s' cannot make '%s' of '%s'",
                  name_of(op), tile_type_text(verifier->module, to),
                  tile_type_text(verifier->module, from));
    return false;
}

/* ---- attributes, by the format ---------------------------------------------------------- */

static bool check_keywords(const tile_keywords *set, const char *text) {
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, ", ");
        if (!tile_keywords_has(set, at, n)) {
            return false;
        }
        if (!set->separator && at[n]) {
            return false;
        }
        at += n + strspn(at + n, ", ");
    }
    return text[0] != 0;
}

/* Every attribute that the format prints is there unless its part is optional, and is a keyword of
 * its set. */
static bool check_format_attributes(const tile_verifier *verifier, const lilac_tile_op *op) {
    bool optional = false;
    for (const char *at = lilac_tile_op_info_get(op->code)->format; *at; at++) {
        optional ^= *at == '|';
        if (*at != '@') {
            continue;
        }
        const char *name = at + 1;
        size_t length = strcspn(name, ":");
        const char *kind = name + length + 1;
        size_t kind_length = strspn(kind, "abcdefghijklmnopqrstuvwxyz_");
        const tile_keywords *set = tile_keywords_find(kind, kind_length);
        const lilac_tile_attribute *found = tile_attribute_find(&op->attributes, name, length);
        bool good = found ? true : optional;
        if (found && set) {
            good = found->kind == LILAC_TILE_ATTR_KEYWORD && check_keywords(set, found->text);
        } else if (found && strncmp(kind, "symbol", 6) == 0) {
            good = found->kind == LILAC_TILE_ATTR_SYMBOL;
        } else if (found && strncmp(kind, "string", 6) == 0) {
            good = found->kind == LILAC_TILE_ATTR_STRING;
        } else if (found && strncmp(kind, "integers", 8) == 0) {
            good = found->kind == LILAC_TILE_ATTR_INTEGERS && found->count > 0;
        } else if (found && strncmp(kind, "integer", 7) == 0) {
            good = found->kind == LILAC_TILE_ATTR_INTEGER;
        } else if (found) {
            good = found->kind == LILAC_TILE_ATTR_UNIT;
        }
        if (!good) {
            tile_op_error(verifier->module, op, "bad-attribute",
                          "'%s' needs a proper attribute '%.*s'", name_of(op), (int)length, name);
            return false;
        }
        at = kind + kind_length - 1;
    }
    return true;
}

static bool find_axis(const tile_verifier *verifier, const lilac_tile_op *op, uint32_t rank,
                      uint32_t *axis) {
    int64_t value = lilac_tile_find_integer(&op->attributes, "axis", -1);
    if (value < 0 || value >= rank) {
        tile_op_error(verifier->module, op, "bad-attribute",
                      "'%s' needs an attribute 'axis' from 0 to %d", name_of(op), (int)rank - 1);
        return false;
    }
    *axis = (uint32_t)value;
    return true;
}

/* ---- arith ------------------------------------------------------------------------------ */

static bool check_constant(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_attribute *value = lilac_tile_find(&op->attributes, "value");
    if (!value || !value->type ||
        (value->kind != LILAC_TILE_ATTR_INTEGER && value->kind != LILAC_TILE_ATTR_BOOL &&
         value->kind != LILAC_TILE_ATTR_FLOAT && value->kind != LILAC_TILE_ATTR_DENSE)) {
        return refuse(verifier, op, "bad-attribute", "needs a number as attribute 'value'");
    }
    const lilac_tile_type *type = op->results[0].type;
    if (value->kind != LILAC_TILE_ATTR_DENSE) {
        return same_type(verifier, op, "result", 0, type, value->type);
    }
    if (!lilac_tile_is_tensor(type) || type->rank != value->type->rank ||
        type->element != value->type->element ||
        lilac_tile_element_count(type) != lilac_tile_element_count(value->type)) {
        return same_type(verifier, op, "result", 0, type, value->type);
    }
    if (value->count != 1 && value->count != lilac_tile_element_count(type)) {
        return refuse(verifier, op, "shape-mismatch", "has not one number for each element");
    }
    return true;
}

static bool check_select(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *condition = operand_type(op, 0);
    const lilac_tile_type *boolean = lilac_tile_scalar(verifier->module, LILAC_I1);
    if (condition == boolean) {
        return true;
    }
    return same_type(verifier, op, "operand", 0, condition,
                     tile_with_element(verifier->module, op->results[0].type, boolean));
}

/* ---- shapes ----------------------------------------------------------------------------- */

static bool check_make_range(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *type = op->results[0].type;
    const lilac_tile_attribute *start = lilac_tile_find(&op->attributes, "start");
    const lilac_tile_attribute *end = lilac_tile_find(&op->attributes, "end");
    if (!start || !end || start->kind != LILAC_TILE_ATTR_INTEGER ||
        end->kind != LILAC_TILE_ATTR_INTEGER) {
        return refuse(verifier, op, "bad-attribute", "needs the attributes 'start' and 'end'");
    }
    if (type->rank != 1 || start->integer < INT32_MIN || end->integer > INT32_MAX ||
        end->integer <= start->integer || end->integer - start->integer != type->shape[0]) {
        return refuse(verifier, op, "shape-mismatch", "has not as many elements as its range");
    }
    return true;
}

static bool check_unsplat(const tile_verifier *verifier, const lilac_tile_op *op) {
    if (lilac_tile_element_count(operand_type(op, 0)) != 1) {
        return refuse(verifier, op, "shape-mismatch", "needs a tensor of one element");
    }
    return true;
}

static bool check_expand_dims(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *from = operand_type(op, 0), *to = op->results[0].type;
    uint32_t axis;
    if (!find_axis(verifier, op, from->rank + 1, &axis)) {
        return false;
    }
    bool good = to->rank == from->rank + 1;
    for (uint32_t i = 0; good && i < to->rank; i++) {
        good = to->shape[i] == (i == axis ? 1 : from->shape[i - (i > axis)]);
    }
    return good || shape_fault(verifier, op, from, to);
}

static bool check_broadcast(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *from = operand_type(op, 0), *to = op->results[0].type;
    bool good = to->rank == from->rank;
    for (uint32_t i = 0; good && i < to->rank; i++) {
        good = to->shape[i] == from->shape[i] || from->shape[i] == 1;
    }
    return good || shape_fault(verifier, op, from, to);
}

static bool check_reshape(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *from = operand_type(op, 0), *to = op->results[0].type;
    return lilac_tile_element_count(from) == lilac_tile_element_count(to) ||
           shape_fault(verifier, op, from, to);
}

bool tile_verify_order(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *from = operand_type(op, 0), *to = op->results[0].type;
    const lilac_tile_attribute *order = lilac_tile_find(&op->attributes, "order");
    if (!order || order->kind != LILAC_TILE_ATTR_INTEGERS || order->count != from->rank) {
        return refuse(verifier, op, "bad-attribute", "needs an attribute 'order' of its rank");
    }
    uint32_t seen = 0;
    bool good = to->rank == from->rank;
    for (uint32_t i = 0; i < order->count; i++) {
        int64_t dimension = order->integers[i];
        if (dimension < 0 || dimension >= from->rank || seen >> dimension & 1) {
            return refuse(verifier, op, "bad-attribute", "has an 'order' that is no permutation");
        }
        seen |= UINT32_C(1) << dimension;
        good = good && to->shape[i] == from->shape[dimension];
    }
    return good || shape_fault(verifier, op, from, to);
}

/* `pair` is `half` with one more dimension of 2 at the end. */
static bool is_pair(const lilac_tile_type *pair, const lilac_tile_type *half) {
    bool good = pair->rank == half->rank + 1 && pair->shape[half->rank] == 2;
    for (uint32_t i = 0; good && i < half->rank; i++) {
        good = pair->shape[i] == half->shape[i];
    }
    return good;
}

static bool check_join(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *from = operand_type(op, 0), *to = op->results[0].type;
    return is_pair(to, from) || shape_fault(verifier, op, from, to);
}

static bool check_split(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *from = operand_type(op, 0), *to = op->results[0].type;
    return is_pair(from, to) || shape_fault(verifier, op, from, to);
}

static bool check_cat(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *from = operand_type(op, 0), *to = op->results[0].type;
    bool good = to->rank == from->rank &&
                lilac_tile_element_count(to) == 2 * lilac_tile_element_count(from);
    return good || shape_fault(verifier, op, from, to);
}

/* The attribute lilac.movement, which forces one way to move a tensor, for comparisons. */
static bool check_movement(const tile_verifier *verifier, const lilac_tile_op *op) {
    if (lilac_tile_find(&op->attributes, "lilac.movement") &&
        lilac_tile_movement_of(op) == LILAC_TILE_MOVEMENT_ANY) {
        return refuse(verifier, op, "bad-attribute",
                      "has an attribute 'lilac.movement' that is none of \"shared\", \"shuffles\" "
                      "and \"unswizzled\"");
    }
    return true;
}

static bool check_gather(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *from = operand_type(op, 0), *index = operand_type(op, 1);
    uint32_t axis;
    if (!find_axis(verifier, op, from->rank, &axis)) {
        return false;
    }
    bool good = index->rank == from->rank;
    for (uint32_t i = 0; good && i < from->rank; i++) {
        good = i == axis || index->shape[i] == from->shape[i];
    }
    return check_movement(verifier, op) && (good || shape_fault(verifier, op, from, index));
}

static bool check_histogram(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *from = operand_type(op, 0), *to = op->results[0].type;
    return (from->rank == 1 && to->rank == 1) || shape_fault(verifier, op, from, to);
}

static bool check_convert(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *from = operand_type(op, 0), *to = op->results[0].type;
    bool good =
        from->rank == to->rank && memcmp(from->shape, to->shape, sizeof *to->shape * to->rank) == 0;
    return check_movement(verifier, op) && (good || shape_fault(verifier, op, from, to));
}

static bool check_sum_blocks(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *element = lilac_tile_element(op->results[0].type);
    if (element->kind == LILAC_TILE_SCALAR &&
        (element->scalar == LILAC_F32 || element->scalar == LILAC_I32)) {
        return true;
    }
    tile_op_error(verifier->module, op, "type-mismatch",
                  "'%s' cannot add elements of type '%s'; f32 or i32 is needed", name_of(op),
                  tile_type_text(verifier->module, element));
    return false;
}

/* ---- memory ----------------------------------------------------------------------------- */

static bool check_atomic(const tile_verifier *verifier, const lilac_tile_op *op) {
    lilac_name how = lilac_tile_find_text(&op->attributes, "atomic_rmw_op");
    const lilac_tile_type *element = lilac_tile_element(op->results[0].type);
    bool is_float = element->kind == LILAC_TILE_SCALAR && lilac_scalar_is_float(element->scalar);
    bool bitwise = strcmp(how, "exch") == 0 || strcmp(how, "and") == 0 || strcmp(how, "or") == 0 ||
                   strcmp(how, "xor") == 0;
    /* of tt.descriptor_reduce */
    bool extreme = is_float && lilac_tile_element_bits(element) == 16 &&
                   (strcmp(how, "max") == 0 || strcmp(how, "min") == 0);
    if (bitwise || extreme || is_float == (strcmp(how, "fadd") == 0)) {
        return true;
    }
    tile_op_error(verifier->module, op, "type-mismatch", "'%s' cannot %s elements of type '%s'",
                  name_of(op), how, tile_type_text(verifier->module, element));
    return false;
}

/* The signedness that a descriptor's elements are marked with is not part of the tensors loaded. */
static bool same_element(const lilac_tile_type *a, const lilac_tile_type *b) {
    a = lilac_tile_element(a);
    b = lilac_tile_element(b);
    return a == b ||
           (a->kind == LILAC_TILE_SCALAR && b->kind == LILAC_TILE_SCALAR && a->scalar == b->scalar);
}

static bool check_block_pointer(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *type = op->results[0].type;
    const lilac_tile_type *block = type->element;
    if (op->code == LILAC_TILE_OP_TT_ADVANCE) {
        return same_count(verifier, op, "offsets", op->operand_count - 1, block->rank);
    }
    const lilac_tile_attribute *order = lilac_tile_find(&op->attributes, "order");
    if (!order || order->kind != LILAC_TILE_ATTR_INTEGERS || order->count != block->rank) {
        return refuse(verifier, op, "bad-attribute", "needs an attribute 'order' of its rank");
    }
    const lilac_tile_type *base =
        lilac_tile_pointer(verifier->module, block->element, type->address_space);
    return same_count(verifier, op, "shape, strides and offsets", op->operand_count - 1,
                      3 * block->rank) &&
           same_type(verifier, op, "operand", 0, operand_type(op, 0), base);
}

static bool check_descriptor(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *block = op->results[0].type->element;
    const lilac_tile_type *base = operand_type(op, 0);
    if (base->kind != LILAC_TILE_POINTER || !same_element(base->element, block)) {
        return refuse(verifier, op, "type-mismatch",
                      "needs a pointer to the elements of its descriptor");
    }
    return same_count(verifier, op, "shape and strides", op->operand_count - 1, 2 * block->rank);
}

static bool check_descriptor_access(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *block = operand_type(op, 0)->element;
    bool load = op->code == LILAC_TILE_OP_TT_DESCRIPTOR_LOAD;
    const lilac_tile_type *tensor = load ? op->results[0].type : operand_type(op, 1);
    if (!same_element(tensor, block) ||
        lilac_tile_element_count(tensor) != lilac_tile_element_count(block)) {
        return shape_fault(verifier, op, block, tensor);
    }
    return same_count(verifier, op, "indices", op->operand_count - (load ? 1 : 2), block->rank);
}

/* A row of the block for each x. */
static bool check_descriptor_rows(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *block = operand_type(op, 0)->element, *rows = operand_type(op, 1);
    const lilac_tile_type *tensor =
        op->code == LILAC_TILE_OP_TT_DESCRIPTOR_GATHER ? op->results[0].type : operand_type(op, 3);
    bool good = same_element(tensor, block) && block->rank == 2 && tensor->rank == 2 &&
                rows->rank == 1 && block->shape[0] == 1 && tensor->shape[0] == rows->shape[0] &&
                tensor->shape[1] == block->shape[1];
    return good || shape_fault(verifier, op, block, tensor);
}

/* ---- dot -------------------------------------------------------------------------------- */

static bool check_dot(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *a = operand_type(op, 0), *b = operand_type(op, 1);
    const lilac_tile_type *d = op->results[0].type;
    uint32_t rank = d->rank;
    bool good = (rank == 2 || rank == 3) && a->rank == rank && b->rank == rank &&
                (rank == 2 || (a->shape[0] == d->shape[0] && b->shape[0] == d->shape[0])) &&
                a->shape[rank - 2] == d->shape[rank - 2] &&
                b->shape[rank - 1] == d->shape[rank - 1] &&
                a->shape[rank - 1] == b->shape[rank - 2];
    return good || shape_fault(verifier, op, a, d);
}

/* The first operand is a tensor or memory, which a signature cannot say. */
static bool check_warp_group_dot(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *a = operand_type(op, 0);
    if (a->kind != LILAC_TILE_TENSOR && (a->kind != LILAC_TILE_MEMDESC || a->is_tensor_memory)) {
        return refuse(verifier, op, "type-mismatch", "needs a tensor or shared memory to multiply");
    }
    return check_dot(verifier, op);
}

/* ---- reductions ------------------------------------------------------------------------- */

/* The region's arguments: `each` scalars for every operand, twice over for reductions (all of the
 * first element, then all of the second). */
static bool check_combine(const tile_verifier *verifier, const lilac_tile_op *op, uint32_t times) {
    const lilac_tile_block *block = op->regions[0]->first;
    uint32_t n = op->operand_count;
    if (!same_count(verifier, op, "arguments of the region", block->argument_count, times * n)) {
        return false;
    }
    for (uint32_t i = 0; i < times * n; i++) {
        if (!same_type(verifier, op, "argument", i, block->arguments[i]->type,
                       lilac_tile_element(operand_type(op, i % n)))) {
            return false;
        }
    }
    const lilac_tile_op *end = block->last;
    if (!same_count(verifier, end, "values", end->operand_count, op->result_count)) {
        return false;
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (!same_type(verifier, end, "operand", i, operand_type(end, i),
                       lilac_tile_element(op->results[i].type))) {
            return false;
        }
    }
    return true;
}

static bool check_same_shapes(const tile_verifier *verifier, const lilac_tile_op *op) {
    if (op->operand_count == 0) {
        return refuse(verifier, op, "count-mismatch", "needs at least one tensor");
    }
    for (uint32_t i = 1; i < op->operand_count; i++) {
        if (!tile_same_shape(operand_type(op, 0), operand_type(op, i))) {
            return shape_fault(verifier, op, operand_type(op, 0), operand_type(op, i));
        }
    }
    return same_count(verifier, op, "results", op->result_count, op->operand_count);
}

static bool check_reduce(const tile_verifier *verifier, const lilac_tile_op *op) {
    uint32_t axis;
    if (!check_same_shapes(verifier, op) ||
        !find_axis(verifier, op, operand_type(op, 0)->rank, &axis)) {
        return false;
    }
    const lilac_tile_type *from = operand_type(op, 0);
    for (uint32_t i = 0; i < op->result_count; i++) {
        const lilac_tile_type *to = op->results[i].type;
        bool good = lilac_tile_element(to) == lilac_tile_element(operand_type(op, i)) &&
                    (from->rank == 1 ? !lilac_tile_is_tensor(to)
                                     : lilac_tile_is_tensor(to) && to->rank == from->rank - 1);
        for (uint32_t d = 0; good && d < to->rank; d++) {
            good = to->shape[d] == from->shape[d + (d >= axis)];
        }
        if (!good) {
            return shape_fault(verifier, op, operand_type(op, i), to);
        }
    }
    return check_combine(verifier, op, 2);
}

static bool check_scan(const tile_verifier *verifier, const lilac_tile_op *op) {
    uint32_t axis;
    if (!check_same_shapes(verifier, op) ||
        !find_axis(verifier, op, operand_type(op, 0)->rank, &axis)) {
        return false;
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (!same_type(verifier, op, "result", i, op->results[i].type, operand_type(op, i))) {
            return false;
        }
    }
    return check_combine(verifier, op, 2);
}

static bool check_map(const tile_verifier *verifier, const lilac_tile_op *op) {
    int64_t pack = lilac_tile_find_integer(&op->attributes, "pack", 0);
    if (pack < 1 || pack > 64) {
        return refuse(verifier, op, "bad-attribute", "needs an attribute 'pack' from 1 to 64");
    }
    if (op->operand_count == 0 || op->result_count == 0) {
        return refuse(verifier, op, "count-mismatch", "needs at least one tensor");
    }
    const lilac_tile_block *block = op->regions[0]->first;
    uint32_t times = (uint32_t)pack;
    if (!same_count(verifier, op, "arguments of the region", block->argument_count,
                    times * op->operand_count)) {
        return false;
    }
    for (uint32_t i = 0; i < block->argument_count; i++) {
        if (!same_type(verifier, op, "argument", i, block->arguments[i]->type,
                       lilac_tile_element(operand_type(op, i / times)))) {
            return false;
        }
    }
    for (; block; block = block->next) {
        const lilac_tile_op *end = block->last;
        if (end->code != LILAC_TILE_OP_TT_MAP_ELEMENTWISE_RETURN) {
            continue;
        }
        if (!same_count(verifier, end, "values", end->operand_count, times * op->result_count)) {
            return false;
        }
        for (uint32_t i = 0; i < end->operand_count; i++) {
            if (!same_type(verifier, end, "operand", i, operand_type(end, i),
                           lilac_tile_element(op->results[i / times].type))) {
                return false;
            }
        }
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (!tile_same_shape(operand_type(op, 0), op->results[i].type)) {
            return shape_fault(verifier, op, operand_type(op, 0), op->results[i].type);
        }
    }
    return true;
}

/* ---- control flow ----------------------------------------------------------------------- */

/* Arguments `first` … of a block have the types of `count` values. */
static bool check_arguments(const tile_verifier *verifier, const lilac_tile_op *op,
                            const lilac_tile_block *block, uint32_t first,
                            const lilac_tile_use *uses, uint32_t count) {
    if (!same_count(verifier, op, "arguments of the block", block->argument_count, first + count)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!same_type(verifier, op, "argument", first + i, block->arguments[first + i]->type,
                       uses[i].value->type)) {
            return false;
        }
    }
    return true;
}

/* A terminator's operands from `first` on have the types of the results of `op`. */
static bool check_yield(const tile_verifier *verifier, const lilac_tile_op *op,
                        const lilac_tile_op *end, uint32_t first) {
    if (!same_count(verifier, end, "values", end->operand_count - first, op->result_count)) {
        return false;
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (!same_type(verifier, end, "operand", first + i, operand_type(end, first + i),
                       op->results[i].type)) {
            return false;
        }
    }
    return true;
}

static bool check_for(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_block *body = op->regions[0]->first;
    if (operand_type(op, 0)->kind != LILAC_TILE_SCALAR) {
        return refuse(verifier, op, "type-mismatch", "needs single integers as bounds");
    }
    if (!check_arguments(verifier, op, body, 1, op->operands + TILE_FOR_INITS,
                         op->operand_count - TILE_FOR_INITS)) {
        return false;
    }
    return same_type(verifier, op, "argument", 0, body->arguments[0]->type, operand_type(op, 0)) &&
           check_yield(verifier, op, body->last, 0);
}

static bool check_if(const tile_verifier *verifier, const lilac_tile_op *op) {
    for (uint32_t r = 0; r < 2; r++) {
        const lilac_tile_block *block = op->regions[r]->first;
        if (!block) {
            continue;
        }
        if (!same_count(verifier, op, "arguments of the block", block->argument_count, 0) ||
            !check_yield(verifier, op, block->last, 0)) {
            return false;
        }
    }
    return true;
}

static bool check_while(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_block *before = op->regions[0]->first, *after = op->regions[1]->first;
    if (!check_arguments(verifier, op, before, 0, op->operands, op->operand_count) ||
        before->last->operand_count == 0 ||
        !check_yield(verifier, op, before->last, TILE_CONDITION_PASSED) ||
        !check_arguments(verifier, op, after, 0, before->last->operands + TILE_CONDITION_PASSED,
                         before->last->operand_count - TILE_CONDITION_PASSED)) {
        return false;
    }
    const lilac_tile_op *end = after->last;
    if (!same_count(verifier, end, "values", end->operand_count, op->operand_count)) {
        return false;
    }
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (!same_type(verifier, end, "operand", i, operand_type(end, i), operand_type(op, i))) {
            return false;
        }
    }
    return true;
}

static bool check_branch(const tile_verifier *verifier, const lilac_tile_op *op) {
    return check_arguments(verifier, op, op->successors[0], 0, op->operands, op->operand_count);
}

static bool check_conditional_branch(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_attribute *sizes = lilac_tile_find(&op->attributes, "operandSegmentSizes");
    if (!sizes) {
        return refuse(verifier, op, "bad-attribute", "needs an attribute 'operandSegmentSizes'");
    }
    uint32_t first = (uint32_t)sizes->integers[1], second = (uint32_t)sizes->integers[2];
    return check_arguments(verifier, op, op->successors[0], 0, op->operands + 1, first) &&
           check_arguments(verifier, op, op->successors[1], 0, op->operands + 1 + first, second);
}

static bool check_call(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_attribute *callee = lilac_tile_find(&op->attributes, "callee");
    const lilac_tile_function *function = tile_table_get(&verifier->functions, callee->text);
    if (!function) {
        tile_op_error(verifier->module, op, "unknown-function", "there is no function '@%s'",
                      callee->text);
        return false;
    }
    if (!same_count(verifier, op, "operands", op->operand_count, function->parameter_count) ||
        !same_count(verifier, op, "results", op->result_count, function->result_count)) {
        return false;
    }
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (!same_type(verifier, op, "operand", i, operand_type(op, i),
                       function->parameters[i]->type)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (!same_type(verifier, op, "result", i, op->results[i].type, function->results[i])) {
            return false;
        }
    }
    return true;
}

static bool check_return(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_region *region = op->parent->parent;
    const lilac_tile_function *function = region->function;
    if (region->parent || !function) {
        return refuse(verifier, op, "bad-terminator", "ends a function's blocks only");
    }
    if (!same_count(verifier, op, "values", op->operand_count, function->result_count)) {
        return false;
    }
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (!same_type(verifier, op, "operand", i, operand_type(op, i), function->results[i])) {
            return false;
        }
    }
    return true;
}

/* ---- layouts ---------------------------------------------------------------------------- */

/* Operands and results of an elementwise operation are spread alike, so that each thread finds the
 * elements it needs in its own registers. */
static bool check_elementwise_layouts(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *first = NULL;
    for (uint32_t i = 0; i < op->operand_count + op->result_count; i++) {
        const lilac_tile_type *type =
            i < op->operand_count ? operand_type(op, i) : op->results[i - op->operand_count].type;
        if (!lilac_tile_is_tensor(type) || (!verifier->layouts && !type->layout)) {
            continue;
        }
        if (!first) {
            first = type;
        } else if (first->layout != type->layout) {
            tile_op_error(verifier->module, op, "layout-mismatch",
                          "'%s' has operands with the layouts of '%s' and '%s'", name_of(op),
                          tile_type_text(verifier->module, first),
                          tile_type_text(verifier->module, type));
            return false;
        }
    }
    return true;
}

/* ---- by opcode -------------------------------------------------------------------------- */

static tile_rule *const rules[LILAC_TILE_OP_COUNT] = {
    [LILAC_TILE_OP_ARITH_CONSTANT] = check_constant,
    [LILAC_TILE_OP_ARITH_SELECT] = check_select,
    [LILAC_TILE_OP_SCF_FOR] = check_for,
    [LILAC_TILE_OP_SCF_IF] = check_if,
    [LILAC_TILE_OP_SCF_WHILE] = check_while,
    [LILAC_TILE_OP_TTG_WARP_SPECIALIZE] = tile_verify_warp_specialize,
    [LILAC_TILE_OP_CF_BR] = check_branch,
    [LILAC_TILE_OP_CF_COND_BR] = check_conditional_branch,
    [LILAC_TILE_OP_TT_CALL] = check_call,
    [LILAC_TILE_OP_TT_RETURN] = check_return,
    [LILAC_TILE_OP_TT_MAKE_RANGE] = check_make_range,
    [LILAC_TILE_OP_TT_UNSPLAT] = check_unsplat,
    [LILAC_TILE_OP_TT_EXPAND_DIMS] = check_expand_dims,
    [LILAC_TILE_OP_TT_BROADCAST] = check_broadcast,
    [LILAC_TILE_OP_TT_RESHAPE] = check_reshape,
    [LILAC_TILE_OP_TT_TRANS] = tile_verify_order,
    [LILAC_TILE_OP_TT_JOIN] = check_join,
    [LILAC_TILE_OP_TT_SPLIT] = check_split,
    [LILAC_TILE_OP_TT_CAT] = check_cat,
    [LILAC_TILE_OP_TT_GATHER] = check_gather,
    [LILAC_TILE_OP_TT_HISTOGRAM] = check_histogram,
    [LILAC_TILE_OP_TTG_CONVERT_LAYOUT] = check_convert,
    [LILAC_TILE_OP_LILAC_SUM_BLOCKS] = check_sum_blocks,
    [LILAC_TILE_OP_TTG_LOCAL_ALLOC] = tile_verify_local_alloc,
    [LILAC_TILE_OP_TTG_LOCAL_LOAD] = tile_verify_local_access,
    [LILAC_TILE_OP_TTG_LOCAL_STORE] = tile_verify_local_access,
    [LILAC_TILE_OP_TTG_MEMDESC_INDEX] = tile_verify_memdesc_index,
    [LILAC_TILE_OP_TTG_MEMDESC_SUBSLICE] = tile_verify_memdesc_subslice,
    [LILAC_TILE_OP_TTG_MEMDESC_TRANS] = tile_verify_memdesc_trans,
    [LILAC_TILE_OP_TTG_MEMDESC_RESHAPE] = tile_verify_memdesc_reshape,
    [LILAC_TILE_OP_TTG_MEMDESC_REINTERPRET] = tile_verify_memdesc_reinterpret,
    [LILAC_TILE_OP_TTG_ASYNC_COPY_GLOBAL_TO_LOCAL] = tile_verify_async_copy,
    [LILAC_TILE_OP_TTG_ASYNC_WAIT] = tile_verify_wait,
    [LILAC_TILE_OP_TTG_GLOBAL_SCRATCH_ALLOC] = tile_verify_scratch,
    [LILAC_TILE_OP_TTG_FP4_TO_FP] = tile_verify_fp4,
    [LILAC_TILE_OP_TTNG_WARP_GROUP_DOT] = check_warp_group_dot,
    [LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT] = tile_verify_wait,
    [LILAC_TILE_OP_TTNG_FENCE_ASYNC_SHARED] = tile_verify_fence,
    [LILAC_TILE_OP_TTNG_INIT_BARRIER] = tile_verify_barrier,
    [LILAC_TILE_OP_TTNG_INVAL_BARRIER] = tile_verify_barrier,
    [LILAC_TILE_OP_TTNG_BARRIER_EXPECT] = tile_verify_barrier,
    [LILAC_TILE_OP_TTNG_WAIT_BARRIER] = tile_verify_barrier,
    [LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL] = tile_verify_tma,
    [LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_LOCAL_TO_GLOBAL] = tile_verify_tma,
    [LILAC_TILE_OP_TTNG_ASYNC_TMA_REDUCE] = tile_verify_tma,
    [LILAC_TILE_OP_TTNG_ASYNC_TMA_STORE_WAIT] = tile_verify_wait,
    [LILAC_TILE_OP_TTNG_TENSORMAP_CREATE] = tile_verify_tensormap,
    [LILAC_TILE_OP_TT_ATOMIC_RMW] = check_atomic,
    [LILAC_TILE_OP_TT_MAKE_TENSOR_PTR] = check_block_pointer,
    [LILAC_TILE_OP_TT_ADVANCE] = check_block_pointer,
    [LILAC_TILE_OP_TT_MAKE_TENSOR_DESCRIPTOR] = check_descriptor,
    [LILAC_TILE_OP_TT_DESCRIPTOR_LOAD] = check_descriptor_access,
    [LILAC_TILE_OP_TT_DESCRIPTOR_STORE] = check_descriptor_access,
    [LILAC_TILE_OP_TT_DESCRIPTOR_REDUCE] = check_descriptor_access,
    [LILAC_TILE_OP_TT_DESCRIPTOR_GATHER] = check_descriptor_rows,
    [LILAC_TILE_OP_TT_DESCRIPTOR_SCATTER] = check_descriptor_rows,
    [LILAC_TILE_OP_TT_DOT] = check_dot,
    [LILAC_TILE_OP_TT_DOT_SCALED] = tile_verify_dot_scaled,
    [LILAC_TILE_OP_TT_REDUCE] = check_reduce,
    [LILAC_TILE_OP_TT_SCAN] = check_scan,
    [LILAC_TILE_OP_TT_MAP_ELEMENTWISE] = check_map,
};

bool tile_verify_op_rules(tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_op_info *info = lilac_tile_op_info_get(op->code);
    if (!check_format_attributes(verifier, op)) {
        return false;
    }
    if (rules[op->code] && !rules[op->code](verifier, op)) {
        return false;
    }
    if (info->traits & LILAC_TILE_ELEMENTWISE) {
        return check_elementwise_layouts(verifier, op);
    }
    return true;
}
