/* Operations whose assembly no format describes: their reading and printing, side by side.
 *
 *   %c = arith.constant dense<0> : tensor<8xi32>
 *   %s = arith.select %c, %a, %b : tensor<8xi1>, tensor<8xf32>         (the first type: of tensors)
 *   %r = scf.for %i = %lo to %hi step %st iter_args(%a = %x) -> (f32)  : i32 { … } {attributes}
 *   %r = scf.if %c -> (f32) { … } else { … } {attributes}
 *   %r = scf.while (%a = %x) : (f32) -> f32 { … } do { … } attributes {…}
 *   cf.br ^bb1(%a : f32)      cf.cond_br %c, ^bb1(%a : f32), ^bb2
 */
#include "internal.h"

#include <string.h>

static lilac_tile_region *new_region(tile_reader *reader, tile_draft *draft) {
    lilac_tile_region *region = tile_region_create(reader->module, reader->function);
    draft->regions[draft->region_count++] = region;
    return region;
}

static bool expect_arrow(tile_reader *reader) {
    if (reader->scan.kind != LILAC_TOKEN_ARROW) {
        return lilac_scanner_expected(&reader->scan, "'->'");
    }
    lilac_scanner_next(&reader->scan);
    return true;
}

/* The name before an "=" or a type: an argument to be. */
static bool read_argument_name(tile_reader *reader, lilac_name *name, lilac_position *position) {
    lilac_scanner *scan = &reader->scan;
    *position = lilac_scanner_position(scan);
    if (scan->kind != LILAC_TOKEN_VALUE) {
        return lilac_scanner_expected(scan, "an argument's name");
    }
    *name = tile_token_name(reader);
    lilac_scanner_next(scan);
    return true;
}

/* ---- arith.constant, arith.select ------------------------------------------------------- */

static bool read_constant(tile_reader *reader, tile_draft *draft) {
    if (!tile_read_dictionary(reader, &draft->attributes)) {
        return false;
    }
    if (lilac_tile_find(&draft->attributes, "value")) {
        return tile_fail(reader, draft->position, "redefinition",
                         "attribute 'value' is there twice");
    }
    lilac_tile_attribute value = {0};
    lilac_position position = lilac_scanner_position(&reader->scan);
    if (!tile_read_attribute_value(reader, &value)) {
        return false;
    }
    if (value.kind != LILAC_TILE_ATTR_INTEGER && value.kind != LILAC_TILE_ATTR_BOOL &&
        value.kind != LILAC_TILE_ATTR_FLOAT && value.kind != LILAC_TILE_ATTR_DENSE) {
        return tile_fail(reader, position, "bad-literal", "a constant is a number or dense<…>");
    }
    value.name = lilac_intern_string(reader->context, "value");
    tile_attribute_append(reader->module->arena, &draft->attributes, &value);
    tile_type_list_push(reader, &draft->results, value.type);
    return true;
}

static void print_constant(tile_printer *printer, const lilac_tile_op *op) {
    static const char *const hidden[] = {"value", NULL};
    tile_print_dictionary(printer, " ", &op->attributes, hidden);
    lilac_text_char(printer->out, ' ');
    const lilac_tile_attribute *value = lilac_tile_find(&op->attributes, "value");
    if (value) {
        tile_print_attribute_value(printer->out, value);
    }
}

static bool read_select(tile_reader *reader, tile_draft *draft) {
    lilac_scanner *scan = &reader->scan;
    for (int i = 0; i < 3; i++) {
        if ((i && !lilac_scanner_expect(scan, ',')) ||
            !tile_read_operand(reader, &draft->operands)) {
            return false;
        }
    }
    if (!tile_read_dictionary(reader, &draft->attributes) || !lilac_scanner_expect(scan, ':')) {
        return false;
    }
    const lilac_tile_type *condition = lilac_tile_scalar(reader->module, LILAC_I1);
    const lilac_tile_type *type = tile_read_type(reader);
    if (type && lilac_scanner_accept(scan, ',')) {
        condition = type;
        type = tile_read_type(reader);
    }
    if (!type) {
        return false;
    }
    tile_type_list_push(reader, &draft->results, type);
    return tile_check_operand(reader, draft, 0, condition) &&
           tile_check_operand(reader, draft, 1, type) && tile_check_operand(reader, draft, 2, type);
}

