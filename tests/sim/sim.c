/* The simulator's control flow, memory, counters, traps and findings. Each test builds the smallest
 * kernel that shows one thing; tests/sim/arith.c has the arithmetic. */

#include "support/sim_kernels.h"
#include "support/test.h"

#define GLOBAL_LOAD  LILAC_SIMT_OP_LD_GLOBAL
#define GLOBAL_STORE LILAC_SIMT_OP_ST_GLOBAL
#define SHARED_LOAD  LILAC_SIMT_OP_LD_SHARED
#define SHARED_STORE LILAC_SIMT_OP_ST_SHARED

static lilac_simt_value constant(rig *r, lilac_simt_type type, uint64_t bits) {
    return lilac_simt_constant(&r->b, type, bits);
}

/* out[thread] = value, parameter `out` being an array of i32. */
static void give_out(rig *r, uint32_t out, lilac_simt_value value) {
    store(r, GLOBAL_STORE, value, element(r, out, thread(r), 4));
}

/* The same for row `row` of 32 in an array of them. */
static void give_row(rig *r, uint32_t out, uint32_t row, lilac_simt_value value) {
    lilac_simt_value at = op2(r, LILAC_SIMT_OP_ADD, thread(r), word(r, 32 * row));
    store(r, GLOBAL_STORE, value, element(r, out, at, 4));
}

/* A condition that differs between threads. */
static lilac_simt_value odd_thread(rig *r) {
    return lilac_simt_compare_values(&r->b, LILAC_SIMT_EQ,
                                     op2(r, LILAC_SIMT_OP_AND, thread(r), word(r, 1)), word(r, 1));
}

/* The launch fails with this id, at this line; the message has this text. */
static void expect_failure(rig *r, const char *id, uint32_t line, const char *text) {
    const lilac_diagnostic *d = NULL;
    lilac_name file;
    uint32_t found = 0, column;
    assert_false(rig_run(r));
    if (reported(r, id, &d) != 1) {
        fail_msg("no %s", id);
    }
    assert_int_equal(lilac_error_count(r->context), 1);
    if (strstr(d->message, text) == NULL) {
        fail_msg("'%s' lacks '%s'", d->message, text);
    }
    if (line) {
        assert_true(lilac_location_file(r->context, d->location, &file, &found, &column));
        assert_int_equal(found, line);
    }
    assert_int_equal(r->counters.blocks, 0);
    rig_clear(r);
}

/* ---- indices ------------------------------------------------------------------------------- */

static void indices(void **state) {
    static const struct {
        lilac_simt_opcode code;
        uint8_t detail;
    } leaves[] = {
        {LILAC_SIMT_OP_THREAD, 0}, {LILAC_SIMT_OP_LANE, 0},       {LILAC_SIMT_OP_WARP, 0},
        {LILAC_SIMT_OP_BLOCK, 0},  {LILAC_SIMT_OP_BLOCK, 1},      {LILAC_SIMT_OP_BLOCK, 2},
        {LILAC_SIMT_OP_GRID, 0},   {LILAC_SIMT_OP_GRID, 1},       {LILAC_SIMT_OP_GRID, 2},
        {LILAC_SIMT_OP_CTA, 0},    {LILAC_SIMT_OP_SHARED_BASE, 0}};
    enum { LEAVES = sizeof leaves / sizeof *leaves, THREADS = 64, X = 3, Y = 2, Z = 2, RANKS = 2 };
    static uint32_t out[X * Y * Z * RANKS][LEAVES][THREADS];
    rig r;
    (void)state;
    rig_init(&r, 2, 1, 0);
    r.kernel->num_ctas = RANKS;
    memcpy(r.launch.grid, (uint32_t[]){X, Y, Z}, sizeof r.launch.grid);
    r.launch.threads = 3;
    lilac_simt_value index = leaf(&r, LILAC_SIMT_OP_BLOCK, 2);
    index = op2(&r, LILAC_SIMT_OP_MUL, index, word(&r, Y));
    index = op2(&r, LILAC_SIMT_OP_ADD, index, leaf(&r, LILAC_SIMT_OP_BLOCK, 1));
    index = op2(&r, LILAC_SIMT_OP_MUL, index, word(&r, X));
    index = op2(&r, LILAC_SIMT_OP_ADD, index, leaf(&r, LILAC_SIMT_OP_BLOCK, 0));
    index = op2(&r, LILAC_SIMT_OP_MUL, index, word(&r, RANKS));
    index = op2(&r, LILAC_SIMT_OP_ADD, index, leaf(&r, LILAC_SIMT_OP_CTA, 0));
    for (uint32_t k = 0; k < LEAVES; k++) {
        lilac_simt_value at = op2(&r, LILAC_SIMT_OP_MUL, index, word(&r, LEAVES));
        at = op2(&r, LILAC_SIMT_OP_ADD, at, word(&r, k));
        at = op2(&r, LILAC_SIMT_OP_MUL, at, word(&r, THREADS));
        at = op2(&r, LILAC_SIMT_OP_ADD, at, thread(&r));
        store(&r, GLOBAL_STORE, leaf(&r, leaves[k].code, leaves[k].detail), element(&r, 0, at, 4));
    }
    give(&r, 0, "out", out, sizeof out);
    assert_true(rig_run(&r));
    for (uint32_t b = 0; b < X * Y * Z * RANKS; b++) {
        uint32_t program = b / RANKS;
        for (uint32_t t = 0; t < THREADS; t++) {
            const uint32_t wanted[LEAVES] = {
                t, t % 32,    t / 32, program % X, program / X % Y, program / X / Y, X, Y,
                Z, b % RANKS, 0};
            for (uint32_t k = 0; k < LEAVES; k++) {
                assert_int_equal(out[b][k][t], wanted[k]);
            }
        }
    }
    assert_int_equal(r.counters.blocks, X * Y * Z * RANKS);
    rig_clear(&r);
}

/* ---- control flow -------------------------------------------------------------------------- */

/* (a, b, c) = (b, c, a) some times, and a sum: parallel assignment, uniform and per thread. */
static void rotation(void **state) {
    uint32_t out[5][32], count = 7;
    rig r;
    (void)state;
    rig_init(&r, 1, 2, 0);
    lilac_simt_value upper =
        load(&r, GLOBAL_LOAD, LILAC_SIMT_I32, lilac_simt_parameter_value(&r.b, 1));
    lilac_simt_value inits[5] = {word(&r, 10), word(&r, 20), word(&r, 30), thread(&r), word(&r, 0)};
    lilac_simt_value i;
    lilac_simt_instruction *loop =
        lilac_simt_loop_begin(&r.b, word(&r, 0), upper, word(&r, 2), 5, inits, &i);
    lilac_simt_value next[5] = {i + 2, i + 3, i + 1, i + 5, op2(&r, LILAC_SIMT_OP_ADD, i + 4, i)};
    lilac_simt_value results = lilac_simt_loop_end(&r.b, loop, next);
    for (uint32_t k = 0; k < 5; k++) {
        give_row(&r, 0, k, results + k);
    }
    give(&r, 0, "out", out, sizeof out);
    give(&r, 1, "count", &count, sizeof count);
    assert_true(rig_run(&r));
    for (uint32_t t = 0; t < 32; t++) {
        uint32_t a = 10, b = 20, c = 30, d = t, e = 0;
        for (uint32_t j = 0; j < count; j += 2) {
            uint32_t first = a, sum = d + j;
            a = b;
            b = c;
            c = first;
            d = e;
            e = sum;
        }
        const uint32_t wanted[5] = {a, b, c, d, e};
        for (uint32_t k = 0; k < 5; k++) {
            assert_int_equal(out[k][t], wanted[k]);
        }
    }
    rig_clear(&r);
}

/* A loop from lower to upper by step runs this often; bounds are signed. */
static void trip_counts(void **state) {
    static const int32_t cases[][4] = {{0, 0, 1, 0}, {5, 3, 1, 0},   {-3, 3, 1, 6}, {0, 10, 3, 4},
                                       {0, 9, 3, 3}, {-8, -4, 2, 2}, {7, 8, 100, 1}};
    (void)state;
    for (uint32_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        for (uint32_t wide = 0; wide < 2; wide++) {
            lilac_simt_type type = wide ? LILAC_SIMT_I64 : LILAC_SIMT_I32;
            uint32_t out[32];
            rig r;
            rig_init(&r, 1, 1, 0);
            lilac_simt_value bounds[3], zero = word(&r, 0), i;
            for (uint32_t j = 0; j < 3; j++) {
                bounds[j] = constant(&r, type,
                                     wide ? (uint64_t)(int64_t)cases[k][j] : (uint32_t)cases[k][j]);
            }
            lilac_simt_instruction *loop =
                lilac_simt_loop_begin(&r.b, bounds[0], bounds[1], bounds[2], 1, &zero, &i);
            lilac_simt_value next = op2(&r, LILAC_SIMT_OP_ADD, i + 1, word(&r, 1));
            give_out(&r, 0, lilac_simt_loop_end(&r.b, loop, &next));
            give(&r, 0, "out", out, sizeof out);
            assert_true(rig_run(&r));
            assert_int_equal(out[31], cases[k][3]);
            rig_clear(&r);
        }
    }
}

