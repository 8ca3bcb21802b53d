/* Addresses and masks of asynchronous copies and loads: random loops copy the same words after
 * lilac_simt_opt_split_addresses, also if lilac_simt_opt_carry_products follows, and chains of
 * addresses become one sum for each copy.
 *
 * An address is a sum in random order of the buffer, of invariant and varying offsets and of numbers that
 * together are 0 but overflow 64 bits, or the address of an earlier copy and an offset. An offset may be a
 * product of a narrow sum, which overflows 32 bits, and a factor that is not constant. A mask is a
 * conjunction in random order. The copies are in another order than their addresses. */
#include <lilac/sim.h>

#include "support/test.h"

enum { THREADS = 32, WORDS = 2048, MOST = 6, PARTS = 8, CASES = 1500 };

typedef struct generator {
    lilac_text *out;
    lilac_random *random;
    uint32_t names;
    bool nested;    /* the loop is in another one */
    uint32_t loads; /* of 4 copies, how many are ordinary loads and stores */
} generator;

static uint32_t below(generator *g, uint32_t bound) {
    return (uint32_t)lilac_random_below(g->random, bound);
}

/* Joins the parts pairwise in random order. The name of the result. */
static uint32_t join(generator *g, const char *operation, const char *type, char parts[][16],
                     uint32_t count) {
    while (count > 1) {
        for (uint32_t i = 0; i < 2; i++) { /* two of them to the end */
            char kept[16];
            const uint32_t from = below(g, count - i), to = count - 1 - i;
            memcpy(kept, parts[from], sizeof kept);
            memcpy(parts[from], parts[to], sizeof kept);
            memcpy(parts[to], kept, sizeof kept);
        }
        lilac_text_printf(g->out, "%%v%u = %s %%%s, %%%s : %s\n", g->names, operation,
                          parts[count - 1], parts[count - 2], type);
        snprintf(parts[count - 2], sizeof parts[0], "v%u", g->names++);
        count--;
    }
    if (parts[0][0] != 'v') { /* a name of its own */
        lilac_text_printf(g->out, "%%v%u = %s %%%s, %%%s : %s\n", g->names, operation, parts[0],
                          operation[1] == 'd' ? "zero" : parts[0], type);
        return g->names++;
    }
    return (uint32_t)atoi(parts[0] + 1);
}

/* A sum of offsets; with `base`, an address. */
static uint32_t put_sum(generator *g, bool base) {
    static const char *const offsets[] = {"lane", "far", "i4", "c4", "zero", "row"};
    static const char *const pairs[][2] = {{"big", "minus"}, {"i_big", "i_minus"}, {"top", "top"}};
    char parts[PARTS][16];
    uint32_t count = 0;
    if (base) {
        snprintf(parts[count++], sizeof parts[0], "g");
    }
    for (uint32_t k = 1 + below(g, 3); k > 0; k--) {
        snprintf(parts[count++], sizeof parts[0], "%s", offsets[below(g, 6)]);
    }
    if (below(g, 2) == 0) {
        const uint32_t k = below(g, 3);
        snprintf(parts[count++], sizeof parts[0], "%s", pairs[k][0]);
        snprintf(parts[count++], sizeof parts[0], "%s", pairs[k][1]);
    }
    return join(g, "add", "i64", parts, count);
}

/* 4 · stride · (counter + invariant numbers), as the front end writes rows of a tile. Returns its name. */
static uint32_t put_product(generator *g) {
    static const char *const counters[] = {"i", "i_shifted", "i_far"};
    static const char *const numbers[] = {"t", "first", "next", "nine", "three"};
    static const char *const pairs[][2] = {{"low", "high"}, {"top32", "top32"}};
    char parts[PARTS][16];
    uint32_t count = 0;
    snprintf(parts[count++], sizeof parts[0], "%s", counters[below(g, 3)]);
    for (uint32_t k = below(g, 3); k > 0; k--) {
        snprintf(parts[count++], sizeof parts[0], "%s", numbers[below(g, 5)]);
    }
    if (below(g, 2) == 0) {
        const uint32_t k = below(g, 2);
        snprintf(parts[count++], sizeof parts[0], "%s", pairs[k][0]);
        snprintf(parts[count++], sizeof parts[0], "%s", pairs[k][1]);
    }
    const uint32_t sum = count > 1 ? join(g, "add", "i32", parts, count) : g->names++;
    if (count == 1) {
        lilac_text_printf(g->out, "%%v%u = add %%%s, %%none : i32\n", sum, parts[0]);
    }
    lilac_text_printf(g->out,
                      below(g, 2) == 0 ? "%%v%u = mul %%v%u, %%stride : i32\n"
                                       : "%%v%u = mul %%stride, %%v%u : i32\n",
                      g->names, sum);
    lilac_text_printf(g->out, "%%v%u = mulwide_s %%v%u, %%four : i64\n", g->names + 1, g->names);
    g->names += 2;
    return g->names - 1;
}

