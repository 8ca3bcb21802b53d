/* pipeline: the passes as one table, and one loop over it.
 *
 *   text   %v = tt.load %p : tensor<4096x!tt.ptr<f16>>
 *    │ read, verify
 *   tile   the same operations as objects
 *    │ structurize … simplify … assign_layouts …
 *   tile   %v = tt.load %p : tensor<4096x!tt.ptr<f16>, #ttg.linear<{…}>>
 *    │ lower
 *   simt   %8, %9, %10, %11 = ld.global …
 *    │ fold, cse, licm, barriers, dce …
 *   simt   fewer instructions: the simulator runs them, and PTX is written from them
 *    │ ptx
 *   text   ld.global.v4.b32 {%r1, …}, [%rd1];
 *
 * The loop runs a row, measures its time, counts the operations of the IR and, on request, verifies
 * and prints it. A row is one of three things: a step of the pipeline (one IR becomes another), a
 * pass of the engine on tile IR, or a pass on each SIMT kernel.
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include "changes.h"
#include "provenance.h"
#include "target.h"

#include <lilac/engine.h>
#include <lilac/lower.h>
#include <lilac/schedule.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct pipeline {
    lilac_compilation *result;
    const lilac_options *options;
    uint32_t source;
    bool simt_text;      /* the source is SIMT text */
    bool layouts;        /* tensors have layouts by now */
    bool partitions;     /* the source has ttg.warp_specialize */
    bool changed;        /* the last pass changed the program */
    bool written;        /* the PTX is written */
    uint32_t operations; /* of the IR after the last pass that changed it */
} pipeline;

/* ---- the steps -------------------------------------------------------------------------- */

/* Requires a kernel, and applies the options for kernels to all of them. */
static bool check_kernels(const pipeline *run) {
    if (run->result->simt->kernels == NULL) {
        lilac_error(run->result->context, (lilac_position){run->source, 0}, 0, "no-kernel",
                    "this module has no public function with a body, so there is no kernel");
        return false;
    }
    for (lilac_simt_kernel *kernel = run->result->simt->kernels; kernel; kernel = kernel->next) {
        kernel->no_contraction |= run->options->no_contraction;
    }
    return true;
}

/* Refuses a number in the options that differs from the one in the kernel's header. */
static bool check_shape(const pipeline *run, const char *what, uint32_t asked, uint32_t found) {
    if (asked == 0 || asked == found) {
        return true;
    }
    lilac_error(run->result->context, (lilac_position){run->source, 0}, 0, "invalid-target",
                "the kernel's header says %s %u, the options say %u", what, found, asked);
    return false;
}

/* SIMT text has its device and launch shape in its header. */
static bool read_simt_source(pipeline *run) {
    lilac_compilation *result = run->result;
    run->changed = true;
    result->simt = lilac_simt_read(result->context, run->source);
    if (result->simt == NULL || !check_kernels(run)) {
        return false;
    }
    const lilac_arch *arch = result->simt->arch;
    const lilac_simt_kernel *kernel = result->simt->kernels;
    if (result->target.arch != NULL && result->target.arch != arch) {
        lilac_error(result->context, (lilac_position){run->source, 0}, 0, "invalid-target",
                    "this module is for the device '%s', not for %s", arch->name,
                    result->target.arch->name);
        return false;
    }
    if (!check_shape(run, "warps", result->target.num_warps, kernel->num_warps) ||
        !check_shape(run, "ctas", result->target.num_ctas, kernel->num_ctas)) {
        return false;
    }
    result->target.arch = arch;
    result->target.num_warps = result->asked_warps = kernel->num_warps;
    result->target.num_ctas = kernel->num_ctas;
    return true;
}

static bool ask_schedules(const pipeline *run) {
    bool good = true;
    for (uint32_t i = 0; good && i < run->options->schedule_count; i++) {
        good = lilac_schedule_ask(run->result->tile, run->source, run->options->schedules[i]);
    }
    return good;
}

