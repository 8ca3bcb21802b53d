/* The text of schedules: what is printed reads back as the same schedule, for random ones; malformed
 * texts are refused, and the reason names what is wrong. Requests reach the loops that they are for. */
#include "support/test.h"

#include <lilac/engine.h>
#include <lilac/schedule.h>
#include <lilac/tile_loops.h>

#include <string.h>

enum { CASES = 2000 };

static void texts_read_back(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 1);
    for (uint32_t n = 0; n < CASES; n++) {
        lilac_schedule schedule = {.has = {false}}, again;
        const uint32_t first = (uint32_t)lilac_random_below(&random, LILAC_SCHEDULE_KEYS);
        lilac_text text, why;
        lilac_text_init(&text);
        lilac_text_init(&why);
        for (uint32_t k = 0; k < LILAC_SCHEDULE_KEYS; k++) {
            const lilac_schedule_key key = (lilac_schedule_key)k;
            const uint32_t least = lilac_schedule_is_number(key), most = lilac_schedule_most(key);
            if (k == first || lilac_random_below(&random, 2) == 0) {
                lilac_schedule_add(&schedule, key,
                                   least + (uint32_t)lilac_random_below(&random, most - least + 1));
            }
        }
        lilac_schedule_print(&text, &schedule);
        assert_true(lilac_schedule_read(&again, lilac_text_get(&text), &why));
        assert_memory_equal(again.has, schedule.has, sizeof again.has);
        assert_true(lilac_schedule_equal(&again, &schedule));
        lilac_text_clear(&text);
        lilac_text_clear(&why);
    }
}

static void malformed_texts_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "a schedule has no ''"},
        {"depth=2", "a schedule has no 'depth'"},
        {"distance=2,", "a schedule has no ''"},
        {"distance=2,distance=3", "distance is there twice"},
        {"distance", "distance is a number from 1 to 32, not ''"},
        {"distance=0", "distance is a number from 1 to 32, not '0'"},
        {"distance=33", "distance is a number from 1 to 32, not '33'"},
        {"distance=2x", "distance is a number from 1 to 32, not '2x'"},
        {"distance=99999999999", "distance is a number from 1 to 32"},
        {"rotate=true", "rotate is no or yes, not 'true'"},
        {"copies=2", "copies is first, behind or last, not '2'"},
        {"products=flight", "products is wait, overlap, in_flight or delay, not 'flight'"},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_schedule schedule;
        lilac_text why;
        lilac_text_init(&why);
        assert_false(lilac_schedule_read(&schedule, cases[i].text, &why));
        if (strstr(lilac_text_get(&why), cases[i].why) == NULL) {
            fail_msg("'%s': %s", cases[i].text, lilac_text_get(&why));
        }
        lilac_text_clear(&why);
    }
}

/* ---- requests ------------------------------------------------------------------------------- */

static const char two_loops[] =
    "module { tt.func public @k(%n: i32, %a: tensor<16x16xf16>) {\n"
    "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n"
    "%z = arith.constant dense<0.0> : tensor<16x16xf32>\n"
    "scf.for %o = %c0 to %n step %c1 : i32 {\n"
    "%p = scf.for %i = %c0 to %n step %c1 iter_args(%c = %z) -> (tensor<16x16xf32>) : i32 {\n"
    "%d = tt.dot %a, %a, %c : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>\n"
    "scf.yield %d : tensor<16x16xf32> }\n"
    "%r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %p) -> (tensor<16x16xf32>) : i32 {\n"
    "%d = tt.dot %a, %a, %c : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>\n"
    "scf.yield %d : tensor<16x16xf32> }\n}\n"
    "tt.return } }\n";

typedef struct asked_loops {
    uint32_t count;
    const char *texts[4]; /* NULL: no request */
} asked_loops;

static void find_asked(void *data, lilac_tile_op *op) {
    asked_loops *loops = data;
    if (op->code == LILAC_TILE_OP_SCF_FOR) {
        assert_true(loops->count < 4);
        loops->texts[loops->count++] =
            lilac_tile_find_text(&op->attributes, "lilac.asked_schedule");
    }
}

