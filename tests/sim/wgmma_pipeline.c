/* A pipelined product of matrices by wgmma on the simulator:
 *
 *     start tiles 0 and 1                     lines
 *     loop i                                  ring of four stages
 *       cp.async.wait 1; barrier              BARRIER  tile i is there; group i - 2 is complete in all
 *       start tile i + 2                      COPY     warps, so that its stage may be filled
 *       wgmma.fence; four wgmmas; commit      MULTIPLY
 *       wgmma.wait 1                          WAIT
 *     wgmma.wait 0; store                     LAST
 *
 * is right, and each mutation of it is reported or gives a wrong result. */
#define _POSIX_C_SOURCE 200809L /* mkstemp, popen */

#include <lilac/ptx.h>

#include "support/assemble.h"
#include "support/matrix_numbers.h"
#include "support/test.h"
#include "support/wgmma_findings.h"

enum { TILES = 6, STAGES = 4, N = 64, K = 64 * TILES, TILE_B = N * 128 };

/* What may be wrong with the kernel. */
typedef struct pipeline {
    uint32_t groups;     /* warpgroups: 64 rows of A each */
    uint32_t stages;     /* of the ring */
    uint32_t wait, last; /* groups that the waits leave */
    bool registers;      /* A by ld.shared into registers */
    bool no_wait, no_barrier, no_fence, no_commit;
    bool touches;        /* the loop uses an accumulator in flight */
    bool accumulates;    /* the first tile too, on accumulators that are not numbers */
    uint32_t extra;      /* barriers that order nothing */
    bool one_warp_waits; /* the barrier joins the warps of one warpgroup only */
} pipeline;

static const pipeline right = {.groups = 1, .stages = STAGES, .wait = 1};

static uint16_t matrix_a[128 * K], matrix_b[N * K];
static float product[128 * N], wanted[128 * N];

/* Starts the copy of `rows` rows of a tile of 64 k into the stage, with a swizzle of 128 bytes. */
static void copy_tile(rig *r, uint32_t parameter, uint32_t rows, lilac_simt_value tile,
                      lilac_simt_value stage, uint32_t base, lilac_simt_value more) {
    uint32_t threads = 32 * r->kernel->num_warps;
    const lilac_simt_instruction like = {.cache = LILAC_SIMT_CACHE_CG};
    for (uint32_t k = 0; k < rows * 8 / threads; k++) {
        lilac_simt_value chunk = op2(r, LILAC_SIMT_OP_ADD, thread(r), word(r, k * threads));
        lilac_simt_value row = op2(r, LILAC_SIMT_OP_SHR_U, chunk, word(r, 3));
        lilac_simt_value column = op2(r, LILAC_SIMT_OP_AND, chunk, word(r, 7));
        lilac_simt_value swizzled =
            op2(r, LILAC_SIMT_OP_XOR, column, op2(r, LILAC_SIMT_OP_AND, row, word(r, 7)));
        lilac_simt_value to =
            op2(r, LILAC_SIMT_OP_ADD, op2(r, LILAC_SIMT_OP_MUL, row, word(r, 128)),
                op2(r, LILAC_SIMT_OP_MUL, swizzled, word(r, 16)));
        to = op2(r, LILAC_SIMT_OP_ADD, to, op2(r, LILAC_SIMT_OP_MUL, stage, word(r, rows * 128)));
        lilac_simt_value from =
            op2(r, LILAC_SIMT_OP_ADD, op2(r, LILAC_SIMT_OP_MUL, row, word(r, K)),
                op2(r, LILAC_SIMT_OP_ADD, op2(r, LILAC_SIMT_OP_MUL, tile, word(r, 64)),
                    op2(r, LILAC_SIMT_OP_MUL, column, word(r, 8))));
        lilac_simt_copy_async(&r->b, 16, to, base, element(r, parameter, from, 2), 0, more, 0,
                              &like);
    }
}

static void start_tile(rig *r, const pipeline *p, lilac_simt_value tile) {
    lilac_simt_value more = lilac_simt_compare_values(&r->b, LILAC_SIMT_LT, tile, word(r, TILES));
    lilac_simt_value stage = op2(r, LILAC_SIMT_OP_REM_U, tile, word(r, p->stages));
    uint32_t rows = 64 * p->groups;
    copy_tile(r, 0, rows, tile, stage, 0, more);
    copy_tile(r, 1, N, tile, stage, p->stages * rows * 128, more);
    lilac_simt_copy_commit(&r->b);
}

