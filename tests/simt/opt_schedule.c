/* The order of a loop's body: random bodies, written operation by operation over many elements,
 * compute the same after the pass; loads and stores keep their order; and where it says that fewer
 * values are alive, an element's store follows its last operation. The same of straight-line code, in which
 * only computations that depend on no load move, or loads up to the next write or barrier. */
#include <lilac/sim.h>

#include "support/run_in_out.h"
#include "support/test.h"

enum { THREADS = 32, MOST = 48, SLOT = 4 * MOST };

static const char head[] =
    "simt.module target \"sm_90a\" {\n"
    "kernel @k(%i: i64 ptr align 16, %o: i64 ptr align 16) warps 1 ctas 1 "
    "shared 0 {\n"
    "%t = thread : i32\n%k = const 192 : i32\n%p = param 0 : i64\n"
    "%q = param 1 : i64\n%w = mulwide_u %t, %k : i64\n%in = add %p, %w : i64\n"
    "%out = add %q, %w : i64\n%z = const 0 : i32\n%n = const 3 : i32\n"
    "%one = const 1 : i32\n%f = const 0.5 : f32\n";

/* `elements` loads, `layers` operations on each, by operation; some elements are stored, the others
 * are added to what the loop carries. */
static void generate(lilac_text *out, uint64_t seed, uint32_t elements, uint32_t layers,
                     bool barrier) {
    lilac_random random;
    lilac_random_seed(&random, seed);
    lilac_text_puts(out, head);
    uint32_t carried = (uint32_t)lilac_random_below(&random, elements) + 1;
    for (uint32_t e = 0; e < carried; e++) {
        lilac_text_printf(out, "%s%%r%u", e ? ", " : "", e);
    }
    lilac_text_puts(out, " = loop %l = %z to %n step %one (");
    for (uint32_t e = 0; e < carried; e++) {
        lilac_text_printf(out, "%s%%c%u = %%f", e ? ", " : "", e);
    }
    lilac_text_puts(out, ") : ");
    for (uint32_t e = 0; e < carried; e++) {
        lilac_text_puts(out, e ? ", f32" : "f32");
    }
    lilac_text_puts(out, " {\n");
    for (uint32_t e = 0; e < elements; e++) {
        lilac_text_printf(out, "%%v0_%u = ld.global [%%in + %u] : f32\n", e, 4 * e);
    }
    lilac_text_puts(out, barrier ? "barrier\n" : "");
    for (uint32_t layer = 1; layer <= layers; layer++) {
        static const char *const names[] = {"fadd", "fmul", "fsub", "fmax"};
        const char *name = names[lilac_random_below(&random, 4)];
        uint32_t from = (uint32_t)lilac_random_below(&random, layer);
        for (uint32_t e = 0; e < elements; e++) {
            /* A neighbour's value now and then. */
            uint32_t other = lilac_random_below(&random, 8) ? e : (e + 1) % elements;
            lilac_text_printf(out, "%%v%u_%u = %s %%v%u_%u, %%v%u_%u : f32\n", layer, e, name,
                              layer - 1, e, from, other);
        }
    }
    for (uint32_t e = 0; e < elements; e++) {
        if (e < carried) {
            lilac_text_printf(out, "%%s%u = fadd %%c%u, %%v%u_%u : f32\n", e, e, layers, e);
        } else {
            lilac_text_printf(out, "st.global [%%out + %u], (%%v%u_%u)\n", 4 * e, layers, e);
        }
    }
    lilac_text_puts(out, "yield ");
    for (uint32_t e = 0; e < carried; e++) {
        lilac_text_printf(out, "%s%%s%u", e ? ", " : "", e);
    }
    lilac_text_puts(out, "\n}\n");
    for (uint32_t e = 0; e < carried; e++) {
        lilac_text_printf(out, "st.global [%%out + %u], (%%r%u)\n", 4 * e, e);
    }
    lilac_text_puts(out, "return\n}\n}\n");
}

static lilac_simt_module *read_module(lilac_context *context, const lilac_text *text) {
    uint32_t source = lilac_source_add(context, "order", text->bytes, text->length);
    lilac_simt_module *module = lilac_simt_read(context, source);
    if (module == NULL || !lilac_simt_verify(module)) {
        print_diagnostics(context);
        fail();
    }
    return module;
}

