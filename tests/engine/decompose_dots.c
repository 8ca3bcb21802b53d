/* decompose_dots: a program and what the pass makes of it have one meaning, by the reference
 * interpreter: on the samples with dots, on random programs, and on products whose results are known.
 * Afterwards no tt.dot_scaled is left, no dot has a precision of several products, and no operand has
 * 8-bit floats that the device does not multiply. */
#define _POSIX_C_SOURCE 200809L

#include "support/random_programs.h"
#include "support/test.h"

#include <lilac/engine.h>
#include <lilac/matrix.h>

#include <dirent.h>
#include <math.h>
#include <stdlib.h>

/* ---- what is left ------------------------------------------------------------------------ */

typedef struct remains {
    const lilac_arch *arch;
    uint32_t dots, scaled, split, narrow;
} remains;

static lilac_scalar scalar_of(const lilac_tile_type *type) {
    return lilac_tile_element(type)->scalar;
}

/* By the first capability with a matrix instruction for 8-bit floats. */
static bool multiplies(const lilac_arch *arch, lilac_scalar a, lilac_scalar b, lilac_scalar d) {
    const bool known =
        (a == LILAC_F8E4M3FN || a == LILAC_F8E5M2) && (b == LILAC_F8E4M3FN || b == LILAC_F8E5M2);
    return known && arch->vendor == LILAC_NVIDIA && arch->capability >= 89 &&
           (d == LILAC_F32 || d == LILAC_F16);
}

static void look_at(void *data, lilac_tile_op *op) {
    remains *r = data;
    r->scaled += op->code == LILAC_TILE_OP_TT_DOT_SCALED;
    if (op->code != LILAC_TILE_OP_TT_DOT) {
        return;
    }
    r->dots++;
    lilac_name precision = lilac_tile_find_text(&op->attributes, "inputPrecision");
    lilac_scalar a = scalar_of(op->operands[0].value->type);
    lilac_scalar b = scalar_of(op->operands[1].value->type);
    r->split += a == LILAC_F32 && precision != NULL && strchr(precision, 'x') != NULL;
    if (lilac_scalar_bits(a) == 8 && a != LILAC_I8) {
        r->narrow += !multiplies(r->arch, a, b, scalar_of(op->results[0].type));
    }
}

/* ---- one program -------------------------------------------------------------------------- */

typedef struct tally {
    uint32_t same, undetermined, changed;
    uint64_t exact, within, open;
    double worst;
} tally;

static lilac_tile_module *decomposed(lilac_context *context, const char *text,
                                     const lilac_arch *arch, bool *changed) {
    const lilac_target target = {.arch = arch, .num_warps = 4, .num_ctas = 1, .num_stages = 1};
    lilac_tile_module *module =
        lilac_tile_read(context, lilac_source_add(context, "program.ttir", text, strlen(text)));
    if (module == NULL || !lilac_tile_verify(module, false) ||
        !lilac_engine_decompose_dots(module, &target, changed) ||
        !lilac_tile_verify(module, false)) {
        print_diagnostics(context);
        fail_msg("%s", text);
    }
    return module;
}

static void check_program(tally *t, const program *p, const lilac_arch *arch, const char *name) {
    lilac_context *context = lilac_context_create();
    bool changed = false;
    lilac_tile_module *module = decomposed(context, lilac_text_get(&p->text), arch, &changed);
    remains left = {.arch = arch};
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        lilac_tile_walk(f->body, look_at, &left);
    }
    assert_int_equal(left.scaled + left.split + left.narrow, 0);
    assert_true(left.dots > 0);
    program_comparison j = program_compare_within(p, module);
    if (j.outcome != PROGRAM_SAME && j.outcome != PROGRAM_UNDETERMINED) {
        fputs(lilac_text_get(&p->text), stderr);
        fail_msg("%s on %s: %s", name, arch->name, j.why);
    }
    if (j.outcome == PROGRAM_UNDETERMINED) {
        print_message("%s: %s\n", name, j.why);
    }
    t->same += j.outcome == PROGRAM_SAME;
    t->undetermined += j.outcome == PROGRAM_UNDETERMINED;
    t->changed += changed;
    t->exact += j.exact;
    t->within += j.within;
    t->open += j.open;
    t->worst = fmax(t->worst, j.worst);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void report(const tally *t, const char *what) {
    print_message("%s: %u the same, %u undetermined; %u changed; elements: %llu exact, %llu within "
                  "their error (at most %.2f of it), %llu open\n",
                  what, t->same, t->undetermined, t->changed, (unsigned long long)t->exact,
                  (unsigned long long)t->within, t->worst, (unsigned long long)t->open);
}

