/* Barriers that lilac_simt_opt_barriers takes away were not needed, on the simulator, and those
 * that it leaves were.
 *
 * Random programs of stores, loads and barriers, in loops and ifs. Every access has a promise: an
 * interval and which warps it keeps apart; within that, the warps that may touch the same words do.
 * A program without races must have none after the pass and leave the same in memory. In straight
 * programs with barriers of the block only, each one that stays stands between accesses that may
 * conflict with no other between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/sim_kernels.h"

enum { WARPS = 4, LANES = 32, THREADS = WARPS * LANES, BYTES = 512 };

static const struct promise {
    uint32_t begin, end, apart;
} promises[] = {{0, 128, 0},   {128, 256, 0}, {0, 256, 0},   {256, 384, 1}, {256, 384, 3},
                {384, 512, 2}, {384, 512, 0}, {256, 512, 0}, {0, 0, 0}};
enum { PROMISES = sizeof promises / sizeof *promises };

typedef struct generator {
    rig r;
    lilac_random random;
    lilac_simt_value sum; /* of what was loaded, carried through loops */
    lilac_simt_value condition, lane, warp;
    bool straight;
    uint32_t accesses;
} generator;

static uint32_t below(generator *g, uint32_t bound) {
    return (uint32_t)lilac_random_below(&g->random, bound);
}

/* Where in the interval the part of the warp's class begins, which has `classes`; and the warp's
 * place among those of its class. */
static lilac_simt_value class_of(generator *g, uint32_t apart, uint32_t bytes) {
    rig *r = &g->r;
    lilac_simt_value class = op2(r, LILAC_SIMT_OP_AND, g->warp, word(r, apart));
    class = op2(r, LILAC_SIMT_OP_SHR_U, class, word(r, apart == 2));
    return op2(r, LILAC_SIMT_OP_MUL, class, word(r, bytes));
}

static lilac_simt_value place_of(generator *g, uint32_t apart) {
    rig *r = &g->r;
    lilac_simt_value place = op2(r, LILAC_SIMT_OP_AND, g->warp, word(r, 3 & ~apart));
    return op2(r, LILAC_SIMT_OP_SHR_U, place, word(r, apart == 1));
}

/* A load by each warp of all words that its class may touch, or a store to them, each warp of the
 * class to other ones. */
static void make_access(generator *g) {
    rig *r = &g->r;
    const struct promise *p = &promises[below(g, PROMISES)];
    uint32_t end = p->end ? p->end : BYTES;
    uint32_t members = WARPS >> __builtin_popcount(p->apart);
    uint32_t part = (end - p->begin) / (WARPS / members); /* bytes of a class */
    bool loads = below(g, 2);
    uint32_t bytes = loads ? part : part / members; /* of a warp */
    uint32_t words = bytes / 4 > LANES ? bytes / 4 / LANES : 1;
    lilac_simt_value at = op2(r, LILAC_SIMT_OP_ADD, g->lane, word(r, below(g, LANES)));
    at = op2(r, LILAC_SIMT_OP_AND, at, word(r, bytes / 4 / words - 1));
    at = op2(r, LILAC_SIMT_OP_MUL, at, word(r, 4 * words));
    at = op2(r, LILAC_SIMT_OP_ADD, at, class_of(g, p->apart, part));
    lilac_simt_instruction like = {
        .shared_begin = p->begin, .shared_end = p->end, .shared_apart = p->apart};
    g->accesses++;
    if (loads) {
        lilac_simt_value loaded = lilac_simt_load(&r->b, LILAC_SIMT_OP_LD_SHARED, LILAC_SIMT_I32,
                                                  words, at, p->begin, 0, NULL, &like);
        g->sum = op2(r, LILAC_SIMT_OP_ADD, op2(r, LILAC_SIMT_OP_MUL, g->sum, word(r, 3)), loaded);
        return;
    }
    lilac_simt_value slot =
        op2(r, LILAC_SIMT_OP_XOR, place_of(g, p->apart), word(r, below(g, members)));
    at = op2(r, LILAC_SIMT_OP_ADD, at, op2(r, LILAC_SIMT_OP_MUL, slot, word(r, bytes)));
    lilac_simt_value value = op2(r, LILAC_SIMT_OP_ADD, at, word(r, 1000 * g->accesses));
    lilac_simt_store(&r->b, LILAC_SIMT_OP_ST_SHARED, 1, &value, at, p->begin, 0, &like);
}

static void make_barrier(generator *g) {
    rig *r = &g->r;
    uint32_t kind = g->straight ? 0 : below(g, 8);
    if (kind == 7) {
        lilac_simt_warp_barrier(&r->b);
    } else if (kind >= 5) {
        uint32_t bit = kind - 5;
        lilac_simt_value number = op2(
            r, LILAC_SIMT_OP_AND, op2(r, LILAC_SIMT_OP_SHR_U, g->warp, word(r, bit)), word(r, 1));
        lilac_simt_group_barrier_apart(&r->b, number, 2 * LANES, 1u << bit);
    } else {
        lilac_simt_barrier(&r->b);
    }
}

