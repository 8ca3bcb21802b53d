/* Executes a shared-memory exchange element by element, by the definition of its instructions, and
 * counts its wavefronts bank by bank. */
#ifndef LILAC_TESTS_CARRY_STAGING_H
#define LILAC_TESTS_CARRY_STAGING_H

#include <lilac/plan.h>

#include "support/test.h"

typedef struct carried {
    const lilac_plan_staging *staging;
    const lilac_arch *arch;
    uint64_t elements; /* of one block's memory */
    uint32_t *memory;  /* [block][offset], the element + 1 */
    uint64_t wavefronts[2];
} carried;

/* The place of element k of the vector or matrices that a lane accesses. */
static inline uint64_t carry_offset(const lilac_plan_access *a, uint64_t step, uint32_t lane,
                                    uint32_t warp, uint64_t k) {
    uint32_t row, column, address;
    if (a->instruction == LILAC_PLAN_VECTOR) {
        return lilac_plan_access_offset(a, step, lane, warp) + k;
    }
    uint32_t word = a->vector_bits - a->matrix_bits, matrix = (uint32_t)(k >> word);
    uint32_t in_word = (uint32_t)(k & ((1u << word) - 1)), per_half = 1u << word >> 1;
    if (a->instruction == LILAC_PLAN_MATRIX) {
        row = lane / 4;
        column = (lane % 4 << word) + in_word;
    } else {
        row = 2 * (lane % 4) + in_word / per_half;
        column = lane / 4 * per_half + in_word % per_half;
    }
    address = 8 * matrix + row;
    return lilac_plan_access_offset(a, step, address, warp) + column;
}

static inline uint64_t carry_register(const lilac_plan_access *a, const uint8_t *rounds,
                                      uint32_t round_bits, uint64_t step, uint64_t k,
                                      uint64_t round) {
    uint64_t index = 0;
    for (uint32_t i = 0; i < a->vector_bits; i++) {
        index ^= (k >> i & 1) << a->vector_register[i];
    }
    for (uint32_t i = 0; i < a->step_bits; i++) {
        index ^= (step >> i & 1) << a->step_register[i];
    }
    for (uint32_t i = 0; i < round_bits; i++) {
        index ^= (round >> i & 1) << rounds[i];
    }
    return index;
}

static inline uint64_t carry_sum(const uint64_t *columns, uint32_t bits, uint64_t index) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < bits; i++) {
        sum ^= index >> i & 1 ? columns[i] : 0;
    }
    return sum;
}

/* Wavefronts of one instruction of a warp from the byte addresses (blocks in the bits from 40 on)
 * of its lanes or rows. Each block that a transaction reaches into counts by itself. */
static inline uint64_t carry_count(const carried *c, const lilac_plan_access *a, bool load,
                                   const uint64_t *address, uint32_t lanes, uint32_t bytes) {
    uint32_t words = bytes > c->arch->bank_bytes ? bytes / c->arch->bank_bytes : 1;
    uint32_t group = c->arch->banks / words ? c->arch->banks / words : 1;
    bool near[2] = {true, true};
    uint64_t total = 0;
    group = group < lanes ? group : lanes;
    for (uint32_t lane = 0; lane < lanes; lane++) {
        for (uint32_t i = 0; i < 2; i++) {
            uint64_t next = address[lane ^ (1u << i)];
            near[i] = near[i] && (address[lane] == next || address[lane] >> 40 != next >> 40);
        }
    }
    if (load && a->instruction == LILAC_PLAN_VECTOR && bytes >= 2 * c->arch->bank_bytes &&
        (near[0] || (near[1] && group > 1)) && group < lanes) {
        group *= 2;
    }
    if (a->instruction != LILAC_PLAN_VECTOR) {
        group = 8;
    }
    assert_int_equal(group, a->transaction_lanes);
    uint32_t idle = load ? 0 : c->staging->store_copy_lanes;
    assert_int_equal(lanes / group >> __builtin_popcount(idle), a->transactions);
    for (uint32_t first = 0; first < lanes; first += group) {
        assert_int_equal(idle & (group - 1), 0);
        if ((first & idle) != 0) {
            continue;
        }
        uint64_t seen[64 * 4];
        uint32_t count = 0, most = 0;
        for (uint32_t block = 0; block < 16; block++) {
            uint32_t fullest = 0;
            for (uint32_t lane = first; lane < first + group; lane++) {
                for (uint32_t i = 0; i < words && address[lane] >> 40 == block; i++) {
                    uint64_t word = address[lane] / c->arch->bank_bytes + i;
                    uint32_t depth = 1;
                    bool known = false;
                    for (uint32_t j = 0; j < count; j++) {
                        known = known || seen[j] == word;
                        depth += seen[j] >> 38 == word >> 38 &&
                                 seen[j] % c->arch->banks == word % c->arch->banks;
                    }
                    if (!known) {
                        seen[count++] = word;
                        fullest = depth > fullest ? depth : fullest;
                    }
                }
            }
            most += fullest;
        }
        assert_int_equal(most, a->transaction_wavefronts);
        total += most;
    }
    return total;
}

