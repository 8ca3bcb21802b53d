/* Shared-memory exchanges between layouts whose optimum is known: the 16 × 32 transpose by one warp,
 * all swizzles of it that xor rows into columns, matrix instructions, barriers, rounds, copies,
 * blocks, and what is refused. */
#include "support/carry_staging.h"

enum { M = 0, N = 4 }; /* first bits of the row and the column in a 16 × 32 tensor */

static uint64_t bit(uint32_t i) {
    return UINT64_C(1) << i;
}

/* A layout of 2^rows × 2^columns, its columns given in one row. */
static lilac_layout make(uint32_t rows, uint32_t columns, uint32_t registers, uint32_t lanes,
                         uint32_t warps, uint32_t blocks, const uint64_t *at) {
    lilac_layout l;
    lilac_layout_init(&l);
    assert_true(lilac_layout_add_out(&l, "dim0", rows, NULL));
    assert_true(lilac_layout_add_out(&l, "dim1", columns, NULL));
    assert_true(lilac_layout_add_in(&l, "register", registers, at, NULL));
    assert_true(lilac_layout_add_in(&l, "lane", lanes, at + registers, NULL));
    assert_true(lilac_layout_add_in(&l, "warp", warps, at + registers + lanes, NULL));
    assert_true(lilac_layout_add_in(&l, "block", blocks, at + registers + lanes + warps, NULL));
    return l;
}

/* Thread t has column t; thread t has row t mod 16 of columns 2r + t / 16. */
static void transpose(lilac_layout *store, lilac_layout *load) {
    const uint64_t a[] = {bit(M),     bit(M + 1), bit(M + 2), bit(M + 3), bit(N),
                          bit(N + 1), bit(N + 2), bit(N + 3), bit(N + 4)};
    const uint64_t b[] = {bit(N + 1), bit(N + 2), bit(N + 3), bit(N + 4), bit(M),
                          bit(M + 1), bit(M + 2), bit(M + 3), bit(N)};
    *store = make(4, 5, 4, 5, 0, 0, a);
    *load = make(4, 5, 4, 5, 0, 0, b);
}

static lilac_plan_staging_step best(const lilac_layout *source, const lilac_layout *target,
                                    uint32_t element_bits, lilac_plan_strategy strategy,
                                    uint64_t scratch, const lilac_arch *arch) {
    const lilac_plan_options options = {strategy, scratch};
    lilac_reason why = {""};
    lilac_plan_staging_step r;
    const bool ok = lilac_plan_staging_init(&r, source, target, element_bits, &options, arch, &why);
    assert_string_equal(why.text, "");
    assert_true(ok);
    carry_staging(&r, source, target, arch);
    return r;
}

static void one_bit_off(void **state) {
    lilac_layout store, load, inverse;
    lilac_arch scalar = *lilac_arch_find("sm_90a");
    (void)state;
    transpose(&store, &load);

    lilac_plan_staging_step r = best(&store, &load, 32, LILAC_PLAN_UNSWIZZLED, 0, &scalar);
    assert_int_equal(r.staging.store.wavefronts, 16);
    assert_int_equal(r.staging.load.wavefronts, 256);

    r = best(&store, &load, 32, LILAC_PLAN_BY_SHARED, 0, &scalar);
    assert_int_equal(r.staging.store.wavefronts, 16);
    assert_int_equal(r.staging.load.wavefronts, 16);
    assert_int_equal(r.bound.floor_wavefronts, 32);
    assert_true(r.bound.met);
    assert_int_equal(r.staging.barrier, LILAC_PLAN_BARRIER_WARP);

    /* With ld.shared and st.shared of 32 bits only, as the article has it: bit for bit. */
    scalar.vector_bytes = 4;
    scalar.features = 0;
    r = best(&store, &load, 32, LILAC_PLAN_BY_SHARED, 0, &scalar);
    assert_int_equal(r.staging.store.instructions, 16);
    assert_int_equal(r.staging.load.instructions, 16);
    assert_int_equal(r.staging.store.wavefronts, 16);
    assert_int_equal(r.staging.load.wavefronts, 16);
    assert_true(lilac_layout_invert(&inverse, &r.staging.memory, NULL));
    for (uint64_t m = 0; m < 16; m++) {
        for (uint64_t n = 0; n < 32; n++) {
            assert_int_equal(lilac_layout_apply(&inverse, m << M | n << N), 32 * m + (n ^ 2 * m));
        }
    }
    /* Segments are graphs of injective maps from the rows' bits, over the columns' but the lowest,
     * to which it may be added or not: |GL(4, 2)| · 2^4 = 20160 · 16. */
    assert_int_equal(r.staging.family_bits, 18);
}

