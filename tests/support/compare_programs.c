/* Compares the results of a program with the interpreter, generates random layouts for it, and
 * reduces it to the smallest part with the same outcome. */
#include "random_programs.h"

#include <lilac/driver.h>
#include <lilac/engine.h>
#include <lilac/lower.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- data -------------------------------------------------------------------------------- */

/* Small numbers, extremes and random bits; floats mostly near one. */
static uint64_t random_element(lilac_random *random, lilac_scalar scalar, bool plain) {
    const uint32_t bits = lilac_scalar_bits(scalar);
    uint64_t word = lilac_random_next(random);
    if (lilac_scalar_is_float(scalar)) {
        static const double odd[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1.0, 1e-30, 6e4};
        uint64_t kind = lilac_random_below(random, 64);
        double value = ((double)(int64_t)(word >> 11) / (double)(1ULL << 52) - 1.0) * 3.0;
        value = kind == 0 && !plain ? odd[lilac_random_below(random, 8)]
                : kind < 16         ? value * 100
                                    : value;
        return lilac_scalar_encode(scalar, value, LILAC_ROUND_NEAREST_EVEN, true);
    }
    if (plain) {
        return lilac_scalar_mask(scalar, 1 + lilac_random_below(random, 50));
    }
    switch (lilac_random_below(random, 4)) {
    case 0:
        return lilac_scalar_mask(scalar, lilac_random_below(random, 9) - 4);
    case 1:
        return lilac_scalar_mask(scalar, (1ULL << (bits - 1)) - lilac_random_below(random, 2));
    default:
        return lilac_scalar_mask(scalar, word);
    }
}

static uint32_t bytes_of(lilac_scalar scalar) {
    return (lilac_scalar_bits(scalar) + 7) / 8;
}

typedef struct memory {
    uint32_t count;
    interpreter_buffer wanted[PROGRAM_MOST_PARAMETERS];
    lilac_sim_buffer got[PROGRAM_MOST_PARAMETERS];
    uint8_t *before[PROGRAM_MOST_PARAMETERS]; /* what was there at first */
    uint64_t arguments[PROGRAM_MOST_PARAMETERS];
} memory;

static void memory_make(memory *m, const program *p) {
    lilac_random random;
    memset(m, 0, sizeof *m);
    lilac_random_seed(&random, p->data_seed);
    for (uint32_t i = 0; i < p->parameter_count; i++) {
        const program_parameter *q = &p->parameters[i];
        if (!q->is_buffer) {
            continue;
        }
        uint32_t bytes = bytes_of(q->scalar);
        uint64_t size = q->count * bytes;
        interpreter_buffer *want = &m->wanted[m->count];
        lilac_sim_buffer *got = &m->got[m->count];
        want->bytes = malloc(size);
        want->size = size;
        got->bytes = malloc(size);
        got->size = size;
        got->name = "buffer";
        memset(want->bytes, 0x5A, size);
        for (uint64_t e = 0; e < q->count && !q->is_output; e++) {
            uint64_t bits = random_element(&random, q->scalar, p->plain_data);
            memcpy(want->bytes + e * bytes, &bits, bytes);
        }
        memcpy(got->bytes, want->bytes, size);
        m->before[m->count] = malloc(size);
        memcpy(m->before[m->count++], want->bytes, size);
    }
    lilac_sim_place(m->got, m->count);
    for (uint32_t i = 0, b = 0; i < p->parameter_count; i++) {
        m->arguments[i] = p->parameters[i].bits;
        if (p->parameters[i].is_buffer) {
            m->arguments[i] = m->wanted[b].address = m->got[b].address;
            b++;
        }
    }
}

static void memory_clear(memory *m) {
    for (uint32_t i = 0; i < m->count; i++) {
        interpreter_buffer_clear(&m->wanted[i]);
        free(m->wanted[i].bytes);
        free(m->got[i].bytes);
        free(m->before[i]);
    }
}

/* ---- devices ----------------------------------------------------------------------------- */

void program_set_device(program *p, uint64_t row) {
    size_t count = 0;
    while (lilac_arch_at(count) != NULL) {
        count++;
    }
    p->device = lilac_arch_at(row % count);
    p->warps = p->warps < p->device->max_warps ? p->warps : p->device->max_warps;
}

static const lilac_arch *device_of(const program *p) {
    return p->device != NULL ? p->device : lilac_arch_find("sm_90a");
}

