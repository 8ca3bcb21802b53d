/* decouple_warps: attention loops leave the same bytes on the simulator as with a barrier of the block
 * in each iteration, for every number of iterations, without findings, and with no barrier in the loop.
 * What orders the warps is needed: without an arrival, a wait or the right parity the simulator reports
 * a race, an mbarrier or a deadlock, or the results differ. */
#include "support/test.h"

#include <lilac/driver.h>
#include <lilac/engine.h>
#include <lilac/lower.h>
#include <lilac/sim.h>
#include <lilac/tile_loops.h>

enum { KEYS = 64, HEAD = 64, MOST_WARPS = 16, MOST_ITERATIONS = 6, CASES = 4 };
enum { TILE = KEYS * HEAD, TILES = MOST_ITERATIONS + 1, RESULTS = 16 * MOST_WARPS * HEAD };

typedef struct loop_case {
    uint32_t warps, stages;
    bool masked;   /* the last keys are masked off */
    bool repeated; /* an outer loop executes the loop twice */
    bool memory;   /* the iterations use shared memory besides: nothing changes */
    bool late;     /* so many stages that one buffer more would cost a resident block */
} loop_case;

/* sum = sum * 2^(m - n) + 2^(q k - n) v, with the maxima n of rows. */
static void put_case(lilac_text *t, const loop_case *c) {
    const uint32_t rows = 16 * c->warps;
    lilac_text_printf(
        t,
        "module {\n"
        "tt.func public @k(%%q: !tt.ptr<f16> {tt.divisibility = 16 : i32}, "
        "%%k: !tt.ptr<f16> {tt.divisibility = 16 : i32}, "
        "%%v: !tt.ptr<f16> {tt.divisibility = 16 : i32}, "
        "%%o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %%n: i32) {\n"
        "%%c0 = arith.constant 0 : i32\n%%c1 = arith.constant 1 : i32\n"
        "%%c2 = arith.constant 2 : i32\n"
        "%%zero = arith.constant dense<0.0> : tensor<%ux64xf32>\n"
        "%%low = arith.constant dense<-1.0e3> : tensor<%uxf32>\n"
        "%%c64 = arith.constant dense<64> : tensor<%ux1xi32>\n"
        "%%d64 = arith.constant dense<64> : tensor<64x1xi32>\n"
        "%%next = arith.constant dense<4096> : tensor<64x64xi32>\n"
        "%%last = arith.constant dense<60> : tensor<64x1xi32>\n"
        "%%half = arith.constant dense<0.0> : tensor<64x64xf16>\n"
        "%%r0 = tt.make_range {end = %u : i32, start = 0 : i32} : tensor<%uxi32>\n"
        "%%r1 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
        "%%ra = tt.expand_dims %%r0 {axis = 1 : i32} : tensor<%uxi32> -> tensor<%ux1xi32>\n"
        "%%rb = tt.expand_dims %%r1 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>\n"
        "%%rc = tt.expand_dims %%r1 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>\n",
        rows, rows, rows, rows, rows, rows, rows);
    lilac_text_printf(
        t,
        "%%qa = arith.muli %%ra, %%c64 : tensor<%ux1xi32>\n"
        "%%qb = tt.broadcast %%qa : tensor<%ux1xi32> -> tensor<%ux64xi32>\n"
        "%%qc = tt.broadcast %%rc : tensor<1x64xi32> -> tensor<%ux64xi32>\n"
        "%%at = arith.addi %%qb, %%qc : tensor<%ux64xi32>\n"
        "%%qp = tt.splat %%q : !tt.ptr<f16> -> tensor<%ux64x!tt.ptr<f16>>\n"
        "%%qi = tt.addptr %%qp, %%at : tensor<%ux64x!tt.ptr<f16>>, tensor<%ux64xi32>\n"
        "%%qv = tt.load %%qi : tensor<%ux64x!tt.ptr<f16>>\n"
        "%%ka = arith.muli %%rb, %%d64 : tensor<64x1xi32>\n"
        "%%kb = tt.broadcast %%ka : tensor<64x1xi32> -> tensor<64x64xi32>\n"
        "%%kc = tt.broadcast %%rc : tensor<1x64xi32> -> tensor<64x64xi32>\n"
        "%%kat = arith.addi %%kb, %%kc : tensor<64x64xi32>\n"
        "%%kp = tt.splat %%k : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>\n"
        "%%ki = tt.addptr %%kp, %%kat : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>\n"
        "%%vp = tt.splat %%v : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>\n"
        "%%vi = tt.addptr %%vp, %%kat : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>\n"
        "%%mk = arith.cmpi slt, %%rb, %%last : tensor<64x1xi32>\n"
        "%%mask = tt.broadcast %%mk : tensor<64x1xi1> -> tensor<64x64xi1>\n",
        rows, rows, rows, rows, rows, rows, rows, rows, rows);
    if (c->repeated) {
        lilac_text_printf(t,
                          "%%total = scf.for %%j = %%c0 to %%c2 step %%c1 iter_args(%%before = "
                          "%%zero) -> (tensor<%ux64xf32>) : i32 {\n",
                          rows);
    }
    lilac_text_printf(
        t,
        "%%r:4 = scf.for %%i = %%c0 to %%n step %%c1 iter_args(%%sum = %%zero, %%m = %%low, %%pk = "
        "%%ki, %%pv = %%vi) -> (tensor<%ux64xf32>, tensor<%uxf32>, tensor<64x64x!tt.ptr<f16>>, "
        "tensor<64x64x!tt.ptr<f16>>) : i32 {\n"
        "%%kl = tt.load %%pk%s : tensor<64x64x!tt.ptr<f16>>\n"
        "%%kt = tt.trans %%kl {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>\n"
        "%%s = tt.dot %%qv, %%kt, %%zero : tensor<%ux64xf16> * tensor<64x64xf16> -> "
        "tensor<%ux64xf32>\n"
        "%%x = \"tt.reduce\"(%%s) <{axis = 1 : i32}> ({\n^bb0(%%a: f32, %%b: f32):\n"
        "%%y = arith.maxnumf %%a, %%b : f32\ntt.reduce.return %%y : f32\n"
        "}) : (tensor<%ux64xf32>) -> tensor<%uxf32>\n"
        "%%new = arith.maxnumf %%m, %%x : tensor<%uxf32>\n"
        "%%ne = tt.expand_dims %%new {axis = 1 : i32} : tensor<%uxf32> -> tensor<%ux1xf32>\n"
        "%%nb = tt.broadcast %%ne : tensor<%ux1xf32> -> tensor<%ux64xf32>\n"
        "%%z = arith.subf %%s, %%nb : tensor<%ux64xf32>\n"
        "%%p = math.exp2 %%z : tensor<%ux64xf32>\n"
        "%%less = arith.subf %%m, %%new : tensor<%uxf32>\n"
        "%%alpha = math.exp2 %%less : tensor<%uxf32>\n"
        "%%ae = tt.expand_dims %%alpha {axis = 1 : i32} : tensor<%uxf32> -> tensor<%ux1xf32>\n"
        "%%ab = tt.broadcast %%ae : tensor<%ux1xf32> -> tensor<%ux64xf32>\n"
        "%%scaled = arith.mulf %%sum, %%ab : tensor<%ux64xf32>\n"
        "%%vl = tt.load %%pv%s : tensor<64x64x!tt.ptr<f16>>\n"
        "%%half_p = arith.truncf %%p : tensor<%ux64xf32> to tensor<%ux64xf16>\n",
        rows, rows, c->masked ? ", %mask, %half" : "", rows, rows, rows, rows, rows, rows, rows,
        rows, rows, rows, rows, rows, rows, rows, rows, rows, rows, rows,
        c->masked ? ", %mask, %half" : "", rows, rows);
    if (c->memory) { /* columns are combined between warps */
        lilac_text_printf(t,
                          "%%cs = \"tt.reduce\"(%%p) <{axis = 0 : i32}> ({\n^bb0(%%ca: f32, %%cb: "
                          "f32):\n%%cy = arith.maxnumf %%ca, %%cb : f32\ntt.reduce.return %%cy : "
                          "f32\n}) : (tensor<%ux64xf32>) -> tensor<64xf32>\n"
                          "%%ce = tt.expand_dims %%cs {axis = 0 : i32} : tensor<64xf32> -> "
                          "tensor<1x64xf32>\n"
                          "%%cx = tt.broadcast %%ce : tensor<1x64xf32> -> tensor<%ux64xf32>\n"
                          "%%cz = arith.mulf %%p, %%cx : tensor<%ux64xf32>\n"
                          "%%used = arith.truncf %%cz : tensor<%ux64xf32> to tensor<%ux64xf16>\n",
                          rows, rows, rows, rows, rows);
    }
    lilac_text_printf(
        t,
        "%%d = tt.dot %%%s, %%vl, %%scaled : tensor<%ux64xf16> * tensor<64x64xf16> -> "
        "tensor<%ux64xf32>\n"
        "%%pk1 = tt.addptr %%pk, %%next : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>\n"
        "%%pv1 = tt.addptr %%pv, %%next : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>\n"
        "scf.yield %%d, %%new, %%pk1, %%pv1 : tensor<%ux64xf32>, tensor<%uxf32>, "
        "tensor<64x64x!tt.ptr<f16>>, tensor<64x64x!tt.ptr<f16>>\n}\n",
        c->memory ? "used" : "half_p", rows, rows, rows, rows);
    if (c->repeated) {
        lilac_text_printf(t,
                          "%%more = arith.addf %%before, %%r#0 : tensor<%ux64xf32>\n"
                          "scf.yield %%more : tensor<%ux64xf32>\n}\n",
                          rows, rows);
    }
    lilac_text_printf(
        t,
        "%%op = tt.splat %%o : !tt.ptr<f32> -> tensor<%ux64x!tt.ptr<f32>>\n"
        "%%oi = tt.addptr %%op, %%at : tensor<%ux64x!tt.ptr<f32>>, tensor<%ux64xi32>\n"
        "tt.store %%oi, %%%s : tensor<%ux64x!tt.ptr<f32>>\ntt.return\n}\n}\n",
        rows, rows, rows, c->repeated ? "total" : "r#0", rows);
}

