/* transfer: layouts through the operations that move no data (Theorem 9.3).
 *
 *   operation      result of operand layout L          operand of result layout R
 *   expand_dims    L with a dimension of size 1        R without the dimension
 *   broadcast      – (who holds the copies is free)    R with the grown dimensions' bits put to 0
 *   trans          L's outputs permuted                R's permuted back
 *   reshape        L's outputs cut anew, row-major     R's cut anew
 *   join           a new register bit 0 ↦ the new      R without the register bit that is the
 *                  last dimension                      last dimension
 *   split          as join's operand                   as join's result
 *   cat            a new highest register bit     R without the register bit that is the half
 *                  is the half
 *   reduce         L without the axis                  R with the axis in the lanes and warps that
 *                                                      hold copies, and the rest in registers
 *
 * Registers that only repeat an element are dropped on the way.
 */
#include "assign.h"

#include <string.h>

const lilac_tile_type *lilac_transfer_type(assignment *a, const lilac_tile_type *type,
                                           const lilac_layout *layout) {
    uint64_t hash = lilac_hash_word(type->id, (uint64_t)(uintptr_t)layout);
    typed_layout *known = &a->types[hash % TYPE_BUCKETS];
    if (known->from != type || known->layout != layout) {
        known->from = type;
        known->layout = layout;
        known->to = lilac_tile_with_layout(a->module, type, layout);
    }
    return known->to;
}

static const char *dim_name(uint32_t index, char name[8]) {
    memcpy(name, "dim", 3);
    uint32_t at = 3;
    if (index >= 10)
        name[at++] = (char)('0' + index / 10);
    name[at++] = (char)('0' + index % 10);
    name[at] = '\0';
    return name;
}

/* An empty layout with the outputs of a shape. */
static bool with_shape(lilac_layout *result, uint32_t rank, const int64_t *shape) {
    char name[8];
    lilac_layout_init(result);
    for (uint32_t d = 0; d < rank; d++)
        if (!lilac_layout_add_out(result, dim_name(d, name), log2_of(shape[d]), NULL))
            return false;
    return true;
}

/* R's bits along grown dimensions do not reach the operand. */
static bool shrink(lilac_layout *result, const lilac_layout *layout, const lilac_tile_type *to) {
    if (layout->out_count != to->rank || !with_shape(result, to->rank, to->shape))
        return false;
    uint32_t at = 0;
    for (uint32_t i = 0; i < layout->in_count; i++) {
        uint64_t columns[LILAC_LAYOUT_MAX_BITS];
        for (uint32_t bit = 0; bit < layout->in[i].bits; bit++, at++) {
            uint64_t coordinates[LILAC_LAYOUT_MAX_DIMS];
            for (uint32_t d = 0; d < to->rank; d++)
                coordinates[d] =
                    to->shape[d] == 1 ? 0 : lilac_layout_coordinate(layout, layout->columns[at], d);
            columns[bit] = lilac_layout_pack(result, coordinates);
        }
        if (!lilac_layout_add_in(result, layout->in[i].name, layout->in[i].bits, columns, NULL))
            return false;
    }
    lilac_layout_drop_free(result, result, "register");
    return true;
}

static bool permute(lilac_layout *result, const lilac_layout *layout, const lilac_tile_op *op,
                    bool back) {
    const lilac_tile_attribute *given = lilac_tile_find(&op->attributes, "order");
    uint32_t order[LILAC_LAYOUT_MAX_DIMS];
    if (given == NULL || given->kind != LILAC_TILE_ATTR_INTEGERS ||
        given->count != layout->out_count)
        return false;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < given->count; i++) {
        uint64_t from = (uint64_t)given->integers[i];
        if (from >= given->count || (seen >> from & 1))
            return false;
        seen |= UINT64_C(1) << from;
        if (back)
            order[from] = i;
        else
            order[i] = (uint32_t)from;
    }
    lilac_layout_transpose(result, layout, order);
    return true;
}

static bool recut(lilac_layout *result, const lilac_layout *layout, const lilac_tile_type *to) {
    uint32_t bits[LILAC_MAX_RANK];
    if (to->rank > LILAC_MAX_RANK)
        return false;
    for (uint32_t d = 0; d < to->rank; d++)
        bits[d] = log2_of(to->shape[d]);
    return lilac_layout_reshape(result, layout, to->rank, bits, NULL);
}