static void execute(lilac_context *context, const lilac_simt_module *module, uint64_t seed,
                    uint8_t *output) {
    static float input[THREADS * SLOT / 4];
    lilac_random random;
    lilac_random_seed(&random, seed);
    for (size_t k = 0; k < sizeof input / sizeof *input; k++) {
        input[k] = (float)lilac_random_below(&random, 1000) / 512.0f - 1.0f;
    }
    memset(output, 0x5A, THREADS * SLOT);
    assert_true(run_in_out(context, module->kernels, input, sizeof input, output, THREADS * SLOT));
}

static const lilac_simt_body *loop_body(const lilac_simt_module *module) {
    for (const lilac_simt_instruction *i = module->kernels->body->first; i != NULL; i = i->next) {
        if (i->code == LILAC_SIMT_OP_LOOP) {
            return i->bodies[0];
        }
    }
    return NULL;
}

/* The loads and stores of the loop, by the offsets they access. */
static uint32_t effects(const lilac_simt_module *module, int64_t *offsets) {
    uint32_t count = 0;
    for (const lilac_simt_instruction *i = loop_body(module)->first; i != NULL; i = i->next) {
        if (i->code == LILAC_SIMT_OP_LD_GLOBAL || i->code == LILAC_SIMT_OP_ST_GLOBAL) {
            offsets[count++] = i->immediate + (i->code == LILAC_SIMT_OP_ST_GLOBAL ? 10000 : 0);
        }
    }
    return count;
}

static bool same_in_order(uint64_t seed, uint32_t elements, uint32_t layers, bool barrier) {
    static uint8_t wanted[THREADS * SLOT], got[THREADS * SLOT];
    int64_t before[2 * MOST], after[2 * MOST];
    lilac_text text = {0};
    generate(&text, seed, elements, layers, barrier);
    lilac_context *context = lilac_context_create();
    lilac_simt_module *module = read_module(context, &text);
    execute(context, module, seed, wanted);
    uint32_t count = effects(module, before);
    bool changed = lilac_simt_opt_schedule(module->kernels);
    assert_true(lilac_simt_verify(module));
    assert_int_equal(effects(module, after), count);
    assert_memory_equal(before, after, count * sizeof *before);
    execute(context, module, seed, got);
    assert_memory_equal(wanted, got, sizeof wanted);
    assert_false(lilac_simt_opt_schedule(module->kernels)); /* it is as good as it gets */
    lilac_simt_module_destroy(module);
    lilac_context_destroy(context);
    lilac_text_clear(&text);
    return changed;
}

static void same_results(void **state) {
    (void)state;
    const char *more = getenv("LILAC_TEST_MULTIPLIER");
    uint64_t count = 60 * (more != NULL ? strtoull(more, NULL, 10) : 1);
    uint64_t changes = 0;
    for (uint64_t seed = 1; seed <= count; seed++) {
        changes += same_in_order(seed, 40 + (uint32_t)(seed % 8), 3 + (uint32_t)(seed % 5), false);
    }
    assert_true(changes > count / 2); /* or it would show nothing */
}

/* Few values, or a barrier among them: the order stays. */
static void left_alone(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        assert_false(same_in_order(seed, 10, 4, false));
        assert_false(same_in_order(seed, 44, 6, true));
    }
}

/* Each store behind the last operation on what it stores; what is carried before the first store
 * that comes as late. */
