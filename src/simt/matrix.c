/* Matrix instructions: their operand groups, the rules that the verifier checks, and the builder's
 * functions (simt_matrix.h). */
#include "internal.h"

#include <lilac/simt_matrix.h>

#include <string.h>

enum { MOST_REGISTERS = 128 + 4 + 2, WARPS_OF_GROUP = 4 };

/* ---- operand groups --------------------------------------------------------------------- */

lilac_matrix_shape lilac_simt_matrix_shape(const lilac_simt_instruction *i) {
    const lilac_simt_matrix_payload *p = &i->payload.matrix;
    return (lilac_matrix_shape){.a = (lilac_matrix_type)p->a,
                                .b = (lilac_matrix_type)p->b,
                                .d = (lilac_matrix_type)p->d,
                                .m = p->m,
                                .n = p->n,
                                .k = p->k};
}

lilac_simt_type lilac_simt_accumulator_type(lilac_matrix_type d) {
    switch (d) {
    case LILAC_MATRIX_F16:
        return LILAC_SIMT_F16X2;
    case LILAC_MATRIX_S32:
        return LILAC_SIMT_I32;
    case LILAC_MATRIX_F64:
        return LILAC_SIMT_F64;
    default:
        return LILAC_SIMT_F32;
    }
}

bool lilac_simt_is_tied(lilac_simt_opcode code) {
    return code == LILAC_SIMT_OP_WGMMA || code == LILAC_SIMT_OP_WGMMA_WAIT;
}

static uint32_t lanes_of(const lilac_simt_instruction *i) {
    return i->code == LILAC_SIMT_OP_WGMMA ? 32 * WARPS_OF_GROUP : 32;
}

uint32_t lilac_simt_group_size(const lilac_simt_instruction *i, uint32_t k) {
    lilac_matrix_shape shape = lilac_simt_matrix_shape(i);
    uint32_t d = lilac_matrix_d_registers(&shape, lanes_of(i));
    switch (i->code) {
    case LILAC_SIMT_OP_MMA:
        return k == 0   ? lilac_matrix_a_registers(&shape, lanes_of(i))
               : k == 1 ? lilac_matrix_b_registers(&shape, lanes_of(i))
                        : d;
    case LILAC_SIMT_OP_WGMMA:
        return k == 0 ? d : k == 1 && i->payload.matrix.registers ? 4 : 1;
    default:
        return 0;
    }
}

lilac_simt_group lilac_simt_group_of(const lilac_simt_instruction *i, uint32_t k) {
    uint32_t first = 0;
    for (uint32_t n = 0; n < k; n++) {
        first += lilac_simt_group_size(i, n);
    }
    uint32_t count = lilac_simt_group_size(i, k);
    uint32_t rest = first < i->operand_count ? i->operand_count - first : 0;
    return (lilac_simt_group){.values = i->operands + (rest > 0 ? first : 0),
                              .count = count < rest ? count : rest};
}

/* ---- rules ------------------------------------------------------------------------------ */

static void put_types(lilac_text *why, const lilac_simt_instruction *i) {
    const lilac_simt_matrix_payload *p = &i->payload.matrix;
    lilac_text_printf(why, "%s with a = %s, b = %s and d = %s",
                      lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name,
                      lilac_matrix_type_name(p->a), lilac_matrix_type_name(p->b),
                      lilac_matrix_type_name(p->d));
}

/* "m, n, k are 16, 8, 4; …: 16, 8, 8; 16, 8, 16" */
static bool no_mma(const lilac_simt_instruction *i, lilac_text *why) {
    lilac_matrix_shape shape = lilac_simt_matrix_shape(i);
    const lilac_mma *row;
    bool any = false;
    for (size_t k = 0; (row = lilac_mma_at(k)) != NULL; k++) {
        lilac_matrix_shape other = {shape.a, shape.b, shape.d, row->m, row->n, row->k};
        if (lilac_mma_find(&other) != row) {
            continue;
        }
        if (!any) {
            lilac_text_printf(why, "m, n, k are %u, %u, %u; ", shape.m, shape.n, shape.k);
            put_types(why, i);
            lilac_text_puts(why, " exists for");
        }
        lilac_text_printf(why, "%s %u, %u, %u", any ? ";" : "", row->m, row->n, row->k);
        any = true;
    }
    if (!any) {
        lilac_text_puts(why, "there is no ");
        put_types(why, i);
    }
    return false;
}

