/* Lines of the text: a plan, the reason of a conversion, what was not chosen, the budget. */
#include "report/text.h"

typedef unsigned long long number;

static double clocks(uint64_t cycles) {
    return (double)cycles / 16;
}

static void access_line(lilac_text *out, const lilac_plan_global_access *a) {
    lilac_text_printf(out, "%s of %u bytes per thread, %llu instructions, %llu sectors",
                      lilac_plan_global_kind_name(a->kind), a->element_bytes << a->vector_bits,
                      (number)a->counts.instructions, (number)a->counts.sectors);
    if (a->counts.sectors > a->bound.sectors || a->counts.instructions > a->bound.instructions) {
        lilac_text_printf(out, " (another layout: %llu instructions, %llu sectors)",
                          (number)a->bound.instructions, (number)a->bound.sectors);
    }
    const uint32_t copies = (uint32_t)__builtin_popcount(a->replicated_threads);
    if (copies > 0) {
        lilac_text_printf(out, ", %u threads hold each element", 1U << copies);
    }
    lilac_text_printf(out, ", %.1f clocks", clocks(a->cycles));
}

static void conversion_line(lilac_text *out, const lilac_plan_conversion *c) {
    static const char *const ways[] = {[LILAC_PLAN_NONE] = "moves nothing",
                                       [LILAC_PLAN_REGISTERS] = "within threads",
                                       [LILAC_PLAN_SHUFFLES] = "by shuffles",
                                       [LILAC_PLAN_SHARED] = "through shared memory",
                                       [LILAC_PLAN_CLUSTER] =
                                           "through the cluster's shared memory"};
    const lilac_plan_price *p = &c->price;
    lilac_text_printf(out, "conversion %s", ways[c->kind]);
    if (p->shuffles > 0) {
        lilac_text_printf(out, ", %llu shuffles", (number)p->shuffles);
    }
    if (p->stores > 0) {
        lilac_text_printf(out, ", %llu + %llu wavefronts (at least %llu + %llu)",
                          (number)p->store_wavefronts, (number)p->load_wavefronts,
                          (number)c->bound.store_wavefronts, (number)c->bound.load_wavefronts);
    }
    lilac_text_printf(out, ", %.1f clocks", clocks(p->cycles));
}

static void price_line(lilac_text *out, const char *what, const lilac_plan_price *p) {
    lilac_text_puts(out, what);
    if (p->shuffles > 0) {
        lilac_text_printf(out, ", %llu shuffles", (number)p->shuffles);
    }
    if (p->stores + p->loads > 0) {
        lilac_text_printf(out, ", %llu + %llu wavefronts of shared memory",
                          (number)p->store_wavefronts, (number)p->load_wavefronts);
    }
    lilac_text_printf(out, ", %.1f clocks", clocks(p->cycles));
}

static void strip_newline(lilac_text *text) {
    while (text->length > 0 && text->bytes[text->length - 1] == '\n') {
        text->bytes[--text->length] = '\0';
    }
}

void explain_plan_line(lilac_text *out, lilac_explanation *e, uint32_t index,
                       const lilac_lowered_plan *plan) {
    switch (plan->kind) {
    case LILAC_LOWERED_ACCESS:
        access_line(out, plan->is.access);
        break;
    case LILAC_LOWERED_CONVERSION:
        conversion_line(out, plan->is.conversion);
        break;
    case LILAC_LOWERED_REDUCTION:
        price_line(out, "reduction", &plan->is.reduction->price);
        break;
    case LILAC_LOWERED_SCAN:
        price_line(out, "scan", &plan->is.scan->price);
        break;
    case LILAC_LOWERED_GATHER:
        price_line(out, "gather", &plan->is.gather->price);
        break;
    case LILAC_LOWERED_HISTOGRAM:
        price_line(out, "histogram", &plan->is.histogram->price);
        break;
    case LILAC_LOWERED_SHARED:
        explain_plan_text(out, e, plan);
        strip_newline(out);
        lilac_text_printf(out, ", %.1f clocks", clocks(explain_plan_cycles(e, plan)));
        break;
    case LILAC_LOWERED_DOT:
        explain_plan_text(out, e, plan);
        strip_newline(out);
        if (e->tensor[index] > 0) {
            lilac_text_printf(out, ", %.0f clocks of the tensor cores", e->tensor[index]);
        }
        break;
    }
}

/* ---- reasons ------------------------------------------------------------------------------- */

static void put_side(lilac_text *out, lilac_explanation *e, const lilac_tile_op *anchor,
                     const lilac_tile_type *own, const lilac_tile_type *other, bool makes) {
    lilac_text_puts(out, makes ? "made" : "used");
    if (anchor == NULL) {
        lilac_text_printf(out, " in %s\n", explain_layout_name(e, own));
        return;
    }
    const uint32_t number_of = explain_number_of(e, anchor);
    lilac_text_printf(out, " for %u %s", number_of, lilac_tile_op_info_get(anchor->code)->name);
    const uint32_t line =
        number_of > 0 ? explain_line(e, lilac_explain_main_file(e), number_of - 1) : 0;
    if (line > 0) {
        lilac_text_printf(out, " of line %u", line);
    }
    lilac_text_puts(out, ": ");
    explain_reason(out, e, anchor, own->layout, other->layout, makes);
    lilac_text_char(out, '\n');
}

void explain_reason_text(lilac_text *out, lilac_explanation *e, uint32_t index) {
    const lilac_tile_op *op = e->operations[index].op;
    const lilac_tile_value *from = op->operands[0].value, *to = &op->results[0];
    put_side(out, e, explain_producer(from), from->type, to->type, true);
    put_side(out, e, explain_consumer(to), to->type, from->type, false);
}

