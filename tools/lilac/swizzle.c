/* lilac swizzle: the memory layout that exchanges a tensor between two layouts with the fewest
 * wavefronts.
 *
 * It is the memory of the plan's shared-memory exchange, with the names that are in use for such
 * layouts: Triton's and CuTe's names, where it has one, and a formula for the offset. Row-major
 * memory and the lower bound for all layouts are printed for comparison. Both are simulated.
 */
#include "conversion.h"
#include "names.h"
#include "offsets.h"

#include <string.h>

typedef struct swizzle_answers {
    pair_answers all; /* they disagree: a simulation with its plan */
    bool json;
    conversion_device device;
    lilac_plan_options options;
} swizzle_answers;

/* The facts about one memory layout. */
typedef struct swizzle {
    conversion best, plain;
    bool has_plain;
    lilac_layout offsets;
    lilac_text named, cute, formula; /* empty: there is none */
} swizzle;

/* ---- names ------------------------------------------------------------------------------ */

static void find_names(swizzle *s, lilac_context *context, uint32_t element_bits) {
    const lilac_layout *memory = &s->best.plan.staging.memory;
    lilac_cute cute;
    (void)names_put_triton(&s->named, context, memory, element_bits);
    if (lilac_cute_of_layout(&cute, memory, NULL)) {
        lilac_cute_print(&s->cute, &cute);
    }
    if (offsets_of(&s->offsets, memory, NULL)) {
        offsets_put_formula(&s->formula, &s->offsets);
    }
}

/* ---- one pair --------------------------------------------------------------------------- */

static bool work_out(swizzle_answers *answers, lilac_context *context, const type_pair *types,
                     swizzle *s) {
    lilac_plan_options options = answers->options;
    options.strategy = LILAC_PLAN_BY_SHARED;
    if (!conversion_make(&s->best, context, types, &options, &answers->device)) {
        return false;
    }
    answers->all.disagree |= !conversion_check(&s->best, context);
    if (!s->best.checked.ran) {
        return false;
    }
    options.strategy = LILAC_PLAN_UNSWIZZLED;
    s->has_plain = conversion_make(&s->plain, context, types, &options, &answers->device);
    if (s->has_plain) {
        answers->all.disagree |= !conversion_check(&s->plain, context);
    } else {
        lilac_diagnostics_reset(context); /* such as too much memory: there is no comparison */
    }
    find_names(s, context, types->type[0].element_bits);
    return true;
}

/* ---- answers ---------------------------------------------------------------------------- */

static const char *plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

static uint32_t access_bytes(const lilac_plan_access *access) {
    return access->element_bytes << access->vector_bits;
}

/* Steps whose distance is a constant that an address may be added to: no other part of the address
 * has those bits. The others are xored. */
static uint32_t immediate_steps(const lilac_plan_access *access) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < access->step_bits; i++) {
        uint64_t others = 0;
        for (uint32_t j = 0; j < access->step_bits; j++) {
            others |= j != i ? access->step[j] : 0;
        }
        for (uint32_t j = 0; j < access->lane_bits; j++) {
            others |= access->lane[j];
        }
        for (uint32_t j = 0; j < access->warp_bits; j++) {
            others |= access->warp[j];
        }
        count += (access->step[i] & others) == 0;
    }
    return count;
}

static void put_access(lilac_text *out, const char *what, const lilac_plan_access *access,
                       uint64_t instructions, uint64_t wavefronts) {
    lilac_text_printf(out, "  %-8s %llu %s instruction%s of %u byte%s a thread, ", what,
                      (unsigned long long)instructions,
                      lilac_plan_instruction_name(access->instruction), plural(instructions),
                      access_bytes(access), plural(access_bytes(access)));
    lilac_text_printf(out, "%llu wavefront%s; %u of %u address bits of registers are immediates\n",
                      (unsigned long long)wavefronts, plural(wavefronts), immediate_steps(access),
                      access->step_bits);
}

static void put_bits(lilac_text *out, const char *title, const swizzle *s, const char *to) {
    for (uint32_t i = 0; i < lilac_layout_in_bits(&s->best.plan.staging.memory, to); i++) {
        if (i == 0) {
            lilac_text_printf(out, "  %-9s", title);
        }
        lilac_text_printf(out, i == 0 ? "%u: " : ", %u: ", i);
        offsets_put_bit(out, &s->offsets, to, i);
    }
    lilac_text_char(out, '\n');
}

static void put_offset(lilac_text *out, const swizzle *s) {
    lilac_text_printf(out, "  offset   %s\n", lilac_text_get(&s->formula));
    put_bits(out, "bits", s, "offset");
    if (lilac_layout_in_bits(&s->best.plan.staging.memory, "block") > 0) {
        put_bits(out, "block", s, "block");
    }
}

