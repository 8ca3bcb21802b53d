/* Which loads describe_loads makes loads through the launcher's tensor maps: changes of one
 * program, each with the number of maps that it has. A program that must not have maps is next
 * to one that has them, so that each line tests one rule. */
#include "support/engine_harness.h"

/* C = A · B with tiles of 64 × 64 × 64. A has M rows, which begin again behind the last one, and
 * B has all columns of a tile; K is masked. */
static const char kernel[] =
    "module {\n"
    "tt.func public @k(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, "
    "%b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, "
    "%c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %M: i32, %N: i32, %K: i32, %sa: i32, "
    "%sb: i32, %index: !tt.ptr<i32>, %flag: i1, %head: i64) {\n"
    "%c0 = arith.constant 0 : i32\n"
    "%c1 = arith.constant 1 : i32\n"
    "%c64 = arith.constant 64 : i32\n"
    "%c256 = arith.constant 256 : i32\n"
    "%zero = arith.constant dense<0.0> : tensor<64x64xf32>\n"
    "%none = arith.constant dense<0.0> : tensor<64x64xf16>\n"
    "%one = arith.constant dense<1.0> : tensor<64x64xf16>\n"
    "%all = arith.constant dense<true> : tensor<64x64xi1>\n"
    "%nothing = arith.constant dense<0> : tensor<64xi32>\n"
    "%far500 = arith.constant dense<500> : tensor<64xi32>\n"
    "%loaded = tt.load %index : !tt.ptr<i32>\n"
    "%range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
    "%pid = tt.get_program_id x : i32\n"
    "%tile = arith.muli %pid, %c1 : i32\n"
    "%first = arith.muli %tile, %c64 : i32\n"
    "%firsts = tt.splat %first : i32 -> tensor<64xi32>\n"
    "%rows0 = arith.addi %firsts, %range : tensor<64xi32>\n"
    "%Ms = tt.splat %M : i32 -> tensor<64xi32>\n"
    "%Ns = tt.splat %N : i32 -> tensor<64xi32>\n"
    "%below = arith.cmpi slt, %rows0, %Ms : tensor<64xi32>\n"
    "%rows = arith.remsi %rows0, %Ms : tensor<64xi32>\n"
    "%rows_c = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>\n"
    "%ra = tt.splat %sa : i32 -> tensor<64x1xi32>\n"
    "%far = arith.muli %rows_c, %ra : tensor<64x1xi32>\n"
    "%far_b = tt.broadcast %far : tensor<64x1xi32> -> tensor<64x64xi32>\n"
    "%k_r = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>\n"
    "%k_b = tt.broadcast %k_r : tensor<1x64xi32> -> tensor<64x64xi32>\n"
    "%ao = arith.addi %far_b, %k_b : tensor<64x64xi32>\n"
    "%a0 = tt.splat %a : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>\n"
    "%ap = tt.addptr %a0, %ao : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>\n"
    "%k_c = tt.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>\n"
    "%rb = tt.splat %sb : i32 -> tensor<64x1xi32>\n"
    "%bfar = arith.muli %k_c, %rb : tensor<64x1xi32>\n"
    "%bfar_b = tt.broadcast %bfar : tensor<64x1xi32> -> tensor<64x64xi32>\n"
    "%n_b = tt.broadcast %k_r : tensor<1x64xi32> -> tensor<64x64xi32>\n"
    "%bo = arith.addi %bfar_b, %n_b : tensor<64x64xi32>\n"
    "%b0 = tt.splat %b : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>\n"
    "%bp = tt.addptr %b0, %bo : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>\n"
    "%as = arith.constant dense<64> : tensor<64x64xi32>\n"
    "%bstep = arith.muli %sb, %c64 : i32\n"
    "%bs = tt.splat %bstep : i32 -> tensor<64x64xi32>\n"
    "%cs = arith.constant dense<64> : tensor<64x1xi32>\n"
    "%c_rows = tt.expand_dims %rows0 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>\n"
    "%c_far = arith.muli %c_rows, %cs : tensor<64x1xi32>\n"
    "%c_far_b = tt.broadcast %c_far : tensor<64x1xi32> -> tensor<64x64xi32>\n"
    "%co = arith.addi %c_far_b, %n_b : tensor<64x64xi32>\n"
    "%c_0 = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>\n"
    "%cp = tt.addptr %c_0, %co : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>\n"
    "%below_c = tt.expand_dims %below {axis = 1 : i32} : tensor<64xi1> -> tensor<64x1xi1>\n"
    "%cm = tt.broadcast %below_c : tensor<64x1xi1> -> tensor<64x64xi1>\n"
    "%sum:3 = scf.for %i = %c0 to %K step %c64 iter_args(%acc = %zero, %pa = %ap, %pb = %bp) -> "
    "(tensor<64x64xf32>, tensor<64x64x!tt.ptr<f16>>, tensor<64x64x!tt.ptr<f16>>) : i32 {\n"
    "%rest = arith.subi %K, %i : i32\n"
    "%rest_r = tt.splat %rest : i32 -> tensor<1x64xi32>\n"
    "%rest_c = tt.splat %rest : i32 -> tensor<64x1xi32>\n"
    "%mr = arith.cmpi slt, %k_r, %rest_r : tensor<1x64xi32>\n"
    "%mc = arith.cmpi slt, %k_c, %rest_c : tensor<64x1xi32>\n"
    "%ma = tt.broadcast %mr : tensor<1x64xi1> -> tensor<64x64xi1>\n"
    "%mb = tt.broadcast %mc : tensor<64x1xi1> -> tensor<64x64xi1>\n"
    "%x = tt.load %pa, %ma, %none : tensor<64x64x!tt.ptr<f16>>\n"
    "%y = tt.load %pb, %mb, %none : tensor<64x64x!tt.ptr<f16>>\n"
    "%d = tt.dot %x, %y, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>\n"
    "%pa1 = tt.addptr %pa, %as : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>\n"
    "%pb1 = tt.addptr %pb, %bs : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>\n"
    "scf.yield %d, %pa1, %pb1 : tensor<64x64xf32>, tensor<64x64x!tt.ptr<f16>>, "
    "tensor<64x64x!tt.ptr<f16>>\n"
    "}\n"
    "tt.store %cp, %sum#0, %cm : tensor<64x64x!tt.ptr<f32>>\n"
    "tt.return\n"
    "}\n"
    "}\n";

