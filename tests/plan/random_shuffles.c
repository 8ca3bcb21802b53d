/* Random exchanges within warps: the operations on words move every element where the layouts say,
 * byte for byte, and are as many as the price counts. */

#include <lilac/f2.h>
#include <lilac/plan.h>

#include "support/run_network.h"
#include "support/test.h"

enum { MAX_REGISTERS = 7, MAX_LANES = 6, MOST_WARPS = 2, ROUNDS = 1500 };

typedef struct columns {
    uint32_t registers, lanes, warps;
    uint64_t column[3][16]; /* register, lane, warp */
} columns;

typedef struct exchange {
    uint32_t bits, element_bits;
    columns a, b;
} exchange;

static void to_layout(lilac_layout *layout, const columns *c, uint32_t bits) {
    lilac_layout_init(layout);
    assert_true(lilac_layout_add_out(layout, "dim0", bits, NULL));
    assert_true(lilac_layout_add_in(layout, "register", c->registers, c->column[0], NULL));
    assert_true(lilac_layout_add_in(layout, "lane", c->lanes, c->column[1], NULL));
    assert_true(lilac_layout_add_in(layout, "warp", c->warps, c->column[2], NULL));
    assert_true(lilac_layout_add_in(layout, "block", 0, NULL, NULL));
}

static uint64_t element_at(const columns *c, uint32_t reg, uint32_t thread) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->registers; i++) {
        sum ^= (reg >> i & 1) != 0 ? c->column[0][i] : 0;
    }
    for (uint32_t i = 0; i < c->lanes; i++) {
        sum ^= (thread >> i & 1) != 0 ? c->column[1][i] : 0;
    }
    for (uint32_t i = 0; i < c->warps; i++) {
        sum ^= (thread >> (c->lanes + i) & 1) != 0 ? c->column[2][i] : 0;
    }
    return sum;
}

static void permute(lilac_random *random, uint64_t *vectors, uint32_t count) {
    for (uint32_t i = count; i > 1; i--) {
        const uint32_t j = random_below(random, i);
        const uint64_t kept = vectors[i - 1];
        vectors[i - 1] = vectors[j];
        vectors[j] = kept;
    }
}

static uint64_t combination(lilac_random *random, const uint64_t *vectors, uint32_t count) {
    uint64_t sum = 0, mask = lilac_random_next(random);
    for (uint32_t i = 0; i < count; i++) {
        sum ^= (mask >> i & 1) != 0 ? vectors[i] : 0;
    }
    return sum;
}

static uint32_t rank_of(const uint64_t *vectors, uint32_t count) {
    lilac_f2_space space;
    lilac_f2_span(&space, vectors, count);
    return space.dimension;
}

/* The source: independent registers; lanes and warps now and then copies. */
static void random_source(lilac_random *random, exchange *e) {
    uint64_t basis[32];
    columns *a = &e->a;
    const bool copies = random_below(random, 3) == 0, sums = random_below(random, 3) == 0;
    uint32_t used = 0;
    a->lanes = random_below(random, 2) ? 5 : 1 + random_below(random, MAX_LANES);
    a->registers = random_below(random, MAX_REGISTERS + 1);
    a->warps = random_below(random, MOST_WARPS + 1);
    const uint32_t all = a->registers + a->lanes + a->warps;
    for (uint32_t i = 0; i < all; i++) {
        basis[i] = UINT64_C(1) << i;
    }
    permute(random, basis, all);
    for (uint32_t i = 0; sums && i < 3 * all; i++) {
        const uint32_t to = random_below(random, all), from = random_below(random, all);
        basis[to] ^= to != from ? basis[from] : 0;
    }
    for (uint32_t i = 0; i < a->registers; i++) {
        a->column[0][i] = basis[used++];
    }
    for (uint32_t i = 0; i < a->lanes; i++) {
        a->column[1][i] = copies && random_below(random, 3) == 0
                              ? (random_below(random, 2) ? 0 : combination(random, basis, used))
                              : basis[used++];
    }
    for (uint32_t i = 0; i < a->warps; i++) {
        a->column[2][i] = copies && random_below(random, 3) == 0 ? 0 : basis[used++];
    }
    /* Only the elements there are: coordinates in terms of the basis that was used. */
    e->bits = used;
    for (uint32_t level = 0; level < 3; level++) {
        const uint32_t count = level == 0 ? a->registers : level == 1 ? a->lanes : a->warps;
        lilac_f2_matrix matrix = {.rows = 64, .columns = used};
        lilac_f2_echelon echelon;
        memcpy(matrix.column, basis, used * sizeof basis[0]);
        lilac_f2_reduce(&echelon, &matrix);
        for (uint32_t i = 0; i < count; i++) {
            assert_true(lilac_f2_solve(&echelon, a->column[level][i], &a->column[level][i]));
        }
    }
}

