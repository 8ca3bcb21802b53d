/* Integer divisions by zero on the simulator: what may be divided by zero without harm, and what
 * must be reported, with both places. Line 8 divides, line 9 uses the result. */

#include "support/sim_kernels.h"
#include "support/test.h"

enum { THREADS = 64, DIVIDES = 8, USES = 9, ZERO = 6 };

/* Buffer 0 is written, buffer 1 holds 0, 1, 2, …, buffer 2 these numbers exclusive-or 6: the
 * divisors, of which that of thread 6 is zero. */
typedef struct bench {
    rig r;
    uint32_t out[THREADS], numbers[THREADS], divisors[THREADS];
    lilac_simt_value number, divisor, quotient, divides; /* divides: the divisor is not zero */
} bench;

static void bench_init(bench *s) {
    memset(s, 0, sizeof *s);
    rig_init(&s->r, THREADS / 32, 3, 4 * THREADS);
    for (uint32_t t = 0; t < THREADS; t++) {
        s->numbers[t] = t;
        s->divisors[t] = t ^ ZERO;
    }
    give(&s->r, 0, "out", s->out, sizeof s->out);
    give(&s->r, 1, "numbers", s->numbers, sizeof s->numbers);
    give(&s->r, 2, "divisors", s->divisors, sizeof s->divisors);
    s->number =
        load(&s->r, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_I32, element(&s->r, 1, thread(&s->r), 4));
    s->divisor =
        load(&s->r, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_I32, element(&s->r, 2, thread(&s->r), 4));
    s->divides = lilac_simt_compare_values(&s->r.b, LILAC_SIMT_NE, s->divisor, word(&s->r, 0));
    at_line(&s->r, DIVIDES);
    s->quotient = op2(&s->r, LILAC_SIMT_OP_DIV_S, s->number, s->divisor);
    at_line(&s->r, USES);
}

static void store_in(bench *s, lilac_simt_opcode code, lilac_simt_value value,
                     lilac_simt_value address, lilac_simt_value predicate) {
    lilac_simt_store(&s->r.b, code, 1, &value, address, 0, predicate, NULL);
}

static void keep(bench *s, lilac_simt_value value) {
    store_in(s, LILAC_SIMT_OP_ST_GLOBAL, value, element(&s->r, 0, thread(&s->r), 4), 0);
}

static lilac_simt_value op1(bench *s, lilac_simt_opcode code, lilac_simt_type type,
                            lilac_simt_value a) {
    return lilac_simt_op1(&s->r.b, code, type, a);
}

static lilac_simt_value compare(bench *s, lilac_simt_compare kind, lilac_simt_value a,
                                lilac_simt_value c) {
    return lilac_simt_compare_values(&s->r.b, kind, a, c);
}

static lilac_simt_value choose(bench *s, lilac_simt_value condition, lilac_simt_value a,
                               lilac_simt_value c) {
    return lilac_simt_op3(&s->r.b, LILAC_SIMT_OP_SELECT, LILAC_SIMT_I32, condition, a, c);
}

static lilac_simt_value exchange(bench *s, lilac_simt_opcode code, uint8_t detail,
                                 lilac_simt_type type, lilac_simt_value value,
                                 lilac_simt_value lane) {
    lilac_simt_instruction like = {.code = (uint16_t)code, .detail = detail};
    lilac_simt_value operands[] = {value, lane};
    return lilac_simt_build(&s->r.b, &like, lane ? 2 : 1, operands, 1, &type);
}

static uint32_t line_of(bench *s, const lilac_diagnostic *d) {
    lilac_name file;
    uint32_t line = 0, column;
    assert_true(lilac_location_file(s->r.context, d->location, &file, &line, &column));
    return line;
}

/* One error, at the division, in thread 6; a note at the use; `text` in one of them. */
static void expect_trap(bench *s, const char *text) {
    const lilac_diagnostic *d = NULL;
    if (rig_run(&s->r)) {
        fail_msg("nothing reported: %s", text);
    }
    if (reported(&s->r, "division-by-zero", &d) != 1) {
        fail_msg("%s: %s", text, lilac_diagnostics(s->r.context)->message);
    }
    assert_int_equal(lilac_error_count(s->r.context), 1);
    assert_int_equal(line_of(s, d), DIVIDES);
    if (!strstr(d->message, text) || !strstr(d->message, "thread 6: div_s by zero")) {
        fail_msg("'%s' lacks '%s'", d->message, text);
    }
    assert_non_null(d->notes);
    assert_int_equal(d->notes->severity, LILAC_NOTE);
    assert_int_equal(line_of(s, d->notes), USES);
    rig_clear(&s->r);
}

