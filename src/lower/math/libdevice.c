/* tt.extern_elementwise: the functions of libdevice by their names, each a row of a table.
 *
 *   functions        two rows in one: of f64, and with an f at the end of f32, which is computed in
 *                    f32 (f32.h), or in doubles and rounded (functions.h)
 *   operations       one instruction, or a few of integers and bits (libdevice_operations.c)
 *
 * The functions of f64 are within 2 ulp, those of f32 too or within the bound that the CUDA
 * programming guide states for libdevice's (tests/lower/functions.c), also where the argument is huge, subnormal or next
 * to a zero of the function; log Γ of negative numbers has an absolute error near its zeros. The
 * Bessel functions J0 J1 Y0 Y1 of f64 are within 4 ulp below 8, next to their zeros too; from 8 on
 * their error is below 2^-51 of the amplitude √(2/πx), and next to the zeros it is absolute. J and
 * Y of the order n add 2.5 n ulp in f64, or an absolute error of 2^-45 where they oscillate. */
#include "libdevice.h"
#include "f32.h"
#include "numeric_casts.h"
#include "operations.h"

#include <string.h>

/* ---- functions of doubles ------------------------------------------------------------------- */

typedef struct function_row {
    const char *name; /* of f64; f32: with an f */
    uint32_t operands;
    uint32_t integer; /* this operand, from 1 on, is an i32; 0: none */
    lilac_lower_function function;
    lilac_lower_function single; /* of f32 in f32; NULL: the other one */
} function_row;