/* Lanes of the target, from the elements of a warp of the source; then registers that make up what
 * is missing, and now and then more that other lanes have as well. */
static void random_target(lilac_random *random, exchange *e) {
    const columns *a = &e->a;
    columns *b = &e->b;
    uint64_t own[32], chosen[64], candidates[64];
    uint32_t count = 0, chosen_count = 0, wanted;
    const uint32_t kind = random_below(random, 4);
    *b = *a;
    for (uint32_t i = 0; i < a->registers; i++) {
        own[count++] = a->column[0][i];
    }
    for (uint32_t i = 0; i < a->lanes; i++) {
        own[count++] = a->column[1][i];
    }
    wanted = rank_of(own, count);
    memcpy(candidates, own, count * sizeof own[0]);
    if (kind == 1) {
        permute(random, candidates, count);
    } else if (kind == 2) { /* a few exchanges of registers and lanes */
        for (uint32_t i = random_below(random, 4); i > 0 && a->registers != 0; i--) {
            const uint32_t r = random_below(random, a->registers);
            const uint32_t l = a->registers + random_below(random, a->lanes);
            const uint64_t kept = candidates[r];
            candidates[r] = candidates[l];
            candidates[l] = kept;
        }
        if (random_below(random, 2)) {
            permute(random, candidates, a->registers);
        }
    } else if (kind == 3) {
        for (uint32_t i = 0; i < count; i++) {
            candidates[i] = combination(random, own, count);
        }
    } else {
        for (uint32_t i = random_below(random, 6); i > 0; i--) {
            const uint32_t to = random_below(random, count), from = random_below(random, count);
            candidates[to] ^= to != from ? candidates[from] : 0;
        }
    }
    for (uint32_t i = 0; i < a->lanes; i++) {
        b->column[1][i] = random_below(random, 12) == 0 ? 0 : candidates[a->registers + i];
        chosen[chosen_count++] = b->column[1][i];
    }
    b->registers = 0;
    for (uint32_t i = 0; i < a->registers + count; i++) {
        const uint64_t next = i < a->registers ? candidates[i] : own[i - a->registers];
        const uint32_t before = rank_of(chosen, chosen_count);
        chosen[chosen_count] = next;
        b->column[0][b->registers] = next;
        const bool more = rank_of(chosen, chosen_count + 1) > before;
        const bool independent = rank_of(b->column[0], b->registers + 1) == b->registers + 1;
        if (independent && (more || random_below(random, 30) == 0) && b->registers < 10) {
            chosen_count++;
            b->registers++;
        }
    }
    assert_int_equal(rank_of(chosen, chosen_count), wanted);
    if (random_below(random, 2)) {
        permute(random, b->column[0], b->registers);
    }
    for (uint32_t i = 0; i < a->warps; i++) {
        b->column[2][i] ^= random_below(random, 2) ? combination(random, own, count) : 0;
    }
}

static void fill(const network_block *block, const columns *c, uint32_t element_bytes) {
    for (uint32_t t = 0; t >> (c->lanes + c->warps) == 0; t++) {
        for (uint32_t r = 0; r >> c->registers == 0; r++) {
            for (uint32_t byte = 0; byte < element_bytes; byte++) {
                *byte_of(block->words + t * block->stride, r, element_bytes, byte) =
                    element_byte(element_at(c, r, t), byte);
            }
        }
    }
}

static void check(const network_block *block, const columns *c, uint32_t element_bytes) {
    for (uint32_t t = 0; t >> (c->lanes + c->warps) == 0; t++) {
        for (uint32_t r = 0; r >> c->registers == 0; r++) {
            for (uint32_t byte = 0; byte < element_bytes; byte++) {
                assert_int_equal(*byte_of(block->words + t * block->stride, r, element_bytes, byte),
                                 element_byte(element_at(c, r, t), byte));
            }
        }
    }
}

static void count_ops(lilac_plan_price *sum, const lilac_plan_network *network) {
    for (uint32_t i = 0; i < network->op_count; i++) {
        sum->selects += network->ops[i].kind == LILAC_PLAN_WORD_SELECT;
        sum->permutes += network->ops[i].kind == LILAC_PLAN_WORD_PERMUTE;
        sum->shuffles += network->ops[i].kind == LILAC_PLAN_WORD_SHUFFLE;
    }
    for (uint32_t i = 0; i < network->op_count && network->op_count < 200; i++) {
        for (uint32_t k = 0; k < i; k++) {
            assert_int_not_equal(memcmp(&network->ops[i], &network->ops[k], sizeof network->ops[i]),
                                 0);
        }
    }
    for (uint32_t i = 0; i < network->control_count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            assert_int_not_equal(
                memcmp(&network->controls[i], &network->controls[k], sizeof network->controls[i]),
                0);
        }
    }
}

static void assert_same(const lilac_plan_price *counted, const lilac_plan_price *price) {
    assert_int_equal(counted->shuffles, price->shuffles);
    assert_int_equal(counted->selects, price->selects);
    assert_int_equal(counted->permutes, price->permutes);
}

