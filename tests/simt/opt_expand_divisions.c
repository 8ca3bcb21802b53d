/* Expanded divisions equal exact division: for every constant divisor up to 300, those around every
 * power of two and random ones, and for loaded divisors; on dividends around multiples of the
 * divisor, the ends of the type and random ones; as they are and with some high bits known to be 0.
 * No division by a constant is left, and at most one of several by the same value.
 * 64-bit divisions that are narrowed behind a vote equal exact division too. */
#include <lilac/sim.h>

#include "support/run_in_out.h"
#include "support/test.h"

enum { THREADS = 64, ROUNDS = 4, OPS = 4 };

static const char *const ops[OPS] = {"div_s", "div_u", "rem_s", "rem_u"};

typedef struct input {
    uint64_t x[ROUNDS], d;
} input;

static int64_t signed_of(uint32_t width, uint64_t bits) {
    return (int64_t)(bits << (64 - width)) >> (64 - width);
}

static uint64_t mask_of(uint32_t width) {
    return UINT64_MAX >> (64 - width);
}

static uint64_t exact(uint32_t op, uint32_t width, uint64_t x, uint64_t d) {
    int64_t sx = signed_of(width, x), sd = signed_of(width, d);
    if (op % 2 == 1) {
        return op == 1 ? x / d : x % d;
    }
    if (sd == -1) { /* the host's division may overflow */
        return op == 0 ? (0 - x) & mask_of(width) : 0;
    }
    return (uint64_t)(op == 0 ? sx / sd : sx % sd) & mask_of(width);
}

/* Every thread divides ROUNDS numbers, shifted right, in all four ways. */
static void write_kernel(lilac_text *out, uint32_t width, const uint64_t *divisor, uint32_t shift) {
    lilac_text_printf(
        out,
        "simt.module target \"sm_90a\" {\nkernel @k(%%i: i64 ptr align 16, %%o: i64 ptr align "
        "16) warps 2 ctas 1 shared 0 {\n%%pi = param 0 : i64\n%%po = param 1 : i64\n"
        "%%t = thread : i32\n%%ci = const %zu : i32\n%%co = const %d : i32\n"
        "%%oi = mulwide_u %%t, %%ci : i64\n%%oo = mulwide_u %%t, %%co : i64\n"
        "%%in = add %%pi, %%oi : i64\n%%out = add %%po, %%oo : i64\n",
        sizeof(input), 8 * ROUNDS * OPS);
    if (divisor != NULL) {
        lilac_text_printf(out, "%%d = const 0x%llX : i%u\n", (unsigned long long)*divisor, width);
    } else {
        lilac_text_printf(out, "%%d = ld.global [%%in + %d] : i%u\n", 8 * ROUNDS, width);
    }
    lilac_text_printf(out, "%%s = const %u : i%u\n", shift, width);
    for (uint32_t r = 0; r < ROUNDS; r++) {
        lilac_text_printf(out, "%%l%u = ld.global [%%in + %u] : i%u\n", r, 8 * r, width);
    }
    for (uint32_t r = 0; r < ROUNDS; r++) {
        lilac_text_printf(out, "%%x%u = shr_u %%l%u, %%s : i%u\n", r, r, width);
        for (uint32_t k = 0; k < OPS; k++) {
            lilac_text_printf(
                out, "%%q%u_%u = %s %%x%u, %%d : i%u\nst.global [%%out + %u], (%%q%u_%u)\n", r, k,
                ops[k], r, width, 8 * (r * OPS + k), r, k);
        }
    }
    lilac_text_printf(out, "return\n}\n}\n");
}

/* Divisions outside branches; in all bodies, *wide of them of 64 bits. */
static uint32_t divisions_in(const lilac_simt_kernel *kernel, const lilac_simt_body *body,
                             uint32_t *wide) {
    uint32_t count = 0;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (i->code >= LILAC_SIMT_OP_DIV_S && i->code <= LILAC_SIMT_OP_REM_U) {
            count++;
            *wide += lilac_simt_type_of(kernel, i->result) == LILAC_SIMT_I64;
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            divisions_in(kernel, i->bodies[k], wide);
        }
    }
    return count;
}

static uint64_t random_bits(lilac_random *random, uint32_t width) {
    return (lilac_random_next(random) >> lilac_random_below(random, width)) & mask_of(width);
}

/* No number is above `most`, which is a mask. */
static void draw(lilac_random *random, input *in, uint32_t width, const uint64_t *divisor,
                 uint64_t most) {
    static const int64_t edges[] = {0, 1, -1, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX, 2, -2};
    in->d = divisor != NULL ? *divisor : random_bits(random, width);
    in->d = in->d == 0 ? 1 : lilac_random_below(random, 2) || divisor != NULL ? in->d : 0 - in->d;
    in->d &= divisor != NULL ? UINT64_MAX : mask_of(width) & most;
    in->d = in->d == 0 ? 1 : in->d;
    for (uint32_t r = 0; r < ROUNDS; r++) {
        uint64_t x = random_bits(random, width);
        switch (lilac_random_below(random, 4)) {
        case 0:
            x = (uint64_t)edges[lilac_random_below(random, 9)];
            break;
        case 1: /* next to a multiple, of either sign */
            x = x / in->d * in->d + lilac_random_below(random, 3) - 1;
            x = lilac_random_below(random, 2) ? 0 - x : x;
            break;
        case 2:
            x = mask_of(width) / in->d * in->d - lilac_random_below(random, 2);
            break;
        default:
            break;
        }
        in->x[r] = x & mask_of(width) & most;
    }
}

