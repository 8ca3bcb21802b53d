/* SIMT IR: building (folding, sharing, uniformity), and what the verifier refuses. */
#include <lilac/simt.h>

#include "support/test.h"

#define I16  LILAC_SIMT_I16
#define I32  LILAC_SIMT_I32
#define I64  LILAC_SIMT_I64
#define F16  LILAC_SIMT_F16
#define BF16 LILAC_SIMT_BF16
#define F32  LILAC_SIMT_F32
#define F64  LILAC_SIMT_F64

typedef lilac_simt_value value;

typedef struct fixture {
    lilac_context *context;
    lilac_simt_module *module;
    lilac_simt_kernel *kernel;
    lilac_simt_builder builder;
    lilac_simt_builder *b;
} fixture;

static void open_kernel(fixture *f) {
    f->context = lilac_context_create();
    f->module = lilac_simt_module_create(f->context, lilac_arch_find("sm_90a"));
    f->kernel = lilac_simt_kernel_create(f->module, lilac_intern_string(f->context, "k"), 3, 4, 1);
    f->kernel->parameters[0].type = LILAC_SIMT_I64;
    f->kernel->parameters[0].is_pointer = true;
    f->kernel->parameters[0].alignment = 16;
    f->kernel->parameters[1].type = LILAC_SIMT_I32;
    f->kernel->parameters[2].type = LILAC_SIMT_F32;
    f->b = &f->builder;
    lilac_simt_builder_init(f->b, f->kernel);
}

static void end_kernel(fixture *f) {
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_RETURN};
    lilac_simt_build(f->b, &like, 0, NULL, 0, NULL);
}

static bool verify(fixture *f) {
    bool good = lilac_simt_verify(f->module);
    if (!good) {
        print_diagnostics(f->context);
    }
    return good;
}

static void close_kernel(fixture *f) {
    lilac_simt_builder_clear(f->b);
    lilac_simt_module_destroy(f->module);
    lilac_context_destroy(f->context);
}

static value leaf(fixture *f, lilac_simt_opcode code) {
    lilac_simt_instruction like = {.code = (uint16_t)code};
    lilac_simt_type type = LILAC_SIMT_I32;
    return lilac_simt_build(f->b, &like, 0, NULL, 1, &type);
}

static value number(fixture *f, int64_t x) {
    return lilac_simt_constant(f->b, I32, (uint64_t)x);
}

static value float_of(fixture *f, lilac_simt_type type, double x) {
    static const lilac_scalar scalars[LILAC_SIMT_TYPE_COUNT] = {
        [LILAC_SIMT_F16] = LILAC_F16,
        [LILAC_SIMT_BF16] = LILAC_BF16,
        [LILAC_SIMT_F32] = LILAC_F32,
        [LILAC_SIMT_F64] = LILAC_F64,
    };
    return lilac_simt_constant(
        f->b, type, lilac_scalar_encode(scalars[type], x, LILAC_ROUND_NEAREST_EVEN, false));
}

static value binary(fixture *f, lilac_simt_opcode code, value a, value c) {
    return lilac_simt_op2(f->b, code, lilac_simt_type_of(f->kernel, a), a, c);
}

static bool uniform(const fixture *f, value v) {
    return f->kernel->values[v].uniform;
}

/* ---- folding: one line each; the answer is what arithmetic says ------------------------- */

