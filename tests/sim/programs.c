/* Programs on the simulator: random rings of buffers between producers and consumers run without a
 * report and give the right sums; each mutation of one is reported with both places.
 *
 *     producer  iteration i             consumer
 *       wait empty[i % stages]            wait full[i % stages]
 *       write buffer i % stages           read buffer i % stages
 *       arrive full[i % stages]           arrive empty[i % stages]
 */

#include "support/simt_text.h"
#include "support/test.h"

enum { BASE = 256, WORDS = 1 << 14, MOST_CONSUMERS = 3 };

typedef struct ring {
    uint32_t stages, iterations, producer_warps;
    uint32_t consumers, warps[MOST_CONSUMERS];
    bool copies;          /* the producer uses cp.async; else loads and stores */
    bool elected, frugal; /* one arrival for each warp: of producers, of consumers */
} ring;

static uint32_t data[WORDS], result[1024];

static uint32_t consumer_warps(const ring *r) {
    uint32_t sum = 0;
    for (uint32_t k = 0; k < r->consumers; k++) {
        sum += r->warps[k];
    }
    return sum;
}

/* Words of a producer's thread, and of a buffer. */
static uint32_t width(const ring *r) {
    return r->copies ? 4 : 1;
}

static uint32_t tile(const ring *r) {
    return 32 * r->producer_warps * width(r);
}

/* ---- the text --------------------------------------------------------------------------- */

static void put_head(lilac_text *out, const ring *r) {
    uint32_t warps = r->producer_warps + consumer_warps(r);
    lilac_text_printf(
        out,
        "simt.module target \"sm_90a\" {\n"
        "  kernel @k(%%data: i64 ptr, %%result: i64 ptr) warps %u ctas 1 shared %u {\n"
        "    %%d = param 0 : i64\n"
        "    %%r = param 1 : i64\n"
        "    %%t = thread : i32\n"
        "    %%zero = const 0 : i32\n"
        "    %%one = const 1 : i32\n"
        "    %%three = const 3 : i32\n"
        "    %%four = const 4 : i32\n"
        "    %%eight = const 8 : i32\n"
        "    %%stages = const %u : i32\n"
        "    %%fewer = const %u : i32\n"
        "    %%n = const %u : i32\n"
        "    %%threads = const %u : i32\n"
        "    %%words = const %u : i32\n"
        "    %%bytes = const %u : i32\n"
        "    %%width = const %u : i32\n"
        "    %%full_count = const %u : i32\n"
        "    %%empty_count = const %u : i32\n"
        "    %%first = cmp eq %%t, %%zero : i1\n",
        warps, BASE + 4 * tile(r) * r->stages, r->stages, r->stages - 1, r->iterations,
        32 * r->producer_warps, tile(r), 4 * tile(r), 4 * width(r),
        r->elected ? r->producer_warps : 32 * r->producer_warps,
        r->frugal ? consumer_warps(r) : 32 * consumer_warps(r));
    for (uint32_t s = 0; s < r->stages; s++) {
        lilac_text_printf(out,
                          "    mbarrier.init [%%zero + %u], %%first, (%%full_count)\n"
                          "    mbarrier.init [%%zero + %u], %%first, (%%empty_count)\n",
                          8 * s + 8, 8 * (s + r->stages) + 8);
    }
    lilac_text_puts(out, "    barrier\n");
}

/* Stage, parities and the buffer of iteration %i<n>. */
static void put_places(lilac_text *out, uint32_t n) {
    lilac_text_printf(out,
                      "        %%stage%u = rem_u %%i%u, %%stages : i32\n"
                      "        %%slot%u = rem_u %%i%u, %%stages : i32\n"
                      "        %%round%u = div_u %%i%u, %%stages : i32\n"
                      "        %%phase%u = and %%round%u, %%one : i32\n"
                      "        %%other%u = xor %%phase%u, %%one : i32\n"
                      "        %%bar%u = mul %%stage%u, %%eight : i32\n"
                      "        %%buffer%u = mul %%slot%u, %%bytes : i32\n",
                      n, n, n, n, n, n, n, n, n, n, n, n, n, n);
}

