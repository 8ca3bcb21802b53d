/* tt.cat: concatenation of two one-dimensional tensors. The operation may order the result's
 * elements freely. This lowering keeps their order. The engine assigns to the result the
 * operand's layout with one more register bit, the number of the operand. Then only register
 * numbers change. Any other layout is a conversion from this one. */
#include "convert_layout.h"
#include "operations.h"

/* The operand's layout with the number of the operand in a new highest register bit. */
static const lilac_lower_view *whole_view(lilac_lowering *l, const lilac_lower_view *half,
                                          const lilac_lower_view *result) {
    lilac_layout_columns columns = half->columns;
    columns.bits[0] = result->columns.bits[0];
    columns.out_bits = result->columns.out_bits;
    columns.registers[columns.register_bits++] = 1ULL << (columns.out_bits - 1);
    return lilac_lower_view_of_columns(l, &columns);
}

bool lilac_lower_cat(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_lower_value *to = lilac_lower_result(l, op, 0);
    if (to == NULL) {
        return false;
    }
    const lilac_lower_value *halves[2] = {lilac_lower_operand(l, op, 0),
                                          lilac_lower_operand(l, op, 1)};
    const lilac_lower_view *half = halves[0]->view;
    if (to->view->columns.rank != 1 || half->columns.rank != 1 ||
        to->view->columns.bits[0] != half->columns.bits[0] + 1) {
        return lilac_lower_unsupported(
            l,
            "the operands have %u dimensions and the result has %u; expected one dimension and a "
            "result of twice as many elements",
            half->columns.rank, to->view->columns.rank);
    }
    const lilac_lower_view *whole = whole_view(l, half, to->view);
    lilac_simt_value *values = lilac_arena_array(l->arena, lilac_simt_value, whole->count);
    if (!lilac_lower_read_as(l, halves[0], half, values) ||
        !lilac_lower_read_as(l, halves[1], half, values + half->count)) {
        return false;
    }
    const lilac_lower_conversion conversion = {to->simt, whole, to->view, values, to->base};
    return lilac_lower_move(l, LILAC_PLAN_ANY, &conversion);
}