static bool read_source(pipeline *run) {
    if (run->simt_text && run->options->schedule_count > 0) {
        lilac_error(run->result->context, (lilac_position){run->source, 0}, 0, "invalid-schedule",
                    "this is SIMT text; schedules are for loops of tile operations");
        return false;
    }
    if (run->simt_text) {
        return read_simt_source(run);
    }
    run->changed = true;
    run->result->tile = lilac_tile_read(run->result->context, run->source);
    run->partitions = run->result->tile != NULL && lilac_tile_has_partitions(run->result->tile);
    if (run->result->tile == NULL ||
        (run->options->kernel != NULL &&
         !lilac_kernel_select(run->result->tile, run->source, run->options->kernel)) ||
        !lilac_target_take(&run->result->target, run->result->tile, run->source)) {
        return false;
    }
    run->result->asked_warps = run->result->target.num_warps;
    return lilac_assume_divisors(run->result->tile, run->source, run->options) &&
           ask_schedules(run) &&
           lilac_force_layouts(run->result->tile, run->source, run->options, &run->result->target);
}

static bool verify_source(pipeline *run) {
    if (run->result->simt != NULL) {
        return lilac_simt_verify(run->result->simt);
    }
    return lilac_tile_verify(run->result->tile, false);
}

static bool choose_warps(pipeline *run) {
    lilac_target *target = &run->result->target;
    if (!run->partitions) {
        target->num_warps =
            lilac_engine_choose_warps(run->result->tile, target, &run->result->warps_reason);
    }
    run->changed = target->num_warps != run->result->asked_warps;
    return true;
}

static bool check_schedules(pipeline *run) {
    return lilac_schedule_check(run->result->tile, run->source, run->options->schedule_count,
                                run->options->schedules);
}

static bool lower_tile(pipeline *run) {
    run->changed = true;
    if (run->options->number_operations) {
        lilac_number_operations(run->result->tile);
    }
    const lilac_lower_options options = {.keep_subnormals = run->options->keep_subnormals,
                                         .plans = run->options->plans};
    run->result->simt = lilac_lower_with(run->result->tile, &run->result->target, &options);
    return run->result->simt != NULL && check_kernels(run);
}

static bool write_ptx(pipeline *run) {
    const lilac_ptx_options options = {.comments = run->options->comments,
                                       .line_info = run->options->line_info,
                                       .newest_version = run->options->newest_ptx};
    run->written = true;
    return lilac_ptx_write(&run->result->ptx, run->result->simt, &options);
}

/* ---- the table -------------------------------------------------------------------------- */

typedef struct pass_row {
    lilac_stage stage; /* of the program after the pass */
    const char *name;
    bool (*step)(pipeline *run);
    bool (*tile)(lilac_tile_module *module, const lilac_target *target, bool *changed);
    bool (*simt)(lilac_simt_kernel *kernel);
} pass_row;

