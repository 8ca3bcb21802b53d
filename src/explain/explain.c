/* Compiles a kernel and collects what an explanation has of it. */
#include "internal.h"

#include <string.h>

void lilac_explain_options_init(lilac_explain_options *options) {
    *options = (lilac_explain_options){.registers = 0};
    lilac_options_init(&options->compile);
}

static void find_kernel(lilac_explanation *e) {
    e->function = e->compilation.tile->functions;
    while (!e->function->is_public || e->function->body == NULL) {
        e->function = e->function->next;
    }
    e->kernel = e->compilation.simt->kernels;
    while (strcmp(e->kernel->name, e->function->name) != 0) {
        e->kernel = e->kernel->next;
    }
}

static bool compile(lilac_explanation *e) {
    lilac_options options = e->options.compile;
    options.stop_at = LILAC_STAGE_SIMT;
    options.stop_after = NULL;
    options.number_operations = true;
    options.plans = &e->lowered;
    if (lilac_source_is_simt(e->context, e->source)) {
        lilac_error(e->context, (lilac_position){e->source, 0}, 0, "no-operations",
                    "this is SIMT text; only kernels of tile operations are explained");
        return false;
    }
    if (!lilac_compile(&e->compilation, e->context, e->source, &options)) {
        return false;
    }
    const lilac_ptx_options ptx = {.comments = options.comments,
                                   .line_info = options.line_info,
                                   .newest_version = options.newest_ptx,
                                   .origins = &e->origins};
    return lilac_ptx_write(&e->ptx, e->compilation.simt, &ptx);
}

/* The index of the parameter of that name; the number of parameters: there is none. */
static uint32_t find_parameter(const lilac_explanation *e, const char *name) {
    uint32_t p = 0;
    while (p < e->kernel->parameter_count && strcmp(e->kernel->parameters[p].name, name) != 0) {
        p++;
    }
    return p;
}

/* Where a pointer or a tensor map of the launch points: far from the others. */
static uint64_t address_of_parameter(uint32_t p) {
    return (uint64_t)(p + 1) << 48;
}

/* The arguments of the launch by parameter. A tensor descriptor's parts and scratch memory have
 * parameters that the caller may name, too. With a grid, all pointers count as known. */
static bool take_arguments(lilac_explanation *e) {
    const lilac_explain_launch *launch = &e->options.launch;
    const uint32_t count = e->kernel->parameter_count;
    e->arguments = lilac_arena_array(e->arena, uint64_t, count + 1);
    e->known = lilac_arena_array(e->arena, bool, count + 1);
    e->memory = lilac_arena_array(e->arena, lilac_simt_known_memory, launch->argument_count + 1);
    for (uint32_t p = 0; p < count; p++) {
        const lilac_simt_parameter *parameter = &e->kernel->parameters[p];
        e->known[p] = launch->grid[0] > 0 && (parameter->is_pointer || parameter->is_tensor_map);
        e->arguments[p] = address_of_parameter(p);
    }
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const lilac_explain_argument *argument = &launch->arguments[i];
        const uint32_t p = find_parameter(e, argument->name);
        if (p == count) {
            lilac_error(e->context, e->function->position, e->function->location,
                        "unknown-argument", "kernel '%s' has no parameter '%s'", e->function->name,
                        argument->name);
            return false;
        }
        e->known[p] = true;
        if (argument->contents == NULL) {
            e->arguments[p] = argument->bits;
            continue;
        }
        e->memory[e->memory_count++] = (lilac_simt_known_memory){
            .address = e->arguments[p], .length = argument->length, .bytes = argument->contents};
    }
    return true;
}

void explain_set_launch(const lilac_explanation *e, lilac_simt_evaluation *values) {
    values->argument_count = e->kernel->parameter_count;
    values->arguments = e->arguments;
    values->argument_known = e->known;
    values->memory = e->memory;
    values->memory_count = e->memory_count;
    values->programs_known = e->options.launch.grid[0] > 0;
    memcpy(values->grid, e->options.launch.grid, sizeof values->grid);
}

