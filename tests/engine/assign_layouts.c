/* assign_layouts on whole functions with shape operations, reductions, loops and branches: the
 * number of conversions, and the place of each refusal. program_assign verifies every accepted
 * program with layouts. */
#include "support/access_widths.h"

/* Pointers %ROW to a [32, 64] tile of f32 whose rows, or with COLUMN whose columns, are contiguous.
 */
#define TILE(to, base, row, column)                                                                \
    "%" to "r = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>\n"                \
    "%" to "c = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"                \
    "%" to "re = tt.expand_dims %" to "r {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>\n"  \
    "%" to "ce = tt.expand_dims %" to "c {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>\n"  \
    "%" to "rk = arith.constant dense<" row "> : tensor<32x1xi32>\n"                               \
    "%" to "ck = arith.constant dense<" column "> : tensor<1x64xi32>\n"                            \
    "%" to "rs = arith.muli %" to "re, %" to "rk : tensor<32x1xi32>\n"                             \
    "%" to "cs = arith.muli %" to "ce, %" to "ck : tensor<1x64xi32>\n"                             \
    "%" to "rb = tt.broadcast %" to "rs : tensor<32x1xi32> -> tensor<32x64xi32>\n"                 \
    "%" to "cb = tt.broadcast %" to "cs : tensor<1x64xi32> -> tensor<32x64xi32>\n"                 \
    "%" to "o = arith.addi %" to "rb, %" to "cb : tensor<32x64xi32>\n"                             \
    "%" to "s = tt.splat %" base " : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>>\n"                 \
    "%" to " = tt.addptr %" to "s, %" to "o : tensor<32x64x!tt.ptr<f32>>, tensor<32x64xi32>\n"

#define LOAD(to, from)   "%" to " = tt.load %" from " : tensor<32x64x!tt.ptr<f32>>\n"
#define STORE(to, value) "tt.store %" to ", %" value " : tensor<32x64x!tt.ptr<f32>>\n"
#define REDUCE(to, from, axis, size)                                                               \
    "%" to " = \"tt.reduce\"(%" from ") <{axis = " axis " : i32}> ({\n^bb0(%a0: f32, %a1: f32):\n" \
    "%a2 = arith.addf %a0, %a1 : f32\ntt.reduce.return %a2 : f32\n}) : "                           \
    "(tensor<32x64xf32>) -> tensor<" size "xf32>\n"
#define LINE(to, base, size)                                                                       \
    "%" to "r = tt.make_range {end = " size " : i32, start = 0 : i32} : tensor<" size "xi32>\n"    \
    "%" to "s = tt.splat %" base " : !tt.ptr<f32> -> tensor<" size "x!tt.ptr<f32>>\n"              \
    "%" to " = tt.addptr %" to "s, %" to "r : tensor<" size "x!tt.ptr<f32>>, tensor<" size         \
    "xi32>\n"