/* clang-format off */
static const pass_row passes[] = {
    /* stage             name                         step           pass on tile IR                         pass on a SIMT kernel */
    {LILAC_STAGE_SOURCE, "read",                      read_source,   NULL,                                   NULL},
    {LILAC_STAGE_SOURCE, "verify",                    verify_source, NULL,                                   NULL},
    {LILAC_STAGE_TILE,   "structurize",               NULL,          lilac_engine_structurize,               NULL},
    {LILAC_STAGE_TILE,   "inline",                    NULL,          lilac_engine_inline,                    NULL},
    {LILAC_STAGE_TILE,   "decompose_dots",            NULL,          lilac_engine_decompose_dots,            NULL},
    {LILAC_STAGE_TILE,   "join_loops",                NULL,          lilac_engine_join_loops,                NULL},
    {LILAC_STAGE_TILE,   "describe_loads",            NULL,          lilac_engine_describe_loads,            NULL},
    {LILAC_STAGE_TILE,   "choose_warps",              choose_warps,  NULL,                                   NULL},
    {LILAC_STAGE_TILE,   "resize_tiles",              NULL,          lilac_engine_resize_tiles,              NULL},
    {LILAC_STAGE_TILE,   "split_sums",                NULL,          lilac_engine_split_sums,                NULL},
    {LILAC_STAGE_TILE,   "order_programs",            NULL,          lilac_engine_order_programs,            NULL},
    {LILAC_STAGE_TILE,   "count_programs",            NULL,          lilac_engine_count_programs,            NULL},
    {LILAC_STAGE_TILE,   "expand_descriptors",        NULL,          lilac_engine_expand_descriptors,        NULL},
    {LILAC_STAGE_TILE,   "assert_divisors",           NULL,          lilac_engine_assert_divisors,           NULL},
    {LILAC_STAGE_TILE,   "reduce_strength",           NULL,          lilac_engine_reduce_strength,           NULL},
    {LILAC_STAGE_TILE,   "simplify",                  NULL,          lilac_engine_simplify,                  NULL},
    {LILAC_STAGE_TILE,   "hoist_assertions",          NULL,          lilac_engine_hoist_assertions,          NULL},
    {LILAC_STAGE_TILE,   "fuse_reductions",           NULL,          lilac_engine_fuse_reductions,           NULL},
    {LILAC_STAGE_TILE,   "scale_extremes",            NULL,          lilac_engine_scale_extremes,            NULL},
    {LILAC_STAGE_TILE,   "orient_dots",               NULL,          lilac_engine_orient_dots,               NULL},
    {LILAC_STAGE_TILE,   "select_dots",               NULL,          lilac_engine_select_dots,               NULL},
    {LILAC_STAGE_TILE,   "assign_layouts",            NULL,          lilac_engine_assign_layouts,            NULL},
    {LILAC_STAGE_TILE,   "share_operands",            NULL,          lilac_engine_share_operands,            NULL},
    {LILAC_STAGE_TILE,   "transpose_operands",        NULL,          lilac_engine_transpose_operands,        NULL},
    {LILAC_STAGE_TILE,   "hold_operands",             NULL,          lilac_engine_hold_operands,             NULL},
    {LILAC_STAGE_TILE,   "rotate_products",           NULL,          lilac_engine_rotate_products,           NULL},
    {LILAC_STAGE_TILE,   "divide_boxes",              NULL,          lilac_engine_divide_boxes,              NULL},
    {LILAC_STAGE_TILE,   "pipeline_loops",            NULL,          lilac_engine_pipeline_loops,            NULL},
    {LILAC_STAGE_TILE,   "copy_boxes",                NULL,          lilac_engine_copy_boxes,                NULL},
    {LILAC_STAGE_TILE,   "delay_products",            NULL,          lilac_engine_delay_products,            NULL},
    {LILAC_STAGE_TILE,   "skip_masks",                NULL,          lilac_engine_skip_masks,                NULL},
    {LILAC_STAGE_TILE,   "overlap_products",          NULL,          lilac_engine_overlap_products,          NULL},
    {LILAC_STAGE_TILE,   "specialise_warps",          NULL,          lilac_engine_specialise_warps,          NULL},
    {LILAC_STAGE_TILE,   "decouple_warps",            NULL,          lilac_engine_decouple_warps,            NULL},
    {LILAC_STAGE_TILE,   "check_schedules",           check_schedules, NULL,                                 NULL},
    {LILAC_STAGE_TILE,   "split_reductions",          NULL,          lilac_engine_split_reductions,          NULL},
    {LILAC_STAGE_TILE,   "combine_blocks",            NULL,          lilac_engine_combine_blocks,            NULL},
    {LILAC_STAGE_TILE,   "eliminate_redundant_loads", NULL,          lilac_engine_eliminate_redundant_loads, NULL},
    {LILAC_STAGE_TILE,   "unroll_loops",              NULL,          lilac_engine_unroll_loops,              NULL},
    {LILAC_STAGE_TILE,   "raise_loads",               NULL,          lilac_engine_raise_loads,               NULL},
    {LILAC_STAGE_TILE,   "order_accesses",            NULL,          lilac_engine_order_accesses,            NULL},
    {LILAC_STAGE_TILE,   "raise_operands",            NULL,          lilac_engine_raise_operands,            NULL},
    {LILAC_STAGE_TILE,   "sink_masks",                NULL,          lilac_engine_sink_masks,                NULL},
    {LILAC_STAGE_TILE,   "step_products",             NULL,          lilac_engine_step_products,             NULL},
    {LILAC_STAGE_SIMT,   "lower",                     lower_tile,    NULL,                                   NULL},
    {LILAC_STAGE_SIMT,   "tail_masks",                NULL,          NULL,                                   lilac_simt_opt_tail_masks},
    {LILAC_STAGE_SIMT,   "fold",                      NULL,          NULL,                                   lilac_simt_opt_fold},
    {LILAC_STAGE_SIMT,   "sink_selects",              NULL,          NULL,                                   lilac_simt_opt_sink_selects},
    {LILAC_STAGE_SIMT,   "contract",                  NULL,          NULL,                                   lilac_simt_opt_contract},
    {LILAC_STAGE_SIMT,   "narrow_divisions",          NULL,          NULL,                                   lilac_simt_opt_narrow_divisions},
    {LILAC_STAGE_SIMT,   "expand_divisions",          NULL,          NULL,                                   lilac_simt_opt_expand_divisions},
    {LILAC_STAGE_SIMT,   "merge_range_tests",         NULL,          NULL,                                   lilac_simt_opt_merge_range_tests},
    {LILAC_STAGE_SIMT,   "convert_bytes",             NULL,          NULL,                                   lilac_simt_opt_convert_bytes},
    {LILAC_STAGE_SIMT,   "cse",                       NULL,          NULL,                                   lilac_simt_opt_cse},
    {LILAC_STAGE_SIMT,   "licm",                      NULL,          NULL,                                   lilac_simt_opt_licm},
    {LILAC_STAGE_SIMT,   "tail_masks",                NULL,          NULL,                                   lilac_simt_opt_tail_masks},
    {LILAC_STAGE_SIMT,   "fold",                      NULL,          NULL,                                   lilac_simt_opt_fold},
    {LILAC_STAGE_SIMT,   "contract",                  NULL,          NULL,                                   lilac_simt_opt_contract},
    {LILAC_STAGE_SIMT,   "sigmoids",                  NULL,          NULL,                                   lilac_simt_opt_sigmoids},
    {LILAC_STAGE_SIMT,   "narrow_floats",             NULL,          NULL,                                   lilac_simt_opt_narrow_floats},
    {LILAC_STAGE_SIMT,   "split_addresses",           NULL,          NULL,                                   lilac_simt_opt_split_addresses},
    {LILAC_STAGE_SIMT,   "carry_products",            NULL,          NULL,                                   lilac_simt_opt_carry_products},
    {LILAC_STAGE_SIMT,   "share_increments",          NULL,          NULL,                                   lilac_simt_opt_share_increments},
    {LILAC_STAGE_SIMT,   "remove_fences",             NULL,          NULL,                                   lilac_simt_opt_remove_fences},
    {LILAC_STAGE_SIMT,   "barriers",                  NULL,          NULL,                                   lilac_simt_opt_barriers},
    {LILAC_STAGE_SIMT,   "dce",                       NULL,          NULL,                                   lilac_simt_opt_dce},
    {LILAC_STAGE_SIMT,   "rematerialize_addresses",   NULL,          NULL,                                   lilac_simt_opt_rematerialize_addresses},
    {LILAC_STAGE_SIMT,   "schedule",                  NULL,          NULL,                                   lilac_simt_opt_schedule},
    {LILAC_STAGE_SIMT,   "stagger_products",          NULL,          NULL,                                   lilac_simt_opt_stagger_products},
    {LILAC_STAGE_SIMT,   "test_early",                NULL,          NULL,                                   lilac_simt_opt_test_early},
    {LILAC_STAGE_SIMT,   "redefine_operands",         NULL,          NULL,                                   lilac_simt_opt_redefine_operands},
    {LILAC_STAGE_SIMT,   "occupancy",                 NULL,          NULL,                                   lilac_simt_opt_occupancy},
    {LILAC_STAGE_SIMT,   "schedule_barriers",         NULL,          NULL,                                   lilac_simt_opt_schedule_barriers},
    {LILAC_STAGE_SIMT,   "rematerialize_predicates",  NULL,          NULL,                                   lilac_simt_opt_rematerialize_predicates},
    {LILAC_STAGE_SIMT,   "gather_copies",             NULL,          NULL,                                   lilac_simt_opt_gather_copies},
    {LILAC_STAGE_TEXT,   "ptx",                       write_ptx,     NULL,                                   NULL},
};
/* clang-format on */

