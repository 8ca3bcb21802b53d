/* The walk over a tile function, and the values that all operations share.
 *
 *   for each operation in order:
 *       skip it if it is pure and has no uses
 *       call the function that operations.def names for its opcode
 *
 * That function defines one SIMT value for each register of each result. The values of a tile
 * function are in one array, indexed by the tile value's id. */
#include "coordinates.h"
#include "operations.h"
#include "partitions.h"

#include <string.h>

/* ---- diagnostics ------------------------------------------------------------------------- */

bool lilac_lower_refuse(lilac_lowering *l, const char *id, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    lilac_position position = l->op != NULL ? lilac_tile_position(l->op) : (lilac_position){0};
    position = position.source != 0 ? position : l->function->position;
    lilac_location location = l->op != NULL ? l->op->location : l->function->location;
    lilac_verror(l->context, position, location, id, format, arguments);
    va_end(arguments);
    l->failed = true;
    return false;
}

bool lilac_lower_unsupported(lilac_lowering *l, const char *format, ...) {
    lilac_text reason = {0};
    va_list arguments;
    va_start(arguments, format);
    lilac_text_vprintf(&reason, format, arguments);
    va_end(arguments);
    (void)lilac_lower_refuse(l, "unsupported-operation", "'%s' cannot be lowered: %s",
                             lilac_tile_op_info_get(l->op->code)->name, lilac_text_get(&reason));
    lilac_text_clear(&reason);
    return false;
}

bool lilac_lower_no_lowering(lilac_lowering *l) {
    return lilac_lower_refuse(l, "unsupported-operation", "'%s' cannot be lowered",
                              lilac_tile_op_info_get(l->op->code)->name);
}

bool lilac_lower_bad_attribute(lilac_lowering *l, const char *name, const char *expected) {
    const lilac_tile_attribute *attribute = lilac_tile_find(&l->op->attributes, name);
    if (attribute == NULL) {
        return lilac_lower_unsupported(l, "it has no attribute '%s'; expected %s", name, expected);
    }
    if (attribute->text != NULL) {
        return lilac_lower_unsupported(l, "the attribute '%s' is \"%s\"; expected %s", name,
                                       attribute->text, expected);
    }
    if (attribute->integers != NULL || attribute->elements != NULL) {
        return lilac_lower_unsupported(l, "the attribute '%s' has %u elements; expected %s", name,
                                       attribute->count, expected);
    }
    return lilac_lower_unsupported(l, "the attribute '%s' is %lld; expected %s", name,
                                   (long long)attribute->integer, expected);
}

/* ---- types and values -------------------------------------------------------------------- */

static lilac_simt_type scalar_type(lilac_scalar scalar) {
    switch (scalar) {
    case LILAC_I1:
        return LILAC_SIMT_I1;
    case LILAC_I8:
    case LILAC_F8E4M3FN:
    case LILAC_F8E5M2:
        return LILAC_SIMT_I8;
    case LILAC_I16:
        return LILAC_SIMT_I16;
    case LILAC_I32:
    case LILAC_INDEX:
        return LILAC_SIMT_I32;
    case LILAC_I64:
        return LILAC_SIMT_I64;
    case LILAC_F16:
        return LILAC_SIMT_F16;
    case LILAC_BF16:
        return LILAC_SIMT_BF16;
    case LILAC_F32:
        return LILAC_SIMT_F32;
    case LILAC_F64:
        return LILAC_SIMT_F64;
    default:
        return LILAC_SIMT_VOID;
    }
}

bool lilac_lower_type(lilac_lowering *l, const lilac_tile_type *type, lilac_simt_type *result) {
    const lilac_tile_type *element = lilac_tile_element(type);
    if (element->kind == LILAC_TILE_POINTER && element->element->kind != LILAC_TILE_TENSOR) {
        if (element->address_space != 1) {
            return lilac_lower_refuse(l, "unsupported-type",
                                      "pointers to address space %u cannot be lowered",
                                      element->address_space);
        }
        *result = LILAC_SIMT_I64;
        return true;
    }
    /* A memory descriptor has an element type too, but no SIMT value represents the descriptor. */
    bool memory = type->kind == LILAC_TILE_MEMDESC;
    *result = element->kind == LILAC_TILE_SCALAR && !memory ? scalar_type(element->scalar)
                                                            : LILAC_SIMT_VOID;
    if (*result != LILAC_SIMT_VOID) {
        return true;
    }
    lilac_text text = {0};
    lilac_tile_print_type(&text, memory ? type : element);
    (void)lilac_lower_refuse(l, "unsupported-type", "values of type %s cannot be lowered",
                             lilac_text_get(&text));
    lilac_text_clear(&text);
    return false;
}

