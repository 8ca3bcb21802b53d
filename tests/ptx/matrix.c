/* Matrix instructions in PTX: ptxas takes every row of the tables on every device that has it, in the
 * PTX ISA version that the row says; a pipelined loop of wgmmas is not serialised. */
#define _POSIX_C_SOURCE 200809L /* mkstemp, popen */

#include <lilac/ptx.h>
#include <lilac/simt_matrix.h>

#include "support/assemble.h"
#include "support/test.h"

/* A kernel in the making: operands are loads from its one pointer, results are stores to it. */
typedef struct bench {
    lilac_context *context;
    lilac_simt_module *module;
    lilac_simt_builder b;
    lilac_simt_value pointer;
    int64_t next;
    uint32_t kernels;
} bench;

static void open_module(bench *w, const char *device) {
    *w = (bench){.context = lilac_context_create()};
    w->module = lilac_simt_module_create(w->context, lilac_arch_find(device));
}

static void open_kernel(bench *w) {
    char name[32];
    snprintf(name, sizeof name, "k%u", w->kernels++);
    lilac_simt_kernel *kernel =
        lilac_simt_kernel_create(w->module, lilac_intern_string(w->context, name), 1, 4, 1);
    kernel->parameters[0] = (lilac_simt_parameter){.name = lilac_intern_string(w->context, "data"),
                                                   .type = LILAC_SIMT_I64,
                                                   .is_pointer = true,
                                                   .alignment = 16};
    lilac_simt_builder_init(&w->b, kernel);
    w->pointer = lilac_simt_parameter_value(&w->b, 0);
    w->next = 0;
}

static void close_kernel(bench *w) {
    lilac_simt_instruction end = {.code = LILAC_SIMT_OP_RETURN};
    lilac_simt_build(&w->b, &end, 0, NULL, 0, NULL);
    lilac_simt_builder_clear(&w->b);
}

static void close_module(bench *w) {
    lilac_simt_module_destroy(w->module);
    lilac_context_destroy(w->context);
}

static void inputs(bench *w, lilac_simt_type type, uint32_t count, lilac_simt_value *values) {
    for (uint32_t k = 0; k < count; k++, w->next += 8) {
        values[k] = lilac_simt_load(&w->b, LILAC_SIMT_OP_LD_GLOBAL, type, 1, w->pointer, w->next, 0,
                                    NULL, NULL);
    }
}

static void outputs(bench *w, lilac_simt_value first, uint32_t count) {
    for (uint32_t k = 0; k < count; k++, w->next += 8) {
        lilac_simt_value value = first + k;
        lilac_simt_store(&w->b, LILAC_SIMT_OP_ST_GLOBAL, 1, &value, w->pointer, w->next, 0, NULL);
    }
}

enum { LOG = 1 << 20 };
static char said[LOG]; /* by ptxas */

/* Verifies, writes PTX, and gives it to ptxas when there is one. */
static void assemble(bench *w, const char *device, const char *ptxas) {
    lilac_text ptx = {0};
    lilac_ptx_options options = {0};
    said[0] = 0;
    if (!lilac_simt_verify(w->module) || !lilac_ptx_write(&ptx, w->module, &options)) {
        fail_msg("%s", lilac_diagnostics(w->context)->message);
    }
    if (ptxas && !assembles_with_log(ptxas, device, lilac_text_get(&ptx), said, LOG)) {
        fail_msg("%s: %.2000s", device, said);
    }
    lilac_text_clear(&ptx);
}

/* The members of a class. */
static uint32_t members(lilac_matrix_type class, lilac_matrix_type *types) {
    uint32_t count = 0;
    for (uint32_t t = 1; t < LILAC_MATRIX_TYPE_COUNT; t++) {
        if (lilac_matrix_type_class((lilac_matrix_type)t) == class) {
            types[count++] = (lilac_matrix_type)t;
        }
    }
    return count;
}

/* ---- mma -------------------------------------------------------------------------------- */

static void add_mma(bench *w, const lilac_simt_matrix_payload *kind) {
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_MMA, .payload.matrix = *kind};
    lilac_matrix_shape shape = lilac_simt_matrix_shape(&like);
    lilac_simt_value values[3][16];
    lilac_simt_type c = lilac_simt_accumulator_type(shape.d);
    lilac_simt_type word = shape.a == LILAC_MATRIX_F64 ? LILAC_SIMT_F64 : LILAC_SIMT_I32;
    open_kernel(w);
    for (uint32_t g = 0; g < 3; g++) {
        inputs(w, g < 2 ? word : c, lilac_simt_group_size(&like, g), values[g]);
    }
    outputs(w, lilac_simt_mma(&w->b, kind, values[0], values[1], values[2]),
            lilac_simt_group_size(&like, 2));
    close_kernel(w);
}

