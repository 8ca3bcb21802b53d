/* The interpreter's machine: frames, memory, shapes, regions, control flow.
 *
 * A frame holds the values of one call: an array of cells for each, its elements in row-major
 * order; a block pointer is its base, shape, strides and offsets. An operation reads the arrays of
 * its operands and writes fresh ones for its results, so that loops need no copies but those of
 * their carried values. */
#include "interpreter.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#define OPEN ((interpreter_cell){0, INFINITY, 0})

enum { MOST_OPERANDS = 32 };

typedef struct frame {
    interpreter_cell **values; /* by value id */
    const lilac_tile_function *function;
} frame;

typedef struct machine {
    jmp_buf ended;
    interpreter_run *run;
    interpreter_status status;
    lilac_arena *arena;
    uint64_t fuel;
    uint32_t program[3];
    uint32_t depth;
    frame *frame;
} machine;

static _Noreturn void end(machine *m, interpreter_status status, const lilac_tile_op *op) {
    m->status = status;
    m->run->op = op;
    longjmp(m->ended, 1);
}

static uint64_t count_of(const lilac_tile_type *type) {
    if (type->kind == LILAC_TILE_POINTER && type->element->kind == LILAC_TILE_TENSOR) {
        return 1 + 3 * (uint64_t)type->element->rank; /* a block pointer */
    }
    return (uint64_t)lilac_tile_element_count(type);
}

static void burn(machine *m, const lilac_tile_op *op, uint64_t amount) {
    if (m->fuel < amount) {
        end(m, INTERPRETER_TOO_LONG, op);
    }
    m->fuel -= amount;
}

static interpreter_cell *cells(machine *m, uint64_t count) {
    return lilac_arena_array(m->arena, interpreter_cell, count);
}

/* The array to write a value into. The same one each time round a loop: what is defined once is
 * read only until it is defined again. */
static interpreter_cell *target(machine *m, const lilac_tile_value *value) {
    interpreter_cell **place = &m->frame->values[value->id];
    if (*place == NULL) {
        *place = cells(m, count_of(value->type));
    }
    return *place;
}

static const interpreter_cell *read(machine *m, const lilac_tile_op *op, uint32_t i) {
    const interpreter_cell *from = m->frame->values[op->operands[i].value->id];
    if (from == NULL) {
        end(m, INTERPRETER_UNSUPPORTED, op);
    }
    return from;
}

/* Element e of an operand; scalars stand for every element. */
static interpreter_cell at(machine *m, const lilac_tile_op *op, uint32_t i, uint64_t e) {
    return read(m, op, i)[lilac_tile_is_tensor(op->operands[i].value->type) ? e : 0];
}

/* What a branch, an address or a mask needs. */
static uint64_t known(machine *m, const lilac_tile_op *op, interpreter_cell cell) {
    if (cell.error != 0) {
        end(m, INTERPRETER_UNDETERMINED, op);
    }
    return cell.bits;
}

/* Values that become others all at once. */
static void assign(machine *m, uint32_t count, const lilac_tile_use *from,
                   lilac_tile_value *const *to) {
    interpreter_cell *copies[256];
    for (uint32_t i = 0; i < count; i++) {
        uint64_t n = count_of(to[i]->type);
        const interpreter_cell *old = m->frame->values[from[i].value->id];
        copies[i] = malloc(n * sizeof *old);
        memcpy(copies[i], old, n * sizeof *old);
    }
    for (uint32_t i = 0; i < count; i++) {
        memcpy(target(m, to[i]), copies[i], count_of(to[i]->type) * sizeof(interpreter_cell));
        free(copies[i]);
    }
}

static void to_results(machine *m, const lilac_tile_op *op, const lilac_tile_use *from) {
    lilac_tile_value *to[256];
    for (uint32_t i = 0; i < op->result_count; i++) {
        to[i] = &op->results[i];
    }
    assign(m, op->result_count, from, to);
}

/* ---- memory ------------------------------------------------------------------------------ */

static uint32_t bytes_of(const lilac_tile_type *element) {
    return (lilac_tile_element_bits(element) + 7) / 8;
}

