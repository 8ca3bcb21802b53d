/* One wgmma on the simulator: every kind against a sum in long double, with operands in every form of
 * shared memory and in registers; its groups, the release of its operands, and what it must not do. */

#include "support/matrix_numbers.h"
#include "support/test.h"
#include "support/wgmma_findings.h"

static void proxy_fence(rig *r) {
    effect(r, LILAC_SIMT_OP_FENCE_PROXY_ASYNC);
}

/* ---- one instruction -------------------------------------------------------------------- */

enum { MOST_N = 256, IMAGE = 65536 };

typedef struct single {
    lilac_simt_matrix_payload kind;
    lilac_matrix_shape shape;
    lilac_matrix_descriptor a, b;
    bool accumulate, store_fence, barrier, fence, commit;
    uint64_t ea[64 * 256], eb[MOST_N * 256], ec[64 * MOST_N], ed[64 * MOST_N];
    uint8_t image[IMAGE];
    uint32_t registers[(4 + 128) * 128], out[128 * 128];
} single;

/* A packed matrix of `rows` rows along k (32 bytes of k) from `start` on. */
static lilac_matrix_descriptor packed(lilac_matrix_swizzle swizzle, bool transposed, uint32_t rows,
                                      uint32_t start) {
    uint32_t width = lilac_matrix_swizzle_bytes(swizzle), group = 8 * width;
    lilac_matrix_descriptor d = {.start = start, .swizzle = swizzle};
    bool plain = swizzle == LILAC_MATRIX_SWIZZLE_NONE;
    /* k along the rows: two groups of 8; else all rows in groups of 8 */
    uint32_t column = transposed ? 2 * group : rows / 8 * group;
    d.stride = plain && transposed ? column : group;
    d.leading = plain && transposed ? group : column;
    return d;
}

static void put_bits(uint8_t *bytes, uint64_t bit, uint32_t bits, uint64_t value) {
    if (bits < 8) {
        bytes[bit / 8] |= (uint8_t)(value << bit % 8);
    } else {
        memcpy(bytes + bit / 8, &value, bits / 8);
    }
}

/* The matrix in shared memory, where its descriptor reads it. */
static void put_matrix(single *j, const lilac_matrix_descriptor *d, bool transposed, uint32_t rows,
                       const uint64_t *elements) {
    uint32_t bits = lilac_matrix_type_bits(j->shape.a);
    for (uint32_t row = 0; row < rows; row++) {
        for (uint32_t k = 0; k < j->shape.k; k++) {
            put_bits(j->image,
                     8 * (uint64_t)lilac_matrix_descriptor_address(d, bits, transposed, row, k) +
                         (bits < 8 ? k % 8 : 0),
                     bits, elements[row * j->shape.k + k]);
        }
    }
}

static void put_registers(single *j, uint32_t d_count) {
    uint32_t bits = lilac_matrix_type_bits(j->shape.a), each = 32 / bits, row, word, column;
    uint32_t pair = j->shape.d == LILAC_MATRIX_F16 ? 2 : 1;
    for (uint32_t t = 0; t < 128; t++) {
        for (uint32_t i = 0; i < 4 && j->kind.registers; i++) {
            lilac_matrix_a_place(16, t % 32, i, &row, &word);
            for (uint32_t e = 0; e < each; e++) {
                j->registers[i * 128 + t] |=
                    (uint32_t)j->ea[(row + t / 32 * 16) * j->shape.k + word * each + e]
                    << (bits * e);
            }
        }
        for (uint32_t e = 0; e < d_count * pair; e++) {
            lilac_matrix_d_place(16, t % 32, e, &row, &column);
            j->registers[(4 + e / pair) * 128 + t] |=
                (uint32_t)j->ec[(row + t / 32 * 16) * j->shape.n + column] << (e % pair * 16);
        }
    }
}

static lilac_simt_value register_at(rig *r, uint32_t parameter, uint32_t i) {
    return element(r, parameter, op2(r, LILAC_SIMT_OP_ADD, thread(r), word(r, i * 128)), 4);
}

