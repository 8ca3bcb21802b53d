/* Blocks that wait for each other, endless loops, limits and progress. */

#include "support/sim_kernels.h"
#include "support/test.h"

#define GLOBAL_LOAD  LILAC_SIMT_OP_LD_GLOBAL
#define GLOBAL_STORE LILAC_SIMT_OP_ST_GLOBAL

static lilac_simt_value is_equal(rig *r, lilac_simt_value a, lilac_simt_value b) {
    return lilac_simt_compare_values(&r->b, LILAC_SIMT_EQ, a, b);
}

/* while (flags[index] == 0): with a counter, i += 1 as well. */
static void wait_for(rig *r, lilac_simt_value index, bool counts) {
    lilac_simt_value first, zero = word(r, 0), address = element(r, 0, index, 4);
    lilac_simt_type type = LILAC_SIMT_I32;
    lilac_simt_instruction *loop =
        lilac_simt_while_begin(&r->b, counts, &zero, counts, &type, &first);
    lilac_simt_value counter = first;
    lilac_simt_value flag = load(r, GLOBAL_LOAD, LILAC_SIMT_I32, address);
    lilac_simt_mark_uniform(r->kernel, flag);
    lilac_simt_while_condition(&r->b, loop, is_equal(r, flag, zero), &counter, &first);
    counter = counts ? op2(r, LILAC_SIMT_OP_ADD, first, word(r, 1)) : 0;
    lilac_simt_while_end(&r->b, loop, &counter);
}

static void endless(rig *r) {
    lilac_simt_value first;
    lilac_simt_instruction *loop = lilac_simt_while_begin(&r->b, 0, NULL, 0, NULL, &first);
    lilac_simt_while_condition(&r->b, loop, lilac_simt_constant(&r->b, LILAC_SIMT_I1, 1), NULL,
                               &first);
    lilac_simt_while_end(&r->b, loop, NULL);
}

static void set_flag(rig *r, lilac_simt_value index) {
    store(r, GLOBAL_STORE, op2(r, LILAC_SIMT_OP_ADD, index, word(r, 1)), element(r, 0, index, 4));
}

/* The launch fails with one error of this id at this line, and its text has these words. */
static const lilac_diagnostic *expect_end(rig *r, const char *id, uint32_t line,
                                          const char *words) {
    const lilac_diagnostic *d = NULL;
    lilac_name file;
    uint32_t found = 0, column;
    assert_false(rig_run(r));
    assert_int_equal(lilac_error_count(r->context), 1);
    if (reported(r, id, &d) != 1) {
        fail_msg("no %s, but %s", id, lilac_diagnostics(r->context)->id);
    }
    if (strstr(d->message, words) == NULL) {
        fail_msg("'%s' lacks '%s'", d->message, words);
    }
    assert_true(lilac_location_file(r->context, d->location, &file, &found, &column));
    assert_int_equal(found, line);
    assert_int_equal(r->counters.instructions, 0);
    return d;
}

static void expect_run(rig *r) {
    if (!rig_run(r)) {
        fail_msg("%s: %s", lilac_diagnostics(r->context)->id,
                 lilac_diagnostics(r->context)->message);
    }
}

static uint32_t notes_with(const lilac_diagnostic *d, const char *words) {
    uint32_t count = 0;
    for (const lilac_diagnostic *note = d->notes; note; note = note->next) {
        count += strstr(note->message, words) != NULL;
    }
    return count;
}

/* ---- blocks that wait ------------------------------------------------------------------- */

enum { CHAIN = 150 };