static bool check_mma(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i,
                      lilac_text *why) {
    const lilac_simt_matrix_payload *p = &i->payload.matrix;
    const lilac_arch *arch = kernel->module->arch;
    lilac_matrix_shape shape = lilac_simt_matrix_shape(i);
    const lilac_mma *row = lilac_mma_find(&shape);
    if (row == NULL) {
        return no_mma(i, why);
    }
    if (arch != NULL && !lilac_mma_has(arch, row)) {
        put_types(why, i);
        lilac_text_printf(why, " and m, n, k %u, %u, %u is for devices from sm_%u on, not for %s",
                          row->m, row->n, row->k, row->capability, arch->name);
        return false;
    }
    if (p->registers || p->transpose_a || p->transpose_b || p->negate_a || p->negate_b) {
        lilac_text_puts(why, "mma has no modifiers but satfinite");
        return false;
    }
    if (p->saturate && row->d != LILAC_MATRIX_S32) {
        lilac_text_printf(why, "satfinite is for d = s32, not for %s",
                          lilac_matrix_type_name(p->d));
        return false;
    }
    return true;
}

/* The modifiers of a wgmma. */
static bool check_wgmma_modifiers(const lilac_simt_instruction *i, const lilac_wgmma *row,
                                  lilac_text *why) {
    const lilac_simt_matrix_payload *p = &i->payload.matrix;
    if (p->transpose_a && p->registers) {
        lilac_text_puts(why, "A is in registers and cannot be transposed");
    } else if ((p->transpose_a || p->transpose_b) && !row->transposes) {
        lilac_text_printf(why,
                          "%s of %u bits must have k contiguous in shared memory; only "
                          "elements of 16 bits can be transposed",
                          p->transpose_a ? "A" : "B",
                          lilac_matrix_type_bits((lilac_matrix_type)p->a));
    } else if ((p->negate_a || p->negate_b) && !row->scales) {
        lilac_text_printf(why, "%s of %s cannot be negated; only floats can",
                          p->negate_a ? "A" : "B",
                          lilac_matrix_type_name(p->negate_a ? p->a : p->b));
    } else if (p->saturate && row->kind != LILAC_MATRIX_S8) {
        lilac_text_printf(why, "satfinite is for elements s8 and u8, not for %s",
                          lilac_matrix_type_name(p->a));
    } else {
        return true;
    }
    return false;
}

static bool check_wgmma(const lilac_simt_instruction *i, lilac_text *why) {
    const lilac_simt_matrix_payload *p = &i->payload.matrix;
    lilac_matrix_shape shape = lilac_simt_matrix_shape(i);
    const lilac_wgmma *row = lilac_wgmma_find(&shape);
    if (row == NULL) {
        lilac_text_puts(why, "there is no ");
        put_types(why, i);
    } else if (p->m != 64) {
        lilac_text_printf(why, "m is %u; a wgmma has m = 64", p->m);
    } else if (p->k != row->k) {
        lilac_text_printf(why, "k is %u; a wgmma of %s has k = %u", p->k,
                          lilac_matrix_type_name(p->a), row->k);
    } else if (!lilac_wgmma_has_columns(row, p->n)) {
        lilac_text_printf(why, "n is %u; a wgmma of %s has n = %s, at most 256", p->n,
                          lilac_matrix_type_name(p->a),
                          row->narrow_list ? "8, 24 or a multiple of 16" : "a multiple of 8");
    } else {
        return check_wgmma_modifiers(i, row, why);
    }
    return false;
}

/* The types of registers, and that results are like the accumulators. */
static bool check_registers(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i,
                            lilac_text *why) {
    bool wgmma = i->code == LILAC_SIMT_OP_WGMMA;
    lilac_matrix_shape shape = lilac_simt_matrix_shape(i);
    lilac_simt_type wanted = lilac_simt_accumulator_type(shape.d);
    lilac_simt_group c = lilac_simt_group_of(i, wgmma ? 0 : 2);
    if (i->result_count != c.count) {
        lilac_text_printf(why, "%u results of %u accumulators", i->result_count, c.count);
        return false;
    }
    for (uint32_t k = 0; k < c.count; k++) {
        lilac_simt_type in = lilac_simt_type_of(kernel, c.values[k]);
        lilac_simt_type out = lilac_simt_type_of(kernel, i->result + k);
        if (in != wanted || out != wanted) {
            lilac_text_printf(why, "%s %u is %s; with d = %s it is %s",
                              in != wanted ? "accumulator" : "result", k + 1,
                              lilac_simt_type_name(in != wanted ? in : out),
                              lilac_matrix_type_name(shape.d), lilac_simt_type_name(wanted));
            return false;
        }
    }
    for (uint32_t g = wgmma ? 1 : 0; g < 2; g++) {
        lilac_simt_group words = lilac_simt_group_of(i, g);
        if (wgmma && !i->payload.matrix.registers) {
            bool good = lilac_simt_type_of(kernel, words.values[0]) == LILAC_SIMT_I64;
            if (!good) {
                lilac_text_printf(
                    why, "A is %s; a descriptor is i64",
                    lilac_simt_type_name(lilac_simt_type_of(kernel, words.values[0])));
            }
            return good;
        }
        bool is_double = shape.a == LILAC_MATRIX_F64;
        for (uint32_t k = 0; k < words.count && (!wgmma || g == 1); k++) {
            lilac_simt_type type = lilac_simt_type_of(kernel, words.values[k]);
            if (is_double ? type != LILAC_SIMT_F64 : lilac_simt_type_bits(type) != 32) {
                lilac_text_printf(why, "register %u of %s is %s; it is %s", k + 1,
                                  wgmma || g == 0 ? "A" : "B", lilac_simt_type_name(type),
                                  is_double ? "f64" : "a type of 32 bits");
                return false;
            }
        }
    }
    return true;
}