/* ---- the passes ------------------------------------------------------------------------------ */

typedef struct compiled {
    lilac_context *context;
    lilac_tile_module *tile;
    lilac_simt_module *simt;
    bool changed;
    bool late; /* copies of what delayed products read are one iteration late */
} compiled;

static void find_late(void *data, lilac_tile_op *op) {
    *(bool *)data |= lilac_tile_find_integer(&op->attributes, "lilac.late", 0) != 0;
}

typedef void (*mutation)(lilac_tile_op *loop);

/* The innermost loop. */
static void find_loop(void *data, lilac_tile_op *op) {
    if (op->code == LILAC_TILE_OP_SCF_FOR) {
        *(lilac_tile_op **)data = op;
    }
}

static void compile(compiled *made, const loop_case *c, const char *text, bool decouple,
                    mutation mutate) {
    typedef bool (*pass)(lilac_tile_module * module, const lilac_target *target, bool *changed);
    static const pass passes[] = {
        lilac_engine_simplify,         lilac_engine_orient_dots,    lilac_engine_select_dots,
        lilac_engine_assign_layouts,   lilac_engine_pipeline_loops, lilac_engine_delay_products,
        lilac_engine_overlap_products, lilac_engine_decouple_warps, lilac_engine_split_reductions};
    const lilac_target target = {.arch = lilac_arch_find("sm_90a"),
                                 .num_warps = c->warps,
                                 .num_ctas = 1,
                                 .num_stages = c->stages};
    memset(made, 0, sizeof *made);
    made->context = lilac_context_create();
    made->tile = lilac_tile_read(made->context,
                                 lilac_source_add(made->context, "loop.ttir", text, strlen(text)));
    bool good = made->tile != NULL && lilac_tile_verify(made->tile, false);
    for (uint32_t i = 0; good && i < sizeof passes / sizeof *passes; i++) {
        bool changed = false;
        if (passes[i] == lilac_engine_decouple_warps && !decouple) {
            continue;
        }
        good = passes[i](made->tile, &target, &changed) && lilac_tile_verify(made->tile, false);
        if (passes[i] == lilac_engine_decouple_warps) {
            made->changed = changed;
        }
    }
    if (good) {
        lilac_tile_walk(made->tile->functions->body, find_late, &made->late);
    }
    if (good && mutate != NULL) {
        lilac_tile_op *loop = NULL;
        lilac_tile_walk(made->tile->functions->body, find_loop, &loop);
        mutate(loop);
    }
    made->simt = good ? lilac_lower(made->tile, &target) : NULL;
    if (made->simt == NULL || !lilac_simt_verify(made->simt)) {
        fputs(text, stderr);
        fail_with_diagnostics(made->context, "the kernel was refused");
    }
    lilac_run_simt_passes(made->simt);
    assert_true(lilac_simt_verify(made->simt));
}

