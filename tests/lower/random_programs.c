/* Random tile programs give on the simulator what the interpreter says that they mean: as the
 * engine lays them out, and with random layouts on every tensor. So do the kernels of the samples,
 * on random buffers.
 *
 * LILAC_TEST_LONG=1 tries ten thousand programs of each kind, LILAC_TEST_SCALE multiplies
 * the number of programs, LILAC_TEST_SEED tries one program. A program that fails is reduced and
 * printed. Operations that the compiler refuses as not supported are counted by name. */
#define _POSIX_C_SOURCE 200809L

#include "support/samples.h"

enum { MOST_REASONS = 200, MOST_OPERATIONS = 32 };

typedef struct tally {
    uint64_t outcomes[PROGRAM_BROKEN + 1], exact, within, open;
    double worst;
    char reasons[MOST_REASONS][72];
    uint64_t times[MOST_REASONS];
    uint32_t reason_count;
} tally;

/* Reasons that differ only in numbers and types count as one. The quoted name identifies them. */
static void note(tally *t, const program_comparison *j) {
    t->outcomes[j->outcome]++;
    t->exact += j->exact;
    t->within += j->within;
    t->open += j->open;
    t->worst = j->worst > t->worst ? j->worst : t->worst;
    if (j->outcome == PROGRAM_SAME) {
        return;
    }
    uint32_t i = 0;
    while (i < t->reason_count && strncmp(t->reasons[i], j->why, sizeof t->reasons[i] - 1) != 0) {
        i++;
    }
    if (i == MOST_REASONS) {
        return;
    }
    if (i == t->reason_count) {
        t->reason_count++;
        memcpy(t->reasons[i], j->why, sizeof t->reasons[i] - 1);
    }
    t->times[i]++;
}

static void report(const tally *t, const char *what) {
    print_message("%s: %llu the same, %llu refused, %llu undetermined, %llu wrong; elements: %llu "
                  "exact, %llu within their error (at most %.2f of it), %llu open\n",
                  what, (unsigned long long)t->outcomes[PROGRAM_SAME],
                  (unsigned long long)t->outcomes[PROGRAM_REFUSED],
                  (unsigned long long)t->outcomes[PROGRAM_UNDETERMINED],
                  (unsigned long long)(t->outcomes[PROGRAM_WRONG] + t->outcomes[PROGRAM_BROKEN]),
                  (unsigned long long)t->exact, (unsigned long long)t->within, t->worst,
                  (unsigned long long)t->open);
    for (uint32_t i = 0; i < t->reason_count; i++) {
        print_message("  %4llu  %s\n", (unsigned long long)t->times[i], t->reasons[i]);
    }
}

static bool failed(const program_comparison *j) {
    return j->outcome == PROGRAM_WRONG || j->outcome == PROGRAM_BROKEN;
}

/* cmocka's messages are cut off at a thousand bytes. */
static void print_long(const char *text) {
    fputs(text, stderr);
    fputc('\n', stderr);
}

static void complain(const program *p, const program_comparison *j, const char *which) {
    lilac_text small = {0}, laid_out = {0};
    program_minimise(&small, p, lilac_text_get(&p->text));
    program_comparison again = program_check(p, lilac_text_get(&small));
    print_message("%s: %s\n%s, %u warps, %u blocks, %u programs; the smallest part (%s):\n", which,
                  j->why, p->device != NULL ? p->device->name : "sm_90a", p->warps,
                  p->blocks != 0 ? p->blocks : 1, p->programs, again.why);
    print_long(lilac_text_get(&small));
    if (p->layout_seed != 0) {
        print_message("with random layouts of seed %llu:\n", (unsigned long long)p->layout_seed);
        program_print_layouts(&laid_out, p, lilac_text_get(&small));
        print_long(lilac_text_get(&laid_out));
    }
    lilac_text_clear(&small);
    lilac_text_clear(&laid_out);
}

static uint32_t programs_to_try(uint32_t usual) {
    if (getenv("LILAC_TEST_LONG") != NULL) {
        return 10000;
    }
#ifndef __OPTIMIZE__
    usual /= 10;
#endif
    return scaled(usual);
}

/* The features that the compiler takes: each is tried in programs with little else, and left out
 * when most of those that have it are refused. */
