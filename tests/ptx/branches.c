/* Conditionals in PTX: random nested ifs, in loops too, leave the same results as on the simulator when the
 * instructions of the text are executed one after another for thread 0. Bodies are empty often, which makes
 * one branch of an if. */
#include <lilac/ptx.h>
#include <lilac/sim.h>

#include "support/test.h"

enum {
    THREADS = 32,
    RESULTS = 8,
    MOST_VALUES = 400,
    MOST_LINES = 2000,
    MOST_NAMES = 1000,
    CASES = 400
};

/* ---- random kernels -------------------------------------------------------------------------- */

typedef struct generator {
    lilac_text *out;
    lilac_random *random;
    uint32_t names;
    uint32_t scope[MOST_VALUES]; /* the values that may be used */
    uint32_t count;
    uint32_t ifs, budget;
} generator;

static uint32_t below(generator *g, uint32_t bound) {
    return (uint32_t)lilac_random_below(g->random, bound);
}

static uint32_t pick(generator *g) {
    return g->scope[g->count - 1 - below(g, g->count < 12 ? g->count : 12)];
}

static void add(generator *g, uint32_t name) {
    assert_true(g->count < MOST_VALUES);
    g->scope[g->count++] = name;
}

static void put_body(generator *g, uint32_t depth, uint32_t length);

static void put_yield(generator *g, uint32_t count) {
    lilac_text_puts(g->out, "yield");
    for (uint32_t k = 0; k < count; k++) {
        lilac_text_printf(g->out, "%s%%v%u", k == 0 ? " " : ", ", pick(g));
    }
    lilac_text_puts(g->out, "\n");
}

static void put_results(generator *g, uint32_t first, uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        lilac_text_printf(g->out, "%s%%v%u", k == 0 ? "" : ", ", first + k);
    }
    lilac_text_puts(g->out, count > 0 ? " = " : "");
}

static void put_types(generator *g, uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        lilac_text_puts(g->out, k == 0 ? " : i32" : ", i32");
    }
    lilac_text_puts(g->out, " {\n");
}

/* An empty body often. */
static void put_branch(generator *g, uint32_t depth, uint32_t results) {
    const uint32_t count = g->count;
    put_body(g, depth + 1, below(g, 2) == 0 ? 0 : 1 + below(g, 4));
    put_yield(g, results);
    g->count = count;
}

static void put_if(generator *g, uint32_t depth) {
    static const char *const orders[] = {"lt", "gt", "eq", "ne"};
    const uint32_t results = below(g, 4), condition = g->names++, first = g->names;
    lilac_text_printf(g->out, "%%c%u = cmp %s %%v%u, %%v%u : i1\n", condition, orders[below(g, 4)],
                      pick(g), pick(g));
    g->names += results;
    g->ifs++;
    put_results(g, first, results);
    lilac_text_printf(g->out, "if %%c%u", condition);
    put_types(g, results);
    put_branch(g, depth, results);
    lilac_text_puts(g->out, "} else {\n");
    put_branch(g, depth, results);
    lilac_text_puts(g->out, "}\n");
    for (uint32_t k = 0; k < results; k++) {
        add(g, first + k);
    }
}

static void put_loop(generator *g, uint32_t depth) {
    const uint32_t carried = 1 + below(g, 3), first = g->names, counter = first + carried;
    const uint32_t count = g->count;
    g->names += 2 * carried + 1;
    put_results(g, first, carried);
    lilac_text_printf(g->out, "loop %%v%u = %%zero to %%three step %%one (", counter);
    for (uint32_t k = 0; k < carried; k++) {
        lilac_text_printf(g->out, "%s%%v%u = %%v%u", k == 0 ? "" : ", ", counter + 1 + k, pick(g));
    }
    lilac_text_puts(g->out, ")");
    put_types(g, carried);
    for (uint32_t k = 0; k <= carried; k++) {
        add(g, counter + k);
    }
    put_body(g, depth + 1, 1 + below(g, 4));
    put_yield(g, carried);
    lilac_text_puts(g->out, "}\n");
    g->count = count;
    for (uint32_t k = 0; k < carried; k++) {
        add(g, first + k);
    }
}

static void put_body(generator *g, uint32_t depth, uint32_t length) {
    static const char *const operations[] = {"add", "mul", "xor"};
    for (uint32_t n = 0; n < length; n++) {
        const uint32_t kind = below(g, 8);
        if (kind < 3 && depth < 4 && g->budget > 0) {
            g->budget--;
            put_if(g, depth);
        } else if (kind == 3 && depth < 3 && g->budget > 0) {
            g->budget--;
            put_loop(g, depth);
        } else if (kind == 4) {
            lilac_text_printf(g->out, "st.global [%%p + %u], (%%v%u)\n", 4 * below(g, RESULTS / 2),
                              pick(g));
        } else {
            lilac_text_printf(g->out, "%%v%u = %s %%v%u, %%v%u : i32\n", g->names,
                              operations[below(g, 3)], pick(g), pick(g));
            add(g, g->names++);
        }
    }
}

