/* The simulator's races against their definition, on random programs.
 *
 * A program is a row of steps that all warps of all blocks of a cluster take: an access (each warp
 * to a word of some block's shared memory, or to none), a barrier of the block, of groups of warps,
 * or of the cluster. Two accesses to a word by two warps, one of them a write, race unless there is
 * a path from the one to the other in this graph:
 *
 *     (step, warp) → (step + 1, warp)             whatever the step is
 *     (step, warp) → (step + 1, other warp)       when the step is a barrier that both take
 *
 * The simulator must find a race exactly when there is one, and with one block find it first where
 * it is first. */

#include "support/sim_kernels.h"
#include "support/test.h"

enum { STEPS = 14, WARPS = 16, WORDS = 3, NOWHERE = -1 };

typedef enum kind { READ, WRITE, BLOCK, GROUP, CLUSTER, KINDS } kind;

typedef struct program {
    uint32_t steps, warps, ctas;
    struct {
        kind kind;
        uint32_t group;    /* warps of a group */
        int32_t of[WARPS]; /* of each warp of the cluster: word, or number of its group */
    } step[STEPS];
} program;

/* The word that a warp's entry means is number `entry % WORDS` of block `entry / WORDS`. */
static void make(program *p, lilac_random *random) {
    memset(p, 0, sizeof *p);
    p->ctas = 1u << lilac_random_below(random, 3);
    p->warps = 1u << lilac_random_below(random, 5 - (uint32_t)__builtin_ctz(p->ctas));
    uint32_t all = p->ctas * p->warps;
    bool cluster = p->ctas > 1;
    bool chains = lilac_random_below(random, 2) != 0; /* many barriers between few accesses */
    p->steps = 3 + (uint32_t)lilac_random_below(random, STEPS - 2);
    for (uint32_t s = 0; s < p->steps; s++) {
        kind k = (kind)lilac_random_below(random, cluster ? KINDS : CLUSTER);
        if (chains && k <= WRITE && lilac_random_below(random, 2)) {
            k = GROUP;
        }
        k = cluster && (s == 0 || s + 1 == p->steps) ? CLUSTER : k;
        p->step[s].kind = k;
        p->step[s].group = 1u << lilac_random_below(random, 1 + __builtin_ctz(p->warps));
        if (p->warps / p->step[s].group > 15) {
            p->step[s].group *= 2;
        }
        bool few = lilac_random_below(random, 2) != 0;
        for (uint32_t w = 0; w < all; w++) {
            uint32_t rank = w / p->warps;
            if (k == GROUP) {
                p->step[s].of[w] = (int32_t)(w % p->warps / p->step[s].group);
            } else {
                uint32_t target = lilac_random_below(random, 2)
                                      ? rank
                                      : (uint32_t)lilac_random_below(random, p->ctas);
                bool none = lilac_random_below(random, few ? 6 : 2) != 0;
                p->step[s].of[w] =
                    none ? NOWHERE
                         : (int32_t)(target * WORDS + (uint32_t)lilac_random_below(random, WORDS));
            }
        }
        /* groups of warps that are not neighbours */
        for (uint32_t w = 0; k == GROUP && w < all; w++) {
            uint32_t other =
                w / p->warps * p->warps + (uint32_t)lilac_random_below(random, p->warps);
            int32_t number = p->step[s].of[w];
            p->step[s].of[w] = p->step[s].of[other];
            p->step[s].of[other] = number;
        }
    }
}

static bool meet(const program *p, uint32_t s, uint32_t a, uint32_t c) {
    bool same_block = a / p->warps == c / p->warps;
    switch (p->step[s].kind) {
    case BLOCK:
        return same_block;
    case GROUP:
        return same_block && p->step[s].of[a] == p->step[s].of[c];
    case CLUSTER:
        return true;
    default:
        return false;
    }
}

/* Is there a path from warp a at step s to warp c at step t? */
static bool is_ordered(const program *p, uint32_t s, uint32_t a, uint32_t t, uint32_t c) {
    uint32_t all = p->ctas * p->warps;
    uint64_t reached = UINT64_C(1) << a;
    for (; s < t; s++) {
        uint64_t next = reached;
        for (uint32_t x = 0; x < all; x++) {
            for (uint32_t y = 0; y < all; y++) {
                if ((reached >> x & 1) && meet(p, s, x, y)) {
                    next |= UINT64_C(1) << y;
                }
            }
        }
        reached = next;
    }
    return reached >> c & 1;
}

static bool is_access(const program *p, uint32_t s, uint32_t w) {
    return p->step[s].kind <= WRITE && p->step[s].of[w] != NOWHERE;
}

/* The first step with an access that races with one at it or before; the steps when there is none.
 */
