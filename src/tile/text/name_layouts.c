/* Names for the layouts of tensors, so that Triton's parser and verifier accept the text.
 *
 *   %1 = tt.expand_dims %0 {axis = 1} : tensor<64xi32, #ttg.linear<…>> -> tensor<64x1xi32, …>
 *   ─────────────────────────────────────────────────────────────────────────────────────
 *   #blocked = #ttg.blocked<{…}>
 *   %1 = tt.expand_dims %0 {axis = 1} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
 *                                    -> tensor<64x1xi32, #blocked>
 *
 * All values with one layout have one name, so loops, branches and element-wise operations agree.
 * Triton requires two names: the operand of tt.expand_dims is a slice of the result's layout, and the
 * operand of tt.broadcast has the result's. The operations are visited from the last to the first, so
 * the name of a result is known before its operand gets one. Then the result of each tt.reduce is a
 * slice of the operand's layout. All other layouts are blocked where a blocked layout is equal to
 * them, and linear otherwise.
 *
 * Where a layout already has another name, or the required name means another layout, a
 * ttg.convert_layout between the two is inserted. If the layouts are equal, it moves no data.
 */
#include "internal.h"

#include <string.h>

typedef struct layout_names {
    lilac_tile_module *module;
    tile_table names; /* layout → encoding, interned by its text */
    tile_table types; /* type → the type with its name */
    tile_table exact; /* layout → not NULL: only names without more copies are this layout */
    uint32_t blocked_count, linear_count;
    lilac_tile_op **ops; /* those with a rule, in program order */
    uint32_t count, capacity;
    bool is_named; /* a tensor of the function has a named layout already */
} layout_names;

static bool has_layout(const lilac_tile_type *type) {
    return type->kind == LILAC_TILE_TENSOR && type->layout != NULL;
}

static bool has_rule(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TT_EXPAND_DIMS || op->code == LILAC_TILE_OP_TT_BROADCAST ||
           op->code == LILAC_TILE_OP_TT_REDUCE;
}

/* Triton computes the result's layout of these operations, copies in registers included. */
static void mark_exact(layout_names *n, const lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->operand_count + op->result_count; i++) {
        const lilac_tile_type *type = i < op->operand_count
                                          ? op->operands[i].value->type
                                          : op->results[i - op->operand_count].type;
        if (has_layout(type)) {
            *tile_table_at(&n->exact, type->layout) = n;
        }
    }
}

static void collect(void *data, lilac_tile_op *op) {
    layout_names *n = data;
    for (uint32_t i = 0; i < op->result_count; i++) {
        const lilac_tile_type *type = op->results[i].type;
        n->is_named |= has_layout(type) && type->spelling != NULL;
    }
    if (!has_rule(op)) {
        if ((lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_SHAPE) != 0) {
            mark_exact(n, op);
        }
        return;
    }
    if (n->count == n->capacity) {
        n->capacity = n->capacity > 0 ? 2 * n->capacity : 32;
        n->ops = lilac_heap_grow(n->ops, n->capacity * sizeof(lilac_tile_op *));
    }
    n->ops[n->count++] = op;
}

/* The copy of an encoding that all equal ones share; #blocked3 becomes its name in the text. */
static const lilac_encoding *intern(layout_names *n, const lilac_encoding *encoding) {
    lilac_encoding *copy = lilac_arena_new(n->module->arena, lilac_encoding);
    *copy = *encoding;
    lilac_text text = {0}, name = {0};
    lilac_encoding_print(&text, copy);
    bool is_blocked = copy->kind == LILAC_ENCODING_BLOCKED;
    if ((is_blocked || copy->kind == LILAC_ENCODING_LINEAR) &&
        !tile_alias_exists(n->module, lilac_text_get(&text))) {
        uint32_t *count = is_blocked ? &n->blocked_count : &n->linear_count;
        lilac_text_puts(&name, is_blocked ? "blocked" : "linear");
        if (*count > 0) {
            lilac_text_unsigned(&name, *count);
        }
        ++*count;
        tile_alias_define(n->module,
                          lilac_intern(n->module->context, lilac_text_get(&name), name.length),
                          lilac_text_get(&text));
    }
    lilac_text_clear(&text);
    lilac_text_clear(&name);
    return tile_spelling_intern(n->module, copy)->encoding;
}