static const struct fold {
    uint16_t code;
    uint8_t type, result;
    uint64_t a, c, answer;
} folds[] = {
    {LILAC_SIMT_OP_ADD, I32, I32, 0xFFFFFFFF, 1, 0},
    {LILAC_SIMT_OP_SUB, I16, I16, 3, 5, 0xFFFE},
    {LILAC_SIMT_OP_MUL, I32, I32, 0x10000, 0x10001, 0x10000},
    {LILAC_SIMT_OP_MULHI_S, I32, I32, 0x80000000, 0x80000000, 0x40000000},
    {LILAC_SIMT_OP_MULHI_U, I64, I64, ~0ull, ~0ull, ~0ull - 1},
    {LILAC_SIMT_OP_MULHI_S, I64, I64, ~0ull, 5, ~0ull},
    {LILAC_SIMT_OP_MULHI_S, I64, I64, 1ull << 63, 1ull << 63, 1ull << 62},
    {LILAC_SIMT_OP_MULWIDE_S, I32, I64, 0xFFFFFFFF, 7, ~0ull - 6},
    {LILAC_SIMT_OP_MULWIDE_U, I32, I64, 0xFFFFFFFF, 7, 7 * 0xFFFFFFFFull},
    {LILAC_SIMT_OP_DIV_S, I32, I32, (uint32_t)-7, 2, (uint32_t)-3},
    {LILAC_SIMT_OP_REM_S, I32, I32, (uint32_t)-7, 2, (uint32_t)-1},
    {LILAC_SIMT_OP_DIV_U, I32, I32, (uint32_t)-7, 2, 0x7FFFFFFC},
    {LILAC_SIMT_OP_REM_U, I32, I32, (uint32_t)-7, 2, 1},
    {LILAC_SIMT_OP_MIN_S, I16, I16, 0xFFFF, 1, 0xFFFF},
    {LILAC_SIMT_OP_MIN_U, I16, I16, 0xFFFF, 1, 1},
    {LILAC_SIMT_OP_MAX_S, I16, I16, 0xFFFF, 1, 1},
    {LILAC_SIMT_OP_MAX_U, I16, I16, 0xFFFF, 1, 0xFFFF},
    {LILAC_SIMT_OP_SHL, I32, I32, 1, 31, 0x80000000},
    {LILAC_SIMT_OP_SHL, I32, I32, 1, 32, 0},
    {LILAC_SIMT_OP_SHR_U, I32, I32, 0x80000000, 100, 0},
    {LILAC_SIMT_OP_SHR_S, I32, I32, 0x80000000, 100, 0xFFFFFFFF},
    {LILAC_SIMT_OP_SHR_S, I64, I64, 1ull << 63, 62, ~0ull - 1},
    {LILAC_SIMT_OP_POPC, I64, I32, 0xFF00FF, 0, 16},
    {LILAC_SIMT_OP_CLZ, I16, I32, 1, 0, 15},
    {LILAC_SIMT_OP_CLZ, I32, I32, 0, 0, 32},
    {LILAC_SIMT_OP_BREV, I16, I16, 0x0102, 0, 0x4080},
    {LILAC_SIMT_OP_BREV, I64, I64, 0xD, 0, 0xB000000000000000},
    {LILAC_SIMT_OP_ABS, I16, I16, 0xFFFF, 0, 1},
    {LILAC_SIMT_OP_ABS, I16, I16, 0x8000, 0, 0x8000},
    {LILAC_SIMT_OP_ABS, I64, I64, 7, 0, 7},
    {LILAC_SIMT_OP_SEXT, I16, I64, 0x8000, 0, 0xFFFFFFFFFFFF8000},
    {LILAC_SIMT_OP_ZEXT, I16, I64, 0x8000, 0, 0x8000},
    {LILAC_SIMT_OP_TRUNC, I64, I16, 0x12345678, 0, 0x5678},
    {LILAC_SIMT_OP_FADD, F32, F32, 0x3F800000, 0x33800000, 0x3F800000}, /* a tie, to even */
    {LILAC_SIMT_OP_FADD, F16, F16, 0x3C00, 0x1001, 0x3C01},             /* just above a tie */
    {LILAC_SIMT_OP_FMUL, F32, F32, 0x00000003, 0x3F000000, 0x00000002}, /* subnormal, to even */
    {LILAC_SIMT_OP_FMUL, F16, F16, 0x7BFF, 0x4000, 0x7C00},
    {LILAC_SIMT_OP_FMUL, BF16, BF16, 0x3F81, 0x3F81, 0x3F82},
    {LILAC_SIMT_OP_FDIV, F32, F32, 0x3F800000, 0x40400000, 0x3EAAAAAB},
    {LILAC_SIMT_OP_FSQRT, F32, F32, 0x40000000, 0, 0x3FB504F3},
    {LILAC_SIMT_OP_FRCP, F64, F64, 0x4008000000000000, 0, 0x3FD5555555555555},
    {LILAC_SIMT_OP_FMIN, F32, F32, 0x3F800000, 0xC0000000, 0xC0000000},
    {LILAC_SIMT_OP_FFLOOR, F32, F32, 0xBFC00000, 0, 0xC0000000},
    {LILAC_SIMT_OP_FRINT, F32, F32, 0x40200000, 0, 0x40000000},
    {LILAC_SIMT_OP_FADD, LILAC_SIMT_F16X2, LILAC_SIMT_F16X2, 0x3C004000, 0x3C003C00, 0x40004200},
    {LILAC_SIMT_OP_FCVT, F64, F32, 0x3FF0000010000000, 0, 0x3F800000},
    {LILAC_SIMT_OP_S2F, I64, F32, 0x7FFFFFBFFFFFFFFF, 0, 0x5EFFFFFF}, /* not by way of double */
    {LILAC_SIMT_OP_U2F, I64, F32, 0xFFFFFFFFFFFFFFFF, 0, 0x5F800000},
    {LILAC_SIMT_OP_S2F, I32, F16, (uint32_t)-3, 0, 0xC200},
    {LILAC_SIMT_OP_F2S, F32, I32, 0xC02CCCCD, 0, (uint32_t)-2},
    {LILAC_SIMT_OP_F2S, F32, I32, 0x7F800000, 0, 0x7FFFFFFF},
    {LILAC_SIMT_OP_F2S, F32, I32, 0x7FC00000, 0, 0},
    {LILAC_SIMT_OP_F2S, F64, I64, 0xC3E0000000000001, 0, 1ull << 63},
    {LILAC_SIMT_OP_F2U, F32, I16, 0x4F800000, 0, 0xFFFF},
    {LILAC_SIMT_OP_F2U, F32, I32, 0xBF800000, 0, 0},
    {LILAC_SIMT_OP_F2S, F32, I64, 0x7FC00000, 0, 1ull << 63}, /* NaN, as the device does it */
    {LILAC_SIMT_OP_F2U, F32, I64, 0x7FC00000, 0, 1ull << 63},
    {LILAC_SIMT_OP_F2S, F64, I32, 0x7FF8000000000000, 0, 1u << 31},
    {LILAC_SIMT_OP_F2U, F64, I16, 0x7FF8000000000000, 0, 1u << 15},
    {LILAC_SIMT_OP_F2S, F64, LILAC_SIMT_I8, 0x7FF8000000000000, 0, 0},
    {LILAC_SIMT_OP_F2S, F32, LILAC_SIMT_I8, 0x43960000, 0, 44}, /* 300: the low bits of 16 */
    {LILAC_SIMT_OP_F2S, F32, LILAC_SIMT_I8, 0x7F800000, 0, 0xFF},
    {LILAC_SIMT_OP_F2U, F32, LILAC_SIMT_I8, 0xC3960000, 0, 0},
    {LILAC_SIMT_OP_BITCAST, I32, F32, 0x3F800000, 0, 0x3F800000},
};

static void constants_fold(void **state) {
    (void)state;
    fixture f;
    open_kernel(&f);
    for (size_t k = 0; k < sizeof folds / sizeof folds[0]; k++) {
        const struct fold *fold = &folds[k];
        value a = lilac_simt_constant(f.b, (lilac_simt_type)fold->type, fold->a);
        value c = lilac_simt_constant(f.b, (lilac_simt_type)fold->type, fold->c);
        const char *signature = lilac_simt_op_info_get((lilac_simt_opcode)fold->code)->signature;
        value r = strchr(signature, ',') == NULL
                      ? lilac_simt_op1(f.b, (lilac_simt_opcode)fold->code,
                                       (lilac_simt_type)fold->result, a)
                      : lilac_simt_op2(f.b, (lilac_simt_opcode)fold->code,
                                       (lilac_simt_type)fold->result, a, c);
        uint64_t bits = 0;
        if (!lilac_simt_is_constant(f.kernel, r, &bits) || bits != fold->answer) {
            fprintf(stderr, "%s (line %zu): %llx\n",
                    lilac_simt_op_info_get((lilac_simt_opcode)fold->code)->name, k,
                    (unsigned long long)bits);
            fail();
        }
    }
    end_kernel(&f);
    assert_true(verify(&f));
    close_kernel(&f);
}

