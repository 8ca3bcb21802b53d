/* Shared-memory exchanges.
 *
 *   carried       random pairs of all kinds on three devices: every element followed through memory
 *                 by the definition of the instructions, every transaction counted bank by bank,
 *                 memory that holds each element once, the bound
 *   optimal       on devices of 2 and 4 banks and tensors of up to 6 bits, against every memory
 *                 there is and every pair of vectors: none has fewer wavefronts or, of equal
 *                 wavefronts, fewer instructions
 *
 * LILAC_TEST_LONG multiplies how many. */
#include "support/carry_staging.h"
#include "support/random_layouts.h"

#include <stdio.h>

static uint32_t times(uint32_t usual) {
    const char *longer = getenv("LILAC_TEST_LONG");
    return usual * (longer == NULL ? 1 : (uint32_t)strtoul(longer, NULL, 10) + 1);
}

/* ---- carried ------------------------------------------------------------------------------ */

/* The layout without the registers that repeat other registers of the same thread. */
static void drop_copies(lilac_layout *layout) {
    const uint32_t bits = lilac_layout_in_bits(layout, "register");
    const uint32_t start = lilac_layout_in_start(layout, 0);
    uint64_t kept[64], rows[64] = {0};
    uint32_t count = 0;
    lilac_layout result;
    lilac_layout_init(&result);
    for (uint32_t i = 0; i < layout->out_count; i++) {
        assert_true(lilac_layout_add_out(&result, layout->out[i].name, layout->out[i].bits, NULL));
    }
    for (uint32_t i = 0; i < bits; i++) {
        uint64_t rest = layout->columns[start + i];
        while (rest != 0 && rows[63 - __builtin_clzll(rest)] != 0) {
            rest ^= rows[63 - __builtin_clzll(rest)];
        }
        if (rest != 0) {
            rows[63 - __builtin_clzll(rest)] = rest;
            kept[count++] = layout->columns[start + i];
        }
    }
    assert_true(lilac_layout_add_in(&result, "register", count, kept, NULL));
    for (uint32_t in = 1; in < layout->in_count; in++) {
        assert_true(lilac_layout_add_in(&result, layout->in[in].name, layout->in[in].bits,
                                        layout->columns + lilac_layout_in_start(layout, in), NULL));
    }
    *layout = result;
}

typedef struct tally {
    uint32_t exchanges, refused, rounds, remote, matrices, copies, narrow, plain;
    uint32_t dearer; /* above the bound because the cheapest way is another */
} tally;

/* The memory holds every element of the tensor; without copies in blocks, once. */
static void holds_all(const lilac_plan_staging *t, const lilac_layout *source) {
    assert_true(lilac_layout_is_surjective(&t->memory));
    if (lilac_layout_in_bits(source, "block") == 0) {
        assert_true(lilac_layout_is_bijective(&t->memory));
    }
}

/* What the model of an access to a given memory says of the same instructions. */
static void agrees_with_access(const lilac_plan_staging *t, const lilac_plan_permutation *before,
                               const lilac_layout *source, uint32_t element_bits,
                               const lilac_arch *arch) {
    lilac_plan_access a;
    lilac_layout permuted;
    uint64_t columns[64];
    const uint32_t bits = before->bits;
    if (t->store.instruction != LILAC_PLAN_VECTOR || t->round_bits > 0) {
        return;
    }
    for (uint32_t i = 0; i < bits; i++) {
        columns[i] = lilac_layout_apply(source, before->from[i]);
    }
    lilac_layout_init(&permuted);
    for (uint32_t i = 0; i < source->out_count; i++) {
        assert_true(
            lilac_layout_add_out(&permuted, source->out[i].name, source->out[i].bits, NULL));
    }
    assert_true(lilac_layout_add_in(&permuted, "register", bits, columns, NULL));
    for (uint32_t in = 1; in < source->in_count; in++) {
        assert_true(lilac_layout_add_in(&permuted, source->in[in].name, source->in[in].bits,
                                        source->columns + lilac_layout_in_start(source, in), NULL));
    }
    if (!lilac_plan_access_init(&a, &permuted, &t->memory, element_bits, arch, NULL) ||
        a.vector_bits != t->store.vector_bits) {
        return;
    }
    assert_int_equal(a.transaction_wavefronts, t->store.transaction_wavefronts);
    assert_int_equal(a.step_bits, t->store.step_bits);
    assert_int_equal(a.wavefronts,
                     t->store.wavefronts << (__builtin_popcount(t->store_copies) +
                                             __builtin_popcount(t->store_copy_lanes)));
}