static void add_row(bench *w, const lilac_mma *row) {
    lilac_matrix_type types[4];
    uint32_t count = members(row->kind, types);
    for (uint32_t ab = 0; ab < count * count; ab++) {
        lilac_simt_matrix_payload kind = {.a = (uint8_t)types[ab / count],
                                          .b = (uint8_t)types[ab % count],
                                          .d = (uint8_t)row->d,
                                          .m = (uint16_t)row->m,
                                          .n = (uint16_t)row->n,
                                          .k = (uint16_t)row->k};
        add_mma(w, &kind);
        kind.saturate = row->d == LILAC_MATRIX_S32;
        if (kind.saturate) {
            add_mma(w, &kind);
        }
    }
}

static void test_mma_on_every_device(void **state) {
    (void)state;
    const char *ptxas = find_ptxas();
    const lilac_arch *arch;
    const lilac_mma *row;
    for (size_t d = 0; (arch = lilac_arch_at(d)) != NULL; d++) {
        if (arch->vendor != LILAC_NVIDIA) {
            continue;
        }
        bench w;
        open_module(&w, arch->name);
        for (size_t k = 0; (row = lilac_mma_at(k)) != NULL; k++) {
            if (lilac_mma_has(arch, row)) {
                add_row(&w, row);
            }
        }
        assert_true(w.kernels >= 12);
        assemble(&w, arch->name, ptxas);
        close_module(&w);
    }
    if (!ptxas) {
        skip();
    }
}

/* A module with one mma is written in the row's version or, if that is newer, the device's. */
static void test_version_of_each_row(void **state) {
    (void)state;
    const lilac_arch *arch;
    const lilac_mma *row;
    for (size_t k = 0; (row = lilac_mma_at(k)) != NULL; k++) {
        for (size_t d = 0; (arch = lilac_arch_at(d)) != NULL; d++) {
            if (arch->vendor != LILAC_NVIDIA || !lilac_mma_has(arch, row)) {
                continue;
            }
            uint32_t version =
                row->ptx_version > arch->ptx_version ? row->ptx_version : arch->ptx_version;
            char wanted[32];
            bench w;
            lilac_text ptx = {0};
            lilac_ptx_options options = {0};
            open_module(&w, arch->name);
            add_row(&w, row);
            assert_true(lilac_ptx_write(&ptx, w.module, &options));
            snprintf(wanted, sizeof wanted, ".version %u.%u\n", version / 10, version % 10);
            assert_non_null(strstr(lilac_text_get(&ptx), wanted));
            lilac_text_clear(&ptx);
            close_module(&w);
            break;
        }
    }
}

/* ---- wgmma ------------------------------------------------------------------------------ */

/* All accumulators begin with the constant of these bits. */
static void add_wgmma_from(bench *w, const lilac_simt_matrix_payload *kind, uint64_t bits) {
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_WGMMA, .payload.matrix = *kind};
    lilac_simt_value c[128], results[128], a[4], b, p;
    lilac_simt_type type = lilac_simt_accumulator_type((lilac_matrix_type)kind->d);
    uint32_t count = lilac_simt_group_size(&like, 0);
    open_kernel(w);
    for (uint32_t k = 0; k < count; k++) {
        c[k] = lilac_simt_constant(&w->b, type, bits);
    }
    inputs(w, kind->registers ? LILAC_SIMT_I32 : LILAC_SIMT_I64, kind->registers ? 4 : 1, a);
    inputs(w, LILAC_SIMT_I64, 1, &b);
    inputs(w, LILAC_SIMT_I32, 1, &p);
    p = lilac_simt_compare_values(&w->b, LILAC_SIMT_NE, p,
                                  lilac_simt_constant(&w->b, LILAC_SIMT_I32, 0));
    lilac_simt_wgmma_fence(&w->b);
    lilac_simt_value first = lilac_simt_wgmma(&w->b, kind, c, a, b, p);
    lilac_simt_wgmma_commit(&w->b);
    for (uint32_t k = 0; k < count; k++) {
        results[k] = first + k;
    }
    outputs(w, lilac_simt_wgmma_wait(&w->b, 0, count, results), count);
    close_kernel(w);
}

static void add_wgmma(bench *w, const lilac_simt_matrix_payload *kind) {
    add_wgmma_from(w, kind, 0);
}

