/* What the PTX says to ptxas about registers and the order of loads: the register pressure, the
 * number of blocks, scheduling barriers after rows of loads, and rematerialised predicates. */
#include <lilac/ptx.h>

#include "support/test.h"

typedef struct writing {
    lilac_context *context;
    lilac_simt_module *module;
    lilac_text ptx;
} writing;

/* The three passes. What they leave is valid and reads back, and they find nothing more in it. */
static bool prepare(const writing *w) {
    lilac_simt_kernel *kernel = w->module->kernels;
    (void)lilac_simt_opt_occupancy(kernel);
    (void)lilac_simt_opt_schedule_barriers(kernel);
    (void)lilac_simt_opt_rematerialize_predicates(kernel);
    lilac_text text = {0}, again = {0};
    lilac_simt_print(&text, w->module);
    lilac_simt_module *module = lilac_simt_read(
        w->context, lilac_source_add(w->context, "again", lilac_text_get(&text), text.length));
    bool good = module != NULL && lilac_simt_verify(w->module) && lilac_simt_verify(module);
    if (good) {
        lilac_simt_print(&again, module);
        good = strcmp(lilac_text_get(&text), lilac_text_get(&again)) == 0 &&
               !lilac_simt_opt_schedule_barriers(module->kernels) &&
               !lilac_simt_opt_rematerialize_predicates(module->kernels);
    }
    lilac_simt_module_destroy(module);
    lilac_text_clear(&text);
    lilac_text_clear(&again);
    return good;
}

/* Compiles a kernel of which `text` is the beginning. */
static void finish(writing *w, lilac_text *text, const char *body) {
    lilac_text_puts(text, body);
    lilac_text_puts(text, "return\n}\n}\n");
    w->context = lilac_context_create();
    w->ptx = (lilac_text){0};
    w->module = lilac_simt_read(
        w->context, lilac_source_add(w->context, "k", lilac_text_get(text), text->length));
    const lilac_ptx_options options = {0};
    if (w->module == NULL || !prepare(w) || !lilac_ptx_write(&w->ptx, w->module, &options)) {
        fputs(text->bytes, stderr);
        fail_with_diagnostics(w->context, "the kernel is not compiled");
    }
    lilac_text_clear(text);
}

/* count times "line" with @ in it replaced by its number. */
static void repeat(lilac_text *out, uint32_t from, uint32_t count, const char *line) {
    for (uint32_t k = from; k < from + count; k++) {
        for (const char *c = line; *c; c++) {
            if (*c == '@') {
                lilac_text_unsigned(out, k);
            } else {
                lilac_text_char(out, *c);
            }
        }
    }
}

static void open(writing *w, uint32_t warps, const char *body) {
    lilac_text text = {0};
    lilac_text_printf(&text,
                      "simt.module target \"sm_90a\" {\nkernel @k(%%p: i64 ptr align 16, %%n: i32) "
                      "warps %u ctas 1 shared 1024 {\n%%p = param 0 : i64\n%%n = param 1 : i32\n"
                      "%%base = shared_base : i32\n%%t = thread : i32\n%%b = block x : i32\n"
                      "%%four = const 4 : i32\n%%tw = mulwide_u %%t, %%four : i64\n"
                      "%%bw = mulwide_u %%b, %%four : i64\n%%all = add %%p, %%tw : i64\n"
                      "%%own = add %%all, %%bw : i64\n%%zero = const 0 : i32\n"
                      "%%one = const 1 : i32\n",
                      warps);
    finish(w, &text, body);
}

/* A kernel with pointers %p0, %p1, … */
static void open_pointers(writing *w, uint32_t pointers, const char *body) {
    lilac_text text = {0};
    lilac_text_puts(&text, "simt.module target \"sm_90a\" {\nkernel @k(");
    repeat(&text, 0, pointers, "%p@: i64 ptr align 16, ");
    lilac_text_puts(&text, "%n: i32) warps 8 ctas 1 shared 0 {\n");
    repeat(&text, 0, pointers, "%p@ = param @ : i64\n");
    lilac_text_printf(&text, "%%n = param %u : i32\n", pointers);
    lilac_text_puts(&text, "%t = thread : i32\n%four = const 4 : i32\n%zero = const 0 : i32\n"
                           "%one = const 1 : i32\n%tw = mulwide_u %t, %four : i64\n");
    finish(w, &text, body);
}