static const struct {
    const char *what, *body;
    uint32_t conversions;
} programs[] = {
    {"a copy, rows contiguous", TILE("x", "p", "64", "1") LOAD("v", "x") STORE("x", "v"), 0},
    {"a copy, columns contiguous", TILE("x", "p", "1", "32") LOAD("v", "x") STORE("x", "v"), 0},
    {"a vector load beside unaligned ones follows them",
     "%up = tt.addptr %p, %u : !tt.ptr<f32>, i32\n" LINE("x", "up", "4096")
         LINE("y", "w", "4096") "%v = tt.load %x : tensor<4096x!tt.ptr<f32>>\n"
                                "%t = tt.load %y : tensor<4096x!tt.ptr<f32>>\n"
                                "%d = arith.addf %v, %t : tensor<4096xf32>\n"
                                "tt.store %x, %d : tensor<4096x!tt.ptr<f32>>\n",
     0},
    {"two sums of a line of eight",
     LINE("x", "p", "8") "%v = tt.load %x : tensor<8x!tt.ptr<f32>>\n"
                         "%h = tt.reshape %v : tensor<8xf32> -> tensor<2x4xf32>\n"
                         "%t = \"tt.reduce\"(%h) <{axis = 1 : i32}> ({\n^bb0(%a0: f32, %a1: f32):\n"
                         "%a2 = arith.addf %a0, %a1 : f32\ntt.reduce.return %a2 : f32\n}) : "
                         "(tensor<2x4xf32>) -> tensor<2xf32>\n" LINE(
                             "y", "w", "2") "tt.store %y, %t : tensor<2x!tt.ptr<f32>>\n",
     0},
    {"sum of rows",
     TILE("x", "p", "64", "1") LOAD("v", "x") REDUCE("t", "v", "1", "32")
         LINE("y", "p", "32") "tt.store %y, %t : tensor<32x!tt.ptr<f32>>\n",
     0},
    {"sum of columns",
     TILE("x", "p", "64", "1") LOAD("v", "x") REDUCE("t", "v", "0", "64")
         LINE("y", "p", "64") "tt.store %y, %t : tensor<64x!tt.ptr<f32>>\n",
     0},
    {"rows less their sum",
     TILE("x", "p", "64", "1") LOAD("v", "x") REDUCE(
         "t", "v", "1",
         "32") "%te = tt.expand_dims %t {axis = 1 : i32} : tensor<32xf32> -> tensor<32x1xf32>\n"
               "%tb = tt.broadcast %te : tensor<32x1xf32> -> tensor<32x64xf32>\n"
               "%d = arith.subf %v, %tb : tensor<32x64xf32>\n" STORE("x", "d"),
     0},
    {"columns plus a loaded row",
     TILE("x", "p", "64", "1") LOAD("v", "x") LINE(
         "y", "p",
         "64") "%l = tt.load %y : tensor<64x!tt.ptr<f32>>\n"
               "%le = tt.expand_dims %l {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>\n"
               "%lb = tt.broadcast %le : tensor<1x64xf32> -> tensor<32x64xf32>\n"
               "%d = arith.addf %v, %lb : tensor<32x64xf32>\n" STORE("x", "d"),
     0},
    {"a loop that carries a sum and its pointers",
     TILE("x", "p", "64",
          "1") "%z = arith.constant 0 : i32\n%o = arith.constant 1 : i32\n"
               "%f = arith.constant dense<0.0> : tensor<32x64xf32>\n"
               "%k = arith.constant dense<2048> : tensor<32x64xi32>\n"
               "%l:2 = scf.for %i = %z to %u step %o iter_args(%s = %f, %at = %x) -> "
               "(tensor<32x64xf32>, tensor<32x64x!tt.ptr<f32>>) : i32 {\n" LOAD(
                   "v",
                   "at") "%t = arith.addf %s, %v : tensor<32x64xf32>\n"
                         "%nx = tt.addptr %at, %k : tensor<32x64x!tt.ptr<f32>>, tensor<32x64xi32>\n"
                         "scf.yield %t, %nx : tensor<32x64xf32>, "
                         "tensor<32x64x!tt.ptr<f32>>\n}\n" STORE("x", "l#0"),
     0},
    {"a branch with a result",
     TILE("x", "p", "64", "1")
         LOAD("v", "x") "%f = arith.constant dense<1.0> : tensor<32x64xf32>\n"
                        "%y = scf.if %b -> (tensor<32x64xf32>) {\n%t = arith.addf %v, %f : "
                        "tensor<32x64xf32>\n"
                        "scf.yield %t : tensor<32x64xf32>\n} else {\nscf.yield %f : "
                        "tensor<32x64xf32>\n}\n" STORE("x", "y"),
     0},
    {"a while loop that carries a tensor",
     TILE("x", "p", "64", "1") LOAD(
         "v",
         "x") "%y = scf.while (%a = %v) : (tensor<32x64xf32>) -> tensor<32x64xf32> {\n"
              "scf.condition(%b) %a : tensor<32x64xf32>\n} do {\n^bb0(%c: tensor<32x64xf32>):\n"
              "%t = arith.addf %c, %c : tensor<32x64xf32>\nscf.yield %t : "
              "tensor<32x64xf32>\n}\n" STORE("x", "y"),
     0},
    {"a transpose that undoes the other order",
     TILE("x", "p", "64", "1")
         LOAD("v", "x") "%t = tt.trans %v {order = array<i32: 1, 0>} : tensor<32x64xf32> -> "
                        "tensor<64x32xf32>\n"
                        "%tt = tt.trans %t {order = array<i32: 1, 0>} : tensor<64x32xf32> -> "
                        "tensor<32x64xf32>\n" STORE("x", "tt"),
     0},
    {"reshape, join and split are renamings",
     TILE("x", "p", "64", "1") LOAD(
         "v", "x") "%t = tt.reshape %v : tensor<32x64xf32> -> tensor<8x4x64xf32>\n"
                   "%j = tt.join %t, %t : tensor<8x4x64xf32> -> tensor<8x4x64x2xf32>\n"
                   "%h:2 = tt.split %j : tensor<8x4x64x2xf32> -> tensor<8x4x64xf32>\n"
                   "%d = arith.addf %h#0, %h#1 : tensor<8x4x64xf32>\n"
                   "%y = tt.reshape %d : tensor<8x4x64xf32> -> tensor<32x64xf32>\n" STORE("x", "y"),
     0},
    {"one element",
     "%s = tt.splat %p : !tt.ptr<f32> -> tensor<1x!tt.ptr<f32>>\n"
     "%v = tt.load %s : tensor<1x!tt.ptr<f32>>\n%f = tt.unsplat %v : tensor<1xf32>\n"
     "tt.store %p, %f : !tt.ptr<f32>\ntt.store %s, %v : tensor<1x!tt.ptr<f32>>\n",
     0},
    {"a gather by loaded indices",
     "%i = tt.splat %w : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>\n"
     "%r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
     "%ip = tt.addptr %i, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n"
     "%iv = tt.load %ip : tensor<64x!tt.ptr<f32>>\n"
     "%ii = arith.fptosi %iv : tensor<64xf32> to tensor<64xi32>\n"
     "%s = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>\n"
     "%x = tt.addptr %s, %ii : tensor<64x!tt.ptr<f32>>, tensor<64xi32>\n"
     "%v = tt.load %x : tensor<64x!tt.ptr<f32>>\ntt.store %ip, %v : tensor<64x!tt.ptr<f32>>\n",
     0},
    {"blocks and branches between them",
     TILE("x", "p", "64", "1")
         LOAD("v", "x") "cf.cond_br %b, ^bb1(%v : tensor<32x64xf32>), ^bb2\n"
                        "^bb1(%a: tensor<32x64xf32>):\n" STORE("x", "a") "cf.br ^bb2\n^bb2:\n",
     0},
    {"what nothing reads or writes",
     "%r = tt.make_range {end = 64 : i32, start = 0 : i32} : "
     "tensor<64xi32>\ntt.print \"r\" {hex = false, isSigned = "
     "array<i32: 1>} : %r : tensor<64xi32>\n",
     0},
};

