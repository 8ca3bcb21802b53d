/* Random programs that pass buffers through loops, branches and selects, on the simulator and
 * interpreted here.
 *
 * A program has some buffers of 128 f32 and one tensor, the accumulator. Its statements load into
 * the accumulator, store it, choose among buffers, allocate, and nest:
 *
 *     load     acc = acc / 2 + buffer            if      bodies yield buffers
 *     store    buffer = acc + 1                  for     the body yields buffers
 *     select   buffer = counter odd ? a : b      while   the condition passes buffers on, too
 *     alloc    a new buffer with acc
 *
 * The buffers are allocations, views of two rings of three, or the halves of swizzled buffers. A
 * program that allocates in a loop may be refused, if the loop passes on buffers of two
 * iterations. */
#include "support/lower_harness.h"

enum {
    COUNT = 128,
    MOST_VARIABLES = 400,
    MOST_BUFFERS = 4000,
    FIRST = 6,
    STORED = 2,
    MOST_CARRIED = 3
};

typedef enum statement_kind { LOAD, STORE, SELECT, ALLOC, IF, FOR, WHILE, KINDS } statement_kind;

/* Buffers are numbered variables. Of IF, `yields[0]` and `yields[1]` are those of the branches; of
 * loops, `yields[0]` is what the body yields, `yields[1]` what the condition of WHILE passes on. */
typedef struct statement {
    statement_kind kind;
    uint32_t number; /* for names */
    uint32_t x, y, result, iterations, count;
    uint32_t inits[MOST_CARRIED], first[MOST_CARRIED], second[MOST_CARRIED], results[MOST_CARRIED];
    uint32_t yields[2][MOST_CARRIED];
    struct statement *bodies[2], *next;
} statement;

typedef struct program {
    lilac_random random;
    lilac_arena *arena;
    uint32_t variables, statements;
    bool allocates; /* in a loop */
    uint32_t form;  /* of the buffers: allocations, views of rings, halves */
    /* The interpreter. */
    float memory[MOST_BUFFERS][COUNT], acc[COUNT];
    uint32_t buffers, place[MOST_VARIABLES];
    int64_t n;
} program;

/* ---- generation ---------------------------------------------------------------------------- */

typedef struct scope {
    uint32_t count;
    uint32_t list[MOST_VARIABLES];
} scope;

static uint32_t pick(program *p, const scope *s) {
    /* Late variables are more interesting. */
    uint32_t a = random_below(&p->random, s->count), b = random_below(&p->random, s->count);
    return s->list[a > b ? a : b];
}

static uint32_t add(program *p, scope *s) {
    assert_true(p->variables < MOST_VARIABLES);
    s->list[s->count++] = p->variables;
    return p->variables++;
}

static statement *generate(program *p, scope *s, uint32_t depth, bool in_loop);

static void pick_all(program *p, const scope *s, uint32_t count, uint32_t *list) {
    for (uint32_t i = 0; i < count; i++) {
        list[i] = pick(p, s);
    }
}

static void generate_nested(program *p, statement *t, scope *s, uint32_t depth, bool in_loop) {
    scope inside = *s;
    t->count = random_below(&p->random, MOST_CARRIED + 1);
    t->iterations = random_below(&p->random, 5); /* 4: n */
    switch (t->kind) {
    case IF:
        for (uint32_t side = 0; side < 2; side++) {
            inside = *s;
            t->bodies[side] = generate(p, &inside, depth + 1, in_loop);
            pick_all(p, &inside, t->count, t->yields[side]);
        }
        break;
    case FOR:
    default:
        pick_all(p, s, t->count, t->inits);
        for (uint32_t i = 0; i < t->count; i++) {
            t->first[i] = add(p, &inside);
        }
        if (t->kind == WHILE) {
            pick_all(p, &inside, t->count, t->yields[1]);
            inside = *s;
            for (uint32_t i = 0; i < t->count; i++) {
                t->second[i] = add(p, &inside);
            }
        }
        t->bodies[0] = generate(p, &inside, depth + 1, true);
        pick_all(p, &inside, t->count, t->yields[0]);
        break;
    }
    for (uint32_t i = 0; i < t->count; i++) {
        t->results[i] = add(p, s);
    }
}

