/* Races in global memory on the simulator: which accesses race, what orders them, what is reported.
 * tests/sim/global_races.c has the definition and random programs. */

#include "support/sim_kernels.h"
#include "support/test.h"

#define I8  LILAC_SIMT_I8
#define I32 LILAC_SIMT_I32
#define I64 LILAC_SIMT_I64

enum { WORDS = 4096, THREADS = 64 };

static uint32_t words[WORDS], flags[4];

/* Two warps; parameter 0: words, 1: flags. */
static void begin(rig *r) {
    memset(words, 0, sizeof words);
    memset(flags, 0, sizeof flags);
    rig_init(r, THREADS / 32, 2, 1024);
    give(r, 0, "words", words, sizeof words);
    give(r, 1, "flags", flags, sizeof flags);
}

static lilac_simt_value block_number(rig *r) {
    return leaf(r, LILAC_SIMT_OP_BLOCK, 0);
}

static lilac_simt_value equals(rig *r, lilac_simt_value a, uint32_t number) {
    return lilac_simt_compare_values(&r->b, LILAC_SIMT_EQ, a, word(r, number));
}

static lilac_simt_value both(rig *r, lilac_simt_value a, lilac_simt_value c) {
    return lilac_simt_op2(&r->b, LILAC_SIMT_OP_AND, LILAC_SIMT_I1, a, c);
}

/* Thread `number` of block `in`. */
static lilac_simt_value is_thread(rig *r, uint32_t in, uint32_t number) {
    return both(r, equals(r, block_number(r), in), equals(r, thread(r), number));
}

static void store_where(rig *r, lilac_simt_value value, lilac_simt_value address,
                        lilac_simt_value where) {
    lilac_simt_store(&r->b, LILAC_SIMT_OP_ST_GLOBAL, 1, &value, address, 0, where, NULL);
}

static lilac_simt_value load_where(rig *r, lilac_simt_value address, lilac_simt_value where,
                                   bool is_volatile) {
    lilac_simt_instruction like = {.flags = is_volatile ? LILAC_SIMT_VOLATILE : 0};
    return lilac_simt_load(&r->b, LILAC_SIMT_OP_LD_GLOBAL, I32, 1, address, 0, where, NULL, &like);
}

static lilac_simt_value add_where(rig *r, lilac_simt_value address, lilac_simt_value where,
                                  lilac_simt_order order, lilac_simt_scope scope) {
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_ATOMIC_GLOBAL,
                                   .detail = LILAC_SIMT_ATOMIC_ADD,
                                   .order = (uint8_t)order,
                                   .scope = (uint8_t)scope};
    lilac_simt_value operands[] = {address, where, word(r, 1)};
    lilac_simt_type type = I32;
    return lilac_simt_build(&r->b, &like, 3, operands, 1, &type);
}

static lilac_simt_value place(rig *r, uint32_t index) {
    return element(r, 0, word(r, index), 4);
}

static lilac_simt_value flag(rig *r) {
    return element(r, 1, word(r, 0), 4);
}

static void expect_races(rig *r, uint32_t grid, bool wanted) {
    r->launch.grid[0] = grid;
    assert_true(rig_run(r));
    if ((r->counters.races != 0) != wanted || (reported(r, "global-race", NULL) != 0) != wanted) {
        fail_msg("%llu races", (unsigned long long)r->counters.races);
    }
    rig_clear(r);
}

/* ---- what is reported ---------------------------------------------------------------------- */

static uint32_t line_of(const rig *r, const lilac_diagnostic *d) {
    lilac_name file;
    uint32_t line = 0, column;
    assert_true(lilac_location_file(r->context, d->location, &file, &line, &column));
    return line;
}

static void both_places(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads < 4; threads++) {
        const lilac_diagnostic *d = NULL;
        rig r;
        begin(&r);
        at_line(&r, 5);
        store_where(&r, word(&r, 7), place(&r, 9), is_thread(&r, 0, 3));
        at_line(&r, 6);
        load_where(&r, place(&r, 9), is_thread(&r, 1, 40), false);
        r.launch.grid[0] = 2;
        r.launch.threads = threads;
        assert_true(rig_run(&r));
        assert_int_equal(r.counters.races, 1);
        assert_int_equal(reported(&r, "global-race", &d), 1);
        assert_int_equal(d->severity, LILAC_WARNING);
        assert_string_equal(
            d->message, "block (1, 0, 0), thread 40: ld.global reads element 9 of 'words', which "
                        "st.global in block (0, 0, 0), thread 3 writes; nothing orders the two");
        assert_int_equal(line_of(&r, d), 6);
        assert_int_equal(line_of(&r, d->notes), 5);
        assert_string_equal(d->notes->message, "st.global writes it here");
        rig_clear(&r);
    }
}