static void compiled_clear(compiled *made) {
    lilac_simt_module_destroy(made->simt);
    lilac_tile_module_destroy(made->tile);
    lilac_context_destroy(made->context);
}

/* ---- running --------------------------------------------------------------------------------- */

static uint16_t operands[3][TILES * TILE];

static void fill_operands(uint64_t seed) {
    lilac_random random;
    lilac_random_seed(&random, seed);
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t k = 0; k < TILES * TILE; k++) {
            operands[i][k] = (uint16_t)lilac_scalar_encode(
                LILAC_F16, (double)lilac_random_below(&random, 4001) / 4000.0 - 0.5,
                LILAC_ROUND_NEAREST_EVEN, true);
        }
    }
}

/* Are there no findings? *barriers: that the block executes. */
static bool execute(const compiled *made, uint32_t iterations, uint32_t *results,
                    uint64_t *barriers) {
    lilac_sim_buffer places[4];
    for (uint32_t i = 0; i < 3; i++) {
        places[i] = (lilac_sim_buffer){
            .name = "operand", .bytes = (uint8_t *)operands[i], .size = sizeof operands[0]};
    }
    memset(results, 0x5A, RESULTS * sizeof *results);
    places[3] = (lilac_sim_buffer){
        .name = "results", .bytes = (uint8_t *)results, .size = RESULTS * sizeof *results};
    lilac_sim_place(places, 4);
    uint64_t arguments[5];
    for (uint32_t i = 0; i < 4; i++) {
        arguments[i] = places[i].address;
    }
    arguments[4] = iterations;
    const lilac_sim_launch launch = {.kernel = made->simt->kernels,
                                     .grid = {1, 1, 1},
                                     .arguments = arguments,
                                     .argument_count = 5,
                                     .buffers = places,
                                     .buffer_count = 4,
                                     .threads = 1,
                                     .instruction_limit = 1 << 24};
    lilac_sim_counters counters;
    lilac_diagnostics_reset(made->context);
    const bool good = lilac_sim_run(made->context, &launch, &counters) && counters.races == 0 &&
                      lilac_diagnostics(made->context) == NULL;
    *barriers = counters.barriers;
    return good;
}