/* A new last dimension of two, held in register bit 0. */
static bool pair(lilac_layout *result, const lilac_layout *layout) {
    char name[8];
    lilac_layout_init(result);
    for (uint32_t d = 0; d < layout->out_count; d++)
        if (!lilac_layout_add_out(result, layout->out[d].name, layout->out[d].bits, NULL))
            return false;
    if (!lilac_layout_add_out(result, dim_name(layout->out_count, name), 1, NULL))
        return false;
    uint32_t at = 0;
    for (uint32_t i = 0; i < layout->in_count; i++) {
        uint64_t columns[LILAC_LAYOUT_MAX_BITS + 1];
        uint32_t count = 0;
        if (i == 0)
            columns[count++] = UINT64_C(1) << layout->out_bits;
        for (uint32_t bit = 0; bit < layout->in[i].bits; bit++)
            columns[count++] = layout->columns[at++];
        if (!lilac_layout_add_in(result, layout->in[i].name, count, columns, NULL))
            return false;
    }
    return true;
}

/* Without the last dimension of two, when one register bit alone is it. */
static bool unpair(lilac_layout *result, const lilac_layout *layout) {
    if (layout->out_count == 0 || layout->out[layout->out_count - 1].bits != 1)
        return false;
    uint64_t last = UINT64_C(1) << (layout->out_bits - 1);
    uint32_t holders = 0;
    for (uint32_t i = 0; i < layout->in_bits; i++)
        if (layout->columns[i] & last) {
            holders++;
            if (layout->columns[i] != last || i >= layout->in[0].bits)
                return false;
        }
    if (holders != 1)
        return false;
    lilac_layout_slice(result, layout, layout->out_count - 1U);
    return true;
}

/* tt.cat: a new highest register bit is the half, the highest bit of the one dimension. */
static bool lengthen(lilac_layout *result, const lilac_layout *layout, const lilac_tile_type *to) {
    if (layout->out_count != 1 || !with_shape(result, to->rank, to->shape))
        return false;
    uint32_t at = 0;
    for (uint32_t i = 0; i < layout->in_count; i++) {
        uint64_t columns[LILAC_LAYOUT_MAX_BITS + 1];
        uint32_t count = layout->in[i].bits;
        memcpy(columns, layout->columns + at, count * sizeof *columns);
        at += count;
        if (i == 0)
            columns[count++] = UINT64_C(1) << layout->out_bits;
        if (!lilac_layout_add_in(result, layout->in[i].name, count, columns, NULL))
            return false;
    }
    return true;
}

/* Back: when one register bit alone is the half. */
static bool shorten(lilac_layout *result, const lilac_layout *layout, const lilac_tile_type *to) {
    uint64_t half = UINT64_C(1) << (layout->out_bits - 1);
    uint32_t holders = 0, at = 0;
    for (uint32_t i = 0; i < layout->in_bits; i++)
        if (layout->columns[i] & half)
            holders += layout->columns[i] == half && i < layout->in[0].bits ? 1 : 2;
    if (layout->out_count != 1 || holders != 1 || !with_shape(result, to->rank, to->shape))
        return false;
    for (uint32_t i = 0; i < layout->in_count; i++) {
        uint64_t columns[LILAC_LAYOUT_MAX_BITS];
        uint32_t count = 0;
        for (uint32_t bit = 0; bit < layout->in[i].bits; bit++, at++)
            if (layout->columns[at] != half)
                columns[count++] = layout->columns[at];
        if (!lilac_layout_add_in(result, layout->in[i].name, count, columns, NULL))
            return false;
    }
    return true;
}

/* A layout of `to` whose slice along the axis is R: each column of R keeps its place, the axis goes
 * into lane and warp bits that only make copies, lowest first, and what is left of it into new
 * registers. */