static void try_pair(tally *n, lilac_random *random, const lilac_layout *source,
                     const lilac_layout *target, uint32_t element_bits, const lilac_arch *arch) {
    lilac_plan_staging_step step;
    lilac_plan_price price = {0}, estimate = {0};
    lilac_plan_barrier barrier;
    lilac_plan_options options = {LILAC_PLAN_BY_SHARED, 0};
    const uint32_t bytes = element_bits / 8;
    uint32_t warps = 1u << lilac_layout_in_bits(source, "warp");
    if (random_below(random, 6) == 0) {
        options.strategy = LILAC_PLAN_UNSWIZZLED;
    }
    if (random_below(random, 4) == 0) {
        options.scratch_bytes = ((uint64_t)bytes << source->out_bits) >> random_below(random, 4);
    }
    if (!lilac_plan_staging_init(&step, source, target, element_bits, &options, arch, NULL)) {
        n->refused++;
        return;
    }
    const lilac_plan_staging *t = &step.staging;
    const lilac_plan_bound *bound = &step.bound;
    carry_staging(&step, source, target, arch);
    holds_all(t, source);
    agrees_with_access(t, &step.before, source, element_bits, arch);
    assert_true(options.scratch_bytes == 0 || t->bytes <= options.scratch_bytes);
    const uint64_t wavefronts = (t->store.wavefronts + t->load.wavefronts) << t->round_bits;
    const uint64_t least = bound->store_wavefronts + bound->load_wavefronts;
    assert_true(wavefronts >= least);
    n->exchanges++;
    if (options.strategy == LILAC_PLAN_UNSWIZZLED) {
        n->plain += wavefronts > least;
        return;
    }
    assert_true(least >= bound->floor_wavefronts);
    assert_int_equal(bound->met, wavefronts == least);
    lilac_plan_price_staging(&price, t, element_bits, warps);
    assert_true(lilac_plan_staging_estimate(&estimate, &barrier, source, target, element_bits,
                                            &options, arch));
    assert_memory_equal(&price, &estimate, sizeof price);
    assert_int_equal(barrier, t->barrier);
    n->rounds += t->round_bits > 0;
    n->remote += t->remote;
    n->copies += t->store_copies != 0;
    n->matrices +=
        t->store.instruction != LILAC_PLAN_VECTOR || t->load.instruction != LILAC_PLAN_VECTOR;
    n->narrow += price.packs != 0;
    if (lilac_layout_in_bits(source, "block") == 0) {
        assert_int_equal(bound->by_price, !bound->met);
    }
    assert_false(bound->by_price && bound->met);
    if (bound->by_price) {
        /* Only words that are not a word's own registers cost what is not wavefronts, or accesses
         * that are many. */
        assert_true(element_bits < 32 || price.stores + price.loads < wavefronts);
        n->dearer++;
    }
}

static void carried_out(void **state) {
    static const char *const names[] = {"sm_90a", "sm_80", "gfx942", "gfx950"};
    lilac_context *context = lilac_context_create();
    lilac_random random;
    tally n = {0};
    const uint32_t count = times(2500);
    (void)state;
    lilac_random_seed(&random, 77);
    for (uint32_t i = 0; i < count; i++) {
        const lilac_arch *arch = lilac_arch_find(names[random_below(&random, 4)]);
        const uint32_t element_bits = 8u << random_below(&random, 5);
        random_space space;
        random_pair pair;
        random_space_init(&space, &random, arch->warp_size == 64 ? 6 : 5, random_below(&random, 4),
                          lilac_arch_has(arch, LILAC_HAS_CLUSTERS) && random_below(&random, 2) == 0
                              ? 1 + random_below(&random, 2)
                              : 0,
                          element_bits, 4);
        random_pair_init(&pair, &random, context, &space);
        drop_copies(&pair.source);
        drop_copies(&pair.target);
        if (getenv("LILAC_TEST_PAIR") != NULL) {
            lilac_text text = {0};
            random_pair_print(&text, &pair, element_bits);
            fprintf(stderr, "%u %s %s\n", i, arch->name, text.bytes);
            lilac_text_clear(&text);
        }
        try_pair(&n, &random, &pair.source, &pair.target, element_bits, arch);
    }
    lilac_context_destroy(context);
    printf("%u exchanges, %u refused; %u in rounds, %u between blocks, %u with matrices, %u with "
           "copies, "
           "%u narrower than a word; above the bound %u, for dearer permutes; %u of the "
           "unswizzled\n",
           n.exchanges, n.refused, n.rounds, n.remote, n.matrices, n.copies, n.narrow, n.dearer,
           n.plain);
    assert_true(n.rounds > count / 100 && n.remote > count / 100 && n.copies > count / 100);
    assert_true(n.matrices > count / 200 && n.narrow > count / 200 && n.plain > count / 100);
    assert_true(n.dearer * 20 < count);
}