static void put_kernel(generator *g) {
    lilac_text_puts(g->out,
                    "simt.module target \"sm_90a\" {\n"
                    "kernel @k(%o: i64 ptr, %n: i32) warps 1 ctas 1 shared 0 {\n"
                    "%o = param 0 : i64\n%v0 = param 1 : i32\n%v1 = const 0 : i32\n"
                    "%v2 = const 1 : i32\n%v3 = const 7 : i32\n%zero = const 0 : i32\n"
                    "%one = const 1 : i32\n%three = const 3 : i32\n%bytes = const 32 : i32\n"
                    "%t = thread : i32\n%at = mulwide_u %t, %bytes : i64\n"
                    "%p = add %o, %at : i64\n");
    for (g->names = 0; g->names < 4; g->names++) {
        add(g, g->names);
    }
    put_body(g, 0, 12);
    for (uint32_t k = RESULTS / 2; k < RESULTS; k++) {
        lilac_text_printf(g->out, "st.global [%%p + %u], (%%v%u)\n", 4 * k, pick(g));
    }
    lilac_text_puts(g->out, "return\n}\n}\n");
}

/* ---- PTX ------------------------------------------------------------------------------------- */

typedef struct machine {
    uint32_t line_count, name_count;
    char *lines[MOST_LINES];
    char names[MOST_NAMES][32]; /* of registers */
    uint64_t values[MOST_NAMES];
    uint32_t results[RESULTS];
    uint32_t n;
} machine;

static uint64_t *find_register(machine *m, const char *name) {
    for (uint32_t i = 0; i < m->name_count; i++) {
        if (strcmp(m->names[i], name) == 0) {
            return &m->values[i];
        }
    }
    assert_true(m->name_count < MOST_NAMES && strlen(name) < sizeof m->names[0]);
    strcpy(m->names[m->name_count], name);
    return &m->values[m->name_count++];
}

static uint64_t value_of(machine *m, const char *text) {
    return strcmp(text, "%tid.x") == 0 ? 0
           : text[0] == '%'            ? *find_register(m, text)
                                       : (uint64_t)strtoll(text, NULL, 0);
}

static uint32_t find_label(const machine *m, const char *label) {
    const size_t length = strlen(label);
    for (uint32_t i = 0; i < m->line_count; i++) {
        if (strncmp(m->lines[i], label, length) == 0 && m->lines[i][length] == ':') {
            return i;
        }
    }
    fail_msg("no label %s", label);
    return 0;
}

/* One instruction, without its guard. The line of the next one. */
static uint32_t step(machine *m, uint32_t line, const char *text) {
    char name[32], a[48] = "", b[48] = "", c[48] = "";
    if (sscanf(text, "%31s %47[^,;], %47[^,;], %47[^,;];", name, a, b, c) < 1) {
        fail_msg("%s", text);
    }
    if (strcmp(name, "bra.uni") == 0) {
        return find_label(m, a);
    }
    if (strcmp(name, "st.global.b32") == 0) {
        char address[32];
        unsigned offset = 0;
        assert_true(sscanf(a, "[%31[^]+]+%u]", address, &offset) >= 1);
        offset += (unsigned)value_of(m, address);
        assert_true(offset < sizeof m->results);
        m->results[offset / 4] = (uint32_t)value_of(m, b);
        return line + 1;
    }
    const uint64_t x = value_of(m, b), y = value_of(m, c);
    const int32_t i = (int32_t)x, j = (int32_t)y;
    uint64_t *to = find_register(m, a);
    if (strcmp(name, "ld.param.b64") == 0) {
        *to = 0;
    } else if (strcmp(name, "ld.param.b32") == 0) {
        *to = m->n;
    } else if (strncmp(name, "mov.", 4) == 0) {
        *to = x;
    } else if (strcmp(name, "add.s32") == 0 || strcmp(name, "add.s64") == 0) {
        *to = name[5] == '3' ? (uint32_t)(x + y) : x + y;
    } else if (strcmp(name, "mul.lo.s32") == 0) {
        *to = (uint32_t)x * (uint32_t)y;
    } else if (strcmp(name, "mul.wide.u32") == 0) {
        *to = (uint64_t)(uint32_t)x * (uint32_t)y;
    } else if (strcmp(name, "xor.b32") == 0) {
        *to = (uint32_t)(x ^ y);
    } else if (strncmp(name, "setp.", 5) == 0 && strcmp(name + 7, ".s32") == 0) {
        const char *order = name + 5;
        *to = strncmp(order, "lt", 2) == 0   ? i < j
              : strncmp(order, "gt", 2) == 0 ? i > j
              : strncmp(order, "ge", 2) == 0 ? i >= j
              : strncmp(order, "eq", 2) == 0 ? i == j
                                             : i != j;
    } else {
        fail_msg("an instruction that this test does not know: %s", text);
    }
    return line + 1;
}

