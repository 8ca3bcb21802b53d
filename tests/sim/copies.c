/* Asynchronous copies on the simulator.
 *
 * A ring of buffers filled by copies one tile ahead, read by the other warp:
 *
 *     start tile 0; commit
 *     loop i                         lines
 *       wait 0                       WAIT     tile i is complete for the thread that copied it
 *       barrier                      BARRIER  … and for all; all have read tile i - 1
 *       start tile i + 1; commit     COPY     into the buffer of tile i - 1
 *       read tile i                  READ
 *
 * is right; each mutation of it is reported with both places. Then single rules. */

#include "support/sim_kernels.h"
#include "support/test.h"

enum { WARPS = 2, THREADS = 32 * WARPS, TILES = 5, SIZE = 16, TILE = THREADS * SIZE };
enum { FIRST = 1, WAIT, BARRIER, COPY, READ };

typedef struct pipeline {
    bool no_wait, no_barrier, reads_first;
    uint32_t groups, ring; /* that the wait leaves; buffers */
    uint32_t extra;        /* barriers that order nothing */
} pipeline;

static uint32_t data[TILES * TILE / 4 + TILE / 4], result[4 * THREADS];

/* `parameter` + 16 · index, `shared` 16 · index. */
static lilac_simt_value place(rig *r, lilac_simt_value tile, uint32_t modulo,
                              lilac_simt_value thread_of) {
    lilac_simt_value slot = modulo ? op2(r, LILAC_SIMT_OP_REM_U, tile, word(r, modulo)) : tile;
    lilac_simt_value at = op2(r, LILAC_SIMT_OP_MUL, slot, word(r, THREADS));
    return op2(r, LILAC_SIMT_OP_ADD, at, thread_of);
}

static lilac_simt_value shared_place(rig *r, lilac_simt_value tile, uint32_t ring,
                                     lilac_simt_value thread_of) {
    return op2(r, LILAC_SIMT_OP_MUL, place(r, tile, ring, thread_of), word(r, SIZE));
}

static void start_tile(rig *r, lilac_simt_value tile, uint32_t ring) {
    lilac_simt_value more = lilac_simt_compare_values(&r->b, LILAC_SIMT_LT, tile, word(r, TILES));
    lilac_simt_instruction like = {.cache = LILAC_SIMT_CACHE_CG};
    lilac_simt_copy_async(&r->b, SIZE, shared_place(r, tile, ring, thread(r)), 0,
                          element(r, 0, place(r, tile, 0, thread(r)), SIZE), 0, more, 0, &like);
    lilac_simt_copy_commit(&r->b);
}

static lilac_simt_value read_tile(rig *r, lilac_simt_value tile, uint32_t ring,
                                  lilac_simt_value sum) {
    lilac_simt_value other = op2(r, LILAC_SIMT_OP_XOR, thread(r), word(r, 32));
    at_line(r, READ);
    lilac_simt_value read = lilac_simt_load(&r->b, LILAC_SIMT_OP_LD_SHARED, LILAC_SIMT_I32, 4,
                                            shared_place(r, tile, ring, other), 0, 0, NULL, NULL);
    for (uint32_t k = 0; k < 4; k++) {
        sum = op2(r, LILAC_SIMT_OP_ADD, op2(r, LILAC_SIMT_OP_MUL, sum, word(r, 3)), read + k);
    }
    return sum;
}

static void build_pipeline(rig *r, const pipeline *p) {
    rig_init(r, WARPS, 2, p->ring * TILE);
    lilac_simt_value sum = thread(r), i;
    at_line(r, FIRST);
    start_tile(r, word(r, 0), p->ring);
    lilac_simt_instruction *loop =
        lilac_simt_loop_begin(&r->b, word(r, 0), word(r, TILES), word(r, 1), 1, &sum, &i);
    sum = i + 1;
    if (p->reads_first) {
        sum = read_tile(r, i, p->ring, sum);
    }
    at_line(r, WAIT);
    if (!p->no_wait) {
        lilac_simt_copy_wait(&r->b, p->groups);
    }
    at_line(r, BARRIER);
    for (uint32_t k = 0; k < 1 + p->extra && !p->no_barrier; k++) {
        lilac_simt_barrier(&r->b);
    }
    at_line(r, COPY);
    start_tile(r, op2(r, LILAC_SIMT_OP_ADD, i, word(r, 1)), p->ring);
    if (!p->reads_first) {
        sum = read_tile(r, i, p->ring, sum);
    }
    sum = lilac_simt_loop_end(&r->b, loop, &sum);
    lilac_simt_copy_wait_all(&r->b);
    lilac_simt_value index =
        op2(r, LILAC_SIMT_OP_ADD,
            op2(r, LILAC_SIMT_OP_MUL, leaf(r, LILAC_SIMT_OP_CTA, 0), word(r, THREADS)), thread(r));
    store(r, LILAC_SIMT_OP_ST_GLOBAL, sum, element(r, 1, index, 4));
}