/* Block b waits for block b + 1; the last one waits for none. */
static void build_chain(rig *r, uint32_t blocks, bool counts, uint32_t *flags) {
    rig_init(r, 1, 1, 0);
    lilac_simt_value block = leaf(r, LILAC_SIMT_OP_BLOCK, 0);
    lilac_simt_instruction *branch = lilac_simt_if_begin(
        &r->b, lilac_simt_compare_values(&r->b, LILAC_SIMT_NE, block, word(r, blocks - 1)), 0,
        NULL);
    wait_for(r, op2(r, LILAC_SIMT_OP_ADD, block, word(r, 1)), counts);
    lilac_simt_if_else(&r->b, branch, NULL);
    lilac_simt_if_end(&r->b, branch, NULL);
    set_flag(r, block);
    memset(flags, 0, blocks * sizeof *flags);
    give(r, 0, "flags", flags, blocks * sizeof *flags);
    r->launch.grid[0] = blocks;
}

static void chains(void **state) {
    uint32_t flags[CHAIN];
    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads++) {
        for (uint32_t limited = 0; limited < 2; limited++) {
            rig r;
            build_chain(&r, CHAIN, false, flags);
            r.launch.threads = threads;
            r.launch.instruction_limit = limited ? 1 << 20 : 0;
            expect_run(&r);
            for (uint32_t k = 0; k < CHAIN; k++) {
                assert_int_equal(flags[k], k + 1);
            }
            assert_int_equal(r.counters.blocks, CHAIN);
            rig_clear(&r);
        }
    }
}

/* A loop that counts its polls never repeats a state, so the limit on its length ends it. */
static void counting_chains(void **state) {
    uint32_t flags[4];
    (void)state;
    for (uint32_t threads = 1; threads <= 2; threads++) {
        rig r;
        build_chain(&r, 4, true, flags);
        r.launch.threads = threads;
        expect_run(&r);
        assert_int_equal(flags[0], 1);
        rig_clear(&r);
    }
}

/* With one thread everything is the same in each run, and with no while loop what it always was. */
static void one_thread_is_deterministic(void **state) {
    uint64_t instructions = 0;
    uint32_t flags[64];
    (void)state;
    for (uint32_t run = 0; run < 3; run++) {
        rig r;
        build_chain(&r, 16, run == 2, flags);
        expect_run(&r);
        if (run == 1) {
            assert_int_equal(r.counters.instructions, instructions);
        }
        instructions = r.counters.instructions;
        rig_clear(&r);
    }
}

/* Block 0 prints, waits for block 1, prints again: its text stays together and in front. */
static void texts_in_order(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= 2; threads++) {
        uint32_t flags[3] = {0};
        lilac_text printed = {0};
        lilac_simt_value value;
        rig r;
        rig_init(&r, 1, 1, 0);
        value = leaf(&r, LILAC_SIMT_OP_BLOCK, 0);
        lilac_simt_value one = is_equal(&r, thread(&r), word(&r, 0));
        lilac_simt_value operands[2] = {one, value};
        lilac_simt_instruction print = {.code = LILAC_SIMT_OP_PRINT,
                                        .text = lilac_intern_string(r.context, "a%d ")};
        lilac_simt_build(&r.b, &print, 2, operands, 0, NULL);
        lilac_simt_instruction *branch = lilac_simt_if_begin(
            &r.b, lilac_simt_compare_values(&r.b, LILAC_SIMT_NE, value, word(&r, 2)), 0, NULL);
        wait_for(&r, op2(&r, LILAC_SIMT_OP_ADD, value, word(&r, 1)), false);
        lilac_simt_if_else(&r.b, branch, NULL);
        lilac_simt_if_end(&r.b, branch, NULL);
        print.text = lilac_intern_string(r.context, "b%d ");
        lilac_simt_build(&r.b, &print, 2, operands, 0, NULL);
        set_flag(&r, value);
        give(&r, 0, "flags", flags, sizeof flags);
        r.launch.grid[0] = 3;
        r.launch.threads = threads;
        r.launch.printed = &printed;
        expect_run(&r);
        assert_string_equal(lilac_text_get(&printed), "a0 b0 a1 b1 a2 b2 ");
        lilac_text_clear(&printed);
        rig_clear(&r);
    }
}