/* ---- random layouts ---------------------------------------------------------------------- */

typedef struct assignment {
    lilac_tile_module *module;
    program_choices choices; /* of the operation at hand */
    uint64_t seed;
    uint32_t lane_bits, warp_bits, block_bits;
    bool good;
} assignment;

static uint32_t log2_of(int64_t size) {
    uint32_t bits = 0;
    while (INT64_C(1) << bits < size) {
        bits++;
    }
    return bits;
}

/* Unit vectors, sums of them, and zeros where the places are more, dealt to registers, lanes, warps and
 * blocks in any order. */
static const lilac_tile_type *with_random_layout(assignment *a, const lilac_tile_type *type) {
    if (!lilac_tile_is_tensor(type)) {
        return type;
    }
    static const char *const inputs[4] = {"register", "lane", "warp", "block"};
    program_choices *c = &a->choices;
    uint64_t columns[40] = {0};
    lilac_layout *layout = lilac_arena_new(a->module->arena, lilac_layout);
    uint32_t total = 0, places = a->lane_bits + a->warp_bits + a->block_bits;
    lilac_layout_init(layout);
    for (uint32_t d = 0; d < type->rank; d++) {
        char name[] = "dim0";
        name[3] = (char)('0' + d);
        a->good = lilac_layout_add_out(layout, name, log2_of(type->shape[d]), NULL) && a->good;
        total += log2_of(type->shape[d]);
    }
    for (uint32_t i = 0; i < total; i++) {
        columns[i] = 1ULL << i;
    }
    for (uint32_t n = program_below(c, 3) == 0 ? program_below(c, 8) : 0; n > 0 && total > 1; n--) {
        uint32_t to = program_below(c, total), from = program_below(c, total);
        columns[to] ^= to != from ? columns[from] : 0;
    }
    uint32_t copies = program_below(c, 3) == 0 ? program_below(c, 3) : 0;
    uint32_t registers = total + copies > places ? total + copies - places : 0;
    uint32_t count[4] = {registers, a->lane_bits, a->warp_bits, a->block_bits};
    uint32_t all = registers + places;
    for (uint32_t i = all; i > 1; i--) {
        uint32_t k = program_below(c, i);
        uint64_t kept = columns[i - 1];
        columns[i - 1] = columns[k];
        columns[k] = kept;
    }
    for (uint32_t i = 0, first = 0; i < 4; first += count[i++]) {
        a->good =
            lilac_layout_add_in(layout, inputs[i], count[i], columns + first, NULL) && a->good;
    }
    return lilac_tile_with_layout(a->module, type, layout);
}

static void convert_operand(assignment *a, lilac_tile_op *op, uint32_t i,
                            const lilac_tile_type *type) {
    lilac_tile_value *value = op->operands[i].value;
    if (!lilac_tile_is_tensor(value->type) || value->type == type) {
        return;
    }
    lilac_tile_op *convert = lilac_tile_op_create(a->module, LILAC_TILE_OP_TTG_CONVERT_LAYOUT, 1,
                                                  &value, 1, &type, 0, op->location);
    lilac_tile_insert_before(op, convert);
    lilac_tile_set_operand(op, i, &convert->results[0]);
}

/* From here on choices are those of this operation: of its results' names, or of its operands'. */
static void choose_by_names(assignment *a, const lilac_tile_op *op) {
    uint64_t seed = lilac_hash_word(op->code, a->seed);
    const char *name = NULL;
    for (uint32_t i = 0; i < op->operand_count && op->result_count == 0; i++) {
        name = op->operands[i].value->name;
        seed = name != NULL ? lilac_hash(name, strlen(name), seed) : seed;
    }
    name = op->result_count > 0 ? op->results[0].name : NULL;
    seed = name != NULL ? lilac_hash(name, strlen(name), seed) : seed;
    program_choices_seed(&a->choices, seed);
}

static void walk(assignment *a, lilac_tile_region *region);

/* The last operation of a region hands its operands, from `first` on, to values of these types. */
static void convert_last(assignment *a, lilac_tile_region *region, uint32_t first, uint32_t count,
                         lilac_tile_value *const *like) {
    for (uint32_t k = 0; k < count; k++) {
        convert_operand(a, region->first->last, first + k, like[k]->type);
    }
}

