/* pipeline_loops takes it that a kernel whose loop begins at the number of the program has one block on a
 * multiprocessor: products of one block hide less latency, so copies start earlier than in a kernel in which
 * each program has the same tiles. */
#include "support/engine_harness.h"

#include <lilac/driver.h>

/* A product of 128 × 128 × 64 for each tile. The first argument opens the loop over tiles, the second one
 * closes it. */
static const char kernel[] =
    "module {\n"
    "  tt.func public @k(%%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %%b: !tt.ptr<f16> "
    "{tt.divisibility = 16 : i32}, %%c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %%K: i32 "
    "{tt.divisibility = 16 : i32}, %%tiles: i32, %%part: i32) {\n"
    "    %%c0 = arith.constant 0 : i32\n"
    "    %%c1 = arith.constant 1 : i32\n"
    "    %%c64 = arith.constant 64 : i32\n"
    "    %%c132 = arith.constant 132 : i32\n"
    "    %%pid = tt.get_program_id x : i32\n"
    "    %%begin = arith.muli %%pid, %%part : i32\n"
    "    %%zero = arith.constant dense<0.0> : tensor<128x128xf32>\n"
    "    %%c128 = arith.constant 128 : i32\n"
    "    %%m = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>\n"
    "    %%k = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
    "    %%mc = tt.expand_dims %%m {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>\n"
    "    %%nr = tt.expand_dims %%m {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>\n"
    "    %%kr = tt.expand_dims %%k {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>\n"
    "    %%kc = tt.expand_dims %%k {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>\n"
    "    %%s = arith.constant dense<4096> : tensor<128x1xi32>\n"
    "    %%s64 = arith.constant dense<4096> : tensor<64x1xi32>\n"
    "    %%mo = arith.muli %%mc, %%s : tensor<128x1xi32>\n"
    "    %%ko = arith.muli %%kc, %%s64 : tensor<64x1xi32>\n"
    "    %%mb = tt.broadcast %%mo : tensor<128x1xi32> -> tensor<128x64xi32>\n"
    "    %%krb = tt.broadcast %%kr : tensor<1x64xi32> -> tensor<128x64xi32>\n"
    "    %%kb = tt.broadcast %%ko : tensor<64x1xi32> -> tensor<64x128xi32>\n"
    "    %%nb = tt.broadcast %%nr : tensor<1x128xi32> -> tensor<64x128xi32>\n"
    "    %%ao = arith.addi %%mb, %%krb : tensor<128x64xi32>\n"
    "    %%bo = arith.addi %%kb, %%nb : tensor<64x128xi32>\n"
    "    %%mb2 = tt.broadcast %%mo : tensor<128x1xi32> -> tensor<128x128xi32>\n"
    "    %%nb2 = tt.broadcast %%nr : tensor<1x128xi32> -> tensor<128x128xi32>\n"
    "    %%co = arith.addi %%mb2, %%nb2 : tensor<128x128xi32>\n"
    "    %s\n"
    "      %%first = arith.muli %%tile, %%c128 : i32\n"
    "      %%at = tt.addptr %%a, %%first : !tt.ptr<f16>, i32\n"
    "      %%to = tt.addptr %%c, %%first : !tt.ptr<f32>, i32\n"
    "      %%ap = tt.splat %%at : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>>\n"
    "      %%bp = tt.splat %%b : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>\n"
    "      %%cp = tt.splat %%to : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>\n"
    "      %%sum = scf.for %%i = %%c0 to %%K step %%c64 iter_args(%%d = %%zero) -> "
    "(tensor<128x128xf32>) : i32 {\n"
    "        %%is = tt.splat %%i : i32 -> tensor<128x64xi32>\n"
    "        %%io = arith.addi %%ao, %%is : tensor<128x64xi32>\n"
    "        %%pa = tt.addptr %%ap, %%io : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>\n"
    "        %%js = tt.splat %%i : i32 -> tensor<64x128xi32>\n"
    "        %%jo = arith.addi %%bo, %%js : tensor<64x128xi32>\n"
    "        %%pb = tt.addptr %%bp, %%jo : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>\n"
    "        %%x = tt.load %%pa : tensor<128x64x!tt.ptr<f16>>\n"
    "        %%y = tt.load %%pb : tensor<64x128x!tt.ptr<f16>>\n"
    "        %%e = tt.dot %%x, %%y, %%d : tensor<128x64xf16> * tensor<64x128xf16> -> "
    "tensor<128x128xf32>\n"
    "        scf.yield %%e : tensor<128x128xf32>\n"
    "      }\n"
    "      %%pc = tt.addptr %%cp, %%co : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>\n"
    "      tt.store %%pc, %%sum : tensor<128x128x!tt.ptr<f32>>\n"
    "    %s\n"
    "    tt.return\n"
    "  }\n"
    "}\n";