static bool try_case(const loop_case *c) {
    static uint32_t wanted[RESULTS], got[RESULTS];
    uint64_t barriers[MOST_ITERATIONS + 1], expected;
    lilac_text text = {0};
    compiled without, with;
    put_case(&text, c);
    compile(&without, c, lilac_text_get(&text), false, NULL);
    compile(&with, c, lilac_text_get(&text), true, NULL);
    for (uint32_t iterations = 0; iterations <= MOST_ITERATIONS; iterations++) {
        if (!execute(&without, iterations, wanted, &expected) ||
            !execute(&with, iterations, got, &barriers[iterations]) ||
            memcmp(wanted, got, sizeof got) != 0) {
            fputs(lilac_text_get(&text), stderr);
            print_diagnostics(with.context);
            fail_msg("%u warps, %u stages, %u iterations", c->warps, c->stages, iterations);
        }
    }
    if (with.changed) {
        assert_int_equal(barriers[MOST_ITERATIONS], barriers[1]);
    } else {
        assert_int_equal(barriers[MOST_ITERATIONS], expected);
    }
    const bool changed = with.changed;
    assert_true(!c->late || with.late);
    compiled_clear(&without);
    compiled_clear(&with);
    lilac_text_clear(&text);
    return changed;
}

static void loops(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 26);
    for (uint32_t i = 0; i < scaled(CASES); i++) {
        const bool late = i % 4 == 2;
        const loop_case c = {.warps = i % 4 == 0 ? 16 : 8,
                             .stages = late ? 6 : 3 + i % 2,
                             .late = late,
                             .masked = lilac_random_below(&random, 2) == 0,
                             .repeated = lilac_random_below(&random, 2) == 0};
        fill_operands(i);
        assert_true(try_case(&c));
    }
}

/* One warpgroup, copies one iteration ahead, or barriers in the body: nothing changes. */
static void stays(void **state) {
    (void)state;
    fill_operands(1);
    assert_false(try_case(&(loop_case){.warps = 4, .stages = 3}));
    assert_false(try_case(&(loop_case){.warps = 8, .stages = 2}));
    assert_false(try_case(&(loop_case){.warps = 8, .stages = 3, .memory = true}));
}

/* ---- mutations ------------------------------------------------------------------------------- */

static lilac_tile_op *find_from(lilac_tile_op *op, lilac_tile_opcode code) {
    while (op != NULL && op->code != code) {
        op = op->next;
    }
    assert_non_null(op);
    return op;
}

static lilac_tile_op *first_of(lilac_tile_op *loop, lilac_tile_opcode code) {
    return find_from(loop->regions[0]->first->first, code);
}

static void drop_arrival(lilac_tile_op *loop) {
    lilac_tile_remove(first_of(loop, LILAC_TILE_OP_TTNG_ARRIVE_BARRIER));
}

