/* Random kernels of accesses between barriers leave the same memory after
 * lilac_simt_opt_rematerialize_addresses. Where it changes a kernel, no address is used by accesses on both
 * sides of a barrier, except those with other uses behind a barrier. */
#include <lilac/sim.h>

#include "support/test.h"

enum { THREADS = 64, ARRAYS = 3, INDICES = 8, SLOT = 2 * INDICES, CASES = 400, STEPS = 150 };

typedef struct generator {
    lilac_text *out;
    lilac_random *random;
    uint32_t sum; /* the number of the latest sum of what was read */
    bool other_uses;
} generator;

static uint32_t below(const generator *g, uint32_t bound) {
    return (uint32_t)lilac_random_below(g->random, bound);
}

/* A thread has SLOT words of each array, two for each index. */
static void put_addresses(const generator *g) {
    lilac_text_puts(g->out,
                    "%t = thread : i32\n%slot = const 16 : i32\n%first = mul %t, %slot : i32\n"
                    "%four = const 4 : i32\n");
    for (uint32_t a = 0; a < ARRAYS; a++) {
        lilac_text_printf(g->out, "%%a%u = param %u : i64\n", a, a);
    }
    for (uint32_t i = 0; i < INDICES; i++) {
        lilac_text_printf(g->out, "%%c%u = const %u : i32\n%%i%u = add %%first, %%c%u : i32\n", i,
                          2 * i, i, i);
        lilac_text_printf(g->out, "%%o%u = %s %%i%u, %%four : i64\n", i,
                          below(g, 2) == 0 ? "mulwide_s" : "mulwide_u", i);
        for (uint32_t a = 0; a < ARRAYS; a++) {
            const bool swapped = below(g, 2) == 0;
            lilac_text_printf(g->out, "%%p%u_%u = add %%%c%u, %%%c%u : i64\n", a, i,
                              swapped ? 'o' : 'a', swapped ? i : a, swapped ? 'a' : 'o',
                              swapped ? a : i);
        }
    }
}

static void put_step(generator *g) {
    const uint32_t array = below(g, ARRAYS), index = below(g, INDICES), offset = 4 * below(g, 2);
    const char *predicate = below(g, 3) == 0 ? ", %some" : "";
    switch (below(g, g->other_uses ? 9 : 8)) {
    case 0:
        lilac_text_puts(g->out, "barrier\n");
        break;
    case 1:
    case 2:
    case 3:
        lilac_text_printf(g->out, "st.global [%%p%u_%u + %u]%s, (%%s%u)\n", array, index, offset,
                          predicate, g->sum);
        break;
    case 8:
        lilac_text_printf(g->out, "%%v%u = trunc %%p%u_%u : i32\n%%s%u = xor %%s%u, %%v%u : i32\n",
                          g->sum, array, index, g->sum + 1, g->sum, g->sum);
        g->sum++;
        break;
    default:
        lilac_text_printf(g->out,
                          "%%v%u = ld.global [%%p%u_%u + %u]%s : i32\n"
                          "%%s%u = add %%s%u, %%v%u : i32\n",
                          g->sum, array, index, offset, predicate, g->sum + 1, g->sum, g->sum);
        g->sum++;
    }
}

static void generate(generator *g) {
    lilac_text_puts(g->out,
                    "simt.module target \"sm_90a\" {\nkernel @k(%a0: i64 ptr align 16, %a1: i64 "
                    "ptr align 16, %a2: i64 ptr align 16) warps 2 ctas 1 shared 0 {\n");
    put_addresses(g);
    lilac_text_puts(g->out,
                    "%half = const 31 : i32\n%some = cmp lt %t, %half : i1\n%s0 = add %t, %four "
                    ": i32\n");
    for (uint32_t steps = 4 + below(g, STEPS); steps > 0; steps--) {
        put_step(g);
    }
    lilac_text_printf(g->out, "st.global [%%p0_0], (%%s%u)\nreturn\n}\n}\n", g->sum);
}

static void execute(lilac_context *context, const lilac_simt_module *module,
                    uint32_t memory[ARRAYS][THREADS * SLOT]) {
    lilac_sim_buffer buffers[ARRAYS];
    uint64_t arguments[ARRAYS];
    for (uint32_t a = 0; a < ARRAYS; a++) {
        buffers[a] = (lilac_sim_buffer){
            .name = "array", .bytes = (uint8_t *)memory[a], .size = sizeof memory[a]};
    }
    lilac_sim_place(buffers, ARRAYS);
    for (uint32_t a = 0; a < ARRAYS; a++) {
        arguments[a] = buffers[a].address;
    }
    const lilac_sim_launch launch = {.kernel = module->kernels,
                                     .grid = {1, 1, 1},
                                     .arguments = arguments,
                                     .argument_count = ARRAYS,
                                     .buffers = buffers,
                                     .buffer_count = ARRAYS,
                                     .threads = 1};
    lilac_sim_counters counters = {0};
    assert_true(lilac_sim_run(context, &launch, &counters));
}

/* The accesses whose address an access in front of an earlier barrier uses, too. */
static uint32_t old_addresses(const lilac_simt_kernel *kernel) {
    uint32_t count = 0, segment = 1;
    uint32_t *first = calloc(kernel->value_count, sizeof *first);
    for (const lilac_simt_instruction *i = kernel->body->first; i != NULL; i = i->next) {
        if (i->code == LILAC_SIMT_OP_LD_GLOBAL || i->code == LILAC_SIMT_OP_ST_GLOBAL) {
            uint32_t *address = &first[i->operands[0]];
            *address = *address == 0 ? segment : *address;
            count += *address < segment;
        }
        segment += i->code == LILAC_SIMT_OP_BARRIER;
    }
    free(first);
    return count;
}

static bool same(generator *g) {
    static uint32_t wanted[ARRAYS][THREADS * SLOT], got[ARRAYS][THREADS * SLOT];
    lilac_text text = {0};
    g->out = &text;
    generate(g);
    for (uint32_t a = 0; a < ARRAYS; a++) {
        for (uint32_t w = 0; w < THREADS * SLOT; w++) {
            wanted[a][w] = got[a][w] = (uint32_t)lilac_random_next(g->random);
        }
    }
    lilac_context *context = lilac_context_create();
    lilac_simt_module *module =
        lilac_simt_read(context, lilac_source_add(context, "tests", text.bytes, text.length));
    if (module == NULL || !lilac_simt_verify(module)) {
        fail_msg("%s", text.bytes);
    }
    execute(context, module, wanted);
    const uint32_t before = old_addresses(module->kernels);
    const bool changed = lilac_simt_opt_rematerialize_addresses(module->kernels);
    const uint32_t after = old_addresses(module->kernels);
    assert_true(lilac_simt_verify(module));
    execute(context, module, got);
    if (memcmp(wanted, got, sizeof got) != 0) {
        fail_msg("other results:\n%s", text.bytes);
    }
    assert_true(changed ? after < before : after == before);
    assert_true(!changed || g->other_uses || after == 0);
    assert_false(lilac_simt_opt_rematerialize_addresses(module->kernels) && !g->other_uses);
    lilac_text_clear(&text);
    lilac_simt_module_destroy(module);
    lilac_context_destroy(context);
    return changed;
}

static void random_accesses(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 31);
    uint32_t changed = 0;
    for (uint32_t round = 0; round < CASES; round++) {
        generator g = {.random = &random, .other_uses = round % 2 == 1};
        changed += same(&g);
    }
    assert_in_range(changed, CASES / 4, CASES - CASES / 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_accesses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