static bool moves_everything(const exchange *e) {
    const lilac_arch *arch = lilac_arch_find(e->a.lanes == 6 ? "gfx942" : "sm_90a");
    const uint32_t bytes = e->element_bits / 8;
    lilac_layout source, target;
    lilac_plan_shuffle shuffle;
    lilac_plan_permutation before, after;
    lilac_plan_network network;
    lilac_reason why = {""};
    to_layout(&source, &e->a, e->bits);
    to_layout(&target, &e->b, e->bits);
    if (!lilac_plan_shuffle_init(&shuffle, &source, &target, e->element_bits, arch, &why)) {
        assert_non_null(strstr(why.text, "between shuffles"));
        return false;
    }
    lilac_arena *arena = lilac_arena_create();
    network_block block = {.lane_bits = e->a.lanes, .warp_bits = e->a.warps};
    const uint32_t most = e->a.registers > e->b.registers ? e->a.registers : e->b.registers;
    block.stride = (UINT32_C(1) << most) * 4;
    block.words = calloc((size_t)block.stride << (e->a.lanes + e->a.warps), sizeof(uint32_t));
    fill(&block, &e->a, bytes);

    lilac_plan_price price = {0}, counted = {0};
    lilac_plan_price_permutation(&price, &before, e->element_bits, 1);
    assert_true(lilac_plan_expand_permutation(&network, arena, &before, e->element_bits));
    run_network(&block, &network);
    count_ops(&counted, &network);
    assert_same(&counted, &price);

    lilac_plan_price_shuffle(&price, &shuffle, e->element_bits, 1);
    assert_true(lilac_plan_expand_shuffle(&network, arena, &shuffle, e->element_bits));
    assert_int_equal(network.input_count, lilac_plan_words(shuffle.before_bits, e->element_bits));
    run_network(&block, &network);
    count_ops(&counted, &network);
    assert_same(&counted, &price);

    lilac_plan_price_permutation(&price, &after, e->element_bits, 1);
    assert_true(lilac_plan_expand_permutation(&network, arena, &after, e->element_bits));
    run_network(&block, &network);
    count_ops(&counted, &network);
    assert_same(&counted, &price);

    check(&block, &e->b, bytes);
    free(block.words);
    lilac_arena_destroy(arena);
    return true;
}

static void random_exchanges(void **state) {
    lilac_random random;
    uint32_t refused = 0;
    const uint32_t rounds = scaled(ROUNDS);
    (void)state;
    lilac_random_seed(&random, 20261121);
    for (uint32_t i = 0; i < rounds; i++) {
        exchange e = {.element_bits = UINT32_C(8) << random_below(&random, 5)};
        random_source(&random, &e);
        random_target(&random, &e);
        refused += !moves_everything(&e);
    }
    assert_true(refused * 50 < rounds);
}

/* Register permutations of any kind: reorderings, sums, copies, fewer and more registers. */
static void random_renamings(void **state) {
    lilac_random random;
    (void)state;
    lilac_random_seed(&random, 7);
    for (uint32_t round = 0; round < scaled(ROUNDS); round++) {
        const uint32_t element_bits = UINT32_C(8) << random_below(&random, 5),
                       bytes = element_bits / 8;
        lilac_plan_permutation permutation = {.before_bits = random_below(&random, 8)};
        uint64_t units[16];
        uint32_t words[1024] = {0};
        network_block block = {.stride = 1024, .words = words};
        columns a = {.registers = permutation.before_bits};
        for (uint32_t i = 0; i < 16; i++) {
            units[i] = i < a.registers ? UINT64_C(1) << i : 0;
        }
        memcpy(a.column[0], units, sizeof units);
        permute(&random, units, a.registers);
        permutation.bits = random_below(&random, 2) ? a.registers : random_below(&random, 8);
        const bool sums = random_below(&random, 3) == 0;
        for (uint32_t i = 0; i < permutation.bits; i++) {
            permutation.from[i] = sums ? combination(&random, units, 16) : units[i];
        }
        columns b = {.registers = permutation.bits};
        memcpy(b.column[0], permutation.from, sizeof permutation.from);

        lilac_arena *arena = lilac_arena_create();
        lilac_plan_network network;
        lilac_plan_price price = {0}, counted = {0};
        fill(&block, &a, bytes);
        assert_true(lilac_plan_expand_permutation(&network, arena, &permutation, element_bits));
        run_network(&block, &network);
        check(&block, &b, bytes);
        lilac_plan_price_permutation(&price, &permutation, element_bits, 1);
        count_ops(&counted, &network);
        assert_same(&counted, &price);
        lilac_arena_destroy(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_renamings),
        cmocka_unit_test(random_exchanges),
    };
    return cmocka_run_group_tests_name("shuffles", tests, NULL, NULL);
}