static uint32_t first_race(const program *p) {
    uint32_t all = p->ctas * p->warps;
    for (uint32_t t = 0; t < p->steps; t++) {
        for (uint32_t c = 0; c < all; c++) {
            for (uint32_t s = 0; s <= t && is_access(p, t, c); s++) {
                for (uint32_t a = 0; a < all; a++) {
                    bool touch = a != c && is_access(p, s, a) &&
                                 p->step[s].of[a] == p->step[t].of[c] &&
                                 (p->step[s].kind == WRITE || p->step[t].kind == WRITE);
                    if (touch && !is_ordered(p, s, a, t, c)) {
                        return t;
                    }
                }
            }
        }
    }
    return p->steps;
}

/* Parameter 0: the entries, by step, warp of the cluster. */
static void build(rig *r, const program *p) {
    uint32_t all = p->ctas * p->warps;
    lilac_simt_value rank = leaf(r, LILAC_SIMT_OP_CTA, 0);
    lilac_simt_value warp =
        op2(r, LILAC_SIMT_OP_ADD, op2(r, LILAC_SIMT_OP_MUL, rank, word(r, p->warps)),
            leaf(r, LILAC_SIMT_OP_WARP, 0));
    lilac_simt_value first =
        lilac_simt_compare_values(&r->b, LILAC_SIMT_EQ, leaf(r, LILAC_SIMT_OP_LANE, 0), word(r, 0));
    for (uint32_t s = 0; s < p->steps; s++) {
        at_line(r, s + 1);
        lilac_simt_value index = op2(r, LILAC_SIMT_OP_ADD, warp, word(r, s * all));
        lilac_simt_value entry =
            load(r, LILAC_SIMT_OP_LD_GLOBAL, LILAC_SIMT_I32, element(r, 0, index, 4));
        bool cluster = p->ctas > 1;
        switch (p->step[s].kind) {
        case BLOCK:
            lilac_simt_barrier(&r->b);
            continue;
        case GROUP:
            lilac_simt_group_barrier(&r->b, entry, 32 * p->step[s].group);
            continue;
        case CLUSTER:
            lilac_simt_cluster_barrier(&r->b);
            continue;
        default:
            break;
        }
        lilac_simt_value active =
            lilac_simt_op2(&r->b, LILAC_SIMT_OP_AND, LILAC_SIMT_I1, first,
                           lilac_simt_compare_values(&r->b, LILAC_SIMT_GE, entry, word(r, 0)));
        lilac_simt_value at = op2(r, LILAC_SIMT_OP_REM_U, entry, word(r, WORDS));
        at = op2(r, LILAC_SIMT_OP_SHL, at, word(r, 2));
        if (cluster) {
            at = lilac_simt_map_shared(&r->b, at,
                                       op2(r, LILAC_SIMT_OP_DIV_U, entry, word(r, WORDS)));
        }
        if (p->step[s].kind == READ) {
            lilac_simt_load(&r->b, cluster ? LILAC_SIMT_OP_LD_CLUSTER : LILAC_SIMT_OP_LD_SHARED,
                            LILAC_SIMT_I32, 1, at, 0, active, NULL, NULL);
        } else {
            lilac_simt_store(&r->b, cluster ? LILAC_SIMT_OP_ST_CLUSTER : LILAC_SIMT_OP_ST_SHARED, 1,
                             &entry, at, 0, active, NULL);
        }
    }
}

static void races_are_races(void **state) {
    lilac_random random;
    uint32_t racing = 0, clean = 0, grouped = 0;
    (void)state;
    lilac_random_seed(&random, 4711);
    for (uint32_t round = 0; round < 2500; round++) {
        static int32_t entries[STEPS * WARPS];
        const lilac_diagnostic *d = NULL;
        lilac_name file;
        uint32_t line = 0, column = 0;
        program p;
        rig r;
        make(&p, &random);
        uint32_t all = p.ctas * p.warps, wanted = first_race(&p);
        for (uint32_t s = 0; s < p.steps; s++) {
            memcpy(entries + s * all, p.step[s].of, all * sizeof *entries);
            grouped += p.step[s].kind == GROUP && wanted == p.steps && all > 2;
        }
        rig_init(&r, p.warps, 1, WORDS * 4);
        r.kernel->num_ctas = p.ctas;
        build(&r, &p);
        give(&r, 0, "entries", entries, sizeof entries);
        if (!rig_run(&r)) {
            fail_msg("%s", lilac_diagnostics(r.context)->message);
        }
        if ((r.counters.races != 0) != (wanted < p.steps)) {
            fail_msg("round %u: %llu races, the first at %u of %u", round,
                     (unsigned long long)r.counters.races, wanted, p.steps);
        }
        if (wanted < p.steps && p.ctas == 1) {
            assert_true(reported(&r, "shared-race", &d) > 0);
            assert_true(lilac_location_file(r.context, d->location, &file, &line, &column));
            assert_int_equal(line, wanted + 1);
        }
        assert_int_equal(reported(&r, "shared-lifetime", NULL), 0);
        racing += wanted < p.steps;
        clean += wanted == p.steps;
        rig_clear(&r);
    }
    assert_true(racing > 300 && clean > 300 && grouped > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(races_are_races)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
