/* The printer: MLIR's custom assembly, spelled as MLIR spells it. Operations print by their format
 * (read_format.c's counterpart is print_format.c), some by hand (custom_assembly.c), reductions and what
 * does not have the shape that its custom form needs in generic form. */
#include "internal.h"

#include <string.h>

/* ---- values and types ------------------------------------------------------------------- */

void tile_print_value(tile_printer *printer, const lilac_tile_value *value) {
    lilac_text *out = printer->out;
    lilac_text_char(out, '%');
    lilac_text_puts(out, tile_namer_get(printer->namer, value));
    const lilac_tile_op *op = value->op;
    if (!op) {
        return;
    }
    uint32_t first = value->index;
    while (first > 0 && op->results[first - 1].name == value->name) {
        first--;
    }
    if (tile_result_pack(op, first) > 1) {
        lilac_text_char(out, '#');
        lilac_text_unsigned(out, value->index - first);
    }
}

void tile_print_values(tile_printer *printer, const lilac_tile_op *op, uint32_t begin,
                       uint32_t end) {
    for (uint32_t i = begin; i < end; i++) {
        if (i > begin) {
            lilac_text_puts(printer->out, ", ");
        }
        tile_print_value(printer, op->operands[i].value);
    }
}

void tile_print_operand_types(tile_printer *printer, const lilac_tile_op *op, uint32_t begin,
                              uint32_t end) {
    for (uint32_t i = begin; i < end; i++) {
        if (i > begin) {
            lilac_text_puts(printer->out, ", ");
        }
        lilac_tile_print_type(printer->out, op->operands[i].value->type);
    }
}

void tile_print_result_types(tile_printer *printer, const lilac_tile_op *op) {
    if (op->result_count != 1) {
        lilac_text_char(printer->out, '(');
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (i) {
            lilac_text_puts(printer->out, ", ");
        }
        lilac_tile_print_type(printer->out, op->results[i].type);
    }
    if (op->result_count != 1) {
        lilac_text_char(printer->out, ')');
    }
}

/* ---- operations and regions ------------------------------------------------------------- */

static void print_op(tile_printer *printer, const lilac_tile_op *op);

void tile_print_indent(tile_printer *printer) {
    lilac_text_repeat(printer->out, ' ', printer->indent);
}

void tile_print_block_name(tile_printer *printer, const lilac_tile_block *block) {
    uint32_t number = 0;
    const lilac_tile_block *at = block->parent ? block->parent->first : NULL;
    for (; at && at != block; at = at->next) {
        number++;
    }
    lilac_text_printf(printer->out, "^bb%u", number);
}

static void print_block_label(tile_printer *printer, const lilac_tile_block *block) {
    tile_print_indent(printer);
    tile_print_block_name(printer, block);
    for (uint32_t i = 0; i < block->argument_count; i++) {
        lilac_text_puts(printer->out, i ? ", " : "(");
        tile_print_value(printer, block->arguments[i]);
        lilac_text_puts(printer->out, ": ");
        lilac_tile_print_type(printer->out, block->arguments[i]->type);
        tile_print_location(printer, block->arguments[i]->location);
    }
    lilac_text_puts(printer->out, block->argument_count ? "):\n" : ":\n");
}

void tile_print_region(tile_printer *printer, const lilac_tile_region *region, bool entry_label,
                       bool implicit) {
    lilac_text_puts(printer->out, "{\n");
    for (const lilac_tile_block *block = region->first; block; block = block->next) {
        if (block != region->first || (entry_label && (block->argument_count || !block->first))) {
            print_block_label(printer, block);
        }
        printer->indent += 2;
        for (const lilac_tile_op *op = block->first; op; op = op->next) {
            if (implicit && op == block->last) {
                break;
            }
            tile_print_indent(printer);
            print_op(printer, op);
            lilac_text_char(printer->out, '\n');
        }
        printer->indent -= 2;
    }
    tile_print_indent(printer);
    lilac_text_char(printer->out, '}');
}

static void print_results(tile_printer *printer, const lilac_tile_op *op) {
    uint32_t pack;
    for (uint32_t i = 0; i < op->result_count; i += pack) {
        pack = tile_result_pack(op, i);
        lilac_text_puts(printer->out, i ? ", %" : "%");
        lilac_text_puts(printer->out, tile_namer_get(printer->namer, &op->results[i]));
        if (pack > 1) {
            lilac_text_printf(printer->out, ":%u", pack);
        }
    }
    if (op->result_count) {
        lilac_text_puts(printer->out, " = ");
    }
}