static void conversions(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        for (uint32_t warps = 2; warps <= 8; warps *= 2) {
            for (int simplify = 0; simplify < 2; simplify++) {
                program p;
                program_body(&p, programs[i].body, warps);
                if (!program_assign(&p, simplify != 0)) {
                    fail_with_diagnostics(p.context, programs[i].what);
                }
                uint32_t count = count_ops(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT);
                if (count != programs[i].conversions) {
                    fail_msg("%s, %u warps: %u conversions, not %u", programs[i].what, warps, count,
                             programs[i].conversions);
                }
                program_clear(&p);
            }
        }
    }
}

static uint32_t elements_along(const lilac_layout *layout, uint32_t dim, bool lanes) {
    uint64_t bit = UINT64_C(1) << lilac_layout_out_start(layout, dim);
    uint32_t inputs = layout->in[0].bits + (lanes ? layout->in[1].bits : 0), count = 1;
    for (bool found = true; found; bit <<= 1) {
        found = false;
        for (uint32_t i = 0; i < inputs; i++) {
            found |= layout->columns[i] == bit;
        }
        count <<= found;
    }
    return count;
}

/* Both sides of a transposing copy take vectors of 16 bytes and whole sectors, however many warps
 * there are; whether a conversion stands between is a matter of price. */
/* Where nothing else is done, a conversion is hidden behind other blocks' accesses; not in a loop.
 */
static void copies_between_orders(void **state) {
    (void)state;
    program p;
    program_body(
        &p, TILE("x", "p", "64", "1") TILE("y", "p", "1", "32") LOAD("v", "x") STORE("y", "v"), 4);
    assert_true(program_assign(&p, true));
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT), 1);
    program_clear(&p);
    program_body(
        &p,
        TILE("x", "p", "64", "1")
            TILE("y", "p", "1", "32") "%z = arith.constant 0 : i32\n%o = arith.constant 1 : i32\n"
                                      "scf.for %i = %z to %u step %o : i32 {\n" LOAD("v", "x")
                                          STORE("y", "v") "scf.yield\n}\n",
        4);
    assert_true(program_assign(&p, true));
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT), 0);
    program_clear(&p);
}

static void both_sides_of_a_transpose_are_coalesced(void **state) {
    (void)state;
    for (uint32_t warps = 1; warps <= 4; warps *= 2) {
        program p;
        program_body(
            &p, TILE("x", "p", "64", "1") LOAD("v", "x") TILE("y", "p", "1", "32") STORE("y", "v"),
            warps);
        assert_true(program_assign(&p, true));
        assert_true(count_ops(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT) <= 1);
        const lilac_layout *loaded = value_named(&p, "x")->type->layout;
        const lilac_layout *stored =
            last_op(&p, LILAC_TILE_OP_TT_STORE)->operands[0].value->type->layout;
        assert_true(elements_along(loaded, 1, false) >= 4);
        assert_true(elements_along(loaded, 1, true) >= 8);
        assert_true(elements_along(stored, 0, false) >= 4);
        assert_true(elements_along(stored, 0, true) >= 8);
        program_clear(&p);
    }
}

/* Gathered rows are read in vectors although the store of their product has the same mask of rows, with
 * the layout of the product: the mask is converted before it is broadcast. */
static void masks_of_rows_tie_no_layouts(void **state) {
    (void)state;
    for (uint32_t warps = 1; warps <= 8; warps *= 2) {
        program p;
        program_body(
            &p,
            TILE("y", "p", "64", "1") LINE(
                "at", "w",
                "32") "%rows = tt.load %at : tensor<32x!tt.ptr<f32>>\n"
                      "%number = arith.fptosi %rows : tensor<32xf32> to tensor<32xi32>\n"
                      "%us = tt.splat %u : i32 -> tensor<32xi32>\n"
                      "%known = arith.cmpi slt, %number, %us : tensor<32xi32>\n"
                      "%ke = tt.expand_dims %known {axis = 1 : i32} : tensor<32xi1> -> "
                      "tensor<32x1xi1>\n"
                      "%mask = tt.broadcast %ke : tensor<32x1xi1> -> tensor<32x64xi1>\n"
                      "%ne = tt.expand_dims %number {axis = 1 : i32} : tensor<32xi32> -> "
                      "tensor<32x1xi32>\n"
                      "%down = arith.muli %ne, %yrk : tensor<32x1xi32>\n"
                      "%qs = tt.splat %q : !tt.ptr<f16> -> tensor<32x1x!tt.ptr<f16>>\n"
                      "%qd = tt.addptr %qs, %down : tensor<32x1x!tt.ptr<f16>>, tensor<32x1xi32>\n"
                      "%qb = tt.broadcast %qd : tensor<32x1x!tt.ptr<f16>> -> "
                      "tensor<32x64x!tt.ptr<f16>>\n"
                      "%qp = tt.addptr %qb, %ycb : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>\n"
                      "%b0 = arith.constant dense<1.0> : tensor<64x64xf16>\n"
                      "%none = arith.constant dense<0.0> : tensor<32x64xf32>\n"
                      "%more = arith.constant dense<64> : tensor<32x64xi32>\n"
                      "%z = arith.constant 0 : i32\n%o = arith.constant 1 : i32\n"
                      "%l:2 = scf.for %i = %z to %u step %o iter_args(%a = %qp, %c = %none) -> "
                      "(tensor<32x64x!tt.ptr<f16>>, tensor<32x64xf32>) : i32 {\n"
                      "%v = tt.load %a, %mask : tensor<32x64x!tt.ptr<f16>>\n"
                      "%d = tt.dot %v, %b0, %c : tensor<32x64xf16> * tensor<64x64xf16> -> "
                      "tensor<32x64xf32>\n"
                      "%a2 = tt.addptr %a, %more : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>\n"
                      "scf.yield %a2, %d : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xf32>\n}\n"
                      "tt.store %y, %l#1, %mask : tensor<32x64x!tt.ptr<f32>>\n",
            warps);
        if (!program_assign(&p, true)) {
            fail_with_diagnostics(p.context, "gathered rows");
        }
        const lilac_tile_op *load = last_op(&p, LILAC_TILE_OP_TT_LOAD);
        assert_true(elements_along(load->results[0].type->layout, 1, false) >= 8);
        program_clear(&p);
    }
}