/* Several instructions of one pair of lines are reported once. */
static void one_a_pair_of_lines(void **state) {
    rig r;
    (void)state;
    begin(&r);
    at_line(&r, 5);
    for (uint32_t k = 0; k < 4; k++) {
        store_where(&r, block_number(&r), place(&r, k), equals(&r, thread(&r), 0));
    }
    r.launch.grid[0] = 3;
    assert_true(rig_run(&r));
    assert_int_equal(r.counters.races, 8);
    assert_int_equal(reported(&r, "global-race", NULL), 1);
    rig_clear(&r);
}

/* ---- values -------------------------------------------------------------------------------- */

static void equal_values(void **state) {
    rig r;
    (void)state;
    begin(&r); /* all threads of all blocks write one value, and read it */
    store_where(&r, word(&r, 7), place(&r, 0), 0);
    store(&r, LILAC_SIMT_OP_ST_GLOBAL, load_where(&r, place(&r, 0), 0, false),
          element(&r, 0, op2(&r, LILAC_SIMT_OP_ADD, thread(&r), word(&r, 64)), 4));
    expect_races(&r, 300, false);
    begin(&r); /* one block does not write it */
    store_where(&r, word(&r, 7), place(&r, 0),
                lilac_simt_compare_values(&r.b, LILAC_SIMT_NE, block_number(&r), word(&r, 3)));
    load_where(&r, place(&r, 0), equals(&r, block_number(&r), 3), false);
    expect_races(&r, 5, true);
    begin(&r); /* block 0 wrote another value before */
    store_where(&r, word(&r, 6), place(&r, 0), is_thread(&r, 0, 0));
    store_where(&r, word(&r, 7), place(&r, 0), equals(&r, thread(&r), 0));
    expect_races(&r, 2, true);
    begin(&r); /* one thread may write several */
    store_where(&r, word(&r, 6), place(&r, 0), is_thread(&r, 0, 0));
    store_where(&r, word(&r, 7), place(&r, 0), is_thread(&r, 0, 0));
    expect_races(&r, 2, false);
    begin(&r); /* memory held the value before: that orders nothing */
    store_where(&r, word(&r, 0), place(&r, 0), is_thread(&r, 0, 0));
    load_where(&r, place(&r, 0), is_thread(&r, 1, 0), false);
    expect_races(&r, 2, true);
}

static void threads_of_a_block(void **state) {
    rig r;
    (void)state;
    begin(&r); /* one instruction, one word, several values: which one stays? */
    store_where(&r, thread(&r), place(&r, 0),
                lilac_simt_compare_values(&r.b, LILAC_SIMT_ULT, thread(&r), word(&r, 2)));
    expect_races(&r, 1, true);
    for (uint32_t barrier = 0; barrier < 2; barrier++) {
        begin(&r); /* the other warp's elements */
        store(&r, LILAC_SIMT_OP_ST_GLOBAL, thread(&r), element(&r, 0, thread(&r), 4));
        if (barrier) {
            effect(&r, LILAC_SIMT_OP_BARRIER);
        }
        load_where(&r, element(&r, 0, op2(&r, LILAC_SIMT_OP_XOR, thread(&r), word(&r, 32)), 4), 0,
                   false);
        expect_races(&r, 1, !barrier);
        begin(&r);
        load_where(&r, element(&r, 0, op2(&r, LILAC_SIMT_OP_XOR, thread(&r), word(&r, 32)), 4), 0,
                   false);
        if (barrier) {
            effect(&r, LILAC_SIMT_OP_BARRIER);
        }
        store(&r, LILAC_SIMT_OP_ST_GLOBAL, thread(&r), element(&r, 0, thread(&r), 4));
        expect_races(&r, 1, !barrier);
    }
    begin(&r); /* the threads of a warp run in step */
    store(&r, LILAC_SIMT_OP_ST_GLOBAL, thread(&r), element(&r, 0, thread(&r), 4));
    load_where(&r, element(&r, 0, op2(&r, LILAC_SIMT_OP_XOR, thread(&r), word(&r, 31)), 4), 0,
               false);
    expect_races(&r, 1, false);
    begin(&r); /* copies of an element, loaded by all; one thread stores it */
    lilac_simt_value old = load_where(&r, place(&r, 0), 0, false);
    store_where(&r, op2(&r, LILAC_SIMT_OP_ADD, old, word(&r, 1)), place(&r, 0),
                equals(&r, thread(&r), 0));
    expect_races(&r, 1, false);
}

