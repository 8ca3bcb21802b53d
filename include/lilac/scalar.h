/* scalar: the element types of tensors and registers, and their exact arithmetic of bits.
 *
 * Part of the component `base`. A scalar's value is kept as its bits in the low end of a uint64_t.
 */
#ifndef LILAC_SCALAR_H
#define LILAC_SCALAR_H

#include <lilac/base.h>

LILAC_BEGIN

/* name as TTIR spells it, bits, float?, exponent bits, mantissa bits, bias, inf?, nan kind */
typedef enum lilac_scalar {
    LILAC_I1,
    LILAC_I2,
    LILAC_I4,
    LILAC_I8,
    LILAC_I16,
    LILAC_I32,
    LILAC_I64,
    LILAC_I128,
    LILAC_INDEX, /* MLIR's index: 32 bits wide here */
    LILAC_F4E2M1FN,
    LILAC_F8E4M3FN,
    LILAC_F8E5M2,
    LILAC_F8E4M3FNUZ,
    LILAC_F8E5M2FNUZ,
    LILAC_F8E4M3B11FNUZ,
    LILAC_F8E8M0FNU,
    LILAC_BF16,
    LILAC_F16,
    LILAC_TF32, /* 19 bits, kept in the high end of an f32 */
    LILAC_F32,
    LILAC_F64,
    LILAC_SCALAR_COUNT
} lilac_scalar;

/* As TTIR spells it: "i32", "f8E4M3FN", "bf16". */
LILAC_API const char *lilac_scalar_name(lilac_scalar scalar);
/* The scalar of such a name; false when there is none. */
LILAC_API bool lilac_scalar_read(const char *bytes, size_t length, lilac_scalar *scalar);
/* Width in bits (tf32: 19), and whether it is a floating-point format. */
LILAC_API uint32_t lilac_scalar_bits(lilac_scalar scalar);
LILAC_API bool lilac_scalar_is_float(lilac_scalar scalar);

typedef enum lilac_rounding {
    LILAC_ROUND_NEAREST_EVEN,
    LILAC_ROUND_ZERO,
    LILAC_ROUND_DOWN,
    LILAC_ROUND_UP
} lilac_rounding;

/* The exact value of a float's bits (every scalar float is exact in a double). NaN payloads go. */
LILAC_API double lilac_scalar_decode(lilac_scalar scalar, uint64_t bits);
/* The bits of a value rounded once to the scalar float. Overflow gives infinity where the type has
 * one (or the largest finite number when `saturate`), NaN or the largest where it has none. NaN
 * gives the canonical NaN (0x7FFF for f16 and bf16, 0x7FFFFFFF for f32, as NVIDIA GPUs produce). */
LILAC_API uint64_t lilac_scalar_encode(lilac_scalar scalar, double value, lilac_rounding rounding,
                                       bool saturate);
/* The same of an integer. */
LILAC_API uint64_t lilac_scalar_encode_integer(lilac_scalar scalar, uint64_t magnitude,
                                               bool negative, lilac_rounding rounding);
/* a*b+c rounded once to nearest even; scalars f16, bf16, f32, f64. */
LILAC_API uint64_t lilac_scalar_fma(lilac_scalar scalar, uint64_t a, uint64_t b, uint64_t c);
/* Integers: the low bits as signed and unsigned. */
LILAC_API int64_t lilac_scalar_signed(lilac_scalar scalar, uint64_t bits);
LILAC_API uint64_t lilac_scalar_mask(lilac_scalar scalar, uint64_t bits);

LILAC_END

#endif