/* Whether `name` is one of the words of `list`. */
static bool is_listed(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, " ");
        if (n == length && memcmp(at, name, n) == 0) {
            return true;
        }
        at += n + (at[n] == ' ');
    }
    return false;
}

/* The attributes that generic form writes in <{…}> (inherent), or in {…} after the regions. */
static void print_generic_attributes(tile_printer *printer, const lilac_tile_op *op,
                                     bool inherent) {
    const lilac_tile_op_info *info = lilac_tile_op_info_get(op->code);
    bool all = !(info->traits & LILAC_TILE_GENERIC); /* then all are inherent */
    const char *hidden[65];
    uint32_t count = 0;
    for (uint32_t i = 0; i < op->attributes.count && count < 64; i++) {
        lilac_name name = op->attributes.list[i].name;
        if ((all || is_listed(info->format, name)) != inherent) {
            hidden[count++] = name;
        }
    }
    hidden[count] = NULL;
    if (count == op->attributes.count) {
        return;
    }
    tile_print_dictionary(printer, inherent ? " <" : " ", &op->attributes, hidden);
    if (inherent) {
        lilac_text_char(printer->out, '>');
    }
}

static void print_generic(tile_printer *printer, const lilac_tile_op *op) {
    lilac_text *out = printer->out;
    lilac_text_printf(out, "\"%s\"(", lilac_tile_op_info_get(op->code)->name);
    tile_print_values(printer, op, 0, op->operand_count);
    lilac_text_char(out, ')');
    for (uint32_t i = 0; i < op->successor_count; i++) {
        lilac_text_puts(out, i ? ", " : "[");
        tile_print_block_name(printer, op->successors[i]);
    }
    if (op->successor_count) {
        lilac_text_char(out, ']');
    }
    print_generic_attributes(printer, op, true);
    for (uint32_t i = 0; i < op->region_count; i++) {
        lilac_text_puts(out, i ? ", " : " (");
        tile_print_region(printer, op->regions[i], true, false);
    }
    if (op->region_count) {
        lilac_text_char(out, ')');
    }
    print_generic_attributes(printer, op, false);
    lilac_text_puts(out, " : (");
    tile_print_operand_types(printer, op, 0, op->operand_count);
    lilac_text_puts(out, ") -> ");
    tile_print_result_types(printer, op);
}

static uint32_t entry_arguments(const lilac_tile_region *region) {
    return region->first ? region->first->argument_count : 0;
}

/* Whether an operation has the parts that its custom form writes. */
static bool fits_custom(const lilac_tile_op *op) {
    const lilac_tile_op_info *info = lilac_tile_op_info_get(op->code);
    tile_signature signature;
    tile_groups groups;
    if (info->traits & LILAC_TILE_GENERIC) {
        return false;
    }
    tile_signature_parse(&signature, info->signature);
    if (!tile_signature_groups(&signature, op->operand_count, &op->attributes, &groups) ||
        (info->results >= 0 && op->result_count != (uint32_t)info->results) ||
        (info->regions >= 0 && op->region_count != (uint32_t)info->regions)) {
        return false;
    }
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_CONSTANT:
        return lilac_tile_find(&op->attributes, "value") != NULL;
    case LILAC_TILE_OP_SCF_FOR:
        return entry_arguments(op->regions[0]) == op->operand_count - 2;
    case LILAC_TILE_OP_SCF_WHILE:
        return entry_arguments(op->regions[0]) == op->operand_count && op->regions[0]->first &&
               op->regions[1]->first;
    case LILAC_TILE_OP_SCF_IF:
        return op->regions[0]->first != NULL;
    case LILAC_TILE_OP_TTG_WARP_SPECIALIZE:
        return tile_fits_warp_specialize(op);
    case LILAC_TILE_OP_CF_BR:
        return op->successor_count == 1;
    case LILAC_TILE_OP_CF_COND_BR:
        return op->successor_count == 2;
    default:
        return true;
    }
}

static void add_place(tile_places *places, const lilac_tile_op *op, size_t offset) {
    if (places->count == places->capacity) {
        places->capacity = places->capacity > 0 ? 2 * places->capacity : 64;
        places->list = lilac_heap_grow(places->list, places->capacity * sizeof *places->list);
    }
    places->list[places->count].op = (lilac_tile_op *)(uintptr_t)op;
    places->list[places->count++].offset = offset;
}

