/* Conversions between number types (numeric_casts.c, f8_casts.c). */
#ifndef LILAC_LOWER_NUMERIC_CASTS_H
#define LILAC_LOWER_NUMERIC_CASTS_H

#include "lower_internal.h"

/* Converts between f16, bf16, f32 and f64, rounded once. */
lilac_simt_value lilac_lower_convert(lilac_lowering *l, lilac_simt_value value,
                                     lilac_simt_type type, lilac_rounding rounding);
/* Converts 8-bit floats with integer instructions. `scalar` is f8E4M3FN or f8E5M2. unpack
 * converts the two numbers of an i16 to an f16x2. round converts an f32 to an i8, rounded to
 * nearest even and saturated. */
lilac_simt_value lilac_lower_f8_unpack(lilac_lowering *l, lilac_scalar scalar,
                                       lilac_simt_value pair);
lilac_simt_value lilac_lower_f8_round(lilac_lowering *l, lilac_scalar scalar,
                                      lilac_simt_value value);

#endif