static void put_alternative(lilac_text *out, const explain_alternative *a) {
    lilac_text_printf(out, "not chosen: %s", a->name);
    if (a->number > 0) {
        lilac_text_printf(out, " %u", a->number);
    }
    if (a->refused != NULL) {
        lilac_text_printf(out, ": not possible: %s\n", a->refused);
        return;
    }
    switch (a->kind) {
    case EXPLAIN_OTHER_CONVERSION:
    case EXPLAIN_OTHER_REDUCTION:
        lilac_text_printf(out, ": %.1f clocks, %llu shuffles, %llu + %llu wavefronts\n",
                          clocks(a->cycles), (number)a->price.shuffles,
                          (number)a->price.store_wavefronts, (number)a->price.load_wavefronts);
        break;
    case EXPLAIN_OTHER_PRODUCT:
        lilac_text_printf(out, ": %.1f clocks\n", clocks(a->cycles));
        break;
    case EXPLAIN_OTHER_ACCESS:
        lilac_text_printf(out,
                          ": the access would have %u bytes per thread, %llu sectors, %.1f clocks; "
                          "the conversion costs %.1f clocks\n",
                          a->bytes, (number)a->sectors, clocks(a->cycles), clocks(a->saved));
        break;
    }
}

void explain_alternatives_text(lilac_text *out, lilac_explanation *e, uint32_t index) {
    explain_alternatives list;
    explain_alternatives_of(e, index, &list);
    for (uint32_t i = 0; i < list.count; i++) {
        put_alternative(out, &list.list[i]);
    }
}

/* ---- the budget ---------------------------------------------------------------------------- */

static void put_count(lilac_text *out, const char *what, uint64_t count) {
    if (count > 0) {
        lilac_text_printf(out, "  %-28s %14llu\n", what, (number)count);
    }
}

static void put_counts(lilac_text *out, const lilac_explain_counts *c) {
    put_count(out, "instructions of all warps", c->instructions);
    put_count(out, "bytes loaded", c->global_load_bytes);
    put_count(out, "bytes stored", c->global_store_bytes);
    put_count(out, "bytes copied", c->async_bytes + c->bulk_bytes);
    put_count(out, "sectors", c->global_load_sectors + c->global_store_sectors + c->async_sectors);
    put_count(out, "wavefronts of shared memory",
              c->shared_load_wavefronts + c->shared_store_wavefronts + c->async_wavefronts);
    put_count(out, "shuffles", c->shuffles);
    put_count(out, "barriers of the block", c->barriers);
    put_count(out, "mma", c->mmas);
    put_count(out, "wgmma", c->wgmmas);
    for (uint32_t i = 0; i < LILAC_EXPLAIN_CLASS_COUNT; i++) {
        if (c->issue[i] > 0) {
            lilac_text_printf(out, "  issue slots, %-15s%14llu\n",
                              lilac_explain_class_name((lilac_explain_class)i),
                              (number)c->issue[i]);
        }
    }
}

static void put_time(lilac_text *out, const lilac_explain_time *t) {
    const double longest = t->memory > t->l2 && t->memory > t->multiprocessors ? t->memory
                           : t->l2 > t->multiprocessors                        ? t->l2
                                                                               : t->multiprocessors;
    const struct {
        const char *name;
        double seconds;
    } parts[] = {{"launching", t->launch},
                 {"memory", t->memory},
                 {"L2", t->l2},
                 {"multiprocessors", t->multiprocessors},
                 {"the longest block", t->imbalance},
                 {"lower clock", t->power}};
    for (uint32_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        if (parts[k].seconds <= 0) {
            continue;
        }
        lilac_text_printf(out, "  %-28s %14.2f", parts[k].name, 1e6 * parts[k].seconds);
        if (k == 3) {
            lilac_text_printf(out, " in %.0f wave%s", t->waves, t->waves > 1 ? "s" : "");
        }
        lilac_text_puts(out, parts[k].seconds == longest ? " binds\n" : "\n");
    }
}

void explain_budget_text(lilac_text *out, const lilac_explanation *e) {
    const lilac_explain_budget *b = &e->budget;
    const uint32_t *grid = e->options.launch.grid;
    lilac_text_printf(out, "a block%s\n",
                      b->exact ? "" : ", with assumed executions of loops and branches");
    put_counts(out, &b->counts);
    lilac_text_printf(out, "  %-28s %14u\n", "bytes of shared memory", b->shared_bytes);
    lilac_text_printf(out, "  %-28s %14u%s\n", "registers of a thread", b->registers,
                      b->registers_estimated ? " (estimated)" : "");
    lilac_text_printf(out, "  %-28s %14u (%u warps), limited by %s\n", "resident blocks",
                      b->resident_blocks, b->resident_warps, b->limited_by);
    lilac_text_puts(out, "clocks of a multiprocessor for a block, if only one unit mattered\n");
    for (uint32_t r = 0; r < LILAC_EXPLAIN_ROOF_COUNT; r++) {
        if (b->clocks[r] > 0) {
            lilac_text_printf(out, "  %-28s %14.1f%s\n",
                              lilac_explain_roof_name((lilac_explain_roof)r), b->clocks[r],
                              r == b->bound ? " binds" : "");
        }
    }
    if (grid[0] > 0 && b->seconds > 0) {
        lilac_text_printf(out, "predicted for %u x %u x %u blocks: %.2f us\n", grid[0], grid[1],
                          grid[2], 1e6 * b->seconds);
        put_time(out, &b->time);
    }
}
