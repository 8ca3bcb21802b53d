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
    if (!module)
        return;
    tile_types_clear(module->types);
    lilac_arena_destroy(module->arena);
}

/* ---- uses ------------------------------------------------------------------------------- */

static void use_link(lilac_tile_use *use, lilac_tile_value *value) {
    use->value = value;
    use->next = value->uses;
    use->previous = &value->uses;
    if (use->next)
        use->next->previous = &use->next;
    value->uses = use;
}

static void use_unlink(lilac_tile_use *use) {
    if (!use->value)
        return;
    *use->previous = use->next;
    if (use->next)
        use->next->previous = use->previous;
    use->value = NULL;
    use->next = NULL;
    use->previous = NULL;
}

void lilac_tile_set_operand(lilac_tile_op *op, uint32_t index, lilac_tile_value *value) {
    assert(index < op->operand_count);
    use_unlink(&op->operands[index]);
    use_link(&op->operands[index], value);
}

void lilac_tile_replace_uses(lilac_tile_value *old, lilac_tile_value *with) {
    if (old == with)
        return;
    while (old->uses) {
        lilac_tile_use *use = old->uses;
        use_unlink(use);
        use_link(use, with);
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
    if (operands)
        op->operands = lilac_arena_array(arena, lilac_tile_use, operands);
    for (uint32_t i = 0; i < operands; i++) {
        op->operands[i].op = op;
        op->operands[i].index = i;
        use_link(&op->operands[i], values[i]);
    }
    if (results)
        op->results = lilac_arena_array(arena, lilac_tile_value, results);
    for (uint32_t i = 0; i < results; i++) {
        op->results[i].type = types[i];
        op->results[i].op = op;
        op->results[i].index = i;
    }
    if (regions)
        op->regions = lilac_arena_array(arena, lilac_tile_region *, regions);
    for (uint32_t i = 0; i < regions; i++) {
        op->regions[i] = tile_region_create(module, NULL);
        op->regions[i]->parent = op;
    }
    return op;
}

/* Regions inside an operation belong to the function that the operation is put into. */
static void set_function(lilac_tile_op *op, lilac_tile_function *function) {
    for (uint32_t r = 0; r < op->region_count; r++) {
        lilac_tile_region *region = op->regions[r];
        if (region->function == function)
            continue;
        region->function = function;
        for (lilac_tile_block *block = region->first; block; block = block->next)
            for (lilac_tile_op *inner = block->first; inner; inner = inner->next)
                set_function(inner, function);
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
    if (op->region_count && block->parent)
        set_function(op, block->parent->function);
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
    for (uint32_t i = 0; i < op->operand_count; i++)
        use_unlink(&op->operands[i]);
    for (uint32_t r = 0; r < op->region_count; r++)
        for (lilac_tile_block *block = op->regions[r]->first; block; block = block->next)
            for (lilac_tile_op *inner = block->first; inner; inner = inner->next)
                drop_operands(inner);
}

void lilac_tile_remove(lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->result_count; i++)
        assert(!op->results[i].uses && "removed while its results are used");
    drop_operands(op);
    lilac_tile_detach(op);
}

void lilac_tile_detach(lilac_tile_op *op) {
    lilac_tile_block *block = op->parent;
    if (!block)
        return;
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
    while (*end)
        end = &(*end)->next;
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
        if (block->argument_count)
            memcpy(list, block->arguments, sizeof *list * block->argument_count);
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

/* ---- attributes ------------------------------------------------------------------------- */

const lilac_tile_attribute *tile_attribute_find(const lilac_tile_attributes *attributes,
                                                const char *name, size_t length) {
    for (uint32_t i = 0; i < attributes->count; i++)
        if (strncmp(attributes->list[i].name, name, length) == 0 &&
            attributes->list[i].name[length] == 0)
            return &attributes->list[i];
    return NULL;
}

const lilac_tile_attribute *lilac_tile_find(const lilac_tile_attributes *attributes,
                                            const char *name) {
    return tile_attribute_find(attributes, name, strlen(name));
}

int64_t lilac_tile_find_integer(const lilac_tile_attributes *attributes, const char *name,
                                int64_t otherwise) {
    const lilac_tile_attribute *found = lilac_tile_find(attributes, name);
    if (!found || (found->kind != LILAC_TILE_ATTR_INTEGER && found->kind != LILAC_TILE_ATTR_BOOL))
        return otherwise;
    return found->integer;
}

lilac_name lilac_tile_find_text(const lilac_tile_attributes *attributes, const char *name) {
    const lilac_tile_attribute *found = lilac_tile_find(attributes, name);
    if (!found || (found->kind != LILAC_TILE_ATTR_KEYWORD && found->kind != LILAC_TILE_ATTR_STRING))
        return NULL;
    return found->text;
}

void tile_attribute_append(lilac_arena *arena, lilac_tile_attributes *attributes,
                           const lilac_tile_attribute *attribute) {
    if (is_full(attributes->count)) {
        lilac_tile_attribute *list =
            lilac_arena_array(arena, lilac_tile_attribute, grown(attributes->count));
        if (attributes->count)
            memcpy(list, attributes->list, sizeof *list * attributes->count);
        attributes->list = list;
    }
    attributes->list[attributes->count++] = *attribute;
}

void tile_attribute_remove(lilac_tile_attributes *attributes, const char *name, size_t length) {
    const lilac_tile_attribute *found = tile_attribute_find(attributes, name, length);
    if (!found)
        return;
    uint32_t index = (uint32_t)(found - attributes->list);
    /* The order is part of the text, so the rest moves up. */
    for (uint32_t i = index; i + 1 < attributes->count; i++)
        attributes->list[i] = attributes->list[i + 1];
    attributes->count--;
}

void lilac_tile_set_attribute(lilac_tile_module *module, lilac_tile_attributes *attributes,
                              const lilac_tile_attribute *attribute) {
    assert(attribute->name);
    const lilac_tile_attribute *found = lilac_tile_find(attributes, attribute->name);
    if (found)
        attributes->list[found - attributes->list] = *attribute;
    else
        tile_attribute_append(module->arena, attributes, attribute);
}

/* ---- copying ---------------------------------------------------------------------------- */

static lilac_tile_attributes copy_attributes(lilac_arena *arena,
                                             const lilac_tile_attributes *from) {
    lilac_tile_attributes copy = {0};
    for (uint32_t i = 0; i < from->count; i++)
        tile_attribute_append(arena, &copy, &from->list[i]);
    return copy;
}

/* Old value or block → its copy; what is not in the table stands for itself. */
static void *mapped(const tile_table *map, void *old) {
    void *copy = tile_table_get(map, old);
    return copy ? copy : old;
}

static lilac_tile_op *clone_op(lilac_tile_module *module, const lilac_tile_op *op, tile_table *map);

static void clone_region(lilac_tile_module *module, const lilac_tile_region *from,
                         lilac_tile_region *to, tile_table *map) {
    lilac_tile_block **end = &to->first;
    for (const lilac_tile_block *old = from->first; old; old = old->next) {
        lilac_tile_block *block = tile_block_create(module);
        block->name = old->name;
        block->parent = to;
        *end = block;
        end = &block->next;
        *tile_table_at(map, old) = block;
        for (uint32_t i = 0; i < old->argument_count; i++) {
            const lilac_tile_value *argument = old->arguments[i];
            *tile_table_at(map, argument) = lilac_tile_add_argument(
                module, block, argument->type, argument->name, argument->location);
        }
    }
    const lilac_tile_block *old = from->first;
    for (lilac_tile_block *block = to->first; block; block = block->next, old = old->next)
        for (const lilac_tile_op *inner = old->first; inner; inner = inner->next)
            lilac_tile_append(block, clone_op(module, inner, map));
}

static lilac_tile_op *clone_op(lilac_tile_module *module, const lilac_tile_op *op,
                               tile_table *map) {
    lilac_tile_op *copy =
        lilac_tile_op_create(module, op->code, 0, NULL, 0, NULL, op->region_count, op->location);
    copy->position = op->position;
    copy->attributes = copy_attributes(module->arena, &op->attributes);
    copy->operand_count = op->operand_count;
    copy->operands = lilac_arena_array(module->arena, lilac_tile_use, op->operand_count);
    for (uint32_t i = 0; i < op->operand_count; i++) {
        copy->operands[i].op = copy;
        copy->operands[i].index = i;
        use_link(&copy->operands[i], mapped(map, op->operands[i].value));
    }
    copy->result_count = op->result_count;
    copy->results = lilac_arena_array(module->arena, lilac_tile_value, op->result_count);
    for (uint32_t i = 0; i < op->result_count; i++) {
        copy->results[i] = (lilac_tile_value){
            .type = op->results[i].type, .name = op->results[i].name, .op = copy, .index = i};
        *tile_table_at(map, &op->results[i]) = &copy->results[i];
    }
    copy->successor_count = op->successor_count;
    copy->successors = lilac_arena_array(module->arena, lilac_tile_block *, op->successor_count);
    for (uint32_t i = 0; i < op->successor_count; i++)
        copy->successors[i] = mapped(map, op->successors[i]);
    for (uint32_t i = 0; i < op->region_count; i++)
        clone_region(module, op->regions[i], copy->regions[i], map);
    return copy;
}

/* A block may use a value of a later block that it dominates nowhere in the list's order: operands
 * met before their definition was copied are mapped once all is. */
static void remap_operands(lilac_tile_op *op, const tile_table *map) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
        lilac_tile_value *value = op->operands[i].value;
        lilac_tile_value *copy = mapped(map, value);
        if (copy != value)
            lilac_tile_set_operand(op, i, copy);
    }
    for (uint32_t r = 0; r < op->region_count; r++)
        for (lilac_tile_block *block = op->regions[r]->first; block; block = block->next)
            for (lilac_tile_op *inner = block->first; inner; inner = inner->next)
                remap_operands(inner, map);
}

