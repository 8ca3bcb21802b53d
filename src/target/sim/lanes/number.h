/* Floats of 16 and 32 bits as C numbers, each result rounded once.
 *
 * The C compiler must neither fuse a multiplication with an addition nor keep extra precision:
 * both would round differently from the instruction that is simulated.
 *
 * Narrow formats go through a wider one in two steps. Rounding twice is right when the first step
 * rounds to odd: an inexact value keeps its last bit set, so the second step sees on which side of
 * a tie it lies (needs two more bits in the middle format than in the last one).
 */
#ifndef LILAC_SIM_NUMBER_H
#define LILAC_SIM_NUMBER_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__) && !defined(__STRICT_ANSI__) && defined(__FMA__)
#error "compile with -std=c17, which keeps a * b + c from being fused"
#endif
_Static_assert(FLT_EVAL_METHOD == 0, "float arithmetic must be done in float");

static inline uint32_t bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t bits_of_double(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double double_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The canonical NaN in place of any other. */
static inline float clean_float(float value) {
    return value != value ? float_of_bits(0x7FFFFFFF) : value;
}

static inline double clean_double(double value) {
    return value != value ? double_of_bits(UINT64_C(0x7FF8000000000000)) : value;
}

/* A subnormal becomes zero of the same sign. */
static inline float flush_float(float value) {
    uint32_t bits = bits_of_float(value);
    return bits & 0x7F800000 ? value : float_of_bits(bits & 0x80000000);
}

static inline float float_of_half(uint16_t half) {
    float magnitude = float_of_bits((uint32_t)(half & 0x7FFF) << 13) * 0x1p112f;
    uint32_t bits = bits_of_float(magnitude);
    if ((half & 0x7FFF) > 0x7C00) {
        return float_of_bits(0x7FFFFFFF);
    }
    if ((half & 0x7FFF) == 0x7C00) {
        bits = 0x7F800000;
    }
    return float_of_bits(bits | (uint32_t)(half & 0x8000) << 16);
}

static inline float float_of_bfloat(uint16_t bfloat) {
    return clean_float(float_of_bits((uint32_t)bfloat << 16));
}

/* Nearest even. Below 2^-14 adding 1/2 makes the sum's last place the half's smallest number. */
static inline uint16_t half_of_float(float value) {
    uint32_t bits = bits_of_float(value), sign = bits >> 16 & 0x8000;
    bits &= 0x7FFFFFFF;
    if (bits > 0x7F800000) {
        return 0x7FFF;
    }
    if (bits >= 0x477FF000) {
        return (uint16_t)(sign | 0x7C00);
    }
    if (bits < 0x38800000) {
        return (uint16_t)(sign | (bits_of_float(float_of_bits(bits) + 0.5f) - 0x3F000000));
    }
    bits += 0xFFF + (bits >> 13 & 1);
    return (uint16_t)(sign | (bits - 0x38000000) >> 13);
}

static inline uint16_t bfloat_of_float(float value) {
    uint32_t bits = bits_of_float(value);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) {
        return 0x7FFF;
    }
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/* To float, to odd: an inexact result has its last bit set. */
static inline float odd_float(double value) {
    float near = (float)value;
    uint32_t bits = bits_of_float(near);
    if ((double)near == value || value != value || (bits & 1)) {
        return near;
    }
    return float_of_bits(fabs((double)near) > fabs(value) ? bits - 1 : bits + 1);
}

/* To double, to odd: the top 53 bits, the rest gathered in the last of them. */
static inline double odd_double(uint64_t value) {
    if (value >> 53 == 0) {
        return (double)value;
    }
    return (double)(value >> 11 | ((value & 0x7FF) != 0)) * 2048.0;
}

static inline uint16_t half_of_double(double value) {
    return half_of_float(odd_float(value));
}

static inline uint16_t bfloat_of_double(double value) {
    return bfloat_of_float(odd_float(value));
}

/* a·b + c to odd, for factors whose product is exact in a double (up to 24 bits of mantissa each)
 * and exponents far from a double's ends. The error of the sum is exact (Knuth's two-sum). */
static inline double odd_fused(double a, double b, double c) {
    double product = a * b, sum = product + c;
    double part = sum - product;
    double error = (product - (sum - part)) + (c - part);
    uint64_t bits = bits_of_double(sum);
    if (error == 0 || error != error || (bits & 1)) {
        return sum;
    }
    return double_of_bits((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

/* PTX min and max: the number when one is NaN, -0 below +0. */
static inline double smaller(double a, double b) {
    if (a < b) {
        return a;
    }
    if (b < a) {
        return b;
    }
    if (a == b) {
        return signbit(a) ? a : b;
    }
    return a != a ? b : a;
}

static inline double larger(double a, double b) {
    if (a > b) {
        return a;
    }
    if (b > a) {
        return b;
    }
    if (a == b) {
        return signbit(a) ? b : a;
    }
    return a != a ? b : a;
}

#endif