/* The kernel that the launcher starts instead of the one that the options name. Its registers are others. */
static lilac_explanation *explain_other(lilac_context *context, uint32_t source,
                                        const lilac_explain_options *options, bool maps) {
    lilac_explain_options other = *options;
    other.compile.target.launch_maps = maps;
    other.compile.target.one_block |= maps;
    other.registers = 0;
    lilac_explanation *e = lilac_explain(context, source, &other);
    if (e != NULL) {
        e->without_maps |= !maps;
    }
    return e;
}

lilac_explanation *lilac_explain(lilac_context *context, uint32_t source,
                                 const lilac_explain_options *options) {
    lilac_arena *arena = lilac_arena_create();
    lilac_explanation *e = lilac_arena_new(arena, lilac_explanation);
    *e = (lilac_explanation){
        .context = context, .arena = arena, .options = *options, .source = source};
    e->lowered.arena = arena;
    lilac_text_init(&e->ptx);
    if (!compile(e)) {
        lilac_explanation_destroy(e);
        return NULL;
    }
    find_kernel(e);
    if (!take_arguments(e)) {
        lilac_explanation_destroy(e);
        return NULL;
    }
    const explain_kernel started = explain_choose_kernel(e);
    if (started != EXPLAIN_THIS) {
        lilac_explanation_destroy(e);
        return explain_other(context, source, options, started == EXPLAIN_ONE_BLOCK);
    }
    explain_collect(e);
    explain_find_files(e);
    explain_find_iterations(e);
    explain_count_emitted(e);
    for (uint32_t i = 0; i < e->count; i++) {
        explain_count_plans(e, i);
    }
    explain_find_accesses(e);
    explain_find_traffic(e);
    explain_find_budget(e);
    return e;
}

const lilac_axis_analysis *explain_facts(lilac_explanation *e) {
    if (e->facts == NULL) {
        e->facts = lilac_arena_new(e->arena, lilac_axis_analysis);
        lilac_engine_axis_facts(e->facts, e->arena, e->function);
    }
    return e->facts;
}

void lilac_explanation_destroy(lilac_explanation *e) {
    if (e == NULL) {
        return;
    }
    explain_clear_files(e);
    lilac_ptx_origins_clear(&e->origins);
    lilac_text_clear(&e->ptx);
    lilac_text_clear(&e->tile);
    lilac_compilation_clear(&e->compilation);
    lilac_arena_destroy(e->arena);
}

const lilac_explain_operation *lilac_explain_operations(const lilac_explanation *e,
                                                        uint32_t *count) {
    *count = e->count;
    return e->operations;
}

bool lilac_explain_is_exact(const lilac_explanation *e, uint32_t number) {
    for (uint32_t i = 0; i < e->plans[number - 1].count; i++) {
        const lilac_lowered_plan *p = e->plans[number - 1].list[i];
        if ((p->kind == LILAC_LOWERED_ACCESS && !p->is.access->exact) ||
            (p->kind == LILAC_LOWERED_GATHER && !p->is.gather->exact) ||
            p->kind == LILAC_LOWERED_HISTOGRAM) {
            return false;
        }
    }
    return true;
}

const lilac_explain_loop *lilac_explain_loops(const lilac_explanation *e, uint32_t *count) {
    *count = e->loop_count;
    return e->loops;
}

const lilac_explain_budget *lilac_explain_budget_get(const lilac_explanation *e) {
    return &e->budget;
}

const lilac_compilation *lilac_explain_compilation(const lilac_explanation *e) {
    return &e->compilation;
}

char explain_sorted_axis(const lilac_explanation *e, bool *descending) {
    const int64_t order = lilac_tile_find_integer(&e->function->attributes, LILAC_PROGRAM_ORDER, 0);
    *descending = order < 0;
    return order == 0 ? '\0' : (char)('x' + (order < 0 ? -order : order) - 1);
}
