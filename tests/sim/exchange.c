/* The simulator's ways for threads to exchange data beyond plain shared memory: matrices, barriers
 * of groups of warps, and the shared memory of other blocks of a cluster. */

#include "support/sim_kernels.h"
#include "support/test.h"

static lilac_simt_value shifted(rig *r, lilac_simt_value value, uint32_t by) {
    return op2(r, LILAC_SIMT_OP_SHL, value, word(r, by));
}

/* out[thread] = value, parameter `out` being an array of i32. */
static void give_out(rig *r, uint32_t out, lilac_simt_value value) {
    store(r, LILAC_SIMT_OP_ST_GLOBAL, value, element(r, out, thread(r), 4));
}

static lilac_simt_value is_first_warp(rig *r) {
    return lilac_simt_compare_values(&r->b, LILAC_SIMT_EQ, leaf(r, LILAC_SIMT_OP_WARP, 0),
                                     word(r, 0));
}

/* The launch fails with this id; the message has this text. */
static void expect_failure(rig *r, const char *id, const char *text) {
    const lilac_diagnostic *d = NULL;
    assert_false(rig_run(r));
    if (reported(r, id, &d) != 1) {
        fail_msg("no %s but %s", id, lilac_diagnostics(r->context)->message);
    }
    if (strstr(d->message, text) == NULL) {
        fail_msg("'%s' lacks '%s'", d->message, text);
    }
    rig_clear(r);
}

/* ---- matrices ------------------------------------------------------------------------------ */

enum { ROW = 16, LANES = 32, PLACES = 256 };

/* Wavefronts of a transaction of `count` rows, by definition. */
static uint32_t row_wavefronts(const uint32_t *rows, uint32_t count) {
    uint32_t most = 0;
    for (uint32_t bank = 0; bank < 32; bank++) {
        bool seen[PLACES * ROW / 128] = {false};
        uint32_t depth = 0;
        for (uint32_t k = 0; k < count; k++) {
            for (uint32_t w = rows[k] / 4; w < rows[k] / 4 + 4; w++) {
                if (w % 32 == bank && !seen[w / 32]) {
                    seen[w / 32] = true;
                    depth++;
                }
            }
        }
        most = depth > most ? depth : most;
    }
    return most;
}

/* Which byte of shared memory the half `h` of lane l's word of matrix i is. */
static uint32_t half_place(const uint32_t *rows, uint32_t i, uint32_t l, uint32_t h, bool trans) {
    return trans ? rows[8 * i + 2 * (l % 4) + h] + 2 * (l / 4)
                 : rows[8 * i + l / 4] + 4 * (l % 4) + 2 * h;
}