static const function_row functions[] = {
    {"exp", 1, 0, lilac_lower_math_exp, lilac_lower_f32_exp},
    {"exp2", 1, 0, lilac_lower_math_exp2, lilac_lower_f32_exp2},
    {"exp10", 1, 0, lilac_lower_math_exp10, lilac_lower_f32_exp10},
    {"expm1", 1, 0, lilac_lower_math_expm1, lilac_lower_f32_expm1},
    {"sinh", 1, 0, lilac_lower_math_sinh, lilac_lower_f32_sinh},
    {"cosh", 1, 0, lilac_lower_math_cosh, lilac_lower_f32_cosh},
    {"tanh", 1, 0, lilac_lower_math_tanh, lilac_lower_f32_tanh},
    {"log", 1, 0, lilac_lower_math_log, lilac_lower_f32_log},
    {"log2", 1, 0, lilac_lower_math_log2, lilac_lower_f32_log2},
    {"log10", 1, 0, lilac_lower_math_log10, lilac_lower_f32_log10},
    {"log1p", 1, 0, lilac_lower_math_log1p, lilac_lower_f32_log1p},
    {"asinh", 1, 0, lilac_lower_math_asinh, lilac_lower_f32_asinh},
    {"acosh", 1, 0, lilac_lower_math_acosh, lilac_lower_f32_acosh},
    {"atanh", 1, 0, lilac_lower_math_atanh, lilac_lower_f32_atanh},
    {"pow", 2, 0, lilac_lower_math_pow, lilac_lower_f32_pow},
    {"powi", 2, 2, lilac_lower_math_pow, lilac_lower_f32_powi},
    {"ldexp", 2, 2, lilac_lower_math_ldexp, lilac_lower_f32_ldexp},
    {"scalbn", 2, 2, lilac_lower_math_ldexp, lilac_lower_f32_ldexp},
    {"sin", 1, 0, lilac_lower_math_sin, lilac_lower_f32_sin},
    {"cos", 1, 0, lilac_lower_math_cos, lilac_lower_f32_cos},
    {"tan", 1, 0, lilac_lower_math_tan, lilac_lower_f32_tan},
    {"sinpi", 1, 0, lilac_lower_math_sinpi, lilac_lower_f32_sinpi},
    {"cospi", 1, 0, lilac_lower_math_cospi, lilac_lower_f32_cospi},
    {"asin", 1, 0, lilac_lower_math_asin, lilac_lower_f32_asin},
    {"acos", 1, 0, lilac_lower_math_acos, lilac_lower_f32_acos},
    {"atan", 1, 0, lilac_lower_math_atan, lilac_lower_f32_atan},
    {"atan2", 2, 0, lilac_lower_math_atan2, lilac_lower_f32_atan2},
    {"rsqrt", 1, 0, lilac_lower_math_rsqrt, lilac_lower_f32_rsqrt},
    {"cbrt", 1, 0, lilac_lower_math_cbrt, lilac_lower_f32_cbrt},
    {"rcbrt", 1, 0, lilac_lower_math_rcbrt, lilac_lower_f32_rcbrt},
    {"hypot", 2, 0, lilac_lower_math_hypot, lilac_lower_f32_hypot},
    {"rhypot", 2, 0, lilac_lower_math_rhypot, lilac_lower_f32_rhypot},
    {"norm3d", 3, 0, lilac_lower_math_norm3d, lilac_lower_f32_norm3d},
    {"rnorm3d", 3, 0, lilac_lower_math_rnorm3d, lilac_lower_f32_rnorm3d},
    {"norm4d", 4, 0, lilac_lower_math_norm4d, lilac_lower_f32_norm4d},
    {"rnorm4d", 4, 0, lilac_lower_math_rnorm4d, lilac_lower_f32_rnorm4d},
    {"erf", 1, 0, lilac_lower_math_erf, lilac_lower_f32_erf},
    {"erfc", 1, 0, lilac_lower_math_erfc, lilac_lower_f32_erfc},
    {"erfcx", 1, 0, lilac_lower_math_erfcx, lilac_lower_f32_erfcx},
    {"normcdf", 1, 0, lilac_lower_math_normcdf, lilac_lower_f32_normcdf},
    {"erfinv", 1, 0, lilac_lower_math_erfinv, lilac_lower_f32_erfinv},
    {"erfcinv", 1, 0, lilac_lower_math_erfcinv, lilac_lower_f32_erfcinv},
    {"normcdfinv", 1, 0, lilac_lower_math_normcdfinv, lilac_lower_f32_normcdfinv},
    {"tgamma", 1, 0, lilac_lower_math_tgamma, NULL},
    {"lgamma", 1, 0, lilac_lower_math_lgamma, lilac_lower_f32_lgamma},
    {"cyl_bessel_i0", 1, 0, lilac_lower_math_i0, lilac_lower_f32_i0},
    {"cyl_bessel_i1", 1, 0, lilac_lower_math_i1, lilac_lower_f32_i1},
    {"j0", 1, 0, lilac_lower_math_j0, NULL},
    {"j1", 1, 0, lilac_lower_math_j1, NULL},
    {"jn", 2, 1, lilac_lower_math_jn, NULL},
    {"y0", 1, 0, lilac_lower_math_y0, NULL},
    {"y1", 1, 0, lilac_lower_math_y1, NULL},
    {"yn", 2, 1, lilac_lower_math_yn, NULL},
    {"fmod", 2, 0, lilac_lower_math_fmod, lilac_lower_f32_fmod},
    {"remainder", 2, 0, lilac_lower_math_remainder, lilac_lower_f32_remainder},
};

lilac_simt_value lilac_lower_by_function(lilac_lowering *l, lilac_lower_function function,
                                         uint32_t operands, lilac_simt_type type,
                                         const lilac_simt_value *in) {
    math_builder k = {l, &l->builder, type == LILAC_SIMT_F64};
    lilac_simt_value wide[4];
    for (uint32_t i = 0; i < operands && i < 4; i++) {
        wide[i] = kind(&k, in[i]) == LILAC_SIMT_I32
                      ? convert(&k, LILAC_SIMT_OP_S2F, LILAC_SIMT_F64, in[i])
                      : lilac_lower_convert(l, in[i], LILAC_SIMT_F64, LILAC_ROUND_NEAREST_EVEN);
    }
    return lilac_lower_convert(l, function(&k, wide), type, LILAC_ROUND_NEAREST_EVEN);
}