/* if (n > 3) { x = thread; y = 1 } else { x = 5; y = n } */
static void branches(void **state) {
    (void)state;
    for (uint32_t n = 2; n < 6; n += 3) {
        uint32_t out[2][32], given = n;
        rig r;
        rig_init(&r, 1, 2, 0);
        lilac_simt_value loaded =
            load(&r, GLOBAL_LOAD, LILAC_SIMT_I32, lilac_simt_parameter_value(&r.b, 1));
        lilac_simt_value condition =
            lilac_simt_compare_values(&r.b, LILAC_SIMT_UGT, loaded, word(&r, 3));
        const lilac_simt_type types[2] = {LILAC_SIMT_I32, LILAC_SIMT_I32};
        lilac_simt_instruction *branch = lilac_simt_if_begin(&r.b, condition, 2, types);
        lilac_simt_if_else(&r.b, branch, (lilac_simt_value[]){thread(&r), word(&r, 1)});
        lilac_simt_value results =
            lilac_simt_if_end(&r.b, branch, (lilac_simt_value[]){word(&r, 5), loaded});
        give_row(&r, 0, 0, results);
        give_row(&r, 0, 1, results + 1);
        give(&r, 0, "out", out, sizeof out);
        give(&r, 1, "n", &given, sizeof given);
        assert_true(rig_run(&r));
        for (uint32_t t = 0; t < 32; t++) {
            assert_int_equal(out[0][t], n > 3 ? t : 5);
            assert_int_equal(out[1][t], n > 3 ? 1 : n);
        }
        rig_clear(&r);
    }
}

/* while (n != 1) { n = n odd ? 3n + 1 : n / 2; steps++ }, and per thread something carried along.
 */
static void collatz(void **state) {
    uint32_t out[3][32];
    rig r;
    (void)state;
    rig_init(&r, 1, 1, 0);
    lilac_simt_value inits[3] = {word(&r, 27), word(&r, 0), thread(&r)}, first;
    const lilac_simt_type types[3] = {LILAC_SIMT_I32, LILAC_SIMT_I32, LILAC_SIMT_I32};
    lilac_simt_instruction *loop = lilac_simt_while_begin(&r.b, 3, inits, 3, types, &first);
    lilac_simt_value goes_on = lilac_simt_compare_values(&r.b, LILAC_SIMT_NE, first, word(&r, 1));
    lilac_simt_value passed[3] = {first + 1, first, first + 2}; /* steps, n, extra */
    lilac_simt_while_condition(&r.b, loop, goes_on, passed, &first);
    lilac_simt_value n = first + 1;
    lilac_simt_value odd = lilac_simt_compare_values(
        &r.b, LILAC_SIMT_EQ, op2(&r, LILAC_SIMT_OP_AND, n, word(&r, 1)), word(&r, 1));
    lilac_simt_value up =
        op2(&r, LILAC_SIMT_OP_ADD, op2(&r, LILAC_SIMT_OP_MUL, n, word(&r, 3)), word(&r, 1));
    lilac_simt_value down = op2(&r, LILAC_SIMT_OP_SHR_U, n, word(&r, 1));
    lilac_simt_value next[3] = {
        lilac_simt_op3(&r.b, LILAC_SIMT_OP_SELECT, LILAC_SIMT_I32, odd, up, down),
        op2(&r, LILAC_SIMT_OP_ADD, first, word(&r, 1)), op2(&r, LILAC_SIMT_OP_XOR, first + 2, n)};
    lilac_simt_value results = lilac_simt_while_end(&r.b, loop, next);
    for (uint32_t k = 0; k < 3; k++) {
        give_row(&r, 0, k, results + k);
    }
    give(&r, 0, "out", out, sizeof out);
    assert_true(rig_run(&r));
    for (uint32_t t = 0; t < 32; t++) {
        uint32_t value = 27, steps = 0, extra = t;
        for (; value != 1; steps++) {
            extra ^= value;
            value = value & 1 ? 3 * value + 1 : value / 2;
        }
        assert_int_equal(out[0][t], steps);
        assert_int_equal(out[1][t], 1);
        assert_int_equal(out[2][t], extra);
    }
    assert_int_equal(out[0][0], 111);
    rig_clear(&r);
}

/* Values that all threads share, of every width, read per thread: the block's number n as i8, i16,
 * i64, f16 and (n, n) + (n, n) as a packed pair. */
static void uniform_values(void **state) {
    enum { BLOCKS = 5 };
    static uint64_t out[5][BLOCKS][32];
    rig r;
    (void)state;
    rig_init(&r, 1, 5, 0);
    r.launch.grid[0] = BLOCKS;
    lilac_simt_value n = leaf(&r, LILAC_SIMT_OP_BLOCK, 0), values[5], half;
    values[0] = lilac_simt_op1(&r.b, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I8, n);
    values[1] = lilac_simt_op1(&r.b, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I16, n);
    values[2] = lilac_simt_op1(&r.b, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I64, n);
    half = values[3] = lilac_simt_op1(&r.b, LILAC_SIMT_OP_U2F, LILAC_SIMT_F16, n);
    values[4] = lilac_simt_pack(&r.b, LILAC_SIMT_F16X2, 2, (lilac_simt_value[]){half, half});
    values[4] = lilac_simt_op2(&r.b, LILAC_SIMT_OP_FADD, LILAC_SIMT_F16X2, values[4], values[4]);
    lilac_simt_value at =
        op2(&r, LILAC_SIMT_OP_ADD, op2(&r, LILAC_SIMT_OP_MUL, n, word(&r, 32)), thread(&r));
    for (uint32_t k = 0; k < 5; k++) {
        store(&r, GLOBAL_STORE, values[k], element(&r, k, at, 8));
        give(&r, k, "out", out[k], sizeof out[k]);
    }
    assert_true(rig_run(&r));
    for (uint32_t block = 0; block < BLOCKS; block++) {
        const uint64_t halves[BLOCKS + 4] = {0,      0x3C00, 0x4000, 0x4200, 0x4400,
                                             0x4500, 0x4600, 0x4700, 0x4800};
        for (uint32_t t = 0; t < 32; t++) {
            for (uint32_t k = 0; k < 3; k++) {
                assert_int_equal(out[k][block][t], block);
            }
            assert_int_equal(out[3][block][t], halves[block]);
            assert_int_equal(out[4][block][t], halves[2 * block] << 16 | halves[2 * block]);
        }
    }
    rig_clear(&r);
}

/* ---- random programs against a plain interpreter ------------------------------------------- */

/* One thread, one value after another, straight from the definition. */
static void interpret(const lilac_simt_body *body, uint32_t *v, uint32_t tid);

static void assign(uint32_t *v, lilac_simt_value first, const lilac_simt_value *from, uint32_t n) {
    uint32_t copy[16];
    for (uint32_t k = 0; k < n; k++) {
        copy[k] = v[from[k]];
    }
    memcpy(v + first, copy, n * sizeof *v);
}

static void interpret_one(const lilac_simt_instruction *i, uint32_t *v, uint32_t tid) {
    const lilac_simt_value *o = i->operands;
    lilac_simt_body *const *bodies = i->bodies;
    uint32_t carried = i->operand_count - 3u;
    switch (i->code) {
    case LILAC_SIMT_OP_CONST:
        v[i->result] = (uint32_t)i->immediate;
        break;
    case LILAC_SIMT_OP_THREAD:
        v[i->result] = tid;
        break;
    case LILAC_SIMT_OP_ADD:
        v[i->result] = v[o[0]] + v[o[1]];
        break;
    case LILAC_SIMT_OP_MUL:
        v[i->result] = v[o[0]] * v[o[1]];
        break;
    case LILAC_SIMT_OP_XOR:
        v[i->result] = v[o[0]] ^ v[o[1]];
        break;
    case LILAC_SIMT_OP_MULHI_U:
        v[i->result] = (uint32_t)((uint64_t)v[o[0]] * v[o[1]] >> 32);
        break;
    case LILAC_SIMT_OP_CMP:
        assert_true(i->detail == LILAC_SIMT_ULT || i->detail == LILAC_SIMT_UGT);
        v[i->result] = i->detail == LILAC_SIMT_ULT ? v[o[0]] < v[o[1]] : v[o[0]] > v[o[1]];
        break;
    case LILAC_SIMT_OP_LOOP:
        assign(v, bodies[0]->argument + 1, o + 3, carried);
        for (v[bodies[0]->argument] = v[o[0]]; (int32_t)v[bodies[0]->argument] < (int32_t)v[o[1]];
             v[bodies[0]->argument] += v[o[2]]) {
            interpret(bodies[0], v, tid);
            assign(v, bodies[0]->argument + 1, bodies[0]->last->operands, carried);
        }
        for (uint32_t k = 0; k < carried; k++) {
            v[i->result + k] = v[bodies[0]->argument + 1 + k];
        }
        break;
    case LILAC_SIMT_OP_IF: {
        const lilac_simt_body *taken = bodies[v[o[0]] ? 0 : 1];
        interpret(taken, v, tid);
        assign(v, i->result, taken->last->operands, i->result_count);
        break;
    }
    default:
        break;
    }
}

static void interpret(const lilac_simt_body *body, uint32_t *v, uint32_t tid) {
    for (const lilac_simt_instruction *i = body->first; i; i = i->next) {
        interpret_one(i, v, tid);
    }
}

typedef struct generator {
    rig *r;
    lilac_random random;
    lilac_simt_value pool[64]; /* i32 values that may be used here */
    bool uniform[64];
    uint32_t count;
    int32_t budget;
} generator;

static void keep(generator *g, lilac_simt_value value, bool uniform) {
    uint32_t k = g->count < 64 ? g->count++ : random_below(&g->random, 64);
    g->pool[k] = value;
    g->uniform[k] = uniform;
}

static uint32_t pick_uniform(generator *g) {
    for (;;) {
        uint32_t k = random_below(&g->random, g->count);
        if (g->uniform[k]) {
            return k;
        }
    }
}

