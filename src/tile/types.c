/* Types: interned in the module, so that equal types are the same pointer and comparing two is
 * comparing two pointers. A type is hashed by its contents (the element by its id, the layout by
 * its columns) into one table; layouts have a table of their own, and so they too are shared. */
#include "internal.h"

#include <assert.h>
#include <string.h>

/* ---- pointer tables --------------------------------------------------------------------- */

static uint32_t slot_of(const tile_table *table, const void *key) {
    uint32_t mask = table->capacity - 1;
    uint32_t at =
        (uint32_t)(((uint64_t)(uintptr_t)key * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & mask;
    while (table->entries[at].key && table->entries[at].key != key)
        at = (at + 1) & mask;
    return at;
}

static void table_grow(tile_table *table) {
    tile_table old = *table;
    table->capacity = old.capacity ? old.capacity * 2 : 64;
    size_t bytes = sizeof *table->entries * table->capacity;
    table->entries = lilac_heap_grow(NULL, bytes);
    memset(table->entries, 0, bytes);
    for (uint32_t i = 0; i < old.capacity; i++)
        if (old.entries[i].key)
            table->entries[slot_of(table, old.entries[i].key)] = old.entries[i];
    lilac_heap_free(old.entries);
}

void **tile_table_at(tile_table *table, const void *key) {
    if (table->count * 2 >= table->capacity)
        table_grow(table);
    struct tile_entry *entry = &table->entries[slot_of(table, key)];
    if (!entry->key) {
        entry->key = key;
        table->count++;
    }
    return &entry->value;
}

void *tile_table_get(const tile_table *table, const void *key) {
    return table->capacity ? table->entries[slot_of(table, key)].value : NULL;
}

void tile_table_clear(tile_table *table) {
    lilac_heap_free(table->entries);
    *table = (tile_table){0};
}

/* ---- the interner ----------------------------------------------------------------------- */

struct lilac_tile_types {
    lilac_arena *arena;
    const lilac_tile_type **slots;
    uint32_t capacity, count;
    const lilac_layout **layouts;
    uint32_t layout_capacity, layout_count;
    const lilac_tile_type *scalars[LILAC_SCALAR_COUNT];
};

struct lilac_tile_types *tile_types_create(lilac_arena *arena) {
    struct lilac_tile_types *types = lilac_arena_new(arena, struct lilac_tile_types);
    types->arena = arena;
    return types;
}

void tile_types_clear(struct lilac_tile_types *types) {
    lilac_heap_free(types->slots);
    lilac_heap_free(types->layouts);
}

static uint64_t hash_type(const lilac_tile_type *type) {
    uint64_t hash = lilac_hash_word((uint64_t)type->kind << 32 | (uint64_t)type->scalar << 16 |
                                        (uint64_t)(unsigned char)type->sign << 8 | type->rank,
                                    type->address_space);
    hash = lilac_hash_word(type->element ? type->element->id + 1 : 0, hash);
    for (uint32_t i = 0; i < type->rank; i++)
        hash = lilac_hash_word((uint64_t)type->shape[i], hash);
    return lilac_hash_word((uint64_t)(uintptr_t)type->layout, hash);
}

static bool same_type(const lilac_tile_type *a, const lilac_tile_type *b) {
    return a->kind == b->kind && a->scalar == b->scalar && a->sign == b->sign &&
           a->rank == b->rank && a->address_space == b->address_space && a->element == b->element &&
           a->layout == b->layout &&
           (!a->rank || memcmp(a->shape, b->shape, sizeof *a->shape * a->rank) == 0);
}

static void types_grow(struct lilac_tile_types *types) {
    uint32_t capacity = types->capacity ? types->capacity * 2 : 128;
    size_t bytes = sizeof *types->slots * capacity;
    const lilac_tile_type **slots = lilac_heap_grow(NULL, bytes);
    memset(slots, 0, bytes);
    for (uint32_t i = 0; i < types->capacity; i++) {
        if (!types->slots[i])
            continue;
        uint32_t at = (uint32_t)hash_type(types->slots[i]) & (capacity - 1);
        while (slots[at])
            at = (at + 1) & (capacity - 1);
        slots[at] = types->slots[i];
    }
    lilac_heap_free(types->slots);
    types->slots = slots;
    types->capacity = capacity;
}

static uint64_t hash_layout(const lilac_layout *layout) {
    uint64_t hash = lilac_hash(layout->in, sizeof *layout->in * layout->in_count, layout->in_bits);
    hash = lilac_hash(layout->out, sizeof *layout->out * layout->out_count, hash);
    return lilac_hash(layout->columns, sizeof *layout->columns * layout->in_bits, hash);
}

static void layouts_grow(struct lilac_tile_types *types) {
    uint32_t capacity = types->layout_capacity ? types->layout_capacity * 2 : 16;
    size_t bytes = sizeof *types->layouts * capacity;
    const lilac_layout **slots = lilac_heap_grow(NULL, bytes);
    memset(slots, 0, bytes);
    for (uint32_t i = 0; i < types->layout_capacity; i++) {
        if (!types->layouts[i])
            continue;
        uint32_t at = (uint32_t)hash_layout(types->layouts[i]) & (capacity - 1);
        while (slots[at])
            at = (at + 1) & (capacity - 1);
        slots[at] = types->layouts[i];
    }
    lilac_heap_free(types->layouts);
    types->layouts = slots;
    types->layout_capacity = capacity;
}

static const lilac_layout *intern_layout(struct lilac_tile_types *types,
                                         const lilac_layout *layout) {
    if (types->layout_count * 2 >= types->layout_capacity)
        layouts_grow(types);
    uint32_t mask = types->layout_capacity - 1;
    uint32_t at = (uint32_t)hash_layout(layout) & mask;
    for (; types->layouts[at]; at = (at + 1) & mask)
        if (types->layouts[at] == layout || lilac_layout_equal(types->layouts[at], layout))
            return types->layouts[at];
    lilac_layout *copy = lilac_arena_new(types->arena, lilac_layout);
    *copy = *layout;
    types->layouts[at] = copy;
    types->layout_count++;
    return copy;
}

const lilac_tile_type *tile_type_intern(lilac_tile_module *module, const lilac_tile_type *type) {
    struct lilac_tile_types *types = module->types;
    if (types->count * 2 >= types->capacity)
        types_grow(types);
    uint32_t mask = types->capacity - 1;
    uint32_t at = (uint32_t)hash_type(type) & mask;
    for (; types->slots[at]; at = (at + 1) & mask)
        if (same_type(types->slots[at], type))
            return types->slots[at];
    lilac_tile_type *copy = lilac_arena_new(types->arena, lilac_tile_type);
    *copy = *type;
    copy->id = types->count++;
    if (type->rank) {
        int64_t *shape = lilac_arena_array(types->arena, int64_t, type->rank);
        memcpy(shape, type->shape, sizeof *shape * type->rank);
        copy->shape = shape;
    } else {
        copy->shape = NULL;
    }
    types->slots[at] = copy;
    return copy;
}

/* ---- making types ----------------------------------------------------------------------- */

const lilac_tile_type *lilac_tile_scalar(lilac_tile_module *module, lilac_scalar scalar) {
    const lilac_tile_type **known = &module->types->scalars[scalar];
    if (!*known)
        *known = tile_type_intern(module,
                                  &(lilac_tile_type){.kind = LILAC_TILE_SCALAR, .scalar = scalar});
    return *known;
}

const lilac_tile_type *lilac_tile_pointer(lilac_tile_module *module, const lilac_tile_type *pointee,
                                          uint32_t address_space) {
    return tile_type_intern(module, &(lilac_tile_type){.kind = LILAC_TILE_POINTER,
                                                       .element = pointee,
                                                       .address_space = address_space});
}

const lilac_tile_type *lilac_tile_tensor(lilac_tile_module *module, const lilac_tile_type *element,
                                         uint32_t rank, const int64_t *shape,
                                         const lilac_layout *layout) {
    assert(rank <= LILAC_MAX_RANK);
    assert(element->kind == LILAC_TILE_SCALAR || element->kind == LILAC_TILE_POINTER);
    return tile_type_intern(
        module, &(lilac_tile_type){.kind = LILAC_TILE_TENSOR,
                                   .scalar = element->scalar,
                                   .sign = element->sign,
                                   .element = element,
                                   .rank = rank,
                                   .shape = shape,
                                   .layout = layout ? intern_layout(module->types, layout) : NULL});
}

const lilac_tile_type *lilac_tile_descriptor(lilac_tile_module *module,
                                             const lilac_tile_type *tensor) {
    return tile_type_intern(module,
                            &(lilac_tile_type){.kind = LILAC_TILE_DESCRIPTOR, .element = tensor});
}

const lilac_tile_type *lilac_tile_with_layout(lilac_tile_module *module,
                                              const lilac_tile_type *type,
                                              const lilac_layout *layout) {
    if (type->kind != LILAC_TILE_TENSOR || type->layout == layout)
        return type;
    return lilac_tile_tensor(module, type->element, type->rank, type->shape, layout);
}

const lilac_tile_type *tile_with_element(lilac_tile_module *module, const lilac_tile_type *type,
                                         const lilac_tile_type *element) {
    if (type->kind != LILAC_TILE_TENSOR)
        return element;
    return lilac_tile_tensor(module, element, type->rank, type->shape, type->layout);
}

/* ---- looking ---------------------------------------------------------------------------- */

const lilac_tile_type *lilac_tile_element(const lilac_tile_type *type) {
    return type->kind == LILAC_TILE_TENSOR ? type->element : type;
}

bool lilac_tile_is_tensor(const lilac_tile_type *type) {
    return type->kind == LILAC_TILE_TENSOR;
}

bool lilac_tile_is_pointer(const lilac_tile_type *type) {
    return lilac_tile_element(type)->kind == LILAC_TILE_POINTER;
}

uint32_t lilac_tile_element_bits(const lilac_tile_type *type) {
    const lilac_tile_type *element = lilac_tile_element(type);
    return element->kind == LILAC_TILE_SCALAR ? lilac_scalar_bits(element->scalar) : 64;
}

int64_t lilac_tile_element_count(const lilac_tile_type *type) {
    int64_t count = 1;
    for (uint32_t i = 0; i < type->rank; i++)
        count *= type->shape[i];
    return count;
}

bool tile_same_shape(const lilac_tile_type *a, const lilac_tile_type *b) {
    bool tensor = a->kind == LILAC_TILE_TENSOR;
    if (tensor != (b->kind == LILAC_TILE_TENSOR))
        return false;
    return !tensor || (a->rank == b->rank && a->layout == b->layout &&
                       (!a->rank || memcmp(a->shape, b->shape, sizeof *a->shape * a->rank) == 0));
}

void lilac_tile_print_type(lilac_text *out, const lilac_tile_type *type) {
    switch (type->kind) {
    case LILAC_TILE_SCALAR:
        if (type->sign)
            lilac_text_char(out, type->sign);
        lilac_text_puts(out, lilac_scalar_name(type->scalar));
        return;
    case LILAC_TILE_POINTER:
        lilac_text_puts(out, "!tt.ptr<");
        lilac_tile_print_type(out, type->element);
        if (type->address_space != 1) {
            lilac_text_puts(out, ", ");
            lilac_text_unsigned(out, type->address_space);
        }
        break;
    case LILAC_TILE_TENSOR:
        lilac_text_puts(out, "tensor<");
        for (uint32_t i = 0; i < type->rank; i++) {
            lilac_text_unsigned(out, (uint64_t)type->shape[i]);
            lilac_text_char(out, 'x');
        }
        lilac_tile_print_type(out, type->element);
        if (type->layout) {
            lilac_text_puts(out, ", ");
            lilac_layout_print(out, type->layout);
        }
        break;
    case LILAC_TILE_DESCRIPTOR:
        lilac_text_puts(out, "!tt.tensordesc<");
        lilac_tile_print_type(out, type->element);
        break;
    case LILAC_TILE_TOKEN:
        lilac_text_puts(out, "!ttg.async.token");
        return;
    }
    lilac_text_char(out, '>');
}

const char *tile_type_text(const lilac_tile_module *module, const lilac_tile_type *type) {
    lilac_text text = {0};
    lilac_tile_print_type(&text, type);
    const char *copy =
        lilac_arena_copy(lilac_context_arena(module->context), lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
    return copy;
}