static bool check_wait(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i,
                       lilac_text *why) {
    if (i->result_count != i->operand_count) {
        lilac_text_printf(why, "%u results of %u operands", i->result_count, i->operand_count);
        return false;
    }
    for (uint32_t k = 0; k < i->operand_count; k++) {
        lilac_simt_type in = lilac_simt_type_of(kernel, i->operands[k]);
        lilac_simt_type out = lilac_simt_type_of(kernel, i->result + k);
        if (in != out) {
            lilac_text_printf(why, "result %u is %s and operand %u is %s", k + 1,
                              lilac_simt_type_name(out), k + 1, lilac_simt_type_name(in));
            return false;
        }
    }
    return true;
}

bool lilac_simt_check_matrix_shape(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i,
                                   lilac_text *why) {
    return i->code == LILAC_SIMT_OP_MMA ? check_mma(kernel, i, why) : check_wgmma(i, why);
}

/* The warps that execute the instruction, those of its program or of the block, are warpgroups. */
static bool check_window(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i,
                         lilac_text *why) {
    const lilac_simt_body *body = i->parent;
    while (body->parent != NULL && body->end_warp == 0) {
        body = body->parent->parent;
    }
    const uint32_t end = body->end_warp > 0 ? body->end_warp : kernel->num_warps;
    if (body->first_warp % WARPS_OF_GROUP == 0 && end % WARPS_OF_GROUP == 0) {
        return true;
    }
    lilac_text_printf(why, "warps %u to %u execute it; wgmma needs warpgroups, warps 4a to 4b",
                      body->first_warp, end);
    return false;
}

bool lilac_simt_check_matrix(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i,
                             lilac_text *why) {
    if (i->code == LILAC_SIMT_OP_MMA) {
        return check_registers(kernel, i, why);
    }
    if (!check_window(kernel, i, why)) {
        return false;
    }
    switch (i->code) {
    case LILAC_SIMT_OP_WGMMA:
        return check_registers(kernel, i, why);
    case LILAC_SIMT_OP_WGMMA_WAIT:
        return check_wait(kernel, i, why);
    default:
        return true;
    }
}

/* ---- the builder's functions ------------------------------------------------------------ */

/* Operands in the making. */
typedef struct operand_list {
    lilac_simt_value values[MOST_REGISTERS];
    uint32_t count;
} operand_list;

static void add(operand_list *o, uint32_t count, const lilac_simt_value *values) {
    memcpy(o->values + o->count, values, sizeof *values * count);
    o->count += count;
}

/* Builds a matrix instruction with as many results as accumulators. */
static lilac_simt_value build(lilac_simt_builder *b, const lilac_simt_instruction *like,
                              const operand_list *o) {
    lilac_simt_type types[MOST_REGISTERS];
    lilac_matrix_shape shape = lilac_simt_matrix_shape(like);
    uint32_t results = lilac_matrix_d_registers(&shape, lanes_of(like));
    for (uint32_t k = 0; k < results; k++) {
        types[k] = lilac_simt_accumulator_type(shape.d);
    }
    return lilac_simt_build(b, like, o->count, o->values, results, types);
}

lilac_simt_value lilac_simt_mma(lilac_simt_builder *b, const lilac_simt_matrix_payload *kind,
                                const lilac_simt_value *a, const lilac_simt_value *bs,
                                const lilac_simt_value *c) {
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_MMA, .payload.matrix = *kind};
    const lilac_simt_value *groups[] = {a, bs, c};
    operand_list o = {.count = 0};
    for (uint32_t g = 0; g < 3; g++) {
        add(&o, lilac_simt_group_size(&like, g), groups[g]);
    }
    return build(b, &like, &o);
}

