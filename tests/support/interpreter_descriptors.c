/* Tensor descriptors: a descriptor is its base, shape, strides (in elements) and whether elements
 * outside of the tensor are read as NaN. Each access is a loop over the elements of its tensor in
 * row-major order.
 *
 * The base of a descriptor is a multiple of 16 bytes, and so is each stride but the last. The behaviour
 * of other descriptors is undefined. */
#include "interpreter_machine.h"

enum { MOST_RANK = 8, DESCRIPTOR_ALIGNMENT = 16 };

void interpreter_run_make_descriptor(machine *m, const lilac_tile_op *op) {
    interpreter_cell *out = target(m, &op->results[0]);
    const lilac_tile_type *block = op->results[0].type->element;
    const uint32_t rank = block->rank;
    out[0] = at(m, op, 0, 0);
    for (uint32_t i = 1; i <= 2 * rank; i++) {
        out[i] = at(m, op, i, 0);
        out[i].bits = i <= rank ? (uint64_t)(int64_t)(int32_t)out[i].bits : out[i].bits;
    }
    uint64_t misaligned = known(m, op, out[0]) % DESCRIPTOR_ALIGNMENT;
    for (uint32_t i = 0; i + 1 < rank; i++) {
        const uint64_t stride = known(m, op, out[1 + rank + i]);
        misaligned |= stride * bytes_of(lilac_tile_element(block)) % DESCRIPTOR_ALIGNMENT;
    }
    if (misaligned != 0) {
        end(m, INTERPRETER_UNDETERMINED, op);
    }
    const bool nan = lilac_tile_find_integer(&op->attributes, "padding", 1) == 2;
    out[2 * rank + 1] = (interpreter_cell){nan, 0, 0};
}

/* An access: `tensor` is the operand or result with the elements, `first` the first index. */
typedef struct access {
    const lilac_tile_op *op;
    const lilac_tile_type *block, *tensor, *element;
    uint32_t first;
    bool gathers; /* or scatters */
} access;

static access access_of(const lilac_tile_op *op) {
    access a = {.op = op, .block = op->operands[0].value->type->element, .first = 2};
    switch (op->code) {
    case LILAC_TILE_OP_TT_DESCRIPTOR_LOAD:
        a.tensor = op->results[0].type;
        a.first = 1;
        break;
    case LILAC_TILE_OP_TT_DESCRIPTOR_GATHER:
        a.tensor = op->results[0].type;
        a.gathers = true;
        break;
    case LILAC_TILE_OP_TT_DESCRIPTOR_SCATTER:
        a.tensor = op->operands[3].value->type;
        a.gathers = true;
        break;
    default:
        a.tensor = op->operands[1].value->type;
        break;
    }
    a.element = lilac_tile_element(a.tensor);
    return a;
}

/* The address of element e; false: it is outside of the tensor. */
static bool find_element(machine *m, const access *a, uint64_t e, uint64_t *address) {
    const interpreter_cell *d = read(m, a->op, 0);
    const uint32_t rank = a->block->rank;
    bool inside = true;
    *address = known(m, a->op, d[0]);
    for (uint32_t k = rank; k-- > 0;) {
        const uint64_t size = (uint64_t)a->block->shape[k];
        const int64_t shape = (int64_t)known(m, a->op, d[1 + k]);
        int64_t coordinate;
        if (a->gathers && k == 0) {
            const lilac_scalar kind = kind_of(lilac_tile_element(a->op->operands[1].value->type));
            coordinate = lilac_scalar_signed(kind, known(m, a->op, at(m, a->op, 1, e)));
        } else {
            const uint32_t operand = a->gathers ? 2 : a->first + k;
            coordinate = (int32_t)known(m, a->op, at(m, a->op, operand, 0)) + (int64_t)(e % size);
            e /= size;
        }
        inside = inside && coordinate >= 0 && coordinate < shape;
        *address += (uint64_t)coordinate * known(m, a->op, d[1 + rank + k]) * bytes_of(a->element);
    }
    return inside;
}

void interpreter_run_descriptor_load(machine *m, const lilac_tile_op *op) {
    const access a = access_of(op);
    const interpreter_cell nan = read(m, op, 0)[1 + 2 * a.block->rank];
    interpreter_cell *out = target(m, &op->results[0]);
    for (uint64_t e = 0; e < count_of(a.tensor); e++) {
        uint64_t address;
        if (find_element(m, &a, e, &address)) {
            out[e] = interpreter_load(m, op, address, a.element);
        } else {
            out[e] = (interpreter_cell){0, 0, 0};
            if (known(m, op, nan) && lilac_scalar_is_float(a.element->scalar)) {
                out[e].bits =
                    lilac_scalar_encode(a.element->scalar, NAN, LILAC_ROUND_NEAREST_EVEN, false);
            }
        }
    }
}

/* Where rows of a scatter are equal, any of their elements may remain. */
void interpreter_run_descriptor_store(machine *m, const lilac_tile_op *op) {
    const access a = access_of(op);
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t e = 0; e < count_of(a.tensor); e++) {
            uint64_t address, offset;
            if (!find_element(m, &a, e, &address)) {
                continue;
            }
            interpreter_buffer *b = interpreter_find(m, op, address, bytes_of(a.element), &offset);
            interpreter_cell cell = at(m, op, a.gathers ? 3 : 1, e);
            if (pass == 0 && b->touched[offset] != 0) {
                const interpreter_cell old = interpreter_load(m, op, address, a.element);
                cell = old.bits == cell.bits && old.error == cell.error ? cell : OPEN;
            }
            if (pass == 0) {
                interpreter_store(m, op, address, a.element, cell);
            }
            b->touched[offset] = pass == 0;
        }
    }
}

/* The elements of a block are in different places: each is changed once. */
void interpreter_run_descriptor_reduce(machine *m, const lilac_tile_op *op) {
    const access a = access_of(op);
    const char *kind = lilac_tile_find_text(&op->attributes, "kind");
    const bool is_unsigned = lilac_tile_element(a.block)->sign == 'u';
    const bool is_float = lilac_scalar_is_float(a.element->scalar);
    const char *name = strcmp(kind, "add") == 0 && is_float      ? "fadd"
                       : strcmp(kind, "min") == 0 && is_unsigned ? "umin"
                       : strcmp(kind, "max") == 0 && is_unsigned ? "umax"
                                                                 : kind;
    for (uint64_t e = 0; e < count_of(a.tensor); e++) {
        uint64_t address;
        if (find_element(m, &a, e, &address)) {
            const interpreter_cell old = interpreter_load(m, op, address, a.element);
            interpreter_store(
                m, op, address, a.element,
                interpreter_combine(name, kind_of(a.element), old, at(m, op, 1, e), 0, 1));
        }
    }
}