static void put_comparison(lilac_text *out, const swizzle *s) {
    const lilac_plan_conversion *plan = &s->best.plan;
    const lilac_plan_bound *bound = &plan->bound;
    lilac_text_printf(out, "  bound    %llu + %llu wavefronts, whatever the memory layout: %s\n",
                      (unsigned long long)bound->store_wavefronts,
                      (unsigned long long)bound->load_wavefronts, bound->met ? "met" : "not met");
    if (s->has_plain) {
        const lilac_plan_price *plain = &s->plain.plan.price;
        lilac_text_printf(out, "  without  %llu + %llu wavefronts in row-major memory\n",
                          (unsigned long long)plain->store_wavefronts,
                          (unsigned long long)plain->load_wavefronts);
    }
    lilac_text_printf(
        out,
        "  family   2^%u choices of segments reach this. This is Lemma 9.5's: first what no\n"
        "           transaction of either side reaches, then sums of one direction of each side\n",
        plan->staging.family_bits);
}

static void put_text(lilac_text *out, const swizzle *s) {
    const lilac_plan_conversion *plan = &s->best.plan;
    lilac_layout_print(out, &plan->staging.memory);
    lilac_text_char(out, '\n');
    if (s->named.length != 0) {
        lilac_text_printf(out, "  as       %s\n", lilac_text_get(&s->named));
    }
    if (s->cute.length != 0) {
        lilac_text_printf(out, "  CuTe     %s\n", lilac_text_get(&s->cute));
    }
    put_offset(out, s);
    put_access(out, "store", &plan->staging.store, plan->price.stores,
               plan->price.store_wavefronts);
    put_access(out, "load", &plan->staging.load, plan->price.loads, plan->price.load_wavefronts);
    if (plan->staging.round_bits > 0) {
        lilac_text_printf(out, "  rounds   %u, one after another in %llu bytes\n",
                          1U << plan->staging.round_bits, (unsigned long long)plan->staging.bytes);
    }
    put_comparison(out, s);
}

static void put_json_text(lilac_text *out, const char *key, const lilac_text *text) {
    lilac_text_printf(out, ", \"%s\": ", key);
    if (text->length == 0) {
        lilac_text_puts(out, "null");
    } else {
        lilac_text_json(out, lilac_text_get(text), text->length);
    }
}

static void put_json_access(lilac_text *out, const char *key, const lilac_plan_access *access,
                            uint64_t instructions, uint64_t wavefronts) {
    lilac_text_printf(out,
                      ", \"%s\": {\"instruction\": \"%s\", \"bytes\": %u, "
                      "\"instructions\": %llu, \"wavefronts\": %llu, \"immediates\": %u, "
                      "\"register_bits\": %u}",
                      key, lilac_plan_instruction_name(access->instruction), access_bytes(access),
                      (unsigned long long)instructions, (unsigned long long)wavefronts,
                      immediate_steps(access), access->step_bits);
}

static void put_json_bits(lilac_text *out, const char *key, const swizzle *s, const char *to) {
    lilac_text bit = {0};
    lilac_text_printf(out, ", \"%s\": [", key);
    for (uint32_t i = 0; i < lilac_layout_in_bits(&s->best.plan.staging.memory, to); i++) {
        lilac_text_reset(&bit);
        offsets_put_bit(&bit, &s->offsets, to, i);
        lilac_text_puts(out, i == 0 ? "" : ", ");
        lilac_text_json(out, lilac_text_get(&bit), bit.length);
    }
    lilac_text_char(out, ']');
    lilac_text_clear(&bit);
}

static void put_json(lilac_text *out, const swizzle *s) {
    const lilac_plan_conversion *plan = &s->best.plan;
    const lilac_sim_counters *counters = &s->best.checked.counters; /* of all blocks */
    lilac_text_puts(out, "{\"memory\": ");
    lilac_layout_json(out, &plan->staging.memory);
    put_json_text(out, "named", &s->named);
    put_json_text(out, "cute", &s->cute);
    put_json_text(out, "offset", &s->formula);
    put_json_bits(out, "bits", s, "offset");
    put_json_bits(out, "block_bits", s, "block");
    put_json_access(out, "store", &plan->staging.store, plan->price.stores,
                    plan->price.store_wavefronts);
    put_json_access(out, "load", &plan->staging.load, plan->price.loads,
                    plan->price.load_wavefronts);
    lilac_text_printf(out, ", \"lower_bound\": {\"store\": %llu, \"load\": %llu, \"met\": %s}",
                      (unsigned long long)plan->bound.store_wavefronts,
                      (unsigned long long)plan->bound.load_wavefronts,
                      plan->bound.met ? "true" : "false");
    if (s->has_plain) {
        lilac_text_printf(out, ", \"unswizzled\": {\"store\": %llu, \"load\": %llu}",
                          (unsigned long long)s->plain.plan.price.store_wavefronts,
                          (unsigned long long)s->plain.plan.price.load_wavefronts);
    } else {
        lilac_text_puts(out, ", \"unswizzled\": null");
    }
    lilac_text_printf(out,
                      ", \"family_bits\": %u, \"rounds\": %u, \"shared_bytes\": %llu, "
                      "\"simulated\": {\"store\": %llu, \"load\": %llu}, \"correct\": %s}\n",
                      plan->staging.family_bits, 1U << plan->staging.round_bits,
                      (unsigned long long)plan->staging.bytes,
                      (unsigned long long)(counters->shared_store_wavefronts >> plan->block_bits),
                      (unsigned long long)(counters->shared_load_wavefronts >> plan->block_bits),
                      s->best.checked.correct ? "true" : "false");
}