enum { MOST_CHANGES = 4 };

/* Every occurrence of the first text becomes the second one. */
typedef struct change {
    const char *from, *to;
} change;

typedef struct form {
    const char *name;
    uint32_t maps;
    change changes[MOST_CHANGES];
} form;

static void replace_all(lilac_text *text, const change *c, const char *name) {
    lilac_text result = {0};
    const char *at = lilac_text_get(text), *next = strstr(at, c->from);
    if (next == NULL) {
        fail_msg("%s: there is no '%s'", name, c->from);
    }
    for (; next != NULL; at = next + strlen(c->from), next = strstr(at, c->from)) {
        lilac_text_printf(&result, "%.*s%s", (int)(next - at), at, c->to);
    }
    lilac_text_puts(&result, at);
    lilac_text_clear(text);
    *text = result;
}

static uint32_t count_maps(const lilac_tile_function *f) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->parameter_count && f->parameter_attributes != NULL; i++) {
        count += lilac_tile_find(&f->parameter_attributes[i], "lilac.launch_map") != NULL;
    }
    return count;
}

/* Has some parameter that is a map another base than b? */
static bool has_other_map(const lilac_tile_function *f) {
    bool other = false;
    for (uint32_t i = 0; i < f->parameter_count && f->parameter_attributes != NULL; i++) {
        other |= lilac_tile_find(&f->parameter_attributes[i], "lilac.launch_map") != NULL &&
                 f->parameters[i]->name[0] != 'b';
    }
    return other;
}

