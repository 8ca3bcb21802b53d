/* Addresses of asynchronous copies that a loop advances by one step share one offset: random loops copy
 * the same words after lilac_simt_opt_share_increments, and of the addresses that only copies use, each
 * group with one step is one carried value. Steps are negative, differ between threads, or overflow 64
 * bits. */
#include <lilac/sim.h>

#include "support/test.h"

enum { THREADS = 32, WORDS = 1024, MOST = 6, CASES = 1500 };

/* How the addresses of a group advance. */
typedef enum step {
    FORWARDS,
    BACKWARDS,
    BY_LANES, /* by another number in each thread */
    FAR,      /* by 2^63: every other address is a number behind the buffer, and is not read */
    VARYING,  /* by another number in each iteration: the address stays */
    STEPS
} step;

/* What else uses an address, which stays then. */
typedef enum other_use {
    NOTHING,
    LOAD,
    RESULT, /* behind the loop */
    BRANCH, /* a copy in a branch */
    SLOT,   /* another carried value is its next value */
    OTHER_USES
} other_use;

typedef struct address {
    step step;
    other_use other;
    bool now, next; /* copies read the address before the step, after it */
    bool exchanged; /* step + address */
    bool early;     /* the sum is in front of the copies */
} address;

typedef struct loop_case {
    uint32_t count;
    address addresses[MOST];
    bool nested; /* in another loop, which advances another address */
} loop_case;

static const char *const step_names[STEPS] = {"c64", "minus", "lane", "top", "i4"};

static void put_advance(lilac_text *t, const loop_case *c, uint32_t k) {
    const address *a = &c->addresses[k];
    const char *by = step_names[a->step];
    if (a->exchanged) {
        lilac_text_printf(t, "%%n%u = add %%%s, %%p%u : i64\n", k, by, k);
    } else {
        lilac_text_printf(t, "%%n%u = add %%p%u, %%%s : i64\n", k, k, by);
    }
}

/* Copies to the thread's words 3 k to 3 k + 2. */
static void put_copies(lilac_text *t, const loop_case *c, uint32_t k) {
    const address *a = &c->addresses[k];
    const char *const now = a->step == FAR ? "%even, " : "", *const next =
                                                                 a->step == FAR ? "%odd, " : "";
    if (a->now) {
        lilac_text_printf(t, "cp.async [%%s + %u], %s(%%p%u) {size = 4}\n", 384 * k, now, k);
    }
    if (a->next) {
        lilac_text_printf(t, "cp.async [%%s + %u], %s(%%n%u, %%bytes) {size = 4}\n", 384 * k + 128,
                          next, k);
    }
    if (a->other == BRANCH) {
        lilac_text_printf(t, "if %%some {\ncp.async [%%s + %u], %s(%%p%u) {size = 4}\nyield\n}\n",
                          384 * k + 256, now, k);
    }
}