static void run(rig *r) {
    for (uint32_t k = 0; k < sizeof data / sizeof *data; k++) {
        data[k] = k * 2654435761u;
    }
    memset(result, 0, sizeof result);
    give(r, 0, "data", data, sizeof data);
    give(r, 1, "result", result, sizeof result);
    if (!rig_run(r)) {
        fail_msg("%s", lilac_diagnostics(r->context)->message);
    }
}

static void check_sums(uint32_t block) {
    for (uint32_t t = 0; t < THREADS; t++) {
        uint32_t sum = t;
        for (uint32_t tile = 0; tile < TILES; tile++) {
            for (uint32_t k = 0; k < 4; k++) {
                sum = 3 * sum + data[(tile * THREADS + (t ^ 32)) * 4 + k];
            }
        }
        assert_int_equal(result[block * THREADS + t], sum);
    }
}

static uint32_t line_of(rig *r, const lilac_diagnostic *d) {
    lilac_name file;
    uint32_t line = 0, column = 0;
    assert_non_null(d);
    assert_true(lilac_location_file(r->context, d->location, &file, &line, &column));
    return line;
}

/* A finding of this kind between these lines. */
static void expect(rig *r, const char *id, uint32_t line, uint32_t other) {
    bool found = false;
    for (const lilac_diagnostic *d = lilac_diagnostics(r->context); d; d = d->next) {
        if (!d->id || strcmp(d->id, id) != 0 || line_of(r, d) != line) {
            continue;
        }
        found |= other == 0 || line_of(r, d->notes) == other;
    }
    if (!found) {
        for (const lilac_diagnostic *d = lilac_diagnostics(r->context); d; d = d->next) {
            print_message("%s: %s\n", d->id ? d->id : "note", d->message);
        }
        fail_msg("no %s at line %u with a note at line %u", id, line, other);
    }
    assert_true(r->counters.races > 0);
}

static void a_pipeline_is_right(void **state) {
    (void)state;
    for (uint32_t extra = 0; extra < 3; extra++) {
        rig r;
        build_pipeline(&r, &(pipeline){.ring = 2 + extra, .extra = extra});
        run(&r);
        assert_null(lilac_diagnostics(r.context));
        assert_int_equal(r.counters.races, 0);
        assert_int_equal(r.counters.async_copies, TILES * WARPS);
        assert_int_equal(r.counters.async_bytes, TILES * TILE);
        assert_int_equal(r.counters.async_wavefronts, TILES * TILE / 128);
        assert_int_equal(r.counters.async_sectors, TILES * TILE / 32);
        assert_int_equal(r.counters.global_loads, 0);
        assert_int_equal(r.counters.shared_stores, 0);
        check_sums(0);
        /* of several barriers in a row one is needed */
        assert_int_equal(lilac_simt_opt_barriers(r.kernel), extra > 0);
        assert_true(lilac_sim_run(r.context, &r.launch, &r.counters));
        assert_int_equal(r.counters.races, 0);
        assert_int_equal(r.counters.barriers, TILES);
        check_sums(0);
        rig_clear(&r);
    }
}

static void mutations_are_found(void **state) {
    static const struct {
        pipeline pipeline;
        const char *id;
        uint32_t line, other;
    } cases[] = {
        {{.ring = 2, .no_wait = true}, "copy-in-flight", READ, FIRST},
        {{.ring = 2, .groups = 1}, "copy-in-flight", READ, FIRST},
        {{.ring = 2, .no_barrier = true}, "shared-race", READ, COPY},
        {{.ring = 2, .no_barrier = true}, "shared-race", COPY, READ},
        {{.ring = 1}, "copy-in-flight", READ, COPY},
        {{.ring = 2, .reads_first = true}, "copy-in-flight", READ, FIRST},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r;
        build_pipeline(&r, &cases[k].pipeline);
        run(&r);
        expect(&r, cases[k].id, cases[k].line, cases[k].other);
        rig_clear(&r);
    }
}

/* All passes, and what they may do to a copy: constant parts of both addresses become offsets, a
 * predicate that always holds goes, a copy that no thread makes goes. */