static uint32_t put_mask(generator *g) {
    static const char *const conditions[] = {"m0", "m1", "m2", "m3"}; /* two are invariant */
    char parts[PARTS][16];
    uint32_t count = 0;
    for (uint32_t k = 1 + below(g, 4); k > 0; k--) {
        snprintf(parts[count++], sizeof parts[0], "%s", conditions[below(g, 4)]);
    }
    return join(g, "and", "i1", parts, count);
}

static void put_address(generator *g, uint32_t *addresses, uint32_t k) {
    if (k > 0 && below(g, 3) == 0) { /* a chain */
        addresses[k] = g->names++;
        lilac_text_printf(g->out, "%%v%u = add %%v%u, %%%s : i64\n", addresses[k],
                          addresses[below(g, k)], below(g, 2) == 0 ? "c4" : "lane");
    } else if (below(g, 4) == 0) { /* a shifted sum */
        const uint32_t sum = put_sum(g, false);
        lilac_text_printf(g->out, "%%v%u = shl %%v%u, %%one : i64\n%%v%u = add %%g, %%v%u : i64\n",
                          g->names, sum, g->names + 1, g->names);
        addresses[k] = g->names + 1;
        g->names += 2;
    } else if (below(g, 2) == 0) {
        const uint32_t sum = put_sum(g, true), product = put_product(g);
        lilac_text_printf(g->out, "%%v%u = add %%v%u, %%v%u : i64\n", g->names, sum, product);
        addresses[k] = g->names++;
    } else {
        addresses[k] = put_sum(g, true);
    }
}

/* A copy of 4 bytes, of which the mask may make zeros, or which a predicate skips. */
static void put_copy(generator *g, uint32_t place, uint32_t address, uint32_t mask) {
    if (below(g, 4) < g->loads) {
        lilac_text_printf(g->out, "%%h%u = ld.global [%%v%u]", place, address);
        if (below(g, 2) == 0) {
            lilac_text_printf(g->out, ", %%v%u", mask);
        }
        lilac_text_printf(g->out, " : i32\nst.shared [%%s + %u], (%%h%u)\n", 128 * place, place);
        return;
    }
    switch (below(g, 4)) {
    case 0:
        lilac_text_printf(g->out, "cp.async [%%s + %u], (%%v%u) {size = 4}\n", 128 * place,
                          address);
        break;
    case 1:
        lilac_text_printf(g->out, "cp.async [%%s + %u], %%m%u, (%%v%u) {size = 4}\n", 128 * place,
                          below(g, 4), address);
        break;
    default:
        lilac_text_printf(g->out, "%%n%u = select %%v%u, %%four, %%none : i32\n", place, mask);
        lilac_text_printf(g->out, "cp.async [%%s + %u], %s(%%v%u, %%n%u) {size = 4}\n", 128 * place,
                          below(g, 2) == 0 ? "" : "%m1, ", address, place);
    }
}