lilac_tile_op *lilac_tile_clone(lilac_tile_module *module, const lilac_tile_op *op) {
    tile_table map = {0};
    lilac_tile_op *copy = clone_op(module, op, &map);
    if (op->region_count)
        remap_operands(copy, &map);
    tile_table_clear(&map);
    return copy;
}

/* ---- walking ---------------------------------------------------------------------------- */

void lilac_tile_walk(lilac_tile_region *region, void (*visit)(void *, lilac_tile_op *),
                     void *data) {
    for (lilac_tile_block *block = region->first; block; block = block->next) {
        for (lilac_tile_op *op = block->first, *next; op; op = next) {
            next = op->next; /* so that a visit may remove its op */
            visit(data, op);
            if (op->parent != block)
                continue;
            for (uint32_t r = 0; r < op->region_count; r++)
                lilac_tile_walk(op->regions[r], visit, data);
        }
    }
}

bool lilac_tile_is_inside(const lilac_tile_value *value, const lilac_tile_op *op) {
    const lilac_tile_block *block = value->op ? value->op->parent : value->block;
    while (block && block->parent && block->parent->parent) {
        if (block->parent->parent == op)
            return true;
        block = block->parent->parent->parent;
    }
    return false;
}

static uint32_t number_region(lilac_tile_region *region, uint32_t next) {
    for (lilac_tile_block *block = region->first; block; block = block->next) {
        for (uint32_t i = 0; i < block->argument_count; i++)
            block->arguments[i]->id = next++;
        for (lilac_tile_op *op = block->first; op; op = op->next) {
            for (uint32_t i = 0; i < op->result_count; i++)
                op->results[i].id = next++;
            for (uint32_t r = 0; r < op->region_count; r++)
                next = number_region(op->regions[r], next);
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
         i++)
        if (strcmp(names[i], attribute->text) == 0)
            return (lilac_tile_movement)i;
    return LILAC_TILE_MOVEMENT_ANY;
}

bool lilac_tile_keeps_invariants(const lilac_tile_op *loop) {
    const lilac_tile_attribute *found = lilac_tile_find(&loop->attributes, "llvm.loop_annotation");
    if (!found || found->kind != LILAC_TILE_ATTR_LLVM)
        return false;
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