static void close(writing *w) {
    lilac_text_clear(&w->ptx);
    lilac_simt_module_destroy(w->module);
    lilac_context_destroy(w->context);
}

static uint32_t pressure(const char *body, bool late) {
    writing w;
    open(&w, 4, body);
    uint32_t words = lilac_simt_pressure(w.module->kernels, late ? LILAC_SIMT_PRESSURE_LATE
                                                                 : LILAC_SIMT_PRESSURE_EARLY);
    close(&w);
    return words;
}

/* ---- pressure --------------------------------------------------------------------------- */

#define LOAD2 "%x = ld.global [%own] : i32\n%y = ld.global [%own + 512] : i32\n"

static void words_alive(void **state) {
    (void)state;
    /* The address (two words) is wanted by the store; a and b at once, then their sum. */
    assert_int_equal(pressure(LOAD2 "%z = add %x, %y : i32\nst.global [%own], (%z)\n", false), 4);
    /* Text order has four words of products; in the order counted each is computed when wanted. */
    assert_int_equal(pressure(LOAD2 "%a = mul %x, %x : i32\n%c = mul %y, %y : i32\n"
                                    "%d = add %a, %x : i32\n%e = add %c, %y : i32\n"
                                    "st.global [%own], (%d)\nst.global [%own + 512], (%e)\n",
                              false),
                     5);
    /* 64 bits take two, predicates, constants, parameters and uniform integers nothing. */
    assert_int_equal(pressure("%x = ld.global [%own] : i64\n%c = cmp lt %t, %n : i1\n"
                              "%m = add %n, %b : i32\nst.global [%own], %c, (%x)\n",
                              false),
                     4 + 1);
    /* Ten at once are three more than have a place of their own. */
    lilac_text body = {0};
    repeat(&body, 0, 10, "%k@ = const @ : i32\n%c@ = cmp lt %t, %k@ : i1\n");
    repeat(&body, 0, 10, "st.global [%own + @00], %c@, (%t)\n");
    repeat(&body, 0, 10, "st.global [%own + @0000], %c@, (%t)\n");
    assert_int_equal(pressure(lilac_text_get(&body), false), 3 + 3);
    lilac_text_clear(&body);
    /* What a loop uses is alive all through it, also behind its last use there. */
    assert_int_equal(pressure("%x = ld.global [%own] : i32\n"
                              "%r = loop %i = %zero to %n step %one (%s = %t) : i32 {\n"
                              "%u = add %s, %x : i32\nyield %u\n}\nst.global [%own], (%r)\n",
                              false),
                     4);
}

static void late_loads(void **state) {
    (void)state;
    lilac_text body = {0};
    repeat(&body, 0, 8, "%x@ = ld.global [%own + @0000] : i32\n");
    repeat(&body, 0, 8, "%w@ = ld.global [%all + @0000] : i32\n");
    repeat(&body, 0, 8, "%y@ = mul %x@, %w@ : i32\n");
    repeat(&body, 0, 8, "st.global [%own + @0000], (%y@)\n");
    uint32_t early = pressure(lilac_text_get(&body), false);
    uint32_t late = pressure(lilac_text_get(&body), true);
    assert_int_equal(early, 15 + 4);   /* all that was loaded but the last, and two addresses */
    assert_int_equal(late, 8 + 1 + 4); /* one of the weights at a time; two addresses */
    /* Not beyond a barrier. */
    lilac_text_clear(&body);
    repeat(&body, 0, 8, "%w@ = ld.global [%all + @0000] : i32\n");
    lilac_text_puts(&body, "barrier\n");
    repeat(&body, 0, 8, "%x@ = ld.global [%own + @0000] : i32\n%y@ = mul %x@, %w@ : i32\n");
    repeat(&body, 0, 8, "st.global [%own + @0000], (%y@)\n");
    assert_int_equal(pressure(lilac_text_get(&body), true), pressure(lilac_text_get(&body), false));
    lilac_text_clear(&body);
}