static void execute_ptx(machine *m, char *text, uint32_t n) {
    bool inside = false, declares = false;
    memset(m, 0, sizeof *m);
    memset(m->results, 0x5A, sizeof m->results);
    m->n = n;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        inside |= line[0] == '{';
        while (*line == '\t') {
            line++;
        }
        declares |= inside && line[0] == '.'; /* to the next semicolon */
        if (inside && !declares && line[0] != '{' && line[0] != '}') {
            assert_true(m->line_count < MOST_LINES);
            m->lines[m->line_count++] = line;
        }
        declares &= strchr(line, ';') == NULL;
    }
    uint32_t fuel = 100000;
    for (uint32_t i = 0; strcmp(m->lines[i], "ret;") != 0;) {
        const char *now = m->lines[i];
        assert_true(fuel-- > 0);
        if (now[0] == '$') {
            i++;
        } else if (now[0] == '@') {
            char guard[48];
            const bool negated = now[1] == '!';
            assert_int_equal(sscanf(now + 1 + negated, "%47s", guard), 1);
            const bool taken = (value_of(m, guard) != 0) != negated;
            i = taken ? step(m, i, strchr(now, ' ') + 1) : i + 1;
        } else {
            i = step(m, i, now);
        }
    }
}

/* ---- both ------------------------------------------------------------------------------------ */

static void execute(lilac_context *context, const lilac_simt_module *module, uint32_t n,
                    uint32_t *results) {
    memset(results, 0x5A, THREADS * RESULTS * sizeof *results);
    lilac_sim_buffer place = {.name = "results",
                              .bytes = (uint8_t *)results,
                              .size = THREADS * RESULTS * sizeof *results};
    lilac_sim_place(&place, 1);
    const uint64_t arguments[2] = {place.address, n};
    const lilac_sim_launch launch = {.kernel = module->kernels,
                                     .grid = {1, 1, 1},
                                     .arguments = arguments,
                                     .argument_count = 2,
                                     .buffers = &place,
                                     .buffer_count = 1,
                                     .threads = 1};
    lilac_sim_counters counters;
    if (!lilac_sim_run(context, &launch, &counters)) {
        fail_with_diagnostics(context, "a trap");
    }
}

static uint32_t count(const char *text, const char *word) {
    uint32_t found = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        found++;
    }
    return found;
}

static void random_branches(void **state) {
    (void)state;
    static machine m;
    static uint32_t wanted[THREADS * RESULTS];
    lilac_random random;
    uint32_t ifs = 0, elses = 0;
    lilac_random_seed(&random, 3);
    for (uint32_t i = 0; i < scaled(CASES); i++) {
        lilac_text text = {0}, ptx = {0};
        generator g = {.out = &text, .random = &random, .budget = 10};
        put_kernel(&g);
        lilac_context *context = lilac_context_create();
        lilac_simt_module *module =
            lilac_simt_read(context, lilac_source_add(context, "k.simt", text.bytes, text.length));
        const lilac_ptx_options options = {0};
        if (module == NULL || !lilac_simt_verify(module) ||
            !lilac_ptx_write(&ptx, module, &options)) {
            fputs(text.bytes, stderr);
            fail_with_diagnostics(context, "the kernel was refused");
        }
        ifs += g.ifs;
        elses += count(lilac_text_get(&ptx), "$L_else_") / 2;
        for (uint32_t n = 0; n < 10; n += 3) {
            char *copy = malloc(ptx.length + 1);
            assert_non_null(copy);
            memcpy(copy, lilac_text_get(&ptx), ptx.length + 1);
            execute(context, module, n, wanted);
            execute_ptx(&m, copy, n);
            if (memcmp(wanted, m.results, sizeof m.results) != 0) {
                fputs(text.bytes, stderr);
                fputs(lilac_text_get(&ptx), stderr);
                fail_msg("case %u: other results for n = %u", i, n);
            }
            free(copy);
        }
        lilac_simt_module_destroy(module);
        lilac_context_destroy(context);
        lilac_text_clear(&text);
        lilac_text_clear(&ptx);
    }
    print_message("%u ifs, %u with two branches\n", ifs, elses);
    assert_true(ifs > 3 * scaled(CASES) && elses > ifs / 8 && elses < ifs - ifs / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_branches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
