/* Random products of matrices, some or all of whose loads describe_loads makes loads through the
 * launcher's tensor maps: where maps can be made, the simulator computes what the interpreter says that the source
 * means, and accesses nothing outside of the tensors; elsewhere the launch is refused. The buffers
 * end with the tensors, and what is between their rows is NaN.
 *
 * LILAC_TEST_SCALE multiplies the number of programs. */
#include "support/product_launches.h"

enum { CASES = 400 };

static void random_products(void **state) {
    (void)state;
    lilac_random random;
    uint32_t described = 0, one = 0, specialised = 0, launched = 0, refused = 0;
    lilac_random_seed(&random, 29);
    for (uint32_t i = 0; i < scaled(CASES); i++) {
        const product_case c = random_case(&random);
        compiled made;
        sizes s = random_sizes(&random, &c);
        compile(&made, &c, NULL, false);
        if (made.recipes.count != maps_of(&c) || made.described != (made.recipes.count > 0)) {
            complain(&c, &made, &s, made.described ? "described" : "not described");
        }
        described += made.described;
        one += made.recipes.count == 1;
        specialised += made.specialised;
        expectation expected = LAUNCHED;
        if (!launch(&made, &c, &s, expected).right) {
            complain(&c, &made, &s, "wrong");
        }
        launched++;
        s = random_sizes(&random, &c);
        expected = made.recipes.count == 2 ? spoil(&s, &c, i % 7) : LAUNCHED;
        if (expected != LAUNCHED && !launch(&made, &c, &s, expected).right) {
            complain(&c, &made, &s, "not refused");
        }
        refused += expected != LAUNCHED;
        compiled_clear(&made);
    }
    assert_true(described >= scaled(CASES) * 3 / 4 && launched == scaled(CASES));
    assert_true(one >= scaled(CASES) / 6 && specialised >= scaled(CASES) / 40);
    assert_true(refused >= scaled(CASES) / 4);
}

/* ---- mutations ------------------------------------------------------------------------------- */

typedef struct search {
    lilac_tile_opcode code;
    const char *name; /* of its result; NULL: any */
    lilac_tile_op *found;
} search;

static void find_op(void *data, lilac_tile_op *op) {
    search *s = data;
    const lilac_name name = op->result_count > 0 ? op->results[0].name : NULL;
    if (op->code == s->code && (s->name == NULL || (name != NULL && strcmp(name, s->name) == 0))) {
        s->found = op;
    }
}

static lilac_tile_op *find(lilac_tile_module *module, lilac_tile_opcode code, const char *name) {
    search s = {.code = code, .name = name};
    lilac_tile_walk(module->functions->body, find_op, &s);
    assert_non_null(s.found);
    return s.found;
}

/* The first tile in all iterations. */
static void stay(lilac_tile_module *module, const char *name) {
    lilac_tile_op *load = find(module, LILAC_TILE_OP_TT_DESCRIPTOR_LOAD, name);
    const lilac_tile_op *loop = find(module, LILAC_TILE_OP_SCF_FOR, NULL);
    uint32_t changed = 0;
    for (uint32_t i = 1; i < load->operand_count; i++) {
        const lilac_tile_value *at = load->operands[i].value;
        if (at == lilac_tile_induction_variable(loop)) {
            lilac_tile_set_operand(load, i, lilac_tile_lower_bound(loop));
            changed++;
        }
    }
    assert_int_equal(changed, 1);
}

static void stay_in_a(lilac_tile_module *module) {
    stay(module, "a_tile");
}

static void stay_in_b(lilac_tile_module *module) {
    stay(module, "b_tile");
}

static void swap_coordinates(lilac_tile_module *module) {
    lilac_tile_op *load = find(module, LILAC_TILE_OP_TT_DESCRIPTOR_LOAD, "b_tile");
    lilac_tile_value *first = load->operands[1].value;
    lilac_tile_set_operand(load, 1, load->operands[2].value);
    lilac_tile_set_operand(load, 2, first);
}

static void drop_order(lilac_tile_module *module) {
    lilac_tile_op *order = find(module, LILAC_TILE_OP_TT_TRANS, NULL);
    lilac_tile_replace_uses(&order->results[0], order->operands[0].value);
    lilac_tile_remove(order);
}

/* Elements behind the matrices are stored. */
static void store_all(lilac_tile_module *module) {
    lilac_tile_set_operand(find(module, LILAC_TILE_OP_TT_STORE, NULL), 2,
                           &find(module, LILAC_TILE_OP_ARITH_CONSTANT, "all")->results[0]);
}

enum { TILE = 32 };

static const product_case mutated = {.scalar = LILAC_F16,
                                     .m = TILE,
                                     .n = TILE,
                                     .k = TILE,
                                     .warps = 4,
                                     .stages = 3,
                                     .m_form = REMAINDER,
                                     .n_form = CLAMPED,
                                     .k_form = MASKED,
                                     .carried = true};
static const sizes mutated_sizes = {
    .m = 70, .n = 73, .k = 100, .pitch_a = 80, .pitch_b = 80, .batches = 1, .za = 8000, .zb = 8000};

static void mutated_tiles(void **state) {
    (void)state;
    static const struct {
        const char *name;
        mutation *mutate;
        bool source_too;
    } mutations[] = {
        {"stay_in_a", stay_in_a, false},   {"stay_in_b", stay_in_b, false},
        {"swap", swap_coordinates, false}, {"drop_order", drop_order, false},
        {"store_all", store_all, true},
    };
    for (uint32_t i = 0; i < sizeof mutations / sizeof *mutations; i++) {
        compiled made;
        compile(&made, &mutated, mutations[i].mutate, mutations[i].source_too);
        const outcome o = launch(&made, &mutated, &mutated_sizes, LAUNCHED);
        if (!o.made || o.right) {
            fail_msg("%s: %s", mutations[i].name, o.made ? "not found" : "refused");
        }
        compiled_clear(&made);
    }
}

/* Each number of each recipe: a tile more or less, or none. */
static void mutated_recipes(void **state) {
    (void)state;
    const product_case *c = &mutated;
    compiled made;
    compile(&made, c, NULL, false);
    assert_int_equal(made.recipes.count, 2);
    assert_true(launch(&made, c, &mutated_sizes, LAUNCHED).right);
    lilac_launch_map maps[2];
    const lilac_launch_map *recipes = made.recipes.maps;
    made.recipes.maps = maps;
    for (uint32_t n = 0; n < 2 * 4 * 3; n++) {
        memcpy(maps, recipes, sizeof maps);
        lilac_launch_map *map = &maps[n % 2];
        const uint32_t field = n / 2 % 4, change = n / 8;
        lilac_launch_sum *sum = field < 2    ? &map->sizes[field]
                                : field == 2 ? &map->strides[0]
                                             : &map->offset;
        if (change == 2 && field >= 2) {
            continue;
        }
        if (change == 2) { /* no bound */
            *sum = (lilac_launch_sum){.count = 1, .terms = {{.factor = INT64_C(1) << 31}}};
        } else {
            sum->terms[sum->count++] = (lilac_launch_term){.factor = change == 0 ? TILE : -TILE};
        }
        const outcome o = launch(&made, c, &mutated_sizes, LAUNCHED);
        if (!o.made || o.right) {
            fail_msg("map %u, field %u, change %u: %s", n % 2, field, change,
                     o.made ? "not found" : "refused");
        }
    }
    made.recipes.maps = recipes;
    compiled_clear(&made);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_products),
        cmocka_unit_test(mutated_tiles),
        cmocka_unit_test(mutated_recipes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
