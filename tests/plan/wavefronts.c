/* The wavefront model by subspaces against counting: random distributed layouts in random memory
 * layouts, with copies in lanes and warps, lanes that meet inside a word, 32 and 64 banks and
 * lanes. */

#include <lilac/f2.h>
#include <lilac/plan.h>

#include "support/test.h"

enum { MOST_BITS = 12, ROUNDS = 3000 };

typedef struct pair {
    const lilac_arch *arch;
    uint32_t bits, element_bytes;
    lilac_layout distributed, memory;
} pair;

static bool one_in(lilac_random *random, uint32_t n) {
    return lilac_random_below(random, n) == 0;
}

static void shuffle(lilac_random *random, uint64_t *columns, uint32_t count) {
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = (uint32_t)lilac_random_below(random, i);
        uint64_t kept = columns[i - 1];
        columns[i - 1] = columns[j];
        columns[j] = kept;
    }
}

/* Invertible: a permutation of unit vectors with some columns added to others. Few additions make
 * the swizzles that people use, many make anything. */
static void random_basis(lilac_random *random, uint64_t *columns, uint32_t bits) {
    for (uint32_t i = 0; i < bits; i++) {
        columns[i] = UINT64_C(1) << i;
    }
    if (one_in(random, 2)) {
        shuffle(random, columns, bits);
    }
    for (uint64_t n = lilac_random_below(random, one_in(random, 3) ? 40 : 6); n > 0; n--) {
        uint32_t to = (uint32_t)lilac_random_below(random, bits);
        uint32_t from = (uint32_t)lilac_random_below(random, bits);
        columns[to] ^= to != from ? columns[from] : 0;
    }
}

static void random_pair(lilac_random *random, pair *p) {
    static const char *const names[] = {"sm_90a", "gfx942", "gfx950"};
    p->arch = lilac_arch_find(names[lilac_random_below(random, 3)]);
    p->element_bytes = UINT32_C(1) << lilac_random_below(random, 4);
    p->bits = 1 + (uint32_t)lilac_random_below(random, MOST_BITS);
    uint64_t memory[MOST_BITS] = {0}, columns[64] = {0};
    random_basis(random, memory, p->bits);
    lilac_layout_init(&p->memory);
    assert_true(lilac_layout_add_out(&p->memory, "dim0", p->bits, NULL));
    p->distributed = p->memory;
    assert_true(lilac_layout_add_in(&p->memory, "offset", p->bits, memory, NULL));

    /* The tensor's bits go to registers, lanes and warps; what is over holds copies. */
    uint32_t lanes = p->arch->warp_size == 64 ? 6 : 5;
    uint32_t warps = (uint32_t)lilac_random_below(random, 4);
    uint32_t copies = (uint32_t)lilac_random_below(random, 4);
    uint32_t least = p->bits > lanes + warps ? p->bits - lanes - warps : 0;
    uint32_t registers = least + copies, all = registers + lanes + warps;
    random_basis(random, columns, p->bits);
    if (one_in(random, 2)) { /* memory's own bases, so that vectors and conflicts are frequent */
        memcpy(columns, memory, sizeof memory);
    }
    for (uint32_t i = p->bits; i < all; i++) {
        if (one_in(random, 3)) {
            columns[i] = lilac_random_next(random) & ((UINT64_C(1) << p->bits) - 1);
        }
    }
    if (!one_in(random, 4)) {
        shuffle(random, columns, all);
    }
    assert_true(lilac_layout_add_in(&p->distributed, "register", registers, columns, NULL));
    assert_true(lilac_layout_add_in(&p->distributed, "lane", lanes, columns + registers, NULL));
    assert_true(
        lilac_layout_add_in(&p->distributed, "warp", warps, columns + registers + lanes, NULL));
}