/* Rows at random places, random data: what is loaded and what is stored. */
static void matrices(void **state) {
    static uint8_t memory[PLACES * ROW], after[PLACES * ROW];
    static uint32_t rows[LANES], words[4][LANES], out[4][LANES];
    lilac_random random;
    (void)state;
    lilac_random_seed(&random, 31);
    for (uint32_t round = 0; round < 96; round++) {
        uint32_t count = 1u << round % 3;
        bool trans = round / 3 % 2, load_them = round / 6 % 2;
        uint32_t places[PLACES], wanted = 0;
        for (uint32_t k = 0; k < PLACES; k++) {
            places[k] = k;
        }
        for (uint32_t k = 0; k < LANES; k++) {
            uint32_t other = k + (uint32_t)lilac_random_below(&random, PLACES - k);
            uint32_t place = places[other];
            places[other] = places[k];
            rows[k] = place * ROW;
        }
        for (uint32_t k = 8 * count; k < LANES; k++) { /* no address: need not be one */
            rows[k] = (uint32_t)lilac_random_next(&random);
        }
        for (uint32_t k = 0; k < sizeof memory; k++) {
            memory[k] = (uint8_t)lilac_random_next(&random);
        }
        for (uint32_t k = 0; k < 4 * LANES; k++) {
            words[k / LANES][k % LANES] = (uint32_t)lilac_random_next(&random);
        }

        rig r;
        rig_init(&r, 1, 4, sizeof memory);
        /* all of memory in, 128 bytes a thread; the access; and all of it out */
        lilac_simt_value from = thread(&r);
        for (uint32_t k = 0; k < sizeof memory / LANES / 4; k++) {
            lilac_simt_value at = op2(&r, LILAC_SIMT_OP_ADD, from, word(&r, LANES * k));
            store(&r, LILAC_SIMT_OP_ST_SHARED,
                  load(&r, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_I32, element(&r, 0, at, 4)),
                  shifted(&r, at, 2));
        }
        lilac_simt_value row =
            load(&r, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_I32, element(&r, 1, thread(&r), 4));
        lilac_simt_value values[4];
        for (uint32_t k = 0; k < count; k++) {
            values[k] = load(
                &r, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_I32,
                element(&r, 2, op2(&r, LILAC_SIMT_OP_ADD, thread(&r), word(&r, LANES * k)), 4));
        }
        if (load_them) {
            lilac_simt_value loaded =
                lilac_simt_load_matrix(&r.b, trans, LILAC_SIMT_I32, count, row, 0, NULL);
            for (uint32_t k = 0; k < count; k++) {
                store(
                    &r, LILAC_SIMT_OP_ST_GLOBAL, loaded + k,
                    element(&r, 2, op2(&r, LILAC_SIMT_OP_ADD, thread(&r), word(&r, LANES * k)), 4));
            }
        } else {
            lilac_simt_store_matrix(&r.b, trans, count, values, row, 0, 0, NULL);
        }
        for (uint32_t k = 0; k < sizeof memory / LANES / 4; k++) {
            lilac_simt_value at = op2(&r, LILAC_SIMT_OP_ADD, from, word(&r, LANES * k));
            store(&r, LILAC_SIMT_OP_ST_GLOBAL,
                  load(&r, LILAC_SIMT_OP_LD_SHARED, LILAC_SIMT_I32, shifted(&r, at, 2)),
                  element(&r, 3, at, 4));
        }
        memcpy(out, words, sizeof out);
        give(&r, 0, "memory", memory, sizeof memory);
        give(&r, 1, "rows", rows, sizeof rows);
        give(&r, 2, "words", out, sizeof out);
        give(&r, 3, "after", after, sizeof after);
        assert_true(rig_run(&r));
        for (uint32_t i = 0; i < count; i++) {
            wanted += row_wavefronts(rows + 8 * i, 8);
            for (uint32_t l = 0; l < LANES; l++) {
                for (uint32_t h = 0; h < 2; h++) {
                    uint32_t at = half_place(rows, i, l, h, trans);
                    uint16_t half = (uint16_t)(words[i][l] >> 16 * h);
                    if (load_them) {
                        assert_int_equal((uint16_t)(out[i][l] >> 16 * h),
                                         memory[at] | memory[at + 1] << 8);
                    } else {
                        memcpy(memory + at, &half, 2);
                    }
                }
            }
        }
        assert_memory_equal(memory, after, sizeof memory);
        const uint32_t plain = sizeof memory / LANES / 4; /* a wavefront each */
        const lilac_sim_counters *c = &r.counters;
        assert_int_equal(c->matrix_loads, load_them);
        assert_int_equal(c->matrix_stores, !load_them);
        assert_int_equal(c->shared_loads, plain + load_them);
        assert_int_equal(c->shared_stores, plain + !load_them);
        assert_int_equal(c->shared_load_wavefronts, plain + (load_them ? wanted : 0));
        assert_int_equal(c->shared_store_wavefronts, plain + (load_them ? 0 : wanted));
        assert_int_equal(c->shared_load_bytes, 128 * (plain + (load_them ? count : 0)));
        assert_int_equal(c->shared_store_bytes, 128 * (plain + (load_them ? 0 : count)));
        assert_int_equal(c->races + c->uninitialised_reads, 0);
        rig_clear(&r);
    }
}

/* A matrix store of one warp races with accesses of another warp. Reads of rows that no store
 * wrote are reported. */