static statement *generate(program *p, scope *s, uint32_t depth, bool in_loop) {
    statement *head = NULL, **at = &head;
    for (uint32_t count = 1 + random_below(&p->random, 5); count > 0 && p->statements < 40;
         count--) {
        statement *t = lilac_arena_new(p->arena, statement);
        *at = t;
        at = &t->next;
        t->number = p->statements++;
        t->kind = (statement_kind)random_below(&p->random, depth < 3 ? KINDS : IF);
        t->x = pick(p, s);
        t->y = pick(p, s);
        if (p->form != 0 && t->kind == ALLOC) {
            t->kind = LOAD;
        } else if (p->form == 0 && in_loop && random_below(&p->random, 3) == 0) {
            t->kind = ALLOC;
        }
        p->allocates |= t->kind == ALLOC && in_loop;
        if (t->kind >= IF) {
            generate_nested(p, t, s, depth, in_loop);
        } else if (t->kind == SELECT || t->kind == ALLOC) {
            t->result = add(p, s);
        }
    }
    return head;
}

/* ---- text ---------------------------------------------------------------------------------- */

#define TENSOR "tensor<128xf32, #b>"

static const char *const types[3] = {"!ttg.memdesc<128xf32, #s, #smem, mutable>",
                                     "!ttg.memdesc<128xf32, #s, #smem, mutable, 3x128>",
                                     "!ttg.memdesc<128xf32, #s, #smem, mutable, 256>"};

typedef struct writer {
    lilac_text *out;
    const char *type;
    uint32_t next; /* name of an accumulator */
} writer;

/* "(M, M, T)" with what precedes the buffers. */
static void put_types(const writer *w, uint32_t count, const char *before) {
    lilac_text_printf(w->out, "%s", before);
    for (uint32_t i = 0; i < count; i++) {
        lilac_text_printf(w->out, "%s, ", w->type);
    }
    lilac_text_puts(w->out, TENSOR);
}

static void put_list(const writer *w, uint32_t count, const uint32_t *list, uint32_t acc) {
    for (uint32_t i = 0; i < count; i++) {
        lilac_text_printf(w->out, "%%m%u, ", list[i]);
    }
    lilac_text_printf(w->out, "%%a%u", acc);
}

static void put_inits(const writer *w, const statement *t, uint32_t inside, uint32_t acc) {
    for (uint32_t i = 0; i < t->count; i++) {
        lilac_text_printf(w->out, "%%m%u = %%m%u, ", t->first[i], t->inits[i]);
    }
    lilac_text_printf(w->out, "%%a%u = %%a%u) : ", inside, acc);
}

static uint32_t put_block(writer *w, const statement *t, uint32_t acc, const char *counter);

static void put_bound(const writer *w, const statement *t) {
    lilac_text_printf(w->out, t->iterations < 4 ? "%%c%u" : "%%n", t->iterations);
}

static void put_condition(const writer *w, const statement *t, const char *counter) {
    lilac_text_printf(w->out,
                      "%%g%u = arith.andi %s, %%c1 : i32\n%%t%u = arith.cmpi eq, %%g%u, %%c1 : "
                      "i32\n",
                      t->number, counter, t->number, t->number);
}

static uint32_t put_if(writer *w, const statement *t, uint32_t acc, const char *counter) {
    uint32_t result = w->next++;
    put_condition(w, t, counter);
    put_list(w, t->count, t->results, result);
    lilac_text_printf(w->out, " = scf.if %%t%u", t->number);
    put_types(w, t->count, " -> (");
    for (uint32_t side = 0; side < 2; side++) {
        lilac_text_puts(w->out, side == 0 ? ") {\n" : "} else {\n");
        uint32_t last = put_block(w, t->bodies[side], acc, counter);
        lilac_text_puts(w->out, "scf.yield ");
        put_list(w, t->count, t->yields[side], last);
        put_types(w, t->count, " : ");
        lilac_text_puts(w->out, "\n");
    }
    lilac_text_puts(w->out, "}\n");
    return result;
}

static uint32_t put_for(writer *w, const statement *t, uint32_t acc) {
    uint32_t result = w->next++, inside = w->next++;
    char name[32];
    (void)snprintf(name, sizeof name, "%%i%u", t->number);
    put_list(w, t->count, t->results, result);
    lilac_text_printf(w->out, " = scf.for %s = %%c0 to ", name);
    put_bound(w, t);
    lilac_text_puts(w->out, " step %c1 iter_args(");
    for (uint32_t i = 0; i < t->count; i++) {
        lilac_text_printf(w->out, "%%m%u = %%m%u, ", t->first[i], t->inits[i]);
    }
    lilac_text_printf(w->out, "%%a%u = %%a%u)", inside, acc);
    put_types(w, t->count, " -> (");
    lilac_text_puts(w->out, ") : i32 {\n");
    uint32_t last = put_block(w, t->bodies[0], inside, name);
    lilac_text_puts(w->out, "scf.yield ");
    put_list(w, t->count, t->yields[0], last);
    put_types(w, t->count, " : ");
    lilac_text_puts(w->out, "\n}\n");
    return result;
}