/* Nothing is reported and every thread but number 6 stored number / divisor. */
static void expect_quotients(bench *s) {
    if (!rig_run(&s->r)) {
        fail_msg("%s", lilac_diagnostics(s->r.context)->message);
    }
    assert_null(lilac_diagnostics(s->r.context));
    for (uint32_t t = 0; t < THREADS; t++) {
        assert_int_equal(s->out[t], t == ZERO ? 0 : s->numbers[t] / s->divisors[t]);
    }
    rig_clear(&s->r);
}

/* ---- without harm -------------------------------------------------------------------------- */

static void unused(void **state) {
    bench s;
    (void)state;
    bench_init(&s);
    store_in(&s, LILAC_SIMT_OP_ST_GLOBAL, s.quotient, element(&s.r, 0, thread(&s.r), 4), s.divides);
    expect_quotients(&s);
    for (uint32_t code = LILAC_SIMT_OP_DIV_S; code <= LILAC_SIMT_OP_REM_U; code++) {
        for (lilac_simt_type type = LILAC_SIMT_I1; type <= LILAC_SIMT_I64; type++) {
            bench_init(&s);
            lilac_simt_value zero = op2(&s.r, LILAC_SIMT_OP_XOR, s.number, s.number);
            lilac_simt_opcode to = type > LILAC_SIMT_I32   ? LILAC_SIMT_OP_ZEXT
                                   : type < LILAC_SIMT_I32 ? LILAC_SIMT_OP_TRUNC
                                                           : LILAC_SIMT_OP_BITCAST;
            zero = load(&s.r, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_I32, element(&s.r, 1, zero, 4));
            lilac_simt_op2(&s.r.b, (lilac_simt_opcode)code, type, op1(&s, to, type, s.number),
                           op1(&s, to, type, zero));
            assert_true(rig_run(&s.r));
            rig_clear(&s.r);
        }
    }
}

static void selected_away(void **state) {
    bench s;
    (void)state;
    bench_init(&s);
    keep(&s, choose(&s, s.divides, s.quotient, word(&s.r, 0)));
    expect_quotients(&s);
    /* the mask as bits: all of them or none */
    bench_init(&s);
    keep(&s, op2(&s.r, LILAC_SIMT_OP_AND, s.quotient,
                 op1(&s, LILAC_SIMT_OP_SEXT, LILAC_SIMT_I32, s.divides)));
    expect_quotients(&s);
    bench_init(&s);
    keep(&s, op2(&s.r, LILAC_SIMT_OP_MUL, s.quotient,
                 op1(&s, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I32, s.divides)));
    expect_quotients(&s);
}

/* A predicate `divides and …` or `not divides or …` does not depend on the quotient. */
static void masks(void **state) {
    bench s;
    (void)state;
    bench_init(&s);
    lilac_simt_value any = compare(&s, LILAC_SIMT_LT, s.quotient, word(&s.r, 1000));
    lilac_simt_value both =
        lilac_simt_op2(&s.r.b, LILAC_SIMT_OP_AND, LILAC_SIMT_I1, any, s.divides);
    store_in(&s, LILAC_SIMT_OP_ST_GLOBAL, s.quotient, element(&s.r, 0, s.quotient, 0), both);
    assert_true(rig_run(&s.r));
    rig_clear(&s.r);

    bench_init(&s);
    any = compare(&s, LILAC_SIMT_LT, s.quotient, word(&s.r, 1000));
    lilac_simt_instruction check = {.code = LILAC_SIMT_OP_ASSERT, .text = "small"};
    lilac_simt_value either =
        lilac_simt_op2(&s.r.b, LILAC_SIMT_OP_OR, LILAC_SIMT_I1, any,
                       lilac_simt_op2(&s.r.b, LILAC_SIMT_OP_XOR, LILAC_SIMT_I1, s.divides,
                                      lilac_simt_constant(&s.r.b, LILAC_SIMT_I1, 1)));
    lilac_simt_build(&s.r.b, &check, 1, &either, 0, NULL);
    assert_true(rig_run(&s.r));
    rig_clear(&s.r);
}