/* What a product's operand is computed from is converted where it is loaded, at the same price: the loaded
 * tensor can then come from shared memory in the layout of the operand. */
static void operands_are_computed_behind_their_conversion(void **state) {
    (void)state;
    program p;
    program_body(&p,
                 TILE("y", "p", "64",
                      "1") "%qs = tt.splat %q : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>>\n"
                           "%qp = tt.addptr %qs, %yo : tensor<32x64x!tt.ptr<f16>>, "
                           "tensor<32x64xi32>\n"
                           "%h = tt.load %qp : tensor<32x64x!tt.ptr<f16>>\n"
                           "%less = arith.negf %h : tensor<32x64xf16>\n"
                           "%b0 = arith.constant dense<1.0> : tensor<64x64xf16>\n"
                           "%none = arith.constant dense<0.0> : tensor<32x64xf32>\n"
                           "%d = tt.dot %less, %b0, %none : tensor<32x64xf16> * tensor<64x64xf16> "
                           "-> tensor<32x64xf32>\n" STORE("y", "d"),
                 1);
    if (!program_assign(&p, true)) {
        fail_with_diagnostics(p.context, "a computed operand");
    }
    const lilac_tile_op *negated = last_op(&p, LILAC_TILE_OP_ARITH_NEGF);
    const lilac_tile_op *converted = negated->operands[0].value->op;
    assert_int_equal(converted->code, LILAC_TILE_OP_TTG_CONVERT_LAYOUT);
    assert_int_equal(converted->operands[0].value->op->code, LILAC_TILE_OP_TT_LOAD);
    program_clear(&p);
}

/* A line of 16-bit elements behind a mask that no vector takes; `store`: written as well. */
static void masked_line(program *p, bool store) {
    static const char load[] =
        "%r = tt.make_range {end = 4096 : i32, start = 0 : i32} : tensor<4096xi32>\n"
        "%us = tt.splat %u : i32 -> tensor<4096xi32>\n"
        "%m1 = arith.cmpi slt, %r, %us : tensor<4096xi32>\n"
        "%z = arith.constant dense<0.0> : tensor<4096xf16>\n"
        "%s = tt.splat %q : !tt.ptr<f16> -> tensor<4096x!tt.ptr<f16>>\n"
        "%x = tt.addptr %s, %r : tensor<4096x!tt.ptr<f16>>, tensor<4096xi32>\n"
        "%v = tt.load %x, %m1, %z : tensor<4096x!tt.ptr<f16>>\n";
    static const char sum[] =
        "%t = \"tt.reduce\"(%v) <{axis = 0 : i32}> ({\n^bb0(%a0: f16, %a1: f16):\n"
        "%a2 = arith.addf %a0, %a1 : f16\ntt.reduce.return %a2 : f16\n}) : "
        "(tensor<4096xf16>) -> f16\ntt.store %q, %t : !tt.ptr<f16>\n";
    static const char back[] = "tt.store %x, %v, %m1 : tensor<4096x!tt.ptr<f16>>\n";
    char body[2048];
    snprintf(body, sizeof body, "%s%s", load, store ? back : sum);
    program_body(p, body, 8);
    assert_true(program_assign(p, true));
}

/* Narrow elements that are loaded one by one stand in runs of 8 bytes a thread, so that a warp asks
 * for whole lines; where they are stored one by one too, side by side, so that stores do. */
static void narrow_elements_stand_in_runs(void **state) {
    (void)state;
    for (int store = 0; store < 2; store++) {
        program p;
        masked_line(&p, store != 0);
        const lilac_layout *loaded = value_named(&p, "x")->type->layout;
        assert_int_equal(elements_along(loaded, 0, false), store ? 1 : 4);
        assert_int_equal(elements_along(loaded, 0, true), store ? 32 : 128);
        program_clear(&p);
    }
}