static interpreter_buffer *find(machine *m, const lilac_tile_op *op, uint64_t address,
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

static lilac_scalar kind_of(const lilac_tile_type *element) {
    return element->kind == LILAC_TILE_SCALAR ? element->scalar : LILAC_I64;
}

static interpreter_cell load(machine *m, const lilac_tile_op *op, uint64_t address,
                             const lilac_tile_type *element) {
    uint64_t offset;
    uint32_t bytes = bytes_of(element);
    const interpreter_buffer *b = find(m, op, address, bytes, &offset);
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

static void store(machine *m, const lilac_tile_op *op, uint64_t address,
                  const lilac_tile_type *element, interpreter_cell cell) {
    uint64_t offset;
    uint32_t bytes = bytes_of(element);
    interpreter_buffer *b = find(m, op, address, bytes, &offset);
    memcpy(b->bytes + offset, &cell.bits, bytes);
    for (uint32_t i = 0; i < bytes; i++) {
        /* Which NaN it is stays open, so NaNs are compared as floats. */
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
            out[e] = load(m, op, address, element);
        } else if (is_load) {
            out[e] = padding == 0 ? OPEN : (interpreter_cell){0, 0, 0};
            if (padding == 2) {
                out[e].bits =
                    lilac_scalar_encode(element->scalar, NAN, LILAC_ROUND_NEAREST_EVEN, false);
            }
        } else if (inside) {
            store(m, op, address, element, at(m, op, 1, e));
        }
    }
}

static void run_load(machine *m, const lilac_tile_op *op) {
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
            out[e] = load(m, op, known(m, op, at(m, op, 0, e)), element);
        }
    }
}

static bool is_stored(machine *m, const lilac_tile_op *op, uint64_t e) {
    return op->operand_count < 3 || (known(m, op, at(m, op, 2, e)) & 1);
}

/* Of different numbers that one operation stores at an address any may stay. The buffer's `touched`
 * is 1 where it has stored so far. */
static void run_store(machine *m, const lilac_tile_op *op) {
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
            interpreter_buffer *b = find(m, op, address, bytes, &offset);
            if (pass == 1) {
                b->touched[offset] = 0;
                continue;
            }
            interpreter_cell cell = at(m, op, 1, e), old = load(m, op, address, element);
            if (b->touched[offset] != 0 && (old.bits != cell.bits || old.error != cell.error)) {
                cell = OPEN;
            }
            b->touched[offset] = 1;
            store(m, op, address, element, cell);
        }
    }
}

/* ---- atomics ----------------------------------------------------------------------------- */

static interpreter_cell combine(const char *kind, lilac_scalar s, interpreter_cell old,
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
    if (strcmp(kind, "and") == 0)
        result.bits = old.bits & by.bits;
    else if (strcmp(kind, "or") == 0)
        result.bits = old.bits | by.bits;
    else if (strcmp(kind, "xor") == 0)
        result.bits = old.bits ^ by.bits;
    else if (strcmp(kind, "add") == 0)
        result.bits = lilac_scalar_mask(s, old.bits + by.bits);
    else if (strcmp(kind, "max") == 0)
        result.bits = x > y ? old.bits : by.bits;
    else if (strcmp(kind, "min") == 0)
        result.bits = x < y ? old.bits : by.bits;
    else if (strcmp(kind, "umax") == 0)
        result.bits = old.bits > by.bits ? old.bits : by.bits;
    else if (strcmp(kind, "umin") == 0)
        result.bits = old.bits < by.bits ? old.bits : by.bits;
    else if (times > 1)
        return OPEN; /* exchanges: the last one stays */
    return result;
}

static bool takes_part(machine *m, const lilac_tile_op *op, uint64_t e) {
    return op->code == LILAC_TILE_OP_TT_ATOMIC_CAS || op->operand_count < 3 ||
           (known(m, op, at(m, op, 2, e)) & 1);
}

