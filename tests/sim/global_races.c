/* Races in global memory against their definition, on random programs.
 *
 * A program is a row of steps that all warps of all blocks take: a plain load or store of a word,
 * an atomic operation of some order and scope, a barrier of the block or of groups of warps. Each
 * warp of each block has its own word, or none. Two accesses to a word by different warps race when
 * one is a store or both are not atomic in a scope of both, one of them changes the word, and there
 * is no path from the one to the other in this graph:
 *
 *     (step, warp) → (later step, warp)           the instructions of a warp
 *     (step, warp) → (step + 1, other warp)       a barrier that both take
 *     (step, warp) → (other step, other warp)     an acquire that reads what a release left: no
 * plain store to the word came between
 *
 * Blocks run one after another on one host thread, so who reads what is known. The simulator must
 * find a race exactly when there is one; and without acquires, on several host threads too. */

#include "support/sim_kernels.h"
#include "support/test.h"

enum { STEPS = 12, WARPS = 4, BLOCKS = 3, WORDS = 5, NOWHERE = -1, NODES = STEPS * WARPS * BLOCKS };

typedef enum kind { LOAD, STORE, ATOMIC, BLOCK, GROUP, KINDS } kind;

typedef struct program {
    uint32_t steps, warps, blocks;
    struct {
        kind kind;
        lilac_simt_order order;
        lilac_simt_scope scope;
        uint32_t group;             /* warps of a group */
        int32_t of[BLOCKS * WARPS]; /* word, or number of the group */
    } step[STEPS];
} program;

static void make(program *p, lilac_random *random) {
    bool synchronises = lilac_random_below(random, 2) != 0;
    uint32_t emptiness = 2 + (uint32_t)lilac_random_below(random, 6);
    memset(p, 0, sizeof *p);
    p->warps = 1u << lilac_random_below(random, 3);
    p->blocks = 1 + (uint32_t)lilac_random_below(random, BLOCKS);
    p->steps = 2 + (uint32_t)lilac_random_below(random, STEPS - 1);
    for (uint32_t s = 0; s < p->steps; s++) {
        kind k = (kind)lilac_random_below(random, KINDS);
        if (k != ATOMIC && synchronises && lilac_random_below(random, 3) == 0) {
            k = ATOMIC;
        }
        p->step[s].kind = k;
        p->step[s].order =
            synchronises ? (lilac_simt_order)lilac_random_below(random, LILAC_SIMT_ORDER_COUNT)
                         : LILAC_SIMT_RELAXED;
        p->step[s].scope =
            lilac_random_below(random, 5) == 0 ? LILAC_SIMT_SCOPE_BLOCK : LILAC_SIMT_SCOPE_DEVICE;
        p->step[s].group = 1u << lilac_random_below(random, 1 + __builtin_ctz(p->warps));
        uint32_t first = (uint32_t)lilac_random_below(random, WORDS);
        for (uint32_t w = 0; w < p->blocks * p->warps; w++) {
            bool none = lilac_random_below(random, emptiness) != 0;
            /* copies of an element that several warps load count as one access: leave them out */
            uint32_t word_of = k == LOAD ? (first + w % p->warps) % WORDS
                                         : (uint32_t)lilac_random_below(random, WORDS);
            if (k == ATOMIC && lilac_random_below(random, 2)) {
                word_of = 0; /* where blocks meet */
            }
            p->step[s].of[w] = k == GROUP ? (int32_t)(w % p->warps / p->step[s].group)
                               : none     ? NOWHERE
                                          : (int32_t)word_of;
        }
    }
}

/* ---- the definition ------------------------------------------------------------------------ */

/* Nodes are numbered in the order in which one host thread runs them. */
typedef struct place {
    uint32_t block, step, warp;
    kind kind;
    int32_t word;
} place;

static place place_of(const program *p, uint32_t node) {
    place at = {.block = node / p->warps / p->steps,
                .step = node / p->warps % p->steps,
                .warp = node % p->warps};
    at.kind = p->step[at.step].kind;
    at.word = at.kind <= ATOMIC ? p->step[at.step].of[at.block * p->warps + at.warp] : NOWHERE;
    return at;
}