/* Every combination of modifiers that the row has. */
static void add_modifiers(bench *w, const lilac_wgmma *row, lilac_simt_matrix_payload kind) {
    for (uint32_t bits = 0; bits < 64; bits++) {
        bool modes[6];
        for (uint32_t k = 0; k < 6; k++) {
            modes[k] = bits >> k & 1;
        }
        bool legal = (row->scales || !(modes[0] || modes[1])) &&
                     (row->transposes || !(modes[2] || modes[3])) && !(modes[2] && modes[4]) &&
                     (row->kind == LILAC_MATRIX_S8 || !modes[5]);
        if (!legal) {
            continue;
        }
        kind.negate_a = modes[0];
        kind.negate_b = modes[1];
        kind.transpose_a = modes[2];
        kind.transpose_b = modes[3];
        kind.registers = modes[4];
        kind.saturate = modes[5];
        add_wgmma(w, &kind);
    }
}

static void test_every_wgmma(void **state) {
    (void)state;
    const char *ptxas = find_ptxas();
    const lilac_wgmma *row;
    bench w;
    open_module(&w, "sm_90a");
    for (size_t r = 0; (row = lilac_wgmma_at(r)) != NULL; r++) {
        lilac_matrix_type types[4];
        uint32_t count = members(row->kind, types);
        lilac_simt_matrix_payload kind = {
            .d = (uint8_t)row->d, .m = 64, .n = 16, .k = (uint16_t)row->k};
        for (uint32_t ab = 0; ab < count * count; ab++) {
            kind.a = (uint8_t)types[ab / count];
            kind.b = (uint8_t)types[ab % count];
            add_modifiers(&w, row, kind);
        }
        for (uint32_t n = 8; n <= 256; n += 8) {
            kind.n = (uint16_t)n;
            bool all = row->kind == LILAC_MATRIX_F16 || row->kind == LILAC_MATRIX_S8;
            if (lilac_wgmma_has_columns(row, n) && (all || n == 8 || n == 24 || n == 256)) {
                add_wgmma(&w, &kind);
            }
        }
    }
    assemble(&w, "sm_90a", ptxas);
    assert_null(strstr(said, "C75"));
    close_module(&w);
    if (!ptxas) {
        skip();
    }
}

/* ptxas must not see that accumulators begin with constants. */
static void test_constant_accumulators(void **state) {
    (void)state;
    enum { N = 16 };
    static const struct {
        uint64_t bits; /* of an f32 */
        const char *text;
    } constants[] = {{0, ", 0;"}, {0xBF800000, ", -1082130432;"}};
    const lilac_simt_matrix_payload kind = {.d = LILAC_MATRIX_F32,
                                            .a = LILAC_MATRIX_F16,
                                            .b = LILAC_MATRIX_F16,
                                            .m = 64,
                                            .n = N,
                                            .k = 16};
    const char *ptxas = find_ptxas();
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        bench w;
        lilac_text ptx = {0};
        const lilac_ptx_options options = {0};
        uint32_t added = 0;
        open_module(&w, "sm_90a");
        add_wgmma_from(&w, &kind, constants[i].bits);
        assert_true(lilac_ptx_write(&ptx, w.module, &options));
        assert_null(strstr(lilac_text_get(&ptx), "mov.b32 %f"));
        for (const char *at = lilac_text_get(&ptx); (at = strstr(at, "add.s32 %f")) != NULL; at++) {
            const char *end = strchr(at, ';') + 1, *last = end - strlen(constants[i].text);
            assert_memory_equal(last, constants[i].text, strlen(constants[i].text));
            added++;
        }
        assert_int_equal(added, N / 2);
        assemble(&w, "sm_90a", ptxas);
        lilac_text_clear(&ptx);
        close_module(&w);
    }
    if (!ptxas) {
        skip();
    }
}

/* ---- a pipelined loop ------------------------------------------------------------------- */

/* acc = 0; for each tile: fence, four wgmmas, commit, wait 1; then wait 0 and the results. Where
 * `touches` is set, the loop adds to an accumulator that is in flight. */
