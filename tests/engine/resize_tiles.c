/* Products of matrices whose iterations are joined or divided: on the simulator, with the launcher's maps,
 * they compute what the interpreter says that the source means, without a finding. What is between the
 * rows of the matrices is NaN, and the buffers end with the last row, so that an iteration that reads too
 * much is noticed.
 *
 * LILAC_TEST_SCALE multiplies the number of programs. */
#include "support/product_launches.h"

enum { CASES = 40 };

/* The length along k of the tiles of a. */
static uint32_t length_of(const compiled *made, const product_case *c) {
    const lilac_tile_function *f = made->result.tile->functions;
    for (uint32_t i = 0; i < made->recipes.count; i++) {
        if (made->recipes.maps[i].base == A) {
            const lilac_tile_type *block = f->parameters[made->recipes.maps[i].parameter]->type;
            const uint32_t rank = block->element->rank;
            return (uint32_t)block->element->shape[c->a_along_k ? rank - 1 : rank - 2];
        }
    }
    return 0;
}

/* A product of both operands, which wgmma multiplies. */
static product_case plain_case(lilac_random *random) {
    product_case c = random_case(random);
    c.m = 64;
    c.warps = 4;
    c.twice_a = c.twice_b = c.scaled = false;
    c.from_first = c.from_first && random_below(random, 2) == 0;
    if (random_below(random, 4) == 0) {
        c.scalar = LILAC_I8;
        c.k = 32U << random_below(random, 2);
        c.a_along_k = c.b_along_k = true;
    }
    return c;
}

static void check(const product_case *c, compiled *made, lilac_random *random) {
    sizes s = random_sizes(random, c);
    for (s.parts = 1; s.parts <= (made->recipes.split.divisor > 0 ? 4 : 1); s.parts *= 4) {
        if (!launch(made, c, &s, LAUNCHED).right) {
            complain(c, made, &s, "wrong");
        }
    }
}

static void joined(void **state) {
    (void)state;
    lilac_random random;
    uint32_t longer = 0;
    lilac_random_seed(&random, 41);
    for (uint32_t i = 0; i < scaled(CASES); i++) {
        const product_case c = plain_case(&random);
        compiled made;
        compile(&made, &c, NULL, false);
        if (length_of(&made, &c) > c.k) {
            assert_int_equal(length_of(&made, &c) * bytes_of(&c), 128);
            assert_true(c.k * bytes_of(&c) < 128 && !c.from_first);
            assert_true(c.a_along_k || c.b_along_k);
            longer++;
            for (uint32_t k = 0; k < 3; k++) {
                check(&c, &made, &random);
            }
        }
        compiled_clear(&made);
    }
    assert_true(longer >= scaled(CASES) / 5);
}

typedef struct division {
    lilac_scalar scalar;
    uint32_t m, n, k, warps, length;
    bool b_along_k;
} division;

/* Long tiles, for which shared memory has no four buffers, or a thread no registers. */
static const division divisions[] = {
    {LILAC_F16, 128, 256, 128, 8, 64, false},
    {LILAC_F16, 256, 64, 128, 4, 64, true},
    {LILAC_BF16, 128, 128, 128, 4, 64, true},
    {LILAC_F32, 128, 256, 64, 8, 32, true},
    {LILAC_F32, 128, 128, 128, 4, 32, true},
    {LILAC_F32, 128, 128, 64, 4, 32, false},
    {LILAC_F32, 256, 128, 128, 8, 32, true},
    {LILAC_F16, 64, 64, 128, 4, 128, true}, /* four buffers fit */
};

static void divided(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 42);
    for (uint32_t i = 0; i < sizeof divisions / sizeof *divisions; i++) {
        const division *d = &divisions[i];
        for (uint32_t form = 0; form < 4; form++) {
            const product_case c = {.scalar = d->scalar,
                                    .m = d->m,
                                    .n = d->n,
                                    .k = d->k,
                                    .warps = d->warps,
                                    .stages = 3,
                                    .a_along_k = true,
                                    .b_along_k = d->b_along_k,
                                    .k_form = form == 1 ? UNBOUNDED : MASKED,
                                    .counts_tiles = form % 2 == 0,
                                    .from_first = form >= 2,
                                    .planar = true};
            compiled made;
            compile(&made, &c, NULL, false);
            assert_int_equal(length_of(&made, &c), d->length);
            sizes s = random_sizes(&random, &c);
            s.m = (int32_t)d->m - 1;
            s.n = (int32_t)d->n - 8;
            s.k = (int32_t)d->k * (form == 1 ? 2 : 1) + (form == 1 ? 0 : 3);
            s.first = (int32_t)random_below(&random, 2) * (int32_t)(c.counts_tiles ? 1 : d->k);
            s.pitch_a = up(s.k, 16) + 16;
            s.pitch_b = up(c.b_along_k ? s.k : s.n, 16);
            if (!launch(&made, &c, &s, LAUNCHED).right) {
                complain(&c, &made, &s, "wrong");
            }
            compiled_clear(&made);
        }
    }
}

/* The launcher's sizes are the tensors': what is behind them along k is not zero. */
static void mutated_ends(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 43);
    const product_case c = {.scalar = LILAC_F16,
                            .m = 64,
                            .n = 64,
                            .k = 32,
                            .warps = 4,
                            .stages = 3,
                            .a_along_k = true,
                            .b_along_k = true,
                            .k_form = UNBOUNDED,
                            .counts_tiles = true};
    compiled made;
    compile(&made, &c, NULL, false);
    assert_int_equal(length_of(&made, &c), 64);
    sizes s = random_sizes(&random, &c);
    s.k = 3 * (int32_t)c.k;
    s.pitch_a = s.pitch_b = s.k + 8;
    assert_true(launch(&made, &c, &s, LAUNCHED).right);
    lilac_launch_map *maps =
        lilac_arena_array(lilac_context_arena(made.context), lilac_launch_map, made.recipes.count);
    memcpy(maps, made.recipes.maps, made.recipes.count * sizeof *maps);
    for (uint32_t i = 0; i < made.recipes.count; i++) {
        assert_int_equal(maps[i].multiples[maps[i].rank - 1], c.k);
        maps[i].multiples[maps[i].rank - 1] = 2 * c.k;
    }
    made.recipes.maps = maps;
    assert_false(launch(&made, &c, &s, LAUNCHED).right);
    compiled_clear(&made);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joined),
        cmocka_unit_test(divided),
        cmocka_unit_test(mutated_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
