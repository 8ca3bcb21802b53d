/* The interpreter: control flow, calls, and execution of operations in order. */
#include "interpreter_machine.h"

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

/* ---- control ----------------------------------------------------------------------------- */

/* A bound of scf.for, sign-extended or, where the loop compares unsigned numbers, zero-extended. */
static uint64_t bound_of(machine *m, const lilac_tile_op *op, uint32_t operand, bool is_unsigned) {
    lilac_scalar s = kind_of(op->operands[operand].value->type);
    uint64_t bits = known(m, op, at(m, op, operand, 0));
    return is_unsigned ? lilac_scalar_mask(s, bits) : (uint64_t)lilac_scalar_signed(s, bits);
}

static void run_for(machine *m, const lilac_tile_op *op) {
    const lilac_tile_block *body = op->regions[0]->first;
    lilac_scalar s = kind_of(op->operands[0].value->type);
    bool is_unsigned = lilac_tile_find(&op->attributes, "unsignedCmp") != NULL;
    uint64_t low = bound_of(m, op, 0, is_unsigned), high = bound_of(m, op, 1, is_unsigned);
    int64_t step = lilac_scalar_signed(s, known(m, op, at(m, op, 2, 0)));
    const uint32_t carried = op->operand_count - 3;
    if (step <= 0) {
        end(m, INTERPRETER_UNDETERMINED, op);
    }
    assign(m, carried, op->operands + 3, body->arguments + 1);
    bool more = is_unsigned ? low < high : (int64_t)low < (int64_t)high;
    for (uint64_t i = low; more; i += (uint64_t)step) {
        target(m, body->arguments[0])[0] = (interpreter_cell){lilac_scalar_mask(s, i), 0, 0};
        more = high - i > (uint64_t)step; /* i < high here */
        const lilac_tile_op *yield = interpreter_run_blocks(m, body);
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
        to_results(m, op, interpreter_run_blocks(m, region->first)->operands);
    }
}

/* The regions one after another: right for those that do not wait for each other. */
static void run_warp_specialize(machine *m, const lilac_tile_op *op) {
    to_results(m, op, interpreter_run_blocks(m, op->regions[0]->first)->operands);
    for (uint32_t r = 1; r < op->region_count; r++) {
        assign(m, op->operand_count, op->operands, op->regions[r]->first->arguments);
        interpreter_run_blocks(m, op->regions[r]->first);
    }
}