/* What may trap, has more than one right answer, or is a NaN is left to the machine. */
static void some_constants_do_not_fold(void **state) {
    (void)state;
    fixture f;
    open_kernel(&f);
    uint64_t bits;
    value zero = number(&f, 0);
    value one = float_of(&f, F32, 1);
    value none = float_of(&f, F32, 0);
    assert_false(lilac_simt_is_constant(
        f.kernel, binary(&f, LILAC_SIMT_OP_DIV_S, number(&f, 5), zero), &bits));
    assert_false(lilac_simt_is_constant(
        f.kernel, binary(&f, LILAC_SIMT_OP_DIV_S, number(&f, INT32_MIN), number(&f, -1)), &bits));
    assert_false(
        lilac_simt_is_constant(f.kernel, binary(&f, LILAC_SIMT_OP_FDIV, none, none), &bits));
    assert_false(lilac_simt_is_constant(f.kernel,
                                        lilac_simt_op1(f.b, LILAC_SIMT_OP_FEXP2, F32, one), &bits));
    assert_false(lilac_simt_is_constant(
        f.kernel, binary(&f, LILAC_SIMT_OP_FMIN, none, float_of(&f, F32, -0.0)), &bits));
    end_kernel(&f);
    assert_true(verify(&f));
    close_kernel(&f);
}

static void fma_is_rounded_once(void **state) {
    (void)state;
    fixture f;
    open_kernel(&f);
    value x = lilac_simt_constant(f.b, F32, 0x3F800001);
    value y = lilac_simt_constant(f.b, F32, 0xBF800002);
    value r = lilac_simt_op3(f.b, LILAC_SIMT_OP_FFMA, F32, x, x, y);
    uint64_t bits;
    assert_true(lilac_simt_is_constant(f.kernel, r, &bits));
    assert_int_equal(bits, 0x28800000); /* 2^-46, lost when the product is rounded */
    close_kernel(&f);
}

/* 2^24 + 1 and its negative number lie between two numbers of f32. */
static void integers_fold_in_their_rounding(void **state) {
    (void)state;
    static const struct {
        lilac_rounding rounding;
        uint64_t positive, negative;
    } rows[] = {{LILAC_ROUND_NEAREST_EVEN, 0x4B800000, 0xCB800000},
                {LILAC_ROUND_ZERO, 0x4B800000, 0xCB800000},
                {LILAC_ROUND_DOWN, 0x4B800000, 0xCB800001},
                {LILAC_ROUND_UP, 0x4B800001, 0xCB800000}};
    static const lilac_simt_type type = F32;
    fixture f;
    open_kernel(&f);
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        for (int negative = 0; negative < 2; negative++) {
            const int32_t number = negative ? -16777217 : 16777217;
            const lilac_simt_instruction like = {.code = LILAC_SIMT_OP_S2F,
                                                 .detail = (uint8_t)rows[k].rounding};
            const value a = lilac_simt_constant(f.b, I32, (uint32_t)number);
            const value r = lilac_simt_build(f.b, &like, 1, &a, 1, &type);
            uint64_t bits;
            assert_true(lilac_simt_is_constant(f.kernel, r, &bits));
            assert_int_equal(bits, negative ? rows[k].negative : rows[k].positive);
        }
    }
    close_kernel(&f);
}

/* ---- sharing ---------------------------------------------------------------------------- */

static void equal_operations_are_shared(void **state) {
    (void)state;
    fixture f;
    open_kernel(&f);
    value n = lilac_simt_parameter_value(f.b, 1);
    value lane = leaf(&f, LILAC_SIMT_OP_LANE);
    assert_int_equal(n, lilac_simt_parameter_value(f.b, 1));
    assert_int_equal(lane, leaf(&f, LILAC_SIMT_OP_LANE));
    assert_int_equal(number(&f, 7), number(&f, 7));
    assert_int_not_equal(number(&f, 7), lilac_simt_constant(f.b, I64, 7));
    value product = binary(&f, LILAC_SIMT_OP_MUL, n, lane);
    assert_int_equal(product, binary(&f, LILAC_SIMT_OP_MUL, n, lane));
    assert_int_equal(product, binary(&f, LILAC_SIMT_OP_MUL, lane, n));
    value difference = binary(&f, LILAC_SIMT_OP_SUB, n, lane);
    assert_int_not_equal(difference, binary(&f, LILAC_SIMT_OP_SUB, lane, n));
    assert_int_not_equal(lilac_simt_compare_values(f.b, LILAC_SIMT_LT, n, lane),
                         lilac_simt_compare_values(f.b, LILAC_SIMT_LE, n, lane));
    value first = lilac_simt_load(f.b, LILAC_SIMT_OP_LD_GLOBAL, I32, 2,
                                  lilac_simt_parameter_value(f.b, 0), 0, 0, NULL, NULL);
    value second = lilac_simt_load(f.b, LILAC_SIMT_OP_LD_GLOBAL, I32, 2,
                                   lilac_simt_parameter_value(f.b, 0), 0, 0, NULL, NULL);
    assert_int_not_equal(first, second);
    value parts[2], again[2];
    value wide = binary(&f, LILAC_SIMT_OP_ADD, lilac_simt_parameter_value(f.b, 0),
                        lilac_simt_op1(f.b, LILAC_SIMT_OP_SEXT, I64, n));
    lilac_simt_unpack(f.b, I32, wide, 2, parts);
    lilac_simt_unpack(f.b, I32, wide, 2, again);
    assert_memory_equal(parts, again, sizeof parts);
    assert_int_equal(lilac_simt_pack(f.b, I64, 2, parts), wide);
    value packed = lilac_simt_pack(f.b, I64, 2, (value[]){n, lane});
    lilac_simt_unpack(f.b, I32, packed, 2, parts);
    assert_int_equal(parts[0], n);
    assert_int_equal(parts[1], lane);
    end_kernel(&f);
    assert_true(verify(&f));
    close_kernel(&f);
}