static void expect_requests(const char *request, const char *more, const char *first,
                            const char *second) {
    lilac_context *context = lilac_context_create();
    const uint32_t source = lilac_source_add(context, "test", two_loops, strlen(two_loops));
    lilac_tile_module *module = lilac_tile_read(context, source);
    asked_loops loops = {.count = 0};
    assert_non_null(module);
    assert_true(lilac_schedule_ask(module, source, request));
    assert_true(more == NULL || lilac_schedule_ask(module, source, more));
    lilac_tile_walk(module->functions->body, find_asked, &loops);
    assert_int_equal(loops.count, 3);
    assert_null(loops.texts[0]); /* the loop around the others */
    const char *const wanted[] = {first, second};
    for (uint32_t i = 0; i < 2; i++) {
        if (wanted[i] == NULL) {
            assert_null(loops.texts[i + 1]);
        } else {
            assert_string_equal(loops.texts[i + 1], wanted[i]);
        }
    }
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void requests_reach_their_loops(void **state) {
    (void)state;
    expect_requests("distance=2", NULL, "distance=2", "distance=2");
    expect_requests("2:distance=3,copies=last", NULL, NULL, "copies=last,distance=3");
    expect_requests("distance=2,rotate=no", "1:distance=4", "rotate=no,distance=4",
                    "rotate=no,distance=2");
}

/* ---- the check ------------------------------------------------------------------------------ */

/* The id of the only diagnostic of the check; NULL: there is none. */
static void expect_verdict(const char *text, const char *request, const char *id) {
    lilac_context *context = lilac_context_create();
    const uint32_t source = lilac_source_add(context, "test", text, strlen(text));
    lilac_tile_module *module = lilac_tile_read(context, source);
    assert_non_null(module);
    const bool good = lilac_schedule_check(module, source, request != NULL ? 1 : 0, &request);
    const lilac_diagnostic *found = lilac_diagnostics(context);
    assert_int_equal(good, id == NULL);
    if (id != NULL) {
        assert_non_null(found);
        assert_string_equal(found->id, id);
        assert_null(found->next);
    }
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

#define LOOP_WITH(attributes)                                                                      \
    "module { tt.func public @k(%n: i32) {\n"                                                      \
    "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n"                                 \
    "scf.for %i = %c0 to %n step %c1 : i32 {\n} {" attributes "}\ntt.return } }\n"

static void requests_that_are_not_carried_out_are_refused(void **state) {
    (void)state;
    expect_verdict(two_loops, NULL, NULL);
    expect_verdict(two_loops, "distance=2", "impossible-schedule"); /* no loop has it */
    expect_verdict(LOOP_WITH("lilac.asked_schedule = \"distance=2\""), NULL, "impossible-schedule");
    expect_verdict(LOOP_WITH("lilac.asked_schedule = \"depth=2\""), NULL, "invalid-schedule");
    expect_verdict(LOOP_WITH("lilac.asked_schedule = \"distance=2\", "
                             "lilac.schedule = \"distance=2,buffers=3\""),
                   NULL, NULL);
    expect_verdict(LOOP_WITH("lilac.asked_schedule = \"distance=2,producer=no\", "
                             "lilac.schedule = \"distance=2,buffers=3\""),
                   "distance=2", NULL);
    expect_verdict(LOOP_WITH("lilac.asked_schedule = \"distance=2\", "
                             "lilac.schedule = \"distance=3,buffers=3\""),
                   NULL, "impossible-schedule");
    expect_verdict(LOOP_WITH("lilac.asked_schedule = \"distance=2,producer=yes\", "
                             "lilac.schedule = \"distance=2,buffers=3\""),
                   NULL, "impossible-schedule");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_read_back), cmocka_unit_test(malformed_texts_are_refused),
        cmocka_unit_test(requests_reach_their_loops),
        cmocka_unit_test(requests_that_are_not_carried_out_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
