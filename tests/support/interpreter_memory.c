/* Loads, stores and atomics, and the comparison of memories. Memory is bytes, each with the error
 * of the element that covers it. */
#include "interpreter_machine.h"

interpreter_buffer *interpreter_find(machine *m, const lilac_tile_op *op, uint64_t address,
                                     uint32_t bytes, uint64_t *offset) {
    for (uint32_t i = 0; i < m->run->buffer_count; i++) {
        interpreter_buffer *b = &m->run->buffers[i];
        if (address >= b->address && address - b->address + bytes <= b->size) {
            *offset = address - b->address;
            return b;
        }
    }
    end(m, INTERPRETER_OUT_OF_RANGE, op);
}

interpreter_cell interpreter_load(machine *m, const lilac_tile_op *op, uint64_t address,
                                  const lilac_tile_type *element) {
    uint64_t offset;
    uint32_t bytes = bytes_of(element);
    const interpreter_buffer *b = interpreter_find(m, op, address, bytes, &offset);
    interpreter_cell cell = {0, 0, 0};
    memcpy(&cell.bits, b->bytes + offset, bytes);
    for (uint32_t i = 0; i < bytes; i++) {
        if (b->error[offset + i] != 0) {
            bool same = b->scalar[offset + i] == (uint8_t)kind_of(element) &&
                        b->error[offset + i] == b->error[offset];
            cell.error = fmax(cell.error, same ? b->error[offset] : INFINITY);
        }
    }
    if (element->kind == LILAC_TILE_SCALAR) {
        cell.bits = lilac_scalar_mask(element->scalar, cell.bits);
    }
    return cell;
}

void interpreter_store(machine *m, const lilac_tile_op *op, uint64_t address,
                       const lilac_tile_type *element, interpreter_cell cell) {
    uint64_t offset;
    uint32_t bytes = bytes_of(element);
    interpreter_buffer *b = interpreter_find(m, op, address, bytes, &offset);
    memcpy(b->bytes + offset, &cell.bits, bytes);
    for (uint32_t i = 0; i < bytes; i++) {
        /* The bits of a NaN are not specified, so NaNs are compared as floats. */
        bool is_nan = element->kind == LILAC_TILE_SCALAR &&
                      lilac_scalar_is_float(element->scalar) &&
                      isnan(lilac_scalar_decode(element->scalar, cell.bits));
        b->error[offset + i] = cell.error == 0 && is_nan ? 1e-300 : cell.error;
        b->scalar[offset + i] = (uint8_t)kind_of(element);
    }
}

/* Addresses of a block pointer's elements; *inside is false beyond the checked boundaries. */
static uint64_t block_address(const interpreter_cell *pointer, const lilac_tile_type *tensor,
                              uint64_t e, const lilac_tile_attribute *checked, bool *inside) {
    const uint32_t rank = tensor->rank;
    uint64_t address = pointer[0].bits, unit = bytes_of(lilac_tile_element(tensor));
    *inside = true;
    for (uint32_t d = rank; d-- > 0;) {
        uint64_t size = (uint64_t)tensor->shape[d];
        int64_t index = (int64_t)(int32_t)pointer[1 + 2 * rank + d].bits + (int64_t)(e % size);
        e /= size;
        address += (uint64_t)index * pointer[1 + rank + d].bits * unit;
        for (uint32_t k = 0; checked != NULL && k < checked->count; k++) {
            if (checked->integers[k] == (int64_t)d) {
                *inside = *inside && index >= 0 && index < (int64_t)pointer[1 + d].bits;
            }
        }
    }
    return address;
}

static bool is_block_pointer(const lilac_tile_type *type) {
    return type->kind == LILAC_TILE_POINTER && type->element->kind == LILAC_TILE_TENSOR;
}

static void run_block_access(machine *m, const lilac_tile_op *op) {
    const lilac_tile_type *tensor = op->operands[0].value->type->element;
    const lilac_tile_type *element = lilac_tile_element(tensor);
    const lilac_tile_attribute *checked = lilac_tile_find(&op->attributes, "boundaryCheck");
    const interpreter_cell *pointer = read(m, op, 0);
    bool is_load = op->code == LILAC_TILE_OP_TT_LOAD;
    interpreter_cell *out = is_load ? target(m, &op->results[0]) : NULL;
    int64_t padding = lilac_tile_find_integer(&op->attributes, "padding", 0);
    for (uint64_t i = 0; i < 1 + 3 * tensor->rank; i++) {
        (void)known(m, op, pointer[i]);
    }
    for (uint64_t e = 0; e < (uint64_t)lilac_tile_element_count(tensor); e++) {
        bool inside;
        uint64_t address = block_address(pointer, tensor, e, checked, &inside);
        if (is_load && inside) {
            out[e] = interpreter_load(m, op, address, element);
        } else if (is_load) {
            out[e] = padding == 0 ? OPEN : (interpreter_cell){0, 0, 0};
            if (padding == 2) {
                out[e].bits =
                    lilac_scalar_encode(element->scalar, NAN, LILAC_ROUND_NEAREST_EVEN, false);
            }
        } else if (inside) {
            interpreter_store(m, op, address, element, at(m, op, 1, e));
        }
    }
}