/* Stores or loads of one round. `file`: [block][warp][lane][register], elements. */
static inline void carry_side(carried *c, uint32_t blocks, bool load, uint64_t round,
                              uint32_t *file, uint32_t register_bits) {
    const lilac_plan_staging *t = c->staging;
    const lilac_plan_access *a = load ? &t->load : &t->store;
    uint32_t lanes = 1u << a->lane_bits, warps = 1u << a->warp_bits;
    uint32_t block_bits = (uint32_t)__builtin_ctz(blocks);
    for (uint32_t block = 0; block < blocks; block++) {
        for (uint32_t warp = 0; warp < warps; warp++) {
            if (!load && (warp & t->store_copies) != 0) {
                continue;
            }
            for (uint64_t step = 0; step >> a->step_bits == 0; step++) {
                uint64_t address[64] = {0};
                uint32_t rows = a->instruction == LILAC_PLAN_VECTOR ? lanes : 8u << a->matrix_bits;
                uint32_t bytes =
                    a->instruction == LILAC_PLAN_VECTOR ? a->element_bytes << a->vector_bits : 16;
                uint64_t base = 0, from[64];
                if (load) {
                    base = carry_sum(t->load_offset_block, block_bits, block);
                }
                for (uint32_t lane = 0; lane < lanes; lane++) {
                    from[lane] = block;
                    if (!load && (lane & t->store_copy_lanes) != 0) {
                        continue;
                    }
                    if (load && t->remote) {
                        from[lane] = carry_sum(t->load_block_step, a->step_bits, step) ^
                                     carry_sum(t->load_block_lane, a->lane_bits, lane) ^
                                     carry_sum(t->load_block_warp, a->warp_bits, warp) ^
                                     carry_sum(t->load_block_block, block_bits, block);
                    }
                    assert_true(from[lane] < blocks);
                    for (uint64_t k = 0; k >> a->vector_bits == 0; k++) {
                        uint64_t at = carry_offset(a, step, lane, warp, k) ^ base;
                        uint64_t r = carry_register(a, load ? t->load_round : t->store_round,
                                                    t->round_bits, step, k, round);
                        uint64_t thread = (uint64_t)(block * warps + warp) * lanes + lane;
                        uint32_t *value = &file[thread << register_bits | r];
                        assert_true(at < c->elements);
                        assert_true(r >> register_bits == 0);
                        uint32_t *place = &c->memory[from[lane] * c->elements + at];
                        if (load) {
                            assert_int_not_equal(*place, 0);
                            *value = *place - 1;
                        } else {
                            assert_true(*place == 0 || *place == *value + 1);
                            *place = *value + 1;
                            uint64_t all =
                                (block * (c->elements << t->round_bits)) | at | round * c->elements;
                            assert_int_equal(lilac_layout_apply(&t->memory, all), *value);
                        }
                    }
                }
                for (uint32_t row = 0; row < rows; row++) {
                    uint64_t at = lilac_plan_access_offset(a, step, row, warp) ^ base;
                    address[row] = at * a->element_bytes;
                    assert_int_equal(address[row] % bytes, 0);
                    if (load && t->remote) {
                        address[row] |= from[row] << 40;
                    }
                }
                uint64_t n = carry_count(c, a, load, address, rows, bytes);
                c->wavefronts[load] += block == 0 ? n : 0;
            }
        }
    }
}

/* The exchange with its permutations: checks every register of every thread of the target, and the
 * wavefronts and bytes that the plan states. */
static inline void carry_staging(const lilac_plan_staging_step *step, const lilac_layout *source,
                                 const lilac_layout *target, const lilac_arch *arch) {
    const lilac_plan_staging *t = &step->staging;
    const lilac_plan_permutation *before = &step->before, *after = &step->after;
    uint32_t blocks = 1u << lilac_layout_in_bits(source, "block");
    uint32_t threads = 1u << (t->store.lane_bits + t->store.warp_bits);
    uint32_t in_bits = lilac_layout_in_bits(source, "register");
    uint32_t out_bits = lilac_layout_in_bits(target, "register");
    uint32_t offset_bits = lilac_layout_in_bits(&t->memory, "offset") - t->round_bits;
    carried c = {.staging = t, .arch = arch, .elements = UINT64_C(1) << offset_bits};
    size_t all = (size_t)blocks * threads;
    uint32_t *stored = malloc((all << before->bits) * sizeof *stored);
    uint32_t *loaded = malloc((all << after->before_bits) * sizeof *loaded);
    c.memory = malloc(blocks * c.elements * sizeof *c.memory);
    assert_true(stored != NULL && loaded != NULL && c.memory != NULL);
    assert_int_equal(before->before_bits, in_bits);
    assert_int_equal(after->bits, out_bits);
    assert_int_equal(t->bytes, c.elements * t->store.element_bytes);
    assert_int_equal(before->bits, t->store.vector_bits + t->store.step_bits + t->round_bits);
    assert_int_equal(after->before_bits, t->load.vector_bits + t->load.step_bits + t->round_bits);
    for (size_t thread = 0; thread < all; thread++) {
        for (uint64_t r = 0; r >> before->bits == 0; r++) {
            uint64_t old = carry_sum(before->from, before->bits, r);
            stored[thread << before->bits | r] =
                (uint32_t)lilac_layout_apply(source, thread << in_bits | old);
        }
    }
    memset(loaded, 0xff, (all << after->before_bits) * sizeof *loaded);
    for (uint64_t round = 0; round >> t->round_bits == 0; round++) {
        memset(c.memory, 0, blocks * c.elements * sizeof *c.memory);
        carry_side(&c, blocks, false, round, stored, before->bits);
        carry_side(&c, blocks, true, round, loaded, after->before_bits);
    }
    for (size_t thread = 0; thread < all; thread++) {
        for (uint64_t r = 0; r >> out_bits == 0; r++) {
            uint64_t old = carry_sum(after->from, after->bits, r);
            assert_int_equal(loaded[thread << after->before_bits | old],
                             lilac_layout_apply(target, thread << out_bits | r));
        }
    }
    assert_int_equal(c.wavefronts[0], t->store.wavefronts << t->round_bits);
    assert_int_equal(c.wavefronts[1], t->load.wavefronts << t->round_bits);
    free(stored);
    free(loaded);
    free(c.memory);
}

#endif