/* Copies the image into shared memory by ordinary stores. */
static void stage_image(rig *r, const single *j) {
    for (uint32_t k = 0; k < IMAGE / 16 / 128; k++) {
        lilac_simt_value chunk = op2(r, LILAC_SIMT_OP_ADD, thread(r), word(r, k * 128));
        lilac_simt_value read = lilac_simt_load(&r->b, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_I32, 4,
                                                element(r, 0, chunk, 16), 0, 0, NULL, NULL);
        lilac_simt_value parts[] = {read, read + 1, read + 2, read + 3};
        lilac_simt_store(&r->b, LILAC_SIMT_OP_ST_SHARED, 4, parts,
                         op2(r, LILAC_SIMT_OP_MUL, chunk, word(r, 16)), 0, 0, NULL);
    }
    if (j->store_fence) {
        proxy_fence(r);
    }
    if (j->barrier) {
        lilac_simt_barrier(&r->b);
    }
}

static void read_single(single *j) {
    uint32_t pair = j->shape.d == LILAC_MATRIX_F16 ? 2 : 1, row, column;
    for (uint32_t t = 0; t < 128; t++) {
        for (uint32_t e = 0; e < 64 * j->shape.n / 128; e++) {
            lilac_matrix_d_place(16, t % 32, e, &row, &column);
            uint32_t bits = j->out[e / pair * 128 + t] >> (e % pair * 16);
            j->ed[(row + t / 32 * 16) * j->shape.n + column] = pair == 2 ? bits & 0xFFFF : bits;
        }
    }
}

/* Builds and runs one wgmma; the matrices are in place. */
static void run_single(rig *r, single *j) {
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_WGMMA, .payload.matrix = j->kind};
    uint32_t count = lilac_simt_group_size(&like, 0);
    lilac_simt_type type = lilac_simt_accumulator_type(j->shape.d);
    lilac_simt_value c[128], a[4];
    put_registers(j, count);
    rig_init(r, 4, 3, IMAGE);
    stage_image(r, j);
    for (uint32_t k = 0; k < count; k++) {
        c[k] = load(r, LILAC_SIMT_OP_LD_GLOBAL, type, register_at(r, 1, 4 + k));
    }
    for (uint32_t k = 0; k < 4 && j->kind.registers; k++) {
        a[k] = load(r, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_I32, register_at(r, 1, k));
    }
    if (!j->kind.registers) {
        a[0] = lilac_simt_matrix_descriptor(&r->b, word(r, j->a.start), 0, &j->a);
    }
    lilac_simt_value b = lilac_simt_matrix_descriptor(&r->b, word(r, j->b.start), 0, &j->b);
    at_line(r, FENCE);
    if (j->fence) {
        lilac_simt_wgmma_fence(&r->b);
    }
    at_line(r, MULTIPLY);
    lilac_simt_value d = lilac_simt_wgmma(&r->b, &j->kind, c, a, b, yes(r, j->accumulate));
    at_line(r, COMMIT);
    if (j->commit) {
        lilac_simt_wgmma_commit(&r->b);
    }
    for (uint32_t k = 0; k < count; k++) {
        c[k] = d + k;
    }
    at_line(r, WAIT);
    d = lilac_simt_wgmma_wait(&r->b, 0, count, c);
    at_line(r, LAST);
    for (uint32_t k = 0; k < count; k++) {
        store(r, LILAC_SIMT_OP_ST_GLOBAL, d + k, register_at(r, 2, k));
    }
    give(r, 0, "image", j->image, sizeof j->image);
    give(r, 1, "registers", j->registers, sizeof j->registers);
    give(r, 2, "out", j->out, sizeof j->out);
    if (!rig_run(r)) {
        fail_msg("%s", lilac_diagnostics(r->context)->message);
    }
    read_single(j);
}

