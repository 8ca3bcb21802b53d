/* lilac convert: moving a tensor between two layouts, planned, generated and checked.
 *
 *   two types ─▶ plan ─▶ kernel ─▶ simulator ─▶ every register of every thread, and the counts
 *                  │        └─▶ SIMT IR or PTX, when asked for
 *                  └─▶ which bits go where, in words or as JSON
 *
 * The kernel of every plan runs on the simulator, whatever is printed. If a result or a count
 * differs from the plan, the exit status is 3.
 */
#include "conversion.h"

#include <lilac/ptx.h>

#include <string.h>

typedef enum convert_form { CONVERT_TEXT, CONVERT_JSON, CONVERT_SIMT, CONVERT_PTX } convert_form;

typedef struct convert_answers {
    pair_answers all; /* they disagree: a simulation with its plan */
    convert_form form;
    conversion_device device;
    lilac_plan_options options;
} convert_answers;

/* ---- answers ---------------------------------------------------------------------------- */

/* The plan's own object with the simulation's part behind. */
static void put_json(lilac_text *out, const conversion *c) {
    lilac_plan_conversion_json(out, &c->plan);
    while (out->length > 0 && out->bytes[out->length - 1] != '}') {
        out->bytes[--out->length] = '\0';
    }
    out->bytes[--out->length] = '\0';
    const lilac_sim_counters *counters = &c->checked.counters; /* of all blocks */
    lilac_text_printf(out,
                      ", \"simulated\": {\"store\": %llu, \"load\": %llu}, \"correct\": %s, "
                      "\"as_planned\": %s}\n",
                      (unsigned long long)(counters->shared_store_wavefronts >> c->plan.block_bits),
                      (unsigned long long)(counters->shared_load_wavefronts >> c->plan.block_bits),
                      c->checked.correct ? "true" : "false", c->checked.agrees ? "true" : "false");
}

static void put_counts(lilac_text *out, const conversion *c) {
    for (uint32_t i = 0; i < JUDGED_COUNTS; i++) {
        const checked_count *count = &c->checked.counts[i];
        if (count->planned != 0 || count->simulated != 0) {
            lilac_text_printf(out, "  %-20s %llu", count->name,
                              (unsigned long long)count->simulated);
            if (count->simulated != count->planned) {
                lilac_text_printf(out, " (planned: %llu)", (unsigned long long)count->planned);
            }
            lilac_text_char(out, '\n');
        }
    }
}

static void put_text(lilac_text *out, const conversion *c) {
    const uint64_t registers = UINT64_C(1) << (c->plan.target_register_bits + c->plan.lane_bits +
                                               c->plan.warp_bits + c->plan.block_bits);
    lilac_plan_conversion_explain(out, &c->plan, &c->types->type[0].layout,
                                  &c->types->type[1].layout);
    lilac_text_printf(out, "\nsimulated on %s", c->plan.arch->name);
    if (c->plan.block_bits > 0) {
        lilac_text_printf(out, ", %u blocks together", 1U << c->plan.block_bits);
    }
    lilac_text_char(out, '\n');
    put_counts(out, c);
    lilac_text_printf(out, "  %s of %llu registers of all threads has its element\n",
                      c->checked.correct ? "every one" : "not every one",
                      (unsigned long long)registers);
}

static void put_line(lilac_text *out, const conversion *c) {
    put_pair_place(out, c->types);
    lilac_text_puts(out, lilac_plan_kind_name(c->plan.kind));
    const char *separator = ": ";
    for (uint32_t i = 0; i < JUDGED_COUNTS; i++) {
        const checked_count *count = &c->checked.counts[i];
        if (count->simulated != 0) {
            lilac_text_printf(out, "%s%s %llu", separator, count->name,
                              (unsigned long long)count->simulated);
            separator = ", ";
        }
    }
    lilac_text_puts(out, c->checked.correct && c->checked.agrees ? "; simulated, as planned\n"
                                                                 : "; simulated, NOT as planned\n");
}

static bool put_answer(convert_answers *answers, conversion *c) {
    lilac_text *out = &answers->all.text;
    if (answers->form == CONVERT_SIMT || answers->form == CONVERT_PTX) {
        conversion_improve(c);
    }
    switch (answers->form) {
    case CONVERT_JSON:
        put_json(out, c);
        return true;
    case CONVERT_SIMT:
        lilac_simt_print(out, c->module);
        return true;
    case CONVERT_PTX:
        return lilac_ptx_write(out, c->module, &(lilac_ptx_options){0});
    case CONVERT_TEXT:
        break;
    }
    (answers->all.a_line ? put_line : put_text)(out, c);
    return true;
}

static void answer(void *data, lilac_context *context, const type_pair *types) {
    convert_answers *answers = data;
    conversion c = {0};
    bool good =
        types != NULL && conversion_make(&c, context, types, &answers->options, &answers->device);
    if (good) {
        answers->all.disagree |= !conversion_check(&c, context);
        good = c.checked.ran && put_answer(answers, &c);
    }
    if (!good) {
        pair_refused(&answers->all);
    }
    conversion_clear(&c);
}

