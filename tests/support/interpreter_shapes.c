/* Operations that compute tensors from no operands, or move elements: the latter have a function
 * from an element of a result to an element of an operand. */
#include "interpreter_machine.h"

static void coordinates(const lilac_tile_type *type, uint64_t e, uint64_t *at_dim) {
    for (uint32_t d = type->rank; d-- > 0;) {
        at_dim[d] = e % (uint64_t)type->shape[d];
        e /= (uint64_t)type->shape[d];
    }
}

static uint64_t flat(const lilac_tile_type *type, const uint64_t *at_dim) {
    uint64_t e = 0;
    for (uint32_t d = 0; d < type->rank; d++) {
        e = e * (uint64_t)type->shape[d] + at_dim[d];
    }
    return e;
}

/* The element of an operand that is an element of a result. */
typedef struct moved_element {
    machine *m;
    const lilac_tile_op *op;
    const lilac_tile_type *from, *to; /* operand 0, the results */
    uint32_t result;
    uint64_t e;                 /* the element of the result, in row-major order */
    uint64_t c[LILAC_MAX_RANK]; /* its coordinates */
} moved_element;

typedef interpreter_cell element_source(moved_element *e);

static void move_elements(machine *m, const lilac_tile_op *op, element_source *source) {
    moved_element each = {
        .m = m, .op = op, .from = op->operands[0].value->type, .to = op->results[0].type};
    for (each.result = 0; each.result < op->result_count; each.result++) {
        interpreter_cell *out = target(m, &op->results[each.result]);
        for (each.e = 0; each.e < count_of(each.to); each.e++) {
            if (lilac_tile_is_tensor(each.to)) {
                coordinates(each.to, each.e, each.c);
            }
            out[each.e] = source(&each);
        }
    }
}

static interpreter_cell same_index(moved_element *e) {
    return at(e->m, e->op, 0, e->e);
}

/* Row-major order stays: tt.expand_dims, tt.reshape, ttg.convert_layout. */
void interpreter_run_reshape(machine *m, const lilac_tile_op *op) {
    move_elements(m, op, same_index);
}

/* Programs run one after another, so that the sum is known where there is one along z. */
void interpreter_run_sum_blocks(machine *m, const lilac_tile_op *op) {
    if (m->run->grid[2] > 1) {
        end(m, INTERPRETER_UNSUPPORTED, op);
        return;
    }
    move_elements(m, op, same_index);
}

static interpreter_cell only_element(moved_element *e) {
    return read(e->m, e->op, 0)[0];
}

/* tt.splat and tt.unsplat. */
void interpreter_run_splat(machine *m, const lilac_tile_op *op) {
    move_elements(m, op, only_element);
}

static interpreter_cell broadcast_source(moved_element *e) {
    for (uint32_t d = 0; d < e->to->rank; d++) {
        e->c[d] = e->from->shape[d] == 1 ? 0 : e->c[d];
    }
    return at(e->m, e->op, 0, flat(e->from, e->c));
}

void interpreter_run_broadcast(machine *m, const lilac_tile_op *op) {
    move_elements(m, op, broadcast_source);
}

static interpreter_cell trans_source(moved_element *e) {
    const lilac_tile_attribute *order = lilac_tile_find(&e->op->attributes, "order");
    uint64_t from[LILAC_MAX_RANK];
    for (uint32_t d = 0; d < e->to->rank; d++) {
        from[order->integers[d]] = e->c[d];
    }
    return at(e->m, e->op, 0, flat(e->from, from));
}

void interpreter_run_trans(machine *m, const lilac_tile_op *op) {
    move_elements(m, op, trans_source);
}

static interpreter_cell join_source(moved_element *e) {
    return at(e->m, e->op, (uint32_t)(e->e % 2), e->e / 2);
}

void interpreter_run_join(machine *m, const lilac_tile_op *op) {
    move_elements(m, op, join_source);
}

static interpreter_cell split_source(moved_element *e) {
    return at(e->m, e->op, 0, 2 * e->e + e->result);
}

void interpreter_run_split(machine *m, const lilac_tile_op *op) {
    move_elements(m, op, split_source);
}

