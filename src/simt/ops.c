/* The tables of operations, types and comparisons.
 *
 * Everything about an operation that can be said in a line stands in simt_ops.def; here that file
 * becomes an array, indexed by opcode. */
#include "internal.h"

#include <string.h>

enum {
    P = LILAC_SIMT_PURE,
    C = LILAC_SIMT_COMMUTATIVE,
    R = LILAC_SIMT_READS,
    W = LILAC_SIMT_WRITES,
    S = LILAC_SIMT_SYNC,
    X = LILAC_SIMT_CONVERGENT,
    D = LILAC_SIMT_DIVERGENT,
    T = LILAC_SIMT_TERMINATOR,
    B = LILAC_SIMT_REGIONS,
    G = LILAC_SIMT_GLOBAL,
    H = LILAC_SIMT_SHARED,
    A = LILAC_SIMT_ASYNCHRONOUS,
    O = LILAC_SIMT_ROUNDED,
    Z = LILAC_SIMT_DIVIDES,
    U = LILAC_SIMT_SPECIAL,
    F = LILAC_SIMT_FREE
};

const lilac_simt_op_info lilac_simt_op_infos[LILAC_SIMT_OP_COUNT] = {
    {"none", 0, ":", ""},
#define OP(code, name, traits, signature, doc) {name, traits, signature, doc},
#include <lilac/simt_ops.def>
#undef OP
};

const lilac_simt_op_info *lilac_simt_op_info_get(lilac_simt_opcode code) {
    return &lilac_simt_op_infos[(uint32_t)code < LILAC_SIMT_OP_COUNT ? code : LILAC_SIMT_OP_NONE];
}

bool lilac_simt_op_rounds(lilac_simt_opcode code) {
    return lilac_simt_has_trait(code, LILAC_SIMT_ROUNDED);
}

static const struct type_row {
    const char *name;
    bool is_float;
    lilac_scalar scalar;
} types[LILAC_SIMT_TYPE_COUNT] = {
    [LILAC_SIMT_VOID] = {"void", false, LILAC_I1},
    [LILAC_SIMT_I1] = {"i1", false, LILAC_I1},
    [LILAC_SIMT_I8] = {"i8", false, LILAC_I8},
    [LILAC_SIMT_I16] = {"i16", false, LILAC_I16},
    [LILAC_SIMT_I32] = {"i32", false, LILAC_I32},
    [LILAC_SIMT_I64] = {"i64", false, LILAC_I64},
    [LILAC_SIMT_F16] = {"f16", true, LILAC_F16},
    [LILAC_SIMT_BF16] = {"bf16", true, LILAC_BF16},
    [LILAC_SIMT_F32] = {"f32", true, LILAC_F32},
    [LILAC_SIMT_F64] = {"f64", true, LILAC_F64},
    [LILAC_SIMT_F16X2] = {"f16x2", true, LILAC_F16},
    [LILAC_SIMT_BF16X2] = {"bf16x2", true, LILAC_BF16},
};

const uint8_t lilac_simt_type_widths[LILAC_SIMT_TYPE_COUNT] = {
    [LILAC_SIMT_I1] = 1,   [LILAC_SIMT_I8] = 8,     [LILAC_SIMT_I16] = 16,    [LILAC_SIMT_I32] = 32,
    [LILAC_SIMT_I64] = 64, [LILAC_SIMT_F16] = 16,   [LILAC_SIMT_BF16] = 16,   [LILAC_SIMT_F32] = 32,
    [LILAC_SIMT_F64] = 64, [LILAC_SIMT_F16X2] = 32, [LILAC_SIMT_BF16X2] = 32,
};

const char *lilac_simt_type_name(lilac_simt_type type) {
    return types[(uint32_t)type < LILAC_SIMT_TYPE_COUNT ? type : LILAC_SIMT_VOID].name;
}

uint32_t lilac_simt_type_bits(lilac_simt_type type) {
    return lilac_simt_type_widths[(uint32_t)type < LILAC_SIMT_TYPE_COUNT ? type : LILAC_SIMT_VOID];
}

bool lilac_simt_type_is_float(lilac_simt_type type) {
    return types[(uint32_t)type < LILAC_SIMT_TYPE_COUNT ? type : LILAC_SIMT_VOID].is_float;
}

lilac_scalar lilac_simt_scalar_of(lilac_simt_type type) {
    return types[type].scalar;
}