static uint64_t supported(bool say) {
    uint64_t result = 3;
    for (uint32_t i = 2; program_feature(i) != NULL; i++) {
        uint32_t refused = 0, tried = 0;
        program_comparison last = {.outcome = PROGRAM_SAME};
        for (uint64_t seed = 1; seed <= 12; seed++) {
            program p;
            program_choices choices;
            program_choices_seed(&choices, seed);
            program_generate(&p, &choices, 3ULL | 1ULL << i, 6);
            if (p.used >> i & 1) {
                program_comparison j = program_check(&p, lilac_text_get(&p.text));
                tried++;
                refused += j.outcome == PROGRAM_REFUSED;
                last = j.outcome == PROGRAM_REFUSED ? j : last;
            }
            program_clear(&p);
        }
        if (2 * refused <= tried) {
            result |= 1ULL << i;
        }
        if (refused > 0 && say) {
            print_message("%s: %u of %u programs refused: %s\n", program_feature(i), refused, tried,
                          last.why);
        }
    }
    return result;
}

/* A device with clusters, and 2 or 4 blocks. */
static void set_cluster(program *p, uint64_t seed) {
    do {
        program_set_device(p, seed++);
    } while (!lilac_arch_has(p->device, LILAC_HAS_CLUSTERS));
    p->blocks = (seed & 1) == 0 ? 2 : 4;
}

/* Functions' parameters get no random layouts. */
static uint64_t features_of(bool layouts) {
    uint64_t features = supported(!layouts);
    for (uint32_t i = 0; layouts && program_feature(i) != NULL; i++) {
        if (strcmp(program_feature(i), "call") == 0) {
            features &= ~(1ULL << i);
        }
    }
    return features;
}

static void make(program *p, uint64_t seed, bool layouts, bool clusters, uint64_t features) {
    program_choices choices;
    program_choices_seed(&choices, seed);
    program_generate(p, &choices, features, MOST_OPERATIONS);
    p->layout_seed = layouts ? seed : 0;
    if (clusters) {
        set_cluster(p, seed);
    } else {
        program_set_device(p, seed);
    }
}

static void try_programs(bool layouts, bool clusters, uint32_t count, const char *what) {
    tally t = {0};
    const uint64_t features = features_of(layouts);
    const char *one = getenv("LILAC_TEST_SEED");
    uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1;
    uint64_t last = one != NULL ? first : count;
    uint32_t complaints = 0;
    for (uint64_t seed = first; seed <= last; seed++) {
        program p;
        make(&p, seed, layouts, clusters, features);
        program_comparison j = program_check(&p, lilac_text_get(&p.text));
        note(&t, &j);
        if (one != NULL) {
            print_long(lilac_text_get(&p.text));
        }
        if (failed(&j) && complaints++ < 3) {
            char which[64];
            snprintf(which, sizeof which, "seed %llu", (unsigned long long)seed);
            complain(&p, &j, which);
        }
        program_clear(&p);
    }
    report(&t, what);
    assert_int_equal(t.outcomes[PROGRAM_WRONG] + t.outcomes[PROGRAM_BROKEN], 0);
    if (one == NULL) {
        /* Most programs say something, and of most of what they leave. */
        assert_true(2 * t.outcomes[PROGRAM_SAME] > count);
        assert_true(t.exact + t.within > 4 * t.open);
    }
}

static void as_laid_out(void **state) {
    (void)state;
    try_programs(false, false, programs_to_try(600), "programs");
}

static void in_clusters(void **state) {
    (void)state;
    try_programs(false, true, programs_to_try(400), "programs of several blocks");
}

static void with_random_layouts(void **state) {
    (void)state;
    try_programs(true, false, programs_to_try(300), "programs with random layouts");
}

static void in_clusters_with_random_layouts(void **state) {
    (void)state;
    try_programs(true, true, programs_to_try(300),
                 "programs of several blocks with random layouts");
}

/* Rows that two blocks hold parts of although the columns of blocks do not move along them, and results of
 * which a block has elements that another one reduces. */
static void rows_beside_blocks(void **state) {
    (void)state;
    static const struct {
        uint64_t seed;
        program_outcome outcome;
    } cases[] = {{1738, PROGRAM_SAME},
                 {4480, PROGRAM_SAME},
                 {3765, PROGRAM_REFUSED},
                 {7490, PROGRAM_REFUSED}};
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program p;
        make(&p, cases[i].seed, true, true, features_of(true));
        const program_comparison j = program_check(&p, lilac_text_get(&p.text));
        assert_int_equal(j.outcome, cases[i].outcome);
        program_clear(&p);
    }
}

/* ---- found before ------------------------------------------------------------------------ */