static void generate(generator *g, uint32_t depth);

/* Bodies see what is outside of them; what they define goes out of sight with them. */
static void generate_inside(generator *g, uint32_t depth) {
    generate(g, depth + 1);
}

static void generate_loop(generator *g, uint32_t depth) {
    rig *r = g->r;
    lilac_simt_value inits[4], next[4], i;
    uint32_t carried = 1 + random_below(&g->random, 4), iterations = random_below(&g->random, 4);
    for (uint32_t k = 0; k < carried; k++) {
        inits[k] = g->pool[random_below(&g->random, g->count)];
    }
    lilac_simt_instruction *loop = lilac_simt_loop_begin(&r->b, word(r, 0), word(r, iterations),
                                                         word(r, 1), carried, inits, &i);
    generator saved = *g;
    keep(g, i, true);
    for (uint32_t k = 0; k < carried; k++) {
        keep(g, i + 1 + k, false);
    }
    generate_inside(g, depth);
    for (uint32_t k = 0; k < carried; k++) { /* often one another's */
        next[k] = random_below(&g->random, 2) ? i + 1 + random_below(&g->random, carried)
                                              : g->pool[random_below(&g->random, g->count)];
    }
    lilac_simt_value results = lilac_simt_loop_end(&r->b, loop, next);
    saved.random = g->random;
    saved.budget = g->budget;
    *g = saved;
    for (uint32_t k = 0; k < carried; k++) {
        keep(g, results + k, false);
    }
}

static void generate_if(generator *g, uint32_t depth) {
    rig *r = g->r;
    lilac_simt_value condition = lilac_simt_compare_values(
        &r->b, LILAC_SIMT_ULT, g->pool[pick_uniform(g)], g->pool[pick_uniform(g)]);
    const lilac_simt_type types[2] = {LILAC_SIMT_I32, LILAC_SIMT_I32};
    lilac_simt_instruction *branch = lilac_simt_if_begin(&r->b, condition, 2, types);
    lilac_simt_value results = 0;
    for (uint32_t side = 0; side < 2; side++) {
        generator saved = *g;
        generate_inside(g, depth);
        lilac_simt_value out[2] = {g->pool[random_below(&g->random, g->count)],
                                   g->pool[random_below(&g->random, g->count)]};
        if (side == 0) {
            lilac_simt_if_else(&r->b, branch, out);
        } else {
            results = lilac_simt_if_end(&r->b, branch, out);
        }
        saved.random = g->random;
        saved.budget = g->budget;
        *g = saved;
    }
    keep(g, results, false);
    keep(g, results + 1, false);
}

static void generate(generator *g, uint32_t depth) {
    static const lilac_simt_opcode codes[] = {LILAC_SIMT_OP_ADD, LILAC_SIMT_OP_MUL,
                                              LILAC_SIMT_OP_XOR, LILAC_SIMT_OP_MULHI_U};
    for (uint32_t steps = 2 + random_below(&g->random, 8); steps > 0 && g->budget > 0;
         steps--, g->budget--) {
        uint32_t choice = random_below(&g->random, 12), a = random_below(&g->random, g->count),
                 b = random_below(&g->random, g->count);
        if (choice == 0 && depth < 3) {
            generate_loop(g, depth);
        } else if (choice == 1 && depth < 3) {
            generate_if(g, depth);
        } else {
            keep(g, op2(g->r, codes[random_below(&g->random, 4)], g->pool[a], g->pool[b]),
                 g->uniform[a] && g->uniform[b]);
        }
    }
}

/* Arrays are reused when values die, loops carry, yields assign in parallel: the results at the end
 * are those of a reader of the definitions that knows none of this. */
static void random_programs(void **state) {
    enum { PROGRAMS = 150, THREADS = 32 };
    (void)state;
    for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
        static uint32_t out[64 * THREADS];
        rig r;
        rig_init(&r, 1, 1, 0);
        generator g = {.r = &r, .budget = 120};
        lilac_random_seed(&g.random, seed);
        keep(&g, thread(&r), false);
        for (uint32_t k = 0; k < 4; k++) {
            keep(&g, word(&r, lilac_random_next(&g.random) & 0xFFFFFFFF), true);
        }
        while (g.budget > 0) {
            generate(&g, 0);
        }
        for (uint32_t k = 0; k < g.count; k++) {
            lilac_simt_value at = op2(&r, LILAC_SIMT_OP_ADD, thread(&r), word(&r, THREADS * k));
            store(&r, GLOBAL_STORE, g.pool[k], element(&r, 0, at, 4));
        }
        give(&r, 0, "out", out, sizeof out);
        assert_true(rig_run(&r));
        uint32_t *values = calloc(r.kernel->value_count + 16, sizeof *values);
        for (uint32_t t = 0; t < THREADS; t++) {
            interpret(r.kernel->body, values, t);
            for (uint32_t k = 0; k < g.count; k++) {
                if (out[THREADS * k + t] != values[g.pool[k]]) {
                    fail_msg("seed %u, thread %u, value %u: %u, not %u", (unsigned)seed, t,
                             g.pool[k], out[THREADS * k + t], values[g.pool[k]]);
                }
            }
        }
        free(values);
        rig_clear(&r);
    }
}

/* ---- exchanges ----------------------------------------------------------------------------- */

static void shuffles(void **state) {
    (void)state;
    for (uint32_t kind = LILAC_SIMT_SHFL_IDX; kind <= LILAC_SIMT_SHFL_DOWN; kind++) {
        for (uint32_t operand = 0; operand < 40; operand += 3) {
            uint32_t out[64];
            rig r;
            rig_init(&r, 2, 1, 0);
            lilac_simt_instruction like = {.code = LILAC_SIMT_OP_SHUFFLE, .detail = (uint8_t)kind};
            lilac_simt_value values[2] = {op2(&r, LILAC_SIMT_OP_MUL, thread(&r), word(&r, 1000)),
                                          word(&r, operand)};
            lilac_simt_type type = LILAC_SIMT_I32;
            give_out(&r, 0, lilac_simt_build(&r.b, &like, 2, values, 1, &type));
            give(&r, 0, "out", out, sizeof out);
            assert_true(rig_run(&r));
            assert_int_equal(r.counters.shuffles, 2);
            for (uint32_t t = 0; t < 64; t++) {
                uint32_t lane = t % 32, low = operand & 31;
                uint32_t from = kind == LILAC_SIMT_SHFL_IDX   ? low
                                : kind == LILAC_SIMT_SHFL_XOR ? lane ^ low
                                : kind == LILAC_SIMT_SHFL_UP
                                    ? (lane < low ? lane : lane - low)
                                    : (lane + low > 31 ? lane : lane + low);
                assert_int_equal(out[t], (t / 32 * 32 + from) * 1000);
            }
            rig_clear(&r);
        }
    }
}

static void ballots(void **state) {
    uint32_t out[64];
    rig r;
    (void)state;
    rig_init(&r, 2, 1, 0);
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_BALLOT};
    lilac_simt_value condition =
        lilac_simt_compare_values(&r.b, LILAC_SIMT_UGT, thread(&r), word(&r, 40));
    lilac_simt_type type = LILAC_SIMT_I32;
    give_out(&r, 0, lilac_simt_build(&r.b, &like, 1, &condition, 1, &type));
    give(&r, 0, "out", out, sizeof out);
    assert_true(rig_run(&r));
    for (uint32_t t = 0; t < 64; t++) {
        assert_int_equal(out[t], t < 32 ? 0 : 0xFFFFFE00);
    }
    assert_int_equal(r.counters.votes, 2);
    rig_clear(&r);
}

/* ---- global memory ------------------------------------------------------------------------- */

/* Copies with every element width and count, an offset, a mask and others. */
static void vector_accesses(void **state) {
    static const lilac_simt_type types[] = {LILAC_SIMT_I8, LILAC_SIMT_BF16, LILAC_SIMT_F32,
                                            LILAC_SIMT_I64};
    (void)state;
    for (uint32_t w = 0; w < 4; w++) {
        for (uint32_t count = 1; count <= 4 && (count << w) <= 16; count *= 2) {
            for (uint32_t masked = 0; masked < 3; masked++) {
                uint32_t size = count << w;
                uint8_t in[16 + 32 * 16], out[32 * 16];
                rig r;
                rig_init(&r, 1, 2, 0);
                for (uint32_t k = 0; k < sizeof in; k++) {
                    in[k] = (uint8_t)(k * 7 + 3);
                }
                lilac_simt_value mask = masked ? odd_thread(&r) : 0;
                lilac_simt_value others[4], values[4];
                for (uint32_t k = 0; k < 4; k++) {
                    others[k] =
                        constant(&r, types[w], UINT64_C(0x5A5A5A5A5A5A5A5A) >> (64 - (8u << w)));
                }
                lilac_simt_value first = lilac_simt_load(&r.b, GLOBAL_LOAD, types[w], count,
                                                         element(&r, 0, thread(&r), size), 16, mask,
                                                         masked == 2 ? others : NULL, NULL);
                for (uint32_t k = 0; k < 4; k++) {
                    values[k] = first + k;
                }
                lilac_simt_store(&r.b, GLOBAL_STORE, count, values,
                                 element(&r, 1, thread(&r), size), 0, 0, NULL);
                give(&r, 0, "in", in, sizeof in);
                give(&r, 1, "out", out, 32 * size);
                r.buffers[0].read_only = true;
                assert_true(rig_run(&r));
                for (uint32_t t = 0; t < 32; t++) {
                    for (uint32_t k = 0; k < size; k++) {
                        assert_int_equal(out[t * size + k], masked == 0 || t % 2
                                                                ? in[16 + t * size + k]
                                                                : (masked == 2 ? 0x5A : 0));
                    }
                }
                uint32_t threads = masked ? 16 : 32, width = 0;
                while (1u << width != size) {
                    width++;
                }
                assert_int_equal(r.counters.global_load_bytes, threads * size);
                assert_int_equal(r.counters.global_store_bytes, 32 * size);
                assert_int_equal(r.counters.access_bits[width], 2);
                assert_int_equal(r.counters.global_loads, 1);
                assert_int_equal(r.counters.global_store_sectors, size);
                rig_clear(&r);
            }
        }
    }
}

