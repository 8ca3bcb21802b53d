/* Which descriptors from the host become tensor maps: tensordesc_meta of the metadata, the
 * parameters, and the tensor copies in the PTX. Kernels are variations of one: a loop that
 * multiplies a block of %d by itself. */

#include <lilac/driver.h>
#include <lilac/engine.h>

#include "support/test.h"

#include <stdio.h>

/* What varies. Empty strings stand for what the usual kernel has. */
typedef struct variation {
    const char *element, *shape, *turned; /* of the block: 128x64, 64x128 */
    uint32_t rows;
    const char *sum;    /* the type of the sums */
    const char *device; /* empty: sm_90a */
    const char *inside; /* a line more in the loop */
    const char *behind; /* a line more behind it */
    bool straight;      /* no loop */
} variation;

static const variation usual = {
    .element = "f16", .shape = "128x64", .turned = "64x128", .rows = 128, .sum = "f32"};

static void put_kernel(lilac_text *t, const variation *v) {
    const char *type = v->element;
    lilac_text_printf(
        t,
        "module {\n  tt.func public @k(%%d: !tt.tensordesc<tensor<%sx%s>>, %%d_0: i32, %%d_1: i32, "
        "%%d_2: i64, %%d_3: i64, %%o: !tt.tensordesc<tensor<%ux%ux%s>>, %%n: i32) {\n",
        v->shape, type, v->rows, v->rows, v->sum);
    lilac_text_printf(t,
                      "    %%c0 = arith.constant 0 : i32\n    %%c1 = arith.constant 64 : i32\n"
                      "    %%z = arith.constant dense<%s> : tensor<%ux%ux%s>\n",
                      v->sum[0] == 'i' ? "0" : "0.0", v->rows, v->rows, v->sum);
    if (!v->straight) {
        lilac_text_printf(t,
                          "    %%r = scf.for %%k = %%c0 to %%n step %%c1 iter_args(%%c = %%z) -> "
                          "(tensor<%ux%ux%s>)  : i32 {\n",
                          v->rows, v->rows, v->sum);
    }
    const char *at = v->straight ? "%c0" : "%k", *sum = v->straight ? "%z" : "%c";
    lilac_text_printf(
        t,
        "    %%a = tt.descriptor_load %%d[%%c0, %s] : !tt.tensordesc<tensor<%sx%s>> -> "
        "tensor<%sx%s>\n"
        "    %%b = tt.trans %%a {order = array<i32: 1, 0>} : tensor<%sx%s> -> tensor<%sx%s>\n",
        at, v->shape, type, v->shape, type, v->shape, type, v->turned, type);
    lilac_text_printf(
        t, "    %%%s = tt.dot %%a, %%b, %s : tensor<%sx%s> * tensor<%sx%s> -> tensor<%ux%ux%s>\n",
        v->straight ? "r" : "s", sum, v->shape, type, v->turned, type, v->rows, v->rows, v->sum);
    lilac_text_puts(t, v->inside != NULL ? v->inside : "");
    if (!v->straight) {
        lilac_text_printf(t, "    scf.yield %%s : tensor<%ux%ux%s>\n    }\n", v->rows, v->rows,
                          v->sum);
    }
    lilac_text_puts(t, v->behind != NULL ? v->behind : "");
    lilac_text_printf(
        t,
        "    tt.descriptor_store %%o[%%c0, %%c0], %%r : !tt.tensordesc<tensor<%ux%ux%s>>, "
        "tensor<%ux%ux%s>\n    tt.return\n  }\n}\n",
        v->rows, v->rows, v->sum, v->rows, v->rows, v->sum);
}

/* Compiles the kernel; the metadata and whether there are tensor copies. */
static bool compile(const variation *v, lilac_text *metadata, bool *copies) {
    lilac_context *context = lilac_context_create();
    lilac_options options;
    lilac_compilation compilation = {0};
    lilac_text text = {0};
    put_kernel(&text, v);
    lilac_options_init(&options);
    options.verify = true;
    options.target.arch = lilac_arch_find(v->device != NULL ? v->device : "sm_90a");
    const uint32_t source = lilac_source_add(context, "k.ttir", lilac_text_get(&text), text.length);
    const bool good = lilac_compile(&compilation, context, source, &options);
    if (good) {
        lilac_compilation_json(metadata, &compilation, &options);
        *copies = strstr(lilac_text_get(&compilation.ptx), "cp.async.bulk.tensor") != NULL;
    } else {
        fail_msg("%s\n%s", lilac_diagnostics(context)->message, lilac_text_get(&text));
    }
    lilac_compilation_clear(&compilation);
    lilac_text_clear(&text);
    lilac_context_destroy(context);
    return good;
}