static void assign_control(assignment *a, lilac_tile_op *op) {
    lilac_tile_value *results[64];
    for (uint32_t r = 0; r < op->result_count && r < 64; r++) {
        results[r] = &op->results[r];
        op->results[r].type = with_random_layout(a, op->results[r].type);
    }
    if (op->code == LILAC_TILE_OP_SCF_IF) {
        for (uint32_t k = 0; k < 2; k++) {
            if (op->regions[k]->first != NULL) {
                walk(a, op->regions[k]);
                convert_last(a, op->regions[k], 0, op->result_count, results);
            }
        }
        return;
    }
    if (op->code == LILAC_TILE_OP_SCF_FOR) {
        lilac_tile_block *body = op->regions[0]->first;
        for (uint32_t k = 0; k < op->result_count; k++) {
            body->arguments[1 + k]->type = op->results[k].type;
            convert_operand(a, op, 3 + k, op->results[k].type);
        }
        walk(a, op->regions[0]);
        convert_last(a, op->regions[0], 0, op->result_count, results);
        return;
    }
    lilac_tile_block *before = op->regions[0]->first, *after = op->regions[1]->first;
    for (uint32_t k = 0; k < before->argument_count; k++) {
        before->arguments[k]->type = with_random_layout(a, before->arguments[k]->type);
        convert_operand(a, op, k, before->arguments[k]->type);
    }
    for (uint32_t k = 0; k < after->argument_count; k++) {
        after->arguments[k]->type = op->results[k].type;
    }
    walk(a, op->regions[0]);
    convert_last(a, op->regions[0], 1, op->result_count, results);
    walk(a, op->regions[1]);
    convert_last(a, op->regions[1], 0, before->argument_count, before->arguments);
}

/* A result of a fold has the layout of its operand, or of that without the axis where no other is
 * taken: any will do. All operands and results of one shape have one layout. */
static void assign_op(assignment *a, lilac_tile_op *op) {
    choose_by_names(a, op);
    switch (op->code) {
    case LILAC_TILE_OP_SCF_FOR:
    case LILAC_TILE_OP_SCF_IF:
    case LILAC_TILE_OP_SCF_WHILE:
        assign_control(a, op);
        return;
    case LILAC_TILE_OP_SCF_YIELD:
    case LILAC_TILE_OP_SCF_CONDITION:
        return;
    case LILAC_TILE_OP_TT_CALL:
    case LILAC_TILE_OP_CF_BR:
    case LILAC_TILE_OP_CF_COND_BR:
        a->good = false;
        return;
    default:
        break;
    }
    const lilac_tile_type *like = NULL; /* the shape whose layout was chosen last */
    const lilac_layout *chosen = NULL;
    const bool pairs = (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_ELEMENTWISE) != 0 ||
                       op->code == LILAC_TILE_OP_TT_SCAN || op->code == LILAC_TILE_OP_TT_REDUCE ||
                       op->code == LILAC_TILE_OP_TT_JOIN || op->code == LILAC_TILE_OP_TT_SPLIT ||
                       op->code == LILAC_TILE_OP_TT_MAP_ELEMENTWISE ||
                       op->code == LILAC_TILE_OP_TT_GATHER || op->code == LILAC_TILE_OP_TT_CAT ||
                       op->code == LILAC_TILE_OP_TT_HISTOGRAM;
    for (uint32_t i = 0; i < op->operand_count + op->result_count; i++) {
        bool is_operand = i < op->operand_count;
        lilac_tile_value *value =
            is_operand ? op->operands[i].value : &op->results[i - op->operand_count];
        const lilac_tile_type *type = value->type;
        if (!lilac_tile_is_tensor(type) || (is_operand && !pairs)) {
            continue;
        }
        bool same = like != NULL && like->rank == type->rank &&
                    memcmp(like->shape, type->shape, type->rank * sizeof *type->shape) == 0;
        /* Gathers: source and index are tensors of their own. */
        same = same && !(op->code == LILAC_TILE_OP_TT_GATHER && i == 1);
        const lilac_tile_type *made =
            same ? lilac_tile_with_layout(a->module, type, chosen) : with_random_layout(a, type);
        like = type;
        chosen = made->layout;
        if (is_operand) {
            convert_operand(a, op, i, made);
        } else {
            value->type = made;
        }
    }
}

static void walk(assignment *a, lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
            next = op->next;
            assign_op(a, op);
        }
    }
}