lilac_simt_value lilac_simt_wgmma(lilac_simt_builder *b, const lilac_simt_matrix_payload *kind,
                                  const lilac_simt_value *c, const lilac_simt_value *a,
                                  lilac_simt_value descriptor, lilac_simt_value accumulate) {
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_WGMMA, .payload.matrix = *kind};
    operand_list o = {.count = 0};
    add(&o, lilac_simt_group_size(&like, 0), c);
    add(&o, lilac_simt_group_size(&like, 1), a);
    add(&o, 1, &descriptor);
    add(&o, 1, &accumulate);
    return build(b, &like, &o);
}

void lilac_simt_wgmma_fence(lilac_simt_builder *b) {
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_WGMMA_FENCE};
    lilac_simt_build(b, &like, 0, NULL, 0, NULL);
}

void lilac_simt_wgmma_commit(lilac_simt_builder *b) {
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_WGMMA_COMMIT};
    lilac_simt_build(b, &like, 0, NULL, 0, NULL);
}

lilac_simt_value lilac_simt_wgmma_wait(lilac_simt_builder *b, uint32_t groups, uint32_t count,
                                       const lilac_simt_value *values) {
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_WGMMA_WAIT,
                                   .payload.wgmma_wait.groups = groups};
    lilac_simt_type *types = lilac_arena_array(b->kernel->module->arena, lilac_simt_type, count);
    for (uint32_t k = 0; k < count; k++) {
        types[k] = lilac_simt_type_of(b->kernel, values[k]);
    }
    return lilac_simt_build(b, &like, count, values, count, types);
}

static lilac_simt_value broadcast(lilac_simt_builder *b, lilac_simt_value value) {
    const lilac_simt_instruction shuffle = {.code = LILAC_SIMT_OP_SHUFFLE,
                                            .detail = LILAC_SIMT_SHFL_IDX};
    const lilac_simt_value operands[] = {value, lilac_simt_constant(b, LILAC_SIMT_I32, 0)};
    const lilac_simt_type type = LILAC_SIMT_I32;
    return b->kernel->values[value].uniform ? value
                                            : lilac_simt_build(b, &shuffle, 2, operands, 1, &type);
}

/* A number of bytes below 2^18, in units of 16. */
static lilac_simt_value sixteenth(lilac_simt_builder *b, lilac_simt_value bytes) {
    enum { UNIT_BITS = 4 };
    const lilac_simt_type word = LILAC_SIMT_I32;
    const lilac_simt_instruction *shift = b->kernel->values[bytes].definition;
    uint64_t bits;
    if (shift != NULL && shift->code == LILAC_SIMT_OP_SHL &&
        lilac_simt_is_constant(b->kernel, shift->operands[1], &bits) && bits >= UNIT_BITS) {
        return lilac_simt_op2(b, LILAC_SIMT_OP_SHL, word, shift->operands[0],
                              lilac_simt_constant(b, word, bits - UNIT_BITS));
    }
    return lilac_simt_op2(b, LILAC_SIMT_OP_SHR_U, word, bytes,
                          lilac_simt_constant(b, word, UNIT_BITS));
}

lilac_simt_value lilac_simt_matrix_descriptor(lilac_simt_builder *b, lilac_simt_value start,
                                              lilac_simt_value offset,
                                              const lilac_matrix_descriptor *like) {
    lilac_matrix_descriptor fields = *like;
    fields.start = 0;
    const uint64_t rest = lilac_matrix_descriptor_encode(&fields);
    const lilac_simt_type word = LILAC_SIMT_I32;
    const lilac_simt_value window = lilac_simt_constant(b, word, 0x3FFFF);
    const lilac_simt_value four = lilac_simt_constant(b, word, 4);
    start = broadcast(b, start);
    lilac_simt_value low = lilac_simt_op2(b, LILAC_SIMT_OP_AND, word, start, window);
    low = lilac_simt_op2(b, LILAC_SIMT_OP_SHR_U, word, low, four);
    if (offset != 0) {
        offset = sixteenth(b, broadcast(b, offset));
        low = lilac_simt_op2(b, LILAC_SIMT_OP_ADD, word, low, offset);
    }
    if (rest >> 63 != 0) { /* not a sum with a negative number (simt_matrix.h) */
        low = lilac_simt_op2(b, LILAC_SIMT_OP_ADD, word, low,
                             lilac_simt_constant(b, word, rest & UINT32_MAX));
        const lilac_simt_value high = lilac_simt_constant(b, word, rest >> 32);
        return lilac_simt_pack(b, LILAC_SIMT_I64, 2, (const lilac_simt_value[]){low, high});
    }
    low = lilac_simt_op1(b, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I64, low);
    return lilac_simt_op2(b, LILAC_SIMT_OP_ADD, LILAC_SIMT_I64, low,
                          lilac_simt_constant(b, LILAC_SIMT_I64, rest));
}