/* A store under a mask leaves the other bytes alone; a warp with no active lane does nothing. */
static void masked_stores(void **state) {
    uint32_t out[128];
    rig r;
    (void)state;
    for (uint32_t k = 0; k < 128; k++) {
        out[k] = 77;
    }
    rig_init(&r, 4, 1, 0);
    lilac_simt_value value = thread(&r);
    lilac_simt_value mask =
        lilac_simt_compare_values(&r.b, LILAC_SIMT_ULT, thread(&r), word(&r, 33));
    lilac_simt_store(&r.b, GLOBAL_STORE, 1, &value, element(&r, 0, thread(&r), 4), 0, mask, NULL);
    give(&r, 0, "out", out, 33 * sizeof *out);
    assert_true(rig_run(&r));
    for (uint32_t t = 0; t < 128; t++) {
        assert_int_equal(out[t], t < 33 ? t : 77);
    }
    assert_int_equal(r.counters.global_stores, 2);
    assert_int_equal(r.counters.global_store_sectors, 5);
    assert_int_equal(r.counters.global_store_bytes, 33 * 4);
    rig_clear(&r);
}

/* Sectors of one warp's loads: address = ((lane * stride) ^ twist) * 4 + offset bytes. */
static void sectors(void **state) {
    static const struct {
        uint32_t stride, twist, offset, wanted;
    } cases[] = {{1, 0, 0, 4},   {2, 0, 0, 8},  {4, 0, 0, 16},  {8, 0, 0, 32},
                 {64, 0, 0, 32}, {0, 0, 0, 1},  {1, 31, 0, 4},  {1, 0, 4, 5},
                 {1, 0, 16, 5},  {1, 0, 32, 4}, {2, 21, 12, 9}, {16, 3, 0, 32}};
    static uint8_t in[32 * 64 * 4 + 64];
    (void)state;
    for (uint32_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r;
        rig_init(&r, 1, 1, 0);
        lilac_simt_value index = op2(&r, LILAC_SIMT_OP_MUL, thread(&r), word(&r, cases[k].stride));
        index = op2(&r, LILAC_SIMT_OP_XOR, index, word(&r, cases[k].twist));
        lilac_simt_load(&r.b, GLOBAL_LOAD, LILAC_SIMT_I32, 1, element(&r, 0, index, 4),
                        cases[k].offset, 0, NULL, NULL);
        give(&r, 0, "in", in, sizeof in);
        assert_true(rig_run(&r));
        bool touched[sizeof in / 32 + 1] = {false};
        uint32_t count = 0;
        for (uint32_t lane = 0; lane < 32; lane++) {
            uint32_t at = (((lane * cases[k].stride) ^ cases[k].twist) * 4 + cases[k].offset) / 32;
            count += !touched[at];
            touched[at] = true;
        }
        assert_int_equal(count, cases[k].wanted);
        assert_int_equal(r.counters.global_load_sectors, cases[k].wanted);
        rig_clear(&r);
    }
}

/* A load of `type` at buffer + at bytes (or at an absolute address) from a 40-byte buffer. */
static void faulty_load(rig *r, uint8_t *bytes, lilac_simt_type type, int64_t at, bool absolute) {
    rig_init(r, 1, 1, 0);
    at_line(r, 12);
    lilac_simt_value address = absolute ? constant(r, LILAC_SIMT_I64, (uint64_t)at)
                                        : lilac_simt_op2(&r->b, LILAC_SIMT_OP_ADD, LILAC_SIMT_I64,
                                                         lilac_simt_parameter_value(&r->b, 0),
                                                         constant(r, LILAC_SIMT_I64, (uint64_t)at));
    load(r, GLOBAL_LOAD, type, address);
    give(r, 0, "rows", bytes, 40);
}

static void global_traps(void **state) {
    uint8_t bytes[40] = {0};
    rig r;
    (void)state;
    faulty_load(&r, bytes, LILAC_SIMT_I32, 40, false);
    expect_failure(&r, "out-of-bounds", 12, "begins at the end of 'rows' (40 bytes)");
    faulty_load(&r, bytes, LILAC_SIMT_I64, 64, false);
    expect_failure(&r, "out-of-bounds", 12, "24 bytes past the end of 'rows'");
    faulty_load(&r, bytes, LILAC_SIMT_I32, -8, false);
    expect_failure(&r, "out-of-bounds", 12, "8 bytes before the start of 'rows'");
    faulty_load(&r, bytes, LILAC_SIMT_I64, 36, false);
    expect_failure(&r, "out-of-bounds", 12, "runs 4 bytes past the end of 'rows'");
    faulty_load(&r, bytes, LILAC_SIMT_I32, 0, true);
    expect_failure(&r, "null-pointer", 12, "ld.global of 4 bytes through a null pointer");
    faulty_load(&r, bytes, LILAC_SIMT_I64, 4096, true);
    expect_failure(&r, "null-pointer", 12, "through a null pointer, 4096 bytes past it");
    faulty_load(&r, bytes, LILAC_SIMT_I64, -4, true);
    expect_failure(&r, "null-pointer", 12, "through a null pointer, 4 bytes before it");
    faulty_load(&r, bytes, LILAC_SIMT_I64, INT64_C(1) << 33, true);
    expect_failure(&r, "out-of-bounds", 12, "outside every buffer; none is near");
    faulty_load(&r, bytes, LILAC_SIMT_I32, 6, false);
    expect_failure(&r, "misaligned-access", 12, "'rows' + 6 is misaligned by 2");

    rig_init(&r, 1, 1, 0);
    at_line(&r, 4);
    store(&r, GLOBAL_STORE, word(&r, 1), lilac_simt_parameter_value(&r.b, 0));
    give(&r, 0, "rows", bytes, sizeof bytes);
    r.buffers[0].read_only = true;
    expect_failure(&r, "read-only", 4, "'rows' + 0");
    assert_int_equal(bytes[0], 0);
}

/* The first thread outside is named, and one far from every buffer is said to be so. */
static void trap_names_the_thread(void **state) {
    uint32_t in[40] = {0};
    rig r;
    (void)state;
    rig_init(&r, 2, 1, 0);
    load(&r, GLOBAL_LOAD, LILAC_SIMT_I32, element(&r, 0, thread(&r), 4));
    give(&r, 0, "in", in, sizeof in);
    expect_failure(&r, "out-of-bounds", 0, "block (0, 0, 0), thread 40: ld.global of 4 bytes");

    rig_init(&r, 1, 0, 0);
    load(&r, GLOBAL_LOAD, LILAC_SIMT_I32, constant(&r, LILAC_SIMT_I64, UINT64_C(1) << 33));
    expect_failure(&r, "out-of-bounds", 0, "none is near");
}

static void unwritten_global(void **state) {
    uint32_t in[64] = {0};
    uint8_t written[sizeof in];
    const lilac_diagnostic *d = NULL;
    rig r;
    (void)state;
    memset(written, 1, sizeof written);
    written[4 * 37 + 2] = 0;
    rig_init(&r, 2, 1, 0);
    lilac_simt_value at = element(&r, 0, thread(&r), 4);
    for (uint32_t k = 0; k < 12; k++) { /* twelve lines read it, and one writes it then */
        at_line(&r, k + 1);
        load(&r, GLOBAL_LOAD, LILAC_SIMT_I32, at);
    }
    store(&r, GLOBAL_STORE, thread(&r), at);
    load(&r, GLOBAL_LOAD, LILAC_SIMT_I32, at);
    give(&r, 0, "in", in, sizeof in);
    r.buffers[0].written = written;
    assert_true(rig_run(&r));
    assert_int_equal(r.counters.uninitialised_reads, 12);
    assert_int_equal(reported(&r, "uninitialised-read", &d), 8);
    assert_int_equal(d->severity, LILAC_WARNING);
    assert_non_null(strstr(d->message, "thread 37"));
    assert_non_null(strstr(d->message, "'in' + 150"));
    assert_int_equal(written[4 * 37 + 2], 1);
    rig_clear(&r);
}

/* ---- shared memory ------------------------------------------------------------------------- */