/* ---- blocks ----------------------------------------------------------------------------- */

/* Checks the number of blocks in .minnctapersm; 0: there is no such directive. */
static void check_min_blocks(const writing *w, size_t number, uint32_t blocks) {
    const char *said = strstr(w->ptx.bytes, ".minnctapersm ");
    uint32_t found = said ? (uint32_t)strtoul(said + 14, NULL, 10) : 0;
    if (found != blocks) {
        fail_msg("case %zu: %u blocks, not %u, with words %u early, %u late", number, found, blocks,
                 lilac_simt_pressure(w->module->kernels, LILAC_SIMT_PRESSURE_EARLY),
                 lilac_simt_pressure(w->module->kernels, LILAC_SIMT_PRESSURE_LATE));
    }
}

/* `own` words of the block's and `shared` that all blocks load, behind a barrier or not. */
static void norm(lilac_text *body, uint32_t own, uint32_t shared, const char *barrier) {
    repeat(body, 0, own, "%x@ = ld.global [%own + @0000] : i32\n");
    lilac_text_puts(body, barrier);
    repeat(body, 0, shared, "%w@ = ld.global [%all + @0000] : i32\n");
    repeat(body, 0, shared, "%y@ = mul %x@, %w@ : i32\n");
    repeat(body, 0, shared, "st.global [%own + @0000], (%y@)\n");
    repeat(body, shared, own - shared, "st.global [%own + @0000], (%x@)\n");
}

static void blocks_stated(void **state) {
    (void)state;
    static const struct {
        uint32_t warps, own, shared;
        const char *barrier;
        uint32_t blocks;
    } cases[] = {
        {16, 44, 20, "barrier\n", 2}, /* 64 registers or one block */
        {16, 44, 20, "", 0},          /* nothing waits */
        {16, 44, 4, "barrier\n", 0},  /* two blocks either way */
        {16, 64, 20, "barrier\n", 0}, /* one block either way */
        {8, 44, 20, "barrier\n", 4},
        {4, 20, 14, "barrier\n", 0}, /* near the largest number that fits */
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        lilac_text body = {0};
        norm(&body, cases[k].own, cases[k].shared, cases[k].barrier);
        writing w;
        open(&w, cases[k].warps, lilac_text_get(&body));
        check_min_blocks(&w, k, cases[k].blocks);
        close(&w);
        lilac_text_clear(&body);
    }
}

/* A second block where the words beyond half of the registers cost less than the gaps of one block. */
static void blocks_with_spills(void **state) {
    (void)state;
    static const struct {
        uint32_t warps, words, work;
        const char *barrier;
        uint32_t blocks;
    } cases[] = {
        {8, 150, 2000, "", 2},          {8, 150, 600, "", 0}, /* memory needs longer */
        {8, 200, 2000, "", 0},                                /* too many words */
        {8, 100, 2000, "", 0},                                /* two blocks already */
        {16, 80, 2000, "", 0},                                /* a block of more warps */
        {8, 150, 2000, "barrier\n", 0},                       /* warps wait */
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        lilac_text body = {0};
        repeat(&body, 0, cases[k].words, "%x@ = ld.global [%own + @0000] : i32\n");
        lilac_text_printf(&body, "%s%%s0 = add %%t, %%x0 : i32\n", cases[k].barrier);
        for (uint32_t i = 0; i < cases[k].work; i++) {
            lilac_text_printf(&body, "%%s%u = %s %%s%u, %%x%u : i32\n", i + 1,
                              i & 1 ? "mul" : "add", i, i * cases[k].words / cases[k].work);
        }
        lilac_text_printf(&body, "st.global [%%own], (%%s%u)\n", cases[k].work);
        writing w;
        open(&w, cases[k].warps, lilac_text_get(&body));
        check_min_blocks(&w, k, cases[k].blocks);
        close(&w);
        lilac_text_clear(&body);
    }
}