/* offset = 32 m + (n ⊕ T m) for all 2^20 matrices T of 5 × 4: the formula and the fullest bank. */
static void all_toggles(void **state) {
    const lilac_arch *arch = lilac_arch_find("sm_90a");
    uint32_t by_wavefronts[33] = {0};
    (void)state;
    for (uint32_t toggles = 0; toggles < 1u << 20; toggles++) {
        /* Loads: lanes 0 … 3 are the row's bits, lane 4 is n's lowest. */
        uint64_t lanes[5];
        uint32_t banks[16] = {0}, most = 0;
        uint8_t depth[32] = {0};
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t toggled = toggles >> 5 * i & 31;
            lanes[i] = 4 * ((32u << i) + toggled);
            for (uint32_t m = 0; m < 1u << i; m++) {
                banks[m | 1u << i] = banks[m] ^ toggled;
            }
        }
        lanes[4] = 4;
        for (uint32_t m = 0; m < 16; m++) {
            const uint32_t even = ++depth[banks[m]], odd = ++depth[banks[m] ^ 1];
            most = even > most ? even : most;
            most = odd > most ? odd : most;
        }
        const uint32_t formula = lilac_plan_transaction_wavefronts(arch, 4, lanes, 5);
        if (formula != most) {
            fail_msg("toggles %x: %u by the formula, %u in the fullest bank", toggles, formula,
                     most);
        }
        by_wavefronts[formula]++;
    }
    /* Matrices by their rank without the lowest row: those with all of 4 are free of conflicts. */
    assert_int_equal(by_wavefronts[1], 20160 * 16);
    assert_int_equal(by_wavefronts[16], 16);
    assert_int_equal(by_wavefronts[1] + by_wavefronts[2] + by_wavefronts[4] + by_wavefronts[8] +
                         by_wavefronts[16],
                     1u << 20);
}

/* The textbook's n ⊕ m, by the model of accesses to a given memory. */
static void textbook(void **state) {
    const lilac_arch *arch = lilac_arch_find("sm_90a");
    lilac_layout store, load;
    lilac_plan_access a;
    (void)state;
    transpose(&store, &load);
    for (uint32_t shift = 0; shift < 2; shift++) {
        uint64_t columns[9];
        lilac_layout memory;
        for (uint32_t i = 0; i < 5; i++) {
            columns[i] = bit(N + i);
        }
        for (uint32_t i = 0; i < 4; i++) {
            columns[5 + i] = bit(M + i) ^ bit(N + i + shift);
        }
        lilac_layout_init(&memory);
        assert_true(lilac_layout_add_out(&memory, "dim0", 4, NULL));
        assert_true(lilac_layout_add_out(&memory, "dim1", 5, NULL));
        assert_true(lilac_layout_add_in(&memory, "offset", 9, columns, NULL));
        assert_true(lilac_plan_access_init(&a, &store, &memory, 32, arch, NULL));
        assert_int_equal(a.wavefronts, 16);
        assert_true(lilac_plan_access_init(&a, &load, &memory, 32, arch, NULL));
        assert_int_equal(a.wavefronts, shift == 0 ? 32 : 16);
    }
}

