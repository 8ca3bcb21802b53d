/* Types: interned in the module, so that equal types are the same pointer and comparing two is
 * comparing two pointers. A type is hashed by its contents (the element by its id, the layout by
 * its columns) into one table; layouts have a table of their own, and so they too are shared.
 *
 * A layout that was written as a named one is kept together with its name: the same columns under
 * another name are another entry, with another pointer. So whoever passes layouts on by pointer
 * passes the names on too. Names are known by their full text; at first sight aliases of the module
 * are put in, and that is how they print. */
#include "internal.h"

#include <assert.h>
#include <string.h>

/* ---- pointer tables --------------------------------------------------------------------- */

static uint32_t slot_of(const tile_table *table, const void *key) {
    uint32_t mask = table->capacity - 1;
    uint32_t at =
        (uint32_t)(((uint64_t)(uintptr_t)key * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & mask;
    while (table->entries[at].key && table->entries[at].key != key) {
        at = (at + 1) & mask;
    }
    return at;
}

static void table_grow(tile_table *table) {
    tile_table old = *table;
    table->capacity = old.capacity ? old.capacity * 2 : 64;
    size_t bytes = sizeof *table->entries * table->capacity;
    table->entries = lilac_heap_grow(NULL, bytes);
    memset(table->entries, 0, bytes);
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (old.entries[i].key) {
            table->entries[slot_of(table, old.entries[i].key)] = old.entries[i];
        }
    }
    lilac_heap_free(old.entries);
}

void **tile_table_at(tile_table *table, const void *key) {
    if (table->count * 2 >= table->capacity) {
        table_grow(table);
    }
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

/* A layout and, perhaps, how it was written. */
typedef struct interned_layout {
    lilac_layout layout; /* first: its address is what types have */
    const tile_spelling *spelling;
} interned_layout;

struct lilac_tile_types {
    lilac_arena *arena;
    const lilac_tile_type **slots;
    uint32_t capacity, count;
    interned_layout **layouts;
    uint32_t layout_capacity, layout_count;
    tile_table spellings; /* full text → tile_spelling */
    tile_table aliases;   /* full text → its first alias */
    struct lilac_tile_alias *last_alias;
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
    tile_table_clear(&types->spellings);
    tile_table_clear(&types->aliases);
}

static uint64_t hash_type(const lilac_tile_type *type) {
    uint64_t hash = lilac_hash_word((uint64_t)type->kind << 32 | (uint64_t)type->scalar << 16 |
                                        (uint64_t)(unsigned char)type->sign << 8 | type->rank,
                                    type->address_space);
    hash = lilac_hash_word(type->element ? type->element->id + 1 : 0, hash);
    for (uint32_t i = 0; i < type->rank; i++) {
        hash = lilac_hash_word((uint64_t)type->shape[i], hash);
    }
    for (uint32_t i = 0; i < type->alloc_rank; i++) {
        hash = lilac_hash_word((uint64_t)type->alloc_shape[i], hash);
    }
    hash = lilac_hash_word((uint64_t)type->is_mutable << 1 | type->is_tensor_memory, hash);
    return lilac_hash_word((uint64_t)(uintptr_t)type->layout, hash);
}

static bool same_sizes(const int64_t *a, const int64_t *b, uint32_t count) {
    return count == 0 || memcmp(a, b, sizeof *a * count) == 0;
}

static bool same_type(const lilac_tile_type *a, const lilac_tile_type *b) {
    return a->kind == b->kind && a->scalar == b->scalar && a->sign == b->sign &&
           a->width == b->width && a->rank == b->rank && a->address_space == b->address_space &&
           a->element == b->element && a->layout == b->layout && a->is_mutable == b->is_mutable &&
           a->is_tensor_memory == b->is_tensor_memory && a->alloc_rank == b->alloc_rank &&
           same_sizes(a->shape, b->shape, a->rank) &&
           same_sizes(a->alloc_shape, b->alloc_shape, a->alloc_rank);
}

static void types_grow(struct lilac_tile_types *types) {
    uint32_t capacity = types->capacity ? types->capacity * 2 : 128;
    size_t bytes = sizeof *types->slots * capacity;
    const lilac_tile_type **slots = lilac_heap_grow(NULL, bytes);
    memset(slots, 0, bytes);
    for (uint32_t i = 0; i < types->capacity; i++) {
        if (!types->slots[i]) {
            continue;
        }
        uint32_t at = (uint32_t)hash_type(types->slots[i]) & (capacity - 1);
        while (slots[at]) {
            at = (at + 1) & (capacity - 1);
        }
        slots[at] = types->slots[i];
    }
    lilac_heap_free(types->slots);
    types->slots = slots;
    types->capacity = capacity;
}

static void layouts_grow(struct lilac_tile_types *types) {
    uint32_t capacity = types->layout_capacity ? types->layout_capacity * 2 : 16;
    size_t bytes = sizeof *types->layouts * capacity;
    interned_layout **slots = lilac_heap_grow(NULL, bytes);
    memset(slots, 0, bytes);
    for (uint32_t i = 0; i < types->layout_capacity; i++) {
        if (!types->layouts[i]) {
            continue;
        }
        uint32_t at = (uint32_t)lilac_layout_hash(&types->layouts[i]->layout) & (capacity - 1);
        while (slots[at]) {
            at = (at + 1) & (capacity - 1);
        }
        slots[at] = types->layouts[i];
    }
    lilac_heap_free(types->layouts);
    types->layouts = slots;
    types->layout_capacity = capacity;
}

/* The entry of a layout with this spelling. A layout that is an entry's own, spelled or not, is
 * that entry when no spelling is asked for. */
static const interned_layout *intern_layout(struct lilac_tile_types *types,
                                            const lilac_layout *layout,
                                            const tile_spelling *spelling) {
    if (types->layout_count * 2 >= types->layout_capacity) {
        layouts_grow(types);
    }
    uint32_t mask = types->layout_capacity - 1;
    uint32_t at = (uint32_t)lilac_layout_hash(layout) & mask;
    const interned_layout *found = NULL;
    for (; types->layouts[at]; at = (at + 1) & mask) {
        const interned_layout *entry = types->layouts[at];
        if (!spelling && &entry->layout == layout) {
            return entry;
        }
        if (!found && entry->spelling == spelling && lilac_layout_equal(&entry->layout, layout)) {
            found = entry;
        }
    }
    if (found) {
        return found;
    }
    interned_layout *copy = lilac_arena_new(types->arena, interned_layout);
    copy->layout = *layout;
    copy->spelling = spelling;
    types->layouts[at] = copy;
    types->layout_count++;
    return copy;
}

const lilac_layout *lilac_tile_intern_layout(lilac_tile_module *module,
                                             const lilac_layout *layout) {
    return &intern_layout(module->types, layout, NULL)->layout;
}

/* Gives a type its layout and what is known of how it was written. */
static void set_layout(lilac_tile_module *module, lilac_tile_type *type, const lilac_layout *layout,
                       const tile_spelling *spelling) {
    const interned_layout *entry = intern_layout(module->types, layout, spelling);
    type->layout = &entry->layout;
    if (entry->spelling) {
        type->encoding = entry->spelling->encoding;
        type->spelling = entry->spelling->spelling;
    }
}

/* ---- how layouts are written ------------------------------------------------------------ */

/* The end of the attribute that begins at `at` with its "#": behind the bracket that closes it. */
static const char *attribute_end(const char *at) {
    uint32_t depth = 0;
    for (; *at; at++) {
        if (*at == '<') {
            depth++;
        } else if (*at == '>' && --depth == 0) {
            return at + 1;
        }
    }
    return at;
}

/* `text`, an attribute, with the outermost of the attributes in it that have aliases replaced by
 * these, but for itself when it is `whole`. */
static lilac_name abbreviate(const lilac_tile_module *module, const char *text, bool whole) {
    lilac_text out = {0};
    for (const char *at = text; *at;) {
        const char *end = *at == '#' && (at > text || whole) ? attribute_end(at) : at;
        const struct lilac_tile_alias *alias = NULL;
        if (end > at) {
            alias = tile_table_get(&module->types->aliases,
                                   lilac_intern(module->context, at, (size_t)(end - at)));
        }
        if (alias) {
            lilac_text_char(&out, '#');
            lilac_text_puts(&out, alias->name);
            at = end;
        } else {
            lilac_text_char(&out, *at++);
        }
    }
    lilac_name name = lilac_intern(module->context, lilac_text_get(&out), out.length);
    lilac_text_clear(&out);
    return name;
}

lilac_name tile_alias_abbreviate(const lilac_tile_module *module, const char *text) {
    return abbreviate(module, text, true);
}

bool tile_alias_exists(const lilac_tile_module *module, const char *text) {
    return tile_table_get(&module->types->aliases, lilac_intern_string(module->context, text)) !=
           NULL;
}

void tile_alias_define(lilac_tile_module *module, lilac_name name, const char *text) {
    struct lilac_tile_types *types = module->types;
    struct lilac_tile_alias *alias = lilac_arena_new(module->arena, struct lilac_tile_alias);
    void **first = tile_table_at(&types->aliases, lilac_intern_string(module->context, text));
    if (!*first) {
        *first = alias;
    }
    alias->name = name;
    alias->definition = abbreviate(module, text, false);
    *(types->last_alias ? &types->last_alias->next : &module->aliases) = alias;
    types->last_alias = alias;
}

/* The name of a memory space, which types print. */
static void define_space(lilac_tile_module *module, bool tensor_memory) {
    const char *text = tensor_memory ? "#ttng.tensor_memory" : "#ttg.shared_memory";
    if (!tile_alias_exists(module, text)) {
        tile_alias_define(
            module, lilac_intern_string(module->context, tensor_memory ? "tmem" : "smem"), text);
    }
}

const tile_spelling *tile_spelling_intern(lilac_tile_module *module,
                                          const lilac_encoding *encoding) {
    lilac_text text = {0};
    lilac_encoding_print(&text, encoding);
    lilac_name name = lilac_intern(module->context, lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
    void **known = tile_table_at(&module->types->spellings, name);
    if (!*known) {
        tile_spelling *spelling = lilac_arena_new(module->arena, tile_spelling);
        spelling->encoding = encoding;
        spelling->spelling = abbreviate(module, name, true);
        *known = spelling;
    }
    return *known;
}

static const int64_t *copy_sizes(lilac_arena *arena, const int64_t *sizes, uint32_t count) {
    if (!count) {
        return NULL;
    }
    int64_t *copy = lilac_arena_array(arena, int64_t, count);
    memcpy(copy, sizes, sizeof *copy * count);
    return copy;
}

const lilac_tile_type *tile_type_intern(lilac_tile_module *module, const lilac_tile_type *type) {
    struct lilac_tile_types *types = module->types;
    if (types->count * 2 >= types->capacity) {
        types_grow(types);
    }
    uint32_t mask = types->capacity - 1;
    uint32_t at = (uint32_t)hash_type(type) & mask;
    for (; types->slots[at]; at = (at + 1) & mask) {
        if (same_type(types->slots[at], type)) {
            return types->slots[at];
        }
    }
    lilac_tile_type *copy = lilac_arena_new(types->arena, lilac_tile_type);
    *copy = *type;
    copy->id = types->count++;
    copy->shape = copy_sizes(types->arena, type->shape, type->rank);
    copy->alloc_shape = copy_sizes(types->arena, type->alloc_shape, type->alloc_rank);
    types->slots[at] = copy;
    return copy;
}

/* ---- making types ----------------------------------------------------------------------- */

const lilac_tile_type *lilac_tile_scalar(lilac_tile_module *module, lilac_scalar scalar) {
    const lilac_tile_type **known = &module->types->scalars[scalar];
    if (!*known) {
        *known = tile_type_intern(module,
                                  &(lilac_tile_type){.kind = LILAC_TILE_SCALAR, .scalar = scalar});
    }
    return *known;
}

const lilac_tile_type *lilac_tile_pointer(lilac_tile_module *module, const lilac_tile_type *pointee,
                                          uint32_t address_space) {
    return tile_type_intern(module, &(lilac_tile_type){.kind = LILAC_TILE_POINTER,
                                                       .element = pointee,
                                                       .address_space = address_space});
}

static const lilac_tile_type *make_tensor(lilac_tile_module *module, const lilac_tile_type *element,
                                          uint32_t rank, const int64_t *shape,
                                          const lilac_layout *layout,
                                          const tile_spelling *spelling) {
    assert(rank <= LILAC_MAX_RANK);
    assert(element->kind == LILAC_TILE_SCALAR || element->kind == LILAC_TILE_POINTER);
    lilac_tile_type type = {.kind = LILAC_TILE_TENSOR,
                            .scalar = element->scalar,
                            .sign = element->sign,
                            .element = element,
                            .rank = rank,
                            .shape = shape};
    if (layout) {
        set_layout(module, &type, layout, spelling);
    }
    return tile_type_intern(module, &type);
}

const lilac_tile_type *lilac_tile_tensor(lilac_tile_module *module, const lilac_tile_type *element,
                                         uint32_t rank, const int64_t *shape,
                                         const lilac_layout *layout) {
    return make_tensor(module, element, rank, shape, layout, NULL);
}

const lilac_tile_type *tile_tensor_spelled(lilac_tile_module *module,
                                           const lilac_tile_type *element, uint32_t rank,
                                           const int64_t *shape, const lilac_layout *layout,
                                           const lilac_encoding *encoding) {
    return make_tensor(module, element, rank, shape, layout,
                       tile_spelling_intern(module, encoding));
}

const lilac_tile_type *lilac_tile_memory(lilac_tile_module *module,
                                         const lilac_encoding_memdesc *memory) {
    assert(memory->rank <= LILAC_MAX_RANK && memory->alloc_rank <= LILAC_MAX_RANK);
    const lilac_tile_type *element = lilac_tile_scalar(module, memory->scalar);
    lilac_tile_type type = {.kind = LILAC_TILE_MEMDESC,
                            .scalar = memory->scalar,
                            .element = element,
                            .rank = memory->rank,
                            .shape = memory->shape,
                            .is_mutable = memory->is_mutable,
                            .is_tensor_memory = lilac_layout_in(&memory->layout, "row") >= 0,
                            .alloc_rank = memory->alloc_rank,
                            .alloc_shape = memory->alloc_shape};
    if (type.alloc_rank == 0) {
        type.alloc_rank = type.rank;
        type.alloc_shape = type.shape;
    }
    define_space(module, type.is_tensor_memory);
    if (memory->layout.in_count != 0) {
        set_layout(module, &type, &memory->layout,
                   memory->encoding ? tile_spelling_intern(module, memory->encoding) : NULL);
    }
    return tile_type_intern(module, &type);
}

const lilac_tile_type *lilac_tile_token(lilac_tile_module *module) {
    return tile_type_intern(module, &(lilac_tile_type){.kind = LILAC_TILE_TOKEN});
}

const lilac_tile_type *lilac_tile_descriptor(lilac_tile_module *module,
                                             const lilac_tile_type *tensor) {
    return tile_type_intern(module,
                            &(lilac_tile_type){.kind = LILAC_TILE_DESCRIPTOR, .element = tensor});
}

const lilac_tile_type *lilac_tile_with_layout(lilac_tile_module *module,
                                              const lilac_tile_type *type,
                                              const lilac_layout *layout) {
    if (type->kind != LILAC_TILE_TENSOR || type->layout == layout) {
        return type;
    }
    return lilac_tile_tensor(module, type->element, type->rank, type->shape, layout);
}

const lilac_tile_type *tile_with_element(lilac_tile_module *module, const lilac_tile_type *type,
                                         const lilac_tile_type *element) {
    if (type->kind != LILAC_TILE_TENSOR) {
        return element;
    }
    return lilac_tile_tensor(module, element, type->rank, type->shape, type->layout);
}

/* ---- looking ---------------------------------------------------------------------------- */

const lilac_tile_type *lilac_tile_element(const lilac_tile_type *type) {
    return type->kind == LILAC_TILE_TENSOR || type->kind == LILAC_TILE_MEMDESC ? type->element
                                                                               : type;
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
    for (uint32_t i = 0; i < type->rank; i++) {
        count *= type->shape[i];
    }
    return count;
}

bool tile_same_shape(const lilac_tile_type *a, const lilac_tile_type *b) {
    bool tensor = a->kind == LILAC_TILE_TENSOR;
    if (tensor != (b->kind == LILAC_TILE_TENSOR)) {
        return false;
    }
    return !tensor || (a->rank == b->rank && a->layout == b->layout &&
                       (!a->rank || memcmp(a->shape, b->shape, sizeof *a->shape * a->rank) == 0));
}

/* "3x64x" */
static void print_sizes(lilac_text *out, const int64_t *sizes, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        lilac_text_unsigned(out, (uint64_t)sizes[i]);
        lilac_text_char(out, 'x');
    }
}

static void print_layout(lilac_text *out, const lilac_tile_type *type) {
    if (!type->layout) {
        return;
    }
    lilac_text_puts(out, ", ");
    if (type->spelling) {
        lilac_text_puts(out, type->spelling);
        return;
    }
    /* As named layouts of shared memory are printed: without an empty block. */
    lilac_layout layout = *type->layout;
    if (type->kind == LILAC_TILE_MEMDESC && layout.in_count == 2 && layout.in[1].bits == 0) {
        layout.in_count = 1;
    }
    lilac_layout_print(out, &layout);
}

static void print_memory(lilac_text *out, const lilac_tile_type *type) {
    lilac_text_puts(out, "!ttg.memdesc<");
    print_sizes(out, type->shape, type->rank);
    lilac_tile_print_type(out, type->element);
    print_layout(out, type);
    lilac_text_puts(out, type->is_tensor_memory ? ", #tmem" : ", #smem");
    if (type->is_mutable) {
        lilac_text_puts(out, ", mutable");
    }
    if (type->alloc_rank != type->rank || !same_sizes(type->shape, type->alloc_shape, type->rank)) {
        lilac_text_puts(out, ", ");
        print_sizes(out, type->alloc_shape, type->alloc_rank - 1);
        lilac_text_unsigned(out, (uint64_t)type->alloc_shape[type->alloc_rank - 1]);
    }
}

void lilac_tile_print_type(lilac_text *out, const lilac_tile_type *type) {
    switch (type->kind) {
    case LILAC_TILE_SCALAR:
        if (type->sign) {
            lilac_text_char(out, type->sign);
        }
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
        print_sizes(out, type->shape, type->rank);
        lilac_tile_print_type(out, type->element);
        print_layout(out, type);
        break;
    case LILAC_TILE_DESCRIPTOR:
        lilac_text_puts(out, "!tt.tensordesc<");
        lilac_tile_print_type(out, type->element);
        break;
    case LILAC_TILE_MEMDESC:
        print_memory(out, type);
        break;
    case LILAC_TILE_INTEGER:
        lilac_text_printf(out, "%.1si%u",
                          type->sign == 's'   ? "s"
                          : type->sign == 'u' ? "u"
                                              : "",
                          type->width);
        return;
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