enum { PASS_COUNT = sizeof passes / sizeof passes[0] };
_Static_assert(PASS_COUNT <= LILAC_MAX_PASSES, "the statistics have a place for every pass");

const char *lilac_pass_name(uint32_t index) {
    return index < PASS_COUNT ? passes[index].name : NULL;
}

lilac_stage lilac_pass_stage(uint32_t index) {
    return index < PASS_COUNT ? passes[index].stage : LILAC_STAGE_COUNT;
}

/* One past the last pass of that name; 0 when there is none. */
static uint32_t end_of(const char *name) {
    uint32_t end = 0;
    for (uint32_t i = 0; i < PASS_COUNT; i++) {
        if (strcmp(passes[i].name, name) == 0) {
            end = i + 1;
        }
    }
    return end;
}

/* The next name of a list "a,b,c"; false at its end. */
static bool next_name(const char **list, const char **name, size_t *length) {
    if (*list == NULL || **list == '\0') {
        return false;
    }
    *name = *list;
    *length = strcspn(*list, ",");
    *list += *length + ((*list)[*length] == ',');
    return true;
}

static const pass_row *find_pass(const char *name, size_t length) {
    for (uint32_t i = 0; i < PASS_COUNT; i++) {
        if (strlen(passes[i].name) == length && memcmp(passes[i].name, name, length) == 0) {
            return &passes[i];
        }
    }
    return NULL;
}