static bool single_is_right(const single *j) {
    const lilac_matrix_shape *s = &j->shape;
    for (uint32_t at = 0; at < 64 * s->n; at++) {
        long double c = j->accumulate ? value_of_element(s->d, j->ec[at]) : 0, sum = 0, size = 0;
        for (uint32_t k = s->k; k-- > 0;) {
            long double product = value_of_element(s->a, j->ea[at / s->n * s->k + k]) *
                                  value_of_element(s->b, j->eb[at % s->n * s->k + k]);
            sum += product;
            size += fabsl(product);
        }
        sum = j->kind.negate_a != j->kind.negate_b ? -sum : sum;
        if (!is_sum(s->d, j->ed[at], c + sum, size + fabsl(c))) {
            return false;
        }
    }
    return true;
}

static void single_init(single *j, const lilac_simt_matrix_payload *kind,
                        lilac_matrix_swizzle swizzle, bool exact, uint64_t *seed) {
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_WGMMA, .payload.matrix = *kind};
    memset(j, 0, sizeof *j);
    j->kind = *kind;
    j->shape = lilac_simt_matrix_shape(&like);
    j->accumulate = j->store_fence = j->barrier = j->fence = j->commit = true;
    for (uint32_t k = 0; k < 64 * j->shape.k; k++) {
        j->ea[k] = random_element(j->shape.a, exact, seed);
    }
    for (uint32_t k = 0; k < j->shape.n * j->shape.k; k++) {
        j->eb[k] = random_element(j->shape.b, exact, seed);
    }
    for (uint32_t k = 0; k < 64 * j->shape.n; k++) {
        j->ec[k] = random_element(j->shape.d, exact, seed);
    }
    j->a = packed(swizzle, kind->transpose_a, 64, 0);
    j->b = packed(swizzle, kind->transpose_b, j->shape.n, 16384);
    if (!kind->registers) {
        put_matrix(j, &j->a, kind->transpose_a, 64, j->ea);
    }
    put_matrix(j, &j->b, kind->transpose_b, j->shape.n, j->eb);
}

static void check_single(const lilac_simt_matrix_payload *kind, lilac_matrix_swizzle swizzle,
                         bool exact, bool accumulate, uint64_t *seed) {
    static single j;
    rig r;
    single_init(&j, kind, swizzle, exact, seed);
    j.accumulate = accumulate;
    run_single(&r, &j);
    if (!single_is_right(&j) || lilac_diagnostics(r.context)) {
        show(&r);
        fail_msg("%s x %s, n = %u, swizzle %u, transposed %u %u, registers %u",
                 lilac_matrix_type_name(kind->a), lilac_matrix_type_name(kind->b), kind->n, swizzle,
                 kind->transpose_a, kind->transpose_b, kind->registers);
    }
    assert_int_equal(r.counters.wgmmas, 4);
    assert_int_equal(r.counters.wgmma_cycles, kind->n / 2 > 19 ? kind->n / 2 : 19);
    assert_int_equal(r.counters.wgmma_bytes, (kind->registers ? 0 : 2048) + 32 * kind->n);
    rig_clear(&r);
}

static void test_every_kind(void **state) {
    (void)state;
    uint64_t seed = 17;
    const lilac_wgmma *row;
    for (size_t r = 0; (row = lilac_wgmma_at(r)) != NULL; r++) {
        for (uint32_t bits = 0; bits < 64; bits++) {
            lilac_matrix_type other = row->kind == LILAC_MATRIX_E4M3 ? LILAC_MATRIX_E5M2
                                      : row->kind == LILAC_MATRIX_S8 ? LILAC_MATRIX_U8
                                                                     : row->kind;
            lilac_simt_matrix_payload kind = {.a = (uint8_t)(bits & 4 ? other : row->kind),
                                              .b = (uint8_t)row->kind,
                                              .d = (uint8_t)row->d,
                                              .m = 64,
                                              .n = (uint16_t)(bits & 32 ? 64 : 16),
                                              .k = (uint16_t)row->k,
                                              .registers = bits & 8,
                                              .negate_a = (bits & 16) && row->scales};
            check_single(&kind, (lilac_matrix_swizzle)(bits & 3), bits & 1, !(bits & 16), &seed);
        }
    }
}