const lilac_lower_value *lilac_lower_operand(lilac_lowering *l, const lilac_tile_op *op,
                                             uint32_t index) {
    const lilac_tile_value *value = lilac_tile_operand(op, index);
    return value == NULL ? NULL : &l->values[value->id];
}

int lilac_lower_word(const lilac_tile_op *op, const char *attribute, int count,
                     const char *const *words, int otherwise) {
    lilac_name text = lilac_tile_find_text(&op->attributes, attribute);
    if (text == NULL) {
        return otherwise;
    }
    while (count > 0 && strcmp(text, words[count - 1]) != 0) {
        count--;
    }
    return count - 1;
}

static void full_range(lilac_lower_value *value) {
    uint32_t bits = lilac_simt_type_bits(value->simt);
    value->low = bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1));
    value->high = bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;
}

lilac_lower_value *lilac_lower_define(lilac_lowering *l, const lilac_tile_value *tile) {
    lilac_lower_value *value = &l->values[tile->id];
    lilac_simt_value *registers = value->base;
    uint32_t capacity = value->count;
    memset(value, 0, sizeof *value);
    value->type = tile->type;
    if (!lilac_lower_type(l, tile->type, &value->simt)) {
        return NULL;
    }
    value->count = 1;
    if (lilac_tile_is_tensor(tile->type)) {
        value->view = lilac_lower_view_of(l, tile->type);
        if (value->view == NULL) {
            return NULL;
        }
        value->count = value->view->count;
    }
    full_range(value);
    value->exact = true;
    /* Each inlined copy of a region defines its scalars again; the array is reused. */
    bool reuse = registers != NULL && capacity == 1 && value->count == 1;
    value->base = reuse ? registers : lilac_arena_array(l->arena, lilac_simt_value, value->count);
    return value;
}

lilac_lower_value *lilac_lower_define_map(lilac_lowering *l, const lilac_tile_value *tile) {
    lilac_lower_value *value = &l->values[tile->id];
    *value = (lilac_lower_value){.type = tile->type, .simt = LILAC_SIMT_I64, .count = 1};
    full_range(value);
    value->exact = true;
    value->base = lilac_arena_array(l->arena, lilac_simt_value, 1);
    return value;
}

lilac_lower_value *lilac_lower_result(lilac_lowering *l, const lilac_tile_op *op, uint32_t index) {
    return lilac_lower_define(l, &op->results[index]);
}

lilac_simt_value lilac_lower_get(lilac_lowering *l, const lilac_lower_value *value, uint32_t r) {
    if (value->offsets == NULL || value->offsets[r] == 0) {
        return value->base[r];
    }
    lilac_simt_value parts[2] = {value->base[r],
                                 lilac_lower_integer(l, value->simt, value->offsets[r])};
    return lilac_lower_flagged(l, LILAC_SIMT_OP_ADD, value->simt,
                               value->exact ? LILAC_SIMT_NO_SIGNED_WRAP : 0, 2, parts);
}

bool lilac_lower_constant(lilac_lowering *l, const lilac_lower_value *value, int64_t *number) {
    uint64_t bits;
    for (uint32_t r = 0; r < value->count; r++) {
        if (value->base[r] != value->base[0] ||
            (value->offsets != NULL && value->offsets[r] != 0)) {
            return false;
        }
    }
    if (!lilac_simt_is_constant(l->kernel, value->base[0], &bits)) {
        return false;
    }
    uint32_t width = lilac_simt_type_bits(value->simt);
    *number = width == 64 ? (int64_t)bits : (int64_t)(bits << (64 - width)) >> (64 - width);
    return true;
}