/* only_b: the load of a stays. */
static void check(const form *f, uint32_t stages, uint32_t ctas, bool only_b) {
    program p;
    lilac_text text = {0};
    bool changed;
    lilac_text_puts(&text, kernel);
    for (uint32_t i = 0; i < MOST_CHANGES && f->changes[i].from != NULL; i++) {
        replace_all(&text, &f->changes[i], f->name);
    }
    program_read(&p, "k.ttir", lilac_text_get(&text), text.length, 4);
    if (p.module == NULL || !lilac_tile_verify(p.module, false)) {
        fail_with_diagnostics(p.context, f->name);
    }
    p.target.launch_maps = true;
    p.target.num_stages = stages;
    p.target.num_ctas = ctas;
    assert_true(lilac_engine_describe_loads(p.module, &p.target, &changed));
    if (!lilac_tile_verify(p.module, false)) {
        fail_with_diagnostics(p.context, f->name);
    }
    const uint32_t maps = count_maps(p.module->functions);
    if (maps != f->maps || changed != (maps > 0)) {
        fail_msg("%s: %u maps, not %u", f->name, maps, f->maps);
    }
    if (only_b && has_other_map(p.module->functions)) {
        fail_msg("%s: a has a map", f->name);
    }
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_TT_DESCRIPTOR_LOAD) > 0, maps > 0);
    lilac_text_clear(&text);
    program_clear(&p);
}

/* ---- forms that have maps -------------------------------------------------------------------- */

#define ROWS   "%rows = arith.remsi %rows0, %Ms"
#define A_LOAD "%x = tt.load %pa, %ma, %none"
#define STORE  "tt.store %cp, %sum#0, %cm : tensor<64x64x!tt.ptr<f32>>"
#define PID    "%pid = tt.get_program_id x : i32"
#define TILE   "%tile = arith.muli %pid, %c1"

/* A loop behind the first one that loads from b, too. Its products are added to a value. */
#define SECOND_LOOP(ADDED)                                                                         \
    "%more = scf.for %j = %c0 to %K step %c64 iter_args(%old = %zero) -> (tensor<64x64xf32>) : "   \
    "i32 {\n%w = tt.load %bp, %all, %none : tensor<64x64x!tt.ptr<f16>>\n"                          \
    "%e = tt.dot %one, %w, " ADDED " : tensor<64x64xf16> * tensor<64x64xf16> -> "                  \
    "tensor<64x64xf32>\n%next = arith.addf %old, %e : tensor<64x64xf32>\n"                         \
    "scf.yield %next : tensor<64x64xf32>\n}\n"                                                     \
    "tt.store %cp, %more, %cm : tensor<64x64x!tt.ptr<f32>>"