/* ---- places -------------------------------------------------------------------------------- */

static void parts_of_words(void **state) {
    rig r;
    (void)state;
    for (uint32_t kind = 0; kind < 3; kind++) {
        begin(&r);
        lilac_simt_value byte =
            lilac_simt_op1(&r.b, LILAC_SIMT_OP_TRUNC, I8,
                           op2(&r, LILAC_SIMT_OP_ADD, block_number(&r), word(&r, 1)));
        lilac_simt_value first = equals(&r, thread(&r), 0);
        lilac_simt_value parts[4] = {word(&r, 1), word(&r, 2), word(&r, 3), word(&r, 4)};
        if (kind == 1) { /* a vector, then a byte of it */
            lilac_simt_store(&r.b, LILAC_SIMT_OP_ST_GLOBAL, 4, parts, place(&r, 0), 0,
                             is_thread(&r, 0, 0), NULL);
        }
        if (kind == 2) { /* the same, of values that agree */
            store_where(&r, word(&r, 0x02020202), place(&r, 0), is_thread(&r, 0, 0));
        }
        lilac_simt_value where = kind ? both(&r, first, equals(&r, block_number(&r), 1)) : first;
        lilac_simt_store(&r.b, LILAC_SIMT_OP_ST_GLOBAL, 1, &byte,
                         element(&r, 0, block_number(&r), 1), 0, where, NULL);
        expect_races(&r, 2, kind == 1);
    }
}

/* Addresses that come out of memory. */
static void loaded_pointers(void **state) {
    rig r;
    (void)state;
    begin(&r);
    uint64_t pointers[2];
    give(&r, 1, "pointers", pointers, sizeof pointers);
    lilac_sim_place(r.buffers, 2);
    pointers[0] = pointers[1] = r.buffers[0].address;
    lilac_simt_value pointer =
        load(&r, LILAC_SIMT_OP_LD_GLOBAL, I64, element(&r, 1, block_number(&r), 8));
    store_where(&r, block_number(&r), pointer, equals(&r, thread(&r), 0));
    expect_races(&r, 2, true);
}

/* ---- order --------------------------------------------------------------------------------- */

static void atomics(void **state) {
    rig r;
    (void)state;
    begin(&r);
    add_where(&r, place(&r, 0), equals(&r, thread(&r), 0), LILAC_SIMT_RELAXED,
              LILAC_SIMT_SCOPE_DEVICE);
    expect_races(&r, 4, false);
    begin(&r); /* of the block only */
    add_where(&r, place(&r, 0), equals(&r, thread(&r), 0), LILAC_SIMT_RELAXED,
              LILAC_SIMT_SCOPE_BLOCK);
    expect_races(&r, 2, true);
    begin(&r);
    add_where(&r, place(&r, 0), equals(&r, block_number(&r), 0), LILAC_SIMT_RELAXED,
              LILAC_SIMT_SCOPE_BLOCK);
    expect_races(&r, 1, false);
    for (uint32_t kind = 0; kind < 2; kind++) { /* with plain accesses */
        begin(&r);
        add_where(&r, place(&r, 0), is_thread(&r, 0, 0), LILAC_SIMT_RELAXED,
                  LILAC_SIMT_SCOPE_DEVICE);
        if (kind) {
            load_where(&r, place(&r, 0), is_thread(&r, 1, 0), false);
        } else {
            store_where(&r, word(&r, 1), place(&r, 0), is_thread(&r, 1, 0));
        }
        expect_races(&r, 2, true);
    }
}

/* A compare-and-swap that fails reads, and releases nothing. */
static void failed_swaps(void **state) {
    (void)state;
    for (uint32_t fails = 0; fails < 2; fails++) {
        rig r;
        begin(&r);
        lilac_simt_instruction like = {.code = LILAC_SIMT_OP_CAS_GLOBAL,
                                       .order = LILAC_SIMT_ACQUIRE_RELEASE};
        lilac_simt_value operands[] = {place(&r, 0), is_thread(&r, 0, 0), word(&r, fails ? 9 : 0),
                                       word(&r, 5)};
        lilac_simt_type type = I32;
        lilac_simt_build(&r.b, &like, 4, operands, 1, &type);
        load_where(&r, place(&r, 0), is_thread(&r, 1, 0), false);
        expect_races(&r, 2, !fails);
    }
}