/* A value is found again in its body and within, not beside or behind. Constants are everywhere. */
static void sharing_keeps_to_scopes(void **state) {
    (void)state;
    fixture f;
    open_kernel(&f);
    value n = lilac_simt_parameter_value(f.b, 1);
    value lane = leaf(&f, LILAC_SIMT_OP_LANE);
    value outer = binary(&f, LILAC_SIMT_OP_MUL, n, lane);
    value condition = lilac_simt_compare_values(f.b, LILAC_SIMT_LT, n, number(&f, 3));
    lilac_simt_instruction *branch = lilac_simt_if_begin(f.b, condition, 0, NULL);
    assert_int_equal(outer, binary(&f, LILAC_SIMT_OP_MUL, n, lane));
    value inner = binary(&f, LILAC_SIMT_OP_ADD, n, lane);
    value constant = number(&f, 1234);
    lilac_simt_if_else(f.b, branch, NULL);
    value other = binary(&f, LILAC_SIMT_OP_ADD, n, lane);
    assert_int_not_equal(inner, other);
    lilac_simt_if_end(f.b, branch, NULL);
    value behind = binary(&f, LILAC_SIMT_OP_ADD, n, lane);
    assert_int_not_equal(inner, behind);
    assert_int_not_equal(other, behind);
    assert_int_equal(behind, binary(&f, LILAC_SIMT_OP_ADD, n, lane));
    assert_int_equal(constant, number(&f, 1234));
    /* Many scopes and a growing table: entries taken away must not hide older ones. */
    for (int64_t k = 0; k < 300; k++) {
        value sum = binary(&f, LILAC_SIMT_OP_XOR, outer, number(&f, 1000 + k));
        branch = lilac_simt_if_begin(f.b, condition, 0, NULL);
        for (int64_t j = 0; j < 5; j++) {
            binary(&f, LILAC_SIMT_OP_XOR, behind, number(&f, 2000 + j));
        }
        lilac_simt_if_end(f.b, branch, NULL);
        assert_int_equal(sum, binary(&f, LILAC_SIMT_OP_XOR, outer, number(&f, 1000 + k)));
    }
    assert_int_equal(outer, binary(&f, LILAC_SIMT_OP_MUL, lane, n));
    end_kernel(&f);
    assert_true(verify(&f));
    close_kernel(&f);
}

static void promises_are_weakened(void **state) {
    (void)state;
    fixture f;
    open_kernel(&f);
    value n = lilac_simt_parameter_value(f.b, 1);
    value lane = leaf(&f, LILAC_SIMT_OP_LANE);
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_MUL,
                                   .flags =
                                       LILAC_SIMT_NO_SIGNED_WRAP | LILAC_SIMT_NO_UNSIGNED_WRAP};
    value operands[2] = {n, lane};
    lilac_simt_type type = LILAC_SIMT_I32;
    value first = lilac_simt_build(f.b, &like, 2, operands, 1, &type);
    like.flags = LILAC_SIMT_NO_SIGNED_WRAP;
    assert_int_equal(first, lilac_simt_build(f.b, &like, 2, operands, 1, &type));
    assert_int_equal(f.kernel->values[first].definition->flags, LILAC_SIMT_NO_SIGNED_WRAP);
    /* what the lane's range proves holds whatever is promised */
    value small = binary(&f, LILAC_SIMT_OP_MUL, lane, number(&f, 12));
    assert_int_equal(f.kernel->values[small].definition->flags,
                     LILAC_SIMT_NO_SIGNED_WRAP | LILAC_SIMT_NO_UNSIGNED_WRAP);
    close_kernel(&f);
}

static void addresses_take_their_constants(void **state) {
    (void)state;
    fixture f;
    open_kernel(&f);
    value base = lilac_simt_parameter_value(f.b, 0);
    value lane = leaf(&f, LILAC_SIMT_OP_LANE);
    value row = 0;
    for (int64_t k = 0; k < 8; k++) { /* base + sext(lane * 8 + k) * 4 */
        value index = binary(&f, LILAC_SIMT_OP_ADD,
                             binary(&f, LILAC_SIMT_OP_MUL, lane, number(&f, 8)), number(&f, k));
        value wide = lilac_simt_op1(f.b, LILAC_SIMT_OP_SEXT, I64, index);
        value bytes = binary(&f, LILAC_SIMT_OP_MUL, wide, lilac_simt_constant(f.b, I64, 4));
        value address = binary(&f, LILAC_SIMT_OP_ADD, base, bytes);
        value loaded =
            lilac_simt_load(f.b, LILAC_SIMT_OP_LD_GLOBAL, I32, 1, address, 0, 0, NULL, NULL);
        const lilac_simt_instruction *load = f.kernel->values[loaded].definition;
        assert_int_equal(load->immediate, 4 * k);
        row = k == 0 ? load->operands[0] : row;
        assert_int_equal(load->operands[0], row);
    }
    end_kernel(&f);
    assert_true(verify(&f));
    close_kernel(&f);
}

/* ---- uniformity ------------------------------------------------------------------------- */