static const lilac_arch *device(uint32_t i) {
    static const char *const names[] = {"sm_80", "sm_89", "sm_90a", "sm_100a"};
    return lilac_arch_find(names[i % 4]);
}

/* ---- random programs ----------------------------------------------------------------------- */

static void try_random(bool scaled_dots, uint32_t count, const char *what) {
    tally t = {0};
    uint64_t features = 0;
    for (uint32_t i = 0; program_feature(i) != NULL; i++) {
        features |= 1ULL << i;
    }
    const char *one = getenv("LILAC_TEST_SEED");
    uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + (one != NULL ? 1 : count); seed++) {
        program p;
        program_choices choices;
        char name[64];
        program_choices_seed(&choices, seed);
        program_generate_dots(&p, &choices, features, 6, scaled_dots);
        snprintf(name, sizeof name, "seed %llu", (unsigned long long)seed);
        check_program(&t, &p, device((uint32_t)seed), name);
        program_clear(&p);
    }
    report(&t, what);
    if (one == NULL) {
        assert_true(2 * t.same > count && 4 * t.changed > count);
        assert_true(t.exact + t.within > 2 * t.open);
    }
}

static uint32_t programs_to_try(uint32_t usual) {
#ifndef __OPTIMIZE__
    usual /= 10;
#endif
    return scaled(usual);
}

static void random_dots(void **state) {
    (void)state;
    try_random(false, programs_to_try(120), "programs");
}

static void random_scaled_dots(void **state) {
    (void)state;
    try_random(true, programs_to_try(120), "programs with scaled dots");
}

/* ---- samples ----------------------------------------------------------------------------- */

static void check_sample(tally *t, const char *name, const char *text, size_t length,
                         uint32_t seed) {
    program p;
    if (program_of_text(&p, text, length, 4, 1 << 17)) {
        p.data_seed = seed;
        p.plain_data = seed % 2 != 0;
        check_program(t, &p, device(seed / 2), name);
    }
    program_clear(&p);
}

static void samples(void **state) {
    (void)state;
    static const char folder[] = LILAC_TEST_DATA "/ttir";
    tally t = {0};
    uint32_t found = 0;
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        const char *end = strrchr(entry->d_name, '.');
        size_t length = 0;
        char *text = end != NULL && strcmp(end, ".ttir") == 0 ? read_file(path, &length) : NULL;
        if (text != NULL && strstr(text, "tt.dot") != NULL) {
            found++;
            check_sample(&t, entry->d_name, text, length, found);
        }
        free(text);
    }
    closedir(directory);
    report(&t, "samples");
    assert_true(found >= 120 && t.same >= 100);
}

/* ---- known results ------------------------------------------------------------------------- */