static bool in_scope(const program *p, const place *a, const place *c) {
    bool scoped = p->step[a->step].scope == LILAC_SIMT_SCOPE_BLOCK ||
                  p->step[c->step].scope == LILAC_SIMT_SCOPE_BLOCK;
    return !scoped || a->block == c->block;
}

static bool is_release(const program *p, const place *a) {
    lilac_simt_order order = p->step[a->step].order;
    return a->kind == ATOMIC &&
           (order == LILAC_SIMT_RELEASE || order == LILAC_SIMT_ACQUIRE_RELEASE);
}

static bool is_acquire(const program *p, const place *a) {
    lilac_simt_order order = p->step[a->step].order;
    return a->kind == ATOMIC &&
           (order == LILAC_SIMT_ACQUIRE || order == LILAC_SIMT_ACQUIRE_RELEASE);
}

/* Is there an edge from node m to the later node n? */
static bool edge(const program *p, uint32_t m, uint32_t n) {
    place a = place_of(p, m), c = place_of(p, n);
    if (a.block == c.block && a.warp == c.warp) {
        return true;
    }
    if (a.block == c.block && c.step == a.step + 1) {
        const int32_t *of = p->step[a.step].of + a.block * p->warps;
        if (a.kind == BLOCK || (a.kind == GROUP && of[a.warp] == of[c.warp])) {
            return true;
        }
    }
    if (!is_release(p, &a) || !is_acquire(p, &c) || a.word == NOWHERE || a.word != c.word ||
        !in_scope(p, &a, &c)) {
        return false;
    }
    for (uint32_t between = m + 1; between < n; between++) {
        place b = place_of(p, between);
        if (b.kind == STORE && b.word == a.word) {
            return false;
        }
    }
    return true;
}

static bool races(const program *p) {
    static bool reached[NODES][NODES];
    uint32_t nodes = p->blocks * p->steps * p->warps;
    for (uint32_t m = 0; m < nodes; m++) {
        for (uint32_t n = 0; n < nodes; n++) {
            reached[m][n] = m == n;
        }
    }
    for (uint32_t n = 0; n < nodes; n++) {
        for (uint32_t m = 0; m < n; m++) {
            if (edge(p, m, n)) {
                for (uint32_t k = 0; k <= m; k++) {
                    reached[k][n] |= reached[k][m];
                }
            }
        }
    }
    for (uint32_t n = 0; n < nodes; n++) {
        for (uint32_t m = 0; m < n; m++) {
            place a = place_of(p, m), c = place_of(p, n);
            if (a.word == NOWHERE || a.word != c.word || (a.kind == LOAD && c.kind == LOAD)) {
                continue;
            }
            bool atomic = a.kind == ATOMIC && c.kind == ATOMIC && in_scope(p, &a, &c);
            if (!atomic && !reached[m][n]) {
                return true;
            }
        }
    }
    return false;
}

/* ---- the simulator ------------------------------------------------------------------------- */

/* Parameter 0: words and entries' buffer 1: by block, step, warp. Stores write a number of their
 * own. */
