/* The IR's objects: making them, linking them into blocks, keeping the lists of uses right, copying
 * and removing them. Every operand is a use: it stands in the list of its value, linked both ways,
 * so that replacing all uses costs as much as there are uses. */
#include "internal.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

lilac_tile_module *lilac_tile_module_create(lilac_context *context) {
    lilac_arena *arena = lilac_arena_create();
    lilac_tile_module *module = lilac_arena_new(arena, lilac_tile_module);
    module->context = context;
    module->arena = arena;
    module->types = tile_types_create(arena);
    return module;
}

void lilac_tile_module_destroy(lilac_tile_module *module) {
    if (!module) {
        return;
    }
    tile_types_clear(module->types);
    lilac_arena_destroy(module->arena);
}

/* ---- uses ------------------------------------------------------------------------------- */

void tile_use_link(lilac_tile_use *use, lilac_tile_value *value) {
    use->value = value;
    use->next = value->uses;
    use->previous = &value->uses;
    if (use->next) {
        use->next->previous = &use->next;
    }
    value->uses = use;
}

static void use_unlink(lilac_tile_use *use) {
    if (!use->value) {
        return;
    }
    *use->previous = use->next;
    if (use->next) {
        use->next->previous = use->previous;
    }
    use->value = NULL;
    use->next = NULL;
    use->previous = NULL;
}

void lilac_tile_set_operand(lilac_tile_op *op, uint32_t index, lilac_tile_value *value) {
    assert(index < op->operand_count);
    use_unlink(&op->operands[index]);
    tile_use_link(&op->operands[index], value);
}

void lilac_tile_replace_uses(lilac_tile_value *old, lilac_tile_value *with) {
    if (old == with) {
        return;
    }
    while (old->uses) {
        lilac_tile_use *use = old->uses;
        use_unlink(use);
        tile_use_link(use, with);
    }
}

void lilac_tile_set_operands(lilac_tile_module *module, lilac_tile_op *op, uint32_t count,
                             lilac_tile_value *const *values) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
        use_unlink(&op->operands[i]);
    }
    if (count > op->operand_count) {
        op->operands = lilac_arena_array(module->arena, lilac_tile_use, count);
    }
    op->operand_count = count;
    for (uint32_t i = 0; i < count; i++) {
        op->operands[i].op = op;
        op->operands[i].index = i;
        tile_use_link(&op->operands[i], values[i]);
    }
}

lilac_tile_value *lilac_tile_operand(const lilac_tile_op *op, uint32_t index) {
    return index < op->operand_count ? op->operands[index].value : NULL;
}

/* ---- operations ------------------------------------------------------------------------- */

lilac_tile_region *tile_region_create(lilac_tile_module *module, lilac_tile_function *function) {
    lilac_tile_region *region = lilac_arena_new(module->arena, lilac_tile_region);
    region->function = function;
    return region;
}

lilac_tile_op *lilac_tile_op_create(lilac_tile_module *module, lilac_tile_opcode code,
                                    uint32_t operands, lilac_tile_value *const *values,
                                    uint32_t results, const lilac_tile_type *const *types,
                                    uint32_t regions, lilac_location location) {
    lilac_arena *arena = module->arena;
    lilac_tile_op *op = lilac_arena_new(arena, lilac_tile_op);
    op->code = code;
    op->location = location;
    op->operand_count = operands;
    op->result_count = results;
    op->region_count = regions;
    if (operands) {
        op->operands = lilac_arena_array(arena, lilac_tile_use, operands);
    }
    for (uint32_t i = 0; i < operands; i++) {
        op->operands[i].op = op;
        op->operands[i].index = i;
        tile_use_link(&op->operands[i], values[i]);
    }
    if (results) {
        op->results = lilac_arena_array(arena, lilac_tile_value, results);
    }
    for (uint32_t i = 0; i < results; i++) {
        op->results[i].type = types[i];
        op->results[i].op = op;
        op->results[i].index = i;
    }
    if (regions) {
        op->regions = lilac_arena_array(arena, lilac_tile_region *, regions);
    }
    for (uint32_t i = 0; i < regions; i++) {
        op->regions[i] = tile_region_create(module, NULL);
        op->regions[i]->parent = op;
    }
    return op;
}

