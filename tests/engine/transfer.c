/* Theorem 9.3 of the paper: distributed layouts are closed under the shape operations, both ways.
 *
 * For random distributed layouts of an operand (forward) and of a result (backward) the engine
 * finds the other side's layout; this is distributed again, and no element moves: each thread finds
 * everything that its registers of the result want in its own registers of the operand. */

#include "layouts/assign.h"
#include "support/test.h"

#include "support/random_layouts.h"

enum { ROUNDS = 60 };

static const struct {
    const char *text;
    bool forward, backward;
} operations[] = {
    {"%r = tt.expand_dims %x {axis = 0 : i32} : tensor<8x32xi32> -> tensor<1x8x32xi32>", 1, 1},
    {"%r = tt.expand_dims %x {axis = 1 : i32} : tensor<8x32xi32> -> tensor<8x1x32xi32>", 1, 1},
    {"%r = tt.expand_dims %x {axis = 2 : i32} : tensor<8x32xi32> -> tensor<8x32x1xi32>", 1, 1},
    /* which threads hold the copies is free, so only the operand follows from the result */
    {"%r = tt.broadcast %x : tensor<16x1xi32> -> tensor<16x64xi32>", 0, 1},
    {"%r = tt.broadcast %x : tensor<1x4x1xi32> -> tensor<16x4x8xi32>", 0, 1},
    {"%r = tt.trans %x {order = array<i32: 1, 0>} : tensor<8x32xi32> -> tensor<32x8xi32>", 1, 1},
    {"%r = tt.trans %x {order = array<i32: 2, 0, 1>} : tensor<4x8x16xi32> -> tensor<16x4x8xi32>", 1,
     1},
    {"%r = tt.reshape %x : tensor<8x32xi32> -> tensor<4x64xi32>", 1, 1},
    {"%r = tt.reshape %x : tensor<8x32xi32> -> tensor<256xi32>", 1, 1},
    {"%r = tt.reshape %x : tensor<512xi32> -> tensor<4x16x8xi32>", 1, 1},
    {"%r = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<8x32xi8> -> tensor<8x64xbf16>", 1, 1},
    {"%r = ttg.fp4_to_fp %x {axis = 0 : i32} : tensor<8x32xi8> -> tensor<16x32xf16>", 1, 1},
    {"%r = tt.join %x, %x : tensor<8x32xi32> -> tensor<8x32x2xi32>", 1, 1},
    {"%r, %s = tt.split %x : tensor<8x32x2xi32> -> tensor<8x32xi32>", 1, 1},
};

static lilac_tile_module *read_operation(lilac_context *context, const char *text) {
    const char *type = strstr(text, " : tensor<") + 3, *end = strstr(type, " ->");
    char module[512];
    const int length =
        snprintf(module, sizeof module,
                 "module {\n  tt.func public @k(%%x: %.*s) {\n    %s\n    tt.return\n  }\n}\n",
                 (int)(end - type), type, text);
    assert_in_range(length, 1, sizeof module - 1);
    const uint32_t source = lilac_source_add(context, "shape.ttir", module, (size_t)length);
    lilac_tile_module *read = lilac_tile_read(context, source);
    assert_non_null(read);
    return read;
}

static void find_shape(void *found, lilac_tile_op *op) {
    if (op->operand_count > 0 && op->result_count > 0) {
        *(lilac_tile_op **)found = op;
    }
}

static random_space space_of(const lilac_tile_type *type, lilac_random *random) {
    random_space space = {.rank = type->rank, .register_limit = 9};
    space.lane_bits = 5 + random_below(random, 2);
    space.warp_bits = random_below(random, 4);
    for (uint32_t d = 0; d < type->rank; d++) {
        space.bits[d] = (uint32_t)__builtin_ctzll((uint64_t)type->shape[d]);
    }
    return space;
}

/* The element of the operand that is the result's at these coordinates; of result number `which`.
 */