/* Wavefronts of one warp's store to and load from lane * stride elements, and the data. */
static uint32_t strided(const char *arch, lilac_simt_type type, uint32_t count, uint32_t stride,
                        uint32_t active) {
    static uint32_t out[64];
    uint32_t size = lilac_simt_type_bits(type) / 8 * count;
    rig r;
    rig_init_on(&r, arch, 1, 1, 64 * 1024);
    lilac_simt_value address = op2(&r, LILAC_SIMT_OP_MUL, thread(&r), word(&r, stride * size));
    lilac_simt_value values[4];
    lilac_simt_value mask =
        lilac_simt_compare_values(&r.b, LILAC_SIMT_ULT, thread(&r), word(&r, active));
    for (uint32_t k = 0; k < 4; k++) {
        values[k] = type == LILAC_SIMT_I32
                        ? op2(&r, LILAC_SIMT_OP_ADD, thread(&r), word(&r, 1000 * k))
                        : constant(&r, type, k);
    }
    lilac_simt_store(&r.b, SHARED_STORE, count, values, address, 0, mask, NULL);
    lilac_simt_value loaded =
        lilac_simt_load(&r.b, SHARED_LOAD, type, count, address, 0, mask, NULL, NULL);
    if (type == LILAC_SIMT_I32) {
        give_out(&r, 0, loaded + count - 1);
    }
    give(&r, 0, "out", out, sizeof out);
    assert_true(rig_run(&r));
    for (uint32_t t = 0; t < active && type == LILAC_SIMT_I32 && stride; t++) {
        assert_int_equal(out[t], t + 1000 * (count - 1));
    }
    bool merges = size > 4 && stride == 0; /* copies in a wide load, see merged_loads */
    assert_int_equal(r.counters.shared_load_wavefronts << merges,
                     r.counters.shared_store_wavefronts);
    assert_int_equal(r.counters.shared_load_bytes, (uint64_t)active * size);
    assert_int_equal(r.counters.shared_store_bytes, (uint64_t)active * size);
    assert_int_equal(r.counters.shared_loads, 1);
    assert_int_equal(r.counters.races + r.counters.uninitialised_reads, 0);
    uint32_t wavefronts = (uint32_t)r.counters.shared_store_wavefronts;
    rig_clear(&r);
    return wavefronts;
}

static void bank_conflicts(void **state) {
    (void)state;
    /* words: stride s puts gcd(s, 32) lanes into a bank */
    assert_int_equal(strided("sm_90a", LILAC_SIMT_I32, 1, 0, 32), 1); /* broadcast */
    assert_int_equal(strided("sm_90a", LILAC_SIMT_I32, 1, 1, 32), 1);
    assert_int_equal(strided("sm_90a", LILAC_SIMT_I32, 1, 2, 32), 2);
    assert_int_equal(strided("sm_90a", LILAC_SIMT_I32, 1, 3, 32), 1);
    assert_int_equal(strided("sm_90a", LILAC_SIMT_I32, 1, 8, 32), 8);
    assert_int_equal(strided("sm_90a", LILAC_SIMT_I32, 1, 32, 32), 32);
    assert_int_equal(strided("sm_90a", LILAC_SIMT_I32, 1, 33, 32), 1);
    assert_int_equal(strided("sm_90a", LILAC_SIMT_I32, 1, 32, 5), 5); /* inactive lanes are free */
    /* vectors: 2 and 4 transactions of 128 bytes */
    assert_int_equal(strided("sm_90a", LILAC_SIMT_I32, 2, 1, 32), 2);
    assert_int_equal(strided("sm_90a", LILAC_SIMT_I32, 4, 1, 32), 4);
    assert_int_equal(strided("sm_90a", LILAC_SIMT_I64, 1, 1, 32), 2);
    assert_int_equal(strided("sm_90a", LILAC_SIMT_I64, 2, 1, 32), 4);
    assert_int_equal(strided("sm_90a", LILAC_SIMT_I32, 4, 2, 32), 8);
    assert_int_equal(strided("sm_90a", LILAC_SIMT_I32, 4, 8, 32), 32);
    assert_int_equal(strided("sm_90a", LILAC_SIMT_I32, 4, 9, 32), 4); /* rows of 128 + 16 bytes */
    assert_int_equal(strided("sm_90a", LILAC_SIMT_I32, 4, 1, 9), 2);  /* lane 8: a second group */
    assert_int_equal(strided("sm_90a", LILAC_SIMT_I32, 4, 0, 32), 4); /* broadcast, four groups */
    /* narrow: lanes share words */
    assert_int_equal(strided("sm_90a", LILAC_SIMT_I8, 1, 1, 32), 1);
    assert_int_equal(strided("sm_90a", LILAC_SIMT_F16, 1, 1, 32), 1);
    assert_int_equal(strided("sm_90a", LILAC_SIMT_F16, 1, 64, 32), 32);
    assert_int_equal(strided("sm_90a", LILAC_SIMT_F16, 1, 66, 32), 1);
    /* warps of 64 lanes: 32 banks take them in two groups, 64 banks in one */
    assert_int_equal(strided("gfx942", LILAC_SIMT_I32, 1, 1, 64), 2);
    assert_int_equal(strided("gfx950", LILAC_SIMT_I32, 1, 1, 64), 1);
    assert_int_equal(strided("gfx950", LILAC_SIMT_I32, 1, 32, 64), 32);
    assert_int_equal(strided("gfx950", LILAC_SIMT_I32, 1, 64, 64), 64);
    assert_int_equal(strided("gfx950", LILAC_SIMT_I32, 4, 1, 64), 4);
}

/* Wavefronts of a load of `count` words at column[i] bytes for each set bit i of the lane, by the
 * lanes of `active`. */
static uint32_t linear_load(uint32_t count, const uint32_t *columns, uint32_t active) {
    uint32_t places[32] = {0}, masks[32];
    rig r;
    rig_init(&r, 1, 2, 16 * 1024);
    for (uint32_t lane = 0; lane < 32; lane++) {
        masks[lane] = active >> lane & 1;
        for (uint32_t k = 0; k < 5; k++) {
            places[lane] ^= lane >> k & 1 ? columns[k] : 0;
        }
    }
    lilac_simt_value at = load(&r, GLOBAL_LOAD, LILAC_SIMT_I32, element(&r, 0, thread(&r), 4));
    lilac_simt_value mask = load(&r, GLOBAL_LOAD, LILAC_SIMT_I32, element(&r, 1, thread(&r), 4));
    mask = lilac_simt_compare_values(&r.b, LILAC_SIMT_NE, mask, word(&r, 0));
    lilac_simt_load(&r.b, SHARED_LOAD, LILAC_SIMT_I32, count, at, 0, mask, NULL, NULL);
    give(&r, 0, "places", places, sizeof places);
    give(&r, 1, "masks", masks, sizeof masks);
    assert_true(rig_run(&r));
    uint32_t wavefronts = (uint32_t)r.counters.shared_load_wavefronts;
    rig_clear(&r);
    return wavefronts;
}

/* Wide loads in which lanes at distance one or two have the same address, as measured on Hopper. */
static void merged_loads(void **state) {
    (void)state;
    assert_int_equal(linear_load(4, (const uint32_t[]){0, 16, 32, 64, 128}, UINT32_MAX), 2);
    assert_int_equal(linear_load(4, (const uint32_t[]){16, 0, 32, 64, 128}, UINT32_MAX), 2);
    assert_int_equal(linear_load(4, (const uint32_t[]){16, 32, 0, 64, 128}, UINT32_MAX), 4);
    assert_int_equal(linear_load(4, (const uint32_t[]){16, 32, 64, 128, 0}, UINT32_MAX), 4);
    assert_int_equal(linear_load(4, (const uint32_t[]){16, 16, 32, 64, 128}, UINT32_MAX), 4);
    assert_int_equal(linear_load(4, (const uint32_t[]){0, 0, 32, 64, 128}, UINT32_MAX), 2);
    assert_int_equal(linear_load(2, (const uint32_t[]){0, 8, 16, 32, 64}, UINT32_MAX), 1);
    assert_int_equal(linear_load(2, (const uint32_t[]){8, 0, 16, 32, 64}, UINT32_MAX), 1);
    assert_int_equal(linear_load(2, (const uint32_t[]){8, 16, 0, 32, 64}, UINT32_MAX), 2);
    assert_int_equal(linear_load(2, (const uint32_t[]){0, 128, 8, 16, 32}, UINT32_MAX), 2);
    assert_int_equal(linear_load(1, (const uint32_t[]){0, 4, 8, 16, 128}, UINT32_MAX), 2);
    /* inactive lanes do not count; one active lane without a copy prevents the merge */
    assert_int_equal(linear_load(4, (const uint32_t[]){16, 0, 32, 64, 128}, 0xFFFFFFF7), 2);
    assert_int_equal(linear_load(4, (const uint32_t[]){16, 16, 32, 64, 128}, 0x55555555), 2);
    assert_int_equal(linear_load(4, (const uint32_t[]){16, 16, 32, 64, 128}, 0x5555555F), 4);
}

/* Every pattern of random words against counting by definition. */
static void random_conflicts(void **state) {
    lilac_random random;
    lilac_random_seed(&random, 99);
    (void)state;
    for (uint32_t round = 0; round < 60; round++) {
        uint32_t count = 1u << lilac_random_below(&random, 3), group = 32 / count, wanted = 0;
        uint32_t places[32], span = 4u << lilac_random_below(&random, 8);
        rig r;
        rig_init(&r, 1, 1, 32 * 1024);
        for (uint32_t lane = 0; lane < 32; lane++) {
            places[lane] = (uint32_t)lilac_random_below(&random, span) * count * 4;
        }
        lilac_simt_load(&r.b, SHARED_LOAD, LILAC_SIMT_I32, count,
                        load(&r, GLOBAL_LOAD, LILAC_SIMT_I32, element(&r, 0, thread(&r), 4)), 0, 0,
                        NULL, NULL);
        give(&r, 0, "places", places, sizeof places);
        assert_true(rig_run(&r));
        for (uint32_t first = 0; first < 32; first += group) {
            static bool seen[8192];
            uint32_t depth[32] = {0}, most = 0;
            memset(seen, 0, sizeof seen);
            for (uint32_t lane = first; lane < first + group; lane++) {
                for (uint32_t k = 0; k < count; k++) {
                    uint32_t at = places[lane] / 4 + k;
                    depth[at % 32] += !seen[at];
                    seen[at] = true;
                    most = depth[at % 32] > most ? depth[at % 32] : most;
                }
            }
            wanted += most;
        }
        assert_int_equal(r.counters.shared_load_wavefronts, wanted);
        rig_clear(&r);
    }
}