/* The address of the tile's part that this warpgroup reads. */
static lilac_simt_value group_start(rig *r, const pipeline *p, lilac_simt_value stage) {
    lilac_simt_value group =
        op2(r, LILAC_SIMT_OP_SHR_U, leaf(r, LILAC_SIMT_OP_WARP, 0), word(r, 2));
    return op2(r, LILAC_SIMT_OP_ADD,
               op2(r, LILAC_SIMT_OP_MUL, stage, word(r, p->groups * 64 * 128)),
               op2(r, LILAC_SIMT_OP_MUL, group, word(r, 64 * 128)));
}

/* Words of A for step `step`, from the swizzled tile. */
static void load_fragment(rig *r, lilac_simt_value start, uint32_t step, lilac_simt_value a[4]) {
    lilac_simt_value lane = leaf(r, LILAC_SIMT_OP_LANE, 0), warp = leaf(r, LILAC_SIMT_OP_WARP, 0);
    lilac_simt_value g = op2(r, LILAC_SIMT_OP_SHR_U, lane, word(r, 2));
    lilac_simt_value t = op2(r, LILAC_SIMT_OP_AND, lane, word(r, 3));
    lilac_simt_value first =
        op2(r, LILAC_SIMT_OP_MUL, op2(r, LILAC_SIMT_OP_AND, warp, word(r, 3)), word(r, 16 * 128));
    for (uint32_t i = 0; i < 4; i++) {
        lilac_simt_value chunk = op2(r, LILAC_SIMT_OP_XOR, g, word(r, 2 * step + i / 2));
        lilac_simt_value at = op2(r, LILAC_SIMT_OP_ADD, first, start);
        at = op2(r, LILAC_SIMT_OP_ADD, at, op2(r, LILAC_SIMT_OP_MUL, g, word(r, 128)));
        at = op2(r, LILAC_SIMT_OP_ADD, at, op2(r, LILAC_SIMT_OP_MUL, chunk, word(r, 16)));
        at = op2(r, LILAC_SIMT_OP_ADD, at, op2(r, LILAC_SIMT_OP_MUL, t, word(r, 4)));
        a[i] = lilac_simt_load(&r->b, LILAC_SIMT_OP_LD_SHARED, LILAC_SIMT_I32, 1, at,
                               i % 2 * 8 * 128, 0, NULL, NULL);
    }
}

/* Four wgmmas on the tile of the stage. */
static void multiply_tile(rig *r, const pipeline *p, lilac_simt_value i, lilac_simt_value *acc) {
    const lilac_matrix_descriptor like = {
        .leading = 16, .stride = 1024, .swizzle = LILAC_MATRIX_SWIZZLE_128};
    lilac_simt_matrix_payload kind = f16;
    lilac_simt_value stage = op2(r, LILAC_SIMT_OP_REM_U, i, word(r, p->stages)), a[4][4];
    lilac_simt_value start = group_start(r, p, stage);
    lilac_simt_value b = op2(r, LILAC_SIMT_OP_MUL, stage, word(r, TILE_B));
    b = op2(r, LILAC_SIMT_OP_ADD, b, word(r, p->stages * p->groups * 64 * 128));
    lilac_simt_value later = lilac_simt_compare_values(&r->b, LILAC_SIMT_NE, i, word(r, 0));
    kind.registers = p->registers;
    at_line(r, FRAGMENT);
    for (uint32_t step = 0; step < 4 && p->registers; step++) {
        load_fragment(r, start, step, a[step]);
    }
    if (!p->registers) {
        a[0][0] = lilac_simt_matrix_descriptor(&r->b, start, 0, &like);
    }
    lilac_simt_value db = lilac_simt_matrix_descriptor(&r->b, b, 0, &like);
    at_line(r, FENCE);
    if (!p->no_fence) {
        lilac_simt_wgmma_fence(&r->b);
    }
    at_line(r, MULTIPLY);
    for (uint32_t step = 0; step < 4; step++) {
        lilac_simt_value more = lilac_simt_constant(&r->b, LILAC_SIMT_I64, 2 * step);
        lilac_simt_value da = a[0][0];
        if (!p->registers) {
            da = lilac_simt_op2(&r->b, LILAC_SIMT_OP_ADD, LILAC_SIMT_I64, da, more);
        }
        lilac_simt_value first =
            lilac_simt_wgmma(&r->b, &kind, acc, p->registers ? a[step] : &da,
                             lilac_simt_op2(&r->b, LILAC_SIMT_OP_ADD, LILAC_SIMT_I64, db, more),
                             step > 0 || p->accumulates ? yes(r, true) : later);
        for (uint32_t k = 0; k < N / 2; k++) {
            acc[k] = first + k;
        }
    }
    at_line(r, COMMIT);
    if (!p->no_commit) {
        lilac_simt_wgmma_commit(&r->b);
    }
}