static void build(rig *r, const program *p) {
    lilac_simt_value block = leaf(r, LILAC_SIMT_OP_BLOCK, 0), warp = leaf(r, LILAC_SIMT_OP_WARP, 0);
    lilac_simt_value first =
        lilac_simt_compare_values(&r->b, LILAC_SIMT_EQ, leaf(r, LILAC_SIMT_OP_LANE, 0), word(r, 0));
    for (uint32_t s = 0; s < p->steps; s++) {
        lilac_simt_value node = op2(r, LILAC_SIMT_OP_MUL, block, word(r, p->steps));
        node = op2(r, LILAC_SIMT_OP_ADD, node, word(r, s));
        node = op2(r, LILAC_SIMT_OP_MUL, node, word(r, p->warps));
        node = op2(r, LILAC_SIMT_OP_ADD, node, warp);
        at_line(r, s + 1);
        lilac_simt_value entry =
            load(r, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_I32, element(r, 1, node, 4));
        lilac_simt_value acts =
            lilac_simt_op2(&r->b, LILAC_SIMT_OP_AND, LILAC_SIMT_I1, first,
                           lilac_simt_compare_values(&r->b, LILAC_SIMT_GE, entry, word(r, 0)));
        lilac_simt_value address = element(r, 0, entry, 4);
        lilac_simt_value number = op2(r, LILAC_SIMT_OP_ADD, node, word(r, 1000));
        switch (p->step[s].kind) {
        case LOAD:
            lilac_simt_load(&r->b, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_I32, 1, address, 0, acts,
                            NULL, NULL);
            break;
        case STORE:
            lilac_simt_store(&r->b, LILAC_SIMT_OP_ST_GLOBAL, 1, &number, address, 0, acts, NULL);
            break;
        case ATOMIC: {
            lilac_simt_instruction like = {.code = LILAC_SIMT_OP_ATOMIC_GLOBAL,
                                           .detail = LILAC_SIMT_ATOMIC_ADD,
                                           .order = (uint8_t)p->step[s].order,
                                           .scope = (uint8_t)p->step[s].scope};
            lilac_simt_value operands[] = {address, acts, number};
            lilac_simt_type type = LILAC_SIMT_I32;
            lilac_simt_build(&r->b, &like, 3, operands, 1, &type);
            break;
        }
        case BLOCK:
            lilac_simt_barrier(&r->b);
            break;
        default:
            lilac_simt_group_barrier(&r->b, entry, 32 * p->step[s].group);
            break;
        }
    }
}

static bool found(const program *p, uint32_t threads) {
    static int32_t entries[NODES], words[WORDS];
    rig r;
    memset(words, 0, sizeof words);
    for (uint32_t n = 0; n < p->blocks * p->steps * p->warps; n++) {
        place at = place_of(p, n);
        entries[n] = p->step[at.step].of[at.block * p->warps + at.warp];
    }
    rig_init(&r, p->warps, 2, 0);
    build(&r, p);
    give(&r, 0, "words", words, sizeof words);
    give(&r, 1, "entries", entries, sizeof entries);
    r.launch.grid[0] = p->blocks;
    r.launch.threads = threads;
    assert_true(rig_run(&r));
    bool any = r.counters.races != 0;
    assert_int_equal(reported(&r, "global-race", NULL) != 0, any);
    rig_clear(&r);
    return any;
}

static void describe(const program *p) {
    static const char *const names[] = {"load", "store", "atomic", "barrier", "group"};
    for (uint32_t s = 0; s < p->steps; s++) {
        char line[256];
        int length = snprintf(line, sizeof line, "%2u %-8s order %d scope %d:", s,
                              names[p->step[s].kind], (int)p->step[s].order, (int)p->step[s].scope);
        for (uint32_t w = 0; w < p->blocks * p->warps; w++) {
            length += snprintf(line + length, sizeof line - (size_t)length, "%s %d",
                               w % p->warps ? "" : " |", p->step[s].of[w]);
        }
        print_message("%s\n", line);
    }
}

static void random_programs(void **state) {
    uint32_t rounds = 1500 * test_scale(), with = 0;
    lilac_random random;
    (void)state;
    lilac_random_seed(&random, 2077);
    for (uint32_t round = 0; round < rounds; round++) {
        program p;
        make(&p, &random);
        bool wanted = races(&p), acquires = false;
        with += wanted;
        for (uint32_t s = 0; s < p.steps; s++) {
            acquires |= p.step[s].kind == ATOMIC && p.step[s].order != LILAC_SIMT_RELAXED;
        }
        for (uint32_t threads = 1; threads < (acquires ? 2 : 4); threads += 2) {
            if (found(&p, threads) != wanted) {
                describe(&p);
                fail_msg("program %u of %u warps, %u host threads: %s", round, p.warps, threads,
                         wanted ? "a race is not found" : "a race is found where none is");
            }
        }
    }
    assert_in_range(with, rounds / 10, rounds - rounds / 10); /* both kinds of program are tried */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