static void uniformity(void **state) {
    (void)state;
    fixture f;
    open_kernel(&f);
    value n = lilac_simt_parameter_value(f.b, 1);
    value base = lilac_simt_parameter_value(f.b, 0);
    value lane = leaf(&f, LILAC_SIMT_OP_LANE);
    assert_true(uniform(&f, n));
    assert_true(uniform(&f, leaf(&f, LILAC_SIMT_OP_BLOCK)));
    assert_true(uniform(&f, leaf(&f, LILAC_SIMT_OP_SHARED_BASE)));
    assert_false(uniform(&f, lane));
    assert_false(uniform(&f, leaf(&f, LILAC_SIMT_OP_WARP)));
    assert_false(uniform(&f, leaf(&f, LILAC_SIMT_OP_THREAD)));
    assert_false(uniform(&f, binary(&f, LILAC_SIMT_OP_ADD, n, lane)));
    assert_true(uniform(&f, binary(&f, LILAC_SIMT_OP_ADD, n, n)));
    assert_true(
        uniform(&f, lilac_simt_load(f.b, LILAC_SIMT_OP_LD_GLOBAL, I32, 1, base, 0, 0, NULL, NULL)));
    value differs = lilac_simt_compare_values(f.b, LILAC_SIMT_LT, lane, n);
    assert_false(uniform(
        &f, lilac_simt_load(f.b, LILAC_SIMT_OP_LD_GLOBAL, I32, 1, base, 0, differs, NULL, NULL)));
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_BALLOT};
    lilac_simt_type type = LILAC_SIMT_I32;
    value same = lilac_simt_compare_values(f.b, LILAC_SIMT_LT, n, number(&f, 9));
    value vote = lilac_simt_build(f.b, &like, 1, &same, 1, &type);
    assert_false(uniform(&f, vote));
    lilac_simt_mark_uniform(f.kernel, vote);
    assert_true(uniform(&f, vote));
    value sum = binary(&f, LILAC_SIMT_OP_ADD, vote, n);
    assert_true(uniform(&f, sum));
    lilac_simt_infer_uniform(f.kernel);
    assert_true(uniform(&f, vote) && uniform(&f, sum));
    assert_false(uniform(&f, lane));
    close_kernel(&f);
}

/* Carried: (a, b, c) → (b, c, lane). Each looks uniform at first; from the last one the truth comes
 * back, two iterations later for the first. What is computed from it within is corrected, too. */
static void uniformity_of_carried_values(void **state) {
    (void)state;
    fixture f;
    open_kernel(&f);
    value n = lilac_simt_parameter_value(f.b, 1);
    value lane = leaf(&f, LILAC_SIMT_OP_LANE);
    value inits[4] = {n, n, n, n};
    value i, j;
    lilac_simt_instruction *loop =
        lilac_simt_loop_begin(f.b, number(&f, 0), n, number(&f, 1), 4, inits, &i);
    assert_true(uniform(&f, i) && uniform(&f, i + 1) && uniform(&f, i + 4));
    value inner = binary(&f, LILAC_SIMT_OP_MUL, i + 1, n);
    lilac_simt_instruction *nested =
        lilac_simt_loop_begin(f.b, number(&f, 0), n, number(&f, 1), 1, &inner, &j);
    value next_inner = binary(&f, LILAC_SIMT_OP_ADD, j + 1, n);
    value nested_result = lilac_simt_loop_end(f.b, nested, &next_inner);
    assert_true(uniform(&f, nested_result));
    value fourth = binary(&f, LILAC_SIMT_OP_ADD, i + 4, n);
    value next[4] = {i + 2, i + 3, lane, fourth};
    value r = lilac_simt_loop_end(f.b, loop, next);
    for (uint32_t k = 0; k < 3; k++) {
        assert_false(uniform(&f, i + 1 + k));
        assert_false(uniform(&f, r + k));
    }
    assert_true(uniform(&f, i));
    assert_true(uniform(&f, i + 4));
    assert_true(uniform(&f, r + 3));
    assert_false(uniform(&f, inner));
    assert_false(uniform(&f, j + 1));
    assert_false(uniform(&f, next_inner));
    assert_false(uniform(&f, nested_result));
    end_kernel(&f);
    assert_true(verify(&f));
    close_kernel(&f);
}

static void uniformity_of_branches(void **state) {
    (void)state;
    fixture f;
    open_kernel(&f);
    value n = lilac_simt_parameter_value(f.b, 1);
    value lane = leaf(&f, LILAC_SIMT_OP_LANE);
    value condition = lilac_simt_compare_values(f.b, LILAC_SIMT_LT, n, number(&f, 3));
    lilac_simt_type types[2] = {LILAC_SIMT_I32, LILAC_SIMT_I32};
    value then[2] = {n, n};
    value otherwise[2] = {number(&f, 1), lane};
    lilac_simt_instruction *branch = lilac_simt_if_begin(f.b, condition, 2, types);
    lilac_simt_if_else(f.b, branch, then);
    value r = lilac_simt_if_end(f.b, branch, otherwise);
    assert_true(uniform(&f, r));
    assert_false(uniform(&f, r + 1));
    value first;
    lilac_simt_instruction *loop =
        lilac_simt_while_begin(f.b, 2, (value[]){n, n}, 2, types, &first);
    value go = lilac_simt_compare_values(f.b, LILAC_SIMT_GT, first, number(&f, 0));
    value before = first;
    lilac_simt_while_condition(f.b, loop, go, (value[]){first, first + 1}, &first);
    value down = binary(&f, LILAC_SIMT_OP_SUB, first, number(&f, 1));
    value mixed = binary(&f, LILAC_SIMT_OP_ADD, first + 1, lane);
    r = lilac_simt_while_end(f.b, loop, (value[]){down, mixed});
    assert_true(uniform(&f, r) && uniform(&f, before) && uniform(&f, first));
    assert_false(uniform(&f, r + 1) || uniform(&f, before + 1) || uniform(&f, first + 1));
    end_kernel(&f);
    assert_true(verify(&f));
    close_kernel(&f);
}

/* ---- the verifier ----------------------------------------------------------------------- */

#define COPY_OPERANDS "%s = shared_base : i32\n%p = param 0 : i64\n"

