/* The search over schedules: which there are, what is predicted, and whether they are right.
 *
 * Results do not depend on schedules: the order of additions is that of the program. So each
 * schedule must give the bits of the usual one, and the simulator must report nothing. */
#define _POSIX_C_SOURCE 200809L /* isatty */

#include "search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Launches that are simulated: blocks, and instructions of the warps of a block. */
enum { MOST_BLOCKS = 64, MOST_INSTRUCTIONS = 1 << 20, LINES = 10 };

/* ---- the simulator ------------------------------------------------------------------------- */

/* The contents of all buffers after a launch. */
typedef struct memory {
    uint8_t *bytes;
    uint64_t size;
} memory;

static uint32_t count_diagnostics(const lilac_context *context) {
    uint32_t count = 0;
    for (const lilac_diagnostic *d = lilac_diagnostics(context); d != NULL; d = d->next) {
        count++;
    }
    return count;
}

static void take_memory(memory *result, const bound_arguments *arguments) {
    result->size = 0;
    for (uint32_t i = 0; i < arguments->buffer_count; i++) {
        result->size += arguments->buffers[i].size;
    }
    result->bytes = lilac_heap_grow(NULL, result->size + 1);
    uint64_t at = 0;
    for (uint32_t i = 0; i < arguments->buffer_count; i++) {
        if (arguments->buffers[i].size > 0) {
            memcpy(result->bytes + at, arguments->buffers[i].bytes, arguments->buffers[i].size);
        }
        at += arguments->buffers[i].size;
    }
}

/* Runs the launch with these requests. False: it is not possible, or something is reported. */
static bool simulate(memory *result, const search_request *request, uint32_t count,
                     const char *const *requests) {
    prepared_launch prepared;
    lilac_options options = request->options->compile;
    const uint32_t *grid = request->options->launch.grid;
    options.schedules = requests;
    options.schedule_count = count;
    options.stop_at = LILAC_STAGE_SIMT;
    bool good = launch_read(&prepared, request->launch) && launch_prepare(&prepared, &options) &&
                arguments_make_maps(&prepared.arguments, prepared.context, prepared.kernel, grid);
    const uint32_t before = count_diagnostics(prepared.context);
    if (good) {
        lilac_sim_counters counters;
        const lilac_sim_launch launch = {.kernel = prepared.kernel,
                                         .grid = {grid[0], grid[1], grid[2]},
                                         .arguments = prepared.arguments.bits,
                                         .argument_count = prepared.arguments.count,
                                         .tensor_maps = prepared.arguments.maps,
                                         .tensor_map_count = prepared.arguments.map_count,
                                         .buffers = prepared.arguments.buffers,
                                         .buffer_count = prepared.arguments.buffer_count,
                                         .instruction_limit = MOST_INSTRUCTIONS};
        good = lilac_sim_run(prepared.context, &launch, &counters) &&
               count_diagnostics(prepared.context) == before;
    }
    if (good) {
        take_memory(result, &prepared.arguments);
    }
    launch_clear(&prepared);
    return good;
}

/* Are the results of the candidate those of the usual schedule? */
static bool is_right(const search_request *request, const lilac_explain_candidate *c,
                     const memory *usual) {
    memory found = {.size = 0};
    const bool right = simulate(&found, request, c->request_count, c->requests) &&
                       found.size == usual->size &&
                       memcmp(found.bytes, usual->bytes, found.size) == 0;
    lilac_heap_free(found.bytes);
    return right;
}

static bool is_small(const uint32_t grid[3]) {
    return (uint64_t)grid[0] * grid[1] * grid[2] <= MOST_BLOCKS;
}

/* ---- output -------------------------------------------------------------------------------- */

static void show_progress(void *data, uint32_t compiled, uint32_t refused) {
    const bool terminal = *(const bool *)data;
    if (terminal || compiled % 50 == 0) {
        fprintf(stderr, "%slilac: %u schedules, %u requests refused%s", terminal ? "\r\033[K" : "",
                compiled, refused, terminal ? "" : "\n");
        fflush(stderr);
    }
}

static void put_schedules(lilac_text *out, const lilac_explain_candidate *c) {
    for (uint32_t k = 0; k < c->request_count; k++) {
        lilac_text_printf(out, "%s%s", k > 0 ? "  " : "", c->requests[k]);
    }
}