/* Programs that were wrong once, as small as they got; buffers have 256 elements. */
static void found_before(void **state) {
    (void)state;
    static const char *const programs[] = {
        /* a bound that all threads share, simplified to one of which nobody knew that */
        "module {\n"
        "  tt.func public @k(%o: !tt.ptr<i32>) {\n"
        "    %x = arith.constant dense<80> : tensor<32xi32>\n"
        "    %seven = arith.constant 7 : i32\n"
        "    %r = \"tt.reduce\"(%x) <{axis = 0 : i32}> ({\n"
        "    ^bb0(%a: i32, %b: i32):\n"
        "      %c = arith.xori %a, %b : i32\n"
        "      tt.reduce.return %c : i32\n"
        "    }) : (tensor<32xi32>) -> i32\n"
        "    %two = arith.constant 2 : i32\n"
        "    %three = arith.constant 3 : i32\n"
        "    %high = arith.andi %r, %three : i32\n"
        "    %v = scf.for %i = %two to %high step %two iter_args(%k = %seven) -> (i32) : i32 {\n"
        "      scf.yield %i : i32\n"
        "    }\n"
        "    tt.store %o, %v : !tt.ptr<i32>\n"
        "    tt.return\n"
        "  }\n"
        "}\n",
        /* a carried element that only the end of its loop shows to differ between threads */
        "module {\n"
        "  tt.func public @k(%o: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32) {\n"
        "    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
        "    %z = arith.constant dense<0> : tensor<64xi32>\n"
        "    %few = arith.constant dense<9> : tensor<64xi32>\n"
        "    %zero = arith.constant 0 : i32\n"
        "    %one = arith.constant 1 : i32\n"
        "    %three = arith.constant 3 : i32\n"
        "    %v, %w = scf.for %i = %zero to %three step %one iter_args(%x = %z, %y = %z) -> "
        "(tensor<64xi32>, tensor<64xi32>)  : i32 {\n"
        "      %m = \"tt.map_elementwise\"(%x, %few) <{pack = 1 : i32}> ({\n"
        "      ^bb0(%a: i32, %b: i32):\n"
        "        %c = arith.cmpi slt, %a, %b : i32\n"
        "        %d = scf.if %c -> (i32) {\n"
        "          scf.yield %b : i32\n"
        "        } else {\n"
        "          scf.yield %a : i32\n"
        "        }\n"
        "        tt.map_elementwise.return %d : i32\n"
        "      }) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>\n"
        "      scf.yield %r, %m : tensor<64xi32>, tensor<64xi32>\n"
        "    }\n"
        "    %p = tt.splat %o : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>\n"
        "    %q = tt.addptr %p, %r : tensor<64x!tt.ptr<i32>>, tensor<64xi32>\n"
        "    tt.store %q, %w : tensor<64x!tt.ptr<i32>>\n"
        "    tt.return\n"
        "  }\n"
        "}\n",
        /* numbers and mask of a histogram in two layouts */
        "module {\n"
        "  tt.func public @k(%x: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %b: !tt.ptr<i8> "
        "{tt.divisibility = 16 : i32}, %o: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {\n"
        "    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>\n"
        "    %p = tt.splat %x : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>\n"
        "    %q = tt.addptr %p, %r : tensor<128x!tt.ptr<i32>>, tensor<128xi32>\n"
        "    %v = tt.load %q : tensor<128x!tt.ptr<i32>>\n"
        "    %d = tt.splat %b : !tt.ptr<i8> -> tensor<128x!tt.ptr<i8>>\n"
        "    %e = tt.addptr %d, %r : tensor<128x!tt.ptr<i8>>, tensor<128xi32>\n"
        "    %w = tt.load %e : tensor<128x!tt.ptr<i8>>\n"
        "    %few = arith.constant dense<31> : tensor<128xi32>\n"
        "    %nine = arith.constant dense<9> : tensor<128xi8>\n"
        "    %i = arith.andi %v, %few : tensor<128xi32>\n"
        "    %m = arith.cmpi slt, %w, %nine : tensor<128xi8>\n"
        "    %t = arith.constant dense<true> : tensor<128xi1>\n"
        "    %g = tt.histogram %i, %m : tensor<128xi32> -> tensor<32xi32>\n"
        "    %h = tt.histogram %few, %t : tensor<128xi32> -> tensor<32xi32>\n"
        "    %s = arith.addi %g, %h : tensor<32xi32>\n"
        "    %f = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>\n"
        "    %k = tt.splat %o : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>\n"
        "    %l = tt.addptr %k, %f : tensor<32x!tt.ptr<i32>>, tensor<32xi32>\n"
        "    tt.store %l, %s : tensor<32x!tt.ptr<i32>>\n"
        "    tt.return\n"
        "  }\n"
        "}\n",
    };
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        program p;
        assert_true(program_of_text(&p, programs[i], strlen(programs[i]), 4, 256));
        program_comparison j = program_check(&p, programs[i]);
        if (j.outcome != PROGRAM_SAME) {
            fail_msg("program %zu: %s", i, j.why);
        }
        program_clear(&p);
    }
}