/* ---- the command line ------------------------------------------------------------------- */

typedef struct convert_words {
    const char *target, *emit, *through, *scratch;
    bool json;
} convert_words;

static int read_emit(const subcommand *command, convert_answers *answers,
                     const convert_words *words) {
    static const choice forms[] = {
        {"ptx", CONVERT_PTX}, {"simt", CONVERT_SIMT}, {"json", CONVERT_JSON}, {0}};
    if (words->emit != NULL) {
        int form = 0;
        const int status = choice_read(command, "--emit", words->emit, forms, &form);
        if (status >= 0) {
            return status;
        }
        answers->form = (convert_form)form;
    }
    if (words->json && answers->form != CONVERT_TEXT && answers->form != CONVERT_JSON) {
        return usage_error(command, "--json and --emit %s cannot both be", words->emit);
    }
    if (words->json) {
        answers->form = CONVERT_JSON;
    }
    if (answers->all.a_line && answers->form > CONVERT_JSON) {
        return usage_error(command, "--emit %s takes one pair, not a file of them", words->emit);
    }
    return -1;
}

static int read_words(const subcommand *command, convert_answers *answers,
                      const convert_words *words) {
    static const choice strategies[] = {{"any", LILAC_PLAN_ANY},
                                        {"shuffles", LILAC_PLAN_BY_SHUFFLES},
                                        {"shared", LILAC_PLAN_BY_SHARED},
                                        {"unswizzled", LILAC_PLAN_UNSWIZZLED},
                                        {0}};
    int status = device_find(command, &answers->device.arch, words->target);
    if (status < 0 && words->through != NULL) {
        int strategy = 0;
        status = choice_read(command, "--through", words->through, strategies, &strategy);
        answers->options.strategy = (lilac_plan_strategy)strategy;
    }
    if (status >= 0) {
        return status;
    }
    status = conversion_scratch(command, &answers->options, words->scratch);
    return status < 0 ? read_emit(command, answers, words) : status;
}

static int convert_run(const subcommand *command, int argc, char **argv) {
    convert_answers answers = {0};
    convert_words words = {0};
    type_scope scope = {0};
    string_list types = {0};
    const option_row table[] = {
        {"--json", NULL, OPTION_FLAG, &words.json, NULL,
         "one JSON object a pair: kind, instructions, wavefronts, lower bound,\n"
         "simulated wavefronts, whether all was correct, …"},
        {"--emit", NULL, OPTION_TEXT, &words.emit, "FORM",
         "ptx or simt: the kernel, after the passes of compile; json: as --json"},
        {"--through", NULL, OPTION_TEXT, &words.through, "STRATEGY",
         "any (the cheapest), shuffles, shared (the best swizzle) or\n"
         "unswizzled (row-major memory)"},
        {"--vector", NULL, OPTION_NUMBER, &answers.device.vector_bytes, "BYTES",
         "a thread's widest access of shared memory, and no matrix instructions"},
        {"--scratch", NULL, OPTION_TEXT, &words.scratch, "BYTES",
         "shared memory that it may take (a quarter of what a block can have)"},
        TYPE_SCOPE_ROWS(scope),
        {"--target", NULL, OPTION_TEXT, &words.target, "DEVICE",
         "whose prices and instructions (sm_90a; gfx942 for 64 lanes a warp)"},
        {0},
    };
    int status = options_read(command, table, argc, argv, &types);
    answers.all.a_line = pairs_are_lines(&types);
    if (status < 0) {
        status = conversion_vector_check(command, &answers.device);
    }
    if (status < 0) {
        status = read_words(command, &answers, &words);
    }
    if (status < 0) {
        status = conversion_pairs_run(command, &types, &scope, answer, &answers);
    }
    strings_clear(&types);
    type_scope_clear(&scope);
    lilac_text_clear(&answers.all.text);
    return status;
}

const subcommand convert_command = {
    .name = "convert",
    .usage = "SRC DST|FILE [--through STRATEGY] [--emit FORM] [--json] …",
    .summary = "moving a tensor between two layouts: the plan, its price, a check",
    .help =
        "Plans how the registers of all threads change from one layout of a tensor to another: by\n"
        "register permutations, shuffles, shared memory or a combination, whichever is cheapest.\n"
        "Explains which bits move where and why, the cost and the lower bound. The kernel\n"
        "runs on the simulator every time; each register of each thread is compared, and\n"
        "what was counted with what was planned.\n"
        "SRC and DST are tensor types with layouts, as `lilac layout` takes them. Instead of them\n"
        "a file, or - for standard input, gives one pair a line with a tab between the two, or is\n"
        "a TTGIR module, each of whose ttg.convert_layout operations is a pair; each is answered\n"
        "on a line. A pair that is refused answers null, and the exit status is 1; it is 3 when\n"
        "the simulation of a pair and its plan disagree.",
    .run = convert_run,
};