static void store_product(rig *r, const lilac_simt_value *acc) {
    lilac_simt_value lane = leaf(r, LILAC_SIMT_OP_LANE, 0), warp = leaf(r, LILAC_SIMT_OP_WARP, 0);
    lilac_simt_value row = op2(r, LILAC_SIMT_OP_ADD, op2(r, LILAC_SIMT_OP_MUL, warp, word(r, 16)),
                               op2(r, LILAC_SIMT_OP_SHR_U, lane, word(r, 2)));
    lilac_simt_value column =
        op2(r, LILAC_SIMT_OP_MUL, op2(r, LILAC_SIMT_OP_AND, lane, word(r, 3)), word(r, 2));
    lilac_simt_value at =
        op2(r, LILAC_SIMT_OP_ADD, op2(r, LILAC_SIMT_OP_MUL, row, word(r, N)), column);
    for (uint32_t e = 0; e < N / 2; e++) {
        lilac_simt_store(&r->b, LILAC_SIMT_OP_ST_GLOBAL, 1, &acc[e], element(r, 2, at, 4),
                         4 * (int64_t)(e % 2 + 8 * (e / 4) + 8 * N * (e / 2 % 2)), 0, NULL);
    }
}

/* The barrier of an iteration. */
static void meet(rig *r, const pipeline *p) {
    at_line(r, BARRIER);
    lilac_simt_copy_wait(&r->b, 1);
    if (p->one_warp_waits) {
        lilac_simt_group_barrier(
            &r->b, op2(r, LILAC_SIMT_OP_SHR_U, leaf(r, LILAC_SIMT_OP_WARP, 0), word(r, 2)), 128);
    }
    for (uint32_t k = 0; k < 1 + p->extra && !p->no_barrier && !p->one_warp_waits; k++) {
        lilac_simt_barrier(&r->b);
    }
}

static void build_pipeline(rig *r, const pipeline *p) {
    lilac_simt_value acc[N / 2], i;
    rig_init(r, 4 * p->groups, 3, p->stages * (p->groups * 64 * 128 + TILE_B));
    at_line(r, FIRST);
    start_tile(r, p, word(r, 0));
    start_tile(r, p, word(r, 1));
    for (uint32_t k = 0; k < N / 2; k++) {
        acc[k] = lilac_simt_constant(&r->b, LILAC_SIMT_F32, 0x7FC00000);
    }
    lilac_simt_instruction *loop =
        lilac_simt_loop_begin(&r->b, word(r, 0), word(r, TILES), word(r, 1), N / 2, acc, &i);
    for (uint32_t k = 0; k < N / 2; k++) {
        acc[k] = i + 1 + k;
    }
    meet(r, p);
    at_line(r, COPY);
    start_tile(r, p, op2(r, LILAC_SIMT_OP_ADD, i, word(r, 2)));
    multiply_tile(r, p, i, acc);
    if (p->touches) {
        acc[5] = lilac_simt_op2(&r->b, LILAC_SIMT_OP_FADD, LILAC_SIMT_F32, acc[5],
                                lilac_simt_constant(&r->b, LILAC_SIMT_F32, 0x3F800000));
    }
    at_line(r, WAIT);
    if (!p->no_wait) {
        lilac_simt_wgmma_wait(&r->b, p->wait, 0, NULL);
    }
    lilac_simt_value first = lilac_simt_loop_end(&r->b, loop, acc);
    for (uint32_t k = 0; k < N / 2; k++) {
        acc[k] = first + k;
    }
    at_line(r, LAST);
    first = lilac_simt_wgmma_wait(&r->b, p->last, N / 2, acc);
    for (uint32_t k = 0; k < N / 2; k++) {
        acc[k] = first + k;
    }
    lilac_simt_copy_wait_all(&r->b);
    store_product(r, acc);
}