/* The sum of 8 × 64 16-bit elements, of rows of 195 elements, once or in a loop. */
static void sum_odd_rows(program *p, bool loop) {
    static const char tile[] =
        "%r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>\n"
        "%c = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
        "%re = tt.expand_dims %r {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>\n"
        "%ce = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>\n"
        "%k = arith.constant dense<195> : tensor<8x1xi32>\n"
        "%rs = arith.muli %re, %k : tensor<8x1xi32>\n"
        "%rb = tt.broadcast %rs : tensor<8x1xi32> -> tensor<8x64xi32>\n"
        "%cb = tt.broadcast %ce : tensor<1x64xi32> -> tensor<8x64xi32>\n"
        "%o = arith.addi %rb, %cb : tensor<8x64xi32>\n"
        "%s = tt.splat %q : !tt.ptr<f16> -> tensor<8x64x!tt.ptr<f16>>\n"
        "%x = tt.addptr %s, %o : tensor<8x64x!tt.ptr<f16>>, tensor<8x64xi32>\n";
    static const char once[] = "%y = tt.load %x : tensor<8x64x!tt.ptr<f16>>\n";
    static const char often[] =
        "%z = arith.constant dense<0.0> : tensor<8x64xf16>\n"
        "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n"
        "%y = scf.for %i = %c0 to %u step %c1 iter_args(%a = %z) -> (tensor<8x64xf16>) : i32 {\n"
        "%v = tt.load %x : tensor<8x64x!tt.ptr<f16>>\n"
        "%next = arith.addf %a, %v : tensor<8x64xf16>\nscf.yield %next : tensor<8x64xf16>\n}\n";
    static const char sum[] =
        "%t = \"tt.reduce\"(%y) <{axis = 1 : i32}> ({\n^bb0(%a0: f16, %a1: f16):\n"
        "%a2 = arith.addf %a0, %a1 : f16\ntt.reduce.return %a2 : f16\n}) : "
        "(tensor<8x64xf16>) -> tensor<8xf16>\n"
        "%whole = \"tt.reduce\"(%t) <{axis = 0 : i32}> ({\n^bb0(%a3: f16, %a4: f16):\n"
        "%a5 = arith.addf %a3, %a4 : f16\ntt.reduce.return %a5 : f16\n}) : "
        "(tensor<8xf16>) -> f16\ntt.store %q, %whole : !tt.ptr<f16>\n";
    char body[4096];
    snprintf(body, sizeof body, "%s%s%s", tile, loop ? often : once, sum);
    program_body(p, body, 4);
    assert_true(program_assign(p, true));
}

/* Runs of short rows cost the lines that each load looks up, which counts in loops. Outside, a run
 * saves a thread the index arithmetic of further rows. */
static void short_rows_have_runs_outside_loops(void **state) {
    (void)state;
    for (int loop = 0; loop < 2; loop++) {
        program p;
        sum_odd_rows(&p, loop != 0);
        const lilac_layout *loaded = value_named(&p, "x")->type->layout;
        assert_int_equal(elements_along(loaded, 1, false), loop ? 1 : 4);
        program_clear(&p);
    }
}

/* The elements of a thread that adds `tables` of 64 elements to a line of 512 elements, for 256
 * threads. */
static uint32_t elements_of_sum(uint32_t tables) {
    char text[8192];
    int length = snprintf(text, sizeof text, "%s",
                          LINE("y", "p", "512") "%s0 = tt.load %y : tensor<512x!tt.ptr<f32>>\n"
                                                "%k = arith.constant dense<64> : tensor<512xi32>\n"
                                                "%c0 = arith.remui %yr, %k : tensor<512xi32>\n");
    for (uint32_t i = 1; i <= tables; i++) {
        length += snprintf(text + length, sizeof text - (size_t)length,
                           "%%c%u = arith.addi %%c%u, %%k : tensor<512xi32>\n"
                           "%%x%u = tt.addptr %%ys, %%c%u : tensor<512x!tt.ptr<f32>>, "
                           "tensor<512xi32>\n"
                           "%%v%u = tt.load %%x%u : tensor<512x!tt.ptr<f32>>\n"
                           "%%s%u = arith.addf %%s%u, %%v%u : tensor<512xf32>\n",
                           i, i - 1, i, i, i, i, i, i - 1, i);
    }
    snprintf(text + length, sizeof text - (size_t)length,
             "tt.store %%y, %%s%u : tensor<512x!tt.ptr<f32>>\n", tables);
    program p;
    program_body(&p, text, 8);
    assert_true(program_assign(&p, true));
    const uint32_t elements = elements_along(value_named(&p, "y")->type->layout, 0, false);
    program_clear(&p);
    return elements;
}

/* Full vectors with idle warps, where the loads leave a thread registers; else no warp is idle. */
static void copies_need_registers_for_all_loads(void **state) {
    (void)state;
    for (uint32_t tables = 1; tables <= 8; tables++) {
        assert_int_equal(elements_of_sum(tables), tables < 5 ? 4 : 2);
    }
}

/* A conversion stands where it is cheapest: before elements get wider. */
/* Where a memory operation wants its pointers otherwise than what they are made of, they alone
 * change: offsets come by rows and are stored by rows, but what they point to runs along columns.
 */
static void pointers_change_alone(void **state) {
    (void)state;
    program p;
    program_body(
        &p,
        TILE("x", "p", "64", "1") TILE("y", "p", "1", "32") LOAD(
            "v", "x") "%i = arith.fptosi %v : tensor<32x64xf32> to tensor<32x64xi32>\n"
                      "%ws = tt.splat %w : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>>\n"
                      "%at = tt.addptr %ws, %i {tt.contiguity = dense<[32, 1]> : "
                      "tensor<2xi32>, tt.divisibility = dense<[16, 16]> : tensor<2xi32>} : "
                      "tensor<32x64x!tt.ptr<f32>>, tensor<32x64xi32>\n" LOAD("g", "at") STORE(
                          "y",
                          "g") "%f = arith.sitofp %i : tensor<32x64xi32> to tensor<32x64xf32>\n"
                               "%e = math.exp %f : tensor<32x64xf32>\n" STORE("x", "e"),
        4);
    assert_true(program_assign(&p, true));
    lilac_conversion_report report;
    lilac_engine_conversions(&report, p.module->arena, p.module->functions, &p.target);
    assert_true(report.count <= 1);
    for (uint32_t i = 0; i < report.count; i++) {
        assert_true(report.conversions[i].element_bits <= 32);
    }
    program_clear(&p);
}

