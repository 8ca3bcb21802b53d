/* The logarithm of the gamma function and the modified Bessel functions of f32.
 *
 *   log Γ x    x ≥ 3:     (x - 1/2) (log x - 1) + S(1 / x²) / x + log √2π - 1/2, after Stirling
 *              1 … 3:     (x - 1) (x - 2) p(x - 2), in which the zeros at 1 and 2 stay exact
 *              0 … 1:     log Γ(x + 1) - log x
 *   I0 x       |x| < 8:   p(x²)      otherwise e^|x| / √|x| q(1 / |x|)
 *   I1 x       |x| < 8:   x p(x²)    otherwise e^|x| / √|x| q(1 / |x|) with the sign of x
 *
 * The slow paths are for negative arguments of log Γ, and above 87 for the Bessel functions. */
#include "f32.h"

lilac_simt_value lilac_lower_f32_lgamma_rare(math_builder *k, const lilac_simt_value *in) {
    return compare(k, LILAC_SIMT_LT, in[0], f32(k, 0.0));
}

lilac_simt_value lilac_lower_f32_lgamma(math_builder *k, const lilac_simt_value *in) {
    static const double p[] = {0x1.b0ee60p-2,  -0x1.9ae64ap-4,  0x1.0e0dd6p-5,  -0x1.95d434p-7,
                               0x1.47248ap-8,  -0x1.138f04p-9,  0x1.eecc88p-11, -0x1.bda0f6p-12,
                               0x1.131462p-13, -0x1.bc4ef2p-15, 0x1.47156ep-14, -0x1.435894p-15};
    static const double stirling[] = {0x1.555544p-4, -0x1.6b7004p-9, 0x1.6d8d22p-11};
    lilac_simt_value x = in[0], one = f32(k, 1.0), log = lilac_lower_f32_log(k, in);
    lilac_simt_value low = compare(k, LILAC_SIMT_LT, x, one);
    lilac_simt_value from_one = choose(k, low, x, sub(k, x, one)), t = sub(k, from_one, one);
    lilac_simt_value bump = mul(k, from_one, SERIES(k, p, t));
    bump = fma3(k, bump, t, f32(k, 0.0)); /* zeros are positive */
    lilac_simt_value near = choose(k, low, sub(k, bump, log), bump);
    lilac_simt_value inverse = flushed(k, LILAC_SIMT_OP_FRCP, x);
    lilac_simt_value rest = SERIES(k, stirling, mul(k, inverse, inverse));
    rest = fma3(k, rest, inverse, f32(k, 0.41893853320467274));
    lilac_simt_value far = fma3(k, sub(k, x, f32(k, 0.5)), sub(k, log, one), rest);
    return choose(k, compare(k, LILAC_SIMT_LT, x, f32(k, 3.0)), near, far);
}

/* ---- Bessel functions ----------------------------------------------------------------------- */

lilac_simt_value lilac_lower_f32_bessel_rare(math_builder *k, const lilac_simt_value *in) {
    return compare(k, LILAC_SIMT_GT, magnitude(k, in[0]), f32(k, 87.0));
}

/* e^a / √a q(1 / a) */
static lilac_simt_value growing(math_builder *k, lilac_simt_value a, const double *q,
                                uint32_t count) {
    lilac_simt_value power = lilac_lower_f32_exp(k, &a);
    lilac_simt_value root = flushed(k, LILAC_SIMT_OP_FRSQRT, a);
    return mul(k, power, mul(k, root, series(k, q, count, mul(k, root, root))));
}

static lilac_simt_value is_near(math_builder *k, lilac_simt_value a) {
    return compare(k, LILAC_SIMT_LT, a, f32(k, 8.0));
}

lilac_simt_value lilac_lower_f32_i0(math_builder *k, const lilac_simt_value *in) {
    static const double p[] = {0x1.000000p+0,  0x1.000000p-2,  0x1.000000p-6,  0x1.c71c6ap-12,
                               0x1.c71d32p-18, 0x1.233e50p-24, 0x1.032ce0p-31, 0x1.4f389ap-39,
                               0x1.6540fep-47, 0x1.878916p-56, 0x1.354e72p-63};
    static const double q[] = {0x1.988454p-2, 0x1.987d36p-5, 0x1.ce1b7ap-6,
                               0x1.bf9e70p-6, 0x1.5e1266p-5, 0x1.b406e2p-3};
    lilac_simt_value a = magnitude(k, in[0]);
    return choose(k, is_near(k, a), SERIES(k, p, mul(k, a, a)), growing(k, a, q, 6));
}

lilac_simt_value lilac_lower_f32_i1(math_builder *k, const lilac_simt_value *in) {
    static const double p[] = {0x1.000000p-1,  0x1.000000p-4,  0x1.55554cp-9,  0x1.c71d92p-15,
                               0x1.6c0a42p-21, 0x1.84e51ep-28, 0x1.24a92ap-35, 0x1.68d69cp-43,
                               0x1.a45b8ep-52, 0x1.8dfceep-59};
    static const double q[] = {0x1.988454p-2, -0x1.326688p-3, -0x1.7a6218p-5, -0x1.e5394cp-5,
                               0x1.add8bcp-3, -0x1.ddd2d4p+0, 0x1.dfe9d6p+1};
    lilac_simt_value a = magnitude(k, in[0]);
    lilac_simt_value near = mul(k, a, SERIES(k, p, mul(k, a, a)));
    lilac_simt_value result = choose(k, is_near(k, a), near, growing(k, a, q, 7));
    return lilac_lower_sign_from(k, in[0], result);
}