static uint32_t put_while(writer *w, const statement *t, uint32_t acc) {
    uint32_t result = w->next++, before = w->next++, after = w->next++;
    char name[32];
    (void)snprintf(name, sizeof name, "%%i%u", t->number);
    lilac_text_printf(w->out, "%%w%u, ", t->number);
    put_list(w, t->count, t->results, result);
    lilac_text_printf(w->out, " = scf.while (%%j%u = %%c0, ", t->number);
    put_inits(w, t, before, acc);
    put_types(w, t->count, "(i32, ");
    put_types(w, t->count, ") -> (i32, ");
    lilac_text_printf(w->out, ") {\n%%t%u = arith.cmpi slt, %%j%u, ", t->number, t->number);
    put_bound(w, t);
    lilac_text_printf(w->out, " : i32\nscf.condition(%%t%u) %%j%u, ", t->number, t->number);
    put_list(w, t->count, t->yields[1], before);
    put_types(w, t->count, " : i32, ");
    lilac_text_printf(w->out, "\n} do {\n^bb0(%s: i32, ", name);
    for (uint32_t i = 0; i < t->count; i++) {
        lilac_text_printf(w->out, "%%m%u: %s, ", t->second[i], w->type);
    }
    lilac_text_printf(w->out, "%%a%u: " TENSOR "):\n", after);
    uint32_t last = put_block(w, t->bodies[0], after, name);
    lilac_text_printf(w->out, "%%k%u = arith.addi %s, %%c1 : i32\nscf.yield %%k%u, ", t->number,
                      name, t->number);
    put_list(w, t->count, t->yields[0], last);
    put_types(w, t->count, " : i32, ");
    lilac_text_puts(w->out, "\n}\n");
    return result;
}

static uint32_t put_statement(writer *w, const statement *t, uint32_t acc, const char *counter) {
    uint32_t k = t->number;
    switch (t->kind) {
    case LOAD:
        lilac_text_printf(w->out,
                          "%%x%u = ttg.local_load %%m%u : %s -> " TENSOR
                          "\n%%h%u = arith.mulf %%a%u, %%half : " TENSOR
                          "\n%%a%u = arith.addf %%h%u, %%x%u : " TENSOR "\n",
                          k, t->x, w->type, k, acc, w->next, k, k);
        return w->next++;
    case STORE:
        lilac_text_printf(w->out,
                          "%%x%u = arith.addf %%a%u, %%one : " TENSOR
                          "\nttg.local_store %%x%u, %%m%u : " TENSOR " -> %s\n",
                          k, acc, k, t->x, w->type);
        return acc;
    case SELECT:
        put_condition(w, t, counter);
        lilac_text_printf(w->out, "%%m%u = arith.select %%t%u, %%m%u, %%m%u : %s\n", t->result, k,
                          t->x, t->y, w->type);
        return acc;
    case ALLOC:
        lilac_text_printf(w->out, "%%m%u = ttg.local_alloc %%a%u : (" TENSOR ") -> %s\n", t->result,
                          acc, w->type);
        return acc;
    case IF:
        return put_if(w, t, acc, counter);
    case FOR:
        return put_for(w, t, acc);
    default:
        return put_while(w, t, acc);
    }
}

static uint32_t put_block(writer *w, const statement *t, uint32_t acc, const char *counter) {
    for (; t != NULL; t = t->next) {
        acc = put_statement(w, t, acc, counter);
    }
    return acc;
}

