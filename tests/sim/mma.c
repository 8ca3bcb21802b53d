/* mma on the simulator: random matrices of every row of the table against a sum in long double, and
 * the rules of rounding, saturation and poison. */

#include <lilac/simt_matrix.h>

#include "support/matrix_numbers.h"
#include "support/sim_kernels.h"
#include "support/test.h"

enum { WARPS = 2, THREADS = 32 * WARPS, MOST = 16 };

/* What the threads hold: registers of A, B, C and D by number, then by thread. */
typedef struct job {
    lilac_simt_matrix_payload kind;
    lilac_matrix_shape shape;
    uint32_t counts[3], width; /* registers of A, B, C; bytes of one */
    uint64_t a[WARPS][16 * 32], b[WARPS][32 * 8], c[WARPS][16 * 8], d[WARPS][16 * 8]; /* elements */
    uint8_t in[3 * MOST * THREADS * 8], out[MOST * THREADS * 8];
} job;

static void job_init(job *j, const lilac_simt_matrix_payload *kind) {
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_MMA, .payload.matrix = *kind};
    memset(j, 0, sizeof *j);
    j->kind = *kind;
    j->shape = lilac_simt_matrix_shape(&like);
    j->width = kind->a == LILAC_MATRIX_F64 ? 8 : 4;
    for (uint32_t g = 0; g < 3; g++) {
        j->counts[g] = lilac_simt_group_size(&like, g);
    }
}

static void put(uint8_t *array, uint32_t width, uint32_t index, uint32_t shift, uint64_t bits) {
    uint64_t old = 0;
    memcpy(&old, array + (size_t)index * width, width);
    old |= bits << shift;
    memcpy(array + (size_t)index * width, &old, width);
}

/* Lays the elements of A and B, and of C, into registers. */
static void fill_registers(job *j) {
    uint32_t bits = lilac_matrix_type_bits(j->shape.a), each = bits >= 32 ? 1 : 32 / bits;
    uint32_t outer, word, column;
    for (uint32_t t = 0; t < THREADS; t++) {
        uint32_t warp = t / 32, lane = t % 32;
        for (uint32_t g = 0; g < 2; g++) {
            for (uint32_t i = 0; i < j->counts[g]; i++) {
                if (g == 0) {
                    lilac_matrix_a_place(j->shape.m, lane, i, &outer, &word);
                } else {
                    lilac_matrix_b_place(lane, i, &outer, &word);
                }
                for (uint32_t e = 0; e < each; e++) {
                    put(j->in, j->width, (g * MOST + i) * THREADS + t, e * bits,
                        g ? j->b[warp][outer * j->shape.k + word * each + e]
                          : j->a[warp][outer * j->shape.k + word * each + e]);
                }
            }
        }
        uint32_t pair = j->shape.d == LILAC_MATRIX_F16 ? 2 : 1;
        for (uint32_t e = 0; e < j->counts[2] * pair; e++) {
            lilac_matrix_d_place(j->shape.m, lane, e, &outer, &column);
            put(j->in, j->width, (2 * MOST + e / pair) * THREADS + t, e % pair * 16,
                j->c[warp][outer * j->shape.n + column]);
        }
    }
}

static void read_results(job *j) {
    uint32_t pair = j->shape.d == LILAC_MATRIX_F16 ? 2 : 1, row, column;
    for (uint32_t t = 0; t < THREADS; t++) {
        for (uint32_t e = 0; e < j->counts[2] * pair; e++) {
            uint64_t bits = 0;
            memcpy(&bits, j->out + (size_t)(e / pair * THREADS + t) * j->width, j->width);
            lilac_matrix_d_place(j->shape.m, t % 32, e, &row, &column);
            j->d[t / 32][row * j->shape.n + column] =
                pair == 2 ? bits >> (e % 2 * 16) & 0xFFFF : bits;
        }
    }
}

