/* Persistent products through tensor descriptors, those of the host and those that the kernel makes, from TTIR
 * to the simulator: the products are right, the simulator reports nothing, and stores and reductions are
 * tensor copies. It finds each missing wait, fence, barrier and acquisition. */
#include "support/lower_harness.h"

#include <lilac/engine.h>
#include <lilac/tile_loops.h>

enum { TILE = 64, DEPTH = 32, MOST = 3 * TILE + 8, WARPS = 4, PROGRAMS = 2 };

typedef enum form { HOST, MADE, SUM } form; /* SUM: the kernel adds to C, two halves of a tile */

/* The kernel; N, M and K are multiples of 8. */
static void put_kernel(lilac_text *t, form f) {
    const bool made = f == MADE;
    lilac_text_puts(
        t, made
               ? "module {\n  tt.func public @k(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: "
                 "!tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = "
                 "16 : i32}, "
               : "module {\n  tt.func public @k(%da: !tt.tensordesc<tensor<64x32xf16>>, %db: "
                 "!tt.tensordesc<tensor<64x32xf16>>, %dc: ");
    lilac_text_puts(t, made       ? ""
                       : f == SUM ? "!tt.tensordesc<tensor<64x32xf32>>, "
                                  : "!tt.tensordesc<tensor<64x64xf32>>, ");
    lilac_text_puts(t,
                    "%M: i32, %N: i32, %K: i32) {\n"
                    "    %c0 = arith.constant 0 : i32\n    %c1 = arith.constant 1 : i32\n"
                    "    %c32 = arith.constant 32 : i32\n    %c63 = arith.constant 63 : i32\n"
                    "    %c64 = arith.constant 64 : i32\n    %one = arith.constant 1 : i64\n"
                    "    %z = arith.constant dense<0.0> : tensor<64x64xf32>\n"
                    "    %programs = arith.constant 2 : i32\n"
                    "    %m0 = arith.addi %M, %c63 : i32\n    %nm = arith.divsi %m0, %c64 : i32\n"
                    "    %n0 = arith.addi %N, %c63 : i32\n    %nn = arith.divsi %n0, %c64 : i32\n"
                    "    %tiles = arith.muli %nm, %nn : i32\n"
                    "    %pid = tt.get_program_id x : i32\n"
                    "    scf.for %t = %pid to %tiles step %programs  : i32 {\n");
    if (made) { /* moves out of the loop */
        lilac_text_puts(
            t, "      %ks = arith.extsi %K : i32 to i64\n      %ns = arith.extsi %N : i32 to i64\n"
               "      %da = tt.make_tensor_descriptor %a, [%M, %K], [%ks, %one] : <f16>, "
               "<tensor<64x32xf16>>\n"
               "      %db = tt.make_tensor_descriptor %b, [%N, %K], [%ks, %one] : <f16>, "
               "<tensor<64x32xf16>>\n"
               "      %dc = tt.make_tensor_descriptor %c, [%M, %N], [%ns, %one] : <f32>, "
               "<tensor<64x64xf32>>\n");
    }
    lilac_text_puts(
        t,
        "      %pm = arith.remsi %t, %nm : i32\n      %pn = arith.divsi %t, %nm : i32\n"
        "      %y = arith.muli %pm, %c64 : i32\n      %x = arith.muli %pn, %c64 : i32\n"
        "      %r = scf.for %k = %c0 to %K step %c32 iter_args(%s = %z) -> (tensor<64x64xf32>)  : "
        "i32 {\n"
        "        %va = tt.descriptor_load %da[%y, %k] : !tt.tensordesc<tensor<64x32xf16>> -> "
        "tensor<64x32xf16>\n"
        "        %vb = tt.descriptor_load %db[%x, %k] : !tt.tensordesc<tensor<64x32xf16>> -> "
        "tensor<64x32xf16>\n"
        "        %vt = tt.trans %vb {order = array<i32: 1, 0>} : tensor<64x32xf16> -> "
        "tensor<32x64xf16>\n"
        "        %d = tt.dot %va, %vt, %s : tensor<64x32xf16> * tensor<32x64xf16> -> "
        "tensor<64x64xf32>\n"
        "        scf.yield %d : tensor<64x64xf32>\n      }\n");
    lilac_text_puts(
        t, f != SUM
               ? "      tt.descriptor_store %dc[%y, %x], %r : !tt.tensordesc<tensor<64x64xf32>>, "
                 "tensor<64x64xf32>\n"
               : "      %r3 = tt.reshape %r : tensor<64x64xf32> -> tensor<64x2x32xf32>\n"
                 "      %r4 = tt.trans %r3 {order = array<i32: 0, 2, 1>} : tensor<64x2x32xf32> -> "
                 "tensor<64x32x2xf32>\n"
                 "      %low, %high = tt.split %r4 : tensor<64x32x2xf32> -> tensor<64x32xf32>\n"
                 "      %x1 = arith.addi %x, %c32 : i32\n"
                 "      tt.descriptor_reduce add, %dc[%y, %x], %low : "
                 "!tt.tensordesc<tensor<64x32xf32>>, tensor<64x32xf32>\n"
                 "      tt.descriptor_reduce add, %dc[%y, %x1], %high : "
                 "!tt.tensordesc<tensor<64x32xf32>>, tensor<64x32xf32>\n");
    lilac_text_puts(t, "    }\n    tt.return\n  }\n}\n");
}