static void by_element(void **state) {
    (void)state;
    lilac_text text = {0};
    lilac_text_puts(&text, head);
    lilac_text_puts(&text, "%r = loop %l = %z to %n step %one (%c = %f) : f32 {\n");
    for (uint32_t e = 0; e < MOST; e++) {
        lilac_text_printf(&text, "%%a%u = ld.global [%%in + %u] : f32\n", e, 4 * e);
    }
    for (uint32_t e = 0; e < MOST; e++) {
        lilac_text_printf(&text, "%%b%u = fmul %%a%u, %%a%u : f32\n", e, e, e);
    }
    for (uint32_t e = 0; e < MOST; e++) {
        lilac_text_printf(&text, "%%d%u = fadd %%b%u, %%a%u : f32\n", e, e, e);
    }
    lilac_text_puts(&text, "%s = fadd %c, %b0 : f32\n");
    for (uint32_t e = 0; e < MOST; e++) {
        lilac_text_printf(&text, "st.global [%%out + %u], (%%d%u)\n", 4 * e, e);
    }
    lilac_text_puts(&text, "yield %s\n}\nst.global [%out], (%r)\nreturn\n}\n}\n");
    lilac_context *context = lilac_context_create();
    lilac_simt_module *module = read_module(context, &text);
    assert_true(lilac_simt_opt_schedule(module->kernels));
    const lilac_simt_instruction *i = loop_body(module)->first;
    for (uint32_t e = 0; e < MOST; e++, i = i->next) {
        assert_int_equal(i->code, LILAC_SIMT_OP_LD_GLOBAL);
    }
    for (uint32_t e = 0; e < MOST; e++) {
        assert_int_equal(i->code, LILAC_SIMT_OP_FMUL);
        for (uint32_t sums = e == 0 ? 2 : 1; sums > 0; sums--) {
            i = i->next;
            assert_int_equal(i->code, LILAC_SIMT_OP_FADD);
        }
        i = i->next;
        assert_int_equal(i->code, LILAC_SIMT_OP_ST_GLOBAL);
        assert_int_equal(i->immediate, 4 * e);
        i = i->next;
    }
    lilac_simt_module_destroy(module);
    lilac_context_destroy(context);
    lilac_text_clear(&text);
}

/* Straight-line code: `rounds` integer operations on each of `elements` values, which start with a number of
 * the thread or, if `loaded`, of memory; operation by operation. Loads follow, then products of both. With
 * `branch` an if reads some values in the middle. */
typedef struct chains {
    uint32_t elements, rounds;
    bool loaded, branch;
} chains;

static void generate_rounds(lilac_text *out, lilac_random *random, const chains *c) {
    for (uint32_t layer = 1; layer <= c->rounds; layer++) {
        static const char *const names[] = {"add", "mul", "sub", "xor"};
        const char *name = names[lilac_random_below(random, 4)];
        uint32_t from = layer - 1 - (uint32_t)lilac_random_below(random, layer < 4 ? layer : 4);
        for (uint32_t e = 0; e < c->elements; e++) {
            lilac_text_printf(out, "%%i%u_%u = %s %%i%u_%u, %%i%u_%u : i32\n", layer, e, name,
                              layer - 1, e, from, e);
        }
        if (c->branch && layer == c->rounds / 2) {
            lilac_text_printf(out,
                              "%%some = cmp lt %%z, %%n : i1\nif %%some {\n"
                              "st.global [%%out + 188], (%%i%u_5)\nyield\n} else {\nyield\n}\n",
                              layer);
        }
    }
}

static void generate_chains(lilac_text *out, uint64_t seed, const chains *c) {
    lilac_random random;
    lilac_random_seed(&random, seed);
    lilac_text_puts(out, head);
    for (uint32_t e = 0; e < c->elements; e++) {
        lilac_text_printf(out, "%%k%u = const %u : i32\n", e, 3 * e + 1);
    }
    for (uint32_t e = 0; c->loaded && e < c->elements; e++) {
        lilac_text_printf(out, "%%j%u = ld.global [%%in + %u] : i32\n", e, 4 * e);
    }
    for (uint32_t e = 0; e < c->elements; e++) {
        lilac_text_printf(out, "%%i0_%u = add %%k%u, ", e, e);
        if (c->loaded) {
            lilac_text_printf(out, "%%j%u : i32\n", e);
        } else {
            lilac_text_puts(out, "%t : i32\n");
        }
        lilac_text_printf(out, "%%s_%u = mul %%i0_%u, %%t : i32\n", e, e);
    }
    generate_rounds(out, &random, c);
    for (uint32_t e = 0; e < c->elements; e++) {
        lilac_text_printf(out, "%%x%u = ld.global [%%in + %u] : i32\n", e, 4 * e);
    }
    for (uint32_t e = 0; e < c->elements; e++) {
        lilac_text_printf(out, "%%h%u = add %%i%u_%u, %%s_%u : i32\n", e, c->rounds, e, e);
    }
    for (uint32_t e = 0; e < c->elements; e++) {
        lilac_text_printf(out, "%%y%u = mul %%x%u, %%h%u : i32\n", e, e, e);
    }
    for (uint32_t e = 0; e < c->elements; e++) {
        lilac_text_printf(out, "st.global [%%out + %u], (%%y%u)\n", 4 * e, e);
    }
    lilac_text_puts(out, "return\n}\n}\n");
}

