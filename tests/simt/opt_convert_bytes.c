/* Conversions of bytes and nibbles to floats by permutes and sums give the bits of the conversions: for all
 * bytes in all places of a word, as signed and unsigned numbers, whole and in nibbles, single and in pairs. A
 * kernel runs on the simulator before and after the pass. */
#include <lilac/sim.h>

#include "support/run_in_out.h"
#include "support/test.h"

enum {
    THREADS = 1024,
    LAUNCHES = 4,
    FORMS = 16,
    STORES = 96,
    REST = 1,
    WORDS = 2 * (STORES + REST)
};

/* What is converted: the operations on a byte, as a signed or an unsigned number; and whether the pass knows
 * them. */
static const struct {
    const char *operations;
    bool is_signed, known;
} forms[FORMS] = {
    {"", false, true},           {"", true, true},           {"shr_u", false, true},
    {"shr_s", true, true},       {"shl shr_u", false, true}, {"shl shr_s", true, true},
    {"and", false, true},        {"and", true, true},        {"shr_u and", true, true},
    {"shr_s and", true, true},   {"and add", true, true},    {"shl shr_s sub", true, true},
    {"shr_s", false, false},     /* negative nibbles are large numbers */
    {"shl shr_s", false, false}, /* likewise */
    {"and add", false, false},   /* below zero it wraps */
    {"add", true, false},        /* it may wrap */
};

/* The operations of a form on %b<name>; the last one defines %v<name>. */
static void put_form(lilac_text *out, uint32_t form, const char *name) {
    char words[32];
    snprintf(words, sizeof words, "%s", forms[form].operations);
    char before[32], after[32];
    snprintf(before, sizeof before, "%%b%s", name);
    uint32_t step = 0;
    for (char *op = strtok(words, " "); op != NULL; op = strtok(NULL, " "), step++) {
        const char *constant = strcmp(op, "and") == 0   ? "%fifteen"
                               : strcmp(op, "add") == 0 ? "%minus"
                               : strcmp(op, "sub") == 0 ? "%three"
                                                        : "%four";
        snprintf(after, sizeof after, "%%f%u_%s_%u", form, name, step);
        lilac_text_printf(out, "%s = %s %s, %s : i8\n", after, op, before, constant);
        memcpy(before, after, sizeof before);
    }
    lilac_text_printf(out, "%%v%u_%s = bitcast %s : i8\n", form, name, before);
}

/* Two bytes of any words and places, converted, and stored or packed. The conversions that remain. */
static uint32_t put_values(lilac_text *out, lilac_random *random, uint32_t stores) {
    const uint32_t form = (uint32_t)lilac_random_below(random, FORMS);
    const uint32_t other = (uint32_t)lilac_random_below(random, FORMS);
    const uint32_t at[2] = {(uint32_t)lilac_random_below(random, 4),
                            (uint32_t)lilac_random_below(random, 4)};
    const uint32_t number[2] = {form, other};
    static const char *const types[] = {"f32", "f16", "bf16"};
    const uint32_t type = (uint32_t)lilac_random_below(random, 3);
    const uint32_t way = (uint32_t)lilac_random_below(random, 3);
    for (uint32_t half = 0; half < 2; half++) {
        const bool is_signed = forms[number[half]].is_signed;
        const char *convert = is_signed ? "s2f" : "u2f";
        char name[16];
        snprintf(name, sizeof name, "%u_%u", stores, half);
        lilac_text_printf(out, "%%b%s = bitcast %%w%u_%u : i8\n", name,
                          (uint32_t)lilac_random_below(random, 2), at[half]);
        put_form(out, number[half], name);
        lilac_text_printf(out, "%%e%s = %s %%v%u_%s : %s\n", name,
                          way == 1 ? is_signed ? "sext" : "zext" : "bitcast", number[half], name,
                          way == 1 ? "i32" : "i8");
        if (type == 0 || (type == 1 && way == 2)) {
            lilac_text_printf(out, "%%x%s = %s %%e%s : %s\n", name, convert, name, types[type]);
        } else {
            lilac_text_printf(out, "%%y%s = %s %%e%s : f32\n%%x%s = fcvt %%y%s : %s\n", name,
                              convert, name, name, name, types[type]);
        }
    }
    if (type == 0 || lilac_random_below(random, 2) == 0) {
        lilac_text_printf(out,
                          "st.global [%%out + %u], (%%x%u_0)\nst.global [%%out + %u], (%%x%u_1)\n",
                          8 * stores, stores, 8 * stores + 4, stores);
    } else {
        lilac_text_printf(out,
                          "%%p%u = pack %%x%u_0, %%x%u_1 : i32\nst.global [%%out + %u], (%%p%u)\n",
                          stores, stores, stores, 8 * stores, stores);
    }
    return (forms[form].known ? 0 : 1) + (forms[other].known ? 0 : 1);
}

