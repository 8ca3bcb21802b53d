/* Names of layouts, texts of operations. Equal linear layouts of a module have one address, so each
 * is named once. */
#include "internal.h"

#include <string.h>

typedef struct explain_name {
    const lilac_layout *layout;
    const char *shortest, *linear;
    struct explain_name *next;
} explain_name;

static const char *kept(lilac_explanation *e, lilac_text *text) {
    char *copy = lilac_arena_alloc(e->arena, text->length + 1);
    memcpy(copy, lilac_text_get(text), text->length + 1);
    lilac_text_clear(text);
    return copy;
}

static explain_name *name_of(lilac_explanation *e, const lilac_layout *layout) {
    explain_name *name = e->names;
    while (name != NULL && name->layout != layout) {
        name = name->next;
    }
    if (name == NULL) {
        name = lilac_arena_new(e->arena, explain_name);
        *name = (explain_name){.layout = layout, .next = e->names};
        e->names = name;
    }
    return name;
}

const char *explain_linear_name(lilac_explanation *e, const lilac_layout *layout) {
    explain_name *name = name_of(e, layout);
    if (name->linear == NULL) {
        lilac_text text = {0};
        lilac_layout_print(&text, layout);
        name->linear = kept(e, &text);
    }
    return name->linear;
}

const char *explain_layout_name(lilac_explanation *e, const lilac_tile_type *type) {
    lilac_text text = {0};
    if (type->layout == NULL) {
        return NULL;
    }
    if (type->encoding != NULL) {
        lilac_encoding_print(&text, type->encoding);
        return kept(e, &text);
    }
    explain_name *name = name_of(e, type->layout);
    if (type->kind != LILAC_TILE_TENSOR) {
        return explain_linear_name(e, type->layout);
    }
    if (name->shortest == NULL) {
        lilac_encoding encoding;
        lilac_encoding_of_tensor(e->context, &encoding, type->layout);
        lilac_encoding_print(&text, &encoding);
        name->shortest = kept(e, &text);
    }
    return name->shortest;
}

void explain_value_name(lilac_text *out, const lilac_tile_value *value) {
    if (value->name != NULL) {
        lilac_text_printf(out, "%%%s", value->name);
    }
}

/* Prints the module once. The positions of the operations stay those in the text that was read. */
static void print_module(lilac_explanation *e) {
    lilac_position *positions = lilac_arena_array(e->arena, lilac_position, e->count + 1);
    e->text_begin = lilac_arena_array(e->arena, uint32_t, e->count + 1);
    for (uint32_t i = 0; i < e->count; i++) {
        positions[i] = e->operations[i].op->position;
    }
    const uint32_t source = lilac_tile_print_source(e->compilation.tile, "<compiled>");
    size_t length = 0;
    const char *bytes = source != 0 ? lilac_source_bytes(e->context, source, &length) : "";
    lilac_text_put(&e->tile, bytes, length);
    for (uint32_t i = 0; i < e->count; i++) {
        lilac_tile_op *op = (lilac_tile_op *)(uintptr_t)e->operations[i].op;
        e->text_begin[i] = op->position.source == source ? op->position.offset : (uint32_t)length;
        op->position = positions[i];
    }
}

const char *explain_operation_text(lilac_explanation *e, uint32_t index, size_t *length) {
    if (e->text_begin == NULL) {
        print_module(e);
    }
    const char *text = lilac_text_get(&e->tile);
    const char *at = text + e->text_begin[index];
    const char *begin = at;
    while (begin > text && begin[-1] != '\n') {
        begin--;
    }
    while (*begin == ' ') {
        begin++;
    }
    const char *end = strchr(at, '\n');
    *length = end != NULL ? (size_t)(end - begin) : strlen(begin);
    return begin;
}
