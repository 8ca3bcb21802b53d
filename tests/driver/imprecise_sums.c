/* maxNumImpreciseAcc: how many terms wgmma adds before f32 does, from the text of the kernel. */
#include <lilac/driver.h>

#include "support/test.h"

static const char product[] =
    "module {\n"
    "  tt.func public @k(%%a: !tt.ptr<%s> {tt.divisibility = 16 : i32}, %%c: !tt.ptr<%s>) {\n"
    "    %%r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>\n"
    "    %%rows = tt.expand_dims %%r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>\n"
    "    %%width = arith.constant dense<128> : tensor<128x1xi32>\n"
    "    %%down = arith.muli %%rows, %%width : tensor<128x1xi32>\n"
    "    %%columns = tt.expand_dims %%r {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>\n"
    "    %%d0 = tt.broadcast %%down : tensor<128x1xi32> -> tensor<128x128xi32>\n"
    "    %%c0 = tt.broadcast %%columns : tensor<1x128xi32> -> tensor<128x128xi32>\n"
    "    %%at = arith.addi %%d0, %%c0 : tensor<128x128xi32>\n"
    "    %%s = tt.splat %%a : !tt.ptr<%s> -> tensor<128x128x!tt.ptr<%s>>\n"
    "    %%p = tt.addptr %%s, %%at : tensor<128x128x!tt.ptr<%s>>, tensor<128x128xi32>\n"
    "    %%x = tt.load %%p : tensor<128x128x!tt.ptr<%s>>\n"
    "    %%y = tt.trans %%x {order = array<i32: 1, 0>} : tensor<128x128x%s> -> "
    "tensor<128x128x%s>\n"
    "    %%t = tt.splat %%c : !tt.ptr<%s> -> tensor<128x128x!tt.ptr<%s>>\n"
    "    %%q = tt.addptr %%t, %%at : tensor<128x128x!tt.ptr<%s>>, tensor<128x128xi32>\n"
    "    %%z = tt.load %%q : tensor<128x128x!tt.ptr<%s>>\n"
    "    %%d = tt.dot %%x, %%y, %%z %s: tensor<128x128x%s> * tensor<128x128x%s> -> "
    "tensor<128x128x%s>\n"
    "    tt.store %%q, %%d : tensor<128x128x!tt.ptr<%s>>\n"
    "    tt.return\n"
    "  }\n"
    "}\n";

static uint32_t count(const char *text, const char *word) {
    uint32_t found = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        found++;
    }
    return found;
}

typedef struct sums_case {
    const char *in, *out, *limit;
    uint32_t warps, products, groups, additions;
} sums_case;

/* 128 × 128 × 128. An instruction of 8-bit floats has 32 terms; a thread of 4 warps has 128
 * accumulators, in two blocks, which are groups of their own where sums are added. */
static const sums_case cases[] = {
    {"f8E4M3FN", "f32", "{maxNumImpreciseAcc = 32 : i32} ", 4, 8, 8, 512},
    {"f8E4M3FN", "f32", "", 4, 8, 8, 512},
    {"f8E5M2", "f32", "{maxNumImpreciseAcc = 64 : i32} ", 4, 8, 4, 256},
    {"f8E4M3FN", "f32", "{maxNumImpreciseAcc = 128 : i32} ", 4, 8, 2, 128},
    {"f8E4M3FN", "f32", "{maxNumImpreciseAcc = 129 : i32} ", 4, 8, 1, 0},
    {"f8E4M3FN", "f32", "{maxNumImpreciseAcc = 1073741824 : i32} ", 4, 8, 1, 0},
    {"f8E4M3FN", "f32", "{maxNumImpreciseAcc = 32 : i32} ", 8, 4, 4, 256},
    {"f16", "f32", "{maxNumImpreciseAcc = 32 : i32} ", 8, 8, 1, 0},
};

static void sums(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const sums_case *c = &cases[i];
        const char *in = c->in, *out = c->out;
        lilac_text text = {0};
        lilac_text_printf(&text, product, in, out, in, in, in, in, in, in, out, out, out, out,
                          c->limit, in, in, out, out);
        lilac_context *context = lilac_context_create();
        lilac_options options;
        lilac_compilation compilation = {0};
        lilac_options_init(&options);
        options.verify = true;
        options.target.num_warps = c->warps;
        const uint32_t source =
            lilac_source_add(context, "k.ttir", lilac_text_get(&text), text.length);
        if (!lilac_compile(&compilation, context, source, &options)) {
            fail_msg("case %zu: %s", i, lilac_diagnostics(context)->message);
        }
        const char *ptx = lilac_text_get(&compilation.ptx);
        if (count(ptx, "wgmma.mma_async") != c->products ||
            count(ptx, "wgmma.commit_group") != c->groups ||
            count(ptx, "add.f32") != c->additions) {
            fail_msg("case %zu: %u products, %u groups, %u additions", i,
                     count(ptx, "wgmma.mma_async"), count(ptx, "wgmma.commit_group"),
                     count(ptx, "add.f32"));
        }
        lilac_compilation_clear(&compilation);
        lilac_context_destroy(context);
        lilac_text_clear(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