static void conversions_move_to_narrow_elements(void **state) {
    (void)state;
    program p;
    program_body(
        &p,
        TILE("x", "p", "64", "1")
            TILE("y", "p", "1",
                 "32") "%hs = tt.splat %q : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>>\n"
                       "%h = tt.addptr %hs, %xo : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>\n"
                       "%l = tt.load %h : tensor<32x64x!tt.ptr<f16>>\n"
                       "%v = arith.extf %l : tensor<32x64xf16> to tensor<32x64xf32>\n"
                       "%e = math.exp %v : tensor<32x64xf32>\n" STORE("y", "e"),
        16);
    assert_true(program_assign(&p, true));
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT), 1);
    const lilac_tile_op *made = last_op(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT);
    assert_int_equal(lilac_tile_element_bits(made->results[0].type), 16);
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_MATH_EXP), 1);
    program_clear(&p);
}

/* A value that only one branch uses is converted in that branch. A value that a loop uses is
 * converted before the loop. */
static void conversions_move_into_branches_and_out_of_loops(void **state) {
    (void)state;
    program p;
    program_body(&p,
                 TILE("x", "p", "64", "1") LOAD("v", "x") TILE("y", "p", "1", "32")
                     STORE("x", "v") "scf.if %b {\n" STORE("y", "v") "}\n",
                 16);
    assert_true(program_assign(&p, true));
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT), 1);
    const lilac_tile_op *made = last_op(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT);
    assert_ptr_equal(made->parent, last_op(&p, LILAC_TILE_OP_SCF_IF)->regions[0]->first);
    program_clear(&p);

    program_body(&p,
                 TILE("x", "p", "64", "1") LOAD("v", "x")
                     TILE("y", "p", "1",
                          "32") "%z = arith.constant 0 : i32\n%o = arith.constant 1 : i32\n"
                                "scf.for %i = %z to %u step %o : i32 {\n" STORE("y", "v") "}\n",
                 16);
    assert_true(program_assign(&p, true));
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT), 1);
    made = last_op(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT);
    assert_ptr_equal(made->parent, last_op(&p, LILAC_TILE_OP_SCF_FOR)->parent);
    program_clear(&p);
}

/* What is left is reported with its price, and where it stands. */
static void conversions_are_reported(void **state) {
    (void)state;
    program p;
    lilac_conversion_report report;
    lilac_arena *arena = lilac_arena_create();
    size_t length = 0;
    char *text = read_data("corpus/transpose_float16.ttir", &length);
    program_read(&p, "transpose", text, length, 4);
    free(text);
    lilac_engine_conversions(&report, arena, p.module->functions, &p.target);
    assert_int_equal(report.count, 0);
    assert_true(program_assign(&p, true));
    lilac_engine_conversions(&report, arena, p.module->functions, &p.target);
    assert_int_equal(report.count, count_ops(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT));
    assert_int_equal(report.count, 1);
    const lilac_conversion *one = report.conversions;
    assert_int_equal(one->user->code, LILAC_TILE_OP_TT_STORE);
    assert_int_equal(one->kind, LILAC_PLAN_SHARED);
    assert_int_equal(one->element_bits, 16);
    assert_int_equal(report.cycles, one->price.cycles);
    /* each byte crosses shared memory twice, 128 a clock */
    assert_true(one->price.cycles >= 2 * 16 * 64 * 64 * 2 / 128);
    lilac_arena_destroy(arena);
    program_clear(&p);
}