/* Poison that a barrier's other side, a lane or a loop's iteration does not look at. */
static void passed_by(void **state) {
    lilac_simt_value counter;
    bench s;
    (void)state;
    bench_init(&s); /* stored in shared memory, and only written over there */
    lilac_simt_value place = op2(&s.r, LILAC_SIMT_OP_MUL, thread(&s.r), word(&s.r, 4));
    store_in(&s, LILAC_SIMT_OP_ST_SHARED, s.quotient, place, 0);
    store_in(&s, LILAC_SIMT_OP_ST_SHARED, choose(&s, s.divides, s.quotient, word(&s.r, 0)), place,
             0);
    keep(&s, load(&s.r, LILAC_SIMT_OP_LD_SHARED, LILAC_SIMT_I32, place));
    expect_quotients(&s);

    bench_init(&s); /* lane 6 takes what lane 0 has: 0 / 6 */
    keep(&s, exchange(&s, LILAC_SIMT_OP_SHUFFLE, LILAC_SIMT_SHFL_IDX, LILAC_SIMT_I32, s.quotient,
                      choose(&s, s.divides, leaf(&s.r, LILAC_SIMT_OP_LANE, 0), word(&s.r, 0))));
    expect_quotients(&s);

    bench_init(&s); /* carried by a loop and replaced in its second iteration */
    lilac_simt_instruction *loop = lilac_simt_loop_begin(&s.r.b, word(&s.r, 0), word(&s.r, 2),
                                                         word(&s.r, 1), 1, &s.quotient, &counter);
    lilac_simt_value next = choose(&s, s.divides, counter + 1, word(&s.r, 0));
    keep(&s, lilac_simt_loop_end(&s.r.b, loop, &next));
    expect_quotients(&s);
}

/* The narrow half of a word that is poison does not spoil the other half. */
static void halves(void **state) {
    bench s;
    (void)state;
    bench_init(&s);
    lilac_simt_value parts[2] = {op1(&s, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I16, s.quotient),
                                 op1(&s, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I16, s.number)};
    lilac_simt_value whole = lilac_simt_pack(&s.r.b, LILAC_SIMT_I32, 2, parts), out[2];
    whole = exchange(&s, LILAC_SIMT_OP_SHUFFLE, LILAC_SIMT_SHFL_XOR, LILAC_SIMT_I32, whole,
                     word(&s.r, 1));
    lilac_simt_unpack(&s.r.b, LILAC_SIMT_I16, whole, 2, out);
    keep(&s, op1(&s, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I32, out[1]));
    assert_true(rig_run(&s.r));
    for (uint32_t t = 0; t < THREADS; t++) {
        assert_int_equal(s.out[t], t ^ 1);
    }
    rig_clear(&s.r);

    bench_init(&s);
    parts[0] = op1(&s, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I16, s.quotient);
    parts[1] = op1(&s, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I16, s.number);
    whole = lilac_simt_pack(&s.r.b, LILAC_SIMT_I32, 2, parts);
    whole = exchange(&s, LILAC_SIMT_OP_SHUFFLE, LILAC_SIMT_SHFL_XOR, LILAC_SIMT_I32, whole,
                     word(&s.r, 1));
    lilac_simt_unpack(&s.r.b, LILAC_SIMT_I16, whole, 2, out);
    keep(&s, op1(&s, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I32, out[0]));
    expect_trap(&s, "stored value of st.global in thread 7");
}

