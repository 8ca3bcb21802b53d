/* Effects: the table is sorted and agrees with the traits and the signatures, and the queries agree
 * with the table. */

#include <lilac/tile.h>

#include "support/test.h"

static const char text[] =
    "#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [1], order = "
    "[0]}>\n"
    "#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>\n"
    "#smem = #ttg.shared_memory\n"
    "module attributes {\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = 1 : i32} {\n"
    "  tt.func public @k(%p: tensor<128x!tt.ptr<f32>, #b>, %k: tensor<128xi1, #b>, %n: i32, %c: "
    "i1) "
    "{\n"
    "    %m = ttg.local_alloc : () -> !ttg.memdesc<128xf32, #s, #smem, mutable>\n"
    "    %t = ttg.async_copy_global_to_local %p, %m mask %k : tensor<128x!tt.ptr<f32>, #b> -> "
    "<128xf32, #s, #smem, mutable>\n"
    "    %g = ttg.async_commit_group tokens %t\n"
    "    %w = ttg.async_wait %g {num = 0 : i32}\n"
    "    %x = ttg.local_load %m token %w : !ttg.memdesc<128xf32, #s, #smem, mutable> -> "
    "tensor<128xf32, #b>\n"
    "    tt.store %p, %x, %k : tensor<128x!tt.ptr<f32>, #b>\n"
    "    scf.if %c {\n"
    "      scf.for %i = %n to %n step %n : i32 {\n"
    "        %y = tt.load %p : tensor<128x!tt.ptr<f32>, #b>\n"
    "        ttg.local_store %y, %m : tensor<128xf32, #b> -> !ttg.memdesc<128xf32, #s, #smem, "
    "mutable>\n"
    "      }\n"
    "    }\n"
    "    %z = tt.elementwise_inline_asm \"mov.b32 $0, $1;\" {constraints = \"=r,r\", "
    "packed_element = 1 : i32, pure = true} %x : tensor<128xf32, #b> -> tensor<128xf32, #b>\n"
    "    %v = tt.elementwise_inline_asm \"mov.b32 $0, $1;\" {constraints = \"=r,r\", "
    "packed_element = 1 : i32, pure = false} %x : tensor<128xf32, #b> -> tensor<128xf32, #b>\n"
    "    tt.return\n"
    "  }\n"
    "}\n";

enum {
    GLOBAL = LILAC_TILE_GLOBAL_MEMORY,
    SHARED = LILAC_TILE_SHARED_MEMORY,
    COPIES = LILAC_TILE_COPIES
};

/* The operation number `index` of the body. */
static const lilac_tile_op *op_at(const lilac_tile_module *module, uint32_t index) {
    const lilac_tile_op *op = module->functions->body->first->first;
    while (index-- > 0) {
        op = op->next;
    }
    return op;
}

static lilac_tile_module *read_module(lilac_context *context) {
    lilac_tile_module *module =
        lilac_tile_read(context, lilac_source_add(context, "effects.ttgir", text, strlen(text)));
    assert_non_null(module);
    assert_true(lilac_tile_verify(module, false));
    return module;
}

/* The rows of an opcode are together, in the order of the opcodes. A row names an existing group of
 * operands; what completes later has a wait in the table; operations with rows are not pure. */
static void the_table_is_sound(void **state) {
    (void)state;
    uint32_t waited = 0, pending = 0, all = 0;
    const lilac_tile_effect *next = NULL;
    for (int code = LILAC_TILE_OP_NONE + 1; code < LILAC_TILE_OP_COUNT; code++) {
        const lilac_tile_op_info *info = lilac_tile_op_info_get((lilac_tile_opcode)code);
        uint32_t count;
        const lilac_tile_effect *rows = lilac_tile_effects((lilac_tile_opcode)code, &count);
        assert_true(count == 0 || next == NULL || rows == next);
        assert_false(count > 0 && (info->traits & LILAC_TILE_PURE));
        int32_t groups = 0;
        const char *arrow = strstr(info->signature, "->");
        for (const char *at = info->signature; at < arrow; at++) {
            groups += *at == ',' || at == info->signature;
        }
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(rows[i].code, code);
            assert_true(rows[i].operand >= LILAC_TILE_RESULT && rows[i].operand < groups);
            assert_true(rows[i].operand != LILAC_TILE_RESULT || info->results == 1);
            assert_true(rows[i].access != 0 && rows[i].resources != 0);
            waited |= rows[i].access & LILAC_TILE_WAITS ? rows[i].resources : 0;
            pending |= rows[i].completion;
        }
        next = count > 0 ? rows + count : next;
        all += count;
    }
    assert_int_equal(pending & ~waited, 0);
    assert_int_equal(waited & ~pending, 0);
    uint32_t count;
    (void)lilac_tile_effects(LILAC_TILE_OP_NONE, &count);
    assert_int_equal(count, 0);
    assert_true(all > 40);
}