void tile_change_results(lilac_tile_module *module, lilac_tile_op *op, const bool *removed,
                         uint32_t added, const lilac_tile_type *const *types) {
    lilac_tile_value *old = op->results;
    uint32_t count = 0;
    op->results = lilac_arena_array(module->arena, lilac_tile_value, op->result_count + added);
    for (uint32_t i = 0; i < op->result_count; i++) {
        assert((!removed || !removed[i] || !old[i].uses) && "removed while it is used");
        if (removed && removed[i]) {
            continue;
        }
        op->results[count] =
            (lilac_tile_value){.type = old[i].type, .name = old[i].name, .op = op, .index = count};
        lilac_tile_replace_uses(&old[i], &op->results[count++]);
    }
    for (uint32_t i = 0; i < added; i++, count++) {
        op->results[count] = (lilac_tile_value){.type = types[i], .op = op, .index = count};
    }
    op->result_count = count;
}

/* Regions inside an operation belong to the function that the operation is put into. */
static void set_function(lilac_tile_op *op, lilac_tile_function *function) {
    for (uint32_t r = 0; r < op->region_count; r++) {
        lilac_tile_region *region = op->regions[r];
        if (region->function == function) {
            continue;
        }
        region->function = function;
        for (lilac_tile_block *block = region->first; block; block = block->next) {
            for (lilac_tile_op *inner = block->first; inner; inner = inner->next) {
                set_function(inner, function);
            }
        }
    }
}

static void link_op(lilac_tile_block *block, lilac_tile_op *before, lilac_tile_op *op,
                    lilac_tile_op *after) {
    assert(!op->parent && "an operation stands in one block at a time");
    op->parent = block;
    op->previous = before;
    op->next = after;
    *(before ? &before->next : &block->first) = op;
    *(after ? &after->previous : &block->last) = op;
    if (op->region_count && block->parent) {
        set_function(op, block->parent->function);
    }
}

void lilac_tile_append(lilac_tile_block *block, lilac_tile_op *op) {
    link_op(block, block->last, op, NULL);
}

void lilac_tile_insert_before(lilac_tile_op *place, lilac_tile_op *op) {
    link_op(place->parent, place->previous, op, place);
}

void lilac_tile_insert_after(lilac_tile_op *place, lilac_tile_op *op) {
    link_op(place->parent, place, op, place->next);
}

static void drop_operands(lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
        use_unlink(&op->operands[i]);
    }
    for (uint32_t r = 0; r < op->region_count; r++) {
        for (lilac_tile_block *block = op->regions[r]->first; block; block = block->next) {
            for (lilac_tile_op *inner = block->first; inner; inner = inner->next) {
                drop_operands(inner);
            }
        }
    }
}

void lilac_tile_remove(lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->result_count; i++) {
        assert(!op->results[i].uses && "removed while its results are used");
    }
    drop_operands(op);
    lilac_tile_detach(op);
}

void lilac_tile_detach(lilac_tile_op *op) {
    lilac_tile_block *block = op->parent;
    if (!block) {
        return;
    }
    *(op->previous ? &op->previous->next : &block->first) = op->next;
    *(op->next ? &op->next->previous : &block->last) = op->previous;
    op->parent = NULL;
    op->next = NULL;
    op->previous = NULL;
}

/* ---- blocks ----------------------------------------------------------------------------- */

lilac_tile_block *tile_block_create(lilac_tile_module *module) {
    return lilac_arena_new(module->arena, lilac_tile_block);
}

