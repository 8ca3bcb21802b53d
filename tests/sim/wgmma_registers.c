/* Where the results of wgmmas in flight may go. Each kernel is run by the simulator and assembled: the
 * simulator says "serialised" exactly where ptxas warns that it serialises the wgmmas (C75xx), and what is
 * computed is right in any case, as ptxas inserts waits. */
#define _POSIX_C_SOURCE 200809L /* mkstemp, popen */

#include <lilac/ptx.h>

#include "support/assemble.h"
#include "support/test.h"
#include "support/wgmma_findings.h"

enum { N = 64, COUNT = N / 2, BYTES = 16384 };

static const lilac_matrix_descriptor packed = {
    .leading = 16, .stride = 1024, .swizzle = LILAC_MATRIX_SWIZZLE_128};

/* Operands that all kernels share: A is all ones, B is 1/16, so that a wgmma adds 1 to each sum. */
typedef struct kernel {
    rig r;
    lilac_simt_value a, b, uniform; /* uniform: an i32 from memory, 3 */
    uint16_t image[BYTES / 2];
    float out[COUNT * 128];
    uint32_t three;
} kernel;

static void open_kernel(kernel *k) {
    rig *r = &k->r;
    for (uint32_t e = 0; e < BYTES / 2; e++) {
        k->image[e] = e < BYTES / 4 ? 0x3C00 : 0x2C00;
    }
    k->three = 3;
    rig_init(r, 4, 3, BYTES);
    for (uint32_t n = 0; n < BYTES / 16 / 128; n++) {
        lilac_simt_value chunk = op2(r, LILAC_SIMT_OP_ADD, thread(r), word(r, n * 128));
        lilac_simt_value v = lilac_simt_load(&r->b, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_I32, 4,
                                             element(r, 0, chunk, 16), 0, 0, NULL, NULL);
        lilac_simt_value parts[] = {v, v + 1, v + 2, v + 3};
        lilac_simt_store(&r->b, LILAC_SIMT_OP_ST_SHARED, 4, parts,
                         op2(r, LILAC_SIMT_OP_MUL, chunk, word(r, 16)), 0, 0, NULL);
    }
    effect(r, LILAC_SIMT_OP_FENCE_PROXY_ASYNC);
    lilac_simt_barrier(&r->b);
    k->uniform =
        load(r, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_I32, lilac_simt_parameter_value(&r->b, 2));
    lilac_simt_mark_uniform(r->kernel, k->uniform);
    k->a = lilac_simt_matrix_descriptor(&r->b, word(r, 0), 0, &packed);
    k->b = lilac_simt_matrix_descriptor(&r->b, word(r, BYTES / 2), 0, &packed);
}

static void zeros(kernel *k, lilac_simt_value *acc) {
    for (uint32_t e = 0; e < COUNT; e++) {
        acc[e] = lilac_simt_constant(&k->r.b, LILAC_SIMT_F32, 0);
    }
}

static void follow(lilac_simt_value *acc, lilac_simt_value first) {
    for (uint32_t e = 0; e < COUNT; e++) {
        acc[e] = first + e;
    }
}

/* fence, one wgmma, commit. */
static void add_one(kernel *k, lilac_simt_value *acc) {
    const lilac_simt_matrix_payload kind = {.a = LILAC_MATRIX_F16,
                                            .b = LILAC_MATRIX_F16,
                                            .d = LILAC_MATRIX_F32,
                                            .m = 64,
                                            .n = N,
                                            .k = 16};
    lilac_simt_wgmma_fence(&k->r.b);
    follow(acc, lilac_simt_wgmma(&k->r.b, &kind, acc, &k->a, k->b,
                                 lilac_simt_constant(&k->r.b, LILAC_SIMT_I1, 1)));
    lilac_simt_wgmma_commit(&k->r.b);
}

static void await(kernel *k, uint32_t groups, lilac_simt_value *acc) {
    follow(acc, lilac_simt_wgmma_wait(&k->r.b, groups, COUNT, acc));
}

static void store_all(kernel *k, const lilac_simt_value *acc) {
    rig *r = &k->r;
    for (uint32_t e = 0; e < COUNT; e++) {
        store(r, LILAC_SIMT_OP_ST_GLOBAL, acc[e],
              element(r, 1, op2(r, LILAC_SIMT_OP_ADD, thread(r), word(r, e * 128)), 4));
    }
}

/* ---- kernels: each leaves the number it returns in all sums ------------------------------- */

static float chain(kernel *k) {
    lilac_simt_value acc[COUNT];
    zeros(k, acc);
    for (uint32_t n = 0; n < 3; n++) {
        add_one(k, acc);
    }
    await(k, 0, acc);
    store_all(k, acc);
    return 3;
}