static const lilac_encoding *name_of(layout_names *n, const lilac_tile_type *type) {
    void **known = tile_table_at(&n->names, type->layout);
    if (*known == NULL) {
        lilac_encoding encoding;
        lilac_encoding_of_tensor(n->module->context, &encoding, type->layout);
        const lilac_encoding *interned = intern(n, &encoding);
        known = tile_table_at(&n->names, type->layout);
        *known = (void *)(uintptr_t)interned;
    }
    return *known;
}

/* The layout without registers that hold copies. */
static bool drop_copies(lilac_layout *result, const lilac_layout *layout) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    uint32_t count = 0;
    for (uint32_t k = 0; k < lilac_layout_in_bits(layout, "register"); k++) {
        columns[count] = lilac_layout_column(layout, "register", k);
        count += columns[count] != 0;
    }
    bool good = true;
    lilac_layout_init(result);
    for (uint32_t d = 0; d < layout->out_count; d++) {
        good &= lilac_layout_add_out(result, layout->out[d].name, layout->out[d].bits, NULL);
    }
    for (uint32_t d = 0, at = 0; d < layout->in_count; at += layout->in[d++].bits) {
        bool is_register = strcmp(layout->in[d].name, "register") == 0;
        good &= lilac_layout_add_in(result, layout->in[d].name,
                                    is_register ? count : layout->in[d].bits,
                                    is_register ? columns : layout->columns + at, NULL);
    }
    return good;
}

static bool is_same_but_copies(const lilac_layout *a, const lilac_layout *b) {
    lilac_layout first, second;
    return drop_copies(&first, a) && drop_copies(&second, b) && lilac_layout_equal(&first, &second);
}

/* Gives the layout of a type this name if it has none and the name is this layout. Whether it has
 * the name then. */
static bool require(layout_names *n, const lilac_tile_type *type, const lilac_encoding *wanted) {
    void **known = tile_table_at(&n->names, type->layout);
    lilac_layout layout;
    if (*known != NULL) {
        return *known == wanted;
    }
    if (!lilac_encoding_layout(n->module->context, &layout, wanted, type->rank, type->shape)) {
        lilac_diagnostics_reset(n->module->context);
        return false;
    }
    bool exact = tile_table_get(&n->exact, type->layout) != NULL;
    if (exact ? !lilac_layout_equal(&layout, type->layout)
              : !is_same_but_copies(&layout, type->layout)) {
        return false;
    }
    *known = (void *)(uintptr_t)wanted;
    return true;
}

static const lilac_encoding *slice_of(layout_names *n, const lilac_encoding *parent,
                                      int64_t dimension) {
    lilac_encoding slice;
    lilac_encoding_slice(&slice, (uint32_t)dimension, parent);
    return intern(n, &slice);
}

/* The type with the layout that a name means for its shape; NULL if it means none. */
static const lilac_tile_type *type_with(layout_names *n, const lilac_tile_type *type,
                                        const lilac_encoding *name) {
    lilac_layout layout;
    if (!lilac_encoding_layout(n->module->context, &layout, name, type->rank, type->shape)) {
        lilac_diagnostics_reset(n->module->context);
        return NULL;
    }
    return tile_tensor_spelled(n->module, type->element, type->rank, type->shape, &layout, name);
}

static const lilac_tile_type *named_type(layout_names *n, const lilac_tile_type *type) {
    if (!has_layout(type) || type->spelling != NULL) {
        return type;
    }
    void **known = tile_table_at(&n->types, type);
    if (*known == NULL) {
        const lilac_tile_type *named = type_with(n, type, name_of(n, type));
        *known = (void *)(uintptr_t)(named != NULL ? named : type);
    }
    return *known;
}