/* Counts who touches what, then acts in order. */
static void run_atomic(machine *m, const lilac_tile_op *op) {
    const lilac_tile_type *type = op->operands[1].value->type, *element = lilac_tile_element(type);
    const char *kind = lilac_tile_find_text(&op->attributes, "atomic_rmw_op");
    const uint32_t bytes = bytes_of(element);
    lilac_scalar s = kind_of(element);
    uint64_t offset, count = count_of(type);
    interpreter_cell *out = op->result_count > 0 ? target(m, &op->results[0]) : NULL;
    for (int pass = 0; pass < 3; pass++) {
        for (uint64_t e = 0; e < count; e++) {
            if (!takes_part(m, op, e)) {
                if (out != NULL)
                    out[e] = OPEN;
                continue;
            }
            uint64_t address = known(m, op, at(m, op, 0, e));
            interpreter_buffer *b = find(m, op, address, bytes, &offset);
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
            interpreter_cell old = load(m, op, address, element), made;
            if (op->code == LILAC_TILE_OP_TT_ATOMIC_CAS) {
                interpreter_cell wanted = at(m, op, 1, e);
                bool open = old.error != 0 || wanted.error != 0 || times > 1;
                made = open ? OPEN : old.bits == wanted.bits ? at(m, op, 2, e) : old;
            } else {
                made = combine(kind, s, old, at(m, op, 1, e), b->mass[offset], times);
            }
            store(m, op, address, element, made);
            if (out != NULL) {
                out[e] = times > 1 ? OPEN : old;
            }
        }
    }
}

/* ---- shapes ------------------------------------------------------------------------------ */

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