static void shared_traps(void **state) {
    static const struct {
        uint32_t address;
        int64_t offset;
        const char *id, *text;
    } cases[] = {{256, 0, "out-of-bounds", "4 bytes at 256 is outside the block's 256 bytes"},
                 {0, -4, "out-of-bounds", "at -4"},
                 {0xFFFFFFFC, 0, "out-of-bounds", "outside"},
                 {248, 8, "out-of-bounds", "at 256"},
                 {2, 0, "misaligned-access", "at 2 is misaligned by 2"}};
    (void)state;
    for (uint32_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r;
        rig_init(&r, 1, 0, 256);
        at_line(&r, 30 + k);
        lilac_simt_load(&r.b, SHARED_LOAD, LILAC_SIMT_I32, 1, word(&r, cases[k].address),
                        cases[k].offset, 0, NULL, NULL);
        expect_failure(&r, cases[k].id, 30 + k, cases[k].text);
    }
}

/* An address and an offset wrap at 32 bits: an index below 0 whose constant is the offset. */
static void shared_addresses_wrap(void **state) {
    rig r;
    (void)state;
    rig_init(&r, 1, 0, 256);
    store(&r, SHARED_STORE, word(&r, 7), word(&r, 32));
    (void)lilac_simt_load(&r.b, SHARED_LOAD, LILAC_SIMT_I32, 1, word(&r, 0xFFFFFFF0), 48, 0, NULL,
                          NULL);
    assert_true(rig_run(&r));
    assert_int_equal(r.counters.uninitialised_reads, 0);
    rig_clear(&r);
}

static void unwritten_shared(void **state) {
    const lilac_diagnostic *d = NULL;
    rig r;
    (void)state;
    rig_init(&r, 1, 0, 256);
    r.launch.grid[0] = 3; /* what one block wrote, the next has not */
    lilac_simt_value at = op2(&r, LILAC_SIMT_OP_MUL, thread(&r), word(&r, 8));
    load(&r, SHARED_LOAD, LILAC_SIMT_I64, at);
    store(&r, SHARED_STORE, thread(&r), at);
    load(&r, SHARED_LOAD, LILAC_SIMT_I32, at);
    load(&r, SHARED_LOAD, LILAC_SIMT_I64, at);
    assert_true(rig_run(&r));
    assert_int_equal(r.counters.uninitialised_reads, 6);
    assert_int_equal(reported(&r, "uninitialised-read", &d), 2);
    assert_non_null(strstr(d->message, "shared byte 0"));
    assert_non_null(strstr(d->next->message, "shared byte 4"));
    rig_clear(&r);
}

/* ---- races --------------------------------------------------------------------------------- */

typedef enum touch { READ, WRITE, SYNC, WARP_SYNC } touch;

/* Two warps execute these accesses in order. Each thread accesses word (thread + shift) mod 64. */
typedef struct action {
    touch what;
    uint32_t shift;
} action;

static void races_of(const action *actions, uint32_t count, uint32_t races, uint32_t earlier,
                     uint32_t later, const char *text) {
    const lilac_diagnostic *d = NULL;
    lilac_name file;
    uint32_t line = 0, column;
    rig r;
    rig_init(&r, 2, 0, 256);
    for (uint32_t k = 0; k < count; k++) {
        lilac_simt_value at = op2(&r, LILAC_SIMT_OP_ADD, thread(&r), word(&r, actions[k].shift));
        at = op2(&r, LILAC_SIMT_OP_SHL, op2(&r, LILAC_SIMT_OP_AND, at, word(&r, 63)), word(&r, 2));
        at_line(&r, k + 1);
        if (actions[k].what == READ) {
            load(&r, SHARED_LOAD, LILAC_SIMT_I32, at);
        } else if (actions[k].what == WRITE) {
            store(&r, SHARED_STORE, thread(&r), at);
        } else {
            effect(&r,
                   actions[k].what == SYNC ? LILAC_SIMT_OP_BARRIER : LILAC_SIMT_OP_WARP_BARRIER);
        }
    }
    assert_true(rig_run(&r));
    assert_int_equal(r.counters.races, races);
    assert_int_equal(reported(&r, "shared-race", &d), races != 0);
    if (races) {
        assert_true(lilac_location_file(r.context, d->location, &file, &line, &column));
        assert_int_equal(line, later);
        assert_non_null(d->notes);
        assert_true(lilac_location_file(r.context, d->notes->location, &file, &line, &column));
        assert_int_equal(line, earlier);
        assert_non_null(strstr(d->message, text));
    }
    rig_clear(&r);
}

static void races(void **state) {
    (void)state;
#define RACES(...)                                                                                 \
    races_of((const action[]){__VA_ARGS__}, sizeof(action[]){__VA_ARGS__} / sizeof(action)
    /* the same thread, or a lane of the same warp, or behind a barrier: none */
    RACES({WRITE, 0}, {READ, 0}), 0, 0, 0, "");
    RACES({WRITE, 0}, {SYNC, 0}, {READ, 32}), 0, 0, 0, "");
    RACES({WRITE, 0}, {SYNC, 0}, {READ, 32}, {SYNC, 0}, {WRITE, 0}), 0, 0, 0, "");
    RACES({WRITE, 0}, {SYNC, 0}, {READ, 0}, {READ, 32}, {READ, 1}), 0, 0, 0, "");
    RACES({WRITE, 0}, {SYNC, 0}, {READ, 0}, {WRITE, 0}), 0, 0, 0, "");
    /* one warp's bytes touched by the other */
    RACES({WRITE, 0}, {READ, 32}), 2, 1, 2, "reads shared byte 128, which another warp wrote");
    RACES({WRITE, 0}, {READ, 1}), 2, 1, 2, "thread 31");
    RACES({WRITE, 0}, {WARP_SYNC, 0}, {READ, 32}), 2, 1, 3, "reads");
    RACES({WRITE, 0}, {SYNC, 0}, {READ, 32}, {WRITE, 0}), 2, 3, 4, "which another warp read");
    RACES({WRITE, 0}, {SYNC, 0}, {READ, 0}, {READ, 32}, {WRITE, 0}), 2, 4, 5, "writes");
    RACES({WRITE, 0}, {WRITE, 32}), 2, 1, 2, "writes shared byte 128, which another warp wrote");
#undef RACES
}

/* Two warps that store to the same place with one instruction race too. */
static void race_of_one_instruction(void **state) {
    const lilac_diagnostic *d = NULL;
    rig r;
    (void)state;
    rig_init(&r, 4, 0, 128);
    lilac_simt_value at = op2(&r, LILAC_SIMT_OP_SHL, leaf(&r, LILAC_SIMT_OP_LANE, 0), word(&r, 2));
    store(&r, SHARED_STORE, thread(&r), at);
    assert_true(rig_run(&r));
    assert_int_equal(r.counters.races, 3);
    assert_int_equal(reported(&r, "shared-race", &d), 1);
    assert_non_null(strstr(d->message, "warp 1"));
    assert_non_null(strstr(d->notes->message, "warp 0"));
    rig_clear(&r);
}

/* A loop without a barrier at its end races with its own next iteration; with one it does not. */
static void race_around_a_loop(void **state) {
    (void)state;
    for (uint32_t barriers = 1; barriers <= 2; barriers++) {
        rig r;
        rig_init(&r, 2, 0, 256);
        lilac_simt_value i;
        lilac_simt_instruction *loop =
            lilac_simt_loop_begin(&r.b, word(&r, 0), word(&r, 3), word(&r, 1), 0, NULL, &i);
        lilac_simt_value mine = op2(&r, LILAC_SIMT_OP_SHL, thread(&r), word(&r, 2));
        store(&r, SHARED_STORE, thread(&r), mine);
        effect(&r, LILAC_SIMT_OP_BARRIER);
        load(&r, SHARED_LOAD, LILAC_SIMT_I32, op2(&r, LILAC_SIMT_OP_XOR, mine, word(&r, 128)));
        if (barriers == 2) {
            effect(&r, LILAC_SIMT_OP_BARRIER);
        }
        lilac_simt_loop_end(&r.b, loop, NULL);
        assert_true(rig_run(&r));
        assert_int_equal(r.counters.races, barriers == 2 ? 0 : 4);
        assert_int_equal(r.counters.barriers, 3 * barriers);
        rig_clear(&r);
    }
}

/* ---- other traps --------------------------------------------------------------------------- */

/* The verifier requires uniform conditions. This marks the value as uniform. */
static lilac_simt_value claimed(rig *r, lilac_simt_value value) {
    lilac_simt_mark_uniform(r->kernel, value);
    return value;
}

