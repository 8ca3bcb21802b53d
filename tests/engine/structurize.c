/* Branches become conditionals: random graphs of blocks, forward branches only, with values through
 * their arguments; every way through is taken on the simulator and in C. */
#include "support/lower_harness.h"

enum { MOST_BLOCKS = 14, GRAPHS = 150, RUNS = 12 };

typedef struct graph {
    uint32_t count;
    uint32_t to[MOST_BLOCKS][2]; /* both 0: returns */
    bool joins[MOST_BLOCKS];     /* one successor */
    bool takes[MOST_BLOCKS];     /* has an argument */
} graph;

static graph random_graph(lilac_random *random) {
    graph g = {.count = 2 + (uint32_t)lilac_random_below(random, MOST_BLOCKS - 1)};
    for (uint32_t i = 0; i < g.count; i++) {
        g.takes[i] = i > 0 && lilac_random_below(random, 4) != 0;
        if (i + 1 == g.count || (i > 0 && lilac_random_below(random, 6) == 0)) {
            continue;
        }
        uint32_t reach = lilac_random_below(random, 3) == 0 ? g.count - i - 1 : 3;
        reach = reach > g.count - i - 1 ? g.count - i - 1 : reach;
        g.to[i][0] = i + 1 + (uint32_t)lilac_random_below(random, reach);
        g.to[i][1] = i + 1 + (uint32_t)lilac_random_below(random, reach);
        g.joins[i] = lilac_random_below(random, 4) == 0;
    }
    return g;
}

static void put_target(lilac_text *text, const graph *g, uint32_t from, uint32_t to) {
    lilac_text_printf(text, "^bb%u", to);
    if (g->takes[to]) {
        lilac_text_printf(text, "(%%t%u : i32)", from);
    }
}

/* Block i adds to what it gets, or to what the first block has when it takes nothing; it counts in
 * x[1 + i] that control came by. */
static void put_graph(lilac_text *text, const graph *g) {
    lilac_text_printf(text, "module {\n  tt.func public @k(%%x: !tt.ptr<i32>, %%n: i32) {\n"
                            "    %%c1 = arith.constant 1 : i32\n"
                            "    %%c31 = arith.constant 31 : i32\n");
    for (uint32_t i = 0; i < g->count; i++) {
        if (i > 0) {
            lilac_text_printf(text, g->takes[i] ? "  ^bb%u(%%a%u: i32):\n" : "  ^bb%u:\n", i, i);
        }
        lilac_text_printf(text, "    %%k%u = arith.constant %u : i32\n", i, i + 1);
        lilac_text_printf(text,
                          g->takes[i] ? "    %%m%u = arith.muli %%a%u, %%c31 : i32\n"
                                      : "    %%m%u = arith.muli %%n, %%c31 : i32\n",
                          i, i);
        lilac_text_printf(text,
                          "    %%t%u = arith.addi %%m%u, %%k%u : i32\n"
                          "    %%p%u = tt.addptr %%x, %%k%u : !tt.ptr<i32>, i32\n"
                          "    tt.store %%p%u, %%t%u : !tt.ptr<i32>\n",
                          i, i, i, i, i, i, i);
        if (g->to[i][0] == 0) {
            lilac_text_printf(text, "    tt.store %%x, %%t%u : !tt.ptr<i32>\n    tt.return\n", i);
        } else if (g->joins[i]) {
            lilac_text_puts(text, "    cf.br ");
            put_target(text, g, i, g->to[i][0]);
            lilac_text_puts(text, "\n");
        } else {
            lilac_text_printf(text,
                              "    %%s%u = arith.shrsi %%n, %%k%u : i32\n"
                              "    %%o%u = arith.andi %%s%u, %%c1 : i32\n"
                              "    %%c%u_ = arith.cmpi eq, %%o%u, %%c1 : i32\n"
                              "    cf.cond_br %%c%u_, ",
                              i, i, i, i, i, i, i);
            put_target(text, g, i, g->to[i][0]);
            lilac_text_puts(text, ", ");
            put_target(text, g, i, g->to[i][1]);
            lilac_text_puts(text, "\n");
        }
    }
    lilac_text_puts(text, "  }\n}\n");
}

static void walk_graph(const graph *g, int32_t n, int32_t *x) {
    uint32_t at = 0;
    int32_t argument = 0;
    for (;;) {
        uint32_t before = (uint32_t)(g->takes[at] ? argument : n);
        argument = (int32_t)(before * 31 + at + 1);
        x[at + 1] = argument;
        if (g->to[at][0] == 0) {
            x[0] = argument;
            return;
        }
        bool first = g->joins[at] || (n >> (at + 1) & 1) == 1;
        at = g->to[at][first ? 0 : 1];
    }
}

static void every_way(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 31);
    for (uint32_t i = 0; i < GRAPHS; i++) {
        graph g = random_graph(&random);
        lilac_text text = {0};
        put_graph(&text, &g);
        harness h;
        harness_open(&h, lilac_text_get(&text), 1 + (i & 1), true);
        for (uint32_t r = 0; r < RUNS; r++) {
            int32_t got[MOST_BLOCKS + 2] = {0}, want[MOST_BLOCKS + 2] = {0};
            const int64_t n = (int64_t)lilac_random_below(&random, 1 << (MOST_BLOCKS + 2));
            const buffer list[] = {{got, sizeof got}};
            harness_run(&h, 1, list, 1, &n, 1);
            walk_graph(&g, (int32_t)n, want);
            if (memcmp(got, want, sizeof got) != 0) {
                print_message("%s\nn = %d\n", lilac_text_get(&text), (int)n);
                fail_msg("graph %u", i);
            }
        }
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_way)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