/* Each thread copies words to its own place and adds them to its sum: sum = 3 · sum + word. */
static void generate(generator *g) {
    uint32_t addresses[MOST], masks[MOST];
    const uint32_t copies = 1 + below(g, MOST);
    lilac_text_puts(
        g->out,
        "simt.module target \"sm_90a\" {\n"
        "kernel @k(%g: i64 ptr align 16, %o: i64 ptr align 16, %iterations: i32, %stride: i32) "
        "warps 1 ctas 1 shared 1024 {\n%g = param 0 : i64\n%o = param 1 : i64\n"
        "%iterations = param 2 : i32\n%stride = param 3 : i32\n%t = thread : i32\n%first = "
        "const 0 : i32\n"
        "%next = const 1 : i32\n%none = const 0 : i32\n%four = const 4 : i32\n"
        "%three = const 3 : i32\n%nine = const 9 : i32\n%s = mul %t, %four : i32\n"
        "%lane = mulwide_u %t, %four : i64\n%zero = const 0 : i64\n"
        "%c4 = const 4 : i64\n%one = const 1 : i64\n%far = const 64 : i64\n"
        "%big = const 0x7FFFFFFFFFFFFFF0 : i64\n%minus = const 0x8000000000000010 : "
        "i64\n%top = const 0x8000000000000000 : i64\n"
        "%low = const 0x7FFFFFFF : i32\n%high = const 0x80000001 : i32\n"
        "%top32 = const 0x80000000 : i32\n"
        "%m0 = cmp lt %t, %nine : i1\n%m1 = cmp ne %t, %four : i1\n");
    for (uint32_t k = 0; k < copies; k++) {
        lilac_text_printf(g->out, "st.shared [%%s + %u], (%%none)\n", 128 * k);
    }
    lilac_text_puts(g->out,
                    g->nested ? "%r = loop %j = %first to %three step %next (%z = %none) : i32 {\n"
                                "%row = mulwide_u %j, %four : i64\n"
                              : "%j = const 1 : i32\n%z = const 0 : i32\n%row = const 8 : i64\n");
    lilac_text_printf(
        g->out,
        "%%%s, %%w0 = loop %%i = %%first to %%iterations step %%next (%%sum = %%z, %%carried = "
        "%%big) : i32, i64 {\n%%i4 = mulwide_u %%i, %%four : i64\n"
        "%%i_big = add %%carried, %%i4 : i64\n%%i_minus = sub %%zero, %%i_big : i64\n"
        "%%i_shifted = shl %%i, %%next : i32\n%%i_far = add %%i_shifted, %%nine : i32\n"
        "%%m2 = cmp lt %%i, %%three : i1\n%%m3 = cmp ne %%i, %%t : i1\n",
        g->nested ? "q" : "r");
    for (uint32_t k = 0; k < copies; k++) {
        put_address(g, addresses, k);
        masks[k] = put_mask(g);
    }
    for (uint32_t k = copies; k > 0; k--) {
        const uint32_t from = below(g, k), address = addresses[from],
                       mask = masks[below(g, copies)];
        addresses[from] = addresses[k - 1];
        put_copy(g, k - 1, address, mask);
    }
    lilac_text_puts(g->out, "cp.async.commit\ncp.async.wait_all\n");
    lilac_text_puts(g->out, "%b0 = add %sum, %none : i32\n");
    for (uint32_t k = 0; k < copies; k++) {
        lilac_text_printf(g->out,
                          "%%l%u = ld.shared [%%s + %u] : i32\n%%a%u = mul %%b%u, %%three : i32\n"
                          "%%b%u = add %%a%u, %%l%u : i32\n",
                          k, 128 * k, k, k, k + 1, k, k);
    }
    lilac_text_printf(g->out, "%%after = add %%carried, %%far : i64\nyield %%b%u, %%after\n}\n",
                      copies);
    lilac_text_puts(g->out, g->nested ? "yield %q\n}\n" : "");
    lilac_text_puts(g->out, "%to = add %o, %lane : i64\nst.global [%to], (%r)\nreturn\n}\n}\n");
}

/* ---- running --------------------------------------------------------------------------------- */

static void execute(lilac_context *context, const lilac_simt_module *module, uint32_t iterations,
                    uint32_t *results) {
    static uint32_t source[WORDS];
    for (uint32_t i = 0; i < WORDS; i++) {
        source[i] = 77 * i + 1;
    }
    memset(results, 0x5A, THREADS * sizeof *results);
    lilac_sim_buffer places[2] = {
        {.name = "source", .bytes = (uint8_t *)source, .size = sizeof source},
        {.name = "results", .bytes = (uint8_t *)results, .size = THREADS * sizeof *results}};
    lilac_sim_place(places, 2);
    const uint64_t arguments[4] = {places[0].address, places[1].address, iterations, 3};
    const lilac_sim_launch launch = {.kernel = module->kernels,
                                     .grid = {1, 1, 1},
                                     .arguments = arguments,
                                     .argument_count = 4,
                                     .buffers = places,
                                     .buffer_count = 2,
                                     .threads = 1};
    lilac_sim_counters counters;
    if (!lilac_sim_run(context, &launch, &counters) || lilac_diagnostics(context) != NULL) {
        fail_with_diagnostics(context, "findings");
    }
}

/* The instructions of the innermost loop. */
static uint32_t loop_length(const lilac_simt_body *body) {
    uint32_t length = 0;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (i->code == LILAC_SIMT_OP_LOOP) {
            return loop_length(i->bodies[0]);
        }
        length++;
    }
    return length;
}

typedef struct version {
    lilac_context *context;
    lilac_simt_module *module;
    uint32_t length;
    bool changed, carries;
} version;

/* `merged`: after the passes that run before it in the pipeline. `carry`: carry_products follows. */
static void make(version *v, const lilac_text *text, bool merged, bool split, bool carry) {
    v->context = lilac_context_create();
    v->module = lilac_simt_read(
        v->context, lilac_source_add(v->context, "loop.simt", text->bytes, text->length));
    v->changed = false;
    if (v->module == NULL || !lilac_simt_verify(v->module)) {
        fputs(text->bytes, stderr);
        fail_with_diagnostics(v->context, "the loop is not well-formed");
    }
    if (merged) {
        (void)lilac_simt_opt_fold(v->module->kernels);
        (void)lilac_simt_opt_cse(v->module->kernels);
        (void)lilac_simt_opt_licm(v->module->kernels);
    }
    if (split) {
        v->changed = lilac_simt_opt_split_addresses(v->module->kernels);
    }
    v->carries = carry && lilac_simt_opt_carry_products(v->module->kernels);
    (void)lilac_simt_opt_dce(v->module->kernels);
    if (!lilac_simt_verify(v->module)) {
        fputs(text->bytes, stderr);
        fail_with_diagnostics(v->context, "the loop is not well-formed afterwards");
    }
    v->length = loop_length(v->module->kernels->body);
}