/* Wavefronts of one transaction by their definition: the most different words in one bank. */
static uint32_t count(const pair *p, const uint64_t *addresses, uint32_t lanes, uint32_t bytes) {
    enum { MAX_WORDS = 64 * 4 };
    uint64_t words[MAX_WORDS];
    uint32_t found = 0, most = 0;
    for (uint32_t lane = 0; lane < lanes; lane++) {
        uint64_t last = (addresses[lane] + bytes - 1) / 4;
        for (uint64_t word = addresses[lane] / 4; word <= last; word++) {
            bool known = false;
            for (uint32_t i = 0; i < found; i++) {
                known = known || words[i] == word;
            }
            if (!known) {
                words[found++] = word;
            }
        }
    }
    for (uint32_t bank = 0; bank < p->arch->banks; bank++) {
        uint32_t depth = 0;
        for (uint32_t i = 0; i < found; i++) {
            depth += words[i] % p->arch->banks == bank;
        }
        most = depth > most ? depth : most;
    }
    return most;
}

/* Whether the lanes that differ in one bit of their number have the same address. */
static bool are_copies(const uint64_t *addresses, uint32_t lanes, uint32_t distance) {
    for (uint32_t lane = 0; lane < lanes; lane++) {
        if (addresses[lane] != addresses[lane ^ distance]) {
            return false;
        }
    }
    return true;
}

/* All transactions of all instructions of all warps. */
static uint64_t count_all(const pair *p, const lilac_plan_access *a, bool load) {
    uint32_t most = 0, bytes = a->element_bytes << a->vector_bits;
    uint32_t words = bytes > 4 ? bytes / 4 : 1, group = p->arch->banks / words;
    uint64_t sum = 0, addresses[64];
    group = group < p->arch->warp_size ? group : p->arch->warp_size;
    for (uint64_t step = 0; step >> a->step_bits == 0; step++) {
        for (uint32_t warp = 0; warp >> a->warp_bits == 0; warp++) {
            for (uint32_t lane = 0; lane < p->arch->warp_size; lane++) {
                addresses[lane] = lilac_plan_access_offset(a, step, lane, warp) * a->element_bytes;
            }
            uint32_t lanes = group;
            if (load && words > 1 && group < p->arch->warp_size &&
                (are_copies(addresses, p->arch->warp_size, 1) ||
                 are_copies(addresses, p->arch->warp_size, 2))) {
                lanes *= 2;
            }
            assert_int_equal(lanes, a->transaction_lanes);
            for (uint32_t first = 0; first < p->arch->warp_size; first += lanes) {
                uint32_t wavefronts = count(p, addresses + first, lanes, bytes);
                most = wavefronts > most ? wavefronts : most;
                if (a->padding.count == 0) {
                    assert_int_equal(wavefronts, a->transaction_wavefronts);
                }
                sum += wavefronts;
            }
        }
    }
    assert_int_equal(most, a->transaction_wavefronts);
    return sum;
}

/* The register that element `k` of the vector of an instruction is. */
static uint64_t register_of(const lilac_plan_access *a, uint64_t step, uint64_t k) {
    uint64_t index = 0;
    for (uint32_t i = 0; i < a->vector_bits; i++) {
        index |= (k >> i & 1) << a->vector_register[i];
    }
    for (uint32_t i = 0; i < a->step_bits; i++) {
        index |= (step >> i & 1) << a->step_register[i];
    }
    return index;
}

/* Each thread accesses each of its elements once, aligned, and in the register that is named. */
static void reaches_its_elements(const pair *p, const lilac_plan_access *a) {
    static uint8_t mine[1 << MOST_BITS];
    uint32_t registers = lilac_layout_in_bits(&p->distributed, "register");
    uint32_t lanes = lilac_layout_in_bits(&p->distributed, "lane");
    lilac_layout inverse;
    assert_true(lilac_layout_invert(&inverse, &p->memory, NULL));
    for (uint32_t warp = 0; warp >> a->warp_bits == 0; warp++) {
        for (uint32_t lane = 0; lane < p->arch->warp_size; lane += 1 + lane % 5) {
            uint64_t thread = (uint64_t)(warp << lanes | lane) << registers;
            uint32_t elements = 0, accessed = 0;
            memset(mine, 0, sizeof mine);
            for (uint64_t r = 0; r >> registers == 0; r++) {
                uint64_t element = lilac_layout_apply(&p->distributed, thread | r);
                uint64_t offset = lilac_layout_apply(&inverse, element);
                elements += mine[offset] == 0;
                mine[offset] = 1;
            }
            for (uint64_t step = 0; step >> a->step_bits == 0; step++) {
                uint64_t first = lilac_plan_access_offset(a, step, lane, warp);
                assert_int_equal(first & ((1u << a->vector_bits) - 1), 0);
                for (uint64_t k = 0; k >> a->vector_bits == 0; k++) {
                    assert_int_equal(mine[first + k], 1);
                    mine[first + k] = 2;
                    uint64_t element =
                        lilac_layout_apply(&p->distributed, thread | register_of(a, step, k));
                    assert_int_equal(lilac_layout_apply(&p->memory, first + k), element);
                    accessed++;
                }
            }
            assert_int_equal(accessed, elements);
        }
    }
}