static const struct refusal {
    const char *id;
    const char *body; /* without its return */
} refusals[] = {
    {"simt-operand-count", "%a = thread : i32\n%b = add %a : i32\n"},
    {"simt-operand-type", "%a = thread : i32\n%b = fadd %a, %a : i32\n"},
    {"simt-operand-type", "%a = thread : i32\n%c = const 1 : i64\n%b = add %a, %c : i32\n"},
    {"simt-operand-type", "%a = thread : i32\n%b = add %a, %a, %a : i32\n"},
    {"simt-operand-type", "%a = thread : i32\n%b = add %a, %a : i64\n"},
    {"simt-operand-type", "%a = thread : i64\n"},
    {"simt-operand-type", "%a = const 1.0 : f16\n%b = fexp2 %a : f16\n"},
    {"simt-operand-type", "%a = const 1.0 : f16\n%b = fsqrt %a : f16\n"},
    {"simt-operand-type", "%a = const 1 : i16\n%b = ld.shared [%a] : i32\n"},
    {"simt-operand-type", "%a = const 0x0 : f16x2\n%b = fcvt %a : f32\n"},
    {"simt-operand-type", "%a = const 1 : i16\nloop %i = %a to %a step %a {\nyield\n}\n"},
    {"simt-dominance",
     "%t = const true : i1\nif %t {\n%a = thread : i32\nyield\n}\n%b = add %a, %a : i32\n"},
    {"simt-dominance", "%t = const true : i1\nif %t {\n%a = thread : i32\nyield\n} else {\n"
                       "%b = add %a, %a : i32\nyield\n}\n"},
    {"simt-terminator", "return\n%a = thread : i32\n"},
    {"simt-terminator", "yield\n"},
    {"simt-terminator", "%t = const true : i1\nif %t {\n}\n"},
    {"simt-terminator", "%t = const true : i1\nif %t {\n%a = thread : i32\n}\n"},
    {"simt-terminator", "%t = const true : i1\nif %t {\ncondition %t\n}\n"},
    {"simt-not-uniform", "%a = thread : i32\n%c = cmp eq %a, %a : i1\nif %c {\nyield\n}\n"},
    {"simt-not-uniform", "%a = thread : i32\nloop %i = %a to %a step %a {\nyield\n}\n"},
    {"simt-not-uniform", "%a = thread : i32\n%c = cmp eq %a, %a : i1\nwhile () {\ncondition %c\n"
                         "} do () {\nyield\n}\n"},
    {"simt-access-size", "%s = shared_base : i32\n%a, %b, %c = ld.shared [%s] : i32, i32, i32\n"},
    {"simt-access-size",
     "%s = shared_base : i32\n%a, %b, %c, %d = ld.shared [%s] : i64, i64, i64, i64\n"},
    {"simt-access-size",
     "%s = shared_base : i32\n%t = const true : i1\nst.shared [%s], %t, (%t)\n"},
    {"simt-access-others", "%s = shared_base : i32\n%t = const true : i1\n%a, %b = ld.shared [%s], "
                           "%t, (%s) : i32, i32\n"},
    {"simt-access-others", "%s = shared_base : i32\n%a = ld.shared [%s], (%s) : i32\n"},
    {"simt-access-size", "%s = shared_base : i32\n%a, %b, %c = ld.matrix [%s] : i32, i32, i32\n"},
    {"simt-operand-type", "%s = shared_base : i32\n%a = ld.matrix [%s] : i16\n"},
    {"simt-detail", "%s = shared_base : i32\n%a = ld.matrix [%s] : i32 {detail = 2}\n"},
    {"simt-interval", "%s = shared_base : i32\n%a = ld.shared [%s] : i32 {bytes = 8 to 8}\n"},
    {"simt-interval", "barrier {bytes = 0 to 8}\n"},
    {"simt-interval", "%p = param 0 : i64\n%a = ld.global [%p] : i32 {partition = 1}\n"},
    {"simt-copy", COPY_OPERANDS "cp.async [%s], (%p) {size = 2}\n"},
    {"simt-copy", COPY_OPERANDS "cp.async [%s], (%p)\n"},
    {"simt-copy", COPY_OPERANDS "cp.async [%s], (%p) {cache = cg, size = 8}\n"},
    {"simt-copy", COPY_OPERANDS "cp.async [%s], (%p) {cache = cs, size = 16}\n"},
    {"simt-copy", COPY_OPERANDS "cp.async [%s], (%p) {evict = first, size = 16}\n"},
    {"simt-copy", COPY_OPERANDS "cp.async [%s], (%p) {volatile, size = 16}\n"},
    {"simt-copy", COPY_OPERANDS "%n = const 9 : i32\ncp.async [%s], (%p, %n) {size = 8}\n"},
    {"simt-copy", COPY_OPERANDS "%n = const 8 : i32\ncp.async [%n + 4], (%p) {size = 8}\n"},
    {"simt-operand-type", COPY_OPERANDS "cp.async [%p], (%p) {size = 8}\n"},
    {"simt-operand-type", COPY_OPERANDS "cp.async [%s], (%s) {size = 8}\n"},
    {"simt-wait", "cp.async.wait {groups = -1}\n"},
    {"simt-wait", "bulk.wait {groups = -1}\n"},
    {"simt-bulk", COPY_OPERANDS "prefetch.tensor_map %p\n"},
    {"simt-bulk", "fence.proxy_async all {volatile}\n"},
    {"simt-bulk", COPY_OPERANDS "%m = const 24 : i32\ncp.bulk.store [%s], (%p, %m)\n"},
    {"simt-bulk", COPY_OPERANDS "%m = const 8 : i32\ncp.bulk.store [%m], (%p, %m)\n"},
    {"simt-bulk", COPY_OPERANDS "%m = const 16 : i32\ncp.bulk.store [%m + 8], (%p, %m)\n"},
    {"simt-bulk", COPY_OPERANDS "cp.bulk.store [%s], (%p, %s) {cache = cg}\n"},
    {"simt-bulk", COPY_OPERANDS "cp.bulk.reduce exch [%s], (%p, %s) {scalar = i32}\n"},
    {"simt-bulk", COPY_OPERANDS "cp.bulk.reduce add [%s], (%p, %s)\n"},
    {"simt-bulk", COPY_OPERANDS "cp.bulk.reduce max_s [%s], (%p, %s) {scalar = f16}\n"},
    {"simt-bulk", COPY_OPERANDS "cp.bulk.reduce add [%s], (%p, %s) {scalar = i16}\n"},
    {"simt-operand-count", COPY_OPERANDS "cp.bulk.store [%s], (%p)\n"},
    {"simt-operand-type", COPY_OPERANDS "cp.bulk.store [%s], (%s, %s)\n"},
    {"simt-group", "%a = warp : i32\ngroup_barrier %a {threads = 48}\n"},
    {"simt-group", "%a = warp : i32\ngroup_barrier %a {threads = 96}\n"},
    {"simt-group", "%a = warp : i32\ngroup_barrier %a\n"},
    {"simt-group", "%a = warp : i32\ngroup_barrier %a {threads = 256}\n"},
    {"simt-group", "%a = const 15 : i32\ngroup_barrier %a {threads = 128}\n"},
    {"simt-pack-width", "%a = thread : i32\n%b = pack %a, %a, %a : i64\n"},
    {"simt-pack-width", "%a = thread : i32\n%b, %c = unpack %a : i32, i32\n"},
    {"simt-pack-width", "%t = const true : i1\n%b = pack %t, %t, %t, %t, %t, %t, %t, %t : i8\n"},
    {"simt-width", "%a = thread : i32\n%b = sext %a : i16\n"},
    {"simt-width", "%a = thread : i32\n%b = trunc %a : i64\n"},
    {"simt-width", "%a = thread : i32\n%b = bitcast %a : i64\n"},
    {"simt-parameter", "%a = param 3 : i32\n"},
    {"simt-parameter", "%a = param -1 : i32\n"},
    {"simt-parameter", "%a = param 0 : i32\n"},
    {"simt-detail", "%a = thread : i32\n%b = cmp uno %a, %a : i1\n"},
    {"simt-detail", "%a = const 1.0 : f32\n%b = cmp ult %a, %a : i1\n"},
    {"simt-detail", "%a = const 0x0 : f16x2\n%b = cmp eq %a, %a : i1\n"},
    {"simt-detail", "%a = const 1.0 : f32\n%b = fcvt %a : f16 {detail = 7}\n"},
    {"simt-detail", "%a = const 1.0 : f32\n%b = fadd %a, %a : f32 {detail = 7}\n"},
    {"simt-detail", "%a = const 1.0 : f32\n%b = fdiv %a, %a : f32 {approximate, round = up}\n"},
    {"simt-operand-type", "%a = const 1.0 : f16\n%b = fmul %a, %a : f16 {round = up}\n"},
    {"simt-operand-type", "%a = const 1 : i16\n%b = s2f %a : f32 {round = up}\n"},
    {"simt-operand-type", "%a = const 1 : i32\n%b = u2f %a : f16 {round = down}\n"},
    {"simt-detail", "%a = const 1 : i16\n%b = f8_unpack %a : f16x2 {scalar = f16}\n"},
    {"simt-carried-type", "%a = const 1 : i32\n%x = const 1.0 : f32\n"
                          "%r = loop %i = %a to %a step %a (%c = %x) : f32 {\nyield %i\n}\n"},
    {"simt-carried-type", "%a = const 1 : i32\n%x = const 1.0 : f32\n"
                          "%r = loop %i = %a to %a step %a (%c = %x) : f32 {\nyield\n}\n"},
    {"simt-carried-type", "%a = const 1 : i32\n%x = const 1.0 : f32\n"
                          "%r = loop %i = %a to %a step %a (%c = %x) : i32 {\nyield %c\n}\n"},
    {"simt-carried-type", "%t = const true : i1\n%r = if %t : i1 {\nyield %t\n}\n"},
    {"simt-carried-type", "%t = const true : i1\n%a = const 1 : i32\n%r = while (%c = %a) : i32 {\n"
                          "condition %t, %t\n} do (%d) {\nyield %d\n}\n"},
    {"simt-carried-type", "%t = const true : i1\n%a = const 1 : i32\n%r = while (%c = %a) : i32 {\n"
                          "condition %t, %c\n} do (%d) {\nyield %t\n}\n"},
};