/* A loop that loads `loads` words per iteration and does `work` with each, between
 * `alive` words that are loaded before it and used in it. */
static void stream(lilac_text *body, uint32_t alive, uint32_t loads, uint32_t work,
                   const char *barrier) {
    repeat(body, 0, alive, "%a@ = ld.global [%own + @00] : i32\n");
    lilac_text_puts(body, "%r = loop %i = %zero to %n step %one (%s = %t) : i32 {\n");
    repeat(body, 0, loads, "%x@ = ld.global [%own + @0000] : i32\n");
    lilac_text_printf(body, "%s%%s0 = add %%s, %%x0 : i32\n", barrier);
    uint32_t sum = 0;
    for (uint32_t k = 0; k < loads; k++) {
        for (uint32_t w = 0; w < work; w++, sum++) {
            lilac_text_printf(body, "%%s%u = %s %%s%u, %%x%u : i32\n", sum + 1,
                              w & 1 ? "mul" : "add", sum, k);
        }
    }
    for (uint32_t k = 0; k < alive; k++, sum++) {
        lilac_text_printf(body, "%%s%u = add %%s%u, %%a%u : i32\n", sum + 1, sum, k);
    }
    lilac_text_printf(body, "yield %%s%u\n}\nst.global [%%own], (%%r)\n", sum);
}

static void blocks_of_streams(void **state) {
    (void)state;
    static const struct {
        uint32_t warps, alive, loads, work;
        const char *barrier;
        uint32_t blocks;
    } cases[] = {
        {4, 0, 44, 2, "", 9},          /* 56 registers */
        {4, 0, 90, 2, "", 4},          /* 104 */
        {8, 0, 90, 2, "", 2},          /* the same threads in larger blocks */
        {4, 0, 44, 2, "barrier\n", 0}, /* warps wait in the loop */
        {4, 0, 44, 24, "", 9},         /* arithmetic for three quarters of the time */
        {4, 0, 44, 40, "", 0},         /* for longer than the loads */
        {4, 0, 90, 24, "", 0},         /* for three quarters, with 16 warps */
        {4, 0, 30, 2, "", 12},         /* 40 registers */
        {8, 0, 30, 2, "", 6},          /* the same */
        {4, 0, 12, 2, "", 0},          /* near the largest number that fits */
        {4, 40, 4, 2, "", 9},          /* a row of loads, and other values */
        {4, 40, 3, 2, "", 0},          /* no row */
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        lilac_text body = {0};
        stream(&body, cases[k].alive, cases[k].loads, cases[k].work, cases[k].barrier);
        writing w;
        open(&w, cases[k].warps, lilac_text_get(&body));
        check_min_blocks(&w, k, cases[k].blocks);
        close(&w);
        lilac_text_clear(&body);
    }
}

/* `own` words, an exchange of their sum, and `more` words behind it: both are kept together, as the
 * exchange waits for the former. */
static void around_exchanges(void **state) {
    (void)state;
    static const struct {
        uint32_t own, more;
        const char *between;
        uint32_t blocks;
    } cases[] = {
        {40, 8, "%e = shuffle xor %s40, %one : i32\n", 9},
        {40, 4, "%e = shuffle xor %s40, %one : i32\n", 9},
        {40, 0, "%e = shuffle xor %s40, %one : i32\n", 10},
        {40, 8, "%e = add %s40, %one : i32\n", 0},
        {40, 8, "barrier\n%e = shuffle xor %s40, %one : i32\n", 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        lilac_text body = {0};
        repeat(&body, 0, cases[k].own, "%x@ = ld.global [%own + @0000] : i32\n");
        lilac_text_puts(&body, "%s0 = add %t, %t : i32\n");
        for (uint32_t x = 0; x < cases[k].own; x++) {
            lilac_text_printf(&body, "%%s%u = add %%s%u, %%x%u : i32\n", x + 1, x, x);
        }
        lilac_text_puts(&body, cases[k].between);
        repeat(&body, 0, cases[k].more, "%w@ = ld.global [%own + @00] : i32\n");
        repeat(&body, 0, cases[k].more, "%y@ = mul %w@, %e : i32\n%z@ = mul %x@, %y@ : i32\n");
        repeat(&body, 0, cases[k].more, "st.global [%own + @0000], (%z@)\n");
        repeat(&body, cases[k].more, cases[k].own - cases[k].more,
               "st.global [%own + @0000], (%x@)\n");
        writing w;
        open(&w, 4, lilac_text_get(&body));
        check_min_blocks(&w, k, cases[k].blocks);
        close(&w);
        lilac_text_clear(&body);
    }
}

/* ---- scheduling barriers ---------------------------------------------------------------- */

static uint32_t count_of(const char *text, const char *word) {
    uint32_t count = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        count++;
    }
    return count;
}

