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

/* Compiles the text for a device, warps and stages (0: the usual ones); the metadata and whether
 * there are tensor copies. */
static bool compile_text(const lilac_text *text, const char *device, uint32_t warps,
                         uint32_t stages, lilac_text *metadata, bool *copies) {
    lilac_context *context = lilac_context_create();
    lilac_options options;
    lilac_compilation compilation = {0};
    lilac_options_init(&options);
    options.verify = true;
    options.target.arch = lilac_arch_find(device != NULL ? device : "sm_90a");
    options.target.num_warps = warps != 0 ? warps : options.target.num_warps;
    options.target.num_stages = stages != 0 ? stages : options.target.num_stages;
    const uint32_t source = lilac_source_add(context, "k.ttir", lilac_text_get(text), text->length);
    const bool good = lilac_compile(&compilation, context, source, &options);
    if (good) {
        lilac_compilation_json(metadata, &compilation, &options);
        *copies = strstr(lilac_text_get(&compilation.ptx), "cp.async.bulk.tensor") != NULL;
    } else {
        fail_msg("%s\n%s", lilac_diagnostics(context)->message, lilac_text_get(text));
    }
    lilac_compilation_clear(&compilation);
    lilac_context_destroy(context);
    return good;
}

static bool compile(const variation *v, lilac_text *metadata, bool *copies) {
    lilac_text text = {0};
    put_kernel(&text, v);
    const bool good = compile_text(&text, v->device, 0, 0, metadata, copies);
    lilac_text_clear(&text);
    return good;
}

static void put_map(lilac_text *t, uint32_t swizzle, uint32_t bytes, uint32_t type, uint32_t rows,
                    uint32_t columns) {
    lilac_text_printf(
        t,
        "{\"swizzle\": %u, \"elem_size\": %u, \"elem_type\": %u, \"block_size\": [%u, "
        "%u], \"fp4_padded\": false}",
        swizzle, bytes, type, rows, columns);
}

/* The map of %o, whose blocks are rows × rows sums of 32 bits. */
static void put_map_of_sums(lilac_text *t, const variation *v) {
    const uint32_t columns = v->rows < 32 ? v->rows : 32;
    const uint32_t swizzle = v->rows < 8 ? 0 : columns == 32 ? 3 : columns == 16 ? 2 : 1;
    put_map(t, swizzle, 4, v->sum[0] == 'i' ? 2 : 7, v->rows, columns);
}

static bool is_descriptor(const lilac_text *metadata, const char *name) {
    char wanted[64];
    (void)snprintf(wanted, sizeof wanted, "{\"name\": \"%s\", \"type\": \"!tt.tensordesc<", name);
    return strstr(metadata->bytes, wanted) != NULL;
}

/* The metadata must have this description of %d's map ("": it has none), and one of %o's, which is
 * stored, where `stores`. */
static void expect(const variation *v, const char *map, bool stores) {
    bool copies = false;
    lilac_text metadata = {0}, wanted = {0};
    assert_true(compile(v, &metadata, &copies));
    lilac_text_puts(&wanted, "\"tensordesc_meta\": [");
    if (map[0] != '\0' || stores) {
        lilac_text_printf(&wanted, "%s, ", map[0] != '\0' ? map : "null");
    }
    if (stores) {
        put_map_of_sums(&wanted, v);
    }
    lilac_text_puts(&wanted, "]");
    if (strstr(lilac_text_get(&metadata), lilac_text_get(&wanted)) == NULL) {
        fail_msg("expected %s in %s", lilac_text_get(&wanted), lilac_text_get(&metadata));
    }
    assert_int_equal(is_descriptor(&metadata, "d"), map[0] != '\0');
    assert_int_equal(is_descriptor(&metadata, "o"), stores);
    assert_int_equal(copies, map[0] != '\0' || stores);
    /* the parts of a map are no parameters */
    assert_int_equal(strstr(lilac_text_get(&metadata), "\"d_stride0\"") == NULL, map[0] != '\0');
    assert_int_equal(strstr(lilac_text_get(&metadata), "\"o_stride0\"") == NULL, stores);
    lilac_text_clear(&metadata);
    lilac_text_clear(&wanted);
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
        expect(&v, cases[i].map, true);
    }
}