/* ---- building ---------------------------------------------------------------------------- */

lilac_simt_value lilac_lower_flagged(lilac_lowering *l, lilac_simt_opcode code,
                                     lilac_simt_type type, uint8_t flags, uint32_t operands,
                                     const lilac_simt_value *values) {
    lilac_simt_instruction like = {.code = (uint16_t)code, .flags = flags};
    return lilac_simt_build(&l->builder, &like, operands, values, 1, &type);
}

lilac_simt_value lilac_lower_integer(lilac_lowering *l, lilac_simt_type type, int64_t number) {
    uint32_t bits = lilac_simt_type_bits(type);
    uint64_t mask = bits == 64 ? ~0ULL : (1ULL << bits) - 1;
    return lilac_simt_constant(&l->builder, type, (uint64_t)number & mask);
}

lilac_simt_value lilac_lower_float(lilac_lowering *l, lilac_simt_type type, double number) {
    lilac_scalar scalar = type == LILAC_SIMT_F16    ? LILAC_F16
                          : type == LILAC_SIMT_BF16 ? LILAC_BF16
                          : type == LILAC_SIMT_F32  ? LILAC_F32
                                                    : LILAC_F64;
    uint64_t bits = lilac_scalar_encode(scalar, number, LILAC_ROUND_NEAREST_EVEN, false);
    return lilac_simt_constant(&l->builder, type, bits);
}

lilac_simt_value lilac_lower_not(lilac_lowering *l, lilac_simt_value predicate) {
    lilac_simt_builder *b = &l->builder;
    return lilac_simt_op2(b, LILAC_SIMT_OP_XOR, LILAC_SIMT_I1, predicate,
                          lilac_simt_constant(b, LILAC_SIMT_I1, 1));
}

lilac_simt_value lilac_lower_both(lilac_lowering *l, lilac_simt_value a, lilac_simt_value b) {
    if (a == 0 || b == 0) {
        return a == 0 ? b : a;
    }
    return lilac_simt_op2(&l->builder, LILAC_SIMT_OP_AND, LILAC_SIMT_I1, a, b);
}

/* PTX has no select of predicates; logic operations replace it. */
lilac_simt_value lilac_lower_select(lilac_lowering *l, lilac_simt_value condition,
                                    lilac_simt_value yes, lilac_simt_value no) {
    lilac_simt_builder *b = &l->builder;
    lilac_simt_type type = lilac_simt_type_of(l->kernel, yes);
    if (type != LILAC_SIMT_I1) {
        return lilac_simt_op3(b, LILAC_SIMT_OP_SELECT, type, condition, yes, no);
    }
    lilac_simt_value first = lilac_simt_op2(b, LILAC_SIMT_OP_AND, type, condition, yes);
    lilac_simt_value second =
        lilac_simt_op2(b, LILAC_SIMT_OP_AND, type, lilac_lower_not(l, condition), no);
    return lilac_simt_op2(b, LILAC_SIMT_OP_OR, type, first, second);
}

void lilac_lower_barrier(lilac_lowering *l) {
    if (l->target->num_warps == 1) {
        lilac_simt_warp_barrier(&l->builder);
    } else {
        lilac_simt_barrier(&l->builder);
    }
}

/* ---- elementwise ------------------------------------------------------------------------- */

#define MAX_OPERANDS 4
#define MAX_RESULTS  2