static void clear(version *v) {
    lilac_simt_module_destroy(v->module);
    lilac_context_destroy(v->context);
}

static void random_loops(void **state) {
    (void)state;
    lilac_random random;
    uint32_t changed = 0, carries = 0, from = 0, to = 0;
    lilac_random_seed(&random, 16);
    for (uint32_t i = 0; i < scaled(CASES); i++) {
        lilac_text text = {0};
        generator g = {.out = &text,
                       .random = &random,
                       .nested = i % 3 == 0,
                       .loads = i % 5 == 0   ? 4
                                : i % 5 == 1 ? 2
                                             : 0};
        version before, after;
        uint32_t wanted[THREADS], got[THREADS];
        generate(&g);
        make(&before, &text, i % 2 == 0, false, false);
        make(&after, &text, i % 2 == 0, true, i % 4 < 2);
        for (uint32_t iterations = 0; iterations < 6; iterations += 1 + iterations) {
            execute(before.context, before.module, iterations, wanted);
            execute(after.context, after.module, iterations, got);
            if (memcmp(wanted, got, sizeof wanted) != 0) {
                fputs(lilac_text_get(&text), stderr);
                fail_msg("case %u: other words after %u iterations", i, iterations);
            }
        }
        changed += after.changed;
        carries += after.carries;
        from += before.length;
        to += after.length;
        clear(&before);
        clear(&after);
        lilac_text_clear(&text);
    }
    print_message("%u loops changed, %u with carried products, %u instructions instead of %u\n",
                  changed, carries, to, from);
    assert_true(changed > scaled(CASES) / 2 && carries > scaled(CASES) / 20 &&
                to < from - from / 40);
}

/* A chain of addresses, each of which is `more` invariant offsets behind the one before it. */
static void put_chain(lilac_text *out, uint32_t copies, uint32_t more) {
    lilac_text_puts(out,
                    "simt.module target \"sm_90a\" {\n"
                    "kernel @k(%g: i64 ptr, %a: i64, %iterations: i32) warps 1 ctas 1 shared 2048 "
                    "{\n%g = param 0 : i64\n%a = param 1 : i64\n%iterations = param 2 : i32\n"
                    "%t = thread : i32\n%zero = const 0 : i32\n%one = const 1 : i32\n"
                    "%four = const 4 : i32\n%s = mul %t, %four : i32\n"
                    "loop %i = %zero to %iterations step %one {\n"
                    "%i4 = mulwide_u %i, %four : i64\n%p0 = add %i4, %g : i64\n");
    for (uint32_t k = 0; k < copies; k++) {
        lilac_text_printf(out, "%%x%u_0 = add %%p%u, %%a : i64\n", k, k);
        for (uint32_t n = 1; n < more; n++) {
            lilac_text_printf(out, "%%x%u_%u = add %%a, %%x%u_%u : i64\n", k, n, k, n - 1);
        }
        lilac_text_printf(out,
                          "%%p%u = add %%x%u_%u, %%a : i64\n"
                          "cp.async [%%s + %u], (%%p%u) {size = 4}\n",
                          k + 1, k, more - 1, 128 * k, k + 1);
    }
    lilac_text_puts(out, "yield\n}\ncp.async.commit\ncp.async.wait_all\nreturn\n}\n}\n");
}

/* One sum for each copy, whatever the length of the chain; alone, a copy stays as it is. */
static void chains(void **state) {
    (void)state;
    for (uint32_t copies = 1; copies <= 12; copies++) {
        for (uint32_t more = 1; more < 4; more++) {
            lilac_text text = {0};
            version before, after, again;
            put_chain(&text, copies, more);
            make(&before, &text, false, false, false);
            make(&after, &text, false, true, false);
            assert_int_equal(after.changed, copies > 1);
            /* besides: the offset of the iteration, the first sum, the copies and the end of the body */
            assert_int_equal(before.length, 1 + 1 + copies * (more + 1) + copies + 1);
            assert_int_equal(after.length, copies > 1 ? 1 + copies + copies + 1 : before.length);
            /* nothing is left to do */
            lilac_text_reset(&text);
            lilac_simt_print(&text, after.module);
            make(&again, &text, false, true, false);
            assert_false(again.changed);
            clear(&before);
            clear(&after);
            clear(&again);
            lilac_text_clear(&text);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_loops),
        cmocka_unit_test(chains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