static bool refuses(const char *id, const char *text, bool terminated) {
    lilac_context *context = lilac_context_create();
    lilac_text whole = {0};
    lilac_text_printf(&whole,
                      "simt.module target \"sm_90a\" {\nkernel @k(%%p: i64 ptr align 16, %%n: i32) "
                      "warps 4 ctas 1 shared 0 {\n%s%s}\n}\n",
                      text, terminated ? "return\n" : "");
    lilac_simt_module *module =
        lilac_simt_read(context, lilac_source_add(context, "v", whole.bytes, whole.length));
    bool good = module != NULL && !lilac_simt_verify(module);
    const lilac_diagnostic *d = lilac_diagnostics(context);
    good = good && d != NULL && strcmp(d->id, id) == 0 && d->notes != NULL;
    if (!good) {
        fprintf(stderr, "%s:\n%s", id, text);
        print_diagnostics(context);
    }
    lilac_text_clear(&whole);
    lilac_simt_module_destroy(module);
    lilac_context_destroy(context);
    return good;
}

static void verifier_refuses(void **state) {
    (void)state;
    uint32_t failures = 0;
    for (size_t k = 0; k < sizeof refusals / sizeof refusals[0]; k++) {
        failures += !refuses(refusals[k].id, refusals[k].body, true);
    }
    failures += !refuses("simt-terminator", "%a = thread : i32\n", false);
    assert_int_equal(failures, 0);
}