bool lilac_simt_type_read(const char *bytes, size_t length, lilac_simt_type *type) {
    for (uint32_t k = LILAC_SIMT_I1; k < LILAC_SIMT_TYPE_COUNT; k++) {
        if (strlen(types[k].name) == length && memcmp(types[k].name, bytes, length) == 0) {
            *type = (lilac_simt_type)k;
            return true;
        }
    }
    return false;
}

/* name, opposite answer for integers, for floats, operands exchanged, for integers?, for floats? */
static const struct compare_row {
    const char *name;
    uint8_t inverse, float_inverse, swapped;
    bool integers, floats;
} compares[LILAC_SIMT_COMPARE_COUNT] = {
    [LILAC_SIMT_EQ] = {"eq", LILAC_SIMT_NE, LILAC_SIMT_UNE, LILAC_SIMT_EQ, true, true},
    [LILAC_SIMT_NE] = {"ne", LILAC_SIMT_EQ, LILAC_SIMT_UEQ, LILAC_SIMT_NE, true, true},
    [LILAC_SIMT_LT] = {"lt", LILAC_SIMT_GE, LILAC_SIMT_FUGE, LILAC_SIMT_GT, true, true},
    [LILAC_SIMT_LE] = {"le", LILAC_SIMT_GT, LILAC_SIMT_FUGT, LILAC_SIMT_GE, true, true},
    [LILAC_SIMT_GT] = {"gt", LILAC_SIMT_LE, LILAC_SIMT_FULE, LILAC_SIMT_LT, true, true},
    [LILAC_SIMT_GE] = {"ge", LILAC_SIMT_LT, LILAC_SIMT_FULT, LILAC_SIMT_LE, true, true},
    [LILAC_SIMT_ULT] = {"ult", LILAC_SIMT_UGE, 0, LILAC_SIMT_UGT, true, false},
    [LILAC_SIMT_ULE] = {"ule", LILAC_SIMT_UGT, 0, LILAC_SIMT_UGE, true, false},
    [LILAC_SIMT_UGT] = {"ugt", LILAC_SIMT_ULE, 0, LILAC_SIMT_ULT, true, false},
    [LILAC_SIMT_UGE] = {"uge", LILAC_SIMT_ULT, 0, LILAC_SIMT_ULE, true, false},
    [LILAC_SIMT_UEQ] = {"ueq", 0, LILAC_SIMT_NE, LILAC_SIMT_UEQ, false, true},
    [LILAC_SIMT_UNE] = {"une", 0, LILAC_SIMT_EQ, LILAC_SIMT_UNE, false, true},
    [LILAC_SIMT_FULT] = {"fult", 0, LILAC_SIMT_GE, LILAC_SIMT_FUGT, false, true},
    [LILAC_SIMT_FULE] = {"fule", 0, LILAC_SIMT_GT, LILAC_SIMT_FUGE, false, true},
    [LILAC_SIMT_FUGT] = {"fugt", 0, LILAC_SIMT_LE, LILAC_SIMT_FULT, false, true},
    [LILAC_SIMT_FUGE] = {"fuge", 0, LILAC_SIMT_LT, LILAC_SIMT_FULE, false, true},
    [LILAC_SIMT_ORD] = {"ord", 0, LILAC_SIMT_UNO, LILAC_SIMT_ORD, false, true},
    [LILAC_SIMT_UNO] = {"uno", 0, LILAC_SIMT_ORD, LILAC_SIMT_UNO, false, true},
};

const char *lilac_simt_compare_name(lilac_simt_compare kind) {
    return (uint32_t)kind < LILAC_SIMT_COMPARE_COUNT ? compares[kind].name : "?";
}

lilac_simt_compare lilac_simt_compare_inverse(lilac_simt_compare kind, bool is_float) {
    return (lilac_simt_compare)(is_float ? compares[kind].float_inverse : compares[kind].inverse);
}

lilac_simt_compare lilac_simt_compare_swapped(lilac_simt_compare kind) {
    return (lilac_simt_compare)compares[kind].swapped;
}

bool lilac_simt_compare_fits(lilac_simt_compare kind, bool is_float) {
    if ((uint32_t)kind >= LILAC_SIMT_COMPARE_COUNT) {
        return false;
    }
    return is_float ? compares[kind].floats : compares[kind].integers;
}

bool lilac_simt_may_trap(const lilac_simt_kernel *kernel,
                         const lilac_simt_instruction *instruction) {
    uint64_t divisor = 0;
    return lilac_simt_has_trait(instruction->code, LILAC_SIMT_DIVIDES) &&
           (!lilac_simt_is_constant(kernel, instruction->operands[1], &divisor) || divisor == 0);
}