static void print_select(tile_printer *printer, const lilac_tile_op *op) {
    lilac_text_char(printer->out, ' ');
    tile_print_values(printer, op, 0, op->operand_count);
    tile_print_dictionary(printer, " ", &op->attributes, NULL);
    lilac_text_puts(printer->out, " : ");
    const lilac_tile_type *condition = op->operands[0].value->type;
    if (lilac_tile_is_tensor(condition)) {
        lilac_tile_print_type(printer->out, condition);
        lilac_text_puts(printer->out, ", ");
    }
    lilac_tile_print_type(printer->out, op->results[0].type);
}

/* ---- scf.for ---------------------------------------------------------------------------- */

typedef struct carried_names {
    lilac_name *names;
    lilac_position *positions;
    uint32_t count, capacity;
} carried_names;

static void keep_carried(tile_reader *reader, carried_names *carried, lilac_name name,
                         lilac_position position) {
    if (carried->count == carried->capacity) {
        uint32_t capacity = carried->capacity ? carried->capacity * 2 : 8;
        lilac_name *names = lilac_arena_array(reader->scratch, lilac_name, capacity);
        lilac_position *positions = lilac_arena_array(reader->scratch, lilac_position, capacity);
        if (carried->count) {
            memcpy(names, carried->names, sizeof *names * carried->count);
            memcpy(positions, carried->positions, sizeof *positions * carried->count);
        }
        carried->names = names;
        carried->positions = positions;
        carried->capacity = capacity;
    }
    carried->names[carried->count] = name;
    carried->positions[carried->count++] = position;
}

/* "(%a = %x, %b = %y)": names go to `carried`, values to the operands. */
static bool read_carried(tile_reader *reader, tile_draft *draft, carried_names *carried) {
    lilac_scanner *scan = &reader->scan;
    if (!lilac_scanner_expect(scan, '(')) {
        return false;
    }
    if (lilac_scanner_accept(scan, ')')) {
        return true;
    }
    do {
        lilac_name name = NULL;
        lilac_position position = {0};
        if (!read_argument_name(reader, &name, &position) || !lilac_scanner_expect(scan, '=') ||
            !tile_read_operand(reader, &draft->operands)) {
            return false;
        }
        keep_carried(reader, carried, name, position);
    } while (lilac_scanner_accept(scan, ','));
    return lilac_scanner_expect(scan, ')');
}

/* Makes arguments of the block from the names; their scope must be open. */
static bool define_carried(tile_reader *reader, lilac_tile_block *block,
                           const carried_names *carried, const lilac_tile_type *const *types) {
    for (uint32_t i = 0; i < carried->count; i++) {
        lilac_name name = carried->names[i];
        lilac_tile_value *value =
            lilac_tile_add_argument(reader->module, block, types[i], tile_kept_name(name), 0);
        if (!tile_define_value(reader, name, carried->positions[i], value, 1)) {
            return false;
        }
    }
    return true;
}

static bool check_carried(tile_reader *reader, const tile_draft *draft, uint32_t first,
                          const tile_type_list *types, lilac_position position) {
    uint32_t count = draft->operands.count - first;
    if (types->count != count) {
        return tile_fail(reader, position, "count-mismatch", "%u types for %u carried values",
                         types->count, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!tile_check_operand(reader, draft, first + i, types->list[i])) {
            return false;
        }
    }
    return true;
}

static bool read_for(tile_reader *reader, tile_draft *draft) {
    lilac_scanner *scan = &reader->scan;
    carried_names induction = {0}, carried = {0};
    lilac_name name = NULL;
    lilac_position position = {0};
    if (lilac_scanner_accept_word(scan, "unsigned")) {
        tile_attribute_append(
            reader->module->arena, &draft->attributes,
            &(lilac_tile_attribute){.name = lilac_intern_string(reader->context, "unsignedCmp")});
    }
    if (!read_argument_name(reader, &name, &position) || !lilac_scanner_expect(scan, '=') ||
        !tile_read_operand(reader, &draft->operands) || !lilac_scanner_expect_word(scan, "to") ||
        !tile_read_operand(reader, &draft->operands) || !lilac_scanner_expect_word(scan, "step") ||
        !tile_read_operand(reader, &draft->operands)) {
        return false;
    }
    keep_carried(reader, &induction, name, position);
    if (lilac_scanner_accept_word(scan, "iter_args")) {
        if (!read_carried(reader, draft, &carried) || !expect_arrow(reader)) {
            return false;
        }
        position = lilac_scanner_position(scan);
        if (!tile_read_parenthesized_types(reader, &draft->results) ||
            !check_carried(reader, draft, TILE_FOR_INITS, &draft->results, position)) {
            return false;
        }
    }
    const lilac_tile_type *type = lilac_tile_scalar(reader->module, LILAC_INDEX);
    if (lilac_scanner_accept(scan, ':') && !(type = tile_read_type(reader))) {
        return false;
    }
    for (uint32_t i = 0; i < TILE_FOR_INITS; i++) {
        if (!tile_check_operand(reader, draft, i, type)) {
            return false;
        }
    }
    uint32_t mark;
    tile_scope_open(reader, &mark);
    lilac_tile_block *entry = tile_block_create(reader->module);
    bool good = define_carried(reader, entry, &induction, &type) &&
                define_carried(reader, entry, &carried, draft->results.list) &&
                tile_read_region(reader, new_region(reader, draft), entry);
    tile_scope_close(reader, mark);
    draft->implicit_yields = true;
    return good && tile_read_dictionary(reader, &draft->attributes);
}