/* A loop carries the sums in flight. */
static float carried(kernel *k) {
    lilac_simt_value acc[COUNT], i;
    rig *r = &k->r;
    zeros(k, acc);
    lilac_simt_instruction *loop =
        lilac_simt_loop_begin(&r->b, word(r, 0), k->uniform, word(r, 1), COUNT, acc, &i);
    follow(acc, i + 1);
    add_one(k, acc);
    lilac_simt_wgmma_wait(&r->b, 1, 0, NULL);
    follow(acc, lilac_simt_loop_end(&r->b, loop, acc));
    await(k, 0, acc);
    store_all(k, acc);
    return 3;
}

/* A wait that covers the sums, then arithmetic on them, in a loop. */
static float scaled_sum(kernel *k) {
    lilac_simt_value acc[COUNT], i;
    rig *r = &k->r;
    zeros(k, acc);
    lilac_simt_instruction *loop =
        lilac_simt_loop_begin(&r->b, word(r, 0), k->uniform, word(r, 1), COUNT, acc, &i);
    for (uint32_t e = 0; e < COUNT; e++) {
        acc[e] = lilac_simt_op2(&r->b, LILAC_SIMT_OP_FMUL, LILAC_SIMT_F32, i + 1 + e,
                                lilac_simt_constant(&r->b, LILAC_SIMT_F32, 0x40000000));
    }
    add_one(k, acc);
    await(k, 0, acc);
    follow(acc, lilac_simt_loop_end(&r->b, loop, acc));
    store_all(k, acc);
    return 7;
}

/* The first result is used twice: the second wgmma needs a copy of it, in flight. */
static float forked(kernel *k) {
    lilac_simt_value acc[COUNT], other[COUNT];
    zeros(k, acc);
    add_one(k, acc);
    memcpy(other, acc, sizeof acc);
    add_one(k, other);
    await(k, 0, acc);
    await(k, 0, other);
    store_all(k, acc);
    store_all(k, other);
    return 2;
}

/* A loop begins with sums in flight: its arguments are other registers. */
static float entered(kernel *k) {
    lilac_simt_value acc[COUNT], i;
    rig *r = &k->r;
    zeros(k, acc);
    add_one(k, acc);
    lilac_simt_instruction *loop =
        lilac_simt_loop_begin(&r->b, word(r, 0), k->uniform, word(r, 1), COUNT, acc, &i);
    follow(acc, i + 1);
    add_one(k, acc);
    lilac_simt_wgmma_wait(&r->b, 1, 0, NULL);
    follow(acc, lilac_simt_loop_end(&r->b, loop, acc));
    await(k, 0, acc);
    store_all(k, acc);
    return 4;
}

/* The two halves of the sums change places around the loop. */
static float exchanged(kernel *k) {
    lilac_simt_value acc[COUNT], next[COUNT], i;
    rig *r = &k->r;
    zeros(k, acc);
    lilac_simt_instruction *loop =
        lilac_simt_loop_begin(&r->b, word(r, 0), k->uniform, word(r, 1), COUNT, acc, &i);
    follow(acc, i + 1);
    add_one(k, acc);
    for (uint32_t e = 0; e < COUNT; e++) {
        next[e] = acc[e ^ COUNT / 2];
    }
    lilac_simt_wgmma_wait(&r->b, 1, 0, NULL);
    follow(acc, lilac_simt_loop_end(&r->b, loop, next));
    await(k, 0, acc);
    store_all(k, acc);
    return 3;
}

/* Twice each element of `from`. */
static void twice(kernel *k, lilac_simt_value *acc, const lilac_simt_value *from) {
    for (uint32_t e = 0; e < COUNT; e++) {
        acc[e] = lilac_simt_op2(&k->r.b, LILAC_SIMT_OP_FMUL, LILAC_SIMT_F32, from[e],
                                lilac_simt_constant(&k->r.b, LILAC_SIMT_F32, 0x40000000));
    }
}

/* A wait for the sums of the iteration before, arithmetic on them, and the wgmma, in flight over the back
 * edge: the product has the register of the argument. `used`: the sums before the product are stored behind
 * it, so it has another register. */
static float scaled_in_flight(kernel *k, bool used) {
    lilac_simt_value acc[COUNT], before[COUNT], i;
    rig *r = &k->r;
    zeros(k, acc);
    lilac_simt_instruction *loop =
        lilac_simt_loop_begin(&r->b, word(r, 0), k->uniform, word(r, 1), COUNT, acc, &i);
    follow(before, i + 1);
    await(k, 0, before);
    twice(k, acc, before);
    if (used) {
        store_all(k, before);
    }
    add_one(k, acc);
    follow(acc, lilac_simt_loop_end(&r->b, loop, acc));
    await(k, 0, acc);
    store_all(k, acc);
    return 7;
}

static float scaled_carried(kernel *k) {
    return scaled_in_flight(k, false);
}

static float scaled_and_used(kernel *k) {
    return scaled_in_flight(k, true);
}

/* A is in registers, which the wgmma reads until the wait in the next iteration; before that wait the
 * body computes and stores other numbers. */