static void other_descriptors_are_parts(void **state) {
    variation v = usual;
    (void)state;
    v.straight = true; /* no loop */
    expect(&v, "", true);
    v = usual;
    v.device = "sm_80";
    expect(&v, "", false);
    v = usual;
    v.device = "sm_120a"; /* no wgmma */
    expect(&v, "", false);
    v = usual; /* rows of 16 bytes */
    v.element = "i8", v.shape = "64x16", v.turned = "16x64", v.rows = 64, v.sum = "i32";
    expect(&v, "", true);
    v = usual; /* four rows */
    v.shape = "4x64", v.turned = "64x4", v.rows = 4;
    expect(&v, "", true);
    v = usual; /* a store through it */
    v.inside = "    tt.descriptor_store %d[%c0, %k], %a : !tt.tensordesc<tensor<128x64xf16>>, "
               "tensor<128x64xf16>\n";
    expect(&v, "", true);
    v = usual; /* a reduction */
    v.behind =
        "    %y = tt.descriptor_load %d[%c0, %c0] : !tt.tensordesc<tensor<128x64xf16>> -> "
        "tensor<128x64xf16>\n"
        "    tt.descriptor_reduce add, %d[%c0, %c0], %y : !tt.tensordesc<tensor<128x64xf16>>, "
        "tensor<128x64xf16>\n";
    expect(&v, "", true);
}

/* Compiles a kernel with one more descriptor, %e of this type, and these lines in the loop. Is it
 * a tensor map? */
static bool is_map(const char *type, const char *inside, const char *behind) {
    bool copies;
    lilac_text text = {0}, wide = {0}, metadata = {0};
    variation v = usual;
    v.inside = inside;
    v.behind = behind;
    put_kernel(&text, &v);
    const char *parameter = strstr(lilac_text_get(&text), "%n: i32");
    lilac_text_printf(&wide, "%.*s%%e: !tt.tensordesc<%s>, %s",
                      (int)(parameter - lilac_text_get(&text)), lilac_text_get(&text), type,
                      parameter);
    assert_true(compile_text(&wide, NULL, 0, 0, &metadata, &copies));
    const char *json = lilac_text_get(&metadata), *meta = strstr(json, "\"tensordesc_meta\": [{");
    assert_non_null(meta); /* %d is one */
    uint32_t maps = 0;
    for (const char *at = meta; (at = strstr(at, "\"swizzle\"")) != NULL; at++) {
        maps++;
    }
    const bool found = maps == 3; /* %o, too */
    assert_true(maps == 2 || maps == 3);
    assert_int_equal(found, strstr(json, "\"e_shape0\"") == NULL);
    lilac_text_clear(&text);
    lilac_text_clear(&wide);
    lilac_text_clear(&metadata);
    return found;
}

#define LOAD(block, at, tensor)                                                                    \
    "    %y = tt.descriptor_load %e[" at "] : !tt.tensordesc<" block "> -> " tensor "\n"