/* Returns false if the program has operations whose layouts cannot be chosen here. */
static bool give_layouts(lilac_tile_module *module, const program *p) {
    assignment a = {.module = module,
                    .seed = p->layout_seed,
                    .lane_bits = log2_of(device_of(p)->warp_size),
                    .warp_bits = log2_of(p->warps),
                    .block_bits = log2_of(p->blocks != 0 ? p->blocks : 1),
                    .good = true};
    if (module->functions->next != NULL) {
        return false;
    }
    walk(&a, module->functions->body);
    return a.good;
}

void program_print_layouts(lilac_text *out, const program *p, const char *text) {
    lilac_context *context = lilac_context_create();
    uint32_t source = lilac_source_add(context, "program.ttir", text, strlen(text));
    lilac_tile_module *module = lilac_tile_read(context, source);
    if (module != NULL && give_layouts(module, p)) {
        lilac_tile_print(out, module, false);
    }
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

/* ---- the plan_check ----------------------------------------------------------------------- */

static void say(program_comparison *j, program_outcome outcome, const char *format, ...)
    LILAC_PRINTF(3, 4);
static void say(program_comparison *j, program_outcome outcome, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(j->why, sizeof j->why, format, arguments);
    va_end(arguments);
    j->outcome = outcome;
}

static bool is_refusal(const lilac_diagnostic *d) {
    static const char *const ids[] = {"unsupported-operation",  "unsupported-type",
                                      "unsupported-clusters",   "layout-conversion",
                                      "too-much-shared-memory", "unsupported-instruction",
                                      "unsupported-layout",     "unsupported-descriptor"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        if (d->id != NULL && strcmp(d->id, ids[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* The first error. Numbers that are not part of names are removed, so that similar errors count
 * as one. */
static void say_diagnostic(program_comparison *j, const lilac_context *context, bool refusal) {
    const lilac_diagnostic *d = lilac_diagnostics(context);
    while (d != NULL && d->severity != LILAC_ERROR) {
        d = d->next;
    }
    if (d == NULL) {
        say(j, PROGRAM_BROKEN, "no diagnostic");
        return;
    }
    say(j, refusal && is_refusal(d) ? PROGRAM_REFUSED : PROGRAM_BROKEN, "%s: %s",
        d->id != NULL ? d->id : "", d->message);
}

/* By the pipeline; with random layouts by its passes, as such layouts have no text. */
static bool compile(lilac_compilation *made, lilac_context *context, const program *p,
                    const char *text) {
    lilac_options options;
    lilac_options_init(&options);
    options.target = (lilac_target){.arch = device_of(p),
                                    .num_warps = p->warps,
                                    .num_ctas = p->blocks != 0 ? p->blocks : 1,
                                    .num_stages = p->stages != 0 ? p->stages : 1};
    options.verify = true;
    uint32_t source = lilac_source_add(context, "program.ttir", text, strlen(text));
    options.stop_at =
        options.target.arch->vendor == LILAC_NVIDIA ? LILAC_STAGE_TEXT : LILAC_STAGE_SIMT;
    if (p->layout_seed == 0) {
        return lilac_compile(made, context, source, &options);
    }
    memset(made, 0, sizeof *made);
    bool changed;
    made->context = context;
    made->tile = lilac_tile_read(context, source);
    if (made->tile == NULL || !lilac_tile_verify(made->tile, false) ||
        !lilac_engine_reduce_strength(made->tile, &options.target, &changed) ||
        !lilac_engine_simplify(made->tile, &options.target, &changed) ||
        !lilac_engine_hoist_assertions(made->tile, &options.target, &changed) ||
        !lilac_engine_fuse_reductions(made->tile, &options.target, &changed)) {
        return false;
    }
    if (!give_layouts(made->tile, p)) {
        lilac_error(context, (lilac_position){0, 0}, 0, "unsupported-layout",
                    "an operation that gets no random layout");
        return false;
    }
    if (!lilac_tile_verify(made->tile, true) ||
        !lilac_engine_combine_blocks(made->tile, &options.target, &changed) ||
        !lilac_tile_verify(made->tile, true) ||
        !lilac_engine_eliminate_redundant_loads(made->tile, &options.target, &changed) ||
        !lilac_tile_verify(made->tile, true)) {
        return false;
    }
    made->simt = lilac_lower(made->tile, &options.target);
    if (made->simt == NULL || !lilac_simt_verify(made->simt)) {
        return false;
    }
    lilac_run_simt_passes(made->simt);
    return lilac_simt_verify(made->simt);
}

static void compare(program_comparison *j, const memory *m) {
    for (uint32_t i = 0; i < m->count; i++) {
        interpreter_comparison c = interpreter_compare(&m->wanted[i], m->got[i].bytes);
        if (memcmp(m->wanted[i].bytes, m->before[i], m->wanted[i].size) != 0) {
            j->exact += c.exact;
            j->within += c.within;
            j->open += c.open;
        }
        j->worst = fmax(j->worst, c.worst);
        if (!c.same && j->outcome == PROGRAM_SAME) {
            say(j, PROGRAM_WRONG, "buffer %u: %g where %g is right (within %g), at byte %llu", i,
                c.got, c.want, c.error, (unsigned long long)c.at);
        }
    }
}

/* Programs may race in global memory: elements that several threads touch are open then. */
static bool races_are_global(const lilac_context *context) {
    for (const lilac_diagnostic *d = lilac_diagnostics(context); d != NULL; d = d->next) {
        if (d->id != NULL && strncmp(d->id, "shared-", 7) == 0) {
            return false;
        }
    }
    return true;
}

program_comparison program_check(const program *p, const char *text) {
    program_comparison j = {.outcome = PROGRAM_SAME};
    lilac_context *context = lilac_context_create();
    lilac_compilation made;
    memory m;
    memory_make(&m, p);
    if (!compile(&made, context, p, text)) {
        say_diagnostic(&j, context, true);
    } else {
        uint32_t source = lilac_source_add(context, "again.ttir", text, strlen(text));
        lilac_tile_module *fresh = lilac_tile_read(context, source);
        interpreter_run run = {.module = fresh,
                               .arguments = m.arguments,
                               .argument_count = p->parameter_count,
                               .grid = {p->programs, 1, 1},
                               .buffers = m.wanted,
                               .buffer_count = m.count};
        interpreter_status status = interpreter_execute(&run);
        if (status != INTERPRETER_DONE) {
            say(&j, PROGRAM_UNDETERMINED, "%s: %s", interpreter_status_name(status),
                run.op != NULL ? lilac_tile_op_info_get(run.op->code)->name : "");
        } else {
            lilac_sim_launch launch = {.kernel = made.simt->kernels,
                                       .grid = {p->programs, 1, 1},
                                       .arguments = m.arguments,
                                       .argument_count = p->parameter_count,
                                       .buffers = m.got,
                                       .buffer_count = m.count,
                                       .threads = 1,
                                       .instruction_limit = 1 << 24};
            lilac_sim_counters counters;
            if (!lilac_sim_run(context, &launch, &counters)) {
                say_diagnostic(&j, context, false);
                j.outcome = PROGRAM_WRONG;
            } else if (counters.races != 0 && !races_are_global(context)) {
                say(&j, PROGRAM_WRONG, "a race in shared memory");
            } else {
                compare(&j, &m);
                if (counters.races != 0 && j.outcome == PROGRAM_SAME && j.open == 0) {
                    say(&j, PROGRAM_WRONG, "a race in global memory, and no element is open");
                }
            }
        }
        lilac_tile_module_destroy(fresh);
    }
    memory_clear(&m);
    lilac_compilation_clear(&made);
    lilac_context_destroy(context);
    return j;
}

bool program_run(const program *p, lilac_context *context, const lilac_simt_kernel *kernel,
                 lilac_sim_profile *profile, lilac_sim_counters *counters) {
    memory m;
    memory_make(&m, p);
    const lilac_sim_launch launch = {.kernel = kernel,
                                     .grid = {p->programs, 1, 1},
                                     .arguments = m.arguments,
                                     .argument_count = p->parameter_count,
                                     .buffers = m.got,
                                     .buffer_count = m.count,
                                     .threads = 1,
                                     .instruction_limit = 1 << 24,
                                     .profile = profile};
    const bool good = lilac_sim_run(context, &launch, counters);
    memory_clear(&m);
    return good;
}

/* Elements that the second run leaves open are no test. */
static void compare_runs(program_comparison *j, const memory *m, bool exact) {
    for (uint32_t i = 0; i < m[0].count && j->outcome == PROGRAM_SAME; i++) {
        const interpreter_buffer *first = &m[0].wanted[i], *second = &m[1].wanted[i];
        if (exact) {
            j->exact += first->size;
            if (memcmp(first->bytes, second->bytes, first->size) != 0) {
                say(j, PROGRAM_WRONG, "buffer %u differs", i);
            }
            continue;
        }
        for (uint64_t k = 0; k < first->size; k++) {
            if (isinf(second->error[k]) && !isinf(first->error[k])) {
                first->error[k] = INFINITY;
            }
        }
        interpreter_comparison c = interpreter_compare(first, second->bytes);
        if (memcmp(first->bytes, m[0].before[i], first->size) != 0) {
            j->exact += c.exact;
            j->within += c.within;
            j->open += c.open;
        }
        j->worst = fmax(j->worst, c.worst);
        if (!c.same) {
            say(j, PROGRAM_WRONG, "buffer %u: %g where %g is right (within %g), at byte %llu", i,
                c.got, c.want, c.error, (unsigned long long)c.at);
        }
    }
}

static program_comparison compare_modules(const program *p, const lilac_tile_module *other,
                                          bool exact) {
    program_comparison j = {.outcome = PROGRAM_SAME};
    lilac_context *context = lilac_context_create();
    const char *text = lilac_text_get(&p->text);
    uint32_t source = lilac_source_add(context, "program.ttir", text, strlen(text));
    lilac_tile_module *first = lilac_tile_read(context, source);
    interpreter_run runs[2];
    interpreter_status status[2];
    memory m[2];
    for (uint32_t i = 0; i < 2; i++) {
        memory_make(&m[i], p);
        runs[i] = (interpreter_run){.module = i == 0 ? first : other,
                                    .arguments = m[i].arguments,
                                    .argument_count = p->parameter_count,
                                    .grid = {p->programs, 1, 1},
                                    .buffers = m[i].wanted,
                                    .buffer_count = m[i].count,
                                    .fuel = (exact ? 1U << 24 : 1U << 26) << 2 * i};
        status[i] = interpreter_execute(&runs[i]);
    }
    if (status[0] != INTERPRETER_DONE) {
        say(&j, PROGRAM_UNDETERMINED, "%s", interpreter_status_name(status[0]));
    } else if (status[1] != INTERPRETER_DONE) {
        say(&j, PROGRAM_WRONG, "%s", interpreter_status_name(status[1]));
    } else if (runs[0].prints != runs[1].prints) {
        say(&j, PROGRAM_WRONG, "another number of prints");
    }
    compare_runs(&j, m, exact);
    memory_clear(&m[0]);
    memory_clear(&m[1]);
    lilac_tile_module_destroy(first);
    lilac_context_destroy(context);
    return j;
}

program_comparison program_compare(const program *p, const lilac_tile_module *other) {
    return compare_modules(p, other, true);
}

program_comparison program_compare_within(const program *p, const lilac_tile_module *other) {
    return compare_modules(p, other, false);
}

/* ---- kernels that come as text ------------------------------------------------------------ */

static program_parameter number(lilac_scalar scalar, int64_t value) {
    return (program_parameter){.scalar = scalar,
                               .bits = lilac_scalar_mask(scalar, (uint64_t)value)};
}

/* The parts of a tensor descriptor: a tensor of 3 × 48 × 48 … elements. Triton's front end declares its
 * shape (i32) and its strides (i64) as parameters behind it; the next parameters that have these types
 * get the same values. Returns the parameters of the function that it set. */
static uint32_t add_descriptor(program *p, const lilac_tile_function *f, uint32_t i,
                               uint64_t elements) {
    const lilac_tile_type *block = f->parameters[i]->type->element;
    int64_t sizes[8], strides[8], pitch = 1;
    uint32_t set = 1;
    for (uint32_t d = block->rank; d-- > 0;) {
        sizes[d] = d == 0 && block->rank > 1 ? 3 : 48;
        strides[d] = pitch;
        pitch *= sizes[d];
    }
    p->parameters[p->parameter_count++] = (program_parameter){
        .scalar = lilac_tile_element(block)->scalar, .is_buffer = true, .count = elements};
    for (uint32_t k = 0; k < 2 * block->rank; k++) {
        p->parameters[p->parameter_count++] =
            number(LILAC_I64, k < block->rank ? sizes[k] : strides[k - block->rank]);
    }
    p->parameters[p->parameter_count++] = number(LILAC_I1, 0);
    for (uint32_t k = 0; k < 2 * block->rank && i + set < f->parameter_count; k++, set++) {
        const lilac_tile_type *type = f->parameters[i + set]->type;
        const lilac_scalar scalar = k < block->rank ? LILAC_I32 : LILAC_I64;
        if (type->kind != LILAC_TILE_SCALAR || type->scalar != scalar) {
            break;
        }
        p->parameters[p->parameter_count++] =
            number(scalar, k < block->rank ? sizes[k] : strides[k - block->rank]);
    }
    return set;
}

bool program_of_text(program *p, const char *text, size_t length, uint32_t warps,
                     uint64_t elements) {
    lilac_context *context = lilac_context_create();
    uint32_t source = lilac_source_add(context, "kernel", text, length);
    lilac_tile_module *module = lilac_tile_read(context, source);
    lilac_tile_function *f = module != NULL ? module->functions : NULL;
    /* Small sizes with tails. Strides of descriptors may be half of them, in packed elements of 4 bits. */
    const int64_t factor = strstr(text, "tt.make_tensor_descriptor") != NULL ? 6 : 3;
    bool good = true;
    memset(p, 0, sizeof *p);
    while (f != NULL && !(f->is_public && f->body != NULL)) {
        f = f->next;
    }
    good = f != NULL && f->parameter_count <= PROGRAM_MOST_PARAMETERS;
    p->warps = warps;
    p->programs = 1;
    for (uint32_t i = 0; good && i < f->parameter_count; i++) {
        const lilac_tile_type *type = f->parameters[i]->type;
        if (type->kind == LILAC_TILE_DESCRIPTOR && type->element->rank <= 5 &&
            p->parameter_count + 22 < PROGRAM_MOST_PARAMETERS) {
            i += add_descriptor(p, f, i, elements) - 1;
            continue;
        }
        good = p->parameter_count < PROGRAM_MOST_PARAMETERS;
        if (!good) {
            break;
        }
        program_parameter *q = &p->parameters[p->parameter_count++];
        if (type->kind == LILAC_TILE_POINTER && type->element->kind == LILAC_TILE_SCALAR) {
            *q = (program_parameter){
                .scalar = type->element->scalar, .is_buffer = true, .count = elements};
        } else if (type->kind == LILAC_TILE_SCALAR) {
            q->scalar = type->scalar;
            q->bits = lilac_scalar_is_float(type->scalar)
                          ? lilac_scalar_encode(type->scalar, 1.5, LILAC_ROUND_NEAREST_EVEN, false)
                          : 1;
            int64_t divisor =
                lilac_tile_find_integer(&f->parameter_attributes[i], "tt.divisibility", 1);
            q->bits = lilac_scalar_is_float(type->scalar) ? q->bits : (uint64_t)(divisor * factor);
        } else {
            good = false;
        }
    }
    if (good) {
        lilac_text_put(&p->text, text, length);
    }
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
    return good;
}

/* ---- the smallest part ------------------------------------------------------------------- */

typedef struct search {
    uint32_t wanted, seen;
    lilac_tile_op *found;
} search;

static void look_for(void *data, lilac_tile_op *op) {
    search *s = data;
    if (s->seen++ == s->wanted) {
        s->found = op;
    }
}

static bool is_unused(const lilac_tile_op *op) {
    for (uint32_t r = 0; r < op->result_count; r++) {
        if (op->results[r].uses != NULL) {
            return false;
        }
    }
    return true;
}

static lilac_tile_value *constant(lilac_tile_module *module, lilac_tile_op *before,
                                  const lilac_tile_type *type) {
    const lilac_tile_type *element = lilac_tile_element(type);
    if (element->kind != LILAC_TILE_SCALAR ||
        (type->kind != LILAC_TILE_SCALAR && type->kind != LILAC_TILE_TENSOR)) {
        return NULL;
    }
    lilac_tile_op *op = lilac_tile_op_create(module, LILAC_TILE_OP_ARITH_CONSTANT, 0, NULL, 1,
                                             &type, 0, before->location);
    static const int64_t zero = 0;
    lilac_tile_attribute value = {.name = lilac_intern_string(module->context, "value"),
                                  .type = type};
    if (type->kind == LILAC_TILE_TENSOR) {
        value.kind = LILAC_TILE_ATTR_DENSE;
        value.count = 1;
        value.integers = &zero;
    } else {
        value.kind = element->scalar == LILAC_I1              ? LILAC_TILE_ATTR_BOOL
                     : lilac_scalar_is_float(element->scalar) ? LILAC_TILE_ATTR_FLOAT
                                                              : LILAC_TILE_ATTR_INTEGER;
    }
    lilac_tile_set_attribute(module, &op->attributes, &value);
    lilac_tile_insert_before(before, op);
    return &op->results[0];
}

/* Way 0: operands of the same type stand for the results; 1: zeros do; 2: what a region yields,
 * where nothing of it is inside. False: there is no such change. */
static bool drop(lilac_tile_module *module, lilac_tile_op *op, int way) {
    if (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_TERMINATOR) {
        return false;
    }
    for (uint32_t r = 0; r < op->result_count; r++) {
        lilac_tile_value *result = &op->results[r], *with = NULL;
        if (result->uses == NULL) {
            continue;
        }
        for (uint32_t i = 0; way == 0 && i < op->operand_count; i++) {
            uint32_t k = (i + r + (op->code == LILAC_TILE_OP_SCF_FOR ? 3 : 0)) % op->operand_count;
            if (op->operands[k].value->type == result->type && with == NULL) {
                with = op->operands[k].value;
            }
        }
        if (way == 1) {
            with = op->code != LILAC_TILE_OP_ARITH_CONSTANT ? constant(module, op, result->type)
                                                            : NULL;
        }
        if (with == NULL) {
            return false;
        }
        lilac_tile_replace_uses(result, with);
    }
    lilac_tile_remove(op);
    return true;
}

static void remove_unused(lilac_tile_module *module) {
    for (bool again = true; again;) {
        again = false;
        uint32_t count = 0;
        for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
            search s = {.wanted = UINT32_MAX};
            lilac_tile_walk(f->body, look_for, &s);
            count = s.seen;
            for (uint32_t i = count; i-- > 0;) {
                search t = {.wanted = i};
                lilac_tile_walk(f->body, look_for, &t);
                uint32_t traits = t.found ? lilac_tile_op_info_get(t.found->code)->traits : 0;
                if (t.found != NULL && t.found->result_count > 0 && (traits & LILAC_TILE_PURE) &&
                    is_unused(t.found)) {
                    lilac_tile_remove(t.found);
                    again = true;
                }
            }
        }
    }
}

/* One change of the text; false: there is none of this number, or it is not well formed. */
static bool changed(lilac_text *out, const char *text, uint32_t index, int way, bool *past) {
    lilac_context *context = lilac_context_create();
    uint32_t source = lilac_source_add(context, "program.ttir", text, strlen(text));
    lilac_tile_module *module = lilac_tile_read(context, source);
    bool good = false;
    *past = true;
    if (module != NULL) {
        search s = {.wanted = index};
        for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
            if (f->body != NULL) {
                lilac_tile_walk(f->body, look_for, &s);
            }
        }
        *past = s.found == NULL;
        if (s.found != NULL && drop(module, s.found, way)) {
            remove_unused(module);
            good = lilac_tile_verify(module, false);
            lilac_text_reset(out);
            lilac_tile_print(out, module, false);
        }
    }
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
    return good;
}

static bool same_outcome(const program_comparison *a, const program_comparison *b) {
    return a->outcome == b->outcome;
}

void program_minimise(lilac_text *out, const program *p, const char *text) {
    program_comparison first = program_check(p, text);
    lilac_text now = {0}, next = {0};
    lilac_text_puts(&now, text);
    for (bool progress = true; progress;) {
        progress = false;
        for (uint32_t i = 0;; i++) {
            bool past = false;
            for (int way = 0; way < 2 && !past; way++) {
                if (changed(&next, lilac_text_get(&now), i, way, &past)) {
                    program_comparison j = program_check(p, lilac_text_get(&next));
                    if (same_outcome(&first, &j)) {
                        lilac_text_reset(&now);
                        lilac_text_put(&now, next.bytes, next.length);
                        progress = true;
                        way = -1;
                    }
                }
            }
            if (past) {
                break;
            }
        }
    }
    lilac_text_put(out, now.bytes, now.length);
    lilac_text_clear(&now);
    lilac_text_clear(&next);
}