static uint32_t scheduling_barriers(const char *body) {
    writing w;
    open(&w, 4, body);
    const char *ptx = lilac_text_get(&w.ptx);
    uint32_t count = count_of(ptx, "bra.uni \t$L_end_0") + count_of(ptx, "bra.uni $L_end_0");
    assert_int_equal(count_of(ptx, "$L_end_0:"), count > 0);
    const char *end = strstr(ptx, "$L_end_0:");
    assert_true(end == NULL || strncmp(end, "$L_end_0:\n\tret;", 14) == 0);
    /* Behind the last load. */
    const char *branch = strstr(ptx, "bra.uni");
    if (count == 1) {
        assert_null(strstr(branch, "ld.global"));
    }
    close(&w);
    return count;
}

/* A chain of operations on what was loaded (%t, the thread: on nothing that was). */
static void work(lilac_text *body, uint32_t from, uint32_t count, const char *on) {
    lilac_text_printf(body, "%%v%u = add %s, %s : i32\n", from, on, on);
    for (uint32_t k = from + 1; k < from + count; k++) {
        lilac_text_printf(body, "%%v%u = mul %%v%u, %s : i32\n", k, k - 1, on);
    }
}

static void barriers_behind_rows(void **state) {
    (void)state;
    lilac_text body = {0};
    lilac_text_puts(&body, LOAD2);
    work(&body, 0, 120, "%x");
    lilac_text_puts(&body, "st.global [%own], (%v119)\n");
    assert_int_equal(scheduling_barriers(lilac_text_get(&body)), 1);

    lilac_text_puts(&body, "barrier\n"); /* behind the work */
    assert_int_equal(scheduling_barriers(lilac_text_get(&body)), 1);

    lilac_text_clear(&body); /* in front of it, so that loads cannot be delayed beyond it */
    lilac_text_puts(&body, LOAD2 "barrier\n");
    work(&body, 0, 120, "%x");
    lilac_text_puts(&body, "%z = add %v119, %y : i32\nst.global [%own], (%z)\n");
    assert_int_equal(scheduling_barriers(lilac_text_get(&body)), 0);

    lilac_text_clear(&body); /* short work */
    lilac_text_puts(&body, LOAD2);
    work(&body, 0, 60, "%x");
    lilac_text_puts(&body, "st.global [%own], (%v59)\n");
    assert_int_equal(scheduling_barriers(lilac_text_get(&body)), 0);

    lilac_text_clear(&body); /* work that waits for no load */
    lilac_text_puts(&body, LOAD2);
    work(&body, 0, 120, "%t");
    lilac_text_puts(&body, "%z = add %x, %y : i32\n%z1 = add %z, %v119 : i32\n"
                           "st.global [%own], (%z1)\n");
    assert_int_equal(scheduling_barriers(lilac_text_get(&body)), 0);

    lilac_text_clear(&body); /* a shuffle on the way keeps no load from being delayed */
    lilac_text_puts(&body, LOAD2);
    work(&body, 0, 60, "%x");
    lilac_text_puts(&body, "%z = shuffle xor %v59, %one : i32\n");
    work(&body, 200, 120, "%z");
    lilac_text_puts(&body, "%z1 = add %v319, %y : i32\nst.global [%own], (%z1)\n");
    assert_int_equal(scheduling_barriers(lilac_text_get(&body)), 1);

    /* rows with which three eighths of the warps are resident beside what is live already, and are not */
    for (uint32_t others = 8; others <= 32; others += 24) {
        lilac_text_clear(&body);
        repeat(&body, 100, others, "%q@ = ld.global [%own + @0000] : i32\n");
        lilac_text_puts(&body, "barrier\n");
        repeat(&body, 10, 48, "%x@ = ld.global [%own + @0000] : i32\n");
        repeat(&body, 10, 48,
               "%y@ = mul %x@, %x@ : i32\n%w@ = add %y@, %t : i32\n%z@ = mul %w@, %t : i32\n");
        repeat(&body, 10, 48, "st.global [%own + @0000], (%z@)\n");
        repeat(&body, 100, others, "st.global [%own + @0000], (%q@)\n");
        assert_int_equal(scheduling_barriers(lilac_text_get(&body)), others == 8);
    }

    /* the number of blocks that the kernel asks for leaves no registers for the row (as in
     * blocks_stated), and other code of as many words */
    for (uint32_t shared = 4; shared <= 20; shared += 16) {
        writing w;
        lilac_text_clear(&body);
        norm(&body, 44, shared, "barrier\n");
        lilac_text_puts(&body, "barrier\n" LOAD2);
        work(&body, 0, 120, "%x");
        lilac_text_puts(&body, "%z = add %v119, %y : i32\nst.global [%own], (%z)\n");
        open(&w, 8, lilac_text_get(&body));
        check_min_blocks(&w, shared, shared == 20 ? 4 : 0);
        assert_int_equal(count_of(lilac_text_get(&w.ptx), "bra.uni"), shared == 4);
        close(&w);
    }

    lilac_text_clear(&body); /* a row of too many words */
    repeat(&body, 10, 72, "%x@ = ld.global [%own + @0000] : i32\n");
    repeat(&body, 10, 72,
           "%y@ = mul %x@, %x@ : i32\n%w@ = add %y@, %t : i32\n%z@ = mul %w@, %t : i32\n");
    repeat(&body, 10, 72, "st.global [%own + @0000], (%z@)\n");
    assert_int_equal(scheduling_barriers(lilac_text_get(&body)), 0);

    lilac_text_clear(&body); /* one load is no row */
    lilac_text_puts(&body, "%x = ld.global [%own] : i32\n%y = add %x, %x : i32\n");
    work(&body, 0, 120, "%x");
    lilac_text_puts(&body, "st.global [%own], (%v119)\n");
    assert_int_equal(scheduling_barriers(lilac_text_get(&body)), 0);

    lilac_text_clear(&body); /* two rows; a short way between loads keeps them in one */
    lilac_text_puts(&body, LOAD2);
    work(&body, 0, 120, "%x");
    lilac_text_puts(&body, "%z = ld.global [%own + 1024] : i32\n");
    work(&body, 200, 30, "%z");
    lilac_text_puts(&body, "%z1 = ld.global [%own + 1536] : i32\n");
    work(&body, 300, 120, "%z1");
    lilac_text_puts(&body, "%z2 = add %z, %z1 : i32\n%z3 = add %z2, %v119 : i32\n"
                           "%z4 = add %z3, %v419 : i32\n%z5 = add %z4, %v229 : i32\n"
                           "st.global [%own], (%z5)\n");
    assert_int_equal(scheduling_barriers(lilac_text_get(&body)), 2);

    lilac_text_clear(&body); /* in a loop */
    lilac_text_puts(&body, "%r = loop %i = %zero to %n step %one (%s = %t) : i32 {\n" LOAD2);
    work(&body, 0, 120, "%x");
    lilac_text_puts(&body, "%u = add %v119, %s : i32\nyield %u\n}\nst.global [%own], (%r)\n");
    assert_int_equal(scheduling_barriers(lilac_text_get(&body)), 0);
    lilac_text_clear(&body);
}