/* Nothing of one block's poison is left for the next one on the same host thread. */
static void next_block(void **state) {
    bench s;
    (void)state;
    bench_init(&s);
    lilac_simt_value first =
        compare(&s, LILAC_SIMT_EQ, leaf(&s.r, LILAC_SIMT_OP_BLOCK, 0), word(&s.r, 0));
    lilac_simt_value divisor = choose(&s, first, s.divisor, word(&s.r, 1)), counter;
    lilac_simt_value quotient = op2(&s.r, LILAC_SIMT_OP_DIV_U, s.number, divisor);
    lilac_simt_value stores = lilac_simt_op2(&s.r.b, LILAC_SIMT_OP_XOR, LILAC_SIMT_I1, first,
                                             lilac_simt_constant(&s.r.b, LILAC_SIMT_I1, 1));
    lilac_simt_instruction *loop = lilac_simt_loop_begin(&s.r.b, word(&s.r, 0), word(&s.r, 1),
                                                         word(&s.r, 1), 1, &quotient, &counter);
    lilac_simt_value next = op2(&s.r, LILAC_SIMT_OP_ADD, counter + 1, word(&s.r, 1));
    lilac_simt_value last = lilac_simt_loop_end(&s.r.b, loop, &next);
    store_in(&s, LILAC_SIMT_OP_ST_GLOBAL, last, element(&s.r, 0, thread(&s.r), 4), stores);
    s.r.launch.grid[0] = 2;
    assert_true(rig_run(&s.r));
    for (uint32_t t = 0; t < THREADS; t++) {
        assert_int_equal(s.out[t], t + 1);
    }
    rig_clear(&s.r);
}

/* ---- to be reported ------------------------------------------------------------------------ */

static void every_division(void **state) {
    static const char *const names[] = {"div_s", "div_u", "rem_s", "rem_u"};
    (void)state;
    for (uint32_t code = LILAC_SIMT_OP_DIV_S; code <= LILAC_SIMT_OP_REM_U; code++) {
        for (lilac_simt_type type = LILAC_SIMT_I8; type <= LILAC_SIMT_I64; type++) {
            const lilac_diagnostic *d = NULL;
            bench s;
            bench_init(&s);
            lilac_simt_opcode to = type > LILAC_SIMT_I32   ? LILAC_SIMT_OP_ZEXT
                                   : type < LILAC_SIMT_I32 ? LILAC_SIMT_OP_TRUNC
                                                           : LILAC_SIMT_OP_BITCAST;
            at_line(&s.r, DIVIDES);
            lilac_simt_value q =
                lilac_simt_op2(&s.r.b, (lilac_simt_opcode)code, type, op1(&s, to, type, s.number),
                               op1(&s, to, type, s.divisor));
            at_line(&s.r, USES);
            store_in(&s, LILAC_SIMT_OP_ST_GLOBAL, q, element(&s.r, 0, word(&s.r, 0), 4), 0);
            assert_false(rig_run(&s.r));
            assert_int_equal(reported(&s.r, "division-by-zero", &d), 1);
            assert_int_equal(line_of(&s, d), DIVIDES);
            assert_non_null(strstr(d->message, names[code - LILAC_SIMT_OP_DIV_S]));
            assert_non_null(strstr(d->message, "the stored value of st.global in thread 6"));
            rig_clear(&s.r);
        }
    }
}

static void memory(void **state) {
    bench s;
    (void)state;
    bench_init(&s);
    keep(&s, op2(&s.r, LILAC_SIMT_OP_ADD, s.quotient, word(&s.r, 1)));
    expect_trap(&s, "the stored value of st.global in thread 6");
    bench_init(&s);
    keep(&s, load(&s.r, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_I32, element(&s.r, 1, s.quotient, 4)));
    expect_trap(&s, "the address of ld.global in thread 6");
    bench_init(&s);
    store_in(&s, LILAC_SIMT_OP_ST_GLOBAL, s.number, element(&s.r, 0, s.quotient, 4), 0);
    expect_trap(&s, "the address of st.global in thread 6");
    bench_init(&s);
    store_in(&s, LILAC_SIMT_OP_ST_GLOBAL, s.number, element(&s.r, 0, thread(&s.r), 4),
             compare(&s, LILAC_SIMT_EQ, s.quotient, word(&s.r, 77)));
    expect_trap(&s, "the predicate of st.global in thread 6");
    bench_init(&s);
    lilac_simt_instruction add = {.code = LILAC_SIMT_OP_ATOMIC_GLOBAL,
                                  .detail = LILAC_SIMT_ATOMIC_ADD};
    lilac_simt_value operands[] = {element(&s.r, 0, word(&s.r, 0), 4), s.quotient};
    lilac_simt_build(&s.r.b, &add, 2, operands, 0, NULL);
    expect_trap(&s, "the operand of atomic.global in thread 6");
    bench_init(&s);
    store_in(&s, LILAC_SIMT_OP_ST_SHARED, s.number,
             op2(&s.r, LILAC_SIMT_OP_AND, s.quotient, word(&s.r, 252)), 0);
    expect_trap(&s, "the address of st.shared in thread 6");
}