static void divergence(void **state) {
    const lilac_simt_type type = LILAC_SIMT_I32;
    lilac_simt_value first;
    rig r;
    (void)state;
    rig_init(&r, 1, 0, 0);
    at_line(&r, 3);
    lilac_simt_instruction *branch =
        lilac_simt_if_begin(&r.b, claimed(&r, odd_thread(&r)), 0, NULL);
    lilac_simt_if_else(&r.b, branch, NULL);
    lilac_simt_if_end(&r.b, branch, NULL);
    expect_failure(&r, "divergent-branch", 3, "thread 1: the condition of 'if'");

    for (uint32_t bound = 0; bound < 3; bound++) {
        rig_init(&r, 1, 0, 0);
        at_line(&r, 5);
        lilac_simt_value bounds[3] = {word(&r, 0), word(&r, 10), word(&r, 1)};
        bounds[bound] = claimed(&r, op2(&r, LILAC_SIMT_OP_ADD, thread(&r), word(&r, 1)));
        lilac_simt_loop_end(
            &r.b, lilac_simt_loop_begin(&r.b, bounds[0], bounds[1], bounds[2], 0, NULL, &first),
            NULL);
        expect_failure(&r, "divergent-branch", 5, "'loop'");
    }

    rig_init(&r, 1, 0, 0);
    at_line(&r, 7);
    lilac_simt_value init = word(&r, 0);
    lilac_simt_instruction *loop = lilac_simt_while_begin(&r.b, 1, &init, 1, &type, &first);
    lilac_simt_value condition = lilac_simt_compare_values(&r.b, LILAC_SIMT_ULT, first, thread(&r));
    lilac_simt_while_condition(&r.b, loop, claimed(&r, condition), &first, &first);
    lilac_simt_value next = op2(&r, LILAC_SIMT_OP_ADD, first, word(&r, 1));
    lilac_simt_while_end(&r.b, loop, &next);
    expect_failure(&r, "divergent-branch", 7, "thread 1: the condition of 'condition'");
}

/* A condition that is computed per thread but agrees is no divergence. */
static void agreement(void **state) {
    uint32_t out[32];
    rig r;
    (void)state;
    rig_init(&r, 1, 1, 0);
    lilac_simt_value same =
        claimed(&r, lilac_simt_compare_values(
                        &r.b, LILAC_SIMT_ULT,
                        op2(&r, LILAC_SIMT_OP_SHR_U,
                            op2(&r, LILAC_SIMT_OP_MUL, thread(&r), thread(&r)), word(&r, 10)),
                        word(&r, 1)));
    const lilac_simt_type type = LILAC_SIMT_I32;
    lilac_simt_instruction *branch = lilac_simt_if_begin(&r.b, same, 1, &type);
    lilac_simt_value one = word(&r, 1), two = word(&r, 2);
    lilac_simt_if_else(&r.b, branch, &one);
    give_out(&r, 0, lilac_simt_if_end(&r.b, branch, &two));
    give(&r, 0, "out", out, sizeof out);
    assert_true(rig_run(&r));
    assert_int_equal(out[17], 1);
    rig_clear(&r);
}

static void assertions(void **state) {
    rig r;
    (void)state;
    for (uint32_t bound = 31; bound <= 32; bound++) {
        rig_init(&r, 1, 0, 0);
        at_line(&r, 9);
        lilac_simt_instruction like = {.code = LILAC_SIMT_OP_ASSERT, .text = "index < length"};
        lilac_simt_value condition =
            lilac_simt_compare_values(&r.b, LILAC_SIMT_ULT, thread(&r), word(&r, bound));
        lilac_simt_build(&r.b, &like, 1, &condition, 0, NULL);
        if (bound == 31) {
            expect_failure(&r, "assertion-failed", 9,
                           "thread 31: assertion failed: index < length");
        } else {
            assert_true(rig_run(&r));
            rig_clear(&r);
        }
    }
}

static void endless_loops(void **state) {
    lilac_simt_value first;
    rig r;
    (void)state;
    rig_init(&r, 2, 0, 0);
    at_line(&r, 2);
    r.launch.instruction_limit = 10000;
    lilac_simt_instruction *loop = lilac_simt_while_begin(&r.b, 0, NULL, 0, NULL, &first);
    lilac_simt_while_condition(&r.b, loop, constant(&r, LILAC_SIMT_I1, 1), NULL, &first);
    lilac_simt_while_end(&r.b, loop, NULL);
    expect_failure(&r, "instruction-limit", 2, "10000 instructions");

    for (uint32_t step = 0; step < 2; step++) {
        uint32_t given = step ? 0x80000000 : 0;
        rig_init(&r, 1, 1, 0);
        at_line(&r, 6);
        lilac_simt_value by =
            load(&r, GLOBAL_LOAD, LILAC_SIMT_I32, lilac_simt_parameter_value(&r.b, 0));
        lilac_simt_loop_end(
            &r.b, lilac_simt_loop_begin(&r.b, word(&r, 0), word(&r, 4), by, 0, NULL, &first), NULL);
        give(&r, 0, "step", &given, sizeof given);
        expect_failure(&r, "loop-step", 6, "not positive");
    }

    rig_init(&r, 1, 0, 0); /* within the limit */
    r.launch.instruction_limit = 2000;
    lilac_simt_loop_end(
        &r.b, lilac_simt_loop_begin(&r.b, word(&r, 0), word(&r, 500), word(&r, 1), 0, NULL, &first),
        NULL);
    assert_true(rig_run(&r));
    rig_clear(&r);
}

/* ---- launches ------------------------------------------------------------------------------ */

static void refused_launches(void **state) {
    uint8_t bytes[64] = {0};
    rig r;
    (void)state;
    rig_init(&r, 1, 2, 0);
    give(&r, 0, "a", bytes, 32);
    give(&r, 1, "b", bytes + 32, 32);
    r.launch.argument_count = 1;
    expect_failure(&r, "argument-count", 0, "2 parameters and the launch 1");

    rig_init(&r, 1, 0, 0);
    r.launch.grid[1] = 70000;
    expect_failure(&r, "grid-size", 0, "70000 along y");

    rig_init(&r, 1, 0, 0);
    memcpy(r.launch.grid, (uint32_t[]){1u << 30, 60000, 60000}, sizeof r.launch.grid);
    expect_failure(&r, "grid-size", 0, "2^48");

    rig_init(&r, 1, 0, 1 << 20); /* the verifier's own */
    expect_failure(&r, "simt-launch-shape", 0, "1048576 bytes");

    /* rig_run would place the buffers at distant addresses */
    rig_init(&r, 1, 0, 0);
    effect(&r, LILAC_SIMT_OP_RETURN);
    give(&r, 0, "a", bytes, 32);
    give(&r, 1, "b", bytes + 32, 32);
    r.buffers[0].address = 4096;
    r.buffers[1].address = 4096 + 31;
    r.launch.buffer_count = 2;
    assert_false(lilac_sim_run(r.context, &r.launch, &r.counters));
    assert_int_equal(reported(&r, "buffer-overlap", NULL), 1);
    r.buffers[1].address = 4096 + 32;
    assert_true(lilac_sim_run(r.context, &r.launch, &r.counters));
    r.buffers[1].address = UINT64_MAX - 16;
    assert_false(lilac_sim_run(r.context, &r.launch, &r.counters));
    assert_int_equal(reported(&r, "buffer-overlap", NULL), 2);
    rig_clear(&r);
}

static void unsupported(void **state) {
    rig r;
    (void)state;
    rig_init_on(&r, "gfx942", 1, 0, 0);
    at_line(&r, 3);
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_BALLOT};
    lilac_simt_value condition = odd_thread(&r);
    lilac_simt_type type = LILAC_SIMT_I32;
    lilac_simt_build(&r.b, &like, 1, &condition, 1, &type);
    expect_failure(&r, "unsupported-instruction", 3, "'ballot'");

    rig_init(&r, 1, 1, 0);
    at_line(&r, 4);
    lilac_simt_value loaded =
        load(&r, GLOBAL_LOAD, LILAC_SIMT_F32, lilac_simt_parameter_value(&r.b, 0));
    lilac_simt_instruction add = {.code = LILAC_SIMT_OP_FADD, .flags = LILAC_SIMT_SATURATE};
    type = LILAC_SIMT_F32;
    lilac_simt_build(&r.b, &add, 2, (lilac_simt_value[]){loaded, loaded}, 1, &type);
    expect_failure(&r, "unsupported-instruction", 4, "saturation");
}

/* Threads times values above what the simulator gives a block. */
static void too_many_values(void **state) {
    rig r;
    (void)state;
    rig_init(&r, 32, 0, 0);
    for (uint64_t k = 0; k <= 262144; k++) {
        constant(&r, LILAC_SIMT_I64, k);
    }
    expect_failure(&r, "too-many-values", 0, "2 GiB");
}

/* Where a program is several blocks, the trap says which of them. */
static void trap_names_the_rank(void **state) {
    rig r;
    (void)state;
    rig_init(&r, 1, 0, 0);
    r.kernel->num_ctas = 4;
    r.launch.grid[0] = 3;
    lilac_simt_value sum = op2(&r, LILAC_SIMT_OP_ADD, leaf(&r, LILAC_SIMT_OP_BLOCK, 0),
                               leaf(&r, LILAC_SIMT_OP_CTA, 0));
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_ASSERT, .text = "small"};
    lilac_simt_value small = lilac_simt_compare_values(&r.b, LILAC_SIMT_ULT, sum, word(&r, 4));
    lilac_simt_build(&r.b, &like, 1, &small, 0, NULL);
    expect_failure(&r, "assertion-failed", 0, "block (1, 0, 0), rank 3, thread 0");
}

/* No blocks: nothing runs, and that is fine. */
static void empty_grid(void **state) {
    rig r;
    (void)state;
    for (uint32_t k = 0; k < 3; k++) {
        rig_init(&r, 1, 0, 0);
        r.launch.grid[k] = 0;
        load(&r, GLOBAL_LOAD, LILAC_SIMT_I32, constant(&r, LILAC_SIMT_I64, 0));
        assert_true(rig_run(&r));
        assert_int_equal(r.counters.blocks, 0);
        assert_int_equal(r.counters.instructions, 0);
        rig_clear(&r);
    }
}