static void drop_wait_for_copies(lilac_tile_op *loop) {
    lilac_tile_remove(first_of(loop, LILAC_TILE_OP_TTNG_WAIT_BARRIER));
}

static void drop_wait_for_warps(lilac_tile_op *loop) {
    lilac_tile_op *copies = first_of(loop, LILAC_TILE_OP_TTNG_WAIT_BARRIER);
    lilac_tile_remove(find_from(copies->next, LILAC_TILE_OP_TTNG_WAIT_BARRIER));
}

static void drop_copies_arrival(lilac_tile_op *loop) {
    lilac_tile_remove(first_of(loop, LILAC_TILE_OP_TTNG_ASYNC_COPY_MBARRIER_ARRIVE));
}

static void drop_last_waits(lilac_tile_op *loop) {
    for (lilac_tile_op *op = loop->next, *next; op != NULL; op = next) {
        next = op->next;
        if (op->code == LILAC_TILE_OP_TTNG_WAIT_BARRIER) {
            lilac_tile_remove(op);
        }
    }
}

/* Warps arrive when the products of the iteration before are still in flight. */
static void arrive_early(lilac_tile_op *loop) {
    lilac_tile_op *arrival = first_of(loop, LILAC_TILE_OP_TTNG_ARRIVE_BARRIER);
    lilac_tile_op *view = arrival->operands[0].value->op;
    lilac_tile_op *wait = first_of(loop, LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT);
    lilac_tile_op *moved[] = {view->operands[1].value->op, view, arrival};
    for (uint32_t i = 0; i < 3; i++) {
        lilac_tile_detach(moved[i]);
        lilac_tile_insert_before(wait, moved[i]);
    }
}

/* The parity of the copies begins with 1. */
static void flip_parity(lilac_tile_op *loop) {
    const lilac_tile_value *parity =
        first_of(loop, LILAC_TILE_OP_TTNG_WAIT_BARRIER)->operands[1].value;
    for (uint32_t k = 0; k < lilac_tile_carried_count(loop); k++) {
        if (lilac_tile_iteration_argument(loop, k) == parity) {
            lilac_tile_value *slot = first_of(loop, LILAC_TILE_OP_ARITH_XORI)->operands[1].value;
            lilac_tile_op *one = slot->op;
            lilac_tile_detach(one);
            lilac_tile_insert_before(loop, one);
            lilac_tile_set_init(loop, k, slot);
        }
    }
}

/* The late copies fill the buffers of the others. */
static void copy_to_other_slot(lilac_tile_op *loop) {
    lilac_tile_op *copy = first_of(loop, LILAC_TILE_OP_TTG_ASYNC_COPY_GLOBAL_TO_LOCAL);
    lilac_tile_value *slot = copy->operands[1].value->op->operands[1].value;
    while (lilac_tile_find_integer(&copy->attributes, "lilac.late", 0) == 0) {
        copy = find_from(copy->next, LILAC_TILE_OP_TTG_ASYNC_COPY_GLOBAL_TO_LOCAL);
    }
    lilac_tile_set_operand(copy->operands[1].value->op, 1, slot);
}

static void find_mutations(const loop_case *c, uint32_t count, const mutation *mutations) {
    static uint32_t wanted[RESULTS], got[RESULTS];
    uint64_t barriers;
    lilac_text text = {0};
    compiled made;
    fill_operands(3);
    put_case(&text, c);
    compile(&made, c, lilac_text_get(&text), true, NULL);
    assert_true(made.changed && made.late == c->late &&
                execute(&made, MOST_ITERATIONS, wanted, &barriers));
    compiled_clear(&made);
    for (uint32_t i = 0; i < count; i++) {
        compile(&made, c, lilac_text_get(&text), true, mutations[i]);
        if (execute(&made, MOST_ITERATIONS, got, &barriers) &&
            memcmp(wanted, got, sizeof got) == 0) {
            fail_msg("mutation %u is not found", i);
        }
        compiled_clear(&made);
    }
    lilac_text_clear(&text);
}

static void mutations_are_found(void **state) {
    (void)state;
    static const mutation mutations[] = {
        drop_arrival,    drop_wait_for_copies, drop_wait_for_warps, drop_copies_arrival,
        drop_last_waits, arrive_early,         flip_parity,         copy_to_other_slot};
    const uint32_t count = sizeof mutations / sizeof *mutations;
    find_mutations(&(loop_case){.warps = 8, .stages = 3}, count - 1, mutations);
    find_mutations(&(loop_case){.warps = 8, .stages = 6, .late = true}, count, mutations);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops),
        cmocka_unit_test(stays),
        cmocka_unit_test(mutations_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
