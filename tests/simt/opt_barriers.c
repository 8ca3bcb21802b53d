/* Barriers that lilac_simt_opt_barriers takes away were not needed, on the simulator, and those
 * that it leaves were.
 *
 * Random programs of stores, loads and barriers, in loops and ifs, some also with asynchronous
 * copies, commits and waits, some with mbarriers at which all warps meet or copies arrive. Every
 * access has a promise: an interval and a partition of the warps; within that, the warps that may
 * touch the same words do.
 * A program without races must have none after the pass and leave the same in memory. In straight
 * programs with barriers of the block only, each one that stays stands between accesses that may
 * conflict with no other between. */

#include "support/sim_kernels.h"
#include "support/test.h"

enum { PLAIN = 1500, COPYING = 6000, MEETING = 3000 }; /* seeds */
enum { WARPS = 4, LANES = 32, THREADS = WARPS * LANES, BYTES = 512 };

static const struct promise {
    uint32_t begin, end, partition;
} promises[] = {{0, 128, 0},   {128, 256, 0}, {0, 256, 0},   {256, 384, 1}, {256, 384, 3},
                {384, 512, 2}, {384, 512, 0}, {256, 512, 0}, {0, 0, 0}};
enum { PROMISES = sizeof promises / sizeof *promises };

typedef struct generator {
    rig r;
    lilac_random random;
    lilac_simt_value sum; /* of what was loaded, carried through loops */
    lilac_simt_value condition, lane, warp;
    bool straight, copies, meets;
    uint32_t accesses;
    /* of each mbarrier: complete phases, and whether all warps have arrived since */
    uint32_t phases[2];
    bool arrived[2];
} generator;

/* Where in the interval the part of the warp's class begins, which has `classes`; and the warp's
 * place among those of its class. */
static lilac_simt_value class_of(generator *g, uint32_t partition, uint32_t bytes) {
    rig *r = &g->r;
    lilac_simt_value class = op2(r, LILAC_SIMT_OP_AND, g->warp, word(r, partition));
    class = op2(r, LILAC_SIMT_OP_SHR_U, class, word(r, partition == 2));
    return op2(r, LILAC_SIMT_OP_MUL, class, word(r, bytes));
}

static lilac_simt_value place_of(generator *g, uint32_t partition) {
    rig *r = &g->r;
    lilac_simt_value place = op2(r, LILAC_SIMT_OP_AND, g->warp, word(r, 3 & ~partition));
    return op2(r, LILAC_SIMT_OP_SHR_U, place, word(r, partition == 1));
}

/* A load by each warp of all words that its class may touch, or a store to them, each warp of the
 * class to other ones. */