/* Whether an scf.yield at the end may be left unwritten: it yields nothing. */
static bool yields_nothing(const lilac_tile_region *region) {
    if (!region->first || region->first->next) {
        return false;
    }
    const lilac_tile_op *last = region->first->last;
    return last && last->code == LILAC_TILE_OP_SCF_YIELD && last->operand_count == 0 &&
           last->attributes.count == 0;
}

static void print_carried(tile_printer *printer, const lilac_tile_op *op, uint32_t operand,
                          const lilac_tile_block *block, uint32_t argument) {
    lilac_text_char(printer->out, '(');
    for (uint32_t i = operand; i < op->operand_count; i++, argument++) {
        if (i > operand) {
            lilac_text_puts(printer->out, ", ");
        }
        if (argument < block->argument_count) {
            tile_print_value(printer, block->arguments[argument]);
        }
        lilac_text_puts(printer->out, " = ");
        tile_print_value(printer, op->operands[i].value);
    }
    lilac_text_char(printer->out, ')');
}

static void print_for(tile_printer *printer, const lilac_tile_op *op) {
    static const char *const hidden[] = {"unsignedCmp", NULL};
    lilac_text *out = printer->out;
    const lilac_tile_block *body = op->regions[0]->first;
    if (lilac_tile_find(&op->attributes, "unsignedCmp")) {
        lilac_text_puts(out, " unsigned");
    }
    lilac_text_char(out, ' ');
    tile_print_value(printer, body->arguments[0]);
    static const char *const before[] = {" = ", " to ", " step "};
    for (uint32_t i = 0; i < TILE_FOR_INITS; i++) {
        lilac_text_puts(out, before[i]);
        tile_print_value(printer, op->operands[i].value);
    }
    if (op->operand_count > TILE_FOR_INITS) {
        lilac_text_puts(out, " iter_args");
        print_carried(printer, op, TILE_FOR_INITS, body, 1);
        lilac_text_puts(out, " -> (");
        tile_print_operand_types(printer, op, TILE_FOR_INITS, op->operand_count);
        lilac_text_char(out, ')');
    }
    const lilac_tile_type *type = op->operands[0].value->type;
    if (type->kind != LILAC_TILE_SCALAR || type->scalar != LILAC_INDEX) {
        lilac_text_puts(out, "  : ");
        lilac_tile_print_type(out, type);
    }
    lilac_text_char(out, ' ');
    tile_print_region(printer, op->regions[0], false, yields_nothing(op->regions[0]));
    tile_print_dictionary(printer, " ", &op->attributes, hidden);
}

/* ---- scf.if ----------------------------------------------------------------------------- */

static bool read_if(tile_reader *reader, tile_draft *draft) {
    lilac_scanner *scan = &reader->scan;
    if (!tile_read_operand(reader, &draft->operands) ||
        !tile_check_operand(reader, draft, 0, lilac_tile_scalar(reader->module, LILAC_I1))) {
        return false;
    }
    if (scan->kind == LILAC_TOKEN_ARROW) {
        lilac_scanner_next(scan);
        if (!tile_read_parenthesized_types(reader, &draft->results)) {
            return false;
        }
    }
    if (!tile_read_region(reader, new_region(reader, draft), tile_block_create(reader->module))) {
        return false;
    }
    lilac_tile_region *otherwise = new_region(reader, draft);
    if (lilac_scanner_accept_word(scan, "else") &&
        !tile_read_region(reader, otherwise, tile_block_create(reader->module))) {
        return false;
    }
    draft->implicit_yields = true;
    return tile_read_dictionary(reader, &draft->attributes);
}