/* ---- optimal -------------------------------------------------------------------------------- */

enum { MOST_SMALL = 6 };

/* One side of a small problem: columns, and what its cheapest vectors take in some memory. */
typedef struct small_side {
    uint32_t registers, lanes, warps, stored_warps;
    uint64_t reg[MOST_SMALL], thread[2 * MOST_SMALL];
} small_side;

static void read_small(small_side *s, const lilac_layout *layout) {
    uint32_t at = 0;
    s->registers = lilac_layout_in_bits(layout, "register");
    s->lanes = lilac_layout_in_bits(layout, "lane");
    s->warps = lilac_layout_in_bits(layout, "warp");
    for (uint32_t i = 0; i < s->registers; i++) {
        s->reg[i] = layout->columns[at++];
    }
    for (uint32_t i = 0; i < s->lanes + s->warps; i++) {
        s->thread[i] = layout->columns[at++];
    }
}

static uint32_t parity(uint64_t x) {
    return (uint32_t)__builtin_parityll(x);
}

/* All functionals of memory at a vector: its offset. */
static uint64_t offset_of(const uint64_t *functional, uint32_t bits, uint64_t vector) {
    uint64_t offset = 0;
    for (uint32_t i = 0; i < bits; i++) {
        offset |= (uint64_t)parity(functional[i] & vector) << i;
    }
    return offset;
}

/* Wavefronts times 2^10 and instructions of the best vectors of a side whose columns are at these
 * offsets. */
static uint64_t best_of(const small_side *s, const uint64_t *reg, const uint64_t *thread,
                        uint32_t bytes, const lilac_arch *arch, bool load) {
    uint64_t best = UINT64_MAX, rows[64];
    uint64_t threads = 0;
    for (uint32_t i = 0; i < s->lanes + s->warps; i++) {
        threads |= thread[i];
    }
    memset(rows, 0, sizeof rows);
    for (uint32_t i = 0; i < s->registers; i++) {
        uint64_t rest = reg[i];
        while (rest != 0 && rows[63 - __builtin_clzll(rest)] != 0) {
            rest ^= rows[63 - __builtin_clzll(rest)];
        }
        if (rest != 0) {
            rows[63 - __builtin_clzll(rest)] = rest;
        }
    }
    for (uint32_t v = 0; v <= s->registers && bytes << v <= arch->vector_bytes; v++) {
        if (v > 0) {
            uint64_t rest = UINT64_C(1) << (v - 1);
            while (rest != 0 && rows[63 - __builtin_clzll(rest)] != 0) {
                rest ^= rows[63 - __builtin_clzll(rest)];
            }
            if (rest != 0 || (threads >> (v - 1) & 1) != 0) {
                break;
            }
        }
        uint32_t words = bytes << v > 4 ? (bytes << v) / 4 : 1, group = arch->banks / words;
        if (load && words > 1 && (thread[0] == 0 || (group > 1 && thread[1] == 0))) {
            group *= 2;
        }
        group = group < arch->warp_size ? group : arch->warp_size;
        uint64_t seen = 0;
        uint32_t depth[8] = {0}, most = 0;
        for (uint32_t lane = 0; lane < group; lane++) {
            uint64_t at = 0;
            for (uint32_t i = 0; i < s->lanes; i++) {
                at ^= lane >> i & 1 ? thread[i] : 0;
            }
            for (uint32_t k = 0; k < words; k++) {
                uint64_t word = at * bytes / 4 + k;
                if ((seen >> word & 1) == 0) {
                    seen |= UINT64_C(1) << word;
                    uint32_t d = ++depth[word % arch->banks];
                    most = d > most ? d : most;
                }
            }
        }
        uint64_t instructions = UINT64_C(1) << (s->registers - v + s->stored_warps);
        uint64_t transactions = arch->warp_size / group, lower[64] = {0};
        for (uint32_t i = 0; i < s->lanes && !load; i++) {
            uint64_t rest = thread[i];
            while (rest != 0 && lower[63 - __builtin_clzll(rest)] != 0) {
                rest ^= lower[63 - __builtin_clzll(rest)];
            }
            if (rest != 0) {
                lower[63 - __builtin_clzll(rest)] = rest;
            } else if (1u << i >= group) { /* whole transactions of copies, which need not store */
                transactions /= 2;
            }
        }
        uint64_t cost = instructions * transactions * most * 1024 + instructions;
        best = cost < best ? cost : best;
    }
    return best;
}