static bool unreduce(lilac_layout *result, const lilac_layout *layout, const lilac_tile_type *to,
                     uint32_t axis) {
    if (axis >= to->rank || layout->out_count + 1U != to->rank ||
        !with_shape(result, to->rank, to->shape))
        return false;
    uint64_t next = UINT64_C(1) << lilac_layout_out_start(result, axis);
    uint64_t end = next << result->out[axis].bits;
    uint64_t columns[4][2 * LILAC_LAYOUT_MAX_BITS];
    uint32_t at = 0;
    if (layout->in_count > 4)
        return false;
    for (uint32_t i = 0; i < layout->in_count; i++) {
        bool takes =
            strcmp(layout->in[i].name, "lane") == 0 || strcmp(layout->in[i].name, "warp") == 0;
        for (uint32_t bit = 0; bit < layout->in[i].bits; bit++, at++) {
            uint64_t coordinates[LILAC_LAYOUT_MAX_DIMS];
            for (uint32_t d = 0; d < to->rank; d++)
                coordinates[d] = d == axis ? 0
                                           : lilac_layout_coordinate(layout, layout->columns[at],
                                                                     d > axis ? d - 1 : d);
            columns[i][bit] = lilac_layout_pack(result, coordinates);
            if (takes && columns[i][bit] == 0 && next < end) {
                columns[i][bit] = next;
                next <<= 1;
            }
        }
    }
    uint32_t registers = layout->in[0].bits;
    for (; next < end; next <<= 1)
        columns[0][registers++] = next;
    for (uint32_t i = 0; i < layout->in_count; i++)
        if (!lilac_layout_add_in(result, layout->in[i].name,
                                 i == 0 ? registers : layout->in[i].bits, columns[i], NULL))
            return false;
    return true;
}

const lilac_layout *lilac_transfer_forward(assignment *a, const lilac_tile_op *op,
                                           const lilac_layout *operand) {
    lilac_layout made;
    uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    bool done = false;
    switch (op->code) {
    case LILAC_TILE_OP_TT_EXPAND_DIMS:
        if (axis <= operand->out_count && operand->out_count < LILAC_LAYOUT_MAX_DIMS) {
            lilac_layout_drop_free(&made, operand, "register");
            lilac_layout_expand(&made, &made, axis);
            done = true;
        }
        break;
    case LILAC_TILE_OP_TT_REDUCE:
        if (axis < operand->out_count) {
            lilac_layout_slice(&made, operand, axis);
            done = true;
        }
        break;
    case LILAC_TILE_OP_TT_TRANS:
        done = permute(&made, operand, op, false);
        break;
    case LILAC_TILE_OP_TT_RESHAPE:
        done = recut(&made, operand, op->results[0].type);
        break;
    case LILAC_TILE_OP_TT_JOIN:
        done = pair(&made, operand);
        break;
    case LILAC_TILE_OP_TT_SPLIT:
        done = unpair(&made, operand);
        break;
    case LILAC_TILE_OP_TT_CAT:
        done = lengthen(&made, operand, op->results[0].type);
        break;
    case LILAC_TILE_OP_TT_SCAN:
    case LILAC_TILE_OP_TT_GATHER: /* the index's */
        return operand;
    default:
        break;
    }
    return done ? lilac_tile_intern_layout(a->module, &made) : NULL;
}

const lilac_layout *lilac_transfer_backward(assignment *a, const lilac_tile_op *op,
                                            const lilac_layout *result) {
    lilac_layout made;
    uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    bool done = false;
    switch (op->code) {
    case LILAC_TILE_OP_TT_EXPAND_DIMS:
        if (axis < result->out_count) {
            lilac_layout_slice(&made, result, axis);
            done = true;
        }
        break;
    case LILAC_TILE_OP_TT_REDUCE:
        done = unreduce(&made, result, op->operands[0].value->type, axis);
        break;
    case LILAC_TILE_OP_TT_BROADCAST:
        done = shrink(&made, result, op->operands[0].value->type);
        break;
    case LILAC_TILE_OP_TT_TRANS:
        done = permute(&made, result, op, true);
        break;
    case LILAC_TILE_OP_TT_RESHAPE:
        done = recut(&made, result, op->operands[0].value->type);
        break;
    case LILAC_TILE_OP_TT_JOIN:
        done = unpair(&made, result);
        break;
    case LILAC_TILE_OP_TT_SPLIT:
        done = pair(&made, result);
        break;
    case LILAC_TILE_OP_TT_CAT:
        done = shorten(&made, result, op->operands[0].value->type);
        break;
    default: /* element by element */
        return result;
    }
    return done ? lilac_tile_intern_layout(a->module, &made) : NULL;
}