/* 64 × 64 of 16 bits: columns of a blocked layout to the accumulator of mma v2. */
static void matrices(void **state) {
    const uint64_t column[] = {bit(0), bit(1), bit(2), bit(6), bit(7),  bit(3),
                               bit(4), bit(5), bit(8), bit(9), bit(10), bit(11)};
    const uint64_t mma[] = {bit(6), bit(3), bit(9), bit(10), bit(11), bit(7),
                            bit(8), bit(0), bit(1), bit(2),  bit(4),  bit(5)};
    const lilac_layout a = make(6, 6, 5, 5, 2, 0, column), b = make(6, 6, 5, 5, 2, 0, mma);
    const lilac_arch *arch = lilac_arch_find("sm_90a");
    lilac_plan_access access;
    (void)state;
    lilac_plan_staging_step r = best(&a, &b, 16, LILAC_PLAN_BY_SHARED, 0, arch);
    assert_int_equal(r.staging.load.instruction, LILAC_PLAN_MATRIX_TRANSPOSED);
    assert_int_equal(r.staging.load.matrix_bits, 2);
    assert_int_equal(r.staging.load.transaction_lanes, 8);
    assert_int_equal(r.staging.store.wavefronts + r.staging.load.wavefronts, 128);
    assert_int_equal(r.bound.floor_wavefronts, 128);
    assert_true(r.bound.met);
    /* The same instructions, read off the memory that was made. */
    assert_true(lilac_plan_access_init_matrix(&access, &b, &r.staging.memory,
                                              LILAC_PLAN_MATRIX_TRANSPOSED, 16, arch, NULL));
    assert_int_equal(access.wavefronts, r.staging.load.wavefronts);
    assert_int_equal(access.instructions, r.staging.load.instructions);
    assert_false(lilac_plan_access_init_matrix(&access, &b, &r.staging.memory, LILAC_PLAN_MATRIX,
                                               16, arch, NULL));
    assert_false(lilac_plan_access_init_matrix(&access, &a, &r.staging.memory,
                                               LILAC_PLAN_MATRIX_TRANSPOSED, 16, arch, NULL));

    r = best(&b, &a, 16, LILAC_PLAN_BY_SHARED, 0, arch);
    assert_int_equal(r.staging.store.instruction, LILAC_PLAN_MATRIX_TRANSPOSED);
    assert_true(r.bound.met);
    /* A device that has none goes on with vectors. */
    r = best(&a, &b, 16, LILAC_PLAN_BY_SHARED, 0, lilac_arch_find("gfx1201"));
    assert_int_equal(r.staging.load.instruction, LILAC_PLAN_VECTOR);
}

/* Warp bits that no data crosses, and groups where the device says that they are cheaper. */
static void barriers(void **state) {
    const uint64_t row[] = {bit(4), bit(5), bit(6), bit(0), bit(1),
                            bit(2), bit(3), bit(7), bit(8), bit(9)};
    const uint64_t within[] = {bit(0), bit(1), bit(2), bit(4), bit(5),
                               bit(6), bit(3), bit(7), bit(8), bit(9)};
    const uint64_t across[] = {bit(0), bit(1), bit(8), bit(4), bit(5),
                               bit(6), bit(3), bit(7), bit(2), bit(9)};
    lilac_costs costs = *lilac_arch_find("sm_90a")->costs;
    lilac_arch arch = *lilac_arch_find("sm_90a");
    const lilac_layout a = make(5, 5, 3, 5, 2, 0, row);
    lilac_layout b = make(5, 5, 3, 5, 2, 0, within);
    (void)state;
    arch.costs = &costs;
    lilac_plan_staging_step r = best(&a, &b, 32, LILAC_PLAN_BY_SHARED, 0, &arch);
    assert_int_equal(r.staging.barrier, LILAC_PLAN_BARRIER_WARP);
    assert_int_equal(r.staging.barrier_warps, 0);

    b = make(5, 5, 3, 5, 2, 0, across);
    costs.barrier_group = costs.barrier_block + 1;
    r = best(&a, &b, 32, LILAC_PLAN_BY_SHARED, 0, &arch);
    assert_int_equal(r.staging.barrier, LILAC_PLAN_BARRIER_BLOCK);
    assert_int_equal(r.staging.barrier_warps, 1);
    costs.barrier_group = costs.barrier_block - 1;
    r = best(&a, &b, 32, LILAC_PLAN_BY_SHARED, 0, &arch);
    assert_int_equal(r.staging.barrier, LILAC_PLAN_BARRIER_GROUP);
    assert_int_equal(r.staging.barrier_warps, 1);
    /* Groups keep to their part of the memory: its highest bit is theirs alone. */
    assert_int_equal(r.staging.store.warp[1], 512);
    assert_int_equal(r.staging.load.warp[1], 512);
}