static void make_access(generator *g) {
    rig *r = &g->r;
    const struct promise *p = &promises[random_below(&g->random, PROMISES)];
    uint32_t end = p->end ? p->end : BYTES;
    uint32_t members = WARPS >> __builtin_popcount(p->partition);
    uint32_t part = (end - p->begin) / (WARPS / members); /* bytes of a class */
    bool loads = random_below(&g->random, 2);
    bool copies = g->copies && random_below(&g->random, 4) > 1;
    uint32_t bytes = loads ? part : part / members; /* of a warp */
    uint32_t words = bytes / 4 > LANES ? bytes / 4 / LANES : 1;
    lilac_simt_value at =
        op2(r, LILAC_SIMT_OP_ADD, g->lane, word(r, random_below(&g->random, LANES)));
    at = op2(r, LILAC_SIMT_OP_AND, at, word(r, bytes / 4 / words - 1));
    at = op2(r, LILAC_SIMT_OP_MUL, at, word(r, 4 * words));
    at = op2(r, LILAC_SIMT_OP_ADD, at, class_of(g, p->partition, part));
    lilac_simt_instruction like = {
        .shared_begin = p->begin, .shared_end = p->end, .shared_partition = p->partition};
    g->accesses++;
    if (loads) {
        lilac_simt_value loaded = lilac_simt_load(&r->b, LILAC_SIMT_OP_LD_SHARED, LILAC_SIMT_I32,
                                                  words, at, p->begin, 0, NULL, &like);
        g->sum = op2(r, LILAC_SIMT_OP_ADD, op2(r, LILAC_SIMT_OP_MUL, g->sum, word(r, 3)), loaded);
        return;
    }
    lilac_simt_value slot = op2(r, LILAC_SIMT_OP_XOR, place_of(g, p->partition),
                                word(r, random_below(&g->random, members)));
    at = op2(r, LILAC_SIMT_OP_ADD, at, op2(r, LILAC_SIMT_OP_MUL, slot, word(r, bytes)));
    if (copies) {
        lilac_simt_value from =
            op2(r, LILAC_SIMT_OP_ADD, thread(r), word(r, random_below(&g->random, BYTES / 4 - 31)));
        from = op2(r, LILAC_SIMT_OP_AND, from, word(r, BYTES / 4 - 1));
        lilac_simt_copy_async(&r->b, 4, at, p->begin, element(r, 1, from, 4), 0, 0, 0, &like);
        return;
    }
    lilac_simt_value value = op2(r, LILAC_SIMT_OP_ADD, at, word(r, 1000 * g->accesses));
    lilac_simt_store(&r->b, LILAC_SIMT_OP_ST_SHARED, 1, &value, at, p->begin, 0, &like);
}

static void make_barrier(generator *g) {
    rig *r = &g->r;
    uint32_t kind = g->straight ? 0 : random_below(&g->random, 8);
    if (kind == 7) {
        lilac_simt_warp_barrier(&r->b);
    } else if (kind >= 5) {
        uint32_t bit = kind - 5;
        lilac_simt_value number = op2(
            r, LILAC_SIMT_OP_AND, op2(r, LILAC_SIMT_OP_SHR_U, g->warp, word(r, bit)), word(r, 1));
        lilac_simt_group_barrier_partition(&r->b, number, 2 * LANES, 1u << bit);
    } else {
        lilac_simt_barrier(&r->b);
    }
}

/* Mostly a group and a wait for all groups. */
static void make_wait(generator *g) {
    rig *r = &g->r;
    uint32_t kind = random_below(&g->random, 8);
    if (kind == 7) {
        lilac_simt_copy_wait_all(&r->b);
        return;
    }
    if (kind > 0) {
        lilac_simt_copy_commit(&r->b);
    }
    if (kind > 1) {
        lilac_simt_copy_wait(&r->b, kind == 2);
    }
}

/* The operation on mbarrier k, with a promise. */
static void at_mbarrier(generator *g, uint32_t k, lilac_simt_opcode code,
                        lilac_simt_value predicate, lilac_simt_value value) {
    rig *r = &g->r;
    lilac_simt_mbarrier(&r->b, code, word(r, BYTES), 8 * k, predicate, value);
    r->b.body->last->shared_begin = BYTES + 8 * k;
    r->b.body->last->shared_end = BYTES + 8 * k + 8;
}

/* All warps arrive at an mbarrier, or wait there if they have; at mbarrier 1 their copies arrive. */
static void make_meeting(generator *g) {
    rig *r = &g->r;
    uint32_t k = g->copies && random_below(&g->random, 2);
    if (!g->arrived[k]) {
        at_mbarrier(
            g, k, k ? LILAC_SIMT_OP_CP_ASYNC_MBARRIER_ARRIVE : LILAC_SIMT_OP_MBARRIER_ARRIVE, 0, 0);
    }
    bool waits = g->arrived[k] || random_below(&g->random, 2);
    if (waits) {
        at_mbarrier(g, k, LILAC_SIMT_OP_MBARRIER_WAIT, 0, word(r, g->phases[k]++ % 2));
    }
    g->arrived[k] = !waits;
}

