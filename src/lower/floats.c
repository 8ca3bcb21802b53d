/* Floating-point arithmetic, comparisons and selects.
 *
 *   f16          in f16: the hardware rounds each result once
 *   bf16         in bf16 if the device has it; otherwise in f32, then rounded. f32 has more than
 *                twice as many mantissa bits, so the second rounding does not change the result
 *   divisions    f16 and bf16 through f32; f32 with the full-range approximate division (2 ulp), or
 *                correctly rounded if the program requests it; f64 correctly rounded
 *
 * Arithmetic on 8-bit floats does not exist: programs convert first. The exception is the absolute
 * value, which clears the sign bit and keeps NaN. */
#include "numeric_casts.h"
#include "operations.h"

#include <string.h>

static lilac_simt_type type_of(lilac_lowering *l, lilac_simt_value value) {
    return lilac_simt_type_of(l->kernel, value);
}

static bool is_half(lilac_simt_type type) {
    return type == LILAC_SIMT_F16 || type == LILAC_SIMT_BF16;
}

/* Builds an operation. If `through` is set, the operands are widened to f32 and the result is
 * rounded back. */
static lilac_simt_value apply(lilac_lowering *l, lilac_simt_opcode code, uint8_t flags,
                              bool through, uint32_t count, const lilac_simt_value *in) {
    lilac_simt_type type = type_of(l, in[0]);
    lilac_simt_value values[3];
    for (uint32_t i = 0; i < count; i++) {
        values[i] = through
                        ? lilac_lower_convert(l, in[i], LILAC_SIMT_F32, LILAC_ROUND_NEAREST_EVEN)
                        : in[i];
    }
    lilac_simt_value result =
        lilac_lower_flagged(l, code, through ? LILAC_SIMT_F32 : type, flags, count, values);
    return through ? lilac_lower_convert(l, result, type, LILAC_ROUND_NEAREST_EVEN) : result;
}

/* Does this type's arithmetic need f32 on this device? */
static bool needs_f32(lilac_lowering *l, lilac_simt_type type) {
    return type == LILAC_SIMT_BF16 && !lilac_arch_has(l->target->arch, LILAC_HAS_BF16_ARITHMETIC);
}

/* NaN-propagating forms exist up to 32 bits. For 64 bits the result is the sum if an operand is
 * NaN. */
static lilac_simt_value extremum(lilac_lowering *l, lilac_simt_opcode code, bool propagate,
                                 const lilac_simt_value *in) {
    if (!propagate || type_of(l, in[0]) != LILAC_SIMT_F64) {
        return apply(l, code, propagate ? LILAC_SIMT_PROPAGATE_NAN : 0, false, 2, in);
    }
    lilac_simt_value number = apply(l, code, 0, false, 2, in);
    lilac_simt_value sum = apply(l, LILAC_SIMT_OP_FADD, 0, false, 2, in);
    return lilac_lower_select(
        l, lilac_simt_compare_values(&l->builder, LILAC_SIMT_UNO, in[0], in[1]), sum, number);
}

/* ---- one element ------------------------------------------------------------------------- */

typedef struct float_row {
    lilac_lower_element compute;
    uint16_t instruction; /* that `compute` builds; NONE: several */
} float_row;

static const float_row float_rows[LILAC_TILE_OP_COUNT];

static lilac_simt_opcode instruction_of(const lilac_tile_op *op) {
    return (lilac_simt_opcode)float_rows[op->code].instruction;
}

/* Computes in f32 if the device has no arithmetic of the type. */
static void compute_through_f32(lilac_lowering *l, const lilac_tile_op *op,
                                const lilac_simt_value *in, lilac_simt_value *out) {
    bool through = needs_f32(l, type_of(l, in[0]));
    out[0] = apply(l, instruction_of(op), 0, through, op->operand_count, in);
}

/* Computes in the type itself. Every device has this instruction for it: fma.bf16 is older than the
 * other instructions of bf16. */
static void compute_direct(lilac_lowering *l, const lilac_tile_op *op, const lilac_simt_value *in,
                           lilac_simt_value *out) {
    out[0] = apply(l, instruction_of(op), 0, false, op->operand_count, in);
}

static void compute_quotient(lilac_lowering *l, const lilac_tile_op *op, const lilac_simt_value *in,
                             lilac_simt_value *out) {
    lilac_simt_type type = type_of(l, in[0]);
    uint8_t flags = type != LILAC_SIMT_F64 ? LILAC_SIMT_APPROXIMATE : 0;
    out[0] = apply(l, instruction_of(op), flags, is_half(type), 2, in);
}

static void compute_precise_quotient(lilac_lowering *l, const lilac_tile_op *op,
                                     const lilac_simt_value *in, lilac_simt_value *out) {
    out[0] = apply(l, instruction_of(op), 0, is_half(type_of(l, in[0])), 2, in);
}

/* The operand that is a number, if one is NaN. */
static void compute_extremum(lilac_lowering *l, const lilac_tile_op *op, const lilac_simt_value *in,
                             lilac_simt_value *out) {
    out[0] = extremum(l, instruction_of(op), false, in);
}

/* NaN, if an operand is NaN. */
static void compute_extremum_or_nan(lilac_lowering *l, const lilac_tile_op *op,
                                    const lilac_simt_value *in, lilac_simt_value *out) {
    out[0] = extremum(l, instruction_of(op), true, in);
}