static void rounds(void **state) {
    const uint64_t row[] = {bit(3), bit(4), bit(5), bit(6), bit(7),
                            bit(8), bit(9), bit(0), bit(1), bit(2)};
    const uint64_t column[] = {bit(3), bit(4), bit(0), bit(1), bit(2),
                               bit(8), bit(9), bit(5), bit(6), bit(7)};
    const lilac_layout a = make(5, 5, 5, 5, 0, 0, row), b = make(5, 5, 5, 5, 0, 0, column);
    const lilac_arch *arch = lilac_arch_find("sm_90a");
    lilac_plan_options options = {LILAC_PLAN_BY_SHARED, 512};
    lilac_reason why;
    lilac_plan_staging_step r = best(&a, &b, 32, LILAC_PLAN_BY_SHARED, 4096, arch);
    (void)state;
    assert_int_equal(r.staging.round_bits, 0);
    r = best(&a, &b, 32, LILAC_PLAN_BY_SHARED, 2048, arch);
    assert_int_equal(r.staging.round_bits, 1);
    assert_int_equal(r.staging.bytes, 2048);
    r = best(&a, &b, 32, LILAC_PLAN_BY_SHARED, 1024, arch);
    assert_int_equal(r.staging.round_bits, 2);
    lilac_plan_price price = {0};
    lilac_plan_price_staging(&price, &r.staging, 32, 1);
    assert_int_equal(price.barriers, 7);
    assert_int_equal(price.store_bytes, 4096);
    assert_int_equal(price.load_bytes, 4096);
    assert_false(lilac_plan_staging_init(&r, &a, &b, 32, &options, arch, &why));
    assert_string_equal(why.text,
                        "the exchange needs 1024 bytes of shared memory even in 2^2 rounds; "
                        "512 are available");
}

/* Copies in warps and, where whole transactions are theirs, in lanes do not store; loads of two
 * words and more where neighbours load the same take half the transactions. */
static void copies(void **state) {
    const uint64_t spread[] = {bit(0), bit(1), bit(2), bit(3), bit(4), 0, 0, 0, bit(5)};
    const uint64_t same[] = {bit(0), bit(1), 0, bit(2), bit(3), bit(4), bit(5), 0, 0};
    const uint64_t unequal[] = {bit(0), bit(1), bit(2), bit(3), bit(4), bit(5), 0, bit(2), 0};
    const lilac_layout a = make(3, 3, 2, 5, 2, 0, spread), b = make(3, 3, 2, 5, 2, 0, same),
                       c = make(3, 3, 2, 5, 2, 0, unequal);
    const lilac_arch *arch = lilac_arch_find("sm_90a");
    lilac_plan_access plain;
    (void)state;
    lilac_plan_staging_step r = best(&a, &b, 32, LILAC_PLAN_BY_SHARED, 0, arch);
    assert_int_equal(r.staging.store_copies, 1);
    assert_int_equal(r.staging.store.vector_bits, 2);
    assert_int_equal(r.staging.store_copy_lanes, 3 << 3);
    assert_int_equal(r.staging.store.transactions, 1);
    assert_int_equal(r.staging.store.wavefronts, 2);
    assert_int_equal(r.staging.load.transactions, 2);
    assert_int_equal(r.staging.load.wavefronts, 4 * 2);
    assert_true(lilac_plan_access_init(&plain, &b, &r.staging.memory, 32, arch, NULL));
    assert_int_equal(plain.transactions, 4);
    lilac_plan_access_as_load(&plain, arch);
    assert_int_equal(plain.wavefronts, r.staging.load.wavefronts);
    /* A warp may hold copies of other lanes' elements: then it has another place. */
    r = best(&c, &b, 32, LILAC_PLAN_BY_SHARED, 0, arch);
    assert_int_equal(r.staging.store_copies, 3);
    assert_int_not_equal(r.staging.store.warp[0], 0);
    assert_int_equal(r.staging.store.warp[1], 0);
}

