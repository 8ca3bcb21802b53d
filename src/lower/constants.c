/* Operations without tensor operands: constants, ranges, and the program's index in the grid.
 *
 *   tt.make_range   register r of a thread = thread part + constant (their bits are disjoint)
 *   dense<[…]>      the elements that a register may hold, selected by the bits of the thread's
 *                   index: a tree of selects with one level for each relevant bit */
#include "coordinates.h"
#include "operations.h"

/* ---- constants --------------------------------------------------------------------------- */

static uint64_t attribute_bits(const lilac_tile_attribute *attribute, uint32_t index) {
    if (attribute->kind == LILAC_TILE_ATTR_DENSE) {
        return (uint64_t)attribute->integers[attribute->count == 1 ? 0 : index];
    }
    return (uint64_t)attribute->integer;
}

/* Position of a flat coordinate among the elements in row-major order. */
static uint32_t row_major(const lilac_lower_view *view, uint64_t coordinate) {
    uint64_t index = 0;
    for (uint32_t d = 0; d < view->columns.rank; d++) {
        uint64_t mask = (1ULL << view->columns.bits[d]) - 1;
        index = index << view->columns.bits[d] | (coordinate >> view->columns.start[d] & mask);
    }
    return (uint32_t)index;
}

typedef struct table {
    const lilac_lower_view *view;
    const lilac_tile_attribute *attribute;
    lilac_simt_type type;
    lilac_simt_value bits_set[LILAC_LAYOUT_MAX_BITS]; /* predicates, built at their first use */
} table;

static lilac_simt_value look_up(lilac_lowering *l, table *t, uint64_t coordinate, uint32_t bit) {
    while (bit > 0 && t->view->columns.threads[bit - 1] == 0) {
        bit--;
    }
    if (bit == 0) {
        uint64_t bits = attribute_bits(t->attribute, row_major(t->view, coordinate));
        return lilac_lower_integer(l, t->type, (int64_t)bits);
    }
    bit--;
    lilac_simt_value no = look_up(l, t, coordinate, bit);
    lilac_simt_value yes = look_up(l, t, coordinate ^ t->view->columns.threads[bit], bit);
    if (yes == no) {
        return yes;
    }
    if (t->bits_set[bit] == 0) {
        uint64_t column[LILAC_LAYOUT_MAX_BITS] = {0};
        column[bit] = 1;
        lilac_simt_value set =
            lilac_lower_linear(&l->builder, t->view->columns.thread_bits, column, 0, NULL);
        t->bits_set[bit] = lilac_simt_compare_values(&l->builder, LILAC_SIMT_NE, set,
                                                     lilac_lower_integer(l, LILAC_SIMT_I32, 0));
    }
    return lilac_lower_select(l, t->bits_set[bit], yes, no);
}

#define MAX_DENSE 1024

static bool dense_constant(lilac_lowering *l, lilac_lower_value *result,
                           const lilac_tile_attribute *attribute) {
    const lilac_lower_view *view = result->view;
    if (attribute->count > MAX_DENSE) {
        return lilac_lower_unsupported(
            l, "the constant has %u different elements; at most %d are supported", attribute->count,
            MAX_DENSE);
    }
    for (uint32_t i = 0; i < view->columns.block_bits; i++) {
        if (view->columns.blocks[i] != 0) {
            return lilac_lower_unsupported(l, "the constant is distributed over the blocks of a "
                                              "cluster; expected one element for "
                                              "all or all elements in each block");
        }
    }
    table t = {.view = view, .attribute = attribute, .type = result->simt};
    for (uint32_t r = 0; r < result->count; r++) {
        uint32_t same = view->canonical[r];
        result->base[r] = same != r
                              ? result->base[same]
                              : look_up(l, &t, view->coordinates[r], view->columns.thread_bits);
    }
    return true;
}

/* Any value is correct. The lowering uses 0. */
bool lilac_lower_poison(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_lower_value *result = lilac_lower_result(l, op, 0);
    for (uint32_t r = 0; result != NULL && r < result->count; r++) {
        result->base[r] = lilac_lower_integer(l, result->simt, 0);
    }
    return result != NULL;
}