/* 16-bit operands with m or n contiguous, as far as the width of the swizzle divides them. */
static void test_transposed(void **state) {
    (void)state;
    uint64_t seed = 19;
    for (uint32_t bits = 0; bits < 32; bits++) {
        lilac_simt_matrix_payload kind = {.a = LILAC_MATRIX_F16,
                                          .b = LILAC_MATRIX_F16,
                                          .d = LILAC_MATRIX_F32,
                                          .m = 64,
                                          .n = bits & 16 ? 128 : 64,
                                          .k = 16,
                                          .transpose_a = bits & 4,
                                          .transpose_b = bits & 8};
        check_single(&kind, (lilac_matrix_swizzle)(bits & 3), true, true, &seed);
    }
}

/* One thing wrong: the finding of this id at this line, or a wrong result where the id is NULL. */
static void expect_single(single *j, const char *id, uint32_t line, uint32_t other) {
    rig r;
    run_single(&r, j);
    bool good = id ? found(&r, id, line, other) : !single_is_right(j);
    if (!good) {
        show(&r);
        fail_msg("%s at line %u is not reported", id ? id : "a wrong result", line);
    }
    rig_clear(&r);
}

static void test_single_mutations(void **state) {
    (void)state;
    static single j;
    uint64_t seed = 23;
    single_init(&j, &f16, LILAC_MATRIX_SWIZZLE_128, true, &seed);
    j.store_fence = false;
    expect_single(&j, "missing-proxy-fence", MULTIPLY, 0);
    single_init(&j, &f16, LILAC_MATRIX_SWIZZLE_128, true, &seed);
    j.barrier = false;
    expect_single(&j, "shared-race", MULTIPLY, 0);
    single_init(&j, &f16, LILAC_MATRIX_SWIZZLE_128, true, &seed);
    j.fence = false;
    expect_single(&j, "missing-wgmma-fence", MULTIPLY, 0);
    single_init(&j, &f16, LILAC_MATRIX_SWIZZLE_128, true, &seed);
    j.commit = false;
    expect_single(&j, "wgmma-not-committed", MULTIPLY, WAIT);
    expect_single(&j, "wgmma-register", LAST, MULTIPLY);
    single_init(&j, &f16, LILAC_MATRIX_SWIZZLE_NONE, true, &seed);
    uint32_t leading = j.b.leading;
    j.b.leading = j.b.stride;
    j.b.stride = leading;
    expect_single(&j, NULL, 0, 0); /* LBO and SBO exchanged */
    single_init(&j, &f16, LILAC_MATRIX_SWIZZLE_128, true, &seed);
    j.b.start += 512; /* the pattern does not start at a multiple of its size */
    expect_single(&j, NULL, 0, 0);
    single_init(&j, &f16, LILAC_MATRIX_SWIZZLE_128, true, &seed);
    j.b.swizzle = LILAC_MATRIX_SWIZZLE_64;
    expect_single(&j, NULL, 0, 0);
    single_init(&j, &f16, LILAC_MATRIX_SWIZZLE_128, true, &seed);
    for (uint32_t k = 0; k < 64 * 64; k++) {
        j.ec[k] = 0x7FC00000; /* as registers that nothing has set may hold */
    }
    j.accumulate = false;
    rig r;
    run_single(&r, &j);
    assert_true(single_is_right(&j));
    rig_clear(&r);
    j.accumulate = true;
    memset(j.registers, 0, sizeof j.registers);
    run_single(&r, &j);
    assert_true(value_of_element(LILAC_MATRIX_F32, j.ed[0]) !=
                value_of_element(LILAC_MATRIX_F32, j.ed[0]));
    rig_clear(&r);
}

/* The bytes of an operand are overwritten: at once, behind a barrier before the wait, behind the wait
 * with no barrier, and behind both, which alone is right. */