typedef struct small_pair {
    const lilac_arch *arch;
    uint32_t bits, bytes;
    small_side side[2];
    uint64_t best;
    uint64_t memories;
} small_pair;

static void check(small_pair *p, const uint64_t *functional) {
    uint64_t cost = 0;
    for (uint32_t which = 0; which < 2; which++) {
        const small_side *s = &p->side[which];
        uint64_t reg[MOST_SMALL], thread[2 * MOST_SMALL];
        for (uint32_t i = 0; i < s->registers; i++) {
            reg[i] = offset_of(functional, p->bits, s->reg[i]);
        }
        for (uint32_t i = 0; i < s->lanes + s->warps; i++) {
            thread[i] = offset_of(functional, p->bits, s->thread[i]);
        }
        cost += best_of(s, reg, thread, p->bytes, p->arch, which == 1);
    }
    p->memories++;
    p->best = cost < p->best ? cost : p->best;
}

/* Every invertible matrix, row by row: row i is any vector outside the span of those before. */
static void every_matrix(small_pair *p, uint64_t *functional, uint32_t count, uint64_t spanned) {
    if (count == p->bits) {
        check(p, functional);
        return;
    }
    for (uint64_t v = 1; v >> p->bits == 0; v++) {
        if ((spanned >> v & 1) != 0) {
            continue;
        }
        uint64_t wider = spanned;
        for (uint64_t u = 0; u >> p->bits == 0; u++) {
            wider |= (spanned >> u & 1) << (u ^ v);
        }
        functional[count] = v;
        every_matrix(p, functional, count + 1, wider);
    }
}

/* Every memory up to what matters when an element is a word, vectors are of up to two and there are
 * two banks or four: the lowest functional, the vector that it and no other is 1 on, and the
 * segments, which make the second lowest. The others are any that complete these. */
static void every_flag(small_pair *p) {
    const uint64_t all = UINT64_C(1) << p->bits;
    for (uint64_t low = 1; low < all; low++) {
        for (uint64_t unit = 1; unit < all; unit++) {
            if (parity(low & unit) == 0) {
                continue;
            }
            /* Functionals that vanish on the unit; the second one is one of them. */
            for (uint64_t second = 1; second < all; second++) {
                if (parity(second & unit) != 0) {
                    continue;
                }
                uint64_t functional[MOST_SMALL] = {low, second}, rows[64] = {0};
                uint32_t count = 1;
                for (uint64_t next = second, more = 0; count < p->bits; next = ++more) {
                    uint64_t rest = next;
                    if (parity(next & unit) != 0) {
                        continue;
                    }
                    while (rest != 0 && rows[63 - __builtin_clzll(rest)] != 0) {
                        rest ^= rows[63 - __builtin_clzll(rest)];
                    }
                    if (rest != 0) {
                        rows[63 - __builtin_clzll(rest)] = rest;
                        functional[count++] = next;
                    }
                }
                check(p, functional);
                if (p->arch->banks == 2) {
                    break; /* what the second is does not matter */
                }
            }
        }
    }
}