static bool run_shape(machine *m, const lilac_tile_op *op) {
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

static void run_histogram(machine *m, const lilac_tile_op *op) {
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

static bool run_source(machine *m, const lilac_tile_op *op) {
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

/* ---- regions ----------------------------------------------------------------------------- */

static const lilac_tile_op *run_blocks(machine *m, const lilac_tile_block *block);

/* Runs a region on cells; its results are read by the caller from the terminator's operands. */
static const lilac_tile_op *apply(machine *m, const lilac_tile_region *region, uint32_t count,
                                  const interpreter_cell *in) {
    for (uint32_t i = 0; i < count; i++) {
        target(m, region->first->arguments[i])[0] = in[i];
    }
    return run_blocks(m, region->first);
}

typedef enum region_kind { EXACT, SUM, PRODUCT, ROUNDS } region_kind;

static void look_at(void *data, lilac_tile_op *op) {
    region_kind *kind = data;
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_SELECT:
    case LILAC_TILE_OP_ARITH_MINNUMF:
    case LILAC_TILE_OP_ARITH_MAXNUMF:
    case LILAC_TILE_OP_ARITH_MINIMUMF:
    case LILAC_TILE_OP_ARITH_MAXIMUMF:
    case LILAC_TILE_OP_ARITH_NEGF:
    case LILAC_TILE_OP_ARITH_CONSTANT:
    case LILAC_TILE_OP_MATH_ABSF:
    case LILAC_TILE_OP_SCF_IF:
        return;
    default:
        break;
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        const lilac_tile_type *type = op->results[i].type;
        if (type->kind == LILAC_TILE_SCALAR && lilac_scalar_is_float(type->scalar)) {
            *kind = ROUNDS;
        }
    }
}

/* Of result `r`: what its error is made of. */
static region_kind kind_of_region(const lilac_tile_op *op, uint32_t r) {
    lilac_tile_block *block = op->regions[0]->first;
    const lilac_tile_value *from = block->last->operands[r].value;
    const uint32_t n = op->operand_count;
    if (from->op != NULL && from->op->operand_count == 2 &&
        (from->op->code == LILAC_TILE_OP_ARITH_ADDF ||
         from->op->code == LILAC_TILE_OP_ARITH_MULF)) {
        const lilac_tile_value *a = from->op->operands[0].value, *b = from->op->operands[1].value;
        const lilac_tile_value *x = block->arguments[r], *y = block->arguments[n + r];
        if ((a == x && b == y) || (a == y && b == x)) {
            return from->op->code == LILAC_TILE_OP_ARITH_ADDF ? SUM : PRODUCT;
        }
    }
    region_kind kind = EXACT;
    lilac_tile_walk(op->regions[0], look_at, &kind);
    return kind;
}

typedef struct folding {
    machine *m;
    const lilac_tile_op *op;
    uint32_t operands;
    region_kind kind[MOST_OPERANDS];
    lilac_scalar scalar[MOST_OPERANDS];
    uint64_t first, stride, size; /* the line: elements first + i stride */
    bool reverse;
} folding;

static interpreter_cell element_of_line(const folding *f, uint32_t k, uint64_t i) {
    uint64_t place = f->reverse ? f->size - 1 - i : i;
    interpreter_cell cell = at(f->m, f->op, k, f->first + place * f->stride);
    cell.error += cell.slack; /* the sum may be contracted with what made it */
    cell.slack = 0;
    return cell;
}

static void combine_by_region(const folding *f, interpreter_cell *left,
                              const interpreter_cell *right) {
    interpreter_cell in[2 * MOST_OPERANDS];
    memcpy(in, left, f->operands * sizeof *in);
    memcpy(in + f->operands, right, f->operands * sizeof *in);
    const lilac_tile_op *last = apply(f->m, f->op->regions[0], 2 * f->operands, in);
    for (uint32_t k = 0; k < f->operands; k++) {
        left[k] = read(f->m, last, k)[0];
    }
}

/* What association may change, for the fold of the first `count` elements, folded in order into
 * `cell`. Magnitudes: sums of |x| for SUM. */
static void widen(const folding *f, uint32_t k, interpreter_cell *cell, uint64_t count, double mass,
                  double errors) {
    cell->slack = 0;
    if (count < 2 || f->kind[k] == EXACT || f->kind[k] == ROUNDS || isinf(cell->error)) {
        return;
    }
    double value = lilac_scalar_decode(f->scalar[k], cell->bits);
    if (!isfinite(value) || !isfinite(mass)) {
        *cell = isfinite(mass) ? OPEN : *cell;
        return;
    }
    if (f->kind[k] == SUM) {
        cell->error = errors + (double)count * interpreter_ulp(f->scalar[k], mass + errors);
    } else {
        /* `mass` is the product of the magnitudes above one: none underflows before. */
        cell->error += 2 * (double)count * interpreter_ulp(f->scalar[k], value);
    }
}

/* Folds all of the line, or, when `all` is given, every beginning of it (all[i * operands + k]). */
static void fold_in_order(const folding *f, interpreter_cell *result, interpreter_cell *all) {
    double mass[MOST_OPERANDS] = {0}, errors[MOST_OPERANDS] = {0};
    for (uint64_t i = 0; i < f->size; i++) {
        interpreter_cell next[MOST_OPERANDS];
        for (uint32_t k = 0; k < f->operands; k++) {
            next[k] = element_of_line(f, k, i);
            if (f->kind[k] == SUM) {
                mass[k] += fabs(lilac_scalar_decode(f->scalar[k], next[k].bits));
                errors[k] += next[k].error;
            }
        }
        if (i == 0) {
            memcpy(result, next, f->operands * sizeof *next);
        } else {
            combine_by_region(f, result, next);
        }
        for (uint32_t k = 0; k < f->operands; k++) {
            if (all != NULL) {
                all[i * f->operands + k] = result[k];
                widen(f, k, &all[i * f->operands + k], i + 1, mass[k], errors[k]);
            }
        }
    }
    for (uint32_t k = 0; k < f->operands; k++) {
        widen(f, k, &result[k], f->size, mass[k], errors[k]);
    }
}

/* The same in blocks of eight: another association. */
static void fold_in_blocks(const folding *f, interpreter_cell *all) {
    interpreter_cell carry[MOST_OPERANDS], block[MOST_OPERANDS];
    for (uint64_t i = 0; i < f->size; i++) {
        interpreter_cell next[MOST_OPERANDS];
        for (uint32_t k = 0; k < f->operands; k++) {
            next[k] = element_of_line(f, k, i);
        }
        if (i % 8 == 0) {
            memcpy(block, next, sizeof block);
        } else {
            combine_by_region(f, block, next);
        }
        interpreter_cell here[MOST_OPERANDS];
        memcpy(here, i < 8 ? block : carry, sizeof here);
        if (i >= 8) {
            combine_by_region(f, here, block);
        }
        memcpy(&all[i * f->operands], here, f->operands * sizeof *here);
        if (i % 8 == 7) {
            memcpy(carry, here, sizeof carry);
        }
    }
}

/* The error of regions that round and do not associate; see interpreter.h. */
static void spread(const folding *f, uint32_t k, uint64_t count, interpreter_cell *cell,
                   const interpreter_cell *other, double largest) {
    if (f->kind[k] != ROUNDS || isinf(cell->error) || count < 2) {
        return;
    }
    if (!lilac_scalar_is_float(f->scalar[k])) {
        if (cell->bits != other->bits || isinf(other->error)) {
            *cell = OPEN;
        }
        return;
    }
    double a = lilac_scalar_decode(f->scalar[k], cell->bits);
    double b = lilac_scalar_decode(f->scalar[k], other->bits);
    if (!isfinite(a) || !isfinite(b)) {
        *cell = OPEN;
        return;
    }
    cell->error = fmax(cell->error, other->error) + 16 * fabs(a - b) +
                  (double)count * interpreter_ulp(f->scalar[k], fmax(largest, fabs(a)));
}

static void fold_line(folding *f, interpreter_cell *const *out, uint64_t out_first, bool scan) {
    const uint32_t n = f->operands;
    interpreter_cell result[MOST_OPERANDS];
    interpreter_cell *all = malloc(f->size * n * sizeof *all);
    interpreter_cell *other = malloc(f->size * n * sizeof *other);
    fold_in_order(f, result, all);
    bool rounds = false;
    for (uint32_t k = 0; k < n; k++) {
        rounds = rounds || f->kind[k] == ROUNDS;
    }
    if (rounds) {
        fold_in_blocks(f, other);
    }
    for (uint32_t k = 0; k < n; k++) {
        double largest = 0;
        for (uint64_t i = 0; i < f->size; i++) {
            interpreter_cell cell = all[i * n + k];
            if (rounds && lilac_scalar_is_float(f->scalar[k])) {
                interpreter_cell in = element_of_line(f, k, i);
                largest = fmax(largest, fabs(lilac_scalar_decode(f->scalar[k], in.bits)));
            }
            if (rounds) {
                spread(f, k, i + 1, &cell, &other[i * n + k], largest);
            }
            if (scan) {
                uint64_t place = f->reverse ? f->size - 1 - i : i;
                out[k][f->first + place * f->stride] = cell;
            } else if (i == f->size - 1) {
                out[k][out_first] = cell;
            }
        }
    }
    free(all);
    free(other);
}

static void run_fold(machine *m, const lilac_tile_op *op) {
    const lilac_tile_type *type = op->operands[0].value->type;
    const uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    const bool scan = op->code == LILAC_TILE_OP_TT_SCAN;
    folding f = {.m = m, .op = op, .operands = op->operand_count, .stride = 1};
    interpreter_cell *out[MOST_OPERANDS];
    if (op->operand_count > MOST_OPERANDS) {
        end(m, INTERPRETER_UNSUPPORTED, op);
    }
    f.reverse = scan && lilac_tile_find_integer(&op->attributes, "reverse", 0) != 0;
    f.size = (uint64_t)type->shape[axis];
    for (uint32_t d = axis + 1; d < type->rank; d++) {
        f.stride *= (uint64_t)type->shape[d];
    }
    for (uint32_t k = 0; k < f.operands; k++) {
        f.kind[k] = kind_of_region(op, k);
        f.scalar[k] = kind_of(lilac_tile_element(op->operands[k].value->type));
        out[k] = target(m, &op->results[k]);
    }
    uint64_t lines = count_of(type) / f.size;
    for (uint64_t line = 0; line < lines; line++) {
        f.first = line / f.stride * f.stride * f.size + line % f.stride;
        fold_line(&f, out, line, scan);
    }
}

static void run_map(machine *m, const lilac_tile_op *op) {
    const uint64_t pack = (uint64_t)lilac_tile_find_integer(&op->attributes, "pack", 1);
    const uint64_t count = count_of(op->operands[0].value->type);
    interpreter_cell in[256];
    if (op->operand_count * pack > 256) {
        end(m, INTERPRETER_UNSUPPORTED, op);
    }
    for (uint64_t e = 0; e < count; e += pack) {
        for (uint32_t k = 0; k < op->operand_count; k++) {
            for (uint64_t p = 0; p < pack; p++) {
                in[k * pack + p] = at(m, op, k, e + p);
            }
        }
        const lilac_tile_op *last =
            apply(m, op->regions[0], (uint32_t)(op->operand_count * pack), in);
        for (uint32_t r = 0; r < op->result_count; r++) {
            for (uint64_t p = 0; p < pack; p++) {
                target(m, &op->results[r])[e + p] = read(m, last, (uint32_t)(r * pack + p))[0];
            }
        }
    }
}

/* ---- control ----------------------------------------------------------------------------- */

static void run_for(machine *m, const lilac_tile_op *op) {
    const lilac_tile_block *body = op->regions[0]->first;
    lilac_scalar s = kind_of(op->operands[0].value->type);
    int64_t low = lilac_scalar_signed(s, known(m, op, at(m, op, 0, 0)));
    int64_t high = lilac_scalar_signed(s, known(m, op, at(m, op, 1, 0)));
    int64_t step = lilac_scalar_signed(s, known(m, op, at(m, op, 2, 0)));
    const uint32_t carried = op->operand_count - 3;
    if (step <= 0) {
        end(m, INTERPRETER_UNDETERMINED, op);
    }
    assign(m, carried, op->operands + 3, body->arguments + 1);
    bool more = low < high;
    for (int64_t i = low; more; i += step) {
        target(m, body->arguments[0])[0] =
            (interpreter_cell){lilac_scalar_mask(s, (uint64_t)i), 0, 0};
        more = (uint64_t)high - (uint64_t)i > (uint64_t)step; /* i < high here */
        const lilac_tile_op *yield = run_blocks(m, body);
        assign(m, carried, yield->operands, body->arguments + 1);
    }
    for (uint32_t k = 0; k < carried; k++) {
        memcpy(target(m, &op->results[k]), target(m, body->arguments[1 + k]),
               count_of(op->results[k].type) * sizeof(interpreter_cell));
    }
}

static void run_if(machine *m, const lilac_tile_op *op) {
    bool taken = known(m, op, at(m, op, 0, 0)) & 1;
    const lilac_tile_region *region = op->regions[taken ? 0 : 1];
    if (region->first != NULL) {
        to_results(m, op, run_blocks(m, region->first)->operands);
    }
}

static void run_while(machine *m, const lilac_tile_op *op) {
    const lilac_tile_block *before = op->regions[0]->first, *after = op->regions[1]->first;
    assign(m, op->operand_count, op->operands, before->arguments);
    for (;;) {
        const lilac_tile_op *condition = run_blocks(m, before);
        burn(m, op, 1);
        if (!(known(m, condition, at(m, condition, 0, 0)) & 1)) {
            to_results(m, op, condition->operands + 1);
            return;
        }
        assign(m, condition->operand_count - 1, condition->operands + 1, after->arguments);
        const lilac_tile_op *yield = run_blocks(m, after);
        assign(m, yield->operand_count, yield->operands, before->arguments);
    }
}

static void run_call(machine *m, const lilac_tile_op *op) {
    lilac_name name = lilac_tile_find_text(&op->attributes, "callee");
    const lilac_tile_attribute *callee = lilac_tile_find(&op->attributes, "callee");
    lilac_tile_function *f = m->run->module->functions;
    name = callee != NULL ? callee->text : name;
    while (f != NULL && f->name != name) {
        f = f->next;
    }
    if (f == NULL || f->body == NULL || m->depth > 32) {
        end(m, INTERPRETER_UNSUPPORTED, op);
    }
    frame *caller = m->frame, *callee_frame = lilac_arena_new(m->arena, frame);
    callee_frame->values = lilac_arena_array(m->arena, interpreter_cell *, f->value_count);
    callee_frame->function = f;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const interpreter_cell *from = read(m, op, i);
        uint64_t n = count_of(f->parameters[i]->type);
        interpreter_cell *to = cells(m, n);
        memcpy(to, from, n * sizeof *to);
        callee_frame->values[f->parameters[i]->id] = to;
    }
    m->frame = callee_frame;
    m->depth++;
    const lilac_tile_op *last = run_blocks(m, f->body->first);
    m->depth--;
    for (uint32_t i = 0; i < op->result_count; i++) {
        const interpreter_cell *from = callee_frame->values[last->operands[i].value->id];
        m->frame = caller;
        memcpy(target(m, &op->results[i]), from, count_of(op->results[i].type) * sizeof *from);
    }
    m->frame = caller;
}

static void run_block_pointer(machine *m, const lilac_tile_op *op) {
    interpreter_cell *out = target(m, &op->results[0]);
    const uint32_t rank = op->results[0].type->element->rank;
    if (op->code == LILAC_TILE_OP_TT_MAKE_TENSOR_PTR) {
        for (uint32_t i = 0; i < 1 + 3 * rank; i++) {
            out[i] = at(m, op, i, 0);
        }
        return;
    }
    memcpy(out, read(m, op, 0), (1 + 3 * rank) * sizeof *out);
    for (uint32_t d = 0; d < rank; d++) {
        interpreter_cell *offset = &out[1 + 2 * rank + d];
        interpreter_cell by = at(m, op, 1 + d, 0);
        offset->bits = (uint32_t)(offset->bits + by.bits);
        offset->error += by.error;
    }
}

static void run_assert(machine *m, const lilac_tile_op *op) {
    for (uint64_t e = 0; e < count_of(op->operands[0].value->type); e++) {
        if (!known(m, op, at(m, op, 0, e))) {
            end(m,
                op->code == LILAC_TILE_OP_LLVM_INTR_ASSUME ? INTERPRETER_UNDETERMINED
                                                           : INTERPRETER_ASSERTED,
                op);
        }
    }
}

static bool run_element_by_element(machine *m, const lilac_tile_op *op) {
    if (op->result_count == 0 || op->operand_count == 0 || op->operand_count > MOST_OPERANDS ||
        op->result_count > 2) {
        return false;
    }
    interpreter_cell in[MOST_OPERANDS], out[2] = {{0, 0, 0}, {0, 0, 0}};
    for (uint64_t e = 0; e < count_of(op->results[0].type); e++) {
        bool trap = false;
        for (uint32_t i = 0; i < op->operand_count; i++) {
            in[i] = at(m, op, i, e);
        }
        if (!interpreter_element(op, in, out, &trap)) {
            return false;
        }
        if (trap) {
            end(m, INTERPRETER_UNDETERMINED, op);
        }
        for (uint32_t r = 0; r < op->result_count; r++) {
            target(m, &op->results[r])[e] = out[r];
        }
    }
    return true;
}

static void run_op(machine *m, const lilac_tile_op *op) {
    burn(m, op, op->result_count > 0 ? count_of(op->results[0].type) : 1);
    switch (op->code) {
    case LILAC_TILE_OP_SCF_FOR:
        run_for(m, op);
        return;
    case LILAC_TILE_OP_SCF_IF:
        run_if(m, op);
        return;
    case LILAC_TILE_OP_SCF_WHILE:
        run_while(m, op);
        return;
    case LILAC_TILE_OP_TT_CALL:
        run_call(m, op);
        return;
    case LILAC_TILE_OP_TT_REDUCE:
    case LILAC_TILE_OP_TT_SCAN:
        run_fold(m, op);
        return;
    case LILAC_TILE_OP_TT_MAP_ELEMENTWISE:
        run_map(m, op);
        return;
    case LILAC_TILE_OP_TT_LOAD:
        run_load(m, op);
        return;
    case LILAC_TILE_OP_TT_STORE:
        run_store(m, op);
        return;
    case LILAC_TILE_OP_TT_ATOMIC_RMW:
    case LILAC_TILE_OP_TT_ATOMIC_CAS:
        run_atomic(m, op);
        return;
    case LILAC_TILE_OP_TT_HISTOGRAM:
        run_histogram(m, op);
        return;
    case LILAC_TILE_OP_TT_MAKE_TENSOR_PTR:
    case LILAC_TILE_OP_TT_ADVANCE:
        run_block_pointer(m, op);
        return;
    case LILAC_TILE_OP_TT_ASSERT:
    case LILAC_TILE_OP_CF_ASSERT:
    case LILAC_TILE_OP_LLVM_INTR_ASSUME:
        run_assert(m, op);
        return;
    case LILAC_TILE_OP_TT_PRINT:
        m->run->prints += op->operand_count;
        return;
    case LILAC_TILE_OP_GPU_BARRIER:
        return;
    default:
        if (!run_source(m, op) && !run_shape(m, op) && !run_element_by_element(m, op)) {
            end(m, INTERPRETER_UNSUPPORTED, op);
        }
        return;
    }
}

/* Runs blocks until a terminator that leaves their region, and returns that. */
static const lilac_tile_op *run_blocks(machine *m, const lilac_tile_block *block) {
    const lilac_tile_op *op = block->first;
    while (op != NULL) {
        if (op->code == LILAC_TILE_OP_CF_BR || op->code == LILAC_TILE_OP_CF_COND_BR) {
            burn(m, op, 1);
            uint32_t way = 0, first = 0;
            if (op->code == LILAC_TILE_OP_CF_COND_BR) {
                way = known(m, op, at(m, op, 0, 0)) & 1 ? 0 : 1;
                first = 1 + (way == 1 ? op->successors[0]->argument_count : 0);
            }
            block = op->successors[way];
            assign(m, block->argument_count, op->operands + first, block->arguments);
            op = block->first;
        } else if (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_TERMINATOR) {
            return op;
        } else {
            run_op(m, op);
            op = op->next;
        }
    }
    end(m, INTERPRETER_UNSUPPORTED, block->last);
}

/* ---- the door ---------------------------------------------------------------------------- */

static void run_program(machine *m, lilac_tile_function *f) {
    frame *first = lilac_arena_new(m->arena, frame);
    first->values = lilac_arena_array(m->arena, interpreter_cell *, f->value_count);
    first->function = f;
    m->frame = first;
    for (uint32_t i = 0; i < f->parameter_count; i++) {
        const lilac_tile_type *type = f->parameters[i]->type;
        uint64_t bits = i < m->run->argument_count ? m->run->arguments[i] : 0;
        target(m, f->parameters[i])[0] =
            (interpreter_cell){lilac_scalar_mask(kind_of(type), bits), 0, 0};
    }
    (void)run_blocks(m, f->body->first);
}

static void prepare(interpreter_buffer *b) {
    if (b->error == NULL) {
        uint64_t size = b->size > 0 ? b->size : 1;
        b->error = calloc(size, sizeof *b->error);
        b->scalar = calloc(size, 1);
        b->touched = calloc(size, sizeof *b->touched);
        b->mass = calloc(size, sizeof *b->mass);
    }
}

interpreter_status interpreter_execute(interpreter_run *run) {
    machine *m = calloc(1, sizeof *m);
    lilac_tile_function *volatile kernel = NULL;
    m->run = run;
    m->fuel = run->fuel > 0 ? run->fuel : 1ULL << 26;
    for (uint32_t i = 0; i < run->buffer_count; i++) {
        prepare(&run->buffers[i]);
    }
    for (lilac_tile_function *f = run->module->functions; f != NULL; f = f->next) {
        lilac_tile_number(f);
        kernel = kernel == NULL && f->is_public && f->body != NULL ? f : kernel;
    }
    m->arena = lilac_arena_create();
    m->status = kernel != NULL ? INTERPRETER_DONE : INTERPRETER_UNSUPPORTED;
    const uint64_t programs = (uint64_t)run->grid[0] * run->grid[1] * run->grid[2];
    if (kernel != NULL && setjmp(m->ended) == 0) {
        for (uint64_t p = 0; p < programs; p++) {
            m->program[0] = (uint32_t)(p % run->grid[0]);
            m->program[1] = (uint32_t)(p / run->grid[0] % run->grid[1]);
            m->program[2] = (uint32_t)(p / run->grid[0] / run->grid[1]);
            lilac_arena_destroy(m->arena);
            m->arena = lilac_arena_create();
            run_program(m, kernel);
        }
    }
    interpreter_status status = m->status;
    lilac_arena_destroy(m->arena);
    free(m);
    return status;
}

void interpreter_buffer_clear(interpreter_buffer *buffer) {
    free(buffer->error);
    free(buffer->scalar);
    free(buffer->touched);
    free(buffer->mass);
    buffer->error = NULL;
    buffer->scalar = NULL;
    buffer->touched = NULL;
    buffer->mass = NULL;
}

const char *interpreter_status_name(interpreter_status status) {
    static const char *const names[] = {"done",         "an assertion failed",
                                        "out of range", "undetermined",
                                        "too long",     "without a meaning here"};
    return names[status];
}

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
            same = (isnan(a) && isnan(b)) || away <= error;
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