static void write_kernel(lilac_text *out, lilac_random *random, uint32_t *left) {
    lilac_text_printf(
        out,
        "simt.module target \"sm_90a\" {\nkernel @k(%%i: i64 ptr align 16, %%o: i64 ptr align 16) "
        "warps "
        "%d ctas 1 shared 0 {\n%%pi = param 0 : i64\n%%po = param 1 : i64\n%%t = thread : i32\n"
        "%%ci = const 8 : i32\n%%co = const %d : i32\n%%oi = mulwide_u %%t, %%ci : i64\n"
        "%%oo = mulwide_u %%t, %%co : i64\n%%in = add %%pi, %%oi : i64\n%%out = add %%po, %%oo : "
        "i64\n"
        "%%four = const 4 : i8\n%%fifteen = const 15 : i8\n%%minus = const -8 : i8\n%%three = "
        "const 3 : i8\n"
        "%%w0 = ld.global [%%in] : i32\n%%w1 = ld.global [%%in + 4] : i16\n%%w2 = ld.global [%%in "
        "+ 6] : i16\n"
        "%%w0_0, %%w0_1, %%w0_2, %%w0_3 = unpack %%w0 : i8, i8, i8, i8\n"
        "%%w1_0, %%w1_1 = unpack %%w1 : i8, i8\n%%w1_2, %%w1_3 = unpack %%w2 : i8, i8\n",
        THREADS / 32, 8 * (STORES + REST));
    for (uint32_t n = 0; n < STORES; n++) {
        *left += put_values(out, random, n);
    }
    /* masked words */
    lilac_text_puts(out,
                    "%few = const 8388607 : i32\n%m = and %w0, %few : i32\n%s0 = s2f %m : f32\n"
                    "%s1 = u2f %m : f32\n");
    for (uint32_t k = 0; k < 2 * REST; k++) {
        lilac_text_printf(out, "st.global [%%out + %u], (%%s%u)\n", 8 * STORES + 4 * k, k);
    }
    lilac_text_puts(out, "return\n}\n}\n");
}

static uint32_t conversions(const lilac_simt_kernel *kernel) {
    uint32_t count = 0;
    for (const lilac_simt_instruction *i = kernel->body->first; i != NULL; i = i->next) {
        count += i->code == LILAC_SIMT_OP_S2F || i->code == LILAC_SIMT_OP_U2F;
    }
    return count;
}

static void the_same_bits(void **state) {
    (void)state;
    static uint32_t in[THREADS][2], before[THREADS][WORDS], after[THREADS][WORDS];
    lilac_random random;
    lilac_random_seed(&random, 8);
    for (uint32_t t = 0; t < THREADS; t++) { /* each byte in each place */
        in[t][0] = (t & 0xFF) * 0x01010101U;
        in[t][1] = (uint32_t)lilac_random_next(&random);
    }
    for (uint32_t n = 0; n < scaled(LAUNCHES); n++) {
        lilac_text text = {0};
        uint32_t left = 0;
        write_kernel(&text, &random, &left);
        lilac_context *context = lilac_context_create();
        const uint32_t source = lilac_source_add(context, "k", text.bytes, text.length);
        lilac_simt_module *plain = lilac_simt_read(context, source);
        lilac_simt_module *made = lilac_simt_read(context, source);
        if (plain == NULL || made == NULL) {
            fail_with_diagnostics(context, "the kernel was refused");
        }
        (void)lilac_simt_opt_fold(plain->kernels);
        (void)lilac_simt_opt_fold(made->kernels);
        assert_true(lilac_simt_opt_convert_bytes(made->kernels));
        (void)lilac_simt_opt_dce(made->kernels);
        assert_true(lilac_simt_verify(made));
        assert_int_equal(conversions(made->kernels), left);
        memset(before, 0, sizeof before);
        memset(after, 0, sizeof after);
        assert_true(run_in_out(context, plain->kernels, in, sizeof in, before, sizeof before));
        assert_true(run_in_out(context, made->kernels, in, sizeof in, after, sizeof after));
        for (uint32_t t = 0; t < THREADS; t++) {
            for (uint32_t k = 0; k < WORDS; k++) {
                if (before[t][k] != after[t][k]) {
                    fail_msg("%s\nbytes %08X %08X, store %u: %08X, not %08X", lilac_text_get(&text),
                             in[t][0], in[t][1], k, after[t][k], before[t][k]);
                }
            }
        }
        lilac_simt_module_destroy(plain);
        lilac_simt_module_destroy(made);
        lilac_context_destroy(context);
        lilac_text_clear(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