static interpreter_cell cat_source(moved_element *e) {
    uint64_t half = count_of(e->from);
    return e->e < half ? at(e->m, e->op, 0, e->e) : at(e->m, e->op, 1, e->e - half);
}

void interpreter_run_cat(machine *m, const lilac_tile_op *op) {
    move_elements(m, op, cat_source);
}

static interpreter_cell gather_source(moved_element *e) {
    uint64_t axis = (uint64_t)lilac_tile_find_integer(&e->op->attributes, "axis", 0);
    interpreter_cell index = at(e->m, e->op, 1, e->e);
    const lilac_tile_type *type = lilac_tile_element(e->op->operands[1].value->type);
    int64_t i = lilac_scalar_signed(type->scalar, index.bits);
    e->c[axis] = (uint64_t)i;
    return index.error != 0 || i < 0 || i >= e->from->shape[axis]
               ? OPEN
               : at(e->m, e->op, 0, flat(e->from, e->c));
}

void interpreter_run_gather(machine *m, const lilac_tile_op *op) {
    move_elements(m, op, gather_source);
}

void interpreter_run_histogram(machine *m, const lilac_tile_op *op) {
    interpreter_cell *out = target(m, &op->results[0]);
    uint64_t bins = count_of(op->results[0].type);
    bool open = false;
    memset(out, 0, bins * sizeof *out);
    const lilac_tile_type *type = op->operands[0].value->type;
    for (uint64_t e = 0; e < count_of(type); e++) {
        interpreter_cell cell = at(m, op, 0, e);
        interpreter_cell mask =
            op->operand_count > 1 ? at(m, op, 1, e) : (interpreter_cell){1, 0, 0};
        open = open || mask.error != 0 || ((mask.bits & 1) && cell.error != 0);
        if ((mask.bits & 1) && cell.bits < bins) {
            out[cell.bits].bits++;
        } else if (mask.bits & 1) {
            open = true; /* a number that has no bin */
        }
    }
    for (uint64_t i = 0; i < bins && open; i++) {
        out[i] = OPEN;
    }
}

/* ---- sources ---------------------------------------------------------------------------- */

void interpreter_run_constant(machine *m, const lilac_tile_op *op) {
    const lilac_tile_type *type = op->results[0].type;
    const lilac_tile_attribute *value = lilac_tile_find(&op->attributes, "value");
    interpreter_cell *out = target(m, &op->results[0]);
    for (uint64_t e = 0; e < count_of(type); e++) {
        int64_t bits = value->kind == LILAC_TILE_ATTR_DENSE
                           ? value->integers[value->count > 1 ? e : 0]
                           : value->integer;
        uint64_t mask = lilac_scalar_mask(kind_of(lilac_tile_element(type)), (uint64_t)bits);
        out[e] = (interpreter_cell){mask, 0, 0};
    }
}

void interpreter_run_range(machine *m, const lilac_tile_op *op) {
    const lilac_tile_type *type = op->results[0].type;
    int64_t start = lilac_tile_find_integer(&op->attributes, "start", 0);
    interpreter_cell *out = target(m, &op->results[0]);
    for (uint64_t e = 0; e < count_of(type); e++) {
        uint64_t bits = lilac_scalar_mask(kind_of(lilac_tile_element(type)), (uint64_t)start + e);
        out[e] = (interpreter_cell){bits, 0, 0};
    }
}

void interpreter_run_poison(machine *m, const lilac_tile_op *op) {
    interpreter_cell *out = target(m, &op->results[0]);
    for (uint64_t e = 0; e < count_of(op->results[0].type); e++) {
        out[e] = OPEN;
    }
}

static uint32_t axis_of(const lilac_tile_op *op) {
    lilac_name name = lilac_tile_find_text(&op->attributes, "axis");
    return name != NULL ? (uint32_t)(name[0] - 'x')
                        : (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
}

void interpreter_run_program_id(machine *m, const lilac_tile_op *op) {
    target(m, &op->results[0])[0] = (interpreter_cell){m->program[axis_of(op)], 0, 0};
}

void interpreter_run_num_programs(machine *m, const lilac_tile_op *op) {
    target(m, &op->results[0])[0] = (interpreter_cell){m->run->grid[axis_of(op)], 0, 0};
}