/* Products of constant matrices: A is 16 × 32 numbers, B 32 × 16, C is zero. */
static const struct {
    const char *constants, *product;
    double wanted;
} known[] = {
/* clang-format off */
#define F32(a, b) "%a = arith.constant dense<" a "> : tensor<16x32xf32>\n"                          \
                  "%b = arith.constant dense<" b "> : tensor<32x16xf32>\n"
#define DOT(precision) "%d = tt.dot %a, %b, %c, inputPrecision = " precision                        \
                       " : tensor<16x32xf32> * tensor<32x16xf32> -> tensor<16x16xf32>\n"
    /* infinities have NaNs as their other pieces */
    {F32("0x7F800000", "1.0"), DOT("tf32x3"), INFINITY},
    {F32("2.0", "0xFF800000"), DOT("bf16x3"), -INFINITY},
    {F32("0x7F800000", "1.0"), DOT("bf16x6"), INFINITY},
    {F32("0x7F800000", "0.0"), DOT("bf16x6"), NAN},
    {F32("0x7FC00000", "1.0"), DOT("tf32x3"), NAN},
    /* 1 + 2^-20: 21 bits, more than one piece holds */
    {F32("0x3F800008", "1.0"), DOT("tf32x3"), 32 + 0x1p-15},
    /* 1 + 2^-15, in two pieces of bf16; 1 + 2^-23 in three */
    {F32("0x3F800100", "1.0"), DOT("bf16x3"), 32 + 0x1p-10},
    {F32("1.0", "0x3F800001"), DOT("bf16x6"), 32 + 0x1p-18},
    {F32("0x3F800001", "1.0"), DOT("bf16x6"), 32 + 0x1p-18},
    /* (1 + 2^-9)², of which the last term is the product of the second pieces */
    {F32("0x3F804000", "0x3F804000"), DOT("bf16x6"), 32 + 0x1p-3 + 0x1p-13},
    /* bytes of e4m3: 56 is 1; of e2m1: 0x52 is 1 and 3, 0x22 is 1 and 1 */
#define SCALED(a, rows, columns, scale, b, type)                                                    \
    "%a = arith.constant dense<" a "> : tensor<" #rows "x" #columns "xi8>\n"                        \
    "%s = arith.constant dense<" scale "> : tensor<16x1xi8>\n"                                      \
    "%b = arith.constant dense<" b "> : tensor<32x16x" type ">\n"
#define DOT_SCALED(kind, rows, columns, other, type, attributes)                                    \
    "%d = tt.dot_scaled %a scale %s, %b, %c lhs = " kind " rhs = " other " {" attributes            \
    "} : tensor<" #rows "x" #columns "xi8>, tensor<16x1xi8> * tensor<32x16x" type "> -> "           \
    "tensor<16x16xf32>\n"
    {SCALED("56", 16, 32, "120", "2.0", "bf16"),
     DOT_SCALED("e4m3", 16, 32, "bf16", "bf16", "fastMath = false"), 0.5},
    {SCALED("56", 16, 32, "0", "2.0", "bf16"),
     DOT_SCALED("e4m3", 16, 32, "bf16", "bf16", "fastMath = false"), 0},
    {SCALED("56", 16, 32, "-1", "2.0", "bf16"),
     DOT_SCALED("e4m3", 16, 32, "bf16", "bf16", "fastMath = false"), NAN},
    {SCALED("56", 16, 32, "-1", "2.0", "f16"),
     DOT_SCALED("e4m3", 16, 32, "fp16", "f16", "fastMath = false"), NAN},
    {SCALED("0", 16, 32, "-1", "2.0", "bf16"),
     DOT_SCALED("e4m3", 16, 32, "bf16", "bf16", "fastMath = false"), NAN},
    {SCALED("56", 16, 32, "-1", "2.0", "bf16"),
     DOT_SCALED("e4m3", 16, 32, "bf16", "bf16", "fastMath = true"), INFINITY},
    /* 2^17 is no f16, but a bf16 */
    {SCALED("56", 16, 32, "-112", "1.0", "f16"),
     DOT_SCALED("e4m3", 16, 32, "fp16", "f16", "fastMath = false"), INFINITY},
    {SCALED("56", 16, 32, "-112", "1.0", "bf16"),
     DOT_SCALED("e4m3", 16, 32, "bf16", "bf16", "fastMath = false"), 0x1p22},
    {SCALED("82", 16, 16, "127", "1.0", "f16"),
     DOT_SCALED("e2m1", 16, 16, "fp16", "f16", "fastMath = false"), 64},
    {SCALED("82", 8, 32, "127", "1.0", "bf16"),
     DOT_SCALED("e2m1", 8, 32, "bf16", "bf16", "fastMath = false, lhs_k_pack = false"), 32},
    /* clang-format on */
};