static void control(void **state) {
    lilac_simt_value first;
    bench s;
    (void)state;
    for (uint32_t k = 0; k < 2; k++) { /* of one lane, and of values that all threads share */
        bench_init(&s);
        lilac_simt_value bound = exchange(&s, LILAC_SIMT_OP_SHUFFLE, LILAC_SIMT_SHFL_IDX,
                                          LILAC_SIMT_I32, s.quotient, word(&s.r, 6));
        lilac_simt_mark_uniform(s.r.kernel, bound);
        if (k == 0) {
            lilac_simt_loop_end(
                &s.r.b,
                lilac_simt_loop_begin(&s.r.b, word(&s.r, 0), bound, word(&s.r, 1), 0, NULL, &first),
                NULL);
            expect_trap(&s, "the upper bound of loop in thread 0");
            continue;
        }
        lilac_simt_instruction *branch =
            lilac_simt_if_begin(&s.r.b, compare(&s, LILAC_SIMT_GT, bound, word(&s.r, 0)), 0, NULL);
        lilac_simt_if_else(&s.r.b, branch, NULL);
        lilac_simt_if_end(&s.r.b, branch, NULL);
        expect_trap(&s, "the condition of if in thread 0");
    }
    bench_init(&s);
    lilac_simt_instruction check = {.code = LILAC_SIMT_OP_ASSERT, .text = "small"};
    lilac_simt_value small = compare(&s, LILAC_SIMT_NE, s.quotient, word(&s.r, 12345));
    lilac_simt_build(&s.r.b, &check, 1, &small, 0, NULL);
    expect_trap(&s, "the condition of assert in thread 6");
}

/* Through lanes, reductions, votes and shared memory to a store. */
static void travelled(void **state) {
    bench s;
    (void)state;
    bench_init(&s); /* a butterfly of sums: thread 0 stores */
    lilac_simt_value sum = s.quotient;
    for (uint32_t distance = 16; distance; distance /= 2) {
        sum = op2(&s.r, LILAC_SIMT_OP_ADD, sum,
                  exchange(&s, LILAC_SIMT_OP_SHUFFLE, LILAC_SIMT_SHFL_XOR, LILAC_SIMT_I32, sum,
                           word(&s.r, distance)));
    }
    keep(&s, sum);
    expect_trap(&s, "st.global in thread 0");
    bench_init(&s);
    keep(&s,
         exchange(&s, LILAC_SIMT_OP_REDUX, LILAC_SIMT_ATOMIC_MAX_S, LILAC_SIMT_I32, s.quotient, 0));
    expect_trap(&s, "st.global in thread 0");
    bench_init(&s);
    lilac_simt_value odd = op1(&s, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I1, s.quotient);
    keep(&s, exchange(&s, LILAC_SIMT_OP_BALLOT, 0, LILAC_SIMT_I32, odd, 0));
    expect_trap(&s, "st.global in thread 0");
    bench_init(&s); /* across warps */
    store_in(&s, LILAC_SIMT_OP_ST_SHARED, s.quotient,
             op2(&s.r, LILAC_SIMT_OP_MUL, thread(&s.r), word(&s.r, 4)), 0);
    effect(&s.r, LILAC_SIMT_OP_BARRIER);
    lilac_simt_value other = op2(&s.r, LILAC_SIMT_OP_XOR, thread(&s.r), word(&s.r, 32));
    keep(&s, load(&s.r, LILAC_SIMT_OP_LD_SHARED, LILAC_SIMT_I32,
                  op2(&s.r, LILAC_SIMT_OP_MUL, other, word(&s.r, 4))));
    expect_trap(&s, "st.global in thread 38");
    bench_init(&s); /* a shared address is a value like others */
    store_in(&s, LILAC_SIMT_OP_ST_SHARED, s.number,
             op2(&s.r, LILAC_SIMT_OP_MUL, thread(&s.r), word(&s.r, 4)), 0);
    effect(&s.r, LILAC_SIMT_OP_BARRIER);
    keep(&s, load(&s.r, LILAC_SIMT_OP_LD_SHARED, LILAC_SIMT_I32,
                  op2(&s.r, LILAC_SIMT_OP_AND, s.quotient, word(&s.r, 252))));
    expect_trap(&s, "the stored value of st.global in thread 6");
    bench_init(&s); /* unless it is outside */
    lilac_simt_value far = op2(&s.r, LILAC_SIMT_OP_MUL, s.quotient, word(&s.r, 4));
    far = load(&s.r, LILAC_SIMT_OP_LD_SHARED, LILAC_SIMT_I32, far);
    store_in(&s, LILAC_SIMT_OP_ST_GLOBAL, far, element(&s.r, 0, thread(&s.r), 4), s.divides);
    expect_trap(&s, "the address of ld.shared in thread 6");
}

