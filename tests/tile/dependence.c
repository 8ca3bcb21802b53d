/* Dependences against execution. A loop over random operations with loads and stores of one small
 * buffer is executed in other orders: whatever the queries allow leaves the same bytes; what they
 * forbid because of a value cannot be built; what they forbid because of memory sometimes leaves
 * other bytes. */

#include "support/interpreter.h"
#include "support/tile_harness.h"

#include <lilac/tile_loops.h>

enum { CELLS = 8, CARRIED = 3, MOST_OPS = 12, ITERATIONS = 6, BASE = 4096 };

static void find_loop(void *data, lilac_tile_op *op) {
    lilac_tile_op **loop = data;
    if (op->code == LILAC_TILE_OP_SCF_FOR) {
        *loop = op;
    }
}

static lilac_tile_op *loop_of(const lilac_tile_module *module) {
    lilac_tile_op *loop = NULL;
    lilac_tile_walk(module->functions->body, find_loop, &loop);
    assert_non_null(loop);
    return loop;
}

/* ---- a loop whose dependences are written down ------------------------------------------- */

static const char example[] =
    "module { tt.func @f(%n: i32, %b: i1, %p: !tt.ptr<i32>) {\n"
    "%r:3 = scf.for %i = %n to %n step %n iter_args(%a = %n, %c = %n, %d = %n) "
    "-> (i32, i32, i32) : i32 {\n"
    "  %o0 = tt.load %p : !tt.ptr<i32>\n"
    "  %o1 = arith.addi %a, %o0 : i32\n"
    "  %o2 = scf.if %b -> (i32) {\n"
    "    %t = arith.addi %d, %i : i32\n    scf.yield %t : i32\n"
    "  } else { scf.yield %n : i32 }\n"
    "  tt.store %p, %o1 : !tt.ptr<i32>\n"
    "  %o4 = arith.addi %i, %n : i32\n"
    "  tt.print \"x\" {hex = false, isSigned = array<i32: 1>} : %o2 : i32\n"
    "  scf.yield %o4, %o1, %c : i32, i32, i32\n"
    "}\ntt.return } }";