static void described(void **state) {
    (void)state;
    static const form forms[] = {
        {"the program", 2, {{0}}},
        {"a pitch is a quotient by a number",
         2,
         {{"%ra = tt.splat %sa",
           "%three = arith.constant 3 : i32\n%third = arith.divsi %sa, %three : "
           "i32\n%ra = tt.splat %third"}}},
        {"pointers advance by half of the step",
         2,
         {{"%c256 = arith.constant 256",
           "%c128 = arith.constant 128 : i32\n%c256 = arith.constant 256"},
          {"to %K step %c64", "to %K step %c128"},
          {"%rest = arith.subi %K, %i", "%two = arith.constant 2 : i32\n%half = arith.divsi %K, "
                                        "%two : i32\n%rest = arith.subi %half, %c64"}}},
        {"select",
         2,
         {{ROWS, "%rows = arith.select %below, %rows0, %nothing : tensor<64xi1>,"},
          {"tensor<64xi1>, : tensor<64xi32>", "tensor<64xi1>, tensor<64xi32>"}}},
        {"minimum",
         2,
         {{ROWS, "%less = arith.subi %M, %c1 : i32\n%last = tt.splat %less : i32 -> "
                 "tensor<64xi32>\n%rows = arith.minsi %rows0, %last"}}},
        {"the load has the mask, and the store none",
         2,
         {{ROWS, "%rows = arith.addi %rows0, %nothing"},
          {"%ma, %none", "%both, %none"},
          {"%x = tt", "%both = arith.andi %ma, %cm : tensor<64x64xi1>\n%x = tt"},
          {"%sum#0, %cm", "%sum#0"}}},
        {"rows are reduced along k only",
         2,
         {{"%d = tt.dot",
           "%h = \"tt.reduce\"(%x) <{axis = 1 : i32}> ({\n^bb0(%u: f16, %v: f16):\n%w = arith.addf "
           "%u, %v : f16\ntt.reduce.return %w : f16\n}) : (tensor<64x64xf16>) -> tensor<64xf16>\n"
           "%d = tt.dot"}}},
        {"both bounds of k",
         2,
         {{A_LOAD,
           "%low_r = tt.splat %lowest : i32 -> tensor<1x64xi32>\n%ml = arith.cmpi sge, %k_r, "
           "%low_r : tensor<1x64xi32>\n%mlb = tt.broadcast %ml : tensor<1x64xi1> -> "
           "tensor<64x64xi1>\n%m2 = arith.andi %ma, %mlb : tensor<64x64xi1>\n"
           "%x = tt.load %pa, %m2, %none"},
          {"%rest = arith", "%lowest = arith.subi %c0, %i : i32\n%rest = arith"}}},
        {"an unknown row that the mask bounds",
         2,
         {{ROWS, "%rows = arith.addi %rows0, %nothing"},
          {TILE, "%tile = arith.muli %loaded, %c1"},
          {A_LOAD,
           "%low = arith.cmpi sge, %rows0, %nothing : tensor<64xi32>\n%low_c = tt.expand_dims "
           "%low {axis = 1 : i32} : tensor<64xi1> -> tensor<64x1xi1>\n%low_b = tt.broadcast "
           "%low_c : tensor<64x1xi1> -> tensor<64x64xi1>\n%m1 = arith.andi %cm, %low_b : "
           "tensor<64x64xi1>\n%m2 = arith.andi %ma, %m1 : tensor<64x64xi1>\n"
           "%x = tt.load %pa, %m2, %none"}}},
        {"a stride of two factors",
         2,
         {{"%ra = tt.splat %sa", "%s2 = arith.muli %sa, %N : i32\n"
                                 "%ra = tt.splat %s2"}}},
        {"a group of tiles",
         2,
         {{TILE, "%group = arith.divsi %pid, %N : i32\n%tile = arith.remsi %group, %K"}}},
        {"transposed indices",
         2,
         {{"%rows_c = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>",
           "%rows_r = tt.expand_dims %rows {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>\n"
           "%rows_c = tt.trans %rows_r {order = array<i32: 1, 0>} : tensor<1x64xi32> -> "
           "tensor<64x1xi32>"}}},
        {"a matrix of several",
         2,
         {{"%a0 = tt.splat %a",
           "%z = tt.get_program_id z : i32\n%z64 = arith.extsi %z : i32 to i64\n"
           "%zo = arith.muli %z64, %head : i64\n%az = tt.addptr %a, %zo : "
           "!tt.ptr<f16>, i64\n%a0 = tt.splat %az"}}},
        {"two loads share a map",
         1,
         {{"%y = tt.load %pb, %mb, %none : tensor<64x64x!tt.ptr<f16>>",
           "%w = tt.load %pa, %ma, %none : tensor<64x64x!tt.ptr<f16>>\n"
           "%y = arith.addf %w, %none : tensor<64x64xf16>"},
          {ROWS, "%rows = arith.addi %rows0, %nothing"}}},
        {"a loop over tiles",
         2,
         {{PID, "scf.for %pid = %c0 to %N step %c1 : i32 {"}, {STORE, STORE "\n}"}}},
        {"tf32", 2, {{"f16", "f32"}, {"%y, %acc :", "%y, %acc, inputPrecision = tf32 :"}}},
        {"added to c by atomics",
         2,
         {{STORE, "%old = tt.atomic_rmw fadd, acq_rel, gpu, %cp, %sum#0, %cm : "
                  "(tensor<64x64x!tt.ptr<f32>>, "
                  "tensor<64x64xf32>, tensor<64x64xi1>) -> tensor<64x64xf32>"}}},
        {"a vector beside the tiles",
         2,
         {{"%d = tt.dot %x,",
           "%vp = tt.splat %a : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>\n"
           "%vq = tt.addptr %vp, %range : tensor<64x!tt.ptr<f16>>, tensor<64xi32>\n"
           "%v = tt.load %vq : tensor<64x!tt.ptr<f16>>\n"
           "%v_r = tt.expand_dims %v {axis = 0 : i32} : tensor<64xf16> -> tensor<1x64xf16>\n"
           "%v_b = tt.broadcast %v_r : tensor<1x64xf16> -> tensor<64x64xf16>\n"
           "%xv = arith.mulf %x, %v_b : tensor<64x64xf16>\n%d = tt.dot %xv,"}}},
        {"a divisor that is tested in front of the loop",
         2,
         {{"%rest = arith.subi %K, %i",
           "%q = arith.divsi %i, %N : i32\n%qs = tt.splat %q : i32 -> tensor<64x64xi32>\n"
           "%rest = arith.subi %K, %i"},
          {A_LOAD, "%pq = tt.addptr %pa, %qs : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>\n"
                   "%x = tt.load %pq, %all, %none"}}},
        {"another result of the pass is stored to c", 2, {{STORE, STORE "\n" STORE}}},
        {"another loop adds", 3, {{STORE, SECOND_LOOP("%old") "\n" STORE}}},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        check(&forms[i], 3, 1, false);
    }
}

