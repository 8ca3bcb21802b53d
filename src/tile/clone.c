/* Deep copies of operations under a mapping of values.
 *
 *     op (operands a, b; result r; regions)   with a ↦ x  →  op (operands x, b; result r'), r ↦ r'
 *
 * A copy keeps its attributes, its location and its position. Values and blocks inside are entered
 * into the mapping, so that operands inside refer to the copies. */
#include "internal.h"

#include <lilac/tile_loops.h>

static lilac_tile_attributes copy_attributes(lilac_arena *arena,
                                             const lilac_tile_attributes *from) {
    lilac_tile_attributes copy = {0};
    for (uint32_t i = 0; i < from->count; i++) {
        tile_attribute_append(arena, &copy, &from->list[i]);
    }
    return copy;
}

/* The copy of a value or block; one that is not in the table is mapped to itself. */
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
    for (lilac_tile_block *block = to->first; block; block = block->next, old = old->next) {
        for (const lilac_tile_op *inner = old->first; inner; inner = inner->next) {
            lilac_tile_append(block, clone_op(module, inner, map));
        }
    }
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
        tile_use_link(&copy->operands[i], mapped(map, op->operands[i].value));
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
    for (uint32_t i = 0; i < op->successor_count; i++) {
        copy->successors[i] = mapped(map, op->successors[i]);
    }
    for (uint32_t i = 0; i < op->region_count; i++) {
        clone_region(module, op->regions[i], copy->regions[i], map);
    }
    return copy;
}

/* A block may use a value of a block that comes later in the list. Such operands of the copy were
 * copied before their definition; they are mapped here, once all definitions have copies. */
static void remap_operands(lilac_tile_op *copy, const lilac_tile_op *op, const tile_table *map) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
        lilac_tile_value *value = op->operands[i].value;
        if (copy->operands[i].value == value && mapped(map, value) != value) {
            lilac_tile_set_operand(copy, i, mapped(map, value));
        }
    }
    for (uint32_t r = 0; r < op->region_count; r++) {
        const lilac_tile_block *old = op->regions[r]->first;
        for (lilac_tile_block *block = copy->regions[r]->first; block;
             block = block->next, old = old->next) {
            const lilac_tile_op *from = old->first;
            for (lilac_tile_op *to = block->first; to; to = to->next, from = from->next) {
                remap_operands(to, from, map);
            }
        }
    }
}

struct lilac_tile_mapping {
    tile_table table;
};

lilac_tile_mapping *lilac_tile_mapping_create(void) {
    lilac_tile_mapping *mapping = lilac_heap_grow(NULL, sizeof *mapping);
    *mapping = (lilac_tile_mapping){0};
    return mapping;
}

void lilac_tile_mapping_destroy(lilac_tile_mapping *mapping) {
    if (!mapping) {
        return;
    }
    tile_table_clear(&mapping->table);
    lilac_heap_free(mapping);
}

void lilac_tile_map(lilac_tile_mapping *mapping, const lilac_tile_value *value,
                    lilac_tile_value *to) {
    *tile_table_at(&mapping->table, value) = to;
}

lilac_tile_value *lilac_tile_mapped(const lilac_tile_mapping *mapping, lilac_tile_value *value) {
    return mapped(&mapping->table, value);
}

lilac_tile_op *lilac_tile_clone_mapped(lilac_tile_module *module, const lilac_tile_op *op,
                                       lilac_tile_mapping *mapping) {
    lilac_tile_op *copy = clone_op(module, op, &mapping->table);
    if (op->region_count) {
        remap_operands(copy, op, &mapping->table);
    }
    return copy;
}

lilac_tile_op *lilac_tile_clone(lilac_tile_module *module, const lilac_tile_op *op) {
    lilac_tile_mapping mapping = {0};
    lilac_tile_op *copy = lilac_tile_clone_mapped(module, op, &mapping);
    tile_table_clear(&mapping.table);
    return copy;
}

void lilac_tile_clone_body(lilac_tile_module *module, const lilac_tile_block *block,
                           lilac_tile_mapping *mapping, lilac_tile_op *place) {
    /* Operations that are inserted before the terminator of the block itself are not copied. */
    const lilac_tile_op *last = block->last->previous;
    for (const lilac_tile_op *op = last ? block->first : NULL; op;
         op = op == last ? NULL : op->next) {
        lilac_tile_insert_before(place, lilac_tile_clone_mapped(module, op, mapping));
    }
}