static void make_body(generator *g, uint32_t length, uint32_t depth) {
    rig *r = &g->r;
    for (uint32_t k = 0; k < length; k++) {
        uint32_t kind = random_below(&g->random, 12);
        if (kind == 0 && depth < 2 && !g->straight) {
            lilac_simt_value i, inits[1] = {g->sum};
            lilac_simt_instruction *loop = lilac_simt_loop_begin(
                &r->b, word(r, 0), word(r, random_below(&g->random, 3)), word(r, 1), 1, inits, &i);
            g->sum = i + 1;
            make_body(g, length / 2, depth + 1);
            g->sum = lilac_simt_loop_end(&r->b, loop, &g->sum);
        } else if (kind == 1 && depth < 2 && !g->straight) {
            lilac_simt_type type = LILAC_SIMT_I32;
            lilac_simt_value before = g->sum;
            lilac_simt_instruction *branch = lilac_simt_if_begin(&r->b, g->condition, 1, &type);
            make_body(g, length / 2, depth + 1);
            lilac_simt_if_else(&r->b, branch, &g->sum);
            g->sum = before;
            make_body(g, length / 3, depth + 1);
            g->sum = lilac_simt_if_end(&r->b, branch, &g->sum);
        } else if (kind < 7) {
            if (g->copies && random_below(&g->random, 4)) {
                make_wait(g);
            }
            if (g->meets && depth == 0 && random_below(&g->random, 2)) {
                make_meeting(g);
            } else {
                make_barrier(g);
            }
        } else {
            if (random_below(&g->random, 4)) {
                make_barrier(g);
            }
            make_access(g);
        }
    }
}

static void generate(generator *g, uint64_t seed) {
    memset(g, 0, sizeof *g);
    lilac_random_seed(&g->random, seed);
    rig *r = &g->r;
    g->meets = seed > PLAIN + COPYING;
    rig_init(r, WARPS, 2, BYTES + (g->meets ? 16 : 0));
    g->copies = seed > PLAIN && (!g->meets || seed % 2);
    g->straight = seed % 3 == 0;
    g->lane = leaf(r, LILAC_SIMT_OP_LANE, 0);
    g->warp = leaf(r, LILAC_SIMT_OP_WARP, 0);
    g->sum = thread(r);
    g->condition = lilac_simt_compare_values(&r->b, LILAC_SIMT_EQ, leaf(r, LILAC_SIMT_OP_BLOCK, 0),
                                             word(r, 0));
    for (uint32_t k = 0; k < 2 && g->meets; k++) {
        lilac_simt_value first =
            lilac_simt_compare_values(&r->b, LILAC_SIMT_EQ, thread(r), word(r, 0));
        at_mbarrier(g, k, LILAC_SIMT_OP_MBARRIER_INIT, first, word(r, THREADS));
    }
    if (g->meets) {
        lilac_simt_barrier(&r->b);
    }
    make_body(g, g->meets ? 14 : 10, 0);
    for (uint32_t k = 0; k < 2; k++) {
        if (g->arrived[k]) {
            at_mbarrier(g, k, LILAC_SIMT_OP_MBARRIER_WAIT, 0, word(r, g->phases[k] % 2));
        }
    }
    if (g->copies) {
        lilac_simt_copy_wait_all(&r->b);
    }
    lilac_simt_barrier(&r->b);
    lilac_simt_value index = op2(
        r, LILAC_SIMT_OP_ADD,
        op2(r, LILAC_SIMT_OP_MUL, leaf(r, LILAC_SIMT_OP_BLOCK, 0), word(r, THREADS)), thread(r));
    store(r, LILAC_SIMT_OP_ST_GLOBAL, g->sum, element(r, 0, index, 4));
    effect(r, LILAC_SIMT_OP_RETURN);
}

