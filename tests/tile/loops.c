/* Structured control flow by name, and edits of loops. Random programs whose loops are peeled and
 * unrolled leave in the interpreter the same bytes as before; so do programs with additional
 * carried values, and the text without these is the text before.
 *
 * LILAC_TEST_SCALE is the factor by which more programs are tried than usual. */

#include "support/random_programs.h"
#include "support/tile_harness.h"

#include <lilac/tile_loops.h>

enum { MOST_LOOPS = 256 };

/* The lines of the only function, without what is common to all of them. */
static void check_body(const lilac_tile_module *module, const char *expected) {
    lilac_text text = {0};
    assert_true(lilac_tile_verify(module, false));
    lilac_tile_print(&text, module, false);
    const char *body = strstr(lilac_text_get(&text), "{\n    ");
    assert_non_null(body);
    const char *end = strstr(body, "    tt.return");
    assert_non_null(end);
    char *copy = calloc(1, strlen(body) + 1);
    memcpy(copy, body + 2, (size_t)(end - body - 2));
    assert_string_equal(copy, expected);
    free(copy);
    lilac_text_clear(&text);
}

typedef struct loops {
    uint32_t count;
    lilac_tile_op *list[MOST_LOOPS];
} loops;

static void collect(void *data, lilac_tile_op *op) {
    loops *l = data;
    bool is_loop = op->code == LILAC_TILE_OP_SCF_FOR || op->code == LILAC_TILE_OP_SCF_WHILE;
    if (is_loop && l->count < MOST_LOOPS) {
        l->list[l->count++] = op;
    }
}

static lilac_tile_op *only_loop(const lilac_tile_module *module) {
    loops l = {0};
    lilac_tile_walk(module->functions->body, collect, &l);
    assert_int_equal(l.count, 1);
    return l.list[0];
}

/* ---- accessors --------------------------------------------------------------------------- */