static void passes_keep_copies(void **state) {
    rig r;
    (void)state;
    build_pipeline(&r, &(pipeline){.ring = 3, .extra = 1});
    run(&r);
    uint64_t copies = r.counters.async_copies;
    for (uint32_t round = 0; round < 2; round++) {
        lilac_simt_opt_fold(r.kernel);
        lilac_simt_opt_cse(r.kernel);
        lilac_simt_opt_licm(r.kernel);
        lilac_simt_opt_barriers(r.kernel);
        lilac_simt_opt_dce(r.kernel);
        lilac_simt_opt_schedule(r.kernel);
    }
    assert_true(lilac_simt_verify(r.module));
    assert_true(lilac_sim_run(r.context, &r.launch, &r.counters));
    assert_null(lilac_diagnostics(r.context));
    assert_int_equal(r.counters.async_copies, copies);
    check_sums(0);
    rig_clear(&r);

    rig_init(&r, WARPS, 1, 4 * THREADS);
    lilac_simt_value at = op2(&r, LILAC_SIMT_OP_MUL, thread(&r), word(&r, 4));
    at = op2(&r, LILAC_SIMT_OP_ADD, at, word(&r, 32));
    lilac_simt_value never = lilac_simt_constant(&r.b, LILAC_SIMT_I1, 0);
    lilac_simt_value always = lilac_simt_constant(&r.b, LILAC_SIMT_I1, 1);
    lilac_simt_value from = element(&r, 0, op2(&r, LILAC_SIMT_OP_AND, thread(&r), word(&r, 7)), 4);
    from = lilac_simt_op2(&r.b, LILAC_SIMT_OP_ADD, LILAC_SIMT_I64, from,
                          lilac_simt_constant(&r.b, LILAC_SIMT_I64, 64));
    lilac_simt_copy_async(&r.b, 4, at, 4, from, -4, always, 0, NULL);
    lilac_simt_copy_async(&r.b, 4, at, 0, from, 0, never, 0, NULL);
    lilac_simt_copy_wait_all(&r.b);
    effect(&r, LILAC_SIMT_OP_RETURN);
    assert_true(lilac_simt_opt_fold(r.kernel));
    assert_true(lilac_simt_verify(r.module));
    uint32_t count = 0;
    for (const lilac_simt_instruction *i = r.kernel->body->first; i; i = i->next) {
        if (i->code != LILAC_SIMT_OP_CP_ASYNC) {
            continue;
        }
        count++;
        assert_int_equal(i->operand_count, 2);
        assert_int_equal(i->immediate, 36);
        assert_int_equal(i->payload.copy.source, 60);
    }
    assert_int_equal(count, 1);
    rig_clear(&r);
}

/* Each block of a cluster has copies of its own; a cluster barrier suspends blocks meanwhile. */
static void blocks_have_their_copies(void **state) {
    rig r;
    (void)state;
    rig_init(&r, WARPS, 2, TILE);
    r.kernel->num_ctas = 2;
    lilac_simt_value rank = leaf(&r, LILAC_SIMT_OP_CTA, 0);
    lilac_simt_value at = op2(&r, LILAC_SIMT_OP_MUL, thread(&r), word(&r, SIZE));
    lilac_simt_copy_async(&r.b, SIZE, at, 0, element(&r, 0, place(&r, rank, 0, thread(&r)), SIZE),
                          0, 0, 0, NULL);
    lilac_simt_copy_commit(&r.b);
    lilac_simt_cluster_barrier(&r.b);
    lilac_simt_copy_wait(&r.b, 0);
    lilac_simt_cluster_barrier(&r.b);
    lilac_simt_value other =
        lilac_simt_map_shared(&r.b, at, op2(&r, LILAC_SIMT_OP_XOR, rank, word(&r, 1)));
    lilac_simt_value read = load(&r, LILAC_SIMT_OP_LD_CLUSTER, LILAC_SIMT_I32, other);
    lilac_simt_cluster_barrier(&r.b);
    store(&r, LILAC_SIMT_OP_ST_GLOBAL, read, element(&r, 1, place(&r, rank, 0, thread(&r)), 4));
    run(&r);
    assert_null(lilac_diagnostics(r.context));
    for (uint32_t t = 0; t < 2 * THREADS; t++) {
        assert_int_equal(result[t], data[4 * (t ^ THREADS)]);
    }
    rig_clear(&r);
}

/* Zeros follow the bytes that are read; inactive threads write nothing; offsets of both addresses;
 * a wait for all completes what is in no group. */
