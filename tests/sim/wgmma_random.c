/* Random sequences of wgmmas on several chains of accumulators, with fences, commits, waits and
 * arithmetic between them. A legal sequence gives the right sums and no finding; one with a fence left
 * out, or with arithmetic on accumulators in flight, is reported. */

#include "support/matrix_numbers.h"
#include "support/test.h"
#include "support/wgmma_findings.h"

enum { CHAINS = 3, N = 8, COUNT = N / 2, BYTES = 4096, ACTIONS = 40, PROGRAMS = 150 };

/* One chain of accumulators, all elements of which are equal. */
typedef struct chain {
    lilac_simt_value acc[COUNT];
    float sum;
    bool flies;
    uint32_t group; /* commits before its last wgmma */
    bool touched;   /* since the last fence */
} chain;

typedef enum fault { FAULT_NONE, FAULT_FENCE, FAULT_USE } fault;

typedef struct generator {
    rig r;
    uint64_t seed;
    chain chains[CHAINS];
    lilac_simt_value a, b;
    uint32_t commits;
    bool open; /* wgmmas of no group yet */
    bool fenced;
    fault fault;
    bool made; /* the fault is in the program */
    uint16_t image[BYTES / 2];
    float in[CHAINS * COUNT * 128], out[CHAINS * COUNT * 128];
} generator;

static uint32_t choose(generator *g, uint32_t count) {
    return (uint32_t)(next_random(&g->seed) % count);
}

/* A (ones) at 0 and B (1/16) behind it, in shared memory; the accumulators from global memory. */
static void begin(generator *g) {
    static const lilac_matrix_descriptor ones = {.leading = 1024, .stride = 128};
    static const lilac_matrix_descriptor parts = {.leading = 128, .stride = 128};
    rig *r = &g->r;
    for (uint32_t e = 0; e < BYTES / 2; e++) {
        g->image[e] = e < 1024 ? 0x3C00 : 0x2C00;
    }
    rig_init(r, 4, 3, BYTES);
    lilac_simt_value at = op2(r, LILAC_SIMT_OP_MUL, thread(r), word(r, 32));
    for (uint32_t n = 0; n < 2; n++) {
        lilac_simt_value v =
            lilac_simt_load(&r->b, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_I32, 4,
                            element(r, 0, thread(r), 32), 16 * (int64_t)n, 0, NULL, NULL);
        lilac_simt_value words[] = {v, v + 1, v + 2, v + 3};
        lilac_simt_store(&r->b, LILAC_SIMT_OP_ST_SHARED, 4, words, at, 16 * (int64_t)n, 0, NULL);
    }
    effect(r, LILAC_SIMT_OP_FENCE_PROXY_ASYNC);
    lilac_simt_barrier(&r->b);
    g->a = lilac_simt_matrix_descriptor(&r->b, word(r, 0), 0, &ones);
    g->b = lilac_simt_matrix_descriptor(&r->b, word(r, 2048), 0, &parts);
    for (uint32_t c = 0; c < CHAINS; c++) {
        chain *x = &g->chains[c];
        *x = (chain){.touched = true};
        for (uint32_t e = 0; e < COUNT; e++) {
            x->acc[e] = load(
                r, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_F32,
                element(r, 1, op2(r, LILAC_SIMT_OP_ADD, thread(r), word(r, (c * COUNT + e) * 128)),
                        4));
        }
    }
}

static void fence(generator *g) {
    lilac_simt_wgmma_fence(&g->r.b);
    g->fenced = true;
    for (uint32_t c = 0; c < CHAINS; c++) {
        g->chains[c].touched = false;
    }
}

static void multiply(generator *g, chain *x) {
    static const lilac_simt_matrix_payload kind = {.a = LILAC_MATRIX_F16,
                                                   .b = LILAC_MATRIX_F16,
                                                   .d = LILAC_MATRIX_F32,
                                                   .m = 64,
                                                   .n = N,
                                                   .k = 16};
    bool needed = x->touched || !g->fenced, accumulate = choose(g, 4) != 0;
    if (needed && g->fault == FAULT_FENCE && !g->made) {
        g->made = true;
    } else if (needed) {
        fence(g);
    }
    lilac_simt_value first =
        lilac_simt_wgmma(&g->r.b, &kind, x->acc, &g->a, g->b,
                         lilac_simt_constant(&g->r.b, LILAC_SIMT_I1, accumulate));
    for (uint32_t e = 0; e < COUNT; e++) {
        x->acc[e] = first + e;
    }
    x->sum = (accumulate ? x->sum : 0) + 1;
    x->flies = g->open = true;
    x->group = g->commits;
}