bool lilac_lower_elementwise(lilac_lowering *l, const lilac_tile_op *op,
                             lilac_lower_element element) {
    if (element == NULL) { /* the table has no row for one element of it */
        return lilac_lower_no_lowering(l);
    }
    uint32_t operands = op->operand_count, results = op->result_count;
    const lilac_lower_value *values[MAX_OPERANDS];
    const uint32_t *sources[MAX_OPERANDS];
    lilac_lower_value *outs[MAX_RESULTS];
    for (uint32_t i = 0; i < results; i++) {
        outs[i] = lilac_lower_result(l, op, i);
        if (outs[i] == NULL) {
            return false;
        }
    }
    uint32_t vary = ~0U;
    for (uint32_t i = 0; i < results; i++) {
        uint32_t constant = lilac_lower_constant_bits(l, &op->results[i], outs[i]->view);
        vary = i == 0 ? ~constant : vary | ~constant;
    }
    for (uint32_t i = 0; i < operands; i++) {
        values[i] = lilac_lower_operand(l, op, i);
        if (!lilac_lower_align(l, values[i], outs[0]->view, &sources[i])) {
            return false;
        }
    }
    lilac_simt_value now[MAX_OPERANDS], before[MAX_OPERANDS], computed[MAX_RESULTS] = {0};
    for (uint32_t r = 0; r < outs[0]->count; r++) {
        uint32_t same = outs[0]->view == NULL ? r : outs[0]->view->canonical[r] & vary;
        if (same != r) {
            for (uint32_t i = 0; i < results; i++) {
                outs[i]->base[r] = outs[i]->base[same];
            }
            continue;
        }
        for (uint32_t i = 0; i < operands; i++) {
            now[i] = lilac_lower_get(l, values[i], lilac_lower_index(values[i], sources[i], r));
        }
        if (r == 0 || memcmp(now, before, operands * sizeof *now) != 0) {
            element(l, op, now, computed);
            if (l->failed) {
                return false;
            }
            memcpy(before, now, operands * sizeof *now);
        }
        for (uint32_t i = 0; i < results; i++) {
            outs[i]->base[r] = computed[i];
        }
    }
    return true;
}

/* ---- the walk ---------------------------------------------------------------------------- */

typedef bool (*lower_function_type)(lilac_lowering *, const lilac_tile_op *);

/* An assumption builds no code; the axis analysis has used it. */
static bool lower_assume(lilac_lowering *l, const lilac_tile_op *op) {
    (void)l, (void)op;
    return true;
}

/* gpu.barrier orders global memory too, so lilac_simt_opt_barriers must keep it. All threads of a
 * program wait: those of the cluster. */
static bool lower_barrier(lilac_lowering *l, const lilac_tile_op *op) {
    (void)op;
    if (l->target->num_ctas > 1) {
        lilac_simt_cluster_barrier(&l->builder);
        return true;
    }
    lilac_simt_memory_barrier(&l->builder);
    return true;
}

static bool lower_local_barrier(lilac_lowering *l, const lilac_tile_op *op) {
    (void)op;
    lilac_lower_barrier(l);
    return true;
}

/* NULL: an operation without a lowering. */
static const lower_function_type lowering_of[LILAC_TILE_OP_COUNT] = {
#define OPERATION(code, cost, layout, facts, strides, range, fold, lower, reference)               \
    [LILAC_TILE_OP_##code] = lower,
#include <lilac/operations.def>
};

static bool is_reference(const lilac_tile_type *type) {
    return type->kind == LILAC_TILE_MEMDESC || type->kind == LILAC_TILE_TOKEN;
}

static bool is_unused(const lilac_tile_op *op) {
    if (!(lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE)) {
        return false;
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (op->results[i].uses != NULL) {
            return false;
        }
    }
    return true;
}

/* The function that lowers the operation; NULL: there is none. A select or a poison value of memory
 * descriptors is an operation on memory. */
static lower_function_type find_lowering(const lilac_tile_op *op) {
    bool either = op->code == LILAC_TILE_OP_ARITH_SELECT || op->code == LILAC_TILE_OP_UB_POISON;
    return either && is_reference(op->results[0].type) ? lilac_lower_shared_memory
                                                       : lowering_of[op->code];
}

/* Only control flow and operations on memory have memory descriptors and tokens as operands. */
static bool check_operands(lilac_lowering *l, const lilac_tile_op *op, lower_function_type lower) {
    bool takes_memory = lower == lilac_lower_shared_memory || lower == lilac_lower_async_copy ||
                        lower == lilac_lower_control || lower == lilac_lower_warp_specialize ||
                        lower == lilac_lower_warp_group_dot ||
                        lower == lilac_lower_warp_group_dot_wait || lower == lilac_lower_mbarrier ||
                        lower == lilac_lower_tensor_copy || lower == lilac_lower_tensor_map;
    for (uint32_t i = 0; i < op->operand_count && !takes_memory; i++) {
        const lilac_tile_type *type = op->operands[i].value->type;
        if (!is_reference(type)) {
            continue;
        }
        lilac_text text = {0};
        lilac_tile_print_type(&text, type);
        (void)lilac_lower_refuse(l, "unsupported-type",
                                 "'%s' cannot be lowered: operand %u is of type %s",
                                 lilac_tile_op_info_get(op->code)->name, i, lilac_text_get(&text));
        lilac_text_clear(&text);
        return false;
    }
    return true;
}

/* SIMT values keep the names of their tile values. */
static void name_results(lilac_lowering *l, const lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->result_count; i++) {
        const lilac_lower_value *value = &l->values[op->results[i].id];
        lilac_name name = op->results[i].name;
        for (uint32_t r = 0; name != NULL && r < value->count; r++) {
            lilac_simt_value_info *info = &l->kernel->values[value->base[r]];
            if (info->name == NULL && info->definition != NULL &&
                info->definition->code != LILAC_SIMT_OP_CONST) {
                info->name = name;
            }
        }
    }
}