static bool is_listed(const char *list, const char *pass) {
    const char *name;
    size_t length;
    while (next_name(&list, &name, &length)) {
        if (strlen(pass) == length && memcmp(pass, name, length) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- counting --------------------------------------------------------------------------- */

static void count_tile_op(void *data, lilac_tile_op *op) {
    (void)op;
    ++*(uint32_t *)data;
}

static uint32_t count_tile(const lilac_tile_module *module) {
    uint32_t count = 0;
    for (lilac_tile_function *function = module->functions; function; function = function->next) {
        if (function->body != NULL) {
            lilac_tile_walk(function->body, count_tile_op, &count);
        }
    }
    return count;
}

static uint32_t count_body(const lilac_simt_body *body) {
    uint32_t count = 0;
    for (const lilac_simt_instruction *i = body->first; i; i = i->next) {
        count++;
        for (uint32_t b = 0; b < i->body_count; b++) {
            count += count_body(i->bodies[b]);
        }
    }
    return count;
}

static uint32_t count_simt(const lilac_simt_module *module) {
    uint32_t count = 0;
    for (const lilac_simt_kernel *kernel = module->kernels; kernel; kernel = kernel->next) {
        count += count_body(kernel->body);
    }
    return count;
}

static uint32_t count_operations(const lilac_compilation *compilation) {
    if (compilation->simt != NULL) {
        return count_simt(compilation->simt);
    }
    return compilation->tile != NULL ? count_tile(compilation->tile) : 0;
}

/* ---- running ---------------------------------------------------------------------------- */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool run_on_kernels(const pass_row *pass, lilac_simt_module *module) {
    bool changed = false;
    for (lilac_simt_kernel *kernel = module->kernels; kernel; kernel = kernel->next) {
        changed |= pass->simt(kernel);
    }
    return changed;
}

/* A module that divides its warps itself is compiled as it is written: of the passes on tile IR
 * only those run on it that remove branches and calls. */
static bool is_for_partitions(const pass_row *pass) {
    return pass->tile == lilac_engine_structurize || pass->tile == lilac_engine_inline;
}

static bool run_pass(const pass_row *pass, pipeline *run) {
    run->changed = false;
    if (pass->step != NULL) {
        return pass->step(run);
    }
    if (pass->tile != NULL && run->partitions && !is_for_partitions(pass)) {
        return true;
    }
    if (pass->tile != NULL) {
        return pass->tile(run->result->tile, &run->result->target, &run->changed);
    }
    run->changed = run_on_kernels(pass, run->result->simt);
    return true;
}

static bool verify_program(const pipeline *run) {
    return run->result->simt != NULL ? lilac_simt_verify(run->result->simt)
                                     : lilac_tile_verify(run->result->tile, run->layouts);
}

/* The pass `verify` finds the errors of the source, so an error here is one of the pass. The errors
 * are reported at their lines of the program after the pass. */
static bool check_after(const pass_row *pass, const pipeline *run) {
    if (pass->step == read_source || pass->step == verify_source || run->written) {
        return true; /* the source is checked by `verify` alone */
    }
    lilac_context *context = run->result->context;
    const lilac_diagnostic *last = lilac_diagnostics(context);
    while (last != NULL && last->next != NULL) {
        last = last->next;
    }
    if (verify_program(run)) {
        return true;
    }
    lilac_diagnostics_forget(context, last);
    char name[64];
    (void)snprintf(name, sizeof name, "<after %s>", pass->name);
    run->result->malformed = run->result->simt != NULL
                                 ? lilac_simt_print_source(run->result->simt, name)
                                 : lilac_tile_print_source(run->result->tile, name);
    (void)verify_program(run);
    lilac_internal_error(context, last, (lilac_position){run->source, 0},
                         "the program is not well-formed after the pass '%s'", pass->name);
    return false;
}

static void print_after(const pass_row *pass, const pipeline *run) {
    const char *which = run->options->print_after;
    lilac_text *out = run->options->printed;
    if (which == NULL || (strcmp(which, "all") != 0 && strcmp(which, pass->name) != 0)) {
        return;
    }
    lilac_text_printf(out, "// ---- after %s ----\n", pass->name);
    if (run->written) {
        lilac_text_put(out, lilac_text_get(&run->result->ptx), run->result->ptx.length);
    } else if (run->result->simt != NULL) {
        lilac_simt_print(out, run->result->simt);
    } else {
        lilac_tile_print(out, run->result->tile, run->options->line_info);
    }
}

static bool check_pass_names(lilac_context *context, const char *list) {
    const char *name;
    size_t length;
    bool valid = true;
    while (next_name(&list, &name, &length)) {
        if (find_pass(name, length) == NULL) {
            lilac_error(context, (lilac_position){0, 0}, 0, "unknown-pass",
                        "there is no pass '%.*s'", (int)length, name);
            valid = false;
        }
    }
    return valid;
}

static bool check_options(lilac_context *context, const lilac_options *options) {
    const char *print = options->print_after;
    bool valid = lilac_target_check(context, &options->target);
    if (print != NULL && strcmp(print, "all") != 0) {
        valid &= check_pass_names(context, print);
    }
    valid &= check_pass_names(context, options->stop_after);
    valid &= check_pass_names(context, options->skip);
    return valid;
}

void lilac_options_init(lilac_options *options) {
    *options = (lilac_options){
        .target = {.num_stages = 3},
        .stop_at = LILAC_STAGE_TEXT,
        .comments = true,
        .line_info = true,
    };
}

/* Requires that the program has the IR that the pass works on. */
static bool check_order(const pass_row *pass, const pipeline *run) {
    const bool simt = run->result->simt != NULL, tile = !simt && run->result->tile != NULL;
    const bool tile_pass = pass->tile != NULL || pass->step == choose_warps ||
                           pass->step == lower_tile || pass->step == check_schedules;
    const bool valid = pass->step == read_source     ? !simt && !tile
                       : pass->step == verify_source ? simt || tile
                       : tile_pass                   ? tile
                                                     : simt && !run->written;
    if (!valid) {
        lilac_error(run->result->context, (lilac_position){run->source, 0}, 0, "pass-order",
                    "the pass '%s' is for %s; the program is %s here", pass->name,
                    tile_pass                   ? "tile IR"
                    : pass->step == read_source ? "text"
                                                : "SIMT IR",
                    run->written ? "PTX"
                    : simt       ? "SIMT IR"
                    : tile       ? "tile IR"
                                 : "not read");
    }
    return valid;
}

/* One row, with statistics, printing and verification as the options ask for. */
static bool run_row(const pass_row *pass, pipeline *run) {
    lilac_compilation *result = run->result;
    if (is_listed(run->options->skip, pass->name)) {
        return true;
    }
    if (!check_order(pass, run)) {
        return false;
    }
    const double start = now();
    const bool valid = run_pass(pass, run);
    const double seconds = now() - start;
    if (run->changed) {
        run->operations = count_operations(result);
    }
    if (result->pass_count < LILAC_MAX_PASSES) {
        result->passes[result->pass_count++] =
            (lilac_pass_statistics){pass->name, seconds, run->operations};
    }
    if (!valid) {
        return false;
    }
    run->layouts |= pass->tile == lilac_engine_assign_layouts;
    print_after(pass, run);
    return !run->options->verify || check_after(pass, run);
}

/* The rows that read the source, and those of the stages after `after`. */
static bool run_table(pipeline *run, lilac_stage after) {
    const lilac_options *options = run->options;
    const uint32_t end = options->stop_after != NULL ? end_of(options->stop_after) : PASS_COUNT;
    for (uint32_t i = 0; i < end && passes[i].stage <= options->stop_at; i++) {
        const bool earlier = passes[i].stage <= after && passes[i].stage != LILAC_STAGE_SOURCE;
        if (!earlier && !(run->simt_text && passes[i].step == lower_tile) &&
            !run_row(&passes[i], run)) {
            return false;
        }
    }
    return true;
}

static bool start(pipeline *run, lilac_compilation *result, lilac_context *context,
                  const lilac_options *options) {
    *result = (lilac_compilation){.context = context, .target = options->target};
    lilac_text_init(&result->ptx);
    run->result = result;
    run->options = options;
    return check_options(context, options);
}

bool lilac_compile(lilac_compilation *result, lilac_context *context, uint32_t source,
                   const lilac_options *options) {
    pipeline run = {.source = source};
    return start(&run, result, context, options) && run_table(&run, LILAC_STAGE_SOURCE);
}

bool lilac_source_is_simt(const lilac_context *context, uint32_t source) {
    static const char header[] = "simt.module";
    size_t length = 0, at = 0;
    const char *bytes = lilac_source_bytes(context, source, &length);
    while (at < length && (strchr(" \t\r\n", bytes[at]) != NULL || bytes[at] == '/')) {
        if (bytes[at] == '/') { /* a comment, up to the end of its line */
            const char *end = memchr(bytes + at, '\n', length - at);
            at = end != NULL ? (size_t)(end - bytes) : length;
        }
        at += at < length;
    }
    return length - at >= sizeof header - 1 && memcmp(bytes + at, header, sizeof header - 1) == 0;
}

bool lilac_run_passes(lilac_compilation *result, lilac_context *context, uint32_t source,
                      const lilac_options *options, const lilac_pass_selection *selection) {
    pipeline run = {.source = source, .simt_text = lilac_source_is_simt(context, source)};
    const char *list = selection->passes, *name;
    size_t length;
    if (!start(&run, result, context, options) || !check_pass_names(context, list)) {
        return false;
    }
    run.layouts = selection->after >= LILAC_STAGE_TILE;
    const lilac_stage read = run.simt_text ? LILAC_STAGE_TILE : LILAC_STAGE_SOURCE;
    if (list == NULL) {
        return run_table(&run, selection->after > read ? selection->after : read);
    }
    bool valid = run_row(&passes[0], &run) && run_row(&passes[1], &run);
    while (valid && next_name(&list, &name, &length)) {
        valid = run_row(find_pass(name, length), &run);
    }
    return valid;
}

bool lilac_run_tile_passes(lilac_tile_module *module, const lilac_target *target) {
    for (uint32_t i = 0; i < PASS_COUNT; i++) {
        bool changed = false;
        if (passes[i].tile != NULL && !passes[i].tile(module, target, &changed)) {
            return false;
        }
    }
    return true;
}

void lilac_run_simt_passes(lilac_simt_module *module) {
    for (uint32_t i = 0; i < PASS_COUNT; i++) {
        if (passes[i].simt != NULL) {
            (void)run_on_kernels(&passes[i], module);
        }
    }
}

void lilac_compilation_clear(lilac_compilation *compilation) {
    if (compilation->simt != NULL) {
        lilac_simt_module_destroy(compilation->simt);
    }
    if (compilation->tile != NULL) {
        lilac_tile_module_destroy(compilation->tile);
    }
    lilac_text_clear(&compilation->ptx);
    *compilation = (lilac_compilation){0};
}