static void commit(generator *g) {
    lilac_simt_wgmma_commit(&g->r.b);
    g->commits++;
    g->open = false;
}

/* A wait that passes on the chains that it covers. */
static void wait_for(generator *g, uint32_t left) {
    lilac_simt_value values[CHAINS * COUNT];
    uint32_t count = 0;
    if (g->open) {
        commit(g);
    }
    for (uint32_t c = 0; c < CHAINS; c++) {
        chain *x = &g->chains[c];
        if (!x->flies || g->commits - x->group <= left) {
            continue;
        }
        memcpy(values + count, x->acc, sizeof x->acc);
        count += COUNT;
    }
    lilac_simt_value first = lilac_simt_wgmma_wait(&g->r.b, left, count, values);
    for (uint32_t c = 0; c < CHAINS; c++) {
        chain *x = &g->chains[c];
        if (!x->flies || g->commits - x->group <= left) {
            continue;
        }
        for (uint32_t e = 0; e < COUNT; e++) {
            x->acc[e] = first++;
        }
        x->flies = false;
    }
}

static void add_one(generator *g, chain *x) {
    if (x->flies && (g->fault != FAULT_USE || g->made)) {
        return;
    }
    g->made |= x->flies;
    for (uint32_t e = 0; e < COUNT; e++) {
        x->acc[e] = lilac_simt_op2(&g->r.b, LILAC_SIMT_OP_FADD, LILAC_SIMT_F32, x->acc[e],
                                   lilac_simt_constant(&g->r.b, LILAC_SIMT_F32, 0x3F800000));
    }
    x->sum += 1;
    x->flies = false;
    x->touched = true;
}

static void generate(generator *g) {
    rig *r = &g->r;
    begin(g);
    for (uint32_t n = 0; n < ACTIONS; n++) {
        chain *x = &g->chains[choose(g, CHAINS)];
        switch (choose(g, 6)) {
        case 0:
            commit(g);
            break;
        case 1:
            wait_for(g, choose(g, 3));
            break;
        case 2:
            add_one(g, x);
            break;
        default:
            multiply(g, x);
            break;
        }
    }
    wait_for(g, 0);
    for (uint32_t c = 0; c < CHAINS; c++) {
        for (uint32_t e = 0; e < COUNT; e++) {
            store(r, LILAC_SIMT_OP_ST_GLOBAL, g->chains[c].acc[e],
                  element(r, 2,
                          op2(r, LILAC_SIMT_OP_ADD, thread(r), word(r, (c * COUNT + e) * 128)), 4));
        }
    }
    give(r, 0, "image", g->image, sizeof g->image);
    give(r, 1, "in", g->in, sizeof g->in);
    give(r, 2, "out", g->out, sizeof g->out);
}

static bool sums_are_right(const generator *g) {
    for (uint32_t k = 0; k < CHAINS * COUNT * 128; k++) {
        if (g->out[k] != g->chains[k / (COUNT * 128)].sum) {
            return false;
        }
    }
    return true;
}

static void run_programs(fault kind, const char *id) {
    static generator g;
    uint32_t made = 0;
    for (uint32_t n = 0; n < PROGRAMS; n++) {
        memset(&g, 0, sizeof g);
        g.seed = 1000003 * (n + 1) + kind;
        g.fault = kind;
        generate(&g);
        if (!rig_run(&g.r)) {
            fail_msg("program %u: %s", n, lilac_diagnostics(g.r.context)->message);
        }
        made += g.made;
        bool clean = lilac_diagnostics(g.r.context) == NULL;
        if (g.made ? !found(&g.r, id, 0, 0) : !clean || !sums_are_right(&g)) {
            show(&g.r);
            fail_msg("program %u, fault %d", n, g.made);
        }
        rig_clear(&g.r);
    }
    assert_true(kind == FAULT_NONE ? made == 0 : made > PROGRAMS / 2);
}

static void test_legal_programs(void **state) {
    (void)state;
    run_programs(FAULT_NONE, "");
}

static void test_without_a_fence(void **state) {
    (void)state;
    run_programs(FAULT_FENCE, "missing-wgmma-fence");
}

static void test_use_in_flight(void **state) {
    (void)state;
    run_programs(FAULT_USE, "wgmma-register");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_legal_programs),
        cmocka_unit_test(test_without_a_fence),
        cmocka_unit_test(test_use_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