static uint64_t wanted(const lilac_tile_op *op, const lilac_layout *operand,
                       const lilac_layout *result, uint64_t place, uint32_t which) {
    uint64_t c[LILAC_LAYOUT_MAX_DIMS] = {0}, o[LILAC_LAYOUT_MAX_DIMS] = {0}, flat = 0;
    for (uint32_t d = 0; d < result->out_count; d++) {
        c[d] = lilac_layout_coordinate(result, place, d);
    }
    const uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    switch (op->code) {
    case LILAC_TILE_OP_TT_EXPAND_DIMS:
        for (uint32_t d = 0; d < operand->out_count; d++) {
            o[d] = c[d + (d >= axis)];
        }
        break;
    case LILAC_TILE_OP_TT_BROADCAST:
        for (uint32_t d = 0; d < operand->out_count; d++) {
            o[d] = operand->out[d].bits == 0 ? 0 : c[d];
        }
        break;
    case LILAC_TILE_OP_TT_TRANS: {
        const lilac_tile_attribute *order = lilac_tile_find(&op->attributes, "order");
        for (uint32_t d = 0; d < result->out_count; d++) {
            o[order->integers[d]] = c[d];
        }
        break;
    }
    case LILAC_TILE_OP_TT_RESHAPE:
        for (uint32_t d = 0; d < result->out_count; d++) {
            flat = flat << result->out[d].bits | c[d];
        }
        for (uint32_t d = operand->out_count; d-- > 0;) {
            o[d] = flat & ((UINT64_C(1) << operand->out[d].bits) - 1);
            flat >>= operand->out[d].bits;
        }
        break;
    case LILAC_TILE_OP_TTG_FP4_TO_FP:
        for (uint32_t d = 0; d < operand->out_count; d++) {
            o[d] = d == axis ? c[d] / 2 : c[d];
        }
        break;
    case LILAC_TILE_OP_TT_JOIN:
        for (uint32_t d = 0; d < operand->out_count; d++) {
            o[d] = c[d];
        }
        break;
    default: /* split */
        for (uint32_t d = 0; d < result->out_count; d++) {
            o[d] = c[d];
        }
        o[result->out_count] = which;
        break;
    }
    return lilac_layout_pack(operand, o);
}

/* Does every thread hold the elements that its registers of the result need? */
static bool nothing_moves(const lilac_tile_op *op, const lilac_layout *operand,
                          const lilac_layout *result) {
    const uint32_t from = operand->in[0].bits, to = result->in[0].bits;
    const uint32_t threads = result->in_bits - to;
    for (uint64_t thread = 0; thread >> threads == 0; thread++) {
        for (uint64_t r = 0; r >> to == 0; r++) {
            const uint64_t place = lilac_layout_apply(result, thread << to | r);
            for (uint32_t which = 0; which < op->result_count; which++) {
                const uint64_t element = wanted(op, operand, result, place, which);
                bool found = false;
                for (uint64_t s = 0; s >> from == 0 && !found; s++) {
                    found = lilac_layout_apply(operand, thread << from | s) == element;
                }
                if (!found) {
                    return false;
                }
            }
        }
    }
    return true;
}

static void check_way(assignment *a, const lilac_tile_op *op, lilac_random *random, bool forward) {
    const lilac_tile_type *type = forward ? op->operands[0].value->type : op->results[0].type;
    uint32_t found = 0;
    for (uint32_t round = 0; round < 8 * ROUNDS && found < ROUNDS; round++) {
        const random_space space = space_of(type, random);
        lilac_layout given;
        if (!random_layout(&given, random, a->module->context, RANDOM_DEALT, &space)) {
            continue;
        }
        assert_true(lilac_layout_is_distributed(&given));
        const lilac_layout *other = forward ? lilac_transfer_forward(a, op, 0, &given)
                                            : lilac_transfer_backward(a, op, 0, &given);
        /* The two of a pair must be in one thread: what joins makes and split takes. */
        const bool of_pairs = (op->code == LILAC_TILE_OP_TT_SPLIT && forward) ||
                              (op->code == LILAC_TILE_OP_TT_JOIN && !forward);
        if (of_pairs && other == NULL) {
            continue;
        }
        assert_non_null(other);
        found++;
        assert_true(lilac_layout_is_surjective(other) && lilac_layout_is_distributed(other));
        assert_true(nothing_moves(op, forward ? &given : other, forward ? other : &given));
    }
    assert_int_equal(found, ROUNDS);
}

static void shape_operations_move_nothing(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 93);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        lilac_context *context = lilac_context_create();
        lilac_tile_module *module = read_operation(context, operations[i].text);
        lilac_tile_op *op = NULL;
        lilac_tile_walk(module->functions->body, find_shape, &op);
        assert_non_null(op);
        assignment a = {.module = module};
        if (operations[i].forward) {
            check_way(&a, op, &random, true);
        }
        if (operations[i].backward) {
            check_way(&a, op, &random, false);
        }
        lilac_tile_module_destroy(module);
        lilac_context_destroy(context);
    }
}