static void blocks(void **state) {
    const uint64_t rows[] = {bit(0), bit(1), bit(2), bit(3), bit(4),
                             bit(5), bit(6), bit(7), bit(8)};
    const uint64_t columns[] = {bit(5), bit(6), bit(7), bit(8), bit(0),
                                bit(1), bit(2), bit(3), bit(4)};
    const uint64_t whole[] = {bit(3), bit(4), bit(5), bit(6), bit(7),
                              bit(8), bit(0), bit(1), bit(2), 0};
    const lilac_layout a = make(4, 5, 3, 5, 0, 1, rows), b = make(4, 5, 3, 5, 0, 1, columns),
                       c = make(4, 5, 4, 5, 0, 1, whole);
    const lilac_arch *arch = lilac_arch_find("sm_90a");
    (void)state;
    lilac_plan_staging_step r = best(&a, &b, 32, LILAC_PLAN_BY_SHARED, 0, arch);
    assert_true(r.staging.remote);
    assert_int_equal(r.staging.barrier, LILAC_PLAN_BARRIER_CLUSTER);
    lilac_plan_price price = {0};
    lilac_plan_price_staging(&price, &r.staging, 32, 1);
    assert_int_equal(price.barriers, 2);
    /* Blocks that hold everything load their own copies, at places that depend on their rank. */
    r = best(&c, &b, 32, LILAC_PLAN_BY_SHARED, 0, arch);
    assert_false(r.staging.remote);
    assert_int_not_equal(r.staging.load_offset_block[0], 0);
    assert_int_equal(r.staging.barrier, LILAC_PLAN_BARRIER_WARP);
    r = best(&a, &c, 32, LILAC_PLAN_BY_SHARED, 0, arch);
    assert_true(r.staging.remote);
}

static void expect_refusal(const lilac_layout *source, const lilac_layout *target,
                           uint32_t element_bits, const char *text) {
    lilac_plan_staging_step r;
    lilac_reason why = {""};
    assert_false(lilac_plan_staging_init(&r, source, target, element_bits, NULL,
                                         lilac_arch_find("sm_90a"), &why));
    assert_string_equal(why.text, text);
}

static void refused(void **state) {
    const uint64_t at[] = {bit(0), bit(1), bit(2), bit(3), bit(4), bit(5), bit(6), bit(7), bit(8)};
    const lilac_layout ok = make(4, 5, 4, 5, 0, 0, at), other = make(5, 4, 4, 5, 0, 0, at);
    lilac_layout bad = ok;
    (void)state;
    expect_refusal(&ok, &other, 32, "the two layouts describe different tensors");
    expect_refusal(
        &ok, &ok, 12,
        "elements of 12 bits: a shared-memory exchange moves elements of 2^n whole bytes, "
        "at most 16 bytes");
    expect_refusal(
        &ok, &ok, 256,
        "elements of 256 bits: a shared-memory exchange moves elements of 2^n whole bytes, "
        "at most 16 bytes");
    bad.columns[3] = bad.columns[2];
    expect_refusal(&bad, &ok, 32, "the source does not hold all of the tensor");
    expect_refusal(&ok, &bad, 32, "the target does not hold all of the tensor");
    bad = make(4, 5, 3, 6, 0, 0, at);
    expect_refusal(&bad, &bad, 32, "the layouts have 2^6 and 2^6 lanes a warp; sm_90a has 32");
    bad = make(4, 5, 3, 5, 1, 0, at);
    expect_refusal(&ok, &bad, 32,
                   "the layouts have 2^0 and 2^1 warps; a block of sm_90a has at most 32");
    bad = make(4, 5, 3, 5, 0, 1, at);
    expect_refusal(&ok, &bad, 32, "the layouts have 2^0 and 2^1 blocks");
    {
        const uint64_t transposed[] = {bit(5), bit(6), bit(7), bit(8), bit(0),
                                       bit(1), bit(2), bit(3), bit(4)};
        const lilac_layout there = make(4, 5, 3, 5, 0, 1, transposed);
        lilac_plan_staging_step r;
        lilac_reason why = {""};
        assert_false(
            lilac_plan_staging_init(&r, &bad, &there, 32, NULL, lilac_arch_find("sm_80"), &why));
        assert_string_equal(why.text,
                            "elements move between blocks, and sm_80 has no clusters of them");
    }
    bad = ok;
    assert_true(lilac_layout_rename_in(&bad, &bad, "register", "offset", NULL));
    expect_refusal(
        &ok, &bad, 32,
        "a distributed layout has an input 'offset'; its inputs are register, lane, warp and "
        "block");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_bit_off), cmocka_unit_test(all_toggles), cmocka_unit_test(textbook),
        cmocka_unit_test(matrices),    cmocka_unit_test(barriers),    cmocka_unit_test(rounds),
        cmocka_unit_test(copies),      cmocka_unit_test(blocks),      cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests_name("staging", tests, NULL, NULL);
}