static void add_loop(bench *w, uint32_t n, bool touches) {
    enum { STEPS = 4 };
    const lilac_simt_matrix_payload kind = {.a = LILAC_MATRIX_F16,
                                            .b = LILAC_MATRIX_F16,
                                            .d = LILAC_MATRIX_F32,
                                            .m = 64,
                                            .n = (uint16_t)n,
                                            .k = 16};
    const lilac_matrix_descriptor like = {
        .leading = 16, .stride = 1024, .swizzle = LILAC_MATRIX_SWIZZLE_128};
    lilac_simt_value acc[128], a, b, i, upper;
    open_kernel(w);
    lilac_simt_builder *s = &w->b;
    w->b.kernel->shared_bytes = 65536;
    lilac_simt_value zero = lilac_simt_constant(s, LILAC_SIMT_I32, 0);
    lilac_simt_value one = lilac_simt_constant(s, LILAC_SIMT_I32, 1);
    lilac_simt_value yes = lilac_simt_constant(s, LILAC_SIMT_I1, 1);
    inputs(w, LILAC_SIMT_I32, 1, &upper);
    lilac_simt_mark_uniform(w->b.kernel, upper);
    for (uint32_t k = 0; k < n / 2; k++) {
        acc[k] = lilac_simt_constant(s, LILAC_SIMT_F32, 0);
    }
    lilac_simt_instruction base = {.code = LILAC_SIMT_OP_SHARED_BASE};
    lilac_simt_type word = LILAC_SIMT_I32;
    lilac_simt_value start = lilac_simt_build(s, &base, 0, NULL, 1, &word);
    a = lilac_simt_matrix_descriptor(s, start, 0, &like);
    b = lilac_simt_matrix_descriptor(s,
                                     lilac_simt_op2(s, LILAC_SIMT_OP_ADD, LILAC_SIMT_I32, start,
                                                    lilac_simt_constant(s, LILAC_SIMT_I32, 32768)),
                                     0, &like);
    lilac_simt_instruction *loop = lilac_simt_loop_begin(s, zero, upper, one, n / 2, acc, &i);
    for (uint32_t k = 0; k < n / 2; k++) {
        acc[k] = i + 1 + k;
    }
    lilac_simt_wgmma_fence(s);
    for (uint32_t step = 0; step < STEPS; step++) {
        lilac_simt_value more = lilac_simt_constant(s, LILAC_SIMT_I64, 2 * step);
        lilac_simt_value da = lilac_simt_op2(s, LILAC_SIMT_OP_ADD, LILAC_SIMT_I64, a, more);
        lilac_simt_value db = lilac_simt_op2(s, LILAC_SIMT_OP_ADD, LILAC_SIMT_I64, b, more);
        lilac_simt_value first = lilac_simt_wgmma(s, &kind, acc, &da, db, yes);
        for (uint32_t k = 0; k < n / 2; k++) {
            acc[k] = first + k;
        }
    }
    lilac_simt_wgmma_commit(s);
    if (touches) {
        acc[0] = lilac_simt_op2(s, LILAC_SIMT_OP_FADD, LILAC_SIMT_F32, acc[0],
                                lilac_simt_constant(s, LILAC_SIMT_F32, 0x3F800000));
    }
    lilac_simt_wgmma_wait(s, 1, 0, NULL);
    lilac_simt_value first = lilac_simt_loop_end(s, loop, acc);
    for (uint32_t k = 0; k < n / 2; k++) {
        acc[k] = first + k;
    }
    outputs(w, lilac_simt_wgmma_wait(s, 0, n / 2, acc), n / 2);
    close_kernel(w);
}

/* How often `what` is between the loop's label and its branch back. */
static uint32_t in_loop(const char *ptx, const char *what) {
    const char *at = strstr(ptx, "$L_loop_0:"), *end = strstr(at, "bra.uni $L_loop_0");
    uint32_t count = 0;
    for (at = strstr(at, what); at && at < end; at = strstr(at + 1, what)) {
        count++;
    }
    return count;
}

static void test_pipelined_loop(void **state) {
    (void)state;
    const char *ptxas = find_ptxas();
    for (uint32_t n = 64; n <= 256; n *= 2) {
        bench w;
        lilac_text ptx = {0};
        lilac_ptx_options options = {0};
        open_module(&w, "sm_90a");
        add_loop(&w, n, false);
        assert_true(lilac_ptx_write(&ptx, w.module, &options));
        assert_int_equal(in_loop(lilac_text_get(&ptx), "wgmma.mma_async"), 4);
        assert_int_equal(in_loop(lilac_text_get(&ptx), "wgmma.fence"), 1);
        assert_int_equal(in_loop(lilac_text_get(&ptx), "mov.b32"), 0);
        assemble(&w, "sm_90a", ptxas);
        if (strstr(said, "C75")) {
            fail_msg("n = %u: %s", n, said);
        }
        lilac_text_clear(&ptx);
        close_module(&w);
    }
    if (!ptxas) {
        skip();
    }
}