static void matrix_findings(void **state) {
    (void)state;
    for (uint32_t barrier = 0; barrier < 2; barrier++) {
        const lilac_diagnostic *d = NULL;
        rig r;
        rig_init(&r, 2, 1, 1024);
        static uint32_t out[64];
        lilac_simt_value lane = leaf(&r, LILAC_SIMT_OP_LANE, 0);
        lilac_simt_value row = shifted(&r, lane, 4);
        lilac_simt_value words[2] = {lane, lane};
        lilac_simt_store_matrix(&r.b, false, 2, words, row, 0, is_first_warp(&r), NULL);
        if (barrier) {
            lilac_simt_barrier(&r.b);
        }
        give_out(&r, 0, lilac_simt_load_matrix(&r.b, false, LILAC_SIMT_I32, 2, row, 0, NULL));
        lilac_simt_load_matrix(&r.b, true, LILAC_SIMT_I32, 4, row, 0, NULL);
        give(&r, 0, "out", out, sizeof out);
        assert_true(rig_run(&r));
        assert_int_equal(r.counters.shared_stores, 1); /* by the first warp only */
        assert_int_equal(r.counters.races, barrier ? 0 : 2);
        assert_int_equal(r.counters.uninitialised_reads, 2);
        assert_int_equal(reported(&r, "uninitialised-read", &d), 1);
        assert_non_null(strstr(d->message, "thread 16: ld.matrix reads shared byte 256"));
        for (uint32_t t = 0; t < 64; t++) {
            assert_int_equal(out[t], t % 32);
        }
        rig_clear(&r);
    }
}

static void matrix_traps(void **state) {
    static const struct {
        uint32_t scale, offset;
        const char *id, *text;
    } cases[] = {{16, 8, "misaligned-access", "thread 0: st.matrix of 16 bytes at 8 is misaligned"},
                 {16, 16 * 57, "out-of-bounds", "thread 7: st.matrix of 16 bytes at 1024"},
                 {16, 0xFFFFFFF0, "out-of-bounds", "thread 0"}};
    (void)state;
    for (uint32_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r;
        rig_init(&r, 1, 0, 1024);
        lilac_simt_value row = op2(&r, LILAC_SIMT_OP_MUL, thread(&r), word(&r, cases[k].scale));
        row = op2(&r, LILAC_SIMT_OP_XOR, row, word(&r, cases[k].offset));
        row = k == 1 ? op2(&r, LILAC_SIMT_OP_ADD, shifted(&r, thread(&r), 4),
                           word(&r, cases[k].offset))
                     : row;
        lilac_simt_store_matrix(&r.b, false, 1, &r.tid, row, 0, 0, NULL);
        expect_failure(&r, cases[k].id, cases[k].text);
    }
    rig r;
    rig_init(&r, 1, 0, 1024);
    lilac_simt_value some =
        lilac_simt_compare_values(&r.b, LILAC_SIMT_ULT, thread(&r), word(&r, 9));
    lilac_simt_store_matrix(&r.b, false, 1, &r.tid, shifted(&r, thread(&r), 4), 0, some, NULL);
    expect_failure(&r, "divergent-predicate", "thread 9: the predicate of 'st.matrix' differs");
}

/* An access outside the bytes it promises. */
static void promises(void **state) {
    (void)state;
    for (uint32_t k = 0; k < 2; k++) {
        rig r;
        rig_init(&r, 1, 0, 512);
        lilac_simt_instruction promise = {.shared_begin = 128, .shared_end = k ? 252 : 256};
        lilac_simt_store(&r.b, LILAC_SIMT_OP_ST_SHARED, 1, (lilac_simt_value[]){thread(&r)},
                         shifted(&r, thread(&r), 2), 128, 0, &promise);
        if (k) {
            expect_failure(&r, "outside-interval", "thread 31: st.shared of 4 bytes at 252");
        } else {
            assert_true(rig_run(&r));
            rig_clear(&r);
        }
    }
}

/* ---- groups of warps ----------------------------------------------------------------------- */

