/* Operations that make tensors or move their elements: every one of them says, for each element of
 * its result, which element of an operand that is. */
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

bool interpreter_run_shape(machine *m, const lilac_tile_op *op) {
    if (op->result_count == 0 || op->operand_count == 0) {
        return false;
    }
    const lilac_tile_type *from = op->operands[0].value->type, *to = op->results[0].type;
    uint64_t c[LILAC_MAX_RANK], p[LILAC_MAX_RANK];
    switch (op->code) {
    case LILAC_TILE_OP_TT_SPLAT:
    case LILAC_TILE_OP_TT_UNSPLAT:
    case LILAC_TILE_OP_TT_EXPAND_DIMS:
    case LILAC_TILE_OP_TT_RESHAPE:
    case LILAC_TILE_OP_TTG_CONVERT_LAYOUT:
    case LILAC_TILE_OP_TT_BROADCAST:
    case LILAC_TILE_OP_TT_TRANS:
    case LILAC_TILE_OP_TT_JOIN:
    case LILAC_TILE_OP_TT_SPLIT:
    case LILAC_TILE_OP_TT_CAT:
    case LILAC_TILE_OP_TT_GATHER:
        break;
    default:
        return false;
    }
    const lilac_tile_attribute *order = lilac_tile_find(&op->attributes, "order");
    uint64_t axis = (uint64_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    for (uint32_t r = 0; r < op->result_count; r++) {
        interpreter_cell *out = target(m, &op->results[r]);
        for (uint64_t e = 0; e < count_of(to); e++) {
            if (lilac_tile_is_tensor(to)) {
                coordinates(to, e, c);
            }
            switch (op->code) {
            case LILAC_TILE_OP_TT_SPLAT:
            case LILAC_TILE_OP_TT_UNSPLAT:
                out[e] = read(m, op, 0)[0];
                break;
            case LILAC_TILE_OP_TT_BROADCAST:
                for (uint32_t d = 0; d < to->rank; d++) {
                    c[d] = from->shape[d] == 1 ? 0 : c[d];
                }
                out[e] = at(m, op, 0, flat(from, c));
                break;
            case LILAC_TILE_OP_TT_TRANS:
                for (uint32_t d = 0; d < to->rank; d++) {
                    p[order->integers[d]] = c[d];
                }
                out[e] = at(m, op, 0, flat(from, p));
                break;
            case LILAC_TILE_OP_TT_JOIN:
                out[e] = at(m, op, (uint32_t)(e % 2), e / 2);
                break;
            case LILAC_TILE_OP_TT_SPLIT:
                out[e] = at(m, op, 0, 2 * e + r);
                break;
            case LILAC_TILE_OP_TT_CAT: {
                uint64_t half = count_of(from);
                out[e] = e < half ? at(m, op, 0, e) : at(m, op, 1, e - half);
                break;
            }
            case LILAC_TILE_OP_TT_GATHER: {
                interpreter_cell index = at(m, op, 1, e);
                const lilac_tile_type *itype = lilac_tile_element(op->operands[1].value->type);
                int64_t i = lilac_scalar_signed(itype->scalar, index.bits);
                c[axis] = (uint64_t)i;
                out[e] = index.error != 0 || i < 0 || i >= from->shape[axis]
                             ? OPEN
                             : at(m, op, 0, flat(from, c));
                break;
            }
            default: /* row-major order stays */
                out[e] = at(m, op, 0, e);
                break;
            }
        }
    }
    return true;
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

bool interpreter_run_source(machine *m, const lilac_tile_op *op) {
    if (op->result_count != 1 || op->operand_count != 0) {
        return false;
    }
    const lilac_tile_type *type = op->results[0].type;
    const lilac_tile_attribute *value = lilac_tile_find(&op->attributes, "value");
    int64_t start = lilac_tile_find_integer(&op->attributes, "start", 0), axis = 0;
    lilac_name name = lilac_tile_find_text(&op->attributes, "axis");
    if (name != NULL) {
        axis = name[0] == 'x' ? 0 : name[0] == 'y' ? 1 : 2;
    } else {
        axis = lilac_tile_find_integer(&op->attributes, "axis", 0);
    }
    interpreter_cell *out = target(m, &op->results[0]);
    lilac_scalar s = kind_of(lilac_tile_element(type));
    for (uint64_t e = 0; e < count_of(type); e++) {
        out[e] = (interpreter_cell){0, 0, 0};
        switch (op->code) {
        case LILAC_TILE_OP_ARITH_CONSTANT: {
            bool dense = value->kind == LILAC_TILE_ATTR_DENSE;
            int64_t bits = dense ? value->integers[value->count > 1 ? e : 0] : value->integer;
            out[e].bits = lilac_scalar_mask(s, (uint64_t)bits);
            break;
        }
        case LILAC_TILE_OP_TT_MAKE_RANGE:
            out[e].bits = lilac_scalar_mask(s, (uint64_t)start + e);
            break;
        case LILAC_TILE_OP_TT_GET_PROGRAM_ID:
            out[e].bits = m->program[axis];
            break;
        case LILAC_TILE_OP_TT_GET_NUM_PROGRAMS:
            out[e].bits = m->run->grid[axis];
            break;
        case LILAC_TILE_OP_UB_POISON:
            out[e] = OPEN;
            break;
        default:
            return false;
        }
    }
    return true;
}