/* The layout in short: what a line has room for. */
static void put_line(lilac_text *out, const swizzle *s) {
    const lilac_plan_price *price = &s->best.plan.price;
    put_pair_place(out, s->best.types);
    lilac_text_printf(out, "offset = %s, %llu + %llu wavefronts", lilac_text_get(&s->formula),
                      (unsigned long long)price->store_wavefronts,
                      (unsigned long long)price->load_wavefronts);
    if (s->has_plain) {
        lilac_text_printf(out, " (row-major: %llu + %llu)",
                          (unsigned long long)s->plain.plan.price.store_wavefronts,
                          (unsigned long long)s->plain.plan.price.load_wavefronts);
    }
    lilac_text_char(out, '\n');
}

static void answer(void *data, lilac_context *context, const type_pair *types) {
    swizzle_answers *answers = data;
    swizzle s = {0};
    if (types == NULL || !work_out(answers, context, types, &s)) {
        pair_refused(&answers->all);
    } else {
        (answers->json         ? put_json
         : answers->all.a_line ? put_line
                               : put_text)(&answers->all.text, &s);
    }
    conversion_clear(&s.best);
    conversion_clear(&s.plain);
    lilac_text_clear(&s.named);
    lilac_text_clear(&s.cute);
    lilac_text_clear(&s.formula);
}

/* ---- the command line ------------------------------------------------------------------- */

static int swizzle_run(const subcommand *command, int argc, char **argv) {
    swizzle_answers answers = {0};
    const char *target = NULL, *scratch = NULL;
    type_scope scope = {0};
    string_list types = {0};
    const option_row table[] = {
        {"--json", NULL, OPTION_FLAG, &answers.json, NULL,
         "one JSON object a pair: memory, named, cute, offset, bits, store, load,\n"
         "lower_bound, unswizzled, family_bits, simulated, …"},
        {"--vector", NULL, OPTION_NUMBER, &answers.device.vector_bytes, "BYTES",
         "a thread's widest access (what the device has), and no matrix\n"
         "instructions: 4 gives the swizzles of textbooks"},
        {"--scratch", NULL, OPTION_TEXT, &scratch, "BYTES",
         "shared memory that it may take (a quarter of what a block can have)"},
        TYPE_SCOPE_ROWS(scope),
        {"--target", NULL, OPTION_TEXT, &target, "DEVICE",
         "whose shared memory (sm_90a; gfx942 for 64 lanes a warp)"},
        {0},
    };
    int status = options_read(command, table, argc, argv, &types);
    if (status < 0) {
        status = device_find(command, &answers.device.arch, target);
    }
    if (status < 0) {
        status = conversion_vector_check(command, &answers.device);
    }
    if (status < 0) {
        status = conversion_scratch(command, &answers.options, scratch);
    }
    if (status < 0) {
        status = conversion_pairs_run(command, &types, &scope, answer, &answers);
    }
    strings_clear(&types);
    type_scope_clear(&scope);
    lilac_text_clear(&answers.all.text);
    return status;
}

const subcommand swizzle_command = {
    .name = "swizzle",
    .usage = "SRC DST|FILE [--vector BYTES] [--scratch BYTES] [--target DEVICE] [--json]",
    .summary = "the memory layout that two layouts of a tensor meet in",
    .help =
        "Finds the layout of shared memory through which a tensor gets from one layout to\n"
        "another with the fewest wavefronts, and prints it: as a linear layout, by the names\n"
        "that Triton and CuTe have for it where they have one, as a formula for the offset of\n"
        "the element at (i), (m, n), (l, m, n) or (d0, d1, …), and by the coordinates' bits\n"
        "that make each bit of the offset. Then what storing and loading take, the least that\n"
        "any layout takes, and what row-major memory does. Both are simulated.\n"
        "SRC and DST are tensor types with layouts, as `lilac layout` takes them. Instead of them\n"
        "a file, or - for standard input, gives one pair a line with a tab between the two, or is\n"
        "a TTGIR module, each of whose ttg.convert_layout operations is a pair; each is answered\n"
        "on a line. A pair that is refused answers null, and the exit status is 1; it is 3 when\n"
        "a simulation is not as planned.",
    .run = swizzle_run,
};