static void fill_matrices(void) {
    uint64_t seed = 29;
    for (uint32_t k = 0; k < 128 * K; k++) {
        matrix_a[k] = (uint16_t)random_element(LILAC_MATRIX_F16, true, &seed);
    }
    for (uint32_t k = 0; k < N * K; k++) {
        matrix_b[k] = (uint16_t)random_element(LILAC_MATRIX_F16, true, &seed);
    }
    for (uint32_t at = 0; at < 128 * N; at++) {
        long double sum = 0;
        for (uint32_t k = 0; k < K; k++) {
            sum += value_of_element(LILAC_MATRIX_F16, matrix_a[at / N * K + k]) *
                   value_of_element(LILAC_MATRIX_F16, matrix_b[at % N * K + k]);
        }
        wanted[at] = (float)sum;
    }
}

static void give_matrices(rig *r) {
    memset(product, 0, sizeof product);
    give(r, 0, "a", matrix_a, sizeof matrix_a);
    give(r, 1, "b", matrix_b, sizeof matrix_b);
    give(r, 2, "product", product, sizeof product);
}

/* Runs a kernel that is closed. */
static bool launch(rig *r) {
    r->launch.buffer_count = r->parameters;
    lilac_sim_place(r->buffers, r->parameters);
    for (uint32_t k = 0; k < r->parameters; k++) {
        r->arguments[k] = r->buffers[k].address;
    }
    return lilac_sim_run(r->context, &r->launch, &r->counters);
}

static bool is_right(const pipeline *p) {
    return memcmp(product, wanted, sizeof *wanted * 64 * p->groups * N) == 0;
}

/* Builds and runs; whether the result is right. */
static bool run_pipeline(rig *r, const pipeline *p) {
    build_pipeline(r, p);
    effect(r, LILAC_SIMT_OP_RETURN);
    give_matrices(r);
    if (!launch(r)) {
        fail_msg("%s", lilac_diagnostics(r->context)->message);
    }
    return is_right(p);
}

static void test_pipeline_is_right(void **state) {
    (void)state;
    fill_matrices();
    for (uint32_t k = 0; k < 4; k++) {
        pipeline p = right;
        rig r;
        p.groups = 1 + k % 2;
        p.registers = k >= 2;
        p.wait = p.registers ? 0 : 1; /* the fragments have the same registers each time */
        if (!run_pipeline(&r, &p) || lilac_diagnostics(r.context)) {
            show(&r);
            fail_msg("%u warpgroups, %u groups left", p.groups, p.wait);
        }
        assert_int_equal(r.counters.wgmmas, 16 * TILES * p.groups);
        assert_int_equal(r.counters.wgmma_cycles, 4 * TILES * p.groups * N / 2);
        assert_int_equal(r.counters.wgmma_bytes,
                         4 * TILES * p.groups * ((p.registers ? 0 : 2048) + 32 * N));
        rig_clear(&r);
    }
}

/* The kernel is reported with this id at this line and, in a note, the other. */
static void expect(const pipeline *p, const char *id, uint32_t line, uint32_t other) {
    rig r;
    (void)run_pipeline(&r, p);
    if (!found(&r, id, line, other)) {
        show(&r);
        fail_msg("no %s at line %u, %u", id, line, other);
    }
    rig_clear(&r);
}

static void test_pipeline_mutations(void **state) {
    (void)state;
    fill_matrices();
    pipeline p = right;
    p.no_wait = true; /* the stage of tile i - 2 is filled while it may be read */
    expect(&p, "wgmma-operand-changed", MULTIPLY, LAST);
    p = right;
    p.stages = 3; /* the stage of tile i - 1 is filled */
    expect(&p, "wgmma-operand-changed", MULTIPLY, WAIT);
    p = right;
    p.wait = 2;
    expect(&p, "wgmma-operand-changed", MULTIPLY, WAIT);
    p = right;
    p.last = 1;
    expect(&p, "wgmma-register", LAST, MULTIPLY);
    p = right;
    p.no_barrier = true;
    expect(&p, "shared-race", 0, 0);
    p = right;
    p.no_fence = true;
    expect(&p, "missing-wgmma-fence", MULTIPLY, 0);
    p = right;
    p.no_commit = true;
    expect(&p, "wgmma-not-committed", MULTIPLY, WAIT);
    p = right;
    p.touches = true;
    expect(&p, "wgmma-register", COMMIT, MULTIPLY);
    p = right;
    p.registers = true; /* and wait 1: the next tile's fragments overwrite those in flight */
    expect(&p, "wgmma-operand-changed", MULTIPLY, WAIT);
    p = right;
    p.groups = 2;
    p.one_warp_waits = true; /* the other warpgroup may still read B */
    expect(&p, "shared-race", 0, 0);
}