/* The first buffers; buffer k begins with (k + 1) · v. */
static void put_buffers(const writer *w, uint32_t form) {
    static const char *const whole[3] = {"", "!ttg.memdesc<3x128xf32, #s, #smem, mutable>",
                                         "!ttg.memdesc<256xf32, #s, #smem, mutable>"};
    uint32_t each = form == 1 ? 3 : 2;
    for (uint32_t k = 0; k < FIRST; k++) {
        if (form != 0 && k % each == 0) {
            lilac_text_printf(w->out, "%%ring%u = ttg.local_alloc : () -> %s\n", k / each,
                              whole[form]);
        }
        lilac_text_printf(w->out, "%%s%u = arith.addf %%s%u, %%v : " TENSOR "\n", k + 1, k);
        if (form == 0) {
            lilac_text_printf(w->out, "%%m%u = ttg.local_alloc %%s%u : (" TENSOR ") -> %s\n", k,
                              k + 1, w->type);
            continue;
        }
        if (form == 1) {
            lilac_text_printf(w->out, "%%m%u = ttg.memdesc_index %%ring%u[%%c%u] : %s -> %s\n", k,
                              k / each, k % each, whole[form], w->type);
        } else {
            lilac_text_printf(w->out, "%%m%u = ttg.memdesc_subslice %%ring%u[%u] : %s -> %s\n", k,
                              k / each, k % each * COUNT, whole[form], w->type);
        }
        lilac_text_printf(w->out, "ttg.local_store %%s%u, %%m%u : " TENSOR " -> %s\n", k + 1, k,
                          w->type);
    }
}

static void put_program(lilac_text *out, const program *p, const statement *body) {
    writer w = {.out = out, .type = types[p->form], .next = 1};
    lilac_text_puts(
        out,
        "#b = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], "
        "order = [0]}>\n"
        "#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>\n"
        "#smem = #ttg.shared_memory\n"
        "module attributes {\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = 4 : i32} {\n"
        "tt.func public @k(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32) {\n"
        "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n"
        "%c2 = arith.constant 2 : i32\n%c3 = arith.constant 3 : i32\n"
        "%s0 = arith.constant dense<0.0> : " TENSOR "\n%half = arith.constant dense<0.5> : " TENSOR
        "\n%one = arith.constant dense<1.0> : " TENSOR "\n"
        "%r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #b>\n"
        "%ps = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #b>\n"
        "%pp = tt.addptr %ps, %r : tensor<128x!tt.ptr<f32>, #b>, tensor<128xi32, #b>\n"
        "%qs = tt.splat %q : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #b>\n"
        "%qp = tt.addptr %qs, %r : tensor<128x!tt.ptr<f32>, #b>, tensor<128xi32, #b>\n"
        "%v = tt.load %pp : tensor<128x!tt.ptr<f32>, #b>\n");
    put_buffers(&w, p->form);
    lilac_text_puts(out, "%a0 = arith.addf %s0, %v : " TENSOR "\n");
    uint32_t acc = put_block(&w, body, 0, "%n");
    lilac_text_printf(out, "tt.store %%qp, %%a%u : tensor<128x!tt.ptr<f32>, #b>\n", acc);
    for (uint32_t k = 0; k < STORED; k++) {
        lilac_text_printf(out,
                          "%%z%u = ttg.local_load %%m%u : %s -> " TENSOR
                          "\n%%o%u = arith.constant dense<%u> : tensor<128xi32, #b>\n"
                          "%%qp%u = tt.addptr %%qp, %%o%u : tensor<128x!tt.ptr<f32>, #b>, "
                          "tensor<128xi32, #b>\n"
                          "tt.store %%qp%u, %%z%u : tensor<128x!tt.ptr<f32>, #b>\n",
                          k, k, w.type, k, (k + 1) * COUNT, k, k, k, k);
    }
    lilac_text_puts(out, "tt.return\n}\n}\n");
}

/* ---- the interpreter ----------------------------------------------------------------------- */

static void run_block(program *p, const statement *t, int64_t counter);

/* to[i] = from[i], all at once. */
static void assign(program *p, uint32_t count, const uint32_t *to, const uint32_t *from) {
    uint32_t places[MOST_CARRIED];
    for (uint32_t i = 0; i < count; i++) {
        places[i] = p->place[from[i]];
    }
    for (uint32_t i = 0; i < count; i++) {
        p->place[to[i]] = places[i];
    }
}

static void run_loop(program *p, const statement *t) {
    int64_t iterations = t->iterations < 4 ? t->iterations : p->n;
    assign(p, t->count, t->first, t->inits);
    for (int64_t i = 0; i < iterations; i++) {
        if (t->kind == WHILE) {
            assign(p, t->count, t->second, t->yields[1]);
        }
        run_block(p, t->bodies[0], i);
        assign(p, t->count, t->first, t->yields[0]);
    }
    assign(p, t->count, t->results, t->kind == WHILE ? t->yields[1] : t->first);
}