typedef void transform(lilac_simt_module *module, bool is_constant);

static void expand(lilac_simt_module *module, bool is_constant) {
    uint32_t wide = 0;
    assert_true(lilac_simt_opt_expand_divisions(module->kernels));
    assert_true(lilac_simt_verify(module));
    uint32_t left = divisions_in(module->kernels, module->kernels->body, &wide);
    assert_true(is_constant ? left == 0 : left <= 2); /* of the divisor and of its magnitude */
}

/* All divisions are in one branch, those of 64 bits in one of its bodies. */
static void narrow(lilac_simt_module *module, bool is_constant) {
    (void)is_constant;
    uint32_t wide = 0, branches = 0;
    assert_true(lilac_simt_opt_narrow_divisions(module->kernels));
    assert_true(lilac_simt_verify(module));
    assert_int_equal(divisions_in(module->kernels, module->kernels->body, &wide), 0);
    assert_int_equal(wide, ROUNDS * OPS);
    for (const lilac_simt_instruction *i = module->kernels->body->first; i != NULL; i = i->next) {
        branches += i->code == LILAC_SIMT_OP_IF;
    }
    assert_int_equal(branches, 1);
}

static void check(lilac_random *random, uint32_t width, const uint64_t *divisor, uint32_t shift,
                  transform *pass) {
    static input in[THREADS];
    static uint64_t out[THREADS][ROUNDS * OPS];
    lilac_text text = {0};
    write_kernel(&text, width, divisor, shift);
    lilac_context *context = lilac_context_create();
    lilac_simt_module *module =
        lilac_simt_read(context, lilac_source_add(context, "k", text.bytes, text.length));
    assert_non_null(module);
    pass(module, divisor != NULL);
    uint64_t most = lilac_random_below(random, 2) ? UINT32_MAX : UINT64_MAX;
    for (uint32_t t = 0; t < THREADS; t++) {
        draw(random, &in[t], width, divisor, most);
    }
    memset(out, 0, sizeof out);
    assert_true(run_in_out(context, module->kernels, in, sizeof in, out, sizeof out));
    for (uint32_t t = 0; t < THREADS; t++) {
        for (uint32_t k = 0; k < ROUNDS * OPS; k++) {
            uint64_t x = in[t].x[k / OPS] >> shift;
            if (exact(k % OPS, width, x, in[t].d) != (out[t][k] & mask_of(width))) {
                fail_msg("%s of i%u 0x%llX by 0x%llX, shift %u: 0x%llX, got 0x%llX", ops[k % OPS],
                         width, (unsigned long long)x, (unsigned long long)in[t].d, shift,
                         (unsigned long long)exact(k % OPS, width, x, in[t].d),
                         (unsigned long long)out[t][k]);
            }
        }
    }
    lilac_simt_module_destroy(module);
    lilac_context_destroy(context);
    lilac_text_clear(&text);
}

static void by_constants(void **state) {
    (void)state;
    static const uint32_t widths[] = {8, 16, 32, 64};
    lilac_random random;
    lilac_random_seed(&random, 14);
    for (uint32_t w = 0; w < 4; w++) {
        uint32_t width = widths[w];
        for (uint64_t d = 1; d < (width == 8 ? 256 : 300); d++) {
            check(&random, width, &d, d % 3 == 0 ? (uint32_t)d % width : 0, expand);
        }
        for (uint32_t k = 1; k < width; k++) {
            for (uint64_t near = 0; near < 5; near++) {
                uint64_t d = (((uint64_t)1 << k) + near - 2) & mask_of(width);
                d = d == 0 ? 1 : d;
                check(&random, width, &d, 0, expand);
                check(&random, width, &d, 1 + (uint32_t)lilac_random_below(&random, width - 1),
                      expand);
            }
        }
        for (uint32_t n = 0; n < 300; n++) {
            uint64_t d = random_bits(&random, width);
            d = d == 0 ? mask_of(width) : n % 2 ? d : (0 - d) & mask_of(width);
            check(&random, width, &d, n % 3 == 0 ? (uint32_t)lilac_random_below(&random, width) : 0,
                  expand);
        }
    }
}

static void by_values(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 15);
    for (uint32_t n = 0; n < 200; n++) {
        uint32_t width = n % 2 ? 32 : 64;
        check(&random, width, NULL, n % 3 == 0 ? 1 : 0, expand);
    }
}

/* Numbers below 2^32 in all lanes, in some, in none. */
static void narrowed(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 16);
    for (uint32_t n = 0; n < 200; n++) {
        check(&random, 64, NULL, n % 3 == 0 ? 31 : n % 3, narrow);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_constants),
        cmocka_unit_test(by_values),
        cmocka_unit_test(narrowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