static void find_ring(void *data, lilac_tile_op *op) {
    if (op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC && op->operand_count == 0) {
        *(int64_t *)data = op->results[0].type->shape[0];
    }
}

static int64_t buffers(const char *open, const char *close) {
    lilac_context *context = lilac_context_create();
    lilac_text text;
    lilac_text_init(&text);
    lilac_text_printf(&text, kernel, open, close);
    lilac_options options;
    lilac_options_init(&options);
    options.target = (lilac_target){
        .arch = lilac_arch_find("sm_90a"), .num_warps = 4, .num_ctas = 1, .num_stages = 4};
    options.stop_after = "pipeline_loops";
    lilac_compilation result;
    if (!lilac_compile(&result, context,
                       lilac_source_add(context, "k", lilac_text_get(&text), text.length),
                       &options)) {
        fail_with_diagnostics(context, "the kernel was refused");
    }
    int64_t count = 0;
    lilac_tile_walk(result.tile->functions->body, find_ring, &count);
    lilac_compilation_clear(&result);
    lilac_text_clear(&text);
    lilac_context_destroy(context);
    return count;
}

static void persistent_programs_copy_earlier(void **state) {
    (void)state;
    static const struct {
        const char *open, *close;
        int64_t buffers;
    } cases[] = {
        {"scf.for %tile = %c0 to %tiles step %c1 : i32 {", "}", 3},
        {"scf.for %tile = %pid to %tiles step %c132 : i32 {", "}", 5},
        {"scf.for %g = %c0 to %tiles step %c1 : i32 {\n"
         "scf.for %tile = %pid to %tiles step %c132 : i32 {",
         "}\n}", 5},
        {"%r = scf.while (%t = %begin) : (i32) -> i32 {\n"
         "%more = arith.cmpi slt, %t, %tiles : i32\nscf.condition(%more) %t : i32\n} do {\n"
         "^bb0(%tile: i32):",
         "%next = arith.addi %tile, %c1 : i32\nscf.yield %next : i32\n}", 5},
        {"%r = scf.while (%t = %part) : (i32) -> i32 {\n"
         "%more = arith.cmpi slt, %t, %tiles : i32\nscf.condition(%more) %t : i32\n} do {\n"
         "^bb0(%tile: i32):",
         "%next = arith.addi %tile, %c1 : i32\nscf.yield %next : i32\n}", 3},
        {"%last = scf.for %g = %c0 to %tiles step %c1 iter_args(%f = %pid) -> (i32) : i32 {\n"
         "%r = scf.while (%t = %f) : (i32) -> i32 {\n"
         "%more = arith.cmpi slt, %t, %tiles : i32\nscf.condition(%more) %t : i32\n} do {\n"
         "^bb0(%tile: i32):",
         "%next = arith.addi %tile, %c132 : i32\nscf.yield %next : i32\n}\nscf.yield %r : i32\n}",
         5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t found = buffers(cases[i].open, cases[i].close);
        if (found != cases[i].buffers) {
            fail_msg("%lld buffers, not %lld:\n%s", (long long)found, (long long)cases[i].buffers,
                     cases[i].open);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(persistent_programs_copy_earlier)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