static void put_producer(lilac_text *out, const ring *r) {
    lilac_text_printf(out,
                      "    programs warps 0 to %u {\n"
                      "      %%mine = mul %%t, %%width : i32\n"
                      "      loop %%i0 = %%zero to %%n step %%one {\n",
                      r->producer_warps);
    put_places(out, 0);
    lilac_text_printf(out,
                      "        %%index = mul %%i0, %%bytes : i32\n"
                      "        %%offset = add %%index, %%mine : i32\n"
                      "        %%wide = zext %%offset : i64\n"
                      "        %%from = add %%d, %%wide : i64\n"
                      "        %%place = add %%buffer0, %%mine : i32\n"
                      "        mbarrier.wait [%%bar0 + %u], (%%other0)\n",
                      8 * r->stages + 8);
    if (r->copies) {
        lilac_text_printf(out,
                          "        cp.async [%%place + %d], (%%from) {size = 16}\n"
                          "        cp.async.mbarrier_arrive [%%bar0 + 8]\n",
                          BASE);
    } else {
        lilac_text_printf(out,
                          "        %%x = ld.global [%%from] : i32\n"
                          "        st.shared [%%place + %d], (%%x)\n%s",
                          BASE,
                          r->elected ? "        warp_barrier\n"
                                       "        %e0 = elect : i1\n"
                                       "        mbarrier.arrive [%bar0 + 8], %e0\n"
                                     : "        mbarrier.arrive [%bar0 + 8]\n");
    }
    lilac_text_puts(out, "        yield\n      }\n      yield\n    }");
}

/* Consumer n of the warps from `first` on; it reads words that all producer's warps wrote. */
static void put_consumer(lilac_text *out, const ring *r, uint32_t n, uint32_t first) {
    lilac_text_printf(
        out,
        " warps %u to %u {\n"
        "      %%sum%u = loop %%i%u = %%zero to %%n step %%one (%%s%u = %%zero) : i32 "
        "{\n",
        first, first + r->warps[n - 1], n, n, n);
    put_places(out, n);
    lilac_text_printf(out,
                      "        %%a%u = mul %%t, %%three : i32\n"
                      "        %%b%u = add %%a%u, %%i%u : i32\n"
                      "        %%c%u = rem_u %%b%u, %%words : i32\n"
                      "        %%d%u = mul %%c%u, %%four : i32\n"
                      "        %%place%u = add %%d%u, %%buffer%u : i32\n",
                      n, n, n, n, n, n, n, n, n, n, n);
    lilac_text_printf(out,
                      "        mbarrier.wait [%%bar%u + 8], (%%phase%u)\n"
                      "        %%x%u = ld.shared [%%place%u + %d] : i32\n",
                      n, n, n, n, BASE);
    if (r->frugal) {
        lilac_text_printf(out,
                          "        warp_barrier\n"
                          "        %%e%u = elect : i1\n"
                          "        mbarrier.arrive [%%bar%u + %u], %%e%u\n",
                          n, n, 8 * r->stages + 8, n);
    } else {
        lilac_text_printf(out, "        mbarrier.arrive [%%bar%u + %u]\n", n, 8 * r->stages + 8);
    }
    lilac_text_printf(out,
                      "        %%y%u = mul %%s%u, %%three : i32\n"
                      "        %%z%u = add %%y%u, %%x%u : i32\n"
                      "        yield %%z%u\n"
                      "      }\n"
                      "      %%o%u = mul %%t, %%four : i32\n"
                      "      %%w%u = zext %%o%u : i64\n"
                      "      %%to%u = add %%r, %%w%u : i64\n"
                      "      st.global [%%to%u], (%%sum%u)\n"
                      "      yield\n"
                      "    }",
                      n, n, n, n, n, n, n, n, n, n, n, n, n);
}