static void run_statement(program *p, const statement *t, int64_t counter) {
    float *x = p->memory[p->place[t->x]];
    switch (t->kind) {
    case LOAD:
        for (uint32_t e = 0; e < COUNT; e++) {
            p->acc[e] = p->acc[e] * 0.5F + x[e];
        }
        break;
    case STORE:
        for (uint32_t e = 0; e < COUNT; e++) {
            x[e] = p->acc[e] + 1.0F;
        }
        break;
    case SELECT:
        p->place[t->result] = p->place[(counter & 1) != 0 ? t->x : t->y];
        break;
    case ALLOC:
        assert_true(p->buffers < MOST_BUFFERS);
        p->place[t->result] = p->buffers;
        memcpy(p->memory[p->buffers++], p->acc, sizeof p->acc);
        break;
    case IF: {
        uint32_t side = (counter & 1) != 0 ? 0 : 1;
        run_block(p, t->bodies[side], counter);
        assign(p, t->count, t->results, t->yields[side]);
        break;
    }
    default:
        run_loop(p, t);
        break;
    }
}

static void run_block(program *p, const statement *t, int64_t counter) {
    for (; t != NULL; t = t->next) {
        run_statement(p, t, counter);
    }
}

static void interpret(program *p, const statement *body, const float *input, float *output) {
    p->buffers = FIRST;
    float sum[COUNT] = {0};
    for (uint32_t k = 0; k < FIRST; k++) {
        p->place[k] = k;
        for (uint32_t e = 0; e < COUNT; e++) {
            sum[e] += input[e];
            p->memory[k][e] = sum[e];
        }
    }
    memcpy(p->acc, input, sizeof p->acc);
    run_block(p, body, p->n);
    memcpy(output, p->acc, sizeof p->acc);
    memcpy(output + COUNT, p->memory, sizeof(float) * COUNT * STORED);
}

/* ---- the comparison ------------------------------------------------------------------------ */

/* False: the program was refused because it allocates in a loop. */
static bool compare(program *p, const statement *body, const char *text, uint32_t seed) {
    static float input[COUNT], got[COUNT * (STORED + 1)], want[COUNT * (STORED + 1)];
    harness h;
    bool accepted = harness_try(&h, text, 4, seed % 2 == 0, NULL);
    if (!accepted) {
        const lilac_diagnostic *d = lilac_diagnostics(h.context);
        if (!p->allocates || d == NULL || strstr(d->message, "is still in use") == NULL) {
            print_diagnostics(h.context);
            fail_msg("seed %u is refused\n%s", seed, text);
        }
        harness_close(&h);
        return false;
    }
    if (seed % 5 < 2) {
        lilac_run_simt_passes(h.simt);
    }
    for (p->n = 0; p->n < 4; p->n++) {
        for (uint32_t e = 0; e < COUNT; e++) {
            input[e] = (float)(e % 16) / 8.0F - 1.0F;
        }
        memset(got, 0, sizeof got);
        interpret(p, body, input, want);
        const buffer buffers[] = {{input, sizeof input}, {got, sizeof got}};
        harness_run(&h, 1, buffers, 2, &p->n, 1);
        for (uint32_t e = 0; e < COUNT * (STORED + 1); e++) {
            if (got[e] != want[e]) {
                print_message("%s\n", text);
                fail_msg("seed %u, n = %lld: element %u is %g, not %g", seed, (long long)p->n, e,
                         (double)got[e], (double)want[e]);
            }
        }
    }
    harness_close(&h);
    return true;
}

static void random_programs(void **state) {
    (void)state;
    const char *one = getenv("LILAC_TEST_SEED");
    uint32_t first = one != NULL ? (uint32_t)strtoul(one, NULL, 10) : 0;
    uint32_t count = one != NULL ? 1 : scaled(300);
    uint32_t refused = 0;
    program *p = calloc(1, sizeof *p);
    assert_non_null(p);
    for (uint32_t seed = first; seed < first + count; seed++) {
        lilac_text text = {0};
        scope s = {.count = FIRST};
        for (uint32_t k = 0; k < FIRST; k++) {
            s.list[k] = k;
        }
        lilac_random_seed(&p->random, seed);
        p->arena = lilac_arena_create();
        p->variables = FIRST;
        p->statements = 0;
        p->allocates = false;
        p->form = seed % 3;
        const statement *body = generate(p, &s, 0, false);
        put_program(&text, p, body);
        refused += !compare(p, body, lilac_text_get(&text), seed);
        lilac_text_clear(&text);
        lilac_arena_destroy(p->arena);
    }
    assert_true(refused * 4 < count || one != NULL);
    free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