/* acc = 0; a is carried; in each iteration: fence, a wgmma of a, commit, the next a from shared memory, wait. */
static void add_rotated_loop(bench *w) {
    enum { N = 64, WORDS = 4, COUNT = N / 2 + WORDS };
    const lilac_simt_matrix_payload kind = {.a = LILAC_MATRIX_E4M3,
                                            .b = LILAC_MATRIX_E4M3,
                                            .d = LILAC_MATRIX_F32,
                                            .m = 64,
                                            .n = N,
                                            .k = 32,
                                            .registers = true};
    const lilac_matrix_descriptor like = {
        .leading = 16, .stride = 1024, .swizzle = LILAC_MATRIX_SWIZZLE_128};
    lilac_simt_value carried[COUNT], i, upper;
    open_kernel(w);
    lilac_simt_builder *s = &w->b;
    w->b.kernel->shared_bytes = 65536;
    const lilac_simt_value zero = lilac_simt_constant(s, LILAC_SIMT_I32, 0);
    const lilac_simt_value one = lilac_simt_constant(s, LILAC_SIMT_I32, 1);
    const lilac_simt_value yes = lilac_simt_constant(s, LILAC_SIMT_I1, 1);
    inputs(w, LILAC_SIMT_I32, 1, &upper);
    lilac_simt_mark_uniform(w->b.kernel, upper);
    for (uint32_t k = 0; k < N / 2; k++) {
        carried[k] = lilac_simt_constant(s, LILAC_SIMT_F32, 0);
    }
    inputs(w, LILAC_SIMT_I32, WORDS, carried + N / 2);
    const lilac_simt_instruction base = {.code = LILAC_SIMT_OP_SHARED_BASE};
    const lilac_simt_type word = LILAC_SIMT_I32;
    const lilac_simt_value start = lilac_simt_build(s, &base, 0, NULL, 1, &word);
    const lilac_simt_value b = lilac_simt_matrix_descriptor(s, start, 0, &like);
    lilac_simt_instruction *loop = lilac_simt_loop_begin(s, zero, upper, one, COUNT, carried, &i);
    for (uint32_t k = 0; k < COUNT; k++) {
        carried[k] = i + 1 + k;
    }
    lilac_simt_wgmma_fence(s);
    const lilac_simt_value sum = lilac_simt_wgmma(s, &kind, carried, carried + N / 2, b, yes);
    lilac_simt_wgmma_commit(s);
    const lilac_simt_value next =
        lilac_simt_load_matrix(s, false, LILAC_SIMT_I32, WORDS, start, 32768, NULL);
    for (uint32_t k = 0; k < N / 2; k++) {
        carried[k] = sum + k;
    }
    const lilac_simt_value waited = lilac_simt_wgmma_wait(s, 0, N / 2, carried);
    for (uint32_t k = 0; k < COUNT; k++) {
        carried[k] = k < N / 2 ? waited + k : next + k - N / 2;
    }
    const lilac_simt_value last = lilac_simt_loop_end(s, loop, carried);
    outputs(w, last, N / 2);
    close_kernel(w);
}

/* Register operands of the next iteration that are loaded under this one's wgmma keep registers of their own:
 * the assembler must not see moves. */
static void test_rotated_loop(void **state) {
    (void)state;
    const char *ptxas = find_ptxas();
    bench w;
    lilac_text ptx = {0};
    const lilac_ptx_options options = {0};
    open_module(&w, "sm_90a");
    add_rotated_loop(&w);
    assert_true(lilac_ptx_write(&ptx, w.module, &options));
    assert_int_equal(in_loop(lilac_text_get(&ptx), "mov.b32"), 0);
    assert_int_equal(in_loop(lilac_text_get(&ptx), "prmt.b32"), 4);
    assemble(&w, "sm_90a", ptxas);
    if (strstr(said, "C75")) {
        fail_msg("%s", said);
    }
    lilac_text_clear(&ptx);
    close_module(&w);
    if (!ptxas) {
        skip();
    }
}

/* test_pipelined_loop can fail: ptxas serialises a loop that touches an accumulator in flight. */
static void test_serialised_loop(void **state) {
    (void)state;
    const char *ptxas = find_ptxas();
    bench w;
    open_module(&w, "sm_90a");
    add_loop(&w, 64, true);
    assemble(&w, "sm_90a", ptxas);
    if (ptxas) {
        assert_non_null(strstr(said, "C75"));
    }
    close_module(&w);
    if (!ptxas) {
        skip();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mma_on_every_device),   cmocka_unit_test(test_version_of_each_row),
        cmocka_unit_test(test_every_wgmma),           cmocka_unit_test(test_pipelined_loop),
        cmocka_unit_test(test_rotated_loop),          cmocka_unit_test(test_serialised_loop),
        cmocka_unit_test(test_constant_accumulators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