/* The metadata must have this description of %d's map ("": no map at all). */
static void expect(const variation *v, const char *map) {
    char wanted[256];
    bool copies = false;
    lilac_text metadata = {0};
    assert_true(compile(v, &metadata, &copies));
    const char *separator = map[0] != '\0' ? ", null" : "";
    (void)snprintf(wanted, sizeof wanted, "\"tensordesc_meta\": [%s%s]", map, separator);
    if (strstr(lilac_text_get(&metadata), wanted) == NULL) {
        fail_msg("expected %s in %s", wanted, lilac_text_get(&metadata));
    }
    const bool is_map =
        strstr(lilac_text_get(&metadata), "{\"name\": \"d\", \"type\": \"!tt.tensordesc<") != NULL;
    assert_int_equal(is_map, map[0] != '\0');
    assert_int_equal(copies, map[0] != '\0');
    /* the parts of a map are no parameters */
    assert_int_equal(strstr(lilac_text_get(&metadata), "\"d_stride0\"") == NULL, map[0] != '\0');
    assert_non_null(strstr(lilac_text_get(&metadata), "\"o_stride0\""));
    lilac_text_clear(&metadata);
}

#define MAP(swizzle, size, type, rows, columns)                                                    \
    "{\"swizzle\": " #swizzle ", \"elem_size\": " #size ", \"elem_type\": " #type                  \
    ", \"block_size\": [" #rows ", " #columns "], \"fp4_padded\": false}"

static void maps_have_boxes(void **state) {
    static const struct {
        const char *element, *shape, *turned, *sum, *map;
        uint32_t rows;
    } cases[] = {
        {"f16", "128x64", "64x128", "f32", MAP(3, 2, 6, 128, 64), 128},
        {"bf16", "64x128", "128x64", "f32", MAP(3, 2, 10, 64, 64), 64}, /* two boxes */
        {"f16", "64x32", "32x64", "f32", MAP(2, 2, 6, 64, 32), 64},
        {"f16", "64x16", "16x64", "f32", MAP(1, 2, 6, 64, 16), 64},
        {"f32", "64x64", "64x64", "f32", MAP(3, 4, 7, 64, 32), 64},
        {"f8E4M3FN", "64x32", "32x64", "f32", MAP(1, 1, 0, 64, 32), 64},
        {"i8", "64x128", "128x64", "i32", MAP(3, 1, 0, 64, 128), 64},
        {"f16", "8x64", "64x8", "f32", MAP(3, 2, 6, 8, 64), 8},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        variation v = usual;
        v.element = cases[i].element;
        v.shape = cases[i].shape;
        v.turned = cases[i].turned;
        v.sum = cases[i].sum;
        v.rows = cases[i].rows;
        expect(&v, cases[i].map);
    }
}

static void other_descriptors_are_parts(void **state) {
    variation v = usual;
    (void)state;
    v.straight = true; /* no loop */
    expect(&v, "");
    v = usual;
    v.device = "sm_80";
    expect(&v, "");
    v = usual;
    v.device = "sm_120a"; /* no wgmma */
    expect(&v, "");
    v = usual; /* rows of 16 bytes */
    v.element = "i8", v.shape = "64x16", v.turned = "16x64", v.rows = 64, v.sum = "i32";
    expect(&v, "");
    v = usual; /* four rows */
    v.shape = "4x64", v.turned = "64x4", v.rows = 4;
    expect(&v, "");
    v = usual; /* a store through it */
    v.inside = "    tt.descriptor_store %d[%c0, %k], %a : !tt.tensordesc<tensor<128x64xf16>>, "
               "tensor<128x64xf16>\n";
    expect(&v, "");
    v = usual; /* a reduction */
    v.behind =
        "    %y = tt.descriptor_load %d[%c0, %c0] : !tt.tensordesc<tensor<128x64xf16>> -> "
        "tensor<128x64xf16>\n"
        "    tt.descriptor_reduce add, %d[%c0, %c0], %y : !tt.tensordesc<tensor<128x64xf16>>, "
        "tensor<128x64xf16>\n";
    expect(&v, "");
}

/* A load behind the loop is a tensor copy too. */
static void all_loads_are_copies(void **state) {
    variation v = usual;
    (void)state;
    v.behind = "    %y = tt.descriptor_load %d[%c1, %c0] : !tt.tensordesc<tensor<128x64xf16>> -> "
               "tensor<128x64xf16>\n"
               "    %yt = tt.trans %y {order = array<i32: 1, 0>} : tensor<128x64xf16> -> "
               "tensor<64x128xf16>\n"
               "    %rr = tt.dot %y, %yt, %r : tensor<128x64xf16> * tensor<64x128xf16> -> "
               "tensor<128x128xf32>\n"
               "    tt.descriptor_store %o[%c0, %c1], %rr : !tt.tensordesc<tensor<128x128xf32>>, "
               "tensor<128x128xf32>\n";
    expect(&v, MAP(3, 2, 6, 128, 64));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_have_boxes),
        cmocka_unit_test(other_descriptors_are_parts),
        cmocka_unit_test(all_loads_are_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