/* The range of a value bounds its base where the base is an element: without offsets, or if all
 * registers have one base and one of them has the offset 0. */
static void bound(lilac_lowering *l, const lilac_tile_value *tile) {
    lilac_lower_value *value = &l->values[tile->id];
    const lilac_range range = l->ranges[tile->id];
    if (value->kind != LILAC_LOWER_REGISTERS || value->base == NULL ||
        (value->simt != LILAC_SIMT_I32 && value->simt != LILAC_SIMT_I64) ||
        (range.low <= value->low && range.high >= value->high)) {
        return;
    }
    bool is_element = value->offsets == NULL;
    for (uint32_t r = 0; value->offsets != NULL && r < value->count; r++) {
        if (value->base[r] != value->base[0]) {
            return;
        }
        is_element |= value->offsets[r] == 0;
    }
    if (is_element && range.low <= value->high && range.high >= value->low) {
        value->low = range.low > value->low ? range.low : value->low;
        value->high = range.high < value->high ? range.high : value->high;
    }
}

const lilac_tile_op *lilac_lower_block(lilac_lowering *l, const lilac_tile_block *block) {
    for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
        l->op = op;
        l->builder.location = op->location != 0
                                  ? op->location
                                  : lilac_location_of_text(l->context, lilac_tile_position(op));
        if (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_TERMINATOR) {
            if (op->successor_count != 0) {
                (void)lilac_lower_unsupported(l, "only structured control flow (scf) is supported");
                return NULL;
            }
            return op;
        }
        if (is_unused(op)) {
            continue;
        }
        lower_function_type lower = find_lowering(op);
        if (lower == NULL) {
            (void)lilac_lower_no_lowering(l);
            return NULL;
        }
        if (!check_operands(l, op, lower) || !lower(l, op) || l->failed) {
            return NULL;
        }
        for (uint32_t i = 0; i < op->result_count; i++) {
            bound(l, &op->results[i]);
        }
        name_results(l, op);
    }
    l->op = NULL;
    (void)lilac_lower_refuse(l, "unsupported-operation", "a block ends without a terminator");
    return NULL;
}

/* ---- kernels ----------------------------------------------------------------------------- */