/* Short rows that stand one after another: a vector takes several of them. */
static void vectors_cross_dimensions(void **state) {
    (void)state;
    static const struct {
        const char *step; /* from row to row, of rows of 2 */
        uint32_t columns, rows;
    } cases[] = {{"2", 2, 2}, {"4", 2, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[2048];
        snprintf(
            body, sizeof body,
            "%%r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>\n"
            "%%c = tt.make_range {end = 2 : i32, start = 0 : i32} : tensor<2xi32>\n"
            "%%re = tt.expand_dims %%r {axis = 1 : i32} : tensor<512xi32> -> tensor<512x1xi32>\n"
            "%%ce = tt.expand_dims %%c {axis = 0 : i32} : tensor<2xi32> -> tensor<1x2xi32>\n"
            "%%k = arith.constant dense<%s> : tensor<512x1xi32>\n"
            "%%rs = arith.muli %%re, %%k : tensor<512x1xi32>\n"
            "%%rb = tt.broadcast %%rs : tensor<512x1xi32> -> tensor<512x2xi32>\n"
            "%%cb = tt.broadcast %%ce : tensor<1x2xi32> -> tensor<512x2xi32>\n"
            "%%o = arith.addi %%rb, %%cb : tensor<512x2xi32>\n"
            "%%s = tt.splat %%p : !tt.ptr<f32> -> tensor<512x2x!tt.ptr<f32>>\n"
            "%%x = tt.addptr %%s, %%o : tensor<512x2x!tt.ptr<f32>>, tensor<512x2xi32>\n"
            "%%v = tt.load %%x : tensor<512x2x!tt.ptr<f32>>\n"
            "tt.store %%x, %%v : tensor<512x2x!tt.ptr<f32>>\n",
            cases[i].step);
        program p;
        program_body(&p, body, 4);
        assert_true(program_assign(&p, true));
        const lilac_layout *layout = value_named(&p, "v")->type->layout;
        assert_int_equal(elements_along(layout, 1, false), cases[i].columns);
        assert_true(elements_along(layout, 0, false) >= cases[i].rows);
        lilac_simt_module *lowered = lilac_lower(p.module, &p.target);
        assert_non_null(lowered);
        assert_int_equal(access_bytes(lowered, last_op(&p, LILAC_TILE_OP_TT_LOAD)),
                         4 * cases[i].columns * cases[i].rows);
        lilac_simt_module_destroy(lowered);
        program_clear(&p);
    }
}

/* Rows are summed where they lie: by few lanes and no other warps, if there are rows enough. */
static void sums_of_rows_stay_in_warps(void **state) {
    (void)state;
    program p;
    program_body(&p,
                 TILE("x", "p", "64", "1") LOAD("v", "x") REDUCE("t", "v", "1", "32")
                     LINE("y", "p", "32") "tt.store %y, %t : tensor<32x!tt.ptr<f32>>\n",
                 4);
    assert_true(program_assign(&p, true));
    const lilac_layout *layout = value_named(&p, "v")->type->layout;
    for (uint32_t bit = 0; bit < layout->in[2].bits; bit++) {
        assert_int_equal(
            lilac_layout_coordinate(layout, lilac_layout_column(layout, "warp", bit), 1), 0);
    }
    program_clear(&p);
}

/* The layouts have the four inputs in order and, contiguity along columns, follow columns. */
static void orders(void **state) {
    (void)state;
    static const struct {
        const char *body;
        uint32_t dim;
    } tiles[] = {{TILE("x", "p", "64", "1") LOAD("v", "x") STORE("x", "v"), 1},
                 {TILE("x", "p", "1", "32") LOAD("v", "x") STORE("x", "v"), 0}};
    static const char *const inputs[] = {"register", "lane", "warp", "block"};
    for (size_t i = 0; i < 2; i++) {
        program p;
        program_body(&p, tiles[i].body, 4);
        assert_true(program_assign(&p, true));
        const lilac_layout *layout = value_named(&p, "v")->type->layout;
        assert_int_equal(layout->in_count, 4);
        for (uint32_t k = 0; k < 4; k++) {
            assert_string_equal(layout->in[k].name, inputs[k]);
        }
        for (uint32_t bit = 0; bit < 2; bit++) {
            uint64_t column = lilac_layout_column(layout, "register", bit);
            assert_int_equal(lilac_layout_coordinate(layout, column, tiles[i].dim), 1 << bit);
        }
        assert_true(lilac_layout_is_surjective(layout));
        program_clear(&p);
    }
}

/* A range that two layouts need is made twice, not moved; a second run changes nothing. */
static void cheap_chains_are_copied(void **state) {
    (void)state;
    program p;
    program_body(&p,
                 TILE("x", "p", "64", "1") LOAD("v", "x") REDUCE(
                     "t", "v", "1",
                     "32") "%ys = tt.splat %p : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>\n"
                           "%y = tt.addptr %ys, %xr : tensor<32x!tt.ptr<f32>>, tensor<32xi32>\n"
                           "tt.store %y, %t : tensor<32x!tt.ptr<f32>>\n",
                 4);
    assert_true(program_assign(&p, true));
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT), 0);
    /* the store takes the slice of the load's layout, which the expanded range has too */
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_TT_MAKE_RANGE), 2);
    assert_ptr_equal(value_named(&p, "t")->type->layout, value_named(&p, "xr")->type->layout);
    bool changed = true;
    assert_true(lilac_engine_assign_layouts(p.module, &p.target, &changed));
    assert_false(changed);
    program_clear(&p);
}

/* A random number for each element, `rounds` steps from its offset, is stored in two orders. A short
 * chain is computed in both layouts; a long one once, and its result is converted. */
static void long_chains_are_computed_once(void **state) {
    (void)state;
    for (uint32_t rounds = 8; rounds <= 96; rounds += 88) {
        lilac_text body = {0};
        lilac_text_puts(&body, TILE("x", "p", "64", "1") TILE("y", "p", "1", "32"));
        lilac_text_puts(&body, "%h0 = arith.addi %xo, %xo : tensor<32x64xi32>\n");
        for (uint32_t i = 0; i < rounds; i++) {
            lilac_text_printf(&body, "%%h%u = tt.mulhiui %%h%u, %%xo : tensor<32x64xi32>\n", i + 1,
                              i);
        }
        lilac_text_printf(
            &body, "%%f = arith.sitofp %%h%u : tensor<32x64xi32> to tensor<32x64xf32>\n", rounds);
        lilac_text_puts(&body, STORE("x", "f") STORE("y", "f"));
        program p;
        program_body(&p, lilac_text_get(&body), 4);
        lilac_text_clear(&body);
        assert_true(program_assign(&p, true));
        bool is_short = rounds == 8;
        assert_int_equal(count_ops(&p, LILAC_TILE_OP_TT_MULHIUI), is_short ? 2 * rounds : rounds);
        assert_int_equal(count_ops(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT), is_short ? 0 : 1);
        program_clear(&p);
    }
}

/* ---- refusals --------------------------------------------------------------------------- */

static void expect_error(const program *p, const char *id, const char *word) {
    const lilac_diagnostic *d = lilac_diagnostics(p->context);
    assert_non_null(d);
    assert_string_equal(d->id, id);
    assert_int_not_equal(d->position.source, 0);
    if (strstr(d->message, word) == NULL) {
        fail_msg("'%s' does not name %s", d->message, word);
    }
}