static void run_while(machine *m, const lilac_tile_op *op) {
    const lilac_tile_block *before = op->regions[0]->first, *after = op->regions[1]->first;
    assign(m, op->operand_count, op->operands, before->arguments);
    for (;;) {
        const lilac_tile_op *condition = interpreter_run_blocks(m, before);
        burn(m, op, 1);
        if (!(known(m, condition, at(m, condition, 0, 0)) & 1)) {
            to_results(m, op, condition->operands + 1);
            return;
        }
        assign(m, condition->operand_count - 1, condition->operands + 1, after->arguments);
        const lilac_tile_op *yield = interpreter_run_blocks(m, after);
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
    const lilac_tile_op *last = interpreter_run_blocks(m, f->body->first);
    m->depth--;
    for (uint32_t i = 0; i < op->result_count; i++) {
        const interpreter_cell *from = callee_frame->values[last->operands[i].value->id];
        m->frame = caller;
        memcpy(target(m, &op->results[i]), from, count_of(op->results[i].type) * sizeof *from);
    }
    m->frame = caller;
}

static void run_make_block_pointer(machine *m, const lilac_tile_op *op) {
    interpreter_cell *out = target(m, &op->results[0]);
    for (uint32_t i = 0; i < 1 + 3 * op->results[0].type->element->rank; i++) {
        out[i] = at(m, op, i, 0);
    }
}

static void run_advance(machine *m, const lilac_tile_op *op) {
    interpreter_cell *out = target(m, &op->results[0]);
    const uint32_t rank = op->results[0].type->element->rank;
    memcpy(out, read(m, op, 0), (1 + 3 * rank) * sizeof *out);
    for (uint32_t d = 0; d < rank; d++) {
        interpreter_cell *offset = &out[1 + 2 * rank + d];
        interpreter_cell by = at(m, op, 1 + d, 0);
        offset->bits = (uint32_t)(offset->bits + by.bits);
        offset->error += by.error;
    }
}

static void expect_all(machine *m, const lilac_tile_op *op, interpreter_status otherwise) {
    for (uint64_t e = 0; e < count_of(op->operands[0].value->type); e++) {
        if (!known(m, op, at(m, op, 0, e))) {
            end(m, otherwise, op);
        }
    }
}

static void run_assert(machine *m, const lilac_tile_op *op) {
    expect_all(m, op, INTERPRETER_ASSERTED);
}

static void run_assume(machine *m, const lilac_tile_op *op) {
    expect_all(m, op, INTERPRETER_UNDETERMINED);
}

static void run_print(machine *m, const lilac_tile_op *op) {
    m->run->prints += op->operand_count;
}

/* A barrier: programs run one after another, and threads do not exist here. */
static void run_barrier(machine *m, const lilac_tile_op *op) {
    (void)m, (void)op;
}

/* ---- element by element ------------------------------------------------------------------ */

static void run_each(machine *m, const lilac_tile_op *op, interpreter_meaning *meaning) {
    interpreter_cell in[MOST_OPERANDS];
    if (op->operand_count == 0 || op->operand_count > MOST_OPERANDS || op->result_count > 2) {
        end(m, INTERPRETER_UNSUPPORTED, op);
    }
    interpreter_element each = {.op = op,
                                .from = lilac_tile_element(op->operands[0].value->type),
                                .to = lilac_tile_element(op->results[0].type),
                                .in = in};
    for (uint64_t e = 0; e < count_of(op->results[0].type); e++) {
        for (uint32_t i = 0; i < op->operand_count; i++) {
            in[i] = at(m, op, i, e);
        }
        meaning(&each);
        if (each.trap || each.unsupported) {
            end(m, each.trap ? INTERPRETER_UNDETERMINED : INTERPRETER_UNSUPPORTED, op);
        }
        for (uint32_t r = 0; r < op->result_count; r++) {
            target(m, &op->results[r])[e] = each.out[r];
        }
    }
}

static void run_elements(machine *m, const lilac_tile_op *op) {
    run_each(m, op, interpreter_compute);
}

static void run_select(machine *m, const lilac_tile_op *op) {
    const lilac_tile_type *type = op->results[0].type;
    if (type->kind == LILAC_TILE_DESCRIPTOR) { /* several cells, and yet a scalar */
        const bool first = known(m, op, at(m, op, 0, 0)) & 1;
        memcpy(target(m, &op->results[0]), read(m, op, first ? 1 : 2),
               count_of(type) * sizeof(interpreter_cell));
        return;
    }
    run_each(m, op, interpreter_select);
}

static void run_pointer_sum(machine *m, const lilac_tile_op *op) {
    run_each(m, op, interpreter_pointer_sum);
}

static void run_library_function(machine *m, const lilac_tile_op *op) {
    run_each(m, op, interpreter_library_function);
}

/* Two e2m1 numbers in each byte, neighbours along the axis; the low four bits are the first one. */
static void run_fp4_to_fp(machine *m, const lilac_tile_op *op) {
    const lilac_tile_type *from = op->operands[0].value->type, *to = op->results[0].type;
    const uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    lilac_scalar scalar = kind_of(lilac_tile_element(to));
    uint64_t inner = 1, bytes = (uint64_t)from->shape[axis];
    for (uint32_t d = axis + 1; d < to->rank; d++) {
        inner *= (uint64_t)to->shape[d];
    }
    for (uint64_t e = 0; e < count_of(to); e++) {
        uint64_t along = e / inner % (2 * bytes), outer = e / inner / (2 * bytes);
        interpreter_cell byte = at(m, op, 0, (outer * bytes + along / 2) * inner + e % inner);
        double number = lilac_scalar_decode(LILAC_F4E2M1FN, byte.bits >> 4 * (along % 2) & 15);
        byte.bits = lilac_scalar_encode(scalar, number, LILAC_ROUND_NEAREST_EVEN, false);
        target(m, &op->results[0])[e] = byte.error != 0 ? OPEN : byte;
    }
}

/* The one text that passes write: the nearest number of tf32, ties away from zero. */
static void run_inline_asm(machine *m, const lilac_tile_op *op) {
    lilac_name text = lilac_tile_find_text(&op->attributes, "asm_string");
    if (text == NULL || strcmp(text, "cvt.rna.tf32.f32 $0, $1;") != 0) {
        end(m, INTERPRETER_UNSUPPORTED, op);
    }
    for (uint64_t e = 0; e < count_of(op->results[0].type); e++) {
        interpreter_cell cell = at(m, op, 0, e);
        double value = lilac_scalar_decode(LILAC_F32, cell.bits);
        cell.bits = isnan(value) ? 0x7FFFFFFF : (cell.bits + 0x1000) & 0xFFFFE000;
        cell.slack = 0;
        if (cell.error != 0) {
            cell.error += interpreter_ulp(LILAC_TF32, fabs(value) + cell.error);
        }
        target(m, &op->results[0])[e] = cell;
    }
}

/* ---- the table --------------------------------------------------------------------------- */

/* NULL: the operation has no meaning here. */
static void (*const reference_of[LILAC_TILE_OP_COUNT])(machine *, const lilac_tile_op *) = {
#define OPERATION(code, cost, layout, facts, strides, range, fold, lower, reference)               \
    [LILAC_TILE_OP_##code] = reference,
#include <lilac/operations.def>
};

static void run_op(machine *m, const lilac_tile_op *op) {
    burn(m, op, op->result_count > 0 ? count_of(op->results[0].type) : 1);
    if (reference_of[op->code] == NULL) {
        end(m, INTERPRETER_UNSUPPORTED, op);
    }
    reference_of[op->code](m, op);
}

/* Runs blocks until a terminator that leaves their region, and returns that. */
const lilac_tile_op *interpreter_run_blocks(machine *m, const lilac_tile_block *block) {
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

/* ---- programs ---------------------------------------------------------------------------- */

static void run_program(machine *m, lilac_tile_function *f) {
    frame *first = lilac_arena_new(m->arena, frame);
    first->values = lilac_arena_array(m->arena, interpreter_cell *, f->value_count);
    first->function = f;
    m->frame = first;
    for (uint32_t i = 0, a = 0; i < f->parameter_count; i++) {
        const lilac_tile_type *type = f->parameters[i]->type;
        const uint64_t count = type->kind == LILAC_TILE_DESCRIPTOR ? count_of(type) : 1;
        for (uint64_t k = 0; k < count; k++, a++) { /* of a descriptor an argument for each part */
            uint64_t bits = a < m->run->argument_count ? m->run->arguments[a] : 0;
            target(m, f->parameters[i])[k] =
                (interpreter_cell){lilac_scalar_mask(kind_of(type), bits), 0, 0};
        }
    }
    (void)interpreter_run_blocks(m, f->body->first);
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