static void compute_clamp(lilac_lowering *l, const lilac_tile_op *op, const lilac_simt_value *in,
                          lilac_simt_value *out) {
    lilac_name text = lilac_tile_find_text(&op->attributes, "propagateNan");
    bool propagate = text != NULL
                         ? strcmp(text, "all") == 0
                         : lilac_tile_find_integer(&op->attributes, "propagateNan", 0) != 0;
    lilac_simt_value raised[2] = {extremum(l, LILAC_SIMT_OP_FMAX, propagate, in), in[2]};
    out[0] = extremum(l, LILAC_SIMT_OP_FMIN, propagate, raised);
}

/* ---- comparisons ------------------------------------------------------------------------- */

/* In MLIR's order. The predicates `false` and `true` need no comparison. */
static const struct {
    const char *name;
    lilac_simt_compare kind;
} comparisons[] = {
    {"false", LILAC_SIMT_COMPARE_COUNT},
    {"oeq", LILAC_SIMT_EQ},
    {"ogt", LILAC_SIMT_GT},
    {"oge", LILAC_SIMT_GE},
    {"olt", LILAC_SIMT_LT},
    {"ole", LILAC_SIMT_LE},
    {"one", LILAC_SIMT_NE},
    {"ord", LILAC_SIMT_ORD},
    {"ueq", LILAC_SIMT_UEQ},
    {"ugt", LILAC_SIMT_FUGT},
    {"uge", LILAC_SIMT_FUGE},
    {"ult", LILAC_SIMT_FULT},
    {"ule", LILAC_SIMT_FULE},
    {"une", LILAC_SIMT_UNE},
    {"uno", LILAC_SIMT_UNO},
    {"true", LILAC_SIMT_COMPARE_COUNT},
};
#define COMPARISONS (sizeof comparisons / sizeof comparisons[0])

static size_t comparison_of(const lilac_tile_op *op) {
    const lilac_tile_attribute *predicate = lilac_tile_find(&op->attributes, "predicate");
    for (size_t i = 0; predicate != NULL && i < COMPARISONS; i++) {
        bool found = predicate->text != NULL ? strcmp(predicate->text, comparisons[i].name) == 0
                                             : predicate->integer == (int64_t)i;
        if (found) {
            return i;
        }
    }
    return COMPARISONS;
}

static void compute_comparison(lilac_lowering *l, const lilac_tile_op *op,
                               const lilac_simt_value *in, lilac_simt_value *out) {
    size_t which = comparison_of(op);
    if (which == COMPARISONS) {
        (void)lilac_lower_bad_attribute(
            l, "predicate",
            "false, oeq, ogt, oge, olt, ole, one, ord, ueq, ugt, uge, ult, ule, "
            "une, uno, true or a number up to 15");
        return;
    }
    if (comparisons[which].kind == LILAC_SIMT_COMPARE_COUNT) {
        out[0] = lilac_simt_constant(&l->builder, LILAC_SIMT_I1, which != 0);
        return;
    }
    lilac_simt_value a = in[0], b = in[1];
    if (needs_f32(l, type_of(l, a))) {
        a = lilac_lower_convert(l, a, LILAC_SIMT_F32, LILAC_ROUND_NEAREST_EVEN);
        b = lilac_lower_convert(l, b, LILAC_SIMT_F32, LILAC_ROUND_NEAREST_EVEN);
    }
    out[0] = lilac_simt_compare_values(&l->builder, comparisons[which].kind, a, b);
}

/* ---- the operations ---------------------------------------------------------------------- */

static const float_row float_rows[LILAC_TILE_OP_COUNT] = {
#define FLOAT(code, compute, instruction, meaning)                                                 \
    [LILAC_TILE_OP_##code] = {compute, LILAC_SIMT_OP_##instruction},
#include <lilac/operations.def>
};

bool lilac_lower_float_op(lilac_lowering *l, const lilac_tile_op *op) {
    if (!lilac_simt_type_is_float(lilac_lower_operand(l, op, 0)->simt)) {
        return lilac_lower_refuse(
            l, "unsupported-type",
            "'%s' on 8-bit floats cannot be lowered; convert its operands to f16, bf16, f32 or f64",
            lilac_tile_op_info_get(op->code)->name);
    }
    const int64_t factor = lilac_tile_find_integer(&op->attributes, "lilac.often_one", -1);
    if (factor >= 0 && lilac_lower_operand(l, op, 0)->simt == LILAC_SIMT_F32) {
        return lilac_lower_rescale(l, op, factor != 0);
    }
    return lilac_lower_elementwise(l, op, float_rows[op->code].compute);
}

static void compute_magnitude_of_byte(lilac_lowering *l, const lilac_tile_op *op,
                                      const lilac_simt_value *in, lilac_simt_value *out) {
    (void)op;
    out[0] = lilac_simt_op2(&l->builder, LILAC_SIMT_OP_AND, LILAC_SIMT_I8, in[0],
                            lilac_lower_integer(l, LILAC_SIMT_I8, 0x7F));
}

bool lilac_lower_float_magnitude(lilac_lowering *l, const lilac_tile_op *op) {
    bool is_float = lilac_simt_type_is_float(lilac_lower_operand(l, op, 0)->simt);
    return is_float ? lilac_lower_float_op(l, op)
                    : lilac_lower_elementwise(l, op, compute_magnitude_of_byte);
}

static void compute_choice(lilac_lowering *l, const lilac_tile_op *op, const lilac_simt_value *in,
                           lilac_simt_value *out) {
    (void)op;
    out[0] = lilac_lower_select(l, in[0], in[1], in[2]);
}

bool lilac_lower_choice(lilac_lowering *l, const lilac_tile_op *op) {
    return lilac_lower_elementwise(l, op, compute_choice);
}