static float fragments(kernel *k) {
    const lilac_simt_matrix_payload kind = {.a = LILAC_MATRIX_F16,
                                            .b = LILAC_MATRIX_F16,
                                            .d = LILAC_MATRIX_F32,
                                            .m = 64,
                                            .n = N,
                                            .k = 16,
                                            .registers = true};
    lilac_simt_value acc[COUNT], a[4], i;
    rig *r = &k->r;
    zeros(k, acc);
    lilac_simt_instruction *loop =
        lilac_simt_loop_begin(&r->b, word(r, 0), k->uniform, word(r, 1), COUNT, acc, &i);
    const lilac_simt_value other = op2(r, LILAC_SIMT_OP_ADD, thread(r), i);
    store(r, LILAC_SIMT_OP_ST_GLOBAL, other, element(r, 1, thread(r), 4));
    lilac_simt_wgmma_wait(&r->b, 0, 0, NULL);
    for (uint32_t w = 0; w < 4; w++) {
        /* two ones of f16 */
        a[w] = op2(r, LILAC_SIMT_OP_ADD, k->uniform, word(r, 0x3C003C00 - 3));
    }
    follow(acc, i + 1);
    lilac_simt_wgmma_fence(&r->b);
    follow(acc, lilac_simt_wgmma(&r->b, &kind, acc, a, k->b,
                                 lilac_simt_constant(&r->b, LILAC_SIMT_I1, 1)));
    lilac_simt_wgmma_commit(&r->b);
    follow(acc, lilac_simt_loop_end(&r->b, loop, acc));
    await(k, 0, acc);
    store_all(k, acc);
    return 3;
}

static const struct row {
    const char *name;
    float (*build)(kernel *k);
    bool serialised;
} rows[] = {
    {"chain", chain, false},
    {"carried", carried, false},
    {"scaled", scaled_sum, false},
    {"forked", forked, true},
    {"entered", entered, true},
    {"exchanged", exchanged, true},
    {"scaled, carried", scaled_carried, false},
    {"scaled, used", scaled_and_used, true},
    {"fragments", fragments, false},
};

static bool ptxas_serialises(kernel *k, const char *ptxas) {
    static char said[1 << 16];
    lilac_text ptx = {0};
    lilac_ptx_options options = {0};
    assert_true(lilac_simt_verify(k->r.module));
    assert_true(lilac_ptx_write(&ptx, k->r.module, &options));
    assert_true(assembles_with_log(ptxas, "sm_90a", lilac_text_get(&ptx), said, sizeof said));
    lilac_text_clear(&ptx);
    return strstr(said, "C75") != NULL;
}

static void test_simulator_and_assembler_agree(void **state) {
    (void)state;
    const char *ptxas = find_ptxas();
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        static kernel k;
        memset(&k, 0, sizeof k);
        open_kernel(&k);
        float wanted = rows[n].build(&k);
        give(&k.r, 0, "image", k.image, sizeof k.image);
        give(&k.r, 1, "out", k.out, sizeof k.out);
        give(&k.r, 2, "three", &k.three, sizeof k.three);
        if (!rig_run(&k.r)) {
            fail_msg("%s: %s", rows[n].name, lilac_diagnostics(k.r.context)->message);
        }
        for (uint32_t e = 0; e < COUNT * 128; e++) {
            if (k.out[e] != wanted) {
                fail_msg("%s: sum %u is %g, not %g", rows[n].name, e, (double)k.out[e],
                         (double)wanted);
            }
        }
        bool said = found(&k.r, "wgmma-serialised", 0, 0);
        if (said != rows[n].serialised || (!said && lilac_diagnostics(k.r.context))) {
            show(&k.r);
            fail_msg("%s: the simulator says %d", rows[n].name, said);
        }
        if (ptxas && ptxas_serialises(&k, ptxas) != rows[n].serialised) {
            fail_msg("%s: ptxas does not agree", rows[n].name);
        }
        rig_clear(&k.r);
    }
    if (!ptxas) {
        skip();
    }
}

/* homes: a chain has one register, whatever carries it. */
static void check_homes(float (*build)(kernel *k)) {
    static kernel k;
    memset(&k, 0, sizeof k);
    open_kernel(&k);
    build(&k);
    const lilac_simt_kernel *built = k.r.kernel;
    lilac_simt_value *homes = calloc(built->value_count, sizeof *homes);
    lilac_simt_register_homes(built, homes);
    const lilac_simt_instruction *loop = built->body->first;
    while (loop->code != LILAC_SIMT_OP_LOOP) {
        loop = loop->next;
    }
    const lilac_simt_body *body = loop->bodies[0];
    for (uint32_t e = 0; e < COUNT; e++) {
        lilac_simt_value argument = body->argument + 1 + e;
        assert_int_equal(homes[argument], argument);
        assert_int_equal(homes[body->last->operands[e]], argument);
        assert_int_equal(homes[loop->result + e], argument);
    }
    free(homes);
    rig_clear(&k.r);
}

static void test_homes(void **state) {
    (void)state;
    check_homes(carried);
    check_homes(scaled_carried);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_simulator_and_assembler_agree),
        cmocka_unit_test(test_homes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
