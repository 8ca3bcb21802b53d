/* Roots and the error function of f32.
 *
 *   √x, 1 / √x   the machine's, within 1 and 2 ulp; subnormal arguments count as 0
 *   erf x        |x| < 1: x + x p(x²)      otherwise 1 - 2^q(|x|), |x| ≤ 4      2 ulp
 *
 * q was fitted to the least error of erfc. */
#include "f32.h"

lilac_simt_value lilac_lower_f32_sqrt(math_builder *k, const lilac_simt_value *in) {
    return flushed(k, LILAC_SIMT_OP_FSQRT, in[0]);
}

lilac_simt_value lilac_lower_f32_rsqrt(math_builder *k, const lilac_simt_value *in) {
    return flushed(k, LILAC_SIMT_OP_FRSQRT, in[0]);
}

lilac_simt_value lilac_lower_f32_erf(math_builder *k, const lilac_simt_value *in) {
    static const double p[] = {0.12837916612625122,    -0.37612637877464294,  0.11283782869577408,
                               -0.02686544507741928,   0.005221074912697077,  -0.00084847112884745,
                               0.00011270543473074213, -9.680133189249318e-06};
    static const double q[] = {
        0.00029483184334822,   -1.6297565698623657,     -0.9132830500602722,
        -0.15673299133777618,  0.036606334149837494,    -0.0061781881377100945,
        0.0006691094022244215, -3.6522334994515404e-05, 3.626436750892026e-07};
    lilac_simt_value x = in[0];
    lilac_simt_value limit[2] = {magnitude(k, x), f32(k, 4.0)};
    lilac_simt_value a = lilac_lower_flagged(k->l, LILAC_SIMT_OP_FMIN, LILAC_SIMT_F32,
                                             LILAC_SIMT_PROPAGATE_NAN, 2, limit);
    lilac_simt_value square = mul(k, a, a);
    lilac_simt_value near = fma3(k, a, SERIES(k, p, square), a);
    lilac_simt_value tail = flushed(k, LILAC_SIMT_OP_FEXP2, SERIES(k, q, a));
    lilac_simt_value far = sub(k, f32(k, 1.0), tail);
    lilac_simt_value is_near = compare(k, LILAC_SIMT_LT, a, f32(k, 1.0));
    return lilac_lower_sign_from(k, x, choose(k, is_near, near, far));
}