/* The ten fastest, and the one that is chosen. */
static void put_table(lilac_text *out, const lilac_explain_search *found, bool simulated) {
    const double best = found->list[0].seconds;
    lilac_text_printf(out, "%u schedule%s, %s; %u requests were refused%s\n", found->count,
                      found->count == 1 ? "" : "s",
                      found->exhaustive ? "all that are possible" : "not all that are possible",
                      found->refused,
                      simulated ? "; all give the same results on the simulator" : "");
    lilac_text_puts(out, "    predicted  of the best  schedule\n");
    for (uint32_t i = 0; i < found->count; i++) {
        const lilac_explain_candidate *c = &found->list[i];
        if (i < LINES || c->is_chosen) {
            lilac_text_printf(out, "%c %8.2f us %12.3f  ", c->is_chosen ? '*' : ' ',
                              1e6 * c->seconds, c->seconds / best);
            put_schedules(out, c);
            lilac_text_char(out, '\n');
        }
    }
    lilac_text_printf(out, "* is chosen, %.1f %% slower than the best\n",
                      100 * (found->chosen / best - 1));
}

static void put_json(lilac_text *out, const lilac_explain_search *found, bool simulated) {
    lilac_text_printf(out,
                      "{\"exhaustive\": %s, \"refused\": %u, \"simulated\": %s, "
                      "\"chosen_seconds\": %.6g, \"best_seconds\": %.6g, \"schedules\": [",
                      found->exhaustive ? "true" : "false", found->refused,
                      simulated ? "true" : "false", found->chosen, found->list[0].seconds);
    for (uint32_t i = 0; i < found->count; i++) {
        const lilac_explain_candidate *c = &found->list[i];
        lilac_text_printf(out, "%s{\"seconds\": %.6g, \"chosen\": %s, \"requests\": [",
                          i > 0 ? ", " : "", c->seconds, c->is_chosen ? "true" : "false");
        for (uint32_t k = 0; k < c->request_count; k++) {
            lilac_text_printf(out, "%s\"%s\"", k > 0 ? ", " : "", c->requests[k]);
        }
        lilac_text_puts(out, "]}");
    }
    lilac_text_puts(out, "]}\n");
}

/* ---- the search ---------------------------------------------------------------------------- */

/* False: a schedule is wrong, which is reported. */
static bool check(const search_request *request, const lilac_explain_search *found,
                  bool *simulated) {
    memory usual = {.size = 0};
    bool good = true;
    *simulated = is_small(request->options->launch.grid) && simulate(&usual, request, 0, NULL);
    for (uint32_t i = 0; *simulated && i < found->count; i++) {
        const lilac_explain_candidate *c = &found->list[i];
        if (!c->is_chosen && !is_right(request, c, &usual)) {
            lilac_text text = {0};
            put_schedules(&text, c);
            good = file_error("with the schedule %s, the simulator reports errors or computes "
                              "something else",
                              lilac_text_get(&text));
            lilac_text_clear(&text);
        }
    }
    lilac_heap_free(usual.bytes);
    return good;
}

static int print_search(const search_request *request, const lilac_explain_search *found) {
    bool simulated;
    if (!check(request, found, &simulated)) {
        return STATUS_CHECK;
    }
    lilac_text text = {0};
    (request->json ? put_json : put_table)(&text, found, simulated);
    const bool written = file_write(NULL, lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
    return written ? STATUS_DONE : STATUS_REFUSED;
}

int search_schedules(const search_request *request) {
    lilac_context *context = lilac_context_create();
    lilac_arena *arena = lilac_arena_create();
    const uint32_t source = source_read(context, request->launch->operands.list[0]);
    bool terminal = isatty(STDERR_FILENO) == 1;
    lilac_explain_search found;
    int status = STATUS_REFUSED;
    const bool good =
        source != 0 && lilac_explain_search_schedules(&found, arena, context, source,
                                                      request->options, show_progress, &terminal);
    if (good && terminal) {
        fputs("\r\033[K", stderr);
    }
    if (good && found.list[0].request_count == 0) {
        (void)file_error("the kernel has no pipelined loop with matrix products: there is no "
                         "schedule to search for");
    } else if (good && found.chosen == 0) {
        (void)file_error("no time is predicted for this device");
    } else if (good) {
        status = print_search(request, &found);
    }
    print_diagnostics(context);
    lilac_arena_destroy(arena);
    lilac_context_destroy(context);
    return status;
}