/* Is there a barrier in front of the first load, with `pointers` addresses computed before it? */
static bool has_barrier_in_front(const char *ptx, uint32_t pointers) {
    const char *branch = strstr(ptx, "bra.uni"), *load = strstr(ptx, "ld.global");
    if (branch == NULL || branch > load) {
        return false;
    }
    assert_int_equal(count_of(ptx, "mov.b64 {"), pointers); /* their upper words */
    assert_int_equal(count_of(ptx, "add.s64") - count_of(branch, "add.s64"), pointers);
    assert_int_equal(count_of(ptx, "bra.uni"), 1);
    return true;
}

static void barriers_in_front_of_loads(void **state) {
    (void)state;
    static const char each[] = "%a@ = add %p@, %tw : i64\n%x@ = ld.global [%a@] : i32\n";
    static const char wide[] =
        "%a@ = add %p@, %tw : i64\n%x@, %y@, %z@, %w@ = ld.global [%a@] : i32, i32, i32, i32\n";
    static const char store[] = "st.global [%a0 + @0000], (%x@)\n";
    static const char stores[] = "st.global [%a@], (%x@, %y@, %z@, %w@)\n";
    static const struct {
        uint32_t pointers;
        const char *load, *store;
        bool barrier;
    } cases[] = {
        {7, each, store, false},  {8, each, store, true},
        {10, each, store, true},  /* 20 words of addresses and others: 64 warps have 32 registers */
        {11, each, store, false}, /* the addresses cost warps */
        {8, wide, stores, false}, /* the loads cost them */
    };
    writing w;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        lilac_text body = {0};
        repeat(&body, 0, cases[k].pointers, cases[k].load);
        repeat(&body, 0, cases[k].pointers, cases[k].store);
        open_pointers(&w, cases[k].pointers, lilac_text_get(&body));
        if (has_barrier_in_front(lilac_text_get(&w.ptx), cases[k].pointers) != cases[k].barrier) {
            fail_msg("case %zu:\n%s", k, lilac_text_get(&w.ptx));
        }
        close(&w);
        lilac_text_clear(&body);
    }

    /* what does not count: a second load through a pointer, an address that waits for a load, loads behind
     * a barrier */
    static const char *const others[] = {
        "%x = ld.global [%a0 + 4096] : i32\n",
        "%o = mulwide_u %x0, %four : i64\n%a = add %p7, %o : i64\n%x = ld.global [%a] : i32\n",
        "barrier\n%a = add %p7, %tw : i64\n%x = ld.global [%a] : i32\n",
        "%a = add %p7, %tw : i64\n%x = ld.global [%a] : i32\n",
    };
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++) {
        lilac_text body = {0};
        repeat(&body, 0, 7, each);
        lilac_text_puts(&body, others[k]);
        repeat(&body, 0, 7, store);
        lilac_text_puts(&body, "st.global [%a0 + 4096], (%x)\n");
        open_pointers(&w, 8, lilac_text_get(&body));
        assert_int_equal(has_barrier_in_front(lilac_text_get(&w.ptx), 8), k == 3);
        close(&w);
        lilac_text_clear(&body);
    }
}

