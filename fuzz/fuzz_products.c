/* Products of matrices whose tiles, bounds and loops are the fuzzer's bytes, compiled with tensor maps of the
 * launcher, with divided sums and with a requested schedule of the loop, which the compiler may refuse. The
 * simulator must compute what the interpreter says that the source means, without a finding, for each
 * number of blocks that divide a sum. */
#include "support/product_launches.h"

#include <lilac/schedule.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct choices {
    const uint8_t *bytes;
    size_t left;
} choices;

/* Below `bound`; 0 past the end. */
static uint32_t choose(choices *c, uint32_t bound) {
    if (c->left == 0) {
        return 0;
    }
    c->left--;
    return *c->bytes++ % bound;
}

static product_case chosen_case(choices *from) {
    static const lilac_scalar scalars[] = {LILAC_F16, LILAC_BF16, LILAC_F32, LILAC_F8E4M3FN,
                                           LILAC_I8};
    product_case c = {.scalar = scalars[choose(from, 5)],
                      .warps = 1U << choose(from, 4),
                      .stages = 1 + choose(from, 4),
                      .m = 32U << choose(from, 3),
                      .n = 32U << choose(from, 2),
                      .a_along_k = choose(from, 2) == 0,
                      .b_along_k = choose(from, 2) == 0,
                      .m_form = (bound_form)choose(from, BOUND_FORMS),
                      .n_form = (bound_form)choose(from, BOUND_FORMS),
                      .k_form = choose(from, 3) == 0 ? UNBOUNDED : MASKED,
                      .carried = choose(from, 2) == 0,
                      .counts_tiles = choose(from, 2) == 0,
                      .sum_mask = choose(from, 2) == 0,
                      .from_first = choose(from, 3) == 0,
                      .planar = choose(from, 2) == 0,
                      .aligned = choose(from, 2) == 0,
                      .asked = choose(from, 4) == 1,
                      .twice_a = choose(from, 5) == 1,
                      .twice_b = choose(from, 5) == 1};
    const bool bytes = lilac_scalar_bits(c.scalar) == 8;
    c.k = (bytes ? 32U : 16U) << choose(from, 3);
    c.batches = !c.planar && choose(from, 2) == 0;
    c.scaled = !bytes && c.a_along_k && choose(from, 4) == 1;
    c.one_block = choose(from, 3) == 1;
    return c;
}

/* Some keys with values; empty if the bytes end here. */
static void put_request(lilac_text *text, choices *from) {
    const uint32_t count = choose(from, 4);
    lilac_schedule schedule = {.has = {false}};
    for (uint32_t i = 0; i < count; i++) {
        const lilac_schedule_key key = (lilac_schedule_key)choose(from, LILAC_SCHEDULE_KEYS);
        const uint32_t least = lilac_schedule_is_number(key), most = lilac_schedule_most(key);
        const uint32_t values = key == LILAC_SCHEDULE_DISTANCE || key == LILAC_SCHEDULE_BUFFERS
                                    ? 6 /* the more likely ones */
                                    : most - least + 1;
        lilac_schedule_add(&schedule, key, least + choose(from, values));
    }
    if (count > 0) {
        lilac_schedule_print(text, &schedule);
    }
}

/* False: refused, as only a kernel with a request may be. */
static bool compile_request(compiled *made, const product_case *c, const char *request) {
    lilac_text text = {0};
    lilac_options options;
    *made = (compiled){.context = lilac_context_create()};
    put_case(&text, c);
    const uint32_t source =
        lilac_source_add(made->context, "k.ttir", lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
    made->source = lilac_tile_read(made->context, source);
    assert_true(made->source != NULL && lilac_tile_verify(made->source, false));
    lilac_options_init(&options);
    options.target = (lilac_target){.arch = lilac_arch_find("sm_90a"),
                                    .num_warps = c->warps,
                                    .num_ctas = 1,
                                    .num_stages = c->stages,
                                    .launch_maps = true,
                                    .split_sums = c->planar,
                                    .one_block = c->one_block};
    options.verify = true;
    options.schedules = &request;
    options.schedule_count = *request != '\0';
    if (!lilac_compile(&made->result, made->context, source, &options)) {
        const lilac_diagnostic *why = lilac_diagnostics(made->context);
        if (*request == '\0' || why == NULL || made->result.malformed != 0) {
            fail_with_diagnostics(made->context, "refused");
        }
        return false;
    }
    assert_true(lilac_launch_maps_get(&made->recipes, lilac_context_arena(made->context),
                                      made->result.tile->functions));
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    choices from = {data, size};
    const product_case c = chosen_case(&from);
    lilac_text request = {0};
    lilac_random random;
    lilac_random_seed(&random, choose(&from, 256));
    sizes s = random_sizes(&random, &c);
    put_request(&request, &from);
    compiled made;
    if (compile_request(&made, &c, lilac_text_get(&request))) {
        const uint32_t most = made.recipes.split.divisor > 0 ? 8 : 1;
        for (s.parts = 1; s.parts <= most; s.parts *= 2) {
            if (!launch(&made, &c, &s, LAUNCHED).right) {
                fprintf(stderr, "%u parts, schedule '%s'\n", s.parts, lilac_text_get(&request));
                complain(&c, &made, &s, "wrong");
            }
        }
    }
    compiled_clear(&made);
    lilac_text_clear(&request);
    return 0;
}