lilac_tile_block *lilac_tile_block_create(lilac_tile_module *module, lilac_tile_region *region) {
    lilac_tile_block *block = tile_block_create(module);
    lilac_tile_block **end = &region->first;
    while (*end) {
        end = &(*end)->next;
    }
    *end = block;
    block->parent = region;
    return block;
}

/* Arrays that grow by one hold the next power of two, 4 at least, so that capacity needs no field.
 */
static bool is_full(uint32_t count) {
    return count == 0 || (count >= 4 && (count & (count - 1)) == 0);
}

static uint32_t grown(uint32_t count) {
    return count < 4 ? 4 : count * 2;
}

lilac_tile_value *lilac_tile_add_argument(lilac_tile_module *module, lilac_tile_block *block,
                                          const lilac_tile_type *type, lilac_name name,
                                          lilac_location location) {
    if (is_full(block->argument_count)) {
        lilac_tile_value **list =
            lilac_arena_array(module->arena, lilac_tile_value *, grown(block->argument_count));
        if (block->argument_count) {
            memcpy(list, block->arguments, sizeof *list * block->argument_count);
        }
        block->arguments = list;
    }
    lilac_tile_value *value = lilac_arena_new(module->arena, lilac_tile_value);
    value->type = type;
    value->name = name;
    value->block = block;
    value->index = block->argument_count;
    value->location = location;
    block->arguments[block->argument_count++] = value;
    return value;
}

void tile_remove_arguments(lilac_tile_block *block, uint32_t first, const bool *removed) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < block->argument_count; i++) {
        lilac_tile_value *argument = block->arguments[i];
        if (i >= first && removed[i - first]) {
            assert(!argument->uses && "removed while it is used");
            continue;
        }
        argument->index = count;
        block->arguments[count++] = argument;
    }
    block->argument_count = count;
}

/* ---- attributes ------------------------------------------------------------------------- */

const lilac_tile_attribute *tile_attribute_find(const lilac_tile_attributes *attributes,
                                                const char *name, size_t length) {
    for (uint32_t i = 0; i < attributes->count; i++) {
        if (strncmp(attributes->list[i].name, name, length) == 0 &&
            attributes->list[i].name[length] == 0) {
            return &attributes->list[i];
        }
    }
    return NULL;
}

static bool equal_lists(const lilac_tile_attribute *a, const lilac_tile_attribute *b,
                        uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (a[i].kind != b[i].kind || a[i].name != b[i].name || a[i].type != b[i].type ||
            a[i].integer != b[i].integer || a[i].text != b[i].text || a[i].count != b[i].count) {
            return false;
        }
        switch (a[i].kind) {
        case LILAC_TILE_ATTR_INTEGERS:
        case LILAC_TILE_ATTR_DENSE:
            if (memcmp(a[i].integers, b[i].integers, a[i].count * sizeof(int64_t)) != 0) {
                return false;
            }
            break;
        case LILAC_TILE_ATTR_ARRAY:
        case LILAC_TILE_ATTR_DICTIONARY:
        case LILAC_TILE_ATTR_FUNCTION:
        case LILAC_TILE_ATTR_LLVM:
            if (!equal_lists(a[i].elements, b[i].elements, a[i].count)) {
                return false;
            }
            break;
        default:
            break;
        }
    }
    return true;
}

bool lilac_tile_attributes_equal(const lilac_tile_attributes *a, const lilac_tile_attributes *b) {
    return a->count == b->count && equal_lists(a->list, b->list, a->count);
}

const lilac_tile_attribute *lilac_tile_find(const lilac_tile_attributes *attributes,
                                            const char *name) {
    return tile_attribute_find(attributes, name, strlen(name));
}

int64_t lilac_tile_find_integer(const lilac_tile_attributes *attributes, const char *name,
                                int64_t otherwise) {
    const lilac_tile_attribute *found = lilac_tile_find(attributes, name);
    if (!found || (found->kind != LILAC_TILE_ATTR_INTEGER && found->kind != LILAC_TILE_ATTR_BOOL)) {
        return otherwise;
    }
    return found->integer;
}