static void run(rig *r, job *j) {
    lilac_simt_value values[3][MOST];
    lilac_simt_type c = lilac_simt_accumulator_type(j->shape.d);
    lilac_simt_type w = j->width == 8 ? LILAC_SIMT_F64 : LILAC_SIMT_I32;
    fill_registers(j);
    rig_init(r, WARPS, 2, 0);
    for (uint32_t g = 0; g < 3; g++) {
        for (uint32_t i = 0; i < j->counts[g]; i++) {
            values[g][i] = load(
                r, LILAC_SIMT_OP_LD_GLOBAL, g < 2 ? w : c,
                element(r, 0,
                        op2(r, LILAC_SIMT_OP_ADD, thread(r), word(r, (g * MOST + i) * THREADS)),
                        j->width));
        }
    }
    lilac_simt_value d = lilac_simt_mma(&r->b, &j->kind, values[0], values[1], values[2]);
    for (uint32_t i = 0; i < j->counts[2]; i++) {
        store(r, LILAC_SIMT_OP_ST_GLOBAL, d + i,
              element(r, 1, op2(r, LILAC_SIMT_OP_ADD, thread(r), word(r, i * THREADS)), j->width));
    }
    give(r, 0, "in", j->in, sizeof j->in);
    give(r, 1, "out", j->out, sizeof j->out);
    if (!rig_run(r)) {
        fail_msg("%s", lilac_diagnostics(r->context)->message);
    }
    read_results(j);
}

static void check(const job *j) {
    const lilac_matrix_shape *s = &j->shape;
    for (uint32_t w = 0; w < WARPS; w++) {
        for (uint32_t row = 0; row < s->m; row++) {
            for (uint32_t column = 0; column < s->n; column++) {
                uint32_t at = row * s->n + column;
                long double sum = value_of_element(s->d, j->c[w][at]), size = fabsl(sum);
                for (uint32_t k = s->k; k-- > 0;) {
                    long double product = value_of_element(s->a, j->a[w][row * s->k + k]) *
                                          value_of_element(s->b, j->b[w][column * s->k + k]);
                    sum += product;
                    size += fabsl(product);
                }
                if (!is_sum(s->d, j->d[w][at], sum, size)) {
                    fail_msg("%s x %s, k = %u: row %u, column %u: %llx, not %Lg",
                             lilac_matrix_type_name(s->a), lilac_matrix_type_name(s->b), s->k, row,
                             column, (unsigned long long)j->d[w][at], sum);
                }
            }
        }
    }
}

static void randomise(job *j, bool exact, uint64_t *seed) {
    for (uint32_t w = 0; w < WARPS; w++) {
        for (uint32_t k = 0; k < j->shape.m * j->shape.k; k++) {
            j->a[w][k] = random_element(j->shape.a, exact, seed);
        }
        for (uint32_t k = 0; k < j->shape.n * j->shape.k; k++) {
            j->b[w][k] = random_element(j->shape.b, exact, seed);
        }
        for (uint32_t k = 0; k < j->shape.m * j->shape.n; k++) {
            j->c[w][k] = random_element(j->shape.d, exact, seed);
        }
    }
}

static lilac_simt_matrix_payload payload_of(const lilac_mma *row, lilac_matrix_type a,
                                            lilac_matrix_type b) {
    return (lilac_simt_matrix_payload){.a = (uint8_t)a,
                                       .b = (uint8_t)b,
                                       .d = (uint8_t)row->d,
                                       .m = (uint16_t)row->m,
                                       .n = (uint16_t)row->n,
                                       .k = (uint16_t)row->k};
}

static void test_random_matrices(void **state) {
    (void)state;
    uint64_t seed = 13;
    const lilac_mma *row;
    static job j;
    for (size_t r = 0; (row = lilac_mma_at(r)) != NULL; r++) {
        for (uint32_t ab = 0; ab < LILAC_MATRIX_TYPE_COUNT * LILAC_MATRIX_TYPE_COUNT; ab++) {
            lilac_matrix_type a = (lilac_matrix_type)(ab / LILAC_MATRIX_TYPE_COUNT);
            lilac_matrix_type b = (lilac_matrix_type)(ab % LILAC_MATRIX_TYPE_COUNT);
            if (lilac_matrix_type_class(a) != row->kind ||
                lilac_matrix_type_class(b) != row->kind) {
                continue;
            }
            for (uint32_t exact = 0; exact < 2; exact++) {
                rig rigged;
                lilac_simt_matrix_payload kind = payload_of(row, a, b);
                job_init(&j, &kind);
                randomise(&j, exact, &seed);
                run(&rigged, &j);
                check(&j);
                assert_int_equal(rigged.counters.mmas, WARPS);
                rig_clear(&rigged);
            }
        }
    }
}