static void parts_are_filled(void **state) {
    (void)state;
    for (uint32_t size = 4; size <= 16; size *= 2) {
        rig r;
        rig_init(&r, WARPS, 2, TILE + 32);
        lilac_simt_value at = op2(&r, LILAC_SIMT_OP_MUL, thread(&r), word(&r, 16));
        lilac_simt_value old = word(&r, 7);
        lilac_simt_value bytes = op2(&r, LILAC_SIMT_OP_REM_U, thread(&r), word(&r, size + 1));
        lilac_simt_value active = lilac_simt_compare_values(
            &r.b, LILAC_SIMT_NE, op2(&r, LILAC_SIMT_OP_AND, thread(&r), word(&r, 3)), word(&r, 1));
        lilac_simt_store(&r.b, LILAC_SIMT_OP_ST_SHARED, 1, &old, at, 32, 0, NULL);
        lilac_simt_copy_async(&r.b, size, at, 32, element(&r, 0, thread(&r), 16), 16, active, bytes,
                              NULL);
        lilac_simt_copy_wait_all(&r.b);
        lilac_simt_value read = lilac_simt_load(&r.b, LILAC_SIMT_OP_LD_SHARED, LILAC_SIMT_I32, 1,
                                                at, 32, 0, NULL, NULL);
        store(&r, LILAC_SIMT_OP_ST_GLOBAL, read, element(&r, 1, thread(&r), 4));
        run(&r);
        assert_null(lilac_diagnostics(r.context));
        for (uint32_t t = 0; t < THREADS; t++) {
            uint32_t wanted = 0, count = t % (size + 1) < 4 ? t % (size + 1) : 4;
            memcpy(&wanted, &data[4 * t + 4], count);
            assert_int_equal(result[t], (t & 3) == 1 ? 7 : wanted);
        }
        rig_clear(&r);
    }
}

/* Parts of 16 bytes are read from a buffer that the kernel writes too: a race only where a byte that
 * a copy reads is stored. By several host threads. */
static void parts_race_by_bytes(void **state) {
    (void)state;
    for (uint32_t bytes = 1; bytes <= SIZE; bytes++) {
        for (uint32_t last = bytes == SIZE; last < 2; last++) { /* the last byte, or the next */
            rig r;
            rig_init(&r, 1, 2, 32 * SIZE);
            r.launch.grid[0] = 8;
            r.launch.threads = 2;
            lilac_simt_value block = leaf(&r, LILAC_SIMT_OP_BLOCK, 0);
            lilac_simt_value first =
                lilac_simt_compare_values(&r.b, LILAC_SIMT_EQ, block, word(&r, 0));
            lilac_simt_value at = op2(&r, LILAC_SIMT_OP_MUL, thread(&r), word(&r, SIZE));
            lilac_simt_copy_async(&r.b, SIZE, at, 0, element(&r, 0, thread(&r), SIZE), 0, 0,
                                  word(&r, bytes), NULL);
            lilac_simt_copy_wait_all(&r.b);
            lilac_simt_value value = lilac_simt_constant(&r.b, LILAC_SIMT_I8, 1);
            lilac_simt_store(&r.b, LILAC_SIMT_OP_ST_GLOBAL, 1, &value,
                             element(&r, 0, thread(&r), SIZE), bytes - last, first, NULL);
            run(&r);
            bool races = last == 1;
            assert_int_equal(r.counters.races > 0, races);
            assert_int_equal(reported(&r, "global-race", NULL) > 0, races);
            rig_clear(&r);
        }
    }
}

/* One copy a thread of 4 bytes, then what each case adds. */
static void start_one(rig *r, lilac_simt_value *at) {
    rig_init(r, WARPS, 2, 4 * THREADS);
    *at = op2(r, LILAC_SIMT_OP_MUL, thread(r), word(r, 4));
    at_line(r, COPY);
    lilac_simt_copy_async(&r->b, 4, *at, 0, element(r, 0, thread(r), 4), 0, 0, 0, NULL);
}