static char *write_ring(const ring *r) {
    lilac_text out = {0};
    uint32_t first = r->producer_warps;
    put_head(&out, r);
    put_producer(&out, r);
    for (uint32_t n = 1; n <= r->consumers; first += r->warps[n++ - 1]) {
        put_consumer(&out, r, n, first);
    }
    lilac_text_puts(&out, "\n    return\n  }\n}\n");
    char *text = strcpy(malloc(out.length + 1), lilac_text_get(&out));
    lilac_text_clear(&out);
    return text;
}

/* ---- running ---------------------------------------------------------------------------- */

static void read_and_run(simt_text *t, const char *text) {
    if (!simt_text_read(t, text)) {
        print_diagnostics(t->context);
        fail_msg("a text that does not read\n%s", text);
    }
    for (uint32_t k = 0; k < WORDS; k++) {
        data[k] = k * 2654435761u;
    }
    memset(result, 0, sizeof result);
    simt_text_give(t, "data", data, sizeof data);
    simt_text_give(t, "result", result, sizeof result);
    bool done = simt_text_run(t);
    assert_true(done || lilac_diagnostics(t->context) != NULL);
}

static void check_sums(const ring *r) {
    uint32_t begin = 32 * r->producer_warps, end = begin + 32 * consumer_warps(r);
    for (uint32_t t = begin; t < end; t++) {
        uint32_t sum = 0;
        for (uint32_t i = 0; i < r->iterations; i++) {
            sum = 3 * sum + data[i * tile(r) + (3 * t + i) % tile(r)];
        }
        assert_int_equal(result[t], sum);
    }
}

static void check_right(const ring *r, const char *text) {
    simt_text t;
    read_and_run(&t, text);
    if (lilac_diagnostics(t.context)) {
        print_diagnostics(t.context);
        fail_msg("a ring that is right is reported\n%s", text);
    }
    check_sums(r);
    simt_text_clear(&t);
}

/* Some diagnostic of the simulator, at a line, with a note at another place. */
static void check_reported(const char *text, const char *what) {
    simt_text t;
    bool found = false;
    read_and_run(&t, text);
    for (const lilac_diagnostic *d = lilac_diagnostics(t.context); d; d = d->next) {
        found |= d->location && d->notes && d->notes->location && strncmp(d->id, "simt-", 5) != 0;
    }
    if (!found) {
        print_diagnostics(t.context);
        fail_msg("%s: no report\n%s", what, text);
    }
    simt_text_clear(&t);
}

static ring random_ring(lilac_random *g) {
    ring r = {.stages = 2 + random_below(g, 4),
              .producer_warps = 1 + random_below(g, 3),
              .consumers = 1 + random_below(g, MOST_CONSUMERS),
              .copies = random_below(g, 2),
              .frugal = random_below(g, 2)};
    r.iterations = 2 * r.stages + 1 + random_below(g, 7);
    r.elected = !r.copies && random_below(g, 2);
    for (uint32_t k = 0; k < r.consumers; k++) {
        r.warps[k] = 1 + random_below(g, 3);
    }
    return r;
}

static void random_rings_are_right(void **state) {
    (void)state;
    lilac_random g;
    lilac_random_seed(&g, 1);
    for (uint32_t k = 0; k < 200; k++) {
        ring r = random_ring(&g);
        char *text = write_ring(&r);
        check_right(&r, text);
        free(text);
    }
}

/* The passes change neither the sums nor what is reported: nothing. */
static void passes_keep_rings_right(void **state) {
    (void)state;
    lilac_random g;
    lilac_random_seed(&g, 2);
    for (uint32_t k = 0; k < 40; k++) {
        ring r = random_ring(&g);
        char *text = write_ring(&r);
        simt_text t;
        assert_true(simt_text_read(&t, text));
        lilac_simt_opt_fold(t.kernel);
        lilac_simt_opt_cse(t.kernel);
        lilac_simt_opt_licm(t.kernel);
        lilac_simt_opt_barriers(t.kernel);
        lilac_simt_opt_dce(t.kernel);
        lilac_simt_opt_schedule(t.kernel);
        lilac_simt_opt_occupancy(t.kernel);
        lilac_text out = {0};
        lilac_simt_print(&out, t.module);
        check_right(&r, lilac_text_get(&out));
        lilac_text_clear(&out);
        simt_text_clear(&t);
        free(text);
    }
}

