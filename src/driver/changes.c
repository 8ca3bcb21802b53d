/* What the options change of a module that was read. Layouts: of each, the first operation of its
 * line that chooses a layout gets the attribute lilac.layout, which the pass assign_layouts reads.
 * */
#include "changes.h"

#include <string.h>

typedef struct forcing {
    lilac_tile_module *module;
    const lilac_target *target;
    const lilac_forced_layout *forced;
    uint32_t source;
    lilac_tile_op *op; /* the operation of the line; NULL: none yet */
} forcing;

/* The tensor whose layout the operation chooses; NULL: it chooses none. */
static const lilac_tile_type *chosen_type(const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_TT_LOAD:
    case LILAC_TILE_OP_TT_STORE:
    case LILAC_TILE_OP_TT_ATOMIC_RMW:
    case LILAC_TILE_OP_TT_ATOMIC_CAS:
    case LILAC_TILE_OP_TT_REDUCE:
    case LILAC_TILE_OP_TT_SCAN:
        return op->operands[0].value->type;
    case LILAC_TILE_OP_TT_GATHER:
        return op->results[0].type;
    default:
        return NULL;
    }
}

static bool is_on_line(const forcing *f, const lilac_tile_op *op) {
    lilac_name file;
    uint32_t line, column;
    if (f->forced->file != NULL) {
        return lilac_location_file(f->module->context, op->location, &file, &line, &column) &&
               line == f->forced->line && strcmp(file, f->forced->file) == 0;
    }
    lilac_position_resolve(f->module->context, op->position, &line, &column);
    return op->position.source == f->source && line == f->forced->line;
}

static void find(void *data, lilac_tile_op *op) {
    forcing *f = data;
    const lilac_tile_type *type = chosen_type(op);
    if (f->op == NULL && type != NULL && lilac_tile_is_tensor(type) && is_on_line(f, op)) {
        f->op = op;
    }
}

/* The tensor type with the layout of that text. */
static const lilac_tile_type *read_layout(const forcing *f, const lilac_tile_type *type) {
    lilac_context *context = f->module->context;
    const char *text = f->forced->layout;
    const uint32_t source = lilac_source_add(context, "<layout>", text, strlen(text));
    lilac_scanner scanner;
    lilac_layout layout;
    lilac_scanner_init(&scanner, context, source);
    const lilac_encoding *encoding = lilac_encoding_read(&scanner, NULL);
    if (encoding == NULL) {
        return NULL;
    }
    if (scanner.kind != LILAC_TOKEN_END) {
        (void)lilac_scanner_expected(&scanner, "the end of the layout");
        return NULL;
    }
    if (!lilac_encoding_layout(context, &layout, encoding, type->rank, type->shape)) {
        return NULL;
    }
    return lilac_tile_with_layout(f->module, type, lilac_tile_intern_layout(f->module, &layout));
}

/* Has the layout the threads of the kernel? */
static bool check_threads(const forcing *f, const lilac_layout *layout) {
    const struct {
        const char *input;
        uint32_t count;
    } inputs[] = {{"lane", f->target->arch->warp_size},
                  {"warp", f->target->num_warps},
                  {"block", f->target->num_ctas}};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        const uint32_t bits = lilac_layout_in_bits(layout, inputs[i].input);
        if (1U << bits != inputs[i].count) {
            lilac_error(f->module->context, f->op->position, f->op->location, "forced-layout",
                        "the layout that is forced on %s has %u %ss; the kernel has %u",
                        lilac_tile_op_info_get(f->op->code)->name, 1U << bits, inputs[i].input,
                        inputs[i].count);
            return false;
        }
    }
    return true;
}

static bool force(forcing *f) {
    lilac_context *context = f->module->context;
    for (lilac_tile_function *g = f->module->functions; g != NULL; g = g->next) {
        if (g->body != NULL) {
            lilac_tile_walk(g->body, find, f);
        }
    }
    if (f->op == NULL) {
        lilac_error(context, (lilac_position){f->source, 0}, 0, "forced-layout",
                    "line %u%s%s has no access to global memory of a tensor, no reduction, scan or "
                    "gather: a layout can be forced on these",
                    f->forced->line, f->forced->file != NULL ? " of " : "",
                    f->forced->file != NULL ? f->forced->file : "");
        return false;
    }
    const lilac_tile_type *type = chosen_type(f->op);
    if (type->layout != NULL) {
        lilac_error(context, f->op->position, f->op->location, "forced-layout",
                    "%s has a layout already: the text is TTGIR",
                    lilac_tile_op_info_get(f->op->code)->name);
        return false;
    }
    const lilac_tile_type *forced = read_layout(f, type);
    if (forced == NULL) {
        lilac_note(context, f->op->position, f->op->location, "the layout is for this operation");
        return false;
    }
    if (!check_threads(f, forced->layout)) {
        return false;
    }
    lilac_tile_set_attribute(
        f->module, &f->op->attributes,
        &(lilac_tile_attribute){.kind = LILAC_TILE_ATTR_TYPE,
                                .name = lilac_intern_string(context, "lilac.layout"),
                                .type = forced});
    return true;
}

bool lilac_force_layouts(lilac_tile_module *module, uint32_t source, const lilac_options *options,
                         const lilac_target *target) {
    for (uint32_t i = 0; i < options->forced_count; i++) {
        forcing f = {
            .module = module, .target = target, .forced = &options->forced[i], .source = source};
        if (!force(&f)) {
            return false;
        }
    }
    return true;
}

/* ---- divisors ----------------------------------------------------------------------------- */

static bool assume(lilac_tile_module *module, const lilac_assumed_divisor *assumed) {
    bool found = false;
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        for (uint32_t i = 0; f->is_public && i < f->parameter_count; i++) {
            const lilac_tile_value *parameter = f->parameters[i];
            if (parameter->name == NULL || strcmp(parameter->name, assumed->parameter) != 0) {
                continue;
            }
            found = true;
            lilac_tile_set_attribute(
                module, &f->parameter_attributes[i],
                &(lilac_tile_attribute){.kind = LILAC_TILE_ATTR_INTEGER,
                                        .name =
                                            lilac_intern_string(module->context, "tt.divisibility"),
                                        .type = lilac_tile_scalar(module, LILAC_I32),
                                        .integer = assumed->divisor});
        }
    }
    return found;
}

bool lilac_assume_divisors(lilac_tile_module *module, uint32_t source,
                           const lilac_options *options) {
    for (uint32_t i = 0; i < options->divisor_count; i++) {
        if (!assume(module, &options->divisors[i])) {
            lilac_error(module->context, (lilac_position){source, 0}, 0, "unknown-argument",
                        "no kernel of this module has a parameter '%s'",
                        options->divisors[i].parameter);
            return false;
        }
    }
    return true;
}