static void rules_are_checked(void **state) {
    rig r;
    lilac_simt_value at;
    (void)state;

    start_one(&r, &at); /* no wait at all */
    run(&r);
    expect(&r, "copy-not-awaited", COPY, 0);
    rig_clear(&r);

    start_one(&r, &at); /* a group does not have what was started after its commit */
    at_line(&r, WAIT);
    lilac_simt_copy_wait(&r.b, 0);
    at_line(&r, READ);
    load(&r, LILAC_SIMT_OP_LD_SHARED, LILAC_SIMT_I32, at);
    run(&r);
    expect(&r, "copy-in-flight", READ, COPY);
    expect(&r, "copy-not-awaited", COPY, 0);
    rig_clear(&r);

    start_one(&r, &at); /* the source changes, which a barrier orders after the start only */
    lilac_simt_barrier(&r.b);
    at_line(&r, READ);
    lilac_simt_value other = op2(&r, LILAC_SIMT_OP_XOR, thread(&r), word(&r, 32));
    store(&r, LILAC_SIMT_OP_ST_GLOBAL, word(&r, 5), element(&r, 0, other, 4));
    at_line(&r, WAIT);
    lilac_simt_copy_wait_all(&r.b);
    run(&r);
    expect(&r, "copy-source-changed", COPY, WAIT);
    expect(&r, "global-race", COPY, READ);
    rig_clear(&r);

    start_one(&r, &at); /* a barrier before the wait does not order the copy before others' reads */
    lilac_simt_barrier(&r.b);
    lilac_simt_copy_wait_all(&r.b);
    at_line(&r, READ);
    load(&r, LILAC_SIMT_OP_LD_SHARED, LILAC_SIMT_I32,
         op2(&r, LILAC_SIMT_OP_XOR, at, word(&r, 4 * 32)));
    run(&r);
    expect(&r, "shared-race", READ, COPY);
    rig_clear(&r);

    start_one(&r, &at); /* a store into the same bytes */
    at_line(&r, READ);
    store(&r, LILAC_SIMT_OP_ST_SHARED, word(&r, 5), at);
    lilac_simt_copy_wait_all(&r.b);
    run(&r);
    expect(&r, "copy-in-flight", READ, COPY);
    rig_clear(&r);
}

static void traps(void **state) {
    static const struct {
        uint32_t shared, global, bytes;
        const char *id;
    } cases[] = {{2, 0, 4, "misaligned-access"},   {0, 2, 4, "misaligned-access"},
                 {0, 2, 3, "misaligned-access"},   {1 << 16, 0, 4, "out-of-bounds"},
                 {0, 1 << 24, 1, "out-of-bounds"}, {0, 0, 5, "copy-size"}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r;
        rig_init(&r, WARPS, 2, 4 * THREADS);
        lilac_simt_value unknown = op2(&r, LILAC_SIMT_OP_MUL, thread(&r), word(&r, 4));
        lilac_simt_value zero =
            load(&r, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_I32, element(&r, 0, word(&r, 0), 4));
        lilac_simt_value bytes = op2(&r, LILAC_SIMT_OP_OR, zero, word(&r, cases[k].bytes));
        data[0] = 0;
        lilac_simt_copy_async(&r.b, 4, unknown, cases[k].shared, element(&r, 0, thread(&r), 4),
                              (int32_t)cases[k].global, 0, bytes, NULL);
        lilac_simt_copy_wait_all(&r.b);
        give(&r, 0, "data", data, sizeof data);
        give(&r, 1, "result", result, sizeof result);
        assert_false(rig_run(&r));
        assert_int_equal(reported(&r, cases[k].id, NULL), 1);
        rig_clear(&r);
    }
    /* nothing is read where no byte is: the address is not looked at */
    rig r;
    rig_init(&r, WARPS, 2, 4 * THREADS);
    lilac_simt_value at = op2(&r, LILAC_SIMT_OP_MUL, thread(&r), word(&r, 4));
    lilac_simt_copy_async(&r.b, 4, at, 0, element(&r, 0, thread(&r), 4), 1 << 24, 0, word(&r, 0),
                          NULL);
    lilac_simt_copy_wait_all(&r.b);
    run(&r);
    assert_null(lilac_diagnostics(r.context));
    rig_clear(&r);
    /* the result of a division by zero as an address */
    rig_init(&r, WARPS, 2, 4 * THREADS);
    lilac_simt_value zero =
        load(&r, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_I32, element(&r, 0, word(&r, 0), 4));
    lilac_simt_value quotient = op2(&r, LILAC_SIMT_OP_DIV_U, thread(&r), zero);
    lilac_simt_copy_async(&r.b, 4, quotient, 0, element(&r, 0, thread(&r), 4), 0, 0, 0, NULL);
    lilac_simt_copy_wait_all(&r.b);
    data[0] = 0;
    give(&r, 0, "data", data, sizeof data);
    give(&r, 1, "result", result, sizeof result);
    assert_false(rig_run(&r));
    assert_int_equal(reported(&r, "division-by-zero", NULL), 1);
    rig_clear(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipeline_is_right),      cmocka_unit_test(mutations_are_found),
        cmocka_unit_test(blocks_have_their_copies), cmocka_unit_test(passes_keep_copies),
        cmocka_unit_test(parts_are_filled),         cmocka_unit_test(rules_are_checked),
        cmocka_unit_test(parts_race_by_bytes),      cmocka_unit_test(traps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