static void random_small(lilac_layout *layout, lilac_random *random, uint32_t bits, uint32_t lanes,
                         uint32_t warps, bool copies) {
    uint64_t columns[4 * MOST_SMALL] = {0};
    uint32_t threads = lanes + warps, zeros = 0;
    for (uint32_t i = 0; i < bits; i++) {
        columns[i] = UINT64_C(1) << i;
    }
    random_shuffle(random, columns, bits);
    for (uint32_t n = random_below(random, 6); n > 0; n--) {
        uint32_t to = random_below(random, bits), from = random_below(random, bits);
        columns[to] ^= to != from ? columns[from] : 0;
    }
    zeros = bits < threads ? threads - bits : 0;
    if (copies) {
        zeros += random_below(random, threads - zeros + 1);
    }
    /* Registers are never copies. */
    uint32_t registers = bits + zeros - threads;
    random_shuffle(random, columns + registers, threads);
    lilac_layout_init(layout);
    assert_true(lilac_layout_add_out(layout, "dim0", bits, NULL));
    assert_true(lilac_layout_add_in(layout, "register", registers, columns, NULL));
    assert_true(lilac_layout_add_in(layout, "lane", lanes, columns + registers, NULL));
    assert_true(lilac_layout_add_in(layout, "warp", warps, columns + registers + lanes, NULL));
}

static void no_memory_is_better(void **state) {
    lilac_random random;
    uint32_t vectors = 0, conflicts = 0, copies = 0, one_side = 0;
    (void)state;
    lilac_random_seed(&random, 4);
    for (uint32_t round = 0, rounds = times(60); round < rounds; round++) {
        const uint32_t lanes = 2 + random_below(&random, 2), bits = 2 + round % 5;
        lilac_arch arch = {.name = "small",
                           .vendor = LILAC_AMD,
                           .warp_size = 1u << lanes,
                           .banks = 2u << random_below(&random, 2),
                           .bank_bytes = 4,
                           .shared_bytes = 1 << 20,
                           .max_warps = 8,
                           .vector_bytes = 8};
        small_pair p = {.arch = &arch, .bits = bits, .bytes = 4, .best = UINT64_MAX};
        lilac_layout source, target;
        lilac_plan_staging_step step;
        const uint32_t warps = random_below(&random, 2);
        if (bits <= 4) {
            p.bytes = 1u << random_below(&random, 4);
        }
        random_small(&source, &random, bits, lanes, warps, random_below(&random, 3) == 0);
        random_small(&target, &random, bits, lanes, warps, random_below(&random, 3) == 0);
        lilac_reason why = {""};
        const bool ok =
            lilac_plan_staging_init(&step, &source, &target, 8 * p.bytes, NULL, &arch, &why);
        assert_string_equal(why.text, "");
        assert_true(ok);
        const lilac_plan_bound *bound = &step.bound;
        const lilac_plan_staging *t = &step.staging;
        carry_staging(&step, &source, &target, &arch);
        read_small(&p.side[0], &source);
        read_small(&p.side[1], &target);
        p.side[0].stored_warps = warps - (uint32_t)__builtin_popcount(t->store_copies);
        p.side[1].stored_warps = warps;
        if (bits <= 4) {
            uint64_t functional[MOST_SMALL];
            every_matrix(&p, functional, 0, 1);
            assert_int_equal(p.memories, bits == 4 ? 20160 : bits == 3 ? 168 : 6);
        } else {
            every_flag(&p);
        }
        uint64_t ours = (t->store.wavefronts + t->load.wavefronts) * 1024 + t->store.instructions +
                        t->load.instructions;
        if (ours != p.best) {
            print_message("round %u: %u bits of %u bytes, %u banks: %u+%u wavefronts, best %u\n",
                          round, bits, p.bytes, arch.banks, (uint32_t)t->store.wavefronts,
                          (uint32_t)t->load.wavefronts, (uint32_t)(p.best / 1024));
        }
        assert_int_equal(ours, p.best);
        assert_true(bound->met); /* so the bound is exact */
        vectors += t->store.vector_bits > 0 || t->load.vector_bits > 0;
        one_side += t->store.vector_bits != t->load.vector_bits;
        conflicts += t->store.conflicts + t->load.conflicts > 0;
        copies += t->store_copies != 0;
    }
    printf("vectors %u, on one side %u, conflicts %u, copies %u\n", vectors, one_side, conflicts,
           copies);
    assert_true(vectors > 5 && one_side > 2 && copies > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(carried_out),
        cmocka_unit_test(no_memory_is_better),
    };
    return cmocka_run_group_tests_name("swizzles", tests, NULL, NULL);
}