static void change_count(const char *text, const char *name, uint32_t count, uint32_t changed) {
    char from[64], to[64];
    snprintf(from, sizeof from, "%s = const %u ", name, count);
    snprintf(to, sizeof to, "%s = const %u ", name, changed);
    if (changed == 0) {
        return;
    }
    char *mutated = replaced(text, from, to);
    check_reported(mutated, to);
    free(mutated);
}

static void mutations_of_rings_are_reported(void **state) {
    static const struct {
        const char *from, *to;
    } parities[] = {{"], (%phase1)", "], (%other1)"}, {"], (%other0)", "], (%phase0)"}};
    (void)state;
    lilac_random g;
    lilac_random_seed(&g, 3);
    for (uint32_t k = 0; k < 60; k++) {
        ring r = random_ring(&g);
        char *text = write_ring(&r), line[128];
        for (size_t m = 0; m < 2; m++) {
            char *mutated = replaced(text, parities[m].from, parities[m].to);
            check_reported(mutated, parities[m].to);
            free(mutated);
        }
        /* the consumers use as few buffers as the producer: what is missing is a release */
        char *one = replaced(text, "%slot0 = rem_u %i0, %stages", "%slot0 = rem_u %i0, %fewer");
        for (uint32_t n = 1; n <= r.consumers; n++) {
            char from[64], to[64];
            snprintf(from, sizeof from, "%%slot%u = rem_u %%i%u, %%stages", n, n);
            snprintf(to, sizeof to, "%%slot%u = rem_u %%i%u, %%fewer", n, n);
            char *next = replaced(one, from, to);
            free(one);
            one = next;
        }
        check_reported(one, "a buffer too few");
        free(one);
        /* a missing wait of each side, and missing arrivals */
        snprintf(line, sizeof line, "        mbarrier.wait [%%bar0 + %u], (%%other0)\n",
                 8 * r.stages + 8);
        char *mutated = replaced(text, line, "");
        check_reported(mutated, "no wait of the producer");
        free(mutated);
        mutated = replaced(text, "        mbarrier.wait [%bar1 + 8], (%phase1)\n", "");
        check_reported(mutated, "no wait of a consumer");
        free(mutated);
        snprintf(line, sizeof line, "        mbarrier.arrive [%%bar1 + %u]%s\n", 8 * r.stages + 8,
                 r.frugal ? ", %e1" : "");
        mutated = replaced(text, line, "");
        check_reported(mutated, "no arrival of a consumer");
        free(mutated);
        mutated = r.copies    ? replaced(text, "        cp.async.mbarrier_arrive [%bar0 + 8]\n", "")
                  : r.elected ? replaced(text, "        mbarrier.arrive [%bar0 + 8], %e0\n", "")
                              : replaced(text, "        mbarrier.arrive [%bar0 + 8]\n", "");
        check_reported(mutated, "no arrival of the producer");
        free(mutated);
        uint32_t full = r.elected ? r.producer_warps : 32 * r.producer_warps;
        uint32_t empty = r.frugal ? consumer_warps(&r) : 32 * consumer_warps(&r);
        change_count(text, "%full_count", full, full + 1);
        change_count(text, "%full_count", full, full - 1);
        change_count(text, "%empty_count", empty, empty + 1);
        change_count(text, "%empty_count", empty, empty - 1);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_rings_are_right),
                                       cmocka_unit_test(passes_keep_rings_right),
                                       cmocka_unit_test(mutations_of_rings_are_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