/* ---- masks ------------------------------------------------------------------------------ */

static uint32_t occurrences(const char *text, const char *what) {
    uint32_t count = 0;
    for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what)) {
        count++;
    }
    return count;
}

#define MASK   "%a@ = add %i, %c@ : i32\n%m@ = cmp lt %a@, %n : i1\n"
#define BOTH   "%b@ = and %m@, %all_of : i1\n"
#define LOAD   "%x@ = ld.global [%own + @0000], %m@ : i32\n"
#define STORE  "st.global [%own + @0000], %m@, (%x@)\n"
#define LOADB  "%x@ = ld.global [%own + @0000], %b@ : i32\n"
#define STOREB "st.global [%own + @0000], %b@, (%x@)\n"
#define ROUND  "loop %i = %zero to %n step %one {\n"

/* Comparisons by < in a kernel of `count` such masks, and how often an operand gets a second name:
 * it is added to a register that starts as the number of blocks. */
static uint32_t compared(const char *open_loop, uint32_t count, const char *const lines[4],
                         const char *close_loop, uint32_t *names) {
    writing w;
    lilac_text body = {0};
    lilac_text_puts(&body, "%all_of = cmp lt %t, %n : i1\n");
    repeat(&body, 0, count, "%c@ = const @ : i32\n");
    lilac_text_puts(&body, open_loop);
    for (uint32_t k = 0; k < 4; k++) {
        repeat(&body, 0, count, lines[k]);
    }
    lilac_text_puts(&body, close_loop);
    open(&w, 4, lilac_text_get(&body));
    const char *ptx = lilac_text_get(&w.ptx);
    char sum[64] = "";
    const char *zero = strstr(ptx, ", %nctaid.x;");
    if (zero != NULL) {
        const char *from = zero;
        while (from[-1] != ' ') {
            from--;
        }
        snprintf(sum, sizeof sum, ", %.*s;\n\tsetp.lt", (int)(zero - from), from);
    }
    *names = zero != NULL ? occurrences(ptx, sum) : 0;
    uint32_t comparisons = occurrences(ptx, "setp.lt.s32 %p");
    lilac_text_clear(&body);
    close(&w);
    return comparisons - 1; /* %all_of */
}