static void group_barriers(void **state) {
    (void)state;
    static const struct {
        uint32_t mask, shift, threads; /* group: (warp & mask) >> shift */
        const char *id, *text;
    } cases[] = {{3, 0, 64, NULL, NULL},
                 {6, 1, 64, NULL, NULL},
                 {0, 0, 256, NULL, NULL},
                 {1, 0, 64, "group-barrier", "4 warps meet at group 0 of 'group_barrier', which"},
                 {7, 0, 64, "group-barrier", "1 warps meet at group 0"}};
    for (uint32_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r;
        rig_init(&r, 8, 0, 0);
        lilac_simt_value warp = leaf(&r, LILAC_SIMT_OP_WARP, 0);
        lilac_simt_value group = op2(&r, LILAC_SIMT_OP_AND, warp, word(&r, cases[k].mask));
        group = op2(&r, LILAC_SIMT_OP_SHR_U, group, word(&r, cases[k].shift));
        lilac_simt_group_barrier(&r.b, group, cases[k].threads);
        lilac_simt_warp_barrier(&r.b);
        if (cases[k].id) {
            expect_failure(&r, cases[k].id, cases[k].text);
            continue;
        }
        assert_true(rig_run(&r));
        assert_int_equal(r.counters.group_barriers, 8);
        assert_int_equal(r.counters.warp_barriers, 8);
        assert_int_equal(r.counters.barriers, 0);
        rig_clear(&r);
    }
    for (uint32_t k = 0; k < 2; k++) {
        rig r;
        rig_init(&r, 1, 0, 0);
        lilac_simt_group_barrier(
            &r.b,
            k ? op2(&r, LILAC_SIMT_OP_ADD, leaf(&r, LILAC_SIMT_OP_WARP, 0), word(&r, 15))
              : leaf(&r, LILAC_SIMT_OP_LANE, 0),
            32);
        expect_failure(&r, "group-barrier", k ? "thread 0: the number" : "thread 1: the number");
    }
}

/* ---- clusters ------------------------------------------------------------------------------ */

enum { RANKS = 4, THREADS = 64 };

/* Every block writes to the next one's memory, and reads the one's before the last. */
static void cluster(rig *r, bool before, bool between, bool after) {
    lilac_simt_value rank = leaf(r, LILAC_SIMT_OP_CTA, 0);
    lilac_simt_value next =
        op2(r, LILAC_SIMT_OP_AND, op2(r, LILAC_SIMT_OP_ADD, rank, word(r, 1)), word(r, RANKS - 1));
    lilac_simt_value two =
        op2(r, LILAC_SIMT_OP_AND, op2(r, LILAC_SIMT_OP_ADD, rank, word(r, 2)), word(r, RANKS - 1));
    lilac_simt_value own = shifted(r, thread(r), 2);
    lilac_simt_value index =
        op2(r, LILAC_SIMT_OP_ADD, op2(r, LILAC_SIMT_OP_MUL, rank, word(r, THREADS)), thread(r));
    lilac_simt_value read_at = lilac_simt_map_shared(&r->b, own, two);
    lilac_simt_value write_at = lilac_simt_map_shared(&r->b, own, next);
    if (before) {
        lilac_simt_cluster_barrier(&r->b);
    }
    lilac_simt_store(&r->b, LILAC_SIMT_OP_ST_CLUSTER, 1, &index, write_at, 0, 0, NULL);
    if (between) {
        lilac_simt_cluster_barrier(&r->b);
    }
    lilac_simt_value loaded = load(r, LILAC_SIMT_OP_LD_CLUSTER, LILAC_SIMT_I32, read_at);
    store(r, LILAC_SIMT_OP_ST_GLOBAL, loaded, element(r, 0, index, 4));
    if (after) {
        lilac_simt_cluster_barrier(&r->b);
    }
}