/* Blocks race in shared memory and read uninitialised bytes. Some of them trap on request. */
static bool busy_launch(rig *r, uint32_t threads, bool traps, uint32_t *out, uint32_t blocks) {
    rig_init(r, 2, 1, 256);
    r->launch.threads = threads;
    r->launch.grid[0] = blocks;
    lilac_simt_value block = leaf(r, LILAC_SIMT_OP_BLOCK, 0);
    lilac_simt_value mine = op2(r, LILAC_SIMT_OP_SHL, thread(r), word(r, 2));
    for (uint32_t k = 0; k < 5; k++) {
        at_line(r, k + 1);
        /* only blocks whose number is a multiple of k + 2 do this */
        lilac_simt_value rest = op2(r, LILAC_SIMT_OP_REM_U, block, word(r, k + 2));
        lilac_simt_value mask = lilac_simt_compare_values(&r->b, LILAC_SIMT_EQ, rest, word(r, 1));
        lilac_simt_value value = thread(r);
        lilac_simt_store(&r->b, SHARED_STORE, 1, &value,
                         op2(r, LILAC_SIMT_OP_XOR, mine, word(r, (k & 1) * 128)), 0, mask, NULL);
    }
    at_line(r, 100);
    if (traps) {
        lilac_simt_instruction like = {.code = LILAC_SIMT_OP_ASSERT, .text = "low"};
        lilac_simt_value ok = lilac_simt_compare_values(&r->b, LILAC_SIMT_ULT, block, word(r, 37));
        lilac_simt_build(&r->b, &like, 1, &ok, 0, NULL);
    }
    lilac_simt_value at =
        op2(r, LILAC_SIMT_OP_ADD, op2(r, LILAC_SIMT_OP_MUL, block, word(r, 64)), thread(r));
    store(r, GLOBAL_STORE, op2(r, LILAC_SIMT_OP_MUL, at, at), element(r, 0, at, 4));
    give(r, 0, "out", out, (uint64_t)blocks * 64 * 4);
    return rig_run(r);
}

/* Counters and diagnostics do not depend on how many host threads run, nor on when. */
static void determinism(void **state) {
    enum { BLOCKS = 96 };
    static uint32_t out[BLOCKS * 64];
    (void)state;
    for (uint32_t traps = 0; traps < 2; traps++) {
        lilac_text once = {0};
        lilac_sim_counters counters = {0};
        for (uint32_t round = 0; round < 12; round++) {
            lilac_text text = {0};
            rig r;
            memset(out, 0, sizeof out);
            assert_int_equal(busy_launch(&r, round % 6 + 1, traps, out, BLOCKS), !traps);
            put_diagnostics(&text, r.context);
            if (round == 0) {
                once = text;
                counters = r.counters;
                assert_true(reported(&r, "shared-race", NULL) > 2);
                if (traps) {
                    assert_non_null(strstr(lilac_text_get(&text), "block (37, 0, 0)"));
                }
            } else {
                assert_string_equal(lilac_text_get(&text), lilac_text_get(&once));
                assert_memory_equal(&r.counters, &counters, sizeof counters);
                lilac_text_clear(&text);
            }
            for (uint32_t k = 0; !traps && k < BLOCKS * 64; k++) {
                assert_int_equal(out[k], k * k);
            }
            rig_clear(&r);
        }
        assert_int_equal(counters.blocks, traps ? 0 : BLOCKS);
        lilac_text_clear(&once);
    }
}

/* ---- counters ------------------------------------------------------------------------------ */

static void counted_instructions(void **state) {
    uint32_t out[128];
    rig r;
    (void)state;
    rig_init(&r, 4, 1, 0);
    lilac_simt_value zero = thread(&r), i;
    lilac_simt_instruction *loop =
        lilac_simt_loop_begin(&r.b, word(&r, 0), word(&r, 5), word(&r, 1), 1, &zero, &i);
    lilac_simt_value next = op2(&r, LILAC_SIMT_OP_MUL, i + 1, i + 1);
    give_out(&r, 0, lilac_simt_loop_end(&r.b, loop, &next));
    give(&r, 0, "out", out, sizeof out);
    assert_true(rig_run(&r));
    /* the loop's test six times, the product five; address and store at least two */
    uint64_t warp = r.counters.instructions / 4;
    assert_int_equal(r.counters.instructions % 4, 0);
    assert_in_range(warp, 6 + 5 + 2, 6 + 5 + 5);
    rig_clear(&r);
}

static void counter_texts(void **state) {
    lilac_sim_counters c = {.blocks = 4, .global_load_sectors = 1234567890123, .races = 7};
    lilac_text text = {0}, json = {0};
    (void)state;
    c.access_bits[4] = 9;
    lilac_sim_counters_print(&text, &c, false);
    assert_string_equal(lilac_text_get(&text), "races                               7\n"
                                               "blocks                              4\n"
                                               "global load sectors      1234567890123\n"
                                               "accesses of 128 bits                9\n");
    lilac_text_clear(&text);
    lilac_sim_counters_print(&text, &c, true);
    assert_int_equal(strncmp(lilac_text_get(&text), "races  ", 7), 0);
    assert_non_null(strstr(lilac_text_get(&text), "\nuninitialised reads                 0\n"));
    assert_non_null(strstr(lilac_text_get(&text), "blocks                              4\n"));
    assert_non_null(strstr(lilac_text_get(&text), "global load sectors      1234567890123\n"));
    assert_non_null(strstr(lilac_text_get(&text), "accesses of 128 bits                9\n"));
    assert_non_null(strstr(lilac_text_get(&text), "accesses of  64 bits                0\n"));
    lilac_sim_counters_json(&json, &c);
    assert_string_equal(
        lilac_text_get(&json),
        "{\"blocks\": 4, \"instructions\": 0, \"global_loads\": 0, \"global_stores\": 0, "
        "\"global_load_sectors\": 1234567890123, \"global_store_sectors\": 0, "
        "\"global_load_bytes\": 0, \"global_store_bytes\": 0, \"shared_loads\": 0, "
        "\"shared_stores\": 0, \"shared_load_wavefronts\": 0, \"shared_store_wavefronts\": 0, "
        "\"shared_load_bytes\": 0, \"shared_store_bytes\": 0, \"matrix_loads\": 0, "
        "\"matrix_stores\": 0, \"cluster_loads\": 0, \"cluster_stores\": 0, \"async_copies\": 0, "
        "\"async_sectors\": 0, \"async_wavefronts\": 0, \"async_bytes\": 0, \"bulk_copies\": 0, "
        "\"bulk_bytes\": 0, \"mmas\": 0, \"wgmmas\": 0, \"wgmma_cycles\": 0, \"wgmma_bytes\": 0, "
        "\"shuffles\": 0, "
        "\"votes\": 0, \"selects\": 0, \"permutes\": 0, \"barriers\": 0, \"warp_barriers\": 0, "
        "\"group_barriers\": 0, \"cluster_barriers\": 0, \"atomics\": 0, \"races\": 7, "
        "\"uninitialised_reads\": 0, \"access_bits\": {\"8\": 0, \"16\": 0, \"32\": 0, \"64\": 0, "
        "\"128\": 9, \"256\": 0}}");
    lilac_text_clear(&text);
    lilac_text_clear(&json);
}

static void placing(void **state) {
    lilac_sim_buffer buffers[3] = {{.size = 1}, {.size = UINT64_C(1) << 40}, {.size = 0}};
    (void)state;
    lilac_sim_place(buffers, 3);
    for (uint32_t k = 0; k < 3; k++) {
        assert_int_equal(buffers[k].address % 256, 0);
        assert_int_not_equal(buffers[k].address >> 56, 0);
        if (k) {
            assert_true(buffers[k].address - buffers[k - 1].address >
                        buffers[k - 1].size + (UINT64_C(1) << 32));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indices),
        cmocka_unit_test(rotation),
        cmocka_unit_test(trip_counts),
        cmocka_unit_test(branches),
        cmocka_unit_test(collatz),
        cmocka_unit_test(uniform_values),
        cmocka_unit_test(random_programs),
        cmocka_unit_test(shuffles),
        cmocka_unit_test(ballots),
        cmocka_unit_test(vector_accesses),
        cmocka_unit_test(masked_stores),
        cmocka_unit_test(sectors),
        cmocka_unit_test(global_traps),
        cmocka_unit_test(trap_names_the_thread),
        cmocka_unit_test(unwritten_global),
        cmocka_unit_test(bank_conflicts),
        cmocka_unit_test(merged_loads),
        cmocka_unit_test(random_conflicts),
        cmocka_unit_test(shared_traps),
        cmocka_unit_test(shared_addresses_wrap),
        cmocka_unit_test(unwritten_shared),
        cmocka_unit_test(races),
        cmocka_unit_test(race_of_one_instruction),
        cmocka_unit_test(race_around_a_loop),
        cmocka_unit_test(divergence),
        cmocka_unit_test(agreement),
        cmocka_unit_test(assertions),
        cmocka_unit_test(endless_loops),
        cmocka_unit_test(refused_launches),
        cmocka_unit_test(unsupported),
        cmocka_unit_test(too_many_values),
        cmocka_unit_test(trap_names_the_rank),
        cmocka_unit_test(empty_grid),
        cmocka_unit_test(determinism),
        cmocka_unit_test(counted_instructions),
        cmocka_unit_test(counter_texts),
        cmocka_unit_test(placing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