/* Runs as it stands, two blocks; the races. */
static uint64_t run(generator *g, uint32_t out[2 * THREADS]) {
    static uint32_t source[BYTES / 4];
    rig *r = &g->r;
    for (uint32_t k = 0; k < BYTES / 4; k++) {
        source[k] = 77 * k + 1;
    }
    give(r, 0, "out", out, sizeof *out * 2 * THREADS);
    give(r, 1, "source", source, sizeof source);
    r->launch.grid[0] = 2;
    r->launch.buffer_count = 2;
    lilac_sim_place(r->buffers, 2);
    r->arguments[0] = r->buffers[0].address;
    r->arguments[1] = r->buffers[1].address;
    lilac_diagnostics_reset(r->context);
    if (!lilac_sim_run(r->context, &r->launch, &r->counters)) {
        fail_msg("%s", lilac_diagnostics(r->context)->message);
    }
    return r->counters.races;
}

static uint32_t count_barriers(const lilac_simt_body *body) {
    uint32_t count = 0;
    for (const lilac_simt_instruction *i = body->first; i; i = i->next) {
        uint32_t traits = lilac_simt_op_info_get((lilac_simt_opcode)i->code)->traits;
        count += (traits & LILAC_SIMT_SYNC) &&
                 !(traits & (LILAC_SIMT_ASYNCHRONOUS | LILAC_SIMT_MBARRIER));
        for (uint32_t k = 0; k < i->body_count; k++) {
            count += count_barriers(i->bodies[k]);
        }
    }
    return count;
}

static bool has_copy(const lilac_simt_body *body) {
    bool found = false;
    for (const lilac_simt_instruction *i = body->first; i; i = i->next) {
        found |= i->code == LILAC_SIMT_OP_CP_ASYNC;
        for (uint32_t k = 0; k < i->body_count; k++) {
            found |= has_copy(i->bodies[k]);
        }
    }
    return found;
}

static bool may_conflict(const lilac_simt_instruction *a, const lilac_simt_instruction *c) {
    uint32_t a_end = a->shared_end ? a->shared_end : BYTES;
    uint32_t c_end = c->shared_end ? c->shared_end : BYTES;
    return (a->code == LILAC_SIMT_OP_ST_SHARED || c->code == LILAC_SIMT_OP_ST_SHARED) &&
           a->shared_begin < c_end && c->shared_begin < a_end;
}

static bool is_access(const lilac_simt_instruction *i) {
    return i->code == LILAC_SIMT_OP_LD_SHARED || i->code == LILAC_SIMT_OP_ST_SHARED;
}

/* Each barrier of a straight program orders two accesses next to it that may conflict. */
static bool all_needed(const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i; i = i->next) {
        bool needed = i->code != LILAC_SIMT_OP_BARRIER;
        for (const lilac_simt_instruction *a = i->previous;
             a && !needed && a->code != LILAC_SIMT_OP_BARRIER; a = a->previous) {
            for (const lilac_simt_instruction *c = i->next;
                 c && !needed && c->code != LILAC_SIMT_OP_BARRIER; c = c->next) {
                needed = is_access(a) && is_access(c) && may_conflict(a, c);
            }
        }
        if (!needed) {
            return false;
        }
    }
    return true;
}

static void barriers_that_go_were_not_needed(void **state) {
    static uint32_t before[2 * THREADS], after[2 * THREADS];
    uint32_t programs = 0, removed = 0, stay = 0, straight = 0, copying = 0, go = 0;
    uint32_t meeting = 0, gone = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= PLAIN + COPYING + MEETING; seed++) {
        static generator g;
        generate(&g, seed);
        if (run(&g, before) == 0 && g.accesses > 1) {
            uint32_t count = count_barriers(g.r.kernel->body);
            bool changed = lilac_simt_opt_barriers(g.r.kernel);
            uint32_t left = count_barriers(g.r.kernel->body);
            assert_int_equal(changed, left != count);
            if (run(&g, after)) {
                fail_msg("seed %llu: %s", (unsigned long long)seed,
                         lilac_diagnostics(g.r.context)->message);
            }
            assert_memory_equal(before, after, sizeof before);
            assert_false(lilac_simt_opt_barriers(g.r.kernel));
            programs++;
            meeting += g.meets;
            gone += g.meets ? count - left : 0;
            removed += count - left;
            stay += left;
            copying += has_copy(g.r.kernel->body);
            go += has_copy(g.r.kernel->body) ? count - left : 0;
            if (g.straight && !g.copies && !g.meets) {
                straight++;
                assert_true(all_needed(g.r.kernel->body));
            }
        }
        rig_clear(&g.r);
    }
    print_message(
        "%u programs, %u barriers went, %u stay; %u with copies, in which %u went; %u with "
        "mbarriers, in which %u went\n",
        programs, removed, stay, copying, go, meeting, gone);
    assert_true(meeting > 200 && gone > 300);
    assert_true(copying > 300 && go > 1000);
    assert_true(programs > 300 && straight > 100 && removed > 1000 && stay > 300);
}