/* Block 0 stores data and raises a flag; block 1, which runs later on one host thread, reads the
 * flag and the data. */
static void message(bool barriers, lilac_simt_order release, lilac_simt_order acquire,
                    bool is_volatile, bool wanted) {
    rig r;
    begin(&r);
    lilac_simt_value data = element(&r, 0, thread(&r), 4);
    store_where(&r, thread(&r), data, equals(&r, block_number(&r), 0));
    if (barriers) {
        effect(&r, LILAC_SIMT_OP_BARRIER);
    }
    add_where(&r, flag(&r), is_thread(&r, 0, 0), release, LILAC_SIMT_SCOPE_DEVICE);
    if (is_volatile) {
        load_where(&r, flag(&r), is_thread(&r, 1, 0), true);
    } else {
        add_where(&r, flag(&r), is_thread(&r, 1, 0), acquire, LILAC_SIMT_SCOPE_DEVICE);
    }
    if (barriers) {
        effect(&r, LILAC_SIMT_OP_BARRIER);
    }
    load_where(&r, data, equals(&r, block_number(&r), 1), false);
    expect_races(&r, 2, wanted);
}

static void messages(void **state) {
    (void)state;
    message(true, LILAC_SIMT_RELEASE, LILAC_SIMT_ACQUIRE, false, false);
    message(true, LILAC_SIMT_ACQUIRE_RELEASE, LILAC_SIMT_ACQUIRE_RELEASE, false, false);
    message(true, LILAC_SIMT_RELEASE, LILAC_SIMT_RELAXED, true, false);
    message(false, LILAC_SIMT_RELEASE, LILAC_SIMT_ACQUIRE, false, true);
    message(true, LILAC_SIMT_RELAXED, LILAC_SIMT_ACQUIRE, false, true);
    message(true, LILAC_SIMT_RELEASE, LILAC_SIMT_RELAXED, false, true);
    message(true, LILAC_SIMT_RELAXED, LILAC_SIMT_RELAXED, true, true);
}

/* Many blocks pass a message on, each to the next. */
static void chains(void **state) {
    rig r;
    (void)state;
    begin(&r);
    lilac_simt_value first = equals(&r, thread(&r), 0);
    for (uint32_t k = 0; k < 2; k++) {
        effect(&r, LILAC_SIMT_OP_BARRIER);
        add_where(&r, flag(&r), first, LILAC_SIMT_ACQUIRE_RELEASE, LILAC_SIMT_SCOPE_DEVICE);
        effect(&r, LILAC_SIMT_OP_BARRIER);
        if (k == 0) {
            store(&r, LILAC_SIMT_OP_ST_GLOBAL,
                  op2(&r, LILAC_SIMT_OP_ADD, thread(&r), block_number(&r)),
                  element(&r, 0, op2(&r, LILAC_SIMT_OP_XOR, thread(&r), word(&r, 32)), 4));
        }
    }
    expect_races(&r, 40, false);
}

/* The blocks of a cluster meet at its barrier. */
static void clusters(void **state) {
    (void)state;
    for (uint32_t barrier = 0; barrier < 2; barrier++) {
        rig r;
        begin(&r);
        r.kernel->num_ctas = 2;
        lilac_simt_value rank = leaf(&r, LILAC_SIMT_OP_CTA, 0);
        store_where(&r, thread(&r), place(&r, 0),
                    both(&r, equals(&r, rank, 0), equals(&r, thread(&r), 0)));
        if (barrier) {
            effect(&r, LILAC_SIMT_OP_CLUSTER_BARRIER);
        }
        load_where(&r, place(&r, 0), equals(&r, rank, 1), false);
        expect_races(&r, 1, !barrier);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_places),    cmocka_unit_test(one_a_pair_of_lines),
        cmocka_unit_test(equal_values),   cmocka_unit_test(threads_of_a_block),
        cmocka_unit_test(parts_of_words), cmocka_unit_test(loaded_pointers),
        cmocka_unit_test(atomics),        cmocka_unit_test(failed_swaps),
        cmocka_unit_test(messages),       cmocka_unit_test(chains),
        cmocka_unit_test(clusters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