/* ---- finding -------------------------------------------------------------------------------- */

static const function_row *find_function(const char *name, bool *is_f32) {
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        size_t own = strlen(functions[i].name);
        if (strncmp(name, functions[i].name, own) == 0 &&
            (length == own || (length == own + 1 && name[own] == 'f'))) {
            *is_f32 = length > own;
            return &functions[i];
        }
    }
    return NULL;
}

static const char *symbol_of(const lilac_tile_op *op) {
    lilac_name symbol = lilac_tile_find_text(&op->attributes, "symbol");
    return symbol != NULL && strncmp(symbol, "__nv_", 5) == 0 ? symbol + 5 : NULL;
}

static void compute(lilac_lowering *l, const lilac_tile_op *op, const lilac_simt_value *in,
                    lilac_simt_value *out) {
    const char *name = symbol_of(op);
    bool is_f32;
    const function_row *row = find_function(name, &is_f32);
    math_builder k = {l, &l->builder, true};
    if (row != NULL) {
        out[0] = lilac_lower_by_function(l, row->function, row->operands,
                                         is_f32 ? LILAC_SIMT_F32 : LILAC_SIMT_F64, in);
        return;
    }
    const lilac_lower_operation *operation = lilac_lower_find_operation(name);
    out[0] = operation->build(&k, operation, in);
}

/* `types`: the letters of the result and the operands that the function has. */
static bool refuse_signature(lilac_lowering *l, const char *symbol, const char *types) {
    lilac_text text = {0};
    for (uint32_t i = 1; types[i] != 0; i++) {
        lilac_text_printf(&text, i == 1 ? "%s" : ", %s",
                          lilac_simt_type_name(lilac_lower_type_named(types[i])));
    }
    (void)lilac_lower_refuse(l, "unsupported-type", "'%s' must be called as (%s) -> %s", symbol,
                             lilac_text_get(&text),
                             lilac_simt_type_name(lilac_lower_type_named(types[0])));
    lilac_text_clear(&text);
    return false;
}

bool lilac_lower_extern(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_name symbol = lilac_tile_find_text(&op->attributes, "symbol");
    const char *name = symbol_of(op);
    bool is_f32 = false;
    const function_row *row = name == NULL ? NULL : find_function(name, &is_f32);
    const lilac_lower_operation *operation =
        name == NULL || row != NULL ? NULL : lilac_lower_find_operation(name);
    char types[6] = {0}; /* the result's first */
    if (row != NULL) {
        memset(types, is_f32 ? 'f' : 'd', row->operands + 1);
        if (row->integer != 0) {
            types[row->integer] = 'i';
        }
    } else if (operation != NULL) {
        memcpy(types, operation->types, strlen(operation->types));
    } else {
        return symbol == NULL
                   ? lilac_lower_refuse(
                         l, "unknown-function",
                         "the call has no attribute 'symbol'; expected the name of a "
                         "function of libdevice")
                   : lilac_lower_refuse(l, "unknown-function",
                                        "'%s' is no known function; functions of libdevice are "
                                        "supported",
                                        symbol);
    }
    bool matches = op->operand_count == strlen(types) - 1;
    lilac_simt_type type;
    if (!lilac_lower_type(l, op->results[0].type, &type)) {
        return false;
    }
    matches = matches && type == lilac_lower_type_named(types[0]);
    for (uint32_t i = 0; matches && i < op->operand_count; i++) {
        matches = lilac_lower_operand(l, op, i)->simt == lilac_lower_type_named(types[i + 1]);
    }
    if (!matches) {
        return refuse_signature(l, symbol, types);
    }
    return row != NULL && is_f32 && row->single != NULL
               ? lilac_lower_f32_elements(l, op, row->single)
               : lilac_lower_elementwise(l, op, compute);
}