/* An arg-max in many layouts: of what its lanes then agree on, all warps' copies are used. */
static void arg_max(void **state) {
    (void)state;
    static const char text[] =
        "module {\n"
        "  tt.func public @k(%x: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<i32> "
        "{tt.divisibility = 16 : i32}) {\n"
        "    %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>\n"
        "    %c = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>\n"
        "    %four = arith.constant dense<4> : tensor<8xi32>\n"
        "    %s = arith.muli %r, %four : tensor<8xi32>\n"
        "    %t = tt.expand_dims %s {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>\n"
        "    %d = tt.expand_dims %c {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>\n"
        "    %u = tt.broadcast %t : tensor<8x1xi32> -> tensor<8x4xi32>\n"
        "    %e = tt.broadcast %d : tensor<1x4xi32> -> tensor<8x4xi32>\n"
        "    %i = arith.addi %u, %e : tensor<8x4xi32>\n"
        "    %p = tt.splat %x : !tt.ptr<i32> -> tensor<8x4x!tt.ptr<i32>>\n"
        "    %q = tt.addptr %p, %i : tensor<8x4x!tt.ptr<i32>>, tensor<8x4xi32>\n"
        "    %v = tt.load %q : tensor<8x4x!tt.ptr<i32>>\n"
        "    %m, %n = \"tt.reduce\"(%v, %i) <{axis = 1 : i32}> ({\n"
        "    ^bb0(%a: i32, %b: i32, %f: i32, %g: i32):\n"
        "      %h = arith.cmpi sgt, %a, %f : i32\n"
        "      %j = arith.cmpi eq, %a, %f : i32\n"
        "      %k = arith.cmpi slt, %b, %g : i32\n"
        "      %l = arith.andi %j, %k : i1\n"
        "      %w = arith.ori %h, %l : i1\n"
        "      %y = arith.select %w, %a, %f : i32\n"
        "      %z = arith.select %w, %b, %g : i32\n"
        "      tt.reduce.return %y, %z : i32, i32\n"
        "    }) : (tensor<8x4xi32>, tensor<8x4xi32>) -> (tensor<8xi32>, tensor<8xi32>)\n"
        "    %aa = tt.splat %o : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>\n"
        "    %bb = tt.addptr %aa, %r : tensor<8x!tt.ptr<i32>>, tensor<8xi32>\n"
        "    tt.store %bb, %n : tensor<8x!tt.ptr<i32>>\n"
        "    tt.return\n"
        "  }\n"
        "}\n";
    program p;
    assert_true(program_of_text(&p, text, strlen(text), 2, 256));
    for (p.layout_seed = 1; p.layout_seed <= 600; p.layout_seed++) {
        program_comparison j = program_check(&p, text);
        if (j.outcome != PROGRAM_SAME) {
            fail_msg("layouts of seed %llu: %s", (unsigned long long)p.layout_seed, j.why);
        }
    }
    program_clear(&p);
}

/* ---- samples ----------------------------------------------------------------------------- */

static void samples(void **state) {
    (void)state;
    static sample_list list;
    uint32_t complaints = 0;
    tally t = {0};
    sample_list_open(&list);
    const uint32_t step = programs_to_try(10) >= 10 ? 1 : 5;
    for (uint32_t i = 0; i < list.count; i += step) {
        program p;
        if (!sample_read(&list, i, &p)) {
            program_clear(&p);
            continue;
        }
        program_comparison j = program_check(&p, lilac_text_get(&p.text));
        note(&t, &j);
        if (failed(&j) || list.one != NULL) {
            print_message("%s: %s\n", list.names[i], j.why);
        }
        if (failed(&j) && complaints++ < 3) {
            complain(&p, &j, list.names[i]);
        }
        program_clear(&p);
    }
    sample_list_close(&list);
    report(&t, "samples");
    assert_int_equal(t.outcomes[PROGRAM_WRONG] + t.outcomes[PROGRAM_BROKEN], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_laid_out),
        cmocka_unit_test(with_random_layouts),
        cmocka_unit_test(samples),
        cmocka_unit_test(found_before),
        cmocka_unit_test(in_clusters),
        cmocka_unit_test(in_clusters_with_random_layouts),
        cmocka_unit_test(rows_beside_blocks),
        cmocka_unit_test(arg_max),
    };
    cmocka_set_test_filter(getenv("LILAC_TEST_ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
