/* On which axes of the grid an address may depend: the operations that its value is computed from,
 * through loads, and for values that control flow passes on, all that it is passed. */
#include "internal.h"

#include <lilac/tile_loops.h>

typedef struct slice {
    const lilac_explanation *e;
    bool *seen;    /* values, by id */
    uint32_t axes; /* a bit for each */
} slice;

static void follow(slice *s, const lilac_tile_value *value);

/* An iteration argument or a result of scf.for: the bounds, the initial value, and the next one. */
static void follow_carried(slice *s, const lilac_tile_op *loop, uint32_t i) {
    for (uint32_t k = 0; k < 3; k++) {
        follow(s, loop->operands[k].value);
    }
    follow(s, lilac_tile_init(loop, i));
    follow(s, lilac_tile_yielded(loop, 0, i));
}

static void follow(slice *s, const lilac_tile_value *value) {
    const lilac_tile_op *op = value->op != NULL ? value->op : value->block->parent->parent;
    if (op == NULL || s->seen[value->id]) {
        return; /* a parameter of the kernel */
    }
    s->seen[value->id] = true;
    if (op->code == LILAC_TILE_OP_SCF_FOR && (value->op != NULL || value->index > 0)) {
        follow_carried(s, op, value->index - (value->op == NULL));
        return;
    }
    if (op->code == LILAC_TILE_OP_TT_GET_PROGRAM_ID) {
        s->axes |= 1u << (uint32_t)lilac_tile_program_axis(op);
    } else if (op->region_count > 0 && op->code != LILAC_TILE_OP_SCF_FOR) {
        s->axes = 7; /* other control flow passes on what may depend on any of them */
    }
    for (uint32_t k = 0; k < op->operand_count && (value->op != NULL || k < 3); k++) {
        follow(s, op->operands[k].value);
    }
}

double explain_varying_part(const lilac_explanation *e, uint32_t index) {
    slice s = {.e = e, .seen = lilac_arena_array(e->arena, bool, e->function->value_count + 1)};
    double part = 1;
    follow(&s, e->operations[index].op->operands[0].value);
    for (uint32_t d = 0; d < 3; d++) {
        part /= s.axes >> d & 1 ? 1 : e->options.launch.grid[d];
    }
    return part;
}