static void test_release(void **state) {
    (void)state;
    for (uint32_t when = 0; when < 4; when++) {
        static single j;
        uint64_t seed = 37;
        rig r;
        single_init(&j, &f16, LILAC_MATRIX_SWIZZLE_128, true, &seed);
        rig_init(&r, 4, 3, IMAGE);
        stage_image(&r, &j);
        lilac_simt_value c[32], d, b, a;
        a = lilac_simt_matrix_descriptor(&r.b, word(&r, j.a.start), 0, &j.a);
        b = lilac_simt_matrix_descriptor(&r.b, word(&r, j.b.start), 0, &j.b);
        for (uint32_t k = 0; k < 32; k++) {
            c[k] = lilac_simt_constant(&r.b, LILAC_SIMT_F32, 0);
        }
        lilac_simt_wgmma_fence(&r.b);
        at_line(&r, MULTIPLY);
        d = lilac_simt_wgmma(&r.b, &f16, c, &a, b, yes(&r, false));
        lilac_simt_wgmma_commit(&r.b);
        for (uint32_t k = 0; k < 32; k++) {
            c[k] = d + k;
        }
        at_line(&r, WAIT);
        if (when >= 2) {
            lilac_simt_wgmma_wait(&r.b, 0, 32, c);
        }
        if (when == 1 || when == 3) {
            lilac_simt_barrier(&r.b);
        }
        at_line(&r, COPY);
        lilac_simt_value to = op2(&r, LILAC_SIMT_OP_MUL, thread(&r), word(&r, 16));
        store(&r, LILAC_SIMT_OP_ST_SHARED, word(&r, 0x12345678), to);
        at_line(&r, WAIT);
        if (when < 2) {
            lilac_simt_wgmma_wait(&r.b, 0, 32, c);
        }
        give(&r, 0, "image", j.image, sizeof j.image);
        give(&r, 1, "registers", j.registers, sizeof j.registers);
        give(&r, 2, "out", j.out, sizeof j.out);
        assert_true(rig_run(&r));
        assert_int_equal(found(&r, "wgmma-operand-changed", MULTIPLY, WAIT), when < 2);
        assert_int_equal(found(&r, "shared-race", COPY, MULTIPLY), when == 0 || when == 2);
        assert_int_equal(lilac_diagnostics(r.context) == NULL, when == 3);
        rig_clear(&r);
    }
}

/* A descriptor that differs within the warpgroup, one that leads out of shared memory, and one that leads out
 * of the bytes that the product promises. */
static void test_traps(void **state) {
    static const char *const ids[] = {"divergent-operand", "out-of-bounds", "outside-interval"};
    (void)state;
    for (uint32_t out = 0; out < 3; out++) {
        static single j;
        uint64_t seed = 41;
        rig r;
        single_init(&j, &f16, LILAC_MATRIX_SWIZZLE_128, true, &seed);
        rig_init(&r, 4, 3, IMAGE);
        stage_image(&r, &j);
        lilac_simt_value c[32], a, b, start = word(&r, IMAGE - 4096);
        if (!out) { /* thread 77 alone starts 1024 bytes further */
            start = lilac_simt_op3(
                &r.b, LILAC_SIMT_OP_SELECT, LILAC_SIMT_I32,
                lilac_simt_compare_values(&r.b, LILAC_SIMT_EQ, thread(&r), word(&r, 77)),
                word(&r, 1024), word(&r, 0));
        }
        a = lilac_simt_matrix_descriptor(&r.b, word(&r, 0), 0, &j.a);
        start = op2(&r, LILAC_SIMT_OP_SHR_U, start, word(&r, 4));
        b = lilac_simt_op2(&r.b, LILAC_SIMT_OP_ADD, LILAC_SIMT_I64, a,
                           lilac_simt_op1(&r.b, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I64, start));
        for (uint32_t k = 0; k < 32; k++) {
            c[k] = lilac_simt_constant(&r.b, LILAC_SIMT_F32, 0);
        }
        lilac_simt_wgmma_fence(&r.b);
        const lilac_simt_value d = lilac_simt_wgmma(&r.b, &f16, c, &a, b, yes(&r, false));
        r.kernel->values[d].definition->shared_end = out == 2 ? IMAGE - 4096 : 0;
        lilac_simt_wgmma_commit(&r.b);
        lilac_simt_wgmma_wait(&r.b, 0, 0, NULL);
        give(&r, 0, "image", j.image, sizeof j.image);
        give(&r, 1, "registers", j.registers, sizeof j.registers);
        give(&r, 2, "out", j.out, sizeof j.out);
        assert_false(rig_run(&r));
        assert_int_equal(reported(&r, ids[out], NULL), 1);
        rig_clear(&r);
    }
}