static bool lower_parameters(lilac_lowering *l) {
    lilac_tile_function *function = l->function;
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        const lilac_tile_value *tile = function->parameters[i];
        lilac_simt_parameter *parameter = &l->kernel->parameters[i];
        if (tile->type->kind == LILAC_TILE_TENSOR) {
            return lilac_lower_refuse(
                l, "unsupported-type",
                "parameter %u of kernel '%s' is a tensor; parameters are scalars and pointers", i,
                function->name);
        }
        lilac_box box;
        parameter->is_tensor_map = tile->type->kind == LILAC_TILE_DESCRIPTOR &&
                                   lilac_engine_box(&box, tile->type->element);
        if (parameter->is_tensor_map) {
            parameter->type = LILAC_SIMT_I64;
        } else if (!lilac_lower_type(l, tile->type, &parameter->type)) {
            return false;
        }
        parameter->name = tile->name;
        parameter->is_pointer = tile->type->kind == LILAC_TILE_POINTER;
        int64_t alignment =
            lilac_tile_find_integer(&function->parameter_attributes[i], "tt.divisibility", 1);
        alignment &= -alignment; /* the greatest power of two that divides it */
        parameter->alignment = parameter->is_pointer && alignment > 0 && alignment <= INT32_MAX
                                   ? (uint32_t)alignment
                                   : 1;
    }
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        const bool is_map = l->kernel->parameters[i].is_tensor_map;
        lilac_lower_value *value = is_map ? lilac_lower_define_map(l, function->parameters[i])
                                          : lilac_lower_define(l, function->parameters[i]);
        if (value == NULL) {
            return false;
        }
        value->base[0] = lilac_simt_parameter_value(&l->builder, i);
        if (is_map &&
            function->parameters[i]->uses != NULL) { /* it comes while addresses are computed */
            lilac_simt_prefetch_tensor_map(&l->builder, value->base[0]);
        }
    }
    return true;
}

static bool lower_function(lilac_simt_module *module, lilac_tile_function *function,
                           const lilac_target *target, const lilac_lower_options *options) {
    lilac_lowering l = {
        .context = module->context, .target = target, .options = options, .function = function};
    l.arena = lilac_arena_create();
    lilac_engine_axis_facts(&l.facts, l.arena, function);
    l.ranges = lilac_arena_array(l.arena, lilac_range, function->value_count);
    lilac_engine_ranges(l.ranges, function);
    l.values = lilac_arena_array(l.arena, lilac_lower_value, function->value_count);
    const bool placed = lilac_lower_find_partitions(&l);
    l.kernel = lilac_simt_kernel_create(module, function->name, function->parameter_count,
                                        lilac_lower_warps(&l), target->num_ctas);
    const int64_t programs = lilac_tile_find_integer(&function->attributes, LILAC_PROGRAMS, 0);
    l.kernel->programs = programs > 0 && programs <= INT32_MAX ? (uint32_t)programs : 0;
    l.kernel->location = function->location != 0
                             ? function->location
                             : lilac_location_of_text(l.context, function->position);
    lilac_simt_builder_init(&l.builder, l.kernel);
    l.builder.location = l.kernel->location;
    lilac_lower_find_scalars(&l);
    bool ready = placed && lilac_lower_place_memory(&l) && lower_parameters(&l);
    const lilac_tile_op *end = !ready ? NULL
                               : l.partitions != NULL
                                   ? lilac_lower_programs(&l)
                                   : lilac_lower_block(&l, function->body->first);
    if (end != NULL && end->operand_count != 0) {
        (void)lilac_lower_unsupported(&l, "the kernel returns %u values and must return none",
                                      end->operand_count);
    }
    if (end != NULL && !l.failed) {
        l.kernel->shared_bytes = l.shared_bytes;
        lilac_simt_instruction leave = {.code = LILAC_SIMT_OP_RETURN};
        (void)lilac_simt_build(&l.builder, &leave, 0, NULL, 0, NULL);
        if (l.shared_bytes > target->arch->shared_bytes) {
            l.op = NULL;
            (void)lilac_lower_refuse(&l, "too-much-shared-memory",
                                     "kernel '%s' needs %u bytes of shared memory and %s has %u",
                                     function->name, l.shared_bytes, target->arch->name,
                                     target->arch->shared_bytes);
        }
    }
    lilac_simt_builder_clear(&l.builder);
    lilac_arena_destroy(l.arena);
    return end != NULL && !l.failed;
}

lilac_simt_module *lilac_lower_with(lilac_tile_module *module, const lilac_target *target,
                                    const lilac_lower_options *options) {
    lilac_simt_module *result = lilac_simt_module_create(module->context, target->arch);
    bool ok = true;
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        if (f->is_public && f->body != NULL) {
            ok &= lower_function(result, f, target, options);
        }
    }
    if (!ok) {
        lilac_simt_module_destroy(result);
        return NULL;
    }
    return result;
}

lilac_simt_module *lilac_lower(lilac_tile_module *module, const lilac_target *target) {
    return lilac_lower_with(module, target, &(lilac_lower_options){0});
}
