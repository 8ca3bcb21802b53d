/* fuse_reductions: which reductions become one, and where their operands are computed. */
#include "support/engine_harness.h"

#define LOAD                                                                                       \
    "%r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"                      \
    "%s = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>\n"                                 \
    "%a = tt.addptr %s, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n"                            \
    "%f = tt.load %a : tensor<64x!tt.ptr<f32>>\n"                                                  \
    "%x = tt.reshape %f : tensor<64xf32> -> tensor<8x8xf32>\n"

/* NAME = the sum, or the largest, of what `of` is along an axis. */
#define REDUCE(name, of, axis, operation)                                                          \
    "%" name " = \"tt.reduce\"(%" of ") <{axis = " axis " : i32}> ({\n"                            \
    "^bb0(%l: f32, %k: f32):\n%c = arith." operation " %l, %k : f32\ntt.reduce.return %c : f32\n"  \
    "}) : (tensor<8x8xf32>) -> tensor<8xf32>\n"

/* The largest and where, of %x and %INDEX. */
#define LARGEST(index)                                                                             \
    "%v:2 = \"tt.reduce\"(%x, %" index ") <{axis = 1 : i32}> ({\n"                                 \
    "^bb0(%l: f32, %i: i32, %k: f32, %j: i32):\n%g = arith.cmpf ogt, %l, %k : f32\n"               \
    "%c = arith.select %g, %l, %k : f32\n%d = arith.select %g, %i, %j : i32\n"                     \
    "tt.reduce.return %c, %d : f32, i32\n"                                                         \
    "}) : (tensor<8x8xf32>, tensor<8x8xi32>) -> (tensor<8xf32>, tensor<8xi32>)\n"

#define INDEX                                                                                      \
    "%n8 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>\n"                       \
    "%e = tt.expand_dims %n8 {axis = 0 : i32} : tensor<8xi32> -> tensor<1x8xi32>\n"                \
    "%at = tt.broadcast %e : tensor<1x8xi32> -> tensor<8x8xi32>\n"

#define SHOW(value, type)                                                                          \
    "tt.print \"" value "\" {hex = false, isSigned = array<i32: 1>} : %" value " : " type "\n"

static void fuse(program *p, const char *body, bool simplify, uint32_t left) {
    bool changed;
    program_body(p, body, 4);
    if (simplify) {
        assert_true(lilac_engine_simplify(p->module, &p->target, &changed));
    }
    uint32_t before = count_ops(p, LILAC_TILE_OP_TT_REDUCE);
    assert_true(lilac_engine_fuse_reductions(p->module, &p->target, &changed));
    if (!lilac_tile_verify(p->module, false)) {
        fail_with_diagnostics(p->context, "after fuse");
    }
    assert_int_equal(count_ops(p, LILAC_TILE_OP_TT_REDUCE), left);
    assert_int_equal(changed, left < before);
    /* nothing is left to fuse */
    assert_true(lilac_engine_fuse_reductions(p->module, &p->target, &changed));
    assert_false(changed);
}

static uint32_t place_of(const lilac_tile_op *op) {
    uint32_t place = 0;
    for (; op->previous != NULL; op = op->previous) {
        place++;
    }
    return place;
}

static void becomes_one(void **state) {
    (void)state;
    program p;
    /* a use of the first before the second, and the second's index made in between */
    fuse(&p,
         LOAD REDUCE("sum", "x", "1", "addf") SHOW("sum", "tensor<8xf32>") INDEX LARGEST("at")
             SHOW("v#1", "tensor<8xi32>"),
         false, 1);
    const lilac_tile_op *reduce = last_op(&p, LILAC_TILE_OP_TT_REDUCE);
    assert_int_equal(reduce->operand_count, 3);
    assert_int_equal(reduce->result_count, 3);
    assert_ptr_equal(reduce->operands[0].value, reduce->operands[1].value);
    assert_true(place_of(last_op(&p, LILAC_TILE_OP_TT_BROADCAST)) < place_of(reduce));
    const lilac_tile_block *region = reduce->regions[0]->first;
    assert_int_equal(region->argument_count, 6);
    /* elements of the left come first, of both, then those of the right */
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(region->arguments[i]->type->scalar, i % 3 == 2 ? LILAC_I32 : LILAC_F32);
    }
    const lilac_tile_op *sum = region->last->operands[0].value->op;
    assert_int_equal(sum->code, LILAC_TILE_OP_ARITH_ADDF);
    assert_ptr_equal(sum->operands[0].value, region->arguments[0]);
    assert_ptr_equal(sum->operands[1].value, region->arguments[3]);
    const lilac_tile_op *where = region->last->operands[2].value->op;
    assert_ptr_equal(where->operands[1].value, region->arguments[2]);
    assert_ptr_equal(where->operands[2].value, region->arguments[5]);
    assert_int_equal(lilac_tile_find_integer(&reduce->attributes, "axis", 9), 1);
    assert_true(program_assign(&p, true));
    program_clear(&p);

    /* three */
    fuse(&p,
         LOAD REDUCE("sum", "x", "0", "addf") REDUCE("most", "x", "0", "maxnumf")
             REDUCE("least", "x", "0", "minnumf") SHOW("sum", "tensor<8xf32>")
                 SHOW("most", "tensor<8xf32>") SHOW("least", "tensor<8xf32>"),
         false, 1);
    assert_int_equal(last_op(&p, LILAC_TILE_OP_TT_REDUCE)->operand_count, 3);
    program_clear(&p);
}