/* Offsets of the loads and stores of the kernel, and -1 for each conditional. */
static uint32_t effects_of_kernel(const lilac_simt_module *module, int64_t *offsets) {
    uint32_t count = 0;
    for (const lilac_simt_instruction *i = module->kernels->body->first; i != NULL; i = i->next) {
        bool access = i->code == LILAC_SIMT_OP_LD_GLOBAL || i->code == LILAC_SIMT_OP_ST_GLOBAL;
        if (access || i->code == LILAC_SIMT_OP_IF) {
            offsets[count++] = access ? i->immediate : -1;
        }
    }
    return count;
}

static bool same_chains(uint64_t seed, const chains *c) {
    static uint8_t wanted[THREADS * SLOT], got[THREADS * SLOT];
    int64_t before[4 * MOST], after[4 * MOST];
    lilac_text text = {0};
    generate_chains(&text, seed, c);
    lilac_context *context = lilac_context_create();
    lilac_simt_module *module = read_module(context, &text);
    execute(context, module, seed, wanted);
    lilac_simt_opt_dce(module->kernels); /* the pass assumes it */
    uint32_t count = effects_of_kernel(module, before);
    bool changed = lilac_simt_opt_schedule(module->kernels);
    assert_true(lilac_simt_verify(module));
    assert_int_equal(effects_of_kernel(module, after), count);
    assert_memory_equal(before, after, count * sizeof *before);
    execute(context, module, seed, got);
    assert_memory_equal(wanted, got, sizeof wanted);
    assert_false(lilac_simt_opt_schedule(module->kernels));
    /* Each product follows the last operation of its chain. */
    const lilac_simt_instruction *i = module->kernels->body->last;
    while (i != NULL && i->code != LILAC_SIMT_OP_MUL) {
        i = i->previous;
    }
    if (changed) {
        assert_non_null(i);
        assert_int_equal(i->previous->code, LILAC_SIMT_OP_ADD);
        assert_int_equal(i->previous->result, i->operands[1]);
    }
    lilac_simt_module_destroy(module);
    lilac_context_destroy(context);
    lilac_text_clear(&text);
    return changed;
}

static void chains_without_loads(void **state) {
    (void)state;
    const char *more = getenv("LILAC_TEST_MULTIPLIER");
    uint64_t count = 10 * (more != NULL ? strtoull(more, NULL, 10) : 1);
    for (uint64_t seed = 1; seed <= count; seed++) {
        uint32_t elements = 40 + (uint32_t)(seed % 8), rounds = 28 + (uint32_t)(seed % 5);
        assert_true(same_chains(seed, &(chains){.elements = elements, .rounds = rounds}));
        same_chains(seed, &(chains){.elements = elements, .rounds = rounds + 30, .branch = true});
    }
}

/* Chains that depend on loads, short ones, and few ones. */
static void chains_left_alone(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        assert_false(same_chains(seed, &(chains){.elements = 40, .rounds = 28, .loaded = true}));
        assert_false(same_chains(seed, &(chains){.elements = 40, .rounds = 12}));
        assert_false(same_chains(seed, &(chains){.elements = 8, .rounds = 150}));
    }
}

/* Straight-line code that loads all of many tensors, then adds them up, operation by operation. In the middle of
 * the loads and of the sums are a store that loads must not pass, a barrier, a shuffle that they may pass, and a
 * load that must stay. */
typedef struct sums {
    uint32_t tensors, elements;
} sums;

typedef enum obstacle { STORE, BARRIER, SHUFFLE, VOLATILE, OBSTACLES } obstacle;

/* Returns whether it defines a value of that name. */
static bool put_obstacle(lilac_text *out, obstacle what, const char *name, const char *value) {
    switch (what) {
    case STORE:
        lilac_text_printf(out, "st.global [%%out + 184], (%s)\n", value);
        return false;
    case BARRIER:
        lilac_text_puts(out, "barrier\n");
        return false;
    case SHUFFLE:
        lilac_text_printf(out, "%%%s = shuffle xor %s, %%one : f32\n", name, value);
        return true;
    default:
        lilac_text_printf(out, "%%%s = ld.global [%%in + 8] : f32 {volatile}\n", name);
        return true;
    }
}