static void names_of_operands(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_tile(
        context, "module { tt.func @f(%n: i32, %b: i1, %p: !tt.ptr<i32>) {\n"
                 "%x, %y = scf.while (%c = %n, %d = %b) : (i32, i1) -> (i1, i32) {\n"
                 "  scf.condition(%d) %b, %c : i1, i32\n"
                 "} do {\n^bb0(%e: i1, %f: i32):\n"
                 "  %v = tt.load %p, %e, %f : !tt.ptr<i32>\n"
                 "  %w = tt.atomic_cas acq_rel, gpu, %p, %v, %n : (!tt.ptr<i32>, i32, i32) -> i32\n"
                 "  tt.store %p, %w, %e : !tt.ptr<i32>\n"
                 "  scf.yield %f, %e : i32, i1\n"
                 "}\n"
                 "tt.return } }");
    const lilac_tile_function *f = module->functions;
    lilac_tile_op *loop = only_loop(module);
    lilac_tile_value *n = f->parameters[0], *b = f->parameters[1];
    assert_int_equal(lilac_tile_carried_count(loop), 2);
    assert_ptr_equal(lilac_tile_init(loop, 0), n);
    assert_ptr_equal(lilac_tile_while_condition(loop), lilac_tile_iteration_argument(loop, 1));
    assert_ptr_equal(lilac_tile_passed(loop, 0), b);
    assert_ptr_equal(lilac_tile_passed(loop, 1), lilac_tile_iteration_argument(loop, 0));
    lilac_tile_value *e = lilac_tile_passed_argument(loop, 0);
    assert_ptr_equal(lilac_tile_next(loop, 1), e);
    const lilac_tile_op *store = loop->regions[1]->first->last->previous;
    const lilac_tile_op *condition = lilac_tile_terminator(loop->regions[0]);
    assert_ptr_equal(lilac_tile_receiver(&loop->operands[1]),
                     lilac_tile_iteration_argument(loop, 1));
    assert_null(lilac_tile_receiver(&condition->operands[0]));
    assert_ptr_equal(lilac_tile_receiver(&condition->operands[1]), e);
    assert_null(lilac_tile_receiver(&store->operands[1]));
    assert_ptr_equal(lilac_tile_receiver(&lilac_tile_terminator(loop->regions[1])->operands[0]),
                     lilac_tile_iteration_argument(loop, 0));
    assert_int_equal(lilac_tile_phi_count(loop), 4);
    lilac_tile_phi carried = lilac_tile_phi_get(loop, 1), passed = lilac_tile_phi_get(loop, 2);
    assert_int_equal(carried.source_count, 2);
    assert_int_equal(carried.receiver_count, 1);
    assert_ptr_equal(carried.sources[0], &loop->operands[1]);
    assert_ptr_equal(carried.sources[1]->value, e);
    assert_ptr_equal(carried.receivers[0], lilac_tile_iteration_argument(loop, 1));
    assert_int_equal(passed.source_count, 1);
    assert_int_equal(passed.receiver_count, 2);
    assert_ptr_equal(passed.sources[0], &condition->operands[1]);
    assert_ptr_equal(passed.receivers[0], e);
    assert_ptr_equal(passed.receivers[1], &loop->results[0]);
    assert_int_equal(lilac_tile_phi_count(store), 0);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void branches_have_receivers(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module =
        read_tile(context, "module { tt.func @f(%n: i32, %b: i1) {\n"
                           "cf.cond_br %b, ^a(%n : i32), ^c(%b, %n : i1, i32)\n"
                           "^a(%x: i32):\n  cf.br ^c(%b, %x : i1, i32)\n"
                           "^c(%y: i1, %z: i32):\n  tt.return } }");
    const lilac_tile_block *entry = module->functions->body->first, *a = entry->next;
    const lilac_tile_op *branch = entry->last;
    assert_null(lilac_tile_terminator(module->functions->body));
    assert_int_equal(lilac_tile_branch_first(branch, 0), 1);
    assert_int_equal(lilac_tile_branch_first(branch, 1), 2);
    assert_null(lilac_tile_receiver(&branch->operands[0]));
    assert_ptr_equal(lilac_tile_receiver(&branch->operands[1]), a->arguments[0]);
    assert_ptr_equal(lilac_tile_receiver(&branch->operands[3]), a->next->arguments[1]);
    assert_ptr_equal(lilac_tile_receiver(&a->last->operands[0]), a->next->arguments[0]);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void trip_counts(void **state) {
    (void)state;
    static const struct {
        int lower, upper, step;
        const char *type, *keyword;
        bool known;
        uint64_t count;
    } cases[] = {
        {0, 10, 3, "i32", "", true, 4},
        {0, 9, 3, "i32", "", true, 3},
        {5, 5, 1, "i32", "", true, 0},
        {6, 5, 1, "i32", "", true, 0},
        {0, 4, 0, "i32", "", false, 0},
        {0, 4, -1, "i32", "", false, 0},
        {-128, 127, 1, "i8", "", true, 255},
        {-2147483647, 2147483647, 2147483647, "i32", "", true, 2},
        {1, -1, 1, "i8", "unsigned ", true, 254},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_context *context = lilac_context_create();
        char text[512];
        const char *t = cases[i].type;
        snprintf(text, sizeof text,
                 "module { tt.func @f() {\n%%l = arith.constant %d : %s\n"
                 "%%u = arith.constant %d : %s\n%%s = arith.constant %d : %s\n"
                 "scf.for %s%%i = %%l to %%u step %%s : %s {\n}\ntt.return } }",
                 cases[i].lower, t, cases[i].upper, t, cases[i].step, t, cases[i].keyword, t);
        lilac_tile_module *module = read_tile(context, text);
        uint64_t count = 0;
        assert_int_equal(lilac_tile_trip_count(only_loop(module), &count), cases[i].known);
        assert_int_equal(count, cases[i].count);
        lilac_tile_module_destroy(module);
        lilac_context_destroy(context);
    }
}

/* ---- edits, as text ---------------------------------------------------------------------- */

static const char sum[] =
    "module { tt.func @f(%n: i32, %u: i32) {\n"
    "%c0 = arith.constant 0 : i32\n"
    "%c2 = arith.constant 2 : i32\n"
    "%r = scf.for %i = %c0 to %u step %c2 iter_args(%a = %n) -> (i32) : i32 {\n"
    "  %b = arith.muli %a, %i : i32\n"
    "  scf.yield %b : i32\n"
    "}\n"
    "tt.return } }";

static void carried_values(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_tile(context, sum);
    lilac_tile_op *loop = only_loop(module);
    lilac_tile_value *inits[2] = {lilac_tile_init(loop, 0), lilac_tile_lower_bound(loop)};
    lilac_tile_add_carried(module, loop, 2, inits);
    lilac_tile_set_next(loop, 2, lilac_tile_iteration_argument(loop, 1));
    static const char longer[] =
        "    %c0 = arith.constant 0 : i32\n"
        "    %c2 = arith.constant 2 : i32\n"
        "    %r, %0:2 = scf.for %i = %c0 to %u step %c2 iter_args(%a = %n, %n_0 = %n, %c0_1 "
        "= %c0) -> (i32, i32, i32)  : i32 {\n"
        "      %b = arith.muli %a, %i : i32\n"
        "      scf.yield %b, %n_0, %n_0 : i32, i32, i32\n"
        "    }\n";
    check_body(module, longer);
    /* Argument 0 is used by %b, and argument 1 by what the loop yields as value 2. */
    assert_string_equal(lilac_tile_remove_phis(module, loop, (const bool[]){true, false, true}),
                        "the argument is used");
    assert_string_equal(lilac_tile_remove_phis(module, loop, (const bool[]){false, true, false}),
                        "the argument is used");
    check_body(module, longer);
    assert_null(lilac_tile_remove_phis(module, loop, (const bool[]){false, true, true}));
    check_body(module, "    %c0 = arith.constant 0 : i32\n"
                       "    %c2 = arith.constant 2 : i32\n"
                       "    %r = scf.for %i = %c0 to %u step %c2 iter_args(%a = %n) -> (i32)  : "
                       "i32 {\n"
                       "      %b = arith.muli %a, %i : i32\n"
                       "      scf.yield %b : i32\n"
                       "    }\n");
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void phis_of_if_and_while(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module =
        read_tile(context, "module { tt.func @f(%n: i32, %b: i1) {\n"
                           "%x, %y = scf.while (%c = %n, %d = %b) : (i32, i1) -> (i1, i32) {\n"
                           "  scf.condition(%d) %b, %n : i1, i32\n"
                           "} do {\n^bb0(%e: i1, %f: i32):\n  scf.yield %f, %b : i32, i1\n}\n"
                           "%i, %j = scf.if %b -> (i32, i1) { scf.yield %n, %b : i32, i1 }\n"
                           "else { scf.yield %y, %b : i32, i1 }\n"
                           "scf.if %b { }\n"
                           "tt.return } }");
    lilac_tile_op *loop = only_loop(module), *branch = loop->next;
    /* The else region uses %y; the second region yields %f. */
    assert_string_equal(
        lilac_tile_remove_phis(module, loop, (const bool[]){false, false, false, true}),
        "the argument is used");
    assert_string_equal(
        lilac_tile_remove_phis(module, loop, (const bool[]){true, false, false, true}),
        "the result is used");
    assert_null(lilac_tile_remove_phis(module, branch, (const bool[]){true, false}));
    assert_null(lilac_tile_remove_phis(module, loop, (const bool[]){true, false, true, true}));
    lilac_tile_value *n = module->functions->parameters[0], *b = module->functions->parameters[1];
    lilac_tile_add_if_results(module, branch, 1, &n, &n);
    lilac_tile_add_if_results(module, branch->next, 1, &b, &b);
    check_body(module, "    scf.while (%d = %b) : (i1) -> () {\n"
                       "      scf.condition(%d)\n"
                       "    } do {\n"
                       "      scf.yield %b : i1\n"
                       "    }\n"
                       "    %j, %0 = scf.if %b -> (i1, i32) {\n"
                       "      scf.yield %b, %n : i1, i32\n"
                       "    } else {\n"
                       "      scf.yield %b, %n : i1, i32\n"
                       "    }\n"
                       "    %1 = scf.if %b -> (i1) {\n"
                       "      scf.yield %b : i1\n"
                       "    } else {\n"
                       "      scf.yield %b : i1\n"
                       "    }\n");
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

/* Peels or unrolls where that is possible; returns whether the loop was removed. */
static bool peel_first(lilac_tile_module *module, lilac_tile_op *loop, uint32_t count) {
    bool removed;
    assert_null(lilac_tile_peel_first(module, loop, count, &removed));
    return removed;
}

static bool peel_last(lilac_tile_module *module, lilac_tile_op *loop) {
    bool removed;
    assert_null(lilac_tile_peel_last(module, loop, &removed));
    return removed;
}

static bool unroll(lilac_tile_module *module, lilac_tile_op *loop, uint32_t factor) {
    bool removed;
    assert_null(lilac_tile_unroll(module, loop, factor, &removed));
    return removed;
}

static void peeled(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_tile(context, sum);
    assert_false(peel_first(module, only_loop(module), 1));
    check_body(module, "    %c0 = arith.constant 0 : i32\n"
                       "    %c2 = arith.constant 2 : i32\n"
                       "    %0 = arith.cmpi slt, %c0, %u : i32\n"
                       "    %1:2 = scf.if %0 -> (i32, i32) {\n"
                       "      %b = arith.muli %n, %c0 : i32\n"
                       "      %2 = arith.subi %u, %c0 : i32\n"
                       "      %3 = arith.cmpi ult, %c2, %2 : i32\n"
                       "      %4 = arith.addi %c0, %c2 : i32\n"
                       "      %5 = arith.select %3, %4, %u : i32\n"
                       "      scf.yield %b, %5 : i32, i32\n"
                       "    } else {\n"
                       "      scf.yield %n, %c0 : i32, i32\n"
                       "    }\n"
                       "    %r = scf.for %i = %1#1 to %u step %c2 iter_args(%a = %1#0) -> (i32)  : "
                       "i32 {\n"
                       "      %b = arith.muli %a, %i : i32\n"
                       "      scf.yield %b : i32\n"
                       "    }\n");
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void last_peeled(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_tile(context, sum);
    assert_false(peel_last(module, only_loop(module)));
    check_body(module, "    %c0 = arith.constant 0 : i32\n"
                       "    %c2 = arith.constant 2 : i32\n"
                       "    %0 = arith.cmpi slt, %c0, %u : i32\n"
                       "    %1 = arith.subi %u, %c0 : i32\n"
                       "    %2 = arith.constant 1 : i32\n"
                       "    %3 = arith.subi %1, %2 : i32\n"
                       "    %4 = arith.divui %3, %c2 : i32\n"
                       "    %5 = arith.muli %4, %c2 : i32\n"
                       "    %6 = arith.addi %c0, %5 : i32\n"
                       "    %7 = arith.select %0, %6, %c0 : i32\n"
                       "    %r = scf.for %i = %c0 to %7 step %c2 iter_args(%a = %n) -> (i32)  : "
                       "i32 {\n"
                       "      %b = arith.muli %a, %i : i32\n"
                       "      scf.yield %b : i32\n"
                       "    }\n"
                       "    %8 = scf.if %0 -> (i32) {\n"
                       "      %b = arith.muli %r, %6 : i32\n"
                       "      scf.yield %b : i32\n"
                       "    } else {\n"
                       "      scf.yield %r : i32\n"
                       "    }\n");
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void unrolled(void **state) {
    (void)state;
    bool removed;
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_tile(context, sum);
    lilac_tile_op *loop = only_loop(module);
    assert_false(unroll(module, loop, 1));
    assert_false(unroll(module, loop, 2));
    const lilac_tile_op *rest = loop->next;
    assert_int_equal(rest->code, LILAC_TILE_OP_SCF_FOR);
    assert_ptr_equal(lilac_tile_lower_bound(rest), lilac_tile_upper_bound(loop));
    assert_ptr_equal(lilac_tile_init(rest, 0), loop->results);
    assert_int_equal(loop->regions[0]->first->last->previous->code, LILAC_TILE_OP_ARITH_MULI);
    assert_true(lilac_tile_verify(module, false));
    assert_null(lilac_tile_unroll(module, loop, 2, &removed));
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

/* Each refusal leaves the text as it was. */
static void refusals(void **state) {
    (void)state;
    static const char counted[] = "module { tt.func @f(%n: i32) {\n"
                                  "%c0 = arith.constant 0 : i32\n"
                                  "%s = arith.constant STEP : i32\n"
                                  "scf.for %i = %c0 to %n step %s : i32 {\n}\ntt.return } }";
    static const char other[] = "module { tt.func @f(%b: i1) {\n"
                                "scf.while : () -> () {\n  scf.condition(%b)\n"
                                "} do {\n  scf.yield\n}\ntt.return } }";
    static const struct {
        const char *step, *first, *last, *unroll;
        uint32_t factor;
    } cases[] = {
        {NULL, "scf.while has no induction variable", "scf.while has no induction variable",
         "scf.while has no induction variable", 2},
        {"0   ", NULL, "the step is not a positive constant", "the step is not a positive constant",
         2},
        {"-1  ", NULL, "the step is not a positive constant", "the step is not a positive constant",
         2},
        {"1   ", NULL, NULL, "the factor is 0", 0},
        {"2   ", NULL, NULL, "the factor times the step exceeds the type of the induction variable",
         1U << 30},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_context *context = lilac_context_create();
        char text[512];
        bool removed;
        snprintf(text, sizeof text, "%s", cases[i].step ? counted : other);
        if (cases[i].step) {
            memcpy(strstr(text, "STEP"), cases[i].step, 4);
        }
        lilac_tile_module *module = read_tile(context, text);
        lilac_tile_op *loop = only_loop(module);
        lilac_text before = {0}, after = {0};
        lilac_tile_print(&before, module, false);
        assert_string_equal(lilac_tile_unroll(module, loop, cases[i].factor, &removed),
                            cases[i].unroll);
        if (cases[i].last) {
            assert_string_equal(lilac_tile_peel_last(module, loop, &removed), cases[i].last);
        }
        if (cases[i].first) {
            assert_string_equal(lilac_tile_peel_first(module, loop, 1, &removed), cases[i].first);
        }
        lilac_tile_print(&after, module, false);
        assert_string_equal(lilac_text_get(&after), lilac_text_get(&before));
        lilac_text_clear(&before);
        lilac_text_clear(&after);
        lilac_tile_module_destroy(module);
        lilac_context_destroy(context);
    }
}

/* A loop whose trip count is known: whole, with a rest, and without one. */
static void unrolled_with_constants(void **state) {
    (void)state;
    static const struct {
        uint32_t upper, factor, loops, products;
    } cases[] = {{6, 3, 0, 3}, {6, 4, 0, 3}, {12, 3, 1, 3}, {14, 3, 2, 4}, {0, 1, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_context *context = lilac_context_create();
        char text[1024];
        snprintf(text, sizeof text, "%s", sum);
        char *at = strstr(text, "%c0 to %u");
        at[8] = 'v';
        lilac_text whole = {0};
        at = strstr(text, "%c2 =");
        lilac_text_printf(&whole, "%.*s%%v = arith.constant %u : i32\n%s", (int)(at - text), text,
                          cases[i].upper, at);
        lilac_tile_module *module = read_tile(context, lilac_text_get(&whole));
        assert_int_equal(unroll(module, only_loop(module), cases[i].factor), cases[i].loops == 0);
        assert_true(lilac_tile_verify(module, false));
        lilac_text out = {0};
        lilac_tile_print(&out, module, false);
        uint32_t found[2] = {0, 0};
        static const char *const words[2] = {"scf.for", "arith.muli"};
        for (uint32_t k = 0; k < 2; k++) {
            for (const char *s = lilac_text_get(&out); (s = strstr(s, words[k])) != NULL; s++) {
                found[k]++;
            }
        }
        assert_int_equal(found[0], cases[i].loops);
        assert_int_equal(found[1], cases[i].products);
        lilac_text_clear(&out);
        lilac_text_clear(&whole);
        lilac_tile_module_destroy(module);
        lilac_context_destroy(context);
    }
}

/* An argument that is mapped to a value of the same body: mapped once, not twice. */
static void clones_map_once(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_tile(
        context, "module { tt.func @f(%n: i32, %b: i1) {\n"
                 "%r = scf.for %i = %n to %n step %n iter_args(%a = %n) -> (i32) : i32 {\n"
                 "  %x = arith.addi %a, %i : i32\n"
                 "  %y = scf.if %b -> (i32) { scf.yield %a : i32 }\n"
                 "  else { scf.yield %x : i32 }\n"
                 "  scf.yield %x : i32\n"
                 "}\ntt.return } }");
    lilac_tile_op *loop = only_loop(module);
    lilac_tile_block *body = loop->regions[0]->first;
    lilac_tile_value *x = lilac_tile_next(loop, 0);
    lilac_tile_mapping *mapping = lilac_tile_mapping_create();
    lilac_tile_map(mapping, lilac_tile_iteration_argument(loop, 0), x);
    lilac_tile_clone_body(module, body, mapping, body->last);
    const lilac_tile_op *copy = body->last->previous;
    assert_true(lilac_tile_verify(module, false));
    assert_ptr_equal(lilac_tile_yielded(copy, 0, 0), x);
    assert_ptr_equal(lilac_tile_yielded(copy, 1, 0), copy->previous->results);
    assert_ptr_equal(lilac_tile_mapped(mapping, x), copy->previous->results);
    assert_ptr_equal(lilac_tile_mapped(mapping, loop->results), loop->results);
    lilac_tile_mapping_destroy(mapping);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

/* ---- induction variables at the ends of their range -------------------------------------- */

enum { MOST_FACTOR = 5, PEELS = 8 };

/* A loop of i8. It stores a hash of its induction variables, and their number. */
static lilac_tile_module *read_ends(lilac_context *context, const char *keyword, int step) {
    char text[1024];
    snprintf(text, sizeof text,
             "module { tt.func public @k(%%o: !tt.ptr<i8>, %%l: i8, %%u: i8) {\n"
             "%%c0 = arith.constant 0 : i8\n%%c1 = arith.constant 1 : i8\n"
             "%%c7 = arith.constant 7 : i8\n%%s = arith.constant %d : i8\n"
             "%%r:2 = scf.for %s%%i = %%l to %%u step %%s iter_args(%%a = %%c0, %%n = %%c0) "
             "-> (i8, i8) : i8 {\n"
             "  %%b = arith.muli %%a, %%c7 : i8\n  %%c = arith.addi %%b, %%i : i8\n"
             "  %%m = arith.addi %%n, %%c1 : i8\n  scf.yield %%c, %%m : i8, i8\n}\n"
             "%%p = tt.addptr %%o, %%c1 : !tt.ptr<i8>, i8\n"
             "tt.store %%o, %%r#0 : !tt.ptr<i8>\ntt.store %%p, %%r#1 : !tt.ptr<i8>\n"
             "tt.return } }",
             step, keyword);
    return read_tile(context, text);
}

static uint16_t run_ends(const lilac_tile_module *module, uint8_t lower, uint8_t upper) {
    uint16_t result = 0;
    uint64_t arguments[3] = {4096, lower, upper};
    interpreter_buffer buffer = {.address = 4096, .size = 2, .bytes = (uint8_t *)&result};
    interpreter_run run = {.module = module,
                           .arguments = arguments,
                           .argument_count = 3,
                           .grid = {1, 1, 1},
                           .buffers = &buffer,
                           .buffer_count = 1};
    assert_int_equal(interpreter_execute(&run), INTERPRETER_DONE);
    interpreter_buffer_clear(&buffer);
    return result;
}

/* Runs the loop with all pairs of bounds; writes the results, or compares with them. */
static void run_bounds(const lilac_tile_module *module, bool compares, uint16_t *results) {
    static const uint8_t bounds[] = {0, 2, 6, 126, 127, 128, 254, 255};
    assert_true(lilac_tile_verify(module, false));
    for (size_t i = 0; i < sizeof bounds; i++) {
        for (size_t k = 0; k < sizeof bounds; k++, results++) {
            uint16_t found = run_ends(module, bounds[i], bounds[k]);
            if (compares) {
                assert_int_equal(found, *results);
            }
            *results = found;
        }
    }
}

/* Peels and unrolls a loop whose bounds are not known. */
static void ends_of_the_range(lilac_context *context, const char *keyword, int step) {
    uint16_t results[64];
    lilac_tile_module *plain = read_ends(context, keyword, step);
    run_bounds(plain, false, results);
    lilac_tile_module_destroy(plain);
    for (uint32_t peel = 0; peel < PEELS; peel++) {
        for (uint32_t factor = 1; factor <= MOST_FACTOR; factor++) {
            lilac_tile_module *module = read_ends(context, keyword, step);
            lilac_tile_op *loop = only_loop(module);
            bool removed;
            assert_false(peel_first(module, loop, peel & 3));
            assert_false(peel & 4 && peel_last(module, loop));
            const char *why = lilac_tile_unroll(module, loop, factor, &removed);
            assert_int_equal(why != NULL, step * (int)factor > INT8_MAX);
            run_bounds(module, true, results);
            lilac_tile_module_destroy(module);
        }
    }
}

static void induction_variables_do_not_overflow(void **state) {
    (void)state;
    static const int steps[] = {1, 3, 64, 127};
    lilac_context *context = lilac_context_create();
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        ends_of_the_range(context, "", steps[i]);
        ends_of_the_range(context, "unsigned ", steps[i]);
    }
    lilac_context_destroy(context);
}

/* ---- attributes and locations ------------------------------------------------------------ */

static void check_loop_kept(const lilac_tile_op *loop, const lilac_tile_op *model) {
    assert_int_equal(loop->code, LILAC_TILE_OP_SCF_FOR);
    assert_int_equal(lilac_tile_find_integer(&loop->attributes, "tt.num_stages", 0), 3);
    assert_int_equal(loop->location, model->location);
    assert_int_equal(loop->position.offset, model->position.offset);
    for (const lilac_tile_op *op = loop->regions[0]->first->first; op != NULL; op = op->next) {
        if (op->code == LILAC_TILE_OP_ARITH_MULI) {
            const lilac_tile_op *first = model->regions[0]->first->first;
            assert_int_equal(op->location, first->location);
            assert_int_equal(lilac_tile_find_integer(&op->attributes, "mark", 0), 8);
        }
    }
}

static void attributes_and_locations_stay(void **state) {
    (void)state;
    static const char text[] =
        "module { tt.func @f(%n: i32, %u: i32) {\n"
        "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n"
        "%r = scf.for %i = %c0 to %u step %c1 iter_args(%a = %n) -> (i32) : i32 {\n"
        "  %b = arith.muli %a, %i {mark = 8 : i32} : i32 loc(\"body.py\":7:3)\n"
        "  scf.yield %b : i32\n"
        "} {tt.num_stages = 3 : i32} loc(\"loop.py\":5:1)\n"
        "tt.return } }";
    lilac_context *context = lilac_context_create();
    lilac_tile_module *plain = read_tile(context, text), *module = read_tile(context, text);
    const lilac_tile_op *model = only_loop(plain);
    lilac_tile_op *loop = only_loop(module);
    lilac_tile_value *init = lilac_tile_init(loop, 0);
    assert_true(model->location != 0);
    lilac_tile_add_carried(module, loop, 1, &init);
    check_loop_kept(loop, model);
    assert_null(lilac_tile_remove_phis(module, loop, (const bool[]){false, true}));
    assert_false(peel_first(module, loop, 1));
    assert_int_equal(loop->previous->location, model->location);
    assert_false(peel_last(module, loop));
    assert_int_equal(loop->next->location, model->location);
    assert_false(unroll(module, loop, 2));
    check_loop_kept(loop, model);
    check_loop_kept(loop->next, model);
    lilac_tile_module_destroy(module);
    lilac_tile_module_destroy(plain);
    lilac_context_destroy(context);
}

/* ---- random programs --------------------------------------------------------------------- */

/* Peels and unrolls, inner loops first; returns how many loops it changed. */
static uint32_t change_loops(lilac_tile_module *module, program_choices *choices) {
    uint32_t changed = 0;
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        loops l = {0};
        lilac_tile_walk(f->body, collect, &l);
        while (l.count > 0) {
            lilac_tile_op *loop = l.list[--l.count];
            uint32_t first = program_below(choices, 3), factor = 1 + program_below(choices, 4);
            bool last = program_below(choices, 2) != 0;
            if (loop->code != LILAC_TILE_OP_SCF_FOR) {
                continue;
            }
            if (!peel_first(module, loop, first) && !(last && peel_last(module, loop))) {
                (void)unroll(module, loop, factor);
            }
            changed++;
        }
    }
    return changed;
}

/* Adds carried values to every loop, which begin with another one and are passed around. */
static uint32_t lengthen_loops(lilac_tile_module *module) {
    uint32_t changed = 0;
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        loops l = {0};
        lilac_tile_walk(f->body, collect, &l);
        for (uint32_t i = 0; i < l.count; i++) {
            uint32_t count = lilac_tile_carried_count(l.list[i]);
            lilac_tile_value *init = lilac_tile_init(l.list[i], 0);
            lilac_tile_add_carried(module, l.list[i], 2, (lilac_tile_value *[]){init, init});
            lilac_tile_value *argument = lilac_tile_iteration_argument(l.list[i], count);
            if (l.list[i]->code == LILAC_TILE_OP_SCF_FOR) {
                lilac_tile_set_next(l.list[i], count + 1, argument);
                lilac_tile_set_next(l.list[i], count, lilac_tile_next(l.list[i], 0));
            }
            changed++;
        }
    }
    return changed;
}

static void shorten_loops(lilac_tile_module *module) {
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        loops l = {0};
        lilac_tile_walk(f->body, collect, &l);
        for (uint32_t i = 0; i < l.count; i++) {
            bool removed[64] = {false};
            lilac_tile_op *loop = l.list[i];
            uint32_t carried = lilac_tile_carried_count(loop), all = lilac_tile_phi_count(loop);
            assert_true(all <= 64);
            removed[carried - 1] = removed[carried - 2] = removed[all - 1] = removed[all - 2] =
                true;
            assert_null(lilac_tile_remove_phis(module, loop, removed));
        }
    }
}

static void shuffle_region(lilac_tile_region *region, program_choices *choices, uint32_t *moved);

/* Moves operations to places that the effects and the values allow; counts the moves. */
static void shuffle_block(lilac_tile_block *block, program_choices *choices, uint32_t *moved) {
    for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
        next = op->next;
        for (uint32_t i = 0; i < op->region_count; i++) {
            shuffle_region(op->regions[i], choices, moved);
        }
        lilac_tile_op *place = op;
        for (uint32_t steps = program_below(choices, 6); steps > 0 && place->previous; steps--) {
            place = place->previous;
        }
        *moved += place != op && lilac_tile_move_before(op, place) == NULL;
    }
}

static void shuffle_region(lilac_tile_region *region, program_choices *choices, uint32_t *moved) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        shuffle_block(block, choices, moved);
    }
}

static void check_same(const program *p, const lilac_tile_module *module, uint64_t seed,
                       uint32_t *same) {
    lilac_text text = {0};
    assert_true(lilac_tile_verify(module, false));
    program_comparison j = program_compare(p, module);
    *same += j.outcome == PROGRAM_SAME;
    if (j.outcome == PROGRAM_WRONG) {
        lilac_tile_print(&text, module, false);
        fprintf(stderr, "seed %llu: %s\n%s\nbecame\n%s\n", (unsigned long long)seed, j.why,
                lilac_text_get(&p->text), lilac_text_get(&text));
        fail();
    }
    lilac_text_clear(&text);
}

static void random_programs(void **state) {
    (void)state;
    uint32_t count = scaled(120), changed = 0, lengthened = 0, same = 0, moved = 0;
    for (uint64_t seed = 1; seed <= count; seed++) {
        program p;
        program_choices choices;
        program_choices_seed(&choices, seed);
        program_generate(&p, &choices, UINT64_MAX, 24);
        lilac_context *context = lilac_context_create();
        lilac_tile_module *module = read_tile(context, lilac_text_get(&p.text));
        lilac_text before = {0}, after = {0};
        lilac_tile_print(&before, module, false);
        lengthened += lengthen_loops(module);
        check_same(&p, module, seed, &same);
        shorten_loops(module);
        lilac_tile_print(&after, module, false);
        assert_string_equal(lilac_text_get(&after), lilac_text_get(&before));
        changed += change_loops(module, &choices);
        check_same(&p, module, seed, &same);
        for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
            shuffle_region(f->body, &choices, &moved);
        }
        check_same(&p, module, seed, &same);
        lilac_text_clear(&before);
        lilac_text_clear(&after);
        lilac_tile_module_destroy(module);
        lilac_context_destroy(context);
        program_clear(&p);
    }
    print_message(
        "%u programs: %u loops lengthened, %u peeled and unrolled, %u operations moved, %u of %u "
        "runs compared\n",
        count, lengthened, changed, moved, same, 3 * count);
    assert_true(changed > count / 4 && lengthened > changed && moved > count && same > 2 * count);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_operands),
        cmocka_unit_test(branches_have_receivers),
        cmocka_unit_test(trip_counts),
        cmocka_unit_test(carried_values),
        cmocka_unit_test(phis_of_if_and_while),
        cmocka_unit_test(peeled),
        cmocka_unit_test(last_peeled),
        cmocka_unit_test(unrolled),
        cmocka_unit_test(refusals),
        cmocka_unit_test(unrolled_with_constants),
        cmocka_unit_test(clones_map_once),
        cmocka_unit_test(induction_variables_do_not_overflow),
        cmocka_unit_test(attributes_and_locations_stay),
        cmocka_unit_test(random_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