int64_t lilac_tile_program_axis(const lilac_tile_op *op) {
    const lilac_tile_attribute *axis = lilac_tile_find(&op->attributes, "axis");
    return axis == NULL ? 0 : axis->text != NULL ? axis->text[0] - 'x' : axis->integer;
}

lilac_name lilac_tile_find_text(const lilac_tile_attributes *attributes, const char *name) {
    const lilac_tile_attribute *found = lilac_tile_find(attributes, name);
    if (!found ||
        (found->kind != LILAC_TILE_ATTR_KEYWORD && found->kind != LILAC_TILE_ATTR_STRING)) {
        return NULL;
    }
    return found->text;
}

void tile_attribute_append(lilac_arena *arena, lilac_tile_attributes *attributes,
                           const lilac_tile_attribute *attribute) {
    if (is_full(attributes->count)) {
        lilac_tile_attribute *list =
            lilac_arena_array(arena, lilac_tile_attribute, grown(attributes->count));
        if (attributes->count) {
            memcpy(list, attributes->list, sizeof *list * attributes->count);
        }
        attributes->list = list;
    }
    attributes->list[attributes->count++] = *attribute;
}

void tile_attribute_remove(lilac_tile_attributes *attributes, const char *name, size_t length) {
    const lilac_tile_attribute *found = tile_attribute_find(attributes, name, length);
    if (!found) {
        return;
    }
    uint32_t index = (uint32_t)(found - attributes->list);
    /* The order is part of the text, so the rest moves up. */
    for (uint32_t i = index; i + 1 < attributes->count; i++) {
        attributes->list[i] = attributes->list[i + 1];
    }
    attributes->count--;
}

void lilac_tile_set_attribute(lilac_tile_module *module, lilac_tile_attributes *attributes,
                              const lilac_tile_attribute *attribute) {
    assert(attribute->name);
    const lilac_tile_attribute *found = lilac_tile_find(attributes, attribute->name);
    if (found) {
        attributes->list[found - attributes->list] = *attribute;
    } else {
        tile_attribute_append(module->arena, attributes, attribute);
    }
}

/* ---- constants -------------------------------------------------------------------------- */

bool lilac_tile_constant(const lilac_tile_value *value, int64_t *result) {
    const lilac_tile_type *type = lilac_tile_element(value->type);
    if (!value->op || value->op->code != LILAC_TILE_OP_ARITH_CONSTANT ||
        type->kind != LILAC_TILE_SCALAR || lilac_scalar_is_float(type->scalar) ||
        lilac_scalar_bits(type->scalar) > 64) {
        return false;
    }
    const lilac_tile_attribute *given = lilac_tile_find(&value->op->attributes, "value");
    if (!given) {
        return false;
    }
    if (given->kind == LILAC_TILE_ATTR_INTEGER || given->kind == LILAC_TILE_ATTR_BOOL) {
        *result = lilac_scalar_signed(type->scalar, (uint64_t)given->integer);
    } else if (given->kind == LILAC_TILE_ATTR_DENSE && given->count == 1) {
        *result = lilac_scalar_signed(type->scalar, (uint64_t)given->integers[0]);
    } else {
        return false;
    }
    return true;
}

bool lilac_tile_is_zero(const lilac_tile_value *value) {
    while (value->op && (value->op->code == LILAC_TILE_OP_TT_SPLAT ||
                         value->op->code == LILAC_TILE_OP_TTG_CONVERT_LAYOUT)) {
        value = value->op->operands[0].value;
    }
    if (!value->op || value->op->code != LILAC_TILE_OP_ARITH_CONSTANT) {
        return false;
    }
    const lilac_tile_attribute *given = lilac_tile_find(&value->op->attributes, "value");
    bool zero = given && given->integer == 0;
    for (uint32_t i = 0; zero && i < given->count; i++) {
        zero = given->integers[i] == 0;
    }
    return zero;
}