static void print_if(tile_printer *printer, const lilac_tile_op *op) {
    lilac_text *out = printer->out;
    lilac_text_char(out, ' ');
    tile_print_value(printer, op->operands[0].value);
    if (op->result_count) {
        lilac_text_puts(out, " -> (");
        for (uint32_t i = 0; i < op->result_count; i++) {
            if (i) {
                lilac_text_puts(out, ", ");
            }
            lilac_tile_print_type(out, op->results[i].type);
        }
        lilac_text_char(out, ')');
    }
    for (uint32_t r = 0; r < 2; r++) {
        if (r && !op->regions[r]->first) {
            break;
        }
        lilac_text_puts(out, r ? " else " : " ");
        tile_print_region(printer, op->regions[r], false, yields_nothing(op->regions[r]));
    }
    tile_print_dictionary(printer, " ", &op->attributes, NULL);
}

/* ---- scf.while -------------------------------------------------------------------------- */

static bool read_while(tile_reader *reader, tile_draft *draft) {
    lilac_scanner *scan = &reader->scan;
    carried_names carried = {0};
    tile_type_list types = {0};
    if (lilac_scanner_is(scan, '(') && !read_carried(reader, draft, &carried)) {
        return false;
    }
    if (!lilac_scanner_expect(scan, ':')) {
        return false;
    }
    lilac_position position = lilac_scanner_position(scan);
    if (!tile_read_parenthesized_types(reader, &types) ||
        !check_carried(reader, draft, 0, &types, position) || !expect_arrow(reader) ||
        !tile_read_function_results(reader, &draft->results)) {
        return false;
    }
    uint32_t mark;
    tile_scope_open(reader, &mark);
    lilac_tile_block *entry = tile_block_create(reader->module);
    bool good = define_carried(reader, entry, &carried, types.list) &&
                tile_read_region(reader, new_region(reader, draft), entry);
    tile_scope_close(reader, mark);
    if (!good || !lilac_scanner_expect_word(scan, "do") ||
        !tile_read_region(reader, new_region(reader, draft), NULL)) {
        return false;
    }
    return !lilac_scanner_accept_word(scan, "attributes") ||
           tile_read_dictionary(reader, &draft->attributes);
}

static void print_while(tile_printer *printer, const lilac_tile_op *op) {
    lilac_text *out = printer->out;
    lilac_text_char(out, ' ');
    if (op->operand_count) {
        print_carried(printer, op, 0, op->regions[0]->first, 0);
        lilac_text_char(out, ' ');
    }
    lilac_text_puts(out, ": (");
    tile_print_operand_types(printer, op, 0, op->operand_count);
    lilac_text_puts(out, ") -> ");
    tile_print_result_types(printer, op);
    lilac_text_char(out, ' ');
    tile_print_region(printer, op->regions[0], false, false);
    lilac_text_puts(out, " do ");
    tile_print_region(printer, op->regions[1], true, false);
    tile_print_dictionary(printer, " attributes ", &op->attributes, NULL);
}

/* ---- cf.br, cf.cond_br ------------------------------------------------------------------ */

/* ^bb1(%a, %b : i32, f32) */
static bool read_successor(tile_reader *reader, tile_draft *draft) {
    lilac_scanner *scan = &reader->scan;
    if (scan->kind != LILAC_TOKEN_BLOCK) {
        return lilac_scanner_expected(scan, "a block's name");
    }
    draft->successors[draft->successor_count].name = tile_token_name(reader);
    draft->successors[draft->successor_count++].position = lilac_scanner_position(scan);
    lilac_scanner_next(scan);
    if (!lilac_scanner_accept(scan, '(')) {
        return true;
    }
    uint32_t first = draft->operands.count;
    tile_type_list types = {0};
    if (!tile_read_operands(reader, &draft->operands) || !lilac_scanner_expect(scan, ':')) {
        return false;
    }
    lilac_position position = lilac_scanner_position(scan);
    return tile_read_types(reader, &types) &&
           check_carried(reader, draft, first, &types, position) && lilac_scanner_expect(scan, ')');
}

static bool read_branch(tile_reader *reader, tile_draft *draft) {
    return read_successor(reader, draft) && tile_read_dictionary(reader, &draft->attributes);
}