/* A shared atomic keeps poison in memory, a matrix carries it. */
static void kept_in_memory(void **state) {
    bench s;
    (void)state;
    bench_init(&s);
    lilac_simt_instruction add = {.code = LILAC_SIMT_OP_ATOMIC_SHARED,
                                  .detail = LILAC_SIMT_ATOMIC_ADD};
    lilac_simt_value place = op2(&s.r, LILAC_SIMT_OP_MUL, thread(&s.r), word(&s.r, 4));
    store_in(&s, LILAC_SIMT_OP_ST_SHARED, s.number, place, 0);
    effect(&s.r, LILAC_SIMT_OP_BARRIER);
    lilac_simt_value operands[] = {place, s.quotient};
    lilac_simt_build(&s.r.b, &add, 2, operands, 0, NULL);
    effect(&s.r, LILAC_SIMT_OP_BARRIER);
    keep(&s, load(&s.r, LILAC_SIMT_OP_LD_SHARED, LILAC_SIMT_I32, place));
    expect_trap(&s, "the stored value of st.global in thread 6");

    bench_init(
        &s); /* thread 6 holds columns 4 and 5 of row 1: transposed, rows of threads 16, 20 */
    lilac_simt_value row =
        op2(&s.r, LILAC_SIMT_OP_MUL, op2(&s.r, LILAC_SIMT_OP_AND, thread(&s.r), word(&s.r, 7)),
            word(&s.r, 16));
    lilac_simt_value first =
        compare(&s, LILAC_SIMT_EQ, leaf(&s.r, LILAC_SIMT_OP_WARP, 0), word(&s.r, 0));
    lilac_simt_store_matrix(&s.r.b, false, 1, &s.quotient, row, 0, first, NULL);
    effect(&s.r, LILAC_SIMT_OP_BARRIER);
    keep(&s, lilac_simt_load_matrix(&s.r.b, true, LILAC_SIMT_I32, 1, row, 0, NULL));
    expect_trap(&s, "the stored value of st.global in thread 16");
}

/* A quotient that does not fit wraps, and is no division by zero. */
static void least_by_minus_one(void **state) {
    bench s;
    (void)state;
    bench_init(&s);
    for (uint32_t t = 0; t < THREADS; t++) {
        s.numbers[t] = UINT32_C(1) << 31;
        s.divisors[t] = UINT32_MAX;
    }
    keep(&s, s.quotient);
    assert_true(rig_run(&s.r));
    assert_int_equal(s.out[5], UINT32_C(1) << 31);
    rig_clear(&s.r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unused),         cmocka_unit_test(selected_away),
        cmocka_unit_test(masks),          cmocka_unit_test(passed_by),
        cmocka_unit_test(halves),         cmocka_unit_test(next_block),
        cmocka_unit_test(every_division), cmocka_unit_test(memory),
        cmocka_unit_test(control),        cmocka_unit_test(travelled),
        cmocka_unit_test(kept_in_memory), cmocka_unit_test(least_by_minus_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