/* ---- walking ---------------------------------------------------------------------------- */

void lilac_tile_walk(lilac_tile_region *region, void (*visit)(void *, lilac_tile_op *),
                     void *data) {
    for (lilac_tile_block *block = region->first; block; block = block->next) {
        for (lilac_tile_op *op = block->first, *next; op; op = next) {
            next = op->next; /* so that a visit may remove its op */
            visit(data, op);
            if (op->parent != block) {
                continue;
            }
            for (uint32_t r = 0; r < op->region_count; r++) {
                lilac_tile_walk(op->regions[r], visit, data);
            }
        }
    }
}

bool lilac_tile_is_inside(const lilac_tile_value *value, const lilac_tile_op *op) {
    const lilac_tile_block *block = value->op ? value->op->parent : value->block;
    while (block && block->parent && block->parent->parent) {
        if (block->parent->parent == op) {
            return true;
        }
        block = block->parent->parent->parent;
    }
    return false;
}

static uint32_t number_region(lilac_tile_region *region, uint32_t next) {
    for (lilac_tile_block *block = region->first; block; block = block->next) {
        for (uint32_t i = 0; i < block->argument_count; i++) {
            block->arguments[i]->id = next++;
        }
        for (lilac_tile_op *op = block->first; op; op = op->next) {
            for (uint32_t i = 0; i < op->result_count; i++) {
                op->results[i].id = next++;
            }
            for (uint32_t r = 0; r < op->region_count; r++) {
                next = number_region(op->regions[r], next);
            }
        }
    }
    return next;
}

lilac_tile_movement lilac_tile_movement_of(const lilac_tile_op *op) {
    static const char *const names[] = {[LILAC_TILE_MOVEMENT_SHARED] = "shared",
                                        [LILAC_TILE_MOVEMENT_SHUFFLES] = "shuffles",
                                        [LILAC_TILE_MOVEMENT_UNSWIZZLED] = "unswizzled"};
    const lilac_tile_attribute *attribute = lilac_tile_find(&op->attributes, "lilac.movement");
    for (uint32_t i = LILAC_TILE_MOVEMENT_SHARED;
         attribute && attribute->kind == LILAC_TILE_ATTR_STRING && i < sizeof names / sizeof *names;
         i++) {
        if (strcmp(names[i], attribute->text) == 0) {
            return (lilac_tile_movement)i;
        }
    }
    return LILAC_TILE_MOVEMENT_ANY;
}

bool lilac_tile_keeps_invariants(const lilac_tile_op *loop) {
    const lilac_tile_attribute *found = lilac_tile_find(&loop->attributes, "llvm.loop_annotation");
    if (!found || found->kind != LILAC_TILE_ATTR_LLVM) {
        return false;
    }
    const char *licm = strstr(found->elements[0].text, "licm = #llvm.loop_licm<");
    const char *disable = licm ? strstr(licm, "<disable = true") : NULL;
    const char *other = licm ? strstr(licm, ", disable = true") : NULL;
    const char *end = licm ? strchr(licm, '>') : NULL;
    return (disable && disable < end) || (other && other < end);
}

void lilac_tile_number(lilac_tile_function *function) {
    function->value_count = function->body ? number_region(function->body, 0) : 0;
}

lilac_position lilac_tile_position(const lilac_tile_op *op) {
    while (op && op->position.source == 0) {
        const lilac_tile_block *block = op->parent;
        op = op->previous ? op->previous : block && block->parent ? block->parent->parent : NULL;
    }
    return op ? op->position : (lilac_position){0};
}

void tile_op_error(const lilac_tile_module *module, const lilac_tile_op *op, const char *id,
                   const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    lilac_verror(module->context, lilac_tile_position(op), op->location, id, format, arguments);
    va_end(arguments);
}