/* ---- loops that do not end -------------------------------------------------------------- */

/* Recognised by their state, at once, though nothing would stop them for 1000 s. */
static void repeated_states(void **state) {
    uint32_t flags[64] = {0};
    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads++) {
        rig r;
        rig_init(&r, 2, 1, 0);
        at_line(&r, 7);
        endless(&r);
        give(&r, 0, "flags", flags, sizeof flags);
        r.launch.grid[0] = 5;
        r.launch.threads = threads;
        r.launch.stall_seconds = 1000;
        const lilac_diagnostic *d =
            expect_end(&r, "endless-loop", 7, "block (0, 0, 0): this loop does not end");
        assert_int_equal(notes_with(d, "5 blocks have begun and not ended"), 1);
        assert_int_equal(notes_with(d, "--limit N"), 1);
        rig_clear(&r);
    }
}

/* Block 0 waits for a flag that nobody sets; block 1 waits in another loop. */
static void deadlock(void **state) {
    uint32_t flags[4] = {0};
    rig r;
    (void)state;
    rig_init(&r, 1, 1, 0);
    r.launch.stall_seconds = 1000;
    r.launch.grid[0] = 2;
    give(&r, 0, "flags", flags, sizeof flags);
    lilac_simt_value block = leaf(&r, LILAC_SIMT_OP_BLOCK, 0);
    at_line(&r, 3);
    lilac_simt_instruction *branch =
        lilac_simt_if_begin(&r.b, is_equal(&r, block, word(&r, 0)), 0, NULL);
    at_line(&r, 4);
    wait_for(&r, word(&r, 1), false);
    set_flag(&r, word(&r, 0));
    lilac_simt_if_else(&r.b, branch, NULL);
    at_line(&r, 9);
    wait_for(&r, word(&r, 0), false);
    set_flag(&r, word(&r, 1));
    lilac_simt_if_end(&r.b, branch, NULL);
    const lilac_diagnostic *d = expect_end(&r, "endless-loop", 4, "block (0, 0, 0)");
    assert_int_equal(notes_with(d, "block (1, 0, 0) is in this loop"), 1);
    rig_clear(&r);
}

/* The innermost of two loops is named, and time ends one that repeats no state. */
static void time_without_progress(void **state) {
    uint32_t flags[4] = {0};
    (void)state;
    for (uint32_t threads = 1; threads <= 2; threads++) {
        lilac_simt_value first;
        rig r;
        rig_init(&r, 1, 1, 0);
        r.launch.stall_seconds = 0.1;
        r.launch.grid[0] = 2;
        r.launch.threads = threads;
        give(&r, 0, "flags", flags, sizeof flags);
        at_line(&r, 3);
        lilac_simt_instruction *loop = lilac_simt_while_begin(&r.b, 0, NULL, 0, NULL, &first);
        at_line(&r, 5);
        wait_for(&r, word(&r, 1), true);
        at_line(&r, 3);
        lilac_simt_while_condition(&r.b, loop, lilac_simt_constant(&r.b, LILAC_SIMT_I1, 1), NULL,
                                   &first);
        lilac_simt_while_end(&r.b, loop, NULL);
        expect_end(&r, "endless-loop", 5, "for 0.1 s, no block has ended and no byte");
        rig_clear(&r);
    }
}

typedef struct progress_log {
    uint32_t calls;
    lilac_sim_progress last;
} progress_log;

static void note_progress(void *data, const lilac_sim_progress *progress) {
    progress_log *log = data;
    log->calls++;
    log->last = *progress;
}

/* A counted loop that runs for much longer than stall_seconds goes on; so does a while loop whose
 * blocks change memory. Block 0 waits for block 1 all the time, and counts. */