static void refusals(void **state) {
    (void)state;
    bool changed;
    program p;
    program_body(&p,
                 "%c = arith.constant dense<0.0> : tensor<32x32xf32>\n"
                 "%d = ttng.warp_group_dot_wait %c {pendings = 0 : i32} : tensor<32x32xf32>\n",
                 4);
    assert_false(lilac_engine_assign_layouts(p.module, &p.target, &changed));
    expect_error(&p, "unsupported-operation", "'ttng.warp_group_dot_wait'");
    program_clear(&p);

    program_body(&p, "", 4);
    p.target = (lilac_target){
        .arch = lilac_arch_find("sm_80"), .num_warps = 4, .num_ctas = 2, .num_stages = 3};
    assert_false(lilac_engine_assign_layouts(p.module, &p.target, &changed));
    expect_error(&p, "unsupported-clusters", "sm_80 has no clusters");
    program_clear(&p);

    program_body(
        &p,
        "%c = arith.constant dense<0.0> : tensor<4xf32>\n"
        "%d = arith.constant dense<0.0> : tensor<4xf32, #ttg.linear<{register = [[1], [2]], "
        "lane = [[0], [0], [0], [0], [0]], warp = [[0], [0]], block = []}>>\n",
        4);
    assert_false(lilac_engine_assign_layouts(p.module, &p.target, &changed));
    expect_error(&p, "mixed-layouts", "some");
    program_clear(&p);
}

/* A text with layouts keeps all of them, whatever would have been chosen, and its conversions; and
 * they are for the kernel's threads. */
static void given_layouts_stay(void **state) {
    (void)state;
    static const char *const files[] = {
        "ttgir/convert_mma_f16.ttgir", "ttgir/convert_blocked_i8.ttgir",
        "ttgir/convert_wgmma_i32.ttgir", "ttgir/slices_f32.ttgir", "ttgir/shared_memory.ttgir"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        for (uint32_t warps = 4; warps <= 8; warps += 4) {
            size_t length = 0;
            bool changed = true;
            char *text = read_data(files[i], &length);
            program p;
            program_read(&p, files[i], text, length, warps);
            assert_non_null(p.module);
            lilac_text before = {0}, after = {0};
            lilac_tile_print(&before, p.module, true);
            if (warps == 4) {
                assert_true(lilac_engine_assign_layouts(p.module, &p.target, &changed));
                assert_false(changed);
                assert_true(lilac_tile_verify(p.module, true));
            } else {
                assert_false(lilac_engine_assign_layouts(p.module, &p.target, &changed));
                expect_error(&p, "layout-of-other-threads", "2^2 warps");
            }
            lilac_tile_print(&after, p.module, true);
            assert_string_equal(lilac_text_get(&before), lilac_text_get(&after));
            lilac_text_clear(&before);
            lilac_text_clear(&after);
            program_clear(&p);
            free(text);
        }
    }
}

/* ---- everything Triton's tests compile -------------------------------------------------- */

static bool has_no_rule(const char *text) {
    static const char *const words[] = {"tt.dot_scaled ",        "tt.descriptor_load ",
                                        "tt.descriptor_store ",  "tt.descriptor_reduce ",
                                        "tt.descriptor_gather ", "tt.descriptor_scatter "};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(text, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Programs get layouts exactly when no operation without a rule is in them. */
static bool gets_layouts(const char *name, uint32_t warps) {
    size_t length = 0;
    char *text = read_data(name, &length);
    program p;
    program_read(&p, name, text, length, warps);
    if (p.module == NULL) {
        fail_with_diagnostics(p.context, name);
    }
    bool done = program_assign(&p, true);
    if (done == has_no_rule(text)) {
        fail_with_diagnostics(p.context, name);
    }
    if (!done) {
        expect_error(&p, "unsupported-operation", "has no layout rule");
    }
    program_clear(&p);
    free(text);
    return done;
}

static void sample(void **state) {
    (void)state;
    size_t length;
    char *index = read_data("ttir/index.jsonl", &length);
    uint32_t total = 0, done = 0;
    for (char *at = index; (at = strstr(at, "\"file\": \"")) != NULL;) {
        char name[256];
        at += strlen("\"file\": \"");
        snprintf(name, sizeof name, "ttir/%.*s", (int)strcspn(at, "\""), at);
        const char *warps = strstr(at, "\"num_warps\": ");
        assert_non_null(warps);
        done += gets_layouts(name, (uint32_t)atoi(warps + strlen("\"num_warps\": ")));
        total++;
    }
    free(index);
    printf("  %u of %u programs have layouts for every tensor\n", done, total);
    assert_true(total > 500 && done > total / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conversions),
        cmocka_unit_test(both_sides_of_a_transpose_are_coalesced),
        cmocka_unit_test(copies_between_orders),
        cmocka_unit_test(masks_of_rows_tie_no_layouts),
        cmocka_unit_test(operands_are_computed_behind_their_conversion),
        cmocka_unit_test(narrow_elements_stand_in_runs),
        cmocka_unit_test(short_rows_have_runs_outside_loops),
        cmocka_unit_test(copies_need_registers_for_all_loads),
        cmocka_unit_test(conversions_are_reported),
        cmocka_unit_test(vectors_cross_dimensions),
        cmocka_unit_test(pointers_change_alone),
        cmocka_unit_test(conversions_move_to_narrow_elements),
        cmocka_unit_test(conversions_move_into_branches_and_out_of_loops),
        cmocka_unit_test(sums_of_rows_stay_in_warps),
        cmocka_unit_test(orders),
        cmocka_unit_test(cheap_chains_are_copied),
        cmocka_unit_test(long_chains_are_computed_once),
        cmocka_unit_test(refusals),
        cmocka_unit_test(given_layouts_stay),
        cmocka_unit_test(sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