bool lilac_lower_arith_constant(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_lower_value *result = lilac_lower_result(l, op, 0);
    if (result == NULL) {
        return false;
    }
    const lilac_tile_attribute *attribute = lilac_tile_find(&op->attributes, "value");
    if (attribute == NULL) {
        return lilac_lower_bad_attribute(l, "value", "a constant");
    }
    if (result->view != NULL && attribute->kind == LILAC_TILE_ATTR_DENSE && attribute->count > 1) {
        return dense_constant(l, result, attribute);
    }
    lilac_simt_value value =
        lilac_lower_integer(l, result->simt, (int64_t)attribute_bits(attribute, 0));
    for (uint32_t r = 0; r < result->count; r++) {
        result->base[r] = value;
    }
    int64_t number;
    if (!lilac_simt_type_is_float(result->simt) && lilac_lower_constant(l, result, &number)) {
        result->low = result->high = number;
    }
    return true;
}

/* ---- places ------------------------------------------------------------------------------ */

static bool place(lilac_lowering *l, const lilac_tile_op *op, bool is_count) {
    lilac_lower_value *result = lilac_lower_result(l, op, 0);
    if (result == NULL) {
        return false;
    }
    if (result->simt != LILAC_SIMT_I32) {
        return lilac_lower_refuse(l, "unsupported-type", "the result of '%s' is not an i32",
                                  lilac_tile_op_info_get(op->code)->name);
    }
    const int64_t number = lilac_tile_program_axis(op);
    if (number < 0 || number > 2) {
        return lilac_lower_bad_attribute(l, "axis", "x, y or z");
    }
    lilac_simt_instruction like = {
        .code = is_count ? LILAC_SIMT_OP_GRID : LILAC_SIMT_OP_BLOCK,
        .detail = (uint8_t)number,
    };
    lilac_simt_type type = LILAC_SIMT_I32;
    const int64_t order = lilac_tile_find_integer(&l->function->attributes, LILAC_PROGRAM_ORDER, 0);
    if (order < -3 || order > 3) {
        return lilac_lower_refuse(l, "unsupported-operation",
                                  "the attribute '" LILAC_PROGRAM_ORDER
                                  "' of the function is %lld; expected -3 to 3",
                                  (long long)order);
    }
    result->base[0] = !is_count && order != 0
                          ? lilac_lower_ordered_program(l, order, (uint32_t)number)
                          : lilac_simt_build(&l->builder, &like, 0, NULL, 1, &type);
    result->low = is_count ? 1 : 0;
    result->high = is_count ? INT32_MAX : INT32_MAX - 1;
    return true;
}

bool lilac_lower_program_id(lilac_lowering *l, const lilac_tile_op *op) {
    return place(l, op, false);
}

bool lilac_lower_num_programs(lilac_lowering *l, const lilac_tile_op *op) {
    return place(l, op, true);
}

bool lilac_lower_make_range(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_lower_value *result = lilac_lower_result(l, op, 0);
    if (result == NULL) {
        return false;
    }
    if (result->simt != LILAC_SIMT_I32 || result->view == NULL) {
        return lilac_lower_refuse(l, "unsupported-type",
                                  "the result of 'tt.make_range' is not a tensor of i32");
    }
    const lilac_lower_view *view = result->view;
    int64_t start = lilac_tile_find_integer(&op->attributes, "start", 0);
    uint64_t of_threads = 0, of_registers = 0;
    for (uint32_t i = 0; i < view->columns.thread_bits; i++) {
        of_threads |= view->columns.threads[i];
    }
    for (uint32_t i = 0; i < view->columns.block_bits; i++) {
        of_threads |= view->columns.blocks[i];
    }
    for (uint32_t i = 0; i < view->columns.register_bits; i++) {
        of_registers |= view->columns.registers[i];
    }
    lilac_simt_value part =
        lilac_lower_linear(&l->builder, view->columns.thread_bits, view->columns.threads,
                           view->columns.block_bits, view->columns.blocks);
    int64_t *offsets = lilac_arena_array(l->arena, int64_t, result->count);
    bool disjoint = (of_threads & of_registers) == 0;
    for (uint32_t r = 0; r < result->count; r++) {
        int64_t coordinate = (int64_t)view->coordinates[r];
        result->base[r] = part;
        offsets[r] = start;
        if (disjoint) {
            offsets[r] += coordinate;
        } else {
            result->base[r] = lilac_simt_op2(&l->builder, LILAC_SIMT_OP_XOR, LILAC_SIMT_I32, part,
                                             lilac_lower_integer(l, LILAC_SIMT_I32, coordinate));
        }
    }
    result->offsets = offsets;
    result->exact = true;
    result->low = 0;
    result->high = (int64_t)(disjoint ? of_threads : of_threads | of_registers);
    result->offset_low = start;
    result->offset_high = start + (disjoint ? (int64_t)of_registers : 0);
    return true;
}