/* No wait at all. */
static void test_not_awaited(void **state) {
    (void)state;
    static single j;
    uint64_t seed = 43;
    rig r;
    single_init(&j, &f16, LILAC_MATRIX_SWIZZLE_128, true, &seed);
    rig_init(&r, 4, 3, IMAGE);
    stage_image(&r, &j);
    lilac_simt_value c[32], a;
    a = lilac_simt_matrix_descriptor(&r.b, word(&r, 0), 0, &j.a);
    for (uint32_t k = 0; k < 32; k++) {
        c[k] = lilac_simt_constant(&r.b, LILAC_SIMT_F32, 0);
    }
    lilac_simt_wgmma_fence(&r.b);
    at_line(&r, MULTIPLY);
    lilac_simt_wgmma(&r.b, &f16, c, &a, a, yes(&r, false));
    lilac_simt_wgmma_commit(&r.b);
    give(&r, 0, "image", j.image, sizeof j.image);
    give(&r, 1, "registers", j.registers, sizeof j.registers);
    give(&r, 2, "out", j.out, sizeof j.out);
    assert_true(rig_run(&r));
    assert_true(found(&r, "wgmma-not-awaited", MULTIPLY, 0));
    rig_clear(&r);
}

/* More than 7 groups cannot be left: with wait 9 the eighth group completes the first. */
static void test_wait_is_clamped(void **state) {
    (void)state;
    static single j;
    uint64_t seed = 31;
    rig r;
    single_init(&j, &f16, LILAC_MATRIX_SWIZZLE_128, true, &seed);
    rig_init(&r, 4, 3, IMAGE);
    stage_image(&r, &j);
    lilac_simt_value c[32], d, b, a;
    a = lilac_simt_matrix_descriptor(&r.b, word(&r, j.a.start), 0, &j.a);
    b = lilac_simt_matrix_descriptor(&r.b, word(&r, j.b.start), 0, &j.b);
    for (uint32_t k = 0; k < 32; k++) {
        c[k] = lilac_simt_constant(&r.b, LILAC_SIMT_F32, 0);
    }
    lilac_simt_wgmma_fence(&r.b);
    lilac_simt_value first = 0;
    for (uint32_t g = 0; g < 8; g++) {
        d = lilac_simt_wgmma(&r.b, &f16, c, &a, b, yes(&r, false));
        lilac_simt_wgmma_commit(&r.b);
        first = g == 0 ? d : first;
    }
    for (uint32_t k = 0; k < 32; k++) {
        c[k] = first + k;
    }
    d = lilac_simt_wgmma_wait(&r.b, 9, 32, c);
    store(&r, LILAC_SIMT_OP_ST_GLOBAL, d, register_at(&r, 2, 0));
    lilac_simt_wgmma_wait(&r.b, 0, 0, NULL);
    give(&r, 0, "image", j.image, sizeof j.image);
    give(&r, 1, "registers", j.registers, sizeof j.registers);
    give(&r, 2, "out", j.out, sizeof j.out);
    assert_true(rig_run(&r));
    if (lilac_diagnostics(r.context)) {
        show(&r);
        fail();
    }
    rig_clear(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind),       cmocka_unit_test(test_transposed),
        cmocka_unit_test(test_single_mutations), cmocka_unit_test(test_wait_is_clamped),
        cmocka_unit_test(test_release),          cmocka_unit_test(test_traps),
        cmocka_unit_test(test_not_awaited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