/* ---- which barriers stay, around copies -------------------------------------------------- */

#define COPY        "cp.async [%s], (%p) {size = 4, bytes = 0 to 512}\ncp.async.commit\n"
#define READ        "%a = ld.shared [%s] : i32 {bytes = 0 to 512}\n"
#define READ_LAST   "%b = ld.shared [%s] : i32 {bytes = 0 to 512}\n"
#define BAR         "barrier {shared}\n"
#define WAIT        "cp.async.wait\n"
#define OTHER       "cp.async [%s + 512], (%p) {size = 4, bytes = 512 to 1024}\ncp.async.commit\n"
#define AGAIN(body) "loop %i = %zero to %n step %one {\n" body "yield\n}\n"

#define STORE     "cp.bulk.store [%s], (%p, %n) {bytes = 0 to 512}\nbulk.commit\n"
#define WRITE     "st.shared [%s], (%n) {bytes = 0 to 512}\n"
#define LOAD      "cp.bulk.load [%s], (%p, %n, %n) {bytes = 0 to 512}\n"
#define LOAD_MORE "cp.bulk.load [%s + 512], (%p, %n, %n) {bytes = 512 to 1000}\n"
#define READ_MORE "%b = ld.shared [%s + 512] : i32 {bytes = 512 to 1000}\n"
#define PASS      "mbarrier.wait [%s + 1016], (%n)\n"
#define INIT      "mbarrier.init [%s + 1016], (%n)\n"
#define END       "mbarrier.invalidate [%s + 1016]\n"
#define FENCE     "fence.proxy_async shared\n"
#define MORE      "st.shared [%s + 512], (%n) {bytes = 512 to 1000}\n"
#define MULTIPLY(bytes)                                                                            \
    "%0, %1, %2, %3 = wgmma %f, %f, %f, %f, %d, %d, %t : f32, f32, f32, f32 {a = f16, b = f16, "   \
    "d = f32, m = 64, n = 8, k = 16" bytes "}\nwgmma.commit\n"
#define PRODUCT      MULTIPLY(", bytes = 0 to 512")
#define MULTIPLY_ANY MULTIPLY("")
#define COMPLETE     "wgmma.wait\n"

static uint32_t list_barriers(const lilac_simt_body *body, const lilac_simt_instruction **list,
                              uint32_t count) {
    for (const lilac_simt_instruction *i = body->first; i; i = i->next) {
        if (i->code == LILAC_SIMT_OP_BARRIER) {
            list[count++] = i;
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            count = list_barriers(i->bodies[k], list, count);
        }
    }
    return count;
}