static void work_is_no_stall(void **state) {
    (void)state;
    for (uint32_t kind = 0; kind < 4; kind++) {
        uint32_t flags[64] = {0};
        progress_log log = {0};
        lilac_simt_value first, i, zero;
        rig r;
        rig_init(&r, 1, 1, 0);
        r.launch.threads = 1 + kind / 2;
        r.launch.stall_seconds = 0.01;
        r.launch.grid[0] = 2;
        r.launch.progress = note_progress;
        r.launch.progress_data = &log;
        give(&r, 0, "flags", flags, sizeof flags);
        zero = word(&r, 0);
        lilac_simt_value block = leaf(&r, LILAC_SIMT_OP_BLOCK, 0);
        lilac_simt_instruction *branch =
            lilac_simt_if_begin(&r.b, is_equal(&r, block, zero), 0, NULL);
        wait_for(&r, zero, true);
        lilac_simt_if_else(&r.b, branch, NULL);
        if (kind % 2 == 0) { /* no store for some tenths of a second */
            lilac_simt_instruction *loop =
                lilac_simt_loop_begin(&r.b, zero, word(&r, 1000000), word(&r, 1), 1, &zero, &i);
            lilac_simt_value sum = op2(&r, LILAC_SIMT_OP_ADD, i, i + 1);
            lilac_simt_loop_end(&r.b, loop, &sum);
        } else { /* no counted loop */
            lilac_simt_type type = LILAC_SIMT_I32;
            lilac_simt_instruction *loop = lilac_simt_while_begin(&r.b, 1, &zero, 1, &type, &first);
            lilac_simt_value next = op2(&r, LILAC_SIMT_OP_ADD, first, word(&r, 1));
            store(&r, GLOBAL_STORE, next, element(&r, 0, word(&r, 9), 4));
            lilac_simt_while_condition(
                &r.b, loop, lilac_simt_compare_values(&r.b, LILAC_SIMT_NE, next, word(&r, 250000)),
                &next, &first);
            lilac_simt_value passed = first;
            lilac_simt_while_end(&r.b, loop, &passed);
        }
        set_flag(&r, zero);
        lilac_simt_if_end(&r.b, branch, NULL);
        expect_run(&r);
        assert_int_equal(flags[0], 1);
        assert_true(log.calls > 0 && log.last.blocks == 2);
        rig_clear(&r);
    }
}

/* Block 1 traps while block 0 waits for it: the trap is the launch's error. */
static void a_trap_ends_waiting(void **state) {
    uint32_t flags[4] = {0};
    (void)state;
    for (uint32_t threads = 1; threads <= 2; threads++) {
        rig r;
        rig_init(&r, 1, 1, 0);
        r.launch.threads = threads;
        r.launch.stall_seconds = 1000;
        r.launch.grid[0] = 4;
        give(&r, 0, "flags", flags, sizeof flags);
        lilac_simt_value block = leaf(&r, LILAC_SIMT_OP_BLOCK, 0);
        at_line(&r, 4);
        lilac_simt_instruction *branch =
            lilac_simt_if_begin(&r.b, is_equal(&r, block, word(&r, 0)), 0, NULL);
        wait_for(&r, word(&r, 1), false);
        lilac_simt_if_else(&r.b, branch, NULL);
        at_line(&r, 11);
        load(&r, GLOBAL_LOAD, LILAC_SIMT_I32, element(&r, 0, word(&r, 1000), 4));
        set_flag(&r, word(&r, 1));
        lilac_simt_if_end(&r.b, branch, NULL);
        expect_end(&r, "out-of-bounds", 11, "block (1, 0, 0)");
        rig_clear(&r);
    }
}

/* ---- limits ----------------------------------------------------------------------------- */