/* Twice as wide a vector is impossible: too many bytes, a misaligned thread, or an instruction that
 * would not be a run of registers whose bits are put in another order. */
static bool could_be_wider(const pair *p, const lilac_plan_access *a) {
    uint64_t wide = UINT64_C(2) << a->vector_bits;
    bool neighbour = false, aligned = true;
    if (a->element_bytes * wide > p->arch->vector_bytes) {
        return false;
    }
    for (uint32_t i = 0; i < a->step_bits; i++) {
        bool next = a->step[i] == wide / 2;
        neighbour = neighbour || next;
        aligned = aligned && (next || a->step[i] % wide == 0);
    }
    for (uint32_t i = 0; i < a->lane_bits; i++) {
        aligned = aligned && a->lane[i] % wide == 0;
    }
    for (uint32_t i = 0; i < a->warp_bits; i++) {
        aligned = aligned && a->warp[i] % wide == 0;
    }
    return neighbour && aligned;
}

/* Lemma 9.4: exact when a lane accesses whole words, else a lower bound. */
static void lemma(const pair *p, const lilac_plan_access *a) {
    uint32_t bytes = a->element_bytes << a->vector_bits;
    uint64_t segments[64];
    uint32_t segment_count = 0, lanes = 0;
    while (1u << lanes < a->transaction_lanes) {
        lanes++;
    }
    for (uint32_t i = 0; i < p->bits; i++) {
        if ((a->element_bytes << i) >= 4 * p->arch->banks) {
            segments[segment_count++] = UINT64_C(1) << i;
        }
    }
    lilac_f2_space segment, lane, both;
    lilac_f2_span(&segment, segments, segment_count);
    lilac_f2_span(&lane, a->lane, lanes);
    lilac_f2_intersection(&both, &segment, &lane);
    if (bytes >= 4) {
        assert_int_equal(a->transaction_wavefronts, 1u << both.dimension);
    } else {
        assert_true(a->transaction_wavefronts >= 1u << both.dimension);
    }
}

static void formula_is_count(void **state) {
    lilac_random random;
    uint32_t vectors = 0, conflicts = 0, narrow = 0, merged = 0;
    (void)state;
    lilac_random_seed(&random, 54);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        pair p;
        lilac_plan_access a;
        random_pair(&random, &p);
        assert_true(lilac_plan_access_init(&a, &p.distributed, &p.memory, 8 * p.element_bytes,
                                           p.arch, NULL));
        assert_int_equal(a.instructions, UINT64_C(1) << (a.step_bits + a.warp_bits));
        assert_int_equal(a.memory_bytes, (uint64_t)p.element_bytes << p.bits);
        assert_int_equal(a.conflicts + 1, a.transaction_wavefronts);
        assert_int_equal(count_all(&p, &a, false), a.wavefronts);
        lilac_plan_access load = a;
        lilac_plan_access_as_load(&load, p.arch);
        assert_int_equal(count_all(&p, &load, true), load.wavefronts);
        merged += load.transactions < a.transactions;
        assert_false(could_be_wider(&p, &a));
        lemma(&p, &a);
        if (round % 4 == 0) {
            reaches_its_elements(&p, &a);
        }
        vectors += a.vector_bits > 0;
        conflicts += a.conflicts > 0;
        narrow += a.conflicts > 0 && a.element_bytes << a.vector_bits < 4;
    }
    assert_true(vectors > ROUNDS / 10); /* the laws were not about nothing */
    assert_true(conflicts > ROUNDS / 4);
    assert_true(narrow > ROUNDS / 20);
    assert_true(merged > ROUNDS / 100);
}