static lilac_tile_op *convert(layout_names *n, lilac_tile_value *value, const lilac_tile_type *type,
                              lilac_location location) {
    return lilac_tile_op_create(n->module, LILAC_TILE_OP_TTG_CONVERT_LAYOUT, 1, &value, 1, &type, 0,
                                location);
}

static void name_operand(layout_names *n, lilac_tile_op *op) {
    lilac_tile_value *operand = op->operands[0].value;
    const lilac_tile_type *result = op->results[0].type;
    if (op->code == LILAC_TILE_OP_TT_REDUCE || !has_layout(result) || !has_layout(operand->type)) {
        return;
    }
    const lilac_encoding *wanted = name_of(n, result);
    if (op->code == LILAC_TILE_OP_TT_EXPAND_DIMS) {
        wanted = slice_of(n, wanted, lilac_tile_find_integer(&op->attributes, "axis", 0));
    }
    const lilac_tile_type *type =
        require(n, operand->type, wanted) ? NULL : type_with(n, operand->type, wanted);
    if (type != NULL) {
        lilac_tile_op *converted = convert(n, operand, type, op->location);
        lilac_tile_insert_before(op, converted);
        lilac_tile_set_operand(op, 0, &converted->results[0]);
    }
}

static void name_reduction(layout_names *n, lilac_tile_op *op) {
    if (op->code != LILAC_TILE_OP_TT_REDUCE || !has_layout(op->results[0].type)) {
        return;
    }
    int64_t axis = lilac_tile_find_integer(&op->attributes, "axis", 0);
    const lilac_encoding *slice = slice_of(n, name_of(n, op->operands[0].value->type), axis);
    for (uint32_t i = op->result_count; i-- > 0;) {
        lilac_tile_value *result = &op->results[i];
        const lilac_tile_type *type =
            require(n, result->type, slice) ? NULL : type_with(n, result->type, slice);
        if (type != NULL) {
            lilac_tile_op *converted =
                convert(n, result, named_type(n, result->type), op->location);
            lilac_tile_replace_uses(result, &converted->results[0]);
            lilac_tile_set_operand(converted, 0, result);
            lilac_tile_insert_after(op, converted);
            result->type = type;
        }
    }
}

static void rename_op(void *data, lilac_tile_op *op) {
    layout_names *n = data;
    for (uint32_t i = 0; i < op->result_count; i++) {
        op->results[i].type = named_type(n, op->results[i].type);
    }
    for (uint32_t i = 0; i < op->attributes.count; i++) {
        lilac_tile_attribute *attribute = &op->attributes.list[i];
        if (attribute->kind == LILAC_TILE_ATTR_DENSE) {
            attribute->type = named_type(n, attribute->type);
        }
    }
    for (uint32_t i = 0; i < op->region_count; i++) {
        for (lilac_tile_block *b = op->regions[i]->first; b != NULL; b = b->next) {
            for (uint32_t k = 0; k < b->argument_count; k++) {
                b->arguments[k]->type = named_type(n, b->arguments[k]->type);
            }
        }
    }
}

void lilac_tile_name_layouts(lilac_tile_module *module) {
    layout_names n = {.module = module};
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        n.count = 0;
        if (f->body == NULL) {
            continue;
        }
        lilac_tile_walk(f->body, collect, &n);
        if (n.is_named) {
            break;
        }
        for (uint32_t i = n.count; i-- > 0;) {
            name_operand(&n, n.ops[i]);
        }
        for (uint32_t i = 0; i < n.count; i++) {
            name_reduction(&n, n.ops[i]);
        }
        lilac_tile_walk(f->body, rename_op, &n);
    }
    tile_table_clear(&n.names);
    tile_table_clear(&n.types);
    tile_table_clear(&n.exact);
    lilac_heap_free(n.ops);
}