/* ---- running ------------------------------------------------------------------------------ */

/* Removes the line with the last `word` before the first `behind`; NULL: the first line with the word. */
typedef struct mutation {
    form of;
    const char *word, *behind, *id;
} mutation;

static void remove_line(lilac_text *out, const char *text, const mutation *m) {
    const char *at = strstr(text, m->behind != NULL ? m->behind : m->word);
    const size_t length = strlen(m->word);
    assert_non_null(at);
    while (strncmp(at, m->word, length) != 0) {
        assert_true(at > text);
        at--;
    }
    const char *begin = at, *end = strchr(at, '\n') + 1;
    while (begin[-1] != '\n') {
        begin--;
    }
    lilac_text_printf(out, "%.*s%s", (int)(begin - text), text, end);
}

static lilac_simt_module *compile(lilac_context *context, form f, const mutation *mutate) {
    lilac_text text = {0}, mutated = {0};
    const lilac_target target = {
        .arch = lilac_arch_find("sm_90a"), .num_warps = WARPS, .num_ctas = 1, .num_stages = 3};
    put_kernel(&text, f);
    lilac_tile_module *tile = lilac_tile_read(
        context, lilac_source_add(context, "k.ttir", lilac_text_get(&text), text.length));
    if (tile == NULL || !lilac_tile_verify(tile, false) || !lilac_run_tile_passes(tile, &target)) {
        fail_with_diagnostics(context, "the kernel was refused");
    }
    lilac_simt_module *simt = lilac_lower(tile, &target);
    if (simt == NULL) {
        fail_with_diagnostics(context, "the kernel was refused");
    }
    lilac_run_simt_passes(simt);
    lilac_text_reset(&text);
    lilac_simt_print(&text, simt);
    assert_non_null(
        strstr(lilac_text_get(&text), f == SUM ? "cp.tensor.reduce" : "cp.tensor.store"));
    assert_non_null(strstr(lilac_text_get(&text), "cp.tensor.load"));
    assert_int_equal(strstr(lilac_text_get(&text), "tensor_map.publish") != NULL, f == MADE);
    assert_int_equal(simt->kernels->scratch_bytes, f == MADE ? 3 * 128 : 0);
    if (mutate != NULL) {
        lilac_simt_module_destroy(simt);
        remove_line(&mutated, lilac_text_get(&text), mutate);
        simt = lilac_simt_read(
            context, lilac_source_add(context, "k.simt", lilac_text_get(&mutated), mutated.length));
        if (simt == NULL) {
            fail_with_diagnostics(context, "the changed text was refused");
        }
    }
    assert_true(lilac_simt_verify(simt));
    lilac_tile_module_destroy(tile);
    lilac_text_clear(&text);
    lilac_text_clear(&mutated);
    return simt;
}

static uint32_t element(uint32_t row, uint32_t column) {
    return 1 + (row * 7 + column * 5 + row * column) % 3;
}

static lilac_tensor_map map_of(uint64_t address, lilac_tensor_element element, uint32_t rows,
                               uint32_t columns, uint32_t box) {
    const uint32_t bytes = lilac_tensor_element_bytes(element);
    return (lilac_tensor_map){.address = address,
                              .element = element,
                              .rank = 2,
                              .dims = {columns, rows},
                              .strides = {columns * bytes},
                              .box = {box, TILE},
                              .element_strides = {1, 1},
                              .swizzle = lilac_tensor_swizzle_of(box * bytes)};
}