void interpreter_run_load(machine *m, const lilac_tile_op *op) {
    if (is_block_pointer(op->operands[0].value->type)) {
        run_block_access(m, op);
        return;
    }
    interpreter_cell *out = target(m, &op->results[0]);
    const lilac_tile_type *element = lilac_tile_element(op->results[0].type);
    for (uint64_t e = 0; e < count_of(op->results[0].type); e++) {
        if (op->operand_count > 1 && !(known(m, op, at(m, op, 1, e)) & 1)) {
            out[e] = op->operand_count > 2 ? at(m, op, 2, e) : OPEN;
            out[e].slack = 0;
        } else {
            out[e] = interpreter_load(m, op, known(m, op, at(m, op, 0, e)), element);
        }
    }
}

static bool is_stored(machine *m, const lilac_tile_op *op, uint64_t e) {
    return op->operand_count < 3 || (known(m, op, at(m, op, 2, e)) & 1);
}

/* If one operation stores different values at one address, any of them may remain. `touched` of the
 * buffer is 1 where this operation has stored already. */
void interpreter_run_store(machine *m, const lilac_tile_op *op) {
    if (is_block_pointer(op->operands[0].value->type)) {
        run_block_access(m, op);
        return;
    }
    const lilac_tile_type *type = op->operands[1].value->type, *element = lilac_tile_element(type);
    const uint32_t bytes = bytes_of(element);
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t e = 0; e < count_of(type); e++) {
            if (!is_stored(m, op, e)) {
                continue;
            }
            uint64_t offset, address = known(m, op, at(m, op, 0, e));
            interpreter_buffer *b = interpreter_find(m, op, address, bytes, &offset);
            if (pass == 1) {
                b->touched[offset] = 0;
                continue;
            }
            interpreter_cell cell = at(m, op, 1, e),
                             old = interpreter_load(m, op, address, element);
            if (b->touched[offset] != 0 && (old.bits != cell.bits || old.error != cell.error)) {
                cell = OPEN;
            }
            b->touched[offset] = 1;
            interpreter_store(m, op, address, element, cell);
        }
    }
}

/* ---- atomics ----------------------------------------------------------------------------- */

/* The smaller or larger of two floats: the number if one is NaN, and -0 is below +0. */
static uint64_t extreme(lilac_scalar s, uint64_t old, uint64_t by, bool largest) {
    const double x = lilac_scalar_decode(s, old), y = lilac_scalar_decode(s, by);
    if (isnan(x) || isnan(y)) {
        return isnan(y) ? old : by;
    }
    const bool below = x == y ? signbit(x) != 0 : x < y;
    return below != largest ? old : by;
}

interpreter_cell interpreter_combine(const char *kind, lilac_scalar s, interpreter_cell old,
                                     interpreter_cell by, double mass, uint32_t times) {
    int64_t x = lilac_scalar_signed(s, old.bits), y = lilac_scalar_signed(s, by.bits);
    interpreter_cell result = by;
    if (strcmp(kind, "fadd") == 0) {
        result = interpreter_add(s, old, by);
        if (times > 1) {
            double most = mass + fabs(lilac_scalar_decode(s, old.bits));
            result.error += 2 * interpreter_ulp(s, most);
        }
        return result;
    }
    if (old.error != 0 || by.error != 0) {
        return OPEN;
    }
    if (lilac_scalar_is_float(s) && (strcmp(kind, "max") == 0 || strcmp(kind, "min") == 0)) {
        result.bits = extreme(s, old.bits, by.bits, kind[1] == 'a');
    } else if (strcmp(kind, "and") == 0) {
        result.bits = old.bits & by.bits;
    } else if (strcmp(kind, "or") == 0) {
        result.bits = old.bits | by.bits;
    } else if (strcmp(kind, "xor") == 0) {
        result.bits = old.bits ^ by.bits;
    } else if (strcmp(kind, "add") == 0) {
        result.bits = lilac_scalar_mask(s, old.bits + by.bits);
    } else if (strcmp(kind, "max") == 0) {
        result.bits = x > y ? old.bits : by.bits;
    } else if (strcmp(kind, "min") == 0) {
        result.bits = x < y ? old.bits : by.bits;
    } else if (strcmp(kind, "umax") == 0) {
        result.bits = old.bits > by.bits ? old.bits : by.bits;
    } else if (strcmp(kind, "umin") == 0) {
        result.bits = old.bits < by.bits ? old.bits : by.bits;
    } else if (times > 1) {
        return OPEN; /* of several exchanges at one address, any may be the last */
    }
    return result;
}