static bool read_conditional_branch(tile_reader *reader, tile_draft *draft) {
    lilac_scanner *scan = &reader->scan;
    lilac_tile_module *module = reader->module;
    if (!tile_read_operand(reader, &draft->operands) ||
        !tile_check_operand(reader, draft, 0, lilac_tile_scalar(module, LILAC_I1)) ||
        !lilac_scanner_expect(scan, ',') || !read_successor(reader, draft)) {
        return false;
    }
    uint32_t first = draft->operands.count - 1;
    if (!lilac_scanner_expect(scan, ',') || !read_successor(reader, draft)) {
        return false;
    }
    uint32_t second = draft->operands.count - 1 - first;
    if (!tile_read_dictionary(reader, &draft->attributes)) {
        return false;
    }
    if (lilac_tile_find(&draft->attributes, "operandSegmentSizes")) {
        return tile_fail(reader, draft->position, "redefinition",
                         "attribute 'operandSegmentSizes' is there twice");
    }
    int64_t *sizes = lilac_arena_array(module->arena, int64_t, 3);
    sizes[0] = 1;
    sizes[1] = first;
    sizes[2] = second;
    tile_attribute_append(
        module->arena, &draft->attributes,
        &(lilac_tile_attribute){.kind = LILAC_TILE_ATTR_INTEGERS,
                                .name = lilac_intern_string(reader->context, "operandSegmentSizes"),
                                .type = lilac_tile_scalar(module, LILAC_I32),
                                .count = 3,
                                .integers = sizes});
    return true;
}

static void print_successor(tile_printer *printer, const lilac_tile_op *op, uint32_t index,
                            uint32_t begin, uint32_t end) {
    tile_print_block_name(printer, op->successors[index]);
    if (begin == end) {
        return;
    }
    lilac_text_char(printer->out, '(');
    tile_print_values(printer, op, begin, end);
    lilac_text_puts(printer->out, " : ");
    tile_print_operand_types(printer, op, begin, end);
    lilac_text_char(printer->out, ')');
}

static void print_branch(tile_printer *printer, const lilac_tile_op *op) {
    lilac_text_char(printer->out, ' ');
    print_successor(printer, op, 0, 0, op->operand_count);
    tile_print_dictionary(printer, " ", &op->attributes, NULL);
}

static void print_conditional_branch(tile_printer *printer, const lilac_tile_op *op) {
    static const char *const hidden[] = {"operandSegmentSizes", NULL};
    const lilac_tile_attribute *sizes = lilac_tile_find(&op->attributes, "operandSegmentSizes");
    uint32_t middle = sizes && sizes->count == 3 ? (uint32_t)(1 + sizes->integers[1]) : 1;
    lilac_text_char(printer->out, ' ');
    tile_print_value(printer, op->operands[0].value);
    lilac_text_puts(printer->out, ", ");
    print_successor(printer, op, 0, 1, middle);
    lilac_text_puts(printer->out, ", ");
    print_successor(printer, op, 1, middle, op->operand_count);
    tile_print_dictionary(printer, " ", &op->attributes, hidden);
}

/* ---- by opcode -------------------------------------------------------------------------- */

static const struct {
    lilac_tile_opcode code;
    bool (*read)(tile_reader *, tile_draft *);
    void (*print)(tile_printer *, const lilac_tile_op *);
} own[] = {
    {LILAC_TILE_OP_ARITH_CONSTANT, read_constant, print_constant},
    {LILAC_TILE_OP_ARITH_SELECT, read_select, print_select},
    {LILAC_TILE_OP_SCF_FOR, read_for, print_for},
    {LILAC_TILE_OP_SCF_IF, read_if, print_if},
    {LILAC_TILE_OP_SCF_WHILE, read_while, print_while},
    {LILAC_TILE_OP_TTG_WARP_SPECIALIZE, tile_read_warp_specialize, tile_print_warp_specialize},
    {LILAC_TILE_OP_CF_BR, read_branch, print_branch},
    {LILAC_TILE_OP_CF_COND_BR, read_conditional_branch, print_conditional_branch},
};

bool tile_read_custom(tile_reader *reader, tile_draft *draft) {
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (own[i].code == draft->code) {
            return own[i].read(reader, draft);
        }
    }
    return false;
}

void tile_print_custom(tile_printer *printer, const lilac_tile_op *op) {
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (own[i].code == op->code) {
            own[i].print(printer, op);
        }
    }
}