static void clusters(void **state) {
    static uint32_t out[3][RANKS * THREADS];
    (void)state;
    for (uint32_t k = 0; k < 8; k++) {
        const lilac_diagnostic *d = NULL;
        bool before = !(k & 1), between = !(k & 2), after = !(k & 4);
        rig r;
        rig_init(&r, THREADS / 32, 1, 4 * THREADS);
        r.kernel->num_ctas = RANKS;
        r.launch.grid[0] = 3;
        r.launch.threads = 2;
        cluster(&r, before, between, after);
        give(&r, 0, "out", out[0], sizeof out[0]); /* all clusters write the same */
        assert_true(rig_run(&r));
        assert_int_equal(r.counters.blocks, 3 * RANKS);
        assert_int_equal(r.counters.cluster_loads, 3 * RANKS * 2);
        assert_int_equal(r.counters.cluster_stores, 3 * RANKS * 2);
        assert_int_equal(r.counters.shared_load_wavefronts, 3 * RANKS * 2);
        assert_int_equal(r.counters.shared_load_bytes, 3 * RANKS * THREADS * 4);
        assert_int_equal(r.counters.cluster_barriers, 3 * RANKS * (before + between + after));
        assert_int_equal(reported(&r, "shared-race", &d) != 0, !between);
        if (!between) {
            assert_non_null(strstr(d->message, "of rank"));
        }
        assert_int_equal(reported(&r, "shared-lifetime", &d) != 0, !before || !after);
        if (!before) {
            assert_non_null(strstr(d->message, "rank 1, which may not have begun"));
        } else if (!after) {
            assert_non_null(strstr(d->message, "which may have ended"));
        }
        assert_int_equal(r.counters.races != 0, k != 0);
        if (k == 0) {
            assert_int_equal(r.counters.uninitialised_reads, 0);
            for (uint32_t i = 0; i < RANKS * THREADS;
                 i++) { /* what the rank after this one wrote */
                assert_int_equal(out[0][i], (i + THREADS) % (RANKS * THREADS));
            }
        }
        rig_clear(&r);
    }
}

/* A transaction that reaches into several blocks counts in each; within one as always. */
static void cluster_wavefronts(void **state) {
    (void)state;
    for (uint32_t ranks = 1; ranks <= 4; ranks *= 2) {
        rig r;
        rig_init(&r, 1, 0, 4096);
        r.kernel->num_ctas = 4;
        lilac_simt_value lane = leaf(&r, LILAC_SIMT_OP_LANE, 0);
        lilac_simt_value rank = op2(&r, LILAC_SIMT_OP_AND, lane, word(&r, ranks - 1));
        lilac_simt_value first = lilac_simt_compare_values(
            &r.b, LILAC_SIMT_EQ, leaf(&r, LILAC_SIMT_OP_CTA, 0), word(&r, 0));
        lilac_simt_cluster_barrier(&r.b);
        lilac_simt_value at = lilac_simt_map_shared(&r.b, shifted(&r, lane, 7), rank);
        lilac_simt_store(&r.b, LILAC_SIMT_OP_ST_CLUSTER, 1, &lane, at, 0, first, NULL);
        lilac_simt_cluster_barrier(&r.b);
        assert_true(rig_run(&r));
        assert_int_equal(r.counters.shared_store_wavefronts,
                         32); /* all in one bank of some block */
        assert_int_equal(r.counters.races, 0);
        rig_clear(&r);
    }
}

static void cluster_traps(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 1, 0, 256);
    r.kernel->num_ctas = 2;
    load(&r, LILAC_SIMT_OP_LD_CLUSTER, LILAC_SIMT_I32,
         lilac_simt_map_shared(&r.b, word(&r, 0), word(&r, 2)));
    expect_failure(&r, "out-of-bounds", "no address of a block of this cluster of 2");

    rig_init(&r, 1, 0, 256);
    r.kernel->num_ctas = 2;
    load(&r, LILAC_SIMT_OP_LD_CLUSTER, LILAC_SIMT_I32,
         lilac_simt_map_shared(&r.b, word(&r, 256), word(&r, 1)));
    expect_failure(&r, "out-of-bounds", "at 256 of rank 1 is outside the block's 256 bytes");

    rig_init(&r, 1, 0, 256); /* a mapped address is none of the block's own */
    r.kernel->num_ctas = 2;
    load(&r, LILAC_SIMT_OP_LD_SHARED, LILAC_SIMT_I32,
         lilac_simt_map_shared(&r.b, word(&r, 0), leaf(&r, LILAC_SIMT_OP_CTA, 0)));
    expect_failure(&r, "out-of-bounds", "rank 0");

    rig_init(&r, 1, 0, 256);
    r.kernel->num_ctas = 32;
    expect_failure(&r, "grid-size", "side by side");
}