static void summaries(void **state) {
    (void)state;
    static const struct {
        uint32_t op, reads, writes, waits, pending;
    } cases[] = {
        {0, 0, SHARED, 0, 0},                    /* local_alloc */
        {1, GLOBAL, SHARED | COPIES, 0, COPIES}, /* async_copy */
        {2, COPIES, COPIES, 0, 0},               /* commit */
        {3, GLOBAL | COPIES, SHARED, COPIES, 0}, /* wait */
        {4, SHARED, 0, 0, 0},                    /* local_load */
        {5, 0, GLOBAL, 0, 0},                    /* store */
        {6, GLOBAL, SHARED, 0, 0},               /* if */
        {7, 0, 0, 0, 0},                         /* pure assembly */
        {8, LILAC_TILE_TEXT, LILAC_TILE_TEXT, 0, 0},
        {9, 0, 0, 0, 0} /* return */
    };
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_module(context);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_tile_effect_summary sum = lilac_tile_summarize_effects(op_at(module, cases[i].op));
        assert_int_equal(sum.reads, cases[i].reads);
        assert_int_equal(sum.writes, cases[i].writes);
        assert_int_equal(sum.waits, cases[i].waits);
        assert_int_equal(sum.pending, cases[i].pending);
    }
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

/* Bit j of conflicts[i]: the order of operations i and j matters. */
static void conflicts(void **state) {
    (void)state;
    static const uint32_t conflicts[9] = {0x05b, 0x07f, 0x00e, 0x07f, 0x04b,
                                          0x06a, 0x07b, 0x000, 0x100};
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_module(context);
    for (uint32_t i = 0; i < 9; i++) {
        lilac_tile_effect_summary a = lilac_tile_summarize_effects(op_at(module, i));
        uint32_t found = 0;
        for (uint32_t j = 0; j < 9; j++) {
            lilac_tile_effect_summary b = lilac_tile_summarize_effects(op_at(module, j));
            found |= (uint32_t)lilac_tile_effects_conflict(&a, &b) << j;
        }
        if (found != conflicts[i]) {
            fail_msg("operation %u: 0x%x", i, found);
        }
    }
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void operands(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_module(context);
    const lilac_tile_op *copy = op_at(module, 1), *store = op_at(module, 5);
    const lilac_tile_effect *from = lilac_tile_operand_effect(copy, 0);
    const lilac_tile_effect *to = lilac_tile_operand_effect(copy, 1);
    assert_non_null(from);
    assert_non_null(to);
    assert_true(from->access == LILAC_TILE_READS && from->resources == GLOBAL);
    assert_true(to->access == LILAC_TILE_WRITES && to->resources == SHARED);
    assert_true(from->completion == COPIES && to->completion == COPIES);
    assert_null(lilac_tile_operand_effect(copy, 2)); /* the mask */
    assert_null(lilac_tile_operand_effect(copy, 3));
    const lilac_tile_effect *stored = lilac_tile_operand_effect(store, 0);
    assert_true(stored != NULL && stored->access == LILAC_TILE_WRITES && stored->completion == 0);
    assert_null(lilac_tile_operand_effect(store, 1));
    assert_null(lilac_tile_operand_effect(op_at(module, 2), 0)); /* a token */
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_sound),
        cmocka_unit_test(summaries),
        cmocka_unit_test(conflicts),
        cmocka_unit_test(operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