/* Returns the id of the first diagnostic; NULL: there is none, and the product is right. */
static const char *run(form f, uint32_t m, uint32_t n, uint32_t k, const mutation *mutate) {
    static uint16_t a[MOST * MOST], b[MOST * MOST];
    static float c[MOST * MOST];
    static const uint16_t halves[] = {0, 0x3C00, 0x4000, 0x4200};
    static char id[64];
    lilac_context *context = lilac_context_create();
    lilac_simt_module *simt = compile(context, f, mutate);
    for (uint32_t i = 0; i < MOST * MOST; i++) {
        a[i] = halves[element(i / k, i % k)];
        b[i] = halves[element(i % k, i / k)];
        c[i] = f == SUM ? 1 : -1;
    }
    lilac_sim_buffer places[] = {
        {.name = "a", .bytes = (uint8_t *)a, .size = (uint64_t)m * k * 2, .read_only = true},
        {.name = "b", .bytes = (uint8_t *)b, .size = (uint64_t)n * k * 2, .read_only = true},
        {.name = "c", .bytes = (uint8_t *)c, .size = (uint64_t)m * n * 4}};
    lilac_sim_place(places, 3);
    const lilac_tensor_map maps[] = {map_of(places[0].address, LILAC_TENSOR_F16, m, k, DEPTH),
                                     map_of(places[1].address, LILAC_TENSOR_F16, n, k, DEPTH),
                                     map_of(places[2].address, LILAC_TENSOR_F32, m, n, 32)};
    uint64_t arguments[] = {0, 1, 2, m, n, k};
    for (uint32_t i = 0; f == MADE && i < 3; i++) {
        arguments[i] = places[i].address;
    }
    const lilac_sim_launch launch = {.kernel = simt->kernels,
                                     .grid = {PROGRAMS, 1, 1},
                                     .arguments = arguments,
                                     .argument_count = 6,
                                     .tensor_maps = maps,
                                     .tensor_map_count = 3,
                                     .buffers = places,
                                     .buffer_count = 3,
                                     .threads = 1,
                                     .stall_seconds = 0.2,
                                     .instruction_limit = 1 << 22};
    lilac_sim_counters counters;
    const bool good = lilac_sim_run(context, &launch, &counters);
    const lilac_diagnostic *said = lilac_diagnostics(context);
    (void)snprintf(id, sizeof id, "%s", said != NULL ? said->id : good ? "" : "failed");
    for (uint32_t i = 0; id[0] == '\0' && i < m * n; i++) {
        uint32_t sum = f == SUM;
        for (uint32_t j = 0; j < k; j++) {
            sum += element(i / n, j) * element(j, i % n);
        }
        if (c[i] != (float)sum) {
            (void)snprintf(id, sizeof id, "element %u is %g, not %u", i, (double)c[i], sum);
        }
    }
    if (mutate == NULL && id[0] != '\0') {
        print_diagnostics(context);
    }
    lilac_simt_module_destroy(simt);
    lilac_context_destroy(context);
    return id[0] != '\0' ? id : NULL;
}

static void products_are_right(void **state) {
    static const uint32_t sizes[][3] = {{64, 64, 32},   {128, 192, 64}, {136, 200, 72},
                                        {192, 128, 40}, {8, 16, 8},     {200, 64, 96}};
    (void)state;
    for (size_t i = 0; i < 3 * sizeof sizes / sizeof *sizes; i++) {
        const uint32_t *s = sizes[i / 3];
        const char *said = run((form)(i % 3), s[0], s[1], s[2], NULL);
        if (said != NULL) {
            fail_msg("form %zu, %u x %u x %u: %s", i % 3, s[0], s[1], s[2], said);
        }
    }
}

static void mutations_are_found(void **state) {
    static const mutation cases[] = {
        {HOST, "bulk.wait\n", NULL, "copy-source-written"},
        {HOST, "fence.proxy_async", "cp.tensor.store", "missing-proxy-fence"},
        {HOST, "barrier", "cp.tensor.store", "missing-proxy-fence"},
        {HOST, "bulk.commit", NULL, "copy-source-written"},
        {HOST, "bulk.wait_read", NULL, "copy-not-awaited"},
        {SUM, "bulk.wait\n", NULL, "copy-source-written"},
        {SUM, "fence.proxy_async", "cp.tensor.reduce", "missing-proxy-fence"},
        {SUM, "bulk.wait_read", NULL, "copy-not-awaited"},
        {MADE, "tensor_map.acquire", NULL, "tensor-map-not-acquired"},
        {MADE, "tensor_map.publish", NULL, "tensor-map"},
        {MADE, "tensor_map.set", NULL, "uninitialised-read"},
        {MADE, "fence.proxy_async", "cp.tensor.store", "missing-proxy-fence"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *said = run(cases[i].of, 128, 192, 64, &cases[i]);
        if (said == NULL || strcmp(said, cases[i].id) != 0) {
            fail_msg("case %zu, without %s: %s, not %s", i, cases[i].word,
                     said != NULL ? said : "nothing", cases[i].id);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right),
        cmocka_unit_test(mutations_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