static void masks_compared_again(void **state) {
    (void)state;
    uint32_t names;
    const char *const plain[4] = {MASK, LOAD, STORE, ""};
    assert_int_equal(compared(ROUND, 8, plain, "yield\n}\n", &names), 8);
    assert_int_equal(names, 0);
    assert_int_equal(compared(ROUND, 9, plain, "yield\n}\n", &names), 18);
    assert_int_equal(names, 1);
    const char *const both[4] = {MASK, BOTH, LOADB, STOREB};
    assert_int_equal(compared(ROUND, 12, both, "yield\n}\n", &names), 24);
    assert_int_equal(names, 1);
    const char *const loads[4] = {MASK, LOAD, "", ""};
    assert_int_equal(compared(ROUND, 12, loads, "yield\n}\n", &names), 12);
    const char *const first[4] = {MASK, "st.global [%own + @0000], %m@, (%t)\n", LOAD, ""};
    assert_int_equal(compared(ROUND, 12, first, "yield\n}\n", &names), 12);
    /* in straight code; in a branch */
    assert_int_equal(compared("%i = add %zero, %n : i32\n", 12, plain, "", &names), 24);
    assert_int_equal(names, 1);
    assert_int_equal(compared(ROUND "%q = cmp gt %n, %four : i1\nif %q {\n", 12, plain,
                              "yield\n}\nyield\n}\n", &names),
                     24);
    /* a name computed in a loop is none in the next, for the first may not run */
    lilac_text two = {0};
    lilac_text_puts(&two, "yield\n}\nloop %j = %four to %n step %one {\n");
    repeat(&two, 0, 9, "%d@ = add %j, %c@ : i32\n%e@ = cmp lt %d@, %n : i1\n");
    repeat(&two, 0, 9, "%y@ = ld.global [%own + @0000], %e@ : i32\n");
    repeat(&two, 0, 9, "st.global [%own + @0000], %e@, (%y@)\n");
    lilac_text_puts(&two, "yield\n}\n");
    assert_int_equal(compared(ROUND, 9, plain, lilac_text_get(&two), &names), 36);
    assert_int_equal(names, 2);
    lilac_text_clear(&two);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_alive),          cmocka_unit_test(late_loads),
        cmocka_unit_test(blocks_stated),        cmocka_unit_test(blocks_with_spills),
        cmocka_unit_test(blocks_of_streams),    cmocka_unit_test(around_exchanges),
        cmocka_unit_test(barriers_behind_rows), cmocka_unit_test(barriers_in_front_of_loads),
        cmocka_unit_test(masks_compared_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