static void put_case(lilac_text *t, const loop_case *c) {
    lilac_text_puts(
        t, "simt.module target \"sm_90a\" {\n"
           "kernel @k(%g: i64 ptr align 16, %o: i64 ptr align 16, %iterations: i32) warps 1 "
           "ctas 1 shared 2432 {\n%g = param 0 : i64\n%o = param 1 : i64\n"
           "%iterations = param 2 : i32\n%t = thread : i32\n%zero = const 0 : i32\n"
           "%one = const 1 : i32\n%two = const 2 : i32\n%four = const 4 : i32\n"
           "%three = const 3 : i32\n%s = mul %t, %four : i32\n"
           "%lane = mulwide_u %t, %four : i64\n%c64 = const 64 : i64\n"
           "%minus = const -64 : i64\n%top = const 0x8000000000000000 : i64\n"
           "%middle = const 2048 : i64\n%at = add %g, %middle : i64\n"
           "%first = cmp ne %t, %four : i1\n%bytes = select %first, %four, %zero : i32\n");
    for (uint32_t k = 0; k <= 3 * MOST; k++) {
        lilac_text_printf(t, "st.shared [%%s + %u], (%%zero)\n", 128 * k);
    }
    for (uint32_t k = 0; k < c->count; k++) {
        lilac_text_printf(t, "%%c%u = const %u : i64\n%%b%u = add %%at, %%c%u : i64\n", k, 4 * k, k,
                          k);
    }
    lilac_text_puts(t, c->nested
                           ? "%r, %away = loop %j = %zero to %two step %one (%z = %zero, %back "
                             "= %at) : i32, i64 {\n%forth = add %back, %c64 : i64\n"
                           : "%z = const 7 : i32\n%back = const 9 : i64\n");
    lilac_text_printf(t, "%%%s", c->nested ? "q" : "r");
    for (uint32_t k = 0; k < 2 * c->count; k++) {
        lilac_text_printf(t, ", %%r%u", k);
    }
    lilac_text_puts(t, " = loop %i = %zero to %iterations step %one (%sum = %z");
    for (uint32_t k = 0; k < c->count; k++) {
        lilac_text_printf(t, ", %%p%u = %%b%u, %%e%u = %%b%u", k, k, k, k);
    }
    lilac_text_puts(t, ") : i32");
    for (uint32_t k = 0; k < 2 * c->count; k++) {
        lilac_text_puts(t, ", i64");
    }
    lilac_text_puts(t, " {\n%i4 = mulwide_u %i, %four : i64\n%bit = and %i, %one : i32\n"
                       "%even = cmp eq %bit, %zero : i1\n%odd = cmp ne %bit, %zero : i1\n"
                       "%some = cmp lt %i, %two : i1\n");
    for (uint32_t k = 0; k < c->count; k++) {
        if (c->addresses[k].early) {
            put_advance(t, c, k);
        }
    }
    for (uint32_t k = 0; k < c->count; k++) {
        if (!c->addresses[k].early) {
            put_advance(t, c, k);
        }
        put_copies(t, c, k);
    }
    lilac_text_puts(t, c->nested ? "cp.async [%s + 2304], (%back) {size = 4}\n" : "");
    lilac_text_puts(t, "cp.async.commit\ncp.async.wait_all\n%x0 = mul %sum, %three : i32\n");
    uint32_t x = 0;
    for (uint32_t k = 0; k <= 3 * MOST; k++, x++) {
        lilac_text_printf(t,
                          "%%l%u = ld.shared [%%s + %u] : i32\n%%y%u = mul %%x%u, %%three : i32\n"
                          "%%x%u = add %%y%u, %%l%u : i32\n",
                          k, 128 * k, x, x, x + 1, x, k);
    }
    for (uint32_t k = 0; k < c->count; k++) {
        if (c->addresses[k].other == LOAD) {
            lilac_text_printf(t,
                              "%%d%u = ld.global [%%p%u] : i32\n%%x%u = add %%x%u, %%d%u : i32\n",
                              k, k, x + 1, x, k);
            x++;
        }
    }
    lilac_text_printf(t, "yield %%x%u", x);
    for (uint32_t k = 0; k < c->count; k++) {
        lilac_text_printf(t, ", %%n%u, %%%s%u", k, c->addresses[k].other == SLOT ? "n" : "b", k);
    }
    lilac_text_puts(t, c->nested ? "\n}\nyield %q, %forth\n}\n" : "\n}\n");
    /* what the results are, relative to the buffer */
    lilac_text_puts(t, "%u0 = sext %r : i64\n");
    x = 0;
    for (uint32_t k = 0; k < c->count && !c->nested; k++) {
        if (c->addresses[k].other == RESULT || c->addresses[k].other == SLOT) {
            lilac_text_printf(t, "%%h%u = sub %%r%u, %%g : i64\n%%u%u = add %%u%u, %%h%u : i64\n",
                              k, 2 * k + (c->addresses[k].other == SLOT), x + 1, x, k);
            x++;
        }
    }
    lilac_text_printf(t,
                      "%%to0 = add %%o, %%lane : i64\n%%to = add %%to0, %%lane : i64\n"
                      "st.global [%%to], (%%u%u)\nreturn\n}\n}\n",
                      x);
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct version {
    lilac_context *context;
    lilac_simt_module *module;
    uint32_t carried; /* values of the inner loop */
    bool changed;
} version;

static const lilac_simt_instruction *inner_loop(const lilac_simt_body *body) {
    const lilac_simt_instruction *i = body->first;
    while (i->code != LILAC_SIMT_OP_LOOP) {
        i = i->next;
    }
    const lilac_simt_instruction *inner = i->bodies[0]->first;
    while (inner != NULL && inner->code != LILAC_SIMT_OP_LOOP) {
        inner = inner->next;
    }
    return inner != NULL ? inner : i;
}

static void make(version *v, const lilac_text *text, bool share) {
    v->context = lilac_context_create();
    v->module = lilac_simt_read(
        v->context, lilac_source_add(v->context, "loop.simt", text->bytes, text->length));
    if (v->module == NULL || !lilac_simt_verify(v->module)) {
        fputs(text->bytes, stderr);
        fail_with_diagnostics(v->context, "the loop is not well-formed");
    }
    v->changed = share && lilac_simt_opt_share_increments(v->module->kernels);
    if (!lilac_simt_verify(v->module)) {
        fputs(text->bytes, stderr);
        fail_with_diagnostics(v->context, "the loop is not well-formed afterwards");
    }
    (void)lilac_simt_opt_dce(v->module->kernels);
    assert_true(lilac_simt_verify(v->module));
    v->carried = inner_loop(v->module->kernels->body)->operand_count - 3U;
}

static void clear(version *v) {
    lilac_simt_module_destroy(v->module);
    lilac_context_destroy(v->context);
}

static void execute(const version *v, uint32_t iterations, uint64_t *results) {
    static uint32_t source[WORDS];
    for (uint32_t i = 0; i < WORDS; i++) {
        source[i] = 77 * i + 1;
    }
    memset(results, 0x5A, THREADS * sizeof *results);
    lilac_sim_buffer places[2] = {
        {.name = "source", .bytes = (uint8_t *)source, .size = sizeof source},
        {.name = "results", .bytes = (uint8_t *)results, .size = THREADS * sizeof *results}};
    lilac_sim_place(places, 2);
    const uint64_t arguments[3] = {places[0].address, places[1].address, iterations};
    const lilac_sim_launch launch = {.kernel = v->module->kernels,
                                     .grid = {1, 1, 1},
                                     .arguments = arguments,
                                     .argument_count = 3,
                                     .buffers = places,
                                     .buffer_count = 2,
                                     .threads = 1};
    lilac_sim_counters counters;
    if (!lilac_sim_run(v->context, &launch, &counters) || lilac_diagnostics(v->context) != NULL) {
        fail_with_diagnostics(v->context, "findings");
    }
}

/* The carried values that the loop needs no more. */
static uint32_t shared_of(const loop_case *c) {
    uint32_t saved = 0;
    for (uint32_t s = 0; s < VARYING; s++) {
        uint32_t count = 0;
        for (uint32_t k = 0; k < c->count; k++) {
            const address *a = &c->addresses[k];
            count += a->step == (step)s && a->other == NOTHING && (a->now || a->next);
        }
        saved += count > 1 ? count - 1 : 0;
    }
    return saved;
}

/* The carried values that are saved. */
static uint32_t try_case(const loop_case *c) {
    uint64_t wanted[THREADS], got[THREADS];
    lilac_text text = {0};
    version before, after;
    put_case(&text, c);
    make(&before, &text, false);
    make(&after, &text, true);
    const uint32_t saved = shared_of(c);
    if (after.changed != (saved > 0) || after.carried + saved != before.carried) {
        fputs(lilac_text_get(&text), stderr);
        fail_msg("%u carried values instead of %u; %u should be saved", after.carried,
                 before.carried, saved);
    }
    for (uint32_t iterations = 0; iterations < 6; iterations += 1 + iterations / 2) {
        execute(&before, iterations, wanted);
        execute(&after, iterations, got);
        if (memcmp(wanted, got, sizeof wanted) != 0) {
            fputs(lilac_text_get(&text), stderr);
            fail_msg("other words after %u iterations", iterations);
        }
    }
    clear(&before);
    clear(&after);
    lilac_text_clear(&text);
    return saved;
}

static void random_loops(void **state) {
    (void)state;
    lilac_random random;
    uint32_t saved = 0, changed = 0;
    lilac_random_seed(&random, 16);
    for (uint32_t i = 0; i < scaled(CASES); i++) {
        loop_case c = {.count = 1 + (uint32_t)lilac_random_below(&random, MOST),
                       .nested = lilac_random_below(&random, 4) == 0};
        const uint32_t steps = 1 + (uint32_t)lilac_random_below(&random, STEPS);
        for (uint32_t k = 0; k < c.count; k++) {
            address *a = &c.addresses[k];
            a->step = (step)((i + lilac_random_below(&random, steps)) % STEPS);
            a->other = lilac_random_below(&random, 4) == 0
                           ? (other_use)lilac_random_below(&random, OTHER_USES)
                           : NOTHING;
            a->other = (a->other == LOAD && a->step == FAR) || (a->other == RESULT && c.nested)
                           ? NOTHING
                           : a->other;
            const uint32_t copies = (uint32_t)lilac_random_below(&random, 8);
            a->now = copies % 4 != 0;
            a->next = copies % 4 != 1 || copies == 0;
            a->exchanged = lilac_random_below(&random, 2) == 0;
            a->early = lilac_random_below(&random, 2) == 0;
        }
        const uint32_t now = try_case(&c);
        saved += now;
        changed += now > 0;
    }
    print_message("%u loops changed, %u carried values less\n", changed, saved);
    assert_true(changed > scaled(CASES) / 3 && changed < scaled(CASES) - scaled(CASES) / 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