static void copies_are_two_events(void **state) {
    static const struct {
        const char *body, *stay; /* of each barrier: does it stay? */
    } cases[] = {
        {COPY BAR WAIT BAR READ, "01"},
        {COPY WAIT BAR BAR READ, "10"},
        {READ BAR COPY BAR WAIT, "10"},
        {COPY BAR OTHER BAR "cp.async.wait {groups = 1}\n" BAR READ WAIT, "001"},
        {COPY WAIT OTHER BAR READ BAR WAIT BAR, "100"},
        {"cp.async [%s], (%p) {size = 4}\n" WAIT BAR "cp.async.wait_all\n" BAR READ, "01"},
        {"cp.async [%s], (%p) {size = 4}\n" WAIT BAR READ, "0"}, /* waits for no group: a race */
        {AGAIN(WAIT BAR READ BAR COPY), "11"},
        {AGAIN(BAR WAIT BAR READ BAR COPY), "011"},
        {AGAIN("barrier\n" WAIT BAR READ BAR COPY), "111"},
        {WRITE FENCE BAR BAR STORE, "10"},
        {WRITE BAR FENCE BAR STORE, "01"},
        {STORE BAR "bulk.wait_read\n" BAR WRITE, "01"},
        {STORE BAR "bulk.wait {groups = 1}\n" BAR WRITE, "01"},
        {AGAIN(WRITE FENCE BAR STORE "bulk.wait_read\n" BAR), "11"},
        {STORE BAR READ BAR "bulk.wait_read\n", "10"},
        {LOAD BAR READ, "0"},           /* no wait: a race */
        {LOAD BAR PASS BAR READ, "00"}, /* the wait orders, and no barrier before it */
        {READ BAR LOAD PASS BAR WRITE, "11"},
        {LOAD BAR PASS BAR PASS BAR READ, "000"},
        {INIT BAR PASS BAR END, "11"}, /* uses stay between init and invalidation */
        {AGAIN(PASS READ BAR LOAD), "1"},
        /* one barrier before all copies of an iteration, not one between them and one between reads */
        {AGAIN(PASS BAR LOAD BAR LOAD_MORE BAR READ BAR READ_MORE), "1000"},
        {COPY AGAIN(WAIT BAR BAR READ BAR OTHER BAR) WAIT BAR READ_LAST, "10001"},
        {WRITE BAR PRODUCT BAR MORE, "10"}, /* a product reads what it promises */
        {MORE BAR PRODUCT BAR WRITE, "01"},
        {MORE BAR MULTIPLY_ANY, "1"},
        {PRODUCT BAR COMPLETE BAR WRITE, "01"}, /* up to its wait */
        {PRODUCT BAR COMPLETE BAR MORE, "00"},
        {AGAIN(PASS BAR PRODUCT COMPLETE BAR LOAD BAR READ_MORE BAR MORE), "0101"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const lilac_simt_instruction *before[8], *after[8];
        lilac_context *context = lilac_context_create();
        lilac_text text = {0};
        lilac_text_printf(
            &text,
            "simt.module target \"sm_90a\" {\nkernel @k(%%p: i64 ptr, %%n: i32) warps 4 "
            "ctas 1 shared 1024 {\n%%s = shared_base : i32\n%%p = param 0 : i64\n%%n = "
            "param 1 : i32\n%%zero = const 0 : i32\n%%one = const 1 : i32\n%%f = const 0x0 : "
            "f32\n%%d = const 0 : i64\n%%t = const 1 : i1\n%sreturn\n}\n}\n",
            cases[k].body);
        lilac_simt_module *module =
            lilac_simt_read(context, lilac_source_add(context, "b", text.bytes, text.length));
        if (module == NULL || !lilac_simt_verify(module)) {
            fail_msg("%s: %s", cases[k].body, lilac_diagnostics(context)->message);
        }
        uint32_t count = list_barriers(module->kernels->body, before, 0);
        assert_int_equal(count, strlen(cases[k].stay));
        lilac_simt_opt_barriers(module->kernels);
        uint32_t left = list_barriers(module->kernels->body, after, 0), next = 0;
        char stay[9] = {0};
        for (uint32_t b = 0; b < count; b++) {
            bool stays = next < left && after[next] == before[b];
            stay[b] = stays ? '1' : '0';
            next += stays;
        }
        if (strcmp(stay, cases[k].stay) != 0) {
            fail_msg("%s stays, not %s:\n%s", stay, cases[k].stay, cases[k].body);
        }
        lilac_text_clear(&text);
        lilac_simt_module_destroy(module);
        lilac_context_destroy(context);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(barriers_that_go_were_not_needed),
                                       cmocka_unit_test(copies_are_two_events)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