/* What the device does not have. */
static void verifier_asks_the_device(void **state) {
    static const struct {
        const char *target, *body;
        uint32_t warps;
        const char *id; /* NULL: it is fine */
    } cases[] = {
        {"sm_80", "%a = ld.matrix [%s] : i32\n", 4, NULL},
        {"sm_80", "st.matrix [%s], (%s)\n", 4, "simt-feature"},
        {"sm_80", "cluster_barrier\n", 4, "simt-feature"},
        {"sm_80", "%a = map_shared %s, %s : i32\n", 4, "simt-feature"},
        {"sm_80", "%a = ld.cluster [%s] : i32\n", 4, "simt-feature"},
        {"sm_80", "st.cluster [%s], (%s)\n", 4, "simt-feature"},
        {"sm_90a", "st.matrix [%s], (%s)\nst.cluster [%s], (%s)\ncluster_barrier\n", 4, NULL},
        {"gfx942", "%a = ld.matrix [%s] : i32\n", 4, "simt-feature"},
        {"sm_80", "%p = zext %s : i64\ncp.async [%s], (%p) {size = 16}\n", 4, NULL},
        {"gfx942", "%p = zext %s : i64\ncp.async [%s], (%p) {size = 16}\n", 4, "simt-feature"},
        {"sm_80", "cp.async.commit\ncp.async.wait\ncp.async.wait_all\n", 4, NULL},
        {"gfx942", "cp.async.commit\n", 4, "simt-feature"},
        {"gfx942", "cp.async.wait\n", 4, "simt-feature"},
        {"gfx942", "cp.async.wait_all\n", 4, "simt-feature"},
        {"sm_80", "fence.proxy_async shared\n", 4, "simt-feature"},
        {"sm_80", "bulk.commit\n", 4, "simt-feature"},
        {"sm_80", "bulk.wait\n", 4, "simt-feature"},
        {"sm_80", "bulk.wait_read\n", 4, "simt-feature"},
        {"sm_80", "%p = zext %s : i64\ncp.bulk.store [%s], (%p, %s)\n", 4, "simt-feature"},
        {"sm_90a", "%p = zext %s : i64\ncp.bulk.store [%s], (%p, %s)\n", 4, NULL},
        {"sm_90a", "group_barrier %s {threads = 32}\n", 8, NULL},
        {"sm_90a", "group_barrier %s {threads = 32}\n", 16, "simt-group"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        lilac_context *context = lilac_context_create();
        lilac_text text = {0};
        lilac_text_printf(&text,
                          "simt.module target \"%s\" {\nkernel @k() warps %u ctas 1 shared 64 "
                          "{\n%%s = shared_base : i32\n%sreturn\n}\n}\n",
                          cases[k].target, cases[k].warps, cases[k].body);
        lilac_simt_module *module =
            lilac_simt_read(context, lilac_source_add(context, "v", text.bytes, text.length));
        assert_non_null(module);
        assert_int_equal(lilac_simt_verify(module), cases[k].id == NULL);
        if (cases[k].id != NULL) {
            assert_string_equal(lilac_diagnostics(context)->id, cases[k].id);
        }
        lilac_text_clear(&text);
        lilac_simt_module_destroy(module);
        lilac_context_destroy(context);
    }
}

/* What no text can say: links that passes could break. */
static void verifier_checks_links(void **state) {
    (void)state;
    for (uint32_t round = 0; round < 6; round++) {
        fixture f;
        open_kernel(&f);
        value n = lilac_simt_parameter_value(f.b, 1);
        value m = binary(&f, LILAC_SIMT_OP_MUL, n, leaf(&f, LILAC_SIMT_OP_LANE));
        value i;
        lilac_simt_instruction *loop =
            lilac_simt_loop_begin(f.b, number(&f, 0), n, number(&f, 1), 1, &m, &i);
        value next = i + 1;
        lilac_simt_loop_end(f.b, loop, &next);
        end_kernel(&f);
        assert_true(verify(&f));
        lilac_simt_instruction *d = f.kernel->values[m].definition;
        const char *id = "simt-dominance";
        switch (round) {
        case 0:
            d->operands[0] = 100000;
            break;
        case 1:
            f.kernel->values[m].definition = f.kernel->values[n].definition;
            break;
        case 2:
            d->parent = loop->bodies[0];
            id = "simt-links";
            break;
        case 3:
            d->code = LILAC_SIMT_OP_COUNT;
            id = "simt-operation";
            break;
        case 4:
            loop->body_count = 0;
            id = "simt-bodies";
            break;
        default:
            d->result = n;
            break;
        }
        assert_false(lilac_simt_verify(f.module));
        assert_string_equal(lilac_diagnostics(f.context)->id, id);
        close_kernel(&f);
    }
}

static void verifier_checks_kernels(void **state) {
    (void)state;
    for (uint32_t round = 0; round < 7; round++) {
        fixture f;
        open_kernel(&f);
        end_kernel(&f);
        assert_true(verify(&f));
        const char *id = "simt-launch-shape";
        switch (round) {
        case 0:
            f.kernel->num_warps = 3;
            break;
        case 1:
            f.kernel->num_warps = 64;
            break;
        case 2:
            f.kernel->num_ctas = 0;
            break;
        case 3:
            f.kernel->shared_bytes = 1u << 30;
            break;
        case 4:
            f.kernel->parameters[0].alignment = 12;
            id = "simt-parameter";
            break;
        case 5:
            f.kernel->parameters[0].type = LILAC_SIMT_I32;
            id = "simt-parameter";
            break;
        default:
            f.kernel->parameters[1].type = LILAC_SIMT_VOID;
            id = "simt-parameter";
        }
        assert_false(lilac_simt_verify(f.module));
        assert_string_equal(lilac_diagnostics(f.context)->id, id);
        close_kernel(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_fold),
        cmocka_unit_test(some_constants_do_not_fold),
        cmocka_unit_test(fma_is_rounded_once),
        cmocka_unit_test(integers_fold_in_their_rounding),
        cmocka_unit_test(equal_operations_are_shared),
        cmocka_unit_test(sharing_keeps_to_scopes),
        cmocka_unit_test(promises_are_weakened),
        cmocka_unit_test(addresses_take_their_constants),
        cmocka_unit_test(uniformity),
        cmocka_unit_test(uniformity_of_carried_values),
        cmocka_unit_test(uniformity_of_branches),
        cmocka_unit_test(verifier_refuses),
        cmocka_unit_test(verifier_asks_the_device),
        cmocka_unit_test(verifier_checks_links),
        cmocka_unit_test(verifier_checks_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