static void stays_two(void **state) {
    (void)state;
    static const char *const bodies[] = {
        /* along another axis */
        LOAD REDUCE("sum", "x", "0", "addf") REDUCE("most", "x", "1", "maxnumf")
            SHOW("sum", "tensor<8xf32>") SHOW("most", "tensor<8xf32>"),
        /* of other elements */
        LOAD "%y = arith.addf %x, %x : tensor<8x8xf32>\n" REDUCE("sum", "x", "0", "addf")
            REDUCE("most", "y", "0", "maxnumf") SHOW("sum", "tensor<8xf32>")
                SHOW("most", "tensor<8xf32>"),
        /* the second needs the first: its index is made of what that found */
        LOAD REDUCE(
            "sum", "x", "1",
            "addf") "%t = arith.fptosi %sum : tensor<8xf32> to tensor<8xi32>\n"
                    "%e = tt.expand_dims %t {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>\n"
                    "%at = tt.broadcast %e : tensor<8x1xi32> -> tensor<8x8xi32>\n" LARGEST("at")
                        SHOW("v#1", "tensor<8xi32>"),
        /* the second needs what is loaded in between */
        LOAD REDUCE("sum", "x", "1", "addf") SHOW(
            "sum",
            "tensor<8xf32>") "%h = tt.load %a : tensor<64x!tt.ptr<f32>>\n"
                             "%hi = arith.fptosi %h : tensor<64xf32> to tensor<64xi32>\n"
                             "%at = tt.reshape %hi : tensor<64xi32> -> tensor<8x8xi32>\n" LARGEST(
                                 "at") SHOW("v#1", "tensor<8xi32>"),
        /* the second is done sometimes */
        LOAD REDUCE("sum", "x", "0", "addf")
            SHOW("sum", "tensor<8xf32>") "scf.if %b {\n" REDUCE("most", "x", "0", "maxnumf")
                SHOW("most", "tensor<8xf32>") "}\n",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        program p;
        fuse(&p, bodies[i], false, 2);
        program_clear(&p);
    }
}

static void in_loops(void **state) {
    (void)state;
    program p;
    fuse(&p,
         LOAD "scf.for %i = %n to %m step %u : i32 {\n" REDUCE("sum", "x", "0", "addf")
             REDUCE("most", "x", "0", "maxnumf") SHOW("sum", "tensor<8xf32>")
                 SHOW("most", "tensor<8xf32>") "scf.yield\n}\n",
         false, 1);
    assert_non_null(last_op(&p, LILAC_TILE_OP_TT_REDUCE)->parent->parent->parent);
    program_clear(&p);
}

/* The corpus: a sum and an arg-max of one tile. */
static void of_the_corpus(void **state) {
    (void)state;
    static const char *const names[] = {"reduce_64x64_axis0", "reduce_16x256_axis1",
                                        "reduce_128x128_axis0"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128];
        size_t length = 0;
        bool changed;
        snprintf(path, sizeof path, "corpus/%s.ttir", names[i]);
        char *text = read_data(path, &length);
        program p;
        program_read(&p, path, text, length, 4);
        assert_non_null(p.module);
        assert_true(lilac_engine_simplify(p.module, &p.target, &changed));
        assert_true(lilac_engine_fuse_reductions(p.module, &p.target, &changed));
        assert_true(changed);
        assert_true(lilac_tile_verify(p.module, false));
        assert_int_equal(count_ops(&p, LILAC_TILE_OP_TT_REDUCE), 1);
        program_clear(&p);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(becomes_one),
        cmocka_unit_test(stays_two),
        cmocka_unit_test(in_loops),
        cmocka_unit_test(of_the_corpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