static void generate_sums(lilac_text *out, uint64_t seed, const sums *c) {
    lilac_random random;
    lilac_random_seed(&random, seed);
    lilac_text_puts(out, head);
    bool first = false, second = false;
    for (uint32_t t = 0; t < c->tensors; t++) {
        for (uint32_t e = 0; e < c->elements; e++) {
            lilac_text_printf(out, "%%v%u_%u = ld.global [%%in + %u] : f32\n", t, e,
                              4 * ((5 * t + e) % MOST));
        }
        if (t == c->tensors / 8) {
            first = put_obstacle(out, (obstacle)lilac_random_below(&random, OBSTACLES), "first",
                                 "%v0_0");
        }
    }
    for (uint32_t t = 1; t < c->tensors; t++) {
        static const char *const names[] = {"fadd", "fmul", "fsub", "fmax"};
        const char *name = names[lilac_random_below(&random, 4)];
        for (uint32_t e = 0; e < c->elements; e++) {
            lilac_text_printf(out, "%%s%u_%u = %s %%%s%u_%u, %%v%u_%u : f32\n", t, e, name,
                              t == 1 ? "v" : "s", t - 1, e, t, e);
        }
        if (t == c->tensors / 2) {
            char value[32];
            (void)snprintf(value, sizeof value, "%%s%u_1", t);
            second = put_obstacle(out, (obstacle)lilac_random_below(&random, OBSTACLES), "second",
                                  value);
        }
    }
    for (uint32_t e = 0; e < c->elements; e++) {
        lilac_text_printf(out, "st.global [%%out + %u], (%%s%u_%u)\n", 4 * e, c->tensors - 1, e);
    }
    lilac_text_puts(out, first ? "st.global [%out + 180], (%first)\n" : "");
    lilac_text_puts(out, second ? "st.global [%out + 188], (%second)\n" : "");
    lilac_text_puts(out, "return\n}\n}\n");
}

/* The number of loads in front of each instruction that they must not pass. */
static uint32_t loads_before(const lilac_simt_module *module, uint32_t *loads) {
    uint32_t count = 0, seen = 0;
    for (const lilac_simt_instruction *i = module->kernels->body->first; i != NULL; i = i->next) {
        const bool load = i->code == LILAC_SIMT_OP_LD_GLOBAL;
        if (i->code == LILAC_SIMT_OP_ST_GLOBAL || i->code == LILAC_SIMT_OP_BARRIER) {
            loads[count++] = seen;
        }
        seen += load;
    }
    return count;
}

static bool same_sums(uint64_t seed, const sums *c) {
    static uint8_t wanted[THREADS * SLOT], got[THREADS * SLOT];
    uint32_t before[2 * MOST], after[2 * MOST];
    lilac_text text = {0};
    generate_sums(&text, seed, c);
    lilac_context *context = lilac_context_create();
    lilac_simt_module *module = read_module(context, &text);
    execute(context, module, seed, wanted);
    lilac_simt_opt_dce(module->kernels); /* the pass assumes it */
    const uint32_t count = loads_before(module, before);
    const bool changed = lilac_simt_opt_schedule(module->kernels);
    assert_true(lilac_simt_verify(module));
    assert_int_equal(loads_before(module, after), count);
    assert_memory_equal(before, after, count * sizeof *before);
    execute(context, module, seed, got);
    assert_memory_equal(wanted, got, sizeof wanted);
    lilac_simt_module_destroy(module);
    lilac_context_destroy(context);
    lilac_text_clear(&text);
    return changed;
}

static void loads_before_uses(void **state) {
    (void)state;
    uint32_t changed = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        const sums many = {.tensors = 24 + (uint32_t)(seed % 9), .elements = 16};
        const sums few = {.tensors = 15, .elements = 16}; /* 240 words */
        changed += same_sums(seed, &many);
        assert_false(same_sums(seed, &few));
    }
    assert_true(changed > 30);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_results),      cmocka_unit_test(left_alone),
        cmocka_unit_test(by_element),        cmocka_unit_test(chains_without_loads),
        cmocka_unit_test(chains_left_alone), cmocka_unit_test(loads_before_uses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