static double first_result(const lilac_tile_module *module) {
    float result[256];
    const uint64_t address = 1 << 20;
    interpreter_buffer buffer = {
        .address = address, .size = sizeof result, .bytes = (uint8_t *)result};
    interpreter_run run = {.module = module,
                           .arguments = &address,
                           .argument_count = 1,
                           .grid = {1, 1, 1},
                           .buffers = &buffer,
                           .buffer_count = 1};
    assert_int_equal(interpreter_execute(&run), INTERPRETER_DONE);
    interpreter_buffer_clear(&buffer);
    return (double)result[0];
}

static void known_results(void **state) {
    (void)state;
    for (uint32_t i = 0; i < sizeof known / sizeof *known; i++) {
        lilac_context *context = lilac_context_create();
        lilac_text text = {0};
        bool changed;
        lilac_text_printf(
            &text,
            "module {\ntt.func public @k(%%o: !tt.ptr<f32>) {\n%s"
            "%%c = arith.constant dense<0.0> : tensor<16x16xf32>\n%s"
            "%%e = tt.reshape %%d : tensor<16x16xf32> -> tensor<256xf32>\n"
            "%%i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>\n"
            "%%p = tt.splat %%o : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>\n"
            "%%q = tt.addptr %%p, %%i : tensor<256x!tt.ptr<f32>>, tensor<256xi32>\n"
            "tt.store %%q, %%e : tensor<256x!tt.ptr<f32>>\ntt.return\n}\n}\n",
            known[i].constants, known[i].product);
        uint32_t source = lilac_source_add(context, "known.ttir", text.bytes, text.length);
        lilac_tile_module *before = lilac_tile_read(context, source);
        lilac_tile_module *after = decomposed(context, lilac_text_get(&text), device(0), &changed);
        const double wanted = known[i].wanted;
        const double got[2] = {first_result(before), first_result(after)};
        for (uint32_t k = 0; k < 2; k++) {
            if (isnan(wanted) ? !isnan(got[k]) : got[k] != wanted) {
                fail_msg("case %u, %s: %g, not %g", i, k == 0 ? "before" : "after", got[k], wanted);
            }
        }
        assert_true(changed);
        lilac_tile_module_destroy(before);
        lilac_tile_module_destroy(after);
        lilac_text_clear(&text);
        lilac_context_destroy(context);
    }
}

/* ---- refusals ------------------------------------------------------------------------------ */

static void types_without_numbers_are_refused(void **state) {
    (void)state;
    static const char text[] =
        "module {\ntt.func public @k(%a: tensor<16x32xi8>, %b: tensor<32x16xbf16>, %c: "
        "tensor<16x16xf32>) {\n%d = tt.dot_scaled %a, %b, %c lhs = e3m2 rhs = bf16 {fastMath = "
        "false} : tensor<16x32xi8> * tensor<32x16xbf16> -> tensor<16x16xf32>\ntt.return\n}\n}\n";
    const lilac_target target = {.arch = device(0), .num_warps = 4, .num_ctas = 1, .num_stages = 1};
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module =
        lilac_tile_read(context, lilac_source_add(context, "e3m2.ttir", text, strlen(text)));
    bool changed;
    assert_non_null(module);
    assert_true(lilac_tile_verify(module, false));
    assert_false(lilac_engine_decompose_dots(module, &target, &changed));
    const lilac_diagnostic *d = lilac_diagnostics(context);
    assert_string_equal(d->id, "unsupported-operation");
    assert_non_null(strstr(d->message, "operand A of type e3m2"));
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_results),
        cmocka_unit_test(random_dots),
        cmocka_unit_test(random_scaled_dots),
        cmocka_unit_test(samples),
        cmocka_unit_test(types_without_numbers_are_refused),
    };
    cmocka_set_test_filter(getenv("LILAC_TEST_ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