static void print_op(tile_printer *printer, const lilac_tile_op *op) {
    if (printer->places != NULL) {
        add_place(printer->places, op, printer->out->length);
    }
    const lilac_tile_op_info *info = lilac_tile_op_info_get(op->code);
    print_results(printer, op);
    if (!fits_custom(op)) {
        print_generic(printer, op);
    } else {
        lilac_text_puts(printer->out, info->name);
        if (strcmp(info->format, "own") == 0) {
            tile_print_custom(printer, op);
        } else {
            tile_print_format(printer, op);
        }
    }
    tile_print_location(printer, op->location);
}

/* ---- functions and modules -------------------------------------------------------------- */

static void print_function(tile_printer *printer, const lilac_tile_function *function) {
    lilac_text *out = printer->out;
    tile_namer_function(printer->namer, function);
    lilac_text_puts(out, function->is_public ? "  tt.func public " : "  tt.func private ");
    tile_print_symbol(out, function->name);
    lilac_text_char(out, '(');
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        if (i) {
            lilac_text_puts(out, ", ");
        }
        if (function->body) {
            tile_print_value(printer, function->parameters[i]);
            lilac_text_puts(out, ": ");
        }
        lilac_tile_print_type(out, function->parameters[i]->type);
        if (function->parameter_attributes) {
            tile_print_dictionary(printer, " ", &function->parameter_attributes[i], NULL);
        }
        tile_print_location(printer, function->parameters[i]->location);
    }
    lilac_text_char(out, ')');
    for (uint32_t i = 0; i < function->result_count; i++) {
        lilac_text_puts(out, i ? ", " : function->result_count > 1 ? " -> (" : " -> ");
        lilac_tile_print_type(out, function->results[i]);
    }
    if (function->result_count > 1) {
        lilac_text_char(out, ')');
    }
    tile_print_dictionary(printer, " attributes ", &function->attributes, NULL);
    if (function->body) {
        lilac_text_char(out, ' ');
        printer->indent = 2;
        tile_print_region(printer, function->body, false, false);
    }
    tile_print_location(printer, function->location);
    lilac_text_char(out, '\n');
}

static void print_module(lilac_text *out, const lilac_tile_module *module, bool locations,
                         tile_places *places) {
    static const char *const hidden[] = {"sym_name", NULL};
    tile_printer printer = {.out = out,
                            .places = places,
                            .module = module,
                            .namer = tile_namer_create(module->context),
                            .locations = locations};
    const lilac_tile_attribute *name = lilac_tile_find(&module->attributes, "sym_name");
    for (const struct lilac_tile_alias *a = module->aliases; a; a = a->next) {
        lilac_text_printf(out, "#%s = %s\n", a->name, a->definition);
    }
    lilac_text_puts(out, "module ");
    if (name && name->kind == LILAC_TILE_ATTR_SYMBOL) {
        tile_print_symbol(out, name->text);
        lilac_text_char(out, ' ');
    }
    size_t length = out->length;
    tile_print_dictionary(&printer, "attributes ", &module->attributes, hidden);
    lilac_text_puts(out, out->length > length ? " {\n" : "{\n");
    for (const lilac_tile_function *f = module->functions; f; f = f->next) {
        print_function(&printer, f);
    }
    lilac_text_char(out, '}');
    tile_print_location(&printer, module->location);
    lilac_text_char(out, '\n');
    if (locations) {
        tile_print_location_definitions(&printer);
    }
    tile_namer_destroy(printer.namer);
    tile_table_clear(&printer.location_numbers);
    lilac_heap_free(printer.numbered);
}

void lilac_tile_print(lilac_text *out, const lilac_tile_module *module, bool locations) {
    print_module(out, module, locations, NULL);
}

uint32_t lilac_tile_print_source(lilac_tile_module *module, const char *name) {
    tile_places places = {0};
    lilac_text text;
    lilac_text_init(&text);
    print_module(&text, module, false, &places);
    const uint32_t source =
        lilac_source_add(module->context, name, lilac_text_get(&text), text.length);
    for (uint32_t i = 0; source != 0 && i < places.count; i++) {
        places.list[i].op->position = (lilac_position){source, (uint32_t)places.list[i].offset};
    }
    lilac_heap_free(places.list);
    lilac_text_clear(&text);
    return source;
}

void lilac_tile_print_op(lilac_text *out, const lilac_tile_module *module,
                         const lilac_tile_op *op) {
    tile_printer printer = {
        .out = out, .module = module, .namer = tile_namer_create(module->context)};
    const lilac_tile_function *function =
        op->parent && op->parent->parent ? op->parent->parent->function : NULL;
    if (function) {
        tile_namer_function(printer.namer, function);
    } else {
        tile_namer_op(printer.namer, op);
    }
    print_op(&printer, op);
    tile_namer_destroy(printer.namer);
}