/* Padding: what is counted, where elements stand, that no vector is cut. */
static void padded(void **state) {
    lilac_random random;
    uint32_t vectors = 0, uneven = 0;
    (void)state;
    lilac_random_seed(&random, 55);
    for (uint32_t round = 0; round < 800; round++) {
        pair p;
        lilac_plan_access a, plain;
        lilac_plan_padding padding = {.count = 1 + round % 2};
        random_pair(&random, &p);
        for (uint32_t i = 0; i < padding.count; i++) {
            padding.interval[i] = 1u << lilac_random_below(&random, 10);
            padding.padding[i] = 1u << lilac_random_below(&random, 6);
        }
        assert_true(lilac_plan_access_init(&plain, &p.distributed, &p.memory, 8 * p.element_bytes,
                                           p.arch, NULL));
        if (!lilac_plan_access_init_padded(&a, &p.distributed, &p.memory, &padding,
                                           8 * p.element_bytes, p.arch, NULL)) {
            assert_true((uint64_t)p.element_bytes << (p.bits + 6) > p.arch->shared_bytes);
            continue;
        }
        assert_int_equal(count_all(&p, &a, false), a.wavefronts);
        assert_true(a.vector_bits <= plain.vector_bits);
        for (uint64_t step = 0; step >> a.step_bits == 0; step++) {
            for (uint32_t lane = 0; lane < p.arch->warp_size; lane++) {
                uint64_t offset = 0, elements = UINT64_C(1) << a.vector_bits;
                for (uint32_t i = 0; i < a.step_bits; i++) {
                    offset ^= step >> i & 1 ? a.step[i] : 0;
                }
                for (uint32_t i = 0; i < a.lane_bits; i++) {
                    offset ^= lane >> i & 1 ? a.lane[i] : 0;
                }
                uint64_t wanted = offset;
                for (uint32_t i = 0; i < padding.count; i++) {
                    wanted += offset / padding.interval[i] * padding.padding[i];
                    assert_int_equal((offset + elements - 1) / padding.interval[i],
                                     offset / padding.interval[i]);
                }
                assert_int_equal(lilac_plan_access_offset(&a, step, lane, 0), wanted);
                assert_int_equal(wanted % elements, 0);
                assert_true((wanted + elements) * p.element_bytes <= a.memory_bytes);
            }
        }
        vectors += a.vector_bits > 0;
        uneven += a.wavefronts < a.instructions * a.transactions * a.transaction_wavefronts;
    }
    assert_true(vectors > 20);
    assert_true(uneven > 10);
}

/* The formula of a transaction alone, on any lanes in a small memory. */
static void small_transactions(void **state) {
    enum { BITS = 8 };
    lilac_random random;
    (void)state;
    lilac_random_seed(&random, 3);
    for (uint32_t round = 0; round < 20000; round++) {
        pair p = {.arch = lilac_arch_find(round % 2 ? "sm_90a" : "gfx950")};
        uint32_t bytes = 1u << lilac_random_below(&random, 5), lane_bits = round % 5;
        uint64_t lanes[4], addresses[16] = {0};
        for (uint32_t i = 0; i < lane_bits; i++) {
            lanes[i] = lilac_random_below(&random, 1 << BITS) * bytes;
        }
        for (uint32_t lane = 0; lane < 16; lane++) {
            for (uint32_t i = 0; i < lane_bits; i++) {
                addresses[lane] ^= lane >> i & 1 ? lanes[i] : 0;
            }
        }
        assert_int_equal(lilac_plan_transaction_wavefronts(p.arch, bytes, lanes, lane_bits),
                         count(&p, addresses, 1u << lane_bits, bytes));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formula_is_count),
        cmocka_unit_test(padded),
        cmocka_unit_test(small_transactions),
    };
    return cmocka_run_group_tests_name("wavefronts", tests, NULL, NULL);
}