/* A kernel with straight code, a counted loop and a while loop. */
static void build_mixed(rig *r, uint32_t warps, uint32_t *out) {
    lilac_simt_value i, first, zero;
    lilac_simt_type type = LILAC_SIMT_I32;
    rig_init(r, warps, 1, 0);
    at_line(r, 2);
    zero = thread(r);
    lilac_simt_instruction *loop =
        lilac_simt_loop_begin(&r->b, word(r, 0), word(r, 5), word(r, 1), 1, &zero, &i);
    lilac_simt_value next = op2(r, LILAC_SIMT_OP_MUL, i + 1, i + 1);
    lilac_simt_value sum = lilac_simt_loop_end(&r->b, loop, &next);
    at_line(r, 3);
    zero = word(r, 0);
    loop = lilac_simt_while_begin(&r->b, 1, &zero, 1, &type, &first);
    next = op2(r, LILAC_SIMT_OP_ADD, first, word(r, 1));
    lilac_simt_while_condition(&r->b, loop,
                               lilac_simt_compare_values(&r->b, LILAC_SIMT_NE, next, word(r, 9)),
                               &next, &first);
    next = first;
    lilac_simt_while_end(&r->b, loop, &next);
    at_line(r, 4);
    store(r, GLOBAL_STORE, sum, element(r, 0, thread(r), 4));
    give(r, 0, "out", out, 128 * sizeof *out);
}

/* The limit is exact: as many instructions as the counter says run, one less does not. */
static void limits_are_exact(void **state) {
    static uint32_t out[128];
    (void)state;
    for (uint32_t warps = 1; warps <= 4; warps *= 4) {
        rig r;
        build_mixed(&r, warps, out);
        expect_run(&r);
        uint64_t instructions = r.counters.instructions;
        rig_clear(&r);
        for (uint64_t limit = 1; limit <= instructions + 1; limit++) {
            build_mixed(&r, warps, out);
            r.launch.instruction_limit = limit;
            if (limit >= instructions) {
                expect_run(&r);
                assert_int_equal(r.counters.instructions, instructions);
            } else {
                char words[64];
                (void)snprintf(words, sizeof words, "limit of %u instructions", (unsigned)limit);
                assert_false(rig_run(&r));
                const lilac_diagnostic *d = NULL;
                assert_int_equal(reported(&r, "instruction-limit", &d), 1);
                assert_non_null(strstr(d->message, words));
            }
            rig_clear(&r);
        }
    }
}

/* A block in a loop at the limit: the loop's line, though the instruction is on another one. */
static void limits_name_the_loop(void **state) {
    lilac_simt_value first;
    rig r;
    (void)state;
    rig_init(&r, 1, 0, 0);
    r.launch.instruction_limit = 5000;
    at_line(&r, 6);
    lilac_simt_value zero = word(&r, 0), next;
    lilac_simt_type type = LILAC_SIMT_I32;
    lilac_simt_instruction *loop = lilac_simt_while_begin(&r.b, 1, &zero, 1, &type, &first);
    at_line(&r, 8);
    next = first;
    for (uint32_t k = 0; k < 100; k++) {
        next = op2(&r, LILAC_SIMT_OP_MUL, next, next);
    }
    lilac_simt_while_condition(&r.b, loop, lilac_simt_constant(&r.b, LILAC_SIMT_I1, 1), &next,
                               &first);
    next = first;
    lilac_simt_while_end(&r.b, loop, &next);
    const lilac_diagnostic *d =
        expect_end(&r, "instruction-limit", 6, "still runs when the block reaches its limit");
    assert_int_equal(notes_with(d, "--limit N"), 1);
    rig_clear(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains),
        cmocka_unit_test(counting_chains),
        cmocka_unit_test(one_thread_is_deterministic),
        cmocka_unit_test(texts_in_order),
        cmocka_unit_test(repeated_states),
        cmocka_unit_test(deadlock),
        cmocka_unit_test(time_without_progress),
        cmocka_unit_test(work_is_no_stall),
        cmocka_unit_test(a_trap_ends_waiting),
        cmocka_unit_test(limits_are_exact),
        cmocka_unit_test(limits_name_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