/* What follows from the layout of each operand: `S` the same layout, `L` another one, `-` none. */
static const struct {
    const char *text, *forward, *backward;
} by_operand[] = {
    {"%r = arith.addi %x, %x : tensor<8x32xi32>", "SS", "SS"},
    {"%r = tt.join %x, %x : tensor<8x32xi32> -> tensor<8x32x2xi32>", "LL", "--"},
    {"%r = tt.gather %x[%x] {axis = 1 : i32} : (tensor<8x32xi32>, tensor<8x32xi32>) -> "
     "tensor<8x32xi32>",
     "-S", "-S"},
    {"%r = tt.broadcast %x : tensor<8x1xi32> -> tensor<8x32xi32>", "-", "L"},
    {"tt.print \"x\" {hex = false, isSigned = array<i32: 1, 1>} : %x, %x : tensor<8x32xi32>, "
     "tensor<8x32xi32>",
     "--", "--"},
};

static void check_operands(assignment *a, const lilac_tile_op *op, const char *want, bool forward) {
    const lilac_tile_type *type =
        forward || op->result_count == 0 ? op->operands[0].value->type : op->results[0].type;
    lilac_random random;
    lilac_random_seed(&random, 5);
    const random_space space = space_of(type, &random);
    lilac_layout given;
    while (!random_layout(&given, &random, a->module->context, RANDOM_DEALT, &space)) {
    }
    const lilac_layout *layout = lilac_tile_intern_layout(a->module, &given);
    assert_int_equal(strlen(want), op->operand_count);
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_layout *got = forward ? lilac_transfer_forward(a, op, i, layout)
                                          : lilac_transfer_backward(a, op, i, layout);
        const char is = got == NULL ? '-' : got == layout ? 'S' : 'L';
        if (is != want[i]) {
            fail_msg("'%s', operand %u, %s: %c, not %c", lilac_tile_op_info_get(op->code)->name, i,
                     forward ? "forward" : "backward", is, want[i]);
        }
    }
}

static void find_operation(void *found, lilac_tile_op *op) {
    if (op->operand_count > 0) {
        *(lilac_tile_op **)found = op;
    }
}

static void each_operand_has_its_relation(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof by_operand / sizeof *by_operand; i++) {
        lilac_context *context = lilac_context_create();
        const char *text = by_operand[i].text;
        const char *first = strstr(text, "tensor<"), *end = strchr(first, '>') + 1;
        char module[512];
        const int length = snprintf(module, sizeof module,
                                    "module {\n  tt.func public @k(%%x: %.*s) {\n    %s\n    "
                                    "tt.return\n  }\n}\n",
                                    (int)(end - first), first, text);
        assert_in_range(length, 1, sizeof module - 1);
        lilac_tile_module *read = lilac_tile_read(
            context, lilac_source_add(context, "operation.ttir", module, (size_t)length));
        assert_non_null(read);
        lilac_tile_op *op = NULL;
        lilac_tile_walk(read->functions->body, find_operation, &op);
        assert_non_null(op);
        assignment a = {.module = read};
        check_operands(&a, op, by_operand[i].forward, true);
        check_operands(&a, op, by_operand[i].backward, false);
        lilac_tile_module_destroy(read);
        lilac_context_destroy(context);
    }
}

/* An operation without a row has no relation: the pass refuses it. */
static void operations_without_a_row_are_refused(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    static const char text[] =
        "module {\n  tt.func public @k(%x: tensor<16x16xf32>) {\n"
        "    %r = ttng.warp_group_dot_wait %x {pendings = 0 : i32} : tensor<16x16xf32>\n"
        "    tt.return\n  }\n}\n";
    lilac_tile_module *module =
        lilac_tile_read(context, lilac_source_add(context, "wait.ttir", text, strlen(text)));
    assert_non_null(module);
    lilac_tile_op *op = NULL;
    lilac_tile_walk(module->functions->body, find_operation, &op);
    assert_non_null(op);
    assert_int_equal(lilac_layout_relation(op)->rule, RULE_REFUSED);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shape_operations_move_nothing),
                                       cmocka_unit_test(each_operand_has_its_relation),
                                       cmocka_unit_test(operations_without_a_row_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