/* scale-d true in the first step: what the registers held before gets into the result. */
static void test_uninitialised_accumulators(void **state) {
    (void)state;
    fill_matrices();
    pipeline p = right;
    rig r;
    p.accumulates = true;
    assert_false(run_pipeline(&r, &p));
    assert_true(product[0] != product[0]);
    rig_clear(&r);
}

/* ptxas does not serialise the right kernels. */
static void test_pipeline_is_not_serialised(void **state) {
    (void)state;
    const char *ptxas = find_ptxas();
    for (uint32_t k = 0; k < 4 && ptxas; k++) {
        static char said[1 << 16];
        pipeline p = right;
        rig r;
        lilac_text ptx = {0};
        lilac_ptx_options options = {0};
        p.groups = 1 + k % 2;
        p.registers = k >= 2;
        p.wait = p.registers ? 0 : 1;
        build_pipeline(&r, &p);
        effect(&r, LILAC_SIMT_OP_RETURN);
        assert_true(lilac_ptx_write(&ptx, r.module, &options));
        if (!assembles_with_log(ptxas, "sm_90a", lilac_text_get(&ptx), said, sizeof said) ||
            strstr(said, "C75")) {
            fail_msg("%s", said);
        }
        lilac_text_clear(&ptx);
        rig_clear(&r);
    }
    if (!ptxas) {
        skip();
    }
}

static uint32_t count_of(const lilac_simt_body *body, lilac_simt_opcode code) {
    uint32_t count = 0;
    for (const lilac_simt_instruction *i = body->first; i; i = i->next) {
        count += i->code == code;
        for (uint32_t k = 0; k < i->body_count; k++) {
            count += count_of(i->bodies[k], code);
        }
    }
    return count;
}

/* The passes on SIMT IR keep the kernel right and all its wgmmas; of the barriers one stays. */
static void test_passes(void **state) {
    (void)state;
    static bool (*const passes[])(lilac_simt_kernel *) = {
        lilac_simt_opt_tail_masks,
        lilac_simt_opt_fold,
        lilac_simt_opt_cse,
        lilac_simt_opt_licm,
        lilac_simt_opt_contract,
        lilac_simt_opt_dce,
        lilac_simt_opt_barriers,
        lilac_simt_opt_rematerialize_addresses,
        lilac_simt_opt_schedule,
        lilac_simt_opt_occupancy,
        lilac_simt_opt_schedule_barriers,
        lilac_simt_opt_rematerialize_predicates,
    };
    fill_matrices();
    for (uint32_t registers = 0; registers < 2; registers++) {
        pipeline p = right;
        rig r;
        p.registers = registers;
        p.wait = !registers;
        p.extra = 2;
        build_pipeline(&r, &p);
        effect(&r, LILAC_SIMT_OP_RETURN);
        for (size_t k = 0; k < sizeof passes / sizeof *passes; k++) {
            passes[k](r.kernel);
            assert_true(lilac_simt_verify(r.module));
        }
        assert_int_equal(count_of(r.kernel->body, LILAC_SIMT_OP_WGMMA), 4);
        assert_int_equal(count_of(r.kernel->body, LILAC_SIMT_OP_WGMMA_FENCE), 1);
        assert_int_equal(count_of(r.kernel->body, LILAC_SIMT_OP_BARRIER), 1);
        give_matrices(&r);
        if (!launch(&r) || !is_right(&p) || lilac_diagnostics(r.context)) {
            show(&r);
            fail();
        }
        rig_clear(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline_is_right),
        cmocka_unit_test(test_pipeline_mutations),
        cmocka_unit_test(test_pipeline_is_not_serialised),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_uninitialised_accumulators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