/* ---- forms in which a has none, or none has -------------------------------------------------------------------- */

static void refused(void **state) {
    (void)state;
    static const form forms[] = {
        {"another loop starts from zero", 0, {{STORE, SECOND_LOOP("%zero") "\n" STORE}}},
        /* memory */
        {"the kernel writes a",
         0,
         {{"%as = arith", "tt.store %ap, %none : tensor<64x64x!tt.ptr<f16>>\n"
                          "%as = arith"}}},
        {"atomics on a",
         0,
         {{"%as = arith", "%old = tt.atomic_rmw fadd, acq_rel, gpu, %ap, %none, %all : "
                          "(tensor<64x64x!tt.ptr<f16>>, tensor<64x64xf16>, tensor<64x64xi1>) -> "
                          "tensor<64x64xf16>\n%as = arith"}}},
        {"assembly may write anything",
         0,
         {{"%as = arith", "%w = tt.elementwise_inline_asm \"mov.b32 $0, $1;\" {constraints = "
                          "\"=r,r\", packed_element = 1 : i32, pure = true} %range : "
                          "tensor<64xi32> -> tensor<64xi32>\n%as = arith"}}},
        {"volatile", 1, {{A_LOAD, A_LOAD " {isVolatile = true}"}}},
        /* rows that begin again */
        {"stored without a mask", 1, {{"%sum#0, %cm", "%sum#0"}}},
        {"added by atomics with another mask",
         1,
         {{STORE, "%old = tt.atomic_rmw fadd, acq_rel, gpu, %cp, %sum#0, %all : "
                  "(tensor<64x64x!tt.ptr<f32>>, "
                  "tensor<64x64xf32>, tensor<64x64xi1>) -> tensor<64x64xf32>"}}},
        {"stored with another bound",
         1,
         {{"%below = arith.cmpi slt, %rows0, %Ms", "%below = arith.cmpi slt, %rows0, %Ns"}}},
        {"stored with a weaker bound", 1, {{"%below = arith.cmpi slt", "%below = arith.cmpi sle"}}},
        {"stored with the bound of other numbers",
         1,
         {{"%below = arith.cmpi slt, %rows0, %Ms", "%below = arith.cmpi slt, %range, %Ms"}}},
        {"reduced over rows",
         1,
         {{"%d = tt.dot",
           "%h = \"tt.reduce\"(%x) <{axis = 0 : i32}> ({\n^bb0(%u: f16, %v: f16):\n%w = arith.addf "
           "%u, %v : f16\ntt.reduce.return %w : f16\n}) : (tensor<64x64xf16>) -> tensor<64xf16>\n"
           "%d = tt.dot"}}},
        {"columns of a product by itself are stored",
         0,
         {{"%x, %y, %acc", "%x, %xt, %acc"},
          {"%d = tt.dot", "%xt = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf16> -> "
                          "tensor<64x64xf16>\n%d = tt.dot"}}},
        {"stored in the next iteration, with its bound",
         1,
         {{PID, "%last = scf.for %pid = %c0 to %N step %c1 iter_args(%before = %zero) -> "
                "(tensor<64x64xf32>) : i32 {"},
          {STORE, "tt.store %cp, %before, %cm : tensor<64x64x!tt.ptr<f32>>\nscf.yield %sum#0 : "
                  "tensor<64x64xf32>\n}"}}},
        {"stored behind a conditional loop",
         1,
         {{STORE, "%r = scf.while (%v = %sum#0) : (tensor<64x64xf32>) -> tensor<64x64xf32> {\n"
                  "scf.condition(%flag) %v : tensor<64x64xf32>\n} do {\n^bb0(%v: "
                  "tensor<64x64xf32>):\nscf.yield %v : tensor<64x64xf32>\n}\n"
                  "tt.store %cp, %r : tensor<64x64x!tt.ptr<f32>>"}}},
        {"a remainder of numbers below minus the divisor",
         1,
         {{"%rows0 = arith.addi %firsts, %range",
           "%rows1 = arith.addi %firsts, %range : tensor<64xi32>\n%rows0 = arith.subi %rows1, "
           "%far500"},
          {"%Ms = tt.splat %M : i32 -> tensor<64xi32>",
           "%Ms = arith.constant dense<100> : tensor<64xi32>"}}},
        {"k begins again",
         0,
         {{"%k_r = tt.expand_dims %range", "%wrapped = arith.remsi %range, %Ns : tensor<64xi32>\n"
                                           "%k_r = tt.expand_dims %wrapped"},
          {"%ma, %none", "%all, %none"}}},
        /* masks */
        {"not a bound", 1, {{"%mr = arith.cmpi slt", "%mr = arith.cmpi ne"}}},
        {"unsigned", 1, {{"%mr = arith.cmpi slt", "%mr = arith.cmpi ult"}}},
        {"two bounds",
         1,
         {{A_LOAD,
           "%n_r = tt.splat %N : i32 -> tensor<1x64xi32>\n%mn = arith.cmpi slt, %k_r, %n_r : "
           "tensor<1x64xi32>\n%mnb = tt.broadcast %mn : tensor<1x64xi1> -> tensor<64x64xi1>\n"
           "%m2 = arith.andi %ma, %mnb : tensor<64x64xi1>\n%x = tt.load %pa, %m2, %none"}}},
        {"a product of 64 bits that may be negative",
         1,
         {{TILE, "%tile = arith.minsi %loaded, %c64"},
          {A_LOAD,
           "%tw = arith.extsi %tile : i32 to i64\n"
           "%c64w = arith.constant 64 : i64\n"
           "%fw = arith.muli %tw, %c64w : i64\n"
           "%fws = tt.splat %fw : i64 -> tensor<64xi64>\n"
           "%rw = arith.extsi %range : tensor<64xi32> to tensor<64xi64>\n"
           "%rows_w = arith.addi %fws, %rw : tensor<64xi64>\n"
           "%zw = arith.constant dense<0> : tensor<64xi64>\n"
           "%Mw = arith.extsi %Ms : tensor<64xi32> to tensor<64xi64>\n"
           "%lw = arith.cmpi sge, %rows_w, %zw : tensor<64xi64>\n"
           "%hw = arith.cmpi slt, %rows_w, %Mw : tensor<64xi64>\n"
           "%bw = arith.andi %lw, %hw : tensor<64xi1>\n"
           "%bw_c = tt.expand_dims %bw {axis = 1 : i32} : tensor<64xi1> -> tensor<64x1xi1>\n"
           "%bw_b = tt.broadcast %bw_c : tensor<64x1xi1> -> tensor<64x64xi1>\n"
           "%m2 = arith.andi %ma, %bw_b : tensor<64x64xi1>\n"
           "%rw_c = tt.expand_dims %rows_w {axis = 1 : i32} : tensor<64xi64> -> tensor<64x1xi64>\n"
           "%sw = arith.extsi %ra : tensor<64x1xi32> to tensor<64x1xi64>\n"
           "%farw = arith.muli %rw_c, %sw : tensor<64x1xi64>\n"
           "%farw_b = tt.broadcast %farw : tensor<64x1xi64> -> tensor<64x64xi64>\n"
           "%pw = tt.addptr %a0, %farw_b : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi64>\n"
           "%pk = tt.addptr %pw, %k_b : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>\n"
           "%is = tt.splat %i : i32 -> tensor<64x64xi32>\n"
           "%pi = tt.addptr %pk, %is : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>\n"
           "%x = tt.load %pi, %m2, %none"}}},
        {"a diagonal",
         1,
         {{"%ma = tt.broadcast %mr : tensor<1x64xi1> -> tensor<64x64xi1>",
           "%ma = arith.cmpi slt, %k_b, %c_far_b : tensor<64x64xi32>"}}},
        {"steps that cancel below a limit only",
         1,
         {{"%ma = tt.broadcast %mr : tensor<1x64xi1> -> tensor<64x64xi1>",
           "%wrap = arith.subi %rows, %rows0 : tensor<64xi32>\n%wrap_c = tt.expand_dims %wrap "
           "{axis "
           "= 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>\n%wrap_b = tt.broadcast %wrap_c : "
           "tensor<64x1xi32> -> tensor<64x64xi32>\n%sums = arith.addi %wrap_b, %k_b : "
           "tensor<64x64xi32>\n%rest_b = tt.broadcast %rest_r : tensor<1x64xi32> -> "
           "tensor<64x64xi32>\n%ma = arith.cmpi slt, %sums, %rest_b : tensor<64x64xi32>"}}},
        {"a bound that is loaded", 0, {{"%rest = arith.subi %K", "%rest = arith.subi %loaded"}}},
        {"masked elements are ones", 1, {{"%ma, %none", "%ma, %one"}}},
        {"a lower bound that is not where the tile begins",
         1,
         {{A_LOAD, "%one_r = tt.splat %c1 : i32 -> tensor<1x64xi32>\n%ml = arith.cmpi sge, %k_r, "
                   "%one_r : tensor<1x64xi32>\n%mlb = tt.broadcast %ml : tensor<1x64xi1> -> "
                   "tensor<64x64xi1>\n%m2 = arith.andi %ma, %mlb : tensor<64x64xi1>\n"
                   "%x = tt.load %pa, %m2, %none"}}},
        /* coordinates and strides */
        {"an unknown row", 1, {{TILE, "%tile = arith.muli %loaded, %c1"}}},
        {"a row that may be negative", 1, {{TILE, "%tile = arith.subi %c64, %pid"}}},
        {"a divisor that changes in the loop",
         0,
         {{"%rest = arith.subi %K, %i",
           "%di = arith.addi %i, %N : i32\n%q = arith.divsi %i, %di : i32\n"
           "%qs = tt.splat %q : i32 -> tensor<64x64xi32>\n%rest = arith.subi %K, %i"},
          {A_LOAD, "%pq = tt.addptr %pa, %qs : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>\n"
                   "%x = tt.load %pq, %all, %none"}}},
        {"a step that is a variable", 1, {{TILE, "%tile = arith.muli %pid, %loaded"}}},
        {"the loop begins at a number that may be negative",
         0,
         {{"%i = %c0 to", "%i = %loaded to"}}},
        {"no stride", 1, {{"%ra = tt.splat %sa : i32 ->", "%ra = arith.constant dense<0> :"}}},
        {"an unknown stride", 1, {{"%ra = tt.splat %sa", "%ra = tt.splat %loaded"}}},
        {"an extended bit as a stride",
         1,
         {{"%ra = tt.splat %sa", "%bit = arith.extsi %flag : i1 to i32\n%ra = tt.splat %bit"}}},
        {"no contiguous dimension",
         1,
         {{"%ao = arith.addi %far_b, %k_b", "%k_2 = arith.addi %k_b, %k_b : tensor<64x64xi32>\n"
                                            "%ao = arith.addi %far_b, %k_2"}}},
        {"a range of one element",
         1,
         {{"%k_b = tt.broadcast %k_r : tensor<1x64xi32>",
           "%r1 = tt.make_range {end = 1 : i32, start = 0 : i32} : tensor<1xi32>\n%r2 = "
           "tt.expand_dims %r1 {axis = 0 : i32} : tensor<1xi32> -> tensor<1x1xi32>\n"
           "%k_b = tt.broadcast %r2 : tensor<1x1xi32>"}}},
        /* products and loops */
        {"ieee", 0, {{"f16", "f32"}}},
        {"bytes along n", 0, {{"f16", "f8E4M3FN"}}},
        {"no sum", 0, {{"%x, %y, %acc", "%x, %y, %zero"}}},
        {"few iterations", 0, {{"to %K step", "to %c256 step"}}},
        {"a descriptor", 0, {{"%flag: i1", "%t: !tt.tensordesc<tensor<64x64xf16>>, %flag: i1"}}},
        {"a function that is called", 0, {{"tt.func public", "tt.func private"}}},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        check(&forms[i], 3, 1, forms[i].maps > 0);
    }
}

static void targets(void **state) {
    (void)state;
    static const form two = {"two stages", 2, {{0}}}, one = {"one stage", 0, {{0}}},
                      cluster = {"a cluster", 0, {{0}}};
    check(&two, 2, 1, false);
    check(&one, 1, 1, false);
    check(&cluster, 3, 2, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(described),
        cmocka_unit_test(refused),
        cmocka_unit_test(targets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