/* Sums at the ends of the range wrap, or stay there. */
static void test_integer_overflow(void **state) {
    (void)state;
    static job j;
    for (uint32_t saturate = 0; saturate < 2; saturate++) {
        const lilac_mma *row = lilac_mma_find(
            &(lilac_matrix_shape){LILAC_MATRIX_S8, LILAC_MATRIX_S8, LILAC_MATRIX_S32, 16, 8, 32});
        lilac_simt_matrix_payload kind = payload_of(row, LILAC_MATRIX_S8, LILAC_MATRIX_S8);
        rig r;
        kind.saturate = saturate;
        job_init(&j, &kind);
        for (uint32_t k = 0; k < 16 * 32; k++) {
            j.a[0][k] = k < 32 ? 127 : 0x80; /* row 0: 127, others: -128 */
        }
        for (uint32_t k = 0; k < 8 * 32; k++) {
            j.b[0][k] = 127;
        }
        for (uint32_t k = 0; k < 16 * 8; k++) {
            j.c[0][k] = k < 8 ? INT32_MAX - 5 : (uint32_t)INT32_MIN + 5;
        }
        run(&r, &j);
        uint32_t up = 32u * 127 * 127, down = 32u * 128 * 127;
        assert_int_equal(j.d[0][0], saturate ? INT32_MAX : (uint32_t)INT32_MAX - 5 + up);
        assert_int_equal(j.d[0][8],
                         saturate ? (uint32_t)INT32_MIN : (uint32_t)INT32_MIN + 5 - down);
        rig_clear(&r);
    }
}

/* One rounding at the end: 2^24 + 1 - 2^24 is 1, and 1 + 2^-24 stays 1. */
static void test_one_rounding(void **state) {
    (void)state;
    static job j;
    const lilac_mma *row = lilac_mma_find(
        &(lilac_matrix_shape){LILAC_MATRIX_BF16, LILAC_MATRIX_BF16, LILAC_MATRIX_F32, 16, 8, 8});
    lilac_simt_matrix_payload kind = payload_of(row, LILAC_MATRIX_BF16, LILAC_MATRIX_BF16);
    rig r;
    job_init(&j, &kind);
    j.b[0][0] = j.b[0][1] = j.b[0][2] = 0x3F80; /* column 0: 1, 1, 1 */
    j.a[0][0] = 0x4B80;                         /* row 0: 2^24, 1, -2^24 */
    j.a[0][1] = 0x3F80;
    j.a[0][2] = 0xCB80;
    j.a[0][8] = 0x3380; /* row 1: 2^-24 */
    j.c[0][8] = 0x3F800000;
    run(&r, &j);
    assert_int_equal(j.d[0][0], 0x3F800000);
    assert_int_equal(j.d[0][8], 0x3F800000);
    rig_clear(&r);
}

/* A quotient by zero in one lane makes all results of its warp poison, and of no other. */
static void test_poison(void **state) {
    (void)state;
    const lilac_simt_matrix_payload kind = {.a = LILAC_MATRIX_F16,
                                            .b = LILAC_MATRIX_F16,
                                            .d = LILAC_MATRIX_F32,
                                            .m = 16,
                                            .n = 8,
                                            .k = 8};
    for (uint32_t warp = 0; warp < WARPS; warp++) {
        rig r;
        uint32_t result[THREADS];
        rig_init(&r, WARPS, 1, 0);
        lilac_simt_value zero = op2(&r, LILAC_SIMT_OP_XOR, thread(&r), word(&r, 7));
        lilac_simt_value bad = op2(&r, LILAC_SIMT_OP_DIV_U, word(&r, 5), zero);
        lilac_simt_value a[] = {bad, bad}, b[] = {bad}, c[4];
        for (uint32_t k = 0; k < 4; k++) {
            c[k] = lilac_simt_constant(&r.b, LILAC_SIMT_F32, 0);
        }
        lilac_simt_value d = lilac_simt_mma(&r.b, &kind, a, b, c);
        lilac_simt_value mine =
            lilac_simt_compare_values(&r.b, LILAC_SIMT_EQ, thread(&r), word(&r, 32 * warp + 20));
        lilac_simt_store(&r.b, LILAC_SIMT_OP_ST_GLOBAL, 1, &d, element(&r, 0, thread(&r), 4), 0,
                         mine, NULL);
        give(&r, 0, "result", result, sizeof result);
        assert_int_equal(rig_run(&r), warp != 0); /* thread 7 is of warp 0 */
        assert_int_equal(reported(&r, "division-by-zero", NULL), warp == 0);
        rig_clear(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_matrices),
        cmocka_unit_test(test_integer_overflow),
        cmocka_unit_test(test_one_rounding),
        cmocka_unit_test(test_poison),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