static bool takes_part(machine *m, const lilac_tile_op *op, uint64_t e) {
    return op->code == LILAC_TILE_OP_TT_ATOMIC_CAS || op->operand_count < 3 ||
           (known(m, op, at(m, op, 2, e)) & 1);
}

/* Three passes over the elements: count the accesses of each address, execute them in order, reset
 * the counts. Results at an address that is accessed more than once are unspecified. */
void interpreter_run_atomic(machine *m, const lilac_tile_op *op) {
    const lilac_tile_type *type = op->operands[1].value->type, *element = lilac_tile_element(type);
    const char *kind = lilac_tile_find_text(&op->attributes, "atomic_rmw_op");
    const uint32_t bytes = bytes_of(element);
    lilac_scalar s = kind_of(element);
    uint64_t offset, count = count_of(type);
    interpreter_cell *out = op->result_count > 0 ? target(m, &op->results[0]) : NULL;
    for (int pass = 0; pass < 3; pass++) {
        for (uint64_t e = 0; e < count; e++) {
            if (!takes_part(m, op, e)) {
                if (out != NULL) {
                    out[e] = OPEN;
                }
                continue;
            }
            uint64_t address = known(m, op, at(m, op, 0, e));
            interpreter_buffer *b = interpreter_find(m, op, address, bytes, &offset);
            if (pass != 1) {
                b->touched[offset] = pass == 0 ? b->touched[offset] + 1 : 0;
                b->mass[offset] =
                    pass == 2 ? 0
                    : lilac_scalar_is_float(s)
                        ? b->mass[offset] + fabs(lilac_scalar_decode(s, at(m, op, 1, e).bits))
                        : 0;
                continue;
            }
            uint32_t times = b->touched[offset];
            interpreter_cell old = interpreter_load(m, op, address, element), made;
            if (op->code == LILAC_TILE_OP_TT_ATOMIC_CAS) {
                interpreter_cell wanted = at(m, op, 1, e);
                bool open = old.error != 0 || wanted.error != 0 || times > 1;
                made = open ? OPEN : old.bits == wanted.bits ? at(m, op, 2, e) : old;
            } else {
                made = interpreter_combine(kind, s, old, at(m, op, 1, e), b->mass[offset], times);
            }
            interpreter_store(m, op, address, element, made);
            if (out != NULL) {
                out[e] = times > 1 ? OPEN : old;
            }
        }
    }
}

/* ---- comparison -------------------------------------------------------------------------- */

static double number_at(const uint8_t *bytes, lilac_scalar scalar) {
    uint64_t bits = 0;
    memcpy(&bits, bytes, (lilac_scalar_bits(scalar) + 7) / 8);
    return lilac_scalar_is_float(scalar) ? lilac_scalar_decode(scalar, bits)
                                         : (double)lilac_scalar_signed(scalar, bits);
}

interpreter_comparison interpreter_compare(const interpreter_buffer *want, const uint8_t *got) {
    interpreter_comparison c = {.same = true};
    for (uint64_t i = 0; i < want->size;) {
        lilac_scalar scalar = (lilac_scalar)want->scalar[i];
        uint64_t bytes = 1;
        double error = want->error[i];
        bool same = true;
        if (error == 0) {
            c.exact++;
            same = got[i] == want->bytes[i];
        } else if (isinf(error)) {
            c.open++;
        } else {
            bytes = (lilac_scalar_bits(scalar) + 7) / 8;
            double a = number_at(got + i, scalar), b = number_at(want->bytes + i, scalar);
            double away = fabs(a - b);
            c.within++;
            same = (isnan(a) && isnan(b)) || a == b || away <= error;
            c.worst = fmax(c.worst, isnan(away) ? 0 : away / error);
        }
        if (!same && c.same) {
            c.same = false;
            c.at = i;
            c.got = error == 0 ? got[i] : number_at(got + i, scalar);
            c.want = error == 0 ? want->bytes[i] : number_at(want->bytes + i, scalar);
            c.error = error;
        }
        i += bytes;
    }
    return c;
}