/* Blocks of a cluster may take different ways between barriers, and end early. */
static void uneven_blocks(void **state) {
    static uint32_t out[RANKS];
    rig r;
    (void)state;
    rig_init(&r, 1, 1, 64);
    r.kernel->num_ctas = RANKS;
    lilac_simt_value rank = leaf(&r, LILAC_SIMT_OP_CTA, 0), i;
    lilac_simt_value zero = word(&r, 0);
    lilac_simt_value peer = op2(&r, LILAC_SIMT_OP_XOR, rank, word(&r, 1));
    lilac_simt_value at = lilac_simt_map_shared(&r.b, zero, peer);
    lilac_simt_value lane0 = lilac_simt_compare_values(&r.b, LILAC_SIMT_EQ, thread(&r), zero);
    /* rank / 2 + 1 rounds of: give the number of the round to the neighbour, take it */
    lilac_simt_value rounds = op2(&r, LILAC_SIMT_OP_SHR_U, rank, word(&r, 1));
    rounds = op2(&r, LILAC_SIMT_OP_ADD, rounds, word(&r, 1));
    lilac_simt_cluster_barrier(&r.b);
    lilac_simt_instruction *loop =
        lilac_simt_loop_begin(&r.b, zero, rounds, word(&r, 1), 1, &zero, &i);
    lilac_simt_value give_it = op2(&r, LILAC_SIMT_OP_ADD, i, word(&r, 1));
    lilac_simt_store(&r.b, LILAC_SIMT_OP_ST_CLUSTER, 1, &give_it, at, 0, lane0, NULL);
    lilac_simt_cluster_barrier(&r.b);
    lilac_simt_value sum =
        op2(&r, LILAC_SIMT_OP_ADD, i + 1, load(&r, LILAC_SIMT_OP_LD_SHARED, LILAC_SIMT_I32, zero));
    lilac_simt_cluster_barrier(&r.b);
    sum = lilac_simt_loop_end(&r.b, loop, &sum);
    lilac_simt_store(&r.b, LILAC_SIMT_OP_ST_GLOBAL, 1, &sum, element(&r, 0, rank, 4), 0, lane0,
                     NULL);
    give(&r, 0, "out", out, sizeof out);
    assert_true(rig_run(&r));
    assert_int_equal(r.counters.races + r.counters.uninitialised_reads, 0);
    assert_int_equal(r.counters.cluster_barriers, 4 + 2 * (1 + 1 + 2 + 2));
    for (uint32_t k = 0; k < RANKS; k++) {
        assert_int_equal(out[k], k / 2 ? 3 : 1);
    }
    rig_clear(&r);
}

/* ---- counters ------------------------------------------------------------------------------ */

static void selects_and_permutes(void **state) {
    static uint32_t out[64];
    rig r;
    (void)state;
    rig_init(&r, 2, 1, 0);
    lilac_simt_value odd = lilac_simt_compare_values(
        &r.b, LILAC_SIMT_NE, op2(&r, LILAC_SIMT_OP_AND, thread(&r), word(&r, 1)), word(&r, 0));
    lilac_simt_value value =
        lilac_simt_op3(&r.b, LILAC_SIMT_OP_SELECT, LILAC_SIMT_I32, odd, thread(&r), word(&r, 7));
    value = lilac_simt_op3(&r.b, LILAC_SIMT_OP_PRMT, LILAC_SIMT_I32, value, thread(&r),
                           word(&r, 0x5410));
    value = lilac_simt_op3(&r.b, LILAC_SIMT_OP_PRMT, LILAC_SIMT_I32, value, value,
                           op2(&r, LILAC_SIMT_OP_MUL, thread(&r), word(&r, 0x1111)));
    give_out(&r, 0, value);
    give(&r, 0, "out", out, sizeof out);
    r.launch.grid[0] = 3;
    assert_true(rig_run(&r));
    assert_int_equal(r.counters.selects, 3 * 2);
    assert_int_equal(r.counters.permutes, 3 * 2 * 2);
    rig_clear(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices),           cmocka_unit_test(matrix_findings),
        cmocka_unit_test(matrix_traps),       cmocka_unit_test(promises),
        cmocka_unit_test(group_barriers),     cmocka_unit_test(clusters),
        cmocka_unit_test(cluster_wavefronts), cmocka_unit_test(cluster_traps),
        cmocka_unit_test(uneven_blocks),      cmocka_unit_test(selects_and_permutes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
