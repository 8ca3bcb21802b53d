/* Advice: variants that were compiled and are predicted at least MARGIN faster for the launch.
 * Nothing else is suggested. Each variant differs in one choice: the warps, the stages, or the
 * promise that all pointers and sizes are multiples of 16. */
#include "report/json.h"
#include "report/text.h"

#include <stdio.h>
#include <string.h>

enum { MOST_PARAMETERS = 64, TEXT = 512, DIVISOR = 16 };
static const double MARGIN = 0.05;

typedef struct advice_list {
    lilac_explanation *e;
    lilac_text *out;
    bool json, any;
    double
        before; /* seconds of the kernel itself, with the registers that are estimated, as for variants */
} advice_list;

static void put_variant(advice_list *list, const char *change, const lilac_explain_budget *b) {
    const double before = list->before;
    if (list->json) {
        lilac_text_puts(list->out, list->any ? ", {\"change\": " : "{\"change\": ");
        explain_json_string(list->out, change);
        lilac_text_printf(list->out, ", \"seconds\": %.6g, \"base_seconds\": %.6g}", b->seconds,
                          before);
    } else {
        lilac_text_printf(list->out, "%s  %s: predicted %.2f us instead of %.2f us\n",
                          list->any ? "" : "predicted faster\n", change, 1e6 * b->seconds,
                          1e6 * before);
    }
    list->any = true;
}

/* The explanation of a variant, with estimated registers; NULL if it does not compile: its
 * diagnostics are forgotten. */
static lilac_explanation *explain_variant(advice_list *list, const lilac_explain_options *options) {
    lilac_context *context = list->e->context;
    const lilac_diagnostic *last = lilac_diagnostics(context);
    while (last != NULL && last->next != NULL) {
        last = last->next;
    }
    lilac_explain_options quiet = *options;
    quiet.advice = false;
    quiet.registers = 0;
    lilac_explanation *other = lilac_explain(context, list->e->source, &quiet);
    if (other == NULL) {
        lilac_diagnostics_forget(context, last);
    }
    return other;
}

static void try_variant(advice_list *list, const lilac_explain_options *options,
                        const char *change) {
    lilac_explanation *other = explain_variant(list, options);
    if (other == NULL) {
        return;
    }
    if (other->budget.seconds > 0 && other->budget.seconds < (1 - MARGIN) * list->before) {
        put_variant(list, change, &other->budget);
    }
    lilac_explanation_destroy(other);
}

static void try_numbers(advice_list *list, const char *name, uint32_t first, uint32_t last,
                        bool doubles) {
    const bool warps = doubles;
    for (uint32_t n = first; n <= last; n = doubles ? 2 * n : n + 1) {
        lilac_explain_options options = list->e->options;
        lilac_target *target = &options.compile.target;
        uint32_t *field = warps ? &target->num_warps : &target->num_stages;
        const lilac_target *now = &list->e->compilation.target;
        char change[TEXT];
        if (n == (warps ? now->num_warps : now->num_stages)) {
            continue;
        }
        *field = n;
        target->keep_warps |= warps;
        (void)snprintf(change, sizeof change, "%s=%u", name, n);
        try_variant(list, &options, change);
    }
}

/* The promise for all parameters that may be made multiples of 16 and are not known to be. */
static void try_alignment(advice_list *list) {
    const lilac_tile_function *f = list->e->function;
    lilac_assumed_divisor divisors[MOST_PARAMETERS];
    lilac_explain_options options = list->e->options;
    char change[TEXT] = "";
    uint32_t count = 0;
    for (uint32_t p = 0; p < f->parameter_count && count < MOST_PARAMETERS; p++) {
        const lilac_tile_value *value = f->parameters[p];
        const bool number =
            value->type->kind == LILAC_TILE_POINTER ||
            (value->type->kind == LILAC_TILE_SCALAR &&
             (value->type->scalar == LILAC_I32 || value->type->scalar == LILAC_I64));
        if (!number || value->name == NULL ||
            lilac_tile_find_integer(&f->parameter_attributes[p], "tt.divisibility", 1) >= DIVISOR ||
            strlen(change) + strlen(value->name) + 20 > sizeof change) {
            continue;
        }
        divisors[count++] = (lilac_assumed_divisor){value->name, DIVISOR};
        (void)snprintf(change + strlen(change), sizeof change - strlen(change), "%s%s",
                       count > 1 ? "," : "", value->name);
    }
    if (count == 0 || list->e->options.compile.divisor_count > 0) {
        return;
    }
    options.compile.divisors = divisors;
    options.compile.divisor_count = count;
    (void)snprintf(change + strlen(change), sizeof change - strlen(change), " divisibility=%u",
                   DIVISOR);
    try_variant(list, &options, change);
}

/* Without a prediction, or with executions that are only assumed, there is nothing to compare. */
static bool is_possible(const lilac_explanation *e) {
    return e->budget.seconds > 0 && e->budget.exact;
}

static void try_all(advice_list *list) {
    if (!list->e->options.advice || !is_possible(list->e)) {
        return;
    }
    list->before = list->e->budget.seconds;
    if (list->e->options.registers != 0) {
        lilac_explanation *same = explain_variant(list, &list->e->options);
        list->before = same != NULL ? same->budget.seconds : list->before;
        lilac_explanation_destroy(same);
    }
    try_numbers(list, "num_warps", 1, 16, true);
    try_numbers(list, "num_stages", 1, 5, false);
    try_alignment(list);
}

void explain_json_advice(lilac_text *out, lilac_explanation *e) {
    advice_list list = {.e = e, .out = out, .json = true};
    lilac_text_puts(out, ", \"advice\": [");
    try_all(&list);
    lilac_text_char(out, ']');
}

void explain_advice_text(lilac_text *out, lilac_explanation *e) {
    advice_list list = {.e = e, .out = out};
    try_all(&list);
    if (e->options.advice && !list.any) {
        lilac_text_puts(out, is_possible(e) ? "no variant that was tried is predicted 5 % faster\n"
                             : e->budget.seconds > 0
                                 ? "no advice: loops or branches have assumed executions\n"
                                 : "no advice: nothing is predicted without a grid, or for this "
                                   "device\n");
    }
}