/* Descriptors beside one that is a tensor map. */
static void loads_of_other_blocks(void **state) {
    static const struct {
        const char *type, *inside, *behind;
        bool map;
    } cases[] = {
        {"tensor<64x64xf32>", LOAD("tensor<64x64xf32>", "%c0, %k", "tensor<64x64xf32>"), "", true},
        {"tensor<64x64xui8>", LOAD("tensor<64x64xui8>", "%c0, %k", "tensor<64x64xi8>"), "", true},
        {"tensor<256x32xf32>", LOAD("tensor<256x32xf32>", "%c0, %k", "tensor<256x32xf32>"), "",
         true},
        /* no load in a loop with a product */
        {"tensor<64x64xf32>", "", LOAD("tensor<64x64xf32>", "%c0, %c1", "tensor<64x64xf32>"),
         false},
        {"tensor<64x64xf32>", "", "", false},
        /* another shape or rank; dimensions of size 1 do not count */
        {"tensor<64x64xf32>", LOAD("tensor<64x64xf32>", "%c0, %k", "tensor<4096xf32>"), "", false},
        {"tensor<1x64x64xf32>", LOAD("tensor<1x64x64xf32>", "%c0, %c0, %k", "tensor<64x64xf32>"),
         "", true},
        {"tensor<64xf32>", LOAD("tensor<64xf32>", "%k", "tensor<64xf32>"), "", false},
        {"tensor<32x32xf64>", LOAD("tensor<32x32xf64>", "%c0, %k", "tensor<32x32xf64>"), "", true},
        /* two boxes, one below the other */
        {"tensor<512x32xf16>", LOAD("tensor<512x32xf16>", "%c0, %k", "tensor<512x32xf16>"), "",
         true},
        /* more than half of the shared memory */
        {"tensor<128x256xf32>", LOAD("tensor<128x256xf32>", "%c0, %k", "tensor<128x256xf32>"), "",
         false},
        /* a gather of rows */
        {"tensor<1x64xf32>",
         "    %rows = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>\n"
         "    %y = tt.descriptor_gather %e[%rows, %k] : (!tt.tensordesc<tensor<1x64xf32>>, "
         "tensor<64xi32>, "
         "i32) -> tensor<64x64xf32>\n",
         "", false},
        /* a loop passes the descriptor on */
        {"tensor<64x64xf32>", LOAD("tensor<64x64xf32>", "%c0, %k", "tensor<64x64xf32>"),
         "    %f = scf.for %q = %c0 to %n step %c1 iter_args(%g = %e) -> "
         "(!tt.tensordesc<tensor<64x64xf32>>)  "
         ": i32 {\n    scf.yield %g : !tt.tensordesc<tensor<64x64xf32>>\n    }\n",
         false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (is_map(cases[i].type, cases[i].inside, cases[i].behind) != cases[i].map) {
            fail_msg("case %zu: %s", i, cases[i].type);
        }
    }
}

/* M and N are sizes. */
static const char sum_of_tiles[] =
    "module {\n"
    "  tt.func public @k(%a: !tt.tensordesc<tensor<Mx64xf16>>, %b: "
    "!tt.tensordesc<tensor<64xNxf16>>, "
    "%e: !tt.tensordesc<tensor<MxNxf32>>, %o: !tt.tensordesc<tensor<MxNxf32>>, %n: i32) {\n"
    "    %c0 = arith.constant 0 : i32\n"
    "    %step = arith.constant 64 : i32\n"
    "    %z = arith.constant dense<0.0> : tensor<MxNxf32>\n"
    "    %r = scf.for %k = %c0 to %n step %step iter_args(%c = %z) -> (tensor<MxNxf32>)  : i32 {\n"
    "      %x = tt.descriptor_load %a[%c0, %k] : !tt.tensordesc<tensor<Mx64xf16>> -> "
    "tensor<Mx64xf16>\n"
    "      %y = tt.descriptor_load %b[%k, %c0] : !tt.tensordesc<tensor<64xNxf16>> -> "
    "tensor<64xNxf16>\n"
    "      %s = tt.dot %x, %y, %c : tensor<Mx64xf16> * tensor<64xNxf16> -> tensor<MxNxf32>\n"
    "      %f = tt.descriptor_load %e[%k, %c0] : !tt.tensordesc<tensor<MxNxf32>> -> "
    "tensor<MxNxf32>\n"
    "      %t = arith.addf %s, %f : tensor<MxNxf32>\n"
    "      scf.yield %t : tensor<MxNxf32>\n"
    "    }\n"
    "    tt.descriptor_store %o[%c0, %c0], %r : !tt.tensordesc<tensor<MxNxf32>>, tensor<MxNxf32>\n"
    "    tt.return\n"
    "  }\n"
    "}\n";

static void put_sized(lilac_text *t, const char *text, uint32_t m, uint32_t n) {
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == 'M' || *at == 'N') {
            lilac_text_printf(t, "%u", *at == 'M' ? m : n);
        } else {
            lilac_text_char(t, *at);
        }
    }
}

/* The tile that is added has no ring: the rings leave room for its copy, or it is no tensor map. */
static void copies_without_rings_fit(void **state) {
    static const struct {
        uint32_t m, n, stages;
        bool map;
    } cases[] = {{128, 128, 5, true},  {256, 64, 5, true},   {128, 256, 2, false},
                 {128, 256, 3, false}, {256, 256, 1, false}, {256, 256, 2, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_text text = {0}, metadata = {0};
        bool copies = false;
        put_sized(&text, sum_of_tiles, cases[i].m, cases[i].n);
        assert_true(compile_text(&text, NULL, 8, cases[i].stages, &metadata, &copies));
        assert_true(copies);
        assert_int_equal(strstr(lilac_text_get(&metadata), "\"e_shape0\"") == NULL, cases[i].map);
        lilac_text_clear(&text);
        lilac_text_clear(&metadata);
    }
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
    expect(&v, MAP(3, 2, 6, 128, 64), true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_have_boxes),       cmocka_unit_test(other_descriptors_are_parts),
        cmocka_unit_test(loads_of_other_blocks), cmocka_unit_test(copies_without_rings_fit),
        cmocka_unit_test(all_loads_are_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