static void distances_of_an_example(void **state) {
    (void)state;
    static const struct {
        uint32_t from, to, distance, resources;
    } expected[] = {
        {3, 0, 1, LILAC_TILE_GLOBAL_MEMORY},
        {4, 1, 1, 0},
        {0, 1, 0, 0},
        {1, 2, 2, 0}, /* through two carried values, to a use in a region */
        {1, 3, 0, 0},
        {0, 3, 0, LILAC_TILE_GLOBAL_MEMORY},
        {3, 3, 1, LILAC_TILE_GLOBAL_MEMORY},
        {2, 5, 0, 0},
        {5, 5, 1, LILAC_TILE_OUTPUT},
    };
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_tile(context, example);
    lilac_arena *arena = lilac_arena_create();
    lilac_tile_dependences d;
    lilac_tile_find_dependences(&d, arena, loop_of(module));
    assert_int_equal(d.op_count, 6);
    assert_int_equal(d.count, sizeof expected / sizeof *expected);
    for (uint32_t i = 0; i < d.count; i++) {
        assert_int_equal(d.list[i].from, expected[i].from);
        assert_int_equal(d.list[i].to, expected[i].to);
        assert_int_equal(d.list[i].distance, expected[i].distance);
        assert_int_equal(d.list[i].resources, expected[i].resources);
        assert_int_equal(d.list[i].value == NULL, expected[i].resources != 0);
    }
    /* The load cannot be a stage ahead of the store, and the addition can. */
    assert_null(lilac_tile_find_violation(&d, (const uint32_t[]){0, 0, 0, 0, 0, 0}, NULL));
    assert_null(lilac_tile_find_violation(&d, (const uint32_t[]){1, 1, 0, 1, 0, 1}, NULL));
    const lilac_tile_dependence *bad =
        lilac_tile_find_violation(&d, (const uint32_t[]){0, 2, 2, 2, 1, 2}, NULL);
    assert_ptr_equal(bad, &d.list[0]);
    bad = lilac_tile_find_violation(&d, (const uint32_t[]){0, 0, 0, 0, 0, 0},
                                    (const uint32_t[]){0, 1, 2, 3, 4, 2});
    assert_int_equal(bad->to, 5);
    assert_int_equal(bad->distance, 0);
    lilac_arena_destroy(arena);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void moves_and_obstacles(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_tile(context, example);
    lilac_tile_op *ops[7], *op = loop_of(module)->regions[0]->first->first;
    for (uint32_t i = 0; i < 7; i++, op = op->next) {
        ops[i] = op;
    }
    assert_ptr_equal(lilac_tile_move_before(ops[0], ops[6]), ops[1]); /* a value */
    assert_ptr_equal(lilac_tile_move_before(ops[3], ops[0]), ops[1]);
    assert_ptr_equal(lilac_tile_move_before(ops[4], ops[4]), NULL);
    assert_ptr_equal(lilac_tile_move_before(ops[4], ops[0]), NULL); /* to the beginning */
    assert_ptr_equal(ops[0]->previous, ops[4]);
    assert_ptr_equal(lilac_tile_move_before(ops[4], ops[6]), NULL); /* and to the end */
    assert_ptr_equal(ops[6]->previous, ops[4]);
    assert_ptr_equal(lilac_tile_move_before(ops[5], ops[2]), ops[2]); /* across the store */
    assert_ptr_equal(lilac_tile_move_before(ops[6], ops[5]), ops[4]); /* the terminator stays */
    lilac_tile_set_operand(ops[3], 1, module->functions->parameters[0]);
    assert_ptr_equal(lilac_tile_move_before(ops[3], ops[0]), ops[0]); /* memory */
    assert_true(lilac_tile_verify(module, false));
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

/* ---- random loops ------------------------------------------------------------------------ */

typedef struct random_loop {
    lilac_text text;
    uint32_t ops; /* in the body */
} random_loop;

/* The name of a number that is visible before operation `ops` of the body. */
static void put_value(lilac_text *text, lilac_random *random, const bool *has_result,
                      uint32_t ops) {
    uint32_t choice = random_below(random, ops + CARRIED + 1);
    if (choice < ops && has_result[choice]) {
        lilac_text_printf(text, "%%v%u", choice);
    } else if (choice == ops + CARRIED) {
        lilac_text_puts(text, "%i");
    } else {
        lilac_text_printf(text, "%%a%u", choice % CARRIED);
    }
}

static const char constants[] =
    "%z = arith.constant 0 : i32\n%one = arith.constant 1 : i32\n%e = arith.constant 5 : i32\n"
    "%t = arith.constant 6 : i32\n%true = arith.constant true\n";

/* Operations on carried values and on the eight cells of a buffer; the carried values are stored in
 * the cells behind them. A store and the load of a cell have addresses that do not depend on what
 * is loaded, so every order of execution is defined. */
static void generate(random_loop *l, lilac_random *random) {
    static const char *const sums[] = {"addi", "muli", "xori", "subi"};
    bool has_result[MOST_OPS] = {false};
    lilac_text *text = &l->text;
    l->ops = 0;
    lilac_text_reset(text);
    lilac_text_printf(text, "module { tt.func public @k(%%o: !tt.ptr<i32>) {\n%s", constants);
    for (uint32_t c = 0; c < CELLS + CARRIED; c++) {
        lilac_text_printf(text,
                          "%%n%u = arith.constant %u : i32\n"
                          "%%p%u = tt.addptr %%o, %%n%u : !tt.ptr<i32>, i32\n",
                          c, c, c, c);
    }
    lilac_text_puts(text, "%r:3 = scf.for %i = %z to %t step %one "
                          "iter_args(%a0 = %z, %a1 = %one, %a2 = %e) -> (i32, i32, i32) : i32 {\n");
    uint32_t wanted = 2 + random_below(random, MOST_OPS - 2);
    for (; l->ops < wanted; l->ops++) {
        uint32_t kind = random_below(random, 6);
        has_result[l->ops] = kind != 0;
        if (kind == 0) {
            lilac_text_printf(text, "  tt.store %%p%u, ", random_below(random, 2));
            put_value(text, random, has_result, l->ops);
            lilac_text_puts(text, " : !tt.ptr<i32>\n");
        } else if (kind == 1) {
            lilac_text_printf(text, "  %%v%u = tt.load %%p%u : !tt.ptr<i32>\n", l->ops,
                              random_below(random, 2));
        } else if (kind == 2) {
            lilac_text_printf(text, "  %%v%u = scf.if %%true -> (i32) {\n    scf.yield ", l->ops);
            put_value(text, random, has_result, l->ops);
            lilac_text_puts(text, " : i32\n  } else {\n    scf.yield ");
            put_value(text, random, has_result, l->ops);
            lilac_text_puts(text, " : i32\n  }\n");
        } else {
            lilac_text_printf(text, "  %%v%u = arith.%s ", l->ops, sums[random_below(random, 4)]);
            put_value(text, random, has_result, l->ops);
            lilac_text_puts(text, ", ");
            put_value(text, random, has_result, l->ops);
            lilac_text_puts(text, " : i32\n");
        }
    }
    lilac_text_puts(text, "  scf.yield ");
    for (uint32_t i = 0; i < CARRIED; i++) {
        lilac_text_puts(text, i ? ", " : "");
        put_value(text, random, has_result, l->ops);
    }
    lilac_text_puts(text, " : i32, i32, i32\n}\n");
    for (uint32_t i = 0; i < CARRIED; i++) {
        lilac_text_printf(text, "tt.store %%p%u, %%r#%u : !tt.ptr<i32>\n", CELLS + i, i);
    }
    lilac_text_puts(text, "tt.return } }");
}

typedef struct bytes {
    uint32_t cells[CELLS + CARRIED];
} bytes;

static bytes run(const lilac_tile_module *module) {
    bytes b;
    for (uint32_t i = 0; i < CELLS + CARRIED; i++) {
        b.cells[i] = 77 + 13 * i;
    }
    uint64_t argument = BASE;
    interpreter_buffer buffer = {
        .address = BASE, .size = sizeof b.cells, .bytes = (uint8_t *)b.cells};
    interpreter_run r = {.module = module,
                         .arguments = &argument,
                         .argument_count = 1,
                         .grid = {1, 1, 1},
                         .buffers = &buffer,
                         .buffer_count = 1};
    assert_int_equal(interpreter_execute(&r), INTERPRETER_DONE);
    interpreter_buffer_clear(&buffer);
    return b;
}

/* ---- schedules --------------------------------------------------------------------------- */

typedef struct builder {
    lilac_tile_module *module;
    lilac_tile_op *loop;
    lilac_tile_mapping *iterations[ITERATIONS];
    lilac_tile_value *counters[ITERATIONS];
    bool good;
    uint32_t iteration;
} builder;

/* What a value of the body is in an iteration; NULL: it has not been computed. */
static lilac_tile_value *value_in(const builder *b, int iteration, lilac_tile_value *value) {
    const lilac_tile_block *body = b->loop->regions[0]->first;
    while (value->block == body && value->index > 0) {
        uint32_t i = value->index - 1;
        if (iteration-- == 0) {
            return lilac_tile_init(b->loop, i);
        }
        value = lilac_tile_next(b->loop, i);
    }
    if (value->block == body) {
        return b->counters[iteration];
    }
    if (!value->op || value->op->parent != body) {
        return value;
    }
    lilac_tile_value *copy = lilac_tile_mapped(b->iterations[iteration], value);
    return copy == value ? NULL : copy;
}

static void map_operands(void *data, lilac_tile_op *op) {
    builder *b = data;
    for (uint32_t i = 0; i < op->operand_count && b->good; i++) {
        lilac_tile_value *value = op->operands[i].value;
        lilac_tile_value *to = value_in(b, (int)b->iteration, value);
        b->good = to != NULL;
        if (to != NULL && to != value) {
            lilac_tile_map(b->iterations[b->iteration], value, to);
        }
    }
}

/* Executes operation k of iteration n at time n + stage[k]: the loop becomes the copies of its
 * operations in this order. False: an operand is not computed when it is needed. */
static bool execute(lilac_tile_module *module, const lilac_tile_dependences *d,
                    const uint32_t *stage, const uint32_t *by_order) {
    builder b = {.module = module, .loop = loop_of(module), .good = true};
    const lilac_tile_block *entry = module->functions->body->first;
    uint32_t last = 0;
    for (uint32_t k = 0; k < d->op_count; k++) {
        last = stage[k] > last ? stage[k] : last;
    }
    const lilac_tile_op *op = entry->first;
    for (uint32_t n = 0; n < ITERATIONS; n++) {
        b.iterations[n] = lilac_tile_mapping_create();
        while (strncmp(op->results[0].name, "n", 1) != 0) {
            op = op->next;
        }
        b.counters[n] = op->results;
        op = op->next;
    }
    for (uint32_t time = 0; time < ITERATIONS + last; time++) {
        for (uint32_t i = 0; i < d->op_count && b.good; i++) {
            uint32_t k = by_order[i];
            if (time < stage[k] || time - stage[k] >= ITERATIONS) {
                continue;
            }
            b.iteration = time - stage[k];
            map_operands(&b, d->ops[k]);
            for (uint32_t r = 0; r < d->ops[k]->region_count; r++) {
                lilac_tile_walk(d->ops[k]->regions[r], map_operands, &b);
            }
            if (b.good) {
                lilac_tile_insert_before(
                    b.loop, lilac_tile_clone_mapped(module, d->ops[k], b.iterations[b.iteration]));
            }
        }
    }
    for (uint32_t i = 0; i < CARRIED && b.good; i++) {
        lilac_tile_replace_uses(&b.loop->results[i],
                                value_in(&b, ITERATIONS - 1, lilac_tile_next(b.loop, i)));
    }
    if (b.good) {
        lilac_tile_remove(b.loop);
    }
    for (uint32_t n = 0; n < ITERATIONS; n++) {
        lilac_tile_mapping_destroy(b.iterations[n]);
    }
    return b.good;
}

typedef struct tally {
    uint32_t legal, pipelined, values, memory, differ;
} tally;

typedef struct schedule {
    uint32_t stage[MOST_OPS], order[MOST_OPS], by_order[MOST_OPS];
    bool pipelined;
} schedule;

/* Either stages that mostly ascend, and some exchanges; or one operation some stages late. */
static void choose_schedule(schedule *s, lilac_random *random, uint32_t ops) {
    uint32_t stages = 1 + random_below(random, 4), exchanges = random_below(random, 4);
    bool one = random_below(random, 2) != 0;
    s->pipelined = false;
    for (uint32_t k = 0; k < ops; k++) {
        s->stage[k] = random_below(random, 4) ? stages * k / ops : random_below(random, stages);
        s->stage[k] = one ? 0 : s->stage[k];
        s->by_order[k] = k;
    }
    if (one) {
        s->stage[random_below(random, ops)] = random_below(random, 5);
    }
    for (uint32_t i = 0; i < exchanges && !one; i++) {
        uint32_t x = random_below(random, ops), y = random_below(random, ops), k = s->by_order[x];
        s->by_order[x] = s->by_order[y];
        s->by_order[y] = k;
    }
    for (uint32_t i = 0; i < ops; i++) {
        s->order[s->by_order[i]] = i;
        s->pipelined |= s->stage[i] != s->stage[0];
    }
}

/* A schedule can be built exactly if it violates no dependence through a value. */
static bool violates_value(const lilac_tile_dependences *d, const schedule *s) {
    for (uint32_t i = 0; i < d->count; i++) {
        lilac_tile_dependences one = {d->op_count, d->ops, 1, &d->list[i]};
        if (d->list[i].value && lilac_tile_find_violation(&one, s->stage, s->order)) {
            return true;
        }
    }
    return false;
}

static void check_schedule(const random_loop *l, lilac_random *random, const bytes *expected,
                           tally *t) {
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_tile(context, lilac_text_get(&l->text));
    lilac_arena *arena = lilac_arena_create();
    lilac_tile_dependences d;
    schedule s;
    lilac_tile_find_dependences(&d, arena, loop_of(module));
    assert_int_equal(d.op_count, l->ops);
    choose_schedule(&s, random, d.op_count);
    bool legal = lilac_tile_find_violation(&d, s.stage, s.order) == NULL;
    bool by_value = violates_value(&d, &s), same = false;
    assert_int_equal(execute(module, &d, s.stage, s.by_order), !by_value);
    if (!by_value) {
        assert_true(lilac_tile_verify(module, false));
        bytes found = run(module);
        same = memcmp(&found, expected, sizeof found) == 0;
    }
    assert_true(same || !legal);
    t->legal += legal;
    t->pipelined += legal && s.pipelined;
    t->values += by_value;
    t->memory += !legal && !by_value;
    t->differ += !same && !by_value;
    lilac_arena_destroy(arena);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static bytes run_text(const random_loop *l) {
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_tile(context, lilac_text_get(&l->text));
    bytes b = run(module);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
    return b;
}

static void schedules_against_execution(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 4711);
    random_loop l = {0};
    tally t = {0};
    for (uint32_t i = 0, count = scaled(1500); i < count; i++) {
        generate(&l, &random);
        bytes expected = run_text(&l);
        for (uint32_t k = 0; k < 5; k++) {
            check_schedule(&l, &random, &expected, &t);
        }
    }
    lilac_text_clear(&l.text);
    print_message("legal %u (of several stages %u); not legal by values %u, by memory %u; other "
                  "bytes in %u cases\n",
                  t.legal, t.pipelined, t.values, t.memory, t.differ);
    assert_true(t.legal > 300 && t.pipelined > 100 && t.values > 300 && t.differ > 20);
}

/* ---- exchanges --------------------------------------------------------------------------- */

/* Exchanges neighbours of the unrolled loop at random places. `forced`: one more, which the query
 * forbids; returns whether there was such a pair, and whether memory forbids it. */
static bool exchange_all(lilac_tile_module *module, lilac_random *random, bool forced,
                         bool *memory) {
    lilac_tile_block *entry = module->functions->body->first;
    lilac_tile_op *bad = NULL;
    for (uint32_t round = 0; round < 4; round++) {
        for (lilac_tile_op *op = entry->first, *next; op != NULL && op->next != NULL; op = next) {
            next = op->next;
            if (random_below(random, 2)) {
                continue;
            }
            if (lilac_tile_may_exchange(op, next)) {
                assert_null(lilac_tile_move_before(next, op));
            } else if (next != entry->last && (bad == NULL || random_below(random, 3) == 0)) {
                bad = op;
            }
        }
    }
    if (!forced || bad == NULL || bad->next == entry->last ||
        lilac_tile_may_exchange(bad, bad->next)) {
        return false;
    }
    lilac_tile_op *after = bad->next;
    lilac_tile_detach(bad);
    lilac_tile_insert_after(after, bad);
    *memory = lilac_tile_verify(module, false);
    return true;
}

static void exchanges_against_execution(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 815);
    random_loop l = {0};
    uint32_t values = 0, memory = 0, differ = 0, done = 0;
    for (uint32_t i = 0, count = scaled(1500); i < count; i++) {
        generate(&l, &random);
        bytes expected = run_text(&l);
        for (uint32_t forced = 0; forced < 2; forced++) {
            lilac_context *context = lilac_context_create();
            lilac_tile_module *module = read_tile(context, lilac_text_get(&l.text));
            bool removed, by_memory = true;
            assert_null(lilac_tile_peel_first(module, loop_of(module), ITERATIONS, &removed));
            assert_true(removed);
            bool wrong = exchange_all(module, &random, forced, &by_memory);
            if (by_memory) {
                assert_true(lilac_tile_verify(module, false));
                bytes found = run(module);
                bool same = memcmp(&found, &expected, sizeof found) == 0;
                assert_true(same || wrong);
                memory += wrong;
                differ += !same;
            }
            values += wrong && !by_memory;
            done += !wrong;
            lilac_tile_module_destroy(module);
            lilac_context_destroy(context);
        }
    }
    lilac_text_clear(&l.text);
    print_message("%u programs with allowed exchanges; forbidden by values %u, by memory %u; other "
                  "bytes in %u cases\n",
                  done, values, memory, differ);
    assert_true(done > 300 && values > 100 && differ > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_of_an_example),
        cmocka_unit_test(moves_and_obstacles),
        cmocka_unit_test(schedules_against_execution),
        cmocka_unit_test(exchanges_against_execution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