static void make_body(generator *g, uint32_t length, uint32_t depth) {
    rig *r = &g->r;
    for (uint32_t k = 0; k < length; k++) {
        uint32_t kind = below(g, 12);
        if (kind == 0 && depth < 2 && !g->straight) {
            lilac_simt_value i, inits[1] = {g->sum};
            lilac_simt_instruction *loop = lilac_simt_loop_begin(
                &r->b, word(r, 0), word(r, below(g, 3)), word(r, 1), 1, inits, &i);
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
            make_barrier(g);
        } else {
            if (below(g, 4))
                make_barrier(g);
            make_access(g);
        }
    }
}

static void generate(generator *g, uint64_t seed) {
    memset(g, 0, sizeof *g);
    lilac_random_seed(&g->random, seed);
    rig *r = &g->r;
    rig_init(r, WARPS, 2, BYTES);
    g->straight = seed % 3 == 0;
    g->lane = leaf(r, LILAC_SIMT_OP_LANE, 0);
    g->warp = leaf(r, LILAC_SIMT_OP_WARP, 0);
    g->sum = thread(r);
    g->condition = lilac_simt_compare_values(&r->b, LILAC_SIMT_EQ, leaf(r, LILAC_SIMT_OP_BLOCK, 0),
                                             word(r, 0));
    make_body(g, 10, 0);
    lilac_simt_barrier(&r->b);
    lilac_simt_value index = op2(
        r, LILAC_SIMT_OP_ADD,
        op2(r, LILAC_SIMT_OP_MUL, leaf(r, LILAC_SIMT_OP_BLOCK, 0), word(r, THREADS)), thread(r));
    store(r, LILAC_SIMT_OP_ST_GLOBAL, g->sum, element(r, 0, index, 4));
    effect(r, LILAC_SIMT_OP_RETURN);
}

/* Runs as it stands, two blocks; the races. */
static uint64_t run(generator *g, uint32_t out[2 * THREADS]) {
    rig *r = &g->r;
    give(r, 0, "out", out, sizeof *out * 2 * THREADS);
    give(r, 1, "none", out, 0);
    r->launch.grid[0] = 2;
    r->launch.buffer_count = 1;
    lilac_sim_place(r->buffers, 2);
    r->arguments[0] = r->buffers[0].address;
    lilac_diagnostics_reset(r->context);
    if (!lilac_sim_run(r->context, &r->launch, &r->counters))
        fail_msg("%s", lilac_diagnostics(r->context)->message);
    return r->counters.races;
}

static uint32_t count_barriers(const lilac_simt_body *body) {
    uint32_t count = 0;
    for (const lilac_simt_instruction *i = body->first; i; i = i->next) {
        count +=
            (lilac_simt_op_info_get((lilac_simt_opcode)i->code)->traits & LILAC_SIMT_SYNC) != 0;
        for (uint32_t k = 0; k < i->body_count; k++)
            count += count_barriers(i->bodies[k]);
    }
    return count;
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
             a && !needed && a->code != LILAC_SIMT_OP_BARRIER; a = a->previous)
            for (const lilac_simt_instruction *c = i->next;
                 c && !needed && c->code != LILAC_SIMT_OP_BARRIER; c = c->next)
                needed = is_access(a) && is_access(c) && may_conflict(a, c);
        if (!needed)
            return false;
    }
    return true;
}

static void barriers_that_go_were_not_needed(void **state) {
    static uint32_t before[2 * THREADS], after[2 * THREADS];
    uint32_t programs = 0, removed = 0, stay = 0, straight = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        static generator g;
        generate(&g, seed);
        if (run(&g, before) == 0 && g.accesses > 1) {
            uint32_t count = count_barriers(g.r.kernel->body);
            bool changed = lilac_simt_opt_barriers(g.r.kernel);
            uint32_t left = count_barriers(g.r.kernel->body);
            assert_int_equal(changed, left != count);
            if (run(&g, after))
                fail_msg("seed %llu: %s", (unsigned long long)seed,
                         lilac_diagnostics(g.r.context)->message);
            assert_memory_equal(before, after, sizeof before);
            assert_false(lilac_simt_opt_barriers(g.r.kernel));
            programs++;
            removed += count - left;
            stay += left;
            if (g.straight) {
                straight++;
                assert_true(all_needed(g.r.kernel->body));
            }
        }
        rig_clear(&g.r);
    }
    print_message("%u programs, %u barriers went, %u stay\n", programs, removed, stay);
    assert_true(programs > 300 && straight > 100 && removed > 1000 && stay > 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(barriers_that_go_were_not_needed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
